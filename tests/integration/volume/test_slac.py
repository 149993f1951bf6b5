# SPDX-License-Identifier: Apache-2.0
"""Alignment without rigidity over both transports: a room of NumPy's that a planted distortion
bends, control grids against trilinear interpolation in float64, and what has to be refused."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from depth_scene import CAMERA, distance, shoot
from harness import BIN, SLOW, Daemon, http_call, running, wait_until
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

AMPLITUDE = 0.03
N = 14
HERE = voxeld.Pose(translation=(0, 0, 0))


def distort(p: np.ndarray) -> np.ndarray:
    """Where a point that is seen at p truly is."""
    x, y, z = p.T
    return p + AMPLITUDE * np.stack(
        [np.sin(1.7 * y + 0.9 * z), 0.8 * np.sin(1.5 * x - 1.1 * z + 0.5), np.cos(1.9 * x + 0.4)], 1
    )


def undistort(p: np.ndarray) -> np.ndarray:
    out = p.copy()
    for _ in range(60):
        out += p - distort(out)
    return out


def box(low: np.ndarray, high: np.ndarray, inward: bool) -> tuple[np.ndarray, np.ndarray]:
    points, normals = [], []
    for axis in range(3):
        others = [a for a in range(3) if a != axis]
        grids = [np.arange(low[a] + 0.02, high[a], 0.04) for a in others]
        u, v = (g.ravel() for g in np.meshgrid(*grids))
        for side, at in ((-1, low[axis]), (1, high[axis])):
            p = np.empty((len(u), 3))
            p[:, axis], p[:, others[0]], p[:, others[1]] = at, u, v
            n = np.zeros_like(p)
            n[:, axis] = -side if inward else side
            points.append(p)
            normals.append(n)
    return np.concatenate(points), np.concatenate(normals)


def room() -> tuple[np.ndarray, np.ndarray]:
    parts = [box(np.array([-2, -1.5, -1.2]), np.array([2, 1.5, 1.2]), True)]
    for low, size in (
        ((0.8, 0.6, -1.2), (0.7, 0.5, 0.9)),
        ((-1.6, -1.2, -1.2), (0.6, 0.6, 1.4)),
        ((-1.0, 1.0, 0.2), (0.8, 0.5, 0.5)),
        ((1.2, -1.3, -0.3), (0.6, 0.7, 0.6)),
    ):
        parts.append(box(np.array(low), np.array(low) + size, False))
    return np.concatenate([p for p, _ in parts]), np.concatenate([n for _, n in parts])


class Fragments:
    """Parts of the room as they are seen from the middle, all around, with all rolls."""

    def __init__(self, n: int = N, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        points, normals = room()
        self.points, self.normals, self.truth, self.true_poses, self.poses = [], [], [], [], []
        for i in range(n):
            turn = Rotation.from_euler(
                "ZYX", [360 / n * i, 25 * np.sin(2.1 * i), 80 * np.sin(1.3 * i)], degrees=True
            )
            at = 0.3 * np.array([np.sin(i), np.cos(1.7 * i), 0.5 * np.sin(2.3 * i)])
            local = turn.inv().apply(points - at)
            seen = (local[:, 0] > 0.3) & (np.hypot(local[:, 1], local[:, 2]) < 1.3 * local[:, 0])
            error = Rotation.from_rotvec(rng.uniform(-0.006, 0.006, 3) * (i > 0))
            self.points.append(undistort(local[seen]).astype(np.float32))
            self.normals.append(turn.inv().apply(normals[seen]).astype(np.float32))
            self.truth.append(points[seen])
            self.true_poses.append(np.r_[at, turn.as_quat()])
            self.poses.append(
                np.r_[at + rng.uniform(-0.015, 0.015, 3) * (i > 0), (turn * error).as_quat()]
            )

    @property
    def arguments(self) -> dict[str, np.ndarray]:
        return {
            "points": np.concatenate(self.points),
            "normals": np.concatenate(self.normals),
            "counts": np.array([len(p) for p in self.points], np.int64),
            "poses": np.array(self.poses),
        }


@pytest.fixture(scope="module")
def fragments() -> Fragments:
    return Fragments()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as connected:
        for info in connected.volumes():
            connected.volume_drop(info.name)
        for info in connected.maps():
            connected.map_drop(info.name)
        yield connected


def interpolate(keys: np.ndarray, offsets: np.ndarray, cell: float, p: np.ndarray) -> np.ndarray:
    """C(p) in float64, where all corners are known; NaN elsewhere."""
    table = {tuple(k): o.astype(float) for k, o in zip(keys.tolist(), offsets, strict=True)}
    out = np.full(p.shape, np.nan)
    for i, x in enumerate(p.astype(float)):
        low = np.floor(x / cell).astype(int)
        f = x / cell - low
        moved = np.zeros(3)
        for k in range(8):
            d = np.array([k >> 2 & 1, k >> 1 & 1, k & 1])
            offset = table.get(tuple((low + d).tolist()))
            moved = moved + np.prod(np.where(d, f, 1 - f)) * (np.nan if offset is None else offset)
        out[i] = x + moved
    return out


def scene_of(fragments: Fragments, poses: np.ndarray, points: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(
        [Rotation.from_quat(q[3:]).apply(p) + q[:3] for p, q in zip(points, poses, strict=True)]
    )


def score(points: np.ndarray, truth: np.ndarray, within: float = 0.02) -> float:
    precision = (cKDTree(truth).query(points)[0] < within).mean()
    recall = (cKDTree(points).query(truth)[0] < within).mean()
    return float(2 * precision * recall / (precision + recall))


def align(points: np.ndarray, truth: np.ndarray) -> np.ndarray:
    turn, _ = Rotation.align_vectors(truth - truth.mean(0), points - points.mean(0))
    return turn.apply(points - points.mean(0)) + truth.mean(0)


def test_bent_fragments_become_straight_where_poses_alone_do_not_help(
    client: voxeld.Client, fragments: Fragments
) -> None:
    truth = np.concatenate(fragments.truth)
    rigid = client.slac_optimize("only-poses", rigid=True, **fragments.arguments)
    assert rigid.keys is None and rigid.n_control_points == 0
    assert "only-poses" not in [m.name for m in client.maps()]
    stiff = align(scene_of(fragments, rigid.poses, fragments.points), truth)

    bent = client.slac_optimize("bent", grid_arrays=True, **fragments.arguments)
    assert bent.losses.shape == (6, 4)
    assert bent.losses[-1, 0] < 0.2 * bent.losses[0, 0]
    assert bent.losses[-1, 0] < 0.3 * rigid.losses[-1, 0]
    moved = [client.slac_apply("bent", p).points for p in fragments.points]
    straight = align(scene_of(fragments, bent.poses, moved), truth)
    assert np.sqrt(((straight - truth) ** 2).sum(1).mean()) < 0.008
    assert score(straight, truth) >= score(stiff, truth) + 0.08

    # The first fragment stays where it is.
    assert np.abs(bent.poses[0] - fragments.poses[0]).max() < 1e-12

    info = client.map("bent").info()
    assert info.n_entries == bent.n_control_points == len(bent.keys)
    exported = client.map("bent").export()
    assert (exported.keys == bent.keys).all()
    assert (exported.values["offset"] == bent.offsets).all()
    assert (exported.values["rotation"] == bent.rotations).all()
    assert np.abs(np.linalg.norm(bent.rotations, axis=1) - 1).max() < 1e-5
    progress = client.slac_progress("bent")
    assert progress.state == "done" and progress.iteration == progress.iterations == 5
    assert progress.n_control_points == bent.n_control_points
    assert not client.slac_cancel("bent")


def test_applied_grid_is_trilinear_interpolation_and_comes_back(
    client: voxeld.Client, fragments: Fragments
) -> None:
    bent = client.slac_optimize("bent", iterations=2, grid_arrays=True, **fragments.arguments)
    points = np.concatenate([p[::40] for p in fragments.points])
    normals = np.concatenate([n[::40] for n in fragments.normals])
    moved = client.slac_apply("bent", points, normals=normals)
    expected = interpolate(bent.keys, bent.offsets, 0.375, points)
    assert np.isfinite(expected).all() and moved.n_inside == len(points)
    assert np.abs(moved.points - expected).max() < 2e-6

    # Normals: two tangents that are moved, and crossed.
    step = 1e-3
    other = np.where(np.abs(normals[:, :1]) < 0.9, [[1.0, 0, 0]], [[0, 1.0, 0]])
    a = np.cross(normals, other)
    a /= np.linalg.norm(a, axis=1)[:, None]
    b = np.cross(normals, a)
    n_moved = np.cross(
        interpolate(bent.keys, bent.offsets, 0.375, points + step * a) - expected,
        interpolate(bent.keys, bent.offsets, 0.375, points + step * b) - expected,
    )
    n_moved /= np.linalg.norm(n_moved, axis=1)[:, None]
    agree = (n_moved * moved.normals).sum(1)
    assert np.median(agree) > 0.99999 and (agree > 0.999).mean() > 0.98

    back = client.slac_apply("bent", moved.points, inverse=True)
    assert np.abs(back.points - points).max() < 1e-5
    there = client.slac_apply(
        "bent", points + [1, 2, 3], T_grid_points=voxeld.Pose(translation=(-1, -2, -3))
    )
    assert np.abs(there.points - moved.points).max() < 5e-6
    far = client.slac_apply("bent", np.array([[50, 50, 50], [np.nan, 0, 0]], np.float32))
    assert far.n_inside == 0 and (far.points[0] == 50).all() and np.isnan(far.points[1, 0])


def test_grid_outlives_the_server_as_a_file(
    tmp_path: Path, fragments: Fragments, directory: Path
) -> None:
    config = {"data_dir": str(tmp_path)}
    points = fragments.points[0][:500]
    with (
        running(directory, config) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        client.slac_optimize("bent", iterations=1, **fragments.arguments)
        before = client.slac_apply("bent", points).points
        client.map("bent").save()
    with (
        running(directory, config) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        client.map_load("bent")
        assert (client.slac_apply("bent", points).points == before).all()


def bulge(cell: float) -> tuple[np.ndarray, np.ndarray]:
    """A grid around the scene of balls: every control point, and a smooth offset of each."""
    r = np.arange(-14, 15)
    keys = np.stack(np.meshgrid(r, r, r, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    x, y, z = (keys * cell).T
    offsets = np.stack([0.03 * np.sin(2 * y), 0.02 * np.cos(2 * z), 0.03 * np.sin(2 * x + 1)], 1)
    return keys, offsets.astype(np.float32)


def make_grid(client: voxeld.Client, name: str, cell: float) -> None:
    keys, offsets = bulge(cell)
    grid = client.map_create(
        name,
        {"offset": (np.float32, 3), "rotation": (np.float32, 4)},
        lattice=voxeld.Lattice(size=(cell, cell, cell)),
    )
    grid.insert(keys, {"offset": offsets})


def test_images_of_a_distorting_camera_are_integrated_straight(client: voxeld.Client) -> None:
    """A camera sees each point p where C(p) is the truth: images are rendered so, ray by ray."""
    make_grid(client, "lens", 0.25)
    keys, offsets = bulge(0.25)
    bent = client.volume_create("bent", 0.02, truncation_m=0.08)
    straight = client.volume_create("straight", 0.02, truncation_m=0.08)
    v, u = np.mgrid[: CAMERA.height : 1, : CAMERA.width : 1].astype(float)
    rays = np.stack(
        [(u - CAMERA.cx) / CAMERA.fx, (v - CAMERA.cy) / CAMERA.fy, np.ones_like(u)], -1
    ).reshape(-1, 3)
    for i in range(3):
        shot = shoot(i)
        z = shot.depth.reshape(-1).astype(float)
        for _ in range(30):  # a step along the ray as long as the scene is away
            seen = client.slac_apply("lens", (rays * z[:, None]).astype(np.float32)).points
            world = seen.astype(float) @ shot.rotation.T + shot.translation
            ball = np.linalg.norm(world - [0.05, -0.02, 1.1], axis=1) - 0.32
            wall = 1.7 - world[:, 2]
            z += 0.7 * np.minimum(ball, wall)
        image = z.reshape(CAMERA.height, CAMERA.width).astype(np.float32)
        bent.integrate(image, CAMERA, shot.pose)
        # The grid lies in the camera's own frame.
        straight.integrate(image, CAMERA, shot.pose, deform="lens", T_grid_camera=HERE)
    assert len(keys) == len(offsets)
    wrong = distance(bent.extract().vertices)
    right = distance(straight.extract().vertices)
    assert np.median(wrong) > 0.008
    assert np.median(right) < 0.002 and np.quantile(right, 0.95) < 0.006


def test_volume_is_deformed_into_a_new_one(client: voxeld.Client) -> None:
    make_grid(client, "lens", 0.25)
    volume = client.volume_create("v", 0.02, truncation_m=0.08)
    for i in range(3):
        shot = shoot(i)
        volume.integrate(shot.depth, CAMERA, shot.pose)
    made = client.slac_deform_volume("lens", "v", "w")
    assert made.n_blocks == client.volume("w").info().n_blocks > 0
    surface = volume.extract()
    moved = client.slac_apply("lens", surface.vertices).points
    deformed = client.volume("w").extract().vertices
    assert 0.9 < len(deformed) / len(moved) < 1.1
    apart = cKDTree(moved).query(deformed)[0]
    assert np.quantile(apart, 0.95) < 0.02
    # Both lie on one surface: points of one are near the other's planes.
    tree = cKDTree(moved)
    _, near = tree.query(deformed)
    normals = client.slac_apply("lens", surface.vertices, normals=surface.normals).normals
    planes = np.abs(((deformed - moved[near]) * normals[near]).sum(1))
    assert np.median(planes) < 0.0015 and np.quantile(planes, 0.9) < 0.005
    with pytest.raises(voxeld.AlreadyExists, match="to"):
        client.slac_deform_volume("lens", "v", "w")
    with pytest.raises(voxeld.NotFound, match="volume"):
        client.slac_deform_volume("lens", "none", "x")


def test_fragments_of_volumes_are_their_surfaces(client: voxeld.Client) -> None:
    for i in range(3):
        shot = shoot(i)
        volume = client.volume_create(f"part-{i}", 0.02, truncation_m=0.08)
        volume.integrate(shot.depth, CAMERA, shot.pose)
    poses = np.tile([0, 0, 0, 0, 0, 0, 1.0], (3, 1))
    poses[1, :3] += 0.02
    poses[2, :3] -= 0.015
    result = client.slac_optimize(
        "joined", volumes=["part-0", "part-1", "part-2"], poses=poses, iterations=8
    )
    # Wall and ball do not hold the turn about the ball's axis; the distance to planes falls.
    assert result.losses[-1, 0] < 0.1 * result.losses[0, 0]
    assert result.n_control_points > 0 and result.replaced is False
    again = client.slac_optimize(
        "joined", volumes=["part-0", "part-1", "part-2"], poses=poses, iterations=8, replace=True
    )
    assert again.replaced and (again.losses == result.losses).all()
    assert (again.poses == result.poses).all()


def test_what_cannot_be_aligned_is_named_and_changes_nothing(
    client: voxeld.Client, fragments: Fragments
) -> None:
    good = fragments.arguments

    def refused(error: type[voxeld.Error], field: str, text: str, **more: object) -> None:
        with pytest.raises(error) as caught:
            client.slac_optimize("bent", **{**good, **more})  # type: ignore[arg-type]
        assert field in str(caught.value) and text in str(caught.value), str(caught.value)
        assert not client.maps()

    away = good["poses"].copy()
    away[[3, 5], 0] += 100
    refused(voxeld.FailedPrecondition, "fragments", '"3", "5"', poses=away)
    refused(voxeld.ResourceExhausted, "max_unknowns", "control points", max_unknowns=300)
    turned = good["poses"].copy()
    turned[2, 6] += 0.1
    refused(voxeld.InvalidArgument, "poses[2]", "norm", poses=turned)
    turned[2] = np.nan
    refused(voxeld.InvalidArgument, "poses[2]", "finite", poses=turned)
    refused(voxeld.InvalidArgument, "poses", "2 to 1024", poses=good["poses"][:1])
    refused(voxeld.InvalidArgument, "counts", "fragments", counts=good["counts"][:-1])
    refused(voxeld.InvalidArgument, "counts", "left", counts=good["counts"] * 2)
    refused(voxeld.InvalidArgument, "normals", "points", normals=good["normals"][:-1])
    refused(voxeld.InvalidArgument, "normals", "missing", normals=None)
    refused(voxeld.InvalidArgument, "edges[1]", "14", edges=np.array([[0, 1], [3, N]], np.int32))
    refused(voxeld.InvalidArgument, "cell_m", "0.01", cell_m=0.001)
    refused(voxeld.InvalidArgument, "fitness", "1", fitness=1.5)
    refused(voxeld.InvalidArgument, "points", "beside volumes", volumes=["a"] * N)
    with pytest.raises(voxeld.NotFound, match="none"):
        client.slac_optimize("bent", volumes=["none", "other"], poses=good["poses"][:2])
    client.volume_create("empty-0", 0.02)
    client.volume_create("empty-1", 0.02)
    with pytest.raises(voxeld.FailedPrecondition, match="empty-0"):
        client.slac_optimize("bent", volumes=["empty-0", "empty-1"], poses=good["poses"][:2])
    assert client.slac_progress("bent").state == "failed"
    assert "empty-0" in client.slac_progress("bent").error
    client.map_create("seen", {"count": np.uint64})
    with pytest.raises(voxeld.AlreadyExists, match="seen"):
        client.slac_optimize("seen", **good)
    with pytest.raises(voxeld.InvalidArgument, match="no control grid"):
        client.slac_apply("seen", np.zeros((1, 3), np.float32))
    with pytest.raises(voxeld.NotFound):
        client.slac_progress("never")
    with pytest.raises(voxeld.NotFound):
        client.slac_cancel("never")


def test_job_is_cancelled_or_ends_at_its_deadline_and_others_run_meanwhile(
    daemon: Daemon, client: voxeld.Client, fragments: Fragments
) -> None:
    found: list[BaseException] = []

    def work() -> None:
        with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as other:
            try:
                other.slac_optimize(
                    "long", iterations=100, solver_steps=1000, voxel_m=0.03, **fragments.arguments
                )
            except voxeld.Error as error:
                found.append(error)

    thread = threading.Thread(target=work)
    thread.start()

    def has_begun() -> bool:
        try:
            return client.slac_progress("long").iteration >= 1
        except voxeld.NotFound:
            return False

    wait_until(has_begun, 60 * SLOW, "a step of the job")
    assert client.slac_progress("long").state == "running"
    with pytest.raises(voxeld.AlreadyExists, match="running"):
        client.slac_optimize("long", **fragments.arguments)
    # A change runs between the stages.
    client.map_create("small", {"count": np.uint64})
    client.map("small").insert(np.zeros((1, 3), np.int32))
    assert client.slac_progress("long").state == "running"
    assert client.slac_cancel("long")
    thread.join()
    assert isinstance(found[0], voxeld.Cancelled), found
    assert client.slac_progress("long").state == "cancelled"
    with pytest.raises(voxeld.Aborted):
        client.slac_optimize(
            "late", iterations=100, solver_steps=1000, voxel_m=0.03, max_s=0.5,
            **fragments.arguments,
        )  # fmt: skip
    assert client.slac_progress("late").state == "failed"
    assert "steps; nothing has changed" in client.slac_progress("late").error
    assert [m.name for m in client.maps()] == ["small"]


def test_repeated_number_gives_the_first_outcome(
    client: voxeld.Client, fragments: Fragments
) -> None:
    arguments = {**fragments.arguments, "iterations": 1}
    first = client.slac_optimize("bent", sequence=700, **arguments)
    again = client.slac_optimize("bent", sequence=700, **arguments)
    assert (again.poses == first.poses).all()
    with pytest.raises(voxeld.AlreadyExists):
        client.slac_optimize("bent", sequence=701, **arguments)
    # Who has waited long enough asks again by the number, and gets what the job has become.
    with pytest.raises(voxeld.DeadlineExceeded):
        client.slac_optimize("slow", sequence=702, timeout=0.05, **arguments)
    late = client.slac_optimize("slow", sequence=702, **arguments)
    assert (late.poses == first.poses).all()


def ply_of(points: np.ndarray, normals: np.ndarray) -> bytes:
    head = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n"
        + "".join(f"property float {n}\n" for n in ("x", "y", "z", "nx", "ny", "nz"))
        + "end_header\n"
    )
    return head.encode() + np.concatenate([points, normals], 1).astype("<f4").tobytes()


def test_command_line_aligns_files(
    daemon: Daemon, client: voxeld.Client, fragments: Fragments, tmp_path: Path
) -> None:
    names = []
    for i, (p, n) in enumerate(zip(fragments.points, fragments.normals, strict=True)):
        names.append(str(tmp_path / f"part-{i:02}.ply"))
        Path(names[-1]).write_bytes(ply_of(p, n))
    rows = [
        np.c_[Rotation.from_quat(q[3:]).as_matrix(), q[:3]].ravel() for q in fragments.poses
    ]
    lines = [" ".join(map(repr, map(float, r))) + "\n" for r in rows]
    (tmp_path / "poses.txt").write_text("".join(lines))

    def ctl(*words: str) -> str:
        return subprocess.run(
            [BIN / "voxelctl", "--url", daemon.ipc, "--timeout", "60", "slac", *words],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip

    out = json.loads(
        ctl("optimize", "bent", *names, "--poses", str(tmp_path / "poses.txt"), "--iterations", "2",
            "--out-poses", str(tmp_path / "after.txt"), "--json")
    )  # fmt: skip
    expected = client.slac_optimize("other", iterations=2, **fragments.arguments)
    assert out["n_control_points"] == expected.n_control_points
    after = np.loadtxt(tmp_path / "after.txt").reshape(-1, 3, 4)
    # The file is of rotations, which round otherwise: a pair in thousands is another one.
    assert np.abs(after[:, :, 3] - expected.poses[:, :3]).max() < 1e-4
    assert "done, 2 of 2 steps" in ctl("progress", "bent")
    assert "had ended" in ctl("cancel", "bent")
    said = ctl("apply", "bent", names[0], str(tmp_path / "out.ply"))
    assert f"{len(fragments.points[0]):,} points" in said
    body = (tmp_path / "out.ply").read_bytes().split(b"end_header\n", 1)[1]
    moved = np.frombuffer(body, "<f4").reshape(-1, 6)
    assert np.abs(moved[:, :3] - client.slac_apply("bent", fragments.points[0]).points).max() < 1e-6


def test_json_over_http(daemon: Daemon, client: voxeld.Client) -> None:
    make_grid(client, "lens", 0.25)
    reply = http_call(
        daemon, "POST", "/v1/slac_apply",
        {"name": "lens", "points": {"dtype": "FLOAT32", "shape": [1, 3], "values": [0.5, 0, 1]}},
    )  # fmt: skip
    assert reply.status == 200 and int(reply.json()["nInside"]) == 1
    reply = http_call(daemon, "POST", "/v1/slac_progress", {"name": "none"})
    assert reply.status == 404
