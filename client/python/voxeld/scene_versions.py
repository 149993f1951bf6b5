# SPDX-License-Identifier: Apache-2.0
"""Versions of scenes: listing, undoing, naming and branching from them."""

from __future__ import annotations

from typing import Any, TypeVar

from voxeld.v1 import rpc_pb2, scene_version_pb2

from .calls import Calls
from .errors import Aborted
from .exchange import At, at_of
from .reply import bad, record_of
from .scene_meshes import SceneMeshes
from .scene_records import Box, Change, SceneInfo, SceneReply, info_of, message_of, plain_shape
from .version_records import (
    Collected,
    Diff,
    Log,
    Snapshot,
    Undone,
    Verified,
    diff_of,
    joined_diffs,
    log_of,
)

Self = TypeVar("Self", bound="SceneVersions")


class SceneVersions(SceneMeshes):
    """The calls of Scene on its versions. Every change makes one: 1 as the scene was made, then
    2, 3 ... The newest are kept, and those that a snapshot names; others are NotFound. What
    takes `at` looks at any of them: a version's number, or a snapshot's name."""

    name: str
    _client: Calls

    def __init__(self, client: Calls, info: SceneInfo) -> None:
        raise NotImplementedError  # defined by Scene

    def _exchange(
        self,
        method: str,
        message: Any,
        parts: list[Any],
        timeout: float | None,
        request_id: str | None,
        sequence: int = 0,
    ) -> SceneReply:
        raise NotImplementedError  # defined by Scene

    def log(
        self,
        *,
        below: int = 0,
        limit: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Log:
        """Lists the kept versions below `below` (0: from the newest on), at most limit (0: 100; at
        most 10000), and all snapshots."""
        message = message_of(
            scene_version_pb2.SceneLogRequest, "limit", name=self.name, below=below, limit=limit
        )
        request = rpc_pb2.Request(scene_log=message)
        return log_of(self._client._call("scene_log", request, timeout, request_id).scene_log)

    def undo(
        self,
        of_version: int = 0,
        *,
        if_version: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Undone:
        """Gives the voxels that a version changed, and that are as it left them, the values that
        they had before it; later changes of others stay. This is one change.

        of_version  a version that is kept together with the one before it; 0: the newest that
                    this client (its token and client_id) made by an edit or a scan and that is
                    not undone
        if_version  Aborted unless the scene is at this version; 0: at any
        """
        message = message_of(
            scene_version_pb2.SceneUndoRequest, "of_version",
            name=self.name, of_version=of_version, if_version=if_version,
        )  # fmt: skip
        return self._take_back("scene_undo", message, timeout, request_id, sequence)

    def redo(
        self,
        of_version: int = 0,
        *,
        if_version: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Undone:
        """Undoes an undo. of_version: the version that it made; 0: this client's newest undo
        that is not undone."""
        message = message_of(
            scene_version_pb2.SceneRedoRequest, "of_version",
            name=self.name, of_version=of_version, if_version=if_version,
        )  # fmt: skip
        return self._take_back("scene_redo", message, timeout, request_id, sequence)

    def snapshot(
        self,
        snapshot: str,
        at: At | None = None,
        *,
        replace: bool = False,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Snapshot:
        """Gives a version (None: the newest) a name, which keeps it. A name that exists moves only
        with replace (else AlreadyExists)."""
        message = scene_version_pb2.SceneSnapshotRequest(
            name=self.name, snapshot=snapshot, at=at_of(at), replace=replace
        )
        response = self._client._change("scene_snapshot", message, timeout, request_id, sequence)
        if not response.scene_snapshot.HasField("snapshot"):
            raise bad("snapshot", "a snapshot of no version")
        return record_of(Snapshot, response.scene_snapshot.snapshot)

    def drop_snapshot(
        self,
        snapshot: str,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> None:
        """Drops the name. Raises NotFound where there is none."""
        message = scene_version_pb2.SceneSnapshotRequest(
            name=self.name, snapshot=snapshot, drop=True
        )
        self._client._change("scene_snapshot", message, timeout, request_id, sequence)

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
        response = self._client._change("scene_branch", message, timeout, request_id, sequence)
        return type(self)(self._client, info_of(response.scene_branch.scene))

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
            scene_version_pb2.SceneDiffRequest, "level",
            name=self.name, to_name=to_scene, to=at_of(to, "to"), level=level,
            in_voxels=in_voxels, first=first, limit=limit, **{"from": at_of(from_, "from")},
        )  # fmt: skip
        if box is not None:
            message.box.CopyFrom(plain_shape(box, "box")["box"])
        parts: list[Diff] = []
        while True:
            message.first = first + sum(map(len, parts))
            with self._exchange("scene_diff", message, [], timeout, request_id) as reply:
                part = diff_of(reply)
            if parts and part.generation != parts[0].generation:
                raise Aborted("the scene was made anew while its versions were compared")
            parts.append(part)
            if limit or not len(part) or message.first + len(part) >= part.n_cells:
                return joined_diffs(parts)
            # The replies that follow are of the same versions.
            getattr(message, "from").CopyFrom(at_of(part.from_version, "from"))
            message.to.CopyFrom(at_of(part.to_version, "to"))

    def verify(self, *, timeout: float | None = None, request_id: str | None = None) -> Verified:
        """Checks all nodes that kept versions and snapshots hold. Raises DataLoss where a node
        breaks a rule."""
        message = scene_version_pb2.SceneVerifyRequest(name=self.name)
        request = rpc_pb2.Request(scene_verify=message)
        response = self._client._call("scene_verify", request, timeout, request_id)
        return record_of(Verified, response.scene_verify)

    def collect(
        self,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Collected:
        """Frees the memory that no kept version holds; the server also does so by itself."""
        message = scene_version_pb2.SceneCollectRequest(name=self.name)
        response = self._client._change("scene_collect", message, timeout, request_id, sequence)
        return record_of(
            Collected, response.scene_collect, replayed=response.header.replayed
        )

    def _take_back(
        self,
        method: str,
        message: Any,
        timeout: float | None,
        request_id: str | None,
        sequence: int,
    ) -> Undone:
        response = self._client._change(method, message, timeout, request_id, sequence)
        reply = getattr(response, method)
        if not reply.HasField("change"):
            raise bad("change", "a change that does not say what it did")
        return record_of(
            Undone, reply,
            change=record_of(Change, reply.change), replayed=response.header.replayed,
        )  # fmt: skip
