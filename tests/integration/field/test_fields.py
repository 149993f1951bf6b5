# SPDX-License-Identifier: Apache-2.0
"""Distance fields over the wire, against brute force in NumPy."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, http_call
from scipy import ndimage
from test_tools import run

NAMES = (f"field-{i}" for i in itertools.count())
DEPTH = 5
SIDE = 1 << DEPTH
SIZE = 0.25
LOW = -SIDE * SIZE / 2
REACH = 6 * SIZE
NONE = -(1 << 31)


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        yield connected


@pytest.fixture
def scene(client: voxeld.Client) -> Iterator[voxeld.Scene]:
    made = client.scene_create(next(NAMES), SIZE, depth=DEPTH, track_free=True)
    yield made
    made.drop(missing_ok=True)


def metres(voxels: np.ndarray) -> np.ndarray:
    return LOW + np.asarray(voxels) * SIZE


class Model:
    """What a scene holds: 0 unknown, 1 free, 2 occupied. Outside of it all is unknown, of which a
    margin as wide as distances reach is kept."""

    def __init__(self) -> None:
        self.margin = 7
        self.states = np.zeros((SIDE + 2 * self.margin,) * 3, np.uint8)
        inner = slice(self.margin, self.margin + SIDE)
        self.inner = (inner, inner, inner)

    def fill(self, scene: voxeld.Scene, voxels: np.ndarray, state: int) -> None:
        action = {0: "erase", 1: "set_free", 2: "fill"}[state]
        scene.edit([voxeld.Operation(voxeld.PointList(voxels), action)])
        self.states[tuple((voxels + self.margin).T)] = state

    def obstacles(self, unknown: str) -> np.ndarray:
        mask = self.states == 2
        return mask | (self.states == 0) if unknown == "occupied" else mask

    def field(self, unknown: str, reach: int = 6) -> np.ndarray:
        """Signed squared distances of the scene's voxels, by all pairs in reach; 0 = none."""
        mask = self.obstacles(unknown)
        best = np.full((SIDE,) * 3, reach * reach + 1)
        m = self.margin
        own = mask[self.inner]
        for offset in itertools.product(range(-reach, reach + 1), repeat=3):
            square = sum(d * d for d in offset)
            if square <= reach * reach:
                there = tuple(slice(m + d, m + d + SIDE) for d in offset)
                best = np.where((mask[there] != own) & (square < best), square, best)
        best[best > reach * reach] = 0
        return np.where(own, -best, best)

    def distances(self, unknown: str) -> np.ndarray:
        squares = self.field(unknown)
        far = np.where(self.obstacles(unknown)[self.inner], -REACH, REACH)
        found = np.where(squares == 0, far, np.sign(squares) * np.sqrt(np.abs(squares)) * SIZE)
        if unknown == "ignored":
            found[self.states[self.inner] == 0] = np.nan
        return found.astype(np.float32)


def filled(scene: voxeld.Scene, seed: int = 1) -> Model:
    """A floor, a wall, scattered voxels, free space in a half, unknown in the rest."""
    rng = np.random.default_rng(seed)
    model = Model()
    every = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), -1).reshape(-1, 3)
    model.fill(scene, every[every[:, 0] < 20], 1)
    wall = (every[:, 1] == 25) & (every[:, 0] % 9 != 4)
    model.fill(scene, every[(every[:, 2] < 3) | wall], 2)
    model.fill(scene, rng.integers(0, SIDE, (40, 3)), 2)
    return model


def test_field_of_a_real_scan_is_that_of_other_libraries(client: voxeld.Client) -> None:
    """A lidar scan, against SciPy's exact transform, and edt's and scikit-fmm's where they are
    installed; scikit-fmm solves the eikonal equation, and is near."""
    points = np.load(SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy")[:, :3].astype(float)
    size, reach = 0.25, 12
    scene = client.scene_create("real", size, depth=10)
    scene.integrate(points, carve=False)
    box = voxeld.Box((-14.0, -14.0, -4.0), (14.0, 14.0, 4.0))
    field = scene.distance_field(box, max_distance=reach * size)
    # As far around as distances reach, so that the box's border is no border of the obstacles'.
    wide = voxeld.Box((-18.0, -18.0, -8.0), (18.0, 18.0, 8.0))
    full = (scene.export_dense(wide).states & voxeld.VoxelState.OCCUPIED) != 0
    assert 5_000 < full.sum() < full.size / 4
    crop = tuple(slice(16, n - 16) for n in full.shape)

    def signed(transform: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        found = np.where(full, -transform(full), transform(~full))[crop]
        return np.clip(found, -reach, reach)

    ours = field.distances / size
    np.testing.assert_allclose(ours, signed(ndimage.distance_transform_edt), atol=1e-5)
    with contextlib.suppress(ImportError):
        import edt

        of_edt = signed(lambda mask: edt.edt(np.ascontiguousarray(mask)))
        np.testing.assert_allclose(ours, of_edt, atol=1e-5)
    with contextlib.suppress(ImportError):
        import skfmm

        apart = np.abs(skfmm.distance(np.where(full, -1.0, 1.0))[crop] - ours)
        near = np.abs(ours) < reach - 1
        # Its surface lies half a voxel nearer, between the centres.
        assert np.mean(apart[near]) < 0.75 and np.percentile(apart[near], 99) < 1.5


@pytest.mark.parametrize("unknown", ["free", "occupied", "ignored"])
def test_field_of_a_scene_is_brute_forces(scene: voxeld.Scene, unknown: str) -> None:
    model = filled(scene)
    field = scene.distance_field(max_distance=REACH, unknown=unknown)
    np.testing.assert_array_equal(field.distances, model.distances(unknown))
    assert field.origin == (LOW,) * 3 and field.voxel_size == SIZE
    assert field.max_distance == REACH and field.version == 4
    part = scene.distance_field(
        voxeld.Box((3, 4, 5), (9, 30, 7)), in_voxels=True, max_distance=REACH, unknown=unknown
    )
    np.testing.assert_array_equal(part.distances, field.distances[3:9, 4:30, 5:7])
    np.testing.assert_allclose(part.origin, metres(np.array([3, 4, 5])))


def test_distances_at_points_have_directions_and_voxels(scene: voxeld.Scene) -> None:
    model = filled(scene)
    voxels = np.random.default_rng(5).integers(0, SIDE, (2000, 3))
    expected = model.distances("free")[tuple(voxels.T)]
    found = scene.distance(metres(voxels + 0.3), max_distance=REACH)
    np.testing.assert_array_equal(found.distances, expected)
    near = found.voxels[:, 0] != NONE
    assert near.any() and (np.abs(expected[~near]) == np.float32(REACH)).all()
    away = (voxels - found.voxels)[near] * SIZE
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), np.abs(expected[near]), rtol=1e-6)
    np.testing.assert_allclose(found.gradients[near], away / expected[near, None], atol=1e-6)
    outside = scene.distance([[LOW - 1, 0, 0], [np.nan, 0, 0], [0, 0, 0]], max_distance=REACH)
    assert np.isnan(outside.distances[:2]).all() and outside.n_outside == 2
    centres = scene.distance(
        metres(voxels[:50] + 0.5), max_distance=REACH, interpolation="trilinear"
    )
    np.testing.assert_array_equal(centres.distances, expected[:50])


def test_field_follows_versions_and_removed_obstacles_rise(scene: voxeld.Scene) -> None:
    model = filled(scene)
    history = {4: model.distances("free")}
    points = metres(np.argwhere(np.ones((SIDE,) * 3)) + 0.5)
    rng = np.random.default_rng(9)
    for version in range(5, 9):
        at = rng.integers(2, SIDE - 6, 3)
        voxels = at + np.argwhere(np.ones((4, 4, 4)))
        model.fill(scene, voxels, 2 if version % 2 else 1)
        history[version] = model.distances("free")
        found = scene.distance(points, max_distance=REACH)
        assert found.version == version
        np.testing.assert_array_equal(found.distances, history[version].reshape(-1))
    for version in (4, 7, 5):
        found = scene.distance(points, max_distance=REACH, at=version)
        np.testing.assert_array_equal(found.distances, history[version].reshape(-1))


def gaps(points: np.ndarray, cubes: np.ndarray) -> np.ndarray:
    """Distances of n points and m cubes of voxels, n x m."""
    low = cubes[None] - points[:, None]
    out = np.maximum(np.maximum(low, -low - 1), 0)
    return np.sqrt((out * out).sum(-1))


def cubes_of(model: Model, unknown: str = "free") -> np.ndarray:
    return np.argwhere(model.obstacles(unknown)[model.inner])


def test_distances_to_surfaces_and_spheres_are_exact(scene: voxeld.Scene) -> None:
    model = filled(scene)
    points = np.random.default_rng(3).uniform(0, SIDE, (500, 3))
    obstacles = model.obstacles("free")[model.inner][tuple(points.astype(int).T)]
    expected = np.minimum(gaps(points, cubes_of(model)).min(1) * SIZE, REACH)
    found = scene.distance(metres(points), max_distance=REACH, to="surface")
    np.testing.assert_allclose(found.distances[~obstacles], expected[~obstacles], atol=1e-5)
    assert (found.distances[obstacles] <= 0).all()
    radii = np.random.default_rng(4).uniform(0.05, 1.2, 500)
    spheres = np.column_stack([metres(points), radii])
    contacts = scene.collide(spheres=spheres, max_distance=REACH)
    np.testing.assert_array_equal(contacts.hits, obstacles | (expected <= radii))
    np.testing.assert_allclose(
        contacts.clearance[~obstacles], (expected - radii)[~obstacles], atol=1e-5
    )
    assert contacts.n_hits == contacts.hits.sum() and contacts.first is None


def test_boxes_and_capsules_touch_what_numpy_says(scene: voxeld.Scene) -> None:
    model = filled(scene)
    cubes = cubes_of(model)
    rng = np.random.default_rng(6)
    centre, half = rng.uniform(0, SIDE, (300, 3)), rng.uniform(0.1, 3, (300, 3))
    out = np.abs(cubes[None] + 0.5 - centre[:, None]) - 0.5 - half[:, None]
    boxes = np.column_stack([metres(centre), half * SIZE])
    contacts = scene.collide(boxes=boxes)
    np.testing.assert_array_equal(contacts.hits, (out <= 0).all(-1).any(1))
    assert np.isnan(contacts.clearance).all()
    turned = np.column_stack([boxes, np.tile([0, 0, 1, 0], (300, 1))])  # half a turn
    np.testing.assert_array_equal(scene.collide(boxes=turned).hits, contacts.hits)
    ends = centre + rng.uniform(-4, 4, (300, 3))
    radii = rng.uniform(0.1, 1.5, 300)
    steps = np.linspace(0, 1, 401)
    least = np.array(
        [
            gaps(a + steps[:, None] * (b - a), cubes[np.abs(cubes - a).max(1) < 12]).min()
            if (np.abs(cubes - a).max(1) < 12).any()
            else np.inf
            for a, b in zip(centre, ends, strict=True)
        ]
    )
    capsules = np.column_stack([metres(centre), metres(ends), radii * SIZE])
    hits = scene.collide(capsules=capsules).hits
    clear = np.abs(least - radii) > 0.02  # steps of a segment are that far apart
    np.testing.assert_array_equal(hits[clear], (least <= radii)[clear])


def test_trajectories_have_a_first_contact_and_a_clearance(scene: voxeld.Scene) -> None:
    model = filled(scene)
    cubes = cubes_of(model)
    robot = np.array([[0.2, 0, 0.1, 0.3], [-0.3, 0.1, 0, 0.2]])
    start = np.random.default_rng(8).uniform(6, 18, (20, 1, 3))
    way = np.array([0.1, 0.5, -0.2]) * np.arange(12)[:, None]
    yaw = 0.7
    poses = np.zeros((20, 12, 7))
    poses[..., :3] = metres(start + way)
    poses[..., 5:] = np.sin(yaw / 2), np.cos(yaw / 2)
    found = scene.collide(trajectories=poses, robot=robot, max_distance=REACH)
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    clearance = np.full((20, 12), np.inf)
    for x, y, z, r in robot:
        at = (poses[..., :3] + turn @ [x, y, z] - LOW) / SIZE
        away = gaps(at.reshape(-1, 3), cubes).min(1).reshape(20, 12) * SIZE
        clearance = np.minimum(clearance, np.minimum(away, REACH) - r)
    hit = clearance <= 0
    np.testing.assert_array_equal(found.hits, hit.any(1))
    assert found.hits.any() and not found.hits.all()
    np.testing.assert_array_equal(found.first, np.where(hit.any(1), hit.argmax(1), -1))
    free = ~hit.any(1)
    np.testing.assert_allclose(found.clearance[free], clearance.min(1)[free], atol=1e-5)
    assert (found.clearance[~free] <= 0).all()


def test_clients_of_different_versions_do_not_disturb_each_other(
    daemon: Daemon, scene: voxeld.Scene
) -> None:
    model = filled(scene)
    expected = {4: model.distances("free")}
    model.fill(scene, np.argwhere(np.ones((6, 6, 6))) + 10, 2)
    expected[5] = model.distances("free")
    wrong: list[object] = []

    def ask(version: int) -> None:
        try:
            with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as own:
                for _ in range(6):
                    field = own.scene(scene.name).distance_field(max_distance=REACH, at=version)
                    if not np.array_equal(field.distances, expected[version]):
                        wrong.append(version)
        except voxeld.Error as e:
            wrong.append(e)

    threads = [threading.Thread(target=ask, args=(4 + i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_wrong_requests_are_refused_with_what_would_be_right(
    daemon: Daemon, client: voxeld.Client, scene: voxeld.Scene
) -> None:
    def refused(method: str, code: str, field: str, **body: object) -> str:
        body.setdefault("name", scene.name)
        reply = http_call(daemon, "POST", f"/v1/{method}", body)
        answer = json.loads(reply.body)
        assert reply.status >= 400 and answer["code"] == code and answer["field"] == field, answer
        return answer["message"]

    def rows(columns: int, *values: float) -> dict[str, object]:
        n = len(values) // columns
        return {"dtype": "FLOAT64", "shape": [n, columns], "values": values}

    invalid = "INVALID_ARGUMENT"
    point = rows(3, 0, 0, 0)
    refused("scene_distance", "NOT_FOUND", "name", name="nowhere", points=point)
    refused("scene_distance", invalid, "points")
    refused("scene_distance", invalid, "unknown", points=point, unknown=7)
    message = refused("scene_distance", invalid, "max_distance_m", points=point, maxDistanceM=99)
    assert "31.75 m (127 voxels)" in message
    refused("scene_distance", invalid, "max_distance_m", points=point, maxDistanceM=-1)
    refused(
        "scene_distance", invalid, "interpolation", points=point,
        interpolation="FIELD_TRILINEAR", to="FIELD_TO_SURFACE",
    )  # fmt: skip
    refused("scene_collide", invalid, "spheres")
    refused("scene_collide", invalid, "spheres", spheres=rows(4, 0, 0, 0, -1))
    sphere = rows(4, 0, 0, 0, 1)
    refused("scene_collide", invalid, "spheres", spheres=sphere, boxes=rows(10, *[0.0] * 10))
    refused("scene_collide", "OUT_OF_RANGE", "spheres", spheres=rows(4, 1e6, 0, 0, 1))
    refused("scene_collide", invalid, "spheres", spheres=rows(4, 0, 0, 0, 100))
    refused("scene_collide", invalid, "boxes", boxes=rows(10, *[0.0] * 9, 2.0))
    wide = rows(10, *[0.0] * 3, *[10.0] * 3, *[0.0] * 4)
    message = refused("scene_collide", invalid, "boxes", boxes=wide)
    assert "at most 16 m (64 voxels)" in message
    capsule = rows(7, -15.0, 0, 0, 15.0, 0, 0, 1.5)
    refused("scene_collide", invalid, "capsules", capsules=capsule)
    poses = rows(7, *[0.0] * 21)
    refused("scene_collide", invalid, "n_steps", poses=poses, robot=sphere, nSteps=2)
    refused("scene_collide", invalid, "robot", poses=poses, nSteps=3)
    many = rows(4, *[0.1] * 4 * 257)
    message = refused("scene_collide", invalid, "robot", poses=poses, robot=many, nSteps=3)
    assert "257 spheres, at most 256 are possible, and 4096 in all steps" in message
    robot, long = rows(4, *[0.1] * 4 * 256), rows(7, *[0.0] * 7 * 17)
    message = refused("scene_collide", invalid, "n_steps", poses=long, robot=robot, nSteps=17)
    assert "4096 of a trajectory" in message and "at most 16 steps" in message
    corner = {"x": 0, "y": 0, "z": 0}
    refused("scene_field", invalid, "box", box={"low": corner, "high": corner})
    far = {"x": 1e5, "y": 1, "z": 1}
    refused("scene_field", "OUT_OF_RANGE", "box", box={"low": corner, "high": far})
    large = client.scene_create(next(NAMES), SIZE, depth=18)
    apart = rows(3, -3e4, -3e4, -3e4, 3e4, 3e4, 3e4)
    refused("scene_distance", "RESOURCE_EXHAUSTED", "points", name=large.name, points=apart)
    large.drop()


def test_voxelctl_prints_distances_and_contacts(daemon: Daemon, scene: voxeld.Scene) -> None:
    model = filled(scene)

    def ctl(*words: object) -> str:
        command = (BIN / "voxelctl", "--url", daemon.ipc, "--timeout", 30 * SLOW, "scene", *words)
        return run(*command).stdout

    expected = model.distances("free")[16, 16, 16]
    row = ",".join(map(str, metres(np.full(3, 16.5))))
    reply = json.loads(ctl("distance", "--json", "--max-range", REACH, scene.name, row))
    assert reply["n"] == 1 and np.float32(reply["rows"][0]["distance_m"]) == expected
    assert "m, away along" in ctl("distance", scene.name, row, "surface", "ignored")
    below = ",".join(map(str, metres(np.array([16.5, 16.5, 2.5]))))
    assert ctl("collide", scene.name, "spheres", "--", f"{below},0.1").startswith("contact")
    reply = json.loads(
        ctl(
            "collide", "--json", f"{scene.name}@1", "poses", "--", f"{below},0,0,0,1", "0,0,0,0.1"
        )
    )
    assert reply["rows"][0]["hit"] is False and reply["rows"][0]["first"] == -1
