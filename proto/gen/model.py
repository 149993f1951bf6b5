# SPDX-License-Identifier: Apache-2.0
"""The annotated schema, read through the descriptors that stock protoc makes: messages, fields
and methods with their comments and options."""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

HERE = Path(__file__).resolve().parent
SCHEMA = HERE / "schema"
FOLDER = SCHEMA / "voxeld" / "v1"
OPTIONS = FOLDER / "options.proto"
FILES = (
    "common",
    "admin",
    "token",
    "voxelize",
    "hashmap",
    "network",
    "scene",
    "history",
    "scene_upkeep",
    "scene_version",
    "volume",
    "posegraph",
    "odometry",
    "field",
    "grid",
    "render",
    "mesh",
    "refine",
    "slac",
    "watch",
    "why",
    "backup",
    "rpc",
)

Types = descriptor_pb2.FieldDescriptorProto
INTEGERS_32 = {Types.TYPE_INT32, Types.TYPE_UINT32, Types.TYPE_FIXED32, Types.TYPE_SINT32}
INTEGERS_64 = {Types.TYPE_INT64, Types.TYPE_UINT64, Types.TYPE_FIXED64, Types.TYPE_SINT64}
SCALAR_NAMES = {
    Types.TYPE_DOUBLE: "double",
    Types.TYPE_FLOAT: "float",
    Types.TYPE_INT32: "int32",
    Types.TYPE_INT64: "int64",
    Types.TYPE_UINT32: "uint32",
    Types.TYPE_UINT64: "uint64",
    Types.TYPE_FIXED32: "fixed32",
    Types.TYPE_FIXED64: "fixed64",
    Types.TYPE_SINT32: "sint32",
    Types.TYPE_SINT64: "sint64",
    Types.TYPE_BOOL: "bool",
    Types.TYPE_STRING: "string",
    Types.TYPE_BYTES: "bytes",
}
UNIT_ENDINGS = {"_m": "m", "_s": "s", "_ms": "ms", "_ns": "ns", "_bytes": "bytes", "_deg": "deg"}


def snake(name: str) -> str:
    """MapCreateRequest as map_create_request."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def plural(noun: str) -> str:
    named = {"why": "explanations", "admin": "the daemon"}
    if noun in named:
        return named[noun]
    return f"{noun}es" if noun.endswith("ch") else f"{noun}s"


def json_name(name: str) -> str:
    """protobuf's lowerCamelCase."""
    return re.sub(r"_(.)", lambda m: m[1].upper(), name)


def fail(what: str) -> None:
    """Says what is wrong with the schema or a face, and ends."""
    sys.exit(f"generate.py: {what}")


@dataclass(frozen=True)
class Range:
    low: float
    high: float
    open_low: bool
    open_high: bool

    @classmethod
    def parse(cls, text: str) -> Range:
        match = re.fullmatch(r"([\[(])(\S+), (\S+)([\])])", text)
        if match is None:
            fail(f'the range "{text}" is not of the form "[1, 8]" or "(0, inf)"')
        assert match is not None
        return cls(float(match[2]), float(match[3]), match[1] == "(", match[4] == ")")

    def words(self) -> str:
        """As a reader wants it: "1 to 8", "> 0", ">= -1"."""
        low, high = f"{self.low:g}", f"{self.high:.17g}"
        if math.isinf(self.high):
            return f"{'>' if self.open_low else '>='} {low}"
        if self.open_low:
            return f"> {low} and {'<' if self.open_high else '<='} {high}"
        return f"{low} to {high}" + (" without the end" if self.open_high else "")


@dataclass
class Value:
    name: str
    number: int
    comment: str


@dataclass
class Enum:
    name: str
    comment: str
    values: list[Value]

    @property
    def c(self) -> str:
        """protobuf-c's name of the type."""
        return f"Voxeld__V1__{self.name.replace('.', '__')}"

    def c_value(self, name: str) -> str:
        return f"VOXELD__V1__{snake(self.name).upper().replace('.', '__')}__{name}"


@dataclass
class Field:
    message: Message
    name: str
    number: int
    type: int
    is_repeated: bool
    comment: str
    option: Any
    of: Message | Enum | None = None
    oneof: str = ""

    @property
    def is_message(self) -> bool:
        return self.type == Types.TYPE_MESSAGE

    @property
    def is_enum(self) -> bool:
        return self.type == Types.TYPE_ENUM

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.of, Message) and self.of.name == "Tensor"

    @property
    def is_rows(self) -> bool:
        """Tensors by name: a message of a name and a tensor, repeated."""
        if not (isinstance(self.of, Message) and self.is_repeated and len(self.of.fields) == 2):
            return False
        first, second = self.of.fields
        return first.name == "name" and second.is_tensor

    @property
    def message_of(self) -> Message:
        assert isinstance(self.of, Message), self.name
        return self.of

    @property
    def enum_of(self) -> Enum:
        assert isinstance(self.of, Enum), self.name
        return self.of

    @property
    def path(self) -> str:
        return f"{self.message.name}.{self.name}"

    @property
    def unit(self) -> str:
        if self.option.unit:
            return self.option.unit
        for ending, unit in UNIT_ENDINGS.items():
            if self.name.endswith(ending):
                return unit
        return ""

    @property
    def range(self) -> Range | None:
        return Range.parse(self.option.range) if self.option.range else None

    @property
    def shape(self) -> list[str]:
        return self.option.shape.split(" x ") if self.option.shape else []

    @property
    def only_with(self) -> list[str]:
        """Fields of the request, or fields with a value, that this one goes with."""
        return getattr(self.option, "with").split()

    @property
    def never_with(self) -> list[str]:
        return self.option.without.split()

    @property
    def flag(self) -> str:
        """voxelctl's option without its dashes and value."""
        return self.option.flag.split(" ")[0].removeprefix("--")

    @property
    def type_name(self) -> str:
        name = self.of.name if self.of is not None else SCALAR_NAMES[self.type]
        return f"repeated {name}" if self.is_repeated else name


@dataclass
class Message:
    name: str
    file: str
    comment: str
    fields: list[Field] = field(default_factory=list)

    @property
    def c(self) -> str:
        """protobuf-c's name of the type."""
        return f"Voxeld__V1__{self.name.replace('.', '__')}"

    @property
    def c_init(self) -> str:
        """protobuf-c's function that initialises one."""
        return f"voxeld__v1__{snake(self.name)}__init"

    def field(self, name: str) -> Field:
        for f in self.fields:
            if f.name == name:
                return f
        raise KeyError(f"{self.name} has no field {name}")

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.fields)


@dataclass
class Method:
    name: str
    number: int
    request: Message
    response: Message
    option: Any
    noun: str
    since: str

    @property
    def scope(self) -> str:
        return {1: "read", 2: "write", 3: "admin"}[self.option.scope]

    @property
    def mutates(self) -> bool:
        return bool(self.option.mutating)

    @property
    def verb(self) -> str:
        """map_create without its noun."""
        return self.name.removeprefix(f"{self.noun}_") if self.noun else self.name

    @property
    def errors(self) -> list[tuple[str, str]]:
        found = []
        for text in self.option.errors:
            code, what = text.split(": ", 1)
            found.append((code, what))
        return found


def descriptor_set(folder: Path) -> bytes:
    """What protoc makes of the annotated schema; and it makes options_pb2 in the folder."""
    names = [str(FOLDER / f"{name}.proto") for name in FILES]
    out = folder / "schema.bin"
    subprocess.run(
        ["protoc", "-I", SCHEMA, f"--python_out={folder}", OPTIONS],
        check=True,
    )
    subprocess.run(
        ["protoc", "-I", SCHEMA, "--include_source_info", f"--descriptor_set_out={out}", *names],
        check=True,
    )
    return out.read_bytes()


def load_options(folder: Path) -> Any:
    """The extensions must be known before the descriptors are parsed."""
    path = folder / "voxeld" / "v1" / "options_pb2.py"
    spec = importlib.util.spec_from_file_location("voxeld_options_pb2", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Schema:
    """All of it."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory(prefix="voxeld-gen-") as name:
            folder = Path(name)
            data = descriptor_set(folder)
            self._options = load_options(folder)
        self._set = descriptor_pb2.FileDescriptorSet.FromString(data)
        self.messages: dict[str, Message] = {}
        self.enums: dict[str, Enum] = {}
        self.file_comments: dict[str, str] = {}
        self._nouns: dict[str, str] = {}
        self._since: dict[str, str] = {}
        self._method_options: dict[str, Any] = {}
        self._waiting: list[tuple[Field, str]] = []
        for file in self._set.file:
            self._add_file(file)
        for f, type_name in self._waiting:
            name = type_name.removeprefix(".voxeld.v1.")
            f.of = self.messages.get(name) or self.enums[name]

    def _add_file(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        name = Path(file.name).stem
        option = file.options.Extensions[self._options.file]
        self._nouns[name], self._since[name] = option.noun, option.since
        comments = {tuple(at.path): at for at in file.source_code_info.location}
        syntax = comments.get((12,))
        if syntax is not None:
            detached = [*syntax.leading_detached_comments, syntax.leading_comments]
            self.file_comments[name] = plain("".join(detached))
        for i, enum in enumerate(file.enum_type):
            self._add_enum(enum, enum.name, (5, i), comments)
        for i, message in enumerate(file.message_type):
            self._add_message(message, message.name, name, (4, i), comments)

    def _add_enum(
        self,
        enum: descriptor_pb2.EnumDescriptorProto,
        name: str,
        path: tuple[int, ...],
        comments: dict[tuple[int, ...], Any],
    ) -> None:
        values = [
            Value(v.name, v.number, comment_at(comments, (*path, 2, i)))
            for i, v in enumerate(enum.value)
        ]
        self.enums[name] = Enum(name, comment_at(comments, path), values)

    def _add_message(
        self,
        message: descriptor_pb2.DescriptorProto,
        name: str,
        file: str,
        path: tuple[int, ...],
        comments: dict[tuple[int, ...], Any],
    ) -> None:
        made = Message(name, file, comment_at(comments, path))
        self.messages[name] = made
        if message.options.HasExtension(self._options.method):
            self._method_options[name] = message.options.Extensions[self._options.method]
        for i, enum in enumerate(message.enum_type):
            self._add_enum(enum, f"{name}.{enum.name}", (*path, 4, i), comments)
        for i, f in enumerate(message.field):
            self._add_field(made, f, message, comment_at(comments, (*path, 2, i)))
        for i, nested in enumerate(message.nested_type):
            self._add_message(nested, f"{name}.{nested.name}", file, (*path, 3, i), comments)

    def _add_field(
        self, made: Message, f: Types, message: descriptor_pb2.DescriptorProto, comment: str
    ) -> None:
        added = Field(
            message=made,
            name=f.name,
            number=f.number,
            type=f.type,
            is_repeated=f.label == Types.LABEL_REPEATED,
            comment=comment,
            option=f.options.Extensions[self._options.field],
            oneof=message.oneof_decl[f.oneof_index].name if f.HasField("oneof_index") else "",
        )
        made.fields.append(added)
        if f.type_name:
            self._waiting.append((added, f.type_name))

    @cached_property
    def methods(self) -> list[Method]:
        """In the envelope's order."""
        replies = {f.name: f.message_of for f in self.messages["Response"].fields if f.oneof}
        found = []
        for f in self.messages["Request"].fields:
            if not f.oneof:
                continue
            request = f.message_of
            option = self._method_options.get(request.name)
            if option is None or not option.scope:
                fail(f"{request.name} does not say which scope it needs")
            assert option is not None
            since = option.since or self._since[request.file]
            noun = self._nouns[request.file]
            made = Method(f.name, f.number, request, replies[f.name], option, noun, since)
            found.append(made)
        return found

    def method(self, name: str) -> Method:
        return next(m for m in self.methods if m.name == name)

    def methods_of(self, noun: str) -> list[Method]:
        return [m for m in self.methods if m.noun == noun]

    def since(self, f: Field) -> str:
        return f.option.since or self._since[f.message.file]


def plain(comment: str) -> str:
    """A comment without its layout: paragraphs stay, lines are joined."""
    lines = [line.strip() for line in comment.strip().splitlines()]
    lines = [line for line in lines if not line.startswith("SPDX")]
    paragraphs = "\n".join(lines).split("\n\n")
    return "\n\n".join(" ".join(p.split()) for p in paragraphs if p.strip())


def comment_at(comments: dict[tuple[int, ...], Any], path: tuple[int, ...]) -> str:
    at = comments.get(path)
    return plain(at.leading_comments) if at is not None else ""


def reachable(message: Message) -> Iterator[Message | Enum]:
    """The message and all that its fields are made of, each once, in the order met."""
    seen: set[str] = set()
    waiting: list[Message | Enum] = [message]
    while waiting:
        item = waiting.pop(0)
        if item.name in seen:
            continue
        seen.add(item.name)
        yield item
        if isinstance(item, Message):
            waiting += [f.of for f in item.fields if f.of is not None]
