# SPDX-License-Identifier: Apache-2.0
"""The package voxeld's records of a noun: classes, what reads them from replies, and what writes
those that requests have."""

from __future__ import annotations

import keyword
import re

from model import Field, Message, Method, snake
from clients.python_names import HEAD, SCALARS, PythonNames, plural
from clients.python_text import WIDTH, docstring, own_comment, sentence

ELEMENTS = {  # of tensors in NumPy: the type, and as the wire has it
    "INT8": ("np.int8", "|i1"),
    "UINT8": ("np.uint8", "|u1"),
    "UINT16": ("np.uint16", "<u2"),
    "INT32": ("np.int32", "<i4"),
    "UINT64": ("np.uint64", "<u8"),
    "FLOAT32": ("np.float32", "<f4"),
}


class PythonRecords(PythonNames):
    """Writes one noun's records."""

    def record_type(self, f: Field, is_optional: bool) -> str:
        """Of a member of a record."""
        if f.path in self.face["types"] and f.message.name in self.records:
            return self.face["types"][f.path]
        if f.message.name in self.inputs and f.is_message and f.message_of.name == "Vec3":
            return "exchange.Vector"
        if f.is_rows:
            kind = "dict[str, exchange.Array]"
        elif f.is_tensor and self.is_typed:
            kind = f"npt.NDArray[{ELEMENTS[f.option.dtype][0]}]"
        elif f.is_tensor:
            arrays = {"INT32": "npt.NDArray[np.int32]", "UINT8": "npt.NDArray[np.bool_]"}
            kind = arrays.get(f.option.dtype, "exchange.Array")
        elif f.is_message and f.message_of.name == "Vec3":
            kind = "tuple[float, float, float]"
        elif f.is_message:
            kind = self.records[f.message_of.name]["class"]
            needed = f.name in self.records.get(f.message.name, {}).get("needs", [])
            one = kind if needed else f"{kind} | None"
            kind = f"tuple[{kind}, ...]" if f.is_repeated else one
        elif f.is_enum:
            kind = {"DType": "DType", "Code": "Code"}.get(f.enum_of.name, "str")
        else:
            kind = SCALARS.get(f.type, "int")
            kind = f"tuple[{kind}, ...]" if f.is_repeated else kind
        return f"{kind} | None" if is_optional and "None" not in kind else kind

    def members(self, message: Message) -> list[tuple[Field, str]]:
        """Fields that are members of its record, and how a message's field is reached."""
        face = self.records[message.name]
        found: list[tuple[Field, str]] = []
        for f in message.fields:
            merges = any(self.merged_enum(o) is f for o in message.fields)
            if f.name in face.get("without", []) or merges:
                continue
            if f.name in face.get("flatten", []):
                kept = [i for i in f.message_of.fields if i.name not in face.get("without", [])]
                found += [(inner, f"{f.name}.{inner.name}") for inner in kept]
            else:
                found.append((f, f.name))
        found.sort(key=lambda m: m[0].name in face.get("last", []))
        order = face.get("order", [])
        place = {name: i for i, name in enumerate(order)}
        return sorted(found, key=lambda m: place.get(self.name_of(m[0]), len(order)))

    def method_of(self, message: Message) -> Method | None:
        return next((m for m in self.schema.methods if m.response is message), None)

    def conditions(self, f: Field, method: Method | None) -> list[str]:
        """When a reply has the field, on its request; the formats are the methods' own."""
        terms = [f"request.{w}" for w in f.only_with if "=" not in w]
        terms += [f"not request.{w}" for w in f.never_with if "=" not in w]
        for words, operator in ((f.only_with, "=="), (f.never_with, "!=")):
            for name, value in (w.split("=") for w in words if "=" in w):
                enum = method.request.field(name).enum_of if method is not None else None
                if enum is not None and enum.name in self.face["choices"]:
                    number = next(v.number for v in enum.values if v.name == value)
                    terms.append(f"request.{name} {operator} {number}")
        if f.is_tensor and method is not None and method.mutates:
            terms.append("not reply.dropped")
        return terms

    def member_value(self, f: Field, path: str, method: Method | None) -> str:
        source = f"message.{path}"
        if f.path in self.face.get("values", {}):
            return self.face["values"][f.path].format(source)
        merged = self.merged_enum(f)
        if merged is not None:
            number = f"message.{path.removesuffix(f.name)}{merged.name}"
            names = self.choices_name(merged.enum_of)
            return f"exchange.name_of({names}, {number}) if {source} else None"
        if f.is_rows:
            return "reply.all_rows(n)"
        if f.is_tensor:
            return self.tensor_value(f, method)
        if f.is_message and f.message_of.name == "Vec3":
            return f"exchange.vec3_of({source})"
        if f.is_message:
            made = f"{snake(self.records[f.message_of.name]['class'])}_of"
            if f.is_repeated:
                return f"tuple({made}(m) for m in {source})"
            if f.name in self.records.get(f.message.name, {}).get("needs", []):
                return f"{made}({source})"
            return f'{made}({source}) if message.HasField("{f.name}") else None'
        if f.is_enum and f.enum_of.name == "DType":
            return f"exchange.known_dtype({source})"
        if f.is_enum and f.enum_of.name == "Code":
            return f"exchange.code_of({source})"
        if f.is_enum:
            return f"exchange.name_of({self.choices_name(f.enum_of)}, {source})"
        if f.is_repeated:
            return f"tuple({source})"
        return f"{source} or {f.option.default}" if f.option.default.isdigit() else source

    def tensor_value(self, f: Field, method: Method | None) -> str:
        columns = "".join(
            f", {d}" if d.isdigit() else f", request.{d}"
            for d in f.shape[1:]
            if d.isdigit() or (method and method.request.has(d))
        )
        if self.is_typed:
            return self.typed_value(f, method)
        n = f"message.{f.shape[0]}" if f.shape and f.message.has(f.shape[0]) else "n"
        if f.option.dtype == "INT32":
            if f.range is None or f.range.low != -1:
                columns += f", lowest={None if f.range is None else int(f.range.low)}"
            value = f'reply.numbers("{f.name}", {n}{columns})'
        elif f.option.dtype == "UINT8":
            value = f'reply.mask("{f.name}", n)'
        else:
            value = f'reply.rows("{f.name}", message.{f.name}, {n})'
        terms = self.conditions(f, method)
        if not terms:
            return value
        one = f"{value} if {' and '.join(terms)} else None"
        if len(one) + len(f.name) + 10 <= WIDTH:
            return one
        if len(one) + 12 <= WIDTH:
            return f"(\n            {one}\n        )"
        inner = f"{value}\n            if {' and '.join(terms)}\n            else None"
        return f"(\n            {inner}\n        )"

    def typed_value(self, f: Field, method: Method | None) -> str:
        sizes = [f"message.{d}" if f.message.has(d) else d for d in f.shape]
        columns = "".join(f", {d}" for d in sizes[1:])
        terms = self.conditions(f, method)
        if f.option.absent_where:
            terms.append(f'message.HasField("{f.name}")')
        value = f'reply.array("{f.name}", "{ELEMENTS[f.option.dtype][1]}", {sizes[0]}{columns})'
        return f"{value} if {' and '.join(terms)} else None" if terms else value

    def may_lack(self, f: Field, method: Method | None) -> bool:
        return f.is_tensor and bool(self.conditions(f, method) or f.option.absent_where)

    def record_doc(self, message: Message) -> str:
        face = self.records[message.name]
        rows = []
        for f, _ in self.members(message):
            text = sentence(f, own_comment(self.schema, f))
            merged = self.merged_enum(f)
            if merged is not None:
                names = self.choices(merged.enum_of).strip("()").replace("'", '"')
                text = f"{names}, or None: a restart of the server forgets it"
            text = self.face.get("member_docs", {}).get(f.path, text)
            if text:
                rows.append((self.name_of(f), text))
        return docstring([" ".join(face["doc"].split())], rows, "", "    ")

    def emit_record(self, message: Message) -> str:
        face = self.records[message.name]
        name = face["class"]
        method = self.method_of(message)
        lines = [self.record_doc(message), ""]
        for f, _ in self.members(message):
            is_merged = self.merged_enum(f) is not None
            kind = self.record_type(f, self.may_lack(f, method))
            kind = "str | None" if is_merged else kind
            default = face.get("defaults", {}).get(f.name)
            lines.append(f"    {self.name_of(f)}: {kind}" + (f" = {default}" if default else ""))
        if face.get("header") == "replayed":
            order = face.get("order", [])
            place = order.index("replayed") if "replayed" in order else len(lines)
            lines.insert(2 + place, "    replayed: bool")
        elif face.get("header"):
            lines += ["    replayed: bool", "    arrays_dropped: bool"]
        if face.get("parts"):
            lines += ["", *(f"    {part}" for part in face["parts"])]
        has_arrays = any(f.is_tensor or f.is_rows for f, _ in self.members(message))
        decorator = "@dataclasses.dataclass(frozen=True)"
        if has_arrays:
            decorator = "@shown\n@dataclasses.dataclass(frozen=True, eq=False)"
        return "\n".join([decorator, f"class {name}:", *lines])

    def emit_reader(self, message: Message) -> str:
        face = self.records[message.name]
        method = self.method_of(message)
        members = self.members(message)
        has_arrays = any(f.is_tensor or f.is_rows for f, _ in members)
        values = [f"{self.name_of(f)}={self.member_value(f, path, method)}," for f, path in members]
        if face.get("header") == "replayed":
            values.append("replayed=replayed,")
        elif face.get("header"):
            values += ["replayed=reply.replayed,", "arrays_dropped=reply.dropped,"]
        name = face["class"]
        lines = [f"def {snake(name)}_of("]
        if has_arrays:
            lines[0] += f"reply: exchange.Reply, request: Any, n: int) -> {name}:"
            lines.append("    message = reply.message")
        elif face.get("header") == "replayed":
            lines[0] += f"message: Any, replayed: bool) -> {name}:"
        else:
            lines[0] += f"message: Any) -> {name}:"
        lines += [f'    exchange.need(message, "{n}")' for n in face.get("needs", [])]
        return "\n".join(
            [*lines, f"    return {name}(", *(f"        {v}" for v in values), "    )"]
        )

    def emit_writer(self, message: Message) -> str:
        """A record as a message, of records that requests have."""
        name = self.records[message.name]["class"]
        values = {
            f.name: self.written(f, f"value.{self.name_of(f)}", f'f"{{field}}.{f.name}"')
            for f in message.fields
            if f.name not in self.records[message.name].get("reply_only", [])
        }
        words = {name: value for name, value in values.items() if keyword.iskeyword(name)}
        rows = [f"{name}={value}," for name, value in values.items() if name not in words]
        if words:
            given = ", ".join(f'"{name}": {value}' for name, value in words.items())
            rows.append(f"**{{{given}}},")
        return "\n".join(
            [
                f"def {snake(name)}_message(value: {name}, field: str) -> Any:",
                "    return exchange.message_of(",
                f"        {self.module_of(message)}.{message.name},",
                "        field,",
                *(f"        {row}" for row in rows),
                "    )",
            ]
        )

    def written(self, f: Field, value: str, field: str) -> str:
        """A record's member as its message's field takes it; field: the path in errors."""
        if f.path in self.face["convert"]:
            return str(self.face["convert"][f.path]).format(value, field)
        if f.is_message and f.message_of.name == "Vec3":
            return f"wire.vec3({value}, {field})"
        if f.is_enum:
            return f"exchange.choice_of({value}, {self.choices_name(f.enum_of)}, {field})"
        return value

    def emit_oneof(self, path: str, constant: str) -> str:
        """Records that a oneof may be, each with the field's name and what writes it."""
        message, oneof = path.split(".")
        rows = []
        for f in self.schema.messages[message].fields:
            if f.oneof == oneof and f.message_of.name in self.inputs:
                name = self.records[f.message_of.name]["class"]
                rows.append(f'    {name}: ("{f.name}", {snake(name)}_message),')
        kind = "dict[type, tuple[str, Callable[[Any, str], Any]]]"
        return "\n".join([f"{constant}: {kind} = {{", *rows, "}"])

    def records_text(self) -> str:
        messages = [self.schema.messages[name] for name in self.records]
        in_requests = {
            f.message_of.name
            for p in self.all_parameters()
            if (f := p.field).is_message
            and not f.is_tensor
            and not (f.is_repeated and self.of_field("convert", f))
        }
        enums = [self.choices_line(self.schema.enums[name]) for name in self.face["choices"]]
        blocks = [self.emit_record(m) for m in messages]
        blocks += [self.emit_reader(m) for m in messages if m.name not in self.inputs]
        in_requests |= set(self.inputs)
        blocks += [self.emit_writer(m) for m in messages if m.name in in_requests]
        blocks += [self.emit_oneof(*item) for item in self.face.get("oneofs", {}).items()]
        head = HEAD.format(
            schema=self.source, noun=self.noun, doc=f"What calls on {plural(self.noun)} give."
        )
        code = ("\n".join(enums) + "\n\n\n" if enums else "") + "\n\n\n".join(blocks) + "\n"
        return head + self.record_imports(code) + code

    def record_imports(self, code: str) -> str:
        """What the records use."""
        imports = "\nimport dataclasses\n"
        imports += "from collections.abc import Callable\n" if "Callable[" in code else ""
        imports += "from typing import Any\n\n"
        numpy = "import numpy as np\n" if "np." in code else ""
        numpy += "import numpy.typing as npt\n" if "npt." in code else ""
        imports += f"{numpy}\n" if numpy else ""
        modules = sorted(set(re.findall(r"\b(\w+_pb2)\.", code)))
        if modules:
            imports += f"from voxeld.v1 import {', '.join(modules)}\n\n"
        ours = [n for n in ("exchange", "wire") if f"{n}." in code]
        imports += f"from .. import {', '.join(ours)}\n" if ours else ""
        if re.search(r"\bDType\b", code):
            imports += "from ..cloud import DType\n"
        if re.search(r": Code\b", code):
            imports += "from ..errors import Code\n"
        if "@shown" in code:
            imports += "from ..shown import shown\n"
        imports += "".join(f"{line}\n" for line in self.face.get("imports", []))
        return f"{imports.rstrip()}\n\n" + ("" if self.face["choices"] else "\n")
