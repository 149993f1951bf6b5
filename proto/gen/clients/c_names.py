# SPDX-License-Identifier: Apache-2.0
"""What libvoxeld calls a noun's messages, fields and methods, as its face says, and which of them a
public function has as parameters. What writes code for a noun builds on it."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from model import Field, Message, Method, Schema, Types, fail

PARAMETER_TYPES = {
    Types.TYPE_STRING: "const char *",
    Types.TYPE_DOUBLE: "double ",
    Types.TYPE_UINT32: "uint32_t ",
    Types.TYPE_UINT64: "uint64_t ",
}


def formatted(code: str) -> str:
    """As clang-format 14 lays it out by the tree's rules."""
    run = subprocess.run(
        ["clang-format-14", "--assume-filename=client/c/generated/x.c"],
        input=code,
        capture_output=True,
        text=True,
        check=True,
        cwd=__file__.rsplit("/proto/", 1)[0],
    )
    return run.stdout


class CNames:
    """A noun's names, and the lines of its file as far as they are written."""

    def __init__(self, schema: Schema, noun: str, face: dict[str, Any]) -> None:
        self.schema = schema
        self.noun = noun
        self.face = face["c"]
        self.source = face["schema"]
        self.files = [self.source, *face.get("also", [])]
        self.out: list[str] = []

    def add(self, text: str) -> None:
        self.out.append(text)

    def member(self, field: Field) -> str:
        members = self.face["members"]
        if field.path in members:
            return members[field.path]
        if field.name == "name" and field.message.name.endswith("Request"):
            return members.get("*.name", "name")
        return field.name

    def record(self, message: Message) -> str:
        if message.name not in self.face["records"]:
            fail(f"faces/{self.noun}.toml: no C record for {message.name}")
        return self.face["records"][message.name]

    def enum(self, field: Field) -> str:
        return self.face["enums"][field.enum_of.name][0]

    def method_face(self, method: Method) -> dict[str, Any]:
        if method.name not in self.face["methods"]:
            fail(f"faces/{self.noun}.toml: [c.methods] has no {method.name}")
        return self.face["methods"][method.name]

    def enumerator(self, name: str, ours: str, wire: str) -> str:
        """The C name of an enumerator; empty where it has none."""
        return self.face.get("values", {}).get(name, f"{ours}{name.removeprefix(wire)}")

    def build_function(self, method: Method) -> str:
        """What makes the request; one that others call as well is declared in exchange.h."""
        is_shared = method.name in self.face.get("builds", [])
        return f"vxd_exchange_build_{method.name}" if is_shared else f"build_{method.name}"

    def changes(self, method: Method) -> str:
        """Whether a call changes something, as C has it."""
        face = self.method_face(method)
        always = method.mutates or face.get("changes", False)
        return str(face.get("changes_if", "true" if always else "false"))

    def methods(self) -> list[Method]:
        by_hand = self.face.get("by_hand", [])
        ours = [m for m in self.schema.methods if m.request.file in self.files]
        return [m for m in ours if m.name not in by_hand]

    def is_at_in_name(self, message: Message) -> bool:
        """Its name may be NAME@VERSION or NAME@SNAPSHOT, which fills the field `at`."""
        return message.name in self.face.get("at_in_name", [])

    def reaches_tensor(self, message: Message) -> bool:
        return any(
            f.is_tensor or (f.is_message and self.reaches_tensor(f.message_of))
            for f in message.fields
        )

    def fields(self, message: Message) -> list[Field]:
        """Those that its record has."""
        without = self.face.get("without", [])
        return [f for f in message.fields if f.path not in without]

    def parameter_fields(self, method: Method, face: dict[str, Any]) -> list[tuple[Field, str]]:
        """Fields that are parameters, and their declarations."""
        found = []
        for name in face["parameters"]:
            f = method.request.field(name)
            if "either" in face and f.is_tensor:
                if any(o.is_tensor for o, _ in found):
                    continue
                found.append((f, f"const struct voxeld_array *{face['either']}"))
                continue
            kind = PARAMETER_TYPES.get(f.type, "bool ")
            kind = f"enum {self.enum(f)} " if f.is_enum else kind
            kind = "const struct voxeld_array *" if f.is_tensor else kind
            found.append((f, f"{kind}{self.member(f)}"))
        return found

    def used_parameters(self, method: Method, text: str) -> list[tuple[str, str]]:
        """Declarations and names of those that the text speaks of."""
        if "request" in self.method_face(method):
            return []
        code = re.sub(r'"[^"]*"', "", text)
        found = []
        for _, declaration in self.parameter_fields(method, self.method_face(method)):
            name = re.split(r"\W", declaration)[-1]
            if re.search(rf"(?<![\w>.]){name}\b", code):
                found.append((declaration, name))
        return found

    @staticmethod
    def only_if(condition: str, lines: list[str]) -> list[str]:
        return [f"if ({condition}) {{", *lines, "}"] if condition else lines
