# SPDX-License-Identifier: Apache-2.0
"""Scenes do not wait for each other: a long change of one holds up neither changes of others nor
what maps do, while its own family keeps its order."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import OK, Daemon, RawReq, http_call, running, scene_pb2, tensor_of, wait_until
from maps import SPEC, Maps, rows
from scenes import LONG_MS, Scenes, ball, slow_edit, spec

numbers = itertools.count(1)  # of slow edits, so that none is another one's repetition
DURABLE = scene_pb2.SceneDurability(fsync="SCENE_FSYNC_ALWAYS")


@pytest.fixture(params=["in memory", "durable"])
def more(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"durability": DURABLE} if request.param == "durable" else {}


def n_running(daemon: Daemon) -> int:
    return int(http_call(daemon, "GET", "/v1/status").json().get("running", 0))


@contextlib.contextmanager
def slow_edits(daemon: Daemon, names: list[str]) -> Iterator[list[RawReq]]:
    """Edits that take longer than the test, until their senders leave."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(RawReq(daemon.ipc)) for _ in names]
        daemon.settle()  # so that what runs then are these
        for peer, name in zip(peers, names, strict=True):
            peer.send(slow_edit(name, next(numbers), LONG_MS, 200.0))
        wait_until(lambda: n_running(daemon) >= min(len(names), 3), 20, "they run")
        yield peers


def check_others_work(daemon: Daemon, scenes: Scenes, name: str) -> None:
    """A scene and a map, from the first to the last request."""
    scenes.call("scene_create", name=name, spec=spec(6, bits=4))
    assert scenes.edit(name, ball((0, 0, 0), 1)).change.version == 2
    assert scenes.call("scene_undo", name=name).change.version == 3
    scenes.call("scene_drop", name=name)
    with Maps(daemon) as maps:
        maps.call("map_create", name=name, spec=SPEC)
        keys = np.arange(300, dtype=np.int32).reshape(100, 3)
        counts = rows(count=np.ones(100, np.uint64))
        maps.call("map_insert", name=name, keys=tensor_of(keys), values=counts)
        assert maps.call("map_get", name=name).map.n_entries == 100
        maps.call("map_find", name=name, keys=tensor_of(keys))
        maps.call("map_drop", name=name)


def test_long_edit_holds_up_no_other_scene_and_no_map(
    daemon: Daemon, more: dict[str, Any]
) -> None:
    with Scenes(daemon) as scenes:
        scenes.call("scene_create", name="slow", spec=spec(14, bits=4), **more)
        with slow_edits(daemon, ["slow"]):
            check_others_work(daemon, scenes, "quick")
            wait_until(lambda: n_running(daemon) == 1, 10, "it alone still runs")
            # Reads of the scene itself see its newest version.
            assert scenes.call("scene_get", name="slow").scene.version == 1
        wait_until(lambda: daemon.n_under_way() == 0, 20, "it has ended")
        scenes.call("scene_drop", name="slow")


def test_changes_of_one_family_keep_their_order(daemon: Daemon, more: dict[str, Any]) -> None:
    with Scenes(daemon) as scenes:
        scenes.call("scene_create", name="slow", spec=spec(14, bits=4), **more)
        scenes.call("scene_branch", name="slow", new_name="twig")
        with slow_edits(daemon, ["slow"]) as [first], contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(RawReq(daemon.ipc)) for _ in range(3)]
            for i, name in enumerate(("slow", "twig", "slow")):
                waiting[i].send(slow_edit(name, next(numbers), LONG_MS, 2.0))
            wait_until(lambda: daemon.n_under_way() >= 3, 20, "they wait")
            check_others_work(daemon, scenes, "quick")
            assert scenes.call("scene_get", name="slow").scene.version == 1
            assert scenes.call("scene_get", name="twig").scene.version == 1
            first.socket.close()
            replies = [peer.receive() for peer in waiting]
        assert all(r.header.code == OK for r in replies), replies
        assert scenes.call("scene_get", name="twig").scene.version == 2
        for name in ("slow", "twig"):
            scenes.call("scene_drop", name=name)


def test_long_edits_of_many_scenes_leave_a_lane(daemon: Daemon) -> None:
    names = [f"slow-{i}" for i in range(6)]
    with Scenes(daemon) as scenes, Maps(daemon) as maps:
        for name in names:
            scenes.call("scene_create", name=name, spec=spec(14, bits=4))
        with slow_edits(daemon, names):
            maps.call("map_create", name="m", spec=SPEC)
            keys = np.arange(300, dtype=np.int32).reshape(100, 3)
            counts = rows(count=np.ones(100, np.uint64))
            maps.call("map_insert", name="m", keys=tensor_of(keys), values=counts)
            maps.call("map_drop", name="m")
            wait_until(lambda: n_running(daemon) == 3, 10, "the others wait")
        wait_until(lambda: daemon.n_under_way() == 0, 30, "they have ended")
        for name in names:
            scenes.call("scene_drop", name=name)


class Painter(threading.Thread):
    """Edits a scene, of some milliseconds each, and keeps what it did by version."""

    def __init__(self, daemon: Daemon, scene: str, seed: int, n_edits: int) -> None:
        super().__init__()
        self.daemon_ = daemon
        self.scene = scene
        self.seed = seed
        self.n_edits = n_edits
        self.done: dict[int, scene_pb2.SceneOperation] = {}
        self.problem: BaseException | None = None

    def run(self) -> None:
        rng = np.random.default_rng(self.seed)
        try:
            with Scenes(self.daemon_, f"painter-{self.seed}") as scenes:
                for _ in range(self.n_edits):
                    action = "SCENE_FILL" if rng.random() < 0.7 else "SCENE_ERASE"
                    centre = rng.uniform(-20, 20, 3)
                    operation = ball(
                        centre, float(rng.uniform(1, 12)), action, material=int(rng.integers(9))
                    )
                    version = scenes.edit(self.scene, operation).change.version
                    self.done[version] = operation
        except BaseException as problem:
            self.problem = problem


def test_changes_beside_each_other_give_what_they_give_alone(
    directory: Path, more: dict[str, Any]
) -> None:
    """Two writers a scene, three scenes of which two are a family; collections meanwhile. Each is
    then made anew by its edits in the order of their versions."""
    names = ["a", "b", "c"]
    with running(directory) as daemon, Scenes(daemon) as scenes:
        for name in names[:2]:
            scenes.call("scene_create", name=name, spec=spec(9, bits=4), **more)
        scenes.call("scene_branch", name="a", new_name="c")
        painters = [
            Painter(daemon, name, 10 * i + j, 12) for i, name in enumerate(names) for j in range(2)
        ]
        for painter in painters:
            painter.start()
        with Maps(daemon) as maps:
            maps.call("map_create", name="m", spec=SPEC)
            i = 0
            while any(p.is_alive() for p in painters):
                keys = np.arange(3 * i, 3 * i + 3, dtype=np.int32).reshape(1, 3)
                counts = rows(count=np.ones(1, np.uint64))
                maps.call("map_insert", name="m", keys=tensor_of(keys), values=counts)
                i += 1
                if i % 20 == 0:
                    scenes.call("scene_collect", name=names[i // 20 % 3])
            assert maps.call("map_get", name="m").map.n_entries == i
        for painter in painters:
            painter.join()
            if painter.problem is not None:
                raise painter.problem
        digests = {n: scenes.call("scene_get", name=n).scene.digest for n in names}
        for name in names:
            done = {v: o for p in painters if p.scene == name for v, o in p.done.items()}
            assert sorted(done) == list(range(2, 26))
            scenes.call("scene_create", name="again", spec=spec(9, bits=4))
            for version in sorted(done):
                scenes.edit("again", done[version])
            assert scenes.call("scene_get", name="again").scene.digest == digests[name]
            scenes.call("scene_drop", name="again")
    if more:
        with running(directory) as daemon, Scenes(daemon) as scenes:
            again = {n: scenes.call("scene_get", name=n).scene.digest for n in names}
            assert again == digests
