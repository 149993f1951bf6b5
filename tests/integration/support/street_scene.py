# SPDX-License-Identifier: Apache-2.0
"""A street of boxes on flat ground that NumPy casts a turning lidar's rays through, with exact
poses: tests of odometry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation
from voxeld import Cloud, Pose

Array = npt.NDArray[np.float64]

BEAMS, COLUMNS, RANGE_M = 24, 500, 60.0
ELEVATIONS = np.radians(np.linspace(-22, 6, BEAMS))
HEIGHT = 1.8


def boxes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Low and high corners of houses, cars and posts along x."""
    low, high = [], []
    for side in (-1.0, 1.0):
        x = -60.0
        while x < 110:
            length, back = rng.uniform(4, 9), rng.uniform(6, 9)
            y = sorted((side * back, side * (back + 5)))
            low.append([x, y[0], 0])
            high.append([x + length, y[1], rng.uniform(3, 8)])
            x += length + rng.uniform(0.5, 4)
        for x in np.arange(-55, 105, 9.0):
            x += rng.uniform(-2, 2)
            y = side * 3.8
            low.append([x, y - 0.8, 0])
            high.append([x + 4, y + 0.8, 1.5])
            low.append([x + 6, side * 5 - 0.15, 0])
            high.append([x + 6.3, side * 5 + 0.15, 5])
    return np.array(low), np.array(high)


LOW, HIGH = boxes(np.random.default_rng(7))


def pose_at(step: float | Array) -> tuple[Rotation, Array]:
    """From rest to a metre a step, around gentle bends."""
    t = np.maximum(np.atleast_1d(np.asarray(step, float)), 0)
    x = np.where(t < 10, t * t / 20, t - 5)
    y, slope = 1.2 * np.sin(x / 12), 0.1 * np.cos(x / 12)
    angles = np.stack([np.arctan(slope), 0.008 * np.sin(t / 3), 0.005 * np.cos(t / 4)], 1)
    at = np.stack([x, y, HEIGHT + 0.03 * np.sin(t / 5)], 1)
    return Rotation.from_euler("ZYX", angles), at


def truth(step: float) -> Array:
    """The pose at a step in the frame of the one at step 0, a 4 x 4 matrix."""
    turn, at = pose_at(np.array([0.0, step]))
    matrix = np.eye(4)
    matrix[:3, :3] = (turn[0].inv() * turn[1]).as_matrix()
    matrix[:3, 3] = turn[0].inv().apply(at[1] - at[0])
    return matrix


def matrix_of(pose: Pose) -> Array:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(pose.rotation).as_matrix()
    matrix[:3, 3] = pose.translation
    return matrix


def apart(a: Array, b: Array) -> tuple[float, float]:
    """Metres and degrees between two poses."""
    between = np.linalg.inv(a) @ b
    turn = Rotation.from_matrix(between[:3, :3]).magnitude()
    return float(np.linalg.norm(between[:3, 3])), float(np.degrees(turn))


def shoot(step: float, *, moving: bool = False, seed: int = 0) -> tuple[Array, Array]:
    """Points of the scan that ends at a step, in the sensor's frame, and their times from 0 to 1;
    moving: each column is from where the sensor was at its time."""
    rng = np.random.default_rng(seed + int(1000 * step))
    time = np.repeat(np.arange(COLUMNS) / (COLUMNS - 1), BEAMS)
    azimuth = np.pi - 2 * np.pi * time
    elevation = np.tile(ELEVATIONS, COLUMNS)
    flat = np.cos(elevation)
    rays = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], 1)
    turn, origin = pose_at(step - 1 + time if moving else np.full(len(time), step))
    d = turn.apply(rays)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(d[:, 2] < 0, -origin[:, 2] / d[:, 2], np.inf)
        for low, high in zip(LOW, HIGH, strict=True):
            a, b = (low - origin) / d, (high - origin) / d
            near, far = np.minimum(a, b).max(1), np.maximum(a, b).min(1)
            t = np.where((near < far) & (near > 0), np.minimum(t, near), t)
    t += rng.normal(0, 0.01, len(t))
    is_seen = t < RANGE_M
    return (rays * t[:, None])[is_seen], time[is_seen]


def scan(step: float, *, moving: bool = False, seed: int = 0, **more: object) -> Cloud:
    """The same as a cloud with fields x y z t."""
    points, times = shoot(step, moving=moving, seed=seed)
    records = np.column_stack([points, times]).astype(np.float32)
    return Cloud.from_numpy(records, ("x", "y", "z", "t"), **more)


def elsewhere(n: int = 12000) -> Array:
    """Points of a place that was never seen."""
    points = np.random.default_rng(1).uniform([-30, -30, -20], [30, 30, 20], (n, 3))
    return points.astype(np.float32)
