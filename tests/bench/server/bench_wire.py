#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the way in and out of a daemon: clouds over every transport beside a plain socket's
and memcpy's time for the same bytes, many clients, small calls, durable scans, and what an overload
and a greedy client do to others.

usage: bench_wire.py ROOT [--backend cuda:0] [--seconds 3] [--scan FILE.bin]... [--only PART,..]
                     [--set KEY=VALUE]...

ROOT is an unpacked bundle with bench_infer in its libexec/voxeld, or a build's folder with its
programs in bin/. Over ipc libvoxeld shares memory for large bodies by itself;
VOXELD_TRANSPORT=socket keeps it from that, and nng has it use nng's own sockets. --scan: KITTI
scans for the part `durable` and the writes of `polite`. Parts, in this order: cloud, clients,
small, durable, overload, polite. --set is a whole number of the configuration, as
engine.read_lanes=4. It needs Python alone, so that it runs where the bundle does."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

N_FLOOR = 300
N_WARM = 20
N_GREEDY = 12
TOKENS = ["greedy", "polite0", "polite1", "polite2"]


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def row(name: str, values: dict[str, float] | list[float], more: str = "") -> None:
    if isinstance(values, list):
        values = {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99)}
    print(f"  {name:<34} p50 {values['p50']:8.3f}  p99 {values['p99']:8.3f} ms {more}", flush=True)


class Failure(Exception):
    """A program that does not do its work; the message says which."""


class Programs:
    def __init__(self, root: Path) -> None:
        found = {p.name: p for p in (*root.glob("bin/*"), *root.glob("libexec/voxeld/*"))}
        self.voxeld = found["voxeld"]
        self.voxelctl = found["voxelctl"]
        self.bench_load = found["bench_load"]
        self.bench_infer = found.get("bench_infer")


class Server:
    """A daemon in a directory; it answers when this returns."""

    def __init__(self, programs: Programs, directory: Path, backend: str, **config: Any) -> None:
        directory.mkdir()
        base: dict[str, Any] = {
            "listen": {
                "rpc": [f"ipc://{directory}/v.sock", "tcp://127.0.0.1:0"],
                "http": "127.0.0.1:0",
            },
            "data_dir": str(directory / "data"),
            "engine": {"backend": backend},
            "drain": {"grace_ms": 0},
        }
        for section, members in config.items():
            base[section] = base.get(section, {}) | members
        path = directory / "voxeld.json"
        path.write_text(json.dumps(base))
        begin = time.monotonic()
        self.log = directory / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([programs.voxeld, "--config", path], stderr=log)
        while not (ready := self.ready()):
            if self.process.poll() is not None or time.monotonic() > begin + 60:
                raise SystemExit(f"the daemon does not start:\n{self.log.read_text()}")
            time.sleep(0.02)
        self.ipc, self.tcp = ready["rpc"].split(",")
        self.http = f"http://{ready['http']}"
        print(f"daemon on {backend}, ready after {time.monotonic() - begin:.1f} s", flush=True)

    def ready(self) -> dict[str, Any] | None:
        for line in self.log.read_text().splitlines():
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("msg") == "ready":
                return entry
        return None

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(30) != 0:
            print(f"the daemon ended with {self.process.returncode}:\n{self.log.read_text()}")


# The floors of a row ----------------------------------------------------------------------


def fill(connection: socket.socket, view: memoryview) -> None:
    at = 0
    while at < len(view):
        n = connection.recv_into(view[at:])
        if n == 0:
            raise EOFError
        at += n


def answer(connection: socket.socket, n_up: int, n_down: int) -> None:
    up, down = memoryview(bytearray(n_up)), memoryview(bytearray(n_down))
    try:
        while True:
            fill(connection, up)
            connection.sendall(down)
    except (EOFError, ConnectionError):
        os._exit(0)


def socket_floor(n_up: int, n_down: int) -> list[float]:
    """Two processes, a plain unix socket and the same bytes there and back, into memory of before.
    The child does nothing else, so the threads that it lacks are not missed."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 << 20)
    pid = os.fork()
    if pid == 0:
        ours.close()
        answer(theirs, n_up, n_down)
    theirs.close()
    up, down = memoryview(bytearray(n_up)), memoryview(bytearray(n_down))
    times = []
    for i in range(N_WARM + N_FLOOR):
        begin = time.perf_counter()
        ours.sendall(up)
        fill(ours, down)
        if i >= N_WARM:
            times.append((time.perf_counter() - begin) * 1e3)
    ours.close()
    os.waitpid(pid, 0)
    return times


def memcpy_floor(n_bytes: int) -> list[float]:
    source, target = memoryview(bytearray(n_bytes)), memoryview(bytearray(n_bytes))
    times = []
    for i in range(N_WARM + N_FLOOR):
        begin = time.perf_counter()
        target[:] = source
        if i >= N_WARM:
            times.append((time.perf_counter() - begin) * 1e3)
    return times


class Counter:
    """Stands between a client and an ipc address and counts what passes."""

    def __init__(self, directory: Path, url: str) -> None:
        self.path = directory / "counted.sock"
        self.to = url.removeprefix("ipc://")
        self.n_up = self.n_down = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.to)
            for source, target, is_up in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self.pass_on, args=(source, target, is_up), daemon=True
                ).start()

    def pass_on(self, source: socket.socket, target: socket.socket, is_up: bool) -> None:
        try:
            while data := source.recv(1 << 20):
                if is_up:
                    self.n_up += len(data)
                else:
                    self.n_down += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


# Loads ------------------------------------------------------------------------------------


class Bench:
    def __init__(self, programs: Programs, seconds: float, scans: list[Path]) -> None:
        self.programs = programs
        self.seconds = seconds
        self.scans = scans

    def command(self, url: str, *words: Any, seconds: float | None = None) -> list[str]:
        command = [self.programs.bench_load, "--url", url, "--json", "--warmup", 0.5]
        command += ["--duration", seconds or self.seconds, *words]
        return [str(word) for word in command]

    def run(
        self, url: str, *words: Any, seconds: float | None = None, transport: str = ""
    ) -> list[dict[str, Any]]:
        """One row a step: its numbers of all methods together."""
        return self.parse(self.start(url, *words, seconds=seconds, transport=transport))

    def start(
        self,
        url: str,
        *words: Any,
        seconds: float | None = None,
        token: str = "",
        transport: str = "",
    ) -> subprocess.Popen[str]:
        environment = os.environ | ({"VOXELD_TOKEN": f"secret-of-{token}"} if token else {})
        if transport:
            environment = environment | {"VOXELD_TRANSPORT": transport}
        return subprocess.Popen(
            self.command(url, *words, seconds=seconds),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def parse(self, process: subprocess.Popen[str]) -> list[dict[str, Any]]:
        out, err = process.communicate()
        if not out:
            raise Failure(f"{process.args!r}: {err}")
        return [step | step["methods"][-1] for step in json.loads(out)["steps"]]

    def ctl(self, url: str, *words: str, token: str = "") -> None:
        environment = os.environ | ({"VOXELD_TOKEN": f"secret-of-{token}"} if token else {})
        command = [str(self.programs.voxelctl), "--url", url, *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise Failure(f"{command}: {done.stderr}")


def row_of(name: str, step: dict[str, Any], more: str = "") -> None:
    errors = f" failed {step['failed']} {step['errors']}" if step["failed"] else ""
    engine = step["engine_ms"]
    if engine["n"]:
        more += f" engine {engine['p50']:.3f}/{engine['p99']:.3f}"
        more += f" overhead {step['overhead_ms']['p50']:.3f}/{step['overhead_ms']['p99']:.3f}"
    row(name, step["latency_ms"], f"{step['ok_per_s']:8.1f}/s {more}{errors}")


def stages_of(step: dict[str, Any]) -> None:
    parts = [f"{k[:-3]} {v['p50']:.3f}/{v['p99']:.3f}" for k, v in step.get("stages", {}).items()]
    print(f"    stages: {', '.join(parts)}", flush=True)


def measure_cloud(bench: Bench, server: Server, directory: Path) -> None:
    counter = Counter(directory, server.ipc)
    bench.run(f"ipc://{counter.path}", "--count", 1, "--warmup", 0)
    n_up, n_down = counter.n_up, counter.n_down
    print(f"cloud: 250,000 points, {n_up / 1e6:.2f} MB a request, {n_down / 1e6:.2f} MB a reply")
    floor = socket_floor(n_up, n_down)
    row("plain socket, both ways", floor)
    row("memcpy, both ways", memcpy_floor(n_up + n_down))
    for name, url, transport in (
        ("ipc", server.ipc, ""),
        ("ipc, the socket alone", server.ipc, "socket"),
        ("ipc, nng", server.ipc, "nng"),
        ("tcp", server.tcp, ""),
        ("tcp, nng", server.tcp, "nng"),
        ("http", server.http, ""),
        ("ipc again", server.ipc, ""),
    ):
        (step,) = bench.run(url, "--stages", "--check", transport=transport)
        ratios = ""
        for name_of, part in (("p50", 0.5), ("p99", 0.99)):
            due = percentile(floor, part) + step["engine_ms"][name_of]
            ratios += f" {name_of} = {step['latency_ms'][name_of] / due:.2f} x"
        row_of(name, step, f"(of socket + engine:{ratios})")
        stages_of(step)
    row("plain socket, both ways, again", socket_floor(n_up, n_down))


def measure_clients(bench: Bench, server: Server, directory: Path) -> None:
    print("many clients, 250,000 points each")
    for name, url, transport in (
        ("ipc", server.ipc, ""),
        ("ipc, the socket alone", server.ipc, "socket"),
        ("http", server.http, ""),
    ):
        more = ("--stages", "--warmup", 1.5, "--concurrency", "4,16")
        for step in bench.run(url, *more, transport=transport):
            row_of(f"{name}, {step['concurrency']} clients", step)
            stages_of(step)


def measure_small(bench: Bench, server: Server, directory: Path) -> None:
    print("small calls")
    for name, url, transport in (
        ("ipc", server.ipc, ""),
        ("ipc by nng", server.ipc, "nng"),
        ("tcp", server.tcp, ""),
        ("http", server.http, ""),
    ):
        for what, more in (
            ("status", ("--mix", "status:1")),
            ("server_info", ("--mix", "server_info:1")),
            ("1,000 points", ("--points", 1000)),
            ("25,000 points", ("--points", 25000)),
        ):
            if name == "ipc" or what in ("status", "1,000 points"):
                (step,) = bench.run(
                    url, "--stages", *more, seconds=bench.seconds / 2, transport=transport
                )
                row_of(f"{what} over {name}", step)
                stages_of(step)
    (step,) = bench.run(server.ipc, "--mix", "status:1", "--concurrency", 16)
    row_of("status, 16 clients over ipc", step)
    row("plain socket, 64 bytes both ways", socket_floor(64, 64))


def measure_durable(bench: Bench, server: Server, directory: Path) -> None:
    if bench.programs.bench_infer is None or not bench.scans:
        print("durable scans: no bench_infer, or no --scan")
        return
    port = server.http.rsplit(":", 1)[1]
    for how in ("not durable", "everysec", "always", "off", "not durable"):
        command = [bench.programs.bench_infer, "--url", server.ipc, "--scene", "s", "--http", port]
        command += ["--format", "kitti", "--repeat", round(100 * bench.seconds)]
        for scan in bench.scans:
            command += ["--cloud", scan]
        if how != "not durable":
            command += ["--durable", how]
        print(f"scan into a scene, 0.1 m, 50 m, {how}", flush=True)
        subprocess.run([str(word) for word in command], check=False)


# An overload, and a greedy client ---------------------------------------------------------


def measure_overload(bench: Bench, server: Server, directory: Path) -> None:
    small = ("--points", 2000)
    for name, url in (("ipc", server.ipc), ("tcp", server.tcp), ("http", server.http)):
        alone = bench.run(url, *small, "--concurrency", "1,8")
        capacity = alone[1]["ok_per_s"]
        print(f"overload over {name}, 2,000 points, queue of 32: {capacity:.0f}/s served")
        row_of("unloaded, 1 client", alone[0])
        row_of("8 clients", alone[1])
        for step in bench.run(url, *small, "--concurrency", "48,128", "--check"):
            asked = step["count"] / step["seconds"]
            row_of(f"{step['concurrency']} clients at once", step, f"asked {asked:.0f}/s")
            row(
                "  refused", step["rejected_ms"], f"wrong {step['wrong']} lost {step['unanswered']}"
            )


def measure_polite(bench: Bench, server: Server, directory: Path) -> None:
    kinds: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [
        ("voxelize", ("--points", 250000), ("--points", 25000, "--rate", 50, "--concurrency", 4))
    ]
    if bench.scans:
        for token in TOKENS:
            create = [
                "scene",
                "create",
                token,
                "--size",
                "0.1",
                "--material-bits",
                "8",
                "--track-free",
            ]
            bench.ctl(server.tcp, *create, token=token)
        scan = ("--mix", "scene_integrate:1", "--cloud", bench.scans[0], "--format", "kitti")
        kinds.append(("scans into scenes", scan, (*scan, "--rate", 15, "--concurrency", 4)))
    for kind, greedy, polite in kinds:
        print(f"three polite clients at a set rate, alone and beside greedy ones: {kind}")
        for n_greedy in (0, N_GREEDY, 100):
            others = []
            if n_greedy:
                more = ("--scene", "greedy") if "scans" in kind else ()
                others = [
                    bench.start(
                        server.tcp, *greedy, *more, "--concurrency", n_greedy,
                        seconds=bench.seconds + 1.5, token="greedy",
                    )
                ]  # fmt: skip
                time.sleep(1)
            calls = []
            for token in TOKENS[1:]:
                more = ("--scene", token) if "scans" in kind else ()
                calls.append(bench.start(server.tcp, *polite, *more, token=token))
            steps = [bench.parse(call)[0] for call in calls]
            done = sum(s["ok"] for s in steps) / sum(s["count"] + s["unsent"] for s in steps)
            worst = max(steps, key=lambda s: s["latency_ms"]["p99"])
            row_of(
                f"beside {n_greedy}: the worst of three", worst, f"done {100 * done:.1f} % of all"
            )
            for other in others:
                (step,) = bench.parse(other)
                row_of(f"  the {n_greedy}", step)
                if step["rejected_ms"]["n"]:
                    row("  refused", step["rejected_ms"])


PARTS = {
    "cloud": measure_cloud,
    "clients": measure_clients,
    "small": measure_small,
    "durable": measure_durable,
    "overload": measure_overload,
    "polite": measure_polite,
}
SHARED = ("overload", "polite")  # with tokens and a short queue


def main() -> None:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("root", type=Path)
    parser.add_argument("--backend", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--scan", type=Path, action="append", default=[])
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    wanted = options.only.split(",")
    programs = Programs(options.root.resolve())
    bench = Bench(programs, options.seconds, [scan.resolve() for scan in options.scan])
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vw") as name:
        directory = Path(name)
        tokens = directory / "tokens"
        tokens.write_text(
            "".join(
                f"{t} read,write {hashlib.sha256(f'secret-of-{t}'.encode()).hexdigest()}\n"
                for t in TOKENS
            )
        )
        tokens.chmod(0o600)
        for is_shared in (False, True):
            parts = [part for part in PARTS if part in wanted and (part in SHARED) == is_shared]
            if not parts:
                continue
            config: dict[str, Any] = {
                "limits": {"shared_bytes": 4 << 30, "inflight_bytes": 4 << 30}
            }
            if is_shared:
                config = {"limits": {"queue": 32}}
            for key, value in (pair.split("=") for pair in options.set):
                section, member = key.split(".")
                config[section] = config.get(section, {}) | {member: int(value)}
            for part in parts:
                if part == "polite":
                    config |= {"auth": {"tokens_file": str(tokens)}}
                server = Server(programs, directory / part, options.backend, **config)
                try:
                    PARTS[part](bench, server, directory / part)
                except Failure as failure:  # the others may do
                    print(f"FAILED: {failure}\n{server.log.read_text()[-2000:]}")
                finally:
                    server.end()
                print(f"-- {part}: {time.monotonic() - begin:.0f} s in all\n", flush=True)


if __name__ == "__main__":
    main()
