# SPDX-License-Identifier: Apache-2.0
"""A server's limits on scenes: bytes a token, and the stores that they may lie in."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import BIN, HAS_PAPER, OK, Daemon, common_pb2, running, scene_pb2, tensor_of
from scenes import Scenes, ball, box, spec

PAPER_STORES = ["atomic64", "ticket", "accel32", "accel8"]
EXHAUSTED = common_pb2.RESOURCE_EXHAUSTED


def fill(client: Scenes, name: str, rng: np.random.Generator) -> str:
    """Fills a scene until the server refuses more; returns the message."""
    for _ in range(200):
        at = rng.integers(0, 4096, (30000, 3)).astype(np.int32)
        operation = scene_pb2.SceneOperation(points=scene_pb2.ScenePoints(points=tensor_of(at)))
        response = client.send("scene_edit", name=name, operations=[operation])
        if response.header.code == EXHAUSTED:
            return response.header.message
        assert response.header.code == OK, response.header
    raise AssertionError("it grew for ever")


def test_tokens_have_scene_bytes_of_their_own_and_refusals_name_the_limit(
    directory: Path,
) -> None:
    tokens = directory / "tokens"
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("ann", "bob")}
    tokens.write_text("".join(f"{n} read,write {d}\n" for n, d in digests.items()))
    tokens.chmod(0o600)
    config = {
        "auth": {"tokens_file": str(tokens)},
        "limits": {
            "scene_bytes": 40 << 20,
            "scene_bytes_per_token": 24 << 20,
            "scene_collect_growth": 0,
        },
    }
    rng = np.random.default_rng(1)
    with (
        running(directory, config) as daemon,
        Scenes(daemon, "ann", "ann") as ann,
        Scenes(daemon, "bob", "bob") as bob,
    ):
        ann.call("scene_create", name="a", spec=spec(12))
        # Beside a full first scene there may be no memory for an empty one.
        ann.call("scene_create", name="a2", spec=spec(12))
        # The scene counts for Ann, whoever fills it.
        assert "limits.scene_bytes_per_token of 25165824" in fill(bob, "a", rng)
        taken = bob.call("scene_get", name="a").scene
        assert taken.owner == "ann" and 4 << 20 < taken.n_bytes <= 24 << 20
        assert "limits.scene_bytes_per_token" in fill(ann, "a2", rng)
        # Bob has bytes of his own, until all are taken.
        bob.call("scene_create", name="b", spec=spec(12))
        assert "limits.scene_bytes of 41943040" in fill(bob, "b", rng)
        assert bob.call("scene_list").n_bytes <= 40 << 20
        # Bytes of a dropped scene are its owner's again.
        ann.call("scene_drop", name="a")
        ann.edit("a2", ball((0, 0, 0), 5))
        assert ann.call("scene_get", name="a2").scene.version > 1


@pytest.mark.parametrize("store", ["arena", *(PAPER_STORES if HAS_PAPER else [])])
def test_every_store_has_the_same_scene(directory: Path, daemon: Daemon, store: str) -> None:
    operations = [
        ball((0, 0, 0), 4.3),
        ball((2, 1, -1), 3.1, "SCENE_PAINT", material=3),
        box((-1, -1, -6), (1, 1, 6), "SCENE_ERASE"),
    ]
    scan = np.random.default_rng(3).uniform(-6, 6, (3000, 3)).astype(np.float32)
    cloud = common_pb2.Cloud(
        fields=[common_pb2.Field(name=n, offset=4 * i, dtype=common_pb2.FLOAT32)
                for i, n in enumerate("xyz")],
        point_step=12, data=scan.tobytes(),
    )  # fmt: skip
    digests = []
    with running(directory, {"scenes": {"store": store}}) as other:
        for started in (daemon, other):
            with Scenes(started) as scenes:
                made = scenes.call("scene_create", name="s", spec=spec(7, 0.25, 4, track_free=True))
                assert not made.existed
                for operation in operations:
                    scenes.edit("s", operation)
                scenes.call("scene_integrate", name="s", cloud=cloud, carve={"max_range_m": 9})
                info = scenes.call("scene_get", name="s").scene
                digests.append((info.digest, info.n_occupied, info.n_free, info.n_nodes > 0))
                scenes.call("scene_drop", name="s")
        with Scenes(other) as scenes:
            if store == "arena":
                scenes.call("scene_create", name="bits", spec=spec(7, bits=16))
                return
            for bits in (8, 16):
                message = scenes.fails(
                    "scene_create", common_pb2.INVALID_ARGUMENT, "spec.material_bits",
                    name="bits", spec=spec(7, bits=bits),
                )  # fmt: skip
                assert f'scenes.store is "{store}"' in message and "at most 4" in message
    assert digests[0] == digests[1]


def test_unknown_stores_are_refused_at_the_start(directory: Path) -> None:
    path = directory / "voxeld.json"
    path.write_text('{"scenes": {"store": "slabs"}}')
    done = subprocess.run(
        [BIN / "voxeld", "--config", path], capture_output=True, text=True, timeout=30
    )
    assert done.returncode != 0
    assert "scenes.store" in done.stderr and "arena atomic64" in done.stderr


@pytest.mark.parametrize("store", PAPER_STORES)
def test_papers_stores_are_of_this_build_or_named_as_left_out(directory: Path, store: str) -> None:
    path = directory / "voxeld.json"
    path.write_text(f'{{"scenes": {{"store": "{store}"}}}}')
    done = subprocess.run(
        [BIN / "voxeld", "--check-config", path], capture_output=True, text=True, timeout=30
    )
    if HAS_PAPER:
        assert (done.returncode, done.stdout) == (0, "ok\n")
        return
    assert done.returncode != 0
    assert f'scenes.store: store "{store}" is one of the papers\' stores' in done.stderr
    assert "VOXELD_PAPER=OFF" in done.stderr and "known here: arena" in done.stderr
