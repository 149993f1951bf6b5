# SPDX-License-Identifier: Apache-2.0
"""Scenes over both transports: edits and queries against a dense grid."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import (
    OK,
    Daemon,
    array_of,
    common_pb2,
    http_call,
    running,
    scene_pb2,
    tensor_of,
    wait_until,
)
from scenes import (
    FREE,
    OCCUPIED,
    UNKNOWN,
    Grid,
    Scenes,
    ball,
    box,
    check_dense,
    points,
    spec,
    vec,
)


@pytest.fixture
def scenes(daemon: Daemon) -> Iterator[Scenes]:
    with Scenes(daemon) as client:
        for info in client.call("scene_list").scenes:
            client.call("scene_drop", name=info.name)
        yield client


def box_of(low: Any, high: Any) -> scene_pb2.SceneBox:
    return scene_pb2.SceneBox(low=vec(*low), high=vec(*high))


def test_ball_has_the_voxels_that_brute_force_finds(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(7))
    grid = Grid(7)
    centre, radius = (0.512, -1.237, 0.333), 2.345
    inside = grid.in_ball(centre, radius)
    reply = scenes.edit("s", ball(centre, radius))
    assert reply.change.version == 2
    assert reply.change.n_added == inside.sum() > 50000
    assert reply.change.n_removed == reply.change.n_changed == reply.change.n_freed == 0
    assert reply.change.n_new_nodes > 0
    grid.apply(inside, "SCENE_FILL")
    check_dense(scenes, "s", grid)
    again = scenes.edit("s", ball(centre, radius)).change
    assert (again.version, again.n_added, again.n_new_nodes) == (3, 0, 0)


def random_operation(rng: np.random.Generator, grid: Grid) -> scene_pb2.SceneOperation:
    """A random operation, also applied to the grid; metres."""
    half = grid.side * grid.size / 2
    action = str(rng.choice(["FILL", "FILL", "FILL", "ERASE", "SET_FREE", "PAINT", "REPLACE"]))
    action = "SCENE_" + action
    material, source = (int(m) for m in rng.integers(0, 4, 2))
    operation = scene_pb2.SceneOperation(action=action, material=material, from_material=source)
    a, b = rng.uniform(-1.2 * half, 1.2 * half, (2, 3))
    radius = float(rng.uniform(0, half))
    shape = rng.integers(0, 6)
    if shape == 0:
        low, high = np.minimum(a, b), np.maximum(a, b) + 1e-6
        operation.box.CopyFrom(box_of(low, high))
        mask = grid.in_box(low, high)
    elif shape == 1:
        operation.ball.CopyFrom(scene_pb2.SceneBall(centre=vec(*a), radius=radius))
        mask = grid.in_ball(a, radius)
    elif shape == 2:
        operation.capsule.CopyFrom(
            scene_pb2.SceneCapsule(a=vec(*a), b=vec(*b), radius=radius / 3)
        )
        mask = grid.in_capsule(a, b, radius / 3)
    elif shape == 3:
        axis = int(rng.integers(0, 3))
        normal = np.zeros(3)
        normal[axis] = rng.choice([-2.5, 0.3])
        offset = float(normal[axis] * a[axis])
        operation.half_space.CopyFrom(
            scene_pb2.SceneHalfSpace(normal=vec(*normal), offset=offset)
        )
        plane = grid.units(a)[axis]
        c = grid.centres[..., axis]
        mask = c <= plane if normal[axis] > 0 else c >= plane
    elif shape == 4:
        at = rng.uniform(-1.1 * half, 1.1 * half, (500, 3))
        operation.points.points.CopyFrom(tensor_of(at))
        mask = grid.in_points(grid.units(at) // 256)
    else:
        cell = int(rng.integers(1, 5)) * grid.size
        heights = rng.uniform(-half, half, (9, 7)).astype(np.float32)
        heights[rng.random((9, 7)) < 0.2] = np.nan
        operation.heightfield.CopyFrom(
            scene_pb2.SceneHeightfield(
                heights=tensor_of(heights), x=a[0], y=a[1], cell=cell, low_z=-half / 2
            )
        )
        mask = in_heights(grid, heights, a, cell, -half / 2)
    grid.apply(mask, action, material, source)
    return operation


def in_heights(
    grid: Grid, heights: np.ndarray, at: Any, cell: float, low_z: float
) -> np.ndarray:
    low = grid.units([at[0], at[1], low_z])
    c = grid.centres
    k = (c[..., :2] - low[:2]) // grid.length(cell)
    inside = ((k >= 0) & (k < heights.shape)).all(-1) & (c[..., 2] >= low[2])
    k = np.where(inside[..., None], k, 0)
    metres = heights.astype(np.float64)
    top = np.nan_to_num((metres - grid.origin[2]) / grid.size * 256, nan=-(2.0**40))
    return inside & (c[..., 2] < np.rint(top).astype(np.int64)[k[..., 0], k[..., 1]])


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_random_lists_of_operations_match_a_grid(scenes: Scenes, bits: int) -> None:
    rng = np.random.default_rng(bits)
    grid = Grid(5, tracks_free=True)
    scenes.call("scene_create", name="s", spec=spec(5, bits=bits, track_free=True))
    for _ in range(12):
        before = grid.states.copy(), grid.materials.copy()
        operations = [random_operation(rng, grid) for _ in range(rng.integers(1, 6))]
        response = scenes.send("scene_edit", name="s", operations=operations)
        if response.header.code == common_pb2.OUT_OF_RANGE:
            np.testing.assert_array_equal(grid.states, before[0])
            continue
        assert response.header.code == OK, response.header
        check_dense(scenes, "s", grid)
        if len(operations) == 1:
            change = response.scene_edit.change
            was, now = before[0] == OCCUPIED, grid.states == OCCUPIED
            assert change.n_added == (now & ~was).sum()
            assert change.n_removed == (was & ~now).sum()
            other = now & was & (grid.materials != before[1])
            assert change.n_changed == other.sum()
            assert change.n_freed == ((grid.states == FREE) & (before[0] != FREE)).sum()


def test_copy_turns_and_mirrors_whole_voxels(scenes: Scenes) -> None:
    rng = np.random.default_rng(5)
    grid = Grid(5)
    scenes.call("scene_create", name="s", spec=spec(5, bits=8))
    voxels = rng.integers(0, 32, (4000, 3)).astype(np.int32)
    materials = rng.integers(0, 256, 4000).astype(np.uint16)
    scenes.edit("s", points(voxels, materials=materials))
    for voxel, material in zip(voxels, materials, strict=True):
        grid.apply(grid.in_points(voxel[None]), "SCENE_FILL", int(material))
    check_dense(scenes, "s", grid)
    matrix = np.array([[0, -1, 0], [1, 0, 0], [0, 0, -1]])
    low, high, source = np.array([3, 4, 5]), np.array([14, 20, 12]), np.array([25, 2, 30])
    copy = scene_pb2.SceneCopy(
        **{"from": vec(*(source + 0.5))}, matrix=matrix.ravel(), copy_empty=True
    )
    operation = box(low, high, "SCENE_COPY", copy=copy)
    scenes.edit("s", operation, in_voxels=True)
    states, was = grid.states.copy(), grid.materials.copy()
    for p in np.ndindex(*(high - low)):
        at = source + matrix @ np.array(p)
        inside = ((at >= 0) & (at < 32)).all()
        grid.states[tuple(low + p)] = states[tuple(at)] if inside else UNKNOWN
        grid.materials[tuple(low + p)] = was[tuple(at)] if inside else 0
    check_dense(scenes, "s", grid)


def test_wall_is_seen_at_its_distance(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(10, 0.05, 8))
    scenes.edit("s", box((3, -5, -5), (3.1, 5, 5), material=7))
    rng = np.random.default_rng(1)
    origins = rng.uniform(-2, 2, (5000, 3))
    targets = np.column_stack([np.full(5000, 3.0), rng.uniform(-4.9, 4.9, (5000, 2))])
    directions = (targets - origins) * rng.uniform(0.1, 10, (5000, 1))
    reply = scenes.call(
        "scene_cast_rays",
        name="s",
        origins=tensor_of(origins),
        directions=tensor_of(directions),
    )
    expected = np.linalg.norm(targets - origins, axis=1)
    np.testing.assert_allclose(array_of(reply.distances), expected, rtol=1e-5)
    assert reply.n_hits == 5000
    assert (array_of(reply.normals) == [-1, 0, 0]).all()
    assert (array_of(reply.materials) == 7).all()
    voxels = np.floor((targets + [1e-9, 0, 0] - -25.6) / 0.05).astype(np.int32)
    assert (np.abs(array_of(reply.voxels) - voxels).max(1) <= 1).all()
    assert (array_of(reply.voxels)[:, 0] == voxels[0, 0]).all()
    # One origin for all, away from the wall, and a range that ends before it.
    away = scenes.call(
        "scene_cast_rays",
        name="s",
        origins=tensor_of(np.zeros((1, 3), np.float32)),
        directions=tensor_of(np.array([[-1, 0, 0], [1, 0, 0], [0, 0, 0], [np.nan, 0, 1]])),
    )
    np.testing.assert_allclose(array_of(away.distances), [-1, 3, -1, -1], rtol=1e-6)
    assert (array_of(away.voxels)[[0, 2, 3]] == -1).all() and away.n_hits == 1
    for reach, n_hits in ((2.99, 0), (3.01, 1)):
        near = scenes.call(
            "scene_cast_rays",
            name="s",
            origins=tensor_of(np.zeros((1, 3))),
            directions=tensor_of(np.array([[2.0, 0, 0]])),
            max_range_m=reach,
        )
        assert near.n_hits == n_hits
    inside = scenes.call(
        "scene_cast_rays",
        name="s",
        origins=tensor_of(np.array([[3.05, 0, 0]])),
        directions=tensor_of(np.array([[1.0, 0, 0]])),
    )
    assert array_of(inside.distances)[0] == 0 and not array_of(inside.normals).any()


def random_scene(scenes: Scenes, grid: Grid, seed: int, bits: int = 4) -> None:
    rng = np.random.default_rng(seed)
    scenes.call("scene_create", name="s", spec=spec(5, bits=bits, track_free=True))
    while (grid.states == OCCUPIED).sum() < 500 or (grid.states == FREE).sum() < 500:
        operations = [random_operation(rng, grid) for _ in range(4)]
        assert scenes.send("scene_edit", name="s", operations=operations).header.code == OK


def test_values_at_metres_and_voxels_match_a_grid(scenes: Scenes) -> None:
    grid = Grid(5, tracks_free=True)
    random_scene(scenes, grid, 7)
    rng = np.random.default_rng(2)
    at = rng.uniform(-2, 2, (20000, 3))
    at[::100] = np.nan
    voxels = np.where(np.isnan(at), -1, grid.units(np.nan_to_num(at)) // 256)
    inside = grid.is_inside(voxels)
    index = tuple(np.where(inside[:, None], voxels, 0).T)
    states = np.where(inside, grid.states[index], UNKNOWN)
    materials = np.where(inside & (states == OCCUPIED), grid.materials[index], 0)
    for sent in (at, voxels.astype(np.int32), voxels.astype(np.int64)):
        reply = scenes.call("scene_values", name="s", points=tensor_of(sent))
        np.testing.assert_array_equal(array_of(reply.states), states)
        np.testing.assert_array_equal(array_of(reply.materials), materials)
        assert reply.seen.version == scenes.call("scene_get", name="s").scene.version
    assert set(states) == {UNKNOWN, OCCUPIED, FREE}
    none = scenes.call("scene_values", name="s", points=tensor_of(np.zeros((0, 3))))
    assert list(none.states.shape) == [0] and none.states.data == b""


def test_nearest_voxel_is_the_one_that_brute_force_finds(scenes: Scenes) -> None:
    grid = Grid(5, tracks_free=True)
    random_scene(scenes, grid, 8)
    rng = np.random.default_rng(3)
    at = rng.uniform(-2.2, 2.2, (300, 3))
    at[5] = np.inf
    radius = 0.35
    reply = scenes.call("scene_nearest", name="s", points=tensor_of(at), radius_m=radius)
    occupied = grid.occupied()
    found = 0
    for i, p in enumerate(at):
        voxel = array_of(reply.voxels)[i]
        distance = array_of(reply.distances)[i]
        if not np.isfinite(p).all():
            assert distance == -1 and (voxel == -1).all()
            continue
        d = occupied * 256 + 128 - grid.units(p)
        squares = (d * d).sum(-1)
        best = squares.min()
        if best > grid.length(radius) ** 2:
            assert distance == -1 and (voxel == -1).all()
            continue
        found += 1
        mine = voxel.astype(np.int64) * 256 + 128 - grid.units(p)
        assert (mine * mine).sum() == best and grid.states[tuple(voxel)] == OCCUPIED
        np.testing.assert_allclose(distance, np.sqrt(best) / 256 * grid.size, rtol=1e-6)
        assert array_of(reply.materials)[i] == grid.materials[tuple(voxel)]
    assert reply.n_found == found and 0 < found < 300


@pytest.mark.parametrize("shape", ["boxes", "balls"])
def test_overlap_counts_what_is_in_each_region(scenes: Scenes, shape: str) -> None:
    grid = Grid(5, tracks_free=True)
    random_scene(scenes, grid, 9)
    rng = np.random.default_rng(4)
    n = 60
    low = rng.uniform(-2, 2, (n, 3))
    if shape == "boxes":
        rows = np.column_stack([low, low + rng.uniform(0, 2, (n, 3))])
        rows[0] = [-1e9] * 3 + [1e9] * 3
        rows[1] = [0] * 6
        masks = [grid.in_box(r[:3].clip(-1e4, 1e4), r[3:].clip(-1e4, 1e4)) for r in rows]
    else:
        rows = np.column_stack([low, rng.uniform(0, 1, n)])
        masks = [grid.in_ball(r[:3], r[3]) for r in rows]
    reply = scenes.call("scene_overlap", name="s", counts=True, **{shape: tensor_of(rows)})
    states = [np.bitwise_or.reduce(grid.states[m], initial=0) for m in masks]
    np.testing.assert_array_equal(array_of(reply.states), states)
    np.testing.assert_array_equal(
        array_of(reply.n_occupied), [(grid.states[m] == OCCUPIED).sum() for m in masks]
    )
    np.testing.assert_array_equal(
        array_of(reply.n_free), [(grid.states[m] == FREE).sum() for m in masks]
    )
    bare = scenes.call("scene_overlap", name="s", **{shape: tensor_of(rows)})
    np.testing.assert_array_equal(array_of(bare.states), states)
    assert not bare.HasField("n_occupied") and not bare.HasField("n_free")


def test_export_by_parts_is_the_whole(scenes: Scenes) -> None:
    grid = Grid(5, tracks_free=True)
    random_scene(scenes, grid, 10)
    for level, free in ((0, False), (0, True), (2, False)):
        kind = FREE if free else OCCUPIED
        fields = {"name": "s", "level": level, "free": free, "with_counts": True}
        whole = scenes.call("scene_export", **fields)
        cells, counts = np.unique(
            np.argwhere(grid.states == kind) >> level, axis=0, return_counts=True
        )
        got = array_of(whole.cells)
        order = np.lexsort(got.T[::-1])
        np.testing.assert_array_equal(got[order], cells)
        np.testing.assert_array_equal(array_of(whole.counts)[order], counts)
        assert whole.n_cells == len(cells)
        assert whole.cell_size_m == pytest.approx(0.1 * 2**level)
        parts = [
            array_of(scenes.call("scene_export", first=i, limit=97, **fields).cells)
            for i in range(0, len(cells) + 97, 97)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), got)
    some = box_of((-0.45, -1, -0.2), (0.9, 1.1, 0.7))
    part = scenes.call("scene_export", name="s", box=some)
    mask = grid.in_box((-0.45, -1, -0.2), (0.9, 1.1, 0.7)) & (grid.states == OCCUPIED)
    got = array_of(part.cells)
    np.testing.assert_array_equal(got[np.lexsort(got.T[::-1])], np.argwhere(mask))


def test_dense_export_of_coarse_cells_and_beyond_the_scene(scenes: Scenes) -> None:
    grid = Grid(5, tracks_free=True)
    random_scene(scenes, grid, 11)
    reply = scenes.call(
        "scene_export",
        name="s",
        format="SCENE_DENSE",
        level=2,
        in_voxels=True,
        box=box_of((-5, 3, 8), (30, 40, 17)),
    )
    states = array_of(reply.states)
    assert list(reply.low_cell) == [-2, 0, 2] and states.shape == (10, 10, 3)
    padded = np.full((64, 64, 64), UNKNOWN, np.uint8)
    padded[16:48, 16:48, 16:48] = grid.states
    blocks = padded.reshape(16, 4, 16, 4, 16, 4)
    sets = np.bitwise_or.reduce(np.bitwise_or.reduce(np.bitwise_or.reduce(blocks, 5), 3), 1)
    np.testing.assert_array_equal(states, sets[2:12, 4:14, 6:9])


def test_ply_export_is_read_by_name(scenes: Scenes) -> None:
    palette = [
        scene_pb2.SceneMaterial(name="wall", rgb=0x112233),
        scene_pb2.SceneMaterial(rgb=0xFF8000),
    ]
    scenes.call("scene_create", name="s", spec=spec(6, bits=8, palette=palette))
    voxels = np.array([[1, 2, 3], [4, 5, 6], [40, 41, 42]], np.int32)
    scenes.edit("s", points(voxels, materials=np.array([0, 1, 9], np.uint8)))
    ply = scenes.call("scene_export", name="s", format="SCENE_PLY").ply
    head, body = ply.split(b"end_header\n")
    names = [x.split()[2].decode() for x in io.BytesIO(head) if x.startswith(b"property")]
    assert names == ["x", "y", "z", "material", "red", "green", "blue"]
    dtype = np.dtype(
        [(n, t) for n, t in zip(names, ["<f8"] * 3 + ["<u2"] + ["u1"] * 3, strict=True)]
    )
    rows = np.frombuffer(body, dtype)
    at = np.stack([rows["x"], rows["y"], rows["z"]], 1)
    np.testing.assert_allclose(at, (voxels + 0.5) * 0.1 - 3.2)
    np.testing.assert_array_equal(rows["material"], [0, 1, 9])
    colours = np.stack([rows["red"], rows["green"], rows["blue"]], 1)
    np.testing.assert_array_equal(colours, [[0x11, 0x22, 0x33], [0xFF, 0x80, 0], [0x80] * 3])


def test_edit_of_another_version_is_aborted(daemon: Daemon, scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec())
    with Scenes(daemon) as other:
        assert scenes.edit("s", ball((0, 0, 0), 1), if_version=1).change.version == 2
        operations = [box((0, 0, 0), (1, 1, 1), "SCENE_ERASE")]
        message = other.fails(
            "scene_edit",
            common_pb2.ABORTED,
            "if_version",
            name="s",
            operations=operations,
            if_version=1,
        )
        assert "version 2" in message
        assert other.edit("s", *operations, if_version=2).change.version == 3
        assert scenes.call("scene_get", name="s").scene.version == 3


def test_repeated_edit_is_applied_once(daemon: Daemon, scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec())
    fields = {"name": "s", "operations": [ball((0, 0, 0), 1)]}
    first = scenes.send("scene_edit", sequence=1000, **fields)
    again = scenes.send("scene_edit", sequence=1000, **fields)
    assert again.header.replayed and not first.header.replayed
    assert again.scene_edit == first.scene_edit
    assert scenes.call("scene_get", name="s").scene.version == 2
    key = {"Idempotency-Key": "k1", "X-Voxeld-Client-Id": "c1"}
    body = {"name": "s", "operations": [{"ball": {"centre": {"x": 1}, "radius": 0.5}}]}
    replies = [http_call(daemon, "POST", "/v1/scene_edit", body, key) for _ in range(2)]
    assert replies[0].json() == replies[1].json()
    assert replies[1].headers["Idempotency-Replayed"] == "true"
    assert scenes.call("scene_get", name="s").scene.version == 3


def test_scene_made_again_has_another_generation(scenes: Scenes) -> None:
    first = scenes.call("scene_create", name="s", spec=spec())
    again = scenes.call("scene_create", name="s", spec=spec(origin=vec(-3.2, -3.2, -3.2)))
    assert not first.existed and again.existed and again.scene == first.scene
    for other in (
        spec(size=0.2),
        spec(7),
        spec(bits=4),
        spec(track_free=True),
        spec(frame_id="m"),
    ):
        scenes.fails("scene_create", common_pb2.ALREADY_EXISTS, "name", name="s", spec=other)
    assert scenes.call("scene_drop", name="s").existed
    assert not scenes.call("scene_drop", name="s", missing_ok=True).existed
    scenes.fails("scene_drop", common_pb2.NOT_FOUND, "name", name="s")
    scenes.fails("scene_get", common_pb2.NOT_FOUND, "name", name="s")
    made = scenes.call("scene_create", name="s", spec=spec()).scene
    assert made.generation != first.scene.generation and made.version == 1


def test_equal_voxels_have_equal_digests(scenes: Scenes) -> None:
    for name in ("a", "b"):
        scenes.call("scene_create", name=name, spec=spec(8))
    scenes.edit("a", ball((0, 0, 0), 3), box((0, -9, -9), (9, 9, 9), "SCENE_ERASE"))
    scenes.edit("b", box((-5, -5, -5), (0, 5, 5)))
    a, b = (scenes.call("scene_get", name=n).scene for n in "ab")
    assert len(a.digest) == 32 and a.digest != b.digest
    cells = array_of(scenes.call("scene_export", name="a").cells)
    scenes.edit("b", box((-99, -99, -99), (99, 99, 99), "SCENE_ERASE"), points(cells))
    b = scenes.call("scene_get", name="b").scene
    assert (a.digest, a.n_occupied, a.live_node_bytes) == (
        b.digest,
        b.n_occupied,
        b.live_node_bytes,
    )


def test_views_and_json_show_scenes(daemon: Daemon, scenes: Scenes) -> None:
    made = http_call(
        daemon,
        "POST",
        "/v1/scene_create",
        {
            "name": "hall",
            "spec": {
                "voxelSizeM": 0.1,
                "depth": 8,
                "materialBits": 4,
                "palette": [{"name": "wall", "rgb": 255}],
            },
        },
    )
    assert made.status == 200, made.body
    body = {
        "name": "hall",
        "operations": [
            {
                "points": {"points": {"shape": [2, 3], "values": [0, 0, 0, 1, 1, 1]}},
                "material": 1,
            }
        ],
    }
    reply = http_call(daemon, "POST", "/v1/scene_edit", body)
    assert reply.json()["change"]["nAdded"] == "2", reply.body
    listed = http_call(daemon, "GET", "/v1/scenes").json()
    assert [s["name"] for s in listed["scenes"]] == ["hall"]
    assert int(listed["nBytes"]) > 0 and "palette" not in listed["scenes"][0]["spec"]
    one = http_call(daemon, "GET", "/v1/scenes/hall").json()["scene"]
    assert one["nOccupied"] == "2" and one["spec"]["palette"] == [{"name": "wall", "rgb": 255}]
    assert http_call(daemon, "GET", "/v1/scenes/none").status == 404
    status = http_call(daemon, "GET", "/v1/status").json()
    assert status["nScenes"] == "1" and int(status["sceneBytes"]) == int(listed["nBytes"])
    metrics = http_call(daemon, "GET", "/metrics").body.decode()
    assert "\nvoxeld_scenes 1\n" in metrics and 'voxeld_scene_bytes{use="used"}' in metrics


def test_scene_dropped_under_a_query_lives_until_it_ends(
    daemon: Daemon, scenes: Scenes
) -> None:
    status = http_call(daemon, "GET", "/v1/status").json()
    before = int(status["deviceBytes"]) if "deviceBytes" in status else 0
    scenes.call("scene_create", name="s", spec=spec(9))
    scenes.edit("s", ball((0, 0, 0), 20), ball((0, 0, 0), 19.5, "SCENE_ERASE"))
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(200000, 3))
    replies: list[Any] = []

    def cast() -> None:
        with Scenes(daemon) as client:
            replies.append(
                client.send(
                    "scene_cast_rays",
                    name="s",
                    origins=tensor_of(np.zeros((1, 3))),
                    directions=tensor_of(directions),
                )
            )

    threads = [threading.Thread(target=cast) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(
        lambda: int(http_call(daemon, "GET", "/v1/status").json().get("running", 0)) > 0
        or len(replies) == 3,
        10,
        "a query runs",
    )
    assert scenes.call("scene_drop", name="s").existed
    for thread in threads:
        thread.join()
    for reply in replies:
        assert reply.header.code in (OK, common_pb2.NOT_FOUND), reply.header
        if reply.header.code == OK:
            assert reply.scene_cast_rays.n_hits == 200000
            distances = array_of(reply.scene_cast_rays.distances)
            assert distances.min() > 19.2 and distances.max() < 19.7
    assert any(r.header.code == OK for r in replies)
    wait_until(
        lambda: int(http_call(daemon, "GET", "/v1/status").json().get("deviceBytes", 0))
        <= before,
        10,
        "the scene's memory is free",
    )


def test_readers_see_whole_versions(daemon: Daemon, scenes: Scenes) -> None:
    """Each edit moves a block of 1000 voxels: whoever counts finds 1000."""
    scenes.call("scene_create", name="s", spec=spec(8))
    scenes.edit("s", box((0, 0, 0), (10, 10, 10)), in_voxels=True)
    everything = tensor_of(np.array([[-1e3] * 3 + [1e3] * 3]))
    end = threading.Event()
    wrong: list[Any] = []
    seen: list[int] = []

    def count() -> None:
        with Scenes(daemon) as client:
            last = 0
            while not end.is_set():
                reply = client.call("scene_overlap", name="s", boxes=everything, counts=True)
                if array_of(reply.n_occupied)[0] != 1000 or reply.seen.version < last:
                    wrong.append(reply)
                last = reply.seen.version
                seen.append(last)

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(60):
        low, to = (i % 20) * 11, ((i + 1) % 20) * 11
        scenes.edit(
            "s",
            box((low,) * 3, (low + 10,) * 3, "SCENE_ERASE"),
            box((to,) * 3, (to + 10,) * 3),
            in_voxels=True,
        )
    end.set()
    for thread in threads:
        thread.join()
    assert not wrong and len(set(seen)) > 2


def test_scenes_stay_within_their_limits(directory: Path) -> None:
    limits = {"scene_bytes": 24 << 20, "scenes": 3}
    rng = np.random.default_rng(0)
    with running(directory, {"limits": limits}) as daemon, Scenes(daemon) as scenes:
        for name in "abc":
            scenes.call("scene_create", name=name, spec=spec(12, bits=8))
        message = scenes.fails(
            "scene_create", common_pb2.RESOURCE_EXHAUSTED, name="d", spec=spec()
        )
        assert "limits.scenes" in message
        message = ""
        for _ in range(100):
            before = scenes.call("scene_get", name="a").scene
            at = rng.integers(0, 4096, (50000, 3)).astype(np.int32)
            materials = rng.integers(0, 256, 50000).astype(np.uint8)
            response = scenes.send(
                "scene_edit", name="a", operations=[points(at, materials=materials)]
            )
            if response.header.code != OK:
                assert response.header.code == common_pb2.RESOURCE_EXHAUSTED
                message = response.header.message
                break
        assert "limits.scene_bytes of 25165824" in message
        after = scenes.call("scene_get", name="a").scene
        for field in ("version", "digest", "n_occupied", "changed_ns"):
            assert getattr(after, field) == getattr(before, field)
        assert after.n_occupied > 0
        listed = scenes.call("scene_list")
        assert listed.n_bytes <= listed.limit_bytes == 24 << 20
        scenes.edit("a", box((-1, -1, -1), (1, 1, 1), "SCENE_ERASE"))
        # Its own limit is named where it is the smaller one.
        scenes.call("scene_drop", name="a")
        scenes.call("scene_create", name="a", spec=spec(12), max_bytes=4 << 20)
        own = scenes.fails(
            "scene_edit",
            common_pb2.RESOURCE_EXHAUSTED,
            name="a",
            operations=[points(rng.integers(0, 4096, (1000000, 3)).astype(np.int32))],
        )
        assert "its max_bytes" in own
