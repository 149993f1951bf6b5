# SPDX-License-Identifier: Apache-2.0
"""Completion of voxelctl as bash, zsh and fish themselves load it, and the manual pages: every
command is in them, and groff finds nothing wrong. That they are as the generator makes them,
test_generated.py shows."""

from __future__ import annotations

import os
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


def test_bash_completes_names_of_what_there_is(tmp_path: Path) -> None:
    """A voxelctl that lists two scenes stands for the real one, whose tables look so."""
    program = tmp_path / "voxelctl"
    program.write_text(
        '#!/bin/sh\n[ "$2" = list ] || exit 1\n'
        "printf '%s\\n' \"$1    voxels   owner\" 'yard         3  uid-0' 'yacht        4  uid-0' "
        "'2 scenes take 7 of 9 bytes'\n"
    )
    program.chmod(0o755)

    def completed(*words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", f'. {SHELLS / "voxelctl.bash"}; COMP_WORDS=(voxelctl "$@"); '
             'COMP_CWORD=$#; _voxelctl; printf "%s\\n" "${COMPREPLY[@]}"', "bash", *words],
            capture_output=True, text=True, check=True, cwd=tmp_path,
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        )  # fmt: skip
        return done.stdout.split()

    assert completed("scene", "info", "ya") == ["yard", "yacht"]
    assert completed("infer", "yar") == ["yard"]
    assert completed("scene", "integrate", "a.pcd", "--scene", "yac") == ["yacht"]
    (tmp_path / "yaml.txt").touch()
    # The value of an option that is no name is a file.
    assert completed("scene", "integrate", "a.pcd", "--poses", "ya") == ["yaml.txt"]
    assert completed("scene", "info", "2") == []


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
    lines = [line.split(" -")[0] for line in OPTIONS.read_text().splitlines()]
    paths = {line.removeprefix("voxelctl ") for line in lines if line.startswith("voxelctl ")}
    subcommands = {path for path in paths if " " in path}
    for other in pages()[1:]:
        assert f".BR {other.stem} (1)" in page, other.stem
        found = re.findall(r"^\.SS (\S+)\n.*\n\.PP\n\.B voxelctl ([a-z -]+)", text_of(other), re.M)
        assert len(found) == len(re.findall(r"^\.SS ", text_of(other), re.M)) > 0
        for name, usage in found:
            path = " ".join(usage.split()[: 1 if usage.split()[0] == name else 2])
            assert path in paths and path.split()[-1] == name, (other.stem, name)
            subcommands.discard(path)
    assert subcommands == set()


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_groff_finds_nothing_wrong_with_the_manuals(tmp_path: Path) -> None:
    made = tmp_path / "voxeld.8"
    run("cmake", f"-DPROGRAM={BIN / 'voxeld'}", "-DNAME=voxeld", f"-DOUT={made}",
        "-P", SOURCE / "deploy" / "manual.cmake")  # fmt: skip
    for page in [*pages(), made]:
        run("groff", "-man", "-Tutf8", "-ww", "-z", page)
