# SPDX-License-Identifier: Apache-2.0
"""The commands and programs of README.md run as they stand there, in their order, once each,
against one daemon, in an empty home and a copy of what they read of the tree. What installs or
builds is left to the long tier (tests/integration/deploy/test_first_hour.py)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
from documents import LIMITS, Block, Terminal, blocks_of, section_of
from harness import BIN, SANITIZE, SOURCE, record, running
from PIL import Image

README = "README.md"
NETWORK = "configs/networks/minkunet42.json"
READ = ("tests/data/spconv_benchmark_pc.npy", "configs/networks/svtnet.json", NETWORK)
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
SEMANTIC = section_of(README, "A semantic map", "sh")
BUILT = [*section_of(README, "Two commands", "sh"), *section_of(README, "Run it", "sh")]


def run_c(terminal: Terminal, block: Block) -> str:
    source = terminal.folder / "readme.c"
    source.write_text(C_PROGRAM.format(body=block.text))
    include = SOURCE / "client/c/include"
    library = BIN.parent / "lib"
    terminal.run("cc", "-std=c11", "-Wall", "-Werror", f"-I{include}", source, f"-L{library}",
                 "-lvoxeld", f"-Wl,-rpath,{library}", "-o", "readme")  # fmt: skip
    return terminal.run(terminal.folder / "readme")


def left_out(block: Block) -> bool:
    """A sanitizer's build takes minutes for the network, and its library needs a runtime."""
    return SANITIZE != "" and (block in SEMANTIC or block.language == "c")


class Hour:
    """What the blocks printed, and the folder that they ran in."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.printed: dict[Block, str] = {}

    def run(self, block: Block) -> None:
        run = run_c if block.language == "c" else Terminal.run_block
        self.printed[block] = run(self.terminal, block)

    def of(self, section: str, language: str) -> list[str]:
        return [self.printed[b] for b in section_of(README, section, language)]


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hour]:
    folder = tmp_path_factory.mktemp("r")
    config = {"networks_dir": str(folder / "configs/networks"), "limits": LIMITS}
    with running(tmp_path_factory.mktemp("d"), config) as daemon:
        terminal = Terminal.beside(folder, daemon)
        for name in READ:
            terminal.copy(name)
        hour = Hour(terminal)
        for block in blocks_of(README):
            if block.language != "" and block not in BUILT and not left_out(block):
                began = time.monotonic()
                hour.run(block)
                if block in SEMANTIC:
                    record("a semantic map by README.md's commands, of a daemon that runs",
                           time.monotonic() - began, "s")  # fmt: skip
        yield hour


def test_readme_shows_what_the_first_command_prints(hour: Hour) -> None:
    (shown,) = (b for b in blocks_of(README, "") if b.begin.startswith("$ "))
    command, answer = shown.text.splitlines()
    counts = answer.split(":")[0]
    assert hour.terminal.run("sh", "-c", command.removeprefix("$ ")).startswith(counts)


def test_readme_commands_run_in_their_order(hour: Hour) -> None:
    _, curls = hour.of("Use it", "sh")
    for made in ("voxels.ply", "yard.ply", "place.npy", "voxels.safetensors"):
        assert (hour.terminal.folder / made).stat().st_size > 0, made
    assert '"nVoxels":' in curls


def test_readme_python_runs_after_the_commands(hour: Hour) -> None:
    (printed,) = hour.of("Use it", "python")
    assert "voxels from 198130 points" in printed
    assert "points in it" in printed


@pytest.mark.skipif(SANITIZE != "", reason="the network takes minutes in a sanitizer's build")
def test_readme_makes_a_coloured_semantic_map(hour: Hour) -> None:
    (printed,) = hour.of("A semantic map", "sh")
    assert re.search(r"streets: version 2: 198,130 of 198,130 points", printed)
    labels = json.loads((SOURCE / NETWORK).read_text())["outputs"][0]["labels"]
    assert re.search(rf"m, at .* m, voxel .*, material \d+ ({'|'.join(labels)})$", printed, re.M)
    picture = Image.open(hour.terminal.folder / "streets.png").convert("RGB")
    colours = {colour for _, colour in picture.getcolors(1 << 24)}
    assert len(colours) > 50  # shaded colours of several materials and the sky


@pytest.mark.skipif(SANITIZE != "", reason="the library needs the sanitizer's runtime")
def test_readme_c_compiles_and_runs(hour: Hour) -> None:
    (printed,) = hour.of("Use it", "c")
    assert printed.startswith("125565 voxels")
