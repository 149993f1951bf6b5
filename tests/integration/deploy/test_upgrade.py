# SPDX-License-Identifier: Apache-2.0
"""The daemon below a supervisor that holds HTTP's socket, as systemd does: while one daemon ends
and the next one brings back its data, requests wait in the socket, and none is refused or doubled.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pynng
import voxeld
from harness import (
    BIN,
    OK,
    SLOW,
    Daemon,
    Rpc,
    common_pb2,
    hashmap_pb2,
    http_call,
    record,
    tensor_of,
    wait_until,
)
from maps import COUNT, Maps, rows

SPEC = hashmap_pb2.MapSpec(values=[COUNT])
# systemd's protocol: the socket is descriptor 3 of a process whose id LISTEN_PID says.
AS_SYSTEMD = 'exec 3<&"$0"; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'


def listener(address: str = "127.0.0.1") -> socket.socket:
    held = socket.create_server((address, 0), backlog=1024)
    assert held.fileno() > 3
    return held


def activated(held: socket.socket, directory: Path, **config: Any) -> Daemon:
    """Starts a daemon with a socket that outlives it."""

    class Activated(Daemon):
        wrapper = ("bash", "-c", AS_SYSTEMD, str(held.fileno()))
        pass_fds = (held.fileno(),)

    return Activated(directory, config)


def refusal(held: socket.socket, directory: Path) -> subprocess.CompletedProcess[str]:
    config = {"listen": {"rpc": [f"ipc://{directory}/v.sock"]}, "engine": {"backend": "cpu"}}
    (directory / "c.json").write_text(json.dumps(config))
    return subprocess.run(
        ["bash", "-c", AS_SYSTEMD, str(held.fileno()), BIN / "voxeld",
         "--config", directory / "c.json"],
        pass_fds=(held.fileno(),), capture_output=True, text=True, timeout=60 * SLOW, check=False,
    )  # fmt: skip


def addition(name: str, key: int) -> dict[str, Any]:
    return {
        "name": name, "keys": {"shape": [1, 3], "values": [key, 0, 0]}, "combine": "MAP_ADD",
        "values": [{"name": "count", "rows": {"shape": [1], "values": [1]}}],
        "insertMissing": True,
    }  # fmt: skip


class Clients:
    """Threads that change a map without pause until they are stopped; each knows how much it has
    changed, and a refusal or a lost connection is an error."""

    def __init__(self, port: int, rpc_url: str) -> None:
        self.port = port
        self.rpc_url = rpc_url
        self.over = threading.Event()
        runs = (self._new_connections, self._standing, self._nng, self._python, self._libvoxeld)
        self.n_done = [0] * len(runs)
        self.n_repeats = [0] * len(runs)
        self.longest_s = 0.0
        self.errors: list[str] = []
        self.threads = [
            threading.Thread(target=self._guarded, args=(i, run))
            for i, run in enumerate(runs)
        ]

    def _guarded(self, i: int, run: Any) -> None:
        try:
            run(i)
        except Exception as error:
            self.errors.append(f"client {i} after {self.n_done[i]}: {error!r}")

    def _post(self, connection: http.client.HTTPConnection, i: int) -> http.client.HTTPResponse:
        started = time.monotonic()
        connection.request("POST", "/v1/map_update", json.dumps(addition("m", i)),
                           {"Content-Type": "application/json"})  # fmt: skip
        reply = connection.getresponse()
        body = reply.read()
        assert reply.status == 200, body
        self.longest_s = max(self.longest_s, time.monotonic() - started)
        self.n_done[i] += 1
        return reply

    def _new_connections(self, i: int) -> None:
        while not self.over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOW)
            self._post(connection, i)
            connection.close()

    def _standing(self, i: int) -> None:
        """Keeps its connection until an answer says that it closes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOW)
        while not self.over.is_set():
            self._post(connection, i)
        connection.close()

    def _nng(self, i: int) -> None:
        """Sends a request again, under the same number, until it has an outcome."""
        message = hashmap_pb2.MapUpdateRequest(
            name="m", keys=tensor_of(np.array([[i, 0, 0]], np.int32)),
            values=rows(count=np.ones(1, np.uint64)), combine=hashmap_pb2.MAP_ADD,
            insert_missing=True,
        )  # fmt: skip
        again = (common_pb2.UNAVAILABLE, common_pb2.DEADLINE_EXCEEDED)
        while not self.over.is_set():
            code = common_pb2.UNAVAILABLE
            while code in again:
                with contextlib.suppress(pynng.NNGException), Rpc(self.rpc_url, 2) as rpc:
                    while not self.over.is_set() or code in again:
                        reply = rpc.call("map_update", message, client_id="robot",
                                         sequence=self.n_done[i] + 1)  # fmt: skip
                        code = reply.header.code
                        if code in again:
                            self.n_repeats[i] += 1
                            break
                        assert code == OK, reply.header
                        self.n_done[i] += 1
                if code in again:
                    time.sleep(0.02)

    def _python(self, i: int) -> None:
        """The package's own client, and its own way to repeat a call until it has an outcome."""
        key, one = np.array([[i, 0, 0]], np.int32), {"count": np.ones(1, np.uint64)}
        with voxeld.connect(self.rpc_url, timeout=60 * SLOW) as client:
            changed = client.map("m")

            def add(sequence: int) -> None:
                self.n_repeats[i] += sequence != 0
                changed.update(key, one, "add", insert_missing=True, sequence=sequence)

            while not self.over.is_set():
                voxeld.repeat(add, seconds=600 * SLOW)
                self.n_done[i] += 1

    def _libvoxeld(self, i: int) -> None:
        """A program on libvoxeld, which repeats calls as voxeld.h says."""
        process = subprocess.Popen(
            [BIN / "upgrade_client", self.rpc_url, "m", str(i)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        for line in process.stdout:
            self.n_done[i], self.n_repeats[i] = (int(word) for word in line.split())
            if self.over.is_set() and not process.stdin.closed:
                process.stdin.close()
        assert process.wait() == 0, process.stderr.read() if process.stderr else ""


def test_requests_wait_in_the_socket_while_daemons_change(directory: Path) -> None:
    with listener() as held:
        daemon = activated(held, directory)
        assert daemon.http_port == held.getsockname()[1]
        with Maps(daemon) as maps:
            maps.call("map_create", name="m", spec=SPEC, durable=True)
        clients = Clients(daemon.http_port, daemon.ipc)
        for thread in clients.threads:
            thread.start()
        for _ in range(2):
            before = list(clients.n_done)
            wait_until(
                lambda before=before: clients.errors
                or all(n > b + 20 for n, b in zip(clients.n_done, before, strict=True)),
                30, "all clients are served",
            )  # fmt: skip
            begin = time.monotonic()
            daemon.stop()
            stopped = time.monotonic()
            daemon = activated(held, directory)
            record("a daemon's stop in an upgrade", stopped - begin, "s")
            record("until the next daemon is ready in an upgrade", time.monotonic() - stopped, "s")
        clients.over.set()
        for thread in clients.threads:
            thread.join()
        record("the longest wait of a request over HTTP in an upgrade", clients.longest_s, "s")
        print(f"changes {clients.n_done}, repeated {clients.n_repeats}")
        assert not clients.errors
        assert all(n > 0 for n in clients.n_repeats[3:]), "no call met a daemon that ends"
        with Maps(daemon) as maps:
            keys = np.array([[i, 0, 0] for i in range(len(clients.n_done))], np.int32)
            found = maps.call("map_find", name="m", keys=tensor_of(keys), values=["count"])
            counts = np.frombuffer(found.values[0].rows.data, "<u8")
        assert counts.tolist() == clients.n_done
        daemon.stop()


def test_clean_stop_writes_what_a_start_would_replay(directory: Path) -> None:
    daemon = Daemon(directory)
    with Maps(daemon) as maps:
        maps.call("map_create", name="few", spec=SPEC, durable=True)
        maps.call("map_create", name="many", spec=SPEC, durable=True)
        for i in range(300):
            key = tensor_of(np.array([[i, 0, 0]], np.int32))
            maps.call("map_insert", name="many", keys=key)
        maps.call("map_insert", name="few", keys=key)
    daemon.stop()
    written = [e["map"] for e in daemon.log if e.get("msg") == "snapshot written"]
    assert written == ["map:many"]
    daemon = Daemon(directory)
    with Maps(daemon) as maps:
        assert maps.call("map_get", name="many").map.n_entries == 300
        assert maps.call("map_get", name="few").map.n_entries == 1
    daemon.stop()


def test_socket_that_is_none_of_ours_is_refused(directory: Path) -> None:
    with socket.socket() as silent:
        done = refusal(silent, directory)
        assert done.returncode == 2 and "no TCP socket that listens" in done.stderr
    with listener("0.0.0.0") as reachable:
        done = refusal(reachable, directory)
        assert done.returncode == 2 and "allow_insecure" in done.stderr


class Supervised(Daemon):
    notify = ""

    def environment(self) -> dict[str, str]:  # type: ignore[override]
        return {**super().environment(), "NOTIFY_SOCKET": self.notify, "WATCHDOG_USEC": "400000"}


def test_supervisor_hears_of_states_and_the_watchdog(directory: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(directory / "notify"))
        supervisor.settimeout(60 * SLOW)
        Supervised.notify = str(directory / "notify")
        daemon = Supervised(directory)
        heard = [supervisor.recv(4096).decode()]
        while heard.count("WATCHDOG=1") < 3:
            heard.append(supervisor.recv(4096).decode())
        assert heard.index("READY=1") < heard.index("WATCHDOG=1")
        os.kill(daemon.process.pid, signal.SIGSTOP)  # hangs
        supervisor.settimeout(2)
        with contextlib.suppress(TimeoutError):
            while True:
                heard.append(supervisor.recv(4096).decode())
        n_beats = heard.count("WATCHDOG=1")
        os.kill(daemon.process.pid, signal.SIGCONT)
        supervisor.settimeout(60 * SLOW)
        assert supervisor.recv(4096) == b"WATCHDOG=1" and n_beats >= 3
        assert http_call(daemon, "GET", "/v1/health/ready").status == 200
        daemon.stop()
