# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
ODOMETRY_FOUND: OdometryReason
ODOMETRY_GEMAN_MCCLURE: OdometryRobust
ODOMETRY_HUBER: OdometryRobust
ODOMETRY_LOST: OdometryStatus
ODOMETRY_MOVED_TOO_FAR: OdometryReason
ODOMETRY_NOT_CONVERGED: OdometryReason
ODOMETRY_OK: OdometryStatus
ODOMETRY_POINT_TO_PLANE: OdometryMethod
ODOMETRY_POINT_TO_POINT: OdometryMethod
ODOMETRY_SINGULAR: OdometryReason
ODOMETRY_SQUARES: OdometryRobust
ODOMETRY_TOO_FEW_INLIERS: OdometryReason
ODOMETRY_TOO_FEW_POINTS: OdometryReason

class OdometryCreateRequest(_message.Message):
    __slots__ = ["initial", "initial_threshold_m", "inlier_m", "max_bytes", "max_iterations", "max_points", "max_range_m", "max_rotation_deg", "max_translation_m", "method", "min_constraint", "min_fitness", "min_motion_m", "min_range_m", "name", "robust", "ttl_s", "voxel_size_m"]
    INITIAL_FIELD_NUMBER: _ClassVar[int]
    INITIAL_THRESHOLD_M_FIELD_NUMBER: _ClassVar[int]
    INLIER_M_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_POINTS_FIELD_NUMBER: _ClassVar[int]
    MAX_RANGE_M_FIELD_NUMBER: _ClassVar[int]
    MAX_ROTATION_DEG_FIELD_NUMBER: _ClassVar[int]
    MAX_TRANSLATION_M_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    MIN_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    MIN_FITNESS_FIELD_NUMBER: _ClassVar[int]
    MIN_MOTION_M_FIELD_NUMBER: _ClassVar[int]
    MIN_RANGE_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROBUST_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    VOXEL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    initial: _common_pb2.Pose
    initial_threshold_m: float
    inlier_m: float
    max_bytes: int
    max_iterations: int
    max_points: int
    max_range_m: float
    max_rotation_deg: float
    max_translation_m: float
    method: OdometryMethod
    min_constraint: float
    min_fitness: float
    min_motion_m: float
    min_range_m: float
    name: str
    robust: OdometryRobust
    ttl_s: float
    voxel_size_m: float
    def __init__(self, name: _Optional[str] = ..., max_range_m: _Optional[float] = ..., min_range_m: _Optional[float] = ..., voxel_size_m: _Optional[float] = ..., max_points: _Optional[int] = ..., method: _Optional[_Union[OdometryMethod, str]] = ..., robust: _Optional[_Union[OdometryRobust, str]] = ..., initial_threshold_m: _Optional[float] = ..., min_motion_m: _Optional[float] = ..., max_iterations: _Optional[int] = ..., inlier_m: _Optional[float] = ..., min_fitness: _Optional[float] = ..., min_constraint: _Optional[float] = ..., max_translation_m: _Optional[float] = ..., max_rotation_deg: _Optional[float] = ..., max_bytes: _Optional[int] = ..., ttl_s: _Optional[float] = ..., initial: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ...) -> None: ...

class OdometryCreateResponse(_message.Message):
    __slots__ = ["existed", "odometry"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    ODOMETRY_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    odometry: OdometryInfo
    def __init__(self, odometry: _Optional[_Union[OdometryInfo, _Mapping]] = ..., existed: bool = ...) -> None: ...

class OdometryDropRequest(_message.Message):
    __slots__ = ["missing_ok", "name"]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    missing_ok: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., missing_ok: bool = ...) -> None: ...

class OdometryDropResponse(_message.Message):
    __slots__ = ["existed"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: bool = ...) -> None: ...

class OdometryGetRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class OdometryGetResponse(_message.Message):
    __slots__ = ["odometry"]
    ODOMETRY_FIELD_NUMBER: _ClassVar[int]
    odometry: OdometryInfo
    def __init__(self, odometry: _Optional[_Union[OdometryInfo, _Mapping]] = ...) -> None: ...

class OdometryInfo(_message.Message):
    __slots__ = ["T_map_sensor", "created_ns", "generation", "initial_threshold_m", "inlier_m", "max_bytes", "max_iterations", "max_points", "max_range_m", "max_rotation_deg", "max_translation_m", "method", "min_constraint", "min_fitness", "min_motion_m", "min_range_m", "n_bytes", "n_lost", "n_lost_in_a_row", "n_scans", "n_voxels", "name", "owner", "robust", "stamp_ns", "threshold_m", "ttl_left_s", "ttl_s", "voxel_size_m"]
    CREATED_NS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    INITIAL_THRESHOLD_M_FIELD_NUMBER: _ClassVar[int]
    INLIER_M_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_POINTS_FIELD_NUMBER: _ClassVar[int]
    MAX_RANGE_M_FIELD_NUMBER: _ClassVar[int]
    MAX_ROTATION_DEG_FIELD_NUMBER: _ClassVar[int]
    MAX_TRANSLATION_M_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    MIN_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    MIN_FITNESS_FIELD_NUMBER: _ClassVar[int]
    MIN_MOTION_M_FIELD_NUMBER: _ClassVar[int]
    MIN_RANGE_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_LOST_FIELD_NUMBER: _ClassVar[int]
    N_LOST_IN_A_ROW_FIELD_NUMBER: _ClassVar[int]
    N_SCANS_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ROBUST_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_M_FIELD_NUMBER: _ClassVar[int]
    TTL_LEFT_S_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor: _common_pb2.Pose
    VOXEL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    created_ns: int
    generation: int
    initial_threshold_m: float
    inlier_m: float
    max_bytes: int
    max_iterations: int
    max_points: int
    max_range_m: float
    max_rotation_deg: float
    max_translation_m: float
    method: OdometryMethod
    min_constraint: float
    min_fitness: float
    min_motion_m: float
    min_range_m: float
    n_bytes: int
    n_lost: int
    n_lost_in_a_row: int
    n_scans: int
    n_voxels: int
    name: str
    owner: str
    robust: OdometryRobust
    stamp_ns: int
    threshold_m: float
    ttl_left_s: float
    ttl_s: float
    voxel_size_m: float
    def __init__(self, name: _Optional[str] = ..., max_range_m: _Optional[float] = ..., min_range_m: _Optional[float] = ..., voxel_size_m: _Optional[float] = ..., max_points: _Optional[int] = ..., method: _Optional[_Union[OdometryMethod, str]] = ..., robust: _Optional[_Union[OdometryRobust, str]] = ..., initial_threshold_m: _Optional[float] = ..., min_motion_m: _Optional[float] = ..., max_iterations: _Optional[int] = ..., inlier_m: _Optional[float] = ..., min_fitness: _Optional[float] = ..., min_constraint: _Optional[float] = ..., max_translation_m: _Optional[float] = ..., max_rotation_deg: _Optional[float] = ..., max_bytes: _Optional[int] = ..., ttl_s: _Optional[float] = ..., ttl_left_s: _Optional[float] = ..., owner: _Optional[str] = ..., generation: _Optional[int] = ..., created_ns: _Optional[int] = ..., T_map_sensor: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., threshold_m: _Optional[float] = ..., n_scans: _Optional[int] = ..., n_lost: _Optional[int] = ..., n_lost_in_a_row: _Optional[int] = ..., n_voxels: _Optional[int] = ..., n_bytes: _Optional[int] = ..., stamp_ns: _Optional[int] = ...) -> None: ...

class OdometryListRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class OdometryListResponse(_message.Message):
    __slots__ = ["odometries"]
    ODOMETRIES_FIELD_NUMBER: _ClassVar[int]
    odometries: _containers.RepeatedCompositeFieldContainer[OdometryInfo]
    def __init__(self, odometries: _Optional[_Iterable[_Union[OdometryInfo, _Mapping]]] = ...) -> None: ...

class OdometryRegisterRequest(_message.Message):
    __slots__ = ["cloud", "name"]
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    cloud: _common_pb2.Cloud
    name: str
    def __init__(self, name: _Optional[str] = ..., cloud: _Optional[_Union[_common_pb2.Cloud, _Mapping]] = ...) -> None: ...

class OdometryRegisterResponse(_message.Message):
    __slots__ = ["T_map_sensor", "T_map_sensor_begin", "constraint", "covariance", "engine_ms", "fitness", "is_first", "n_inliers", "n_iterations", "n_lost", "n_map", "n_points", "n_registered", "n_used", "reason", "rmse_m", "stamp_ns", "status", "threshold_m"]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    COVARIANCE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    IS_FIRST_FIELD_NUMBER: _ClassVar[int]
    N_INLIERS_FIELD_NUMBER: _ClassVar[int]
    N_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    N_LOST_FIELD_NUMBER: _ClassVar[int]
    N_MAP_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_REGISTERED_FIELD_NUMBER: _ClassVar[int]
    N_USED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RMSE_M_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_M_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_BEGIN_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor: _common_pb2.Pose
    T_map_sensor_begin: _common_pb2.Pose
    constraint: float
    covariance: _common_pb2.Tensor
    engine_ms: float
    fitness: float
    is_first: bool
    n_inliers: int
    n_iterations: int
    n_lost: int
    n_map: int
    n_points: int
    n_registered: int
    n_used: int
    reason: OdometryReason
    rmse_m: float
    stamp_ns: int
    status: OdometryStatus
    threshold_m: float
    def __init__(self, status: _Optional[_Union[OdometryStatus, str]] = ..., reason: _Optional[_Union[OdometryReason, str]] = ..., is_first: bool = ..., T_map_sensor: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., T_map_sensor_begin: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., covariance: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., fitness: _Optional[float] = ..., constraint: _Optional[float] = ..., rmse_m: _Optional[float] = ..., threshold_m: _Optional[float] = ..., n_points: _Optional[int] = ..., n_used: _Optional[int] = ..., n_map: _Optional[int] = ..., n_registered: _Optional[int] = ..., n_inliers: _Optional[int] = ..., n_iterations: _Optional[int] = ..., n_lost: _Optional[int] = ..., stamp_ns: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class OdometryResetRequest(_message.Message):
    __slots__ = ["initial", "name"]
    INITIAL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    initial: _common_pb2.Pose
    name: str
    def __init__(self, name: _Optional[str] = ..., initial: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ...) -> None: ...

class OdometryResetResponse(_message.Message):
    __slots__ = ["odometry"]
    ODOMETRY_FIELD_NUMBER: _ClassVar[int]
    odometry: OdometryInfo
    def __init__(self, odometry: _Optional[_Union[OdometryInfo, _Mapping]] = ...) -> None: ...

class OdometryMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class OdometryRobust(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class OdometryStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class OdometryReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
