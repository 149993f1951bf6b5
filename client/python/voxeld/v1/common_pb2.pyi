# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

ABORTED: Code
ALREADY_EXISTS: Code
BFLOAT16: DType
CANCELLED: Code
DATA_LOSS: Code
DEADLINE_EXCEEDED: Code
DESCRIPTOR: _descriptor.FileDescriptor
DTYPE_UNSPECIFIED: DType
FAILED_PRECONDITION: Code
FLOAT16: DType
FLOAT32: DType
FLOAT64: DType
INT16: DType
INT32: DType
INT64: DType
INT8: DType
INTERNAL: Code
INVALID_ARGUMENT: Code
NOT_FOUND: Code
OK: Code
OUT_OF_RANGE: Code
PERMISSION_DENIED: Code
POSE_ESTIMATE: PoseSource
POSE_GIVEN: PoseSource
RESOURCE_EXHAUSTED: Code
UINT16: DType
UINT32: DType
UINT64: DType
UINT8: DType
UNAUTHENTICATED: Code
UNAVAILABLE: Code
UNIMPLEMENTED: Code
UNKNOWN: Code

class BodyBox(_message.Message):
    __slots__ = ["high", "low"]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    high: Vec3
    low: Vec3
    def __init__(self, low: _Optional[_Union[Vec3, _Mapping]] = ..., high: _Optional[_Union[Vec3, _Mapping]] = ...) -> None: ...

class Cloud(_message.Message):
    __slots__ = ["T_map_sensor", "body", "data", "deskew", "fields", "frame_id", "point_step", "stamp_ns", "sweeps"]
    BODY_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DESKEW_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    POINT_STEP_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    SWEEPS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor: Pose
    body: RobotBody
    data: bytes
    deskew: Deskew
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    frame_id: str
    point_step: int
    stamp_ns: int
    sweeps: _containers.RepeatedCompositeFieldContainer[Sweep]
    def __init__(self, fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ..., point_step: _Optional[int] = ..., data: _Optional[bytes] = ..., stamp_ns: _Optional[int] = ..., frame_id: _Optional[str] = ..., T_map_sensor: _Optional[_Union[Pose, _Mapping]] = ..., sweeps: _Optional[_Iterable[_Union[Sweep, _Mapping]]] = ..., deskew: _Optional[_Union[Deskew, _Mapping]] = ..., body: _Optional[_Union[RobotBody, _Mapping]] = ...) -> None: ...

class Deskew(_message.Message):
    __slots__ = ["T_map_sensor_end", "end", "start", "time_field"]
    END_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_END_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor_end: Pose
    end: float
    start: float
    time_field: str
    def __init__(self, T_map_sensor_end: _Optional[_Union[Pose, _Mapping]] = ..., time_field: _Optional[str] = ..., start: _Optional[float] = ..., end: _Optional[float] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ["bias", "count", "dtype", "name", "offset", "scale"]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    bias: float
    count: int
    dtype: DType
    name: str
    offset: int
    scale: float
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ..., dtype: _Optional[_Union[DType, str]] = ..., scale: _Optional[float] = ..., bias: _Optional[float] = ..., count: _Optional[int] = ...) -> None: ...

class Pose(_message.Message):
    __slots__ = ["rotation", "translation"]
    ROTATION_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    rotation: Quaternion
    translation: Vec3
    def __init__(self, translation: _Optional[_Union[Vec3, _Mapping]] = ..., rotation: _Optional[_Union[Quaternion, _Mapping]] = ...) -> None: ...

class Quaternion(_message.Message):
    __slots__ = ["w", "x", "y", "z"]
    W_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    Z_FIELD_NUMBER: _ClassVar[int]
    w: float
    x: float
    y: float
    z: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ..., z: _Optional[float] = ..., w: _Optional[float] = ...) -> None: ...

class RobotBody(_message.Message):
    __slots__ = ["T_base_sensor", "boxes", "min_range_m"]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    MIN_RANGE_M_FIELD_NUMBER: _ClassVar[int]
    T_BASE_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_base_sensor: Pose
    boxes: _containers.RepeatedCompositeFieldContainer[BodyBox]
    min_range_m: float
    def __init__(self, min_range_m: _Optional[float] = ..., boxes: _Optional[_Iterable[_Union[BodyBox, _Mapping]]] = ..., T_base_sensor: _Optional[_Union[Pose, _Mapping]] = ...) -> None: ...

class Sweep(_message.Message):
    __slots__ = ["T_cloud_sweep", "data", "dt_s", "fields", "point_step"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DT_S_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    POINT_STEP_FIELD_NUMBER: _ClassVar[int]
    T_CLOUD_SWEEP_FIELD_NUMBER: _ClassVar[int]
    T_cloud_sweep: Pose
    data: bytes
    dt_s: float
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    point_step: int
    def __init__(self, fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ..., point_step: _Optional[int] = ..., data: _Optional[bytes] = ..., T_cloud_sweep: _Optional[_Union[Pose, _Mapping]] = ..., dt_s: _Optional[float] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ["data", "dtype", "shape", "values"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    dtype: DType
    shape: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, dtype: _Optional[_Union[DType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class Vec3(_message.Message):
    __slots__ = ["x", "y", "z"]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    Z_FIELD_NUMBER: _ClassVar[int]
    x: float
    y: float
    z: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ..., z: _Optional[float] = ...) -> None: ...

class Code(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class PoseSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
