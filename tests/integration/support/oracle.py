# SPDX-License-Identifier: Apache-2.0
"""Voxelization in NumPy, written from the schema's words alone."""

from __future__ import annotations

import numpy as np


def morton(coords: np.ndarray) -> np.ndarray:
    """Computes the keys of n x 3 coordinates: biased by 2^20, per level bits x*4 + y*2 + z."""
    biased = coords.astype(np.int64) + (1 << 20)
    key = np.zeros(len(coords), dtype=np.uint64)
    for level in range(21):
        for axis in range(3):
            bit = ((biased[:, axis] >> level) & 1).astype(np.uint64)
            key |= bit << np.uint64(3 * level + 2 - axis)
    return key


def coordinates(
    points: np.ndarray,
    size: float,
    rule: str,
    low: tuple[float, ...] | None = None,
    high: tuple[float, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Computes each point's coordinate, and which points have one. All in float32."""
    points = points.astype(np.float32)
    step = np.float32(size)
    finite = np.isfinite(points).all(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        if rule == "spconv":
            assert low is not None and high is not None
            start = np.asarray(low, np.float32)
            cells = np.round((np.asarray(high, np.float32) - start) / step)
            q = np.floor((points - start) / step)
            kept = ((q >= 0) & (q < cells)).all(axis=1)
        else:
            q = np.floor(points / step)
            kept = (np.abs(q + 0.5) < 2**20).all(axis=1)
            if low is not None and high is not None:
                kept &= (points >= np.asarray(low, np.float32)).all(axis=1)
                kept &= (points < np.asarray(high, np.float32)).all(axis=1)
    kept &= finite
    return np.where(kept[:, None], q, 0).astype(np.int32), kept


class Voxels:
    """Computes the unique voxels in Morton order with counts, inverse map and mean."""

    def __init__(self, points: np.ndarray, features: np.ndarray, size: float, rule: str,
                 low: tuple[float, ...] | None = None,
                 high: tuple[float, ...] | None = None) -> None:
        coords, kept = coordinates(points, size, rule, low, high)
        keys = morton(coords[kept])
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        self.coords = coords[kept][first]
        self.counts = np.bincount(inverse, minlength=len(first))
        self.inverse = np.full(len(points), -1, np.int64)
        self.inverse[kept] = inverse
        sums = np.zeros((len(first), features.shape[1]))
        np.add.at(sums, inverse, features[kept].astype(np.float64))
        self.mean = sums / np.maximum(self.counts, 1)[:, None]
