# SPDX-License-Identifier: Apache-2.0
"""Watching scenes: long polls over nng and HTTP, server-sent events, and who may wait."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from events import Events, rows, watchers
from harness import BIN, SLOW, Daemon, http_call, running, wait_until
from scenes import Scenes, ball, box, spec

SIDE = 64
N_STALLED = 100  # edits that a reader who does not read misses


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("watch")) as daemon:
        yield daemon


@pytest.fixture
def name(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.split("[")[0].removeprefix("test_")[:60].replace("_", "-")
    with Scenes(daemon) as scenes:
        scenes.call("scene_create", name=name, spec=spec(bits=8))
        yield name
        scenes.call("scene_drop", name=name, missing_ok=True)


def apply(seen: np.ndarray, cells: np.ndarray, changes: np.ndarray) -> None:
    """Cells that were added, and those removed, in a grid of truth values."""
    for bit, value in ((1, True), (2, False)):
        at = cells[(changes & bit) != 0]
        seen[at[:, 0], at[:, 1], at[:, 2]] = value


def edit_many(scenes: Scenes, name: str, n: int) -> None:
    rng = np.random.default_rng(7)
    for i in range(n):
        low = rng.integers(0, SIDE - 6, 3).tolist()
        action = "SCENE_ERASE" if i % 3 == 2 else "SCENE_FILL"
        high = [x + int(rng.integers(1, 6)) for x in low]
        material = {} if action == "SCENE_ERASE" else {"material": 1 + i % 5}
        scenes.edit(name, box(low, high, action, **material), in_voxels=True)


def test_watcher_sees_every_edit_of_a_writer(daemon: Daemon, name: str) -> None:
    """A grid that follows the cells told equals the scene, though watcher and writer run freely."""
    n_edits = 40
    seen = np.zeros((SIDE,) * 3, bool)
    with voxeld.connect(daemon.ipc) as client, Scenes(daemon) as scenes:
        watch = client.scene(name).watch(max_bytes=600, duration=60 * SLOW)
        first = next(watch)
        assert (first.kind, first.version) == ("resync", 1)
        writer = threading.Thread(target=edit_many, args=(scenes, name, n_edits))
        writer.start()
        version, n_told, last = 1, 0, None
        for told in watch:
            assert told.kind == "cells"
            assert told.from_version == version, "a version was skipped or told twice"
            assert len(told) <= 600 // 13
            apply(seen, told.cells, told.changes)
            n_told += len(told)
            last = told
            if told.after.to_version == 0:
                assert n_told == told.n_cells
                version, n_told = told.version, 0
            if version == 1 + n_edits:
                break
        writer.join()
        assert last is not None and version == 1 + n_edits
        states, _ = scenes.dense(name, SIDE)
        assert np.array_equal(seen, states == 2)


def test_box_and_level_bound_what_is_told(daemon: Daemon, name: str) -> None:
    with voxeld.connect(daemon.ipc) as client, Scenes(daemon) as scenes:
        scene = client.scene(name)
        watch = scene.watch(
            box=voxeld.Box((0, 0, 0), (16, 16, 16)), in_voxels=True, level=2, duration=30
        )
        next(watch)
        scenes.edit(name, box((40, 40, 40), (44, 44, 44), material=1), in_voxels=True)
        told = next(watch)
        assert (told.kind, len(told), told.version) == ("cells", 0, 2)
        scenes.edit(name, box((2, 0, 0), (7, 1, 1), material=1), in_voxels=True)
        told = next(watch)
        assert told.cells.tolist() == [[0, 0, 0], [1, 0, 0]]
        assert told.cell_size == pytest.approx(0.4)


def test_sleeper_gets_resync_where_versions_are_forgotten(daemon: Daemon) -> None:
    with voxeld.connect(daemon.ipc) as client, Scenes(daemon) as scenes:
        scenes.call(
            "scene_create", name="short", spec=spec(), retention={"versions": 3}
        )
        first = next(client.scene("short").watch(duration=0))
        for i in range(2):
            scenes.edit("short", ball((i, 0, 0), 0.3))
        kept = next(client.scene("short").watch(after=first.after, duration=0))
        assert (kept.kind, kept.from_version, kept.version) == ("cells", 1, 3)
        for i in range(3):
            scenes.edit("short", ball((0, i, 0), 0.3))
        gone = next(client.scene("short").watch(after=first.after, duration=0))
        assert (gone.kind, gone.version) == ("resync", 6)
        scenes.call("scene_drop", name="short")


def test_poll_waits_and_ends_unchanged_without_counting_as_work(daemon: Daemon, name: str) -> None:
    point = {"generation": "0", "version": "1"}
    head = http_call(daemon, "GET", f"/v1/scenes/{name}").json()["scene"]
    point["generation"] = head["generation"]
    body = {"name": name, "after": point, "timeoutMs": 500}
    began = time.monotonic()
    reply = http_call(daemon, "POST", "/v1/scene_watch", body)
    assert reply.status == 200 and reply.json().get("kind", "WATCH_UNCHANGED") == "WATCH_UNCHANGED"
    assert time.monotonic() - began >= 0.5
    total = float(reply.headers["Server-Timing"].rsplit("dur=", 1)[1])
    assert total < 400 * SLOW, "its waiting counts as running"
    slow = http_call(daemon, "GET", "/v1/status").json().get("slow", [])
    assert not [s for s in slow if s["method"] == "scene_watch" and s["totalMs"] > 400 * SLOW]


def test_dropped_and_created_names_are_told(daemon: Daemon) -> None:
    with Scenes(daemon) as scenes, Events(daemon, "/v1/watch") as heads:
        assert heads.response.status == 200
        assert heads.response.headers["Content-Type"] == "text/event-stream"
        event, _, told = heads.next()
        assert event == "heads" and told["isComplete"]
        scenes.call("scene_create", name="comes", spec=spec())
        assert [h["name"] for h in heads.next()[2]["heads"]] == ["comes"]
        with Events(daemon, "/v1/scenes/comes/watch") as events:
            assert events.next()[0] == "resync"
            scenes.call("scene_drop", name="comes")
            assert heads.next()[2]["dropped"] == ["comes"]
            event, number, _ = events.next()
            assert event == "dropped" and number.endswith("-0")
            scenes.call("scene_create", name="comes", spec=spec())
            event, _, told = events.next()
            assert event == "created" and told["next"]["version"] == "1"
            assert heads.next()[2]["heads"][0]["name"] == "comes"
        scenes.call("scene_drop", name="comes")


def test_events_go_on_after_the_last_id(daemon: Daemon, name: str) -> None:
    with Scenes(daemon) as scenes:
        with Events(daemon, f"/v1/scenes/{name}/watch") as events:
            _, last, _ = events.next()
        scenes.edit(name, box((0, 0, 0), (3, 1, 1), material=1), in_voxels=True)
        scenes.edit(name, box((0, 4, 0), (2, 5, 1), material=2), in_voxels=True)
        headers = {"Last-Event-ID": last}
        with Events(daemon, f"/v1/scenes/{name}/watch?max_bytes=39", headers) as events:
            cells: list[list[int]] = []
            while len(cells) < 5:
                event, last, told = events.next()
                assert event == "cells" and told["nCells"] == "5"
                n = int(told["cells"]["shape"][0])
                assert n <= 3
                cells += rows(told["cells"], np.int32, n, 3).tolist()
            assert sorted(cells) == [[0, 0, 0], [0, 4, 0], [1, 0, 0], [1, 4, 0], [2, 0, 0]]
            assert last.split("-")[1] == "3"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/scenes/{}/watch?level=x", "level"),
        ("/v1/scenes/{}/watch?box=1,2,3", "box"),
        ("/v1/scenes/{}/watch?box=0,0,0,nan,1,1", "box"),
        ("/v1/scenes/{}/watch?max_bytes=99999999", "max_bytes"),
        ("/v1/scenes/{}/watch?after=7", "after"),
        ("/v1/scenes/{}/watch?level=1&level=2", "level"),
        ("/v1/scenes/{}/watch?level=22", "level"),
        ("/v1/watch?level=1", "name"),
    ],
)
def test_faulty_streams_are_refused(daemon: Daemon, name: str, path: str, field: str) -> None:
    reply = http_call(daemon, "GET", path.format(name))
    assert reply.status == 400 and reply.json()["field"] == field, reply.body


def test_stream_of_a_missing_scene_is_not_found(daemon: Daemon) -> None:
    assert http_call(daemon, "GET", "/v1/scenes/nobody/watch").status == 404
    assert http_call(daemon, "POST", "/v1/scenes/nobody/watch", {}).status == 405


def test_watchers_are_bounded_and_end_with_their_connections(tmp_path: Path) -> None:
    limits = {"limits": {"watchers": 8, "watchers_per_client": 4}}
    with running(tmp_path, limits) as daemon, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="yard", spec=spec())
        head = scenes.call("scene_get", name="yard").scene
        body = json.dumps(
            {
                "name": "yard",
                "after": {"generation": str(head.generation), "version": "1"},
                "timeoutMs": 30000,
            }
        )
        streams = [Events(daemon, "/v1/scenes/yard/watch") for _ in range(3)]
        waiting = socket.create_connection(("127.0.0.1", daemon.http_port))
        waiting.sendall(
            f"POST /v1/scene_watch HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        wait_until(lambda: watchers(daemon) == 4, 10, "four watch")
        refused = http_call(daemon, "GET", "/v1/watch")
        assert refused.status == 429 and "watchers_per_client is 4" in refused.json()["message"]
        again = http_call(daemon, "POST", "/v1/scene_watch", body, {
            "Content-Type": "application/json"})
        assert again.status == 429
        # Another client, at another address, has places of its own.
        with voxeld.connect(daemon.ipc) as client:
            assert next(client.watch(duration=0)).versions == {"yard": 1}
            assert not list(client.watch(after=voxeld.WatchPoint(0, 0), duration=0))[1:]
        waiting.close()
        wait_until(lambda: watchers(daemon) == 3, 10, "the long poll ends with its connection")
        for stream in streams:
            stream.connection.sock.close()
            stream.__exit__()
        wait_until(lambda: watchers(daemon) == 0, 10, "streams end with their connections")
        assert http_call(daemon, "POST", "/v1/scene_watch", {"name": "yard"}).status == 200


def test_hundred_idle_watchers_cost_nothing_and_all_are_told(tmp_path: Path) -> None:
    """No watcher polls inside the daemon: while nothing changes its CPU time stands still."""
    n, n_of_volume = 100, 30
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="yard", spec=spec())
        body = {"name": "room", "voxelSizeM": 0.1}
        assert http_call(daemon, "POST", "/v1/volume_create", body).status == 200
        with contextlib.ExitStack() as stack:
            of_volume, streams = (
                [stack.enter_context(Events(daemon, path)) for _ in range(k)]
                for path, k in (
                    ("/v1/volumes/room/watch", n_of_volume),
                    ("/v1/scenes/yard/watch", n - n_of_volume),
                )
            )
            for stream in [*of_volume, *streams]:
                assert stream.next()[0] == "resync"
            wait_until(lambda: watchers(daemon) == n, 10, "all wait")
            assert daemon.n_under_way() == 0, "a waiting watch counts as running or queued"
            time.sleep(0.2)
            began, cpu = time.monotonic(), daemon.cpu_s()
            time.sleep(3)
            share = (daemon.cpu_s() - cpu) / (time.monotonic() - began)
            assert share <= 0.10, f"{share:.3f} of a core"
            scenes.edit("yard", ball((0, 0, 0), 0.25))
            for stream in streams:
                event, _, told = stream.next()
                assert event == "cells" and told["toVersion"] == "2"
            body = {"name": "room", "all": True}
            assert http_call(daemon, "POST", "/v1/volume_clear", body).status == 200
            assert [stream.next()[0] for stream in of_volume] == ["blocks"] * n_of_volume


def test_slow_reader_does_not_grow_memory(tmp_path: Path) -> None:
    """A stream that nobody reads holds one event; later it gets the changes of all the time."""
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        scenes.call(
            "scene_create", name="yard", spec=spec(depth=8), retention={"versions": 4096}
        )
        stalled = socket.socket()
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.settimeout(60 * SLOW)
        stalled.connect(("127.0.0.1", daemon.http_port))
        stalled.sendall(
            f"GET /v1/scenes/yard/watch?max_bytes=1000000 HTTP/1.1\r\n"
            f"Host: localhost:{daemon.http_port}\r\n\r\n".encode()
        )
        wait_until(lambda: watchers(daemon) == 1, 10, "it watches")

        def fill(i: int) -> None:
            low = (8 * (i % 32), 8 * (i // 32), 0)
            scenes.edit("yard", box(low, [x + 8 for x in low[:2]] + [240]), in_voxels=True)

        fill(0)
        before = 0
        for i in range(1, N_STALLED):
            fill(i)
            if i == 30:
                before = daemon.resident_bytes()
        grown = daemon.resident_bytes() - before
        assert grown < (16 << 20) * (8 if SLOW > 1 else 1), f"{grown} bytes more"
        reader = stalled.makefile("rb")
        versions: list[int] = []
        while not versions or versions[-1] < N_STALLED + 1:
            line = reader.readline()
            assert line
            if b'"toVersion":"' in line:
                versions.append(int(line.split(b'"toVersion":"')[1].split(b'"')[0]))
        assert len(set(versions)) < N_STALLED // 2, "it was told each version by itself"
        stalled.close()


def test_watch_outlives_a_kill_of_the_daemon(tmp_path: Path) -> None:
    """Durable scene: the watcher goes on with the cells that came while there was no daemon to
    ask; one in memory is told that it is gone."""
    port_file = {"listen": {"rpc": [f"ipc://{tmp_path}/fixed.sock"]}}
    told: list[voxeld.Watched] = []

    def watch(client: voxeld.Client) -> None:
        for item in client.scene("kept").watch(duration=120 * SLOW):
            told.append(item)
            if item.version >= 4:
                return

    first = Daemon(tmp_path, port_file)
    try:
        with voxeld.connect(first.ipc) as client:
            client.scene_create("kept", 0.1, depth=6, durable="always")
            client.scene_create("lost", 0.1, depth=6)
            lost = next(client.scene("lost").watch(duration=0))
            reader = threading.Thread(target=watch, args=(client,))
            reader.start()
            wait_until(lambda: told, 10, "the first reply")
            with Scenes(first) as scenes:
                scenes.edit("kept", ball((0, 0, 0), 0.3))
            wait_until(lambda: told[-1].version == 2, 10, "the first edit")
            first.signal(signal.SIGKILL)
            first.wait()
            second = Daemon(tmp_path, port_file)
            try:
                with Scenes(second) as scenes:
                    scenes.edit("kept", ball((1, 0, 0), 0.3))
                    scenes.edit("kept", ball((0, 1, 0), 0.3))
                reader.join(120 * SLOW)
                assert not reader.is_alive()
                assert [t.kind for t in told[:2]] == ["resync", "cells"]
                seen = np.zeros((SIDE,) * 3, bool)
                for item in told:
                    assert item.kind in ("resync", "cells")
                    apply(seen, item.cells, item.changes)
                with Scenes(second) as scenes:
                    assert np.array_equal(seen, scenes.dense("kept", SIDE)[0] == 2)
                after = next(
                    voxeld.watching.SceneWatches.watch(
                        _Named(client, "lost"), after=lost.after, duration=5
                    )
                )
                assert after.kind == "dropped"
            finally:
                second.stop()
    finally:
        if first.process.poll() is None:
            first.process.kill()


class _Named:
    """A scene that the client knew before the restart."""

    def __init__(self, client: voxeld.Client, name: str) -> None:
        self._client = client
        self.name = name


def test_waiting_watches_end_with_the_daemon(tmp_path: Path) -> None:
    """They hold no shutdown up, and are told why they end."""
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="yard", spec=spec())
        events = Events(daemon, "/v1/scenes/yard/watch")
        assert events.next()[0] == "resync"
        wait_until(lambda: watchers(daemon) == 1, 10, "it waits")
        began = time.monotonic()
        daemon.signal(signal.SIGTERM)
        event, _, told = events.next()
        assert event == "error" and told["code"] == "UNAVAILABLE"
        daemon.wait()
        assert time.monotonic() - began < 10 * SLOW
        events.__exit__()


def test_stream_needs_the_scope_read_and_ends_with_its_token(tmp_path: Path) -> None:
    import hashlib

    tokens = tmp_path / "tokens"
    digest = hashlib.sha256(b"secret").hexdigest()
    tokens.write_text(f"alice read,write {digest}\n")
    tokens.chmod(0o600)
    with running(tmp_path / "d", {"auth": {"tokens_file": str(tokens)}}) as daemon:
        assert http_call(daemon, "GET", "/v1/watch").status == 401
        headers = {"Authorization": "Bearer secret"}
        with Events(daemon, "/v1/watch", headers) as events:
            assert events.next()[0] == "heads"
            tokens.write_text(f"bob read {hashlib.sha256(b'other').hexdigest()}\n")
            daemon.signal(signal.SIGHUP)
            wait_until(lambda: daemon.find("reloaded"), 10, "the tokens are read anew")
            with Scenes(daemon) as scenes:  # over ipc the owner needs no token
                scenes.call("scene_create", name="yard", spec=spec())
                told = [events.next() for _ in range(2)]
            assert told[0][0] in ("heads", "error")
            assert told[-1][0] == "error" and told[-1][2]["code"] == "UNAUTHENTICATED"


def test_voxelctl_watch_prints_changes(daemon: Daemon, name: str) -> None:
    with Scenes(daemon) as scenes:
        run = subprocess.Popen(
            [BIN / "voxelctl", "--url", daemon.ipc, "watch", name, "--json", "--count", "3"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert run.stdout is not None
        lines = (json.loads(line) for line in run.stdout)
        assert next(lines)["kind"] == "resync"
        scenes.edit(name, box((1, 2, 3), (2, 3, 5), material=1), in_voxels=True)
        told = next(lines)
        assert told["cells"] == [[1, 2, 3], [1, 2, 4]] and told["changes"] == [1, 1]
        scenes.call("scene_drop", name=name)
        assert next(lines)["kind"] == "dropped"
        assert run.wait(30 * SLOW) == 0
        text = subprocess.run(
            [BIN / "voxelctl", "--url", daemon.ipc, "watch", "--count", "1"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert all(": head, version " in line for line in text.splitlines())


def test_many_watchers_at_once_leave_the_queue_to_others(tmp_path: Path) -> None:
    """When sixty are woken at once, the queue of four still takes requests."""
    config = {"limits": {"queue": 4}}
    with running(tmp_path, config) as daemon, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="yard", spec=spec())
        with contextlib.ExitStack() as stack:
            streams = [
                stack.enter_context(Events(daemon, "/v1/scenes/yard/watch")) for _ in range(60)
            ]
            for stream in streams:
                stream.next()
            wait_until(lambda: watchers(daemon) == 60, 10, "all wait")
            for i in itertools.count(1):
                scenes.edit("yard", ball((0.1 * i, 0, 0), 0.1))
                if i == 10:
                    break
            for stream in streams:
                while stream.next()[2]["toVersion"] != "11":
                    pass
