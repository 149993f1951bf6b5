# SPDX-License-Identifier: Apache-2.0
"""Turns points as callers have them into clouds."""

from __future__ import annotations

import dataclasses
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


def clouds_of(points: Points, **members: Any) -> list[Cloud]:
    """Makes clouds of the points; members, where they say something, are those of clouds that are
    made of arrays."""
    members = {name: value for name, value in members.items() if value}
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


def cloud_of(points: Points, **members: Any) -> Cloud:
    """The same of calls that take one cloud."""
    clouds = clouds_of(points, **members)
    if len(clouds) != 1:
        raise InvalidArgument(f"{len(clouds)} clouds; one is right", "points")
    return clouds[0]


def cloud_with(points: Points, **changes: Any) -> Cloud:
    """The same; changes, where they are given, stand for what the cloud itself has."""
    given = {name: value for name, value in changes.items() if value is not None}
    return dataclasses.replace(cloud_of(points), **given)
