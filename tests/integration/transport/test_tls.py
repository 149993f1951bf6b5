# SPDX-License-Identifier: Apache-2.0
"""TLS over nng and HTTP against stock peers: pynng, Python's ssl and curl. Certificates of clients,
files that are read anew, and what the daemon says about files that it cannot use."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import http.client
import json
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynng
import pytest
import voxeld
from certificates import Authority, Pair
from harness import (
    BIN,
    MIB,
    OK,
    SLOW,
    Daemon,
    Rpc,
    check_fast,
    cloud_of,
    common_pb2,
    hashmap_pb2,
    random_points,
    running,
    voxelize_request,
    wait_until,
)
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_socket

TOKENS = {
    "robot": ("read,write", "secret-1"),
    "viewer": ("read", "secret-2"),
    "fenced": ("read,write", "secret-3"),
}
RULES = {"fenced": " names=yard deny=scene_drop max_maps=1"}
# systemd's protocol, as in test_upgrade.py.
AS_SYSTEMD = 'exec 3<&"$0"; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'


class Place:
    """The files of one daemon with TLS, and those of its clients."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory, "ours")
        self.stranger = Authority(directory, "strange")
        self.server = self.authority.sign_server()
        self.robot = self.authority.sign("robot-7.fleet")
        self.guest = self.authority.sign("guest")
        self.fenced = self.authority.sign("fenced.fleet")
        self.certificate = directory / "live.pem"
        self.key = directory / "live.key"
        self.client_ca = directory / "clients.pem"
        self.install(self.server)
        shutil.copy(self.authority.certificate, self.client_ca)
        self.tokens = directory / "tokens"
        self.tokens.write_text(
            "".join(
                f"{name} {scopes} {hashlib.sha256(token.encode()).hexdigest()}"
                f"{RULES.get(name, '')}\n"
                for name, (scopes, token) in TOKENS.items()
            )
        )
        self.tokens.chmod(0o600)

    def install(self, pair: Pair) -> None:
        shutil.copy(pair.certificate, self.certificate)
        shutil.copy(pair.key, self.key)

    def config(self, **tls: Any) -> dict[str, Any]:
        return {
            "listen": {"rpc": ["tls+tcp://127.0.0.1:0"], "http": "https://127.0.0.1:0"},
            "auth": {"tokens_file": str(self.tokens)},
            "tls": {"certificate": str(self.certificate), "key": str(self.key), **tls},
        }

    def mutual(self, is_required: bool) -> dict[str, Any]:
        return self.config(
            client_ca=str(self.client_ca),
            client_required=is_required,
            client_names=["robot-7.fleet=robot", "other=viewer", "fenced.fleet=fenced"],
        )


def rpc_port(daemon: Daemon) -> int:
    ready = daemon.find("ready")
    assert ready is not None
    return int(ready["rpc"].rsplit(":", 1)[1])


@contextlib.contextmanager
def nng_client(
    daemon: Daemon, authority: Authority, own: Pair | None = None, timeout_s: float = 30
) -> Iterator[Rpc]:
    """A stock client; it is connected, or pynng.Timeout is raised by its first call."""
    config = pynng.TLSConfig(
        pynng.TLSConfig.MODE_CLIENT,
        server_name="localhost",
        ca_string=authority.certificate.read_text(),
        own_cert_string=own.certificate.read_text() if own else None,
        own_key_string=own.key.read_text() if own else None,
        auth_mode=pynng.TLSConfig.AUTH_MODE_REQUIRED,
    )
    client = Rpc.__new__(Rpc)
    limit_ms = int(timeout_s * SLOW * 1000)
    client.socket = pynng.Req0(
        tls_config=config, recv_timeout=limit_ms, send_timeout=limit_ms, resend_time=-1
    )
    client.socket.dial(f"tls+tcp://localhost:{rpc_port(daemon)}", block=False)
    try:
        yield client
    finally:
        # nng 1.6 can wait for ever when bytes arrive while a TLS socket is closed, and again when
        # the program ends.
        atexit.unregister(pynng.nng._pynng_atexit)
        closer = threading.Thread(target=client.socket.close, daemon=True)
        closer.start()
        closer.join(2)


class Https:
    """A connection that stays; get and post return status, headers and body."""

    def __init__(
        self, daemon: Daemon, authority: Authority, own: Pair | None = None
    ) -> None:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        if own is not None:
            context.load_cert_chain(own.certificate, own.key)
        self.connection = http.client.HTTPSConnection(
            "localhost", daemon.http_port, context=context, timeout=30 * SLOW
        )

    def __enter__(self) -> Https:
        self.connection.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def call(
        self, verb: str, path: str, body: bytes | str | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, str):
            sent["Content-Type"] = "application/json"
        self.connection.request(verb, path, body, sent)
        reply = self.connection.getresponse()
        return reply.status, reply.msg, reply.read()

    def certificate(self) -> bytes:
        peer = self.connection.sock.getpeercert(True)
        assert peer is not None
        return bytes(peer)


def bearer(name: str) -> str:
    return f"Bearer {TOKENS[name][1]}"


def create(name: str) -> str:
    return json.dumps({"name": name, "spec": {"keyDtype": "INT32", "nComponents": 3}})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("p"))


@pytest.fixture(scope="module")
def daemon(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Clients may have certificates, and need not."""
    with running(tmp_path_factory.mktemp("d"), place.mutual(False)) as started:
        yield started


def test_nng_peer_sends_and_gets_messages_of_all_sizes(
    daemon: Daemon, place: Place
) -> None:
    with nng_client(daemon, place.authority) as rpc:
        for n in (1, 1000, 1360, 1370, 200_000, 1_000_000):  # about 16 KiB is a record
            points = random_points(n, n)
            reply = rpc.call(
                "voxelize",
                voxelize_request(
                    cloud_of(points), outputs=["OUTPUT_COUNTS", "OUTPUT_INVERSE"]
                ),
                token=TOKENS["viewer"][1],
            )
            assert reply.header.code == OK, reply.header.message
            inverse = np.frombuffer(reply.voxelize.inverse.data, "<i4")
            counts = np.frombuffer(reply.voxelize.counts.data, "<i4")
            assert (np.bincount(inverse, minlength=len(counts)) == counts).all(), n


def test_https_client_sends_and_gets_bodies_of_all_sizes(
    daemon: Daemon, place: Place
) -> None:
    with Https(daemon, place.authority) as https:
        for n in (1, 1000, 1360, 300_000, 2_000_000):
            points = random_points(n, n)
            status, _, body = https.call(
                "POST",
                "/v1/voxelize?format=kitti&size=0.1&outputs=inverse,counts",
                np.hstack([points, points[:, :1]]).tobytes(),
                Authorization=bearer("viewer"),
                Content_Type="application/octet-stream",
                Accept="application/x-protobuf",
            )
            assert status == 200, body[:300]
            assert len(body) > 4 * n


def test_plain_and_old_peers_are_refused_and_others_served(
    daemon: Daemon, place: Place
) -> None:
    for port in (rpc_port(daemon), daemon.http_port):
        for text in (
            b"\0SP\0\0\x30\0\0" + bytes(64),
            b"GET / HTTP/1.1\r\n\r\n",
            bytes(70000),
        ):
            with (
                contextlib.suppress(ConnectionError),
                socket.create_connection(("127.0.0.1", port), 20 * SLOW) as plain,
            ):
                plain.sendall(text)
                while plain.recv(4096):
                    pass
        context = ssl.create_default_context(cafile=str(place.authority.certificate))
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with (
            socket.create_connection(("127.0.0.1", port), 20 * SLOW) as old,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            context.wrap_socket(old, server_hostname="localhost")
    with Https(daemon, place.authority) as https:
        assert https.call("GET", "/v1/health/live")[0] == 200
        assert https.connection.sock.version() in ("TLSv1.2", "TLSv1.3")
        text = https.call("GET", "/metrics", Authorization=bearer("viewer"))[2].decode()
    failed = next(
        x for x in text.splitlines() if x.startswith("voxeld_tls_failed_total ")
    )
    assert int(failed.split()[1]) >= 6
    expires = next(
        x for x in text.splitlines() if x.startswith("voxeld_tls_expires_time_seconds ")
    )
    assert float(expires.split()[1]) > 1.7e9


def test_client_that_trusts_another_authority_refuses_the_daemon(
    daemon: Daemon, place: Place
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError), Https(daemon, place.stranger):
        pass
    with (
        nng_client(daemon, place.stranger, timeout_s=0.5) as rpc,
        pytest.raises(pynng.exceptions.Timeout),
    ):
        rpc.call("server_info")


def test_unfinished_handshakes_cost_no_processor_time(
    daemon: Daemon, place: Place
) -> None:
    context = ssl.create_default_context(cafile=str(place.authority.certificate))
    with contextlib.ExitStack() as stack:
        for i in range(8):
            port = (rpc_port(daemon), daemon.http_port)[i % 2]
            peer = stack.enter_context(
                socket.create_connection(("127.0.0.1", port), 20 * SLOW)
            )
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            hello = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
            with pytest.raises(ssl.SSLWantReadError):
                hello.do_handshake()
            sent = outgoing.read()
            peer.sendall(sent if i < 4 else sent[:100])

        def used_s() -> float:
            before = daemon.cpu_s()
            time.sleep(0.5)
            return daemon.cpu_s() - before

        check_fast(used_s, 0.05)


def test_events_come_over_tls(daemon: Daemon, place: Place) -> None:
    spec = {"name": "seen", "spec": {"voxelSizeM": 0.1, "depth": 6}}
    with (
        Https(daemon, place.authority, place.robot) as https,
        Https(daemon, place.authority, place.robot) as other,
    ):
        https.connection.request("GET", "/v1/watch")
        stream = https.connection.getresponse()
        assert stream.status == 200
        created = other.call("POST", "/v1/scene_create", json.dumps(spec))
        assert created[0] == 200, created[2]
        text = b""
        while b'"seen"' not in text:
            line = stream.readline()
            assert line, text
            text += line


def test_refused_body_gets_its_answer(daemon: Daemon, place: Place) -> None:
    with Https(daemon, place.authority) as https:
        status, _, body = https.call(
            "POST", "/v1/voxelize?format=kitti&size=0.1", bytes(8 * MIB),
            Content_Type="application/octet-stream",
        )  # fmt: skip
    assert status == 401, body


def test_names_of_the_certificate_are_hosts_of_ours(
    daemon: Daemon, place: Place
) -> None:
    with Https(daemon, place.authority) as https:
        for host, expected in (
            (f"voxels.example.org:{daemon.http_port}", 200),
            (f"evil.example:{daemon.http_port}", 403),
        ):
            status, _, body = https.call(
                "GET", "/v1/status", Host=host, Origin=f"https://{host}",
                Authorization=bearer("viewer"),
            )  # fmt: skip
            assert status == expected, body


def test_dashboard_cookie_goes_over_tls_alone(daemon: Daemon, place: Place) -> None:
    with Https(daemon, place.authority) as https:
        status, headers, _ = https.call(
            "POST", "/v1/session", Authorization=bearer("viewer")
        )
    assert status == 200
    assert "; Secure" in headers["Set-Cookie"]


def test_certificate_stands_for_its_token(daemon: Daemon, place: Place) -> None:
    """A robot's certificate has the scopes of its token; one that has no token, and none, nothing;
    and a token that is sent goes before."""
    with nng_client(daemon, place.authority, place.robot) as rpc:
        assert rpc.call("server_info").header.code == OK
        large = voxelize_request(cloud_of(random_points(100_000)))
        assert rpc.call("voxelize", large).header.code == OK
        assert rpc.call("self_test").header.code == common_pb2.PERMISSION_DENIED
        wrong = rpc.call("server_info", token="no such token")
        assert wrong.header.code == common_pb2.UNAUTHENTICATED
    for own in (place.guest, None):
        with nng_client(daemon, place.authority, own) as rpc:
            assert rpc.call("server_info").header.code == common_pb2.UNAUTHENTICATED
            reply = rpc.call("voxelize", large)
            assert reply.header.code == common_pb2.UNAUTHENTICATED
    with Https(daemon, place.authority, place.robot) as https:
        assert json.loads(https.call("GET", "/v1/session")[2])["name"] == "robot"
        assert https.call("POST", "/v1/map_create", create("a"))[0] == 200
        assert https.call("GET", "/metrics")[0] == 200
        denied = https.call(
            "POST", "/v1/map_create", create("b"), Authorization=bearer("viewer")
        )
        assert denied[0] == 403
    with Https(daemon, place.authority, place.guest) as https:
        assert https.call("GET", "/v1/status")[0] == 401
        assert https.call("GET", "/v1/status", Authorization=bearer("viewer"))[0] == 200


def names_of(reply: bytes, of: str) -> set[str]:
    return {entry["name"] for entry in json.loads(reply).get(of, [])}


def test_certificate_is_within_the_walls_of_its_token(
    daemon: Daemon, place: Place
) -> None:
    """Names, methods, lists, quotas and issued tokens are those of the token that the certificate
    stands for, over nng and HTTP."""
    with Https(daemon, place.authority, place.robot) as robot:
        assert robot.call("POST", "/v1/map_create", create("street-map"))[0] == 200
    with (
        nng_client(daemon, place.authority, place.fenced) as rpc,
        Https(daemon, place.authority, place.fenced) as https,
    ):
        get = hashmap_pb2.MapGetRequest(name="street-map")
        reply = rpc.call("map_get", get)
        assert reply.header.code == common_pb2.PERMISSION_DENIED
        assert "fenced may not use the map street-map" in reply.header.message
        get.name = "yard-map"
        assert rpc.call("map_get", get).header.code == common_pb2.NOT_FOUND
        denied = https.call("POST", "/v1/map_create", create("street-2"))
        assert denied[0] == 403, denied[2]
        assert b"the names begin with yard" in denied[2]
        assert https.call("POST", "/v1/map_create", create("yard-map"))[0] == 200
        assert names_of(https.call("POST", "/v1/map_list", "{}")[2], "maps") == {
            "yard-map"
        }
        beyond = https.call("POST", "/v1/map_create", create("yard-2"))
        assert beyond[0] == 429, beyond[2]
        assert b"max_maps" in beyond[2]
        asked = json.dumps({"requestId": beyond[1]["X-Request-Id"]})
        assert (
            json.loads(https.call("POST", "/v1/why", asked)[2])["key"]
            == "auth.tokens_file"
        )
        forbidden = https.call("POST", "/v1/scene_drop", json.dumps({"name": "yard"}))
        assert forbidden[0] == 403, forbidden[2]
        assert b"deny=scene_drop" in forbidden[2]
        assert https.call("GET", "/v1/scenes/street/watch")[0] == 403
        text = https.call("GET", "/metrics")[2].decode()
        for start in (
            'voxeld_token_requests_total{token="fenced"} ',
            'voxeld_token_refusals_total{token="fenced",reason="name"} ',
            'voxeld_token_outcomes_total{token="fenced",outcome="refused"} ',
        ):
            assert start in text, start
        issued = https.call("POST", "/v1/token_issue", json.dumps({"scopes": ["read"]}))
        assert issued[0] == 200, issued[2]
    headers = {"Authorization": f"Bearer {json.loads(issued[2])['token']}"}
    with Https(daemon, place.authority) as plain:
        seen = plain.call("POST", "/v1/map_list", "{}", **headers)
        assert names_of(seen[2], "maps") == {"yard-map"}
    # A token that is sent goes before the certificate.
    with Https(daemon, place.authority, place.fenced) as https:
        seen = https.call("POST", "/v1/map_list", "{}", Authorization=bearer("viewer"))
        assert names_of(seen[2], "maps") >= {"yard-map", "street-map"}


@contextlib.contextmanager
def socket_of(
    daemon: Daemon, place: Place, path: str, own: Pair | None, **options: Any
) -> Iterator[ClientConnection]:
    context = ssl.create_default_context(cafile=str(place.authority.certificate))
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    url = f"wss://localhost:{daemon.http_port}{path}"
    limit_s = 20 * SLOW
    with open_socket(
        url,
        ssl=context,
        open_timeout=limit_s,
        close_timeout=limit_s,
        compression=None,
        **options,
    ) as opened:
        yield opened


def test_sockets_over_tls_see_what_the_certificate_may(
    daemon: Daemon, place: Place
) -> None:
    def make(name: str) -> None:
        spec = {"name": name, "spec": {"voxelSizeM": 0.1, "depth": 6}}
        status, _, body = robot.call("POST", "/v1/scene_create", json.dumps(spec))
        assert status == 200, body

    def wait_for(opened: ClientConnection, word: str) -> str:
        seen = ""
        while word not in seen:
            part = opened.recv(timeout=20 * SLOW)
            seen += part if isinstance(part, str) else part.decode("latin-1")
        return seen

    for path, options in (
        ("/v1/watch", {}),
        ("/foxglove", {"subprotocols": ["foxglove.websocket.v1"]}),
    ):
        for own in (None, place.guest):
            with (
                pytest.raises(InvalidStatus) as refused,
                socket_of(daemon, place, path, own, **options),
            ):
                pass
            assert refused.value.response.status_code == 401
    with Https(daemon, place.authority, place.robot) as robot:
        make("street-1")
        make("yard-1")
        with (
            socket_of(daemon, place, "/v1/watch", place.fenced) as watch,
            socket_of(
                daemon,
                place,
                "/foxglove",
                place.fenced,
                subprotocols=["foxglove.websocket.v1"],
            ) as viewer,
        ):
            seen = wait_for(viewer, "/scenes/yard-1/points")
            make("street-2")
            make("yard-2")
            seen += wait_for(viewer, "/scenes/yard-2/points") + wait_for(
                watch, "yard-2"
            )
            assert "street" not in seen


def test_passed_socket_speaks_tls(directory: Path) -> None:
    """The address is the socket's, the scheme is that of listen.http."""
    place = Place(directory)
    held = socket.create_server(("127.0.0.1", 0))

    class Activated(Daemon):
        wrapper = ("bash", "-c", AS_SYSTEMD, str(held.fileno()))
        pass_fds = (held.fileno(),)

    started = Activated(directory / "d", place.mutual(True))
    try:
        assert started.http_port == held.getsockname()[1]
        with Https(started, place.authority, place.robot) as https:
            assert https.call("GET", "/v1/status")[0] == 200
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(held.getsockname(), 20 * SLOW) as plain,
        ):
            plain.sendall(b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"HTTP/1" not in plain.recv(4096)
    finally:
        started.stop()
        held.close()


def test_certificate_of_a_strange_authority_ends_the_handshake(
    daemon: Daemon, place: Place
) -> None:
    strange = place.stranger.sign("robot-7.fleet")
    with (
        pytest.raises((ssl.SSLError, OSError)),
        Https(daemon, place.authority, strange) as https,
    ):
        https.call("GET", "/v1/health/live")
    with (
        nng_client(daemon, place.authority, strange, timeout_s=0.5) as rpc,
        pytest.raises(pynng.exceptions.Timeout),
    ):
        rpc.call("server_info")


def test_certificate_that_is_not_for_clients_is_refused(
    daemon: Daemon, place: Place
) -> None:
    with (
        pytest.raises((ssl.SSLError, OSError)),
        Https(daemon, place.authority, place.server) as https,
    ):
        https.call("GET", "/v1/health/live")


def test_required_certificates_and_files_read_anew(directory: Path) -> None:
    """Standing connections go on at a reload, new ones get the new certificate, a faulty file
    changes nothing, and who lost its authority is gone."""
    place = Place(directory)
    with running(directory / "d", place.mutual(True)) as daemon:
        with (
            pytest.raises((ssl.SSLError, OSError)),
            Https(daemon, place.authority) as https,
        ):
            https.call("GET", "/v1/health/live")
        with (
            nng_client(daemon, place.authority, place.robot) as rpc,
            Https(daemon, place.authority, place.robot) as https,
        ):
            before = https.certificate()
            assert rpc.call("server_info").header.code == OK
            assert https.call("GET", "/v1/status")[0] == 200

            def reload(outcome: str) -> None:
                n = sum(e.get("msg") == outcome for e in daemon.log)
                daemon.signal(signal.SIGHUP)
                wait_until(
                    lambda: sum(e.get("msg") == outcome for e in daemon.log) > n,
                    10,
                    outcome,
                )

            place.install(place.authority.sign_server(60))
            reload("reloaded")
            assert rpc.call("server_info").header.code == OK
            assert https.call("GET", "/v1/status")[0] == 200
            with Https(daemon, place.authority, place.robot) as another:
                renewed = another.certificate()
                assert renewed != before

            shutil.copy(place.guest.key, place.key)
            reload("reload failed, nothing changed")
            with Https(daemon, place.authority, place.robot) as another:
                assert another.certificate() == renewed

            place.install(place.server)
            shutil.copy(place.stranger.certificate, place.client_ca)
            reload("reloaded")
            with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
                https.call("GET", "/v1/status")
            rpc.socket.recv_timeout = int(500 * SLOW)
            with pytest.raises(pynng.exceptions.NNGException):
                rpc.call("server_info")
            strange = place.stranger.sign("robot-7.fleet")
            with Https(daemon, place.authority, strange) as another:
                assert another.call("GET", "/v1/status")[0] == 200
    assert any("no longer accepted" in e.get("msg", "") for e in daemon.log)


def check_config(directory: Path, config: dict[str, Any]) -> tuple[int, str]:
    path = directory / "checked.json"
    path.write_text(json.dumps(config))
    done = subprocess.run(
        [BIN / "voxeld", "--check-config", path],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_check_config_looks_at_the_files(directory: Path) -> None:
    place = Place(directory)
    good = place.mutual(True)
    good["listen"]["rpc"].append(f"ipc://{directory}/run/v.sock")
    good |= {
        "data_dir": str(directory / "data"),
        "audit": {"file": str(directory / "audit")},
    }
    assert check_config(directory, good) == (0, "ok\n")
    assert not (directory / "data").exists()

    def refused(words: str, **sections: Any) -> None:
        config = json.loads(json.dumps(good))
        for name, value in sections.items():
            if isinstance(value, dict):
                config.setdefault(name, {}).update(value)
            else:
                config[name] = value
        code, text = check_config(directory, config)
        assert code == 2, (words, text)
        assert words in text, (words, text)

    missing = str(directory / "no" / "such")
    old = place.authority.sign_server(-1)
    is_open, locked = directory / "open.key", directory / "locked.key"
    shutil.copy(place.server.key, is_open)
    is_open.chmod(0o644)
    subprocess.run(
        ["openssl", "pkey", "-in", place.server.key, "-aes128", "-passout", "pass:x", "-out",
         locked], check=True,
    )  # fmt: skip
    locked.chmod(0o600)
    refused("tls.certificate: cannot open", tls={"certificate": missing})
    refused("tls.certificate", tls={"certificate": str(place.tokens)})
    refused("tls.key: cannot open", tls={"key": missing})
    refused("is not the key of", tls={"key": str(place.guest.key)})
    refused("can be read or written by every user", tls={"key": str(is_open)})
    refused("encrypted", tls={"key": str(locked)})
    refused("ended on", tls={"certificate": str(old.certificate), "key": str(old.key)})
    refused("tls.client_ca", tls={"client_ca": str(place.tokens)})
    refused("tls.client_names[0]", tls={"client_names": ["robot-7.fleet=nobody"]})
    refused("tls.client_names[0]", tls={"client_names": ["robot-7.fleet"]})
    refused("tls.key: is missing", tls={"key": ""})
    refused(
        "tls.certificate: nobody would use it",
        listen={"http": "", "rpc": ["tcp://[::1]:0"]},
    )
    refused("auth.tokens_file", auth={"tokens_file": missing})
    refused("data_dir", data_dir=missing)
    refused("data_dir", data_dir=str(place.tokens))
    refused("networks_dir", networks_dir=missing)
    refused("networks[0]", networks_dir=str(directory), networks=["none"])
    refused("audit.file", audit={"file": missing})
    refused("listen.rpc[0]", listen={"rpc": [f"ipc://{missing}/v.sock"]})
    plain = {"listen": {"http": "https://127.0.0.1:0"}}
    assert "tls.certificate and tls.key" in check_config(directory, plain)[1]
    # Whoever has a certificate of ours needs no token.
    far = place.config(client_ca=str(place.client_ca))
    far["auth"]["tokens_file"] = ""
    far["listen"] = {"rpc": ["tls+tcp://0.0.0.0:0"], "http": "https://0.0.0.0:0"}
    assert check_config(directory, far) == (0, "ok\n")
    far["tls"]["client_required"] = False
    assert "can be reached from other machines" in check_config(directory, far)[1]


def voxelctl(*words: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        [BIN / "voxelctl", *words], capture_output=True, text=True, check=False, env={}
    )
    return done.returncode, done.stdout + done.stderr


def test_our_clients_speak_tls(daemon: Daemon, place: Place) -> None:
    url = f"tls+tcp://localhost:{rpc_port(daemon)}"
    trust = ("--ca-file", place.authority.certificate)
    own = ("--cert-file", place.robot.certificate, "--key-file", place.robot.key)
    both = place.robot.key.with_name("both.pem")
    both.write_text(place.robot.certificate.read_text() + place.robot.key.read_text())
    assert voxelctl("--url", url, *trust, *own, "info")[0] == 0
    assert voxelctl("--url", url, *trust, "--cert-file", both, "info")[0] == 0
    for words, expected in (
        ((*trust, "info"), "UNAUTHENTICATED"),
        (("info",), "tls_ca_file"),
        ((*trust, *own[2:], "info"), "tls_key_file"),
        (("--ca-file", place.tokens, "info"), "tls_ca_file"),
        ((*trust, *own[:2], "--key-file", place.tokens, "info"), "tls_cert_key_file"),
        (("--ca-file", place.stranger.certificate, "info"), "nobody answers"),
    ):
        code, text = voxelctl("--url", url, *words)
        assert code == 1, text
        assert expected in text, text
    assert (
        "curl" in voxelctl("--url", f"https://localhost:{daemon.http_port}", "info")[1]
    )

    ca, certificate, key = (
        str(place.authority.certificate),
        str(place.robot.certificate),
        str(place.robot.key),
    )
    timeout = 20 * SLOW
    with voxeld.connect(
        url,
        "",
        timeout=timeout,
        wait=timeout,
        ca_file=ca,
        cert_file=certificate,
        key_file=key,
    ) as client:
        points = random_points(300_000)
        voxels = client.voxelize(points, 0.1)
        assert voxels.counts.sum() == len(points)
    for options, field in (
        ({}, "ca_file"),
        ({"ca_file": ca, "key_file": key}, "key_file"),
        ({"ca_file": f"{ca}.missing"}, "ca_file"),
        ({"ca_file": ca, "cert_file": certificate, "key_file": str(place.tokens)}, ""),
    ):
        with pytest.raises(voxeld.InvalidArgument) as failed:
            voxeld.connect(url, "", **options)  # type: ignore[arg-type]
        assert failed.value.field == field, failed.value
    with pytest.raises(voxeld.InvalidArgument, match="HTTP"):
        voxeld.connect(f"https://localhost:{daemon.http_port}")
