# SPDX-License-Identifier: Apache-2.0
"""Backups are listed and removed; one that another daemon runs on stays."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import voxeld
from harness import BIN, SLOW, Daemon, http_call, running


def call(daemon: Daemon, method: str, **body: Any) -> tuple[int, dict[str, Any]]:
    key = {"Idempotency-Key": f"{time.time_ns()}"}
    reply = http_call(daemon, "POST", f"/v1/{method}", body, key)
    return reply.status, reply.json()


def voxelctl(daemon: Daemon, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [BIN / "voxelctl", "--url", daemon.ipc, "--timeout", f"{30 * SLOW}", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_backups_are_listed_and_removed(daemon: Daemon) -> None:
    folder = Path(daemon.config["data_dir"]) / "backups"
    status, listed = call(daemon, "backup_list")
    assert (status, set(listed)) == (200, {"nFreeBytes"})
    spec = {"voxelSizeM": 0.1, "depth": 6}
    assert call(daemon, "scene_create", name="kept", spec=spec, durability={})[0] == 200
    assert call(daemon, "map_create", name="saved", spec={})[0] == 200
    assert call(daemon, "map_save", name="saved")[0] == 200
    for name in ("monday", "friday"):
        assert call(daemon, "backup", name=name)[0] == 200
    # What is no backup is not listed: one that was interrupted, a file, a foreign folder.
    (folder / ".tuesday.new").mkdir()
    (folder / "notes").write_text("not a backup")
    (folder / "empty").mkdir()
    status, listed = call(daemon, "backup_list")
    assert status == 200
    assert [b["name"] for b in listed["backups"]] == ["friday", "monday"]
    for backup in listed["backups"]:
        path = folder / backup["name"]
        assert backup["path"] == str(path)
        assert int(backup["nDatabaseBytes"]) == (path / "voxeld.db").stat().st_size
        assert abs(int(backup["madeNs"]) / 1e9 - time.time()) < 600
        files = list((path / "snapshots").iterdir())
        assert int(backup.get("nSnapshots", 0)) == len(files)
        [saved] = (path / "maps").iterdir()
        n_bytes = saved.stat().st_size
        assert (int(backup["nFiles"]), int(backup["nFileBytes"])) == (1, n_bytes) and n_bytes > 0
    code, text = voxelctl(daemon, "backup", "--list")
    assert code == 0 and "monday" in text and "2 backups" in text, text
    assert voxelctl(daemon, "backup", "--drop", "friday")[0] == 0
    assert not (folder / "friday").exists()
    code, text = voxelctl(daemon, "--json", "backup", "--drop", "friday")
    assert code == 0 and not json.loads(text)["existed"], text
    assert voxelctl(daemon, "backup")[0] == 2
    assert voxelctl(daemon, "backup", "x", "--list")[0] == 2
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        assert [b.name for b in client.backups()] == ["monday"]
        assert client.backup_drop("monday")
        assert not client.backup_drop("monday")
        assert client.backups() == ()
    assert {p.name for p in folder.iterdir()} == {".tuesday.new", "notes", "empty"}


def test_names_lead_nowhere_else(daemon: Daemon) -> None:
    for name in ("", "..", "../snapshots", "a/b", ".monday.new", "A"):
        status, reply = call(daemon, "backup_drop", name=name)
        assert (status, reply["code"], reply["field"]) == (400, "INVALID_ARGUMENT", "name")


def test_backup_that_a_daemon_runs_on_stays(daemon: Daemon, directory: Path) -> None:
    assert call(daemon, "backup", name="used")[0] == 200
    path = Path(daemon.config["data_dir"]) / "backups" / "used"
    with running(directory, {"data_dir": str(path)}) as other:
        assert http_call(other, "GET", "/v1/scenes/kept").status == 200
        status, reply = call(daemon, "backup_drop", name="used")
        assert (status, reply["code"]) == (412, "FAILED_PRECONDITION"), reply
        assert http_call(other, "GET", "/v1/scenes/kept").status == 200
    assert path.exists()
    assert call(daemon, "backup_drop", name="used") == (200, {"existed": True})
    assert not path.exists()


def test_without_a_data_directory_there_are_none(directory: Path) -> None:
    with running(directory, {"data_dir": ""}) as daemon:
        assert call(daemon, "backup_list")[1]["code"] == "FAILED_PRECONDITION"
        assert call(daemon, "backup_drop", name="x")[1]["code"] == "FAILED_PRECONDITION"
