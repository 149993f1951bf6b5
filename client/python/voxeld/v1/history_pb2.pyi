# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from voxeld.v1 import scene_version_pb2 as _scene_version_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SceneChangedRequest(_message.Message):
    __slots__ = ["at", "name", "points"]
    AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    name: str
    points: _common_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ...) -> None: ...

class SceneChangedResponse(_message.Message):
    __slots__ = ["engine_ms", "generation", "made_by", "oldest", "version", "versions"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    MADE_BY_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    generation: int
    made_by: _containers.RepeatedCompositeFieldContainer[_scene_version_pb2.SceneVersion]
    oldest: int
    version: int
    versions: _common_pb2.Tensor
    def __init__(self, version: _Optional[int] = ..., oldest: _Optional[int] = ..., generation: _Optional[int] = ..., engine_ms: _Optional[float] = ..., versions: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., made_by: _Optional[_Iterable[_Union[_scene_version_pb2.SceneVersion, _Mapping]]] = ...) -> None: ...
