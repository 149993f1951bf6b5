# SPDX-License-Identifier: Apache-2.0
"""The include directions of DESIGN.md, and one SPDX line a file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from harness import SOURCE

# folder -> what it may include beside itself; longest prefix wins
ALLOWED = {
    "proto": (),
    "gpu": ("proto/base/",),
    "server": ("proto/", "gpu/", "client/files/"),
    "client": ("proto/",),
    "tests": ("proto/", "gpu/", "server/", "client/"),
}
OURS = ("proto/", "gpu/", "server/", "client/", "tests/", "voxeld/")
# Installed side by side, so they name each other without a folder.
PUBLIC = {
    "client/c/include/voxeld.h": ("voxeld_map.h", "voxeld_net.h", "voxeld_scene.h"),
    "client/c/include/voxeld_map.h": ("voxeld.h",),
    "client/c/include/voxeld_net.h": ("voxeld.h",),
    "client/c/include/voxeld_scene.h": ("voxeld.h", "voxeld_version.h"),
    "client/c/include/voxeld_version.h": ("voxeld_scene.h",),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CODE = {".c", ".h", ".cu", ".cuh"}
WITH_SPDX = CODE | {".py", ".sh", ".cmake", ".proto", ".yml", ".yaml", ".toml"}


def our_files() -> list[Path]:
    """Tracked files, and new ones that are not ignored; all files without git."""
    found = subprocess.run(
        ["git", "-C", SOURCE, "ls-files", "-z", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode == 0 and found.stdout:
        names = [n for n in found.stdout.split("\0") if n]
        return [SOURCE / n for n in names if (SOURCE / n).is_file()]
    return [
        p
        for folder in (*ALLOWED, "deploy", "configs")
        for p in (SOURCE / folder).rglob("*")
        if p.is_file()
    ]


def test_includes_follow_the_layers() -> None:
    wrong = []
    for path in our_files():
        name = path.relative_to(SOURCE).as_posix()
        folder = name.split("/", 1)[0]
        if path.suffix not in CODE or folder not in ALLOWED:
            continue
        for included in INCLUDE.findall(path.read_text()):
            is_generated = included.endswith(".pb-c.h")
            if is_generated and folder != "gpu":
                continue
            if included in PUBLIC.get(name, ()):
                continue
            if not included.startswith((f"{folder}/", *ALLOWED[folder])):
                wrong.append(f"{name} includes {included}")
            elif not included.startswith(OURS) or not (SOURCE / included).is_file():
                wrong.append(f"{name} includes {included}, which is no path from the root")
    assert not wrong, "\n".join(wrong)


def test_nothing_of_the_engine_includes_what_the_papers_do() -> None:
    """gpu/paper includes the other modules of the engine, never the reverse."""
    wrong = [
        f"{name} includes {included}"
        for path in our_files()
        if (name := path.relative_to(SOURCE).as_posix()).startswith("gpu/")
        and not name.startswith("gpu/paper/")
        and path.suffix in CODE
        for included in INCLUDE.findall(path.read_text())
        if included.startswith("gpu/paper/")
    ]
    assert not wrong, "\n".join(wrong)


def test_every_file_begins_with_its_spdx_line() -> None:
    wrong = []
    for path in our_files():
        is_cmake = path.name == "CMakeLists.txt"
        if path.suffix in WITH_SPDX or is_cmake:
            head = path.read_text().splitlines()[:2]
            if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
                wrong.append(path.relative_to(SOURCE).as_posix())
    assert not wrong, "\n".join(wrong)


def test_files_stay_short_enough_to_read() -> None:
    wrong = []
    for path in our_files():
        folder = path.relative_to(SOURCE).as_posix().split("/", 1)[0]
        if path.suffix in CODE and folder in ALLOWED:
            n_lines = len(path.read_text().splitlines())
            if n_lines > 700:
                wrong.append(f"{path.relative_to(SOURCE)} has {n_lines} lines")
    assert not wrong, "\n".join(wrong)
