# SPDX-License-Identifier: Apache-2.0
"""Meshes to files: binary glTF (GLB) and Wavefront OBJ."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument

FLOAT32, UINT16, UINT32 = 5126, 5123, 5125


def linear_of(colours: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """sRGB bytes as linear 16 bits with an alpha, as glTF has colours."""
    value = np.arange(256) / 255
    table = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    rgba = np.full((len(colours), 4), 65535, "<u2")
    rgba[:, :3] = np.round(table * 65535).astype("<u2")[colours]
    return rgba


def glb_of(surface: Any) -> bytes:
    """A Surface as GLB: z up is turned to glTF's y up by the mesh's node, labels are _LABEL."""
    n = surface.n_vertices
    if n == 0:
        raise InvalidArgument("glTF has no mesh without vertices", "surface")
    arrays: list[tuple[str, int, str, npt.NDArray[Any]]] = [
        ("POSITION", FLOAT32, "VEC3", surface.vertices.astype("<f4")),
        ("NORMAL", FLOAT32, "VEC3", surface.normals.astype("<f4")),
    ]
    if len(surface.colours) == n:
        arrays.append(("COLOR_0", UINT16, "VEC4", linear_of(surface.colours)))
    if len(surface.labels) == n:
        arrays.append(("_LABEL", FLOAT32, "SCALAR", surface.labels.astype("<f4")))
    primitive: dict[str, Any] = {
        "attributes": {name: i for i, (name, *_) in enumerate(arrays)},
        "mode": 0,
        "material": 0,
    }
    if len(surface.triangles) > 0:
        primitive |= {"indices": len(arrays), "mode": 4}
        arrays.append(("", UINT32, "SCALAR", surface.triangles.astype("<u4").reshape(-1)))
    views, accessors, at = [], [], 0
    for i, (_, component, kind, array) in enumerate(arrays):
        views.append({"buffer": 0, "byteOffset": at, "byteLength": array.nbytes})
        accessor = {"bufferView": i, "componentType": component, "count": len(array), "type": kind}
        accessors.append(accessor | ({"normalized": True} if component == UINT16 else {}))
        at += array.nbytes
    low, high = (f(surface.vertices, axis=0).astype(float).tolist() for f in (np.min, np.max))
    accessors[0] |= {"min": low, "max": high}
    half = 0.5**0.5
    document = {
        "asset": {"version": "2.0", "generator": "voxeld"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "rotation": [-half, 0, 0, half]}],
        "materials": [
            {
                "pbrMetallicRoughness": {"metallicFactor": 0, "roughnessFactor": 1},
                "doubleSided": True,
            }
        ],
        "meshes": [{"primitives": [primitive]}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": at}],
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    if 28 + len(text) + at >= 2**32:
        raise InvalidArgument(f"{at} bytes; a GLB file has less than 4 GiB", "surface")
    head = struct.pack("<4sIIII", b"glTF", 2, 28 + len(text) + at, len(text), 0x4E4F534A)
    chunk = struct.pack("<II", at, 0x004E4942)
    return b"".join([head, text, chunk, *(array.tobytes() for *_, array in arrays)])


def obj_of(surface: Any) -> bytes:
    """A Surface as OBJ, with normals and colours from 0 to 1 behind the positions."""
    rows = surface.vertices
    form = "v %.9g %.9g %.9g"
    if len(surface.colours) == surface.n_vertices and surface.n_vertices > 0:
        rows, form = np.hstack([rows, surface.colours / 255]), form + " %.4f %.4f %.4f"
    lines = ["# voxeld, metres", *(form % tuple(row) for row in rows)]
    lines += [f"vn {x:.6g} {y:.6g} {z:.6g}" for x, y, z in surface.normals]
    lines += [f"f {a}//{a} {b}//{b} {c}//{c}" for a, b, c in surface.triangles + 1]
    return ("\n".join(lines) + "\n").encode()


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file that appears whole or not at all."""
    beside = Path(f"{os.fspath(path)}.part")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def write_surface(surface: Any, path: str | os.PathLike[str]) -> None:
    """Writes a Surface as GLB or OBJ, by the file's ending."""
    ending = Path(path).suffix.lower()
    makers = {".glb": glb_of, ".obj": obj_of}
    if ending not in makers:
        raise InvalidArgument(f"{os.fspath(path)!r} ends neither in .glb nor in .obj", "path")
    write_whole(path, makers[ending](surface))
