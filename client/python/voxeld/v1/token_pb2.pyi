# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class TokenIssueRequest(_message.Message):
    __slots__ = ["prefixes", "scopes", "ttl_s"]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    TTL_S_FIELD_NUMBER: _ClassVar[int]
    prefixes: _containers.RepeatedScalarFieldContainer[str]
    scopes: _containers.RepeatedScalarFieldContainer[str]
    ttl_s: int
    def __init__(self, scopes: _Optional[_Iterable[str]] = ..., prefixes: _Optional[_Iterable[str]] = ..., ttl_s: _Optional[int] = ...) -> None: ...

class TokenIssueResponse(_message.Message):
    __slots__ = ["expires_ns", "name", "scopes", "token"]
    EXPIRES_NS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    expires_ns: int
    name: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    token: str
    def __init__(self, token: _Optional[str] = ..., expires_ns: _Optional[int] = ..., name: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ...) -> None: ...
