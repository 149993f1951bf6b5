#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tracks the frames of bench_track with Open3D, frame to model (its dense SLAM) and frame to frame
(RGB-D odometry), and prints their errors:

    pip install open3d-cpu scipy && bench_open3d_track.py FILE [N [VOXEL_MM]]

Both begin at the first frame's pose, so errors are of poses as they are. Times are medians over the
frames, wall clock and CPU time of the process (Open3D uses all cores).
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import numpy as np
import open3d as o3d
import open3d.core as o3c
from check_volume import Frames

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "integration" / "support"))
from room_scene import errors

DEPTH_MAX = 4.0
DEVICE = o3c.Device("CPU:0")


class Images:
    """Depth and colour of a frame as Open3D takes them."""

    def __init__(self, f: Frames, i: int) -> None:
        pose, z = f.frame(i)
        self.pose = np.array(pose, np.float64)
        at = f.start + i * (128 + 5 * f.width * f.height) + 128 + 2 * f.width * f.height
        rgb = np.frombuffer(f.data, np.uint8, 3 * f.width * f.height, at)
        self.depth = o3d.t.geometry.Image(
            np.ascontiguousarray(np.rint(z * 1000), np.uint16).reshape(f.height, f.width)
        )
        self.colour = o3d.t.geometry.Image(rgb.reshape(f.height, f.width, 3).copy())


def to_model(f: Frames, n: int, k: o3c.Tensor, voxel: float) -> tuple[list, list, list]:
    """Open3D's dense SLAM, as in its examples, with its own defaults."""
    start = o3c.Tensor(Images(f, 0).pose)
    model = o3d.t.pipelines.slam.Model(voxel, 16, 10000, start, DEVICE)
    now = o3d.t.pipelines.slam.Frame(f.height, f.width, k, DEVICE)
    seen = o3d.t.pipelines.slam.Frame(f.height, f.width, k, DEVICE)
    pose, found, truth, times = start, [], [], []
    for i in range(n):
        images = Images(f, i)
        now.set_data_from_image("depth", images.depth)
        now.set_data_from_image("color", images.colour)
        wall, cpu = time.perf_counter(), time.process_time()
        if i > 0:
            try:
                moved = model.track_frame_to_model(now, seen, 1000.0, DEPTH_MAX, 0.07)
                pose = pose @ moved.transformation
            except RuntimeError as e:
                print(f"frame {i}: {e}", file=sys.stderr)
        model.update_frame_pose(i, pose)
        model.integrate(now, 1000.0, DEPTH_MAX, 8.0)
        model.synthesize_model_frame(seen, 1000.0, 0.1, DEPTH_MAX, 8.0, False)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
        found.append(pose.numpy())
        truth.append(images.pose)
    return found, truth, times


def to_frame(f: Frames, n: int, k: o3c.Tensor) -> tuple[list, list, list]:
    """RGB-D odometry, hybrid, from each frame to the one before."""
    odometry = o3d.t.pipelines.odometry
    before = None
    pose, found, truth, times = Images(f, 0).pose, [], [], []
    for i in range(n):
        images = Images(f, i)
        now = o3d.t.geometry.RGBDImage(images.colour, images.depth)
        wall, cpu = time.perf_counter(), time.process_time()
        if before is not None:
            moved = odometry.rgbd_odometry_multi_scale(
                now, before, k, o3c.Tensor(np.eye(4)), 1000.0, DEPTH_MAX,
                method=odometry.Method.Hybrid,
            )
            pose = pose @ moved.transformation.numpy()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
        before = now
        found.append(pose)
        truth.append(images.pose)
    return found, truth, times


def row(name: str, found: list, truth: list, times: list) -> None:
    e = errors(np.array(found), np.array(truth))
    wall, cpu = (1e3 * statistics.median(t[i] for t in times) for i in (0, 1))
    print(
        f"| {name} | {e['ate_mm']:.1f} | {e['ate_aligned_mm']:.1f} | {e['rpe_mm']:.2f} | "
        f"{e['rpe_deg']:.3f} | {wall:.0f} | {cpu:.0f} |",
        flush=True,
    )


def main() -> int:
    f = Frames(Path(sys.argv[1]))
    n = min(f.n, int(sys.argv[2]) if len(sys.argv) > 2 else f.n)
    voxel = (float(sys.argv[3]) if len(sys.argv) > 3 else 10.0) / 1000
    k = o3c.Tensor(np.array([[f.fx, 0, f.cx], [0, f.fy, f.cy], [0, 0, 1.0]]))
    print("| | ATE rms as it is, mm | aligned, mm | RPE, mm | degrees | wall ms | CPU ms |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    found, truth, times = to_model(f, n, k, voxel)
    row("Open3D, frame to model", found, truth, times)
    row("standing still", [truth[0]] * n, truth, [(0.0, 0.0)])
    found, truth, times = to_frame(f, n, k)
    row("Open3D, frame to frame, hybrid", found, truth, times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
