#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small point cloud files beside it, and the readers' fuzz corpora from them.

Needs numpy, and laspy for LAS. All files hold the same five points, so that one test
checks them all:
x = i / 2 - 1, y = i / 4, z = -i, intensity = 10 i, ring = 7 + i; in LAS
classification = 1 + i, gps_time = 1000 + i / 8, red = 256 i, green = 65535 - i,
blue = 3 i, nir = 1000 i.
PLY and PCD are written by hand from their specifications, with other code than the
readers'; LZF is compressed here by a greedy matcher.
"""

from __future__ import annotations

import datetime
import shutil
import struct
from pathlib import Path

import laspy
import numpy as np

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parents[1] / "fuzz" / "corpus"
N = 5


def points() -> np.ndarray:
    i = np.arange(N)
    return np.stack([i / 2 - 1, i / 4, -i, 10 * i, 7 + i], axis=1)


def records(names: list[str], types: list[str], align: bool = False) -> np.ndarray:
    out = np.zeros(N, dtype=np.dtype(list(zip(names, types, strict=True)), align=align))
    for c, name in enumerate(["x", "y", "z", "intensity", "ring"]):
        if name in names:
            out[name] = points()[:, c]
    return out


def save_npy(name: str, array: np.ndarray, version: tuple[int, int] | None = None) -> None:
    with open(HERE / name, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


def make_npy() -> None:
    p = points()
    save_npy("plain_f4.npy", p[:, :4].astype("<f4"))
    save_npy("plain_f2.npy", p[:, :4].astype("<f2"))
    save_npy("plain_f8_big.npy", p[:, :3].astype(">f8"))
    save_npy("fortran_f4.npy", np.asfortranarray(p[:, :4].astype("<f4")))
    save_npy("fortran_f4_big.npy", np.asfortranarray(p[:, :4].astype(">f4")))
    # Integers cannot hold the halves: the test scales by four.
    save_npy("quarters_i2.npy", (4 * p[:, :3]).astype("<i2"))
    save_npy("quarters_i8_big.npy", (4 * p[:, :3]).astype(">i8"))
    save_npy("wide_f4.npy", np.hstack([p, p[:, :1]]).astype("<f4"))
    names = ["x", "y", "z", "intensity", "ring"]
    save_npy("records.npy", records(names, ["<f4", "<f4", "<f4", "u1", "<u2"]))
    save_npy("records_big.npy", records(names, [">f4", ">f4", ">f8", "u1", ">u2"]))
    aligned = records(names, ["<f4", "<f4", "<f8", "u1", "<u2"], align=True)
    save_npy("records_padded.npy", aligned, (2, 0))
    extra = np.zeros(N, dtype=[("normal", "<f4", (3,)), ("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
    for c, name in enumerate(["x", "y", "z"]):
        extra[name] = points()[:, c]
    save_npy("records_vectors.npy", extra, (3, 0))
    save_npy("empty.npy", np.zeros((0, 3), "<f4"))


def make_npz() -> None:
    p = points()[:, :4].astype("<f4")
    labels = np.arange(N)
    np.savez(HERE / "stored.npz", labels=labels, points=p)
    np.savez_compressed(HERE / "deflated.npz", labels=labels, points=p)
    np.savez_compressed(HERE / "fortran.npz", points=np.asfortranarray(p))


def make_bin() -> None:
    points()[:, :4].astype("<f4").tofile(HERE / "kitti.bin")
    points().astype("<f4").tofile(HERE / "nuscenes.bin")


def ply_header(encoding: str, before: str, after: str) -> bytes:
    return (
        f"ply\nformat {encoding} 1.0\ncomment made by make.py\n{before}"
        f"element vertex {N}\nproperty float x\nproperty float y\nproperty double z\n"
        f"property uchar intensity\nproperty ushort ring\n{after}end_header\n"
    ).encode()


def make_ply() -> None:
    before = "element camera 2\nproperty list uchar int view\nproperty short id\n"
    after = "element face 1\nproperty list uchar int vertex_indices\n"
    rows = [(r[0], r[1], r[2], int(r[3]), int(r[4])) for r in points()]
    text = ply_header("ascii", before, after) + b"2 1 2 3\n0 4\n"
    for row in rows:
        text += (" ".join(repr(float(v)) if k < 3 else str(v) for k, v in enumerate(row))).encode()
        text += b"\r\n"
    (HERE / "ascii.ply").write_bytes(text + b"3 0 1 2\n")
    for name, encoding, order in [
        ("little.ply", "binary_little_endian", "<"),
        ("big.ply", "binary_big_endian", ">"),
    ]:
        data = ply_header(encoding, before, after)
        data += struct.pack(order + "Biih", 2, 1, 2, 3) + struct.pack(order + "Bh", 0, 4)
        for row in rows:
            data += struct.pack(order + "ffdBH", *row)
        data += struct.pack(order + "Biii", 3, 0, 1, 2)
        (HERE / name).write_bytes(data)


def pcd_header(data: str) -> bytes:
    return (
        "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n"
        "FIELDS x y z intensity _ ring normal\nSIZE 4 4 8 1 1 2 4\nTYPE F F F U U U F\n"
        f"COUNT 1 1 1 1 3 1 3\nWIDTH {N}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\n"
        f"POINTS {N}\nDATA {data}\n"
    ).encode()


def lzf(data: bytes) -> bytes:
    """Greedy: the longest earlier match of at least three bytes, else a literal."""
    out = bytearray()
    literals = bytearray()

    def flush() -> None:
        for begin in range(0, len(literals), 32):
            run = literals[begin : begin + 32]
            out.append(len(run) - 1)
            out.extend(run)
        literals.clear()

    at = 0
    while at < len(data):
        best, distance = 0, 0
        for back in range(1, min(at, 8192) + 1):
            n = 0
            while n < 264 and at + n < len(data) and data[at + n] == data[at + n - back]:
                n += 1
            if n > best:
                best, distance = n, back
        if best < 3:
            literals.append(data[at])
            at += 1
            continue
        flush()
        offset, length = distance - 1, best - 2
        out.append(min(length, 7) << 5 | offset >> 8)
        if length >= 7:
            out.append(length - 7)
        out.append(offset & 255)
        at += best
    flush()
    return bytes(out)


def make_pcd() -> None:
    dtype = [("x", "<f4"), ("y", "<f4"), ("z", "<f8"), ("intensity", "u1"), ("_", "u1", (3,)),
             ("ring", "<u2"), ("normal", "<f4", (3,))]  # fmt: skip
    out = np.zeros(N, dtype=dtype)
    for c, name in enumerate(["x", "y", "z", "intensity", "ring"]):
        out[name] = points()[:, c]
    (HERE / "binary.pcd").write_bytes(pcd_header("binary") + out.tobytes())
    columns = b"".join(np.ascontiguousarray(out[name]).tobytes() for name in out.dtype.names)
    packed = lzf(columns)
    sizes = struct.pack("<II", len(packed), len(columns))
    (HERE / "compressed.pcd").write_bytes(pcd_header("binary_compressed") + sizes + packed)
    text = pcd_header("ascii").decode()
    for row in points():
        text += f"{row[0]:g} {row[1]:.3e} {row[2]} {int(row[3])} 0 0 0 {int(row[4])} nan -inf 1\n"
    (HERE / "ascii.pcd").write_text(text)
    old = "VERSION .6\nCOLUMNS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 5\nHEIGHT 1\nDATA ascii\n"
    for row in points():
        old += f"{row[0]} {row[1]} {row[2]}\n"
    (HERE / "old.pcd").write_text(old)


LAS_VALUES = {
    "intensity": lambda i: 10 * i,
    "classification": lambda i: 1 + i,
    "gps_time": lambda i: 1000 + i / 8,
    "red": lambda i: 256 * i,
    "green": lambda i: 65535 - i,
    "blue": lambda i: 3 * i,
    "nir": lambda i: 1000 * i,
}


def las_file(version: str, point_format: int) -> laspy.LasData:
    header = laspy.LasHeader(version=version, point_format=point_format)
    header.scales = np.array([0.25, 0.125, 0.5])
    header.offsets = np.array([-10.0, 3.0, 100.5])
    header.creation_date = datetime.date(2020, 1, 1)  # equal bytes every time
    las = laspy.LasData(header)
    las.x, las.y, las.z = points()[:, 0], points()[:, 1], points()[:, 2]
    for name, value in LAS_VALUES.items():
        if name in las.point_format.dimension_names:
            las[name] = value(np.arange(N))
    return las


def save_las(name: str, las: laspy.LasData) -> None:
    las.write(HERE / name)
    back = laspy.read(HERE / name)
    xyz = np.stack([back.x, back.y, back.z], axis=1)
    np.testing.assert_array_equal(xyz, points()[:, :3])
    for field, value in LAS_VALUES.items():
        if field in back.point_format.dimension_names:
            np.testing.assert_array_equal(back[field], value(np.arange(N)))


def make_las() -> None:
    """Each point format, in the oldest version that has it and in 1.4."""
    for point_format in range(11):
        oldest = 2 if point_format < 4 else 3 if point_format < 6 else 4
        for minor in sorted({oldest, 4}):
            save_las(f"v{minor}_f{point_format}.las", las_file(f"1.{minor}", point_format))
    las = las_file("1.4", 7)
    for i in range(2):
        las.vlrs.append(laspy.VLR("voxeld", i, "passed over", bytes(range(10 + i))))
    las.evlrs = laspy.vlrs.vlrlist.VLRList()
    las.evlrs.append(laspy.VLR("voxeld", 9, "passed over too", bytes(100)))
    las.add_extra_dim(laspy.ExtraBytesParams("extra", "f8"))
    las["extra"] = np.arange(N)
    save_las("records.las", las)


def make_corpora() -> None:
    for reader, pattern in [
        ("npy", "*.npy"),
        ("npz", "*.npz"),
        ("pcd", "*.pcd"),
        ("ply", "*.ply"),
        ("bin", "*.bin"),
        ("las", "*.las"),
    ]:
        (CORPUS / reader).mkdir(parents=True, exist_ok=True)
        for path in sorted(HERE.glob(pattern)):
            shutil.copy(path, CORPUS / reader / path.name)
    # fuzz_convert: the first byte chooses reader and writer, by their place in the lists.
    readers = ["pcd", "ply", "npy", "npz", "las", "kitti", "nuscenes"]
    (CORPUS / "convert").mkdir(parents=True, exist_ok=True)
    sources = [p for p in sorted(HERE.iterdir()) if p.suffix in (".pcd", ".ply", ".npy", ".npz")]
    sources += [HERE / name for name in ("kitti.bin", "nuscenes.bin", "v2_f3.las", "v4_f8.las")]
    for writer, path in enumerate(sources):
        reader = readers.index(path.stem if path.suffix == ".bin" else path.suffix[1:])
        choice = bytes([reader + len(readers) * (writer % 11)])
        (CORPUS / "convert" / path.name).write_bytes(choice + path.read_bytes())


if __name__ == "__main__":
    make_npy()
    make_npz()
    make_bin()
    make_ply()
    make_pcd()
    make_las()
    make_corpora()
