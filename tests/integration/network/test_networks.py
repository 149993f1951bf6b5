# SPDX-License-Identifier: Apache-2.0
"""Networks over both transports, against NumPy."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from harness import (
    BIN,
    OK,
    SANITIZE,
    SLOW,
    SOURCE,
    Daemon,
    array_of,
    common_pb2,
    http_call,
    network_pb2,
    rpc_pb2,
    running,
    wait_until,
)
from networks import (
    CONFIG,
    Networks,
    Oracle,
    cloud,
    outputs_of,
    same_arrays,
    weights,
    write_network,
)

INVALID = common_pb2.INVALID_ARGUMENT
ALL = ["*"]


def scan(n: int = 0, seed: int = 1) -> np.ndarray:
    """Reads the recording in tests/data with an intensity, or n points of it."""
    points = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy").astype(np.float32)
    rng = np.random.default_rng(seed)
    if n:
        points = points[rng.permutation(len(points))[:n]]
    return np.column_stack([points, rng.random(len(points), np.float32)])


@pytest.fixture(scope="module")
def directory_of_networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("n")
    write_network(path)
    return path


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, directory_of_networks: Path
) -> Iterator[Daemon]:
    config = {"networks_dir": str(directory_of_networks), "networks": ["tiny"]}
    with running(tmp_path_factory.mktemp("d"), config) as started:
        yield started


@pytest.fixture
def networks(served: Daemon) -> Iterator[Networks]:
    with Networks(served) as client:
        yield client


def test_infer_on_a_real_scan_equals_numpy_over_every_transport(served: Daemon) -> None:
    points = scan()
    oracle = Oracle(points, weights(1))
    request = network_pb2.InferRequest(network="tiny", clouds=[cloud(points)], outputs=ALL)
    replies = []
    for url in (served.ipc, served.tcp):
        with Networks(served, url) as client:
            replies.append(client.infer(cloud(points), outputs=ALL))
    reply = http_call(
        served, "POST", "/v1/infer", request.SerializeToString(),
        {"Content-Type": "application/x-protobuf", "Accept": "application/x-protobuf"},
    )  # fmt: skip
    assert reply.status == 200, reply.body[:500]
    replies.append(network_pb2.InferResponse.FromString(reply.body))
    for infer in replies:
        oracle.check(infer)
        item = infer.items[0]
        assert item.code == OK
        assert (item.n_points, item.n_used) == (len(points), (oracle.inverse >= 0).sum())
        assert item.n_out_of_range == (oracle.inverse < 0).sum()
        assert item.n_voxels == len(oracle.coords)
        assert len(infer.digest) == 64
        same_arrays(replies[0], infer)


def test_infer_items_and_sizes_of_batches_change_no_bit(networks: Networks) -> None:
    parts = [scan(n, seed=n) for n in (1, 30, 4000, 20000)]
    together = networks.infer(*[cloud(p) for p in parts], outputs=ALL)
    assert together.n_run_items == 4
    for i, part in enumerate(parts):
        alone = networks.infer(cloud(part), outputs=ALL)
        same_arrays(alone, together, i)
        Oracle(part, weights(1)).check(together, i)


def test_infer_empty_and_distant_items_fail_alone(networks: Networks) -> None:
    points = scan(5000)
    far = points + np.float32(1000)
    nan = np.full((10, 4), np.nan, np.float32)
    reply = networks.infer(
        cloud(points), cloud(points[:0]), cloud(far), cloud(nan), cloud(points), outputs=ALL
    )
    codes = [i.code for i in reply.items]
    assert codes == [OK, INVALID, common_pb2.OUT_OF_RANGE, common_pb2.OUT_OF_RANGE, OK]
    assert reply.items[2].n_out_of_range == 5000 and reply.items[3].n_non_finite == 10
    assert all(i.message for i in reply.items[1:4])
    alone = networks.infer(cloud(points), outputs=ALL)
    same_arrays(alone, reply, 0)
    same_arrays(alone, reply, 4)
    nothing = networks.infer(cloud(points[:0]), outputs=ALL)
    assert nothing.items[0].code == INVALID
    assert not array_of(outputs_of(nothing)["place"].values).any()


def test_infer_requests_that_wait_run_as_one_and_nothing_shows_it(
    directory: Path, directory_of_networks: Path
) -> None:
    config = {
        "networks_dir": str(directory_of_networks),
        "networks": ["tiny"],
        "engine": {"batch_delay_ms": min(int(300 * SLOW), 1000), "max_batch": 8},
    }
    parts = [scan(500 * (i + 1), seed=i) for i in range(6)]
    with running(directory, config) as daemon, Networks(daemon) as client:
        alone = [client.infer(cloud(p), outputs=ALL) for p in parts]
        assert {r.n_run_items for r in alone} == {1}

        def ask(i: int) -> network_pb2.InferResponse:
            with Networks(daemon) as other:
                wanted = ALL if i % 2 == 0 else ["labels", "down"]
                return other.infer(cloud(parts[i]), outputs=wanted)

        with ThreadPoolExecutor(6) as pool:
            together = list(pool.map(ask, range(6)))
        assert max(r.n_run_items for r in together) > 1
        for one, other in zip(alone, together, strict=True):
            names = {o.name for o in other.outputs}
            for output in [o for o in one.outputs if o.name not in names]:
                one.outputs.remove(output)
            same_arrays(one, other)
        # A request that does not wait for a full batch waits only for the delay.
        full = client.infer(*[cloud(p) for p in parts], *[cloud(p) for p in parts[:2]])
        assert full.n_run_items == 8


def test_infer_outputs_and_types_are_what_was_asked_for(networks: Networks) -> None:
    points = scan(3000)
    small = networks.infer(cloud(points))
    assert [o.name for o in small.outputs] == ["labels", "place"]
    exact = networks.infer(cloud(points), outputs=ALL)
    half = networks.infer(cloud(points), outputs=ALL, dtype=common_pb2.FLOAT16, no_coords=True)
    for a, b in zip(exact.outputs, half.outputs, strict=True):
        assert b.values.dtype == common_pb2.FLOAT16
        want = array_of(a.values).astype(np.float16)
        assert want.tobytes() == array_of(b.values).tobytes()
        assert a.labels == b.labels
        assert not b.HasField("coords")
    down = outputs_of(exact)["down"]
    assert list(down.stride) == [2, 2, 2]
    assert (exact.size.x, exact.low.x, exact.low.z) == (0.5, -40, -2)


def test_infer_sweeps_belong_to_their_item(networks: Networks) -> None:
    points = scan(4000)
    moved = points[2000:].copy()
    moved[:, 0] -= 1
    pose = common_pb2.Pose(translation=common_pb2.Vec3(x=1))
    sweep = common_pb2.Sweep(data=moved.tobytes(), T_cloud_sweep=pose)
    swept = cloud(points[:2000], sweeps=[sweep])
    merged = points.copy()
    merged[2000:, 0] = (moved[:, 0].astype(np.float64) + 1).astype(np.float32)
    same_arrays(
        networks.infer(cloud(merged), outputs=ALL), networks.infer(swept, outputs=ALL)
    )


def test_infer_pose_is_applied_when_asked_for(networks: Networks) -> None:
    points = scan(3000)
    pose = common_pb2.Pose(translation=common_pb2.Vec3(x=4e6, y=-3))
    posed = cloud(points, T_map_sensor=pose, frame_id="lidar", stamp_ns=77)
    plain = networks.infer(cloud(points), outputs=ALL)
    same_arrays(plain, networks.infer(posed, outputs=ALL))
    moved = networks.infer(posed, outputs=ALL, apply_pose=True, origin=pose.translation)
    same_arrays(plain, moved)
    assert (moved.items[0].frame_id, moved.items[0].stamp_ns) == ("lidar", 77)
    assert moved.origin.x == 4e6
    away = networks.infer(posed, outputs=ALL, apply_pose=True)
    assert away.items[0].code == common_pb2.OUT_OF_RANGE


def test_infer_refuses_hostile_requests_by_field(networks: Networks, served: Daemon) -> None:
    points = scan(10)
    good = {"network": "tiny", "clouds": [cloud(points)]}
    for name in ("../tiny", "", "Tiny", "x" * 64):
        networks.fails("infer", INVALID, "network", **{**good, "network": name})
        networks.fails("network_load", INVALID, "name", name=name)
    networks.fails("infer", common_pb2.NOT_FOUND, "network", **{**good, "network": "other"})
    networks.fails("infer", INVALID, "clouds", **{**good, "clouds": []})
    networks.fails("infer", INVALID, "clouds", **{**good, "clouds": [cloud(points)] * 257})
    message = networks.fails("infer", INVALID, "outputs[1]", **good, outputs=["rows", "nope"])
    assert "labels, rows, logits" in message
    networks.fails("infer", INVALID, "dtype", **good, dtype=common_pb2.INT8)
    networks.fails("infer", INVALID, "origin", **good, origin=common_pb2.Vec3(x=1))
    networks.fails(
        "infer", INVALID, "origin", **good, apply_pose=True,
        origin=common_pb2.Vec3(x=float("nan")),
    )  # fmt: skip
    for digest in ("abc", "0" * 65, "G" * 8):
        networks.fails("infer", INVALID, "expect_digest", **good, expect_digest=digest)
    bare = common_pb2.Cloud()
    bare.CopyFrom(cloud(points))
    del bare.fields[3]
    message = networks.fails(
        "infer", INVALID, "clouds[1].fields", **{**good, "clouds": [cloud(points), bare]}
    )
    assert '"intensity"' in message
    torn = cloud(points)
    torn.data = torn.data[:-1]
    networks.fails("infer", INVALID, "clouds[0].data", **{**good, "clouds": [torn]})
    networks.fails("network_load", INVALID, "precision", name="tiny", precision=9)
    networks.fails("network_load", common_pb2.NOT_FOUND, name="nothing-there")
    networks.fails("network_unload", common_pb2.NOT_FOUND, "name", name="nothing-there")
    networks.fails("network_get", common_pb2.NOT_FOUND, "name", name="nothing-there")
    assert not networks.call("network_unload", name="nothing-there", missing_ok=True).existed
    assert http_call(served, "POST", "/v1/infer", {"network": "other"}).status == 400
    assert networks.infer(cloud(points)).items[0].code == OK


def test_network_is_described_and_counted(networks: Networks, served: Daemon) -> None:
    before = networks.call("network_get", name="tiny").network
    networks.infer(cloud(scan(1000)), cloud(scan(10)))
    info = networks.call("network_get", name="tiny").network
    files = [
        Path(served.config["networks_dir"]) / f"tiny.{ending}"
        for ending in ("json", "safetensors")
    ]
    both = b"".join(hashlib.sha256(f.read_bytes()).digest() for f in files)
    assert info.digest == hashlib.sha256(both).hexdigest()
    assert info.n_requests == before.n_requests + 1
    assert (info.last.n_items, info.precision) == (2, network_pb2.FP32)
    assert [layer.name for layer in info.layers][:3] == ["a", "d", "h"]
    assert info.n_parameters == sum(w.size for w in weights(1).values())
    assert [f.name for f in info.features] == ["x", "y", "z", "intensity"]
    assert list(info.outputs[0].labels) == ["road", "car", "tree"]
    listed = http_call(served, "GET", "/v1/networks").json()
    assert [n["name"] for n in listed["networks"]] == ["tiny"]
    assert listed["available"] == ["tiny"]
    one = http_call(served, "GET", "/v1/networks/tiny").json()["network"]
    assert one["digest"] == info.digest
    status = http_call(served, "GET", "/v1/status").json()
    assert int(status["nNetworks"]) == 1 and int(status["networkBytes"]) > 0
    metrics = http_call(served, "GET", "/metrics").body.decode()
    assert "voxeld_networks 1" in metrics


def test_infer_as_json_gives_small_arrays_as_numbers(served: Daemon, networks: Networks) -> None:
    points = np.array([[1, 2, 0.5, 0.25], [1.1, 2.1, 0.6, 0.5]], np.float32)
    binary = networks.infer(cloud(points))
    fields = [{"name": n, "offset": 4 * i, "dtype": "FLOAT32"} for i, n in
              enumerate(["x", "y", "z", "intensity"])]  # fmt: skip
    body = {
        "network": "tiny",
        "clouds": [
            {"fields": fields, "pointStep": 16, "data": base64.b64encode(points.tobytes()).decode()}
        ],
    }
    reply = http_call(served, "POST", "/v1/infer", body)
    assert reply.status == 200, reply.body
    place = next(o for o in reply.json()["outputs"] if o["name"] == "place")
    np.testing.assert_allclose(
        np.array(place["values"]["values"], np.float32).reshape(1, 3),
        array_of(outputs_of(binary)["place"].values),
        rtol=1e-6,
    )


def test_infer_takes_a_file_and_gives_safetensors(
    served: Daemon, networks: Networks, directory: Path
) -> None:
    points = scan(3000)
    want = networks.infer(cloud(points), outputs=["down", "labels"])
    path = "/v1/infer?network=tiny&format=kitti&outputs=down,labels&frame_id=lidar"
    binary = {"Content-Type": "application/octet-stream"}
    reply = http_call(served, "POST", path, points.tobytes(), binary)
    assert reply.status == 200, reply.body[:500]
    assert reply.json()["items"][0]["frameId"] == "lidar"
    accept = {**binary, "Accept": "application/x-safetensors"}
    file = http_call(served, "POST", path, points.tobytes(), accept)
    assert file.status == 200, file.body[:500]
    n = int.from_bytes(file.body[:8], "little")
    header = json.loads(file.body[8 : 8 + n])
    about = json.loads(header.pop("__metadata__")["outputs"])
    assert [o["name"] for o in about] == ["labels", "down"]
    assert about[1]["firstRows"][0] == "0" and "values" not in about[1]
    got = {}
    for name, entry in header.items():
        kind = {"F32": "<f4", "I32": "<i4"}[entry["dtype"]]
        begin, end = entry["data_offsets"]
        data = file.body[8 + n + begin : 8 + n + end]
        got[name] = np.frombuffer(data, kind).reshape(entry["shape"])
    outputs = outputs_of(want)
    assert sorted(got) == ["down.coords", "down.values", "labels.labels", "labels.values"]
    for name, array in got.items():
        output, member = name.split(".")
        np.testing.assert_array_equal(array, array_of(getattr(outputs[output], member)))
    for query, field in (
        ("network=tiny&dtype=int8", "dtype"),
        ("network=tiny&size=1", "size"),
        ("network=tiny&outputs=,", "outputs"),
        ("network=tiny&network=tiny", "network"),
    ):
        bad = http_call(served, "POST", f"/v1/infer?format=kitti&{query}", points.tobytes(), binary)
        assert bad.status == 400 and bad.json()["field"] == field, bad.body


@pytest.fixture
def fresh(directory: Path) -> Iterator[tuple[Daemon, Path]]:
    folder = directory / "networks"
    write_network(folder)
    with running(directory / "d", {"networks_dir": str(folder)}) as daemon:
        yield daemon, folder


def test_network_load_anew_swaps_and_a_broken_file_keeps_the_old(
    fresh: tuple[Daemon, Path],
) -> None:
    daemon, folder = fresh
    points = scan(2000)
    with Networks(daemon) as networks:
        networks.fails("infer", common_pb2.NOT_FOUND, network="tiny", clouds=[cloud(points)])
        loaded = networks.call("network_load", name="tiny")
        assert not loaded.replaced and not loaded.existed
        old = networks.infer(cloud(points), outputs=ALL)
        again = networks.call("network_load", name="tiny")
        assert again.existed and not again.replaced
        good = json.loads((folder / "tiny.json").read_text())
        bad_layers = [dict(layer) for layer in good["layers"]]
        bad_layers[1]["kernel"] = 5
        for text, field in (
            ("{", ""),
            (json.dumps({**good, "layers": bad_layers}), ""),
            (json.dumps({**good, "surprise": 1}), ""),
        ):
            (folder / "tiny.json").write_text(text)
            message = networks.fails("network_load", INVALID, field, name="tiny")
            assert message
            same_arrays(old, networks.infer(cloud(points), outputs=ALL))
        write_network(folder, seed=2)
        networks.fails(
            "infer", common_pb2.FAILED_PRECONDITION, "expect_digest", network="tiny",
            clouds=[cloud(points)], expect_digest="0" * 64,
        )  # fmt: skip
        reloaded = networks.call("network_load", name="tiny")
        assert reloaded.replaced and reloaded.network.digest != old.digest
        networks.fails(
            "infer", common_pb2.FAILED_PRECONDITION, "expect_digest", network="tiny",
            clouds=[cloud(points)], expect_digest=old.digest,
        )  # fmt: skip
        new = networks.infer(
            cloud(points), outputs=ALL, expect_digest=reloaded.network.digest[:8]
        )
        Oracle(points, weights(2)).check(new)
        half = networks.call("network_load", name="tiny", precision=network_pb2.FP16)
        assert half.replaced and half.network.precision == network_pb2.FP16
        rounded = networks.infer(cloud(points), outputs=["place"])
        np.testing.assert_allclose(
            array_of(rounded.outputs[0].values),
            array_of(outputs_of(new)["place"].values),
            rtol=0.02, atol=0.02,
        )  # fmt: skip


def test_network_load_repeated_takes_effect_once(fresh: tuple[Daemon, Path]) -> None:
    daemon, folder = fresh
    with Networks(daemon) as networks:
        message = network_pb2.NetworkLoadRequest(name="tiny")
        header = {"client_id": "robot", "sequence": 5}
        first = networks.rpc.call("network_load", message, **header)
        assert first.header.code == OK
        write_network(folder, seed=3)
        again = networks.rpc.call("network_load", message, **header)
        assert again.header.replayed
        assert again.network_load.network.digest == first.network_load.network.digest
        bare = networks.rpc.call("network_load", message)
        assert bare.header.code == INVALID and bare.header.field == "header.client_id"


def test_network_unloaded_while_it_runs_goes_on_to_the_end(
    fresh: tuple[Daemon, Path],
) -> None:
    daemon, _ = fresh
    points = np.concatenate([scan(seed=i) for i in range(4)])
    with Networks(daemon) as networks:
        networks.call("network_load", name="tiny")
        expected = networks.infer(cloud(points), outputs=ALL)
        idle = http_call(daemon, "GET", "/v1/status").json()
        replies: list[rpc_pb2.Response] = []
        unloaded = threading.Event()

        def ask() -> None:
            """Repeats until the network is gone, because a GPU needs less time for one inference
            than the test needs to see it run."""
            with Networks(daemon) as other:
                for i in range(2000):
                    if i >= 3 and unloaded.is_set():
                        break
                    replies.append(
                        other.send("infer", network="tiny", clouds=[cloud(points)], outputs=ALL)
                    )

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(
            lambda: int(http_call(daemon, "GET", "/v1/status").json().get("running", 0)) > 0
            or len(replies) == 9,
            20,
            "an inference runs",
        )
        assert networks.call("network_unload", name="tiny").existed
        unloaded.set()
        for thread in threads:
            thread.join()
        done = [r for r in replies if r.header.code == OK]
        assert done
        for reply in done:
            same_arrays(expected, reply.infer)
        assert {r.header.code for r in replies} <= {OK, common_pb2.NOT_FOUND}
        networks.fails("infer", common_pb2.NOT_FOUND, network="tiny", clouds=[cloud(points)])
        wait_until(
            lambda: (s := http_call(daemon, "GET", "/v1/status").json())
            and int(s.get("networkBytes", 0)) == 0
            and int(s.get("deviceBytes", 0)) < int(idle["deviceBytes"]),
            20,
            "its memory is free",
        )


def wait_until_free(daemon: Daemon) -> None:
    """A request's memory is freed after its reply."""

    def is_free() -> bool:
        status = http_call(daemon, "GET", "/v1/status").json()
        return int(status.get("deviceBytes", 0)) == 0

    wait_until(is_free, 10, "no device memory is taken")


def test_network_loads_and_unloads_leave_memory_flat(fresh: tuple[Daemon, Path]) -> None:
    daemon, folder = fresh
    points = scan(2000)
    with Networks(daemon) as networks:
        def round_trip(seed: int) -> None:
            write_network(folder, seed=seed)
            networks.call("network_load", name="tiny")
            networks.infer(cloud(points))
            if seed % 3 == 0:
                networks.call("network_unload", name="tiny")

        for seed in range(20):
            round_trip(seed)
        networks.call("network_unload", name="tiny", missing_ok=True)
        wait_until_free(daemon)
        before = daemon.resident_bytes()
        for seed in range(60):
            round_trip(seed)
        networks.call("network_unload", name="tiny", missing_ok=True)
        wait_until_free(daemon)
        # A sanitizer keeps memory of its own for each mutex and thread that ever existed; it
        # reports leaks itself.
        assert SANITIZE or daemon.resident_bytes() < before + 4 * 1024 * 1024


def test_networks_are_listed_in_order_while_others_load_run_and_unload_them(
    fresh: tuple[Daemon, Path],
) -> None:
    """The table is used by both read lanes, the write lane and the transports' threads at once."""
    daemon, folder = fresh
    names = ["a", "b", "c", "tiny"]
    digests = {}
    for name in names:
        write_network(folder, name=name)
        with Networks(daemon) as networks:
            digests[name] = networks.call("network_load", name=name).network.digest
    points = cloud(scan(500))
    over = threading.Event()

    def change(seed: int) -> None:
        rng = np.random.default_rng(seed)
        with Networks(daemon) as networks:
            for _ in range(30):
                name = names[rng.integers(len(names))]
                networks.call("network_unload", name=name, missing_ok=True)
                assert networks.call("network_load", name=name).network.digest == digests[name]

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        with Networks(daemon) as networks:
            while not over.is_set():
                name = names[rng.integers(len(names))]
                header = networks.send("infer", network=name, clouds=[points]).header
                assert header.code in (OK, common_pb2.NOT_FOUND), header

    def look() -> None:
        with Networks(daemon) as networks:
            while not over.is_set():
                listed = networks.call("network_list")
                seen = [network.name for network in listed.networks]
                assert seen == sorted(set(seen)) and set(seen) <= set(names)
                assert {n.name: n.digest for n in listed.networks}.items() <= digests.items()
                got = networks.send("network_get", name=names[0])
                assert got.header.code == common_pb2.NOT_FOUND or (
                    got.network_get.network.digest == digests[names[0]]
                )

    with ThreadPoolExecutor(7) as pool:
        others = [pool.submit(run, 3), pool.submit(run, 4), pool.submit(look), pool.submit(look)]
        changes = [pool.submit(change, seed) for seed in (1, 2)]
        try:
            for done in changes:
                done.result()
        finally:
            over.set()
        for done in others:
            done.result()
    with Networks(daemon) as networks:
        for name in names:
            networks.call("network_unload", name=name, missing_ok=True)
        assert not networks.call("network_list").networks
        # An inference lets its network go after the reply.
        wait_until(lambda: networks.call("network_list").n_bytes == 0, 10, "all are freed")
    wait_until_free(daemon)


def test_network_limits_hold(directory: Path) -> None:
    folder = directory / "networks"
    write_network(folder)
    config = {"networks_dir": str(folder), "limits": {"network_bytes": 4000}}
    with running(directory / "d", config) as daemon, Networks(daemon) as networks:
        message = networks.fails("network_load", common_pb2.RESOURCE_EXHAUSTED, name="tiny")
        assert "limits.network_bytes" in message
        assert int(networks.call("network_list").n_bytes) == 0
    with running(directory / "e", {"networks_dir": ""}) as daemon, Networks(daemon) as networks:
        networks.fails("network_load", common_pb2.FAILED_PRECONDITION, name="tiny")


def test_network_scopes_are_write_and_read(directory: Path) -> None:
    folder = directory / "networks"
    write_network(folder)
    tokens = directory / "tokens"
    lines = [
        f"{name} {scopes} {hashlib.sha256(name.encode()).hexdigest()}\n"
        for name, scopes in (("reader", "read"), ("operator", "read,write"))
    ]
    tokens.write_text("".join(lines))
    tokens.chmod(0o600)
    config = {
        "networks_dir": str(folder),
        "networks": ["tiny:fp16"],
        "auth": {"tokens_file": str(tokens)},
    }
    with running(directory / "d", config) as daemon:
        with Networks(daemon, daemon.tcp, "reader") as reader:
            denied = common_pb2.PERMISSION_DENIED
            reader.fails("network_load", denied, name="tiny")
            reader.fails("network_unload", denied, name="tiny")
            assert reader.infer(cloud(scan(100))).precision == network_pb2.FP16
            assert len(reader.call("network_list").networks) == 1
        with Networks(daemon, daemon.tcp, "operator") as operator:
            assert operator.call("network_unload", name="tiny").existed


def test_daemon_does_not_start_with_a_faulty_network(directory: Path) -> None:
    folder = directory / "networks"
    write_network(folder, input={**CONFIG["input"], "voxel_size": -1})
    path = directory / "c.json"
    config = {
        "listen": {"rpc": [f"ipc://{directory}/v.sock"], "http": ""},
        "engine": {"backend": "cpu"},
        "networks_dir": str(folder),
        "networks": ["tiny"],
    }
    path.write_text(json.dumps(config))
    done = subprocess.run(
        [BIN / "voxeld", "--config", path], capture_output=True, text=True, timeout=60 * SLOW
    )
    assert done.returncode == 1
    last = json.loads(done.stderr.splitlines()[-2])
    assert last["field"] == "networks[0]" and "voxel_size" in last["error"], done.stderr
