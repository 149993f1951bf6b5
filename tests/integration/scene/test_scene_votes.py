# SPDX-License-Identifier: Apache-2.0
"""Scenes whose voxels take the material that most of their last scans say: against a list of votes
a voxel, over a kill, a snapshot file and a branch."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, Daemon, http_call, running, wait_until
from voxeld import LogOdds

SIZE = 0.1


def connect(daemon: Daemon) -> voxeld.Client:
    return voxeld.connect(daemon.ipc, timeout=30 * SLOW)


def make(client: voxeld.Client, name: str, votes: int, **more: object) -> voxeld.Scene:
    return client.scene_create(
        name, SIZE, depth=7, material_bits=8, track_free=True,
        log_odds=LogOdds(label_votes=votes), **more,
    )  # fmt: skip


class Model:
    """The last votes of each voxel that was hit, the newest last."""

    def __init__(self, n_votes: int) -> None:
        self.n_votes = n_votes
        self.votes: dict[tuple[int, ...], list[int]] = {}
        self.rng = np.random.default_rng(n_votes)
        self.voxels = np.unique(self.rng.integers(-12, 12, (400, 3)), axis=0)
        self.labels = self.rng.integers(1, 6, len(self.voxels))

    def scan(self, scene: voxeld.Scene) -> None:
        """Hits half of the voxels, a third of them with a wrong label."""
        which = self.rng.random(len(self.voxels)) < 0.5
        wrong = self.rng.random(len(self.voxels)) < 0.33
        labels = np.where(wrong, self.rng.integers(1, 6, len(self.voxels)), self.labels)
        cloud = np.zeros(which.sum(), [(n, "<f4") for n in "xyz"] + [("label", "<f4")])
        for axis, name in enumerate("xyz"):
            cloud[name] = (self.voxels[which, axis] + 0.5) * SIZE
        cloud["label"] = labels[which]
        done = scene.integrate(cloud, carve=False, rule="label", field="label")
        assert done.n_used == len(cloud)
        for voxel, label in zip(self.voxels[which], labels[which], strict=True):
            votes = self.votes.setdefault(tuple(voxel.tolist()), [])
            votes.append(int(label))
            del votes[: -self.n_votes]

    def winner(self, votes: list[int]) -> int:
        counts = Counter(votes)
        most = max(counts.values())
        return next(v for v in reversed(votes) if counts[v] == most)

    def check(self, scene: voxeld.Scene) -> None:
        places = (np.array(list(self.votes)) + 0.5) * SIZE
        values = scene.values(places)
        assert values.occupied.all()
        expected = [self.winner(votes) for votes in self.votes.values()]
        np.testing.assert_array_equal(values.materials, expected)


@pytest.mark.parametrize("n_votes", [2, 3, 4])
def test_material_is_that_of_most_of_the_last_scans(daemon: Daemon, n_votes: int) -> None:
    with connect(daemon) as client:
        scene, model = make(client, f"votes-{n_votes}", n_votes), Model(n_votes)
        plain, same = make(client, f"plain-{n_votes}", 0), Model(n_votes)
        for _ in range(9):
            model.scan(scene)
            model.check(scene)
            same.scan(plain)
        info = scene.info()
        assert info.log_odds is not None and info.log_odds.label_votes == n_votes
        assert 0 < info.vote_bytes < info.log_odds_bytes and plain.info().vote_bytes == 0
        assert info.log_odds_bytes - info.vote_bytes == plain.info().log_odds_bytes
        # Votes are nearer to the truth than the last scan is, and states are the same.
        places = (model.voxels + 0.5) * SIZE
        voted, last = scene.values(places), plain.values(places)
        np.testing.assert_array_equal(voted.states, last.states)
        seen = voted.occupied
        right = (voted.materials[seen] == model.labels[seen]).mean()
        if n_votes > 2:  # of two votes that differ the newest counts
            assert right > (last.materials[seen] == model.labels[seen]).mean() + 0.05


def test_a_scan_that_overwrites_materials_says_so(daemon: Daemon) -> None:
    with connect(daemon) as client:
        scene = make(client, "overwrites", 3)
        cloud = np.zeros(50, [(n, "<f4") for n in "xyz"] + [("label", "<f4")])
        cloud["x"] = np.arange(50) * SIZE + 0.05 - 2.5
        cloud["y"] = cloud["z"] = 0.05
        relabelled = []
        for label in (1, 2, 2, 3):
            cloud["label"] = label
            done = scene.integrate(cloud, carve=False, rule="label", field="label")
            assert (done.change.n_added, done.change.n_removed) == (50 if label == 1 else 0, 0)
            assert done.n_relabelled == done.change.n_changed
            relabelled.append(done.n_relabelled)
        # A tie goes to the newest, then 2 has the majority, and 3 is outvoted.
        assert relabelled == [0, 50, 0, 0]


def test_votes_are_there_after_a_kill_and_in_branches(tmp_path: Path) -> None:
    model = Model(4)
    daemon = Daemon(tmp_path)
    try:
        with connect(daemon) as client:
            scene = make(client, "s", 4, durable="always", journal_max_bytes=20_000)
            for _ in range(12):
                model.scan(scene)
            wait_until(
                lambda: b'voxeld_scene_snapshots_total{result="written"} 0'
                not in http_call(daemon, "GET", "/metrics").body,
                20 * SLOW,
                "a snapshot file",
            )
            model.scan(scene)
            model.check(scene)
            digest = scene.info().digest
    finally:
        daemon.signal(signal.SIGKILL)
        daemon.wait()
    with running(tmp_path) as daemon, connect(daemon) as client:
        scene = client.scene("s")
        assert scene.info().digest == digest and scene.info().vote_bytes > 0
        branch = scene.branch("b")
        other = Model(4)
        other.__dict__.update({k: v for k, v in model.__dict__.items() if k != "votes"})
        other.votes = {k: list(v) for k, v in model.votes.items()}
        for _ in range(3):  # each goes on with the votes that there were
            model.scan(scene)
            model.check(scene)
            other.scan(branch)
            other.check(branch)


def test_votes_need_materials_and_a_number_that_is_kept(daemon: Daemon, tmp_path: Path) -> None:
    with connect(daemon) as client:
        for votes, bits in ((1, 8), (5, 8), (3, 0)):
            with pytest.raises(voxeld.InvalidArgument) as raised:
                client.scene_create(
                    "bad", SIZE, material_bits=bits, track_free=True,
                    log_odds=LogOdds(label_votes=votes),
                )  # fmt: skip
            assert raised.value.field == "spec.log_odds.label_votes"
        make(client, "same", 3)
        make(client, "same", 3)
        with pytest.raises(voxeld.AlreadyExists):
            make(client, "same", 4)
    ctl = [BIN / "voxelctl", "--url", daemon.ipc, "scene"]
    subprocess.run(
        [*ctl, "create", "by-ctl", "--size", "0.1", "--track-free", "--material-bits", "8",
         "--label-votes", "4"], check=True, capture_output=True,
    )  # fmt: skip
    info = subprocess.run([*ctl, "info", "by-ctl", "--json"], check=True, capture_output=True)
    assert json.loads(info.stdout)["log_odds"]["label_votes"] == 4
