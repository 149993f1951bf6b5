#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs a folder of 7-Scenes frames into the one file that bench_volume reads:

    rgbd_frames.py ../shared/data/rgbd/7scenes /tmp/7scenes.frames

A line "voxeld-frames N WIDTH HEIGHT FX FY CX CY", then of each frame 16 float64 (the pose
T_map_camera, row-major), WIDTH x HEIGHT uint16 millimetres, and as many rgb8 pixels. Needs NumPy
and Pillow. The frames are for non-commercial use and stay outside of this repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    k = np.loadtxt(folder / "camera-intrinsics.txt")
    depths = sorted(folder.glob("frame-*.depth.png"))
    with Path(sys.argv[2]).open("wb") as out:
        for i, path in enumerate(depths):
            depth = np.array(Image.open(path)).astype("<u2")
            stem = path.name.removesuffix(".depth.png")
            colour = np.array(Image.open(folder / f"{stem}.color.jpg").convert("RGB"))
            pose = np.loadtxt(folder / f"{stem}.pose.txt").astype("<f8")
            u, _, vt = np.linalg.svd(pose[:3, :3])  # files have six digits
            pose[:3, :3] = u @ vt
            height, width = depth.shape
            if i == 0:
                intrinsics = " ".join(str(v) for v in (k[0, 0], k[1, 1], k[0, 2], k[1, 2]))
                out.write(f"voxeld-frames {len(depths)} {width} {height} {intrinsics}\n".encode())
            out.write(pose.tobytes() + depth.tobytes() + colour.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
