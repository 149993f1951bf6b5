# SPDX-License-Identifier: Apache-2.0
"""The layers of DESIGN.md: which folder includes, calls and imports which; sizes; SPDX lines."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import BIN, SOURCE

# folder -> what it may include beside itself; longest prefix wins
ALLOWED = {
    "proto": (),
    "gpu": ("proto/base/",),
    "server": ("proto/", "gpu/", "client/files/"),
    "client": ("proto/",),
    "tests": ("proto/", "gpu/", "server/", "client/"),
}
OURS = ("proto/", "gpu/", "server/", "client/", "tests/", "voxeld/")
# These are installed side by side, so they name each other without a folder.
PUBLIC = {
    "client/c/include/voxeld.h": (
        "voxeld_backup.h", "voxeld_field.h", "voxeld_map.h", "voxeld_mesh.h", "voxeld_net.h",
        "voxeld_odometry.h", "voxeld_posegraph.h", "voxeld_render.h",
        "voxeld_scene.h", "voxeld_slac.h", "voxeld_token.h", "voxeld_volume.h",
        "voxeld_watch.h", "voxeld_why.h",
    ),  # fmt: skip
    "client/c/include/voxeld_backup.h": ("voxeld.h",),
    "client/c/include/voxeld_field.h": ("voxeld.h",),
    "client/c/include/voxeld_grid.h": ("voxeld_version.h",),
    "client/c/include/voxeld_history.h": ("voxeld_version.h",),
    "client/c/include/voxeld_upkeep.h": ("voxeld_version.h",),
    "client/c/include/voxeld_map.h": ("voxeld.h",),
    "client/c/include/voxeld_net.h": ("voxeld.h",),
    "client/c/include/voxeld_mesh.h": ("voxeld.h",),
    "client/c/include/voxeld_posegraph.h": ("voxeld.h",),
    "client/c/include/voxeld_odometry.h": ("voxeld.h",),
    "client/c/include/voxeld_render.h": ("voxeld.h",),
    "client/c/include/voxeld_slac.h": ("voxeld.h",),
    "client/c/include/voxeld_token.h": ("voxeld.h",),
    "client/c/include/voxeld_refine.h": ("voxeld_volume.h",),
    "client/c/include/voxeld_volume.h": ("voxeld.h",),
    "client/c/include/voxeld_volume_picture.h": ("voxeld_volume.h",),
    "client/c/include/voxeld_volume_scene.h": ("voxeld_volume.h",),
    "client/c/include/voxeld_volume_stream.h": ("voxeld_volume.h",),
    "client/c/include/voxeld_watch.h": ("voxeld.h",),
    "client/c/include/voxeld_why.h": ("voxeld.h",),
    "client/c/include/voxeld_scene.h": ("voxeld.h", "voxeld_version.h"),
    "client/c/include/voxeld_version.h": ("voxeld_scene.h",),
}
# These folders hold independent helpers, without one header for all of them.
OPEN_FOLDERS = ("proto/base", "client/c/include", "client/voxelctl/generated")
# Private headers that another folder includes all the same, and folders whose includes make a
# cycle. Both lists only get shorter.
STILL_SHARED: tuple[str, ...] = ()
STILL_IN_A_CYCLE: set[str] = set()
# A source file and the one that it calls, where the call makes a cycle between folders and the
# file is not among those above. This list only gets shorter, too. Only CUDA builds have these
# objects.
STILL_CALLED_BACK: set[tuple[str, str]] = set()
MAX_FILES = 25  # of code, in one folder
STILL_TOO_LARGE: set[str] = set()  # only gets shorter
SCHEMAS_OF_OTHERS = "server/transport/foxglove/schema/"  # MIT and BSD
MAX_LINES = 1000  # of one file, which is one idea
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CODE = {".c", ".h", ".cu", ".cuh"}
WITH_SPDX = CODE | {".py", ".sh", ".cmake", ".proto", ".yml", ".yaml", ".toml"}


def our_files() -> list[Path]:
    """Lists tracked files, and new ones that are not ignored; all files without git."""
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
    """Yields each file of the product, and each header of another folder that it includes."""
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
    """A module's header is named after its folder, with its parent's name before it where two
    modules share a name. Beside it may stand what other folders' code compiles in: arithmetic of
    both backends (_math), device code (_cuda), the CPU backend's."""
    folder, base = header.rsplit("/", 1)
    parent, module = folder.split("/")[-2:]
    return folder in OPEN_FOLDERS or base in (
        f"{module}.h", f"{module}_math.h", f"{module}_cuda.h", f"{module}_cpu.h",
        f"{parent}_{module}.h",
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


def test_no_source_file_is_included() -> None:
    """What several files compile stands in a header, of which each instantiates its own form."""
    wrong = [
        f"{path.relative_to(SOURCE)} includes {included}"
        for path in our_files()
        if path.suffix in CODE
        for included in INCLUDE.findall(path.read_text())
        if included.endswith((".c", ".cu"))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_two_headers_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in our_files():
        if path.suffix == ".h" and "include" not in path.parts[:-2]:
            places.setdefault(path.name, []).append(path.relative_to(SOURCE).as_posix())
    wrong = [f"{name}: {where}" for name, where in sorted(places.items()) if len(where) > 1]
    assert not wrong, "\n".join(wrong)


def test_folders_stay_small_enough_to_overlook() -> None:
    """What is generated from the schema has as many files as nouns, and nobody reads it."""
    n_files = Counter(
        path.parent.relative_to(SOURCE).as_posix()
        for path in our_files()
        if path.suffix in CODE | {".cpp", ".py"}
        and path.parent.name != "generated"
        and not path.stem.endswith("_pb2")
    )
    large = {folder for folder, n in n_files.items() if n > MAX_FILES}
    assert large == STILL_TOO_LARGE, (
        f"more than {MAX_FILES} files: {sorted(large - STILL_TOO_LARGE)}; "
        f"small enough (take them out): {sorted(STILL_TOO_LARGE - large)}"
    )


def in_a_cycle(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns the edges of a directed graph that lie on a cycle."""
    below: dict[str, set[str]] = {}
    for above, node in edges:
        below.setdefault(above, set()).add(node)

    def reached_from(start: str) -> set[str]:
        found: set[str] = set()
        new = [start]
        while new:
            for node in below.get(new.pop(), set()) - found:
                found.add(node)
                new.append(node)
        return found

    reached = {node: reached_from(node) for node in below}
    return {(above, node) for above, node in edges if above in reached.get(node, set())}


def folder_of(name: str) -> str:
    return name.rsplit("/", 1)[0]


def test_no_cycle_of_includes_between_folders() -> None:
    edges = {(folder_of(name), folder_of(included)) for name, included in product_includes()}
    in_cycle = {folder for edge in in_a_cycle(edges) for folder in edge}
    assert in_cycle == STILL_IN_A_CYCLE, (
        f"in a cycle: {sorted(in_cycle - STILL_IN_A_CYCLE)}; "
        f"in none (take them out): {sorted(STILL_IN_A_CYCLE - in_cycle)}"
    )


def product_objects() -> dict[str, str]:
    """Finds the source of each object file of the product that this build tree has. CMake puts the
    object of FOLDER/x.c into FOLDER/CMakeFiles/TARGET.dir, a path from the folder of the target.
    """
    build = BIN.parent
    sources = {}
    for path in build.rglob("CMakeFiles/*.dir/**/*.o"):
        folder, _, inner = path.relative_to(build).as_posix().partition("CMakeFiles/")
        source = folder + inner.split(".dir/", 1)[1].removesuffix(".o")
        is_ours = source.startswith(("proto/", "gpu/", "server/", "client/"))
        if is_ours and (SOURCE / source).is_file():  # else it is left over, or generated
            sources[str(path)] = source
    return sources


def product_calls() -> set[tuple[str, str, str]]:
    """Returns each source file, a symbol that its object takes from elsewhere, and the source file
    that defines it. nm sees through headers: it finds what a call of a function or a use of a
    table needs, whoever declared it."""
    sources = product_objects()
    nm = shutil.which("nm")
    if not sources or nm is None:
        pytest.skip("there are no objects beside the programs, or there is no nm")
    listing = subprocess.run(
        [nm, "-A", "-P", "-g", *sources], capture_output=True, text=True, check=True
    ).stdout
    homes: dict[str, set[str]] = {}
    needed: list[tuple[str, str]] = []
    for line in listing.splitlines():
        path, _, symbol = line.partition(": ")
        name, kind = symbol.split()[:2]
        if kind == "U":
            needed.append((sources[path], name))
        elif kind in "TDBRC":  # weak ones are templates and inline functions, not calls
            homes.setdefault(name, set()).add(sources[path])
    return {
        (source, name, home)
        for source, name in needed
        for home in homes.get(name, ())
        if home != source
    }


def test_no_cycle_of_calls_between_folders() -> None:
    """Includes and calls count together, because a prototype in a lower folder's header hides a
    call upwards."""
    calls = product_calls()
    edges = {(folder_of(name), folder_of(included)) for name, included in product_includes()}
    edges |= {
        (folder_of(caller), folder_of(home))
        for caller, _, home in calls
        if (caller, home) not in STILL_CALLED_BACK
    }
    cyclic = in_a_cycle({(above, below) for above, below in edges if above != below})
    wrong = sorted(
        f"{caller} calls {symbol} of {home}"
        for caller, symbol, home in calls
        if (folder_of(caller), folder_of(home)) in cyclic
        and not {folder_of(caller), folder_of(home)} <= STILL_IN_A_CYCLE
    )
    assert not wrong, "\n".join(wrong)
    built = set(product_objects().values())
    called = {(caller, home) for caller, _, home in calls}
    stale = {pair for pair in STILL_CALLED_BACK if built.issuperset(pair) and pair not in called}
    assert not stale, f"nobody calls so any more; take them out: {stale}"


def test_no_cycle_of_imports_in_the_python_package() -> None:
    """Imports for type checkers count: they are what a reader follows, too. What is generated
    imports what nouns share, and is a leaf here."""
    package = SOURCE / "client/python/voxeld"
    modules = {
        path.relative_to(package).with_suffix("").as_posix().removesuffix("/__init__"): path
        for path in package.rglob("*.py")
        if path.parent.name not in ("generated", "v1")
    }
    edges = set()
    for name, path in modules.items():
        folder = path.relative_to(package).parent.parts
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level > 0:
                source = [*folder[: len(folder) + 1 - node.level]]
                source += node.module.split(".") if node.module else []
                for alias in node.names:
                    inner = "/".join([*source, alias.name])
                    edges.add((name, inner if inner in modules else "/".join(source)))
    edges = {(name, imported) for name, imported in edges if imported in modules}
    assert len(edges) > 2 * len(modules), "imports of the package are not recognized"
    wrong = sorted(in_a_cycle(edges))
    assert not wrong, wrong


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
            name = path.relative_to(SOURCE).as_posix()
            licence = "" if name.startswith(SCHEMAS_OF_OTHERS) else " Apache-2.0"
            if not any(f"SPDX-License-Identifier:{licence}" in line for line in head):
                wrong.append(name)
    assert not wrong, "\n".join(wrong)


def test_files_stay_short_enough_to_read() -> None:
    wrong = []
    for path in our_files():
        name = path.relative_to(SOURCE).as_posix()
        is_read = "/generated/" not in name  # what a generator writes is read in its source
        if path.suffix in CODE and name.split("/", 1)[0] in ALLOWED and is_read:
            n_lines = len(path.read_text().splitlines())
            if n_lines > MAX_LINES:
                wrong.append(f"{path.relative_to(SOURCE)} has {n_lines} lines")
    assert not wrong, "\n".join(wrong)
