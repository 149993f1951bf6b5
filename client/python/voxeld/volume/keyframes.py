# SPDX-License-Identifier: Apache-2.0
"""Colour images of known poses, by which volumes are refined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voxeld.v1 import refine_pb2

from .. import exchange
from ..cloud import Pose
from ..errors import InvalidArgument
from ..generated.volume_records import Camera, camera_message


@dataclass(frozen=True)
class Keyframe:
    """A colour image, and how it was taken, for Volume.refine.

    colour        height x width x 3 uint8, or the bytes of a PNG or JPEG file
    camera        its width and height may be 0: those of the image
    T_map_camera  camera to map
    """

    colour: npt.NDArray[np.uint8] | bytes
    camera: Camera
    T_map_camera: Pose | None = None

    def message(self, field: str) -> refine_pb2.VolumeKeyframe:
        """The keyframe as a message; `field` names it in errors."""
        camera = self.camera
        colour = self.colour
        if not isinstance(colour, bytes):
            if colour.dtype != np.uint8 or colour.ndim != 3 or colour.shape[2] != 3:
                raise InvalidArgument(
                    f"{colour.dtype} of shape {colour.shape}; height x width x 3 uint8 is right",
                    f"{field}.colour",
                )
            height, width, _ = colour.shape
            camera = Camera(**{**vars(camera), "width": width, "height": height})
        return refine_pb2.VolumeKeyframe(
            camera=camera_message(camera, f"{field}.camera"),
            colour=colour
            if isinstance(colour, bytes)
            else np.ascontiguousarray(colour).tobytes(),
            colour_type=0 if isinstance(colour, bytes) else 1,
            T_map_camera=exchange.pose_of(self.T_map_camera, f"{field}.T_map_camera"),
        )


def keyframe_messages(keyframes: Sequence[Keyframe]) -> list[refine_pb2.VolumeKeyframe]:
    return [k.message(f"keyframes[{i}]") for i, k in enumerate(keyframes)]
