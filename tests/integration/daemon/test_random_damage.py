# SPDX-License-Identifier: Apache-2.0
"""Single bits flipped at random places of a data directory, and SIGKILLs under a mixed load: what
was acknowledged is there afterwards, or the daemon says that it is not. VOXELD_TEST_FLIPS=200 and
VOXELD_TEST_KILLS=200 give the runs in tests/bench/results/daemon.md."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pynng
import pytest
import voxeld
from depth_scene import CAMERA, shoot
from harness import (
    BIN,
    OK,
    SLOW,
    Daemon,
    common_pb2,
    scene_pb2,
    tensor_of,
    wait_until,
)
from maps import SPEC, Maps, rows
from scenes import Scenes, ball, box, spec
from voxeld import Pose, PosegraphEdge, PosegraphNode

N_FLIPS = int(os.environ.get("VOXELD_TEST_FLIPS", "12"))
N_KILLS = int(os.environ.get("VOXELD_TEST_KILLS", "9"))
FAULTS = {"warning", "error"}


def kill(daemon: Daemon) -> None:
    daemon.signal(signal.SIGKILL)
    daemon.wait()


def digest_of(*arrays: Any) -> str:
    whole = hashlib.sha256()
    for array in arrays:
        data = np.ascontiguousarray(array)
        whole.update(f"{data.dtype}{data.shape}".encode())
        whole.update(data.tobytes())
    return whole.hexdigest()


# --- bits ------------------------------------------------------------------------------------


def durable(journal_max_bytes: int) -> scene_pb2.SceneDurability:
    return scene_pb2.SceneDurability(
        fsync="SCENE_FSYNC_ALWAYS", journal_max_bytes=journal_max_bytes
    )


def fill(daemon: Daemon) -> None:
    """Something of each kind, with and without snapshot files."""
    rng = np.random.default_rng(7)
    with Scenes(daemon) as scenes, Maps(daemon) as maps:
        for name, limit in (("yard", 2000), ("hall", 0)):
            scenes.call(
                "scene_create",
                name=name,
                spec=spec(6, bits=4, track_free=True),
                durability=durable(limit),
            )
            for i in range(40):
                centre = tuple(rng.uniform(-2, 2, 3))
                scenes.edit(name, ball(centre, 0.6, material=i % 9))
        scenes.call("scene_branch", name="yard", new_name="court")
        for name, limit in (("counts", 4000), ("tally", 0)):
            maps.call(
                "map_create",
                name=name,
                spec=SPEC,
                durable=True,
                fsync="MAP_FSYNC_ALWAYS",
                journal_max_bytes=limit,
            )
            for i in range(20):
                keys = np.unique(rng.integers(-99, 99, (60, 3)).astype(np.int32), axis=0)
                count = np.full(len(keys), i + 1, np.uint64)
                maps.call("map_insert", name=name, keys=tensor_of(keys), values=rows(count=count))
        maps.call("map_save", name="tally", file="tally")
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        volume = client.volume_create("room", 0.04, truncation_m=0.16, durable="always")
        graph = client.posegraph_create("drive", durable="always", journal_max_bytes=2000)
        for i in range(2):
            shot = shoot(i)
            volume.integrate(shot.depth, CAMERA, shot.pose)
        for i in range(12):
            graph.add(
                [PosegraphNode(i, Pose((i, 0, 0)))],
                [PosegraphEdge(i - 1, i, Pose((1, 0, 0)), [100] * 6)] if i > 0 else [],
            )
    for noun in ("scene", "map", "posegraph"):
        wait_until(
            lambda noun=noun: any(noun in e for e in daemon.log if e["msg"] == "snapshot written"),
            20,
            f"a snapshot of a {noun}",
        )


def add(daemon: Daemon) -> None:
    """More of it, which a kill leaves in the WAL."""
    keys = np.arange(90, dtype=np.int32).reshape(30, 3) + 1000
    with Scenes(daemon) as scenes, Maps(daemon) as maps:
        for i in range(12):
            for name in ("yard", "hall", "court"):
                scenes.edit(name, ball((0.2 * i - 1, 1, 0), 0.4, material=i % 9))
            for name in ("counts", "tally"):
                count = np.full(len(keys), i + 1, np.uint64)
                maps.call(
                    "map_insert", name=name, keys=tensor_of(keys + i), values=rows(count=count)
                )
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        shot = shoot(2)
        client.volume("room").integrate(shot.depth, CAMERA, shot.pose)
        client.posegraph("drive").add([PosegraphNode(100, Pose((3, 0, 0)))], [])


def scene_state(scenes: Scenes, name: str) -> tuple[int, str]:
    info = scenes.call("scene_get", name=name).scene
    log = scenes.call("scene_log", name=name, limit=1000)
    old = [
        scenes.call("scene_get", name=name, at=scene_pb2.SceneAt(version=v.version)).scene.digest
        for v in log.versions[::8]
    ]
    return info.generation, f"{info.version} {info.digest} {old}"


def map_state(client: voxeld.Client, name: str) -> tuple[int, str]:
    found = client.map(name)
    content = found.export()
    order = np.lexsort(content.keys.T)
    values = [content.values[k][order] for k in sorted(content.values)]
    return found.info().generation, digest_of(content.keys[order], *values)


def look(daemon: Daemon) -> dict[str, tuple[int, str]]:
    """Each thing that there is: its generation, and all of its content in short. What the daemon
    answers DATA_LOSS is reported, and so it is content."""
    seen: dict[str, tuple[int, str]] = {}

    def note(name: str, ask: Callable[[], tuple[int, str]]) -> None:
        seen[name] = ask()

    with (
        Scenes(daemon) as scenes,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
    ):
        for scene in scenes.call("scene_list").scenes:
            note(f"scene {scene.name}", lambda n=scene.name: scene_state(scenes, n))
        for found in client.maps():
            note(f"map {found.name}", lambda n=found.name: map_state(client, n))
        for volume in client.volumes():
            surface = client.volume(volume.name).extract()
            seen[f"volume {volume.name}"] = (
                client.volume(volume.name).info().generation,
                digest_of(surface.vertices, surface.triangles),
            )
        for graph in client.posegraphs():
            content = client.posegraph(graph.name).read(edges=True)
            seen[f"posegraph {graph.name}"] = (
                client.posegraph(graph.name).info().generation,
                digest_of(content.ids, content.poses, content.edge_ids, content.edge_poses),
            )
    with Maps(daemon) as maps:
        response = maps.send("map_load", name="loaded", file="tally")
        header = response.header
        if header.code == OK:
            with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
                seen["file tally"] = (0, map_state(client, "loaded")[1])
            maps.call("map_drop", name="loaded")
        else:
            assert header.code in (common_pb2.DATA_LOSS, common_pb2.INVALID_ARGUMENT), header
            seen["file tally"] = (1, header.message)
    return seen


def start(directory: Path, outcomes: Counter[str]) -> tuple[Daemon, bool]:
    """A daemon on the directory; whether its start was refused, with the command that mends."""
    try:
        return Daemon(directory), False
    except AssertionError:
        pass
    done = subprocess.run(
        [BIN / "voxeld", "--config", directory / "voxeld.json"],
        capture_output=True,
        text=True,
        timeout=60 * SLOW,
        env=Daemon.environment(),
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    command = shlex.split(next(x["repair"] for x in lines if "repair" in x))
    assert command[0] == "voxeld"
    mended = subprocess.run(
        [BIN / "voxeld", *command[1:]],
        capture_output=True,
        text=True,
        timeout=60 * SLOW,
        env=Daemon.environment(),
        check=False,
    )
    assert mended.returncode in (0, 1) and mended.stdout, mended
    outcomes["refused, and mended"] += 1
    return Daemon(directory), True


def random_place(rng: random.Random, data: Path) -> tuple[Path, int]:
    """A byte of the directory; half of the time any byte, else one of any file, so that small files
    are hit, too."""
    files = sorted(p for p in data.rglob("*") if p.is_file() and p.stat().st_size > 0)
    sizes = [p.stat().st_size for p in files]
    path = rng.choices(files, sizes)[0] if rng.random() < 0.5 else rng.choice(files)
    return path, rng.randrange(path.stat().st_size)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[int, str]]]:
    """A directory as a kill left it, and what was in it."""
    directory = tmp_path_factory.mktemp("filled")
    daemon = Daemon(directory)
    fill(daemon)
    daemon.stop()  # what is there by now goes into the database and snapshot files
    daemon = Daemon(directory)
    add(daemon)
    before = look(daemon)
    kill(daemon)
    assert len(before) == 8, before
    return directory / "data", before


def check_flip(
    directory: Path,
    source: Path,
    before: dict[str, tuple[int, str]],
    rng: random.Random,
    outcomes: Counter[str],
) -> None:
    shutil.copytree(source, directory / "data")
    path, at = random_place(rng, directory / "data")
    bit = rng.randrange(8)
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)
    where = f"bit {bit} of byte {at} of {path.relative_to(directory / 'data')}"
    daemon, was_refused = start(directory, outcomes)
    try:
        after = look(daemon)
        faults = [e for e in daemon.log if e.get("level") in FAULTS]
        lost = [n for n, state in before.items() if n in after and after[n][1] != state[1]]
        gone = [n for n in before if n not in after]
        for name in lost:
            assert after[name][0] != before[name][0], f"{where}: {name} is another, silently"
        if lost or gone:
            is_reported = was_refused or bool(faults) or all(n.startswith("file") for n in lost)
            assert is_reported, f"{where}: {lost + gone} without a line in the log"
        assert not set(after) - set(before), where
        outcomes["lost and reported" if lost or gone else "nothing lost"] += 1
        outcomes[f"in {path.name.split('-')[0] if path.suffix == '.vxs' else path.name}"] += 1
    except BaseException:
        print(where, "".join(daemon.lines[-30:]))
        raise
    finally:
        daemon.stop()
        shutil.rmtree(directory)


def test_random_flips_take_nothing_back_silently(
    tmp_path: Path, filled: tuple[Path, dict[str, tuple[int, str]]]
) -> None:
    source, before = filled
    rng = random.Random(N_FLIPS)
    outcomes: Counter[str] = Counter()
    for i in range(N_FLIPS):
        check_flip(tmp_path / str(i), source, before, rng, outcomes)
    print(f"\n{N_FLIPS} flips: {dict(outcomes)}")


# --- kills -----------------------------------------------------------------------------------


class Writer:
    """A client that changes a scene or a map, one voxel or entry at a time, and repeats what got no
    answer, so that everything happens exactly once."""

    def __init__(self, index: int, noun: str, fsync: str) -> None:
        self.index = index
        self.noun = noun
        self.name = f"{noun}-{fsync}"
        self.n_answered = 0

    def place(self, k: int) -> tuple[int, int, int]:
        return (self.index * 8 + k % 8, k // 8 % 64, k // 512)

    def send(self, client: Scenes | Maps) -> int:
        k = self.n_answered
        at = self.place(k)
        if isinstance(client, Scenes):
            response = client.send(
                "scene_edit",
                sequence=k + 1,
                name=self.name,
                in_voxels=True,
                operations=[box(at, tuple(c + 1 for c in at), material=self.index)],
            )
            if response.header.code == OK:
                assert response.scene_edit.change.n_added == 1, (self.name, k, response)
            return response.header.code
        client.sequence = itertools.count(k + 1)
        response = client.send(
            "map_update",
            name=self.name,
            keys=tensor_of(np.array([at], np.int32)),
            values=rows(count=np.ones(1, np.uint64)),
            combine="MAP_ADD",
            insert_missing=True,
        )
        return response.header.code

    def run(self, daemon: Daemon, stop: threading.Event) -> None:
        kind = Scenes if self.noun == "scene" else Maps
        with (
            contextlib.suppress(pynng.exceptions.NNGException),  # it was killed
            kind(daemon, f"client-{self.index}") as client,
        ):
            while not stop.is_set():
                if self.send(client) == OK:
                    self.n_answered += 1


def check_writers(daemon: Daemon, writers: list[Writer]) -> None:
    """Everything that was answered is there, once; a client that waited may have got one more."""
    with Scenes(daemon) as scenes, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        for name in sorted({w.name for w in writers}):
            own = [w for w in writers if w.name == name]
            n = sum(w.n_answered for w in own)
            if own[0].noun == "scene":
                info = scenes.call("scene_get", name=name).scene
                assert n <= info.n_occupied <= n + len(own), (name, n, info.n_occupied)
                assert info.version == info.n_occupied + 1
                continue
            content = client.map(name).export()
            there = {tuple(k): int(c) for k, c in zip(content.keys.tolist(),
                                                      content.values["count"], strict=True)}
            assert n <= len(there) <= n + len(own), (name, n, len(there))
            assert set(there.values()) <= {1}, "a change happened twice"
            for writer in own:
                assert all(writer.place(k) in there for k in range(writer.n_answered))


def test_random_kills_lose_nothing_that_was_answered(tmp_path: Path) -> None:
    fsyncs = ("ALWAYS", "EVERYSEC", "OFF")
    writers = [
        Writer(i, noun, fsync.lower())
        for i, (noun, fsync) in enumerate((n, f) for n in ("scene", "map") for f in fsyncs)
    ]
    writers += [Writer(6 + i, noun, "always") for i, noun in enumerate(("scene", "map"))]
    rng = random.Random(N_KILLS)
    for round_ in range(N_KILLS + 1):
        daemon = Daemon(tmp_path)
        if round_ == 0:
            with Scenes(daemon) as scenes, Maps(daemon) as maps:
                for fsync in fsyncs:
                    scenes.call(
                        "scene_create",
                        name=f"scene-{fsync.lower()}",
                        spec=spec(6, bits=4, track_free=True),
                        durability=scene_pb2.SceneDurability(
                            fsync=f"SCENE_FSYNC_{fsync}", journal_max_bytes=3000
                        ),
                        retention=scene_pb2.SceneRetention(versions=16),
                    )
                    maps.call(
                        "map_create",
                        name=f"map-{fsync.lower()}",
                        spec=SPEC,
                        durable=True,
                        fsync=f"MAP_FSYNC_{fsync}",
                        journal_max_bytes=3000,
                    )
        check_writers(daemon, writers)
        if round_ == N_KILLS:
            daemon.stop()
            break
        n_before = sum(w.n_answered for w in writers)
        stop = threading.Event()
        threads = [threading.Thread(target=w.run, args=(daemon, stop)) for w in writers]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.02, 0.4))
        wait_until(
            lambda n=n_before: sum(w.n_answered for w in writers) > n, 20, "something is changed"
        )
        kill(daemon)
        stop.set()
        for thread in threads:
            thread.join()
    print(f"\n{N_KILLS} kills: {sum(w.n_answered for w in writers)} changes")
