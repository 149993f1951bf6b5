# SPDX-License-Identifier: Apache-2.0
"""Scans into scenes: which voxels are hit, which ones rays free, and which materials points take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import (
    SOURCE,
    Daemon,
    array_of,
    cloud_of,
    common_pb2,
    http_call,
    scene_pb2,
    tensor_of,
)
from scenes import FREE, OCCUPIED, Scenes, ball, box, spec, vec


def pose(x: float, y: float, z: float, yaw: float = 0) -> common_pb2.Pose:
    rotation = common_pb2.Quaternion(z=np.sin(yaw / 2), w=np.cos(yaw / 2))
    return common_pb2.Pose(translation=vec(x, y, z), rotation=rotation)


def voxels_of(points: np.ndarray, sensor: Any, origin: Any, size: float) -> np.ndarray:
    """Does as the schema says: float32 voxels from the one that the sensor is in; no rotation."""
    sensor, origin = np.asarray(sensor, np.float64), np.asarray(origin, np.float64)
    base = np.floor((sensor - origin) / size)
    offset = (sensor - (origin + base * size)) / size
    local = (points.astype(np.float64) * (1 / size) + offset).astype(np.float32)
    return (np.floor(local) + base).astype(np.int64)


def unique(voxels: np.ndarray) -> np.ndarray:
    return np.unique(voxels, axis=0)


def cells(scenes: Scenes, name: str, **fields: Any) -> np.ndarray:
    got = array_of(scenes.call("scene_export", name=name, **fields).cells)
    return got[np.lexsort(got.T[::-1])]


def room(rng: np.random.Generator, sensor: Any, n: int = 20000) -> np.ndarray:
    """Returns what a sensor sees of the walls of the room [-4, 4] x [-3, 3] x [-1, 2], in its
    frame."""
    directions = rng.normal(size=(n, 3))
    low, high = np.array([-4, -3, -1.0]), np.array([4, 3, 2.0])
    sensor = np.asarray(sensor)
    with np.errstate(divide="ignore"):
        t = np.where(directions > 0, (high - sensor) / directions, (low - sensor) / directions)
    return (directions * t.min(1, keepdims=True)).astype(np.float32)


def states_at(scenes: Scenes, name: str, at: np.ndarray) -> np.ndarray:
    return array_of(scenes.call("scene_values", name=name, points=tensor_of(at)).states)


def test_room_is_filled_where_rays_end_and_free_where_they_went(scenes: Scenes) -> None:
    sensor = np.array([0.31, -0.52, 0.4])
    scan = room(np.random.default_rng(0), sensor)
    scan[7] = np.nan
    scan[8] = 1e6
    scenes.call("scene_create", name="s", spec=spec(8, 0.1, track_free=True))
    origin = np.full(3, -12.8)
    cloud = cloud_of(scan, T_map_sensor=pose(*sensor), stamp_ns=77, frame_id="lidar")
    reply = scenes.call(
        "scene_integrate", name="s", cloud=cloud, carve=scene_pb2.SceneCarve(max_range_m=50)
    )
    assert (reply.stamp_ns, reply.frame_id) == (77, "lidar")
    assert (reply.n_points, reply.n_used) == (20000, 19998)
    assert (reply.n_non_finite, reply.n_outside, reply.n_beyond) == (1, 0, 1)
    hits = unique(voxels_of(np.delete(scan, [7, 8], 0), sensor, origin, 0.1))
    np.testing.assert_array_equal(cells(scenes, "s"), hits)
    assert reply.n_hit_voxels == reply.change.n_added == len(hits)
    free = cells(scenes, "s", free=True)
    assert reply.n_passed_voxels == reply.change.n_freed == len(free) > 10000
    # Along the rays of voxels' first points, except near borders, voxels are free or were hit.
    # Behind the walls voxels are unknown, except along the ray that ended at 50 m.
    good = np.delete(scan, [7, 8], 0)
    first = np.unique(voxels_of(good, sensor, origin, 0.1), axis=0, return_index=True)[1]
    good = good[np.sort(first)].astype(np.float64)
    along = np.linspace(0, 0.98, 60)[None, :, None] * good[:, None, :] + sensor
    inner = np.abs((along / 0.1) % 1 - 0.5).max(-1) < 0.49
    seen = states_at(scenes, "s", along[inner])
    assert set(np.unique(seen)) == {OCCUPIED, FREE}
    towards = good.sum(1) / np.sqrt(3) / np.linalg.norm(good, axis=1)
    behind = states_at(scenes, "s", good[towards < 0.95] * 1.2 + sensor)
    assert not (behind == FREE).any()
    for name in ("decode_ms", "carve_ms", "edit_ms"):
        assert 0 < getattr(reply, name) <= reply.engine_ms
    again = scenes.call(
        "scene_integrate", name="s", cloud=cloud, carve=scene_pb2.SceneCarve(max_range_m=50)
    )
    assert again.change.version == 3
    assert again.change.n_added == again.change.n_freed == again.change.n_new_nodes == 0


@pytest.mark.parametrize("tracks_free", [False, True])
@pytest.mark.parametrize("erase", [False, True])
def test_object_that_moved_is_gone_from_where_it_was(
    scenes: Scenes, tracks_free: bool, erase: bool
) -> None:
    made = spec(8, 0.1, track_free=tracks_free, fusion="SCENE_FUSION_LAST")
    scenes.call("scene_create", name="s", spec=made)
    scan = room(np.random.default_rng(1), (0, 0, 0), 60000)
    carve = scene_pb2.SceneCarve(erase=erase)
    scenes.edit("s", ball((2, 0, 0), 0.6))
    before = scenes.call("scene_get", name="s").scene.n_occupied
    reply = scenes.call("scene_integrate", name="s", cloud=cloud_of(scan), carve=carve)
    hits = unique(voxels_of(scan, (0, 0, 0), np.full(3, -12.8), 0.1))
    left = scenes.call("scene_get", name="s").scene
    assert reply.change.n_removed > 0.9 * before > 0
    assert left.n_occupied == before - reply.change.n_removed + reply.change.n_added
    assert left.n_occupied - len(hits) < 0.1 * before
    assert (left.n_free > 0) == (tracks_free and not erase)
    assert reply.change.n_freed == left.n_free
    # Without carving all voxels stay.
    scenes.edit("s", ball((2, 0, 0), 0.6))
    kept = scenes.call("scene_integrate", name="s", cloud=cloud_of(scan))
    assert kept.change.n_removed == kept.n_passed_voxels == 0


def test_range_ends_rays_and_hits(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(10, 0.1, track_free=True))
    scan = np.array([[3, 0, 0], [9, 0, 0]], np.float32)
    carve = scene_pb2.SceneCarve(max_range_m=5)
    cloud = cloud_of(scan, T_map_sensor=pose(0.05, 0.05, 0.05))
    reply = scenes.call("scene_integrate", name="s", cloud=cloud, carve=carve)
    assert (reply.n_used, reply.n_beyond) == (1, 1)
    x = np.arange(-5, 105) * 0.1 + 0.05
    states = states_at(scenes, "s", np.column_stack([x, np.full((110, 2), 0.05)]))
    assert (states[:5] == 1).all() and (states[5:35] == FREE).all()
    # The farther point's ray goes on behind the hit.
    assert states[35] == OCCUPIED and (states[36:55] == FREE).all()
    assert (states[57:] == 1).all()


def test_real_scan_has_the_voxels_of_its_points(scenes: Scenes) -> None:
    scan = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy")[:, :3].astype(np.float32)
    scan -= np.float32([1.43, 0, 2.18])  # the vehicle's frame to its highest lidar's
    size = 0.1
    scenes.call("scene_create", name="s", spec=spec(12, size, track_free=True))
    origin = np.full(3, -size * 2048)
    sensor = np.array([10.0, 20.0, 1.5])
    reply = scenes.call(
        "scene_integrate",
        name="s",
        cloud=cloud_of(scan, T_map_sensor=pose(*sensor)),
        carve=scene_pb2.SceneCarve(max_range_m=60),
    )
    finite = scan[np.isfinite(scan).all(1)]
    # The range is a bound of the positions as they are cast.
    base = np.floor((sensor - origin) / size)
    offset = (sensor - (origin + base * size)) / size
    local = (finite.astype(np.float64) * (1 / size) + offset).astype(np.float32)
    near = np.linalg.norm(local.astype(np.float64) - offset, axis=1) <= 60 / size
    hits = unique(voxels_of(finite[near], sensor, origin, size))
    assert reply.n_points == len(scan) == reply.n_used + reply.n_non_finite + reply.n_beyond
    assert reply.n_used == near.sum() and reply.n_hit_voxels == len(hits)
    np.testing.assert_array_equal(cells(scenes, "s"), hits)
    # A ray towards a point hits something no farther than the point, within a voxel.
    some = finite[near][:: max(1, near.sum() // 3000)].astype(np.float64)
    cast = scenes.call(
        "scene_cast_rays", name="s", origins=tensor_of(sensor[None]), directions=tensor_of(some)
    )
    far = np.linalg.norm(some, axis=1)
    distances = array_of(cast.distances)
    assert cast.n_hits == len(some) and (distances <= far + 0.2).all()
    assert np.median(np.abs(distances - far)) < 0.3


def test_sweeps_cast_from_their_own_origins(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(9, 0.1, track_free=True))
    own = np.array([[4.0, 0, 0]], np.float32)
    other = np.array([[0, 4.0, 0]], np.float32)
    sweep = common_pb2.Sweep(data=other.tobytes(), T_cloud_sweep=pose(0, -6, 0), dt_s=0.1)
    cloud = cloud_of(own, T_map_sensor=pose(0.05, 0.05, 0.05), sweeps=[sweep])
    reply = scenes.call("scene_integrate", name="s", cloud=cloud, carve=scene_pb2.SceneCarve())
    assert reply.n_used == reply.n_hit_voxels == 2
    at = np.array([[4.05, 0, 0], [0, -1.95, 0], [2, 0, 0], [0, -4, 0], [0, -1, 0]]) + 0.001
    assert list(states_at(scenes, "s", at)) == [OCCUPIED, OCCUPIED, FREE, FREE, 1]


def test_point_that_a_sweep_hits_stays_though_another_passes(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(9, 0.1, track_free=True))
    sweep = common_pb2.Sweep(data=np.array([[2.0, 0, 0]], "<f4").tobytes())
    cloud = cloud_of(
        np.array([[5.0, 0, 0]]), T_map_sensor=pose(0.05, 0.05, 0.05), sweeps=[sweep]
    )
    reply = scenes.call("scene_integrate", name="s", cloud=cloud, carve=scene_pb2.SceneCarve())
    assert reply.change.n_added == 2 and reply.change.n_removed == 0
    at = np.array([[2.05, 0.05, 0.05], [5.05, 0.05, 0.05], [3, 0.05, 0.05]])
    assert list(states_at(scenes, "s", at)) == [OCCUPIED, OCCUPIED, FREE]


# --- materials ----------------------------------------------------------------------------


def palette(colours: np.ndarray) -> list[scene_pb2.SceneMaterial]:
    packed = colours.astype(np.int64) @ [65536, 256, 1]
    return [scene_pb2.SceneMaterial(rgb=int(c)) for c in packed]


def column(n: int) -> np.ndarray:
    """Makes n points, each in a voxel of its own."""
    return np.column_stack([np.arange(n) % 100, np.arange(n) // 100, np.zeros(n)]) * 0.1 + 0.05


def materials_of(scenes: Scenes, points: np.ndarray, cloud: Any, **rule: Any) -> np.ndarray:
    message = scene_pb2.SceneMaterialRule(**rule)
    reply = scenes.call("scene_integrate", name="s", cloud=cloud, rule=message)
    assert reply.n_hit_voxels == len(points)
    values = scenes.call("scene_values", name="s", points=tensor_of(points))
    assert (array_of(values.states) == OCCUPIED).all()
    return array_of(values.materials)


def lab_of(colours: np.ndarray) -> np.ndarray:
    """Computes CIE 1976, D65, from the definition."""
    c = colours / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    matrix = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    t = linear @ matrix.T / [0.95047, 1, 1.08883]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1
    )


@pytest.mark.parametrize("layout", ["rgb", "rgba", "floats", "bytes"])
def test_colours_take_the_nearest_entry_in_cielab(scenes: Scenes, layout: str) -> None:
    rng = np.random.default_rng(3)
    entries = rng.integers(0, 256, (200, 3))
    entries[150] = entries[20]
    scenes.call("scene_create", name="s", spec=spec(9, 0.1, 8, palette=palette(entries)))
    points = column(3000)
    colours = rng.integers(0, 256, (3000, 3))
    distances = np.linalg.norm(lab_of(colours)[:, None] - lab_of(entries)[None], axis=2)
    record: list[Any] = [(n, "<f4") for n in "xyz"]
    if layout in ("rgb", "rgba"):
        packed = (colours @ [65536, 256, 1]).astype("<u4")
        packed |= np.uint32(0xFF000000 if layout == "rgba" else 0)
        record += [(layout, "<f4")]
        columns = [packed.view("<f4")]
    elif layout == "floats":
        record += [(n, "<f4") for n in ("red", "green", "blue")]
        columns = list(colours.T)
    else:
        record += [(n, "u1") for n in "rgb"]
        columns = list(colours.T)
    rows = np.zeros(3000, np.dtype(record))
    names = rows.dtype.names
    assert names is not None
    for name, values in zip(names, [*points.T, *columns], strict=True):
        rows[name] = values
    kinds = {"<f4": common_pb2.FLOAT32, "u1": common_pb2.UINT8}
    fields = [
        common_pb2.Field(name=n, offset=rows.dtype.fields[n][1], dtype=kinds[t])  # type: ignore[index]
        for n, t in record
    ]
    cloud = common_pb2.Cloud(fields=fields, point_step=rows.itemsize, data=rows.tobytes())
    got = materials_of(scenes, points, cloud, kind="COLOUR")
    best = distances.min(1)
    chosen = distances[np.arange(3000), got]
    np.testing.assert_allclose(chosen, best, atol=1e-9)
    assert not (got == 150).any() and (got == distances.argmin(1)).mean() > 0.999


def test_labels_ramps_and_heights_choose_materials(scenes: Scenes) -> None:
    entries = np.arange(30).reshape(10, 3)
    scenes.call("scene_create", name="s", spec=spec(9, 0.1, 4, palette=palette(entries)))
    points = column(1000)
    values = np.random.default_rng(4).uniform(-3, 20, 1000).astype(np.float32)
    values[0] = np.nan
    cloud = cloud_of(np.column_stack([points, values]), ["x", "y", "z", "v"])
    labels = materials_of(scenes, points, cloud, kind="LABEL", field="v", material=9)
    rounded = np.rint(values.astype(np.float64))
    is_label = (rounded >= 0) & (rounded < 16)
    np.testing.assert_array_equal(labels, np.where(is_label, rounded, 9))
    ramp = materials_of(
        scenes, points, cloud, kind="RAMP", field="v", low=2, high=12, material=3
    )
    part = np.floor((values.astype(np.float64) - 2) / 10 * 10).clip(0, 9)
    np.testing.assert_array_equal(ramp, np.where(np.isnan(values), 3, part))
    constant = materials_of(scenes, points, cloud, material=5)
    assert (constant == 5).all()
    tall = np.column_stack([np.zeros((100, 2)), np.arange(100) * 0.1]) + 0.05
    heights = materials_of(scenes, tall, cloud_of(tall), kind="HEIGHT", low=0, high=10)
    np.testing.assert_array_equal(heights, np.arange(100) // 10)
    # Of equal voxels the last point's material counts.
    twice = np.zeros((2, 4), np.float32)
    twice[:, 3] = [4, 7]
    both = cloud_of(twice, ["x", "y", "z", "v"])
    assert materials_of(scenes, twice[:1, :3], both, kind="LABEL", field="v")[0] == 7


FILE = {"Content-Type": "application/octet-stream"}
INVALID = common_pb2.INVALID_ARGUMENT
XYZ = np.zeros((2, 3), np.float32)
RULE = scene_pb2.SceneMaterialRule


@pytest.mark.parametrize(
    ("code", "field", "change"),
    [
        (INVALID, "name", {"name": "-"}),
        (common_pb2.NOT_FOUND, "name", {"name": "none"}),
        (INVALID, "cloud", {"cloud": None}),
        (INVALID, "cloud.fields", {"cloud": cloud_of(XYZ, "xyw")}),
        (INVALID, "cloud.point_step", {"cloud": common_pb2.Cloud(data=b"abc")}),
        (
            INVALID,
            "cloud.data",
            {
                "cloud": common_pb2.Cloud(
                    fields=cloud_of(XYZ).fields, point_step=12, data=b"12345"
                )
            },
        ),
        (
            INVALID,
            "cloud.sweeps[0].dt_s",
            {"cloud": cloud_of(XYZ, sweeps=[common_pb2.Sweep(dt_s=np.inf)])},
        ),
        (INVALID, "cloud.sweeps", {"cloud": cloud_of(XYZ, sweeps=[common_pb2.Sweep()] * 2048)}),
        (
            INVALID,
            "cloud.T_map_sensor.translation",
            {
                "cloud": cloud_of(
                    XYZ, T_map_sensor=common_pb2.Pose(translation=vec(np.nan, 0, 0))
                )
            },
        ),
        (
            common_pb2.OUT_OF_RANGE,
            "cloud.T_map_sensor.translation",
            {"cloud": cloud_of(XYZ, T_map_sensor=common_pb2.Pose(translation=vec(1e15, 0, 0)))},
        ),
        (INVALID, "carve.max_range_m", {"carve": scene_pb2.SceneCarve(max_range_m=-1)}),
        (INVALID, "carve.max_range_m", {"carve": scene_pb2.SceneCarve(max_range_m=np.inf)}),
        (INVALID, "rule.material", {"rule": RULE(material=15)}),
        (INVALID, "rule.kind", {"rule": RULE(kind=9)}),
        (INVALID, "rule.kind", {"rule": RULE(kind="COLOUR")}),
        (
            INVALID,
            "rule.kind",
            {
                "rule": RULE(kind="COLOUR"),
                "cloud": cloud_of(np.zeros((1, 5)), ["x", "y", "z", "r", "g"]),
            },
        ),
        (INVALID, "rule.field", {"rule": RULE(kind="LABEL")}),
        (INVALID, "rule.field", {"rule": RULE(kind="RAMP", high=1, field="q")}),
        (INVALID, "rule.high", {"rule": RULE(kind="RAMP", low=1, high=1)}),
        (common_pb2.FAILED_PRECONDITION, "rule.kind", {"rule": RULE(kind="HEIGHT", high=1)}),
        (common_pb2.ABORTED, "if_version", {"if_version": 7}),
    ],
)
def test_malformed_scan_is_refused_and_changes_nothing(
    scenes: Scenes, code: int, field: str, change: dict[str, Any]
) -> None:
    scenes.call("scene_create", name="s", spec=spec(6, 0.1, 4, track_free=True))
    fields = {"name": "s", "cloud": cloud_of(XYZ), **change}
    assert scenes.fails("scene_integrate", code, field, **fields)
    info = scenes.call("scene_get", name="s").scene
    assert (info.version, info.n_occupied) == (1, 0)


def test_empty_and_distant_scans_are_changes_of_nothing(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(6))
    empty = scenes.call("scene_integrate", name="s", cloud=cloud_of(np.zeros((0, 3))))
    assert (empty.change.version, empty.n_points) == (2, 0)
    far = cloud_of(XYZ, T_map_sensor=pose(1000, 0, 0))
    reply = scenes.call(
        "scene_integrate", name="s", cloud=far, carve=scene_pb2.SceneCarve(max_range_m=3)
    )
    assert (reply.n_outside, reply.n_used, reply.change.n_added) == (2, 0, 0)
    # The points lie beyond the far side: their rays carve the scene.
    scenes.edit("s", box((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)))
    through = cloud_of(np.array([[100, 0.01, 0.01]]), T_map_sensor=pose(-50, 0.01, 0.01))
    reply = scenes.call(
        "scene_integrate", name="s", cloud=through, carve=scene_pb2.SceneCarve()
    )
    assert reply.n_outside == 1 and reply.change.n_removed == 10


def test_scan_file_as_the_body_is_the_same_scan(daemon: Daemon, scenes: Scenes) -> None:
    scan = room(np.random.default_rng(6), (1, 0.5, 0), 3000)
    kitti = np.column_stack([scan, np.linspace(0, 1, 3000)]).astype("<f4")
    entries = [scene_pb2.SceneMaterial(rgb=i) for i in range(10)]
    for name in ("file", "message"):
        scenes.call(
            "scene_create", name=name, spec=spec(8, 0.1, 4, track_free=True, palette=entries)
        )
    query = (
        "name=file&format=kitti&pose=1,0.5,0,0,0,0,1&max_range=40&rule=ramp&field=intensity"
        "&low=0&high=1&material=3&if_version=1&frame_id=lidar&stamp_ns=5"
    )
    reply = http_call(daemon, "POST", f"/v1/scene_integrate?{query}", kitti.tobytes(), FILE)
    assert reply.status == 200, reply.body
    assert (reply.json()["frameId"], reply.json()["stampNs"]) == ("lidar", "5")
    scenes.call(
        "scene_integrate",
        name="message",
        cloud=cloud_of(kitti, ["x", "y", "z", "intensity"], T_map_sensor=pose(1, 0.5, 0)),
        carve=scene_pb2.SceneCarve(max_range_m=40),
        rule=scene_pb2.SceneMaterialRule(kind="RAMP", high=1),
    )
    file, message = (scenes.call("scene_get", name=n).scene for n in ("file", "message"))
    assert file.digest == message.digest and file.n_free > 0
    for bad in ("pose=1,2", "carve=1", "erase=x", "rule=x", "material=-1", "low=x", "what=1"):
        body = kitti.tobytes()
        reply = http_call(
            daemon, "POST", f"/v1/scene_integrate?name=file&format=kitti&{bad}", body, FILE
        )
        assert reply.status == 400 and reply.json()["field"] == bad.split("=")[0], reply.body
