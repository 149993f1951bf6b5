# SPDX-License-Identifier: Apache-2.0
"""What all calls of a client share: its connection, numbers of requests, limits and errors."""

from __future__ import annotations

import itertools
import math
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from voxeld.v1 import admin_pb2, common_pb2, rpc_pb2

from . import wire
from .errors import (
    Error,
    Internal,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    error_of,
)
from .reply import code_of
from .shared import PREFIX_BYTES, Shared, Slot
from .transport import Connection, Tls, choose_url

DEFAULT_IN_FLIGHT = 16
MAX_IN_FLIGHT = 1024
DEFAULT_REPLY_BYTES = 1 << 30
MAX_TIMEOUT_S = (2**31 - 1) / 1000
# Of calls that name no timeout: what is asked for at most, and while the limit is not known.
LONGEST_TIMEOUT_S = 60.0
SHORT_TIMEOUT_S = 5.0
# The server is to answer before the client gives up, since it can say more.
MOST_ANSWER_S = 0.1
# While the server's limit is not known, requests below this are sent without a check.
SURELY_TAKEN_BYTES = 1 << 20


def checked_timeout(timeout: float) -> float:
    if not isinstance(timeout, int | float):
        raise InvalidArgument(f"{timeout!r}; a number of seconds is right", "timeout")
    if not 0 < timeout <= MAX_TIMEOUT_S:
        raise InvalidArgument(f"{timeout}; more than 0 s, at most {MAX_TIMEOUT_S:.0f}", "timeout")
    return timeout


def opened(data: memoryview, method: str) -> tuple[rpc_pb2.Response, dict[str, memoryview]]:
    """Opens the reply to a request of the method; raises the server's error if it is one."""
    try:
        response, arrays = wire.open_response(data)
    except (ValueError, IndexError) as e:
        raise Internal(f"the reply of {len(data)} bytes is none of voxeld's: {e}") from None
    if not response.HasField("header"):
        raise Internal("the reply has no header")
    header = response.header
    if header.code != common_pb2.OK:
        raise error_of(code_of(header.code), header.message or "no reason given", header.field)
    if response.WhichOneof("method") != method:
        raise Internal(f"the reply answers {response.WhichOneof('method')}, not {method}")
    return response, arrays


_traceparent: ContextVar[str] = ContextVar("voxeld_traceparent", default="")


@contextmanager
def trace(traceparent: str) -> Iterator[None]:
    """Makes the calls within it part of a trace: W3C Trace Context, "00-TRACEID-PARENTID-FLAGS",
    which shows in the server's log. It holds for this thread, or this task of asyncio."""
    before = _traceparent.set(traceparent)
    try:
        yield
    finally:
        _traceparent.reset(before)


class Turn:
    """A call's place among others whose requests go out in order (pipeline.py)."""

    def __init__(self, before: Turn | None) -> None:
        self._before = before
        self._ended = threading.Event()

    def wait(self) -> None:
        """Waits until the request before this one was sent, or is given up."""
        if self._before is not None:
            self._before._ended.wait()
            self._before = None

    def end(self) -> None:
        self._ended.set()


turn_of: ContextVar[Turn | None] = ContextVar("voxeld_turn", default=None)


@dataclass(frozen=True)
class StageTimes:
    """Where the time of a call went in the server, in milliseconds; 0 for a stage that it did not
    reach.

    receive_ms  from the first byte of the request to its last
    decode_ms   unpacking and checking it
    wait_ms     in the queue, until the engine took it
    commit_ms   a durable change's wait for the journal
    total_ms    from arrival to reply
    """

    receive_ms: float
    decode_ms: float
    wait_ms: float
    engine_ms: float
    commit_ms: float
    total_ms: float


def stage_times(header: rpc_pb2.ResponseHeader) -> StageTimes | None:
    if not header.HasField("stages"):
        return None
    stages = header.stages
    return StageTimes(
        stages.receive_ms,
        stages.decode_ms,
        stages.wait_ms,
        stages.engine_ms,
        stages.commit_ms,
        header.total_ms,
    )


class Calls:
    """Sends requests and opens their replies; Client adds a method for each of the server's."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        client_id: str | None,
        timeout: float | None,
        *,
        wait: float | None,
        max_in_flight: int,
        max_reply_bytes: int,
        shared_bytes: int | None,
        tls: Tls | None = None,
    ) -> None:
        self._timeout = None if timeout is None else checked_timeout(timeout)
        if wait is not None and not (math.isfinite(wait) and wait >= 0):
            raise InvalidArgument(f"{wait}; None, 0 or more seconds are right", "wait")
        if not 1 <= max_in_flight <= MAX_IN_FLIGHT:
            raise InvalidArgument(f"{max_in_flight}; 1 to {MAX_IN_FLIGHT}", "max_in_flight")
        if shared_bytes is not None and shared_bytes < 0:
            raise InvalidArgument(f"{shared_bytes}; None, 0 or more", "shared_bytes")
        if max_reply_bytes < 1:
            raise InvalidArgument(f"{max_reply_bytes}; at least 1", "max_reply_bytes")
        self._token = os.environ.get("VOXELD_TOKEN", "") if token is None else token
        self._client_id = client_id or f"c-{secrets.token_hex(8)}"
        self._last_sequence = 0
        self._id_prefix = secrets.token_hex(4)
        self._ids = itertools.count(1)
        self._mutex = threading.Lock()
        # The server's limits on messages and timeouts, and the number of the connection that they
        # were learnt on.
        self._limit = (0, 0, 0)
        self._last_times: StageTimes | None = None
        self._connection = Connection(
            choose_url(url), max_in_flight, max_reply_bytes, tls
        )
        self._shared = Shared(self._connection.url, self._token, shared_bytes)
        if wait != 0:
            try:
                self._connection.wait(wait)
            except BaseException:
                self._connection.close()
                raise

    @property
    def last_times(self) -> StageTimes | None:
        """Where the time of the last call that succeeded went in the server. None before the
        first one, and with a server older than 0.2.0."""
        return self._last_times

    @property
    def url(self) -> str:
        """The address that the client connects to."""
        return self._connection.url

    def _numbered(self, sequence: int) -> int:
        """The sequence of a call: the given one, else the client's next one."""
        if not 0 <= sequence < 2**64:
            raise InvalidArgument(f"{sequence}; 0, or a number of 64 bits", "sequence")
        # The number is the time, so that a client that starts again goes on above the numbers of
        # the one that had its client_id before; it rises where the clock does not.
        with self._mutex:
            number = sequence or max(self._last_sequence + 1, time.time_ns() // 1000)
            self._last_sequence = max(self._last_sequence, number)
            return number

    def _change(
        self,
        method: str,
        message: Any,
        timeout: float | None,
        request_id: str | None,
        sequence: int,
    ) -> rpc_pb2.Response:
        """Calls a method that changes something, without arrays."""
        header = rpc_pb2.RequestHeader(sequence=self._numbered(sequence))
        parts: list[wire.Part] = [rpc_pb2.Request(**{method: message}).SerializeToString()]
        return self._exchange(method, header, parts, timeout, request_id)[0]

    def _call(
        self, method: str, request: rpc_pb2.Request, timeout: float | None, request_id: str | None
    ) -> rpc_pb2.Response:
        parts: list[wire.Part] = [request.SerializeToString()]
        return self._exchange(method, rpc_pb2.RequestHeader(), parts, timeout, request_id)[0]

    def _exchange(
        self,
        method: str,
        header: rpc_pb2.RequestHeader,
        parts: list[wire.Part],
        timeout: float | None,
        request_id: str | None,
    ) -> tuple[rpc_pb2.Response, dict[str, memoryview]]:
        timeout_s = self._timeout_s(method) if timeout is None else checked_timeout(timeout)
        n_bytes = sum(len(part) for part in parts)
        self._check_size(n_bytes, timeout_s)
        header.request_id = request_id or f"{self._id_prefix}-{next(self._ids)}"
        answer_s = min(timeout_s / 20, MOST_ANSWER_S)
        # The question for the server's limit is not to exceed it: the server's default is fine.
        asks_limit = method == "server_info" and timeout is None and self._timeout is None
        header.timeout_ms = 0 if asks_limit else max(round((timeout_s - answer_s) * 1000), 1)
        header.token = self._token
        header.client_id = self._client_id
        header.traceparent = _traceparent.get()
        # The question for the server's limit is no request of the caller's.
        turn = turn_of.get() if method != "server_info" else None
        try:
            slot = self._shared.take(method, n_bytes, timeout_s)
            if slot is not None:
                response, arrays = self._share(method, header, parts, timeout_s, slot, turn)
            if slot is None or response is None:
                head = rpc_pb2.Request(header=header).SerializeToString()
                data = self._in_turn(turn, [head, *parts], timeout_s)
                response, arrays = opened(data, method)
                self._shared.note_reply(method, len(data))
        except Error as e:
            e.request_id = header.request_id
            e.sequence = header.sequence
            raise
        self._last_times = stage_times(response.header)
        return response, arrays

    def _in_turn(
        self, turn: Turn | None, parts: list[wire.Part], timeout_s: float
    ) -> memoryview:
        if turn is None:
            return self._connection.exchange(parts, timeout_s)
        turn.wait()
        return self._connection.exchange(parts, timeout_s, sent=turn.end)

    def _share(
        self,
        method: str,
        header: rpc_pb2.RequestHeader,
        parts: list[wire.Part],
        timeout_s: float,
        slot: Slot,
        turn: Turn | None,
    ) -> tuple[rpc_pb2.Response | None, dict[str, memoryview]]:
        """Makes the call with its body in shared memory; no response where the daemon does not have
        the region any more, and so has done nothing."""
        tag, body = wire.body_of(parts)
        shared = rpc_pb2.SharedBody(
            region=slot.region.id,
            offset=slot.write(body),
            n_bytes=sum(len(part) for part in body),
            reply_offset=slot.reply_offset,
            reply_bytes=slot.n_reply_bytes - PREFIX_BYTES,
        )
        with_shared = rpc_pb2.RequestHeader()
        with_shared.CopyFrom(header)
        with_shared.shared.CopyFrom(shared)
        head = rpc_pb2.Request(header=with_shared).SerializeToString()
        answered = False
        try:
            data = self._in_turn(turn, [head, tag + b"\0"], timeout_s)
            answered = True
            response, arrays = opened(data, method)
            n_bytes = response.header.shared_bytes
            if n_bytes > shared.reply_bytes:
                raise Internal("the reply lies in shared memory where none was offered")
            self._shared.note_reply(method, len(data) + n_bytes)
            if n_bytes > 0:
                view = slot.reply(tag + wire.varint(n_bytes), n_bytes)
                slot = None
                whole, arrays = wire.open_response(view)
                whole.header.CopyFrom(response.header)
                response = whole
            return response, arrays
        except Error as e:
            if answered and e.field.startswith("header.shared"):
                self._shared.drop(slot.region, waits=True)
                return None, {}
            raise
        finally:
            if slot is not None and answered:
                slot.give()
            elif slot is not None:
                self._shared.drop(slot.region)  # the daemon may still write there

    def _get_server_info(
        self, timeout: float | None, request_id: str | None
    ) -> admin_pb2.ServerInfoResponse:
        """Asks for the server's info and keeps its limit on messages for later requests."""
        number = self._connection.number
        request = rpc_pb2.Request(server_info=admin_pb2.ServerInfoRequest())
        info = self._call("server_info", request, timeout, request_id).server_info
        with self._mutex:
            self._limit = (number, info.max_message_bytes, info.max_timeout_ms)
        return info

    def _timeout_s(self, method: str) -> float:
        """How long a call may take that names no timeout."""
        if self._timeout is not None:
            return self._timeout
        if method == "server_info":
            return SHORT_TIMEOUT_S
        if self._limit[0] != self._connection.number:
            try:
                self._get_server_info(None, None)
            except PermissionDenied:  # the token's rules: do not ask again
                with self._mutex:
                    self._limit = (self._connection.number, 0, 0)
            except Error:
                return SHORT_TIMEOUT_S  # the call itself finds out
        longest_s = self._limit[2] / 1000 if self._limit[2] > 0 else SHORT_TIMEOUT_S
        return min(longest_s, LONGEST_TIMEOUT_S)

    def _check_size(self, n_bytes: int, timeout_s: float) -> None:
        if n_bytes <= SURELY_TAKEN_BYTES:
            return
        if self._limit[0] != self._connection.number:
            self._get_server_info(timeout_s, None)
        limit = self._limit[1]
        if 0 < limit < n_bytes:
            raise ResourceExhausted(
                f"the request has {n_bytes} bytes, the server takes at most {limit}"
            )
