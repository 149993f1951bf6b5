# SPDX-License-Identifier: Apache-2.0
"""Versions of scenes: listing, undoing, naming and branching from them."""

from __future__ import annotations

from typing import TypeVar

from voxeld.v1 import scene_version_pb2

from ..calls import Calls
from ..errors import Aborted
from ..exchange import At, at_of, box_of, change, message_of, send
from ..generated.scene_class import SceneMethods
from ..generated.scene_records import Diff, SceneInfo, diff_of, scene_info_of
from ..reply import bad
from .parts import joined
from .records import Box

Self = TypeVar("Self", bound="SceneVersions")


class SceneVersions(SceneMethods):
    """The calls of Scene on its versions. Every change makes one: 1 as the scene was made, then
    2, 3 ... The newest are kept, and those that a snapshot names; others are NotFound. What
    takes `at` looks at any of them: a version's number, or a snapshot's name."""

    name: str
    _client: Calls

    def __init__(self, client: Calls, info: SceneInfo) -> None:
        raise NotImplementedError  # defined by Scene

    def branch(
        self: Self,
        new_name: str,
        at: At | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Self:
        """Makes a scene that equals a version (None: the newest) of this one: the same space and
        palette, but versions of its own. Raises AlreadyExists where the name is taken."""
        message = scene_version_pb2.SceneBranchRequest(
            name=self.name, new_name=new_name, at=at_of(at)
        )
        reply = change(self._client, "scene_branch", message, timeout, request_id, sequence)
        return type(self)(self._client, scene_info_of(reply.scene))

    def diff(
        self,
        from_: At | None = None,
        to: At | None = None,
        *,
        to_scene: str = "",
        level: int = 0,
        box: Box | None = None,
        in_voxels: bool = False,
        first: int = 0,
        limit: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Diff:
        """Where two versions differ.

        from_, to     None: the version before the newest (with to_scene the newest), and the
                      newest
        to_scene      that `to` is of, where it is another one that shares nodes; "": this one
        level         cells are 2**level voxels a side
        box           None: all of the scene; in_voxels: voxels from the low corner
        first, limit  skip so many cells, get at most so many; limit 0: all, in as many calls
                      as it takes
        """
        message = message_of(
            scene_version_pb2.SceneDiffRequest,
            name=self.name, to_name=to_scene, to=at_of(to, "to"), level=level,
            box=box_of(box, "box"), in_voxels=in_voxels, first=first, limit=limit,
            **{"from": at_of(from_, "from")},
        )  # fmt: skip
        parts: list[Diff] = []
        while True:
            message.first = first + sum(map(len, parts))
            with send(
                self._client, "scene_diff", message, [], timeout, request_id, None
            ) as reply:
                part = diff_of(reply, message, reply.n_rows("cells"))
            if len(part) > part.n_cells:
                raise bad("cells", "more than there are")
            if parts and part.generation != parts[0].generation:
                raise Aborted("the scene was made anew while its versions were compared")
            parts.append(part)
            if limit or not len(part) or message.first + len(part) >= part.n_cells:
                whole: Diff = joined(parts, "cells", "changes")
                return whole
            # The replies that follow are of the same versions.
            getattr(message, "from").CopyFrom(at_of(part.from_version, "from"))
            message.to.CopyFrom(at_of(part.to_version, "to"))
