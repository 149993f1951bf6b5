# SPDX-License-Identifier: Apache-2.0
"""Tracking over the wire: a loop through a room that NumPy renders, what must be LOST, two clients
at once, and voxelctl volume run on folders without poses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from depth_scene import png_of
from harness import BIN, SLOW, Daemon, http_call
from room_scene import errors, loop_pose, render
from test_tools import run
from voxeld import Camera, Pose, Volume

WIDTH, HEIGHT, FOCAL = 120, 90, 108.0
SIZE = (WIDTH, HEIGHT, FOCAL)
CAMERA = Camera(
    width=WIDTH, height=HEIGHT, fx=FOCAL, cx=(WIDTH - 1) / 2, cy=(HEIGHT - 1) / 2
)
N_LOOP = 600  # steps of the whole loop, of which the tests walk a part


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        for info in connected.volumes():
            connected.volume_drop(info.name)
        yield connected


def make(client: voxeld.Client, name: str = "v") -> Volume:
    return client.volume_create(name, 0.02, truncation_m=0.08, colour=True)


def matrix(pose: Pose) -> np.ndarray:
    x, y, z, w = pose.rotation
    m = np.eye(4)
    m[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    m[:3, 3] = pose.translation
    return m


def walk(n: int) -> list[np.ndarray]:
    """Out along the loop and back to its start."""
    half = [loop_pose(i, N_LOOP) for i in range(n // 2)]
    return half + half[::-1]


@pytest.mark.parametrize("method", ["point_to_plane", "hybrid"])
def test_walk_through_a_room_is_tracked(client: voxeld.Client, method: str) -> None:
    volume = make(client)
    truth = walk(10 if method == "hybrid" else 20)
    found = []
    for i, pose in enumerate(truth):
        depth, colour = render(pose, SIZE, i)
        prior = Pose.from_matrix(pose) if i == 0 else None
        frame = volume.track_and_integrate(
            depth, CAMERA, prior, colour=colour, method=method, depth_max_m=4.0
        )
        assert frame.status == "ok" and frame.reason == "", (i, frame)
        assert frame.is_first == (i == 0) and frame.n_blocks > 500
        if i > 0:
            assert 0.5 < frame.fitness <= 1 and frame.rmse_m < 0.03
            assert frame.information.shape == (6, 6)
            assert (np.linalg.eigvalsh(frame.information) > 0).all()
        found.append(matrix(frame.T_map_camera))
    ours = errors(np.array(found), np.array(truth))
    still = errors(np.array([truth[0]] * len(truth)), np.array(truth))
    assert ours["ate_mm"] < 10 < still["ate_mm"], (ours, still)
    assert ours["rpe_mm"] < 6 < still["rpe_mm"] and ours["rpe_deg"] < 0.3
    assert volume.info().n_images == len(truth)


def test_information_says_how_well_the_pose_is_known(client: voxeld.Client) -> None:
    """Over many noisy images of one pose, errors are spread as the information says, but for what
    neighbouring pixels share through the filter."""
    volume = make(client)
    truth = loop_pose(0, N_LOOP)
    pose = Pose.from_matrix(truth)
    for i in range(8):
        depth, _ = render(truth, SIZE, i)
        volume.integrate(depth, CAMERA, pose, depth_max_m=4.0)
    off, expected = [], []
    for i in range(100, 108):
        depth, _ = render(truth, SIZE, i)
        got = volume.track(depth, CAMERA, pose, depth_max_m=4.0, robust="squares")
        apart = np.linalg.inv(truth) @ matrix(got.T_map_camera)
        off.append(apart[:3, 3])
        covariance = np.linalg.inv(got.information) * got.rmse_m**2
        expected.append(np.sqrt(np.diag(covariance)[:3]))
    spread = np.sqrt(np.mean(np.square(off), axis=0))
    ratio = spread / np.mean(expected, axis=0)
    assert (ratio > 0.3).all() and (ratio < 15).all(), ratio
    assert volume.info().n_images == 8  # tracking alone changes nothing


def test_lost_is_a_status_and_changes_nothing(client: voxeld.Client) -> None:
    volume = make(client)
    start = loop_pose(0, N_LOOP)
    depth, colour = render(start, SIZE, 1)
    empty = volume.track(depth, CAMERA)
    assert (empty.status, empty.reason) == ("lost", "too_few_inliers")
    blank = np.full((HEIGHT, WIDTH), np.nan, np.float32)
    first = volume.track_and_integrate(blank, CAMERA)
    assert (first.status, first.reason) == ("lost", "no_depth") and not first.is_first
    prior = Pose.from_matrix(start)
    volume.track_and_integrate(depth, CAMERA, prior, colour=colour, reset=True)
    before = volume.info()
    jump, _ = render(loop_pose(250, N_LOOP), SIZE, 2)
    for image, reason in ((blank, "no_depth"), (jump, None)):
        lost = volume.track_and_integrate(image, CAMERA, depth_max_m=4.0)
        assert lost.status == "lost" and reason in (None, lost.reason)
        np.testing.assert_allclose(matrix(lost.T_map_camera), start, atol=1e-9)
        assert (lost.n_touched, lost.stamp) == (0, before.stamp)
    after = volume.info()
    assert (after.n_images, after.n_blocks) == (before.n_images, before.n_blocks)
    # It goes on from where it was.
    depth, _ = render(loop_pose(1, N_LOOP), SIZE, 3)
    back = volume.track_and_integrate(depth, CAMERA, depth_max_m=4.0)
    assert back.status == "ok"
    assert np.linalg.norm(matrix(back.T_map_camera)[:3, 3] - loop_pose(1, N_LOOP)[:3, 3]) < 0.02


def test_bare_wall_is_lost(client: voxeld.Client) -> None:
    volume = make(client)
    noise = np.random.default_rng(1)
    for i in range(4):
        depth = (1500 + 2 * noise.standard_normal((HEIGHT, WIDTH))).astype(np.uint16)
        got = volume.track_and_integrate(depth, CAMERA)
        assert (got.status, got.reason) == (("ok", "") if i == 0 else ("lost", "singular"))
    known = volume.track(depth, CAMERA, min_constraint=1e-6)  # the caller may know better
    assert known.status == "ok"


def test_predicted_maps_are_what_the_camera_sees(client: voxeld.Client) -> None:
    volume = make(client)
    truth = loop_pose(0, N_LOOP)
    for i in range(3):
        depth, colour = render(truth, SIZE, i)
        got = volume.track_and_integrate(
            depth, CAMERA, Pose.from_matrix(truth) if i == 0 else None, colour=colour,
            depth_max_m=4.0, predict_depth=True, predict_normals=True, predict_colours=True,
        )  # fmt: skip
    seen = volume.cast_rays(
        CAMERA, got.T_map_camera, depth_max_m=4.0, normals=True, colours=True
    )
    assert got.n_pixels == WIDTH * HEIGHT
    np.testing.assert_allclose(got.depth_map.ravel(), np.ravel(seen.depth), atol=1e-4)
    assert got.normals.shape == (WIDTH * HEIGHT, 3) == got.colours.shape
    sharp, _ = render(truth, SIZE, None)
    hit = got.depth_map.ravel() > 0
    off = np.abs(got.depth_map.ravel() - sharp.ravel() / 1000)[hit]
    assert hit.mean() > 0.9 and np.median(off) < 0.01
    plain = volume.track_and_integrate(depth, CAMERA, depth_max_m=4.0)
    assert plain.depth_map is None and plain.normals is None and plain.colours is None


def test_two_clients_at_once_each_with_its_camera(daemon: Daemon, client: voxeld.Client) -> None:
    volume = make(client)
    poses = {"a": loop_pose(0, N_LOOP), "b": loop_pose(200, N_LOOP)}
    for pose in poses.values():
        for i in range(2):
            depth, _ = render(pose, SIZE, i)
            volume.integrate(depth, CAMERA, Pose.from_matrix(pose), depth_max_m=4.0)
    failures: list[str] = []

    def camera(name: str) -> None:
        with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as own:
            mine = own.volume("v")
            at = Pose.from_matrix(poses[name])
            for i in range(4):
                depth, _ = render(poses[name], SIZE, 10 + i)
                got = mine.track_and_integrate(depth, CAMERA, at, depth_max_m=4.0)
                off = np.linalg.norm(matrix(got.T_map_camera)[:3, 3] - poses[name][:3, 3])
                if got.status != "ok" or off > 0.02:
                    failures.append(f"{name} {i}: {got.status} {got.reason}, {off:.3f} m off")

    threads = [threading.Thread(target=camera, args=(name,)) for name in poses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert volume.info().n_images == 4 + 8


def test_what_is_wrong_is_said(daemon: Daemon, client: voxeld.Client) -> None:
    volume = make(client)
    depth = np.ones((HEIGHT, WIDTH), np.float32)
    for more, field in (
        ({"levels": 5}, "levels"),
        ({"iterations": 101}, "iterations"),
        ({"max_distance_m": -1.0}, "max_distance_m"),
        ({"min_fitness": 2.0}, "min_fitness"),
        ({"max_rotation_deg": float("nan")}, "max_rotation_deg"),
        ({"min_weight": 1e9}, "min_weight"),
        ({"max_pixels": 10}, "max_pixels"),
        ({"weight": -1.0}, "weight"),
        ({"depth_max_m": 2000.0}, "depth_max_m"),
    ):
        with pytest.raises(voxeld.InvalidArgument) as caught:
            volume.track_and_integrate(depth, CAMERA, **more)
        assert caught.value.field == field, (more, caught.value)
    with pytest.raises(voxeld.InvalidArgument, match="colour"):
        volume.track_and_integrate(depth, CAMERA)
        volume.track_and_integrate(depth, CAMERA, method="intensity")
    with pytest.raises(voxeld.ResourceExhausted, match="too long"):
        volume.track(
            np.ones((2000, 2000), np.float32), Camera(width=0, height=0, fx=1500, cx=1e3, cy=1e3),
            depth_max_m=1000.0,
        )  # fmt: skip
    with pytest.raises(voxeld.NotFound):
        client.volume("nobody").track(depth, CAMERA)
    for body, code, text in (
        ({"name": "v", "method": 7}, 400, "method"),
        ({"name": "v", "robust": "VOLUME_TRACK_NONSENSE"}, 400, "robust"),
        ({"name": "v"}, 400, "depth"),
    ):
        reply = http_call(daemon, "POST", "/v1/volume_track", body)
        assert reply.status == code and text in reply.body.decode(), reply.body


# voxelctl volume run -----------------------------------------------------------------------


def seven_scenes(folder: Path, poses: list[np.ndarray], with_poses: bool) -> None:
    for i, pose in enumerate(poses):
        depth, colour = render(pose, SIZE, i)
        (folder / f"frame-{i:06}.depth.png").write_bytes(png_of(depth))
        (folder / f"frame-{i:06}.color.png").write_bytes(png_of(colour))
        if with_poses:
            np.savetxt(folder / f"frame-{i:06}.pose.txt", pose)


def tum(folder: Path, poses: list[np.ndarray], with_poses: bool) -> None:
    (folder / "depth").mkdir()
    lines: dict[str, list[str]] = {"depth": [], "groundtruth": []}
    for i, pose in enumerate(poses):
        depth, _ = render(pose, SIZE, i)
        at = f"{1311867170 + 0.04 * i:.6f}"
        (folder / "depth" / f"{at}.png").write_bytes(png_of(5 * depth))
        lines["depth"].append(f"{at} depth/{at}.png")
        known = Pose.from_matrix(pose)
        values = " ".join(f"{v:.9f}" for v in (*known.translation, *known.rotation))
        lines["groundtruth"].append(f"{at} {values}")
    for name in ("depth", *(["groundtruth"] if with_poses else [])):
        (folder / f"{name}.txt").write_text("\n".join(["# stamps", *lines[name], ""]))


@pytest.mark.parametrize("layout", [seven_scenes, tum])
def test_run_tracks_a_folder(daemon: Daemon, directory: Path, layout: object) -> None:
    folder = directory / "images"
    folder.mkdir()
    truth = walk(12)
    layout(folder, truth, True)  # type: ignore[operator]
    intrinsics, trajectory = directory / "K.txt", directory / "found.txt"
    np.savetxt(intrinsics, [[FOCAL, FOCAL, CAMERA.cx, CAMERA.cy]])
    words = [
        BIN / "voxelctl", "--url", daemon.ipc, "--timeout", 30 * SLOW, "volume", "run", folder,
        "--intrinsics", intrinsics, "--size", 0.02, "--depth-max", 4, "--trajectory", trajectory,
    ]  # fmt: skip
    mesh = directory / "mesh.ply"
    done = json.loads(run(*words, "--track", "--out", mesh, "--json").stdout)
    assert (done["n_images"], done["n_lost"]) == (len(truth), 0) and done["n_triangles"] > 5000
    rows = np.loadtxt(trajectory)
    found = [matrix(Pose(row[1:4].tolist(), row[4:].tolist())) for row in rows]
    expected = errors(np.array(found), np.array(truth))
    still = errors(np.array([truth[0]] * len(truth)), np.array(truth))
    for name, own in (("errors", expected), ("standing_still", still)):
        said = done[name]
        assert said["n"] == len(truth)
        for key, unit in (
            ("ate_rms_m", "ate_mm"), ("ate_aligned_rms_m", "ate_aligned_mm"),
            ("rpe_rms_m", "rpe_mm"),
        ):  # fmt: skip
            assert abs(1e3 * said[key] - own[unit]) < 0.01, (name, key)
        assert abs(said["rpe_rms_deg"] - own["rpe_deg"]) < 1e-3
    assert expected["ate_mm"] < 10
    # Without poses it tracks unasked, from the identity.
    for path in (*folder.glob("*.pose.txt"), *folder.glob("groundtruth.txt")):
        path.unlink()
    text = run(*words, "--method", "plane").stdout
    assert f"{len(truth)} images tracked, 0 lost" in text and "ATE" not in text
    first = np.loadtxt(trajectory)[0]
    np.testing.assert_allclose(first[1:], [0, 0, 0, 0, 0, 0, 1], atol=1e-9)
    bad = run(*words, "--method", "magic", code=2).stderr
    assert "plane, intensity or hybrid" in bad
