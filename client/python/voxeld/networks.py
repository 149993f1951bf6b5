# SPDX-License-Identifier: Apache-2.0
"""Sparse convolution networks: their calls, with arguments and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import common_pb2, network_pb2, rpc_pb2

from . import wire
from .calls import Calls
from .cloud import Pose
from .errors import Code, Error, InvalidArgument
from .exchange import name_of, vec3_of
from .generated import network_client
from .generated.network_records import (
    NETWORK_OUTPUT_KINDS,
    NETWORK_PRECISIONS,
    Timings,
    timings_of,
)
from .points import Points, clouds_of, pose_of
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


class NetworkCalls(Calls):
    """The calls of Client on networks; threads, errors and options are as there."""

    def infer(
        self,
        network: str,
        points: Points,
        outputs: str | Sequence[str] = (),
        *,
        half: bool = False,
        expect_digest: str = "",
        apply_pose: bool = False,
        origin: Sequence[float] | None = None,
        coords: bool = True,
        pose: Pose | npt.ArrayLike | None = None,
        frame_id: str = "",
        stamp_ns: int = 0,
        stream: str = "",
        keep_last: int = 0,
        max_age_ms: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Inference:
        """Runs a loaded network on clouds.

        points         an array, a Cloud, or a list of them, one a batch item, 1 to 256; with the
                       fields that the network looks at (see network)
        outputs        names; "*": all. None: the small ones, vectors and labels
        half           values as float16
        expect_digest  FailedPrecondition unless the network's digest begins so
        apply_pose     the clouds' poses, minus origin; else the sensor's frame
        coords         those of voxel outputs
        pose, frame_id, stamp_ns
                       for arrays, as in voxelize
        stream, keep_last, max_age_ms
                       as in voxelize

        Raises NotFound where no such network is loaded. An item that has no points where the
        network looks fails alone: see InferItem.code.
        """
        of_array = {
            "stamp_ns": stamp_ns,
            "frame_id": frame_id,
            "T_map_sensor": pose_of(pose),
        }
        clouds = clouds_of(points, {k: v for k, v in of_array.items() if v})
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        try:
            request = network_pb2.InferRequest(
                network=network,
                outputs=names,
                dtype=common_pb2.FLOAT16 if half else common_pb2.FLOAT32,
                expect_digest=expect_digest,
                apply_pose=apply_pose,
                no_coords=not coords,
            )
            header = rpc_pb2.RequestHeader(
                stream=stream, keep_last=keep_last, max_age_ms=max_age_ms
            )
        except (TypeError, ValueError) as e:
            raise InvalidArgument(str(e)) from None
        if origin is not None:
            request.origin.CopyFrom(wire.vec3(origin, "origin"))
        parts = wire.infer_parts(request, clouds)
        response, arrays = self._exchange("infer", header, parts, timeout, request_id)
        try:
            return inference_of(response, arrays, len(clouds), "<f2" if half else "<f4", coords)
        except Error as e:
            e.request_id = response.header.request_id
            raise

    network_load = network_client.network_load
    network_unload = network_client.network_unload
    network = network_client.network
    networks = network_client.networks
    networks_available = network_client.networks_available


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


def inference_of(
    response: rpc_pb2.Response,
    arrays: dict[str, memoryview],
    n_clouds: int,
    dtype: str,
    coords: bool,
) -> Inference:
    """Checks the reply against itself and the request; raises Internal."""
    message = response.infer
    items = items_of(message, n_clouds)
    outputs = [
        output_of(o, f"outputs[{i}]", arrays, items, dtype, coords)
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
        queue_ms=response.header.queue_ms,
        total_ms=response.header.total_ms,
        request_id=response.header.request_id,
        **lattice,
    )
