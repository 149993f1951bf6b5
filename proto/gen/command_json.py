# SPDX-License-Identifier: Apache-2.0
"""Records and replies as the JSON that voxelctl's --json prints."""

from __future__ import annotations

from clients.c_names import formatted
from command_line import FOLDER, HEAD, CommandLine, ident
from model import Field, Message, Types


class CommandJson:
    """Writes one noun's file."""

    def __init__(self, line: CommandLine) -> None:
        self.line = line
        self.schema, self.noun, self.face, self.c = line.schema, line.noun, line.face, line.c
        # How members are printed, where not as they are: README.md.
        self.json_forms = line.face.get("json", {})

    def json_lines(self, message: Message, at: str, is_first: bool) -> list[str]:
        """Prints the members of a record as those of an object."""
        lines = []
        for f in message.fields:
            member = self.c["members"].get(f.path, f.name)
            form = self.json_forms.get(f.path)
            if form == "" or f.path in self.c.get("without", []):
                continue
            if member == ".":
                lines += self.json_lines(f.message_of, at, is_first and not lines)
                continue
            if member.endswith("."):
                lines += self.json_presence(f, member.removesuffix("."), at)
                continue
            if form == ".":
                lines += self.json_lines(f.message_of, f"{at}{member}.", is_first and not lines)
                continue
            merged = next(
                (o for o in message.fields if o.is_enum and o.only_with == [f.name]), None
            )
            if f.is_enum and f.only_with:
                continue
            first = "true" if is_first and not lines else "false"
            comma = "" if first == "true" else ", "
            printed = self.json_value(f, merged, member, f"{at}{member}", first, comma)
            if form is not None:
                printed = self.json_form(form, member, f"{at}{member}", first, printed)
            condition = self.face.get("json_if", {}).get(f.path, "").format(at)
            if condition:
                printed = self.json_if(f, condition, member, f"{at}{member}", printed)
            if (
                f.only_with
                and message.has(f.only_with[0])
                and message.field(f.only_with[0]).type == Types.TYPE_BOOL
            ):
                printed = [f"if ({at}{f.only_with[0]}) {{", *printed, "}"]
            lines += printed
        return lines

    def json_presence(self, f: Field, member: str, at: str) -> list[str]:
        """A message whose members stand in its place, where it is there; else null. One of them
        may be printed under the message's own name."""
        lines = []
        for inner in f.message_of.fields:
            source = f"{at}{self.c['members'].get(inner.path, inner.name)}"
            name = member if self.json_forms.get(inner.path) == "^" else inner.name
            if inner.is_enum:
                lines += self.json_choice(inner, name, source, "false")
            else:
                lines += self.json_value(inner, None, name, source, "false", ", ")
        null = f'(void)fputs(", \\"{member}\\": null", stdout);'
        return [f"if ({at}{member}) {{", *lines, "} else {", null, "}"]

    def json_if(
        self, f: Field, condition: str, member: str, source: str, printed: list[str]
    ) -> list[str]:
        """What is printed where the condition holds; a message is null elsewhere."""
        if not f.is_message or f.is_repeated or f.message_of.name in ("Vec3", "Pose"):
            return [f"if ({condition}) {{", *printed, "}"]
        inner = self.json_lines(f.message_of, f"{source}.", True)
        return [
            f"if ({condition}) {{",
            f'(void)fputs(", \\"{member}\\": {{", stdout);',
            *inner,
            "(void)fputc('}', stdout);",
            "} else {",
            f'(void)fputs(", \\"{member}\\": null", stdout);',
            "}",
        ]

    @staticmethod
    def json_form(
        form: str, member: str, source: str, first: str, printed: list[str]
    ) -> list[str]:
        """As the face says: "date" adds a time as text, other words are the one member of each
        item of a list that is printed."""
        if form == "hex":
            comma = "" if first == "true" else ", "
            text = f'"{comma}\\"{member}\\": \\"%06" PRIx32 "\\""'
            return [f"(void)printf({text}, {source});"]
        if form == "date":
            name = member.removesuffix("_ns")
            return [*printed, f'ctl_json_member_date(stdout, false, "{name}", {source});']
        comma = "" if first == "true" else ", "
        count = f"{source.removesuffix(member)}n_{member}"
        return [
            f'(void)fputs("{comma}\\"{member}\\": [", stdout);',
            f"for (size_t i = 0; i < {count}; i++) {{",
            '(void)fputs(i > 0 ? ", " : "", stdout);',
            f"ctl_json_string(stdout, {source}[i].{form});",
            "}",
            "(void)fputc(']', stdout);",
        ]

    def json_value(
        self, f: Field, merged: Field | None, member: str, source: str, first: str, comma: str
    ) -> list[str]:
        if merged is not None:
            enum = source.removesuffix(member) + merged.name
            names = ", ".join(f'"{n}"' for n in self.line.choices(merged.enum_of))
            return [
                f"if ({source}) {{",
                f"static const char *const names[] = {{{names}}};",
                "",
                f'ctl_json_member_choice(stdout, {first}, "{member}", names, '
                f"sizeof names / sizeof names[0], (size_t){enum});",
                "} else {",
                f'(void)fputs("{comma}\\"{member}\\": null", stdout);',
                "}",
            ]
        if f.is_message and f.message_of.name == "Vec3":
            return [f'ctl_json_member_vec3(stdout, {first}, "{member}", {source});']
        if f.is_message and f.message_of.name == "Pose":
            return [f'ctl_json_member_pose(stdout, {first}, "{member}", &{source});']
        if f.is_message and f.is_repeated:
            inner = self.json_lines(f.message_of, f"{source}[i].", True)
            count = f"{source.removesuffix(member)}n_{member}"
            return [
                f'(void)fputs("{comma}\\"{member}\\": [", stdout);',
                f"for (size_t i = 0; i < {count}; i++) {{",
                '(void)fputs(i > 0 ? ", {" : "{", stdout);',
                *inner,
                "(void)fputc('}', stdout);",
                "}",
                "(void)fputc(']', stdout);",
            ]
        if f.is_message:
            has = f"{source.removesuffix(member)}has_{member}"
            return [
                f"if ({has}) {{",
                f'(void)fputs("{comma}\\"{member}\\": {{", stdout);',
                *self.json_lines(f.message_of, f"{source}.", True),
                "(void)fputc('}', stdout);",
                "}",
            ]
        if f.is_enum and f.enum_of.name == "Code":
            name = f"voxeld_status_name({source})"
            return [f'ctl_json_member_string(stdout, {first}, "{member}", {name});']
        if f.is_enum and f.enum_of.name in self.face.get("enum_words", []):
            return self.json_choice(f, member, source, first)
        if f.is_repeated and f.type == Types.TYPE_STRING:
            count = f"{source.removesuffix(member)}n_{member}"
            return [f'ctl_json_member_strings(stdout, {first}, "{member}", {source}, {count});']
        if f.type == Types.TYPE_FIXED64:  # not every reader of JSON keeps numbers of 64 bits
            return [f'ctl_json_member_digest(stdout, {first}, "{member}", {source});']
        if f.is_enum and f.enum_of.name == "DType":
            return [
                f'ctl_json_member_string(stdout, {first}, "{member}", ctl_dtype_name({source}));'
            ]
        if f.type == Types.TYPE_STRING:
            return [f'ctl_json_member_string(stdout, {first}, "{member}", {source});']
        if f.type == Types.TYPE_BOOL:
            return [f'(void)printf("{comma}\\"{member}\\": %s", {source} ? "true" : "false");']
        if f.type in (Types.TYPE_DOUBLE, Types.TYPE_FLOAT):
            return [f'ctl_json_member_number(stdout, {first}, "{member}", {source});']
        if f.type == Types.TYPE_INT64:
            return [f'(void)printf("{comma}\\"{member}\\": %" PRId64, {source});']
        return [f'ctl_json_member_count(stdout, {first}, "{member}", {source});']

    def record_heads(self) -> list[tuple[str, Message]]:
        found = []
        for name, function in self.face["records"].items():
            struct = self.c["records"][name]
            head = f"void {function}(const struct {struct} *{self.noun})"
            found.append((head, self.schema.messages[name]))
        return found

    def result_value(self, method: str, member: str, first: str) -> list[str]:
        """Prints a member of a result, an enum by its word; one that the reply does not have, as
        the number of rows, is a count."""
        response = self.schema.method(method).response
        if not response.has(member):
            kind = "number" if member.endswith("_ms") else "count"
            return [f'ctl_json_member_{kind}(stdout, {first}, "{member}", r->{member});']
        f = response.field(member)
        if f.is_enum and f.enum_of.name not in ("DType", "Code"):
            return self.json_choice(f, member, f"r->{member}", first)
        comma = ", " if first == "false" else ""
        return self.json_value(f, None, member, f"r->{member}", first, comma)

    def json_choice(self, f: Field, member: str, source: str, first: str) -> list[str]:
        names = ", ".join(f'"{n}"' for n in self.line.choices(f.enum_of))
        return [
            "{",
            f"static const char *const names[] = {{{names}}};",
            "",
            f'ctl_json_member_choice(stdout, {first}, "{member}", names, '
            f"sizeof names / sizeof names[0], (size_t){source});",
            "}",
        ]

    def result_heads(self) -> list[tuple[str, str, list[str]]]:
        found = []
        for command in self.face["commands"]:
            if "json" in command and command["json"] != "record":
                face = self.c["methods"][command["method"]]
                struct = face.get("result") or face["record"]
                name = ident(command["name"])
                head = f"void ctl_{self.noun}_{name}_json(const struct {struct} *r)"
                found.append((head, command["method"], command["json"]))
        for name, method in self.face.get("replies", {}).items():
            struct = self.c["methods"][method]["result"]
            head = f"void ctl_{self.noun}_{name}_json(const struct {struct} *r)"
            found.append((head, method, ["*"]))
        return found

    def emit_json(self) -> str:
        out = []
        for head, message in self.record_heads():
            lines = self.json_lines(message, f"{self.noun}->", True)
            out.append(
                f"{head}\n{{\n(void)fputc('{{', stdout);\n"
                + "\n".join(lines)
                + "\n(void)fputc('}', stdout);\n}\n"
            )
        for head, method, members in self.result_heads():
            lines = []
            if members == ["*"]:
                lines = self.json_lines(self.schema.method(method).response, "r->", True)
                members = []
            for i, m in enumerate(members):
                lines += self.result_value(method, m, "true" if i == 0 else "false")
            out.append(
                f"{head}\n{{\n(void)fputc('{{', stdout);\n"
                + "\n".join(lines)
                + '\n(void)fputs("}\\n", stdout);\n}\n'
            )
        return "\n".join(out)

    def text(self) -> str:
        what = f"Records of {self.noun}s as JSON."
        head = HEAD.format(sources=self.line.sources, what=what)
        head += (
            f'#include <inttypes.h>\n\n#include "client/voxelctl/generated/{self.noun}_args.h"\n\n'
        )
        return formatted(head + self.emit_json())


def outputs(line: CommandLine) -> dict[str, str]:
    json = CommandJson(line)
    if not (json.record_heads() or json.result_heads()):
        return {}
    return {f"{FOLDER}/{line.noun}_json.c": json.text()}
