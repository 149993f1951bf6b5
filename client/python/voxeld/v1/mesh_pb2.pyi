# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
MESH_CONSERVATIVE: MeshRule
MESH_THIN: MeshRule

class SceneImportMeshRequest(_message.Message):
    __slots__ = ["colours", "if_version", "in_voxels", "material", "materials", "name", "rule", "triangles", "vertices"]
    COLOURS_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    MATERIALS_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    TRIANGLES_FIELD_NUMBER: _ClassVar[int]
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    colours: _common_pb2.Tensor
    if_version: int
    in_voxels: bool
    material: int
    materials: _common_pb2.Tensor
    name: str
    rule: MeshRule
    triangles: _common_pb2.Tensor
    vertices: _common_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., vertices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., triangles: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., materials: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., material: _Optional[int] = ..., rule: _Optional[_Union[MeshRule, str]] = ..., in_voxels: bool = ..., if_version: _Optional[int] = ..., colours: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SceneImportMeshResponse(_message.Message):
    __slots__ = ["engine_ms", "n_added", "n_changed", "n_new_nodes", "n_non_finite", "n_outside", "n_voxels", "version"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_ADDED_FIELD_NUMBER: _ClassVar[int]
    N_CHANGED_FIELD_NUMBER: _ClassVar[int]
    N_NEW_NODES_FIELD_NUMBER: _ClassVar[int]
    N_NON_FINITE_FIELD_NUMBER: _ClassVar[int]
    N_OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    n_added: int
    n_changed: int
    n_new_nodes: int
    n_non_finite: int
    n_outside: int
    n_voxels: int
    version: int
    def __init__(self, version: _Optional[int] = ..., n_added: _Optional[int] = ..., n_changed: _Optional[int] = ..., n_new_nodes: _Optional[int] = ..., n_voxels: _Optional[int] = ..., n_outside: _Optional[int] = ..., n_non_finite: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class MeshRule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
