# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
FIELD_NEAREST: FieldInterpolation
FIELD_TO_CENTRE: FieldTo
FIELD_TO_SURFACE: FieldTo
FIELD_TRILINEAR: FieldInterpolation
FIELD_UNKNOWN_FREE: FieldUnknown
FIELD_UNKNOWN_IGNORED: FieldUnknown
FIELD_UNKNOWN_OCCUPIED: FieldUnknown

class SceneCollideRequest(_message.Message):
    __slots__ = ["at", "boxes", "capsules", "max_distance_m", "n_steps", "name", "poses", "robot", "spheres", "unknown"]
    AT_FIELD_NUMBER: _ClassVar[int]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    CAPSULES_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_STEPS_FIELD_NUMBER: _ClassVar[int]
    POSES_FIELD_NUMBER: _ClassVar[int]
    ROBOT_FIELD_NUMBER: _ClassVar[int]
    SPHERES_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    boxes: _common_pb2.Tensor
    capsules: _common_pb2.Tensor
    max_distance_m: float
    n_steps: int
    name: str
    poses: _common_pb2.Tensor
    robot: _common_pb2.Tensor
    spheres: _common_pb2.Tensor
    unknown: FieldUnknown
    def __init__(self, name: _Optional[str] = ..., spheres: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., boxes: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., capsules: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., poses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., robot: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_steps: _Optional[int] = ..., max_distance_m: _Optional[float] = ..., unknown: _Optional[_Union[FieldUnknown, str]] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ...) -> None: ...

class SceneCollideResponse(_message.Message):
    __slots__ = ["clearance", "first", "hits", "max_distance_m", "n_hits", "seen"]
    CLEARANCE_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    N_HITS_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    clearance: _common_pb2.Tensor
    first: _common_pb2.Tensor
    hits: _common_pb2.Tensor
    max_distance_m: float
    n_hits: int
    seen: _scene_pb2.SceneSeen
    def __init__(self, seen: _Optional[_Union[_scene_pb2.SceneSeen, _Mapping]] = ..., hits: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., first: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., clearance: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_hits: _Optional[int] = ..., max_distance_m: _Optional[float] = ...) -> None: ...

class SceneDistanceRequest(_message.Message):
    __slots__ = ["at", "interpolation", "max_distance_m", "name", "points", "to", "unknown"]
    AT_FIELD_NUMBER: _ClassVar[int]
    INTERPOLATION_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    interpolation: FieldInterpolation
    max_distance_m: float
    name: str
    points: _common_pb2.Tensor
    to: FieldTo
    unknown: FieldUnknown
    def __init__(self, name: _Optional[str] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., max_distance_m: _Optional[float] = ..., unknown: _Optional[_Union[FieldUnknown, str]] = ..., interpolation: _Optional[_Union[FieldInterpolation, str]] = ..., to: _Optional[_Union[FieldTo, str]] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ...) -> None: ...

class SceneDistanceResponse(_message.Message):
    __slots__ = ["distances", "gradients", "max_distance_m", "n_outside", "seen", "voxels"]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    N_OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    VOXELS_FIELD_NUMBER: _ClassVar[int]
    distances: _common_pb2.Tensor
    gradients: _common_pb2.Tensor
    max_distance_m: float
    n_outside: int
    seen: _scene_pb2.SceneSeen
    voxels: _common_pb2.Tensor
    def __init__(self, seen: _Optional[_Union[_scene_pb2.SceneSeen, _Mapping]] = ..., distances: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., gradients: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., voxels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., max_distance_m: _Optional[float] = ..., n_outside: _Optional[int] = ...) -> None: ...

class SceneFieldRequest(_message.Message):
    __slots__ = ["at", "box", "in_voxels", "max_distance_m", "name", "unknown"]
    AT_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    box: _scene_pb2.SceneBox
    in_voxels: bool
    max_distance_m: float
    name: str
    unknown: FieldUnknown
    def __init__(self, name: _Optional[str] = ..., box: _Optional[_Union[_scene_pb2.SceneBox, _Mapping]] = ..., in_voxels: bool = ..., max_distance_m: _Optional[float] = ..., unknown: _Optional[_Union[FieldUnknown, str]] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ...) -> None: ...

class SceneFieldResponse(_message.Message):
    __slots__ = ["distances", "max_distance_m", "n_x", "n_y", "n_z", "origin", "seen", "voxel_size_m"]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    N_X_FIELD_NUMBER: _ClassVar[int]
    N_Y_FIELD_NUMBER: _ClassVar[int]
    N_Z_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    VOXEL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    distances: _common_pb2.Tensor
    max_distance_m: float
    n_x: int
    n_y: int
    n_z: int
    origin: _common_pb2.Vec3
    seen: _scene_pb2.SceneSeen
    voxel_size_m: float
    def __init__(self, seen: _Optional[_Union[_scene_pb2.SceneSeen, _Mapping]] = ..., distances: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., voxel_size_m: _Optional[float] = ..., max_distance_m: _Optional[float] = ..., n_x: _Optional[int] = ..., n_y: _Optional[int] = ..., n_z: _Optional[int] = ...) -> None: ...

class FieldUnknown(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class FieldInterpolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class FieldTo(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
