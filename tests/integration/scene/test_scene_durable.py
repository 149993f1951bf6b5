# SPDX-License-Identifier: Apache-2.0
"""Durable scenes: what was answered exists after any end of the process, with its history and the
outcomes of requests, from the journal or from a snapshot file."""

from __future__ import annotations

import contextlib
import os
import random
import re
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
from harness import (
    BIN,
    HAS_PAPER,
    OK,
    Daemon,
    common_pb2,
    http_call,
    running,
    scene_pb2,
    tensor_of,
    wait_until,
)
from scenes import Scenes, ball, box, spec

DEPTH = 6
SIDE = 1 << DEPTH
FSYNCS = ["SCENE_FSYNC_ALWAYS", "SCENE_FSYNC_EVERYSEC", "SCENE_FSYNC_OFF"]


def durable(fsync: str = FSYNCS[0], journal_max_bytes: int = 0) -> scene_pb2.SceneDurability:
    return scene_pb2.SceneDurability(fsync=fsync, journal_max_bytes=journal_max_bytes)


def create(scenes: Scenes, name: str, **fields: Any) -> None:
    fields = {"durability": durable(), **fields}
    scenes.call("scene_create", name=name, spec=spec(DEPTH, bits=4, track_free=True), **fields)


def random_operation(rng: np.random.Generator) -> scene_pb2.SceneOperation:
    a, b = rng.uniform(-3.2, 3.2, (2, 3))
    action = "SCENE_" + str(rng.choice(["FILL", "FILL", "ERASE", "SET_FREE", "PAINT"]))
    kind = rng.integers(0, 3)
    if kind == 0:
        return ball(a, float(rng.uniform(0.1, 2)), action, material=int(rng.integers(0, 9)))
    if kind == 1:
        low, high = np.minimum(a, b), np.maximum(a, b) + 0.1
        return box(low, high, action, material=int(rng.integers(0, 9)))
    shape = scene_pb2.ScenePoints(
        points=tensor_of(rng.integers(0, SIDE, (400, 3)).astype(np.int32)),
        materials=tensor_of(rng.integers(0, 15, 400).astype(np.uint8)),
    )
    return scene_pb2.SceneOperation(points=shape)


def picture(scenes: Scenes, names: list[str]) -> dict[str, Any]:
    """Reads everything that must survive, except what collections change."""
    all_of: dict[str, Any] = {}
    for name in names:
        log = scenes.call("scene_log", name=name, limit=10000)
        info = scenes.call("scene_get", name=name).scene
        digests = {
            v.version: scenes.call(
                "scene_get", name=name, at=scene_pb2.SceneAt(version=v.version)
            ).scene.digest
            for v in log.versions
        }
        kept = {
            s.name: scenes.call(
                "scene_get", name=name, at=scene_pb2.SceneAt(snapshot=s.name)
            ).scene.digest
            for s in log.snapshots
        }
        all_of[name] = (
            log.SerializeToString(deterministic=True),
            info.spec.SerializeToString(deterministic=True),
            info.retention.SerializeToString(),
            info.durability.SerializeToString(),
            (info.owner, info.created_ns, info.generation, info.n_sharing),
            digests,
            kept,
        )
    return all_of


def check_recovery_is_told(daemon: Daemon, n_families: int) -> None:
    """The log reports progress at once and then every second; the last line says what was
    restored."""
    first = daemon.find("bringing back scenes")
    last = daemon.find("scenes are back")
    assert first is not None and last is not None
    done = re.fullmatch(r"0 of (\d+) records, scene 1 of (\d+)", first["done"])
    assert done is not None and first["scene"] == "a"
    assert int(done[1]) > 0 and int(done[2]) == n_families
    replayed = re.fullmatch(r"(\d+), (\d+) records replayed", last["families"])
    assert replayed is not None and int(replayed[1]) == n_families
    assert int(replayed[2]) >= int(done[1])


def test_restart_brings_back_scenes_with_their_history(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        create(scenes, "a")
        create(scenes, "b", durability=durable(FSYNCS[1]))
        create(scenes, "short", retention=scene_pb2.SceneRetention(versions=3))
        scenes.call("scene_create", name="memory", spec=spec(5))
        for i in range(12):
            scenes.edit("a", random_operation(rng), random_operation(rng))
            scenes.edit("b", random_operation(rng))
            scenes.edit("short", random_operation(rng))
            if i == 3:
                scenes.call("scene_snapshot", name="short", snapshot="early")
                scenes.call("scene_snapshot", name="short", snapshot="gone")
        scenes.call("scene_undo", name="a")
        scenes.call("scene_undo", name="a", of_version=4)
        scenes.call("scene_redo", name="a")
        scenes.call("scene_branch", name="a", new_name="c", at=scene_pb2.SceneAt(version=7))
        scenes.edit("c", random_operation(rng))
        scenes.call("scene_branch", name="a", new_name="d")
        scenes.call("scene_drop", name="d")
        scenes.call("scene_snapshot", name="a", snapshot="now")
        scenes.call("scene_snapshot", name="short", snapshot="gone", drop=True)
        create(scenes, "dropped")
        scenes.call("scene_drop", name="dropped")
        names = ["a", "b", "c", "short"]
        before = picture(scenes, names)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        listed = [s.name for s in scenes.call("scene_list").scenes]
        assert listed == names
        assert picture(scenes, names) == before
        check_recovery_is_told(daemon, len({n for n in names if n != "c"}))
        # The scene takes further changes.
        version = scenes.call("scene_get", name="a").scene.version
        assert scenes.edit("a", random_operation(rng)).change.version == version + 1
        assert scenes.call("scene_undo", name="a").of_version == version + 1
        after = picture(scenes, names)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert picture(scenes, names) == after


def test_snapshot_file_shortens_the_start(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        create(scenes, "a", durability=durable(FSYNCS[2], 20000))
        scenes.call("scene_snapshot", name="a", snapshot="first")
        for i in range(120):
            scenes.edit("a", random_operation(rng))
            if i == 60:
                scenes.call("scene_branch", name="a", new_name="b")
        wait_until(lambda: daemon.find("snapshot written"), 20, "a snapshot")
        scenes.edit("b", random_operation(rng))
        before = picture(scenes, ["a", "b"])
    files = sorted((tmp_path / "data" / "snapshots").iterdir())
    assert 1 <= len(files) <= 2
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        back = daemon.find("scenes are back")
        assert back is not None and int(back["families"].split()[1]) < 110
        assert picture(scenes, ["a", "b"]) == before
    # A damaged snapshot file is not used, and nothing is lost: the start takes the older one, or
    # all records.
    newest = sorted((tmp_path / "data" / "snapshots").iterdir())[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 0x10
    newest.write_bytes(data)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert picture(scenes, ["a", "b"]) == before


# SIGKILLs in all. For more than the usual run: VOXELD_TEST_KILLS=200 pytest -k killed.
N_KILLS = int(os.environ.get("VOXELD_TEST_KILLS", "36"))


@pytest.mark.parametrize("fsync", FSYNCS)
def test_killed_at_any_moment_keeps_what_was_answered(tmp_path: Path, fsync: str) -> None:
    """Clients write while the daemon is killed again and again. Each repeats what got no answer,
    so everything happens exactly once."""
    n_clients, n_rounds = 4, max(1, round(N_KILLS / len(FSYNCS)))
    rng = random.Random(hash(fsync) % 1000)
    sent = [0] * n_clients
    answered: list[dict[int, int]] = [{} for _ in range(n_clients)]

    def write(daemon: Daemon, i: int, stop: threading.Event) -> None:
        with Scenes(daemon, f"client-{i}") as own:
            while not stop.is_set():
                k = sent[i]
                at = (i * 16 + k % 16, k // 16 % 64, k // 1024)
                low, high = at, tuple(c + 1 for c in at)
                try:
                    response = own.send(
                        "scene_edit",
                        sequence=k + 1,
                        name="s",
                        in_voxels=True,
                        operations=[box(low, high, material=i)],
                    )
                except pynng.exceptions.NNGException:
                    return
                if response.header.code != OK:
                    continue
                version = response.scene_edit.change.version
                assert response.scene_edit.change.n_added == 1, (i, k, response)
                answered[i][k] = version
                sent[i] = k + 1

    for round_ in range(n_rounds):
        daemon = Daemon(tmp_path)
        with Scenes(daemon) as scenes:
            if round_ == 0:
                create(
                    scenes,
                    "s",
                    durability=durable(fsync, 3000),
                    retention=scene_pb2.SceneRetention(versions=4096),
                )
            info = scenes.call("scene_get", name="s").scene
            n = sum(len(a) for a in answered)
            # A client that waited for an answer may have got one.
            assert n <= info.n_occupied <= n + n_clients
            assert info.version == info.n_occupied + 1
            for i in range(n_clients):
                for k, version in list(answered[i].items())[-3:]:
                    at = scene_pb2.SceneAt(version=version)
                    seen = scenes.call("scene_get", name="s", at=at).scene
                    assert seen.n_occupied == version - 1, (i, k)
        stop = threading.Event()
        threads = [
            threading.Thread(target=write, args=(daemon, i, stop)) for i in range(n_clients)
        ]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.02, 0.5))
        n_wanted = n + 20 // n_rounds + 1
        wait_until(
            lambda n=n_wanted: sum(len(a) for a in answered) >= n, 20, "something is changed"
        )
        daemon.signal(signal.SIGKILL)
        stop.set()
        daemon.process.wait(60)
        for thread in threads:
            thread.join()
    versions = [v for a in answered for v in a.values()]
    assert len(versions) == len(set(versions)) > 20
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        n_kept = min(len(versions), 4096)
        assert scenes.call("scene_verify", name="s").n_versions >= n_kept


def test_outcome_is_remembered_across_starts(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, Scenes(daemon, "robot") as scenes:
        create(scenes, "s")
        first = scenes.send(
            "scene_edit", sequence=77, name="s", operations=[box((0, 0, 0), (1, 1, 1))]
        )
        assert first.header.code == OK and not first.header.replayed
    with running(tmp_path) as daemon, Scenes(daemon, "robot") as scenes:
        again = scenes.send(
            "scene_edit", sequence=77, name="s", operations=[box((0, 0, 0), (1, 1, 1))]
        )
        assert again.header.replayed
        assert again.scene_edit.change == first.scene_edit.change
        assert scenes.call("scene_get", name="s").scene.version == 2
        other = scenes.send(
            "scene_edit", sequence=77, name="s", operations=[box((0, 0, 0), (1, 1, 2))]
        )
        assert other.header.code == common_pb2.INVALID_ARGUMENT


def test_many_writers_share_a_sync(tmp_path: Path) -> None:
    """Commits go in groups: replies of one client never wait for those of another one by one."""
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        create(scenes, "s")
        errors: list[BaseException] = []

        def write(i: int) -> None:
            try:
                with Scenes(daemon, f"w-{i}") as own:
                    for k in range(30):
                        at = (i, k, 0)
                        own.edit("s", box(at, (i + 1, k + 1, 1)), in_voxels=True)
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=write, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        info = scenes.call("scene_get", name="s").scene
        assert (info.n_occupied, info.version) == (480, 481)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        info = scenes.call("scene_get", name="s").scene
        assert (info.n_occupied, info.version) == (480, 481)


def test_durable_without_data_dir_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, {"data_dir": ""}) as daemon, Scenes(daemon) as scenes:
        state = common_pb2.FAILED_PRECONDITION
        fields = {"name": "s", "spec": spec(5)}
        scenes.fails("scene_create", state, "durability", durability=durable(), **fields)
        scenes.call("scene_create", **fields)


def test_wrong_durability_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        bad = scene_pb2.SceneDurability(fsync=7)
        invalid = common_pb2.INVALID_ARGUMENT
        scenes.fails(
            "scene_create", invalid, "durability.fsync", name="s", spec=spec(5), durability=bad
        )
        field = "durability.journal_max_bytes"
        bad = durable(FSYNCS[0], 1 << 63)
        scenes.fails("scene_create", invalid, field, name="s", spec=spec(5), durability=bad)
        create(scenes, "s")
        exists = common_pb2.ALREADY_EXISTS
        same = spec(DEPTH, bits=4, track_free=True)
        scenes.fails("scene_create", exists, "name", name="s", spec=same)
        create(scenes, "s")


def test_second_daemon_on_the_directory_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        binary = daemon.process.args[0]  # type: ignore[index]
        other = tmp_path / "other.json"
        other.write_text(daemon.config_path.read_text().replace("voxeld.sock", "other.sock"))
        second = subprocess.run(
            [binary, "--config", other], capture_output=True, text=True, timeout=60
        )
        assert second.returncode != 0
        assert str(daemon.process.pid) in second.stderr


def test_backup_is_a_directory_to_start_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        create(scenes, "a", durability=durable(FSYNCS[0], 4000))
        for _ in range(40):
            scenes.edit("a", random_operation(rng))
        scenes.call("scene_snapshot", name="a", snapshot="kept")
        before = picture(scenes, ["a"])
        generation = scenes.call("scene_get", name="a").scene.generation
        reply = http_call(daemon, "POST", "/v1/backup", {"name": "monday"}).json()
        for _ in range(10):
            scenes.edit("a", random_operation(rng))
        again = http_call(daemon, "POST", "/v1/backup", {"name": "monday"})
        assert again.status == 409, again.body
    backup = Path(reply["path"])
    assert backup == tmp_path / "data" / "backups" / "monday"
    checked = subprocess.run(
        [BIN / "voxeld", "--check-data", backup], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    config = {"data_dir": str(backup)}
    with running(tmp_path / "new", config) as daemon, Scenes(daemon) as scenes:
        after = picture(scenes, ["a"])
        info = scenes.call("scene_get", name="a").scene
        # What came after the backup is lost, and clients can see that by the generation.
        assert info.generation > generation
    assert after["a"][5:] == before["a"][5:]


def test_damaged_journal_loses_no_more_than_it_must(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        create(scenes, "a")
        create(scenes, "b")
        for _ in range(10):
            scenes.edit("a", random_operation(rng))
            scenes.edit("b", random_operation(rng))
        before = picture(scenes, ["a", "b"])
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "voxeld.db")) as database:
        tables = {
            name: [c[1] for c in database.execute(f"pragma table_info({name})")]
            for (name,) in database.execute("select name from sqlite_master where type='table'")
        }
        records = next(t for t in tables if "record" in t)
        blob = next(c for c in tables[records] if c in ("bytes", "blob", "body", "data"))
        rows = database.execute(f"select rowid, {blob} from {records} order by rowid").fetchall()
        rowid, data = rows[7]  # of the first family
        database.execute(
            f"update {records} set {blob} = ? where rowid = ?",
            (data[:-1] + bytes([data[-1] ^ 1]), rowid),
        )
        database.commit()
    checked = subprocess.run(
        [BIN / "voxeld", "--check-data", tmp_path / "data"], capture_output=True, text=True
    )
    assert checked.returncode == 1 and "loss: " in checked.stdout, checked.stdout
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        after = picture(scenes, ["a", "b"])
        assert after["b"] == before["b"]
        version = scenes.call("scene_get", name="a").scene.version
        assert 1 < version < 11
        kept = {v: d for v, d in before["a"][5].items() if v <= version}
        assert after["a"][5] == kept
        assert after["a"][4][2] > before["a"][4][2]  # the generation
        scenes.edit("a", random_operation(rng))
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert scenes.call("scene_get", name="a").scene.version == version + 1


@pytest.mark.skipif(not HAS_PAPER, reason="the build leaves the papers' stores out")
@pytest.mark.parametrize("store", ["atomic64", "ticket", "accel32", "accel8"])
@pytest.mark.parametrize("journal_max_bytes", [0, 4000])
def test_scenes_of_a_papers_store_come_back_in_the_arena(
    tmp_path: Path, store: str, journal_max_bytes: int
) -> None:
    """Neither journal nor snapshot files depend on stores: a build without the papers' stores
    loses nothing."""
    rng = np.random.default_rng(9)
    with running(tmp_path, {"scenes": {"store": store}}) as daemon, Scenes(daemon) as scenes:
        create(scenes, "a", durability=durable(FSYNCS[0], journal_max_bytes))
        for _ in range(30):
            scenes.edit("a", random_operation(rng))
        before = picture(scenes, ["a"])
    for now in ("arena", store):
        with running(tmp_path, {"scenes": {"store": now}}) as daemon, Scenes(daemon) as scenes:
            assert picture(scenes, ["a"]) == before
