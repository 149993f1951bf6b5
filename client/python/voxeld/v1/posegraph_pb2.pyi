# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
POSEGRAPH_CAUCHY: PosegraphRobust
POSEGRAPH_DCS: PosegraphRobust
POSEGRAPH_FSYNC_ALWAYS: PosegraphFsync
POSEGRAPH_FSYNC_EVERYSEC: PosegraphFsync
POSEGRAPH_FSYNC_OFF: PosegraphFsync
POSEGRAPH_HUBER: PosegraphRobust
POSEGRAPH_SQUARES: PosegraphRobust
POSEGRAPH_START_BEST: PosegraphStart
POSEGRAPH_START_KEEP: PosegraphStart
POSEGRAPH_START_UNSPECIFIED: PosegraphStart

class PosegraphAddKeyframeRequest(_message.Message):
    __slots__ = ["T_map_node", "cloud", "descriptor", "id", "name", "network", "output"]
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    T_MAP_NODE_FIELD_NUMBER: _ClassVar[int]
    T_map_node: _common_pb2.Pose
    cloud: _common_pb2.Cloud
    descriptor: _containers.RepeatedScalarFieldContainer[float]
    id: int
    name: str
    network: str
    output: str
    def __init__(self, name: _Optional[str] = ..., id: _Optional[int] = ..., cloud: _Optional[_Union[_common_pb2.Cloud, _Mapping]] = ..., T_map_node: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., network: _Optional[str] = ..., output: _Optional[str] = ..., descriptor: _Optional[_Iterable[float]] = ...) -> None: ...

class PosegraphAddKeyframeResponse(_message.Message):
    __slots__ = ["existed", "n_descriptor", "n_keyframes", "n_points"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    N_DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    N_KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    n_descriptor: int
    n_keyframes: int
    n_points: int
    def __init__(self, n_points: _Optional[int] = ..., n_descriptor: _Optional[int] = ..., n_keyframes: _Optional[int] = ..., existed: bool = ...) -> None: ...

class PosegraphAddRequest(_message.Message):
    __slots__ = ["edges", "name", "nodes", "priors"]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PRIORS_FIELD_NUMBER: _ClassVar[int]
    edges: _containers.RepeatedCompositeFieldContainer[PosegraphEdge]
    name: str
    nodes: _containers.RepeatedCompositeFieldContainer[PosegraphNode]
    priors: _containers.RepeatedCompositeFieldContainer[PosegraphPrior]
    def __init__(self, name: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[PosegraphNode, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[PosegraphEdge, _Mapping]]] = ..., priors: _Optional[_Iterable[_Union[PosegraphPrior, _Mapping]]] = ...) -> None: ...

class PosegraphAddResponse(_message.Message):
    __slots__ = ["n_edges", "n_nodes", "n_priors"]
    N_EDGES_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    N_PRIORS_FIELD_NUMBER: _ClassVar[int]
    n_edges: int
    n_nodes: int
    n_priors: int
    def __init__(self, n_nodes: _Optional[int] = ..., n_edges: _Optional[int] = ..., n_priors: _Optional[int] = ...) -> None: ...

class PosegraphCreateRequest(_message.Message):
    __slots__ = ["durable", "fsync", "journal_max_bytes", "max_bytes", "name"]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    durable: bool
    fsync: PosegraphFsync
    journal_max_bytes: int
    max_bytes: int
    name: str
    def __init__(self, name: _Optional[str] = ..., max_bytes: _Optional[int] = ..., durable: bool = ..., fsync: _Optional[_Union[PosegraphFsync, str]] = ..., journal_max_bytes: _Optional[int] = ...) -> None: ...

class PosegraphCreateResponse(_message.Message):
    __slots__ = ["existed", "posegraph"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    POSEGRAPH_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    posegraph: PosegraphInfo
    def __init__(self, existed: bool = ..., posegraph: _Optional[_Union[PosegraphInfo, _Mapping]] = ...) -> None: ...

class PosegraphDropRequest(_message.Message):
    __slots__ = ["missing_ok", "name"]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    missing_ok: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., missing_ok: bool = ...) -> None: ...

class PosegraphDropResponse(_message.Message):
    __slots__ = ["existed"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: bool = ...) -> None: ...

class PosegraphEdge(_message.Message):
    __slots__ = ["T_from_to", "information", "robust", "to", "width"]
    FROM_FIELD_NUMBER: _ClassVar[int]
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    ROBUST_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    T_FROM_TO_FIELD_NUMBER: _ClassVar[int]
    T_from_to: _common_pb2.Pose
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    information: _containers.RepeatedScalarFieldContainer[float]
    robust: PosegraphRobust
    to: int
    width: float
    def __init__(self, to: _Optional[int] = ..., T_from_to: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., information: _Optional[_Iterable[float]] = ..., robust: _Optional[_Union[PosegraphRobust, str]] = ..., width: _Optional[float] = ..., **kwargs) -> None: ...

class PosegraphGetRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PosegraphGetResponse(_message.Message):
    __slots__ = ["posegraph"]
    POSEGRAPH_FIELD_NUMBER: _ClassVar[int]
    posegraph: PosegraphInfo
    def __init__(self, posegraph: _Optional[_Union[PosegraphInfo, _Mapping]] = ...) -> None: ...

class PosegraphInfo(_message.Message):
    __slots__ = ["created_ns", "durable", "fsync", "generation", "journal_max_bytes", "max_bytes", "n_bytes", "n_edges", "n_keyframes", "n_nodes", "n_priors", "name", "owner", "running", "unavailable", "version", "versions"]
    CREATED_NS_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_EDGES_FIELD_NUMBER: _ClassVar[int]
    N_KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    N_PRIORS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    created_ns: int
    durable: bool
    fsync: PosegraphFsync
    generation: int
    journal_max_bytes: int
    max_bytes: int
    n_bytes: int
    n_edges: int
    n_keyframes: int
    n_nodes: int
    n_priors: int
    name: str
    owner: str
    running: _containers.RepeatedCompositeFieldContainer[PosegraphRunning]
    unavailable: bool
    version: int
    versions: _containers.RepeatedCompositeFieldContainer[PosegraphVersion]
    def __init__(self, name: _Optional[str] = ..., n_nodes: _Optional[int] = ..., n_edges: _Optional[int] = ..., n_priors: _Optional[int] = ..., n_keyframes: _Optional[int] = ..., n_bytes: _Optional[int] = ..., max_bytes: _Optional[int] = ..., version: _Optional[int] = ..., versions: _Optional[_Iterable[_Union[PosegraphVersion, _Mapping]]] = ..., generation: _Optional[int] = ..., owner: _Optional[str] = ..., created_ns: _Optional[int] = ..., durable: bool = ..., fsync: _Optional[_Union[PosegraphFsync, str]] = ..., journal_max_bytes: _Optional[int] = ..., unavailable: bool = ..., running: _Optional[_Iterable[_Union[PosegraphRunning, _Mapping]]] = ...) -> None: ...

class PosegraphListRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class PosegraphListResponse(_message.Message):
    __slots__ = ["limit_bytes", "n_bytes", "posegraphs"]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    POSEGRAPHS_FIELD_NUMBER: _ClassVar[int]
    limit_bytes: int
    n_bytes: int
    posegraphs: _containers.RepeatedCompositeFieldContainer[PosegraphInfo]
    def __init__(self, posegraphs: _Optional[_Iterable[_Union[PosegraphInfo, _Mapping]]] = ..., n_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ...) -> None: ...

class PosegraphMatch(_message.Message):
    __slots__ = ["T_map_sensor", "T_node_sensor", "accepted", "constraint", "descriptor_distance", "fitness", "id", "information", "reason", "rmse_m"]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RMSE_M_FIELD_NUMBER: _ClassVar[int]
    T_MAP_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_NODE_SENSOR_FIELD_NUMBER: _ClassVar[int]
    T_map_sensor: _common_pb2.Pose
    T_node_sensor: _common_pb2.Pose
    accepted: bool
    constraint: float
    descriptor_distance: float
    fitness: float
    id: int
    information: _containers.RepeatedScalarFieldContainer[float]
    reason: str
    rmse_m: float
    def __init__(self, id: _Optional[int] = ..., descriptor_distance: _Optional[float] = ..., accepted: bool = ..., reason: _Optional[str] = ..., T_node_sensor: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., T_map_sensor: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., fitness: _Optional[float] = ..., rmse_m: _Optional[float] = ..., constraint: _Optional[float] = ..., information: _Optional[_Iterable[float]] = ...) -> None: ...

class PosegraphNode(_message.Message):
    __slots__ = ["T_map_node", "fixed", "id", "stamp_ns"]
    FIXED_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    T_MAP_NODE_FIELD_NUMBER: _ClassVar[int]
    T_map_node: _common_pb2.Pose
    fixed: bool
    id: int
    stamp_ns: int
    def __init__(self, id: _Optional[int] = ..., T_map_node: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., fixed: bool = ..., stamp_ns: _Optional[int] = ...) -> None: ...

class PosegraphOptimizeRequest(_message.Message):
    __slots__ = ["max_iterations", "name", "relative_tolerance", "start"]
    MAX_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    max_iterations: int
    name: str
    relative_tolerance: float
    start: PosegraphStart
    def __init__(self, name: _Optional[str] = ..., max_iterations: _Optional[int] = ..., relative_tolerance: _Optional[float] = ..., start: _Optional[_Union[PosegraphStart, str]] = ...) -> None: ...

class PosegraphOptimizeResponse(_message.Message):
    __slots__ = ["converged", "cost", "engine_ms", "initial_cost", "max_moved_m", "n_iterations", "n_nodes", "n_outliers", "version"]
    CONVERGED_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    INITIAL_COST_FIELD_NUMBER: _ClassVar[int]
    MAX_MOVED_M_FIELD_NUMBER: _ClassVar[int]
    N_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    N_OUTLIERS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    converged: bool
    cost: float
    engine_ms: float
    initial_cost: float
    max_moved_m: float
    n_iterations: int
    n_nodes: int
    n_outliers: int
    version: int
    def __init__(self, version: _Optional[int] = ..., initial_cost: _Optional[float] = ..., cost: _Optional[float] = ..., n_iterations: _Optional[int] = ..., converged: bool = ..., n_outliers: _Optional[int] = ..., n_nodes: _Optional[int] = ..., max_moved_m: _Optional[float] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class PosegraphPrior(_message.Message):
    __slots__ = ["T_map_node", "information", "node", "robust", "width"]
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ROBUST_FIELD_NUMBER: _ClassVar[int]
    T_MAP_NODE_FIELD_NUMBER: _ClassVar[int]
    T_map_node: _common_pb2.Pose
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    information: _containers.RepeatedScalarFieldContainer[float]
    node: int
    robust: PosegraphRobust
    width: float
    def __init__(self, node: _Optional[int] = ..., T_map_node: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., information: _Optional[_Iterable[float]] = ..., robust: _Optional[_Union[PosegraphRobust, str]] = ..., width: _Optional[float] = ...) -> None: ...

class PosegraphReadRequest(_message.Message):
    __slots__ = ["edges", "keyframe", "keyframe_id", "name", "version"]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    KEYFRAME_FIELD_NUMBER: _ClassVar[int]
    KEYFRAME_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    edges: bool
    keyframe: bool
    keyframe_id: int
    name: str
    version: int
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., edges: bool = ..., keyframe: bool = ..., keyframe_id: _Optional[int] = ...) -> None: ...

class PosegraphReadResponse(_message.Message):
    __slots__ = ["edge_ids", "edge_information", "edge_poses", "edge_residuals", "flags", "ids", "n_edges", "n_nodes", "n_points", "n_priors", "points", "poses", "prior_ids", "prior_information", "prior_poses", "version"]
    EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    EDGE_INFORMATION_FIELD_NUMBER: _ClassVar[int]
    EDGE_POSES_FIELD_NUMBER: _ClassVar[int]
    EDGE_RESIDUALS_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    N_EDGES_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_PRIORS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    POSES_FIELD_NUMBER: _ClassVar[int]
    PRIOR_IDS_FIELD_NUMBER: _ClassVar[int]
    PRIOR_INFORMATION_FIELD_NUMBER: _ClassVar[int]
    PRIOR_POSES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    edge_ids: _common_pb2.Tensor
    edge_information: _common_pb2.Tensor
    edge_poses: _common_pb2.Tensor
    edge_residuals: _common_pb2.Tensor
    flags: _common_pb2.Tensor
    ids: _common_pb2.Tensor
    n_edges: int
    n_nodes: int
    n_points: int
    n_priors: int
    points: _common_pb2.Tensor
    poses: _common_pb2.Tensor
    prior_ids: _common_pb2.Tensor
    prior_information: _common_pb2.Tensor
    prior_poses: _common_pb2.Tensor
    version: int
    def __init__(self, version: _Optional[int] = ..., ids: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., poses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_nodes: _Optional[int] = ..., flags: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., edge_ids: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., edge_poses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., edge_information: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., edge_residuals: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_edges: _Optional[int] = ..., prior_ids: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., prior_poses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., prior_information: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_priors: _Optional[int] = ..., points: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_points: _Optional[int] = ...) -> None: ...

class PosegraphRebuildCancelRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PosegraphRebuildCancelResponse(_message.Message):
    __slots__ = ["was_running"]
    WAS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    was_running: bool
    def __init__(self, was_running: bool = ...) -> None: ...

class PosegraphRebuildRequest(_message.Message):
    __slots__ = ["carve", "carve_m", "material", "name", "range_max_m", "range_min_m", "scene", "version", "volume", "weight"]
    CARVE_FIELD_NUMBER: _ClassVar[int]
    CARVE_M_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANGE_MAX_M_FIELD_NUMBER: _ClassVar[int]
    RANGE_MIN_M_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    carve: bool
    carve_m: float
    material: int
    name: str
    range_max_m: float
    range_min_m: float
    scene: str
    version: int
    volume: str
    weight: float
    def __init__(self, name: _Optional[str] = ..., scene: _Optional[str] = ..., volume: _Optional[str] = ..., version: _Optional[int] = ..., range_min_m: _Optional[float] = ..., range_max_m: _Optional[float] = ..., material: _Optional[int] = ..., carve: bool = ..., carve_m: _Optional[float] = ..., weight: _Optional[float] = ...) -> None: ...

class PosegraphRebuildResponse(_message.Message):
    __slots__ = ["engine_ms", "n_added", "n_blocks", "n_changed", "n_freed", "n_keyframes", "n_points", "n_removed", "n_used", "scene_version", "stamp", "version"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    N_ADDED_FIELD_NUMBER: _ClassVar[int]
    N_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    N_CHANGED_FIELD_NUMBER: _ClassVar[int]
    N_FREED_FIELD_NUMBER: _ClassVar[int]
    N_KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    N_REMOVED_FIELD_NUMBER: _ClassVar[int]
    N_USED_FIELD_NUMBER: _ClassVar[int]
    SCENE_VERSION_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    n_added: int
    n_blocks: int
    n_changed: int
    n_freed: int
    n_keyframes: int
    n_points: int
    n_removed: int
    n_used: int
    scene_version: int
    stamp: int
    version: int
    def __init__(self, version: _Optional[int] = ..., n_keyframes: _Optional[int] = ..., n_points: _Optional[int] = ..., n_used: _Optional[int] = ..., scene_version: _Optional[int] = ..., n_added: _Optional[int] = ..., n_removed: _Optional[int] = ..., n_changed: _Optional[int] = ..., n_freed: _Optional[int] = ..., n_blocks: _Optional[int] = ..., stamp: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class PosegraphRebuildStatusRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PosegraphRebuildStatusResponse(_message.Message):
    __slots__ = ["n_done", "n_keyframes", "request_id", "running", "scene", "started_ns", "volume"]
    N_DONE_FIELD_NUMBER: _ClassVar[int]
    N_KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    STARTED_NS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    n_done: int
    n_keyframes: int
    request_id: str
    running: bool
    scene: str
    started_ns: int
    volume: str
    def __init__(self, running: bool = ..., request_id: _Optional[str] = ..., scene: _Optional[str] = ..., volume: _Optional[str] = ..., n_done: _Optional[int] = ..., n_keyframes: _Optional[int] = ..., started_ns: _Optional[int] = ...) -> None: ...

class PosegraphRelocalizeRequest(_message.Message):
    __slots__ = ["candidates", "cell_m", "cloud", "descriptor", "id", "min_constraint", "min_fitness", "name", "network", "of_node", "output", "skip_recent"]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    CELL_M_FIELD_NUMBER: _ClassVar[int]
    CLOUD_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MIN_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    MIN_FITNESS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    OF_NODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SKIP_RECENT_FIELD_NUMBER: _ClassVar[int]
    candidates: int
    cell_m: float
    cloud: _common_pb2.Cloud
    descriptor: _containers.RepeatedScalarFieldContainer[float]
    id: int
    min_constraint: float
    min_fitness: float
    name: str
    network: str
    of_node: bool
    output: str
    skip_recent: int
    def __init__(self, name: _Optional[str] = ..., cloud: _Optional[_Union[_common_pb2.Cloud, _Mapping]] = ..., network: _Optional[str] = ..., output: _Optional[str] = ..., descriptor: _Optional[_Iterable[float]] = ..., of_node: bool = ..., id: _Optional[int] = ..., skip_recent: _Optional[int] = ..., candidates: _Optional[int] = ..., cell_m: _Optional[float] = ..., min_fitness: _Optional[float] = ..., min_constraint: _Optional[float] = ...) -> None: ...

class PosegraphRelocalizeResponse(_message.Message):
    __slots__ = ["engine_ms", "matches", "n_accepted", "n_keyframes"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    N_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    N_KEYFRAMES_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    matches: _containers.RepeatedCompositeFieldContainer[PosegraphMatch]
    n_accepted: int
    n_keyframes: int
    def __init__(self, matches: _Optional[_Iterable[_Union[PosegraphMatch, _Mapping]]] = ..., n_accepted: _Optional[int] = ..., n_keyframes: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class PosegraphRunning(_message.Message):
    __slots__ = ["cost", "n_iterations", "request_id", "started_ns"]
    COST_FIELD_NUMBER: _ClassVar[int]
    N_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_NS_FIELD_NUMBER: _ClassVar[int]
    cost: float
    n_iterations: int
    request_id: str
    started_ns: int
    def __init__(self, request_id: _Optional[str] = ..., n_iterations: _Optional[int] = ..., cost: _Optional[float] = ..., started_ns: _Optional[int] = ...) -> None: ...

class PosegraphSolveRequest(_message.Message):
    __slots__ = ["covariance_of", "max_iterations", "name", "relative_tolerance", "start"]
    COVARIANCE_OF_FIELD_NUMBER: _ClassVar[int]
    MAX_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    covariance_of: _containers.RepeatedScalarFieldContainer[int]
    max_iterations: int
    name: str
    relative_tolerance: float
    start: PosegraphStart
    def __init__(self, name: _Optional[str] = ..., max_iterations: _Optional[int] = ..., relative_tolerance: _Optional[float] = ..., start: _Optional[_Union[PosegraphStart, str]] = ..., covariance_of: _Optional[_Iterable[int]] = ...) -> None: ...

class PosegraphSolveResponse(_message.Message):
    __slots__ = ["converged", "cost", "covariance", "engine_ms", "generation", "ids", "initial_cost", "n_covariance", "n_iterations", "n_nodes", "n_outliers", "poses", "version"]
    CONVERGED_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    COVARIANCE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    INITIAL_COST_FIELD_NUMBER: _ClassVar[int]
    N_COVARIANCE_FIELD_NUMBER: _ClassVar[int]
    N_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    N_OUTLIERS_FIELD_NUMBER: _ClassVar[int]
    POSES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    converged: bool
    cost: float
    covariance: _common_pb2.Tensor
    engine_ms: float
    generation: int
    ids: _common_pb2.Tensor
    initial_cost: float
    n_covariance: int
    n_iterations: int
    n_nodes: int
    n_outliers: int
    poses: _common_pb2.Tensor
    version: int
    def __init__(self, ids: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., poses: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_nodes: _Optional[int] = ..., initial_cost: _Optional[float] = ..., cost: _Optional[float] = ..., n_iterations: _Optional[int] = ..., converged: bool = ..., n_outliers: _Optional[int] = ..., covariance: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., n_covariance: _Optional[int] = ..., version: _Optional[int] = ..., generation: _Optional[int] = ..., engine_ms: _Optional[float] = ...) -> None: ...

class PosegraphVersion(_message.Message):
    __slots__ = ["cost", "created_ns", "n_nodes", "version"]
    COST_FIELD_NUMBER: _ClassVar[int]
    CREATED_NS_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    cost: float
    created_ns: int
    n_nodes: int
    version: int
    def __init__(self, version: _Optional[int] = ..., n_nodes: _Optional[int] = ..., cost: _Optional[float] = ..., created_ns: _Optional[int] = ...) -> None: ...

class PosegraphFsync(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class PosegraphRobust(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class PosegraphStart(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
