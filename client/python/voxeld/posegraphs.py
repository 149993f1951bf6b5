# SPDX-License-Identifier: Apache-2.0
"""Pose graphs: loops closed, places found again, maps made anew from keyframes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import exchange
from .calls import Calls
from .cloud import Pose
from .generated.posegraph_class import PosegraphMethods
from .generated.posegraph_records import PosegraphEdge, PosegraphInfo, PosegraphMatch
from .scene.records import HalfSpace, Operation, PointList
from .shown import handle_html

if TYPE_CHECKING:
    from .scenes import Scene
    from .volumes import Volume

class Posegraph(PosegraphMethods):
    """A named pose graph of a client's server; Client.posegraph_create and posegraph make it.

    Poses are T_map_node, of a node's frame in the map. Threads, errors, timeout, request_id and
    sequence as of Client.
    """

    def __init__(self, client: Calls, info: PosegraphInfo) -> None:
        self._client = client
        self.name = info.name

    def __repr__(self) -> str:
        return f"<voxeld.Posegraph {self.name!r}: poses in metres; at {self._client.url}>"

    _repr_html_ = handle_html

    def close_loops(
        self,
        id: int,
        *,
        skip_recent: int = 10,
        robust: str = "dcs",
        width: float = 3.0,
        **more: Any,
    ) -> list[PosegraphMatch]:
        """Looks for the place of a keyframe among those that are not near it in time, and adds an
        edge for each that it matches. more: the arguments of relocalize. Returns the matches."""
        places = self.relocalize(of_node=id, skip_recent=skip_recent, **more)
        found = [m for m in places.matches if m.accepted]
        if found:
            self.add(
                edges=[
                    PosegraphEdge(m.id, id, m.T_node_sensor, m.information, robust, width)
                    for m in found
                ]
            )
        return found

    def keyframes(self, version: int = 0) -> Iterator[tuple[int, Pose, exchange.Array]]:
        """All keyframes in the order of their nodes: id, pose of a version, points (n x 3)."""
        content = self.read(version=version)
        for i in np.flatnonzero(content.flags & 2):
            row = [float(v) for v in content.poses[i]]
            points = self.read(keyframe=True, keyframe_id=int(content.ids[i])).points
            yield int(content.ids[i]), Pose(tuple(row[:3]), tuple(row[3:])), points

    def rebuild_scene(self, scene: Scene, *, version: int = 0, **more: Any) -> int:
        """As rebuild, but from here, with any arguments of Scene.integrate (a filter, say): each
        keyframe comes over the connection and goes back. The scene is made beside the one that is
        there, in a branch that is dropped at the end, and then replaces its voxels as one change.
        Returns the scene's new version."""
        everything = HalfSpace((0, 0, 1), 1e9)
        beside = scene.branch(f"{scene.name[:55]}.rebuilt")
        try:
            beside.edit(Operation(everything, "erase"))
            for _, pose, points in self.keyframes(version):
                beside.integrate(points, pose=pose, **more)
            steps = [Operation(everything, "erase")]
            cells = beside.export()
            if beside.info().track_free:
                free = beside.export(free=True)
                if len(free):
                    steps.append(Operation(PointList(free.cells), "set_free"))
            if len(cells):
                steps.append(Operation(PointList(cells.cells, cells.materials), "fill"))
            return scene.edit(steps).change.version
        finally:
            beside.drop()

    def rebuild_volume(self, volume: Volume, *, version: int = 0, **more: Any) -> int:
        """As rebuild, but from here, into a volume that is empty, with any arguments of
        Volume.integrate_points. Returns the number of keyframes."""
        n = 0
        for _, pose, points in self.keyframes(version):
            volume.integrate_points(points, pose=pose, **more)
            n += 1
        return n
