# SPDX-License-Identifier: Apache-2.0
"""bench_load: its report must agree with what the server saw, and a slow, full or lying server
must show in it."""

from __future__ import annotations

import contextlib
import csv
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from harness import (
    BIN,
    SANITIZER_MARKS,
    SLOW,
    SOURCE,
    Daemon,
    http_call,
    running,
    voxelize_pb2,
    wait_until,
)

sys.path.insert(0, str(SOURCE / "tests" / "bench" / "load"))
import plot_load

PERCENTILES = ("p50", "p95", "p99", "p999", "max")


def command(*arguments: object) -> list[str]:
    return [str(BIN / "bench_load"), "--timeout", str(30 * SLOW), *map(str, arguments)]


def bench(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True,
        timeout=120 * SLOW, check=False, env=Daemon.environment(),
    )  # fmt: skip
    assert done.returncode == code, (done.stdout, done.stderr)
    assert not any(mark in done.stderr for mark in SANITIZER_MARKS), done.stderr
    return done


def steps_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Returns the steps; whatever was asked, their numbers must agree with each other."""
    steps: list[dict[str, Any]] = json.loads(done.stdout)["steps"]
    for step in steps:
        for method in step["methods"]:
            assert method["count"] == method["ok"] + method["failed"]
            assert sum(method["errors"].values()) == method["failed"] - method["wrong"]
            assert method["latency_ms"]["n"] == method["ok"]
            assert method["engine_ms"]["n"] == method["overhead_ms"]["n"]
            for series in ("latency_ms", "engine_ms", "overhead_ms", "rejected_ms"):
                values = [method[series][p] for p in PERCENTILES]
                assert values == sorted(values)
    return steps


def counted(daemon: Daemon, method: str) -> int:
    """Counts the requests of the method that the server has answered with OK."""
    methods = http_call(daemon, "GET", "/v1/status").json().get("methods", [])
    return sum(int(m.get("nOk", 0)) for m in methods if m["name"] == method)


def url_of(daemon: Daemon, transport: str) -> str:
    return {
        "ipc": daemon.ipc, "tcp": daemon.tcp, "http": f"http://127.0.0.1:{daemon.http_port}",
    }[transport]  # fmt: skip


@pytest.mark.parametrize("transport", ["ipc", "http"])
def test_scans_into_a_scene_are_a_row_of_their_own(daemon: Daemon, transport: str) -> None:
    name = f"bench-{transport}"
    spec = {"voxelSizeM": 0.25, "depth": 10, "trackFree": True}
    made = http_call(daemon, "POST", "/v1/scene_create", {"name": name, "spec": spec})
    assert made.status == 200, made.body
    before = counted(daemon, "scene_integrate")
    done = bench(
        "--url", url_of(daemon, transport), "--count", 12, "--warmup", 0, "--points", 2000,
        "--mix", "scene_integrate:2,status:1", "--scene", name, "--json",
    )  # fmt: skip
    (step,) = steps_of(done)
    rows = {m["method"]: m for m in step["methods"]}
    assert rows["scene_integrate"]["ok"] == 8 and rows["all"]["failed"] == 0
    assert rows["scene_integrate"]["engine_ms"]["n"] == 8
    assert counted(daemon, "scene_integrate") - before == 8
    scene = http_call(daemon, "GET", f"/v1/scenes/{name}").json()["scene"]
    assert int(scene["version"]) == 9 and int(scene["nOccupied"]) > 0
    for words in (["--mix", "scene_integrate"], ["--scene", name]):
        assert "go together" in bench(*words, code=2).stderr
    lost = bench(
        "--url", url_of(daemon, transport), "--count", 3, "--warmup", 0, "--points", 10,
        "--mix", "scene_integrate", "--scene", "nowhere", code=1,
    )  # fmt: skip
    assert "NOT_FOUND" in lost.stdout + lost.stderr


def check_stages(method: dict[str, Any]) -> None:
    """The stages of a closed loop's requests must add up to what the client waited."""
    means = {name: series["mean"] for name, series in method["stages"].items()}
    assert list(means) == [
        "receive_ms", "decode_ms", "wait_ms", "engine_ms", "commit_ms", "rest_ms", "way_ms"
    ]  # fmt: skip
    assert all(series["n"] == method["ok"] for series in method["stages"].values())
    assert sum(means.values()) == pytest.approx(method["latency_ms"]["mean"], rel=0.02, abs=0.02)
    # engine_ms of the reply was read when its stages were over, but before the last of them ended.
    assert means["engine_ms"] >= 0.9 * method["engine_ms"]["mean"] > 0
    assert means["commit_ms"] == 0


def test_stages_are_printed(daemon: Daemon) -> None:
    done = bench("--url", daemon.ipc, "--count", 5, "--points", 1000, "--warmup", 0, "--stages")
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("    ")]
    assert [line[0] for line in lines] == [
        "receive", "decode", "wait", "engine", "commit", "rest", "way"
    ]  # fmt: skip
    assert all(line[1::2] == ["p50", "p99", "max"] for line in lines)


@pytest.mark.parametrize("transport", ["ipc", "tcp", "http"])
def test_closed_loop_counts_what_the_server_counted(daemon: Daemon, transport: str) -> None:
    before = counted(daemon, "voxelize")
    done = bench(
        "--url", url_of(daemon, transport), "--concurrency", "1,3", "--duration", 1,
        "--warmup", 0, "--points", 2000, "--mix", "voxelize:3,server_info:1",
        "--check", "--json",
    )  # fmt: skip
    steps = steps_of(done)
    assert [s["concurrency"] for s in steps] == [1, 3]
    n_voxelize = 0
    for step in steps:
        voxelize, info, both = step["methods"]
        assert both["failed"] == 0
        assert both["count"] == voxelize["count"] + info["count"]
        assert abs(voxelize["count"] - 3 * info["count"]) <= 4
        assert both["ok_per_s"] == pytest.approx(both["ok"] / step["seconds"], rel=1e-3)
        assert 0 < voxelize["engine_ms"]["mean"] < voxelize["latency_ms"]["mean"]
        check_stages(voxelize)
        n_voxelize += voxelize["ok"]
    assert counted(daemon, "voxelize") - before == n_voxelize


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
def test_open_loop_keeps_its_rate(daemon: Daemon, arrivals: str) -> None:
    done = bench(
        "--url", daemon.ipc, "--rate", 50, "--duration", 2, "--warmup", 0.2,
        "--points", 1000, "--arrivals", arrivals, "--json",
    )  # fmt: skip
    (step,) = steps_of(done)
    (method,) = step["methods"]
    assert method["failed"] == 0
    if arrivals == "even":
        assert method["count"] + step["unsent"] in (100, 101)
    else:
        assert 60 < method["count"] + step["unsent"] < 140  # 100 within four sigma
    assert step["unsent"] <= 0.2 * method["count"] * SLOW  # of what a stall made late


@pytest.mark.parametrize("transport", ["ipc", "http"])
def test_voxelctl_bench_loads_the_daemon(daemon: Daemon, transport: str) -> None:
    before = counted(daemon, "voxelize")
    done = subprocess.run(
        [
            BIN / "voxelctl", "--url", url_of(daemon, transport), "--json", "bench",
            "--timeout", str(30 * SLOW), "--count", "12", "--points", "100", "--warmup", "0",
        ],
        capture_output=True, text=True, timeout=60 * SLOW, check=False,
        env=Daemon.environment(),
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert steps_of(done)[0]["methods"][0]["ok"] == 12
    assert counted(daemon, "voxelize") - before == 12


def test_count_ends_the_run(daemon: Daemon) -> None:
    done = bench("--url", daemon.ipc, "--count", 25, "--concurrency", 4, "--points", 100,
                 "--warmup", 0, "--json")  # fmt: skip
    (step,) = steps_of(done)
    assert step["methods"][0]["count"] == 25


@pytest.mark.parametrize("in_flight", [1, 64])
def test_stall_of_the_server_shows_in_every_request_it_delayed(
    directory: Path, in_flight: int
) -> None:
    stall_s, duration_s, rate = 1.0, 4.0, 25
    with running(directory) as daemon:
        bench("--url", daemon.ipc, "--count", 3, "--points", 100)
        n_before = daemon.n_answered("voxelize")

        def stall() -> None:
            wait_until(lambda: daemon.n_answered("voxelize") > n_before + 10, 20, "it runs")
            daemon.signal(signal.SIGSTOP)
            time.sleep(stall_s)
            daemon.signal(signal.SIGCONT)

        thread = threading.Thread(target=stall)
        thread.start()
        done = bench(
            "--url", daemon.ipc, "--rate", rate, "--duration", duration_s, "--warmup", 0,
            "--points", 100, "--concurrency", in_flight, "--json",
        )  # fmt: skip
        thread.join()
    (step,) = steps_of(done)
    latency = step["methods"][0]["latency_ms"]
    # A quarter of all requests were due during the stall, and waited for half of it in the
    # mean; a loop that only counts from sending would show one slow request of a hundred.
    assert 0.9 * stall_s * 1e3 <= latency["max"]
    assert latency["p95"] > 0.6 * stall_s * 1e3
    assert latency["mean"] > 0.07 * stall_s * 1e3
    assert step["methods"][0]["failed"] == 0


@pytest.mark.parametrize("transport", ["ipc", "http"])
def test_overload_is_refused_fast_and_never_answered_wrong(
    directory: Path, transport: str
) -> None:
    with running(directory, {"limits": {"queue": 2}}) as daemon:
        done = bench(
            "--url", url_of(daemon, transport), "--concurrency", 16, "--duration", 2,
            "--warmup", 0.2, "--points", 50000, "--size", 0.2, "--check", "--json",
        )  # fmt: skip
        (step,) = steps_of(done)
        (method,) = step["methods"]
        assert method["ok"] > 0
        assert method["wrong"] == 0
        assert method["unanswered"] == 0
        assert set(method["errors"]) == {"UNAVAILABLE"}
        assert method["rejected_ms"]["n"] == method["errors"]["UNAVAILABLE"]
        assert method["rejected_ms"]["p50"] < 500 * SLOW


class Liar(http.server.BaseHTTPRequestHandler):
    """Answers every request with one voxel, every tenth with two; closes after every
    fourth; now and then refuses with an error as the daemon writes them."""

    protocol_version = "HTTP/1.1"
    n_seen: ClassVar[int] = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = voxelize_pb2.VoxelizeRequest.FromString(body)
        n_points = len(request.clouds[0].data) // request.clouds[0].point_step
        Liar.n_seen += 1
        reply = voxelize_pb2.VoxelizeResponse(
            n_voxels=2 if Liar.n_seen % 10 == 0 else 1,
            items=[voxelize_pb2.VoxelizeItem(n_points=n_points)],
        ).SerializeToString()
        refuses = Liar.n_seen % 10 == 5
        if refuses:
            reply = b'{"code":"RESOURCE_EXHAUSTED","message":"no room","field":""}\n'
        self.send_response(429 if refuses else 200)
        self.send_header("Content-Length", str(len(reply)))
        if Liar.n_seen % 4 == 0:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def liar() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_wrong_answers_are_failures_and_the_exit_status() -> None:
    with liar() as url:
        Liar.n_seen = 0
        done = bench("--url", url, "--count", 100, "--warmup", 0, "--points", 7, "--check",
                     "--json", code=1)  # fmt: skip
    (method,) = steps_of(done)[0]["methods"]
    assert Liar.n_seen == 100
    assert (method["ok"], method["failed"], method["wrong"]) == (80, 20, 10)
    assert method["errors"] == {"RESOURCE_EXHAUSTED": 10}
    assert method["rejected_ms"]["n"] == 10


def test_interrupt_prints_what_was_measured(daemon: Daemon) -> None:
    n_before = daemon.n_answered("voxelize")
    process = subprocess.Popen(
        command("--url", daemon.ipc, "--duration", 300, "--warmup", 0, "--points", 1000,
                "--concurrency", 2, "--json"),
        stdout=subprocess.PIPE, text=True, env=Daemon.environment(),
    )  # fmt: skip
    wait_until(lambda: daemon.n_answered("voxelize") > n_before + 10, 20, "it runs")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30 * SLOW)
    assert process.returncode == 130
    (step,) = steps_of(subprocess.CompletedProcess([], 130, out, ""))
    assert step["interrupted"] is True
    assert step["methods"][0]["ok"] > 0
    assert step["seconds"] < 120 * SLOW


def test_server_that_dies_is_unavailable_not_the_end(directory: Path) -> None:
    daemon = Daemon(directory)
    process = subprocess.Popen(
        command("--url", url_of(daemon, "http"), "--duration", 3 * SLOW, "--warmup", 0,
                "--points", 100, "--json"),
        stdout=subprocess.PIPE, text=True, env=Daemon.environment(),
    )  # fmt: skip
    wait_until(lambda: daemon.n_answered("voxelize") > 10, 20, "it runs")
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    out, _ = process.communicate(timeout=60 * SLOW)
    assert process.returncode == 0
    (step,) = steps_of(subprocess.CompletedProcess([], 0, out, ""))
    (method,) = step["methods"]
    assert method["ok"] > 0
    assert set(method["errors"]) == {"UNAVAILABLE"}
    assert method["unanswered"] > 0


def test_other_machines_are_not_loaded_unasked() -> None:
    for url in (
        "tcp://10.1.2.3:8421", "http://example.org:80", "tcp://127.0.0.1.example.org:1",
        "http://127.0.0.1@example.org:80", "tls+tcp://[2001:db8::1]:1", "nonsense",
    ):  # fmt: skip
        assert "--allow-remote" in bench("--url", url, code=2).stderr
    environment = {**os.environ, "VOXELD_URL": "tcp://10.1.2.3:8421"}
    done = subprocess.run(command(), env=environment, capture_output=True, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--rate", "0"), ("--rate", "1,x"), ("--concurrency", "0"), ("--mix", "none:1"),
        ("--mix", "status:1,status:2"), ("--duration", "1e9"), ("--count", "-1"),
        ("--rate", "1,2", "--concurrency", "1,2"), ("--arrivals", "odd"), ("word",),
    ],
)  # fmt: skip
def test_wrong_command_lines_are_refused(arguments: tuple[str, ...]) -> None:
    done = bench("--url", "ipc:///nowhere.sock", *arguments, code=2)
    assert "Try: bench_load --help" in done.stderr


def test_csv_says_what_the_table_says(daemon: Daemon, directory: Path) -> None:
    path = directory / "load.csv"
    done = bench("--url", daemon.tcp, "--rate", "20,40", "--duration", 0.5, "--points", 500,
                 "--mix", "voxelize,status", "--csv", path)  # fmt: skip
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [(r["step"], r["method"]) for r in rows] == [
        (s, m) for s in "01" for m in ("voxelize", "status", "all")
    ]
    lines = [line for line in done.stdout.splitlines() if "/s " in line and "|" in line][1:]
    assert [line.split()[1] for line in lines] == [r["method"] for r in rows]
    assert [int(line.split()[3]) for line in lines] == [int(r["ok"]) for r in rows]
    curves = plot_load.read_curves(path)
    assert [c.method for c in curves] == ["voxelize", "status", "all"]
    assert all(c.load == [20.0, 40.0] and c.loop == "open" for c in curves)
