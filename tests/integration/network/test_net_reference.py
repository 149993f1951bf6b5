# SPDX-License-Identifier: Apache-2.0
"""Networks from files, run by the engine on the CPU (net_run), against what the genuine spconv
recorded and against NumPy in float64 (net_reference)."""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
from net_reference import Network, read_safetensors, write_safetensors
from oracle import morton

SOURCE = Path(os.environ.get("VOXELD_SOURCE_DIR", Path(__file__).parents[3]))
NET_RUN = Path(os.environ["VOXELD_BIN_DIR"]) / "net_run"
CONFIGS = SOURCE / "configs" / "networks"
IMPORT = SOURCE / "configs" / "import" / "import_weights.py"
DATA = Path(os.environ.get("VOXELD_DATA", SOURCE.parent / "shared" / "data"))
RECORDING = SOURCE / "tests" / "data" / "spconv_unet3d.safetensors"
SVTNET = DATA / "networks" / "svtnet_oxford_baseline.pth"


def in_order(coords: np.ndarray) -> np.ndarray:
    """Returns the permutation to the engine's order: sample, then Morton."""
    return np.lexsort((morton(coords[:, 1:]), coords[:, 0]))


def run_engine(directory: Path, name: str, coords: np.ndarray, features: np.ndarray,
               precision: str = "fp32") -> dict[str, np.ndarray]:
    order = in_order(coords)
    write_safetensors(directory / "in", {
        "coords": np.ascontiguousarray(coords[order], dtype="<i4"),
        "features": np.ascontiguousarray(features[order], dtype="<f4")})
    subprocess.run([NET_RUN, directory, name, directory / "in", directory / "out", precision],
                   check=True, timeout=600)
    return read_safetensors(directory / "out")


def take_config(directory: Path, name: str, changes: dict[str, object] | None = None) -> None:
    config = json.loads((CONFIGS / f"{name}.json").read_text())
    config.update(changes or {})
    (directory / f"{name}.json").write_text(json.dumps(config))


def import_weights(library: str, source: Path, to: Path, *options: str) -> None:
    subprocess.run([sys.executable, IMPORT, library, source, to, *options], check=True,
                   timeout=60, stdout=subprocess.DEVNULL)


def rows_by_coords(coords: np.ndarray, values: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    return {tuple(c): v for c, v in zip(coords.tolist(), values, strict=True)}


def compare(coords: np.ndarray, values: np.ndarray, wanted_coords: np.ndarray,
            wanted: np.ndarray) -> float:
    """Returns the largest difference; the coordinates must be the same set."""
    found = rows_by_coords(coords, values)
    expected = rows_by_coords(wanted_coords, wanted)
    assert found.keys() == expected.keys()
    return max(float(np.abs(found[c] - expected[c]).max()) for c in expected)


def random_weights(directory: Path, name: str, seed: int) -> None:
    """Makes plausible values for all tensors of a config, without the engine."""
    rng = np.random.default_rng(seed)
    config = json.loads((directory / f"{name}.json").read_text())
    net = WantedTensors(config)
    write_safetensors(directory / config["weights"]["file"], net.draw(rng))


class WantedTensors:
    """Yields names and shapes of the tensors that a config's layers take, layout by layout."""

    def __init__(self, config: dict) -> None:
        self.config = config
        self.channels = {"@in": len(config["input"]["features"])}
        self.kernels: dict[str, list[int]] = {}
        self.wanted: dict[str, tuple[int, ...]] = {}
        self.defaults = config.get("defaults", {})
        last = "@in"
        for layer in config["layers"]:
            names = layer.get("in", last)
            names = [names] if isinstance(names, str) else names
            self.take(layer, [self.channels[n] for n in names])
            last = layer["name"]

    def take(self, layer: dict, n_in: list[int]) -> None:
        op, prefix = layer["op"], self.config["weights"].get("prefix", "")
        defaults = self.defaults
        self.channels[layer["name"]] = layer.get("ch", sum(n_in) if op == "cat" else n_in[-1])
        if "p_w" in layer:
            self.wanted[prefix + layer["p_w"]] = (1,)
        if op == "embedding":
            self.wanted[prefix + layer["w"] + ".weight"] = (layer["rows"], layer["ch"])
        if op == "bn":
            self.wanted |= {f"{prefix}{layer['bn_w']}.{part}": (n_in[0],)
                            for part in ("weight", "bias")}
        if op not in Network.CONVS:
            return
        if op == "inverse":
            kernel = self.kernels[layer["of_map"]]
        else:
            kernel = layer.get("kernel", defaults.get("kernel", 1)) if op != "linear" else 1
            kernel = [kernel] * 3 if isinstance(kernel, int) else kernel
        if "map" in layer:
            self.kernels[layer["map"]] = kernel
        layout = layer.get("layout", self.config["weights"]["layout"])
        stem, n_out = prefix + layer["w"], layer["ch"]
        volume = int(np.prod(kernel))
        if layout == "rsck":
            self.wanted[stem + ".weight"] = (*kernel, n_in[0], n_out)
        elif layout == "kio":
            self.wanted[stem + ".weight"] = (volume, n_in[0], n_out)
        elif layout in ("me", "torchsparse"):
            self.wanted[stem + ".kernel"] = (volume, n_in[0], n_out)
        elif layout == "torch":
            self.wanted[stem + ".weight"] = (n_out, n_in[0], *kernel)
        else:
            self.wanted[stem + ".weight"] = (n_out, *kernel, n_in[0])
        if layer.get("bias", defaults.get("bias", False)):
            self.wanted[stem + ".bias"] = (n_out,)
        if layer.get("bn", defaults.get("bn")) is not None:
            for part in ("weight", "bias", "running_mean", "running_var"):
                self.wanted[f"{prefix}{layer['bn_w']}.{part}"] = (n_out,)

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        out = {}
        for name, shape in self.wanted.items():
            value = rng.normal(size=shape)
            if name.endswith(".p"):
                value[:] = 3.1
            elif name.endswith((".running_var", ".weight")) and len(shape) == 1:
                value = 1 + 0.2 * np.abs(value)
            elif len(shape) == 1:
                value *= 0.1
            else:
                # On a surface few of the taps meet a voxel.
                value *= np.sqrt(2.0 / max(1, np.prod(shape) / max(shape[0], shape[-1])))
            out[name] = value.astype("<f4")
        return out


def surface(rng: np.random.Generator, n: int, size: tuple[int, int, int]) -> np.ndarray:
    """Makes voxels of a wavy sheet with some clutter: few neighbours, as scans have them."""
    x = rng.integers(0, size[0], n)
    y = rng.integers(0, size[1], n)
    z = (size[2] / 2 + size[2] / 4 * np.sin(x / 5) * np.cos(y / 7)).astype(int)
    z = np.where(rng.random(n) < 0.1, rng.integers(0, size[2], n), z)
    return np.unique(np.stack([x, y, z], axis=1), axis=0)


# --- the genuine spconv ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recording")
    take_config(directory, "unet-recording")
    import_weights("spconv", RECORDING, directory / "unet-recording.safetensors", "--only",
                   "weights.", "--rename", "weights.=")
    return directory


def recorded() -> tuple[np.ndarray, ...]:
    """Reads coordinates (sample, x, y, z), features, and spconv's result."""
    tensors = read_safetensors(RECORDING)
    zyx = [0, 3, 2, 1]
    return (tensors["input.indices"][:, zyx], tensors["input.features"],
            tensors["expect.out_indices"][:, zyx], tensors["expect.out_features"])


def test_recording_of_spconv_is_reproduced(recording: Path) -> None:
    coords, features, out_coords, out = recorded()
    result = run_engine(recording, "unet-recording", coords, features)
    error = compare(result["out.coords"], result["out.values"], out_coords, out)
    print(f"fp32 against spconv: {error:.3g} of {np.abs(out).max():.3g}")
    assert error <= 1e-5


@pytest.mark.parametrize(("precision", "bound"), [("fp16", 2e-3), ("bf16", 2e-2)])
def test_recording_of_spconv_is_near_in_halves(recording: Path, precision: str,
                                               bound: float) -> None:
    coords, features, out_coords, out = recorded()
    result = run_engine(recording, "unet-recording", coords, features, precision)
    error = compare(result["out.coords"], result["out.values"], out_coords, out)
    print(f"{precision} against spconv: {error:.3g} of {np.abs(out).max():.3g}")
    assert error <= bound * np.abs(out).max()


def test_reference_reproduces_the_recording(recording: Path) -> None:
    coords, features, out_coords, out = recorded()
    value = Network(recording, "unet-recording").run(coords, features)["out"]
    assert value.coords is not None
    assert compare(value.coords.rows, value.values, out_coords, out) <= 2e-6


def test_weights_read_without_the_1x1_quirk_are_wrong(recording: Path) -> None:
    """The importer's one change is one that matters."""
    coords, features, out_coords, out = recorded()
    config = json.loads((recording / "unet-recording.json").read_text())
    config["weights"] = {"file": "raw.safetensors", "layout": "krsc", "prefix": "weights."}
    config["name"] = "raw"
    (recording / "raw.json").write_text(json.dumps(config))
    tensors = read_safetensors(RECORDING)
    write_safetensors(recording / "raw.safetensors",
                      {k: v for k, v in tensors.items() if v.dtype == np.float32})
    result = run_engine(recording, "raw", coords, features)
    assert compare(result["out.coords"], result["out.values"], out_coords, out) > 0.1


# --- whole networks against NumPy --------------------------------------------------------------


def check_network(directory: Path, name: str, coords: np.ndarray, features: np.ndarray,
                  bound: float) -> None:
    """Compares all outputs, fp32, relative to the largest value."""
    result = run_engine(directory, name, coords, features)
    net = Network(directory, name)
    for output, value in net.run(coords, features).items():
        values = result[f"{output}.values"].astype(np.float64)
        if f"{output}.labels" in result:
            assert value.coords is not None
            best = value.values.argmax(axis=1)
            labels = rows_by_coords(result[f"{output}.coords"], result[f"{output}.labels"])
            margin = np.sort(value.values, axis=1)
            sure = margin[:, -1] - margin[:, -2] > 1e-3 * np.abs(value.values).max()
            for row in np.flatnonzero(sure):
                assert labels[tuple(value.coords.rows[row].tolist())] == best[row]
            continue
        scale = np.abs(value.values).max()
        assert scale > 1e-3
        if value.coords is None:
            error = np.abs(values - value.values).max()
        elif f"{output}.coords" in result:
            rows = value.coords.rows.copy()
            if value.coords.is_floor:
                rows[:, 1:] *= np.array(value.coords.stride)
            error = compare(result[f"{output}.coords"], values, rows, value.values)
        else:
            error = np.abs(values - net.dense(value)).max()
        print(f"{name}.{output}: {error / scale:.3g}")
        assert error <= bound * scale


SMALL = {
    "second": {"range": [0, 0, 0, 3.2, 2.4, 4], "bounded": [41, 48, 64]},
    "centerpoint": {"range": [0, 0, 0, 4.8, 3.6, 8], "bounded": [41, 48, 64]},
}


@pytest.mark.parametrize("name", ["second", "centerpoint", "minkunet42", "spunet",
                                  "minkloc3d"])
def test_shipped_network_is_what_numpy_computes(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(11)
    config = json.loads((CONFIGS / f"{name}.json").read_text())
    take_config(tmp_path, name, {"input": config["input"] | SMALL.get(name, {})})
    random_weights(tmp_path, name, 12)
    sheets = [surface(rng, 700, (64, 48, 40)) for _ in range(2)]
    if config["input"]["mode"] == "quantize":  # signed coordinates
        sheets = [sheet - np.array([37, 21, 13]) for sheet in sheets]
    coords = np.concatenate([np.insert(s, 0, i, axis=1) for i, s in enumerate(sheets)])
    features = rng.normal(size=(len(coords), len(config["input"]["features"])))
    check_network(tmp_path, name, coords, features.astype(np.float32), 1e-4)


OPS = {
    "format": "voxeld-net/1", "name": "ops", "axes": ["y", "z", "x"],
    "semantics": "minkowski", "weights": {"file": "ops.safetensors", "layout": "me"},
    "input": {"mode": "quantize", "features": ["x", "y"], "voxel_size": 1},
    "defaults": {"act": "relu"},
    "layers": [
        {"name": "table", "op": "embedding", "ch": 6, "rows": 5, "w": "table"},
        {"name": "stem", "op": "subm", "ch": 6, "kernel": [3, 1, 5], "w": "stem"},
        {"name": "even", "op": "subm", "ch": 6, "kernel": [2, 3, 2], "dilation": [1, 2, 1],
         "w": "even", "layout": "torchsparse", "bias": True},
        {"name": "pool", "op": "pool", "kind": "max", "kernel": 2, "map": "p"},
        {"name": "wide", "op": "conv", "ch": 7, "kernel": [3, 2, 3], "stride": [2, 1, 2],
         "in": "pool", "w": "wide", "layout": "kio"},
        {"name": "up", "op": "transpose", "ch": 6, "kernel": [3, 2, 3], "stride": [2, 1, 2],
         "onto": "pool", "w": "up", "layout": "torch", "act": "gelu"},
        {"name": "free", "op": "transpose", "ch": 6, "kernel": 2, "stride": 2, "w": "free",
         "layout": "rsck", "act": {"type": "leaky_relu", "alpha": 0.2}},
        {"name": "unpool", "op": "unpool", "in": "up", "of_map": "p"},
        {"name": "union", "op": "add_union", "in": ["free", "unpool"], "act": "sigmoid"},
        {"name": "norm", "op": "bn", "bn": {"eps": 0.001, "stats": "sample"}, "bn_w": "norm"},
        {"name": "prune", "op": "prune", "in": ["union", "norm"], "threshold": 0.1},
        {"name": "unit", "op": "l2norm"},
        {"name": "mean", "op": "pool", "kind": "avg", "kernel": 3, "stride": 1, "in": "union"},
        {"name": "total", "op": "pool", "kind": "sum", "kernel": 3, "stride": 2,
         "semantics": "spconv", "padding": [1, 0, 1], "in": "even"},
        {"name": "soft", "op": "softmax"},
        {"name": "top", "op": "global", "kind": "max", "in": "prune"}],
    "outputs": [{"name": name, "from": name, "as": "voxels"}
                for name in ("even", "up", "free", "union", "norm", "unit", "mean", "total",
                             "soft")] +
               [{"name": "top", "from": "top", "as": "vector", "l2norm": True}],
}


def test_every_op_and_layout_is_what_numpy_computes(tmp_path: Path) -> None:
    rng = np.random.default_rng(21)
    (tmp_path / "ops.json").write_text(json.dumps(OPS))
    random_weights(tmp_path, "ops", 22)
    sheets = [surface(rng, 300, (30, 22, 18)) - np.array([17, 11, 9]) for _ in range(3)]
    coords = np.concatenate([np.insert(s, 0, i, axis=1) for i, s in enumerate(sheets)])
    features = rng.integers(-1, 6, size=(len(coords), 2)).astype(np.float32)
    check_network(tmp_path, "ops", coords, features, 1e-4)


# --- SVT-Net, trained ----------------------------------------------------------------------------


def scan(path: Path) -> np.ndarray:
    return np.fromfile(path, "<f4").reshape(-1, 4)[:, :3]


def place(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Does the config's normalize and quantize steps, from the manual's words: it removes the
    ground and what is 25 m away, takes 4096 points, moves their mean to the middle, scales to [-1,
    1], and makes voxels of 0.01."""
    points = points[np.isfinite(points).all(axis=1)]
    points = points[(np.abs(points[:, :2]) < 25).all(axis=1) & (points[:, 2] > -1.4)]
    m = len(points)
    points = points[[i * m // 4096 for i in range(4096)]].astype(np.float64)
    points -= points.mean(axis=0)
    points /= np.abs(points).max()
    voxels = np.unique(np.floor(points.astype(np.float32) / np.float32(0.01)).astype(int), axis=0)
    return voxels, np.ones((len(voxels), 1), np.float32)


@pytest.fixture(scope="module")
def svtnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not SVTNET.exists():
        pytest.skip("SVT-Net's trained weights are not in VOXELD_DATA")
    directory = tmp_path_factory.mktemp("svtnet")
    take_config(directory, "svtnet")
    import_weights("minkowski", SVTNET, directory / "svtnet.safetensors")
    return directory


SCANS = ["kitti_seq_000000", "kitti_seq_000001", "kitti_object_000001", "semantickitti_000000"]


@pytest.fixture(scope="module")
def places(svtnet: Path) -> tuple[np.ndarray, np.ndarray]:
    """Makes the four scans one batch."""
    found = [place(scan(DATA / "lidar" / f"{name}.bin")) for name in SCANS]
    coords = np.concatenate([np.insert(c, 0, i, axis=1) for i, (c, _) in enumerate(found)])
    return coords, np.concatenate([f for _, f in found])


def test_svtnet_of_real_scans_is_what_numpy_computes(
        svtnet: Path, places: tuple[np.ndarray, np.ndarray]) -> None:
    coords, features = places
    expected = Network(svtnet, "svtnet").run(coords, features)["descriptor"].values
    exact = run_engine(svtnet, "svtnet", coords, features)["descriptor.values"]
    error = np.abs(exact - expected).max() / np.abs(expected).max()
    print(f"fp32: {error:.3g} of the largest")
    assert error <= 1e-4
    for precision in ("fp16", "bf16"):
        found = run_engine(svtnet, "svtnet", coords, features, precision)["descriptor.values"]
        cosine = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / \
            np.linalg.norm(expected, axis=1)
        print(f"{precision}: cosines {cosine}")
        assert (cosine >= (0.999 if precision == "fp16" else 0.99)).all()


def test_svtnet_finds_the_same_place_nearest(
        svtnet: Path, places: tuple[np.ndarray, np.ndarray]) -> None:
    found = run_engine(svtnet, "svtnet", *places)["descriptor.values"].astype(np.float64)
    distance = np.linalg.norm(found[:, None] - found[None], axis=2)
    print(distance)
    for other in (2, 3):
        assert distance[0, 1] < distance[0, other]
        assert distance[0, 1] < distance[1, other]


def test_svtnet_of_one_scan_is_the_same_alone_and_in_a_batch(
        svtnet: Path, places: tuple[np.ndarray, np.ndarray]) -> None:
    coords, features = places
    batch = run_engine(svtnet, "svtnet", coords, features)["descriptor.values"]
    for sample in range(len(SCANS)):
        mine = coords[:, 0] == sample
        alone = coords[mine] * np.array([0, 1, 1, 1])
        found = run_engine(svtnet, "svtnet", alone, features[mine])["descriptor.values"]
        assert (found[0].view(np.uint32) == batch[sample].view(np.uint32)).all()


# --- the importer --------------------------------------------------------------------------------


def write_checkpoint(path: Path, state: dict[str, np.ndarray]) -> None:
    """Writes NumPy arrays as torch.save does, strides and all. PyTorch's names exist as far as the
    pickle needs them."""
    storages = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<i8": "LongStorage"}
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def rebuild(*_args: object) -> None:
        raise AssertionError("is only named")

    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = rebuild
    for name in storages.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))
    files: list[bytes] = []

    class Stored:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __reduce__(self) -> tuple:
            base = self.array if self.array.base is None else self.array.base
            offset = (self.array.__array_interface__["data"][0] -
                      base.__array_interface__["data"][0]) // self.array.itemsize
            strides = tuple(s // self.array.itemsize for s in self.array.strides)
            return rebuild, (Storage(base), offset, self.array.shape, strides, False, None)

    class Storage:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

    class Pickler(pickle.Pickler):
        def persistent_id(self, found: object) -> tuple | None:
            if not isinstance(found, Storage):
                return None
            files.append(found.array.tobytes())
            kind = getattr(torch, storages[found.array.dtype.str])
            return ("storage", kind, str(len(files) - 1), "cpu", found.array.size)

    buffer = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", torch)
        patch.setitem(sys.modules, "torch._utils", utils)
        Pickler(buffer, protocol=2).dump(
            {"model_state": collections.OrderedDict((k, Stored(v)) for k, v in state.items()),
             "epoch": 80})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", buffer.getvalue())
        for i, content in enumerate(files):
            archive.writestr(f"archive/data/{i}", content)


def test_checkpoint_keeps_names_types_and_strided_elements(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    plain = rng.normal(size=(4, 3, 3, 3, 2)).astype("<f4")
    one = rng.normal(size=(5, 1, 1, 1, 3)).astype("<f4")
    strided = rng.normal(size=(6, 8)).astype("<f2")
    state = {"module.net.0.weight": plain, "module.net.1.weight": one,
             "module.net.2.weight": strided[1:5, ::2].T, "module.net.3.tracked":
             np.array([7], "<i8"), "module.head.weight": plain}
    write_checkpoint(tmp_path / "c.pth", state)
    import_weights("spconv", tmp_path / "c.pth", tmp_path / "c.safetensors", "--only", "net.",
                   "--rename", "net.=backbone.")
    found = read_safetensors(tmp_path / "c.safetensors")
    assert sorted(found) == ["backbone.0.weight", "backbone.1.weight", "backbone.2.weight"]
    assert (found["backbone.0.weight"] == plain).all()
    # spconv's buffer of a 1x1 convolution is [in, out] under another name.
    assert (found["backbone.1.weight"].reshape(5, 3) == one.reshape(3, 5).T).all()
    assert found["backbone.2.weight"].dtype == np.float16
    assert (found["backbone.2.weight"] == strided[1:5, ::2].T).all()
    import_weights("minkowski", tmp_path / "c.pth", tmp_path / "m.safetensors")
    found = read_safetensors(tmp_path / "m.safetensors")
    assert (found["net.1.weight"] == one).all()
    assert "head.weight" in found


def test_checkpoint_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (os.system, (f"touch {tmp_path / 'ran'}",))

    with zipfile.ZipFile(tmp_path / "evil.pth", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"w": Evil()}, protocol=2))
    for options in ([], ["--ignore-unknown"]):
        done = subprocess.run([sys.executable, IMPORT, "minkowski", tmp_path / "evil.pth",
                               tmp_path / "out.safetensors", *options], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "ran").exists()
    (tmp_path / "text.pth").write_text("no checkpoint")
    done = subprocess.run([sys.executable, IMPORT, "spconv", tmp_path / "text.pth",
                           tmp_path / "out.safetensors"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
