# SPDX-License-Identifier: Apache-2.0
"""Scenes beside a history of dense grids, and random changes of both."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from harness import scene_pb2
from scenes import OCCUPIED, Grid, Scenes, ball, box, spec

DEPTH = 5
SIDE = 1 << DEPTH


def at(version: int = 0, snapshot: str = "") -> scene_pb2.SceneAt:
    return scene_pb2.SceneAt(version=version, snapshot=snapshot)


class SceneVersions:
    """A scene and what each of its versions must hold."""

    def __init__(self, name: str, first: Grid) -> None:
        self.name = name
        self.grids = {1: copy.deepcopy(first)}
        self.newest = 1

    def add(self, grid: Grid) -> None:
        self.newest += 1
        self.grids[self.newest] = grid

    def now(self) -> Grid:
        return self.grids[self.newest]

    def undone(self, before: int, after: int) -> Grid:
        """Returns the newest grid, with what `after` changed of `before` undone where it is
        unchanged since."""
        grid = copy.deepcopy(self.now())
        old, new = self.grids[before], self.grids[after]
        differs = (old.states != new.states) | (old.materials != new.materials)
        stands = (grid.states == new.states) & (grid.materials == new.materials)
        mask = differs & stands
        grid.states[mask] = old.states[mask]
        grid.materials[mask] = old.materials[mask]
        return grid

    def check(self, scenes: Scenes, version: int, **by: Any) -> None:
        states, materials = scenes.dense(self.name, SIDE, at=at(**by) if by else at(version))
        np.testing.assert_array_equal(states, self.grids[version].states)
        np.testing.assert_array_equal(materials, self.grids[version].materials)


def random_edit(rng: np.random.Generator, versions: SceneVersions) -> scene_pb2.SceneOperation:
    grid = copy.deepcopy(versions.now())
    half = SIDE * grid.size / 2
    action = "SCENE_" + str(rng.choice(["FILL", "FILL", "ERASE", "SET_FREE", "PAINT"]))
    material = int(rng.integers(0, 4))
    a, b = rng.uniform(-half, half, (2, 3))
    if rng.random() < 0.5:
        radius = float(rng.uniform(0.1, half))
        mask = grid.in_ball(a, radius)
        operation = ball(a, radius, action, material=material)
    else:
        low, high = np.minimum(a, b), np.maximum(a, b) + 1e-3
        mask = grid.in_box(low, high)
        operation = box(low, high, action, material=material)
    grid.apply(mask, action, material)
    versions.add(grid)
    return operation


def new_versions(scenes: Scenes, name: str, **fields: Any) -> SceneVersions:
    scenes.call("scene_create", name=name, spec=spec(DEPTH, bits=4, track_free=True), **fields)
    return SceneVersions(name, Grid(DEPTH, tracks_free=True))


class History:
    """Scenes of one family, each with its history: edits, undos of any version, redos, branches
    and collections in any order."""

    def __init__(self, rng: np.random.Generator, scenes: Scenes, **fields: Any) -> None:
        self.rng = rng
        self.scenes_versions = [new_versions(scenes, "s0", **fields)]
        self.undos: dict[str, list[int]] = {"s0": []}

    def step(self, scenes: Scenes) -> SceneVersions:
        rng = self.rng
        versions = self.scenes_versions[rng.integers(len(self.scenes_versions))]
        undos = self.undos[versions.name]
        kind = rng.random()
        if kind < 0.5 or versions.newest == 1:
            reply = scenes.edit(versions.name, random_edit(rng, versions))
            assert reply.change.version == versions.newest
        elif kind < 0.7:
            self.undo(scenes, versions)
        elif kind < 0.8 and undos:
            undo = undos[rng.integers(len(undos))]
            grid = versions.undone(undo - 1, undo)
            reply = scenes.call("scene_redo", name=versions.name, of_version=undo)
            versions.add(grid)
            assert reply.of_version == undo
        elif kind < 0.9:
            collected = scenes.call("scene_collect", name=versions.name)
            assert collected.n_nodes_after <= collected.n_nodes_before
            assert collected.n_slices >= 1
        elif len(self.scenes_versions) < 4:
            self.branch(scenes, versions)
        return versions

    def undo(self, scenes: Scenes, versions: SceneVersions) -> None:
        of = int(self.rng.integers(2, versions.newest + 1))
        grid = versions.undone(of - 1, of)
        before = versions.now()
        reply = scenes.call("scene_undo", name=versions.name, of_version=of)
        versions.add(grid)
        self.undos[versions.name].append(versions.newest)
        assert reply.change.version == versions.newest and reply.of_version == of
        was, now = before.states == OCCUPIED, grid.states == OCCUPIED
        assert reply.change.n_added == (now & ~was).sum()
        assert reply.change.n_removed == (was & ~now).sum()

    def branch(self, scenes: Scenes, versions: SceneVersions) -> None:
        of = int(self.rng.integers(1, versions.newest + 1))
        name = f"s{len(self.scenes_versions)}"
        reply = scenes.call("scene_branch", name=versions.name, new_name=name, at=at(of))
        assert reply.of_version == of and reply.scene.n_sharing == len(self.scenes_versions) + 1
        self.scenes_versions.append(SceneVersions(name, versions.grids[of]))
        self.undos[name] = []

    def check(self, scenes: Scenes) -> None:
        """Checks every version of every scene."""
        for versions in self.scenes_versions:
            for version in versions.grids:
                versions.check(scenes, version)
            assert scenes.call("scene_verify", name=versions.name).n_versions == versions.newest
            log = scenes.call("scene_log", name=versions.name)
            assert [v.version for v in log.versions] == list(range(versions.newest, 0, -1))
