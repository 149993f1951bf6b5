# SPDX-License-Identifier: Apache-2.0
"""Networks through our own clients: the Python module, and libvoxeld by voxelctl, against stock
protobuf and NumPy."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, array_of, network_pb2, rpc_pb2, running
from networks import CONFIG, FIELDS, Networks, cloud, outputs_of, write_network
from test_python_errors import Peer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("n")
    write_network(folder)
    with running(tmp_path_factory.mktemp("d"), {"networks_dir": str(folder)}) as started:
        yield started


@pytest.fixture
def client(served: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(served.ipc, timeout=20 * SLOW) as connected:
        connected.network_load("tiny")
        yield connected


def scan(n: int) -> np.ndarray:
    points = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy").astype(np.float32)[::17][:n]
    return np.column_stack([points, np.linspace(0, 1, len(points), dtype=np.float32)])


def ctl(daemon: Daemon, *words: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [BIN / "voxelctl", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "VOXELD_URL": daemon.ipc},
        timeout=60 * SLOW,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_python_infer_gives_what_stock_protobuf_gives(
    served: Daemon, client: voxeld.Client
) -> None:
    parts = [scan(3000), scan(0), scan(10)]
    clouds = [voxeld.Cloud.from_numpy(p, names=FIELDS) for p in parts]
    mine = client.infer("tiny", clouds, "*")
    with Networks(served) as stock:
        theirs = stock.infer(*[cloud(p) for p in parts], outputs=["*"])
    assert mine.digest == theirs.digest and mine.precision == "fp32"
    assert [i.code for i in mine.items] == [i.code for i in theirs.items]
    assert mine.items[2].points == slice(3000, 3010)
    for name, output in outputs_of(theirs).items():
        got = mine.outputs[name]
        np.testing.assert_array_equal(got.values, array_of(output.values))
        if output.HasField("labels"):
            np.testing.assert_array_equal(got.labels, array_of(output.labels))
            np.testing.assert_array_equal(mine[name], got.labels)
        if output.HasField("coords"):
            np.testing.assert_array_equal(got.coords, array_of(output.coords))
            assert got.rows is not None and got.rows[1].start == got.rows[1].stop
    half = client.infer("tiny", clouds[0], ["rows"], half=True, coords=False)
    assert half.outputs["rows"].values.dtype == np.float16
    assert half.outputs["rows"].coords is None


def test_python_networks_are_loaded_described_and_unloaded(client: voxeld.Client) -> None:
    info = client.network("tiny")
    assert info.features == tuple(FIELDS)
    assert [layer.name for layer in info.layers][:2] == ["a", "d"]
    assert {o.name: o.kind for o in info.outputs}["bev"] == "dense"
    assert [n.name for n in client.networks()] == ["tiny"]
    assert client.networks_available() == ("tiny",)
    assert client.network_load("tiny", "fp16").precision == "fp16"
    with pytest.raises(voxeld.FailedPrecondition) as refused:
        client.infer("tiny", voxeld.Cloud.from_numpy(scan(5), names=FIELDS),
                     expect_digest="0" * 64)  # fmt: skip
    assert refused.value.field == "expect_digest"
    with pytest.raises(voxeld.InvalidArgument):
        client.network_load("tiny", "fp8")
    assert client.network_unload("tiny")
    with pytest.raises(voxeld.NotFound):
        client.infer("tiny", voxeld.Cloud.from_numpy(scan(5), names=FIELDS))
    assert not client.network_unload("tiny", missing_ok=True)


def test_voxelctl_infer_writes_files_that_numpy_and_ply_readers_read(
    served: Daemon, client: voxeld.Client, directory: Path
) -> None:
    points = scan(2000)
    file = directory / "scan.ply"
    cells = np.rec.fromarrays(points.T, names=FIELDS)
    np.save(directory / "scan.npy", cells)
    ctl(served, "convert", directory / "scan.npy", file)
    want = client.infer("tiny", voxeld.Cloud.from_numpy(points, names=FIELDS), "*")
    ctl(served, "infer", "tiny", file, "--output", "bev", "--out", directory / "bev.npy")
    np.testing.assert_array_equal(np.load(directory / "bev.npy"), want["bev"])
    text = ctl(served, "infer", "tiny", file, "--out", directory / "labels.npy")
    assert "place 1 x 3: " in text
    np.testing.assert_array_equal(np.load(directory / "labels.npy"), want["labels"])
    ctl(served, "infer", "tiny", file, "--output", "rows", "--half", "--out",
        directory / "rows.npy")  # fmt: skip
    np.testing.assert_array_equal(
        np.load(directory / "rows.npy"), want["rows"].astype(np.float16)
    )
    for name, columns in (("labels", ["label", "score"]), ("down", [f"c{i}" for i in range(6)])):
        out = directory / f"{name}.ply"
        line = ctl(served, "infer", "tiny", file, "--output", name, "--out", out, "--json")
        assert json.loads(line)["digest"] == want.digest
        ctl(served, "convert", out, directory / "back.npy")
        back = np.load(directory / "back.npy")
        assert list(back.dtype.names or []) == ["x", "y", "z", *columns]
        if name == "labels":
            np.testing.assert_array_equal(back["x"], points[:, 0])
            np.testing.assert_array_equal(back["label"], want["labels"])
        else:
            output = want.outputs["down"]
            assert output.coords is not None
            np.testing.assert_allclose(back["x"], -40 + output.coords[:, 1] + 0.5)
            np.testing.assert_array_equal(back["c3"], output.values[:, 3])
    assert "expect_digest" in ctl(served, "infer", "tiny", file, "--digest", "0" * 8, code=1)
    assert "no output" in ctl(
        served, "infer", "tiny", file, "--output", "nope", code=1
    )  # the server's list
    ctl(served, "infer", "tiny", file, "--out", "x.csv", code=2)
    ctl(served, "infer", "tiny", code=2)


def test_voxelctl_net_loads_lists_and_unloads(served: Daemon, client: voxeld.Client) -> None:
    assert "there already" in ctl(served, "net", "load", "tiny")
    assert "loaded anew" in ctl(served, "net", "load", "tiny", "--precision", "fp16")
    listed = json.loads(ctl(served, "net", "list", "--json"))
    assert listed["available"] == ["tiny"]
    assert listed["networks"][0]["precision"] == "fp16"
    assert "layer       a: subm 4 -> 8" in ctl(served, "net", "info", "tiny")
    assert "unloaded" in ctl(served, "net", "unload", "tiny")
    ctl(served, "net", "unload", "tiny", code=1)
    assert "there was no" in ctl(served, "net", "unload", "tiny", "--missing-ok")
    ctl(served, "net", "load", "tiny", "--seed", "1", code=2)
    ctl(served, "net", "fly", code=2)


def test_voxelctl_net_check_and_init_work_on_files(served: Daemon, directory: Path) -> None:
    write_network(directory)
    config = directory / "tiny.json"
    good = ctl(served, "net", "check", config)
    assert good.endswith("ok\n") and "digest" in good
    (directory / "tiny.safetensors").unlink()
    message = ctl(served, "net", "check", config, code=2)
    assert "tiny.safetensors" in message
    ctl(served, "net", "init", config, "--seed", "7")
    first = (directory / "tiny.safetensors").read_bytes()
    ctl(served, "net", "init", config, code=2)
    ctl(served, "net", "init", config, "--seed", "7", "--replace")
    assert (directory / "tiny.safetensors").read_bytes() == first
    ctl(served, "net", "check", config)
    layers = [dict(layer) for layer in CONFIG["layers"]]
    layers[1]["kernel"] = 9
    config.write_text(json.dumps({**CONFIG, "layers": layers}))
    assert "layers[d]" in ctl(served, "net", "check", config, code=2)


def test_voxelctl_net_check_and_init_as_json(served: Daemon, directory: Path) -> None:
    write_network(directory)
    config = directory / "tiny.json"
    found = json.loads(ctl(served, "net", "check", config, "--json"))
    ctl(served, "net", "load", "tiny")
    loaded = json.loads(ctl(served, "net", "info", "tiny", "--json"))
    ctl(served, "net", "unload", "tiny")
    for key in ("name", "digest", "n_parameters", "precision", "features", "outputs"):
        assert found[key] == loaded[key]
    assert ctl(served, "net", "init", config, "--json", code=2).startswith(
        '{"code": "ALREADY_EXISTS"'
    )
    done = ctl(served, "net", "init", config, "--seed", "7", "--replace", "--json")
    assert json.loads(done) == {"name": "tiny", "seed": 7}
    error = json.loads(ctl(served, "net", "init", config, "--seed", "x", "--json", code=2))
    assert (error["code"], error["field"]) == ("INVALID_ARGUMENT", "--seed")
    layers = [dict(layer) for layer in CONFIG["layers"]]
    layers[1]["kernel"] = 9
    config.write_text(json.dumps({**CONFIG, "layers": layers}))
    error = json.loads(ctl(served, "net", "check", config, "--json", code=2))
    assert error["code"] == "INVALID_ARGUMENT" and "layers[d]" in error["field"]


# Peers that lie ----------------------------------------------------------------------------


def output(reply: network_pb2.InferResponse, name: str) -> network_pb2.InferOutput:
    return outputs_of(reply)[name]


LIES: list[Callable[[Any], Any]] = [
    lambda r: r.items.add(),
    lambda r: r.ClearField("items"),
    lambda r: setattr(r.items[0], "n_points", 51),
    lambda r: setattr(r.items[1], "first_point", 2**64 - 1),
    lambda r: output(r, "rows").ClearField("values"),
    lambda r: output(r, "rows").values.shape.__setitem__(0, -1),
    lambda r: output(r, "rows").values.shape.__setitem__(1, 2**62),
    lambda r: output(r, "rows").values.shape.append(1),
    lambda r: output(r, "rows").values.ClearField("shape"),
    lambda r: setattr(output(r, "rows").values, "dtype", 77),
    lambda r: setattr(output(r, "rows").values, "data", b"123"),
    lambda r: output(r, "rows").values.values.append(1),
    lambda r: output(r, "rows").ClearField("coords"),
    lambda r: setattr(output(r, "rows").coords, "data", bytes(16)),
    lambda r: output(r, "rows").first_rows.append(0),
    lambda r: output(r, "rows").ClearField("first_rows"),
    lambda r: output(r, "rows").first_rows.__setitem__(0, 1),
    lambda r: output(r, "rows").first_rows.__setitem__(1, 2**64 - 1),
    lambda r: output(r, "labels").labels.shape.__setitem__(0, 7),
    lambda r: output(r, "labels").values.shape.__setitem__(0, 7),
    lambda r: output(r, "labels").ClearField("labels"),
    lambda r: output(r, "place").values.shape.__setitem__(0, 3),
    lambda r: output(r, "bev").values.shape.__setitem__(3, 0),
    lambda r: setattr(output(r, "place"), "kind", 2),
    lambda r: setattr(output(r, "place"), "kind", 1),
]


@pytest.mark.parametrize("lie", [None, *range(len(LIES))])
def test_reply_of_a_peer_that_lies_is_internal_to_every_client(
    served: Daemon, client: voxeld.Client, directory: Path, lie: int | None
) -> None:
    points = scan(50)
    with Networks(served) as stock:
        reply = stock.infer(cloud(points), outputs=["*"])
        both = stock.infer(cloud(points), cloud(points), outputs=["*"])
    for genuine in (reply, both):
        if lie is not None and (lie != 3 or len(genuine.items) > 1):
            LIES[lie](genuine)
    file = directory / "scan.npy"
    np.save(file, np.rec.fromarrays(points.T, names=FIELDS))

    def answer(request: rpc_pb2.Request) -> rpc_pb2.Response:
        infer = reply if len(request.infer.clouds) == 1 else both
        return rpc_pb2.Response(header=rpc_pb2.ResponseHeader(request_id="r"), infer=infer)

    clouds = [voxeld.Cloud.from_numpy(points, names=FIELDS)] * 2
    with Peer(directory, answer) as peer:
        with voxeld.connect(peer.url) as liar:
            if lie is None:
                assert len(liar.infer("tiny", clouds, "*").items) == 2
            else:
                with pytest.raises(voxeld.Internal):
                    liar.infer("tiny", clouds, "*")
        done = subprocess.run(
            [BIN / "voxelctl", "--url", peer.url, "infer", "tiny", file, "--output", "*"],
            capture_output=True,
            text=True,
            timeout=60 * SLOW,
        )
        if lie is None or lie == 3:
            assert done.returncode == 0, done.stderr
        else:
            assert done.returncode == 1 and "INTERNAL" in done.stderr, done.stderr
