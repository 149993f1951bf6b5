#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times Open3D's VoxelBlockGrid on the frames of bench_volume, in the paper's two modes:

    pip install open3d-cpu && bench_open3d_volume.py /tmp/7scenes.frames [N]

Prints medians over N frames, wall clock and CPU time of the process (Open3D uses all cores). All
frames are integrated once before, as in bench_volume.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import open3d as o3d
import open3d.core as o3c
from check_volume import Frames


VOXEL_M = 0.0058
TRUNCATION = 0.04 / VOXEL_M  # voxels


def timed(call: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def row(name: str, times: list[tuple[float, float]]) -> None:
    wall, cpu = (1e3 * statistics.median(t[i] for t in times) for i in (0, 1))
    print(f"| {name} | {wall:.1f} | {cpu:.1f} |")


def run(f: Frames, n: int, name: str, edge: int, with_colour: bool) -> None:
    names, types, shapes = ["tsdf", "weight"], [o3c.float32, o3c.float32], [(1,), (1,)]
    if with_colour:
        names, types, shapes = [*names, "color"], [*types, o3c.float32], [*shapes, (3,)]
    grid = o3d.t.geometry.VoxelBlockGrid(
        tuple(names), tuple(types), tuple(shapes), VOXEL_M, edge, 40000, o3c.Device("CPU:0")
    )
    k = o3c.Tensor(np.array([[f.fx, 0, f.cx], [0, f.fy, f.cy], [0, 0, 1]]))
    integrate, cast = [], []
    for again in (False, True):
        for i in range(n):
            pose, z = f.frame(i)
            at = f.start + i * (128 + 5 * f.width * f.height) + 128 + 2 * f.width * f.height
            rgb = np.frombuffer(f.data, np.uint8, 3 * f.width * f.height, at)
            depth = o3d.t.geometry.Image(np.ascontiguousarray(np.rint(z * 1000), np.uint16))
            colour = o3d.t.geometry.Image(rgb.reshape(f.height, f.width, 3).copy())
            t = o3c.Tensor(np.linalg.inv(pose))
            images = [depth, colour] if with_colour else [depth]

            def fuse(depth: object = depth, t: object = t, images: list = images) -> None:
                blocks = grid.compute_unique_block_coordinates(depth, k, t, 1000.0, 3.0, TRUNCATION)
                grid.integrate(blocks, *images, *([k] * len(images)), t, 1000.0, 3.0, TRUNCATION)

            times = timed(fuse)
            if again:
                integrate.append(times)
                blocks = grid.compute_unique_block_coordinates(depth, k, t, 1000.0, 3.0, TRUNCATION)
                outputs = ["depth", "vertex", "normal"] + (["color"] if with_colour else [])
                cast.append(timed(lambda b=blocks, t=t, o=outputs: grid.ray_cast(
                    b, k, t, f.width, f.height, o, 1000.0, 0.2, 3.0, 1.0, TRUNCATION)))  # fmt: skip
    row(f"integrate {name}", integrate)
    row(f"cast {name}", cast)


def main() -> int:
    f = Frames(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else f.n
    print(f"Open3D {o3d.__version__}, {n} frames\n\n| what | wall, ms | CPU, ms |\n|---|---:|---:|")
    run(f, n, "fast 8^3", 8, False)
    run(f, n, "complete 16^3 + colour", 16, True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
