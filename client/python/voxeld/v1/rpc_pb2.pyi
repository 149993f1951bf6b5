# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import admin_pb2 as _admin_pb2
from voxeld.v1 import backup_pb2 as _backup_pb2
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import field_pb2 as _field_pb2
from voxeld.v1 import grid_pb2 as _grid_pb2
from voxeld.v1 import hashmap_pb2 as _hashmap_pb2
from voxeld.v1 import history_pb2 as _history_pb2
from voxeld.v1 import mesh_pb2 as _mesh_pb2
from voxeld.v1 import network_pb2 as _network_pb2
from voxeld.v1 import render_pb2 as _render_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from voxeld.v1 import scene_upkeep_pb2 as _scene_upkeep_pb2
from voxeld.v1 import scene_version_pb2 as _scene_version_pb2
from voxeld.v1 import slac_pb2 as _slac_pb2
from voxeld.v1 import token_pb2 as _token_pb2
from voxeld.v1 import volume_pb2 as _volume_pb2
from voxeld.v1 import voxelize_pb2 as _voxelize_pb2
from voxeld.v1 import watch_pb2 as _watch_pb2
from voxeld.v1 import why_pb2 as _why_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Request(_message.Message):
    __slots__ = ["backup", "backup_drop", "backup_list", "header", "infer", "map_create", "map_drop", "map_erase", "map_export", "map_find", "map_get", "map_insert", "map_list", "map_load", "map_save", "map_update", "network_get", "network_list", "network_load", "network_unload", "scene_branch", "scene_cast_rays", "scene_changed", "scene_collect", "scene_collide", "scene_create", "scene_decay", "scene_diff", "scene_distance", "scene_drop", "scene_edit", "scene_export", "scene_field", "scene_frontiers", "scene_get", "scene_grid", "scene_import_mesh", "scene_integrate", "scene_list", "scene_log", "scene_log_odds_at", "scene_nearest", "scene_overlap", "scene_redo", "scene_render", "scene_snapshot", "scene_undo", "scene_values", "scene_verify", "scene_watch", "self_test", "server_info", "set_log_level", "slac_apply", "slac_cancel", "slac_deform_volume", "slac_optimize", "slac_progress", "status", "token_issue", "volume_cast_rays", "volume_clear", "volume_copy", "volume_create", "volume_decay", "volume_drop", "volume_extract", "volume_get", "volume_integrate", "volume_integrate_points", "volume_list", "volume_track", "volume_track_and_integrate", "voxelize", "why"]
    BACKUP_DROP_FIELD_NUMBER: _ClassVar[int]
    BACKUP_FIELD_NUMBER: _ClassVar[int]
    BACKUP_LIST_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    INFER_FIELD_NUMBER: _ClassVar[int]
    MAP_CREATE_FIELD_NUMBER: _ClassVar[int]
    MAP_DROP_FIELD_NUMBER: _ClassVar[int]
    MAP_ERASE_FIELD_NUMBER: _ClassVar[int]
    MAP_EXPORT_FIELD_NUMBER: _ClassVar[int]
    MAP_FIND_FIELD_NUMBER: _ClassVar[int]
    MAP_GET_FIELD_NUMBER: _ClassVar[int]
    MAP_INSERT_FIELD_NUMBER: _ClassVar[int]
    MAP_LIST_FIELD_NUMBER: _ClassVar[int]
    MAP_LOAD_FIELD_NUMBER: _ClassVar[int]
    MAP_SAVE_FIELD_NUMBER: _ClassVar[int]
    MAP_UPDATE_FIELD_NUMBER: _ClassVar[int]
    NETWORK_GET_FIELD_NUMBER: _ClassVar[int]
    NETWORK_LIST_FIELD_NUMBER: _ClassVar[int]
    NETWORK_LOAD_FIELD_NUMBER: _ClassVar[int]
    NETWORK_UNLOAD_FIELD_NUMBER: _ClassVar[int]
    SCENE_BRANCH_FIELD_NUMBER: _ClassVar[int]
    SCENE_CAST_RAYS_FIELD_NUMBER: _ClassVar[int]
    SCENE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SCENE_COLLECT_FIELD_NUMBER: _ClassVar[int]
    SCENE_COLLIDE_FIELD_NUMBER: _ClassVar[int]
    SCENE_CREATE_FIELD_NUMBER: _ClassVar[int]
    SCENE_DECAY_FIELD_NUMBER: _ClassVar[int]
    SCENE_DIFF_FIELD_NUMBER: _ClassVar[int]
    SCENE_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    SCENE_DROP_FIELD_NUMBER: _ClassVar[int]
    SCENE_EDIT_FIELD_NUMBER: _ClassVar[int]
    SCENE_EXPORT_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_FIELD_NUMBER: _ClassVar[int]
    SCENE_FRONTIERS_FIELD_NUMBER: _ClassVar[int]
    SCENE_GET_FIELD_NUMBER: _ClassVar[int]
    SCENE_GRID_FIELD_NUMBER: _ClassVar[int]
    SCENE_IMPORT_MESH_FIELD_NUMBER: _ClassVar[int]
    SCENE_INTEGRATE_FIELD_NUMBER: _ClassVar[int]
    SCENE_LIST_FIELD_NUMBER: _ClassVar[int]
    SCENE_LOG_FIELD_NUMBER: _ClassVar[int]
    SCENE_LOG_ODDS_AT_FIELD_NUMBER: _ClassVar[int]
    SCENE_NEAREST_FIELD_NUMBER: _ClassVar[int]
    SCENE_OVERLAP_FIELD_NUMBER: _ClassVar[int]
    SCENE_REDO_FIELD_NUMBER: _ClassVar[int]
    SCENE_RENDER_FIELD_NUMBER: _ClassVar[int]
    SCENE_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    SCENE_UNDO_FIELD_NUMBER: _ClassVar[int]
    SCENE_VALUES_FIELD_NUMBER: _ClassVar[int]
    SCENE_VERIFY_FIELD_NUMBER: _ClassVar[int]
    SCENE_WATCH_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_FIELD_NUMBER: _ClassVar[int]
    SERVER_INFO_FIELD_NUMBER: _ClassVar[int]
    SET_LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    SLAC_APPLY_FIELD_NUMBER: _ClassVar[int]
    SLAC_CANCEL_FIELD_NUMBER: _ClassVar[int]
    SLAC_DEFORM_VOLUME_FIELD_NUMBER: _ClassVar[int]
    SLAC_OPTIMIZE_FIELD_NUMBER: _ClassVar[int]
    SLAC_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ISSUE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_CAST_RAYS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_CLEAR_FIELD_NUMBER: _ClassVar[int]
    VOLUME_COPY_FIELD_NUMBER: _ClassVar[int]
    VOLUME_CREATE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_DECAY_FIELD_NUMBER: _ClassVar[int]
    VOLUME_DROP_FIELD_NUMBER: _ClassVar[int]
    VOLUME_EXTRACT_FIELD_NUMBER: _ClassVar[int]
    VOLUME_GET_FIELD_NUMBER: _ClassVar[int]
    VOLUME_INTEGRATE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_INTEGRATE_POINTS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_LIST_FIELD_NUMBER: _ClassVar[int]
    VOLUME_TRACK_AND_INTEGRATE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_TRACK_FIELD_NUMBER: _ClassVar[int]
    VOXELIZE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    backup: _admin_pb2.BackupRequest
    backup_drop: _backup_pb2.BackupDropRequest
    backup_list: _backup_pb2.BackupListRequest
    header: RequestHeader
    infer: _network_pb2.InferRequest
    map_create: _hashmap_pb2.MapCreateRequest
    map_drop: _hashmap_pb2.MapDropRequest
    map_erase: _hashmap_pb2.MapEraseRequest
    map_export: _hashmap_pb2.MapExportRequest
    map_find: _hashmap_pb2.MapFindRequest
    map_get: _hashmap_pb2.MapGetRequest
    map_insert: _hashmap_pb2.MapInsertRequest
    map_list: _hashmap_pb2.MapListRequest
    map_load: _hashmap_pb2.MapLoadRequest
    map_save: _hashmap_pb2.MapSaveRequest
    map_update: _hashmap_pb2.MapUpdateRequest
    network_get: _network_pb2.NetworkGetRequest
    network_list: _network_pb2.NetworkListRequest
    network_load: _network_pb2.NetworkLoadRequest
    network_unload: _network_pb2.NetworkUnloadRequest
    scene_branch: _scene_version_pb2.SceneBranchRequest
    scene_cast_rays: _scene_pb2.SceneCastRaysRequest
    scene_changed: _history_pb2.SceneChangedRequest
    scene_collect: _scene_version_pb2.SceneCollectRequest
    scene_collide: _field_pb2.SceneCollideRequest
    scene_create: _scene_pb2.SceneCreateRequest
    scene_decay: _scene_upkeep_pb2.SceneDecayRequest
    scene_diff: _scene_version_pb2.SceneDiffRequest
    scene_distance: _field_pb2.SceneDistanceRequest
    scene_drop: _scene_pb2.SceneDropRequest
    scene_edit: _scene_pb2.SceneEditRequest
    scene_export: _scene_pb2.SceneExportRequest
    scene_field: _field_pb2.SceneFieldRequest
    scene_frontiers: _grid_pb2.SceneFrontiersRequest
    scene_get: _scene_pb2.SceneGetRequest
    scene_grid: _grid_pb2.SceneGridRequest
    scene_import_mesh: _mesh_pb2.SceneImportMeshRequest
    scene_integrate: _scene_pb2.SceneIntegrateRequest
    scene_list: _scene_pb2.SceneListRequest
    scene_log: _scene_version_pb2.SceneLogRequest
    scene_log_odds_at: _scene_upkeep_pb2.SceneLogOddsAtRequest
    scene_nearest: _scene_pb2.SceneNearestRequest
    scene_overlap: _scene_pb2.SceneOverlapRequest
    scene_redo: _scene_version_pb2.SceneRedoRequest
    scene_render: _render_pb2.SceneRenderRequest
    scene_snapshot: _scene_version_pb2.SceneSnapshotRequest
    scene_undo: _scene_version_pb2.SceneUndoRequest
    scene_values: _scene_pb2.SceneValuesRequest
    scene_verify: _scene_version_pb2.SceneVerifyRequest
    scene_watch: _watch_pb2.SceneWatchRequest
    self_test: _admin_pb2.SelfTestRequest
    server_info: _admin_pb2.ServerInfoRequest
    set_log_level: _admin_pb2.SetLogLevelRequest
    slac_apply: _slac_pb2.SlacApplyRequest
    slac_cancel: _slac_pb2.SlacCancelRequest
    slac_deform_volume: _slac_pb2.SlacDeformVolumeRequest
    slac_optimize: _slac_pb2.SlacOptimizeRequest
    slac_progress: _slac_pb2.SlacProgressRequest
    status: _admin_pb2.StatusRequest
    token_issue: _token_pb2.TokenIssueRequest
    volume_cast_rays: _volume_pb2.VolumeCastRaysRequest
    volume_clear: _volume_pb2.VolumeClearRequest
    volume_copy: _volume_pb2.VolumeCopyRequest
    volume_create: _volume_pb2.VolumeCreateRequest
    volume_decay: _volume_pb2.VolumeDecayRequest
    volume_drop: _volume_pb2.VolumeDropRequest
    volume_extract: _volume_pb2.VolumeExtractRequest
    volume_get: _volume_pb2.VolumeGetRequest
    volume_integrate: _volume_pb2.VolumeIntegrateRequest
    volume_integrate_points: _volume_pb2.VolumeIntegratePointsRequest
    volume_list: _volume_pb2.VolumeListRequest
    volume_track: _volume_pb2.VolumeTrackRequest
    volume_track_and_integrate: _volume_pb2.VolumeTrackAndIntegrateRequest
    voxelize: _voxelize_pb2.VoxelizeRequest
    why: _why_pb2.WhyRequest
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., server_info: _Optional[_Union[_admin_pb2.ServerInfoRequest, _Mapping]] = ..., status: _Optional[_Union[_admin_pb2.StatusRequest, _Mapping]] = ..., self_test: _Optional[_Union[_admin_pb2.SelfTestRequest, _Mapping]] = ..., set_log_level: _Optional[_Union[_admin_pb2.SetLogLevelRequest, _Mapping]] = ..., backup: _Optional[_Union[_admin_pb2.BackupRequest, _Mapping]] = ..., token_issue: _Optional[_Union[_token_pb2.TokenIssueRequest, _Mapping]] = ..., why: _Optional[_Union[_why_pb2.WhyRequest, _Mapping]] = ..., backup_list: _Optional[_Union[_backup_pb2.BackupListRequest, _Mapping]] = ..., backup_drop: _Optional[_Union[_backup_pb2.BackupDropRequest, _Mapping]] = ..., voxelize: _Optional[_Union[_voxelize_pb2.VoxelizeRequest, _Mapping]] = ..., map_create: _Optional[_Union[_hashmap_pb2.MapCreateRequest, _Mapping]] = ..., map_drop: _Optional[_Union[_hashmap_pb2.MapDropRequest, _Mapping]] = ..., map_list: _Optional[_Union[_hashmap_pb2.MapListRequest, _Mapping]] = ..., map_get: _Optional[_Union[_hashmap_pb2.MapGetRequest, _Mapping]] = ..., map_insert: _Optional[_Union[_hashmap_pb2.MapInsertRequest, _Mapping]] = ..., map_find: _Optional[_Union[_hashmap_pb2.MapFindRequest, _Mapping]] = ..., map_erase: _Optional[_Union[_hashmap_pb2.MapEraseRequest, _Mapping]] = ..., map_update: _Optional[_Union[_hashmap_pb2.MapUpdateRequest, _Mapping]] = ..., map_export: _Optional[_Union[_hashmap_pb2.MapExportRequest, _Mapping]] = ..., map_save: _Optional[_Union[_hashmap_pb2.MapSaveRequest, _Mapping]] = ..., map_load: _Optional[_Union[_hashmap_pb2.MapLoadRequest, _Mapping]] = ..., network_load: _Optional[_Union[_network_pb2.NetworkLoadRequest, _Mapping]] = ..., network_unload: _Optional[_Union[_network_pb2.NetworkUnloadRequest, _Mapping]] = ..., network_list: _Optional[_Union[_network_pb2.NetworkListRequest, _Mapping]] = ..., network_get: _Optional[_Union[_network_pb2.NetworkGetRequest, _Mapping]] = ..., infer: _Optional[_Union[_network_pb2.InferRequest, _Mapping]] = ..., scene_create: _Optional[_Union[_scene_pb2.SceneCreateRequest, _Mapping]] = ..., scene_drop: _Optional[_Union[_scene_pb2.SceneDropRequest, _Mapping]] = ..., scene_list: _Optional[_Union[_scene_pb2.SceneListRequest, _Mapping]] = ..., scene_get: _Optional[_Union[_scene_pb2.SceneGetRequest, _Mapping]] = ..., scene_edit: _Optional[_Union[_scene_pb2.SceneEditRequest, _Mapping]] = ..., scene_integrate: _Optional[_Union[_scene_pb2.SceneIntegrateRequest, _Mapping]] = ..., scene_values: _Optional[_Union[_scene_pb2.SceneValuesRequest, _Mapping]] = ..., scene_cast_rays: _Optional[_Union[_scene_pb2.SceneCastRaysRequest, _Mapping]] = ..., scene_nearest: _Optional[_Union[_scene_pb2.SceneNearestRequest, _Mapping]] = ..., scene_overlap: _Optional[_Union[_scene_pb2.SceneOverlapRequest, _Mapping]] = ..., scene_export: _Optional[_Union[_scene_pb2.SceneExportRequest, _Mapping]] = ..., scene_log: _Optional[_Union[_scene_version_pb2.SceneLogRequest, _Mapping]] = ..., scene_undo: _Optional[_Union[_scene_version_pb2.SceneUndoRequest, _Mapping]] = ..., scene_redo: _Optional[_Union[_scene_version_pb2.SceneRedoRequest, _Mapping]] = ..., scene_snapshot: _Optional[_Union[_scene_version_pb2.SceneSnapshotRequest, _Mapping]] = ..., scene_branch: _Optional[_Union[_scene_version_pb2.SceneBranchRequest, _Mapping]] = ..., scene_diff: _Optional[_Union[_scene_version_pb2.SceneDiffRequest, _Mapping]] = ..., scene_verify: _Optional[_Union[_scene_version_pb2.SceneVerifyRequest, _Mapping]] = ..., scene_collect: _Optional[_Union[_scene_version_pb2.SceneCollectRequest, _Mapping]] = ..., volume_create: _Optional[_Union[_volume_pb2.VolumeCreateRequest, _Mapping]] = ..., volume_drop: _Optional[_Union[_volume_pb2.VolumeDropRequest, _Mapping]] = ..., volume_list: _Optional[_Union[_volume_pb2.VolumeListRequest, _Mapping]] = ..., volume_get: _Optional[_Union[_volume_pb2.VolumeGetRequest, _Mapping]] = ..., volume_integrate: _Optional[_Union[_volume_pb2.VolumeIntegrateRequest, _Mapping]] = ..., volume_cast_rays: _Optional[_Union[_volume_pb2.VolumeCastRaysRequest, _Mapping]] = ..., volume_extract: _Optional[_Union[_volume_pb2.VolumeExtractRequest, _Mapping]] = ..., volume_clear: _Optional[_Union[_volume_pb2.VolumeClearRequest, _Mapping]] = ..., volume_copy: _Optional[_Union[_volume_pb2.VolumeCopyRequest, _Mapping]] = ..., volume_decay: _Optional[_Union[_volume_pb2.VolumeDecayRequest, _Mapping]] = ..., volume_track_and_integrate: _Optional[_Union[_volume_pb2.VolumeTrackAndIntegrateRequest, _Mapping]] = ..., volume_track: _Optional[_Union[_volume_pb2.VolumeTrackRequest, _Mapping]] = ..., slac_optimize: _Optional[_Union[_slac_pb2.SlacOptimizeRequest, _Mapping]] = ..., slac_progress: _Optional[_Union[_slac_pb2.SlacProgressRequest, _Mapping]] = ..., slac_cancel: _Optional[_Union[_slac_pb2.SlacCancelRequest, _Mapping]] = ..., slac_apply: _Optional[_Union[_slac_pb2.SlacApplyRequest, _Mapping]] = ..., slac_deform_volume: _Optional[_Union[_slac_pb2.SlacDeformVolumeRequest, _Mapping]] = ..., volume_integrate_points: _Optional[_Union[_volume_pb2.VolumeIntegratePointsRequest, _Mapping]] = ..., scene_distance: _Optional[_Union[_field_pb2.SceneDistanceRequest, _Mapping]] = ..., scene_collide: _Optional[_Union[_field_pb2.SceneCollideRequest, _Mapping]] = ..., scene_field: _Optional[_Union[_field_pb2.SceneFieldRequest, _Mapping]] = ..., scene_grid: _Optional[_Union[_grid_pb2.SceneGridRequest, _Mapping]] = ..., scene_frontiers: _Optional[_Union[_grid_pb2.SceneFrontiersRequest, _Mapping]] = ..., scene_decay: _Optional[_Union[_scene_upkeep_pb2.SceneDecayRequest, _Mapping]] = ..., scene_log_odds_at: _Optional[_Union[_scene_upkeep_pb2.SceneLogOddsAtRequest, _Mapping]] = ..., scene_render: _Optional[_Union[_render_pb2.SceneRenderRequest, _Mapping]] = ..., scene_import_mesh: _Optional[_Union[_mesh_pb2.SceneImportMeshRequest, _Mapping]] = ..., scene_changed: _Optional[_Union[_history_pb2.SceneChangedRequest, _Mapping]] = ..., scene_watch: _Optional[_Union[_watch_pb2.SceneWatchRequest, _Mapping]] = ...) -> None: ...

class RequestHeader(_message.Message):
    __slots__ = ["client_id", "expect_digests", "keep_last", "max_age_ms", "request_id", "sequence", "shared", "stream", "timeout_ms", "token", "traceparent"]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECT_DIGESTS_FIELD_NUMBER: _ClassVar[int]
    KEEP_LAST_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    expect_digests: _containers.RepeatedScalarFieldContainer[str]
    keep_last: int
    max_age_ms: int
    request_id: str
    sequence: int
    shared: SharedBody
    stream: str
    timeout_ms: int
    token: str
    traceparent: str
    def __init__(self, request_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., token: _Optional[str] = ..., client_id: _Optional[str] = ..., sequence: _Optional[int] = ..., stream: _Optional[str] = ..., keep_last: _Optional[int] = ..., max_age_ms: _Optional[int] = ..., expect_digests: _Optional[_Iterable[str]] = ..., shared: _Optional[_Union[SharedBody, _Mapping]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class Response(_message.Message):
    __slots__ = ["backup", "backup_drop", "backup_list", "header", "infer", "map_create", "map_drop", "map_erase", "map_export", "map_find", "map_get", "map_insert", "map_list", "map_load", "map_save", "map_update", "network_get", "network_list", "network_load", "network_unload", "scene_branch", "scene_cast_rays", "scene_changed", "scene_collect", "scene_collide", "scene_create", "scene_decay", "scene_diff", "scene_distance", "scene_drop", "scene_edit", "scene_export", "scene_field", "scene_frontiers", "scene_get", "scene_grid", "scene_import_mesh", "scene_integrate", "scene_list", "scene_log", "scene_log_odds_at", "scene_nearest", "scene_overlap", "scene_redo", "scene_render", "scene_snapshot", "scene_undo", "scene_values", "scene_verify", "scene_watch", "self_test", "server_info", "set_log_level", "slac_apply", "slac_cancel", "slac_deform_volume", "slac_optimize", "slac_progress", "status", "token_issue", "volume_cast_rays", "volume_clear", "volume_copy", "volume_create", "volume_decay", "volume_drop", "volume_extract", "volume_get", "volume_integrate", "volume_integrate_points", "volume_list", "volume_track", "volume_track_and_integrate", "voxelize", "why"]
    BACKUP_DROP_FIELD_NUMBER: _ClassVar[int]
    BACKUP_FIELD_NUMBER: _ClassVar[int]
    BACKUP_LIST_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    INFER_FIELD_NUMBER: _ClassVar[int]
    MAP_CREATE_FIELD_NUMBER: _ClassVar[int]
    MAP_DROP_FIELD_NUMBER: _ClassVar[int]
    MAP_ERASE_FIELD_NUMBER: _ClassVar[int]
    MAP_EXPORT_FIELD_NUMBER: _ClassVar[int]
    MAP_FIND_FIELD_NUMBER: _ClassVar[int]
    MAP_GET_FIELD_NUMBER: _ClassVar[int]
    MAP_INSERT_FIELD_NUMBER: _ClassVar[int]
    MAP_LIST_FIELD_NUMBER: _ClassVar[int]
    MAP_LOAD_FIELD_NUMBER: _ClassVar[int]
    MAP_SAVE_FIELD_NUMBER: _ClassVar[int]
    MAP_UPDATE_FIELD_NUMBER: _ClassVar[int]
    NETWORK_GET_FIELD_NUMBER: _ClassVar[int]
    NETWORK_LIST_FIELD_NUMBER: _ClassVar[int]
    NETWORK_LOAD_FIELD_NUMBER: _ClassVar[int]
    NETWORK_UNLOAD_FIELD_NUMBER: _ClassVar[int]
    SCENE_BRANCH_FIELD_NUMBER: _ClassVar[int]
    SCENE_CAST_RAYS_FIELD_NUMBER: _ClassVar[int]
    SCENE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SCENE_COLLECT_FIELD_NUMBER: _ClassVar[int]
    SCENE_COLLIDE_FIELD_NUMBER: _ClassVar[int]
    SCENE_CREATE_FIELD_NUMBER: _ClassVar[int]
    SCENE_DECAY_FIELD_NUMBER: _ClassVar[int]
    SCENE_DIFF_FIELD_NUMBER: _ClassVar[int]
    SCENE_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    SCENE_DROP_FIELD_NUMBER: _ClassVar[int]
    SCENE_EDIT_FIELD_NUMBER: _ClassVar[int]
    SCENE_EXPORT_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_FIELD_NUMBER: _ClassVar[int]
    SCENE_FRONTIERS_FIELD_NUMBER: _ClassVar[int]
    SCENE_GET_FIELD_NUMBER: _ClassVar[int]
    SCENE_GRID_FIELD_NUMBER: _ClassVar[int]
    SCENE_IMPORT_MESH_FIELD_NUMBER: _ClassVar[int]
    SCENE_INTEGRATE_FIELD_NUMBER: _ClassVar[int]
    SCENE_LIST_FIELD_NUMBER: _ClassVar[int]
    SCENE_LOG_FIELD_NUMBER: _ClassVar[int]
    SCENE_LOG_ODDS_AT_FIELD_NUMBER: _ClassVar[int]
    SCENE_NEAREST_FIELD_NUMBER: _ClassVar[int]
    SCENE_OVERLAP_FIELD_NUMBER: _ClassVar[int]
    SCENE_REDO_FIELD_NUMBER: _ClassVar[int]
    SCENE_RENDER_FIELD_NUMBER: _ClassVar[int]
    SCENE_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    SCENE_UNDO_FIELD_NUMBER: _ClassVar[int]
    SCENE_VALUES_FIELD_NUMBER: _ClassVar[int]
    SCENE_VERIFY_FIELD_NUMBER: _ClassVar[int]
    SCENE_WATCH_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_FIELD_NUMBER: _ClassVar[int]
    SERVER_INFO_FIELD_NUMBER: _ClassVar[int]
    SET_LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    SLAC_APPLY_FIELD_NUMBER: _ClassVar[int]
    SLAC_CANCEL_FIELD_NUMBER: _ClassVar[int]
    SLAC_DEFORM_VOLUME_FIELD_NUMBER: _ClassVar[int]
    SLAC_OPTIMIZE_FIELD_NUMBER: _ClassVar[int]
    SLAC_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ISSUE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_CAST_RAYS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_CLEAR_FIELD_NUMBER: _ClassVar[int]
    VOLUME_COPY_FIELD_NUMBER: _ClassVar[int]
    VOLUME_CREATE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_DECAY_FIELD_NUMBER: _ClassVar[int]
    VOLUME_DROP_FIELD_NUMBER: _ClassVar[int]
    VOLUME_EXTRACT_FIELD_NUMBER: _ClassVar[int]
    VOLUME_GET_FIELD_NUMBER: _ClassVar[int]
    VOLUME_INTEGRATE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_INTEGRATE_POINTS_FIELD_NUMBER: _ClassVar[int]
    VOLUME_LIST_FIELD_NUMBER: _ClassVar[int]
    VOLUME_TRACK_AND_INTEGRATE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_TRACK_FIELD_NUMBER: _ClassVar[int]
    VOXELIZE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    backup: _admin_pb2.BackupResponse
    backup_drop: _backup_pb2.BackupDropResponse
    backup_list: _backup_pb2.BackupListResponse
    header: ResponseHeader
    infer: _network_pb2.InferResponse
    map_create: _hashmap_pb2.MapCreateResponse
    map_drop: _hashmap_pb2.MapDropResponse
    map_erase: _hashmap_pb2.MapEraseResponse
    map_export: _hashmap_pb2.MapExportResponse
    map_find: _hashmap_pb2.MapFindResponse
    map_get: _hashmap_pb2.MapGetResponse
    map_insert: _hashmap_pb2.MapInsertResponse
    map_list: _hashmap_pb2.MapListResponse
    map_load: _hashmap_pb2.MapLoadResponse
    map_save: _hashmap_pb2.MapSaveResponse
    map_update: _hashmap_pb2.MapUpdateResponse
    network_get: _network_pb2.NetworkGetResponse
    network_list: _network_pb2.NetworkListResponse
    network_load: _network_pb2.NetworkLoadResponse
    network_unload: _network_pb2.NetworkUnloadResponse
    scene_branch: _scene_version_pb2.SceneBranchResponse
    scene_cast_rays: _scene_pb2.SceneCastRaysResponse
    scene_changed: _history_pb2.SceneChangedResponse
    scene_collect: _scene_version_pb2.SceneCollectResponse
    scene_collide: _field_pb2.SceneCollideResponse
    scene_create: _scene_pb2.SceneCreateResponse
    scene_decay: _scene_upkeep_pb2.SceneDecayResponse
    scene_diff: _scene_version_pb2.SceneDiffResponse
    scene_distance: _field_pb2.SceneDistanceResponse
    scene_drop: _scene_pb2.SceneDropResponse
    scene_edit: _scene_pb2.SceneEditResponse
    scene_export: _scene_pb2.SceneExportResponse
    scene_field: _field_pb2.SceneFieldResponse
    scene_frontiers: _grid_pb2.SceneFrontiersResponse
    scene_get: _scene_pb2.SceneGetResponse
    scene_grid: _grid_pb2.SceneGridResponse
    scene_import_mesh: _mesh_pb2.SceneImportMeshResponse
    scene_integrate: _scene_pb2.SceneIntegrateResponse
    scene_list: _scene_pb2.SceneListResponse
    scene_log: _scene_version_pb2.SceneLogResponse
    scene_log_odds_at: _scene_upkeep_pb2.SceneLogOddsAtResponse
    scene_nearest: _scene_pb2.SceneNearestResponse
    scene_overlap: _scene_pb2.SceneOverlapResponse
    scene_redo: _scene_version_pb2.SceneRedoResponse
    scene_render: _render_pb2.SceneRenderResponse
    scene_snapshot: _scene_version_pb2.SceneSnapshotResponse
    scene_undo: _scene_version_pb2.SceneUndoResponse
    scene_values: _scene_pb2.SceneValuesResponse
    scene_verify: _scene_version_pb2.SceneVerifyResponse
    scene_watch: _watch_pb2.SceneWatchResponse
    self_test: _admin_pb2.SelfTestResponse
    server_info: _admin_pb2.ServerInfoResponse
    set_log_level: _admin_pb2.SetLogLevelResponse
    slac_apply: _slac_pb2.SlacApplyResponse
    slac_cancel: _slac_pb2.SlacCancelResponse
    slac_deform_volume: _slac_pb2.SlacDeformVolumeResponse
    slac_optimize: _slac_pb2.SlacOptimizeResponse
    slac_progress: _slac_pb2.SlacProgressResponse
    status: _admin_pb2.StatusResponse
    token_issue: _token_pb2.TokenIssueResponse
    volume_cast_rays: _volume_pb2.VolumeCastRaysResponse
    volume_clear: _volume_pb2.VolumeClearResponse
    volume_copy: _volume_pb2.VolumeCopyResponse
    volume_create: _volume_pb2.VolumeCreateResponse
    volume_decay: _volume_pb2.VolumeDecayResponse
    volume_drop: _volume_pb2.VolumeDropResponse
    volume_extract: _volume_pb2.VolumeExtractResponse
    volume_get: _volume_pb2.VolumeGetResponse
    volume_integrate: _volume_pb2.VolumeIntegrateResponse
    volume_integrate_points: _volume_pb2.VolumeIntegratePointsResponse
    volume_list: _volume_pb2.VolumeListResponse
    volume_track: _volume_pb2.VolumeTrackResponse
    volume_track_and_integrate: _volume_pb2.VolumeTrackAndIntegrateResponse
    voxelize: _voxelize_pb2.VoxelizeResponse
    why: _why_pb2.WhyResponse
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping]] = ..., server_info: _Optional[_Union[_admin_pb2.ServerInfoResponse, _Mapping]] = ..., status: _Optional[_Union[_admin_pb2.StatusResponse, _Mapping]] = ..., self_test: _Optional[_Union[_admin_pb2.SelfTestResponse, _Mapping]] = ..., set_log_level: _Optional[_Union[_admin_pb2.SetLogLevelResponse, _Mapping]] = ..., backup: _Optional[_Union[_admin_pb2.BackupResponse, _Mapping]] = ..., token_issue: _Optional[_Union[_token_pb2.TokenIssueResponse, _Mapping]] = ..., why: _Optional[_Union[_why_pb2.WhyResponse, _Mapping]] = ..., backup_list: _Optional[_Union[_backup_pb2.BackupListResponse, _Mapping]] = ..., backup_drop: _Optional[_Union[_backup_pb2.BackupDropResponse, _Mapping]] = ..., voxelize: _Optional[_Union[_voxelize_pb2.VoxelizeResponse, _Mapping]] = ..., map_create: _Optional[_Union[_hashmap_pb2.MapCreateResponse, _Mapping]] = ..., map_drop: _Optional[_Union[_hashmap_pb2.MapDropResponse, _Mapping]] = ..., map_list: _Optional[_Union[_hashmap_pb2.MapListResponse, _Mapping]] = ..., map_get: _Optional[_Union[_hashmap_pb2.MapGetResponse, _Mapping]] = ..., map_insert: _Optional[_Union[_hashmap_pb2.MapInsertResponse, _Mapping]] = ..., map_find: _Optional[_Union[_hashmap_pb2.MapFindResponse, _Mapping]] = ..., map_erase: _Optional[_Union[_hashmap_pb2.MapEraseResponse, _Mapping]] = ..., map_update: _Optional[_Union[_hashmap_pb2.MapUpdateResponse, _Mapping]] = ..., map_export: _Optional[_Union[_hashmap_pb2.MapExportResponse, _Mapping]] = ..., map_save: _Optional[_Union[_hashmap_pb2.MapSaveResponse, _Mapping]] = ..., map_load: _Optional[_Union[_hashmap_pb2.MapLoadResponse, _Mapping]] = ..., network_load: _Optional[_Union[_network_pb2.NetworkLoadResponse, _Mapping]] = ..., network_unload: _Optional[_Union[_network_pb2.NetworkUnloadResponse, _Mapping]] = ..., network_list: _Optional[_Union[_network_pb2.NetworkListResponse, _Mapping]] = ..., network_get: _Optional[_Union[_network_pb2.NetworkGetResponse, _Mapping]] = ..., infer: _Optional[_Union[_network_pb2.InferResponse, _Mapping]] = ..., scene_create: _Optional[_Union[_scene_pb2.SceneCreateResponse, _Mapping]] = ..., scene_drop: _Optional[_Union[_scene_pb2.SceneDropResponse, _Mapping]] = ..., scene_list: _Optional[_Union[_scene_pb2.SceneListResponse, _Mapping]] = ..., scene_get: _Optional[_Union[_scene_pb2.SceneGetResponse, _Mapping]] = ..., scene_edit: _Optional[_Union[_scene_pb2.SceneEditResponse, _Mapping]] = ..., scene_integrate: _Optional[_Union[_scene_pb2.SceneIntegrateResponse, _Mapping]] = ..., scene_values: _Optional[_Union[_scene_pb2.SceneValuesResponse, _Mapping]] = ..., scene_cast_rays: _Optional[_Union[_scene_pb2.SceneCastRaysResponse, _Mapping]] = ..., scene_nearest: _Optional[_Union[_scene_pb2.SceneNearestResponse, _Mapping]] = ..., scene_overlap: _Optional[_Union[_scene_pb2.SceneOverlapResponse, _Mapping]] = ..., scene_export: _Optional[_Union[_scene_pb2.SceneExportResponse, _Mapping]] = ..., scene_log: _Optional[_Union[_scene_version_pb2.SceneLogResponse, _Mapping]] = ..., scene_undo: _Optional[_Union[_scene_version_pb2.SceneUndoResponse, _Mapping]] = ..., scene_redo: _Optional[_Union[_scene_version_pb2.SceneRedoResponse, _Mapping]] = ..., scene_snapshot: _Optional[_Union[_scene_version_pb2.SceneSnapshotResponse, _Mapping]] = ..., scene_branch: _Optional[_Union[_scene_version_pb2.SceneBranchResponse, _Mapping]] = ..., scene_diff: _Optional[_Union[_scene_version_pb2.SceneDiffResponse, _Mapping]] = ..., scene_verify: _Optional[_Union[_scene_version_pb2.SceneVerifyResponse, _Mapping]] = ..., scene_collect: _Optional[_Union[_scene_version_pb2.SceneCollectResponse, _Mapping]] = ..., volume_create: _Optional[_Union[_volume_pb2.VolumeCreateResponse, _Mapping]] = ..., volume_drop: _Optional[_Union[_volume_pb2.VolumeDropResponse, _Mapping]] = ..., volume_list: _Optional[_Union[_volume_pb2.VolumeListResponse, _Mapping]] = ..., volume_get: _Optional[_Union[_volume_pb2.VolumeGetResponse, _Mapping]] = ..., volume_integrate: _Optional[_Union[_volume_pb2.VolumeIntegrateResponse, _Mapping]] = ..., volume_cast_rays: _Optional[_Union[_volume_pb2.VolumeCastRaysResponse, _Mapping]] = ..., volume_extract: _Optional[_Union[_volume_pb2.VolumeExtractResponse, _Mapping]] = ..., volume_clear: _Optional[_Union[_volume_pb2.VolumeClearResponse, _Mapping]] = ..., volume_copy: _Optional[_Union[_volume_pb2.VolumeCopyResponse, _Mapping]] = ..., volume_decay: _Optional[_Union[_volume_pb2.VolumeDecayResponse, _Mapping]] = ..., volume_track_and_integrate: _Optional[_Union[_volume_pb2.VolumeTrackAndIntegrateResponse, _Mapping]] = ..., volume_track: _Optional[_Union[_volume_pb2.VolumeTrackResponse, _Mapping]] = ..., slac_optimize: _Optional[_Union[_slac_pb2.SlacOptimizeResponse, _Mapping]] = ..., slac_progress: _Optional[_Union[_slac_pb2.SlacProgressResponse, _Mapping]] = ..., slac_cancel: _Optional[_Union[_slac_pb2.SlacCancelResponse, _Mapping]] = ..., slac_apply: _Optional[_Union[_slac_pb2.SlacApplyResponse, _Mapping]] = ..., slac_deform_volume: _Optional[_Union[_slac_pb2.SlacDeformVolumeResponse, _Mapping]] = ..., volume_integrate_points: _Optional[_Union[_volume_pb2.VolumeIntegratePointsResponse, _Mapping]] = ..., scene_distance: _Optional[_Union[_field_pb2.SceneDistanceResponse, _Mapping]] = ..., scene_collide: _Optional[_Union[_field_pb2.SceneCollideResponse, _Mapping]] = ..., scene_field: _Optional[_Union[_field_pb2.SceneFieldResponse, _Mapping]] = ..., scene_grid: _Optional[_Union[_grid_pb2.SceneGridResponse, _Mapping]] = ..., scene_frontiers: _Optional[_Union[_grid_pb2.SceneFrontiersResponse, _Mapping]] = ..., scene_decay: _Optional[_Union[_scene_upkeep_pb2.SceneDecayResponse, _Mapping]] = ..., scene_log_odds_at: _Optional[_Union[_scene_upkeep_pb2.SceneLogOddsAtResponse, _Mapping]] = ..., scene_render: _Optional[_Union[_render_pb2.SceneRenderResponse, _Mapping]] = ..., scene_import_mesh: _Optional[_Union[_mesh_pb2.SceneImportMeshResponse, _Mapping]] = ..., scene_changed: _Optional[_Union[_history_pb2.SceneChangedResponse, _Mapping]] = ..., scene_watch: _Optional[_Union[_watch_pb2.SceneWatchResponse, _Mapping]] = ...) -> None: ...

class ResponseHeader(_message.Message):
    __slots__ = ["arrays_dropped", "code", "field", "message", "queue_ms", "replayed", "request_id", "shared_bytes", "stages", "total_ms", "traceparent"]
    ARRAYS_DROPPED_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MS_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SHARED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    arrays_dropped: bool
    code: _common_pb2.Code
    field: str
    message: str
    queue_ms: float
    replayed: bool
    request_id: str
    shared_bytes: int
    stages: StageTimes
    total_ms: float
    traceparent: str
    def __init__(self, request_id: _Optional[str] = ..., code: _Optional[_Union[_common_pb2.Code, str]] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., queue_ms: _Optional[float] = ..., total_ms: _Optional[float] = ..., replayed: bool = ..., arrays_dropped: bool = ..., stages: _Optional[_Union[StageTimes, _Mapping]] = ..., shared_bytes: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...

class SharedBody(_message.Message):
    __slots__ = ["n_bytes", "offset", "region", "reply_bytes", "reply_offset"]
    N_BYTES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    REPLY_BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLY_OFFSET_FIELD_NUMBER: _ClassVar[int]
    n_bytes: int
    offset: int
    region: bytes
    reply_bytes: int
    reply_offset: int
    def __init__(self, region: _Optional[bytes] = ..., offset: _Optional[int] = ..., n_bytes: _Optional[int] = ..., reply_offset: _Optional[int] = ..., reply_bytes: _Optional[int] = ...) -> None: ...

class StageTimes(_message.Message):
    __slots__ = ["commit_ms", "decode_ms", "engine_ms", "receive_ms", "wait_ms"]
    COMMIT_MS_FIELD_NUMBER: _ClassVar[int]
    DECODE_MS_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    RECEIVE_MS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    commit_ms: float
    decode_ms: float
    engine_ms: float
    receive_ms: float
    wait_ms: float
    def __init__(self, receive_ms: _Optional[float] = ..., decode_ms: _Optional[float] = ..., wait_ms: _Optional[float] = ..., engine_ms: _Optional[float] = ..., commit_ms: _Optional[float] = ...) -> None: ...
