# SPDX-License-Identifier: Apache-2.0
"""HAProxy before two daemons that keep nothing: each is restarted, and no request is lost."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pynng
import pytest
from harness import (
    OK,
    SLOW,
    SOURCE,
    Daemon,
    Rpc,
    cloud_of,
    common_pb2,
    random_points,
    voxelize_request,
    wait_until,
)

CONFIG = SOURCE / "deploy" / "haproxy" / "haproxy.cfg"
REQUEST = voxelize_request(cloud_of(random_points(500)), size=0.5)

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


def free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [s.getsockname()[1] for s in found]


def start(directory: Path, name: str, ports: list[int]) -> Daemon:
    listen = {"rpc": [f"tcp://127.0.0.1:{ports[1]}"], "http": f"127.0.0.1:{ports[0]}"}
    config = {
        "listen": listen, "data_dir": "", "http": {"allowed_hosts": ["voxeld"]},
        "drain": {"grace_ms": 1500},
    }  # fmt: skip
    return Daemon(directory / name, config)


@contextlib.contextmanager
def proxy(ports: dict[str, list[int]], front: list[int]) -> Iterator[None]:
    local = "127.0.0.1:{}".format
    environment = {
        **os.environ, "VOXELD_HTTP": local(front[0]), "VOXELD_RPC": local(front[1]),
        **{f"VOXELD_HTTP_{n}": local(p[0]) for n, p in ports.items()},
        **{f"VOXELD_RPC_{n}": local(p[1]) for n, p in ports.items()},
        **{f"VOXELD_HTTP_PORT_{n}": str(p[0]) for n, p in ports.items()},
    }  # fmt: skip
    process = subprocess.Popen(["haproxy", "-db", "-f", CONFIG], env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


class Senders:
    """Requests without pause, over HTTP and nng, each of which must be answered."""

    def __init__(self, front: list[int]) -> None:
        self.front = front
        self.over = threading.Event()
        self.n_done = {"http": 0, "rpc": 0}
        self.errors: list[str] = []
        self.threads = [threading.Thread(target=self._http), threading.Thread(target=self._rpc)]

    def _http(self) -> None:
        body = REQUEST.SerializeToString()
        while not self.over.is_set() and not self.errors:
            connection = http.client.HTTPConnection("127.0.0.1", self.front[0], timeout=60 * SLOW)
            try:
                for _ in range(5):
                    connection.request("POST", "/v1/voxelize", body,
                                       {"Content-Type": "application/x-protobuf"})  # fmt: skip
                    reply = connection.getresponse()
                    text = reply.read()
                    if reply.status != 200:
                        self.errors.append(f"{reply.status} {text[:200]!r}")
                    self.n_done["http"] += 1
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))
            connection.close()

    def _rpc(self) -> None:
        """A client sends again when its connection ended or the daemon said that it ends."""
        while not self.over.is_set():
            with contextlib.suppress(pynng.NNGException), \
                    Rpc(f"tcp://127.0.0.1:{self.front[1]}", 5) as rpc:  # fmt: skip
                while not self.over.is_set():
                    code = rpc.call("voxelize", REQUEST).header.code
                    if code == common_pb2.UNAVAILABLE:
                        break
                    if code != OK:
                        self.errors.append(f"code {code}")
                    self.n_done["rpc"] += 1


def test_daemons_restarted_behind_haproxy_lose_no_request(directory: Path) -> None:
    numbers = free_ports(6)
    ports = {"A": numbers[:2], "B": numbers[2:4]}
    daemons = {name: start(directory, name, ports[name]) for name in ports}
    senders = Senders(numbers[4:])
    with proxy(ports, numbers[4:]):

        def is_up() -> bool:
            connection = http.client.HTTPConnection("127.0.0.1", numbers[4], timeout=10)
            try:
                connection.request("GET", "/v1/health/ready")
                return connection.getresponse().status == 200
            except OSError:
                return False

        wait_until(is_up, 10, "haproxy serves")
        for thread in senders.threads:
            thread.start()
        for name in ("A", "B"):
            before = dict(senders.n_done)
            wait_until(
                lambda before=before: senders.errors
                or all(senders.n_done[k] > n + 50 for k, n in before.items()),
                30, "requests go through",
            )  # fmt: skip
            daemons[name].stop()
            daemons[name] = start(directory, name, ports[name])
            again = daemons[name]
            wait_until(lambda again=again: again.n_answered("voxelize") > 10, 30, "it is back")
        senders.over.set()
        for thread in senders.threads:
            thread.join()
    print(senders.n_done)
    assert not senders.errors
    for daemon in daemons.values():
        daemon.stop()
