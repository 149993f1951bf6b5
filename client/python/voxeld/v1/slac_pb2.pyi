# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
SLAC_DONE: SlacState
SLAC_FAILED: SlacState
SLAC_POINT_TO_PLANE: SlacMetric
SLAC_POINT_TO_POINT: SlacMetric
SLAC_RUNNING: SlacState
SLAC_WAS_CANCELLED: SlacState

class SlacApplyRequest(_message.Message):
    __slots__ = ["T_grid_points", "T_out_grid", "inverse", "name", "normals", "points"]
    INVERSE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    T_GRID_POINTS_FIELD_NUMBER: _ClassVar[int]
    T_OUT_GRID_FIELD_NUMBER: _ClassVar[int]
    T_grid_points: _common_pb2.Pose
    T_out_grid: _common_pb2.Pose
    inverse: bool
    name: str
    normals: _common_pb2.Tensor
    points: _common_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., T_grid_points: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., T_out_grid: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., inverse: bool = ...) -> None: ...

class SlacApplyResponse(_message.Message):
    __slots__ = ["engine_ms", "n_inside", "n_normals", "n_points", "normals", "points"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    N_INSIDE_FIELD_NUMBER: _ClassVar[int]
    N_NORMALS_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    n_inside: int
    n_normals: int
    n_points: int
    normals: _common_pb2.Tensor
    points: _common_pb2.Tensor
    def __init__(self, n_points: _Optional[int] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_inside: _Optional[int] = ..., engine_ms: _Optional[float] = ..., n_normals: _Optional[int] = ...) -> None: ...

class SlacCancelRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SlacCancelResponse(_message.Message):
    __slots__ = ["was_running"]
    WAS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    was_running: bool
    def __init__(self, was_running: bool = ...) -> None: ...

class SlacDeformVolumeRequest(_message.Message):
    __slots__ = ["name", "to", "ttl_s", "volume"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    name: str
    to: str
    ttl_s: float
    volume: str
    def __init__(self, name: _Optional[str] = ..., volume: _Optional[str] = ..., to: _Optional[str] = ..., ttl_s: _Optional[float] = ...) -> None: ...

class SlacDeformVolumeResponse(_message.Message):
    __slots__ = ["engine_ms", "n_blocks", "stamp"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    n_blocks: int
    stamp: int
    def __init__(self, n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SlacOptimizeRequest(_message.Message):
    __slots__ = ["cell_m", "counts", "distance_m", "edges", "fitness", "grid_arrays", "iterations", "max_s", "max_unknowns", "metric", "name", "normals", "points", "poses", "regularizer_weight", "replace", "rigid", "solver_steps", "volumes", "voxel_m"]
    CELL_M_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    GRID_ARRAYS_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_S_FIELD_NUMBER: _ClassVar[int]
    MAX_UNKNOWNS_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    POSES_FIELD_NUMBER: _ClassVar[int]
    REGULARIZER_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    RIGID_FIELD_NUMBER: _ClassVar[int]
    SOLVER_STEPS_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    VOXEL_M_FIELD_NUMBER: _ClassVar[int]
    cell_m: float
    counts: _common_pb2.Tensor
    distance_m: float
    edges: _common_pb2.Tensor
    fitness: float
    grid_arrays: bool
    iterations: int
    max_s: float
    max_unknowns: int
    metric: SlacMetric
    name: str
    normals: _common_pb2.Tensor
    points: _common_pb2.Tensor
    poses: _common_pb2.Tensor
    regularizer_weight: float
    replace: bool
    rigid: bool
    solver_steps: int
    volumes: _containers.RepeatedScalarFieldContainer[str]
    voxel_m: float
    def __init__(self, name: _Optional[str] = ..., volumes: _Optional[_Iterable[str]] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., counts: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., poses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., edges: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., rigid: bool = ..., metric: _Optional[_Union[SlacMetric, str]] = ..., cell_m: _Optional[float] = ..., regularizer_weight: _Optional[float] = ..., distance_m: _Optional[float] = ..., fitness: _Optional[float] = ..., voxel_m: _Optional[float] = ..., iterations: _Optional[int] = ..., solver_steps: _Optional[int] = ..., max_unknowns: _Optional[int] = ..., replace: bool = ..., grid_arrays: bool = ..., max_s: _Optional[float] = ...) -> None: ...

class SlacOptimizeResponse(_message.Message):
    __slots__ = ["engine_ms", "keys", "losses", "n_control_points", "n_edges", "n_losses", "n_points", "n_unknowns", "offsets", "poses", "replaced", "rotations"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    N_CONTROL_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_EDGES_FIELD_NUMBER: _ClassVar[int]
    N_LOSSES_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_UNKNOWNS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    POSES_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    ROTATIONS_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    keys: _common_pb2.Tensor
    losses: _common_pb2.Tensor
    n_control_points: int
    n_edges: int
    n_losses: int
    n_points: int
    n_unknowns: int
    offsets: _common_pb2.Tensor
    poses: _common_pb2.Tensor
    replaced: bool
    rotations: _common_pb2.Tensor
    def __init__(self, poses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_losses: _Optional[int] = ..., losses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_control_points: _Optional[int] = ..., keys: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., offsets: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., rotations: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_points: _Optional[int] = ..., n_edges: _Optional[int] = ..., n_unknowns: _Optional[int] = ..., replaced: bool = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SlacProgressRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SlacProgressResponse(_message.Message):
    __slots__ = ["data", "elapsed_s", "error", "iteration", "iterations", "n_control_points", "n_edges", "n_pairs", "regularizer", "state"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_S_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    N_CONTROL_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_EDGES_FIELD_NUMBER: _ClassVar[int]
    N_PAIRS_FIELD_NUMBER: _ClassVar[int]
    REGULARIZER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    data: float
    elapsed_s: float
    error: str
    iteration: int
    iterations: int
    n_control_points: int
    n_edges: int
    n_pairs: int
    regularizer: float
    state: SlacState
    def __init__(self, state: _Optional[_Union[SlacState, str]] = ..., iteration: _Optional[int] = ..., iterations: _Optional[int] = ..., data: _Optional[float] = ..., regularizer: _Optional[float] = ..., n_pairs: _Optional[int] = ..., n_edges: _Optional[int] = ..., n_control_points: _Optional[int] = ..., elapsed_s: _Optional[float] = ..., error: _Optional[str] = ...) -> None: ...

class SlacMetric(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class SlacState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
