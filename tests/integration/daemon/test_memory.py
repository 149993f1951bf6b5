# SPDX-License-Identifier: Apache-2.0
"""Resident memory stays flat over many requests, and what was dropped goes back to the system."""

from __future__ import annotations

import http.client
import signal
from pathlib import Path

import numpy as np
import pytest
from harness import (
    MIB,
    OK,
    SANITIZE,
    SLOW,
    Daemon,
    Rpc,
    cloud_of,
    hashmap_pb2,
    idle_bytes,
    inflight_bytes,
    random_points,
    running,
    tensor_of,
    voxelize_request,
    wait_until,
)
from maps import COUNT, Maps

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


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer keeps freed memory")
def test_memory_of_what_was_dropped_goes_back_to_the_system(directory: Path) -> None:
    with running(directory) as daemon, Maps(daemon) as maps:
        maps.call("map_create", name="large", spec=hashmap_pb2.MapSpec(values=[COUNT]))
        generator = np.random.default_rng(1)
        for _ in range(4):
            keys = generator.integers(-(2**20), 2**20, (500000, 3)).astype(np.int32)
            maps.call("map_insert", name="large", keys=tensor_of(keys))
        full = daemon.resident_bytes()
        maps.call("map_drop", name="large")

        def has_shrunk() -> bool:  # the daemon looks every few seconds, and at each signal
            daemon.signal(signal.SIGHUP)
            return daemon.resident_bytes() < min(full / 3, 100 * MIB)

        assert full > 200 * MIB
        wait_until(has_shrunk, 60, "the memory is given back")
