# SPDX-License-Identifier: Apache-2.0
"""The arguments and results of calls on scenes."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import scene_pb2

from .. import wire
from ..errors import InvalidArgument
from ..exchange import (
    Reply,
    Vector,
    choice_of,
    need,
    numbers_of,
    places_of,
    tensor_of,
)
from ..generated.scene_records import (
    PLAIN_SHAPES,
    SCENE_ACTIONS,
    SCENE_PINS,
    Ball,
    Box,
    Capsule,
    HalfSpace,
)
from ..reply import bad
from ..shown import shown

OPERATIONS = scene_pb2.SceneEditRequest.OPERATIONS_FIELD_NUMBER
SHAPE_POINTS = scene_pb2.SceneOperation.POINTS_FIELD_NUMBER
SHAPE_HEIGHTFIELD = scene_pb2.SceneOperation.HEIGHTFIELD_FIELD_NUMBER


class VoxelState(enum.IntFlag):
    """States of a voxel, or of several. UNKNOWN is empty where free space is not tracked."""

    UNKNOWN = 1
    OCCUPIED = 2
    FREE = 4


# What goes in ----------------------------------------------------------------------------


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class PointList:
    """A list of voxels: n x 3 integers are voxel indices, floating-point numbers metres.
    materials: n, instead of the operation's; of equal voxels the last one's counts."""

    points: npt.ArrayLike
    materials: npt.ArrayLike | None = None


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Heightfield:
    """Columns that reach from low_z up to heights (n_x x n_y, NaN: no column there) above square
    cells, the first of which has its low corner at (x, y). cell: a whole number of voxels."""

    heights: npt.ArrayLike
    x: float
    y: float
    cell: float
    low_z: float


Shape = Box | Ball | Capsule | HalfSpace | PointList | Heightfield


@dataclasses.dataclass(frozen=True)
class Copy:
    """What the action "copy" puts into a Box: voxel p takes what stands at
    source + matrix (p - low), low being the box's low voxel.

    source  a position in the low voxel's source
    matrix  3 x 3, one 1 or -1 a row and column: quarter turns and mirrors. None: no turn
    empty   copies emptiness (and what is free) as well
    """

    source: Vector
    matrix: npt.ArrayLike | None = None
    empty: bool = False


@dataclasses.dataclass(frozen=True)
class Operation:
    """One step of an edit.

    action         "fill" (occupied, of material), "erase", "set_free", "paint" (what is
                   occupied takes material), "replace" (of from_material: takes material),
                   "erode" (fewer than threshold occupied face neighbours: erased), "dilate"
                   (at least threshold of them: occupied), "copy" (see Copy) or "keep" (as they
                   are; with pin)
    threshold      1 to 6; 0: 6 of erode, 1 of dilate
    pin            "pinned" (scans and decays leave all voxels of the shape as they are),
                   "unpinned", or "" (unchanged); with "fill", "erase", "set_free" and "keep", in
                   scenes that fuse by log-odds
    """

    shape: Shape
    action: str = "fill"
    material: int = 0
    from_material: int = 0
    threshold: int = 0
    copy: Copy | None = None
    pin: str = ""


# What comes out --------------------------------------------------------------------------


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Dense:
    """states: uint8 n_x x n_y x n_z, sets of states. materials: uint16, None in scenes
    without. low_cell: cell of states[0, 0, 0]; origin, cell_size as of Cells."""

    states: npt.NDArray[np.uint8]
    materials: npt.NDArray[np.uint16] | None
    low_cell: tuple[int, int, int]
    origin: tuple[float, float, float]
    cell_size: float
    frame_id: str
    version: int
    generation: int


def dense_of(reply: Reply) -> Dense:
    shape = reply.extents("states", 3)
    message = reply.message
    if len(message.low_cell) != 3:
        raise bad("low_cell", "not three numbers")
    seen = need(message, "seen")
    has_materials = message.HasField("materials")
    return Dense(
        states=reply.array("states", "|u1", *shape),
        materials=reply.array("materials", "<u2", *shape) if has_materials else None,
        low_cell=tuple(message.low_cell),
        **reply.place(),
        version=seen.version,
        generation=seen.generation,
    )


# To the wire -----------------------------------------------------------------------------


def message_of(kind: Any, field: str, /, **members: Any) -> Any:
    try:
        return kind(**members)
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), field) from None


def shape_parts(shape: PointList | Heightfield, field: str) -> list[wire.Part]:
    """Shapes with arrays, which are spliced in."""
    if isinstance(shape, PointList):
        kind = scene_pb2.ScenePoints
        where = f"{field}.points"
        places = places_of(shape.points, f"{where}.points")
        parts = tensor_of(kind.POINTS_FIELD_NUMBER, places)
        if shape.materials is not None:
            materials = numbers_of(shape.materials, f"{where}.materials")
            if materials.dtype not in (np.uint8, np.uint16):
                if materials.dtype.kind not in "iu" or (
                    materials.size and not 0 <= materials.min() <= materials.max() < 1 << 16
                ):
                    raise InvalidArgument("integers of 16 bits are right", f"{where}.materials")
                materials = materials.astype(np.uint16)
            parts += tensor_of(kind.MATERIALS_FIELD_NUMBER, materials)
        return wire.enclosed(SHAPE_POINTS, parts)
    heights = numbers_of(shape.heights, f"{field}.heightfield.heights")
    if heights.dtype not in (np.float32, np.float64):
        heights = heights.astype(np.float64)
    head = message_of(
        scene_pb2.SceneHeightfield, f"{field}.heightfield",
        x=shape.x, y=shape.y, cell=shape.cell, low_z=shape.low_z,
    )  # fmt: skip
    number = scene_pb2.SceneHeightfield.HEIGHTS_FIELD_NUMBER
    parts = [head.SerializeToString(), *tensor_of(number, heights, keeps_axes=True)]
    return wire.enclosed(SHAPE_HEIGHTFIELD, parts)


def plain_shape(shape: Shape, field: str) -> dict[str, Any]:
    """Shapes without arrays, as a member of the operation."""

    for kind in type(shape).__mro__:
        if kind in PLAIN_SHAPES:
            name, message_for = PLAIN_SHAPES[kind]
            return {name: message_for(shape, f"{field}.{name}")}
    raise InvalidArgument(
        f"{type(shape).__name__} is no shape; a Box, Ball, Capsule, HalfSpace, PointList, Cells or "
        "Heightfield is right",
        field,
    )


def copy_of(copy: Copy, field: str) -> scene_pb2.SceneCopy:
    matrix: list[int] = []
    if copy.matrix is not None:
        array = numbers_of(copy.matrix, f"{field}.copy.matrix")
        if array.size != 9 or not np.isin(array, (-1, 0, 1)).all():
            raise InvalidArgument("3 x 3 of 0, 1 and -1 are right", f"{field}.copy.matrix")
        matrix = array.astype(int).ravel().tolist()
    source = wire.vec3(copy.source, f"{field}.copy.from")
    message = scene_pb2.SceneCopy(matrix=matrix, copy_empty=copy.empty)
    getattr(message, "from").CopyFrom(source)
    return message


def operation_parts(operation: Operation | Shape, i: int) -> list[wire.Part]:
    """Makes a field of an operation; a shape alone is filled."""
    if not isinstance(operation, Operation):
        operation = Operation(operation)
    field = f"operations[{i}]"
    shape = operation.shape
    action = choice_of(str(operation.action), SCENE_ACTIONS, f"{field}.action")
    pin = choice_of(str(operation.pin), SCENE_PINS, f"{field}.pin")
    if isinstance(operation.material, str):
        raise InvalidArgument(
            f"{operation.material!r}; the number of a material is right (Scene.palette has names)",
            f"{field}.material",
        )
    has_arrays = isinstance(shape, PointList | Heightfield)
    head = message_of(
        scene_pb2.SceneOperation, field,
        action=action, material=operation.material,
        from_material=operation.from_material, threshold=operation.threshold, pin=pin,
        **({} if has_arrays else plain_shape(shape, field)),
    )  # fmt: skip
    if operation.copy is not None:
        head.copy.CopyFrom(copy_of(operation.copy, field))
    parts: list[wire.Part] = [head.SerializeToString()]
    if isinstance(shape, PointList | Heightfield):
        parts += shape_parts(shape, field)
    return wire.enclosed(OPERATIONS, parts)


def operations_parts(
    operations: Operation | Shape | Sequence[Operation | Shape],
) -> list[wire.Part]:
    """The operations of an edit, in order."""
    steps = list(operations) if isinstance(operations, list | tuple) else [operations]
    return [part for i, step in enumerate(steps) for part in operation_parts(step, i)]
