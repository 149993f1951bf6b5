#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what the Python client adds: bench_daemon's round trip of a scan, by voxeld.Client.

usage: bench_python.py URL SCAN.npy [SIZE_M [REPEAT]]"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "client" / "python"))
import voxeld  # noqa: E402

N_WARM_UP = 20


def main() -> None:
    url, path = sys.argv[1:3]
    size_m = float(sys.argv[3]) if len(sys.argv) > 3 else 0.1
    n_repeat = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    points = np.ascontiguousarray(np.load(path)[:, :3], np.float32)
    rows = []
    with voxeld.connect(url) as client:
        for _ in range(N_WARM_UP + n_repeat):
            start = time.perf_counter()
            voxels = client.voxelize(points, size=size_m)
            total_ms = (time.perf_counter() - start) * 1e3
            rows.append((total_ms, total_ms - voxels.engine_ms))
    p50, p99 = np.percentile(np.array(rows[N_WARM_UP:]), [50, 99], axis=0)
    print(f"{len(points)} points, {n_repeat} requests; milliseconds, p50 and p99")
    print(f"voxelize, round trip             {p50[0]:9.3f} {p99[0]:9.3f}")
    print(f"voxelize, less the engine's time {p50[1]:9.3f} {p99[1]:9.3f}")


if __name__ == "__main__":
    main()
