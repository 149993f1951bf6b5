# SPDX-License-Identifier: Apache-2.0
"""A new user's first hour: README.md's own commands, from a fresh clone and in an empty home, on
two cores, and what README.md has them build and install. Minutes, so it belongs to the long tier.
How long the user waits is recorded; tests/bench/results/deployment.md says what it was."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from documents import Terminal, blocks_of, section_of
from harness import SOURCE, record
from PIL import Image
from test_packages import free_port, get

SHOWN = "125,565 voxels from 198,130 points"
N_CORES = 2


def lines_of(section: str) -> list[str]:
    """Returns the commands of a section's only block, a line each, without their comments."""
    (block,) = section_of("README.md", section, "sh")
    return [line.split("  #")[0].strip() for line in block.text.splitlines()]


@pytest.fixture(scope="module", autouse=True)
def two_cores() -> Iterator[None]:
    """Whatever a test starts inherits this."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:N_CORES])
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("c") / "voxeld"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", SOURCE.as_uri(), folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An empty home, and a sudo that installs below a folder of the test."""
    directory = tmp_path_factory.mktemp("h")
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


def processor_s(pid: int) -> float:
    """Returns what a process, its children and those that it has waited for have computed; 0 of
    one that has ended since it was listed."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_s(int(child)) for child in children)


def record_hour(what: str, started: float, computed_s: float) -> None:
    """The processor's time says what a machine that does nothing else would take."""
    record(f"from a fresh clone to {what}", time.monotonic() - started, "s")
    record(f"from a fresh clone to {what}, of two cores", computed_s / N_CORES, "s of each")


@dataclass
class FirstTerminal:
    """The one in which quickstart.sh runs until Ctrl-C: what it has printed, and when."""

    process: subprocess.Popen[str]
    started: float
    printed: str
    second: Terminal


@pytest.fixture(scope="module")
def first(clone: Path, environment: dict[str, str]) -> Iterator[FirstTerminal]:
    command, _ = lines_of("Two commands")
    port = free_port()
    started = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-euc", f"exec {command}"], cwd=clone, stdout=subprocess.PIPE, text=True,
        env={**environment, "VOXELD_HTTP": f"127.0.0.1:{port}"},
    )  # fmt: skip
    assert process.stdout is not None
    printed = ""
    try:
        for line in process.stdout:
            printed += line
            if SHOWN in line:
                record_hour("the first voxels", started, processor_s(process.pid))
            if line.startswith("Ctrl-C"):
                break
        url = re.search(r"VOXELD_URL=(\S+)", printed)
        assert url is not None and process.poll() is None, printed[-3000:]
        second = Terminal(clone, url[1], port, clone / "build/bin")
        del second.environment["PYTHONPATH"]
        yield FirstTerminal(process, started, printed, second)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def test_first_command_shows_voxels(first: FirstTerminal) -> None:
    assert f"\n{SHOWN}:" in first.printed


def test_option_token_closes_http_and_prints_a_login_url(
    first: FirstTerminal, clone: Path, environment: dict[str, str]
) -> None:
    address = f"127.0.0.1:{free_port()}"
    run = subprocess.run(
        ["deploy/quickstart.sh", "--once", "--token"], cwd=clone, check=True,
        env={**environment, "VOXELD_HTTP": address}, capture_output=True, text=True,
    )  # fmt: skip
    assert re.search(rf"^Log in: http://{address}/#token=vxd1\.\S+", run.stdout, re.MULTILINE)
    assert "may do everything over HTTP" not in run.stdout + run.stderr


def test_commands_of_the_readme_make_a_coloured_semantic_map(
    first: FirstTerminal, clone: Path
) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for block in [*section_of("README.md", "Use it", "sh"),
                  *section_of("README.md", "A semantic map", "sh")]:  # fmt: skip
        first.second.run_block(block)
    colours = Image.open(clone / "streets.png").convert("RGB").getcolors(1 << 24)
    assert len(colours) > 50
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    commands_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    record_hour("a coloured semantic map, by all commands of README.md", first.started,
                commands_s + processor_s(first.process.pid))  # fmt: skip


def test_python_package_installs_and_runs(first: FirstTerminal, clone: Path) -> None:
    """As its README says, in a virtual environment, as Debian's Python wants it."""
    terminal = first.second
    venv = clone / "home/venv"
    terminal.run(sys.executable, "-m", "venv", venv)
    terminal.environment["PATH"] = f"{venv}/bin:{terminal.environment['PATH']}"
    install, *_ = blocks_of("client/python/README.md", "sh")
    terminal.run_block(install)
    (program,) = section_of("README.md", "Use it", "python")
    printed = terminal.run("python", "-c", program.text)
    assert "voxels from 198130 points" in printed and "points in it" in printed


def test_daemon_is_built_installed_and_started(clone: Path, environment: dict[str, str]) -> None:
    *lines, last = lines_of("Run it")
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
