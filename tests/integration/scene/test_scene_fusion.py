# SPDX-License-Identifier: Apache-2.0
"""Scans fused by log-odds, against one number a voxel in NumPy: also through edits, undos,
branches, SIGKILLs and snapshot files.

What a scan hits and passes is read from a scene of the last word that has nothing else, so that
this is about fusion alone.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import OK, Daemon, cloud_of, common_pb2, running, scene_pb2, wait_until
from scenes import FREE, OCCUPIED, UNKNOWN, Scenes, ball, box, spec, vec

DEPTH = 6
SIDE = 1 << DEPTH
SIZE = 0.1
NEVER = -128
INVALID_ARGUMENT = common_pb2.INVALID_ARGUMENT
RESOURCE_EXHAUSTED = common_pb2.RESOURCE_EXHAUSTED
ALREADY_EXISTS = common_pb2.ALREADY_EXISTS
HIT, MISS, LOW, HIGH = 25, -12, -59, 104


def fused(**fields: Any) -> scene_pb2.SceneSpec:
    return spec(DEPTH, SIZE, track_free=True, **fields)


class Model:
    """Log-odds of all voxels, and the states that follow from them."""

    def __init__(self) -> None:
        self.odds = np.full((SIDE,) * 3, NEVER, np.int16)

    def states(self) -> np.ndarray:
        known = np.where(self.odds >= 0, OCCUPIED, FREE)
        return np.where(self.odds == NEVER, UNKNOWN, known).astype(np.uint8)

    def scan(self, states: np.ndarray) -> None:
        """`states` are those of the scan alone."""
        step = np.where(states == OCCUPIED, HIT, MISS)
        after = np.clip(np.where(self.odds == NEVER, 0, self.odds) + step, LOW, HIGH)
        self.odds = np.where(states == UNKNOWN, self.odds, after).astype(np.int16)

    def follow(self, states: np.ndarray) -> None:
        """The scene has these states after a change that was no scan."""
        clamps = np.where(states == OCCUPIED, HIGH, np.where(states == FREE, LOW, NEVER))
        self.odds = np.where(states == self.states(), self.odds, clamps).astype(np.int16)


class Robot:
    """Scans from random places, into a scene and into a model."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.model = Model()

    def cloud(self) -> common_pb2.Cloud:
        """Points of walls that are not always there, so that states flip."""
        n = 400
        direction = self.rng.normal(size=(n, 3))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        reach = self.rng.choice([1.0, 1.6, 2.4], (n, 1)) + self.rng.uniform(0, 0.05, (n, 1))
        sensor = self.rng.uniform(-0.1, 0.1, 3)
        pose = common_pb2.Pose(translation=vec(*sensor), rotation=common_pb2.Quaternion(w=1))
        return cloud_of((direction * reach).astype(np.float32), T_map_sensor=pose)

    def scan(self, scenes: Scenes, name: str, carve: bool = True) -> Any:
        cloud = self.cloud()
        fields: dict[str, Any] = {"carve": scene_pb2.SceneCarve()} if carve else {}
        scenes.call("scene_create", name="alone", spec=fused(fusion="SCENE_FUSION_LAST"))
        scenes.call("scene_integrate", name="alone", cloud=cloud, **fields)
        self.model.scan(scenes.dense("alone", SIDE)[0])
        scenes.call("scene_drop", name="alone")
        return scenes.call("scene_integrate", name=name, cloud=cloud, **fields)

    def edit(self, scenes: Scenes, name: str) -> None:
        action = "SCENE_" + str(self.rng.choice(["FILL", "ERASE", "SET_FREE"]))
        a = self.rng.uniform(-2, 2, 3)
        shape = (
            ball(a, float(self.rng.uniform(0.2, 1)), action)
            if self.rng.random() < 0.5
            else box(a, a + self.rng.uniform(0.1, 2, 3), action)
        )
        scenes.edit(name, shape)
        self.model.follow(scenes.dense(name, SIDE)[0])

    def undo(self, scenes: Scenes, name: str) -> None:
        version = scenes.call("scene_get", name=name).scene.version
        scenes.call("scene_undo", name=name, of_version=version)
        self.model.follow(scenes.dense(name, SIDE)[0])

    def step(self, scenes: Scenes, name: str) -> None:
        what = self.rng.integers(0, 6)
        if what == 0:
            self.edit(scenes, name)
        elif what == 1 and scenes.call("scene_get", name=name).scene.version > 2:
            self.undo(scenes, name)
        else:
            self.scan(scenes, name, carve=what != 2)
        self.check(scenes, name)

    def check(self, scenes: Scenes, name: str) -> None:
        np.testing.assert_array_equal(scenes.dense(name, SIDE)[0], self.model.states())


def test_random_scans_edits_and_undos_give_the_states_of_the_model(scenes: Scenes) -> None:
    robot = Robot(1)
    scenes.call("scene_create", name="s", spec=fused())
    for _ in range(25):
        robot.step(scenes, "s")
    odds = robot.model.odds
    assert (odds == HIGH).any() and (odds == LOW).any() and (np.unique(odds).size > 20)


def test_wall_of_five_scans_stays_after_one_that_sees_through_it(scenes: Scenes) -> None:
    sensor = common_pb2.Pose(translation=vec(0.05, 0.05, 0.05))
    wall = cloud_of(np.float32([[1, 0, 0]]), T_map_sensor=sensor)
    beyond = cloud_of(np.float32([[2, 0, 0]]), T_map_sensor=sensor)
    at = {"points": scene_pb2.ScenePoints().points}
    at["points"].values.extend([1.05, 0.05, 0.05])
    at["points"].shape.extend([1, 3])

    def state() -> int:
        return scenes.call("scene_values", name="s", **at).states.data[0]

    scenes.call("scene_create", name="s", spec=fused(fusion="SCENE_FUSION_LOG_ODDS"))
    for _ in range(5):
        scenes.call("scene_integrate", name="s", cloud=wall, carve=scene_pb2.SceneCarve())
    for _ in range(8):
        gone = scenes.call("scene_integrate", name="s", cloud=beyond, carve=scene_pb2.SceneCarve())
        assert gone.change.n_removed == 0
        assert state() == OCCUPIED
    gone = scenes.call("scene_integrate", name="s", cloud=beyond, carve=scene_pb2.SceneCarve())
    assert (gone.change.n_removed, gone.change.n_freed) == (1, 1)
    assert state() == FREE
    # The last word would have erased it at once.
    scenes.call("scene_create", name="last", spec=fused(fusion="SCENE_FUSION_LAST"))
    scenes.call("scene_integrate", name="last", cloud=wall, carve=scene_pb2.SceneCarve())
    reply = scenes.call("scene_integrate", name="last", cloud=beyond, carve=scene_pb2.SceneCarve())
    assert reply.change.n_removed == 1


def test_sweeps_of_a_cloud_are_one_scan(scenes: Scenes) -> None:
    """What one sweep hits and another one passes gets a hit, and nothing gets two."""
    sensor = common_pb2.Pose(translation=vec(0.05, 0.05, 0.05))
    sweep = common_pb2.Sweep(data=np.float32([[2, 0, 0]]).tobytes())
    cloud = cloud_of(
        np.float32([[1, 0, 0], [2, 0, 0]]), T_map_sensor=sensor, sweeps=[sweep] * 3
    )
    beyond = cloud_of(np.float32([[2, 0, 0]]), T_map_sensor=sensor)
    scenes.call("scene_create", name="s", spec=fused())
    reply = scenes.call("scene_integrate", name="s", cloud=cloud, carve=scene_pb2.SceneCarve())
    assert reply.change.n_added == 2
    # 25 steps, less 12 for each miss: free after the third.
    for n_removed in (0, 0, 1):
        again = scenes.call("scene_integrate", name="s", cloud=beyond, carve=scene_pb2.SceneCarve())
        assert again.change.n_removed == n_removed


def test_fusion_of_a_spec_has_its_defaults_and_equals_what_exists(scenes: Scenes) -> None:
    made = scenes.call("scene_create", name="s", spec=fused()).scene
    assert made.spec.fusion == scene_pb2.SCENE_FUSION_LOG_ODDS
    odds = made.spec.log_odds
    assert (odds.hit, odds.miss, odds.clamp_low, odds.clamp_high) == (0.7, 0.4, 0.1192, 0.971)
    assert (odds.occupied, odds.step) == (0.5, 0.0338) and 0 < odds.error < 0.005
    assert scenes.call("scene_create", name="s", spec=fused()).existed
    assert scenes.call(
        "scene_create", name="s", spec=fused(fusion="SCENE_FUSION_LOG_ODDS")
    ).existed
    other = scene_pb2.SceneLogOdds(hit=0.9)
    scenes.fails(
        "scene_create", ALREADY_EXISTS, "name", name="s", spec=fused(log_odds=other)
    )
    last = fused(fusion="SCENE_FUSION_LAST")
    scenes.fails("scene_create", ALREADY_EXISTS, "name", name="s", spec=last)
    # Not saying it means what is there, whichever that is.
    scenes.call("scene_create", name="last", spec=last)
    assert scenes.call("scene_create", name="last", spec=fused()).existed
    plain = scenes.call("scene_create", name="plain", spec=spec(DEPTH, SIZE)).scene
    assert plain.spec.fusion == scene_pb2.SCENE_FUSION_LAST
    assert not plain.spec.HasField("log_odds") and plain.log_odds_bytes == 0
    own = scenes.call("scene_create", name="own", spec=fused(log_odds=other)).scene.spec
    assert own.fusion == scene_pb2.SCENE_FUSION_LOG_ODDS
    assert own.log_odds.hit == 0.9 and 0 < own.log_odds.error <= 0.01


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("spec.fusion", {"fusion": 9}),
        ("spec.fusion", {"fusion": "SCENE_FUSION_LOG_ODDS", "track_free": False}),
        ("spec.log_odds", {"log_odds": scene_pb2.SceneLogOdds(), "track_free": False}),
        (
            "spec.log_odds",
            {"fusion": "SCENE_FUSION_LAST", "log_odds": scene_pb2.SceneLogOdds()},
        ),
        ("spec.log_odds.hit", {"log_odds": scene_pb2.SceneLogOdds(hit=0.5)}),
        ("spec.log_odds.miss", {"log_odds": scene_pb2.SceneLogOdds(miss=float("nan"))}),
        ("spec.log_odds.clamp_low", {"log_odds": scene_pb2.SceneLogOdds(clamp_low=0.7)}),
        ("spec.log_odds.clamp_high", {"log_odds": scene_pb2.SceneLogOdds(clamp_high=-1)}),
        ("spec.log_odds.occupied", {"log_odds": scene_pb2.SceneLogOdds(occupied=0.99)}),
        ("spec.log_odds.hit", {"log_odds": scene_pb2.SceneLogOdds(hit=0.50001)}),
    ],
)
def test_spec_that_cannot_fuse_is_refused(
    scenes: Scenes, field: str, wrong: dict[str, Any]
) -> None:
    fields = {"track_free": True, **wrong}
    scenes.fails(
        "scene_create", INVALID_ARGUMENT, field, name="s", spec=spec(DEPTH, SIZE, **fields)
    )


def test_erasing_carve_is_refused_by_log_odds(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=fused())
    message = scenes.fails(
        "scene_integrate",
        INVALID_ARGUMENT,
        "carve.erase",
        name="s",
        cloud=cloud_of(np.float32([[1, 0, 0]])),
        carve=scene_pb2.SceneCarve(erase=True),
    )
    assert "SCENE_FUSION_LAST" in message


def test_scan_says_how_many_materials_it_replaced(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(DEPTH, SIZE, 4, track_free=True))
    cloud = cloud_of(np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    for material, n in ((1, 0), (2, 3), (2, 0)):
        rule = scene_pb2.SceneMaterialRule(material=material)
        reply = scenes.call("scene_integrate", name="s", cloud=cloud, rule=rule)
        assert (reply.n_relabelled, reply.change.n_changed) == (n, n)
        assert reply.change.n_removed == 0


def test_one_ray_a_voxel_passes_fewer_voxels_than_one_a_point(scenes: Scenes) -> None:
    rng = np.random.default_rng(3)
    cloud = cloud_of(rng.uniform(2.4, 2.9, (2000, 3)).astype(np.float32))
    passed = []
    for discretize in (False, True):
        name = f"s{int(discretize)}"
        scenes.call("scene_create", name=name, spec=fused())
        carve = scene_pb2.SceneCarve(discretize=discretize)
        reply = scenes.call("scene_integrate", name=name, cloud=cloud, carve=carve)
        passed.append(reply.n_passed_voxels)
    assert 0 < passed[1] < passed[0]


def test_branch_of_the_newest_version_copies_log_odds(scenes: Scenes) -> None:
    robot = Robot(4)
    scenes.call("scene_create", name="s", spec=fused())
    for _ in range(6):
        robot.scan(scenes, "s")
    n_bytes = scenes.call("scene_get", name="s").scene.log_odds_bytes
    assert n_bytes > 0
    branch = scenes.call("scene_branch", name="s", new_name="b").scene
    assert branch.log_odds_bytes > 1.5 * n_bytes  # of both
    assert branch.spec.fusion == scene_pb2.SCENE_FUSION_LOG_ODDS
    older = scene_pb2.SceneAt(version=4)
    scenes.call("scene_branch", name="s", new_name="old", at=older)
    # One goes on from where the other was, and neither sees the other.
    other, old = Robot(5), Robot(6)
    other.model.odds = robot.model.odds.copy()
    old.model.follow(scenes.dense("old", SIDE)[0])
    for _ in range(6):
        robot.scan(scenes, "s")
        other.scan(scenes, "b")
        old.scan(scenes, "old")  # began with clamps
        robot.check(scenes, "s")
        other.check(scenes, "b")
        old.check(scenes, "old")


def test_layer_counts_against_the_scenes_max_bytes(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(12, SIZE, track_free=True), max_bytes=4 << 20)
    cloud = cloud_of(np.random.default_rng(7).normal(size=(3000, 3)).astype(np.float32) * 40)
    before = scenes.call("scene_get", name="s").scene
    response = scenes.send(
        "scene_integrate", name="s", cloud=cloud, carve=scene_pb2.SceneCarve()
    )
    assert "max_bytes" in response.header.message
    after = scenes.call("scene_get", name="s").scene
    assert (after.version, after.digest) == (before.version, before.digest)
    assert after.n_bytes <= 4 << 20


def test_branches_copies_count_against_the_scenes_max_bytes(scenes: Scenes) -> None:
    most = 24 << 20
    scenes.call("scene_create", name="s", spec=spec(12, SIZE, track_free=True), max_bytes=most)
    rng = np.random.default_rng(8)
    for reach in range(4, 100, 4):
        cloud = cloud_of(rng.normal(size=(2000, 3)).astype(np.float32) * reach)
        header = scenes.send("scene_integrate", name="s", cloud=cloud).header
        assert scenes.call("scene_get", name="s").scene.n_bytes <= most
        if header.code != OK:
            break
    assert header.code == RESOURCE_EXHAUSTED and "max_bytes" in header.message
    before = scenes.call("scene_get", name="s").scene
    n_copies = (most - before.n_bytes) // before.log_odds_bytes
    for i in range(n_copies):
        branch = scenes.call("scene_branch", name="s", new_name=f"b{i}").scene
        assert branch.n_bytes <= most
    message = scenes.fails("scene_branch", RESOURCE_EXHAUSTED, name="s", new_name="more")
    assert 'a copy of those of "s" takes' in message and "max_bytes" in message
    scenes.fails("scene_get", common_pb2.NOT_FOUND, name="more")
    after = scenes.call("scene_get", name="s").scene
    assert (after.version, after.digest) == (before.version, before.digest)
    assert after.n_bytes <= most
    # Of an older version there is nothing to copy.
    scenes.call("scene_branch", name="s", new_name="old", at=scene_pb2.SceneAt(version=1))


def test_layer_and_store_of_a_scan_do_not_take_the_same_room_twice(scenes: Scenes) -> None:
    """One large scan into an empty scene, with less and less room."""
    rng = np.random.default_rng(10)
    cloud = cloud_of(rng.normal(size=(20000, 3)).astype(np.float32) * 40)
    scenes.call("scene_create", name="all", spec=spec(12, SIZE, track_free=True))
    scenes.call("scene_integrate", name="all", cloud=cloud)
    needed = scenes.call("scene_get", name="all").scene.n_bytes
    scenes.call("scene_drop", name="all")
    codes = []
    for sixteenths in range(20, 4, -1):
        most = needed * sixteenths // 16
        scenes.call(
            "scene_create", name="s", spec=spec(12, SIZE, track_free=True), max_bytes=most
        )
        codes.append(scenes.send("scene_integrate", name="s", cloud=cloud).header.code)
        assert scenes.call("scene_get", name="s").scene.n_bytes <= most
        scenes.call("scene_drop", name="s")
    assert set(codes) == {OK, RESOURCE_EXHAUSTED}


@contextlib.contextmanager
def killed(path: Path) -> Iterator[tuple[Daemon, Scenes]]:
    daemon = Daemon(path)
    try:
        with Scenes(daemon) as scenes:
            yield daemon, scenes
    finally:
        daemon.signal(signal.SIGKILL)
        daemon.process.wait(20)


@pytest.mark.parametrize("journal_max_bytes", [0, 20000])
def test_log_odds_outlive_sigkills(tmp_path: Path, journal_max_bytes: int) -> None:
    """Whatever the values are after a start, later scans show them."""
    durable = scene_pb2.SceneDurability(journal_max_bytes=journal_max_bytes)
    robot, branched = Robot(8), Robot(9)
    n_snapshots = 0
    for start in range(4):
        with killed(tmp_path) as (daemon, scenes):
            if start == 0:
                scenes.call("scene_create", name="s", spec=fused(), durability=durable)
            robot.check(scenes, "s")
            for _ in range(6):
                robot.step(scenes, "s")
            if start == 1:
                scenes.call("scene_branch", name="s", new_name="b")
                branched.model.odds = robot.model.odds.copy()
            if start >= 1:
                for _ in range(2):
                    branched.step(scenes, "b")
            n_snapshots += sum(line.get("msg") == "snapshot written" for line in daemon.log)
            assert not any(line.get("msg") == "no snapshot was written" for line in daemon.log)
    assert (n_snapshots > 0) == (journal_max_bytes > 0)
    with killed(tmp_path) as (_, scenes):
        for _ in range(4):
            robot.scan(scenes, "s")
            robot.check(scenes, "s")
            branched.scan(scenes, "b")
            branched.check(scenes, "b")


def test_writers_without_a_pause_do_not_keep_snapshots_from_being_taken(tmp_path: Path) -> None:
    """The lane always has one more change to make, and others that wait for the journal."""
    durable = scene_pb2.SceneDurability(journal_max_bytes=20000)
    clouds = [Robot(seed).cloud() for seed in range(6)]
    errors: list[BaseException] = []
    enough = threading.Event()
    n_answered = [0] * len(clouds)

    with running(tmp_path) as daemon, Scenes(daemon) as scenes:

        def n_written() -> int:
            return sum(line.get("msg") == "snapshot written" for line in daemon.log)

        def write(i: int) -> None:
            try:
                with Scenes(daemon, f"w-{i}") as own:
                    while not enough.is_set():
                        own.call("scene_integrate", name="s", cloud=clouds[i])
                        n_answered[i] += 1
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        scenes.call("scene_create", name="s", spec=fused(), durability=durable)
        threads = [threading.Thread(target=write, args=(i,)) for i in range(len(clouds))]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: n_written() >= 3 or errors, 20, "three snapshots are written")
        finally:
            enough.set()
            for thread in threads:
                thread.join()
        assert not errors, errors
        assert n_written() >= 3
        assert not any(line.get("msg") == "no snapshot was written" for line in daemon.log)
        info = scenes.call("scene_get", name="s").scene
        assert info.version == 1 + sum(n_answered)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        again = scenes.call("scene_get", name="s").scene
        assert (again.version, again.digest) == (info.version, info.digest)
