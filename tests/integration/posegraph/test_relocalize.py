# SPDX-License-Identifier: Apache-2.0
"""Places found again: a simulated drive in a ring whose odometry drifts, closed by its keyframes;
the scene made anew from them against the one made with true poses; wrong matches refused; SVT-Net's
descriptors where random weights do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, running
from scipy.spatial.transform import Rotation
from voxeld import PosegraphEdge, PosegraphNode

N = 24  # keyframes of the drive
VOXEL = 0.2


def connect(daemon: Daemon, **more: Any) -> voxeld.Client:
    return voxeld.connect(daemon.ipc, timeout=60 * SLOW, **more)


class Town:
    """Boxes on a plane, seen by a lidar of 32 beams."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        angles = rng.uniform(0, 2 * np.pi, 60)
        radii = np.where(
            rng.uniform(size=60) < 0.5, rng.uniform(8, 13, 60), rng.uniform(24, 32, 60)
        )
        centre = np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)
        half = rng.uniform(0.7, 3.0, (60, 2))
        self.low = np.concatenate([centre - half, np.full((60, 1), 0.0)], 1)
        self.high = np.concatenate([centre + half, rng.uniform(2, 8, (60, 1))], 1)

    def scan(self, pose: np.ndarray, seed: int) -> np.ndarray:
        """Points in the sensor's frame, with noise of 1 cm."""
        rng = np.random.default_rng(seed)
        azimuth = np.linspace(0, 2 * np.pi, 720, endpoint=False)
        elevation = np.radians(np.linspace(-20, 12, 32))
        a, e = np.meshgrid(azimuth, elevation)
        rays = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], -1)
        rays = rays.reshape(-1, 3)
        d = rays @ pose[:3, :3].T
        o = pose[:3, 3]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(d[:, 2] < 0, -o[2] / d[:, 2], np.inf)
            for low, high in zip(self.low, self.high, strict=True):
                t1, t2 = (low - o) / d, (high - o) / d
                near = np.minimum(t1, t2).max(1)
                far = np.maximum(t1, t2).min(1)
                hit = (near < far) & (near > 0)
                t = np.where(hit & (near < t), near, t)
        seen = t < 40
        ranges = t[seen] + 0.01 * rng.normal(size=seen.sum())
        return (rays[seen] * ranges[:, None]).astype(np.float32)


def drive() -> list[np.ndarray]:
    poses = []
    for i in range(N + 2):  # the last two are where the first ones were
        a = 2 * np.pi * i / N
        m = np.eye(4)
        m[:3, :3] = Rotation.from_euler("z", a + np.pi / 2).as_matrix()
        m[:3, 3] = [18 * np.cos(a), 18 * np.sin(a), 1.7]
        poses.append(m)
    return poses


def descriptor(points: np.ndarray) -> np.ndarray:
    """A histogram of ranges by height, which turning the sensor does not change."""
    ranges = np.linalg.norm(points[:, :2], axis=1)
    rows, _, _ = np.histogram2d(
        ranges, points[:, 2], bins=(16, 6), range=((0, 40), (-1.5, 7)), density=True
    )
    return np.sqrt(rows).ravel()


def error_m(poses: np.ndarray, truth: list[np.ndarray]) -> float:
    return float(np.linalg.norm(poses[:, :3] - [m[:3, 3] for m in truth], axis=1).max())


def add_drive(client: voxeld.Client, town: Town, **more: Any) -> Any:
    """The keyframes of a drive with odometry that drifts by some metres in all."""
    truth = drive()
    rng = np.random.default_rng(9)
    graph = client.posegraph_create("drive", **more)
    information = [400.0] * 3 + [4000.0] * 3
    for i, pose in enumerate(truth):
        if i == 0:
            graph.add([PosegraphNode(0, pose)])
        else:
            step = np.linalg.inv(truth[i - 1]) @ pose
            x = rng.normal(size=6) * [0.02, 0.02, 0.01, 0.0005, 0.0005, 0.002]
            step[:3, 3] += x[:3]
            turn = Rotation.from_rotvec(x[3:] + [0, 0, 0.012]).as_matrix()
            step[:3, :3] = step[:3, :3] @ turn
            graph.add([PosegraphNode(i)], [PosegraphEdge(i - 1, i, step, information)])
        points = town.scan(pose, i)
        graph.add_keyframe(i, points, descriptor=descriptor(points))
    return graph


def occupied(scene: Any) -> set[tuple[int, int, int]]:
    return set(map(tuple, scene.export().cells.tolist()))


def near(cells: set[tuple[int, int, int]], others: set[tuple[int, int, int]]) -> float:
    """The part of cells that have one of the others in them or beside them."""
    steps = [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)]
    n = sum(any((c[0] + x, c[1] + y, c[2] + z) in others for x, y, z in steps) for c in cells)
    return n / len(cells)


def test_drive_with_drift_is_closed_and_the_scene_made_anew(tmp_path: Path) -> None:
    town, truth = Town(7), drive()
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = add_drive(client, town)
        drifted = error_m(graph.read().poses, truth)
        assert drifted > 2
        scene = client.scene_create("town", VOXEL, fusion="last")
        for _, pose, points in graph.keyframes():
            scene.integrate(points, pose=pose, carve=False)
        before = scene.info().version
        found = [m for i in (N, N + 1) for m in graph.close_loops(i, skip_recent=8)]
        assert found and {m.id for m in found} <= {0, 1, 2, N - 1}
        for match in found:
            assert match.fitness > 0.6 and match.rmse_m < 0.2
        done = graph.optimize()
        assert done.converged
        closed = error_m(graph.read().poses, truth)
        print(f"errors: {drifted:.3f} m, closed {closed:.3f} m")
        assert closed < 0.4 and closed < drifted / 5
        version = graph.rebuild_scene(scene, carve=False)
        assert version == before + 1
        true = client.scene_create("true", VOXEL, fusion="last")
        for i, pose in enumerate(truth):
            true.integrate(town.scan(pose, i), pose=pose, carve=False)
        expected, made = occupied(true), occupied(scene)
        old = set(map(tuple, scene.export(at=before).cells.tolist()))
        assert near(made, expected) > 0.9 and near(expected, made) > 0.9
        assert near(old, expected) < near(made, expected) - 0.1
        assert {s.name for s in client.scenes()} == {"town", "true"}
        # A volume is made from the same keyframes.
        volume = client.volume_create("town", 0.2, truncation_m=0.8)
        assert graph.rebuild_volume(volume, range_max_m=40) == N + 2
        assert volume.info().n_images == N + 2


def test_scan_from_a_known_place_is_found_and_others_are_refused(tmp_path: Path) -> None:
    town, truth = Town(7), drive()
    elsewhere = Town(8)
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = add_drive(client, town)
        poses = graph.read().poses
        rng = np.random.default_rng(10)
        for i in range(0, N, 5):
            # Half a metre aside, turned any way.
            aside = np.eye(4)
            aside[:3, :3] = Rotation.from_euler("z", rng.uniform(0, 2 * np.pi)).as_matrix()
            aside[:3, 3] = [*rng.uniform(-0.4, 0.4, 2), 0]
            points = town.scan(truth[i] @ aside, 100 + i)
            places = graph.relocalize(points, descriptor=descriptor(points), candidates=5)
            assert places.n_accepted >= 1, i
            best = places.matches[0]
            k = best.id
            expected = np.linalg.inv(truth[k]) @ truth[i] @ aside
            assert np.linalg.norm(np.array(best.T_node_sensor.translation) - expected[:3, 3]) < 0.1
            turn = Rotation.from_quat(best.T_node_sensor.rotation).inv() * Rotation.from_matrix(
                expected[:3, :3]
            )
            assert np.degrees(turn.magnitude()) < 0.5
            # In the map it is where the keyframe's node is thought to be.
            m = Rotation.from_quat(poses[k][3:]).apply(best.T_node_sensor.translation)
            assert np.allclose(m + poses[k][:3], best.T_map_sensor.translation, atol=1e-6)
        for i in range(0, N, 6):
            points = elsewhere.scan(truth[i], i)
            places = graph.relocalize(points, descriptor=descriptor(points), candidates=8)
            assert places.n_accepted == 0, (i, places.matches[0])
            assert all(m.reason for m in places.matches)
        # A bare plane fits everywhere, and so nowhere.
        plane = np.random.default_rng(1).uniform(-20, 20, (20000, 3)).astype(np.float32)
        plane[:, 2] = -1.7
        places = graph.relocalize(plane, descriptor=descriptor(town.scan(truth[0], 0)))
        assert places.n_accepted == 0
        assert places.matches[0].reason == "too few upright surfaces"


def test_bad_requests_say_what_is_wrong(tmp_path: Path) -> None:
    cloud = np.random.default_rng(1).uniform(-5, 5, (100, 3)).astype(np.float32)
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = client.posegraph_create("g")
        places = graph.relocalize(cloud, descriptor=[1, 2])
        assert places.matches == () and places.n_keyframes == 0
        graph.add_keyframe(1, cloud, descriptor=[1, 2])
        with pytest.raises(voxeld.AlreadyExists, match="keyframe already"):
            graph.add_keyframe(1, cloud, descriptor=[1, 2])
        with pytest.raises(voxeld.InvalidArgument, match="3 values.*have 2|2"):
            graph.add_keyframe(2, cloud, descriptor=[1, 2, 3])
        with pytest.raises(voxeld.InvalidArgument, match="have 2"):
            graph.relocalize(cloud, descriptor=[1, 2, 3])
        with pytest.raises(voxeld.InvalidArgument, match="not finite"):
            graph.relocalize(cloud, descriptor=[1, np.nan])
        with pytest.raises(voxeld.InvalidArgument, match="needed"):
            graph.relocalize(cloud)
        with pytest.raises(voxeld.InvalidArgument, match="cloud"):
            graph.relocalize(descriptor=[1, 2])
        with pytest.raises(voxeld.InvalidArgument, match="cell_m"):
            graph.relocalize(cloud, descriptor=[1, 2], cell_m=0.001)
        with pytest.raises(voxeld.InvalidArgument, match="candidates"):
            graph.relocalize(cloud, descriptor=[1, 2], candidates=65)
        with pytest.raises(voxeld.InvalidArgument, match="of_node"):
            graph.relocalize(cloud, of_node=1)
        with pytest.raises(voxeld.NotFound, match="node 9"):
            graph.relocalize(of_node=9)
        with pytest.raises(voxeld.NotFound, match="network"):
            graph.relocalize(cloud, network="none")
        with pytest.raises(voxeld.NotFound, match="has no keyframe|not there"):
            graph.read(keyframe=True, keyframe_id=5)
        assert graph.info().n_nodes == 1
        small = client.posegraph_create("small", max_bytes=4096)
        with pytest.raises(voxeld.ResourceExhausted, match="max_bytes"):
            small.add_keyframe(1, np.zeros((5000, 3), np.float32))
        assert small.info().n_nodes == 0
        wild = cloud.copy()
        wild[3] = np.nan
        assert client.posegraph_create("wild").add_keyframe(1, wild).n_points == 99


def test_descriptors_of_svtnet_find_the_keyframe(tmp_path: Path) -> None:
    folder = tmp_path / "networks"
    folder.mkdir()
    shutil.copy(SOURCE / "configs" / "networks" / "svtnet.json", folder)
    town, truth = Town(7), drive()
    subprocess.run([BIN / "voxeld", "--init-network", folder / "svtnet.json"], check=True)
    with (
        running(tmp_path, {"networks_dir": str(folder)}) as daemon,
        connect(daemon) as client,
    ):
        client.network_load("svtnet")
        graph = client.posegraph_create("drive")
        for i in range(0, N, 3):
            added = graph.add_keyframe(i, town.scan(truth[i], i), truth[i], network="svtnet")
            assert added.n_descriptor == 256
        points = town.scan(truth[6], 77)
        places = graph.relocalize(points, network="svtnet", candidates=8)
        assert places.n_keyframes == 8 and places.matches[0].id == 6
        assert places.matches[0].accepted
        assert np.allclose(places.matches[0].T_map_sensor.translation, truth[6][:3, 3], atol=0.05)
