# SPDX-License-Identifier: Apache-2.0
"""Voxelize with merge: a running map of a drive, against numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness import (
    SOURCE,
    Daemon,
    array_of,
    cloud_of,
    common_pb2,
    hashmap_pb2,
    random_points,
    rpc_pb2,
    voxelize_pb2,
    voxelize_request,
)
from maps import Maps

SIZE = 0.25
OK = common_pb2.OK


@pytest.fixture
def maps(daemon: Daemon) -> Iterator[Maps]:
    with Maps(daemon) as client:
        yield client
        for info in client.call("map_list").maps:
            client.call("map_drop", name=info.name)


def merge(maps: Maps, *clouds: common_pb2.Cloud, **fields: Any) -> rpc_pb2.Response:
    target = {"map": "drive", "create": True, **fields.pop("merge", {})}
    fields.setdefault("rule", voxelize_pb2.MINKOWSKI)
    fields.setdefault("size", SIZE)
    return maps.rpc.call(
        "voxelize",
        voxelize_request(*clouds, merge=voxelize_pb2.VoxelizeMerge(**target), **fields),
        client_id=maps.client_id,
        sequence=next(maps.sequence),
    )


def exported(maps: Maps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the keys in ascending order with their counts and sums."""
    reply = maps.call("map_export", name="drive")
    keys = array_of(reply.keys)
    order = np.lexsort(keys.T[::-1])
    arrays = {v.name: array_of(v.rows) for v in reply.values}
    return keys[order], arrays["count"][order], arrays["sum"][order]


def voxels_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computes the map in NumPy: float32 quantization as in MinkowskiEngine, float64 sums."""
    coords = np.floor(rows[:, :3] / np.float32(SIZE)).astype(np.int32)
    keys, inverse, counts = np.unique(
        coords, axis=0, return_inverse=True, return_counts=True
    )
    sums = np.zeros((len(keys), rows.shape[1]))
    np.add.at(sums, inverse.ravel(), rows.astype(np.float64))
    return keys, counts, sums


def test_scan_merged_twice_doubles_counts_and_sums(maps: Maps) -> None:
    scan = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy").astype(np.float32)[:, :3]
    keys, counts, sums = voxels_of(scan)
    first = merge(maps, cloud_of(scan)).voxelize
    assert first.n_voxels == len(keys)
    assert (first.merged.n_new, first.merged.n_entries) == (len(keys), len(keys))
    once = exported(maps)
    second = merge(maps, cloud_of(scan)).voxelize
    assert (second.merged.n_new, second.merged.n_entries) == (0, len(keys))
    twice = exported(maps)
    np.testing.assert_array_equal(once[0], keys)
    np.testing.assert_array_equal(once[1], counts)
    np.testing.assert_allclose(once[2], sums, rtol=1e-4, atol=1e-2)
    np.testing.assert_array_equal(twice[0], keys)
    np.testing.assert_array_equal(twice[1], 2 * counts)
    np.testing.assert_array_equal(twice[2], 2 * once[2])  # exact in float64
    info = maps.call("map_get", name="drive").map
    assert info.lattice.size.x == SIZE and info.n_entries == len(keys)


def test_items_of_one_request_share_entries(maps: Maps) -> None:
    parts = [random_points(4000, seed=s, extent=3.0) for s in range(3)]
    reply = merge(maps, *map(cloud_of, parts), outputs=[voxelize_pb2.OUTPUT_INVERSE])
    assert reply.header.code == OK, reply.header
    assert not reply.voxelize.coords.data and not reply.voxelize.counts.data
    assert len(array_of(reply.voxelize.inverse)) == 12000
    keys, counts, sums = voxels_of(np.concatenate(parts))
    got = exported(maps)
    np.testing.assert_array_equal(got[0], keys)
    np.testing.assert_array_equal(got[1], counts)
    np.testing.assert_allclose(got[2], sums, rtol=1e-4, atol=1e-3)
    assert reply.voxelize.merged.n_new == len(keys)


def test_merge_repeated_has_one_effect(maps: Maps) -> None:
    request = voxelize_request(
        cloud_of(random_points(5000)), size=SIZE, rule=voxelize_pb2.MINKOWSKI,
        merge=voxelize_pb2.VoxelizeMerge(map="drive", create=True),
    )
    header = {"client_id": "merger", "sequence": 1}
    first = maps.rpc.call("voxelize", request, **header)
    again = maps.rpc.call("voxelize", request, **header)
    assert again.header.replayed and again.voxelize.merged == first.voxelize.merged
    assert exported(maps)[1].sum() == 5000
    unnumbered = maps.rpc.call("voxelize", request).header
    assert (unnumbered.code, unnumbered.field) == (
        common_pb2.INVALID_ARGUMENT, "header.client_id"
    )


def test_merge_without_points_makes_an_empty_map(maps: Maps) -> None:
    reply = merge(maps, cloud_of(np.zeros((0, 3))))
    assert reply.header.code == OK, reply.header
    assert maps.call("map_get", name="drive").map.n_entries == 0


def test_merge_that_cannot_be_is_refused(maps: Maps) -> None:
    cloud = cloud_of(random_points(100))
    invalid = common_pb2.INVALID_ARGUMENT
    box = voxelize_pb2.Range(
        low=common_pb2.Vec3(x=-1, y=-1, z=-1), high=common_pb2.Vec3(x=1, y=1, z=1)
    )
    for code, field, fields in (
        (invalid, "rule", {"rule": voxelize_pb2.SPCONV, "range": box}),
        (invalid, "max_points", {"max_points": 3}),
        (invalid, "max_voxels", {"max_voxels": 3}),
        (invalid, "merge.map", {"merge": {"map": "No"}}),
        (invalid, "merge.ttl_s", {"merge": {"ttl_s": -1}}),
        (common_pb2.NOT_FOUND, "merge.map", {"merge": {"create": False}}),
    ):
        header = merge(maps, cloud, **fields).header
        assert (header.code, header.field) == (code, field), header
    assert not maps.call("map_list").maps
    assert merge(maps, cloud).header.code == OK
    for fields in ({"size": 2 * SIZE}, {"no_features": True},
                   {"origin": common_pb2.Vec3(x=1)}):
        header = merge(maps, cloud, **fields).header
        assert (header.code, header.field) == (common_pb2.FAILED_PRECONDITION, "merge.map")
    assert exported(maps)[1].sum() == 100
    maps.call("map_create", name="plain", spec=hashmap_pb2.MapSpec())
    header = merge(maps, cloud, merge={"map": "plain"}).header
    assert header.code == common_pb2.FAILED_PRECONDITION
