# SPDX-License-Identifier: Apache-2.0
"""Exports that take several replies."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from voxeld.v1 import scene_pb2

from ..reply import bad


class PlyParts:
    """Joins PLY files into one: each has the same header except for its number of vertices."""

    HEAD = re.compile(rb"(ply\n.*?element vertex )(\d+)(\n.*?end_header\n)", re.DOTALL)

    def __init__(self) -> None:
        self.n_written = 0
        self.n_cells = 1  # before the first reply
        self._seen: tuple[int, int] | None = None

    def append(self, message: scene_pb2.SceneExportResponse) -> tuple[bytes, bool]:
        """Returns what to write next, and whether the reply is of the same version as those
        before."""
        match = self.HEAD.match(message.ply)
        if match is None:
            raise bad("ply", "no PLY file of vertices")
        n, body = int(match[2]), message.ply[match.end() :]
        seen = (message.seen.version, message.seen.generation)
        header = b""
        if self._seen is None:
            self._seen = seen
            self.n_cells = message.n_cells
            header = match[1] + str(self.n_cells).encode() + match[3]
        left = self.n_cells - self.n_written
        if n > left or (n == 0) != (left == 0) or (n == 0) != (not body):
            raise bad("ply", "not the cells that are next")
        self.n_written += n
        return header + body, seen == self._seen


def joined(parts: list[Any], *names: str) -> Any:
    """Joins the replies of one export, or of one diff: the arrays of these names."""
    if len(parts) == 1:
        return parts[0]
    columns = {n: [getattr(p, n) for p in parts] for n in names}
    return dataclasses.replace(
        parts[0],
        **{n: None if c[0] is None else np.concatenate(c) for n, c in columns.items()},
    )
