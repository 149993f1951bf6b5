# SPDX-License-Identifier: Apache-2.0
"""Scenes: voxels on the server's device that are edited, fed with scans and queried."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from voxeld.v1 import scene_pb2

from .calls import Calls
from .errors import Aborted, InvalidArgument
from .exchange import At, at_of, send
from .generated.scene_records import (
    Cells,
    SceneInfo,
    cells_of,
)
from .pictures import Picture, Place, picture_of, request_of
from .reply import bad
from .scene.parts import PlyParts, joined
from .scene.records import (
    Box,
    Dense,
    dense_of,
    message_of,
    plain_shape,
)
from .scene.versions import SceneVersions
from .shown import handle_html
from .watching import SceneWatches


class Scene(SceneVersions, SceneWatches):
    """A scene of a client's server; Client.scene_create and Client.scene make it.

    A voxel is occupied, with a material, or not; where the scene tracks free space it is
    occupied, free or unknown. Every change is a new version, which queries see as a whole or
    not at all; with `at` (a version's number, or a snapshot's name) they see one that was, as
    long as it is kept. Lengths are metres in the map frame, or voxels from the low corner with
    in_voxels. A voxel is in a shape when its centre is. Threads, errors, timeout, request_id
    and sequence as of Client.
    """


    def __init__(self, client: Calls, info: SceneInfo) -> None:
        self._client = client
        self.name = info.name
        self.voxel_size = info.voxel_size
        self.depth = info.depth
        self.origin = info.origin
        self.material_bits = info.material_bits
        self.track_free = info.track_free
        self.fusion = info.fusion
        self.palette = info.palette

    def __repr__(self) -> str:
        side = self.voxel_size * 2**self.depth
        return (
            f"<voxeld.Scene {self.name!r}: voxels of {self.voxel_size:g} m in a cube of {side:g} m"
            f"{', free space' if self.track_free else ''}; at {self._client.url}>"
        )

    _repr_html_ = handle_html

    def render(
        self,
        eye: Place | None = None,
        look: Place | None = None,
        *,
        up: Place | None = None,
        fov: float = 0.0,
        size: tuple[int, int] = (640, 360),
        mode: str = "colour",
        camera: str = "pinhole",
        view_height: float = 0.0,
        elevations_deg: npt.ArrayLike | None = None,
        samples: int = 0,
        ao_samples: int = 0,
        ao_radius: float = 0.0,
        bounces: int = 0,
        seed: int = 0,
        shadows: bool = True,
        sun_direction: Place | None = None,
        sun: float = 0.0,
        ambient: float = 0.0,
        variation: float = 0.0,
        z_range: tuple[float, float] = (0.0, 0.0),
        detail: float = 0.0,
        clip: Box | None = None,
        volumes: Sequence[str] = (),
        min_weight: float = 0.0,
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Picture:
        """Draws the scene; a notebook shows the picture.

        eye, look       metres; None: all that is occupied is seen
        fov             degrees between the top and the bottom edge; 0: 50
        size            width, height in pixels
        mode            "colour", "height", "depth", "normal", "material", "ao", "path", "age" (by
                        the version that changed a voxel last) or "label" (without light)
        camera          "pinhole", "orthographic" (view_height metres from top to bottom; 0: all),
                        "equirectangular", or "lidar" (elevations_deg: one for each row, which are
                        the height)
        samples         rays of a pixel; 0: 1, of "path" 16
        ao_samples      rays to find how open each place is, within ao_radius metres (0: any)
        bounces         of "path"; 0: 3
        sun, ambient    strengths of light; 0: 0.8 and 0.4, below 0: none
        z_range         of "height": z of the first and last colour; equal: of what is occupied
        detail          cubes that look smaller than so many pixels are drawn as one voxel
        clip            only what is in this box is drawn
        volumes         names of volumes that are in the picture as well; the nearest is seen.
                        Their voxels of less than min_weight are unknown. Of "colour", "height",
                        "depth", "normal" and "label"
        """
        if not hasattr(size, "__len__") or len(size) < 2:
            raise InvalidArgument(f"{size!r}; (width, height) is right", "size")
        message = request_of(
            camera=camera, mode=mode, encode="tensor", eye=eye, look=look, up=up,
            elevations_deg=elevations_deg, sun_direction=sun_direction, clip=clip,
            name=self.name, at=at_of(at), fov_y_deg=fov, view_height_m=view_height,
            width=size[0], height=0 if camera == "lidar" else size[1], samples=samples,
            ao_samples=ao_samples, ao_radius_m=ao_radius, bounces=bounces, seed=seed,
            no_shadows=not shadows, sun=sun, ambient=ambient, variation=variation,
            z_low_m=z_range[0], z_high_m=z_range[1], detail=detail, volumes=list(volumes),
            min_weight=min_weight,
        )  # fmt: skip
        with send(self._client, "scene_render", message, [], timeout, request_id, None) as reply:
            return picture_of(reply, mode)

    def export(
        self,
        box: Box | None = None,
        *,
        in_voxels: bool = False,
        level: int = 0,
        free: bool = False,
        counts: bool = False,
        first: int = 0,
        limit: int = 0,
        pinned: bool = False,
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Cells:
        """Cells that have occupied voxels, in Morton order.

        box           None: all of the scene; in_voxels: voxels from the low corner
        level         cells are 2**level voxels a side
        free          the free voxels instead
        counts        voxels a cell
        first, limit  skip so many cells, get at most so many; limit 0: all, in as many calls as
                      it takes, all of one version (NotFound where the scene changes until that is
                      not kept any more)
        pinned        the pinned voxels instead
        """
        cells: list[Cells] = []
        n = 0
        while True:
            message = self._export_request(
                box, in_voxels, at, level=level, free=free, with_counts=counts, first=first + n,
                limit=limit, pinned=pinned,
            )  # fmt: skip
            with send(
                self._client, "scene_export", message, [], timeout, request_id, None
            ) as reply:
                part = cells_of(reply, message, reply.n_rows("cells"))
            if len(part) > part.n_cells:
                raise bad("cells", "more than there are")
            if cells and (part.version, part.generation) != (cells[0].version, cells[0].generation):
                raise Aborted("the scene changed while it was exported")
            cells.append(part)
            n += len(part)
            at = at or part.version or None
            if limit or not len(part) or first + n >= part.n_cells:
                whole: Cells = joined(cells, "cells", "materials", "counts")
                return whole

    def export_dense(
        self,
        box: Box,
        *,
        in_voxels: bool = False,
        level: int = 0,
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Dense:
        """Exports the cells of a box as an array."""
        message = self._export_request(
            box, in_voxels, at, level=level, format=scene_pb2.SCENE_DENSE
        )
        with send(self._client, "scene_export", message, [], timeout, request_id, None) as reply:
            return dense_of(reply)

    def export_ply(
        self,
        path: str | os.PathLike[str],
        box: Box | None = None,
        *,
        in_voxels: bool = False,
        level: int = 0,
        free: bool = False,
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> int:
        """Writes a PLY file, a vertex a cell: its centre in metres, its material and, with a
        palette, its colour. Returns how many. The file appears whole or not at all, and is of one
        version; NotFound where the scene changes until that version is not kept."""
        beside = Path(f"{os.fspath(path)}.part")
        ply = PlyParts()
        try:
            with beside.open("wb") as file:
                while ply.n_written < ply.n_cells:
                    message = self._export_request(
                        box, in_voxels, at, level=level, free=free, first=ply.n_written,
                        format=scene_pb2.SCENE_PLY,
                    )  # fmt: skip
                    with send(
                        self._client, "scene_export", message, [], timeout, request_id, None
                    ) as reply:
                        part, same = ply.append(reply.message)
                        at = at or reply.message.seen.version or None
                    if not same:
                        raise Aborted("the scene changed while it was exported")
                    file.write(part)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        return ply.n_cells

    def _export_request(
        self, box: Box | None, in_voxels: bool, at: At | None, **members: Any
    ) -> Any:
        message = message_of(
            scene_pb2.SceneExportRequest, "",
            name=self.name, in_voxels=in_voxels, at=at_of(at), **members,
        )  # fmt: skip
        if box is not None:
            message.box.CopyFrom(plain_shape(box, "box")["box"])
        return message
