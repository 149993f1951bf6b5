# SPDX-License-Identifier: Apache-2.0
"""Stock protobuf, except for large arrays: they are spliced into requests and cut out of replies
as bytes, which saves two copies of each."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from voxeld.v1 import common_pb2, hashmap_pb2, rpc_pb2

from .cloud import Body, Cloud, DType, Field, Pose
from .errors import InvalidArgument

LENGTH_DELIMITED = 2
CLOUD_DATA = common_pb2.Cloud.DATA_FIELD_NUMBER
CLOUD_SWEEPS = common_pb2.Cloud.SWEEPS_FIELD_NUMBER
SWEEP_DATA = common_pb2.Sweep.DATA_FIELD_NUMBER
TENSOR_DATA = common_pb2.Tensor.DATA_FIELD_NUMBER
MAP_ROWS_ROWS = hashmap_pb2.MapRows.ROWS_FIELD_NUMBER

Part = bytes | memoryview


@functools.cache
def holds_tensors(message: Any) -> bool:
    """Whether fields of a message's descriptor are tensors, or messages of some."""
    inner = [f.message_type for f in message.fields if f.message_type is not None]
    return any(m is common_pb2.Tensor.DESCRIPTOR or holds_tensors(m) for m in inner)


# Methods whose replies have tensors, by number.
WITH_TENSORS = {
    f.number: f.message_type
    for f in rpc_pb2.Response.DESCRIPTOR.oneofs_by_name["method"].fields
    if holds_tensors(f.message_type)
}


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def enclosed(number: int, parts: list[Part]) -> list[Part]:
    """Returns the parts as one length-delimited field."""
    n_bytes = sum(len(part) for part in parts)
    return [varint(number << 3 | LENGTH_DELIMITED) + varint(n_bytes), *parts]


def body_of(parts: list[Part]) -> tuple[bytes, list[Part]]:
    """Returns the tag of a method's field of Request, and its message in parts."""
    first = memoryview(parts[0])
    ends = [i + 1 for i, byte in enumerate(first[:20]) if byte < 0x80]
    return bytes(first[: ends[0]]), [first[ends[1] :], *parts[1:]]


def vec3(values: Any, field: str) -> common_pb2.Vec3:
    try:
        x, y, z = (float(v) for v in values)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{values!r}; three numbers are right", field) from None
    return common_pb2.Vec3(x=x, y=y, z=z)


def pose(value: Any, field: str) -> common_pb2.Pose | None:
    """Makes the wire's pose, of a Pose or a matrix; None for the identity."""
    if not isinstance(value, Pose):
        try:
            value = Pose.from_matrix(value)
        except (InvalidArgument, TypeError, ValueError) as e:
            said = e.message if isinstance(e, InvalidArgument) else f"{value!r}"
            raise InvalidArgument(f"{said}; a Pose or a 4 x 4 matrix is right", field) from None
    try:
        x, y, z, w = (float(v) for v in value.rotation)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{value.rotation!r}; a quaternion (x, y, z, w) is right", f"{field}.rotation"
        ) from None
    translation = vec3(value.translation, f"{field}.translation")
    if (x, y, z) == (0, 0, 0) and w in (0, 1) and not translation.ByteSize():
        return None
    rotation = common_pb2.Quaternion(x=x, y=y, z=z, w=w)
    return common_pb2.Pose(translation=translation, rotation=rotation)


def data_of(cloud: Cloud, field: str) -> memoryview:
    try:
        return memoryview(cloud.data).cast("B")
    except TypeError:
        raise InvalidArgument(
            f"{type(cloud.data).__name__}; contiguous bytes are right", f"{field}.data"
        ) from None


def field_of(field: Field) -> common_pb2.Field:
    return common_pb2.Field(
        name=field.name,
        offset=field.offset,
        dtype=DType(field.dtype).name,
        scale=field.scale,
        bias=field.bias,
        count=field.count,
    )


def robot_body(body: Body, field: str) -> common_pb2.RobotBody:
    try:
        boxes = np.asarray(body.boxes, float).reshape(-1, 6)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{body.boxes!r}; rows of low x, y, z and high x, y, z are right", f"{field}.boxes"
        ) from None
    return common_pb2.RobotBody(
        min_range_m=body.min_range,
        boxes=[
            common_pb2.BodyBox(low=vec3(b[:3], field), high=vec3(b[3:], field))
            for b in boxes.tolist()
        ],
        T_base_sensor=pose(body.T_base_sensor, f"{field}.T_base_sensor"),
    )


def cloud_parts(cloud: Cloud, where: str, number: int) -> list[Part]:
    """Makes a field of a cloud.

    Raises InvalidArgument for what the schema cannot express; the server checks the rest.
    """
    try:
        head = common_pb2.Cloud(
            fields=[field_of(f) for f in cloud.fields],
            point_step=cloud.point_step,
            stamp_ns=cloud.stamp_ns,
            frame_id=cloud.frame_id,
            T_map_sensor=pose(cloud.T_map_sensor, f"{where}.T_map_sensor"),
        )
        if cloud.deskew is not None:
            inner = f"{where}.deskew"
            end = pose(cloud.deskew.T_map_sensor_end, f"{inner}.T_map_sensor_end")
            head.deskew.CopyFrom(
                common_pb2.Deskew(
                    T_map_sensor_end=end, time_field=cloud.deskew.time_field,
                    start=cloud.deskew.start, end=cloud.deskew.end,
                )
            )  # fmt: skip
        if cloud.body is not None:
            head.body.CopyFrom(robot_body(cloud.body, f"{where}.body"))
        parts: list[Part] = [head.SerializeToString()]
        parts += enclosed(CLOUD_DATA, [data_of(cloud, where)])
        for i, sweep in enumerate(cloud.sweeps):
            inner = f"{where}.sweeps[{i}]"
            sweep_head = common_pb2.Sweep(
                fields=[field_of(f) for f in sweep.cloud.fields],
                point_step=sweep.cloud.point_step,
                T_cloud_sweep=pose(sweep.T_cloud_sweep, f"{inner}.T_cloud_sweep"),
                dt_s=sweep.dt_s,
            )
            data = enclosed(SWEEP_DATA, [data_of(sweep.cloud, inner)])
            parts += enclosed(CLOUD_SWEEPS, [sweep_head.SerializeToString(), *data])
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), where) from None
    return enclosed(number, parts)


def tensor_parts(number: int, dtype: DType, shape: tuple[int, ...], data: memoryview) -> list[Part]:
    """Makes a field of a tensor."""
    head = common_pb2.Tensor(dtype=dtype.name, shape=shape)
    return enclosed(number, [head.SerializeToString(), *enclosed(TENSOR_DATA, [data])])


def rows_parts(number: int, name: str, tensor: list[Part]) -> list[Part]:
    """Makes a field of a MapRows; its tensor is a field MAP_ROWS_ROWS."""
    head = hashmap_pb2.MapRows(name=name)
    return enclosed(number, [head.SerializeToString(), *tensor])


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a varint of more than ten bytes")


def fields_of(data: memoryview) -> Iterator[tuple[int, memoryview, memoryview | None]]:
    """Yields number, whole bytes and (where length-delimited) content of each field.

    Raises ValueError or IndexError for what is no protobuf message.
    """
    at = 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        kind = tag & 7
        content = None
        if kind == 0:
            _, at = read_varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == LENGTH_DELIMITED:
            n_bytes, at = read_varint(data, at)
            content = data[at : at + n_bytes]
            at += n_bytes
        else:
            raise ValueError(f"wire type {kind}")
        if at > len(data):
            raise ValueError("a field longer than its message")
        yield tag >> 3, data[start:at], content


def open_response(data: memoryview) -> tuple[rpc_pb2.Response, dict[str, memoryview]]:
    """The reply without the data of its tensors, and those by where the tensors are: "coords",
    "values[0].rows".

    Raises ValueError or IndexError for what is none of ours.
    """
    arrays: dict[str, memoryview] = {}
    rest: list[Part] = []
    for number, whole, content in fields_of(data):
        if number in WITH_TENSORS and content is not None:
            inner = without_arrays(content, WITH_TENSORS[number], "", arrays)
            rest += enclosed(number, inner)
        else:
            rest.append(whole)
    response = rpc_pb2.Response()
    try:
        response.ParseFromString(b"".join(rest))
    except Exception as e:  # DecodeError: another class in each of protobuf's backends
        raise ValueError(str(e)) from None
    return response, arrays


def without_arrays(
    data: memoryview, message: Any, where: str, arrays: dict[str, memoryview]
) -> list[Part]:
    """Returns the fields of a message (its descriptor) without what its tensors hold."""
    rest: list[Part] = []
    seen: dict[int, int] = {}
    for number, whole, content in fields_of(data):
        field = message.fields_by_number.get(number)
        kind = None if field is None else field.message_type
        if kind is None or content is None:
            rest.append(whole)
            continue
        index = seen.get(number, 0)
        seen[number] = index + 1
        path = f"{where}{field.name}"
        if kind is common_pb2.Tensor.DESCRIPTOR:
            rest += enclosed(number, without_data(content, path, arrays))
        elif holds_tensors(kind):  # in this schema, one of several
            inner = without_arrays(content, kind, f"{path}[{index}].", arrays)
            rest += enclosed(number, inner)
        else:
            rest.append(whole)
    return rest


def without_data(tensor: memoryview, path: str, arrays: dict[str, memoryview]) -> list[Part]:
    rest: list[Part] = []
    for number, whole, content in fields_of(tensor):
        if number == TENSOR_DATA and content is not None:
            arrays[path] = content
        else:
            rest.append(whole)
    return rest
