# SPDX-License-Identifier: Apache-2.0
"""The installed header of a noun: enums, records, results and functions, with units, ranges and
errors as comments. Nouns that had a header before the generator keep it (faces/NOUN.toml says so
with `keeps_header`); a test compares their members with what would be written here."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from clients.c_client import CClient
from clients.c_names import formatted
from model import Enum, Field, Message, Method, Schema, Types, plural
from clients.python_text import own_comment, without_http

C_TYPES = {
    Types.TYPE_DOUBLE: "double ",
    Types.TYPE_FLOAT: "float ",
    Types.TYPE_INT32: "int32_t ",
    Types.TYPE_SINT32: "int32_t ",
    Types.TYPE_INT64: "int64_t ",
    Types.TYPE_SINT64: "int64_t ",
    Types.TYPE_UINT32: "uint32_t ",
    Types.TYPE_FIXED32: "uint32_t ",
    Types.TYPE_UINT64: "uint64_t ",
    Types.TYPE_FIXED64: "uint64_t ",
    Types.TYPE_BOOL: "bool ",
    Types.TYPE_STRING: "const char *",
}
HEADER_TYPES = {
    "queue_ms": "double ",
    "total_ms": "double ",
    "request_id": "const char *",
    "replayed": "bool ",
    "arrays_dropped": "bool ",
}


def remark_of(text: str, indent: str = "") -> str:
    """Text as a comment before a declaration; empty without text."""
    paragraphs = [textwrap.wrap(p, 82) for p in text.split("\n\n") if p]
    if not paragraphs:
        return ""
    lines = "\n *\n * ".join("\n * ".join(lines) for lines in paragraphs)
    lines = lines.replace("\n", f"\n{indent}")
    return f"/* {lines} */\n"


def aligned(code: str) -> str:
    """With the lines of each comment below its first one, which clang-format leaves where they
    are."""
    lines, indent = [], ""
    for line in code.split("\n"):
        if line.lstrip().startswith("/*"):
            indent = line[: len(line) - len(line.lstrip())]
        lines.append(f"{indent}{line}" if line.startswith(" *") else line)
    return "\n".join(lines)


class CHeader:
    """Writes one noun's header."""

    def __init__(self, schema: Schema, noun: str, face: dict[str, Any]) -> None:
        self.schema = schema
        self.noun = noun
        self.client = CClient(schema, noun, face)
        self.face = face["c"]
        self.source = face["schema"]

    # Members ----------------------------------------------------------------------------------

    def remark(self, f: Field) -> str:
        comment = own_comment(self.schema, f)
        words = [comment if comment.endswith("...") else comment.removesuffix(".")]
        if f.shape and " x ".join(f.shape) not in comment:
            words.append(" x ".join(f.shape))
        if f.range is not None and not f.is_tensor:
            words.append(f.range.words())
        if f.option.default and f.option.default not in f.comment:
            words.append(f"0: {f.option.default}")
        words += [f"with {w}" for w in f.only_with] + [f"not with {w}" for w in f.never_with]
        return remark_of("; ".join(w for w in words if w), "    ")

    def members(self, message: Message, in_request: bool) -> list[str]:
        """Declarations of a record's members, with their comments before them."""
        found = []
        for f in self.client.fields(message):
            name = self.client.member(f)
            if name.endswith("."):
                found += [f"bool {name.removesuffix('.')};"] if name != "." else []
                found += self.members(f.message_of, in_request)
                continue
            declared = self.declared(f, name, in_request)
            found.append(self.remark(f) + " ".join(f"{d};" for d in declared))
        return found

    def declared(self, f: Field, name: str, in_request: bool) -> list[str]:
        if f.path in self.face.get("types", {}):
            return [f"{self.face['types'][f.path]} {name}"]
        if f.is_rows:
            return [f"const struct voxeld_array *{name}", f"size_t n_{name}"]
        if f.is_tensor:
            return self.array(f, name, in_request)
        if f.is_message and f.message_of.name == "Vec3":
            return [f"double {name}[3]"]
        if f.is_message and f.message_of.name == "Pose":
            return [f"struct voxeld_pose {name}"]
        if f.is_message and f.message_of.name == "Cloud" and not f.is_repeated:
            return [f"const struct voxeld_cloud *{name}"]
        if f.is_message and f.message_of.name == "Cloud":
            return [f"const struct voxeld_cloud *{name}", f"size_t n_{name}"]
        if f.is_message and f.is_repeated:
            record = self.client.record(f.message_of)
            return [f"const struct {record} *{name}", f"size_t n_{name}"]
        if f.is_message:
            record = self.client.record(f.message_of)
            one = f"struct {record} {name}"
            return [one] if self.client.is_embedded(f) else [f"bool has_{name}", one]
        if f.path in self.face.get("fixed", {}):
            return [f"{C_TYPES[f.type]}{name}[{self.face['fixed'][f.path]}]"]
        if f.is_repeated and f.type == Types.TYPE_STRING:
            return [f"const char *const *{name}", f"size_t n_{name}"]
        numbers = {
            Types.TYPE_DOUBLE: "double",
            Types.TYPE_FLOAT: "float",
            Types.TYPE_UINT64: "uint64_t",
        }
        if f.is_repeated and f.type in numbers:
            return [f"const {numbers[f.type]} *{name}", f"size_t n_{name}"]
        if f.type == Types.TYPE_BYTES:
            return [f"const uint8_t *{name}", f"size_t n_{name}_bytes"]
        if f.is_enum:
            known = f.enum_of.name in self.face["enums"]
            return [f"enum {self.client.enum(f)} {name}" if known else f"bool {name}"]
        return [f"{C_TYPES[f.type]}{name}"]

    def array(self, f: Field, name: str, in_request: bool) -> list[str]:
        if in_request and f.option.dtype == "INT32" and len(f.shape) == 1:
            return [f"const int32_t *{name}", f"size_t n_{name}"]
        element = {"INT32": "int32_t", "UINT8": "uint8_t"}.get(f.option.dtype)
        if in_request or element is None:
            return [f"struct voxeld_array {name}"]
        more = [f"size_t n_{name}"] if any(not d.isdigit() for d in f.shape[1:]) else []
        return [f"const {element} *{name}", *more]

    # Declarations -----------------------------------------------------------------------------

    def enum(self, name: str) -> str:
        ours, start, wire = self.face["enums"][name]
        enum: Enum = self.schema.enums[name]
        values = []
        for v in enum.values:
            name = self.client.enumerator(v.name, start, wire)
            if name:
                values.append(f"{remark_of(v.comment, '    ')}{name} = {v.number}")
        return f"{remark_of(enum.comment)}enum {ours} {{\n" + ",\n".join(values) + "\n};\n"

    def struct(self, name: str, comment: str, members: list[str]) -> str:
        return (
            f"{remark_of(comment)}struct {name} {{\n" + "\n".join(dict.fromkeys(members)) + "\n};\n"
        )

    def result(self, struct: str, result: dict[str, Any]) -> str:
        has_rows = any(
            f.is_rows or f.shape[:1] == ["n"]
            for method in self.client.methods()
            if self.client.method_face(method).get("result") == struct
            for f in method.response.fields
        )
        members = [f"{remark_of('Rows of the arrays of n.')}size_t n;"] if has_rows else []
        for method in self.client.methods():
            if self.client.method_face(method).get("result") != struct:
                continue
            for f in self.client.fields(method.response):
                name = self.client.member(f)
                is_record = f.is_message and f.message_of.name in self.face["records"]
                if "list" in result and is_record:
                    record = self.client.record(f.message_of)
                    name = result["list"]
                    members.append(f"const struct {record} *{name}; size_t n_{name};")
                    continue
                declared = self.declared(f, name, False)
                if not any(d in m for m in members for d in [f"{declared[0]};"]):
                    members.append(self.remark(f) + " ".join(f"{d};" for d in declared))
        members += [f"{HEADER_TYPES[name]}{name};" for name in result["header"]]
        return self.struct(struct, "All pointers live until it is freed.", members)

    def flat(self, method: Method, struct: str) -> str:
        members = []
        for f in method.response.fields:
            if f.type == Types.TYPE_STRING:
                members.append(f"char {f.name}[64];")
            else:
                members += [f"{d};" for d in self.declared(f, f.name, False)]
        return self.struct(struct, "", [*members, "bool replayed;"])

    def function(self, method: Method) -> str:
        face = self.client.method_face(method)
        arguments = ["struct voxeld_client *client"]
        if "request" in face:
            arguments.append(f"const struct {face['request']} *request")
        else:
            arguments.append("const struct voxeld_call *call")
            fields = self.client.parameter_fields(method, face)
            arguments += [declaration for _, declaration in fields]
        arguments += [self.client.result_argument(face), "struct voxeld_error *error"]
        text = without_http(method.request.comment) or method.option.summary
        text += "".join(f"\n\n{code}: {what}." for code, what in method.errors)
        declared = ", ".join(a for a in arguments if a)
        return f"{remark_of(text)}VOXELD_API enum voxeld_status voxeld_{method.name}({declared});\n"

    def later(self, method: Method) -> str:
        """The same without waiting."""
        face = self.client.method_face(method)
        text = f"Starts voxeld_{method.name} and returns at once. What *request points to is "
        text += "needed until "
        text += "the callback." if self.client.needs_request(method) else "this returns."
        return (
            f"{remark_of(text)}VOXELD_API enum voxeld_status voxeld_{method.name}_async("
            f"struct voxeld_client *client, const struct {face['request']} *request, "
            f"{face['async']} callback, void *context, struct voxeld_error *error);\n"
        )

    def callbacks(self, methods: list[Method]) -> list[str]:
        """Of what does not wait, once each, with what holds for all."""
        faces = [self.client.method_face(method) for method in methods]
        text = (
            "Callbacks of calls that do not wait, so that the next one goes out while the server "
            "works on this one; changes take effect in the order in which they were started. Where "
            "starting gave OK, one is called exactly once, from voxeld_dispatch (or voxeld_close); "
            "otherwise never. error is NULL when done is not, which is the callback's to free; "
            "error lives until it returns. It may start new calls and must not close the client."
        )
        typedefs = {
            face["async"]: f"typedef void (*{face['async']})(void *context, struct "
            f"{face['result']} *done, const struct voxeld_error *error);\n"
            for face in faces
        }
        return [remark_of(text) + "".join(typedefs.values())] if typedefs else []

    def records(self) -> list[str]:
        parts = []
        for name, struct in self.face["records"].items():
            if name in self.face.get("shared", []):
                continue
            message = self.schema.messages[name]
            parts.append(self.struct(struct, message.comment, self.members(message, False)))
        return parts

    def text(self, part: dict[str, Any] | None = None) -> str:
        """The noun's header, without what its `[c.parts]` hold; or one of these."""
        apart = self.face.get("parts", {}).values()
        methods, enums = self.client.methods(), list(self.face["enums"])
        if part is None:
            methods = [m for m in methods if all(m.name not in p["methods"] for p in apart)]
            enums = [e for e in enums if all(e not in p["enums"] for p in apart)]
            about = f"libvoxeld: {plural(self.noun)}. "
            about += "Part of voxeld.h, whose conventions hold here."
            guard, includes = self.noun, self.face.get("includes", ["voxeld.h"])
        else:
            methods = [m for m in methods if m.name in part["methods"]]
            enums = part["enums"]
            about = f"libvoxeld: {part['about']}. The conventions of voxeld.h hold here."
            guard, includes = part["name"], [Path(self.face["header"]).name]
        guard = f"VOXELD_{guard.upper()}_H"
        parts = [self.enum(n) for n in enums if n.startswith(self.noun.title())]
        parts += self.records() if part is None else []
        for method in methods:
            face = self.client.method_face(method)
            if "request" in face:
                members = [*self.members(method.request, True), "struct voxeld_call call;"]
                parts.append(self.struct(face["request"], "", members))
            if "record" in face:
                parts.append(self.flat(method, face["record"]))
        used = {self.client.method_face(method).get("result") for method in methods}
        for struct, result in self.face["results"].items():
            if struct not in used:
                continue
            parts.append(self.result(struct, result))
            parts.append(f"VOXELD_API void {result['free']}(struct {struct} *result);\n")
        parts += [self.function(method) for method in methods]
        if part.get("later") if part else not any(p.get("later") for p in apart):
            methods = [m for m in self.client.methods() if "async" in self.client.method_face(m)]
            parts += [*self.callbacks(methods), *(self.later(m) for m in methods)]
        about += f" Generated by proto/gen from {self.source}.proto: not to be edited."
        if part is None:
            about += "\n\n" + self.schema.file_comments.get(self.source, "")
        code = (
            "// SPDX-License-Identifier: Apache-2.0\n"
            f"{remark_of(about)}#ifndef {guard}\n#define {guard}\n\n"
            + "".join(f'#include "{name}"\n' for name in includes)
            + '\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
            + "\n".join(parts)
            + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
        )
        return aligned(formatted(code))


def outputs(schema: Schema, noun: str, face: dict[str, Any]) -> dict[str, str]:
    if face["c"].get("keeps_header"):
        return {}
    header = CHeader(schema, noun, face)
    made = {face["c"]["header"]: header.text()}
    for name, part in face["c"].get("parts", {}).items():
        made[f"client/c/include/voxeld_{name}.h"] = header.text(part | {"name": name})
    return made
