# SPDX-License-Identifier: Apache-2.0
"""Refusals say what there is and what would be right, before work is done that cannot be used."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, running
from networks import CONFIG, write_files, write_network
from semantic import LABELS, some_points, write_signs

PALETTE = [("road", 0x808080), ("wall", 0xFF0000), ("tree", 0x00FF00)]

ME = f"uid-{os.geteuid()}"  # who a trusted user of the ipc socket is


@pytest.fixture(scope="module")
def directory_of_networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("n")
    write_signs(folder)
    write_network(folder, "tiny")
    return folder


@pytest.fixture(scope="module")
def daemon(
    tmp_path_factory: pytest.TempPathFactory, directory_of_networks: Path
) -> Iterator[Daemon]:
    config = {"networks_dir": str(directory_of_networks), "networks": ["signs"]}
    with running(tmp_path_factory.mktemp("d"), config) as running_daemon:
        yield running_daemon


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as connected:
        yield connected


def palette() -> list[voxeld.Material]:
    return [voxeld.Material(name, rgb) for name, rgb in PALETTE]


def test_existing_scene_says_which_parameters_differ(client: voxeld.Client) -> None:
    client.scene_create("yard", 0.1, track_free=True, palette=palette(), material_bits=8)
    with pytest.raises(voxeld.AlreadyExists) as error:
        client.scene_create("yard", 0.25, material_bits=4)
    assert "voxel_size_m is 0.1, not 0.25" in error.value.message
    assert "material_bits is 8, not 4" in error.value.message
    assert "track_free is set" in error.value.message
    with pytest.raises(voxeld.AlreadyExists, match="palette differs"):
        client.scene_create(
            "yard", 0.1, track_free=True, material_bits=8,
            palette=[*palette()[:2], voxeld.Material("bush", 0x00FF00)],
        )  # fmt: skip
    with pytest.raises(voxeld.AlreadyExists, match="retention.versions is 64, not 5"):
        client.scene_create(
            "yard", 0.1, track_free=True, palette=palette(), material_bits=8, keep_versions=5
        )
    client.scene_create("yard", 0.1, track_free=True, palette=palette(), material_bits=8)


def test_existing_map_and_volume_say_which_parameters_differ(client: voxeld.Client) -> None:
    client.map_create("seen", {"count": np.uint64})
    with pytest.raises(voxeld.AlreadyExists, match="key_components is 3, not 2"):
        client.map_create("seen", {"count": np.uint64}, n_components=2)
    with pytest.raises(voxeld.AlreadyExists, match="values differs"):
        client.map_create("seen", {"number": np.uint64})
    with pytest.raises(voxeld.AlreadyExists, match="ttl_s is 0, not 60"):
        client.map_create("seen", {"count": np.uint64}, ttl_s=60)
    client.volume_create("kitchen", 0.02)
    with pytest.raises(voxeld.AlreadyExists) as error:
        client.volume_create("kitchen", 0.01, colour=True)
    assert "voxel_size_m is 0.02, not 0.01" in error.value.message
    assert "colour is not set" in error.value.message


def test_missing_names_say_what_there_is(client: voxeld.Client) -> None:
    client.scene_create("lab", 0.1)
    client.map_create("drive", {"count": np.uint64})
    client.volume_create("cellar", 0.02)
    with pytest.raises(voxeld.NotFound, match='no scene "lba". Did you mean "lab"?'):
        client.scene("lba")
    with pytest.raises(voxeld.NotFound, match='no scene "harbour"; scenes: .*lab'):
        client.scene("harbour")
    with pytest.raises(voxeld.NotFound, match='no map "driv". Did you mean "drive"?'):
        client.map("driv")
    with pytest.raises(voxeld.NotFound, match='no volume "celar". Did you mean "cellar"?'):
        client.volume("celar")
    scan = some_points(100)
    with pytest.raises(voxeld.NotFound, match='"sings" is loaded. Did you mean "signs"?'):
        client.infer("sings", scan)
    with pytest.raises(voxeld.NotFound, match="but networks_dir has one: load it"):
        client.infer("tiny", scan)


def test_names_of_others_are_not_shown(directory: Path) -> None:
    tokens = directory / "tokens"
    lines = [
        f"{name} read,write {hashlib.sha256(name.encode()).hexdigest()} {rules}\n"
        for name, rules in (("ann", "names=ann-"), ("ben", "names=ben-"))
    ]
    tokens.write_text("".join(lines))
    tokens.chmod(0o600)
    with (
        running(directory / "d", {"auth": {"tokens_file": str(tokens)}}) as daemon,
        voxeld.connect(daemon.ipc, "ann") as ann,
        voxeld.connect(daemon.ipc, "ben") as ben,
    ):
        ann.scene_create("ann-yard", 0.1)
        with pytest.raises(voxeld.NotFound) as error:
            ben.scene("ben-yard")
        assert "ann" not in error.value.message
        assert "there are no scenes" in error.value.message


def test_labels_and_materials_are_refused_before_the_network_runs(
    client: voxeld.Client,
) -> None:
    client.scene_create("named", 0.5, palette=palette(), material_bits=4)
    scene = client.scene("named")
    scan = some_points(5000)
    before = client.network("signs").n_requests
    with pytest.raises(voxeld.InvalidArgument, match='Did you mean "above"?'):
        scene.integrate(scan, network="signs", labels={"abvoe": "wall"})
    with pytest.raises(voxeld.InvalidArgument, match=f"names of labels: {', '.join(LABELS)}"):
        scene.integrate(scan, network="signs", labels={"sky": "wall"})
    with pytest.raises(voxeld.InvalidArgument, match='palette. Did you mean "wall"?'):
        scene.integrate(scan, network="signs", labels={"above": "walls"})
    with pytest.raises(voxeld.InvalidArgument, match="named materials: road, wall, tree"):
        scene.integrate(scan, network="signs", labels={"above": "lamp"})
    with pytest.raises(voxeld.InvalidArgument, match="the scene's materials are 0 to 15"):
        scene.integrate(scan, network="signs", labels={"above": 99})
    assert client.network("signs").n_requests == before
    done = scene.integrate(scan, network="signs", labels={"above": "wall"})
    assert done.n_used > 0
    assert client.network("signs").n_requests == before + 1


def test_what_cannot_be_in_time_is_refused_with_advice(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A run of a network with wide layers says how long it takes; less time is refused at once."""
    folder = tmp_path_factory.mktemp("w")
    layers = [
        {"name": f"l{i}", "op": "linear", "ch": 256, "act": "relu", "bn": None, "layout": "torch"}
        for i in range(12)
    ]
    layers.append(
        {"name": "h", "op": "linear", "ch": 3, "act": None, "bn": None, "layout": "torch"}
    )
    write_wide(folder, layers)
    scan = some_points(200_000, seed=3)
    config = {"networks_dir": str(folder), "networks": ["wide"]}
    with (
        running(tmp_path_factory.mktemp("d"), config) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        client.infer("wide", scan)
        whole_s = client.infer("wide", scan).engine_ms / 1000
        began = time.monotonic()
        with pytest.raises(voxeld.FailedPrecondition) as error:
            client.infer("wide", scan, timeout=whole_s / 20)
        assert time.monotonic() - began < whole_s
        assert error.value.field == "header.timeout_ms"
        assert "takes at least" in error.value.message
        assert "(--timeout" in error.value.message
        # The estimate is lowered until one is tried, and a longer time is always fine.
        for _ in range(60):
            with pytest.raises((voxeld.FailedPrecondition, voxeld.DeadlineExceeded)) as last:
                client.infer("wide", scan, timeout=whole_s / 20)
            if isinstance(last.value, voxeld.DeadlineExceeded):
                break
        assert isinstance(last.value, voxeld.DeadlineExceeded)
        assert "timeout" in last.value.message
        client.infer("wide", scan)


def write_wide(folder: Path, layers: list[dict[str, object]]) -> None:
    rng = np.random.default_rng(1)
    tensors = {}
    n_in = 2
    for layer in layers:
        n_out = int(str(layer["ch"]))
        tensors[f"{layer['name']}.weight"] = rng.normal(0, 0.05, (n_out, n_in)).astype(np.float32)
        tensors[f"{layer['name']}.bias"] = np.zeros(n_out, np.float32)
        n_in = n_out
    config = {
        **CONFIG,
        "name": "wide",
        "weights": {"file": "wide.safetensors", "layout": "krsc"},
        "input": {**CONFIG["input"], "features": ["x", "z"]},
        "layers": layers,
        "outputs": [{"name": "rows", "from": "h", "as": "voxels"}],
    }
    write_files(folder, config, tensors)


def test_networks_of_calls_come_back_after_a_restart(
    directory: Path, directory_of_networks: Path
) -> None:
    config = {"networks_dir": str(directory_of_networks)}
    kept = directory / "data" / "networks"
    with running(directory, config) as daemon, voxeld.connect(daemon.ipc) as client:
        client.network_load("signs", precision="fp16")
        client.network_load("tiny")
        assert kept.read_text() == f"voxeld-networks/1\nsigns fp16 {ME}\ntiny config {ME}\n"
    with running(directory, config) as daemon, voxeld.connect(daemon.ipc) as client:
        assert [(n.name, n.precision) for n in client.networks()] == [
            ("signs", "fp16"),
            ("tiny", "fp32"),
        ]
        client.network_unload("signs")
    assert kept.read_text() == f"voxeld-networks/1\ntiny config {ME}\n"
    # One that cannot be loaded is logged, and the others come back.
    kept.write_text("voxeld-networks/1\ngone auto\nnonsense\ntiny auto ann b\ntiny auto\n")
    with running(directory, config) as daemon, voxeld.connect(daemon.ipc) as client:
        assert [n.name for n in client.networks()] == ["tiny"]
        failed = [e for e in daemon.log if "cannot be loaded again" in e["msg"]]
        assert [e["network"] for e in failed] == ["gone auto", "nonsense", "tiny auto ann b"]
    kept.write_text("something else")
    with running(directory, config) as daemon, voxeld.connect(daemon.ipc) as client:
        assert client.networks() == ()
        assert any("cannot be read" in e["msg"] for e in daemon.log)


def test_backup_has_the_networks_that_calls_loaded(
    directory: Path, directory_of_networks: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    config: dict[str, Any] = {
        "networks_dir": str(directory_of_networks),
        "data_dir": str(tmp_path / "data"),
        "archive_dir": str(archive),
    }
    backup = tmp_path / "data" / "backups" / "monday"
    restored = tmp_path / "restored"
    with running(directory, config) as daemon, voxeld.connect(daemon.ipc) as client:
        client.network_load("signs", precision="fp16")
        client.backup("monday")
        client.network_unload("signs")
        # The list of later is not the backup's.
        assert (backup / "networks").read_text() == f"voxeld-networks/1\nsigns fp16 {ME}\n"
    done = subprocess.run(
        [BIN / "voxelctl", "restore", backup, restored, "--archive", archive, "--until", "end",
         "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(restored)
    for folder in (backup, restored):
        config["data_dir"] = str(folder)
        with running(directory, config) as daemon, voxeld.connect(daemon.ipc) as client:
            assert [(n.name, n.precision) for n in client.networks()] == [("signs", "fp16")]


def test_precision_auto_is_fp32_on_a_cpu(client: voxeld.Client) -> None:
    backend = client.server_info().backend
    loaded = client.network_load("tiny", precision="auto")
    assert loaded.precision == ("fp32" if backend == "cpu" else "fp16")
    client.network_unload("tiny")


@pytest.mark.parametrize("track_free", [False, True])
def test_scene_info_has_the_box_of_its_voxels(client: voxeld.Client, track_free: bool) -> None:
    name = f"box-{track_free}".lower()
    scene = client.scene_create(name, 0.25, origin=(-40, -20, -10), depth=9, track_free=track_free)
    assert scene.info().occupied_low is None
    rng = np.random.default_rng(5)
    for n in (1, 2, 300):
        points = rng.uniform((-30, -15, -5), (50, 60, 70), (n, 3)).astype(np.float32)
        scene.integrate(points, carve=track_free)
        cells = scene.export().cells
        corner = np.array([-40, -20, -10])
        info = scene.info()
        assert np.allclose(info.occupied_low, corner + cells.min(0) * 0.25, atol=1e-9), n
        assert np.allclose(info.occupied_high, corner + (cells.max(0) + 1) * 0.25, atol=1e-9), n
    scene.drop()


def test_voxelize_says_what_its_channels_count_from(client: voxeld.Client) -> None:
    points = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy")[:1000]
    assert client.voxelize(points, size=0.5).frame == "map"
    moved = client.voxelize(points, size=0.5, origin=(10, 0, 0))
    assert moved.frame == "origin"
    centres = moved.centres()[:, 0]
    means = moved.mean[:, 0] + 10
    assert np.abs(centres - means).max() <= 0.25 + 1e-4


def test_overflow_of_fp16_names_the_layer_and_the_item(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("o")
    layer = {"op": "linear", "act": None, "bn": None, "layout": "torch"}
    config = {
        **CONFIG,
        "name": "steep",
        "precision": "fp16",
        "weights": {"file": "steep.safetensors", "layout": "krsc"},
        "input": {**CONFIG["input"], "features": ["x", "z"]},
        "layers": [{**layer, "name": name, "ch": 3} for name in ("a", "b", "c")],
        "outputs": [
            {"name": "rows", "from": "c", "as": "voxels"},
            {"name": "labels", "from": "c", "as": "points", "argmax": True, "fill": -1,
             "labels": LABELS},
        ],
    }  # fmt: skip
    tensors = {
        "a.weight": np.full((3, 2), 100, np.float32), "b.weight": np.full((3, 3), 100, np.float32),
        "c.weight": np.array([[1, -1, 0], [0, 1, -1], [1, 0, 0]], np.float32),
        **{f"{name}.bias": np.zeros(3, np.float32) for name in "abc"},
    }  # fmt: skip
    write_files(folder, config, tensors)
    near = np.random.default_rng(1).uniform(-0.4, 0.4, (50, 3)).astype(np.float32)
    far = near + np.float32([30, 0, 0])  # 30 * 100 * 300 = 900,000 > 65,504
    with (
        running(tmp_path_factory.mktemp("d"), {"networks_dir": str(folder)}) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        client.network_load("steep")
        both = client.infer("steep", [near, far], outputs="*")
        assert both.items[0].code == voxeld.Code.OK
        assert both.items[1].code == voxeld.Code.DATA_LOSS
        assert 'from the layer "b" on: it overflows fp16' in both.items[1].message
        alone = client.infer("steep", near, outputs="*")
        assert alone.items[0].code == voxeld.Code.OK
        n = len(alone.outputs["rows"].values)
        assert np.array_equal(both.outputs["rows"].values[:n], alone.outputs["rows"].values)
        scene = client.scene_create("steep", 0.5, material_bits=4)
        with pytest.raises(voxeld.FailedPrecondition, match='layer "b"'):
            scene.integrate(far, network="steep")
        assert scene.info().n_occupied == 0
        # fp32 and bf16 hold these values, but FLOAT16 in the reply does not.
        for precision in ("fp32", "bf16"):
            client.network_load("steep", precision=precision)
            fits = client.infer("steep", [near, far], outputs="*")
            assert [item.code for item in fits.items] == [voxeld.Code.OK] * 2
            assert np.isfinite(fits.outputs["rows"].values).all()


def test_rule_double_follows_numpy_and_open3d(client: voxeld.Client) -> None:
    """Open3D's voxel_down_sample: floor((p - (lowest - size / 2)) / size), all in float64."""
    scan = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy")[:, :3]
    for size in (0.1, 0.05):
        origin = scan.min(0).astype(np.float64) - size / 2
        voxels = client.voxelize(
            scan, size=size, rule="double", origin=origin, outputs=("coords", "inverse")
        )
        expected = np.floor((scan.astype(np.float64) - origin) / size).astype(int)
        assert voxels.rule == "double"
        assert np.array_equal(voxels.coords[voxels.inverse, 1:], expected)
        assert len(voxels) == len(np.unique(expected, axis=0))
    # Points on borders: float32 has 3 * 0.1f below 0.3, float64 has 0.1 * 3 above it.
    borders = np.arange(-2000, 2000)[:, None] * np.array([0.1, 0.2, 0.7])
    voxels = client.voxelize(borders, size=0.1, rule="double", outputs=("coords", "inverse"))
    assert np.array_equal(voxels.coords[voxels.inverse, 1:], np.floor(borders / 0.1).astype(int))
    single = client.voxelize(borders, size=0.1, outputs=("coords", "inverse"))
    differ = voxels.coords[voxels.inverse] != single.coords[single.inverse]
    assert 0 < differ.any(1).sum() < len(borders)
