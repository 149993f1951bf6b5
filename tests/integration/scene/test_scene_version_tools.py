# SPDX-License-Identifier: Apache-2.0
"""voxelctl on versions of scenes, and on their files on disk, against the real daemon."""

from __future__ import annotations

import re
import json
from pathlib import Path
from typing import Any

import numpy as np
from harness import BIN, SLOW, Daemon, running
from scenes import OCCUPIED, Grid
from test_scene_tools import NAMES, ctl, ctl_json, made
from test_tools import run

DENSE = ("--dense", "--in-voxels", "--box", "0,0,0,64,64,64")


def states(daemon: Daemon, scene: str, directory: Path) -> Any:
    ctl(daemon, "export", scene, directory / "s.npy", *DENSE)
    return np.load(directory / "s.npy")


def drawn(daemon: Daemon) -> tuple[str, list[Grid]]:
    """A scene with three balls, a change each, and what its versions 1 to 4 hold."""
    name = made(daemon)
    grids = [Grid(6, 0.25)]
    for x in (-3, 0, 3):
        ctl(daemon, "edit", name, "--ball", f"{x},0,0,2", "--fill", "4")
        grid = Grid(6, 0.25)
        grid.states[:] = grids[-1].states
        grid.apply(grid.in_ball((x, 0, 0), 2), "SCENE_FILL", 4)
        grids.append(grid)
    return name, grids


def test_versions_and_snapshots_are_looked_at_by_name(daemon: Daemon, directory: Path) -> None:
    name, grids = drawn(daemon)
    assert ctl(daemon, "snapshot", name, "early", "--at", "2").stdout == (
        f"{name}@early is version 2\n"
    )
    for at, grid in [("", grids[3]), ("@4", grids[3]), ("@early", grids[1]), ("@1", grids[0])]:
        np.testing.assert_array_equal(states(daemon, name + at, directory), grid.states)
        info = ctl_json(daemon, "info", name + at)
        assert info["n_occupied"] == (grid.states == OCCUPIED).sum()
    voxel = ("values", "--in-voxels", "44,32,32")
    assert "occupied" in ctl(daemon, "query", name, *voxel).stdout
    assert "unknown" in ctl(daemon, "query", f"{name}@early", *voxel).stdout
    assert "at.version" in ctl(daemon, "info", f"{name}@9", code=1).stderr
    assert "at.snapshot" in ctl(daemon, "info", f"{name}@late", code=1).stderr
    assert "ALREADY_EXISTS" in ctl(daemon, "snapshot", name, "early", code=1).stderr
    moved = ctl_json(daemon, "snapshot", name, "early", "--replace")
    assert moved["version"] == 4
    log = ctl_json(daemon, "log", name, "--limit", "2")
    assert [v["version"] for v in log["versions"]] == [4, 3]
    assert [(s["name"], s["version"]) for s in log["snapshots"]] == [("early", 4)]
    assert re.search(r"\nearly +4  20", ctl(daemon, "log", name).stdout)
    ctl(daemon, "snapshot", name, "early", "--drop")
    assert ctl_json(daemon, "log", name)["snapshots"] == []


def test_undo_takes_the_own_changes_in_turn(daemon: Daemon, directory: Path) -> None:
    name, grids = drawn(daemon)
    # Each run of voxelctl is another client to the daemon.
    log = ctl_json(daemon, "log", name)["versions"]
    assert len({v["client_id"] for v in log}) == 4
    assert [ctl_json(daemon, "undo", name)["of_version"] for _ in range(2)] == [4, 3]
    np.testing.assert_array_equal(states(daemon, name, directory), grids[1].states)
    assert ctl_json(daemon, "redo", name)["of_version"] == 6
    np.testing.assert_array_equal(states(daemon, name, directory), grids[2].states)
    done = ctl_json(daemon, "undo", name, "--of", "2", "--if-version", "7")
    # The second change (3) filled voxels of the first ball again, which it does not count.
    left = (grids[2].states == OCCUPIED) & (grids[1].states != OCCUPIED)
    assert done["of_version"] == 2
    np.testing.assert_array_equal(states(daemon, name, directory) == OCCUPIED, left)
    assert "ABORTED" in ctl(daemon, "undo", name, "--of", "3", "--if-version", "7", code=1).stderr
    assert f"undid 3 by version {done['version'] + 1}" in ctl(
        daemon, "undo", name, "--of", "3"
    ).stdout
    fresh = made(daemon)
    assert "no kept version is a change of yours" in ctl(daemon, "undo", fresh, code=1).stderr


def test_branch_and_diff(daemon: Daemon, directory: Path) -> None:
    name, grids = drawn(daemon)
    branch = next(NAMES)
    made_of = ctl_json(daemon, "branch", name, branch, "--at", "2")
    assert made_of["of_version"] == 2 and made_of["scene"]["n_sharing"] == 2
    np.testing.assert_array_equal(states(daemon, branch, directory), grids[1].states)
    assert "shared      with 1 other scenes" in ctl(daemon, "info", name).stdout
    differs = grids[3].states != grids[1].states
    for words in ([name, "--from", "2"], [branch, "--to-scene", name]):
        done = ctl_json(daemon, "diff", *words, "--out", directory / "d.npz")
        assert done["n_added"] == done["n_cells"] == differs.sum() and done["n_removed"] == 0
        with np.load(directory / "d.npz") as arrays:
            assert set(map(tuple, arrays["cells"])) == set(map(tuple, np.argwhere(differs)))
            assert (arrays["changes"] == 1).all()
    ctl(daemon, "diff", name, "--from", "4", "--to", "2", "--level", "1",
        "--out", directory / "d.npy")  # fmt: skip
    cells = np.load(directory / "d.npy")
    assert set(map(tuple, cells)) == set(map(tuple, np.argwhere(differs) >> 1))
    assert "sound; 4 versions" in ctl(daemon, "verify", name).stdout
    collected = ctl_json(daemon, "collect", name)
    assert collected["n_nodes_after"] <= collected["n_nodes_before"]


def test_durable_scene_is_there_after_a_start_and_in_a_backup(directory: Path) -> None:
    with running(directory) as daemon:
        ctl(daemon, "create", "yard", "--size", "0.25", "--depth", "6", "--keep", "8",
            "--durable", "always", "--journal-max-bytes", "100000")  # fmt: skip
        ctl(daemon, "edit", "yard", "--ball", "0,0,0,3")
        before = ctl_json(daemon, "info", "yard")
        assert before["durable"] == "always" and before["keep_versions"] == 8
        assert before["journal_max_bytes"] == 100000
        backup = run(
            BIN / "voxelctl", "--url", daemon.ipc, "--timeout", 30 * SLOW, "backup", "monday",
            "--json",
        )  # fmt: skip
        path = Path(json.loads(backup.stdout)["path"])
        assert path == directory / "data" / "backups" / "monday"
        again = run(BIN / "voxelctl", "--url", daemon.ipc, "backup", "monday", code=1)
        assert "ALREADY_EXISTS" in again.stderr
    with running(directory) as daemon:
        assert ctl_json(daemon, "info", "yard")["digest"] == before["digest"]
        assert "durable     fsync always" in ctl(daemon, "info", "yard").stdout
    repair = (BIN / "voxelctl", "scene", "repair")
    assert "1 families" in run(*repair, "--dry-run", path).stdout
    assert run(*repair, path).stdout == "0 mended, 0 set aside, 0 lost\n"
    found = json.loads(run(*repair, "--dry-run", path, "--json").stdout)
    assert found["n_families"] == 1 and found["n_losses"] == 0
    assert [p["what"] for p in found["problems"]] == ["note"] * found["n_notes"]
    assert json.loads(run(*repair, path, "--json").stdout) == {
        "done": [], "n_mended": 0, "n_set_aside": 0, "n_lost": 0,
    }  # fmt: skip
    for words in (["--dry-run"], []):
        failed = run(*repair, *words, directory / "nothing", "--json", code=2)
        assert json.loads(failed.stderr)["code"] == "NOT_FOUND" and failed.stdout == ""
    run(*repair, "--dry-run", directory / "nothing", code=2)
    run(*repair, directory / "nothing", code=2)
    (path / "voxeld.db").write_bytes(b"no database" * 1000)
    found = json.loads(run(*repair, "--dry-run", path, "--json", code=1).stdout)
    assert found["n_losses"] == 1 and "--repair-data" in found["help"]
    assert (found["problems"][0]["what"], found["problems"][0]["where"]) == ("loss", "voxeld.db")
    assert "set aside: voxeld.db" in run(*repair, path, code=1).stdout
    (path / "voxeld.db").write_bytes(b"no database" * 1000)
    done = json.loads(run(*repair, path, "--json", code=1).stdout)
    assert ("set aside", "voxeld.db") in [(d["what"], d["where"]) for d in done["done"]]
