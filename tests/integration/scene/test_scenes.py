# SPDX-License-Identifier: Apache-2.0
"""Scenes over both transports: edits and queries against a dense grid."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import (
    OK,
    Daemon,
    array_of,
    common_pb2,
    http_call,
    running,
    scene_pb2,
    tensor_of,
    wait_until,
)
from scenes import (
    FREE,
    OCCUPIED,
    UNKNOWN,
    Grid,
    Scenes,
    ball,
    box,
    check_dense,
    points,
    random_operation,
    spec,
    vec,
)


def test_ball_has_the_voxels_that_brute_force_finds(scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec(7))
    grid = Grid(7)
    centre, radius = (0.512, -1.237, 0.333), 2.345
    inside = grid.in_ball(centre, radius)
    reply = scenes.edit("s", ball(centre, radius))
    assert reply.change.version == 2
    assert reply.change.n_added == inside.sum() > 50000
    assert reply.change.n_removed == reply.change.n_changed == reply.change.n_freed == 0
    assert reply.change.n_new_nodes > 0
    grid.apply(inside, "SCENE_FILL")
    check_dense(scenes, "s", grid)
    again = scenes.edit("s", ball(centre, radius)).change
    assert (again.version, again.n_added, again.n_new_nodes) == (3, 0, 0)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_random_lists_of_operations_match_a_grid(scenes: Scenes, bits: int) -> None:
    rng = np.random.default_rng(bits)
    grid = Grid(5, tracks_free=True)
    scenes.call("scene_create", name="s", spec=spec(5, bits=bits, track_free=True))
    for _ in range(12):
        before = grid.states.copy(), grid.materials.copy()
        operations = [random_operation(rng, grid) for _ in range(rng.integers(1, 6))]
        response = scenes.send("scene_edit", name="s", operations=operations)
        if response.header.code == common_pb2.OUT_OF_RANGE:
            np.testing.assert_array_equal(grid.states, before[0])
            continue
        assert response.header.code == OK, response.header
        check_dense(scenes, "s", grid)
        if len(operations) == 1:
            change = response.scene_edit.change
            was, now = before[0] == OCCUPIED, grid.states == OCCUPIED
            assert change.n_added == (now & ~was).sum()
            assert change.n_removed == (was & ~now).sum()
            other = now & was & (grid.materials != before[1])
            assert change.n_changed == other.sum()
            assert change.n_freed == ((grid.states == FREE) & (before[0] != FREE)).sum()


def test_copy_turns_and_mirrors_whole_voxels(scenes: Scenes) -> None:
    rng = np.random.default_rng(5)
    grid = Grid(5)
    scenes.call("scene_create", name="s", spec=spec(5, bits=8))
    voxels = rng.integers(0, 32, (4000, 3)).astype(np.int32)
    materials = rng.integers(0, 256, 4000).astype(np.uint16)
    scenes.edit("s", points(voxels, materials=materials))
    for voxel, material in zip(voxels, materials, strict=True):
        grid.apply(grid.in_points(voxel[None]), "SCENE_FILL", int(material))
    check_dense(scenes, "s", grid)
    matrix = np.array([[0, -1, 0], [1, 0, 0], [0, 0, -1]])
    low, high, source = np.array([3, 4, 5]), np.array([14, 20, 12]), np.array([25, 2, 30])
    copy = scene_pb2.SceneCopy(
        **{"from": vec(*(source + 0.5))}, matrix=matrix.ravel(), copy_empty=True
    )
    operation = box(low, high, "SCENE_COPY", copy=copy)
    scenes.edit("s", operation, in_voxels=True)
    states, was = grid.states.copy(), grid.materials.copy()
    for p in np.ndindex(*(high - low)):
        at = source + matrix @ np.array(p)
        inside = ((at >= 0) & (at < 32)).all()
        grid.states[tuple(low + p)] = states[tuple(at)] if inside else UNKNOWN
        grid.materials[tuple(low + p)] = was[tuple(at)] if inside else 0
    check_dense(scenes, "s", grid)


def test_edit_of_another_version_is_aborted(daemon: Daemon, scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec())
    with Scenes(daemon) as other:
        assert scenes.edit("s", ball((0, 0, 0), 1), if_version=1).change.version == 2
        operations = [box((0, 0, 0), (1, 1, 1), "SCENE_ERASE")]
        message = other.fails(
            "scene_edit",
            common_pb2.ABORTED,
            "if_version",
            name="s",
            operations=operations,
            if_version=1,
        )
        assert "version 2" in message
        assert other.edit("s", *operations, if_version=2).change.version == 3
        assert scenes.call("scene_get", name="s").scene.version == 3


def test_repeated_edit_is_applied_once(daemon: Daemon, scenes: Scenes) -> None:
    scenes.call("scene_create", name="s", spec=spec())
    fields = {"name": "s", "operations": [ball((0, 0, 0), 1)]}
    first = scenes.send("scene_edit", sequence=1000, **fields)
    again = scenes.send("scene_edit", sequence=1000, **fields)
    assert again.header.replayed and not first.header.replayed
    assert again.scene_edit == first.scene_edit
    assert scenes.call("scene_get", name="s").scene.version == 2
    key = {"Idempotency-Key": "k1", "X-Voxeld-Client-Id": "c1"}
    body = {"name": "s", "operations": [{"ball": {"centre": {"x": 1}, "radius": 0.5}}]}
    replies = [http_call(daemon, "POST", "/v1/scene_edit", body, key) for _ in range(2)]
    assert replies[0].json() == replies[1].json()
    assert replies[1].headers["Idempotency-Replayed"] == "true"
    assert scenes.call("scene_get", name="s").scene.version == 3


def test_scene_made_again_has_another_generation(scenes: Scenes) -> None:
    first = scenes.call("scene_create", name="s", spec=spec())
    again = scenes.call("scene_create", name="s", spec=spec(origin=vec(-3.2, -3.2, -3.2)))
    assert not first.existed and again.existed and again.scene == first.scene
    for other in (
        spec(size=0.2),
        spec(7),
        spec(bits=4),
        spec(track_free=True),
        spec(frame_id="m"),
    ):
        scenes.fails("scene_create", common_pb2.ALREADY_EXISTS, "name", name="s", spec=other)
    assert scenes.call("scene_drop", name="s").existed
    assert not scenes.call("scene_drop", name="s", missing_ok=True).existed
    scenes.fails("scene_drop", common_pb2.NOT_FOUND, "name", name="s")
    scenes.fails("scene_get", common_pb2.NOT_FOUND, "name", name="s")
    made = scenes.call("scene_create", name="s", spec=spec()).scene
    assert made.generation != first.scene.generation and made.version == 1


def test_equal_voxels_have_equal_digests(scenes: Scenes) -> None:
    for name in ("a", "b"):
        scenes.call("scene_create", name=name, spec=spec(8))
    scenes.edit("a", ball((0, 0, 0), 3), box((0, -9, -9), (9, 9, 9), "SCENE_ERASE"))
    scenes.edit("b", box((-5, -5, -5), (0, 5, 5)))
    a, b = (scenes.call("scene_get", name=n).scene for n in "ab")
    assert len(a.digest) == 32 and a.digest != b.digest
    cells = array_of(scenes.call("scene_export", name="a").cells)
    scenes.edit("b", box((-99, -99, -99), (99, 99, 99), "SCENE_ERASE"), points(cells))
    b = scenes.call("scene_get", name="b").scene
    assert (a.digest, a.n_occupied, a.live_node_bytes) == (
        b.digest,
        b.n_occupied,
        b.live_node_bytes,
    )


def test_views_and_json_show_scenes(daemon: Daemon, scenes: Scenes) -> None:
    made = http_call(
        daemon,
        "POST",
        "/v1/scene_create",
        {
            "name": "hall",
            "spec": {
                "voxelSizeM": 0.1,
                "depth": 8,
                "materialBits": 4,
                "palette": [{"name": "wall", "rgb": 255}],
            },
        },
    )
    assert made.status == 200, made.body
    body = {
        "name": "hall",
        "operations": [
            {
                "points": {"points": {"shape": [2, 3], "values": [0, 0, 0, 1, 1, 1]}},
                "material": 1,
            }
        ],
    }
    reply = http_call(daemon, "POST", "/v1/scene_edit", body)
    assert reply.json()["change"]["nAdded"] == "2", reply.body
    listed = http_call(daemon, "GET", "/v1/scenes").json()
    assert [s["name"] for s in listed["scenes"]] == ["hall"]
    assert int(listed["nBytes"]) > 0 and "palette" not in listed["scenes"][0]["spec"]
    one = http_call(daemon, "GET", "/v1/scenes/hall").json()["scene"]
    assert one["nOccupied"] == "2" and one["spec"]["palette"] == [{"name": "wall", "rgb": 255}]
    assert http_call(daemon, "GET", "/v1/scenes/none").status == 404
    status = http_call(daemon, "GET", "/v1/status").json()
    assert status["nScenes"] == "1" and int(status["sceneBytes"]) == int(listed["nBytes"])
    metrics = http_call(daemon, "GET", "/metrics").body.decode()
    assert "\nvoxeld_scenes 1\n" in metrics and 'voxeld_scene_bytes{use="used"}' in metrics


def test_scene_dropped_under_a_query_lives_until_it_ends(
    daemon: Daemon, scenes: Scenes
) -> None:
    status = http_call(daemon, "GET", "/v1/status").json()
    before = int(status["deviceBytes"]) if "deviceBytes" in status else 0
    scenes.call("scene_create", name="s", spec=spec(9))
    scenes.edit("s", ball((0, 0, 0), 20), ball((0, 0, 0), 19.5, "SCENE_ERASE"))
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(200000, 3))
    replies: list[Any] = []

    def cast() -> None:
        with Scenes(daemon) as client:
            replies.append(
                client.send(
                    "scene_cast_rays",
                    name="s",
                    origins=tensor_of(np.zeros((1, 3))),
                    directions=tensor_of(directions),
                )
            )

    threads = [threading.Thread(target=cast) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(
        lambda: int(http_call(daemon, "GET", "/v1/status").json().get("running", 0)) > 0
        or len(replies) == 3,
        10,
        "a query runs",
    )
    assert scenes.call("scene_drop", name="s").existed
    for thread in threads:
        thread.join()
    for reply in replies:
        assert reply.header.code in (OK, common_pb2.NOT_FOUND), reply.header
        if reply.header.code == OK:
            assert reply.scene_cast_rays.n_hits == 200000
            distances = array_of(reply.scene_cast_rays.distances)
            assert distances.min() > 19.2 and distances.max() < 19.7
    assert any(r.header.code == OK for r in replies)
    wait_until(
        lambda: int(http_call(daemon, "GET", "/v1/status").json().get("deviceBytes", 0))
        <= before,
        10,
        "the scene's memory is free",
    )


def test_readers_see_whole_versions(daemon: Daemon, scenes: Scenes) -> None:
    """Each edit moves a block of 1000 voxels: every reader counts 1000."""
    scenes.call("scene_create", name="s", spec=spec(8))
    scenes.edit("s", box((0, 0, 0), (10, 10, 10)), in_voxels=True)
    everything = tensor_of(np.array([[-1e3] * 3 + [1e3] * 3]))
    end = threading.Event()
    wrong: list[Any] = []
    seen: list[int] = []

    def count() -> None:
        with Scenes(daemon) as client:
            last = 0
            while not end.is_set():
                reply = client.call("scene_overlap", name="s", boxes=everything, counts=True)
                if array_of(reply.n_occupied)[0] != 1000 or reply.seen.version < last:
                    wrong.append(reply)
                last = reply.seen.version
                seen.append(last)

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(60):
        low, to = (i % 20) * 11, ((i + 1) % 20) * 11
        scenes.edit(
            "s",
            box((low,) * 3, (low + 10,) * 3, "SCENE_ERASE"),
            box((to,) * 3, (to + 10,) * 3),
            in_voxels=True,
        )
        if i % 10 == 9:  # the readers go on while there are edits
            n = len(seen)
            wait_until(lambda n=n: len(seen) > n + 2 or wrong, 5, "they read")
    end.set()
    for thread in threads:
        thread.join()
    assert not wrong and len(set(seen)) > 2


def test_scenes_stay_within_their_limits(directory: Path) -> None:
    limits = {"scene_bytes": 24 << 20, "scenes": 3}
    rng = np.random.default_rng(0)
    with running(directory, {"limits": limits}) as daemon, Scenes(daemon) as scenes:
        for name in "abc":
            scenes.call("scene_create", name=name, spec=spec(12, bits=8))
        message = scenes.fails(
            "scene_create", common_pb2.RESOURCE_EXHAUSTED, name="d", spec=spec()
        )
        assert "limits.scenes" in message
        message = ""
        for _ in range(100):
            before = scenes.call("scene_get", name="a").scene
            at = rng.integers(0, 4096, (50000, 3)).astype(np.int32)
            materials = rng.integers(0, 256, 50000).astype(np.uint8)
            response = scenes.send(
                "scene_edit", name="a", operations=[points(at, materials=materials)]
            )
            if response.header.code != OK:
                assert response.header.code == common_pb2.RESOURCE_EXHAUSTED
                message = response.header.message
                break
        assert "limits.scene_bytes of 25165824" in message
        after = scenes.call("scene_get", name="a").scene
        for field in ("version", "digest", "n_occupied", "changed_ns"):
            assert getattr(after, field) == getattr(before, field)
        assert after.n_occupied > 0
        listed = scenes.call("scene_list")
        assert listed.n_bytes <= listed.limit_bytes == 24 << 20
        scenes.edit("a", box((-1, -1, -1), (1, 1, 1), "SCENE_ERASE"))
        # The error names the scene's own limit where it is the smaller one.
        scenes.call("scene_drop", name="a")
        scenes.call("scene_create", name="a", spec=spec(12), max_bytes=4 << 20)
        own = scenes.fails(
            "scene_edit",
            common_pb2.RESOURCE_EXHAUSTED,
            name="a",
            operations=[points(rng.integers(0, 4096, (1000000, 3)).astype(np.int32))],
        )
        assert "its max_bytes" in own
