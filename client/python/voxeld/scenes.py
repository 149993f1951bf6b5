# SPDX-License-Identifier: Apache-2.0
"""Scenes: voxels on the server's device that are edited, fed with scans and queried."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from voxeld.v1 import common_pb2, rpc_pb2, scene_pb2

from . import wire
from .calls import Calls
from .cloud import Pose
from .durability import durability_of
from .errors import Aborted, InvalidArgument
from .exchange import At, at_of, metres_of, tensor_of
from .generated import (
    grid_client,
    mesh_methods,
    scene_methods,
    upkeep_client,
    upkeep_methods,
)
from .generated.scene_records import (
    Cells,
    Edited,
    Filter,
    Integrated,
    LogOdds,
    Material,
    Overlap,
    SceneInfo,
    cells_of,
    edited_of,
    integrated_of,
    overlap_of,
    scene_info_of,
)
from .pictures import Picture, Place, picture_of, request_of
from .points import Points, clouds_of, pose_of
from .reply import bad
from .scene.fusion import fusion_of, log_odds_of
from .scene.labels import Labels, labels_of
from .scene.parts import PlyParts, joined
from .scene.records import (
    Box,
    Dense,
    Operation,
    SceneReply,
    Shape,
    message_of,
    operation_parts,
    plain_shape,
    rule_of,
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

    info = scene_methods.info
    values = scene_methods.values
    cast_rays = scene_methods.cast_rays
    nearest = scene_methods.nearest
    log_odds = upkeep_methods.log_odds
    import_mesh = mesh_methods.import_mesh
    drop = scene_methods.drop

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

    def edit(
        self,
        operations: Operation | Shape | Sequence[Operation | Shape],
        *,
        in_voxels: bool = False,
        if_version: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Edited:
        """Applies operations, in order, as one change: all or none.

        operations  1 to 4096; a shape alone is filled with material 0
        if_version  Aborted unless the scene is at this version; 0: at any
        """
        steps = list(operations) if isinstance(operations, list | tuple) else [operations]
        message = message_of(
            scene_pb2.SceneEditRequest, "if_version",
            name=self.name, in_voxels=in_voxels, if_version=if_version,
        )  # fmt: skip
        parts: list[wire.Part] = []
        for i, step in enumerate(steps):
            parts += operation_parts(step, i)
        number = self._client._numbered(sequence)
        reply = self._exchange("scene_edit", message, parts, timeout, request_id, number)
        with reply:
            return edited_of(reply.message, reply.replayed)

    def integrate(
        self,
        points: Points,
        *,
        pose: Pose | npt.ArrayLike | None = None,
        carve: bool = True,
        max_range: float = 0.0,
        erase: bool = False,
        discretize: bool = False,
        rule: str = "constant",
        material: int = 0,
        field: str = "",
        range: Sequence[float] | None = None,
        network: str = "",
        labels: Labels | None = None,
        output: str = "",
        expect_digest: str = "",
        filter: Filter | None = None,
        estimate: bool = False,
        odometry: str = "",
        frame_id: str = "",
        stamp_ns: int = 0,
        if_version: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Integrated:
        """Adds a scan: its points become occupied, and with carve the voxels between the sensor
        and each point are emptied, except those that a point of this scan hits. One change.

        points     one cloud, or an array as in Client.voxelize
        pose       sensor to map; rays start at its translation. With frame_id and stamp_ns
                   (echoed) for arrays only: a Cloud has its own
        max_range  metres: rays end here, and farther points hit nothing; 0: no limit
        erase      erase what rays go through instead of marking it free; InvalidArgument where
                   the scene fuses by log-odds
        discretize one ray for each voxel that points hit, instead of one for each point
        rule       which material points take: "constant" (material), "label" (the field's
                   number, else material; field "": label), "colour" (the palette's nearest),
                   "ramp" (the palette as the field goes from low to high; field "": intensity)
                   or "height" (the same with z in the map frame)
        range      (low, high) of ramp and height
        network    a loaded network with labels by point: the cloud goes through it first, and
                   its labels say what materials points take, instead of a rule. Points whose
                   label takes none hit nothing; their rays carve all the same
        labels     {label: material}, numbers or names; None as a material, or a label that is
                   not in it: none. Empty: label i takes material i
        output     of the network, where several have labels by point
        expect_digest  FailedPrecondition unless the network's begins so
        filter     drops points of the ground, and of voxels that too few hit
        estimate   the pose is found by odometry; the cloud's is where the sensor is thought to be.
                   A scan that is lost is not added: see the outcome's status
        odometry   the name of the one that finds it; "": one that is kept beside the scene
        """
        of_array = {"stamp_ns": stamp_ns, "frame_id": frame_id, "T_map_sensor": pose_of(pose)}
        clouds = clouds_of(points, {k: v for k, v in of_array.items() if v})
        if len(clouds) != 1:
            raise InvalidArgument(f"{len(clouds)} clouds; one is right", "points")
        message = message_of(
            scene_pb2.SceneIntegrateRequest, "if_version",
            name=self.name, network=network, label_to_material=labels_of(labels), output=output,
            expect_digest=expect_digest, if_version=if_version, odometry=odometry,
            pose=common_pb2.POSE_ESTIMATE if estimate else common_pb2.POSE_GIVEN,
        )  # fmt: skip
        # With a network, only a rule that is not the default is sent, for the server to refuse.
        if not network or rule != "constant" or material or field:
            message.rule.CopyFrom(rule_of(rule, material, field, range))
        if filter is not None:
            fields = dataclasses.asdict(filter)
            message.filter.CopyFrom(message_of(scene_pb2.SceneFilter, "filter", **fields))
        if carve:
            kind = scene_pb2.SceneCarve
            of_carve = {"max_range_m": max_range, "erase": erase, "discretize": discretize}
            message.carve.CopyFrom(message_of(kind, "carve", **of_carve))
        cloud = scene_pb2.SceneIntegrateRequest.CLOUD_FIELD_NUMBER
        parts = wire.cloud_parts(clouds[0], "cloud", cloud)
        number = self._client._numbered(sequence)
        reply = self._exchange("scene_integrate", message, parts, timeout, request_id, number)
        with reply:
            return integrated_of(reply.message, reply.replayed)

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
        with self._exchange("scene_render", message, [], timeout, request_id) as reply:
            return picture_of(reply, mode)

    def overlap(
        self,
        shapes: npt.ArrayLike,
        *,
        counts: bool = False,
        at: At | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Overlap:
        """Finds out which states the voxels in boxes (n x 6: low x y z, high x y z) or balls (n x
        4: x y z radius) have. counts: count the voxels, too."""
        message = scene_pb2.SceneOverlapRequest(name=self.name, counts=counts, at=at_of(at))
        rows = metres_of(shapes, "shapes", 6, 4)
        kind = scene_pb2.SceneOverlapRequest
        is_box = rows.shape[1] == 6
        number = kind.BOXES_FIELD_NUMBER if is_box else kind.BALLS_FIELD_NUMBER
        parts = tensor_of(number, rows)
        reply = self._exchange("scene_overlap", message, parts, timeout, request_id)
        with reply:
            return overlap_of(reply, message, len(rows))

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
                box, in_voxels, level, free, counts, first + n, limit, at
            )
            message.pinned = pinned
            reply = self._exchange("scene_export", message, [], timeout, request_id)
            with reply:
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
        message = self._export_request(box, in_voxels, level, at=at)
        message.format = scene_pb2.SCENE_DENSE
        reply = self._exchange("scene_export", message, [], timeout, request_id)
        with reply:
            return reply.dense()

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
                        box, in_voxels, level, free, first=ply.n_written, at=at
                    )
                    message.format = scene_pb2.SCENE_PLY
                    reply = self._exchange("scene_export", message, [], timeout, request_id)
                    with reply:
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
        self,
        box: Box | None,
        in_voxels: bool,
        level: int,
        free: bool = False,
        counts: bool = False,
        first: int = 0,
        limit: int = 0,
        at: At | None = None,
    ) -> Any:
        message = message_of(
            scene_pb2.SceneExportRequest, "",
            name=self.name, in_voxels=in_voxels, level=level, free=free, with_counts=counts,
            first=first, limit=limit, at=at_of(at),
        )  # fmt: skip
        if box is not None:
            message.box.CopyFrom(plain_shape(box, "box")["box"])
        return message

    def _exchange(
        self,
        method: str,
        message: Any,
        parts: list[wire.Part],
        timeout: float | None,
        request_id: str | None,
        sequence: int = 0,
    ) -> SceneReply:
        header = rpc_pb2.RequestHeader(sequence=sequence)
        number = rpc_pb2.Request.DESCRIPTOR.fields_by_name[method].number
        body = wire.enclosed(number, [message.SerializeToString(), *parts])
        response, arrays = self._client._exchange(method, header, body, timeout, request_id)
        return SceneReply(response, arrays, sequence)


class SceneCalls(Calls):
    """The calls of Client on whole scenes; threads, errors and options are as there."""

    scene_grid = grid_client.scene_grid
    scene_frontiers = grid_client.scene_frontiers
    scene_decay = upkeep_client.scene_decay

    def scene_create(
        self,
        name: str,
        voxel_size: float,
        *,
        depth: int = 0,
        material_bits: int = 0,
        track_free: bool = False,
        fusion: str = "",
        log_odds: LogOdds | None = None,
        origin: Sequence[float] | None = None,
        frame_id: str = "",
        palette: Sequence[Material] = (),
        max_bytes: int = 0,
        keep_versions: int = 0,
        keep_seconds: int = 0,
        durable: str | None = None,
        journal_max_bytes: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Scene:
        """Makes a scene of 2**depth voxels a side; one that exists with the same parameters is
        fine.

        voxel_size     edge in metres
        depth          4 to 21; 0: 17
        material_bits  a voxel: 0, 4, 8 or 16
        track_free     track free and unknown voxels apart; takes the highest material
        fusion         "last" (the last word counts) or "log-odds" (OctoMap's rules: a voxel is
                       what most scans say); "": log-odds with track_free, or what a scene
                       that exists has
        log_odds       probabilities of log-odds; None: OctoMap's
        origin         low corner in the map frame; None: the centre lies at (0, 0, 0)
        palette        names and colours of the materials, from 0
        max_bytes      device memory it may take; 0: what the server's limits give
        keep_versions  beside those that a snapshot names, keep the newest so many (0: 64; at
                       most 4096)
        keep_seconds   ... that are younger than this; 0: of any age
        durable        None: a restart of the server forgets it. Else it is on the server's disk,
                       and a change that was answered outlives a loss of power ("always"), the
                       server's process, and a second later a loss of power ("everysec"), or
                       when the system has written it ("off")
        journal_max_bytes  of durable: then a snapshot file is written; 0: 256 MiB

        Raises AlreadyExists where a scene of this name differs.
        """
        spec = message_of(
            scene_pb2.SceneSpec, "spec",
            voxel_size_m=voxel_size, depth=depth, material_bits=material_bits,
            track_free=track_free, fusion=fusion_of(fusion), frame_id=frame_id,
            log_odds=log_odds_of(log_odds),
            palette=[
                message_of(scene_pb2.SceneMaterial, f"palette[{i}]", name=m.name, rgb=m.rgb)
                for i, m in enumerate(palette)
            ],
        )  # fmt: skip
        if origin is not None:
            spec.origin.CopyFrom(wire.vec3(origin, "origin"))
        message = message_of(
            scene_pb2.SceneCreateRequest, "max_bytes",
            name=name, spec=spec, max_bytes=max_bytes,
            retention=message_of(
                scene_pb2.SceneRetention, "retention",
                versions=keep_versions, seconds=keep_seconds,
            ),
            durability=durability_of(durable, journal_max_bytes),
        )  # fmt: skip
        response = self._change("scene_create", message, timeout, request_id, sequence)
        return Scene(self, scene_info_of(response.scene_create.scene))
