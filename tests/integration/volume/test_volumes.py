# SPDX-License-Identifier: Apache-2.0
"""Volumes over both transports: against scenes that NumPy renders, a volume in float64, and
scikit-image's marching cubes."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from depth_scene import CAMERA, Grid, Shot, distance, png_of, quaternion, shoot
from harness import BACKEND, SLOW, SOURCE, Daemon, http_call, inflight_bytes, running, wait_until
from PIL import Image
from scipy.spatial import cKDTree
from skimage.measure import marching_cubes
from voxeld import Camera, Volume

SIZE = 0.02
TRUNCATION = 0.08


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        for info in connected.volumes():
            connected.volume_drop(info.name)
        yield connected


def make(client: voxeld.Client, name: str = "v", **more: object) -> Volume:
    return client.volume_create(name, SIZE, truncation_m=TRUNCATION, **more)


def fill(volume: Volume, n: int = 3) -> list[Shot]:
    shots = [shoot(i) for i in range(n)]
    for shot in shots:
        volume.integrate(shot.depth, CAMERA, shot.pose)
    return shots


def open_edges(triangles: np.ndarray) -> np.ndarray:
    """The directed edges without an opposite one; one that comes twice fails."""
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    assert (edges[:, 0] != edges[:, 1]).all()
    code = edges[:, 0].astype(np.int64) << 32 | edges[:, 1]
    assert len(np.unique(code)) == len(code)
    opposite = edges[:, 1].astype(np.int64) << 32 | edges[:, 0]
    return edges[~np.isin(code, opposite)]


def distance_to_triangles(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """From points to the nearest triangle above or below them, of those whose middles are near."""
    _, near = cKDTree(corners.mean(1)).query(points, k=8)
    a, b, c = (corners[near][:, :, i] for i in range(3))
    p = points[:, None]
    normal = np.cross(b - a, c - a)
    area = np.linalg.norm(normal, axis=-1)
    sides = [
        (np.cross(v - u, p - u) * normal).sum(-1) >= -1e-6 * area**2
        for u, v in ((a, b), (b, c), (c, a))
    ]
    height = np.abs(((p - a) * normal).sum(-1)) / np.maximum(area, 1e-12)
    return np.where(np.all(sides, axis=0), height, np.inf).min(1)


# Surfaces ----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [8, 16])
def test_surface_of_rendered_scene_is_where_it_was(client: voxeld.Client, block: int) -> None:
    volume = make(client, block=block, colour=True)
    for shot in (shoot(i) for i in range(4)):
        volume.integrate(shot.depth, CAMERA, shot.pose, colour=shot.colour)
    surface = volume.extract()
    off = distance(surface.vertices.astype(float))
    assert surface.n_vertices > 5000
    assert np.sqrt(np.mean(off**2)) < 0.5 * SIZE
    assert np.percentile(off, 99) < 2 * SIZE
    # Colours are the ball's, the wall's, or between them at its outline.
    on_wall = surface.vertices[:, 2] > 1.69
    assert np.median(surface.colours[on_wall], axis=0).tolist() == [30, 90, 220]
    on_ball = surface.vertices[:, 2] < 1.0
    assert np.median(surface.colours[on_ball], axis=0).tolist() == [200, 40, 30]
    # Normals look at the cameras.
    assert (surface.normals[on_wall] @ [0, 0, 1] < -0.9).mean() > 0.95
    np.testing.assert_allclose(np.linalg.norm(surface.normals, axis=1), 1, atol=1e-5)


def test_mesh_is_that_of_scikit_image(client: voxeld.Client) -> None:
    volume = make(client)
    shots = fill(volume)
    surface = volume.extract()
    edge = 8
    blocks = surface.blocks[:, :3]
    grid = Grid(blocks.min(0) * edge, (blocks.max(0) + 1) * edge, SIZE, TRUNCATION)
    for shot in shots:
        grid.integrate(shot)
    grid.keep_blocks(blocks, edge)
    padded = np.where(grid.weight > 0, grid.tsdf, 1.0)
    expected, faces, _, _ = marching_cubes(padded, 0.0, method="lorensen")
    # Keep vertices on edges whose cells are known; a vertex has one fractional coordinate.
    fraction = expected - np.floor(expected)
    axis = fraction.argmax(1)
    low = np.floor(expected).astype(int)
    used = grid.used_edges()
    keep = np.array([used[a][tuple(v)] for a, v in zip(axis, low, strict=True)])
    ours = surface.vertices / SIZE - 0.5 - grid.low
    assert abs(int(keep.sum()) - surface.n_vertices) < 0.005 * surface.n_vertices
    apart, _ = cKDTree(expected[keep]).query(ours)
    back, _ = cKDTree(ours).query(expected[keep])
    # A voxel between two pixels may take the other one in float32.
    assert np.quantile(apart, 0.995) < 0.01 and np.quantile(back, 0.995) < 0.01
    assert apart.max() < 1.0
    # The triangles of the same cells; flat ones may be cut by the other diagonal.
    middles = expected[faces].mean(1)
    faces = faces[grid.cells()[tuple(np.floor(middles).astype(int).T)]]
    assert abs(len(faces) - surface.n_triangles) < 0.005 * surface.n_triangles
    apart = distance_to_triangles(ours[surface.triangles].mean(1), expected[faces])
    assert np.quantile(apart, 0.99) < 0.1
    back = distance_to_triangles(expected[faces].mean(1), ours[surface.triangles])
    assert np.quantile(back, 0.99) < 0.1


def test_mesh_is_closed_inside_and_has_no_vertex_twice(client: voxeld.Client) -> None:
    volume = make(client)
    fill(volume)
    surface = volume.extract()
    assert len(np.unique(surface.vertices, axis=0)) == surface.n_vertices
    assert len(np.unique(surface.triangles)) == surface.n_vertices
    blocks = {tuple(b) for b in surface.blocks[:, :3].tolist()}
    voxels = np.floor(surface.vertices / SIZE - 0.5).astype(int)
    # An open edge lies where a voxel is unknown: outside all blocks, or behind the surface.
    ends = np.unique(open_edges(surface.triangles))
    assert len(ends) < 0.2 * surface.n_vertices
    # The middle of the ball's face is seen by all images: nothing is open there.
    middle = np.linalg.norm(surface.vertices[ends] - [0.05, -0.02, 0.78], axis=1) < 0.12
    assert not middle.any()
    assert {tuple(v) for v in (voxels // 8).tolist()} <= blocks | {
        (x + i, y + j, z + k) for x, y, z in blocks for i in (0, 1) for j in (0, 1) for k in (0, 1)
    }


def test_surface_since_a_stamp_replaces_blocks(client: voxeld.Client) -> None:
    volume = make(client)
    fill(volume, 2)
    before = volume.extract()
    assert before.is_whole
    assert volume.extract(since=before.stamp).n_blocks == 0
    far = shoot(7)
    volume.integrate(far.depth, CAMERA, far.pose)
    change = volume.extract(since=before.stamp)
    whole = volume.extract()
    assert not change.is_whole and 0 < change.n_blocks <= whole.n_blocks

    def by_block(surface: voxeld.Surface) -> dict[tuple[int, ...], bytes]:
        ends = surface.blocks[:, 3]
        begins = np.concatenate([[0], ends[:-1]])
        return {
            tuple(key): surface.vertices[surface.triangles[a:b]].tobytes()
            for key, a, b in zip(surface.blocks[:, :3].tolist(), begins, ends, strict=True)
        }

    merged = {**by_block(before), **by_block(change)}
    assert merged == by_block(whole)
    cleared = volume.clear(centre=(0, 0, 1), radius_m=0.4)
    assert cleared.n_removed > 0
    after = volume.extract(since=whole.stamp)
    assert after.is_whole and 0 < after.n_blocks < whole.n_blocks


def test_stamp_of_an_earlier_volume_gets_the_whole(client: voxeld.Client) -> None:
    old = make(client)
    fill(old, 1)
    stamp = old.extract().stamp
    client.volume_drop("v")
    new = make(client)
    assert new.info().stamp > stamp
    fill(new, 3)
    surface = new.extract(since=stamp)
    assert surface.is_whole and surface.n_blocks == new.extract().n_blocks


def test_points_and_boxes(client: voxeld.Client, tmp_path: Path) -> None:
    volume = make(client)
    fill(volume)
    points = volume.extract(points=True)
    mesh = volume.extract()
    assert points.n_triangles == 0 and points.n_vertices >= mesh.n_vertices
    every = {v.tobytes() for v in points.vertices}
    assert all(v.tobytes() in every for v in mesh.vertices)
    box = voxeld.VolumeBox((0.0, -0.2, 0.7), (0.3, 0.1, 1.0))
    part = volume.extract(box=box, points=True)
    inside = (part.vertices >= box.low).all(1) & (part.vertices < box.high).all(1)
    all_inside = (points.vertices >= box.low).all(1) & (points.vertices < box.high).all(1)
    assert 0 < inside.sum() == all_inside.sum() and part.n_vertices < points.n_vertices
    assert volume.extract(min_weight=100).n_vertices == 0
    assert volume.extract_ply(tmp_path / "m.ply") == mesh.n_vertices
    header, _, body = (tmp_path / "m.ply").read_bytes().partition(b"end_header\n")
    assert f"element face {mesh.n_triangles}\n".encode() in header
    rows = np.frombuffer(body, "<f4", mesh.n_vertices * 6).reshape(-1, 6)
    np.testing.assert_array_equal(rows[:, :3], mesh.vertices)
    np.testing.assert_array_equal(rows[:, 3:], mesh.normals)
    faces = np.frombuffer(body[mesh.n_vertices * 24 :], [("n", "u1"), ("v", "<i4", 3)])
    np.testing.assert_array_equal(faces["v"], mesh.triangles)


def test_picture_of_the_camera_is_its_depth(client: voxeld.Client) -> None:
    volume = make(client, colour=True)
    shot = shoot(0)
    for _ in range(2):
        volume.integrate_bytes(
            shot.png, Camera(0, 0, CAMERA.fx, CAMERA.fy, CAMERA.cx, CAMERA.cy), shot.pose,
            colour=png_of(shot.colour),
        )  # fmt: skip
    picture = volume.cast_rays(CAMERA, shot.pose, vertices=True, normals=True, colours=True)
    depth = picture.image()
    hit = depth > 0
    assert depth.shape == (120, 160) and picture.n_hits == hit.sum() > 0.9 * depth.size
    assert np.median(np.abs(depth - shot.depth)[hit]) < 0.25 * SIZE
    assert (distance(picture.vertices[hit.ravel()].astype(float)) < SIZE).mean() > 0.95
    assert np.median(picture.image("colours")[:10, :10], axis=(0, 1)).tolist() == [30, 90, 220]
    np.testing.assert_array_equal(picture.image("normals")[~hit], 0)


def test_large_pictures_are_cast_in_stages(client: voxeld.Client) -> None:
    volume = make(client)
    fill(volume)
    pose = shoot(0).pose
    bent = Camera(CAMERA.width, CAMERA.height, CAMERA.fx, CAMERA.fy, CAMERA.cx, CAMERA.cy, k1=1e-9)
    for camera in (CAMERA, bent):  # 19200 rays of 8192 steps are more than a stage has
        near = volume.cast_rays(camera, pose, depth_max_m=3, normals=True)
        far = volume.cast_rays(camera, pose, depth_max_m=1000, normals=True)
        assert near.n_hits == far.n_hits > 0.9 * 19200
        np.testing.assert_array_equal(near.depth, far.depth)
        np.testing.assert_array_equal(near.normals, far.normals)
    vast = Camera(2048, 2048, 1000.0, 1000.0, 1024.0, 1024.0, k1=1e-9)
    if BACKEND == "cpu":  # a GPU casts them
        with pytest.raises(voxeld.ResourceExhausted) as e:
            volume.cast_rays(vast, pose, depth_max_m=1000)
        assert e.value.field == "depth_max_m"
    volume.clear(all=True)
    empty = volume.cast_rays(vast, pose, depth_max_m=1000)
    assert empty.n_hits == 0 and not empty.depth.any()


def test_picture_in_stages_is_of_one_version(client: voxeld.Client) -> None:
    volume = make(client)
    shot = fill(volume, 1)[0]
    wide = Camera(320, 240, 2 * CAMERA.fx, 2 * CAMERA.fy, 2 * CAMERA.cx, 2 * CAMERA.cy)
    ends = threading.Event()

    def change() -> None:
        with voxeld.connect(client.url, timeout=30 * SLOW) as own:
            while not ends.is_set():
                own.volume("v").integrate(shot.depth, CAMERA, shot.pose)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        with pytest.raises(voxeld.Aborted) as e:
            for _ in range(200):
                volume.cast_rays(wide, shot.pose, depth_max_m=1000)
    finally:
        ends.set()
        changing.join()
    assert "was changed after" in str(e.value)
    assert volume.cast_rays(wide, shot.pose, depth_max_m=1000).n_hits > 0


def test_surface_in_parts_is_the_whole(client: voxeld.Client) -> None:
    volume = make(client)
    fill(volume)
    whole = volume.extract()
    corners, first = [], 0
    while True:
        part = volume.extract(first=first, limit=100)
        assert part.n_blocks <= 100
        corners.append(part.vertices[part.triangles])
        first = part.next
        if first == 0:
            break
    assert len(corners) == -(-whole.n_blocks // 100)
    np.testing.assert_array_equal(np.concatenate(corners), whole.vertices[whole.triangles])


# Life --------------------------------------------------------------------------------------


def test_create_again_and_list(client: voxeld.Client, daemon: Daemon) -> None:
    make(client, "b", ttl_s=600)
    make(client, "a", compact=True, max_weight=30, origin=(10, 0, -1))
    assert make(client, "b", ttl_s=600).info().ttl_s == 600
    with pytest.raises(voxeld.AlreadyExists):
        make(client, "b")
    for weight in (300, 10.5):
        for _ in range(2):
            make(client, f"w{int(weight)}", compact=True, max_weight=weight)
    assert client.volume("w300").info().max_weight == 255
    assert client.volume("w10").info().max_weight == 10
    for name in ("w10", "w300"):
        client.volume_drop(name)
    assert [v.name for v in client.volumes()] == ["a", "b"]
    info = client.volume("a").info()
    assert (info.compact, info.max_weight, info.origin) == (True, 30, (10, 0, -1))
    over_http = http_call(daemon, "GET", "/v1/volumes").json()
    assert [v["name"] for v in over_http["volumes"]] == ["a", "b"]
    assert http_call(daemon, "GET", "/v1/volumes/a").json()["volume"]["compact"] is True
    metrics = http_call(daemon, "GET", "/metrics").body.decode()
    assert "\nvoxeld_volumes 2\n" in metrics and 'voxeld_volume_bytes{use="used"}' in metrics
    assert client.volume_drop("a") and not client.volume_drop("a", missing_ok=True)
    with pytest.raises(voxeld.NotFound):
        client.volume("a")


def test_origin_is_where_a_far_map_keeps_its_digits(client: voxeld.Client) -> None:
    origin = np.array([500000.0, 5700000.0, 120.0])
    near, far = make(client, "near"), make(client, "far", origin=tuple(origin))
    shot = shoot(1)
    moved = voxeld.Pose(tuple(shot.translation + origin), shot.pose.rotation)
    near.integrate(shot.depth, CAMERA, shot.pose)
    far.integrate(shot.depth, CAMERA, moved)
    a, b = near.extract(), far.extract()
    assert abs(a.n_vertices - b.n_vertices) < 0.01 * a.n_vertices
    apart, _ = cKDTree(a.vertices).query(b.vertices)
    assert np.quantile(apart, 0.99) < 1e-3


def test_unused_volume_goes_when_its_time_is_over(client: voxeld.Client) -> None:
    make(client, "short", ttl_s=0.3)
    make(client, "shortest", ttl_s=1e-10)
    wait_until(lambda: not client.volumes(), 20 * SLOW, "the volume's end")


def test_repeated_image_counts_once(client: voxeld.Client) -> None:
    volume = make(client)
    shot = shoot(0)
    first = volume.integrate(shot.depth, CAMERA, shot.pose)
    with voxeld.connect(client.url, client_id="again") as other:
        one = other.volume("v").integrate(shot.depth, CAMERA, shot.pose, sequence=5)
        two = other.volume("v").integrate(shot.depth, CAMERA, shot.pose, sequence=5)
    assert one.stamp == two.stamp == first.stamp + 1
    assert volume.info().n_images == 2


def test_two_clients_at_once_are_as_one_after_the_other(client: voxeld.Client) -> None:
    shot = shoot(2)
    make(client, "both")
    serial = make(client, "serial")
    for _ in range(12):
        serial.integrate(shot.depth, CAMERA, shot.pose)

    def work() -> None:
        with voxeld.connect(client.url, timeout=30 * SLOW) as own:
            volume = own.volume("both")
            for _ in range(6):
                volume.integrate(shot.depth, CAMERA, shot.pose)
                assert volume.extract().n_vertices == expected.n_vertices

    expected = serial.extract()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    both = client.volume("both")
    assert both.info().n_images == 12
    np.testing.assert_array_equal(both.extract().vertices, expected.vertices)


# What is wrong -------------------------------------------------------------------------------


def test_hostile_cameras_and_images_are_refused(client: voxeld.Client) -> None:
    volume = make(client)
    shot = shoot(0)
    good = vars(CAMERA)

    def refused(field: str, depth: bytes = shot.png, **more: object) -> str:
        camera = Camera(**{**good, **more.pop("camera", {})})
        with pytest.raises(voxeld.InvalidArgument) as e:
            volume.integrate_bytes(depth, camera, more.pop("pose", shot.pose), **more)
        assert e.value.field == field, str(e.value)
        return str(e.value)

    for wrong in (
        {"fx": 0.0}, {"fx": -5.0}, {"fx": float("nan")}, {"fy": float("inf")}, {"cx": 1e9},
        {"k1": float("nan")}, {"k1": 1e6}, {"width": 161}, {"height": 5},
    ):  # fmt: skip
        refused("camera", camera=wrong)
    assert "160 x 120" in refused("camera", camera={"width": 80, "height": 60})
    refused("T_map_camera", pose=voxeld.Pose((0, float("nan"), 0)))
    refused("T_map_camera", pose=voxeld.Pose((0, 0, 0), (0, 0, 0, 2.0)))
    refused("depth_max_m", depth_min_m=2.0, depth_max_m=1.0)
    refused("depth_scale", depth_scale=float("nan"))
    refused("weight", weight=-1.0)
    for cut in (0, 1, 30, 100, len(shot.png) - 20):
        refused("depth", shot.png[:cut])
    refused("depth", b"\x89PNG\r\n\x1a\n" + bytes(50))
    assert "16 bits" in refused("depth", png_of(np.zeros((120, 160), np.uint8)))
    assert "38400" in refused("depth", bytes(100), depth_type="uint16")
    refused("colour", colour=b"not a picture")
    assert "80 x 60" in refused("colour", colour=png_of(np.zeros((60, 80, 3), np.uint8)))
    refused("colour", colour=bytes(7), colour_type="rgb")
    assert volume.info().n_images == 0 and volume.info().n_blocks == 0
    with pytest.raises(voxeld.InvalidArgument):
        volume.cast_rays(Camera(100000, 100000, 10.0), shot.pose)
    with pytest.raises(voxeld.InvalidArgument):
        volume.extract(box=voxeld.VolumeBox((1, 0, 0), (0, 1, 1)))
    with pytest.raises(voxeld.FailedPrecondition):
        volume.cast_rays(CAMERA, shot.pose, colours=True)
    with pytest.raises(voxeld.InvalidArgument):
        volume.clear()


def test_grey_and_transparent_pictures_are_colours(client: voxeld.Client) -> None:
    shot = shoot(0)
    grey = np.full((120, 160), 77, np.uint8)
    clear = np.dstack([shot.colour, grey])
    for name, picture in (("grey", grey), ("rgba", clear)):
        volume = make(client, name, colour=True)
        volume.integrate_bytes(shot.png, CAMERA, shot.pose, colour=png_of(picture))
    assert (client.volume("grey").extract().colours == 77).all()
    wall = client.volume("rgba").extract()
    assert np.median(wall.colours[wall.vertices[:, 2] > 1.69], axis=0).tolist() == [30, 90, 220]


def test_depth_that_is_none_changes_nothing(client: voxeld.Client) -> None:
    volume = make(client)
    n_bytes = volume.info().n_bytes
    for value in (np.nan, np.inf, -np.inf, -1.0, 0.0, 100.0):
        done = volume.integrate(np.full((120, 160), value, np.float32), CAMERA)
        assert (done.n_touched, done.n_blocks) == (0, 0)
    for value in (0, 65535):
        done = volume.integrate(np.full((120, 160), value, np.uint16), CAMERA)
        assert (done.n_touched, done.n_blocks) == (0, 0)
    assert volume.info().n_bytes == n_bytes  # nothing of the images stays
    assert volume.extract().n_vertices == 0
    assert volume.cast_rays(CAMERA).n_hits == 0


def test_bad_parameters_are_refused(client: voxeld.Client) -> None:
    for field, wrong in (
        ("voxel_size_m", {"voxel_size_m": float("nan")}),
        ("voxel_size_m", {"voxel_size_m": 0.0}),
        ("truncation_m", {"truncation_m": 0.001}),
        ("truncation_m", {"truncation_m": 1000.0}),
        ("block", {"block": 7}),
        ("max_weight", {"max_weight": -1.0}),
        ("max_weight", {"max_weight": 0.5}),
        ("origin", {"origin": (0, 0, float("inf"))}),
        ("ttl_s", {"ttl_s": 1e9}),
        ("name", {"name": "Not a name"}),
    ):
        arguments = {"name": "v", "voxel_size_m": SIZE, **wrong}
        with pytest.raises(voxeld.InvalidArgument) as e:
            client.volume_create(**arguments)
        assert e.value.field == field


def test_volume_stays_within_its_bytes(client: voxeld.Client) -> None:
    volume = make(client, "small", max_bytes=2 << 20)
    shots = [shoot(i) for i in range(6)]
    with pytest.raises(voxeld.ResourceExhausted):
        for shot in shots:
            volume.integrate(shot.depth, CAMERA, shot.pose)
    before = volume.info()
    surface = volume.extract()
    with pytest.raises(voxeld.ResourceExhausted):
        for shot in shots:
            volume.integrate(shot.depth, CAMERA, shot.pose)
    assert volume.info().n_blocks >= before.n_blocks
    assert surface.n_vertices > 0


def test_limits_are_named(directory: Path) -> None:
    limits = {"volume_bytes": 3 << 20}
    with running(directory, {"limits": limits}) as daemon, voxeld.connect(daemon.ipc) as client:
        volume = make(client)
        with pytest.raises(voxeld.ResourceExhausted) as e:
            for i in range(6):
                shot = shoot(i)
                volume.integrate(shot.depth, CAMERA, shot.pose)
        assert "limits.volume_bytes of 3145728" in str(e.value)


def test_decoded_pictures_count_as_requests_in_flight(directory: Path) -> None:
    limits = {"inflight_bytes": 16 << 20, "message_bytes": 4 << 20}
    large = png_of(np.zeros((2000, 2000), np.uint8))  # 7 bytes a pixel when it is decoded
    with running(directory, {"limits": limits}) as daemon, voxeld.connect(daemon.ipc) as client:
        volume, shot = make(client, colour=True), shoot(0)
        with pytest.raises(voxeld.ResourceExhausted) as e:
            volume.integrate_bytes(
                shot.png, CAMERA, shot.pose, colour=large,
                colour_camera=Camera(2000, 2000, 1000.0),
            )  # fmt: skip
        assert "limits.inflight_bytes" in str(e.value)
        wait_until(lambda: inflight_bytes(daemon) == 0, 10 * SLOW, "all bytes given back")
        volume.integrate_bytes(shot.png, CAMERA, shot.pose, colour=png_of(shot.colour))
        wait_until(lambda: inflight_bytes(daemon) == 0, 10 * SLOW, "all bytes given back")


# HTTP --------------------------------------------------------------------------------------


def test_depth_file_is_the_body_of_a_post(daemon: Daemon, client: voxeld.Client) -> None:
    volume = make(client)
    shot = shoot(3)
    q = shot.pose.rotation
    pose = ",".join(str(v) for v in (*shot.translation, *q))
    query = f"name=v&fx={CAMERA.fx}&fy={CAMERA.fy}&cx={CAMERA.cx}&cy={CAMERA.cy}&pose={pose}"

    def post(extra: str, body: bytes, content: str = "image/png") -> tuple[int, dict]:
        headers = {"Content-Type": content}
        path = f"/v1/volume_integrate?{query}{extra}"
        reply = http_call(daemon, "POST", path, body, headers)
        return reply.status, reply.json()

    status, reply = post("&format=png", shot.png)
    assert status == 200 and int(reply["nTouched"]) > 0
    raw = shot.depth.astype("<f4").tobytes()
    status, again = post("&format=float32&width=160&height=120", raw, "application/octet-stream")
    assert status == 200 and int(again["stamp"]) == int(reply["stamp"]) + 1
    assert volume.info().n_images == 2
    for extra, field in (
        ("&format=jpeg", "format"), ("&format=png&fx=3", "fx"), ("&format=png&what=3", "what"),
        ("&format=png&depth_max=x", "depth_max"),
    ):  # fmt: skip
        status, reply = post(extra, shot.png)
        assert status == 400 and reply["field"] == field
    status, _ = post("&format=png", shot.png, "text/plain")
    assert status in (400, 415)
    assert volume.info().n_images == 2


def test_json_makes_a_volume_and_gets_a_mesh(daemon: Daemon, client: voxeld.Client) -> None:
    def post(method: str, message: dict) -> dict:
        reply = http_call(daemon, "POST", f"/v1/{method}", message)
        assert reply.status == 200, reply.body
        return reply.json()

    post("volume_create", {"name": "j", "voxelSizeM": 0.05})
    shot = shoot(0)
    camera = {k: v for k, v in vars(CAMERA).items() if v}
    depth = base64.b64encode(shot.png).decode()
    post("volume_integrate", {"name": "j", "camera": camera, "depth": depth})
    mesh = post("volume_extract", {"name": "j"})
    n = int(mesh["nVertices"])
    assert mesh["vertices"]["shape"] == [str(n), "3"] and n > 100
    ply = post("volume_extract", {"name": "j", "format": "VOLUME_PLY", "points": True})
    assert base64.b64decode(ply["ply"]).startswith(b"ply\n")
    client.volume_drop("j")


# Real images ---------------------------------------------------------------------------------


def test_real_images_give_their_room(client: voxeld.Client) -> None:
    root = Path(os.environ.get("VOXELD_DATA", SOURCE.parent / "shared" / "data"))
    folder = root / "rgbd" / "7scenes"
    if not folder.exists():
        pytest.skip("7-Scenes is not here: it is not for redistribution")
    k = np.loadtxt(folder / "camera-intrinsics.txt")
    camera = Camera(0, 0, k[0, 0], k[1, 1], k[0, 2], k[1, 2])
    volume = client.volume_create("room", 0.02, truncation_m=0.06, colour=True)
    names = sorted(folder.glob("*.depth.png"))[:: 8 if SLOW == 1 else 20]
    for name in names:
        pose = np.loadtxt(str(name).replace("depth.png", "pose.txt"))
        at = voxeld.Pose(tuple(pose[:3, 3]), quaternion(pose[:3, :3]))
        colour = Path(str(name).replace("depth.png", "color.jpg")).read_bytes()
        volume.integrate_bytes(name.read_bytes(), camera, at, colour=colour)
    surface = volume.extract()
    assert surface.n_vertices > 10000
    # The last image's pixels lie on it.
    p = (surface.vertices - pose[:3, 3]) @ pose[:3, :3]
    u = np.round(p[:, 0] / p[:, 2] * k[0, 0] + k[0, 2]).astype(int)
    v = np.round(p[:, 1] / p[:, 2] * k[1, 1] + k[1, 2]).astype(int)
    depth = np.asarray(Image.open(names[-1])).astype(float) / 1000
    seen = (p[:, 2] > 0) & (u >= 0) & (u < 640) & (v >= 0) & (v < 480)
    z = depth[v[seen], u[seen]]
    off = np.abs(z - p[seen, 2])[(z > 0) & (z < 3)]
    assert np.median(off) < 0.02 and (off < 0.06).mean() > 0.75
