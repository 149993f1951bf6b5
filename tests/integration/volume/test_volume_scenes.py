# SPDX-License-Identifier: Apache-2.0
"""Volumes and scenes: surfaces stamped into scenes, boxes of scenes in volumes, and distances to
surfaces, against the import of meshes, loops over all cubes, and surfaces known exactly."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from depth_scene import CAMERA, distance, shoot
from harness import SLOW, Daemon, running
from scipy.ndimage import binary_dilation
from scipy.spatial import cKDTree
from skimage.measure import marching_cubes
from voxeld import Volume, VolumeBox

SIZE = 0.02
TRUNCATION = 0.08
ALL = voxeld.Box((-5.0, -5.0, -5.0), (5.0, 5.0, 5.0))


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as connected:
        for info in connected.volumes():
            connected.volume_drop(info.name)
        for scene in connected.scenes():
            connected.scene_drop(scene.name)
        yield connected


def fill(client: voxeld.Client, n: int = 3, **more: object) -> Volume:
    volume = client.volume_create("v", SIZE, truncation_m=TRUNCATION, **more)
    for i in range(n):
        shot = shoot(i)
        labels = (shot.colour[..., 0] > 100).astype(np.uint8) * 37 + 3  # the ball 40, the wall 3
        kept = {"labels": labels.tobytes()} if more.get("labels") else {}
        volume.integrate(shot.depth, CAMERA, shot.pose, **kept)
    return volume


def make_scene(
    client: voxeld.Client, name: str, size: float = 0.05, **more: object
) -> voxeld.Scene:
    return client.scene_create(name, size, depth=8, origin=(-6.4, -6.4, -6.4), **more)


def cells(scene: voxeld.Scene) -> tuple[np.ndarray, np.ndarray]:
    out = scene.export(ALL)
    order = np.lexsort(out.cells.T)
    materials = np.zeros(len(order)) if out.materials is None else out.materials
    return out.cells[order], materials[order]


# Stamps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("thin", [False, True])
def test_stamp_is_the_import_of_the_extracted_mesh(client: voxeld.Client, thin: bool) -> None:
    volume = fill(client)
    stamped = make_scene(client, "stamped", material_bits=4)
    imported = make_scene(client, "imported", material_bits=4)
    done = volume.stamp("stamped", material=5, thin=thin)
    mesh = volume.extract()
    other = imported.import_mesh(
        mesh.vertices.astype(float),
        mesh.triangles,
        material=5,
        rule="thin" if thin else "conservative",
    )
    assert done.n_triangles == mesh.n_triangles
    assert (done.n_added, done.n_voxels) == (other.n_added, other.n_voxels)
    coords, materials = cells(stamped)
    expected, _ = cells(imported)
    np.testing.assert_array_equal(coords, expected)
    assert (materials == 5).all() and done.version == stamped.info().version
    off = distance((coords + 0.5) * 0.05 - 6.4)
    assert off.max() < 0.05 * np.sqrt(3) / 2 + 0.5 * SIZE + 0.02
    assert stamped.log().versions[0].n_added == done.n_added


def test_stamp_of_labels_sets_materials(client: voxeld.Client) -> None:
    volume = fill(client, labels=True)
    scene = make_scene(client, "s", material_bits=8)
    volume.stamp("s", material=1, labels_as_materials=True)
    coords, materials = cells(scene)
    centres = (coords + 0.5) * 0.05 - 6.4
    is_wall = centres[:, 2] > 1.6
    assert is_wall.sum() > 200 and (~is_wall).sum() > 50
    assert (materials[is_wall] == 3).mean() > 0.97
    assert (materials[~is_wall] == 40).mean() > 0.97
    few = make_scene(client, "few", material_bits=4)
    volume.stamp("few", material=2, labels_as_materials=True)
    coords, materials = cells(few)
    assert set(np.unique(materials)) == {2, 3}  # 40 is no material of this scene


def test_stamp_of_a_box_over_http_fuses_and_is_undone(
    client: voxeld.Client, daemon: Daemon
) -> None:
    volume = fill(client)
    scene = make_scene(client, "s", track_free=True)
    box = VolumeBox((-0.5, -0.5, 0.6), (0.5, 0.5, 1.3))
    done = volume.stamp("s", box=box, if_version=1)
    assert done.version == 2 and done.n_added > 50
    coords, _ = cells(scene)
    assert ((coords + 0.5) * 0.05 - 6.4)[:, 2].max() < 1.5
    with pytest.raises(voxeld.Aborted):
        volume.stamp("s", if_version=1)
    with pytest.raises(voxeld.OutOfRange):
        client.scene_create("far", 0.05, depth=4, origin=(100.0, 0.0, 0.0))
        volume.stamp("far")
    scene.undo()
    assert len(cells(scene)[0]) == 0
    for wrong, field in (
        ({"scene": "none"}, "scene"),
        ({"scene": "s", "material": 9}, "material"),
        ({"scene": "s", "min_weight": -1.0}, "min_weight"),
        ({"scene": "s", "labels_as_materials": True}, "labels_as_materials"),
    ):
        with pytest.raises(voxeld.Error) as raised:
            volume.stamp(**wrong)
        assert raised.value.field == field


# Scenes into volumes -----------------------------------------------------------------------


def cubes(rng: np.random.Generator, client: voxeld.Client, **more: object) -> np.ndarray:
    """A scene "s" of random boxes of voxels of 0.05 m; its occupied voxels."""
    scene = make_scene(client, "s", material_bits=4, **more)
    operations = []
    for i in range(12):
        low = rng.integers(100, 140, 3)
        operations.append(
            voxeld.Operation(
                voxeld.Box(tuple(map(float, low)), tuple(map(float, low + rng.integers(1, 8, 3)))),
                material=i % 7 + 1,
            )
        )
    scene.edit(operations, in_voxels=True)
    return cells(scene)[0]


def signed_distance(points: np.ndarray, occupied: np.ndarray, size: float) -> np.ndarray:
    """To the surface of cubes, by a loop over all of them and, inside, over what is around them."""
    low, high = occupied.min(0) - 2, occupied.max(0) + 3
    grid = np.zeros(high - low, bool)
    grid[tuple((occupied - low).T)] = True
    p = points / size
    out = np.empty(len(p))
    inside_cell = np.floor(p).astype(int)
    in_grid = ((inside_cell >= low) & (inside_cell < high)).all(1)
    is_inside = np.zeros(len(p), bool)
    is_inside[in_grid] = grid[tuple((inside_cell[in_grid] - low).T)]
    for kind, sign in ((True, 1.0), (False, -1.0)):
        # Inside, only cells beside occupied ones can be nearest.
        cells_of = (
            np.argwhere(grid if kind else binary_dilation(grid, np.ones((3, 3, 3))) & ~grid) + low
        )
        which = np.flatnonzero(is_inside != kind)
        for part in np.array_split(which, max(1, len(which) // 500)):
            gap = np.maximum(
                np.maximum(
                    cells_of[None] - p[part][:, None], p[part][:, None] - cells_of[None] - 1
                ),
                0,
            )
            out[part] = sign * np.sqrt((gap**2).sum(-1).min(1))
    return out * size


def test_scene_in_volume_is_the_surface_of_its_cubes(client: voxeld.Client) -> None:
    occupied = cubes(np.random.default_rng(3), client)
    volume = client.volume_create("v", 0.03, truncation_m=0.12, origin=(0.011, -0.007, 0.013))
    done = volume.import_scene("s", VolumeBox((-1.6, -1.6, -1.6), (1.2, 1.2, 1.2)))
    assert done.n_new == done.n_touched == done.n_blocks > 50
    surface = volume.extract()
    # The same distances on a grid, and scikit-image's marching cubes of them.
    keys = surface.blocks[:, :3]
    low, high = keys.min(0) * 8, (keys.max(0) + 1) * 8
    index = np.stack(np.meshgrid(*map(np.arange, low, high), indexing="ij"), -1)
    at = (index + 0.5) * 0.03 + [0.011, -0.007, 0.013] + 6.4
    at = at.reshape(-1, 3)
    roughly, _ = cKDTree((occupied + 0.5) * 0.05).query(at)
    tsdf = np.full(len(at), 0.12)
    near = roughly < 0.12 + 0.05  # the others are farther than the truncation from all cubes
    tsdf[near] = np.clip(signed_distance(at[near], occupied, 0.05), -0.12, 0.12)
    tsdf = tsdf.reshape(index.shape[:3])
    expected, _, _, _ = marching_cubes(tsdf, 0.0, method="lorensen")
    ours = surface.vertices / 0.03 - 0.5 - low
    assert len(np.unique(surface.vertices, axis=0)) == surface.n_vertices
    there, _ = cKDTree(expected).query(ours)
    back, _ = cKDTree(ours).query(expected)
    assert there.max() < 0.1 and back.max() < 0.1  # Hausdorff, voxels
    # Nothing is open: every block near the surface is there.
    edges = np.concatenate([surface.triangles[:, [i, (i + 1) % 3]] for i in range(3)]).astype(
        np.int64
    )
    forth, back = edges[:, 0] << 32 | edges[:, 1], edges[:, 1] << 32 | edges[:, 0]
    assert len(np.unique(forth)) == len(forth) and np.isin(forth, back).all()


def test_scene_in_volume_averages_and_votes(client: voxeld.Client) -> None:
    cubes(np.random.default_rng(4), client)
    volume = client.volume_create("v", 0.05, truncation_m=0.2, labels=True, origin=(0.0, 0.0, 0.0))
    box = VolumeBox((-1.6, -1.6, -1.6), (1.2, 1.2, 1.2))
    once = volume.import_scene("s", box, materials_as_labels=True, weight=3.0)
    first = volume.extract()
    scene = client.scene("s")
    # Half a voxel behind a vertex is an occupied voxel: the label is its material, for most.
    inside = first.vertices - 0.4 * 0.05 * first.normals
    values = scene.values(inside.astype(float))
    is_full = values.occupied
    assert is_full.mean() > 0.8
    agree = np.asarray(values.materials)[is_full] == first.labels[is_full]
    assert agree.mean() > 0.85
    again = volume.import_scene("s", box, materials_as_labels=True, weight=3.0)
    assert again.n_new == 0 and again.n_touched == once.n_touched
    assert again.stamp == once.stamp + 1
    np.testing.assert_allclose(volume.extract().vertices, first.vertices, atol=1e-6)
    scene.edit([voxeld.Operation(ALL, "erase")])
    old = volume.import_scene("s", box, version=2)
    assert old.version == 2 and old.n_touched == once.n_touched
    assert volume.import_scene("s", box).n_touched == 0


def test_unknown_voxels_of_a_scene_observe_nothing(client: voxeld.Client) -> None:
    scene = make_scene(client, "s", track_free=True)
    below = voxeld.Box((-1.0, -1.0, -1.0), (1.0, 1.0, -0.5))
    all_of_it = voxeld.Box((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    scene.edit([voxeld.Operation(all_of_it, "set_free"), below])
    volume = client.volume_create("v", 0.05, truncation_m=0.2)
    volume.import_scene("s", VolumeBox((-2.0, -2.0, -2.0), (2.0, 2.0, 2.0)))
    surface = volume.extract(points=True)
    # Its upper face is between free and occupied; below and beside it nothing is known.
    assert surface.n_vertices > 500
    np.testing.assert_allclose(surface.vertices[:, 2], -0.5, atol=1e-5)


def test_scene_into_a_volume_is_checked(client: voxeld.Client) -> None:
    make_scene(client, "s")
    volume = client.volume_create("v", 0.05, truncation_m=0.2)
    client.volume_create("wide", 1.0)
    box = VolumeBox((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    for call, field in (
        (lambda: volume.import_scene("none", box), "scene"),
        (lambda: volume.import_scene("s", box, version=9), None),
        (lambda: volume.import_scene("s", box, version=1, snapshot="a"), "snapshot"),
        (lambda: volume.import_scene("s", VolumeBox((50.0, 0, 0), (60.0, 1, 1))), "box"),
        (lambda: volume.import_scene("s", VolumeBox((1.0, 0, 0), (0.0, 1, 1))), None),
        (lambda: volume.import_scene("s", box, weight=1e9), "weight"),
        (lambda: volume.import_scene("s", box, materials_as_labels=True), "materials_as_labels"),
        (lambda: client.volume("wide").import_scene("s", box), "scene"),
    ):
        with pytest.raises(voxeld.Error) as raised:
            call()
        assert field is None or raised.value.field == field
    assert volume.info().n_blocks == 0


# Distances ---------------------------------------------------------------------------------


def test_distances_to_a_volume_are_finer_than_voxels(client: voxeld.Client) -> None:
    volume = fill(client, 5)
    rng = np.random.default_rng(8)
    # Before the wall and the face of the ball, where all images have seen.
    points = rng.uniform((-0.1, -0.15, 0.55), (0.2, 0.1, 1.65), (2000, 3))
    points = points[np.linalg.norm(points - [0.05, -0.02, 1.1], axis=1) > 0.33]
    points = points[points[:, 2] < 1.0]
    found = volume.distance(points, max_distance_m=0.4)
    truth = distance(points)
    near = truth < 0.35
    off = np.abs(found.distances - truth)[near]
    assert near.sum() > 200 and found.max_distance_m == pytest.approx(0.4)
    assert np.median(off) < 0.15 * SIZE and np.percentile(off, 95) < 0.6 * SIZE
    outwards = (points - [0.05, -0.02, 1.1]) / np.linalg.norm(points - [0.05, -0.02, 1.1], axis=1)[
        :, None
    ]
    assert np.percentile((found.gradients * outwards).sum(1)[near], 5) > 0.95
    # The same field answers again, and follows what changes.
    np.testing.assert_array_equal(
        volume.distance(points, max_distance_m=0.4).distances, found.distances
    )
    volume.clear(all=True)
    assert (volume.distance(points, max_distance_m=0.4).distances == np.float32(0.4)).all()


def test_distances_to_a_volume_say_what_is_unknown(client: voxeld.Client) -> None:
    volume = fill(client, 1)
    points = [[0.05, -0.02, 0.3], [np.nan, 0, 0], [1e9, 0, 0], [0.05, -0.02, 0.76]]
    ignored = volume.distance(points, unknown="ignored", max_distance_m=0.5)
    assert np.isnan(ignored.distances[:3]).all() and ignored.n_outside == 2
    assert abs(ignored.distances[3] - 0.02) < 0.01
    free = volume.distance(points[:1], max_distance_m=0.2)
    assert free.distances[0] == np.float32(0.2) and (free.gradients == 0).all()
    occupied = volume.distance(points[:1], unknown="occupied", max_distance_m=0.2)
    assert occupied.distances[0] < 0
    heavy = volume.distance(points[3:], min_weight=2.0, max_distance_m=0.2)
    assert heavy.distances[0] == np.float32(0.2)
    for wrong, field in (
        ({"max_distance_m": -1.0}, "max_distance_m"),
        ({"max_distance_m": 50.0}, "max_distance_m"),
    ):
        with pytest.raises(voxeld.InvalidArgument) as raised:
            volume.distance([[0.0, 0, 0]], **wrong)
        assert raised.value.field == field
    with pytest.raises(voxeld.ResourceExhausted):
        volume.distance([[0.0, 0, 0], [900.0, 900, 900]], max_distance_m=0.2)


# The disk ----------------------------------------------------------------------------------


def test_stamps_and_imports_are_there_after_a_kill(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    try:
        with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client:
            cubes(np.random.default_rng(5), client, durable="always")
            volume = client.volume_create(
                "v", 0.05, truncation_m=0.2, labels=True, durable="always"
            )
            box = VolumeBox((-1.6, -1.6, -1.6), (1.2, 1.2, 1.2))
            volume.import_scene("s", box, materials_as_labels=True)
            made = make_scene(client, "t", 0.04, material_bits=4, durable="always")
            volume.stamp("t", labels_as_materials=True)
            before = volume.extract(), cells(made), volume.info().stamp
    finally:
        daemon.signal(signal.SIGKILL)
        daemon.wait()
    with running(tmp_path) as daemon, voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client:
        volume = client.volume("v")
        after = volume.extract(), cells(client.scene("t")), volume.info().stamp
        for a, b in zip(before[0:1], after[0:1], strict=True):
            np.testing.assert_array_equal(a.vertices, b.vertices)
            np.testing.assert_array_equal(a.labels, b.labels)
            np.testing.assert_array_equal(a.triangles, b.triangles)
        np.testing.assert_array_equal(before[1][0], after[1][0])
        np.testing.assert_array_equal(before[1][1], after[1][1])
        assert before[2] == after[2] and len(before[1][0]) > 100
