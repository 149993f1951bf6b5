# SPDX-License-Identifier: Apache-2.0
"""The Python client against the real daemon: arguments, results, and how it is installed. Errors
are in test_python_errors.py."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import SLOW, SOURCE, Daemon, random_points
from oracle import Voxels

LOW, HIGH = (-10.0, -12.0, -8.0), (10.0, 12.0, 8.0)
ALL_OUTPUTS = ("coords", "counts", "inverse", "points", "first_index")
REDUCTIONS = ("mean", "sum", "min", "max", "first")
ROOT = SOURCE / "client" / "python"


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        yield connected


@pytest.fixture(scope="module")
def bridge() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bridge", ROOT / "examples" / "ros2_bridge.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Voxelize ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["spconv", "minkowski"])
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_voxelize_equals_the_oracle(daemon: Daemon, rule: str, transport: str) -> None:
    points = random_points(30000, seed=5)
    points[7] = np.nan
    rows = np.hstack([points, np.arange(len(points), dtype=np.float32)[:, None] / 1000])
    expected = Voxels(points, rows, 0.4, rule, LOW, HIGH)
    url = daemon.ipc if transport == "ipc" else daemon.tcp
    with voxeld.connect(url, timeout=30 * SLOW) as client:
        voxels = client.voxelize(
            rows, 0.4, (LOW, HIGH), rule, outputs=("coords", "counts", "inverse")
        )
    np.testing.assert_array_equal(voxels.coords[:, 1:], expected.coords)
    np.testing.assert_array_equal(voxels.counts, expected.counts)
    np.testing.assert_array_equal(voxels.inverse, expected.inverse)
    np.testing.assert_allclose(voxels.mean, expected.mean, rtol=1e-4, atol=1e-4)
    assert voxels.features == ("x", "y", "z", "intensity")
    assert voxels.rule == rule
    assert (voxels.grid is not None) == (rule == "spconv")
    assert voxels.items[0].n_non_finite == 1
    assert voxels.points is None and voxels.sum is None
    for name in ("coords", "counts", "inverse", "mean"):
        assert getattr(voxels, name).flags.aligned
    centres = voxels.centres()
    np.testing.assert_array_less(
        np.abs(voxels.mean[:, :3] - centres), 0.2 + 1e-4, err_msg="means lie in their voxels"
    )


def test_voxelize_all_outputs_follow_from_one_another(client: voxeld.Client) -> None:
    points = random_points(5000, seed=6, extent=4)
    voxels = client.voxelize(
        points, 1.0, reduce=REDUCTIONS, outputs=ALL_OUTPUTS, max_points=7, max_voxels=300,
        order="first_point",
    )  # fmt: skip
    m = len(voxels)
    assert m == 300 and voxels.points.shape == (m, 7, 3)
    assert (np.diff(voxels.first_index.astype(np.int64)) > 0).all()
    for i in (0, 1, m // 2, m - 1):
        rows = points[voxels.inverse == i][:7]
        assert voxels.counts[i] == len(rows)
        np.testing.assert_array_equal(voxels.points[i, : len(rows)], rows)
        assert (voxels.points[i, len(rows) :] == 0).all()
        np.testing.assert_array_equal(voxels.first[i], rows[0])
        np.testing.assert_array_equal(points[voxels.first_index[i]], rows[0])
        np.testing.assert_array_equal(voxels.min[i], rows.min(0))
        np.testing.assert_array_equal(voxels.max[i], rows.max(0))
        np.testing.assert_allclose(voxels.sum[i], rows.sum(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(voxels.mean[i], rows.mean(0), rtol=1e-5, atol=1e-5)
    item = voxels.items[0]
    assert item.n_over_max_points > 0 and item.n_over_max_voxels > 0
    dropped = item.n_over_max_points + item.n_over_max_voxels
    assert item.n_points == item.n_used + dropped == 5000


def test_last_times_are_those_of_the_last_reply(client: voxeld.Client) -> None:
    client.server_info()
    times = client.last_times
    assert times is not None
    assert times.engine_ms == times.wait_ms == times.commit_ms == 0 < times.total_ms
    voxels = client.voxelize(random_points(5000), 1.0)
    times = client.last_times
    assert times is not None
    assert times.total_ms == voxels.total_ms and times.engine_ms >= voxels.engine_ms * 0.9 > 0
    stages = times.decode_ms + times.wait_ms + times.engine_ms + times.commit_ms
    assert 0 < stages <= times.total_ms + 1e-3
    assert times.receive_ms >= 0 == times.commit_ms


def test_voxelize_without_features_or_coords_gives_what_is_left(client: voxeld.Client) -> None:
    points = random_points(100)
    voxels = client.voxelize(points, (0.5, 0.5, 1), features=(), outputs="counts")
    assert voxels.coords is None and voxels.mean is None and voxels.features == ()
    assert voxels.counts.sum() == 100
    with pytest.raises(ValueError, match="coords"):
        voxels.centres()


def test_voxelize_batch_keeps_items_apart(client: voxeld.Client) -> None:
    a, b = random_points(2000, seed=1), random_points(700, seed=2)
    empty = np.zeros((0, 3), np.float32)
    clouds = [
        voxeld.Cloud.from_numpy(a, stamp_ns=11, frame_id="left"),
        empty,
        voxeld.Cloud.from_numpy(b, stamp_ns=22, frame_id="rïght"),
    ]
    voxels = client.voxelize(clouds, 0.5, outputs=("coords", "inverse"))
    assert [i.stamp_ns for i in voxels.items] == [11, 0, 22]
    assert [i.frame_id for i in voxels.items] == ["left", "", "rïght"]
    for index, points in ((0, a), (2, b)):
        item = voxels.items[index]
        expected = Voxels(points, points, 0.5, "minkowski")
        rows = voxels.coords[item.voxels]
        assert (rows[:, 0] == index).all()
        np.testing.assert_array_equal(rows[:, 1:], expected.coords)
        inverse = voxels.inverse[item.points] - item.voxels.start
        np.testing.assert_array_equal(inverse, expected.inverse)
    assert voxels.items[1].n_voxels == 0


def test_voxelize_no_points_gives_no_voxels(client: voxeld.Client) -> None:
    voxels = client.voxelize(np.zeros((0, 3)), 0.1, outputs=ALL_OUTPUTS[:3])
    assert len(voxels) == 0 and voxels.coords.shape == (0, 4) and voxels.inverse.shape == (0,)


def test_voxelize_pose_origin_and_sweeps_move_the_points(client: voxeld.Client) -> None:
    points = np.round(random_points(3000, seed=9) * 16).astype(np.float32) / 16 + 1 / 32
    quarter = voxeld.Pose((100, 0, 0), (0, 0, np.sqrt(0.5), np.sqrt(0.5)))
    turned = np.stack([-points[:, 1], points[:, 0], points[:, 2]], 1)
    voxels = client.voxelize(points, 0.25, pose=quarter, origin=(100, 0, 0))
    expected = Voxels(turned, turned, 0.25, "minkowski")
    np.testing.assert_array_equal(voxels.coords[:, 1:], expected.coords)
    np.testing.assert_allclose(voxels.origin, (100, 0, 0))

    matrix = np.array([[0, -1, 0, 100], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    again = client.voxelize(points, 0.25, pose=matrix, origin=(100, 0, 0))
    np.testing.assert_array_equal(again.coords, voxels.coords)

    lag = voxeld.Sweep(
        voxeld.Cloud.from_numpy(points.astype(np.float64)), voxeld.Pose((8, 0, 0)), 0.5
    )
    cloud = voxeld.Cloud.from_numpy(points, sweeps=[lag])
    voxels = client.voxelize(cloud, 0.25, features=("x", "dt"), reduce="max")
    both = np.vstack([points, points + np.float32([8, 0, 0])])
    expected = Voxels(both, both, 0.25, "minkowski")
    np.testing.assert_array_equal(voxels.coords[:, 1:], expected.coords)
    assert set(np.unique(voxels.max[:, 1])) == {np.float32(0), np.float32(0.5)}
    assert voxels.items[0].n_points == 6000


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2, 3.0, np.pi])
def test_pose_of_a_matrix_is_its_rotation(axis: int, angle: float) -> None:
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    m = np.eye(4)
    m[i, i] = m[j, j] = c
    m[j, i], m[i, j] = s, -s
    m[:3, 3] = 1, 2, 3
    pose = voxeld.Pose.from_matrix(m)
    expected = np.zeros(4)
    expected[axis], expected[3] = np.sin(angle / 2), np.cos(angle / 2)
    np.testing.assert_allclose(np.abs(np.dot(pose.rotation, expected)), 1, atol=1e-12)
    assert list(pose.translation) == [1, 2, 3]


@pytest.mark.parametrize(
    "wrong", [np.eye(3), 2 * np.eye(4), np.diag([1, 1, -1, 1]), np.nan * np.eye(4)]
)
def test_pose_of_no_rotation_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(voxeld.InvalidArgument):
        voxeld.Pose.from_matrix(wrong)


# Clouds ------------------------------------------------------------------------------------

PADDED = np.dtype(
    {
        "names": ["x", "y", "z", "ring", "normal"],
        "formats": ["<f8", "<f4", "<f4", "<u2", ("<f4", 3)],
        "offsets": [4, 16, 20, 1, 28],
        "itemsize": 48,
    }
)


def records(points: np.ndarray, dtype: np.dtype = PADDED) -> np.ndarray:
    out = np.zeros(len(points), dtype)
    for axis, name in enumerate("xyz"):
        out[name] = points[:, axis]
    out["ring"] = np.arange(len(points)) % 32
    return out


def layouts() -> dict[str, Callable[[np.ndarray], Any]]:
    return {
        "float64": lambda p: p.astype(np.float64),
        "fortran": np.asfortranarray,
        "strided": lambda p: np.repeat(p, 2, 0)[::2],
        "big-endian": lambda p: p.astype(">f4"),
        "list": lambda p: p.tolist(),
        "records": records,
        "big-endian records": lambda p: records(p, PADDED.newbyteorder(">")),
        "strided records": lambda p: np.repeat(records(p), 2)[::2],
        "read-only": lambda p: np.frombuffer(p.tobytes(), np.float32).reshape(-1, 3),
    }


@pytest.mark.parametrize("layout", layouts())
def test_cloud_of_any_layout_gives_the_same_voxels(client: voxeld.Client, layout: str) -> None:
    points = random_points(500, seed=12)
    given = layouts()[layout](points)
    voxels = client.voxelize(given, 0.5, features=("x", "y", "z"))
    expected = Voxels(points, points, 0.5, "minkowski")
    np.testing.assert_array_equal(voxels.coords[:, 1:], expected.coords)
    np.testing.assert_allclose(voxels.mean, expected.mean, rtol=1e-5, atol=1e-5)


def test_cloud_of_an_array_borrows_it() -> None:
    points = random_points(10)
    cloud = voxeld.Cloud.from_numpy(points)
    assert np.shares_memory(np.asarray(cloud.data), points)
    assert cloud.n_points == 10
    names = [f.name for f in voxeld.Cloud.from_numpy(np.zeros((1, 6), np.float32)).fields]
    assert names == ["x", "y", "z", "intensity", "c4", "c5"]


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3),
        np.zeros((4, 2)),
        np.zeros((2, 3, 3)),
        np.zeros((4, 3), bool),
        np.zeros((4, 3), complex),
        np.zeros((4, 3), object),
        np.zeros((1, 20000)),
        np.zeros((2, 2), PADDED),
    ],
)
def test_cloud_of_a_wrong_array_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(voxeld.InvalidArgument):
        voxeld.Cloud.from_numpy(wrong)


def pointcloud2(
    points: np.ndarray, n_rows: int, padding: int, **members: Any
) -> SimpleNamespace:
    """Makes a cloud like a lidar driver's: organised, x y z intensity in 18-byte records, rows
    padded with bytes that are no points."""
    dtype = np.dtype(
        {"names": ["x", "y", "z", "intensity"], "formats": ["<f4", "<f4", "<f4", "<u2"],
         "offsets": [0, 4, 8, 16], "itemsize": 18}
    )  # fmt: skip
    rows = np.zeros(len(points), dtype)
    for axis, name in enumerate("xyz"):
        rows[name] = points[:, axis]
    rows["intensity"] = np.arange(len(points))
    raw = rows.view(np.uint8).reshape(n_rows, -1)
    padded = np.pad(raw, ((0, 0), (0, padding)), constant_values=0x55)
    message = SimpleNamespace(
        header=SimpleNamespace(
            stamp=SimpleNamespace(sec=1700000000, nanosec=123456789), frame_id="lidar_top"
        ),
        height=n_rows,
        width=len(points) // n_rows,
        fields=[
            SimpleNamespace(name=n, offset=o, datatype=t, count=1)
            for n, o, t in (("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 16, 4))
        ],
        is_bigendian=False,
        point_step=18,
        row_step=padded.shape[1],
        data=padded.tobytes(),
        is_dense=True,
    )
    message.__dict__.update(members)
    return message


@pytest.mark.parametrize(("height", "padding"), [(1, 0), (16, 0), (16, 14)])
@pytest.mark.parametrize("kind", [bytes, bytearray, list, lambda b: np.frombuffer(b, np.uint8)])
def test_pointcloud2_goes_in_with_stamp_and_frame(
    client: voxeld.Client, height: int, padding: int, kind: Callable[[bytes], Any]
) -> None:
    points = random_points(1600, seed=3)
    message = pointcloud2(points, height, padding)
    message.data = kind(message.data)
    cloud = voxeld.Cloud.from_pointcloud2(message)
    assert cloud.n_points == 1600
    if padding == 0 and kind is not list:
        assert np.shares_memory(np.asarray(cloud.data), np.frombuffer(message.data, np.uint8))
    voxels = client.voxelize(cloud, 0.5, reduce="first")
    expected = Voxels(points, points, 0.5, "minkowski")
    np.testing.assert_array_equal(voxels.coords[:, 1:], expected.coords)
    assert voxels.features == ("x", "y", "z", "intensity")
    item = voxels.items[0]
    assert (item.stamp_ns, item.frame_id) == (1700000000123456789, "lidar_top")


def test_pointcloud2_last_row_may_lack_its_padding_and_row_step_be_stale() -> None:
    points = random_points(32)
    message = pointcloud2(points, 4, 6)
    message.data = message.data[:-6]
    whole = np.asarray(voxeld.Cloud.from_pointcloud2(pointcloud2(points, 1, 0)).data)
    cut = np.asarray(voxeld.Cloud.from_pointcloud2(message).data)
    np.testing.assert_array_equal(whole, cut)
    stale = voxeld.Cloud.from_pointcloud2(pointcloud2(points, 1, 0, row_step=0))
    assert stale.n_points == 32
    empty = pointcloud2(points, 4, 0, height=0, width=0, row_step=0, data=b"")
    assert voxeld.Cloud.from_pointcloud2(empty).n_points == 0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"is_bigendian": True}, "is_bigendian"),
        ({"row_step": 3}, "row_step"),
        ({"data": b"123"}, "data"),
        ({"point_step": 0}, "point_step"),
        ({"width": 1 << 30}, "row_step"),
        ({"height": 1 << 30}, "data"),
        ({"fields": [SimpleNamespace(name="x", offset=0, datatype=9, count=1)]}, "datatype"),
    ],
)
def test_pointcloud2_that_contradicts_itself_is_refused(change: dict, field: str) -> None:
    with pytest.raises(voxeld.InvalidArgument) as caught:
        voxeld.Cloud.from_pointcloud2(pointcloud2(random_points(64), 4, 2, **change))
    assert field in caught.value.field


def test_ros2_bridge_answers_a_message_with_its_voxels(
    client: voxeld.Client, bridge: ModuleType
) -> None:
    points = random_points(1600, seed=3)
    message = pointcloud2(points, 16, 14)
    voxels = bridge.voxelize_message(client, message, 0.5, (*LOW, *HIGH))
    reply = bridge.fill_message(SimpleNamespace(), SimpleNamespace, message.header, voxels)
    expected = Voxels(points, points, 0.5, "spconv", LOW, HIGH)
    assert reply.header is message.header
    assert (reply.height, reply.width) == (1, len(expected.coords))
    assert len(reply.data) == reply.row_step == reply.point_step * reply.width
    # A subscriber would read the message back like this.
    back = voxeld.Cloud.from_pointcloud2(reply)
    rows = np.frombuffer(back.data, bridge.RECORD)
    centres = np.asarray(LOW) + (expected.coords + 0.5) * 0.5
    np.testing.assert_allclose(np.stack([rows[a] for a in "xyz"], 1), centres, atol=1e-5)
    np.testing.assert_array_equal(rows["count"], expected.counts)


# Asking the daemon -------------------------------------------------------------------------


def test_admin_calls_answer(client: voxeld.Client) -> None:
    info = client.server_info()
    assert info.backend == "cpu" and "voxelize" in info.methods
    assert info.max_message_bytes > 0 and info.instance_id
    client.voxelize(random_points(10), 0.1)
    status = client.status()
    assert status.state == "serving" and status.uptime_s > 0
    assert next(m for m in status.methods if m.name == "voxelize").n_ok > 0
    result = client.self_test(100, 2000)
    assert result.n_stages > 0 and result.digest == client.self_test(50, 2000).digest
    assert client.set_log_level("info") == "info"


# Threads, memory --------------------------------------------------------------------------


def test_eight_threads_share_a_client(client: voxeld.Client) -> None:
    clouds = [random_points(2000 + 50 * i, seed=i) for i in range(8)]
    expected = [Voxels(c, c, 0.5, "minkowski") for c in clouds]

    def work(i: int) -> None:
        for _ in range(12):
            voxels = client.voxelize(clouds[i], 0.5)
            np.testing.assert_array_equal(voxels.coords[:, 1:], expected[i].coords)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_many_calls_leave_no_memory_behind(client: voxeld.Client) -> None:
    def resident_kib() -> int:
        line = next(
            x for x in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in x
        )
        return int(line.split()[1])

    points = random_points(50000)
    for _ in range(10):
        client.voxelize(points, 0.5)
    before = resident_kib()
    for _ in range(60):
        client.voxelize(points, 0.5)  # each about 0.6 MB there and 2 MB back
    assert resident_kib() - before < 30 * 1024


# The package -------------------------------------------------------------------------------


def test_generated_code_equals_the_schema(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "generate.py", tmp_path], check=True)
    made = sorted((tmp_path / "voxeld" / "v1").iterdir())
    there = sorted((ROOT / "voxeld" / "v1").glob("*_pb2.py*"))
    assert [p.name for p in made] == [p.name for p in there]
    for path, committed in zip(made, there, strict=True):
        assert path.read_text() == committed.read_text(), "run client/python/generate.py"


def test_version_is_the_projects() -> None:
    assert f"VERSION {voxeld.__version__} " in (SOURCE / "CMakeLists.txt").read_text()


def test_pip_installs_it_into_a_fresh_environment(daemon: Daemon, tmp_path: Path) -> None:
    # The package runs away from the tree: it must need neither proto/ nor git.
    package = shutil.copytree(ROOT, tmp_path / "package")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", package]
    subprocess.run(pip, check=True, env=environment, cwd=tmp_path)
    program = (
        "import numpy as np, sys, voxeld, importlib.metadata, importlib.resources\n"
        "assert importlib.metadata.version('voxeld') == voxeld.__version__\n"
        "assert (importlib.resources.files('voxeld') / 'py.typed').is_file()\n"
        "with voxeld.connect(sys.argv[1], timeout=30) as client:\n"
        "    print(len(client.voxelize(np.eye(3), 0.5)), voxeld.__file__)\n"
    )
    done = subprocess.run(
        [python, "-c", program, daemon.ipc],
        check=True, capture_output=True, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    n_voxels, where = done.stdout.split()
    assert n_voxels == "3" and str(tmp_path) in where
