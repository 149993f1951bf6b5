# SPDX-License-Identifier: Apache-2.0
"""Networks for the tests: a client of their methods, a small network with weights of our own,
and the oracle, plain NumPy in float64 on a dense grid of rows."""

from __future__ import annotations

import itertools
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from harness import OK, SLOW, Daemon, Rpc, array_of, cloud_of, common_pb2, network_pb2, rpc_pb2

FIELDS = ["x", "y", "z", "intensity"]
SIZE = np.float32(0.5)
LOW = np.array([-40, -40, -2], np.float32)
HIGH = np.array([40, 40, 4], np.float32)
GRID = (160, 160, 12)

CONFIG: dict[str, Any] = {
    "format": "voxeld-net/1",
    "name": "tiny",
    "precision": "fp32",
    "axes": ["x", "y", "z"],
    "semantics": "spconv",
    "weights": {"file": "tiny.safetensors", "layout": "krsc"},
    "input": {
        "mode": "voxelize",
        "features": ["x", "y", {"field": "z", "scale": 2, "bias": 1}, "intensity"],
        "voxel_size": float(SIZE),
        "range": [*LOW.tolist(), *HIGH.tolist()],
        "reduce": "mean",
        "bounded": list(GRID),
        "overflow": "error",
    },
    "defaults": {"kernel": 3, "bias": True, "bn": None, "act": "relu"},
    "layers": [
        {"name": "a", "op": "subm", "ch": 8, "map": "s"},
        {"name": "d", "op": "conv", "ch": 6, "stride": 2, "padding": 1, "map": "d"},
        {"name": "h", "op": "linear", "ch": 3, "act": None, "layout": "torch", "in": "a"},
        {"name": "g", "op": "global", "kind": "avg", "in": "h"},
    ],
    "outputs": [
        {"name": "labels", "from": "h", "as": "points", "argmax": True, "fill": -1,
         "labels": ["road", "car", "tree"]},
        {"name": "rows", "from": "h", "as": "voxels"},
        {"name": "logits", "from": "h", "as": "points", "fill": -9},
        {"name": "down", "from": "d", "as": "voxels"},
        {"name": "bev", "from": "d", "as": "dense", "fold": "z", "layout": "nchw"},
        {"name": "place", "from": "g", "as": "vector"},
    ],
}  # fmt: skip


def weights(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {
        "a.weight": (8, 3, 3, 3, 4), "a.bias": (8,),
        "d.weight": (6, 3, 3, 3, 8), "d.bias": (6,),
        "h.weight": (3, 8), "h.bias": (3,),
    }  # fmt: skip
    return {k: rng.normal(0, 0.1, s).astype(np.float32) for k, s in shapes.items()}


def write_files(
    directory: Path, config: dict[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    """Writes a config, which names its weights' file, and that file."""
    header: dict[str, Any] = {}
    data = b""
    for key, array in tensors.items():
        header[key] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / config["weights"]["file"]
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    (directory / f"{config['name']}.json").write_text(json.dumps(config))


def write_network(
    directory: Path, name: str = "tiny", seed: int = 1, **over: Any
) -> dict[str, np.ndarray]:
    """Writes NAME.json and its weights; returns those."""
    tensors = weights(seed)
    config = {**CONFIG, "name": name, **over}
    config["weights"] = {**config["weights"], "file": f"{name}.safetensors"}
    write_files(directory, config, tensors)
    return tensors


class Networks:
    """One client of a daemon; numbers what changes something by itself."""

    def __init__(self, daemon: Daemon, url: str = "", token: str = "") -> None:
        self.rpc = Rpc(url or daemon.ipc, 60)
        self.client_id = f"t-{os.urandom(6).hex()}"
        self.token = token
        self.sequence = itertools.count(1)

    def __enter__(self) -> Networks:
        return self

    def __exit__(self, *_: object) -> None:
        self.rpc.socket.close()

    def send(self, method: str, **fields: Any) -> rpc_pb2.Response:
        message = getattr(network_pb2, "".join(p.title() for p in method.split("_")) + "Request")
        return self.rpc.call(
            method,
            message(**fields),
            client_id=self.client_id,
            sequence=next(self.sequence),
            token=self.token,
            timeout_ms=int(30000 * SLOW),
        )

    def call(self, method: str, **fields: Any) -> Any:
        response = self.send(method, **fields)
        assert response.header.code == OK, response.header
        return getattr(response, method)

    def fails(self, method: str, code: int, field: str = "", **fields: Any) -> str:
        header = self.send(method, **fields).header
        assert header.code == code, header
        assert not field or header.field == field, header
        return header.message

    def infer(
        self, *clouds: common_pb2.Cloud, network: str = "tiny", **fields: Any
    ) -> network_pb2.InferResponse:
        return self.call("infer", network=network, clouds=clouds, **fields)


def cloud(points: np.ndarray, **members: Any) -> common_pb2.Cloud:
    return cloud_of(points, FIELDS, **members)


def outputs_of(reply: network_pb2.InferResponse) -> dict[str, network_pb2.InferOutput]:
    return {o.name: o for o in reply.outputs}


def same_arrays(
    a: network_pb2.InferResponse, b: network_pb2.InferResponse, item: int = 0
) -> None:
    """Compares all outputs of a, whose only item it is, with b's item, bit for bit."""
    other = outputs_of(b)
    points = slice(
        b.items[item].first_point, b.items[item].first_point + b.items[item].n_points
    )
    for output in a.outputs:
        o = other[output.name]
        rows = slice(item, item + 1)
        if output.kind == network_pb2.NETWORK_VOXELS:
            rows = slice(o.first_rows[item], o.first_rows[item + 1])
            got = array_of(o.coords)[rows]
            np.testing.assert_array_equal(got[:, 0], item)
            np.testing.assert_array_equal(array_of(output.coords)[:, 1:], got[:, 1:])
        elif output.kind == network_pb2.NETWORK_POINTS:
            rows = points
        assert array_of(output.values).tobytes() == array_of(o.values)[rows].tobytes()
        if output.HasField("labels"):
            assert array_of(output.labels).tobytes() == array_of(o.labels)[rows].tobytes()


class Oracle:
    """Computes the small network on one cloud of n x 4 float32."""

    def __init__(self, points: np.ndarray, w: dict[str, np.ndarray]) -> None:
        inside = ((points[:, :3] >= LOW) & (points[:, :3] < HIGH)).all(1)
        cells = np.floor((points[:, :3] - LOW) / SIZE).astype(np.int64)
        inside &= ((cells >= 0) & (cells < GRID)).all(1)
        flat = np.ravel_multi_index(tuple(cells[inside].T), GRID)
        keys, rows = np.unique(flat, return_inverse=True)
        self.coords = np.stack(np.unravel_index(keys, GRID), 1)
        self.inverse = np.full(len(points), -1)
        self.inverse[inside] = rows
        features = points[inside].astype(np.float64)
        features[:, 2] = features[:, 2] * 2 + 1
        sums = np.zeros((len(keys), 4))
        np.add.at(sums, rows, features)
        x = sums / np.bincount(rows, minlength=len(keys))[:, None]
        self.a = self.conv(x, self.coords, self.coords, 1, w["a.weight"], w["a.bias"])
        self.h = self.a @ w["h.weight"].T.astype(np.float64) + w["h.bias"]
        self.g = self.h.mean(0)
        down = np.array([(s + 2 - 3) // 2 + 1 for s in GRID])
        reached = [
            (self.coords + 1 - np.array(tap)) // 2
            for tap in itertools.product(range(3), repeat=3)
        ]
        exact = [
            ((self.coords + 1 - np.array(tap)) % 2 == 0).all(1)
            for tap in itertools.product(range(3), repeat=3)
        ]
        cells = np.concatenate([r[e] for r, e in zip(reached, exact, strict=True)])
        cells = cells[((cells >= 0) & (cells < down)).all(1)]
        self.down_coords = np.unique(cells, axis=0)
        self.down = self.conv(
            self.a, self.coords, self.down_coords, 2, w["d.weight"], w["d.bias"]
        )
        self.bev = np.zeros((6, down[2], down[1], down[0]))
        self.bev[:, self.down_coords[:, 2], self.down_coords[:, 1], self.down_coords[:, 0]] = (
            self.down.T
        )
        self.bev = self.bev.reshape(-1, down[1], down[0])

    @staticmethod
    def conv(
        x: np.ndarray, at: np.ndarray, out: np.ndarray, stride: int, w: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        """Computes a convolution with kernel 3, padding 1, relu; missing rows are zero."""
        index = np.full(np.array(GRID) + 4, len(x))
        index[tuple((at + 2).T)] = np.arange(len(x))
        padded = np.concatenate([x, np.zeros((1, x.shape[1]))])
        y = np.tile(b.astype(np.float64), (len(out), 1))
        for tap in itertools.product(range(3), repeat=3):
            rows = index[tuple((out * stride + np.array(tap) - 1 + 2).T)]
            y += padded[rows] @ w[(slice(None), *tap)].T.astype(np.float64)
        return np.maximum(y, 0)

    def check(self, reply: network_pb2.InferResponse, item: int = 0) -> None:
        """Compares the item's arrays within the rounding of float32 sums."""
        got = outputs_of(reply)
        first = reply.items[item].first_point
        points = slice(first, first + len(self.inverse))
        for name, coords, want in (
            ("rows", self.coords, self.h),
            ("down", self.down_coords, self.down),
        ):
            rows = slice(got[name].first_rows[item], got[name].first_rows[item + 1])
            cells = array_of(got[name].coords)[rows, 1:]
            order = np.lexsort(cells.T[::-1])
            np.testing.assert_array_equal(cells[order], coords)
            np.testing.assert_allclose(
                array_of(got[name].values)[rows][order], want, rtol=1e-4, atol=1e-4
            )
        logits = np.concatenate([self.h, np.full((1, 3), -9.0)])[self.inverse]
        np.testing.assert_allclose(
            array_of(got["logits"].values)[points], logits, rtol=1e-4, atol=1e-4
        )
        # Labels may differ where two scores are nearly equal.
        labels = array_of(got["labels"].labels)[points]
        np.testing.assert_array_equal(labels == -1, self.inverse == -1)
        chosen = np.take_along_axis(logits, np.maximum(labels, 0)[:, None], 1)[:, 0]
        assert (chosen >= logits.max(1) - 1e-4).all()
        np.testing.assert_allclose(
            array_of(got["bev"].values)[item], self.bev, rtol=1e-4, atol=1e-4
        )
        np.testing.assert_allclose(
            array_of(got["place"].values)[item], self.g, rtol=1e-4, atol=1e-4
        )
