# SPDX-License-Identifier: Apache-2.0
"""Pose graphs: loops closed, places found again, maps made anew from keyframes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import common_pb2, posegraph_pb2

from . import exchange, wire
from .calls import Calls
from .cloud import Pose
from .errors import InvalidArgument
from .generated import posegraph_methods
from .generated.posegraph_records import (
    POSEGRAPH_ROBUSTS,
    PosegraphAdded,
    PosegraphInfo,
    PosegraphKeyframeAdded,
    PosegraphMatch,
    PosegraphPlaces,
    posegraph_added_of,
    posegraph_keyframe_added_of,
    posegraph_places_of,
)
from .points import Points, clouds_of, pose_of
from .scene.records import HalfSpace, Operation, PointList
from .shown import handle_html

if TYPE_CHECKING:
    from .scenes import Scene
    from .volumes import Volume

PoseLike = Pose | npt.ArrayLike


@dataclasses.dataclass(frozen=True)
class PosegraphNode:
    """A pose of a graph.

    T_map_node  where it is thought to be, a Pose or 4 x 4; None: at the end of the first edge of
                the same call that reaches it from a node that is known
    fixed       it stays where it is
    """

    id: int
    T_map_node: PoseLike | None = None
    fixed: bool = False
    stamp_ns: int = 0


@dataclasses.dataclass(frozen=True)
class PosegraphEdge:
    """A relative pose that was measured: where the node `to` is, seen from the node `start`.

    information  the inverse of its covariance (x y z, rotation vector): 6 x 6, its 21 numbers of
                 the upper triangle, its diagonal of 6, or None: the identity
    robust       "squares", "huber", "cauchy" or "dcs"; width in standard deviations, 0: 1
    """

    start: int
    to: int
    T_from_to: PoseLike
    information: npt.ArrayLike | None = None
    robust: str = "squares"
    width: float = 0.0


@dataclasses.dataclass(frozen=True)
class PosegraphPrior:
    """What is known of one pose; as an edge's, but the information may be semidefinite."""

    node: int
    T_map_node: PoseLike
    information: npt.ArrayLike | None = None
    robust: str = "squares"
    width: float = 0.0


def _pose(pose: PoseLike, field: str) -> common_pb2.Pose:
    """The wire's pose, which is there also where it is the identity."""
    made = pose_of(pose)
    message = None if made is None else wire.pose(made, field)
    return message or common_pb2.Pose(rotation=common_pb2.Quaternion(w=1))


def _information(values: npt.ArrayLike | None, field: str) -> list[float]:
    if values is None:
        return []
    numbers = np.asarray(values, np.float64)
    if numbers.shape not in ((6, 6), (36,), (21,), (6,)):
        raise InvalidArgument(
            f"of shape {numbers.shape}; 6 x 6, 21 or 6 numbers are right", f"{field}.information"
        )
    return [float(v) for v in numbers.ravel()]


def _edge(edge: PosegraphEdge, i: int) -> posegraph_pb2.PosegraphEdge:
    field = f"edges[{i}]"
    message = posegraph_pb2.PosegraphEdge(
        to=edge.to,
        T_from_to=_pose(edge.T_from_to, f"{field}.T_from_to"),
        information=_information(edge.information, field),
        robust=exchange.choice_of(edge.robust, POSEGRAPH_ROBUSTS, f"{field}.robust"),
        width=edge.width,
    )
    setattr(message, "from", edge.start)
    return message


class Posegraph:
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

    info = posegraph_methods.info
    solve = posegraph_methods.solve
    optimize = posegraph_methods.optimize
    read = posegraph_methods.read
    rebuild = posegraph_methods.rebuild
    rebuild_status = posegraph_methods.rebuild_status
    rebuild_cancel = posegraph_methods.rebuild_cancel
    drop = posegraph_methods.drop

    def add(
        self,
        nodes: Iterable[PosegraphNode] = (),
        edges: Iterable[PosegraphEdge] = (),
        priors: Iterable[PosegraphPrior] = (),
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> PosegraphAdded:
        """Adds nodes, edges and priors; all or nothing."""
        for kind, field, given in (
            (PosegraphNode, "nodes", nodes := list(nodes)),
            (PosegraphEdge, "edges", edges := list(edges)),
            (PosegraphPrior, "priors", priors := list(priors)),
        ):
            for i, one in enumerate(given):
                if not isinstance(one, kind):
                    raise InvalidArgument(
                        f"{type(one).__name__}; a {kind.__name__} is right", f"{field}[{i}]"
                    )
        message = posegraph_pb2.PosegraphAddRequest(
            name=self.name,
            nodes=[
                posegraph_pb2.PosegraphNode(
                    id=n.id,
                    T_map_node=None
                    if n.T_map_node is None
                    else _pose(n.T_map_node, f"nodes[{i}].T_map_node"),
                    fixed=n.fixed,
                    stamp_ns=n.stamp_ns,
                )
                for i, n in enumerate(nodes)
            ],
            edges=[_edge(e, i) for i, e in enumerate(edges)],
            priors=[
                posegraph_pb2.PosegraphPrior(
                    node=p.node,
                    T_map_node=_pose(p.T_map_node, f"priors[{i}].T_map_node"),
                    information=_information(p.information, f"priors[{i}]"),
                    robust=exchange.choice_of(p.robust, POSEGRAPH_ROBUSTS, f"priors[{i}].robust"),
                    width=p.width,
                )
                for i, p in enumerate(priors)
            ],
        )
        reply = exchange.change(
            self._client, "posegraph_add", message, timeout, request_id, sequence
        )
        return posegraph_added_of(reply)

    def add_keyframe(
        self,
        id: int,
        points: Points,
        T_map_node: PoseLike | None = None,
        *,
        network: str = "",
        output: str = "",
        descriptor: npt.ArrayLike | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> PosegraphKeyframeAdded:
        """Makes a node a keyframe: its cloud is kept, and its descriptor.

        points      one cloud, or an array as in Client.voxelize, in the node's frame
        T_map_node  where the node is, if it is to be made; None: at the map's zero
        network     whose output is the descriptor; or descriptor has it. With neither nothing
                    finds the keyframe
        """
        message = posegraph_pb2.PosegraphAddKeyframeRequest(
            name=self.name,
            id=id,
            T_map_node=None if T_map_node is None else _pose(T_map_node, "T_map_node"),
            network=network,
            output=output,
            descriptor=_descriptor(descriptor),
        )
        with self._send("posegraph_add_keyframe", message, points, timeout, request_id,
                        sequence) as reply:  # fmt: skip
            return posegraph_keyframe_added_of(reply.message)

    def relocalize(
        self,
        points: Points | None = None,
        *,
        of_node: int | None = None,
        skip_recent: int = 0,
        network: str = "",
        output: str = "",
        descriptor: npt.ArrayLike | None = None,
        candidates: int = 0,
        cell_m: float = 0.0,
        min_fitness: float = 0.0,
        min_constraint: float = 0.0,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> PosegraphPlaces:
        """Finds where a scan was taken, among the keyframes.

        points       one cloud, or an array as in Client.voxelize, in the sensor's frame, with
                     network or descriptor
        of_node      instead: the keyframe of this node; neither it nor the skip_recent keyframes
                     added before and after it are candidates
        candidates   keyframes that are tried; 0: 3
        cell_m       edge of the cells that surfaces are compared in; 0: 0.5
        min_fitness  matches below it are refused; 0: 0.6
        """
        message = posegraph_pb2.PosegraphRelocalizeRequest(
            name=self.name,
            network=network,
            output=output,
            descriptor=_descriptor(descriptor),
            of_node=of_node is not None,
            id=of_node or 0,
            skip_recent=skip_recent,
            candidates=candidates,
            cell_m=cell_m,
            min_fitness=min_fitness,
            min_constraint=min_constraint,
        )
        with self._send("posegraph_relocalize", message, points, timeout, request_id,
                        None) as reply:  # fmt: skip
            return posegraph_places_of(reply.message)

    def _send(
        self,
        method: str,
        message: Any,
        points: Points | None,
        timeout: float | None,
        request_id: str | None,
        sequence: int | None,
    ) -> exchange.Reply:
        parts: list[wire.Part] = []
        if points is not None:
            clouds = clouds_of(points, {})
            if len(clouds) != 1:
                raise InvalidArgument(f"{len(clouds)} clouds; one is right", "points")
            number = type(message).CLOUD_FIELD_NUMBER
            parts = wire.cloud_parts(clouds[0], "cloud", number)
        return exchange.send(self._client, method, message, parts, timeout, request_id, sequence)

    # Loops, and maps made anew -----------------------------------------------------------------

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


def _descriptor(values: npt.ArrayLike | None) -> Sequence[float]:
    if values is None:
        return []
    numbers = np.asarray(values, np.float32)
    if numbers.ndim != 1:
        raise InvalidArgument(f"of shape {numbers.shape}; one row is right", "descriptor")
    return [float(v) for v in numbers]
