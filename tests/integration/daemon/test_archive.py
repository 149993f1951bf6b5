# SPDX-License-Identifier: Apache-2.0
"""The archive: a backup and archived changes make the data directory as of a version or a time;
what is missing or damaged is named; an archive that takes nothing holds up nobody."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import BIN, SLOW, Daemon, common_pb2, http_call, running, scene_pb2, wait_until
from maps import SPEC, Maps
from scenes import Scenes, ball, points, spec

N_ROUNDS = 4
N_EDITS = 5  # of a round; each round is a segment at least


def config(directory: Path, limits: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "archive_dir": str(directory / "archive"),
        "archive_seconds": 1,
        "limits": limits or {},
    }


def metric(daemon: Daemon, name: str) -> float:
    text = http_call(daemon, "GET", "/metrics").body.decode()
    match = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    assert match is not None, name
    return float(match[1])


def wait_archived(daemon: Daemon) -> None:
    wait_until(
        lambda: metric(daemon, "voxeld_archive_waiting_bytes") == 0, 30, "all is archived"
    )


def backup(daemon: Daemon, name: str) -> Path:
    key = {"Idempotency-Key": f"{time.time_ns()}"}
    reply = http_call(daemon, "POST", "/v1/backup", {"name": name}, key)
    assert reply.status == 200, reply.body
    return Path(reply.json()["path"])


def make_yard(scenes: Scenes, name: str = "yard") -> None:
    durability = scene_pb2.SceneDurability(
        fsync="SCENE_FSYNC_ALWAYS", journal_max_bytes=300
    )
    scenes.call("scene_create", name=name, spec=spec(6, bits=4), durability=durability)


def edit(scenes: Scenes, i: int, name: str = "yard") -> int:
    x = 0.11 * (i % 23) - 1.2
    reply = scenes.edit(name, ball((x, 0.07 * (i % 41) - 1.4, 0.3), 0.4, material=i % 9))
    return int(reply.change.version)


def digest(scenes: Scenes, name: str = "yard") -> str:
    return str(scenes.call("scene_get", name=name).scene.digest)


def now_text() -> str:
    """A moment that is after all that was answered, and before what comes."""
    time.sleep(0.01)
    text = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
    time.sleep(0.01)
    return text


class Past:
    """What a directory went through: its backup, and digests by version and by time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.archive = directory / "archive"
        self.by_version: dict[int, str] = {}
        self.by_time: dict[str, tuple[str, bool]] = {}  # and whether "garden" is there
        daemon = Daemon(directory, config(directory))
        try:
            with Scenes(daemon) as scenes:
                self.begin(daemon, scenes)
        finally:
            daemon.signal(signal.SIGKILL)
            daemon.process.wait(60)

    def begin(self, daemon: Daemon, scenes: Scenes) -> None:
        make_yard(scenes)
        for i in range(7):
            self.edit(scenes, i)
        self.backup = backup(daemon, "monday")
        for i in range(N_ROUNDS):
            self.go_on(daemon, scenes, i)
        assert metric(daemon, "voxeld_archive_segments_total") >= N_ROUNDS
        assert metric(daemon, "voxeld_archive_available") == 1
        assert daemon.find("snapshot written") is not None
        self.edit(scenes, 99)  # the next start archives it

    def go_on(self, daemon: Daemon, scenes: Scenes, i: int) -> None:
        """A round of edits, archived; "garden" comes in the second and goes in the third."""
        for j in range(N_EDITS):
            self.edit(scenes, 10 + N_EDITS * i + j)
        if i == 1:
            make_yard(scenes, "garden")
            edit(scenes, 1, "garden")
        if i == 2:
            scenes.call("scene_drop", name="garden")
        wait_archived(daemon)
        self.by_time[now_text()] = (digest(scenes), i == 1)

    def edit(self, scenes: Scenes, i: int) -> None:
        version = edit(scenes, i)
        self.by_version[version] = digest(scenes)

    def segments(self) -> list[Path]:
        return sorted(self.archive.glob("*.vxa"))

    def copy_archive(self, to: Path) -> Path:
        shutil.copytree(self.archive, to)
        return to


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    made = Past(tmp_path_factory.mktemp("past"))
    with running(made.directory, config(made.directory)) as daemon, Scenes(daemon) as scenes:
        wait_archived(daemon)
        assert digest(scenes) == made.by_version[max(made.by_version)]
    yield made


def restore(
    backup_path: Path, archive: Path, until: str, to: Path, expect: int = 0
) -> str:
    done = subprocess.run(
        [BIN / "voxelctl", "restore", backup_path, to, "--archive", archive, "--until", until],
        capture_output=True, text=True, timeout=60 * SLOW, env=Daemon.environment(),
        check=False,
    )  # fmt: skip
    text = done.stdout + done.stderr
    assert done.returncode == expect, text
    if expect != 0:
        assert not to.exists()
        assert not (to.parent / f".{to.name}.new").exists()
    return text


def check_restored(tmp_path: Path, data: Path, want: str) -> set[str]:
    """What the data hold, checked by the tool and by a daemon that goes on from them."""
    done = subprocess.run(
        [BIN / "voxeld", "--check-data", data], capture_output=True, text=True, check=False,
        timeout=60 * SLOW, env=Daemon.environment(),
    )  # fmt: skip
    assert done.returncode == 0, done
    with running(tmp_path / "run", {"data_dir": str(data)}) as daemon, Scenes(daemon) as scenes:
        assert digest(scenes) == want
        names = {s.name for s in scenes.call("scene_list").scenes}
        edit(scenes, 5)
    return names


def test_restored_until_each_version(past: Past, tmp_path: Path) -> None:
    versions = sorted(past.by_version)
    for version in [versions[7], versions[12], versions[-1]]:
        data = tmp_path / f"v{version}"
        restore(past.backup, past.archive, f"yard@{version}", data)
        check_restored(tmp_path, data, past.by_version[version])


def test_restored_until_a_time(past: Past, tmp_path: Path) -> None:
    for i, (text, (want, has_garden)) in enumerate(list(past.by_time.items())[:3]):
        data = tmp_path / f"t{i}"
        restore(past.backup, past.archive, text, data)
        names = check_restored(tmp_path, data, want)
        assert ("garden" in names) == has_garden


def test_restored_until_the_end_has_what_a_kill_left(past: Past, tmp_path: Path) -> None:
    text = restore(past.backup, past.archive, "end", tmp_path / "end")
    assert "changes after the backup" in text
    check_restored(tmp_path, tmp_path / "end", past.by_version[max(past.by_version)])


def test_moments_that_cannot_be_reached_are_refused(past: Past, tmp_path: Path) -> None:
    to = tmp_path / "to"
    assert "older backup" in restore(past.backup, past.archive, "yard@3", to, 2)
    assert "older backup" in restore(past.backup, past.archive, "2001-01-01T00:00:00Z", to, 2)
    text = restore(past.backup, past.archive, "yard@99999", to, 2)
    assert "no version 99999 of the scene yard" in text
    text = restore(past.backup, past.archive, "2150-01-01T00:00:00Z", to, 2)
    assert "ends before that time" in text
    # It says up to where, and that is true.
    until = re.search(r"can be restored until (\S+)", text)
    assert until is not None
    restore(past.backup, past.archive, until[1], to)
    check_restored(tmp_path, to, past.by_version[max(past.by_version)])
    for wrong in ("", "yesterday", "yard@", "yard@x", "2026-13-01T00:00:00Z", "@4"):
        assert "SCENE@VERSION" in restore(past.backup, past.archive, wrong, tmp_path / "w", 2)


def test_missing_segment_is_named(past: Past, tmp_path: Path) -> None:
    archive = past.copy_archive(tmp_path / "archive")
    gone = sorted(archive.glob("*.vxa"))[-2]
    gone.unlink()
    text = restore(past.backup, archive, "end", tmp_path / "to", 2)
    assert f"{gone.name} is missing" in text
    until = re.search(r"can be restored until (\S+)", text)
    assert until is not None
    restore(past.backup, archive, until[1], tmp_path / "to")
    # What comes before the hole is not in its way.
    first = list(past.by_time.items())[0]
    restore(past.backup, archive, first[0], tmp_path / "first")
    check_restored(tmp_path, tmp_path / "first", first[1][0])


@pytest.mark.parametrize("where", [0.0, 0.3, 0.7, 0.999])
def test_flipped_bit_is_named(past: Past, tmp_path: Path, where: float) -> None:
    archive = past.copy_archive(tmp_path / "archive")
    hurt = sorted(archive.glob("*.vxa"))[-1]
    data = bytearray(hurt.read_bytes())
    data[int(where * len(data))] ^= 16
    hurt.write_bytes(data)
    text = restore(past.backup, archive, "end", tmp_path / "to", 2)
    assert f"{hurt.name} is damaged at byte" in text
    until = re.search(r"can be restored until (\S+)", text)
    assert until is not None
    restore(past.backup, archive, until[1], tmp_path / "to")


def test_truncated_segment_is_named(past: Past, tmp_path: Path) -> None:
    archive = past.copy_archive(tmp_path / "archive")
    hurt = sorted(archive.glob("*.vxa"))[-1]
    hurt.write_bytes(hurt.read_bytes()[:-9])
    assert f"{hurt.name} is damaged" in restore(past.backup, archive, "end", tmp_path / "t", 2)


def test_other_histories_are_not_mixed(past: Past, tmp_path: Path) -> None:
    """A daemon goes on from a restored directory in the same archive: its changes are another
    line, and neither backup takes the other's."""
    archive = past.copy_archive(tmp_path / "archive")
    version = sorted(past.by_version)[10]
    data = tmp_path / "data"
    restore(past.backup, archive, f"yard@{version}", data)
    over = {"archive_dir": str(archive), "archive_seconds": 1, "data_dir": str(data)}
    with running(tmp_path / "run", over) as daemon, Scenes(daemon) as scenes:
        other = backup(daemon, "other")
        for i in range(3):
            edit(scenes, 40 + i)
        wait_archived(daemon)
        want = digest(scenes)
    restore(past.backup, archive, "end", tmp_path / "old")
    check_restored(tmp_path, tmp_path / "old", past.by_version[max(past.by_version)])
    restore(other, archive, "end", tmp_path / "new")
    check_restored(tmp_path, tmp_path / "new", want)


def test_run_without_an_archive_ends_its_line(tmp_path: Path) -> None:
    with running(tmp_path, config(tmp_path)) as daemon, Scenes(daemon) as scenes:
        make_yard(scenes)
        old = backup(daemon, "old")
        edit(scenes, 1)
        want = digest(scenes)
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        edit(scenes, 2)
        bare = backup(daemon, "bare")
    with running(tmp_path, config(tmp_path)) as daemon, Scenes(daemon) as scenes:
        line = next(e for e in daemon.log if "archive begins anew" in e.get("msg", ""))
        assert line["level"] == "warning"
        edit(scenes, 3)
    text = restore(bare, tmp_path / "archive", "end", tmp_path / "x", 2)
    assert "without archive_dir" in text
    restore(old, tmp_path / "archive", "end", tmp_path / "to")
    check_restored(tmp_path, tmp_path / "to", want)


def test_archive_that_takes_nothing_holds_up_nobody(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_text("where the folder should be")
    with running(tmp_path, config(tmp_path)) as daemon, Scenes(daemon) as scenes:
        make_yard(scenes)
        saved = backup(daemon, "first")
        for i in range(5):
            edit(scenes, i)
        wait_until(
            lambda: metric(daemon, "voxeld_archive_available") == 0, 20, "it says so"
        )
        assert metric(daemon, "voxeld_archive_waiting_bytes") > 0
        assert metric(daemon, "voxeld_archive_failed_total") >= 1
        ready = http_call(daemon, "GET", "/v1/health/ready")
        assert ready.status == 200 and ready.json()["degraded"] == ["archive"]
        assert http_call(daemon, "GET", "/v1/health/ready?for=write").status == 200
        edit(scenes, 9)
        want = digest(scenes)
        archive.unlink()
        wait_archived(daemon)
        assert metric(daemon, "voxeld_archive_available") == 1
        assert metric(daemon, "voxeld_archive_breaks_total") == 0
        assert "degraded" not in http_call(daemon, "GET", "/v1/health/ready").json()
    restore(saved, archive, "end", tmp_path / "to")
    check_restored(tmp_path, tmp_path / "to", want)


def test_archive_given_up_is_told_and_begins_anew(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_text("where the folder should be")
    over = config(tmp_path, limits={"archive_bytes": 1 << 20})
    random = np.random.default_rng(1)
    with running(tmp_path, over) as daemon, Scenes(daemon) as scenes:
        make_yard(scenes)
        old = backup(daemon, "old")
        for _ in range(100):
            cloud = random.uniform(-3, 3, (30000, 3)).astype(np.float32)
            materials = random.integers(1, 15, 30000).astype(np.uint8)
            scenes.edit("yard", points(cloud, materials=materials))
            if metric(daemon, "voxeld_archive_breaks_total") > 0:
                break
        assert metric(daemon, "voxeld_archive_breaks_total") >= 1
        assert metric(daemon, "voxeld_archive_waiting_bytes") <= 1 << 20
        assert any("the archive has a hole" in e.get("msg", "") for e in daemon.log)
        archive.unlink()
        wait_archived(daemon)
        new = backup(daemon, "new")
        edit(scenes, 3)
        want = digest(scenes)
    restore(new, archive, "end", tmp_path / "to")
    check_restored(tmp_path, tmp_path / "to", want)
    restore(old, archive, "yard@9999", tmp_path / "x", 2)


def test_saved_maps_are_in_backups_and_restored_with_a_quota(tmp_path: Path) -> None:
    over = config(tmp_path, limits={"saved_bytes": 20000})
    with running(tmp_path, over) as daemon, Maps(daemon) as maps, Scenes(daemon) as scenes:
        maps.call("map_create", name="m", spec=SPEC, capacity=64)
        make_yard(scenes)
        first = maps.call("map_save", name="m", file="one")
        saved = backup(daemon, "with")
        file = tmp_path / "data" / "maps" / "one.vxm"
        assert (saved / "maps" / "one.vxm").read_bytes() == file.read_bytes()
        # Files fit until the limit; one that is replaced does not count.
        n_fit = 20000 // first.n_bytes
        for i in range(n_fit - 1):
            maps.call("map_save", name="m", file=f"more{i}")
        maps.call("map_save", name="m", file="one")
        message = maps.fails(
            "map_save", common_pb2.RESOURCE_EXHAUSTED, "file", name="m", file="last"
        )
        assert f"last.vxm has {first.n_bytes} bytes" in message
        assert f"{n_fit} saved files of {n_fit * first.n_bytes}" in message
        assert "limits.saved_bytes is 20000" in message
        assert not (tmp_path / "data" / "maps" / "last.vxm").exists()
        status = http_call(
            daemon, "POST", "/v1/backup_drop", {"name": "with"}, {"Idempotency-Key": "d"}
        )
        assert status.status == 200 and not saved.exists()
        saved = backup(daemon, "again")
    restore(saved, tmp_path / "archive", "end", tmp_path / "to")
    assert (tmp_path / "to" / "maps" / "one.vxm").read_bytes() == file.read_bytes()
    over = {"data_dir": str(tmp_path / "to")}
    with running(tmp_path / "run", over) as daemon, Maps(daemon) as maps:
        assert maps.call("map_load", name="m", file="one").map.name == "m"


def test_restore_needs_all_its_options(tmp_path: Path) -> None:
    for words in (
        ["voxeld", "--restore-data", "x"],
        ["voxeld", "--until", "end"],
        ["voxelctl", "restore", "x", "y"],
        ["voxelctl", "restore", "x", "--archive", "a", "--until", "end"],
    ):
        done = subprocess.run(
            [BIN / words[0], *words[1:]], capture_output=True, text=True, check=False,
            env=Daemon.environment(),
        )  # fmt: skip
        assert done.returncode == 2, done
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"archive_dir": str(tmp_path)}))
    done = subprocess.run(
        [BIN / "voxeld", "--check-config", bad], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "archive_dir" in done.stdout + done.stderr
