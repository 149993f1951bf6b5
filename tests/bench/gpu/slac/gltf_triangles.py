# SPDX-License-Identifier: Apache-2.0
"""Writes the triangles of a glTF file (uncompressed, with a .bin beside it), each three corners
x y z as float32, y up turned to z up: what bench_slac renders.

usage: gltf_triangles.py SCENE.gltf OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

TYPES = {5121: "u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC3": 3}


def triangles_of(path: Path) -> np.ndarray:
    scene = json.loads(path.read_text())
    buffers = [(path.parent / b["uri"]).read_bytes() for b in scene["buffers"]]

    def accessor(i: int) -> np.ndarray:
        a = scene["accessors"][i]
        view = scene["bufferViews"][a["bufferView"]]
        dtype, width = np.dtype(TYPES[a["componentType"]]), WIDTHS[a["type"]]
        stride = view.get("byteStride", dtype.itemsize * width)
        start = view.get("byteOffset", 0) + a.get("byteOffset", 0)
        raw = np.frombuffer(buffers[view["buffer"]], "u1")
        rows = np.lib.stride_tricks.as_strided(
            raw[start:], (a["count"], dtype.itemsize * width), (stride, 1)
        )
        return np.ascontiguousarray(rows).view(dtype).reshape(a["count"], width)

    parts = []

    def walk(node: dict, matrix: np.ndarray) -> None:
        own = np.array(node.get("matrix", np.eye(4).ravel())).reshape(4, 4).T
        matrix = matrix @ own
        for p in scene["meshes"][node["mesh"]]["primitives"] if "mesh" in node else ():
            points = accessor(p["attributes"]["POSITION"]).astype(float)
            points = points @ matrix[:3, :3].T + matrix[:3, 3]
            parts.append(points[accessor(p["indices"]).ravel()].reshape(-1, 9))
        for child in node.get("children", ()):
            walk(scene["nodes"][child], matrix)

    for root in scene["scenes"][scene.get("scene", 0)]["nodes"]:
        walk(scene["nodes"][root], np.eye(4))
    corners = np.concatenate(parts).reshape(-1, 3)
    return (corners @ np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])).reshape(-1, 9)


def main() -> None:
    triangles = triangles_of(Path(sys.argv[1])).astype("<f4")
    Path(sys.argv[2]).write_bytes(triangles.tobytes())
    low, high = triangles.reshape(-1, 3).min(0), triangles.reshape(-1, 3).max(0)
    print(f"{len(triangles)} triangles from {low} to {high}")


if __name__ == "__main__":
    main()
