# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BackupRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ["elapsed_ms", "n_database_bytes", "n_linked", "n_snapshot_bytes", "n_snapshots", "path"]
    ELAPSED_MS_FIELD_NUMBER: _ClassVar[int]
    N_DATABASE_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_LINKED_FIELD_NUMBER: _ClassVar[int]
    N_SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    N_SNAPSHOT_BYTES_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    elapsed_ms: float
    n_database_bytes: int
    n_linked: int
    n_snapshot_bytes: int
    n_snapshots: int
    path: str
    def __init__(self, path: _Optional[str] = ..., n_database_bytes: _Optional[int] = ..., n_snapshot_bytes: _Optional[int] = ..., n_snapshots: _Optional[int] = ..., n_linked: _Optional[int] = ..., elapsed_ms: _Optional[float] = ...) -> None: ...

class CurrentRequest(_message.Message):
    __slots__ = ["by", "client_id", "engine_ms", "is_running", "left_ms", "method", "request_id", "stage", "total_ms", "wait_ms"]
    BY_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    IS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    by: str
    client_id: str
    engine_ms: float
    is_running: bool
    left_ms: float
    method: str
    request_id: str
    stage: str
    total_ms: float
    wait_ms: float
    def __init__(self, request_id: _Optional[str] = ..., method: _Optional[str] = ..., client_id: _Optional[str] = ..., by: _Optional[str] = ..., is_running: bool = ..., total_ms: _Optional[float] = ..., engine_ms: _Optional[float] = ..., stage: _Optional[str] = ..., wait_ms: _Optional[float] = ..., left_ms: _Optional[float] = ...) -> None: ...

class MemoryOwner(_message.Message):
    __slots__ = ["limit_bytes", "n", "n_bytes", "name", "on_device"]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    ON_DEVICE_FIELD_NUMBER: _ClassVar[int]
    limit_bytes: int
    n: int
    n_bytes: int
    name: str
    on_device: bool
    def __init__(self, name: _Optional[str] = ..., n: _Optional[int] = ..., n_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ..., on_device: bool = ...) -> None: ...

class MethodStatus(_message.Message):
    __slots__ = ["mean_ms", "n_failed", "n_ok", "name"]
    MEAN_MS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_FAILED_FIELD_NUMBER: _ClassVar[int]
    N_OK_FIELD_NUMBER: _ClassVar[int]
    mean_ms: float
    n_failed: int
    n_ok: int
    name: str
    def __init__(self, name: _Optional[str] = ..., n_ok: _Optional[int] = ..., n_failed: _Optional[int] = ..., mean_ms: _Optional[float] = ...) -> None: ...

class SelfTestRequest(_message.Message):
    __slots__ = ["duration_ms", "n_points"]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    N_POINTS_FIELD_NUMBER: _ClassVar[int]
    duration_ms: int
    n_points: int
    def __init__(self, duration_ms: _Optional[int] = ..., n_points: _Optional[int] = ...) -> None: ...

class SelfTestResponse(_message.Message):
    __slots__ = ["digest", "elapsed_ms", "n_stages"]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_MS_FIELD_NUMBER: _ClassVar[int]
    N_STAGES_FIELD_NUMBER: _ClassVar[int]
    digest: int
    elapsed_ms: float
    n_stages: int
    def __init__(self, n_stages: _Optional[int] = ..., digest: _Optional[int] = ..., elapsed_ms: _Optional[float] = ...) -> None: ...

class ServerInfoRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ServerInfoResponse(_message.Message):
    __slots__ = ["backend", "default_timeout_ms", "device", "http", "instance_id", "max_json_bytes", "max_message_bytes", "max_timeout_ms", "methods", "started_ns", "version"]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    HTTP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_JSON_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    STARTED_NS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    backend: str
    default_timeout_ms: int
    device: str
    http: str
    instance_id: str
    max_json_bytes: int
    max_message_bytes: int
    max_timeout_ms: int
    methods: _containers.RepeatedScalarFieldContainer[str]
    started_ns: int
    version: str
    def __init__(self, version: _Optional[str] = ..., backend: _Optional[str] = ..., device: _Optional[str] = ..., methods: _Optional[_Iterable[str]] = ..., max_message_bytes: _Optional[int] = ..., max_json_bytes: _Optional[int] = ..., default_timeout_ms: _Optional[int] = ..., max_timeout_ms: _Optional[int] = ..., instance_id: _Optional[str] = ..., started_ns: _Optional[int] = ..., http: _Optional[str] = ...) -> None: ...

class SetLogLevelRequest(_message.Message):
    __slots__ = ["level"]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    level: str
    def __init__(self, level: _Optional[str] = ...) -> None: ...

class SetLogLevelResponse(_message.Message):
    __slots__ = ["previous"]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    previous: str
    def __init__(self, previous: _Optional[str] = ...) -> None: ...

class SlowRequest(_message.Message):
    __slots__ = ["client_id", "code", "finished_ns", "method", "queue_ms", "request_id", "total_ms"]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    FINISHED_NS_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    code: _common_pb2.Code
    finished_ns: int
    method: str
    queue_ms: float
    request_id: str
    total_ms: float
    def __init__(self, request_id: _Optional[str] = ..., method: _Optional[str] = ..., client_id: _Optional[str] = ..., code: _Optional[_Union[_common_pb2.Code, str]] = ..., queue_ms: _Optional[float] = ..., total_ms: _Optional[float] = ..., finished_ns: _Optional[int] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ["current", "device_budget_bytes", "device_bytes", "host_budget_bytes", "host_bytes", "inflight_bytes", "inflight_limit_bytes", "map_bytes", "map_limit_bytes", "memory", "methods", "n_durable_maps", "n_maps", "n_networks", "n_scenes", "network_bytes", "network_limit_bytes", "queue_depth", "queue_limit", "resident_bytes", "running", "scene_bytes", "scene_limit_bytes", "slow", "state", "uptime_s"]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    DEVICE_BUDGET_BYTES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOST_BUDGET_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    INFLIGHT_BYTES_FIELD_NUMBER: _ClassVar[int]
    INFLIGHT_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAP_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAP_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_BYTES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_DURABLE_MAPS_FIELD_NUMBER: _ClassVar[int]
    N_MAPS_FIELD_NUMBER: _ClassVar[int]
    N_NETWORKS_FIELD_NUMBER: _ClassVar[int]
    N_SCENES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    QUEUE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SCENE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SCENE_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SLOW_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    UPTIME_S_FIELD_NUMBER: _ClassVar[int]
    current: _containers.RepeatedCompositeFieldContainer[CurrentRequest]
    device_budget_bytes: int
    device_bytes: int
    host_budget_bytes: int
    host_bytes: int
    inflight_bytes: int
    inflight_limit_bytes: int
    map_bytes: int
    map_limit_bytes: int
    memory: _containers.RepeatedCompositeFieldContainer[MemoryOwner]
    methods: _containers.RepeatedCompositeFieldContainer[MethodStatus]
    n_durable_maps: int
    n_maps: int
    n_networks: int
    n_scenes: int
    network_bytes: int
    network_limit_bytes: int
    queue_depth: int
    queue_limit: int
    resident_bytes: int
    running: int
    scene_bytes: int
    scene_limit_bytes: int
    slow: _containers.RepeatedCompositeFieldContainer[SlowRequest]
    state: str
    uptime_s: float
    def __init__(self, state: _Optional[str] = ..., uptime_s: _Optional[float] = ..., queue_depth: _Optional[int] = ..., queue_limit: _Optional[int] = ..., running: _Optional[int] = ..., inflight_bytes: _Optional[int] = ..., inflight_limit_bytes: _Optional[int] = ..., device_bytes: _Optional[int] = ..., device_budget_bytes: _Optional[int] = ..., host_bytes: _Optional[int] = ..., host_budget_bytes: _Optional[int] = ..., resident_bytes: _Optional[int] = ..., methods: _Optional[_Iterable[_Union[MethodStatus, _Mapping]]] = ..., slow: _Optional[_Iterable[_Union[SlowRequest, _Mapping]]] = ..., current: _Optional[_Iterable[_Union[CurrentRequest, _Mapping]]] = ..., n_maps: _Optional[int] = ..., map_bytes: _Optional[int] = ..., map_limit_bytes: _Optional[int] = ..., n_networks: _Optional[int] = ..., network_bytes: _Optional[int] = ..., network_limit_bytes: _Optional[int] = ..., n_scenes: _Optional[int] = ..., scene_bytes: _Optional[int] = ..., scene_limit_bytes: _Optional[int] = ..., n_durable_maps: _Optional[int] = ..., memory: _Optional[_Iterable[_Union[MemoryOwner, _Mapping]]] = ...) -> None: ...
