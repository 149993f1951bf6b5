# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BackupDropRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class BackupDropResponse(_message.Message):
    __slots__ = ["existed"]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    existed: bool
    def __init__(self, existed: bool = ...) -> None: ...

class BackupInfo(_message.Message):
    __slots__ = ["made_ns", "n_database_bytes", "n_file_bytes", "n_files", "n_snapshot_bytes", "n_snapshots", "name", "path"]
    MADE_NS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_DATABASE_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_FILES_FIELD_NUMBER: _ClassVar[int]
    N_FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    N_SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    N_SNAPSHOT_BYTES_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    made_ns: int
    n_database_bytes: int
    n_file_bytes: int
    n_files: int
    n_snapshot_bytes: int
    n_snapshots: int
    name: str
    path: str
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ..., made_ns: _Optional[int] = ..., n_database_bytes: _Optional[int] = ..., n_snapshot_bytes: _Optional[int] = ..., n_snapshots: _Optional[int] = ..., n_file_bytes: _Optional[int] = ..., n_files: _Optional[int] = ...) -> None: ...

class BackupListRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class BackupListResponse(_message.Message):
    __slots__ = ["backups", "n_free_bytes"]
    BACKUPS_FIELD_NUMBER: _ClassVar[int]
    N_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    backups: _containers.RepeatedCompositeFieldContainer[BackupInfo]
    n_free_bytes: int
    def __init__(self, backups: _Optional[_Iterable[_Union[BackupInfo, _Mapping]]] = ..., n_free_bytes: _Optional[int] = ...) -> None: ...
