# SPDX-License-Identifier: Apache-2.0
"""Shared memory: bodies of requests and replies in a client's memfd. Answers are those of the
socket; what is no proper region is refused; whoever writes into it meanwhile, leaves or is killed
costs nobody anything."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    common_pb2,
    http_call,
    random_points,
    rpc_pb2,
    running,
    voxelize_pb2,
    voxelize_request,
    wait_until,
)

HELLO = struct.Struct("8sQ256s")
ANSWER = struct.Struct("II16s240s")
MAGIC = b"VXDSHM1\0"
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def memfd(n_bytes: int = MIB, seals: int = SEALS, allocate: bool = True, flags: int = 0) -> int:
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | flags)
    os.ftruncate(fd, n_bytes)
    if allocate:
        os.posix_fallocate(fd, 0, n_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def connect(daemon: Daemon) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(20 * SLOW)
    peer.connect(daemon.ipc.removeprefix("ipc://") + ".shm")
    return peer


def introduce(
    peer: socket.socket, fds: list[int], n_bytes: int = MIB, magic: bytes = MAGIC, token: str = ""
) -> tuple[int, bytes, str]:
    socket.send_fds(peer, [HELLO.pack(magic, n_bytes, token.encode())], fds)
    code, _, region, message = ANSWER.unpack(peer.recv(ANSWER.size))
    return code, region, message.split(b"\0")[0].decode()


def shared_bytes(daemon: Daemon) -> int:
    text = http_call(daemon, "GET", "/metrics").body.decode()
    (line,) = [x for x in text.splitlines() if x.startswith("voxeld_shared_bytes ")]
    return int(line.split()[1])


class Region:
    """A registered region, and requests whose bodies lie in it."""

    def __init__(self, daemon: Daemon, n_bytes: int = 16 * MIB) -> None:
        self.peer = connect(daemon)
        self.fd = memfd(n_bytes)
        self.memory = mmap.mmap(self.fd, n_bytes)
        code, self.id, message = introduce(self.peer, [self.fd], n_bytes)
        assert code == 0, message

    def body(self, message: Any, offset: int = 0, **members: int) -> rpc_pb2.SharedBody:
        data = message.SerializeToString()
        self.memory[offset : offset + len(data)] = data
        fields = {"offset": offset, "n_bytes": len(data), **members}
        return rpc_pb2.SharedBody(region=self.id, **fields)

    def close(self) -> None:
        self.peer.close()
        os.close(self.fd)


@pytest.fixture
def region(daemon: Daemon) -> Iterator[Region]:
    made = Region(daemon)
    yield made
    made.close()


def ask(daemon: Daemon, shared: rpc_pb2.SharedBody, inline: Any = None) -> rpc_pb2.Response:
    with Rpc(daemon.ipc) as rpc:
        return rpc.call("voxelize", inline or voxelize_pb2.VoxelizeRequest(), shared=shared)


@pytest.mark.parametrize("offset", [0, 5, 4096 + 12])
def test_bodies_in_shared_memory_give_what_the_socket_gives(
    daemon: Daemon, region: Region, offset: int
) -> None:
    request = voxelize_request(cloud_of(random_points(40000)), size=0.5)
    with Rpc(daemon.ipc) as rpc:
        expected = rpc.call("voxelize", request)
    assert expected.header.shared_bytes == 0
    reply = ask(daemon, region.body(request, offset, reply_offset=4 * MIB, reply_bytes=8 * MIB))
    assert reply.header.code == OK and reply.header.shared_bytes > 65536
    assert not reply.voxelize.HasField("coords")
    data = region.memory[4 * MIB : 4 * MIB + reply.header.shared_bytes]
    voxels = voxelize_pb2.VoxelizeResponse.FromString(data)
    voxels.engine_ms = expected.voxelize.engine_ms
    voxels.DiscardUnknownFields()  # paddings
    expected.DiscardUnknownFields()
    assert voxels == expected.voxelize
    # Where the reply does not fit, or is small, it comes within the message.
    for room in (0, 65536):
        inline = ask(daemon, region.body(request, offset, reply_offset=MIB, reply_bytes=room))
        assert inline.header.code == OK and inline.header.shared_bytes == 0
        inline.voxelize.engine_ms = voxels.engine_ms
        inline.DiscardUnknownFields()
        assert inline.voxelize == voxels
    small = voxelize_request(cloud_of(random_points(10)), size=0.5)
    reply = ask(daemon, region.body(small, offset, reply_offset=MIB, reply_bytes=MIB))
    assert reply.header.shared_bytes == 0 and reply.voxelize.n_voxels > 0


def test_faulty_places_and_regions_are_refused(daemon: Daemon, region: Region) -> None:
    request = voxelize_request(cloud_of(random_points(100)), size=0.5)
    good = region.body(request)

    def fails(code: int, field: str, message: rpc_pb2.Response) -> None:
        assert (message.header.code, message.header.field) == (code, field), message.header

    for members in (
        {"offset": 16 * MIB}, {"offset": 2**64 - 1}, {"n_bytes": 16 * MIB + 1},
        {"offset": 16 * MIB - 10, "n_bytes": 11}, {"offset": 2, "n_bytes": 2**64 - 1},
    ):  # fmt: skip
        shared = region.body(request)
        for name, value in members.items():
            setattr(shared, name, value)
        fails(common_pb2.INVALID_ARGUMENT, "header.shared.offset", ask(daemon, shared))
    shared = region.body(request, reply_offset=16 * MIB, reply_bytes=1)
    fails(common_pb2.INVALID_ARGUMENT, "header.shared.reply_offset", ask(daemon, shared))
    fails(common_pb2.INVALID_ARGUMENT, "header.shared", ask(daemon, good, request))
    for wrong in (b"", region.id[:15], region.id + b"x", bytes(16)):
        shared = region.body(request)
        shared.region = wrong
        fails(common_pb2.FAILED_PRECONDITION, "header.shared.region", ask(daemon, shared))
    with Rpc(daemon.tcp) as rpc:
        reply = rpc.call("voxelize", voxelize_pb2.VoxelizeRequest(), shared=good)
        fails(common_pb2.INVALID_ARGUMENT, "header.shared", reply)
    assert ask(daemon, good).header.code == OK
    region.peer.close()
    wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "the region to go")
    fails(common_pb2.FAILED_PRECONDITION, "header.shared.region", ask(daemon, good))


def test_only_sealed_and_allocated_memory_is_taken(daemon: Daemon) -> None:
    made: list[int] = []

    def fd(*args: Any, **kwargs: Any) -> int:
        made.append(memfd(*args, **kwargs))
        return made[-1]

    with tempfile.TemporaryFile() as file:
        file.truncate(MIB)
        readable, writable = os.pipe()
        made += [readable, writable]
        cases: list[tuple[str, list[int], dict[str, Any]]] = [
            ("no hello", [], {}),
            ("no hello", [fd(), fd()], {}),
            ("no hello", [fd()], {"magic": b"VXDSHM9\0"}),
            ("no hello", [fd()], {"token": "x" * 256}),
            ("seals", [fd(seals=0)], {}),
            ("seals", [fd(seals=SEALS & ~fcntl.F_SEAL_GROW)], {}),
            ("seals", [fd(seals=SEALS & ~fcntl.F_SEAL_SHRINK)], {}),
            ("allocated", [fd(allocate=False)], {}),
            ("has 1048576 bytes", [fd()], {"n_bytes": 2 * MIB}),
            ("has 1048576 bytes", [fd()], {"n_bytes": MIB - 4096}),
            ("multiples", [fd()], {"n_bytes": 0}),
            ("multiples", [fd()], {"n_bytes": MIB - 1}),
            ("multiples", [fd()], {"n_bytes": 2**63}),
            ("no memfd", [file.fileno()], {}),
            ("no memfd", [readable], {}),
        ]
        for message, fds, members in cases:
            with connect(daemon) as peer:
                code, _, said = introduce(peer, fds, **members)
                assert code == common_pb2.INVALID_ARGUMENT and message in said, (message, said)
                assert peer.recv(1) == b""  # and the connection is over
    with connect(daemon) as peer:  # an unfinished hello
        peer.send(b"VXD")
        assert ANSWER.unpack(peer.recv(ANSWER.size))[0] == common_pb2.INVALID_ARGUMENT
    with connect(daemon) as peer:  # a second word ends it
        assert introduce(peer, [fd()])[0] == 0
        peer.send(b"more")
        assert peer.recv(1) == b""
    for number in made:
        os.close(number)
    wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "all regions to go")


def test_limit_token_and_socket_of_shared_memory(directory: Path) -> None:
    with running(directory, {"limits": {"shared_bytes": 4 * MIB}}) as daemon:
        with connect(daemon) as first, connect(daemon) as second:
            assert introduce(first, [memfd(3 * MIB)], 3 * MIB)[0] == 0
            assert shared_bytes(daemon) == 3 * MIB
            code, _, message = introduce(second, [memfd(2 * MIB)], 2 * MIB)
            assert code == common_pb2.RESOURCE_EXHAUSTED
            assert "limits.shared_bytes is 4194304" in message
        wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "the bytes to come back")
    assert not Path(daemon.ipc.removeprefix("ipc://") + ".shm").exists()
    with running(directory, {"limits": {"shared_bytes": 0}}) as daemon:
        with pytest.raises(FileNotFoundError):
            connect(daemon)
        # Clients go on without.
        with voxeld.connect(daemon.ipc, shared_bytes=MIB, timeout=30 * SLOW) as client:
            assert len(client.voxelize(random_points(20000), 1.0)) > 0


def test_clients_share_by_themselves_from_the_second_large_call(daemon: Daemon) -> None:
    wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "other regions to go")
    points = random_points(50000)
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        voxels = [client.voxelize(points, 0.5)]
        assert shared_bytes(daemon) == 0
        for _ in range(3):
            voxels.append(client.voxelize(points, 0.5))
            assert shared_bytes(daemon) == 8 * MIB
            np.testing.assert_array_equal(voxels[-1].coords, voxels[0].coords)
        large = random_points(400000)  # needs a larger region, which comes in the other's place
        for _ in range(2):
            client.voxelize(large, 0.5)
        assert shared_bytes(daemon) >= 16 * MIB
        np.testing.assert_array_equal(voxels[1].coords, voxels[0].coords)
    del voxels
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW, shared_bytes=0) as client:
        wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "the regions to go")
        for _ in range(3):
            client.voxelize(points, 0.5)
        assert shared_bytes(daemon) == 0


@pytest.mark.parametrize("transport", ["", "socket", "nng"])
def test_libvoxeld_gets_the_same_answers_either_way(daemon: Daemon, transport: str) -> None:
    n = max(int(60 / SLOW), 8)
    command = [BIN / "bench_load", "--url", daemon.ipc, "--points", "50000", "--check"]
    command += ["--timeout", str(30 * SLOW), "--count", str(n), "--warmup", "0", "--json"]
    load = subprocess.Popen(
        command,
        env=os.environ | {"VOXELD_TRANSPORT": transport},
        stdout=subprocess.PIPE,
    )
    seen = set()
    while load.poll() is None:
        seen.add(shared_bytes(daemon))
    assert load.stdout is not None
    (step,) = json.load(load.stdout)["steps"]
    calls = step["methods"][-1]
    assert load.returncode == 0 and calls["wrong"] == 0 and calls["ok"] == n
    assert seen <= ({0, 8 * MIB} if transport == "" else {0})
    assert transport != "" or 8 * MIB in seen
    wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "its region to go")


def test_bytes_that_change_meanwhile_harm_nobody(daemon: Daemon, region: Region) -> None:
    request = voxelize_request(cloud_of(random_points(20000)), size=0.5)
    shared = region.body(request, reply_offset=4 * MIB, reply_bytes=4 * MIB)
    random = np.random.default_rng(5)
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            for at in random.integers(0, shared.n_bytes, 200):
                region.memory[at] = int(random.integers(256))
            head = random.integers(0, 60, 3)
            region.memory[head[0]] = int(random.integers(256))
            region.memory[4 * MIB + int(head[1])] = int(random.integers(256))

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        codes = set()
        for i in range(60):
            if i % 3 == 0:
                region.body(request)
            reply = ask(daemon, shared)
            codes.add(reply.header.code)
            assert reply.header.shared_bytes <= 4 * MIB
    finally:
        stop.set()
        flipper.join()
    assert codes <= {
        OK, common_pb2.INVALID_ARGUMENT, common_pb2.RESOURCE_EXHAUSTED, common_pb2.OUT_OF_RANGE
    }, codes  # fmt: skip
    assert ask(daemon, region.body(request)).header.code == OK


def heap_bytes(daemon: Daemon) -> int:
    text = http_call(daemon, "GET", "/metrics").body.decode()
    (line,) = [x for x in text.splitlines() if x.startswith('voxeld_heap_bytes{use="used"}')]
    return int(line.split()[1])


def test_ten_thousand_regions_leave_nothing(daemon: Daemon) -> None:
    def n_mappings() -> int:
        return len(Path(f"/proc/{daemon.process.pid}/maps").read_text().splitlines())

    def n_fds() -> int:
        return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))

    def attach(n: int) -> None:
        for _ in range(n):
            with connect(daemon) as peer:
                assert introduce(peer, [fd], 64 * 1024)[0] == 0
        wait_until(lambda: shared_bytes(daemon) == 0, 30 * SLOW, "the regions to go")

    fd = memfd(64 * 1024)
    attach(20)
    before = heap_bytes(daemon), n_mappings(), n_fds()
    attach(int(10000 / SLOW))
    os.close(fd)
    wait_until(lambda: n_fds() <= before[2] + 4, 10 * SLOW, "the descriptors to go")
    assert SANITIZE or heap_bytes(daemon) < before[0] + MIB // 2  # 52 bytes a region
    assert n_mappings() <= before[1] + 16  # of heaps, and of threads that began


def test_killed_clients_leave_nothing(daemon: Daemon) -> None:
    n_fds = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    for _ in range(3):
        client = subprocess.Popen(
            [
                BIN / "bench_load", "--url", daemon.ipc, "--shared", "16", "--concurrency", "3",
                "--points", "50000", "--timeout", str(30 * SLOW),
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=Daemon.environment(),
        )  # fmt: skip
        wait_until(lambda: shared_bytes(daemon) >= 48 * MIB, 30 * SLOW, "the clients to share")
        client.send_signal(signal.SIGKILL)
        client.wait()
    wait_until(lambda: shared_bytes(daemon) == 0, 30 * SLOW, "the regions to go")
    daemon.settle()
    wait_until(
        lambda: len(os.listdir(f"/proc/{daemon.process.pid}/fd")) <= n_fds + 4,
        10 * SLOW, "the descriptors to go",
    )  # fmt: skip


def test_python_uses_shared_memory_as_long_as_results_live(daemon: Daemon) -> None:
    points = random_points(50000)
    with (
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as plain,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW, shared_bytes=16 * MIB) as client,
    ):
        expected = plain.voxelize(points, 0.5, outputs=("coords", "counts", "inverse"))
        assert shared_bytes(daemon) == 0
        held = [
            client.voxelize(points, 0.5, outputs=("coords", "counts", "inverse")) for _ in range(20)
        ]
        assert shared_bytes(daemon) == 16 * MIB
        region = client._shared.region
        assert region is not None
        # As many as fit lie there; the others came through the socket, and so did the first.
        assert 3 < region.n_slots() < 20
        for voxels in held:
            np.testing.assert_array_equal(voxels.coords, expected.coords)
            np.testing.assert_array_equal(voxels.inverse, expected.inverse)
            np.testing.assert_array_equal(voxels.mean, expected.mean)
        coords = held[5].coords
        assert np.shares_memory(np.from_dlpack(coords), coords)
        with region.mutex:  # as where the garbage collector ends them in the midst of a call
            del held, voxels
        assert region.n_slots() <= 1  # of coords, if held[5] lay there
        np.testing.assert_array_equal(coords, expected.coords)
        # A change is remembered by its body, however that came.
        seen = client.map_create("seen", {"n": np.uint32})
        keys = np.arange(90000, dtype=np.int32).reshape(-1, 3)
        first = seen.insert(keys, {"n": np.ones(len(keys), np.uint32)}, sequence=2**60)
        client._shared.n_bytes = 0
        again = seen.insert(keys, {"n": np.ones(len(keys), np.uint32)}, sequence=2**60)
        assert (first.replayed, again.replayed) == (False, True)
    wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "the region to go")


def test_python_keeps_its_region_where_a_larger_one_is_refused(directory: Path) -> None:
    points = random_points(50000)
    with (
        running(directory, {"limits": {"shared_bytes": 12 * MIB}}) as daemon,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
    ):
        for _ in range(3):  # calls of little time make none
            client.voxelize(points, 0.5, timeout=3.9)
        assert client._shared.region is None
        client.voxelize(points, 0.5)
        region = client._shared.region
        assert region is not None
        # A number that select() does not take.
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2000), limits[1]))
        with region.socket as few:
            region.socket = socket.socket(fileno=fcntl.fcntl(few, fcntl.F_DUPFD_CLOEXEC, 1500))
        assert region.stands()
        large = random_points(400000)
        for _ in range(2):
            client.voxelize(large, 0.5)
        client.voxelize(points, 0.5)
        assert client._shared.region is region and client._shared.n_bytes == 8 * MIB
        assert shared_bytes(daemon) == 8 * MIB
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("n_shared", [8 * MIB, None])
def test_clients_share_again_after_a_restart(directory: Path, n_shared: int | None) -> None:
    points = random_points(50000)
    with voxeld.connect(
        f"ipc://{directory}/run/voxeld.sock", wait=0, timeout=30 * SLOW, shared_bytes=n_shared
    ) as client:
        for _ in range(2):
            with running(directory) as daemon:
                assert daemon.ipc == client.url
                wait_until(lambda: client.is_connected, 20 * SLOW, "the connection")
                n_voxels = {len(client.voxelize(points, 0.5)) for _ in range(3)}
                assert len(n_voxels) == 1
                # After a refusal it does not ask for a while.
                wait_until(
                    lambda: len(client.voxelize(points, 0.5)) and shared_bytes(daemon) == 8 * MIB,
                    20 * SLOW, "the client to share",
                )  # fmt: skip
                assert client._shared.region is not None
                if n_shared is not None:
                    # Where the daemon has dropped the region, the call goes through the socket.
                    client._shared.region.id = bytes(16)
                    assert len(client.voxelize(points, 0.5)) in n_voxels
            # Nor does it give up for long where nobody listens.
            wait_until(lambda: not client.is_connected, 20 * SLOW, "the connection to end")
            with pytest.raises(voxeld.Unavailable):
                client.voxelize(points, 0.5)
            assert client._shared.retry_at < time.monotonic() + 10


@pytest.mark.parametrize("n_clients", [1, 4])
def test_libvoxeld_uses_shared_memory(daemon: Daemon, n_clients: int) -> None:
    done = subprocess.run(
        [
            BIN / "bench_load", "--url", daemon.ipc, "--shared", "8", "--count", "40", "--check",
            "--concurrency", str(n_clients), "--points", "30000", "--timeout", str(30 * SLOW),
            "--warmup", "0",
        ],
        capture_output=True, text=True, timeout=120 * SLOW, check=False,
        env=Daemon.environment(),
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert " 0 |" in done.stdout.splitlines()[-1]  # none failed
    wait_until(lambda: shared_bytes(daemon) == 0, 10 * SLOW, "the regions to go")


def test_timed_out_calls_do_not_spoil_later_ones(daemon: Daemon) -> None:
    points = random_points(400000)
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW, shared_bytes=64 * MIB) as client:
        expected = client.voxelize(points, 0.2)
        n_late = 0
        for timeout in (0.002, 0.004, 0.008, 0.016):
            try:
                client.voxelize(points, 0.2, timeout=timeout)
            except voxeld.DeadlineExceeded:
                n_late += 1
            voxels = client.voxelize(points, 0.2)
            np.testing.assert_array_equal(voxels.coords, expected.coords)
        assert n_late > 0
