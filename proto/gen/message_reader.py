# SPDX-License-Identifier: Apache-2.0
"""voxelctl's --json in: messages, which proto/wire reads from JSON, to the records of the installed
headers that libvoxeld takes. What a record points to lies in the message's arena."""

from __future__ import annotations

from typing import Any

from clients.c_client import CClient
from clients.c_names import formatted
from command_line import FOLDER, HEAD
from model import Field, Message, Schema, Types, snake


class MessageReader:
    """Writes one noun's file."""

    def __init__(self, schema: Schema, noun: str, face: dict[str, Any]) -> None:
        self.schema = schema
        self.noun = noun
        self.client = CClient(schema, noun, face)
        self.face = face["c"]
        self.wanted = [schema.messages[name] for name in face["ctl"]["reads"]]
        self.sources = f"{face['schema']}.proto and faces/{noun}.toml"
        self.out: list[str] = []
        self.made: set[str] = set()

    def head(self, message: Message, name: str) -> str:
        return (
            f"bool {name}(const {message.c} *in, struct vxd_decoder *arena, "
            f"struct {self.client.record(message)} *out, struct vxd_err *err)"
        )

    def read(self, message: Message) -> str:
        """Emits what reads a message, once; its name."""
        name = f"read_{snake(message.name)}"
        is_wanted = message in self.wanted
        name = f"ctl_{name}" if is_wanted else name
        if name not in self.made:
            self.made.add(name)
            lines = []
            for f in message.fields:
                lines += self.field(message, f)
            body = "\n".join(lines)
            unused = "".join(f"(void){n};\n" for n in ("arena", "err") if f"{n})" not in body)
            static = "" if is_wanted else "static "
            self.out.append(
                f"{static}{self.head(message, name)}\n{{\n{unused}{body}\nreturn true;\n}}\n"
            )
        return name

    def field(self, message: Message, f: Field) -> list[str]:
        if f.oneof:
            return self.union(message, f)
        return self.value(f, f"in->{f.name}", f"out->{self.client.member(f)}")

    @staticmethod
    def tried(call: str) -> list[str]:
        return [f"if (!{call}) {{", "return false;", "}"]

    def value(self, f: Field, source: str, target: str) -> list[str]:
        if f.is_tensor:
            return self.tried(f'ctl_read_tensor({source}, "{f.name}", arena, &{target}, err)')
        if f.path in self.face.get("fixed", {}):
            n = self.face["fixed"][f.path]
            count = source.replace(f.name, f"n_{f.name}")
            call = f'ctl_read_int32s({source}, {count}, "{f.name}", {n}, {target}, err)'
            return self.tried(call)
        if f.is_message and f.message_of.name == "Vec3":
            axes = [f"{target}[{i}] = {source}->{axis};" for i, axis in enumerate("xyz")]
            return [f"if ({source} != NULL) {{", *axes, "}"]
        if f.is_message:
            inner = self.tried(f"{self.read(f.message_of)}({source}, arena, &{target}, err)")
            return [f"if ({source} != NULL) {{", *inner, "}"]
        if f.is_enum:
            return [f"{target} = (enum {self.client.enum(f)}){source};"]
        assert f.type != Types.TYPE_BYTES
        return [f"{target} = {source};"]

    def union(self, message: Message, f: Field) -> list[str]:
        """All of a oneof, where its first field stands."""
        union = self.face["unions"][f"{message.name}.{f.oneof}"]
        fields = [o for o in message.fields if o.oneof == f.oneof]
        if f is not fields[0]:
            return []
        lines = [f"switch (in->{f.oneof}_case) {{"]
        for o in fields:
            case = f"{snake(message.name)}__{f.oneof}_{o.name}".upper()
            lines += [
                f"case VOXELD__V1__{case}:",
                f"out->{union['tag']} = {union['values']}{o.name.upper()};",
                *self.value(o, f"in->{o.name}", f"out->{union['member']}.{o.name}"),
                "break;",
            ]
        return [*lines, "default:", "break;", "}"]

    def outputs(self) -> dict[str, str]:
        names = [self.read(message) for message in self.wanted]
        what = f"Messages of {self.noun}s, as read from JSON, to records."
        head = HEAD.format(sources=self.sources, what=what)
        guard = f"VXD_CLIENT_VOXELCTL_GENERATED_{self.noun.upper()}_MESSAGES_H"
        declared = "\n".join(
            f"{self.head(m, n)};" for m, n in zip(self.wanted, names, strict=True)
        )
        file = self.wanted[0].file
        header = (
            f"{head}#ifndef {guard}\n#define {guard}\n\n"
            '#include "client/voxelctl/messages/messages.h"\n'
            f'#include "voxeld/v1/{file}.pb-c.h"\n\n'
            "/* Fill the record, which is zeroed and borrows from the message and the arena.\n"
            f" * False after a message in *err. */\n{declared}\n\n#endif\n"
        )
        include = f'#include "{FOLDER}/{self.noun}_messages.h"\n\n'
        return {
            f"{FOLDER}/{self.noun}_messages.h": formatted(header),
            f"{FOLDER}/{self.noun}_messages.c": formatted(
                head + include + "\n".join(self.out)
            ),
        }


def outputs(schema: Schema, noun: str, face: dict[str, Any]) -> dict[str, str]:
    return MessageReader(schema, noun, face).outputs() if "reads" in face["ctl"] else {}
