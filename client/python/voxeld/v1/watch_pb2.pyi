# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from voxeld.v1 import volume_pb2 as _volume_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
WATCH_BLOCKS: WatchKind
WATCH_CELLS: WatchKind
WATCH_CREATED: WatchKind
WATCH_DROPPED: WatchKind
WATCH_HEADS: WatchKind
WATCH_RESYNC: WatchKind
WATCH_UNCHANGED: WatchKind

class SceneWatchRequest(_message.Message):
    __slots__ = ["after", "box", "in_voxels", "level", "max_bytes", "name", "timeout_ms"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    after: WatchPoint
    box: _scene_pb2.SceneBox
    in_voxels: bool
    level: int
    max_bytes: int
    name: str
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., after: _Optional[_Union[WatchPoint, _Mapping]] = ..., level: _Optional[int] = ..., box: _Optional[_Union[_scene_pb2.SceneBox, _Mapping]] = ..., in_voxels: bool = ..., max_bytes: _Optional[int] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class SceneWatchResponse(_message.Message):
    __slots__ = ["cell_size_m", "cells", "changes", "dropped", "engine_ms", "frame_id", "from_version", "heads", "is_complete", "kind", "n_cells", "next", "origin", "to_version"]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    CELL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    N_CELLS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    cell_size_m: float
    cells: _common_pb2.Tensor
    changes: _common_pb2.Tensor
    dropped: _containers.RepeatedScalarFieldContainer[str]
    engine_ms: float
    frame_id: str
    from_version: int
    heads: _containers.RepeatedCompositeFieldContainer[WatchHead]
    is_complete: bool
    kind: WatchKind
    n_cells: int
    next: WatchPoint
    origin: _common_pb2.Vec3
    to_version: int
    def __init__(self, kind: _Optional[_Union[WatchKind, str]] = ..., next: _Optional[_Union[WatchPoint, _Mapping]] = ..., from_version: _Optional[int] = ..., to_version: _Optional[int] = ..., cells: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., changes: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_cells: _Optional[int] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., cell_size_m: _Optional[float] = ..., frame_id: _Optional[str] = ..., heads: _Optional[_Iterable[_Union[WatchHead, _Mapping]]] = ..., dropped: _Optional[_Iterable[str]] = ..., is_complete: bool = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeWatchHead(_message.Message):
    __slots__ = ["changed_ns", "generation", "name", "version"]
    CHANGED_NS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    changed_ns: int
    generation: int
    name: str
    version: int
    def __init__(self, name: _Optional[str] = ..., generation: _Optional[int] = ..., version: _Optional[int] = ..., changed_ns: _Optional[int] = ...) -> None: ...

class VolumeWatchRequest(_message.Message):
    __slots__ = ["after", "albedo", "box", "keys_only", "max_bytes", "min_weight", "name", "points", "timeout_ms"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    ALBEDO_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    after: WatchPoint
    albedo: bool
    box: _volume_pb2.VolumeBox
    keys_only: bool
    max_bytes: int
    min_weight: float
    name: str
    points: bool
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., after: _Optional[_Union[WatchPoint, _Mapping]] = ..., box: _Optional[_Union[_volume_pb2.VolumeBox, _Mapping]] = ..., min_weight: _Optional[float] = ..., points: bool = ..., albedo: bool = ..., keys_only: bool = ..., max_bytes: _Optional[int] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class VolumeWatchResponse(_message.Message):
    __slots__ = ["block", "blocks", "colours", "dropped", "engine_ms", "from_version", "heads", "is_complete", "kind", "labels", "n_blocks", "n_colours", "n_labels", "n_triangles", "n_vertices", "next", "normals", "origin", "to_version", "triangles", "vertices", "voxel_size_m"]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    COLOURS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_COLOURS_FIELD_NUMBER: _ClassVar[int]
    N_LABELS_FIELD_NUMBER: _ClassVar[int]
    N_TRIANGLES_FIELD_NUMBER: _ClassVar[int]
    N_VERTICES_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    TRIANGLES_FIELD_NUMBER: _ClassVar[int]
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    VOXEL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    block: int
    blocks: _common_pb2.Tensor
    colours: _common_pb2.Tensor
    dropped: _containers.RepeatedScalarFieldContainer[str]
    engine_ms: float
    from_version: int
    heads: _containers.RepeatedCompositeFieldContainer[VolumeWatchHead]
    is_complete: bool
    kind: WatchKind
    labels: _common_pb2.Tensor
    n_blocks: int
    n_colours: int
    n_labels: int
    n_triangles: int
    n_vertices: int
    next: WatchPoint
    normals: _common_pb2.Tensor
    origin: _common_pb2.Vec3
    to_version: int
    triangles: _common_pb2.Tensor
    vertices: _common_pb2.Tensor
    voxel_size_m: float
    def __init__(self, kind: _Optional[_Union[WatchKind, str]] = ..., next: _Optional[_Union[WatchPoint, _Mapping]] = ..., from_version: _Optional[int] = ..., to_version: _Optional[int] = ..., blocks: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., vertices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., voxel_size_m: _Optional[float] = ..., block: _Optional[int] = ..., heads: _Optional[_Iterable[_Union[VolumeWatchHead, _Mapping]]] = ..., dropped: _Optional[_Iterable[str]] = ..., is_complete: bool = ..., engine_ms: _Optional[float] = ..., colours: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., labels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., triangles: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_vertices: _Optional[int] = ..., n_triangles: _Optional[int] = ..., n_colours: _Optional[int] = ..., n_labels: _Optional[int] = ..., n_blocks: _Optional[int] = ...) -> None: ...

class WatchHead(_message.Message):
    __slots__ = ["changed_ns", "generation", "name", "version"]
    CHANGED_NS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    changed_ns: int
    generation: int
    name: str
    version: int
    def __init__(self, name: _Optional[str] = ..., generation: _Optional[int] = ..., version: _Optional[int] = ..., changed_ns: _Optional[int] = ...) -> None: ...

class WatchPoint(_message.Message):
    __slots__ = ["first", "generation", "to_version", "version"]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    first: int
    generation: int
    to_version: int
    version: int
    def __init__(self, generation: _Optional[int] = ..., version: _Optional[int] = ..., to_version: _Optional[int] = ..., first: _Optional[int] = ...) -> None: ...

class WatchKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
