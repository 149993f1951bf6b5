# SPDX-License-Identifier: Apache-2.0
"""Messages meant to harm: the answer is an error, memory stays bounded, and the next
client is served."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator

import pytest
from harness import (
    MIB,
    OK,
    SANITIZE,
    SLOW,
    Daemon,
    Rpc,
    cloud_of,
    common_pb2,
    http_call,
    random_points,
    rpc_pb2,
    voxelize_request,
)

VOXELIZE = 20
GROWTH = 192 * MIB if not SANITIZE else 1024 * MIB


@pytest.fixture(autouse=True)
def survives(daemon: Daemon) -> Iterator[None]:
    before = daemon.resident_bytes()
    yield
    with Rpc(daemon.ipc) as client:
        reply = client.call("voxelize", voxelize_request(cloud_of(random_points(100))))
        assert reply.header.code == OK
    assert daemon.process.poll() is None
    assert daemon.resident_bytes() < before + GROWTH


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, payload: bytes, length: int | None = None) -> bytes:
    n_bytes = len(payload) if length is None else length
    return varint(number << 3 | 2) + varint(n_bytes) + payload


def envelope(body: bytes) -> bytes:
    head = rpc_pb2.Request(header=rpc_pb2.RequestHeader(request_id="hostile"))
    return head.SerializeToString() + field(VOXELIZE, body)


def refused(daemon: Daemon, body: bytes) -> common_pb2.Code:
    """Sends over both transports; returns the code, which is an error."""
    with Rpc(daemon.tcp) as client:
        response = client.call_raw(envelope(body))
    assert response.header.request_id == "hostile"
    assert response.header.code != OK
    reply = http_call(
        daemon, "POST", "/v1/voxelize", body, {"Content-Type": "application/x-protobuf"}
    )
    assert reply.status >= 400
    assert reply.json()["code"] == common_pb2.Code.Name(response.header.code)
    return response.header.code


def test_deep_nesting_is_refused(daemon: Daemon) -> None:
    body = b""
    for _ in range(20000):
        body = field(1, body)
    refused(daemon, body)
    sweeps = b""
    for _ in range(5000):
        sweeps = field(7, sweeps)
    refused(daemon, field(1, sweeps))


def test_eight_megabytes_of_empty_submessages_are_refused(daemon: Daemon) -> None:
    assert refused(daemon, field(1, b"") * (4 * MIB)) in (
        common_pb2.RESOURCE_EXHAUSTED,
        common_pb2.INVALID_ARGUMENT,
    )
    fields = field(1, field(1, b"") * (4 * MIB))
    assert refused(daemon, fields) in (
        common_pb2.RESOURCE_EXHAUSTED,
        common_pb2.INVALID_ARGUMENT,
    )


@pytest.mark.parametrize(
    "body",
    [
        field(1, b"abc", length=1000),
        field(1, b"", length=2**63),
        field(1, b"", length=2**31 - 1),
        field(1, field(3, b"1234", length=2**32)),
        b"\x0b" * 100,
        b"\x08",
        b"\xff" * 64,
        field(1, b"\xff" * 11),
        field(8, b"\xff" * 4096),
        field(7, b"\xff\xfe not utf-8"),
    ],
)
def test_malformed_bytes_are_an_invalid_argument(daemon: Daemon, body: bytes) -> None:
    assert refused(daemon, body) == common_pb2.INVALID_ARGUMENT


def test_sizes_that_overflow_are_an_invalid_argument(daemon: Daemon) -> None:
    base = voxelize_request(cloud_of(random_points(16)))
    for change in (
        lambda r: setattr(r.clouds[0], "point_step", 0xFFFFFFFF),
        lambda r: setattr(r.clouds[0].fields[0], "offset", 0xFFFFFFFF),
        lambda r: setattr(r.clouds[0].fields[1], "count", 0xFFFFFFFF),
        lambda r: (setattr(r, "max_points", 2**32 - 1), setattr(r, "max_voxels", 2**32 - 1)),
    ):
        request = type(base)()
        request.CopyFrom(base)
        change(request)
        assert refused(daemon, request.SerializeToString()) == common_pb2.INVALID_ARGUMENT


def test_more_output_than_fits_is_refused_not_attempted(daemon: Daemon) -> None:
    request = voxelize_request(cloud_of(random_points(16)))
    request.max_points = 65536
    request.max_voxels = 2**32 - 1
    request.outputs.append(4)  # OUTPUT_POINTS
    with Rpc(daemon.tcp) as client:
        reply = client.call("voxelize", request)
    assert reply.header.code in (
        OK,
        common_pb2.RESOURCE_EXHAUSTED,
        common_pb2.INVALID_ARGUMENT,
    )


def test_hostile_json_is_refused(daemon: Daemon) -> None:
    for text in (
        "[" * 100000,
        '{"a":' * 50000,
        "{}" * 400000,
        '{"clouds":[' + ",".join(["{}"] * 300000) + "]}",
        '{"clouds":[{"data":"' + "A" * 900000 + '"}]}',
        '{"size":{"x":1e999,"y":1,"z":1}}',
        '{"maxPoints":99999999999999999999}',
        '"\\u0000"',
        "\xff\xfe",
    ):
        reply = http_call(
            daemon, "POST", "/v1/voxelize", text.encode("latin-1"),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        assert reply.status in (400, 429), text[:40]
        assert set(reply.json()) == {"code", "message", "field", "request_id"}


@pytest.mark.parametrize("name", ["pcd", "ply", "npy", "npz", "las", "kitti", "nuscenes", "exe"])
def test_hostile_files_are_refused(daemon: Daemon, name: str) -> None:
    generator = random.Random(5)
    bodies = [
        b"",
        b"garbage",
        generator.randbytes(10001),
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
        b"(9223372036854775807, 4), }" + b" " * 40 + b"\n",
        (b"VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        b"WIDTH 4294967295\nHEIGHT 4294967295\nPOINTS 18446744065119617025\nDATA binary\n"),
        b"LASF".ljust(24, b"\0") + b"\1\2" + b"\xff" * 1000,
        (b"ply\nformat binary_little_endian 1.0\nelement vertex 99999999999\n"
        b"property float x\nproperty float y\nproperty float z\nend_header\n"),
    ]
    for body in bodies:
        reply = http_call(
            daemon, "POST", f"/v1/voxelize?format={name}&size=0.1", body,
            {"Content-Type": "application/octet-stream"},
        )  # fmt: skip
        # bare records have no header that could be wrong: any whole number of them is a cloud
        record = {"kitti": 16, "nuscenes": 20}.get(name)
        if record and len(body) % record == 0:
            assert reply.status == 200
        else:
            assert reply.status in (400, 429), (name, body[:20])


def test_hostile_http_is_survived(daemon: Daemon) -> None:
    head = f"Host: localhost:{daemon.http_port}\r\n"
    for text in (
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /" + "a" * 300000 + " HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n" + "X: " + "y" * 300000 + "\r\n\r\n",
        "GET / HTTP/1.1\r\n" + "X: y\r\n" * 50000 + "\r\n",
        f"POST /v1/status HTTP/1.1\r\n{head}Content-Length: -1\r\n\r\n",
        f"POST /v1/status HTTP/1.1\r\n{head}Content-Length: 99999999999999999999\r\n\r\n",
        f"GET /%00%0d%0a../../etc/passwd HTTP/1.1\r\n{head}\r\n",
        f"GET /?{'a=b&' * 10000} HTTP/1.1\r\n{head}\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ):
        with socket.create_connection(("127.0.0.1", daemon.http_port), 30 * SLOW) as s:
            s.settimeout(0.5)
            try:
                s.sendall(text.encode("latin-1"))
                s.recv(65536)
            except OSError:
                pass
    assert http_call(daemon, "GET", "/v1/health/ready").status == 200


def test_random_mutations_of_a_request_are_survived(daemon: Daemon) -> None:
    generator = random.Random(9)
    good = voxelize_request(cloud_of(random_points(64)), size=0.5).SerializeToString()
    with Rpc(daemon.ipc) as client:
        for _ in range(400):
            body = bytearray(good)
            for _ in range(generator.randrange(1, 6)):
                body[generator.randrange(len(body))] = generator.randrange(256)
            client.call_raw(envelope(bytes(body[: generator.randrange(len(body) + 1)])))


def test_garbage_below_the_envelope_cuts_the_connection_only(daemon: Daemon) -> None:
    host, port = daemon.tcp.removeprefix("tcp://").rsplit(":", 1)
    hello = bytes([0, 0x53, 0x50, 0, 0, 0x30, 0, 0])
    for data in (
        b"GET / HTTP/1.1\r\n\r\n",
        hello + (2**63).to_bytes(8, "big"),
        hello + (2**40).to_bytes(8, "big"),
        hello + (3).to_bytes(8, "big") + b"abc",
        hello + (4).to_bytes(8, "big") + b"\0\0\0\0",
    ):
        with socket.create_connection((host, int(port)), 30 * SLOW) as s:
            s.sendall(data)
            s.settimeout(0.3)
            try:
                while s.recv(4096):
                    pass
            except OSError:
                pass


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
@pytest.mark.parametrize(
    "how", ["close", "half hello", "hello", "read", "no reading", "no writing", "reset"]
)
def test_leaving_during_the_greeting_keeps_the_listener(
    daemon: Daemon, transport: str, how: str
) -> None:
    """A listener on nng 1.5.2's own sockets ends for good at the first of these."""
    hello = bytes([0, 0x53, 0x50, 0, 0, 0x30, 0, 0])
    for _ in range(10):
        if transport == "ipc":
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(daemon.ipc.removeprefix("ipc://"))
        else:
            host, port = daemon.tcp.removeprefix("tcp://").rsplit(":", 1)
            peer = socket.create_connection((host, int(port)), 30 * SLOW)
        if how == "half hello":
            peer.sendall(hello[:4])
        elif how == "hello":
            peer.sendall(hello)
        elif how == "read":
            peer.recv(8)
        elif how == "no reading":
            peer.shutdown(socket.SHUT_RD)
        elif how == "no writing":
            peer.shutdown(socket.SHUT_WR)
        elif how == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
    with Rpc(daemon.ipc if transport == "ipc" else daemon.tcp) as client:
        assert client.call("server_info").header.code == OK
