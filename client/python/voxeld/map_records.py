# SPDX-License-Identifier: Apache-2.0
"""The arguments and results of calls on maps."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import common_pb2, hashmap_pb2, rpc_pb2, voxelize_pb2

from . import wire
from .cloud import OF_NUMPY, DType
from .durability import fsync_of
from .errors import Error, Internal, InvalidArgument
from .reply import WIRE_TYPES, array_of, bad, record_of

COMBINES = ("set", "add", "min", "max")

# A type, or a type and elements an entry.
ArraySpec = npt.DTypeLike | tuple[npt.DTypeLike, int]
Values = Mapping[str, npt.ArrayLike]
Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class MapArray:
    """One value array: n_elements of dtype an entry."""

    name: str
    dtype: DType
    n_elements: int = 1

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's type; uint16 for bfloat16, which NumPy lacks."""
        return np.dtype(WIRE_TYPES[int(self.dtype)])


@dataclasses.dataclass(frozen=True)
class Lattice:
    """The meaning of keys that are voxels: the low corner of key (x, y, z) is origin + (x, y, z) *
    size, metres, in the frame frame_id."""

    size: tuple[float, float, float]
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    frame_id: str = ""


@dataclasses.dataclass(frozen=True)
class Merge:
    """Where Client.voxelize adds its voxels.

    create     makes the map where it is missing, with the request's size, origin and features;
               else NotFound. A map that differs in these is FailedPrecondition
    ttl_s, max_bytes
               of one that is made, as in Client.map_create
    """

    map: str
    create: bool = True
    ttl_s: float = 0.0
    max_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class MapInfo:
    """What a map is. load, probes and index bytes come from Client.map and Map.info only.

    erase_epoch  rises when entries are erased, or the map is made again or replaced: numbers
                 from before may name others since
    generation   another one after the map was dropped and made again, or after a start of the
                 server that could not bring back all of a durable map
    durable      "always", "everysec", "off", or None: a restart forgets it
    unavailable  of a durable map in lists: a change could not be written to the disk, and the
                 map has not come back from there yet; n_entries, capacity and erase_epoch are 0
    """

    name: str
    key_dtype: DType
    n_components: int
    values: tuple[MapArray, ...]
    n_entries: int
    capacity: int
    n_bytes: int
    max_bytes: int
    erase_epoch: int
    generation: int
    ttl_s: float
    ttl_left_s: float
    owner: str
    created_ns: int
    lattice: Lattice | None
    load: float
    mean_probes: float
    max_probes: int
    index_bytes_per_entry: float
    durable: str | None
    journal_max_bytes: int
    unavailable: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Inserted:
    """indices: entry of each key; is_new: true for the first of equal new keys. Both are None
    with counts_only, and where arrays_dropped says so."""

    indices: npt.NDArray[np.int32] | None
    is_new: npt.NDArray[np.bool_] | None
    n_new: int
    n_entries: int
    erase_epoch: int
    engine_ms: float
    replayed: bool
    arrays_dropped: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """indices: entry of each key, -1 = none. values: rows by array, zeros where nothing was
    found. neighbours: n x 6, 8 or 27 entries. keys: with return_keys."""

    indices: npt.NDArray[np.int32]
    found: npt.NDArray[np.bool_]
    n_found: int
    values: dict[str, Array]
    neighbours: npt.NDArray[np.int32] | None
    keys: Array | None
    erase_epoch: int
    engine_ms: float


@dataclasses.dataclass(frozen=True, eq=False)
class Erased:
    """erased: true for the first of equal keys that were there; None as in Inserted."""

    erased: npt.NDArray[np.bool_] | None
    n_erased: int
    n_entries: int
    erase_epoch: int
    engine_ms: float
    replayed: bool
    arrays_dropped: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Updated:
    """updated: true where the entry lives; None as in Inserted."""

    updated: npt.NDArray[np.bool_] | None
    n_updated: int
    n_new: int
    n_entries: int
    erase_epoch: int
    engine_ms: float
    replayed: bool
    arrays_dropped: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Entries:
    """Entries by ascending number. n_entries: of the map, not of this part of it."""

    indices: npt.NDArray[np.int32]
    keys: Array
    values: dict[str, Array]
    n_entries: int
    erase_epoch: int
    lattice: Lattice | None

    def __len__(self) -> int:
        return len(self.indices)

    def centres(self) -> npt.NDArray[np.float64]:
        """Returns n x 3 centres of the voxels, metres. Raises ValueError without a lattice."""
        if self.lattice is None or self.keys.ndim != 2 or self.keys.shape[1] != 3:
            raise ValueError("the map has no lattice of voxels")
        centres = self.lattice.origin + (self.keys + 0.5) * np.asarray(self.lattice.size)
        return np.asarray(centres, np.float64)


@dataclasses.dataclass(frozen=True)
class Saved:
    """digest: of the contents, equal on every backend."""

    file: str
    n_bytes: int
    n_entries: int
    digest: int


class Reply:
    """A method's reply and its arrays, which are checked when they are taken. Used as a context it
    adds to errors which request they are of."""

    def __init__(
        self, response: rpc_pb2.Response, arrays: dict[str, memoryview], sequence: int
    ) -> None:
        self._header = response.header
        self._arrays = arrays
        self._sequence = sequence
        self.message: Any = getattr(response, response.WhichOneof("method") or "")
        self.replayed: bool = response.header.replayed
        self.dropped: bool = response.header.arrays_dropped

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Error):
            error.request_id = self._header.request_id
            error.sequence = self._sequence

    def numbers(self, name: str, n: int | None, columns: int = 1) -> Array | None:
        """Takes n (x columns) numbers of entries; None where they are not expected."""
        if n is None:
            return None
        shape = (n, columns) if columns > 1 else (n,)
        array = self._array(name, "<i4", shape)
        if array.size and array.min() < -1:
            raise bad(name, "a number below -1")
        return array

    def mask(self, name: str, n: int | None) -> npt.NDArray[np.bool_] | None:
        if n is None:
            return None
        array = self._array(name, "|u1", (n,))
        if array.size and array.max() > 1:
            raise bad(name, "a truth value that is neither 0 nor 1")
        return array.view(np.bool_)

    def all_rows(self, n: int) -> dict[str, Array]:
        return {
            rows.name: self.rows(f"values[{i}].rows", rows.rows, n)
            for i, rows in enumerate(self.message.values)
        }

    def rows(self, path: str, tensor: common_pb2.Tensor, n: int) -> Array:
        """Takes n rows of any type and width."""
        shape = list(tensor.shape)
        if tensor.dtype not in WIRE_TYPES or len(shape) not in (1, 2) or min(shape[1:] or [1]) < 1:
            raise bad(path, "another type or another number of axes")
        dtype = WIRE_TYPES[tensor.dtype]
        return array_of(path, tensor, self._arrays.get(path), dtype, [n, *shape[1:]])

    def _array(self, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        if not self.message.HasField(name):
            raise bad(name, "requested, but missing")
        tensor = getattr(self.message, name)
        return array_of(name, tensor, self._arrays.get(name), dtype, shape)


def typed(rows: npt.ArrayLike, dtype: np.dtype[Any], field: str) -> Array:
    """Makes rows an array of the type: lists are converted, arrays must have it."""
    if isinstance(rows, np.ndarray):
        if rows.dtype.newbyteorder("=") != dtype.newbyteorder("="):
            raise InvalidArgument(f"{rows.dtype}; the map's array is {dtype}", field)
        return rows
    try:
        return np.asarray(rows, dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise InvalidArgument(f"no array of {dtype}: {e}", field) from None


def int32s(indices: npt.ArrayLike) -> Array:
    array = np.asarray(indices)
    if array.size == 0:
        array = array.astype(np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidArgument(
            f"{array.dtype} of shape {array.shape}; n integers are right", "indices"
        )
    if array.size and not -(2**31) <= int(array.min()) <= int(array.max()) < 2**31:
        raise InvalidArgument("numbers of more than 32 bits", "indices")
    return array.astype(np.int32, copy=False)


def tensor(name: str, message: Any, array: Array) -> list[wire.Part]:
    """Makes a tensor the field of that name of a message."""
    return tensor_of(message.DESCRIPTOR.fields_by_name[name].number, array)


def tensor_of(number: int, array: Array, dtype: DType | None = None) -> list[wire.Part]:
    """The array is borrowed where it is C-contiguous and little-endian, else copied."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    array = np.ascontiguousarray(array)
    dtype = dtype or OF_NUMPY[f"{array.dtype.kind}{array.dtype.itemsize}"]
    data = memoryview(array.reshape(-1).view(np.uint8))
    shape = array.shape[:1] if array.ndim == 2 and array.shape[1] == 1 else array.shape
    return wire.tensor_parts(number, dtype, shape, data)


def update_request(name: str, combine: str, **members: Any) -> Any:
    if combine not in COMBINES:
        raise InvalidArgument(f"{combine!r}; one of {', '.join(COMBINES)}", "combine")
    try:
        return hashmap_pb2.MapUpdateRequest(name=name, combine=f"MAP_{combine.upper()}", **members)
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e)) from None


def dtype_of(dtype: npt.DTypeLike | DType, field: str) -> DType:
    if isinstance(dtype, DType):
        return dtype
    try:
        numpy = np.dtype(dtype)
    except TypeError as e:
        raise InvalidArgument(str(e), field) from None
    wire_type = OF_NUMPY.get(f"{numpy.kind}{numpy.itemsize}")
    if wire_type is None:
        raise InvalidArgument(f"{numpy}; a number of 1 to 8 bytes is right", field)
    return wire_type


def array_spec(name: str, spec: ArraySpec | DType) -> hashmap_pb2.MapArray:
    field = f"values[{name!r}]"
    dtype, n_elements = spec if isinstance(spec, tuple) else (spec, 1)
    try:
        return hashmap_pb2.MapArray(
            name=name, dtype=dtype_of(dtype, field).name, n_elements=n_elements
        )
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), field) from None


def create_request(
    name: str,
    values: Mapping[str, ArraySpec],
    key_dtype: npt.DTypeLike,
    n_components: int,
    lattice: Lattice | None,
) -> Any:
    try:
        message = hashmap_pb2.MapCreateRequest(
            name=name,
            spec=hashmap_pb2.MapSpec(
                key_dtype=dtype_of(key_dtype, "key_dtype").name,
                n_components=n_components,
                values=[array_spec(n, s) for n, s in values.items()],
            ),
        )
        if lattice is not None:
            message.lattice.size.CopyFrom(wire.vec3(lattice.size, "lattice.size"))
            message.lattice.origin.CopyFrom(wire.vec3(lattice.origin, "lattice.origin"))
            message.lattice.frame_id = lattice.frame_id
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e)) from None
    return message


def merge_request(merge: Merge | str) -> voxelize_pb2.VoxelizeMerge:
    merge = Merge(merge) if isinstance(merge, str) else merge
    try:
        return voxelize_pb2.VoxelizeMerge(
            map=merge.map, create=merge.create, ttl_s=merge.ttl_s, max_bytes=merge.max_bytes
        )
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), "merge") from None


def lattice_of(message: Any) -> Lattice | None:
    if not message.HasField("lattice"):
        return None
    size, origin = message.lattice.size, message.lattice.origin
    return Lattice(
        (size.x, size.y, size.z), (origin.x, origin.y, origin.z), message.lattice.frame_id
    )


def known_dtype(number: int) -> DType:
    if number not in DType._value2member_map_:
        raise Internal(f"the server's reply is inconsistent: type {number}", "dtype")
    return DType(number)


def info_of(message: hashmap_pb2.MapInfo) -> MapInfo:
    return record_of(
        MapInfo,
        message,
        key_dtype=known_dtype(message.spec.key_dtype),
        n_components=message.spec.n_components,
        values=tuple(
            MapArray(a.name, known_dtype(a.dtype), max(a.n_elements, 1))
            for a in message.spec.values
        ),
        lattice=lattice_of(message),
        durable=fsync_of(message.fsync) if message.durable else None,
    )
