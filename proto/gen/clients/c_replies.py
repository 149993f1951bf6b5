# SPDX-License-Identifier: Apache-2.0
"""Replies to records of the installed headers: libvoxeld's functions read_MESSAGE, open_METHOD,
whose result owns the reply, and take_METHOD, whose record owns nothing."""

from __future__ import annotations

import re
from typing import Any

from clients.c_names import CNames
from model import Field, Message, Method, Schema, Types, snake


class CReplies(CNames):
    """Writes what reads records, results and lists from messages."""

    def __init__(self, schema: Schema, noun: str, face: dict[str, Any]) -> None:
        super().__init__(schema, noun, face)
        self.read: set[str] = set()  # messages whose functions are written
        self.lists: set[str] = set()  # and those for lists of them
        self.copies = False  # what is read owns nothing

    def read_statements(self, message: Message, at: str, out: str) -> list[str]:
        lines = []
        for f in self.fields(message):
            member, source = self.member(f), f"{at}{f.name}"
            if member == "." and f.path in self.face.get("optional", []):
                inner = self.read_statements(f.message_of, f"{source}->", out)
                lines += self.only_if(f"{source} != NULL", inner)
            elif member == ".":
                lines += [
                    f"if ({source} == NULL) {{",
                    f'return vxd_reply_bad(err, "{f.name}", "is missing");',
                    "}",
                    *self.read_statements(f.message_of, f"{source}->", out),
                ]
            elif member.endswith("."):
                lines += [
                    f"if ({source} != NULL) {{",
                    f"{out}{member.removesuffix('.')} = true;",
                    *self.read_statements(f.message_of, f"{source}->", out),
                    "}",
                ]
            elif f.path in self.face.get("fixed", {}):
                n = self.face["fixed"][f.path]
                call = f'{source}, {at}n_{f.name}, "{f.name}", {n}, {out}{member}, err'
                lines.append(f"VXD_TRY(vxd_reply_int32s({call}));")
            elif f.is_repeated and f.type == Types.TYPE_STRING:
                lines.append(f"{out}{member} = (const char *const *){source};")
                lines.append(f"{out}n_{member} = {at}n_{f.name};")
            elif f.is_message and f.message_of.name == "NetworkTimings":
                lines.append(f"vxd_reply_timings({source}, &{out}{member});")
            elif f.is_message and f.path in self.face.get("required", []):
                record = self.read_record(f.message_of)
                lines += [
                    f"if ({source} == NULL) {{",
                    f'return vxd_reply_bad(err, "{f.name}", "is missing");',
                    "}",
                    f"VXD_TRY(read_{record}(reply, {source}, &{out}{member}, err));",
                ]
            elif f.is_message and not f.is_repeated and self.is_embedded(f):
                record = self.read_record(f.message_of)
                lines += [
                    f"if ({source} != NULL) {{",
                    f"VXD_TRY(read_{record}(reply, {source}, &{out}{member}, err));",
                    "}",
                ]
            elif f.is_message and f.message_of.name == "Vec3":
                lines.append(f"vxd_reply_vec3({source}, {out}{member});")
            elif f.is_message and f.message_of.name == "Pose":
                lines.append(f"vxd_reply_pose({at}{f.name.lower()}, &{out}{member});")
            elif f.is_message and f.is_repeated:
                record = self.read_list(f.message_of)
                count = f"{at}n_{f.name}"
                lines.append(
                    f"VXD_TRY(read_{record}_list(reply, {source}, {count}, "
                    f"&{out}{member}, err));"
                )
                lines.append(f"{out}n_{member} = {count};")
            elif f.is_message:
                record = self.read_record(f.message_of)
                lines += [
                    f"if ({source} != NULL) {{",
                    f"VXD_TRY(read_{record}(reply, {source}, &{out}{member}, err));",
                    f"{out}has_{member} = true;",
                    "}",
                ]
            elif f.is_enum:
                lines.append(f"{out}{member} = {self.read_enum(f, source)};")
            elif f.type == Types.TYPE_STRING and self.copies:
                size = f"{out}{member}, sizeof {out}{member}"
                lines.append(f'VXD_TRY(vxd_reply_text({source}, "{f.name}", {size}, err));')
            else:
                kind = self.face.get("types", {}).get(f.path)
                lines.append(f"{out}{member} = {f'({kind})' if kind else ''}{source};")
        return lines

    def read_enum(self, f: Field, source: str) -> str:
        if f.path in self.face.get("as_int", []):
            return f"(int){source}"
        if f.enum_of.name in self.face["enums"]:
            return f"(enum {self.enum(f)}){source}"
        return f"{source} == {f.enum_of.c_value(f.enum_of.values[-1].name)}"

    def is_embedded(self, f: Field) -> bool:
        """A record that is there without a has_ member: zeros where the reply has none."""
        return f.path in self.face.get("embedded", [])

    def read_record(self, message: Message) -> str:
        name = snake(message.name)
        if name in self.read:
            return name
        self.read.add(name)
        body = self.read_statements(message, "in->", "out->")
        tries = any("VXD_TRY" in line for line in body)
        fails = tries or any("err" in re.split(r"\W", line) for line in body)
        uses_reply = any("(reply," in line for line in body)
        unused = ([] if uses_reply else ["(void)reply;"]) + ([] if fails else ["(void)err;"])
        record = self.record(message)
        self.add(
            f"static enum vxd_status read_{name}(struct vxd_reply *reply, "
            f"const {message.c} *in, struct {record} *out, struct vxd_err *err)\n{{\n"
            + ("enum vxd_status status = VXD_OK;\n\n" if tries else "")
            + "\n".join([*unused, *body])
            + ("\nout:\nreturn status;\n}\n" if tries else "\nreturn VXD_OK;\n}\n")
        )
        return name

    def read_list(self, message: Message) -> str:
        """The same for a list of them."""
        name = self.read_record(message)
        if name in self.lists:
            return name
        self.lists.add(name)
        self.add(f"""static enum vxd_status read_{name}_list(struct vxd_reply *reply,
 {message.c} *const *in, size_t n, const struct {self.record(message)} **out, struct vxd_err *err)
{{
    struct {self.record(message)} *list = vxd_reply_alloc(reply, n, sizeof *list);
    enum vxd_status status = VXD_OK;

    if (list == NULL) {{
        return vxd_reply_no_memory(err);
    }}
    for (size_t i = 0; i < n; i++) {{
        VXD_TRY(read_{name}(reply, in[i], &list[i], err));
    }}
    *out = list;
out:
    return status;
}}
""")
        return name

    # Results ----------------------------------------------------------------------------------

    def at_request(self, method: Method) -> str:
        """How a member of the request is reached where its reply is opened."""
        return "request->" if "request" in self.method_face(method) else ""

    def condition(self, method: Method, text: str) -> str:
        """A `with` word of the schema as C."""
        name, _, value = text.partition("=")
        f = method.request.field(name)
        member = f"{self.at_request(method)}{self.member(f)}"
        if value:
            if f.enum_of.name in self.face["enums"]:
                return f"(int){member} == (int){f.enum_of.c_value(value)}"
            return member if value == f.enum_of.values[-1].name else f"!{member}"
        return member if f.type == Types.TYPE_BOOL else f"{member} > 0"

    def requested(self, method: Method, f: Field) -> str:
        """When the field must be there; "" = always."""
        terms = [self.condition(method, w) for w in f.only_with]
        for w in f.never_with:
            term = self.condition(method, w)
            terms.append(f"!({term})" if " " in term else f"!{term}")
        if f.is_tensor and method.mutates:
            terms.append("!header->arrays_dropped")
        return " && ".join(terms)

    def n_rows(self, method: Method) -> str:
        """The number of rows of a request; "" where it has no arrays."""
        counts = []
        if "request" not in self.method_face(method):
            face = self.method_face(method)
            arrays = [f for f, _ in self.parameter_fields(method, face) if f.is_tensor]
            either = face.get("either", "")
            ours = [f"{either or self.member(f)}->n" for f in arrays if f.shape[:1] == ["n"]]
            return ours[-1] if ours else ""
        for f in method.request.fields:
            if f.is_tensor and f.shape[:1] == ["n"]:
                member = self.member(f)
                is_plain = f.option.dtype == "INT32" and len(f.shape) == 1
                counts.append((member, is_plain))
        plain = [m for m, is_plain in counts if is_plain]
        arrays = [m for m, is_plain in counts if not is_plain]
        if not counts:
            return ""
        if plain and arrays:
            return f"request->{plain[0]} != NULL ? request->n_{plain[0]} : request->{arrays[0]}.n"
        return f"request->{arrays[0]}.n" if arrays else f"request->n_{plain[0]}"

    def read_tensor(self, method: Method, f: Field) -> list[str]:
        member, requested = self.member(f), self.requested(method, f)
        if "typed" in self.face["results"][self.method_face(method)["result"]]:
            return self.read_typed(f, member, requested)
        words = "INT32" if f.option.dtype == "INT32" else f.option.dtype
        columns, lines = "1", []
        rows = f"in->{f.shape[0]}" if method.response.has(f.shape[0]) else "r->n"
        for dimension in f.shape[1:]:
            columns = dimension if dimension.isdigit() else columns
            if method.request.has(dimension):
                columns = f"request->{self.member(method.request.field(dimension))}"
                lines.append(f"r->n_{member} = {columns};")
            elif dimension.isdigit():
                columns = dimension
        if words == "INT32":
            lowest = f"{f.range.low:g}" if f.range is not None else "INT32_MIN"
            call = f'in->{f.name}, "{f.name}", {requested or "true"}, {rows}, {columns}, {lowest}'
            return [*lines, f"VXD_TRY(vxd_reply_numbers({call}, &r->{member}, err));"]
        if words == "UINT8":
            call = f'in->{f.name}, "{f.name}", {requested or "true"}, r->n'
            kind = "mask" if f.range is None or f.range.high <= 1 else "uint8s"
            return [*lines, f"VXD_TRY(vxd_reply_{kind}({call}, &r->{member}, err));"]
        if len(f.shape) > 2:
            call = f'VXD_TRY(vxd_reply_block(in->{f.name}, "{f.name}", &r->{member}, err));'
            return [*lines, *self.only_if(requested, [call])]
        call = f'VXD_TRY(vxd_reply_rows(in->{f.name}, "{f.name}", {rows}, &r->{member}, err));'
        return [*lines, *self.only_if(requested, [call])]

    def read_typed(self, f: Field, member: str, requested: str) -> list[str]:
        """A member that points to elements of the schema's type."""
        if f.option.absent_where:
            requested = " && ".join(w for w in (requested, f"in->{f.name} != NULL") if w)
        dtype = f"VOXELD__V1__DTYPE__{f.option.dtype}"
        columns = f.shape[1] if len(f.shape) > 1 else "1"
        call = f'in->{f.name}, "{f.name}", {dtype}, r->n, {columns}, &data, err'
        made = [f"VXD_TRY(vxd_reply_elements({call}));", f"r->{member} = data;"]
        return self.only_if(requested, made)

    def read_rows(self, method: Method, f: Field) -> list[str]:
        of = method.request.field(f.option.for_each)
        names = f"request->{self.member(of)}, request->n_{self.member(of)}"
        all_by_default = "false"
        if of.option.default == "*":
            terms = [f"!{self.condition(method, w)}" for w in of.never_with]
            all_by_default = " && ".join(terms) or "true"
        member = self.member(f)
        call = (
            f"VXD_TRY(vxd_reply_named_rows(reply, in->{f.name}, in->n_{f.name}, "
            f"vxd_exchange_n_named({names}, {all_by_default}), r->n, "
            f"&r->{member}, &r->n_{member}, err));"
        )
        return self.only_if(self.requested(method, f), [call])

    def open_statements(self, method: Method, result: dict[str, Any]) -> list[str]:
        """Fills the result r from the reply in."""
        lines: list[str] = []
        n_rows = self.n_rows(method)
        if n_rows:
            lines.append(f"r->n = {n_rows};")
        for f in self.fields(method.response):
            member = self.member(f)
            if member == ".":
                lines += [
                    f"if (in->{f.name} == NULL) {{",
                    f'status = vxd_reply_bad(err, "{f.name}", "is missing");',
                    "goto out;",
                    "}",
                    *self.read_statements(f.message_of, f"in->{f.name}->", "r->"),
                ]
            elif f.is_message and self.face["records"].get(f.message_of.name) and "list" in result:
                lines += self.open_list(f, result["list"])
            elif f.is_rows:
                lines += self.read_rows(method, f)
            elif f.is_tensor:
                if not n_rows and f.shape[:1] == ["n"]:
                    n_rows = "r->n"
                    call = f'VXD_TRY(vxd_reply_n_rows(in->{f.name}, "{f.name}", &r->n, err));'
                    lines += self.only_if(self.requested(method, f), [call])
                lines += self.read_tensor(method, f)
            elif f.type == Types.TYPE_BYTES:
                call = f'&in->{f.name}, "{f.name}", &r->{member}, &r->n_{member}_bytes, err'
                tried = f"VXD_TRY(vxd_reply_bytes({call}));"
                lines += self.only_if(self.requested(method, f), [tried])
            elif f.is_repeated and f.type == Types.TYPE_STRING:
                lines.append(f"r->{member} = (const char *const *)in->{f.name};")
                lines.append(f"r->n_{member} = in->n_{f.name};")
            elif f.is_message and f.message_of.name == "Vec3":
                lines.append(f"vxd_reply_vec3(in->{f.name}, r->{member});")
            elif f.is_message and f.message_of.name == "Pose":
                lines.append(f"vxd_reply_pose(in->{f.name.lower()}, &r->{member});")
            elif f.is_message and f.is_repeated:
                name, n = self.read_list(f.message_of), f"in->n_{f.name}"
                call = f"reply, in->{f.name}, {n}, &r->{member}, err"
                lines += [f"VXD_TRY(read_{name}_list({call}));", f"r->n_{member} = {n};"]
            elif f.is_enum and f.enum_of.name in self.face["enums"]:
                lines.append(f"r->{member} = (enum {self.enum(f)})in->{f.name};")
            elif f.is_message:
                name = self.read_record(f.message_of)
                has = [] if self.is_embedded(f) else [f"r->has_{member} = true;"]
                lines += [
                    f"if (in->{f.name} != NULL) {{",
                    f"VXD_TRY(read_{name}(reply, in->{f.name}, &r->{member}, err));",
                    *has,
                    "}",
                ]
            else:
                lines.append(f"r->{member} = in->{f.name};")
        then = self.method_face(method).get("then")  # what is checked by hand
        if then:
            lines.append(f"VXD_TRY({then}(request, r, err));")
        check = self.method_face(method).get("check")
        return [*lines, f"VXD_TRY({check});"] if check else lines

    def open_list(self, f: Field, member: str) -> list[str]:
        """The records of a result that is a list; one record is a list of one."""
        name = self.read_list(f.message_of)
        items, n = f"&in->{f.name}", "1"
        if f.is_repeated:
            items, n = f"in->{f.name}", f"in->n_{f.name}"
        call = f"VXD_TRY(read_{name}_list(reply, {items}, {n}, &r->{member}, err));"
        there = [
            f"if (in->{f.name} == NULL) {{",
            f'status = vxd_reply_bad(err, "{f.name}", "is missing");',
            "goto out;",
            "}",
        ]
        return [*([] if f.is_repeated else there), call, f"r->n_{member} = {n};"]

    def emit_open(self, method: Method) -> None:
        face = self.method_face(method)
        if "result" not in face:
            return
        struct = face["result"]
        result = self.face["results"][struct]
        body = self.open_statements(method, result)
        text = "\n".join(body)
        fails = "VXD_TRY" in text or "goto out" in text
        request = ""
        if "request->" in text or "(request" in text:
            request = f"const struct {face['request']} *request, "
        used = self.used_parameters(method, text)
        request += "".join(f"{declaration}, " for declaration, _ in used)
        header = [f"r->{name} = header->{name};" for name in result["header"]]
        uses_header = bool(header) or "header->" in text
        always = [f"r->{name} = true;" for name in face.get("always", [])]
        self.add(
            f"static enum vxd_status open_{method.name}(struct vxd_exchange *call, {request}"
            f"struct {struct} **out)\n{{\n"
            f"struct {struct} *r = vxd_result_new(&call->reply, sizeof *r, &call->err);\n"
            + ("const Voxeld__V1__ResponseHeader *header;\n" if uses_header else "")
            + f"const {method.response.c} *in;\n"
            + ("struct vxd_err *err = &call->err;\n" if "err)" in text else "")
            + ("const void *data = NULL;\n" if "&data" in text else "")
            + "struct vxd_reply *reply;\n"
            + ("enum vxd_status status = VXD_OK;\n\n" if fails else "\n")
            + "if (r == NULL) { return VXD_RESOURCE_EXHAUSTED; }\n"
            "reply = vxd_result_reply(r);\n"
            + ("header = reply->response->header;\n" if uses_header else "")
            + f"in = reply->response->{method.name};\n"
            + "\n".join([*header, *always, *body])
            + "\n*out = r;\nreturn VXD_OK;\n"
            + (f"out:\n{result['free']}(r);\nreturn status;\n}}\n" if fails else "}\n")
        )

    def open_statements_of(self, method: Method) -> list[str]:
        return self.open_statements(
            method, self.face["results"][self.method_face(method)["result"]]
        )

    def emit_read(self, method: Method) -> None:
        """Reads the reply into a record that owns nothing."""
        face = self.method_face(method)
        if "record" not in face:
            return
        lines = []
        for f in method.response.fields:
            if self.member(f) == "." and "without" in face:
                kept = [i for i in f.message_of.fields if i.name not in face["without"]]
                lines += [
                    f"if (in->{f.name} == NULL) {{",
                    f'return vxd_reply_bad(err, "{f.name}", "is missing");',
                    "}",
                    *(f"r->{self.member(i)} = in->{f.name}->{i.name};" for i in kept),
                ]
        if not lines:
            self.copies = True
            lines = self.read_statements(method.response, "in->", "r->")
            self.copies = False
        text = "\n".join(lines)
        header = face.get("header", ["replayed"] if method.mutates else [])
        uses_reply, uses_err = "(reply," in text, "err)" in text
        self.add(
            f"static enum vxd_status take_{method.name}(struct vxd_reply *reply, "
            f"struct {face['record']} *r, struct vxd_err *err)\n{{\n"
            + ("const Voxeld__V1__ResponseHeader *header = reply->response->header;\n"
               if header else "")
            + f"const {method.response.c} *in = reply->response->{method.name};\n"
            + ("enum vxd_status status = VXD_OK;\n\n" if "VXD_TRY" in text else "\n")
            + ("" if uses_err or uses_reply else "(void)err;\n")
            + "\n".join([*(f"r->{name} = header->{name};" for name in header), text])
            + ("\nout:\nreturn status;\n}\n" if "VXD_TRY" in text else "\nreturn VXD_OK;\n}\n")
        )
