# SPDX-License-Identifier: Apache-2.0
"""Overload, deadlines, fairness and superseding: what a busy daemon does."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pynng
import pytest
from harness import (
    OK,
    SLOW,
    Daemon,
    Rpc,
    admin_request,
    check_fast,
    cloud_of,
    common_pb2,
    http_call,
    random_points,
    running,
    voxelize_request,
    wait_until,
)

# So many points a stage keep a self_test's lane busy for tens of milliseconds, so that requests
# that come meanwhile really wait.
LONG_STAGE = 1000000
SMALL = voxelize_request(cloud_of(random_points(500)), size=0.5)


@contextlib.contextmanager
def clients(url: str, n: int) -> Iterator[list[Rpc]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Rpc(url)) for _ in range(n)]


def test_full_queue_answers_unavailable_at_once(directory: Path) -> None:
    n_clients = 24
    long_ms = int(3000 + 100 * SLOW)  # longer than it may take to send and to be refused
    with (
        running(directory, {"limits": {"queue": 4}}) as daemon,
        clients(daemon.ipc, n_clients) as all_clients,
    ):
        start = time.monotonic()
        for client in all_clients:
            client.send("self_test", admin_request(long_ms, LONG_STAGE))
        refused_after = []
        codes = []

        def receive(client: Rpc) -> None:
            response = client.receive()
            codes.append(response.header.code)
            if response.header.code == common_pb2.UNAVAILABLE:
                refused_after.append(time.monotonic() - start)
                assert "queue" in response.header.message

        with ThreadPoolExecutor(n_clients) as pool:
            list(pool.map(receive, all_clients))
        assert set(codes) == {OK, common_pb2.UNAVAILABLE}
        assert codes.count(OK) >= 4
        assert codes.count(common_pb2.UNAVAILABLE) >= n_clients - 4 - 8
        assert max(refused_after) < long_ms / 1000
        assert all_clients[0].call("voxelize", SMALL).header.code == OK


def test_full_queue_over_http_is_a_503_with_retry_after(directory: Path) -> None:
    body = {"durationMs": 2000, "nPoints": LONG_STAGE}
    with running(directory, {"limits": {"queue": 2}}) as daemon:
        with ThreadPoolExecutor(16) as pool:
            replies = list(
                pool.map(
                    lambda _: http_call(daemon, "POST", "/v1/self_test", body), range(16)
                )
            )
        statuses = {r.status for r in replies}
        assert statuses == {200, 503}
        refused = next(r for r in replies if r.status == 503)
        assert refused.headers["Retry-After"] == "1"
        assert refused.json()["code"] == "UNAVAILABLE"


def test_deadline_is_answered_on_time_while_others_run(daemon: Daemon) -> None:
    timeout_ms = int(200 * SLOW)
    endless_ms = min(int(20000 * SLOW), 60000)  # as long as a self_test may be

    def lateness_beside_another() -> float:
        with clients(daemon.ipc, 3) as (blocker, late, other):
            daemon.settle()
            blocker.send("self_test", admin_request(2000))
            wait_until(lambda: daemon.n_under_way() == 1, 5, "the blocker is under way")
            start = time.monotonic()
            response = late.call(
                "self_test", admin_request(endless_ms), timeout_ms=timeout_ms
            )
            waited = time.monotonic() - start
            assert response.header.code == common_pb2.DEADLINE_EXCEEDED
            assert timeout_ms / 1000 * 0.95 <= waited
            assert other.call("voxelize", SMALL).header.code == OK
            assert blocker.receive().header.code == OK
        return waited - timeout_ms / 1000

    def lateness_over_http() -> float:
        start = time.monotonic()
        reply = http_call(
            daemon, "POST", "/v1/self_test", {"durationMs": endless_ms},
            {"X-Voxeld-Timeout-Ms": str(timeout_ms)},
        )  # fmt: skip
        assert reply.status == 504
        assert reply.json()["code"] == "DEADLINE_EXCEEDED"
        return time.monotonic() - start - timeout_ms / 1000

    check_fast(lateness_beside_another, 0.15)
    check_fast(lateness_over_http, 0.15)


def test_small_requests_stay_fast_beside_long_ones(daemon: Daemon) -> None:
    big = voxelize_request(cloud_of(random_points(1000000, extent=60)), size=0.1)

    def median_wait() -> float:
        waits: list[float] = []
        with clients(daemon.ipc, 3) as (tester, bulk, small):
            assert small.call("voxelize", SMALL).header.code == OK
            tester.send("self_test", admin_request(2000))
            bulk.send("voxelize", big)
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                start = time.monotonic()
                assert small.call("voxelize", SMALL).header.code == OK
                waits.append(time.monotonic() - start)
                time.sleep(0.02)
            assert bulk.receive().header.code == OK
            assert tester.receive().header.code == OK
        return sorted(waits)[len(waits) // 2]

    # A request that waited for the long ones would do so for most of their two seconds.
    check_fast(median_wait, 0.1)


@pytest.mark.parametrize("transport", ["rpc", "http"])
def test_newer_requests_of_a_stream_supersede_waiting_ones(
    daemon: Daemon, transport: str
) -> None:
    n = 12
    daemon.settle()
    n_before = daemon.n_answered("self_test")
    results: list[tuple[bool, str]] = []

    def await_all_but_the_newest() -> None:
        """Requests that are sent at nearly one time over many connections may arrive in any order.
        """
        wait_until(
            lambda: daemon.n_answered("self_test") - n_before + daemon.n_under_way() >= n - 1,
            5, "the others have come",
        )  # fmt: skip

    if transport == "rpc":
        with clients(daemon.ipc, n) as all_clients:
            for i, client in enumerate(all_clients):
                if i == n - 1:
                    await_all_but_the_newest()
                client.send(
                    "self_test", admin_request(1000, LONG_STAGE), client_id="robot",
                    stream="front", keep_last=1, request_id=f"scan-{i}",
                )  # fmt: skip
            for client in all_clients:
                header = client.receive().header
                assert header.code in (OK, common_pb2.ABORTED), header
                results.append((header.code == OK, header.message))
    else:
        headers = {
            "X-Voxeld-Client-Id": "robot",
            "X-Voxeld-Stream": "front",
            "X-Voxeld-Keep-Last": "1",
        }

        def call(i: int) -> tuple[bool, str]:
            body = {"durationMs": 1000, "nPoints": LONG_STAGE}
            if i == n - 1:
                await_all_but_the_newest()
            reply = http_call(daemon, "POST", "/v1/self_test", body, headers)
            assert reply.status in (200, 409)
            return reply.status == 200, reply.json().get("message", "")

        with ThreadPoolExecutor(n) as pool:
            results = list(pool.map(call, range(n)))
    assert results[-1][0], "the newest is always run"
    superseded = [message for ok, message in results if not ok]
    assert len(superseded) >= 3, results
    assert all("superseded" in message for message in superseded)


def test_superseding_touches_no_other_stream_or_client(daemon: Daemon) -> None:
    with clients(daemon.ipc, 6) as all_clients:
        for i, client in enumerate(all_clients):
            client.send(
                "self_test", admin_request(50), client_id=f"robot{i % 2}",
                stream=f"camera{i // 2}", keep_last=1,
            )  # fmt: skip
        for client in all_clients:
            assert client.receive().header.code == OK


def test_concurrent_clients_on_all_transports_all_get_their_own_reply(
    daemon: Daemon,
) -> None:
    n_threads, n_each = 8, 25
    failures: list[str] = []

    def check(index: int) -> None:
        points = random_points(200 + index, seed=index)
        request = voxelize_request(cloud_of(points), size=1e-3)
        url = daemon.ipc if index % 2 else daemon.tcp
        with Rpc(url) as client:
            for i in range(n_each):
                name = f"r-{index}-{i}"
                response = client.call("voxelize", request, request_id=name)
                if (
                    response.header.code != OK
                    or response.header.request_id != name
                    or response.voxelize.items[0].n_points != len(points)
                ):
                    failures.append(f"{name}: {response.header}")
                reply = http_call(
                    daemon, "POST", "/v1/voxelize", request.SerializeToString(),
                    {"Content-Type": "application/x-protobuf", "X-Request-Id": name,
                     "Accept": "application/json"},
                )  # fmt: skip
                if reply.status != 200 or reply.headers["X-Request-Id"] != name:
                    failures.append(f"{name} over HTTP: {reply.status} {reply.body[:200]!r}")

    threads = [threading.Thread(target=check, args=(i,)) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:5]


def test_connections_over_the_cap_are_turned_away(directory: Path) -> None:
    with running(directory, {"limits": {"connections": 8}}) as daemon:
        with clients(daemon.ipc, 8) as first:
            for client in first:
                assert client.call("server_info").header.code == OK
            with (
                pytest.raises(pynng.NNGException),
                Rpc(daemon.ipc, timeout_s=0.5) as too_many,
            ):
                too_many.call("server_info")
            assert first[0].call("server_info").header.code == OK

        def has_room() -> bool:
            try:
                with Rpc(daemon.ipc, timeout_s=1) as later:
                    return later.call("server_info").header.code == OK
            except pynng.NNGException:  # the daemon has not noticed yet that others are gone
                return False

        wait_until(has_room, 5, "a new connection is taken")


def test_a_client_that_never_reads_harms_nobody(daemon: Daemon) -> None:
    points = voxelize_request(cloud_of(random_points(200000)), size=0.01)
    with clients(daemon.tcp, 4) as mute:
        for client in mute:
            client.send("voxelize", points)
        with Rpc(daemon.tcp) as other:
            assert other.call("voxelize", SMALL).header.code == OK
