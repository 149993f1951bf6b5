# SPDX-License-Identifier: Apache-2.0
"""Resident memory stays flat over many requests."""

from __future__ import annotations

import http.client

import pytest
from harness import (
    MIB,
    OK,
    SANITIZE,
    SLOW,
    Daemon,
    Rpc,
    cloud_of,
    idle_bytes,
    inflight_bytes,
    random_points,
    voxelize_request,
    wait_until,
)

N_REQUESTS = 10000 if not SANITIZE else 1500


def run(daemon: Daemon, n: int) -> None:
    """Sends n small requests, half over each transport, one in ten of which is refused."""
    good = voxelize_request(cloud_of(random_points(300)), size=0.5)
    bad = voxelize_request(cloud_of(random_points(300)), size=-1)
    body = good.SerializeToString()
    with Rpc(daemon.ipc) as client:
        connection = http.client.HTTPConnection(
            "127.0.0.1", daemon.http_port, timeout=30 * SLOW
        )
        for i in range(n // 2):
            response = client.call("voxelize", bad if i % 10 == 0 else good)
            assert (response.header.code == OK) == (i % 10 != 0)
            connection.request(
                "POST", "/v1/voxelize", body, {"Content-Type": "application/x-protobuf"}
            )
            reply = connection.getresponse()
            reply.read()
            assert reply.status == 200
        connection.close()


def test_resident_memory_is_flat_over_many_requests(daemon: Daemon) -> None:
    reserved = idle_bytes(daemon)
    run(daemon, N_REQUESTS // 5)
    before = daemon.resident_bytes()
    run(daemon, N_REQUESTS)
    growth = daemon.resident_bytes() - before
    wait_until(lambda: inflight_bytes(daemon) == reserved, 10, "all bytes given back")
    if SANITIZE:
        pytest.skip("a sanitizer keeps freed memory; the requests were all answered")
    assert growth < 4 * MIB, f"grew by {growth} bytes"


def test_large_requests_leave_nothing_behind(daemon: Daemon) -> None:
    request = voxelize_request(cloud_of(random_points(250000)), size=0.2)
    with Rpc(daemon.ipc) as client:
        for _ in range(5):
            assert client.call("voxelize", request).header.code == OK
        before = daemon.resident_bytes()
        for _ in range(20 if not SANITIZE else 5):
            assert client.call("voxelize", request).header.code == OK
        assert SANITIZE or daemon.resident_bytes() - before < 16 * MIB
