# SPDX-License-Identifier: Apache-2.0
"""The dashboard's files and its session over plain HTTP: what a browser may do with them, and what
pages of others may not."""

from __future__ import annotations

import hashlib
import http.cookies
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import SOURCE, Daemon, Reply, http_call, running

FILES = SOURCE / "server" / "web" / "files"
TOKENS = {"alice": ("read,write", "s3cret <of> alice"), "bob": ("read", "bob's")}
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("web")
    tokens = directory / "tokens"
    tokens.write_text(
        "".join(
            f"{name} {scopes} {hashlib.sha256(token.encode()).hexdigest()}\n"
            for name, (scopes, token) in TOKENS.items()
        )
    )
    tokens.chmod(0o600)
    with running(directory / "d", {"auth": {"tokens_file": str(tokens)}}) as daemon:
        yield daemon


def log_in(daemon: Daemon, name: str, **headers: str) -> Reply:
    sent = {"Authorization": f"Bearer {TOKENS[name][1]}", **headers}
    return http_call(daemon, "POST", "/v1/session", headers=sent)


def cookie_of(reply: Reply) -> http.cookies.Morsel[str]:
    jar = http.cookies.SimpleCookie(reply.headers["Set-Cookie"])
    assert len(jar) == 1
    return next(iter(jar.values()))


def sent(morsel: http.cookies.Morsel[str]) -> dict[str, str]:
    return {"Cookie": f"{morsel.key}={morsel.value}"}


def test_every_file_is_served_with_a_strict_policy(daemon: Daemon) -> None:
    types = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/"}
    n_bytes = 0
    for file in sorted(FILES.iterdir()):
        reply = http_call(daemon, "GET", f"/{file.name}")
        assert reply.status == 200 and reply.body == file.read_bytes(), file.name
        assert reply.headers["Content-Type"].startswith(types[file.suffix])
        policy = reply.headers["Content-Security-Policy"]
        directives = dict(d.strip().split(" ", 1) for d in policy.split(";"))
        assert directives["default-src"] == "'none'"
        assert directives["script-src"] == directives["style-src"] == "'self'"
        assert directives["frame-ancestors"] == "'none'" and "unsafe" not in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        n_bytes += len(reply.body)
    assert n_bytes < MOST_BYTES
    assert http_call(daemon, "GET", "/").body == (FILES / "index.html").read_bytes()
    assert http_call(daemon, "GET", "/../config").status == 404


def test_files_have_no_inline_script_and_load_nothing_from_elsewhere() -> None:
    page = (FILES / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+\s*=|\sstyle\s*=|<style", page)
    for file in FILES.iterdir():
        text = file.read_text()
        for url in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s'\"]*", text):
            assert url.startswith("http://www.w3.org/2000/svg"), f"{file.name}: {url}"
        if file.suffix == ".js":
            found = re.search(r"(inner|outer|Adjacent)HTML|document\.write|eval\(", text)
            assert found is None, f"{file.name} makes markup of text: {found}"


def test_session_cookie_is_for_our_own_pages_alone(daemon: Daemon) -> None:
    reply = log_in(daemon, "alice")
    assert reply.status == 200
    assert reply.json()["name"] == "alice" and reply.json()["scopes"] == ["read", "write"]
    morsel = cookie_of(reply)
    assert morsel["httponly"] and morsel["samesite"] == "Strict" and morsel["path"] == "/"
    assert morsel.key == f"voxeld_{daemon.http_port}", "daemons of one host share cookies"
    assert TOKENS["alice"][1] not in reply.headers["Set-Cookie"]

    assert http_call(daemon, "GET", "/v1/status").status == 401
    for site in (None, "same-origin", "none"):
        extra = {"Sec-Fetch-Site": site} if site else {}
        assert http_call(daemon, "GET", "/v1/status", headers=sent(morsel) | extra).status == 200
    for site in ("cross-site", "same-site", "anything"):
        headers = sent(morsel) | {"Sec-Fetch-Site": site}
        assert http_call(daemon, "GET", "/v1/status", headers=headers).status == 403
        assert http_call(daemon, "GET", "/v1/watch", headers=headers).status == 403
    # A header goes along only if a page was allowed to set it.
    headers = {"Authorization": f"Bearer {TOKENS['bob'][1]}", "Sec-Fetch-Site": "same-site"}
    assert http_call(daemon, "GET", "/v1/status", headers=headers).status == 200


def test_cookie_has_the_scopes_of_its_token(daemon: Daemon) -> None:
    spec = {"name": "yard", "spec": {"voxelSizeM": 0.1, "depth": 6}}
    bob = sent(cookie_of(log_in(daemon, "bob")))
    assert http_call(daemon, "GET", "/v1/session", headers=bob).json()["scopes"] == ["read"]
    assert http_call(daemon, "POST", "/v1/scene_create", spec, bob).status == 403
    alice = sent(cookie_of(log_in(daemon, "alice")))
    assert http_call(daemon, "POST", "/v1/scene_create", spec, alice).status == 200


def test_cross_site_requests_are_refused(daemon: Daemon) -> None:
    alice = sent(cookie_of(log_in(daemon, "alice")))
    evil = {"Origin": "http://evil.example"}
    other_port = {"Origin": f"http://localhost:{daemon.http_port + 1}"}
    spec = {"name": "evil", "spec": {"voxelSizeM": 0.1, "depth": 6}}
    for origin in (evil, other_port):
        assert http_call(daemon, "POST", "/v1/scene_create", spec, alice | origin).status == 403
        assert http_call(daemon, "POST", "/v1/session", headers=alice | origin).status == 403
        assert http_call(daemon, "GET", "/v1/watch", headers=alice | origin).status == 403
        assert log_in(daemon, "alice", **origin).status == 403
    form = {"Content-Type": "application/x-www-form-urlencoded"} | alice
    assert http_call(daemon, "POST", "/v1/scene_create", "name=evil", form).status == 415
    rebound = alice | {"Host": "rebound.example"}
    assert http_call(daemon, "GET", "/", headers=rebound).status == 403
    listed = http_call(daemon, "GET", "/v1/scenes", headers=alice).json().get("scenes", [])
    assert "evil" not in [s["name"] for s in listed]


def test_wrong_tokens_and_cookies_are_refused(daemon: Daemon) -> None:
    wrong = http_call(daemon, "POST", "/v1/session", headers={"Authorization": "Bearer guess"})
    assert wrong.status == 401 and "Set-Cookie" not in wrong.headers
    assert http_call(daemon, "GET", "/v1/session").status == 401
    name = f"voxeld_{daemon.http_port}"
    for value in ("", "zz", "6", "6g", "00", "61" * 400, "6" * 1000):
        headers = {"Cookie": f"{name}={value}"}
        assert http_call(daemon, "GET", "/v1/status", headers=headers).status == 401, value
    assert http_call(daemon, "POST", "/v1/session", "{}", {
        "Content-Type": "application/json"}).status == 400
    assert http_call(daemon, "DELETE", "/v1/session").status == 405


def test_logout_takes_the_cookie_back(daemon: Daemon) -> None:
    reply = http_call(daemon, "POST", "/v1/session", headers=sent(cookie_of(log_in(daemon, "bob"))))
    assert reply.status == 200
    morsel = cookie_of(reply)
    assert morsel.value == "" and morsel["max-age"] == "0"


def test_open_loopback_asks_for_no_token(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        session = http_call(daemon, "GET", "/v1/session").json()
        assert session["scopes"] == ["read", "write", "admin"] and not session["tokens"]
