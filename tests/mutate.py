#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how strong the tests are: changes one operator of a source file (a mutant) and runs the
tests of that file's module under AddressSanitizer. A mutant that no test notices survives: a test
is missing, or the mutant computes the same.

usage: tests/mutate.py [--seed S] [--folder gpu ...] [--number N] [--build-root DIR] [--jobs J]
                       [--list] [--one FILE:LINE:COLUMN:OPERATOR ...]

Works in copies of the sources under the build root, never in the working tree. All mutants are
built at once: a function has its own body and that of each of its mutants, and the environment
variable VOXELD_MUTANT chooses one. Each test is first run without a mutant, which says how long it
takes and which mutated functions it calls; then each mutant meets the tests that call its function,
the quickest first, up to the first that fails. Mutants that do not build, and those of which the
compiler makes the same machine code, are drawn anew. Mutants shown to be equal stand in
tests/mutants_equal.txt, a line each:

    FILE:FUNCTION:text of the source line:MUTATION : the reason

with FILE's name without its folders and MUTATION as a survivor's report prints it. They are left
out of the rate. Exits with 0 if at least 90 % of the others are killed.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

# Which tests a source has: the first line whose first pattern is found in the file's path says, by
# the names of unit tests that its second pattern matches as a whole; where none is, those with the
# names of its first two folders.
TESTS = (
    (r"gpu/hash/", r"gpu_(hash_.*|digests|alloc)"),
    (r"gpu/paper/slab_map", r"gpu_(hash_.*|alloc)"),
    (r"gpu/paper/", r"gpu_(paper|svdag_(store|store_items|rays|image|collect)_store\d)"),
    (r"gpu/voxel/", r"gpu_(cloud|voxelize|digests|facts|alloc)"),
    (r"gpu/sparse/conv/", r"gpu_(sparse_.*|network(_ops|_taps|_runs)?|digests)"),
    (r"gpu/sparse/(executor|layers)/", r"gpu_(network.*|gather|digests)"),
    (r"gpu/sparse/", r"gpu_(sparse_.*|gather|network(_ops|_taps)?|digests|alloc)"),
    (r"gpu/core/", r"gpu_(core|sort|pool|machine|alloc|hash_.*|voxelize|digests|sparse_.*)"),
    (r"gpu/volume/cast/", r"gpu_(volume_cast|track)"),
    (r"gpu/volume/", r"gpu_(volume.*|surface|track|refine|field_volume|deform)"),
    (r"gpu/slac/", r"gpu_(slac|deform)"),
    (r"gpu/occupancy/", r"gpu_(occupancy.*|upkeep|octomap)"),
    (r"gpu/posegraph/", r"(gpu_posegraph|server_posegraph_record)"),
    (r"svdag/scan/", r"gpu_svdag_(carve|scan|drive|octree_planes|store_alloc|digests|op_octree|"
     r"copy_visits)"),
    (r"svdag/collect/",
     r"gpu_svdag_(collect|store_alloc|versions_alloc|store.*|table|store_verify)"),
    (r"svdag/.*(diff|undo|copy|morph)",
     r"gpu_svdag_(diff|undo|copy|edit_grid|export|octree_planes|edit|store_alloc|"
     r"edit_alloc|versions_alloc)"),
    (r"svdag/(query|diff)/",
     r"gpu_svdag_(query|rays|drive|export|copy|octree_planes|edit_grid|store_alloc|"
     r"versions_alloc)"),
    (r"svdag/.*(image|verify)", r"gpu_svdag_(image.*|store_verify|copy|store_alloc|versions_alloc|"
     r"collect)"),
    (r"svdag/mesh/", r"gpu_svdag_mesh"),
    (r"svdag/", r"gpu_svdag_(?!.*_store\d).*"),
    (r"server/durable/", r"server_(durable_.*|.*_record|once_disk|scene_faults|registry)"),
    (r"request/multipart", r"server_multipart"),
    (r"server/schedule/", r"server_(scheduler|fair|batch|request|once|alloc)"),
    (r"request/exactly_once", r"server_(once|once_disk|request|alloc|durable_alloc|scene_faults)"),
    (r"server/", r"server_(request|once|scheduler|batch|alloc)"),
    (r"proto/base/number", r"client_(arrays|files|write)"),
    (r"proto/base/(crc32c|xxh64)", r"server_(durable_files|map_file)"),
    (r"proto/base/clock", r"server_(scheduler|batch)"),
    (r"proto/", r"proto_.*"),
)
# What is drawn from, of the .c files that are built and of headers with code of the CPU.
SOURCES = {
    "gpu": r"^gpu/(?!examples/|sparse/executor/network_run_whole)",  # which a GPU alone runs
    "server/durable": r"^server/durable/",
    "server/request": r"^server/(request|schedule)/",
    "proto": r"^proto/(base|wire)/\w+\.[ch]$",
}
SWAPS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "++": "--",
    "--": "++", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
    "||": "&&", "<<": ">>", ">>": "<<", "<<=": ">>=", ">>=": "<<=", "&": "|", "|": "&", "^": "|",
    "|=": "&=", "&=": "|=", "!": "", "break": "continue", "continue": "break",
}  # fmt: skip
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
    |0[xX][0-9a-fA-F]+\w*|\.?\d(?:[eE][+-]|[\w.])*|[A-Za-z_]\w*|<<=|>>=|->|\+\+|--|&&|\|\||<<|>>
    |[-+*/%&|^<>=!]=|[^\s]""",
    re.S | re.M | re.X,
)
SKIPPED_CALLS = {"assert", "static_assert", "_Static_assert", "__builtin_prefetch"}
SAME_CODE, SHOWN_EQUAL = "same machine code", "shown equal"
SURVIVED, UNREACHED = "SURVIVED", "SURVIVED: no test calls its function"
FAILED = re.compile(r"^FAIL |^\S+\.[ch]:\d+: ", re.M)
GOAL, LONGEST_TEST_S = 90, 60
# At the head of a file with mutants. The trace is a file of a byte a mutant, 1 where a function
# that has the mutant was called. Symbols are named anew, as headers may declare them otherwise.
PRELUDE = """#ifndef VXD_MUTANT_IS
#ifdef __cplusplus
extern "C" {
#endif
extern char *vxd_mutant_getenv(const char *) __asm__("getenv");
extern int vxd_mutant_atoi(const char *) __asm__("atoi");
extern int vxd_mutant_open(const char *, int, ...) __asm__("open");
extern void *vxd_mutant_mmap(void *, unsigned long, int, int, int, long) __asm__("mmap");
#ifdef __cplusplus
}
#endif
static int vxd_mutant;
static unsigned char vxd_mutant_no_trace[N_MUTANTS];
static unsigned char *vxd_mutant_trace = vxd_mutant_no_trace;
__attribute__((constructor)) static void vxd_mutant_start(void)
{
    const char *number = vxd_mutant_getenv("VOXELD_MUTANT");
    const char *path = vxd_mutant_getenv("VOXELD_MUTANT_TRACE");

    vxd_mutant = number ? vxd_mutant_atoi(number) : 0;
    if (path) {
        vxd_mutant_trace = (unsigned char *)vxd_mutant_mmap(
            0, N_MUTANTS, 3 /* read, write */, 1 /* shared */, vxd_mutant_open(path, 2), 0);
    }
}
#define VXD_MUTANT_IS(n) (vxd_mutant_trace[n] = 1, vxd_mutant == (n))
#endif
"""


class Mutant(NamedTuple):
    file: str
    line: int
    column: int
    operator: str
    swap: str
    function: str
    start: int  # in characters
    text: str  # of the line, stripped
    mutation: str  # the swap, with which of the line's equal operators it is
    body: tuple[int, int] = (0, 0)  # of its function, with its braces

    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}:{self.operator}"

    def key(self) -> str:
        return f"{Path(self.file).name}:{self.function}:{self.text}:{self.mutation}"

    def mutated_body(self, body: str) -> str:
        start = self.start - self.body[0]
        return body[:start] + self.swap + body[start + len(self.operator) :]

    def apply(self, root: Path) -> str:
        text = (root / self.file).read_text()
        return text[: self.start] + self.swap + text[self.start + len(self.operator) :]


def with_own_labels(body: str) -> str:
    """A function's body may stand more than once in it where its labels are the block's own."""
    labels = set(re.findall(r"^[ \t]*([A-Za-z_]\w*):(?!:)", body, re.M)) - {"default"}
    return f"{{ __label__ {', '.join(sorted(labels))};{body[1:]}" if labels else body


def function_name(tokens: list[str]) -> tuple[str, bool]:
    """Of tokens that end with a parameter list: the name before it, and whether it gives void."""
    depth = 0
    for i in range(len(tokens) - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(tokens[i], 0)
        if depth == 0:
            return tokens[i - 1], i > 1 and tokens[i - 2] == "void"
    return "?", False


def swap_of(token: str, text: str, end: int, in_for: bool) -> str | None:
    # clang-format puts a space after an operator with two operands, and none after one with one.
    if token in "+-*/%&" and not text[end].isspace():
        return None
    if in_for and token.isdecimal():
        return str(int(token) + 1)
    return SWAPS.get(token)


def mutants_of(file: str, text: str) -> list[Mutant]:
    mutants: list[Mutant] = []
    n_done = body_start = 0  # mutants of functions before, and where this one's body begins
    before: list[str] = []  # all tokens of code so far
    function = ""
    depth = parens = 0
    skipped: int | None = None  # depth of parentheses outside a call that is left alone
    in_for: int | None = None

    def add(match: re.Match[str], swap: str) -> None:
        start = match.start()
        line = text.count("\n", 0, start) + 1
        column = start - text.rfind("\n", 0, start)
        n_before = sum(m.line == line and m.operator == match.group() for m in mutants)
        mutation = f"{match.group()} -> {swap or 'nothing'}" + f" #{n_before + 1}" * (n_before > 0)
        mutants.append(Mutant(file, line, column, match.group(), swap, function, start,
                              text.split("\n")[line - 1].strip(), mutation))  # fmt: skip

    for match in TOKEN.finditer(text):
        token = match.group()
        if token.startswith(("//", "/*")) or token.lstrip().startswith("#"):
            continue
        if token == "(":
            skipped = parens if before[-1] in SKIPPED_CALLS and skipped is None else skipped
            in_for = parens if before[-1] == "for" else in_for
            parens += 1
        elif token == ")":
            parens -= 1
            skipped = None if skipped == parens else skipped
            in_for = None if in_for == parens else in_for
        elif token == "{" and depth == 0 and before[-1:] == [")"]:
            function, gives_void = function_name(before)
            n_done, body_start = len(mutants), match.start()
            if gives_void:
                add(match, "{ return;")
            depth = 1
        elif token in "{}" and function:
            depth += 1 if token == "{" else -1
            if depth == 0:
                body = (body_start, match.end())
                mutants[n_done:] = [mutant._replace(body=body) for mutant in mutants[n_done:]]
                function = ""
        elif function and skipped is None:
            if (swap := swap_of(token, text, match.end(), in_for is not None)) is not None:
                add(match, swap)
        before.append(token)
    return mutants


class Run(NamedTuple):
    status: int  # as of subprocess, -9 where it ran out of wall time or was stopped
    output: str
    cpu_s: float


def run(command: list[str], cpu_s: int | None = None, wall_s: float | None = None,
        stop: re.Pattern[str] | None = None, **options: object) -> Run:  # fmt: skip
    """Runs a command up to its end, a limit, or the first line of output that `stop` matches."""
    if cpu_s is not None:
        command = ["sh", "-c", f'ulimit -t {cpu_s}; exec "$@"', "sh", *command]
    output: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True, **options) as child:  # type: ignore[call-overload]  # fmt: skip
        timer = threading.Timer(wall_s or 1e6, os.killpg, (child.pid, signal.SIGKILL))
        timer.daemon = True
        timer.start()
        for line in child.stdout:
            output.append(line)
            if stop is not None and stop.search(line):
                os.killpg(child.pid, signal.SIGKILL)
                break
        timer.cancel()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return Run(child.returncode, "".join(output), used.ru_utime + used.ru_stime)


class Test(NamedTuple):
    program: str  # as ctest names it
    name: str  # of one function; all where it is empty

    def __str__(self) -> str:
        return f"{self.program} {self.name}".strip()


class Tree:
    """Sources twice, plain and with mutants in them, and the build of the latter."""

    def __init__(self, root: Path, jobs: int, engine_only: bool) -> None:
        self.plain, self.sources = root / "plain", root / "sources"
        self.build_dir = self.sources / "build" / ("engine" if engine_only else "all")
        self.trace_dir = root / "traces"
        self.jobs = jobs
        self.lock = threading.Lock()  # of the plain sources
        self.texts: dict[str, str] = {}  # of files with mutants in them
        self.cpu_s: dict[Test, float] = {}
        self.reached: dict[Test, set[int]] = {}
        self.copy_sources()
        self.environment = os.environ | {"CCACHE_BASEDIR": str(self.sources)}
        self.environment |= {"CCACHE_NOHASHDIR": "1"}
        ccache = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        mold = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold"] if shutil.which("mold") else []
        self.must("cmake", "-S", str(self.sources), "-B", str(self.build_dir), "-G", "Ninja",
                  "-DVOXELD_SANITIZE=address", "-DVOXELD_CUDA=OFF", "-DVOXELD_WERROR=OFF",
                  "-DCMAKE_BUILD_TYPE=RelWithDebInfo", *ccache, *mold,
                  "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG",
                  f"-DVOXELD_ENGINE_ONLY={'ON' if engine_only else 'OFF'}")  # fmt: skip
        self.commands = {
            os.path.relpath(entry["file"], self.sources): entry
            for entry in json.loads((self.build_dir / "compile_commands.json").read_text())
        }
        self.unit_of = {  # of an object
            re.search(r" -o (\S+)", entry["command"])[1]: file  # type: ignore[index]
            for file, entry in self.commands.items() if not file.startswith("tests/")
        }  # fmt: skip
        self.programs = self.list_programs()

    def copy_sources(self) -> None:
        here = Path(__file__).resolve().parent.parent
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=here,
                                capture_output=True, text=True, check=True)  # fmt: skip
        files = {name for name in listed.stdout.splitlines() if (here / name).is_file()}
        for root in (self.plain, self.sources):
            for old in {path for path in root.rglob("*") if path.is_file()}:
                name = str(old.relative_to(root))
                if name not in files and not name.startswith("build/"):
                    old.unlink()
            for source, copy in ((here / name, root / name) for name in files):
                if not copy.is_file() or copy.read_bytes() != source.read_bytes():
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, copy)

    def must(self, *command: str) -> str:
        done = run(list(command), env=self.environment)
        if done.status != 0:
            sys.exit(f"{done.output[-4000:]}\n{' '.join(command)}: exit status {done.status}")
        return done.output

    def list_programs(self) -> dict[str, dict[str, Any]]:
        listed = self.must("ctest", "--test-dir", str(self.build_dir), "--show-only=json-v1")
        return {test["name"]: test for test in json.loads(listed)["tests"]}

    def sources_of(self, folders: list[str]) -> list[str]:
        headers = {str(path.relative_to(self.plain)) for path in self.plain.rglob("*_*.h")}
        wanted = "|".join(SOURCES.get(folder, "^" + re.escape(folder)) for folder in folders)
        found = {*self.commands, *(name for name in headers if re.search(r"_(math|cpu)\.h$", name))}
        return sorted(f for f in found if re.search(wanted, f) and not f.startswith("tests/"))

    def programs_of(self, file: str) -> set[str]:
        own = "_".join(file.split("/")[:2]) + ".*"  # gpu/volume/...: gpu_volume.*
        pattern = next((tests for path, tests in TESTS if re.search(path, file)), own)
        return {name for name in self.programs if re.fullmatch(f"test_({pattern})", name)}

    def target(self, program: str) -> str:
        return re.sub(r"_store\d$", "", program)

    def tests_of_program(self, program: str) -> list[Test]:
        """By the table in its source; the whole program where it is given arguments."""
        if len(self.programs[program]["command"]) > 1:
            return [Test(program, "")]
        folder = f"/{self.target(program)}.dir/"
        texts = [(self.plain / file).read_text() for file, entry in self.commands.items()
                 if folder in entry["command"] and file.endswith("_test.c")]  # fmt: skip
        names = [name for text in texts for name in re.findall(r"VXD_TEST\((test_\w+)\)", text)]
        return [Test(program, name) for name in names] or [Test(program, "")]

    def compiles(self, mutant: Mutant) -> bool:
        with self.lock:
            return (self.check_syntax(mutant.file, mutant.apply(self.plain))
                    or not self.check_syntax(mutant.file, None))  # fmt: skip

    def check_syntax(self, file: str, text: str | None) -> bool:
        alike = (name for name in self.commands if name.startswith(os.path.dirname(file)))
        unit = file if file in self.commands else next(alike, next(iter(self.commands)))
        command = [*self.compiler(unit), "-x", "c", "-fsyntax-only", "-w", str(self.plain / file)]
        with self.overwritten(file, text):
            return run(command, cwd=self.build_dir).status == 0

    def compiler(self, unit: str) -> list[str]:
        """The command that compiles a plain source as it is shipped, without the files' names."""
        words = shlex.split(self.commands[unit]["command"])
        drop = {words.index("-o") + 1, words.index("-c") + 1} | {words[0].endswith("ccache") - 1}
        kept = [word for i, word in enumerate(words) if i not in drop and word not in ("-o", "-c")
                and not re.match(r"-fsanitize|-fno-sanitize|-g\d?$|-O\d$", word)]  # fmt: skip
        roots = str(self.sources), str(self.plain)
        build = str(self.build_dir)
        return [*(word if build in word else word.replace(*roots) for word in kept), "-O2"]

    @contextlib.contextmanager
    def overwritten(self, file: str, text: str | None) -> Iterator[None]:
        path = self.plain / file
        before = path.read_text()
        try:
            if text is not None:
                path.write_text(text)
            yield
        finally:
            path.write_text(before)

    def is_same_code(self, mutant: Mutant) -> bool:
        """Whether the objects that the file is part of are the same with the mutant; of those of a
        header, the nearest dozen."""
        units = [mutant.file] if mutant.file in self.commands else []
        listed = self.must("ninja", "-C", str(self.build_dir), "-t", "deps")
        for block in listed.split("\n\n") if not units else []:
            target, *needed = block.splitlines() or [":"]
            unit = self.unit_of.get(target.split(":")[0])
            if unit and any(name.endswith("/" + mutant.file) for name in needed):
                units.append(unit)
        file, folder = mutant.file, os.path.dirname(mutant.file)
        units = sorted(units, key=lambda unit: (os.path.dirname(unit) != folder, unit))[:12]
        with self.lock:
            text = mutant.apply(self.plain)
            return units != [] and all(
                self.object_of(unit, file, None) == self.object_of(unit, file, text)
                for unit in units)  # fmt: skip

    def object_of(self, unit: str, file: str, text: str | None) -> bytes | None:
        with tempfile.NamedTemporaryFile(suffix=".o") as out, self.overwritten(file, text):
            command = [*self.compiler(unit), "-w", "-c", str(self.plain / unit), "-o", out.name]
            is_built = run(command, cwd=self.build_dir).status == 0
            return Path(out.name).read_bytes() if is_built else None

    def plant(self, mutants: list[Mutant]) -> None:
        """Writes sources with all mutants in them; mutant i is chosen by the number i + 1."""
        by_file: dict[str, list[tuple[int, Mutant]]] = {}
        for i, mutant in enumerate(mutants):
            by_file.setdefault(mutant.file, []).append((i + 1, mutant))
        for file, numbered in by_file.items():
            text = (self.plain / file).read_text()
            by_body: dict[tuple[int, int], list[tuple[int, Mutant]]] = {}
            for number, mutant in numbered:
                by_body.setdefault(mutant.body, []).append((number, mutant))
            for (start, end), inside in sorted(by_body.items(), reverse=True):
                body = text[start:end]
                bodies = "".join(
                    f"if (VXD_MUTANT_IS({number})) {with_own_labels(mutant.mutated_body(body))} "
                    "else " for number, mutant in inside)  # fmt: skip
                text = f"{text[:start]}{{ {bodies}{with_own_labels(body)} }}{text[end:]}"
            prelude = PRELUDE.replace("N_MUTANTS", str(len(mutants) + 1))
            text = f'{prelude}#line 1 "{self.sources / file}"\n{text}'
            if (self.sources / file).read_text() != text:
                (self.sources / file).write_text(text)
        programs = sorted({name for mutant in mutants for name in self.programs_of(mutant.file)})
        self.must("cmake", "--build", str(self.build_dir), "-j", str(self.jobs), "--target",
                  *sorted({self.target(program) for program in programs}))  # fmt: skip
        self.programs = self.list_programs()  # with commands, now that programs are there
        self.trace_dir.mkdir(exist_ok=True)
        tests = [test for program in programs for test in self.tests_of_program(program)]
        with ThreadPoolExecutor(self.jobs) as pool:
            done = pool.map(lambda test: self.measure(test, len(mutants)), tests)
            for test, left_out in zip(tests, done, strict=True):
                if left_out:
                    print(f"{test} is left out: {left_out}", flush=True)

    def measure(self, test: Test, n_mutants: int) -> str | None:
        """Runs a test without a mutant; gives why it is left out, None where it is not."""
        trace = self.trace_dir / str(test).replace(" ", ".")
        trace.write_bytes(bytes(n_mutants + 1))
        done = self.run_test(test, 0, LONGEST_TEST_S, 20 * LONGEST_TEST_S, None, trace)
        if "0 run, 0 failed" in done.output:
            return "this build does not have it"
        if done.status in (-signal.SIGXCPU, -9):
            return f"it takes more than {LONGEST_TEST_S} s"
        if done.status != 0:
            return f"it fails without a mutant: {done.output[-2000:]}"
        self.cpu_s[test] = done.cpu_s
        self.reached[test] = {i for i, is_met in enumerate(trace.read_bytes()) if is_met}
        return None

    def run_test(self, test: Test, number: int, cpu_s: int, wall_s: float,
                 stop: re.Pattern[str] | None, trace: Path | None = None) -> Run:  # fmt: skip
        program = self.programs[test.program]
        found = {item["name"]: item["value"] for item in program.get("properties", [])}
        # As deploy/test.sh does; and a mutant may ask for all memory there is.
        environment = {"VOXELD_TEST_SLOW": "4", "ASAN_OPTIONS": "hard_rss_limit_mb=4000"}
        environment |= self.environment | {"VOXELD_MUTANT": str(number)}
        environment |= {"VOXELD_MUTANT_TRACE": str(trace)} if trace else {}
        environment |= dict(item.split("=", 1) for item in found.get("ENVIRONMENT", []))
        command = [*program["command"], *([test.name] if test.name else [])]
        return run(command, cpu_s, wall_s, stop, cwd=found["WORKING_DIRECTORY"], env=environment)

    def try_mutant(self, mutant: Mutant, number: int) -> str:
        """Gives what noticed the mutant, or how it survived."""
        programs = self.programs_of(mutant.file)
        reaching = [test for test, numbers in self.reached.items() if number in numbers]
        tests = [test for test in reaching if test.program in programs]
        tests = tests or reaching
        for test in sorted(tests, key=lambda test: (self.cpu_s[test], test)):
            cpu_s = int(5 * self.cpu_s[test]) + 10
            done = self.run_test(test, number, cpu_s, 100 * cpu_s + 100, FAILED)
            if done.status in (-signal.SIGXCPU, -9) and not FAILED.search(done.output):
                return f"{test}: timed out"
            if done.status != 0:
                return str(test)
        if self.is_same_code(mutant):
            return SAME_CODE
        return SURVIVED if tests else UNREACHED


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--seed", type=int, default=1)
    add("--folder", nargs="+", default=list(SOURCES), help="folders or files; all: %(default)s")
    add("--number", type=int, default=200)
    add("--build-root", type=Path, default=Path("build/mutate"))
    add("--jobs", type=int, default=os.cpu_count() or 1)
    add("--list", action="store_true", help="only list what is drawn first")
    add("--one", nargs="+", metavar="FILE:LINE:COLUMN:OPERATOR", help="these alone")
    args = parser.parse_args()

    folders = [one.split(":")[0] for one in args.one or []] or args.folder
    engine_only = all(folder.startswith("gpu") for folder in folders)
    tree = Tree(args.build_root.resolve(), args.jobs, engine_only)
    drawn = [mutant for file in tree.sources_of(folders)
             for mutant in mutants_of(file, (tree.plain / file).read_text())
             if not args.one or mutant.place() in args.one]  # fmt: skip
    random.Random(args.seed).shuffle(drawn)
    if not drawn:
        sys.exit(f"nothing to mutate in {' '.join(args.one or folders)}")
    equal_lines = (Path(__file__).parent / "mutants_equal.txt").read_text().splitlines()
    equal = {line.rsplit(" : ", 1)[0] for line in equal_lines}
    if args.list:
        print(*(f"{m.place()}  {m.mutation}  {m.text}" for m in drawn[: args.number]), sep="\n")
        return 0

    # Some more than asked for: the compiler makes the same machine code of some.
    chosen: list[Mutant] = []
    for mutant in drawn:
        if len(chosen) == args.number + args.number // 8:
            break
        if mutant.key() in equal or tree.compiles(mutant):
            chosen.append(mutant)
    tree.plant(chosen)

    def judge(numbered: tuple[int, Mutant]) -> str:
        number, mutant = numbered
        is_equal = mutant.key() in equal and not args.one
        return SHOWN_EQUAL if is_equal else tree.try_mutant(mutant, number)

    survivors: list[tuple[Mutant, str]] = []
    table: collections.Counter[tuple[str, str]] = collections.Counter()
    with ThreadPoolExecutor(args.jobs) as pool:
        for mutant, found in zip(chosen, pool.map(judge, enumerate(chosen, 1)), strict=False):
            print(f"{mutant.place()}  {mutant.mutation}  {found}", flush=True)
            if found == SAME_CODE:
                continue
            if found in (SURVIVED, UNREACHED):
                survivors.append((mutant, found))
                found = SURVIVED
            folder = "/".join(mutant.file.split("/")[:2])
            table[folder, found if found in (SURVIVED, SHOWN_EQUAL) else "killed"] += 1
            if table.total() == args.number:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    for mutant, found in survivors:
        print(f"\n{found}\n{mutant.place()}\n    {mutant.text}\n    {mutant.key()}")
    print("\n| folder | mutants | killed | shown equal | survived |\n|---|---|---|---|---|")
    for folder in sorted({folder for folder, _ in table}):
        row = [table[folder, what] for what in ("killed", SHOWN_EQUAL, SURVIVED)]
        print(f"| {folder} | {sum(row)} | {' | '.join(map(str, row))} |")
    n_killed = sum(n for (_, what), n in table.items() if what == "killed")
    n = n_killed + len(survivors)
    percent = 100 * n_killed / n if n > 0 else 100
    print(f"killed {n_killed} of {n} not shown equal ({percent:.1f} %)")
    return 0 if percent >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
