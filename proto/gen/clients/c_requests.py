# SPDX-License-Identifier: Apache-2.0
"""Records of the installed headers to messages: libvoxeld's functions fill_MESSAGE, build_MESSAGE
and build_METHOD. Memory is as in README.md."""

from __future__ import annotations

from typing import Any

from clients.c_names import CNames
from model import Field, Message, Method, Schema, Types, fail, snake


def out_count(target: str, f: Field) -> str:
    """Where the length of a message's list is."""
    return target.replace(f.name, f"n_{f.name}")


class CRequests(CNames):
    """Writes what fills messages from records."""

    def __init__(self, schema: Schema, noun: str, face: dict[str, Any]) -> None:
        super().__init__(schema, noun, face)
        self.built: set[str] = set()  # messages whose functions are written

    def build_statements(self, message: Message, at: str, out: str) -> list[str]:
        """Fills the message's fields from a record's members; at is how they are reached: "in->",
        or nothing for parameters. Needs call, status and out:."""
        lines = []
        for f in self.fields(message):
            member = self.member(f)
            target = f"{out}{f.name.lower()}"
            if self.is_at_in_name(message) and f.name == "at":
                call = f"call, {at}{self.member(message.field('name'))}, &{out}name, &{target}"
                lines.append(f"VXD_TRY(vxd_exchange_name_at({call}));")
            elif (
                f.path in self.face.get("reply_only", [])
                or (self.is_at_in_name(message) and f.name == "name")
            ):
                continue
            elif f.oneof and f"{message.name}.{f.oneof}" in self.face.get("unions", {}):
                lines += self.build_union(f, at, out)
            else:
                made = self.build_field(f, at, f"{at}{member}", target, member)
                condition = self.face.get("sent_if", {}).get(f.path, "").format(at)
                sent_with = self.face.get("sent_with", {}).get(f.path)
                condition = f"{at}{sent_with}" if sent_with else condition
                lines += self.only_if(condition, made)
        return lines

    def build_union(self, f: Field, at: str, out: str) -> list[str]:
        """All of a oneof, where its first field stands: a union, and an enum beside it."""
        message = f.message
        union = self.face["unions"][f"{message.name}.{f.oneof}"]
        fields = [o for o in message.fields if o.oneof == f.oneof]
        if f is not fields[0]:
            return []
        tag = f"{at}{union['tag']}"
        lines = [f"switch ({tag}) {{", f"case {union['values']}NONE:", "break;"]
        for o in fields:
            case = f"{snake(message.name)}__{f.oneof}_{o.name}".upper()
            enters = [f'vxd_exchange_enter(call, "{o.name}");']
            lines += [
                f"case {union['values']}{o.name.upper()}:",
                f"{out}{f.oneof}_case = VOXELD__V1__{case};",
                *(enters if self.reaches_tensor(o.message_of) else []),
                f"VXD_TRY(build_{self.build_record(o.message_of)}(call, "
                f"&{at}{union['member']}.{o.name}, &{out}{o.name}));",
                "break;",
            ]
        wrong = f'vxd_exchange_wrong_choice(call, "{union["tag"]}", (int){tag})'
        return [*lines, "default:", f"return {wrong};", "}"]

    def build_field(self, f: Field, at: str, source: str, target: str, member: str) -> list[str]:
        if f.is_rows:
            return [
                f"VXD_TRY(vxd_exchange_rows(call, {source}, {at}n_{member}, &{target}));",
                f"{target.replace(f.name, 'n_' + f.name)} = {at}n_{member};",
            ]
        if f.is_tensor:
            if f.option.dtype == "INT32" and len(f.shape) == 1:
                return [
                    f"VXD_TRY(vxd_exchange_indices(call, {source}, {at}n_{member}, &{target}));"
                ]
            made = [f'VXD_TRY(vxd_exchange_tensor(call, "{f.name}", &{source}, &{target}));']
            if len(f.shape) == 2 and not any(d.isdigit() or d == "n" for d in f.shape):
                # Two axes, with one column too.
                made += [f"if ({target} != NULL) {{", f"{target}->n_shape = 2;", "}"]
            return made
        if f.is_message and member == ".":
            return self.build_nested(f, at, target)
        if f.is_message and member.endswith("."):
            return self.only_if(source.removesuffix("."), self.build_nested(f, at, target))
        if f.is_message and f.is_repeated and f.message_of.name == "Cloud":
            given = f"call, {source}, {at}n_{member}, &{target}"
            count = target.replace(f.name, "n_" + f.name)
            return [f"VXD_TRY(vxd_exchange_clouds({given}));", f"{count} = {at}n_{member};"]
        if f.is_message and f.is_repeated:
            record = self.build_record(f.message_of)
            count = target.replace(f.name, "n_" + f.name)
            return [
                f"VXD_TRY(build_{record}_list(call, {source}, {at}n_{member}, &{target}));",
                f"{count} = {at}n_{member};",
            ]
        if f.is_message and f.message_of.name == "Vec3":
            made = [f"VXD_TRY(vxd_exchange_vec3(call, {source}, &{target}));"]
            has = f"{at}has_{f.name}" if f.path in self.face.get("optional", []) else ""
            return self.only_if(has, made)
        if f.is_message and f.message_of.name == "Pose":
            return [f"VXD_TRY(vxd_exchange_pose(call, &{source}, &{target}));"]
        if f.is_message and f.message_of.name == "Cloud" and not f.is_repeated:
            return [f"VXD_TRY(vxd_exchange_cloud(call, {source}, &{target}));"]
        if f.is_message:
            record = self.build_record(f.message_of)
            made = [f"VXD_TRY(build_{record}(call, &{source}, &{target}));"]
            has = "" if f.path in self.face.get("sent_if", {}) else f"{at}has_{member}"
            return self.only_if(has, made)
        if f.path in self.face.get("fixed", {}):
            count = target.replace(f.name, "n_" + f.name)
            call = f"call, {source}, {self.face['fixed'][f.path]}, &{target}, &{count}"
            return [f"VXD_TRY(vxd_exchange_int32s({call}));"]
        if f.is_repeated and f.type == Types.TYPE_STRING:
            return [
                f'VXD_TRY(vxd_exchange_names(call, "{f.name}", {source}, {at}n_{member}, '
                f"&{target}));",
                f"{target.replace(f.name, 'n_' + f.name)} = {at}n_{member};",
            ]
        numbers = {
            Types.TYPE_DOUBLE: "double",
            Types.TYPE_FLOAT: "float",
            Types.TYPE_UINT64: "uint64_t",
        }
        if f.is_repeated and f.type in numbers:
            return [
                f'VXD_TRY(vxd_exchange_check_list(call, "{f.name}", {source}, {at}n_{member}));',
                f"{target} = ({numbers[f.type]} *)(uintptr_t){source};",
                f"{target.replace(f.name, 'n_' + f.name)} = {at}n_{member};",
            ]
        if f.path in self.face.get("masks", []):
            bits = " | ".join(f"VOXELD_{v.name}" for v in f.enum_of.values if v.number > 0)
            given = f'call, "{f.name}", {source}, {bits}, &{target}'
            return [f"VXD_TRY(vxd_exchange_choices({given}, &{out_count(target, f)}));"]
        if f.is_repeated:
            fail(f"{f.path}: lists of {f.type_name} are not made yet")
        if f.is_enum and f.enum_of.name in self.face["enums"]:
            return [f"{target} = ({f.enum_of.c}){source};"]
        if f.is_enum:  # true means the last one
            yes, no = f.enum_of.values[-1], f.enum_of.values[0]
            return [
                f"{target} = {source} ? {f.enum_of.c_value(yes.name)} : "
                f"{f.enum_of.c_value(no.name)};"
            ]
        if f.type == Types.TYPE_STRING:
            return [f"{target} = vxd_text_or_empty({source});"]
        if f.type == Types.TYPE_BYTES:
            return [
                f"{target}.data = (uint8_t *)(uintptr_t){source};",
                f"{target}.len = {at}n_{member}_bytes;",
            ]
        return [f"{target} = {source};"]

    def build_nested(self, f: Field, at: str, target: str) -> list[str]:
        inner = f.message_of
        return [
            f"{target} = vxd_exchange_alloc(call, 1, sizeof *{target});",
            f"if ({target} == NULL) {{ return VXD_RESOURCE_EXHAUSTED; }}",
            f"{inner.c_init}({target});",
            *self.build_statements(inner, at, f"{target}->"),
        ]

    def build_record(self, message: Message) -> str:
        """Emits what makes a message of a record, once; its name in functions."""
        name = snake(message.name)
        if name in self.built:
            return name
        self.built.add(name)
        body = self.build_statements(message, "in->", "out->")
        tries = any("VXD_TRY" in line for line in body)
        self.add(
            f"static enum vxd_status fill_{name}(struct vxd_exchange *call, "
            f"const struct {self.record(message)} *in, {message.c} *out)\n{{\n"
            + ("enum vxd_status status = VXD_OK;\n\n" if tries else "")
            + ("" if tries else "(void)call;\n")
            + f"{message.c_init}(out);\n"
            + "\n".join(body)
            + ("\nout:\nreturn status;\n}\n" if tries else "\nreturn VXD_OK;\n}\n")
        )
        self.emit_one_or_list(message, name)
        return name

    def emit_one_or_list(self, message: Message, name: str) -> None:
        as_list = any(
            f.is_repeated and f.of is message
            for m in self.schema.messages.values()
            for f in m.fields
        )
        record = self.record(message)
        if not as_list:
            self.add(f"""static enum vxd_status build_{name}(struct vxd_exchange *call,
 const struct {record} *in, {message.c} **out)
{{
    *out = vxd_exchange_alloc(call, 1, sizeof **out);
    return *out != NULL ? fill_{name}(call, in, *out) : VXD_RESOURCE_EXHAUSTED;
}}
""")
            return
        field = next(
            f
            for m in self.schema.messages.values()
            for f in m.fields
            if f.is_repeated and f.of is message
        )
        enters = leaves = ""
        if self.reaches_tensor(message):
            enters = f'vxd_exchange_enter_item(call, "{field.name}", i);\n'
            leaves = "\nvxd_exchange_leave(call);"
        self.add(f"""static enum vxd_status build_{name}_list(struct vxd_exchange *call,
 const struct {record} *in, size_t n, {message.c} ***out)
{{
    {message.c} *all;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_check_list(call, "{self.list_name(field)}", in, n));
    all = vxd_exchange_alloc(call, n, sizeof *all);
    *out = vxd_exchange_alloc(call, n, sizeof({message.c} *));
    if (all == NULL || *out == NULL) {{
        return VXD_RESOURCE_EXHAUSTED;
    }}
    for (size_t i = 0; i < n; i++) {{
        {enters}VXD_TRY(fill_{name}(call, &in[i], &all[i]));
        (*out)[i] = &all[i];
    }}{leaves}
out:
    return status;
}}
""")

    def list_name(self, f: Field) -> str:
        """A list's name in errors."""
        return self.face.get("list_names", {}).get(f.path, self.member(f))

    def emit_build(self, method: Method) -> None:
        face = self.method_face(method)
        if "request" not in face:
            return
        body = self.build_statements(method.request, "in->", "out->")
        tries = any("VXD_TRY" in line for line in body)
        name = self.build_function(method)
        self.add(
            f"{'static ' if name.startswith('build_') else ''}enum vxd_status {name}("
            "struct vxd_exchange *call, "
            f"const struct {face['request']} *in, {method.request.c} *out)\n{{\n"
            + ("enum vxd_status status = VXD_OK;\n\n" if tries else "(void)call;\n")
            + ("" if body else "(void)in;\n(void)out;\n")
            + "\n".join(body)
            + ("\nout:\nreturn status;\n}\n" if tries else "\nreturn VXD_OK;\n}\n")
        )
