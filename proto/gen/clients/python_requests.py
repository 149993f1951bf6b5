# SPDX-License-Identifier: Apache-2.0
"""The package voxeld's arguments as requests: their types, and the lines that make messages, clouds
and arrays of them. These call client/python/voxeld/exchange.py."""

from __future__ import annotations

from typing import Any

from model import Method, Types, snake
from clients.python_names import HEADER, SCALARS, Parameter, is_cloud
from clients.python_records import PythonRecords
from clients.python_text import WIDTH


PLAIN_TYPES = {  # messages that are no records
    "Cloud": "Points",
    "Pose": "Pose | npt.ArrayLike",
    "Vec3": "Sequence[float]",
}


class PythonRequests(PythonRecords):
    """Writes what makes requests."""

    def argument_type(self, p: Parameter) -> str:
        f = p.field
        if self.of_field("types", f):
            kind = self.of_field("types", f)
        elif f.is_rows:
            kind = "exchange.Values"
        elif f.is_tensor:
            kind = "npt.ArrayLike"
        elif f.is_repeated and f.type == Types.TYPE_STRING:
            kind = "str | Sequence[str]"
        elif f.is_message and f.message_of.name in PLAIN_TYPES:
            kind = PLAIN_TYPES[f.message_of.name]
        elif f.is_message:
            kind = self.records[f.message_of.name]["class"]
            kind = f"Sequence[{kind}]" if f.is_repeated else kind
        elif f.is_enum and f.enum_of.name == "DType":
            kind = "npt.DTypeLike"
        elif f.is_enum or self.merged_enum(f) is not None:
            kind = "str"
        else:
            kind = SCALARS.get(f.type, "int")
        optional = p.default == "None" and not kind.endswith(" | None")
        return f"{kind} | None" if optional else kind

    def checks(self, parameters: list[Parameter]) -> list[str]:
        lines = []
        fields = {p.field.path: p for p in parameters}
        for p in parameters:
            is_text = p.field.type == Types.TYPE_STRING  # the server says which are right
            if p.field.option.one_of and not p.field.is_enum and not is_text:
                allowed = ", ".join(p.field.option.one_of.split())
                lines.append(f'exchange.check_one_of({p.name}, ({allowed}), "{p.name}")')
            for other in p.field.only_with:
                given = fields.get(f"{p.field.message.name}.{other}")
                if given is not None and given.default == "None":
                    names = f'{p.name}, {given.name}, "{p.name}", "{given.name}"'
                    lines.append(f"exchange.check_with({names})")
        return lines

    def value(self, p: Parameter) -> list[tuple[str, str]]:
        """Fields of the message, and the argument as they take it."""
        f = p.field
        merged = self.merged_enum(f)
        if merged is not None:
            names = self.choices_name(merged.enum_of)
            choice = f'exchange.choice_of({p.name}, {names}, "{p.name}")'
            return [(f.name, f"{p.name} is not None"), (merged.name, choice)]
        if self.of_field("convert", f):
            return [(f.name, self.of_field("convert", f).format(p.name))]
        if f.path == "Cloud.T_map_sensor":
            return [(f.name, f"pose_of({p.name})")]
        if f.is_message and f.message_of.name == "Pose":
            return [(f.name, f'exchange.pose_of({p.name}, "{p.name}")')]
        if f.is_message and f.message_of.name == "Vec3":
            made = "exchange.optional(exchange.vec3, " if p.default == "None" else "exchange.vec3("
            return [(f.name, f'{made}{p.name}, "{p.name}")')]
        if f.is_message and f.is_repeated:
            kind = self.records[f.message_of.name]["class"]
            made = f"{snake(kind)}_message, {kind}"
            return [(f.name, f'exchange.each({made}, {p.name}, "{p.name}")')]
        if f.is_message:
            made = f"{snake(self.records[f.message_of.name]['class'])}_message"
            return [(f.name, f'None if {p.name} is None else {made}({p.name}, "{p.name}")')]
        if f.is_enum and f.enum_of.name == "DType":
            return [(f.name, f'exchange.dtype_of({p.name}, "{p.name}").name')]
        if f.is_enum:
            names = self.choices_name(f.enum_of)
            return [(f.name, f'exchange.choice_of({p.name}, {names}, "{p.name}")')]
        return [(f.name, p.name)]

    def request_lines(
        self, face: dict[str, Any], method: Method, parameters: list[Parameter], of_noun: bool
    ) -> list[str]:
        """Makes the message, and the arrays and clouds beside it as parts."""
        values: dict[str, dict[str, str]] = {"": {}}
        before: list[str] = []
        parts = [*face.get("parts", [])]
        if of_noun:
            values[""]["name"] = "self.name"
        one = sum(p.field.is_tensor for p in parameters) == 1
        for p in parameters:
            if p.is_cloud:
                parts.append(f'*exchange.clouds("{p.field.name}", message, {p.field.name})')
            elif p.field.is_tensor:
                made = self.face["convert"].get(p.field.path, f'exchange.int32s({{}}, "{p.name}")')
                array = "array" if one else f"{p.name}_array"
                given = f"None if {p.name} is None else " if p.default == "None" else ""
                before += self.assigned(array, f"{given}{made.format(p.name)}")
                parts.append(f'*exchange.tensor("{p.name}", message, {array})')
            elif p.field.is_rows:
                given = f"{p.name} or {{}}" if p.default == "None" else p.name
                parts.append(f"*self._rows(message, {given})")
            elif p.field.is_repeated and p.field.type == Types.TYPE_STRING:
                given = "names" if "names" not in values[""].values() else f"of_{p.name}"
                before.append(f"{given} = exchange.names_of({p.name})")
                values[""][p.name] = given
            elif p.owner != HEADER:
                values.setdefault(p.owner, {}).update(self.value(p))
        for name, value in face.get("set", {}).items():
            owner, _, member = name.rpartition(".")
            values.setdefault(owner, {})[member] = value
        for name, fields in face.get("either", {}).items():
            lines, part = self.one_of_arrays(method, name, fields)
            before += lines
            parts.append(part)
        for owner, inner in values.items():
            if owner and not is_cloud(method.request.field(owner)):
                before += self.owner_lines(face, method, owner, inner)
                values[""][owner] = self.owner_name(face, owner)
        clouds = [
            line
            for p in parameters
            if p.is_cloud
            for line in self.cloud_lines(face, p, values.get(p.field.name, {}))
        ]
        lines = [*clouds, *before, *self.construct("message", method.request.name, values[""])]
        if len(", ".join(parts)) + 16 > WIDTH:
            lines += ["parts = [", *(f"    {part}," for part in parts), "]"]
        elif parts:
            lines.append(f"parts = [{', '.join(parts)}]")
        return lines

    def cloud_lines(self, face: dict[str, Any], p: Parameter, members: dict[str, str]) -> list[str]:
        """Makes clouds of the caller's points; the members are of those that are made of arrays."""
        made = face.get("cloud", "clouds_of" if p.field.is_repeated else "cloud_of")
        given = f"None if {p.name} is None else " if p.default == "None" else ""
        arguments = [p.name, *(f"{k}={v}" for k, v in members.items())]
        line = f"{p.field.name} = {given}{made}({', '.join(arguments)})"
        if len(line) + 4 <= WIDTH:
            return [line]
        return [f"{p.field.name} = {given}{made}(", *(f"    {a}," for a in arguments), ")"]

    def one_of_arrays(
        self, method: Method, name: str, fields: list[str]
    ) -> tuple[list[str], str]:
        """One array that is one of several fields, by its number of columns."""
        kinds = {method.request.field(f).shape[1]: f for f in fields}
        lines = [f'{name}_array = exchange.metres_of({name}, "{name}", {", ".join(kinds)})']
        which = ", ".join(f'{columns}: "{f}"' for columns, f in kinds.items())
        field = f"{{{which}}}[{name}_array.shape[1]]"
        return lines, f"*exchange.tensor({field}, message, {name}_array)"

    def owner_name(self, face: dict[str, Any], owner: str) -> str:
        """The variable of a message in the request, beside the arguments."""
        is_taken = owner in face.get("only_if", {}) or any(
            a.name == owner for a in self.arguments(face)
        )
        return f"of_{owner}" if is_taken else owner

    def owner_lines(
        self, face: dict[str, Any], method: Method, owner: str, values: dict[str, str]
    ) -> list[str]:
        """Makes a message in the request; None where its condition does not hold."""
        name = self.owner_name(face, owner)
        lines = self.construct(name, method.request.field(owner).message_of.name, values)
        condition = face.get("only_if", {}).get(owner)
        if condition is None:
            return lines
        return [f"{name} = None", f"if {condition}:", *(f"    {line}" for line in lines)]

    @staticmethod
    def assigned(name: str, value: str) -> list[str]:
        line = f"{name} = {value}"
        return [line] if len(line) + 4 <= WIDTH else [f"{name} = (", f"    {value}", ")"]

    def construct(self, name: str, kind: str, values: dict[str, str]) -> list[str]:
        one = ", ".join(f"{k}={v}" for k, v in values.items())
        module = self.module_of(self.schema.messages[kind])
        line = f"{name} = exchange.message_of({module}.{kind}{', ' if one else ''}{one})"
        if len(line) + 4 <= WIDTH:
            return [line]
        return [
            f"{name} = exchange.message_of(",
            f"    {module}.{kind},",
            *(f"    {k}={v}," for k, v in values.items()),
            ")",
        ]
