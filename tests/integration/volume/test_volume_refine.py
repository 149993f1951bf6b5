# SPDX-License-Identifier: Apache-2.0
"""Shape from shading over the wire: a painted ball with a relief, which NumPy renders; progress,
cancel and deadlines; what a restart keeps; what is refused; voxelctl."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, Daemon, http_call, running, wait_until
from PIL import Image
from test_tools import run
from voxeld import Camera, Keyframe, Pose, Volume

RADIUS = 0.03
HEIGHT = 0.0004  # of the relief, to either side
WAVE = 2 * np.pi / 0.014
WIDTH, SIZE_V = 120, 90
FOCAL = 165.0
CAMERA = Camera(
    width=WIDTH, height=SIZE_V, fx=FOCAL, cx=(WIDTH - 1) / 2, cy=(SIZE_V - 1) / 2
)
VOXEL = 0.0015
COLOURS = np.array([[0.8, 0.42, 0.3], [0.3, 0.6, 0.42], [0.25, 0.3, 0.7]])
GREY = np.array([0.299, 0.587, 0.114])


def look_from(at: np.ndarray) -> np.ndarray:
    """The pose of a camera that looks at the ball."""
    z = -at / np.linalg.norm(at)
    x = np.cross(z, [0.1, 0.2, 1.0])
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    pose[:3, 3] = at
    return pose


def poses(n: int) -> list[np.ndarray]:
    z = 1 - 2 * (np.arange(n) + 0.5) / n
    angle = 2.399963 * np.arange(n)
    r = np.sqrt(1 - z * z)
    return [
        look_from(5 * RADIUS * p)
        for p in np.stack([r * np.cos(angle), r * np.sin(angle), z], 1)
    ]


def surface(p: np.ndarray, relief: float) -> tuple[np.ndarray, np.ndarray]:
    """The distance to the surface, about, and its gradient."""
    length = np.linalg.norm(p, axis=-1)
    w = WAVE * p + [0, 1, 2]
    height = relief * np.sin(w[..., 1]) * (np.sin(w[..., 0]) + np.sin(w[..., 2])) / 2
    gradient = (
        np.stack(
            [
                np.sin(w[..., 1]) * np.cos(w[..., 0]),
                np.cos(w[..., 1]) * (np.sin(w[..., 0]) + np.sin(w[..., 2])),
                np.sin(w[..., 1]) * np.cos(w[..., 2]),
            ],
            -1,
        )
        * relief
        * WAVE
        / 2
    )
    normal = p / length[..., None] - gradient
    return length - RADIUS - height, normal / np.linalg.norm(
        normal, axis=-1, keepdims=True
    )


def paint(p: np.ndarray) -> np.ndarray:
    return COLOURS[
        np.floor(np.arctan2(p[..., 1], p[..., 0]) * 1.5 / np.pi + 1.5).astype(int) % 3
    ]


@dataclass
class Shot:
    depth: np.ndarray
    colour: np.ndarray


def shoot(pose: np.ndarray, relief: float) -> Shot:
    v, u = np.mgrid[:SIZE_V, :WIDTH]
    rays = np.stack(
        [(u - CAMERA.cx) / FOCAL, (v - CAMERA.cy) / FOCAL, np.ones(u.shape)], -1
    )
    lengths = np.linalg.norm(rays, axis=-1)
    rays = rays @ pose[:3, :3].T / lengths[..., None]
    t = np.full(u.shape, 3.8 * RADIUS)
    for _ in range(60):
        t = np.minimum(
            t + 0.8 * surface(pose[:3, 3] + t[..., None] * rays, relief)[0], 1
        )
    p = pose[:3, 3] + t[..., None] * rays
    d, n = surface(p, relief)
    hit = np.abs(d) < 1e-5
    light = 0.35 + 0.5 * (0.5 + 0.5 * n @ [0.8, 0.48, 0.36]) ** 2
    colour = np.where(hit[..., None], 255 * paint(p) * light[..., None], 0)
    return Shot(
        np.where(hit, t / lengths, 0).astype(np.float32),
        np.clip(np.rint(colour), 0, 255).astype(np.uint8),
    )


KEYFRAMES = [
    Keyframe(shoot(pose, HEIGHT).colour, CAMERA, Pose.from_matrix(pose))
    for pose in poses(8)
]
DEPTHS = [(shoot(pose, 0).depth, Pose.from_matrix(pose)) for pose in poses(14)]


@pytest.fixture
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as connected:
        for info in connected.volumes():
            connected.volume_drop(info.name)
        yield connected


def make(client: voxeld.Client, name: str = "v", **more: Any) -> Volume:
    volume = client.volume_create(name, VOXEL, **more)
    for depth, pose in DEPTHS:
        volume.integrate(depth, CAMERA, pose)
    return volume


def error_deg(volume: Volume) -> float:
    mesh = volume.extract()
    _, normals = surface(mesh.vertices.astype(float) + volume.origin, HEIGHT)
    cosines = np.clip((normals * mesh.normals).sum(1), -1, 1)
    return float(np.degrees(np.arccos(cosines)).mean())


def state(volume: Volume) -> tuple[bytes, ...]:
    mesh = volume.extract()
    return mesh.vertices.tobytes(), mesh.normals.tobytes(), mesh.triangles.tobytes()


def test_refined_volume_has_the_relief_and_the_paint(client: voxeld.Client) -> None:
    volume = make(client)
    before = state(volume)
    refined = volume.refine(KEYFRAMES, into="fine", upsample=1, subvolume_m=0.05)
    fine = client.volume("fine")

    assert state(volume) == before, "the volume itself stays"
    assert refined.volume.name == "fine" and refined.volume.albedo
    assert fine.voxel_size_m == VOXEL / 2
    assert error_deg(fine) < 0.6 * error_deg(volume)
    energies = [
        loss.data + loss.smooth + loss.init + loss.chroma for loss in refined.losses
    ]
    assert energies[5] < 0.5 * energies[0] and {
        loss.level for loss in refined.losses
    } == {0, 1}
    assert len(refined.keyframes) == len(KEYFRAMES) and refined.n_voxels > 10_000
    for keyframe, given in zip(refined.keyframes, poses(8), strict=True):
        assert np.linalg.norm(keyframe.T_map_camera.translation - given[:3, 3]) < 2e-3
    mesh = fine.extract(albedo=True)
    seen = mesh.colours.any(axis=1)
    found = mesh.colours[seen] @ GREY
    true = paint(mesh.vertices[seen].astype(float)) @ GREY
    assert seen.mean() > 0.8 and np.corrcoef(found, true)[0, 1] > 0.95
    assert not fine.refine_status().running and not fine.refine_cancel()


def test_volume_with_albedo_is_refined_in_place_and_survives_a_restart(
    tmp_path: Path,
) -> None:
    with (
        running(tmp_path) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        volume = make(client, albedo=True, durable="always")
        worse = error_deg(volume)
        stamp = volume.info().stamp
        volume.refine(KEYFRAMES, iterations=3)
        assert error_deg(volume) < 0.8 * worse
        assert volume.info().stamp == stamp + 1
        volume.refine(KEYFRAMES, into="copy", iterations=1, rounds=1, durable="always")
        kept = [state(client.volume(name)) for name in ("v", "copy")]
        albedo = volume.extract(albedo=True).colours.tobytes()
    with (
        running(tmp_path) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        assert [state(client.volume(name)) for name in ("v", "copy")] == kept
        assert client.volume("v").extract(albedo=True).colours.tobytes() == albedo


def start(
    daemon: Daemon, volume: Volume, **more: Any
) -> tuple[threading.Thread, list[Any]]:
    """A refinement that takes long, on a connection of its own, once it is seen to run."""
    outcome: list[Any] = []

    def work() -> None:
        with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as own:
            try:
                outcome.append(
                    own.volume(volume.name).refine(
                        KEYFRAMES, rounds=20, iterations=50, **more
                    )
                )
            except voxeld.Error as error:
                outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: outcome or volume.refine_status().running, 30, "it runs")
    return thread, outcome


def test_cancelled_and_expired_refinements_leave_the_volume_as_it_was(
    daemon: Daemon, client: voxeld.Client
) -> None:
    volume = make(client, albedo=True)
    before = state(volume)
    thread, outcome = start(daemon, volume)
    status = wait_until(
        lambda: s if (s := volume.refine_status()).n_losses > 1 else None,
        60,
        "steps are done",
    )
    assert 0 < status.fraction < 1 and status.n_voxels > 5_000 and status.energy > 0
    with pytest.raises(voxeld.FailedPrecondition, match="already"):
        volume.refine(KEYFRAMES)
    assert volume.refine_cancel()
    thread.join()
    assert isinstance(outcome[0], voxeld.Aborted) and "cancelled" in str(outcome[0])
    assert state(volume) == before and not volume.refine_status().running

    with pytest.raises(voxeld.DeadlineExceeded):
        volume.refine(KEYFRAMES, rounds=20, iterations=50, timeout=1)
    wait_until(
        lambda: not volume.refine_status().running, 30, "its last stage has ended"
    )
    assert state(volume) == before

    thread, outcome = start(daemon, volume, into="fine")
    volume.integrate(DEPTHS[0][0], CAMERA, DEPTHS[0][1])
    thread.join()
    assert isinstance(outcome[0], voxeld.Aborted) and "changed" in str(outcome[0])
    with pytest.raises(voxeld.NotFound):
        client.volume("fine")


def test_end_of_the_server_in_between_leaves_a_durable_volume_as_it_was(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path)
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client:
        volume = make(client, albedo=True, durable="always")
        before = state(volume)
        thread, _ = start(daemon, volume)
        daemon.process.kill()
        daemon.wait()
        thread.join()
    with (
        running(tmp_path) as daemon,
        voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client,
    ):
        assert state(client.volume("v")) == before


def test_what_cannot_be_refined_is_named_and_nothing_changes(
    client: voxeld.Client,
) -> None:
    volume = make(client, albedo=True)
    before = state(volume)
    away = Keyframe(
        KEYFRAMES[0].colour,
        CAMERA,
        Pose.from_matrix(look_from(np.array([0, 0, 0.2])) @ np.diag([1, -1, -1, 1])),
    )
    bad = [
        (voxeld.InvalidArgument, "keyframes[1]", {"keyframes": [KEYFRAMES[0], away]}),
        (voxeld.InvalidArgument, "keyframes", {"keyframes": []}),
        (voxeld.ResourceExhausted, "max_unknowns", {"max_unknowns": 1000}),
        (voxeld.InvalidArgument, "into", {"upsample": 1}),
        (voxeld.AlreadyExists, "into", {"into": "v"}),
        (voxeld.InvalidArgument, "into", {"into": "No"}),
        (voxeld.InvalidArgument, "band_m", {"band_m": 1.0}),
        (voxeld.InvalidArgument, "smooth", {"smooth": -1.0}),
        (voxeld.InvalidArgument, "rounds", {"rounds": 101}),
        (voxeld.InvalidArgument, "iterations", {"rounds": 100, "iterations": 11}),
    ]
    for camera in (
        Camera(width=0, height=0, fx=0.0),
        Camera(width=0, height=0, fx=float("nan")),
        Camera(width=0, height=0, fx=1e300),
        Camera(width=0, height=0, fx=FOCAL, cx=float("inf")),
    ):
        bad.append(
            (
                voxeld.InvalidArgument,
                "keyframes[0].camera",
                {"keyframes": [Keyframe(KEYFRAMES[0].colour, camera)]},
            )
        )
    for kind, field, arguments in bad:
        with pytest.raises(kind) as caught:
            volume.refine(**{"keyframes": KEYFRAMES, **arguments})
        assert caught.value.field.startswith(field), (field, caught.value)
        assert state(volume) == before
    plain = client.volume_create("plain", VOXEL)
    with pytest.raises(voxeld.FailedPrecondition) as caught:
        plain.refine(KEYFRAMES)
    assert caught.value.field == "into"
    with pytest.raises(voxeld.FailedPrecondition, match="empty"):
        plain.refine(KEYFRAMES, into="fine")
    with pytest.raises(voxeld.FailedPrecondition, match="albedo"):
        plain.extract(albedo=True)


def png(colour: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(colour).save(out, "png")
    return out.getvalue()


def test_http_and_voxelctl_refine(
    daemon: Daemon, client: voxeld.Client, tmp_path: Path
) -> None:
    make(client)
    keyframes = []
    for i, (keyframe, pose) in enumerate(zip(KEYFRAMES, poses(8), strict=True)):
        file = png(keyframe.colour)
        (tmp_path / f"frame-{i:06}.color.png").write_bytes(file)
        Image.fromarray(np.zeros((SIZE_V, WIDTH), np.uint16)).save(
            tmp_path / f"frame-{i:06}.depth.png"
        )
        np.savetxt(tmp_path / f"frame-{i:06}.pose.txt", pose)
        message = keyframe.message("k")
        pose_json = {
            "translation": dict(
                zip(
                    "xyz",
                    [getattr(message.T_map_camera.translation, c) for c in "xyz"],
                    strict=True,
                )
            ),
            "rotation": {c: getattr(message.T_map_camera.rotation, c) for c in "xyzw"},
        }
        keyframes.append(
            {
                "camera": {"fx": FOCAL, "cx": CAMERA.cx, "cy": CAMERA.cy},
                "colour": base64.b64encode(file).decode(),
                "TMapCamera": pose_json,
            }
        )
    reply = http_call(
        daemon,
        "POST",
        "/v1/volume_refine",
        {
            "name": "v",
            "into": "by-http",
            "iterations": 1,
            "rounds": 1,
            "keyframes": keyframes,
        },
        {"Idempotency-Key": "refine/1"},
        timeout_s=60 * SLOW,
    )
    assert reply.status == 200, reply.body
    (tmp_path / "K.txt").write_text(f"{FOCAL} {FOCAL} {CAMERA.cx} {CAMERA.cy}\n")
    ctl = [BIN / "voxelctl", "--url", daemon.ipc]
    done = run(
        *ctl, "refine", "run", "v", tmp_path, "--intrinsics", tmp_path / "K.txt",
        "--into", "by-ctl", "--iterations", "1", "--rounds", "1", "--json",
    )  # fmt: skip
    assert json.loads(done.stdout)["n_voxels"] > 5_000
    assert state(client.volume("by-ctl")) == state(client.volume("by-http"))
    mesh = tmp_path / "albedo.ply"
    run(*ctl, "volume", "extract", "by-ctl", mesh, "--albedo")
    assert b"property uchar red" in mesh.read_bytes()[:600]
    assert (
        json.loads(run(*ctl, "refine", "progress", "v", "--json").stdout)["running"]
        is False
    )
    assert "not being" in run(*ctl, "refine", "cancel", "v").stdout
