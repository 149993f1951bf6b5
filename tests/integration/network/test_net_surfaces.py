# SPDX-License-Identifier: Apache-2.0
"""The network that comes with the daemon: its weights are what its program writes, and its labels
agree with the normals of the points, which it never sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import voxeld
from harness import BIN, SLOW, SOURCE, running

SCAN = SOURCE / "tests/data/spconv_benchmark_pc.npy"
CONFIG = SOURCE / "configs/networks/surfaces.json"
FLAT, UPRIGHT = 0, 1
CELL_M = 0.8


def vertical_parts(points: np.ndarray) -> np.ndarray:
    """|z| of the normal of each point's cell, NaN where its points lie in no plane."""
    cells, of_point = np.unique(np.floor(points / CELL_M), axis=0, return_inverse=True)
    of_point = of_point.reshape(-1)
    n = np.bincount(of_point).astype(float)
    mean = np.stack([np.bincount(of_point, points[:, a]) / n for a in range(3)], 1)
    d = points - mean[of_point]
    covariance = np.empty((len(cells), 3, 3))
    for a in range(3):
        for b in range(3):
            covariance[:, a, b] = np.bincount(of_point, d[:, a] * d[:, b]) / n
    values, vectors = np.linalg.eigh(covariance)
    is_plane = (n >= 20) & (values[:, 0] < 0.05 * values[:, 1])
    return np.where(is_plane, np.abs(vectors[:, 2, 0]), np.nan)[of_point]


def test_weights_are_those_of_the_program(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    made = directory / "surfaces.safetensors"
    subprocess.run(
        [sys.executable, SOURCE / "configs/import/make_surfaces.py", made], check=True
    )
    assert made.read_bytes() == CONFIG.with_suffix(".safetensors").read_bytes()
    assert made.stat().st_size < 4096


def test_daemon_without_configuration_has_it_and_labels_a_scan(directory: Path) -> None:
    points = np.load(SCAN)[:, :3]
    with (
        running(directory) as daemon,  # networks_dir is not named
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        assert "surfaces" in client.networks_available()
        client.network_load("surfaces")
        labels = client.infer("surfaces", points, outputs=["labels"])["labels"]
    names = json.loads(CONFIG.read_text())["outputs"][0]["labels"]
    assert names[FLAT] == "flat" and names[UPRIGHT] == "upright"
    labels = np.asarray(labels).reshape(len(points), -1)[:, 0].astype(int)
    assert set(np.unique(labels)) <= set(range(len(names)))
    z = vertical_parts(points.astype(float))
    assert (labels[z > 0.95] == FLAT).mean() > 0.8, "floors"
    assert (labels[z < 0.3] == UPRIGHT).mean() > 0.9, "walls"
    assert np.nanmean((z > 0.8)[(labels == FLAT) & ~np.isnan(z)]) > 0.9


def test_an_empty_networks_dir_has_none(directory: Path) -> None:
    with (
        running(directory, {"networks_dir": ""}) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        assert list(client.networks_available()) == []
    done = subprocess.run(
        [BIN / "voxelctl", "net", "check", CONFIG], capture_output=True, text=True, check=False,
        timeout=60 * SLOW,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
