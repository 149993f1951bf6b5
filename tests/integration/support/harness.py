# SPDX-License-Identifier: Apache-2.0
"""Starts the real daemon on ephemeral ports and talks to it as strangers do: stock protobuf
over pynng, and plain HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pynng

sys.path.insert(0, os.environ["VOXELD_PYTHON_SCHEMA"])
from voxeld.v1 import (
    admin_pb2,
    common_pb2,
    hashmap_pb2,  # noqa: F401  for those that import this file
    history_pb2,  # noqa: F401
    network_pb2,  # noqa: F401
    rpc_pb2,
    scene_pb2,  # noqa: F401
    scene_upkeep_pb2,  # noqa: F401
    scene_version_pb2,  # noqa: F401
    voxelize_pb2,
    watch_pb2,  # noqa: F401
)

SLOW = float(os.environ.get("VOXELD_TEST_SLOW", "1"))
SANITIZE = os.environ.get("VOXELD_SANITIZE", "")
HAS_PAPER = os.environ.get("VOXELD_PAPER", "ON") == "ON"  # the build's option
BIN = Path(os.environ["VOXELD_BIN_DIR"]).resolve()
SOURCE = Path(os.environ["VOXELD_SOURCE_DIR"])
BACKEND = os.environ.get("VOXELD_TEST_BACKEND", "cpu")  # cuda:0: all of it on a GPU
MIB = 1024 * 1024

OK = common_pb2.OK
SANITIZER_MARKS = (
    "AddressSanitizer",
    "LeakSanitizer",
    "ThreadSanitizer",
    "runtime error:",
)


def wait_until(condition: Callable[[], Any], timeout_s: float, what: str) -> Any:
    """Waits for the first true value of condition(). It fails after timeout_s (scaled), but not
    within a minute, because a busy machine may need that long."""
    limit_s = max(timeout_s * SLOW, 60)
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {limit_s:.1f} s: {what}")


def check_fast(measure: Callable[[], float], limit_s: float, n_tries: int = 6) -> None:
    """Checks that at least one of so many measurements is below the limit (scaled): a machine may
    be busy now and then, but a daemon that makes others wait does so each time."""
    measured: list[float] = []
    while len(measured) < n_tries:
        measured.append(measure())
        if measured[-1] < limit_s * SLOW:
            return
    raise AssertionError(f"never below {limit_s * SLOW:.3f} s: {measured}")


def record(what: str, value: float, unit: str) -> None:
    """Prints a figure, and keeps it beside the programs: nothing fails for one, but the step
    `packages` of the long tier lists them, and tests/bench/results/ says what they were."""
    line = f"{what}: {value:,.2f} {unit}".rstrip()
    print(line)
    folder = BIN.parent / "figures"
    folder.mkdir(exist_ok=True)
    name = re.sub(r"\W+", "_", what).strip("_")
    (folder / f"{name}.txt").write_text(line + "\n")


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


class Daemon:
    """One voxeld process. Its log lines are in .log, parsed."""

    wrapper: tuple[str | Path, ...] = ()  # a command before the daemon's
    pass_fds: tuple[int, ...] = ()

    def __init__(self, directory: Path, config: dict[str, Any] | None = None) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        base = {
            "listen": {
                "rpc": [f"ipc://{directory}/run/voxeld.sock", "tcp://127.0.0.1:0"],
                "http": "127.0.0.1:0",
            },
            "data_dir": str(directory / "data"),
            "engine": {"backend": BACKEND, "threads": 2},
            "limits": {
                "timeout_ms": int(30000 * SLOW),
                "max_timeout_ms": int(60000 * SLOW),
            },
            "drain": {"grace_ms": 0, "timeout_ms": int(20000 * SLOW)},
        }
        self.config = merge(base, config or {})
        self.config_path = directory / "voxeld.json"
        self.config_path.write_text(json.dumps(self.config, indent=1))
        self.lines: list[str] = []
        self.log: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [*self.wrapper, BIN / "voxeld", "--config", self.config_path],
            pass_fds=self.pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=self.environment(),
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        wait_until(
            lambda: self.find("ready") or self.process.poll() is not None, 20, "ready"
        )
        assert self.process.poll() is None, "".join(self.lines)
        ready = self.find("ready")
        assert ready is not None
        urls = ready["rpc"].split(",")
        self.ipc = next((u for u in urls if u.startswith("ipc://")), "")
        self.tcp = next((u for u in urls if u.startswith("tcp://")), "")
        self.http_port = (
            int(ready["http"].rsplit(":", 1)[1])
            if ready["http"] and not ready["http"].startswith("unix:")
            else 0
        )

    @staticmethod
    def environment() -> dict[str, str]:
        return {
            **os.environ,
            "ASAN_OPTIONS": "quarantine_size_mb=8:detect_leaks=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1",
        }

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            with contextlib.suppress(json.JSONDecodeError):
                self.log.append(json.loads(line))

    def n_under_way(self) -> int:
        """Counts the requests that wait or run."""
        status = http_call(self, "GET", "/v1/status").json()
        return int(status.get("running", 0)) + int(status.get("queueDepth", 0))

    def settle(self) -> None:
        """Waits until no request waits or runs. A request is answered a moment before it is over,
        so a test that waits for the next one to run must first see the last one go."""
        wait_until(lambda: self.n_under_way() == 0, 5, "nothing waits or runs")

    def n_answered(self, method: str) -> int:
        """Counts the requests to a method that are over, with success or without."""
        for entry in http_call(self, "GET", "/v1/status").json()["methods"]:
            if entry["name"] == method:
                return int(entry.get("nOk", 0)) + int(entry.get("nFailed", 0))
        return 0

    def find(self, message: str) -> dict[str, Any] | None:
        return next((e for e in list(self.log) if e.get("msg") == message), None)

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(x for x in status.splitlines() if x.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, timeout_s: float = 60) -> int:
        code = self.process.wait(timeout_s * SLOW)
        self.reader.join(60)
        return code

    def stop(self) -> None:
        """Ends it in order; a sanitizer report or another exit code than 0 is a failure."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            code = self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
            raise AssertionError("did not stop:\n" + "".join(self.lines[-50:])) from None
        text = "".join(self.lines)
        for mark in SANITIZER_MARKS:
            assert mark not in text, text[-20000:]
        assert code == 0, f"exit code {code}\n" + text[-8000:]
        for line in self.lines:
            json.loads(line)  # stderr has only JSON lines


@contextlib.contextmanager
def running(directory: Path, config: dict[str, Any] | None = None) -> Iterator[Daemon]:
    daemon = Daemon(directory, config)
    try:
        yield daemon
    except BaseException:
        sys.stderr.write("".join(daemon.lines[-60:]))
        if daemon.process.poll() is None:
            daemon.process.kill()
        daemon.wait()
        raise
    daemon.stop()


class Rpc:
    """A stock client: pynng's REQ socket and Google's protobuf."""

    def __init__(self, url: str, timeout_s: float = 30) -> None:
        self.socket = pynng.Req0(
            dial=url,
            recv_timeout=int(timeout_s * SLOW * 1000),
            send_timeout=int(10000 * SLOW),
            resend_time=-1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, method: str, message: Any = None, **header: Any) -> None:
        request = rpc_pb2.Request(header=rpc_pb2.RequestHeader(**header))
        getattr(request, method).SetInParent()
        if message is not None:
            getattr(request, method).CopyFrom(message)
        self.socket.send(request.SerializeToString())

    def receive(self) -> rpc_pb2.Response:
        response = rpc_pb2.Response()
        response.ParseFromString(self.socket.recv())
        return response

    def call(self, method: str, message: Any = None, **header: Any) -> rpc_pb2.Response:
        self.send(method, message, **header)
        return self.receive()

    def call_raw(self, data: bytes) -> rpc_pb2.Response:
        self.socket.send(data)
        return self.receive()


class RawReq:
    """The REQ protocol by hand over tcp or ipc, for readers that are slow or misbehave."""

    HELLO = bytes([0, 0x53, 0x50, 0, 0, 0x30, 0, 0])

    def __init__(self, url: str) -> None:
        if url.startswith("ipc://"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(20 * SLOW)
            self.socket.connect(url.removeprefix("ipc://"))
            self.mark = b"\x01"  # ipc puts a byte before the length
        else:
            host, port = url.removeprefix("tcp://").rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)), 20 * SLOW)
            self.mark = b""
        self.socket.sendall(self.HELLO)
        assert self.take(8)[:3] == b"\0SP"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def take(self, n_bytes: int) -> bytes:
        received = bytearray()
        while len(received) < n_bytes:
            piece = self.socket.recv(min(n_bytes - len(received), 65536))
            assert piece, f"the connection ended after {len(received)} of {n_bytes} bytes"
            received += piece
        return bytes(received)

    def send(self, request: rpc_pb2.Request) -> None:
        data = b"\x80\0\0\1" + request.SerializeToString()
        self.socket.sendall(self.mark + len(data).to_bytes(8, "big") + data)

    def receive(self) -> rpc_pb2.Response:
        head = self.take(len(self.mark) + 8)
        data = self.take(int.from_bytes(head[-8:], "big"))
        response = rpc_pb2.Response()
        response.ParseFromString(data[4:])
        return response


class Reply:
    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


def http_call(
    daemon: Daemon,
    verb: str,
    path: str,
    body: bytes | str | dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    timeout_s: float = 30,
) -> Reply:
    sent = dict(headers or {})
    if isinstance(body, dict):
        body = json.dumps(body)
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection(
        "127.0.0.1", daemon.http_port, timeout=timeout_s * SLOW
    )
    try:
        connection.request(verb, path, body=body, headers=sent)
        response = connection.getresponse()
        return Reply(response.status, response.msg, response.read())
    finally:
        connection.close()


def inflight_bytes(daemon: Daemon) -> int:
    """Reads the bytes reserved for requests, the asking one included: the same whenever the daemon
    is idle."""
    return int(http_call(daemon, "GET", "/v1/status").json().get("inflightBytes", 0))


def idle_bytes(daemon: Daemon) -> int:
    """Reads the same when no other request holds any: the least of several readings, because a
    request's bytes are given back a moment after its answer."""
    daemon.settle()
    looks = []
    for _ in range(10):
        looks.append(inflight_bytes(daemon))
        time.sleep(0.02)
    return min(looks)


def raw_http(daemon: Daemon, data: bytes, timeout_s: float = 5) -> bytes:
    """Sends bytes as they are and returns what comes back until the peer closes or has
    sent a whole header and stays silent."""
    limit_s = max(timeout_s * SLOW, 30)
    with socket.create_connection(("127.0.0.1", daemon.http_port), limit_s) as s:
        s.sendall(data)
        received = b""
        while b"\r\n\r\n" not in received:
            piece = s.recv(65536)
            if not piece:
                break
            received += piece
        s.settimeout(max(0.2 * SLOW, 1.5))
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while piece := s.recv(65536):
                received += piece
        return received


def cloud_of(points: np.ndarray, names: str = "xyz", **members: Any) -> common_pb2.Cloud:
    """Makes a Cloud of an n x c float32 array, with c fields named by `names` (letters or a list).
    """
    points = np.ascontiguousarray(points, dtype="<f4")
    fields = [
        common_pb2.Field(name=name, offset=4 * i, dtype=common_pb2.FLOAT32)
        for i, name in enumerate(names)
    ]
    return common_pb2.Cloud(
        fields=fields,
        point_step=4 * points.shape[1],
        data=points.tobytes(),
        **members,
    )


def voxelize_request(
    *clouds: common_pb2.Cloud, size: float = 0.1, **members: Any
) -> voxelize_pb2.VoxelizeRequest:
    vec = common_pb2.Vec3(x=size, y=size, z=size)
    return voxelize_pb2.VoxelizeRequest(clouds=clouds, size=vec, **members)


def admin_request(duration_ms: int, n_points: int = 0) -> admin_pb2.SelfTestRequest:
    return admin_pb2.SelfTestRequest(duration_ms=duration_ms, n_points=n_points)


def random_points(n: int, seed: int = 1, extent: float = 20.0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.uniform(-extent, extent, (n, 3)).astype(np.float32)


NUMPY_TYPES = {
    common_pb2.INT32: "<i4",
    common_pb2.UINT32: "<u4",
    common_pb2.FLOAT32: "<f4",
    common_pb2.INT64: "<i8",
    common_pb2.INT16: "<i2",
    common_pb2.UINT16: "<u2",
    common_pb2.INT8: "|i1",
    common_pb2.UINT8: "|u1",
    common_pb2.UINT64: "<u8",
    common_pb2.FLOAT64: "<f8",
    common_pb2.FLOAT16: "<f2",
}


def tensor_of(array: np.ndarray) -> common_pb2.Tensor:
    kind = array.dtype.newbyteorder("<")
    dtype = next(t for t, name in NUMPY_TYPES.items() if np.dtype(name) == kind)
    return common_pb2.Tensor(
        dtype=dtype, shape=array.shape, data=np.ascontiguousarray(array, kind).tobytes()
    )


def array_of(tensor: common_pb2.Tensor) -> np.ndarray:
    return np.frombuffer(tensor.data, NUMPY_TYPES[tensor.dtype]).reshape(tuple(tensor.shape))
