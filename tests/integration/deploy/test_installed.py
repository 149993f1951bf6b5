# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` brings: other programs build against it, operators find the rest."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import BIN, SANITIZE, SLOW, SOURCE, Daemon

pytestmark = pytest.mark.skipif(
    bool(SANITIZE), reason="what a sanitizer's build installs is for nobody"
)
EXAMPLE = SOURCE / "gpu" / "examples"
VOXELS = "3 voxels from 6 points\n(-1, 0, 0) of 1 points\n(0, 0, 0) of 2 points\n"


def run(*command: object, **more: str) -> str:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=300 * SLOW,
        check=False, env={**os.environ, **more},
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build, installed and moved to another place."""
    first = tmp_path_factory.mktemp("i") / "first"
    run("cmake", "--install", BIN.parent, "--prefix", first)
    return first.rename(first.parent / "moved here")


def test_engine_is_found_by_cmake(installed: Path, directory: Path) -> None:
    run("cmake", "-S", EXAMPLE, "-B", directory, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={installed}")  # fmt: skip
    run("cmake", "--build", directory)
    assert run(directory / "voxels").startswith(VOXELS)


def pkg_config(installed: Path, *words: str) -> list[str]:
    (folder,) = installed.rglob("pkgconfig")
    shown = run("pkg-config", *words, PKG_CONFIG_PATH=str(folder))
    return [word.replace("\\ ", " ") for word in re.split(r"(?<!\\) ", shown.strip())]


def test_engine_is_found_by_pkg_config(installed: Path, directory: Path) -> None:
    words = pkg_config(installed, "--cflags", "--libs", "--static", "voxeld-engine")
    run("cc", EXAMPLE / "voxels.c", *words, "-o", directory / "voxels")
    assert run(directory / "voxels").startswith(VOXELS)


def test_every_header_of_the_engine_compiles_by_itself(installed: Path) -> None:
    root = installed / "include" / "voxeld-engine"
    headers = [p.relative_to(root).as_posix() for p in root.rglob("*.h")]
    assert len(headers) > 20
    text = "".join(f'#include "{h}"\n' for h in headers)
    for language, standard in (("c", "c11"), ("c++", "c++17")):
        subprocess.run(
            ["cc", "-x", language, f"-std={standard}", "-fsyntax-only", "-I", root, "-"],
            input=text, text=True, check=True, timeout=60 * SLOW,
        )  # fmt: skip


def test_client_is_found_by_pkg_config(installed: Path, directory: Path) -> None:
    words = pkg_config(installed, "--cflags", "--libs", "voxeld")
    (library,) = installed.rglob("libvoxeld.so")
    run("cc", SOURCE / "client/examples/voxelize.c", *words, f"-Wl,-rpath,{library.parent}",
        "-o", directory / "voxelize")  # fmt: skip
    assert run("ldd", directory / "voxelize").count(str(library.parent)) == 1


def test_operators_find_configuration_units_and_manuals(installed: Path) -> None:
    share = installed / "share"
    run(installed / "bin/voxeld", "--check-config", share / "voxeld/voxeld.json")
    networks = {p.stem for p in (share / "voxeld/networks").glob("*.json")}
    assert networks == {p.stem for p in (SOURCE / "configs/networks").glob("*.json")}
    run("python3", "-m", "py_compile", *(share / "voxeld/import").glob("*.py"))
    for name in ("LICENSE", "CONFIGURATION.md", "SCENES.md", "NETWORKS.md"):
        assert (share / "doc/voxeld" / name).stat().st_size > 0
    page = (share / "man/man8/voxeld.8").read_text().replace("\\-", "-")
    shown = run(installed / "bin/voxeld", "--help")
    for flag in re.findall(r"^    (--[a-z-]+)", shown, re.MULTILINE):
        assert flag in page
    unit = (installed / "lib/systemd/system/voxeld.service").read_text()
    assert "=/usr/bin/voxeld" not in unit and "/bin/voxeld --config" in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_unit_is_confined() -> None:
    unit = SOURCE / "deploy" / "voxeld.service"
    shown = run("systemd-analyze", "security", "--offline=true", unit)
    found = re.search(r"Overall exposure level for voxeld.service: ([0-9.]+)", shown)
    assert found is not None and float(found[1]) <= 2.0, shown


def test_shipped_configurations_are_ones_the_daemon_takes(tmp_path: Path) -> None:
    """With folders of ours in the places of those that are there once it is deployed."""
    found = [p for p in (SOURCE / "deploy").rglob("voxeld.json")]
    assert len(found) == 3
    tokens = tmp_path / "tokens"
    tokens.write_text(f"robot read {'0' * 64}\n")
    tokens.chmod(0o600)
    places = {
        "/var/lib/voxeld": tmp_path / "data",
        "/opt/voxeld/configs/networks": SOURCE / "configs" / "networks",
        "/etc/voxeld-tokens/tokens": tokens,
    }
    moved = tmp_path / "voxeld.json"
    for path in found:
        text = path.read_text()
        for place, here in places.items():
            text = text.replace(f'"{place}"', f'"{here}"')
        moved.write_text(text)
        assert run(BIN / "voxeld", "--check-config", moved) == "ok\n"
        grace = json.loads(path.read_text()).get("drain", {})
        # Kubernetes waits for 120 s, and a stop writes snapshots for 60.
        assert grace.get("grace_ms", 0) + grace.get("timeout_ms", 0) < 60000


def test_demo_finds_its_scan(installed: Path, daemon: Daemon, directory: Path) -> None:
    ctl = installed / "bin" / "voxelctl"
    picture = directory / "demo.png"
    text = run(ctl, "demo", "--url", daemon.ipc, "--out", picture)
    assert f"$ voxelctl voxelize '{installed}/share/voxeld/demo/scan.npy' --size 0.1" in text
    assert "125,565 voxels" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
