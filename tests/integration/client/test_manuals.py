# SPDX-License-Identifier: Apache-2.0
"""Completion of voxelctl as bash, zsh and fish themselves load it, and the manual pages: every
command is in them, and groff finds nothing wrong. That they are as the generator makes them,
test_generated.py shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import BIN, SOURCE

VOXELCTL = SOURCE / "client" / "voxelctl"
SHELLS = VOXELCTL / "generated" / "shells"
OPTIONS = SOURCE / "tests" / "data" / "names" / "options.txt"


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", (command, done.stdout, done.stderr)
    return done.stdout


def bash(words: list[str]) -> list[str]:
    script = SHELLS / "voxelctl.bash"
    run("bash", "-n", script)
    return run(
        "bash", "-c", f'. {script}; COMP_WORDS=(voxelctl "$@"); COMP_CWORD=$#; _voxelctl; '
        'printf "%s\\n" "${COMPREPLY[@]}"', "bash", *words,
    ).split()  # fmt: skip


def zsh(words: list[str]) -> list[str]:
    """The functions of its completion system that the script calls are ours, and print."""
    script = SHELLS / "_voxelctl"
    run("zsh", "-n", script)
    shown = run(
        "zsh", "-f", "-c", 'compadd() { print -l -- "$@" }; _describe() { print -l -- ${(P)3} }; '
        f'_files() {{ }}; words=(voxelctl "$@"); CURRENT=$#words; . {script}', "zsh", *words,
    )  # fmt: skip
    found = [re.split(r"(?<!\\\\):", line)[0] for line in shown.splitlines()]
    return [word for word in found if word.startswith(words[-1])]


def fish(words: list[str]) -> list[str]:
    script = SHELLS / "voxelctl.fish"
    run("fish", "--no-config", "--no-execute", script)
    shown = run(
        "fish", "--no-config", "-c",
        f"source {script}; complete -C '{' '.join(['voxelctl', *words])}'",
    )  # fmt: skip
    return [line.split("\t")[0] for line in shown.splitlines()]


@pytest.mark.parametrize("shell", [bash, zsh, fish])
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ma"], ["map"]),
        (["map", "cr"], ["create"]),
        (["--url", "x", "map", "create", "seen", "--cap"], ["--capacity"]),
        (["map", "update", "seen", "keys.npy", "--combine", "m"], ["min", "max"]),
        (["scene", "create", "yard", "--track"], ["--track-free"]),
    ],
)
def test_shells_complete_commands_options_and_choices(
    shell: Callable[[list[str]], list[str]], words: list[str], completed: list[str]
) -> None:
    if shutil.which(shell.__name__) is None:
        pytest.skip(f"there is no {shell.__name__}")
    assert sorted(shell(words)) == sorted(completed)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_finds_the_completion_by_itself(tmp_path: Path) -> None:
    shown = run(
        "zsh", "-f", "-c", f"fpath=({SHELLS} $fpath); autoload -Uz compinit; "
        f"compinit -u -d {tmp_path}/dump; print $_comps[voxelctl]",
    )  # fmt: skip
    assert shown == "_voxelctl\n"


def pages() -> list[Path]:
    return [VOXELCTL / "voxelctl.1", *sorted((VOXELCTL / "generated").glob("*.1"))]


def text_of(page: Path) -> str:
    return page.read_text().replace("\\-", "-")


def test_manuals_have_every_command_of_the_program() -> None:
    commands = re.findall(r"^  ([a-z-]+)  ", run(BIN / "voxelctl", "--help"), re.MULTILINE)
    assert len(commands) > 20
    page = text_of(pages()[0])
    described = set(re.findall(r"^\.TP\n\.B ([a-z-]+)$", page, re.MULTILINE))
    assert set(commands) - described == set()
    for flag in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", run(BIN / "voxelctl", "--help"), re.M):
        assert flag in page, flag
    for other in pages()[1:]:
        noun = other.stem.removeprefix("voxelctl-")
        assert noun in commands and f".BR {other.stem} (1)" in page, noun
        lines = [line.split() for line in OPTIONS.read_text().splitlines()]
        subcommands = {
            words[2] for words in lines
            if words[:2] == ["voxelctl", noun] and len(words) > 2 and words[2][0] != "-"
        }  # fmt: skip
        assert subcommands == set(re.findall(r"^\.SS ([a-z-]+)$", text_of(other), re.MULTILINE))


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_groff_finds_nothing_wrong_with_the_manuals(tmp_path: Path) -> None:
    made = tmp_path / "voxeld.8"
    run("cmake", f"-DPROGRAM={BIN / 'voxeld'}", "-DNAME=voxeld", f"-DOUT={made}",
        "-P", SOURCE / "deploy" / "manual.cmake")  # fmt: skip
    for page in [*pages(), made]:
        run("groff", "-man", "-Tutf8", "-ww", "-z", page)
