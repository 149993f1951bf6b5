# SPDX-License-Identifier: Apache-2.0
"""voxelctl scene against the real daemon and NumPy: from a drive to a file."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import BIN, SLOW, Daemon, http_call
from scenes import OCCUPIED, Grid
from test_map_tools import pose_line
from test_tools import run

NAMES = (f"yard-{i}" for i in itertools.count())
SUBCOMMANDS = (
    "create", "drop", "list", "info", "edit", "integrate", "query", "export", "log", "undo",
    "redo", "snapshot", "branch", "diff", "verify", "collect", "repair", "distance", "collide",
)  # fmt: skip
OPERATIONS = {
    "operations": [
        {"ball": {"centre": {"x": 1, "y": -2, "z": 0.5}, "radius": 3}, "material": 3},
        {
            "box": {"low": {"x": -1, "y": -4, "z": -4}, "high": {"x": 4, "y": 4, "z": 4}},
            "action": "SCENE_PAINT",
            "material": 5,
        },
        {
            "points": {
                "points": {"dtype": "INT32", "shape": [2, 3], "values": [1, 2, 3, 60, 61, 62]},
                "materials": {"dtype": "UINT8", "shape": [2], "values": [7, 8]},
            }
        },
    ]
}


def ctl(daemon: Daemon, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    timeout = 30 * SLOW
    return run(
        BIN / "voxelctl", "--url", daemon.ipc, "--timeout", timeout, "scene", *words, code=code
    )


def ctl_json(daemon: Daemon, subcommand: str, *words: object) -> Any:
    return json.loads(ctl(daemon, subcommand, "--json", *words).stdout)


def made(daemon: Daemon, *words: object) -> str:
    name = next(NAMES)
    ctl(daemon, "create", name, "--size", "0.25", "--depth", "6", "--material-bits", "8", *words)
    return name


def test_scene_is_made_listed_and_dropped(daemon: Daemon) -> None:
    name = made(daemon, "--track-free", "--palette", "ground:7f6f5f", "--frame", "map")
    again = ctl_json(
        daemon, "create", name, "--size", "0.25", "--depth", "6", "--material-bits", "8",
        "--track-free", "--palette", "ground:7f6f5f", "--frame", "map",
    )  # fmt: skip
    assert again["existed"] and again["scene"]["origin_m"] == [-8] * 3
    assert again["scene"]["palette"] == [{"name": "ground", "rgb": "7f6f5f"}]
    assert "ALREADY_EXISTS" in ctl(daemon, "create", name, "--size", "0.5", code=1).stderr
    listed = ctl_json(daemon, "list")
    assert name in [s["name"] for s in listed["scenes"]] and listed["limit_bytes"] > 0
    assert "occupied    0 voxels" in ctl(daemon, "info", name).stdout
    assert ctl(daemon, "drop", name).stdout == f"dropped {name}\n"
    assert "NOT_FOUND" in ctl(daemon, "info", name, code=1).stderr
    assert ctl_json(daemon, "drop", name, "--missing-ok") == {"existed": False}


def test_flags_file_and_http_make_the_same_scene(daemon: Daemon, directory: Path) -> None:
    (directory / "ops.json").write_text(json.dumps(OPERATIONS))
    (directory / "points.txt").write_text("1 2 3\n60 61 62\n")
    by_file, by_flags, by_http = made(daemon), made(daemon), made(daemon)
    done = ctl_json(daemon, "edit", by_file, "--operations", directory / "ops.json")
    assert done["version"] == 2 and done["n_added"] > 0
    reply = http_call(daemon, "POST", "/v1/scene_edit", {"name": by_http, **OPERATIONS})
    assert reply.status == 200, reply.body
    ctl(
        daemon, "edit", by_flags, "--ball", "1,-2,0.5,3", "--fill", "3",
        "--box=-1,-4,-4,4,4,4", "--paint", "5",
    )  # fmt: skip
    # Every voxel is a box, because flags have no materials for points.
    for voxel, material in (((1, 2, 3), 7), ((60, 61, 62), 8)):
        corners = ",".join(map(str, [*voxel, *(v + 1 for v in voxel)]))
        ctl(daemon, "edit", by_flags, "--in-voxels", "--box", corners, "--fill", str(material))
    infos = [ctl_json(daemon, "info", n) for n in (by_file, by_flags, by_http)]
    assert len({i["digest"] for i in infos}) == 1 and infos[0]["n_occupied"] == done["n_added"]
    erased = ctl_json(daemon, "edit", by_file, "--in-voxels", "--points", directory / "points.txt",
                      "--erase", "--if-version", "2")  # fmt: skip
    assert erased["n_removed"] == 2
    stale = ctl(daemon, "edit", by_file, "--ball", "0,0,0,1", "--if-version", "2", code=1)
    assert "ABORTED" in stale.stderr


def test_heightfields_and_materials_of_points_come_from_files(
    daemon: Daemon, directory: Path
) -> None:
    rng = np.random.default_rng(4)
    heights = rng.uniform(-2, 3, (5, 7))
    heights[2, 3] = np.nan
    voxels = np.unique(rng.integers(0, 64, (200, 3)), axis=0)
    materials = rng.integers(0, 200, len(voxels))
    np.save(directory / "h.npy", heights)
    np.savetxt(directory / "h.txt", heights)
    np.save(directory / "v.npy", voxels)
    np.save(directory / "m.npy", materials.astype(np.uint8))
    np.savetxt(directory / "m.txt", materials, "%d")
    digests = set()
    for ending in ("npy", "txt"):
        name = made(daemon)
        ctl(
            daemon, "edit", name, "--heightfield", directory / f"h.{ending}",
            "--grid=-3,-2,0.75,-1.5", "--fill", "9",
        )  # fmt: skip
        ctl(daemon, "edit", name, "--in-voxels", "--points", directory / "v.npy",
            "--point-materials", directory / f"m.{ending}", "--fill", "0")  # fmt: skip
        digests.add(ctl_json(daemon, "info", name)["digest"])
    assert len(digests) == 1
    grid = Grid(6, 0.25)
    centre = (np.arange(64) + 0.5) * 0.25 - 8
    i = np.floor((centre + 3) / 0.75).astype(int)
    j = np.floor((centre + 2) / 0.75).astype(int)
    inside = ((i >= 0) & (i < 5))[:, None] & ((j >= 0) & (j < 7))[None]
    top = np.where(inside, heights[np.clip(i, 0, 4)[:, None], np.clip(j, 0, 6)[None]], np.nan)
    with np.errstate(invalid="ignore"):
        filled = (centre >= -1.5) & (centre < top[:, :, None])
    grid.apply(filled, "SCENE_FILL", 9)
    grid.states[tuple(voxels.T)] = OCCUPIED
    grid.materials[tuple(voxels.T)] = materials
    out = directory / "d.npy"
    dense = ("--dense", "--in-voxels", "--box", "0,0,0,64,64,64")
    ctl(daemon, "export", name, out, *dense)
    np.testing.assert_array_equal(np.load(out), grid.states)
    ctl(daemon, "export", name, out, *dense, "--materials")
    np.testing.assert_array_equal(np.load(out), grid.materials)


def test_queries_print_and_write_what_a_grid_has(daemon: Daemon, directory: Path) -> None:
    name = made(daemon)
    grid = Grid(6, 0.25)
    ctl(daemon, "edit", name, "--ball", "0,0,0,3", "--fill", "4")
    grid.apply(grid.in_ball((0, 0, 0), 3), "SCENE_FILL", 4)
    voxels = np.random.default_rng(2).integers(0, 64, (400, 3))
    np.save(directory / "voxels.npy", voxels)
    out = directory / "values.npz"
    ctl(daemon, "query", name, "values", directory / "voxels.npy", "--out", out)
    with np.load(out) as arrays:
        np.testing.assert_array_equal(arrays["states"], grid.states[tuple(voxels.T)])
        np.testing.assert_array_equal(arrays["materials"], grid.materials[tuple(voxels.T)])
    text = ctl(daemon, "query", name, "ray", "--", "-6,0.1,0.1", "1,0,0").stdout
    assert text == "3 m, at -2.875, 0.125, 0.125 m, voxel 20,32,32, normal -1,0,0, material 4\n"
    assert "nothing" in ctl(daemon, "query", name, "ray", "0,0,6", "0,0,1").stdout
    found = ctl_json(daemon, "query", name, "nearest", "5,0.125,0.125", "--radius", "4")
    assert found["n_hits"] == 1 and found["rows"][0]["voxel"] == [43, 32, 32]
    assert abs(found["rows"][0]["distance_m"] - 2.125) < 1e-5
    boxes = directory / "boxes.txt"
    boxes.write_text("-1 -1 -1 1 1 1\n5 5 5 6 6 6\n")
    rows = ctl_json(daemon, "query", name, "overlap", boxes, "--counts")["rows"]
    assert [r["n_occupied"] for r in rows] == [512, 0]
    assert [r["state"] for r in rows] == ["occupied", "unknown"]


def test_export_writes_what_a_grid_has(daemon: Daemon, directory: Path) -> None:
    name = made(daemon)
    grid = Grid(6, 0.25)
    ctl(daemon, "edit", name, "--ball", "1,1,0,2.5", "--fill", "4")
    grid.apply(grid.in_ball((1, 1, 0), 2.5), "SCENE_FILL", 4)
    voxels = grid.occupied()
    done = ctl_json(daemon, "export", name, directory / "s.npz", "--counts")
    assert done["n_cells"] == len(voxels)
    with np.load(directory / "s.npz") as arrays:
        assert set(map(tuple, arrays["cells"])) == set(map(tuple, voxels))
        assert (arrays["materials"] == 4).all() and (arrays["counts"] == 1).all()
    ctl(daemon, "export", name, directory / "s.npy", "--level", "1")
    cells = np.load(directory / "s.npy")
    assert set(map(tuple, cells)) == set(map(tuple, voxels >> 1))
    dense = ("--dense", "--in-voxels", "--box", "0,0,0,64,64,64")
    ctl(daemon, "export", name, directory / "d.npy", *dense)
    np.testing.assert_array_equal(np.load(directory / "d.npy"), grid.states)
    ctl(daemon, "export", name, directory / "m.npy", *dense, "--materials")
    np.testing.assert_array_equal(np.load(directory / "m.npy"), grid.materials)
    assert f"{len(voxels):,} cells" in ctl(daemon, "export", name, directory / "s.ply").stdout
    assert f"element vertex {len(voxels)}\n".encode() in (directory / "s.ply").read_bytes()


def test_drive_becomes_a_scene(daemon: Daemon, directory: Path) -> None:
    """Makes scans of a room from several places, with poses that move its walls to their true
    place."""
    rng = np.random.default_rng(5)
    room = rng.uniform(-4, 4, (6000, 3))
    side = rng.integers(0, 6, len(room))
    room[np.arange(len(room)), side % 3] = np.where(side < 3, -4.03, 4.03)
    poses = [(0.0, 0.0, 0.0), (0.7, 1.5, -1.0), (-2.0, -2.0, 2.0)]
    paths = []
    for i, (yaw, x, y) in enumerate(poses):
        c, s = np.cos(yaw), np.sin(yaw)
        sensor = (room - [x, y, 0]) @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        paths.append(directory / f"{i:03}.bin")
        np.column_stack([sensor, np.ones(len(room))]).astype("<f4").tofile(paths[-1])
    (directory / "poses.txt").write_text("".join(pose_line(*p) for p in poses))
    name = next(NAMES)
    done = ctl_json(
        daemon, "integrate", *paths, "--format", "kitti", "--poses", directory / "poses.txt",
        "--scene", name, "--size", "0.25", "--depth", "6", "--track-free", "--max-range", "20",
    )  # fmt: skip
    assert done["n_files"] == 3 and done["n_used"] == done["n_points"] == 3 * len(room)
    assert done["version"] == 4 and done["n_freed"] > 0
    np.save(directory / "room.npy", room)
    for where, state in (("room.npy", OCCUPIED), ("inside.npy", 4)):
        points = room if where == "room.npy" else room * 0.8
        np.save(directory / where, points)
        out = directory / "out.npz"
        ctl(daemon, "query", name, "values", directory / where, "--out", out)
        with np.load(out) as arrays:
            share = (arrays["states"] == state).mean()
        assert share > 0.97, (where, share)
    missing = ctl(daemon, "integrate", directory / "no.pcd", paths[0], "--scene", name, code=1)
    assert "cannot read the local file" in missing.stderr and "(format)" in missing.stderr


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_every_subcommand_has_a_manual(subcommand: str) -> None:
    text = run(BIN / "voxelctl", "scene", subcommand, "--help").stdout
    assert text.startswith(f"voxelctl scene {subcommand} - ") and "example" in text
    assert all(len(line) <= 80 for line in text.splitlines()), text
