#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trained weights of spconv (OpenPCDet, Pointcept), MinkowskiEngine and TorchSparse as the
safetensors files that voxeld reads. Needs neither PyTorch nor any of those libraries.

usage: import_weights.py LIBRARY CHECKPOINT OUT.safetensors [--only PREFIX]
                         [--rename OLD=NEW] [--ignore-unknown]

LIBRARY is spconv, minkowski or torchsparse; CHECKPOINT a .pth (a zip; read with an allow-list,
nothing in it is run) or a .safetensors file. Layouts stay as they are: the network's config
says "weights": {"layout": "krsc" | "me" | "torchsparse"}. Only spconv's 1x1 convolutions are
rewritten: spconv multiplies by their buffer as [in, out] although it is declared as
[out, 1, 1, 1, in], and here it becomes what it is declared as.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkpoint import CheckpointError, Tensor, read_checkpoint
from tensors import read_safetensors, write_safetensors

FLOATS = ("F64", "F32", "F16", "BF16")


def transpose(data: bytes, rows: int, columns: int, size: int) -> bytes:
    """Transposes a rows x columns matrix of elements of `size` bytes."""
    return b"".join(data[(r * columns + c) * size:(r * columns + c + 1) * size]
                    for c in range(columns) for r in range(rows))


def mend_spconv(name: str, tensor: Tensor) -> Tensor:
    """Turns a 1x1 convolution's buffer, [in, out], into its declared shape."""
    if len(tensor.shape) != 5 or not name.endswith("weight"):
        return tensor
    n_out, *kernel, n_in = tensor.shape
    if kernel != [1, 1, 1]:
        return tensor
    return Tensor(tensor.dtype, tensor.shape,
                  transpose(tensor.data, n_in, n_out, tensor.element_bytes))


def keep(_name: str, tensor: Tensor) -> Tensor:
    return tensor


LIBRARIES = {"spconv": mend_spconv, "minkowski": keep, "torchsparse": keep}


def convert(library: str, tensors: dict[str, Tensor], only: str = "",
            renames: list[tuple[str, str]] | None = None) -> dict[str, Tensor]:
    """Selects the floats below a prefix, corrects and renames them. Counters of batch norms are
    left out."""
    out: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if not name.startswith(only) or tensor.dtype not in FLOATS:
            continue
        new = name
        for old, prefix in renames or []:
            if new.startswith(old):
                new = prefix + new.removeprefix(old)
        if new in out:
            raise CheckpointError(f"two tensors would be named {new}")
        out[new] = LIBRARIES[library](name, tensor)
    if not out:
        raise CheckpointError("no tensor of floats is left")
    return out


def rename(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("must be OLD=NEW, two prefixes")
    return old, new


def parse_args(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Trained weights as safetensors for voxeld.",
        epilog="The manual of networks' configs is configs/networks/README.md.")
    parser.add_argument("library", choices=sorted(LIBRARIES))
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", metavar="PREFIX",
                        help="take only tensors whose names begin so (backbone_3d.)")
    parser.add_argument("--rename", action="append", type=rename, metavar="OLD=NEW",
                        help="another beginning for names; may be given again")
    parser.add_argument("--ignore-unknown", action="store_true",
                        help="pass over objects that are no tensors")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    args = parse_args(arguments)
    try:
        if args.checkpoint.suffix == ".safetensors":
            tensors = read_safetensors(args.checkpoint)
        else:
            tensors = read_checkpoint(args.checkpoint, args.ignore_unknown)
        tensors = convert(args.library, tensors, args.only, args.rename)
        write_safetensors(args.out, tensors, {"imported_from": args.library})
    except (CheckpointError, OSError) as error:
        print(f"import_weights.py: {error}", file=sys.stderr)
        return 1
    n_values = sum(len(t.data) // t.element_bytes for t in tensors.values())
    print(f"{args.out}: {len(tensors)} tensors, {n_values} values")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
