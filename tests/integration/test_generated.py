# SPDX-License-Identifier: Apache-2.0
"""What proto/gen makes is in the tree as it makes it, and the schema that everybody compiles is
the annotated one without our options."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.descriptor import Descriptor
from harness import SOURCE, rpc_pb2
from names import declarations

GEN = SOURCE / "proto" / "gen"
HEADERS = {"map": "voxeld_map.h", "network": "voxeld_net.h"}


def test_the_version_is_one_everywhere() -> None:
    run = subprocess.run(
        [sys.executable, SOURCE / "deploy" / "version.py"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, f"run deploy/version.py:\n{run.stdout}{run.stderr}"


def test_everything_generated_is_as_the_generator_makes_it() -> None:
    run = subprocess.run(
        [sys.executable, GEN / "generate.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, f"run proto/gen/generate.py:\n{run.stdout}{run.stderr}"


def descriptors(folder: Path, out: Path) -> descriptor_pb2.FileDescriptorSet:
    names = sorted(p.name for p in (SOURCE / "proto" / "voxeld" / "v1").glob("*.proto"))
    subprocess.run(
        ["protoc", "-I", folder, f"--descriptor_set_out={out}"]
        + [f"voxeld/v1/{name}" for name in names],
        check=True,
    )
    return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def test_options_change_nothing_on_the_wire(tmp_path: Path) -> None:
    annotated = descriptors(GEN / "schema", tmp_path / "annotated.bin")
    stock = descriptors(SOURCE / "proto", tmp_path / "stock.bin")
    for file in annotated.file:
        file.ClearField("options")
        file.dependency.remove("voxeld/v1/options.proto")
        for message in file.message_type:
            message.ClearField("options")
            for field in message.field:
                field.options.DiscardUnknownFields()
                if not field.options.ListFields():
                    field.ClearField("options")
    assert annotated == stock


@pytest.mark.parametrize("word", ["option (", "[(field)", "options.proto"])
def test_users_of_the_schema_see_no_options(word: str) -> None:
    for path in (SOURCE / "proto" / "voxeld" / "v1").glob("*.proto"):
        assert word not in path.read_text(), path.name


def generated_header(noun: str) -> str:
    """What would be the noun's installed header if it had none."""
    sys.path.insert(0, str(GEN))
    try:
        model, c_header = map(importlib.import_module, ("model", "clients.c_header"))
    finally:
        sys.path.remove(str(GEN))
    face = tomllib.loads((GEN / "faces" / f"{noun}.toml").read_text())
    return c_header.CHeader(model.Schema(), noun, face).text()


def named(text: str) -> set[str]:
    """Members and enumerators without their places, and the names of functions."""
    found = set()
    for line in declarations(text):
        function = re.search(r"\b(voxeld_\w+)\(", line)
        found.add(function[1] if function else re.sub(r" \[\d+\]", "", line, count=1))
    return found


@pytest.mark.parametrize("noun", ["map", "network"])
def test_header_of_a_new_noun_would_be_as_those_by_hand(noun: str, tmp_path: Path) -> None:
    include = SOURCE / "client" / "c" / "include"
    by_hand = named("".join((include / name).read_text() for name in ("voxeld.h", HEADERS[noun])))
    header = generated_header(noun)
    assert named(header) - by_hand == set()
    if noun == "map":
        whole = named((include / HEADERS[noun]).read_text())
        assert whole - named(header) == {"voxeld_map_export_file"}
        check_compiles(header, include, tmp_path)


def check_compiles(header: str, include: Path, tmp_path: Path) -> None:
    for path in include.glob("*.h"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "voxeld_map.h").write_text(header)
    for language, standard in (("c", "c11"), ("c++", "c++17")):
        subprocess.run(
            ["cc", "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
             "-fsyntax-only", tmp_path / "voxeld.h"],
            check=True,
        )  # fmt: skip


def document() -> dict[str, object]:
    return json.loads((SOURCE / "proto" / "generated" / "openapi.json").read_text())


def test_each_example_is_a_request_of_its_method() -> None:
    assert os.environ["VOXELD_PYTHON_SCHEMA"]
    request = importlib.import_module("voxeld.v1.rpc_pb2").Request
    for method in request.DESCRIPTOR.oneofs_by_name["method"].fields:
        post = document()["paths"][f"/v1/{method.name}"]["post"]
        example = post["requestBody"]["content"]["application/json"]["example"]
        message = getattr(request(), method.name)
        json_format.ParseDict(example, type(message)())


def test_scopes_and_summaries_are_those_of_the_server() -> None:
    table = (SOURCE / "server" / "method_table.c").read_text()
    found = re.findall(r'VXD_NAMED\("(\w+)",(.*?)\}(?=[,;]\s)', table, re.DOTALL)
    assert len(found) > 30
    for name, rest in found:
        post = document()["paths"][f"/v1/{name}"]["post"]
        scope = re.search(r"VXD_SCOPE_(\w+)", rest)
        summary = re.search(r'\.summary =\s*((?:"[^"]*"\s*)+)', rest)
        assert scope is not None and summary is not None, name
        assert post["x-voxeld-scope"] == scope[1].lower(), name
        assert post["summary"] == "".join(re.findall(r'"([^"]*)"', summary[1])), name
        assert ("exactly once" in post["description"]) == (".changes" in rest), name


# Strings of requests that name nothing that a token could be kept from.
NO_NAMES = {
    "fields.name", "spec.values.name", "values.name", "spec.palette.name",  # parts of one thing
    "request_id",  # of why
    "expect_digest", "features", "frame_id", "image", "level", "output", "outputs",
    "label_field", "label_name", "material_name", "rule.field", "time_field", "scopes",
    "prefixes", "snapshot", "values",
}  # fmt: skip


def strings_of(descriptor: Descriptor, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in descriptor.fields:
        if field.type == field.TYPE_STRING:
            yield (*path, field.name)
        elif field.type == field.TYPE_MESSAGE:
            yield from strings_of(field.message_type, (*path, field.name))


def test_every_name_in_a_request_is_checked_against_tokens() -> None:
    table = (SOURCE / "server" / "access" / "object_fields.c").read_text()
    rows = set(re.findall(r"OBJECT\((\w+), (\d+), (\d+), \d+, \w+\)", table))
    for field in rpc_pb2.Request.DESCRIPTOR.oneofs_by_name["method"].fields:
        request = field.message_type
        message = re.sub(r"(?<!^)(?=[A-Z])", "_", request.name).lower()
        for path in strings_of(request):
            words = ".".join(path)
            if any(words == n or words.endswith(f".{n}") for n in NO_NAMES):
                continue
            assert len(path) <= 2, f"{request.name}.{words} lies deeper than is looked"
            first = request.fields_by_name[path[0]]
            inner = first.message_type.fields_by_name[path[1]].number if path[1:] else 0
            row = (message, str(first.number), str(inner))
            assert row in rows, f"{request.name}.{words} is checked by nobody"
        if field.name.endswith("_list"):
            reply = message.replace("_request", "_response")
            assert any(row[0] == reply for row in rows), f"{reply} shows all names"


def test_completion_of_a_new_command_needs_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completion is the same where the record of names, which is written from the built program,
    does not have the commands of a face yet."""
    monkeypatch.syspath_prepend(str(GEN))
    model, shells = importlib.import_module("model"), importlib.import_module("shells")
    command_line = importlib.import_module("command_line")
    faces = {p.stem: tomllib.loads(p.read_text()) for p in GEN.glob("faces/*.toml")}
    schema = model.Schema()
    lines = [command_line.CommandLine(schema, n, f) for n, f in faces.items() if "ctl" in f]
    recorded = shells.NAMES.read_text().splitlines()
    without = [n for n in recorded if not n.startswith(("voxelctl map", "voxelctl scene render"))]
    assert len(without) < len(recorded) - 100
    for make in (shells.bash, shells.zsh, shells.fish):
        made = make(shells.Commands(without, lines))
        assert made == make(shells.Commands(recorded, lines))
