# SPDX-License-Identifier: Apache-2.0
"""Durable histories against dense grids: edits, undos, redos, branches, collections, snapshot
files, starts in order and after kills, and readers of old versions beside it all."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from harness import Daemon, scene_pb2
from histories import SIDE, History, at
from scenes import Scenes


def read_old(daemon: Daemon, history: History, stop: threading.Event, wrong: list[str]) -> None:
    """Reads kept versions again and again, while they are changed and collected."""
    rng = np.random.default_rng(7)
    n_read = 0
    with Scenes(daemon) as own:
        while not stop.is_set() or n_read == 0:
            versions = history.scenes_versions[rng.integers(len(history.scenes_versions))]
            newest = own.send("scene_get", name=versions.name).scene_get.scene.version
            # Either may be newer: the history by the next request, the scene by a reply.
            version = int(rng.integers(1, min(newest, max(list(versions.grids))) + 1))
            grid = versions.grids[version]
            try:
                states, materials = own.dense(versions.name, SIDE, at=at(version))
                np.testing.assert_array_equal(states, grid.states)
                np.testing.assert_array_equal(materials, grid.materials)
            except Exception as error:  # a reader that ends in silence proves nothing
                wrong.append(f"{versions.name} at {version}: {error}")
            n_read += 1


@pytest.mark.parametrize("seed", range(2))
def test_random_history_outlives_starts_and_readers_see_their_versions(
    tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng(100 + seed)
    durable = scene_pb2.SceneDurability(fsync="SCENE_FSYNC_ALWAYS", journal_max_bytes=1500)
    history: History | None = None
    n_snapshots = 0
    for round_ in range(6):
        daemon = Daemon(tmp_path)
        stop, wrong = threading.Event(), list[str]()
        with Scenes(daemon, f"painter-{round_}") as scenes:
            if history is None:
                history = History(
                    rng,
                    scenes,
                    durability=durable,
                    retention=scene_pb2.SceneRetention(versions=4096),
                )
            history.check(scenes)
            readers = [
                threading.Thread(target=read_old, args=(daemon, history, stop, wrong))
                for _ in range(2)
            ]
            for reader in readers:
                reader.start()
            try:
                for _ in range(25):
                    history.step(scenes)
            finally:
                stop.set()
                for reader in readers:
                    reader.join()
        assert not wrong
        n_snapshots += sum(line.get("msg") == "snapshot written" for line in daemon.log)
        if round_ % 2 == 0:
            daemon.signal(signal.SIGKILL)
            daemon.process.wait(20)
        else:
            daemon.stop()
    assert n_snapshots > 0
