# SPDX-License-Identifier: Apache-2.0
"""What a page of the web may not do: foreign Origins, rebound Hosts, form posts."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Daemon, http_call, raw_http, running

EVIL = "https://evil.example"


def host(daemon: Daemon) -> str:
    return f"127.0.0.1:{daemon.http_port}"


@pytest.mark.parametrize("verb", ["GET", "POST", "OPTIONS", "HEAD"])
@pytest.mark.parametrize(
    "origin", [EVIL, "null", "http://localhost", "http://localhost:1", "file://", ""]
)
def test_foreign_origin_is_forbidden(daemon: Daemon, verb: str, origin: str) -> None:
    body = {} if verb == "POST" else None
    reply = http_call(daemon, verb, "/v1/status", body, {"Origin": origin})
    assert reply.status == 403
    assert "Access-Control-Allow-Origin" not in reply.headers
    if verb != "HEAD":
        assert reply.json()["code"] == "PERMISSION_DENIED"
        assert reply.json()["field"] == "Origin"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_own_origin_and_host_are_fine(daemon: Daemon, name: str) -> None:
    ours = f"{name}:{daemon.http_port}"
    reply = http_call(
        daemon, "GET", "/v1/status", None, {"Host": ours, "Origin": f"http://{ours}"}
    )
    assert reply.status == 200
    assert "Access-Control-Allow-Origin" not in reply.headers


@pytest.mark.parametrize(
    "name",
    [
        "rebound.example",
        "rebound.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:{port}",
        "localhost:{port}@evil.example",
        ":{port}",
        "",
        "10.0.0.1:{port}",
    ],
)
def test_rebound_host_is_forbidden(daemon: Daemon, name: str) -> None:
    name = name.format(port=daemon.http_port)
    for path in ("/", "/v1/status", "/metrics", "/v1/openapi.json"):
        reply = http_call(daemon, "GET", path, None, {"Host": name})
        assert reply.status == 403, path
        assert reply.json()["field"] == "Host"


def test_missing_host_is_a_400_in_http_1_1(daemon: Daemon) -> None:
    answer = raw_http(daemon, b"GET /v1/status HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    answer = raw_http(daemon, b"GET /v1/status HTTP/1.0\r\n\r\n")
    assert b" 200 " in answer.splitlines()[0], answer


def test_two_hosts_are_a_400(daemon: Daemon) -> None:
    text = f"GET /v1/status HTTP/1.1\r\nHost: {host(daemon)}\r\nHost: evil.example\r\n\r\n"
    assert raw_http(daemon, text.encode()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "type_",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None],
)
def test_what_a_form_can_send_is_not_taken(daemon: Daemon, type_: str | None) -> None:
    extra = f"Content-Type: {type_}\r\n" if type_ else ""
    text = (
        f"POST /v1/set_log_level HTTP/1.1\r\nHost: {host(daemon)}\r\n{extra}"
        'Content-Length: 17\r\nConnection: close\r\n\r\n{"level":"debug"}'
    )
    assert raw_http(daemon, text.encode()).startswith(b"HTTP/1.1 415 ")


def test_health_answers_probes_whatever_they_call_us(daemon: Daemon) -> None:
    for path in ("/v1/health/live", "/v1/health/ready"):
        reply = http_call(daemon, "GET", path, None, {"Host": "10.1.2.3:8420"})
        assert reply.status == 200


def test_allowed_origin_gets_cors_and_others_do_not(directory: Path) -> None:
    config = {
        "http": {
            "allowed_origins": ["https://dash.example"],
            "allowed_hosts": ["vox.example"],
        }
    }
    with running(directory, config) as daemon:
        good = {"Origin": "https://dash.example"}
        reply = http_call(daemon, "GET", "/v1/status", None, good)
        assert reply.status == 200
        assert reply.headers["Access-Control-Allow-Origin"] == "https://dash.example"
        assert "Origin" in reply.headers["Vary"]
        preflight = http_call(
            daemon, "OPTIONS", "/v1/voxelize", None,
            {**good, "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "content-type"},
        )  # fmt: skip
        assert preflight.status == 204
        assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
        assert "Content-Type" in preflight.headers["Access-Control-Allow-Headers"]
        evil = http_call(daemon, "GET", "/v1/status", None, {"Origin": EVIL})
        assert evil.status == 403
        assert "Access-Control-Allow-Origin" not in evil.headers
        proxied = {"Host": "vox.example", "Origin": "https://vox.example"}
        assert http_call(daemon, "GET", "/v1/status", None, proxied).status == 200
