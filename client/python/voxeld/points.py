# SPDX-License-Identifier: Apache-2.0
"""Turns points as callers have them into clouds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .cloud import Cloud, Pose
from .errors import InvalidArgument

MOST_COLUMNS = 64  # of an array that is not lying on its side

Points = Cloud | Sequence[Cloud] | npt.ArrayLike


def pose_of(pose: Pose | npt.ArrayLike | None) -> Pose | None:
    return pose if pose is None or isinstance(pose, Pose) else Pose.from_matrix(pose)


def clouds_of(points: Points, members: dict[str, Any]) -> list[Cloud]:
    """Makes clouds of the points; members are those of clouds that are made of arrays."""
    if isinstance(points, str | os.PathLike):
        raise InvalidArgument(
            f"{os.fspath(points)!r} is a path; points are right: numpy.load of an .npy file",
            "points",
        )
    if isinstance(points, np.ndarray) and points.ndim == 2:
        n, columns = points.shape
        if n in (3, 4) and columns > MOST_COLUMNS:
            raise InvalidArgument(
                f"an array of shape {points.shape}; a row a point is right: points.T", "points"
            )
    batch = list(points) if isinstance(points, list | tuple) else [points]
    # A list of rows is one array.
    if batch and not any(isinstance(p, Cloud | np.ndarray) for p in batch):
        try:
            batch = [np.asarray(points, np.float32)]
        except (TypeError, ValueError) as e:
            raise InvalidArgument(f"no array of numbers: {e}", "points") from None
    if members and any(isinstance(p, Cloud) for p in batch):
        raise InvalidArgument("for arrays only; a Cloud has its own", next(iter(members)))
    return [p if isinstance(p, Cloud) else Cloud.from_numpy(p, **members) for p in batch]
