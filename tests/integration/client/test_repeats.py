# SPDX-License-Identifier: Apache-2.0
"""Clients do not send again what cannot be in time: what the server has given up at its deadline.
What goes on there is asked for by its sequence, and runs once."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pynng
import pytest
import voxeld
from harness import BIN, SLOW, Daemon, common_pb2, http_call, rpc_pb2, running

FIELD = "header.timeout_ms"


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as connected:
        yield connected


class Refuser:
    """A peer that gives every request up, as a server does at its deadline."""

    def __init__(self, directory: Path, field: str) -> None:
        self.url = f"ipc://{directory}/peer.sock"
        self.seen: collections.Counter[str] = collections.Counter()
        self.field = field
        self.socket = pynng.Rep0(listen=self.url, recv_timeout=-1)
        self.socket.recv_max_size = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self) -> Refuser:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.thread.join(60)

    def serve(self) -> None:
        with contextlib.suppress(pynng.Closed):
            while True:
                request = rpc_pb2.Request.FromString(self.socket.recv())
                self.seen[request.WhichOneof("method")] += 1
                header = rpc_pb2.ResponseHeader(
                    code=common_pb2.DEADLINE_EXCEEDED, field=self.field, message="not done"
                )
                self.socket.send(rpc_pb2.Response(header=header).SerializeToString())


@pytest.fixture
def scan(directory: Path) -> Path:
    np.save(directory / "scan.npy", np.random.default_rng(1).random((100, 3), np.float32))
    return directory / "scan.npy"


def test_voxelctl_does_not_repeat_what_the_server_gave_up(directory: Path, scan: Path) -> None:
    with Refuser(directory, FIELD) as peer:
        done = subprocess.run(
            [BIN / "voxelctl", "scene", "integrate", scan, "--scene", "yard", "--timeout", "20",
             "--retry", "60"],
            env={**os.environ, "VOXELD_URL": peer.url}, capture_output=True, text=True,
            timeout=300 * SLOW, check=False,
        )  # fmt: skip
    assert done.returncode == 1 and f"DEADLINE_EXCEEDED ({FIELD})" in done.stderr, done.stderr
    assert "--timeout SECONDS waits longer" in done.stderr
    assert peer.seen["scene_integrate"] == 1


@pytest.mark.parametrize(("field", "n_least", "n_most"), [(FIELD, 1, 1), ("", 2, 10**9)])
def test_python_does_not_repeat_what_the_server_gave_up(
    directory: Path, field: str, n_least: int, n_most: int
) -> None:
    with (
        Refuser(directory, field) as peer,
        voxeld.connect(peer.url, timeout=20) as client,
        pytest.raises(voxeld.DeadlineExceeded) as caught,
    ):
        voxeld.repeat(lambda n: client.map_drop("seen", sequence=n), seconds=1)
    assert caught.value.field == field
    assert n_least <= peer.seen["map_drop"] <= n_most


def far_points(n: int) -> npt.NDArray[np.float32]:
    directions = np.random.default_rng(1).normal(size=(n, 3))
    return (directions / np.linalg.norm(directions, axis=1)[:, None] * 40).astype(np.float32)


def test_longest_wait_names_the_key_that_allows_more(directory: Path) -> None:
    """No option of voxelctl helps where a request waited as long as the daemon allows."""
    np.save(directory / "far.npy", far_points(200_000))
    config = {"limits": {"timeout_ms": 1000, "max_timeout_ms": 2000}}
    with running(directory / "d", config) as daemon:

        def integrate(*words: str) -> str:
            done = subprocess.run(
                [BIN / "voxelctl", "scene", "integrate", directory / "far.npy", "--scene", "yard",
                 *words],
                env={**os.environ, "VOXELD_URL": daemon.ipc}, capture_output=True, text=True,
                timeout=300 * SLOW, check=False,
            )  # fmt: skip
            assert done.returncode == 1, done
            return done.stderr

        with voxeld.connect(daemon.ipc, timeout=2) as client:
            client.scene_create("yard", 0.02, depth=13, track_free=True)
        short = integrate("--timeout", "1")
        assert "may be up to 2000" in short and "--timeout SECONDS waits longer" in short
        # The daemon's answer comes first unless the machine is so busy that it is late by itself.
        answers = (integrate() for _ in range(20))
        longest = next(text for text in answers if "no reply within" not in text)
        assert "not done within 2000 ms" in longest and "--timeout" not in longest
        assert "limits.max_timeout_ms of the daemon's config" in longest
        above = integrate("--timeout", "3")
        assert "is 2900, at most 2000 is allowed (limits.max_timeout_ms)" in above


def test_daemon_gives_up_a_scan_that_is_late(daemon: Daemon, client: voxeld.Client) -> None:
    """The field says so. The sender waits longer than its deadline, so that it gets the answer."""
    points = far_points(8_000)
    yard = client.scene_create("given-up", 0.02, depth=13, track_free=True)
    file = io.BytesIO()
    np.save(file, points)
    headers = {"X-Voxeld-Timeout-Ms": "50", "Content-Type": "application/octet-stream"}
    reply = http_call(
        daemon, "POST", "/v1/scene_integrate?name=given-up&format=npy&carve=true",
        file.getvalue(), headers, timeout_s=120,
    )  # fmt: skip
    assert reply.status == 504, reply.body
    assert reply.json()["field"] == FIELD
    assert yard.info().n_occupied == 0
    yard.drop()


def test_what_goes_on_is_asked_for_and_runs_once(client: voxeld.Client) -> None:
    """An update of a map runs to its end once it has begun, which the answer says."""
    keys = np.random.default_rng(2).integers(0, 2000, (1_000_000, 3)).astype(np.int32)
    ones = {"count": np.ones(len(keys), np.uint64)}
    counts = client.map_create("goes-on", {"count": np.uint64})
    n_done = 0
    for timeout in np.geomspace(0.02, 1, 16):  # it begins before some of these, and ends behind
        try:
            counts.update(keys, ones, "add", insert_missing=True, timeout=float(timeout))
            n_done += 1
        except voxeld.DeadlineExceeded as e:
            if e.field == FIELD:
                continue  # it had not begun
            counts.update(keys, ones, "add", insert_missing=True, sequence=e.sequence)
            n_done += 1
            if "it goes on" in e.message:
                break
    assert n_done > 0
    assert counts.export("count").values["count"].sum() == n_done * len(keys)
    counts.drop()
