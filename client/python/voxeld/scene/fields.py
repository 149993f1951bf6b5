# SPDX-License-Identifier: Apache-2.0
"""Distance fields of scenes: the shapes that are looked at for contacts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument
from ..exchange import Array, metres_of

WIDTHS = {"spheres": (4,), "boxes": (10, 6), "capsules": (7,), "poses": (7,)}


def collide_rows(
    spheres: npt.ArrayLike | None,
    boxes: npt.ArrayLike | None,
    capsules: npt.ArrayLike | None,
    trajectories: npt.ArrayLike | None,
    robot: npt.ArrayLike | None,
) -> tuple[dict[str, Array], int, int]:
    """Returns the request's arrays by field, the number of shapes or trajectories, and how many
    poses a trajectory has."""
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
    rows = metres_of(rows, name, *WIDTHS[name])
    if rows.shape[1] == 6:
        rows = np.hstack([rows, np.zeros((len(rows), 4), rows.dtype)])
    arrays = {name: rows}
    if robot is not None:
        arrays["robot"] = metres_of(robot, "robot", 4)
    return arrays, len(rows) // (n_steps or 1), n_steps
