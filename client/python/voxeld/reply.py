# SPDX-License-Identifier: Apache-2.0
"""Results. The server is not trusted: every length is checked against the counts, every
index against its array, before an array goes out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from voxeld.v1 import common_pb2, rpc_pb2, voxelize_pb2

from .errors import Code, Error, Internal
from .shown import Named, members_of, table_of

Array = npt.NDArray[Any]
Record = TypeVar("Record")

INT32_MAX = 2**31 - 1
REDUCTIONS = ("mean", "sum", "min", "max", "first")
OUTPUTS = ("coords", "counts", "inverse", "points", "first_index")
RULES = ("", "spconv", "minkowski", "double")


@dataclasses.dataclass(frozen=True)
class Item:
    """The outcome of one cloud. n_points = n_used + the four counts of dropped points.

    voxels  slice of this item's rows in coords, counts, mean, ...
    points  slice of this item's rows in inverse"""

    stamp_ns: int
    frame_id: str
    n_points: int
    n_used: int
    n_non_finite: int
    n_out_of_range: int
    n_over_max_voxels: int
    n_over_max_points: int
    n_voxels: int
    voxels: slice
    points: slice


@dataclasses.dataclass(frozen=True)
class Merged:
    """What merging voxels into a map did: entries it made, and that the map has now."""

    n_new: int
    n_entries: int


@dataclasses.dataclass(frozen=True, eq=False)
class Voxels:
    """m voxels of all items, item by item, C feature channels, n points.

    Arrays that were not asked for are None, and so are all where arrays_dropped says so. The
    others are aligned. Those that the reply has aligned lie in the reply itself; they live as
    long as anybody holds them.

    coords       int32 m x 4: item, x, y, z
    counts       uint32 m: points reduced into each voxel
    inverse      int32 n: voxel of each point, -1 = dropped
    mean, sum, min, max, first
                 float32 m x C
    points       float32 m x max_points x C, zero padded
    first_index  uint32 m: index of each voxel's first point
    features     names of the C channels
    size, origin, low
                 the low corner of voxel (x, y, z) in the map frame, metres, is
                 origin + low + (x, y, z) * size
    rule         the one that was used, "spconv" or "minkowski"
    grid         cells per axis; None under "minkowski"
    engine_ms, queue_ms, total_ms
                 in the engine; waited at the server; at the server from arrival to reply
    merged       with merge: what that did
    frame        where the channels x, y, z count from: "map", or "origin" where that is not zero
    replayed     the outcome of an earlier call with this sequence (see Client)
    arrays_dropped
                 the server remembered the counts of that one only
    """

    n_voxels: int
    n_points: int
    items: tuple[Item, ...]
    # "| Any": None where it was not asked for, which the caller knows and the checker does not.
    coords: npt.NDArray[np.int32] | Any
    counts: npt.NDArray[np.uint32] | Any
    inverse: npt.NDArray[np.int32] | Any
    mean: npt.NDArray[np.float32] | Any
    sum: npt.NDArray[np.float32] | Any
    min: npt.NDArray[np.float32] | Any
    max: npt.NDArray[np.float32] | Any
    first: npt.NDArray[np.float32] | Any
    points: npt.NDArray[np.float32] | Any
    first_index: npt.NDArray[np.uint32] | Any
    features: tuple[str, ...]
    size: tuple[float, float, float]
    origin: tuple[float, float, float]
    low: tuple[float, float, float]
    rule: str
    grid: tuple[int, ...] | None
    engine_ms: float
    queue_ms: float
    total_ms: float
    request_id: str
    merged: Merged | None
    replayed: bool
    arrays_dropped: bool
    frame: str = "map"

    def __len__(self) -> int:
        return self.n_voxels

    def __repr__(self) -> str:
        edges = {f"{edge:g}" for edge in self.size}
        size = " x ".join(f"{edge:g}" for edge in self.size) if len(edges) > 1 else edges.pop()
        clouds = f" of {len(self.items)} clouds" if len(self.items) > 1 else ""
        return f"Voxels({self.n_voxels} voxels of {size} m from {self.n_points} points{clouds})"

    def _repr_html_(self) -> str:
        members = [m for m in members_of(self) if m[0] not in ("items", "request_id")]
        return table_of(repr(self), members)

    def centres(self) -> npt.NDArray[np.float64]:
        """Returns m x 3 centres of the voxels in the map frame, metres. Needs coords."""
        if self.coords is None:
            raise ValueError("the centres of voxels need the output coords")
        corner = np.add(self.origin, self.low)
        centres = corner + (self.coords[:, 1:] + 0.5) * np.asarray(self.size)
        return np.asarray(centres, np.float64)


@dataclasses.dataclass(frozen=True)
class Expect:
    """What the reply to a voxelize request must have."""

    n_clouds: int
    outputs: frozenset[str]
    reduce: frozenset[str]
    max_points: int
    merges: bool = False


def bad(field: str, what: str) -> Internal:
    return Internal(f"the server's reply is inconsistent: {what}", field)


def code_of(number: int) -> Code:
    return Code(number) if number in Code._value2member_map_ else Code.UNKNOWN


def record_of(kind: type[Record], message: Any, /, **over: Any) -> Record:
    """Makes a dataclass of the message's fields of the same names."""
    members = dataclasses.fields(kind)  # type: ignore[arg-type]
    names = [f.name for f in members if f.name not in over]
    return kind(**{name: getattr(message, name) for name in names}, **over)


WIRE_TYPES = {
    common_pb2.INT8: "|i1",
    common_pb2.UINT8: "|u1",
    common_pb2.INT16: "<i2",
    common_pb2.UINT16: "<u2",
    common_pb2.INT32: "<i4",
    common_pb2.UINT32: "<u4",
    common_pb2.FLOAT32: "<f4",
    common_pb2.FLOAT64: "<f8",
    common_pb2.INT64: "<i8",
    common_pb2.UINT64: "<u8",
    common_pb2.FLOAT16: "<f2",
    common_pb2.BFLOAT16: "<u2",  # NumPy lacks the type: its bits
}


def array_of(
    name: str,
    tensor: common_pb2.Tensor,
    data: memoryview | None,
    dtype: str,
    shape: Sequence[int],
) -> npt.NDArray[Any]:
    if WIRE_TYPES.get(tensor.dtype) != dtype or len(tensor.shape) != len(shape) or tensor.values:
        raise bad(name, "another type or another number of axes")
    if list(tensor.shape) != list(shape):
        raise bad(name, "the shape does not follow from the counts")
    if (0 if data is None else len(data)) != math.prod(shape) * np.dtype(dtype).itemsize:
        raise bad(name, "the length does not follow from the shape")
    array = np.frombuffer(b"" if data is None else data, dtype).reshape(tuple(shape))
    return array if array.flags.aligned else array.copy()


def items_of(
    message: voxelize_pb2.VoxelizeResponse, expect: Expect, dropped: bool
) -> tuple[Item, ...]:
    items: list[Item] = []
    n_points = 0
    if not message.items and dropped:
        return ()
    if len(message.items) != expect.n_clouds:
        raise bad("items", "not one for each cloud")
    for item in message.items:
        voxels = slice(item.first_voxel, item.first_voxel + item.n_voxels)
        points = slice(item.first_point, item.first_point + item.n_points)
        if voxels.stop > message.n_voxels:
            raise bad("items", "voxels outside the array")
        if points.start != n_points:
            raise bad("items", "the points do not follow one another")
        n_points = points.stop
        items.append(record_of(Item, item, voxels=voxels, points=points))
    return tuple(items)


def voxels_of(reply: Reply, expect: Expect) -> Voxels:
    """Checks the reply against itself and the request; raises Internal."""
    message: voxelize_pb2.VoxelizeResponse = reply.message
    if message.n_voxels > INT32_MAX:
        raise bad("n_voxels", "more than 2^31 - 1")
    dropped = reply.dropped
    items = items_of(message, expect, dropped)
    if expect.merges and not message.HasField("merged"):
        raise bad("merged", "requested, but missing")
    m, n, c = message.n_voxels, sum(item.n_points for item in items), len(message.features)
    layouts = {
        "coords": ("<i4", (m, 4)),
        "counts": ("<u4", (m,)),
        "inverse": ("<i4", (n,)),
        "first_index": ("<u4", (m,)),
        "points": ("<f4", (m, expect.max_points, c)),
        **{name: ("<f4", (m, c)) for name in REDUCTIONS},
    }
    expected: frozenset[str] = frozenset() if dropped else expect.outputs | expect.reduce
    checked: dict[str, npt.NDArray[Any] | None] = dict.fromkeys(layouts)
    for name in expected:
        dtype, shape = layouts[name]
        checked[name] = reply.array(name, dtype, *shape)
    inverse = checked["inverse"]
    if inverse is not None and n > 0 and not -1 <= inverse.min() <= inverse.max() < m:
        raise bad("inverse", "a voxel that does not exist")
    if len(message.grid) not in (0, 3):
        raise bad("grid", "not three numbers")
    origin = (message.origin.x, message.origin.y, message.origin.z)
    return Voxels(
        n_voxels=m,
        n_points=n,
        items=items,
        features=tuple(message.features),
        size=(message.size.x, message.size.y, message.size.z),
        origin=origin,
        low=(message.low.x, message.low.y, message.low.z),
        rule=RULES[message.rule] if 0 <= message.rule < len(RULES) else "",
        grid=tuple(message.grid) if message.grid else None,
        engine_ms=message.engine_ms,
        queue_ms=reply.header.queue_ms,
        total_ms=reply.header.total_ms,
        request_id=reply.header.request_id,
        merged=record_of(Merged, message.merged) if message.HasField("merged") else None,
        replayed=reply.header.replayed,
        arrays_dropped=dropped,
        frame=message.frame or ("origin" if any(origin) else "map"),
        **checked,
    )


# Replies of any method ---------------------------------------------------------------------


def need(message: Any, name: str) -> Any:
    """Returns a message that a reply must have."""
    if not message.HasField(name):
        raise bad(name, "requested, but missing")
    return getattr(message, name)


def vec3_of(message: common_pb2.Vec3) -> tuple[float, float, float]:
    return message.x, message.y, message.z


class Reply:
    """A method's reply and its arrays, which are checked when they are taken. Used as a context it
    adds to errors which request they are of."""

    def __init__(
        self, response: rpc_pb2.Response, arrays: dict[str, memoryview], sequence: int
    ) -> None:
        self.header = response.header
        self.arrays = arrays
        self._sequence = sequence
        self.message: Any = getattr(response, response.WhichOneof("method") or "")
        self.replayed: bool = response.header.replayed
        self.dropped: bool = response.header.arrays_dropped

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Error):
            error.request_id = self.header.request_id
            error.sequence = self._sequence

    def n_rows(self, name: str) -> int:
        """Counts the rows of an array, where nothing else says how many there are."""
        shape = getattr(self.message, name).shape
        if len(shape) not in (1, 2) or shape[0] < 0:
            raise bad(name, "not a row an entry")
        return int(shape[0])

    def extents(self, name: str, n_axes: int) -> tuple[int, ...]:
        """Returns the size of an array that the server decides."""
        shape = tuple(need(self.message, name).shape)
        if len(shape) != n_axes or min(shape) < 0:
            raise bad(name, "another number of axes")
        return shape

    def place(self) -> dict[str, Any]:
        """Returns where cells are, as records have it."""
        message = self.message
        return {
            "origin": vec3_of(message.origin),
            "cell_size": message.cell_size_m,
            "frame_id": message.frame_id,
        }

    def numbers(self, name: str, n: int, columns: int = 1, lowest: int | None = -1) -> Array:
        """Takes n (x columns) numbers, none below the lowest."""
        shape = (n, columns) if columns > 1 else (n,)
        array = self._array(name, "<i4", shape)
        if array.size and lowest is not None and array.min() < lowest:
            raise bad(name, f"a number below {lowest}")
        return array

    def mask(self, name: str, n: int) -> npt.NDArray[np.bool_]:
        array = self._array(name, "|u1", (n,))
        if array.size and array.max() > 1:
            raise bad(name, "a truth value that is neither 0 nor 1")
        return array.view(np.bool_)

    def all_rows(self, n: int) -> dict[str, Array]:
        rows = (
            (rows.name, self.rows(f"values[{i}].rows", rows.rows, n))
            for i, rows in enumerate(self.message.values)
        )
        return Named(rows, "array")

    def rows(self, path: str, tensor: common_pb2.Tensor, n: int) -> Array:
        """Takes n rows of any type and width."""
        shape = list(tensor.shape)
        if tensor.dtype not in WIRE_TYPES or len(shape) not in (1, 2) or min(shape[1:] or [1]) < 1:
            raise bad(path, "another type or another number of axes")
        dtype = WIRE_TYPES[tensor.dtype]
        return array_of(path, tensor, self.arrays.get(path), dtype, [n, *shape[1:]])

    def array(self, name: str, dtype: str, *shape: int) -> Array:
        """Takes an array of this type and shape."""
        return self._array(name, dtype, shape)

    def _array(self, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        if not self.message.HasField(name):
            raise bad(name, "requested, but missing")
        tensor = getattr(self.message, name)
        return array_of(name, tensor, self.arrays.get(name), dtype, shape)
