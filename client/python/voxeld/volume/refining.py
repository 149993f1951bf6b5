# SPDX-License-Identifier: Apache-2.0
"""Shape from shading: volumes refined by colour images of known poses. Methods of Volume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from voxeld.v1 import refine_pb2

from .. import exchange
from ..calls import Calls
from ..cloud import Pose
from ..errors import InvalidArgument
from ..generated.volume_records import (
    VOLUME_FSYNCS,
    Camera,
    VolumeInfo,
    camera_message,
    volume_info_of,
)

SOLVERS = {"gauss_newton": 0, "adam": 1}


class Refinable(Protocol):
    """A volume, as far as its refinement needs it."""

    name: str
    _client: Calls


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


@dataclass(frozen=True)
class RefineLoss:
    """Energies before one joint step: sums over voxels, times the weights of their terms.

    level     0: voxels as they were; each later level has voxels of half the edge
    light     mean square difference of shading and the images' intensities
    rejected  the step before made the energy greater, and was taken back
    """

    level: int
    round: int
    data: float
    smooth: float
    init: float
    chroma: float
    light: float
    rejected: bool


@dataclass(frozen=True)
class RefinedKeyframe:
    """A keyframe as it was refined."""

    camera: Camera
    T_map_camera: Pose


@dataclass(frozen=True)
class Refined:
    """The outcome of Volume.refine: the volume with the result, and keyframes in their order."""

    volume: VolumeInfo
    losses: tuple[RefineLoss, ...]
    keyframes: tuple[RefinedKeyframe, ...]
    n_voxels: int
    n_subvolumes: int
    engine_ms: float


@dataclass(frozen=True)
class RefineStatus:
    """How far a refinement is: `fraction` of its joint steps, 0 to 1. Not running: all is 0."""

    running: bool
    fraction: float
    level: int
    n_voxels: int
    n_losses: int
    energy: float


def _camera_of(message: Any) -> Camera:
    return Camera(
        **{
            field.name: getattr(message, field.name)
            for field in message.DESCRIPTOR.fields
        }
    )


def _loss_of(message: Any) -> RefineLoss:
    return RefineLoss(
        **{
            field.name: getattr(message, field.name)
            for field in message.DESCRIPTOR.fields
        }
    )


def refine(
    self: Refinable,
    keyframes: Sequence[Keyframe],
    *,
    into: str = "",
    durable: str | None = None,
    solver: str = "gauss_newton",
    timeout: float | None = None,
    request_id: str | None = None,
    sequence: int = 0,
    **more: Any,
) -> Refined:
    """Refines distances by the shading that keyframes show, and finds the albedo.

    It takes seconds to minutes: give a timeout. Until its end the volume is as it was.

    into     the name of a new volume; else the volume itself, which then has to keep albedo
    durable  of the new volume, as in volume_create
    solver   "gauss_newton" or "adam"
    more     numbers and flags of VolumeRefineRequest: band_m, min_weight, subvolume_m, depth_max_m,
             smooth, init, chroma, light, learning_rate, rounds, iterations, cg_iterations,
             upsample, keep_distances, keep_albedo, keep_poses, refine_intrinsics, max_unknowns,
             journal_max_bytes

    Raises NotFound, InvalidArgument (also where a keyframe sees nothing of the surface),
    FailedPrecondition, AlreadyExists, ResourceExhausted, Aborted (the volume was changed
    meanwhile, or the refinement was cancelled), and what every call raises.
    """
    if solver not in SOLVERS:
        raise InvalidArgument(f"{solver!r} is none of {', '.join(SOLVERS)}", "solver")
    message = exchange.message_of(
        refine_pb2.VolumeRefineRequest,
        name=self.name,
        keyframes=[k.message(f"keyframes[{i}]") for i, k in enumerate(keyframes)],
        into=into,
        solver=SOLVERS[solver],
        durable=durable is not None,
        fsync=exchange.choice_of(durable, VOLUME_FSYNCS, "durable"),
        **more,
    )
    reply = exchange.change(
        self._client, "volume_refine", message, timeout, request_id, sequence
    )
    return Refined(
        volume=volume_info_of(reply.volume),
        losses=tuple(_loss_of(m) for m in reply.losses),
        keyframes=tuple(
            RefinedKeyframe(_camera_of(m.camera), exchange.pose_in(m.T_map_camera))
            for m in reply.keyframes
        ),
        n_voxels=reply.n_voxels,
        n_subvolumes=reply.n_subvolumes,
        engine_ms=reply.engine_ms,
    )


def refine_status(
    self: Refinable, *, timeout: float | None = None, request_id: str | None = None
) -> RefineStatus:
    """How far a refinement of the volume is."""
    message = refine_pb2.VolumeRefineStatusRequest(name=self.name)
    reply = exchange.ask(
        self._client, "volume_refine_status", message, timeout, request_id
    )
    return RefineStatus(
        reply.running,
        reply.fraction,
        reply.level,
        reply.n_voxels,
        reply.n_losses,
        reply.energy,
    )


def refine_cancel(
    self: Refinable,
    *,
    timeout: float | None = None,
    request_id: str | None = None,
    sequence: int = 0,
) -> bool:
    """Ends a refinement, and the volume stays as it was; False where none was running."""
    message = refine_pb2.VolumeRefineCancelRequest(name=self.name)
    return bool(
        exchange.change(
            self._client, "volume_refine_cancel", message, timeout, request_id, sequence
        ).was_running
    )
