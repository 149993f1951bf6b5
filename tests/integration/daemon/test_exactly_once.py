# SPDX-License-Identifier: Apache-2.0
"""A request that changes something takes effect once, whatever sockets and robots do."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from harness import (
    OK,
    SLOW,
    Daemon,
    RawReq,
    Rpc,
    array_of,
    common_pb2,
    hashmap_pb2,
    http_call,
    rpc_pb2,
    running,
    tensor_of,
    wait_until,
)
from maps import COUNT, Maps, rows

KEYS = tensor_of(np.arange(300, dtype=np.int32).reshape(100, 3))
SPEC = hashmap_pb2.MapSpec(values=[COUNT])


def addition(name: str, n: int = 100, repeat: int = 1) -> hashmap_pb2.MapUpdateRequest:
    """Adds 1 to the counts of n keys, `repeat` times over in one request (to take long)."""
    keys = np.tile(np.arange(3 * n, dtype=np.int32).reshape(n, 3), (repeat, 1))
    return hashmap_pb2.MapUpdateRequest(
        name=name,
        keys=tensor_of(keys),
        values=rows(count=np.ones(len(keys), np.uint32)),
        combine=hashmap_pb2.MAP_ADD,
        insert_missing=True,
    )


def counts(maps: Maps, name: str) -> set[int]:
    found = maps.call("map_find", name=name, keys=KEYS, values=["count"])
    return set(array_of(found.values[0].rows).tolist())


RESENDER = """
import os, pickle, sys, pynng
url, timeout, requests = pickle.load(sys.stdin.buffer)
socket = pynng.Req0(dial=url, resend_time=5, recv_timeout=timeout)
replies = []
for request in requests:
    socket.send(request)
    replies.append(socket.recv())
pickle.dump(replies, sys.stdout.buffer)
sys.stdout.buffer.flush()
os._exit(0)
"""


def resend(url: str, requests: list[bytes]) -> list[bytes]:
    """Sends over a socket that sends again every 5 ms. It runs in a process of its own, because
    closing such a socket while it sends can hang in nng."""
    done = subprocess.run(
        [sys.executable, "-c", RESENDER],
        input=pickle.dumps((url, int(20000 * SLOW), requests)),
        stdout=subprocess.PIPE,
        timeout=60 * SLOW,
        check=True,
    )
    return pickle.loads(done.stdout)


def request_of(message: Any, method: str, **header: Any) -> rpc_pb2.Request:
    request = rpc_pb2.Request(header=rpc_pb2.RequestHeader(**header))
    getattr(request, method).CopyFrom(message)
    return request


def test_repeated_request_gets_the_first_outcome(daemon: Daemon) -> None:
    with Maps(daemon) as maps:
        maps.call("map_create", name="a", spec=SPEC)
        header = {"client_id": "robot", "sequence": 5}
        first = maps.rpc.call("map_update", addition("a"), **header)
        assert first.header.code == OK and not first.header.replayed
        for _ in range(3):
            again = maps.rpc.call("map_update", addition("a"), **header)
            assert again.header.replayed and not again.header.arrays_dropped
            assert again.map_update == first.map_update
        assert counts(maps, "a") == {1}
        other = maps.rpc.call("map_update", addition("a", 50), **header)
        assert other.header.code == common_pb2.INVALID_ARGUMENT
        assert other.header.field == "header.sequence"
        # A drop that is repeated after another map got the name leaves that map alone.
        drop = hashmap_pb2.MapDropRequest(name="a")
        assert maps.rpc.call("map_drop", drop, client_id="robot", sequence=6).map_drop.existed
        maps.call("map_create", name="a", spec=SPEC)
        again = maps.rpc.call("map_drop", drop, client_id="robot", sequence=6)
        assert again.header.replayed and again.map_drop.existed
        assert maps.call("map_get", name="a").map.n_entries == 0
        maps.call("map_drop", name="a")


def test_large_reply_is_repeated_without_its_arrays(daemon: Daemon) -> None:
    with Maps(daemon) as maps:
        maps.call("map_create", name="big", spec=SPEC)
        header = {"client_id": "large", "sequence": 1}
        message = hashmap_pb2.MapInsertRequest(
            name="big", keys=tensor_of(np.arange(6000, dtype=np.int32).reshape(2000, 3))
        )
        first = maps.rpc.call("map_insert", message, **header)
        assert len(array_of(first.map_insert.indices)) == 2000

        def repeat() -> Any:  # for a moment it gets what the first one got, whole
            reply = maps.rpc.call("map_insert", message, **header)
            assert reply.header.replayed
            return reply if reply.header.arrays_dropped else None

        again = wait_until(repeat, 5, "a reply without its arrays")
        assert again.map_insert.n_new == 2000 and not again.map_insert.indices.data
        maps.call("map_drop", name="big")


def test_numbers_are_required_over_nng(daemon: Daemon) -> None:
    with Rpc(daemon.ipc) as rpc:
        for header, field in (
            ({}, "header.client_id"),
            ({"client_id": "robot"}, "header.sequence"),
            ({"sequence": 1}, "header.client_id"),
        ):
            reply = rpc.call("map_create", hashmap_pb2.MapCreateRequest(name="x"), **header)
            assert reply.header.code == common_pb2.INVALID_ARGUMENT
            assert reply.header.field == field
        assert not rpc.call("map_list").map_list.maps  # reading needs none


def test_plain_req_socket_that_sends_again_and_again_has_one_effect(daemon: Daemon) -> None:
    with Maps(daemon) as maps:
        maps.call("map_create", name="r", spec=SPEC)
        n_times = 10
        requests = [
            request_of(
                addition("r", 100, 2000), "map_update", client_id="resender",
                sequence=sequence,
            ).SerializeToString()
            for sequence in range(1, n_times + 1)
        ]
        replies = resend(daemon.ipc, requests)
        assert len(replies) == n_times
        for response in map(rpc_pb2.Response.FromString, replies):
            assert response.header.code == OK, response.header
            assert response.map_update.n_updated == 200000
        assert counts(maps, "r") == {2000 * n_times}
        maps.call("map_drop", name="r")


def test_duplicates_from_many_connections_wait_for_one_effect(daemon: Daemon) -> None:
    with Maps(daemon) as maps:
        maps.call("map_create", name="d", spec=SPEC)
        request = request_of(
            addition("d", 100, 5000), "map_update", client_id="many", sequence=1
        )
        sockets = [RawReq(daemon.tcp) for _ in range(8)]
        for raw in sockets:
            raw.send(request)
        replies = [raw.receive() for raw in sockets]
        assert all(r.header.code == OK for r in replies), replies[0].header
        assert sum(not r.header.replayed for r in replies) == 1
        assert {r.map_update.n_updated for r in replies} == {500000}
        for raw in sockets:
            raw.socket.close()
        assert counts(maps, "d") == {5000}
        maps.call("map_drop", name="d")


def test_connection_lost_before_the_reply_learns_the_outcome_later(daemon: Daemon) -> None:
    with Maps(daemon) as maps:
        maps.call("map_create", name="l", spec=SPEC)
        request = request_of(
            addition("l", 100, 3000), "map_update", client_id="lost", sequence=1
        )
        raw = RawReq(daemon.ipc)
        raw.send(request)
        raw.socket.close()
        with RawReq(daemon.ipc) as second:
            second.send(request)
            reply = second.receive()
        assert reply.header.code == OK, reply.header
        assert counts(maps, "l") == {3000}
        maps.call("map_drop", name="l")


def test_expired_and_asked_again_has_one_effect(daemon: Daemon) -> None:
    with Maps(daemon) as maps:
        maps.call("map_create", name="e", spec=SPEC)
        n_expired = 0
        for sequence in range(1, 21):
            message = addition("e", 100, 500)
            header = {"client_id": "late", "sequence": sequence}
            reply = maps.rpc.call("map_update", message, timeout_ms=1, **header)
            while reply.header.code == common_pb2.DEADLINE_EXCEEDED:
                n_expired += 1
                reply = maps.rpc.call("map_update", message, **header)
            assert reply.header.code == OK, reply.header
            assert counts(maps, "e") == {500 * sequence}
        assert n_expired > 0
        maps.call("map_drop", name="e")


def test_another_token_with_the_same_client_id_is_another_client(directory: Path) -> None:
    tokens = {name: os.urandom(8).hex() for name in ("one", "two", "reader")}
    lines = [
        f"{n} {'read' if n == 'reader' else 'read,write'} {hashlib.sha256(t.encode()).hexdigest()}"
        for n, t in tokens.items()
    ]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokens").write_text("\n".join(lines) + "\n")
    (directory / "tokens").chmod(0o600)
    config = {"auth": {"tokens_file": str(directory / "tokens")}}
    with running(directory, config) as daemon, Rpc(daemon.tcp) as rpc:
        header = {"client_id": "robot", "sequence": 1}
        create = hashmap_pb2.MapCreateRequest(name="t", spec=SPEC)
        assert rpc.call("map_create", create, token=tokens["one"], **header).header.code == OK
        for sequence in (2, 3):
            for token in ("one", "two", "one"):
                reply = rpc.call(
                    "map_update", addition("t"), token=tokens[token], client_id="robot",
                    sequence=sequence,
                )
                assert reply.header.code == OK, reply.header
        find = hashmap_pb2.MapFindRequest(name="t", keys=KEYS, values=["count"])
        found = rpc.call("map_find", find, token=tokens["reader"]).map_find
        assert set(array_of(found.values[0].rows).tolist()) == {4}
        refused = rpc.call("map_update", addition("t"), token=tokens["reader"], **header)
        assert refused.header.code == common_pb2.PERMISSION_DENIED


def test_restart_forgets(directory: Path) -> None:
    create = hashmap_pb2.MapCreateRequest(name="m")
    for _ in range(2):
        with running(directory) as daemon, Rpc(daemon.ipc) as rpc:
            reply = rpc.call("map_create", create, client_id="robot", sequence=1)
            assert reply.header.code == OK
            assert not reply.header.replayed and not reply.map_create.existed


def test_idempotency_key_over_http(daemon: Daemon) -> None:
    body = {"name": "h", "spec": {"values": [{"name": "count", "dtype": "UINT64"}]}}
    assert http_call(daemon, "POST", "/v1/map_create", body).status == 200
    add = {
        "name": "h", "keys": {"shape": [1, 3], "values": [0, 1, 2]}, "combine": "MAP_ADD",
        "values": [{"name": "count", "rows": {"shape": [1], "values": [1]}}],
        "insertMissing": True,
    }
    with_key = {"Idempotency-Key": "order 7/a"}
    first = http_call(daemon, "POST", "/v1/map_update", add, with_key)
    again = http_call(daemon, "POST", "/v1/map_update", add, with_key)
    assert first.status == again.status == 200
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true" and again.json() == first.json()
    robot = {**with_key, "X-Voxeld-Client-Id": "robot"}
    assert http_call(daemon, "POST", "/v1/map_update", add, robot).status == 200
    assert http_call(daemon, "POST", "/v1/map_update", add).status == 200  # no key, no memory
    with Maps(daemon) as maps:
        assert 3 in counts(maps, "h")
    other = http_call(daemon, "POST", "/v1/map_drop", {"name": "h"}, with_key)
    assert other.status == 400 and json.loads(other.body)["field"] == "Idempotency-Key"
    assert http_call(daemon, "POST", "/v1/map_drop", {"name": "h"}).status == 200


def test_change_begun_before_the_end_is_answered(directory: Path) -> None:
    with running(directory) as daemon:
        with Maps(daemon) as maps:
            maps.call("map_create", name="m", spec=SPEC)
        daemon.settle()
        raw = RawReq(daemon.ipc)
        raw.send(
            request_of(addition("m", 100, 5000), "map_update", client_id="z", sequence=1)
        )
        wait_until(
            lambda: daemon.n_under_way() + daemon.n_answered("map_update") > 0, 5, "it has come"
        )
        daemon.signal(15)
        assert raw.receive().header.code == OK
        raw.socket.close()
        assert daemon.wait() == 0
