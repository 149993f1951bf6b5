# SPDX-License-Identifier: Apache-2.0
"""The options of voxelctl's subcommands of a noun: their table, their values, and the requests that
they make. The header also declares what the noun's other files define, and what is by hand."""

from __future__ import annotations

from clients.c_names import formatted
from command_json import CommandJson
from command_line import FOLDER, HEAD, CommandLine, ident
from model import Message, Types


class CommandArguments:
    """Writes one noun's header and source."""

    def __init__(self, line: CommandLine) -> None:
        self.line = line
        self.schema, self.noun, self.face, self.c = line.schema, line.noun, line.face, line.c
        self.json = CommandJson(line)

    def emit_choices(self) -> list[str]:
        done: set[str] = set()
        out = []
        for message in {self.schema.method(c["method"]).request.name: None
                        for c in self.face["commands"] if "method" in c}:  # fmt: skip
            for f in self.line.flagged(self.schema.messages[message]):
                if not f.is_enum or f.enum_of.name == "DType" or f.flag in done:
                    continue
                if "parse" in self.line.by_hand(f):
                    continue
                done.add(f.flag)
                kind = self.c["enums"][f.enum_of.name][0]
                name = f.flag.replace("-", "_")
                out.append(self.emit_choice(name, f"enum {kind}", self.line.choices(f.enum_of)))
        for name, own in self.face.get("own", {}).items():
            if own["type"] == "choice":
                out.append(self.emit_choice(ident(name), "int", own["choices"]))
        return out

    @staticmethod
    def emit_choice(name: str, kind: str, words: list[str]) -> str:
        names = ", ".join(f'"{n}"' for n in words)
        least = 0 if words[0] else 1
        return f"""static bool parse_{name}(const char *text, {kind} *out)
{{
    static const char *const names[] = {{{names}, NULL}};
    int choice = ctl_parse_choice(text, names);

    *out = ({kind})choice;
    return choice >= {least};
}}
"""

    def emit_known(self) -> str:
        rows, relations = [], []
        for o in self.line.options.values():
            row = f'.name = "{o.word}", .right = "{o.right}"'
            if o.is_flag:
                row += ", .is_flag = true"
            rows.append(f"{{{row}}},")
            relation = f"{{.option = {self.line.bit(o.name)}"
            if o.needs:
                relation += f", .needs = {self.line.bit(o.needs)}"
            if o.excludes:
                relation += f", .excludes = {self.line.bit(o.excludes)}"
            if o.needs or o.excludes:
                relations.append(f"{relation}}},")
        return (
            "static const struct ctl_own_option known[] = {\n" + "\n".join(rows) + "\n};\n\n"
            '_Static_assert(sizeof known / sizeof known[0] <= CTL_MAX_OWN, "a bit each");\n\n'
            "static const struct ctl_relation relations[] = {\n" + "\n".join(relations) + "\n};\n"
        )

    def emit_take(self) -> str:
        cases = []
        ordered = [o for o in self.line.options.values() if o.is_ordered]
        if ordered:
            labels = "".join(f"case {self.line.enumerator(o.name)}:\n" for o in ordered)
            cases.append(f"{labels}return {ordered[0].parse};")
        for o in self.line.options.values():
            if o.is_ordered:
                continue
            if o.parse:
                cases.append(f"case {self.line.enumerator(o.name)}:\nreturn {o.parse};")
            elif o.declaration:
                cases.append(
                    f"case {self.line.enumerator(o.name)}:\nargs->{o.member} = value;\nreturn true;"
                )
        noun = self.noun
        return (
            "static bool take(void *user, int id, const char *value)\n{\n"
            f"struct ctl_{noun}_args *args = user;\n\n"
            + ("" if "value" in "".join(cases) else "(void)value;\n")
            + f"args->given |= CTL_{noun.upper()}_BIT(id);\n"
            f"switch ((enum ctl_{noun}_option)id) {{\n"
            + "\n".join(cases)
            + "\ndefault: /* a flag */\nreturn true;\n}\n}\n"
        )

    def emit_parse(self) -> str:
        noun = self.noun
        return f"""bool ctl_{noun}_parse(struct ctl_globals *globals,
 const struct ctl_manual *manual, int argc, char **argv, struct ctl_{noun}_args *args, int *result)
{{
    const struct ctl_own_options own = {{
        .known = known,
        .n_known = sizeof known / sizeof known[0],
        .relations = relations,
        .n_relations = sizeof relations / sizeof relations[0],
        .taken = manual->options,
        .required = manual->required,
        .n_min = manual->n_min,
        .n_max = manual->n_max,
        .takes_request = manual->method != NULL,
        .take = take,
        .args = args,
    }};

    if (ctl_take_own_options(globals, &manual->command, &own, argc, argv, result)) {{
        return false;
    }}
    args->words = (const char *const *)argv + optind;
    args->n_words = (size_t)(argc - optind);
    return true;
}}
"""

    def emit_refuse(self) -> str:
        return f"""{self.refuse_head()}
{{
    const struct ctl_own_option *option = &known[id - CTL_OPT_FIRST_OWN];

    return ctl_usage(manual->command.name, "--%s%s%s: %s", option->name,
     value != NULL ? " " : "", value != NULL ? value : "", option->right);
}}
"""

    def refuse_head(self) -> str:
        return (
            f"int ctl_{self.noun}_refuse(const struct ctl_manual *manual, int id, "
            "const char *value)"
        )

    def request_lines(self, message: Message, out: str) -> list[str]:
        lines = []
        for f in message.fields:
            if f.path in self.c.get("without", []):
                continue
            member = self.c["members"].get(f.path, f.name)
            if "fill" in self.line.by_hand(f):
                has = f"ctl_{self.noun}_has(args, {self.line.enumerator(f.flag)})" if f.flag else ""
                lines += [line.format(out=out, has=has) for line in self.line.by_hand(f)["fill"]]
                continue
            target, source = f"{out}{member}", f"args->{f.flag.replace('-', '_')}"
            given = f"ctl_{self.noun}_has(args, {self.line.enumerator(f.flag)})" if f.flag else ""
            if f.path in self.face.get("words", {}):
                lines.append(f"{target} = args->words[{self.face['words'][f.path]}];")
            elif f.name == "name" and message.name.endswith("Request"):
                lines.append(f"{out}{self.c['members']['*.name']} = args->words[0];")
            elif not f.flag and f.is_message and not f.is_repeated and not f.is_tensor:
                is_flat = member.endswith(".")
                inner = self.request_lines(f.message_of, out if is_flat else f"{target}.")
                flags = [i.flag for i in f.message_of.fields if i.flag]
                if inner and member != ".":
                    has = f"ctl_{self.noun}_has(args, {self.line.enumerator(flags[0])})"
                    there = member.removesuffix(".") if is_flat else f"has_{member}"
                    if f.path not in self.c.get("sent_if", {}):
                        inner.insert(0, f"{out}{there} = {has};")
                lines += inner
            elif not f.flag:
                flag = self.line.flag_of(f)
                if f.type == Types.TYPE_BOOL and flag:
                    has = f"ctl_{self.noun}_has(args, {self.line.enumerator(flag)})"
                    lines.append(f"{target} = {has};")
            elif f.is_rows:
                continue  # they come from files
            elif f.is_repeated and f.is_message:
                lines += [f"{target} = {source}.specs;", f"{out}n_{member} = {source}.n;"]
            elif f.is_repeated:
                lines += [f"{target} = {source}.names;", f"{out}n_{member} = {source}.n;"]
            elif f.is_message:
                if f.path in self.c.get("optional", []):
                    lines.append(f"{out}has_{f.name} = {given};")
                lines.append(f"memcpy({target}, {source}, sizeof {target});")
            elif f.type == Types.TYPE_BOOL:
                lines.append(f"{target} = {given};")
            else:
                lines.append(f"{target} = {source};")
        return lines

    def requests(self) -> list[tuple[str, str, list[str]]]:
        """Name of the command, its request's struct, and what fills that."""
        found = []
        for command in self.face["commands"]:
            face = self.c["methods"].get(command.get("method", ""), {})
            if "request" in face:
                message = self.schema.method(command["method"]).request
                lines = self.request_lines(message, "out->")
                found.append((command["name"], face["request"], lines))
        return found

    def request_head(self, name: str, struct: str) -> str:
        return (
            f"void ctl_{self.noun}_{ident(name)}_request(const struct ctl_{self.noun}_args *args, "
            f"struct {struct} *out)"
        )

    def header(self) -> str:
        noun, upper = self.noun, self.noun.upper()
        options = list(self.line.options.values())
        enumerators = [self.line.enumerator(o.name) for o in options]
        enumerators = enumerators or [f"CTL_{upper}_NONE"]
        members = [f"{o.declaration};" for o in options if o.declaration]
        if self.line.has_ordered:
            members.append("struct ctl_steps steps; /* options whose order counts */")
        bits = "ctl_bits" if len(options) > 64 else "uint64_t"
        one = "(ctl_bits)1" if len(options) > 64 else "UINT64_C(1)"
        manuals = [
            f"extern const struct ctl_manual ctl_{noun}_{ident(c['name'])}_manual;"
            for c in self.face["commands"]
            if "main" not in c
        ]
        manuals += [
            f"extern const char ctl_{noun}_{ident(c['name'])}_help[];"
            for c in self.face["commands"]
            if c.get("top")
        ]
        if self.line.has_noun:
            manuals += [f"extern const char ctl_{noun}_{w}[];" for w in ("help", "summary")]
        requests = [f"{self.request_head(name, struct)};" for name, struct, _ in self.requests()]
        json = [f"{head};" for head, _ in self.json.record_heads()]
        json += [f"{head};" for head, _, _ in self.json.result_heads()]
        # voxeld.h includes no header that needs another noun's before it.
        headers = [self.c["header"]] if self.c.get("includes") else []
        headers += [f"client/c/include/voxeld_{name}.h" for name in self.c.get("parts", {})]
        headers += self.face.get("headers", [])
        parts = "".join(f'#include "{name}"\n' for name in headers)
        refuse = ""
        if self.line.has_ordered:
            refuse = "/* Reports that an option's value is invalid, or may not stand there. "
            refuse += f"Returns CTL_USAGE. */\n{self.refuse_head()};\n\n"
        guard = f"VXD_CLIENT_VOXELCTL_GENERATED_{upper}_ARGS_H"
        what = f"Options and manuals of voxelctl {noun}, requests from them, and JSON."
        return formatted(
            HEAD.format(sources=self.line.sources, what=what)
            + f"""#ifndef {guard}
#define {guard}

{parts}#include "client/voxelctl/cli/cli.h"

/* Each subcommand takes some of these options. */
enum ctl_{noun}_option {{
    {enumerators[0]} = CTL_OPT_FIRST_OWN,
    {", ".join(enumerators[1:])}
}};

#define CTL_{upper}_BIT(option) ({one} << ((option) - CTL_OPT_FIRST_OWN))

/* A parsed command line. Members that were not given are zero or NULL. */
struct ctl_{noun}_args {{
    const char *const *words; /* after the options */
    size_t n_words;
    {bits} given; /* CTL_{upper}_BIT of the options that were */
    {chr(10).join(members)}
}};

{chr(10).join(manuals)}

/* False when the program is to end with *result, after a message. args is zeroed. */
bool ctl_{noun}_parse(struct ctl_globals *globals, const struct ctl_manual *manual, int argc,
 char **argv, struct ctl_{noun}_args *args, int *result);

static inline bool ctl_{noun}_has(const struct ctl_{noun}_args *args, enum ctl_{noun}_option option)
{{
    return (args->given & CTL_{upper}_BIT(option)) != 0;
}}

{refuse}/* Fill what options give; *out is zeroed, and borrows from args. */
{chr(10).join(requests)}

/* Print a record as JSON to standard output. */
{chr(10).join(json)}
{self.runs()}
#endif
"""
        )

    def runs(self) -> str:
        """What is by hand and called by commands/generated."""
        if not self.face.get("runs"):
            return ""
        run = f"ctl_{self.noun}_run_fn"
        arguments = f"const struct ctl_globals *globals, const struct ctl_{self.noun}_args *args"
        by_hand, checks, fills, prints = [], [], [], []
        for command in self.face["commands"]:
            if "main" in command:
                continue
            if command.get("local"):
                by_hand.append(f"int {self.line.run_name(command)}({arguments});")
            elif not self.line.is_whole(command):
                by_hand.append(f"{run} {self.line.run_name(command)};")
            if "prints" in command:
                prints.append(f"void {command['prints']}({self.line.printed(command)});")
            if "fill" in command:
                struct = self.c["methods"][command["method"]]["request"]
                given = f"const struct ctl_{self.noun}_args *args, struct {struct} *request"
                fills.append(f"int {command['fill']}({given});")
            if "check" in command:
                checks.append(f"int {command['check']}(const struct ctl_{self.noun}_args *args);")
        folder = self.face.get("folder", self.noun)
        text = f"\n/* By hand, in client/voxelctl/{folder}. Returns the exit status. */\n"
        text += f"typedef int {run}(struct voxeld_client *client, {arguments});\n"
        text += "\n".join(dict.fromkeys(by_hand)) + "\n"
        if "connect" in self.face:
            text += "/* Connects; NULL after a message. */\n"
            text += f"struct voxeld_client *{self.face['connect']}(struct ctl_globals *globals);\n"
        if checks:
            text += "/* Look at the command line before there is a connection: CTL_OK, or an exit"
            text += " status after a message. */\n" + "\n".join(dict.fromkeys(checks)) + "\n"
        if fills:
            text += "/* Fill what the options alone cannot give: CTL_OK, or an exit status after a"
            text += " message. */\n" + "\n".join(fills) + "\n"
        if prints:
            text += "/* Print for people. */\n" + "\n".join(dict.fromkeys(prints)) + "\n"
        return text

    def source(self) -> str:
        parts = [
            *self.emit_choices(),
            self.emit_known(),
            self.emit_take(),
            self.emit_parse(),
            *([self.emit_refuse()] if self.line.has_ordered else []),
            *(
                f"{self.request_head(name, struct)}\n{{\n" + "\n".join(lines) + "\n}\n"
                for name, struct, lines in self.requests()
            ),
        ]
        what = f"Options of voxelctl {self.noun}, and requests from them."
        head = HEAD.format(sources=self.line.sources, what=what)
        body = "\n".join(parts)
        head += "#include <math.h>\n" if "HUGE_VAL" in body else ""
        head += (
            f'#include <string.h>\n\n#include "client/voxelctl/generated/{self.noun}_args.h"\n\n'
        )
        return formatted(head + body)


def outputs(line: CommandLine) -> dict[str, str]:
    arguments = CommandArguments(line)
    return {
        f"{FOLDER}/{line.noun}_args.h": arguments.header(),
        f"{FOLDER}/{line.noun}_args.c": arguments.source(),
    }
