# SPDX-License-Identifier: Apache-2.0
"""The arguments and results of calls on scenes."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voxeld.v1 import scene_pb2

from . import wire
from .cloud import OF_NUMPY, Pose
from .durability import fsync_of
from .errors import InvalidArgument
from .exchange import Array, Reply
from .fusion import FUSIONS, LogOdds
from .networks import Timings
from .reply import bad, record_of
from .shown import shown

ACTIONS = ("fill", "erase", "set_free", "paint", "replace", "erode", "dilate", "copy", "keep")
PINS = {"": 0, "pinned": 1, "unpinned": 2}
RULES = ("constant", "label", "colour", "ramp", "height")

Vector = Sequence[float] | npt.NDArray[Any]

OPERATIONS = scene_pb2.SceneEditRequest.OPERATIONS_FIELD_NUMBER
SHAPE_POINTS = scene_pb2.SceneOperation.POINTS_FIELD_NUMBER
SHAPE_HEIGHTFIELD = scene_pb2.SceneOperation.HEIGHTFIELD_FIELD_NUMBER


class VoxelState(enum.IntFlag):
    """States of a voxel, or of several. UNKNOWN is empty where free space is not tracked."""

    UNKNOWN = 1
    OCCUPIED = 2
    FREE = 4


# What goes in ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Material:
    """A material's number is its place in the palette. rgb: 0xRRGGBB."""

    name: str
    rgb: int = 0


@dataclasses.dataclass(frozen=True)
class Box:
    """The positions low <= p < high."""

    low: Vector
    high: Vector


@dataclasses.dataclass(frozen=True)
class Ball:
    """noise: value noise adds at most this to the radius, or subtracts it, on a lattice of
    2**noise_cell_bits voxels."""

    centre: Vector
    radius: float
    noise: float = 0.0
    noise_cell_bits: int = 0
    noise_seed: int = 0


@dataclasses.dataclass(frozen=True)
class Capsule:
    """The positions within radius of the segment from a to b."""

    a: Vector
    b: Vector
    radius: float


@dataclasses.dataclass(frozen=True)
class HalfSpace:
    """The positions with normal . p <= offset; the normal has any length."""

    normal: Vector
    offset: float


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class PointList:
    """A list of voxels: n x 3 integers are voxel indices, floating-point numbers metres.
    materials: n, instead of the operation's; of equal voxels the last one's counts."""

    points: npt.ArrayLike
    materials: npt.ArrayLike | None = None


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Heightfield:
    """Columns that reach from low_z up to heights (n_x x n_y, NaN: no column there) above square
    cells, the first of which has its low corner at (x, y). cell: a whole number of voxels."""

    heights: npt.ArrayLike
    x: float
    y: float
    cell: float
    low_z: float


Shape = Box | Ball | Capsule | HalfSpace | PointList | Heightfield


@dataclasses.dataclass(frozen=True)
class Copy:
    """What the action "copy" puts into a Box: voxel p takes what stands at
    source + matrix (p - low), low being the box's low voxel.

    source  a position in the low voxel's source
    matrix  3 x 3, one 1 or -1 a row and column: quarter turns and mirrors. None: no turn
    empty   copies emptiness (and what is free) as well
    """

    source: Vector
    matrix: npt.ArrayLike | None = None
    empty: bool = False


@dataclasses.dataclass(frozen=True)
class Operation:
    """One step of an edit.

    action         "fill" (occupied, of material), "erase", "set_free", "paint" (what is
                   occupied takes material), "replace" (of from_material: takes material),
                   "erode" (fewer than threshold occupied face neighbours: erased), "dilate"
                   (at least threshold of them: occupied), "copy" (see Copy) or "keep" (as they
                   are; with pin)
    threshold      1 to 6; 0: 6 of erode, 1 of dilate
    pin            "pinned" (scans and decays leave all voxels of the shape as they are),
                   "unpinned", or "" (unchanged); with "fill", "erase", "set_free" and "keep", in
                   scenes that fuse by log-odds
    """

    shape: Shape
    action: str = "fill"
    material: int = 0
    from_material: int = 0
    threshold: int = 0
    copy: Copy | None = None
    pin: str = ""


@dataclasses.dataclass(frozen=True)
class Filter:
    """Points of a scan that hit nothing, though their rays count.

    ground             those of the ground, the plane that most points are near (RANSAC)
    ground_distance_m  of the plane; 0: 0.04
    ground_angle       radians that it may be inclined; 0: 0.15
    ground_z           where it is at the sensor's x and y, and ...
    ground_z_tolerance_m  how far from there it may be; 0: anywhere
    min_hits           those of voxels that fewer points of the scan hit
    no_speckles        and of voxels of whose 26 neighbours no other is hit
    """

    ground: bool = False
    ground_distance_m: float = 0.0
    ground_angle: float = 0.0
    ground_z: float = 0.0
    ground_z_tolerance_m: float = 0.0
    min_hits: int = 0
    no_speckles: bool = False


# What comes out --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SceneInfo:
    """What a scene is. n_occupied, n_free, live_node_bytes and digest come from Client.scene
    and Scene.info only.

    version     rises by one with every change
    generation  another one after the scene was dropped and made again
    digest      equal for equal voxels
    durable     "always", "everysec", "off", or None: a restart forgets it
    oldest_version  that is kept, snapshots aside
    n_sharing   scenes that share its memory, itself included: branches
    fusion      "last" or "log-odds"; log_odds: None with last
    log_odds_bytes  of n_bytes, of all scenes that share it; vote_bytes of these: for materials
    n_pinned    voxels that scans and decays leave as they are; from Client.scene and Scene.info
    occupied_low, occupied_high  corners of the box of all occupied voxels, metres, likewise; None
                where there are none
    """

    name: str
    voxel_size: float
    depth: int
    material_bits: int
    track_free: bool
    origin: tuple[float, float, float]
    frame_id: str
    palette: tuple[Material, ...]
    version: int
    generation: int
    n_bytes: int
    max_bytes: int
    node_bytes: int
    n_nodes: int
    n_occupied: int
    n_free: int
    live_node_bytes: int
    digest: str
    owner: str
    created_ns: int
    changed_ns: int
    keep_versions: int
    keep_seconds: int
    oldest_version: int
    n_snapshots: int
    n_sharing: int
    durable: str | None
    journal_max_bytes: int
    fusion: str
    log_odds: LogOdds | None
    log_odds_bytes: int
    n_pinned: int
    vote_bytes: int
    occupied_low: tuple[float, float, float] | None = None
    occupied_high: tuple[float, float, float] | None = None


@dataclasses.dataclass(frozen=True)
class Change:
    """What a change did, in voxels: occupied now and not before, before and not now, of another
    material; free now and not before."""

    version: int
    n_added: int
    n_removed: int
    n_changed: int
    n_freed: int
    n_new_nodes: int


@dataclasses.dataclass(frozen=True)
class Edited:
    """n_outside, n_non_finite: of points in lists."""

    change: Change
    n_outside: int
    n_non_finite: int
    engine_ms: float
    replayed: bool


@dataclasses.dataclass(frozen=True)
class Integrated:
    """n_points = n_used + the four counts of others: not finite, outside the scene, beyond
    max_range, of a label that takes no material or dropped by the filter. n_relabelled: voxels
    that were occupied and took another material. n_ground, n_sparse: the filter's points, of the
    ground and of voxels that too few hit. digest and network: of the network that the
    cloud went through; "" and None without. With estimate: status "ok" or "lost", reason of the
    latter, and the pose found, or where the sensor was thought to be."""

    change: Change
    stamp_ns: int
    frame_id: str
    n_points: int
    n_used: int
    n_non_finite: int
    n_outside: int
    n_beyond: int
    n_dropped: int
    n_hit_voxels: int
    n_passed_voxels: int
    decode_ms: float
    carve_ms: float
    edit_ms: float
    engine_ms: float
    digest: str
    network: Timings | None
    replayed: bool
    n_relabelled: int
    n_ground: int
    n_sparse: int
    status: str = "ok"
    reason: str = ""
    T_map_sensor: Pose | None = None


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class VoxelValues:
    """states: uint8 n, a VoxelState each. materials: uint16 n, 0 where not
    occupied; None in scenes without. pinned: bool n; None unless asked for."""

    states: npt.NDArray[np.uint8]
    materials: npt.NDArray[np.uint16] | None
    version: int
    generation: int
    engine_ms: float
    pinned: npt.NDArray[np.bool_] | None = None

    @property
    def occupied(self) -> npt.NDArray[np.bool_]:
        return (self.states & VoxelState.OCCUPIED) != 0

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        return (self.states & VoxelState.FREE) != 0


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class RayHits:
    """distances: float32 n, metres, -1 = nothing. voxels: int32 n x 3, -1 = nothing. normals:
    int8 n x 3, outward, of the face a ray came in by; 0 from inside. materials: uint16 n; None
    in scenes without."""

    distances: npt.NDArray[np.float32]
    voxels: npt.NDArray[np.int32]
    normals: npt.NDArray[np.int8]
    materials: npt.NDArray[np.uint16] | None
    n_hits: int
    version: int
    generation: int
    engine_ms: float

    @property
    def hit(self) -> npt.NDArray[np.bool_]:
        return self.distances >= 0


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class NearestVoxels:
    """Nearest occupied voxels; distances, voxels and materials as of RayHits."""

    distances: npt.NDArray[np.float32]
    voxels: npt.NDArray[np.int32]
    materials: npt.NDArray[np.uint16] | None
    n_found: int
    version: int
    generation: int
    engine_ms: float


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Overlap:
    """states: uint8 n, the VoxelStates in each shape.
    n_occupied, n_free: uint64 n, with counts."""

    states: npt.NDArray[np.uint8]
    n_occupied: npt.NDArray[np.uint64] | None
    n_free: npt.NDArray[np.uint64] | None
    version: int
    generation: int
    engine_ms: float


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Cells in Morton order. The low corner of cell (x, y, z) is origin + (x, y, z) *
    cell_size.

    cells      int32 n x 3: voxel indices >> level
    materials  uint16 n, of the cell's first voxel; None in scenes without
    counts     uint64 n, voxels a cell; None unless asked for
    n_cells    of the whole box, not of this part of it
    """

    cells: npt.NDArray[np.int32]
    materials: npt.NDArray[np.uint16] | None
    counts: npt.NDArray[np.uint64] | None
    n_cells: int
    origin: tuple[float, float, float]
    cell_size: float
    frame_id: str
    version: int
    generation: int

    def __len__(self) -> int:
        return len(self.cells)

    def centres(self) -> npt.NDArray[np.float64]:
        """Returns n x 3 centres, metres."""
        return np.asarray(np.add(self.origin, (self.cells + 0.5) * self.cell_size), np.float64)


@shown
@dataclasses.dataclass(frozen=True, eq=False)
class Dense:
    """states: uint8 n_x x n_y x n_z, sets of states. materials: uint16, None in scenes
    without. low_cell: cell of states[0, 0, 0]; origin, cell_size as of Cells."""

    states: npt.NDArray[np.uint8]
    materials: npt.NDArray[np.uint16] | None
    low_cell: tuple[int, int, int]
    origin: tuple[float, float, float]
    cell_size: float
    frame_id: str
    version: int
    generation: int


class SceneReply(Reply):
    """The reply of a query: the version it read, and its arrays."""

    def seen(self) -> dict[str, Any]:
        if not self.message.HasField("seen"):
            raise bad("seen", "an answer that does not say of which version")
        seen = self.message.seen
        return {
            "version": seen.version, "generation": seen.generation, "engine_ms": seen.engine_ms
        }  # fmt: skip

    def change(self) -> Change:
        if not self.message.HasField("change"):
            raise bad("change", "a change that does not say what it did")
        return record_of(Change, self.message.change)

    def array(self, name: str, dtype: str, *shape: int) -> Array:
        return self._array(name, dtype, shape)

    def materials(self, *shape: int) -> Array | None:
        """Takes materials; None where the scene has none."""
        return (
            self.array("materials", "<u2", *shape) if self.message.HasField("materials") else None
        )

    def extents(self, name: str, n_axes: int) -> tuple[int, ...]:
        """Returns the size of an array that the server decides."""
        if not self.message.HasField(name):
            raise bad(name, "requested, but missing")
        shape = tuple(getattr(self.message, name).shape)
        if len(shape) != n_axes or min(shape) < 0:
            raise bad(name, "another number of axes")
        return shape

    def place(self) -> dict[str, Any]:
        origin = self.message.origin
        return {
            "origin": (origin.x, origin.y, origin.z),
            "cell_size": self.message.cell_size_m,
            "frame_id": self.message.frame_id,
        }

    def cells(self, *, counts: bool) -> Cells:
        n, columns = self.extents("cells", 2)
        if columns != 3 or n > self.message.n_cells:
            raise bad("cells", "not three numbers a cell, of those there are")
        seen = self.seen()
        return Cells(
            cells=self.array("cells", "<i4", n, 3),
            materials=self.materials(n),
            counts=self.array("counts", "<u8", n) if counts else None,
            n_cells=self.message.n_cells,
            version=seen["version"],
            generation=seen["generation"],
            **self.place(),
        )

    def dense(self) -> Dense:
        shape = self.extents("states", 3)
        if len(self.message.low_cell) != 3:
            raise bad("low_cell", "not three numbers")
        x, y, z = self.message.low_cell
        seen = self.seen()
        return Dense(
            states=self.array("states", "|u1", *shape),
            materials=self.materials(*shape),
            low_cell=(x, y, z),
            version=seen["version"],
            generation=seen["generation"],
            **self.place(),
        )


def corner_of(message: scene_pb2.SceneInfo, name: str) -> tuple[float, float, float] | None:
    corner = getattr(message, name)
    return (corner.x, corner.y, corner.z) if message.HasField(name) else None


def info_of(message: scene_pb2.SceneInfo) -> SceneInfo:
    spec = message.spec
    return record_of(
        SceneInfo,
        message,
        voxel_size=spec.voxel_size_m,
        depth=spec.depth,
        material_bits=spec.material_bits,
        track_free=spec.track_free,
        origin=(spec.origin.x, spec.origin.y, spec.origin.z),
        frame_id=spec.frame_id,
        palette=tuple(Material(m.name, m.rgb) for m in spec.palette),
        keep_versions=message.retention.versions,
        keep_seconds=message.retention.seconds,
        durable=fsync_of(message.durability.fsync) if message.HasField("durability") else None,
        journal_max_bytes=message.durability.journal_max_bytes,
        fusion=FUSIONS[spec.fusion],
        log_odds=record_of(LogOdds, spec.log_odds) if spec.HasField("log_odds") else None,
        occupied_low=corner_of(message, "occupied_low"),
        occupied_high=corner_of(message, "occupied_high"),
    )


# To the wire -----------------------------------------------------------------------------


def tensor_of(number: int, array: Array) -> list[wire.Part]:
    """Makes a field with a tensor of the array's own shape; borrowed where it is C-contiguous and
    little-endian, else copied."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    array = np.ascontiguousarray(array)
    dtype = OF_NUMPY[f"{array.dtype.kind}{array.dtype.itemsize}"]
    data = memoryview(array.reshape(-1).view(np.uint8))
    return wire.tensor_parts(number, dtype, array.shape, data)


def numbers_of(values: npt.ArrayLike, field: str) -> Array:
    try:
        array = np.asarray(values)
    except ValueError as e:
        raise InvalidArgument(f"no array of numbers: {e}", field) from None
    if array.dtype.kind not in "iuf":
        raise InvalidArgument(f"{array.dtype}; numbers are right", field)
    return array


def metres_of(values: npt.ArrayLike, field: str, *widths: int) -> Array:
    """Makes n rows of one of these widths, float32 or float64; one row may come without its axis.
    """
    array = numbers_of(values, field)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return rows_of(array, field, *widths)


def rows_of(array: Array, field: str, *widths: int) -> Array:
    if array.ndim == 1 and array.size in widths:
        array = array.reshape(1, array.size)
    if array.ndim != 2 or array.shape[1] not in widths:
        raise InvalidArgument(
            f"an array of shape {array.shape}; n x {' or '.join(map(str, widths))} is right", field
        )
    return array


def places_of(values: npt.ArrayLike, field: str) -> Array:
    """Makes n x 3 positions: integers are voxels, floating-point numbers metres."""
    array = numbers_of(values, field)
    if array.dtype.kind == "f":
        return metres_of(array, field, 3)
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return rows_of(array, field, 3)


def message_of(kind: Any, field: str, /, **members: Any) -> Any:
    try:
        return kind(**members)
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), field) from None


def shape_parts(shape: PointList | Heightfield, field: str) -> list[wire.Part]:
    """Shapes with arrays, which are spliced in."""
    if isinstance(shape, PointList):
        kind = scene_pb2.ScenePoints
        where = f"{field}.points"
        places = places_of(shape.points, f"{where}.points")
        parts = tensor_of(kind.POINTS_FIELD_NUMBER, places)
        if shape.materials is not None:
            materials = numbers_of(shape.materials, f"{where}.materials")
            if materials.dtype not in (np.uint8, np.uint16):
                if materials.dtype.kind not in "iu" or (
                    materials.size and not 0 <= materials.min() <= materials.max() < 1 << 16
                ):
                    raise InvalidArgument("integers of 16 bits are right", f"{where}.materials")
                materials = materials.astype(np.uint16)
            parts += tensor_of(kind.MATERIALS_FIELD_NUMBER, materials)
        return wire.enclosed(SHAPE_POINTS, parts)
    heights = numbers_of(shape.heights, f"{field}.heightfield.heights")
    if heights.dtype not in (np.float32, np.float64):
        heights = heights.astype(np.float64)
    head = message_of(
        scene_pb2.SceneHeightfield, f"{field}.heightfield",
        x=shape.x, y=shape.y, cell=shape.cell, low_z=shape.low_z,
    )  # fmt: skip
    number = scene_pb2.SceneHeightfield.HEIGHTS_FIELD_NUMBER
    return wire.enclosed(SHAPE_HEIGHTFIELD, [head.SerializeToString(), *tensor_of(number, heights)])


def plain_shape(shape: Shape, field: str) -> dict[str, Any]:
    """Shapes without arrays, as a member of the operation."""

    def vec3(values: Any, name: str) -> Any:
        return wire.vec3(values, f"{field}.{name}")

    if isinstance(shape, Box):
        low, high = vec3(shape.low, "box.low"), vec3(shape.high, "box.high")
        return {"box": scene_pb2.SceneBox(low=low, high=high)}
    if isinstance(shape, Ball):
        ball = message_of(
            scene_pb2.SceneBall, f"{field}.ball",
            centre=vec3(shape.centre, "ball.centre"), radius=shape.radius, noise=shape.noise,
            noise_cell_bits=shape.noise_cell_bits, noise_seed=shape.noise_seed,
        )  # fmt: skip
        return {"ball": ball}
    if isinstance(shape, Capsule):
        a, b = vec3(shape.a, "capsule.a"), vec3(shape.b, "capsule.b")
        kind = scene_pb2.SceneCapsule
        return {"capsule": message_of(kind, f"{field}.capsule", a=a, b=b, radius=shape.radius)}
    if isinstance(shape, HalfSpace):
        normal = vec3(shape.normal, "half_space.normal")
        kind = scene_pb2.SceneHalfSpace
        half = message_of(kind, f"{field}.half_space", normal=normal, offset=shape.offset)
        return {"half_space": half}
    raise InvalidArgument(
        f"{type(shape).__name__} is no shape; a Box, Ball, Capsule, HalfSpace, PointList, Cells or "
        "Heightfield is right",
        field,
    )


def copy_of(copy: Copy, field: str) -> scene_pb2.SceneCopy:
    matrix: list[int] = []
    if copy.matrix is not None:
        array = numbers_of(copy.matrix, f"{field}.copy.matrix")
        if array.size != 9 or not np.isin(array, (-1, 0, 1)).all():
            raise InvalidArgument("3 x 3 of 0, 1 and -1 are right", f"{field}.copy.matrix")
        matrix = array.astype(int).ravel().tolist()
    source = wire.vec3(copy.source, f"{field}.copy.from")
    message = scene_pb2.SceneCopy(matrix=matrix, copy_empty=copy.empty)
    getattr(message, "from").CopyFrom(source)
    return message


def operation_parts(operation: Operation | Shape, i: int) -> list[wire.Part]:
    """Makes a field of an operation; a shape alone is filled."""
    if not isinstance(operation, Operation):
        operation = Operation(operation)
    field = f"operations[{i}]"
    shape = operation.shape
    if operation.action not in ACTIONS:
        raise InvalidArgument(
            f"{operation.action!r}; one of {', '.join(ACTIONS)}", f"{field}.action"
        )
    if operation.pin not in PINS:
        raise InvalidArgument(f"{operation.pin!r}; one of pinned, unpinned", f"{field}.pin")
    if isinstance(operation.material, str):
        raise InvalidArgument(
            f"{operation.material!r}; the number of a material is right (Scene.palette has names)",
            f"{field}.material",
        )
    has_arrays = isinstance(shape, PointList | Heightfield)
    head = message_of(
        scene_pb2.SceneOperation, field,
        action=f"SCENE_{operation.action.upper()}", material=operation.material,
        from_material=operation.from_material, threshold=operation.threshold,
        pin=PINS[operation.pin],
        **({} if has_arrays else plain_shape(shape, field)),
    )  # fmt: skip
    if operation.copy is not None:
        head.copy.CopyFrom(copy_of(operation.copy, field))
    parts: list[wire.Part] = [head.SerializeToString()]
    if isinstance(shape, PointList | Heightfield):
        parts += shape_parts(shape, field)
    return wire.enclosed(OPERATIONS, parts)


def rule_of(
    rule: str, material: int, field: str, range: Sequence[float] | None
) -> scene_pb2.SceneMaterialRule:
    if rule not in RULES:
        raise InvalidArgument(f"{rule!r}; one of {', '.join(RULES)}", "rule")
    low, high = (0.0, 0.0) if range is None else range
    return message_of(
        scene_pb2.SceneMaterialRule, "rule",
        kind=RULES.index(rule), material=material, field=field, low=low, high=high,
    )  # fmt: skip
