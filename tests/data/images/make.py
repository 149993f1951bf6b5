# SPDX-License-Identifier: Apache-2.0
"""Writes the pictures beside this file: those that Pillow can write by Pillow, the others by hand.

usage: make.py        (needs Pillow, NumPy; tests/unit/client/files/image_test.c has the patterns)
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
WIDTH, HEIGHT = 13, 7
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
          (0, 1, 1, 2))  # fmt: skip
y, x = np.mgrid[0:HEIGHT, 0:WIDTH]


def pattern(n_channels: int) -> np.ndarray:
    c = np.arange(n_channels)
    return ((7 * x[..., None] + 13 * y[..., None] + 50 * c) % 256).astype(np.uint8)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(name: str, samples: np.ndarray, bits: int, colour: int, interlaced: bool) -> None:
    """Samples are height x width x channels, big-endian where they have 16 bits."""
    parts = [samples[y0::dy, x0::dx] for x0, y0, dx, dy in PASSES] if interlaced else [samples]
    raw = b"".join(b"\0" + row.tobytes() for part in parts if part.size for row in part)
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour, 0, 0, int(interlaced))
    (HERE / name).write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(raw, 9))
        + chunk(b"IEND", b"")
    )


def main() -> None:
    Image.fromarray(pattern(1)[..., 0]).save(HERE / "grey8.png")
    Image.fromarray(pattern(3)).save(HERE / "rgb8.png")
    Image.fromarray(pattern(4)).save(HERE / "rgba8.png")
    Image.fromarray(pattern(2)).save(HERE / "grey_alpha8.png")
    Image.fromarray(((x + y) % 2 * 255).astype(np.uint8)).convert("1").save(HERE / "grey1.png")
    depth = ((257 * x + 4099 * y) % 65536).astype(np.uint16)
    Image.fromarray(depth).save(HERE / "grey16.png")

    palette = Image.fromarray(((x + y) % 4).astype(np.uint8), mode="P")
    palette.putpalette([v for i in range(4) for v in (10 * i, 20 * i + 5, 255 - 30 * i)])
    palette.save(HERE / "palette.png")
    palette.save(HERE / "palette_alpha.png", transparency=bytes([255, 128, 0, 64]))

    wide = pattern(3).astype(">u2") * 257
    write_png("rgb16.png", wide, 16, 2, False)
    write_png("rgb8_interlaced.png", pattern(3), 8, 2, True)
    write_png("grey16_interlaced.png", depth.astype(">u2")[..., None], 16, 0, True)

    smooth = np.stack([4 * x + 3 * y + 20 * c for c in range(3)], axis=-1).astype(np.uint8)
    Image.fromarray(smooth[..., 0]).save(HERE / "grey.jpg", quality=95)
    Image.fromarray(smooth).save(HERE / "rgb.jpg", quality=95, subsampling=0)
    Image.fromarray(smooth).save(HERE / "progressive.jpg", quality=95, progressive=True)
    Image.fromarray(smooth).convert("CMYK").save(HERE / "cmyk.jpg", quality=95)


if __name__ == "__main__":
    main()
