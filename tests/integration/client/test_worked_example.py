# SPDX-License-Identifier: Apache-2.0
"""The worked example of .github/CONTRIBUTING.md, a new read-only method, is a patch that is
applied to a copy of the tree, generated, compiled, and in the long tier called over HTTP and from
Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import harness
import pytest
from harness import SANITIZE, SOURCE, http_call, running

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="it is compiled without sanitizers")
PATCH = SOURCE / "tests" / "data" / "worked_example" / "read_only_method.patch"
MOST_LINES = 150
COPIED = ("client", "configs", "deploy", "gpu", "proto", "server", "tests")
BUILD_OPTIONS = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DVOXELD_CUDA=OFF",
                 "-DVOXELD_PAPER=OFF", "-DVOXELD_TESTS=OFF")  # fmt: skip


def run(*command: object, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, **env},
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


def added_lines() -> dict[str, int]:
    """What the patch adds, by file; it takes nothing away."""
    found: dict[str, int] = {}
    name = ""
    for line in PATCH.read_text().splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
            found[name] = 0
        elif line.startswith("+"):
            found[name] += 1
        assert not line.startswith("-") or line.startswith("--- "), line
    return found


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with the patch, generated and configured."""
    root = tmp_path_factory.mktemp("e") / "tree"
    root.mkdir()
    for name in COPIED:
        unwanted = shutil.ignore_patterns("__pycache__", ".*", "build")
        shutil.copytree(SOURCE / name, root / name, ignore=unwanted, symlinks=True)
    for name in ("CMakeLists.txt", "LICENSE", ".clang-format"):
        shutil.copy(SOURCE / name, root / name)
    run("git", "apply", "-C1", PATCH, cwd=root, GIT_CEILING_DIRECTORIES=str(root.parent))
    run(sys.executable, "proto/gen/generate.py", cwd=root)
    run(sys.executable, "client/python/generate.py", cwd=root)
    run("cmake", "-S", ".", "-B", "build", "-G", "Ninja", *BUILD_OPTIONS, cwd=root)
    return root


def test_the_guide_names_what_the_patch_adds_and_that_is_little() -> None:
    added = added_lines()
    assert sum(added.values()) <= MOST_LINES
    guide = (SOURCE / ".github" / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `([\w/.]+)` \| (\d+) \|", guide, re.MULTILINE)
    assert {name: int(n) for name, n in rows} == added
    assert f"{sum(added.values())} lines" in guide


def test_the_example_is_generated_and_compiles(patched: Path) -> None:
    openapi = (patched / "proto/generated/openapi.json").read_text()
    assert '"/v1/scene_count_states":{"post"' in openapi
    header = (patched / "client/c/include/voxeld_upkeep.h").read_text()
    assert "voxeld_scene_count_states(" in header
    sources = ("server/method_table.c", "server/service/scene/scene_count_states.c",
               "client/c/generated/upkeep_client.c")  # fmt: skip
    run("ninja", "-C", "build", *(f"{patched / source}^" for source in sources), cwd=patched)


PROGRAM = """
import numpy as np, sys, voxeld
with voxeld.connect(sys.argv[1]) as client:
    yard = client.scene_create("yard", 0.1)
    yard.edit(voxeld.Box((0, 0, 0), (1, 1, 1)))
    found = client.scene_count_states("yard", np.array([[0.55, 0.55, 0.55], [3.05, 0.5, 0.5]]))
    assert (found.n_occupied, found.n_free, found.n_unknown) == (1, 0, 1), found
    try:
        client.scene_count_states("nowhere", np.zeros((1, 3)))
    except voxeld.NotFound as error:
        print(error.field)
"""


@pytest.mark.skipif("VOXELD_TEST_LONG" not in os.environ, reason="it belongs to the long tier")
def test_the_example_answers_over_http_and_from_python(
    patched: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ninja", "-C", "build", "voxeld", cwd=patched)
    monkeypatch.setattr(harness, "BIN", patched / "build" / "bin")
    with running(directory) as daemon:
        shown = run(sys.executable, "-c", PROGRAM, daemon.ipc, cwd=patched,
                    PYTHONPATH=str(patched / "client" / "python"))  # fmt: skip
        assert shown == "name\n"
        points = {"dtype": "FLOAT64", "shape": [2, 3], "values": [0.5, 0.5, 0.5, 9, 9, 9]}
        reply = http_call(daemon, "POST", "/v1/scene_count_states",
                          {"name": "yard", "points": points})  # fmt: skip
        assert reply.status == 200
        counts = {"version": "2", "nOccupied": "1", "nUnknown": "1"}
        assert counts.items() <= reply.json().items()
        wrong = {"name": "yard", "points": {**points, "shape": [3, 2]}}
        reply = http_call(daemon, "POST", "/v1/scene_count_states", wrong)
        assert reply.status == 400 and reply.json()["field"] == "points"
