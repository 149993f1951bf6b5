# SPDX-License-Identifier: Apache-2.0
"""Builds every tree that the tests need and runs all tests in one pool; deploy/test.sh calls it.

A tree is one configuration of the project in a build folder of its own. Trees are configured
side by side and built one after the other, each with all cores. Their tests then go into one
ctest, because half of the integration tests sleep most of the time: tests of other trees run
meanwhile. The long tier (--full) runs step by step instead, remembers which steps passed with
which sources, and skips those when it is started again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent
ROOT = Path(os.environ.get("VOXELD_BUILD_ROOT", SOURCE / "build" / "test")).resolve()
N_CORES = len(os.sched_getaffinity(0))
# Which architectures the release build has; CI compiles to PTX, which leaves out the assembler.
ARCHITECTURES = os.environ.get("VOXELD_CUDA_ARCHITECTURES", "90-virtual")
FULL_ARCHITECTURES = os.environ.get("VOXELD_CUDA_ARCHITECTURES", "90-real")
NVCC = os.environ.get("CUDACXX") or shutil.which("nvcc")
N_SLOW = 40  # so many of the slowest tests are listed at the end
# What no build and no test reads.
NO_INPUT = (".github/", "LICENSE", "deploy/CHANGELOG.md")


@dataclass
class Tree:
    """One configuration, and which of its tests show something that no other tree shows."""

    options: list[str]
    only: str = ""  # a regular expression of names, for CI's tier
    but: str = ""  # the same of names that are left out
    full_options: list[str] = field(default_factory=list)
    full_but: str = ""  # the same for the long tier
    env: dict[str, str] = field(default_factory=dict)
    full_env: dict[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ("",)  # folders whose change makes a recorded pass void
    programs: tuple[str, ...] = ()  # what CI's tier builds beside the tests of `only`


ENGINE_INPUTS = ("CMakeLists.txt", "gpu/", "proto/", "tests/", "deploy/")
# A plain build has the papers' slab stores and maps. In CI three trees have them, and none of these
# compiles them by nvcc: engine, which runs each scene test in each store; emulator, which has their
# kernels; and address, whose daemons have them. The long tier has them everywhere.
NO_PAPER = ["-DVOXELD_PAPER=OFF"]
PAPER = ["-DVOXELD_PAPER=ON"]
# Sanitizers' own code takes most of such a build and of its tests, optimized or not.
SANITIZER_BUILD = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                   "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"]
TREES = {
    # What a robot builds: no CUDA, no server libraries.
    "client": Tree(
        ["-DVOXELD_CLIENT_ONLY=ON", "-DCMAKE_BUILD_TYPE=Release"],
        inputs=("CMakeLists.txt", "client/", "proto/", "tests/", "deploy/"),
    ),
    # What a bare machine builds: CMake and a compiler. The release tree has the same code and
    # flags and runs the rest of its tests; the papers' stores run here alone.
    "engine": Tree(
        ["-DVOXELD_ENGINE_ONLY=ON", "-DVOXELD_CUDA=OFF", "-DCMAKE_BUILD_TYPE=Release", *PAPER],
        only=r"gpu_(core|digests|facts|paper|hash_(basic|slab)|network|voxelize|svdag_(edit|query)|"
        r".*_store[0-9])$",
        env={"VOXELD_TEST_SLOW": "4"},
        inputs=ENGINE_INPUTS,
    ),
    # CUDA kernels on the CPU: a fault of theirs is found here, where no GPU is.
    "emulator": Tree(
        ["-DVOXELD_CUDA=EMULATED", "-DCMAKE_BUILD_TYPE=Release", *PAPER],
        only=r"^test_(emulator.*|gpu_(core|grid|hash_basic|odometry|voxelize|"
        r"paper|svdag_(store|carve|scan|edit_grid|octree_planes|edit_alloc)))$",
        full_but=r"svdag_undo|_traces",
        env={"VOXELD_EMULATOR_RACES": "1", "VOXELD_TEST_SLOW": "64"},
        full_env={"VOXELD_EMULATOR_RACES": "1", "VOXELD_TEST_SLOW": "64"},
        inputs=ENGINE_INPUTS,
    ),
    "fuzz": Tree(
        ["-DVOXELD_FUZZ=ON", "-DVOXELD_TESTS=OFF", "-DVOXELD_CUDA=OFF",
         *SANITIZER_BUILD, "-DCMAKE_C_COMPILER=clang-14", *NO_PAPER,
         "-DVOXELD_FUZZ_SECONDS=5"],
        full_options=["-DVOXELD_FUZZ_SECONDS=120"],
    ),
    "address": Tree(
        ["-DVOXELD_SANITIZE=address", "-DVOXELD_CUDA=OFF", *SANITIZER_BUILD, *PAPER],
        but=r"_store[0-9]$|^bench_|integration_(relocalize|slac|dashboard_tools|generated|layers|"
        # What these look at is no program of ours, or the same in every tree.
        r"names|bench|bundle|examples|documents|ctl_mistakes|manuals|manifests|worked_example|"
        r"installed|random_damage|refusals)$",
        env={"VOXELD_TEST_SLOW": "8"},
        full_but=r"integration_dashboard_tools$",
        full_env={"VOXELD_TEST_SLOW": "4"},
    ),
    # What has threads that no other test of this list has: of the engine a test of each operation,
    # of the server what queues, locks, batches, writes ahead and recovers; then daemons under load.
    # The soak calls every method from several clients at once, so that tests of single methods say
    # nothing more here; of the engine those are left out whose threads share nothing but a pool's
    # ranges, as others here do. The long tier runs all of them.
    "thread": Tree(
        ["-DVOXELD_SANITIZE=thread", "-DVOXELD_CUDA=OFF", *SANITIZER_BUILD, *NO_PAPER],
        only=r"^test_(gpu_(core|pool|sort|surface|volume|volume_(integrate|keep|scan)|"
        r"odometry|deform|hash_basic|sparse_map|network|network_runs|"
        r"svdag_(store|collect|copy|edit|query|carve|scan)|occupancy|occupancy_votes|"
        r"render|field|field_(collide|query)|grid)|"
        r"client_(async|calls|maps|scenes|versions)|"
        r"server_(observe|idle|once|request|batch|fair|scheduler|voxelize|fields|named|weights|"
        r"registry|durable_(ahead|archive|backup|faults|mark|power)|scene_(faults|ages|start)|"
        r"volume_faults|once_disk))$|"
        r"^integration_(venv|backends|exactly_once|life|load|long_start|overload|soak|map_durable|"
        r"maps|scene_(durable|histories|lanes|stop)|scenes_integrate|watch|connections|guard|"
        r"hostile|http|rpc|shared|tls|posegraphs|volumes|foxglove|web)$",
        full_options=PAPER,
        full_but=r"^bench_|integration_(layers|names|bundle|installed)$",
        env={"VOXELD_TEST_SLOW": "32"},
        full_env={"VOXELD_TEST_SLOW": "2"},
        programs=("voxeld", "voxelctl", "voxeld_client", "integration_schema", "bench_load"),
    ),
    # All of every test, but for the dashboard's tools: one test in a browser is enough for CI. It
    # compiles CUDA to PTX, which is all but the assembler's half of the time, and as quickly as
    # nvcc can, since nothing runs it; the long tier makes the machine code of one architecture.
    "release": Tree(
        ["-DCMAKE_BUILD_TYPE=Release", "-DVOXELD_CUDA=AUTO", *NO_PAPER,
         f"-DVOXELD_CUDA_ARCHITECTURES={ARCHITECTURES}"],
        but=r"integration_dashboard_tools$",
        full_options=[f"-DVOXELD_CUDA_ARCHITECTURES={FULL_ARCHITECTURES}", *PAPER],
        full_env={"VOXELD_TEST_LONG": "1"},  # builds the worked example of CONTRIBUTING.md
    ),
    # Everything but CUDA for a robot's Arm computer, in qemu-user. CI runs the tests that compare
    # with values of another processor, then both architectures' daemons against each other.
    "aarch64": Tree(
        ["--toolchain", str(SOURCE / "deploy" / "aarch64.cmake"), "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_SYSROOT={ROOT / 'aarch64-root'}", "-DVOXELD_CUDA=OFF", *NO_PAPER],
        only=r"^test_(gpu_(digests|core|facts|svdag_(leaf_values|op_octree))|proto_golden|"
        r"server_(durable_planes|map_record|volume_record)|client_files)$",
        full_options=PAPER,
        full_but=r"^bench_|_replayed$|_drive$",
        env={"VOXELD_TEST_SLOW": "8"},
        full_env={"VOXELD_TEST_SLOW": "8"},
        programs=("voxeld", "voxelctl"),
    ),
}
STEPS = ["lint", *TREES]
# What is measured, shipped or for another processor is linked as its users link it.
LINKED_BY_MOLD = {"engine", "emulator", "address", "thread"}


@dataclass
class Figure:
    """What a step took: seconds of building and, added up, of its tests."""

    build_s: float = 0.0
    test_s: float = 0.0
    n_tests: int = 0
    note: str = ""
    slow: list[tuple[float, str]] = field(default_factory=list)  # seconds and name of each test


class Failure(Exception):
    """A step failed; what it printed is on the terminal."""


def say(text: str) -> None:
    print(f"\n== {text} ({time.monotonic() - STARTED:.0f} s)", flush=True)


def run_logged(name: str, command: list[str]) -> None:
    """Runs a command whose output is shown only where it fails."""
    log = ROOT / f"{name}.log"
    with log.open("w") as out:
        result = subprocess.run(command, cwd=SOURCE, stdout=out, stderr=subprocess.STDOUT,
                                check=False)
    if result.returncode != 0:
        print("\n".join(log.read_text(errors="replace").splitlines()[-80:]))
        raise Failure(f"{name}: {' '.join(command[:4])} ... failed; all of it is in {log}")


def quick_cuda() -> list[str]:
    """Returns what has nvcc leave out what makes kernels quick; from CUDA 12.9 on."""
    if NVCC is None or not ARCHITECTURES.endswith("-virtual"):
        return []
    known = subprocess.run([NVCC, "--help"], stdout=subprocess.PIPE, text=True, check=False)
    return ["-DCMAKE_CUDA_FLAGS=-Ofc max"] if "--Ofast-compile" in known.stdout else []


def configure(name: str, is_full: bool) -> None:
    tree = TREES[name]
    options = [*tree.options, *(tree.full_options if is_full else [])]
    if name == "release" and not is_full:
        options += quick_cuda()
    # mold links a test under a sanitizer in 0.25 s of a processor, not 0.6, and each tree has 200.
    linker = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold"] if name in LINKED_BY_MOLD else []
    run_logged(f"{name}.configure",
               ["cmake", "-S", ".", "-B", str(ROOT / name), "-G", "Ninja",
                f"-DVOXELD_TEST_VENV={ROOT / 'venv'}", *linker, *options])


def configure_all(names: Iterable[str], is_full: bool) -> None:
    """Configures side by side: each configuration waits for one small compiler run at a time."""
    children = {}
    for name in names:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                configure(name, is_full)
                status = 0
            except Failure as failure:
                print(failure, flush=True)
            finally:
                os._exit(status)
        children[child] = name
    failed = [name for child, name in children.items() if os.waitpid(child, 0)[1] != 0]
    if failed:
        raise Failure(f"these trees cannot be configured: {', '.join(failed)}")


def listed(name: str, is_full: bool) -> list[dict[str, Any]]:
    """Returns the chosen tests of a tree. ctest's own expressions take nine groups at most, and
    one that it cannot read it leaves out without failing."""
    tree = TREES[name]
    only = "" if is_full else tree.only
    but = tree.full_but if is_full else tree.but
    shown = subprocess.run(["ctest", "--test-dir", str(ROOT / name), "--show-only=json-v1"],
                           stdout=subprocess.PIPE, text=True, check=True)
    return [test for test in json.loads(shown.stdout)["tests"]
            if (not only or re.search(only, test["name"]))
            and not (but and re.search(but, test["name"]))]


def targets_of(name: str) -> list[str]:
    """Returns what CI's tier builds of a tree; nothing stands for all of it."""
    tree = TREES[name]
    if not tree.only:
        return []
    names = [test["name"] for test in listed(name, is_full=False)]
    # A program that tests each store, and that of the emulator itself, are several tests.
    several = "_store[0-9]$|(?<=^test_emulator)_.*"
    programs = {re.sub(several, "", name) for name in names if name.startswith("test_")}
    return sorted({*tree.programs, *programs})


def build(name: str, is_full: bool) -> float:
    start = time.monotonic()
    targets = [] if is_full else targets_of(name)
    run_logged(f"{name}.build", ["cmake", "--build", str(ROOT / name), "--", "-j", str(N_CORES),
                                 *targets])
    return time.monotonic() - start


def has_aarch64() -> str:
    """Makes the sysroot; returns a reason where that step is left out."""
    if platform.machine() == "aarch64":
        return "this machine is aarch64 itself, and all other steps test it"
    packages = subprocess.run(["deploy/packages.sh", "aarch64"], cwd=SOURCE, check=False)
    if packages.returncode == 0:
        root = subprocess.run(["deploy/aarch64-root.sh", str(ROOT / "aarch64-root")], cwd=SOURCE,
                              stdout=subprocess.DEVNULL, check=False)
        if root.returncode == 0:
            return ""
    if "\nID=debian" in "\n" + Path("/etc/os-release").read_text():
        raise Failure("the packages of the step aarch64 cannot be installed")
    return ("this system's package sources have no arm64 packages (on Ubuntu they are on "
            "ports.ubuntu.com); Debian 12 has them")


def bracket(value: object) -> str:
    """Returns a CMake argument that means exactly this text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, list):
        value = ";".join(str(item).replace(";", "\\;") for item in value)
    return f"[==[{value}]==]"


def tests_of(name: str, is_full: bool) -> list[str]:
    """Returns the lines of CTestTestfile.cmake that name the chosen tests of a tree TREE/TEST."""
    tree = TREES[name]
    env = tree.full_env if is_full else tree.env
    lines = []
    for test in listed(name, is_full):
        if "command" not in test:
            raise Failure(f"{name}: the program of {test['name']} was not built")
        label = f"[==[{name}/{test['name']}]==]"
        lines.append(f"add_test({label} {' '.join(bracket(word) for word in test['command'])})")
        properties = {p["name"]: p["value"] for p in test["properties"]}
        own = list(properties.get("ENVIRONMENT", []))
        own += [f"{k}={v}" for k, v in env.items() if not any(e.startswith(f"{k}=") for e in own)]
        properties["ENVIRONMENT"] = own
        properties["LABELS"] = [*properties.get("LABELS", []), name]
        for key in ("FIXTURES_SETUP", "FIXTURES_REQUIRED", "FIXTURES_CLEANUP", "DEPENDS"):
            if key in properties:
                properties[key] = [f"{name}/{value}" for value in properties[key]]
        words = " ".join(f"{k} {bracket(v)}" for k, v in properties.items() if v != [])
        lines.append(f"set_tests_properties({label} PROPERTIES {words})")
    return lines


def same_bits() -> list[str]:
    """Adds a test of two architectures' daemons and clients against each other, bit for bit."""
    words = [str(SOURCE / "tests/integration/same_bits.sh"), str(ROOT / "release/bin"),
             str(ROOT / "aarch64/bin"), "qemu-aarch64", "-L", str(ROOT / "aarch64-root")]
    return [f"add_test([==[aarch64/same_bits]==] {' '.join(bracket(word) for word in words)})",
            "set_tests_properties([==[aarch64/same_bits]==] PROPERTIES TIMEOUT 900)"]


def run_tests(names: list[str], is_full: bool, n_jobs: int, repeat: int,
              figures: dict[str, Figure]) -> None:
    """Runs all tests of these trees in one ctest; figures get their seconds."""
    pool = ROOT / "pool"
    shutil.rmtree(pool, ignore_errors=True)
    pool.mkdir(parents=True)
    # ctest lists no command whose program does not exist yet.
    run_logged("venv", [sys.executable, "tests/integration/setup_venv.py", str(ROOT / "venv"),
                        "tests/integration/requirements.txt"])
    lines = [line for name in names for line in tests_of(name, is_full)]
    if "aarch64" in names:
        if "release" not in names:
            configure("release", is_full)
            figures["aarch64"].build_s += build("release", is_full)
        lines += same_bits()
    (pool / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
    # A test that hangs runs once more: nng 1.5.2 may wait for ever as a socket closes. One that
    # fails does not.
    for _ in range(repeat):
        result = subprocess.run(
            ["ctest", "--test-dir", str(pool), "--output-on-failure", "-j", str(n_jobs),
             "--repeat", "after-timeout:2", "--output-junit", str(pool / "junit.xml")],
            check=False)
        for case in ElementTree.parse(pool / "junit.xml").getroot().iter("testcase"):
            figure = figures[case.get("name", "").split("/", 1)[0]]
            figure.test_s += float(case.get("time", "0"))
            figure.n_tests += 1
            figure.slow.append((float(case.get("time", "0")), case.get("name", "")))
        if result.returncode != 0:
            raise Failure("tests failed")


def lint(is_full: bool) -> float:
    start = time.monotonic()
    command = ["deploy/lint.sh", *(["--full"] if is_full else []), str(ROOT)]
    if subprocess.run(command, cwd=SOURCE, check=False).returncode != 0:
        raise Failure("lint failed")
    return time.monotonic() - start


def digest_of(prefixes: tuple[str, ...]) -> str:
    """Hashes all sources below these folders, tracked or new, as they are here."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=SOURCE,
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    digest = hashlib.sha256()
    for name in sorted(listed.split("\0")):
        path = SOURCE / name
        if name.startswith(prefixes) and not name.startswith(NO_INPUT) and path.is_file():
            digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def busy_load(n: int) -> list[subprocess.Popen[bytes]]:
    """Starts processes that keep the cores busy at the lowest priority, as a build does."""
    spin = "while True: sum(i * i for i in range(100000))"
    return [subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", spin]) for _ in range(n)]


def print_table(figures: dict[str, Figure]) -> None:
    print(f"\n{'step':<10} {'build s':>8} {'tests':>6} {'their s, added up':>18}")
    for name, figure in figures.items():
        print(f"{name:<10} {figure.build_s:>8.0f} {figure.n_tests:>6} {figure.test_s:>18.0f}"
              f"  {figure.note}")
    slow = sorted((test for figure in figures.values() for test in figure.slow), reverse=True)
    for seconds, name in slow[:N_SLOW]:
        print(f"{seconds:>8.0f} s {name}")
    print(f"all of it took {time.monotonic() - STARTED:.0f} s on {N_CORES} cores", flush=True)


def run_pool(steps: list[str], arguments: argparse.Namespace, figures: dict[str, Figure]) -> None:
    """Runs CI's tier: lint, all builds, then one pool of tests."""
    names = [step for step in steps if step in TREES]
    if "lint" in steps:
        say("lint")
        figures["lint"].build_s = lint(is_full=False)
    say("configure")
    configure_all(names, is_full=False)
    for name in names:
        say(f"build {name}")
        figures[name].build_s = build(name, is_full=False)
    if names:
        say("tests")
        run_tests(names, False, arguments.jobs, arguments.repeat, figures)


def run_step_by_step(steps: list[str], arguments: argparse.Namespace,
                     figures: dict[str, Figure]) -> None:
    """Runs the long tier, and skips a step that passed with the same sources."""
    for name in steps:
        tree = TREES.get(name)
        stamp = ROOT / f"{name}.passed"
        digest = digest_of(tree.inputs if tree else ("",))
        if stamp.exists() and stamp.read_text() == digest:
            figures[name].note = "passed before with the same sources"
            continue
        say(name)
        if tree is None:
            figures[name].build_s = ALONE[name](True)
        else:
            configure(name, is_full=True)
            figures[name].build_s = build(name, is_full=True)
            run_tests([name], True, arguments.jobs, arguments.repeat, figures)
        stamp.write_text(digest)


def packages(is_full: bool) -> float:
    """Builds packages, the wheel and the image, and runs them where nothing of ours is."""
    start = time.monotonic()
    if not is_full:
        return 0.0
    if os.geteuid() != 0:
        print("SKIPPED packages: it needs root (debootstrap, chroot)")
        return 0.0
    if subprocess.run(["deploy/packages.sh", "package"], cwd=SOURCE, check=False).returncode != 0:
        raise Failure("the packages of the step packages cannot be installed")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    run_logged("packages.configure",
               ["cmake", "-S", ".", "-B", str(ROOT / "packages"), "-G", "Ninja",
                "-DCMAKE_BUILD_TYPE=Release", "-DVOXELD_CUDA=OFF", "-DVOXELD_PACKAGE_TESTS=ON",
                f"-DVOXELD_TEST_VENV={ROOT / 'venv'}", *NO_PAPER])
    build("packages", is_full)
    tests = "^integration_(venv|packages|haproxy|installed|manifests|first_hour)$"
    done = subprocess.run(["ctest", "--test-dir", str(ROOT / "packages"), "--output-on-failure",
                           "-R", tests], check=False)
    for path in sorted((ROOT / "packages" / "figures").glob("*.txt")):
        print(path.read_text(), end="")
    if done.returncode != 0:
        raise Failure("what is shipped does not pass its tests")
    return time.monotonic() - start


def mutants(is_full: bool) -> float:
    """Tests one-operator mutants of the product; the tests of their module must find them."""
    start = time.monotonic()
    command = [sys.executable, "tests/mutate.py", "--build-root", str(ROOT / "mutants"),
               "--number", "60"]
    if is_full and subprocess.run(command, cwd=SOURCE, check=False).returncode != 0:
        raise Failure("too many mutants survive")
    return time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/test.sh", description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"some of {', '.join(STEPS)}")
    parser.add_argument("--full", action="store_true",
                        help="the long tier: all random rounds, minutes of fuzzing, the analyzer, "
                        "packages in a bare Debian, mutants, the papers' stores everywhere; goes "
                        "on where it stopped")
    parser.add_argument("--busy", action="store_true",
                        help="beside a load that keeps all cores busy at the lowest priority")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run the tests N times")
    parser.add_argument("--jobs", type=int, default=2 * N_CORES + 1, metavar="N",
                        help="tests at a time (default: twice the cores and one, since half of "
                        "them sleep most of the time)")
    arguments = parser.parse_args()
    known = [*STEPS, "packages", "mutants"] if arguments.full else STEPS
    for step in arguments.steps:
        if step not in known:
            parser.error(f"no step '{step}'; there are {', '.join(known)}")
    steps = arguments.steps or list(known)

    ROOT.mkdir(parents=True, exist_ok=True)
    figures = {step: Figure() for step in steps}
    load = busy_load(N_CORES) if arguments.busy else []
    try:
        for name, reason in (("aarch64", has_aarch64), ("emulator", has_emulator)):
            if name in steps and (why := reason()):
                print(f"SKIPPED {name}: {why}")
                figures[name].note = f"skipped: {why}"
                steps.remove(name)
        (run_step_by_step if arguments.full else run_pool)(steps, arguments, figures)
    except Failure as failure:
        print_table(figures)
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    finally:
        for process in load:
            process.kill()
    print_table(figures)
    return 0


def has_emulator() -> str:
    return "" if platform.machine() == "x86_64" else "it switches fibers of x86-64 only"


# Steps without a build tree that CI's pool runs.
ALONE = {"lint": lint, "packages": packages, "mutants": mutants}
STARTED = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())
