# SPDX-License-Identifier: Apache-2.0
"""Scenes and volumes made anew from keyframes by the server: equal to what their scans give one by
one, as one change, at any version of the poses, durable, cancelled, beside other requests."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, Daemon, running, wait_until
from scipy.spatial.transform import Rotation
from voxeld import Pose, PosegraphEdge, PosegraphNode

VOXEL = 0.2
MANY = 20000 if SLOW == 1 else 5000  # points of a keyframe


def connect(daemon: Daemon, **more: Any) -> voxeld.Client:
    return voxeld.connect(daemon.ipc, timeout=60 * SLOW, **more)


def voxelctl(daemon: Daemon, *words: str) -> str:
    done = subprocess.run(
        [BIN / "voxelctl", "--url", daemon.ipc, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def hall(position: np.ndarray, turn: Rotation, seed: int, n: int) -> np.ndarray:
    """Points on the walls of a hall of 16 x 12 x 5 m around the origin, in a sensor's frame."""
    rays = np.random.default_rng(seed).normal(size=(n, 3))
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    half = np.array([8.05, 6.03, 2.52])  # no wall is on a border of voxels
    with np.errstate(divide="ignore"):
        far = (np.sign(rays) * half - position) / rays
    hits = position + rays * far.min(1)[:, None]
    return turn.inv().apply(hits - position).astype(np.float32)


def add_hall(client: voxeld.Client, n: int, n_points: int, **more: Any) -> Any:
    """A graph of n keyframes; its first poses are wrong, and its second version is right."""
    graph = client.posegraph_create("hall", **more)
    rng = np.random.default_rng(3)
    before = np.eye(4)
    for i in range(n):
        position = rng.uniform([-5, -4, -1], [5, 4, 1])
        turn = Rotation.from_rotvec(rng.normal(size=3))
        m = np.eye(4)
        m[:3, :3], m[:3, 3] = turn.as_matrix(), position
        wrong = m.copy()
        wrong[:3, 3] += [0.3 * i, 0, 0]
        if i == 0:
            graph.add([PosegraphNode(0, m, fixed=True)])
        else:
            edge = PosegraphEdge(i - 1, i, np.linalg.inv(before) @ m)
            graph.add([PosegraphNode(i, wrong)], [edge])
        graph.add_keyframe(i, hall(position, turn, i, n_points))
        before = m
    assert graph.optimize(start="keep").version == 2
    return graph


def cells_of(scene: Any, **more: Any) -> dict[tuple[int, ...], int]:
    cells = scene.export(**more)
    materials = cells.materials if cells.materials is not None else np.zeros(len(cells), np.uint16)
    return dict(zip(map(tuple, cells.cells.tolist()), materials.tolist(), strict=True))


def surface_of(volume: Any) -> tuple[bytes, ...]:
    s = volume.extract()
    assert len(s.vertices) > 1000
    return s.vertices.tobytes(), s.normals.tobytes(), s.triangles.tobytes()


@pytest.mark.parametrize("fusion", ["last", "log-odds"])
def test_scene_is_what_its_scans_give_and_a_change_that_is_undone(
    tmp_path: Path, fusion: str
) -> None:
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = add_hall(client, 6, 4000)
        terms = {"fusion": fusion, "track_free": fusion == "log-odds", "material_bits": 4}
        scene = client.scene_create("scene", VOXEL, **terms)
        scene.integrate(np.array([[1, 2, 1.5]], np.float32), material=2, carve=False)
        before, there = scene.info().version, cells_of(scene)
        done = graph.rebuild(scene="scene", carve=True, material=3, range_max_m=9.0)
        assert done.scene_version == before + 1 and done.version == 2
        assert done.n_keyframes == 6 and done.n_points == 6 * 4000
        assert 0 < done.n_used < done.n_points

        one_by_one = client.scene_create("one", VOXEL, **terms)
        for _, pose, points in graph.keyframes():
            one_by_one.integrate(points, pose=pose, material=3, max_range=9.0)
        made = cells_of(scene)
        assert made == cells_of(one_by_one) and set(made.values()) == {3}
        if fusion == "log-odds":
            free = cells_of(scene, free=True)
            assert len(free) > 1000 and free == cells_of(one_by_one, free=True)
        gone = len(set(there) - set(made))
        assert done.n_added == len(set(made) - set(there)) and done.n_removed == gone
        # Nobody sees what it was made in, and an undo brings back what was.
        assert {s.name for s in client.scenes()} == {"scene", "one"}
        scene.undo()
        assert cells_of(scene) == there
        # The first poses give another scene, that of the points' arithmetic.
        done = graph.rebuild(scene="scene", version=1, range_min_m=3.0)
        assert done.version == 1
        expected = set()
        for _, pose, points in graph.keyframes(1):
            points = points[np.linalg.norm(points.astype(float), axis=1) >= 3.0]
            at = Rotation.from_quat(pose.rotation).apply(points.astype(float)) + pose.translation
            expected |= set(map(tuple, np.floor(at / VOXEL).astype(int).tolist()))
        half = 2 ** (scene.info().depth - 1)
        found = {tuple(c - half for c in cell) for cell in cells_of(scene)}
        # But for points on a border between two voxels.
        assert len(found ^ expected) < 0.001 * len(expected)
        assert found != {tuple(c - half for c in cell) for cell in made}


def test_pinned_voxels_of_a_scene_stay(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = add_hall(client, 2, 1000)
        scene = client.scene_create("scene", VOXEL, track_free=True)
        inside = voxeld.Box((-1, -1, -1), (1, 1, 1))
        scene.edit([voxeld.Operation(inside, "fill", pin="pinned")])
        pinned = cells_of(scene, pinned=True)
        assert len(pinned) == 1000
        graph.rebuild(scene="scene", carve=True)
        assert cells_of(scene, pinned=True) == pinned
        assert pinned.keys() <= cells_of(scene).keys() and len(cells_of(scene)) > 2000


def test_volume_is_what_its_scans_give(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = add_hall(client, 6, MANY)
        volume = client.volume_create("volume", 0.1, truncation_m=0.4)
        # What was there goes: points that no keyframe has.
        volume.integrate_points(np.full((1, 3), 30, np.float32))
        stamp = volume.info().stamp
        done = graph.rebuild(volume="volume", range_min_m=1.0, range_max_m=8.0, weight=2.0)
        assert done.scene_version == 0 and done.version == 2 and done.n_keyframes == 6
        info = volume.info()
        assert done.n_blocks == info.n_blocks and done.stamp == info.stamp > stamp
        assert info.n_images == 6
        one_by_one = client.volume_create("one", 0.1, truncation_m=0.4)
        n_used = 0
        for _, pose, points in graph.keyframes():
            n_used += one_by_one.integrate_points(
                points, pose=pose, range_min_m=1.0, range_max_m=8.0, weight=2.0
            ).n_used
        assert done.n_used == n_used and info.n_blocks == one_by_one.info().n_blocks
        assert surface_of(volume) == surface_of(one_by_one)
        # It goes on as any volume does.
        for v in (volume, one_by_one):
            v.integrate_points(hall(np.zeros(3), Rotation.identity(), 77, 5000))
        assert surface_of(volume) == surface_of(one_by_one)


def test_what_was_made_anew_outlives_a_loss_of_the_process(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with connect(daemon) as client:
        graph = add_hall(client, 5, MANY, durable="always")
        scene = client.scene_create("scene", VOXEL, track_free=True, durable="always")
        volume = client.volume_create("volume", 0.1, truncation_m=0.4, durable="always")
        for _, pose, points in graph.keyframes(1):
            scene.integrate(points, pose=pose)
            volume.integrate_points(points, pose=pose)
        graph.rebuild(scene="scene", carve=True)
        graph.rebuild(volume="volume")
        volume.integrate_points(hall(np.zeros(3), Rotation.identity(), 77, 5000))
        cells, free, surface = cells_of(scene), cells_of(scene, free=True), surface_of(volume)
        stamp, version = volume.info().stamp, scene.info().version
    daemon.process.kill()
    daemon.wait()
    with running(tmp_path) as daemon, connect(daemon) as client:
        scene, volume = client.scene("scene"), client.volume("volume")
        assert cells_of(scene) == cells and cells_of(scene, free=True) == free
        assert scene.info().version == version
        assert surface_of(volume) == surface and volume.info().stamp == stamp
        assert volume.info().n_images == 6
        assert client.posegraph("hall").rebuild(scene="scene", carve=True).n_added == 0


def test_rebuild_shows_how_far_it_is_lets_others_run_and_is_cancelled(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, connect(daemon) as client, connect(daemon) as other:
        graph = add_hall(client, 40, MANY)
        scene = client.scene_create("scene", 0.05, track_free=True)
        volume = client.volume_create("volume", 0.05, truncation_m=0.2)
        quick = client.scene_create("quick", VOXEL)
        assert not graph.rebuild_status().running and not graph.rebuild_cancel()
        for target in ("scene", "volume"):
            outcome: list[BaseException | None] = []

            def run(target: str = target, outcome: list[Any] = outcome) -> None:
                more = {"carve": True} if target == "scene" else {"carve_m": 8.0}
                try:
                    other.posegraph("hall").rebuild(**{target: target}, **more, request_id="mine")
                    outcome.append(None)
                except voxeld.Error as e:
                    outcome.append(e)

            thread = threading.Thread(target=run)
            thread.start()
            wait_until(lambda: graph.rebuild_status().n_done >= 2, 20 * SLOW, "two keyframes")
            status = graph.rebuild_status()
            assert status.running and status.request_id == "mine" and status.n_keyframes == 40
            assert (status.scene or status.volume) == target and status.started_ns > 0
            shown = voxelctl(daemon, "posegraph", "rebuild-status", "hall")
            assert target in shown and "of 40 keyframes" in shown
            with pytest.raises(voxeld.FailedPrecondition, match="runs already"):
                graph.rebuild(scene="scene")
            # Changes go on beside it, of what is made anew, too.
            quick.integrate(np.array([[1, 1, 1]], np.float32))
            if target == "scene":
                scene.integrate(np.array([[1, 1, 1]], np.float32))
            assert "ends" in voxelctl(daemon, "posegraph", "rebuild-cancel", "hall")
            thread.join()
            assert isinstance(outcome[0], voxeld.Aborted) and "was cancelled" in str(outcome[0])
            assert not graph.rebuild_status().running
        assert len(scene.export()) == 1 and volume.info().n_blocks == 0
        # A deadline ends it, too.
        with pytest.raises(voxeld.DeadlineExceeded):
            graph.rebuild(scene="scene", carve=True, timeout=0.3)
        wait_until(lambda: not graph.rebuild_status().running, 20, "its end")
        assert len(scene.export()) == 1
        assert {s.name for s in client.scenes()} == {"scene", "quick"}
        # All of its memory is given back.
        assert client.scenes()[1].n_bytes > 0
        # A volume that changes meanwhile stays what it is.
        outcome = []
        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: graph.rebuild_status().n_done >= 1, 20 * SLOW, "a keyframe")
        volume.integrate_points(hall(np.zeros(3), Rotation.identity(), 1, 100))
        n_blocks = volume.info().n_blocks
        thread.join(120 * SLOW)
        assert volume.info().n_blocks == n_blocks


def test_bad_requests_say_what_is_wrong_and_change_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, connect(daemon) as client:
        empty = client.posegraph_create("empty")
        empty.add([PosegraphNode(1, Pose())])
        graph = add_hall(client, 2, 100)
        scene = client.scene_create("scene", VOXEL)
        client.volume_create("volume", 0.1)
        for error, match, arguments in (
            (voxeld.InvalidArgument, "one of the two is needed", {}),
            (voxeld.InvalidArgument, "one of the two", {"scene": "scene", "volume": "volume"}),
            (voxeld.InvalidArgument, "name", {"scene": "No Name"}),
            (voxeld.NotFound, "none", {"scene": "none"}),
            (voxeld.NotFound, "none", {"volume": "none"}),
            (voxeld.NotFound, "version.*9|9.*not there", {"scene": "scene", "version": 9}),
            (voxeld.InvalidArgument, "goes with scene", {"volume": "volume", "carve": True}),
            (voxeld.InvalidArgument, "goes with scene", {"volume": "volume", "material": 1}),
            (voxeld.InvalidArgument, "goes with volume", {"scene": "scene", "carve_m": 1.0}),
            (voxeld.InvalidArgument, "goes with volume", {"scene": "scene", "weight": 1.0}),
            (voxeld.InvalidArgument, "has 1 materials", {"scene": "scene", "material": 1}),
            (voxeld.InvalidArgument, "must be 0 to 1000", {"scene": "scene", "range_min_m": -1.0}),
            (
                voxeld.InvalidArgument,
                "below range_max_m",
                {"scene": "scene", "range_min_m": 5.0, "range_max_m": 5.0},
            ),
        ):
            with pytest.raises(error, match=match):
                graph.rebuild(**arguments)
        with pytest.raises(voxeld.FailedPrecondition, match="no keyframes"):
            empty.rebuild(scene="scene")
        # What comes after an optimization is not in the version before it.
        assert empty.optimize(start="keep").version == 2
        empty.add([PosegraphNode(2, Pose())], [PosegraphEdge(1, 2, np.eye(4))])
        empty.add_keyframe(2, hall(np.zeros(3), Rotation.identity(), 1, 100))
        with pytest.raises(voxeld.FailedPrecondition, match="no keyframes at version 1"):
            empty.rebuild(scene="scene", version=1)
        small = client.scene_create("small", 0.02, max_bytes=1 << 20, track_free=True)
        with pytest.raises(voxeld.ResourceExhausted):
            graph.rebuild(scene="small", carve=True)
        assert small.info().version == scene.info().version == 1
        assert not graph.rebuild_status().running
        line = voxelctl(daemon, "posegraph", "rebuild", "hall", "--scene", "scene")
        assert "2 keyframes at version 2" in line and "scene is at version 2" in line
        line = voxelctl(daemon, "posegraph", "rebuild", "hall", "--volume", "volume")
        assert "blocks" in line


def test_small_limits_of_volumes_are_named(tmp_path: Path) -> None:
    limits = {"limits": {"volume_bytes": 32 << 20}}
    with running(tmp_path, limits) as daemon, connect(daemon) as client:
        graph = add_hall(client, 3, 20000)
        volume = client.volume_create("volume", 0.02, truncation_m=0.08)
        with pytest.raises(voxeld.ResourceExhausted, match="limits.volume_bytes"):
            graph.rebuild(volume="volume")
        assert volume.info().n_blocks == 0
        # One that forgets its farthest blocks keeps those near the last keyframes.
        forgets = client.volume_create(
            "forgets", 0.1, truncation_m=0.2, max_bytes=3 << 20, when_full="forget_farthest"
        )
        whole = client.volume_create("whole", 0.1, truncation_m=0.2)
        for volume in (forgets, whole):
            done = graph.rebuild(volume=volume.name, range_max_m=5.0)
            assert done.n_blocks == volume.info().n_blocks
        assert 0 < forgets.info().n_blocks < whole.info().n_blocks
        assert forgets.info().n_bytes <= 3 << 20
