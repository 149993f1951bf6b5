# SPDX-License-Identifier: Apache-2.0
"""A start that takes long: health is answered, SIGTERM is obeyed, the supervisor is informed, and
snapshot files keep it from taking long again."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from harness import BIN, SLOW, Daemon, running, scene_pb2, wait_until
from scenes import Scenes, spec, vec


def noisy_ball(seed: int, radius: float) -> scene_pb2.SceneOperation:
    """A few bytes that take long to apply."""
    shape = scene_pb2.SceneBall(
        centre=vec(0, 0, 0), radius=radius, noise=radius / 2, noise_seed=seed
    )
    return scene_pb2.SceneOperation(ball=shape, action="SCENE_FILL", material=seed % 9)


def create(scenes: Scenes) -> None:
    scenes.call(
        "scene_create",
        name="yard",
        spec=spec(12, bits=4),
        durability=scene_pb2.SceneDurability(fsync="SCENE_FSYNC_ALWAYS"),
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def get_status(port: int, path: str) -> int:
    with contextlib.suppress(OSError):
        return get(port, path)
    return 0


def make_long_start(tmp_path: Path) -> float:
    """Leaves a directory of which the start takes about so many seconds."""
    daemon = Daemon(tmp_path)
    with Scenes(daemon) as scenes:
        create(scenes)
        begin = time.monotonic()
        scenes.edit("yard", noisy_ball(1, 12))
        took_s = time.monotonic() - begin
    daemon.signal(signal.SIGKILL)
    daemon.process.wait(60)
    for path in (tmp_path / "data" / "snapshots").iterdir():
        assert not path.name.endswith(".vxs"), "the kill came too late"
    return took_s


def test_long_start_answers_health_and_obeys(tmp_path: Path) -> None:
    took_s = make_long_start(tmp_path)
    port = free_port()
    config = json.loads((tmp_path / "voxeld.json").read_text())
    config["listen"]["http"] = f"127.0.0.1:{port}"
    (tmp_path / "voxeld.json").write_text(json.dumps(config))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        supervisor.settimeout(20 * SLOW)
        process = subprocess.Popen(
            [BIN / "voxeld", "--config", tmp_path / "voxeld.json"],
            stderr=subprocess.PIPE,
            text=True,
            # It ends without joining the threads that read the journal, as it means to.
            env={
                **Daemon.environment(),
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
                "TSAN_OPTIONS": "report_thread_leaks=0",
            },
        )
        wait_until(
            lambda: get_status(port, "/v1/health/live") == 200, 20, "health is answered"
        )
        assert get(port, "/v1/health/ready") == 503
        assert get(port, "/metrics") == 503
        assert get(port, "/v1/scenes") == 503
        assert process.poll() is None
        assert b"EXTEND_TIMEOUT_USEC=" in supervisor.recv(1000)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60 * SLOW)
        assert process.returncode == 0
        assert "stopped before the data were back" in log
        assert '"msg":"ready"' not in log
        assert time.monotonic() - begin < took_s / 2
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        assert scenes.call("scene_get", name="yard").scene.version == 2


def tell(process: subprocess.Popen[str], event: bytes) -> None:
    """Writes an event into the pipe that the daemon's main thread reads, as its parts do."""
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            is_writing = int(
                Path(f"/proc/{process.pid}/fdinfo/{entry.name}").read_text().split()[3], 8
            ) & os.O_WRONLY  # fmt: skip
            if entry.readlink().name.startswith("pipe:") and entry.name != "2" and is_writing:
                with entry.open("wb", buffering=0) as pipe:
                    pipe.write(event)


def test_device_lost_in_a_long_start_ends_it_for_the_supervisor(tmp_path: Path) -> None:
    make_long_start(tmp_path)
    with subprocess.Popen(
        [BIN / "voxeld", "--config", tmp_path / "voxeld.json"],
        stderr=subprocess.PIPE,
        text=True,
        env={**Daemon.environment(), "TSAN_OPTIONS": "report_thread_leaks=0"},
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if '"bringing back scenes"' in line:
                    break
            tell(process, b"L")
            _, log = process.communicate(timeout=60 * SLOW)
        finally:
            process.kill()
        assert process.returncode == 70, log
        assert "lost before the data were back" in log
        assert '"msg":"ready"' not in log


def test_changes_that_take_long_get_a_snapshot_file(tmp_path: Path) -> None:
    """They are a few hundred bytes of the journal, and seconds of a start."""
    with running(tmp_path) as daemon, Scenes(daemon) as scenes:
        create(scenes)
        for seed in range(40):
            scenes.edit("yard", noisy_ball(seed, 8))
            if daemon.find("snapshot written"):
                break
        wait_until(lambda: daemon.find("snapshot written"), 20, "a snapshot")
        assert os.listdir(tmp_path / "data" / "snapshots")
