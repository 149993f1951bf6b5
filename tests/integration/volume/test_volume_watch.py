# SPDX-License-Identifier: Apache-2.0
"""Watching volumes: what a watcher puts together of parts equals the whole surface, bit for bit."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from depth_scene import CAMERA, shoot
from events import Events, rows, watchers
from harness import BIN, SLOW, Daemon, Rpc, http_call, wait_until
from voxeld import GrowingSurface, Volume, VolumeBox, VolumeWatched
from voxeld.v1 import common_pb2, watch_pb2
from websockets.sync.client import connect

SIZE = 0.02
TRUNCATION = 0.08
WAIT_S = 60 * SLOW
N_FRAMES = 8


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        for info in connected.volumes():
            connected.volume_drop(info.name)
        yield connected


def make(client: voxeld.Client, name: str = "v", **more: Any) -> Volume:
    return client.volume_create(name, SIZE, truncation_m=TRUNCATION, **more)


def integrate(volume: Volume, i: int) -> None:
    shot = shoot(i)
    colour = shot.colour if volume.info().colour else None
    volume.integrate(shot.depth, CAMERA, shot.pose, colour=colour)


def rows_of(surface: Any, rows: Any) -> tuple[bytes, ...]:
    arrays = [surface.vertices[rows], surface.normals[rows]]
    arrays += [a[rows] for a in (surface.colours, surface.labels) if len(a)]
    return tuple(a.tobytes() for a in arrays)


def by_block(surface: voxeld.Surface) -> dict[tuple[int, ...], tuple[bytes, ...]]:
    """All that an extracted surface says of each block that has one."""
    ends = surface.blocks[:, 3].tolist()
    return {
        tuple(key): rows_of(surface, surface.triangles[a:b].reshape(-1))
        for key, a, b in zip(surface.blocks[:, :3].tolist(), [0, *ends], ends, strict=False)
        if b > a
    }


def seen_by(growing: GrowingSurface) -> dict[tuple[int, ...], tuple[bytes, ...]]:
    return {key: rows_of(block, slice(None)) for key, block in growing.blocks.items()}


def follow(parts: Iterator[VolumeWatched], growing: GrowingSurface, version: int) -> list[str]:
    """Takes parts until the surface is whole at this version; returns their kinds."""
    kinds = []
    for part in parts:
        growing.take(part)
        kinds.append(part.kind)
        if growing.version == version:
            return kinds
    raise AssertionError(f"the watch ended at {growing.version} of {version}: {kinds}")


@pytest.mark.parametrize("block", [8, 16])
def test_parts_while_frames_arrive_make_the_whole_surface(
    client: voxeld.Client, block: int
) -> None:
    """Two watchers, one of whom reads little at a time, and frames that wait for neither."""
    volume = make(client, colour=True, block=block)
    growing = [GrowingSurface(), GrowingSurface()]
    watches = [volume.watch(max_bytes=n, duration=WAIT_S) for n in (0, 20000)]
    for watch, surface in zip(watches, growing, strict=True):
        first = next(watch)
        surface.take(first)
        assert (first.kind, len(first), first.is_last) == ("resync", 0, True)
        assert first.voxel_size_m == SIZE and first.block == block
    last = volume.info().stamp + N_FRAMES + 1  # each call is one version

    def write() -> None:
        for i in range(N_FRAMES):
            integrate(volume, i)
        # The upper half of blocks, on whose last voxels the normals of others depend.
        edge = block * SIZE
        volume.clear(VolumeBox((-edge / 2, -9, -9), (0, 9, 9)))

    writer = threading.Thread(target=write)
    writer.start()
    versions: list[list[int]] = [[], []]

    def read(i: int) -> None:
        for part in watches[i]:
            growing[i].take(part)
            versions[i].append(part.version)
            assert part.kind == "blocks" and part.from_version < part.version
            arrays = (part.vertices, part.normals, part.colours, part.triangles, part.blocks)
            n_bytes = sum(a.nbytes for a in arrays)
            assert i == 0 or n_bytes <= 20000 or len(part) == 1
            if growing[i].version == last:
                return

    readers = [threading.Thread(target=read, args=(i,)) for i in range(2)]
    for thread in readers:
        thread.start()
    for thread in (writer, *readers):
        thread.join(WAIT_S)
        assert not thread.is_alive()
    whole = volume.extract()
    assert whole.n_triangles > 1000
    for i in range(2):
        assert growing[i].version == whole.stamp
        assert seen_by(growing[i]) == by_block(whole)
        assert versions[i] == sorted(versions[i])
    assert len(versions[1]) > len(versions[0]), "few bytes at a time are no more parts"


def test_box_weight_and_keys_bound_what_is_told(client: voxeld.Client) -> None:
    volume = make(client)
    for i in range(3):
        integrate(volume, i)
    low, high = (-0.3, -0.3, 0.5), (0.3, 0.3, 2.0)
    options: dict[str, Any] = {"box": VolumeBox(low, high), "min_weight": 2}
    growing, keys = GrowingSurface(), set()
    after = None
    for part in volume.watch(**options, max_bytes=50000, duration=WAIT_S):
        growing.take(part)
        after = part.after
        if part.is_last:
            break
    whole = volume.extract(**options)
    assert seen_by(growing) == by_block(whole)
    for part in volume.watch(**options, keys_only=True, max_bytes=160, duration=WAIT_S):
        assert len(part) <= 10 and part.vertices.size == part.triangles.size == 0
        keys |= {tuple(b) for b in part.blocks[:, :3].tolist()}
        if part.is_last:
            break
    assert keys == {tuple(b) for b in whole.blocks[:, :3].tolist()}
    # A change elsewhere is answer, too.
    volume.clear(VolumeBox((-9, -9, -9), (-8, -8, -8)))
    integrate(volume, 3)
    outside = volume.watch(box=VolumeBox((50, 50, 50), (51, 51, 51)), after=after, duration=WAIT_S)
    answer = next(outside)
    assert answer.kind in ("blocks", "resync") and len(answer) == 0
    assert answer.version == volume.info().stamp and answer.is_last


def test_points_labels_and_albedo_are_those_of_an_extraction(client: voxeld.Client) -> None:
    volume = make(client, labels=True)
    shot = shoot(0)
    labels = np.full(shot.depth.shape, 3, np.uint8)
    volume.integrate(shot.depth, CAMERA, shot.pose, labels=labels.tobytes())
    part = next(volume.watch(points=True, max_bytes=1 << 26, duration=0))
    points = volume.extract(points=True)
    for name in ("vertices", "normals", "labels", "blocks"):
        assert np.array_equal(getattr(part, name), getattr(points, name)), name
    assert set(np.unique(part.labels)) == {3} and part.is_last
    with pytest.raises(voxeld.FailedPrecondition) as refused:
        next(volume.watch(albedo=True, duration=0))
    assert refused.value.field == "albedo"


def test_removed_blocks_begin_the_surface_anew(client: voxeld.Client) -> None:
    """Also within a round, which goes on to its end first."""
    volume = make(client)
    for i in range(2):
        integrate(volume, i)
    growing = GrowingSurface()
    watch = volume.watch(max_bytes=100000, duration=WAIT_S)
    growing.take(next(watch))
    assert growing.version == 0, "the surface fits into one part"
    volume.clear(centre=(0, 0, 1), radius_m=0.5)
    kinds = follow(watch, growing, volume.info().stamp)
    assert kinds.count("resync") == 1
    assert seen_by(growing) == by_block(volume.extract())
    # A sleeper that knows the version of before gets the whole.
    integrate(volume, 2)
    known = next(volume.watch(keys_only=True, max_bytes=1 << 26, duration=0)).after
    volume.clear(all=True)
    answer = next(volume.watch(after=known, duration=WAIT_S))
    assert (answer.kind, len(answer), answer.is_last) == ("resync", 0, True)


def test_dropped_and_created_names_end_and_begin_a_watch(
    daemon: Daemon, client: voxeld.Client
) -> None:
    with Events(daemon, "/v1/watch/volumes") as heads:
        event, _, answer = heads.next()
        assert event == "heads" and answer["isComplete"] and not answer.get("heads")
        volume = make(client)
        (head,) = heads.next()[2]["heads"]
        assert head["name"] == "v" and head["version"] == str(volume.info().stamp)
        watch = volume.watch(duration=WAIT_S)
        assert next(watch).kind == "resync"
        integrate(volume, 0)
        assert heads.next()[2]["heads"][0]["version"] == str(volume.info().stamp)
        while not next(watch).is_last:
            pass
        client.volume_drop("v")
        assert heads.next()[2]["dropped"] == ["v"]
        told_of = next(watch)
        assert (told_of.kind, told_of.version, len(told_of)) == ("dropped", 0, 0)
        make(client)
        assert next(watch).kind == "created"
        assert heads.next()[2]["heads"][0]["name"] == "v"
        # Dropped and made again while nobody looked: another volume.
        after = next(client.volume("v").watch(duration=0)).after
        client.volume_drop("v")
        make(client)
        assert next(client.volume("v").watch(after=after, duration=0)).kind == "resync"
    client.volume_drop("v")
    # A watch that waits is no use of a volume.
    short = make(client, ttl_s=1).watch(duration=WAIT_S)
    assert [next(short).kind for _ in range(2)] == ["resync", "dropped"]
    make(client)
    (all_of,) = client.watch_volumes(duration=0)
    assert list(all_of.versions) == ["v"] and all_of.is_complete
    with pytest.raises(voxeld.NotFound):
        next(_named(client, "nobody").watch(duration=0))


def _named(client: voxeld.Client, name: str) -> voxeld.volume.watches.VolumeWatches:
    """A volume that the client need not find first."""
    watched = voxeld.volume.watches.VolumeWatches()
    watched._client, watched.name = client, name
    return watched


def test_events_are_parts_and_go_on_after_the_last_id(
    daemon: Daemon, client: voxeld.Client
) -> None:
    volume = make(client)
    integrate(volume, 0)
    path = "/v1/volumes/v/watch?max_bytes=40000"
    blocks: list[list[int]] = []
    last, n_events = "", 0
    while not last or last.count("-") == 3:
        # Each event on a connection of its own.
        with Events(daemon, path, {"Last-Event-ID": last} if last else {}) as events:
            event, last, answer = events.next()
        assert event == ("blocks" if n_events else "resync")
        n_events += 1
        n_blocks, n = int(answer["nBlocks"]), int(answer["nVertices"])
        blocks += rows(answer["blocks"], np.int32, n_blocks, 4)[:, :3].tolist()
        assert rows(answer["vertices"], np.float32, n, 3).shape == (n, 3)
    assert n_events > 3
    assert blocks == volume.extract().blocks[:, :3].tolist()
    with Events(daemon, f"/v1/volumes/v/watch?after={last}&keys_only=true") as events:
        wait_until(lambda: watchers(daemon) == 1, 10, "it waits")
        integrate(volume, 1)
        assert events.next()[0] == "blocks"


def test_socket_has_the_events_of_the_stream(daemon: Daemon, client: voxeld.Client) -> None:
    volume = make(client)
    path = "/v1/volumes/v/watch?max_bytes=1000000&min_weight=1"
    url = f"ws://127.0.0.1:{daemon.http_port}{path}"
    with connect(url, max_size=None) as watch, Events(daemon, path) as events:

        def both() -> str:
            answer = json.loads(watch.recv(timeout=10 * SLOW))
            event, last, data = events.next()
            for reply in (answer["data"], data):
                reply.pop("engineMs", None)
            assert (answer["event"], answer["id"], answer["data"]) == (event, last, data)
            return event

        assert both() == "resync"
        integrate(volume, 0)
        assert both() == "blocks"
        client.volume_drop("v")
        assert both() == "dropped"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/volumes/v/watch?level=1", "level"),
        ("/v1/volumes/v/watch?min_weight=x", "min_weight"),
        ("/v1/volumes/v/watch?min_weight=70000", "min_weight"),
        ("/v1/volumes/v/watch?box=0,0,0,1,1", "box"),
        ("/v1/volumes/v/watch?box=1,1,1,0,0,0", "box"),
        ("/v1/volumes/v/watch?max_bytes=99999999", "max_bytes"),
        ("/v1/volumes/v/watch?points=1", "points"),
        ("/v1/volumes/v/watch?after=7-3-2-0", "after.to_version"),
        ("/v1/watch/volumes?keys_only=true", "name"),
    ],
)
def test_faulty_streams_are_refused(
    daemon: Daemon, client: voxeld.Client, path: str, field: str
) -> None:
    make(client)
    reply = http_call(daemon, "GET", path)
    assert reply.status == 400 and reply.json()["field"] == field, reply.body
    assert http_call(daemon, "GET", "/v1/volumes/nobody/watch").status == 404


def test_hostile_points_get_an_answer(daemon: Daemon, client: voxeld.Client) -> None:
    volume = make(client)
    integrate(volume, 0)
    generation, most = volume.info().generation, 2**64 - 1
    stamp = volume.info().stamp
    with Rpc(daemon.ipc) as rpc:
        for version, to_version, first in itertools.product(
            (0, 1, stamp, most - 1), (0, stamp, most), (0, 10**6, most)
        ):
            after = {"generation": generation, "version": version}
            after |= {"to_version": to_version, "first": first}
            message = {"name": "v", "after": after, "max_bytes": 1}
            reply = rpc.call("volume_watch", watch_pb2.VolumeWatchRequest(**message))
            if 0 < to_version <= version:
                assert reply.header.code == common_pb2.INVALID_ARGUMENT, reply
            else:
                assert reply.header.code == common_pb2.OK, reply
                assert reply.volume_watch.n_blocks <= 1


def test_watch_outlives_a_kill_of_the_daemon(tmp_path: Path) -> None:
    """Durable volume: the watcher goes on with the blocks that came while there was no daemon to
    ask; one in memory learns that it is gone."""
    config = {"listen": {"rpc": [f"ipc://{tmp_path}/fixed.sock"]}}
    growing, kinds = GrowingSurface(), []

    def watch(volume: Volume) -> None:
        for part in volume.watch(max_bytes=1 << 24, duration=120 * SLOW):
            growing.take(part)
            kinds.append(part.kind)
            if len(kinds) == 4:
                return

    first = Daemon(tmp_path, config)
    try:
        with voxeld.connect(first.ipc) as client:
            kept = make(client, "kept", durable="always")
            lost = next(make(client, "lost").watch(duration=0))
            reader = threading.Thread(target=watch, args=(kept,))
            reader.start()
            wait_until(lambda: kinds, 10, "the first reply")
            integrate(kept, 0)
            wait_until(lambda: len(kinds) == 2, 30 * SLOW, "the first image")
            within = next(kept.watch(max_bytes=20000, duration=0)).after
            assert within.to_version > 0
            first.signal(signal.SIGKILL)
            first.wait()
            second = Daemon(tmp_path, config)
            try:
                with voxeld.connect(second.ipc) as other:
                    integrate(other.volume("kept"), 1)
                    wait_until(lambda: len(kinds) == 3, 60 * SLOW, "an image after the restart")
                    integrate(other.volume("kept"), 2)
                    reader.join(120 * SLOW)
                    assert not reader.is_alive()
                    assert kinds == ["resync", "blocks", "blocks", "blocks"]
                    assert seen_by(growing) == by_block(other.volume("kept").extract())
                    # Within a round blocks were counted, which may be in another order now.
                    again = next(other.volume("kept").watch(after=within, duration=5))
                    assert again.kind == "resync" and len(again) > 0
                    gone = next(_named(other, "lost").watch(after=lost.after, duration=5))
                    assert gone.kind == "dropped"
            finally:
                second.stop()
    finally:
        if first.process.poll() is None:
            first.process.kill()


def test_voxelctl_volume_watch_prints_parts(daemon: Daemon, client: voxeld.Client) -> None:
    volume = make(client)
    command = [BIN / "voxelctl", "--url", daemon.ipc, "volume", "watch"]
    run = subprocess.Popen(
        [*command, "v", "--json", "--count", "3"], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    lines = (json.loads(line) for line in run.stdout)
    assert next(lines)["kind"] == "resync"
    shot = shoot(0)
    volume.integrate(shot.depth, CAMERA, shot.pose)
    answer = next(lines)
    assert answer["kind"] == "blocks" and answer["n_triangles"] > 0
    assert len(answer["blocks"]) == answer["n_blocks"] > 0
    client.volume_drop("v")
    while answer["kind"] == "blocks":
        answer = next(lines, {"kind": "none"})
    assert answer["kind"] in ("dropped", "none")
    assert run.wait(30 * SLOW) == 0
    make(client, "other")
    text = subprocess.run(
        [*command, "--count", "1"], capture_output=True, text=True, check=True
    ).stdout
    assert text.startswith("other: head, version ")
