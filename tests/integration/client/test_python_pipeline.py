# SPDX-License-Identifier: Apache-2.0
"""Many Python calls under way on one connection, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import SLOW, Daemon


@pytest.fixture(scope="module", params=[0, 64 << 20], ids=["socket", "shared"])
def client(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[voxeld.Client]:
    with voxeld.connect(
        daemon.ipc, timeout=30 * SLOW, shared_bytes=request.param
    ) as connected:
        yield connected


@pytest.fixture
def scene(client: voxeld.Client) -> Iterator[voxeld.Scene]:
    made = client.scene_create("line", 0.1, depth=10, track_free=True)
    yield made
    made.drop(missing_ok=True)


def scans(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.uniform(-8, 8, (100 + 13000 * (i % 3), 3)).astype(np.float32) for i in range(n)]


def test_scans_are_added_in_the_order_of_submission(
    client: voxeld.Client, scene: voxeld.Scene
) -> None:
    """Large requests take longer to make than small ones, which come after all the same."""
    given = scans(24)
    with client.pipeline(depth=6) as line:
        futures = [line.submit(scene.integrate, scan, max_range=6) for scan in given]
    results = [future.result() for future in futures]
    assert [r.change.version for r in results] == list(range(2, 26))
    assert [r.n_points for r in results] == [len(scan) for scan in given]
    again = client.scene_create("again", 0.1, depth=10, track_free=True)
    for scan in given:
        again.integrate(scan, max_range=6)
    assert again.info().digest == scene.info().digest
    again.drop()


def test_calls_are_under_way_together_up_to_the_depth(client: voxeld.Client) -> None:
    with client.pipeline(depth=2) as line:
        slow = line.submit(client.self_test, 1000)
        quick = line.submit(client.status)
        assert isinstance(quick.result(20 * SLOW), voxeld.Status)
        assert not slow.done()
        third: list[Future[Any]] = []
        submitting = threading.Thread(
            target=lambda: third.extend(line.submit(client.self_test, 300) for _ in range(2))
        )
        submitting.start()
        slow.result()
        submitting.join(20 * SLOW)
        assert len(third) == 2
    assert all(future.done() for future in third)


def test_a_call_that_fails_harms_no_other(client: voxeld.Client, scene: voxeld.Scene) -> None:
    scan = scans(2)[1]
    with client.pipeline() as line:
        before = line.submit(scene.integrate, scan)
        unsent = line.submit(scene.integrate, scan, rule="none of them")
        refused = line.submit(scene.integrate, scan, if_version=99)
        after = line.submit(scene.integrate, scan)
    assert (before.result().change.version, after.result().change.version) == (2, 3)
    with pytest.raises(voxeld.InvalidArgument):
        unsent.result()
    with pytest.raises(voxeld.Aborted):
        refused.result()
    with pytest.raises(RuntimeError):
        line.submit(client.status)
    line.close()


def test_a_task_awaits_a_submitted_call(client: voxeld.Client) -> None:
    async def ask() -> voxeld.Status:
        return await asyncio.wrap_future(line.submit(client.status))

    with client.pipeline() as line:
        assert isinstance(asyncio.run(ask()), voxeld.Status)


def test_depth_is_within_the_calls_in_flight(client: voxeld.Client) -> None:
    for depth in (0, 17):
        with pytest.raises(voxeld.InvalidArgument) as failure:
            client.pipeline(depth)
        assert failure.value.field == "depth"
