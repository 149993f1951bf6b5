#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of what a shared daemon promises: how long a start takes with a gigabyte of data, what an
idle daemon costs, and what TLS costs.

usage: bench_trust.py BIN ready|idle|tls

BIN is the folder of voxeld and voxelctl. Data directories are made on the disk of $TMPDIR. `ready`
times a start after a clean stop, whose snapshot file is read, and one after a kill, which reads it,
too; `idle` looks at 30 s; `tls` runs voxelctl bench by each transport in turn, twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "client" / "python"), str(ROOT / "tests/integration/support")]
import voxeld  # noqa: E402
from certificates import Authority  # noqa: E402

BIN = Path(sys.argv[1])


class Server:
    """A daemon in a directory; it is ready when this returns, after .seconds."""

    def __init__(self, directory: Path, **config: Any) -> None:
        base: dict[str, Any] = {
            "listen": {"rpc": [f"ipc://{directory}/v.sock"], "http": "127.0.0.1:0"},
            "data_dir": str(directory / "data"),
            "engine": {"backend": "cpu", "threads": 2, "device_bytes": 8 << 30},
            "drain": {"grace_ms": 0},
        }
        path = directory / "voxeld.json"
        path.write_text(json.dumps(base | config))
        begin = time.monotonic()
        self.process = subprocess.Popen(
            [BIN / "voxeld", "--config", path], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        ready: dict[str, Any] = {}
        while ready.get("msg") != "ready":
            ready = json.loads(self.process.stderr.readline())
        self.seconds = time.monotonic() - begin
        self.urls = ready["rpc"].split(",")
        self.http = ready["http"]
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait()

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def n_bytes(directory: Path) -> int:
    return sum(p.stat().st_size for p in directory.rglob("*") if p.is_file())


def ready(directory: Path) -> None:
    server = Server(directory)
    rng = np.random.default_rng(1)
    with voxeld.connect(server.urls[0], timeout=60) as client:
        big = client.map_create("big", {"v": (np.float32, 240)}, durable="off")
        for i in range(40):
            keys = np.arange(3 * 25_000, dtype=np.int32).reshape(-1, 3) + i * 75_000
            big.insert(keys, {"v": rng.random((len(keys), 240), np.float32)})
    server.end(signal.SIGTERM)
    for how in (signal.SIGTERM, signal.SIGKILL):
        server = Server(directory)
        size = n_bytes(directory / "data")
        print(f"ready after {server.seconds:.2f} s, {size / 1e9:.2f} GB", flush=True)
        server.end(how)
    server = Server(directory)
    print(f"ready after {server.seconds:.2f} s, killed before", flush=True)
    server.end(signal.SIGTERM)


def idle(directory: Path) -> None:
    server = Server(directory)
    time.sleep(2)
    begin, seconds = server.cpu_s(), 30
    time.sleep(seconds)
    print(f"idle: {(server.cpu_s() - begin) / seconds * 100:.2f} % of a core")
    server.end(signal.SIGTERM)


def tls(directory: Path) -> None:
    authority = Authority(directory, "ours")
    pair = authority.sign_server()
    server = Server(
        directory,
        listen={
            "rpc": [f"ipc://{directory}/v.sock", "tcp://127.0.0.1:0", "tls+tcp://127.0.0.1:0"],
            "http": "127.0.0.1:0",
        },
        tls={"certificate": str(pair.certificate), "key": str(pair.key)},
    )
    urls = [*server.urls, f"http://{server.http}"]
    for _ in range(2):
        for url in urls:
            url = url.replace("tls+tcp://127.0.0.1", "tls+tcp://localhost")
            for mix in (["--mix", "status:1"], ["--points", "250000"]):
                command = [BIN / "voxelctl", "--url", url, "--ca-file", authority.certificate]
                command += ["--json", "bench", "--duration", "3", *mix]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                seen = json.loads(done.stdout)["steps"][0]["methods"][0]["latency_ms"]
                scheme = url.split(":")[0]
                print(f"{scheme} {mix[-1]}: p50 {seen['p50']:.2f}, p99 {seen['p99']:.2f} ms")
    server.end(signal.SIGTERM)


def main() -> None:
    runs = {"ready": ready, "idle": idle, "tls": tls}
    with tempfile.TemporaryDirectory(prefix="vt") as directory:
        runs[sys.argv[2]](Path(directory))


if __name__ == "__main__":
    main()
