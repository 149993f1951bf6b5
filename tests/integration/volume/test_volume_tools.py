# SPDX-License-Identifier: Apache-2.0
"""voxelctl volume against the real daemon: folders in both layouts, one mesh."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from depth_scene import CAMERA, distance, png_of, shoot
from harness import BIN, SLOW, SOURCE, Daemon
from PIL import Image
from test_tools import run

NAMES = (f"tools-{i}" for i in itertools.count())
SUBCOMMANDS = (
    "create", "drop", "list", "info", "integrate", "extract", "render", "clear", "run", "stamp",
    "import",
)  # fmt: skip


def ctl(daemon: Daemon, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    timeout = 30 * SLOW
    return run(
        BIN / "voxelctl", "--url", daemon.ipc, "--timeout", timeout, "volume", *words, code=code
    )


def ctl_json(daemon: Daemon, *words: object) -> Any:
    return json.loads(ctl(daemon, *words, "--json").stdout)


@pytest.fixture
def intrinsics(directory: Path) -> Path:
    path = directory / "K.txt"
    matrix = [[CAMERA.fx, 0, CAMERA.cx], [0, CAMERA.fy, CAMERA.cy], [0, 0, 1]]
    np.savetxt(path, matrix)
    return path


def seven_scenes(folder: Path, n: int) -> None:
    for i in range(n):
        shot = shoot(i)
        (folder / f"frame-{i:06}.depth.png").write_bytes(shot.png)
        (folder / f"frame-{i:06}.color.png").write_bytes(png_of(shot.colour))
        np.savetxt(folder / f"frame-{i:06}.pose.txt", shot.matrix)


def tum(folder: Path, n: int) -> None:
    (folder / "depth").mkdir()
    (folder / "rgb").mkdir()
    lists: dict[str, list[str]] = {"depth": [], "rgb": [], "groundtruth": []}
    for i in range(n):
        shot = shoot(i)
        at = 1311867170.0 + 0.04 * i
        depth = np.round(shot.depth * 5000).astype(np.uint16)
        (folder / "depth" / f"{at:.6f}.png").write_bytes(png_of(depth))
        Image.fromarray(shot.colour).save(folder / "rgb" / f"{at + 0.003:.6f}.png")
        lists["depth"].append(f"{at:.6f} depth/{at:.6f}.png")
        lists["rgb"].append(f"{at + 0.003:.6f} rgb/{at + 0.003:.6f}.png")
        values = " ".join(f"{v:.9f}" for v in (*shot.translation, *shot.pose.rotation))
        lists["groundtruth"].append(f"{at + 0.001:.4f} {values}")
    for name, lines in lists.items():
        text = f"# {name}\n" + "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.txt").write_text(text)


def read_ply(path: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """Vertices and colours, and the number of triangles."""
    header, _, body = path.read_bytes().partition(b"end_header\n")
    lines = header.decode().splitlines()
    n = next(int(line.split()[2]) for line in lines if line.startswith("element vertex"))
    faces = [int(line.split()[2]) for line in lines if line.startswith("element face")]
    dtype = np.dtype([("p", "<f4", 3), ("n", "<f4", 3), ("c", "u1", 3)])
    rows = np.frombuffer(body, dtype, n)
    assert len(body) == n * dtype.itemsize + 13 * sum(faces)
    return rows["p"], rows["c"], sum(faces)


@pytest.mark.parametrize("layout", [seven_scenes, tum])
def test_folder_becomes_a_mesh(
    daemon: Daemon, directory: Path, intrinsics: Path, layout: Any
) -> None:
    folder = directory / "images"
    folder.mkdir()
    layout(folder, 4)
    mesh = directory / "mesh.ply"
    done = ctl_json(
        daemon, "run", folder, "--intrinsics", intrinsics, "--size", "0.02", "--truncation",
        "0.08", "--colour", "--out", mesh,
    )  # fmt: skip
    points, colours, n_triangles = read_ply(mesh)
    assert done["n_images"] == 4 and done["n_vertices"] == len(points) > 5000
    assert done["n_triangles"] == n_triangles > len(points)
    assert np.sqrt(np.mean(distance(points.astype(float)) ** 2)) < 0.5 * 0.02
    assert np.median(colours[points[:, 2] > 1.69], axis=0).tolist() == [30, 90, 220]
    assert ctl_json(daemon, "list")["volumes"] == []  # its own volume went
    text = ctl(
        daemon, "run", folder, "--intrinsics", intrinsics, "--every", "2", "--name", "kept"
    ).stdout
    assert text.startswith("2 images, ")
    assert ctl_json(daemon, "info", "kept")["n_images"] == 2
    n_blocks = ctl_json(daemon, "info", "kept")["n_blocks"]
    headers, row, total = ctl(daemon, "list").stdout.splitlines()
    assert headers.split() == [
        "volume", "blocks", "images", "voxel", "m", "holds", "memory", "owner",
    ]  # fmt: skip
    assert row.split()[:5] == ["kept", f"{n_blocks:,}", "2", row.split()[3], "distance"]
    assert row.index("distance") == headers.index("holds") and "1 volumes" in total
    ctl(daemon, "drop", "kept")


def test_example_makes_the_same_mesh(daemon: Daemon, directory: Path, intrinsics: Path) -> None:
    folder = directory / "images"
    folder.mkdir()
    seven_scenes(folder, 3)
    ours, theirs = directory / "ours.ply", directory / "example.ply"
    square = directory / "square.txt"
    np.savetxt(square, [[CAMERA.fx, CAMERA.fx, CAMERA.cx, CAMERA.cy]])
    ctl(
        daemon, "run", folder, "--intrinsics", square, "--size", "0.02", "--colour", "--out", ours
    )
    example = SOURCE / "client" / "python" / "examples" / "volume_mesh.py"
    done = run(
        sys.executable, example, folder, "--url", daemon.ipc, "--size", "0.02", "--fx", CAMERA.fx,
        "--cx", CAMERA.cx, "--cy", CAMERA.cy, "--out", theirs,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and lines[0].startswith("frame-000000: ")
    assert read_ply(ours)[2] == read_ply(theirs)[2]
    np.testing.assert_array_equal(read_ply(ours)[0], read_ply(theirs)[0])


def test_poses_of_a_file(daemon: Daemon, directory: Path, intrinsics: Path) -> None:
    folder = directory / "images"
    folder.mkdir()
    seven_scenes(folder, 3)
    poses = directory / "poses.txt"
    np.savetxt(poses, [shoot(i).matrix[:3].ravel() for i in range(3)])
    for path in folder.glob("*.pose.txt"):
        path.unlink()
    options = ("run", folder, "--intrinsics", intrinsics, "--out", directory / "m.ply")
    assert " images tracked, " in ctl(daemon, *options).stdout  # unasked: no pose is known
    assert ctl_json(daemon, *options, "--poses", poses)["n_images"] == 3
    np.savetxt(poses, [shoot(0).matrix[:3].ravel()])
    assert "for each of 3 files" in ctl(daemon, *options, "--poses", poses, code=1).stderr


def test_one_image_and_its_picture(daemon: Daemon, directory: Path, intrinsics: Path) -> None:
    name = next(NAMES)
    shot = shoot(1)
    (directory / "d.png").write_bytes(shot.png)
    (directory / "c.png").write_bytes(png_of(shot.colour))
    np.savetxt(directory / "pose.txt", shot.matrix)
    assert not ctl_json(daemon, "create", name, "--size", "0.02", "--colour")["existed"]
    assert "there already" in ctl(daemon, "create", name, "--size", "0.02", "--colour").stdout
    with_pose = ("--intrinsics", intrinsics, "--pose", directory / "pose.txt")
    change = ctl_json(
        daemon, "integrate", name, directory / "d.png", *with_pose, "--image", directory / "c.png"
    )
    assert change["n_touched"] == change["n_new"] == change["n_blocks"] > 100
    assert change["engine_ms"] > 0
    picture = directory / "p.png"
    size = ("--width", 160, "--height", 120)
    ctl(daemon, "render", name, picture, *with_pose, *size)
    pixels = np.asarray(Image.open(picture))
    assert pixels.shape == (120, 160, 3)
    assert np.median(pixels[:10, :10], axis=(0, 1)).tolist() == [30, 90, 220]
    ctl(daemon, "render", name, picture, *with_pose, *size, "--shade")
    shaded = np.asarray(Image.open(picture))
    assert (shaded[..., 0] == shaded[..., 1]).all() and np.median(shaded[:10, :10]) > 200
    mesh = directory / "m.ply"
    whole = ctl_json(daemon, "extract", name, mesh)
    points = ctl_json(daemon, "extract", name, mesh, "--points", "--box", "-0.1,-0.1,0,0.1,0.1,1")
    assert 0 < points["n_vertices"] < whole["n_vertices"] and points["n_triangles"] == 0
    left = ctl_json(daemon, "clear", name, "--outside", "0,0,0.8,0.3")
    assert 0 < left["n_blocks"] < change["n_blocks"]
    assert ctl_json(daemon, "clear", name, "--all")["n_blocks"] == 0
    assert ctl(daemon, "drop", name).stdout == f"dropped {name}\n"


def test_what_is_wrong_is_said(daemon: Daemon, directory: Path, intrinsics: Path) -> None:
    name = next(NAMES)
    ctl(daemon, "create", name, "--size", "0.02")
    shot = directory / "d.png"
    shot.write_bytes(shoot(0).png)
    bad = directory / "bad.txt"
    bad.write_text("1 2 3\n")
    use = ("--intrinsics", intrinsics)
    for words, code, text in (
        (("integrate", name, shot), 2, "--intrinsics"),
        (("integrate", name, shot, "--intrinsics", bad), 1, "3 x 3 matrix is right"),
        (("integrate", name, shot, *use, "--pose", bad), 1, "4 x 4 matrix"),
        (("integrate", name, intrinsics, *use), 1, "depth"),
        (("integrate", "nobody", shot, *use), 1, "nobody"),
        (("extract", name, directory / "m.stl"), 2, "FILE.ply"),
        (("extract", name, directory / "m.ply", "--box", "1,2"), 2, "six numbers"),
        (("render", name, directory / "p.jpg", *use), 2, "FILE.png"),
        (("clear", name), 2, "--all"),
        (("clear", name, "--outside", "0,0,0,-1"), 2, "radius"),
        (("create", name, "--size", "0.03"), 1, "voxel_size_m is 0.02, not 0.03"),
        (("run", directory, *use, "--name", "x"), 1, "no images"),
        (("run", directory, *use), 2, "--out, --trajectory, --name or --watch"),
        (("info", "nobody"), 1, "no volume"),
    ):
        assert text in ctl(daemon, *words, code=code).stderr, words
    ctl(daemon, "drop", name)


def test_every_subcommand_has_its_manual(daemon: Daemon) -> None:
    overview = ctl(daemon, "--help").stdout
    for name in SUBCOMMANDS:
        assert f"\n  {name} " in overview
        text = ctl(daemon, name, "--help").stdout
        assert text.startswith(f"voxelctl volume {name} - ")
        assert max(len(line) for line in text.splitlines()) <= 80


def test_run_with_watch_says_where_the_dashboard_is(
    daemon: Daemon, directory: Path, intrinsics: Path
) -> None:
    seven_scenes(directory, 2)
    done = ctl(daemon, "run", directory, "--intrinsics", intrinsics, "--size", 0.02, "--watch")
    address, rest = done.stdout.split("\n", 1)
    page, _, name = address.rpartition("/#/volume/")
    assert page.startswith("http://127.0.0.1:") and "2 images" in rest
    assert ctl_json(daemon, "info", name)["n_images"] == 2, "it stays"
    got = json.loads(run("curl", "-s", f"{page}/v1/volumes/{name}").stdout)
    assert got["volume"]["name"] == name
    ctl(daemon, "drop", name)


def test_stamp_and_import_go_between_volumes_and_scenes(
    daemon: Daemon, directory: Path, intrinsics: Path
) -> None:
    seven_scenes(directory, 2)
    name = next(NAMES)
    ctl(daemon, "run", directory, "--intrinsics", intrinsics, "--size", 0.02, "--name", name)
    scene = [BIN / "voxelctl", "--url", daemon.ipc, "scene"]
    run(*scene, "create", name, "--size", 0.05, "--material-bits", 4, code=0)
    stamped = ctl_json(daemon, "stamp", name, name, "--material", 3)
    assert stamped["n_added"] > 100 and stamped["version"] == 2
    assert "0 voxels added" in ctl(daemon, "stamp", name, name, "--material", 3, "--thin").stdout
    box = "-2,-2,0,2,2,2"
    again = ctl_json(daemon, "import", name, name, "--box", box, "--weight", 2)
    assert again["n_voxels"] > 1000 and again["version"] in (2, 3)
    assert "blocks" in ctl(daemon, "import", name, name, "--box", box, "--at-version", 2).stdout
    ctl(daemon, "import", name, name, code=2)
    ctl(daemon, "drop", name)
