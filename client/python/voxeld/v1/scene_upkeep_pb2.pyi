# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SceneDecayRequest(_message.Message):
    __slots__ = ["box", "elapsed_s", "factor", "half_life_s", "if_version", "in_voxels", "keep_centre", "keep_radius", "name", "step", "until_ns"]
    BOX_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_S_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_S_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    KEEP_CENTRE_FIELD_NUMBER: _ClassVar[int]
    KEEP_RADIUS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    box: _scene_pb2.SceneBox
    elapsed_s: float
    factor: float
    half_life_s: float
    if_version: int
    in_voxels: bool
    keep_centre: _common_pb2.Vec3
    keep_radius: float
    name: str
    step: float
    until_ns: int
    def __init__(self, name: _Optional[str] = ..., factor: _Optional[float] = ..., step: _Optional[float] = ..., half_life_s: _Optional[float] = ..., elapsed_s: _Optional[float] = ..., until_ns: _Optional[int] = ..., box: _Optional[_Union[_scene_pb2.SceneBox, _Mapping]] = ..., keep_centre: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., keep_radius: _Optional[float] = ..., in_voxels: bool = ..., if_version: _Optional[int] = ...) -> None: ...

class SceneDecayResponse(_message.Message):
    __slots__ = ["decayed_ns", "elapsed_s", "engine_ms", "factor", "n_removed", "step", "version"]
    DECAYED_NS_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_S_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    N_REMOVED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    decayed_ns: int
    elapsed_s: float
    engine_ms: float
    factor: float
    n_removed: int
    step: float
    version: int
    def __init__(self, version: _Optional[int] = ..., n_removed: _Optional[int] = ..., factor: _Optional[float] = ..., step: _Optional[float] = ..., elapsed_s: _Optional[float] = ..., decayed_ns: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SceneLogOddsAtRequest(_message.Message):
    __slots__ = ["name", "points"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    points: _common_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SceneLogOddsAtResponse(_message.Message):
    __slots__ = ["engine_ms", "generation", "occupied_steps", "step", "steps", "version"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    OCCUPIED_STEPS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    generation: int
    occupied_steps: int
    step: float
    steps: _common_pb2.Tensor
    version: int
    def __init__(self, version: _Optional[int] = ..., generation: _Optional[int] = ..., engine_ms: _Optional[float] = ..., steps: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., step: _Optional[float] = ..., occupied_steps: _Optional[int] = ...) -> None: ...
