# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
SCENE_DECAYED: SceneVersionKind
SCENE_EDITED: SceneVersionKind
SCENE_INTEGRATED: SceneVersionKind
SCENE_MADE: SceneVersionKind
SCENE_REDONE: SceneVersionKind
SCENE_UNDONE: SceneVersionKind

class SceneBranchRequest(_message.Message):
    __slots__ = ["at", "name", "new_name"]
    AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEW_NAME_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    name: str
    new_name: str
    def __init__(self, name: _Optional[str] = ..., new_name: _Optional[str] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ...) -> None: ...

class SceneBranchResponse(_message.Message):
    __slots__ = ["of_version", "scene"]
    OF_VERSION_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    of_version: int
    scene: _scene_pb2.SceneInfo
    def __init__(self, scene: _Optional[_Union[_scene_pb2.SceneInfo, _Mapping]] = ..., of_version: _Optional[int] = ...) -> None: ...

class SceneCollectRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SceneCollectResponse(_message.Message):
    __slots__ = ["engine_ms", "longest_slice_ms", "n_bytes_after", "n_bytes_before", "n_nodes_after", "n_nodes_before", "n_slices"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_SLICE_MS_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_AFTER_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    N_NODES_AFTER_FIELD_NUMBER: _ClassVar[int]
    N_NODES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    N_SLICES_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    longest_slice_ms: float
    n_bytes_after: int
    n_bytes_before: int
    n_nodes_after: int
    n_nodes_before: int
    n_slices: int
    def __init__(self, n_bytes_before: _Optional[int] = ..., n_bytes_after: _Optional[int] = ..., n_nodes_before: _Optional[int] = ..., n_nodes_after: _Optional[int] = ..., n_slices: _Optional[int] = ..., longest_slice_ms: _Optional[float] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SceneDiffRequest(_message.Message):
    __slots__ = ["box", "first", "in_voxels", "level", "limit", "name", "to", "to_name"]
    BOX_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TO_NAME_FIELD_NUMBER: _ClassVar[int]
    box: _scene_pb2.SceneBox
    first: int
    in_voxels: bool
    level: int
    limit: int
    name: str
    to: _scene_pb2.SceneAt
    to_name: str
    def __init__(self, name: _Optional[str] = ..., to: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ..., to_name: _Optional[str] = ..., level: _Optional[int] = ..., box: _Optional[_Union[_scene_pb2.SceneBox, _Mapping]] = ..., in_voxels: bool = ..., first: _Optional[int] = ..., limit: _Optional[int] = ..., **kwargs) -> None: ...

class SceneDiffResponse(_message.Message):
    __slots__ = ["cell_size_m", "cells", "changes", "engine_ms", "frame_id", "from_version", "generation", "n_cells", "origin", "to_version"]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    CELL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    N_CELLS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    cell_size_m: float
    cells: _common_pb2.Tensor
    changes: _common_pb2.Tensor
    engine_ms: float
    frame_id: str
    from_version: int
    generation: int
    n_cells: int
    origin: _common_pb2.Vec3
    to_version: int
    def __init__(self, from_version: _Optional[int] = ..., to_version: _Optional[int] = ..., generation: _Optional[int] = ..., cells: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., changes: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_cells: _Optional[int] = ..., engine_ms: _Optional[float] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., cell_size_m: _Optional[float] = ..., frame_id: _Optional[str] = ...) -> None: ...

class SceneLogRequest(_message.Message):
    __slots__ = ["below", "limit", "name"]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    below: int
    limit: int
    name: str
    def __init__(self, name: _Optional[str] = ..., below: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class SceneLogResponse(_message.Message):
    __slots__ = ["generation", "n_sharing", "oldest", "snapshots", "version", "versions"]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    N_SHARING_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    n_sharing: int
    oldest: int
    snapshots: _containers.RepeatedCompositeFieldContainer[SceneSnapshot]
    version: int
    versions: _containers.RepeatedCompositeFieldContainer[SceneVersion]
    def __init__(self, versions: _Optional[_Iterable[_Union[SceneVersion, _Mapping]]] = ..., snapshots: _Optional[_Iterable[_Union[SceneSnapshot, _Mapping]]] = ..., version: _Optional[int] = ..., generation: _Optional[int] = ..., oldest: _Optional[int] = ..., n_sharing: _Optional[int] = ...) -> None: ...

class SceneRedoRequest(_message.Message):
    __slots__ = ["if_version", "name", "of_version"]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OF_VERSION_FIELD_NUMBER: _ClassVar[int]
    if_version: int
    name: str
    of_version: int
    def __init__(self, name: _Optional[str] = ..., of_version: _Optional[int] = ..., if_version: _Optional[int] = ...) -> None: ...

class SceneRedoResponse(_message.Message):
    __slots__ = ["change", "engine_ms", "of_version"]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    OF_VERSION_FIELD_NUMBER: _ClassVar[int]
    change: _scene_pb2.SceneChange
    engine_ms: float
    of_version: int
    def __init__(self, change: _Optional[_Union[_scene_pb2.SceneChange, _Mapping]] = ..., of_version: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SceneSnapshot(_message.Message):
    __slots__ = ["by", "name", "taken_ns", "version", "version_ns"]
    BY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TAKEN_NS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSION_NS_FIELD_NUMBER: _ClassVar[int]
    by: str
    name: str
    taken_ns: int
    version: int
    version_ns: int
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., version_ns: _Optional[int] = ..., taken_ns: _Optional[int] = ..., by: _Optional[str] = ...) -> None: ...

class SceneSnapshotRequest(_message.Message):
    __slots__ = ["at", "drop", "name", "replace", "snapshot"]
    AT_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    drop: bool
    name: str
    replace: bool
    snapshot: str
    def __init__(self, name: _Optional[str] = ..., snapshot: _Optional[str] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ..., replace: bool = ..., drop: bool = ...) -> None: ...

class SceneSnapshotResponse(_message.Message):
    __slots__ = ["snapshot"]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: SceneSnapshot
    def __init__(self, snapshot: _Optional[_Union[SceneSnapshot, _Mapping]] = ...) -> None: ...

class SceneUndoRequest(_message.Message):
    __slots__ = ["if_version", "name", "of_version"]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OF_VERSION_FIELD_NUMBER: _ClassVar[int]
    if_version: int
    name: str
    of_version: int
    def __init__(self, name: _Optional[str] = ..., of_version: _Optional[int] = ..., if_version: _Optional[int] = ...) -> None: ...

class SceneUndoResponse(_message.Message):
    __slots__ = ["change", "engine_ms", "of_version"]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    OF_VERSION_FIELD_NUMBER: _ClassVar[int]
    change: _scene_pb2.SceneChange
    engine_ms: float
    of_version: int
    def __init__(self, change: _Optional[_Union[_scene_pb2.SceneChange, _Mapping]] = ..., of_version: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SceneVerifyRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SceneVerifyResponse(_message.Message):
    __slots__ = ["digest", "engine_ms", "n_nodes", "n_roots", "n_versions"]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    N_ROOTS_FIELD_NUMBER: _ClassVar[int]
    N_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    digest: str
    engine_ms: float
    n_nodes: int
    n_roots: int
    n_versions: int
    def __init__(self, n_versions: _Optional[int] = ..., n_roots: _Optional[int] = ..., n_nodes: _Optional[int] = ..., digest: _Optional[str] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SceneVersion(_message.Message):
    __slots__ = ["by", "client_id", "kind", "n_added", "n_changed", "n_freed", "n_removed", "of_version", "stamp_ns", "undone_by", "version"]
    BY_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    N_ADDED_FIELD_NUMBER: _ClassVar[int]
    N_CHANGED_FIELD_NUMBER: _ClassVar[int]
    N_FREED_FIELD_NUMBER: _ClassVar[int]
    N_REMOVED_FIELD_NUMBER: _ClassVar[int]
    OF_VERSION_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    UNDONE_BY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    by: str
    client_id: str
    kind: SceneVersionKind
    n_added: int
    n_changed: int
    n_freed: int
    n_removed: int
    of_version: int
    stamp_ns: int
    undone_by: int
    version: int
    def __init__(self, version: _Optional[int] = ..., kind: _Optional[_Union[SceneVersionKind, str]] = ..., of_version: _Optional[int] = ..., stamp_ns: _Optional[int] = ..., by: _Optional[str] = ..., client_id: _Optional[str] = ..., n_added: _Optional[int] = ..., n_removed: _Optional[int] = ..., n_changed: _Optional[int] = ..., n_freed: _Optional[int] = ..., undone_by: _Optional[int] = ...) -> None: ...

class SceneVersionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
