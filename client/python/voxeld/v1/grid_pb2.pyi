# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
GRID_AS_FREE: GridUnknown
GRID_AS_LETHAL: GridUnknown
GRID_COSTMAP: GridKind
GRID_DISTANCE: GridKind
GRID_HEIGHT: GridKind
GRID_KEPT: GridUnknown
GRID_OCCUPANCY: GridFormat
GRID_PGM: GridFormat
GRID_PNG: GridFormat
GRID_PROJECTED: GridKind
GRID_SLICE: GridKind
GRID_TENSOR: GridFormat
GRID_UNKNOWN_UNSPECIFIED: GridUnknown
GRID_YAML: GridFormat

class SceneFrontiersRequest(_message.Message):
    __slots__ = ["at", "box", "in_space", "in_voxels", "min_cells", "name", "with_cells", "z_high", "z_low"]
    AT_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    IN_SPACE_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    MIN_CELLS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WITH_CELLS_FIELD_NUMBER: _ClassVar[int]
    Z_HIGH_FIELD_NUMBER: _ClassVar[int]
    Z_LOW_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    box: _scene_pb2.SceneBox
    in_space: bool
    in_voxels: bool
    min_cells: int
    name: str
    with_cells: bool
    z_high: float
    z_low: float
    def __init__(self, name: _Optional[str] = ..., box: _Optional[_Union[_scene_pb2.SceneBox, _Mapping]] = ..., in_voxels: bool = ..., z_low: _Optional[float] = ..., z_high: _Optional[float] = ..., in_space: bool = ..., min_cells: _Optional[int] = ..., with_cells: bool = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ...) -> None: ...

class SceneFrontiersResponse(_message.Message):
    __slots__ = ["cell_size_m", "cells", "centroids", "clusters", "engine_ms", "frame_id", "generation", "n_cells", "sizes", "version"]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    CELL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    CENTROIDS_FIELD_NUMBER: _ClassVar[int]
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    N_CELLS_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    cell_size_m: float
    cells: _common_pb2.Tensor
    centroids: _common_pb2.Tensor
    clusters: _common_pb2.Tensor
    engine_ms: float
    frame_id: str
    generation: int
    n_cells: int
    sizes: _common_pb2.Tensor
    version: int
    def __init__(self, version: _Optional[int] = ..., generation: _Optional[int] = ..., engine_ms: _Optional[float] = ..., n_cells: _Optional[int] = ..., cell_size_m: _Optional[float] = ..., frame_id: _Optional[str] = ..., sizes: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., centroids: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., cells: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., clusters: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SceneGridRequest(_message.Message):
    __slots__ = ["at", "box", "cost_scaling", "format", "image", "in_voxels", "inflation_radius_m", "kind", "max_distance_m", "name", "robot_radius_m", "stamp_ns", "unknown", "z_high", "z_low"]
    AT_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    COST_SCALING_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    INFLATION_RADIUS_M_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROBOT_RADIUS_M_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    Z_HIGH_FIELD_NUMBER: _ClassVar[int]
    Z_LOW_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    box: _scene_pb2.SceneBox
    cost_scaling: float
    format: GridFormat
    image: str
    in_voxels: bool
    inflation_radius_m: float
    kind: GridKind
    max_distance_m: float
    name: str
    robot_radius_m: float
    stamp_ns: int
    unknown: GridUnknown
    z_high: float
    z_low: float
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[GridKind, str]] = ..., box: _Optional[_Union[_scene_pb2.SceneBox, _Mapping]] = ..., in_voxels: bool = ..., z_low: _Optional[float] = ..., z_high: _Optional[float] = ..., unknown: _Optional[_Union[GridUnknown, str]] = ..., robot_radius_m: _Optional[float] = ..., inflation_radius_m: _Optional[float] = ..., cost_scaling: _Optional[float] = ..., format: _Optional[_Union[GridFormat, str]] = ..., image: _Optional[str] = ..., stamp_ns: _Optional[int] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ..., max_distance_m: _Optional[float] = ...) -> None: ...

class SceneGridResponse(_message.Message):
    __slots__ = ["cell_size_m", "cells", "engine_ms", "file", "frame_id", "generation", "high", "low", "mean", "n_x", "n_y", "origin", "slope", "top_m", "version"]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    CELL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    N_X_FIELD_NUMBER: _ClassVar[int]
    N_Y_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SLOPE_FIELD_NUMBER: _ClassVar[int]
    TOP_M_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    cell_size_m: float
    cells: _common_pb2.Tensor
    engine_ms: float
    file: bytes
    frame_id: str
    generation: int
    high: _common_pb2.Tensor
    low: _common_pb2.Tensor
    mean: _common_pb2.Tensor
    n_x: int
    n_y: int
    origin: _common_pb2.Vec3
    slope: _common_pb2.Tensor
    top_m: float
    version: int
    def __init__(self, version: _Optional[int] = ..., generation: _Optional[int] = ..., engine_ms: _Optional[float] = ..., n_x: _Optional[int] = ..., n_y: _Optional[int] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., cell_size_m: _Optional[float] = ..., top_m: _Optional[float] = ..., frame_id: _Optional[str] = ..., cells: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., low: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., high: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., mean: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., slope: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., file: _Optional[bytes] = ...) -> None: ...

class GridKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class GridUnknown(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class GridFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
