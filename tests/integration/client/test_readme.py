# SPDX-License-Identifier: Apache-2.0
"""The commands and programs of README.md run as they stand there, in their order, against one
daemon, in an empty home and a copy of what they read of the tree. What installs or builds is left
to the long tier. So do the commands of every other text that says <!-- runnable -->."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import BIN, SANITIZE, SLOW, SOURCE, Daemon, running
from PIL import Image

README = (SOURCE / "README.md").read_text()
# These install or build, in the order in which they stand in README.md: the long tier runs them
# (tests/integration/deploy/test_first_hour.py).
BUILDS = ("deploy/quickstart.sh ", "cmake -S . -B build ")
READ = (
    "tests/data/spconv_benchmark_pc.npy",
    "configs/networks/svtnet.json",
    "configs/networks/minkunet42.json",
)
# The README has the default address, but a test's daemon has any free port. What the server
# refuses must fail here.
CURL = """#!/bin/sh
for word; do
    shift
    set -- "$@" "$(printf %s "$word" | sed 's#http://localhost:8420#http://127.0.0.1:{port}#')"
done
exec {curl} --fail --silent --show-error "$@"
"""
C_PROGRAM = """#include <stdio.h>
#include <voxeld.h>
int main(void)
{{
    struct voxeld_client *client = NULL;
    struct voxeld_cloud *scan = NULL;
    struct voxeld_voxels *voxels = NULL;
    struct voxeld_error error = {{0}};
{body}
    printf("%zu voxels\\n", voxels != NULL ? voxels->n_voxels : 0);
    voxeld_voxels_free(voxels);
    voxeld_cloud_free(scan);
    voxeld_close(client);
    return 0;
}}
"""


def blocks(section: str, language: str) -> list[str]:
    """Returns the code blocks of a section, in their order."""
    text = re.split(r"^## ", README, flags=re.MULTILINE)
    body = next(part for part in text if part.startswith(section + "\n"))
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
    found = [block for marked, block in fenced if marked == language]
    assert found, f"no {language} in {section}"
    return found


class Terminal:
    """A folder like the top of the source tree, and what a user's shell has set."""

    def __init__(self, folder: Path, daemon: Daemon) -> None:
        self.folder = folder
        programs = folder / "programs"
        programs.mkdir()
        for name in READ:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, folder / name)
        curl = programs / "curl"
        curl.write_text(CURL.format(port=daemon.http_port, curl=shutil.which("curl")))
        curl.chmod(0o755)
        home = folder / "home"
        home.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "VOXELD_"))}
        self.environment = {
            **kept,
            "HOME": str(home),
            "PATH": f"{programs}:{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(SOURCE / "client/python"),
            "VOXELD_URL": daemon.ipc,
        }

    def run(self, *command: str | Path) -> str:
        """Returns what the command prints. It repeats the command where a busy machine let its
        deadline pass, because a user's commands give no longer one, or where it is expected to."""
        for _ in range(8):
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=60 * SLOW,
                check=False,
            )
            if done.returncode == 0 or not re.search(
                "DEADLINE|takes at least", done.stdout + done.stderr
            ):
                break
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("r")
    config = {"networks_dir": str(folder / "configs/networks")}
    with running(tmp_path_factory.mktemp("d"), config) as daemon:
        yield Terminal(folder, daemon)


def test_readme_shows_what_the_first_command_prints(terminal: Terminal) -> None:
    (shown,) = (b for b in blocks("Two commands", "") if b.startswith("$ "))
    command, answer = shown.splitlines()
    counts = answer.split(":")[0]
    assert terminal.run("sh", "-c", command.removeprefix("$ ")).startswith(counts)


def test_readme_commands_run_in_their_order(terminal: Terminal) -> None:
    printed = [terminal.run("bash", "-euc", block) for block in blocks("Use it", "sh")]
    assert len(printed) == 2
    for made in ("voxels.ply", "yard.ply", "place.npy", "voxels.safetensors"):
        assert (terminal.folder / made).stat().st_size > 0, made
    assert '"nVoxels":' in printed[1]


def test_readme_python_runs_after_the_commands(terminal: Terminal) -> None:
    (program,) = blocks("Use it", "python")
    printed = terminal.run(sys.executable, "-c", program)
    assert "voxels from 198130 points" in printed
    assert "points in it" in printed


@pytest.mark.skipif(SANITIZE != "", reason="the network takes minutes in a sanitizer's build")
def test_readme_makes_a_coloured_semantic_map(terminal: Terminal) -> None:
    (block,) = blocks("A semantic map", "sh")
    began = time.monotonic()
    printed = terminal.run("bash", "-euc", block)
    print(f"a coloured semantic map by the README's commands: {time.monotonic() - began:.1f} s")
    assert re.search(r"streets: version 2: 198,130 of 198,130 points", printed)
    labels = json.loads((SOURCE / READ[2]).read_text())["outputs"][0]["labels"]
    assert re.search(rf"m, at .* m, voxel .*, material \d+ ({'|'.join(labels)})$", printed, re.M)
    picture = Image.open(terminal.folder / "streets.png").convert("RGB")
    colours = {colour for _, colour in picture.getcolors(1 << 24)}
    assert len(colours) > 50  # shaded colours of several materials and the sky


@pytest.mark.skipif(SANITIZE != "", reason="the library needs the sanitizer's runtime")
def test_readme_c_compiles_and_runs(terminal: Terminal) -> None:
    (body,) = blocks("Use it", "c")
    source = terminal.folder / "readme.c"
    source.write_text(C_PROGRAM.format(body=body))
    include = SOURCE / "client/c/include"
    library = BIN.parent / "lib"
    if not (library / "libvoxeld.so").exists():
        pytest.skip("the library is not beside the programs")
    terminal.run("cc", "-std=c11", "-Wall", "-Werror", f"-I{include}", source, f"-L{library}",
                 "-lvoxeld", f"-Wl,-rpath,{library}", "-o", "readme")  # fmt: skip
    assert terminal.run(terminal.folder / "readme").startswith("125565 voxels")


def test_readme_has_no_commands_that_nothing_runs() -> None:
    fenced = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    run_here = blocks("Use it", "sh") + blocks("A semantic map", "sh")
    left = [block for block in fenced if block not in run_here]
    assert [block.startswith(begin) for block, begin in zip(left, BUILDS, strict=True)] == [
        True
    ] * len(BUILDS), left


def runnable() -> list[str]:
    """Names the other texts that say that their commands run."""
    texts = subprocess.run(
        ["git", "-C", SOURCE, "ls-files", "*.md"], capture_output=True, text=True, check=False
    ).stdout.split()
    mark = "<!-- runnable -->"
    return [name for name in texts if mark in (SOURCE / name).read_text().splitlines()]


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


def make_recording(folder: Path) -> None:
    """What the texts take for granted: scans, a mesh, a short drive and its poses."""
    points = np.load(SOURCE / READ[0])[::100, :3]
    scan = np.concatenate([points, np.ones((len(points), 1))], 1).astype("<f4")
    scan.tofile(folder / "scan.bin")
    np.save(folder / "scan.npy", scan)
    (folder / "bunny.ply").write_text(MESH)
    pose = "1 0 0 {} 0 1 0 0 0 0 1 0\n"
    (folder / "poses.txt").write_text("".join(pose.format(i) for i in range(2)))
    (folder / "drive").mkdir()
    for i in range(2):
        scan[i::2].tofile(folder / "drive" / f"{i:06}.bin")


@pytest.mark.skipif(SANITIZE != "", reason="its commands have deadlines for plain builds")
@pytest.mark.parametrize("name", runnable())
def test_commands_of_runnable_texts_run_in_their_order(directory: Path, name: str) -> None:
    work = directory / "w"
    work.mkdir()
    networks = work / "networks"
    networks.mkdir()
    shutil.copy(SOURCE / "configs/networks/minkunet42.json", networks)
    with running(directory / "e"):
        pass
    (work / "DATA_DIR").symlink_to(directory / "e" / "data")  # that no daemon uses any more
    config = {"networks_dir": str(networks), "limits": {"max_timeout_ms": int(600000 * SLOW)}}
    with running(directory / "d", config) as daemon:
        terminal = Terminal(work, daemon)
        make_recording(work)
        terminal.run("voxelctl", "convert", "scan.npy", "scan.pcd")
        terminal.run("voxelctl", "net", "init", "networks/minkunet42.json")
        terminal.run("voxelctl", "net", "load", "minkunet42", "--precision", "fp32")
        text = (SOURCE / name).read_text()
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            print(terminal.run("bash", "-euc", block))
