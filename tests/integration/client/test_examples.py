# SPDX-License-Identifier: Apache-2.0
"""The README's examples do what it says, against the real daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import BIN, SLOW, SOURCE, Daemon

SCAN = SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy"
# MinkowskiEngine's rule without a range; 125,562 is spconv's rule with one.
EXPECTED = "125565 voxels from 198130 points"


def run(daemon: Daemon, *command: Path | str) -> str:
    for _ in range(5):
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
        # Examples give a call a second, which a busy machine may not have.
        if "DEADLINE" not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_c_example_prints_the_voxels(daemon: Daemon) -> None:
    assert run(daemon, BIN / "example_voxelize", SCAN).startswith(EXPECTED)


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
