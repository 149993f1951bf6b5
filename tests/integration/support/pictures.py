# SPDX-License-Identifier: Apache-2.0
"""A slow renderer of dense grids in NumPy and double precision, which shares nothing with the
engine's, and readers of picture files."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

Array = np.ndarray


def unit(v: Any) -> Array:
    v = np.asarray(v, np.float64)
    return v / np.linalg.norm(v)


def pinhole(eye: Any, target: Any, up: Any, fov: float, width: int, height: int) -> Array:
    """Directions of all pixels, height x width x 3; their part along the view is 1."""
    forward = unit(np.asarray(target, float) - np.asarray(eye, float))
    right = unit(np.cross(forward, up))
    upward = np.cross(right, forward)
    half = np.tan(np.radians(fov) / 2)
    y, x = np.mgrid[0:height, 0:width] + 0.5
    across = (2 * x / width - 1) * half * width / height
    along = (1 - 2 * y / height) * half
    return forward + across[..., None] * right + along[..., None] * upward


def walk(solid: Array, origins: Array, directions: Array) -> tuple[Array, Array, Array]:
    """First solid voxel of each ray, by single steps (Amanatides and Woo): distances in multiples
    of the direction (infinite: none), voxels, and the axis of the face (-1: began inside)."""
    side = solid.shape[0]
    shape = directions.shape[:-1]
    o = np.broadcast_to(origins, directions.shape).reshape(-1, 3).astype(float)
    d = directions.reshape(-1, 3).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (0 - o) / d, (side - o) / d
    near = np.fmax(np.fmin(low, high).max(-1), 0)
    far = np.fmax(low, high).min(-1)
    axis = np.where(near > 0, np.fmin(low, high).argmax(-1), -1)
    start = o + d * near[:, None]
    voxel = np.clip(np.floor(start), 0, side - 1).astype(int)
    rows = np.arange(len(o))
    # On the face that it came in by, rounding must not decide.
    entered = axis >= 0
    voxel[rows[entered], axis[entered]] = np.where(d[rows[entered], axis[entered]] > 0, 0, side - 1)
    step = np.where(d > 0, 1, -1)
    t = near.copy()
    best = np.full(len(o), np.inf)
    alive = near < far
    while alive.any():
        i = rows[alive]
        hit = solid[tuple(voxel[i].T)]
        best[i[hit]] = t[i[hit]]
        alive[i[hit]] = False
        i = i[~hit]
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = (voxel[i] + (d[i] > 0) - o[i]) / d[i]
        ahead[d[i] == 0] = np.inf
        axis[i] = ahead.argmin(-1)
        t[i] = ahead.min(-1)
        voxel[i, axis[i]] += step[i, axis[i]]
        inside = ((voxel[i] >= 0) & (voxel[i] < side)).all(-1)
        alive[i[~inside]] = False
    axis[np.isinf(best)] = -1
    return best.reshape(shape), voxel.reshape(*shape, 3), axis.reshape(shape)


def normals_of(directions: Array, axis: Array) -> Array:
    normals = np.zeros(directions.shape)
    for k in range(3):
        normals[..., k] = np.where(axis == k, -np.sign(directions[..., k]), 0)
    return normals


def sky_of(directions: Array, zenith: int, horizon: int, ground: int) -> Array:
    up = (directions / np.linalg.norm(directions, axis=-1, keepdims=True))[..., 2:]
    end = np.where(up < 0, linear(ground), linear(zenith))
    return linear(horizon) + np.sqrt(np.abs(up)) * (end - linear(horizon))


def linear(rgb: int) -> Array:
    return (np.array([rgb >> 16, rgb >> 8 & 255, rgb & 255]) / 255) ** 2


def lit(
    solid: Array,
    origin: Array,
    directions: Array,
    albedo: Any,
    sun_direction: Any,
    sun: float,
    ambient: float,
    sky: tuple[int, int, int],
) -> Array:
    """The picture as bytes: albedo(voxels) in ambient light and a sun with shadows."""
    t, voxels, axis = walk(solid, origin, directions)
    normals = normals_of(directions, axis)
    towards = unit(sun_direction)
    cosine = np.clip(normals @ towards, 0, None)
    points = origin + directions * np.where(np.isinf(t), 0, t)[..., None] + normals * 1e-6
    blocked = np.isfinite(walk(solid, points, np.broadcast_to(towards, points.shape))[0])
    share = np.select(
        [normals[..., 2] > 0, normals[..., 2] < 0, axis >= 0], [1.0, 0.5, 0.75], 1.0
    )
    light = ambient * share + sun * cosine * ~blocked
    colour = albedo(np.clip(voxels, 0, solid.shape[0] - 1)) * light[..., None]
    colour = np.where(np.isinf(t)[..., None], sky_of(directions, *sky), colour)
    return np.floor(np.sqrt(np.clip(colour, 0, 1)) * 255 + 0.5).astype(np.uint8)


def psnr(a: Array, b: Array) -> float:
    square = np.mean((a.astype(float) - b.astype(float)) ** 2)
    return float("inf") if square == 0 else 10 * np.log10(255**2 / square)


def read_png(data: bytes) -> Array:
    """8-bit RGB, 8- and 16-bit grey, as written by anybody."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    width = height = depth = kind = 0
    while at < len(data):
        (n,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + n]
        (check,) = struct.unpack_from(">I", data, at + 8 + n)
        assert check == zlib.crc32(name + body)
        if name == b"IHDR":
            width, height, depth, kind = struct.unpack_from(">IIBB", body)
        packed += body if name == b"IDAT" else b""
        at += 12 + n
    pixel = (3 if kind == 2 else 1) * depth // 8
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * pixel)
    out = np.zeros((height + 1, pixel + width * pixel), int)
    for y in range(height):
        line = out[y + 1]
        if rows[y, 0] == 0:
            line[pixel:] = rows[y, 1:]
            continue
        for x in range(width * pixel):
            a, b, c = line[x], out[y, x + pixel], out[y, x]
            nearest = min((abs(b - c), 0), (abs(a - c), 1), (abs(a + b - 2 * c), 2))[1]
            guess = (0, a, b, (a + b) // 2, (a, b, c)[nearest])[rows[y, 0]]
            line[x + pixel] = (rows[y, 1 + x] + guess) & 255
    pixels = out[1:, pixel:].astype(np.uint8).reshape(height, width, pixel)
    if depth == 16:
        return pixels.reshape(height, width, 2).view(">u2")[..., 0].astype(np.uint16)
    return pixels if kind == 2 else pixels[..., 0]


def jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height of a JPEG file, by its frame header."""
    assert data[:2] == b"\xff\xd8"
    at = 2
    while data[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    height, width = struct.unpack_from(">HH", data, at + 5)
    return width, height
