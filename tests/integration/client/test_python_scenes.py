# SPDX-License-Identifier: Apache-2.0
"""Scenes in the Python client, against the real daemon and a dense grid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import MIB, SLOW, Daemon, common_pb2, rpc_pb2, running, scene_pb2
from scenes import FREE, OCCUPIED, Grid
from test_python_errors import Peer, tensor

NAMES = (f"scene-{i}" for i in itertools.count())
DEPTH = 6
SIZE = 0.5
LOW = -(1 << DEPTH) * SIZE / 2


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        yield connected


@pytest.fixture
def scene(client: voxeld.Client) -> Iterator[voxeld.Scene]:
    made = client.scene_create(
        next(NAMES), SIZE, depth=DEPTH, material_bits=8, track_free=True, frame_id="map",
        palette=[voxeld.Material("ground", 0x7F6F5F), voxeld.Material("", 0xFFFFFF)],
    )  # fmt: skip
    yield made
    made.drop(missing_ok=True)


def check(scene: voxeld.Scene, grid: Grid) -> None:
    box = voxeld.Box((0, 0, 0), (grid.side,) * 3)
    dense = scene.export_dense(box, in_voxels=True)
    np.testing.assert_array_equal(dense.states, grid.states)
    np.testing.assert_array_equal(dense.materials, grid.materials)
    assert dense.low_cell == (0, 0, 0) and dense.origin == (LOW,) * 3 and dense.cell_size == SIZE


# Changes -----------------------------------------------------------------------------------


def test_every_shape_and_action_match_a_grid(scene: voxeld.Scene) -> None:
    grid = Grid(DEPTH, SIZE, tracks_free=True)
    ball = voxeld.Ball((1, -2, 3.25), 6.5)
    box = voxeld.Box((-4, -4, -4), (4.25, 5, 3))
    capsule = voxeld.Capsule((-9, 0, 0), (9, 1, 2), 1.5)
    voxels = np.random.default_rng(1).integers(-3, 70, (300, 3))
    materials = np.arange(300) % 200
    edited = scene.edit(
        [
            voxeld.Operation(ball, material=3),
            voxeld.Operation(box, "paint", 4),
            voxeld.Operation(capsule, "erase"),
            voxeld.Operation(voxeld.Box((-1, -1, -1), (0, 0, 0)), "set_free"),
            voxeld.Operation(voxeld.HalfSpace((0, 0, 2), -20), material=7),
            voxeld.Operation(box, "replace", 9, from_material=4),
            voxeld.PointList(voxels, materials),
        ]
    )
    grid.apply(grid.in_ball(ball.centre, ball.radius), "SCENE_FILL", 3)
    grid.apply(grid.in_box(box.low, box.high), "SCENE_PAINT", 4)
    grid.apply(grid.in_capsule(capsule.a, capsule.b, capsule.radius), "SCENE_ERASE")
    grid.apply(grid.in_box((-1, -1, -1), (0, 0, 0)), "SCENE_SET_FREE")
    grid.apply(grid.centres[..., 2] <= grid.units((0, 0, -10))[2], "SCENE_FILL", 7)
    grid.apply(grid.in_box(box.low, box.high), "SCENE_REPLACE", 9, 4)
    inside = grid.is_inside(voxels)
    for voxel, material in zip(voxels[inside], materials[inside], strict=True):
        mask = np.zeros_like(grid.states, bool)
        mask[tuple(voxel)] = True
        grid.apply(mask, "SCENE_FILL", int(material))
    check(scene, grid)
    assert edited.change.version == 2 and not edited.replayed
    assert edited.change.n_added == (grid.states == OCCUPIED).sum()
    assert edited.n_outside == (~inside).sum()
    info = scene.info()
    assert info.version == 2 and info.n_occupied == (grid.states == OCCUPIED).sum()
    assert info.n_free == (grid.states == FREE).sum() and len(info.digest) == 32


def test_copies_turn_and_heightfields_stand(scene: voxeld.Scene) -> None:
    corner = voxeld.Box((2, 3, 4), (3, 5, 8))
    scene.edit(voxeld.Operation(corner, material=5), in_voxels=True)
    turn = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    target = voxeld.Box((20, 20, 20), (24, 24, 28))
    copy = voxeld.Copy((2.5, 4.5, 2.5), turn, empty=True)
    scene.edit(voxeld.Operation(target, "copy", copy=copy), in_voxels=True)
    cells = scene.export(target, in_voxels=True).cells
    ranges = [np.arange(20, 24), np.arange(20, 24), np.arange(20, 28)]
    p = np.stack(np.meshgrid(*ranges, indexing="ij"), -1).reshape(-1, 3)
    source = [2, 4, 2] + (p - 20) @ turn.T
    is_set = ((source >= corner.low) & (source < corner.high)).all(1)
    assert is_set.any()
    assert sorted(map(tuple, cells.tolist())) == sorted(map(tuple, p[is_set].tolist()))

    heights = np.array([[-14.0, np.nan, -15.0]]).T
    field = voxeld.Heightfield(heights, x=-16, y=-16, cell=2 * SIZE, low_z=-16)
    change = scene.edit(voxeld.Operation(field, material=1)).change
    assert change.n_added == 4 * (2 / SIZE + 1 / SIZE)


def test_scans_fill_carve_and_what_moved_away_disappears(client: voxeld.Client) -> None:
    """At once, where the last word counts."""
    scene = client.scene_create(
        next(NAMES), SIZE, depth=DEPTH, material_bits=8, track_free=True, fusion="last"
    )
    assert scene.fusion == "last" and scene.info().log_odds is None
    y, z = np.meshgrid(np.arange(-6, 6, 0.2), np.arange(-6, 6, 0.2))
    wall = np.stack([np.full(y.size, 10.2), y.ravel(), z.ravel()], 1)
    thing = wall[(np.abs(wall[:, 1:]) < 1).all(1)] * 0.5
    first = scene.integrate(thing, stamp_ns=5, frame_id="lidar", material=2)
    assert first.n_used == first.n_points == len(thing) and first.stamp_ns == 5
    assert first.frame_id == "lidar"
    assert first.change.n_added == first.n_hit_voxels > 0
    assert scene.values(thing).occupied.all() and (scene.values(thing).materials == 2).all()
    second = scene.integrate(wall)
    assert second.change.n_removed == first.n_hit_voxels
    assert scene.values(thing).free.all() and scene.values(wall).occupied.all()
    assert second.change.n_freed >= second.n_passed_voxels - first.n_passed_voxels
    # Beyond the range no point hits anything, and carving ends.
    third = scene.integrate(wall, pose=voxeld.Pose((-3, 0, 0)), max_range=4)
    assert third.n_beyond == len(wall) and third.change.n_added == 0
    rays = scene.cast_rays((0, 0, 0.1), [[1, 0, 0], [-1, 0, 0]])
    assert rays.hit.tolist() == [True, False] and rays.n_hits == 1
    np.testing.assert_allclose(rays.distances, [10.0, -1])
    np.testing.assert_array_equal(rays.normals, [[-1, 0, 0], [0, 0, 0]])
    assert rays.version == third.change.version


def test_scene_of_log_odds_says_its_numbers_and_keeps_what_one_scan_passes(
    client: voxeld.Client,
) -> None:
    odds = voxeld.LogOdds(hit=0.9)
    scene = client.scene_create(next(NAMES), SIZE, depth=DEPTH, track_free=True, log_odds=odds)
    assert scene.fusion == "log-odds"
    assert scene.integrate([[1, 0, 0]], discretize=True).change.n_added == 1
    assert scene.integrate([[2, 0, 0]]).change.n_removed == 0
    info = scene.info()
    assert info.log_odds_bytes > 0 and info.log_odds is not None
    assert info.log_odds.hit == 0.9 and info.log_odds.miss == 0.4
    assert 0 < info.log_odds.error <= 0.01
    with pytest.raises(voxeld.InvalidArgument):
        client.scene_create(next(NAMES), SIZE, fusion="last word")
    with pytest.raises(voxeld.InvalidArgument):
        scene.integrate([[1, 0, 0]], erase=True)


def test_materials_follow_labels_and_heights(scene: voxeld.Scene) -> None:
    records = np.zeros(3, [("x", "f4"), ("y", "f4"), ("z", "f4"), ("label", "u2")])
    records["x"] = [1, 3, 5]
    records["z"] = [-8, 0, 8]
    records["label"] = [6, 7, 60000]
    scene.integrate(records, carve=False, rule="label", material=9)
    places = np.stack([records[n] for n in "xyz"], 1)
    assert scene.values(places).materials.tolist() == [6, 7, 9]
    scene.integrate(places, carve=False, rule="height", range=(-4, 4))
    materials = scene.values(places).materials
    assert materials.tolist()[::2] == [0, 1]


# Queries -----------------------------------------------------------------------------------


def test_queries_agree_with_a_grid(scene: voxeld.Scene) -> None:
    rng = np.random.default_rng(3)
    grid = Grid(DEPTH, SIZE)
    for centre in rng.uniform(-10, 10, (5, 3)).round(2):
        scene.edit(voxeld.Ball(centre, 2.0))
        grid.apply(grid.in_ball(centre, 2.0), "SCENE_FILL")
    voxels = rng.integers(0, 64, (500, 3))
    values = scene.values(voxels)
    np.testing.assert_array_equal(values.states, grid.states[tuple(voxels.T)])
    in_metres = scene.values(LOW + (voxels + 0.5) * SIZE)
    np.testing.assert_array_equal(in_metres.states, values.states)
    assert scene.values([[-1, 0, 0]]).states.tolist() == [voxeld.VoxelState.UNKNOWN]
    assert values.version == 6 and values.materials.dtype == np.uint16

    centres = LOW + (grid.occupied() + 0.5) * SIZE
    points = rng.uniform(-12, 12, (50, 3))
    expected = np.sqrt(((points[:, None] - centres) ** 2).sum(-1)).min(1)
    nearest = scene.nearest(points, 4.0)
    found = expected <= 4
    assert nearest.n_found == found.sum() > 10
    np.testing.assert_allclose(nearest.distances[found], expected[found], rtol=1e-2, atol=1e-2)
    assert (nearest.distances[~found] == -1).all() and (nearest.voxels[~found] == -1).all()

    overlap = scene.overlap([[-5, -5, -5, 5, 5, 5], [15, 15, 15, 16, 16, 16]], counts=True)
    n = (grid.in_box((-5,) * 3, (5,) * 3) & (grid.states == OCCUPIED)).sum()
    assert overlap.n_occupied.tolist() == [n, 0] and overlap.n_free.tolist() == [0, 0]
    ball = scene.overlap((0, 0, 0, 100.0))
    assert ball.n_occupied is None and ball.states[0] & voxeld.VoxelState.OCCUPIED


def test_export_is_the_same_whole_in_parts_and_as_a_file(
    scene: voxeld.Scene, directory: Path
) -> None:
    scene.edit([voxeld.Operation(voxeld.Ball((0, 0, 0), 5.0), material=1)])
    whole = scene.export(counts=True)
    assert len(whole) == whole.n_cells == scene.info().n_occupied and (whole.counts == 1).all()
    parts = [scene.export(first=i, limit=1000).cells for i in range(0, len(whole), 1000)]
    np.testing.assert_array_equal(np.vstack(parts), whole.cells)
    assert (np.linalg.norm(whole.centres(), axis=1) <= 5).all()
    coarse = scene.export(level=2, counts=True)
    assert coarse.counts.sum() == len(whole) and coarse.cell_size == 4 * SIZE
    assert scene.export_ply(directory / "s.ply") == len(whole)
    assert f"element vertex {len(whole)}\n".encode() in (directory / "s.ply").read_bytes()
    assert [p.name for p in directory.iterdir()] == ["s.ply"]
    with pytest.raises(FileNotFoundError):
        scene.export_ply(directory / "no" / "s.ply")
    scene.edit(voxeld.Operation(voxeld.HalfSpace((0, 0, 1), 100), "erase"))
    assert len(scene.export()) == 0 and scene.export_ply(directory / "s.ply") == 0


# Scenes ------------------------------------------------------------------------------------


def test_scenes_are_listed_found_and_dropped(client: voxeld.Client, scene: voxeld.Scene) -> None:
    same = client.scene(scene.name)
    assert same.palette == scene.palette and same.palette[0].name == "ground"
    assert same.info().frame_id == "map" and same.depth == DEPTH and same.track_free
    assert scene.name in {s.name for s in client.scenes()}
    with pytest.raises(voxeld.AlreadyExists):
        client.scene_create(scene.name, 2 * SIZE)
    generation = same.info().generation
    assert scene.drop() and not scene.drop(missing_ok=True)
    with pytest.raises(voxeld.NotFound):
        scene.values([[1, 2, 3]])
    again = client.scene_create(scene.name, SIZE, depth=5, origin=(1, 2, 3))
    assert again.origin == (1, 2, 3) and again.info().generation != generation


def test_edits_count_once_and_only_at_their_version(scene: voxeld.Scene) -> None:
    ball = voxeld.Ball((0, 0, 0), 3)
    first = scene.edit(ball, if_version=1, sequence=2**62)
    again = scene.edit(ball, if_version=1, sequence=2**62)
    assert again.replayed and again.change == first.change
    with pytest.raises(voxeld.Aborted) as raised:
        scene.edit(ball, if_version=1)
    assert raised.value.sequence > 2**62
    with pytest.raises(voxeld.OutOfRange):
        scene.edit(voxeld.Ball((1000, 0, 0), 3))
    once = voxeld.repeat(lambda n: scene.edit(ball, sequence=n), seconds=5)
    assert once.change.n_added == 0


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda s: s.edit(voxeld.Operation(voxeld.Ball((0, 0), 1))), "operations[0].ball.centre"),
        (
            lambda s: s.edit(voxeld.Operation(voxeld.Ball((0, 0, 0), 1), "fly")),
            "operations[0].action",
        ),
        (lambda s: s.edit([voxeld.Ball((0, 0, 0), 1), 3]), "operations[1]"),
        (lambda s: s.edit(voxeld.Ball((0, 0, 0), "far")), "operations[0].ball.radius"),
        (
            lambda s: s.edit(voxeld.Ball((0, 0, 0), 1, noise_seed=-1)),
            "operations[0].ball.noise_seed",
        ),
        (lambda s: s.edit(voxeld.Ball((0, 0, 0), -1)), "operations[0].ball.radius"),
        (lambda s: s.edit(voxeld.HalfSpace((1, 0, 0), [])), "operations[0].half_space.offset"),
        (
            lambda s: s.edit(voxeld.Operation(voxeld.Ball((0, 0, 0), 1), pin="loose")),
            "operations[0].pin",
        ),
        (lambda s: s.edit(voxeld.PointList([[1, 2]])), "operations[0].points.points"),
        (
            lambda s: s.edit(voxeld.PointList([[1, 2, 3]], [-1])),
            "operations[0].points.materials",
        ),
        (
            lambda s: s.edit(
                voxeld.Operation(
                    voxeld.Box((0,) * 3, (1,) * 3), "copy", copy=voxeld.Copy((0,) * 3, [2])
                )
            ),
            "operations[0].copy.matrix",
        ),
        (lambda s: s.edit([]), "operations"),
        (lambda s: s.integrate([np.zeros((1, 3)), np.zeros((1, 3))]), "points"),
        (lambda s: s.integrate(np.zeros((1, 3)), rule="rainbow"), "rule"),
        (lambda s: s.values("abc"), "points"),
        (lambda s: s.cast_rays([[0, 0, 0]] * 2, [[1, 0, 0]] * 3), "origins"),
        (lambda s: s.nearest([[0, 0, 0]], -1), "radius_m"),
        (lambda s: s.overlap([[0, 0, 0, 1, 1]]), "shapes"),
    ],
)
def test_wrong_arguments_name_their_field(
    scene: voxeld.Scene, call: Callable[[voxeld.Scene], Any], field: str
) -> None:
    with pytest.raises(voxeld.InvalidArgument) as raised:
        call(scene)
    assert raised.value.field == field


# Replies -----------------------------------------------------------------------------------


def info_reply(request: Any) -> Any:
    reply = rpc_pb2.Response(header=rpc_pb2.ResponseHeader(request_id=request.header.request_id))
    spec = scene_pb2.SceneSpec(voxel_size_m=1, depth=5)
    reply.scene_get.scene.CopyFrom(scene_pb2.SceneInfo(name="s", spec=spec))
    return reply


def values_reply(request: Any, **over: Any) -> Any:
    reply = info_reply(request)
    members = {
        "seen": scene_pb2.SceneSeen(version=3),
        "states": tensor(common_pb2.UINT8, np.full(2, 2, np.uint8)),
        "materials": tensor(common_pb2.UINT16, np.ones(2, np.uint16)),
        **over,
    }
    members = {k: v for k, v in members.items() if v is not None}
    reply.scene_values.CopyFrom(scene_pb2.SceneValuesResponse(**members))
    return reply


@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({}, ""),
        ({"materials": None}, ""),
        ({"seen": None}, "seen"),
        ({"states": None}, "states"),
        ({"states": tensor(common_pb2.INT8, np.ones(2, np.int8))}, "states"),
        ({"states": tensor(common_pb2.UINT8, np.ones(3, np.uint8))}, "states"),
        ({"materials": tensor(common_pb2.UINT16, np.ones((2, 1), np.uint16))}, "materials"),
    ],
)
def test_replies_that_contradict_themselves_are_internal(
    directory: Path, over: dict[str, Any], field: str
) -> None:
    def reply(request: Any) -> Any:
        is_get = request.WhichOneof("method") == "scene_get"
        return info_reply(request) if is_get else values_reply(request, **over)

    with Peer(directory, reply) as peer, voxeld.connect(peer.url, timeout=30 * SLOW) as client:
        scene = client.scene("s")
        if not field:
            values = scene.values([[1, 2, 3], [4, 5, 6]])
            assert values.occupied.all() and (values.materials is None) == bool(over)
            return
        with pytest.raises(voxeld.Internal) as raised:
            scene.values([[1, 2, 3], [4, 5, 6]])
        assert raised.value.field == field and raised.value.request_id


def ply_of(n: int, first: int, *, total: int) -> Any:
    body = bytes(range(first, first + n))
    head = f"ply\nelement vertex {n}\nproperty uchar a\nend_header\n".encode()
    return {"ply": head + body, "n_cells": total}


@pytest.mark.parametrize("changes", [False, True])
def test_file_is_put_together_of_parts_of_one_version(directory: Path, changes: bool) -> None:
    def reply(request: Any) -> Any:
        answer = info_reply(request)
        if request.WhichOneof("method") == "scene_export":
            first = request.scene_export.first
            seen = scene_pb2.SceneSeen(version=first if changes else 1)
            part = ply_of(min(2, 5 - first), first, total=5)
            answer.scene_export.CopyFrom(scene_pb2.SceneExportResponse(seen=seen, **part))
        return answer

    path = directory / "s.ply"
    with Peer(directory, reply) as peer, voxeld.connect(peer.url, timeout=30 * SLOW) as client:
        scene = client.scene("s")
        if changes:
            with pytest.raises(voxeld.Aborted):
                scene.export_ply(path)
            assert not path.exists() and not path.with_name("s.ply.part").exists()
        else:
            assert scene.export_ply(path) == 5
            assert path.read_bytes() == ply_of(5, 0, total=5)["ply"]


def test_small_message_limit_makes_exports_of_many_replies(directory: Path) -> None:
    limits = {"limits": {"message_bytes": MIB}}
    with (
        running(directory / "d", limits) as daemon,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
    ):
        scene = client.scene_create("many", 1.0, depth=8)
        scene.edit(voxeld.Box((0, 0, 0), (64, 64, 64)), in_voxels=True)
        first = scene.export(limit=1 << 40)
        assert 0 < len(first) < first.n_cells == 64**3
        cells = scene.export()
        assert len(cells) == 64**3 and len(np.unique(cells.cells, axis=0)) == 64**3
        assert scene.export_ply(directory / "many.ply") == 64**3
