#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the weights of configs/networks/surfaces.json: one convolution of 5 x 5 x 5 voxels whose
numbers are chosen, not trained. A channel is how much the occupied voxels around one look like its
name:

  flat       many at the same height, few below and above: ground, roofs, tables
  upright    many straight below and above: walls, trunks, poles
  scattered  few neighbours at all: lone points, noise

  make_surfaces.py surfaces.safetensors
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

REACH = 2  # voxels on each side
LABELS = ("flat", "upright", "scattered")


def weights_at(x: int, y: int, z: int) -> tuple[float, float, float]:
    """What an occupied voxel there says for each label."""
    if (x, y, z) == (0, 0, 0):
        return 0.0, 0.0, 0.0
    near = max(abs(x), abs(y)) <= 1
    if z == 0:
        return (1.0 if near else 0.5), 0.0, 0.0
    if near:  # a slope has neighbours one voxel above and below, too
        return (-0.5 if abs(z) == 1 else -1.5), 1.0, 0.0
    return (0.25 if abs(z) == 1 else -0.5), 0.0, 0.0


def tensors() -> dict[str, tuple[list[int], list[float]]]:
    """Taps with the last axis fastest, one input channel."""
    span = range(-REACH, REACH + 1)
    kernel = [w for x in span for y in span for z in span for w in weights_at(x, y, z)]
    # Two and a half neighbours' worth before a voxel is more than scattered.
    return {
        "around.weight": ([len(span) ** 3, 1, len(LABELS)], kernel),
        "around.bias": ([len(LABELS)], [0.0, 0.0, 2.5]),
    }


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    head: dict[str, object] = {}
    data = b""
    for name, (shape, values) in tensors().items():
        packed = struct.pack(f"<{len(values)}f", *values)
        head[name] = {
            "dtype": "F32",
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(packed)],
        }
        data += packed
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    Path(sys.argv[1]).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
