# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import admin_pb2 as _admin_pb2
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import voxelize_pb2 as _voxelize_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Request(_message.Message):
    __slots__ = ["header", "self_test", "server_info", "set_log_level", "status", "voxelize"]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_FIELD_NUMBER: _ClassVar[int]
    SERVER_INFO_FIELD_NUMBER: _ClassVar[int]
    SET_LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VOXELIZE_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    self_test: _admin_pb2.SelfTestRequest
    server_info: _admin_pb2.ServerInfoRequest
    set_log_level: _admin_pb2.SetLogLevelRequest
    status: _admin_pb2.StatusRequest
    voxelize: _voxelize_pb2.VoxelizeRequest
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., server_info: _Optional[_Union[_admin_pb2.ServerInfoRequest, _Mapping]] = ..., status: _Optional[_Union[_admin_pb2.StatusRequest, _Mapping]] = ..., self_test: _Optional[_Union[_admin_pb2.SelfTestRequest, _Mapping]] = ..., set_log_level: _Optional[_Union[_admin_pb2.SetLogLevelRequest, _Mapping]] = ..., voxelize: _Optional[_Union[_voxelize_pb2.VoxelizeRequest, _Mapping]] = ...) -> None: ...

class RequestHeader(_message.Message):
    __slots__ = ["client_id", "expect_digests", "keep_last", "max_age_ms", "request_id", "sequence", "stream", "timeout_ms", "token"]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECT_DIGESTS_FIELD_NUMBER: _ClassVar[int]
    KEEP_LAST_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    client_id: str
    expect_digests: _containers.RepeatedScalarFieldContainer[str]
    keep_last: int
    max_age_ms: int
    request_id: str
    sequence: int
    stream: str
    timeout_ms: int
    token: str
    def __init__(self, request_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., token: _Optional[str] = ..., client_id: _Optional[str] = ..., sequence: _Optional[int] = ..., stream: _Optional[str] = ..., keep_last: _Optional[int] = ..., max_age_ms: _Optional[int] = ..., expect_digests: _Optional[_Iterable[str]] = ...) -> None: ...

class Response(_message.Message):
    __slots__ = ["header", "self_test", "server_info", "set_log_level", "status", "voxelize"]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_FIELD_NUMBER: _ClassVar[int]
    SERVER_INFO_FIELD_NUMBER: _ClassVar[int]
    SET_LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VOXELIZE_FIELD_NUMBER: _ClassVar[int]
    header: ResponseHeader
    self_test: _admin_pb2.SelfTestResponse
    server_info: _admin_pb2.ServerInfoResponse
    set_log_level: _admin_pb2.SetLogLevelResponse
    status: _admin_pb2.StatusResponse
    voxelize: _voxelize_pb2.VoxelizeResponse
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping]] = ..., server_info: _Optional[_Union[_admin_pb2.ServerInfoResponse, _Mapping]] = ..., status: _Optional[_Union[_admin_pb2.StatusResponse, _Mapping]] = ..., self_test: _Optional[_Union[_admin_pb2.SelfTestResponse, _Mapping]] = ..., set_log_level: _Optional[_Union[_admin_pb2.SetLogLevelResponse, _Mapping]] = ..., voxelize: _Optional[_Union[_voxelize_pb2.VoxelizeResponse, _Mapping]] = ...) -> None: ...

class ResponseHeader(_message.Message):
    __slots__ = ["code", "field", "message", "queue_ms", "request_id", "total_ms"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    code: _common_pb2.Code
    field: str
    message: str
    queue_ms: float
    request_id: str
    total_ms: float
    def __init__(self, request_id: _Optional[str] = ..., code: _Optional[_Union[_common_pb2.Code, str]] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., queue_ms: _Optional[float] = ..., total_ms: _Optional[float] = ...) -> None: ...
