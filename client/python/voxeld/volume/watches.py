# SPDX-License-Identifier: Apache-2.0
"""Watching a volume: the surface of blocks that have changed, as it grows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import watch_pb2

from ..calls import Calls
from ..exchange import Reply, message_of, vec3_of
from ..generated.volume_records import VolumeBox, volume_box_message
from ..reply import bad
from ..watching import KINDS, Polls, WatchPoint, point_of

BEGINS = ("resync", "created")


@dataclasses.dataclass(frozen=True, eq=False)
class VolumeWatched:
    """What a watch of a volume gives: a part of its surface.

    kind       "blocks": their surface may differ in two versions; "resync", "created": nothing that
               was known holds, and the whole surface begins with this part; "dropped"
    blocks     int32 n x 4: coordinates (voxels / block), and the triangles (of points: vertices) up
               to the block's last. Each replaces what was known of that block
    vertices   float32 n x 3, metres, minus the volume's origin; normals likewise
    colours    uint8 n x 3, of volumes with colours; zero rows of others
    labels     uint8 n, of volumes with labels; zero rows of others
    triangles  int32 n x 3
    is_last    no more parts follow: what was given makes the surface whole at `version`
    after      for a watch that is to go on from here
    """

    kind: str
    after: WatchPoint
    from_version: int
    version: int
    blocks: npt.NDArray[np.int32]
    vertices: npt.NDArray[np.float32]
    normals: npt.NDArray[np.float32]
    colours: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]
    triangles: npt.NDArray[np.int32]
    origin: tuple[float, float, float]
    voxel_size_m: float
    block: int

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def is_last(self) -> bool:
        return self.after.to_version == 0


@dataclasses.dataclass(frozen=True, eq=False)
class BlockSurface:
    """The surface of one block, without shared vertices: a row a corner, three rows a triangle; of
    points a row a point. Colours and labels have no rows in volumes without."""

    vertices: npt.NDArray[np.float32]
    normals: npt.NDArray[np.float32]
    colours: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]


class GrowingSurface:
    """The surface of a volume that is watched: what its parts make together.

    blocks   by coordinates; those without a surface are not there
    version  of the volume, once parts have made the surface whole; 0 before, and of a dropped one
    """

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int, int], BlockSurface] = {}
        self.version = 0

    def take(self, part: VolumeWatched) -> None:
        """Takes what a watch gives, in its order; not with keys_only."""
        if part.kind != "blocks":
            self.blocks.clear()
            self.version = 0
        begin = 0
        is_mesh = len(part.triangles) > 0
        for x, y, z, end in part.blocks.tolist():
            rows: Any = part.triangles[begin:end].reshape(-1) if is_mesh else slice(begin, end)
            key = (x, y, z)
            if end > begin:
                self.blocks[key] = BlockSurface(
                    part.vertices[rows].copy(),
                    part.normals[rows].copy(),
                    part.colours[rows].copy() if len(part.colours) else part.colours,
                    part.labels[rows].copy() if len(part.labels) else part.labels,
                )
            else:
                self.blocks.pop(key, None)
            begin = end
        if part.is_last:
            self.version = part.version if part.kind != "dropped" else 0


def volume_watched_of(reply: Reply) -> VolumeWatched:
    message: Any = reply.message
    if not message.kind < len(KINDS):
        raise bad("kind", "none that is known")
    after = point_of(message)
    n = message.n_vertices
    blocks = reply.numbers("blocks", message.n_blocks, 4, lowest=None)
    triangles = reply.numbers("triangles", message.n_triangles, 3, lowest=0)
    ends = blocks[:, 3]
    n_rows = len(triangles) or n  # none with keys_only
    if (np.diff(ends, prepend=0) < 0).any() or (n_rows and n_rows != ends[-1:].sum()):
        raise bad("blocks", "other rows than there are")
    if triangles.size and triangles.max() >= n:
        raise bad("triangles", "a vertex that is not there")
    return VolumeWatched(
        kind=KINDS[message.kind],
        after=after,
        from_version=message.from_version,
        version=message.to_version or after.version,
        blocks=blocks,
        vertices=reply.array("vertices", "<f4", n, 3),
        normals=reply.array("normals", "<f4", n, 3),
        colours=reply.array("colours", "|u1", message.n_colours, 3),
        labels=reply.array("labels", "|u1", message.n_labels),
        triangles=triangles,
        origin=vec3_of(message.origin),
        voxel_size_m=message.voxel_size_m,
        block=message.block,
    )


class VolumeWatches:
    """The call of Volume that watches it."""

    name: str
    _client: Calls

    def watch(
        self,
        *,
        after: WatchPoint | None = None,
        box: VolumeBox | None = None,
        min_weight: float = 0.0,
        points: bool = False,
        albedo: bool = False,
        keys_only: bool = False,
        max_bytes: int = 0,
        duration: float | None = None,
    ) -> Iterator[VolumeWatched]:
        """Gives the surface in parts, and then what of it changes, until duration (seconds) is
        over; None: for ever. It outlives restarts of the server.

        after       what is known already, the `after` of an earlier one; None: nothing, and the
                    first thing given is a "resync" with the first part of the whole surface
        box         the blocks that it touches; None: all
        min_weight  voxels of a lower weight are unknown; 0: any weight above 0
        points      points instead of a mesh
        albedo      colours without light and shadow, as refinement found them
        keys_only   only which blocks have changed
        max_bytes   of the arrays given at once, if they are not of one block; 0: 1 MiB
        """
        message = message_of(
            watch_pb2.VolumeWatchRequest,
            name=self.name,
            box=None if box is None else volume_box_message(box, "box"),
            min_weight=min_weight,
            points=points,
            albedo=albedo,
            keys_only=keys_only,
            max_bytes=max_bytes,
        )
        for reply in Polls(self._client, "volume_watch", message, after).run(duration):
            yield volume_watched_of(reply)
