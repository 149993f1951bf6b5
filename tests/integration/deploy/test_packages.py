# SPDX-License-Identifier: Apache-2.0
"""The long tier's proofs of what is shipped: Debian packages in a bare root, the wheel, the
container's image without root and with a root that is read-only. Needs root, a network and the
packages of `deploy/packages.sh package`."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import BIN, SOURCE, record

WORK = BIN.parent / "packages"
SHOWN = "125,565 voxels from 198,130 points"
MOST_IMAGE_BYTES = 60_000_000


def mirror() -> str:
    """Returns where this machine gets its Debian packages."""
    chosen = os.environ.get("VOXELD_DEBIAN_MIRROR", "")
    sources = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                  "Codename: bookworm")  # fmt: skip
    return chosen or sources.split()[0]


def run(*command: object, timeout_s: float = 1500, **more: Any) -> str:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=timeout_s, check=False,
        **more,
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return int(s.getsockname()[1])


def get(port: int, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


@contextlib.contextmanager
def daemon(*command: object, port: int) -> Iterator[None]:
    """Runs a daemon until SIGTERM ends it in order."""
    process = subprocess.Popen([str(c) for c in command], stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                if get(port, "/v1/health/ready")[0] == 200:
                    break
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                pytest.fail("did not start: " + process.communicate()[1])
            time.sleep(0.05)
        yield
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int((children or [process.pid])[0]), signal.SIGTERM)  # bwrap passes none on
        log = process.communicate(timeout=60)[1]
        assert process.returncode == 0, log
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


# --- Debian packages and the wheel --------------------------------------------------------------


@pytest.fixture(scope="module")
def packages() -> Path:
    out = WORK / "out"
    run(SOURCE / "deploy/package.sh", "--out", out, "--build", WORK / "build",
        env={**os.environ, "PYTHON": sys.executable})  # fmt: skip
    return out


def test_packages_pass_lintian_without_errors(packages: Path) -> None:
    debs = sorted(packages.glob("*.deb"))
    names = [p.name.split("_")[0] for p in debs]
    assert names == ["libvoxeld-dev", "libvoxeld0.3", "voxelctl", "voxeld"]
    tags = run("lintian", "--allow-root", "--fail-on", "error", *debs)
    print(tags)
    for kind, mark in (("errors", "E: "), ("warnings", "W: ")):
        n = sum(line.startswith(mark) for line in tags.splitlines())
        record(f"lintian's {kind} about the packages", n, "")
    for path in (*debs, *packages.glob("*.whl")):
        record(f"size of the package {path.name}", path.stat().st_size / 1e6, "MB")


@pytest.fixture(scope="module")
def bare_root(packages: Path) -> Iterator[Path]:
    """Debian 12's smallest root, made once, copied, and the packages installed in it."""
    base = WORK / "bare"
    if not (base / "usr").exists():
        shutil.rmtree(WORK / "bare.part", ignore_errors=True)
        run("debootstrap", "--variant=minbase", "bookworm", WORK / "bare.part", mirror())
        (WORK / "bare.part").rename(base)
    root = WORK / "root"
    if os.path.ismount(root / "proc"):  # of a run that was killed
        run("umount", root / "proc")
    shutil.rmtree(root, ignore_errors=True)
    run("cp", "-a", base, root)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    for deb in packages.glob("*.deb"):
        shutil.copy(deb, root / "tmp")
    apt = "export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && apt-get -qq -y"
    run("chroot", root, "sh", "-c",
        f"{apt} --no-install-recommends install /tmp/*.deb")  # fmt: skip
    run("mount", "-t", "proc", "proc", root / "proc")  # as every machine has it
    try:
        yield root
    finally:
        run("umount", root / "proc")
    shutil.rmtree(root, ignore_errors=True)


def test_packages_in_a_bare_root_add_a_user_and_enable_the_unit(bare_root: Path) -> None:
    users = (bare_root / "etc/passwd").read_text()
    assert re.search(r"^voxeld:x:\d+:\d+:voxeld,*:/var/lib/voxeld:/usr/sbin/nologin$", users, re.M)
    wants = bare_root / "etc/systemd/system"
    assert (wants / "multi-user.target.wants/voxeld.service").is_symlink()
    assert (wants / "sockets.target.wants/voxeld.socket").is_symlink()


PROGRAM = """import sys, numpy as np, voxeld
with voxeld.connect(sys.argv[1]) as client:
    print(len(client.voxelize(np.load(sys.argv[2]), size=0.1)))
"""
DEMO_SCAN = "/usr/share/voxeld/demo/scan.npy"


@pytest.fixture(scope="module")
def wheel_in_bare_root(bare_root: Path, packages: Path) -> str:
    """The wheel, and what it needs, installed by Debian's own Python there; returns that Python."""
    wheels = bare_root / "tmp/wheels"
    (wheel,) = packages.glob("*.whl")
    run(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:",
        "--python-version", "3.11", "--dest", wheels, wheel)  # fmt: skip
    run("chroot", bare_root, "sh", "-c",
        "export DEBIAN_FRONTEND=noninteractive; apt-get -qq -y --no-install-recommends install "
        "python3-venv && python3 -m venv /opt/robot && /opt/robot/bin/pip install --quiet "
        f"--no-index --find-links /tmp/wheels /tmp/wheels/{wheel.name}")  # fmt: skip
    return "/opt/robot/bin/python"


def test_packages_and_wheel_in_a_bare_root_run_the_demo(
    bare_root: Path, wheel_in_bare_root: str
) -> None:
    chroot = ["chroot", "--userspec=voxeld:voxeld", bare_root]
    as_systemd = "mkdir -p -m 750 {0} && chown voxeld: {0}"
    run("chroot", bare_root, "sh", "-c", as_systemd.format("/run/voxeld /var/lib/voxeld"))
    port = free_port()
    url = "ipc:///run/voxeld/voxeld.sock"
    with daemon(
        *chroot, "/usr/bin/voxeld", "--config", "/etc/voxeld/voxeld.json", "--rpc", url,
        "--data-dir", "/var/lib/voxeld", "--http", f"127.0.0.1:{port}", port=port,
    ):  # fmt: skip
        shown = run(*chroot, "voxelctl", "--url", url, "demo", "--out", "/var/lib/voxeld/demo.png")
        assert SHOWN in shown and "$ voxelctl scene render" in shown
        assert (bare_root / "var/lib/voxeld/demo.png").read_bytes().startswith(b"\x89PNG")
        printed = run(*chroot, wheel_in_bare_root, "-c", PROGRAM, url, DEMO_SCAN)
        assert printed == "125565\n"


def test_packages_that_are_purged_leave_no_data(bare_root: Path) -> None:
    run("chroot", bare_root, "sh", "-c",
        "DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge voxeld")  # fmt: skip
    for left in ("var/lib/voxeld", "etc/voxeld/voxeld.json",
                 "etc/systemd/system/multi-user.target.wants/voxeld.service"):  # fmt: skip
        assert not (bare_root / left).exists() and not (bare_root / left).is_symlink()


# --- the container's image ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image() -> Path:
    out = WORK / "image.tar"
    run(SOURCE / "deploy/image/build.sh", "--from", BIN.parent, "--out", out)
    return out


def unpack(image: Path, into: Path) -> tuple[dict[str, Any], int]:
    """Unpacks the layers of an OCI archive; returns its configuration and its compressed bytes."""
    blobs = into.parent / "oci"
    blobs.mkdir()
    with tarfile.open(image) as archive:
        archive.extractall(blobs, filter="data")

    def blob(descriptor: dict[str, Any]) -> bytes:
        return (blobs / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()

    (named,) = json.loads((blobs / "index.json").read_bytes())["manifests"]
    manifest = json.loads(blob(named))
    into.mkdir()
    n_bytes = 0
    for layer in manifest["layers"]:
        data = blob(layer)
        assert hashlib.sha256(data).hexdigest() == layer["digest"].removeprefix("sha256:")
        n_bytes += len(data)
        (into.parent / "layer.tar").write_bytes(
            gzip.decompress(data) if layer["mediaType"].endswith("gzip") else data
        )
        run("tar", "-xf", into.parent / "layer.tar", "-C", into)
    return json.loads(blob(manifest["config"]))["config"], n_bytes


def test_image_runs_without_root_and_with_a_root_that_is_read_only(
    image: Path, directory: Path
) -> None:
    config, n_bytes = unpack(image, directory / "root")
    record("size of the image for CPUs, compressed", n_bytes / 1e6, "MB")
    assert n_bytes <= MOST_IMAGE_BYTES
    assert config["User"] == "65532:65532" and list(config["Volumes"]) == ["/var/lib/voxeld"]
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in config["Env"]
    assert not list((directory / "root").rglob("sh"))
    data = directory / "data"
    data.mkdir()
    os.chown(data, 65532, 65532)
    tokens = directory / "tokens"
    tokens.write_text(f"robot read,write {hashlib.sha256(b'secret').hexdigest()}\n")
    tokens.chmod(0o600)
    os.chown(tokens, 65532, 65532)
    (directory / "secret").mkdir()
    tokens.rename(directory / "secret/tokens")
    for path in (directory, *directory.parents[:2]):
        path.chmod(0o755)
    port = free_port()
    confined = [
        "setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", "bwrap",
        "--unshare-user", "--ro-bind", directory / "root", "/", "--bind", data, "/var/lib/voxeld",
        "--ro-bind", directory / "secret", "/etc/voxeld-tokens", "--proc", "/proc", "--dev", "/dev",
        "--clearenv", "--die-with-parent",
    ]  # fmt: skip
    command = [*config["Entrypoint"], *config["Cmd"], "--http", f"0.0.0.0:{port}",
               "--rpc", "tcp://127.0.0.1:0"]  # fmt: skip
    with daemon(*confined, *command, port=port):
        assert get(port, "/v1/status")[0] == 401
        status, body = get(port, "/v1/status", {"Authorization": "Bearer secret"})
        assert status == 200, body
    assert (data / "voxeld.db").exists()


def nvcc() -> str | None:
    usual = Path("/usr/local/cuda/bin/nvcc")
    found = os.environ.get("CUDACXX") or shutil.which("nvcc")
    return found or (str(usual) if usual.exists() else None)


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
def test_image_for_gpus_is_built_and_says_what_it_needs(directory: Path) -> None:
    """It is not run: that takes a GPU, and NVIDIA's container toolkit."""
    build, out = WORK / "cuda", WORK / "image-cuda.tar"
    run("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DVOXELD_TESTS=OFF", "-DVOXELD_PAPER=OFF", "-DVOXELD_CUDA=ON",
        "-DVOXELD_CUDA_ARCHITECTURES=90-virtual", "-DCMAKE_INSTALL_LIBDIR=lib",
        "-DCMAKE_INSTALL_LIBEXECDIR=libexec", env={**os.environ, "CUDACXX": nvcc()})  # fmt: skip
    run("cmake", "--build", build, timeout_s=7000)
    run(SOURCE / "deploy/image/build.sh", "--from", build, "--out", out)
    config, n_bytes = unpack(out, directory / "root")
    record("size of the image for GPUs (one architecture's PTX), compressed", n_bytes / 1e6, "MB")
    assert config["User"] == "65532:65532"
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in config["Env"]
    bundle = directory / "root/opt/voxeld"
    assert "For the GPU it needs NVIDIA's driver" in (bundle / "README").read_text()
    assert b".nv_fatbin" in (bundle / "bin/voxeld").read_bytes()
    for notice in ("LICENSE", "NOTICE", "licenses/libc6"):
        assert (bundle / notice).stat().st_size > 0
