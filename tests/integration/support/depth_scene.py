# SPDX-License-Identifier: Apache-2.0
"""A ball before a wall that NumPy renders, and volumes again in float64, as simply as possible."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation
from voxeld import Camera, Pose

BALL = np.array([0.05, -0.02, 1.1])
RADIUS = 0.32
WALL_Z = 1.7
CAMERA = Camera(width=160, height=120, fx=150.0, fy=148.0, cx=80.0, cy=59.0)


@dataclass(frozen=True)
class Shot:
    """A depth image in metres, its colours, and where it was taken."""

    depth: np.ndarray
    colour: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray

    @property
    def pose(self) -> Pose:
        return Pose(translation=tuple(self.translation), rotation=quaternion(self.rotation))

    @property
    def millimetres(self) -> np.ndarray:
        return np.round(self.depth * 1000).astype(np.uint16)

    @property
    def png(self) -> bytes:
        return png_of(self.millimetres)

    @property
    def matrix(self) -> np.ndarray:
        m = np.eye(4)
        m[:3, :3], m[:3, 3] = self.rotation, self.translation
        return m


def png_of(image: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "png")
    return out.getvalue()


def quaternion(rotation: np.ndarray) -> tuple[float, ...]:
    return tuple(Rotation.from_matrix(rotation).as_quat())


def distance(points: np.ndarray) -> np.ndarray:
    """How far points are from the scene's surface."""
    ball = np.abs(np.linalg.norm(points - BALL, axis=-1) - RADIUS)
    return np.minimum(ball, np.abs(points[..., 2] - WALL_Z))


def shoot(i: int) -> Shot:
    """Image `i` of a small arc around the ball."""
    angle = 0.25 * np.sin(1.3 * i)
    c, s = np.cos(angle), np.sin(angle)
    rotation = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    translation = np.array([-0.5 * s, 0.03 * i, 0.1])
    v, u = np.mgrid[: CAMERA.height, : CAMERA.width].astype(float)
    rays = np.stack(
        [(u - CAMERA.cx) / CAMERA.fx, (v - CAMERA.cy) / CAMERA.fy, np.ones_like(u)], -1
    )
    d = rays @ rotation.T  # z of the camera is 1
    wall = (WALL_Z - translation[2]) / d[..., 2]
    m = translation - BALL
    a, b, q = (d * d).sum(-1), d @ m, m @ m - RADIUS**2
    root = b * b - a * q
    ball = np.where(root > 0, (-b - np.sqrt(np.maximum(root, 0))) / a, np.inf)
    is_ball = ball < wall
    colour = np.where(is_ball[..., None], [200, 40, 30], [30, 90, 220]).astype(np.uint8)
    return Shot(np.where(is_ball, ball, wall).astype(np.float32), colour, rotation, translation)


class Grid:
    """Distances and weights of all voxels in a box, integrated in float64."""

    def __init__(self, low: np.ndarray, high: np.ndarray, size: float, truncation: float) -> None:
        self.low, self.size, self.truncation = low, size, truncation
        self.tsdf = np.zeros(high - low)
        self.weight = np.zeros(high - low)

    def integrate(self, shot: Shot) -> None:
        index = np.stack(np.indices(self.tsdf.shape), -1)
        p = ((index + self.low + 0.5) * self.size - shot.translation) @ shot.rotation
        z = p[..., 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.floor(p[..., 0] / z * CAMERA.fx + CAMERA.cx + 0.5)
            v = np.floor(p[..., 1] / z * CAMERA.fy + CAMERA.cy + 0.5)
        seen = (z > 0) & (u >= 0) & (v >= 0) & (u < CAMERA.width) & (v < CAMERA.height)
        depth = shot.depth[
            np.where(seen, v, 0).astype(int), np.where(seen, u, 0).astype(int)
        ].astype(float)
        d = (depth - z) / self.truncation
        seen &= d >= -1
        total = self.weight + 1
        mean = (self.tsdf * self.weight + np.minimum(d, 1)) / total
        self.tsdf = np.where(seen, mean, self.tsdf)
        self.weight = np.where(seen, total, self.weight)

    def keep_blocks(self, blocks: np.ndarray, edge: int) -> None:
        """Forgets what is in no block."""
        index = (np.stack(np.indices(self.tsdf.shape), -1) + self.low) // edge
        known = {tuple(b) for b in blocks.tolist()}
        inside = np.array([tuple(i) in known for i in index.reshape(-1, 3).tolist()])
        self.weight *= inside.reshape(self.weight.shape)

    def cells(self) -> np.ndarray:
        """Whether the eight voxels around a cell are known."""
        known = self.weight > 0
        n = known.shape
        cell = np.ones(tuple(k - 1 for k in n), bool)
        for x, y, z in np.ndindex(2, 2, 2):
            cell &= known[x : n[0] - 1 + x, y : n[1] - 1 + y, z : n[2] - 1 + z]
        return cell

    def used_edges(self) -> list[np.ndarray]:
        """By axis: whether the edge from a voxel upwards changes sign in such a cell."""
        known = self.weight > 0
        negative = (self.tsdf < 0) & known
        cell = self.cells()
        found = []
        for axis in range(3):
            others = [a for a in range(3) if a != axis]
            used = np.zeros(known.shape, bool)
            for i in (0, 1):
                for j in (0, 1):
                    part = [slice(0, n - 1) for n in known.shape]
                    part[others[0]] = slice(i, known.shape[others[0]] - 1 + i)
                    part[others[1]] = slice(j, known.shape[others[1]] - 1 + j)
                    used[tuple(part)] |= cell
            crosses = np.zeros(known.shape, bool)
            lower = [slice(None)] * 3
            lower[axis] = slice(0, known.shape[axis] - 1)
            crosses[tuple(lower)] = np.diff(negative, axis=axis)
            found.append(used & crosses)
        return found
