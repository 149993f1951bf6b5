#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how strong the tests are: changes one operator of a source file at a time (a mutant),
builds, and runs the tests of that file's module under AddressSanitizer. A mutant that no test
notices survives: a test is missing, or the mutant computes the same.

usage: tests/mutate.py [--seed S] [--folder gpu ...] [--number N] [--build-root DIR] [--jobs J]
                       [--list] [--one FILE:LINE:COLUMN:OPERATOR ...]

Works in a copy of the sources under the build root, never in the working tree. Mutants that do
not build, and those of which the compiler makes the same machine code, are drawn anew. Mutants
shown to be equal stand in tests/mutants_equal.txt, a line each:

    FILE:FUNCTION:text of the source line:MUTATION : the reason

with FILE's name without its folders and MUTATION as a survivor's report prints it. They are left
out of the rate. Exits with 0 if at least 90 % of the others are killed.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

# Which tests a source has: the first line whose first pattern is found in the file's path says, by
# the names of unit tests that its second pattern matches as a whole; all where none is. They run
# cheapest first. Those that take minutes are left out.
TESTS = (
    (r"gpu/hash/", r"gpu_(hash_.*|digests|alloc)"),
    (r"gpu/paper/slab_map", r"gpu_(hash_.*|alloc)"),
    (r"gpu/paper/", r"gpu_(paper|svdag_(store|store_items|rays|image|collect)_store\d)"),
    (r"gpu/voxel/", r"gpu_(cloud|voxelize|digests|facts|alloc)"),
    (r"gpu/sparse/conv/", r"gpu_(sparse_.*|network(_ops|_taps|_runs)?|digests)"),
    (r"gpu/sparse/(executor|layers)/", r"gpu_(network.*|gather|digests)"),
    (r"gpu/sparse/", r"gpu_(sparse_.*|gather|network(_ops|_taps)?|digests|alloc)"),
    (r"gpu/core/", r"gpu_(core|sort|pool|machine|alloc|hash_.*|voxelize|digests|sparse_.*)"),
    (r"svdag/scan/",
     r"gpu_svdag_(carve|scan|drive|octree_planes|store_alloc|digests|op_octree|copy_visits)"),
    (r"svdag/collect/",
     r"gpu_svdag_(collect|store_alloc|versions_alloc|store.*|table|store_verify)"),
    (r"svdag/.*(diff|undo|copy|morph)",
     r"gpu_svdag_(diff|undo|copy|edit_grid|export|octree_planes|edit|store_alloc|edit_alloc|"
     r"versions_alloc)"),
    (r"svdag/(query|diff)/",
     r"gpu_svdag_(query|rays|drive|export|copy|octree_planes|edit_grid|store_alloc|versions_alloc)"),
    (r"svdag/.*(image|verify)",
     r"gpu_svdag_(image.*|store_verify|copy|store_alloc|versions_alloc|collect)"),
    (r"svdag/", r"gpu_svdag_(?!.*_store\d).*"),
    (r"server/durable/", r"server_(durable_.*|map_record|once_disk|scene_faults)"),
    (r"request/auth", r"server_(auth|config)"),
    (r"server/schedule/", r"server_(scheduler|batch|request|once|alloc)"),
    (r"request/exactly_once", r"server_(once|once_disk|request|alloc|durable_alloc|scene_faults)"),
    (r"server/", r"server_(request|once|scheduler|batch|alloc)"),
    (r"proto/base/(json_file|number)", r"client_(json|arrays|files|write)"),
    (r"proto/base/(crc32c|xxh64)", r"server_(durable_files|map_file)"),
    (r"proto/base/clock", r"server_(scheduler|batch)"),
    (r"proto/", r"proto_.*"),
)
# What is drawn from, of the .c files that are built and of headers with code of the CPU.
SOURCES = {
    "gpu": r"^gpu/",
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
COULD_NOT, SAME_CODE = "did not build", "same machine code"
GOAL, LEAST_TIMEOUT_S = 90, 10


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

    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}:{self.operator}"

    def key(self) -> str:
        return f"{Path(self.file).name}:{self.function}:{self.text}:{self.mutation}"


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
            if gives_void:
                add(match, "{ return;")
            depth = 1
        elif token in "{}" and function:
            depth += 1 if token == "{" else -1
            function = function if depth > 0 else ""
        elif function and skipped is None:
            if (swap := swap_of(token, text, match.end(), in_for is not None)) is not None:
                add(match, swap)
        before.append(token)
    return mutants


def run(command: list[str], timeout: float | None = None, **options: object) -> tuple[int, str]:
    """Gives the exit status, -9 where it ran out of time, and the output."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True, **options) as child:  # type: ignore[call-overload]  # fmt: skip
        try:
            output, _ = child.communicate(timeout=timeout)
            return child.returncode, output
        except subprocess.TimeoutExpired:
            return -9, ""
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Tree:
    def __init__(self, root: Path, jobs: int, engine_only: bool) -> None:
        self.sources = root / "sources"
        self.build_dir = root / ("engine" if engine_only else "all")
        self.jobs, self.times_path = jobs, self.build_dir / "mutate_times.json"
        self.objects: dict[Path, str] = {}
        self.times: dict[str, float] = {}
        here = Path(__file__).resolve().parent.parent
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=here,
                                capture_output=True, text=True, check=True)  # fmt: skip
        files = {name for name in listed.stdout.splitlines() if (here / name).is_file()}
        copied = {path for path in self.sources.rglob("*") if path.is_file()}
        for old in copied - {self.sources / name for name in files}:
            old.unlink()
        for source, copy in ((here / name, self.sources / name) for name in files):
            if not copy.is_file() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        self.must("cmake", "-S", str(self.sources), "-B", str(self.build_dir), "-G", "Ninja",
                  "-DVOXELD_SANITIZE=address", "-DVOXELD_CUDA=OFF", "-DVOXELD_WERROR=OFF",
                  "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
                  f"-DVOXELD_ENGINE_ONLY={'ON' if engine_only else 'OFF'}")  # fmt: skip
        self.tests = self.list_tests()

    def must(self, *command: str) -> str:
        status, output = run(list(command))
        if status != 0:
            sys.exit(f"{output[-4000:]}\n{' '.join(command)}: exit status {status}")
        return output

    def list_tests(self) -> dict[str, dict[str, Any]]:
        listed = self.must("ctest", "--test-dir", str(self.build_dir), "--show-only=json-v1")
        return {test["name"]: test for test in json.loads(listed)["tests"]}

    def sources_of(self, folders: list[str]) -> list[str]:
        commands = (self.build_dir / "compile_commands.json").read_text()
        built = {os.path.relpath(entry["file"], self.sources) for entry in json.loads(commands)}
        headers = {str(path.relative_to(self.sources)) for path in self.sources.rglob("*_*.h")}
        wanted = "|".join(SOURCES.get(folder, "^" + re.escape(folder)) for folder in folders)
        found = built | {name for name in headers if re.search(r"_(math|cpu)\.h$", name)}
        return sorted(f for f in found if re.search(wanted, f) and not f.startswith("tests/"))

    def tests_of(self, file: str) -> list[str]:
        pattern = next((tests for path, tests in TESTS if re.search(path, file)), ".*")
        tests = [name for name in self.tests if re.fullmatch(f"test_({pattern})", name)]
        return sorted(tests, key=lambda name: (self.times.get(name, 0), name))

    def build(self, tests: list[str]) -> tuple[int, str]:
        targets = sorted({re.sub(r"_store\d$", "", test) for test in tests})
        return run(["cmake", "--build", str(self.build_dir), "-j", str(self.jobs), "--target",
                    *targets])  # fmt: skip

    def run_test(self, name: str, timeout: float | None = None) -> tuple[int, str]:
        test = self.tests[name]
        found = {item["name"]: item["value"] for item in test.get("properties", [])}
        # As deploy/test.sh does; and a mutant may ask for all memory there is.
        environment = {"VOXELD_TEST_SLOW": "4", "ASAN_OPTIONS": "hard_rss_limit_mb=4000"}
        environment |= os.environ | dict(i.split("=", 1) for i in found.get("ENVIRONMENT", []))
        return run(test["command"], timeout, cwd=found["WORKING_DIRECTORY"], env=environment)

    def prepare(self, tests: list[str]) -> None:
        """Builds the tests unmutated, and takes their times where they have changed."""
        status, output = self.build(tests)
        if status != 0:
            sys.exit(f"{output[-4000:]}\nthe unmutated sources do not build")
        self.tests = self.list_tests()  # with commands, now that programs are there
        self.objects = {path: digest(path) for path in self.build_dir.rglob("*.o")}
        known = json.loads(self.times_path.read_text()) if self.times_path.exists() else {}
        for name in tests:
            program = digest(Path(self.tests[name]["command"][0]))
            if known.get(name, [""])[0] != program:
                start = time.monotonic()
                status, output = self.run_test(name)
                if status != 0:
                    sys.exit(f"{output[-4000:]}\n{name} fails without a mutant")
                known[name] = [program, time.monotonic() - start]
                self.times_path.write_text(json.dumps(known, indent=1))
            self.times[name] = known[name][1]

    def is_same_code(self, file: str, since: float) -> bool:
        """Of a source its own object, which the tests may lack; of a header all that are new."""
        name = "*.o" if file.endswith(".h") else Path(file).name + ".o"
        new = [p for p in self.objects if p.match(name) and p.stat().st_mtime >= since]
        return new != [] and all(digest(path) == self.objects[path] for path in new)

    def try_mutant(self, mutant: Mutant) -> str | None:
        """Gives what noticed the mutant; None: nothing did."""
        path = self.sources / mutant.file
        text = path.read_text()
        rest = text[mutant.start + len(mutant.operator) :]
        since = time.time() - 1
        try:
            path.write_text(text[: mutant.start] + mutant.swap + rest)
            tests = self.tests_of(mutant.file)
            for number, test in enumerate(tests):
                if self.build([test])[0] != 0:
                    return COULD_NOT
                if number == 0 and all(self.build(built)[0] == 0 and self.is_same_code(
                        mutant.file, since) for built in ([test], tests)):  # fmt: skip
                    return SAME_CODE
                status, output = self.run_test(test, 5 * self.times[test] + LEAST_TIMEOUT_S)
                if status != 0:
                    failed = [line for line in output.splitlines() if line.startswith("FAIL ")]
                    return f"{test}: {[*failed, 'timed out' if status == -9 else status][0]}"
            return None
        finally:
            path.write_text(text)


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
             for mutant in mutants_of(file, (tree.sources / file).read_text())
             if not args.one or mutant.place() in args.one]  # fmt: skip
    random.Random(args.seed).shuffle(drawn)
    if not drawn:
        sys.exit(f"nothing to mutate in {' '.join(args.one or folders)}")
    equal_lines = (Path(__file__).parent / "mutants_equal.txt").read_text().splitlines()
    if args.list:
        print(*(f"{m.place()}  {m.mutation}  {m.text}" for m in drawn[: args.number]), sep="\n")
        return 0
    tree.prepare(sorted({test for m in drawn[: args.number] for test in tree.tests_of(m.file)}))

    survivors: list[Mutant] = []
    counts = {COULD_NOT: 0, SAME_CODE: 0, "shown equal": 0, "killed": 0}
    for mutant in drawn:
        if counts["shown equal"] + counts["killed"] + len(survivors) == args.number:
            break
        if any(line.startswith(mutant.key() + " : ") for line in equal_lines):
            found: str | None = "shown equal"
        else:
            if not tree.times.keys() >= set(tree.tests_of(mutant.file)):
                tree.prepare(sorted({*tree.times, *tree.tests_of(mutant.file)}))
            found = tree.try_mutant(mutant)
        if found is None:
            survivors.append(mutant)
        else:
            counts[found if found in counts else "killed"] += 1
        print(f"{mutant.place()}  {mutant.mutation}  {found or 'SURVIVED'}", flush=True)
    for mutant in survivors:
        print(f"\nsurvivor {mutant.place()}\n    {mutant.text}\n    {mutant.key()}")
    n = counts["killed"] + len(survivors)
    percent = 100 * counts["killed"] / n if n > 0 else 100
    print(f"\n{', '.join(f'{number} {what}' for what, number in counts.items())}")
    print(f"killed {counts['killed']} of {n} not shown equal ({percent:.1f} %)")
    return 0 if percent >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
