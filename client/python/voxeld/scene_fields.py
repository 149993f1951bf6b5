# SPDX-License-Identifier: Apache-2.0
"""Distance fields of scenes: distances at points, contacts, fields as arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import field_pb2

from .calls import Calls
from .errors import InvalidArgument
from .exchange import At, at_of, metres_of, tensor_of
from .scene_records import Box, SceneReply, message_of, plain_shape
from .shown import shown

UNKNOWN = ("free", "occupied", "ignored")
INTERPOLATION = ("nearest", "trilinear")
TO = ("centre", "surface")


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Distances:
    """Distances at points.

    distances       float32 n, metres, negative inside of obstacles; max_distance (or minus that)
                    where nothing is as near; NaN outside of the scene, and where unknown voxels
                    are ignored
    gradients       float32 n x 3 of unit length, pointing out of the obstacle; 0 where nothing is
                    near
    voxels          int32 n x 3, the voxel that is nearest; -2147483648 where none is as near
    n_outside       points outside of the scene, or not finite
    """

    distances: npt.NDArray[np.float32]
    gradients: npt.NDArray[np.float32]
    voxels: npt.NDArray[np.int32]
    max_distance: float
    n_outside: int
    version: int
    generation: int
    engine_ms: float


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Contacts:
    """Which shapes, or trajectories, touch obstacles.

    hits            bool n
    first           int32 n, the first step in contact, -1 = none; of trajectories alone
    clearance       float32 n, metres between surfaces, of trajectories the least of all steps;
                    negative in contact; NaN for boxes and capsules
    """

    hits: npt.NDArray[np.bool_]
    first: npt.NDArray[np.int32] | None
    clearance: npt.NDArray[np.float32]
    n_hits: int
    max_distance: float
    version: int
    generation: int
    engine_ms: float


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class DistanceField:
    """A box of a distance field.

    distances       float32 n_x x n_y x n_z, as of Distances
    origin          the low corner of the first voxel, metres
    """

    distances: npt.NDArray[np.float32]
    origin: tuple[float, float, float]
    voxel_size: float
    max_distance: float
    version: int
    generation: int
    engine_ms: float


def number_of(choice: str, choices: tuple[str, ...], field: str) -> int:
    if choice not in choices:
        raise InvalidArgument(f"{choice!r}; one of {', '.join(choices)}", field)
    return choices.index(choice)


class SceneFields:
    """The calls of Scene on its distance fields. unknown: what unknown voxels are: "free",
    "occupied" (obstacles) or "ignored" (no obstacles, and distances there are NaN). max_distance:
    metres, where distances end, rounded up to whole voxels, of which at most 127 are possible;
    0: two metres, or that."""

    name: str
    _client: Calls

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

    def distance(
        self,
        points: npt.ArrayLike,
        *,
        max_distance: float = 0.0,
        unknown: str = "free",
        interpolation: str = "nearest",
        to: str = "centre",
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Distances:
        """Finds how far the nearest obstacle is from n x 3 points, and in which direction.

        interpolation  "nearest": of the voxel that holds the point, or "trilinear"
        to             "centre": between centres of voxels, or "surface": from the point itself to
                       the surface of obstacles, exactly
        """
        message = message_of(
            field_pb2.SceneDistanceRequest, "max_distance",
            name=self.name, max_distance_m=max_distance, at=at_of(at),
            unknown=number_of(unknown, UNKNOWN, "unknown"),
            interpolation=number_of(interpolation, INTERPOLATION, "interpolation"),
            to=number_of(to, TO, "to"),
        )  # fmt: skip
        places = metres_of(points, "points", 3)
        parts = tensor_of(message.POINTS_FIELD_NUMBER, places)
        reply = self._exchange("scene_distance", message, parts, timeout, request_id)
        with reply:
            n = len(places)
            return Distances(
                distances=reply.array("distances", "<f4", n),
                gradients=reply.array("gradients", "<f4", n, 3),
                voxels=reply.array("voxels", "<i4", n, 3),
                max_distance=reply.message.max_distance_m,
                n_outside=reply.message.n_outside,
                **reply.seen(),
            )

    def collide(
        self,
        *,
        spheres: npt.ArrayLike | None = None,
        boxes: npt.ArrayLike | None = None,
        capsules: npt.ArrayLike | None = None,
        trajectories: npt.ArrayLike | None = None,
        robot: npt.ArrayLike | None = None,
        max_distance: float = 0.0,
        unknown: str = "free",
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Contacts:
        """Finds which shapes touch obstacles; one of the first four is given.

        spheres       n x 4: x y z radius
        boxes         n x 10: centre x y z, half sides, unit quaternion x y z w; or n x 6 without
                      a rotation
        capsules      n x 7: one end, the other end, radius
        trajectories  n x steps x 7 poses of the robot (or steps x 7, one trajectory): position
                      x y z, unit quaternion x y z w
        robot         k x 4: the robot's spheres in its own frame
        """
        given = {"spheres": spheres, "boxes": boxes, "capsules": capsules, "poses": trajectories}
        named = [(name, rows) for name, rows in given.items() if rows is not None]
        if len(named) != 1 or (robot is None) != (trajectories is None):
            raise InvalidArgument(
                "one of spheres, boxes, capsules, or trajectories with a robot", "spheres"
            )
        name, rows = named[0][0], np.asarray(named[0][1])
        n_steps = 0
        if name == "poses":
            rows = rows[np.newaxis] if rows.ndim == 2 else rows
            if rows.ndim != 3 or rows.shape[2] != 7 or rows.shape[1] == 0:
                raise InvalidArgument("n x steps x 7 is right", "trajectories")
            n_steps = rows.shape[1]
            rows = rows.reshape(-1, 7)
        widths = {"spheres": (4,), "boxes": (10, 6), "capsules": (7,), "poses": (7,)}
        rows = metres_of(rows, name, *widths[name])
        if rows.shape[1] == 6:
            rows = np.hstack([rows, np.zeros((len(rows), 4), rows.dtype)])
        message = message_of(
            field_pb2.SceneCollideRequest, "max_distance",
            name=self.name, max_distance_m=max_distance, at=at_of(at), n_steps=n_steps,
            unknown=number_of(unknown, UNKNOWN, "unknown"),
        )  # fmt: skip
        parts = tensor_of(getattr(message, f"{name.upper()}_FIELD_NUMBER"), rows)
        if robot is not None:
            parts += tensor_of(message.ROBOT_FIELD_NUMBER, metres_of(robot, "robot", 4))
        reply = self._exchange("scene_collide", message, parts, timeout, request_id)
        with reply:
            n = len(rows) // (n_steps or 1)
            return Contacts(
                hits=reply.array("hits", "|u1", n).astype(np.bool_),
                first=reply.array("first", "<i4", n) if n_steps else None,
                clearance=reply.array("clearance", "<f4", n),
                n_hits=reply.message.n_hits,
                max_distance=reply.message.max_distance_m,
                **reply.seen(),
            )

    def distance_field(
        self,
        box: Box | None = None,
        *,
        in_voxels: bool = False,
        max_distance: float = 0.0,
        unknown: str = "free",
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> DistanceField:
        """Computes the field of the voxels whose centres are in a box (None: all of the scene),
        between centres."""
        message = message_of(
            field_pb2.SceneFieldRequest, "max_distance",
            name=self.name, in_voxels=in_voxels, max_distance_m=max_distance, at=at_of(at),
            unknown=number_of(unknown, UNKNOWN, "unknown"),
        )  # fmt: skip
        if box is not None:
            message.box.CopyFrom(plain_shape(box, "box")["box"])
        reply = self._exchange("scene_field", message, [], timeout, request_id)
        with reply:
            origin = reply.message.origin
            return DistanceField(
                distances=reply.array("distances", "<f4", *reply.extents("distances", 3)),
                origin=(origin.x, origin.y, origin.z),
                voxel_size=reply.message.voxel_size_m,
                max_distance=reply.message.max_distance_m,
                **reply.seen(),
            )
