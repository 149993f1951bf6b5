# SPDX-License-Identifier: Apache-2.0
"""Registers the scans of bench_odometry --write FOLDER with kiss-icp and small_gicp (PyPI, in a
venv of your own), and compares with the poses beside them.

    bench_odometry --street 40 --write FOLDER; bench_odometry_peers.py FOLDER [THREADS]

kiss-icp: voxels of 1 m, without deskewing. small_gicp: VGICP of points downsampled to 0.5 m against
a map of Gaussian voxels of 1 m, predicted at constant velocity, at most 20 steps. A line each:
median wall and CPU time of scans from the second on, error of the last scan."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def kiss(threads: int) -> Callable[[Array], Array]:
    from kiss_icp.config import load_config
    from kiss_icp.kiss_icp import KissICP

    config = load_config(None)
    config.data.deskew, config.mapping.voxel_size = False, 1.0
    config.registration.max_num_threads = threads
    odometry = KissICP(config)

    def register(points: Array) -> Array:
        odometry.register_frame(points, np.array([]))
        return np.array(odometry.last_pose)

    return register


def gicp(threads: int) -> Callable[[Array], Array]:
    import small_gicp

    voxels = small_gicp.GaussianVoxelMap(1.0)
    voxels.set_lru(horizon=100, clear_cycle=10)
    poses: list[Array] = []

    def register(points: Array) -> Array:
        points = points[np.linalg.norm(points, axis=1) < 100]
        source, _ = small_gicp.preprocess_points(
            points, downsampling_resolution=0.5, num_threads=threads
        )
        pose = np.eye(4)
        if poses:
            step = np.linalg.inv(poses[-2]) @ poses[-1] if len(poses) > 1 else np.eye(4)
            pose = small_gicp.align(
                voxels, source, poses[-1] @ step, num_threads=threads, max_iterations=20
            ).T_target_source
        voxels.insert(source, pose)
        poses.append(pose)
        return pose

    return register


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    folder, threads = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    known = np.loadtxt(folder / "poses.txt").reshape(-1, 3, 4)
    known = np.concatenate([known, np.tile([[[0, 0, 0, 1.0]]], (len(known), 1, 1))], 1)
    scans = sorted(folder.glob("*.bin"))
    clouds = [np.fromfile(s, np.float32).reshape(-1, 4)[:, :3].astype(np.float64) for s in scans]
    for name, make in (("kiss-icp", kiss), ("small_gicp", gicp)):
        register, walls, cpus = make(threads), [], []
        for points in clouds:
            wall, cpu = time.perf_counter(), time.process_time()
            pose = register(points)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
        off = np.linalg.inv(np.linalg.inv(known[0]) @ known[len(clouds) - 1]) @ pose
        degrees = np.degrees(np.arccos(np.clip((np.trace(off[:3, :3]) - 1) / 2, -1, 1)))
        print(
            f"{name}: {1e3 * np.median(walls[1:]):.1f} ms, CPU {1e3 * np.median(cpus[1:]):.1f}; "
            f"last scan {1e3 * np.linalg.norm(off[:3, 3]):.1f} mm, {degrees:.3f} degrees"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
