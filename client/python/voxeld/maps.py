# SPDX-License-Identifier: Apache-2.0
"""Named hash maps: from integer vectors (keys) to rows of typed arrays (values), on the
server's device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import hashmap_pb2, rpc_pb2

from . import wire
from .calls import Calls
from .cloud import DType
from .errors import InvalidArgument
from .map_records import (
    Array,
    Entries,
    Erased,
    Found,
    Inserted,
    MapInfo,
    Reply,
    Saved,
    Updated,
    Values,
    info_of,
    int32s,
    lattice_of,
    tensor,
    tensor_of,
    typed,
    update_request,
)
from .reply import bad, record_of

NEIGHBOURS = (0, 6, 8, 27)


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


class Map:
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
        return f"<voxeld.Map {self.name!r} at {self._client.url}>"

    def info(self, *, timeout: float | None = None, request_id: str | None = None) -> MapInfo:
        """Describes the map as it is at this moment."""
        request = rpc_pb2.Request(map_get=hashmap_pb2.MapGetRequest(name=self.name))
        response = self._client._call("map_get", request, timeout, request_id)
        return info_of(response.map_get.map)

    def insert(
        self,
        keys: npt.ArrayLike,
        values: Values | None = None,
        *,
        counts_only: bool = False,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Inserted:
        """Inserts keys; existing ones keep their values. Arrays that are not given start as zeros.
        """
        array = self._keys(keys)
        message = hashmap_pb2.MapInsertRequest(name=self.name, counts_only=counts_only)
        parts = [*tensor("keys", message, array), *self._rows(message, values or {})]
        number = self._client._numbered(sequence)
        reply = self._exchange("map_insert", message, parts, timeout, request_id, number)
        with reply:
            expected = None if counts_only or reply.dropped else len(array)
            return record_of(
                Inserted,
                reply.message,
                indices=reply.numbers("indices", expected),
                is_new=reply.mask("is_new", expected),
                replayed=reply.replayed,
                arrays_dropped=reply.dropped,
            )

    def find(
        self,
        keys: npt.ArrayLike,
        values: str | Sequence[str] = "*",
        *,
        neighbours: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Found:
        """Finds keys.

        values      names of the arrays whose rows to get; "*": all, (): none
        neighbours  6 (-x +x -y +y -z +z), 8 (each axis +0, +1) or 27 (each -1, 0, +1; z is
                    the fastest): the entries of each key's neighbours as well
        """
        if neighbours not in NEIGHBOURS:
            raise InvalidArgument(f"{neighbours}; one of {NEIGHBOURS}", "neighbours")
        array = self._keys(keys)
        message = self._find_request(values, neighbours=neighbours)
        parts = tensor("keys", message, array)
        return self._found(message, parts, len(array), timeout, request_id)

    def gather(
        self,
        indices: npt.ArrayLike,
        erase_epoch: int,
        values: str | Sequence[str] = "*",
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Found:
        """Gathers keys and rows of entries by number, with the erase_epoch that came with them.
        Raises FailedPrecondition when entries were erased since."""
        array = int32s(indices)
        message = self._find_request(values, return_keys=True, erase_epoch=erase_epoch)
        parts = tensor("indices", message, array)
        return self._found(message, parts, len(array), timeout, request_id)

    def update(
        self,
        keys: npt.ArrayLike,
        values: Values,
        combine: str = "set",
        *,
        insert_missing: bool = False,
        counts_only: bool = False,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Updated:
        """Combines rows with those that are there; rows of one entry in order.

        combine         "set", "add" (integers clamp at their range), "min" or "max"
        insert_missing  keys that are not there are inserted, with zeros, first; else skipped
        """
        array = self._keys(keys)
        message = update_request(self.name, combine, insert_missing=insert_missing)
        message.counts_only = counts_only
        parts = [*tensor("keys", message, array), *self._rows(message, values)]
        return self._updated(message, parts, len(array), timeout, request_id, sequence)

    def update_at(
        self,
        indices: npt.ArrayLike,
        erase_epoch: int,
        values: Values,
        combine: str = "set",
        *,
        counts_only: bool = False,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Updated:
        """Combines rows of entries by number in the same way, with the erase_epoch that came with
        them. Raises FailedPrecondition when entries were erased since."""
        array = int32s(indices)
        message = update_request(self.name, combine, erase_epoch=erase_epoch)
        message.counts_only = counts_only
        parts = [*tensor("indices", message, array), *self._rows(message, values)]
        return self._updated(message, parts, len(array), timeout, request_id, sequence)

    def erase(
        self,
        keys: npt.ArrayLike,
        *,
        counts_only: bool = False,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Erased:
        """Erases keys."""
        array = self._keys(keys)
        message = hashmap_pb2.MapEraseRequest(name=self.name, counts_only=counts_only)
        parts = tensor("keys", message, array)
        expected = None if counts_only else len(array)
        return self._erased(message, parts, expected, timeout, request_id, sequence)

    def clear(
        self, *, timeout: float | None = None, request_id: str | None = None, sequence: int = 0
    ) -> Erased:
        """Erases everything."""
        message = hashmap_pb2.MapEraseRequest(name=self.name, all=True, counts_only=True)
        return self._erased(message, [], None, timeout, request_id, sequence)

    def export(
        self,
        values: str | Sequence[str] = "*",
        *,
        first: int = 0,
        limit: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Entries:
        """Entries by ascending number.

        values        names of the arrays to get; "*": all, (): none
        first, limit  skip so many entries, get at most so many; limit 0: all
        """
        message = self._export_request(values, first, limit)
        reply = self._exchange("map_export", message, [], timeout, request_id, 0)
        with reply:
            shape = reply.message.indices.shape
            if len(shape) != 1 or shape[0] < 0:
                raise bad("indices", "not one number an entry")
            indices = reply.numbers("indices", shape[0])
            assert indices is not None
            return Entries(
                indices=indices,
                keys=reply.rows("keys", reply.message.keys, len(indices)),
                values=reply.all_rows(len(indices)),
                n_entries=reply.message.n_entries,
                erase_epoch=reply.message.erase_epoch,
                lattice=lattice_of(reply.message),
            )

    def export_ply(
        self,
        path: str | os.PathLike[str],
        values: str | Sequence[str] = "*",
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> int:
        """Writes a PLY file, a vertex an entry: the centre of its voxel in metres where the
        map has a lattice, else its key; then the values. Returns how many entries the map
        has. The file appears whole or not at all."""
        message = self._export_request(values, 0, 0)
        message.format = hashmap_pb2.MAP_PLY
        reply = self._exchange("map_export", message, [], timeout, request_id, 0)
        beside = Path(f"{os.fspath(path)}.part")
        try:
            beside.write_bytes(reply.message.ply)
            beside.replace(path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        return int(reply.message.n_entries)

    def save(
        self,
        file: str = "",
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Saved:
        """Saves the map in the server's data directory, in place of an older file of that name;
        "": the map's name."""
        message = hashmap_pb2.MapSaveRequest(name=self.name, file=file)
        response = self._client._change("map_save", message, timeout, request_id, sequence)
        return record_of(Saved, response.map_save)

    def drop(
        self,
        *,
        missing_ok: bool = False,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> bool:
        """Drops the map, as Client.map_drop does."""
        return drop_map(
            self._client, self.name, missing_ok, timeout, request_id, sequence
        )

    def _keys(self, keys: npt.ArrayLike) -> Array:
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

    def _rows(self, message: Any, values: Values) -> list[wire.Part]:
        number = message.DESCRIPTOR.fields_by_name["values"].number
        parts: list[wire.Part] = []
        for name, rows in values.items():
            spec = self.arrays.get(name)
            field = f"values[{name!r}]"
            if spec is None:
                raise InvalidArgument(f"the map has {', '.join(self.arrays) or 'no'} arrays", field)
            array = typed(rows, spec.numpy, field)
            dtype = DType.BFLOAT16 if spec.dtype == DType.BFLOAT16 else None
            inner = tensor_of(wire.MAP_ROWS_ROWS, array, dtype)
            parts += wire.rows_parts(number, name, inner)
        return parts

    def _names(self, values: str | Sequence[str]) -> list[str]:
        return [values] if isinstance(values, str) else list(values)

    def _find_request(self, values: str | Sequence[str], **members: Any) -> Any:
        try:
            return hashmap_pb2.MapFindRequest(name=self.name, values=self._names(values), **members)
        except (TypeError, ValueError) as e:
            raise InvalidArgument(str(e)) from None

    def _export_request(self, values: str | Sequence[str], first: int, limit: int) -> Any:
        names = self._names(values)
        try:
            return hashmap_pb2.MapExportRequest(
                name=self.name,
                values=[] if names == ["*"] else names,
                keys_only=not names,
                first=first,
                limit=limit,
            )
        except (TypeError, ValueError) as e:
            raise InvalidArgument(str(e)) from None

    def _found(
        self,
        message: Any,
        parts: list[wire.Part],
        n: int,
        timeout: float | None,
        request_id: str | None,
    ) -> Found:
        reply = self._exchange("map_find", message, parts, timeout, request_id, 0)
        with reply:
            found = reply.mask("found", n)
            indices = reply.numbers("indices", n)
            assert found is not None and indices is not None
            columns = message.neighbours
            keys = reply.message.keys
            return record_of(
                Found,
                reply.message,
                indices=indices,
                found=found,
                values=reply.all_rows(n),
                neighbours=reply.numbers("neighbours", n if columns else None, columns),
                keys=reply.rows("keys", keys, n) if message.return_keys else None,
            )

    def _updated(
        self,
        message: Any,
        parts: list[wire.Part],
        n: int,
        timeout: float | None,
        request_id: str | None,
        sequence: int,
    ) -> Updated:
        number = self._client._numbered(sequence)
        reply = self._exchange("map_update", message, parts, timeout, request_id, number)
        with reply:
            expected = None if message.counts_only or reply.dropped else n
            return record_of(
                Updated,
                reply.message,
                updated=reply.mask("updated", expected),
                replayed=reply.replayed,
                arrays_dropped=reply.dropped,
            )

    def _erased(
        self,
        message: Any,
        parts: list[wire.Part],
        n: int | None,
        timeout: float | None,
        request_id: str | None,
        sequence: int,
    ) -> Erased:
        number = self._client._numbered(sequence)
        reply = self._exchange("map_erase", message, parts, timeout, request_id, number)
        with reply:
            return record_of(
                Erased,
                reply.message,
                erased=reply.mask("erased", None if reply.dropped else n),
                replayed=reply.replayed,
                arrays_dropped=reply.dropped,
            )

    def _exchange(
        self,
        method: str,
        message: Any,
        parts: list[wire.Part],
        timeout: float | None,
        request_id: str | None,
        sequence: int,
    ) -> Reply:
        header = rpc_pb2.RequestHeader(sequence=sequence)
        number = rpc_pb2.Request.DESCRIPTOR.fields_by_name[method].number
        body = wire.enclosed(number, [message.SerializeToString(), *parts])
        response, arrays = self._client._exchange(method, header, body, timeout, request_id)
        return Reply(response, arrays, sequence)
