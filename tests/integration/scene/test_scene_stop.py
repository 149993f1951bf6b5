# SPDX-License-Identifier: Apache-2.0
"""Edits that nobody waits for any more: they end, without a version, and leave the lane to others;
whoever asks again with the same number runs them then. And edits that look at too much."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from harness import (
    OK,
    Daemon,
    RawReq,
    Rpc,
    common_pb2,
    running,
    scene_pb2,
    wait_until,
)
from scenes import LONG_MS, Scenes, slow_edit, spec


def version_of(scenes: Scenes, name: str) -> int:
    return int(scenes.call("scene_get", name=name).scene.version)


@pytest.fixture(params=["in memory", "durable"])
def yard(daemon: Daemon, request: pytest.FixtureRequest) -> str:
    name = "yard-" + request.param.replace(" ", "-")
    durable = scene_pb2.SceneDurability(fsync="SCENE_FSYNC_ALWAYS")
    more = {"durability": durable} if request.param == "durable" else {}
    with Scenes(daemon) as scenes:
        scenes.call("scene_create", name=name, spec=spec(14, bits=4), **more)
    yield name
    with Scenes(daemon) as scenes:
        scenes.call("scene_drop", name=name)


def test_edit_beyond_its_deadline_ends_without_a_version(daemon: Daemon, yard: str) -> None:
    with Rpc(daemon.ipc) as client, Scenes(daemon) as scenes:
        with RawReq(daemon.ipc) as peer:
            peer.send(slow_edit(yard, 1, 300, 200.0))
            reply = peer.receive()
        assert reply.header.code == common_pb2.DEADLINE_EXCEEDED
        wait_until(lambda: daemon.n_under_way() == 0, 20, "its lane is free")
        assert version_of(scenes, yard) == 1
        with RawReq(daemon.ipc) as peer:  # its number is free for an edit that fits
            peer.send(slow_edit(yard, 1, LONG_MS, 4.0))
            assert peer.receive().header.code == OK
        assert version_of(scenes, yard) == 2
        assert client.call("server_info").header.code == OK


def test_edit_of_a_client_that_left_ends_and_runs_when_asked_again(
    daemon: Daemon, yard: str
) -> None:
    with Scenes(daemon) as scenes:
        with RawReq(daemon.ipc) as peer:
            peer.send(slow_edit(yard, 11, LONG_MS, 200.0))
            wait_until(lambda: daemon.n_under_way() == 1, 10, "it runs")
        begin = time.monotonic()
        wait_until(lambda: daemon.n_under_way() == 0, 20, "its lane is free")
        assert time.monotonic() - begin < LONG_MS / 1000
        assert version_of(scenes, yard) == 1
        for _ in range(2):
            with RawReq(daemon.ipc) as peer:
                peer.send(slow_edit(yard, 11, LONG_MS, 4.0))
                assert peer.receive().header.code == OK
        assert version_of(scenes, yard) == 2  # once


def test_edit_of_too_many_regions_names_the_key_and_comes_back(directory: Path) -> None:
    low = {"limits": {"scene_edit_regions": 65536}}
    durable = scene_pb2.SceneDurability(fsync="SCENE_FSYNC_ALWAYS")
    edit = slow_edit("yard", 1, LONG_MS, 12.0).scene_edit
    with running(directory) as daemon, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="yard", spec=spec(14, bits=4), durability=durable)
        scenes.call("scene_edit", name="yard", operations=edit.operations)
        assert version_of(scenes, "yard") == 2
    with running(directory, low) as daemon, Scenes(daemon) as scenes:
        assert version_of(scenes, "yard") == 2  # it was allowed once
        header = scenes.rpc.call("scene_edit", edit, client_id="a", sequence=1).header
        assert header.code == common_pb2.RESOURCE_EXHAUSTED
        assert "65536" in header.message and "limits.scene_edit_regions" in header.message
        assert version_of(scenes, "yard") == 2
