# SPDX-License-Identifier: Apache-2.0
"""One process of an overload: it asks at set times over a few connections, whether answers come or
not, and checks every answer. It prints what it saw as JSON.

usage: overload_client.py URL RATE SECONDS GRACE_SECONDS REQUEST..., files of serialized
requests, each with the right reply (serialized, .reply) beside it. URL may be http://HOST:PORT:
many connections then, of one request at a time each."""

from __future__ import annotations

import collections
import json
import re
import selectors
import socket
import sys
import time
from pathlib import Path

from harness import OK, RawReq, common_pb2, rpc_pb2

N_CONNECTIONS = 4
N_HTTP_CONNECTIONS = 48
REFUSALS = {
    common_pb2.UNAVAILABLE, common_pb2.RESOURCE_EXHAUSTED, common_pb2.DEADLINE_EXCEEDED,
}  # fmt: skip


def without_clocks(response: rpc_pb2.Response) -> bytes:
    """Returns the parts of a reply that are the same every time."""
    kept = rpc_pb2.Response()
    kept.CopyFrom(response)
    kept.ClearField("header")
    kept.DiscardUnknownFields()  # padding
    if kept.HasField("voxelize"):
        kept.voxelize.ClearField("engine_ms")
    if kept.HasField("self_test"):
        kept.self_test.ClearField("n_stages")
        kept.self_test.ClearField("elapsed_ms")
    return kept.SerializeToString(deterministic=True)


class Connection:
    """Requests in flight on one socket; nothing here waits."""

    def __init__(self, url: str) -> None:
        self.raw = RawReq(url)
        self.raw.socket.setblocking(False)
        self.unsent = bytearray()
        self.received = bytearray()
        self.sent: dict[int, tuple[float, int]] = {}

    def send(self, number: int, kind: int, request: bytes) -> None:
        data = (0x80000000 | number).to_bytes(4, "big") + request
        self.unsent += self.raw.mark + len(data).to_bytes(8, "big") + data
        self.sent[number] = (time.monotonic(), kind)

    def flush(self) -> None:
        while self.unsent:
            try:
                del self.unsent[: self.raw.socket.send(self.unsent)]
            except BlockingIOError:
                return

    def replies(self) -> list[tuple[int, bytes]]:
        try:
            while piece := self.raw.socket.recv(1 << 20):
                self.received += piece
        except BlockingIOError:
            pass
        found = []
        at, n_head = 0, len(self.raw.mark) + 8
        while len(self.received) >= at + n_head:
            n = int.from_bytes(self.received[at + n_head - 8 : at + n_head], "big")
            if len(self.received) < at + n_head + n:
                break
            data = bytes(self.received[at + n_head : at + n_head + n])
            found.append((int.from_bytes(data[:4], "big") & 0x7FFFFFFF, data[4:]))
            at += n_head + n
        del self.received[:at]
        return found


class HttpConnection:
    """The same over HTTP/1.1, where a connection has one request under way; others wait for it,
    and their time begins when they are sent."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").rsplit(":", 1)
        self.host = f"{host}:{port}"
        self.socket = socket.create_connection((host, int(port)), 20)
        self.socket.setblocking(False)
        self.unsent = bytearray()
        self.received = bytearray()
        self.waiting: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self.sent: dict[int, tuple[float, int]] = {}
        self.method = ""

    def send(self, number: int, kind: int, request: bytes) -> None:
        if len(self.waiting) < 2:  # who falls behind asks less
            self.waiting.append((number, kind, request))
        self.next()

    def next(self) -> None:
        if self.sent or not self.waiting:
            return
        number, kind, request = self.waiting.popleft()
        message = rpc_pb2.Request.FromString(request)
        self.method = str(message.WhichOneof("method"))
        body = getattr(message, self.method).SerializeToString()
        self.unsent += (
            f"POST /v1/{self.method} HTTP/1.1\r\nHost: {self.host}\r\n"
            "Content-Type: application/x-protobuf\r\nAccept: application/x-protobuf\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        self.sent[number] = (time.monotonic(), kind)

    def flush(self) -> None:
        self.next()
        while self.unsent:
            try:
                del self.unsent[: self.socket.send(self.unsent)]
            except BlockingIOError:
                return

    def replies(self) -> list[tuple[int, bytes]]:
        try:
            while piece := self.socket.recv(1 << 20):
                self.received += piece
        except BlockingIOError:
            pass
        head, mark, rest = bytes(self.received).partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = {k.lower(): v for k, _, v in (x.partition(": ") for x in lines[1:])}
        n = int(fields.get("content-length", 0))
        if not mark or len(rest) < n:
            return []
        self.received = bytearray(rest[n:])
        response = rpc_pb2.Response()
        if lines[0].split()[1] == "200":
            getattr(response, self.method).ParseFromString(rest[:n])
        else:
            problem = json.loads(rest[:n])
            response.header.code = common_pb2.Code.Value(problem["code"])
            response.header.message = problem["message"]
            timing = re.search(r"total;dur=([\d.]+)", fields.get("server-timing", ""))
            response.header.total_ms = float(timing[1]) if timing else 0
        return [(number, response.SerializeToString()) for number in list(self.sent)]


class Client:
    def __init__(self, url: str, requests: list[Path]) -> None:
        self.requests = [path.read_bytes() for path in requests]
        self.right = [
            without_clocks(rpc_pb2.Response.FromString(Path(f"{path}.reply").read_bytes()))
            for path in requests
        ]
        is_http = url.startswith("http://")
        self.connections: list[Connection | HttpConnection] = [
            HttpConnection(url) if is_http else Connection(url)
            for _ in range(N_HTTP_CONNECTIONS if is_http else N_CONNECTIONS)
        ]
        self.selector = selectors.DefaultSelector()
        for c in self.connections:
            self.selector.register(
                c.socket if isinstance(c, HttpConnection) else c.raw.socket,
                selectors.EVENT_READ,
                c,
            )
        self.codes: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.rejected_ms: list[float] = []
        self.inside_ms: list[float] = []  # of those, by the daemon's own clock
        self.ok_ms: list[float] = []

    def judge(
        self, connection: Connection | HttpConnection, number: int, reply: bytes, now: float
    ) -> None:
        if number not in connection.sent:
            self.wrong.append(f"an answer to {number}, which is answered already")
            return
        sent, kind = connection.sent.pop(number)
        response = rpc_pb2.Response.FromString(reply)
        code = response.header.code
        self.codes[common_pb2.Code.Name(code)] += 1
        if code == OK:
            self.ok_ms.append((now - sent) * 1e3)
            if without_clocks(response) != self.right[kind]:
                self.wrong.append(f"request {kind} is answered with other content")
        elif code not in REFUSALS or not response.header.message:
            self.wrong.append(f"request {kind}: {response.header}")
        elif code != common_pb2.DEADLINE_EXCEEDED:
            self.rejected_ms.append((now - sent) * 1e3)
            self.inside_ms.append(response.header.total_ms)

    def receive(self, wait_s: float) -> None:
        for key, _ in self.selector.select(max(wait_s, 0)):
            replies = key.data.replies()
            now = time.monotonic()
            for number, reply in replies:
                self.judge(key.data, number, reply, now)
            if replies:
                key.data.flush()

    def run(self, rate: float, seconds: float, grace_s: float) -> None:
        start = time.monotonic()
        n_due = int(rate * seconds)
        for i in range(n_due):
            due = start + i / rate
            while (left := due - time.monotonic()) > 0:
                self.receive(left)
            if i % 16 == 0:
                self.receive(0)
            kind = i % len(self.requests)
            connection = self.connections[i % len(self.connections)]
            connection.send(i, kind, self.requests[kind])
            connection.flush()
        end = time.monotonic() + grace_s
        while any(c.sent for c in self.connections) and time.monotonic() < end:
            for connection in self.connections:
                connection.flush()
            self.receive(0.01)


def main() -> None:
    url, rate, seconds, grace_s, *requests = sys.argv[1:]
    client = Client(url, [Path(path) for path in requests])
    start = time.monotonic()
    client.run(float(rate), float(seconds), float(grace_s))
    json.dump(
        {
            "seconds": time.monotonic() - start,
            "codes": client.codes,
            "wrong": client.wrong[:20],
            "n_wrong": len(client.wrong),
            "n_unanswered": sum(len(c.sent) for c in client.connections),
            "rejected_ms": client.rejected_ms,
            "inside_ms": client.inside_ms,
            "ok_ms": client.ok_ms,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
