# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import network_pb2 as _network_pb2
from voxeld.v1 import odometry_pb2 as _odometry_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
SCENE_CELLS: SceneFormat
SCENE_COPY: SceneAction
SCENE_DENSE: SceneFormat
SCENE_DILATE: SceneAction
SCENE_ERASE: SceneAction
SCENE_ERODE: SceneAction
SCENE_FILL: SceneAction
SCENE_FSYNC_ALWAYS: SceneFsync
SCENE_FSYNC_EVERYSEC: SceneFsync
SCENE_FSYNC_OFF: SceneFsync
SCENE_FUSION_LAST: SceneFusion
SCENE_FUSION_LOG_ODDS: SceneFusion
SCENE_FUSION_UNSPECIFIED: SceneFusion
SCENE_KEEP: SceneAction
SCENE_PAINT: SceneAction
SCENE_PINNED: ScenePin
SCENE_PIN_UNCHANGED: ScenePin
SCENE_PLY: SceneFormat
SCENE_REPLACE: SceneAction
SCENE_SET_FREE: SceneAction
SCENE_UNPINNED: ScenePin

class SceneAt(_message.Message):
    __slots__ = ["snapshot", "version"]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    snapshot: str
    version: int
    def __init__(self, version: _Optional[int] = ..., snapshot: _Optional[str] = ...) -> None: ...

class SceneBall(_message.Message):
    __slots__ = ["centre", "noise", "noise_cell_bits", "noise_seed", "radius"]
    CENTRE_FIELD_NUMBER: _ClassVar[int]
    NOISE_CELL_BITS_FIELD_NUMBER: _ClassVar[int]
    NOISE_FIELD_NUMBER: _ClassVar[int]
    NOISE_SEED_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    centre: _common_pb2.Vec3
    noise: float
    noise_cell_bits: int
    noise_seed: int
    radius: float
    def __init__(self, centre: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., radius: _Optional[float] = ..., noise: _Optional[float] = ..., noise_cell_bits: _Optional[int] = ..., noise_seed: _Optional[int] = ...) -> None: ...

class SceneBox(_message.Message):
    __slots__ = ["high", "low"]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    high: _common_pb2.Vec3
    low: _common_pb2.Vec3
    def __init__(self, low: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., high: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ...) -> None: ...

class SceneCapsule(_message.Message):
    __slots__ = ["a", "b", "radius"]
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    RADIUS_FIELD_NUMBER: _ClassVar[int]
    a: _common_pb2.Vec3
    b: _common_pb2.Vec3
    radius: float
    def __init__(self, a: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., b: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., radius: _Optional[float] = ...) -> None: ...

class SceneCarve(_message.Message):
    __slots__ = ["discretize", "erase", "max_range_m"]
    DISCRETIZE_FIELD_NUMBER: _ClassVar[int]
    ERASE_FIELD_NUMBER: _ClassVar[int]
    MAX_RANGE_M_FIELD_NUMBER: _ClassVar[int]
    discretize: bool
    erase: bool
    max_range_m: float
    def __init__(self, max_range_m: _Optional[float] = ..., erase: bool = ..., discretize: bool = ...) -> None: ...

class SceneCastRaysRequest(_message.Message):
    __slots__ = ["at", "directions", "max_range_m", "name", "origins"]
    AT_FIELD_NUMBER: _ClassVar[int]
    DIRECTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_RANGE_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    at: SceneAt
    directions: _common_pb2.Tensor
    max_range_m: float
    name: str
    origins: _common_pb2.Tensor
    def __init__(self, name: _Optional[str] = ..., origins: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., directions: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., max_range_m: _Optional[float] = ..., at: _Optional[_Union[SceneAt, _Mapping]] = ...) -> None: ...

class SceneCastRaysResponse(_message.Message):
    __slots__ = ["distances", "materials", "n_hits", "normals", "seen", "voxels"]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    MATERIALS_FIELD_NUMBER: _ClassVar[int]
    NORMALS_FIELD_NUMBER: _ClassVar[int]
    N_HITS_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    VOXELS_FIELD_NUMBER: _ClassVar[int]
    distances: _common_pb2.Tensor
    materials: _common_pb2.Tensor
    n_hits: int
    normals: _common_pb2.Tensor
    seen: SceneSeen
    voxels: _common_pb2.Tensor
    def __init__(self, seen: _Optional[_Union[SceneSeen, _Mapping]] = ..., distances: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., voxels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., normals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., materials: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_hits: _Optional[int] = ...) -> None: ...

class SceneChange(_message.Message):
    __slots__ = ["n_added", "n_changed", "n_freed", "n_new_nodes", "n_removed", "version"]
    N_ADDED_FIELD_NUMBER: _ClassVar[int]
    N_CHANGED_FIELD_NUMBER: _ClassVar[int]
    N_FREED_FIELD_NUMBER: _ClassVar[int]
    N_NEW_NODES_FIELD_NUMBER: _ClassVar[int]
    N_REMOVED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    n_added: int
    n_changed: int
    n_freed: int
    n_new_nodes: int
    n_removed: int
    version: int
    def __init__(self, version: _Optional[int] = ..., n_added: _Optional[int] = ..., n_removed: _Optional[int] = ..., n_changed: _Optional[int] = ..., n_freed: _Optional[int] = ..., n_new_nodes: _Optional[int] = ...) -> None: ...

class SceneCopy(_message.Message):
    __slots__ = ["copy_empty", "matrix"]
    COPY_EMPTY_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    MATRIX_FIELD_NUMBER: _ClassVar[int]
    copy_empty: bool
    matrix: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, matrix: _Optional[_Iterable[int]] = ..., copy_empty: bool = ..., **kwargs) -> None: ...

class SceneCreateRequest(_message.Message):
    __slots__ = ["durability", "max_bytes", "name", "retention", "spec"]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    durability: SceneDurability
    max_bytes: int
    name: str
    retention: SceneRetention
    spec: SceneSpec
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[SceneSpec, _Mapping]] = ..., max_bytes: _Optional[int] = ..., retention: _Optional[_Union[SceneRetention, _Mapping]] = ..., durability: _Optional[_Union[SceneDurability, _Mapping]] = ...) -> None: ...

class SceneCreateResponse(_message.Message):
    __slots__ = ["existed", "scene"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    scene: SceneInfo
    def __init__(self, existed: bool = ..., scene: _Optional[_Union[SceneInfo, _Mapping]] = ...) -> None: ...

class SceneDropRequest(_message.Message):
    __slots__ = ["missing_ok", "name"]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    missing_ok: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., missing_ok: bool = ...) -> None: ...

class SceneDropResponse(_message.Message):
    __slots__ = ["existed"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: bool = ...) -> None: ...

class SceneDurability(_message.Message):
    __slots__ = ["fsync", "journal_max_bytes"]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    fsync: SceneFsync
    journal_max_bytes: int
    def __init__(self, fsync: _Optional[_Union[SceneFsync, str]] = ..., journal_max_bytes: _Optional[int] = ...) -> None: ...

class SceneEditRequest(_message.Message):
    __slots__ = ["if_version", "in_voxels", "name", "operations"]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    if_version: int
    in_voxels: bool
    name: str
    operations: _containers.RepeatedCompositeFieldContainer[SceneOperation]
    def __init__(self, name: _Optional[str] = ..., operations: _Optional[_Iterable[_Union[SceneOperation, _Mapping]]] = ..., in_voxels: bool = ..., if_version: _Optional[int] = ...) -> None: ...

class SceneEditResponse(_message.Message):
    __slots__ = ["change", "engine_ms", "n_non_finite", "n_outside"]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_NON_FINITE_FIELD_NUMBER: _ClassVar[int]
    N_OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    change: SceneChange
    engine_ms: float
    n_non_finite: int
    n_outside: int
    def __init__(self, change: _Optional[_Union[SceneChange, _Mapping]] = ..., n_outside: _Optional[int] = ..., n_non_finite: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SceneExportRequest(_message.Message):
    __slots__ = ["at", "box", "first", "format", "free", "in_voxels", "level", "limit", "name", "pinned", "with_counts"]
    AT_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    IN_VOXELS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    WITH_COUNTS_FIELD_NUMBER: _ClassVar[int]
    at: SceneAt
    box: SceneBox
    first: int
    format: SceneFormat
    free: bool
    in_voxels: bool
    level: int
    limit: int
    name: str
    pinned: bool
    with_counts: bool
    def __init__(self, name: _Optional[str] = ..., format: _Optional[_Union[SceneFormat, str]] = ..., box: _Optional[_Union[SceneBox, _Mapping]] = ..., in_voxels: bool = ..., level: _Optional[int] = ..., free: bool = ..., first: _Optional[int] = ..., limit: _Optional[int] = ..., with_counts: bool = ..., at: _Optional[_Union[SceneAt, _Mapping]] = ..., pinned: bool = ...) -> None: ...

class SceneExportResponse(_message.Message):
    __slots__ = ["cell_size_m", "cells", "counts", "frame_id", "low_cell", "materials", "n_cells", "origin", "ply", "seen", "states"]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    CELL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    LOW_CELL_FIELD_NUMBER: _ClassVar[int]
    MATERIALS_FIELD_NUMBER: _ClassVar[int]
    N_CELLS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    PLY_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    cell_size_m: float
    cells: _common_pb2.Tensor
    counts: _common_pb2.Tensor
    frame_id: str
    low_cell: _containers.RepeatedScalarFieldContainer[int]
    materials: _common_pb2.Tensor
    n_cells: int
    origin: _common_pb2.Vec3
    ply: bytes
    seen: SceneSeen
    states: _common_pb2.Tensor
    def __init__(self, seen: _Optional[_Union[SceneSeen, _Mapping]] = ..., cells: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., materials: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., counts: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., states: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., low_cell: _Optional[_Iterable[int]] = ..., ply: _Optional[bytes] = ..., n_cells: _Optional[int] = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., cell_size_m: _Optional[float] = ..., frame_id: _Optional[str] = ...) -> None: ...

class SceneFilter(_message.Message):
    __slots__ = ["ground", "ground_angle", "ground_distance_m", "ground_z", "ground_z_tolerance_m", "min_hits", "no_speckles"]
    GROUND_ANGLE_FIELD_NUMBER: _ClassVar[int]
    GROUND_DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
    GROUND_FIELD_NUMBER: _ClassVar[int]
    GROUND_Z_FIELD_NUMBER: _ClassVar[int]
    GROUND_Z_TOLERANCE_M_FIELD_NUMBER: _ClassVar[int]
    MIN_HITS_FIELD_NUMBER: _ClassVar[int]
    NO_SPECKLES_FIELD_NUMBER: _ClassVar[int]
    ground: bool
    ground_angle: float
    ground_distance_m: float
    ground_z: float
    ground_z_tolerance_m: float
    min_hits: int
    no_speckles: bool
    def __init__(self, ground: bool = ..., ground_distance_m: _Optional[float] = ..., ground_angle: _Optional[float] = ..., ground_z: _Optional[float] = ..., ground_z_tolerance_m: _Optional[float] = ..., min_hits: _Optional[int] = ..., no_speckles: bool = ...) -> None: ...

class SceneGetRequest(_message.Message):
    __slots__ = ["at", "name", "uncounted"]
    AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNCOUNTED_FIELD_NUMBER: _ClassVar[int]
    at: SceneAt
    name: str
    uncounted: bool
    def __init__(self, name: _Optional[str] = ..., at: _Optional[_Union[SceneAt, _Mapping]] = ..., uncounted: bool = ...) -> None: ...

class SceneGetResponse(_message.Message):
    __slots__ = ["scene"]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    scene: SceneInfo
    def __init__(self, scene: _Optional[_Union[SceneInfo, _Mapping]] = ...) -> None: ...

class SceneHalfSpace(_message.Message):
    __slots__ = ["normal", "offset"]
    NORMAL_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    normal: _common_pb2.Vec3
    offset: float
    def __init__(self, normal: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., offset: _Optional[float] = ...) -> None: ...

class SceneHeightfield(_message.Message):
    __slots__ = ["cell", "heights", "low_z", "x", "y"]
    CELL_FIELD_NUMBER: _ClassVar[int]
    HEIGHTS_FIELD_NUMBER: _ClassVar[int]
    LOW_Z_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    cell: float
    heights: _common_pb2.Tensor
    low_z: float
    x: float
    y: float
    def __init__(self, heights: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., x: _Optional[float] = ..., y: _Optional[float] = ..., cell: _Optional[float] = ..., low_z: _Optional[float] = ...) -> None: ...

class SceneInfo(_message.Message):
    __slots__ = ["T_map_sensor", "changed_ns", "created_ns", "digest", "durability", "generation", "live_node_bytes", "log_odds_bytes", "max_bytes", "n_bytes", "n_free", "n_nodes", "n_occupied", "n_pinned", "n_sharing", "n_snapshots", "name", "node_bytes", "occupied_high", "occupied_low", "oldest_version", "owner", "retention", "sensor_ns", "spec", "version", "vote_bytes"]
    CHANGED_NS_FIELD_NUMBER: _ClassVar[int]
    CREATED_NS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LIVE_NODE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_ODDS_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_FREE_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    N_OCCUPIED_FIELD_NUMBER: _ClassVar[int]
    N_PINNED_FIELD_NUMBER: _ClassVar[int]
    N_SHARING_FIELD_NUMBER: _ClassVar[int]
    N_SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    OCCUPIED_HIGH_FIELD_NUMBER: _ClassVar[int]
    OCCUPIED_LOW_FIELD_NUMBER: _ClassVar[int]
    OLDEST_VERSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    SENSOR_NS_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor: _common_pb2.Pose
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VOTE_BYTES_FIELD_NUMBER: _ClassVar[int]
    changed_ns: int
    created_ns: int
    digest: str
    durability: SceneDurability
    generation: int
    live_node_bytes: int
    log_odds_bytes: int
    max_bytes: int
    n_bytes: int
    n_free: int
    n_nodes: int
    n_occupied: int
    n_pinned: int
    n_sharing: int
    n_snapshots: int
    name: str
    node_bytes: int
    occupied_high: _common_pb2.Vec3
    occupied_low: _common_pb2.Vec3
    oldest_version: int
    owner: str
    retention: SceneRetention
    sensor_ns: int
    spec: SceneSpec
    version: int
    vote_bytes: int
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[SceneSpec, _Mapping]] = ..., version: _Optional[int] = ..., generation: _Optional[int] = ..., n_bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ..., node_bytes: _Optional[int] = ..., n_nodes: _Optional[int] = ..., n_occupied: _Optional[int] = ..., n_free: _Optional[int] = ..., live_node_bytes: _Optional[int] = ..., digest: _Optional[str] = ..., owner: _Optional[str] = ..., created_ns: _Optional[int] = ..., changed_ns: _Optional[int] = ..., retention: _Optional[_Union[SceneRetention, _Mapping]] = ..., oldest_version: _Optional[int] = ..., n_snapshots: _Optional[int] = ..., n_sharing: _Optional[int] = ..., durability: _Optional[_Union[SceneDurability, _Mapping]] = ..., log_odds_bytes: _Optional[int] = ..., n_pinned: _Optional[int] = ..., vote_bytes: _Optional[int] = ..., T_map_sensor: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., sensor_ns: _Optional[int] = ..., occupied_low: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., occupied_high: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ...) -> None: ...

class SceneIntegrateRequest(_message.Message):
    __slots__ = ["carve", "cloud", "expect_digest", "filter", "if_version", "label_to_material", "name", "network", "odometry", "output", "pose", "rule"]
    CARVE_FIELD_NUMBER: _ClassVar[int]
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    EXPECT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    LABEL_TO_MATERIAL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    ODOMETRY_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    POSE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    carve: SceneCarve
    cloud: _common_pb2.Cloud
    expect_digest: str
    filter: SceneFilter
    if_version: int
    label_to_material: _containers.RepeatedCompositeFieldContainer[SceneLabel]
    name: str
    network: str
    odometry: str
    output: str
    pose: _common_pb2.PoseSource
    rule: SceneMaterialRule
    def __init__(self, name: _Optional[str] = ..., cloud: _Optional[_Union[_common_pb2.Cloud, _Mapping]] = ..., carve: _Optional[_Union[SceneCarve, _Mapping]] = ..., rule: _Optional[_Union[SceneMaterialRule, _Mapping]] = ..., if_version: _Optional[int] = ..., network: _Optional[str] = ..., label_to_material: _Optional[_Iterable[_Union[SceneLabel, _Mapping]]] = ..., expect_digest: _Optional[str] = ..., output: _Optional[str] = ..., filter: _Optional[_Union[SceneFilter, _Mapping]] = ..., pose: _Optional[_Union[_common_pb2.PoseSource, str]] = ..., odometry: _Optional[str] = ...) -> None: ...

class SceneIntegrateResponse(_message.Message):
    __slots__ = ["T_map_sensor", "carve_ms", "change", "decode_ms", "digest", "edit_ms", "engine_ms", "frame_id", "n_beyond", "n_dropped", "n_ground", "n_hit_voxels", "n_near", "n_non_finite", "n_outside", "n_own", "n_passed_voxels", "n_points", "n_relabelled", "n_sparse", "n_used", "network", "reason", "stamp_ns", "status"]
    CARVE_MS_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    DECODE_MS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    EDIT_MS_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    N_BEYOND_FIELD_NUMBER: _ClassVar[int]
    N_DROPPED_FIELD_NUMBER: _ClassVar[int]
    N_GROUND_FIELD_NUMBER: _ClassVar[int]
    N_HIT_VOXELS_FIELD_NUMBER: _ClassVar[int]
    N_NEAR_FIELD_NUMBER: _ClassVar[int]
    N_NON_FINITE_FIELD_NUMBER: _ClassVar[int]
    N_OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    N_OWN_FIELD_NUMBER: _ClassVar[int]
    N_PASSED_VOXELS_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_RELABELLED_FIELD_NUMBER: _ClassVar[int]
    N_SPARSE_FIELD_NUMBER: _ClassVar[int]
    N_USED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor: _common_pb2.Pose
    carve_ms: float
    change: SceneChange
    decode_ms: float
    digest: str
    edit_ms: float
    engine_ms: float
    frame_id: str
    n_beyond: int
    n_dropped: int
    n_ground: int
    n_hit_voxels: int
    n_near: int
    n_non_finite: int
    n_outside: int
    n_own: int
    n_passed_voxels: int
    n_points: int
    n_relabelled: int
    n_sparse: int
    n_used: int
    network: _network_pb2.NetworkTimings
    reason: _odometry_pb2.OdometryReason
    stamp_ns: int
    status: _odometry_pb2.OdometryStatus
    def __init__(self, change: _Optional[_Union[SceneChange, _Mapping]] = ..., stamp_ns: _Optional[int] = ..., frame_id: _Optional[str] = ..., n_points: _Optional[int] = ..., n_used: _Optional[int] = ..., n_non_finite: _Optional[int] = ..., n_outside: _Optional[int] = ..., n_beyond: _Optional[int] = ..., n_hit_voxels: _Optional[int] = ..., n_passed_voxels: _Optional[int] = ..., decode_ms: _Optional[float] = ..., carve_ms: _Optional[float] = ..., edit_ms: _Optional[float] = ..., engine_ms: _Optional[float] = ..., n_dropped: _Optional[int] = ..., digest: _Optional[str] = ..., network: _Optional[_Union[_network_pb2.NetworkTimings, _Mapping]] = ..., n_relabelled: _Optional[int] = ..., n_ground: _Optional[int] = ..., n_sparse: _Optional[int] = ..., status: _Optional[_Union[_odometry_pb2.OdometryStatus, str]] = ..., reason: _Optional[_Union[_odometry_pb2.OdometryReason, str]] = ..., T_map_sensor: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., n_near: _Optional[int] = ..., n_own: _Optional[int] = ...) -> None: ...

class SceneLabel(_message.Message):
    __slots__ = ["label", "label_name", "material", "material_name"]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    LABEL_NAME_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_NAME_FIELD_NUMBER: _ClassVar[int]
    label: int
    label_name: str
    material: int
    material_name: str
    def __init__(self, label: _Optional[int] = ..., label_name: _Optional[str] = ..., material: _Optional[int] = ..., material_name: _Optional[str] = ...) -> None: ...

class SceneListRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class SceneListResponse(_message.Message):
    __slots__ = ["limit_bytes", "n_bytes", "scenes"]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    SCENES_FIELD_NUMBER: _ClassVar[int]
    limit_bytes: int
    n_bytes: int
    scenes: _containers.RepeatedCompositeFieldContainer[SceneInfo]
    def __init__(self, scenes: _Optional[_Iterable[_Union[SceneInfo, _Mapping]]] = ..., n_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ...) -> None: ...

class SceneLogOdds(_message.Message):
    __slots__ = ["clamp_high", "clamp_low", "error", "hit", "label_votes", "miss", "occupied", "step"]
    CLAMP_HIGH_FIELD_NUMBER: _ClassVar[int]
    CLAMP_LOW_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HIT_FIELD_NUMBER: _ClassVar[int]
    LABEL_VOTES_FIELD_NUMBER: _ClassVar[int]
    MISS_FIELD_NUMBER: _ClassVar[int]
    OCCUPIED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    clamp_high: float
    clamp_low: float
    error: float
    hit: float
    label_votes: int
    miss: float
    occupied: float
    step: float
    def __init__(self, hit: _Optional[float] = ..., miss: _Optional[float] = ..., clamp_low: _Optional[float] = ..., clamp_high: _Optional[float] = ..., occupied: _Optional[float] = ..., step: _Optional[float] = ..., error: _Optional[float] = ..., label_votes: _Optional[int] = ...) -> None: ...

class SceneMaterial(_message.Message):
    __slots__ = ["name", "rgb"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RGB_FIELD_NUMBER: _ClassVar[int]
    name: str
    rgb: int
    def __init__(self, name: _Optional[str] = ..., rgb: _Optional[int] = ...) -> None: ...

class SceneMaterialRule(_message.Message):
    __slots__ = ["field", "high", "kind", "low", "material"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    COLOUR: SceneMaterialRule.Kind
    CONSTANT: SceneMaterialRule.Kind
    FIELD_FIELD_NUMBER: _ClassVar[int]
    HEIGHT: SceneMaterialRule.Kind
    HIGH_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL: SceneMaterialRule.Kind
    LOW_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_FIELD_NUMBER: _ClassVar[int]
    RAMP: SceneMaterialRule.Kind
    field: str
    high: float
    kind: SceneMaterialRule.Kind
    low: float
    material: int
    def __init__(self, kind: _Optional[_Union[SceneMaterialRule.Kind, str]] = ..., material: _Optional[int] = ..., field: _Optional[str] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class SceneNearestRequest(_message.Message):
    __slots__ = ["at", "name", "points", "radius_m"]
    AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    RADIUS_M_FIELD_NUMBER: _ClassVar[int]
    at: SceneAt
    name: str
    points: _common_pb2.Tensor
    radius_m: float
    def __init__(self, name: _Optional[str] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., radius_m: _Optional[float] = ..., at: _Optional[_Union[SceneAt, _Mapping]] = ...) -> None: ...

class SceneNearestResponse(_message.Message):
    __slots__ = ["distances", "materials", "n_found", "seen", "voxels"]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    MATERIALS_FIELD_NUMBER: _ClassVar[int]
    N_FOUND_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    VOXELS_FIELD_NUMBER: _ClassVar[int]
    distances: _common_pb2.Tensor
    materials: _common_pb2.Tensor
    n_found: int
    seen: SceneSeen
    voxels: _common_pb2.Tensor
    def __init__(self, seen: _Optional[_Union[SceneSeen, _Mapping]] = ..., distances: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., voxels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., materials: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_found: _Optional[int] = ...) -> None: ...

class SceneOperation(_message.Message):
    __slots__ = ["action", "ball", "box", "capsule", "copy", "from_material", "half_space", "heightfield", "material", "pin", "points", "threshold"]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    BALL_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    CAPSULE_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    FROM_MATERIAL_FIELD_NUMBER: _ClassVar[int]
    HALF_SPACE_FIELD_NUMBER: _ClassVar[int]
    HEIGHTFIELD_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    action: SceneAction
    ball: SceneBall
    box: SceneBox
    capsule: SceneCapsule
    copy: SceneCopy
    from_material: int
    half_space: SceneHalfSpace
    heightfield: SceneHeightfield
    material: int
    pin: ScenePin
    points: ScenePoints
    threshold: int
    def __init__(self, box: _Optional[_Union[SceneBox, _Mapping]] = ..., ball: _Optional[_Union[SceneBall, _Mapping]] = ..., capsule: _Optional[_Union[SceneCapsule, _Mapping]] = ..., half_space: _Optional[_Union[SceneHalfSpace, _Mapping]] = ..., points: _Optional[_Union[ScenePoints, _Mapping]] = ..., heightfield: _Optional[_Union[SceneHeightfield, _Mapping]] = ..., action: _Optional[_Union[SceneAction, str]] = ..., material: _Optional[int] = ..., from_material: _Optional[int] = ..., threshold: _Optional[int] = ..., copy: _Optional[_Union[SceneCopy, _Mapping]] = ..., pin: _Optional[_Union[ScenePin, str]] = ...) -> None: ...

class SceneOverlapRequest(_message.Message):
    __slots__ = ["at", "balls", "boxes", "counts", "name"]
    AT_FIELD_NUMBER: _ClassVar[int]
    BALLS_FIELD_NUMBER: _ClassVar[int]
    BOXES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    at: SceneAt
    balls: _common_pb2.Tensor
    boxes: _common_pb2.Tensor
    counts: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., boxes: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., balls: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., counts: bool = ..., at: _Optional[_Union[SceneAt, _Mapping]] = ...) -> None: ...

class SceneOverlapResponse(_message.Message):
    __slots__ = ["n_free", "n_occupied", "seen", "states"]
    N_FREE_FIELD_NUMBER: _ClassVar[int]
    N_OCCUPIED_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    n_free: _common_pb2.Tensor
    n_occupied: _common_pb2.Tensor
    seen: SceneSeen
    states: _common_pb2.Tensor
    def __init__(self, seen: _Optional[_Union[SceneSeen, _Mapping]] = ..., states: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_occupied: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_free: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class ScenePoints(_message.Message):
    __slots__ = ["materials", "points"]
    MATERIALS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    materials: _common_pb2.Tensor
    points: _common_pb2.Tensor
    def __init__(self, points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., materials: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SceneRetention(_message.Message):
    __slots__ = ["seconds", "versions"]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    seconds: int
    versions: int
    def __init__(self, versions: _Optional[int] = ..., seconds: _Optional[int] = ...) -> None: ...

class SceneSeen(_message.Message):
    __slots__ = ["engine_ms", "generation", "version"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    generation: int
    version: int
    def __init__(self, version: _Optional[int] = ..., generation: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class SceneSpec(_message.Message):
    __slots__ = ["depth", "frame_id", "fusion", "log_odds", "material_bits", "origin", "palette", "track_free", "voxel_size_m"]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    FRAME_ID_FIELD_NUMBER: _ClassVar[int]
    FUSION_FIELD_NUMBER: _ClassVar[int]
    LOG_ODDS_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_BITS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    PALETTE_FIELD_NUMBER: _ClassVar[int]
    TRACK_FREE_FIELD_NUMBER: _ClassVar[int]
    VOXEL_SIZE_M_FIELD_NUMBER: _ClassVar[int]
    depth: int
    frame_id: str
    fusion: SceneFusion
    log_odds: SceneLogOdds
    material_bits: int
    origin: _common_pb2.Vec3
    palette: _containers.RepeatedCompositeFieldContainer[SceneMaterial]
    track_free: bool
    voxel_size_m: float
    def __init__(self, voxel_size_m: _Optional[float] = ..., depth: _Optional[int] = ..., material_bits: _Optional[int] = ..., track_free: bool = ..., origin: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., frame_id: _Optional[str] = ..., palette: _Optional[_Iterable[_Union[SceneMaterial, _Mapping]]] = ..., fusion: _Optional[_Union[SceneFusion, str]] = ..., log_odds: _Optional[_Union[SceneLogOdds, _Mapping]] = ...) -> None: ...

class SceneValuesRequest(_message.Message):
    __slots__ = ["at", "name", "points", "with_pins"]
    AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    WITH_PINS_FIELD_NUMBER: _ClassVar[int]
    at: SceneAt
    name: str
    points: _common_pb2.Tensor
    with_pins: bool
    def __init__(self, name: _Optional[str] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., at: _Optional[_Union[SceneAt, _Mapping]] = ..., with_pins: bool = ...) -> None: ...

class SceneValuesResponse(_message.Message):
    __slots__ = ["materials", "pinned", "seen", "states"]
    MATERIALS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    materials: _common_pb2.Tensor
    pinned: _common_pb2.Tensor
    seen: SceneSeen
    states: _common_pb2.Tensor
    def __init__(self, seen: _Optional[_Union[SceneSeen, _Mapping]] = ..., states: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., materials: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., pinned: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ...) -> None: ...

class SceneFusion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class SceneFsync(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class SceneAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class ScenePin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class SceneFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
