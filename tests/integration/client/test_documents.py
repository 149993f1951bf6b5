# SPDX-License-Identifier: Apache-2.0
"""Every block of code of every document runs as it stands there, or stands in a list here with the
reason why not and with what runs it instead. A document's blocks run in their order, once each, in
an empty home, against one daemon of their own. README.md has its own test (test_readme.py)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from depth_scene import CAMERA, png_of, shoot
from documents import LIMITS, Block, Terminal, blocks_of, documents
from harness import BIN, SANITIZE, SOURCE, Daemon, running

BUILDS = "builds the tree; "
FIRST_HOUR = BUILDS + "test_first_hour.py of the long tier runs the same commands of README.md"
SUITE = BUILDS + "it is how this test was started"
# (document, how the block begins): why it does not run here, and what does run it.
NOT_HERE = {
    (".github/CONTRIBUTING.md", "deploy/quickstart.sh --once"): FIRST_HOUR,
    (".github/CONTRIBUTING.md", "cmake -S . -B build -G Ninja && cmake"): SUITE,
    ("README.md", "deploy/quickstart.sh "): FIRST_HOUR,
    ("README.md", "cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "): FIRST_HOUR,
    ("client/python/README.md", "pip install ./client/python"): "installs from a registry; "
    "test_first_hour.py of the long tier runs it",
    ("client/voxelctl/README.md", "export VOXELD_TOKEN="): "loads the daemon for half a minute and "
    "draws with matplotlib; test_bench.py and test_auth.py hold what it shows",
    ("configs/README.md", "voxelctl --url tls+tcp://voxels.example.org"): "needs that name to be "
    "this machine's; test_tls.py connects so under a name that is",
    ("deploy/BUILDING.md", "cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "): FIRST_HOUR,
    ("deploy/BUILDING.md", "deploy/packages.sh aarch64"): BUILDS + "the step aarch64 of "
    "deploy/test.sh does so",
    ("deploy/haproxy/README.md", "VOXELD_HTTP=:8420"): "needs haproxy and two hosts; "
    "test_haproxy.py of the long tier runs the file with two daemons",
    ("deploy/image/README.md", "deploy/image/build.sh"): "needs buildah and podman; "
    "test_packages.py of the long tier builds and runs the image",
    ("deploy/kubernetes/README.md", "deploy/image/build.sh"): "needs a cluster; test_manifests.py "
    "renders the manifests and validates them",
    ("deploy/monitoring/README.md", "# prometheus.yml"): "is a part of Prometheus' configuration; "
    "test_why.py holds the rules that it names to what a daemon exports",
    ("proto/gen/README.md", "build/test/venv/bin/python"): "writes into the tree; "
    "test_generated.py makes the same files elsewhere and compares them",
    ("server/web/README.md", '<script type="module"'): "is a part of a page; test_dashboard.py "
    "shows the element in a browser",
    ("tests/README.md", "deploy/test.sh "): SUITE,
    ("tests/emulator/README.md", "cmake "): BUILDS + "the step emulator of deploy/test.sh does so",
    ("tests/fuzz/README.md", "deploy/test.sh fuzz"): BUILDS + "it is a step of deploy/test.sh",
}
# All blocks of a document.
ELSEWHERE = {
    "README.md": "test_readme.py runs them",
    "proto/REFERENCE.md": "generated examples of requests; test_generated.py holds them to the "
    "schema",
}
RESULTS = "tests/bench/results/"  # these say how figures were measured, most of them on a GPU


def exception(block: Block) -> tuple[str, str] | None:
    return next((key for key in NOT_HERE
                 if block.document == key[0] and block.begin.startswith(key[1])), None)  # fmt: skip


MESH = """ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
element face 4
property list uchar int vertex_indices
end_header
0 0 0
0.1 0 0
0 0.1 0
0 0 0.1
3 0 2 1
3 0 1 3
3 0 3 2
3 1 2 3
"""


class Desk:
    """What a document takes for granted: files, networks, and names of its Python."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.folder = terminal.folder
        points = np.load(SOURCE / "tests/data/spconv_benchmark_pc.npy")[::100, :3]
        self.scan = np.concatenate([points, np.ones((len(points), 1))], 1).astype("<f4")

    def scans(self, *names: str) -> None:
        np.save(self.folder / "scan.npy", self.scan)
        self.terminal.run("voxelctl", "convert", "scan.npy", "scan.pcd")
        for name in names:
            self.scan.tofile(self.folder / name)

    def drive(self, folder: str, suffix: str) -> None:
        (self.folder / folder).mkdir()
        for i in range(2):
            path = self.folder / folder / f"{i:06}.{suffix}"
            if suffix == "bin":
                self.scan[i::2].tofile(path)
            else:
                shutil.copy(self.folder / "scan.pcd", path)

    def poses(self) -> None:
        line = "1 0 0 {} 0 1 0 0 0 0 1 0\n"
        (self.folder / "poses.txt").write_text("".join(line.format(i) for i in range(2)))

    def network(self, name: str) -> None:
        self.terminal.copy(f"configs/networks/{name}.json", f"networks/{name}.json")
        self.terminal.run("voxelctl", "net", "init", f"networks/{name}.json")
        self.terminal.run("voxelctl", "net", "load", name, "--precision", "fp32")

    def images(self, folder: str, n: int) -> None:
        """A ball before a wall, in the layout of 7-Scenes."""
        to = self.folder / folder
        to.mkdir()
        for i in range(n):
            shot = shoot(i)
            (to / f"frame-{i:06}.depth.png").write_bytes(shot.png)
            (to / f"frame-{i:06}.color.png").write_bytes(png_of(shot.colour))
            np.savetxt(to / f"frame-{i:06}.pose.txt", shot.matrix)
        matrix = [[CAMERA.fx, 0, CAMERA.cx], [0, CAMERA.fy, CAMERA.cy], [0, 0, 1]]
        np.savetxt(self.folder / "K.txt", matrix)

    def fragments(self) -> None:
        """The same room from two places a metre apart, with normals."""
        u, v = (g.ravel() for g in np.mgrid[-1:1:0.04, -1:1:0.04])
        one = np.ones_like(u)
        parts = [(np.c_[u, v, one * 2], [0, 0, -1]), (np.c_[u, one, v + 2], [0, -1, 0]),
                 (np.c_[one, u, v + 2], [-1, 0, 0])]  # fmt: skip
        points = np.concatenate([np.c_[p, np.broadcast_to(n, p.shape)] for p, n in parts])
        names = "x y z normal_x normal_y normal_z".split()
        head = "ply\nformat binary_little_endian 1.0\nelement vertex {}\n{}end_header\n".format(
            len(points), "".join(f"property float {n}\n" for n in names)
        )
        for i in range(2):
            moved = (points - [i, 0, 0, 0, 0, 0]).astype("<f4")
            (self.folder / f"part-{i}.ply").write_bytes(head.encode() + moved.tobytes())

    def python(self, **names: Any) -> None:
        self.terminal.names.update(np=np, voxeld=voxeld, T_map_sensor=np.eye(4), **names)

    def connected(self) -> voxeld.Client:
        with self.terminal.entered():
            return voxeld.connect()


def prepare_scenes(desk: Desk) -> None:
    desk.scans("scan.bin")
    desk.drive("drive", "bin")
    desk.poses()
    desk.network("minkunet42")
    (desk.folder / "bunny.ply").write_text(MESH)
    desk.python(
        client=desk.connected(), scan=desk.scan, origins=(0, 0, 1.5), directions=[[1, 0, 0]],
        vertices=np.eye(3, dtype=np.float32), triangles=[[0, 1, 2]],
        rgb=np.full((3, 3), 200, np.uint8),
    )  # fmt: skip


def prepare_networks(desk: Desk) -> None:
    desk.scans("000001.bin")
    desk.terminal.copy("configs/networks/second.json")
    # The text makes the folder, which the daemon has been given as its networks_dir.
    (desk.folder / "networks").rmdir()


def prepare_python(desk: Desk) -> None:
    desk.scans()
    desk.network("minkunet42")
    desk.python()


def prepare_voxelctl(desk: Desk) -> None:
    desk.scans("000001.bin")
    desk.drive("scans", "pcd")
    desk.drive("drive", "pcd")
    desk.poses()
    desk.network("minkunet42")
    desk.images("7scenes", 4)
    shutil.copytree(desk.folder / "7scenes", desk.folder / "images")
    desk.fragments()
    desk.terminal.copy("tests/data/files/v2_f3.las", "scan.las")
    desk.terminal.run("voxelctl", "volume", "run", "7scenes", "--intrinsics", "K.txt", "--colour",
                      "--size", "0.05", "--name", "statue")  # fmt: skip


def prepare_c(desk: Desk) -> None:
    """The library as `cmake --install` brings it, and the whole program beside."""
    prefix = desk.folder / "installed"
    for component in ("lib", "dev"):
        desk.terminal.run("cmake", "--install", BIN.parent, "--prefix", prefix,
                          "--component", component)  # fmt: skip
    (folder,) = prefix.rglob("pkgconfig")
    desk.terminal.environment["PKG_CONFIG_PATH"] = str(folder)
    desk.terminal.copy("client/examples/voxelize.c", "voxelize.c")


def prepare_proto(desk: Desk) -> None:
    desk.terminal.copy("tests/data/spconv_benchmark_pc.npy")


def nothing(desk: Desk) -> None:
    pass


# --- what the blocks in JSON are ------------------------------------------------------------------


def check_defaults(terminal: Terminal, daemon: Daemon, block: Block) -> None:
    """voxelctl takes it as the user's defaults: its address is where it looks for the daemon."""
    home = terminal.folder / "home/.config"
    home.mkdir(parents=True, exist_ok=True)
    (home / "voxeld.json").write_text(block.text)
    (home / "voxeld.token").write_text("secret\n")
    given = {k: v for k, v in terminal.environment.items() if k != "VOXELD_URL"}
    for words, code in ((("--url", daemon.ipc), 0), (("--timeout", "0.2"), 1)):
        done = subprocess.run(["voxelctl", "status", *words], cwd=terminal.folder, env=given,
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == code, (done.stdout, done.stderr)
    assert "tcp://robot:8421" in done.stderr


def check_error(terminal: Terminal, daemon: Daemon, block: Block) -> None:
    """The daemon answers so, but for the number of the request."""
    shown = json.loads(block.text)
    size = '{"clouds": [{}], "size": {"x": 0.1, "y": -0.1, "z": 0.1}}'
    url = f"http://127.0.0.1:{daemon.http_port}/v1/voxelize"
    said = json.loads(terminal.run(
        shutil.which("curl") or "curl", "-s", "-H", "Content-Type: application/json", "-d", size,
        url))  # fmt: skip
    del said["request_id"], shown["request_id"]
    assert said == shown


CHECKS: dict[str, Callable[[Terminal, Daemon, Block], None]] = {
    "client/voxelctl/README.md": check_defaults,
    "proto/README.md": check_error,
}
RUN: dict[str, Callable[[Desk], None]] = {
    "client/NETWORKS.md": prepare_networks,
    "client/SCENES.md": prepare_scenes,
    "client/c/README.md": prepare_c,
    "client/python/README.md": prepare_python,
    "client/voxelctl/README.md": prepare_voxelctl,
    "configs/README.md": nothing,
    "proto/README.md": prepare_proto,
}


@pytest.mark.skipif(SANITIZE != "", reason="its commands have deadlines for plain builds")
@pytest.mark.parametrize("name", RUN)
def test_commands_of_a_document_run_in_their_order(directory: Path, name: str) -> None:
    work = directory / "w"
    networks = work / "networks"
    networks.mkdir(parents=True)
    with running(directory / "e"):
        pass
    (work / "DATA_DIR").symlink_to(directory / "e" / "data")  # that no daemon uses any more
    with running(directory / "d", {"networks_dir": str(networks), "limits": LIMITS}) as daemon:
        terminal = Terminal.beside(work, daemon)
        RUN[name](Desk(terminal))
        for block in blocks_of(name):
            if block.language == "" or exception(block):
                continue
            print(block)
            if block.language == "json":
                CHECKS[name](terminal, daemon, block)
            else:
                print(terminal.run_block(block))
        if "client" in terminal.names:
            terminal.names["client"].close()


def test_no_document_has_a_block_that_nothing_runs() -> None:
    listed = [n for n in documents() if not n.startswith(RESULTS)]
    if not listed:
        pytest.skip("needs the list of files that git keeps")
    blocks = [b for name in listed for b in blocks_of(name) if b.language and b.text.strip()]
    assert len(blocks) > 60
    left = [str(b) for b in blocks if b.document not in RUN and b.document not in ELSEWHERE
            and exception(b) is None]  # fmt: skip
    assert left == [], "run them here, or say in NOT_HERE what runs them"
    used = {exception(b) for b in blocks}
    assert set(NOT_HERE) - used == set(), "these blocks are there no more"


def test_documents_that_repeat_the_readme_build_say_the_same() -> None:
    ours, theirs = (next(b.text for b in blocks_of(name, "sh") if b.begin.startswith("cmake -S . "))
                    for name in ("README.md", "deploy/BUILDING.md"))  # fmt: skip
    assert ours == theirs
