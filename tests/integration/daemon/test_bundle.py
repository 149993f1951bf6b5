# SPDX-License-Identifier: Apache-2.0
"""deploy/bundle.sh: what it packs runs where nothing of ours is installed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from harness import BIN, SANITIZE, SLOW, SOURCE

pytestmark = pytest.mark.skipif(
    bool(SANITIZE), reason="a bundle of a sanitizer's build is for nobody"
)

SCAN = SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy"
RANGE = "-80,-80,-2,80,80,6"
N_VOXELS = 125562  # spconv's own count for that scan and range at 0.1 m
# All that the bundle may take from where it runs.
GLIBC = re.compile(
    r"(ld-linux[-\w]*|lib(c|m|pthread|dl|rt|resolv|util)|linux-vdso)\.so\.\d+"
)


def make(out: Path) -> Path:
    done = subprocess.run(
        [SOURCE / "deploy" / "bundle.sh", "--from", BIN.parent, "--out", out],
        capture_output=True, text=True, timeout=600 * SLOW, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.split() == [str(out)]
    return out


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("b") / "voxeld.tar.gz")


def unpack(archive: Path, under: Path) -> Path:
    subprocess.run(["tar", "-xzf", archive, "-C", under], check=True)
    (root,) = under.iterdir()
    return root


@pytest.fixture(scope="module")
def bundle(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(archive, tmp_path_factory.mktemp("b"))


def elf_files(bundle: Path) -> list[Path]:
    files = [p for p in bundle.rglob("*") if p.is_file() and not p.is_symlink()]
    return [p for p in files if p.read_bytes()[:4] == b"\x7fELF"]


@contextlib.contextmanager
def daemon(command: Sequence[object], socket: Path, env: dict[str, str]) -> Iterator[None]:
    """Runs the daemon of a bundle, until SIGTERM ends it with 0; socket is its path on this side.
    """
    process = subprocess.Popen(
        [str(c) for c in command], env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + 60 * SLOW
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                pytest.fail("did not start: " + process.communicate()[1])
            time.sleep(0.02)
        yield
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=30 * SLOW)[1]
        assert process.returncode == 0, log
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def voxelize(command: Sequence[object], url: str, scan: object, env: dict[str, str]) -> int:
    done = subprocess.run(
        [
            *(str(c) for c in command), "--url", url, "voxelize", str(scan),
            "--size", "0.1", "--range", RANGE, "--json",
        ],
        capture_output=True, text=True, timeout=60 * SLOW, check=False, env=env,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return int(json.loads(done.stdout)["n_voxels"])


def test_bundle_made_twice_is_the_same_file(archive: Path, directory: Path) -> None:
    assert make(directory / "again.tar.gz").read_bytes() == archive.read_bytes()


def test_bundle_of_a_folder_without_a_build_is_refused(directory: Path) -> None:
    out = directory / "none.tar.gz"
    done = subprocess.run(
        [SOURCE / "deploy" / "bundle.sh", "--from", directory, "--out", out],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no build" in done.stderr
    assert not out.exists()


def test_bundle_needs_nothing_but_itself_and_glibc(bundle: Path) -> None:
    files = elf_files(bundle)
    assert {"voxeld", "voxelctl", "bench_load", "libvoxeld.so.0.3.0"} <= {f.name for f in files}
    for file in files:
        done = subprocess.run(
            ["/usr/bin/ldd", file], capture_output=True, text=True, env={}, check=True
        )
        for line in done.stdout.splitlines():
            name, _, path = line.strip().partition(" => ")
            if not GLIBC.fullmatch(name.split()[0].rsplit("/", 1)[-1]):
                assert str(Path(path.split(" (")[0]).resolve()).startswith(
                    str(bundle.resolve())
                ), (file, line)


def test_bundle_has_a_licence_of_each_library(bundle: Path) -> None:
    licenses = {p.name: p for p in (bundle / "licenses").iterdir() if p.is_file()}
    for file in elf_files(bundle / "lib"):
        stem = file.name.split(".so")[0].replace("_", "-")
        if stem == "libvoxeld":
            continue
        # Debian names a library's package after the library.
        package = {"libz": "zlib1g"}.get(stem, stem)
        texts = [p for name, p in licenses.items() if name.startswith(package)]
        assert texts, (file.name, sorted(licenses))
        assert all("opyright" in p.read_text(errors="replace") for p in texts)
    assert (bundle / "LICENSE").read_bytes() == (SOURCE / "LICENSE").read_bytes()
    assert (bundle / "NOTICE").read_bytes() == (SOURCE / "deploy/NOTICE").read_bytes()


def test_bundle_checks_its_own_configuration(bundle: Path) -> None:
    done = subprocess.run(
        [bundle / "bin" / "voxeld", "--check-config", bundle / "configs" / "voxeld.json"],
        capture_output=True, text=True, env={}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stderr


def test_moved_bundle_with_an_empty_environment_voxelizes(
    archive: Path, directory: Path
) -> None:
    moved = directory / "else where"
    (directory / "x").mkdir()
    unpack(archive, directory / "x").rename(moved)
    socket = directory / "v.sock"
    url = f"ipc://{socket}"
    command = [moved / "bin" / "voxeld", "--backend", "cpu", "--rpc", url, "--http", ""]
    with daemon(command, socket, {}):
        assert voxelize([moved / "bin" / "voxelctl"], url, SCAN, {}) == N_VOXELS
        done = subprocess.run(
            [
                moved / "bin" / "voxelctl", "--url", url, "--json", "bench", "--count", "5",
                "--points", "1000", "--warmup", "0", "--timeout", str(30 * SLOW),
            ],
            capture_output=True, text=True, timeout=60 * SLOW, check=False, env={},
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert json.loads(done.stdout)["steps"][0]["methods"][0]["ok"] == 5


def bare_root(root: Path) -> None:
    """A root file system of glibc alone: no shell, no /proc, no other library."""
    found = subprocess.run(
        ["ldconfig", "-p"], capture_output=True, text=True, check=True,
        env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"},
    ).stdout  # fmt: skip
    for name in ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"):
        match = re.search(rf"^\s{re.escape(name)} \(libc6,x86-64.*=> (.*)$", found, re.M)
        assert match is not None, name
        target = root / "lib" / "x86_64-linux-gnu" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(match[1], target)
    (root / "lib64").mkdir()
    shutil.copy("/lib64/ld-linux-x86-64.so.2", root / "lib64")
    (root / "tmp").mkdir()
    (root / "dev").mkdir()
    # A file stands in for the device, which not every root may make.
    (root / "dev" / "urandom").write_bytes(os.urandom(4096))


@pytest.mark.skipif(
    os.geteuid() != 0 or os.uname().machine != "x86_64", reason="chroot is for root"
)
def test_bundle_in_a_root_of_glibc_alone_voxelizes(archive: Path, directory: Path) -> None:
    root = directory / "r"
    bare_root(root)
    (root / "opt").mkdir()
    inside = Path("/opt") / unpack(archive, root / "opt").name / "bin"
    shutil.copy(SCAN, root / "tmp" / "scan.npy")
    chroot = [shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin"), root]
    # The loader asks /proc where a program lies, unless this names it.
    env = {"LD_ORIGIN_PATH": str(inside)}
    url = "ipc:///tmp/v.sock"
    command = [
        *chroot, inside / "voxeld", "--backend", "cpu", "--rpc", url, "--http", "",
    ]  # fmt: skip
    with daemon(command, root / "tmp" / "v.sock", env):
        assert (
            voxelize([*chroot, inside / "voxelctl"], url, "/tmp/scan.npy", env) == N_VOXELS
        )
