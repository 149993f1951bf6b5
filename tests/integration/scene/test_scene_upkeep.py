# SPDX-License-Identifier: Apache-2.0
"""Decays and pins of fused scenes, against one number a voxel in NumPy: among scans, edits and
undos, through branches, collections, SIGKILLs and snapshot files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import (
    BIN,
    array_of,
    cloud_of,
    common_pb2,
    running,
    scene_pb2,
    scene_version_pb2,
    tensor_of,
)
from test_tools import run
from scenes import FREE, OCCUPIED, UNKNOWN, Scenes, box, spec, vec
from test_scene_fusion import DEPTH, NEVER, SIDE, SIZE, Robot, fused, killed

INVALID_ARGUMENT = common_pb2.INVALID_ARGUMENT
FAILED_PRECONDITION = common_pb2.FAILED_PRECONDITION
STEP = 0.0338
ALL = {"in_voxels": True}
S = 1_000_000_000
WALL = ((10, 10, 10), (12, 20, 20))


def centres() -> np.ndarray:
    """Of all voxels, in voxels from the low corner."""
    return np.stack(np.meshgrid(*[np.arange(SIDE) + 0.5] * 3, indexing="ij"), -1)


class Kept(Robot):
    """A robot whose scene is pinned and decays as well."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.pinned = np.zeros((SIDE,) * 3, bool)
        self.touched = np.zeros((SIDE // 8,) * 3, bool)
        self.scan_model = self.model.scan
        self.model.scan = self.scan_unpinned  # type: ignore[method-assign]

    def scan_unpinned(self, states: np.ndarray) -> None:
        states = np.where(self.pinned, UNKNOWN, states)
        self.scan_model(states)
        blocks = (states != UNKNOWN).reshape((SIDE // 8, 8) * 3)
        self.touched |= blocks.any((1, 3, 5))

    def pin(self, scenes: Scenes, name: str) -> None:
        action = "SCENE_" + str(self.rng.choice(["FILL", "ERASE", "SET_FREE", "KEEP", "KEEP"]))
        pinned = bool(self.rng.random() < 0.7)
        low = self.rng.integers(0, SIDE - 8, 3)
        high = low + self.rng.integers(1, 30, 3)
        pin = "SCENE_PINNED" if pinned else "SCENE_UNPINNED"
        scenes.edit(name, box(low, high, action, pin=pin), in_voxels=True)
        self.pinned[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = pinned
        self.model.follow(scenes.dense(name, SIDE)[0])

    def fade(self, at: np.ndarray, factor: float, step: int) -> None:
        """What a decay does in the voxels of `at`."""
        odds = self.model.odds.astype(np.int64)
        touched = self.touched.repeat(8, 0).repeat(8, 1).repeat(8, 2)
        fades = at & touched & ~self.pinned & (odds != NEVER)
        left = (np.abs(odds) * round(factor * 65536)) // 65536 - step
        after = np.where(left <= 0, NEVER, np.sign(odds) * left)
        self.model.odds = np.where(fades, after, odds).astype(np.int16)

    def decay(self, scenes: Scenes, name: str) -> None:
        low = self.rng.integers(0, SIDE // 2, 3)
        high = low + self.rng.integers(1, SIDE, 3)
        centre, radius = self.rng.uniform(0, SIDE, 3), float(self.rng.uniform(1, 30))
        fields: dict[str, Any] = dict(ALL)
        at = np.ones((SIDE,) * 3, bool)
        if self.rng.random() < 0.6:
            fields["box"] = scene_pb2.SceneBox(low=vec(*low), high=vec(*high))
            at &= ((centres() > low) & (centres() < high)).all(-1)
        if self.rng.random() < 0.6:
            fields.update(keep_centre=vec(*centre), keep_radius=radius)
            units = np.rint(centre * 256), np.rint(radius * 256)
            at &= ((centres() * 256 - units[0]) ** 2).sum(-1) > units[1] ** 2
        if self.rng.random() < 0.5:
            factor = float(self.rng.uniform(0.2, 0.99))
            scenes.call("scene_decay", name=name, factor=factor, **fields)
            self.fade(at, factor, 0)
        else:
            step = int(self.rng.integers(1, 30))
            scenes.call("scene_decay", name=name, step=step * STEP, **fields)
            self.fade(at, 1, step)

    def step(self, scenes: Scenes, name: str) -> None:
        what = self.rng.integers(0, 4)
        if what == 0:
            self.pin(scenes, name)
        elif what == 1:
            self.decay(scenes, name)
        else:
            super().step(scenes, name)
        self.check(scenes, name)

    def check(self, scenes: Scenes, name: str) -> None:
        super().check(scenes, name)
        voxels = np.random.default_rng(5).integers(0, SIDE, (20000, 3)).astype(np.int32)
        reply = scenes.call("scene_log_odds_at", name=name, points=tensor_of(voxels))
        np.testing.assert_array_equal(array_of(reply.steps), self.model.odds[tuple(voxels.T)])
        assert reply.step == STEP and reply.occupied_steps == 0
        reply = scenes.call("scene_export", name=name, pinned=True)
        pinned = np.zeros((SIDE,) * 3, bool)
        if reply.n_cells > 0:
            pinned[tuple(array_of(reply.cells).T)] = True
        np.testing.assert_array_equal(pinned, self.pinned)


def test_random_pins_and_decays_among_scans_give_the_states_of_the_model(scenes: Scenes) -> None:
    kept = Kept(1)
    scenes.call("scene_create", name="s", spec=fused())
    for i in range(30):
        kept.step(scenes, "s")
        if i % 10 == 9:
            scenes.call("scene_collect", name="s")
            kept.check(scenes, "s")
    assert np.unique(kept.model.odds).size > 20 and kept.pinned.any()
    info = scenes.call("scene_get", name="s").scene
    assert info.n_pinned == kept.pinned.sum()
    kinds = [v.kind for v in scenes.call("scene_log", name="s").versions]
    assert kinds.count(scene_version_pb2.SCENE_DECAYED) > 2


@pytest.mark.parametrize("journal_max_bytes", [0, 20000])
def test_pins_and_decays_outlive_sigkills(tmp_path: Path, journal_max_bytes: int) -> None:
    durable = scene_pb2.SceneDurability(journal_max_bytes=journal_max_bytes)
    kept, branched = Kept(8), Kept(9)
    n_snapshots = 0
    for start in range(4):
        with killed(tmp_path) as (daemon, scenes):
            if start == 0:
                scenes.call("scene_create", name="s", spec=fused(), durability=durable)
            kept.check(scenes, "s")
            for _ in range(7):
                kept.step(scenes, "s")
            if start == 1:
                scenes.call("scene_snapshot", name="s", snapshot="then")
                then = kept.pinned.copy()
                scenes.call("scene_branch", name="s", new_name="b")
                branched.model.odds = kept.model.odds.copy()
                branched.pinned = kept.pinned.copy()
                branched.touched = kept.touched.copy()
            if start >= 1:
                for _ in range(3):
                    branched.step(scenes, "b")
                at = scene_pb2.SceneAt(snapshot="then")
                reply = scenes.call("scene_export", name="s", pinned=True, at=at)
                assert reply.n_cells == then.sum()
            n_snapshots += sum(line.get("msg") == "snapshot written" for line in daemon.log)
            assert not any(line.get("msg") == "no snapshot was written" for line in daemon.log)
    assert (n_snapshots > 0) == (journal_max_bytes > 0)
    with killed(tmp_path) as (_, scenes):
        for robot, name in ((kept, "s"), (branched, "b")):
            robot.check(scenes, name)
            for _ in range(3):
                robot.scan(scenes, name)
                robot.decay(scenes, name)
                robot.check(scenes, name)
            assert scenes.call("scene_verify", name=name).n_versions > 10


def at_second(seconds: float, low: tuple[int, ...] = (0, 0, 0)) -> common_pb2.Cloud:
    """A scan of one point."""
    place = np.float32([low]) + np.float32(0.05)
    return cloud_of(place, stamp_ns=int(seconds * S))


def test_decay_by_half_life_counts_the_scans_time(tmp_path: Path) -> None:
    point = {"points": scene_pb2.ScenePoints().points}
    point["points"].values.extend([0.05, 0.05, 0.05])
    point["points"].shape.extend([1, 3])
    durable = scene_pb2.SceneDurability()

    def state(scenes: Scenes) -> int:
        return scenes.call("scene_values", name="s", **point).states.data[0]

    with killed(tmp_path) as (_, scenes):
        scenes.call("scene_create", name="s", spec=fused(), durability=durable)
        scenes.fails("scene_decay", FAILED_PRECONDITION, "until_ns", name="s", half_life_s=10)
        for _ in range(5):
            scenes.call("scene_integrate", name="s", cloud=at_second(100))
        # The first one begins the count; then nothing has passed.
        for _ in range(2):
            reply = scenes.call("scene_decay", name="s", half_life_s=10)
            assert (reply.factor, reply.decayed_ns, reply.elapsed_s) == (1, 100 * S, 0)
        scenes.call("scene_integrate", name="s", cloud=at_second(100.2, (1, 1, 1)))
        short = scenes.call("scene_decay", name="s", half_life_s=10)
        assert (short.factor, short.decayed_ns) == (1, 100 * S)
        scenes.call("scene_integrate", name="s", cloud=at_second(110, (1, 1, 1)))
        half = scenes.call("scene_decay", name="s", half_life_s=10)
        assert (half.factor, half.decayed_ns, half.elapsed_s) == (0.5, 110 * S, 10)
    with killed(tmp_path) as (_, scenes):
        # 104 -> 52 -> 3 -> unknown; the count outlives the server, its newest scan's time does not.
        scenes.fails("scene_decay", FAILED_PRECONDITION, "until_ns", name="s", half_life_s=10)
        later = scenes.call("scene_decay", name="s", half_life_s=10, until_ns=150 * S)
        assert (later.factor, later.elapsed_s) == (0.0625, 40)
        assert state(scenes) == OCCUPIED
        free = scenes.call("scene_decay", name="s", half_life_s=10, elapsed_s=20)
        assert (free.factor, free.decayed_ns) == (0.25, 0)
        assert free.n_removed >= 1 and state(scenes) == UNKNOWN


def test_virtual_wall_stays_until_it_is_unpinned(scenes: Scenes) -> None:
    low, high = WALL
    pose = common_pb2.Pose(translation=vec(-3.0, -1.7, -1.7))
    beyond = cloud_of(np.float32([[4, 0, 0]]), T_map_sensor=pose)
    scenes.call("scene_create", name="s", spec=fused())

    def see_through(n: int) -> int:
        replies = [
            scenes.call("scene_integrate", name="s", cloud=beyond, carve=scene_pb2.SceneCarve())
            for _ in range(n)
        ]
        return sum(reply.change.n_removed for reply in replies)

    scenes.edit("s", box(low, high, pin="SCENE_PINNED"), in_voxels=True)
    assert see_through(12) == 0
    assert scenes.call("scene_decay", name="s", step=8).n_removed == 1  # what the scans hit
    points = tensor_of(np.int32([low, [0, 0, 0]]))
    values = scenes.call("scene_values", name="s", points=points, with_pins=True)
    assert list(array_of(values.pinned)) == [1, 0]
    assert list(array_of(values.states)) == [OCCUPIED, UNKNOWN]
    scenes.edit("s", box(low, high, "SCENE_KEEP", pin="SCENE_UNPINNED"), in_voxels=True)
    assert scenes.call("scene_get", name="s").scene.n_pinned == 0
    assert see_through(12) > 0
    # An older version has its pins, and a branch of it begins with them.
    before = scene_pb2.SceneAt(version=2)
    scenes.call("scene_branch", name="s", new_name="b", at=before)
    assert scenes.call("scene_get", name="b").scene.n_pinned == 200


# Moving sensors -----------------------------------------------------------------------------


def quaternion(q: np.ndarray) -> common_pb2.Quaternion:
    return common_pb2.Quaternion(x=q[0], y=q[1], z=q[2], w=q[3])


def slerp(a: np.ndarray, b: np.ndarray, s: float) -> np.ndarray:
    angle = np.arccos(a @ b)
    return (np.sin((1 - s) * angle) * a + np.sin(s * angle) * b) / np.sin(angle)


def moving(times: np.ndarray, points: np.ndarray) -> tuple[common_pb2.Cloud, list[common_pb2.Pose]]:
    """A cloud whose sensor moves and turns, and the pose at each point."""
    a = np.array([0.1, -0.2, 0.3, 0.9])
    b = np.array([-0.3, 0.2, 0.5, 0.8])
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    begin, end = np.array([-0.4, 0.3, 0.1]), np.array([0.5, -0.2, 0.2])
    shares = (times - times.min()) / (times.max() - times.min())
    poses = [
        common_pb2.Pose(
            translation=vec(*((1 - s) * begin + s * end)), rotation=quaternion(slerp(a, b, s))
        )
        for s in shares
    ]
    data = np.concatenate([points, times[:, None]], 1).astype(np.float32)
    deskew = common_pb2.Deskew(
        T_map_sensor_end=common_pb2.Pose(translation=vec(*end), rotation=quaternion(b))
    )
    pose = common_pb2.Pose(translation=vec(*begin), rotation=quaternion(a))
    return cloud_of(data, "xyzt", T_map_sensor=pose, deskew=deskew), poses


def test_points_of_a_moving_sensor_are_where_they_were_seen(scenes: Scenes) -> None:
    rng = np.random.default_rng(2)
    directions = rng.normal(size=(40, 3))
    points = directions / np.linalg.norm(directions, axis=1, keepdims=True) * 1.5
    points = points.astype(np.float32)
    cloud, poses = moving(np.float32(rng.uniform(3, 7, 40)), points)
    last = {"fusion": "SCENE_FUSION_LAST"}
    scenes.call("scene_create", name="s", spec=fused(**last))
    reply = scenes.call("scene_integrate", name="s", cloud=cloud, carve=scene_pb2.SceneCarve())
    assert reply.n_used == 40
    hit = np.zeros((SIDE,) * 3, bool)
    passed = hit.copy()
    for point, pose in zip(points, poses, strict=True):
        scenes.call("scene_create", name="one", spec=fused(**last))
        one = cloud_of(point[None], T_map_sensor=pose)
        scenes.call("scene_integrate", name="one", cloud=one, carve=scene_pb2.SceneCarve())
        states = scenes.dense("one", SIDE)[0]
        hit |= states == OCCUPIED
        passed |= states == FREE
        scenes.call("scene_drop", name="one")
    states = scenes.dense("s", SIDE)[0]
    np.testing.assert_array_equal(states == OCCUPIED, hit)
    # A point's own ray starts in the middle of a cell of 1/256 voxel, which may pass another voxel
    # at a corner.
    assert ((states == FREE) != (passed & ~hit)).sum() <= 2 < passed.sum()


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("cloud.deskew.time_field", {"time_field": "when"}),
        ("cloud.deskew.end", {"time_field": "z", "start": 1, "end": 1}),
        ("cloud.deskew.end", {"time_field": "z", "start": 1, "end": float("nan")}),
        (
            "cloud.deskew.T_map_sensor_end.translation",
            {
                "time_field": "z",
                "T_map_sensor_end": common_pb2.Pose(translation=vec(float("nan"), 0, 0)),
            },
        ),
    ],
)
def test_wrong_deskew_is_refused(scenes: Scenes, field: str, wrong: dict[str, Any]) -> None:
    scenes.call("scene_create", name="s", spec=fused())
    cloud = cloud_of(np.float32([[1, 0, 0]]), deskew=common_pb2.Deskew(**wrong))
    scenes.fails("scene_integrate", INVALID_ARGUMENT, field, name="s", cloud=cloud)
    cloud.deskew.CopyFrom(common_pb2.Deskew(time_field="z"))
    cloud.sweeps.add()
    scenes.fails("scene_integrate", INVALID_ARGUMENT, "cloud.deskew", name="s", cloud=cloud)


# Filters ------------------------------------------------------------------------------------


def street(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of an inclined ground and of things on it, and which are of the ground."""
    ground = rng.uniform(-2.5, 2.5, (3000, 3))
    ground[:, 2] = 0.05 * ground[:, 0] - 0.03 * ground[:, 1] - 0.8 + rng.normal(0, 0.008, 3000)
    walls = rng.uniform(-1, 1, (1500, 3)) * [0.4, 0.4, 0.5] + [1.2, -0.5, 0]
    table = rng.uniform(-1, 1, (1500, 3)) * [0.6, 0.6, 0] + [-1.2, 0.8, 0.3]
    points = np.concatenate([ground, walls, table]).astype(np.float32)
    height = points[:, 2] - (0.05 * points[:, 0] - 0.03 * points[:, 1] - 0.8)
    return points, height / np.hypot(1, np.hypot(0.05, 0.03))


def voxels_of(points: np.ndarray) -> np.ndarray:
    at = np.floor(points.astype(np.float64) / SIZE + SIDE / 2).astype(int)
    return np.unique(at, axis=0)


def test_points_of_the_ground_hit_nothing_and_clear(scenes: Scenes) -> None:
    points, heights = street(np.random.default_rng(4))
    scenes.call("scene_create", name="s", spec=fused())
    filter_ = scene_pb2.SceneFilter(ground=True, ground_distance_m=0.06)
    carve = scene_pb2.SceneCarve()
    fields = {"name": "s", "cloud": cloud_of(points), "carve": carve, "filter": filter_}
    reply = scenes.call("scene_integrate", **fields)
    # The plane is known, but for what its noise leaves open.
    assert (np.abs(heights) < 0.055).sum() <= reply.n_ground <= (np.abs(heights) < 0.065).sum()
    assert reply.n_dropped == reply.n_ground and reply.n_used + reply.n_ground == len(points)
    states = scenes.dense("s", SIDE)[0]
    sure = voxels_of(points[np.abs(heights) > 0.065])
    maybe = voxels_of(points[np.abs(heights) > 0.055])
    occupied = np.argwhere(states == OCCUPIED)
    assert (states[tuple(sure.T)] == OCCUPIED).all() and len(occupied) <= len(maybe)
    assert (states == FREE).sum() > 3000
    # At another height there is no ground, nor where nothing may be inclined so.
    for name, other in (
        ("low", {"ground_z": -2, "ground_z_tolerance_m": 0.3}),
        ("level", {"ground_angle": 0.001, "ground_z": -0.8, "ground_z_tolerance_m": 0.2}),
    ):
        scenes.call("scene_create", name=name, spec=fused())
        filter_ = scene_pb2.SceneFilter(ground=True, ground_distance_m=0.02, **other)
        reply = scenes.call("scene_integrate", **{**fields, "name": name, "filter": filter_})
        assert reply.n_ground < 1500


def test_voxels_of_few_points_and_without_neighbours_are_not_hit(scenes: Scenes) -> None:
    rng = np.random.default_rng(6)
    crowd = rng.normal(0, 0.5, (1200, 3))
    alone = rng.uniform(-3, 3, (300, 3))
    points = np.concatenate([crowd, alone]).astype(np.float32)
    at = np.floor(points.astype(np.float64) / SIZE + SIDE / 2).astype(int)
    n = np.zeros((SIDE + 2,) * 3, int)
    np.add.at(n, tuple((at + 1).T), 1)
    for min_hits, no_speckles in ((0, True), (2, False), (3, True)):
        hit = n >= max(min_hits, 1)
        near = sum(
            np.roll(hit, (x, y, z), (0, 1, 2))
            for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)
        )  # fmt: skip
        expected = hit & (near > 0) if no_speckles else hit
        name = f"s{min_hits}"
        scenes.call("scene_create", name=name, spec=fused())
        filter_ = scene_pb2.SceneFilter(min_hits=min_hits, no_speckles=no_speckles)
        reply = scenes.call(
            "scene_integrate", name=name, cloud=cloud_of(points), filter=filter_
        )
        assert reply.n_sparse == len(points) - n[expected].sum() > 0
        states = scenes.dense(name, SIDE)[0]
        np.testing.assert_array_equal(states == OCCUPIED, expected[1:-1, 1:-1, 1:-1])


def test_filtered_points_keep_their_materials(scenes: Scenes) -> None:
    points = np.zeros((40, 4), np.float32)
    points[:, :3] = np.random.default_rng(3).uniform(-2, 2, (40, 3))
    points[:, 3] = np.arange(40) % 7
    points = np.repeat(points, np.arange(40) % 3 + 1, axis=0)
    rule = scene_pb2.SceneMaterialRule(kind="LABEL", field="l")
    scenes.call("scene_create", name="s", spec=spec(DEPTH, SIZE, 4, track_free=True))
    scenes.call(
        "scene_integrate", name="s", cloud=cloud_of(points, "xyzl"), rule=rule,
        filter=scene_pb2.SceneFilter(min_hits=2),
    )  # fmt: skip
    states, materials = scenes.dense("s", SIDE)
    assert materials is not None and (states == OCCUPIED).sum() > 20
    for place, count in zip(*np.unique(points, axis=0, return_counts=True), strict=True):
        at = tuple(voxels_of(place[None, :3])[0])
        if count > 1:
            assert (states[at], materials[at]) == (OCCUPIED, place[3])


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("filter.ground_distance_m", {"ground_distance_m": -1}),
        ("filter.ground_angle", {"ground_angle": 1.6}),
        ("filter.ground_z", {"ground_z": float("nan")}),
        ("filter.ground_z_tolerance_m", {"ground_z_tolerance_m": float("inf")}),
    ],
)
def test_wrong_filter_is_refused(scenes: Scenes, field: str, wrong: dict[str, Any]) -> None:
    scenes.call("scene_create", name="s", spec=fused())
    fields = {"cloud": cloud_of(np.float32([[1, 0, 0]])), "filter": scene_pb2.SceneFilter(**wrong)}
    scenes.fails("scene_integrate", INVALID_ARGUMENT, field, name="s", **fields)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("factor", {}),
        ("factor", {"factor": 0.5, "step": 1}),
        ("factor", {"factor": 1.0}),
        ("factor", {"factor": float("nan")}),
        ("step", {"step": float("inf")}),
        ("half_life_s", {"half_life_s": -1}),
        ("elapsed_s", {"half_life_s": 1, "elapsed_s": float("nan")}),
        ("elapsed_s", {"factor": 0.5, "elapsed_s": 1}),
        ("until_ns", {"half_life_s": 1, "elapsed_s": 1, "until_ns": 1}),
        ("keep_radius", {"factor": 0.5, "keep_radius": -1}),
        ("keep_centre", {"factor": 0.5, "keep_radius": 1}),
        ("box.low", {"factor": 0.5, "box": scene_pb2.SceneBox(high=vec(1, 1, 1))}),
    ],
)
def test_wrong_decay_is_refused(scenes: Scenes, field: str, wrong: dict[str, Any]) -> None:
    scenes.call("scene_create", name="s", spec=fused())
    scenes.fails("scene_decay", INVALID_ARGUMENT, field, name="s", **wrong)
    assert scenes.call("scene_get", name="s").scene.version == 1


def test_scene_of_the_last_word_has_no_decays_and_pins(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=fused(fusion="SCENE_FUSION_LAST"))
    scenes.fails("scene_decay", FAILED_PRECONDITION, "name", name="s", factor=0.5)
    points = tensor_of(np.int32([[0, 0, 0]]))
    scenes.fails("scene_log_odds_at", FAILED_PRECONDITION, "name", name="s", points=points)
    points = tensor_of(np.zeros(((1 << 18) + 1, 3), np.int32))
    scenes.fails("scene_log_odds_at", INVALID_ARGUMENT, "points", name="s", points=points)
    pin = box((0, 0, 0), (1, 1, 1), pin="SCENE_PINNED")
    scenes.fails(
        "scene_edit", FAILED_PRECONDITION, "operations[0].pin", name="s", operations=[pin]
    )
    for field, wrong in (
        ("operations[0].action", box((0, 0, 0), (1, 1, 1), "SCENE_KEEP")),
        ("operations[0].pin", box((0, 0, 0), (1, 1, 1), "SCENE_PAINT", pin="SCENE_PINNED")),
        ("operations[0].pin", box((0, 0, 0), (1, 1, 1), pin=7)),
    ):
        scenes.fails("scene_edit", INVALID_ARGUMENT, field, name="s", operations=[wrong])
    far = {"factor": 0.5, "keep_radius": 1, "keep_centre": vec(1e9, 0, 0)}
    scenes.call("scene_create", name="f", spec=fused())
    scenes.fails("scene_decay", common_pb2.OUT_OF_RANGE, "keep_centre", name="f", **far)


def test_client_and_voxelctl_pin_and_decay(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, voxeld.connect(daemon.ipc) as client:
        scene = client.scene_create("s", SIZE, depth=DEPTH, track_free=True)
        door = voxeld.Box((0, 0, 0), (0.2, 0.2, 0.2))
        scene.edit([voxeld.Operation(door, pin="pinned")])
        assert len(scene.export(pinned=True)) == 8
        values = scene.values([[0.1, 0.1, 0.1], [1.0, 1.0, 1.0]], pins=True)
        assert values.pinned is not None and list(values.pinned) == [True, False]
        done = client.scene_decay("s", factor=0.5, keep_centre=(0, 0, 0), keep_radius=1)
        assert (done.version, done.factor, done.n_removed) == (3, 0.5, 0)
        with pytest.raises(voxeld.InvalidArgument):
            client.scene_decay("s")
        evidence = scene.log_odds([[0.1, 0.1, 0.1], [1.0, 1.0, 1.0]])
        assert list(evidence.steps) == [104, NEVER] and evidence.step == STEP

        def ctl(*words: str) -> str:
            return run(BIN / "voxelctl", "--url", daemon.ipc, *words).stdout

        told = json.loads(ctl("--json", "scene", "decay", "s", "--step", "1"))
        assert told["version"] == 4 and abs(told["step"] - 30 * STEP) < 1e-9
        ctl("scene", "edit", "s", "--box", "0,0,0,0.2,0.2,0.2", "--leave", "--unpin")
        assert scene.info().n_pinned == 0
        assert "decayed" in ctl("scene", "log", "s")
        # Seen from where the sensor was at half of its way.
        end = voxeld.Pose((2, 0, 0), (0, 0, 1, 0))
        cloud = voxeld.Cloud.from_numpy(
            np.float32([[0.25, 0, 0, 5]]), ["x", "y", "z", "at"],
            deskew=voxeld.Deskew(end, "at", 0, 10),
        )  # fmt: skip
        assert scene.integrate(cloud).n_used == 1
        assert scene.values([[1.05, 0.25, 0.05]]).occupied.all()
        one = scene.integrate(np.float32([[1, 1, 1]]), filter=voxeld.Filter(no_speckles=True))
        assert (one.n_used, one.n_dropped, one.n_sparse) == (0, 1, 1)
        np.save(tmp_path / "scan.npy", np.float32([[1, 1, 1], [2, 2, 2]]))
        told = json.loads(
            ctl("--json", "scene", "integrate", str(tmp_path / "scan.npy"), "--scene", "s",
                "--min-hits", "2")
        )  # fmt: skip
        assert told["n_dropped"] == 2
