# SPDX-License-Identifier: Apache-2.0
"""The README's examples do what it says, against the real daemon."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from depth_scene import CAMERA, shoot
from harness import BIN, SLOW, SOURCE, Daemon
from PIL import Image

SCAN = SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy"
# MinkowskiEngine's rule without a range; 125,562 is spconv's rule with one.
EXPECTED = "125565 voxels from 198130 points"


def run(daemon: Daemon, *command: Path | str) -> str:
    # The example in Python gives a call 5 seconds, which is little for a sanitizer's daemon.
    for _ in range(1 if SLOW <= 1 else 5):
        done = subprocess.run(
            [str(c) for c in command],
            capture_output=True,
            text=True,
            timeout=60 * SLOW,
            check=False,
            env={
                **os.environ,
                "VOXELD_URL": daemon.ipc,
                "PYTHONPATH": os.environ["VOXELD_PYTHON_SCHEMA"],
            },
        )
        if "DEADLINE" not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_c_example_prints_the_voxels(daemon: Daemon) -> None:
    assert run(daemon, BIN / "example_voxelize", SCAN).startswith(EXPECTED)


def frames_of(folder: Path) -> Path:
    """Frames of 7-Scenes where they are at hand, else a rendered scene in the same layout."""
    real = Path(os.environ.get("VOXELD_DATA", SOURCE.parent / "shared" / "data")) / "rgbd/7scenes"
    if (real / "frame-000000.depth.png").exists():
        return real
    for i in range(4):
        shot = shoot(i)
        (folder / f"frame-{i:06}.depth.png").write_bytes(shot.png)
        np.savetxt(folder / f"frame-{i:06}.pose.txt", shot.matrix)
    matrix = [[CAMERA.fx, 0, CAMERA.cx], [0, CAMERA.fy, CAMERA.cy], [0, 0, 1]]
    np.savetxt(folder / "camera-intrinsics.txt", matrix)
    return folder


def test_notebook_makes_a_picture_of_a_mesh(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cells run in order, as a notebook runs them."""
    notebook = json.loads((SOURCE / "client/examples/seven_scenes.ipynb").read_text())
    monkeypatch.setenv("VOXELD_URL", daemon.ipc)
    monkeypatch.setenv("FRAMES", str(frames_of(tmp_path)))
    monkeypatch.setenv("VOXEL_SIZE_M", "0.02")
    monkeypatch.setenv("PICTURE", str(tmp_path / "mesh.png"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        assert not cell.get("outputs"), "a checked-in notebook has no outputs"
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "seven_scenes.ipynb", "exec"), names)  # noqa: S102
    picture = np.asarray(Image.open(tmp_path / "mesh.png"))
    # Most of the picture is surface, lit from the camera.
    assert (picture.max(-1) > 60).mean() > 0.4 and picture.max() > 200
    assert names["mesh"].n_triangles > 3000


def test_python_example_prints_the_voxels(daemon: Daemon) -> None:
    script = SOURCE / "client" / "examples" / "voxelize.py"
    assert run(daemon, sys.executable, script, SCAN).startswith(EXPECTED)


@pytest.mark.skipif(
    shutil.which("c++") is None or os.environ.get("VOXELD_SANITIZE", "") != "",
    reason="there is no C++ compiler, or the library needs a sanitizer's runtime",
)
def test_cxx_example_counts_keys(daemon: Daemon, tmp_path: Path) -> None:
    program = tmp_path / "maps"
    libraries = BIN.parent / "lib"
    subprocess.run(
        ["c++", "-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror",
         f"-I{SOURCE / 'client' / 'c' / 'include'}", SOURCE / "client/examples/maps.cpp",
         f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lvoxeld", "-o", program],
        check=True,
    )  # fmt: skip
    printed = run(daemon, program, "cxx")  # a repeated run finds the keys there
    assert printed.startswith("3 keys, ") and printed.endswith("; cxx has 2 entries\n")
