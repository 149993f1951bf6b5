# SPDX-License-Identifier: Apache-2.0
"""Scans that go through a network into a scene: one call, against a network whose labels are
known, and against Infer."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import (
    BIN,
    OK,
    SLOW,
    SOURCE,
    Daemon,
    array_of,
    cloud_of,
    common_pb2,
    http_call,
    idle_bytes,
    inflight_bytes,
    network_pb2,
    running,
    scene_pb2,
    wait_until,
)
from networks import Networks, write_network
from scenes import FREE, OCCUPIED, Scenes, spec, vec
from semantic import LABELS, cloud, labels_of, some_points, write_signs

INVALID = common_pb2.INVALID_ARGUMENT
SIDE = 256
DELAY_MS = 1000  # the most that networks may wait for a batch
PALETTE = [scene_pb2.SceneMaterial(name=n) for n in ("ground", "tree", "wall", "road")]


@pytest.fixture(scope="module")
def directory_of_networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("n")
    write_signs(path)
    write_network(path)
    two = [
        {"name": n, "from": "h", "as": "points", "argmax": True, "fill": 1} for n in ("p", "q")
    ]
    write_signs(path, "two", outputs=two)
    write_signs(path, "rows", outputs=[{"name": "rows", "from": "h", "as": "voxels"}])
    return path


def config_of(path: Path, **engine: Any) -> dict[str, Any]:
    return {
        "networks_dir": str(path),
        "networks": ["signs", "tiny", "two", "rows"],
        "engine": engine,
    }


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, directory_of_networks: Path
) -> Iterator[Daemon]:
    config = config_of(directory_of_networks)
    with running(tmp_path_factory.mktemp("d"), config) as started:
        yield started


@pytest.fixture
def scenes(served: Daemon) -> Iterator[Scenes]:
    with Scenes(served) as client:
        for info in client.call("scene_list").scenes:
            client.call("scene_drop", name=info.name)
        yield client


def make(scenes: Scenes, name: str = "s", bits: int = 8, palette: Any = PALETTE) -> None:
    made = spec(8, 0.25, bits, track_free=True, palette=palette)
    scenes.call("scene_create", name=name, spec=made)


def entry(label: int | str, material: int | str) -> scene_pb2.SceneLabel:
    made = scene_pb2.SceneLabel()
    setattr(made, "label" if isinstance(label, int) else "label_name", label)
    setattr(made, "material" if isinstance(material, int) else "material_name", material)
    return made


def pose(x: float, y: float, z: float) -> common_pb2.Pose:
    return common_pb2.Pose(translation=vec(x, y, z), rotation=common_pb2.Quaternion(w=1))


def integrate(
    scenes: Scenes, points: np.ndarray, name: str = "s", carve: bool = True, **fields: Any
) -> scene_pb2.SceneIntegrateResponse:
    if carve:
        fields["carve"] = scene_pb2.SceneCarve(max_range_m=25)
    fields.setdefault("cloud", cloud(points, T_map_sensor=pose(0.3, -0.4, 0.2)))
    return scenes.call("scene_integrate", name=name, **fields)


def rule_cloud(points: np.ndarray, materials: np.ndarray) -> common_pb2.Cloud:
    """The same points with their materials as a field, for an integration without network."""
    return cloud_of(
        np.column_stack([points, materials]), ["x", "y", "z", "label"],
        T_map_sensor=pose(0.3, -0.4, 0.2),
    )  # fmt: skip


RULE = scene_pb2.SceneMaterialRule(kind="LABEL")


@pytest.mark.parametrize("dropped", [[], [1], [0, 1, 2, -1]])
def test_scene_of_a_network_is_what_its_labels_make(
    scenes: Scenes, dropped: list[int]
) -> None:
    points = some_points()
    labels = labels_of(points)
    assert set(np.unique(labels)) == {-1, 0, 1, 2}
    material_of = {0: 3, 1: 7, 2: 2, -1: 9} | dict.fromkeys(dropped, -1)
    materials = np.array([material_of[label] for label in labels])
    entries = [entry(k, v) for k, v in material_of.items()]
    if dropped == [1]:
        entries = [e for e in entries if e.label != 1]  # absent is -1
    for name in ("s", "kept", "rays"):
        make(scenes, name)
    reply = integrate(scenes, points, network="signs", label_to_material=entries)
    assert reply.change.version == 2
    integrate(scenes, points, "kept", rule=RULE,
              cloud=rule_cloud(points[materials >= 0], materials[materials >= 0]))  # fmt: skip
    rays = integrate(scenes, points[materials < 0], "rays")
    # Voxels that the kept points hit are occupied; those that any ray went through are free.
    states, got = scenes.dense("s", SIDE)
    kept_states, want = scenes.dense("kept", SIDE)
    ray_states, _ = scenes.dense("rays", SIDE)
    occupied = kept_states == OCCUPIED
    np.testing.assert_array_equal(states == OCCUPIED, occupied)
    np.testing.assert_array_equal(got[occupied], want[occupied])
    free = ((kept_states == FREE) | (ray_states == FREE)) & ~occupied
    np.testing.assert_array_equal(states == FREE, free)
    assert (states == FREE).any()
    n = reply.n_used + reply.n_non_finite + reply.n_outside + reply.n_beyond + reply.n_dropped
    assert (reply.n_points, reply.n_dropped) == (n, rays.n_used) == (len(points), rays.n_used)
    assert reply.n_hit_voxels == occupied.sum()
    assert len(reply.digest) == 64 and reply.network.n_voxels > 1000
    for name in ("voxelize_ms", "sets_ms", "layers_ms", "outputs_ms"):
        assert 0 < getattr(reply.network, name) < reply.engine_ms


def test_labels_and_materials_may_be_names_and_none_given_are_numbers(scenes: Scenes) -> None:
    points = some_points(3000)
    for name in ("s", "names", "numbers"):
        make(scenes, name)
    numbers = [entry(0, 0), entry(1, 1), entry(2, 2)]
    names = [entry(a, b) for a, b in zip(LABELS, ("ground", "tree", "wall"), strict=True)]
    a = integrate(scenes, points, network="signs")
    b = integrate(scenes, points, "names", network="signs", label_to_material=names)
    c = integrate(scenes, points, "numbers", network="signs", label_to_material=numbers)
    assert a.n_dropped == b.n_dropped == c.n_dropped > 0  # those without a label
    digests = {scenes.call("scene_get", name=n).scene.digest for n in ("s", "names", "numbers")}
    assert len(digests) == 1


def test_sweeps_go_through_the_network_as_they_do_in_infer(
    scenes: Scenes, served: Daemon
) -> None:
    """Sweeps are moved to their cloud's frame first, so labels are computed in that frame."""
    points = some_points(4000)
    sweep = common_pb2.Sweep(
        data=cloud(points[2000:]).data,
        T_cloud_sweep=common_pb2.Pose(translation=vec(0, 0, 0.5),
                                      rotation=common_pb2.Quaternion(w=1)),
    )  # fmt: skip
    whole = cloud(points[:2000], sweeps=[sweep])
    with Networks(served) as networks:
        infer = networks.infer(whole, network="signs", outputs=["labels"])
    labels = array_of(infer.outputs[0].labels)
    make(scenes)
    reply = integrate(scenes, points, network="signs", cloud=whole, carve=False)
    assert reply.n_points == 4000 and reply.digest == infer.digest
    assert reply.n_used <= (labels >= 0).sum()
    _, got = scenes.dense("s", SIDE)
    moved = points.copy()
    moved[2000:, 2] += np.float32(0.5)
    voxels = np.floor(moved.astype(np.float64) / 0.25 + 128)
    near = np.abs(moved / 0.25 - np.rint(moved / 0.25)).min(1) < 0.01
    use = (labels >= 0) & ~near & np.isfinite(moved).all(1)
    last: dict[tuple[int, ...], set[int]] = {}
    for voxel, label in zip(voxels[use].astype(int), labels[use], strict=True):
        last.setdefault(tuple(voxel), set()).add(int(label))
    assert len(last) > 2000
    for voxel, some in last.items():
        if len(some) == 1:
            assert got[voxel] in some, voxel


def test_file_and_json_over_http_make_the_same_scene(
    scenes: Scenes, served: Daemon
) -> None:
    points = some_points(2000)[10:]
    for name in ("s", "file", "json"):
        make(scenes, name)
    entries = [entry("below", "road"), entry(1, -1), entry("ahead", 1)]
    fields: dict[str, Any] = {"network": "signs", "label_to_material": entries}
    integrate(scenes, points, cloud=cloud(points), carve=False, **fields)
    kitti = np.column_stack([points, np.zeros(len(points))]).astype("<f4").tobytes()
    query = "name=file&format=kitti&network=signs&labels=below:road,1:-1,ahead:1&output=labels"
    headers = {"Content-Type": "application/octet-stream"}
    reply = http_call(served, "POST", f"/v1/scene_integrate?{query}", kitti, headers)
    assert reply.status == 200, reply.body
    answer = reply.json()
    assert int(answer["nDropped"]) > 0 and float(answer["network"]["layersMs"]) > 0
    body = scene_pb2.SceneIntegrateRequest(name="json", cloud=cloud(points), **fields)
    from google.protobuf import json_format

    text = json_format.MessageToDict(body, preserving_proto_field_name=True)
    text["expect_digest"] = answer["digest"][:12]
    assert http_call(served, "POST", "/v1/scene_integrate", text).status == 200
    digests = {scenes.call("scene_get", name=n).scene.digest for n in ("s", "file", "json")}
    assert len(digests) == 1
    for labels in ("", "1", "1:", ":1", "1:2,", "a:b,c"):
        bad = http_call(
            served, "POST", f"/v1/scene_integrate?name=file&format=kitti&network=signs"
            f"&labels={labels}", kitti, headers,
        )  # fmt: skip
        assert bad.status == 400 and bad.json()["field"] == "labels", bad.body


@pytest.mark.parametrize("n_points", [0, 1])
def test_empty_and_distant_clouds_are_changes_that_change_nothing(
    scenes: Scenes, n_points: int
) -> None:
    make(scenes)
    far = np.full((n_points, 3), 1e5, np.float32)
    reply = integrate(scenes, far, network="signs", carve=False)
    assert reply.change.version == 2 and reply.change.n_added == 0
    assert reply.n_points == reply.n_outside == n_points
    nan = np.full((n_points, 3), np.nan, np.float32)
    reply = integrate(scenes, nan, network="signs")
    assert reply.n_non_finite == n_points and reply.network.n_voxels == 0


def test_faults_of_a_request_are_named_and_change_nothing(scenes: Scenes) -> None:
    make(scenes)
    make(scenes, "two", 0, [])
    points = cloud(some_points(100))

    def fails(field: str, code: int = INVALID, name: str = "s", **fields: Any) -> str:
        fields.setdefault("network", "signs")
        return scenes.fails("scene_integrate", code, field, name=name, cloud=points, **fields)

    def fails_entry(member: str, *entries: scene_pb2.SceneLabel) -> str:
        return fails(f"label_to_material[{len(entries) - 1}].{member}",
                     label_to_material=entries)  # fmt: skip

    assert 'no network "none"' in fails("network", common_pb2.NOT_FOUND, network="none")
    fails("network", network="No Name")
    assert "labels by point" in fails("network", network="rows")
    assert "its outputs: rows" in fails("network", network="rows")
    assert "2 outputs" in fails("output", network="two")
    assert "no output of labels" in fails("output", output="rows")
    assert "no output of labels" in fails("output", output="nothing")
    fails("expect_digest", common_pb2.FAILED_PRECONDITION, expect_digest="0123456789")
    fails("expect_digest", expect_digest="xyz")
    fails("rule", rule=scene_pb2.SceneMaterialRule())
    for field, value in (("expect_digest", "0123456789"), ("output", "labels"),
                         ("label_to_material", [entry(0, 0)])):  # fmt: skip
        assert fails(field, network="", **{field: value}) == "needs a network"
    assert "0 to 2, and -1" in fails_entry("label", entry(0, 0), entry(3, 0))
    assert "0 to 2, and -1" in fails_entry("label", entry(-2, 0))
    assert "second time" in fails_entry("label", entry(1, 0), entry("above", 1))
    assert "names of labels: below, above, ahead" in fails_entry("label_name", entry("nobody", 0))
    assert "-1 (none) to 65535" in fails_entry("material", entry(0, -2))
    assert "-1 (none) to 65535" in fails_entry("material", entry(0, 65536))
    assert "0 to 254" in fails_entry("material", entry(0, 255))
    assert "palette" in fails_entry("material_name", entry(0, "nothing"))
    both = entry("above", 1)
    both.label = 1
    fails_entry("label", both)
    both = entry(1, "tree")
    both.material = 1
    fails_entry("material", both)
    many = [entry(0, 0)] * 4097
    assert "at most 4096" in fails("label_to_material", label_to_material=many)
    message = fails("label_to_material", name="two")
    assert "3 labels are more than the scene's 1 materials" in message
    fails("name", common_pb2.NOT_FOUND, name="nowhere")
    fails("if_version", common_pb2.ABORTED, if_version=7)
    # "tiny" needs a field that the cloud lacks.
    assert "intensity" in fails("cloud.fields", network="tiny")
    for name in ("s", "two"):
        assert scenes.call("scene_get", name=name).scene.version == 1
    integrate(scenes, some_points(10), "two", network="signs", label_to_material=[entry(1, 0)])


def test_cloud_with_more_voxels_than_the_network_takes_is_refused(
    scenes: Scenes, served: Daemon, directory_of_networks: Path
) -> None:
    box = {"mode": "voxelize", "features": ["x", "z"], "voxel_size": 0.5,
           "range": [-40, -40, -2, 40, 40, 4], "reduce": "mean", "bounded": [160, 160, 12],
           "max_voxels": 50, "overflow": "error"}  # fmt: skip
    write_signs(directory_of_networks, "few", input=box)
    make(scenes)
    with Networks(served) as networks:
        networks.call("network_load", name="few")
    message = scenes.fails(
        "scene_integrate", common_pb2.RESOURCE_EXHAUSTED, "cloud",
        name="s", cloud=cloud(some_points(1000)), network="few",
    )  # fmt: skip
    assert "more voxels than the network takes" in message
    assert scenes.call("scene_get", name="s").scene.version == 1
    integrate(scenes, some_points(20)[4:], network="few")


def delayed(path: Path, **engine: Any) -> dict[str, Any]:
    """Networks wait as long as they may for a batch, so that the test can act on a request that
    waits."""
    return config_of(path, batch_delay_ms=DELAY_MS, max_batch=4, **engine)


def test_scans_share_a_run_with_others_and_no_bit_changes(
    directory: Path, directory_of_networks: Path
) -> None:
    parts = [some_points(1500, seed=i) for i in range(3)]
    with running(directory, delayed(directory_of_networks)) as daemon:

        def scan(i: int, name: str) -> Any:
            with Scenes(daemon) as client:
                return integrate(client, parts[i], name, network="signs")

        def infer() -> network_pb2.InferResponse:
            with Networks(daemon) as client:
                return client.infer(cloud(parts[0]), network="signs", outputs=["labels"])

        with Scenes(daemon) as client, ThreadPoolExecutor(4) as pool:
            for i in range(3):
                make(client, f"alone{i}")
                make(client, f"together{i}")
                assert scan(i, f"alone{i}").network.n_items == 1
            others = [pool.submit(scan, i, f"together{i}") for i in range(3)]
            run = pool.submit(infer)
            sizes = [o.result().network.n_items for o in others]
            assert max(sizes + [run.result().n_run_items]) == 4, sizes
            for i in range(3):
                digests = {
                    client.call("scene_get", name=f"{how}{i}").scene.digest
                    for how in ("alone", "together")
                }
                assert len(digests) == 1


def test_writes_do_not_wait_for_a_network(
    directory: Path, directory_of_networks: Path
) -> None:
    with running(directory, delayed(directory_of_networks)) as daemon, Scenes(daemon) as client:
        make(client)
        with ThreadPoolExecutor(1) as pool, Scenes(daemon) as other:
            daemon.settle()
            scan = pool.submit(integrate, other, some_points(500), network="signs")
            wait_until(lambda: daemon.n_under_way() > 0, 5, "the scan waits")
            assert integrate(client, some_points(500), carve=False).change.version == 2
            assert not scan.done()
            assert scan.result().change.version == 3


def test_network_unloaded_while_a_scan_waits_for_it_still_runs(
    directory: Path, directory_of_networks: Path
) -> None:
    config = delayed(directory_of_networks)
    with (
        running(directory, config) as daemon,
        Scenes(daemon) as client,
        Networks(daemon) as networks,
        ThreadPoolExecutor(1) as pool,
    ):
        make(client)
        request: dict[str, Any] = {
            "sequence": 500, "name": "s", "cloud": cloud(some_points(500)), "network": "signs",
        }  # fmt: skip
        daemon.settle()
        scan = pool.submit(client.send, "scene_integrate", **request)
        wait_until(lambda: daemon.n_under_way() > 0, 5, "the scan waits")
        networks.call("network_unload", name="signs")
        assert not scan.done()
        first = scan.result()
        assert first.header.code == OK and first.scene_integrate.change.version == 2
        # The same request again has the same outcome, with or without the network; another one
        # fails.
        again = client.send("scene_integrate", **request)
        assert again.header.code == OK and again.header.replayed
        assert again.scene_integrate.change == first.scene_integrate.change
        request["sequence"] = 501
        assert client.send("scene_integrate", **request).header.code == common_pb2.NOT_FOUND


def test_deadline_while_the_network_waits_changes_nothing_and_asking_again_does(
    directory: Path, directory_of_networks: Path
) -> None:
    with running(directory, delayed(directory_of_networks)) as daemon, Scenes(daemon) as client:
        make(client)
        idle = idle_bytes(daemon)
        request = scene_pb2.SceneIntegrateRequest(
            name="s", cloud=cloud(some_points(500)), network="signs"
        )
        header = {"client_id": "late", "sequence": 1}
        late = client.rpc.call("scene_integrate", request, timeout_ms=50, **header)
        assert late.header.code == common_pb2.DEADLINE_EXCEEDED
        assert client.call("scene_get", name="s").scene.version == 1
        again = client.rpc.call("scene_integrate", request, **header)
        assert again.header.code == OK and again.scene_integrate.change.version == 2
        wait_until(lambda: inflight_bytes(daemon) == idle, 5, "all bytes given back")
        old = client.rpc.call("scene_integrate", request, max_age_ms=50, client_id="old",
                              sequence=1)  # fmt: skip
        assert old.header.code == common_pb2.ABORTED
        # After the network has run, a request that waited for it is not too old.
        young = client.rpc.call("scene_integrate", request, client_id="old", sequence=2,
                                max_age_ms=DELAY_MS + int(3000 * SLOW))  # fmt: skip
        assert young.header.code == OK

        def is_idle() -> bool:
            status = http_call(daemon, "GET", "/v1/status").json()
            return not int(status.get("running", 0)) and not int(status.get("queueDepth", 0))

        wait_until(is_idle, 5, "nothing running any more")


def test_repeats_wait_for_the_first_and_streams_keep_the_newest(
    directory: Path, directory_of_networks: Path
) -> None:
    with running(directory, delayed(directory_of_networks)) as daemon, Scenes(daemon) as client:
        make(client)
        request = scene_pb2.SceneIntegrateRequest(
            name="s", cloud=cloud(some_points(500)), network="signs"
        )

        def ask(**header: Any) -> Any:
            with Scenes(daemon) as other:
                return other.rpc.call("scene_integrate", request, **header)

        with ThreadPoolExecutor(3) as pool:
            same = [pool.submit(ask, client_id="one", sequence=1) for _ in range(3)]
            replies = [r.result() for r in same]
            assert [r.header.code for r in replies] == [OK] * 3
            assert sum(r.header.replayed for r in replies) == 2
            assert {r.scene_integrate.change.version for r in replies} == {2}
            kept = []
            daemon.settle()
            for i in range(3):
                kept.append(
                    pool.submit(ask, client_id="two", sequence=i + 1, stream="lidar", keep_last=1)
                )
                wait_until(
                    lambda i=i: kept[i - 1].done() if i > 0 else daemon.n_under_way() > 0,
                    5, "it has come",
                )  # fmt: skip
            codes = [k.result().header.code for k in kept]
            assert codes == [common_pb2.ABORTED, common_pb2.ABORTED, OK]
        assert client.call("scene_get", name="s").scene.version == 3


def test_streams_of_scans_do_not_starve(directory: Path, directory_of_networks: Path) -> None:
    """With keep_last, a scan that has its labels is not superseded by one that waits."""
    with running(directory, config_of(directory_of_networks)) as daemon, Scenes(daemon) as client:
        make(client)
        points = some_points(30000)
        request = scene_pb2.SceneIntegrateRequest(name="s", cloud=cloud(points), network="signs")
        request.carve.max_range_m = 0
        stop = threading.Event()

        def flood(k: int) -> list[int]:
            codes = []
            with Scenes(daemon) as other:
                for i in range(k, 10000, 2):
                    if stop.is_set():
                        break
                    answer = other.rpc.call(
                        "scene_integrate", request, client_id="robot", sequence=i + 1,
                        stream="lidar", keep_last=1,
                    )  # fmt: skip
                    codes.append(answer.header.code)
            return codes

        with ThreadPoolExecutor(2) as pool:
            floods = [pool.submit(flood, k) for k in range(2)]
            time.sleep(2 * SLOW)
            stop.set()
            codes = [code for f in floods for code in f.result()]
        assert set(codes) <= {OK, common_pb2.ABORTED}
        assert client.call("scene_get", name="s").scene.version == 1 + codes.count(OK)
        assert codes.count(OK) > len(codes) // 4


@pytest.mark.parametrize(("drain_ms", "code"), [(10000, OK), (0, common_pb2.UNAVAILABLE)])
def test_drain_ends_scans_that_wait_for_a_network(
    directory: Path, directory_of_networks: Path, drain_ms: int, code: int
) -> None:
    config = delayed(directory_of_networks)
    config["drain"] = {"timeout_ms": int(drain_ms * SLOW)}
    with running(directory, config) as daemon, Scenes(daemon) as client:
        make(client)
        with ThreadPoolExecutor(1) as pool:
            daemon.settle()
            scan = pool.submit(
                client.send, "scene_integrate", name="s", cloud=cloud(some_points(100)),
                network="signs",
            )  # fmt: skip
            wait_until(lambda: daemon.n_under_way() > 0, 5, "the scan waits")
            daemon.signal(signal.SIGTERM)
            assert scan.result().header.code == code
        daemon.wait()


@pytest.mark.skipif(SLOW > 1, reason="a large network; what it crosses has tests above")
def test_real_scan_through_minkunet_has_the_labels_of_infer(
    directory: Path, tmp_path: Path
) -> None:
    """The weights are random, because the test only compares two requests."""
    networks_dir = tmp_path / "networks"
    networks_dir.mkdir()
    config = json.loads((SOURCE / "configs/networks/minkunet42.json").read_text())
    config["input"]["voxel_size"] = 0.4  # fewer voxels: for two cores
    (networks_dir / "minkunet42.json").write_text(json.dumps(config))
    subprocess.run(
        [BIN / "voxelctl", "net", "init", networks_dir / "minkunet42.json", "--seed", "3"],
        check=True, capture_output=True,
    )  # fmt: skip
    points = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy").astype(np.float32)[::4, :3]
    points -= points.mean(0)
    sent = cloud_of(
        np.column_stack([points, np.full(len(points), 0.5)]), ["x", "y", "z", "intensity"]
    )
    served = {"networks_dir": str(networks_dir), "networks": ["minkunet42"],
              "limits": {"timeout_ms": 60000}}  # fmt: skip
    with running(directory, served) as daemon, Scenes(daemon) as client:
        with Networks(daemon) as networks:
            infer = networks.infer(sent, network="minkunet42", outputs=["labels"])
        labels = array_of(infer.outputs[0].labels)
        assert len(np.unique(labels)) > 3
        for name in ("s", "rule"):
            client.call("scene_create", name=name, spec=spec(10, 0.2, 8, track_free=True))
        carve = scene_pb2.SceneCarve(max_range_m=40)
        reply = client.call(
            "scene_integrate", name="s", cloud=sent, network="minkunet42", carve=carve
        )
        assert reply.digest == infer.digest and reply.network.n_voxels > 3000
        assert reply.n_dropped == 0
        columns = np.column_stack([points, labels])
        client.call(
            "scene_integrate", name="rule", rule=RULE, carve=carve,
            cloud=cloud_of(columns, ["x", "y", "z", "label"]),
        )  # fmt: skip
        got = [client.call("scene_get", name=n).scene for n in ("s", "rule")]
        assert got[0].digest == got[1].digest and got[0].n_occupied == got[1].n_occupied > 0
    shutil.rmtree(networks_dir)
