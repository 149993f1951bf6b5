# SPDX-License-Identifier: Apache-2.0
"""The errors of calls: one exception class for each status code."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """gRPC's numbers, as in the schema."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Error(Exception):
    """Any failure of a call. Catch this one, or the subclass of a code.

    code        the status code
    field       the wrong member, "clouds[0].fields[2].offset"; may be ""
    message     what was wrong and what would be right
    request_id  as in the server's log; "" where the request was never sent
    sequence    number of a call that changes something, to repeat it by (see Client); 0: none
    """

    code: Code = Code.UNKNOWN
    sequence: int = 0

    def __init__(self, message: str, field: str = "", request_id: str = "") -> None:
        super().__init__(message, field, request_id)
        self.message = message
        self.field = field
        self.request_id = request_id

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code.name}: {where}{self.message}{request}"


class Cancelled(Error):
    """The client was closed."""

    code = Code.CANCELLED


class Unknown(Error):
    """A failure without a more precise code."""

    code = Code.UNKNOWN


class InvalidArgument(Error):
    """The request is wrong, whatever the state of the server; field says where."""

    code = Code.INVALID_ARGUMENT


class DeadlineExceeded(Error):
    """No reply within the timeout. Where field is "header.timeout_ms", the server has given the
    request up; otherwise a change may go on, and repeat() learns its outcome."""

    code = Code.DEADLINE_EXCEEDED


class NotFound(Error):
    """The named object does not exist."""

    code = Code.NOT_FOUND


class AlreadyExists(Error):
    """The object exists already, and differs."""

    code = Code.ALREADY_EXISTS


class PermissionDenied(Error):
    """The token is valid, but not for this call."""

    code = Code.PERMISSION_DENIED


class ResourceExhausted(Error):
    """The request is too large, or too many calls are in flight."""

    code = Code.RESOURCE_EXHAUSTED


class FailedPrecondition(Error):
    """The server's state does not allow it."""

    code = Code.FAILED_PRECONDITION


class Aborted(Error):
    """A newer request of its stream superseded this one, or it waited longer than max_age_ms."""

    code = Code.ABORTED


class OutOfRange(Error):
    """The request lies outside of the object's bounds."""

    code = Code.OUT_OF_RANGE


class Unimplemented(Error):
    """The server does not know the method; it may be older than this client."""

    code = Code.UNIMPLEMENTED


class Internal(Error):
    """The server is at fault, or its reply is inconsistent or not voxeld's."""

    code = Code.INTERNAL


class Unavailable(Error):
    """There is no connection, or the server accepts no more at the moment. A later try may
    succeed."""

    code = Code.UNAVAILABLE


class DataLoss(Error):
    """Stored data is damaged."""

    code = Code.DATA_LOSS


class Unauthenticated(Error):
    """The token is missing or wrong."""

    code = Code.UNAUTHENTICATED


BY_CODE: dict[int, type[Error]] = {int(c.code): c for c in Error.__subclasses__()}


def error_of(code: int, message: str, field: str = "", request_id: str = "") -> Error:
    """Returns the exception of a code; Unknown for a number that is no code."""
    return BY_CODE.get(code, Unknown)(message, field, request_id)
