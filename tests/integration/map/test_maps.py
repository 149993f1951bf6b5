# SPDX-License-Identifier: Apache-2.0
"""Named hash maps over both transports, against a dict."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import (
    OK,
    SLOW,
    Daemon,
    array_of,
    common_pb2,
    hashmap_pb2,
    http_call,
    running,
    tensor_of,
    wait_until,
)
from maps import COUNT, SPEC, Maps, Oracle, check_export, rows

INVALID = common_pb2.INVALID_ARGUMENT
ZEROS = {"count": np.zeros((), np.uint64), "mean": np.zeros(3, np.float32)}


@pytest.fixture
def maps(daemon: Daemon) -> Iterator[Maps]:
    with Maps(daemon) as client:
        for info in client.call("map_list").maps:
            client.call("map_drop", name=info.name)
        yield client


def random_keys(rng: np.random.Generator, n: int, dtype: str = "<i4") -> np.ndarray:
    return rng.integers(-40, 40, (n, 3)).astype(dtype)


@pytest.mark.parametrize("seed", range(4))
def test_map_random_operations_match_a_dict(maps: Maps, seed: int) -> None:
    rng = np.random.default_rng(seed)
    oracle = Oracle(**ZEROS)
    maps.call("map_create", name="m", spec=SPEC)
    for _ in range(30):
        keys = random_keys(rng, int(rng.integers(0, 3000)))
        what = rng.integers(0, 4)
        if what == 0:
            count = rng.integers(0, 1 << 40, len(keys)).astype(np.uint64)
            reply = maps.call(
                "map_insert", name="m", keys=tensor_of(keys), values=rows(count=count)
            )
            indices, is_new = oracle.insert(keys, count=count)
            np.testing.assert_array_equal(array_of(reply.indices), indices)
            np.testing.assert_array_equal(array_of(reply.is_new), is_new)
            assert reply.n_new == is_new.sum()
        elif what == 1:
            reply = maps.call("map_erase", name="m", keys=tensor_of(keys))
            np.testing.assert_array_equal(array_of(reply.erased), oracle.erase(keys))
        elif what == 2:
            add = rng.integers(0, 1000, len(keys)).astype(np.uint32)
            reply = maps.call(
                "map_update",
                name="m",
                keys=tensor_of(keys),
                values=rows(count=add),
                combine=hashmap_pb2.MAP_ADD,
                insert_missing=True,
            )
            _, is_new = oracle.insert(keys)
            for key, value in zip(map(tuple, keys.tolist()), add, strict=True):
                oracle.rows[key]["count"] = oracle.rows[key]["count"] + np.uint64(value)
            assert (reply.n_new, reply.n_updated) == (is_new.sum(), len(keys))
        else:
            reply = maps.call("map_find", name="m", keys=tensor_of(keys), values=["*"])
            np.testing.assert_array_equal(array_of(reply.indices), oracle.find(keys))
            np.testing.assert_array_equal(array_of(reply.found), oracle.find(keys) >= 0)
            for value in reply.values:
                np.testing.assert_array_equal(
                    array_of(value.rows), oracle.values(value.name, keys)
                )
        info = maps.call("map_get", name="m").map
        assert info.n_entries == len(oracle.number)
    check_export(maps, "m", oracle)


@pytest.mark.parametrize("combine", ["MAP_SET", "MAP_ADD", "MAP_MIN", "MAP_MAX"])
def test_update_combines_rows_of_one_entry_in_order(maps: Maps, combine: str) -> None:
    array = hashmap_pb2.MapArray(name="v", dtype=common_pb2.INT32, n_elements=2)
    maps.call("map_create", name="m", spec=hashmap_pb2.MapSpec(values=[array]))
    keys = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [5, 5, 5], [0, 0, 0]], np.int32)
    old = np.array([[3, 9]] * 2, np.int32)
    new = np.array([[7, 1], [2, 2], [4, 5], [8, 8], [6, 3]], np.int32)
    maps.call("map_insert", name="m", keys=tensor_of(keys[:2]), values=rows(v=old))
    reply = maps.call(
        "map_update", name="m", keys=tensor_of(keys), values=rows(v=new),
        combine=hashmap_pb2.MapCombine.Value(combine),
    )
    np.testing.assert_array_equal(array_of(reply.updated), [1, 1, 1, 0, 1])
    found = maps.call("map_find", name="m", keys=tensor_of(keys[:2]), values=["v"])
    expected = {
        "MAP_SET": [[6, 3], [2, 2]],
        "MAP_ADD": [[20, 18], [5, 11]],
        "MAP_MIN": [[3, 1], [2, 2]],
        "MAP_MAX": [[7, 9], [3, 9]],
    }
    np.testing.assert_array_equal(array_of(found.values[0].rows), expected[combine])


def test_numbers_of_an_older_epoch_are_refused(maps: Maps) -> None:
    maps.call("map_create", name="m", spec=SPEC)
    keys = np.arange(30, dtype=np.int32).reshape(10, 3)
    count = np.arange(10, dtype=np.uint64)
    made = maps.call("map_insert", name="m", keys=tensor_of(keys), values=rows(count=count))
    wanted = np.array([9, 3, -1, 77, 0], np.int32)
    reply = maps.call(
        "map_find", name="m", indices=tensor_of(wanted), erase_epoch=made.erase_epoch,
        values=["count"], return_keys=True,
    )
    np.testing.assert_array_equal(array_of(reply.indices), [9, 3, -1, -1, 0])
    np.testing.assert_array_equal(array_of(reply.found), [1, 1, 0, 0, 1])
    np.testing.assert_array_equal(array_of(reply.values[0].rows), [9, 3, 0, 0, 0])
    np.testing.assert_array_equal(array_of(reply.keys)[[0, 1, 4]], keys[[9, 3, 0]])
    maps.call("map_erase", name="m", keys=tensor_of(keys[:1]))
    for method in ("map_find", "map_update"):
        more = {"values": rows(count=count[:5])} if method == "map_update" else {}
        maps.fails(
            method, common_pb2.FAILED_PRECONDITION, "erase_epoch", name="m",
            indices=tensor_of(wanted), erase_epoch=made.erase_epoch, **more,
        )


def test_neighbours_match_the_oracle(maps: Maps) -> None:
    rng = np.random.default_rng(5)
    maps.call("map_create", name="m")
    keys = rng.integers(-3, 3, (200, 3)).astype(np.int32)
    oracle = Oracle()
    oracle.insert(keys)
    maps.call("map_insert", name="m", keys=tensor_of(keys), counts_only=True)
    offsets = {
        6: [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)],
        8: [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)],
        27: [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)],
    }
    for kind, steps in offsets.items():
        reply = maps.call("map_find", name="m", keys=tensor_of(keys), neighbours=kind)
        expected = np.stack([oracle.find(keys + np.array(s)) for s in steps], 1)
        np.testing.assert_array_equal(array_of(reply.neighbours), expected)


@pytest.mark.parametrize("dtype", ["<i2", "<i4", "<i8"])
@pytest.mark.parametrize("given", ["|u1", "<i2", "<u4", "<i8", "<u8"])
def test_keys_of_any_integer_type_are_converted(maps: Maps, dtype: str, given: str) -> None:
    from harness import NUMPY_TYPES

    number = next(k for k, v in NUMPY_TYPES.items() if v == dtype)
    maps.call("map_create", name="m", spec=hashmap_pb2.MapSpec(key_dtype=number, n_components=2))
    keys = np.array([[1, 2], [3, 4], [1, 2], [100, 0]]).astype(given)
    reply = maps.call("map_insert", name="m", keys=tensor_of(keys))
    np.testing.assert_array_equal(array_of(reply.indices), [0, 1, 0, 2])
    exported = array_of(maps.call("map_export", name="m").keys)
    assert exported.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(exported, [[1, 2], [3, 4], [100, 0]])
    if np.iinfo(given).max > np.iinfo(dtype).max:
        far = np.array([[1, 2], [0, np.iinfo(dtype).max + 1]], given)
        message = maps.fails("map_insert", INVALID, "keys", name="m", keys=tensor_of(far))
        assert "row 1, element 1" in message
        assert maps.call("map_get", name="m").map.n_entries == 3


def test_create_again_equal_is_fine_and_different_is_not(maps: Maps) -> None:
    lattice = hashmap_pb2.MapLattice(size=common_pb2.Vec3(x=0.1, y=0.1, z=0.2), frame_id="map")
    first = maps.call("map_create", name="m", spec=SPEC, lattice=lattice, ttl_s=60, capacity=1000)
    assert not first.existed and first.map.capacity >= 1000
    again = maps.call("map_create", name="m", spec=SPEC, lattice=lattice, ttl_s=60)
    assert again.existed and again.map.generation == first.map.generation
    assert again.map.lattice == first.map.lattice and again.map.spec == first.map.spec
    maps.fails("map_create", common_pb2.ALREADY_EXISTS, "name", name="m", spec=SPEC)
    assert maps.call("map_drop", name="m").existed
    maps.fails("map_drop", common_pb2.NOT_FOUND, "name", name="m")
    assert not maps.call("map_drop", name="m", missing_ok=True).existed
    made = maps.call("map_create", name="m", spec=SPEC)
    assert made.map.generation != first.map.generation


HOSTILE = [
    ("map_create", "name", {"name": "No"}),
    ("map_create", "name", {"name": ""}),
    ("map_create", "name", {"name": "../x"}),
    ("map_create", "name", {"name": "a" * 64}),
    ("map_create", "ttl_s", {"name": "a", "ttl_s": -1}),
    ("map_create", "ttl_s", {"name": "a", "ttl_s": float("nan")}),
    ("map_create", "ttl_s", {"name": "a", "ttl_s": 1e9}),
    ("map_create", "capacity", {"name": "a", "capacity": 1 << 40}),
    ("map_create", "spec.key_dtype", {"name": "a", "spec": {"key_dtype": 7}}),
    ("map_create", "spec.n_components", {"name": "a", "spec": {"n_components": 9}}),
    ("map_create", "spec.values[0].name", {"name": "a", "spec": {"values": [{"name": "X"}]}}),
    ("map_create", "spec.values[0].dtype", {"name": "a", "spec": {"values": [{"name": "x"}]}}),
    ("map_create", "spec.values[0].n_elements",
     {"name": "a", "spec": {"values": [{"name": "x", "dtype": 7, "n_elements": 1 << 20}]}}),
    ("map_create", "spec.values[1].name",
     {"name": "a", "spec": {"values": [{"name": "x", "dtype": 7}] * 2}}),
    ("map_create", "spec.values",
     {"name": "a", "spec": {"values": [{"name": "x", "dtype": 7}] * 17}}),
    ("map_create", "lattice.size", {"name": "a", "lattice": {}}),
    ("map_create", "lattice", {"name": "a", "spec": {"n_components": 2},
                               "lattice": {"size": {"x": 1, "y": 1, "z": 1}}}),
    ("map_insert", "keys", {"name": "m"}),
    ("map_insert", "keys", {"name": "m", "keys": {"dtype": 5, "shape": [2, 3], "data": b"x" * 23}}),
    ("map_insert", "keys", {"name": "m", "keys": {"dtype": 5, "shape": [-1, 3]}}),
    ("map_insert", "keys", {"name": "m", "keys": {"dtype": 5, "shape": [1 << 40, 1 << 40]}}),
    ("map_insert", "keys", {"name": "m", "keys": {"dtype": 5}}),
    ("map_insert", "keys", {"name": "m", "keys": {"dtype": 7, "shape": [1, 3], "data": bytes(12)}}),
    ("map_insert", "keys", {"name": "m", "keys": {"dtype": 5, "shape": [1, 2], "data": bytes(8)}}),
    ("map_insert", "keys", {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 0.5]}}),
    ("map_insert", "keys",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, float("nan")]}}),
    ("map_insert", "keys", {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 1e300]}}),
    ("map_insert", "keys", {"name": "m", "keys": {"shape": [2, 3], "values": [1, 2, 3]}}),
    ("map_insert", "values[0].name",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]},
      "values": [{"name": "no", "rows": {"shape": [1], "values": [1]}}]}),
    ("map_insert", "values[0].rows",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]},
      "values": [{"name": "count", "rows": {"shape": [1], "values": [-1]}}]}),
    ("map_insert", "values[0].rows",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]}, "values": [{"name": "count"}]}),
    ("map_insert", "values[1].name",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]},
      "values": [{"name": "count", "rows": {"shape": [1], "values": [1]}}] * 2}),
    ("map_find", "keys", {"name": "m"}),
    ("map_find", "neighbours",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]}, "neighbours": 7}),
    ("map_find", "values[0]",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]}, "values": ["no"]}),
    ("map_erase", "all", {"name": "m", "all": True, "keys": {"shape": [0, 3]}}),
    ("map_update", "values", {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]}}),
    ("map_update", "combine",
     {"name": "m", "keys": {"shape": [1, 3], "values": [1, 2, 3]}, "combine": 9}),
    ("map_update", "insert_missing",
     {"name": "m", "indices": {"shape": [1], "values": [0]}, "insert_missing": True}),
    ("map_export", "format", {"name": "m", "format": 5}),
    ("map_save", "file", {"name": "m", "file": "../../etc/passwd"}),
    ("map_load", "file", {"name": "m2", "file": "a/b"}),
]


@pytest.mark.parametrize(("method", "field", "fields"), HOSTILE)
def test_hostile_input_is_refused_and_changes_nothing(
    maps: Maps, method: str, field: str, fields: dict[str, object]
) -> None:
    maps.call("map_create", name="m", spec=SPEC)
    message = maps.fails(method, INVALID, field, **fields)
    assert message
    listed = maps.call("map_list").maps
    assert [m.name for m in listed] == ["m"] and listed[0].n_entries == 0


def test_unknown_maps_are_not_found(maps: Maps) -> None:
    key = tensor_of(np.zeros((1, 3), np.int32))
    for method, fields in (
        ("map_get", {}), ("map_insert", {"keys": key}), ("map_find", {"keys": key}),
        ("map_erase", {"keys": key}), ("map_export", {}), ("map_save", {}), ("map_drop", {}),
    ):
        maps.fails(method, common_pb2.NOT_FOUND, "name", name="none", **fields)
    maps.fails("map_load", common_pb2.NOT_FOUND, "file", name="none")


def test_maps_over_http_and_json(daemon: Daemon, maps: Maps) -> None:
    body = {"name": "h", "spec": {"values": [{"name": "v", "dtype": "FLOAT32"}]}}
    made = http_call(daemon, "POST", "/v1/map_create", body)
    assert made.status == 200, made.body
    keys = {"shape": [3, 3], "values": [1, 2, 3, 4, 5, 6, 1, 2, 3]}
    values = [{"name": "v", "rows": {"shape": [3], "values": [0.5, 1.5, 2.5]}}]
    reply = http_call(
        daemon, "POST", "/v1/map_insert", {"name": "h", "keys": keys, "values": values}
    ).json()
    assert reply["indices"]["values"] == [0, 1, 0] and reply["nNew"] == "2"
    found = http_call(
        daemon, "POST", "/v1/map_find", {"name": "h", "keys": keys, "values": ["v"]}
    ).json()
    assert found["values"][0]["rows"]["values"] == [0.5, 1.5, 0.5]
    listed = http_call(daemon, "GET", "/v1/maps").json()
    assert [m["name"] for m in listed["maps"]] == ["h"]
    got = http_call(daemon, "GET", "/v1/maps/h").json()
    assert got["map"]["nEntries"] == "2"
    assert http_call(daemon, "GET", "/v1/maps/none").status == 404
    assert http_call(daemon, "GET", "/v1/maps/..%2Fx").status == 400
    assert http_call(daemon, "POST", "/v1/maps", {}).status == 405
    safetensors = http_call(
        daemon, "POST", "/v1/map_export", {"name": "h"},
        {"Accept": "application/x-safetensors"},
    ).body
    head = json.loads(safetensors[8 : 8 + int.from_bytes(safetensors[:8], "little")])
    assert head["keys"]["shape"] == [2, 3] and head["indices"]["dtype"] == "I32"
    status = http_call(daemon, "GET", "/v1/status").json()
    assert status["nMaps"] == "1" and int(status["mapBytes"]) > 0
    metrics = http_call(daemon, "GET", "/metrics").body.decode()
    assert "\nvoxeld_maps 1\n" in metrics and 'voxeld_map_bytes{use="used"}' in metrics


def read_ply(data: bytes) -> np.ndarray:
    head, body = data.split(b"end_header\n", 1)
    names = {"uchar": "|u1", "short": "<i2", "int": "<i4", "float": "<f4", "double": "<f8",
             "uint": "<u4"}
    lines = head.decode().splitlines()
    fields = [line.split() for line in lines if line.startswith("property")]
    return np.frombuffer(body, [(name, names[kind]) for _, kind, name in fields])


def test_export_as_ply_has_voxel_centres_and_properties(maps: Maps) -> None:
    lattice = hashmap_pb2.MapLattice(
        size=common_pb2.Vec3(x=0.5, y=1, z=2), origin=common_pb2.Vec3(x=100, y=0, z=-1)
    )
    maps.call("map_create", name="m", spec=SPEC, lattice=lattice)
    keys = np.array([[0, 0, 0], [-1, 2, 3]], np.int32)
    mean = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    count = np.array([7, 1 << 40], np.uint64)
    maps.call(
        "map_insert", name="m", keys=tensor_of(keys), values=rows(mean=mean, count=count)
    )
    ply = read_ply(maps.call("map_export", name="m", format=hashmap_pb2.MAP_PLY).ply)
    assert ply.dtype.names == ("x", "y", "z", "count", "mean_0", "mean_1", "mean_2")
    np.testing.assert_array_equal(ply["x"], [100.25, 99.75])
    np.testing.assert_array_equal(ply["y"], [0.5, 2.5])
    np.testing.assert_array_equal(ply["z"], [0, 6])
    np.testing.assert_array_equal(ply["count"], count.astype(float))
    np.testing.assert_array_equal(ply["mean_2"], [3, 6])
    maps.call("map_create", name="set")
    maps.call("map_insert", name="set", keys=tensor_of(keys))
    ply = read_ply(maps.call("map_export", name="set", format=hashmap_pb2.MAP_PLY).ply)
    np.testing.assert_array_equal(ply["x"], [0, -1])


def test_export_in_pieces_gives_all_entries_once(maps: Maps) -> None:
    rng = np.random.default_rng(3)
    maps.call("map_create", name="m", spec=SPEC)
    oracle = Oracle(**ZEROS)
    keys = random_keys(rng, 5000)
    oracle.insert(keys)
    maps.call("map_insert", name="m", keys=tensor_of(keys), counts_only=True)
    maps.call("map_erase", name="m", keys=tensor_of(keys[:1000]), counts_only=True)
    oracle.erase(keys[:1000])
    check_export(maps, "m", oracle)
    numbers = []
    for first in range(0, len(oracle.number) + 700, 700):
        reply = maps.call("map_export", name="m", first=first, limit=700, keys_only=True)
        assert not reply.values
        numbers += array_of(reply.indices).tolist()
    assert numbers == sorted(oracle.number.values())


def test_save_and_load_bring_back_the_same_map(daemon: Daemon, maps: Maps) -> None:
    rng = np.random.default_rng(9)
    lattice = hashmap_pb2.MapLattice(size=common_pb2.Vec3(x=1, y=1, z=1), frame_id="odom")
    maps.call("map_create", name="m", spec=SPEC, lattice=lattice)
    oracle = Oracle(**ZEROS)
    keys = random_keys(rng, 4000)
    count = rng.integers(0, 1 << 60, len(keys)).astype(np.uint64)
    maps.call("map_insert", name="m", keys=tensor_of(keys), values=rows(count=count))
    oracle.insert(keys, count=count)
    maps.call("map_erase", name="m", keys=tensor_of(keys[::3]))
    oracle.erase(keys[::3])
    saved = maps.call("map_save", name="m", file="kept")
    path = Path(daemon.config["data_dir"]) / "maps" / "kept.vxm"
    assert path.stat().st_size == saved.n_bytes and saved.n_entries == len(oracle.number)
    assert [p.name for p in path.parent.iterdir()] == ["kept.vxm"]
    loaded = maps.call("map_load", name="copy", file="kept", ttl_s=100).map
    assert loaded.n_entries == len(oracle.number)
    assert loaded.lattice == maps.call("map_get", name="m").map.lattice
    check_export(maps, "copy", oracle)
    assert maps.call("map_save", name="copy", file="again").digest == saved.digest
    maps.fails("map_load", common_pb2.ALREADY_EXISTS, "name", name="copy", file="kept")
    assert maps.call("map_load", name="copy", file="kept", replace=True).replaced
    # New numbers after loading are those that the saved map would have given.
    more = random_keys(rng, 500)
    indices, _ = oracle.insert(more)
    reply = maps.call("map_insert", name="copy", keys=tensor_of(more))
    np.testing.assert_array_equal(array_of(reply.indices), indices)
    maps.call("map_insert", name="m", keys=tensor_of(more))
    assert (
        maps.call("map_save", name="m", file="x").digest
        == maps.call("map_save", name="copy", file="y").digest
    )
    for at in (0, 9, 30, 60, 380, 500, path.stat().st_size - 3):
        data = bytearray(path.read_bytes())
        data[at] ^= 0x40
        (path.parent / "bad.vxm").write_bytes(data)
        maps.fails("map_load", common_pb2.DATA_LOSS if at != 9 else common_pb2.FAILED_PRECONDITION,
                   "file", name="bad")
    (path.parent / "bad.vxm").write_bytes(path.read_bytes()[:-1])
    maps.fails("map_load", common_pb2.DATA_LOSS, "file", name="bad")
    (path.parent / "bad.vxm").write_bytes(path.read_bytes() + b"x")
    assert "damaged at byte" in maps.fails(
        "map_load", common_pb2.DATA_LOSS, "file", name="bad"
    )


def test_save_without_data_dir_says_so(directory: Path) -> None:
    with running(directory, {"data_dir": ""}) as daemon, Maps(daemon) as maps:
        maps.call("map_create", name="m")
        for method in ("map_save", "map_load"):
            assert "data_dir" in maps.fails(method, common_pb2.FAILED_PRECONDITION, name="m")


def test_budgets_refuse_growth_and_leave_the_map_as_it_was(directory: Path) -> None:
    limits = {"map_bytes": 4 << 20, "map_bytes_per_token": 3 << 20}
    with running(directory, {"limits": limits}) as daemon, Maps(daemon) as maps:
        exhausted = common_pb2.RESOURCE_EXHAUSTED
        maps.fails("map_create", exhausted, name="large", capacity=1 << 22)
        maps.call("map_create", name="small", max_bytes=1 << 20)
        rng = np.random.default_rng(1)
        n_before = 0
        for _ in range(40):
            keys = rng.integers(-(1 << 19), 1 << 19, (4000, 3)).astype(np.int32)
            response = maps.send("map_insert", name="small", keys=tensor_of(keys))
            info = maps.call("map_get", name="small").map
            if response.header.code == exhausted:
                assert info.n_entries == n_before
                found = maps.call("map_find", name="small", keys=tensor_of(keys))
                assert found.n_found < len(keys)
                break
            assert response.header.code == OK, response.header
            assert info.n_bytes <= 1 << 20
            n_before = info.n_entries
        else:
            raise AssertionError("it grew for ever")
        made = 0
        while maps.send("map_create", name=f"m{made}", capacity=5000).header.code == OK:
            made += 1
            assert made < 100
        listed = maps.call("map_list")
        assert listed.limit_bytes == 4 << 20 and listed.n_bytes <= 3 << 20
        for info in listed.maps:
            maps.call("map_drop", name=info.name)
        assert maps.call("map_list").n_bytes == 0
        # A request's own memory is freed after its reply.
        wait_until(
            lambda: not int(
                http_call(daemon, "GET", "/v1/status").json().get("deviceBytes", 0)
            ),
            5, "no device memory is taken",
        )  # fmt: skip


def test_map_nobody_uses_is_dropped_although_nobody_asks(directory: Path) -> None:
    with running(directory) as daemon, Maps(daemon) as maps:
        ttl_s = max(0.6 * SLOW, 4)  # half of it is longer than a busy machine may stall
        maps.call("map_create", name="short", ttl_s=ttl_s)
        maps.call("map_create", name="long", ttl_s=3600)
        maps.call("map_create", name="ever")
        key = tensor_of(np.zeros((1, 3), np.int32))
        for _ in range(4):  # a map that is used stays
            time.sleep(ttl_s / 2)
            begin = time.monotonic()
            maps.call("map_find", name="short", keys=key)

        def n_maps() -> int:
            return int(http_call(daemon, "GET", "/v1/status").json()["nMaps"])

        assert n_maps() == 3
        wait_until(lambda: n_maps() == 2, 5, "the map is dropped")
        assert time.monotonic() - begin > 0.99 * ttl_s
        assert [m.name for m in maps.call("map_list").maps] == ["ever", "long"]
        left = maps.call("map_get", name="long").map
        assert 3500 < left.ttl_left_s <= 3600


def test_two_clients_at_once_lose_nothing(daemon: Daemon, maps: Maps) -> None:
    maps.call("map_create", name="m", spec=hashmap_pb2.MapSpec(values=[COUNT]))
    n_threads, n_times = 4, 25
    keys = tensor_of(np.arange(300, dtype=np.int32).reshape(100, 3))
    one = rows(count=np.ones(100, np.uint32))
    failures: list[BaseException] = []

    def add() -> None:
        try:
            with Maps(daemon) as client:
                for _ in range(n_times):
                    client.call(
                        "map_update", name="m", keys=keys, values=one,
                        combine=hashmap_pb2.MAP_ADD, insert_missing=True,
                    )
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=add) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = maps.call("map_find", name="m", keys=keys, values=["count"])
    assert (array_of(found.values[0].rows) == n_threads * n_times).all()
