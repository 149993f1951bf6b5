# SPDX-License-Identifier: Apache-2.0
"""Names that others rely on stay: wire fields and JSON keys, keys of configurations, metrics,
log messages, options, Python and C names, installed files, CMake targets, files on the disk.
tests/data/names/ has them all, a file a kind, a name a line; names.py finds today's.

    test_names.py --write BUILD_DIR    (with that build's venv/bin/python)

adds the names that are new. It takes none out: a name is given up by deleting its line by hand.
Lines of wire.txt stay for ever. A field or enumerator that is deleted leaves its number and its
name `reserved` in the .proto, so that no later one means something else to an old client."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

if __name__ == "__main__" and len(sys.argv) == 3:
    # What integration.cmake sets for the tests; harness reads it.
    _build = Path(sys.argv[2]).resolve()
    os.environ.setdefault("VOXELD_BIN_DIR", str(_build / "bin"))
    os.environ.setdefault("VOXELD_PYTHON_SCHEMA", str(_build / "tests/integration/python"))
    os.environ.setdefault("VOXELD_SOURCE_DIR", str(Path(__file__).resolve().parents[2]))
    sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import pytest
from harness import SOURCE
from names import KINDS, names_of

FOLDER = SOURCE / "tests" / "data" / "names"
NUMBERED = re.compile(r"(?P<of>[\w.]+)\.(?P<name>\w+) = (?P<number>-?\d+)")
COMMAND = "run test_names.py --write BUILD_DIR, which adds them"


def written(kind: str) -> set[str]:
    path = FOLDER / f"{kind}.txt"
    return set(path.read_text().splitlines()) if path.exists() else set()


def is_reserved(line: str, present: set[str]) -> bool:
    """Whether a field or enumerator was deleted in order."""
    match = NUMBERED.match(line)
    return match is not None and {
        f"{match['of']} reserved {match['number']}",
        f'{match["of"]} reserved "{match["name"]}"',
    } <= present


def gone(kind: str, before: set[str], present: set[str]) -> list[str]:
    lost = sorted(before - present)
    return lost if kind != "wire" else [n for n in lost if not is_reserved(n, present)]


def misused_numbers(before: set[str], present: set[str]) -> list[str]:
    """Finds numbers that are free again or mean another field than before. A message or enum that
    is gone as a whole has none."""
    numbers: dict[tuple[str, str], set[str]] = {}
    for line in present:
        match = NUMBERED.match(line)
        if match:
            numbers.setdefault((match["of"], match["number"]), set()).add(line)
    wrong = []
    for line in sorted(before):
        match = NUMBERED.match(line)
        if not match or not {f"message {match['of']}", f"enum {match['of']}"} & present:
            continue
        now = numbers.get((match["of"], match["number"]), set())
        if not now and not is_reserved(line, present):
            wrong.append(f"{line}: deleted; reserve the number and the name in the .proto")
        elif now and line not in now:
            wrong.append(f"{line}: the number now means {' and '.join(sorted(now))}")
    return wrong


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_others_rely_on_stay(kind: str) -> None:
    before, present = written(kind), names_of(kind)
    lost = gone(kind, before, present)
    new = sorted(present - before)
    assert not lost, "\n".join(
        [f"{len(lost)} names of tests/data/names/{kind}.txt are gone or changed:", *lost]
        + (["These are new:", *new] if new else [])
    )
    assert not new, "\n".join(
        [f"{len(new)} names are not in tests/data/names/{kind}.txt; {COMMAND}:", *new]
    )


def test_numbers_of_fields_are_never_used_again() -> None:
    wrong = misused_numbers(written("wire"), names_of("wire"))
    assert not wrong, "\n".join(wrong)


def test_a_deleted_field_is_accepted_only_when_it_is_reserved() -> None:
    before = {"message a.M", "a.M.x = 1 uint32", "a.M.y = 2 string", "enum a.E", "a.E.Z = 0"}
    reserved = {"a.M reserved 1", 'a.M reserved "x"'}
    without_x = before - {"a.M.x = 1 uint32"}
    assert misused_numbers(before, before) == []
    assert misused_numbers(before, without_x | reserved) == []
    assert gone("wire", before, without_x | reserved) == []
    # The cases: reserved by number alone, renamed, of another type, another field under the
    # number.
    for now in (
        without_x,
        without_x | {"a.M reserved 1"},
        without_x | {"a.M.z = 1 uint32"},
        without_x | {"a.M.x = 1 string"},
        without_x | {"a.M.x = 3 uint32"},
        before - {"a.E.Z = 0"} | {"a.E.Y = 0"},
    ):
        assert len(misused_numbers(before, now)) == 1, now
        assert len(gone("wire", before, now)) == 1, now


def test_snapshots_are_sorted_lines() -> None:
    assert {p.stem for p in FOLDER.glob("*.txt")} == set(KINDS)
    for path in FOLDER.glob("*.txt"):
        lines = path.read_text().splitlines()
        assert lines == sorted(set(lines)), path.name


def main() -> int:
    """Adds names that are new; changes nothing where a name is gone."""
    present = {kind: names_of(kind) for kind in KINDS}
    before = {kind: written(kind) for kind in KINDS}
    lost = [f"{k}.txt: {n}" for k in KINDS for n in gone(k, before[k], present[k])]
    if lost:
        print("Gone or changed; delete a line by hand where that is meant:", *lost, sep="\n")
        return 1
    FOLDER.mkdir(exist_ok=True)
    for kind in KINDS:
        new = sorted(present[kind] - before[kind])
        text = "".join(f"{name}\n" for name in sorted(present[kind] | before[kind]))
        (FOLDER / f"{kind}.txt").write_text(text)
        print(f"{kind}.txt: {len(new)} names are new", *new[:20], sep="\n  ")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "--write":
        sys.exit("usage: test_names.py --write BUILD_DIR")
    sys.exit(main())
