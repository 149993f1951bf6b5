# SPDX-License-Identifier: Apache-2.0
"""Lidar scans, labels, free space and files of meshes: against a room that NumPy renders and a
volume in float64, over the Python client, voxelctl and curl."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from depth_scene import BALL, CAMERA, WALL_Z, png_of, quaternion, shoot
from harness import BIN, SLOW, SOURCE, Daemon, http_call
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from test_tools import run
from voxeld import Cloud, Lidar, Pose, Volume

SIZE = 0.1
MU = 0.2
WALLS = np.array([[-2.41, 2.37], [-1.83, 1.91], [-0.92, 1.18]])
BALL_AT, BALL_RADIUS = np.array([1.2, 0.5, 0.1]), 0.45
ROWS, COLUMNS = 24, 150
FLOOR, SIDE, SPHERE = 3, 9, 20


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        for info in connected.volumes():
            connected.volume_drop(info.name)
        yield connected


def make(client: voxeld.Client, name: str = "room", **more: object) -> Volume:
    return client.volume_create(name, SIZE, truncation_m=MU, **more)


def pose_at(s: float | np.ndarray) -> tuple[Rotation, np.ndarray]:
    """A turn about one axis and a straight line, both even."""
    axis = np.array([0.2, -0.1, 0.97])
    axis /= np.linalg.norm(axis)
    turn = Rotation.from_rotvec((0.3 + 0.8 * np.atleast_1d(s))[:, None] * axis)
    return turn, np.array([0.2, -0.3, 0.1]) + np.atleast_1d(s)[:, None] * [0.4, 0.5, 0.05]


def wire_pose(s: float) -> Pose:
    turn, at = pose_at(s)
    return Pose(translation=tuple(at[0]), rotation=tuple(turn.as_quat()[0]))


def ranges(p: np.ndarray, d: np.ndarray, has_ball: bool) -> tuple[np.ndarray, np.ndarray]:
    """Ranges and labels along rays of the map."""
    with np.errstate(divide="ignore"):
        t = (np.where(d > 0, WALLS[:, 1], WALLS[:, 0]) - p) / d
    best = t.min(1)
    label = np.where(t.argmin(1) == 2, FLOOR, SIDE)
    if has_ball:
        m = p - BALL_AT
        b = (m * d).sum(1)
        root = b * b - (m * m).sum(1) + BALL_RADIUS**2
        hit = np.where(root > 0, -b - np.sqrt(np.maximum(root, 0)), np.inf)
        hit = np.where(hit > 0, hit, np.inf)
        label = np.where(hit < best, SPHERE, label)
        best = np.minimum(best, hit)
    return best, label.astype(np.uint8)


def scan(has_ball: bool = True, moves: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """x, y, z, time of each point in its sensor's frame, and its label."""
    column, row = (a.reshape(-1) for a in np.mgrid[:COLUMNS, :ROWS])
    time = column / (COLUMNS - 1)
    elevation = np.deg2rad(25 - 2.4 * row + 0.3)
    azimuth = 2 * np.pi * (column + 0.37) / COLUMNS
    d = np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth),
                  np.sin(elevation)], 1)  # fmt: skip
    turn, at = pose_at(time if moves else 0 * time)
    r, label = ranges(at, turn.apply(d), has_ball)
    return np.column_stack([d * r[:, None], time]).astype(np.float32), label


def cloud_of(points: np.ndarray, **more: object) -> Cloud:
    return Cloud.from_numpy(points, ["x", "y", "z", "t"], **more)


def off_walls(points: np.ndarray, has_ball: bool = False) -> np.ndarray:
    walls = np.abs(points[:, :, None] - WALLS).min((1, 2))
    ball = np.abs(np.linalg.norm(points - BALL_AT, axis=1) - BALL_RADIUS)
    return np.minimum(walls, ball) if has_ball else walls


# Along rays ------------------------------------------------------------------------------------


def crossings(sensor: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """The zero crossings on all edges between voxel centres that a volume in float64 has after one
    scan of rays: a voxel observes the rays that cross its cube within the truncation."""
    way = hit - sensor
    range_m = np.linalg.norm(way, axis=1, keepdims=True)
    way /= range_m
    begin, end = hit - np.minimum(MU, range_m) * way, hit + MU * way
    n = int(np.ceil(MU / SIZE)) + 1
    step = np.stack(np.meshgrid(*[np.arange(-n, n + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    cube = np.floor(hit / SIZE).astype(int)[:, None] + step  # rays x neighbours
    low = cube * SIZE
    with np.errstate(divide="ignore"):
        a = (low - begin[:, None]) / (end - begin)[:, None]
        b = (low + SIZE - begin[:, None]) / (end - begin)[:, None]
    enter = np.minimum(a, b).max(-1).clip(0)
    leave = np.maximum(a, b).min(-1).clip(None, 1)
    d = ((hit[:, None] - (cube + 0.5) * SIZE) * way[:, None]).sum(-1) / MU
    used = (enter < leave) & (d >= -1)
    base = cube[used].min(0) - 1
    shape = tuple(cube[used].max(0) - base + 3)
    flat = np.ravel_multi_index(tuple((cube[used] - base).T), shape)
    weight = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(float)
    total = np.bincount(flat, np.minimum(d[used], 1), int(np.prod(shape))).reshape(shape)
    mean = total / np.maximum(weight, 1)
    found = []
    for axis in range(3):
        one = tuple(slice(0, -1) if i == axis else slice(None) for i in range(3))
        two = tuple(slice(1, None) if i == axis else slice(None) for i in range(3))
        both = (weight[one] > 0) & (weight[two] > 0) & ((mean[one] < 0) != (mean[two] < 0))
        at = np.argwhere(both)
        x, y = mean[one][both], mean[two][both]
        place = (at + base + 0.5).astype(float)
        place[:, axis] += np.clip(x / (x - y), 1 / 1024, 1023 / 1024)
        found.append(place * SIZE)
    return np.concatenate(found)


def expect_crossings(volume: Volume, sensor: np.ndarray, hit: np.ndarray) -> None:
    expected = crossings(sensor, hit)
    ours = volume.extract(points=True).vertices.astype(float)
    assert len(ours) > 2000
    # A ray through the corner of a voxel may miss it in float32, or touch it.
    assert abs(len(ours) - len(expected)) <= 1e-3 * len(expected)
    apart, _ = cKDTree(expected).query(ours)
    back, _ = cKDTree(ours).query(expected)
    assert (apart < 1e-4 * SIZE).mean() > 0.998
    assert (back < 1e-4 * SIZE).mean() > 0.998


def test_scan_along_rays_is_a_volume_in_float64(client: voxeld.Client) -> None:
    points, _ = scan(moves=True)
    volume = make(client)
    done = volume.integrate_points(
        cloud_of(points, T_map_sensor=wire_pose(0)), time_field="t", end_pose=wire_pose(1)
    )
    assert done.n_used == done.n_points == len(points)
    assert done.n_touched == done.n_new == done.n_blocks > 100
    turn, at = pose_at(points[:, 3].astype(float))
    expect_crossings(volume, at, at + turn.apply(points[:, :3].astype(float)))


def test_scan_of_kitti_is_a_volume_in_float64(client: voxeld.Client) -> None:
    root = Path(os.environ.get("VOXELD_DATA", SOURCE.parent / "shared" / "data"))
    path = root / "lidar" / "kitti_seq_000000.bin"
    if not path.is_file():
        pytest.skip("no data directory (set VOXELD_DATA)")
    points = np.fromfile(path, "<f4").reshape(-1, 4)[::40, :3]
    volume = make(client)
    done = volume.integrate_points(points, range_min_m=2, range_max_m=25, weight=2)
    far = np.linalg.norm(points, axis=1)
    assert done.n_beyond == (far > 25).sum() and done.n_dropped == (far < 2).sum()
    used = points[(far >= 2) & (far <= 25)].astype(float)
    expect_crossings(volume, np.zeros_like(used), used)


# By range image, motion, free space --------------------------------------------------------------


LIDAR = Lidar(columns=COLUMNS, rows=ROWS, top_deg=25, bottom_deg=25 - 2.4 * (ROWS - 1))


@pytest.mark.parametrize("lidar", [None, LIDAR])
def test_moving_scan_is_a_room_only_with_its_poses(
    client: voxeld.Client, lidar: Lidar | None
) -> None:
    points, _ = scan(moves=True)
    errors = []
    for name, more in (
        ("moved", {"time_field": "t", "end_pose": wire_pose(1)}),
        ("unmoved", {}),
    ):
        volume = make(client, name)
        cloud = cloud_of(points, T_map_sensor=wire_pose(0))
        volume.integrate_points(cloud, lidar=lidar, image_time=0.5 if lidar and more else 0, **more)
        off = off_walls(volume.extract(points=True).vertices.astype(float), has_ball=True)
        errors.append(np.sqrt(np.mean(off**2)))
    assert errors[0] < 0.5 * SIZE < errors[1]


@pytest.mark.parametrize("lidar", [None, LIDAR])
def test_what_is_gone_is_carved(client: voxeld.Client, lidar: Lidar | None) -> None:
    volume = make(client, max_weight=4)
    on_ball = []
    for has_ball, carve_m in ((True, 0), (False, 0), (False, 5), (False, 5), (False, 5)):
        points, _ = scan(has_ball)
        cloud = cloud_of(points, T_map_sensor=wire_pose(0))
        done = volume.integrate_points(cloud, lidar=lidar, carve_m=carve_m)
        assert (done.n_carved > 0) == (carve_m > 0)
        near = volume.extract(points=True).vertices - BALL_AT
        on_ball.append(int((np.linalg.norm(near, axis=1) < BALL_RADIUS + 0.1).sum()))
    assert on_ball[0] > 50 and on_ball[1] > 0.5 * on_ball[0]
    assert on_ball[4] < 0.25 * on_ball[0]


def test_depth_images_carve_what_is_gone(client: voxeld.Client) -> None:
    volume = client.volume_create("v", 0.02, truncation_m=0.08, max_weight=2)
    shot = shoot(0)
    wall = np.full_like(shot.depth, WALL_Z - shot.translation[2])
    volume.integrate(shot.depth, CAMERA, shot.pose)
    before = volume.extract(points=True).vertices
    for carve_m in (0, 2, 2, 2):
        done = volume.integrate(wall, CAMERA, shot.pose, carve_m=carve_m)
        assert (done.n_carved > 0) == (carve_m > 0)
    after = volume.extract(points=True).vertices
    assert (before[:, 2] < BALL[2]).sum() > 1000
    assert (after[:, 2] < BALL[2]).sum() == 0


# Labels, pictures --------------------------------------------------------------------------------


def test_labels_are_those_of_most_votes(client: voxeld.Client) -> None:
    """Scans of which each point has the right label with 60 in 100, else one of four wrong ones."""
    volume = make(client, labels=True, colour=True)
    assert volume.info().labels
    generator = np.random.default_rng(3)
    points, right = scan()
    for i in range(15):
        wrong = generator.random(len(points)) < 0.4
        labels = np.where(wrong, 100 + generator.integers(0, 4, len(points)), right)
        cloud = cloud_of(points, T_map_sensor=wire_pose(0))
        if i % 2 == 0:
            volume.integrate_points(cloud, labels=labels)
        else:
            fields = np.column_stack([points[:, :3], labels]).astype(np.float32)
            more = Cloud.from_numpy(fields, ["x", "y", "z", "class"], T_map_sensor=wire_pose(0))
            volume.integrate_points(more, label_field="class")
    surface = volume.extract()
    assert len(surface.labels) == surface.n_vertices > 2000
    middle = (np.abs(surface.vertices[:, :2]) < [2.0, 1.5]).all(1)
    on_floor = (surface.vertices[:, 2] < WALLS[2, 0] + 0.05) & middle
    assert on_floor.sum() > 50 and (surface.labels[on_floor] == FLOOR).mean() > 0.95
    on_ball = np.linalg.norm(surface.vertices - BALL_AT, axis=1) < BALL_RADIUS + 0.03
    assert on_ball.sum() > 50 and (surface.labels[on_ball] == SPHERE).mean() > 0.9

    picture = volume.cast_rays(
        lidar=LIDAR, T_map_camera=wire_pose(0), depth_max_m=8, labels=True, weights=True
    )
    hit = picture.depth > 0
    assert picture.labels.dtype == np.uint8 and (picture.labels[~hit] == 0).all()
    assert (picture.weights[hit] >= 1).mean() > 0.99 and (picture.weights[~hit] == 0).all()
    expected = right.reshape(COLUMNS, ROWS).T.reshape(-1)
    assert (picture.labels[hit] == expected[hit]).mean() > 0.95


def test_label_image_votes_beside_depth(client: voxeld.Client) -> None:
    volume = client.volume_create("v", 0.02, truncation_m=0.08, labels=True)
    for i in range(3):
        shot = shoot(i)
        image = np.where(shot.colour[..., 0] > 100, 7, 8).astype(np.uint8)
        image[:5] = 0  # no label
        labels = png_of(image) if i == 1 else image.tobytes()
        volume.integrate(shot.depth, CAMERA, shot.pose, labels=labels)
    surface = volume.extract()
    on_wall = surface.vertices[:, 2] > WALL_Z - 0.01
    on_ball = surface.vertices[:, 2] < BALL[2] - 0.1
    assert (surface.labels[on_ball] == 7).mean() > 0.99
    assert (surface.labels[on_wall] == 8).mean() > 0.9
    assert set(np.unique(surface.labels)) <= {0, 7, 8}
    with pytest.raises(voxeld.InvalidArgument, match="labels"):
        volume.integrate(shot.depth, CAMERA, shot.pose, labels=b"abc")
    plain = client.volume_create("plain", 0.02)
    plain.integrate(shot.depth, CAMERA, shot.pose, labels=image.tobytes())
    with pytest.raises(voxeld.FailedPrecondition, match="no labels"):
        plain.cast_rays(CAMERA, shot.pose, labels=True)


def test_lidars_and_panoramas_are_cast(client: voxeld.Client) -> None:
    volume = make(client)
    turn, at = pose_at(0.0)
    generator = np.random.default_rng(5)
    d = generator.normal(size=(40000, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    r, _ = ranges(np.repeat(at, len(d), 0), turn.apply(d), has_ball=True)
    volume.integrate_points((d * r[:, None]).astype(np.float32), wire_pose(0))
    table = [80.0, 30.0, 12.5, 3.0, -1.0, -20.0, -75.0]
    for lidar in (
        Lidar(rows=60, columns=120, top_deg=88.5, bottom_deg=-88.5),
        Lidar(columns=90, elevations_deg=table, azimuth_begin_deg=45, azimuth_span_deg=-180),
    ):
        picture = volume.cast_rays(
            lidar=lidar, T_map_camera=wire_pose(0), depth_max_m=9, vertices=True, normals=True
        )
        up = np.deg2rad(
            lidar.elevations_deg
            if len(lidar.elevations_deg) > 0
            else np.linspace(lidar.top_deg, lidar.bottom_deg, lidar.rows)
        )
        assert (picture.width, picture.height) == (lidar.columns, len(up))
        span = lidar.azimuth_span_deg or 360
        around = np.deg2rad(
            lidar.azimuth_begin_deg + (np.arange(lidar.columns) + 0.5) / lidar.columns * span
        )
        v, u = (a.reshape(-1) for a in np.meshgrid(up, around, indexing="ij"))
        way = turn.apply(np.stack([np.cos(v) * np.cos(u), np.cos(v) * np.sin(u), np.sin(v)], 1))
        expected, _ = ranges(np.repeat(at, len(way), 0), way, has_ball=True)
        hit = picture.depth > 0
        assert hit.mean() > 0.97
        assert np.median(np.abs(picture.depth - expected)[hit]) < 0.2 * SIZE
        apart = picture.vertices - (at + picture.depth[:, None] * way)
        assert np.abs(apart[hit]).max() < 1e-4
        assert ((picture.normals * way).sum(1)[hit] < 0).mean() > 0.95
    with pytest.raises(voxeld.InvalidArgument, match="lidar"):
        volume.cast_rays(CAMERA, lidar=LIDAR)
    with pytest.raises(voxeld.InvalidArgument, match="elevations"):
        volume.cast_rays(lidar=Lidar(rows=3, columns=3, top_deg=91, bottom_deg=0))


# Files --------------------------------------------------------------------------------------------


def read_glb(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of the one primitive of a GLB, and the world's positions."""
    magic, version, total, n_json, kind = struct.unpack_from("<4sIIII", data)
    assert (magic, version, total, kind) == (b"glTF", 2, len(data), 0x4E4F534A)
    document = json.loads(data[20 : 20 + n_json])
    n_binary, kind = struct.unpack_from("<II", data, 20 + n_json)
    binary = data[28 + n_json :]
    assert kind == 0x004E4942 and n_binary == len(binary)
    assert n_json % 4 == n_binary % 4 == 0 and document["buffers"] == [{"byteLength": n_binary}]
    types = {5123: "<u2", 5125: "<u4", 5126: "<f4"}
    width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}
    (primitive,) = document["meshes"][0]["primitives"]
    named = dict(primitive["attributes"])
    if "indices" in primitive:
        named["indices"] = primitive["indices"]
    found = {}
    for name, number in named.items():
        accessor = document["accessors"][number]
        view = document["bufferViews"][accessor["bufferView"]]
        columns, dtype = width[accessor["type"]], types[accessor["componentType"]]
        assert view["byteOffset"] % 4 == 0
        found[name] = np.frombuffer(
            binary, dtype, accessor["count"] * columns, view["byteOffset"]
        ).reshape(-1, columns)
        assert found[name].nbytes == view["byteLength"]
        if accessor.get("normalized"):
            found[name] = found[name] / np.iinfo(dtype).max
    position = document["accessors"][named["POSITION"]]
    np.testing.assert_allclose(position["min"], found["POSITION"].min(0), rtol=1e-6)
    np.testing.assert_allclose(position["max"], found["POSITION"].max(0), rtol=1e-6)
    turn = Rotation.from_quat(document["nodes"][0]["rotation"])
    found["world"] = turn.apply(found["POSITION"])
    found["mode"] = np.array(primitive["mode"])
    return found


def check_glb(data: bytes, surface: voxeld.Surface) -> None:
    glb = read_glb(data)
    np.testing.assert_array_equal(glb["POSITION"], surface.vertices)
    np.testing.assert_array_equal(glb["NORMAL"], surface.normals)
    np.testing.assert_array_equal(glb["indices"].reshape(-1, 3), surface.triangles)
    np.testing.assert_array_equal(glb["_LABEL"][:, 0], surface.labels)
    np.testing.assert_allclose(glb["world"][:, 1], surface.vertices[:, 2], atol=1e-6)  # y is up
    linear = glb["COLOR_0"][:, :3]
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    assert np.abs(srgb * 255 - surface.colours).max() < 0.1
    assert (glb["COLOR_0"][:, 3] == 1).all() and glb["mode"] == 4


def check_obj(text: str, surface: voxeld.Surface) -> None:
    lines = [line.split() for line in text.splitlines()]
    v = np.array([line[1:] for line in lines if line[0] == "v"], float)
    vn = np.array([line[1:] for line in lines if line[0] == "vn"], float)
    f = np.array([[c.split("//") for c in line[1:]] for line in lines if line[0] == "f"], int)
    np.testing.assert_array_equal(v[:, :3].astype(np.float32), surface.vertices)
    np.testing.assert_allclose(v[:, 3:] * 255, surface.colours, atol=0.02)
    np.testing.assert_allclose(vn, surface.normals, atol=1e-5)
    np.testing.assert_array_equal(f[..., 0] - 1, surface.triangles)
    np.testing.assert_array_equal(f[..., 1], f[..., 0])


def test_meshes_are_written_as_glb_and_obj(
    client: voxeld.Client, daemon: Daemon, directory: Path
) -> None:
    volume = client.volume_create("v", 0.04, truncation_m=0.16, colour=True, labels=True)
    shot = shoot(0)
    labels = (1 + shot.colour[..., 0] // 100).astype(np.uint8).tobytes()
    volume.integrate(shot.depth, CAMERA, shot.pose, colour=shot.colour, labels=labels)
    surface = volume.extract()
    for maker in ("python", "voxelctl"):
        glb, obj, ply = (directory / f"{maker}.{ending}" for ending in ("glb", "obj", "ply"))
        if maker == "python":
            assert volume.write(glb) == volume.write(obj) == surface.n_vertices
        else:
            for path in (glb, obj, ply):
                words = ("--url", daemon.ipc, "volume", "extract", "v", path)
                run(BIN / "voxelctl", *words)
            assert b"property uchar label\n" in ply.read_bytes()[:500]
        check_glb(glb.read_bytes(), surface)
        check_obj(obj.read_text(), surface)
    points = volume.extract(points=True)
    volume.write(directory / "points.glb", points=True)
    glb = read_glb((directory / "points.glb").read_bytes())
    assert glb["mode"] == 0 and len(glb["POSITION"]) == points.n_vertices
    with pytest.raises(voxeld.InvalidArgument, match="path"):
        volume.write(directory / "mesh.stl")
    client.volume_create("empty", 0.1)
    words = ("--url", daemon.ipc, "volume", "extract", "empty", directory / "empty.glb")
    assert "without vertices" in run(BIN / "voxelctl", *words, code=1).stderr
    assert not (directory / "empty.glb").exists()


# Over HTTP ----------------------------------------------------------------------------------------


def curl(daemon: Daemon, path: str, *words: object) -> dict[str, object]:
    url = f"http://127.0.0.1:{daemon.http_port}{path}"
    done = subprocess.run(
        ["curl", "-sS", "--max-time", str(30 * SLOW), *map(str, words), url],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_curl_sends_depth_and_colour_as_parts(
    client: voxeld.Client, daemon: Daemon, directory: Path
) -> None:
    volume = client.volume_create("v", 0.02, truncation_m=0.08, colour=True, labels=True)
    shot = shoot(0)
    (directory / "depth.png").write_bytes(shot.png)
    (directory / "colour.png").write_bytes(png_of(shot.colour))
    (directory / "labels.png").write_bytes(png_of(np.full(shot.depth.shape, 5, np.uint8)))
    x, y, z, w = quaternion(shot.rotation)
    t = shot.translation
    query = (
        f"/v1/volume_integrate?name=v&fx={CAMERA.fx}&fy={CAMERA.fy}&cx={CAMERA.cx}&cy={CAMERA.cy}"
        f"&pose={t[0]},{t[1]},{t[2]},{x},{y},{z},{w}"
    )
    depth = ("-F", f"depth=@{directory}/depth.png")
    colour = ("-F", f"colour=@{directory}/colour.png")
    labels = ("-F", f"labels=@{directory}/labels.png")
    reply = curl(daemon, query, *colour, *depth, *labels)
    assert int(str(reply["nNew"])) > 100
    twin = client.volume_create("twin", 0.02, truncation_m=0.08, colour=True, labels=True)
    twin.integrate_bytes(
        shot.png, CAMERA, shot.pose, colour=png_of(shot.colour), labels=b"\5" * shot.depth.size
    )
    ours, theirs = volume.extract(), twin.extract()
    for name in ("vertices", "colours", "labels"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert (ours.labels == 5).mean() > 0.9
    assert "missing" in str(curl(daemon, query, *colour)["message"])
    assert "known: depth" in str(curl(daemon, query, *depth, "-F", "other=x")["message"])
    assert "two parts" in str(curl(daemon, query, *depth, *depth)["message"])
    other = "/v1/volume_integrate_points?name=v"
    assert "not possible" in str(curl(daemon, other, *depth)["message"])


def form(boundary: str = "x") -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="depth"\r\n\r\n'
    return head.encode() + shoot(0).png + f"\r\n--{boundary}--\r\n".encode()


@pytest.mark.parametrize("header", ["Origin", "Referer", "Cookie", "Sec-Fetch-Site"])
def test_pages_send_no_forms(client: voxeld.Client, daemon: Daemon, header: str) -> None:
    make(client)
    for more in ({}, {header: f"http://127.0.0.1:{daemon.http_port}"}):
        headers = {"Content-Type": "multipart/form-data; boundary=x", **more}
        path = f"/v1/volume_integrate?name=room&fx={CAMERA.fx}"
        reply = http_call(daemon, "POST", path, form(), headers)
        assert (reply.status == 200) == (not more)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", form()),
        ("multipart/form-data; boundary=", form()),
        ("multipart/form-data; boundary=" + "x" * 71, form("x" * 71)),
        ("multipart/form-data; boundary=y", form()),
        ("multipart/form-data; boundary=x", form()[:-6]),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n\r\n--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"a: b\r\n" * 5000 + b"\r\n--x--"),
        ("multipart/mixed; boundary=x", form()),
    ],
)
def test_broken_forms_are_refused(
    client: voxeld.Client, daemon: Daemon, content_type: str, body: bytes
) -> None:
    make(client)
    headers = {"Content-Type": content_type}
    reply = http_call(daemon, "POST", "/v1/volume_integrate?name=room&fx=100", body, headers)
    assert reply.status in (400, 415) and json.loads(reply.body)["code"] == "INVALID_ARGUMENT"
    assert client.volume("room").info().n_images == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_scan_files_over_http_and_voxelctl_are_as_from_python(
    client: voxeld.Client, daemon: Daemon, directory: Path
) -> None:
    points, _ = scan()
    path = directory / "scan.bin"
    points.tofile(path)  # KITTI's layout: the fourth number is the intensity
    volume = make(client)
    pose = wire_pose(0)
    volume.integrate_points(points[:, :3], pose, lidar=LIDAR, carve_m=3, range_max_m=9)
    make(client, "curl")
    numbers = ",".join(f"{v:.17g}" for v in (*pose.translation, *pose.rotation))
    beams = f"{ROWS},{COLUMNS},{LIDAR.top_deg},{LIDAR.bottom_deg}"
    query = f"name=curl&format=kitti&pose={numbers}&lidar={beams}&carve=3&range_max=9"
    form = ("-H", "Content-Type: application/octet-stream", "--data-binary", f"@{path}")
    reply = curl(daemon, f"/v1/volume_integrate_points?{query}", *form)
    assert int(str(reply["nUsed"])) == len(points)
    make(client, "ctl")
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = Rotation.from_quat(pose.rotation).as_matrix(), pose.translation
    np.savetxt(directory / "pose.txt", matrix, fmt="%.17g")
    ctl = (BIN / "voxelctl", "--url", daemon.ipc, "volume", "scan", "ctl", path)
    more = ("--format", "kitti", "--pose", directory / "pose.txt", "--lidar", beams)
    done = json.loads(run(*ctl, *more, "--carve", 3, "--range-max", 9, "--json").stdout)
    assert done["n_used"] == done["n_points"] == len(points)
    expected = volume.extract(points=True).vertices
    for name in ("curl", "ctl"):
        found = client.volume(name).extract(points=True).vertices
        assert abs(len(found) - len(expected)) < 3
        apart, _ = cKDTree(expected).query(found)
        assert (apart < 1e-3 * SIZE).mean() > 0.999
    for words, wrong in (
        (("--lidar", "1,2"), "ROWS,COLUMNS"),
        (("--azimuth", "0,360"), "goes with --lidar"),
        (("--lidar", beams, "--azimuth", "1"), "BEGIN,SPAN"),
    ):
        assert wrong in run(*ctl, "--format", "kitti", *words, code=2).stderr


# Refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"range_min_m": 5, "range_max_m": 4}, "depth_max_m"),
        ({"range_max_m": float("nan")}, "range_max_m"),
        ({"carve_m": -1}, "carve_m"),
        ({"weight": 1e9}, "weight"),
        ({"time_field": "missing"}, ""),
        ({"time_field": "t", "time_begin": 2, "time_end": 1}, "time_end"),
        ({"end_pose": Pose(translation=(1, 0, 0))}, "time_field"),
        ({"by_angle": True}, ""),
        ({"label_field": "t", "labels": [0]}, "labels"),
        ({"lidar": Lidar(columns=0, rows=9)}, "lidar"),
        ({"lidar": Lidar(columns=9, rows=2000)}, "lidar"),
        ({"lidar": Lidar(columns=9, elevations_deg=[1, 2])}, "lidar.elevations_deg"),
        ({"lidar": Lidar(columns=9, rows=3, elevations_deg=[2, 1])}, "lidar.elevations_deg"),
        ({"lidar": Lidar(columns=9, rows=4, top_deg=90, bottom_deg=0)}, "lidar.elevations_deg"),
        ({"lidar": LIDAR, "image_time": 2}, "image_time"),
    ],
)
def test_scans_with_wrong_numbers_are_refused(
    client: voxeld.Client, more: dict[str, object], field: str
) -> None:
    volume = make(client)
    points, _ = scan()
    with pytest.raises(voxeld.InvalidArgument) as caught:
        volume.integrate_points(cloud_of(points), **more)
    assert caught.value.field == field or field == ""
    assert volume.info().n_blocks == 0
    assert volume.integrate_points(np.full((5, 3), np.nan, np.float32)).n_dropped == 5
    assert volume.integrate_points(np.zeros((0, 3), np.float32)).n_points == 0
