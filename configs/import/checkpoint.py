# SPDX-License-Identifier: Apache-2.0
"""PyTorch checkpoints read without PyTorch.

A .pth of PyTorch 1.6 and later is a zip of one pickle and one file for each tensor's elements.
A pickle is a program: this unpickler knows the few names that a checkpoint of tensors needs
and refuses all others, so nothing in a file is ever run.
"""

from __future__ import annotations

import collections
import pickle
import zipfile
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

MAX_BYTES = 4 << 30  # of one checkpoint's tensors

# PyTorch's storage classes: safetensors' name of the element type, bytes.
STORAGES = {
    "DoubleStorage": ("F64", 8),
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}


class CheckpointError(ValueError):
    """A file that is no checkpoint, or one that has more than tensors."""


@dataclass
class Tensor:
    """Elements in C order, as a safetensors file has them."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def element_bytes(self) -> int:
        return len(self.data) // max(1, prod(self.shape))


@dataclass
class _Storage:
    dtype: str
    element_bytes: int
    data: bytes


class _Ignored:
    """Stands for an object that is not needed; takes any arguments and does nothing."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def __setstate__(self, _state: Any) -> None:
        pass

    def __call__(self, *_args: Any, **_kwargs: Any) -> _Ignored:
        return self

    def append(self, _item: Any) -> None:
        pass

    def extend(self, _items: Any) -> None:
        pass

    def __setitem__(self, _key: Any, _value: Any) -> None:
        pass


def _contiguous(storage: _Storage, offset: int, shape: tuple[int, ...],
                stride: tuple[int, ...]) -> bytes:
    """Returns the elements of a strided view, in C order."""
    size = storage.element_bytes
    n = prod(shape)
    if len(shape) != len(stride) or offset < 0 or any(x < 0 for x in (*shape, *stride)):
        raise CheckpointError(f"shape {shape} and stride {stride} do not go together")
    last = offset + sum((x - 1) * s for x, s in zip(shape, stride, strict=True))
    if n > 0 and (last + 1) * size > len(storage.data):
        raise CheckpointError("a tensor reaches past its storage")
    expected = 1
    is_plain = True
    for x, s in zip(reversed(shape), reversed(stride), strict=True):
        is_plain = is_plain and (x == 1 or s == expected)
        expected *= x
    if is_plain or n == 0:
        return storage.data[offset * size:(offset + n) * size]
    if n * size > MAX_BYTES:
        raise CheckpointError("a tensor of more elements than are read")
    starts = [offset]
    for x, s in zip(shape, stride, strict=True):
        starts = [at + i * s for at in starts for i in range(x)]
    return b"".join(storage.data[at * size:(at + 1) * size] for at in starts)


def _rebuild_tensor(storage: Any, offset: int, shape: tuple[int, ...],
                    stride: tuple[int, ...], *_rest: Any) -> Tensor:
    if not isinstance(storage, _Storage):
        raise CheckpointError("a tensor without storage")
    return Tensor(storage.dtype, tuple(shape), _contiguous(storage, offset, shape, stride))


def _rebuild_parameter(data: Any, *_rest: Any) -> Any:
    return data


_ALLOWED = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch", "Size"): tuple,
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], archive: zipfile.ZipFile, root: str,
                 ignore_unknown: bool) -> None:
        super().__init__(file, encoding="utf-8")
        self.archive = archive
        self.root = root
        self.ignore_unknown = ignore_unknown
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return name
        found = _ALLOWED.get((module, name))
        if found is None and self.ignore_unknown:
            return _Ignored
        if found is None:
            raise CheckpointError(
                f"the file wants {module}.{name}, which no checkpoint of tensors needs; "
                "--ignore-unknown passes over it without running anything")
        return found

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise CheckpointError("an object that is no storage")
        kind, key = pid[1], str(pid[2])
        if kind not in STORAGES:
            raise CheckpointError(f"a storage of type {kind!r}")
        if key not in self.storages:
            dtype, size = STORAGES[kind]
            info = self.archive.getinfo(f"{self.root}/data/{key}")
            if info.file_size > MAX_BYTES:
                raise CheckpointError(f"a storage of {info.file_size} bytes")
            self.storages[key] = _Storage(dtype, size, self.archive.read(info))
        return self.storages[key]


def _state(found: Any) -> dict[str, Any]:
    """Finds the dictionary of tensors in the unpickled object, under the usual names."""
    for name in ("model_state", "state_dict", "model_state_dict", "model", "net"):
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found = found[name]
            break
    if not isinstance(found, dict):
        raise CheckpointError("no dictionary of tensors in the file")
    return found


def read_checkpoint(path: Path, ignore_unknown: bool = False) -> dict[str, Tensor]:
    """Returns tensors by name, without the "module." of a data-parallel training."""
    if not zipfile.is_zipfile(path):
        raise CheckpointError(
            f"{path} is no zip: checkpoints of PyTorch before 1.6 must be saved again by a "
            "newer one")
    with zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise CheckpointError(f"{path} has {len(pickles)} pickles, not one")
        root = pickles[0].removesuffix("/data.pkl")
        with archive.open(pickles[0]) as file:
            try:
                found = _Unpickler(file, archive, root, ignore_unknown).load()
            except (pickle.UnpicklingError, KeyError, IndexError, EOFError, TypeError,
                    AttributeError) as error:
                raise CheckpointError(f"{path}: {error}") from error
    return {str(name).removeprefix("module."): tensor for name, tensor in _state(found).items()
            if isinstance(tensor, Tensor)}
