# SPDX-License-Identifier: Apache-2.0
"""SVT-Net with its trained weights, served: raw lidar scans in, descriptors out, against NumPy in
float64 from the scans on, normalization and voxels included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import OK, SOURCE, Daemon, array_of, common_pb2, http_call, network_pb2, running
from net_reference import Network
from networks import FIELDS, Networks, cloud, outputs_of
from test_net_reference import DATA, SCANS, SVTNET, import_weights, place, take_config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not SVTNET.exists():
        pytest.skip("SVT-Net's trained weights are not in VOXELD_DATA")
    path = tmp_path_factory.mktemp("n")
    config = json.loads((SOURCE / "configs/networks/svtnet.json").read_text())
    # place() keeps points above the ground and less than 25 m away. Ranges include their low ends.
    edges = np.nextafter(np.array([-25, -25, -1.4], np.float32), np.float32(0))
    config["input"]["normalize"]["range"] = [*(float(e) for e in edges), 25, 25, 1000]
    take_config(path, "svtnet", {"input": config["input"]})
    import_weights("minkowski", SVTNET, path / "svtnet.safetensors")
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Daemon]:
    config = {"networks_dir": str(folder), "networks": ["svtnet:fp32"]}
    with running(tmp_path_factory.mktemp("d"), config) as started:
        yield started


@pytest.fixture(scope="module")
def scans() -> list[np.ndarray]:
    return [
        np.fromfile(DATA / "lidar" / f"{name}.bin", "<f4").reshape(-1, 4) for name in SCANS
    ]


def test_descriptors_of_real_scans_are_what_numpy_computes_over_every_transport(
    served: Daemon, folder: Path, scans: list[np.ndarray]
) -> None:
    found = [place(s[:, :3]) for s in scans]
    coords = np.concatenate([np.insert(c, 0, i, axis=1) for i, (c, _) in enumerate(found)])
    features = np.concatenate([f for _, f in found])
    expected = Network(folder, "svtnet").run(coords, features)["descriptor"].values
    replies = []
    for url in (served.ipc, served.tcp):
        with Networks(served, url) as client:
            replies.append(client.infer(*[cloud(s) for s in scans], network="svtnet"))
    request = network_pb2.InferRequest(network="svtnet", clouds=[cloud(s) for s in scans])
    reply = http_call(
        served, "POST", "/v1/infer", request.SerializeToString(),
        {"Content-Type": "application/x-protobuf", "Accept": "application/x-protobuf"},
    )  # fmt: skip
    assert reply.status == 200, reply.body[:500]
    replies.append(network_pb2.InferResponse.FromString(reply.body))
    descriptors = [array_of(outputs_of(r)["descriptor"].values) for r in replies]
    for got, infer in zip(descriptors, replies, strict=True):
        assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()
        assert got.tobytes() == descriptors[0].tobytes()
        for item, (voxels, _), points in zip(infer.items, found, scans, strict=True):
            assert item.code == OK
            assert (item.n_points, item.n_voxels) == (len(points), len(voxels))
            assert item.n_used == 4096
            dropped = item.n_non_finite + item.n_out_of_range + item.n_not_picked
            assert dropped == len(points) - 4096
    got = descriptors[0].astype(np.float64)
    distance = np.linalg.norm(got[:, None] - got[None], axis=2)
    for other in (2, 3):
        assert distance[0, 1] < min(distance[0, other], distance[1, other])


def test_descriptor_alone_is_the_same_bits_as_in_a_batch(
    served: Daemon, scans: list[np.ndarray]
) -> None:
    nobody = cloud(np.zeros((0, 4), np.float32))
    with Networks(served) as client:
        batch = client.infer(
            cloud(scans[0]), nobody, *[cloud(s) for s in scans[1:]], network="svtnet"
        )
        rows = array_of(outputs_of(batch)["descriptor"].values)
        assert batch.items[1].code == common_pb2.INVALID_ARGUMENT
        for row, points in zip((0, 2, 3, 4), scans, strict=True):
            alone = client.infer(cloud(points), network="svtnet")
            assert array_of(outputs_of(alone)["descriptor"].values).tobytes() == (
                rows[row].tobytes()
            )


def test_points_that_are_not_finite_change_no_descriptor(
    served: Daemon, scans: list[np.ndarray]
) -> None:
    points = scans[0]
    broken = np.insert(points, [0, 7, len(points)], np.nan, axis=0)
    assert len(FIELDS) == points.shape[1]
    with Networks(served) as client:
        a = client.infer(cloud(points), network="svtnet")
        b = client.infer(cloud(broken), network="svtnet")
    assert b.items[0].n_non_finite == 3
    assert a.outputs[0].values == b.outputs[0].values
