# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: one exception class a status code."""

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
    field       the member to blame, "clouds[0].fields[2].offset"; may be ""
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
    """A failure that says no more."""

    code = Code.UNKNOWN


class InvalidArgument(Error):
    """The request is wrong, whatever the state of the server; field says where."""

    code = Code.INVALID_ARGUMENT


class DeadlineExceeded(Error):
    """No reply within the timeout. The server gives the request up, too, unless it changes
    something and had begun."""

    code = Code.DEADLINE_EXCEEDED


class NotFound(Error):
    """What was named is not there."""

    code = Code.NOT_FOUND


class AlreadyExists(Error):
    """It is there already, and different."""

    code = Code.ALREADY_EXISTS


class PermissionDenied(Error):
    """The token is good, but not for this."""

    code = Code.PERMISSION_DENIED


class ResourceExhausted(Error):
    """Too large, or too many calls in flight."""

    code = Code.RESOURCE_EXHAUSTED


class FailedPrecondition(Error):
    """The server's state does not allow it."""

    code = Code.FAILED_PRECONDITION


class Aborted(Error):
    """Superseded by a newer request of the same stream, or waited longer than max_age_ms."""

    code = Code.ABORTED


class OutOfRange(Error):
    """Outside of what there is."""

    code = Code.OUT_OF_RANGE


class Unimplemented(Error):
    """The server does not know the method; it may be older than this client."""

    code = Code.UNIMPLEMENTED


class Internal(Error):
    """A fault of the server; also a reply that is inconsistent or none of voxeld's."""

    code = Code.INTERNAL


class Unavailable(Error):
    """No connection, or the server takes no more at the moment. Trying later may help."""

    code = Code.UNAVAILABLE


class DataLoss(Error):
    """Stored data is damaged."""

    code = Code.DATA_LOSS


class Unauthenticated(Error):
    """No token, or a wrong one."""

    code = Code.UNAUTHENTICATED


BY_CODE: dict[int, type[Error]] = {int(c.code): c for c in Error.__subclasses__()}


def error_of(code: int, message: str, field: str = "", request_id: str = "") -> Error:
    """The exception of a code; Unknown for a number that is none."""
    return BY_CODE.get(code, Unknown)(message, field, request_id)
