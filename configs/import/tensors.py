# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: 8 bytes of length, a JSON header, the elements."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

from checkpoint import CheckpointError, Tensor

MAX_HEADER = 4 << 20
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
         "U8": 1, "BOOL": 1}


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Reads all tensors by name. Raises CheckpointError for a file that is none."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(MAX_HEADER, len(content) - 8):
        raise CheckpointError(f"{path} is no safetensors file")
    try:
        header = json.loads(content[8:8 + length])
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error
    header.pop("__metadata__", None)
    data = content[8 + length:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype, shape = entry["dtype"], tuple(entry["shape"])
        if not 0 <= begin <= end <= len(data) or dtype not in SIZES or \
                end - begin != prod(shape) * SIZES[dtype]:
            raise CheckpointError(f"{path}: tensor {name} does not lie in the file")
        tensors[name] = Tensor(dtype, shape, data[begin:end])
    return tensors


def write_safetensors(path: Path, tensors: dict[str, Tensor],
                      metadata: dict[str, str] | None = None) -> None:
    """Writes tensors sorted by name, aligned to 8 bytes; equal tensors give equal bytes."""
    header: dict[str, object] = {}
    if metadata:
        header["__metadata__"] = metadata
    offset = 0
    # Large elements first, so that each tensor is aligned to its own.
    names = sorted(tensors, key=lambda name: (-SIZES[tensors[name].dtype], name))
    for name in names:
        tensor = tensors[name]
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(tensor.data)]}
        offset += len(tensor.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in names:
            file.write(tensors[name].data)
