# SPDX-License-Identifier: Apache-2.0
"""The Python package at a prompt, in a notebook, in a type checker and in asyncio."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
import voxeld.aio
import voxeld.shown
from harness import SLOW, SOURCE, Daemon

SCAN = SOURCE / "tests/data/spconv_benchmark_pc.npy"
NOTEBOOK = SOURCE / "client/examples/scans_and_scenes.ipynb"
TRACE = "0af7651916cd43dd8448eb211c80319c"
SNIPPETS = sorted(  # texts that have some
    str(path.relative_to(SOURCE))
    for folder in ("client", "server", "proto", "deploy", "configs", "gpu")
    for path in (SOURCE / folder).rglob("*.md")
    if "```python\n" in path.read_text()
)


def connect(daemon: Daemon) -> voxeld.Client:
    return voxeld.connect(daemon.ipc, timeout=60 * SLOW)


def test_reprs_tell_sizes_and_units(daemon: Daemon) -> None:
    scan = np.load(SCAN)
    with connect(daemon) as client:
        voxels = client.voxelize(scan, size=0.1)
        assert repr(voxels) == "Voxels(125565 voxels of 0.1 m from 198130 points)"
        html = voxels._repr_html_()
        assert "<caption>Voxels(125565 voxels of 0.1 m" in html
        assert "int32 125565 x 4" in html
        flat = client.voxelize([scan[:100], scan[:50]], size=(0.1, 0.1, 0.2))
        assert repr(flat).endswith("voxels of 0.1 x 0.1 x 0.2 m from 150 points of 2 clouds)")
        seen = client.map_create("seen", {"count": np.uint64})
        assert "'seen': 3 x int32 -> count: uint64; at ipc://" in repr(seen)
        found = seen.find(voxels.coords[:7, 1:])
        assert "found=bool 7" in repr(found)
        assert "uint64 7" in found._repr_html_()
        yard = client.scene_create("yard", 0.1, depth=10)
        assert "voxels of 0.1 m in a cube of 102.4 m; at" in repr(yard)
        assert "distances=float32 1" in repr(yard.cast_rays((0, 0, 0), [[1, 0, 0]]))
        assert repr(yard.render(size=(64, 48))) == "Picture(64 x 48 pixels of version 1)"
        kitchen = client.volume_create("kitchen", 0.02)
        assert "'kitchen': voxels of 0.02 m; at" in repr(kitchen)
        for thing in (seen, yard, kitchen):
            thing.drop()


def test_all_records_have_tables_and_results_units(daemon: Daemon) -> None:
    kinds = [getattr(voxeld, name) for name in voxeld.__all__]
    records = [k for k in kinds if isinstance(k, type) and dataclasses.is_dataclass(k)]
    assert len(records) > 80
    assert not [k.__name__ for k in records if not hasattr(k, "_repr_html_")
                and not hasattr(k, "_repr_png_")]  # fmt: skip
    points = np.load(SCAN)[:20000, :3]
    with connect(daemon) as client:
        kitchen = client.volume_create("kitchen", 0.05)
        camera = voxeld.Camera(0, 0, 50, 50, 32, 24)
        matrix = np.eye(4)  # as a pose is written everywhere else
        done = kitchen.integrate(np.full((48, 64), 2, np.float32), camera, matrix)
        assert " ms" in repr(done)
        assert "n_bytes=" in repr(kitchen.info()) and re.search(r"n_bytes=\S+ [kM]B", repr(
            kitchen.info()))  # fmt: skip
        assert "voxel_size_m=0.05 m" in repr(kitchen.info())
        surface = kitchen.extract()
        assert re.search(r"vertices=float32 \d+ x 3, m", repr(surface))
        assert "<table>" in surface._repr_html_() and "0.05 m" in kitchen._repr_html_()
        car = client.odometry_create("car", voxel_size_m=0.5, max_range_m=60)
        assert "'car': a map of voxels of 0.5 m up to 60 m away; at" in repr(car)
        assert "max_range_m" in car._repr_html_() and "60 m" in car._repr_html_()
        assert "T_map_sensor" in repr(car.register(points))
        loop = client.posegraph_create("loop")
        assert "'loop'" in repr(loop) and "<table>" in loop._repr_html_()
        loop.add(nodes=[voxeld.PosegraphNode(0)])
        assert "B" in dict(voxeld.shown.members_of(loop.info()))["n_bytes"]
        with pytest.raises(voxeld.NotFound, match="no alignment"):
            client.slac_progress("bent")
        assert "elapsed_s" in {f.name for f in dataclasses.fields(voxeld.SlacProgress)}
        seen = client.map_create("boxes", {"count": np.uint64})
        yard = client.scene_create("lawn", 0.1)
        for handle in (seen, yard, kitchen, car, loop):
            assert client.url in handle._repr_html_()
            handle.drop()
        assert re.search(r"resident_bytes=\S+ [MG]B", repr(client.status()))


def test_key_errors_say_what_there_is(daemon: Daemon) -> None:
    with connect(daemon) as client:
        seen = client.map_create("counted", {"count": np.uint64, "sum": np.float64})
        found = seen.find([[1, 2, 3]])
        with pytest.raises(KeyError, match="no array 'cout'; there are: count, sum. Did you mean"):
            found.values["cout"]
        assert list(found.values) == ["count", "sum"]
        seen.drop()


def test_calls_without_a_timeout_take_as_long_as_the_server_allows(daemon: Daemon) -> None:
    limit_s = daemon.config["limits"]["max_timeout_ms"] / 1000
    with voxeld.connect(daemon.ipc) as client:
        assert client._timeout_s("status") == min(limit_s, 60)
        assert client.self_test(duration_ms=50).n_stages > 0
        # The server answers before the client gives up, and says more.
        with pytest.raises(voxeld.DeadlineExceeded, match="X-Voxeld-Timeout-Ms"):
            client.self_test(duration_ms=5000, timeout=1)


def test_asyncio_calls_run_beside_each_other(daemon: Daemon) -> None:
    scan = np.load(SCAN)

    async def run() -> None:
        async with await voxeld.aio.connect(daemon.ipc, timeout=60 * SLOW) as client:
            sizes = (0.1, 0.2, 0.4)
            all_voxels = await asyncio.gather(*(client.voxelize(scan, size=s) for s in sizes))
            assert [v.size[0] for v in all_voxels] == list(sizes)
            assert len(all_voxels[0]) == 125565
            yard = await client.scene_create("awaited", 0.1, track_free=True)
            assert yard.name == "awaited"
            await yard.integrate(scan, max_range=20)
            assert (await yard.info()).n_occupied > 0
            events = [e async for e in yard.watch(duration=0.2)]
            assert events
            parent = f"00-{TRACE}-b7ad6b7169203331-01"
            with voxeld.trace(parent), pytest.raises(voxeld.NotFound) as failed:
                await client.scene("nothing")
            assert (await client.why(failed.value.request_id)).trace_id == TRACE
            with pytest.raises(AttributeError):
                client.no_such_method  # noqa: B018
            await yard.drop()

    asyncio.run(run())


def test_asyncio_loop_goes_on_while_a_call_waits(daemon: Daemon) -> None:
    async def run() -> float:
        async with await voxeld.aio.connect(daemon.ipc, max_in_flight=2) as client:
            call = asyncio.ensure_future(client.self_test(duration_ms=600))
            longest = 0.0
            while not call.done():
                began = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - began)
            await call
            # More calls than max_in_flight wait for each other; none is refused.
            await asyncio.gather(*(client.server_info() for _ in range(20)))
            return longest

    assert asyncio.run(run()) < 0.5 * SLOW


def test_notebook_runs_from_top_to_bottom(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXELD_URL", daemon.ipc)
    monkeypatch.chdir(SOURCE)
    notebook = json.loads(NOTEBOOK.read_text())
    names: dict[str, Any] = {}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [] and cell["execution_count"] is None
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, NOTEBOOK.name, "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names))
    assert "Voxels(125565 voxels of 0.1 m from 198130 points)" in map(repr, shown)
    pictures = [value for value in shown if isinstance(value, voxeld.Picture)]
    assert pictures[0]._repr_png_().startswith(b"\x89PNG")


def test_snippets_of_the_readmes_pass_mypy(directory: Path) -> None:
    """Names that a snippet takes from the text around it are any."""
    programs = []
    assert {"client/SCENES.md", "client/python/README.md"} <= set(SNIPPETS)
    for name in ["README.md", *SNIPPETS]:
        text = (SOURCE / name).read_text()
        blocks = re.findall(r"^( *)```python\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
        assert blocks, name
        for i, (indent, block) in enumerate(blocks):
            code = re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
            program = directory / f"{name.replace('/', '_').removesuffix('.md')}_{i}.py"
            program.write_text(PRELUDE + code)
            programs.append(program)
    program = directory / "asyncio_example.py"
    program.write_text(ASYNCIO)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", directory / "cache",
         "--follow-imports=silent", "--ignore-missing-imports", *programs, program],
        env={**os.environ, "MYPYPATH": str(SOURCE / "client/python")},
        capture_output=True, text=True, timeout=600 * SLOW, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


PRELUDE = """from typing import Any
import numpy as np
import voxeld
client: voxeld.Client = voxeld.connect()
yard: voxeld.Scene = client.scene("yard")
voxels: voxeld.Voxels = client.voxelize(np.zeros((1, 3)), size=1)
T_map_sensor: Any = np.eye(4)
scan: Any = np.zeros((1, 3))
origins = directions = vertices = np.zeros((1, 3))
triangles: Any = np.zeros((1, 3), np.uint32)
rgb: Any = np.zeros((1, 3), np.uint8)
"""

ASYNCIO = """import asyncio
import numpy as np
import voxeld.aio

async def main() -> None:
    async with await voxeld.aio.connect() as client:
        voxels = await client.voxelize(np.zeros((1, 3)), size=0.1)
        print(len(voxels))

asyncio.run(main())
"""
