# SPDX-License-Identifier: Apache-2.0
"""Durable maps: what was answered exists after any end of the process, with numbers, epochs and
the outcomes of requests, from the journal or from a snapshot file."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pynng
import pytest
import voxeld
from harness import (
    BIN,
    OK,
    SLOW,
    Daemon,
    array_of,
    cloud_of,
    common_pb2,
    hashmap_pb2,
    http_call,
    rpc_pb2,
    running,
    tensor_of,
    wait_until,
)
from maps import SPEC, Maps, Oracle, check_export, rows
from test_map_tools import ctl, ctl_json
from test_merge import merge

FSYNCS = ["MAP_FSYNC_ALWAYS", "MAP_FSYNC_EVERYSEC", "MAP_FSYNC_OFF"]
ZEROS = {"count": np.zeros((), np.uint64), "mean": np.zeros(3, np.float32)}
SEQUENCE = 1 << 30  # of requests that are sent again


def create(maps: Maps, name: str, fsync: str = FSYNCS[0], **fields: Any) -> None:
    maps.call("map_create", name=name, spec=SPEC, durable=True, fsync=fsync, **fields)


def again(
    maps: Maps, sequence: int, method: str, client: str = "robot", **fields: Any
) -> rpc_pb2.Response:
    """Sends a request with a given sequence number."""
    kind = getattr(hashmap_pb2, "".join(p.title() for p in method.split("_")) + "Request")
    return maps.rpc.call(method, kind(**fields), client_id=client, sequence=sequence)


def change(maps: Maps, oracle: Oracle, rng: np.random.Generator, name: str) -> None:
    """Makes one random change of the map and of the oracle."""
    keys = rng.integers(-30, 30, (int(rng.integers(0, 400)), 3)).astype(np.int32)
    count = rng.integers(0, 1 << 30, len(keys)).astype(np.uint64)
    what = int(rng.integers(0, 16))
    if what < 6:
        reply = maps.call("map_insert", name=name, keys=tensor_of(keys), values=rows(count=count))
        indices, is_new = oracle.insert(keys, count=count)
        np.testing.assert_array_equal(array_of(reply.indices), indices)
        np.testing.assert_array_equal(array_of(reply.is_new), is_new)
    elif what < 10:
        keys = keys[:100]
        reply = maps.call("map_erase", name=name, keys=tensor_of(keys))
        np.testing.assert_array_equal(array_of(reply.erased), oracle.erase(keys))
    elif what < 13:
        insert_missing = bool(rng.integers(0, 2))
        maps.call(
            "map_update",
            name=name,
            keys=tensor_of(keys),
            values=rows(count=count),
            combine="MAP_ADD",
            insert_missing=insert_missing,
        )
        if insert_missing:
            oracle.insert(keys)
        for key, n in zip(map(tuple, keys.tolist()), count, strict=True):
            if key in oracle.rows:
                oracle.rows[key]["count"] = oracle.rows[key]["count"] + n
    elif what < 15 and oracle.number:
        chosen = rng.choice(len(oracle.number), min(20, len(oracle.number)), replace=False)
        names = [list(oracle.number)[i] for i in chosen]
        mean = rng.normal(size=(len(names), 3)).astype(np.float32)
        epoch = maps.call("map_get", name=name).map.erase_epoch
        maps.call(
            "map_update",
            name=name,
            indices=tensor_of(np.array([oracle.number[k] for k in names], np.int32)),
            erase_epoch=epoch,
            values=rows(mean=mean),
        )
        for key, row in zip(names, mean, strict=True):
            oracle.rows[key]["mean"] = row
    elif what == 15:
        maps.call("map_erase", name=name, all=True)
        oracle.number.clear()
        oracle.rows.clear()


def info_of(maps: Maps, name: str) -> tuple[Any, ...]:
    """Reads everything of a map that must survive."""
    info = maps.call("map_get", name=name).map
    return (
        info.spec.SerializeToString(deterministic=True),
        info.lattice.SerializeToString(deterministic=True),
        info.n_entries,
        info.erase_epoch,
        info.generation,
        info.owner,
        info.created_ns,
        info.max_bytes,
        (info.durable, info.fsync, info.journal_max_bytes),
    )


@pytest.mark.parametrize("journal_max_bytes", [0, 20000])
def test_random_histories_with_restarts_match_a_dict(
    tmp_path: Path, journal_max_bytes: int
) -> None:
    rng = np.random.default_rng(journal_max_bytes)
    names = ["a", "b", "c"]
    oracles = {name: Oracle(**ZEROS) for name in names}
    n_snapshots = 0
    before: dict[str, tuple[Any, ...]] = {}
    for round_ in range(5):
        with running(tmp_path) as daemon, Maps(daemon) as maps:
            if round_ == 0:
                for name, fsync in zip(names, FSYNCS, strict=True):
                    create(maps, name, fsync, journal_max_bytes=journal_max_bytes)
                maps.call("map_create", name="memory", spec=SPEC)
            else:
                assert [m.name for m in maps.call("map_list").maps] == names
                assert {n: info_of(maps, n) for n in names} == before
            for name in names:
                if oracles[name].number:
                    check_export(maps, name, oracles[name])
            for _ in range(25):
                for name in names:
                    change(maps, oracles[name], rng, name)
            for name in names:
                change(maps, oracles[name], rng, name)
                if oracles[name].number:
                    check_export(maps, name, oracles[name])
            if journal_max_bytes and round_ == 2:
                wait_until(lambda: daemon.find("snapshot written"), 20, "a snapshot")
            n_snapshots += daemon.find("snapshot written") is not None
            before = {n: info_of(maps, n) for n in names}
    assert (n_snapshots > 0) == (journal_max_bytes > 0)


def test_maps_keep_their_kind_and_lattice_over_a_restart(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    long_name = "m" * 63
    kinds = {"s": ("INT16", 1), "q": ("INT64", 8), "v": ("INT32", 4), long_name: ("INT32", 3)}
    keys = {}
    vector = common_pb2.Vec3(x=0.1, y=0.2, z=0.3)
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        for name, (dtype, n) in kinds.items():
            arrays = [
                hashmap_pb2.MapArray(name=f"a{d}", dtype=d, n_elements=3) for d in range(1, 13)
            ]
            lattice = hashmap_pb2.MapLattice(size=vector, origin=vector, frame_id="hall é")
            maps.call(
                "map_create",
                name=name,
                spec=hashmap_pb2.MapSpec(key_dtype=dtype, n_components=n, values=arrays),
                durable=True,
                lattice=lattice if n == 3 else None,
                capacity=1000,
            )
            bits = int(dtype[3:])
            keys[name] = rng.integers(
                -(1 << (bits - 1)), (1 << (bits - 1)) - 1, (500, n), endpoint=True
            ).astype(f"<i{bits // 8}")
            given = [hashmap_pb2.MapRows(name="a5", rows=tensor_of(keys[name][:, :1].repeat(3, 1)))]
            if dtype != "INT32":
                given = []
            maps.call("map_insert", name=name, keys=tensor_of(keys[name]), values=given)
        exports = {n: maps.call("map_export", name=n) for n in kinds}
        before = {n: info_of(maps, n) for n in kinds}
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert {n: info_of(maps, n) for n in kinds} == before
        assert {n: maps.call("map_export", name=n) for n in kinds} == exports
        for name, of_map in keys.items():
            found = maps.call("map_find", name=name, keys=tensor_of(of_map))
            assert found.n_found == len(of_map)


def test_snapshot_file_shortens_the_start_and_a_damaged_one_is_passed_over(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(2)
    oracle = Oracle(**ZEROS)
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        create(maps, "a", journal_max_bytes=30000)
        while len(list((tmp_path / "data" / "snapshots").glob("*.vxs"))) < 2:
            change(maps, oracle, rng, "a")
        before = info_of(maps, "a")
        metrics = http_call(daemon, "GET", "/metrics").body.decode()
        assert "voxeld_durable_maps 1" in metrics
        assert 'voxeld_map_snapshots_total{result="failed"} 0' in metrics
    newest = sorted((tmp_path / "data" / "snapshots").glob("*.vxs"))[-1]
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        check_export(maps, "a", oracle)
    whole = newest.read_bytes()
    for at in (20, len(whole) // 2, len(whole) - 3):
        data = bytearray(whole)
        data[at] ^= 0x10
        newest.write_bytes(data)
        for bad in newest.parent.glob("*.bad"):
            bad.unlink()
        with running(tmp_path) as daemon, Maps(daemon) as maps:
            said = daemon.find("a snapshot is no good, the one before it is tried")
            assert said is not None and newest.name in said["reason"], said
            assert info_of(maps, "a") == before
            check_export(maps, "a", oracle)


@pytest.mark.parametrize("fsync", FSYNCS)
def test_killed_at_any_moment_keeps_what_was_answered(tmp_path: Path, fsync: str) -> None:
    """Clients add to counters while the daemon is killed again and again. Each repeats what got no
    answer, so everything happens exactly once."""
    n_clients, n_rounds = 4, 10
    rng = random.Random(FSYNCS.index(fsync))
    sent = [0] * n_clients
    indices: list[dict[int, int]] = [{} for _ in range(n_clients)]

    def write(daemon: Daemon, i: int, stop: threading.Event) -> None:
        with Maps(daemon) as own:
            while not stop.is_set():
                k = sent[i]
                keys = tensor_of(np.array([[i, k, 0], [9, 9, 9]], np.int32))
                try:
                    response = again(
                        own,
                        k + 1,
                        "map_update",
                        f"client-{i}",
                        name="m",
                        keys=keys,
                        values=rows(count=np.ones(2, np.uint64)),
                        combine="MAP_ADD",
                        insert_missing=True,
                    )
                    if response.header.code != OK:
                        continue
                    sent[i] = k + 1
                    found = own.call("map_find", name="m", keys=keys)
                except pynng.exceptions.NNGException:
                    return
                indices[i][k] = int(array_of(found.indices)[0])

    for round_ in range(n_rounds):
        daemon = Daemon(tmp_path)
        with Maps(daemon) as maps:
            if round_ == 0:
                create(maps, "m", fsync, journal_max_bytes=4000)
            n = sum(sent)
            info = maps.call("map_get", name="m").map
            # A client that waited for an answer may have got one.
            assert n <= info.n_entries <= n + n_clients + 1
            shared = maps.call(
                "map_find", name="m", keys=tensor_of(np.array([[9, 9, 9]])), values=["count"]
            )
            total = int(array_of(shared.values[0].rows)[0])
            assert n <= total <= n + n_clients
            for i in range(n_clients):
                for k, index in list(indices[i].items())[-5:]:
                    found = maps.call("map_find", name="m", keys=tensor_of(np.array([[i, k, 0]])))
                    assert array_of(found.indices)[0] == index
        stop = threading.Event()
        threads = [
            threading.Thread(target=write, args=(daemon, i, stop)) for i in range(n_clients)
        ]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.02, 0.4))
        wait_until(lambda n=n: sum(sent) > n + 2, 20, "something is changed")
        daemon.signal(signal.SIGKILL)
        stop.set()
        daemon.process.wait(60)
        for thread in threads:
            thread.join()
    assert sum(sent) > 20
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        reply = maps.call("map_export", name="m", values=["count"])
        counts = dict(
            zip(
                map(tuple, array_of(reply.keys).tolist()),
                array_of(reply.values[0].rows).tolist(),
                strict=True,
            )
        )
        shared = counts.pop((9, 9, 9))
        assert set(counts.values()) == {1}
        assert shared == len(counts)


def test_outcome_is_remembered_across_starts(tmp_path: Path) -> None:
    few = tensor_of(np.arange(6, dtype=np.int32).reshape(2, 3))
    many = tensor_of(np.arange(30000, dtype=np.int32).reshape(-1, 3))
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        create(maps, "m")
        small = again(maps, SEQUENCE, "map_insert", name="m", keys=few)
        large = again(maps, SEQUENCE + 1, "map_insert", name="m", keys=many)
        assert large.map_insert.n_new == 9998
        assert len(array_of(large.map_insert.indices)) == 10000
        made = again(
            maps, SEQUENCE + 2, "map_create", name="n", spec=SPEC, durable=True, max_bytes=1 << 30
        )
        assert not made.map_create.existed
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        reply = again(maps, SEQUENCE, "map_insert", name="m", keys=few)
        assert reply.header.replayed and not reply.header.arrays_dropped
        assert reply.map_insert == small.map_insert
        reply = again(maps, SEQUENCE + 1, "map_insert", name="m", keys=many)
        assert reply.header.replayed and reply.header.arrays_dropped
        assert reply.map_insert.n_new == 9998
        assert maps.call("map_get", name="m").map.n_entries == 10000
        reply = again(
            maps, SEQUENCE + 2, "map_create", name="n", spec=SPEC, durable=True, max_bytes=1 << 30
        )
        assert reply.header.replayed and not reply.map_create.existed
        other = again(maps, SEQUENCE, "map_insert", name="m", keys=many)
        assert other.header.code == common_pb2.INVALID_ARGUMENT


def test_dropped_map_stays_dropped_and_its_files_go(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    folder = tmp_path / "data" / "snapshots"
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        create(maps, "a", journal_max_bytes=1000)
        oracle = Oracle(**ZEROS)
        for _ in range(10):
            change(maps, oracle, rng, "a")
        wait_until(lambda: list(folder.glob("*.vxs")), 20, "a snapshot")
        old = maps.call("map_get", name="a").map
        assert maps.call("map_drop", name="a").existed
        assert not maps.call("map_drop", name="a", missing_ok=True).existed
        wait_until(lambda: not list(folder.glob("*.vxs")), 20, "the files to go")
        create(maps, "a")
        info = maps.call("map_get", name="a").map
        assert info.erase_epoch > old.erase_epoch and info.generation != old.generation
        maps.call("map_drop", name="a")
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert not maps.call("map_list").maps


def test_scene_and_map_of_one_name_live_together(tmp_path: Path) -> None:
    body = {"name": "yard", "spec": {"voxel_size_m": 0.1, "depth": 5}, "durability": {}}
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert http_call(daemon, "POST", "/v1/scene_create", body).status == 200
        create(maps, "yard")
        maps.call("map_insert", name="yard", keys=tensor_of(np.zeros((1, 3), np.int32)))
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert maps.call("map_get", name="yard").map.n_entries == 1
        assert http_call(daemon, "GET", "/v1/scenes/yard").status == 200
        maps.call("map_drop", name="yard")
        assert http_call(daemon, "GET", "/v1/scenes/yard").status == 200


def test_wrong_durability_is_refused(tmp_path: Path) -> None:
    invalid = common_pb2.INVALID_ARGUMENT
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        fields = {"name": "m", "spec": SPEC}
        maps.fails("map_create", invalid, "fsync", durable=True, fsync=7, **fields)
        maps.fails("map_create", invalid, "fsync", fsync=FSYNCS[2], **fields)
        maps.fails("map_create", invalid, "journal_max_bytes", journal_max_bytes=9, **fields)
        for n in (1 << 63, (1 << 64) - 1):
            huge = {"durable": True, "journal_max_bytes": n}
            maps.fails("map_create", invalid, "journal_max_bytes", **huge, **fields)
        maps.fails("map_create", invalid, "ttl_s", durable=True, ttl_s=3, **fields)
        create(maps, "m")
        create(maps, "m")
        maps.fails("map_create", common_pb2.ALREADY_EXISTS, "name", **fields)
        maps.call("map_save", name="m", file="f")
        maps.call("map_load", name="other", file="f")
        state = common_pb2.FAILED_PRECONDITION
        maps.fails("map_load", state, "replace", name="m", file="f", replace=True)
    with running(tmp_path / "none", {"data_dir": ""}) as daemon, Maps(daemon) as maps:
        maps.fails("map_create", state, "durable", durable=True, **fields)
        maps.call("map_create", **fields)


def test_limit_refuses_before_anything_is_written(tmp_path: Path) -> None:
    keys = tensor_of(np.arange(300000, dtype=np.int32).reshape(-1, 3))
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        create(maps, "m", max_bytes=1 << 20)
        few = tensor_of(np.arange(30, dtype=np.int32).reshape(-1, 3))
        maps.call("map_insert", name="m", keys=few)
        maps.fails("map_insert", common_pb2.RESOURCE_EXHAUSTED, name="m", keys=keys)
        before = info_of(maps, "m")
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert info_of(maps, "m") == before


def test_voxels_merged_into_a_durable_map_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        points = (rng.normal(size=(2000, 4)) * 10).astype(np.float32)
        assert merge(maps, cloud_of(points), size=0.5).header.code == OK
        made = maps.call("map_get", name="drive").map  # as voxelize makes it
        maps.call("map_drop", name="drive")
        maps.call(
            "map_create", name="drive", spec=made.spec, lattice=made.lattice, durable=True
        )
        for _ in range(5):
            points = (rng.normal(size=(2000, 4)) * 10).astype(np.float32)
            reply = merge(maps, cloud_of(points), size=0.5, merge={"create": False})
            assert reply.header.code == OK, reply.header
        before = maps.call("map_export", name="drive")
        assert before.n_entries > 1000
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert maps.call("map_export", name="drive") == before


def test_backup_and_damaged_journal_raise_the_generation(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    oracle = Oracle(**ZEROS)
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        create(maps, "a", journal_max_bytes=20000)
        for _ in range(40):
            change(maps, oracle, rng, "a")
        reply = http_call(daemon, "POST", "/v1/backup", {"name": "monday"}).json()
        before = maps.call("map_get", name="a").map
        kept = maps.call("map_export", name="a")
        maps.call("map_insert", name="a", keys=tensor_of(np.full((1, 3), 1000, np.int32)))
    checked = subprocess.run(
        [BIN / "voxeld", "--check-data", reply["path"]], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    config = {"data_dir": reply["path"]}
    with running(tmp_path / "new", config) as daemon, Maps(daemon) as maps:
        info = maps.call("map_get", name="a").map
        # What came after the backup is lost, and clients can see that.
        assert info.generation > before.generation and info.erase_epoch > before.erase_epoch
        export = maps.call("map_export", name="a")
        assert (export.indices, export.keys) == (kept.indices, kept.keys)
        assert list(export.values) == list(kept.values)
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "voxeld.db")) as database:
        rowid, data = database.execute(
            "select id, bytes from records order by id desc limit 1"
        ).fetchone()
        database.execute(
            "update records set bytes = ? where id = ?",
            (data[:-1] + bytes([data[-1] ^ 1]), rowid),
        )
        database.commit()
    checked = subprocess.run(
        [BIN / "voxeld", "--check-data", tmp_path / "data"], capture_output=True, text=True
    )
    assert checked.returncode == 1 and "loss: " in checked.stdout, checked.stdout
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        info = maps.call("map_get", name="a").map
        assert info.generation > before.generation and info.erase_epoch > before.erase_epoch
        check_export(maps, "a", oracle)
        change(maps, oracle, rng, "a")
        after = info_of(maps, "a")
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert info_of(maps, "a") == after
        check_export(maps, "a", oracle)


def test_durable_over_http_in_python_and_voxelctl(tmp_path: Path) -> None:
    body = {"name": "web", "durable": True, "fsync": "MAP_FSYNC_OFF"}
    with running(tmp_path) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        made = http_call(daemon, "POST", "/v1/map_create", body)
        assert made.status == 200 and made.json()["map"]["durable"] is True, made.body
        seen = client.map_create(
            "seen", {"count": np.uint64}, durable="everysec", journal_max_bytes=100000
        )
        info = seen.info()
        assert (info.durable, info.journal_max_bytes) == ("everysec", 100000)
        seen.insert(np.arange(9, dtype=np.int32).reshape(-1, 3))
        assert client.map_create("not").info().durable is None
        for wrong in ({"durable": "yes"}, {"journal_max_bytes": 5}):
            with pytest.raises(voxeld.InvalidArgument) as error:
                client.map_create("x", **wrong)
            assert error.value.field == next(iter(wrong))
        made = ctl_json(
            daemon, "create", "tools", "--durable", "always", "--journal-max-bytes", "5000"
        )
        assert made["map"]["durable"] == "always" and made["map"]["journal_max_bytes"] == 5000
        assert ctl_json(daemon, "info", "not")["durable"] is None
        ctl(daemon, "create", "x", "--journal-max-bytes", "5000", code=2)
        ctl(daemon, "create", "x", "--durable", "always", "--ttl", "9", code=2)
        ctl(daemon, "create", "x", "--durable", "sometimes", code=2)
        status = http_call(daemon, "GET", "/v1/status").json()
        assert (int(status["nMaps"]), int(status["nDurableMaps"])) == (4, 3)
    with running(tmp_path) as daemon, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        assert [m.name for m in client.maps()] == ["seen", "tools", "web"]
        back = client.map("seen")
        assert back.info().n_entries == 3 and back.info().erase_epoch == info.erase_epoch
        assert back.find(np.array([[3, 4, 5]], np.int32)).indices.tolist() == [1]
        assert "durable     fsync always" in ctl(daemon, "info", "tools").stdout
        ctl(daemon, "drop", "tools")


def test_repair_brings_back_a_map_whose_row_is_damaged(tmp_path: Path) -> None:
    """A damaged catalogue is restored from the snapshot file, which describes its map; a map
    without one is set aside."""
    rng = np.random.default_rng(9)
    oracle = Oracle(**ZEROS)
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        create(maps, "a", journal_max_bytes=20000)
        create(maps, "bare")
        create(maps, "whole")
        maps.call("map_insert", name="bare", keys=tensor_of(np.zeros((1, 3), np.int32)))
        while not list((tmp_path / "data" / "snapshots").glob("*.vxs")):
            change(maps, oracle, rng, "a")
        change(maps, oracle, rng, "a")
        before = {m.name: m for m in maps.call("map_list").maps}
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "voxeld.db")) as database:
        for name in ("map:a", "map:bare"):
            database.execute("update families set spec = x'00' where name = ?", (name,))
        database.commit()
    data = tmp_path / "data"
    done = subprocess.run([BIN / "voxeld", "--repair-data", data], capture_output=True, text=True)
    assert "map:a" in done.stdout, (done.stdout, done.stderr)
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        assert [m.name for m in maps.call("map_list").maps] == ["a", "whole"]
        info = maps.call("map_get", name="a").map
        assert info.generation > before["a"].generation
        assert info.journal_max_bytes == 20000 and info.n_entries == before["a"].n_entries
        check_export(maps, "a", oracle)
        change(maps, oracle, rng, "a")
        create(maps, "bare")
    with running(tmp_path) as daemon, Maps(daemon) as maps:
        check_export(maps, "a", oracle)
        assert maps.call("map_get", name="a").map.generation == info.generation
