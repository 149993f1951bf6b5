# SPDX-License-Identifier: Apache-2.0
"""Damage of the data directory: what was acknowledged and is gone is reported, never taken back
silently, and a start that is refused names the command that mends."""

from __future__ import annotations

import json
import random
import re
import resource
import shlex
import signal
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from harness import (
    BIN,
    SLOW,
    SOURCE,
    Daemon,
    common_pb2,
    http_call,
    running,
    scene_pb2,
    wait_until,
)
from maps import Maps
from scenes import Scenes, ball, spec

N_EDITS = 40
WAL_HEAD, FRAME = 32, 4096 + 24


def durable(journal_max_bytes: int = 0) -> scene_pb2.SceneDurability:
    return scene_pb2.SceneDurability(
        fsync="SCENE_FSYNC_ALWAYS", journal_max_bytes=journal_max_bytes
    )


def make(directory: Path, journal_max_bytes: int = 0) -> Any:
    """A directory whose last changes are in the WAL alone, as a kill leaves it. What the scene
    was then."""
    daemon = Daemon(directory)
    with Scenes(daemon) as scenes:
        scenes.call(
            "scene_create",
            name="yard",
            spec=spec(6, bits=4, track_free=True),
            durability=durable(journal_max_bytes),
        )
        for i in range(N_EDITS):
            scenes.edit("yard", ball((0.05 * i, 0, 0), 0.5, material=i % 9))
        if journal_max_bytes > 0:
            wait_until(lambda: daemon.find("snapshot written"), 20, "a snapshot")
        info = scenes.call("scene_get", name="yard").scene
    daemon.signal(signal.SIGKILL)
    daemon.process.wait(60)
    return info


def metric(daemon: Daemon, name: str) -> float:
    text = http_call(daemon, "GET", "/metrics").body.decode()
    match = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    assert match is not None, name
    return float(match[1])


def refused(directory: Path) -> list[str]:
    """A start that must fail; the command that its log names."""
    done = subprocess.run(
        [BIN / "voxeld", "--config", directory / "voxeld.json"],
        capture_output=True,
        text=True,
        timeout=60 * SLOW,
        env=Daemon.environment(),
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    line = next(x for x in lines if x["msg"] == "cannot bring back the scenes")
    return shlex.split(line["repair"])


def tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "voxeld", *words],
        capture_output=True,
        text=True,
        timeout=60 * SLOW,
        env=Daemon.environment(),
        check=False,
    )


def mend(command: list[str]) -> str:
    assert command[0] == "voxeld"
    done = tool(*command[1:])
    assert done.returncode in (0, 1), done
    return done.stdout


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def check_loss_is_reported(directory: Path, before: Any) -> None:
    """The check and the start both say what is missing, and the scene has another generation."""
    checked = tool("--check-data", directory / "data")
    assert checked.returncode == 1, checked
    assert "acknowledged changes before it" in checked.stdout
    assert f"voxeld --repair-data {directory / 'data'}" in checked.stdout
    with running(directory) as daemon, Scenes(daemon) as scenes:
        line = daemon.find("the journal ends before changes that were acknowledged")
        assert line is not None
        names = {s.name for s in scenes.call("scene_list").scenes}
        lost = before.version
        if "yard" in names:
            now = scenes.call("scene_get", name="yard").scene
            lost = before.version - now.version
            assert lost > 0
            assert now.generation > before.generation
            version = scenes.edit("yard", ball((0, 0, 0), 1)).change.version
            assert version == now.version + 1
        assert int(line["changes"]) == lost
        assert metric(daemon, "voxeld_journal_lost_total") == lost
    # The loss is reported once.
    with running(directory) as daemon, Scenes(daemon) as scenes:
        assert daemon.find("the journal ends before changes that were acknowledged") is None
        assert metric(daemon, "voxeld_journal_lost_total") == 0
        if "yard" in names:
            again = scenes.call("scene_get", name="yard").scene
            assert (again.version, again.generation) != (version, before.generation)
            assert again.version == version


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bit_of_the_wal_is_a_loss_that_is_reported(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    before = make(tmp_path)
    wal = tmp_path / "data" / "voxeld.db-wal"
    n_frames = (wal.stat().st_size - WAL_HEAD) // FRAME
    frame = rng.randrange(n_frames // 4, n_frames * 3 // 4)
    flip(wal, WAL_HEAD + frame * FRAME + rng.randrange(FRAME), rng.randrange(8))
    check_loss_is_reported(tmp_path, before)


def test_missing_wal_is_a_loss_that_is_reported(tmp_path: Path) -> None:
    before = make(tmp_path)
    (tmp_path / "data" / "voxeld.db-wal").unlink()
    check_loss_is_reported(tmp_path, before)


def test_whole_directory_is_no_loss(tmp_path: Path) -> None:
    before = make(tmp_path)
    assert tool("--check-data", tmp_path / "data").returncode == 0
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        now = scenes.call("scene_get", name="yard").scene
        assert (now.version, now.generation) == (before.version, before.generation)
        assert metric(daemon, "voxeld_journal_lost_total") == 0
        assert metric(daemon, "voxeld_journal_available") == 1


def test_one_flipped_bit_of_the_mark_harms_nothing(tmp_path: Path) -> None:
    before = make(tmp_path)
    for at in (20, 4096 + 20):
        data = (tmp_path / "data" / "voxeld.mark").read_bytes()
        flip(tmp_path / "data" / "voxeld.mark", at)
        with running(tmp_path) as daemon, Scenes(daemon) as scenes:
            now = scenes.call("scene_get", name="yard").scene
            assert (now.version, now.generation) == (before.version, before.generation)
        (tmp_path / "data" / "voxeld.mark").write_bytes(data)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_mark_that_is_gone_is_refused_until_it_is_mended(
    tmp_path: Path, is_damaged: bool
) -> None:
    before = make(tmp_path)
    mark = tmp_path / "data" / "voxeld.mark"
    if is_damaged:
        mark.write_bytes(bytes(mark.stat().st_size))
    else:
        mark.unlink()
    checked = tool("--check-data", tmp_path / "data")
    assert checked.returncode == 1 and "voxeld --repair-data" in checked.stdout
    assert "voxeld.mark" in mend(refused(tmp_path))
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        now = scenes.call("scene_get", name="yard").scene
        assert now.version == before.version
        assert now.generation > before.generation  # nobody knows what is missing
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert scenes.call("scene_get", name="yard").scene.generation == now.generation


@pytest.mark.parametrize("has_mark", [False, True])
def test_missing_database_beside_snapshots_is_refused(tmp_path: Path, has_mark: bool) -> None:
    before = make(tmp_path, 500)
    data = tmp_path / "data"
    for name in ("voxeld.db", "voxeld.db-wal"):
        (data / name).unlink()
    if not has_mark:
        (data / "voxeld.mark").unlink()
    files = sorted((data / "snapshots").glob("*.vxs"))
    assert files
    checked = tool("--check-data", data)
    assert checked.returncode == 2 and "voxeld --repair-data" in checked.stderr
    command = refused(tmp_path)
    assert sorted((data / "snapshots").glob("*.vxs")) == files
    assert not (data / "voxeld.db").exists()
    assert "missing" in mend(command)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        now = scenes.call("scene_get", name="yard").scene
        assert 1 < now.version <= before.version
        assert now.generation > before.generation


def test_missing_database_beside_a_mark_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    for name in ("voxeld.db", "voxeld.db-wal"):
        (tmp_path / "data" / name).unlink()
    mend(refused(tmp_path))
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert not scenes.call("scene_list").scenes


def test_directory_of_the_first_release_loads_as_before(tmp_path: Path) -> None:
    """Made by 0.1.0 and killed: scenes with a snapshot file, a branch and a name, and a map. It has
    no mark, and gets one."""
    with tarfile.open(SOURCE / "tests" / "data" / "data_dir_v1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "data_dir_v1").rename(tmp_path / "data")
    expected = json.loads((tmp_path / "data" / "expected.json").read_text())
    size = expected.pop("counts")
    for _ in range(2):
        with running(tmp_path) as daemon, Scenes(daemon) as scenes, Maps(daemon) as maps:
            for name, was in expected.items():
                info = scenes.call("scene_get", name=name).scene
                assert info.version == was["version"]
                assert info.n_occupied == was["n_occupied"]
                assert str(info.digest) == was["digest"]
                assert str(info.generation) == was["generation"]
                log = scenes.call("scene_log", name=name, limit=1000)
                assert len(log.versions) == was["n_versions"]
            info = maps.call("map_get", name="counts").map
            assert info.n_entries == size["size"]
            assert str(info.generation) == size["generation"]
            assert metric(daemon, "voxeld_journal_lost_total") == 0
    mark = tmp_path / "data" / "voxeld.mark"
    assert mark.stat().st_size == 8192
    mark.unlink()
    refused(tmp_path)


def limit_files(pid: int, n_bytes: int) -> None:
    """The files of a process grow no further: what a full disk is to it."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def ready(daemon: Daemon, purpose: str = "") -> tuple[int, Any]:
    reply = http_call(daemon, "GET", "/v1/health/ready" + purpose)
    return reply.status, reply.json()


def check_degraded(daemon: Daemon, scenes: Scenes, digest: str) -> None:
    """Reads are served, and everybody who asks learns that changes are refused."""
    assert ready(daemon) == (
        200,
        {"ready": True, "state": "serving", "degraded": ["journal"]},
    )
    status, body = ready(daemon, "?for=write")
    assert status == 503 and not body["ready"]
    assert metric(daemon, "voxeld_journal_available") == 0
    assert scenes.call("scene_get", name="yard").scene.digest == digest


def test_full_disk_serves_reads_and_says_so(tmp_path: Path) -> None:
    before = make(tmp_path)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert ready(daemon, "?for=write") == (200, {"ready": True, "state": "serving"})
        limit_files(daemon.process.pid, 1)
        response = scenes.send("scene_edit", name="yard", operations=[ball((0, 0, 0), 1)])
        assert response.header.code in (common_pb2.UNAVAILABLE, common_pb2.RESOURCE_EXHAUSTED)
        check_degraded(daemon, scenes, before.digest)
        limit_files(daemon.process.pid, resource.RLIM_INFINITY)
        wait_until(lambda: ready(daemon, "?for=write")[0] == 200, 20, "it can write again")
        scenes.edit("yard", ball((0, 0, 0), 1))
        assert metric(daemon, "voxeld_journal_available") == 1


def test_start_on_a_full_disk_serves_reads(tmp_path: Path) -> None:
    before = make(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The daemon inherits it; nobody else writes meanwhile but its config, which is smaller.
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        daemon = Daemon(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with Scenes(daemon) as scenes:
        check_degraded(daemon, scenes, before.digest)
        limit_files(daemon.process.pid, resource.RLIM_INFINITY)
        wait_until(lambda: ready(daemon, "?for=write")[0] == 200, 20, "it can write again")
        scenes.edit("yard", ball((0, 0, 0), 1))
        version = scenes.call("scene_get", name="yard").scene.version
    daemon.signal(signal.SIGKILL)
    daemon.process.wait(60)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        now = scenes.call("scene_get", name="yard").scene
        assert (now.version, now.generation) == (version, before.generation)


def test_damaged_database_is_refused_with_the_command_that_mends(tmp_path: Path) -> None:
    make(tmp_path)
    database = tmp_path / "data" / "voxeld.db"
    data = bytearray(database.read_bytes())
    data[:100] = bytes(100)
    database.write_bytes(data)
    looked = subprocess.run(
        [BIN / "voxelctl", "scene", "repair", "--dry-run", tmp_path / "data"],
        capture_output=True,
        text=True,
        timeout=60 * SLOW,
        check=False,
    )
    assert looked.returncode == 1, looked
    assert f"voxeld --repair-data {tmp_path / 'data'}" in looked.stdout
    mend(refused(tmp_path))
    with running(tmp_path):
        pass
