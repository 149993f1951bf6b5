# SPDX-License-Identifier: Apache-2.0
"""Networks of the format voxeld-net/1 in plain NumPy and float64, from the format's manual and
the libraries' formulas alone: coordinates are rows of integers looked up in dictionaries, a
convolution is a sum over taps. Slow, and independent of the engine."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I32": "<i4", "I64": "<i8"}
AXES = {"x": 0, "y": 1, "z": 2}


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])],
                                FLOATS[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    kinds = {np.dtype(kind): name for name, kind in FLOATS.items()}
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text +
                     b"".join(np.ascontiguousarray(t).tobytes() for t in tensors.values()))


class Coords:
    """A coordinate set: n x 4 (sample, x, y, z), counted in cells of its own stride."""

    def __init__(self, rows: np.ndarray, stride: tuple[int, int, int],
                 shape: tuple[int, int, int] | None, is_floor: bool = False) -> None:
        self.rows = rows.astype(np.int64)
        self.stride = stride
        self.shape = shape
        self.is_floor = is_floor
        self.index = {tuple(row): i for i, row in enumerate(self.rows.tolist())}

    def find(self, lookup_keys: np.ndarray) -> np.ndarray:
        return np.array([self.index.get(tuple(row), -1) for row in lookup_keys.tolist()],
                        np.int64)


@dataclass
class Map:
    """Finds the row of `source` that each tap of each row of `result` reads, or -1."""

    source: Coords
    result: Coords
    kernel: tuple[int, int, int]
    taps: dict[tuple[int, int, int], np.ndarray] = field(default_factory=dict)


@dataclass
class Value:
    values: np.ndarray
    coords: Coords | None  # None: tokens of each sample, sample major
    n_tokens: int = 0


def _vector(value: Any, axes: list[int], default: int) -> tuple[int, int, int]:
    if value is None:
        value = default
    if isinstance(value, int):
        return (value, value, value)
    out = [0, 0, 0]
    for number, axis in zip(value, axes, strict=True):
        out[axis] = number
    return (out[0], out[1], out[2])


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


def activate(x: np.ndarray, act: Any) -> np.ndarray:
    if act is None or act == "none":
        return x
    kind = act if isinstance(act, str) else act["type"]
    alpha = 0.01 if isinstance(act, str) else act.get("alpha", 0.01)
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "leaky_relu":
        return np.where(x < 0, alpha * x, x)
    if kind == "gelu":
        return 0.5 * x * (1 + _erf(x / math.sqrt(2)))
    if kind == "sigmoid":
        return 1 / (1 + np.exp(-x))
    raise ValueError(kind)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


class Network:
    """One config with its weights; run() gives the outputs by name."""

    CONVS = ("subm", "conv", "inverse", "transpose", "linear")

    def __init__(self, directory: Path, name: str) -> None:
        self.config = json.loads((directory / f"{name}.json").read_text())
        weights = self.config["weights"]
        self.prefix = weights.get("prefix", "")
        self.tensors = read_safetensors(directory / weights.get("file", f"{name}.safetensors"))
        self.axes = [AXES[a] for a in self.config["axes"]]

    # --- weights ---------------------------------------------------------------------------

    def tensor(self, name: str) -> np.ndarray:
        return self.tensors[self.prefix + name].astype(np.float64)

    def weights(self, layer: dict[str, Any], kernel: tuple[int, int, int], n_in: int,
                n_out: int) -> np.ndarray:
        """Reorders the layer's layout to [rx, ry, rz, in, out]."""
        layout = layer.get("layout", self.config["weights"].get("layout", "krsc"))
        suffix = ".kernel" if layout in ("me", "torchsparse") else ".weight"
        raw = self.tensor(layer.get("w", layer["name"]) + suffix)
        k = [kernel[a] for a in self.axes]
        volume = k[0] * k[1] * k[2]
        if layout == "krsc":
            w = raw.reshape(n_out, *k, n_in).transpose(1, 2, 3, 4, 0)
        elif layout == "rsck":
            w = raw.reshape(*k, n_in, n_out)
        elif layout == "torch":
            w = raw.reshape(n_out, n_in, *k).transpose(2, 3, 4, 1, 0)
        elif layout == "me" or (layout == "torchsparse" and volume % 2 == 1):
            w = raw.reshape(k[2], k[1], k[0], n_in, n_out).transpose(2, 1, 0, 3, 4)
        else:
            w = raw.reshape(*k, n_in, n_out)
        # The first three axes follow the config's axes so far; they become x, y, z.
        order = [self.axes.index(a) for a in range(3)]
        return w.transpose(*order, 3, 4)

    def option(self, layer: dict[str, Any], key: str, default: Any = None) -> Any:
        if key in layer:
            return layer[key]
        if layer["op"] in self.CONVS and not (key == "kernel" and layer["op"] == "linear"):
            return self.config.get("defaults", {}).get(key, default)
        return default

    # --- maps ------------------------------------------------------------------------------

    def output_set(self, layer: dict[str, Any], source: Coords,
                   geometry: tuple[Any, Any, Any, Any]) -> Coords:
        kernel, stride, padding, dilation = geometry
        step = np.array(stride)
        new_stride = tuple(a * b for a, b in zip(source.stride, stride, strict=True))
        if self.semantics(layer) == "minkowski":
            if stride == (1, 1, 1):
                return source
            rows = source.rows.copy()
            rows[:, 1:] = np.floor_divide(rows[:, 1:], step)
            return Coords(np.unique(rows, axis=0), new_stride, None, True)
        shape = None
        if source.shape is not None:
            shape = tuple((s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in
                          zip(source.shape, kernel, stride, padding, dilation, strict=True))
        found = []
        for r in product(*(range(k) for k in kernel)):
            at = source.rows[:, 1:] + np.array(padding) - np.array(r) * np.array(dilation)
            ok = (at % step == 0).all(axis=1)
            rows = np.concatenate([source.rows[:, :1], at // step], axis=1)
            if shape is not None:
                ok &= ((rows[:, 1:] >= 0) & (rows[:, 1:] < np.array(shape))).all(axis=1)
            found.append(rows[ok])
        return Coords(np.unique(np.concatenate(found), axis=0), new_stride, shape)

    def semantics(self, layer: dict[str, Any]) -> str:
        return layer.get("semantics", self.config["semantics"])

    def kernel_map(self, layer: dict[str, Any], source: Coords) -> Map:
        op = layer["op"]
        kernel = _vector(self.option(layer, "kernel"), self.axes, 0)
        default = kernel if op == "pool" else (1, 1, 1)
        stride = _vector(layer["stride"], self.axes, 1) if "stride" in layer else default
        dilation = _vector(layer.get("dilation"), self.axes, 1)
        padding = _vector(layer.get("padding"), self.axes, 0)
        if op == "subm" or self.semantics(layer) == "minkowski":
            padding = tuple(k // 2 * d if k % 2 else 0
                            for k, d in zip(kernel, dilation, strict=True))
        geometry = (kernel, stride, padding, dilation)
        key = (id(source), op == "subm", self.semantics(layer), geometry)
        if key in self.maps:
            return self.maps[key]
        result = source if op == "subm" else self.output_set(layer, source, geometry)
        out = Map(source, result, kernel)
        for r in product(*(range(k) for k in kernel)):
            lookup_keys = result.rows.copy()
            lookup_keys[:, 1:] = lookup_keys[:, 1:] * np.array(stride) - np.array(padding) + \
                np.array(r) * np.array(dilation)
            out.taps[r] = source.find(lookup_keys)
        self.maps[key] = out
        return out

    # --- layers ----------------------------------------------------------------------------

    def convolve(self, layer: dict[str, Any], x: Value) -> tuple[np.ndarray, Coords | None]:
        op, n_in, n_out = layer["op"], x.values.shape[1], layer["ch"]
        if op == "linear":
            return x.values @ self.weights(layer, (1, 1, 1), n_in, n_out)[0, 0, 0], x.coords
        assert x.coords is not None
        if op == "inverse":
            kmap = self.named[layer["of_map"]]
            weights = self.weights(layer, kmap.kernel, n_in, n_out)
            out = np.zeros((len(kmap.source.rows), n_out))
            for r, rows in kmap.taps.items():
                hit = np.flatnonzero(rows >= 0)
                np.add.at(out, rows[hit], x.values[hit] @ weights[r])
            return out, kmap.source
        if op == "transpose":
            return self.transpose(layer, x, n_in, n_out)
        kmap = self.kernel_map(layer, x.coords)
        if "map" in layer:
            self.named[layer["map"]] = kmap
        weights = self.weights(layer, kmap.kernel, n_in, n_out)
        out = np.zeros((len(kmap.result.rows), n_out))
        for r, rows in kmap.taps.items():
            hit = np.flatnonzero(rows >= 0)
            out[hit] += x.values[rows[hit]] @ weights[r]
        return out, kmap.result

    def transpose(self, layer: dict[str, Any], x: Value, n_in: int,
                  n_out: int) -> tuple[np.ndarray, Coords]:
        """Every input row adds to input * stride - padding + r * dilation, if `onto` has a row
        there, or anywhere without `onto`."""
        assert x.coords is not None
        kernel = _vector(self.option(layer, "kernel"), self.axes, 0)
        stride = _vector(layer.get("stride"), self.axes, 1)
        dilation = _vector(layer.get("dilation"), self.axes, 1)
        padding = _vector(layer.get("padding"), self.axes, 0)
        if self.semantics(layer) == "minkowski":
            padding = tuple(k // 2 * d if k % 2 else 0
                            for k, d in zip(kernel, dilation, strict=True))
        reached = {}
        for r in product(*(range(k) for k in kernel)):
            rows = x.coords.rows.copy()
            rows[:, 1:] = rows[:, 1:] * np.array(stride) - np.array(padding) + \
                np.array(r) * np.array(dilation)
            reached[r] = rows
        if "onto" in layer:
            coords = self.values[layer["onto"]].coords
            assert coords is not None
        else:
            finer = tuple(a // b for a, b in zip(x.coords.stride, stride, strict=True))
            coords = Coords(np.unique(np.concatenate(list(reached.values())), axis=0), finer,
                            None, x.coords.is_floor)
        weights = self.weights(layer, kernel, n_in, n_out)
        out = np.zeros((len(coords.rows), n_out))
        for r, rows in reached.items():
            to = coords.find(rows)
            np.add.at(out, to[to >= 0], x.values[to >= 0] @ weights[r])
        return out, coords

    def unpool(self, layer: dict[str, Any], x: Value) -> Value:
        """Takes the value of the first tap whose row a voxel is read by."""
        kmap = self.named[layer["of_map"]]
        out = np.zeros((len(kmap.source.rows), x.values.shape[1]))
        done = np.zeros(len(out), bool)
        for rows in kmap.taps.values():
            hit = np.flatnonzero(rows >= 0)
            new = hit[~done[rows[hit]]]
            out[rows[new]] = x.values[new]
            done[rows[new]] = True
        return Value(out, kmap.source)

    def add_union(self, layer: dict[str, Any], a: Value, b: Value) -> Value:
        assert a.coords is not None and b.coords is not None
        coords = Coords(np.unique(np.concatenate([a.coords.rows, b.coords.rows]), axis=0),
                        a.coords.stride, a.coords.shape, a.coords.is_floor)
        out = np.zeros((len(coords.rows), a.values.shape[1]))
        for x in (a, b):
            assert x.coords is not None
            out[coords.find(x.coords.rows)] += x.values
        return Value(activate(out, layer.get("act")), coords)

    def prune(self, layer: dict[str, Any], x: Value, scores: Value) -> Value:
        assert x.coords is not None
        keep = scores.values[:, 0] > layer.get("threshold", 0)
        coords = Coords(x.coords.rows[keep], x.coords.stride, x.coords.shape,
                        x.coords.is_floor)
        return Value(x.values[keep], coords)

    def embedding(self, layer: dict[str, Any], x: Value) -> Value:
        table = self.tensor(layer.get("w", layer["name"]) + ".weight")
        at = np.rint(x.values[:, 0]).astype(int)
        ok = (at >= 0) & (at < len(table))
        return Value(np.where(ok[:, None], table[np.clip(at, 0, len(table) - 1)], 0),
                     x.coords, x.n_tokens)

    def normalize(self, layer: dict[str, Any], x: np.ndarray, coords: Coords | None,
                  bn: dict[str, Any]) -> np.ndarray:
        stem = layer.get("w", layer["name"])
        name = layer.get("bn_w", stem if layer["op"] == "bn" else stem + ".bn")
        stats = bn.get("stats", "running")
        scale, shift = self.tensor(name + ".weight"), self.tensor(name + ".bias")
        eps = bn.get("eps", 1e-5)
        if stats == "running":
            mean, var = self.tensor(name + ".running_mean"), self.tensor(name + ".running_var")
            return (x - mean) / np.sqrt(var + eps) * scale + shift
        if stats == "batch":
            return (x - x.mean(0)) / np.sqrt(x.var(0) + eps) * scale + shift
        assert coords is not None
        out = np.empty_like(x)
        for sample in np.unique(coords.rows[:, 0]):
            rows = coords.rows[:, 0] == sample
            out[rows] = (x[rows] - x[rows].mean(0)) / np.sqrt(x[rows].var(0) + eps)
        return out * scale + shift

    def conv_layer(self, layer: dict[str, Any], inputs: list[Value]) -> Value:
        out, coords = self.convolve(layer, inputs[0])
        if self.option(layer, "bias", False):
            out = out + self.tensor(layer.get("w", layer["name"]) + ".bias").reshape(-1)
        bn = self.option(layer, "bn")
        if bn is not None:
            out = self.normalize(layer, out, coords, bn)
        if "add" in layer:
            out = out + self.values[layer["add"]].values
        return Value(activate(out, self.option(layer, "act")), coords, inputs[0].n_tokens)

    def rows_of(self, x: Value, sample: int) -> np.ndarray:
        if x.coords is None:
            return np.arange(sample * x.n_tokens, (sample + 1) * x.n_tokens)
        return np.flatnonzero(x.coords.rows[:, 0] == sample)

    def attention(self, layer: dict[str, Any], q: Value, k: Value, v: Value) -> Value:
        out = np.zeros((len(q.values), v.values.shape[1]))
        for sample in range(self.n_samples):
            mine, theirs = self.rows_of(q, sample), self.rows_of(k, sample)
            if len(mine) and len(theirs):
                scores = layer.get("scale", 1) * q.values[mine] @ k.values[theirs].T
                out[mine] = softmax(scores, 1) @ v.values[theirs]
        return Value(out, q.coords, q.n_tokens)

    def tokens(self, scores: Value, values: Value) -> Value:
        n = scores.values.shape[1]
        out = np.zeros((self.n_samples * n, values.values.shape[1]))
        for sample in range(self.n_samples):
            rows = self.rows_of(scores, sample)
            if len(rows):
                out[sample * n:(sample + 1) * n] = \
                    softmax(scores.values[rows], 0).T @ values.values[rows]
        return Value(out, None, n)

    def global_pool(self, layer: dict[str, Any], x: Value) -> Value:
        out = np.zeros((self.n_samples, x.values.shape[1]))
        p = layer.get("p", 3)
        if "p_w" in layer:
            p = float(self.tensor(layer["p_w"]).reshape(-1)[0])
        for sample in range(self.n_samples):
            rows = x.values[self.rows_of(x, sample)]
            if not len(rows):
                continue
            if layer["kind"] == "max":
                out[sample] = rows.max(0)
            elif layer["kind"] == "avg":
                out[sample] = rows.mean(0)
            else:
                clipped = np.maximum(rows, layer.get("eps", 1e-6))
                out[sample] = (clipped ** p).mean(0) ** (1 / p)
        return Value(out, None, 1)

    def pool(self, layer: dict[str, Any], x: Value) -> Value:
        assert x.coords is not None
        kmap = self.kernel_map(layer, x.coords)
        n, channels = len(kmap.result.rows), x.values.shape[1]
        total, count = np.zeros((n, channels)), np.zeros(n)
        best = np.full((n, channels), -np.inf)
        for rows in kmap.taps.values():
            hit = np.flatnonzero(rows >= 0)
            total[hit] += x.values[rows[hit]]
            count[hit] += 1
            best[hit] = np.maximum(best[hit], x.values[rows[hit]])
        if layer["kind"] == "max":
            out = np.maximum(best, 0) if self.semantics(layer) == "spconv" else best
        elif layer["kind"] == "avg":
            out = total / count[:, None]
        else:
            out = total
        if "map" in layer:
            self.named[layer["map"]] = kmap
        return Value(out, kmap.result)

    def step(self, layer: dict[str, Any], inputs: list[Value]) -> Value:
        op, first = layer["op"], inputs[0]
        if op in self.CONVS:
            return self.conv_layer(layer, inputs)
        if op == "attention":
            return self.attention(layer, *inputs)
        if op == "tokens":
            return self.tokens(*inputs)
        if op == "global":
            return self.global_pool(layer, first)
        if op == "pool":
            return self.pool(layer, first)
        if op == "unpool":
            return self.unpool(layer, first)
        if op == "add_union":
            return self.add_union(layer, *inputs)
        if op == "prune":
            return self.prune(layer, *inputs)
        if op == "embedding":
            return self.embedding(layer, first)
        if op == "add":
            out = activate(sum(x.values for x in inputs), layer.get("act"))
        elif op == "cat":
            out = np.concatenate([x.values for x in inputs], axis=1)
        elif op == "bn":
            out = self.normalize(layer, first.values, first.coords, layer.get("bn", {}))
            out = activate(out, layer.get("act"))
        elif op == "act":
            out = activate(first.values, layer["act"])
        elif op == "softmax":
            out = softmax(first.values, 1)
        elif op == "l2norm":
            norm = np.linalg.norm(first.values, axis=1, keepdims=True)
            out = first.values / np.maximum(norm, layer.get("eps", 1e-12))
        else:
            raise NotImplementedError(op)
        return Value(out, first.coords, first.n_tokens)

    def run(self, coords: np.ndarray, features: np.ndarray) -> dict[str, Value]:
        """Computes the outputs by name for n x 4 (sample, x, y, z) and n x channels."""
        self.n_samples = int(coords[:, 0].max()) + 1
        bounded = self.config["input"].get("bounded")
        shape = None if bounded is None else _vector(bounded, self.axes, 0)
        self.maps: dict[Any, Map] = {}
        self.named: dict[str, Map] = {}
        last = Value(features.astype(np.float64), Coords(coords, (1, 1, 1), shape))
        self.values = {"@in": last}
        for layer in self.config["layers"]:
            names = layer.get("in")
            if names is None:
                inputs = [last]
            else:
                inputs = [self.values[n] for n in ([names] if isinstance(names, str) else names)]
            last = self.step(layer, inputs)
            self.values[layer["name"]] = last
        out = {}
        for output in self.config["outputs"]:
            value = self.values[output["from"]]
            if output.get("l2norm"):
                norm = np.linalg.norm(value.values, axis=1, keepdims=True)
                value = Value(value.values / np.maximum(norm, 1e-12), None, 1)
            out[output["name"]] = value
        return out

    def dense(self, value: Value) -> np.ndarray:
        """spconv's dense() with z folded into the channels: samples, c * D + z, y, x."""
        assert value.coords is not None and value.coords.shape is not None
        sx, sy, sz = value.coords.shape
        grid = np.zeros((self.n_samples, value.values.shape[1], sz, sy, sx))
        n, x, y, z = value.coords.rows.T
        grid[n, :, z, y, x] = value.values
        return grid.reshape(self.n_samples, -1, sy, sx)
