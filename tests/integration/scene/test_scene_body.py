# SPDX-License-Identifier: Apache-2.0
"""Points of the robot itself: what is left of a cloud without them, taken out by NumPy beforehand,
gives the same scene, volume and voxels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, cloud_of, common_pb2, http_call, running, scene_pb2
from test_tools import run
from scenes import Scenes, vec
from test_scene_fusion import SIDE, fused, killed

INVALID_ARGUMENT = common_pb2.INVALID_ARGUMENT
MIN_RANGE = 0.75
BYTES = {"Content-Type": "application/octet-stream"}
# In a base that is half a metre below the sensor, and turned by a quarter to the left.
BOXES = np.array([[-1.25, -0.5, -0.25, 0.5, 1, 1], [0, -2, -2, 0.5, -1.5, 2]])
BASE = common_pb2.Pose(
    translation=vec(0, 0, 0.5), rotation=common_pb2.Quaternion(z=0.5**0.5, w=0.5**0.5)
)


def body() -> common_pb2.RobotBody:
    return common_pb2.RobotBody(
        min_range_m=MIN_RANGE,
        boxes=[common_pb2.BodyBox(low=vec(*b[:3]), high=vec(*b[3:])) for b in BOXES],
        T_base_sensor=BASE,
    )


def own(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which points are too near, and which others are in a box."""
    p = points[:, :3].astype(np.float64)
    near = (p * p).sum(1) < MIN_RANGE**2
    base = np.stack([-p[:, 1], p[:, 0], p[:, 2] + 0.5], 1)
    inside = np.zeros(len(p), bool)
    for b in BOXES:
        inside |= ((base >= b[:3]) & (base < b[3:])).all(1)
    return near, inside & ~near


def scan(seed: int, n: int = 1500) -> np.ndarray:
    """Points at any distance, with times."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2.3, 2.3, (n, 4))
    points[:, 3] = np.arange(n) / n
    points[5] = np.nan
    return points.astype(np.float32)


def at(*place: float) -> common_pb2.Pose:
    return common_pb2.Pose(translation=vec(*place))


def clouds(seed: int) -> list[tuple[dict[str, Any], list[np.ndarray]]]:
    """What a request has beside its points, and the points of its cloud and sweeps."""
    end = common_pb2.Pose(
        translation=vec(0.3, 0, 0.1), rotation=common_pb2.Quaternion(z=0.1, w=0.99**0.5)
    )
    moving = {"deskew": common_pb2.Deskew(T_map_sensor_end=end, start=0, end=1)}
    return [
        ({"T_map_sensor": at(0.04, 0.03, 0.02)}, [scan(seed)]),
        ({"T_map_sensor": at(-0.2, 0, 0)} | moving, [scan(seed + 1)]),
        ({"T_map_sensor": at(0, 0.2, 0)}, [scan(seed + 2), scan(seed + 3)]),
    ]


def message(
    members: dict[str, Any], parts: list[np.ndarray], robot: common_pb2.RobotBody | None
) -> common_pb2.Cloud:
    """Without a robot the points of one are taken out here."""
    parts = [p if robot is not None else p[~(own(p)[0] | own(p)[1])] for p in parts]
    sweeps = [
        common_pb2.Sweep(data=p.astype("<f4").tobytes(), T_cloud_sweep=at(0.5, 0, 0))
        for p in parts[1:]
    ]
    return cloud_of(parts[0], "xyzt", sweeps=sweeps, body=robot, **members)


@pytest.mark.parametrize("fusion", ["SCENE_FUSION_LAST", "SCENE_FUSION_LOG_ODDS"])
def test_points_of_the_robot_are_neither_hits_nor_rays(tmp_path: Path, fusion: str) -> None:
    """Also after a SIGKILL: the journal has what is left."""
    durable = scene_pb2.SceneDurability(fsync="SCENE_FSYNC_ALWAYS")
    with killed(tmp_path) as (_, scenes):
        for name in ("with", "without"):
            scenes.call("scene_create", name=name, spec=fused(fusion=fusion), durability=durable)
        for seed in (1, 10):
            for members, parts in clouds(seed):
                fields = {"carve": scene_pb2.SceneCarve(max_range_m=2)}
                left = scenes.call(
                    "scene_integrate", name="without", cloud=message(members, parts, None), **fields
                )
                done = scenes.call(
                    "scene_integrate", name="with", cloud=message(members, parts, body()), **fields
                )
                near, inside = (np.concatenate(k) for k in zip(*map(own, parts), strict=True))
                assert (done.n_near, done.n_own) == (near.sum(), inside.sum())
                assert done.n_near > 20 and done.n_own > 30
                assert done.n_points == left.n_points + done.n_near + done.n_own
                assert left.n_near == left.n_own == 0
                for field in ("n_used", "n_non_finite", "n_outside", "n_beyond", "n_hit_voxels",
                              "n_passed_voxels"):  # fmt: skip
                    assert getattr(done, field) == getattr(left, field), field
                assert done.n_non_finite == len(parts)
                states = [scenes.dense(name, SIDE)[0] for name in ("with", "without")]
                np.testing.assert_array_equal(*states)
        digest = scenes.call("scene_get", name="with").scene.digest
        assert digest == scenes.call("scene_get", name="without").scene.digest
    with killed(tmp_path) as (_, scenes):
        assert scenes.call("scene_get", name="with").scene.digest == digest


def test_filter_does_not_see_the_robot(scenes: Scenes) -> None:
    """A voxel that only the robot's second point would make full enough is not hit."""
    points = np.float32([[2, 0, 0], [2.01, 0, 0], [1, 1, 0], [1.01, 1, 0]])
    robot = common_pb2.RobotBody(
        boxes=[common_pb2.BodyBox(low=vec(0.9, 0.9, -1), high=vec(1.005, 1.1, 1))]
    )
    scenes.call("scene_create", name="s", spec=fused())
    done = scenes.call(
        "scene_integrate", name="s", cloud=cloud_of(points, body=robot),
        filter=scene_pb2.SceneFilter(min_hits=2),
    )  # fmt: skip
    assert (done.n_own, done.n_sparse, done.n_used, done.n_non_finite) == (1, 1, 2, 0)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("min_range_m", {"min_range_m": -1}),
        ("min_range_m", {"min_range_m": float("inf")}),
        ("boxes", {"boxes": [common_pb2.BodyBox(low=vec(0, 0, 0), high=vec(1, 1, 1))] * 33}),
        ("boxes[0].low", {"boxes": [common_pb2.BodyBox(high=vec(1, 1, 1))]}),
        (
            "boxes[1].high",
            {
                "boxes": [
                    common_pb2.BodyBox(low=vec(0, 0, 0), high=vec(1, 1, 1)),
                    common_pb2.BodyBox(low=vec(0, 0, 0), high=vec(1, 0, 1)),
                ]
            },
        ),
        (
            "boxes[0].high",
            {"boxes": [common_pb2.BodyBox(low=vec(0, 0, 0), high=vec(1, 1, float("nan")))]},
        ),
        ("T_base_sensor", {"T_base_sensor": at(float("nan"), 0, 0)}),
        (
            "T_base_sensor",
            {"T_base_sensor": common_pb2.Pose(rotation=common_pb2.Quaternion(w=2))},
        ),
    ],
)
def test_wrong_body_is_refused(scenes: Scenes, field: str, wrong: dict[str, Any]) -> None:
    scenes.call("scene_create", name="s", spec=fused())
    cloud = cloud_of(np.float32([[1, 0, 0]]), body=common_pb2.RobotBody(**wrong))
    scenes.fails(
        "scene_integrate", INVALID_ARGUMENT, f"cloud.body.{field}", name="s", cloud=cloud
    )


def test_body_of_all_clouds_and_clients(tmp_path: Path) -> None:
    points = scan(3, 4000)[:, :3]
    near, inside = own(points)
    left = points[~(near | inside)]
    turned = voxeld.Pose((0, 0, 0.5), (0, 0, 0.5**0.5, 0.5**0.5))
    robot = voxeld.Body(MIN_RANGE, BOXES, turned)
    cloud = voxeld.Cloud.from_numpy(points, body=robot)
    with running(tmp_path) as daemon, voxeld.connect(daemon.ipc) as client:
        item = client.voxelize([cloud], size=0.1)
        other = client.voxelize([voxeld.Cloud.from_numpy(left)], size=0.1)
        np.testing.assert_array_equal(item.coords, other.coords)
        blocks, poses = [], []
        for name, given in (("a", cloud), ("b", voxeld.Cloud.from_numpy(left))):
            volume = client.volume_create(name, 0.1, truncation_m=0.3)
            done = volume.integrate_points(given)
            expected = (near.sum(), inside.sum()) if name == "a" else (0, 0)
            assert (done.n_near, done.n_own) == expected and done.n_dropped == 1
            blocks.append((done.n_used, done.n_touched, done.n_new, done.n_blocks))
        assert blocks[0] == blocks[1] and done.n_blocks > 0

        # Odometry matches what is left: the robot goes on by 0.1 m, and its own points with it.
        for name in "ab":
            car = client.odometry_create(name, max_range_m=10, voxel_size_m=0.2)
            for step in range(3):
                seen = left - np.float32([0.1 * step, 0, 0])
                seen = seen[~(own(seen)[0] | own(seen)[1])]
                both = np.concatenate([seen, points[near | inside]])
                given = {"a": voxeld.Cloud.from_numpy(both, body=robot), "b": seen}[name]
                pose = car.register(given).T_map_sensor
            poses.append(pose)
        assert poses[0] == poses[1] and abs(poses[0].translation[0] - 0.2) < 0.05

        # Boxes are in the sensor's frame here.
        boxes = np.array([[-1, -1, -1, 1, 1, 1], [1.5, 1.5, -3, 3, 3, 3]])
        text = ",".join(str(v) for v in boxes.ravel())
        p = points.astype(np.float64)
        near = (p * p).sum(1) < 0.5**2
        inside = np.zeros(len(p), bool)
        for box in boxes:
            inside |= ((p >= box[:3]) & (p < box[3:])).all(1)
        expected = (near.sum(), (inside & ~near).sum())
        client.scene_create("s", 0.1, depth=6, track_free=True)
        np.save(tmp_path / "scan.npy", points)
        file = (tmp_path / "scan.npy").read_bytes()
        path = f"/v1/scene_integrate?name=s&format=npy&carve=true&min_range=0.5&body={text}"
        reply = http_call(daemon, "POST", path, file, BYTES)
        assert reply.status == 200, reply.body
        answer = json.loads(reply.body)
        assert (int(answer["nNear"]), int(answer["nOwn"])) == expected
        for wrong in ("min_range=x", "min_range=-1", "body=1,2,3", "body=0,0,0,1,1,0"):
            query = f"/v1/scene_integrate?name=s&format=npy&{wrong}"
            reply = http_call(daemon, "POST", query, file, BYTES)
            assert reply.status == 400, (wrong, reply.body)
        words = ["--url", daemon.ipc, "--json", "scene", "integrate", str(tmp_path / "scan.npy")]
        words += ["--scene", "s", "--min-range", "0.5", f"--body={text}"]
        answer = json.loads(run(BIN / "voxelctl", *words).stdout)
        assert (answer["n_near"], answer["n_own"]) == expected
        assert answer["n_points"] == len(points)
        words = ["--url", daemon.ipc, "--json", "volume", "scan", "a", str(tmp_path / "scan.npy")]
        answer = json.loads(run(BIN / "voxelctl", *words, f"--body={text}").stdout)
        assert (answer["n_near"], answer["n_own"]) == (0, inside.sum())
        run(BIN / "voxelctl", *words, "--body=1,2,3", code=2)
