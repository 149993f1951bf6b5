# SPDX-License-Identifier: Apache-2.0
"""Scans through a network with the clients: Python and voxelctl against a stock client."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, Daemon, running
from networks import write_network
from scenes import Scenes
from semantic import cloud, some_points, write_signs


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    path = tmp_path_factory.mktemp("n")
    write_signs(path)
    write_network(path)
    config = {"networks_dir": str(path), "networks": ["signs", "tiny"]}
    with running(tmp_path_factory.mktemp("d"), config) as started:
        yield started


@pytest.fixture
def client(served: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(served.ipc, timeout=30 * SLOW) as connected:
        yield connected


def ctl(daemon: Daemon, *words: Any, code: int = 0) -> str:
    shared = ["--url", daemon.ipc, "--timeout", str(int(30 * SLOW))]
    done = subprocess.run(
        [BIN / "voxelctl", *shared, "scene", "integrate", *map(str, words)],
        capture_output=True, text=True, timeout=60 * SLOW,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


PALETTE = [voxeld.Material(name) for name in ("ground", "tree", "wall", "road")]
LABELS = {"below": "road", 1: None, "ahead": 1}


def test_python_voxelctl_and_a_stock_client_make_the_same_scene(
    served: Daemon, client: voxeld.Client, directory: Path
) -> None:
    points = some_points(4000)[10:]
    made = {
        name: client.scene_create(name, 0.25, depth=8, material_bits=8, track_free=True,
                                  palette=PALETTE)
        for name in ("stock", "python", "ctl", "file")
    }  # fmt: skip
    done = made["python"].integrate(points, network="signs", labels=LABELS, max_range=30)
    assert done.n_dropped > 0 and done.network is not None and done.network.n_items == 1
    with Scenes(served) as stock:
        entries: list[dict[str, Any]] = [
            {"label_name": "below", "material_name": "road"},
            {"label": 1, "material": -1},
            {"label_name": "ahead", "material": 1},
        ]
        reply = stock.call("scene_integrate", name="stock", cloud=cloud(points), network="signs",
                           label_to_material=entries, carve={"max_range_m": 30})  # fmt: skip
    assert (reply.n_dropped, reply.digest) == (done.n_dropped, done.digest)
    scan = directory / "scan.npy"
    np.save(scan, points)
    labels = directory / "labels.txt"
    labels.write_text("# what the map keeps\nbelow = road\n 1=-1 , ahead=1\n\n")
    for name, given in (("ctl", "below=road,1=-1,ahead=1"), ("file", labels)):
        said = ctl(served, scan, "--scene", name, "--network", "signs", "--labels", given,
                   "--max-range", "30", "--expect-digest", done.digest[:8], "--json")  # fmt: skip
        answer = json.loads(said)
        assert answer["n_dropped"] == done.n_dropped and answer["network_ms"] > 0
    assert len({s.info().digest for s in made.values()}) == 1
    text = ctl(served, scan, "--scene", "ctl", "--network", "signs", "--output", "labels")
    assert "(the network " in text
    for s in made.values():
        s.drop()


def test_faults_are_the_server_s_and_name_the_field(
    served: Daemon, client: voxeld.Client, directory: Path
) -> None:
    scene = client.scene_create("faults", 0.25, depth=8, material_bits=4)
    points = some_points(50)

    def fails(kind: type[voxeld.Error], field: str, **given: Any) -> None:
        with pytest.raises(kind) as caught:
            scene.integrate(points, **given)
        assert caught.value.field == field, caught.value

    fails(voxeld.NotFound, "network", network="nothing")
    fails(voxeld.InvalidArgument, "rule", network="signs", material=3)
    fails(voxeld.InvalidArgument, "label_to_material", labels={1: 1})
    fails(voxeld.InvalidArgument, "labels", network="signs", labels={1: 1.5})
    fails(voxeld.InvalidArgument, "labels", network="signs", labels={1 << 40: 1})
    fails(voxeld.InvalidArgument, "label_to_material[0].label", network="signs", labels={7: 1})
    fails(voxeld.FailedPrecondition, "expect_digest", network="signs", expect_digest="0" * 8)
    scan = directory / "scan.npy"
    np.save(scan, points)
    wrong = ("--scene", "faults", "--network", "signs", "--labels", "1=99")
    said = ctl(served, scan, *wrong, code=1)
    assert "label_to_material[0].material" in said and "0 to 15" in said
    assert scene.info().version == 1
    scene.drop()


def test_plain_scans_say_nothing_of_a_network(client: voxeld.Client) -> None:
    scene = client.scene_create("plain", 0.25, depth=8)
    done = scene.integrate(some_points(50))
    assert done.network is None and done.digest == "" and done.n_dropped == 0
    status = client.status()
    assert status.n_scenes == 1 and 0 < status.scene_bytes < status.scene_limit_bytes
    assert (status.n_networks, status.n_maps) == (2, 0) and status.network_bytes > 0
    scene.drop()
