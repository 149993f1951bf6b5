# SPDX-License-Identifier: Apache-2.0
"""Odometry over the wire: drives through a street that NumPy casts rays through, with exact poses;
lost scans; scans into scenes and volumes at poses that the server finds; voxelctl; other programs'
poses of real scans."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, http_call, running, wait_until
from room_scene import errors, loop_pose, render
from street_scene import apart, elsewhere, matrix_of, pose_at, scan, shoot, truth
from test_tools import run
from voxeld import Camera, Deskew, Pose

RANGE_M, VOXEL_M = 60.0, 0.8
N = 12 if SLOW > 3 else 20


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        for info in connected.odometries():
            connected.odometry_drop(info.name)
        for info in connected.volumes():
            connected.volume_drop(info.name)
        for info in connected.scenes():
            connected.scene_drop(info.name)
        yield connected


def make(client: voxeld.Client, name: str = "car", **more: object) -> voxeld.Odometry:
    return client.odometry_create(name, max_range_m=RANGE_M, voxel_size_m=VOXEL_M, **more)


# --- named things ----------------------------------------------------------------------------


def test_odometries_are_made_listed_and_dropped(daemon: Daemon, client: voxeld.Client) -> None:
    car = make(client, min_fitness=0.4)
    info = make(client, min_fitness=0.4).info()  # the same again is fine
    assert info == car.info() == client.odometries()[0]
    assert (info.max_range_m, info.voxel_size_m, info.max_points) == (RANGE_M, VOXEL_M, 20)
    assert info.initial_threshold_m == 2 * VOXEL_M and info.inlier_m == pytest.approx(0.24)
    assert info.min_fitness == 0.4 and info.min_constraint == 0.015 and info.n_scans == 0
    assert info.T_map_sensor == Pose()
    with pytest.raises(voxeld.AlreadyExists):
        make(client)
    make(client, "second")
    assert [o.name for o in client.odometries()] == ["car", "second"]
    reply = http_call(daemon, "GET", "/v1/odometries")
    assert [o["name"] for o in json.loads(reply.body)["odometries"]] == ["car", "second"]
    reply = http_call(daemon, "GET", "/v1/odometries/car")
    assert json.loads(reply.body)["odometry"]["voxelSizeM"] == VOXEL_M
    assert client.odometry("second").drop()
    assert not client.odometry_drop("second", missing_ok=True)
    with pytest.raises(voxeld.NotFound, match="a restart of the server forgets them"):
        client.odometry("second")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_range_m", -1.0),
        ("max_range_m", float("nan")),
        ("max_range_m", 1e300),
        ("min_range_m", 61.0),
        ("voxel_size_m", 1e-9),
        ("voxel_size_m", float("inf")),
        ("max_points", 21),
        ("max_points", 4294967295),
        ("initial_threshold_m", float("nan")),
        ("min_motion_m", -1.0),
        ("max_iterations", 501),
        ("inlier_m", -0.1),
        ("min_fitness", 1.5),
        ("min_constraint", 2.0),
        ("max_translation_m", float("inf")),
        ("max_rotation_deg", 181.0),
        ("ttl_s", -1.0),
    ],
)
def test_parameters_outside_of_their_ranges_are_named(
    client: voxeld.Client, field: str, value: float
) -> None:
    with pytest.raises(voxeld.InvalidArgument) as e:
        client.odometry_create("car", **{"max_range_m": RANGE_M, field: value})
    assert e.value.field == field
    assert client.odometries() == ()


def test_hostile_messages_are_refused(daemon: Daemon, client: voxeld.Client) -> None:
    make(client)
    cloud = {"fields": [{"name": n, "offset": 4 * i, "dtype": "FLOAT32"}
                        for i, n in enumerate("xyz")], "pointStep": 12, "data": ""}  # fmt: skip
    cases = [
        ({"name": "car"}, "cloud"),
        ({"name": "Car", "cloud": cloud}, "name"),
        ({"name": "car", "cloud": cloud | {"sweeps": [{}]}}, "cloud.sweeps"),
        ({"name": "car", "cloud": cloud | {"stampNs": "-5"}}, "cloud.stamp_ns"),
        ({"name": "car", "cloud": cloud | {"fields": []}}, "cloud.fields"),
        ({"name": "car", "cloud": cloud | {"TMapSensor": {"rotation": {"x": 3}}}},
         "cloud.T_map_sensor"),
        ({"name": "car", "cloud": cloud | {"deskew": {"timeField": "u"}}},
         "cloud.deskew.time_field"),
        ({"name": "car", "cloud": cloud | {"pointStep": 0}}, "cloud.point_step"),
    ]  # fmt: skip
    for body, field in cases:
        reply = http_call(daemon, "POST", "/v1/odometry_register", body)
        assert reply.status == 400, body
        assert json.loads(reply.body)["field"] == field
    body = {"name": "nobody", "cloud": cloud}
    assert http_call(daemon, "POST", "/v1/odometry_register", body).status == 404
    body = {"name": "bad", "method": 7}
    reply = http_call(daemon, "POST", "/v1/odometry_create", body)
    assert reply.status == 400 and json.loads(reply.body)["field"] == "method"
    assert client.odometry("car").info().n_scans == 0


# --- drives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["point_to_plane", "point_to_point"])
def test_drive_follows_the_poses(client: voxeld.Client, method: str) -> None:
    car = make(client, method=method)
    for i in range(N):
        found = car.register(shoot(i)[0], stamp_ns=(i + 1) * 10**8)
        assert (found.status, found.reason, found.is_first) == ("ok", "", i == 0)
        metres, degrees = apart(truth(i), matrix_of(found.T_map_sensor))
        on_planes = method == "point_to_plane"
        assert metres < (0.03 + 0.003 * i if on_planes else 0.4), (i, metres)
        assert degrees < (0.15 if on_planes else 0.9), i
        covariance = found.covariance
        assert covariance.shape == (6, 6) and covariance.dtype == np.float64
        assert np.array_equal(covariance, covariance.T)
        if i > 0:
            assert np.linalg.eigvalsh(covariance)[0] > 0
            assert np.sqrt(covariance.diagonal()).max() < 0.1
            assert 0.35 < found.fitness <= 1 and found.n_inliers <= found.n_registered
        assert found.T_map_sensor_begin == found.T_map_sensor
    info = car.info()
    assert (info.n_scans, info.n_lost, info.stamp_ns) == (N, 0, N * 10**8)
    assert info.T_map_sensor == found.T_map_sensor and info.n_voxels > 500


def test_lost_scans_leave_the_map_and_are_survived(client: voxeld.Client) -> None:
    car = make(client)
    for i in range(14):
        car.register(shoot(i)[0])
    before = car.info()
    for i in range(14, 16):
        lost = car.register(elsewhere())
        assert (lost.status, lost.reason, lost.n_lost) == ("lost", "too_few_inliers", i - 13)
        assert apart(truth(i), matrix_of(lost.T_map_sensor))[0] < 0.3  # the prediction goes on
    assert car.register(np.zeros((0, 3), np.float32)).reason == "too_few_points"
    info = car.info()
    assert (info.n_voxels, info.n_lost, info.n_lost_in_a_row) == (before.n_voxels, 3, 3)
    for i in range(17, 20):
        found = car.register(shoot(i)[0])
        assert found.status == "ok" and found.n_lost == 0
        assert apart(truth(i), matrix_of(found.T_map_sensor))[0] < 0.12
    assert car.info().n_lost_in_a_row == 0


def test_hostile_points_are_lost(client: voxeld.Client) -> None:
    car = make(client)
    car.register(shoot(0)[0])
    for value in (np.nan, np.inf, 3e38, 1e-38, 0.25):
        found = car.register(np.full((5000, 3), value, np.float32))
        assert (found.status, found.reason) == ("lost", "too_few_points")
        assert found.n_map == (1 if value == 0.25 else 0)
    mixed = np.vstack([np.full((4000, 3), np.nan), shoot(0)[0]]).astype(np.float32)
    found = car.register(mixed)
    assert found.status == "ok" and found.n_used <= len(mixed) - 4000


def test_scans_of_a_moving_sensor_are_deskewed(client: voxeld.Client) -> None:
    car = make(client)
    for i in range(18):
        found = car.register(scan(i, moving=True), time_field="t")
        assert found.status == "ok"
        turn, at = pose_at(np.array([0.0, i - 1, i]))
        begin, end = matrix_of(found.T_map_sensor_begin), matrix_of(found.T_map_sensor)
        assert apart(truth(i), end)[0] < 0.12
        if i > 12:
            step = np.linalg.norm(at[2] - at[1])
            assert abs(np.linalg.norm(end[:3, 3] - begin[:3, 3]) - step) < 0.1
    with_own = dataclasses.replace(scan(18, moving=True), deskew=Deskew(time_field="t"))
    assert car.register(with_own).status == "ok"  # the cloud's own says the same


def test_stamps_priors_and_repeats(client: voxeld.Client) -> None:
    car = make(client)
    for i in range(13):
        car.register(shoot(i)[0], stamp_ns=(i + 1) * 10**8)
    found = car.register(shoot(15)[0], stamp_ns=16 * 10**8)  # two scans are missing
    assert found.status == "ok" and apart(truth(15), matrix_of(found.T_map_sensor))[0] < 0.1
    with pytest.raises(voxeld.InvalidArgument) as e:
        car.register(shoot(16)[0], stamp_ns=16 * 10**8)
    assert e.value.field == "cloud.stamp_ns"
    prior = Pose.from_matrix(truth(17))
    found = car.register(shoot(17)[0], prior, stamp_ns=17 * 10**8)
    assert found.status == "ok" and apart(truth(17), matrix_of(found.T_map_sensor))[0] < 0.1
    lost = car.register(shoot(17)[0], Pose(translation=(500, 0, 0)))
    assert lost.status == "lost" and lost.T_map_sensor.translation == (500, 0, 0)
    with pytest.raises(voxeld.OutOfRange):
        car.register(shoot(17)[0], Pose(translation=(1e9, 0, 0)))


def test_scan_counts_once_though_it_is_sent_twice(client: voxeld.Client) -> None:
    car = make(client)
    car.register(shoot(0)[0])
    number = 1 << 40
    first = car.register(shoot(1)[0], sequence=number)
    again = car.register(shoot(1)[0], sequence=number)
    assert again.replayed and not first.replayed
    assert again.T_map_sensor == first.T_map_sensor
    assert car.info().n_scans == 2


def test_reset_begins_anew(client: voxeld.Client) -> None:
    start = Pose.from_matrix(truth(12))
    car = make(client, initial=start)
    found = car.register(shoot(12)[0])
    assert found.is_first
    assert apart(matrix_of(start), matrix_of(found.T_map_sensor))[0] < 1e-12
    car.register(shoot(13)[0])
    info = car.reset(Pose(translation=(5, 6, 7)))
    assert (info.n_scans, info.n_voxels) == (0, 0)
    found = car.register(shoot(0)[0])
    assert found.is_first and found.T_map_sensor.translation == (5, 6, 7)


def test_restart_forgets_and_a_client_goes_on_from_its_pose(directory: Path) -> None:
    with running(directory) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        car = make(client)
        for i in range(12):
            last = car.register(shoot(i)[0]).T_map_sensor
    with running(directory) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        with pytest.raises(voxeld.NotFound):
            client.odometry("car")
        car = make(client, initial=last)
        car.register(shoot(11)[0])
        found = car.register(shoot(12)[0])
        assert apart(truth(12), matrix_of(found.T_map_sensor))[0] < 0.1


def test_unused_one_is_dropped(client: voxeld.Client) -> None:
    ttl_s = 2  # longer than a busy machine may stall before it is asked for
    make(client, ttl_s=ttl_s)
    assert client.odometry("car").info().ttl_s == ttl_s
    wait_until(lambda: not client.odometries(), 10, "it is dropped")


# --- scans at poses that the server finds -------------------------------------------------------


def test_scene_is_made_without_poses(client: voxeld.Client) -> None:
    scene = client.scene_create("yard", 0.2, track_free=True)
    for i in range(14):
        done = scene.integrate(shoot(i)[0], max_range=30, estimate=True)
        assert done.status == "ok" and done.change.n_added > 0
        assert apart(truth(i), matrix_of(done.T_map_sensor))[0] < 0.1
    version = scene.info().version
    lost = scene.integrate(elsewhere(), estimate=True)
    assert (lost.status, lost.reason) == ("lost", "too_few_inliers")
    assert lost.change.n_added == 0 and lost.n_used == 0
    assert scene.info().version == version == lost.change.version
    # Beside it: what known poses make.
    known = client.scene_create("known", 0.2, track_free=True)
    for i in range(14):
        known.integrate(shoot(i)[0], pose=Pose.from_matrix(truth(i)), max_range=30)
    a, b = (s.info().n_occupied for s in (scene, known))
    assert abs(a - b) < 0.15 * b
    assert client.odometries() == ()  # the scene's own is not among the named ones


def test_dropped_scenes_odometry_begins_anew(client: voxeld.Client) -> None:
    scene = client.scene_create("yard", 0.2)
    for i in (10, 11):
        scene.integrate(shoot(i)[0], estimate=True)
    client.scene_drop("yard")
    scene = client.scene_create("yard", 0.2)
    done = scene.integrate(shoot(15)[0], estimate=True)
    assert done.T_map_sensor == Pose() and done.status == "ok"


def test_odometries_beside_scenes_and_volumes_go_with_them(
    daemon: Daemon, client: voxeld.Client
) -> None:
    used = ("odometry_bytes", "odometries", 'device_memory_bytes{use="used"}')

    def bytes_and_number() -> list[float]:
        lines = http_call(daemon, "GET", "/metrics").body.decode().splitlines()
        rows = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return [float(rows[f"voxeld_{name}"]) for name in used]

    scan_of = shoot(10)[0]
    before = bytes_and_number()
    client.scene_create("yard", 0.2).integrate(scan_of, estimate=True)
    for name, ttl_s in (("surface", 0), ("brief", 1)):
        volume = client.volume_create(name, 0.1, truncation_m=0.3, ttl_s=ttl_s)
        volume.integrate_points(scan_of, estimate=True, range_max_m=20)
    beside = bytes_and_number()
    assert beside[0] > before[0] and beside[1] >= before[1] + 2
    client.scene_drop("yard")
    client.volume_drop("surface")
    wait_until(lambda: bytes_and_number() == before, 30, "that of the brief one goes, too")


def test_named_odometry_is_shared_by_scene_and_volume(client: voxeld.Client) -> None:
    car = make(client, initial=Pose.from_matrix(truth(12)))
    scene = client.scene_create("yard", 0.2)
    volume = client.volume_create("surface", 0.1, truncation_m=0.3)
    with pytest.raises(voxeld.NotFound) as e:
        scene.integrate(shoot(12)[0], estimate=True, odometry="nobody")
    assert e.value.field == "odometry"
    with pytest.raises(voxeld.InvalidArgument) as e:
        scene.integrate(shoot(12)[0], odometry="car")
    assert e.value.field == "odometry"
    scene.integrate(shoot(12)[0], estimate=True, odometry="car")
    found = volume.integrate_points(shoot(13)[0], estimate=True, odometry="car", range_max_m=25)
    assert found.status == "ok" and found.n_new > 0
    assert apart(truth(13), matrix_of(found.T_map_sensor))[0] < 0.05
    assert car.info().n_scans == 2


def test_deskewed_scans_of_a_scene_get_both_poses(client: voxeld.Client) -> None:
    scene = client.scene_create("yard", 0.2)
    for i in range(14):
        cloud = dataclasses.replace(scan(i, moving=True), deskew=Deskew(time_field="t"))
        done = scene.integrate(cloud, max_range=30, estimate=True)
        assert done.status == "ok"
        assert apart(truth(i), matrix_of(done.T_map_sensor))[0] < 0.12


def test_durable_scene_has_what_was_found_after_a_restart(directory: Path) -> None:
    with running(directory) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        scene = client.scene_create("yard", 0.2, durable="always")
        for i in range(10, 13):
            assert scene.integrate(shoot(i)[0], max_range=20, estimate=True).status == "ok"
        assert scene.integrate(elsewhere(), estimate=True).status == "lost"
        before = scene.info().version, scene.info().digest
    with running(directory) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        scene = client.scene("yard")
        assert (scene.info().version, scene.info().digest) == before
        # Its odometry is gone, and begins anew at the pose that the client knows.
        done = client.scene("yard").integrate(
            shoot(13)[0], pose=Pose.from_matrix(truth(13)), max_range=20, estimate=True
        )
        assert done.status == "ok" and apart(truth(13), matrix_of(done.T_map_sensor))[0] < 1e-9


def test_volume_takes_scans_without_poses(directory: Path) -> None:
    with running(directory) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        volume = client.volume_create("surface", 0.1, truncation_m=0.3, durable="always")
        for i in range(8, 12):
            found = volume.integrate_points(
                scan(i, moving=True), time_field="t", estimate=True, range_max_m=20
            )
            assert found.status == "ok"
            expected = np.linalg.inv(truth(8)) @ truth(i)
            assert apart(expected, matrix_of(found.T_map_sensor))[0] < 0.6
        before = volume.info()
        assert before.n_images == 4
        lost = volume.integrate_points(elsewhere(), estimate=True, range_max_m=20)
        assert (lost.status, lost.reason) == ("lost", "too_few_inliers")
        info = volume.info()
        assert (info.n_blocks, info.n_images, info.stamp) == (
            before.n_blocks, before.n_images, before.stamp,
        )  # fmt: skip
    with running(directory) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        assert client.volume("surface").info().n_blocks == before.n_blocks


def test_volume_takes_images_without_poses(client: voxeld.Client) -> None:
    width, height, focal = 120, 90, 108.0
    camera = Camera(width=width, height=height, fx=focal, cx=59.5, cy=44.5)
    volume = client.volume_create("room", 0.02, truncation_m=0.08, colour=True)
    poses = [loop_pose(i, 600) for i in range(8)]
    found = []
    for i, pose in enumerate(poses):
        depth, colour = render(pose, (width, height, focal), i)
        prior = Pose.from_matrix(pose) if i == 0 else None
        done = volume.integrate(depth, camera, prior, colour=colour, pose="estimate")
        assert done.status == "ok" and (done.n_new > 0 or i > 0)
        found.append(matrix_of(done.T_map_camera))
    apart_mm = errors(np.array(found), np.array(poses))
    assert max(v for k, v in apart_mm.items() if "mm" in k) < 20
    before = volume.info()
    lost = volume.integrate(np.zeros((height, width), np.uint16), camera, pose="estimate")
    assert (lost.status, lost.reason) == ("lost", "no_depth")
    assert volume.info() == dataclasses.replace(before, ttl_left_s=volume.info().ttl_left_s)


# --- voxelctl, HTTP -----------------------------------------------------------------------------


def write_scans(folder: Path, n: int) -> None:
    folder.mkdir()
    for i in range(n):
        points = shoot(i)[0].astype(np.float32)
        np.column_stack([points, np.ones(len(points), np.float32)]).tofile(
            folder / f"{i:06}.bin"
        )


def ctl(daemon: Daemon, *words: object) -> subprocess.CompletedProcess[str]:
    return run(BIN / "voxelctl", "--url", daemon.ipc, *words)


def test_voxelctl_makes_poses_of_a_folder(daemon: Daemon, directory: Path) -> None:
    write_scans(directory / "scans", N)
    known = np.array([truth(i)[:3].ravel() for i in range(N)])
    np.savetxt(directory / "known.txt", known)
    done = ctl(daemon, "odometry", "run", directory / "scans", "--max-range", "60", "--size", "0.8",
               "--poses", directory / "known.txt", "--poses-out", directory / "kitti.txt",
               "--trajectory", directory / "tum.txt", "--json")  # fmt: skip
    report = json.loads(done.stdout)
    assert (report["n_scans"], report["n_lost"]) == (N, 0)
    assert report["most_m"] < 0.1 and report["rms_m"] <= report["most_m"]
    kitti = np.loadtxt(directory / "kitti.txt")
    assert kitti.shape == (N, 12)
    assert np.abs(kitti - known)[:, [3, 7, 11]].max() < 0.1
    tum = np.loadtxt(directory / "tum.txt")
    assert tum.shape == (N, 8) and np.allclose(tum[:, 0], 0.1 * np.arange(N))
    assert np.allclose(tum[:, 1:4], kitti[:, [3, 7, 11]], atol=1e-8)
    assert ctl(daemon, "odometry", "list").stdout.strip() == "no odometries"


def test_voxelctl_names_lost_scans(daemon: Daemon, directory: Path) -> None:
    write_scans(directory / "scans", 4)
    np.column_stack([elsewhere(), np.ones(12000, np.float32)]).astype(np.float32).tofile(
        directory / "scans" / "000002a.bin"
    )
    done = ctl(daemon, "odometry", "run", directory / "scans", "--max-range", "60")
    assert "5 scans registered, 1 lost" in done.stdout
    assert "000002a.bin: lost: too few inliers" in done.stderr


def test_voxelctl_has_the_other_subcommands(daemon: Daemon, directory: Path) -> None:
    write_scans(directory / "scans", 2)
    np.savetxt(directory / "pose.txt", truth(12))
    ctl(daemon, "odometry", "create", "car", "--max-range", "60", "--method", "point",
        "--initial", directory / "pose.txt")  # fmt: skip
    done = ctl(daemon, "odometry", "register", "car", directory / "scans/000000.bin",
               "--format", "kitti", "--json")  # fmt: skip
    reply = json.loads(done.stdout)
    assert reply["status"] == "ok" and reply["is_first"] is True
    assert np.allclose(reply["T_map_sensor"]["translation"], truth(12)[:3, 3])
    done = ctl(daemon, "odometry", "register", "car", directory / "scans/000001.bin",
               "--format", "kitti", "--prior", directory / "pose.txt")  # fmt: skip
    assert "registered fit" in done.stdout
    info = json.loads(ctl(daemon, "odometry", "info", "car", "--json").stdout)
    assert info["n_scans"] == 2 and info["method"] == 1
    assert "points to points" in ctl(daemon, "odometry", "info", "car").stdout
    ctl(daemon, "odometry", "reset", "car")
    assert json.loads(ctl(daemon, "odometry", "info", "car", "--json").stdout)["n_scans"] == 0
    assert "dropped car" in ctl(daemon, "odometry", "drop", "car").stdout
    done = ctl(daemon, "scene", "integrate", *sorted((directory / "scans").glob("*.bin")),
               "--format", "kitti", "--scene", "yard", "--size", "0.2",
               "--estimate", "--json")  # fmt: skip
    assert json.loads(done.stdout)["n_lost"] == 0
    ctl(daemon, "volume", "create", "v", "--size", "0.2")
    done = ctl(daemon, "volume", "scan", "v", directory / "scans/000000.bin", "--format", "kitti",
               "--estimate", "--range-max", "20", "--json")  # fmt: skip
    assert json.loads(done.stdout)["status"] == "ok"


def test_scan_file_is_the_body_of_a_post(daemon: Daemon, client: voxeld.Client) -> None:
    make(client)
    headers = {"Content-Type": "application/octet-stream"}
    for i in range(2):
        points = shoot(i)[0].astype(np.float32)
        body = np.column_stack([points, np.ones(len(points), np.float32)]).tobytes()
        url = f"/v1/odometry_register?name=car&format=kitti&stamp_ns={i + 1}"
        reply = http_call(daemon, "POST", url, body, headers)
        assert reply.status == 200, reply.body
        assert json.loads(reply.body)["isFirst" if i == 0 else "nInliers"]
    reply = http_call(daemon, "POST", "/v1/odometry_register?name=car&format=kitti&prior=1,2",
                      body, headers)  # fmt: skip
    assert reply.status == 400 and json.loads(reply.body)["field"] == "prior"
    client.scene_create("yard", 0.2)
    url = "/v1/scene_integrate?name=yard&format=kitti&pose=estimate&odometry=car"
    reply = http_call(daemon, "POST", url, body, headers)
    assert reply.status == 200 and "TMapSensor" in json.loads(reply.body)


# --- beside other programs ------------------------------------------------------------------------


def data_file(name: str) -> Path:
    folder = Path(os.environ.get("VOXELD_DATA", SOURCE.parent / "shared" / "data"))
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not here")
    return folder / name


def test_real_scans_lie_where_kiss_icp_and_small_gicp_put_them(client: voxeld.Client) -> None:
    """Recorded in tests/unit/gpu/odometry, too; here both run beside it, where installed."""
    kiss_icp = pytest.importorskip("kiss_icp.kiss_icp")
    small_gicp = pytest.importorskip("small_gicp")
    from kiss_icp.config import load_config

    clouds = [np.fromfile(data_file(f"lidar/kitti_seq_00000{i}.bin"), np.float32) for i in (0, 1)]
    points = [c.reshape(-1, 4)[:, :3] for c in clouds]
    config = load_config(None)
    config.data.deskew, config.mapping.voxel_size = False, 1.0
    peer = kiss_icp.KissICP(config)
    for p in points:
        peer.register_frame(p.astype(np.float64), np.array([]))
    gicp = small_gicp.align(
        points[0].astype(np.float64), points[1].astype(np.float64), downsampling_resolution=0.1,
        registration_type="GICP", max_correspondence_distance=1.0,
    ).T_target_source  # fmt: skip
    for method, other in (("point_to_point", peer.last_pose), ("point_to_plane", gicp)):
        car = client.odometry_create("kitti", method=method)
        found = [car.register(p) for p in points][-1]
        metres, degrees = apart(other, matrix_of(found.T_map_sensor))
        assert metres < 0.02 and degrees < 0.1, (method, metres, degrees)
        car.drop()

