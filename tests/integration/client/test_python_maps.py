# SPDX-License-Identifier: Apache-2.0
"""Named hash maps and exactly-once calls in the Python client, against the real daemon and a
dictionary."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import SLOW, Daemon, common_pb2, random_points, rpc_pb2, running, wait_until
from test_python_errors import Peer, tensor

NAMES = (f"map-{i}" for i in itertools.count())


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        yield connected


@pytest.fixture
def counts(client: voxeld.Client) -> voxeld.Map:
    return client.map_create(next(NAMES), {"count": np.uint64, "mean": (np.float32, 3)})


def random_keys(n: int, seed: int = 1, extent: int = 12) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.integers(-extent, extent, (n, 3)).astype(np.int32)


# Entries -----------------------------------------------------------------------------------


def test_insert_numbers_new_keys_by_their_first_position(counts: voxeld.Map) -> None:
    keys = random_keys(3000)
    first: dict[tuple[int, ...], int] = {}
    for key in map(tuple, keys.tolist()):
        first.setdefault(key, len(first))
    inserted = counts.insert(keys, {"mean": keys.astype(np.float32)})
    assert inserted.n_new == inserted.n_entries == len(first)
    assert inserted.indices is not None and inserted.is_new is not None
    np.testing.assert_array_equal(inserted.indices, [first[tuple(k)] for k in keys.tolist()])
    assert inserted.is_new.dtype == np.bool_ and inserted.is_new.sum() == len(first)
    assert inserted.indices.flags.aligned
    again = counts.insert(keys, counts_only=True)
    assert again.indices is None and again.n_new == 0 and not again.replayed
    info = counts.info()
    assert info.n_entries == len(first) and info.mean_probes >= 1
    assert info.values == tuple(counts.arrays.values())


def test_find_gives_rows_and_neighbours(counts: voxeld.Map) -> None:
    keys = random_keys(500, seed=2, extent=6)
    inserted = counts.insert(keys, {"mean": keys.astype(np.float32)})
    assert inserted.indices is not None
    number = dict(zip(map(tuple, keys.tolist()), inserted.indices.tolist(), strict=True))
    asked = random_keys(300, seed=3, extent=8)
    found = counts.find(asked, neighbours=27)
    expected = [number.get(k, -1) for k in map(tuple, asked.tolist())]
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_array_equal(found.found, np.asarray(expected) >= 0)
    assert found.n_found == sum(e >= 0 for e in expected)
    rows = np.where(found.found[:, None], asked, 0).astype(np.float32)
    np.testing.assert_array_equal(found.values["mean"], rows)
    assert found.values["count"].dtype == np.uint64
    offsets = list(itertools.product((-1, 0, 1), repeat=3))
    around = [[number.get(tuple(np.add(k, o)), -1) for o in offsets] for k in asked.tolist()]
    assert found.neighbours is not None
    np.testing.assert_array_equal(found.neighbours, around)
    only = counts.find(asked, values="count", neighbours=6)
    assert set(only.values) == {"count"} and only.neighbours is not None
    assert only.neighbours.shape == (300, 6)
    assert counts.find(asked, values=()).values == {}


def test_update_combines_rows_in_order(counts: voxeld.Map) -> None:
    keys = random_keys(4000, seed=4, extent=5)
    ones = np.ones(len(keys), np.uint64)
    updated = counts.update(keys, {"count": ones}, "add", insert_missing=True)
    unique, expected = np.unique(keys, axis=0, return_counts=True)
    assert updated.n_new == len(unique) and updated.n_updated == len(keys)
    found = counts.find(unique)
    np.testing.assert_array_equal(found.values["count"], expected)
    means = random_points(len(keys), seed=5)
    counts.update(keys, {"mean": means}, "max")
    largest = [means[(keys == k).all(1)].max(0) for k in unique[:50]]
    # Rows started as zeros.
    np.testing.assert_array_equal(
        counts.find(unique[:50]).values["mean"], np.maximum(largest, 0)
    )
    at = counts.update_at(found.indices[:2], found.erase_epoch, {"count": [7, 8]})
    assert at.updated is not None and at.updated.all() and at.n_updated == 2
    assert counts.find(unique[:2]).values["count"].tolist() == [7, 8]
    missing = counts.update([[99, 99, 99]], {"count": [1]})
    assert missing.n_updated == 0 and missing.updated is not None and not missing.updated[0]


def test_numbers_hold_until_something_is_erased(counts: voxeld.Map) -> None:
    keys = random_keys(200, seed=6)
    counts.insert(keys)
    found = counts.find(keys)
    gathered = counts.gather(found.indices, found.erase_epoch)
    np.testing.assert_array_equal(gathered.keys, keys)
    assert gathered.found.all()
    erased = counts.erase(keys[:10])
    assert erased.erased is not None
    assert erased.n_erased == erased.erased.sum() == len(np.unique(keys[:10], axis=0))
    with pytest.raises(voxeld.FailedPrecondition) as raised:
        counts.gather(found.indices, found.erase_epoch)
    assert raised.value.sequence == 0 and raised.value.request_id
    with pytest.raises(voxeld.FailedPrecondition) as raised:
        counts.update_at(found.indices, found.erase_epoch, {"count": found.values["count"]})
    assert raised.value.sequence > 0
    assert counts.clear().n_entries == 0


@pytest.mark.parametrize("dtype", [np.int16, np.int64])
@pytest.mark.parametrize("n_components", [1, 2, 4, 8])
def test_every_kind_of_key(
    client: voxeld.Client, dtype: type[np.generic], n_components: int
) -> None:
    info = np.iinfo(dtype)
    generator = np.random.default_rng(n_components)
    keys = generator.integers(info.min, info.max, (300, n_components), dtype)
    made = client.map_create(next(NAMES), key_dtype=dtype, n_components=n_components)
    assert made.insert(np.asfortranarray(keys)).n_new == len(np.unique(keys, axis=0))
    assert made.find(keys.astype(keys.dtype.newbyteorder(">"))).found.all()
    entries = made.export()
    assert entries.keys.dtype == dtype and entries.values == {}
    if n_components == 1:
        assert made.find(keys[:, 0]).n_found == len(keys)
        assert made.find(keys[0].tolist()).n_found == 1
    made.drop()


def test_empty_and_large_arrays(counts: voxeld.Map) -> None:
    assert counts.insert([]).n_new == 0
    assert counts.find([]).values["mean"].shape == (0, 3)
    assert len(counts.export()) == 0
    keys = random_keys(200_000, seed=7, extent=200)
    n = counts.insert(keys, {"mean": keys.astype(np.float32)}).n_entries
    found = counts.find(keys)
    assert found.found.all()
    np.testing.assert_array_equal(found.values["mean"], keys)
    parts = [counts.export("mean", first=i, limit=50_000) for i in range(0, n, 50_000)]
    assert [len(p) for p in parts[:-1]] == [50_000] * (len(parts) - 1)
    np.testing.assert_array_equal(
        np.vstack([p.keys for p in parts]), np.vstack([p.values["mean"] for p in parts])
    )
    np.testing.assert_array_equal(np.concatenate([p.indices for p in parts]), np.arange(n))


# Maps --------------------------------------------------------------------------------------


def test_maps_are_listed_found_saved_loaded_and_dropped(
    client: voxeld.Client, directory: Path
) -> None:
    name = next(NAMES)
    lattice = voxeld.Lattice((0.5, 0.5, 0.25), (10, 0, 0), "map")
    made = client.map_create(name, {"count": np.uint8}, lattice=lattice, ttl_s=600)
    assert made.lattice == lattice and "count" in made.arrays
    made.insert([[1, 2, 3], [4, 5, 6]], {"count": [7, 8]})
    same = client.map_create(name, {"count": np.uint8}, lattice=lattice, ttl_s=600)
    assert same.info().n_entries == 2
    with pytest.raises(voxeld.AlreadyExists):
        client.map_create(name, {"count": np.uint16}, lattice=lattice, ttl_s=600)
    listed = {m.name: m for m in client.maps()}
    assert listed[name].ttl_s == 600 and 0 < listed[name].ttl_left_s <= 600
    assert listed[name].values == (voxeld.MapArray("count", voxeld.DType.UINT8),)

    entries = client.map(name).export()
    np.testing.assert_allclose(entries.centres(), [[10.75, 1.25, 0.875], [12.25, 2.75, 1.625]])
    assert made.export_ply(directory / "m.ply") == 2
    assert b"element vertex 2\n" in (directory / "m.ply").read_bytes()
    assert [p.name for p in directory.iterdir()] == ["m.ply"]
    with pytest.raises(FileNotFoundError):
        made.export_ply(directory / "no" / "m.ply")

    saved = made.save("a-file")
    assert saved.file == "a-file" and saved.n_entries == 2 and saved.digest
    assert made.drop() and not made.drop(missing_ok=True)
    with pytest.raises(voxeld.NotFound):
        made.find([[1, 2, 3]])
    loaded = client.map_load(name, "a-file")
    assert loaded.find([[4, 5, 6]]).values["count"].tolist() == [8]
    assert loaded.save("a-file").digest == saved.digest
    with pytest.raises(voxeld.AlreadyExists):
        client.map_load(name, "a-file")
    assert client.map_load(name, "a-file", replace=True).info().n_entries == 2
    assert client.map_drop(name)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda m: m.insert([[1.5, 2, 3]]), "keys"),
        (lambda m: m.insert([[1, 2]]), "keys"),
        (lambda m: m.insert([[1, 2, 3]], {"nothing": [1]}), "values['nothing']"),
        (lambda m: m.insert([[1, 2, 3]], {"count": np.ones(1)}), "values['count']"),
        (lambda m: m.insert([[1, 2, 3]], {"count": ["x"]}), "values['count']"),
        (lambda m: m.insert([[1, 2, 3]], sequence=-1), "sequence"),
        (lambda m: m.insert([[2**40, 0, 0]]), "keys"),
        (lambda m: m.find([[1, 2, 3]], neighbours=5), "neighbours"),
        (lambda m: m.find([[1, 2, 3]], values="nothing"), "values[0]"),
        (lambda m: m.gather([[1]], 0), "indices"),
        (lambda m: m.gather([2**40], 0), "indices"),
        (lambda m: m.update([[1, 2, 3]], {"count": [1]}, "mul"), "combine"),
    ],
)
def test_wrong_arguments_name_the_field(counts: voxeld.Map, call, field: str) -> None:  # noqa: ANN001
    with pytest.raises(voxeld.InvalidArgument) as raised:
        call(counts)
    assert raised.value.field == field, raised.value


def test_wrong_specs_name_the_field(client: voxeld.Client) -> None:
    for values, field in (({"a": "U5"}, "values['a']"), ({"a": object()}, "values['a']")):
        with pytest.raises(voxeld.InvalidArgument) as raised:
            client.map_create("wrong", values)
        assert raised.value.field == field
    with pytest.raises(voxeld.InvalidArgument):
        client.map_create("Not A Name")


# Voxelize ----------------------------------------------------------------------------------


def test_voxelize_merges_into_a_running_map(client: voxeld.Client) -> None:
    name = next(NAMES)
    scans = [random_points(20_000, seed=s, extent=5) for s in (1, 2, 3)]
    n = 0
    for scan in scans:
        voxels = client.voxelize(scan, 0.5, merge=name)
        assert voxels.merged is not None and not voxels.replayed
        n += voxels.merged.n_new
        assert voxels.merged.n_entries == n
    entries = client.map(name).export()
    points = np.vstack(scans)
    keys, inverse, expected = np.unique(
        np.floor(points / np.float32(0.5)).astype(np.int32), axis=0,
        return_inverse=True, return_counts=True,
    )  # fmt: skip
    order = np.lexsort(entries.keys.T[::-1])
    np.testing.assert_array_equal(entries.keys[order], keys)
    np.testing.assert_array_equal(entries.values["count"][order], expected)
    sums = np.zeros((len(keys), 3))
    np.add.at(sums, inverse.ravel(), points.astype(np.float64))
    np.testing.assert_allclose(entries.values["sum"][order], sums, atol=1e-3)
    assert entries.lattice == voxeld.Lattice((0.5, 0.5, 0.5))
    with pytest.raises(voxeld.FailedPrecondition):
        client.voxelize(scans[0], 0.25, merge=name)
    with pytest.raises(voxeld.NotFound):
        client.voxelize(scans[0], 0.5, merge=voxeld.Merge("nowhere", create=False))


# Exactly once ------------------------------------------------------------------------------


def replayed_without_arrays(call: Callable[[], Any]) -> Any:
    """A repetition may still meet the first call's whole reply; later ones meet its counts."""

    def attempt() -> Any:
        result = call()
        assert result.replayed
        return result if result.arrays_dropped else None

    return wait_until(attempt, 10, "a reply without its arrays")


def test_repeated_call_takes_effect_once(counts: voxeld.Map) -> None:
    keys = random_keys(3000, seed=8)
    ones = {"count": np.ones(len(keys), np.uint64)}
    first = counts.update(keys, ones, "add", insert_missing=True, sequence=2**60)
    again = counts.update(
        keys, ones, "add", insert_missing=True, sequence=2**60, request_id="a-repetition",
        timeout=20 * SLOW,
    )  # fmt: skip
    assert again.replayed and not first.replayed and again.n_new == first.n_new
    # The server remembers counts of replies that are too large to be kept.
    assert not again.arrays_dropped or again.updated is None
    large = counts.insert(random_keys(5000), sequence=2**60 + 1)
    again_large = replayed_without_arrays(
        lambda: counts.insert(random_keys(5000), sequence=2**60 + 1)
    )
    assert again_large.indices is None and again_large.n_new == large.n_new
    assert counts.export("count").values["count"].sum() == len(keys)
    with pytest.raises(voxeld.InvalidArgument) as raised:
        counts.update(keys[:5], {"count": ones["count"][:5]}, "add", sequence=2**60)
    assert raised.value.sequence == 2**60


def test_repeat_learns_the_outcome_after_a_deadline(counts: voxeld.Map) -> None:
    keys = random_keys(100_000, seed=9, extent=60)
    ones = {"count": np.ones(len(keys), np.uint64)}
    seen: list[int] = []

    def attempt(sequence: int) -> voxeld.Updated:
        seen.append(sequence)
        timeout = 0.001 if len(seen) <= 2 else 30 * SLOW
        try:
            return counts.update(
                keys, ones, "add", insert_missing=True, timeout=timeout, sequence=sequence
            )
        except voxeld.DeadlineExceeded as e:
            e.field = ""  # as if the server's own answer had been lost
            raise

    updated = voxeld.repeat(attempt, seconds=60 * SLOW)
    assert len(seen) > 1 and seen[0] == 0 and len(set(seen[1:])) == 1 and seen[1] > 0
    assert updated.n_entries == len(np.unique(keys, axis=0))
    assert counts.export("count").values["count"].sum() == len(keys)


def test_merge_is_repeated_once_too(client: voxeld.Client) -> None:
    name, scan = next(NAMES), random_points(50_000, seed=4)
    first = client.voxelize(scan, 0.5, merge=name, sequence=2**61)
    again = replayed_without_arrays(
        lambda: client.voxelize(scan, 0.5, merge=name, sequence=2**61)
    )
    assert again.coords is None
    assert again.merged == first.merged and again.n_voxels == first.n_voxels
    assert client.map(name).export("count").values["count"].sum() == len(scan)


def test_repeat_ends_when_its_time_is_over(directory: Path) -> None:
    url = f"ipc://{directory}/nobody.sock"
    calls = []
    with voxeld.connect(url, wait=0) as client, pytest.raises(voxeld.Unavailable) as raised:
        voxeld.repeat(lambda n: calls.append(n) or client.map_drop("x", sequence=n), 2)
    assert len(calls) > 2 and set(calls[1:]) == {raised.value.sequence}
    with pytest.raises(ZeroDivisionError):
        voxeld.repeat(lambda n: n // 0, 10)


def test_calls_go_on_over_a_restart_of_the_daemon(directory: Path) -> None:
    with running(directory) as daemon:
        client = voxeld.connect(daemon.ipc, timeout=30 * SLOW, client_id="robot")
        made = client.map_create("seen")
        made.insert([[1, 2, 3]])
        made.save()
    with running(directory), client:
        made = voxeld.repeat(lambda n: client.map_load("seen", sequence=n), 20 * SLOW)
        assert made.find([[1, 2, 3]]).n_found == 1
    # A new client of that name goes on above the old one's numbers.
    with running(directory) as daemon:
        for _ in range(3):
            with voxeld.connect(daemon.ipc, timeout=30 * SLOW, client_id="robot") as client:
                assert not client.map_create("seen").insert([[4, 5, 6]]).replayed


# Peers that lie ----------------------------------------------------------------------------


def good_found() -> Any:
    """The reply to two keys, with one array and six neighbours asked for."""
    response = rpc_pb2.Response(header=rpc_pb2.ResponseHeader(request_id="r"))
    f = response.map_find
    f.indices.CopyFrom(tensor(common_pb2.INT32, np.asarray([0, -1], "<i4")))
    f.found.CopyFrom(tensor(common_pb2.UINT8, np.asarray([1, 0], "u1")))
    f.values.add(name="v").rows.CopyFrom(tensor(common_pb2.FLOAT32, np.ones((2, 3), "<f4")))
    f.neighbours.CopyFrom(tensor(common_pb2.INT32, np.zeros((2, 6), "<i4")))
    return response


def find_at(directory: Path, answer: Any) -> voxeld.Found:
    info = rpc_pb2.Response(header=rpc_pb2.ResponseHeader())
    info.map_get.map.name = "m"
    info.map_get.map.spec.key_dtype = common_pb2.INT32
    info.map_get.map.spec.n_components = 3

    def reply(request: Any) -> Any:
        return info if request.WhichOneof("method") == "map_get" else answer

    with Peer(directory, reply) as peer, voxeld.connect(peer.url) as client:
        return client.map("m").find([[1, 2, 3], [4, 5, 6]], neighbours=6)


def test_good_answer_about_a_map_is_taken(directory: Path) -> None:
    found = find_at(directory, good_found())
    assert found.values["v"].shape == (2, 3) and found.found.tolist() == [True, False]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda f: f.ClearField("indices"), "indices"),
        (lambda f: setattr(f.indices, "data", f.indices.data[:-1]), "indices"),
        (lambda f: setattr(f.indices, "data", b"\xfe\xff\xff\xff" * 2), "indices"),
        (lambda f: setattr(f.found, "dtype", common_pb2.INT8), "found"),
        (lambda f: setattr(f.found, "data", b"\2\0"), "found"),
        (lambda f: f.found.shape.__setitem__(0, 3), "found"),
        (lambda f: f.values[0].ClearField("rows"), "values[0].rows"),
        (lambda f: f.values[0].rows.shape.__setitem__(1, -3), "values[0].rows"),
        (lambda f: f.values[0].rows.shape.__setitem__(0, 1), "values[0].rows"),
        (lambda f: f.values[0].rows.shape.append(1), "values[0].rows"),
        (lambda f: setattr(f.values[0].rows, "dtype", 77), "values[0].rows"),
        (lambda f: setattr(f.values[0].rows, "data", b""), "values[0].rows"),
        (lambda f: f.neighbours.shape.__setitem__(1, 8), "neighbours"),
    ],
)
def test_answer_about_a_map_that_contradicts_itself_is_internal(
    directory: Path, change: Callable[[Any], Any], field: str
) -> None:
    response = good_found()
    change(response.map_find)
    with pytest.raises(voxeld.Internal, match="inconsistent") as caught:
        find_at(directory, response)
    assert caught.value.field == field and caught.value.request_id == "r"
