# SPDX-License-Identifier: Apache-2.0
"""Durable scans whose records hold the ends of their rays: a start casts them again, and every
version is what it was, whatever a scan had: values, sweeps, a moving sensor, dropped points."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import SLOW, Daemon, cloud_of, common_pb2, running, scene_pb2
from scenes import Scenes, spec, vec

CAST, CAST_FUSE, INTEGRATE, FUSE = 26, 27, 7, 8
FUSIONS = {"SCENE_FUSION_LAST": (CAST, INTEGRATE), "SCENE_FUSION_LOG_ODDS": (CAST_FUSE, FUSE)}


def pose(x: float, y: float, z: float, yaw: float = 0) -> common_pb2.Pose:
    rotation = common_pb2.Quaternion(z=np.sin(yaw / 2), w=np.cos(yaw / 2))
    return common_pb2.Pose(translation=vec(x, y, z), rotation=rotation)


def rays(rng: np.random.Generator, n: int = 300) -> np.ndarray:
    """Points far apart, whose rays pass many more leaves than there are points."""
    directions = rng.normal(size=(n, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return (directions * rng.uniform(4, 30, (n, 1))).astype(np.float32)


def scans(rng: np.random.Generator, erases: bool) -> list[dict[str, Any]]:
    """Requests of all kinds; with the times of their points as the fourth column. The last one
    erases what rays pass where it may."""
    at = pose(1.13, -2.41, 0.37, 0.4)
    carve = scene_pb2.SceneCarve(max_range_m=20)
    plain = np.column_stack([rays(rng), rng.uniform(0, 9, 300)]).astype(np.float32)
    plain[3, :3] = np.nan
    plain[4, :3] = 1e5
    by_label = scene_pb2.SceneMaterialRule(kind="LABEL", field="t", material=3)
    sweep = common_pb2.Sweep(data=plain.tobytes(), T_cloud_sweep=pose(-0.7, 0.1, 0))
    moving = common_pb2.Deskew(T_map_sensor_end=pose(2.1, -1.9, 0.4, 0.5), time_field="t")
    cloud = cloud_of(plain, "xyzt", T_map_sensor=at)
    return [
        {"cloud": cloud, "carve": carve},
        {"cloud": cloud, "carve": scene_pb2.SceneCarve(discretize=True)},
        {"cloud": cloud, "carve": carve, "rule": scene_pb2.SceneMaterialRule(material=5)},
        {"cloud": cloud, "carve": carve, "rule": by_label},
        {"cloud": cloud_of(plain, "xyzt", T_map_sensor=at, sweeps=[sweep]), "carve": carve},
        {"cloud": cloud_of(plain, "xyzt", T_map_sensor=at, deskew=moving), "carve": carve},
        {"cloud": cloud, "carve": carve, "filter": scene_pb2.SceneFilter(min_hits=2)},
        {"cloud": cloud, "carve": scene_pb2.SceneCarve(max_range_m=9, erase=erases)},
    ]


def digests(scenes: Scenes, name: str) -> dict[int, str]:
    log = scenes.call("scene_log", name=name, limit=1000)
    return {
        v.version: scenes.call(
            "scene_get", name=name, at=scene_pb2.SceneAt(version=v.version)
        ).scene.digest
        for v in log.versions
    }


def kinds(data_dir: Path) -> Counter[int]:
    """Kinds of all records, read from a copy: the journal itself is the daemon's alone."""
    copy = data_dir.parent / "copy"
    copy.mkdir()
    for path in data_dir.glob("voxeld.db*"):
        shutil.copy(path, copy)
    with contextlib.closing(sqlite3.connect(copy / "voxeld.db")) as database:
        return Counter(kind for (kind,) in database.execute("select kind from records"))


@pytest.mark.parametrize("fusion", list(FUSIONS))
def test_killed_daemon_casts_the_rays_of_all_scans_again(tmp_path: Path, fusion: str) -> None:
    rng = np.random.default_rng(5)
    requests = scans(rng, fusion == "SCENE_FUSION_LAST")
    daemon = Daemon(tmp_path)
    with Scenes(daemon) as scenes:
        made = spec(11, 0.05, bits=4, track_free=True, fusion=fusion)
        durability = scene_pb2.SceneDurability(fsync="SCENE_FSYNC_OFF")
        scenes.call("scene_create", name="s", spec=made, durability=durability)
        scenes.call("scene_create", name="memory", spec=made)
        for request in requests:
            reply = scenes.call("scene_integrate", name="s", **request)
            beside = scenes.call("scene_integrate", name="memory", **request)
            assert reply.n_passed_voxels == beside.n_passed_voxels > 10000
        before = digests(scenes, "s")
        assert list(before.values()) == list(digests(scenes, "memory").values())
        assert len(set(before.values())) >= len(requests)
        info = scenes.call("scene_get", name="s").scene
        scenes.call("scene_integrate", name="memory", **requests[0])
        later = scenes.call("scene_get", name="memory").scene.digest
    daemon.signal(signal.SIGKILL)
    daemon.process.wait(60)
    # The second one has no range, and a ray that is too long to be cast. Where scans take seconds,
    # a snapshot may have replaced some records.
    counted = kinds(tmp_path / "data")
    seen = [counted[kind] for kind in FUSIONS[fusion]]
    assert seen == [len(requests) - 1, 1] or (SLOW > 1 and seen[0] > 0)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert digests(scenes, "s") == before
        after = scenes.call("scene_get", name="s").scene
        assert (after.n_occupied, after.n_free) == (info.n_occupied, info.n_free)
        # Log-odds came back too: another scan makes the same of them.
        again = scenes.call("scene_integrate", name="s", **requests[0])
        assert again.change.version == len(requests) + 2
        assert scenes.call("scene_get", name="s").scene.digest == later


@pytest.mark.parametrize("fusion", list(FUSIONS))
def test_scan_of_few_leaves_keeps_its_lists_on_a_cpu(tmp_path: Path, fusion: str) -> None:
    rng = np.random.default_rng(6)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        made = spec(8, 0.2, track_free=True, fusion=fusion)
        scenes.call("scene_create", name="s", spec=made, durability=scene_pb2.SceneDurability())
        near = rng.uniform(-2, 2, (3000, 3)).astype(np.float32)
        far = np.full((1, 3), 4000, np.float32)
        carve = scene_pb2.SceneCarve()
        scenes.call("scene_integrate", name="s", cloud=cloud_of(near), carve=carve)
        scenes.call("scene_integrate", name="s", cloud=cloud_of(near))
        # A ray that is too long to be cast has no end that could be kept.
        longest = np.concatenate([rays(rng), far])
        scenes.call("scene_integrate", name="s", cloud=cloud_of(longest), carve=carve)
        before = digests(scenes, "s")
    assert kinds(tmp_path / "data")[FUSIONS[fusion][1]] == 3
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert digests(scenes, "s") == before
