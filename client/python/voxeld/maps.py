# SPDX-License-Identifier: Apache-2.0
"""Named hash maps: from integer vectors (keys) to rows of typed arrays (values), on the
server's device."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import hashmap_pb2, voxelize_pb2

from . import exchange, wire
from .calls import Calls
from .cloud import DType
from .errors import InvalidArgument
from .generated.map_class import MapMethods
from .generated.map_records import MapInfo
from .shown import handle_html


@dataclasses.dataclass(frozen=True)
class Merge:
    """Where Client.voxelize adds its voxels.

    create     makes the map where it is missing, with the request's size, origin and features;
               else NotFound. A map that differs in these is FailedPrecondition
    ttl_s, max_bytes
               of one that is made, as in Client.map_create
    """

    map: str
    create: bool = True
    ttl_s: float = 0.0
    max_bytes: int = 0


def drop_map(
    client: Calls,
    name: str,
    missing_ok: bool,
    timeout: float | None,
    request_id: str | None,
    sequence: int,
) -> bool:
    """Whether there was a map."""
    message = hashmap_pb2.MapDropRequest(name=name, missing_ok=missing_ok)
    response = client._change("map_drop", message, timeout, request_id, sequence)
    return response.map_drop.existed


class Map(MapMethods):
    """A named map of a client's server; Client.map_create, map and map_load make it.

    Entries are numbered from 0. Of equal new keys the first wins, and new keys take the lowest
    free numbers in order, so equal calls give equal results. Maps live in memory: a restart of
    the server forgets those that were not saved. Threads, errors, timeout, request_id and
    sequence as of Client.

    keys    n x n_components integers (or n, where that is 1) of any integer type
    values  rows by array name: n x n_elements (or n) of the map's types; lists are converted
    """

    def __init__(self, client: Calls, info: MapInfo) -> None:
        self._client = client
        self.name = info.name
        self.key_dtype = info.key_dtype
        self.n_components = info.n_components
        self.arrays = {a.name: a for a in info.values}
        self.lattice = info.lattice

    def __repr__(self) -> str:
        arrays = ", ".join(f"{a.name}: {a.dtype.name.lower()}" for a in self.arrays.values())
        size = "" if self.lattice is None else f", voxels of {self.lattice.size[0]:g} m"
        return (
            f"<voxeld.Map {self.name!r}: {self.n_components} x {self.key_dtype.name.lower()} -> "
            f"{arrays or 'a set'}{size}; at {self._client.url}>"
        )

    _repr_html_ = handle_html

    def export_ply(
        self,
        path: str | os.PathLike[str],
        values: str | Sequence[str] = "*",
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> int:
        """Writes a PLY file, a vertex an entry: the centre of its voxel in metres where the
        map has a lattice, else its key; then the values and, of a map that voxelize merged
        points into, their means mean_x, mean_y, mean_z in the map frame. Returns how many
        entries the map has. The file appears whole or not at all."""
        names = exchange.names_of(values)
        message = exchange.message_of(
            hashmap_pb2.MapExportRequest,
            name=self.name,
            format=hashmap_pb2.MAP_PLY,
            values=[] if names == ["*"] else names,
            keys_only=not names,
        )
        reply = exchange.send(self._client, "map_export", message, [], timeout, request_id, None)
        beside = Path(f"{os.fspath(path)}.part")
        try:
            beside.write_bytes(reply.message.ply)
            beside.replace(path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        return int(reply.message.n_entries)

    def _keys(self, keys: npt.ArrayLike) -> exchange.Array:
        array = np.asarray(keys)
        if array.size == 0 and array.ndim == 1:
            array = array.reshape((0, self.n_components)).astype(np.int32)
        if array.dtype.kind not in "iu":
            raise InvalidArgument(f"{array.dtype}; integers are right", "keys")
        width = 1 if array.ndim == 1 else array.shape[-1]
        if array.ndim not in (1, 2) or width != self.n_components:
            raise InvalidArgument(
                f"an array of shape {array.shape}; n x {self.n_components} is right", "keys"
            )
        return array

    def _rows(self, message: Any, values: exchange.Values) -> list[wire.Part]:
        number = message.DESCRIPTOR.fields_by_name["values"].number
        parts: list[wire.Part] = []
        for name, rows in values.items():
            spec = self.arrays.get(name)
            field = f"values[{name!r}]"
            if spec is None:
                raise InvalidArgument(f"the map has {', '.join(self.arrays) or 'no'} arrays", field)
            array = exchange.typed(rows, spec.numpy, field)
            dtype = DType.BFLOAT16 if spec.dtype == DType.BFLOAT16 else None
            inner = exchange.tensor_of(wire.MAP_ROWS_ROWS, array, dtype)
            parts += wire.rows_parts(number, name, inner)
        return parts


def merge_request(merge: Merge | str) -> voxelize_pb2.VoxelizeMerge:
    merge = Merge(merge) if isinstance(merge, str) else merge
    try:
        return voxelize_pb2.VoxelizeMerge(
            map=merge.map, create=merge.create, ttl_s=merge.ttl_s, max_bytes=merge.max_bytes
        )
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), "merge") from None
