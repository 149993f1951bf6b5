# SPDX-License-Identifier: Apache-2.0
"""Versions of scenes in the Python client, against the real daemon and dense grids."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import MIB, SLOW, Daemon, common_pb2, rpc_pb2, running, scene_pb2, scene_version_pb2
from scenes import OCCUPIED, Grid
from test_python_errors import Peer, tensor

NAMES = (f"past-{i}" for i in itertools.count())
DEPTH = 5
SIZE = 0.5
ALL = voxeld.Box((0, 0, 0), (1 << DEPTH,) * 3)


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        yield connected


@pytest.fixture
def versioned(client: voxeld.Client) -> tuple[voxeld.Scene, list[Grid]]:
    """A scene with three balls, a change each, and what its versions 1 to 4 hold."""
    scene = client.scene_create(next(NAMES), SIZE, depth=DEPTH, keep_versions=16)
    grids = [Grid(DEPTH, SIZE)]
    for x in (-3, 0, 3):
        scene.edit(voxeld.Ball((x, 0, 0), 2))
        grids.append(copy.deepcopy(grids[-1]))
        grids[-1].apply(grids[-1].in_ball((x, 0, 0), 2), "SCENE_FILL")
    return scene, grids


def states(scene: voxeld.Scene, at: Any = None) -> Any:
    return scene.export_dense(ALL, in_voxels=True, at=at).states


def test_queries_see_versions_and_snapshots(
    versioned: tuple[voxeld.Scene, list[Grid]], directory: Path
) -> None:
    scene, grids = versioned
    taken = scene.snapshot("early", 2)
    assert (taken.name, taken.version) == ("early", 2) and taken.taken_ns >= taken.version_ns > 0
    for at, grid in [(None, grids[3]), (4, grids[3]), ("early", grids[1]), (1, grids[0])]:
        np.testing.assert_array_equal(states(scene, at), grid.states)
        occupied = grid.occupied()
        assert scene.info(at=at).n_occupied == len(scene.export(at=at)) == len(occupied)
        assert scene.export_ply(directory / "s.ply", at=at) == len(occupied)
        centre = [[22, 16, 16]]
        is_there = bool(grid.states[22, 16, 16] == OCCUPIED)
        assert scene.values(centre, at=at).occupied[0] == is_there
        assert scene.cast_rays((3.25, 0.25, 7), [[0, 0, -1]], at=at).hit[0] == is_there
        assert bool(scene.nearest([[3.25, 0.25, 0.25]], 0.3, at=at).n_found) == is_there
        counts = scene.overlap([[3, 0, 0, 3.5, 0.5, 0.5]], counts=True, at=at).n_occupied
        assert counts is not None and counts[0] == is_there
    with pytest.raises(voxeld.NotFound) as raised:
        scene.values([[1, 2, 3]], at=17)
    assert raised.value.field == "at.version"
    with pytest.raises(voxeld.AlreadyExists):
        scene.snapshot("early")
    assert scene.snapshot("early", replace=True).version == 4
    assert [(s.name, s.version) for s in scene.log().snapshots] == [("early", 4)]
    scene.drop_snapshot("early")
    with pytest.raises(voxeld.NotFound):
        scene.drop_snapshot("early")


def test_log_undo_and_redo(versioned: tuple[voxeld.Scene, list[Grid]], daemon: Daemon) -> None:
    scene, grids = versioned
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as other:
        other.scene(scene.name).edit(voxeld.Box((-7, -7, -7), (-6, -6, -6)))
    undone = scene.undo()
    assert (undone.of_version, undone.change.version, undone.replayed) == (4, 6, False)
    expected = copy.deepcopy(grids[2])
    expected.apply(expected.in_box((-7, -7, -7), (-6, -6, -6)), "SCENE_FILL")
    np.testing.assert_array_equal(states(scene), expected.states)
    assert scene.redo().of_version == 6
    once = scene.undo(5, if_version=7, sequence=2**62)
    again = scene.undo(5, if_version=7, sequence=2**62)
    assert again.replayed and again.change == once.change
    np.testing.assert_array_equal(states(scene), grids[3].states)
    with pytest.raises(voxeld.Aborted):
        scene.undo(4, if_version=7)
    log = scene.log()
    assert [v.version for v in log.versions] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert [v.kind for v in log.versions] == [
        "undone", "redone", "undone", "edited", "edited", "edited", "edited", "made"
    ]  # fmt: skip
    assert [v.of_version for v in log.versions][:3] == [5, 6, 4]
    assert {v.version: v.undone_by for v in log.versions if v.undone_by} == {5: 8, 6: 7, 4: 6}
    assert log.version == 8 and log.oldest == 1 and log.n_sharing == 1
    assert [v.version for v in scene.log(below=4, limit=2).versions] == [3, 2]


def test_branch_diff_verify_and_collect(versioned: tuple[voxeld.Scene, list[Grid]]) -> None:
    scene, grids = versioned
    branch = scene.branch(next(NAMES), 2)
    assert isinstance(branch, voxeld.Scene) and branch.voxel_size == SIZE
    assert branch.info().n_sharing == 2
    np.testing.assert_array_equal(states(branch), grids[1].states)
    differs = np.argwhere(grids[3].states != grids[1].states)
    for diff in (scene.diff(2), branch.diff(to_scene=scene.name), scene.diff(2, 4)):
        assert len(diff) == diff.n_cells == len(differs)
        assert set(map(tuple, diff.cells)) == set(map(tuple, differs))
        assert (diff.changes == voxeld.Difference.ADDED).all() and diff.cell_size == SIZE
        assert len(diff.where(voxeld.Difference.REMOVED | voxeld.Difference.FREED)) == 0
        centres = grids[0].origin + (diff.cells + 0.5) * SIZE
        np.testing.assert_allclose(diff.centres(), centres)
    newest = scene.diff()
    assert (newest.from_version, newest.to_version) == (3, 4)
    back = scene.diff(4, 2, level=1, box=voxeld.Box((16, 0, 0), (32, 32, 32)), in_voxels=True)
    assert set(map(tuple, back.cells)) == set(map(tuple, differs[differs[:, 0] >= 16] >> 1))
    assert (back.changes == voxeld.Difference.REMOVED).all()
    some = scene.diff(2, first=3, limit=5)
    np.testing.assert_array_equal(some.cells, scene.diff(2).cells[3:8])
    verified = scene.verify()
    assert verified.n_versions == 4 and verified.digest == scene.info().digest
    collected = scene.collect()
    assert collected.n_nodes_after <= collected.n_nodes_before and collected.n_slices >= 1


def test_durable_scene_outlives_a_restart(directory: Path) -> None:
    with (
        running(directory / "d") as daemon,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
    ):
        scene = client.scene_create(
            "yard", SIZE, depth=DEPTH, keep_versions=3, keep_seconds=3600, durable="everysec",
            journal_max_bytes=100000,
        )  # fmt: skip
        for x in range(5):
            scene.edit(voxeld.Ball((x, 0, 0), 1))
        before = scene.info()
        assert (before.durable, before.journal_max_bytes) == ("everysec", 100000)
        assert (before.keep_versions, before.keep_seconds) == (3, 3600)
        assert (before.version, before.oldest_version, before.n_snapshots) == (6, 4, 0)
        backup = client.backup("monday")
        assert Path(backup.path).name == "monday" and backup.n_database_bytes > 0
        assert client.scene_create("not", SIZE, depth=DEPTH).info().durable is None
    with (
        running(directory / "d") as daemon,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
    ):
        assert [s.name for s in client.scenes()] == ["yard"]
        after = client.scene("yard").info()
        assert (after.digest, after.version) == (before.digest, before.version)
        assert client.scene("yard").undo(6).of_version == 6


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda s: s.values([[1, 2, 3]], at=0), "at"),
        (lambda s: s.values([[1, 2, 3]], at=True), "at"),
        (lambda s: s.info(at=""), "at"),
        (lambda s: s.export(at=1 << 64), "at"),
        (lambda s: s.diff(-1), "from"),
        (lambda s: s.diff(1, 2.5), "to"),
        (lambda s: s.diff(level=-1), "level"),
        (lambda s: s.undo(-1), "of_version"),
        (lambda s: s.log(limit=1 << 32), "limit"),
        (lambda s: s.snapshot("A"), "snapshot"),
        (lambda s: s.branch(s.name + "@1"), "new_name"),
        (lambda s: s._client.scene_create("x", 1, durable="yes"), "durable"),
        (lambda s: s._client.scene_create("x", 1, journal_max_bytes=9), "journal_max_bytes"),
        (lambda s: s._client.scene_create("x", 1, keep_versions=5000), "retention.versions"),
    ],
)
def test_wrong_arguments_name_their_field(
    versioned: tuple[voxeld.Scene, list[Grid]], call: Callable[[voxeld.Scene], Any], field: str
) -> None:
    with pytest.raises(voxeld.InvalidArgument) as raised:
        call(versioned[0])
    assert raised.value.field == field


def test_small_message_limit_makes_diffs_of_many_replies(directory: Path) -> None:
    limits = {"limits": {"message_bytes": MIB}}
    with (
        running(directory / "d", limits) as daemon,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
    ):
        scene = client.scene_create("many", 1.0, depth=8)
        scene.edit(voxeld.Box((0, 0, 0), (64, 64, 64)), in_voxels=True)
        assert 0 < len(scene.diff(limit=1 << 40)) < 64**3
        diff = scene.diff()
        assert len(diff) == 64**3 and len(np.unique(diff.cells, axis=0)) == 64**3


# Replies -----------------------------------------------------------------------------------


def diff_message(**over: Any) -> Any:
    members = {
        "from_version": 1,
        "to_version": 2,
        "n_cells": 2,
        "cells": tensor(common_pb2.INT32, np.zeros((2, 3), np.int32)),
        "changes": tensor(common_pb2.UINT8, np.ones(2, np.uint8)),
        **over,
    }
    members = {k: v for k, v in members.items() if v is not None}
    return scene_version_pb2.SceneDiffResponse(**members)


@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({}, ""),
        ({"cells": None}, "cells"),
        ({"cells": tensor(common_pb2.INT32, np.zeros((2, 2), np.int32))}, "cells"),
        ({"cells": tensor(common_pb2.INT64, np.zeros((2, 3), np.int64))}, "cells"),
        ({"n_cells": 1}, "cells"),
        ({"changes": None}, "changes"),
        ({"changes": tensor(common_pb2.UINT8, np.ones(3, np.uint8))}, "changes"),
    ],
)
def test_replies_that_contradict_themselves_are_internal(
    directory: Path, over: dict[str, Any], field: str
) -> None:
    def reply(request: Any) -> Any:
        answer = rpc_pb2.Response(
            header=rpc_pb2.ResponseHeader(request_id=request.header.request_id)
        )
        method = request.WhichOneof("method")
        if method == "scene_get":
            spec = scene_pb2.SceneSpec(voxel_size_m=1, depth=5)
            answer.scene_get.scene.CopyFrom(scene_pb2.SceneInfo(name="s", spec=spec))
        elif method == "scene_log":
            newest = scene_version_pb2.SceneVersion(version=3, kind=9)  # of a newer server
            answer.scene_log.versions.extend([newest] * 2)
        elif method == "scene_diff":
            answer.scene_diff.CopyFrom(diff_message(**over))
        else:
            getattr(answer, method).SetInParent()
        return answer

    with Peer(directory, reply) as peer, voxeld.connect(peer.url, timeout=30 * SLOW) as client:
        scene = client.scene("s")
        assert scene.info().durable is None
        for call, wrong in (
            (scene.undo, "change"), (scene.redo, "change"), (scene.log, "versions")
        ):  # fmt: skip
            with pytest.raises(voxeld.Internal) as raised:
                call()
            assert raised.value.field == wrong
        with pytest.raises(voxeld.Internal):
            scene.snapshot("a")
        if not field:
            assert len(scene.diff()) == 2
            return
        with pytest.raises(voxeld.Internal) as raised:
            scene.diff()
        assert raised.value.field == field
