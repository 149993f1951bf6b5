# SPDX-License-Identifier: Apache-2.0
"""Ten times the load that the daemon can serve: its answers are right, and it refuses the rest at
once and says why. VOXELD_OVERLOAD_SECONDS=60 gives the run in tests/bench/results/daemon.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from harness import (
    OK,
    SLOW,
    Daemon,
    Rpc,
    admin_request,
    cloud_of,
    http_call,
    inflight_bytes,
    random_points,
    rpc_pb2,
    running,
    voxelize_request,
    wait_until,
)

SECONDS = float(os.environ.get("VOXELD_OVERLOAD_SECONDS", "5"))
TIMES = 10
N_PROCESSES = 2
N_CLOSED = 8
CLIENT = Path(__file__).parents[1] / "support" / "overload_client.py"


def write_requests(daemon: Daemon, directory: Path) -> list[Path]:
    """A few kinds of requests, cheap to send but not to serve, and an idle daemon's answers."""
    paths = []
    kinds: list[tuple[str, Any]] = [
        ("self_test", admin_request(1, 20000)),
        ("voxelize", voxelize_request(cloud_of(random_points(2000)), size=0.5)),
        ("self_test", admin_request(1, 5000)),
    ]
    for i, (method, message) in enumerate(kinds):
        request = rpc_pb2.Request()
        getattr(request, method).CopyFrom(message)
        path = directory / f"request{i}"
        path.write_bytes(request.SerializeToString())
        with Rpc(daemon.ipc) as client:
            response = client.call_raw(path.read_bytes())
        assert response.header.code == OK, response.header
        Path(f"{path}.reply").write_bytes(response.SerializeToString())
        paths.append(path)
    return paths


def measure_capacity(daemon: Daemon, requests: list[Path]) -> float:
    """Measures requests a second in a closed loop that keeps all lanes busy and refuses none."""
    seconds = 2.0
    counts = [0] * N_CLOSED

    def ask(index: int) -> None:
        bodies = [path.read_bytes() for path in requests]
        end = time.monotonic() + seconds
        with Rpc(daemon.ipc) as client:
            while time.monotonic() < end:
                response = client.call_raw(bodies[counts[index] % len(bodies)])
                assert response.header.code == OK, response.header
                counts[index] += 1

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(N_CLOSED)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


@pytest.mark.parametrize("transport", ["ipc", "tcp", "http"])
def test_overload_is_refused_at_once_and_answers_stay_right(
    directory: Path, transport: str
) -> None:
    with running(directory, {"limits": {"queue": 32}}) as daemon:
        requests = write_requests(daemon, directory)
        capacity = measure_capacity(daemon, requests)
        rate = capacity * TIMES / N_PROCESSES
        url = {
            "ipc": daemon.ipc,
            "tcp": daemon.tcp,
            "http": f"http://127.0.0.1:{daemon.http_port}",
        }[transport]
        command = [sys.executable, CLIENT, url, rate, SECONDS, 30 * SLOW, *requests]
        clients = [
            subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE)
            for _ in range(N_PROCESSES)
        ]
        # Operators can still ask for the status.
        status_ms = []
        while clients[0].poll() is None and len(status_ms) < SECONDS:
            start = time.monotonic()
            assert http_call(daemon, "GET", "/v1/status").status == 200
            status_ms.append((time.monotonic() - start) * 1e3)
            time.sleep(0.5)
        results = [json.loads(client.communicate()[0]) for client in clients]
        assert all(client.returncode == 0 for client in clients)
        report(transport, capacity, results, status_ms)
        for result in results:
            assert result["n_wrong"] == 0, result["wrong"]
            assert result["n_unanswered"] == 0
            assert result["codes"]["OK"] > 0
        assert sum(r["codes"].get("UNAVAILABLE", 0) for r in results) > 0
        rejected = [ms for r in results for ms in r["rejected_ms"]]
        answered = [ms for r in results for ms in r["ok_ms"]]
        # The goal is 5 ms, but clients and a machine with other work take a share here. They take
        # a share of the answered requests' time, too, after those have waited.
        limit_ms = max(50 * SLOW, 0.5 * percentile(answered, 0.5))
        assert percentile(rejected, 0.5) < limit_ms
        wait_until(lambda: inflight_bytes(daemon) == 0, 10, "nothing held")
        with Rpc(daemon.ipc) as client:
            assert client.call_raw(requests[0].read_bytes()).header.code == OK


def report(
    transport: str, capacity: float, results: list[dict[str, Any]], status_ms: list[float]
) -> None:
    seconds = max(r["seconds"] for r in results)
    codes: dict[str, int] = {}
    for result in results:
        for name, n in result["codes"].items():
            codes[name] = codes.get(name, 0) + n
    rejected = [ms for r in results for ms in r["rejected_ms"]] or [0.0]
    answered = [ms for r in results for ms in r["ok_ms"]] or [0.0]
    print(
        f"\n{transport}: capacity {capacity:.0f}/s, asked {sum(codes.values()) / seconds:.0f}/s "
        f"for {seconds:.1f} s: {codes}"
    )
    inside = [ms for r in results for ms in r["inside_ms"]] or [0.0]
    for name, values in (
        ("refused", rejected), ("of that inside the daemon", inside), ("answered", answered),
        ("status", status_ms),
    ):  # fmt: skip
        print(
            f"  {name}: p50 {percentile(values, 0.5):.2f} ms, p99 {percentile(values, 0.99):.2f} "
            f"ms, p99.9 {percentile(values, 0.999):.2f} ms, most {max(values):.2f} ms"
        )
