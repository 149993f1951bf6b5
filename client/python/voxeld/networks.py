# SPDX-License-Identifier: Apache-2.0
"""Sparse convolution networks: their calls, with arguments and results."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import network_pb2

from .errors import Code
from .exchange import Reply, name_of, vec3_of
from .generated.network_records import (
    NETWORK_OUTPUT_KINDS,
    NETWORK_PRECISIONS,
    Timings,
    timings_of,
)
from .reply import WIRE_TYPES, array_of, bad, code_of, record_of
from .shown import Named, shown

@dataclasses.dataclass(frozen=True)
class InferItem:
    """The outcome of one cloud. code: OK, or why its rows mean nothing (they exist all the same).
    n_points = n_used + the six counts of others. points: slice of its rows in points outputs."""

    code: Code
    message: str
    stamp_ns: int
    frame_id: str
    n_points: int
    n_used: int
    n_non_finite: int
    n_out_of_range: int
    n_over_max_voxels: int
    n_over_max_points: int
    n_not_picked: int
    n_voxels: int
    points: slice


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class InferOutput:
    """Rows of all items, item by item.

    values  n x channels; dense: items x channels x y x x; with labels: their n scores
    labels  int32 n, of outputs that choose the best channel; else None
    coords  voxels: int32 n x 4: item, x, y, z, in cells of this output; else None
    rows    voxels: slice of each item's rows; else None
    """

    name: str
    kind: str
    values: npt.NDArray[Any]
    labels: npt.NDArray[np.int32] | None
    coords: npt.NDArray[np.int32] | None
    rows: tuple[slice, ...] | None
    stride: tuple[int, ...]


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Inference:
    """outputs: by name. size, origin, low: the low corner of input cell (x, y, z) is
    origin + low + (x, y, z) * size; None where the network normalizes. n_run_items: items that
    shared the run."""

    network: str
    digest: str
    precision: str
    items: tuple[InferItem, ...]
    outputs: dict[str, InferOutput]
    size: tuple[float, float, float] | None
    origin: tuple[float, float, float] | None
    low: tuple[float, float, float] | None
    n_run_items: int
    timings: Timings
    engine_ms: float
    queue_ms: float
    total_ms: float
    request_id: str

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Returns an output's labels where it has them, else its values. KeyError says which
        outputs there are."""
        output = self.outputs[name]
        return output.values if output.labels is None else output.labels


def items_of(message: network_pb2.InferResponse, n_clouds: int) -> tuple[InferItem, ...]:
    items: list[InferItem] = []
    n_points = 0
    if len(message.items) != n_clouds:
        raise bad("items", "not one for each cloud")
    for item in message.items:
        points = slice(item.first_point, item.first_point + item.n_points)
        if points.start != n_points:
            raise bad("items", "the points do not follow one another")
        n_points = points.stop
        items.append(record_of(InferItem, item, code=code_of(item.code), points=points))
    return tuple(items)


def rows_of(message: network_pb2.InferOutput, n_rows: int, n_items: int) -> tuple[slice, ...]:
    borders = list(message.first_rows)
    if len(borders) != n_items + 1 or borders != sorted(borders):
        raise bad("first_rows", "they do not follow one another")
    if borders[0] != 0 or borders[-1] != n_rows:
        raise bad("first_rows", "not from the first row to the last")
    return tuple(slice(a, b) for a, b in zip(borders, borders[1:], strict=False))


def output_of(
    message: network_pb2.InferOutput,
    path: str,
    arrays: dict[str, memoryview],
    items: tuple[InferItem, ...],
    dtype: str,
    coords: bool,
) -> InferOutput:
    kind = name_of(NETWORK_OUTPUT_KINDS, message.kind)
    shape = tuple(message.values.shape)
    has_labels = message.HasField("labels")
    n_axes = 4 if kind == "dense" else 1 if has_labels else 2
    if len(shape) != n_axes or min(shape) < 0 or message.values.dtype not in WIRE_TYPES:
        raise bad("values", "another number of axes")
    n_rows = {"points": items[-1].points.stop, "voxels": shape[0]}.get(kind, len(items))
    if shape[0] != n_rows:
        raise bad("values", "not a row for each point or item")
    labels = found = None
    if has_labels:
        name = f"{path}.labels"
        labels = array_of(name, message.labels, arrays.get(name), "<i4", shape)
    if kind == "voxels" and coords:
        name = f"{path}.coords"
        found = array_of(name, message.coords, arrays.get(name), "<i4", (n_rows, 4))
    return InferOutput(
        name=message.name,
        kind=kind,
        values=array_of(
            f"{path}.values", message.values, arrays.get(f"{path}.values"), dtype, shape
        ),
        labels=labels,
        coords=found,
        rows=rows_of(message, n_rows, len(items)) if kind == "voxels" else None,
        stride=tuple(message.stride),
    )


def inference_of(reply: Reply, n_clouds: int, dtype: str, coords: bool) -> Inference:
    """Checks the reply against itself and the request; raises Internal."""
    message = reply.message
    items = items_of(message, n_clouds)
    outputs = [
        output_of(o, f"outputs[{i}]", reply.arrays, items, dtype, coords)
        for i, o in enumerate(message.outputs)
    ]
    lattice = {
        name: vec3_of(getattr(message, name)) if message.HasField(name) else None
        for name in ("size", "origin", "low")
    }
    return record_of(
        Inference,
        message,
        precision=name_of(NETWORK_PRECISIONS, message.precision),
        items=items,
        outputs=Named(((o.name, o) for o in outputs), "output"),
        timings=timings_of(message.timings),
        queue_ms=reply.header.queue_ms,
        total_ms=reply.header.total_ms,
        request_id=reply.header.request_id,
        **lattice,
    )
