# SPDX-License-Identifier: Apache-2.0
"""A data directory is the same on either backend: a daemon on the CPU goes on with what one on a
GPU wrote, and the other way round. Needs a GPU: VOXELD_TEST_BACKEND=cuda:0."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
import test_map_durable as durable_maps
from harness import BACKEND, Daemon, cloud_of, common_pb2, scene_pb2, wait_until
from maps import Maps, Oracle, check_export
from scenes import Scenes
from test_scene_durable import FSYNCS, create, durable, picture, random_operation

pytestmark = pytest.mark.skipif(BACKEND == "cpu", reason="one backend has no other")

NAMES = ["a", "b", "c"]


ENDS = ["killed", "stopped"]
ORDERS = [("cpu", BACKEND), (BACKEND, "cpu")]


def config(backend: str) -> dict[str, object]:
    return {"engine": {"backend": backend}}


def live(scenes: Scenes, rng: np.random.Generator) -> None:
    """Makes edits of all kinds, scans, an undo, a snapshot."""
    for _ in range(15):
        for name in NAMES[:2]:
            scenes.edit(name, random_operation(rng), random_operation(rng))
    for _ in range(3):
        scan = rng.uniform(-3, 3, (2000, 3)).astype(np.float32)
        pose = common_pb2.Pose(
            translation=common_pb2.Vec3(x=0.5), rotation=common_pb2.Quaternion(w=1)
        )
        scenes.call(
            "scene_integrate",
            name="a",
            cloud=cloud_of(scan, T_map_sensor=pose),
            carve=scene_pb2.SceneCarve(max_range_m=4),
            rule=scene_pb2.SceneMaterialRule(material=3),
        )
    scenes.call("scene_undo", name="a")
    scenes.call("scene_undo", name="b")


def end(daemon: Daemon, ends: str) -> None:
    if ends == "killed":
        daemon.signal(signal.SIGKILL)
        daemon.process.wait(20)
    else:
        daemon.stop()


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("order", ORDERS)
def test_either_backend_goes_on_with_the_others_files(
    tmp_path: Path, order: tuple[str, str], ends: str
) -> None:
    rng = np.random.default_rng(4)
    before = None
    for round_ in range(4):
        daemon = Daemon(tmp_path, config(order[round_ % 2]))
        with Scenes(daemon) as scenes:
            if round_ == 0:
                create(scenes, "a")
                create(scenes, "b", durability=durable(FSYNCS[0], 1500))
                scenes.edit("a", random_operation(rng))
                scenes.call("scene_branch", name="a", new_name="c")
            else:
                assert picture(scenes, NAMES) == before
            live(scenes, rng)
            for name in NAMES:
                scenes.call("scene_verify", name=name)
            if round_ == 0:
                wait_until(lambda d=daemon: d.find("snapshot written"), 20, "a snapshot")
            before = picture(scenes, NAMES)
        end(daemon, ends)
    files = list((tmp_path / "data" / "snapshots").iterdir())
    assert files, "both read the journal only"


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("order", ORDERS)
def test_either_backend_goes_on_with_the_others_maps(
    tmp_path: Path, order: tuple[str, str], ends: str
) -> None:
    """Keys, numbers and values are those of a dict, from the journal and from snapshot files."""
    rng = np.random.default_rng(5)
    oracles = {name: Oracle(**durable_maps.ZEROS) for name in NAMES[:2]}
    before: dict[str, object] = {}
    for round_ in range(4):
        daemon = Daemon(tmp_path, config(order[round_ % 2]))
        with Maps(daemon) as maps:
            if round_ == 0:
                durable_maps.create(maps, "a")
                durable_maps.create(maps, "b", journal_max_bytes=20000)
            else:
                assert {n: durable_maps.info_of(maps, n) for n in oracles} == before
            for name, oracle in oracles.items():
                if round_ > 0:
                    check_export(maps, name, oracle)
                for _ in range(25):
                    durable_maps.change(maps, oracle, rng, name)
            if round_ == 1:
                wait_until(lambda d=daemon: d.find("snapshot written"), 20, "a snapshot")
            before = {n: durable_maps.info_of(maps, n) for n in oracles}
        end(daemon, ends)
    assert list((tmp_path / "data" / "snapshots").iterdir()), "both read the journal only"
