#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times durable volumes: what an image costs beside one in memory, the bytes that the journal keeps
of it, a start that integrates all of them again, and a copy, whose record has the blocks.

usage: bench_volume_durable.py VOXELD FOLDER [BLOCK]
       bench_volume_durable.py VOXELD --scans SCAN.bin...

Scans are KITTI's .bin files, 0.1 m, truncation 0.4 m, to 50 m, along rays and by range image, with
and without carving; each is added ten times, a metre farther on. FOLDER has frames as of 7-Scenes
(rgbd_frames.py says which): 5.8 mm, truncation 4 cm, 0.2 to 3 m. Images go as raw uint16, and once
as the PNG files that they are. The floor of a record is a copy of its bytes in memory. A fresh data
directory for each row, on the disk of $TMPDIR."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "client" / "python"))
import voxeld  # noqa: E402

SIZE, TRUNCATION = 0.0058, 0.04


class Server:
    """A daemon in a directory; it is ready when this returns, after so many seconds."""

    def __init__(self, program: str, directory: Path) -> None:
        config = {
            "listen": {"rpc": [f"ipc://{directory}/v.sock"], "http": ""},
            "data_dir": str(directory / "data"),
        }
        path = directory / "voxeld.json"
        path.write_text(json.dumps(config))
        start = time.perf_counter()
        self.process = subprocess.Popen([program, "--config", path], stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL)  # fmt: skip
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if b'"ready"' in line:
                break
        self.start_s = time.perf_counter() - start
        self.client = voxeld.connect(f"ipc://{directory}/v.sock", timeout=60)

    def kill(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def frames_of(folder: Path) -> tuple[voxeld.Camera, list[tuple[Any, bytes, voxeld.Pose]]]:
    k = np.loadtxt(folder / "camera-intrinsics.txt")
    frames = []
    for path in sorted(folder.glob("frame-*.depth.png")):
        pose = np.loadtxt(folder / f"{path.name.removesuffix('.depth.png')}.pose.txt")
        u, _, vt = np.linalg.svd(pose[:3, :3])
        turn = Rotation.from_matrix(u @ vt).as_quat()
        depth = np.array(Image.open(path)).astype("<u2")
        frames.append((depth, path.read_bytes(), voxeld.Pose(tuple(pose[:3, 3]), tuple(turn))))
    height, width = frames[0][0].shape
    camera = voxeld.Camera(width=width, height=height, fx=k[0, 0], fy=k[1, 1], cx=k[0, 2],
                           cy=k[1, 2])  # fmt: skip
    return camera, frames


def disk_bytes(directory: Path) -> int:
    return sum(p.stat().st_size for p in (directory / "data").glob("voxeld.db*"))


def record_bytes(directory: Path) -> int:
    """Of all records of the journal, which nobody writes to."""
    with contextlib.closing(sqlite3.connect(directory / "data" / "voxeld.db")) as database:
        (n_bytes,) = database.execute("select sum(length(bytes)) from records").fetchone()
    return n_bytes


def run(
    program: str, folder: Path, block: int, durable: str | None, as_png: bool
) -> dict[str, float]:
    camera, frames = frames_of(folder)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        server = Server(program, directory)
        volume = server.client.volume_create(
            "v", SIZE, truncation_m=TRUNCATION, block=block, durable=durable,
            journal_max_bytes=1 << 40 if durable else 0,
        )  # fmt: skip
        before = disk_bytes(directory)
        times, engine = [], []
        for depth, png, pose in frames:
            start = time.perf_counter()
            data, kind = (png, "file") if as_png else (depth.tobytes(), "uint16")
            done = volume.integrate_bytes(data, camera, pose, depth_type=kind, depth_min_m=0.2,
                                          depth_max_m=3.0)  # fmt: skip
            times.append(1e3 * (time.perf_counter() - start))
            engine.append(done.engine_ms)
        info = volume.info()
        found = {
            "ms": float(np.median(times[5:])),
            "engine": float(np.median(engine[5:])),
            "bytes": (disk_bytes(directory) - before) / len(frames),
            "blocks": info.n_blocks,
            "volume": info.n_bytes,
        }
        if durable is not None:
            server.kill()
            server = Server(program, directory)
            assert server.client.volume("v").info().stamp == info.stamp
            found["start"] = server.start_s
            start = time.perf_counter()
            before = disk_bytes(directory)
            server.client.volume("v").copy("w", durable=durable)
            found["copy"] = 1e3 * (time.perf_counter() - start)
            found["copied"] = disk_bytes(directory) - before
        server.kill()
        return found


def scan_rows(program: str, paths: list[str]) -> None:
    """A row for each way of adding scans: time, bytes of the journal, and a start that replays."""
    scans = [np.fromfile(path, "<f4").reshape(-1, 4)[:, :3] for path in paths]
    lidar = voxeld.Lidar(rows=64, columns=2048, top_deg=2.5, bottom_deg=-25.0)
    rows: list[tuple[str, dict[str, Any]]] = [
        ("along rays", {}),
        ("along rays, carve 30 m", {"carve_m": 30.0}),
        ("range image", {"lidar": lidar}),
    ]
    n_points = sum(len(scan) for scan in scans) / len(scans)
    print(f"{os.cpu_count()} cores; {n_points:.0f} points a scan, {12 * n_points:.0f} bytes")
    print(f"{'':<24}{'ms':>8}{'engine':>8}{'bytes a scan':>14}{'start s':>9}{'ms a scan':>11}")
    for name, more in rows:
        with tempfile.TemporaryDirectory() as directory_name:
            directory = Path(directory_name)
            server = Server(program, directory)
            empty_start = server.start_s
            volume = server.client.volume_create(
                "v", 0.1, truncation_m=0.4, durable="everysec", journal_max_bytes=1 << 40
            )
            times, engine = [], []
            for i in range(10 * len(scans)):
                start = time.perf_counter()
                done = volume.integrate_points(
                    scans[i % len(scans)],
                    voxeld.Pose((1.0 * i, 0.0, 0.0)),
                    range_max_m=50.0,
                    **more,
                )
                times.append(1e3 * (time.perf_counter() - start))
                engine.append(done.engine_ms)
            info = volume.info()
            server.kill()
            n_bytes = record_bytes(directory) / len(times)
            server = Server(program, directory)
            assert server.client.volume("v").info().stamp == info.stamp
            replay_ms = 1e3 * (server.start_s - empty_start) / len(times)
            print(
                f"{name:<24}{np.median(times):>8.1f}{np.median(engine):>8.1f}{n_bytes:>14.0f}"
                f"{server.start_s:>9.2f}{replay_ms:>11.1f}",
                flush=True,
            )
            server.kill()
    print(f"{info.n_blocks} blocks of 8^3, {info.n_bytes / 1e6:.1f} MB")


def main() -> None:
    if sys.argv[2] == "--scans":
        scan_rows(sys.argv[1], sys.argv[3:])
        return
    program, folder = sys.argv[1], Path(sys.argv[2])
    block = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    frame = np.zeros(640 * 480, np.uint16)
    start = time.perf_counter()
    for _ in range(100):
        frame.copy()
    print(f"{os.cpu_count()} cores; a copy of 640 x 480 x 2 bytes "
          f"{10 * (time.perf_counter() - start):.3f} ms")  # fmt: skip
    print(f"{'':<16}{'ms':>8}{'engine':>8}{'bytes':>10}{'start s':>9}{'copy ms':>9}{'MB':>7}")
    for durable, as_png in ((None, False), ("off", False), ("everysec", False),
                            ("always", False), ("everysec", True)):  # fmt: skip
        r = run(program, folder, block, durable, as_png)
        name = f"{durable or 'in memory'}{', PNG' if as_png else ''}"
        row = f"{name:<16}{r['ms']:>8.2f}{r['engine']:>8.2f}{r['bytes']:>10.0f}"
        if durable is not None:
            row += f"{r['start']:>9.2f}{r['copy']:>9.1f}{r['copied'] / 1e6:>7.1f}"
        print(row, flush=True)
    print(f"{r['blocks']} blocks of {block}^3, {r['volume'] / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
