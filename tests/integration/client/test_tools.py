# SPDX-License-Identifier: Apache-2.0
"""Our own clients against the real daemon: a C program on libvoxeld, and voxelctl."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import BIN, SLOW, SOURCE, Daemon, random_points, running
from networks import write_network
from oracle import Voxels

Scan = tuple[Path, np.ndarray]
SCAN = SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy"


def run(*command: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True,
        timeout=60 * SLOW, check=False,
    )  # fmt: skip
    assert done.returncode == code, (done.stdout, done.stderr)
    for mark in ("AddressSanitizer", "ThreadSanitizer", "runtime error"):
        assert mark not in done.stderr, done.stderr
    return done


@pytest.fixture
def scan(directory: Path) -> Scan:
    points = random_points(5000, seed=21)
    path = directory / "scan.npy"
    np.save(path, points)
    return path, points


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_c_program_gets_the_oracles_voxels(
    daemon: Daemon, scan: Scan, transport: str
) -> None:
    path, points = scan
    url = daemon.ipc if transport == "ipc" else daemon.tcp
    result = json.loads(run(BIN / "foreign_client", url, path, "0.5", "8").stdout)
    expected = Voxels(points, points, 0.5, "minkowski")
    assert result == {
        "n_points": len(points),
        "n_voxels": len(expected.coords),
        "n_equal": 8,
        "last": expected.coords[-1].tolist(),
    }


def test_c_program_streams_without_waiting(directory: Path) -> None:
    """Each method that has an asynchronous form gives by it what it gives otherwise."""
    write_network(directory / "networks", input={
        "mode": "voxelize", "features": ["x", "y", "z", {"field": "z", "scale": 2}],
        "voxel_size": 0.5, "range": [-8, -8, -2, 8, 8, 4], "reduce": "mean",
        "bounded": [32, 32, 12], "overflow": "error",
    })  # fmt: skip
    with running(
        directory, {"networks_dir": str(directory / "networks"), "networks": ["tiny"]}
    ) as daemon:
        run(BIN / "stream_client", daemon.ipc, "tiny")


def test_c_program_without_a_server_fails_at_once(directory: Path, scan: Scan) -> None:
    url = f"ipc://{directory}/nobody.sock"
    done = run(BIN / "foreign_client", url, scan[0], "0.5", "1", code=1)
    assert "UNAVAILABLE" in done.stderr


def test_voxelctl_voxelizes_a_file(daemon: Daemon, scan: Scan, directory: Path) -> None:
    path, points = scan
    expected = Voxels(points, points, 0.5, "minkowski")
    out = directory / "coords.ply"
    done = run(
        BIN / "voxelctl", "voxelize", path, "--size", "0.5", "--url", daemon.tcp,
        "--out", out, "--timeout", 30 * SLOW,
    )  # fmt: skip
    assert f"{len(expected.coords):,}" in done.stdout
    assert "voxels" in done.stdout
    head = out.read_bytes().split(b"end_header\n")[0].decode()
    assert f"element vertex {len(expected.coords)}" in head
    done = run(
        BIN / "voxelctl", "voxelize", path, "--size", "0.5", "--url", daemon.ipc, "--json",
        "--timeout", 30 * SLOW,
    )  # fmt: skip
    assert str(len(expected.coords)) in done.stdout
    json.loads(done.stdout)


@pytest.mark.skipif(not SCAN.exists(), reason="the benchmark scan is not there")
def test_voxelctl_voxelizes_the_real_scan(daemon: Daemon) -> None:
    points = np.load(SCAN)[:, :3]
    expected = Voxels(points, points, 0.1, "minkowski")
    done = run(
        BIN / "voxelctl", "voxelize", SCAN, "--size", "0.1", "--url", daemon.ipc,
        "--timeout", 30 * SLOW,
    )  # fmt: skip
    assert f"{len(expected.coords):,}" in done.stdout


def test_voxelctl_info_and_status(daemon: Daemon) -> None:
    assert "voxelize" in run(BIN / "voxelctl", "info", "--url", daemon.ipc).stdout
    done = run(BIN / "voxelctl", "status", "--json", "--url", daemon.ipc)
    assert json.loads(done.stdout)["state"] == "serving"


def test_voxelctl_says_what_is_wrong(daemon: Daemon, scan: Scan, directory: Path) -> None:
    path, _ = scan
    ctl = BIN / "voxelctl"
    nobody = f"ipc://{directory}/nobody.sock"
    assert "UNAVAILABLE" in run(ctl, "info", "--url", nobody, code=1).stderr
    done = run(ctl, "voxelize", path, "--size", "-1", "--url", daemon.ipc, code=2)
    assert "size" in done.stderr
    done = run(ctl, "voxelize", directory / "no.pcd", "--size", "1", "--url", daemon.ipc, code=1)
    assert "no.pcd" in done.stderr
    done = run(ctl, "voxelize", "x.bin", "--size", "1", "--url", daemon.ipc, code=1)
    assert "format" in done.stderr
    assert run(ctl, "nonsense", code=2).stderr
    assert "voxelize" in run(ctl, "--help").stdout


def test_voxelctl_survives_a_restart_of_the_daemon(directory: Path) -> None:
    for _ in range(2):
        with running(directory) as daemon:
            run(BIN / "voxelctl", "info", "--url", daemon.ipc)


def lonely_voxelctl(directory: Path) -> Path:
    """A copy of the program with no other program beside it."""
    path = directory / "bin" / "voxelctl"
    path.parent.mkdir()
    shutil.copy(BIN / "voxelctl", path)
    return path


@pytest.mark.parametrize("place", ["bin", "libexec/voxeld"])
def test_voxelctl_bench_hands_on_what_it_was_given(directory: Path, place: str) -> None:
    ctl = lonely_voxelctl(directory)
    tool = directory / place / "bench_load"
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$VOXELD_TOKEN" "$@"\nexit 7\n')
    tool.chmod(0o755)
    token = directory / "token"
    token.write_text("secret words\n")
    done = run(
        ctl, "--url", "tcp://[::1]:1", "--token-file", token, "--json", "--ca-file", "a b",
        "--timeout", "2.5", "bench", "--rate", "1,2", "--json", "--", "-x", "", code=7,
    )  # fmt: skip
    assert done.stdout.split("\n") == [
        "secret", "--url", "tcp://[::1]:1", "--ca-file", "a b", "--timeout-ms", "2500",
        "--json", "--rate", "1,2", "--json", "--", "-x", "", "",
    ]  # fmt: skip
    assert run(ctl, "bench", code=7).stdout.split("\n")[1:] == ["--timeout-ms", "5000", ""]


def test_voxelctl_bench_without_its_tool_says_what_to_do(directory: Path) -> None:
    done = run(lonely_voxelctl(directory), "bench", "--rate", "5", code=1)
    assert "not installed" in done.stderr
    assert str(directory / "bin" / "bench_load") in done.stderr
    assert "cmake --install" in done.stderr


def test_programs_that_are_missing_are_named_as_json(directory: Path) -> None:
    ctl = lonely_voxelctl(directory)
    for words in (["bench"], ["net", "check", "x.json"], ["scene", "repair", "x"]):
        done = run(ctl, *words, "--json", code=1)
        error = json.loads(done.stderr)
        assert error["code"] == "FAILED" and "not installed" in error["message"]
        assert error["what"].startswith("voxelctl ") and "beside voxelctl" in error["help"]


def test_voxelctl_bench_with_a_tool_that_does_not_start_says_why(directory: Path) -> None:
    ctl = lonely_voxelctl(directory)
    (ctl.parent / "bench_load").write_text("no program")
    assert "Permission denied" in run(ctl, "bench", code=1).stderr


def test_voxelctl_bench_explains_itself() -> None:
    text = run(BIN / "voxelctl", "bench", "--help").stdout
    for part in ("plot_load.py", "usage: voxelctl bench [OPTIONS]", "--arrivals", "--mix"):
        assert part in text
    done = run(BIN / "voxelctl", "bench", "--rate", "x", code=2)
    assert "Try: voxelctl bench --help" in done.stderr
    version = run(BIN / "voxelctl", "--version").stdout.split()[1]
    assert run(BIN / "voxelctl", "bench", "--version").stdout == f"voxelctl bench {version}\n"
