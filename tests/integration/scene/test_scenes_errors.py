# SPDX-License-Identifier: Apache-2.0
"""Malformed requests on scenes: each names its field, and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness import OK, Daemon, common_pb2, scene_pb2, tensor_of
from scenes import Scenes, ball, box, points, spec, vec

INVALID = common_pb2.INVALID_ARGUMENT
RANGE = common_pb2.OUT_OF_RANGE
STATE = common_pb2.FAILED_PRECONDITION
NAN = float("nan")
XYZ = np.zeros((4, 3))
Operation = scene_pb2.SceneOperation


@pytest.fixture(scope="module")
def scenes(daemon: Daemon) -> Iterator[Scenes]:
    with Scenes(daemon) as client:
        client.call("scene_create", name="s", spec=spec(6, 0.1, 4))
        client.edit("s", ball((0, 0, 0), 1, material=3))
        yield client


@pytest.fixture(autouse=True)
def unchanged(scenes: Scenes) -> Iterator[None]:
    before = scenes.call("scene_get", name="s").scene
    yield
    assert scenes.call("scene_get", name="s").scene == before
    assert [s.name for s in scenes.call("scene_list").scenes] == ["s"]


def entry(name: str = "", rgb: int = 0) -> scene_pb2.SceneMaterial:
    return scene_pb2.SceneMaterial(name=name, rgb=rgb)


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("name", {"name": ""}),
        ("name", {"name": "A"}),
        ("name", {"name": "x" * 64}),
        ("spec", {"spec": None}),
        ("spec.voxel_size_m", {"spec": spec(size=0)}),
        ("spec.voxel_size_m", {"spec": spec(size=-1)}),
        ("spec.voxel_size_m", {"spec": spec(size=NAN)}),
        ("spec.voxel_size_m", {"spec": spec(size=float("inf"))}),
        ("spec.voxel_size_m", {"spec": spec(21, size=1e305)}),
        ("spec.depth", {"spec": spec(3)}),
        ("spec.depth", {"spec": spec(22)}),
        ("spec.material_bits", {"spec": spec(bits=5)}),
        ("spec.origin", {"spec": spec(origin=vec(NAN, 0, 0))}),
        ("spec.frame_id", {"spec": spec(frame_id="f" * 256)}),
        ("spec.palette", {"spec": spec(bits=4, palette=[entry()] * 17)}),
        ("spec.palette", {"spec": spec(bits=4, track_free=True, palette=[entry()] * 16)}),
        ("spec.palette[1].name", {"spec": spec(bits=4, palette=[entry("a"), entry("B")])}),
        (
            "spec.palette[2].name",
            {"spec": spec(bits=4, palette=[entry("a"), entry("b"), entry("a")])},
        ),
        ("spec.palette[0].rgb", {"spec": spec(bits=4, palette=[entry("a", 1 << 24)])}),
    ],
)
def test_create_refuses(scenes: Scenes, field: str, fields: dict[str, Any]) -> None:
    assert scenes.fails(
        "scene_create", INVALID, field, **{"name": "t", "spec": spec(), **fields}
    )


def capsule(a: Any, b: Any, radius: float) -> Operation:
    return Operation(capsule=scene_pb2.SceneCapsule(a=vec(*a), b=vec(*b), radius=radius))


def half_space(normal: Any, offset: float) -> Operation:
    return Operation(half_space=scene_pb2.SceneHalfSpace(normal=vec(*normal), offset=offset))


def heights(values: np.ndarray, cell: float = 0.1, **fields: Any) -> Operation:
    shape = scene_pb2.SceneHeightfield(heights=tensor_of(values), cell=cell, **fields)
    return Operation(heightfield=shape)


def copy(low: Any = (0, 0, 0), **fields: Any) -> Operation:
    message = scene_pb2.SceneCopy(**{"from": vec(0, 0, 0), **fields})
    return box(low, (1, 1, 1), "SCENE_COPY", copy=message)


UNIT_BOX = ((0, 0, 0), (1, 1, 1))


@pytest.mark.parametrize(
    ("code", "field", "operation"),
    [
        (INVALID, "", Operation()),
        (INVALID, "box.low", Operation(box=scene_pb2.SceneBox(high=vec(1, 1, 1)))),
        (INVALID, "box.high", Operation(box=scene_pb2.SceneBox(low=vec(1, 1, 1)))),
        (INVALID, "box.low", box((NAN, 0, 0), (1, 1, 1))),
        (INVALID, "box.high", box((0, 0, 0), (1, 0, 1))),
        (RANGE, "operations", box((4, 0, 0), (5, 1, 1))),
        (INVALID, "ball.centre", Operation(ball=scene_pb2.SceneBall(radius=1))),
        (INVALID, "ball.radius", ball((0, 0, 0), -1)),
        (INVALID, "ball.radius", ball((0, 0, 0), NAN)),
        (RANGE, "ball.radius", ball((0, 0, 0), 1e9)),
        (RANGE, "ball.centre", ball((1e9, 0, 0), 1)),
        (RANGE, "operations", ball((5, 0, 0), 1)),
        (INVALID, "ball.noise", Operation(
            ball=scene_pb2.SceneBall(centre=vec(0, 0, 0), noise=-1))),
        (RANGE, "ball.noise", Operation(
            ball=scene_pb2.SceneBall(centre=vec(0, 0, 0), radius=5e5, noise=5e5))),
        (INVALID, "ball.noise_cell_bits", Operation(
            ball=scene_pb2.SceneBall(centre=vec(0, 0, 0), noise_cell_bits=17))),
        (INVALID, "capsule.a", capsule((NAN, 0, 0), (0, 0, 0), 1)),
        (INVALID, "capsule.b", Operation(capsule=scene_pb2.SceneCapsule(a=vec(0, 0, 0)))),
        (INVALID, "capsule.radius", capsule((0, 0, 0), (0, 0, 0), -1)),
        (RANGE, "capsule.b", capsule((0, 0, 0), (0, 1e9, 0), 1)),
        (RANGE, "operations", capsule((0, 9, 0), (1, 9, 0), 1)),
        (INVALID, "half_space.normal", half_space((0, 0, 0), 1)),
        (INVALID, "half_space.normal", half_space((0, NAN, 0), 1)),
        (INVALID, "half_space.offset", half_space((0, 0, 1), NAN)),
        (RANGE, "operations", half_space((0, 0, 2), -8)),
        (INVALID, "points.points", Operation(points=scene_pb2.ScenePoints())),
        (INVALID, "points.points", points(np.zeros((4, 2)))),
        (INVALID, "points.points", points(np.zeros(3))),
        (INVALID, "points.points", points(np.zeros((4, 3), np.uint8))),
        (RANGE, "operations", points(np.full((4, 3), 99.0))),
        (RANGE, "operations", points(np.full((4, 3), NAN))),
        (INVALID, "points.materials", points(XYZ, materials=np.zeros(3, np.uint8))),
        (INVALID, "points.materials", points(XYZ, materials=np.zeros(4, np.int32))),
        (INVALID, "points.materials", points(XYZ, materials=np.full(4, 16, np.uint8))),
        (INVALID, "points.materials", points(
            XYZ, "SCENE_ERASE", materials=np.zeros(4, np.uint8))),
        (INVALID, "heightfield.heights", heights(np.zeros(4))),
        (INVALID, "heightfield.heights", heights(np.zeros((0, 4)))),
        (INVALID, "heightfield.heights", heights(np.zeros((2, 2), np.int32))),
        (INVALID, "heightfield.cell", heights(np.zeros((2, 2)), 0)),
        (INVALID, "heightfield.cell", heights(np.zeros((2, 2)), 0.15)),
        (INVALID, "heightfield.cell", heights(np.zeros((2, 2)), 0.05)),
        (INVALID, "heightfield.cell", heights(np.zeros((2, 2)), 1e8)),
        (INVALID, "heightfield.y", heights(np.zeros((2, 2)), y=NAN)),
        (INVALID, "heightfield.low_z", heights(np.zeros((2, 2)), low_z=NAN)),
        (RANGE, "heightfield.x", heights(np.zeros((2, 2)), x=1e9)),
        (RANGE, "operations", heights(np.zeros((2, 2)), x=5)),
        (RANGE, "operations", heights(np.full((2, 2), NAN), low_z=-9)),
        (INVALID, "action", box(*UNIT_BOX, 8)),
        (STATE, "action", box(*UNIT_BOX, "SCENE_SET_FREE")),
        (INVALID, "material", box(*UNIT_BOX, material=16)),
        (INVALID, "material", box(*UNIT_BOX, "SCENE_PAINT", material=16)),
        (INVALID, "from_material", box(*UNIT_BOX, "SCENE_REPLACE", from_material=16)),
        (INVALID, "threshold", box(*UNIT_BOX, "SCENE_ERODE", threshold=7)),
        (INVALID, "threshold", box(*UNIT_BOX, threshold=1)),
        (INVALID, "action", points(XYZ, "SCENE_DILATE")),
        (INVALID, "copy", box(*UNIT_BOX, "SCENE_COPY")),
        (INVALID, "copy", box(*UNIT_BOX, copy=scene_pb2.SceneCopy())),
        (INVALID, "copy.from", box(*UNIT_BOX, "SCENE_COPY", copy=scene_pb2.SceneCopy())),
        (INVALID, "copy.matrix", copy(matrix=[1, 0, 0, 0, 1, 0])),
        (INVALID, "copy.matrix", copy(matrix=[1, 0, 0, 1, 0, 0, 0, 0, 1])),
        (INVALID, "copy.matrix", copy(matrix=[2, 0, 0, 0, 1, 0, 0, 0, 1])),
        (INVALID, "box.low", copy(low=(0.05, 0, 0))),
        (INVALID, "action", ball((0, 0, 0), 1, "SCENE_COPY", copy=scene_pb2.SceneCopy())),
    ],
)  # fmt: skip
def test_edit_refuses(scenes: Scenes, code: int, field: str, operation: Operation) -> None:
    path = "operations" if field == "operations" else f"operations[0].{field}".rstrip(".")
    assert scenes.fails("scene_edit", code, path, name="s", operations=[operation])
    if path == "operations":
        return
    # As the second of two operations it keeps the first one from being applied.
    path = path.replace("[0]", "[1]")
    first = box(*UNIT_BOX, "SCENE_ERASE")
    assert scenes.fails("scene_edit", code, path, name="s", operations=[first, operation])


def test_edit_of_no_points_is_a_change_of_nothing(daemon: Daemon) -> None:
    with Scenes(daemon) as client:
        client.call("scene_create", name="empty", spec=spec(6))
        reply = client.edit("empty", points(np.zeros((0, 3))), points(np.zeros((0, 3), np.int32)))
        assert (reply.change.version, reply.change.n_added, reply.n_outside) == (2, 0, 0)
        client.call("scene_drop", name="empty")


def test_edit_refuses_no_operation_and_too_many(scenes: Scenes) -> None:
    for n in (0, 4097):
        scenes.fails(
            "scene_edit", INVALID, "operations", name="s", operations=[box(*UNIT_BOX)] * n
        )
    scenes.fails("scene_edit", INVALID, "name", name="S", operations=[box(*UNIT_BOX)])
    scenes.fails(
        "scene_edit", common_pb2.NOT_FOUND, "name", name="t", operations=[box(*UNIT_BOX)]
    )
    scenes.fails(
        "scene_edit",
        common_pb2.ABORTED,
        "if_version",
        name="s",
        operations=[box(*UNIT_BOX)],
        if_version=99,
    )


def tensor(dtype: int, shape: Any, data: bytes = b"", values: Any = ()) -> common_pb2.Tensor:
    return common_pb2.Tensor(dtype=dtype, shape=shape, data=data, values=values)


@pytest.mark.parametrize(
    "bad",
    [
        tensor(common_pb2.FLOAT32, [2, 3], bytes(23)),
        tensor(common_pb2.FLOAT32, [-1, 3]),
        tensor(common_pb2.FLOAT32, [1 << 40, 3]),
        tensor(common_pb2.FLOAT32, [1, 3], bytes(12), [1, 2, 3]),
        tensor(common_pb2.FLOAT32, [1, 3], b"", [1, 2]),
        tensor(common_pb2.FLOAT32, [0, 3], b"1234"),
        tensor(0, [1, 3], bytes(12)),
        tensor(99, [1, 3], bytes(12)),
        tensor(common_pb2.FLOAT16, [1, 3], bytes(6)),
        tensor(common_pb2.FLOAT32, [], bytes(4)),
        tensor(common_pb2.FLOAT32, [1, 1, 3], bytes(12)),
    ],
)
def test_arrays_that_are_not_what_they_say_are_refused(
    scenes: Scenes, bad: common_pb2.Tensor
) -> None:
    good = tensor_of(XYZ)
    calls = [
        ("scene_values", "points", {"points": bad}),
        ("scene_nearest", "points", {"points": bad, "radius_m": 1}),
        ("scene_cast_rays", "origins", {"origins": bad, "directions": good}),
        ("scene_cast_rays", "directions", {"origins": good, "directions": bad}),
        ("scene_overlap", "boxes", {"boxes": bad}),
        ("scene_overlap", "balls", {"balls": bad}),
    ]
    for method, field, fields in calls:
        assert scenes.fails(method, INVALID, field, name="s", **fields)


@pytest.mark.parametrize(
    ("method", "code", "field", "fields"),
    [
        ("scene_nearest", INVALID, "radius_m", {"points": tensor_of(XYZ)}),
        ("scene_nearest", INVALID, "radius_m", {"points": tensor_of(XYZ), "radius_m": NAN}),
        ("scene_nearest", INVALID, "radius_m", {"points": tensor_of(XYZ), "radius_m": 1e9}),
        ("scene_nearest", INVALID, "points", {
            "points": tensor_of(XYZ.astype(np.int32)), "radius_m": 1}),
        ("scene_cast_rays", INVALID, "origins", {
            "origins": tensor_of(XYZ[:2]), "directions": tensor_of(XYZ)}),
        ("scene_cast_rays", INVALID, "max_range_m", {
            "origins": tensor_of(XYZ), "directions": tensor_of(XYZ), "max_range_m": -1}),
        ("scene_overlap", INVALID, "boxes", {}),
        ("scene_overlap", INVALID, "boxes", {
            "boxes": tensor_of(np.zeros((1, 6))), "balls": tensor_of(np.zeros((1, 4)))}),
        ("scene_overlap", INVALID, "boxes", {"boxes": tensor_of(np.full((1, 6), NAN))}),
        ("scene_overlap", INVALID, "balls", {"balls": tensor_of(np.full((1, 4), -1.0))}),
        ("scene_overlap", RANGE, "balls", {"balls": tensor_of(np.array([[1e9, 0, 0, 1]]))}),
        ("scene_overlap", INVALID, "balls", {
            "balls": tensor_of(np.array([[0.0, 0, 0, 1e5]])), "counts": True}),
        ("scene_export", INVALID, "format", {"format": 3}),
        ("scene_export", INVALID, "level", {"level": 7}),
        ("scene_export", INVALID, "level", {"level": 1 << 31}),
        ("scene_export", INVALID, "box", {"format": "SCENE_DENSE"}),
        ("scene_export", INVALID, "box.low", {"box": scene_pb2.SceneBox()}),
        ("scene_export", INVALID, "box.high", {
            "box": scene_pb2.SceneBox(low=vec(0, 0, 0), high=vec(0, NAN, 0))}),
        ("scene_export", INVALID, "format", {
            "format": "SCENE_DENSE", "limit": 3, "box": box(*UNIT_BOX).box}),
        ("scene_export", STATE, "free", {"free": True}),
        ("scene_export", common_pb2.RESOURCE_EXHAUSTED, "box", {
            "format": "SCENE_DENSE", "in_voxels": True, "box": box((0, 0, 0), (513,) * 3).box}),
    ],
)  # fmt: skip
def test_query_refuses(
    scenes: Scenes, method: str, code: int, field: str, fields: dict[str, Any]
) -> None:
    assert scenes.fails(method, code, field, name="s", **fields)


def test_queries_of_no_scene_say_so(scenes: Scenes) -> None:
    at = tensor_of(XYZ)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("scene_values", {"points": at}),
        ("scene_nearest", {"points": at, "radius_m": 1}),
        ("scene_cast_rays", {"origins": at, "directions": at}),
        ("scene_overlap", {"boxes": tensor_of(np.zeros((1, 6)))}),
        ("scene_export", {}),
        ("scene_get", {}),
        ("scene_drop", {}),
    ]
    for method, fields in calls:
        assert scenes.fails(method, common_pb2.NOT_FOUND, "name", name="none", **fields)
        assert scenes.fails(method, INVALID, "name", name="No", **fields)


def test_changes_need_a_sequence_over_nng(scenes: Scenes) -> None:
    for method in ("scene_create", "scene_drop", "scene_edit", "scene_integrate"):
        header = scenes.rpc.call(method).header
        assert header.code == INVALID and "client_id" in header.message + header.field
    assert scenes.rpc.call("scene_list").header.code == OK
