# SPDX-License-Identifier: Apache-2.0
"""What calls on nouns are made of: the caller's values as messages and arrays, and replies whose
arrays are checked. The generated methods build on this module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from voxeld.v1 import common_pb2, hashmap_pb2, rpc_pb2, scene_pb2

from . import wire
from .calls import SHORT_TIMEOUT_S, Calls
from .cloud import OF_NUMPY, Cloud, DType, Pose
from .errors import Internal, InvalidArgument
from .reply import WIRE_TYPES, Array, Reply, bad
from .reply import code_of as code_of
from .reply import need as need
from .reply import vec3_of as vec3_of

# A type, or a type and elements an entry.
ArraySpec = npt.DTypeLike | tuple[npt.DTypeLike, int]
Values = Mapping[str, npt.ArrayLike]
Vector = Sequence[float] | npt.NDArray[Any]
At = int | str
"""A version of a scene: its number, or the name of a snapshot."""


class Owner(Protocol):
    """What generated methods need of the class that they are methods of."""

    name: str
    _client: Calls


class Noun(Owner, Protocol):
    """The same where they take keys and rows of arrays."""

    def _keys(self, keys: npt.ArrayLike) -> Array: ...

    def _rows(self, message: Any, values: Values) -> list[wire.Part]: ...


class Box(Protocol):
    """What has corners: voxeld.Box."""

    @property
    def low(self) -> Sequence[float]: ...

    @property
    def high(self) -> Sequence[float]: ...


# Calls -------------------------------------------------------------------------------------


def ask(
    client: Calls, method: str, message: Any, timeout: float | None, request_id: str | None
) -> Any:
    """Returns the reply to a method that changes nothing, without arrays."""
    request = rpc_pb2.Request(**{method: message})
    return getattr(client._call(method, request, timeout, request_id), method)


def ask_limits(
    client: Calls, method: str, message: Any, timeout: float | None, request_id: str | None
) -> Any:
    """Returns the reply to server_info, whose limits the client keeps."""
    return client._get_server_info(timeout, request_id)


def longer(client: Calls, timeout: float | None, more_ms: int) -> float:
    """Returns the timeout of a call that takes so much longer by itself: unless it has one, the
    client's (5 s where it has none) and that."""
    return (client._timeout or SHORT_TIMEOUT_S) + more_ms / 1000 if timeout is None else timeout


def change(
    client: Calls,
    method: str,
    message: Any,
    timeout: float | None,
    request_id: str | None,
    sequence: int,
) -> Any:
    """Returns the reply to a method that changes something, without arrays."""
    return getattr(client._change(method, message, timeout, request_id, sequence), method)


def changed(
    client: Calls,
    method: str,
    message: Any,
    timeout: float | None,
    request_id: str | None,
    sequence: int,
) -> tuple[Any, bool]:
    """The same, and whether it is the outcome of an earlier call with this sequence."""
    response = client._change(method, message, timeout, request_id, sequence)
    return getattr(response, method), response.header.replayed


def given(message: Any, name: str, made: Callable[[Any], Any]) -> Any:
    """What is made of a message; None where the reply has none."""
    return made(getattr(message, name)) if message.HasField(name) else None


def newest_first(versions: tuple[Any, ...]) -> tuple[Any, ...]:
    """Checks that versions fall, so that who goes on below the last one comes to an end."""
    if any(a.version <= b.version for a, b in zip(versions, versions[1:], strict=False)):
        raise bad("versions", "not newest first")
    return versions


def send(
    client: Calls,
    method: str,
    message: Any,
    parts: list[wire.Part],
    timeout: float | None,
    request_id: str | None,
    sequence: int | None,
    **of_header: Any,
) -> Reply:
    """Makes a call with arrays, of which neither the message's nor the reply's are copied. A method
    that changes nothing has no sequence."""
    own = 0 if sequence is None else client._numbered(sequence)
    header = message_of(rpc_pb2.RequestHeader, sequence=own, **of_header)
    number = rpc_pb2.Request.DESCRIPTOR.fields_by_name[method].number
    body = wire.enclosed(number, [message.SerializeToString(), *parts])
    response, arrays = client._exchange(method, header, body, timeout, request_id)
    return Reply(response, arrays, own)


# Values of the caller ----------------------------------------------------------------------


def message_of(kind: Any, path: str = "", /, **members: Any) -> Any:
    """Makes a message with these fields; an error names the one whose value is invalid, behind the
    message's own path."""
    try:
        return kind(**members)
    except (TypeError, ValueError):
        for name, value in members.items():
            try:
                kind(**{name: value})
            except (TypeError, ValueError) as e:
                raise InvalidArgument(str(e), f"{path}.{name}" if path else name) from None
        raise


def names_of(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def choice_of(value: str | None, choices: tuple[str, ...], field: str) -> int | None:
    """Returns the enumerator's number of a choice; choices are by number."""
    if value is None:
        return None
    if value not in choices:
        known = ", ".join(c for c in choices if c)
        raise InvalidArgument(f"{value!r}; one of {known}", field)
    return choices.index(value)


def name_of(choices: tuple[str, ...], number: int) -> str:
    """Returns the choice that an enumerator's number means."""
    return choices[number] if 0 <= number < len(choices) else str(number)


def check_one_of(value: int, allowed: tuple[int, ...], field: str) -> None:
    if value not in allowed:
        raise InvalidArgument(f"{value}; one of {allowed}", field)


def check_with(value: Any, other: Any, field: str, other_field: str) -> None:
    """Refuses a value that means something only beside another."""
    is_given = value is not None if isinstance(value, np.ndarray) else bool(value)
    if is_given and other is None:
        raise InvalidArgument(f"goes with {other_field}", field)


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


def int32s(indices: npt.ArrayLike, field: str) -> Array:
    array = np.asarray(indices)
    if array.size == 0:
        array = array.astype(np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidArgument(f"{array.dtype} of shape {array.shape}; n integers are right", field)
    if array.size and not -(2**31) <= int(array.min()) <= int(array.max()) < 2**31:
        raise InvalidArgument("numbers of more than 32 bits", field)
    return array.astype(np.int32, copy=False)


def places(points: npt.ArrayLike, field: str) -> Array:
    """Makes n x 3 float32 or float64 of places in metres; whole numbers are converted."""
    array = np.asarray(points)
    if array.dtype.kind in "iub" or array.size == 0:
        array = array.astype(np.float64)
    if array.size == 0:
        array = array.reshape(0, 3)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype not in (np.float32, np.float64):
        raise InvalidArgument(
            f"{array.dtype} of shape {array.shape}; n x 3 float32 or float64 is right", field
        )
    return array


def rows(values: npt.ArrayLike, dtype: str, columns: int, field: str) -> Array:
    """Makes values an array of so many columns (0: of numbers) and of that type."""
    try:
        array = np.asarray(values, dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise InvalidArgument(f"no array of {np.dtype(dtype)}: {e}", field) from None
    if array.ndim != (1 if columns == 0 else 2) or (columns > 0 and array.shape[1] != columns):
        right = f"n x {columns}" if columns > 0 else "n"
        raise InvalidArgument(f"has the shape {array.shape}; {right} is right", field)
    return array


def numbers_of(values: npt.ArrayLike, field: str) -> Array:
    try:
        array = np.asarray(values)
    except ValueError as e:
        raise InvalidArgument(f"no array of numbers: {e}", field) from None
    if array.dtype.kind not in "iuf":
        raise InvalidArgument(f"{array.dtype}; numbers are right", field)
    return array


def floats_of(values: npt.ArrayLike | None, field: str) -> list[float]:
    """Makes a list of one row of numbers; None is none."""
    return [] if values is None else [float(v) for v in rows(values, "<f4", 0, field)]


def information_of(values: npt.ArrayLike | None, field: str) -> list[float]:
    """Makes a list of an information matrix, of its upper triangle or of its diagonal."""
    if values is None:
        return []
    numbers = np.asarray(values, np.float64)
    if numbers.shape not in ((6, 6), (36,), (21,), (6,)):
        raise InvalidArgument(f"of shape {numbers.shape}; 6 x 6, 21 or 6 numbers are right", field)
    return [float(v) for v in numbers.ravel()]


def pair_of(values: Sequence[float] | None, field: str) -> tuple[float, float]:
    """Takes a low and a high number; None: both are 0."""
    if values is None:
        return 0.0, 0.0
    try:
        low, high = values
    except (TypeError, ValueError):
        raise InvalidArgument(f"{values!r}; (low, high) is right", field) from None
    return low, high


def bytes_of(values: npt.ArrayLike | None) -> bytes:
    """Makes numbers bytes, one each; None is none."""
    return b"" if values is None else np.asarray(values).astype(np.uint8).tobytes()


def metres_of(values: npt.ArrayLike, field: str, *widths: int) -> Array:
    """Makes n rows of one of these widths, float32 or float64; one row may come without its axis.
    """
    array = numbers_of(values, field)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return rows_of(array, field, *widths)


def rows_of(array: Array, field: str, *widths: int) -> Array:
    if array.ndim == 1 and array.size in widths:
        array = array.reshape(1, array.size)
    if array.ndim != 2 or array.shape[1] not in widths:
        raise InvalidArgument(
            f"an array of shape {array.shape}; n x {' or '.join(map(str, widths))} is right", field
        )
    return array


def whole_of(values: npt.ArrayLike, field: str, dtype: str, *columns: int) -> Array:
    """Makes n rows of whole numbers from 0 on, which the type has; without columns n numbers."""
    array = numbers_of(values, field)
    right = " x ".join(["n", *map(str, columns)])
    if array.dtype.kind not in "iu" or array.shape[1:] != columns or array.ndim == 0:
        raise InvalidArgument(
            f"{array.dtype} of shape {array.shape}; {right} integers are right", field
        )
    top = np.iinfo(dtype).max
    if array.size and not 0 <= int(array.min()) <= int(array.max()) <= top:
        raise InvalidArgument(f"{array.min()} to {array.max()}; 0 to {top} are right", field)
    return array.astype(dtype)


def places_of(values: npt.ArrayLike, field: str) -> Array:
    """Makes n x 3 positions: integers are voxels, floating-point numbers metres."""
    array = numbers_of(values, field)
    if array.dtype.kind == "f":
        return metres_of(array, field, 3)
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return rows_of(array, field, 3)


def tensor(name: str, message: Any, array: Array | None) -> list[wire.Part]:
    """Makes a tensor the field of that name of a message; None leaves it out."""
    if array is None:
        return []
    return tensor_of(message.DESCRIPTOR.fields_by_name[name].number, array)


def tensors(message: Any, arrays: Mapping[str, Array]) -> list[wire.Part]:
    """Makes several tensors the fields of their names."""
    return [part for name, array in arrays.items() for part in tensor(name, message, array)]


def tensor_of(
    number: int, array: Array, dtype: DType | None = None, keeps_axes: bool = False
) -> list[wire.Part]:
    """The array is borrowed where it is C-contiguous and little-endian, else copied. Rows of one
    element are numbers, unless it keeps its axes."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    array = np.ascontiguousarray(array)
    dtype = dtype or OF_NUMPY[f"{array.dtype.kind}{array.dtype.itemsize}"]
    data = memoryview(array.reshape(-1).view(np.uint8))
    is_column = array.ndim == 2 and array.shape[1] == 1 and not keeps_axes
    shape = array.shape[:1] if is_column else array.shape
    return wire.tensor_parts(number, dtype, shape, data)


def clouds(name: str, message: Any, given: Cloud | list[Cloud] | None) -> list[wire.Part]:
    """Makes clouds the field of that name of a message; None leaves it out."""
    if given is None:
        return []
    number = message.DESCRIPTOR.fields_by_name[name].number
    if isinstance(given, Cloud):
        return wire.cloud_parts(given, name, number)
    each = [wire.cloud_parts(cloud, f"{name}[{i}]", number) for i, cloud in enumerate(given)]
    return [part for parts in each for part in parts]


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


def array_specs(values: Mapping[str, ArraySpec] | None) -> list[hashmap_pb2.MapArray]:
    return [array_spec(name, spec) for name, spec in (values or {}).items()]


def array_spec(name: str, spec: ArraySpec | DType) -> hashmap_pb2.MapArray:
    field = f"values[{name!r}]"
    dtype, n_elements = spec if isinstance(spec, tuple) else (spec, 1)
    try:
        return hashmap_pb2.MapArray(
            name=name, dtype=dtype_of(dtype, field).name, n_elements=n_elements
        )
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), field) from None


def known_dtype(number: int) -> DType:
    if number not in DType._value2member_map_:
        raise Internal(f"the server's reply is inconsistent: type {number}", "dtype")
    return DType(number)


def vec3(values: Sequence[float], field: str) -> common_pb2.Vec3:
    return wire.vec3(values, field)


def pose_of(pose: Pose | npt.ArrayLike | None, field: str) -> common_pb2.Pose | None:
    return None if pose is None else wire.pose(pose, field)


def whole_pose(pose: Pose | npt.ArrayLike | None, field: str) -> common_pb2.Pose | None:
    """The same, which is there also where it is the identity."""
    if pose is None:
        return None
    return wire.pose(pose, field) or common_pb2.Pose(rotation=common_pb2.Quaternion(w=1))


def pose_in(pose: common_pb2.Pose) -> Pose:
    """The pose of a reply."""
    t, q = pose.translation, pose.rotation
    return Pose((t.x, t.y, t.z), (q.x, q.y, q.z, q.w))


def optional(made: Callable[[Any, str], Any], value: Any, field: str) -> Any:
    """A record as a message; None stays None."""
    return None if value is None else made(value, field)


def each(
    made: Callable[[Any, str], Any], kind: type, values: Iterable[Any], field: str
) -> list[Any]:
    """Records of a class as messages."""
    messages = []
    for i, value in enumerate(values):
        if not isinstance(value, kind):
            raise InvalidArgument(
                f"{type(value).__name__}; a {kind.__name__} is right", f"{field}[{i}]"
            )
        messages.append(made(value, f"{field}[{i}]"))
    return messages


def box_of(box: Box | None, field: str) -> scene_pb2.SceneBox | None:
    if box is None:
        return None
    if not hasattr(box, "low") or not hasattr(box, "high"):
        raise InvalidArgument(f"{box!r}; a voxeld.Box is right", field)
    return scene_pb2.SceneBox(
        low=wire.vec3(box.low, f"{field}.low"), high=wire.vec3(box.high, f"{field}.high")
    )


def at_of(at: At | None, field: str = "at") -> scene_pb2.SceneAt | None:
    """None: the newest."""
    if at is None:
        return None
    if isinstance(at, str) and at:
        return scene_pb2.SceneAt(snapshot=at)
    if isinstance(at, int) and not isinstance(at, bool) and 0 < at < 1 << 64:
        return scene_pb2.SceneAt(version=at)
    raise InvalidArgument(f"{at!r}; a version from 1 on, or a snapshot's name", field)


# Parts of records --------------------------------------------------------------------------


def numpy_of(array: Any) -> np.dtype[Any]:
    """NumPy's type; uint16 for bfloat16, which NumPy lacks."""
    return np.dtype(WIRE_TYPES[int(array.dtype)])


def occupied_of(self: Any) -> npt.NDArray[np.bool_]:
    return np.asarray((self.states & 2) != 0, np.bool_)


def free_of(self: Any) -> npt.NDArray[np.bool_]:
    return np.asarray((self.states & 4) != 0, np.bool_)


def hit_of(self: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(self.distances >= 0, np.bool_)


def n_cells_of(self: Any) -> int:
    return len(self.cells)


def cell_centres_of(self: Any) -> npt.NDArray[np.float64]:
    """Returns n x 3 centres, metres."""
    return np.asarray(np.add(self.origin, (self.cells + 0.5) * self.cell_size), np.float64)


def cells_where(self: Any, difference: int) -> npt.NDArray[np.int32]:
    """Returns the cells with any of these differences."""
    return np.asarray(self.cells[(self.changes & np.uint8(difference)) != 0], np.int32)


def n_entries_of(self: Any) -> int:
    return len(self.indices)


def centres_of(self: Any) -> npt.NDArray[np.float64]:
    """Returns n x 3 centres of the voxels, metres. Raises ValueError without a lattice."""
    if self.lattice is None or self.keys.ndim != 2 or self.keys.shape[1] != 3:
        raise ValueError("the map has no lattice of voxels")
    centres = self.lattice.origin + (self.keys + 0.5) * np.asarray(self.lattice.size)
    return np.asarray(centres, np.float64)


def image_of(self: Any, name: str = "depth") -> Array:
    """Returns an array of the picture as height x width (x 3)."""
    array = getattr(self, name)
    return array.reshape((self.height, self.width, *array.shape[1:]))


def png_of_image(self: Any) -> bytes | None:
    """The picture's file, for a notebook, if it is a PNG."""
    return bytes(self.image) if self.image.startswith(b"\x89PNG") else None


def jpeg_of_image(self: Any) -> bytes | None:
    """The picture's file, for a notebook, if it is a JPEG."""
    return bytes(self.image) if self.image.startswith(b"\xff\xd8") else None
