# SPDX-License-Identifier: Apache-2.0
"""Odometry: where a lidar is, from its scans."""

from __future__ import annotations

import dataclasses

import numpy.typing as npt

from voxeld.v1 import odometry_pb2

from . import exchange, wire
from .calls import Calls
from .cloud import Deskew, Pose
from .errors import InvalidArgument
from .generated import odometry_methods
from .generated.odometry_records import OdometryInfo, OdometryPose, odometry_pose_of
from .points import Points, clouds_of, pose_of
from .shown import handle_html


class Odometry:
    """A named odometry of a client's server; Client.odometry_create and odometry make it.

    One stream of scans, registered in order. It lives in memory, where a restart of the server
    forgets it. Threads, errors, timeout, request_id and sequence as of Client.
    """

    def __init__(self, client: Calls, info: OdometryInfo) -> None:
        self._client = client
        self.name = info.name
        self.voxel_size_m = info.voxel_size_m
        self.max_range_m = info.max_range_m

    def __repr__(self) -> str:
        return (
            f"<voxeld.Odometry {self.name!r}: a map of voxels of {self.voxel_size_m:g} m up to "
            f"{self.max_range_m:g} m away; at {self._client.url}>"
        )

    _repr_html_ = handle_html

    info = odometry_methods.info
    reset = odometry_methods.reset
    drop = odometry_methods.drop

    def register(
        self,
        points: Points,
        prior: Pose | npt.ArrayLike | None = None,
        *,
        time_field: str | None = None,
        stamp_ns: int | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> OdometryPose:
        """Finds where a scan was taken, and adds it to the odometry's own map.

        points      one cloud, or an array as in Client.voxelize, in the sensor's frame
        prior       where the sensor is thought to be; None, or the identity: where it is predicted
        time_field  the field with the points' times: the scan is deskewed by the motion known;
                    None: the cloud's own deskew
        stamp_ns    of the scan, after that of the one before; None: the cloud's
        """
        clouds = clouds_of(points, {})
        if len(clouds) != 1:
            raise InvalidArgument(f"{len(clouds)} clouds; one is right", "points")
        changes = {
            "T_map_sensor": pose_of(prior),
            "deskew": None if time_field is None else Deskew(time_field=time_field),
            "stamp_ns": stamp_ns,
        }
        cloud = dataclasses.replace(
            clouds[0], **{k: v for k, v in changes.items() if v is not None}
        )
        message = exchange.message_of(odometry_pb2.OdometryRegisterRequest, name=self.name)
        number = odometry_pb2.OdometryRegisterRequest.CLOUD_FIELD_NUMBER
        parts = wire.cloud_parts(cloud, "cloud", number)
        reply = exchange.send(
            self._client, "odometry_register", message, parts, timeout, request_id, sequence
        )
        with reply:
            return odometry_pose_of(reply, message, 6)
