# SPDX-License-Identifier: Apache-2.0
"""Collects every name that someone outside the project may rely on, one a line: wire fields,
keys, options, metrics, files. test_names.py compares them with tests/data/names.

Programs, installed files and descriptors are asked where they can tell. What only the source
knows is searched for in all of server/, client/ and proto/, so that files may move."""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import harness
import maps
import numpy as np
import scenes
from google.protobuf import descriptor_pb2, descriptor_pool
from harness import (
    BIN,
    SLOW,
    SOURCE,
    Daemon,
    common_pb2,
    http_call,
    running,
    tensor_of,
    wait_until,
)
from test_layers import our_files

# The source's names of its log function, of its table of a network's keys and of the kinds of the
# daemon's keys. Whoever renames one of these renames it here.
LOG_CALL = "vxd_log"
NETWORK_KEYS = "vxd_json_key"
CONFIG_KIND = "VXD_CONFIG_"

BUILD = BIN.parent
TOKEN = re.compile(  # comment, string, character, word, number, sign
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\d[\w.]*|\S""",
    re.DOTALL,
)

# The source -----------------------------------------------------------------------------------


def tokens_of(text: str) -> list[str]:
    """Yields C tokens without comments and includes; strings that follow each other are one, also
    across a macro between them (of <inttypes.h>)."""
    text = re.sub(r"^\s*#\s*include.*$", "", text, flags=re.MULTILINE)
    found: list[str] = []
    for match in TOKEN.finditer(text):
        token = match.group()
        if token.startswith(("//", "/*")):
            continue
        if token[0] == '"' and found and found[-1][0] == '"':
            found[-1] = found[-1][:-1] + token[1:]
        elif token[0] == '"' and len(found) > 1 and found[-1][:3] == "PRI" and found[-2][0] == '"':
            found.pop()
            found[-1] = found[-1][:-1] + token[1:]
        else:
            found.append(token)
    return found


@cache
def source_tokens() -> dict[str, list[list[str]]]:
    """Yields the tokens of each file, by the folder at the top."""
    tokens: dict[str, list[list[str]]] = {"server": [], "client": [], "proto": []}
    for path in our_files():
        top = path.relative_to(SOURCE).parts[0]
        if top in tokens and path.suffix in {".c", ".h"}:
            tokens[top].append(tokens_of(path.read_text()))
    return tokens


def literals(*tops: str) -> Iterator[tuple[str, str]]:
    """Yields folder at the top and content of each string literal."""
    for top in tops:
        for tokens in source_tokens()[top]:
            for token in tokens:
                if token[0] == '"':
                    yield top, token[1:-1]


def block_of(tokens: list[str], start: int) -> list[list[str]]:
    """Returns the bracket at tokens[start] up to its end, split at its own commas."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens[start:]:
        depth += (token in "([{") - (token in ")]}")
        if depth == 0:
            break
        if depth == 1 and token == ",":
            parts.append([])
        elif not (depth == 1 and token in "([{"):
            parts[-1].append(token)
    return parts


def strings_of(tokens: list[str]) -> list[str]:
    return [t[1:-1] for t in tokens if t[0] == '"']


# A daemon's short life ------------------------------------------------------------------------


class Life(NamedTuple):
    metrics: str
    openapi: dict[str, Any]
    log: list[dict[str, Any]]
    routes: list[str]  # routes of the source that are answered
    disk: list[str]


def normal(name: str) -> str:
    """Returns a file's name without its numbers."""
    return re.sub(r"(?<![a-z])[0-9a-f]{8,}(?![a-z])", "HEX", name)


def disk_names(data: Path) -> list[str]:
    """Yields names of files with their first bytes, and the database's tables."""
    names = set()
    for path in data.rglob("*"):
        name = normal(path.relative_to(data).as_posix())
        if path.is_dir():
            names.add(f"{name}/")
            continue
        names.add(name)
        if path.suffix in {".db", ".vxs", ".vxm"}:
            names.add(f"{name} begins {path.read_bytes()[:8]!r}")
    with contextlib.closing(sqlite3.connect(f"file:{data / 'voxeld.db'}?mode=ro", uri=True)) as db:
        for pragma in ("application_id", "user_version"):
            (value,) = db.execute(f"PRAGMA {pragma}").fetchone()
            names.add(f"voxeld.db {pragma} {value}")
        for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
            names.add(f"voxeld.db {kind} {name} {' '.join((sql or '').split())}".rstrip())
        for (key,) in db.execute("SELECT key FROM meta"):
            names.add(f"voxeld.db meta {key}")
    return sorted(names)


@cache
def status_of(daemon: Daemon, path: str) -> int:
    """Of a GET whose body may have no end."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http_port, timeout=30 * SLOW)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def life() -> Life:
    """Runs one daemon that writes every kind of file, and answers with success and with an error.
    """
    routes = {s for _, s in literals("server") if re.fullmatch(r"(?:/[a-z0-9_.]+)+", s)}
    routes |= {"/", *(f"/{f.name}" for f in (SOURCE / "server" / "web" / "files").iterdir())}
    with tempfile.TemporaryDirectory(prefix="voxeld-names-") as folder:
        root = Path(folder)
        with running(root, {"log": {"level": "debug"}}) as daemon:
            with maps.Maps(daemon) as client:
                client.call("map_create", name="m", spec=maps.SPEC, durable=True,
                            fsync="MAP_FSYNC_ALWAYS", journal_max_bytes=4096)  # fmt: skip
                keys = np.random.default_rng(1).integers(0, 1 << 20, (2000, 3), np.int32)
                client.call("map_insert", name="m", keys=tensor_of(keys))
                client.call("map_save", name="m", file="f")
                client.fails("map_get", common_pb2.NOT_FOUND, name="none")
            with scenes.Scenes(daemon) as client:
                client.call("scene_create", name="s", spec=scenes.spec())
                client.edit("s", scenes.box((0, 0, 0), (1, 1, 1)))
            wait_until(lambda: daemon.find("snapshot written"), 20, "a snapshot")
            reply = http_call(daemon, "POST", "/v1/backup", {"name": "monday"})
            assert reply.status == 200, reply.body
            openapi = http_call(daemon, "GET", "/v1/openapi.json").json()
            metrics = http_call(daemon, "GET", "/metrics").body.decode()
            known = [r for r in routes if status_of(daemon, r) not in (404, 405)]
        return Life(metrics, openapi, daemon.log, known, disk_names(root / "data"))


# Kinds of names -------------------------------------------------------------------------------


def schema_files() -> list[descriptor_pb2.FileDescriptorProto]:
    found = []
    for path in sorted(Path(os.environ["VOXELD_PYTHON_SCHEMA"]).glob("voxeld/v1/*_pb2.py")):
        file = descriptor_pb2.FileDescriptorProto()
        importlib.import_module(f"voxeld.v1.{path.stem}").DESCRIPTOR.CopyToProto(file)
        found.append(file)
    return found


def messages(
    prefix: str, found: Iterable[descriptor_pb2.DescriptorProto]
) -> Iterator[tuple[str, descriptor_pb2.DescriptorProto]]:
    for message in found:
        name = f"{prefix}.{message.name}"
        yield name, message
        yield from messages(name, message.nested_type)


def field_line(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    field: descriptor_pb2.FieldDescriptorProto,
) -> str:
    kind = field.type_name.removeprefix(".") or field.Type.Name(field.type)[5:].lower()
    words = [f"{name}.{field.name} = {field.number}"]
    if field.label == field.LABEL_REPEATED:
        words.append("repeated")
    if field.proto3_optional:
        words.append("optional")
    words.append(kind)
    if field.HasField("oneof_index") and not field.proto3_optional:
        words.append(f"in oneof {message.oneof_decl[field.oneof_index].name}")
    return " ".join(words)


def reserved_lines(
    name: str, item: descriptor_pb2.DescriptorProto | descriptor_pb2.EnumDescriptorProto, last: int
) -> Iterator[str]:
    """Ranges of messages end before `end`, those of enums with it."""
    for span in item.reserved_range:
        assert span.end - span.start < 10000, f"{name}: name reserved numbers one by one"
        for number in range(span.start, span.end + last):
            yield f"{name} reserved {number}"
    for word in item.reserved_name:
        yield f'{name} reserved "{word}"'


def wire_names() -> Iterator[str]:
    for file in schema_files():
        yield f"file {file.name}"
        enums = [(f"{file.package}.{e.name}", e) for e in file.enum_type]
        for name, message in messages(file.package, file.message_type):
            yield f"message {name}"
            yield from (field_line(message, name, field) for field in message.field)
            yield from reserved_lines(name, message, 0)
            enums += [(f"{name}.{e.name}", e) for e in message.enum_type]
        for name, enum in enums:
            yield f"enum {name}"
            yield from (f"{name}.{v.name} = {v.number}" for v in enum.value)
            yield from reserved_lines(name, enum, 1)


@cache
def api_document() -> dict[str, Any]:
    return json.loads((SOURCE / "proto/generated/openapi.json").read_text())


def document_keys(value: Any, holds_names: bool = False) -> Iterator[str]:
    """Keys of the API's document; not those that are names of messages and their fields."""
    if isinstance(value, list):
        for item in value:
            yield from document_keys(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "example":
                continue
            if re.fullmatch(r"\w+", key) and not holds_names:
                yield f"proto {key}"
            names_follow = key in ("schemas", "properties") and not holds_names
            yield from document_keys(inner, names_follow)


def json_keys() -> Iterator[str]:
    """Those of messages and of the API's document, and those that are written into a text by
    hand."""
    yield from document_keys(api_document())
    error = api_document()["components"]["schemas"]["Error"]
    yield from (f"proto {key}" for key in ("Error", *error["properties"]))
    for file in schema_files():
        for name, _ in messages(file.package, file.message_type):
            known = descriptor_pool.Default().FindMessageTypeByName(name)
            yield from (f"{name} {field.json_name}" for field in known.fields)
    for top, text in literals("server", "client", "proto"):
        for key in re.findall(r'\\"(\w+)\\" ?:', text):
            yield f"{top} {key}"


def config_range(key: str) -> str:
    """Returns the choices that the daemon names when it is given -1."""
    value: Any = -1
    for word in reversed(key.split(".")):
        value = {word: value}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(value, file)
        file.flush()
        run = program("voxeld", "--check-config", file.name)
    bounds = re.search(r"(\d+) to (\d+)", run.stderr + run.stdout)
    return f"{bounds[1]} to {bounds[2]}" if bounds else f"nowhere: {run.stderr.strip()}"


def config_keys() -> Iterator[str]:
    for tokens in source_tokens()["server"]:
        for i, token in enumerate(tokens):
            if token.startswith(CONFIG_KIND) and tokens[i - 3 : i][::2] == ["{", ","]:
                key = tokens[i - 2][1:-1]
                kind = token.removeprefix(CONFIG_KIND)
                yield f"daemon {key} {kind}"
                if kind in ("UINT32", "UINT64"):
                    yield f"daemon {key} from {config_range(key)}"
                for choices in strings_of(block_of(tokens, i - 3)[-1]):
                    yield from (f"daemon {key} may be {c}" for c in choices.split())
            if token == NETWORK_KEYS and tokens[i + 2 : i + 5] == ["[", "]", "="]:
                for entry in block_of(tokens, i + 5):
                    yield from (f"network {key}" for key in strings_of(entry))


def metric_names() -> Iterator[str]:
    """Yields metrics with types, labels and their values as a daemon reports them; the source has
    those that only a GPU, or an error, brings."""
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", life().metrics, re.MULTILINE):
        yield f"{name} {kind}"
    for name, labels in re.findall(r"^(\w+)\{(.*)\} ", life().metrics, re.MULTILINE):
        for label, value in re.findall(r'([a-z_]+)="([^"]*)"', labels):
            is_open = label in ("backend", "code", "le", "op", "version")
            yield f"{name} {label}" if is_open else f"{name} {label}={value}"
    for _, text in literals("server"):
        yield from (f"{name} in source" for name in re.findall(r"\bvoxeld_[a-z0-9_]+", text))


def log_names() -> Iterator[str]:
    for tokens in source_tokens()["server"]:
        for i, token in enumerate(tokens[:-1]):
            if token == LOG_CALL and tokens[i + 1] == "(":
                arguments = block_of(tokens, i + 1)
                if len(arguments) < 2:
                    continue
                for message in strings_of(arguments[1]):
                    yield message
                    for key in arguments[2::2]:
                        yield from (f"{message} | {name}" for name in strings_of(key))
    for entry in life().log:
        yield from (f"every line | {key}" for key in ("ts", "level", "msg") if key in entry)
        if entry["msg"] == "request":
            yield from (f"request | {key}" for key in entry)


def program(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / words[0], *words[1:]],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=harness.Daemon.environment(),
    )


def command_options(*command: str) -> list[str]:
    """All options are possible meanings of an empty name, to voxelctl and to glibc's
    getopt_long."""
    error = program(*command, "--=x").stderr.partition("\n")[0]
    if "an option is unknown" in error:  # bench_load, whose manual names them instead
        manual = program(*command, "--help").stdout
        return sorted({"version", *re.findall(r"--([a-z][a-z-]*)", manual)})
    return re.findall(r"--([\w-]+)", re.split(" may be |possibilities:", error)[-1])


def commands(*command: str, above: str = "") -> Iterator[str]:
    """Yields options and subcommands. Subcommands are the words at the beginning of the manual's
    lines that have options or a manual of their own; one may share the manual of the command
    above."""
    words = " ".join(command)
    for option in command_options(*command):
        yield f"{words} --{option}"
    manual = program(*command, "--help").stdout
    for pair in re.findall(r"(?<!\S)(-\w), (--[\w-]+)|(--[\w-]+), (-\w)", manual):
        yield f"{words} {' '.join(sorted(filter(None, pair)))}"
    if manual == above or not re.search(r"^usage:.*COMMAND", manual, re.MULTILINE):
        return
    for word in dict.fromkeys(re.findall(r"^  ([a-z][a-z-]+)\b", manual, re.MULTILINE)):
        if command_options(*command, word) or "usage:" in program(*command, word, "--help").stdout:
            yield f"{words} {word}"
            yield from commands(*command, word, above=manual)


def option_names() -> Iterator[str]:
    yield from commands("voxelctl")
    for tokens in source_tokens()["server"]:
        for i, token in enumerate(tokens):
            if token in ("required_argument", "no_argument", "optional_argument"):
                yield f"voxeld --{tokens[i - 2][1:-1]} {token.split('_')[0]}"
    for path in our_files():
        if path.suffix == ".py" and path.relative_to(SOURCE).parts[0] in ("client", "configs"):
            for option in re.findall(r"add_argument\(\s*[\"'](--[\w-]+)", path.read_text()):
                yield f"{path.name} {option}"
    for top, name in literals("server", "client"):
        if re.fullmatch(r"(?:VOXELD|XDG|NOTIFY)_[A-Z_]+", name):
            yield f"{top} environment {name}"


def python_names() -> list[str]:
    """Runs in a process of its own: here the schema alone is the package voxeld."""
    (package,) = (p for p in our_files() if p.as_posix().endswith("/voxeld/__init__.py"))
    run = subprocess.run(
        [sys.executable, Path(__file__).with_name("names_python.py")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(package.parents[1])},
    )
    return run.stdout.splitlines()


def cache_values() -> dict[str, str]:
    text = (BUILD / "CMakeCache.txt").read_text()
    return dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))


@contextlib.contextmanager
def installed() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="voxeld-names-") as folder:
        subprocess.run(
            [cache_values()["CMAKE_COMMAND"], "--install", BUILD, "--prefix", folder],
            check=True,
            capture_output=True,
        )
        yield Path(folder)


class Tree(NamedTuple):
    files: list[str]
    headers: dict[str, str]
    pkg_config: str
    targets: str
    symbols: list[str]


@cache
def tree() -> Tree:
    """Yields what cmake --install makes, with the folders' usual names."""
    values = cache_values()
    usual = {values["CMAKE_INSTALL_LIBDIR"]: "lib", values["CMAKE_INSTALL_LIBEXECDIR"]: "libexec"}
    version = values["CMAKE_PROJECT_VERSION"]
    with installed() as root:
        files = []
        for path in root.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                continue
            name = path.relative_to(root).as_posix()
            if name.startswith("include/voxeld-engine/"):
                continue  # its API may change with every release
            for folder, plain in usual.items():
                if name.startswith(f"{folder}/"):
                    name = plain + name.removeprefix(folder)
                    break
            name = name.replace(version, "VERSION")
            # CMake's file of the targets for one kind of build.
            targets = r"(voxeld(?:-engine)?-targets-)\w+(\.cmake)"
            files.append(re.sub(targets, r"\1BUILD_TYPE\2", name))
        (library,) = root.rglob("libvoxeld.so")
        table = subprocess.run(
            ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
        ).stdout
        return Tree(
            files=files,
            headers={p.name: p.read_text() for p in (root / "include").glob("*.h")},
            pkg_config=next(root.rglob("voxeld.pc")).read_text(),
            targets=next(root.rglob("voxeld-targets.cmake")).read_text(),
            symbols=[line.split()[2] for line in table.splitlines()],
        )


def installed_names() -> Iterator[str]:
    yield from tree().files
    for line in tree().pkg_config.splitlines():
        name = re.match(r"(Name|Libs|Libs\.private|Cflags): .*", line)
        if name:
            yield f"voxeld.pc {line}"


def declarations(text: str) -> Iterator[str]:
    """Yields constants, functions, members and enumerators of a header. A member's place counts.
    """
    for name, value in re.findall(r"^#define (\w+)(?:\([^)]*\))?[ \t]*(.*)$", text, re.MULTILINE):
        is_guard = not value
        is_version = name.startswith("VOXELD_VERSION_")
        if not is_guard:
            yield f"#define {name}" if is_version else f"#define {name} {value}"
    text = re.sub(r'^extern "C" \{$|^\}$', "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*#(?:\\\n|.)*$", "", text, flags=re.MULTILINE)
    tokens = [t for t in tokens_of(text) if t != "VOXELD_API"]
    statement: list[str] = []
    depth = 0
    for token in tokens:
        depth += (token == "{") - (token == "}")
        if token != ";" or depth > 0:
            statement.append(token)
            continue
        if "{" in statement:
            yield from members(statement)
        else:
            yield spelled(statement)
        statement = []
    assert not statement, f"a header ends within {spelled(statement)}"


def spelled(tokens: list[str]) -> str:
    text = " ".join(tokens)
    text = re.sub(r" ?([(\[]) ", r"\1", text)
    return re.sub(r"(?<=\*) (?=\w)| (?=[,)\]])", "", text)


def members(statement: list[str]) -> Iterator[str]:
    start = statement.index("{")
    name = spelled(statement[:start])
    yield name
    if statement[0] == "enum":
        for entry in block_of(statement, start):
            if entry:
                yield f"{name} {spelled(entry)}"
        return
    n = 0
    depth = 0
    member: list[str] = []
    for token in statement[start + 1 : -1]:
        depth += (token == "{") - (token == "}")
        if token != ";" or depth > 0:
            member.append(token)
            continue
        yield f"{name} [{n}] {spelled(member)}"
        member = []
        n += 1


def c_api_names() -> Iterator[str]:
    # Sanitizers export names of their own.
    yield from (f"exports {s}" for s in tree().symbols if not s.startswith("_"))
    for header, text in tree().headers.items():
        yield from (f"{header} {line}" for line in declarations(text))


def cmake_names() -> Iterator[str]:
    for name, kind in re.findall(r"^add_library\(([\w:]+) (\w+) IMPORTED", tree().targets, re.M):
        yield f"target {name} {kind}"
    for path in our_files():
        if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
            text = path.read_text()
            yield from (
                f"option {o}" for o in re.findall(r"^\s*option\((VOXELD_\w+)", text, re.M)
            )
            for name, kind in re.findall(
                r"^\s*set\((VOXELD_\w+) [^()]*\bCACHE\s+(\w+)", text, re.M
            ):
                if kind != "INTERNAL":
                    yield f"option {name} {kind}"


def disk_and_source() -> Iterator[str]:
    yield from life().disk
    for _, text in literals("server"):
        if re.search(r"\.(?:vx[a-z]|db)\b|\.safetensors$|VXD[A-Z]", text) and " " not in text:
            plain = re.sub(r"%\d*l*[a-z]", "%", text).removeprefix("%/")
            yield f"source {plain}"
        for what, name in re.findall(r"CREATE (TABLE|INDEX) (?:IF NOT EXISTS )?(\w+)", text):
            yield f"source {what.lower()} {name}"


def route_names() -> Iterator[str]:
    api = life().openapi
    for path, verbs in api["paths"].items():
        for verb, what in verbs.items():
            yield f"{verb.upper()} {path}"
            for parameter in what.get("parameters", ()):
                if "$ref" in parameter:
                    parameter = api["components"]["parameters"][parameter["$ref"].split("/")[-1]]
                yield f"{verb.upper()} {path} {parameter['in']} {parameter['name']}"
            for content in what.get("requestBody", {}).get("content", ()):
                yield f"{verb.upper()} {path} body {content}"
    yield from (f"answered {route}" for route in life().routes)
    for _, text in literals("server"):
        yield from (f"header {n}" for n in re.findall(r"\bX-[A-Z][\w-]+|\bIdempotency-\w+", text))


def words() -> Iterator[str]:
    """Every string literal that is one word: scripts that rename identifiers change these by
    mistake, and keys, choices, fields of errors and scopes are among them. So are the names of
    the API's header fields."""
    yield from (f"proto {name}" for name in api_document()["components"]["parameters"])
    for top, text in literals("server", "client", "proto"):
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.:/@+-]+", text):
            yield f"{top} {text}"


KINDS: dict[str, Callable[[], Iterable[str]]] = {
    "wire": wire_names,
    "json_keys": json_keys,
    "config_keys": config_keys,
    "metrics": metric_names,
    "log": log_names,
    "options": option_names,
    "python": python_names,
    "c_api": c_api_names,
    "installed": installed_names,
    "cmake_targets": cmake_names,
    "disk": disk_and_source,
    "routes": route_names,
    "words": words,
}


def names_of(kind: str) -> set[str]:
    return set(KINDS[kind]())
