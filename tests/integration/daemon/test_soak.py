# SPDX-License-Identifier: Apache-2.0
"""A mixed load of all methods beside clients that are killed in the middle of a request: every
answer is right, and at the end the daemon holds no more memory, descriptors, threads or bytes than
at the beginning. VOXELD_SOAK_SECONDS=600 gives the run in tests/bench/results/daemon.md."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from every_method import REFUSALS, World, methods, write_networks
from google.protobuf import json_format
from harness import (
    MIB,
    OK,
    SANITIZE,
    SLOW,
    Daemon,
    RawReq,
    Rpc,
    admin_request,
    array_of,
    cloud_of,
    common_pb2,
    http_call,
    random_points,
    rpc_pb2,
    running,
    voxelize_pb2,
    voxelize_request,
    wait_until,
)
from oracle import coordinates

SECONDS = float(os.environ.get("VOXELD_SOAK_SECONDS", "12"))
# Each killed client costs a process; at this pace the load leaves half of a small machine free.
VICTIM_PAUSE_S = 0.1
PACE_S = 0.02
# Growth of what malloc has handed out, without the engine's kept blocks, that counts as none:
# SQLite's cache of pages is filled by and by.
FLAT_BYTES = 4 * MIB
# What may be resident beyond a new daemon's when all is over: malloc keeps 64 MiB before it gives
# any back. Meanwhile it depends on which requests meet.
RESIDENT_BYTES = 128 * MIB
# Of the requests that are changed at random; some would run for as long as they may.
RANDOM_TIMEOUT_MS = int(500 * SLOW)
WALK, RANDOM = "-walked", "-random"  # endings of names: who changes what is not in another's way
DOOMED = Path(__file__).parents[1] / "support" / "doomed_client.py"


def digest(response: voxelize_pb2.VoxelizeResponse) -> str:
    """Hashes the parts of a reply that are the same every time. Unknown fields are left out: they
    are the padding that aligns arrays where they arrive, and depend on the address of the daemon's
    buffer."""
    kept = voxelize_pb2.VoxelizeResponse()
    kept.CopyFrom(response)
    kept.ClearField("engine_ms")
    kept.DiscardUnknownFields()
    return hashlib.sha256(kept.SerializeToString(deterministic=True)).hexdigest()


def check_against_oracle(points: np.ndarray, size: float, response: Any) -> None:
    where, valid = coordinates(points, size, "minkowski")
    expected = np.unique(where[valid], axis=0)
    actual = np.unique(array_of(response.coords)[:, 1:], axis=0)
    assert np.array_equal(actual, expected)


class Load:
    """Threads that ask in turn, each by its own transport, until they are stopped."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.stopping = threading.Event()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.threads: list[threading.Thread] = []

    def repeat(self, name: str, ask: Callable[[], None]) -> None:
        while not self.stopping.wait(PACE_S):
            try:
                ask()
            except Exception as problem:
                self.failures.append(f"{name}: {problem!r}")
                return
            self.counts[name] += 1

    def start(self, name: str, ask: Callable[[], None]) -> None:
        thread = threading.Thread(target=self.repeat, args=(name, ask))
        self.threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def asks_rpc(client: Rpc, n_points: int, seed: int, **members: Any) -> Callable[[], None]:
    points = random_points(n_points, seed)
    request = voxelize_request(cloud_of(points), size=0.5, **members)
    first = client.call("voxelize", request)
    assert first.header.code == OK, first.header
    check_against_oracle(points, 0.5, first.voxelize)
    right = digest(first.voxelize)

    def ask() -> None:
        response = client.call("voxelize", request)
        assert response.header.code == OK, response.header
        assert digest(response.voxelize) == right

    return ask


def asks_http(daemon: Daemon, path: str, body: bytes, content_type: str) -> Callable[[], None]:
    headers = {"Content-Type": content_type, "Accept": "application/x-protobuf"}

    def call() -> str:
        reply = http_call(daemon, "POST", path, body, headers)
        assert reply.status == 200, reply.body[:300]
        return digest(voxelize_pb2.VoxelizeResponse.FromString(reply.body))

    right = call()

    def ask() -> None:
        assert call() == right

    return ask


def pcd_of(points: np.ndarray) -> bytes:
    head = (
        "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {len(points)}\nHEIGHT 1\nPOINTS {len(points)}\nDATA binary\n"
    )
    return head.encode() + points.astype("<f4").tobytes()


def asks_admin(daemon: Daemon, client: Rpc) -> Callable[[], None]:
    digests = set()

    def ask() -> None:
        assert client.call("status").header.code == OK
        assert client.call("server_info").header.code == OK
        response = client.call("self_test", admin_request(10, 3000))
        assert response.header.code == OK, response.header
        digests.add(response.self_test.digest)
        assert len(digests) == 1
        for path in ("/metrics", "/v1/openapi.json", "/v1/health/ready"):
            assert http_call(daemon, "GET", path).status == 200

    return ask


class Walk:
    """All methods' examples one after the other, again and again: each succeeds."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        self.world = world
        self.counts = counts
        self.steps = world.walk()
        self.n_whole = 0

    def ask(self) -> None:
        step = next(self.steps, None)
        if step is None:
            self.steps = self.world.walk()
            self.n_whole += 1
            return
        method, response = step
        assert response.header.code == OK, (method, response.header)
        self.counts[f"walk {method}"] += 1


def asks_at_random(world: World, counts: Counter[str]) -> Callable[[], None]:
    generator = random.Random(7)

    def ask() -> None:
        method, message = world.random_request(generator)
        header = world.send(method, message, RANDOM_TIMEOUT_MS).header
        assert header.code in {OK, *REFUSALS}, (method, header, str(message)[:500])
        counts[f"random {common_pb2.Code.Name(header.code)}"] += 1

    return ask


def write_victims(daemon: Daemon, directory: Path) -> list[list[str]]:
    """The arguments of each kind of doomed client, except HOW."""
    request = rpc_pb2.Request()
    request.voxelize.CopyFrom(voxelize_request(cloud_of(random_points(60000)), size=0.2))
    envelope = b"\x80\0\0\1" + request.SerializeToString()
    framed = len(envelope).to_bytes(8, "big") + envelope
    body = request.voxelize.SerializeToString()
    head = (
        f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        f"Content-Type: application/x-protobuf\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    files = {
        "ipc": RawReq.HELLO + b"\x01" + framed,
        "tcp": RawReq.HELLO + framed,
        "http": head.encode() + body,
    }
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return [
        ["unix", daemon.ipc.removeprefix("ipc://"), str(directory / "ipc")],
        ["inet", daemon.tcp.rsplit(":", 1)[1], str(directory / "tcp")],
        ["inet", str(daemon.http_port), str(directory / "http")],
    ]


def kill_clients(load: Load, victims: list[list[str]]) -> None:
    generator = random.Random(3)
    while not load.stopping.wait(VICTIM_PAUSE_S):
        family, address, path = generator.choice(victims)
        how = generator.choice(["waiting", "sending"])
        victim = subprocess.Popen(
            [sys.executable, "-S", "-E", DOOMED, family, address, how, path],
            stdout=subprocess.PIPE,
        )
        assert victim.stdout is not None
        said = victim.stdout.readline()
        time.sleep(generator.uniform(0, 0.05))
        victim.kill()
        victim.wait()
        victim.stdout.close()
        if said != b"sent\n":
            load.failures.append(f"a client could not {how} over {path}")
            return
        load.counts[f"killed while {how}"] += 1


def footprint(daemon: Daemon) -> tuple[int, int]:
    """Counts descriptors and threads."""
    process = Path(f"/proc/{daemon.process.pid}")
    return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


def idle_status(daemon: Daemon) -> dict[str, int]:
    """Reads what is held for requests; without requests all of it is 0, or the asking one's."""
    status = http_call(daemon, "GET", "/v1/status").json()
    names = ("queueDepth", "running", "inflightBytes", "deviceBytes", "hostBytes")
    return {name: int(status.get(name, 0)) for name in names}


def heap_and_kept(daemon: Daemon) -> tuple[int, int]:
    """Reads what malloc has handed out, without the blocks that the engine keeps for reuse, and
    those."""
    text = http_call(daemon, "GET", "/metrics").body.decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    names = [f'voxeld_{space}_memory_bytes{{use="kept"}}' for space in ("device", "host")]
    kept = sum(int(values[name]) for name in names)
    return int(values['voxeld_heap_bytes{use="used"}']) - kept, kept


def run_load(
    daemon: Daemon, directory: Path, seconds: float, is_whole: bool = True
) -> tuple[Load, list[int]]:
    """Runs for so long, and until each method was called where `is_whole`."""
    load = Load(daemon)
    points = random_points(30000, 5)
    few = voxelize_request(cloud_of(random_points(200, 6)), size=0.5)
    protobuf = voxelize_request(cloud_of(points), size=0.3, reduce=[1, 4], outputs=[1, 3])
    sampled = []
    with (
        Rpc(daemon.ipc) as ipc, Rpc(daemon.tcp) as tcp, Rpc(daemon.ipc) as admin,
        World(daemon, WALK) as walked, World(daemon, RANDOM, daemon.tcp) as changed,
    ):  # fmt: skip
        walk = Walk(walked, load.counts)
        asks = {
            "ipc": asks_rpc(ipc, 20000, 1),
            "tcp": asks_rpc(tcp, 60000, 2, reduce=[1, 2], outputs=[1, 2, 3, 5]),
            "http json": asks_http(
                daemon, "/v1/voxelize", json_format.MessageToJson(few).encode(),
                "application/json",
            ),
            "http file": asks_http(
                daemon, "/v1/voxelize?format=pcd&size=0.5", pcd_of(points),
                "application/octet-stream",
            ),
            "http protobuf": asks_http(
                daemon, "/v1/voxelize", protobuf.SerializeToString(), "application/x-protobuf"
            ),
            "admin": asks_admin(daemon, admin),
            "every method": walk.ask,
            "at random": asks_at_random(changed, load.counts),
        }  # fmt: skip
        for name, ask in asks.items():
            load.start(name, ask)
        victims = write_victims(daemon, directory)
        killer = threading.Thread(target=kill_clients, args=(load, victims))
        killer.start()
        end = time.monotonic() + seconds
        while (
            time.monotonic() < end or (is_whole and walk.n_whole == 0)
        ) and not load.failures:
            sampled.append(daemon.resident_bytes())
            time.sleep(min(1.0, seconds / 40))
        load.stop()
        killer.join()
        walked.clear()
        changed.clear()
    return load, sampled


def test_soak_leaves_memory_flat_and_nothing_behind(directory: Path) -> None:
    write_networks(directory / "networks", [WALK, RANDOM])
    with running(directory, {"networks_dir": str(directory / "networks")}) as daemon:
        begin = daemon.resident_bytes()
        # Threads and pools exist by then, and SQLite's pages. A sanitizer's memory says nothing,
        # and all methods take minutes there.
        run_load(daemon, directory, SECONDS / 20, is_whole=not SANITIZE)
        fds, threads = wait_until(
            lambda: footprint(daemon) if is_settled(daemon) else None, 20, "idle"
        )
        heap, _ = heap_and_kept(daemon)
        load, sampled = run_load(daemon, directory, SECONDS)
        wait_until(lambda: is_settled(daemon), 20, f"idle: {idle_status(daemon)}")
        wait_until(
            lambda: footprint(daemon)[0] <= fds, 20, f"{fds} descriptors: {footprint(daemon)}"
        )
        grown = heap_and_kept(daemon)[0] - heap
        wait_until(lambda: heap_and_kept(daemon)[1] == 0, 20, "the engine keeps nothing")
        held = daemon.resident_bytes() - begin
        counts = {k: n for k, n in sorted(load.counts.items()) if not k.startswith("walk ")}
        print(
            f"\n{SECONDS:.0f} s: {counts}\nresident {begin / MIB:.1f} MiB at first, at most "
            f"{max(sampled) / MIB:.1f} MiB, then {held / MIB:+.1f} MiB; malloc's "
            f"{grown / 1024:+.0f} KiB; descriptors {fds} to {footprint(daemon)[0]}, threads "
            f"{threads} to {footprint(daemon)[1]}; {idle_status(daemon)}"
        )
        assert not load.failures, load.failures
        assert all(load.counts[name] > 0 for name in ("ipc", "tcp", "http json", "http file"))
        missing = [m for m in methods() if load.counts[f"walk {m}"] == 0]
        assert not missing, f"the soak does not call {missing}: every_method.py"
        assert load.counts["random OK"] > 0
        assert load.counts["killed while waiting"] > 0
        assert load.counts["killed while sending"] > 0
        assert footprint(daemon)[1] <= threads
        assert SANITIZE or (grown < FLAT_BYTES and held < RESIDENT_BYTES)


def is_settled(daemon: Daemon) -> bool:
    status = idle_status(daemon)
    return not any(status[name] for name in status)


def leave(daemon: Daemon, requests: bytes, generator: random.Random) -> None:
    """Sends some of the requests, perhaps reads a little, and leaves."""
    url = generator.choice([daemon.ipc, daemon.tcp])
    with RawReq(url) as peer:
        data = b"".join(
            peer.mark + len(r).to_bytes(8, "big") + r for r in [requests] * 4
        )  # fmt: skip
        if generator.random() < 0.5:
            data = data[: generator.randrange(len(data))]
        peer.socket.sendall(data)
        time.sleep(generator.choice([0, generator.uniform(0, 0.03)]))


def test_clients_that_leave_in_numbers_leave_no_descriptors(directory: Path) -> None:
    """nng's thread that clears connections away hung for ever at one of the first hundreds."""
    request = rpc_pb2.Request()
    request.voxelize.CopyFrom(voxelize_request(cloud_of(random_points(5000)), size=0.2))
    envelope = b"\x80\0\0\1" + request.SerializeToString()
    with running(directory) as daemon:
        with Rpc(daemon.ipc) as client:
            assert client.call_raw(envelope[4:]).header.code == OK
        fds, _ = footprint(daemon)
        stop = time.monotonic() + 5
        n_left = [0] * 6

        def run(index: int) -> None:
            generator = random.Random(index)
            # A busy machine needs longer for so many.
            while time.monotonic() < stop or (
                sum(n_left) <= 50 and time.monotonic() < stop + 120
            ):
                with contextlib.suppress(OSError, AssertionError):  # too many at once
                    leave(daemon, envelope, generator)
                n_left[index] += 1

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(n_left))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(n_left) > 50
        wait_until(
            lambda: footprint(daemon)[0] <= fds, 30,
            f"{fds} descriptors after {sum(n_left)} clients, not {footprint(daemon)[0]}",
        )  # fmt: skip
        wait_until(lambda: is_settled(daemon), 20, f"idle: {idle_status(daemon)}")
        with Rpc(daemon.tcp) as client:
            assert client.call_raw(envelope[4:]).header.code == OK
