# SPDX-License-Identifier: Apache-2.0
"""Every command of voxelctl takes --json, and what goes wrong is then a JSON object on standard error
and nothing else there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from harness import BIN, SLOW, SOURCE

LINES = (SOURCE / "tests/data/names/options.txt").read_text().splitlines()
WITH_OPTIONS = [line.split(" --")[0] for line in LINES if line.startswith("voxelctl ")]
COMMANDS = sorted({c.removeprefix("voxelctl").strip() for c in WITH_OPTIONS} - {""})
# Those of which `voxelctl NOUN SUBCOMMAND` are the commands.
NOUNS = {c.split()[0] for c in COMMANDS if " " in c}
LEAVES = [c for c in COMMANDS if c not in NOUNS]


def run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VOXELD_", "XDG_"))}
    return subprocess.run(
        [BIN / "voxelctl", *words], capture_output=True, text=True, timeout=120 * SLOW,
        check=False, cwd=directory, stdin=subprocess.DEVNULL,
        env={**environment, "VOXELD_URL": f"ipc://{directory}/nobody.sock", "HOME": str(directory)},
    )  # fmt: skip


def check_error(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode in (1, 2), (done.args, done.stdout, done.stderr)
    error = json.loads(done.stderr)  # one object, nothing beside it
    assert isinstance(error, dict), done.stderr
    assert error["code"] and error["message"], done.stderr
    return error


def test_all_commands_are_known() -> None:
    assert len(LEAVES) > 90
    assert {"restore", "why", "bench", "top", "watch", "demo", "backup"} <= set(LEAVES)
    assert {"scene show", "scene export", "net check", "slac apply"} <= set(LEAVES)


@pytest.mark.parametrize("command", LEAVES)
def test_command_takes_json_and_its_errors_are_json(directory: Path, command: str) -> None:
    assert f"voxelctl {command} --json" in LINES
    words = command.split()
    directory.mkdir(parents=True, exist_ok=True)
    error = check_error(run(directory, *words, "--json", "--no-such-option"))
    assert "no-such-option" in error["message"]
    # With too few words, enough of them, or too many; nobody listens, and no file is there.
    for n in range(4):
        error = check_error(run(directory, *words, "--json", *["nothing.ply"] * n))
        assert "\n" not in error["message"]
    # The option may stand before the command.
    check_error(run(directory, "--json", *words, "--no-such-option"))


@pytest.mark.parametrize("noun", sorted(NOUNS))
def test_noun_without_a_subcommand_is_json_too(directory: Path, noun: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    assert "no subcommand" in check_error(run(directory, noun, "--json"))["message"]
    assert "no subcommand" in check_error(run(directory, noun, "nonsense", "--json"))["message"]
