# SPDX-License-Identifier: Apache-2.0
"""Open3D's SLAC on the fragments that `bench_slac --out DIR` wrote, scored as bench_slac scores.

usage: bench_open3d_slac.py DIR [--iterations N] [--rigid]     (pip install open3d)
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import open3d as o3d
import open3d.core as o3c


def points_of(path: Path) -> np.ndarray:
    return np.asarray(o3d.io.read_point_cloud(str(path)).points)


def align(points: np.ndarray, truth: np.ndarray) -> np.ndarray:
    a, b = points - points.mean(0), truth - truth.mean(0)
    u, _, v = np.linalg.svd(a.T @ b)
    d = np.diag([1, 1, np.sign(np.linalg.det(u @ v))])
    return a @ (u @ d @ v) + truth.mean(0)


def near(points: np.ndarray, others: np.ndarray) -> float:
    """The part of points within 20 mm of others."""
    target = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(others))
    source = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points))
    return float((np.asarray(source.compute_point_cloud_distance(target)) < 0.02).mean())


def report(what: str, points: np.ndarray, truth: np.ndarray, seen: np.ndarray) -> None:
    points = align(points, truth)
    rms = 1e3 * np.sqrt(((points - truth) ** 2).sum(1).mean())
    precision, recall = near(points, seen), near(seen, points)
    f = 2 * precision * recall / (precision + recall)
    print(
        f"{what}: points {rms:.2f} mm rms from where they are, precision {100 * precision:.2f} "
        f"recall {100 * recall:.2f} F {100 * f:.2f} % at 20 mm"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--rigid", action="store_true")
    args = parser.parse_args()
    names = sorted(args.directory.glob("part-*.ply"))
    rows = np.loadtxt(args.directory / "poses.txt").reshape(-1, 3, 4)
    poses = np.concatenate([rows, np.tile([[[0, 0, 0, 1]]], (len(rows), 1, 1))], 1)
    fragments = [points_of(p) for p in names]
    truth = np.concatenate([points_of(p.with_name(p.name.replace("part", "true"))) for p in names])
    seen = points_of(args.directory / "truth.ply")
    voxels = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(seen)).voxel_down_sample(0.008)
    seen = np.asarray(voxels.points)

    graph = o3d.pipelines.registration.PoseGraph()
    for pose in poses:
        graph.nodes.append(o3d.pipelines.registration.PoseGraphNode(pose))
    boxes = [
        (p @ t[:3, :3].T + t[:3, 3]).min(0).tolist() + (p @ t[:3, :3].T + t[:3, 3]).max(0).tolist()
        for p, t in zip(fragments, poses, strict=True)
    ]
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            a, b = np.array(boxes[i]), np.array(boxes[j])
            if (a[:3] < b[3:] + 0.3).all() and (b[:3] < a[3:] + 0.3).all():
                graph.edges.append(
                    o3d.pipelines.registration.PoseGraphEdge(
                        i, j, np.linalg.inv(poses[j]) @ poses[i], np.eye(6), uncertain=False
                    )
                )
    slac = o3d.t.pipelines.slac
    option = slac.slac_optimizer_params(
        max_iterations=args.iterations,
        voxel_size=0.05,
        distance_threshold=0.07,
        fitness_threshold=0.3,
        regularizer_weight=1,
        device=o3c.Device("CPU:0"),
        slac_folder=str(args.directory / "open3d") + "/",
    )
    debug = slac.slac_debug_option(False, 0)
    (args.directory / "open3d").mkdir(exist_ok=True)
    files = [str(p) for p in names]
    begin, cpu = time.monotonic(), time.process_time()
    if args.rigid:
        after = slac.run_rigid_optimizer_for_fragments(files, graph, option, debug)
        grid = None
    else:
        after, grid = slac.run_slac_optimizer_for_fragments(files, graph, option, debug)
    print(
        f"Open3D {o3d.__version__}: {time.monotonic() - begin:.1f} s, "
        f"CPU {time.process_time() - cpu:.1f} s, {len(graph.edges)} edges"
    )
    moved, kept, first = [], [], 0
    for path, node in zip(names, after.nodes, strict=True):
        cloud = o3d.t.io.read_point_cloud(str(path))
        n = len(cloud.point.positions)
        index = np.arange(first, first + n, dtype=np.int64)
        if grid is not None:  # points outside of the grid are left out
            inside = grid.parameterize(cloud)
            given = cloud.point.positions.numpy()
            table = {p.tobytes(): k for p, k in zip(given, index, strict=True)}
            index = np.array([table[p.tobytes()] for p in inside.point.positions.numpy()])
            cloud = grid.deform(inside)
        p = cloud.point.positions.numpy()
        moved.append(p @ node.pose[:3, :3].T + node.pose[:3, 3])
        kept.append(index)
        first += n
    truth = truth[np.concatenate(kept)]
    report("rigid" if args.rigid else "slac", np.concatenate(moved), truth, seen)


if __name__ == "__main__":
    main()
