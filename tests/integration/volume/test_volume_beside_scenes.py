# SPDX-License-Identifier: Apache-2.0
"""Volumes and scenes in one picture, against each rendered alone and composed by depth in NumPy."""

from __future__ import annotations

import io
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import voxeld
from depth_scene import CAMERA, shoot
from harness import BIN, SLOW, Daemon, http_call, running
from PIL import Image
from voxeld import Box, Client, Material, Operation, Scene, Volume

Array = npt.NDArray[Any]

SIZE = (96, 64)
FOV = 60.0
EYE = (0.1, -0.2, 0.2)
LOOK = (0.0, 0.1, 1.4)
UP = (0.0, -1.0, 0.2)
VIEW = {"eye": EYE, "look": LOOK, "up": UP, "fov": FOV, "size": SIZE}
SHIFTED = (0.4, -0.3, 0.25)


def fill(volume: Volume) -> Volume:
    for i in range(3):
        shot = shoot(i)
        labels = np.where(shot.colour[..., 0] > 100, 3, 7).astype(np.uint8).tobytes()
        volume.integrate(shot.depth, CAMERA, shot.pose, colour=shot.colour, labels=labels)
    return volume


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as made:
        yield made


@pytest.fixture(scope="module")
def volume(client: Client) -> Volume:
    made = client.volume_create("hall", 0.02, truncation_m=0.08, colour=True, labels=True)
    return fill(made)


@pytest.fixture(scope="module")
def scene(client: Client) -> Scene:
    """A box that the ball is partly in front of and a wall that it hides, in a frame of its own."""
    made = client.scene_create(
        "room", 0.05, depth=6, origin=(-1.3, -1.1, -0.2), material_bits=4,
        palette=[Material("floor", 0x4F7A3A), Material("box", 0xB5482F)],
    )  # fmt: skip
    made.edit(
        [
            Operation(Box((-0.6, -0.5, 0.7), (0.02, 0.1, 1.3)), material=1),
            Operation(Box((0.1, 0.2, 1.2), (0.7, 0.6, 2.2))),
        ]
    )
    return made


def of_volume(volume: Volume, show: str) -> Array:
    image = volume.render(EYE, LOOK, up=UP, fov_y_deg=FOV, width=SIZE[0], height=SIZE[1],
                          show=show, z_low_m=0.5, z_high_m=2.0)  # fmt: skip
    return np.asarray(Image.open(io.BytesIO(image.image)))


def of_scene(scene: Scene, mode: str, **more: Any) -> Array:
    view = {**VIEW, "z_range": (0.5, 2.0), **more}
    return scene.render(mode=mode, **view).pixels


def millimetres(depths: Array) -> Array:
    return np.where(np.isfinite(depths), np.round(np.nan_to_num(depths, posinf=0) * 1000), 65535)


def nearer(scene: Scene, volume: Volume) -> Array:
    """Where the volume's surface is in front."""
    surface = of_volume(volume, "depth").astype(float)
    return (surface > 0) & (surface < millimetres(of_scene(scene, "depth")))


def test_nearest_surface_of_each_pixel_is_shown(scene: Scene, volume: Volume) -> None:
    front = nearer(scene, volume)
    solid = np.isfinite(of_scene(scene, "depth"))
    behind = solid & (of_volume(volume, "depth") > 0)
    assert (front & solid).sum() > 100 and (behind & ~front).sum() > 100, "each hides the other"
    together = millimetres(of_scene(scene, "depth", volumes=["hall"]))
    surface = of_volume(volume, "depth")
    wanted = np.where(front, surface, millimetres(of_scene(scene, "depth")))
    assert np.abs(together - wanted).max() <= 1
    for mode in ("colour", "height", "label"):
        alone = of_scene(scene, mode, shadows=False)
        wanted = np.where(front[..., None], of_volume(volume, mode), alone)
        got = of_scene(scene, mode, shadows=False, volumes=["hall"])
        same = (got == wanted).all(-1)
        assert same.mean() > 0.999, (mode, same.mean())  # a tie within a millimetre may differ
    # The sun's shadows of the scene stay, and are its own.
    shaded = of_scene(scene, "colour", volumes=["hall"])
    known = np.where(front[..., None], of_volume(volume, "colour"), of_scene(scene, "colour"))
    assert (shaded == known).all(-1).mean() > 0.999


def test_normals_are_of_one_scale(scene: Scene, volume: Volume) -> None:
    front = nearer(scene, volume)
    picture = scene.render(mode="normal", volumes=["hall"], **VIEW)
    alone = scene.render(mode="normal", **VIEW)
    assert (picture.normal_scale, alone.normal_scale) == (127, 1)
    surface = of_volume(volume, "normal").astype(int) - 128
    wanted = np.where(front[..., None], surface, alone.pixels.astype(int) * 127)
    assert (picture.pixels == wanted).all(-1).mean() > 0.999
    length = np.linalg.norm(picture.pixels[front].astype(float), axis=-1)
    assert (np.abs(length - 127) < 3).all()
    assert (alone.visible() == picture.visible())[~front].all()


def test_volumes_have_frames_of_their_own(client: Client, scene: Scene, volume: Volume) -> None:
    moved = client.volume_create(
        "moved", 0.02, truncation_m=0.08, colour=True, labels=True, origin=SHIFTED
    )
    fill(moved)
    alone = of_scene(scene, "depth", volumes=["hall"])
    other = of_scene(scene, "depth", volumes=["moved"])
    both = of_scene(scene, "depth", volumes=["moved", "hall"])
    seen = np.isfinite(alone) & np.isfinite(other)
    assert (np.abs(alone[seen] - other[seen]) < 0.02).mean() > 0.98
    assert (both == np.minimum(alone, other)).all()
    reply = scene.render(volumes=["moved", "hall"], **VIEW)
    assert reply.n_rays == SIZE[0] * SIZE[1] * (2 + 2)
    moved.drop()
    with pytest.raises(voxeld.NotFound, match="moved") as raised:
        of_scene(scene, "depth", volumes=["hall", "moved"])
    assert raised.value.field == "volumes"


def test_cameras_that_look_all_around_see_both(scene: Scene, volume: Volume) -> None:
    eye, look = (0.1, -0.1, 0.3), (0.3, 0.2, 0.3)
    size = (90, 46)
    image = volume.render(eye, look, panorama=True, width=size[0], height=size[1], show="depth")
    surface = np.asarray(Image.open(io.BytesIO(image.image))).astype(float)
    around = {"eye": eye, "look": look, "size": size, "mode": "depth"}
    wanted = millimetres(scene.render(camera="equirectangular", **around).pixels)
    wanted = np.where((surface > 0) & (surface < wanted), surface, wanted)
    got = scene.render(camera="equirectangular", volumes=["hall"], **around).pixels
    assert np.abs(millimetres(got) - wanted).max() <= 1
    assert (wanted < 65535).sum() > 100
    rows = (0.5 - (np.arange(size[1]) + 0.5) / size[1]) * 180
    lidar = scene.render(camera="lidar", elevations_deg=rows, volumes=["hall"], **around).pixels
    assert np.allclose(lidar, got, atol=1e-4, equal_nan=True)


def test_voxels_of_low_weight_are_unknown(scene: Scene, volume: Volume) -> None:
    surfaces = of_scene(scene, "depth", volumes=["hall"], min_weight=60000.0)
    assert (surfaces == of_scene(scene, "depth")).all()


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"mode": "material"}, "volumes", "RENDER_MATERIAL: they have none"),
        ({"mode": "age"}, "volumes", "RENDER_AGE: they keep no versions"),
        ({"mode": "ao"}, "volumes", "RENDER_AO"),
        ({"mode": "path"}, "volumes", "RENDER_PATH"),
        ({"camera": "orthographic"}, "camera", "orthographic"),
        ({"clip": Box((0, 0, 0), (1, 1, 1))}, "clip", "not cut"),
        ({"volumes": ["hall"] * 8}, "volumes", "at most 7"),
        ({"volumes": ["No"]}, "volumes", "No"),
        ({"size": (4096, 2000)}, "width", "4194304"),
        ({"min_weight": -1.0}, "min_weight", "0 to 65535"),
        ({"eye": (1e6, 0, 9e6), "look": (0, 0, 0)}, "view.eye", "low corner"),
        ({"camera": "lidar", "elevations_deg": [5.0, 9.0]}, "elevations_deg", "below the row"),
    ],
)
def test_what_volumes_cannot_be_in_is_said(
    scene: Scene, volume: Volume, more: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(voxeld.InvalidArgument, match=said) as raised:
        of_scene(scene, **{"mode": "colour", "volumes": ["hall"], **more})
    assert raised.value.field == field


def test_labels_need_volumes_that_keep_them(client: Client, scene: Scene) -> None:
    plain = client.volume_create("plain", 0.05)
    with pytest.raises(voxeld.FailedPrecondition, match="keeps no labels"):
        of_scene(scene, "label", volumes=["plain"])
    alone = of_scene(scene, "colour")
    assert (of_scene(scene, "colour", volumes=["plain"]) == alone).all(), "without a block"
    plain.drop()


def test_page_and_tool_give_the_same_file(
    scene: Scene, volume: Volume, daemon: Daemon, tmp_path: Path
) -> None:
    wanted = of_scene(scene, "colour", volumes=["hall"], z_range=(0, 0))
    words = [",".join(str(v) for v in vector) for vector in (EYE, LOOK, UP)]
    query = f"eye={words[0]}&look={words[1]}&up={words[2]}&fov={FOV}&size={SIZE[0]}x{SIZE[1]}"
    query = f"/v1/scenes/room/image.png?{query}&volumes=hall"
    page = http_call(daemon, "GET", query)
    assert page.status == 200, page.body
    assert "ETag" not in page.headers, "volumes change in place"
    assert (np.asarray(Image.open(io.BytesIO(page.body))) == wanted).all()
    heavy = http_call(daemon, "GET", f"{query}&min_weight=9e4")
    assert (heavy.status, heavy.json()["field"]) == (400, "min_weight")
    none = http_call(daemon, "GET", f"{query},none")
    assert (none.status, none.json()["field"]) == (404, "volumes")
    path = tmp_path / "view.png"
    subprocess.run(
        [BIN / "voxelctl", "--url", daemon.ipc, "scene", "render", "room", path, "--eye", words[0],
         "--look", words[1], "--up", words[2], "--fov", str(FOV), "--volumes", "hall",
         "--size", f"{SIZE[0]}x{SIZE[1]}"], check=True, capture_output=True,
    )  # fmt: skip
    assert path.read_bytes() == page.body


def test_pictures_of_durable_volumes_wait_for_what_they_show(directory: Path) -> None:
    """Scans come in while pictures are drawn; each picture is of a state that the disk has."""
    with running(directory / "d") as own, voxeld.connect(own.ipc, timeout=60 * SLOW) as client:
        kept = [
            client.volume_create(name, 0.04, truncation_m=0.16, durable="always")
            for name in ("a", "b")
        ]
        scene = client.scene_create("room", 0.05, depth=6, origin=(-1.3, -1.1, -0.2))
        done = threading.Event()
        failures: list[Exception] = []

        def integrate() -> None:
            try:
                with voxeld.connect(own.ipc, timeout=60 * SLOW) as second:
                    for i in range(12):
                        shot = shoot(i % 3)
                        for volume in ("a", "b"):
                            second.volume(volume).integrate(shot.depth, CAMERA, shot.pose)
            except Exception as error:
                failures.append(error)
            done.set()

        thread = threading.Thread(target=integrate)
        thread.start()
        n = 0
        while not done.is_set() or n == 0:
            scene.render(mode="depth", volumes=["a"] if n % 2 else ["a", "b"], **VIEW)
            n += 1
        thread.join()
        assert not failures
        last = scene.render(mode="depth", volumes=["a", "b"], **VIEW).pixels
        assert np.isfinite(last).any()
        assert all(v.info().n_images == 12 for v in kept)
