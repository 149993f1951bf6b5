# SPDX-License-Identifier: Apache-2.0
"""Maps for the tests: a client of their methods over nng, and the oracle, a dict."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
from harness import OK, Daemon, Rpc, array_of, common_pb2, hashmap_pb2, rpc_pb2, tensor_of

COUNT = hashmap_pb2.MapArray(name="count", dtype=common_pb2.UINT64)
MEAN = hashmap_pb2.MapArray(name="mean", dtype=common_pb2.FLOAT32, n_elements=3)
SPEC = hashmap_pb2.MapSpec(values=[COUNT, MEAN])


class Maps:
    """One client of a daemon; numbers what changes something by itself."""

    def __init__(self, daemon: Daemon, client_id: str = "", token: str = "") -> None:
        self.rpc = Rpc(daemon.ipc)
        self.client_id = client_id or f"t-{os.urandom(6).hex()}"
        self.token = token
        self.sequence = itertools.count(1)

    def __enter__(self) -> Maps:
        return self

    def __exit__(self, *_: object) -> None:
        self.rpc.socket.close()

    def send(self, method: str, **fields: Any) -> rpc_pb2.Response:
        message = getattr(hashmap_pb2, "".join(p.title() for p in method.split("_")) + "Request")
        return self.rpc.call(
            method,
            message(**fields),
            client_id=self.client_id,
            sequence=next(self.sequence),
            token=self.token,
        )

    def call(self, method: str, **fields: Any) -> Any:
        response = self.send(method, **fields)
        assert response.header.code == OK, response.header
        return getattr(response, method)

    def fails(self, method: str, code: int, field: str = "", **fields: Any) -> str:
        header = self.send(method, **fields).header
        assert header.code == code, header
        assert not field or header.field == field, header
        return header.message


def rows(**arrays: np.ndarray) -> list[hashmap_pb2.MapRows]:
    return [hashmap_pb2.MapRows(name=k, rows=tensor_of(v)) for k, v in arrays.items()]


class Oracle:
    """The expected map: entries by key, numbers from the lowest free one up."""

    def __init__(self, **zeros: np.ndarray) -> None:
        self.zeros = zeros
        self.number: dict[tuple[int, ...], int] = {}
        self.rows: dict[tuple[int, ...], dict[str, np.ndarray]] = {}

    def insert(
        self, keys: np.ndarray, **values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        taken = set(self.number.values())
        free = (n for n in itertools.count() if n not in taken)
        indices = np.empty(len(keys), np.int32)
        is_new = np.zeros(len(keys), np.uint8)
        for i, key in enumerate(map(tuple, keys.tolist())):
            if key not in self.number:
                self.number[key] = next(free)
                self.rows[key] = {
                    name: values[name][i].copy() if name in values else zero.copy()
                    for name, zero in self.zeros.items()
                }
                is_new[i] = 1
            indices[i] = self.number[key]
        return indices, is_new

    def find(self, keys: np.ndarray) -> np.ndarray:
        return np.array(
            [self.number.get(k, -1) for k in map(tuple, keys.tolist())], np.int32
        )

    def erase(self, keys: np.ndarray) -> np.ndarray:
        erased = np.zeros(len(keys), np.uint8)
        for i, key in enumerate(map(tuple, keys.tolist())):
            if self.number.pop(key, None) is not None:
                del self.rows[key]
                erased[i] = 1
        return erased

    def values(self, name: str, keys: np.ndarray) -> np.ndarray:
        zero = self.zeros[name]
        return np.array(
            [self.rows[k][name] if k in self.rows else zero for k in map(tuple, keys.tolist())],
            zero.dtype,
        ).reshape(len(keys), *zero.shape)


def check_export(maps: Maps, name: str, oracle: Oracle) -> None:
    """Compares the whole map with the oracle."""
    reply = maps.call("map_export", name=name)
    order = sorted(oracle.number, key=oracle.number.__getitem__)
    keys = array_of(reply.keys)
    np.testing.assert_array_equal(
        array_of(reply.indices), [oracle.number[k] for k in order]
    )
    rows_of = (len(order), -1)
    np.testing.assert_array_equal(keys.reshape(rows_of), np.array(order).reshape(rows_of))
    for value in reply.values:
        np.testing.assert_array_equal(
            array_of(value.rows), oracle.values(value.name, keys.reshape(rows_of))
        )
    assert reply.n_entries == len(order)
