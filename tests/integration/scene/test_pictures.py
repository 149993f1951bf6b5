# SPDX-License-Identifier: Apache-2.0
"""Pictures of scenes: against a slow renderer in NumPy, as files, as pages, from all clients."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import (
    BIN,
    OK,
    SLOW,
    Daemon,
    array_of,
    common_pb2,
    http_call,
    scene_pb2,
    tensor_of,
)
from pictures import (
    jpeg_size,
    linear,
    lit,
    normals_of,
    pinhole,
    psnr,
    read_png,
    walk,
)
from scenes import OCCUPIED, Scenes, ball, box, spec, vec
from test_tools import run
from voxeld.v1 import render_pb2

INVALID_ARGUMENT, NOT_FOUND = common_pb2.INVALID_ARGUMENT, common_pb2.NOT_FOUND
SIZE, DEPTH = 0.1, 6
SIDE = 1 << DEPTH
PALETTE = [0x9A9488, 0x4F7A3A, 0xB5482F, 0x3F74A8]
SKY = (0x6F9AD3, 0xE3EBF2, 0xBFC4C9)
SUN, SUN_LIGHT, AMBIENT = (-0.5, -0.35, 0.8), 0.8, 0.4
EYE, LOOK, UP = (-3.9, -3.1, 4.2), (0.3, 0.2, -1.1), (0.1, 0.0, 1.0)
WIDTH, HEIGHT = 160, 90
STEEP = np.array([91.0])
BOX = {"low": {"x": -1, "y": -1, "z": -1}, "high": {"x": 1, "y": 1, "z": 1}}


@pytest.fixture
def yard(scenes: Scenes) -> Scenes:
    palette = [scene_pb2.SceneMaterial(rgb=c) for c in PALETTE]
    scenes.call("scene_create", name="yard", spec=spec(DEPTH, SIZE, 4, palette=palette))
    scenes.edit(
        "yard",
        box((-3.2, -3.2, -3.2), (3.2, 3.2, -2.4), material=1),
        ball((0.4, 0.3, -1.2), 1.1, material=2),
        ball((-1.5, 1.6, -1.9), 0.7, material=3),
        box((1.2, -2.2, -2.4), (1.7, 2.5, 0.4)),
        box((-0.2, -0.4, 0.9), (2.4, 0.9, 1.1), material=3),
    )
    return scenes


def draw(scenes: Scenes, **fields: Any) -> Any:
    request = render_pb2.SceneRenderRequest(name="yard", **fields)
    response = scenes.rpc.call("scene_render", request)
    assert response.header.code == OK, response.header
    return response.scene_render


def view(eye: Any = EYE, look: Any = LOOK, up: Any = UP) -> render_pb2.RenderView:
    return render_pb2.RenderView(eye=vec(*eye), target=vec(*look), up=vec(*up))


def framed(mode: str, **fields: Any) -> dict[str, Any]:
    members = {
        "view": view(), "fov_y_deg": 55, "width": WIDTH, "height": HEIGHT, "mode": f"RENDER_{mode}",
    }  # fmt: skip
    return members | fields


def voxels_of(metres: Any) -> np.ndarray:
    return np.asarray(metres, float) / SIZE + SIDE / 2


def known_rays() -> tuple[np.ndarray, np.ndarray]:
    return voxels_of(EYE), pinhole(voxels_of(EYE), voxels_of(LOOK), UP, 55, WIDTH, HEIGHT)


def test_colours_and_shadows_match_a_slow_renderer(yard: Scenes) -> None:
    states, materials = yard.dense("yard", SIDE)
    colours = np.array([linear(c) for c in PALETTE])
    origin, directions = known_rays()
    known = lit(
        states == OCCUPIED, origin, directions, lambda v: colours[materials[tuple(v.T)].T], SUN,
        SUN_LIGHT, AMBIENT, SKY,
    )  # fmt: skip
    reply = draw(yard, **framed("COLOUR"))
    pixels = array_of(reply.pixels).reshape(HEIGHT, WIDTH, 3)
    assert psnr(pixels, known) >= 45
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 30
    assert (reply.width, reply.height, reply.version) == (WIDTH, HEIGHT, 2)
    assert reply.n_rays == 2 * WIDTH * HEIGHT
    plain = array_of(draw(yard, **framed("COLOUR", no_shadows=True)).pixels)
    assert psnr(plain.reshape(pixels.shape), known) < 40


def test_heights_have_the_colours_of_the_turbo_map(yard: Scenes) -> None:
    terms = np.array([
        [0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943],
        [0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604],
        [0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973],
    ])  # fmt: skip

    def albedo(voxels: np.ndarray) -> np.ndarray:
        at = np.floor((voxels[..., 2] + 0.5 - 8) * 256 / 40).clip(0, 255) / 255
        stored = np.stack([np.polynomial.polynomial.polyval(at, t) for t in terms], -1)
        return stored.clip(0, 1) ** 2

    states, _ = yard.dense("yard", SIDE)
    origin, directions = known_rays()
    known = lit(states == OCCUPIED, origin, directions, albedo, SUN, SUN_LIGHT, AMBIENT, SKY)
    reply = draw(yard, **framed("HEIGHT", z_low_m=-2.4, z_high_m=1.6))
    assert psnr(array_of(reply.pixels).reshape(known.shape), known) >= 45


def test_depths_normals_and_materials_are_those_of_single_steps(yard: Scenes) -> None:
    states, materials = yard.dense("yard", SIDE)
    origin, directions = known_rays()
    t, voxels, axis = walk(states == OCCUPIED, origin, directions)
    is_hit = np.isfinite(t)
    assert 0.3 < is_hit.mean() < 1
    known = {
        "DEPTH": t * SIZE,
        "MATERIAL": np.where(is_hit, materials.astype(int)[tuple(np.clip(voxels, 0, 63).T)].T, -1),
        "NORMAL": normals_of(directions, axis),
    }
    for mode, expected in known.items():
        pixels = array_of(draw(yard, **framed(mode)).pixels).reshape(expected.shape)
        with np.errstate(invalid="ignore"):
            near = (pixels == expected) | (np.abs(pixels - expected) <= 1e-5 * np.abs(expected))
        assert near.mean() >= 0.999, mode


def test_files_hold_what_tensors_say(yard: Scenes) -> None:
    small = {"width": 40, "height": 30}
    colours = array_of(draw(yard, **framed("AO", **small)).pixels).reshape(30, 40, 3)
    png = draw(yard, **framed("AO", encode="RENDER_PNG", **small))
    assert not png.HasField("pixels")
    assert (read_png(png.image) == colours).all()
    jpeg = draw(yard, **framed("COLOUR", encode="RENDER_JPEG", quality=80, **small)).image
    assert jpeg_size(jpeg) == (40, 30)
    depth = array_of(draw(yard, **framed("DEPTH", **small)).pixels).reshape(30, 40)
    stored = read_png(draw(yard, **framed("DEPTH", encode="RENDER_PNG", **small)).image)
    assert (np.where(np.isinf(depth), 0, np.rint(depth * 1000)) == stored).mean() > 0.999
    materials = array_of(draw(yard, **framed("MATERIAL", **small)).pixels).reshape(30, 40)
    stored = read_png(draw(yard, **framed("MATERIAL", encode="RENDER_PNG", **small)).image)
    assert (np.where(materials < 0, 65535, materials) == stored).all()


def test_without_a_view_all_that_is_occupied_is_seen(yard: Scenes) -> None:
    for camera in ("RENDER_PINHOLE", "RENDER_ORTHOGRAPHIC"):
        reply = draw(yard, camera=camera, mode="RENDER_MATERIAL", width=96, height=64)
        pixels = array_of(reply.pixels).reshape(64, 96)
        border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert (border == -1).all()
        assert set(np.unique(pixels)) == {-1, 0, 1, 2, 3}
        assert (pixels >= 0).mean() > 0.1
    # An empty scene has a sky.
    yard.call("scene_create", name="void", spec=spec(4))
    request = render_pb2.SceneRenderRequest(name="void", width=8, height=8)
    reply = yard.rpc.call("scene_render", request).scene_render
    assert (array_of(reply.pixels) > 100).all()


def test_a_kept_version_is_drawn_as_it_was(yard: Scenes) -> None:
    before = draw(yard, **framed("COLOUR"))
    yard.edit("yard", ball((0.4, 0.3, -1.2), 1.3, "SCENE_ERASE"))
    after = draw(yard, **framed("COLOUR"))
    again = draw(yard, **framed("COLOUR", at=scene_pb2.SceneAt(version=2)))
    assert (before.version, after.version, again.version) == (2, 3, 2)
    assert before.pixels.data == again.pixels.data != after.pixels.data


def test_a_lidar_measures_ranges(yard: Scenes) -> None:
    elevations = np.array([10.0, 0.0, -20.0, -60.0])
    reply = draw(
        yard, camera="RENDER_LIDAR", mode="RENDER_DEPTH", width=90,
        view=view((0, -2, 0), (1, -2, 0), (0, 0, 1)), elevations_deg=tensor_of(elevations),
    )  # fmt: skip
    azimuth = ((np.arange(90) + 0.5) / 90 - 0.5) * 2 * np.pi  # to the right: clockwise
    e = np.radians(elevations)[:, None]
    directions = np.stack(
        [np.cos(e) * np.cos(azimuth), -np.cos(e) * np.sin(azimuth), np.sin(e) + 0 * azimuth], -1
    )
    states, _ = yard.dense("yard", SIDE)
    t, _, _ = walk(states == OCCUPIED, voxels_of((0, -2, 0)), directions)
    ranges = array_of(reply.pixels).reshape(4, 90)
    assert (reply.height, np.isfinite(ranges).sum() > 60) == (4, True)
    with np.errstate(invalid="ignore"):
        assert ((ranges == t * SIZE) | (np.abs(ranges - t * SIZE) < 1e-4)).mean() > 0.99


def test_png_of_several_bands_has_the_pixels_of_the_tensor(yard: Scenes) -> None:
    size = {"width": 500, "height": 720}
    pixels = array_of(draw(yard, **framed("NORMAL", **size)).pixels).reshape(720, 500, 3)
    stored = read_png(draw(yard, **framed("NORMAL", encode="RENDER_PNG", **size)).image)
    assert (stored == pixels.astype(int) * 127 + 128).all()
    materials = array_of(draw(yard, **framed("MATERIAL", **size)).pixels).reshape(720, 500)
    stored = read_png(draw(yard, **framed("MATERIAL", encode="RENDER_PNG", **size)).image)
    assert (np.where(materials < 0, 65535, materials) == stored).all()


@pytest.mark.parametrize(
    ("field", "members"),
    [
        ("name", {"name": "No"}),
        ("view.eye", {"view": view((float("nan"), 0, 0))}),
        ("view.eye", {"view": view((1e9, 0, 0))}),
        ("view.target", {"view": view((1, 2, 3), (1, 2, 3))}),
        ("view.up", {"view": view(up=(0, float("inf"), 0))}),
        ("fov_y_deg", {"fov_y_deg": 180}),
        ("width", {"width": 8193}),
        ("width", {"width": 8192, "height": 8192}),
        ("samples", {"samples": 257}),
        ("bounces", {"bounces": 17}),
        ("samples", {"mode": "RENDER_PATH", "samples": 256, "bounces": 8}),
        ("samples", {"samples": 32, "ao_samples": 128}),
        ("mode", {"mode": 9}),
        ("clip", {"clip": {"low": {"x": 0, "y": 0, "z": 0}, "high": {"x": 1, "y": 0, "z": 1}}}),
        ("clip.high", {"clip": {"low": {"x": 0, "y": 0, "z": 0}}}),
        ("textures", {"textures": [{"material": 1, "width": 2, "height": 2, "texels": b"abc"}]}),
        ("textures", {"textures": [{"material": 1, "width": 0, "height": 2, "texels": b""}]}),
        ("regions.box", {"regions": [{"colours": b"abc"}]}),
        ("regions.colours", {"regions": [{"box": BOX, "colours": b"ab"}]}),
        ("encode", {"encode": "RENDER_JPEG", "mode": "RENDER_DEPTH"}),
        ("elevations_deg", {"camera": "RENDER_LIDAR", "elevations_deg": tensor_of(STEEP)}),
        ("variation", {"variation": 1.5}),
        ("at", {"at": scene_pb2.SceneAt(version=1, snapshot="x")}),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_field(yard: Scenes, field: str, members: Any) -> None:
    request = render_pb2.SceneRenderRequest(**({"name": "yard"} | members))
    header = yard.rpc.call("scene_render", request).header
    assert (header.code, header.field) == (common_pb2.INVALID_ARGUMENT, field), header


def render_box(low: Any, high: Any) -> render_pb2.RenderBox:
    return render_pb2.RenderBox(low=vec(*low), high=vec(*high))


def test_a_section_shows_the_voxels_in_its_box_alone(yard: Scenes, daemon: Daemon) -> None:
    low, high = (-3.2, -3.2, -3.2), (0.4, 3.2, 3.2)
    cut = array_of(draw(yard, **framed("COLOUR", clip=render_box(low, high))).pixels)
    depths = array_of(draw(yard, **framed("DEPTH", clip=render_box(low, high))).pixels)
    whole = array_of(draw(yard, **framed("COLOUR")).pixels)
    assert (cut != whole).any(axis=-1).mean() > 0.05
    # The scene without what is outside of the box, which an edit takes away.
    yard.edit("yard", box((0.4, -3.2, -3.2), (3.2, 3.2, 3.2), action="SCENE_ERASE"))
    assert psnr(array_of(draw(yard, **framed("COLOUR")).pixels), cut) > 60
    known = array_of(draw(yard, **framed("DEPTH")).pixels)
    assert (depths == known).mean() > 0.999
    places = ((5, 5, 5), (6, 6, 6)), ((-9, -9, -9), (-8, -8, -8)), ((0, 0, 0), (1e-4, 1, 1))
    for corners in places:
        nothing = framed("DEPTH", clip=render_box(*corners))
        assert np.isinf(array_of(draw(yard, **nothing).pixels)).all()
    vast = render_box((-1e6, -1e6, -1e6), (0.4, 1e6, 1e6))
    assert (array_of(draw(yard, **framed("DEPTH", clip=vast)).pixels) == known).mean() > 0.999
    query = "eye=-4,-3,4&look=0,0,-1&size=80x60&clip=-3.2,-3.2,-3.2,0,3.2,3.2"
    page = http_call(daemon, "GET", f"/v1/scenes/yard/image.png?{query}")
    assert page.status == 200 and page.body[1:4] == b"PNG"


def test_textures_and_regions_colour_materials(yard: Scenes) -> None:
    flat = framed("LABEL", camera="RENDER_ORTHOGRAPHIC", view_height_m=6.4, width=64, height=64,
                  view=view((0, 0, 3.1), (0, 0, -3), (0, 1, 0)))  # fmt: skip
    plain = array_of(draw(yard, **flat).pixels).reshape(64, 64, 3)
    materials = array_of(draw(yard, **flat | {"mode": "RENDER_MATERIAL"}).pixels).reshape(64, 64)
    named = np.array([[c >> 16, c >> 8 & 255, c & 255] for c in PALETTE])
    assert (plain == named[materials]).all(), "a label is its palette's colour"
    texels = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(2, 4, 3) * 10
    texture = render_pb2.RenderTexture(
        material=1, width=4, height=2, texel_voxels=3, texels=texels.tobytes()
    )
    region = render_pb2.RenderRegion(
        box=render_box((-3.2, -3.2, -3.2), (0, 3.2, 3.2)), colours=bytes([1, 2, 3] * 4)
    )
    seen = array_of(draw(yard, **flat, textures=[texture], regions=[region]).pixels)
    seen = seen.reshape(64, 64, 3)
    x, y = np.meshgrid(np.arange(64), 63 - np.arange(64))
    known = np.where((x < 32)[..., None], np.array([1, 2, 3]), named[materials])
    tiles = texels[1 - y // 3 % 2, x // 3 % 4]
    known = np.where((materials == 1)[..., None], tiles, known)
    assert (seen == known).all()


def test_ages_are_coloured_by_the_version_that_changed_a_voxel(yard: Scenes) -> None:
    first = array_of(draw(yard, **framed("AGE")).pixels).astype(int)
    materials = array_of(draw(yard, **framed("MATERIAL")).pixels)
    solid = first[materials.reshape(-1) >= 0] if first.ndim == 2 else first
    yard.edit("yard", ball((0.4, 0.3, -1.2), 0.3, material=0))  # inside: nothing to be seen
    yard.edit("yard", ball((-1.5, 1.6, -1.9), 0.9, material=3))
    now = array_of(draw(yard, **framed("AGE")).pixels).astype(int).reshape(HEIGHT, WIDTH, 3)
    parts = array_of(draw(yard, **framed("MATERIAL")).pixels).reshape(HEIGHT, WIDTH)
    larger = (parts == 3) & (now[..., 0] > 2 * now[..., 2] + 20)  # the newest: red
    assert larger.sum() > 30
    floor = now[parts == 1]
    assert (floor[:, 2] >= floor[:, 0]).mean() > 0.95, "older ones are not"
    assert len(solid) > 0


def test_several_scenes_in_one_picture_are_the_nearest_of_each_pixel(yard: Scenes) -> None:
    palette = [scene_pb2.SceneMaterial(rgb=c) for c in PALETTE]
    shapes = (ball((-0.6, -1.6, -0.5), 1.2, material=3), box((-2.8, 1.4, -2.4), (-1, 2.6, 0.9)))
    for name, n_bits, shape in (("one", 4, shapes[0]), ("two", 8, shapes[1])):
        yard.call("scene_create", name=name, spec=spec(DEPTH, SIZE, n_bits, palette=palette))
        yard.edit(name, shape)
    others = [render_pb2.RenderScene(name="one"), render_pb2.RenderScene(name="two")]
    seen = {m: array_of(draw(yard, **framed(m, others=others)).pixels) for m in ("DEPTH", "LABEL")}
    alone = array_of(draw(yard, **framed("LABEL")).pixels)
    old = yard.call("scene_get", name="yard").scene.version
    yard.edit("yard", *shapes)
    for mode, pixels in seen.items():
        known = array_of(draw(yard, **framed(mode)).pixels)
        assert (pixels == known).reshape(WIDTH * HEIGHT, -1).all(axis=1).mean() > 0.999, mode
    assert (seen["LABEL"] != alone).any(axis=1).mean() > 0.05
    then = scene_pb2.SceneAt(version=old)
    both = draw(yard, **framed("LABEL", at=then, others=others, encode="RENDER_PNG"))
    assert (read_png(both.image).reshape(-1, 3) == seen["LABEL"]).all(), "of any version"
    # The same place in another frame, with voxels of half the size.
    fine = scene_pb2.SceneSpec(voxel_size_m=SIZE / 2, depth=DEPTH + 1, material_bits=8)
    fine.palette.extend(palette)
    fine.origin.CopyFrom(vec(-3.2, -3.2, -3.2))
    yard.call("scene_create", name="fine", spec=fine)
    yard.edit("fine", shapes[0])
    finer = [render_pb2.RenderScene(name="fine")]
    depth = array_of(draw(yard, **framed("DEPTH", at=then, others=finer)).pixels)
    coarse = array_of(draw(yard, **framed("DEPTH", at=then, others=others[:1])).pixels)
    near = np.isfinite(depth) & np.isfinite(coarse)
    assert (np.abs(depth - coarse)[near] < 3 * SIZE).mean() > 0.97
    for field, members in (
        ("others", {"others": others * 4}),
        ("others", {"others": others, "mode": "RENDER_AGE"}),
        ("others.name", {"others": [render_pb2.RenderScene(name="No")]}),
    ):
        request = render_pb2.SceneRenderRequest(name="yard", **members)
        header = yard.rpc.call("scene_render", request).header
        assert (header.code, header.field) == (INVALID_ARGUMENT, field), header
    request = render_pb2.SceneRenderRequest(
        name="yard", others=[render_pb2.RenderScene(name="none")]
    )
    header = yard.rpc.call("scene_render", request).header
    assert (header.code, header.field) == (NOT_FOUND, "others.name"), header


def test_who_changed_a_voxel_last_is_found(yard: Scenes) -> None:
    points = tensor_of(np.array([[0.4, 0.3, -1.2], [-1.5, 1.6, -1.9], [3, 3, 3.0]]))
    versions = [2]
    for operation in (ball((0.4, 0.3, -1.2), 0.3, material=0), ball((0, 0, 2.5), 0.2)):
        yard.edit("yard", operation)
        versions.append(versions[-1] + 1)
    reply = yard.call("scene_changed", name="yard", points=points)
    assert array_of(reply.versions).tolist() == [3, 2, 0]
    assert [v.version for v in reply.made_by] == [3, 2]
    assert (reply.version, reply.oldest) == (4, 1)
    then = yard.call("scene_changed", name="yard", points=points, at=scene_pb2.SceneAt(version=2))
    assert array_of(then.versions).tolist() == [2, 2, 0]
    yard.call("scene_undo", name="yard", of_version=3)
    reply = yard.call("scene_changed", name="yard", points=points)
    assert array_of(reply.versions).tolist() == [5, 2, 0], "undoing is a change"
    yard.fails("scene_changed", NOT_FOUND, "name", name="none", points=points)
    yard.fails("scene_changed", INVALID_ARGUMENT, "points", name="yard")


def test_what_takes_too_long_is_refused_at_once(yard: Scenes) -> None:
    request = render_pb2.SceneRenderRequest(
        name="yard", mode="RENDER_PATH", width=2000, height=2000, samples=256, bounces=7
    )
    header = yard.rpc.call("scene_render", request, timeout_ms=1000).header
    assert (header.code, header.field) == (common_pb2.RESOURCE_EXHAUSTED, "width"), header
    request = render_pb2.SceneRenderRequest(name="nowhere")
    assert yard.rpc.call("scene_render", request).header.code == common_pb2.NOT_FOUND


def test_rays_are_cast_while_a_large_picture_is_drawn(yard: Scenes, daemon: Daemon) -> None:
    path = "/v1/scenes/yard/image.png?size=400x240&mode=path&samples=8&eye=-4,-3,4&look=0,0,-1"
    done = threading.Event()
    pages = []

    def call() -> None:
        headers = {"X-Voxeld-Timeout-Ms": str(int(60000 * SLOW))}
        pages.append(http_call(daemon, "GET", path, headers=headers, timeout_s=120))
        done.set()

    thread = threading.Thread(target=call)
    began = time.monotonic()
    thread.start()
    n_before = 0
    while not done.is_set():
        reply = yard.call(
            "scene_cast_rays", name="yard", origins=tensor_of(np.zeros((1, 3))),
            directions=tensor_of(np.array([[0.0, 0, -1]])),
        )  # fmt: skip
        n_before += len(array_of(reply.distances))
    thread.join()
    assert pages[0].status == 200, pages[0].body
    # A GPU has the picture before anybody can ask.
    assert n_before >= 2 or time.monotonic() - began < 1


# --- pages ---------------------------------------------------------------------------------


def test_a_picture_is_a_page_with_a_tag(yard: Scenes, daemon: Daemon) -> None:
    url = "/v1/scenes/yard/image.png?eye=-3.9,-3.1,4.2&look=0.3,0.2,-1.1&fov=55&size=40x30"
    page = http_call(daemon, "GET", url)
    assert (page.status, page.headers["Content-Type"]) == (200, "image/png")
    assert page.headers.get_all("Cache-Control") == ["private, no-cache"]
    up = view(up=(0, 0, 1))
    reply = draw(yard, **framed("COLOUR", view=up, width=40, height=30))
    assert (read_png(page.body) == array_of(reply.pixels).reshape(30, 40, 3)).all()
    tag = page.headers["ETag"]
    same = {"If-None-Match": f'"other", W/{tag}'}
    known = http_call(daemon, "GET", url, headers=same)
    assert (known.status, known.body, known.headers["ETag"]) == (304, b"", tag)
    other = http_call(daemon, "GET", url.replace("fov=55", "fov=56"), headers=same)
    assert (other.status, other.headers["ETag"] != tag) == (200, True)
    yard.edit("yard", ball((0, 0, 0), 0.5, material=1))
    changed = http_call(daemon, "GET", url, headers=same)
    assert (changed.status, changed.headers["ETag"] != tag) == (200, True)
    old = http_call(daemon, "GET", url + "&at=2")
    assert old.body == page.body
    same = {"If-None-Match": old.headers["ETag"]}
    assert http_call(daemon, "GET", url + "&at=2", headers=same).status == 304
    jpeg = http_call(daemon, "GET", "/v1/scenes/yard/image.jpg?size=64x48&mode=height")
    assert (jpeg.headers["Content-Type"], jpeg_size(jpeg.body)) == ("image/jpeg", (64, 48))


def test_a_page_is_drawn_from_where_all_is_seen(yard: Scenes, daemon: Daemon) -> None:
    path = "/v1/scenes/yard/image.png"
    pixels = read_png(http_call(daemon, "GET", f"{path}?size=48x32&mode=material").body)
    assert set(np.unique(pixels)) == {0, 1, 2, 3, 65535}
    head = http_call(daemon, "HEAD", f"{path}?size=16x16")
    assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("eye=1,2", "eye"),
        ("eye=1,2,nan", "eye"),
        ("eye=1,2,3,4", "eye"),
        ("size=640", "size"),
        ("size=0x10", "size"),
        ("size=99999x10", "width"),
        ("mode=infrared", "mode"),
        ("fov=200", "fov_y_deg"),
        ("fov=wide", "fov"),
        ("samples=-1", "samples"),
        ("no_shadows=1", "no_shadows"),
        ("at=@", "at"),
        ("at=18446744073709551616", "at"),
        ("colour=red", "colour"),
        ("format=png", "format"),
        ("fov=50&fov=60", "fov"),
    ],
)
def test_pages_say_which_parameter_is_wrong(
    yard: Scenes, daemon: Daemon, query: str, field: str
) -> None:
    page = http_call(daemon, "GET", f"/v1/scenes/yard/image.png?{query}")
    assert page.status == 400
    assert json.loads(page.body)["field"] == field


def test_pages_that_are_not_there(yard: Scenes, daemon: Daemon) -> None:
    assert http_call(daemon, "GET", "/v1/scenes/nowhere/image.png").status == 404
    none = {"If-None-Match": '"1-2-3"'}
    assert http_call(daemon, "GET", "/v1/scenes/nowhere/image.png", headers=none).status == 404
    for path in ("yard/image.gif", "yard/", "/image.png", "No/image.png"):
        assert http_call(daemon, "GET", f"/v1/scenes/{path}").status == 404, path
    assert http_call(daemon, "POST", "/v1/scenes/yard/image.png", body={}).status == 405


# --- clients -------------------------------------------------------------------------------


def ctl(daemon: Daemon, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    timeout = 30 * SLOW
    return run(
        BIN / "voxelctl", "--url", daemon.ipc, "--timeout", timeout, "scene", *words, code=code
    )


def test_voxelctl_draws_files(yard: Scenes, daemon: Daemon, directory: Path) -> None:
    place = ["--eye", "-3.9,-3.1,4.2", "--look", "0.3,0.2,-1.1", "--fov", 55]
    size = ["--size", "40x30"]
    up = view(up=(0, 0, 1))
    known = array_of(draw(yard, **framed("COLOUR", view=up, width=40, height=30)).pixels)
    png = directory / "yard.png"
    said = json.loads(ctl(daemon, "render", "yard", png, "--json", *place, *size).stdout)
    assert (read_png(png.read_bytes()) == known.reshape(30, 40, 3)).all()
    assert (said["width"], said["height"], said["version"]) == (40, 30, 2)
    assert np.allclose(said["eye"], (-3.9, -3.1, 4.2))
    depth = directory / "yard.npy"
    ctl(daemon, "render", "yard@2", depth, "--mode", "depth", *size)
    assert np.load(depth).reshape(30, 40).dtype == np.float32
    label = directory / "label.png"
    cut = ["--mode", "label", "--clip", "-9,-9,-9,9,9,0.2"]
    ctl(daemon, "render", "yard", label, *cut, *place, *size)
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        scene = client.scene("yard")
        shown = scene.render(
            (-3.9, -3.1, 4.2), (0.3, 0.2, -1.1), fov=55, size=(40, 30), mode="label",
            clip=voxeld.Box((-9, -9, -9), (9, 9, 0.2)),
        )  # fmt: skip
        whole = scene.render(
            (-3.9, -3.1, 4.2), (0.3, 0.2, -1.1), fov=55, size=(40, 30), mode="label"
        )
        assert (read_png(label.read_bytes()) == shown.pixels).all()
        assert (whole.pixels != shown.pixels).any()
        assert scene.render(size=(24, 16), mode="age").pixels.shape == (16, 24, 3)
    jpeg = directory / "yard.jpg"
    assert "yard.jpg: 40 x 30" in ctl(daemon, "render", "yard", jpeg, *size).stdout
    assert jpeg_size(jpeg.read_bytes()) == (40, 30)
    assert "must end in" in ctl(daemon, "render", "yard", "yard.gif", code=2).stderr
    ctl(daemon, "render", "yard", png, "--eye", "1,2,3", code=2)
    ctl(daemon, "render", "nowhere", png, code=1)
    for command in ("render", "show"):
        assert f"voxelctl scene {command}" in ctl(daemon, command, "--help").stdout


def test_voxelctl_shows_a_scene_as_characters(yard: Scenes, daemon: Daemon) -> None:
    lines = ctl(daemon, "show", "yard", "--size", "60x40").stdout.splitlines()
    assert [len(line) for line in lines] == [60] * 20
    assert len(set("".join(lines))) > 4
    assert "\x1b" not in "".join(lines)
    assert "scene render" in ctl(daemon, "show", "yard", "--mode", "depth", code=2).stderr


def test_python_draws_pictures_that_show_themselves(yard: Scenes, daemon: Daemon) -> None:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        scene = client.scene("yard")
        picture = scene.render(EYE, LOOK, up=UP, fov=55, size=(WIDTH, HEIGHT))
        known = array_of(draw(yard, **framed("COLOUR")).pixels)
        assert (picture.pixels == known.reshape(HEIGHT, WIDTH, 3)).all()
        assert picture.version == 2
        assert np.allclose(picture.eye, EYE)
        assert (read_png(scene.render(size=(24, 16))._repr_png_()) > 0).any()
        for mode in ("depth", "normal", "material"):
            shown = read_png(scene.render(mode=mode, size=(24, 16)).png())
            assert len(np.unique(shown)) > 2, mode
        beams = scene.render((0, -2, 0), (1, -2, 0), camera="lidar", mode="depth",
                             elevations_deg=[0.0, -30.0], size=(32, 0))  # fmt: skip
        assert beams.pixels.shape == (2, 32)
        with pytest.raises(voxeld.InvalidArgument) as failed:
            scene.render(mode="infrared")
        assert failed.value.field == "mode"
        with pytest.raises(voxeld.InvalidArgument):
            scene.render((1, 2), (3, 4, 5))
