# SPDX-License-Identifier: Apache-2.0
"""voxelctl map against the real daemon, NumPy and a running map of two scans."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import BIN, SLOW, Daemon, random_points
from test_tools import run

NAMES = (f"tools-{i}" for i in itertools.count())
SUBCOMMANDS = (
    "create", "drop", "list", "info", "insert", "find", "erase", "update", "export", "save",
    "load", "merge",
)  # fmt: skip


def ctl(daemon: Daemon, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    timeout = 30 * SLOW
    return run(
        BIN / "voxelctl", "--url", daemon.ipc, "--timeout", timeout, "map", *words, code=code
    )


def ctl_json(daemon: Daemon, *words: object) -> Any:
    return json.loads(ctl(daemon, *words, "--json").stdout)


def feed(daemon: Daemon, text: str, *words: object) -> str:
    done = subprocess.run(
        [str(w) for w in (BIN / "voxelctl", "--url", daemon.ipc, "map", *words)],
        input=text, capture_output=True, text=True, timeout=60 * SLOW, check=True,
    )  # fmt: skip
    return done.stdout


def test_keys_go_in_by_text_and_come_out_as_text(daemon: Daemon) -> None:
    name = next(NAMES)
    made = ctl_json(
        daemon, "create", name, "--value", "count:uint64", "--value", "colour:int8:3",
        "--value", "weight:float32", "--ttl", "600",
    )  # fmt: skip
    assert not made["existed"] and made["map"]["ttl_s"] == 600
    assert made["map"]["arrays"][1] == {"name": "colour", "dtype": "int8", "n_elements": 3}
    text = feed(daemon, "1 2 3\n-4 5 6\n1 2 3\n", "insert", name, "-")
    assert text == f"3 keys, 2 new; {name} has 2 entries\n"
    text = feed(daemon, "x,y,z\n1,2,3\n9,9,9\n", "find", name, "-", "--neighbours", "6")
    lines = text.splitlines()
    assert lines[0].startswith("[1, 2, 3] is entry 0, count 0, colour [0, 0, 0], weight 0")
    assert lines[0].endswith("neighbours [-1, -1, -1, -1, -1, -1]")
    assert lines[1].startswith("[9, 9, 9] is not there")
    assert lines[2] == "1 of 2 keys are there"
    assert "made" not in ctl(daemon, "create", name, "--value", "count:uint64", code=1).stdout


def test_values_are_updated_from_files(daemon: Daemon, directory: Path) -> None:
    name = next(NAMES)
    ctl(daemon, "create", name, "--value", "count:uint64", "--value", "colour:int8:3")
    keys = np.random.default_rng(1).integers(-5, 5, (500, 3))
    np.save(directory / "keys.npy", keys)
    (directory / "ones.txt").write_text("1\n" * len(keys))
    np.save(directory / "colours.npy", -keys.astype(np.int8))
    update = ("update", name, directory / "keys.npy", "--insert-missing")
    done = ctl_json(
        daemon, *update, "--values", f"count={directory / 'ones.txt'}", "--combine", "add"
    )
    unique, counts = np.unique(keys, axis=0, return_counts=True)
    assert done == {"n": 500, "n_updated": 500, "n_new": len(unique), "n_entries": len(unique)}
    ctl(daemon, *update, "--values", f"colour={directory / 'colours.npy'}")

    np.savetxt(directory / "unique.csv", unique, "%d", ",")
    found = ctl_json(daemon, "find", name, directory / "unique.csv")
    assert found["n_found"] == len(unique)
    for entry, key, count in zip(found["entries"], unique.tolist(), counts, strict=False):
        assert entry["key"] == key and entry["count"] == count
        assert entry["colour"] == [-k for k in key]
    out = directory / "found.npz"
    ctl(daemon, "find", name, directory / "unique.csv", "--out", out, "--neighbours", "27")
    with np.load(out) as arrays:
        np.testing.assert_array_equal(arrays["count"], counts)
        np.testing.assert_array_equal(arrays["colour"], -unique)
        assert arrays["neighbours"].shape == (len(unique), 27) and arrays["found"].all()
        np.testing.assert_array_equal(arrays["neighbours"][:, 13], arrays["indices"])


def test_insert_writes_entries_and_erase_takes_them(daemon: Daemon, directory: Path) -> None:
    name = next(NAMES)
    ctl(daemon, "create", name, "--key-dtype", "int16", "--components", "2")
    keys = np.asarray([[1, 2], [3, 4], [1, 2], [5, 6]], np.int16)
    np.save(directory / "keys.npy", keys)
    out = directory / "out.npz"
    ctl(daemon, "insert", name, directory / "keys.npy", "--out", out)
    with np.load(out) as arrays:
        assert arrays["indices"].tolist() == [0, 1, 0, 2]
        assert arrays["is_new"].tolist() == [1, 1, 0, 1]
    np.save(directory / "keys.npy", keys[:3])
    done = ctl_json(daemon, "erase", name, directory / "keys.npy")
    assert done["n_erased"] == 2 and done["n_entries"] == 1
    assert "1 entries erased" in ctl(daemon, "erase", name, "--all").stdout


def test_saved_map_is_loaded_again(daemon: Daemon, directory: Path) -> None:
    name = next(NAMES)
    ctl(daemon, "create", name, "--size", "0.5", "--origin", "1,2,3", "--frame", "map")
    feed(daemon, "1 2 3\n", "insert", name, "-")
    saved = ctl_json(daemon, "save", name, "--file", f"{name}.x")
    assert saved["n_entries"] == 1 and len(saved["digest"]) == 16
    assert ctl(daemon, "drop", name).stdout == f"dropped {name}\n"
    assert "NOT_FOUND" in ctl(daemon, "info", name, code=1).stderr
    assert ctl_json(daemon, "drop", name, "--missing-ok") == {"existed": False}
    ctl(daemon, "load", name, "--file", f"{name}.x")
    assert "ALREADY_EXISTS" in ctl(daemon, "load", name, "--file", f"{name}.x", code=1).stderr
    assert "replaced" in ctl(daemon, "load", name, "--file", f"{name}.x", "--replace").stdout
    info = ctl_json(daemon, "info", name)
    assert info["lattice"] == {"size_m": [0.5] * 3, "origin_m": [1, 2, 3], "frame_id": "map"}
    assert info["n_entries"] == 1
    listed = ctl_json(daemon, "list")
    assert name in [m["name"] for m in listed["maps"]]
    assert 0 < listed["n_bytes"] < listed["limit_bytes"]
    for words in (("list",), ("info", name)):
        shown = ctl(daemon, *words).stdout
        row = next((line.split() for line in shown.splitlines() if line.split()[0] == name), [])
        assert f"{name}: 1 entries" in shown or row[1:2] == ["1"], shown
    ctl(daemon, "export", name, directory / "keys.npy")
    assert np.load(directory / "keys.npy").tolist() == [[1, 2, 3]]


def pose_line(yaw: float, x: float, y: float) -> str:
    c, s = np.cos(yaw), np.sin(yaw)
    return " ".join(map(repr, map(float, (c, -s, 0, x, s, c, 0, y, 0, 0, 1, 0)))) + "\n"


@pytest.mark.parametrize("has_poses", [False, True])
def test_merge_is_a_running_map_of_a_drive(
    daemon: Daemon, directory: Path, has_poses: bool
) -> None:
    name = next(NAMES)
    scans = [random_points(8000, seed=i, extent=4) for i in range(3)]
    poses = [(0.0, 0.0, 0.0), (1.0, 2.5, -1.5), (-3.0, 5.0, 0.5)]
    paths = [directory / f"scan{i}.npy" for i in range(len(scans))]
    for path, scan in zip(paths, scans, strict=True):
        np.save(path, scan)
    extra: list[object] = []
    if has_poses:
        (directory / "poses.txt").write_text("".join(pose_line(*p) for p in poses))
        extra = ["--poses", directory / "poses.txt"]
    totals = ctl_json(daemon, "merge", *paths, "--map", name, "--size", "0.5", *extra)
    assert totals["n_files"] == 3 and totals["n_points"] == totals["n_used"] == 24000
    assert totals["n_new"] == totals["n_entries"] == ctl_json(daemon, "info", name)["n_entries"]

    out = directory / "drive.npz"
    ctl(daemon, "export", name, out)
    with np.load(out) as arrays:
        entries = {k: arrays[k] for k in arrays}
    assert entries["count"].sum() == 24000
    moved = []
    for scan, (yaw, x, y) in zip(scans, poses, strict=True):
        c, s = (np.cos(yaw), np.sin(yaw)) if has_poses else (1.0, 0.0)
        rotation = np.asarray([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        moved.append(scan @ rotation.T + ([x, y, 0] if has_poses else 0))
    centre = entries["sum"] / entries["count"][:, None]
    low = entries["keys"] * 0.5
    assert (centre > low - 1e-3).all() and (centre < low + 0.5 + 1e-3).all()
    np.testing.assert_allclose(entries["sum"].sum(0), np.vstack(moved).sum(0), atol=0.5)
    if not has_poses:
        points = np.vstack(scans)
        keys = np.unique(np.floor(points / np.float32(0.5)).astype(np.int32), axis=0)
        np.testing.assert_array_equal(
            entries["keys"][np.lexsort(entries["keys"].T[::-1])], keys
        )

    ply = directory / "drive.ply"
    assert str(ply) in ctl(daemon, "export", name, ply).stdout
    head, body = ply.read_bytes().split(b"end_header\n", 1)
    assert f"element vertex {len(entries['keys'])}\n".encode() in head
    assert len(body) % len(entries["keys"]) == 0
    text = ctl(daemon, "merge", paths[0], "--map", name, "--size", "0.5", "--no-create").stdout
    assert text.startswith(f"{name}: 8,000 of 8,000 points of 1 files merged")


def read_ply(path: Path) -> np.ndarray:
    head, body = path.read_bytes().split(b"end_header\n", 1)
    kinds = {"double": "<f8", "float": "<f4"}
    lines = [line.split() for line in head.decode().splitlines() if line.startswith("property")]
    return np.frombuffer(body, [(name, kinds[kind]) for _, kind, name in lines])


def test_ply_of_a_merged_map_has_means_in_the_map_frame(daemon: Daemon, directory: Path) -> None:
    origin, size = np.array([1000.0, -500.0, 20.0]), 0.5
    points = np.random.default_rng(8).uniform(0, 4, (5000, 6)).astype(np.float32)
    points[:, :3] += origin
    np.save(directory / "scan.npy", points)
    name = next(NAMES)
    merge = ("merge", directory / "scan.npy", "--size", size, "--origin", "1000,-500,20")
    ctl(daemon, *merge, "--map", name)
    ctl(daemon, "export", name, directory / "m.ply")
    ctl(daemon, "export", name, directory / "m.npz")
    ply = read_ply(directory / "m.ply")
    means = np.stack([ply[f"mean_{axis}"] for axis in "xyz"], 1)
    centres = np.stack([ply[axis] for axis in "xyz"], 1)
    # Of the scan's points as they are, grouped by the voxel that the file says.
    xyz = points[:, :3].astype(float)
    cells = np.floor((xyz - origin) / size).astype(int)
    wanted = {}
    for cell in np.unique(cells, axis=0):
        wanted[tuple(cell)] = xyz[(cells == cell).all(1)].mean(0)
    assert len(ply) == len(wanted)
    for centre, mean in zip(centres, means, strict=True):
        cell = tuple(np.floor((centre - origin) / size).astype(int))
        np.testing.assert_allclose(mean, wanted[cell], atol=1e-3)
    # The sums are as they are on the wire.
    with np.load(directory / "m.npz") as arrays:
        np.testing.assert_array_equal(ply["sum_0"], arrays["sum"][:, 0])
    ctl(daemon, "export", name, directory / "s.ply", "--arrays", "sum")
    assert "mean_x" not in read_ply(directory / "s.ply").dtype.names
    # Other channels have no place in the map frame.
    other = next(NAMES)
    ctl(daemon, *merge, "--map", other, "--features", "intensity,c4,c5")
    ctl(daemon, "export", other, directory / "o.ply")
    assert read_ply(directory / "o.ply").dtype.names == (
        "x", "y", "z", "count", "sum_0", "sum_1", "sum_2",
    )  # fmt: skip


def test_merge_goes_on_after_a_bad_file(daemon: Daemon, directory: Path) -> None:
    name = next(NAMES)
    np.save(directory / "good.npy", random_points(100))
    (directory / "bad.npy").write_bytes(b"nothing")
    done = ctl(
        daemon, "merge", directory / "bad.npy", directory / "good.npy", "--map", name,
        "--size", "1", "--no-features", "--json", code=1,
    )  # fmt: skip
    assert "bad.npy" in done.stderr
    assert json.loads(done.stdout)["n_used"] == 100
    arrays = ctl_json(daemon, "info", name)["arrays"]
    assert [a["name"] for a in arrays] == ["count"]
    done = ctl(
        daemon, "merge", directory / "good.npy", "--map", next(NAMES), "--size", "1",
        "--no-create", code=1,
    )  # fmt: skip
    assert "NOT_FOUND" in done.stderr


def test_wrong_poses_say_what_is_right(daemon: Daemon, directory: Path) -> None:
    np.save(directory / "scan.npy", random_points(10))
    merge = ("merge", directory / "scan.npy", "--map", "poses", "--size", "1", "--poses")
    poses = directory / "poses.txt"
    poses.write_text("1 0 0 0\n")
    assert "12 numbers (KITTI), 8 (TUM" in ctl(daemon, *merge, poses, code=1).stderr
    poses.write_text("2 0 0 0 0 1 0 0 0 0 1 0\n")
    assert "pose 1 has no rotation" in ctl(daemon, *merge, poses, code=1).stderr
    assert "No such file" in ctl(daemon, *merge, directory / "no.txt", code=1).stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no subcommand"),
        (("nonsense",), 'no subcommand "nonsense"'),
        (("create",), "0 words"),
        (("create", "a", "--value", "count"), "NAME:DTYPE"),
        (("create", "a", "--value", "count:uint65"), "NAME:DTYPE"),
        (("create", "a", "--key-dtype", "x"), "int16, int32 or int64"),
        (("create", "a", "--origin", "0,0,0"), "--size"),
        (("create", "a", "--size", "-1"), "metres > 0"),
        (("drop", "a", "--ttl", "5"), "ttl"),
        (("find", "a", "-", "--neighbours", "7"), "6, 8 or 27"),
        (("find", "a", "-", "--out", "x.txt"), ".npy or .npz"),
        (("erase", "a"), "KEYS or --all"),
        (("erase", "a", "b", "--all"), "KEYS or --all"),
        (("update", "a", "b"), "--values"),
        (("update", "a", "b", "--values", "x"), "ARRAY=FILE"),
        (("update", "a", "b", "--combine", "mul"), "set, add, min or max"),
        (("export", "a", "b.txt"), ".ply, .npz or .npy"),
        (("merge", "x.pcd", "--size", "1"), "--map"),
        (("merge", "x.pcd", "--map", "a"), "--size"),
    ],
)
def test_wrong_command_lines_are_refused_before_anything(
    daemon: Daemon, words: tuple[str, ...], says: str
) -> None:
    done = ctl(daemon, *words, code=2)
    assert says in done.stderr and "Try: voxelctl map" in done.stderr


def test_wrong_keys_name_the_file_and_the_line(daemon: Daemon, directory: Path) -> None:
    name = next(NAMES)
    ctl(daemon, "create", name)
    keys = directory / "keys.csv"
    keys.write_text("1,2,3\n1,2\n")
    done = ctl(daemon, "insert", name, keys, code=1)
    assert "keys.csv" in done.stderr and "line 2" in done.stderr
    keys.write_text("1,2\n")
    assert "INVALID_ARGUMENT (keys)" in ctl(daemon, "insert", name, keys, code=1).stderr
    assert "No such file" in ctl(daemon, "find", name, "no.npy", code=1).stderr


def test_every_subcommand_explains_itself_with_an_example() -> None:
    text = run(BIN / "voxelctl", "map", "--help").stdout
    assert run(BIN / "voxelctl", "help", "map").stdout == text
    for name in SUBCOMMANDS:
        assert f"\n  {name} " in text
        own = run(BIN / "voxelctl", "map", name, "--help").stdout
        assert own.startswith(f"voxelctl map {name} - ")
        assert f"usage: voxelctl map {name}" in own and f"  voxelctl map {name} " in own.replace(
            "| voxelctl", "  voxelctl"
        )
        assert all(len(line) <= 80 for line in own.splitlines()), own
