# SPDX-License-Identifier: Apache-2.0
"""A daemon for each test file; tests that need another one start it themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Daemon, Rpc, running
from scenes import Scenes


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("d")) as started:
        yield started


@pytest.fixture
def rpc(daemon: Daemon) -> Iterator[Rpc]:
    with Rpc(daemon.ipc) as client:
        yield client


@pytest.fixture
def scenes(daemon: Daemon) -> Iterator[Scenes]:
    with Scenes(daemon) as client:
        for info in client.call("scene_list").scenes:
            client.call("scene_drop", name=info.name)
        yield client


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path is short enough for a socket's, whatever the test is called."""
    return tmp_path_factory.mktemp("d")
