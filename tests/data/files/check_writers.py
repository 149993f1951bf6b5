#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what voxelctl convert writes with other programs: laspy, plyfile, pypcd4, numpy.

usage: check_writers.py VOXELCTL
For developers after a change of a writer; needs numpy, laspy, plyfile, pypcd4.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import laspy
import numpy as np
from plyfile import PlyData
from pypcd4 import PointCloud

HERE = Path(__file__).resolve().parent
N = 5
NAMES = ["x", "y", "z", "intensity", "ring"]


def expected() -> dict[str, np.ndarray]:
    i = np.arange(N)
    return dict(zip(NAMES, [i / 2 - 1, i / 4, -i, 10 * i, 7 + i], strict=True))


def read_pcd(path: Path) -> dict[str, np.ndarray]:
    cloud = PointCloud.from_path(path)
    return {name: cloud.pc_data[name] for name in cloud.fields}


def read_ply(path: Path) -> dict[str, np.ndarray]:
    vertex = PlyData.read(path)["vertex"]
    return {p.name: vertex[p.name] for p in vertex.properties}


def read_numpy(path: Path) -> dict[str, np.ndarray]:
    array = np.load(path)
    if path.suffix == ".npz":
        array = array["points"]
    if array.dtype.names is None:
        return {name: array[:, c] for c, name in enumerate(NAMES[: array.shape[1]])}
    return {name: array[name] for name in array.dtype.names}


def read_las(path: Path) -> dict[str, np.ndarray]:
    las = laspy.read(path)
    assert np.all(las.return_number == 1) and np.all(las.number_of_returns == 1)
    assert list(las.header.number_of_points_by_return)[:2] == [N, 0]
    xyz = np.stack([las.x, las.y, las.z])
    np.testing.assert_array_equal(las.header.mins, xyz.min(axis=1))
    np.testing.assert_array_equal(las.header.maxs, xyz.max(axis=1))
    found = {name: np.asarray(las[name]) for name in las.point_format.dimension_names}
    return found | {"x": las.x, "y": las.y, "z": las.z}


def read_records(n_columns: int) -> Callable[[Path], dict[str, np.ndarray]]:
    def read(path: Path) -> dict[str, np.ndarray]:
        array = np.fromfile(path, "<f4").reshape(-1, n_columns)
        return {name: array[:, c] for c, name in enumerate(NAMES[:n_columns])}

    return read


CASES = [
    ("pcd", "pcd", read_pcd),
    ("pcd-ascii", "pcd", read_pcd),
    ("pcd-compressed", "pcd", read_pcd),
    ("ply", "ply", read_ply),
    ("ply-ascii", "ply", read_ply),
    ("ply-big", "ply", read_ply),
    ("npy", "npy", read_numpy),
    ("npz", "npz", read_numpy),
    ("las", "las", read_las),
    ("kitti", "bin", read_records(4)),
    ("nuscenes", "bin", read_records(5)),
]


def convert(voxelctl: str, source: Path, out: Path, out_format: str) -> None:
    command = [voxelctl, "convert", str(source), str(out), "--out-format", out_format]
    if source.name in ("kitti.bin", "nuscenes.bin"):
        command += ["--format", source.stem]
    subprocess.run(command, check=True, capture_output=True)


def check_five_points(voxelctl: str, directory: Path) -> None:
    for source in ("ascii.ply", "binary.pcd", "kitti.bin", "nuscenes.bin", "deflated.npz"):
        for out_format, ending, read in CASES:
            out = directory / f"out.{ending}"
            convert(voxelctl, HERE / source, out, out_format)
            found = read(out)
            wanted = expected()
            if source in ("kitti.bin", "deflated.npz"):
                wanted["ring"] = np.zeros(N)  # they have none
            for name in wanted.keys() & found.keys():
                values = np.asarray(found[name], float)
                np.testing.assert_allclose(values, wanted[name], rtol=0, atol=1e-9)
            print(f"ok {source} as {out_format}: {' '.join(found)}")


def check_las(voxelctl: str, directory: Path) -> None:
    """LAS through LAS: what laspy reads of both is equal."""
    fields = ["X", "Y", "Z", "intensity", "classification", "gps_time", "red", "nir"]
    for source in sorted(HERE.glob("*.las")):
        out = directory / "out.las"
        convert(voxelctl, source, out, "las")
        was, found = laspy.read(source), laspy.read(out)
        np.testing.assert_array_equal(was.header.scales, found.header.scales)
        np.testing.assert_array_equal(was.header.offsets, found.header.offsets)
        for name in fields:
            if name in was.point_format.dimension_names:
                np.testing.assert_array_equal(was[name], found[name])
        version, number = found.header.version, found.point_format.id
        print(f"ok {source.name} as LAS {version}, point format {number}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        check_five_points(sys.argv[1], Path(temporary))
        check_las(sys.argv[1], Path(temporary))
