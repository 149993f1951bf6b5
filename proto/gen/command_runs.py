# SPDX-License-Identifier: Apache-2.0
"""What runs voxelctl's subcommands of a noun: the choice of one, the connection, the files of its
request, the call, and the reply as JSON or through a function that prints it for people. Commands
that do more than one call are by hand, in client/voxelctl/NOUN."""

from __future__ import annotations

import re
from typing import Any

from clients.c_names import formatted
from command_json import CommandJson
from command_line import HEAD, CommandLine, ident
from model import Field, Method, Schema, Types

# What a file of the command line becomes: the declaration of what holds it, the call that reads
# it, what goes into the request then, and what frees it. {0} is the name, {1} the path, {2} where
# it goes.
READERS = {
    "bytes": ("uint8_t *{0} = NULL;", "ctl_read_file({1}, &{0}, &request.n_{0}_bytes)",
              "{2} = {0};", "free({0});"),
    "cloud": ("struct voxeld_cloud *{0} = NULL;", "ctl_read_cloud_file({1}, args->format, &{0})",
              "{2} = {0};", "voxeld_cloud_free({0});"),
    "pose": ("", "ctl_read_pose({1}, &{2})", "", ""),
}  # fmt: skip

FOLDER = "client/voxelctl/commands/generated"
HEADER = f"{FOLDER}/commands_generated.h"


class CommandRuns:
    """Writes one noun's file."""

    def __init__(self, schema: Schema, noun: str, face: dict[str, Any]) -> None:
        self.schema = schema
        self.noun = noun
        self.line = CommandLine(schema, noun, face)
        self.json = CommandJson(self.line)
        self.face = face["ctl"]
        self.c = self.line.c

    @property
    def arguments(self) -> str:
        return f"const struct ctl_globals *globals, const struct ctl_{self.noun}_args *args"

    # One call ---------------------------------------------------------------------------------

    def parameter(self, f: Field) -> str:
        """A field that is an argument of libvoxeld's function, from the command line."""
        words = self.face.get("words", {})
        if f.path in words or f.name == "name":
            return f"args->words[{words.get(f.path, 0)}]"
        if not f.flag:
            return "false" if f.type == Types.TYPE_BOOL else "0"
        if f.type == Types.TYPE_BOOL:
            return f"ctl_{self.noun}_has(args, {self.line.enumerator(f.flag)})"
        return f"args->{ident(f.flag)}"

    def call(self, command: dict[str, Any], method: Method, outs: list[str]) -> str:
        face = self.c["methods"][method.name]
        name = face.get("name", f"voxeld_{method.name}")
        given = ["client"]
        if "request" in face:
            given.append("&request")
        else:
            given.append("NULL")
            given += [self.parameter(method.request.field(n)) for n in face["parameters"]]
        return f"{name}({', '.join([*given, *outs, '&error'])}) != VOXELD_OK"

    def subject(self, command: dict[str, Any]) -> str:
        """What an error is of."""
        if command["words"]:
            return "args->words[0]"
        return f'"{self.line.full_name(command)}"'

    def failed(self, command: dict[str, Any], call: str) -> list[str]:
        return [f"if ({call}) {{", f"return ctl_failed({self.subject(command)}, &error);", "}"]

    def emit_run(self, command: dict[str, Any]) -> str:
        method = self.schema.method(command["method"])
        face = self.c["methods"][method.name]
        declared, begin = [], []
        if "request" in face:
            declared.append(f"struct {face['request']} request = {{0}};")
            fill = f"ctl_{self.noun}_{ident(command['name'])}_request"
            begin.append(f"{fill}(args, &request);")
        if "fill" in command:
            declared.append("int result;")
            begin.append(f"result = {command['fill']}(args, &request);")
            begin += ["if (result != CTL_OK) {", "return result;", "}"]
        if "answers" in command:
            body = self.answer_lines(command, method, declared)
        elif command.get("drops"):
            body = self.drop_lines(command, method, declared)
        elif "record" in face:
            declared.append(f"struct {face['record']} r = {{0}};")
            call = self.call(command, method, ["&r"])
            body = [*self.failed(command, call), *self.show(command, method, "&r")]
        else:
            declared.append(f"struct {face['result']} *r;")
            call = self.call(command, method, ["&r"])
            free = self.c["results"][face["result"]]["free"]
            body = [*self.failed(command, call), *self.show(command, method, "r"), f"{free}(r);"]
        declared.append("struct voxeld_error error;")
        lines = [*declared, "", *begin, *body, "return ctl_flush();"]
        unused = [f"(void){n};" for n in ("args", "globals") if not any(n in x for x in lines)]
        lines[len(declared) + 1 : len(declared) + 1] = unused
        return self.function(command, lines)

    def function(self, command: dict[str, Any], lines: list[str]) -> str:
        return (
            f"static int run_{ident(command['name'])}(struct voxeld_client *client, "
            f"{self.arguments})\n{{\n" + "\n".join(lines) + "\n}\n"
        )

    def emit_run_with_files(self, command: dict[str, Any]) -> str:
        """A call whose request has what files hold, which are freed after it."""
        method = self.schema.method(command["method"])
        face = self.c["methods"][method.name]
        declared = [
            f"struct {face['request']} request = {{0}};",
            f"struct {face['result']} *r = NULL;",
            "struct voxeld_error error;",
        ]
        steps, frees = [], [f"{self.c['results'][face['result']]['free']}(r);"]
        if "fill" in command:
            steps.append(("", f"{command['fill']}(args, &request)", ""))
        for file in command["files"]:
            name = file["into"]
            word = f"args->{ident(file['option'])}" if "option" in file else ""
            path = word or f"args->words[{file['word']}]"
            readers = READERS | {k: tuple(v) for k, v in self.face.get("readers", {}).items()}
            parts = [p.format(name, path, file.get("at", f"request.{name}"))
                     for p in readers[file["as"]]]  # fmt: skip
            declared += [parts[0]] if parts[0] else []
            frees += [parts[3]] if parts[3] else []
            steps.append((f"{word} != NULL" if word else "", parts[1], parts[2]))
        lines = [f"ctl_{self.noun}_{ident(command['name'])}_request(args, &request);"]
        for condition, call, then in steps:
            given = f" && {condition}" if condition else ""
            lines += [f"if (result == CTL_OK{given}) {{", f"result = {call};"]
            lines += [then] if then else []
            lines.append("}")
        called = self.call(command, method, ["&r"])
        lines += [
            f"if (result == CTL_OK && {called}) {{",
            f"result = ctl_failed(args->words[{command.get('blames', 0)}], &error);",
            "}",
            "if (result == CTL_OK) {",
            *self.show(command, method, "r"),
            "result = ctl_flush();",
            "}",
            *frees,
            "return result;",
        ]
        return self.function(command, [*declared, "int result = CTL_OK;", "", *lines])

    def answer_lines(
        self, command: dict[str, Any], method: Method, declared: list[str]
    ) -> list[str]:
        """A reply that is yes or no, and what either is called."""
        name = self.c["methods"][method.name]["returns"]
        declared.append(f"bool {name} = false;")
        yes, no = command["answers"]
        json = f'(void)printf("{{\\"{name}\\": %s}}\\n", {name} ? "true" : "false");'
        text = f'(void)printf("%s%s\\n", {self.subject(command)}, {name} ? "{yes}" : "{no}");'
        return [
            *self.failed(command, self.call(command, method, [f"&{name}"])),
            *self.either([json], [text]),
        ]

    def drop_lines(
        self, command: dict[str, Any], method: Method, declared: list[str]
    ) -> list[str]:
        face = self.c["methods"][method.name]
        if "returns" in face:
            declared.append("bool existed = false;")
            call = self.call(command, method, ["&existed"])
            shown = f"ctl_print_dropped(globals, existed, {self.subject(command)});"
            if command["drops"] is not True:
                words = ", ".join(f'"{w}"' for w in command["drops"])
                shown = f"ctl_print_gone(globals, existed, {self.subject(command)}, {words});"
            return [*self.failed(command, call), shown]
        declared.append(f"struct {face['result']} *r;")
        free = self.c["results"][face["result"]]["free"]
        return [
            *self.failed(command, self.call(command, method, ["&r"])),
            f"ctl_print_dropped(globals, r->existed, {self.subject(command)});",
            f"{free}(r);",
        ]

    # What is printed --------------------------------------------------------------------------

    def show(self, command: dict[str, Any], method: Method, r: str) -> list[str]:
        words = "args, " if command.get("with_args") else ""
        one = self.line.one_record(command)
        face = self.c["methods"][method.name]
        members = self.c["results"].get(face.get("result", ""), {}).get("list")
        if one is not None:
            text = [f"{command['prints']}({words}&r->{members}[0]);"]
            return self.either(self.one_json(command, method, one, members), [
                *self.said(command), *text])  # fmt: skip
        if members is not None:
            return self.list_lines(command, method, members)
        json = [f"ctl_{self.noun}_{ident(command['name'])}_json({r});"]
        return self.either(json, [f"{command['prints']}({words}{r});"])

    @staticmethod
    def either(json: list[str], text: list[str]) -> list[str]:
        return ["if (globals->json) {", *json, "} else {", *text, "}"]

    def said(self, command: dict[str, Any]) -> list[str]:
        """What stands before the text: the words of the first member that is true, or the last."""
        words = command.get("said")
        if not words:
            return []
        choice = "".join(
            f'r->{member} ? "{text}" : ' for member, text in words.items() if member != "else"
        )
        return [f'(void)printf("%s ", {choice}"{words["else"]}");']

    def print_record(self, f: Field, source: str) -> str:
        return f"{self.face['records'][f.message_of.name]}({source});"

    def one_json(
        self, command: dict[str, Any], method: Method, one: Field, members: str
    ) -> list[str]:
        others = [f for f in self.line.result_fields(method.response) if f is not one]
        printed = self.print_record(one, f"&r->{members}[0]")
        if not others or command.get("json") == "record":
            return [printed, "(void)fputc('\\n', stdout);"]
        lines = ["(void)fputc('{', stdout);"]
        for i, f in enumerate(others):
            lines += self.member(f, i == 0)
        return [
            *lines,
            f'(void)fputs(", \\"{one.name}\\": ", stdout);',
            printed,
            '(void)fputs("}\\n", stdout);',
        ]

    def member(self, f: Field, is_first: bool) -> list[str]:
        name = self.c["members"].get(f.path, f.name)
        comma = "" if is_first else ", "
        return self.json.json_value(
            f, None, name, f"r->{name}", "true" if is_first else "false", comma
        )

    def list_lines(self, command: dict[str, Any], method: Method, members: str) -> list[str]:
        fields = self.line.result_fields(method.response)
        of_list = next(f for f in fields if f.is_message and f.is_repeated)
        others = [f for f in fields if f is not of_list]
        json = [
            f'(void)fputs("{{\\"{of_list.name}\\": [", stdout);',
            f"for (size_t i = 0; i < r->n_{members}; i++) {{",
            '(void)fputs(i > 0 ? ", " : "", stdout);',
            self.print_record(of_list, f"&r->{members}[i]"),
            "}",
            "(void)fputc(']', stdout);",
        ]
        for f in others:
            json += self.member(f, False)
        json.append('(void)fputs("}\\n", stdout);')
        text = [f"{command['prints']}(r);"]
        if not command.get("prints_none"):
            text = [f"if (r->n_{members} > 0) {{", *text, "}"]
        if {"n_bytes", "limit_bytes"} <= {f.name for f in others}:
            named = self.face.get("plural", members)
            total = f'globals, r->n_{members}, "{named}", r->n_bytes, r->limit_bytes'
            text.append(f"ctl_print_total({total});")
        return self.either(json, text)

    # The choice of one ------------------------------------------------------------------------

    def emit_subs(self) -> str:
        rows = []
        for command in self.face["commands"]:
            name = ident(command["name"])
            if "main" in command:
                continue
            row = f".manual = &ctl_{self.noun}_{name}_manual"
            if command.get("local"):
                row += f", .local = {self.line.run_name(command)}"
            elif self.line.is_whole(command):
                row += f", .run = run_{name}"
            else:
                row += f", .run = {self.line.run_name(command)}"
            if "check" in command:
                row += f", .check = {command['check']}"
            rows.append(f"{{{row}}},")
        return f"""static const struct sub {{
    const struct ctl_manual *manual;
    ctl_{self.noun}_run_fn *run;
    int (*check)(const struct ctl_{self.noun}_args *args); /* NULL: nothing */
    /* Runs without a connection, in place of run. */
    int (*local)({self.arguments});
}} subs[] = {{
    {chr(10).join(rows)}
}};

static int run_parsed(const struct sub *sub, struct ctl_globals *globals,
 const struct ctl_{self.noun}_args *args)
{{
    struct voxeld_client *client;
    int result = sub->check != NULL ? sub->check(args) : CTL_OK;

    if (result != CTL_OK) {{
        return result;
    }}
    if (sub->local != NULL) {{
        return sub->local(globals, args);
    }}
    client = {self.face.get("connect", "ctl_connect")}(globals);
    if (client == NULL) {{
        return CTL_FAILED;
    }}
    result = sub->run(client, globals, args);
    voxeld_close(client);
    return result;
}}

static int run_sub(const struct sub *sub, struct ctl_globals *globals, int argc, char **argv)
{{
    struct ctl_{self.noun}_args args = {{0}};
    int result = CTL_OK;

    if (ctl_{self.noun}_parse(globals, sub->manual, argc, argv, &args, &result)) {{
        result = globals->request != NULL ? ctl_call_with_json(globals, globals->request,
         sub->manual->method, sub->manual->changes) : run_parsed(sub, globals, &args);
    }}
    {"free(args.steps.steps);" if self.line.has_ordered else ""}
    return result;
}}
"""

    def emit_noun(self) -> str:
        word = self.line.word
        mains = [c for c in self.line.subcommands if "main" in c]
        ours = [c for c in self.line.subcommands if "main" not in c]
        first = [c for c in self.face["commands"] if "main" not in c].index(ours[0])
        n, n_all = len(ours), len(ours) + len(mains)
        others = ", ".join(f'[{n + i}] = "{c["name"]}"' for i, c in enumerate(mains))
        others = f" = {{{others}}}" if others else ""
        calls = "".join(
            f'if (strcmp(argv[1], "{c["name"]}") == 0) {{\n'
            f"return {c['main']}(globals, argc - 1, argv + 1);\n}}\n"
            for c in mains
        )
        return f"""static int run(struct ctl_globals *globals, int argc, char **argv)
{{
    const char *names[{n_all}]{others};

    if (argc < 2) {{
        return ctl_usage("{word}", "no subcommand");
    }}
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {{
        (void)fputs(ctl_{self.noun}_help, stdout);
        return ctl_flush();
    }}
    {calls}for (size_t i = 0; i < {n}; i++) {{
        const struct sub *sub = &subs[{first} + i];

        names[i] = strchr(sub->manual->command.name, ' ') + 1;
        if (strcmp(names[i], argv[1]) == 0) {{
            return run_sub(sub, globals, argc - 1, argv + 1);
        }}
    }}
    return ctl_no_subcommand("{word}", argv[1], names, {n_all});
}}

const struct ctl_command ctl_{word} = {{
    .name = "{word}",
    .summary = ctl_{self.noun}_summary,
    .help = ctl_{self.noun}_help,
    .run = run,
}};
"""

    def emit_top(self, i: int, command: dict[str, Any]) -> str:
        name = ident(command["name"])
        return f"""static int top_{name}(struct ctl_globals *globals, int argc, char **argv)
{{
    return run_sub(&subs[{i}], globals, argc, argv);
}}

const struct ctl_command ctl_{name} = {{
    .name = "{command['name']}",
    .summary = "{command.get('short', command['summary'])}",
    .help = ctl_{self.noun}_{name}_help,
    .run = top_{name},
}};
"""

    def text(self) -> str:
        commands = self.face["commands"]
        parts = [
            self.emit_run_with_files(c) if "files" in c else self.emit_run(c)
            for c in commands
            if self.line.is_whole(c)
        ]
        parts.append(self.emit_subs())
        if self.line.has_noun:
            parts.append(self.emit_noun())
        parts += [self.emit_top(i, c) for i, c in enumerate(commands) if c.get("top")]
        what = self.line.word if self.line.has_noun else f"on {self.face['title']}"
        what = f"Runs voxelctl {what}."
        head = HEAD.format(sources=self.line.sources, what=what)
        body = "\n".join(parts)
        for name, uses in (
            ("inttypes.h", r"PRI"),
            ("stdlib.h", r"\bfree\("),
            ("string.h", r"\bstrcmp\("),
        ):
            if re.search(uses, body):
                head += f"#include <{name}>\n"
        head += f'\n#include "{HEADER}"\n'
        head += "".join(f'#include "{name}"\n' for name in self.face.get("main_headers", []))
        head += f'#include "client/voxelctl/generated/{self.noun}_args.h"\n'
        head += '#include "client/voxelctl/messages/messages.h"\n\n'
        return formatted(head + body)

    def names(self) -> list[str]:
        """The commands of voxelctl itself."""
        own = [self.line.word] if self.line.has_noun else []
        return own + [ident(c["name"]) for c in self.face["commands"] if c.get("top")]


def header(runs: list[CommandRuns]) -> str:
    declared = [f"extern const struct ctl_command ctl_{n};" for r in runs for n in r.names()]
    head = HEAD.format(sources="the faces", what="voxelctl's commands that are generated.")
    guard = "VXD_CLIENT_VOXELCTL_COMMANDS_GENERATED_COMMANDS_GENERATED_H"
    return formatted(
        f"{head}#ifndef {guard}\n#define {guard}\n\n"
        '#include "client/voxelctl/cli/cli.h"\n\n' + "\n".join(declared) + "\n\n#endif\n"
    )


def outputs(schema: Schema, faces: dict[str, dict[str, Any]]) -> dict[str, str]:
    runs = [
        CommandRuns(schema, noun, face)
        for noun, face in faces.items()
        if face.get("ctl", {}).get("runs")
    ]
    made = {f"{FOLDER}/{r.noun}_commands.c": r.text() for r in runs}
    return made | {HEADER: header(runs)}
