# SPDX-License-Identifier: Apache-2.0
"""A textured room with boxes and balls that NumPy ray-traces, seen by a camera on a closed loop,
with the depth noise of a Kinect; and how far a trajectory is from the truth.

    room_scene.py OUT.frames [N [WIDTH HEIGHT]]

packs N frames of a loop of 10.6 m for bench_track, in the format of rgbd_frames.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

HALF = np.array([3.0, 1.3, 3.0])  # of the room; y points down
RADIUS = 1.7  # of the loop


def _things() -> tuple[np.ndarray, np.ndarray]:
    """Boxes as low and high corner, and balls as centre and radius, around the loop."""
    random = np.random.default_rng(25)
    boxes, balls = [], []
    for i in range(18):
        angle = 2 * np.pi * i / 18 + random.uniform(-0.1, 0.1)
        middle = random.uniform(2.4, 2.8) * np.array([np.sin(angle), np.cos(angle)])
        size, top = random.uniform(0.15, 0.4, 2), random.uniform(-0.4, 0.8)
        low = [middle[0] - size[0], top, middle[1] - size[1]]
        boxes.append([*low, middle[0] + size[0], HALF[1], middle[1] + size[1]])
        angle += np.pi / 18
        at = random.uniform(2.2, 2.7) * np.array([np.sin(angle), np.cos(angle)])
        balls.append([at[0], random.uniform(-0.6, 1.0), at[1], random.uniform(0.15, 0.35)])
    boxes.append([-0.5, 0.5, -0.5, 0.5, HALF[1], 0.5])  # a table in the middle
    balls.append([0.0, 0.2, 0.0, 0.3])
    return np.array(boxes), np.array(balls)


BOXES, BALLS = _things()


def loop_pose(i: int, n: int) -> np.ndarray:
    """T_map_camera at step i of n; step n is step 0 again."""
    a = 2 * np.pi * i / n
    eye = [RADIUS * np.sin(a), 0.15 * np.sin(3 * a), RADIUS * np.cos(a)]
    yaw = a + np.pi / 2 + 0.25 * np.sin(2 * a)  # along the loop, and a little to its sides
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler(
        "YXZ", [yaw, -0.15 + 0.08 * np.sin(4 * a), 0.06 * np.sin(2 * a)]
    ).as_matrix()
    pose[:3, 3] = eye
    return pose


def _cast(origin: np.ndarray, d: np.ndarray) -> np.ndarray:
    """z of the nearest surface along rays with z = 1 in the camera's frame."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(d > 0, (HALF - origin) / d, (-HALF - origin) / d).min(-1)
        for box in BOXES:
            a, b = (box[:3] - origin) / d, (box[3:] - origin) / d
            enter, leave = np.minimum(a, b).max(-1), np.maximum(a, b).min(-1)
            z = np.where((enter < leave) & (enter > 0) & (enter < z), enter, z)
        dd = (d * d).sum(-1)
        for ball in BALLS:
            m = origin - ball[:3]
            b = d @ m
            root = b * b - dd * (m @ m - ball[3] ** 2)
            at = (-b - np.sqrt(np.maximum(root, 0))) / dd
            z = np.where((root > 0) & (at > 0) & (at < z), at, z)
    return z


def _paint(p: np.ndarray) -> np.ndarray:
    """Smooth waves and patches, rgb8."""
    x, y, z = np.moveaxis(p, -1, 0)
    waves = np.sin(7 * x + 4 * y) + np.sin(11 * y - 6 * z) + np.sin(9 * z + 13 * x - 5 * y)
    patches = np.tanh(6 * np.sin(5 * x) * np.sin(6 * y + 1) * np.sin(5 * z + 2))
    grey = 128 + 22 * waves + 40 * patches
    tint = np.stack([np.sin(2 * x + k) for k in range(3)], -1)
    return np.clip(grey[..., None] + 15 * tint, 0, 255).astype(np.uint8)


def render(
    pose: np.ndarray, camera: tuple[int, int, float], seed: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Depth in millimetres (uint16) and colours of a camera (width, height, focal length); seed
    None: without noise."""
    width, height, focal = camera
    v, u = np.mgrid[:height, :width].astype(np.float32)
    rays = np.stack(
        [(u - (width - 1) / 2) / focal, (v - (height - 1) / 2) / focal, np.ones_like(u)], -1
    )
    d = rays @ pose[:3, :3].T.astype(np.float32)
    origin = pose[:3, 3].astype(np.float32)
    z = _cast(origin, d)
    colour = _paint(origin + z[..., None] * d)
    if seed is not None:
        sigma = 0.0012 + 0.0019 * (z - 0.4) ** 2
        z = z + sigma * np.random.default_rng(seed).standard_normal(z.shape)
    return np.clip(np.round(1000 * z), 0, 65534).astype(np.uint16), colour


def align(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Moves positions (n x 3) rigidly onto others, by least squares (Umeyama)."""
    a, b = found - found.mean(0), truth - truth.mean(0)
    u, _, vt = np.linalg.svd(b.T @ a)
    turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return a @ turn.T + truth.mean(0)


def errors(found: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Errors of poses (n x 4 x 4) in millimetres and degrees: rms of positions as they are and
    aligned, and of the movement between frames."""

    def rms(values: np.ndarray) -> float:
        return float(np.sqrt(np.mean(values**2)))

    p, q = found[:, :3, 3], truth[:, :3, 3]
    steps = [np.linalg.inv(t[:-1]) @ t[1:] for t in (found, truth)]
    off = np.linalg.inv(steps[1]) @ steps[0]
    turned = Rotation.from_matrix(off[:, :3, :3]).magnitude() * 180 / np.pi
    return {
        "ate_mm": 1e3 * rms(np.linalg.norm(p - q, axis=1)),
        "ate_aligned_mm": 1e3 * rms(np.linalg.norm(align(p, q) - q, axis=1)),
        "rpe_mm": 1e3 * rms(np.linalg.norm(off[:, :3, 3], axis=1)),
        "rpe_deg": rms(turned),
    }


def main() -> int:
    if len(sys.argv) not in (2, 3, 5):
        print(__doc__, file=sys.stderr)
        return 2
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    width, height = (int(v) for v in sys.argv[3:5]) if len(sys.argv) > 3 else (640, 480)
    focal = 0.9 * width
    with Path(sys.argv[1]).open("wb") as out:
        centre = f"{(width - 1) / 2} {(height - 1) / 2}"
        out.write(f"voxeld-frames {n} {width} {height} {focal} {focal} {centre}\n".encode())
        for i in range(n):
            pose = loop_pose(i, n - 1)
            depth, colour = render(pose, (width, height, focal), i)
            out.write(pose.astype("<f8").tobytes() + depth.astype("<u2").tobytes())
            out.write(colour.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
