# SPDX-License-Identifier: Apache-2.0
"""Writes all that is generated from the annotated schema. Needs protoc with descriptor.proto
(Debian: protobuf-compiler, libprotobuf-dev) and Python's protobuf.

usage: generate.py             writes what has changed into the tree
       generate.py --check     writes nothing; names what is not as it would be written
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import command_arguments
import command_json
import command_manuals
import command_runs
import command_text
import message_reader
import objects
import openapi
import ranges
import reference
import server_methods
import shapes
import shells
import stock
from clients import c_client, c_header, python_classes, python_client
from command_line import CommandLine
from model import Schema

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def project_version() -> str:
    found = re.search(r"project\(voxeld VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert found is not None
    return found[1]


def all_outputs() -> dict[str, str]:
    """Path from the root -> content."""
    schema = Schema()
    made = stock.outputs()
    made |= openapi.outputs(schema, project_version())
    made |= reference.outputs(schema)
    made |= objects.outputs(schema)
    made |= ranges.outputs(schema)
    made |= shapes.outputs(schema)
    made |= server_methods.outputs(schema)
    faces = {p.stem: tomllib.loads(p.read_text()) for p in sorted((HERE / "faces").glob("*.toml"))}
    made |= shells.outputs(schema, faces)
    made |= command_runs.outputs(schema, faces)
    made |= python_classes.outputs(schema, faces)
    for noun, face in faces.items():
        made |= c_header.outputs(schema, noun, face)
        made |= c_client.outputs(schema, noun, face)
        if "python" in face:
            made |= python_client.outputs(schema, noun, face)
        if "ctl" in face:
            line = CommandLine(schema, noun, face)
            for writer in (command_arguments, command_manuals, command_json, command_text):
                made |= writer.outputs(line)
            made |= message_reader.outputs(schema, noun, face)
    return made


def main(words: list[str]) -> int:
    if words not in ([], ["--check"]):
        sys.exit(__doc__)
    stale = []
    for name, content in all_outputs().items():
        path = ROOT / name
        if not path.exists() or path.read_text() != content:
            stale.append(name)
            if not words:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
    for name in stale:
        print(f"{name} {'is not what generate.py makes' if words else 'written'}")
    return 1 if stale and words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
