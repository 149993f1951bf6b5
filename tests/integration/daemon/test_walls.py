# SPDX-License-Identifier: Apache-2.0
"""Walls between tokens: names and methods that a token may use, short-lived tokens, quotas, and who
may connect at all."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import (
    BIN,
    OK,
    SOURCE,
    Daemon,
    Rpc,
    common_pb2,
    http_call,
    running,
    scene_pb2,
    wait_until,
    watch_pb2,
)
from networks import write_network

TOKENS = [
    "boss read,write,admin",
    "ann read,write names=ann-,shared",
    "ben read,write names=ben- networks=-",
    "looker read methods=scene_*,map_list,token_issue deny=scene_render",
    "quick read,write requests_per_s=5",
    "small read,write max_scenes=2 max_maps=1 max_volumes=1 max_odometries=1 max_posegraphs=1"
    " max_networks=1 max_files=2 names=small- networks=*",
    "full read,write max_bytes=300000",
    "sums read,write max_bytes=6000000 names=sums- networks=*",
]


def secret(name: str) -> str:
    return f"secret-of-{name}"


def write_tokens(path: Path, rows: list[str]) -> None:
    lines = []
    for row in rows:
        name, scopes, *rules = row.split()
        digest = hashlib.sha256(secret(name).encode()).hexdigest()
        lines.append(" ".join([name, scopes, digest, *rules]) + "\n")
    path.write_text("".join(lines))
    path.chmod(0o600)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Client:
    """HTTP with the token of a name, or another one."""

    def __init__(self, daemon: Daemon, name: str, token: str = "") -> None:
        self.daemon = daemon
        self.headers = bearer(token or secret(name))

    def post(self, method: str, **body: Any) -> tuple[int, dict[str, Any]]:
        reply = http_call(self.daemon, "POST", f"/v1/{method}", body, self.headers)
        return reply.status, reply.json()

    def ok(self, method: str, **body: Any) -> dict[str, Any]:
        status, reply = self.post(method, **body)
        assert status == 200, reply
        return reply

    def refused(self, method: str, **body: Any) -> dict[str, Any]:
        status, reply = self.post(method, **body)
        assert status == 403, (status, reply)
        assert reply["code"] == "PERMISSION_DENIED"
        return reply

    def get(self, path: str, **headers: str) -> Any:
        return http_call(self.daemon, "GET", path, None, self.headers | headers)


SCENE = {"spec": {"voxelSizeM": 0.5}}
MAP: dict[str, Any] = {"spec": {}}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("w")
    write_tokens(directory / "tokens", TOKENS)
    write_network(directory / "networks", "signs")
    write_network(directory / "networks", "tiny")
    config = {
        "networks_dir": str(directory / "networks"),
        "auth": {"tokens_file": str(directory / "tokens")},
        "audit": {"file": str(directory / "audit")},
        "limits": {"failed_logins": 0},
    }
    with running(directory, config) as d:
        ann, ben = Client(d, "ann"), Client(d, "ben")
        for client, name in ((ann, "ann-yard"), (ben, "ben-yard")):
            client.ok("scene_create", name=name, **SCENE)
            client.ok("map_create", name=name, **MAP)
            client.ok("volume_create", name=name, voxelSizeM=0.1)
        yield d


def test_nobody_touches_what_another_token_may_name(daemon: Daemon) -> None:
    ann = Client(daemon, "ann")
    error = ann.refused("scene_drop", name="ben-yard")
    assert error["field"] == "name"
    assert error["message"] == (
        "ann may not use the scene ben-yard: by the rules of its token the names begin with "
        "ann-,shared"
    )
    box = {"low": {"x": 0, "y": 0, "z": 0}, "high": {"x": 1, "y": 1, "z": 1}}
    for method, body in {
        "scene_get": {},
        "scene_edit": {"operations": [{"box": box}]},
        "scene_undo": {},
        "scene_log": {},
        "scene_snapshot": {"snapshot": "now"},
        "scene_export": {},
        "scene_watch": {},
        "map_get": {},
        "map_drop": {},
        "map_erase": {"all": True},
        "map_export": {},
        "volume_drop": {},
        "volume_get": {},
        "volume_watch": {},
    }.items():
        ann.refused(method, name="ben-yard", **body)
    assert ann.get("/v1/scenes/ben-yard").status == 403
    assert ann.get("/v1/maps/ben-yard").status == 403
    assert ann.get("/v1/scenes/ben-yard/image.png").status == 403
    tag = Client(daemon, "boss").get("/v1/scenes/ben-yard/image.png").headers["ETag"]
    assert ann.get("/v1/scenes/ben-yard/image.png", **{"If-None-Match": tag}).status == 403
    assert ann.get("/v1/scenes/ben-yard/watch").status == 403
    assert ann.get("/v1/volumes/ben-yard/watch").status == 403
    # Nothing of it has happened.
    assert Client(daemon, "ben").ok("scene_get", name="ben-yard")["scene"]["name"] == "ben-yard"


def test_new_names_are_checked_too(daemon: Daemon) -> None:
    ann = Client(daemon, "ann")
    assert ann.refused("scene_create", name="free", **SCENE)["field"] == "name"
    branch = ann.refused("scene_branch", name="ann-yard", newName="ben-2")
    assert branch["field"] == "newName" or branch["field"] == "new_name"
    assert ann.refused("map_save", name="ann-yard", file="ben-file")["field"] == "file"
    assert ann.refused("map_load", name="ann-2", file="ben-file")["field"] == "file"
    # A merge names the map in a message of the request.
    points = {"fields": [], "pointStep": 12, "data": ""}
    merge = ann.refused("voxelize", clouds=[points], merge={"map": "ben-yard"})
    assert merge["field"] == "merge.map"
    ann.ok("scene_branch", name="ann-yard", newName="ann-2")
    ann.ok("map_save", name="ann-yard")
    ann.ok("scene_drop", name="ann-2")
    # What a rule of one kind says: ben has no networks at all.
    error = Client(daemon, "ben").refused("infer", network="ben-net", clouds=[points])
    assert "may not use networks at all" in error["message"]


def test_lists_and_watches_show_no_other_names(daemon: Daemon) -> None:
    ann, boss = Client(daemon, "ann"), Client(daemon, "boss")
    for method, field in {
        "scene_list": "scenes",
        "map_list": "maps",
        "volume_list": "volumes",
    }.items():
        assert [x["name"] for x in ann.ok(method)[field]] == ["ann-yard"]
        assert {"ann-yard", "ben-yard"} <= {x["name"] for x in boss.ok(method)[field]}
    for method in ("scene_watch", "volume_watch"):
        assert [x["name"] for x in ann.ok(method)["heads"]] == ["ann-yard"]
    assert [x["name"] for x in ann.get("/v1/scenes").json()["scenes"]] == ["ann-yard"]
    with Rpc(daemon.tcp) as client:
        reply = client.call("scene_watch", watch_pb2.SceneWatchRequest(), token=secret("ann"))
        assert [h.name for h in reply.scene_watch.heads] == ["ann-yard"]
    for path in ("/v1/watch", "/v1/watch/volumes"):
        connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=30)
        connection.request("GET", path, headers=ann.headers)
        events = connection.getresponse()
        text = b""
        while b"\n\n" not in text or b"data:" not in text:
            text += events.read1(65536)
        connection.close()
        assert b"ann-yard" in text
        assert b"ben-yard" not in text


def test_methods_are_allowed_and_denied(daemon: Daemon) -> None:
    looker = Client(daemon, "looker")
    looker.ok("scene_list")
    looker.ok("map_list")
    error = looker.refused("map_get", name="ann-yard")
    assert "looker may not call map_get: the rules of its token are" in error["message"]
    assert "methods=scene_*,map_list" in error["message"]
    looker.refused("scene_render", name="ann-yard")
    assert looker.get("/metrics").status == 403
    # Scopes come first, as before.
    assert "lacks the scope write; it has read" in looker.refused(
        "scene_drop", name="ann-yard"
    )["message"]
    with Rpc(daemon.tcp) as client:
        header = client.call("status", token=secret("looker")).header
        assert header.code == common_pb2.PERMISSION_DENIED


def test_issued_token_can_do_less_and_ends_by_itself(daemon: Daemon) -> None:
    ann = Client(daemon, "ann")
    issued = ann.ok("token_issue", scopes=["read"], prefixes=["ann-y"], ttlS="600")
    assert issued["name"] == "ann"
    assert issued["scopes"] == ["read"]
    less = Client(daemon, "", issued["token"])
    assert less.ok("scene_get", name="ann-yard")["scene"]["name"] == "ann-yard"
    assert less.refused("scene_get", name="shared")["message"].endswith("begin with ann-y")
    less.refused("scene_drop", name="ann-yard")
    # Not more than one's own, and no longer.
    for client in (ann, less):
        client.refused("token_issue", scopes=["admin"])
        client.refused("token_issue", prefixes=["ben-"])
    less.refused("token_issue", scopes=["write"])
    again = less.ok("token_issue", ttlS="604800")
    assert int(again["expiresNs"]) <= int(issued["expiresNs"])
    # An admin may give any scope.
    made = Client(daemon, "boss").ok("token_issue", scopes=["write"], prefixes=["ben-"])
    Client(daemon, "", made["token"]).ok("scene_create", name="ben-3", **SCENE)
    Client(daemon, "ben").ok("scene_drop", name="ben-3")
    for body, field in (
        ({"ttlS": "604801"}, "ttl"),
        ({"scopes": ["fly"]}, "scopes[0]"),
        ({"prefixes": ["A"]}, "prefixes[0]"),
    ):
        status, error = ann.post("token_issue", **body)
        assert status == 400
        assert error["field"].startswith(field)
    # Over nng too, and changed by a character it is none.
    with Rpc(daemon.tcp) as client:
        assert client.call("scene_list", token=issued["token"]).header.code == OK
        changed = issued["token"][:-1] + ("A" if issued["token"][-1] != "A" else "Q")
        header = client.call("scene_list", token=changed).header
        assert header.code == common_pb2.UNAUTHENTICATED
    short = ann.ok("token_issue", ttlS="1")
    gone = Client(daemon, "", short["token"])
    wait_until(lambda: gone.post("scene_list")[0] == 401, 5, "the token expires")
    assert "issued by ann, expired" in gone.post("scene_list")[1]["message"]
    audit = (daemon.directory / "audit").read_text()
    assert issued["token"] not in audit
    assert issued["token"] not in "".join(daemon.lines)


def test_issued_token_from_the_clients(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(secret("ann"))
    command = [BIN / "voxelctl", "--url", daemon.tcp]
    run = subprocess.run(
        [*command, "--token-file", tmp_path / "token", "token", "issue", "--scopes", "read"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    made = run.stdout.strip()
    environment = os.environ | {"VOXELD_TOKEN": made}
    run = subprocess.run(
        [*command, "scene", "list", "--json"],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert "ann-yard" in run.stdout
    assert "ben-yard" not in run.stdout
    script = (
        "import sys, voxeld\n"
        f"with voxeld.connect('{daemon.tcp}', token='{secret('ann')}') as client:\n"
        "    token = client.token_issue(scopes=['read'], prefixes=['ann-'], ttl_s=60)\n"
        f"with voxeld.connect('{daemon.tcp}', token=token.token) as client:\n"
        "    print(token.name, [s.name for s in client.scenes()])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(SOURCE / "client" / "python")},
    )  # fmt: skip
    assert run.stdout == "ann ['ann-yard']\n", run.stderr


def test_quotas_name_figure_limit_and_key(daemon: Daemon) -> None:
    quick = Client(daemon, "quick")
    replies = [quick.post("server_info") for _ in range(20)]
    refused = [reply for status, reply in replies if status == 429]
    assert refused  # more than five a second, or the machine took four seconds for 20
    assert re.match(
        r"quick has 5 requests in the last second, requests_per_s of it is 5 \(tokens file\)",
        refused[0]["message"],
    )
    assert refused[0]["code"] == "RESOURCE_EXHAUSTED"
    Client(daemon, "ann").ok("server_info")  # others have their own


def test_quotas_of_what_a_token_holds(daemon: Daemon) -> None:
    small = Client(daemon, "small")

    def too_many(method: str, message: str, **body: Any) -> None:
        status, reply = small.post(method, **body)
        assert status == 429, reply
        assert message in reply["message"]

    for name in ("small-1", "small-2", "small-1"):  # the last one is there already
        small.ok("scene_create", name=name, **SCENE)
    message = "small has 2 scenes, max_scenes of it is 2 (tokens file)"
    too_many("scene_create", message, name="small-3", **SCENE)
    too_many("scene_branch", message, name="small-1", newName="small-3")
    small.ok("map_create", name="small-1", **MAP)
    message = "small has 1 maps, max_maps of it is 1"
    too_many("map_create", message, name="small-2", **MAP)
    small.ok("map_save", name="small-1")
    small.ok("map_load", name="small-1", replace=True)
    too_many("map_load", message, name="small-2", file="small-1")
    small.ok("volume_create", name="small-1", voxelSizeM=0.1)
    message = "small has 1 volumes, max_volumes of it is 1"
    too_many("volume_create", message, name="small-2", voxelSizeM=0.1)
    small.ok("odometry_create", name="small-1")
    small.ok("odometry_create", name="small-1")
    message = "small has 1 odometries, max_odometries of it is 1"
    too_many("odometry_create", message, name="small-2")
    small.ok("posegraph_create", name="small-1")
    message = "small has 1 posegraphs, max_posegraphs of it is 1"
    too_many("posegraph_create", message, name="small-2")
    small.ok("network_load", name="signs")
    small.ok("network_load", name="signs")
    small.ok("network_load", name="signs", precision="FP16")  # in its place
    message = "small has 1 networks, max_networks of it is 1"
    too_many("network_load", message, name="tiny")
    small.ok("network_unload", name="signs")
    small.ok("network_load", name="tiny")
    small.ok("network_unload", name="tiny")
    small.ok("map_save", name="small-1", file="small-2")
    small.ok("map_save", name="small-1")  # a file that is there is replaced
    message = "small has 2 files, max_files of it is 2 (tokens file)"
    too_many("map_save", message, name="small-1", file="small-3")
    Client(daemon, "boss").ok("map_save", name="small-1", file="of-others")
    small.ok("scene_drop", name="small-2")
    small.ok("scene_branch", name="small-1", newName="small-3")
    # Memory: a bound that an empty map is below, and one of many entries above.
    full = Client(daemon, "full")
    full.ok("map_create", name="full", **MAP)
    keys = {"dtype": "INT32", "shape": [20000, 3], "values": list(range(60000))}
    status, reply = full.post("map_insert", name="full", keys=keys)
    assert status == 429, reply
    assert "max_bytes in the tokens file of 300000 leaves it" in reply["message"]


def test_bytes_of_all_kinds_count_together(daemon: Daemon) -> None:
    """What one kind takes is missing to the others, and comes back when it is dropped."""
    sums = Client(daemon, "sums")
    rule = "max_bytes in the tokens file"

    def graph_nodes(first: int) -> tuple[int, dict[str, Any]]:
        nodes = [{"id": first + i, "TMapNode": {"translation": {}}} for i in range(2000)]
        return sums.post("posegraph_add", name="sums-graph", nodes=nodes)

    def fill_graph(first: int) -> int:
        """Adds nodes until there may be no more; how many there are."""
        for n in range(first, first + 400000, 2000):
            status, reply = graph_nodes(n)
            if status != 200:
                assert status == 429 and rule in reply["message"], reply
                return n
        raise AssertionError("the quota does not end it")

    def bytes_of(noun: str, name: str) -> int:
        return int(sums.ok(f"{noun}_get", name=name)[noun].get("nBytes", 0))

    sums.ok("map_create", name="sums-map", **MAP)
    keys = {"dtype": "INT32", "shape": [20000, 3], "values": list(range(60000))}
    sums.ok("map_insert", name="sums-map", keys=keys)
    of_map = bytes_of("map", "sums-map")
    assert of_map > 300000
    sums.ok("posegraph_create", name="sums-graph")
    n = fill_graph(0)
    of_graph = bytes_of("posegraph", "sums-graph")
    assert of_map + of_graph <= 6000000 < of_map + 3 * of_graph
    # Now nothing of any kind grows.
    status, reply = sums.post("map_create", name="sums-new", spec={}, capacity=400000)
    assert status == 429 and rule in reply["message"], reply
    for i in range(1, 20):
        keys["values"] = list(range(60000 * i, 60000 * (i + 1)))
        status, reply = sums.post("map_insert", name="sums-map", keys=keys)
        if status != 200:
            break
    assert status == 429 and rule in reply["message"], reply
    status, reply = sums.post("scene_create", name="sums-scene", **SCENE)
    if status == 200:
        operation = {"ball": {"centre": {}, "radius": 60.0}, "action": "SCENE_FILL"}
        status, reply = sums.post("scene_edit", name="sums-scene", operations=[operation])
        sums.ok("scene_drop", name="sums-scene")
    assert status == 429 and rule in reply["message"], reply
    kept = metric(daemon, 'voxeld_token_bytes{token="sums"}')
    assert of_map + of_graph <= kept <= 6000000
    sums.ok("map_drop", name="sums-map")
    assert fill_graph(n) > n
    sums.ok("posegraph_drop", name="sums-graph")
    sums.ok("network_load", name="signs")
    sums.ok("network_unload", name="signs")
    sums.ok("map_create", name="sums-map", **MAP)
    sums.ok("map_insert", name="sums-map", keys=keys)
    assert bytes_of("map", "sums-map") >= of_map
    sums.ok("map_drop", name="sums-map")
    wait_until(
        lambda: metric(daemon, 'voxeld_token_bytes{token="sums"}') == 0, 10, "nothing is held"
    )


def metric(daemon: Daemon, line: str) -> float:
    text = Client(daemon, "boss").get("/metrics").body.decode()
    return sum(float(x.rsplit(" ", 1)[1]) for x in text.splitlines() if x.startswith(line))


def test_metrics_count_requests_and_refusals_a_token(daemon: Daemon) -> None:
    before = metric(daemon, 'voxeld_token_refusals_total{token="ann",reason="name"}')
    requests = metric(daemon, 'voxeld_token_requests_total{token="ann"}')
    Client(daemon, "ann").refused("map_drop", name="ben-yard")
    assert (
        metric(daemon, 'voxeld_token_refusals_total{token="ann",reason="name"}') == before + 1
    )
    assert metric(daemon, 'voxeld_token_requests_total{token="ann"}') == requests + 1


def test_what_is_over_a_quota_that_was_lowered_comes_back_at_a_start(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    config = {"auth": {"tokens_file": str(tokens)}}
    write_tokens(tokens, ["small read,write max_maps=2 max_volumes=2"])
    with running(tmp_path / "d", config) as daemon:
        for name in ("a", "b"):
            Client(daemon, "small").ok("map_create", name=name, durable=True, **MAP)
            Client(daemon, "small").ok("volume_create", name=name, durable=True, voxelSizeM=0.1)
    write_tokens(tokens, ["small read,write max_maps=1 max_volumes=1"])
    with running(tmp_path / "d", config) as daemon:
        small = Client(daemon, "small")
        assert [m["name"] for m in small.ok("map_list")["maps"]] == ["a", "b"]
        assert [v["name"] for v in small.ok("volume_list")["volumes"]] == ["a", "b"]
        assert small.post("volume_create", name="c", voxelSizeM=0.1)[0] == 429


def test_rules_change_with_a_reload_and_a_faulty_file_changes_nothing(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    write_tokens(tokens, ["ann read,write names=ann-"])
    with running(tmp_path / "d", {"auth": {"tokens_file": str(tokens)}}) as daemon:
        ann = Client(daemon, "ann")
        issued = Client(daemon, "", ann.ok("token_issue")["token"])
        ann.refused("map_drop", name="ben-yard", missingOk=True)
        write_tokens(tokens, ["ann read,write names=ann-,ben-"])
        daemon.signal(signal.SIGHUP)
        wait_until(
            lambda: ann.post("map_drop", name="ben-yard", missingOk=True)[0] == 200, 5, "reload"
        )
        issued.ok("map_drop", name="ben-yard", missingOk=True)
        write_tokens(tokens, ["ann read,write names=ann- methods=map_fly"])
        n_lines = len(daemon.log)
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: any(e["level"] == "error" for e in daemon.log[n_lines:]), 5, "error")
        assert "map_fly" in "".join(daemon.lines)
        ann.ok("map_drop", name="ben-yard", missingOk=True)
        # Whose issuer is gone, is gone.
        write_tokens(tokens, ["cid read"])
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: issued.post("map_list")[0] == 401, 5, "the issuer is gone")


def warnings(daemon: Daemon) -> str:
    return " ".join(e["msg"] for e in daemon.log if e.get("level") == "warning")


def test_open_doors_are_told_at_the_start_and_can_be_closed(tmp_path: Path) -> None:
    with running(tmp_path / "a", {"listen": {"ipc_mode": "0777"}}) as daemon:
        assert "may do everything over HTTP" in warnings(daemon)
        assert "may do everything over ipc" in warnings(daemon)
        assert http_call(daemon, "GET", "/v1/status").status == 200
    with running(tmp_path / "a", {"http": {"require_token": True}}) as daemon:
        assert warnings(daemon) == ""
        assert http_call(daemon, "GET", "/v1/health/live").status == 200
        for headers in ({}, bearer("nonsense")):
            for path in ("/v1/status", "/metrics", "/v1/session"):
                assert http_call(daemon, "GET", path, None, headers).status == 401
        with Rpc(daemon.ipc) as client:  # our own user, who gives the token away
            issued = client.call("token_issue").token_issue.token
        assert http_call(daemon, "GET", "/v1/status", None, bearer(issued)).status == 200
    # The key stays with the data, so the token outlives the process.
    with running(tmp_path / "a", {"http": {"require_token": True}}) as daemon:
        assert http_call(daemon, "GET", "/v1/status", None, bearer(issued)).status == 200
    with running(tmp_path / "b", {"http": {"require_token": True}}) as daemon:
        assert http_call(daemon, "GET", "/v1/status", None, bearer(issued)).status == 401


HANDSHAKE = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "foxglove.sdk.v1",
}  # fmt: skip


def test_login_url_is_of_an_issued_token_and_opens_a_session(tmp_path: Path) -> None:
    """What the dashboard makes of it, test_dashboard.py sees in a browser."""

    def login(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / "voxelctl", "--url", daemon.ipc, *words, "token", "login", "--ttl", "60"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    with running(tmp_path / "a", {"http": {"require_token": True}}) as daemon:
        for text in (login(daemon).stdout, json.loads(login(daemon, "--json").stdout)["url"]):
            found = re.fullmatch(rf"http://127.0.0.1:{daemon.http_port}/#token=([\w.-]+)\n?", text)
            assert found is not None, text
            reply = http_call(daemon, "POST", "/v1/session", None, bearer(found[1]))
            # There is no file of tokens, and yet whoever is here has logged in and can log out.
            assert reply.status == 200 and reply.json()["tokens"] is True
            assert found[1] not in "".join(daemon.lines)
            # A URL's query is written down in many places, so such a token is refused there.
            shake = http_call(daemon, "GET", f"/foxglove?token={found[1]}", None, HANDSHAKE)
            assert shake.status == 403 and "scope read alone" in shake.json()["message"]
    everywhere = {"listen": {"http": "0.0.0.0:0", "allow_insecure": True}}
    with running(tmp_path / "b", everywhere) as open_:
        assert login(open_).stdout.startswith(f"http://localhost:{open_.http_port}/#token=")
        open_.ipc = open_.tcp
        assert login(open_).stdout.startswith(f"http://127.0.0.1:{open_.http_port}/#token=")
    with running(tmp_path / "c", {"listen": {"http": f"unix:{tmp_path}/h.sock"}}) as hidden:
        run = login(hidden)
        assert run.returncode == 1 and "which no browser reaches" in run.stderr and not run.stdout


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


def test_http_over_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    tokens = tmp_path / "tokens"
    write_tokens(tokens, ["ann read names=ann-"])
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))  # what a killed daemon leaves
    stale.close()
    config = {"listen": {"http": f"unix:{path}"}, "auth": {"tokens_file": str(tokens)}}
    with running(tmp_path / "d", config) as daemon:
        assert warnings(daemon) == ""
        assert path.stat().st_mode & 0o777 == 0o660

        def get(headers: dict[str, str]) -> tuple[int, Any]:
            connection = UnixConnection(str(path))
            connection.request("GET", "/v1/session", headers=headers)
            reply = connection.getresponse()
            text = reply.read()
            connection.close()
            return reply.status, json.loads(text)

        assert get({})[1]["name"] == f"uid-{os.geteuid()}"  # trusted, as on ipc
        assert get(bearer(secret("ann")))[1]["name"] == "ann"
        assert get(bearer("nonsense"))[0] == 401
    assert not path.exists()


def test_configurations_that_cannot_be_are_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    write_tokens(tokens, ["ann read names=ann- deny=map_fly"])
    is_open = tmp_path / "open"
    write_tokens(is_open, ["ann read"])
    is_open.chmod(0o644)
    for config, reason in (
        ({"listen": {"http": "unix:relative"}}, "must be unix:/PATH"),
        ({"listen": {"http": "unix:/" + "a" * 200}}, "the system allows"),
        ({"auth": {"tokens_file": str(tokens)}}, ":1: deny= names map_fly, and there is no"),
        ({"auth": {"tokens_file": f"{tokens}-2"}}, "cannot open"),
        ({"auth": {"tokens_file": str(is_open)}}, "can be read or written by every user"),
    ):
        path = tmp_path / "c.json"
        path.write_text(json.dumps(config))
        run = subprocess.run(
            [BIN / "voxeld", "--check-config", path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 2
        assert reason in run.stderr


def edit_of(name: str, radius_m: float) -> scene_pb2.SceneEditRequest:
    ball = scene_pb2.SceneBall(centre=common_pb2.Vec3(x=0, y=0, z=0), radius=radius_m)
    operation = scene_pb2.SceneOperation(ball=ball, action=scene_pb2.SCENE_FILL, material=1)
    return scene_pb2.SceneEditRequest(name=name, operations=[operation])


class Writer:
    """Edits a scene of its own, one request after another, and counts what becomes of them."""

    def __init__(self, daemon: Daemon, name: str, client: str, radius_m: float) -> None:
        self.rpc = Rpc(daemon.tcp, 60)
        self.header = {"token": secret(name), "client_id": client}
        self.name = f"{name}-{client}"
        self.radius_m = radius_m
        self.sequence = 0
        self.codes: list[int] = []
        spec = scene_pb2.SceneSpec(voxel_size_m=0.1, material_bits=8)
        self.call("scene_create", scene_pb2.SceneCreateRequest(name=self.name, spec=spec))
        assert self.codes.pop() == OK

    def call(self, method: str, message: Any) -> None:
        self.sequence += 1
        reply = self.rpc.call(method, message, sequence=self.sequence, **self.header)
        self.codes.append(reply.header.code)

    def edit(self) -> None:
        # Another radius each time: an equal edit would cost nothing.
        self.call("scene_edit", edit_of(self.name, self.radius_m + 0.01 * (self.sequence % 7)))

    def work(self, n: int) -> None:
        for _ in range(n):
            self.edit()
            time.sleep(0.01)


N_EDITS = 40
N_GREEDY = 12


def run_polite(daemon: Daemon, run: str) -> list[int]:
    """How many edits each of three polite tokens gets done."""
    writers = [Writer(daemon, f"polite{i}", run, 0.5) for i in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda w: w.work(N_EDITS), writers))
    return [w.codes.count(OK) for w in writers]


def test_greedy_writer_leaves_polite_ones_their_work(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    write_tokens(tokens, ["greedy read,write"] + [f"polite{i} read,write" for i in range(3)])
    config = {"auth": {"tokens_file": str(tokens)}, "limits": {"queue": 8}}
    with running(tmp_path / "d", config) as daemon:
        alone = run_polite(daemon, "alone")
        assert min(alone) == N_EDITS
        # One token, with many clients and connections, and edits of a hundred times the size.
        greedy = [Writer(daemon, "greedy", f"g{i}", 5) for i in range(N_GREEDY)]
        is_over = threading.Event()

        def be_greedy(writer: Writer) -> None:
            while not is_over.is_set():
                writer.edit()

        with ThreadPoolExecutor(N_GREEDY) as pool:
            for writer in greedy:
                pool.submit(be_greedy, writer)
            try:
                wait_until(lambda: all(w.codes for w in greedy), 30, "all of them are at it")
                beside = run_polite(daemon, "beside")
            finally:
                is_over.set()
        codes = [code for w in greedy for code in w.codes]
        # More than the queue takes: the greedy one is refused, the polite ones are not.
        assert common_pb2.UNAVAILABLE in codes
        assert set(codes) <= {OK, common_pb2.UNAVAILABLE}
        assert min(beside) >= 0.95 * N_EDITS, (alone, beside, Counter(codes))
