# SPDX-License-Identifier: Apache-2.0
"""The long tier's proofs of what is shipped: Debian packages in a bare root, the wheel, the
container's image without root and with a root that is read-only, Kubernetes' manifests. Needs
root, a network and the packages of `deploy/packages.sh package`."""

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
from harness import BIN, SOURCE

WORK = BIN.parent / "packages"
SCAN = SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy"
SHOWN = "125,565 voxels from 198,130 points"
MOST_IMAGE_BYTES = 60_000_000
MANIFESTS = SOURCE / "deploy" / "kubernetes"
KINDS = {
    "state": {"ConfigMap", "Service", "StatefulSet", "NetworkPolicy"},
    "stateless": {"ConfigMap", "Service", "Deployment", "NetworkPolicy", "PodDisruptionBudget"},
}


def mirror() -> str:
    """Returns where this machine gets its Debian packages."""
    chosen = os.environ.get("VOXELD_DEBIAN_MIRROR", "")
    sources = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                  "Codename: bookworm")  # fmt: skip
    return chosen or sources.split()[0]


def run(*command: object, **more: Any) -> str:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, timeout=1500, check=False,
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
    assert names == ["libvoxeld-dev", "libvoxeld0.2", "voxelctl", "voxeld"]
    print(run("lintian", "--allow-root", "--fail-on", "error", *debs))


@pytest.fixture(scope="module")
def bare_root(packages: Path) -> Iterator[Path]:
    """Debian 12's smallest root, made once, copied, and the packages installed in it."""
    base = WORK / "bare"
    if not (base / "usr").exists():
        shutil.rmtree(WORK / "bare.part", ignore_errors=True)
        run("debootstrap", "--variant=minbase", "bookworm", WORK / "bare.part", mirror())
        (WORK / "bare.part").rename(base)
    root = WORK / "root"
    shutil.rmtree(root, ignore_errors=True)
    run("cp", "-a", base, root)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    for deb in packages.glob("*.deb"):
        shutil.copy(deb, root / "tmp")
    shutil.copy(SCAN, root / "tmp/scan.npy")
    apt = "export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && apt-get -qq -y"
    run("chroot", root, "sh", "-c",
        f"{apt} --no-install-recommends install /tmp/*.deb")  # fmt: skip
    yield root
    shutil.rmtree(root, ignore_errors=True)


def test_packages_in_a_bare_root_add_a_user_and_enable_the_unit(bare_root: Path) -> None:
    users = (bare_root / "etc/passwd").read_text()
    assert re.search(r"^voxeld:x:\d+:\d+:voxeld,*:/var/lib/voxeld:/usr/sbin/nologin$", users, re.M)
    wants = bare_root / "etc/systemd/system"
    assert (wants / "multi-user.target.wants/voxeld.service").is_symlink()
    assert (wants / "sockets.target.wants/voxeld.socket").is_symlink()


def test_packages_in_a_bare_root_run_the_demo(bare_root: Path, packages: Path) -> None:
    chroot = ["chroot", "--userspec=voxeld:voxeld", bare_root]
    as_systemd = "mkdir -p -m 750 {0} && chown voxeld: {0}"
    run("chroot", bare_root, "sh", "-c", as_systemd.format("/run/voxeld /var/lib/voxeld"))
    port = free_port()
    url = "ipc:///run/voxeld/voxeld.sock"
    with daemon(
        *chroot, "/usr/bin/voxeld", "--config", "/etc/voxeld/voxeld.json", "--rpc", url,
        "--data-dir", "/var/lib/voxeld", "--http", f"127.0.0.1:{port}", port=port,
    ):  # fmt: skip
        ctl = [*chroot, "voxelctl", "--url", url, "--timeout", "60"]
        assert SHOWN in run(*ctl, "voxelize", "/tmp/scan.npy", "--size", "0.1")
        run(*ctl, "scene", "integrate", "/tmp/scan.npy", "--scene", "yard", "--size", "0.1")
        run(*ctl, "scene", "export", "yard", "/var/lib/voxeld/yard.ply")
        assert (bare_root / "var/lib/voxeld/yard.ply").stat().st_size > 100000
        (wheel,) = packages.glob("*.whl")
        site = WORK / "site"
        shutil.rmtree(site, ignore_errors=True)
        run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--target", site, wheel)  # fmt: skip
        program = (
            "import sys, numpy as np, voxeld\n"
            "with voxeld.connect(sys.argv[1], timeout=60) as client:\n"
            "    print(len(client.voxelize(np.load(sys.argv[2]), size=0.1)))\n"
        )
        socket = f"ipc://{bare_root}/run/voxeld/voxeld.sock"
        printed = run(sys.executable, "-c", program, socket, SCAN,
                      env={**os.environ, "PYTHONPATH": str(site)})  # fmt: skip
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
    print(f"the image has {n_bytes / 1e6:.1f} MB, compressed")
    assert n_bytes <= MOST_IMAGE_BYTES
    assert config["User"] == "65532:65532" and list(config["Volumes"]) == ["/var/lib/voxeld"]
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in config["Env"]
    assert not list((directory / "root").rglob("sh"))
    data = directory / "data"
    data.mkdir()
    os.chown(data, 65532, 65532)
    tokens = directory / "tokens"
    tokens.write_text(f"robot read,write {hashlib.sha256(b'secret').hexdigest()}\n")
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


# --- Kubernetes -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validator() -> Path:
    venv = WORK / "validator"
    if not (venv / "bin/kubernetes-validate").exists():
        run(sys.executable, "-m", "venv", venv)
        run(venv / "bin/pip", "install", "--quiet", "kubernetes-validate==1.37.0")
    return venv / "bin/kubernetes-validate"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("name", ["state", "stateless", "state-gpu", "stateless-gpu"])
def test_manifests_keep_kubernetes_schema(validator: Path, name: str, directory: Path) -> None:
    text = run("kubectl", "kustomize", MANIFESTS / name)
    rendered = directory / "rendered.yaml"
    rendered.write_text(text)
    run(validator, "--strict", rendered)
    kinds = re.findall(r"^kind: (\w+)$", text, re.MULTILINE)
    assert set(kinds) == KINDS[name.removesuffix("-gpu")]
    assert ("nvidia.com/gpu: 1" in text) == name.endswith("-gpu")
    for needed in ("readOnlyRootFilesystem: true", "runAsNonRoot: true", "startupProbe:",
                   "automountServiceAccountToken: false"):  # fmt: skip
        assert needed in text
