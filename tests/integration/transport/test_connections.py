# SPDX-License-Identifier: Apache-2.0
"""Connections of nng's protocol, spoken by hand: many requests under way on one, messages in any
pieces, and peers that stall, lie about sizes, leave, or fill all places. None of it costs another
peer anything."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import (
    MIB,
    OK,
    SANITIZE,
    SLOW,
    Daemon,
    RawReq,
    Rpc,
    admin_pb2,
    cloud_of,
    common_pb2,
    http_call,
    inflight_bytes,
    random_points,
    rpc_pb2,
    running,
    voxelize_request,
    wait_until,
)

STALL_S = 10  # what a message may stand still


def message(request: rpc_pb2.Request, words: tuple[int, ...] = (0x80000001,)) -> bytes:
    """The route and the body, as they follow the length."""
    return b"".join(w.to_bytes(4, "big") for w in words) + request.SerializeToString()


def framed(peer: RawReq, data: bytes) -> bytes:
    return peer.mark + len(data).to_bytes(8, "big") + data


def reply_of(peer: RawReq, n_words: int = 1) -> tuple[bytes, rpc_pb2.Response]:
    head = peer.take(len(peer.mark) + 8)
    data = peer.take(int.from_bytes(head[-8:], "big"))
    return data[: 4 * n_words], rpc_pb2.Response.FromString(data[4 * n_words :])


def info_request(name: str) -> rpc_pb2.Request:
    return rpc_pb2.Request(
        header=rpc_pb2.RequestHeader(request_id=name),
        server_info=admin_pb2.ServerInfoRequest(),
    )


@pytest.fixture(params=["ipc", "tcp"])
def url(request: pytest.FixtureRequest, daemon: Daemon) -> str:
    return daemon.ipc if request.param == "ipc" else daemon.tcp


def test_many_requests_of_one_connection_are_answered_each_by_its_id(url: str) -> None:
    large = voxelize_request(cloud_of(random_points(100000)), size=0.5)
    with RawReq(url) as peer:
        sent = bytearray()
        for i in range(60):
            request = info_request(f"r-{i}")
            if i % 20 == 7:
                request = rpc_pb2.Request(header=request.header, voxelize=large)
            sent += framed(peer, message(request, (0x80000000 + i,)))
        peer.socket.sendall(sent)
        replies = dict(reply_of(peer) for _ in range(60))
    assert len(replies) == 60
    for word, reply in replies.items():
        i = int.from_bytes(word, "big") - 0x80000000
        assert reply.header.code == OK
        assert reply.header.request_id == f"r-{i}"
        assert reply.WhichOneof("method") == ("voxelize" if i % 20 == 7 else "server_info")


def test_a_message_may_come_in_any_pieces(url: str) -> None:
    large = rpc_pb2.Request(voxelize=voxelize_request(cloud_of(random_points(9000)), size=0.5))
    with RawReq(url) as whole:
        whole.send(large)
        expected = whole.receive().voxelize.coords
    with RawReq(url) as peer:
        data = framed(peer, message(info_request("bytes")))
        for i in range(len(data)):
            peer.socket.sendall(data[i : i + 1])
        assert reply_of(peer)[1].header.request_id == "bytes"
        data = framed(peer, message(large)) + framed(peer, message(info_request("next")))
        for begin in range(0, len(data), 7001):
            peer.socket.sendall(data[begin : begin + 7001])
            time.sleep(0.001)
        replies = [reply_of(peer)[1] for _ in range(2)]
        assert expected in [r.voxelize.coords for r in replies]
        assert "next" in [r.header.request_id for r in replies]


def test_a_request_that_came_by_devices_goes_back_by_them(url: str) -> None:
    for n_hops in (1, 8):
        words = (*range(1, n_hops + 1), 0x80000005)
        with RawReq(url) as peer:
            peer.socket.sendall(framed(peer, message(info_request("far"), words)))
            route, reply = reply_of(peer, len(words))
        assert route == b"".join(w.to_bytes(4, "big") for w in words)
        assert reply.header.request_id == "far"
    with RawReq(url) as peer:
        peer.socket.sendall(framed(peer, message(info_request("lost"), (1,) * 9 + (0x80000005,))))
        assert peer.socket.recv(1) == b""


def test_announced_sizes_take_no_memory_and_stalled_messages_are_cut(daemon: Daemon) -> None:
    body = message(rpc_pb2.Request(voxelize=voxelize_request(cloud_of(random_points(2000)))))
    before = daemon.resident_bytes()
    peers = []
    begin = time.monotonic()
    for i in range(24):
        peer = RawReq(daemon.ipc if i % 2 == 0 else daemon.tcp)
        peer.socket.sendall(peer.mark + (60 * MIB).to_bytes(8, "big") + body[:20000])
        peers.append(peer)
    half = socket.create_connection(
        ("127.0.0.1", int(daemon.tcp.rsplit(":", 1)[1])), 30 * SLOW
    )  # no greeting
    try:
        with Rpc(daemon.ipc) as other:
            for _ in range(20):
                assert other.call("server_info").header.code == OK
        # A page of 2 MiB each, where the system gives such pages.
        limit = 64 * MIB if not SANITIZE else 512 * MIB
        assert daemon.resident_bytes() - before < limit
        for peer in peers:
            peer.socket.settimeout(60 * SLOW)
            assert peer.socket.recv(1) == b""
        assert half.recv(8) == RawReq.HELLO[:5] + b"\x31\0\0"
        assert half.recv(1) == b""
        assert time.monotonic() - begin >= STALL_S
    finally:
        for peer in peers:
            peer.socket.close()
        half.close()


def test_size_above_the_limit_is_refused_before_it_comes(daemon: Daemon, url: str) -> None:
    with Rpc(daemon.ipc) as client:
        limit = client.call("server_info").server_info.max_message_bytes
    with RawReq(url) as peer:
        data = message(rpc_pb2.Request(header=rpc_pb2.RequestHeader(request_id="huge")))
        head = peer.mark + (2 * limit).to_bytes(8, "big")
        peer.socket.sendall(head + data + bytes(16384))
        reply = reply_of(peer)[1]
        assert reply.header.code == common_pb2.RESOURCE_EXHAUSTED
        assert reply.header.request_id == "huge"
        # What was announced is read and forgotten; the connection serves on.
        left = 2 * limit - len(data) - 16384
        while left > 0:
            n = min(left, MIB)
            peer.socket.sendall(bytes(n))
            left -= n
        peer.socket.sendall(framed(peer, message(info_request("after"))))
        assert reply_of(peer)[1].header.request_id == "after"
    with RawReq(url) as peer:
        peer.socket.sendall(peer.mark + (2**62).to_bytes(8, "big") + data + bytes(16384))
        assert reply_of(peer)[1].header.code == common_pb2.RESOURCE_EXHAUSTED
        with pytest.raises(OSError):  # nobody reads that much
            for _ in range(1100):
                peer.socket.sendall(bytes(MIB))


@pytest.mark.parametrize("n_bytes", [*range(2**64 - 12, 2**64), 2**63])
def test_lengths_at_the_end_of_64_bits_end_the_connection(url: str, n_bytes: int) -> None:
    with RawReq(url) as peer:
        head = peer.mark + n_bytes.to_bytes(8, "big")
        with contextlib.suppress(OSError):
            peer.socket.sendall(head + b"\x80\0\0\1" + bytes(40000))
            while peer.socket.recv(4096):
                pass
    with RawReq(url) as peer:
        peer.send(info_request("after"))
        assert peer.receive().header.request_id == "after"


def test_a_refused_message_that_stalls_takes_nothing_from_others(directory: Path) -> None:
    """What is read of it only to be forgotten holds no memory, so it fills no limit."""
    limits = {"message_bytes": MIB, "inflight_bytes": 4 * MIB}
    with running(directory, {"limits": limits}) as daemon:
        large = rpc_pb2.Request(voxelize=voxelize_request(cloud_of(random_points(60000))))
        with RawReq(daemon.tcp) as peer:
            head = peer.mark + (2**40).to_bytes(8, "big")
            peer.socket.sendall(head + message(info_request("stall")) + bytes(16384))
            assert reply_of(peer)[1].header.code == common_pb2.RESOURCE_EXHAUSTED
            for _ in range(16):
                peer.socket.sendall(bytes(MIB))
            for _ in range(3):
                with RawReq(daemon.ipc) as other:
                    other.send(large)
                    assert other.receive().header.code == OK


def test_pipelined_requests_that_wait_for_their_replies_drift_no_limit(daemon: Daemon) -> None:
    with RawReq(daemon.ipc) as peer:
        data = b"".join(
            framed(peer, message(info_request(f"p-{i}"), (0x80000000 + i,))) for i in range(3000)
        )
        sender = threading.Thread(target=peer.socket.sendall, args=(data,))
        sender.start()
        seen = {reply_of(peer)[1].header.request_id for _ in range(3000)}
        sender.join()
    assert len(seen) == 3000


def test_a_large_message_without_its_token_is_refused_before_it_comes(directory: Path) -> None:
    tokens = directory / "tokens"
    tokens.write_text(f"robot read {hashlib.sha256(b'secret').hexdigest()}\n")
    tokens.chmod(0o600)
    with running(directory / "d", {"auth": {"tokens_file": str(tokens)}}) as daemon:
        request = rpc_pb2.Request(
            header=rpc_pb2.RequestHeader(request_id="who"),
            voxelize=voxelize_request(cloud_of(random_points(50000)), size=0.5),
        )
        for token in ("", "wrong"):
            request.header.token = token
            with RawReq(daemon.tcp) as peer:
                peer.socket.sendall(framed(peer, message(request))[:20000])
                reply = reply_of(peer)[1]
                assert reply.header.code == common_pb2.UNAUTHENTICATED
                assert reply.header.request_id == "who"
        request.header.token = "secret"
        with RawReq(daemon.tcp) as peer:
            peer.send(request)
            assert peer.receive().header.code == OK


def test_idle_connections_from_the_network_leave_places_for_ipc(directory: Path) -> None:
    with running(directory, {"limits": {"connections": 32}}) as daemon:
        port = int(daemon.tcp.rsplit(":", 1)[1])
        idle = [socket.create_connection(("127.0.0.1", port), 30 * SLOW) for _ in range(40)]
        for peer in idle:
            peer.sendall(RawReq.HELLO)
        try:
            with Rpc(daemon.ipc) as operator:
                assert operator.call("server_info").header.code == OK
            with pytest.raises((AssertionError, OSError)), RawReq(daemon.tcp):
                pass
        finally:
            for peer in idle:
                peer.close()


def test_who_leaves_takes_his_request_with_him(daemon: Daemon, url: str) -> None:
    long_ms = 50000
    daemon.settle()
    with RawReq(url) as peer:
        peer.send(
            rpc_pb2.Request(
                header=rpc_pb2.RequestHeader(request_id="left", timeout_ms=60000),
                self_test=admin_pb2.SelfTestRequest(duration_ms=long_ms),
            )
        )
        wait_until(lambda: daemon.n_under_way() == 1, 10, "it runs")
    begin = time.monotonic()
    wait_until(lambda: daemon.n_under_way() == 0, 10, "it ends with its connection")
    assert time.monotonic() - begin < long_ms / 1000
    entry = wait_until(
        lambda: next((e for e in list(daemon.log) if e.get("request_id") == "left"), None),
        5, "it is logged",
    )  # fmt: skip
    assert entry["code"] == "CANCELLED"


def post_and_leave(daemon: Daemon, method: str, body: str, seen: Callable[[], object]) -> None:
    """Posts JSON, waits until it is seen, and closes the connection without reading a reply."""
    with socket.create_connection(("127.0.0.1", daemon.http_port), 30 * SLOW) as peer:
        peer.sendall(
            f"POST /v1/{method} HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
            f"X-Request-Id: gone\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            f"{body}".encode()
        )
        wait_until(lambda: bool(seen()), 10, "it is under way")


def test_who_leaves_over_http_takes_his_request_with_him(daemon: Daemon) -> None:
    long_ms = 50000
    daemon.settle()
    begin = time.monotonic()
    post_and_leave(
        daemon, "self_test", f'{{"durationMs": {long_ms}}}', lambda: load_of(daemon)[0] == 1
    )
    daemon.settle()
    assert time.monotonic() - begin < long_ms / 1000
    entry = wait_until(
        lambda: next((e for e in list(daemon.log) if e.get("request_id") == "gone"), None),
        5, "it is logged",
    )  # fmt: skip
    assert entry["code"] == "CANCELLED"


def self_test(name: str, duration_ms: int) -> rpc_pb2.Request:
    return rpc_pb2.Request(
        header=rpc_pb2.RequestHeader(request_id=name, timeout_ms=60000),
        self_test=admin_pb2.SelfTestRequest(duration_ms=duration_ms),
    )


def load_of(daemon: Daemon) -> tuple[int, int]:
    status = http_call(daemon, "GET", "/v1/status").json()
    return int(status.get("running", 0)), int(status.get("queueDepth", 0))


def test_who_leaves_gives_his_places_in_the_queue_back(directory: Path) -> None:
    config = {"limits": {"queue": 4}, "engine": {"read_lanes": 2}}
    with running(directory, config) as daemon, RawReq(daemon.ipc) as busy:
        for i in range(4):  # as many as may have begun
            busy.send(self_test(f"busy-{i}", 50000))
        wait_until(lambda: load_of(daemon) == (4, 0), 10, "they have begun")
        with RawReq(daemon.ipc) as leaving:
            for i in range(4):
                leaving.send(self_test(f"left-{i}", 50000))
            wait_until(lambda: load_of(daemon) == (4, 4), 10, "the queue is full")
        wait_until(lambda: load_of(daemon) == (4, 0), 10, "their places are free")
        with RawReq(daemon.ipc) as next_one:
            next_one.send(self_test("next", 1))
            wait_until(lambda: load_of(daemon) == (4, 1), 10, "the next one waits")
            busy.socket.close()
            assert next_one.receive().header.code == OK


def post_head(daemon: Daemon, n_bytes: int) -> bytes:
    return (
        f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        f"Content-Type: application/x-protobuf\r\nContent-Length: {n_bytes}\r\n\r\n"
    ).encode()


def test_uploads_that_are_announced_over_http_stop_nobody(daemon: Daemon) -> None:
    with Rpc(daemon.ipc) as client:
        limit = client.call("server_info").server_info.max_message_bytes
    uploads = []
    try:
        for _ in range(20):
            peer = socket.create_connection(("127.0.0.1", daemon.http_port), 30 * SLOW)
            peer.sendall(post_head(daemon, limit) + b"\x0a")
            uploads.append(peer)
        request = voxelize_request(cloud_of(random_points(20000)), size=0.5)
        for _ in range(5):
            reply = http_call(
                daemon, "POST", "/v1/voxelize", request.SerializeToString(),
                {"Content-Type": "application/x-protobuf"},
            )  # fmt: skip
            assert reply.status == 200
            with Rpc(daemon.ipc) as client:
                assert client.call("voxelize", request).header.code == OK
    finally:
        for peer in uploads:
            peer.close()


@pytest.mark.parametrize("how", ["nothing", "half a header", "a body that never comes"])
def test_silent_http_connections_leave_places_for_others(directory: Path, how: str) -> None:
    with running(directory, {"limits": {"connections": 32}}) as daemon:
        silent = []
        try:
            for _ in range(100):
                peer = socket.create_connection(("127.0.0.1", daemon.http_port), 30 * SLOW)
                silent.append(peer)
                with contextlib.suppress(OSError):
                    if how == "half a header":
                        peer.sendall(b"GET /v1/health/live HTTP/1.1\r\nHost: loc")
                    elif how == "a body that never comes":
                        peer.sendall(post_head(daemon, 1000) + b"\x0a")

            def is_served() -> bool:
                try:
                    return http_call(daemon, "GET", "/v1/health/ready").status == 200
                except OSError:  # the places of those who were cut are free a moment later
                    return False

            wait_until(is_served, 5, "health is answered")
            assert http_call(daemon, "GET", "/v1/status").status == 200
        finally:
            for peer in silent:
                peer.close()


def test_file_that_takes_long_to_read_keeps_nobody_waiting(directory: Path) -> None:
    """It is decoded beside the one thread that serves HTTP."""
    n = 8_000_000
    head = (
        "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {n}\nHEIGHT 1\nPOINTS {n}\nDATA ascii\n"
    )
    body = head.encode() + b"1 2 3\n" * n
    with running(directory, {"http": {"threads": 1}}) as daemon:
        url = "/v1/voxelize?format=pcd&size=0.5"
        octets = {"Content-Type": "application/octet-stream"}
        headers = {**octets, "X-Voxeld-Timeout-Ms": str(int(30000 * SLOW))}
        replies: list[Any] = []
        thread = threading.Thread(
            target=lambda: replies.append(
                http_call(daemon, "POST", url, body, headers, timeout_s=60)
            )
        )
        thread.start()
        # Its bytes are there: what comes now is answered before it is.
        wait_until(lambda: inflight_bytes(daemon) >= len(body), 20, "it has come")
        n_answered = 0
        while thread.is_alive():
            assert http_call(daemon, "GET", "/v1/status").status == 200
            n_answered += 1
        assert replies.pop().status == 200
        assert n_answered > 3
        assert http_call(daemon, "POST", url, head.encode(), octets).status == 400
