# SPDX-License-Identifier: Apache-2.0
"""Why a request was refused or takes so long, and W3C Trace Context through both transports; the
alerts and the board of deploy/monitoring name metrics that the daemon exports."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import voxeld
import yaml
from every_method import World, example, methods, parse, write_networks
from harness import (
    BIN,
    OK,
    SLOW,
    SOURCE,
    Daemon,
    Rpc,
    admin_request,
    common_pb2,
    http_call,
    raw_http,
    running,
    wait_until,
)

TOKENS = {"admin": "read,write,admin", "planner": "read,write,admin", "viewer": "read"}
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
MONITORING = SOURCE / "deploy" / "monitoring"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A short queue, tokens whose texts are their names, and an archive, which has metrics."""
    directory = tmp_path_factory.mktemp("d")
    lines = [
        f"{name} {scopes} {hashlib.sha256(name.encode()).hexdigest()}\n"
        for name, scopes in TOKENS.items()
    ]
    (directory / "tokens").write_text("".join(lines))
    (directory / "tokens").chmod(0o600)
    config = {
        "archive_dir": str(directory / "archive"),
        "auth": {"tokens_file": str(directory / "tokens")},
        "data_dir": str(directory / "data"),
        "limits": {"queue": 3},
        "log": {"level": "debug"},
    }
    with running(directory, config) as started:
        yield started


def why(daemon: Daemon, of: str, token: str = "admin") -> dict[str, Any]:
    reply = http_call(
        daemon, "POST", "/v1/why", {"requestId": of}, {"Authorization": f"Bearer {token}"}
    )
    return {"status": reply.status, **reply.json()}


def log_line(daemon: Daemon, request_id: str) -> dict[str, Any]:
    def found() -> Any:
        return next(
            (
                e
                for e in daemon.log
                if e.get("msg") == "request" and e.get("request_id") == request_id
            ),
            None,
        )

    return dict(wait_until(found, 10, f"a line about {request_id}"))


def load(daemon: Daemon) -> tuple[int, int]:
    """How many wait, and how many have begun."""
    status = http_call(daemon, "GET", "/v1/status", None, {"Authorization": "Bearer admin"}).json()
    return int(status.get("queueDepth", 0)), int(status.get("running", 0))


def listed(daemon: Daemon, token: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {token}"}
    found = http_call(daemon, "GET", "/v1/status", None, headers).json().get("current", [])
    return list(found)


def check_current(current: dict[str, list[dict[str, Any]]]) -> None:
    """What runs and waits, as each token sees it: the administrator all of it, others their own."""
    all_of_them = {c["requestId"]: c for c in current["admin"]}
    long, waiting = [f"long-{i}" for i in range(4)], [f"waits-{i}" for i in range(3)]
    assert sorted(all_of_them) == long + waiting
    assert [c["requestId"] for c in current["admin"]][4:] == waiting, "in their order"
    assert {c["requestId"] for c in current["planner"]} == set(all_of_them), "may administer, too"
    assert current["viewer"] == []
    for request_id, c in all_of_them.items():
        runs = request_id in long
        assert (c["method"], c["by"]) == ("self_test", "planner" if runs else "admin")
        assert (c["stage"], c.get("isRunning", False)) == ("runs" if runs else "waits", runs)
        assert c["leftMs"] > 0 and 0 < c["waitMs"] <= c["totalMs"]
        assert (c["waitMs"] < c["totalMs"]) == runs
        assert (c.get("engineMs", 0) > 0) <= runs


def test_full_queue_says_who_filled_it_and_which_key_it_is(daemon: Daemon) -> None:
    long = admin_request(50000)  # they are cancelled when their senders go
    with contextlib.ExitStack() as stack:

        def send(request_id: str, token: str) -> Rpc:
            client = stack.enter_context(Rpc(daemon.tcp))
            client.send("self_test", long, token=token, request_id=request_id)
            return client

        for i in range(4):  # so many long ones begin
            send(f"long-{i}", "planner")
        wait_until(lambda: load(daemon) == (0, 4), 10, "four run")
        for i in range(3):
            send(f"waits-{i}", "admin")
            wait_until(lambda i=i: load(daemon)[0] == i + 1, 10, "it waits")
        refused = send("refused", "admin").receive()
        assert refused.header.code == common_pb2.UNAVAILABLE
        found = why(daemon, "refused")
        waits = why(daemon, "waits-2")
        runs = [why(daemon, f"long-{i}") for i in range(4)]
        current = {token: listed(daemon, token) for token in ("admin", "planner", "viewer")}
        with voxeld.connect(daemon.tcp, "planner", timeout=30 * SLOW) as client:
            records = client.status().current
        status = subprocess.run(
            [BIN / "voxelctl", "--url", daemon.tcp, "status"],
            capture_output=True, text=True, check=True, env={"VOXELD_TOKEN": "admin"},
        ).stdout  # fmt: skip
        printed, printed_json = (
            subprocess.run(
                [BIN / "voxelctl", "--url", daemon.tcp, *words, "why", "refused"],
                capture_output=True, text=True, check=True, env={"VOXELD_TOKEN": "admin"},
            ).stdout
            for words in ((), ("--json",))
        )  # fmt: skip
    assert (found["state"], found["code"]) == ("answered", "UNAVAILABLE")
    assert (found["key"], found["limit"], found["queuePosition"]) == ("limits.queue", "3", 3)
    check_current(current)
    stages = {c["requestId"]: c["stage"] for c in current["admin"]}
    assert {c.request_id: c.stage for c in records} == stages
    assert all(f"long-{i}" in status for i in range(4)) and "waits-2" in status
    groups = {(a["token"], a["method"], a.get("isRunning", False)): a["n"] for a in found["ahead"]}
    assert groups == {("planner", "self_test", True): 4, ("admin", "self_test", False): 3}
    assert "limits.queue = 3" in found["summary"]
    assert "4 self_test of planner" in found["summary"]
    assert (waits["state"], waits["queuePosition"]) == ("waits", 2)
    assert waits["key"] == "engine.read_lanes"
    assert all(r["state"] in ("runs", "waits") for r in runs)
    assert any(r["state"] == "runs" for r in runs)
    assert "limits.queue = 3" in printed
    assert json.loads(printed_json)["key"] == "limits.queue"


def test_requests_of_others_are_not_explained(daemon: Daemon) -> None:
    with Rpc(daemon.tcp) as rpc:
        rpc.call("scene_get", token="planner", request_id="theirs")
        rpc.call("scene_get", token="viewer", request_id="ours")
        rpc.call("scene_get", token="no such token", request_id="nobodys")
    assert why(daemon, "ours", "viewer")["token"] == "viewer"
    assert why(daemon, "theirs", "admin")["token"] == "planner"
    found = why(daemon, "theirs", "viewer")
    assert (found["status"], found["code"]) == (404, "NOT_FOUND")
    assert why(daemon, "nobodys", "viewer")["status"] == 404
    found = why(daemon, "nobodys")
    assert (found["code"], found["key"]) == ("UNAUTHENTICATED", "auth.tokens_file")
    assert "no such token" not in json.dumps(found)
    assert why(daemon, "never seen")["status"] == 404
    assert why(daemon, "")["status"] == 400


def test_slow_request_says_where_its_time_went(daemon: Daemon) -> None:
    with Rpc(daemon.tcp) as rpc:
        reply = rpc.call("self_test", admin_request(60), token="admin", request_id="slow")
        assert reply.header.code == OK
    found = why(daemon, "slow")
    assert found["method"] == "self_test"
    assert found.get("code", "OK") == "OK"
    assert 10 <= found["engineMs"] <= found["totalMs"]
    assert "in the engine" in found["summary"]


def test_deadline_names_its_key_or_its_own_limit(daemon: Daemon) -> None:
    with Rpc(daemon.tcp) as rpc:
        reply = rpc.call(
            "self_test", admin_request(3000), token="admin", request_id="late", timeout_ms=30
        )
        assert reply.header.code == common_pb2.DEADLINE_EXCEEDED
    found = why(daemon, "late")
    assert found["code"] == "DEADLINE_EXCEEDED"
    assert found.get("key", "") == ""


def test_clients_ask_why_and_trace_their_calls(daemon: Daemon) -> None:
    with voxeld.connect(daemon.tcp, "planner", timeout=30 * SLOW) as client:
        with voxeld.trace(TRACEPARENT), pytest.raises(voxeld.NotFound) as failed:
            client.scene("none").info()
        request_id = failed.value.request_id
        found = client.why(request_id)
        assert found.code is voxeld.Code.NOT_FOUND
        assert found.trace_id == TRACE
        assert found.method == "scene_get"
        with pytest.raises(voxeld.NotFound):
            client.why("never seen")
        assert client.why(request_id).token == "planner"
    assert log_line(daemon, request_id)["trace_id"] == TRACE


# Trace Context -----------------------------------------------------------------------------


def check_trace(daemon: Daemon, request_id: str, returned: str) -> None:
    version, trace, span, flags = returned.split("-")
    assert (version, trace, flags) == ("00", TRACE, "01")
    assert span not in (PARENT, "0" * 16)
    line = log_line(daemon, request_id)
    assert (line["trace_id"], line["parent_span_id"], line["span_id"]) == (TRACE, PARENT, span)


def test_traceparent_over_http_is_logged_and_returned(daemon: Daemon) -> None:
    for i, (path, status) in enumerate((("/v1/status", 200), ("/v1/scenes/none", 404))):
        headers = {"Authorization": "Bearer viewer", "traceparent": TRACEPARENT}
        headers["X-Request-Id"] = f"traced-{i}"
        reply = http_call(daemon, "GET", path, None, headers)
        assert reply.status == status
        check_trace(daemon, f"traced-{i}", reply.headers["traceparent"])


def test_traceparent_over_rpc_is_logged_and_returned(daemon: Daemon) -> None:
    with Rpc(daemon.tcp) as rpc:
        for i, method in enumerate(("server_info", "scene_get")):
            reply = rpc.call(
                method, token="viewer", request_id=f"rpc-{i}", traceparent=TRACEPARENT
            )
            check_trace(daemon, f"rpc-{i}", reply.header.traceparent)


@pytest.mark.parametrize(
    "sent",
    ["", "00", TRACEPARENT.upper(), TRACEPARENT + "-x", "ff" + TRACEPARENT[2:], "x" * 3000],
)
def test_malformed_traceparent_is_ignored(daemon: Daemon, sent: str) -> None:
    request_id = f"bad-{len(sent)}-{sent[:2]}"
    headers = {"Authorization": "Bearer viewer", "traceparent": sent, "X-Request-Id": request_id}
    reply = http_call(daemon, "GET", "/v1/status", None, headers)
    assert reply.status == 200
    assert "traceparent" not in reply.headers
    assert "trace_id" not in log_line(daemon, request_id)
    with Rpc(daemon.tcp) as rpc:
        reply_rpc = rpc.call("server_info", token="viewer", traceparent=sent)
        assert reply_rpc.header.code == OK
        assert reply_rpc.header.traceparent == ""


def test_two_traceparents_are_none(daemon: Daemon) -> None:
    answer = raw_http(
        daemon,
        (
            f"GET /v1/status HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
            f"Authorization: Bearer viewer\r\ntraceparent: {TRACEPARENT}\r\n"
            f"traceparent: {TRACEPARENT}\r\nConnection: close\r\n\r\n"
        ).encode(),
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"traceparent:" not in answer.lower()


# deploy/monitoring -------------------------------------------------------------------------


def exported(text: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def used(expression: str) -> set[str]:
    """The metrics of an expression; those of histograms without their endings."""
    names = set(re.findall(r"\b(?:voxeld|process)_[a-z0-9_]+", expression))
    return {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in names}


def metrics_text(daemon: Daemon) -> str:
    headers = {"Authorization": "Bearer viewer"}
    return http_call(daemon, "GET", "/metrics", None, headers).body.decode()


# Of listeners with TLS alone; test_tls.py has them.
OF_TLS = {"voxeld_tls_failed_total", "voxeld_tls_expires_time_seconds"}


def test_alerts_and_board_use_metrics_that_exist(daemon: Daemon) -> None:
    there = exported(metrics_text(daemon)) | OF_TLS
    rules = yaml.safe_load((MONITORING / "voxeld_rules.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in alerts}) == len(alerts) >= 10
    for rule in alerts:
        assert used(rule["expr"]) and used(rule["expr"]) <= there, rule
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
    board = json.loads((MONITORING / "voxeld_board.json").read_text())
    panels = [p for p in board["panels"] if p["type"] != "row"]
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
    in_use: set[str] = set()
    for panel in panels:
        assert panel["title"] and panel["targets"], panel
        for target in panel["targets"]:
            assert used(target["expr"]) and used(target["expr"]) <= there, target["expr"]
            in_use |= used(target["expr"])
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24
    assert len(in_use) >= 25


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool (package prometheus)")
def test_promtool_accepts_alerts_board_and_metrics(daemon: Daemon, directory: Path) -> None:
    def accepts(*words: str | Path, text: str | None = None) -> None:
        done = subprocess.run(
            ["promtool", *words], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    accepts("check", "rules", MONITORING / "voxeld_rules.yml")
    accepts("check", "metrics", text=metrics_text(daemon))
    board = json.loads((MONITORING / "voxeld_board.json").read_text())
    groups = [
        {"record": f"board:panel{p['id']}_{i}", "expr": t["expr"].replace("$__rate_interval", "5m")}
        for p in board["panels"]
        for i, t in enumerate(p.get("targets", []))
    ]
    path = directory / "board.yml"
    path.write_text(json.dumps({"groups": [{"name": "board", "rules": groups}]}))
    accepts("check", "rules", path)
    accepts("test", "rules", MONITORING / "voxeld_rules_test.yml")


# Where the time went ------------------------------------------------------------------------------

STAGES = ("receive", "decode", "wait", "engine", "commit")


def test_every_reply_says_where_its_time_went(tmp_path: Path) -> None:
    write_networks(tmp_path / "networks", ["-timed"])
    config = {"networks_dir": str(tmp_path / "networks"), "data_dir": str(tmp_path / "data")}
    with running(tmp_path, config) as daemon:
        with World(daemon, "-timed") as world:
            headers = [(method, response.header) for method, response in world.walk()]
            headers += [(f"{m}, empty", world.send(m).header) for m in methods()]
            with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
                client.scene_create("kept-timed", 0.1, material_bits=8, durable="always")
            edit = parse("scene_edit", {**example("scene_edit"), "name": "kept-timed"})
            headers.append(("durable", world.send("scene_edit", edit).header))
        for method, header in headers:
            assert header.HasField("stages"), method
            stages = [getattr(header.stages, f"{stage}_ms") for stage in STAGES]
            assert min(stages) >= 0, (method, stages)
            assert sum(stages) <= header.total_ms + 0.01, (method, stages, header.total_ms)
        assert headers[-1][1].stages.commit_ms > 0, headers[-1]
        for method in methods():  # with success or not
            reply = http_call(daemon, "POST", f"/v1/{method}", b"{}")
            timing = dict(p.split(";dur=") for p in reply.headers["Server-Timing"].split(", "))
            assert {*STAGES, "total"} <= timing.keys(), (method, timing)
            assert sum(float(timing[s]) for s in STAGES) <= float(timing["total"]) + 0.01
