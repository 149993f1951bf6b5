# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
MAP_ADD: MapCombine
MAP_FSYNC_ALWAYS: MapFsync
MAP_FSYNC_EVERYSEC: MapFsync
MAP_FSYNC_OFF: MapFsync
MAP_MAX: MapCombine
MAP_MIN: MapCombine
MAP_PLY: MapFormat
MAP_SET: MapCombine
MAP_TENSORS: MapFormat

class MapArray(_message.Message):
    __slots__ = ["dtype", "n_elements", "name"]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    dtype: _common_pb2.DType
    n_elements: int
    name: str
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[_Union[_common_pb2.DType, str]] = ..., n_elements: _Optional[int] = ...) -> None: ...

class MapCreateRequest(_message.Message):
    __slots__ = ["capacity", "durable", "fsync", "journal_max_bytes", "lattice", "max_bytes", "name", "spec", "ttl_s"]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LATTICE_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    capacity: int
    durable: bool
    fsync: MapFsync
    journal_max_bytes: int
    lattice: MapLattice
    max_bytes: int
    name: str
    spec: MapSpec
    ttl_s: float
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[MapSpec, _Mapping]] = ..., capacity: _Optional[int] = ..., max_bytes: _Optional[int] = ..., ttl_s: _Optional[float] = ..., lattice: _Optional[_Union[MapLattice, _Mapping]] = ..., durable: bool = ..., fsync: _Optional[_Union[MapFsync, str]] = ..., journal_max_bytes: _Optional[int] = ...) -> None: ...

class MapCreateResponse(_message.Message):
    __slots__ = ["existed", "map"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    map: MapInfo
    def __init__(self, existed: bool = ..., map: _Optional[_Union[MapInfo, _Mapping]] = ...) -> None: ...

class MapDropRequest(_message.Message):
    __slots__ = ["missing_ok", "name"]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    missing_ok: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., missing_ok: bool = ...) -> None: ...

class MapDropResponse(_message.Message):
    __slots__ = ["existed"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: bool = ...) -> None: ...

class MapEraseRequest(_message.Message):
    __slots__ = ["all", "counts_only", "keys", "name"]
    ALL_FIELD_NUMBER: _ClassVar[int]
    COUNTS_ONLY_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    all: bool
    counts_only: bool
    keys: _common_pb2.Tensor
    name: str
    def __init__(self, name: _Optional[str] = ..., keys: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., all: bool = ..., counts_only: bool = ...) -> None: ...

class MapEraseResponse(_message.Message):
    __slots__ = ["engine_ms", "erase_epoch", "erased", "n_entries", "n_erased"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    ERASED_FIELD_NUMBER: _ClassVar[int]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    N_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    N_ERASED_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    erase_epoch: int
    erased: _common_pb2.Tensor
    n_entries: int
    n_erased: int
    def __init__(self, erased: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_erased: _Optional[int] = ..., n_entries: _Optional[int] = ..., erase_epoch: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class MapExportRequest(_message.Message):
    __slots__ = ["first", "format", "keys_only", "limit", "name", "values"]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    first: int
    format: MapFormat
    keys_only: bool
    limit: int
    name: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., format: _Optional[_Union[MapFormat, str]] = ..., values: _Optional[_Iterable[str]] = ..., keys_only: bool = ..., first: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class MapExportResponse(_message.Message):
    __slots__ = ["erase_epoch", "indices", "keys", "lattice", "n_entries", "ply", "values"]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LATTICE_FIELD_NUMBER: _ClassVar[int]
    N_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    PLY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    erase_epoch: int
    indices: _common_pb2.Tensor
    keys: _common_pb2.Tensor
    lattice: MapLattice
    n_entries: int
    ply: bytes
    values: _containers.RepeatedCompositeFieldContainer[MapRows]
    def __init__(self, indices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., keys: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., values: _Optional[_Iterable[_Union[MapRows, _Mapping]]] = ..., ply: _Optional[bytes] = ..., n_entries: _Optional[int] = ..., erase_epoch: _Optional[int] = ..., lattice: _Optional[_Union[MapLattice, _Mapping]] = ...) -> None: ...

class MapFindRequest(_message.Message):
    __slots__ = ["erase_epoch", "indices", "keys", "name", "neighbours", "return_keys", "values"]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    RETURN_KEYS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    erase_epoch: int
    indices: _common_pb2.Tensor
    keys: _common_pb2.Tensor
    name: str
    neighbours: int
    return_keys: bool
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., keys: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., indices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., erase_epoch: _Optional[int] = ..., values: _Optional[_Iterable[str]] = ..., neighbours: _Optional[int] = ..., return_keys: bool = ...) -> None: ...

class MapFindResponse(_message.Message):
    __slots__ = ["engine_ms", "erase_epoch", "found", "indices", "keys", "n_found", "neighbours", "values"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    N_FOUND_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    erase_epoch: int
    found: _common_pb2.Tensor
    indices: _common_pb2.Tensor
    keys: _common_pb2.Tensor
    n_found: int
    neighbours: _common_pb2.Tensor
    values: _containers.RepeatedCompositeFieldContainer[MapRows]
    def __init__(self, indices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., found: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_found: _Optional[int] = ..., values: _Optional[_Iterable[_Union[MapRows, _Mapping]]] = ..., neighbours: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., erase_epoch: _Optional[int] = ..., engine_ms: _Optional[float] = ..., keys: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class MapGetRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class MapGetResponse(_message.Message):
    __slots__ = ["map"]
    MAP_FIELD_NUMBER: _ClassVar[int]
    map: MapInfo
    def __init__(self, map: _Optional[_Union[MapInfo, _Mapping]] = ...) -> None: ...

class MapInfo(_message.Message):
    __slots__ = ["capacity", "created_ns", "durable", "erase_epoch", "fsync", "generation", "index_bytes_per_entry", "journal_max_bytes", "lattice", "load", "max_bytes", "max_probes", "mean_probes", "n_bytes", "n_entries", "name", "owner", "spec", "ttl_left_s", "ttl_s", "unavailable"]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CREATED_NS_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    INDEX_BYTES_PER_ENTRY_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LATTICE_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PROBES_FIELD_NUMBER: _ClassVar[int]
    MEAN_PROBES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    TTL_LEFT_S_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    capacity: int
    created_ns: int
    durable: bool
    erase_epoch: int
    fsync: MapFsync
    generation: int
    index_bytes_per_entry: float
    journal_max_bytes: int
    lattice: MapLattice
    load: float
    max_bytes: int
    max_probes: int
    mean_probes: float
    n_bytes: int
    n_entries: int
    name: str
    owner: str
    spec: MapSpec
    ttl_left_s: float
    ttl_s: float
    unavailable: bool
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[MapSpec, _Mapping]] = ..., n_entries: _Optional[int] = ..., capacity: _Optional[int] = ..., n_bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ..., erase_epoch: _Optional[int] = ..., generation: _Optional[int] = ..., ttl_s: _Optional[float] = ..., ttl_left_s: _Optional[float] = ..., owner: _Optional[str] = ..., created_ns: _Optional[int] = ..., lattice: _Optional[_Union[MapLattice, _Mapping]] = ..., load: _Optional[float] = ..., mean_probes: _Optional[float] = ..., max_probes: _Optional[int] = ..., index_bytes_per_entry: _Optional[float] = ..., durable: bool = ..., fsync: _Optional[_Union[MapFsync, str]] = ..., journal_max_bytes: _Optional[int] = ..., unavailable: bool = ...) -> None: ...

class MapInsertRequest(_message.Message):
    __slots__ = ["counts_only", "keys", "name", "values"]
    COUNTS_ONLY_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    counts_only: bool
    keys: _common_pb2.Tensor
    name: str
    values: _containers.RepeatedCompositeFieldContainer[MapRows]
    def __init__(self, name: _Optional[str] = ..., keys: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., values: _Optional[_Iterable[_Union[MapRows, _Mapping]]] = ..., counts_only: bool = ...) -> None: ...

class MapInsertResponse(_message.Message):
    __slots__ = ["engine_ms", "erase_epoch", "indices", "is_new", "n_entries", "n_new"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    N_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    N_NEW_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    erase_epoch: int
    indices: _common_pb2.Tensor
    is_new: _common_pb2.Tensor
    n_entries: int
    n_new: int
    def __init__(self, indices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., is_new: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_new: _Optional[int] = ..., n_entries: _Optional[int] = ..., erase_epoch: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class MapLattice(_message.Message):
    __slots__ = ["frame_id", "origin", "size"]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    frame_id: str
    origin: _common_pb2.Vec3
    size: _common_pb2.Vec3
    def __init__(self, size: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., frame_id: _Optional[str] = ...) -> None: ...

class MapListRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class MapListResponse(_message.Message):
    __slots__ = ["limit_bytes", "maps", "n_bytes"]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAPS_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    limit_bytes: int
    maps: _containers.RepeatedCompositeFieldContainer[MapInfo]
    n_bytes: int
    def __init__(self, maps: _Optional[_Iterable[_Union[MapInfo, _Mapping]]] = ..., n_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ...) -> None: ...

class MapLoadRequest(_message.Message):
    __slots__ = ["file", "max_bytes", "name", "replace", "ttl_s"]
    FILE_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    file: str
    max_bytes: int
    name: str
    replace: bool
    ttl_s: float
    def __init__(self, name: _Optional[str] = ..., file: _Optional[str] = ..., replace: bool = ..., max_bytes: _Optional[int] = ..., ttl_s: _Optional[float] = ...) -> None: ...

class MapLoadResponse(_message.Message):
    __slots__ = ["map", "replaced"]
    MAP_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    map: MapInfo
    replaced: bool
    def __init__(self, map: _Optional[_Union[MapInfo, _Mapping]] = ..., replaced: bool = ...) -> None: ...

class MapRows(_message.Message):
    __slots__ = ["name", "rows"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    name: str
    rows: _common_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., rows: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class MapSaveRequest(_message.Message):
    __slots__ = ["file", "name"]
    FILE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    file: str
    name: str
    def __init__(self, name: _Optional[str] = ..., file: _Optional[str] = ...) -> None: ...

class MapSaveResponse(_message.Message):
    __slots__ = ["digest", "file", "n_bytes", "n_entries"]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    digest: int
    file: str
    n_bytes: int
    n_entries: int
    def __init__(self, file: _Optional[str] = ..., n_bytes: _Optional[int] = ..., n_entries: _Optional[int] = ..., digest: _Optional[int] = ...) -> None: ...

class MapSpec(_message.Message):
    __slots__ = ["key_dtype", "n_components", "values"]
    KEY_DTYPE_FIELD_NUMBER: _ClassVar[int]
    N_COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key_dtype: _common_pb2.DType
    n_components: int
    values: _containers.RepeatedCompositeFieldContainer[MapArray]
    def __init__(self, key_dtype: _Optional[_Union[_common_pb2.DType, str]] = ..., n_components: _Optional[int] = ..., values: _Optional[_Iterable[_Union[MapArray, _Mapping]]] = ...) -> None: ...

class MapUpdateRequest(_message.Message):
    __slots__ = ["combine", "counts_only", "erase_epoch", "indices", "insert_missing", "keys", "name", "values"]
    COMBINE_FIELD_NUMBER: _ClassVar[int]
    COUNTS_ONLY_FIELD_NUMBER: _ClassVar[int]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    INSERT_MISSING_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    combine: MapCombine
    counts_only: bool
    erase_epoch: int
    indices: _common_pb2.Tensor
    insert_missing: bool
    keys: _common_pb2.Tensor
    name: str
    values: _containers.RepeatedCompositeFieldContainer[MapRows]
    def __init__(self, name: _Optional[str] = ..., keys: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., indices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., erase_epoch: _Optional[int] = ..., values: _Optional[_Iterable[_Union[MapRows, _Mapping]]] = ..., combine: _Optional[_Union[MapCombine, str]] = ..., insert_missing: bool = ..., counts_only: bool = ...) -> None: ...

class MapUpdateResponse(_message.Message):
    __slots__ = ["engine_ms", "erase_epoch", "n_entries", "n_new", "n_updated", "updated"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    ERASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    N_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    N_NEW_FIELD_NUMBER: _ClassVar[int]
    N_UPDATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    erase_epoch: int
    n_entries: int
    n_new: int
    n_updated: int
    updated: _common_pb2.Tensor
    def __init__(self, updated: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_updated: _Optional[int] = ..., n_entries: _Optional[int] = ..., n_new: _Optional[int] = ..., erase_epoch: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class MapFsync(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class MapCombine(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class MapFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
