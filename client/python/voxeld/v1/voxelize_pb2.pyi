# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
DOUBLE: VoxelRule
FIRST_POINT: VoxelOrder
MINKOWSKI: VoxelRule
MORTON: VoxelOrder
OUTPUT_COORDS: VoxelOutput
OUTPUT_COUNTS: VoxelOutput
OUTPUT_FIRST_INDEX: VoxelOutput
OUTPUT_INVERSE: VoxelOutput
OUTPUT_POINTS: VoxelOutput
REDUCE_FIRST: Reduce
REDUCE_MAX: Reduce
REDUCE_MEAN: Reduce
REDUCE_MIN: Reduce
REDUCE_SUM: Reduce
REDUCE_UNSPECIFIED: Reduce
SPCONV: VoxelRule
VOXEL_OUTPUT_UNSPECIFIED: VoxelOutput
VOXEL_RULE_UNSPECIFIED: VoxelRule

class Range(_message.Message):
    __slots__ = ["high", "low"]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    high: _common_pb2.Vec3
    low: _common_pb2.Vec3
    def __init__(self, low: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., high: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ...) -> None: ...

class VoxelizeItem(_message.Message):
    __slots__ = ["first_point", "first_voxel", "frame_id", "n_non_finite", "n_out_of_range", "n_over_max_points", "n_over_max_voxels", "n_points", "n_used", "n_voxels", "stamp_ns"]
    FIRST_POINT_FIELD_NUMBER: _ClassVar[int]
    FIRST_VOXEL_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    N_NON_FINITE_FIELD_NUMBER: _ClassVar[int]
    N_OUT_OF_RANGE_FIELD_NUMBER: _ClassVar[int]
    N_OVER_MAX_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_OVER_MAX_VOXELS_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_USED_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    first_point: int
    first_voxel: int
    frame_id: str
    n_non_finite: int
    n_out_of_range: int
    n_over_max_points: int
    n_over_max_voxels: int
    n_points: int
    n_used: int
    n_voxels: int
    stamp_ns: int
    def __init__(self, stamp_ns: _Optional[int] = ..., frame_id: _Optional[str] = ..., n_points: _Optional[int] = ..., n_used: _Optional[int] = ..., n_non_finite: _Optional[int] = ..., n_out_of_range: _Optional[int] = ..., n_over_max_voxels: _Optional[int] = ..., n_over_max_points: _Optional[int] = ..., first_voxel: _Optional[int] = ..., n_voxels: _Optional[int] = ..., first_point: _Optional[int] = ...) -> None: ...

class VoxelizeMerge(_message.Message):
    __slots__ = ["create", "map", "max_bytes", "ttl_s"]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    create: bool
    map: str
    max_bytes: int
    ttl_s: float
    def __init__(self, map: _Optional[str] = ..., create: bool = ..., ttl_s: _Optional[float] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class VoxelizeMerged(_message.Message):
    __slots__ = ["n_entries", "n_new"]
    N_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    N_NEW_FIELD_NUMBER: _ClassVar[int]
    n_entries: int
    n_new: int
    def __init__(self, n_new: _Optional[int] = ..., n_entries: _Optional[int] = ...) -> None: ...

class VoxelizeRequest(_message.Message):
    __slots__ = ["clouds", "features", "max_points", "max_voxels", "merge", "no_features", "order", "origin", "outputs", "range", "reduce", "rule", "size"]
    CLOUDS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    MAX_POINTS_FIELD_NUMBER: _ClassVar[int]
    MAX_VOXELS_FIELD_NUMBER: _ClassVar[int]
    MERGE_FIELD_NUMBER: _ClassVar[int]
    NO_FEATURES_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    REDUCE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    clouds: _containers.RepeatedCompositeFieldContainer[_common_pb2.Cloud]
    features: _containers.RepeatedScalarFieldContainer[str]
    max_points: int
    max_voxels: int
    merge: VoxelizeMerge
    no_features: bool
    order: VoxelOrder
    origin: _common_pb2.Vec3
    outputs: _containers.RepeatedScalarFieldContainer[VoxelOutput]
    range: Range
    reduce: _containers.RepeatedScalarFieldContainer[Reduce]
    rule: VoxelRule
    size: _common_pb2.Vec3
    def __init__(self, clouds: _Optional[_Iterable[_Union[_common_pb2.Cloud, _Mapping]]] = ..., size: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., range: _Optional[_Union[Range, _Mapping]] = ..., rule: _Optional[_Union[VoxelRule, str]] = ..., order: _Optional[_Union[VoxelOrder, str]] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., features: _Optional[_Iterable[str]] = ..., reduce: _Optional[_Iterable[_Union[Reduce, str]]] = ..., no_features: bool = ..., outputs: _Optional[_Iterable[_Union[VoxelOutput, str]]] = ..., max_points: _Optional[int] = ..., max_voxels: _Optional[int] = ..., merge: _Optional[_Union[VoxelizeMerge, _Mapping]] = ...) -> None: ...

class VoxelizeResponse(_message.Message):
    __slots__ = ["axes", "coords", "counts", "engine_ms", "features", "first", "first_index", "frame", "grid", "inverse", "items", "low", "max", "mean", "merged", "min", "n_voxels", "origin", "points", "rule", "size", "sum"]
    AXES_FIELD_NUMBER: _ClassVar[int]
    COORDS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    FIRST_INDEX_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    GRID_FIELD_NUMBER: _ClassVar[int]
    INVERSE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    axes: str
    coords: _common_pb2.Tensor
    counts: _common_pb2.Tensor
    engine_ms: float
    features: _containers.RepeatedScalarFieldContainer[str]
    first: _common_pb2.Tensor
    first_index: _common_pb2.Tensor
    frame: str
    grid: _containers.RepeatedScalarFieldContainer[int]
    inverse: _common_pb2.Tensor
    items: _containers.RepeatedCompositeFieldContainer[VoxelizeItem]
    low: _common_pb2.Vec3
    max: _common_pb2.Tensor
    mean: _common_pb2.Tensor
    merged: VoxelizeMerged
    min: _common_pb2.Tensor
    n_voxels: int
    origin: _common_pb2.Vec3
    points: _common_pb2.Tensor
    rule: VoxelRule
    size: _common_pb2.Vec3
    sum: _common_pb2.Tensor
    def __init__(self, n_voxels: _Optional[int] = ..., items: _Optional[_Iterable[_Union[VoxelizeItem, _Mapping]]] = ..., coords: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., counts: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., inverse: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., mean: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., sum: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., min: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., max: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., first: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., first_index: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., features: _Optional[_Iterable[str]] = ..., size: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., low: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., rule: _Optional[_Union[VoxelRule, str]] = ..., axes: _Optional[str] = ..., grid: _Optional[_Iterable[int]] = ..., engine_ms: _Optional[float] = ..., merged: _Optional[_Union[VoxelizeMerged, _Mapping]] = ..., frame: _Optional[str] = ...) -> None: ...

class VoxelRule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VoxelOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class Reduce(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VoxelOutput(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
