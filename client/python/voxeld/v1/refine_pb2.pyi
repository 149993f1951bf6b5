# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import volume_pb2 as _volume_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
REFINE_ADAM: RefineSolver
REFINE_GAUSS_NEWTON: RefineSolver

class VolumeKeyframe(_message.Message):
    __slots__ = ["T_map_camera", "camera", "colour", "colour_type"]
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    COLOUR_FIELD_NUMBER: _ClassVar[int]
    COLOUR_TYPE_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_map_camera: _common_pb2.Pose
    camera: _volume_pb2.VolumeCamera
    colour: bytes
    colour_type: _volume_pb2.VolumeColour
    def __init__(self, camera: _Optional[_Union[_volume_pb2.VolumeCamera, _Mapping]] = ..., colour: _Optional[bytes] = ..., colour_type: _Optional[_Union[_volume_pb2.VolumeColour, str]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ...) -> None: ...

class VolumeRefineCancelRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class VolumeRefineCancelResponse(_message.Message):
    __slots__ = ["was_running"]
    WAS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    was_running: bool
    def __init__(self, was_running: bool = ...) -> None: ...

class VolumeRefineLoss(_message.Message):
    __slots__ = ["chroma", "data", "init", "level", "light", "rejected", "round", "smooth"]
    CHROMA_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    INIT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LIGHT_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    SMOOTH_FIELD_NUMBER: _ClassVar[int]
    chroma: float
    data: float
    init: float
    level: int
    light: float
    rejected: bool
    round: int
    smooth: float
    def __init__(self, level: _Optional[int] = ..., round: _Optional[int] = ..., data: _Optional[float] = ..., smooth: _Optional[float] = ..., init: _Optional[float] = ..., chroma: _Optional[float] = ..., light: _Optional[float] = ..., rejected: bool = ...) -> None: ...

class VolumeRefineRequest(_message.Message):
    __slots__ = ["band_m", "cg_iterations", "chroma", "depth_max_m", "durable", "fsync", "init", "into", "iterations", "journal_max_bytes", "keep_albedo", "keep_distances", "keep_poses", "keyframes", "learning_rate", "light", "max_unknowns", "min_weight", "name", "refine_intrinsics", "rounds", "smooth", "solver", "subvolume_m", "upsample"]
    BAND_M_FIELD_NUMBER: _ClassVar[int]
    CG_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    CHROMA_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAX_M_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    INIT_FIELD_NUMBER: _ClassVar[int]
    INTO_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALBEDO_FIELD_NUMBER: _ClassVar[int]
    KEEP_DISTANCES_FIELD_NUMBER: _ClassVar[int]
    KEEP_POSES_FIELD_NUMBER: _ClassVar[int]
    KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    LIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_UNKNOWNS_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REFINE_INTRINSICS_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    SMOOTH_FIELD_NUMBER: _ClassVar[int]
    SOLVER_FIELD_NUMBER: _ClassVar[int]
    SUBVOLUME_M_FIELD_NUMBER: _ClassVar[int]
    UPSAMPLE_FIELD_NUMBER: _ClassVar[int]
    band_m: float
    cg_iterations: int
    chroma: float
    depth_max_m: float
    durable: bool
    fsync: _volume_pb2.VolumeFsync
    init: float
    into: str
    iterations: int
    journal_max_bytes: int
    keep_albedo: bool
    keep_distances: bool
    keep_poses: bool
    keyframes: _containers.RepeatedCompositeFieldContainer[VolumeKeyframe]
    learning_rate: float
    light: float
    max_unknowns: int
    min_weight: float
    name: str
    refine_intrinsics: bool
    rounds: int
    smooth: float
    solver: RefineSolver
    subvolume_m: float
    upsample: int
    def __init__(self, name: _Optional[str] = ..., keyframes: _Optional[_Iterable[_Union[VolumeKeyframe, _Mapping]]] = ..., into: _Optional[str] = ..., band_m: _Optional[float] = ..., min_weight: _Optional[float] = ..., subvolume_m: _Optional[float] = ..., depth_max_m: _Optional[float] = ..., smooth: _Optional[float] = ..., init: _Optional[float] = ..., chroma: _Optional[float] = ..., light: _Optional[float] = ..., solver: _Optional[_Union[RefineSolver, str]] = ..., learning_rate: _Optional[float] = ..., rounds: _Optional[int] = ..., iterations: _Optional[int] = ..., cg_iterations: _Optional[int] = ..., upsample: _Optional[int] = ..., keep_distances: bool = ..., keep_albedo: bool = ..., keep_poses: bool = ..., refine_intrinsics: bool = ..., max_unknowns: _Optional[int] = ..., durable: bool = ..., fsync: _Optional[_Union[_volume_pb2.VolumeFsync, str]] = ..., journal_max_bytes: _Optional[int] = ...) -> None: ...

class VolumeRefineResponse(_message.Message):
    __slots__ = ["engine_ms", "keyframes", "losses", "n_subvolumes", "n_voxels", "volume"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    N_SUBVOLUMES_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    keyframes: _containers.RepeatedCompositeFieldContainer[VolumeRefinedKeyframe]
    losses: _containers.RepeatedCompositeFieldContainer[VolumeRefineLoss]
    n_subvolumes: int
    n_voxels: int
    volume: _volume_pb2.VolumeInfo
    def __init__(self, volume: _Optional[_Union[_volume_pb2.VolumeInfo, _Mapping]] = ..., losses: _Optional[_Iterable[_Union[VolumeRefineLoss, _Mapping]]] = ..., keyframes: _Optional[_Iterable[_Union[VolumeRefinedKeyframe, _Mapping]]] = ..., n_voxels: _Optional[int] = ..., n_subvolumes: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeRefineStatusRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class VolumeRefineStatusResponse(_message.Message):
    __slots__ = ["energy", "fraction", "level", "n_losses", "n_voxels", "running"]
    ENERGY_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    N_LOSSES_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    energy: float
    fraction: float
    level: int
    n_losses: int
    n_voxels: int
    running: bool
    def __init__(self, running: bool = ..., fraction: _Optional[float] = ..., level: _Optional[int] = ..., n_voxels: _Optional[int] = ..., n_losses: _Optional[int] = ..., energy: _Optional[float] = ...) -> None: ...

class VolumeRefinedKeyframe(_message.Message):
    __slots__ = ["T_map_camera", "camera"]
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_map_camera: _common_pb2.Pose
    camera: _volume_pb2.VolumeCamera
    def __init__(self, camera: _Optional[_Union[_volume_pb2.VolumeCamera, _Mapping]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ...) -> None: ...

class RefineSolver(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
