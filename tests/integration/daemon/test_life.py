# SPDX-License-Identifier: Apache-2.0
"""Start, drain, stop: nobody loses a reply, and mistakes are reported before anything runs."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pynng
import pytest
from harness import (
    BIN,
    MIB,
    OK,
    SLOW,
    Daemon,
    RawReq,
    Rpc,
    admin_request,
    check_fast,
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


def test_drain_loses_no_reply_and_refuses_new_connections(directory: Path) -> None:
    config = {"drain": {"grace_ms": int(500 * SLOW + 2000)}}
    long = int(1500 * SLOW + 3000)
    with running(directory, config) as daemon:

        def over_http() -> int:
            reply = http_call(daemon, "POST", "/v1/self_test", {"durationMs": long})
            return reply.status

        def over_rpc(url: str) -> int:
            with Rpc(url) as client:
                return client.call("self_test", admin_request(long)).header.code

        with ThreadPoolExecutor(6) as pool:
            waiting = [pool.submit(over_http) for _ in range(2)]
            waiting += [pool.submit(over_rpc, u) for u in (daemon.ipc, daemon.tcp) * 2]
            wait_until(lambda: daemon.n_under_way() == 6, 5, "all are under way")
            daemon.signal(signal.SIGTERM)

            def ready() -> dict[str, Any] | None:
                reply = http_call(daemon, "GET", "/v1/health/ready")
                return reply.json() if reply.status == 503 else None

            state = wait_until(ready, 3, "ready is a 503 while draining")
            assert state == {"ready": False, "state": "draining"}
            # still answering during the grace
            assert http_call(daemon, "GET", "/v1/health/live").status == 200

            def is_closed() -> bool:
                try:
                    socket.create_connection(("127.0.0.1", daemon.http_port), 30).close()
                except OSError:
                    return True
                return False

            wait_until(is_closed, 5, "no new connection is taken")
            with pytest.raises(pynng.NNGException), Rpc(daemon.tcp, timeout_s=0.2) as late:
                late.call("server_info")
            assert [w.result() for w in waiting] == [200, 200, OK, OK, OK, OK]
        assert daemon.wait() == 0
    assert not Path(daemon.ipc.removeprefix("ipc://")).exists()


def await_refusal(client: Rpc) -> None:
    """Asks over a standing connection whether the daemon drains."""
    request = voxelize_request(cloud_of(random_points(9)))
    wait_until(
        lambda: client.call("voxelize", request).header.code == common_pb2.UNAVAILABLE,
        5, "work is refused",
    )  # fmt: skip


def test_standing_connections_are_told_unavailable_while_draining(directory: Path) -> None:
    with running(directory) as daemon:
        with Rpc(daemon.ipc) as busy, Rpc(daemon.ipc) as idle, ThreadPoolExecutor() as pool:
            assert idle.call("server_info").header.code == OK
            daemon.settle()
            running_call = pool.submit(
                busy.call, "self_test", admin_request(int(1500 * SLOW + 2500))
            )
            wait_until(lambda: daemon.n_under_way() == 1, 5, "it is under way")
            daemon.signal(signal.SIGTERM)
            await_refusal(idle)
            assert running_call.result().header.code == OK
        assert daemon.wait() == 0


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_slow_reader_gets_the_whole_reply_of_a_stopping_daemon(
    directory: Path, transport: str
) -> None:
    n_points = 400000
    outputs = [
        voxelize_pb2.OUTPUT_COORDS,
        voxelize_pb2.OUTPUT_COUNTS,
        voxelize_pb2.OUTPUT_INVERSE,
    ]
    request = rpc_pb2.Request(
        voxelize=voxelize_request(
            cloud_of(random_points(n_points)), size=0.001, outputs=outputs
        )
    )
    with running(directory) as daemon:
        with RawReq(daemon.ipc if transport == "ipc" else daemon.tcp) as client:
            client.send(request)
            wait_until(lambda: daemon.n_answered("voxelize") == 1, 5, "it is answered")
            daemon.signal(signal.SIGTERM)
            time.sleep(0.5)
            response = client.receive()
        assert response.header.code == OK
        assert len(response.voxelize.inverse.data) == 4 * n_points
        assert daemon.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_an_idle_daemon_fast(directory: Path, number: int) -> None:
    with running(directory) as daemon:
        start = time.monotonic()
        daemon.signal(number)
        assert daemon.wait() == 0
        assert time.monotonic() - start < 10 * SLOW  # of 20 s that a drain may take


def test_idle_daemon_uses_no_cpu(directory: Path) -> None:
    with running(directory) as daemon, Rpc(daemon.ipc) as client:
        assert client.call("server_info").header.code == OK

        def used_s() -> float:
            before = daemon.cpu_s()
            time.sleep(2)
            return daemon.cpu_s() - before

        check_fast(used_s, 0.06)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"listen":{"htp":"x"}}', ["listen.htp"]),
        ('{"limits":{"queue":0}}', ["limits.queue"]),
        ('{"limits":{"queue":"many"}}', ["limits.queue"]),
        ('{"engine":{"read_lanes":1}}', ["engine.read_lanes"]),
        ('{"listen":{"http":"0.0.0.0:8420"}}', ["allow_insecure"]),
        ('{"limits":{"queue":1},"limits":{}}', ["limits"]),
        ('{"log":{"level":"loud"}}', ["log.level"]),
        ('{"limits":', ["c.json"]),
        ("[]", ["c.json"]),
    ],
)
def test_check_config_names_the_key(directory: Path, config: str, words: list[str]) -> None:
    path = directory / "c.json"
    path.write_text(config)
    done = subprocess.run(
        [BIN / "voxeld", "--check-config", path], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2, done
    for word in words:
        assert word in done.stderr


def test_check_config_accepts_what_the_daemon_runs_with(daemon: Daemon) -> None:
    done = subprocess.run([BIN / "voxeld", "--check-config", daemon.config_path], check=False)
    assert done.returncode == 0


def start_second(daemon: Daemon, **config: Any) -> subprocess.CompletedProcess[str]:
    path = daemon.directory / "second.json"
    path.write_text(json.dumps({**daemon.config, **config}))
    return subprocess.run(
        [BIN / "voxeld", "--config", path], capture_output=True, text=True,
        timeout=30 * SLOW, check=False,
    )  # fmt: skip


def test_second_daemon_on_the_same_data_is_refused(daemon: Daemon) -> None:
    done = start_second(daemon, listen={"rpc": [], "http": "127.0.0.1:0"})
    assert done.returncode not in (0, None)
    assert str(daemon.directory / "data") in done.stderr
    assert http_call(daemon, "GET", "/v1/health/ready").status == 200


def test_second_daemon_on_the_same_address_is_refused(daemon: Daemon) -> None:
    for listen in (
        {"rpc": [daemon.ipc], "http": ""},
        {"rpc": [daemon.tcp], "http": ""},
        {"rpc": [], "http": f"127.0.0.1:{daemon.http_port}"},
    ):
        done = start_second(daemon, data_dir="", listen=listen)
        assert done.returncode not in (0, None)
        assert (listen["rpc"] or [listen["http"]])[0].removeprefix("ipc://") in done.stderr
    with Rpc(daemon.ipc) as client:
        assert client.call("server_info").header.code == OK


def test_stale_socket_is_replaced_and_a_plain_file_is_not(directory: Path) -> None:
    config = {"listen": {"rpc": [f"ipc://{directory}/s.sock"], "http": "127.0.0.1:0"}}
    path = directory / "s.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    assert path.is_socket()
    with running(directory, config) as daemon:
        with Rpc(daemon.ipc) as client:
            assert client.call("server_info").header.code == OK
        assert path.stat().st_mode & 0o777 == 0o660
    path.write_text("precious")
    config_path = directory / "voxeld.json"
    done = subprocess.run(
        [BIN / "voxeld", "--config", config_path], capture_output=True, text=True,
        timeout=30 * SLOW, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert path.read_text() == "precious"


def test_socket_of_whoever_accepts_nothing_is_refused_at_once(directory: Path) -> None:
    config = {"listen": {"rpc": [f"ipc://{directory}/s.sock"], "http": ""}, "data_dir": ""}
    directory.mkdir(parents=True, exist_ok=True)
    config_path = directory / "voxeld.json"
    config_path.write_text(json.dumps(config))
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(socket.socket(socket.AF_UNIX))
        busy.bind(str(directory / "s.sock"))
        busy.listen(0)
        for _ in range(3):  # until one more would wait
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(str(directory / "s.sock"))
        done = subprocess.run(
            [BIN / "voxeld", "--config", config_path], capture_output=True, text=True,
            timeout=30 * SLOW, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "in use by another process" in done.stderr


def test_daemon_killed_without_warning_starts_again(directory: Path) -> None:
    daemon = Daemon(directory)
    daemon.process.kill()
    daemon.wait()
    with running(directory) as again, Rpc(again.ipc) as client:
        assert client.call("server_info").header.code == OK


def test_large_body_refused_while_draining_is_told_so(directory: Path) -> None:
    with running(directory) as daemon:
        standing = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=60 * SLOW)
        standing.request(
            "POST", "/v1/server_info", b"{}", {"Content-Type": "application/json"}
        )
        assert standing.getresponse().read().startswith(b"{")
        with Rpc(daemon.ipc) as busy, Rpc(daemon.ipc) as probe:
            assert probe.call("server_info").header.code == OK
            daemon.settle()
            busy.send("self_test", admin_request(int(1500 * SLOW + 3500)))
            wait_until(lambda: daemon.n_under_way() == 1, 5, "it is under way")
            daemon.signal(signal.SIGTERM)
            await_refusal(probe)
            standing.request(
                "POST", "/v1/voxelize", b"\0" * (32 * MIB),
                {"Content-Type": "application/x-protobuf"},
            )  # fmt: skip
            reply = standing.getresponse()
            assert reply.status == 503, reply.read()
            assert json.loads(reply.read())["code"] == "UNAVAILABLE"
            assert busy.receive().header.code == OK
        standing.close()
        assert daemon.wait() == 0


def test_upload_still_coming_when_the_drain_ends_is_told_unavailable(directory: Path) -> None:
    config = {"drain": {"timeout_ms": int(700 * SLOW)}}
    n_bytes = 32 * MIB
    with running(directory, config) as daemon:
        head = (
            f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
            f"Content-Type: application/x-protobuf\r\nContent-Length: {n_bytes}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", daemon.http_port), 20 * SLOW) as s:
            s.sendall(head.encode())
            signalled = False
            for _ in range(n_bytes // 65536):
                s.sendall(b"\0" * 65536)
                if select.select([s], [], [], 0.02 * SLOW)[0]:
                    break
                if not signalled:
                    daemon.signal(signal.SIGTERM)
                    signalled = True
            answer = s.recv(65536)
            assert answer.startswith(b"HTTP/1.1 503 "), answer
            assert b'"code":"UNAVAILABLE"' in answer
            assert b"Connection: close\r\n" in answer
        assert daemon.wait() == 0
