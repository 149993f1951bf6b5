# SPDX-License-Identifier: Apache-2.0
"""Meshes into scenes: over nng and HTTP, from files, and after a restart. Which voxels a triangle
sets is compared voxel by voxel in tests/unit/gpu/svdag/mesh; here with samples of the triangles."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, Daemon, http_call, running
from scenes import Scenes

SIDE = 64
SIZE = 0.1
LOW = -SIDE / 2 * SIZE


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        for info in connected.scenes():
            connected.scene_drop(info.name)
        yield connected


def make(client: voxeld.Client, name: str = "hall", **more: object) -> voxeld.Scene:
    return client.scene_create(name, SIZE, depth=6, material_bits=8, **more)


def ball(n: int = 24, radius: float = 2.1) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(np.linspace(0, np.pi, n), np.arange(2 * n) * np.pi / n, indexing="ij")
    places = radius * np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], -1)
    i, j = np.meshgrid(np.arange(n - 1), np.arange(2 * n), indexing="ij")
    k = (j + 1) % (2 * n)
    corners = [i * 2 * n + j, (i + 1) * 2 * n + j, i * 2 * n + k, (i + 1) * 2 * n + k]
    faces = [np.stack([corners[m] for m in pick], -1) for pick in ((0, 1, 2), (2, 1, 3))]
    return places.reshape(-1, 3) + 0.013, np.concatenate([f.reshape(-1, 3) for f in faces])


def occupied(daemon: Daemon, name: str = "hall") -> tuple[np.ndarray, np.ndarray]:
    with Scenes(daemon) as scenes:
        states, materials = scenes.dense(name, SIDE)
    assert materials is not None
    return states == 2, materials


def samples(vertices: np.ndarray, triangles: np.ndarray, n: int = 40) -> np.ndarray:
    """Points of each triangle, corners among them."""
    rng = np.random.default_rng(3)
    weights = np.concatenate([np.eye(3), rng.dirichlet((1, 1, 1), n)])
    return np.einsum("nk,mkd->mnd", weights, vertices[triangles]).reshape(-1, 3)


def inside_is_closed(solid: np.ndarray) -> bool:
    """Whether faces of empty voxels lead from a corner of the scene to its middle."""
    outside = np.zeros_like(solid)
    outside[0, 0, 0] = True
    while True:
        grown = outside.copy()
        for axis in range(3):
            for step in (1, -1):
                moved = np.roll(outside, step, axis)
                edge = [slice(None)] * 3
                edge[axis] = slice(0, 1) if step == 1 else slice(-1, None)
                moved[tuple(edge)] = False
                grown |= moved
        grown &= ~solid
        if (grown == outside).all():
            return not outside[SIDE // 2, SIDE // 2, SIDE // 2]
        outside = grown


def test_voxels_of_a_ball_hold_its_surface(client: voxeld.Client, daemon: Daemon) -> None:
    vertices, triangles = ball()
    points = samples(vertices, triangles)
    scene = make(client)
    done = scene.import_mesh(vertices, triangles, 5, rule="thin")
    thin, materials = occupied(daemon)
    assert done.n_added == thin.sum() > 1000 and done.version == 2
    assert (materials[thin] == 5).all() and inside_is_closed(thin)
    done = scene.import_mesh(vertices, triangles, 7)
    solid, materials = occupied(daemon)
    assert done.n_changed == thin.sum() and done.n_added == solid.sum() - thin.sum()
    assert (materials[solid] == 7).all() and inside_is_closed(solid)
    cells = np.floor((points - LOW) / SIZE).astype(int)
    assert solid[tuple(cells.T)].all(), "every point of the surface is in a voxel that is set"
    distance = np.abs(np.linalg.norm((np.argwhere(solid) + 0.5) * SIZE + LOW - 0.013, axis=1) - 2.1)
    assert distance.max() < SIZE * np.sqrt(3) / 2 + 0.02
    assert (solid & thin == thin).all()


def test_last_triangle_gives_the_material(client: voxeld.Client, daemon: Daemon) -> None:
    scene = make(client)
    square = np.array([[-1, -1, 0.05], [1, -1, 0.05], [1, 1, 0.05], [-1, 1, 0.05]])
    triangles = np.array([[0, 1, 2], [0, 2, 3], [0, 1, 2]])
    scene.import_mesh(square, triangles, materials=[1, 2, 9], rule="thin")
    solid, materials = occupied(daemon)
    assert set(materials[solid]) == {2, 9} and solid.any((0, 1)).sum() == 1
    assert (materials[solid] == 9).sum() >= 200
    scene.undo()
    assert not occupied(daemon)[0].any()
    with pytest.raises(voxeld.Aborted):
        scene.import_mesh(square, triangles, if_version=1)


def test_wrong_meshes_are_refused(client: voxeld.Client, daemon: Daemon) -> None:
    scene = make(client)
    square = np.zeros((4, 3))
    for triangles, error, field in (
        (np.array([[0, 1, 4]]), voxeld.InvalidArgument, "triangles"),
        (np.array([[0, 1, -1]]), voxeld.InvalidArgument, "triangles"),
        (np.zeros((0, 3), int), voxeld.InvalidArgument, "triangles"),
    ):
        with pytest.raises(error) as caught:
            scene.import_mesh(square, triangles)
        assert caught.value.field == field
    with pytest.raises(voxeld.InvalidArgument) as caught:
        scene.import_mesh(square, np.array([[0, 1, 2]]), 256)
    assert caught.value.field == "material"
    with pytest.raises(voxeld.OutOfRange):
        scene.import_mesh(square + 99, np.array([[0, 1, 2]]))
    with pytest.raises(voxeld.InvalidArgument):
        scene.import_mesh(square, np.array([[0, 1, 2]]), rule="thick")
    body = {"name": "hall", "vertices": {"shape": [1, 3], "values": [0, 0, 0]}}
    reply = http_call(
        daemon,
        "POST",
        "/v1/scene_import_mesh",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    assert reply.status == 400 and reply.json()["field"] == "triangles"
    assert not occupied(daemon)[0].any() and scene.info().version == 1


def test_meshes_of_durable_scenes_come_back(tmp_path: Path) -> None:
    vertices, triangles = ball(12)
    with (
        running(tmp_path / "d") as daemon,
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
    ):
        make(client, durable="always").import_mesh(vertices, triangles, 3)
        before = occupied(daemon)
    with running(tmp_path / "d") as daemon:
        after = occupied(daemon)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    assert before[0].any()


def voxelctl(daemon: Daemon, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "voxelctl", "scene", "import", *map(str, words), "--url", daemon.ipc],
        capture_output=True,
        text=True,
        timeout=30 * SLOW,
        check=False,
    )


def write_files(folder: Path, vertices: np.ndarray, triangles: np.ndarray) -> list[Path]:
    """The same mesh as OBJ, and as PLY in each encoding, with what a reader has to skip."""
    paths = []
    head = (
        "ply\nformat {} 1.0\ncomment made here\nelement vertex {}\nproperty uchar red\n"
        "property double x\nproperty double y\nproperty double z\nelement face {}\n"
        "property list uchar int vertex_indices\nproperty float quality\nend_header\n"
    )
    for kind, order in (("ascii", ""), ("binary_little_endian", "<"), ("binary_big_endian", ">")):
        path = folder / f"{kind}.ply"
        data = head.format(kind, len(vertices), len(triangles)).encode()
        for v in vertices:
            row = f"7 {v[0]!r} {v[1]!r} {v[2]!r}\n".replace("np.float64(", "").replace(")", "")
            data += struct.pack(f"{order}B3d", 7, *v) if order else row.encode()
        for t in triangles:
            row = f"3 {t[0]} {t[1]} {t[2]} 0.5\n"
            data += struct.pack(f"{order}B3if", 3, *t, 0.5) if order else row.encode()
        path.write_bytes(data)
        paths.append(path)
    obj = folder / "mesh.obj"
    lines = ["# made here", "o ball"]
    lines += ["v " + " ".join(repr(float(x)) for x in v) for v in vertices]
    lines += [f"f {t[0] + 1}/1 {t[1] + 1}//2 {t[2] - len(vertices)}" for t in triangles]
    obj.write_text("\r\n".join(lines) + "\n")
    return [*paths, obj]


def test_files_of_all_kinds_give_the_same_voxels(
    client: voxeld.Client, daemon: Daemon, tmp_path: Path
) -> None:
    vertices, triangles = ball(10)
    make(client).import_mesh(2 * vertices + [0.1, 0, 0.2], triangles, 4, rule="thin")
    truth = occupied(daemon)[0]
    for i, path in enumerate(write_files(tmp_path, vertices, triangles)):
        make(client, f"s{i}")
        done = voxelctl(
            daemon, path, "--scene", f"s{i}", "--rule", "thin", "--scale", 2,
            "--offset", "0.1,0,0.2", "--material", 4, "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["n_triangles"] == len(triangles)
        assert (occupied(daemon, f"s{i}")[0] == truth).all()


PALETTE = [("grey", 0x808080), ("red", 0xD02020), ("green", 0x20B030), ("blue", 0x2030C0)]


def coloured(vertices: np.ndarray) -> np.ndarray:
    """Red below, green in the middle, blue above: n x 3."""
    colours = np.array([[200, 30, 30], [40, 180, 50], [30, 50, 190]], np.uint8)
    return colours[np.digitize(vertices[:, 2], [-0.7, 0.7])]


def nearest(rgb: np.ndarray) -> np.ndarray:
    """The palette's nearest colours in CIELAB, by the textbook."""

    def lab(c: np.ndarray) -> np.ndarray:
        c = c / 255
        c = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        m = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175],
             [0.0193339, 0.119192, 0.9503041]]  # fmt: skip
        t = c @ np.array(m).T / [0.95047, 1, 1.08883]
        f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
        x, y, z = f.T
        return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)

    entries = lab(np.array([[v >> 16, v >> 8 & 255, v & 255] for _, v in PALETTE], float))
    return np.linalg.norm(lab(rgb.astype(float))[:, None] - entries, axis=2).argmin(1)


def test_colours_of_vertices_become_materials_of_the_palette(
    client: voxeld.Client, daemon: Daemon, tmp_path: Path
) -> None:
    vertices, triangles = ball(20)
    colours = coloured(vertices)
    palette = [voxeld.Material(name, rgb) for name, rgb in PALETTE]
    scene = make(client, palette=palette)
    scene.import_mesh(vertices, triangles, colours=colours)
    solid, materials = occupied(daemon)
    known = nearest(colours[triangles].astype(np.float32).mean(axis=1))
    make(client, "known", palette=palette).import_mesh(vertices, triangles, materials=known)
    assert (occupied(daemon, "known")[1] == materials).all()
    assert set(np.unique(materials[solid])) >= {1, 2, 3}

    # The same as files, by voxelctl and as the body of a request.
    ply = tmp_path / "ball.ply"
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(vertices)}\n"
    head += "property double x\nproperty double y\nproperty double z\nproperty uchar red\n"
    head += "property uchar green\nproperty uchar blue\nproperty uchar alpha\n"
    head += f"element face {len(triangles)}\nproperty list uchar int vertex_indices\nend_header\n"
    rows = [struct.pack("<3d4B", *v, *c, 255) for v, c in zip(vertices, colours, strict=True)]
    rows += [struct.pack("<B3i", 3, *t) for t in triangles]
    ply.write_bytes(head.encode() + b"".join(rows))
    obj = tmp_path / "ball.obj"
    obj.write_text(
        "".join(
            f"v {v[0]!r} {v[1]!r} {v[2]!r} {c[0] / 255} {c[1] / 255} {c[2] / 255}\n"
            for v, c in zip(vertices.tolist(), colours, strict=True)
        )
        + "".join(f"f {t[0] + 1} {t[1] + 1} {t[2] + 1}\n" for t in triangles)
    )
    for i, path in enumerate((ply, obj)):
        make(client, f"c{i}", palette=palette)
        done = voxelctl(daemon, path, "--scene", f"c{i}")
        assert done.returncode == 0, done.stderr
        assert (occupied(daemon, f"c{i}")[1] == materials).all()
        make(client, f"h{i}", palette=palette)
        kind = path.suffix[1:]
        reply = http_call(
            daemon, "POST", f"/v1/scene_import_mesh?format={kind}&name=h{i}", path.read_bytes(),
            {"Content-Type": "application/octet-stream"},
        )  # fmt: skip
        assert reply.status == 200, reply.body
        assert (occupied(daemon, f"h{i}")[1] == materials).all()
    # A material that is given counts, and without a palette there are no colours.
    make(client, "plain")
    done = voxelctl(daemon, ply, "--scene", "plain")
    assert done.returncode == 0, done.stderr
    assert set(np.unique(occupied(daemon, "plain")[1])) == {0}
    with pytest.raises(voxeld.InvalidArgument, match="palette"):
        client.scene("plain").import_mesh(vertices, triangles, colours=colours)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("format=stl&name=hall", "format"),
        ("format=obj&name=hall&scale=0", "scale"),
        ("format=obj&name=hall&offset=1,2", "offset"),
        ("format=obj&name=hall&rule=thick", "rule"),
        ("format=obj&name=hall&material=-1", "material"),
        ("format=obj&name=hall&in_voxels=yes", "in_voxels"),
        ("format=obj&name=hall&colour=red", "colour"),
        ("format=ply&name=hall", ""),
    ],
)
def test_uploads_that_are_wrong_are_refused_by_key(
    client: voxeld.Client, daemon: Daemon, query: str, field: str
) -> None:
    make(client)
    body = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    sent = {"Content-Type": "application/octet-stream"}
    reply = http_call(daemon, "POST", f"/v1/scene_import_mesh?{query}", body, sent)
    assert reply.status == 400, reply.body
    assert reply.json().get("field", "") == field


def test_files_that_are_wrong_are_refused(
    client: voxeld.Client, daemon: Daemon, tmp_path: Path
) -> None:
    make(client)
    head = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nelement face 1\n"
    head += "property list uchar int vertex_index\nend_header\n"
    wrong = {
        "a.obj": ("v 1 2\n", "line 1"),
        "b.obj": ("v 0 0 0\nf 1 1 2\n", "line 2"),
        "c.obj": ("v 0 0 0\nf 1 1\n", "three corners"),
        "d.ply": ("plx\n", "no PLY"),
        "e.ply": (head + "0\n3 0 0 1\n", "vertex 1 of 1"),
        "f.ply": (head + "0\n", "ends within its rows"),
        "g.ply": (head + "0\n300 0\n", "at most 256"),
        "h.ply": ("ply\nformat ascii 1.0\nend_header\n", "no format, vertices"),
        "i.obj": ("f " + "1 " * 3000 + "\n", "longer than 4095"),
    }
    for name, (text, message) in wrong.items():
        (tmp_path / name).write_text(text)
        done = voxelctl(daemon, tmp_path / name, "--scene", "hall")
        assert done.returncode != 0 and message in done.stderr, (name, done.stderr)
    assert voxelctl(daemon, tmp_path / "a.stl", "--scene", "hall").returncode == 2
    assert not occupied(daemon)[0].any()
