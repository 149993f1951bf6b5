# SPDX-License-Identifier: Apache-2.0
"""Volumes: depth images and lidar scans with known poses to meshes, points and pictures."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import volume_pb2

from . import exchange, wire
from .calls import Calls
from .cloud import Pose
from .errors import InvalidArgument
from .generated import volume_methods
from .generated.volume_class import VolumeMethods
from .generated.volume_records import (
    Camera,
    VolumeBox,
    VolumeInfo,
    VolumeIntegrated,
    VolumeTrack,
    VolumeTracked,
)
from .points import pose_of
from .shown import handle_html
from .volume import meshes
from .volume.watches import VolumeWatches

DEPTH_TYPES = {"u2": "uint16", "f4": "float32"}


def _images(
    depth: npt.NDArray[Any], camera: Camera, colour: npt.NDArray[np.uint8] | None
) -> dict[str, Any]:
    """Arguments of the methods that take images as bytes."""
    kind = DEPTH_TYPES.get(f"{depth.dtype.kind}{depth.dtype.itemsize}")
    if kind is None or depth.ndim != 2:
        raise InvalidArgument(
            f"{depth.dtype} of shape {depth.shape}; height x width uint16 or float32 is right",
            "depth",
        )
    if colour is not None and (
        colour.dtype != np.uint8 or colour.shape != (*depth.shape, 3)
    ):
        raise InvalidArgument(
            f"{colour.dtype} of shape {colour.shape}; uint8 {(*depth.shape, 3)} is right",
            "colour",
        )
    if not isinstance(camera, Camera):
        raise InvalidArgument(
            f"{type(camera).__name__}; Camera(0, 0, fx, fy, cx, cy) is right", "camera"
        )
    height, width = depth.shape
    return {
        "depth": np.ascontiguousarray(depth, depth.dtype.newbyteorder("<")).tobytes(),
        "camera": Camera(**{**vars(camera), "width": width, "height": height}),
        "depth_type": kind,
        "colour": b"" if colour is None else np.ascontiguousarray(colour).tobytes(),
        "colour_type": "rgb",
    }


class Volume(VolumeMethods, VolumeWatches):
    """A named volume of a client's server; Client.volume_create and volume make it.

    Volumes live in memory, where a restart of the server forgets them, unless they were made
    durable. A camera's frame is x right, y down, z forward; depth is z. Threads, errors, timeout,
    request_id and sequence as of Client.
    """

    def __init__(self, client: Calls, info: VolumeInfo) -> None:
        self._client = client
        self.name = info.name
        self.voxel_size_m = info.voxel_size_m
        self.origin = info.origin

    def __repr__(self) -> str:
        return (
            f"<voxeld.Volume {self.name!r}: voxels of {self.voxel_size_m:g} m; "
            f"at {self._client.url}>"
        )

    _repr_html_ = handle_html

    def copy(self, to: str, **more: Any) -> Volume:
        """Copies the volume under another name; later changes of one do not change the other.

        more  ttl_s, durable and journal_max_bytes of the copy, as in volume_create
        """
        return Volume(self._client, volume_methods.copy(self, to, **more))

    def integrate(
        self,
        depth: npt.NDArray[Any],
        camera: Camera,
        T_map_camera: Pose | npt.ArrayLike | None = None,
        *,
        colour: npt.NDArray[np.uint8] | None = None,
        **more: Any,
    ) -> VolumeIntegrated:
        """Adds a depth image from a known pose.

        depth   height x width, uint16 (millimetres, or as depth_scale says) or float32 (metres)
        camera  its width and height may be 0: those of the image
        colour  height x width x 3: red, green, blue
        more    the other arguments of integrate_bytes
        """
        return self.integrate_bytes(
            **_images(depth, camera, colour), T_map_camera=pose_of(T_map_camera), **more
        )

    def track_and_integrate(
        self,
        depth: npt.NDArray[Any],
        camera: Camera,
        T_map_camera: Pose | npt.ArrayLike | None = None,
        *,
        colour: npt.NDArray[np.uint8] | None = None,
        **more: Any,
    ) -> VolumeTracked:
        """Finds where a depth image was taken, and adds it there; see the status.

        T_map_camera  where the camera is thought to be; None: where the volume's tracker expects it
        more          the other arguments of track_and_integrate_bytes
        The others are as of integrate.
        """
        return self.track_and_integrate_bytes(
            **_images(depth, camera, colour), T_map_camera=pose_of(T_map_camera), **more
        )

    def track(
        self,
        depth: npt.NDArray[Any],
        camera: Camera,
        T_map_camera: Pose | npt.ArrayLike | None = None,
        *,
        colour: npt.NDArray[np.uint8] | None = None,
        **more: Any,
    ) -> VolumeTrack:
        """Finds where a depth image was taken; nothing changes.

        more    the other arguments of track_bytes
        The others are as of track_and_integrate.
        """
        return self.track_bytes(
            **_images(depth, camera, colour), T_map_camera=pose_of(T_map_camera), **more
        )

    def extract_ply(
        self,
        path: str | os.PathLike[str],
        *,
        points: bool = False,
        box: VolumeBox | None = None,
        min_weight: float = 0.0,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> int:
        """Writes the surface as a PLY file, which appears whole or not at all. Returns the number
        of its vertices."""
        message = exchange.message_of(
            volume_pb2.VolumeExtractRequest,
            name=self.name,
            points=points,
            min_weight=min_weight,
            format=volume_pb2.VOLUME_PLY,
        )
        if box is not None:
            message.box.low.CopyFrom(wire.vec3(box.low, "box.low"))
            message.box.high.CopyFrom(wire.vec3(box.high, "box.high"))
        reply = exchange.ask(
            self._client, "volume_extract", message, timeout, request_id
        )
        meshes.write_whole(path, reply.ply)
        return int(reply.n_vertices)

    def write(self, path: str | os.PathLike[str], **more: Any) -> int:
        """Extracts the surface and writes it as GLB or OBJ, by the file's ending; the file appears
        whole or not at all. more: the arguments of extract. Returns the number of vertices."""
        surface = self.extract(**more)
        meshes.write_surface(surface, path)
        return int(surface.n_vertices)
