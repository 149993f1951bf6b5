# SPDX-License-Identifier: Apache-2.0
"""Pictures of scenes, as arrays that show themselves in a notebook."""

from __future__ import annotations

import dataclasses
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import common_pb2, render_pb2

from .errors import InvalidArgument
from .exchange import Box, Reply
from .reply import bad
from .scene.records import message_of

CAMERAS = ("pinhole", "orthographic", "equirectangular", "lidar")
MODES = ("colour", "height", "depth", "normal", "material", "ao", "path", "age", "label")
ENCODES = ("tensor", "png", "jpeg")

Place = Sequence[float]


def png_of(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A PNG file of height x width x 3 or height x width bytes."""
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)  # each begins with its filter, 0
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)),
            chunk(b"IEND", b""),
        ]
    )


@dataclasses.dataclass(frozen=True)
class Picture:
    """What Scene.render gives: rows from the top, columns from the left.

    pixels   height x width x 3 uint8 ("colour", "height", "ao", "path", "age", "label") or int8
             ("normal", 0 where nothing is); height x width float32 metres ("depth", infinite
             where nothing is) or int32 ("material", -1 where nothing is)
    eye, target, up   the camera, as it was taken; metres
    n_rays   that were cast at most
    normal_scale   of "normal": what a length of 1 is in pixels, 1 of faces alone, 127 with volumes
    """

    pixels: npt.NDArray[Any]
    mode: str
    version: int
    generation: int
    engine_ms: float
    eye: tuple[float, float, float]
    target: tuple[float, float, float]
    up: tuple[float, float, float]
    n_rays: int
    normal_scale: int = 1

    def visible(self) -> npt.NDArray[np.uint8]:
        """The pixels as bytes that can be looked at: near is bright, normals and materials have
        colours."""
        if self.mode == "normal":
            scale = 127 // self.normal_scale
            return (self.pixels.astype(np.int16) * scale + 128).astype(np.uint8)
        if self.mode == "depth":
            is_hit = np.isfinite(self.pixels)
            if not is_hit.any():
                return np.zeros(self.pixels.shape, np.uint8)
            low, high = self.pixels[is_hit].min(), self.pixels[is_hit].max()
            grey = 255 - 215 * (self.pixels - low) / max(high - low, 1e-9)
            return np.where(is_hit, grey, 0).astype(np.uint8)
        if self.mode == "material":
            number = self.pixels.astype(np.uint32)[..., None] + 1
            mixed = number * np.array([2654435761, 2246822519, 3266489917], np.uint32) >> 24
            return np.where(self.pixels[..., None] < 0, 0, mixed | 64).astype(np.uint8)
        return self.pixels

    def png(self) -> bytes:
        """A PNG file of what is visible."""
        return png_of(self.visible())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the PNG file."""
        Path(path).write_bytes(self.png())

    def __repr__(self) -> str:
        height, width = self.pixels.shape[:2]
        return f"Picture({width} x {height} pixels of version {self.version})"

    def _repr_png_(self) -> bytes:
        return self.png()


def number_of(text: str, known: Sequence[str], field: str) -> int:
    if text not in known:
        raise InvalidArgument(f"{text!r} is not one of {', '.join(known)}", field)
    return known.index(text)


def vec3_of(values: Place | None, field: str) -> common_pb2.Vec3 | None:
    if values is None:
        return None
    numbers = np.asarray(values, np.float64)
    if numbers.shape != (3,):
        raise InvalidArgument("three numbers are right", field)
    return common_pb2.Vec3(x=numbers[0], y=numbers[1], z=numbers[2])


def clip_of(box: Box | None) -> render_pb2.RenderBox | None:
    if box is None:
        return None
    if not hasattr(box, "low") or not hasattr(box, "high"):
        raise InvalidArgument(f"{box!r}; a voxeld.Box is right", "clip")
    return render_pb2.RenderBox(low=vec3_of(box.low, "clip"), high=vec3_of(box.high, "clip"))


def request_of(
    *,
    camera: str,
    mode: str,
    encode: str,
    eye: Place | None,
    look: Place | None,
    up: Place | None,
    elevations_deg: npt.ArrayLike | None,
    sun_direction: Place | None,
    clip: Box | None,
    **members: Any,
) -> render_pb2.SceneRenderRequest:
    message = message_of(
        render_pb2.SceneRenderRequest,
        "render",
        camera=number_of(camera, CAMERAS, "camera"),
        mode=number_of(mode, MODES, "mode"),
        encode=number_of(encode, ENCODES, "encode"),
        view=render_pb2.RenderView(
            eye=vec3_of(eye, "eye"), target=vec3_of(look, "look"), up=vec3_of(up, "up")
        ),
        sun_direction=vec3_of(sun_direction, "sun_direction"),
        clip=clip_of(clip),
        **members,
    )
    if elevations_deg is not None:
        rows = np.ascontiguousarray(elevations_deg, "<f8").reshape(-1)
        message.elevations_deg.dtype = common_pb2.FLOAT64
        message.elevations_deg.shape.append(len(rows))
        message.elevations_deg.data = rows.tobytes()
    return message


def picture_of(reply: Reply, mode: str) -> Picture:
    message = reply.message
    height, width = message.height, message.width
    if mode in ("depth", "material"):
        pixels = reply.array("pixels", "<f4" if mode == "depth" else "<i4", height * width)
        pixels = pixels.reshape(height, width)
    else:
        kind = "|i1" if mode == "normal" else "|u1"
        pixels = reply.array("pixels", kind, height * width, 3).reshape(height, width, 3)
    if not message.HasField("view"):
        raise bad("view", "a picture that does not say from where")
    view = message.view
    return Picture(
        pixels=pixels,
        mode=mode,
        version=message.version,
        generation=message.generation,
        engine_ms=message.engine_ms,
        eye=(view.eye.x, view.eye.y, view.eye.z),
        target=(view.target.x, view.target.y, view.target.z),
        up=(view.up.x, view.up.y, view.up.z),
        n_rays=message.n_rays,
        normal_scale=message.normal_scale or 1,
    )
