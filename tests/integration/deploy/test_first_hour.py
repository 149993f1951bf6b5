# SPDX-License-Identifier: Apache-2.0
"""What README.md has a new user build and install, from a fresh clone and in an empty home: the
commands that the test of README.md leaves out. Minutes, so it belongs to the long tier."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import SOURCE
from test_packages import free_port, get

README = (SOURCE / "README.md").read_text()
SHOWN = "125,565 voxels from 198,130 points"


def block(begin: str) -> list[str]:
    """Returns the lines of the block of README.md that begins so, without their comments."""
    found = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (text,) = (b for b in found if b.startswith(begin))
    return [line.split("  #")[0].strip() for line in text.splitlines()]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("c") / "voxeld"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", SOURCE.as_uri(), folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def environment(directory: Path) -> dict[str, str]:
    """An empty home, and a sudo that installs below a folder of the test."""
    (directory / "home").mkdir()
    (directory / "run").mkdir()
    sudo = directory / "programs/sudo"
    sudo.parent.mkdir()
    sudo.write_text(f'#!/bin/sh\nDESTDIR="{directory}/installed" exec "$@"\n')
    sudo.chmod(0o755)
    return {
        "HOME": str(directory / "home"), "XDG_RUNTIME_DIR": str(directory / "run"),
        "PATH": f"{sudo.parent}:{directory}/installed/usr/local/bin:{os.environ['PATH']}",
    }  # fmt: skip


def test_first_command_shows_voxels(clone: Path, environment: dict[str, str]) -> None:
    first, _ = block("deploy/quickstart.sh ")
    started = time.monotonic()
    done = subprocess.run(
        ["bash", "-euc", f"{first} --once"], cwd=clone, capture_output=True, text=True,
        env={**environment, "VOXELD_HTTP": f"127.0.0.1:{free_port()}"}, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert SHOWN in done.stdout
    print(f"from a fresh clone to the first voxels: {time.monotonic() - started:.0f} s")


def test_daemon_is_built_installed_and_started(clone: Path, environment: dict[str, str]) -> None:
    *lines, last = block("cmake -S . -B build ")
    for line in lines:
        done = subprocess.run(
            ["bash", "-euc", line], cwd=clone, env=environment, capture_output=True, text=True,
            timeout=3000, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    daemon = subprocess.Popen(["bash", "-euc", f"exec {last}"], cwd=clone, env=environment)
    try:
        for _ in range(600):
            try:
                assert get(8420, "/v1/health/ready")[0] == 200
                break
            except OSError:
                assert daemon.poll() is None
                time.sleep(0.1)
        daemon.send_signal(signal.SIGINT)
        assert daemon.wait(60) == 0
    finally:
        daemon.kill()
        daemon.wait()
