# SPDX-License-Identifier: Apache-2.0
"""Queries and exports of scenes against a dense grid: rays, values, nearest, overlap, parts."""

from __future__ import annotations

import io

import numpy as np
import pytest
from harness import array_of, scene_pb2, tensor_of
from scenes import (
    FREE,
    OCCUPIED,
    UNKNOWN,
    Grid,
    Scenes,
    box,
    box_of,
    points,
    random_scene,
    spec,
)


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
