# SPDX-License-Identifier: Apache-2.0
"""The package voxeld's methods of a noun's classes: signatures as the face says, types, docstrings
and checks from the schema. They call client/python/voxeld/exchange.py."""

from __future__ import annotations

import re
from typing import Any

from model import Method, Schema, Types, snake
from python_names import HEAD, SCALARS, Parameter, plural
from python_records import PythonRecords
from python_text import WIDTH, class_of, docstring, own_comment, sentence

COMMON = (
    ("timeout", "float | None", "None"),
    ("request_id", "str | None", "None"),
    ("sequence", "int", "0"),
)


class PythonClient(PythonRecords):
    """Writes one noun's three files."""

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
        elif f.is_message:
            kind = self.records[f.message_of.name]["class"]
        elif f.is_enum and f.enum_of.name == "DType":
            kind = "npt.DTypeLike"
        elif f.is_enum or self.merged_enum(f) is not None:
            kind = "str"
        else:
            kind = SCALARS.get(f.type, "int")
        return f"{kind} | None" if p.default == "None" else kind

    def checks(self, parameters: list[Parameter]) -> list[str]:
        lines = []
        names = {p.name: p for p in parameters}
        for p in parameters:
            is_text = p.field.type == Types.TYPE_STRING  # the server says which are right
            if p.field.option.one_of and not p.field.is_enum and not is_text:
                allowed = ", ".join(p.field.option.one_of.split())
                lines.append(f'exchange.check_one_of({p.name}, ({allowed}), "{p.name}")')
            for other in p.field.only_with:
                if other in names and names[other].default == "None":
                    lines.append(f'exchange.check_with({p.name}, {other}, "{p.name}", "{other}")')
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
        """Makes the message, and the arrays beside it as parts."""
        values: dict[str, dict[str, str]] = {"": {}}
        before, parts = [], []
        if of_noun:
            values[""]["name"] = "self.name"
        one = sum(p.field.is_tensor for p in parameters) == 1
        for p in parameters:
            if p.field.is_tensor:
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
            else:
                values.setdefault(p.owner, {}).update(self.value(p))
        values[""] |= face.get("set", {})
        for owner, inner in values.items():
            if owner:
                kind = method.request.field(owner).message_of.name
                before += self.construct(owner, kind, inner)
                values[""][owner] = owner
        lines = [*before, *self.construct("message", method.request.name, values[""])]
        if len(", ".join(parts)) + 16 > WIDTH:
            lines += ["parts = [", *(f"    {part}," for part in parts), "]"]
        elif parts:
            lines.append(f"parts = [{', '.join(parts)}]")
        return lines

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

    def call_lines(
        self, face: dict[str, Any], method: Method, parameters: list[Parameter], of_noun: bool
    ) -> list[str]:
        client = "self._client" if of_noun else "self"
        has_arrays = any(
            f.is_tensor or f.is_rows for f in [*method.request.fields, *method.response.fields]
        )
        if has_arrays:
            sends_parts = any(p.field.is_tensor or p.field.is_rows for p in parameters)
            number = "sequence" if method.mutates else "None"
            record = self.records[method.response.name]["class"]
            own_rows = any(p.field.is_tensor for p in parameters)
            sends = any(f.is_tensor for f in method.request.fields)
            first = next((f for f in method.response.fields if f.is_tensor), None)
            n = "len(array)" if own_rows else "0"
            tensors = [p for p in parameters if p.field.is_tensor]
            if len(tensors) > 1:  # of which one has n rows
                of_n = [p.name for p in tensors if p.field.shape[:1] == ["n"]]
                n = f"len({of_n[0]}_array)" if of_n else "0"
                n = f"len({face['n']}_array)" if "n" in face else n
            if not sends and first is not None and first.shape[:1] == ["n"]:
                n = f'reply.n_rows("{first.name}")'
            arguments = (
                f'{client}, "{method.name}", message, {"parts" if sends_parts else "[]"}, '
                f"timeout, request_id, {number}"
            )
            call = [f"reply = exchange.send({arguments})"]
            if len(call[0]) + 4 > WIDTH:
                call = ["reply = exchange.send(", f"    {arguments}", ")"]
            reads = any(f.is_tensor or f.is_rows for f, _ in self.members(method.response))
            taken = f"reply, message, {n}" if reads else "reply.message"
            if self.records[method.response.name].get("header") == "replayed":
                taken += ", reply.replayed"
            return [*call, "with reply:", f"    return {snake(record)}_of({taken})"]
        changes = method.mutates or face.get("changes", False)
        verb, last = ("change", ", sequence") if changes else ("ask", "")
        record = self.records.get(face.get("as", method.response.name), {})
        replayed = "returns" not in face and record.get("header") == "replayed"
        reply = "reply, replayed" if replayed else "reply"
        verb = face.get("asks", "changed" if replayed else verb)
        arguments = f'{client}, "{method.name}", message, timeout, request_id{last}'
        if face.get("returns") == "None":
            return [f"exchange.{verb}({arguments})"]
        call = [f"{reply} = exchange.{verb}({arguments})"]
        if len(call[0]) + 4 > WIDTH:
            call = [f"{reply} = exchange.{verb}(", f"    {arguments}", ")"]
        return [*call, f"return {self.result(face, method, reply)}"]

    def result(self, face: dict[str, Any], method: Method, reply: str) -> str:
        returns = face.get("returns")
        if returns is None:
            record = self.records[face.get("as", method.response.name)]
            return f"{snake(record['class'])}_of({reply})"
        taken = f"reply.{face['take']}"
        if returns in ("bool", "str"):
            return f"{returns}({taken})"
        if not method.response.field(face["take"]).is_message:
            return f"tuple({taken})"
        message = method.response.field(face["take"]).message_of
        read = f"{snake(self.records[message.name]['class'])}_of"
        if returns.startswith("tuple["):
            return f"tuple({read}(m) for m in {taken})"
        if face.get("needs"):
            taken = f'exchange.need(reply, "{face["take"]}")'
        if returns == self.owner:
            return f"{returns}(self, {read}({taken}))"
        return f"{read}({taken})"

    def method_doc(self, face: dict[str, Any], method: Method, parameters: list[Parameter]) -> str:
        rows = []
        for p in parameters:
            if p.name == "name":
                continue
            f = p.field
            text = self.of_field("docs", f)
            text = text or sentence(f, own_comment(self.schema, f))
            if text:
                rows.append((p.name, text))
        errors = [f"{class_of(code)} ({what})" for code, what in method.errors]
        raises = f"Raises {', '.join(errors)}." if errors else ""
        raises = face.get("raises", raises)
        return docstring([" ".join(face["doc"].split())], rows, raises, "    ")

    def emit_method(self, face: dict[str, Any]) -> str:
        owner, name = face["name"].split(".")
        method = self.schema.method(face["method"])
        parameters = self.parameters(face)
        of_noun = owner != "Client"
        words = [f"self: {self.face.get('self', 'exchange.Noun') if of_noun else 'Calls'}"]
        changes = method.mutates or face.get("changes", False)
        common = [c for c in COMMON if changes or c[0] != "sequence"]
        is_keyword = False
        for p in parameters:
            if p.is_keyword and not is_keyword:
                words.append("*")
                is_keyword = True
            default = f" = {p.default}" if p.default else ""
            words.append(f"{p.name}: {self.argument_type(p)}{default}")
        words += ([] if is_keyword else ["*"]) + [f"{n}: {t} = {d}" for n, t, d in common]
        record = self.records.get(face.get("as", method.response.name), {})
        returns = face.get("returns") or record["class"]
        head = f"def {name}({', '.join(words)}) -> {returns}:"
        if len(head) > WIDTH:
            lines = [f"def {name}(", *(f"    {w}," for w in words), f") -> {returns}:"]
        else:
            lines = [head]
        body = [
            *face.get("before", []),
            *self.checks(parameters),
            *self.request_lines(face, method, parameters, of_noun),
            *self.call_lines(face, method, parameters, of_noun),
        ]
        return "\n".join(
            [*lines, self.method_doc(face, method, parameters), *(f"    {b}" for b in body)]
        )

    def methods_text(self, owner: str) -> str:
        faces = [f for f in self.face["methods"] if f["name"].startswith(f"{owner}.")]
        blocks = [self.emit_method(face) for face in faces]
        text = "\n\n\n".join(blocks) + "\n"
        what = f"Methods of {owner}" + (f" on {plural(self.noun)}" if owner == "Client" else "")
        head = HEAD.format(schema=self.source, noun=self.noun, doc=f"{what}, a function each.")
        code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
        classes = [r["class"] for r in self.records.values()]
        functions = re.findall(r"\b(\w+_(?:of|message))\(", code)
        constants = [self.choices_name(self.schema.enums[n]) for n in self.face["choices"]]
        used = [c for c in classes if re.search(rf"\b{c}\b", code)]
        used += [c for c in constants if c in code]
        known = {f"{snake(c)}_{w}" for c in classes for w in ("of", "message")}
        used += sorted({f for f in functions if f in known and f"exchange.{f}" not in text})
        types = [t for t in ("Mapping", "Sequence") if re.search(rf"\b{t}\[", text)]
        noun = self.owner
        imports = "\n"
        if types:
            imports += f"from collections.abc import {', '.join(types)}\n"
        imports += "\n" if types else ""
        if "np." in text:
            imports += "import numpy as np\n"
        imports += "import numpy.typing as npt\n\n" if "npt." in text else ""
        modules = ", ".join(sorted(set(re.findall(r"\b(\w+_pb2)\.", code))))
        imports += f"from voxeld.v1 import {modules}\n\nfrom .. import exchange\n"
        if owner == "Client":
            imports += "from ..calls import Calls\n"
            if re.search(rf"\b{noun}\(self", text):
                imports += f"from ..{plural(self.noun)} import {noun}\n"
        if owner != "Client":
            imports += "".join(f"{line}\n" for line in self.face.get("method_imports", []))
        ordered = sorted(used, key=lambda n: (not n.isupper(), n.islower(), n))
        if ordered:
            imports += f"from .{self.noun}_records import (\n"
            imports += "".join(f"    {n},\n" for n in ordered) + ")\n"
        return f"{head}{imports}\n\n{text}"


def outputs(schema: Schema, noun: str, face: dict[str, Any]) -> dict[str, str]:
    client = PythonClient(schema, noun, face)
    folder = "client/python/voxeld/generated"
    made = {f"{folder}/{noun}_records.py": client.records_text()}
    for owner, module in (("Client", "client"), (client.owner, "methods")):
        if any(f["name"].startswith(f"{owner}.") for f in face["python"]["methods"]):
            made[f"{folder}/{noun}_{module}.py"] = client.methods_text(owner)
    return made
