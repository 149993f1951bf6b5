# SPDX-License-Identifier: Apache-2.0
"""Durable volumes: every layer is there, bit for bit, after any end of the process. What volumes
forget: decay and the farthest blocks, against NumPy."""

from __future__ import annotations

import contextlib
import io
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from depth_scene import CAMERA, Shot, shoot
from harness import BIN, SLOW, Daemon, http_call, running, wait_until
from PIL import Image
from volume_record import Blocks, Reader
from voxeld import Volume, VolumeBox

SIZE = 0.02
TRUNCATION = 0.08
FSYNCS = ["always", "everysec", "off"]
SEQUENCE = 1 << 30  # of requests that are sent again


def connect(daemon: Daemon, **more: Any) -> voxeld.Client:
    return voxeld.connect(daemon.ipc, timeout=30 * SLOW, **more)


def make(client: voxeld.Client, name: str, **more: Any) -> Volume:
    return client.volume_create(name, SIZE, truncation_m=TRUNCATION, **more)


def jpeg_of(colour: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(colour).save(out, "jpeg", quality=80)
    return out.getvalue()


def add(volume: Volume, i: int, **more: Any) -> None:
    """Integrates image `i`, each in another form."""
    shot = shoot(i)
    if i % 4 == 0:
        volume.integrate(shot.depth, CAMERA, shot.pose, colour=shot.colour, **more)
    elif i % 4 == 1:
        png = io.BytesIO()
        Image.fromarray(shot.colour).save(png, "png")
        volume.integrate_bytes(shot.png, CAMERA, shot.pose, colour=png.getvalue(), **more)
    elif i % 4 == 2:
        volume.integrate_bytes(
            shot.png, CAMERA, shot.pose, colour=jpeg_of(shot.colour), inverse_square=True, **more
        )
    else:
        half = shot.colour[::2, ::2]
        camera = voxeld.Camera(width=80, height=60, fx=75.0, fy=74.0, cx=40.0, cy=29.5)
        volume.integrate_bytes(
            shot.millimetres.tobytes(),
            CAMERA,
            shot.pose,
            depth_type="uint16",
            colour=half.tobytes(),
            colour_type="rgb",
            colour_camera=camera,
            weight=2.5,
            **more,
        )


def layers_of(daemon: Daemon, client: voxeld.Client, name: str) -> tuple[int, bytes]:
    """The number of images and all blocks of a volume, packed: entries, keys, stamps and every
    layer, as the record of a durable copy has them behind its head, in a backup."""
    client.volume(name).copy("layers-of", durable="off")
    backup = http_call(daemon, "POST", "/v1/backup", {"name": f"layers-{time.time_ns()}"}).json()
    with contextlib.closing(sqlite3.connect(Path(backup["path"]) / "voxeld.db")) as database:
        found = database.execute(
            "select r.kind, r.bytes from records r join families f on r.id >> 40 = f.id"
            " where f.name = 'volume:layers-of' order by r.id"
        ).fetchall()
    client.volume_drop("layers-of")
    assert [kind for kind, _ in found] == [9], "all blocks of so small a volume are one record"
    reader = Reader(found[0][1])
    reader.byte()
    _ = reader.text(), reader.text(), reader.number(), reader.number(), reader.number()
    return reader.number(), reader.data[reader.at :]


def metrics(daemon: Daemon) -> str:
    return http_call(daemon, "GET", "/metrics").body.decode()


def kill(daemon: Daemon) -> None:
    daemon.signal(signal.SIGKILL)
    daemon.wait()


@contextlib.contextmanager
def killed(directory: Path) -> Iterator[Daemon]:
    """A daemon that is killed at the end."""
    daemon = Daemon(directory)
    try:
        yield daemon
    except BaseException:
        sys.stderr.write("".join(daemon.lines[-60:]))
        raise
    finally:
        kill(daemon)


# What a start brings back ------------------------------------------------------------------


@pytest.mark.parametrize("fsync, compact", zip(FSYNCS, [False, True, False], strict=True))
def test_killed_volume_has_every_layer_again_bit_for_bit(
    tmp_path: Path, fsync: str, compact: bool
) -> None:
    """Images in every form, removals and decays, half of them only in the journal, the others in a
    snapshot file, which a volume of another process made from them."""
    with killed(tmp_path) as daemon, connect(daemon) as client:
        volume = make(
            client, "v", durable=fsync, colour=True, compact=compact, journal_max_bytes=300_000
        )
        for i in range(5):
            add(volume, i)
        volume.clear(VolumeBox((-0.2, -0.2, 0.0), (0.1, 0.05, 2.0)))
        volume.decay(0.7, 0.5, box=VolumeBox((0.0, 0.0, 0.0), (9.0, 9.0, 1.6)))
        add(volume, 5)
        volume.clear(centre=(0.0, 0.0, 1.3), radius_m=0.9)
        add(volume, 6)
        wait_until(
            lambda: 'voxeld_volume_snapshots_total{result="written"} 0' not in metrics(daemon),
            20 * SLOW,
            "snapshot",
        )
        assert "voxeld_durable_volumes 1\n" in metrics(daemon)
        add(volume, 7)
        before, surface = volume.info(), volume.extract()
        layers = layers_of(daemon, client, "v")
        assert before.n_images == layers[0] == 8 and before.durable == fsync
    with running(tmp_path) as daemon, connect(daemon) as client:
        volume = client.volume("v")
        after = volume.info()
        assert layers_of(daemon, client, "v") == layers
        assert after == before
        np.testing.assert_array_equal(volume.extract().vertices, surface.vertices)
        assert volume.extract(since=before.stamp).n_blocks == 0, "a reader's stamp is still good"
        add(volume, 8)
        assert volume.info().stamp > before.stamp
        assert len(volume.extract(since=before.stamp).vertices) > 0
    checked = subprocess.run(
        [BIN / "voxeld", "--check-data", tmp_path / "data"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def kinds_of(daemon: Daemon) -> list[int]:
    """Kinds of the records of volume "v", in a backup."""
    backup = http_call(daemon, "POST", "/v1/backup", {"name": f"kinds-{time.time_ns()}"}).json()
    with contextlib.closing(sqlite3.connect(Path(backup["path"]) / "voxeld.db")) as database:
        found = database.execute(
            "select r.kind from records r join families f on r.id >> 40 = f.id"
            " where f.name = 'volume:v' order by r.id"
        ).fetchall()
    return [kind for (kind,) in found]


def test_killed_volume_has_its_scans_again_bit_for_bit(tmp_path: Path) -> None:
    """Scans along rays and by range image, with times, normals, labels and carving. What a journal
    has of a scan is the scan, or the blocks that it changed where they are fewer bytes."""
    rng = np.random.default_rng(2)
    names = ["x", "y", "z", "normal_x", "normal_y", "normal_z", "time", "label"]
    rows = np.zeros(3000, [(name, "<f4") for name in names])
    direction = rng.normal(size=(3000, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    for axis, name in enumerate("xyz"):
        rows[name] = direction[:, axis] * rng.uniform(1.0, 2.0, 3000)
        rows[f"normal_{name}"] = -direction[:, axis]
    rows["time"], rows["label"] = np.linspace(3, 4, 3000), rng.integers(0, 5, 3000)
    lidar = voxeld.Lidar(rows=32, columns=200, top_deg=80.0, bottom_deg=-80.0)
    bent = voxeld.Lidar(rows=3, columns=90, elevations_deg=(60.0, 0.0, -55.0))
    with killed(tmp_path) as daemon, connect(daemon) as client:
        volume = client.volume_create("v", 0.08, truncation_m=0.2, durable="always", labels=True)
        volume.integrate_points(
            rows, end_pose=voxeld.Pose((0.1, 0.0, 0.0)), time_field="time", time_begin=3.0,
            time_end=4.0, by_angle=True, label_field="label",
        )  # fmt: skip
        points = np.stack([rows[axis] for axis in "xyz"], 1)
        volume.integrate_points(points, lidar=lidar, labels=rows["label"], inverse_square=True)
        near = points[:500] * 0.9
        volume.integrate_points(near, voxeld.Pose((0.2, 0, 0)), lidar=bent, carve_m=2.0)
        volume.integrate_points(points * 0.8, carve_m=1.5, weight=3.0, range_max_m=1.2)
        dense = np.full((60000, 3), 0.7, np.float32) + rng.normal(0, 1e-3, (60000, 3))
        volume.integrate_points(dense)
        volume.integrate_points(np.zeros((0, 3), np.float32))
        assert kinds_of(daemon) == [22, 22, 22, 22, 9]
        layers, info = layers_of(daemon, client, "v"), volume.info()
    with running(tmp_path) as daemon, connect(daemon) as client:
        assert layers_of(daemon, client, "v") == layers
        assert client.volume("v").info() == info


def test_killed_at_any_moment_keeps_what_was_answered(tmp_path: Path) -> None:
    """A camera repeats what got no answer through three kills: each image counts once."""
    n_answered = 0
    for start in range(3):
        with killed(tmp_path) as daemon, connect(daemon, client_id="camera") as client:
            if start == 0:
                make(client, "v", durable="everysec", sequence=SEQUENCE)
            volume = client.volume("v")
            assert volume.info().n_images in (n_answered, n_answered + 1)
            timer = threading.Timer(0.25, daemon.signal, [signal.SIGKILL])
            timer.start()
            try:
                while True:
                    add(volume, n_answered, sequence=SEQUENCE + 1 + n_answered)
                    n_answered += 1
            except voxeld.Error:
                timer.join()
    assert n_answered > 3
    with running(tmp_path) as daemon, connect(daemon, client_id="camera") as client:
        volume = client.volume("v")
        add(volume, n_answered, sequence=SEQUENCE + 1 + n_answered)
        info = volume.info()
        assert info.n_images == n_answered + 1
        other = make(client, "again", durable="off")
        for i in range(info.n_images):
            add(other, i)
        np.testing.assert_array_equal(volume.extract().vertices, other.extract().vertices)


def test_dropped_volume_stays_gone_and_its_name_is_free(tmp_path: Path) -> None:
    with killed(tmp_path) as daemon, connect(daemon) as client:
        add(make(client, "v", durable="always"), 0)
        add(make(client, "memory"), 0)
        client.volume_drop("v")
    with running(tmp_path) as daemon, connect(daemon) as client:
        assert client.volumes() == ()
        assert make(client, "v", durable="off").info().n_images == 0
        assert client.volumes()[0].durable == "off"


def test_durable_wishes_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with (
        running(tmp_path / "none", {"data_dir": ""}) as daemon,
        connect(daemon) as client,
        pytest.raises(voxeld.FailedPrecondition),
    ):
        make(client, "v", durable="always")
    with running(tmp_path) as daemon, connect(daemon) as client:
        for fields, field in (
            ({"durable": True, "ttlS": 5}, "ttl_s"),
            ({"fsync": "VOLUME_FSYNC_OFF"}, "fsync"),
            ({"journalMaxBytes": "5"}, "journal_max_bytes"),
            ({"whenFull": 9}, "whenFull"),
            ({"whenFull": "VOLUME_FULL_FORGET_FARTHEST"}, "max_bytes"),
        ):
            reply = http_call(
                daemon, "POST", "/v1/volume_create", {"name": "v", "voxelSizeM": 0.1, **fields}
            )
            assert reply.status == 400 and reply.json()["field"] == field, reply.body
        make(client, "v", durable="off")
        with pytest.raises(voxeld.AlreadyExists):
            make(client, "v", durable="always")
        with pytest.raises(voxeld.AlreadyExists):
            make(client, "v")


# Damage ------------------------------------------------------------------------------------


def damage_last_record(data: Path) -> None:
    with contextlib.closing(sqlite3.connect(data / "voxeld.db")) as database:
        rowid, record = database.execute(
            "select id, bytes from records order by id desc limit 1"
        ).fetchone()
        database.execute(
            "update records set bytes = ? where id = ?",
            (record[:-1] + bytes([record[-1] ^ 1]), rowid),
        )
        database.commit()


def test_damaged_record_is_told_and_what_was_before_it_is_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(tmp_path) as daemon, connect(daemon) as client:
        volume = make(client, "v", durable="always", colour=True)
        for i in range(3):
            add(volume, i)
        before = layers_of(daemon, client, "v")
        info = volume.info()
        add(volume, 3)
    damage_last_record(data)
    checked = subprocess.run(
        [BIN / "voxeld", "--check-data", data], capture_output=True, text=True
    )
    assert checked.returncode == 1 and "loss: " in checked.stdout, checked.stdout
    with killed(tmp_path) as daemon, connect(daemon) as client:
        lost = daemon.find("a volume has lost changes; its generation is another one")
        assert lost is not None and lost["volume"] == "v"
        after = client.volume("v").info()
        assert after.generation > info.generation and after.stamp > info.stamp
        assert layers_of(daemon, client, "v") == before
        surface = client.volume("v").extract(since=info.stamp)
        assert surface.is_whole and len(surface.vertices) > 0
        add(client.volume("v"), 3)
        stamp = client.volume("v").info().stamp
    with running(tmp_path) as daemon, connect(daemon) as client:
        assert client.volume("v").info().n_images == 4
        assert client.volume("v").info().stamp >= stamp


def test_repair_brings_volumes_back_from_their_snapshots(tmp_path: Path) -> None:
    """Of a family whose row is damaged, the snapshot file has the description."""
    data = tmp_path / "data"
    with running(tmp_path) as daemon, connect(daemon) as client:
        volume = make(client, "v", durable="always", journal_max_bytes=50_000)
        for i in range(4):
            add(volume, i)
        wait_until(lambda: list((data / "snapshots").glob("*.vxs")), 20 * SLOW, "snapshot")
        before = volume.info()
    with contextlib.closing(sqlite3.connect(data / "voxeld.db")) as database:
        database.execute("update families set spec = x'00' where name = 'volume:v'")
        database.commit()
    done = subprocess.run([BIN / "voxeld", "--repair-data", data], capture_output=True, text=True)
    assert "volume:v" in done.stdout, (done.stdout, done.stderr)
    with running(tmp_path) as daemon, connect(daemon) as client:
        after = client.volume("v").info()
        assert after.generation > before.generation and after.n_images == before.n_images
        assert (after.n_blocks, after.journal_max_bytes) == (before.n_blocks, 50_000)


def test_backup_has_the_volume_as_it_was(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, connect(daemon) as client:
        volume = make(client, "v", durable="off", colour=True)
        add(volume, 0)
        layers = layers_of(daemon, client, "v")
        reply = http_call(daemon, "POST", "/v1/backup", {"name": "b"}).json()
        add(volume, 1)
    with running(tmp_path / "b", {"data_dir": reply["path"]}) as daemon, connect(daemon) as client:
        assert layers_of(daemon, client, "v") == layers


# Copies ------------------------------------------------------------------------------------


def test_copies_go_their_own_ways_and_outlive_the_process(tmp_path: Path) -> None:
    with killed(tmp_path) as daemon, connect(daemon) as client:
        volume = make(client, "v", durable="everysec", colour=True)
        for i in range(3):
            add(volume, i)
        kept = volume.copy("kept", durable="always")
        short = volume.copy("short", ttl_s=1000)
        assert layers_of(daemon, client, "kept") == layers_of(daemon, client, "v")
        assert layers_of(daemon, client, "short") == layers_of(daemon, client, "v")
        info = short.info()
        assert info.durable is None and info.ttl_s == 1000 and info.n_images == 3
        assert info.n_bytes > 0 and info.generation != volume.info().generation
        with pytest.raises(voxeld.AlreadyExists):
            volume.copy("kept")
        with pytest.raises(voxeld.NotFound):
            client.volume("v").drop()
            volume.copy("other")
        add(kept, 3)
        layers = layers_of(daemon, client, "kept")
    with running(tmp_path) as daemon, connect(daemon) as client:
        assert [v.name for v in client.volumes()] == ["kept"]
        assert layers_of(daemon, client, "kept") == layers


def test_copy_over_the_limits_is_refused(tmp_path: Path) -> None:
    with (
        running(tmp_path, {"limits": {"volume_bytes": 12 << 20}}) as daemon,
        connect(daemon) as client,
    ):
        volume = make(client, "v")
        add(volume, 0)
        with pytest.raises(voxeld.ResourceExhausted, match=r"limits\.volume_bytes"):
            for i in range(20):
                volume.copy(f"copy-{i}")
        assert len(client.volumes()) > 1


# What is forgotten -------------------------------------------------------------------------


EVERYWHERE = VolumeBox((-1e6, -1e6, -1e6), (1e6, 1e6, 1e6))


def decayed(
    blocks: Blocks, factor: float, min_weight: float, inside: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Which blocks are left, and their layers, where `inside` says which voxels decay."""
    layers = {name: rows.copy() for name, rows in blocks.layers.items()}
    weight = layers["weight"]
    is_whole = weight.dtype == np.uint8
    less = weight.astype(np.float32) * np.float32(factor)
    less = (np.floor(less) if is_whole else less).astype(weight.dtype)
    weight[:] = np.where(inside, less, weight)
    left = ~(inside.any(1) & ((weight.max(1) == 0) | (weight.max(1) < np.float32(min_weight))))
    layers["distance"][inside & (weight == 0)] = 0
    colour = layers["colour"].reshape(*weight.shape, 4)
    less = np.floor(colour[..., 3].astype(np.float32) * np.float32(factor)).astype(np.uint16)
    colour[..., 3] = np.where(inside, less, colour[..., 3])
    colour[inside & ((weight == 0) | (colour[..., 3] == 0))] = 0
    return left, layers


@pytest.mark.parametrize("compact", [False, True])
def test_decay_is_what_numpy_makes_of_every_layer(tmp_path: Path, compact: bool) -> None:
    size = 0.05
    with running(tmp_path) as daemon, connect(daemon) as client:
        volume = client.volume_create("v", size, truncation_m=0.2, compact=compact, colour=True)
        for i in range(4):
            add(volume, i)
        index = np.arange(512)
        corner = np.stack([index % 8, index // 8 % 8, index // 64], 1)
        for factor, min_weight, more in (
            (0.6, 1.0, {"box": VolumeBox((-0.3, -0.2, 0.5), (0.15, 0.1, 1.6))}),
            (0.8, 0.0, {"centre": (0.0, 0.0, 1.1), "radius_m": 0.6}),
            (0.7, 1.3, {"all": True}),
            (0.0, 0.0, {"box": VolumeBox((0.0, -9.0, 0.0), (9.0, 9.0, 9.0))}),
        ):
            before = Reader(layers_of(daemon, client, "v")[1]).blocks()
            box = more.get("box", EVERYWHERE)
            centres = (before.keys[:, None] * 8 + corner + 0.5) * size
            inside = ((centres >= box.low) & (centres < box.high)).all(-1)
            if "radius_m" in more:
                away = np.linalg.norm((before.keys + 0.5) * 8 * size - more["centre"], axis=1)
                inside = np.repeat((away > more["radius_m"])[:, None], 512, 1)
            left, layers = decayed(before, factor, min_weight, inside)
            done = volume.decay(factor, min_weight, **more)
            after = Reader(layers_of(daemon, client, "v")[1]).blocks()
            assert done.n_removed == (~left).sum() and done.n_blocks == left.sum()
            np.testing.assert_array_equal(after.entries, before.entries[left])
            np.testing.assert_array_equal(after.keys, before.keys[left])
            np.testing.assert_array_equal(
                after.stamps, np.where(inside.any(1), done.stamp, before.stamps)[left]
            )
            for name, rows in layers.items():
                np.testing.assert_array_equal(after.layers[name], rows[left], name)
        assert volume.info().n_blocks > 0 and volume.decay(0.0, all=True).n_blocks == 0
        for fields, field in (
            ({"factor": 2, "all": True}, "factor"),
            ({"factor": 1, "minWeight": -1, "all": True}, "min_weight"),
            ({"factor": 1}, "box"),
            ({"factor": 1, "all": True, "radiusM": 1}, "all"),
        ):
            reply = http_call(daemon, "POST", "/v1/volume_decay", {"name": "v", **fields})
            assert reply.status == 400 and reply.json()["field"] == field, reply.body


def keys_of(volume: Volume) -> set[tuple[int, ...]]:
    return {tuple(k) for k in volume.extract(points=True).blocks[:, :3].tolist()}


def centre_distances(keys: set[tuple[int, ...]], sensor: np.ndarray) -> np.ndarray:
    blocks = np.array(sorted(keys), float).reshape(-1, 3)
    return np.linalg.norm((blocks + 0.5) * 8 * SIZE - sensor, axis=1)


def scan_of(shot: Shot) -> np.ndarray:
    """The image's pixels as points of the camera's frame: any frame is a sensor's."""
    v, u = np.mgrid[: CAMERA.height, : CAMERA.width]
    rays = [(u - CAMERA.cx) / CAMERA.fx, (v - CAMERA.cy) / CAMERA.fy, np.ones(u.shape)]
    return (np.stack(rays, -1) * shot.depth[..., None]).reshape(-1, 3).astype(np.float32)


@pytest.mark.parametrize("durable", [None, "everysec"])
@pytest.mark.parametrize("what", ["image", "scan"])
def test_full_volume_forgets_its_farthest_blocks(
    tmp_path: Path, what: str, durable: str | None
) -> None:
    """A sensor that goes on along x: blocks behind it go, the farthest first, and none that the
    image or the scan sees. A restart has the same blocks."""
    max_bytes = 3 << 20

    def add_to(volume: Volume, pose: voxeld.Pose) -> None:
        if what == "image":
            volume.integrate(shot.depth, CAMERA, pose)
        else:
            volume.integrate_points(scan_of(shot), pose)

    with killed(tmp_path) as daemon, connect(daemon) as client:
        more: dict[str, Any] = {"max_bytes": max_bytes, "durable": durable}
        volume = make(client, "v", when_full="forget_farthest", **more)
        refusing = make(client, "refuses", **more)
        unlimited = make(client, "all")
        assert volume.info().when_full == "forget_farthest" and volume.info().n_bytes <= max_bytes
        shot = shoot(0)
        n_forgotten = n_refused = 0
        for step in range(8):
            sensor = shot.translation + np.array([0.9 * step, 0.0, 0.0])
            pose = voxeld.Pose(tuple(sensor), shot.pose.rotation)
            alone = make(client, "alone")
            add_to(alone, pose)
            touched = keys_of(alone)
            alone.drop()
            add_to(unlimited, pose)
            before = keys_of(volume)
            add_to(volume, pose)
            after = keys_of(volume)
            assert volume.info().n_bytes <= max_bytes
            gone = before - after
            assert touched <= after and after - before <= touched
            if gone:
                n_forgotten += 1
                stayed = (before - touched) & after
                nearest = centre_distances(gone, sensor).min()
                assert not stayed or centre_distances(stayed, sensor).max() <= nearest
            try:
                add_to(refusing, pose)
            except voxeld.ResourceExhausted as refused:
                n_refused += 1
                assert "max_bytes" in str(refused)
        assert n_forgotten > 1 and n_refused > 1
        assert len(keys_of(unlimited)) > len(keys_of(volume))
        assert volume.info().n_images == 8 and refusing.info().n_images == 8 - n_refused
        if durable is not None:
            layers = layers_of(daemon, client, "v")
            refused_layers = layers_of(daemon, client, "refuses")
    if durable is not None:
        with running(tmp_path) as daemon, connect(daemon) as client:
            assert layers_of(daemon, client, "v") == layers
            assert layers_of(daemon, client, "refuses") == refused_layers
            add_to(client.volume("v"), shot.pose)  # and goes on forgetting
            assert client.volume("v").info().n_bytes <= max_bytes


def test_voxelctl_makes_durable_volumes_copies_and_decays(tmp_path: Path) -> None:
    def ctl(*words: str) -> str:
        done = subprocess.run(
            [BIN / "voxelctl", "--url", daemon.ipc, "volume", *words],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    with running(tmp_path) as daemon, connect(daemon) as client:
        ctl("create", "v", "--size", "0.02", "--durable", "everysec", "--max-bytes", "9000000",
            "--when-full", "forget_farthest")  # fmt: skip
        add(client.volume("v"), 0)
        text = ctl("info", "v")
        assert "fsync everysec" in text and "the farthest blocks are removed" in text
        assert "made w" in ctl("copy", "v", "w")
        assert client.volume("w").info().n_blocks == client.volume("v").info().n_blocks
        assert "blocks removed" in ctl("decay", "w", "--factor", "0", "--all")
        assert client.volume("w").info().n_blocks == 0
        assert '"n_removed"' in ctl("decay", "v", "--factor", "0.5", "--outside", "0,0,0,1",
                                    "--json")  # fmt: skip
