# SPDX-License-Identifier: Apache-2.0
"""Distance fields of scenes: distances at points, contacts, fields as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import field_pb2

from ..calls import Calls
from ..errors import InvalidArgument
from ..exchange import At, at_of, metres_of, tensor_of
from ..generated import field_methods
from ..generated.field_records import FIELD_UNKNOWNS, Contacts, contacts_of
from .records import SceneReply, message_of


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

    distance = field_methods.distance
    distance_field = field_methods.distance_field

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
            unknown=number_of(unknown, FIELD_UNKNOWNS, "unknown"),
        )  # fmt: skip
        parts = tensor_of(getattr(message, f"{name.upper()}_FIELD_NUMBER"), rows)
        if robot is not None:
            parts += tensor_of(message.ROBOT_FIELD_NUMBER, metres_of(robot, "robot", 4))
        reply = self._exchange("scene_collide", message, parts, timeout, request_id)
        with reply:
            n = len(rows) // (n_steps or 1)
            return contacts_of(reply, message, n)
