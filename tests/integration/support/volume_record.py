# SPDX-License-Identifier: Apache-2.0
"""Reads the blocks of a volume's record, as server/durable/record/volume_record.c and byte_planes.c
describe them, so that tests see every layer of a volume."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

# enum vxd_dtype; float16 stays as its bits
DTYPES = {2: "<u1", 4: "<u2", 7: "<f4", 11: "<f2"}
MAX_BITS = 11


@dataclass(frozen=True)
class Blocks:
    """Rows in the order of the entries."""

    entries: np.ndarray
    keys: np.ndarray
    stamps: np.ndarray
    layers: dict[str, np.ndarray]


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        self.at += n
        assert self.at <= len(self.data)
        return self.data[self.at - n : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        value = 0
        for shift in itertools.count(0, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise AssertionError

    def text(self) -> str:
        return self.take(self.byte()).decode()

    def plane(self, n: int) -> np.ndarray:
        form = self.byte()
        if form == 0:
            return np.frombuffer(self.take(n), np.uint8)
        if form == 1:
            return np.full(n, self.byte(), np.uint8)
        halves = np.frombuffer(self.take(128), np.uint8)
        lengths = np.stack([halves & 15, halves >> 4], 1).reshape(-1)
        return self.huffman(n, lengths, self.take(self.number()))

    def huffman(self, n: int, lengths: np.ndarray, codes: bytes) -> np.ndarray:
        """Canonical codes: shorter ones first, of equal length in the order of their bytes."""
        symbols = np.zeros(1 << MAX_BITS, np.uint8)
        steps = np.zeros(1 << MAX_BITS, np.uint8)
        code = 0
        for length in range(1, MAX_BITS + 1):
            for symbol in np.flatnonzero(lengths == length):
                first = code << (MAX_BITS - length)
                symbols[first : first + (1 << (MAX_BITS - length))] = symbol
                steps[first : first + (1 << (MAX_BITS - length))] = length
                code += 1
            code <<= 1
        bits = np.unpackbits(np.frombuffer(codes + bytes(2), np.uint8)).astype(np.uint16)
        windows = np.zeros(len(bits) - MAX_BITS + 1, np.uint16)
        for i in range(MAX_BITS):
            windows |= bits[i : len(bits) - MAX_BITS + 1 + i] << (MAX_BITS - 1 - i)
        step_at = steps[windows].tolist()
        places, at = [], 0
        for _ in range(n):
            places.append(at)
            at += step_at[at]
        return symbols[windows[places]]

    def columns(self, n: int, n_columns: int, dtype: str) -> np.ndarray:
        """Differences to the row before, zigzag, their bytes in planes."""
        unsigned = np.dtype(dtype.replace("i", "u"))
        out = np.zeros((n, n_columns), unsigned)
        for column in range(n_columns):
            folded = np.zeros(n, unsigned)
            for k in range(unsigned.itemsize):
                folded |= self.plane(n).astype(unsigned) << unsigned.type(8 * k)
            one = unsigned.type(1)
            with np.errstate(over="ignore"):
                out[:, column] = np.cumsum((folded >> one) ^ (0 - (folded & one)), dtype=unsigned)
        return out.view(dtype)

    def blocks(self) -> Blocks:
        """What follows the number of images."""
        if self.byte() == 1:
            self.columns(self.number(), 3, "<i4")
        kinds = [(self.text(), self.byte(), self.number()) for _ in range(self.byte())]
        n = self.number()
        entries = self.columns(n, 1, "<i4")[:, 0]
        keys = self.columns(n, 3, "<i4")
        stamps = self.columns(n, 1, "<u8")[:, 0]
        layers = {}
        for name, dtype, n_elements in kinds:
            width = np.dtype(DTYPES[dtype]).itemsize
            rows = np.stack([self.plane(n * n_elements) for _ in range(width)], 1)
            layers[name] = rows.reshape(-1).view(DTYPES[dtype]).reshape(n, n_elements)
        assert self.at == len(self.data)
        return Blocks(entries, keys, stamps, layers)
