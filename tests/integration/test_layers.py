# SPDX-License-Identifier: Apache-2.0
"""The include directions of DESIGN.md, and one SPDX line a file."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
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
# Drawers of independent helpers, without one header for all of them.
OPEN_FOLDERS = ("proto/base", "client/c/include")
# Private headers that another folder includes all the same, and folders whose includes make a
# cycle: both lists only get shorter.
STILL_SHARED = (
    "client/voxelctl/map/map_commands.h",
    "gpu/svdag/diff/diff.cu",
    "gpu/svdag/diff/export_cells.cu",
    "gpu/svdag/edit_kernel/change_kernel.cu",
    "gpu/svdag/edit_kernel/copy_kernel.cu",
    "gpu/svdag/edit_kernel/morph_kernel.cu",
    "gpu/svdag/edit_kernel/shapes_kernel.cu",
    "gpu/svdag/edit_kernel/undo_kernel.cu",
    "gpu/svdag/query/nearest.cu",
    "gpu/svdag/query/ray.cu",
    "gpu/svdag/query/region.cu",
    "gpu/svdag/query/values.cu",
    "server/model/json_value.h",
    "server/observe/metrics_internal.h",
    "server/registry/maps/map_catalogue.h",
    "server/registry/scenes/scenes_recover.h",
)
STILL_IN_A_CYCLE = {
    "server/registry/maps",
    "server/registry/networks",
    "server/registry/scenes",
    "server/request",
    "server/schedule",
}
MAX_FILES = 30  # of code, in one folder of the product
MAX_LINES = 1000  # of one file, which is one idea
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


def product_includes() -> Iterator[tuple[str, str]]:
    """Each file of the product, and each header of another folder that it includes."""
    for path in our_files():
        name = path.relative_to(SOURCE).as_posix()
        if path.suffix not in CODE or not name.startswith(("proto/", "gpu/", "server/", "client/")):
            continue
        for included in INCLUDE.findall(path.read_text()):
            if "/" in included and not included.endswith(".pb-c.h"):
                folder = included.rsplit("/", 1)[0]
                if folder != name.rsplit("/", 1)[0]:
                    yield name, included


def is_public(header: str) -> bool:
    """A module's header is named after its folder. Beside it may stand what other folders' code
    compiles in: arithmetic of both backends (_math), device code (_cuda), the CPU backend's."""
    folder, base = header.rsplit("/", 1)
    module = folder.rsplit("/", 1)[-1]
    return folder in OPEN_FOLDERS or base in (
        f"{module}.h", f"{module}_math.h", f"{module}_cuda.h", f"{module}_cpu.h"
    )  # fmt: skip


def test_other_folders_include_a_modules_public_header_alone() -> None:
    wrong = sorted(
        f"{name} includes {included}"
        for name, included in product_includes()
        if not is_public(included) and included not in STILL_SHARED
    )
    assert not wrong, "\n".join(wrong)
    named = {included for _, included in product_includes()}
    stale = [header for header in STILL_SHARED if header not in named]
    assert not stale, f"nobody else includes these any more; take them out: {stale}"


def test_no_two_headers_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in our_files():
        if path.suffix == ".h" and "include" not in path.parts[:-2]:
            places.setdefault(path.name, []).append(path.relative_to(SOURCE).as_posix())
    wrong = [f"{name}: {where}" for name, where in sorted(places.items()) if len(where) > 1]
    assert not wrong, "\n".join(wrong)


def test_folders_stay_small_enough_to_overlook() -> None:
    n_files = Counter(
        path.parent.relative_to(SOURCE).as_posix()
        for path in our_files()
        if path.suffix in CODE and path.relative_to(SOURCE).parts[0] != "tests"
    )
    wrong = [f"{folder} has {n} files" for folder, n in n_files.items() if n > MAX_FILES]
    assert not wrong, "\n".join(wrong)


def test_no_cycle_of_includes_between_folders() -> None:
    below: dict[str, set[str]] = {}
    for name, included in product_includes():
        below.setdefault(name.rsplit("/", 1)[0], set()).add(included.rsplit("/", 1)[0])

    def reached_from(start: str) -> set[str]:
        found: set[str] = set()
        new = [start]
        while new:
            for folder in below.get(new.pop(), set()) - found:
                found.add(folder)
                new.append(folder)
        return found

    in_cycle = {folder for folder in below if folder in reached_from(folder)}
    assert in_cycle == STILL_IN_A_CYCLE, (
        f"now in a cycle: {sorted(in_cycle - STILL_IN_A_CYCLE)}; "
        f"no longer (take them out): {sorted(STILL_IN_A_CYCLE - in_cycle)}"
    )


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
            if n_lines > MAX_LINES:
                wrong.append(f"{path.relative_to(SOURCE)} has {n_lines} lines")
    assert not wrong, "\n".join(wrong)
