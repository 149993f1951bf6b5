# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import voxelize_pb2 as _voxelize_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

BF16: NetworkPrecision
DESCRIPTOR: _descriptor.FileDescriptor
FP16: NetworkPrecision
FP32: NetworkPrecision
NETWORK_DENSE: NetworkOutputKind
NETWORK_OUTPUT_KIND_UNSPECIFIED: NetworkOutputKind
NETWORK_POINTS: NetworkOutputKind
NETWORK_PRECISION_AUTO: NetworkPrecision
NETWORK_PRECISION_UNSPECIFIED: NetworkPrecision
NETWORK_VECTOR: NetworkOutputKind
NETWORK_VOXELS: NetworkOutputKind
TF32: NetworkPrecision

class InferItem(_message.Message):
    __slots__ = ["code", "first_point", "frame_id", "message", "n_non_finite", "n_not_picked", "n_out_of_range", "n_over_max_points", "n_over_max_voxels", "n_points", "n_used", "n_voxels", "stamp_ns"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    FIRST_POINT_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    N_NON_FINITE_FIELD_NUMBER: _ClassVar[int]
    N_NOT_PICKED_FIELD_NUMBER: _ClassVar[int]
    N_OUT_OF_RANGE_FIELD_NUMBER: _ClassVar[int]
    N_OVER_MAX_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_OVER_MAX_VOXELS_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_USED_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    code: _common_pb2.Code
    first_point: int
    frame_id: str
    message: str
    n_non_finite: int
    n_not_picked: int
    n_out_of_range: int
    n_over_max_points: int
    n_over_max_voxels: int
    n_points: int
    n_used: int
    n_voxels: int
    stamp_ns: int
    def __init__(self, code: _Optional[_Union[_common_pb2.Code, str]] = ..., message: _Optional[str] = ..., stamp_ns: _Optional[int] = ..., frame_id: _Optional[str] = ..., n_points: _Optional[int] = ..., n_used: _Optional[int] = ..., n_non_finite: _Optional[int] = ..., n_out_of_range: _Optional[int] = ..., n_over_max_voxels: _Optional[int] = ..., n_over_max_points: _Optional[int] = ..., n_not_picked: _Optional[int] = ..., n_voxels: _Optional[int] = ..., first_point: _Optional[int] = ...) -> None: ...

class InferOutput(_message.Message):
    __slots__ = ["coords", "first_rows", "kind", "labels", "name", "stride", "values"]
    COORDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROWS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STRIDE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    coords: _common_pb2.Tensor
    first_rows: _containers.RepeatedScalarFieldContainer[int]
    kind: NetworkOutputKind
    labels: _common_pb2.Tensor
    name: str
    stride: _containers.RepeatedScalarFieldContainer[int]
    values: _common_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[NetworkOutputKind, str]] = ..., values: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., labels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., coords: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., first_rows: _Optional[_Iterable[int]] = ..., stride: _Optional[_Iterable[int]] = ...) -> None: ...

class InferRequest(_message.Message):
    __slots__ = ["apply_pose", "clouds", "dtype", "expect_digest", "network", "no_coords", "origin", "outputs"]
    APPLY_POSE_FIELD_NUMBER: _ClassVar[int]
    CLOUDS_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    EXPECT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    NO_COORDS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    apply_pose: bool
    clouds: _containers.RepeatedCompositeFieldContainer[_common_pb2.Cloud]
    dtype: _common_pb2.DType
    expect_digest: str
    network: str
    no_coords: bool
    origin: _common_pb2.Vec3
    outputs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, network: _Optional[str] = ..., clouds: _Optional[_Iterable[_Union[_common_pb2.Cloud, _Mapping]]] = ..., outputs: _Optional[_Iterable[str]] = ..., dtype: _Optional[_Union[_common_pb2.DType, str]] = ..., expect_digest: _Optional[str] = ..., apply_pose: bool = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., no_coords: bool = ...) -> None: ...

class InferResponse(_message.Message):
    __slots__ = ["digest", "engine_ms", "items", "low", "n_run_items", "network", "origin", "outputs", "precision", "size", "timings"]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    N_RUN_ITEMS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    digest: str
    engine_ms: float
    items: _containers.RepeatedCompositeFieldContainer[InferItem]
    low: _common_pb2.Vec3
    n_run_items: int
    network: str
    origin: _common_pb2.Vec3
    outputs: _containers.RepeatedCompositeFieldContainer[InferOutput]
    precision: NetworkPrecision
    size: _common_pb2.Vec3
    timings: NetworkTimings
    def __init__(self, network: _Optional[str] = ..., digest: _Optional[str] = ..., precision: _Optional[_Union[NetworkPrecision, str]] = ..., items: _Optional[_Iterable[_Union[InferItem, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[InferOutput, _Mapping]]] = ..., size: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., low: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., n_run_items: _Optional[int] = ..., engine_ms: _Optional[float] = ..., timings: _Optional[_Union[NetworkTimings, _Mapping]] = ...) -> None: ...

class NetworkFeature(_message.Message):
    __slots__ = ["bias", "name", "scale"]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    bias: float
    name: str
    scale: float
    def __init__(self, name: _Optional[str] = ..., scale: _Optional[float] = ..., bias: _Optional[float] = ...) -> None: ...

class NetworkGetRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class NetworkGetResponse(_message.Message):
    __slots__ = ["network"]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    network: NetworkInfo
    def __init__(self, network: _Optional[_Union[NetworkInfo, _Mapping]] = ...) -> None: ...

class NetworkInfo(_message.Message):
    __slots__ = ["digest", "features", "last", "layers", "loaded_ns", "max_points", "max_voxels", "n_bytes", "n_maps", "n_parameters", "n_requests", "n_sets", "name", "normalizes", "outputs", "precision", "range", "rule", "size"]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    LOADED_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_POINTS_FIELD_NUMBER: _ClassVar[int]
    MAX_VOXELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NORMALIZES_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_MAPS_FIELD_NUMBER: _ClassVar[int]
    N_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    N_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    N_SETS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    digest: str
    features: _containers.RepeatedCompositeFieldContainer[NetworkFeature]
    last: NetworkTimings
    layers: _containers.RepeatedCompositeFieldContainer[NetworkLayer]
    loaded_ns: int
    max_points: int
    max_voxels: int
    n_bytes: int
    n_maps: int
    n_parameters: int
    n_requests: int
    n_sets: int
    name: str
    normalizes: bool
    outputs: _containers.RepeatedCompositeFieldContainer[NetworkOutput]
    precision: NetworkPrecision
    range: _voxelize_pb2.Range
    rule: _voxelize_pb2.VoxelRule
    size: _common_pb2.Vec3
    def __init__(self, name: _Optional[str] = ..., digest: _Optional[str] = ..., precision: _Optional[_Union[NetworkPrecision, str]] = ..., n_parameters: _Optional[int] = ..., n_bytes: _Optional[int] = ..., n_sets: _Optional[int] = ..., n_maps: _Optional[int] = ..., features: _Optional[_Iterable[_Union[NetworkFeature, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[NetworkOutput, _Mapping]]] = ..., size: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., range: _Optional[_Union[_voxelize_pb2.Range, _Mapping]] = ..., rule: _Optional[_Union[_voxelize_pb2.VoxelRule, str]] = ..., max_points: _Optional[int] = ..., max_voxels: _Optional[int] = ..., normalizes: bool = ..., loaded_ns: _Optional[int] = ..., n_requests: _Optional[int] = ..., last: _Optional[_Union[NetworkTimings, _Mapping]] = ..., layers: _Optional[_Iterable[_Union[NetworkLayer, _Mapping]]] = ...) -> None: ...

class NetworkLayer(_message.Message):
    __slots__ = ["n_in", "n_out", "n_parameters", "name", "op"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_IN_FIELD_NUMBER: _ClassVar[int]
    N_OUT_FIELD_NUMBER: _ClassVar[int]
    N_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    n_in: int
    n_out: int
    n_parameters: int
    name: str
    op: str
    def __init__(self, name: _Optional[str] = ..., op: _Optional[str] = ..., n_in: _Optional[int] = ..., n_out: _Optional[int] = ..., n_parameters: _Optional[int] = ...) -> None: ...

class NetworkListRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class NetworkListResponse(_message.Message):
    __slots__ = ["available", "limit_bytes", "n_bytes", "networks"]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    available: _containers.RepeatedScalarFieldContainer[str]
    limit_bytes: int
    n_bytes: int
    networks: _containers.RepeatedCompositeFieldContainer[NetworkInfo]
    def __init__(self, networks: _Optional[_Iterable[_Union[NetworkInfo, _Mapping]]] = ..., n_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ..., available: _Optional[_Iterable[str]] = ...) -> None: ...

class NetworkLoadRequest(_message.Message):
    __slots__ = ["name", "precision"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    name: str
    precision: NetworkPrecision
    def __init__(self, name: _Optional[str] = ..., precision: _Optional[_Union[NetworkPrecision, str]] = ...) -> None: ...

class NetworkLoadResponse(_message.Message):
    __slots__ = ["existed", "network", "replaced"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    network: NetworkInfo
    replaced: bool
    def __init__(self, network: _Optional[_Union[NetworkInfo, _Mapping]] = ..., replaced: bool = ..., existed: bool = ...) -> None: ...

class NetworkOutput(_message.Message):
    __slots__ = ["argmax", "by_default", "kind", "labels", "n_channels", "name", "stride"]
    ARGMAX_FIELD_NUMBER: _ClassVar[int]
    BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    STRIDE_FIELD_NUMBER: _ClassVar[int]
    argmax: bool
    by_default: bool
    kind: NetworkOutputKind
    labels: _containers.RepeatedScalarFieldContainer[str]
    n_channels: int
    name: str
    stride: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[NetworkOutputKind, str]] = ..., argmax: bool = ..., n_channels: _Optional[int] = ..., stride: _Optional[_Iterable[int]] = ..., labels: _Optional[_Iterable[str]] = ..., by_default: bool = ...) -> None: ...

class NetworkTimings(_message.Message):
    __slots__ = ["layers_ms", "n_items", "n_voxels", "outputs_ms", "sets_ms", "voxelize_ms"]
    LAYERS_MS_FIELD_NUMBER: _ClassVar[int]
    N_ITEMS_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_MS_FIELD_NUMBER: _ClassVar[int]
    SETS_MS_FIELD_NUMBER: _ClassVar[int]
    VOXELIZE_MS_FIELD_NUMBER: _ClassVar[int]
    layers_ms: float
    n_items: int
    n_voxels: int
    outputs_ms: float
    sets_ms: float
    voxelize_ms: float
    def __init__(self, voxelize_ms: _Optional[float] = ..., sets_ms: _Optional[float] = ..., layers_ms: _Optional[float] = ..., outputs_ms: _Optional[float] = ..., n_items: _Optional[int] = ..., n_voxels: _Optional[int] = ...) -> None: ...

class NetworkUnloadRequest(_message.Message):
    __slots__ = ["missing_ok", "name"]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    missing_ok: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., missing_ok: bool = ...) -> None: ...

class NetworkUnloadResponse(_message.Message):
    __slots__ = ["existed"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: bool = ...) -> None: ...

class NetworkPrecision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class NetworkOutputKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
