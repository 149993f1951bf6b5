# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WhyAhead(_message.Message):
    __slots__ = ["is_running", "method", "n", "token"]
    IS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    is_running: bool
    method: str
    n: int
    token: str
    def __init__(self, method: _Optional[str] = ..., token: _Optional[str] = ..., n: _Optional[int] = ..., is_running: bool = ...) -> None: ...

class WhyRequest(_message.Message):
    __slots__ = ["request_id"]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    def __init__(self, request_id: _Optional[str] = ...) -> None: ...

class WhyResponse(_message.Message):
    __slots__ = ["ahead", "code", "commit_ms", "decode_ms", "engine_ms", "field", "finished_ns", "key", "limit", "message", "method", "n_others", "queue_position", "receive_ms", "request_id", "state", "summary", "token", "total_ms", "trace_id", "wait_ms"]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_MS_FIELD_NUMBER: _ClassVar[int]
    DECODE_MS_FIELD_NUMBER: _ClassVar[int]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    FINISHED_NS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    N_OTHERS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    RECEIVE_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    ahead: _containers.RepeatedCompositeFieldContainer[WhyAhead]
    code: _common_pb2.Code
    commit_ms: float
    decode_ms: float
    engine_ms: float
    field: str
    finished_ns: int
    key: str
    limit: int
    message: str
    method: str
    n_others: int
    queue_position: int
    receive_ms: float
    request_id: str
    state: str
    summary: str
    token: str
    total_ms: float
    trace_id: str
    wait_ms: float
    def __init__(self, summary: _Optional[str] = ..., request_id: _Optional[str] = ..., method: _Optional[str] = ..., token: _Optional[str] = ..., state: _Optional[str] = ..., code: _Optional[_Union[_common_pb2.Code, str]] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., key: _Optional[str] = ..., limit: _Optional[int] = ..., queue_position: _Optional[int] = ..., ahead: _Optional[_Iterable[_Union[WhyAhead, _Mapping]]] = ..., n_others: _Optional[int] = ..., receive_ms: _Optional[float] = ..., decode_ms: _Optional[float] = ..., wait_ms: _Optional[float] = ..., engine_ms: _Optional[float] = ..., commit_ms: _Optional[float] = ..., total_ms: _Optional[float] = ..., trace_id: _Optional[str] = ..., finished_ns: _Optional[int] = ...) -> None: ...
