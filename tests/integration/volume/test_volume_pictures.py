# SPDX-License-Identifier: Apache-2.0
"""Picture files of volumes, against NumPy's light on what rays through the same pixels see."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
import voxeld
from depth_scene import BALL, CAMERA, WALL_Z, shoot
from harness import BIN, SLOW, Daemon, http_call
from PIL import Image
from pictures import sky_of
from voxeld import Camera, Lidar, Pose, Volume, VolumePicture

Array = npt.NDArray[np.float64]

SIZE = (96, 64)
FOV = 60.0
EYE = (0.1, -0.2, 0.2)
LOOK = (0.0, 0.1, 1.4)
UP = (0.0, -1.0, 0.2)
SUN = np.array([-0.5, -0.35, 0.8]) / np.linalg.norm([-0.5, -0.35, 0.8])
SKY = (0x6F9AD3, 0xE3EBF2, 0xBFC4C9)


@pytest.fixture(scope="module")
def volume(daemon: Daemon) -> Iterator[Volume]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        made = client.volume_create("pictured", 0.02, truncation_m=0.08, colour=True, labels=True)
        for i in range(3):
            shot = shoot(i)
            labels = np.where(shot.colour[..., 0] > 100, 3, 7).astype(np.uint8).tobytes()
            made.integrate(shot.depth, CAMERA, shot.pose, colour=shot.colour, labels=labels)
        yield made
        made.drop()


def axes(eye: npt.ArrayLike, look: npt.ArrayLike, up: npt.ArrayLike) -> tuple[Array, Array, Array]:
    forward = np.subtract(look, eye)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, up)
    right /= np.linalg.norm(right)
    return right, np.cross(right, forward), forward


def seen(volume: Volume, **more: bool) -> tuple[VolumePicture, Array]:
    """What rays of the camera see, and their directions."""
    width, height = SIZE
    f = height / 2 / np.tan(np.radians(FOV) / 2)
    camera = Camera(width, height, f, f, width / 2 - 0.5, height / 2 - 0.5)
    right, up, forward = axes(EYE, LOOK, UP)
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack([right, -up, forward], 1)
    matrix[:3, 3] = EYE
    v, u = np.mgrid[:height, :width]
    rays = np.stack([(u - camera.cx) / f, (v - camera.cy) / f, np.ones(u.shape)], -1)
    pose = Pose.from_matrix(matrix)
    picture = volume.cast_rays(camera, pose, depth_max_m=100, normals=True, **more)
    return picture, rays @ matrix[:3, :3].T


def lit(albedo: Array, normals: Array, depth: Array, directions: Array) -> Array:
    """The bytes of a picture: light in the square of what is stored."""
    sun = np.maximum(normals @ SUN, 0)[..., None]
    light = albedo * (0.4 * (0.75 + 0.25 * normals[..., 2:]) + 0.8 * sun)
    light = np.where(depth[..., None] > 0, light, sky_of(directions, *SKY))
    return np.sqrt(np.minimum(light, 1)) * 255


def rendered(volume: Volume, show: str, **more: object) -> npt.NDArray[np.uint8]:
    image = volume.render(EYE, LOOK, up=UP, fov_y_deg=FOV, width=SIZE[0], height=SIZE[1],
                          show=show, **more)  # fmt: skip
    assert (image.width, image.height) == SIZE
    assert np.allclose(image.eye, EYE) and np.allclose(image.target, LOOK)
    return np.asarray(Image.open(io.BytesIO(image.image)))


def check(got: npt.NDArray[np.uint8], wanted: Array) -> None:
    assert got.shape == wanted.shape
    off = np.abs(got.astype(float) - wanted)
    assert off.max() <= 1.01, (off.max(), np.unravel_index(off.argmax(), off.shape))


def test_colours_are_in_the_light_of_sun_and_sky(volume: Volume) -> None:
    picture, directions = seen(volume, colours=True)
    assert 0.3 < picture.n_hits / picture.depth.size < 1
    colours = picture.image("colours") / 255.0
    wanted = lit(colours**2, picture.image("normals"), picture.image(), directions)
    check(rendered(volume, "colour"), wanted)
    jpeg = rendered(volume, "colour", encode="jpeg", quality=95)
    inner = np.abs(jpeg.astype(float) - wanted).mean()
    assert inner < 6


def test_normals_depths_and_labels_are_what_rays_see(volume: Volume) -> None:
    picture, _ = seen(volume, labels=True)
    depth, normals = picture.image(), picture.image("normals")
    check(rendered(volume, "normal"), np.where(depth[..., None] > 0, normals * 127 + 127.5, 0))
    millimetres = rendered(volume, "depth")
    assert np.abs(millimetres.astype(float) - depth * 1000).max() <= 0.51
    labels = rendered(volume, "label")
    known = picture.image("labels")
    colours = {
        value: np.unique(labels[(known == value) & (depth > 0)], axis=0) for value in (3, 7)
    }
    assert all(len(found) == 1 for found in colours.values())
    assert (colours[3] != colours[7]).any()


def test_heights_run_from_blue_to_red(volume: Volume) -> None:
    low, high = BALL[2] - 0.2, WALL_Z
    heights = rendered(volume, "height", z_low_m=low - 0.3, z_high_m=high, sun=-1.0, ambient=1.0)
    picture, _ = seen(volume, vertices=True)
    z = picture.image("vertices")[..., 2]
    is_high = (z > high - 0.02) & (picture.image() > 0)
    is_low = (z < low + 0.1) & (picture.image() > 0)
    assert is_high.any() and is_low.any()
    assert (heights[is_high][:, 0] > heights[is_high][:, 2]).all()
    assert (heights[is_low][:, 2] > heights[is_low][:, 0]).all()


def test_panorama_is_what_a_lidar_sees(volume: Volume) -> None:
    width, height = 90, 45
    image = volume.render(EYE, LOOK, panorama=True, width=width, height=height, show="depth")
    right = np.cross(np.subtract(LOOK, EYE), (0, 0, 1))
    right /= np.linalg.norm(right)
    forward = np.cross((0, 0, 1), right)
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack([forward, -right, (0, 0, 1)], 1)
    matrix[:3, 3] = EYE
    lidar = Lidar(
        elevations_deg=tuple((0.5 - (np.arange(height) + 0.5) / height) * 180),
        columns=width, azimuth_begin_deg=180, azimuth_span_deg=-360,
    )  # fmt: skip
    ranges = volume.cast_rays(None, Pose.from_matrix(matrix), depth_max_m=100, lidar=lidar).image()
    got = np.asarray(Image.open(io.BytesIO(image.image)))
    assert np.abs(got - ranges * 1000.0).max() <= 0.51
    assert image.n_hits == (ranges > 0).sum() > 0


def test_view_without_a_camera_has_all_blocks_in_it(volume: Volume) -> None:
    image = volume.render(width=200, height=120)
    surface = volume.extract()
    right, up, forward = axes(image.eye, image.target, (0, 0, 1))
    p = surface.vertices - np.array(image.eye)
    z = p @ forward
    half = np.tan(np.radians(25))
    assert (z > 0).all()
    assert (np.abs(p @ up) <= half * z).all()
    assert (np.abs(p @ right) <= half * z * 200 / 120).all()
    # Of what is seen from one side alone, that side: the wall's front is below.
    assert image.eye[2] < WALL_Z
    assert image.n_hits > 200 * 120 / 20
    same = volume.render(image.eye, image.eye, width=200, height=120)
    assert same.image == image.image
    assert image._repr_png_() == image.image and image._repr_jpeg_() is None


def test_page_and_tool_give_the_same_file(
    volume: Volume, daemon: Daemon, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wanted = volume.render(EYE, LOOK, fov_y_deg=FOV, width=SIZE[0], height=SIZE[1]).image
    numbers = [",".join(str(v) for v in vector) for vector in (EYE, LOOK)]
    query = f"eye={numbers[0]}&look={numbers[1]}&fov={FOV}&size={SIZE[0]}x{SIZE[1]}"
    reply = http_call(daemon, "GET", f"/v1/volumes/pictured/image.png?{query}")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "image/png"
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.body == wanted
    path = tmp_path_factory.mktemp("p") / "view.png"
    words = ["volume", "view", "pictured", path, "--eye", numbers[0], "--look", numbers[1],
             "--fov", str(FOV), "--width", str(SIZE[0]), "--height", str(SIZE[1])]  # fmt: skip
    said = subprocess.run(
        [BIN / "voxelctl", "--url", daemon.ipc, "--json", *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert path.read_bytes() == wanted
    assert json.loads(said.stdout)["width"] == SIZE[0]


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("mode=albedo", 400, "mode"),
        ("camera=orthographic", 400, "camera"),
        ("at=3", 400, "at"),
        ("eye=1,2", 400, "eye"),
        ("eye=1,2,1e12&look=0,0,0", 400, "eye"),
        ("eye=1,2,1e7&look=0,0,0", 400, "eye"),
        ("fov=180", 400, "fov_y_deg"),
        ("size=8192x8192", 400, "width"),
        ("camera=panorama&size=100x2000", 400, "height"),
        ("sun=2000", 400, "sun"),
        ("depth_max_m=-1", 400, "depth_max_m"),
    ],
)
def test_wrong_parameters_are_named(
    volume: Volume, daemon: Daemon, query: str, status: int, field: str
) -> None:
    reply = http_call(daemon, "GET", f"/v1/volumes/pictured/image.png?{query}")
    assert reply.status == status, reply.body
    assert reply.json()["field"] == field


def test_what_a_volume_has_not_is_refused(volume: Volume, daemon: Daemon) -> None:
    client = volume._client
    plain = client.volume_create("plain", 0.05)
    try:
        empty = plain.render(width=32, height=16)
        assert empty.n_hits == 0
        with pytest.raises(voxeld.FailedPrecondition, match="keeps no labels"):
            plain.render(show="label")
        with pytest.raises(voxeld.InvalidArgument, match="loses depths"):
            plain.render(show="depth", encode="jpeg")
        with pytest.raises(voxeld.InvalidArgument, match="colour"):
            plain.render(show="albedo")
    finally:
        plain.drop()
    assert http_call(daemon, "GET", "/v1/volumes/none/image.png").status == 404
    with pytest.raises(voxeld.NotFound):
        plain.render()
