# SPDX-License-Identifier: Apache-2.0
"""A folder of depth images to a mesh, as they would come from a camera: one after the other, with
the mesh of what changed after each.

  pip install ./client/python
  python3 volume_mesh.py 7scenes/chess/seq-01 --fx 585 --cx 320 --cy 240 --out chess.ply

The folder is in 7-Scenes' layout: frame-000000.depth.png, .color.png, .pose.txt.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import voxeld


def integrate_folder(volume: voxeld.Volume, folder: Path, camera: voxeld.Camera) -> int:
    """Adds all images; prints how much of the mesh each one changed."""
    n, stamp = 0, 0
    for depth in sorted(folder.glob("*.depth.png")):
        frame = depth.name.removesuffix(".depth.png")
        pose = voxeld.Pose.from_matrix(np.loadtxt(folder / f"{frame}.pose.txt"))
        colour = folder / f"{frame}.color.png"
        volume.integrate_bytes(
            depth.read_bytes(), camera, pose,
            colour=colour.read_bytes() if colour.exists() else b"",
        )  # fmt: skip
        change = volume.extract(since=stamp)
        stamp = change.stamp
        print(f"{frame}: {change.n_blocks} blocks changed, {change.n_triangles} triangles in them")
        n += 1
    return n


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", default=None, help="default: $VOXELD_URL, or the local socket")
    parser.add_argument("--size", type=float, default=0.01, help="edge of a voxel, metres")
    parser.add_argument("--fx", type=float, required=True, help="focal length, pixels")
    parser.add_argument("--cx", type=float, required=True, help="principal point, pixels")
    parser.add_argument("--cy", type=float, required=True)
    parser.add_argument("--out", type=Path, default=Path("mesh.ply"))
    args = parser.parse_args()
    camera = voxeld.Camera(width=0, height=0, fx=args.fx, cx=args.cx, cy=args.cy)
    with voxeld.connect(args.url, timeout=60) as client:
        volume = client.volume_create("volume-mesh", args.size, colour=True, ttl_s=600)
        if integrate_folder(volume, args.folder, camera) == 0:
            sys.exit(f"{args.folder}: no image NAME.depth.png")
        print(f"{args.out}: {volume.extract_ply(args.out)} vertices")
        volume.drop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
