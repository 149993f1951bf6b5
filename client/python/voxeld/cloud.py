# SPDX-License-Identifier: Apache-2.0
"""Point clouds as sensors have them: records of any layout, sent without conversion."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidArgument

DEFAULT_NAMES = ("x", "y", "z", "intensity")
MAX_POINT_STEP = 65535
ROS_TYPES = range(1, 9)


class DType(enum.IntEnum):
    """Element types. The first eight are the numbers of sensor_msgs/PointField."""

    INT8 = 1
    UINT8 = 2
    INT16 = 3
    UINT16 = 4
    INT32 = 5
    UINT32 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    INT64 = 9
    UINT64 = 10
    FLOAT16 = 11
    BFLOAT16 = 12


OF_NUMPY = {
    "i1": DType.INT8,
    "u1": DType.UINT8,
    "i2": DType.INT16,
    "u2": DType.UINT16,
    "i4": DType.INT32,
    "u4": DType.UINT32,
    "i8": DType.INT64,
    "u8": DType.UINT64,
    "f2": DType.FLOAT16,
    "f4": DType.FLOAT32,
    "f8": DType.FLOAT64,
}


@dataclasses.dataclass(frozen=True)
class Field:
    """One number of a point record; value = raw * scale + bias.

    name    "x", "y", "z" give the position; others are free
    offset  bytes from the start of the record
    count   elements; fields of several are carried along unread
    """

    name: str
    offset: int
    dtype: DType = DType.FLOAT32
    scale: float = 1.0
    bias: float = 0.0
    count: int = 1


@dataclasses.dataclass(frozen=True)
class Pose:
    """A rigid motion, p_parent = R(rotation) * p_child + translation.

    translation  metres
    rotation     unit quaternion (x, y, z, w), as in ROS
    """

    translation: Sequence[float] = (0.0, 0.0, 0.0)
    rotation: Sequence[float] = (0.0, 0.0, 0.0, 1.0)

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> Pose:
        """The pose of a 4 x 4 (or 3 x 4) homogeneous matrix.

        Raises InvalidArgument when its left part is no rotation (to 1e-3).
        """
        m = np.asarray(matrix, np.float64)
        if m.shape not in ((4, 4), (3, 4)):
            raise InvalidArgument(f"a matrix of shape {m.shape}; 4 x 4 or 3 x 4 is right", "pose")
        r = m[:3, :3]
        is_rotation = np.allclose(r @ r.T, np.eye(3), atol=1e-3) and np.linalg.det(r) > 0
        if not np.isfinite(m).all() or not is_rotation:
            raise InvalidArgument("the matrix has no rotation in its left part", "pose")
        # Each component is computed from its square, with the signs of the largest one, so that
        # nothing is divided by a small number.
        w, x, y, z = (
            1 + r[0, 0] + r[1, 1] + r[2, 2],
            1 + r[0, 0] - r[1, 1] - r[2, 2],
            1 - r[0, 0] + r[1, 1] - r[2, 2],
            1 - r[0, 0] - r[1, 1] + r[2, 2],
        )
        candidates = (
            (x, r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[2, 1] - r[1, 2]),
            (r[0, 1] + r[1, 0], y, r[1, 2] + r[2, 1], r[0, 2] - r[2, 0]),
            (r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], z, r[1, 0] - r[0, 1]),
            (r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], w),
        )
        q = np.asarray(candidates[int(np.argmax((x, y, z, w)))])
        return cls(m[:3, 3].tolist(), (q / np.linalg.norm(q)).tolist())


@dataclasses.dataclass(frozen=True)
class Sweep:
    """An earlier sweep of the same sensor; its points follow the cloud's.

    cloud          its points; only their layout and data count
    T_cloud_sweep  sweep's sensor frame to the cloud's sensor frame
    dt_s           time lag, readable as the feature "dt" (0 for the cloud itself)
    """

    cloud: Cloud
    T_cloud_sweep: Pose = dataclasses.field(default_factory=Pose)
    dt_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class Deskew:
    """The motion of a sensor during its scan, at constant velocity, from the cloud's T_map_sensor.

    T_map_sensor_end  its pose at the end
    time_field        the field with the points' times
    start, end        of the scan, in the field's unit; both 0: the least and the greatest time
    """

    T_map_sensor_end: Pose = dataclasses.field(default_factory=Pose)
    time_field: str = "t"
    start: float = 0.0
    end: float = 0.0


@dataclasses.dataclass(frozen=True)
class Body:
    """The robot's own body, whose points are left out of a cloud and its sweeps before anything
    else is done with them, where the sensor measured them.

    min_range      metres: points nearer to the sensor; 0: none
    boxes          N x 6: low x, y, z and high x, y, z of each, half-open, metres; at most 32
    T_base_sensor  boxes are in the base's frame; without it they are in the sensor's
    """

    min_range: float = 0.0
    boxes: npt.ArrayLike = ()
    T_base_sensor: Pose = dataclasses.field(default_factory=Pose)


@dataclasses.dataclass(frozen=True)
class Cloud:
    """n records of point_step bytes.

    data          anything with the buffer protocol, n * point_step bytes, little-endian;
                  borrowed, not copied: leave it alone while a call with it is in flight
    stamp_ns      echoed in the result's item
    frame_id      echoed; at most 255 bytes
    T_map_sensor  positions are moved to the map frame, minus the request's origin
    deskew        the sensor moved during the scan; goes without sweeps
    body          what the sensor sees of the robot itself, which is left out
    """

    fields: Sequence[Field]
    point_step: int
    data: Any
    stamp_ns: int = 0
    frame_id: str = ""
    T_map_sensor: Pose = dataclasses.field(default_factory=Pose)
    sweeps: Sequence[Sweep] = ()
    deskew: Deskew | None = None
    body: Body | None = None

    @property
    def n_points(self) -> int:
        """Number of points of the cloud without its sweeps."""
        return memoryview(self.data).nbytes // self.point_step

    @classmethod
    def from_numpy(
        cls, points: npt.ArrayLike, names: Sequence[str] | None = None, **members: Any
    ) -> Cloud:
        """A cloud of an N x C array of numbers, or of N structured records.

        points   N x C: any type of up to 8 bytes but bool, C >= 3. Records: their fields
                 become the cloud's, with their offsets, so padding is fine. The array is
                 borrowed where it is C-contiguous and little-endian, else copied.
        names    of the C columns; "x", "y", "z", "intensity", "c4", "c5", ... when None.
                 Records have names of their own.
        members  stamp_ns, frame_id, T_map_sensor, sweeps, deskew, body

        Raises InvalidArgument for an array that is none of these.
        """
        array = np.asarray(points)
        if array.dtype.names is not None:
            fields = record_fields(array, names)
        else:
            fields = column_fields(array, names)
        if array.dtype.newbyteorder("<") != array.dtype:
            array = array.astype(array.dtype.newbyteorder("<"))
        array = np.ascontiguousarray(array)
        point_step = array.dtype.itemsize * (1 if array.ndim == 1 else array.shape[1])
        if not 0 < point_step <= MAX_POINT_STEP:
            raise InvalidArgument(
                f"records of {point_step} bytes; 1 to {MAX_POINT_STEP} are allowed", "points"
            )
        return cls(fields, point_step, array.reshape(-1).view(np.uint8), **members)

    @classmethod
    def from_pointcloud2(cls, message: Any, **members: Any) -> Cloud:
        """A cloud of a ROS sensor_msgs/PointCloud2, or of anything with its members.

        fields, point_step and data go in verbatim, borrowed; only padding at the end of
        rows is cut away, in a copy. Stamp and frame are the header's.

        message  height, width, fields[] {name, offset, datatype, count}, is_bigendian,
                 point_step, row_step, data, header {stamp {sec, nanosec}, frame_id}
        members  T_map_sensor, sweeps; stamp_ns and frame_id over the header's

        Raises InvalidArgument when it is big-endian or its sizes contradict one another.
        """
        if message.is_bigendian:
            raise InvalidArgument("a big-endian PointCloud2; convert it first", "is_bigendian")
        fields = []
        for i, f in enumerate(message.fields):
            if f.datatype not in ROS_TYPES:
                raise InvalidArgument(
                    f"{f.datatype}; PointField knows 1 to 8", f"fields[{i}].datatype"
                )
            fields.append(Field(f.name, int(f.offset), DType(f.datatype), count=f.count))
        header = message.header
        members = {
            "stamp_ns": int(header.stamp.sec) * 10**9 + int(header.stamp.nanosec),
            "frame_id": header.frame_id,
            **members,
        }
        return cls(fields, int(message.point_step), rows_of(message), **members)


def rows_of(message: Any) -> npt.NDArray[np.uint8]:
    """Returns the records of a PointCloud2 without the padding of its rows."""
    height, width = int(message.height), int(message.width)
    point_step, row_step = int(message.point_step), int(message.row_step)
    if height < 0 or width < 0 or not 0 < point_step <= MAX_POINT_STEP:
        raise InvalidArgument(
            f"{height} x {width} points of {point_step} bytes; 1 to {MAX_POINT_STEP} bytes "
            "are allowed",
            "point_step",
        )
    data = message.data
    raw = np.frombuffer(bytes(data) if isinstance(data, list) else data, np.uint8)
    row_bytes = width * point_step
    # Publishers of unorganised clouds often leave row_step at 0 or stale.
    if height <= 1:
        row_step = row_bytes
    if row_step < row_bytes:
        raise InvalidArgument(
            f"{row_step}; a row of {width} points has {row_bytes} bytes", "row_step"
        )
    needed = (height - 1) * row_step + row_bytes if height > 0 else 0
    if raw.size < needed:
        raise InvalidArgument(
            f"{raw.size} bytes; {height} rows of {row_step} need {needed}", "data"
        )
    if row_step == row_bytes:
        return raw[: height * row_bytes]
    # The last row may lack its padding.
    rows = np.lib.stride_tricks.as_strided(raw, (height, row_bytes), (row_step, 1), writeable=False)
    return np.ascontiguousarray(rows).reshape(-1)


def type_of(dtype: np.dtype[Any], what: str) -> DType:
    wire = OF_NUMPY.get(f"{dtype.kind}{dtype.itemsize}")
    if wire is None:
        raise InvalidArgument(f"{what} of type {dtype}; 1 to 8 byte numbers are right", "points")
    return wire


def column_fields(array: npt.NDArray[Any], names: Sequence[str] | None) -> list[Field]:
    if array.ndim != 2 or array.shape[1] < 3:
        raise InvalidArgument(
            f"an array of shape {array.shape}; N x C with C >= 3 (x, y, z, ...) is right",
            "points",
        )
    n_columns = array.shape[1]
    if names is None:
        more = [f"c{i}" for i in range(len(DEFAULT_NAMES), n_columns)]
        names = [*DEFAULT_NAMES, *more][:n_columns]
    elif len(names) != n_columns:
        raise InvalidArgument(f"{len(names)} names for {n_columns} columns", "names")
    dtype = type_of(array.dtype, "columns")
    size = array.dtype.itemsize
    return [Field(name, i * size, dtype) for i, name in enumerate(names)]


def record_fields(array: npt.NDArray[Any], names: Sequence[str] | None) -> list[Field]:
    if array.ndim != 1:
        raise InvalidArgument(f"records of shape {array.shape}; one axis is right", "points")
    if names is not None:
        raise InvalidArgument("records have names of their own", "names")
    assert array.dtype.fields is not None and array.dtype.names is not None
    fields = []
    for name in array.dtype.names:
        dtype, offset = array.dtype.fields[name][:2]
        base, shape = dtype.subdtype or (dtype, ())
        count = int(np.prod(shape, dtype=np.int64))
        fields.append(Field(name, offset, type_of(base, f"the field {name!r}"), count=count))
    return fields
