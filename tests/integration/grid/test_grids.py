# SPDX-License-Identifier: Apache-2.0
"""Grids and frontiers of scenes over the wire: against NumPy on dense exports, nav2's own rules of
costs and of reading maps, and rosbags' decoder of messages."""

from __future__ import annotations

import itertools
import json
import re
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, http_call
from rosbags.typesys import Stores, get_typestore

UNKNOWN, OCCUPIED, FREE = 1, 2, 4
SIZE = 0.25
SIDE = 64
LOW = -SIDE * SIZE / 2
NAMES = (f"grid-{i}" for i in itertools.count())


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        yield connected


@pytest.fixture(scope="module")
def scene(client: voxeld.Client) -> Iterator[voxeld.Scene]:
    """A room with pillars, a table and a hole in its floor, seen from within: free where a robot
    looked, unknown elsewhere."""
    made = client.scene_create(
        next(NAMES), SIZE, depth=6, material_bits=4, track_free=True, frame_id="map"
    )
    free = voxeld.Operation(voxeld.Box((-6, -6, -1), (4, 5, 2)), action="set_free")
    pocket = voxeld.Operation(voxeld.Box((5, 5, 0), (6, 7, 1)), action="set_free")
    made.edit(
        [
            free,
            pocket,
            voxeld.Operation(voxeld.Box((-6, -6, -1.25), (4, 5, -1)), material=1),
            voxeld.Operation(voxeld.Box((-1, -1, -1), (0, 0, 1.5)), material=2),
            voxeld.Operation(voxeld.Box((2, 2, -0.25), (3, 3, 0)), material=3),
            voxeld.Operation(voxeld.Ball((-4, 3, 0), 0.8), material=4),
            voxeld.Operation(
                voxeld.Box((-3, -4, -1.25), (-2.5, -3, -1)), action="erase"
            ),
        ]
    )
    yield made
    made.drop()


def dense(scene: voxeld.Scene) -> np.ndarray:
    box = voxeld.Box((0, 0, 0), (SIDE,) * 3)
    return scene.export_dense(box, in_voxels=True).states


def columns(states: np.ndarray, low: int, high: int) -> np.ndarray:
    """octomap_server's rule, as n_y x n_x."""
    band = states[:, :, low:high]
    occupied, free = (band == OCCUPIED).any(2), (band == FREE).any(2)
    return np.where(occupied, OCCUPIED, np.where(free, FREE, UNKNOWN)).T


def band_of(z_low: float, z_high: float) -> tuple[int, int]:
    """Voxels whose centres are in it."""
    centres = LOW + (np.arange(SIDE) + 0.5) * SIZE
    inside = np.flatnonzero((centres >= z_low) & (centres < z_high))
    return int(inside[0]), int(inside[-1]) + 1


def costs_of(lethal: np.ndarray, robot: float, inflation: float, k: float) -> np.ndarray:
    """nav2_costmap_2d::InflationLayer::computeCost of the distance to the nearest obstacle."""
    n_y, n_x = lethal.shape
    at = np.argwhere(lethal)
    y, x = np.mgrid[0:n_y, 0:n_x]
    squares = np.full(lethal.shape, 1 << 30)
    for oy, ox in at:
        squares = np.minimum(squares, (y - oy) ** 2 + (x - ox) ** 2)
    d = np.sqrt(squares) * SIZE
    costs = np.floor(252 * np.exp(-k * (d - robot)))
    costs = np.where(d <= robot, 253, costs)
    costs = np.where(squares == 0, 254, costs)
    return np.where(squares > np.ceil(inflation / SIZE) ** 2, 0, costs)


WHOLE = voxeld.Box((0, 0, 0), (SIDE,) * 3)


@pytest.mark.parametrize("robot,inflation,k", [(0.3, 1.2, 3.0), (0.0, 0.55, 10.0), (0.6, 0.6, 1.0)])
def test_costmap_has_nav2s_costs(
    client: voxeld.Client, scene: voxeld.Scene, robot: float, inflation: float, k: float
) -> None:
    low, high = band_of(-0.9, 1.0)
    states = columns(dense(scene), low, high)
    grid = client.scene_grid(
        scene.name, box=WHOLE, in_voxels=True, z_low=low, z_high=high,
        robot_radius_m=robot, inflation_radius_m=inflation, cost_scaling=k,
    )  # fmt: skip
    expected = costs_of(states == OCCUPIED, robot, inflation, k)
    expected = np.where((states == UNKNOWN) & (expected < 253), 255, expected)
    np.testing.assert_array_equal(grid.cells, expected)
    assert grid.cells.dtype == np.uint8 and set(np.unique(states)) == {UNKNOWN, OCCUPIED, FREE}
    assert (grid.n_x, grid.n_y, grid.frame_id) == (SIDE, SIDE, "map")
    assert grid.origin == (LOW, LOW, LOW + low * SIZE)
    assert grid.top_m == LOW + high * SIZE and grid.cell_size_m == SIZE
    assert grid.version == scene.info().version


def test_unknown_is_kept_free_or_lethal(client: voxeld.Client, scene: voxeld.Scene) -> None:
    states = columns(dense(scene), *band_of(-0.9, 1.0))
    options: dict[str, Any] = {
        "box": voxeld.Box((LOW,) * 3, (-LOW,) * 3), "z_low": -0.9, "z_high": 1.0,
        "robot_radius_m": 0.3, "inflation_radius_m": 0.9,
    }  # fmt: skip
    lethal = client.scene_grid(scene.name, unknown="lethal", **options).cells
    np.testing.assert_array_equal(lethal, costs_of(states != FREE, 0.3, 0.9, 10))
    free = client.scene_grid(scene.name, unknown="free", **options).cells
    np.testing.assert_array_equal(free, costs_of(states == OCCUPIED, 0.3, 0.9, 10))
    kept = client.scene_grid(scene.name, unknown="kept", **options).cells
    np.testing.assert_array_equal(kept, client.scene_grid(scene.name, **options).cells)
    assert (kept == 255).any() and not (free == 255).any() and not (lethal == 255).any()
    only = client.scene_grid(scene.name, **{**options, "inflation_radius_m": -1.0}).cells
    np.testing.assert_array_equal(
        only[states != UNKNOWN], costs_of(states == OCCUPIED, 0.3, 0.3, 10)[states != UNKNOWN]
    )


@pytest.mark.parametrize("unknown", ["kept", "free", "lethal"])
def test_slice_of_distances_is_that_of_the_field(
    client: voxeld.Client, scene: voxeld.Scene, unknown: str
) -> None:
    box = voxeld.Box((-7, -5, 0), (6, 8, 0))
    grid = client.scene_grid(
        scene.name, "distance", box=box, z_low=-0.12, unknown=unknown, max_distance_m=1.5
    )
    field = scene.distance_field(
        voxeld.Box((-7, -5, -0.25), (6, 8, 0)),
        max_distance=1.5,
        unknown={"kept": "ignored", "free": "free", "lethal": "occupied"}[unknown],
    )
    assert (grid.n_y, grid.n_x) == grid.cells.shape and grid.cells.dtype == np.float32
    expected = field.distances[:, :, 0].T
    np.testing.assert_array_equal(grid.cells, expected)
    assert np.isnan(grid.cells).any() == (unknown == "kept")
    assert np.nanmin(grid.cells) < 0 < np.nanmax(grid.cells) <= 1.5
    with pytest.raises(voxeld.InvalidArgument) as raised:
        client.scene_grid(scene.name, "distance", box=box, format="png")
    assert raised.value.field == "format"
    with pytest.raises(voxeld.InvalidArgument) as raised:
        client.scene_grid(scene.name, "distance", box=box, max_distance_m=1000.0)
    assert raised.value.field == "max_distance_m"


def test_projected_map_and_slice_are_those_of_a_dense_export(
    client: voxeld.Client, scene: voxeld.Scene
) -> None:
    states = dense(scene)
    values = {OCCUPIED: 100, FREE: 0, UNKNOWN: -1}
    low, high = band_of(-0.9, 1.0)
    projected = client.scene_grid(
        scene.name, "projected", box=WHOLE, in_voxels=True, z_low=low, z_high=high
    )
    expected = np.vectorize(values.get)(columns(states, low, high))
    np.testing.assert_array_equal(projected.cells, expected)
    assert projected.cells.dtype == np.int8
    layer = client.scene_grid(
        scene.name, "slice", box=voxeld.Box((-7, -5, 0), (6, 8, 0)), z_low=-0.12
    )
    z = int(np.floor((-0.12 - LOW) / SIZE))
    expected = np.vectorize(values.get)(states[4:56, 12:64, z].T)
    np.testing.assert_array_equal(layer.cells, expected)
    assert layer.origin == (-7, -5, LOW + z * SIZE)


def test_heights_are_those_of_the_occupied_voxels(
    client: voxeld.Client, scene: voxeld.Scene
) -> None:
    grid = client.scene_grid(scene.name, "height", box=WHOLE, in_voxels=True)
    occupied = dense(scene).transpose(1, 0, 2) == OCCUPIED
    z = LOW + (np.arange(SIDE) + 0.5) * SIZE
    some = occupied.any(2)
    with np.errstate(invalid="ignore"):
        low = np.where(some, z[occupied.argmax(2)], np.nan)
        high = np.where(some, z[SIDE - 1 - occupied[:, :, ::-1].argmax(2)], np.nan)
        mean = np.where(some, (occupied * z).sum(2) / occupied.sum(2), np.nan)
    np.testing.assert_array_equal(grid.low, low.astype(np.float32))
    np.testing.assert_array_equal(grid.high, high.astype(np.float32))
    np.testing.assert_allclose(grid.mean, mean, rtol=1e-6)
    padded = np.pad(high, 1, constant_values=np.nan)
    here = padded[1:-1, 1:-1]
    squares = np.zeros_like(here)
    for before, after in (
        (padded[1:-1, :-2], padded[1:-1, 2:]),
        (padded[:-2, 1:-1], padded[2:, 1:-1]),
    ):
        rise = np.where(np.isnan(after), here, after) - np.where(np.isnan(before), here, before)
        run = 2 - np.isnan(after).astype(float) - np.isnan(before)
        with np.errstate(invalid="ignore", divide="ignore"):
            squares += np.where(run == 0, np.nan, rise / (run * SIZE)) ** 2
    np.testing.assert_allclose(grid.slope, np.where(some, np.sqrt(squares), np.nan), rtol=1e-5)
    assert grid.cells is None and np.isnan(grid.low).any() and (grid.slope > 0).any()


def test_box_that_is_absent_holds_all_that_is_known(
    client: voxeld.Client, scene: voxeld.Scene
) -> None:
    grid = client.scene_grid(scene.name, "projected", z_low=-0.9, z_high=1.0)
    states = columns(dense(scene), *band_of(-0.9, 1.0))
    known = np.argwhere(states != UNKNOWN)
    (y0, x0), (y1, x1) = known.min(0), known.max(0) + 1
    assert grid.origin[:2] == (LOW + x0 * SIZE, LOW + y0 * SIZE)
    assert grid.cells.shape == (y1 - y0, x1 - x0)
    np.testing.assert_array_equal(grid.cells == 100, states[y0:y1, x0:x1] == OCCUPIED)
    with pytest.raises(voxeld.FailedPrecondition, match="nothing in the band"):
        client.scene_grid(scene.name, z_low=5, z_high=6)


# Files and messages ------------------------------------------------------------------------


def read_pgm(data: bytes) -> np.ndarray:
    match = re.match(rb"P5\n(\d+) (\d+)\n255\n", data)
    assert match is not None
    n_x, n_y = int(match[1]), int(match[2])
    return np.frombuffer(data[match.end() :], np.uint8).reshape(n_y, n_x)


def read_map(pgm: bytes, yaml: str, free_thresh: float | None = None) -> np.ndarray:
    """nav2_map_server's loadMapFromFile, mode trinary: -1, 0 and 100, the low y first."""
    keys = dict(line.split(": ", 1) for line in yaml.splitlines())
    assert keys["mode"] == "trinary" and keys["negate"] == "0"
    occupied = float(keys["occupied_thresh"])
    free = float(keys["free_thresh"]) if free_thresh is None else free_thresh
    p = (255 - read_pgm(pgm).astype(float)) / 255
    return np.where(p > occupied, 100, np.where(p < free, 0, -1))[::-1]


def test_map_that_nav2_reads_keeps_unknown_unknown(
    client: voxeld.Client, scene: voxeld.Scene
) -> None:
    band = {"z_low": -0.9, "z_high": 1.0}
    tensor = client.scene_grid(scene.name, "projected", **band)
    pgm = client.scene_grid(scene.name, "projected", format="pgm", **band).file
    yaml = client.scene_grid(scene.name, "projected", format="yaml", **band).file.decode()
    np.testing.assert_array_equal(read_map(pgm, yaml), tensor.cells)
    keys = dict(line.split(": ", 1) for line in yaml.splitlines())
    assert keys["image"] == f"{scene.name}.pgm" and float(keys["resolution"]) == SIZE
    assert keys["origin"] == f"[{tensor.origin[0]:g}, {tensor.origin[1]:g}, 0]"
    # How nav2 takes the three values, by the thresholds of our file and by its usual ones.
    for free in (0.19, 0.25):
        kinds = read_map(b"P5\n3 1\n255\n" + bytes([0, 254, 205]), yaml, free)[0]
        print(f"free_thresh {free}: 0, 254, 205 are {kinds}")
        assert list(kinds) == [100, 0, -1 if free == 0.19 else 0]
    # A costmap's picture is black where the robot's centre must not be.
    options: dict[str, Any] = {**band, "robot_radius_m": 0.4}
    costs = client.scene_grid(scene.name, **options).cells
    picture = read_map(client.scene_grid(scene.name, format="pgm", **options).file, yaml)
    np.testing.assert_array_equal(
        picture, np.where(costs == 255, -1, np.where(costs >= 253, 100, 0))
    )


def read_png(data: bytes) -> np.ndarray:
    """8-bit grey, whose rows have filters; an independent decoder of the few lines it takes."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    n_x, n_y, bits, colour = struct.unpack(">IIBB", data[16:26])
    assert (bits, colour) == (8, 0)
    at, packed = 8, b""
    while at < len(data):
        (n,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        packed += data[at + 8 : at + 8 + n] if kind == b"IDAT" else b""
        at += 12 + n
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(n_y, n_x + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


def test_png_has_the_costs_with_the_highest_y_first(
    client: voxeld.Client, scene: voxeld.Scene
) -> None:
    costs = client.scene_grid(scene.name, z_low=-0.9, z_high=1.0).cells
    png = client.scene_grid(scene.name, z_low=-0.9, z_high=1.0, format="png").file
    np.testing.assert_array_equal(read_png(png)[::-1], costs)


@pytest.mark.parametrize("kind", ["costmap", "projected"])
def test_occupancy_grid_is_what_ros_decodes(
    client: voxeld.Client, scene: voxeld.Scene, kind: str
) -> None:
    options: dict[str, Any] = {"z_low": -0.9, "z_high": 1.0, "robot_radius_m": 0.3}
    grid = client.scene_grid(scene.name, kind, **options)
    raw = client.scene_grid(
        scene.name, kind, format="occupancy", stamp_ns=1_700_000_000_123_456_789, **options
    ).file
    store = get_typestore(Stores.ROS2_HUMBLE)
    message: Any = store.deserialize_cdr(raw, "nav_msgs/msg/OccupancyGrid")
    assert (message.header.frame_id, message.header.stamp.sec) == ("map", 1_700_000_000)
    assert message.header.stamp.nanosec == message.info.map_load_time.nanosec == 123_456_789
    assert (message.info.width, message.info.height) == (grid.n_x, grid.n_y)
    assert message.info.resolution == np.float32(SIZE)
    origin = message.info.origin
    assert (origin.position.x, origin.position.y) == grid.origin[:2]
    assert (origin.orientation.x, origin.orientation.w) == (0, 1)
    data = np.asarray(message.data, np.int8).reshape(grid.n_y, grid.n_x)
    if kind == "projected":
        np.testing.assert_array_equal(data, grid.cells)
    else:  # nav2_costmap_2d::Costmap2DPublisher's cost_translation_table_
        table = np.array([0, *(1 + 97 * (i - 1) // 251 for i in range(1, 253)), 99, 100, -1])
        np.testing.assert_array_equal(data, table[grid.cells])
    assert bytes(store.serialize_cdr(message, "nav_msgs/msg/OccupancyGrid")) == bytes(raw)


# Frontiers ---------------------------------------------------------------------------------


def flood(marked: np.ndarray) -> list[np.ndarray]:
    """Clusters of cells that touch by side, edge or corner."""
    steps = list(itertools.product((-1, 0, 1), repeat=marked.ndim))
    left = {tuple(c) for c in np.argwhere(marked)}
    found = []
    while left:
        stack = [min(left)]
        left.discard(stack[0])
        cells = []
        while stack:
            at = stack.pop()
            cells.append(at)
            for step in steps:
                to = tuple(int(a + s) for a, s in zip(at, step, strict=True))
                if to in left:
                    left.discard(to)
                    stack.append(to)
        found.append(np.array(sorted(cells)))
    return sorted(found, key=lambda c: (-len(c), tuple(c[0])))


def frontier_cells(states: np.ndarray) -> np.ndarray:
    unknown = np.pad(states == UNKNOWN, 1)
    middle = (slice(1, -1),) * states.ndim
    touches = np.zeros_like(states, bool)
    for axis in range(states.ndim):
        for by in (-1, 1):
            touches |= np.roll(unknown, by, axis)[middle]
    return (states == FREE) & touches


@pytest.mark.parametrize("in_space", [False, True])
@pytest.mark.parametrize("min_cells", [1, 30])
def test_frontiers_are_those_of_a_flood(
    client: voxeld.Client, scene: voxeld.Scene, in_space: bool, min_cells: int
) -> None:
    low, high = band_of(-0.9, 1.0)
    states = dense(scene)
    array = states[:, :, low:high] if in_space else columns(states, low, high)
    expected = [c for c in flood(frontier_cells(array)) if len(c) >= min_cells]
    assert expected
    got = client.scene_frontiers(
        scene.name, box=WHOLE, in_voxels=True, z_low=low, z_high=high,
        in_space=in_space, min_cells=min_cells, with_cells=True,
    )  # fmt: skip
    np.testing.assert_array_equal(got.sizes, [len(c) for c in expected])
    for i, cells in enumerate(expected):
        voxels = cells + [0, 0, low] if in_space else np.pad(cells[:, ::-1], ((0, 0), (0, 1)))
        voxels[:, 2] = voxels[:, 2] if in_space else low
        mine = got.cells[got.clusters == i]
        assert {tuple(v) for v in mine} == {tuple(v) for v in voxels}
        centre = LOW + (voxels.mean(0) + 0.5) * SIZE
        centre[2] = centre[2] if in_space else LOW + (low + high) / 2 * SIZE
        np.testing.assert_allclose(got.centroids[i], centre, rtol=1e-12)
    assert got.n_cells == sum(len(c) for c in expected)
    assert client.scene_frontiers(scene.name, z_low=-0.9, z_high=1.0).cells is None


def test_wide_and_tall_boxes_are_made_in_parts(client: voxeld.Client) -> None:
    """A plane of more voxels than a stage takes, and columns of which it takes fewer."""
    side = 1024
    scene = client.scene_create(next(NAMES), 1.0, depth=10, track_free=True, origin=(0, 0, 0))
    random = np.random.default_rng(5)
    spheres = [
        voxeld.Operation(
            voxeld.Ball((512, *random.uniform(0, side, 2)), random.uniform(1, 60)),
            action=action,
        )
        for action in ["set_free"] * 60 + ["erase"] * 20 + ["fill"] * 10
    ]
    scene.edit(spheres)
    box = voxeld.Box((511, 0, 0), (514, side, side))
    marked = frontier_cells(scene.export_dense(box, in_voxels=True).states)
    got = client.scene_frontiers(
        scene.name, box=box, in_voxels=True, in_space=True, with_cells=True
    )
    assert len(got.cells) > 10_000
    np.testing.assert_array_equal(got.cells, np.argwhere(marked) + [511, 0, 0])

    def project(low: int, high: int) -> np.ndarray:
        part = voxeld.Box((400, low, 0), (624, high, side))
        return client.scene_grid(scene.name, "projected", box=part, in_voxels=True).cells

    parts = [project(low, low + 64) for low in range(0, side, 64)]
    np.testing.assert_array_equal(project(0, side), np.concatenate(parts))
    assert len(np.unique(parts)) == 3
    scene.drop()


# Refusals, versions, other scenes ----------------------------------------------------------


def test_wrong_requests_say_which_field(client: voxeld.Client, scene: voxeld.Scene) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("z_high", {"z_low": 1.0, "z_high": 0.5}),
        ("z_high", {"z_low": 0.01, "z_high": 0.02}),
        ("z_low", {"z_low": float("nan")}),
        ("robot_radius_m", {"robot_radius_m": -1.0}),
        ("inflation_radius_m", {"robot_radius_m": 1.0, "inflation_radius_m": 0.5}),
        ("inflation_radius_m", {"inflation_radius_m": 100.0}),
        ("cost_scaling", {"cost_scaling": float("inf")}),
        ("image", {"format": "yaml", "image": "a: b"}),
        ("format", {"kind": "height", "format": "png"}),
        ("box.high", {"box": voxeld.Box((0, 0, 0), (1e6, 1, 1))}),
        ("box.low", {"box": voxeld.Box((0, float("nan"), 0), (1, 1, 1))}),
    ]
    for field, options in wrong:
        with pytest.raises(voxeld.InvalidArgument) as caught:
            client.scene_grid(scene.name, **{"box": WHOLE, **options})
        assert caught.value.field == field, caught.value
    with pytest.raises(voxeld.NotFound):
        client.scene_grid("nowhere")
    with pytest.raises(voxeld.ResourceExhausted, match="smaller box"):
        client.scene_grid(scene.name, box=voxeld.Box((0, 0, 0), (5000, 5000, 1)), in_voxels=True)


def test_scene_without_free_space_has_a_costmap_and_no_frontiers(client: voxeld.Client) -> None:
    scene = client.scene_create(next(NAMES), SIZE, depth=6)
    with pytest.raises(voxeld.FailedPrecondition):
        client.scene_grid(scene.name)
    scene.edit(voxeld.Box((0, 0, 0), (1, 1, 1)))
    grid = client.scene_grid(scene.name, box=WHOLE, in_voxels=True, z_low=32, z_high=33)
    assert set(np.unique(grid.cells)) <= {0, 254, *range(1, 253)}
    assert (grid.cells == 254).sum() == 16
    old = client.scene_grid(scene.name, "projected", box=WHOLE, in_voxels=True, at=1)
    assert not old.cells.any() and old.version == 1
    with pytest.raises(voxeld.FailedPrecondition, match="free space"):
        client.scene_frontiers(scene.name)
    scene.drop()


# Files over HTTP, and voxelctl -------------------------------------------------------------


def test_costmap_is_a_page_with_an_entity_tag(
    daemon: Daemon, client: voxeld.Client, scene: voxeld.Scene
) -> None:
    query = "z=-0.9,1.0&robot_radius_m=0.4&unknown=kept"
    options: dict[str, Any] = {"z_low": -0.9, "z_high": 1.0, "robot_radius_m": 0.4}
    types = {"png": "image/png", "pgm": "image/x-portable-graymap", "yaml": "application/yaml"}
    for ending, content_type in types.items():
        path = f"/v1/scenes/{scene.name}/costmap.{ending}?{query}"
        reply = http_call(daemon, "GET", path)
        assert reply.status == 200, reply.body
        assert reply.headers["content-type"] == content_type
        image = "costmap.pgm" if ending == "yaml" else ""
        file = client.scene_grid(scene.name, format=ending, image=image, **options).file
        assert reply.body == file
        tag = reply.headers["etag"]
        again = http_call(daemon, "GET", path, headers={"If-None-Match": tag})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        other = http_call(daemon, "GET", path + "&kind=projected", headers={"If-None-Match": tag})
        assert other.status == 200 and other.headers["etag"] != tag
    path = f"/v1/scenes/{scene.name}/costmap.png?{query}"
    tag = http_call(daemon, "GET", path).headers["etag"]
    scene.edit(voxeld.Box((7, 7, 7), (7.5, 7.5, 7.5)))
    changed = http_call(daemon, "GET", path, headers={"If-None-Match": tag})
    assert changed.status == 200 and changed.headers["etag"] != tag
    old = f"{path}&at={scene.info().version - 1}"
    assert http_call(daemon, "GET", old).status == 200
    for wrong, field in (
        ("z=1", ""), ("z=a,b", "z"), ("box=1,2,3", "box"), ("kind=x", "kind"), ("no=1", "no"),
        ("kind=height", "format"), ("at=A!", "at"), ("at=18446744073709551616", "at"),
        ("robot_radius_m=nan", "robot_radius_m"),
    ):  # fmt: skip
        reply = http_call(daemon, "GET", f"/v1/scenes/{scene.name}/costmap.png?{wrong}")
        assert reply.status == (200 if not field else 400), (wrong, reply.body)
        assert not field or json.loads(reply.body)["field"] == field
    assert http_call(daemon, "GET", "/v1/scenes/nowhere/costmap.png").status == 404
    assert http_call(daemon, "POST", f"/v1/scenes/{scene.name}/costmap.png", b"{}").status == 405


def ctl(daemon: Daemon, *words: str | Path) -> str:
    done = subprocess.run(
        [BIN / "voxelctl", "--url", daemon.ipc, *words],
        capture_output=True, text=True, check=False, timeout=60 * SLOW,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_voxelctl_writes_maps_and_frontiers(
    daemon: Daemon, client: voxeld.Client, scene: voxeld.Scene, tmp_path: Path
) -> None:
    band: dict[str, Any] = {"z_low": -0.9, "z_high": 1.0}
    command = ["scene", "costmap", scene.name]
    band_words = ["--z=-0.9,1", "--robot-radius", "0.4"]
    costs = client.scene_grid(scene.name, robot_radius_m=0.4, **band)
    said = ctl(daemon, *command, tmp_path / "m.npy", *band_words)
    assert f"{costs.n_x} x {costs.n_y} cells of 0.25 m" in said
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), costs.cells)
    ctl(daemon, *command, tmp_path / "m.png", *band_words)
    np.testing.assert_array_equal(
        read_png((tmp_path / "m.png").read_bytes())[::-1], costs.cells
    )
    ctl(daemon, *command, tmp_path / "m.pgm", *band_words, "--kind", "projected")
    yaml = (tmp_path / "m.yaml").read_text()
    assert yaml.startswith("image: m.pgm\n")
    projected = client.scene_grid(scene.name, "projected", **band)
    np.testing.assert_array_equal(
        read_map((tmp_path / "m.pgm").read_bytes(), yaml), projected.cells
    )
    ctl(daemon, *command, tmp_path / "m.npz", "--kind", "height")
    heights = client.scene_grid(scene.name, "height")
    with np.load(tmp_path / "m.npz") as arrays:
        for name in ("low", "high", "mean", "slope"):
            np.testing.assert_array_equal(arrays[name], getattr(heights, name))
    found = client.scene_frontiers(scene.name, min_cells=2, with_cells=True, **band)
    out = json.loads(
        ctl(
            daemon, "--json", "scene", "frontiers", scene.name, "--z=-0.9,1", "--min-cells", "2",
            "--out", tmp_path / "f.npz",
        )
    )  # fmt: skip
    assert [c["size"] for c in out["clusters"]] == list(found.sizes)
    with np.load(tmp_path / "f.npz") as arrays:
        for name in ("sizes", "centroids", "cells", "clusters"):
            np.testing.assert_array_equal(arrays[name], getattr(found, name))
    with pytest.raises(AssertionError, match="nothing in the band"):
        ctl(daemon, "scene", "frontiers", f"{scene.name}@1")


# A real scan -------------------------------------------------------------------------------


def near(lethal: np.ndarray, radius: int) -> np.ndarray:
    """Squares of the distances to the nearest obstacle within a radius of cells."""
    n_y, n_x = lethal.shape
    padded = np.pad(lethal, radius)
    squares = np.full(lethal.shape, 1 << 30)
    for dy, dx in itertools.product(range(-radius, radius + 1), repeat=2):
        there = padded[radius + dy : radius + dy + n_y, radius + dx : radius + dx + n_x]
        squares = np.where(there, np.minimum(squares, dy * dy + dx * dx), squares)
    return squares


def test_real_scan_has_the_grids_of_its_dense_export(client: voxeld.Client) -> None:
    scan = np.load(SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy")
    scene = client.scene_create(next(NAMES), 0.4, depth=8, track_free=True)
    scene.integrate(scan[::4], max_range=40)
    side = 1 << 8
    box = voxeld.Box((0, 0, 0), (side,) * 3)
    states = scene.export_dense(box, in_voxels=True).states
    low, high = 120, 130
    there = columns(states, low, high)
    options: dict[str, Any] = {
        "box": box, "in_voxels": True, "z_low": low, "z_high": high,
        "robot_radius_m": 0.5, "inflation_radius_m": 1.5, "cost_scaling": 2.0,
    }  # fmt: skip
    squares = near(there == OCCUPIED, 4)
    d = np.sqrt(squares) * 0.4
    expected = np.where(d <= 0.5, 253, np.floor(252 * np.exp(-2 * (d - 0.5))))
    expected = np.where(squares == 0, 254, np.where(squares > 16, 0, expected))
    expected = np.where((there == UNKNOWN) & (expected < 253), 255, expected)
    np.testing.assert_array_equal(client.scene_grid(scene.name, **options).cells, expected)
    assert min((there == s).sum() for s in (UNKNOWN, OCCUPIED, FREE)) > 1000
    marked = frontier_cells(there)
    found = client.scene_frontiers(
        scene.name, box=box, in_voxels=True, z_low=low, z_high=high, with_cells=True
    )
    got = np.zeros_like(marked)
    got[found.cells[:, 1], found.cells[:, 0]] = True
    np.testing.assert_array_equal(got, marked)
    np.testing.assert_array_equal(found.sizes, [len(c) for c in flood(marked)])
    scene.drop()
