# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
VOLUME_ARRAYS: VolumeFormat
VOLUME_COLOUR_FILE: VolumeColour
VOLUME_COLOUR_RGB: VolumeColour
VOLUME_DEPTH_FILE: VolumeDepth
VOLUME_DEPTH_FLOAT32: VolumeDepth
VOLUME_DEPTH_UINT16: VolumeDepth
VOLUME_FSYNC_ALWAYS: VolumeFsync
VOLUME_FSYNC_EVERYSEC: VolumeFsync
VOLUME_FSYNC_OFF: VolumeFsync
VOLUME_FULL_FORGET_FARTHEST: VolumeFull
VOLUME_FULL_REFUSE: VolumeFull
VOLUME_FULL_UNSPECIFIED: VolumeFull
VOLUME_JPEG: VolumeEncode
VOLUME_PLY: VolumeFormat
VOLUME_PNG: VolumeEncode
VOLUME_SHOW_COLOUR: VolumeShow
VOLUME_SHOW_DEPTH: VolumeShow
VOLUME_SHOW_HEIGHT: VolumeShow
VOLUME_SHOW_LABEL: VolumeShow
VOLUME_SHOW_NORMAL: VolumeShow
VOLUME_TRACK_FOUND: VolumeTrackReason
VOLUME_TRACK_HUBER: VolumeTrackRobust
VOLUME_TRACK_HYBRID: VolumeTrackMethod
VOLUME_TRACK_INTENSITY: VolumeTrackMethod
VOLUME_TRACK_LOST: VolumeTrackStatus
VOLUME_TRACK_MOVED_TOO_FAR: VolumeTrackReason
VOLUME_TRACK_NOT_CONVERGED: VolumeTrackReason
VOLUME_TRACK_NO_DEPTH: VolumeTrackReason
VOLUME_TRACK_OK: VolumeTrackStatus
VOLUME_TRACK_POINT_TO_PLANE: VolumeTrackMethod
VOLUME_TRACK_SINGULAR: VolumeTrackReason
VOLUME_TRACK_SQUARES: VolumeTrackRobust
VOLUME_TRACK_TOO_FEW_INLIERS: VolumeTrackReason
VOLUME_TRACK_TUKEY: VolumeTrackRobust
VOLUME_UNKNOWN_FREE: VolumeUnknown
VOLUME_UNKNOWN_IGNORED: VolumeUnknown
VOLUME_UNKNOWN_OCCUPIED: VolumeUnknown

class VolumeBox(_message.Message):
    __slots__ = ["high", "low"]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    high: _common_pb2.Vec3
    low: _common_pb2.Vec3
    def __init__(self, low: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., high: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ...) -> None: ...

class VolumeCamera(_message.Message):
    __slots__ = ["cx", "cy", "fx", "fy", "height", "k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2", "width"]
    CX_FIELD_NUMBER: _ClassVar[int]
    CY_FIELD_NUMBER: _ClassVar[int]
    FX_FIELD_NUMBER: _ClassVar[int]
    FY_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    K1_FIELD_NUMBER: _ClassVar[int]
    K2_FIELD_NUMBER: _ClassVar[int]
    K3_FIELD_NUMBER: _ClassVar[int]
    K4_FIELD_NUMBER: _ClassVar[int]
    K5_FIELD_NUMBER: _ClassVar[int]
    K6_FIELD_NUMBER: _ClassVar[int]
    P1_FIELD_NUMBER: _ClassVar[int]
    P2_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    cx: float
    cy: float
    fx: float
    fy: float
    height: int
    k1: float
    k2: float
    k3: float
    k4: float
    k5: float
    k6: float
    p1: float
    p2: float
    width: int
    def __init__(self, width: _Optional[int] = ..., height: _Optional[int] = ..., fx: _Optional[float] = ..., fy: _Optional[float] = ..., cx: _Optional[float] = ..., cy: _Optional[float] = ..., k1: _Optional[float] = ..., k2: _Optional[float] = ..., p1: _Optional[float] = ..., p2: _Optional[float] = ..., k3: _Optional[float] = ..., k4: _Optional[float] = ..., k5: _Optional[float] = ..., k6: _Optional[float] = ...) -> None: ...

class VolumeCastRaysRequest(_message.Message):
    __slots__ = ["T_map_camera", "camera", "colours", "depth_max_m", "depth_min_m", "labels", "lidar", "min_weight", "name", "normals", "vertices", "weights"]
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    COLOURS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAX_M_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MIN_M_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    LIDAR_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_map_camera: _common_pb2.Pose
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    camera: VolumeCamera
    colours: bool
    depth_max_m: float
    depth_min_m: float
    labels: bool
    lidar: VolumeLidar
    min_weight: float
    name: str
    normals: bool
    vertices: bool
    weights: bool
    def __init__(self, name: _Optional[str] = ..., camera: _Optional[_Union[VolumeCamera, _Mapping]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., depth_min_m: _Optional[float] = ..., depth_max_m: _Optional[float] = ..., min_weight: _Optional[float] = ..., vertices: bool = ..., normals: bool = ..., colours: bool = ..., labels: bool = ..., weights: bool = ..., lidar: _Optional[_Union[VolumeLidar, _Mapping]] = ...) -> None: ...

class VolumeCastRaysResponse(_message.Message):
    __slots__ = ["colours", "depth", "engine_ms", "height", "labels", "n_hits", "normals", "vertices", "weights", "width"]
    COLOURS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    N_HITS_FIELD_NUMBER: _ClassVar[int]
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    colours: _common_pb2.Tensor
    depth: _common_pb2.Tensor
    engine_ms: float
    height: int
    labels: _common_pb2.Tensor
    n_hits: int
    normals: _common_pb2.Tensor
    vertices: _common_pb2.Tensor
    weights: _common_pb2.Tensor
    width: int
    def __init__(self, width: _Optional[int] = ..., height: _Optional[int] = ..., depth: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., vertices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., colours: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_hits: _Optional[int] = ..., engine_ms: _Optional[float] = ..., labels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., weights: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class VolumeClearRequest(_message.Message):
    __slots__ = ["all", "box", "centre", "name", "radius_m"]
    ALL_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    CENTRE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RADIUS_M_FIELD_NUMBER: _ClassVar[int]
    all: bool
    box: VolumeBox
    centre: _common_pb2.Vec3
    name: str
    radius_m: float
    def __init__(self, name: _Optional[str] = ..., box: _Optional[_Union[VolumeBox, _Mapping]] = ..., centre: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., radius_m: _Optional[float] = ..., all: bool = ...) -> None: ...

class VolumeClearResponse(_message.Message):
    __slots__ = ["n_blocks", "n_removed", "stamp"]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_REMOVED_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    n_blocks: int
    n_removed: int
    stamp: int
    def __init__(self, n_removed: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ...) -> None: ...

class VolumeCopyRequest(_message.Message):
    __slots__ = ["durable", "fsync", "journal_max_bytes", "name", "to", "ttl_s"]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    durable: bool
    fsync: VolumeFsync
    journal_max_bytes: int
    name: str
    to: str
    ttl_s: float
    def __init__(self, name: _Optional[str] = ..., to: _Optional[str] = ..., ttl_s: _Optional[float] = ..., durable: bool = ..., fsync: _Optional[_Union[VolumeFsync, str]] = ..., journal_max_bytes: _Optional[int] = ...) -> None: ...

class VolumeCopyResponse(_message.Message):
    __slots__ = ["volume"]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    volume: VolumeInfo
    def __init__(self, volume: _Optional[_Union[VolumeInfo, _Mapping]] = ...) -> None: ...

class VolumeCreateRequest(_message.Message):
    __slots__ = ["albedo", "block", "colour", "compact", "durable", "fsync", "journal_max_bytes", "labels", "max_bytes", "max_weight", "name", "origin", "truncation_m", "ttl_s", "voxel_size_m", "when_full"]
    ALBEDO_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    COLOUR_FIELD_NUMBER: _ClassVar[int]
    COMPACT_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    TRUNCATION_M_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    VOXEL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    WHEN_FULL_FIELD_NUMBER: _ClassVar[int]
    albedo: bool
    block: int
    colour: bool
    compact: bool
    durable: bool
    fsync: VolumeFsync
    journal_max_bytes: int
    labels: bool
    max_bytes: int
    max_weight: float
    name: str
    origin: _common_pb2.Vec3
    truncation_m: float
    ttl_s: float
    voxel_size_m: float
    when_full: VolumeFull
    def __init__(self, name: _Optional[str] = ..., voxel_size_m: _Optional[float] = ..., truncation_m: _Optional[float] = ..., block: _Optional[int] = ..., compact: bool = ..., colour: bool = ..., max_weight: _Optional[float] = ..., max_bytes: _Optional[int] = ..., ttl_s: _Optional[float] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., durable: bool = ..., fsync: _Optional[_Union[VolumeFsync, str]] = ..., journal_max_bytes: _Optional[int] = ..., when_full: _Optional[_Union[VolumeFull, str]] = ..., labels: bool = ..., albedo: bool = ...) -> None: ...

class VolumeCreateResponse(_message.Message):
    __slots__ = ["existed", "volume"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    volume: VolumeInfo
    def __init__(self, existed: bool = ..., volume: _Optional[_Union[VolumeInfo, _Mapping]] = ...) -> None: ...

class VolumeDecayRequest(_message.Message):
    __slots__ = ["all", "box", "centre", "factor", "min_weight", "name", "radius_m"]
    ALL_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    CENTRE_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RADIUS_M_FIELD_NUMBER: _ClassVar[int]
    all: bool
    box: VolumeBox
    centre: _common_pb2.Vec3
    factor: float
    min_weight: float
    name: str
    radius_m: float
    def __init__(self, name: _Optional[str] = ..., factor: _Optional[float] = ..., min_weight: _Optional[float] = ..., box: _Optional[_Union[VolumeBox, _Mapping]] = ..., centre: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., radius_m: _Optional[float] = ..., all: bool = ...) -> None: ...

class VolumeDecayResponse(_message.Message):
    __slots__ = ["n_blocks", "n_removed", "stamp"]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_REMOVED_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    n_blocks: int
    n_removed: int
    stamp: int
    def __init__(self, n_removed: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ...) -> None: ...

class VolumeDistanceRequest(_message.Message):
    __slots__ = ["max_distance_m", "min_weight", "name", "points", "unknown"]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    max_distance_m: float
    min_weight: float
    name: str
    points: _common_pb2.Tensor
    unknown: VolumeUnknown
    def __init__(self, name: _Optional[str] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., max_distance_m: _Optional[float] = ..., unknown: _Optional[_Union[VolumeUnknown, str]] = ..., min_weight: _Optional[float] = ...) -> None: ...

class VolumeDistanceResponse(_message.Message):
    __slots__ = ["distances", "engine_ms", "gradients", "max_distance_m", "n_outside", "stamp"]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    N_OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    distances: _common_pb2.Tensor
    engine_ms: float
    gradients: _common_pb2.Tensor
    max_distance_m: float
    n_outside: int
    stamp: int
    def __init__(self, distances: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., gradients: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., max_distance_m: _Optional[float] = ..., n_outside: _Optional[int] = ..., stamp: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeDropRequest(_message.Message):
    __slots__ = ["missing_ok", "name"]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    missing_ok: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., missing_ok: bool = ...) -> None: ...

class VolumeDropResponse(_message.Message):
    __slots__ = ["existed"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: bool = ...) -> None: ...

class VolumeExtractRequest(_message.Message):
    __slots__ = ["albedo", "box", "first", "format", "limit", "min_weight", "name", "points", "since"]
    ALBEDO_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    albedo: bool
    box: VolumeBox
    first: int
    format: VolumeFormat
    limit: int
    min_weight: float
    name: str
    points: bool
    since: int
    def __init__(self, name: _Optional[str] = ..., points: bool = ..., box: _Optional[_Union[VolumeBox, _Mapping]] = ..., since: _Optional[int] = ..., min_weight: _Optional[float] = ..., format: _Optional[_Union[VolumeFormat, str]] = ..., first: _Optional[int] = ..., limit: _Optional[int] = ..., albedo: bool = ...) -> None: ...

class VolumeExtractResponse(_message.Message):
    __slots__ = ["blocks", "colours", "engine_ms", "is_whole", "labels", "n_blocks", "n_colours", "n_labels", "n_triangles", "n_vertices", "next", "normals", "ply", "stamp", "triangles", "vertices"]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    COLOURS_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_COLOURS_FIELD_NUMBER: _ClassVar[int]
    N_LABELS_FIELD_NUMBER: _ClassVar[int]
    N_TRIANGLES_FIELD_NUMBER: _ClassVar[int]
    N_VERTICES_FIELD_NUMBER: _ClassVar[int]
    PLY_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    TRIANGLES_FIELD_NUMBER: _ClassVar[int]
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    blocks: _common_pb2.Tensor
    colours: _common_pb2.Tensor
    engine_ms: float
    is_whole: bool
    labels: _common_pb2.Tensor
    n_blocks: int
    n_colours: int
    n_labels: int
    n_triangles: int
    n_vertices: int
    next: int
    normals: _common_pb2.Tensor
    ply: bytes
    stamp: int
    triangles: _common_pb2.Tensor
    vertices: _common_pb2.Tensor
    def __init__(self, vertices: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., colours: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., triangles: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., blocks: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., ply: _Optional[bytes] = ..., n_vertices: _Optional[int] = ..., n_triangles: _Optional[int] = ..., n_colours: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ..., is_whole: bool = ..., engine_ms: _Optional[float] = ..., next: _Optional[int] = ..., labels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_labels: _Optional[int] = ...) -> None: ...

class VolumeGetRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class VolumeGetResponse(_message.Message):
    __slots__ = ["volume"]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    volume: VolumeInfo
    def __init__(self, volume: _Optional[_Union[VolumeInfo, _Mapping]] = ...) -> None: ...

class VolumeImportSceneRequest(_message.Message):
    __slots__ = ["box", "materials_as_labels", "name", "scene", "snapshot", "version", "weight"]
    BOX_FIELD_NUMBER: _ClassVar[int]
    MATERIALS_AS_LABELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    box: VolumeBox
    materials_as_labels: bool
    name: str
    scene: str
    snapshot: str
    version: int
    weight: float
    def __init__(self, name: _Optional[str] = ..., scene: _Optional[str] = ..., box: _Optional[_Union[VolumeBox, _Mapping]] = ..., version: _Optional[int] = ..., snapshot: _Optional[str] = ..., weight: _Optional[float] = ..., materials_as_labels: bool = ...) -> None: ...

class VolumeImportSceneResponse(_message.Message):
    __slots__ = ["engine_ms", "n_blocks", "n_new", "n_touched", "n_voxels", "stamp", "version"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_NEW_FIELD_NUMBER: _ClassVar[int]
    N_TOUCHED_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    n_blocks: int
    n_new: int
    n_touched: int
    n_voxels: int
    stamp: int
    version: int
    def __init__(self, n_touched: _Optional[int] = ..., n_new: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ..., n_voxels: _Optional[int] = ..., version: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeInfo(_message.Message):
    __slots__ = ["albedo", "block", "colour", "compact", "created_ns", "durable", "fsync", "generation", "journal_max_bytes", "labels", "max_bytes", "max_weight", "n_blocks", "n_bytes", "n_images", "name", "origin", "owner", "stamp", "truncation_m", "ttl_left_s", "ttl_s", "unavailable", "voxel_size_m", "when_full"]
    ALBEDO_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    COLOUR_FIELD_NUMBER: _ClassVar[int]
    COMPACT_FIELD_NUMBER: _ClassVar[int]
    CREATED_NS_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_IMAGES_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    TRUNCATION_M_FIELD_NUMBER: _ClassVar[int]
    TTL_LEFT_S_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    VOXEL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    WHEN_FULL_FIELD_NUMBER: _ClassVar[int]
    albedo: bool
    block: int
    colour: bool
    compact: bool
    created_ns: int
    durable: bool
    fsync: VolumeFsync
    generation: int
    journal_max_bytes: int
    labels: bool
    max_bytes: int
    max_weight: float
    n_blocks: int
    n_bytes: int
    n_images: int
    name: str
    origin: _common_pb2.Vec3
    owner: str
    stamp: int
    truncation_m: float
    ttl_left_s: float
    ttl_s: float
    unavailable: bool
    voxel_size_m: float
    when_full: VolumeFull
    def __init__(self, name: _Optional[str] = ..., voxel_size_m: _Optional[float] = ..., truncation_m: _Optional[float] = ..., block: _Optional[int] = ..., compact: bool = ..., colour: bool = ..., max_weight: _Optional[float] = ..., n_blocks: _Optional[int] = ..., n_bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ..., n_images: _Optional[int] = ..., stamp: _Optional[int] = ..., generation: _Optional[int] = ..., ttl_s: _Optional[float] = ..., ttl_left_s: _Optional[float] = ..., owner: _Optional[str] = ..., created_ns: _Optional[int] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., durable: bool = ..., fsync: _Optional[_Union[VolumeFsync, str]] = ..., journal_max_bytes: _Optional[int] = ..., unavailable: bool = ..., when_full: _Optional[_Union[VolumeFull, str]] = ..., labels: bool = ..., albedo: bool = ...) -> None: ...

class VolumeIntegratePointsRequest(_message.Message):
    __slots__ = ["T_map_sensor_end", "by_angle", "carve_m", "cloud", "image_time", "inverse_square", "label_field", "labels", "lidar", "name", "odometry", "pose", "range_max_m", "range_min_m", "time_begin", "time_end", "time_field", "weight"]
    BY_ANGLE_FIELD_NUMBER: _ClassVar[int]
    CARVE_M_FIELD_NUMBER: _ClassVar[int]
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    IMAGE_TIME_FIELD_NUMBER: _ClassVar[int]
    INVERSE_SQUARE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_FIELD_NUMBER: _ClassVar[int]
    LIDAR_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ODOMETRY_FIELD_NUMBER: _ClassVar[int]
    POSE_FIELD_NUMBER: _ClassVar[int]
    RANGE_MAX_M_FIELD_NUMBER: _ClassVar[int]
    RANGE_MIN_M_FIELD_NUMBER: _ClassVar[int]
    TIME_BEGIN_FIELD_NUMBER: _ClassVar[int]
    TIME_END_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_END_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor_end: _common_pb2.Pose
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    by_angle: bool
    carve_m: float
    cloud: _common_pb2.Cloud
    image_time: float
    inverse_square: bool
    label_field: str
    labels: bytes
    lidar: VolumeLidar
    name: str
    odometry: str
    pose: _common_pb2.PoseSource
    range_max_m: float
    range_min_m: float
    time_begin: float
    time_end: float
    time_field: str
    weight: float
    def __init__(self, name: _Optional[str] = ..., cloud: _Optional[_Union[_common_pb2.Cloud, _Mapping]] = ..., T_map_sensor_end: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., time_field: _Optional[str] = ..., time_begin: _Optional[float] = ..., time_end: _Optional[float] = ..., lidar: _Optional[_Union[VolumeLidar, _Mapping]] = ..., image_time: _Optional[float] = ..., range_min_m: _Optional[float] = ..., range_max_m: _Optional[float] = ..., carve_m: _Optional[float] = ..., weight: _Optional[float] = ..., inverse_square: bool = ..., by_angle: bool = ..., label_field: _Optional[str] = ..., labels: _Optional[bytes] = ..., pose: _Optional[_Union[_common_pb2.PoseSource, str]] = ..., odometry: _Optional[str] = ...) -> None: ...

class VolumeIntegratePointsResponse(_message.Message):
    __slots__ = ["T_map_sensor", "engine_ms", "n_beyond", "n_blocks", "n_carved", "n_dropped", "n_near", "n_new", "n_own", "n_points", "n_touched", "n_used", "reason", "stamp", "status"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_BEYOND_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_CARVED_FIELD_NUMBER: _ClassVar[int]
    N_DROPPED_FIELD_NUMBER: _ClassVar[int]
    N_NEAR_FIELD_NUMBER: _ClassVar[int]
    N_NEW_FIELD_NUMBER: _ClassVar[int]
    N_OWN_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_TOUCHED_FIELD_NUMBER: _ClassVar[int]
    N_USED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor: _common_pb2.Pose
    engine_ms: float
    n_beyond: int
    n_blocks: int
    n_carved: int
    n_dropped: int
    n_near: int
    n_new: int
    n_own: int
    n_points: int
    n_touched: int
    n_used: int
    reason: VolumeTrackReason
    stamp: int
    status: VolumeTrackStatus
    def __init__(self, n_points: _Optional[int] = ..., n_used: _Optional[int] = ..., n_beyond: _Optional[int] = ..., n_dropped: _Optional[int] = ..., n_touched: _Optional[int] = ..., n_new: _Optional[int] = ..., n_carved: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ..., engine_ms: _Optional[float] = ..., status: _Optional[_Union[VolumeTrackStatus, str]] = ..., reason: _Optional[_Union[VolumeTrackReason, str]] = ..., T_map_sensor: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., n_near: _Optional[int] = ..., n_own: _Optional[int] = ...) -> None: ...

class VolumeIntegrateRequest(_message.Message):
    __slots__ = ["T_depth_colour", "T_grid_camera", "T_map_camera", "camera", "carve_m", "colour", "colour_camera", "colour_type", "deform", "depth", "depth_max_m", "depth_min_m", "depth_scale", "depth_type", "inverse_square", "labels", "name", "pose", "weight"]
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    CARVE_M_FIELD_NUMBER: _ClassVar[int]
    COLOUR_CAMERA_FIELD_NUMBER: _ClassVar[int]
    COLOUR_FIELD_NUMBER: _ClassVar[int]
    COLOUR_TYPE_FIELD_NUMBER: _ClassVar[int]
    DEFORM_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAX_M_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MIN_M_FIELD_NUMBER: _ClassVar[int]
    DEPTH_SCALE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_TYPE_FIELD_NUMBER: _ClassVar[int]
    INVERSE_SQUARE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSE_FIELD_NUMBER: _ClassVar[int]
    T_DEPTH_COLOUR_FIELD_NUMBER: _ClassVar[int]
    T_GRID_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_depth_colour: _common_pb2.Pose
    T_grid_camera: _common_pb2.Pose
    T_map_camera: _common_pb2.Pose
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    camera: VolumeCamera
    carve_m: float
    colour: bytes
    colour_camera: VolumeCamera
    colour_type: VolumeColour
    deform: str
    depth: bytes
    depth_max_m: float
    depth_min_m: float
    depth_scale: float
    depth_type: VolumeDepth
    inverse_square: bool
    labels: bytes
    name: str
    pose: _common_pb2.PoseSource
    weight: float
    def __init__(self, name: _Optional[str] = ..., camera: _Optional[_Union[VolumeCamera, _Mapping]] = ..., depth: _Optional[bytes] = ..., depth_type: _Optional[_Union[VolumeDepth, str]] = ..., depth_scale: _Optional[float] = ..., colour: _Optional[bytes] = ..., colour_type: _Optional[_Union[VolumeColour, str]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., depth_min_m: _Optional[float] = ..., depth_max_m: _Optional[float] = ..., weight: _Optional[float] = ..., inverse_square: bool = ..., colour_camera: _Optional[_Union[VolumeCamera, _Mapping]] = ..., T_depth_colour: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., carve_m: _Optional[float] = ..., labels: _Optional[bytes] = ..., pose: _Optional[_Union[_common_pb2.PoseSource, str]] = ..., deform: _Optional[str] = ..., T_grid_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ...) -> None: ...

class VolumeIntegrateResponse(_message.Message):
    __slots__ = ["T_map_camera", "engine_ms", "n_blocks", "n_carved", "n_new", "n_touched", "reason", "stamp", "status"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_CARVED_FIELD_NUMBER: _ClassVar[int]
    N_NEW_FIELD_NUMBER: _ClassVar[int]
    N_TOUCHED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_map_camera: _common_pb2.Pose
    engine_ms: float
    n_blocks: int
    n_carved: int
    n_new: int
    n_touched: int
    reason: VolumeTrackReason
    stamp: int
    status: VolumeTrackStatus
    def __init__(self, n_touched: _Optional[int] = ..., n_new: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ..., engine_ms: _Optional[float] = ..., n_carved: _Optional[int] = ..., status: _Optional[_Union[VolumeTrackStatus, str]] = ..., reason: _Optional[_Union[VolumeTrackReason, str]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ...) -> None: ...

class VolumeLidar(_message.Message):
    __slots__ = ["azimuth_begin_deg", "azimuth_span_deg", "bottom_deg", "columns", "elevations_deg", "rows", "top_deg"]
    AZIMUTH_BEGIN_DEG_FIELD_NUMBER: _ClassVar[int]
    AZIMUTH_SPAN_DEG_FIELD_NUMBER: _ClassVar[int]
    BOTTOM_DEG_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ELEVATIONS_DEG_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TOP_DEG_FIELD_NUMBER: _ClassVar[int]
    azimuth_begin_deg: float
    azimuth_span_deg: float
    bottom_deg: float
    columns: int
    elevations_deg: _containers.RepeatedScalarFieldContainer[float]
    rows: int
    top_deg: float
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ..., elevations_deg: _Optional[_Iterable[float]] = ..., top_deg: _Optional[float] = ..., bottom_deg: _Optional[float] = ..., azimuth_begin_deg: _Optional[float] = ..., azimuth_span_deg: _Optional[float] = ...) -> None: ...

class VolumeListRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class VolumeListResponse(_message.Message):
    __slots__ = ["limit_bytes", "n_bytes", "volumes"]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    limit_bytes: int
    n_bytes: int
    volumes: _containers.RepeatedCompositeFieldContainer[VolumeInfo]
    def __init__(self, volumes: _Optional[_Iterable[_Union[VolumeInfo, _Mapping]]] = ..., n_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ...) -> None: ...

class VolumeRenderRequest(_message.Message):
    __slots__ = ["ambient", "depth_max_m", "encode", "eye", "fov_y_deg", "height", "min_weight", "name", "panorama", "quality", "show", "sun", "sun_direction", "target", "up", "width", "z_high_m", "z_low_m"]
    AMBIENT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAX_M_FIELD_NUMBER: _ClassVar[int]
    ENCODE_FIELD_NUMBER: _ClassVar[int]
    EYE_FIELD_NUMBER: _ClassVar[int]
    FOV_Y_DEG_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PANORAMA_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    SHOW_FIELD_NUMBER: _ClassVar[int]
    SUN_DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SUN_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    Z_HIGH_M_FIELD_NUMBER: _ClassVar[int]
    Z_LOW_M_FIELD_NUMBER: _ClassVar[int]
    ambient: float
    depth_max_m: float
    encode: VolumeEncode
    eye: _common_pb2.Vec3
    fov_y_deg: float
    height: int
    min_weight: float
    name: str
    panorama: bool
    quality: int
    show: VolumeShow
    sun: float
    sun_direction: _common_pb2.Vec3
    target: _common_pb2.Vec3
    up: _common_pb2.Vec3
    width: int
    z_high_m: float
    z_low_m: float
    def __init__(self, name: _Optional[str] = ..., eye: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., target: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., up: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., fov_y_deg: _Optional[float] = ..., panorama: bool = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., show: _Optional[_Union[VolumeShow, str]] = ..., sun_direction: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., sun: _Optional[float] = ..., ambient: _Optional[float] = ..., z_low_m: _Optional[float] = ..., z_high_m: _Optional[float] = ..., min_weight: _Optional[float] = ..., depth_max_m: _Optional[float] = ..., encode: _Optional[_Union[VolumeEncode, str]] = ..., quality: _Optional[int] = ...) -> None: ...

class VolumeRenderResponse(_message.Message):
    __slots__ = ["engine_ms", "eye", "height", "image", "n_hits", "stamp", "target", "width"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    EYE_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    N_HITS_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    eye: _common_pb2.Vec3
    height: int
    image: bytes
    n_hits: int
    stamp: int
    target: _common_pb2.Vec3
    width: int
    def __init__(self, image: _Optional[bytes] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., eye: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., target: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., n_hits: _Optional[int] = ..., stamp: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeStampRequest(_message.Message):
    __slots__ = ["box", "if_version", "labels_as_materials", "material", "min_weight", "name", "scene", "thin"]
    BOX_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    LABELS_AS_MATERIALS_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    THIN_FIELD_NUMBER: _ClassVar[int]
    box: VolumeBox
    if_version: int
    labels_as_materials: bool
    material: int
    min_weight: float
    name: str
    scene: str
    thin: bool
    def __init__(self, name: _Optional[str] = ..., scene: _Optional[str] = ..., box: _Optional[_Union[VolumeBox, _Mapping]] = ..., min_weight: _Optional[float] = ..., material: _Optional[int] = ..., labels_as_materials: bool = ..., thin: bool = ..., if_version: _Optional[int] = ...) -> None: ...

class VolumeStampResponse(_message.Message):
    __slots__ = ["engine_ms", "n_added", "n_changed", "n_new_nodes", "n_outside", "n_triangles", "n_voxels", "version"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_ADDED_FIELD_NUMBER: _ClassVar[int]
    N_CHANGED_FIELD_NUMBER: _ClassVar[int]
    N_NEW_NODES_FIELD_NUMBER: _ClassVar[int]
    N_OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    N_TRIANGLES_FIELD_NUMBER: _ClassVar[int]
    N_VOXELS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    n_added: int
    n_changed: int
    n_new_nodes: int
    n_outside: int
    n_triangles: int
    n_voxels: int
    version: int
    def __init__(self, version: _Optional[int] = ..., n_added: _Optional[int] = ..., n_changed: _Optional[int] = ..., n_new_nodes: _Optional[int] = ..., n_voxels: _Optional[int] = ..., n_triangles: _Optional[int] = ..., n_outside: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeTrackAndIntegrateRequest(_message.Message):
    __slots__ = ["T_depth_colour", "T_map_camera", "camera", "colour", "colour_camera", "colour_type", "depth", "depth_max_m", "depth_min_m", "depth_scale", "depth_type", "intensity_m", "intensity_scale", "inverse_square", "iterations", "levels", "max_distance_m", "max_pixels", "max_rotation_deg", "max_translation_m", "method", "min_agreement", "min_constraint", "min_fitness", "min_weight", "name", "no_filter", "predict_colours", "predict_depth", "predict_normals", "reset", "robust", "robust_scale_m", "weight"]
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    COLOUR_CAMERA_FIELD_NUMBER: _ClassVar[int]
    COLOUR_FIELD_NUMBER: _ClassVar[int]
    COLOUR_TYPE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAX_M_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MIN_M_FIELD_NUMBER: _ClassVar[int]
    DEPTH_SCALE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_TYPE_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_M_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_SCALE_FIELD_NUMBER: _ClassVar[int]
    INVERSE_SQUARE_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    MAX_PIXELS_FIELD_NUMBER: _ClassVar[int]
    MAX_ROTATION_DEG_FIELD_NUMBER: _ClassVar[int]
    MAX_TRANSLATION_M_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    MIN_AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    MIN_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    MIN_FITNESS_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NO_FILTER_FIELD_NUMBER: _ClassVar[int]
    PREDICT_COLOURS_FIELD_NUMBER: _ClassVar[int]
    PREDICT_DEPTH_FIELD_NUMBER: _ClassVar[int]
    PREDICT_NORMALS_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    ROBUST_FIELD_NUMBER: _ClassVar[int]
    ROBUST_SCALE_M_FIELD_NUMBER: _ClassVar[int]
    T_DEPTH_COLOUR_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_depth_colour: _common_pb2.Pose
    T_map_camera: _common_pb2.Pose
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    camera: VolumeCamera
    colour: bytes
    colour_camera: VolumeCamera
    colour_type: VolumeColour
    depth: bytes
    depth_max_m: float
    depth_min_m: float
    depth_scale: float
    depth_type: VolumeDepth
    intensity_m: float
    intensity_scale: float
    inverse_square: bool
    iterations: int
    levels: int
    max_distance_m: float
    max_pixels: int
    max_rotation_deg: float
    max_translation_m: float
    method: VolumeTrackMethod
    min_agreement: float
    min_constraint: float
    min_fitness: float
    min_weight: float
    name: str
    no_filter: bool
    predict_colours: bool
    predict_depth: bool
    predict_normals: bool
    reset: bool
    robust: VolumeTrackRobust
    robust_scale_m: float
    weight: float
    def __init__(self, name: _Optional[str] = ..., camera: _Optional[_Union[VolumeCamera, _Mapping]] = ..., depth: _Optional[bytes] = ..., depth_type: _Optional[_Union[VolumeDepth, str]] = ..., depth_scale: _Optional[float] = ..., colour: _Optional[bytes] = ..., colour_type: _Optional[_Union[VolumeColour, str]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., depth_min_m: _Optional[float] = ..., depth_max_m: _Optional[float] = ..., weight: _Optional[float] = ..., inverse_square: bool = ..., colour_camera: _Optional[_Union[VolumeCamera, _Mapping]] = ..., T_depth_colour: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., method: _Optional[_Union[VolumeTrackMethod, str]] = ..., robust: _Optional[_Union[VolumeTrackRobust, str]] = ..., levels: _Optional[int] = ..., iterations: _Optional[int] = ..., max_distance_m: _Optional[float] = ..., robust_scale_m: _Optional[float] = ..., intensity_scale: _Optional[float] = ..., intensity_m: _Optional[float] = ..., min_weight: _Optional[float] = ..., min_fitness: _Optional[float] = ..., min_agreement: _Optional[float] = ..., min_constraint: _Optional[float] = ..., max_translation_m: _Optional[float] = ..., max_rotation_deg: _Optional[float] = ..., no_filter: bool = ..., max_pixels: _Optional[int] = ..., reset: bool = ..., predict_depth: bool = ..., predict_normals: bool = ..., predict_colours: bool = ...) -> None: ...

class VolumeTrackAndIntegrateResponse(_message.Message):
    __slots__ = ["T_map_camera", "agreement", "colours", "constraint", "depth_map", "engine_ms", "fitness", "information", "is_first", "n_blocks", "n_inliers", "n_iterations", "n_new", "n_pixels", "n_touched", "normals", "reason", "rmse_m", "stamp", "status"]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    COLOURS_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAP_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    IS_FIRST_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_INLIERS_FIELD_NUMBER: _ClassVar[int]
    N_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    N_NEW_FIELD_NUMBER: _ClassVar[int]
    N_PIXELS_FIELD_NUMBER: _ClassVar[int]
    N_TOUCHED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RMSE_M_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_map_camera: _common_pb2.Pose
    agreement: float
    colours: _common_pb2.Tensor
    constraint: float
    depth_map: _common_pb2.Tensor
    engine_ms: float
    fitness: float
    information: _common_pb2.Tensor
    is_first: bool
    n_blocks: int
    n_inliers: int
    n_iterations: int
    n_new: int
    n_pixels: int
    n_touched: int
    normals: _common_pb2.Tensor
    reason: VolumeTrackReason
    rmse_m: float
    stamp: int
    status: VolumeTrackStatus
    def __init__(self, status: _Optional[_Union[VolumeTrackStatus, str]] = ..., reason: _Optional[_Union[VolumeTrackReason, str]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., information: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., fitness: _Optional[float] = ..., agreement: _Optional[float] = ..., constraint: _Optional[float] = ..., rmse_m: _Optional[float] = ..., n_inliers: _Optional[int] = ..., n_iterations: _Optional[int] = ..., is_first: bool = ..., n_touched: _Optional[int] = ..., n_new: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ..., n_pixels: _Optional[int] = ..., depth_map: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., colours: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeTrackRequest(_message.Message):
    __slots__ = ["T_depth_colour", "T_map_camera", "camera", "colour", "colour_camera", "colour_type", "depth", "depth_max_m", "depth_min_m", "depth_scale", "depth_type", "intensity_m", "intensity_scale", "iterations", "levels", "max_distance_m", "max_pixels", "max_rotation_deg", "max_translation_m", "method", "min_agreement", "min_constraint", "min_fitness", "min_weight", "name", "no_filter", "robust", "robust_scale_m"]
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    COLOUR_CAMERA_FIELD_NUMBER: _ClassVar[int]
    COLOUR_FIELD_NUMBER: _ClassVar[int]
    COLOUR_TYPE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAX_M_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MIN_M_FIELD_NUMBER: _ClassVar[int]
    DEPTH_SCALE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_TYPE_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_M_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_SCALE_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    MAX_PIXELS_FIELD_NUMBER: _ClassVar[int]
    MAX_ROTATION_DEG_FIELD_NUMBER: _ClassVar[int]
    MAX_TRANSLATION_M_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    MIN_AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    MIN_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    MIN_FITNESS_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NO_FILTER_FIELD_NUMBER: _ClassVar[int]
    ROBUST_FIELD_NUMBER: _ClassVar[int]
    ROBUST_SCALE_M_FIELD_NUMBER: _ClassVar[int]
    T_DEPTH_COLOUR_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_depth_colour: _common_pb2.Pose
    T_map_camera: _common_pb2.Pose
    camera: VolumeCamera
    colour: bytes
    colour_camera: VolumeCamera
    colour_type: VolumeColour
    depth: bytes
    depth_max_m: float
    depth_min_m: float
    depth_scale: float
    depth_type: VolumeDepth
    intensity_m: float
    intensity_scale: float
    iterations: int
    levels: int
    max_distance_m: float
    max_pixels: int
    max_rotation_deg: float
    max_translation_m: float
    method: VolumeTrackMethod
    min_agreement: float
    min_constraint: float
    min_fitness: float
    min_weight: float
    name: str
    no_filter: bool
    robust: VolumeTrackRobust
    robust_scale_m: float
    def __init__(self, name: _Optional[str] = ..., camera: _Optional[_Union[VolumeCamera, _Mapping]] = ..., depth: _Optional[bytes] = ..., depth_type: _Optional[_Union[VolumeDepth, str]] = ..., depth_scale: _Optional[float] = ..., colour: _Optional[bytes] = ..., colour_type: _Optional[_Union[VolumeColour, str]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., depth_min_m: _Optional[float] = ..., depth_max_m: _Optional[float] = ..., colour_camera: _Optional[_Union[VolumeCamera, _Mapping]] = ..., T_depth_colour: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., method: _Optional[_Union[VolumeTrackMethod, str]] = ..., robust: _Optional[_Union[VolumeTrackRobust, str]] = ..., levels: _Optional[int] = ..., iterations: _Optional[int] = ..., max_distance_m: _Optional[float] = ..., robust_scale_m: _Optional[float] = ..., intensity_scale: _Optional[float] = ..., intensity_m: _Optional[float] = ..., min_weight: _Optional[float] = ..., min_fitness: _Optional[float] = ..., min_agreement: _Optional[float] = ..., min_constraint: _Optional[float] = ..., max_translation_m: _Optional[float] = ..., max_rotation_deg: _Optional[float] = ..., no_filter: bool = ..., max_pixels: _Optional[int] = ...) -> None: ...

class VolumeTrackResponse(_message.Message):
    __slots__ = ["T_map_camera", "agreement", "constraint", "engine_ms", "fitness", "information", "n_inliers", "n_iterations", "reason", "rmse_m", "status"]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    N_INLIERS_FIELD_NUMBER: _ClassVar[int]
    N_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RMSE_M_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_CAMERA_FIELD_NUMBER: _ClassVar[int]
    T_map_camera: _common_pb2.Pose
    agreement: float
    constraint: float
    engine_ms: float
    fitness: float
    information: _common_pb2.Tensor
    n_inliers: int
    n_iterations: int
    reason: VolumeTrackReason
    rmse_m: float
    status: VolumeTrackStatus
    def __init__(self, status: _Optional[_Union[VolumeTrackStatus, str]] = ..., reason: _Optional[_Union[VolumeTrackReason, str]] = ..., T_map_camera: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., information: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., fitness: _Optional[float] = ..., agreement: _Optional[float] = ..., constraint: _Optional[float] = ..., rmse_m: _Optional[float] = ..., n_inliers: _Optional[int] = ..., n_iterations: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class VolumeFsync(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeFull(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeDepth(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeColour(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeShow(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeEncode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeUnknown(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeTrackMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeTrackRobust(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeTrackStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class VolumeTrackReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
