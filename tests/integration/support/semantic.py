# SPDX-License-Identifier: Apache-2.0
"""A network whose labels are a known function of the points, for tests of scans that go
through one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from harness import cloud_of, common_pb2
from networks import CONFIG, GRID, HIGH, LOW, SIZE, write_files

LABELS = ["below", "above", "ahead"]


def write_signs(directory: Path, name: str = "signs", **over: Any) -> None:
    """Writes a network with label 2 where x > 10, else 1 where z > 0, else 0; none outside its
    range. Voxels end at 10 and 0, so all points of one voxel have its label."""
    config = {
        **CONFIG,
        "name": name,
        "weights": {"file": f"{name}.safetensors", "layout": "krsc"},
        "input": {**CONFIG["input"], "features": ["x", "z"]},
        "layers": [
            {"name": "h", "op": "linear", "ch": 3, "act": None, "bn": None, "layout": "torch"}
        ],
        "outputs": [
            {"name": "labels", "from": "h", "as": "points", "argmax": True, "fill": -1,
             "labels": LABELS},
            {"name": "rows", "from": "h", "as": "voxels"},
        ],
        **over,
    }  # fmt: skip
    tensors = {
        "h.weight": np.array([[0, -1], [0, 1], [1000, 0]], np.float32),
        "h.bias": np.array([0, 0, -10000], np.float32),
    }
    write_files(directory, config, tensors)


def labels_of(points: np.ndarray) -> np.ndarray:
    """Computes that network's labels for points, n x 3 float32."""
    with np.errstate(invalid="ignore"):
        cells = np.floor((points - LOW) / SIZE)
        inside = ((points >= LOW) & (points < HIGH) & (cells >= 0) & (cells < GRID)).all(1)
        labels = np.where(points[:, 0] > 10, 2, (points[:, 2] > 0).astype(int))
    return np.where(inside, labels, -1)


def some_points(n: int = 20000, seed: int = 1) -> np.ndarray:
    """Makes points of all labels, and some without; none is near a border."""
    rng = np.random.default_rng(seed)
    points = rng.uniform((-20, -20, -3), (20, 20, 5), (n, 3)).astype(np.float32)
    points[np.abs(points[:, 2]) < 0.05, 2] = 0.3
    points[np.abs(points[:, 0] - 10) < 0.1, 0] = 9.8
    points[3] = np.nan
    return points


def cloud(points: np.ndarray, **members: Any) -> common_pb2.Cloud:
    return cloud_of(points, ["x", "y", "z"], **members)
