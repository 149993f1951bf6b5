# SPDX-License-Identifier: Apache-2.0
"""Versions of scenes against a history of dense grids: undo, redo, snapshots, branches,
diffs, queries of old versions, and collection in between."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import (
    Daemon,
    array_of,
    common_pb2,
    http_call,
    running,
    scene_pb2,
    tensor_of,
    wait_until,
)
from histories import DEPTH, SIDE, History, SceneVersions, at, new_versions, random_edit
from scenes import FREE, OCCUPIED, Scenes, ball, box, spec, vec

INVALID = common_pb2.INVALID_ARGUMENT


@pytest.mark.parametrize("seed", range(4))
def test_random_history_is_that_of_grids(scenes: Scenes, seed: int) -> None:
    """Edits, undos of any version, redos, branches and collections in any order."""
    history = History(np.random.default_rng(seed), scenes)
    for step in range(60):
        versions = history.step(scenes)
        if step % 10 == 9:
            versions.check(scenes, versions.newest)
    history.check(scenes)


def test_undo_of_a_painter_keeps_what_robots_added(daemon: Daemon, scenes: Scenes) -> None:
    """Two robots append while a person paints and undoes: nobody loses voxels."""
    new_versions(scenes, "s", retention=scene_pb2.SceneRetention(versions=4096))
    rng = np.random.default_rng(5)
    voxels = rng.permutation(SIDE**3)
    columns = np.stack(np.unravel_index(voxels, (SIDE,) * 3), -1).astype(np.int32)
    errors: list[BaseException] = []

    def robot(i: int) -> None:
        try:
            with Scenes(daemon, f"robot-{i}") as own:
                for k in range(40):
                    some = columns[(2 * k + i) * 60 : (2 * k + i + 1) * 60]
                    shape = scene_pb2.ScenePoints(points=tensor_of(some))
                    own.edit("s", scene_pb2.SceneOperation(points=shape, material=i))
        except BaseException as error:  # noqa: BLE001  (told by the main thread)
            errors.append(error)

    def person() -> None:
        try:
            with Scenes(daemon, "person") as own:
                for _ in range(15):
                    own.edit("s", box((-9, -9, -9), (9, 9, 9), "SCENE_PAINT", material=9))
                    own.call("scene_undo", name="s")
                    own.edit("s", ball((0, 0, 0), 1.2, material=5))
                    own.call("scene_undo", name="s")
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=robot, args=(i,)) for i in range(2)]
    threads.append(threading.Thread(target=person))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    states, materials = scenes.dense("s", SIDE)
    expected = np.zeros((SIDE,) * 3, bool)
    mine = columns[: 80 * 60]
    expected[tuple(mine.T)] = True
    # None of the person's voxels is left, except where a robot added in the middle of a ball:
    # those voxels were the robot's all along.
    np.testing.assert_array_equal(states == OCCUPIED, expected)
    owner = np.zeros((SIDE,) * 3, np.uint16)
    owner[tuple(mine.T)] = np.arange(len(mine)) // 60 % 2
    np.testing.assert_array_equal(materials[expected], owner[expected])
    log = scenes.call("scene_log", name="s", limit=10000)
    assert len(log.versions) == 1 + 80 + 60
    assert {v.client_id for v in log.versions} == {"", "robot-0", "robot-1", "person"}
    undone = [v for v in log.versions if v.undone_by]
    assert len(undone) == 30 and all(v.client_id == "person" for v in undone)


def test_undo_without_number_takes_the_own_changes_in_turn(
    daemon: Daemon, scenes: Scenes
) -> None:
    versions = new_versions(scenes, "s")
    for x in range(3):
        scenes.edit("s", box((x / 2, 0, 0), ((x + 1) / 2, 1, 1)))
    with Scenes(daemon) as other:
        other.edit("s", box((-0.5, 0, 0), (0, 1, 1)))
        assert [scenes.call("scene_undo", name="s").of_version for _ in range(3)] == [4, 3, 2]
        scenes.fails("scene_undo", common_pb2.NOT_FOUND, "of_version", name="s")
        assert scenes.call("scene_get", name="s").scene.n_occupied == 500
        assert [scenes.call("scene_redo", name="s").of_version for _ in range(3)] == [8, 7, 6]
        scenes.fails("scene_redo", common_pb2.NOT_FOUND, "of_version", name="s")
        assert scenes.call("scene_get", name="s").scene.n_occupied == 2000
        assert other.call("scene_undo", name="s").of_version == 5
        # A redo is a change that can be undone.
        assert scenes.call("scene_undo", name="s").of_version == 11
    assert versions.name == "s"


def test_diff_has_the_cells_that_differ(scenes: Scenes) -> None:
    rng = np.random.default_rng(11)
    versions = new_versions(scenes, "s")
    for _ in range(12):
        scenes.edit("s", random_edit(rng, versions))
    for _ in range(12):
        a, b = (int(v) for v in rng.integers(1, versions.newest + 1, 2))
        level = int(rng.integers(0, DEPTH + 1))
        old, new = versions.grids[a], versions.grids[b]
        low, high = np.sort(rng.integers(0, SIDE + 1, (2, 3)), 0)
        inside = np.zeros((SIDE,) * 3, bool)
        inside[tuple(slice(i, j) for i, j in zip(low, high, strict=True))] = True
        was, now = old.states == OCCUPIED, new.states == OCCUPIED
        bits = (now & ~was) * 1 | (was & ~now) * 2
        bits |= (was & now & (old.materials != new.materials)) * 4
        bits |= ((new.states == FREE) & (old.states != FREE)) * 8
        bits |= ((old.states == FREE) & (new.states != FREE)) * 16
        bits[~inside] = 0
        expected: dict[tuple[int, ...], int] = {}
        for cell in np.argwhere(bits):
            key = tuple(int(c) >> level for c in cell)
            expected[key] = expected.get(key, 0) | int(bits[tuple(cell)])
        fields = {
            "name": "s", "from": at(a), "to": at(b), "level": level, "in_voxels": True,
            "box": scene_pb2.SceneBox(low=vec(*low), high=vec(*high)),
        }
        reply = scenes.call("scene_diff", **fields)
        cells, changes = array_of(reply.cells), array_of(reply.changes)
        assert reply.n_cells == len(expected) == len(cells)
        assert {tuple(c): int(m) for c, m in zip(cells.tolist(), changes, strict=True)} == (
            expected
        )
        parts = [
            array_of(scenes.call("scene_diff", first=i, limit=7, **fields).cells)
            for i in range(0, len(cells), 7)
        ]
        np.testing.assert_array_equal(np.concatenate([*parts, cells[:0]]), cells)
    newest = scenes.call("scene_diff", name="s")
    assert (newest.from_version, newest.to_version) == (versions.newest - 1, versions.newest)


def test_snapshot_keeps_a_version_that_retention_drops(scenes: Scenes) -> None:
    versions = new_versions(scenes, "s", retention=scene_pb2.SceneRetention(versions=3))
    rng = np.random.default_rng(3)
    scenes.edit("s", random_edit(rng, versions))
    taken = scenes.call("scene_snapshot", name="s", snapshot="early").snapshot
    assert (taken.name, taken.version) == ("early", 2)
    for _ in range(6):
        scenes.edit("s", random_edit(rng, versions))
    log = scenes.call("scene_log", name="s")
    assert [v.version for v in log.versions] == [8, 7, 6] and log.oldest == 6
    assert [(n.name, n.version) for n in log.snapshots] == [("early", 2)]
    scenes.call("scene_collect", name="s")
    for version in (2, 6, 7, 8):
        versions.check(scenes, version)
    versions.check(scenes, 2, snapshot="early")
    for version in (1, 5, 9):
        scenes.fails("scene_get", common_pb2.NOT_FOUND, "at.version", name="s", at=at(version))
    scenes.fails("scene_undo", common_pb2.NOT_FOUND, "of_version", name="s", of_version=6)
    exists = common_pb2.ALREADY_EXISTS
    scenes.fails("scene_snapshot", exists, "snapshot", name="s", snapshot="early")
    scenes.call("scene_snapshot", name="s", snapshot="early", replace=True)
    versions.check(scenes, 8, snapshot="early")
    scenes.fails("scene_get", common_pb2.NOT_FOUND, "at.version", name="s", at=at(2))
    scenes.call("scene_snapshot", name="s", snapshot="early", drop=True)
    scenes.fails(
        "scene_snapshot", common_pb2.NOT_FOUND, "snapshot", name="s", snapshot="early", drop=True
    )


def test_branch_outlives_its_parent(scenes: Scenes) -> None:
    versions = new_versions(scenes, "parent")
    rng = np.random.default_rng(4)
    for _ in range(5):
        scenes.edit("parent", random_edit(rng, versions))
    made = scenes.call("scene_branch", name="parent", new_name="child", at=at(3)).scene
    assert (made.version, made.n_sharing, made.oldest_version) == (1, 2, 1)
    child = SceneVersions("child", versions.grids[3])
    exists = common_pb2.ALREADY_EXISTS
    scenes.fails("scene_branch", exists, "new_name", name="parent", new_name="child")
    diff = scenes.call("scene_diff", name="parent", to_name="child")
    differs = (versions.now().states != child.now().states) | (
        versions.now().materials != child.now().materials
    )
    assert diff.n_cells == differs.sum()
    scenes.edit("child", random_edit(rng, child))
    versions.check(scenes, versions.newest)
    scenes.call("scene_drop", name="parent")
    scenes.call("scene_collect", name="child")
    child.check(scenes, 1)
    child.check(scenes, 2)
    assert scenes.call("scene_get", name="child").scene.n_sharing == 1
    new_versions(scenes, "other")
    state = common_pb2.FAILED_PRECONDITION
    scenes.fails("scene_diff", state, "to_name", name="child", to_name="other")


def test_collect_gives_memory_back(tmp_path: Path) -> None:
    """Collects by itself as well, beside readers of the version that goes and of those that stay.
    """
    limits = {"limits": {"scene_collect_growth": 50}}
    with running(tmp_path, limits) as daemon, Scenes(daemon) as scenes:
        scenes.call(
            "scene_create",
            name="s",
            spec=spec(10),
            retention=scene_pb2.SceneRetention(versions=1),
        )
        rng = np.random.default_rng(6)
        stop = threading.Event()
        errors: list[BaseException] = []

        def reader() -> None:
            try:
                with Scenes(daemon) as own:
                    while not stop.is_set():
                        info = own.call("scene_get", name="s").scene
                        assert info.n_occupied == counts[info.version]
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        counts = {1: 0}
        thread = threading.Thread(target=reader)
        thread.start()
        for i in range(18):
            some = rng.integers(0, 1024, (150000, 3)).astype(np.int32)
            n = len(np.unique(some @ np.array([1 << 20, 1 << 10, 1])))
            counts[i + 2] = n
            clear = box((-60, -60, -60), (60, 60, 60), "SCENE_ERASE")
            shape = scene_pb2.ScenePoints(points=tensor_of(some))
            reply = scenes.edit("s", clear, scene_pb2.SceneOperation(points=shape))
            assert reply.change.version == i + 2
        stop.set()
        thread.join()
        assert not errors, errors

        def n_collections() -> int:
            lines = http_call(daemon, "GET", "/metrics").body.decode().splitlines()
            name = "voxeld_scene_collections_total "
            return int(next(x for x in lines if x.startswith(name)).split()[-1])

        wait_until(lambda: n_collections() >= 1, 20, "a collection")
        last = scenes.call("scene_collect", name="s")
        listed = scenes.call("scene_list")
        assert listed.n_bytes == listed.scenes[0].n_bytes == last.n_bytes_after
        scenes.edit("s", box((-60, -60, -60), (60, 60, 60), "SCENE_ERASE"))
        emptied = scenes.call("scene_collect", name="s")
        assert emptied.n_nodes_after == 0
        # A GPU's store begins with 1.6 MiB.
        assert emptied.n_bytes_after < max(last.n_bytes_after / 4, 2 << 20)


@pytest.mark.parametrize(
    ("method", "code", "field", "fields"),
    [
        ("scene_get", INVALID, "at", {"at": at(1, "x")}),
        ("scene_get", INVALID, "at.snapshot", {"at": at(0, "No Name")}),
        ("scene_get", common_pb2.NOT_FOUND, "at.snapshot", {"at": at(0, "none")}),
        ("scene_export", INVALID, "at", {"at": at(1, "x")}),
        ("scene_log", INVALID, "limit", {"limit": 10001}),
        ("scene_undo", common_pb2.FAILED_PRECONDITION, "of_version", {"of_version": 1}),
        ("scene_undo", common_pb2.NOT_FOUND, "of_version", {"of_version": 99}),
        ("scene_undo", common_pb2.ABORTED, "if_version", {"if_version": 99}),
        ("scene_redo", common_pb2.FAILED_PRECONDITION, "of_version", {"of_version": 2}),
        ("scene_redo", common_pb2.NOT_FOUND, "of_version", {}),
        ("scene_snapshot", INVALID, "snapshot", {}),
        ("scene_snapshot", INVALID, "drop", {"snapshot": "x", "drop": True, "replace": True}),
        ("scene_snapshot", common_pb2.NOT_FOUND, "at.version",
         {"snapshot": "x", "at": at(99)}),
        ("scene_branch", INVALID, "new_name", {}),
        ("scene_branch", common_pb2.NOT_FOUND, "at.version",
         {"new_name": "b", "at": at(99)}),
        ("scene_diff", INVALID, "level", {"level": 1 << 31}),
        ("scene_diff", INVALID, "level", {"level": DEPTH + 1}),
        ("scene_diff", INVALID, "to_name", {"to_name": "No"}),
        ("scene_diff", common_pb2.NOT_FOUND, "to_name", {"to_name": "none"}),
        ("scene_diff", common_pb2.NOT_FOUND, "from", {"from": at(99)}),
        ("scene_diff", INVALID, "box.high", {"box": scene_pb2.SceneBox(low=vec(0, 0, 0))}),
    ],
)
def test_wrong_request_says_what_is_wrong(
    scenes: Scenes, method: str, code: int, field: str, fields: dict[str, Any]
) -> None:
    versions = new_versions(scenes, "s")
    scenes.edit("s", box((0, 0, 0), (1, 1, 1)))
    scenes.fails(method, code, field, name="s", **fields)
    for name, wrong in (("none", common_pb2.NOT_FOUND), ("No", INVALID)):
        more = {"snapshot": "x"} if method == "scene_snapshot" else {}
        more |= {"new_name": "x"} if method == "scene_branch" else {}
        scenes.fails(method, wrong, "name", name=name, **more)
    info = scenes.call("scene_get", name="s").scene
    assert info.version == 2 and info.n_occupied == 1000 and versions.newest == 1


def test_versions_over_http(daemon: Daemon, scenes: Scenes) -> None:
    new_versions(scenes, "s")
    scenes.edit("s", box((0, 0, 0), (1, 1, 1)))

    def post(method: str, **body: Any) -> Any:
        reply = http_call(daemon, "POST", f"/v1/{method}", {"name": "s", **body})
        assert reply.status == 200, reply.body
        return reply.json()

    log = post("scene_log")
    assert [v.get("kind", "SCENE_MADE") for v in log["versions"]] == [
        "SCENE_EDITED",
        "SCENE_MADE",
    ]
    assert post("scene_undo", ofVersion=2)["change"]["nRemoved"] == "1000"
    assert post("scene_diff", level=5)["nCells"] == "1"
    assert post("scene_get", at={"version": "2"})["scene"]["nOccupied"] == "1000"
    assert post("scene_snapshot", snapshot="now")["snapshot"]["version"] == "3"
    assert post("scene_branch", newName="t", at={"snapshot": "now"})["scene"]["name"] == "t"
    assert post("scene_verify")["nVersions"] == "3"
    assert "nSlices" in post("scene_collect")
