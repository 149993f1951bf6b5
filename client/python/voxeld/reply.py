# SPDX-License-Identifier: Apache-2.0
"""Results. The server is not trusted: every length is checked against the counts, every
index against its array, before an array goes out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from voxeld.v1 import admin_pb2, common_pb2, rpc_pb2, voxelize_pb2

from .errors import Code, Internal
from .shown import members_of, table_of

Record = TypeVar("Record")

INT32_MAX = 2**31 - 1
REDUCTIONS = ("mean", "sum", "min", "max", "first")
OUTPUTS = ("coords", "counts", "inverse", "points", "first_index")
RULES = ("", "spconv", "minkowski", "double")


@dataclasses.dataclass(frozen=True)
class ServerInfo:
    """The server and its limits. instance_id is a new one after every restart; http is where HTTP
    and the dashboard are, "" where nowhere."""

    version: str
    backend: str
    device: str
    methods: tuple[str, ...]
    max_message_bytes: int
    max_json_bytes: int
    default_timeout_ms: int
    max_timeout_ms: int
    instance_id: str
    started_ns: int
    http: str = ""


@dataclasses.dataclass(frozen=True)
class MethodStatus:
    """mean_ms: over the daemon's life, from admission to reply."""

    name: str
    n_ok: int
    n_failed: int
    mean_ms: float


@dataclasses.dataclass(frozen=True)
class SlowRequest:
    """A recent request that took at least 10 ms."""

    request_id: str
    method: str
    client_id: str
    code: Code
    queue_ms: float
    total_ms: float
    finished_ns: int


@dataclasses.dataclass(frozen=True)
class Status:
    """state: "serving", "draining" or "lost". slow: newest first."""

    state: str
    uptime_s: float
    queue_depth: int
    queue_limit: int
    running: int
    inflight_bytes: int
    inflight_limit_bytes: int
    device_bytes: int
    device_budget_bytes: int
    host_bytes: int
    host_budget_bytes: int
    resident_bytes: int
    n_maps: int
    map_bytes: int
    map_limit_bytes: int
    n_networks: int
    network_bytes: int
    network_limit_bytes: int
    n_scenes: int
    scene_bytes: int
    scene_limit_bytes: int
    methods: tuple[MethodStatus, ...]
    slow: tuple[SlowRequest, ...]


@dataclasses.dataclass(frozen=True)
class Backup:
    """path: on the server. n_linked: snapshot files that are hard links to the same bytes."""

    path: str
    n_database_bytes: int
    n_snapshot_bytes: int
    n_snapshots: int
    n_linked: int
    elapsed_ms: float


@dataclasses.dataclass(frozen=True)
class BackupInfo:
    """One that is there. made_ns: Unix time. n_files: of saved maps."""

    name: str
    path: str
    made_ns: int
    n_database_bytes: int
    n_snapshot_bytes: int
    n_snapshots: int
    n_file_bytes: int
    n_files: int


@dataclasses.dataclass(frozen=True)
class WhyAhead:
    """n requests of one method and token that waited, or ran, before another one."""

    method: str
    token: str
    n: int
    is_running: bool


@dataclasses.dataclass(frozen=True)
class Why:
    """Why a request was refused, or takes so long.

    summary         all of the rest, in sentences
    state           "waits", "runs" or "answered"
    code            its outcome, OK while it is not answered
    key, limit      the key of the configuration whose limit it was, "" where none was; its value
    queue_position  how many waited before it; `ahead` says who
    """

    summary: str
    request_id: str
    method: str
    token: str
    state: str
    code: Code
    message: str
    field: str
    key: str
    limit: int
    queue_position: int
    ahead: tuple[WhyAhead, ...]
    n_others: int
    receive_ms: float
    decode_ms: float
    wait_ms: float
    engine_ms: float
    commit_ms: float
    total_ms: float
    trace_id: str
    finished_ns: int


@dataclasses.dataclass(frozen=True)
class SelfTest:
    """digest: the same on every machine and backend."""

    n_stages: int
    digest: int
    elapsed_ms: float


@dataclasses.dataclass(frozen=True)
class Item:
    """The outcome of one cloud. n_points = n_used + the four counts of dropped points.

    voxels  slice of this item's rows in coords, counts, mean, ...
    points  slice of this item's rows in inverse"""

    stamp_ns: int
    frame_id: str
    n_points: int
    n_used: int
    n_non_finite: int
    n_out_of_range: int
    n_over_max_voxels: int
    n_over_max_points: int
    n_voxels: int
    voxels: slice
    points: slice


@dataclasses.dataclass(frozen=True)
class Merged:
    """What merging voxels into a map did: entries it made, and that the map has now."""

    n_new: int
    n_entries: int


@dataclasses.dataclass(frozen=True, eq=False)
class Voxels:
    """m voxels of all items, item by item, C feature channels, n points.

    Arrays that were not asked for are None, and so are all where arrays_dropped says so. The
    others are aligned. Those that the reply has aligned lie in the reply itself; they live as
    long as anybody holds them.

    coords       int32 m x 4: item, x, y, z
    counts       uint32 m: points reduced into each voxel
    inverse      int32 n: voxel of each point, -1 = dropped
    mean, sum, min, max, first
                 float32 m x C
    points       float32 m x max_points x C, zero padded
    first_index  uint32 m: index of each voxel's first point
    features     names of the C channels
    size, origin, low
                 the low corner of voxel (x, y, z) in the map frame, metres, is
                 origin + low + (x, y, z) * size
    rule         the one that was used, "spconv" or "minkowski"
    grid         cells per axis; None under "minkowski"
    engine_ms, queue_ms, total_ms
                 in the engine; waited at the server; at the server from arrival to reply
    merged       with merge: what that did
    frame        where the channels x, y, z count from: "map", or "origin" where that is not zero
    replayed     the outcome of an earlier call with this sequence (see Client)
    arrays_dropped
                 the server remembered the counts of that one only
    """

    n_voxels: int
    n_points: int
    items: tuple[Item, ...]
    # "| Any": None where it was not asked for, which the caller knows and the checker does not.
    coords: npt.NDArray[np.int32] | Any
    counts: npt.NDArray[np.uint32] | Any
    inverse: npt.NDArray[np.int32] | Any
    mean: npt.NDArray[np.float32] | Any
    sum: npt.NDArray[np.float32] | Any
    min: npt.NDArray[np.float32] | Any
    max: npt.NDArray[np.float32] | Any
    first: npt.NDArray[np.float32] | Any
    points: npt.NDArray[np.float32] | Any
    first_index: npt.NDArray[np.uint32] | Any
    features: tuple[str, ...]
    size: tuple[float, float, float]
    origin: tuple[float, float, float]
    low: tuple[float, float, float]
    rule: str
    grid: tuple[int, ...] | None
    engine_ms: float
    queue_ms: float
    total_ms: float
    request_id: str
    merged: Merged | None
    replayed: bool
    arrays_dropped: bool
    frame: str = "map"

    def __len__(self) -> int:
        return self.n_voxels

    def __repr__(self) -> str:
        edges = {f"{edge:g}" for edge in self.size}
        size = " x ".join(f"{edge:g}" for edge in self.size) if len(edges) > 1 else edges.pop()
        clouds = f" of {len(self.items)} clouds" if len(self.items) > 1 else ""
        return f"Voxels({self.n_voxels} voxels of {size} m from {self.n_points} points{clouds})"

    def _repr_html_(self) -> str:
        members = [m for m in members_of(self) if m[0] not in ("items", "request_id")]
        return table_of(repr(self), members)

    def centres(self) -> npt.NDArray[np.float64]:
        """Returns m x 3 centres of the voxels in the map frame, metres. Needs coords."""
        if self.coords is None:
            raise ValueError("the centres of voxels need the output coords")
        corner = np.add(self.origin, self.low)
        centres = corner + (self.coords[:, 1:] + 0.5) * np.asarray(self.size)
        return np.asarray(centres, np.float64)


@dataclasses.dataclass(frozen=True)
class Expect:
    """What the reply to a voxelize request must have."""

    n_clouds: int
    outputs: frozenset[str]
    reduce: frozenset[str]
    max_points: int
    merges: bool = False


def bad(field: str, what: str) -> Internal:
    return Internal(f"the server's reply is inconsistent: {what}", field)


def code_of(number: int) -> Code:
    return Code(number) if number in Code._value2member_map_ else Code.UNKNOWN


def record_of(kind: type[Record], message: Any, /, **over: Any) -> Record:
    """Makes a dataclass of the message's fields of the same names."""
    members = dataclasses.fields(kind)  # type: ignore[arg-type]
    names = [f.name for f in members if f.name not in over]
    return kind(**{name: getattr(message, name) for name in names}, **over)


def server_info_of(message: admin_pb2.ServerInfoResponse) -> ServerInfo:
    return record_of(ServerInfo, message, methods=tuple(message.methods))


def status_of(message: admin_pb2.StatusResponse) -> Status:
    return record_of(
        Status,
        message,
        methods=tuple(record_of(MethodStatus, m) for m in message.methods),
        slow=tuple(record_of(SlowRequest, s, code=code_of(s.code)) for s in message.slow),
    )


WIRE_TYPES = {
    common_pb2.INT8: "|i1",
    common_pb2.UINT8: "|u1",
    common_pb2.INT16: "<i2",
    common_pb2.UINT16: "<u2",
    common_pb2.INT32: "<i4",
    common_pb2.UINT32: "<u4",
    common_pb2.FLOAT32: "<f4",
    common_pb2.FLOAT64: "<f8",
    common_pb2.INT64: "<i8",
    common_pb2.UINT64: "<u8",
    common_pb2.FLOAT16: "<f2",
    common_pb2.BFLOAT16: "<u2",  # NumPy lacks the type: its bits
}


def array_of(
    name: str,
    tensor: common_pb2.Tensor,
    data: memoryview | None,
    dtype: str,
    shape: Sequence[int],
) -> npt.NDArray[Any]:
    if WIRE_TYPES.get(tensor.dtype) != dtype or len(tensor.shape) != len(shape) or tensor.values:
        raise bad(name, "another type or another number of axes")
    if list(tensor.shape) != list(shape):
        raise bad(name, "the shape does not follow from the counts")
    if (0 if data is None else len(data)) != math.prod(shape) * np.dtype(dtype).itemsize:
        raise bad(name, "the length does not follow from the shape")
    array = np.frombuffer(b"" if data is None else data, dtype).reshape(tuple(shape))
    return array if array.flags.aligned else array.copy()


def items_of(
    message: voxelize_pb2.VoxelizeResponse, expect: Expect, dropped: bool
) -> tuple[Item, ...]:
    items: list[Item] = []
    n_points = 0
    if not message.items and dropped:
        return ()
    if len(message.items) != expect.n_clouds:
        raise bad("items", "not one for each cloud")
    for item in message.items:
        voxels = slice(item.first_voxel, item.first_voxel + item.n_voxels)
        points = slice(item.first_point, item.first_point + item.n_points)
        if voxels.stop > message.n_voxels:
            raise bad("items", "voxels outside the array")
        if points.start != n_points:
            raise bad("items", "the points do not follow one another")
        n_points = points.stop
        items.append(record_of(Item, item, voxels=voxels, points=points))
    return tuple(items)


def voxels_of(
    response: rpc_pb2.Response, arrays: dict[str, memoryview], expect: Expect
) -> Voxels:
    """Checks the reply against itself and the request; raises Internal."""
    message = response.voxelize
    if message.n_voxels > INT32_MAX:
        raise bad("n_voxels", "more than 2^31 - 1")
    dropped = response.header.arrays_dropped
    items = items_of(message, expect, dropped)
    if expect.merges and not message.HasField("merged"):
        raise bad("merged", "requested, but missing")
    m, n, c = message.n_voxels, sum(item.n_points for item in items), len(message.features)
    layouts = {
        "coords": ("<i4", (m, 4)),
        "counts": ("<u4", (m,)),
        "inverse": ("<i4", (n,)),
        "first_index": ("<u4", (m,)),
        "points": ("<f4", (m, expect.max_points, c)),
        **{name: ("<f4", (m, c)) for name in REDUCTIONS},
    }
    expected: frozenset[str] = frozenset() if dropped else expect.outputs | expect.reduce
    checked: dict[str, npt.NDArray[Any] | None] = dict.fromkeys(layouts)
    for name in expected:
        if not message.HasField(name):
            raise bad(name, "requested, but missing")
        checked[name] = array_of(name, getattr(message, name), arrays.get(name), *layouts[name])
    inverse = checked["inverse"]
    if inverse is not None and n > 0 and not -1 <= inverse.min() <= inverse.max() < m:
        raise bad("inverse", "a voxel that does not exist")
    if len(message.grid) not in (0, 3):
        raise bad("grid", "not three numbers")
    origin = (message.origin.x, message.origin.y, message.origin.z)
    return Voxels(
        n_voxels=m,
        n_points=n,
        items=items,
        features=tuple(message.features),
        size=(message.size.x, message.size.y, message.size.z),
        origin=origin,
        low=(message.low.x, message.low.y, message.low.z),
        rule=RULES[message.rule] if 0 <= message.rule < len(RULES) else "",
        grid=tuple(message.grid) if message.grid else None,
        engine_ms=message.engine_ms,
        queue_ms=response.header.queue_ms,
        total_ms=response.header.total_ms,
        request_id=response.header.request_id,
        merged=record_of(Merged, message.merged) if message.HasField("merged") else None,
        replayed=response.header.replayed,
        arrays_dropped=dropped,
        frame=message.frame or ("origin" if any(origin) else "map"),
        **checked,
    )
