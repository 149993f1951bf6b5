# SPDX-License-Identifier: Apache-2.0
"""The audit log: who changed what, by the token's name and not by what a client says it is."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from pathlib import Path
from typing import Any

from harness import Daemon, RawReq, Rpc, common_pb2, http_call, running, wait_until
from scenes import LONG_MS, Scenes, ball, slow_edit, spec


def config_of(directory: Path, **tokens: str) -> dict[str, Any]:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "tokens"
    path.write_text(
        "".join(f"{n} {s} {hashlib.sha256(n.encode()).hexdigest()}\n" for n, s in tokens.items())
    )
    path.chmod(0o600)
    return {
        "auth": {"tokens_file": str(path)},
        "audit": {"file": str(directory / "audit")},
    }


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def lost(daemon: Daemon, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    text = http_call(daemon, "GET", "/metrics", None, headers).body.decode()
    found = re.search(r"^voxeld_audit_lost_total (\d+)$", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_audit_has_changes_and_refusals_by_the_name_of_the_token(directory: Path) -> None:
    config = config_of(directory, ann="read,write", eve="read")
    with running(directory, config) as daemon:
        with (
            Scenes(daemon, "ann-s-client", "ann") as ann,
            Scenes(daemon, "ann-s-client", "eve") as eve,
        ):
            ann.call("scene_create", name="yard", spec=spec(8))
            ann.edit("yard", ball((0, 0, 0), 1))
            ann.call("scene_branch", name="yard", new_name="copy")
            ann.call("scene_get", name="yard")  # a read
            eve.fails("scene_drop", common_pb2.PERMISSION_DENIED, name="yard")
        reply = http_call(
            daemon, "POST", "/v1/scene_drop", b'{"name": "yard"}',
            {"Content-Type": "application/json", "Authorization": "Bearer wrong"},
        )  # fmt: skip
        assert reply.status == 401
        entries = lines_of(directory / "audit")
    assert [(e["token"], e["method"], e["object"], e["outcome"]) for e in entries] == [
        ("ann", "scene_create", "yard", "OK"),
        ("ann", "scene_edit", "yard", "OK"),
        ("ann", "scene_branch", "yard", "OK"),
        ("eve", "scene_drop", entries[3]["object"], "PERMISSION_DENIED"),
        ("unknown", "scene_drop", "", "UNAUTHENTICATED"),
    ]
    for entry in entries[:4]:
        assert entry["claimed_client"] == "ann-s-client"
    assert all(e["ts"] and e["request_id"] and e["peer"] for e in entries)
    assert [bool(e.get("error")) for e in entries] == [False, False, False, True, True]
    assert "wrong" not in (directory / "audit").read_text()
    assert (directory / "audit").stat().st_mode & 0o777 == 0o600


def test_audit_says_what_became_of_a_change_that_was_stopped(directory: Path) -> None:
    config = config_of(directory, ann="read,write")
    del config["auth"]
    with running(directory, config) as daemon, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="yard", spec=spec(14, bits=4))
        with RawReq(daemon.ipc) as peer:
            peer.send(slow_edit("yard", 1, LONG_MS, 200.0))
            wait_until(lambda: daemon.n_under_way() == 1, 10, "it runs")
        wait_until(lambda: daemon.n_under_way() == 0, 20, "it ended")
        wait_until(lambda: len(lines_of(directory / "audit")) == 2, 5, "its line")
        assert lines_of(directory / "audit")[1]["outcome"] == "CANCELLED"


def test_audit_file_is_made_anew_and_a_full_one_stops_nobody(directory: Path) -> None:
    config = config_of(directory, boss="read,write,admin")
    file = directory / "audit"
    with running(directory, config) as daemon, Scenes(daemon, "", "boss") as scenes:
        scenes.call("scene_create", name="a", spec=spec(8))
        file.rename(directory / "audit.1")
        scenes.call("scene_create", name="b", spec=spec(8))
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: file.exists(), 10, "a new file")
        scenes.call("scene_create", name="c", spec=spec(8))
        assert [e["object"] for e in lines_of(directory / "audit.1")] == ["a", "b"]
        assert [e["object"] for e in lines_of(file)] == ["c"]
        assert lost(daemon, "boss") == 0
        config["audit"] = {"file": "/dev/full"}
        daemon.config_path.write_text(json.dumps({**daemon.config, **config}))
        file.unlink()
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: sum(e.get("msg") == "reloaded" for e in daemon.log) == 2, 10, "it")
        scenes.call("scene_create", name="d", spec=spec(8))
        assert lost(daemon, "boss") == 1
        config["audit"] = {"file": str(directory / "none" / "audit")}
        daemon.config_path.write_text(json.dumps({**daemon.config, **config}))
        daemon.signal(signal.SIGHUP)
        refused = wait_until(lambda: daemon.find("reload failed, nothing changed"), 10, "it")
        assert refused["field"] == "audit.file"
        with Rpc(daemon.ipc) as client:
            assert client.call("server_info", token="boss").header.code == common_pb2.OK
