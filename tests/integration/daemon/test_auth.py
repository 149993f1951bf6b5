# SPDX-License-Identifier: Apache-2.0
"""Tokens and scopes over HTTP, tcp and ipc; reloading them; the peer's uid."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import OK, Daemon, Rpc, common_pb2, http_call, running, wait_until

TOKENS = {"reader": "read", "writer": "read,write", "boss": "read,write,admin"}


def token(name: str) -> str:
    return f"secret-of-{name}"


def line(name: str, scopes: str) -> str:
    return f"{name} {scopes} {hashlib.sha256(token(name).encode()).hexdigest()}\n"


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(name)}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("d")
    tokens = directory / "tokens"
    tokens.write_text("# ours\n" + "".join(line(*row) for row in TOKENS.items()))
    tokens.chmod(0o600)
    with running(directory, {"auth": {"tokens_file": str(tokens)}}) as daemon:
        yield daemon


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic dXNlcjpwYXNz"},
        {"Authorization": token("boss")},
    ],
)
@pytest.mark.parametrize("path", ["/v1/status", "/metrics"])
def test_without_a_token_http_is_a_401(guarded: Daemon, headers: dict, path: str) -> None:
    reply = http_call(guarded, "GET", path, None, headers)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"].startswith("Bearer")
    assert reply.json()["code"] == "UNAUTHENTICATED"
    assert "secret" not in reply.body.decode()


def test_scopes_decide_over_http(guarded: Daemon) -> None:
    for name in TOKENS:
        assert http_call(guarded, "GET", "/v1/status", None, bearer(name)).status == 200
        assert http_call(guarded, "GET", "/metrics", None, bearer(name)).status == 200
    body = {"level": "info"}
    reply = http_call(guarded, "POST", "/v1/set_log_level", body, bearer("writer"))
    assert reply.status == 403
    assert reply.json()["code"] == "PERMISSION_DENIED"
    assert "admin" in reply.json()["message"]
    assert http_call(guarded, "POST", "/v1/set_log_level", body, bearer("boss")).status == 200


def test_health_and_index_are_public(guarded: Daemon) -> None:
    for path in ("/v1/health/live", "/v1/health/ready", "/", "/v1/openapi.json"):
        assert http_call(guarded, "GET", path).status == 200


def test_a_wrong_token_is_refused_before_the_body(guarded: Daemon) -> None:
    from harness import raw_http

    head = (
        f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{guarded.http_port}\r\n"
        "Content-Type: application/x-protobuf\r\nContent-Length: 10000000\r\n\r\n"
    )
    assert raw_http(guarded, head.encode()).startswith(b"HTTP/1.1 401 ")


def test_tokens_decide_over_tcp(guarded: Daemon) -> None:
    with Rpc(guarded.tcp) as client:
        code = client.call("status").header.code
        assert code == common_pb2.UNAUTHENTICATED
        code = client.call("status", token="wrong").header.code
        assert code == common_pb2.UNAUTHENTICATED
        assert client.call("status", token=token("reader")).header.code == OK
        code = client.call("self_test", token=token("writer")).header.code
        assert code == common_pb2.PERMISSION_DENIED


def test_our_own_uid_needs_no_token_over_ipc(guarded: Daemon) -> None:
    with Rpc(guarded.ipc) as client:
        assert client.call("status").header.code == OK


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_foreign_uid_over_ipc_needs_a_token(guarded: Daemon) -> None:
    import subprocess
    import sys

    script = (
        "import os, sys\n"
        "from harness import Rpc\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "client = Rpc(sys.argv[1])\n"
        "print(client.call('status').header.code,"
        " client.call('status', token=sys.argv[2]).header.code)\n"
    )
    path = Path(guarded.ipc.removeprefix("ipc://"))
    path.chmod(0o666)
    # Another pytest that begins beside this one takes the folders' permissions away again.
    for _ in range(10):
        for parent in list(path.parents)[:6]:
            if parent.owner() == "root" and parent != Path("/") and parent != Path("/tmp"):
                parent.chmod(parent.stat().st_mode | 0o011)
        done = subprocess.run(
            [sys.executable, "-c", script, guarded.ipc, token("reader")],
            cwd=Path(__file__).parents[1] / "support", capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "PermissionDenied" not in done.stderr:
            break
    assert done.stdout.split() == [str(common_pb2.UNAUTHENTICATED), str(OK)], done.stderr


def test_the_log_never_holds_a_token(guarded: Daemon) -> None:
    text = "".join(guarded.lines)
    assert "secret-of" not in text
    assert hashlib.sha256(token("boss").encode()).hexdigest() not in text


def test_sighup_reloads_tokens_and_a_bad_file_keeps_the_old(directory: Path) -> None:
    tokens = directory / "tokens"
    tokens.write_text(line("old", "read"))
    tokens.chmod(0o600)

    def status(daemon: Daemon, name: str) -> int:
        return http_call(daemon, "GET", "/v1/status", None, bearer(name)).status

    with running(directory, {"auth": {"tokens_file": str(tokens)}}) as daemon:
        assert (status(daemon, "old"), status(daemon, "new")) == (200, 401)
        tokens.write_text(line("new", "read"))
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: status(daemon, "new") == 200, 5, "the new token works")
        assert status(daemon, "old") == 401
        tokens.write_text("new read not-a-hash\n")
        n_lines = len(daemon.log)
        daemon.signal(signal.SIGHUP)
        wait_until(
            lambda: any(e.get("level") == "error" for e in daemon.log[n_lines:]), 5, "error"
        )
        assert status(daemon, "new") == 200


def test_open_address_without_tokens_is_refused_at_start(directory: Path) -> None:
    import json
    import subprocess

    from harness import BIN

    config = directory / "c.json"
    config.write_text(json.dumps({"listen": {"rpc": [], "http": "0.0.0.0:0"}}))
    done = subprocess.run(
        [BIN / "voxeld", "--config", config], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "allow_insecure" in done.stderr


def test_guesses_are_limited_and_stop_nobody_who_is_there(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    tokens = directory / "tokens"
    tokens.write_text("".join(line(*row) for row in TOKENS.items()))
    tokens.chmod(0o600)
    config = {"auth": {"tokens_file": str(tokens)}, "limits": {"failed_logins": 3}}
    with running(directory, config) as daemon:
        assert http_call(daemon, "GET", "/metrics", None, bearer("reader")).status == 200
        wrong = {"Authorization": "Bearer nonsense"}
        paths = ["/metrics", "/v1/status"]
        statuses = [
            http_call(daemon, "GET", paths[i % 2], None, wrong).status for i in range(5)
        ]
        assert statuses == [401, 401, 401, 429, 429]
        refused = http_call(daemon, "GET", "/v1/status", None, wrong).json()
        assert "limits.failed_logins is 3" in refused["message"]
        # A right one that this address has not used yet looks the same.
        assert http_call(daemon, "GET", "/v1/status", None, bearer("boss")).status == 429
        with Rpc(daemon.tcp) as client:
            header = client.call("server_info", token=token("boss")).header
            assert header.code == common_pb2.RESOURCE_EXHAUSTED
            assert client.call("server_info", token=token("reader")).header.code == OK
        metrics = http_call(daemon, "GET", "/metrics", None, bearer("reader")).body.decode()
        assert 'voxeld_rejected_total{reason="failed_logins"}' in metrics
