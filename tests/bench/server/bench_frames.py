# SPDX-License-Identifier: Apache-2.0
"""Frames a second over loopback: JPEG pictures of a scene from a camera that goes around it, two of
them under way at a time, as a browser's view asks for them.

usage: bench_frames.py BIN_DIR [--size 1280x720] [--seconds 5] [--flights 2] [--depth 13]

BIN_DIR has voxeld, of a build tree or a bundle. The floor is the same requests for one pixel."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIDE_M = 40.0


@contextlib.contextmanager
def daemon(program: Path, folder: Path) -> Iterator[int]:
    """A daemon with an ephemeral port, which is in its line "ready"."""
    config = folder / "voxeld.json"
    listen = {"rpc": [f"ipc://{folder}/rpc.sock"], "http": "127.0.0.1:0"}
    config.write_text(json.dumps({"listen": listen}))
    with subprocess.Popen(
        [program, "--config", config], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            port = 0
            for line in process.stderr or ():
                entry = json.loads(line) if line.startswith("{") else {}
                if entry.get("msg") == "ready":
                    port = int(entry["http"].rsplit(":", 1)[1])
                    print(f"{entry['backend']}, {entry['device']}")
                    break
            threading.Thread(target=lambda: list(process.stderr or ()), daemon=True).start()
            yield port
        finally:
            process.terminate()
            process.wait(30)


def post(port: int, method: str, **body: Any) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Content-Type": "application/json", "X-Voxeld-Timeout-Ms": "60000"}
    connection.request("POST", f"/v1/{method}", json.dumps(body), headers)
    reply = json.loads(connection.getresponse().read())
    if "code" in reply and "message" in reply:
        raise SystemExit(f"{method}: {reply}")
    return dict(reply)


def make_scene(port: int, depth: int) -> None:
    """Rows of balls on a ground."""
    palette = [{"rgb": c} for c in (0x8D8478, 0x4F7A3A, 0xC2B280, 0xB5482F)]
    spec = {"voxelSizeM": SIDE_M / 2**depth, "depth": depth, "materialBits": 4, "palette": palette}
    post(port, "scene_create", name="balls", spec=spec)
    low, high = {"x": -19, "y": -19, "z": -3}, {"x": 19, "y": 19, "z": -2}
    operations: list[dict[str, Any]] = [{"box": {"low": low, "high": high}, "material": 1}]
    operations += [
        {"ball": {"centre": {"x": x, "y": y, "z": -1}, "radius": 1.4}, "material": (x + y) % 3 + 1}
        for x in range(-16, 17, 4) for y in range(-16, 17, 4)
    ]  # fmt: skip
    post(port, "scene_edit", name="balls", operations=operations)


def fly(
    port: int, size: str, first: int, step: int, end: float, out: list[tuple[float, int]]
) -> None:
    """Asks for every step-th frame on one connection until the time is over."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    k = first
    while time.monotonic() < end:
        angle = 2 * math.pi * k / 240
        eye = f"{26 * math.cos(angle):.4f},{26 * math.sin(angle):.4f},11"
        began = time.monotonic()
        connection.request(
            "GET", f"/v1/scenes/balls/image.jpg?eye={eye}&look=0,0,-2&size={size}&quality=85"
        )
        reply = connection.getresponse()
        n_bytes = len(reply.read())
        if reply.status != 200:
            raise SystemExit(f"status {reply.status}")
        out.append((time.monotonic() - began, n_bytes))
        k += step


def measure(port: int, size: str, seconds: float, n_flights: int) -> str:
    frames: list[tuple[float, int]] = []
    began = time.monotonic()
    threads = [
        threading.Thread(target=fly, args=(port, size, i, n_flights, began + seconds, frames))
        for i in range(n_flights)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    times = sorted(t for t, _ in frames)
    kib = sum(n for _, n in frames) / len(frames) / 1024
    return (
        f"{size}: {len(frames) / took:.1f} frames a second,"
        f" median {1e3 * times[len(times) // 2]:.1f} ms,"
        f" p99 {1e3 * times[int(len(times) * 0.99)]:.1f} ms, {kib:.0f} KiB each"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=Path)
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--flights", type=int, default=2)
    parser.add_argument("--depth", type=int, default=13)
    options = parser.parse_args()
    if not re.fullmatch(r"[0-9]+x[0-9]+", options.size):
        parser.error("--size is WIDTHxHEIGHT")
    with tempfile.TemporaryDirectory() as name, daemon(options.bin / "voxeld", Path(name)) as port:
        make_scene(port, options.depth)
        measure(port, options.size, 1, options.flights)  # warm
        print(measure(port, options.size, options.seconds, options.flights))
        print(measure(port, "1x1", min(options.seconds, 2), options.flights))


if __name__ == "__main__":
    main()
