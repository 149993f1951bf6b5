# SPDX-License-Identifier: Apache-2.0
"""Resident memory stays flat over many requests, what was dropped goes back to the system, and
status says who holds how much."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import voxeld
from harness import (
    BIN,
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
    running,
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


def fill_map(client: voxeld.Client) -> None:
    large = client.map_create("large", {"count": np.uint64})
    generator = np.random.default_rng(1)
    for _ in range(4):
        keys = generator.integers(-(2**20), 2**20, (500000, 3)).astype(np.int32)
        large.insert(keys)


def fill_scene(client: voxeld.Client) -> None:
    """Noise: nothing of it is shared, so a million voxels take much."""
    large = client.scene_create("large", 0.01, depth=12, material_bits=8)
    generator = np.random.default_rng(2)
    for _ in range(6):
        points = generator.uniform(-20, 20, (400000, 3)).astype(np.float32)
        large.integrate(points, carve=False)


def fill_volume(client: voxeld.Client) -> None:
    """A slanted wall of 20 m in voxels of 1 cm."""
    large = client.volume_create("large", 0.01)
    rows, columns = np.mgrid[0:480, 0:640]
    depth = (2 + 0.002 * rows + 0.001 * columns).astype(np.float32)
    camera = voxeld.Camera(0, 0, 300, 300, 320, 240)
    for i in range(6):
        pose = np.eye(4)
        pose[0, 3] = 3.0 * i
        large.integrate(depth, camera, pose)


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer keeps freed memory")
@pytest.mark.parametrize("fill", [fill_map, fill_scene, fill_volume])
def test_memory_of_what_was_dropped_goes_back_to_the_system(
    directory: Path, fill: Callable[[voxeld.Client], None]
) -> None:
    with running(directory) as daemon, voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client:
        begin = daemon.resident_bytes()
        fill(client)
        full = daemon.resident_bytes()
        noun = fill.__name__.removeprefix("fill_")
        getattr(client, noun)("large").drop()

        def has_shrunk() -> bool:  # the daemon looks every few seconds, and at each signal
            daemon.signal(signal.SIGHUP)
            return daemon.resident_bytes() < begin + max((full - begin) / 5, 40 * MIB)

        assert full - begin > 150 * MIB, (full, begin)
        wait_until(has_shrunk, 60, "the memory is given back")


def owners_of(client: voxeld.Client) -> dict[str, voxeld.MemoryOwner]:
    return {owner.name: owner for owner in client.status().memory}


def test_status_says_who_holds_memory(daemon: Daemon) -> None:
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client:
        before = owners_of(client)
        assert list(before) == [
            "maps", "scenes", "distance fields", "volumes", "pose graphs", "odometries",
            "networks", "alignments", "remembered outcomes", "others",
        ]  # fmt: skip
        points = random_points(20000)
        seen = client.map_create("counted", {"count": np.uint64})
        yard = client.scene_create("yard", 0.1)
        yard.integrate(points, carve=False)
        yard.distance([[0, 0, 0]])
        kitchen = client.volume_create("kitchen", 0.05)
        kitchen.integrate(np.full((48, 64), 2, np.float32), voxeld.Camera(0, 0, 50, 50, 32, 24))
        car = client.odometry_create("car")
        car.register(points)
        graph = client.posegraph_create("loop")
        graph.add(nodes=[voxeld.PosegraphNode(0)])
        made = owners_of(client)
        for name in ("maps", "scenes", "distance fields", "volumes", "pose graphs", "odometries",
                     "remembered outcomes"):  # fmt: skip
            assert made[name].n > before[name].n, name
            assert made[name].n_bytes > before[name].n_bytes, name
        status = client.status()
        on_device = sum(owner.n_bytes for owner in status.memory if owner.on_device)
        assert on_device == status.device_bytes
        assert made["volumes"].limit_bytes > 0
        text = subprocess.run(
            [BIN / "voxelctl", "status"], env={**os.environ, "VOXELD_URL": daemon.ipc},
            capture_output=True, text=True, timeout=60 * SLOW, check=True,
        ).stdout  # fmt: skip
        for name in made:
            assert any(line.startswith(name + " ") for line in text.splitlines()), (name, text)
        connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=30 * SLOW)
        connection.request("GET", "/v1/status")
        listed = json.loads(connection.getresponse().read())["memory"]
        connection.close()
        assert [owner["name"] for owner in listed] == list(made)
        for thing in (seen, yard, kitchen, car, graph):
            thing.drop()
        after = owners_of(client)
        assert all(after[n].n == before[n].n for n in ("maps", "scenes", "volumes", "odometries"))
