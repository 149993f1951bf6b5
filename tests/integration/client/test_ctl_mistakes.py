# SPDX-License-Identifier: Apache-2.0
"""What a new user gets wrong at voxelctl: each message says what was wrong, what there is, and what
would be right."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, running

SCAN = SOURCE / "tests/data/spconv_benchmark_pc.npy"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Path]]:
    """A daemon with a few things, and a folder with a few files."""
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "scan.npy", np.load(SCAN)[::100, :3])
    (folder / "scan.xyz").write_text("1 2 3\n")
    (folder / "text.pcd").write_text("hello\n")
    (folder / "empty").mkdir()
    (folder / "poses.txt").write_text("1 2 3\n")
    (folder / "K.txt").write_text("500 0 320\n")
    (folder / "token").write_text("wrong\n")
    with (
        running(tmp_path_factory.mktemp("d")) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        client.scene_create("yard", 0.2)
        client.map_create("drive", {"count": np.uint64})
        client.volume_create("kitchen", 0.01)
        client.odometry_create("car")
        client.posegraph_create("loop")
        client.voxelize(np.load(folder / "scan.npy"), 0.5, merge="merged")
        yield daemon, folder


def said(there: tuple[Daemon, Path], line: str, url: str | None = None) -> tuple[str, int]:
    daemon, folder = there
    done = subprocess.run(
        [BIN / "voxelctl", *line.split()], capture_output=True, text=True, check=False,
        timeout=120 * SLOW, cwd=folder, stdin=subprocess.DEVNULL,
        env={**os.environ, "VOXELD_URL": url or daemon.ipc, "HOME": str(folder)},
    )  # fmt: skip
    return done.stderr, done.returncode


@pytest.mark.parametrize(
    ("line", "says"),
    [
        # Values
        ("voxelize scan.npy", "no --size: metres > 0"),
        ("voxelize scan.npy --size 10cm", "--size 10cm: metres > 0, one number or three x,y,z"),
        ("voxelize scan.npy --size -0.1", "--size -0.1: metres > 0"),
        ("voxelize scan.npy --size 1 --reduce median", "mean, sum, min, max, first"),
        ("voxelize scan.npy --size 1 --out v.foo", "ending in .ply or .npy"),
        ("scene create new", "no --size: metres > 0"),
        ("scene create new --size 1 --depth 30", "--depth 30: 4 to 21"),
        ("scene create new --size 1 --palette gras", "NAME:RRGGBB"),
        ("scene render yard y.gif", "must end in .png, .jpg or .npy"),
        ("scene render yard y.png --mode colr", "colour, height, depth"),
        ("scene render yard y.png --size 640", "WIDTHxHEIGHT"),
        ("scene costmap yard y.pgm --z 2,0.2", "z_low, 2: the band is from z_low up"),
        ("scene costmap yard y.pgm --robot-radius -1", "--robot-radius -1: metres >= 0"),
        ("volume create new", "no --size: metres"),
        ("log-level loud", "known: debug, info, warning, error"),
        ("token issue --scopes all", "must be read, write or admin"),
        ("voxelize scan.npy --size 1 --format kity", "known: pcd, ply, npy, npz, las, kitti"),
        # Words
        ("scene export yard", "1 words beside the options are too few; usage: voxelctl scene"),
        ("scene diff yard a b", "3 words beside the options are too many"),
        ("why", "0 words beside the options are too few; usage: voxelctl why REQUEST_ID"),
        ("scene query yard near 1,2,3", "values, ray, nearest or overlap"),
        ("scene query yard nearest 1,2 --radius 3", "1,2: neither as many numbers as are needed"),
        ("slac optimise a", 'Did you mean "optimize"?'),
        ("odometry rune", 'Did you mean "run"?'),
        ("posegraph inf", 'Did you mean "info"?'),
        ("refine runn", 'Did you mean "run"?'),
        # Files
        ("voxelize no.npy --size 1", "cannot read the local file no.npy: No such file"),
        ("voxelize text.pcd --size 1", "cannot read the local file text.pcd: pcd: line 1"),
        ("voxelize empty --size 1", "cannot read the local file empty: it is a folder"),
        ("voxelize scan.xyz --size 1", "name the format: pcd, ply, npy, npz, las, kitti"),
        ("voxelize scan.npy --size 1 --out /nowhere/v.ply", "cannot write /nowhere/v.ply: No such"),
        ("scene integrate scan.npy --scene yard --poses no.txt", "local file no.txt: No such"),
        ("scene integrate scan.npy --scene yard --poses poses.txt", "12 numbers (KITTI), 8 (TUM"),
        ("volume run empty --intrinsics no.txt --out m.ply", "local file no.txt: No such file"),
        ("volume run empty --intrinsics K.txt --out m.ply", "a 3 x 3 matrix is right"),
        ("odometry run empty", "has no scans: files .pcd, .ply"),
        ("odometry run nowhere", "nowhere: no folder that can be read"),
        ("posegraph load loop no.g2o", "cannot read the local file no.g2o"),
        # Names
        ("scene create My_Yard --size 1", '"My_Yard" is no name: lower-case letters, digits'),
        ("map create Drive", '"Drive" is no name: lower-case letters'),
        ("scene info yrd", 'no scene "yrd". Did you mean "yard"?'),
        ("scene info street", 'no scene "street"; scenes: yard'),
        ("map info driv", 'Did you mean "drive"?'),
        ("volume info cellar", "volumes: kitchen"),
        ("odometry info bus", "odometries: car"),
        ("posegraph info lop", 'Did you mean "loop"?'),
        ("net load surface", 'Did you mean "surfaces"?'),
        ("infer surfces scan.npy", 'nor in networks_dir. Did you mean "surfaces"?'),
        ("infer nothing scan.npy", "networks there: centerpoint, "),
        ("infer surfaces scan.npy", "load it (voxelctl net load surfaces)"),
        ("voxelize scan.npy --size 1 --features intensity", '"intensity"; fields: x, y, z'),
        ("scene integrate scan.npy --scene new", "--size METRES makes a new one"),
        # What is there is another
        ("scene create yard --size 0.1", "voxel_size_m is 0.2, not 0.1"),
        ("volume create kitchen --size 0.02", "voxel_size_m is 0.01, not 0.02"),
        (
            "map merge scan.npy --map merged --size 1",
            "voxels of 0.5 x 0.5 x 0.5 m, and this request",
        ),
        ("scene frontiers yard", "does not track free space"),
    ],
)  # fmt: skip
def test_message_says_what_would_be_right(
    there: tuple[Daemon, Path], line: str, says: str
) -> None:
    message, code = said(there, line)
    assert code in (1, 2) and says in message, message
    as_json, code = said(there, f"{line} --json")
    assert code in (1, 2) and isinstance(json.loads(as_json), dict), as_json


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ipc:///nowhere/voxeld.sock", "no socket at /nowhere/voxeld.sock"),
        ("localhost:8421", "localhost:8421 is no address of a daemon; right are ipc:///PATH"),
        ("tcp://localhost", "tcp://HOST:PORT"),
        ("http://localhost:8420", "is for HTTP clients"),
        ("tcp://127.0.0.1:9", "nobody answers at tcp://127.0.0.1:9"),
    ],
)
def test_message_about_an_address(there: tuple[Daemon, Path], url: str, says: str) -> None:
    message, code = said(there, "status", url)
    assert code == 1 and says in message, message


def test_wrong_token_says_where_one_comes_from(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokens").write_text(f"one read {'0' * 64}\n")
    (directory / "tokens").chmod(0o600)
    (directory / "token").write_text("wrong\n")
    with running(directory / "d", {"auth": {"tokens_file": str(directory / "tokens")}}) as daemon:
        message, code = said((daemon, directory), "status --token-file token", daemon.tcp)
        assert code == 1 and "UNAUTHENTICATED" in message
        assert "--token-file FILE or $VOXELD_TOKEN" in message
        message, _ = said((daemon, directory), "status --token-file nowhere", daemon.tcp)
        assert "--token-file nowhere: No such file" in message
