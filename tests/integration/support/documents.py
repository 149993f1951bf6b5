# SPDX-License-Identifier: Apache-2.0
"""The code blocks of our documents, and a terminal in which they run as they stand there."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import BIN, SLOW, SOURCE, Daemon

# What a document says is the default address; a test's daemon has any free port. What the server
# refuses must fail here.
CURL = """#!/bin/sh
for word; do
    shift
    set -- "$@" "$(printf %s "$word" | sed 's#http://localhost:8420#http://127.0.0.1:{port}#')"
done
exec {curl} --fail --silent --show-error "$@"
"""
# Clients wait as long as the daemon lets them; a machine that does other things needs more time.
LIMITS = {"max_timeout_ms": int(240000 * SLOW)}
RUN_LIMIT_S = 400
BUSY = 4  # processes that wait for each core


@dataclass(frozen=True)
class Block:
    """A block of code: where it is, and its text without the indentation of a list."""

    document: str
    line: int
    language: str  # "" where the fence names none, "indented" where there is no fence
    text: str

    @property
    def begin(self) -> str:
        return self.text.splitlines()[0].strip() if self.text.strip() else ""

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {self.begin}"


def documents() -> list[str]:
    """Returns the names of all texts that are part of the tree."""
    listed = subprocess.run(
        ["git", "-C", SOURCE, "ls-files", "*.md"], capture_output=True, text=True, check=False
    ).stdout.split()
    return [name for name in listed if (SOURCE / name).exists()]


def _fenced(document: str, lines: list[str], begin: int) -> Block:
    mark, language = re.fullmatch(r"\s*(`{3,})(\w*)", lines[begin]).groups()
    end = next(i for i in range(begin + 1, len(lines)) if lines[i].strip() == mark)
    text = textwrap.dedent("\n".join(lines[begin + 1 : end]) + "\n")
    return Block(document, begin + 1, language, text)


def blocks_of(document: str, language: str | None = None) -> list[Block]:
    """Returns a document's blocks of code, in their order."""
    lines = (SOURCE / document).read_text().splitlines()
    found = []
    i = 0
    in_list = False
    while i < len(lines):
        line = lines[i]
        if re.fullmatch(r"\s*`{3,}\w*", line):
            block = _fenced(document, lines, i)
            found.append(block)
            i += block.text.count("\n") + 2
            continue
        if re.match(r"(-|\*|\d+\.) ", line):
            in_list = True
        elif line and not line.startswith(" "):
            in_list = False
        if line.startswith("    ") and not in_list and i > 0 and lines[i - 1] == "":
            end = next((k for k in range(i, len(lines)) if not lines[k].startswith("    ")),
                       len(lines))  # fmt: skip
            text = textwrap.dedent("\n".join(lines[i:end]) + "\n")
            found.append(Block(document, i + 1, "indented", text))
            i = end
            continue
        i += 1
    return [b for b in found if language is None or b.language == language]


def section_of(document: str, title: str, language: str) -> list[Block]:
    """Returns the blocks of one language between this heading of the second level and the next."""
    lines = (SOURCE / document).read_text().splitlines()
    begin = lines.index(f"## {title}") + 1
    end = next((i for i in range(begin, len(lines)) if lines[i].startswith("## ")), len(lines))
    found = [b for b in blocks_of(document, language) if begin < b.line <= end]
    assert found, f"no {language} in {title} of {document}"
    return found


class Terminal:
    """A folder, an empty home, and what a user's shell has set. Commands run once."""

    def __init__(self, folder: Path, url: str, http_port: int, bin_folder: Path = BIN) -> None:
        self.folder = folder
        programs = folder / "programs"
        programs.mkdir()
        curl = programs / "curl"
        curl.write_text(CURL.format(port=http_port, curl=shutil.which("curl")))
        curl.chmod(0o755)
        (folder / "home").mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "VOXELD_"))}
        self.environment = {
            **kept,
            "HOME": str(folder / "home"),
            "PATH": f"{programs}:{bin_folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(SOURCE / "client/python"),
            "VOXELD_URL": url,
        }
        self.names: dict[str, Any] = {}  # of the document's programs in Python

    @classmethod
    def beside(cls, folder: Path, daemon: Daemon) -> Terminal:
        """One whose daemon has LIMITS. voxelctl waits for a minute where nobody says more; on a
        machine that does much else the user's defaults say more, and the commands stay the same."""
        terminal = cls(folder, daemon.ipc, daemon.http_port)
        if os.getloadavg()[0] > BUSY * (os.cpu_count() or 1):
            defaults = folder / "home/.config/voxeld.json"
            defaults.parent.mkdir()
            defaults.write_text(json.dumps({"timeout_s": LIMITS["max_timeout_ms"] / 1000}))
        return terminal

    def copy(self, name: str, to: str = "") -> Path:
        """Copies a file of the tree to the same place below the folder, or to another one."""
        place = self.folder / (to or name)
        place.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(SOURCE / name, place))

    def run(self, *command: str | Path) -> str:
        """Returns what the command prints."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_LIMIT_S * SLOW,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Python's own environment and folder become the terminal's."""
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.environment)
        try:
            with contextlib.chdir(self.folder):
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def run_block(self, block: Block) -> str:
        """Runs a block of sh or Python; all Python of one document shares its names."""
        if block.language == "sh":
            return self.run("bash", "-euc", block.text)
        assert block.language == "python", block
        printed = io.StringIO()
        program = compile(block.text, str(block), "exec")
        with self.entered(), contextlib.redirect_stdout(printed):
            exec(program, self.names)  # noqa: S102
        return printed.getvalue()
