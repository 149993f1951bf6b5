# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` brings: other programs build against it, operators find the rest."""

from __future__ import annotations

import json
import os
import re
import shlex
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


CLIENT_PROJECT = """cmake_minimum_required(VERSION 3.22)
project(strangers C)
find_package(voxeld REQUIRED)
add_executable(voxelize "{source}")
target_link_libraries(voxelize PRIVATE voxeld::voxeld)
"""


def test_client_is_found_by_cmake(installed: Path, directory: Path) -> None:
    source = SOURCE / "client/examples/voxelize.c"
    (directory / "CMakeLists.txt").write_text(CLIENT_PROJECT.format(source=source))
    run("cmake", "-S", directory, "-B", directory / "b", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", directory / "b")
    assert "libvoxeld.so" in run("ldd", directory / "b/voxelize")


def commands(installed: Path) -> list[str]:
    shown = run(installed / "bin/voxelctl", "--help")
    listed = shown.split("commands (")[1].split("options, before")[0]
    return re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)


def test_every_manual_page_is_there_and_is_one(installed: Path) -> None:
    man = installed / "share/man"
    pages = {p.name for p in man.glob("man1/*.1")}
    assert pages == {p.name for p in (SOURCE / "client/voxelctl").rglob("*.1")}
    assert {f"voxelctl-{n}.1" for n in ("map", "odometry", "posegraph", "refine", "slac", "token",
                                        "volume")} | {"voxelctl.1"} <= pages  # fmt: skip
    assert [p.name for p in man.glob("man8/*")] == ["voxeld.8"]
    for page in [*man.glob("man1/*"), *man.glob("man8/*")]:
        text = page.read_text().replace("\\-", "-")
        assert re.search(rf'^\.TH "?{page.stem}"? "?{page.suffix[1:]}"?', text, re.M | re.I), page
        assert re.search(rf"^\.SH NAME\n{page.stem} ", text, re.M), page
        if shutil.which("groff") is not None:
            done = subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True,
                timeout=60 * SLOW, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, ""), page
    page = (man / "man1/voxelctl.1").read_text().replace("\\-", "-")
    assert [c for c in commands(installed) if not re.search(rf"^\.B {c}$", page, re.M)] == []


SHELLS = {
    "bash": "bash-completion/completions/voxelctl",
    "zsh": "zsh/site-functions/_voxelctl",
    "fish": "fish/vendor_completions.d/voxelctl.fish",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_where_the_shell_looks_and_knows_every_command(
    installed: Path, shell: str
) -> None:
    path = installed / "share" / SHELLS[shell]
    text = path.read_text()
    assert [c for c in commands(installed) if not re.search(rf"\b{c}\b", text)] == []
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    run(shell, "-n", path)
    if shell == "bash":
        script = (
            'source "$0"; words=$(complete -p voxelctl); function=${words##*-F }; '
            "COMP_WORDS=(voxelctl posegr); COMP_CWORD=1; COMP_LINE='voxelctl posegr'; "
            'COMP_POINT=15; ${function%% *} voxelctl posegr voxelctl; echo "${COMPREPLY[*]}"'
        )
        assert run("bash", "--norc", "-c", script, path).split() == ["posegraph"]
    elif shell == "fish":
        found = run("fish", "--no-config", "-c",
                    f"source {shlex.quote(str(path))}; complete -C 'voxelctl posegr'")  # fmt: skip
        assert found.split()[0] == "posegraph"


def test_notices_name_every_work_of_others(installed: Path) -> None:
    doc = installed / "share/doc/voxeld"
    assert (doc / "LICENSE").read_bytes() == (SOURCE / "LICENSE").read_bytes()
    notice = " ".join((doc / "NOTICE").read_text().split())
    debian = " ".join((SOURCE / "deploy/debian/copyright").read_text().split())
    foreign = {
        "tests/data/spconv_benchmark_pc.npy": ("2021 Yan Yan", "Apache"),
        "server/transport/foxglove/schema/foxglove": ("Foxglove Technologies Inc", "Expat"),
        "server/transport/foxglove/schema/google": ("2008 Google Inc.", "BSD-3-Clause"),
    }
    for path, (owner, licence) in foreign.items():
        assert (SOURCE / path).exists() and path in notice and owner in notice, path
        assert re.search(rf"Files: {path}\S* Copyright: {owner} License: {licence}", debian), path
    for text in (notice, debian.replace(" . ", " ")):
        assert "Permission is hereby granted, free of charge" in text
        assert "Neither the name of Google Inc. nor" in text
    scan = installed / "share/voxeld/demo/scan.npy"
    assert scan.read_bytes() == (SOURCE / "tests/data/spconv_benchmark_pc.npy").read_bytes()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_units_are_ones_that_systemd_takes(directory: Path) -> None:
    """With the daemon of this build in the place of the installed one, and without podman, any."""
    programs = {"/usr/bin/voxeld": BIN / "voxeld",
                "/usr/bin/podman": shutil.which("podman") or "/bin/true"}  # fmt: skip
    units = [SOURCE / "deploy/voxeld.service", SOURCE / "deploy/voxeld.socket",
             SOURCE / "deploy/image/voxeld-container.service"]  # fmt: skip
    places = []
    for unit in units:
        text = unit.read_text()
        for program, here in programs.items():
            text = text.replace(program, str(here))
        places.append(directory / unit.name)
        places[-1].write_text(text)
    # What it does not know it only warns of.
    command = ["systemd-analyze", "verify", "--man=no"]
    done = subprocess.run([*command, *places], capture_output=True, text=True,
                          timeout=60 * SLOW, check=False)  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "voxeld" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
    text = places[0].read_text()
    for right, wrong in (("WatchdogSec=", "WatchdogSeconds="), ("Type=notify", "Type=notifies")):
        assert right in text
        places[0].write_text(text.replace(right, wrong))
        done = subprocess.run([*command, places[0]], capture_output=True, text=True,
                              timeout=60 * SLOW, check=False)  # fmt: skip
        assert "voxeld.service" in done.stderr, "it overlooks a mistake"


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
