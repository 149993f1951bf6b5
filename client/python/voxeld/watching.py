# SPDX-License-Identifier: Apache-2.0
"""Watching: iterators over what changes in scenes, and in all scenes or volumes, made of one long
poll after the other."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import watch_pb2

from .calls import Calls
from .errors import DeadlineExceeded, Unavailable
from .exchange import Reply, send
from .reply import bad
from .scene.records import Box, message_of, plain_shape

KINDS = ("unchanged", "cells", "resync", "dropped", "created", "heads", "blocks")
WAIT_S = 20.0
SPARE_S = 5.0  # how much longer than its wait a poll may take
PAUSE_S = 0.5  # after a poll that found no server


@dataclasses.dataclass(frozen=True)
class WatchPoint:
    """What a watcher knows; an iterator that begins after it goes on from there."""

    generation: int
    version: int
    to_version: int = 0
    first: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Watched:
    """What a watch tells.

    kind     "cells": of two versions that differ; "resync": what was known is not kept any more
             (or nothing was known), so the scene has to be read anew, as `version`; "dropped";
             "created": the name was given again
    cells    int32 n x 3: voxel indices >> level, in Morton order
    changes  uint8 n, a set of Difference each
    after    for a watch that is to go on from here
    """

    kind: str
    after: WatchPoint
    from_version: int
    version: int
    cells: npt.NDArray[np.int32]
    changes: npt.NDArray[np.uint8]
    n_cells: int
    origin: tuple[float, float, float]
    cell_size: float
    frame_id: str

    def __len__(self) -> int:
        return len(self.cells)


@dataclasses.dataclass(frozen=True)
class Heads:
    """Newest versions of scenes or volumes that have changed, and names that are gone. is_complete:
    they are all that there are."""

    versions: dict[str, int]
    dropped: tuple[str, ...]
    is_complete: bool
    after: WatchPoint


def point_of(message: Any) -> WatchPoint:
    if not message.HasField("next"):
        raise bad("next", "a watch that does not say where to go on")
    next_ = message.next
    return WatchPoint(next_.generation, next_.version, next_.to_version, next_.first)


def watched_of(reply: Reply) -> Watched:
    message: Any = reply.message
    n, columns = reply.extents("cells", 2)
    if columns != 3 or n > message.n_cells or not message.kind < len(KINDS):
        raise bad("cells", "not three numbers a cell, of those there are")
    after = point_of(message)
    return Watched(
        kind=KINDS[message.kind],
        after=after,
        from_version=message.from_version,
        version=message.to_version or after.version,
        cells=np.asarray(reply.array("cells", "<i4", n, 3), np.int32),
        changes=np.asarray(reply.array("changes", "|u1", n), np.uint8),
        n_cells=message.n_cells,
        **reply.place(),
    )


class Polls:
    """One long poll after the other; each goes on from the one before."""

    def __init__(
        self, client: Calls, method: str, message: Any, after: WatchPoint | None
    ) -> None:
        self.client = client
        self.method = method
        self.message = message
        self.go_on(after)

    def go_on(self, after: WatchPoint | None) -> None:
        if after is not None:
            self.message.after.CopyFrom(watch_pb2.WatchPoint(**dataclasses.asdict(after)))

    def ask(self, wait_s: float) -> Reply:
        self.message.timeout_ms = round(wait_s * 1000)
        timeout_s = wait_s + SPARE_S
        return send(self.client, self.method, self.message, [], timeout_s, None, None)

    def run(self, duration: float | None) -> Iterator[Reply]:
        end = None if duration is None else time.monotonic() + duration
        known = False
        while True:
            left = WAIT_S if end is None else min(WAIT_S, end - time.monotonic())
            if left <= 0 and known:
                return
            try:
                reply = self.ask(max(left, 0.0))
            except (Unavailable, DeadlineExceeded):
                if not known or (end is not None and time.monotonic() + PAUSE_S > end):
                    raise
                time.sleep(PAUSE_S)
                continue
            known = True
            with reply:
                self.go_on(point_of(reply.message))
                if reply.message.kind != watch_pb2.WATCH_UNCHANGED:
                    yield reply


class SceneWatches:
    """The call of Scene that watches it."""

    name: str
    _client: Calls

    def watch(
        self,
        *,
        after: WatchPoint | None = None,
        level: int = 0,
        box: Box | None = None,
        in_voxels: bool = False,
        max_bytes: int = 0,
        duration: float | None = None,
    ) -> Iterator[Watched]:
        """Tells what changes, until duration (seconds) is over; None: for ever. It outlives
        restarts of the server.

        after      what is known already, the `after` of an earlier one; None: nothing, and the
                   first thing given is a "resync" with the version to begin with
        level      cells are 2**level voxels a side
        box        None: all of the scene; in_voxels: voxels from the low corner
        max_bytes  of the arrays given at once; 0: 1 MiB
        """
        message = message_of(
            watch_pb2.SceneWatchRequest, "level",
            name=self.name, level=level, in_voxels=in_voxels, max_bytes=max_bytes,
        )  # fmt: skip
        if box is not None:
            message.box.CopyFrom(plain_shape(box, "box")["box"])
        for reply in Polls(self._client, "scene_watch", message, after).run(duration):
            yield watched_of(reply)


def heads_of(reply: Reply) -> Heads:
    message: Any = reply.message
    return Heads(
        versions={h.name: h.version for h in message.heads},
        dropped=tuple(message.dropped),
        is_complete=message.is_complete,
        after=point_of(message),
    )


class WatchCalls(Calls):
    """The calls of Client that watch all scenes or volumes."""

    def watch(
        self, *, after: WatchPoint | None = None, duration: float | None = None
    ) -> Iterator[Heads]:
        """Gives the newest versions of all scenes, and then what changes, until duration
        (seconds) is over; None: for ever."""
        message = watch_pb2.SceneWatchRequest()
        for reply in Polls(self, "scene_watch", message, after).run(duration):
            yield heads_of(reply)

    def watch_volumes(
        self, *, after: WatchPoint | None = None, duration: float | None = None
    ) -> Iterator[Heads]:
        """The same of all volumes, whose versions are their stamps."""
        message = watch_pb2.VolumeWatchRequest()
        for reply in Polls(self, "volume_watch", message, after).run(duration):
            yield heads_of(reply)
