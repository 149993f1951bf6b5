# SPDX-License-Identifier: Apache-2.0
"""The results of calls on versions of scenes."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import scene_version_pb2

from .reply import bad, record_of
from .scene_records import Change, SceneReply
from .shown import shown

VERSION_KINDS = ("made", "edited", "integrated", "undone", "redone", "decayed")


class Difference(enum.IntFlag):
    """How some voxel of a cell changed. CHANGED: it has another material; UNFREED: it was free."""

    ADDED = 1
    REMOVED = 2
    CHANGED = 4
    FREED = 8
    UNFREED = 16


@dataclasses.dataclass(frozen=True)
class Version:
    """One version in a Log.

    kind        "made", "edited", "integrated", "undone" (takes of_version back), "redone" or
                "decayed"
                (takes of_version back, which had undone something)
    by          name of the token of who made it, client_id beside it
    n_added     as in Change
    undone_by   the version that undid this one last; 0: none
    """

    version: int
    kind: str
    of_version: int
    stamp_ns: int
    by: str
    client_id: str
    n_added: int
    n_removed: int
    n_changed: int
    n_freed: int
    undone_by: int


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A named version. version_ns: when that was made; taken_ns: when it was named."""

    name: str
    version: int
    version_ns: int
    taken_ns: int
    by: str


@dataclasses.dataclass(frozen=True)
class Log:
    """versions: newest first. snapshots: all of the scene, by name. oldest: that is kept,
    snapshots aside. n_sharing: scenes that share nodes with it, itself included."""

    versions: tuple[Version, ...]
    snapshots: tuple[Snapshot, ...]
    version: int
    generation: int
    oldest: int
    n_sharing: int


@dataclasses.dataclass(frozen=True)
class Undone:
    """of_version: what was undone, or redone."""

    change: Change
    of_version: int
    engine_ms: float
    replayed: bool


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Diff:
    """Cells in which two versions differ, in Morton order. The low corner of cell (x, y, z) is
    origin + (x, y, z) * cell_size.

    cells    int32 n x 3: voxel indices >> level
    changes  uint8 n, a set of Difference each
    n_cells  of the whole box, not of this part of it
    """

    cells: npt.NDArray[np.int32]
    changes: npt.NDArray[np.uint8]
    n_cells: int
    from_version: int
    to_version: int
    generation: int
    origin: tuple[float, float, float]
    cell_size: float
    frame_id: str

    def __len__(self) -> int:
        return len(self.cells)

    def where(self, difference: Difference) -> npt.NDArray[np.int32]:
        """Returns the cells with any of these differences."""
        return self.cells[(self.changes & np.uint8(difference)) != 0]

    def centres(self) -> npt.NDArray[np.float64]:
        """Returns n x 3 centres, metres."""
        return np.asarray(np.add(self.origin, (self.cells + 0.5) * self.cell_size), np.float64)


@dataclasses.dataclass(frozen=True)
class Verified:
    """n_roots: different ones, those of snapshots included. n_nodes: summed over them. digest:
    of the newest version."""

    n_versions: int
    n_roots: int
    n_nodes: int
    digest: str
    engine_ms: float


@dataclasses.dataclass(frozen=True)
class Collected:
    """Device memory and nodes of the scene and those that share with it, before and after.
    n_slices: between which other requests ran."""

    n_bytes_before: int
    n_bytes_after: int
    n_nodes_before: int
    n_nodes_after: int
    n_slices: int
    longest_slice_ms: float
    engine_ms: float
    replayed: bool


def version_of(message: scene_version_pb2.SceneVersion) -> Version:
    known = 0 <= message.kind < len(VERSION_KINDS)
    kind = VERSION_KINDS[message.kind] if known else str(message.kind)
    return record_of(Version, message, kind=kind)


def log_of(message: scene_version_pb2.SceneLogResponse) -> Log:
    versions = tuple(version_of(v) for v in message.versions)
    if any(a.version <= b.version for a, b in zip(versions, versions[1:], strict=False)):
        raise bad("versions", "not newest first")
    snapshots = tuple(record_of(Snapshot, s) for s in message.snapshots)
    return record_of(Log, message, versions=versions, snapshots=snapshots)


def diff_of(reply: SceneReply) -> Diff:
    n, columns = reply.extents("cells", 2)
    message: Any = reply.message
    if columns != 3 or n > message.n_cells:
        raise bad("cells", "not three numbers a cell, of those there are")
    return record_of(
        Diff, message,
        cells=reply.array("cells", "<i4", n, 3), changes=reply.array("changes", "|u1", n),
        **reply.place(),
    )  # fmt: skip


def joined_diffs(parts: list[Diff]) -> Diff:
    """Joins the replies of one diff."""
    if len(parts) == 1:
        return parts[0]
    cells = np.concatenate([p.cells for p in parts])
    changes = np.concatenate([p.changes for p in parts])
    return dataclasses.replace(parts[0], cells=cells, changes=changes)
