# SPDX-License-Identifier: Apache-2.0
"""Odometry: where a lidar is, from its scans."""

from __future__ import annotations


from .calls import Calls
from .generated.odometry_class import OdometryMethods
from .generated.odometry_records import OdometryInfo
from .shown import handle_html


class Odometry(OdometryMethods):
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

