# SPDX-License-Identifier: Apache-2.0
"""What voxelctl's commands print for people: the face's texts and tables, as C. README.md says how
a face writes them ("Texts for people")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from clients.c_names import formatted
from command_line import FOLDER, HEAD, CommandLine
from model import INTEGERS_32, Field, Message, Types, fail

UNSIGNED_32 = {Types.TYPE_UINT32, Types.TYPE_FIXED32}


@dataclass(frozen=True)
class Literal:
    text: str


@dataclass(frozen=True)
class Value:
    what: str  # a member's path; or "=" and C, where @ is the record
    form: str


@dataclass(frozen=True)
class Choice:
    condition: str
    then: tuple[Any, ...]
    other: tuple[Any, ...]


@dataclass(frozen=True)
class Repeat:
    """The items of a list in one line."""

    what: str
    between: tuple[Any, ...]
    each: tuple[Any, ...]


@dataclass(frozen=True)
class Member:
    """What a path of a text means in C."""

    c: str
    kind: str  # text, bool, u32, i32, u64, i64, size, real, enum, vec3, message, list
    of: Any = None  # the enum, or the message


@dataclass
class Scope:
    """Where a text stands: the record whose members its names are."""

    at: str  # "r->"
    members: dict[str, Member]
    index: str = ""  # of the list that the record stands in


def parsed(text: str) -> tuple[Any, ...]:
    """The pieces of a text."""
    pieces: list[Any] = []
    at = 0
    while at < len(text):
        if text[at] != "{":
            end = text.find("{", at) if "{" in text[at:] else len(text)
            pieces.append(Literal(text[at:end]))
            at = end
            continue
        depth, end = 1, at + 1
        while depth > 0:
            if end == len(text):
                fail(f'the text "{text}" lacks a }}')
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        pieces.append(placeholder(text[at + 1 : end - 1]))
        at = end
    return tuple(pieces)


def split(text: str, mark: str) -> list[str]:
    """Its parts between marks that are in no braces."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def placeholder(text: str) -> Any:
    head = re.match(r"(!?[\w.]+(?:[>=]\w+)?)\?", text)
    if head is not None:
        then, *other = split(text[head.end() :], "|")
        return Choice(head[1], parsed(then), parsed("|".join(other)))
    head = re.match(r"([\w.]+)\*", text)
    if head is not None:
        between, each = split(text[head.end() :], "|")
        return Repeat(head[1], parsed(between), parsed(each))
    what, _, form = text.rpartition(":") if ":" in text else (text, "", "")
    return Value(what, form)


def c_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@dataclass
class Statement:
    """One printf in the making."""

    form: str = ""
    arguments: list[str] = field(default_factory=list)
    n_texts: int = 0

    def text(self) -> str:
        """A buffer for a number with commas, say."""
        self.n_texts += 1
        return f"text[{self.n_texts - 1}]"


class CommandText:
    """Writes one noun's file."""

    def __init__(self, line: CommandLine) -> None:
        self.line = line
        self.c = line.c
        self.face = line.face
        self.words: dict[str, list[str]] = {}  # of enums that are printed
        self.n_texts = 0

    # Members ------------------------------------------------------------------------------------

    def members_of(self, message: Message, at: str) -> dict[str, Member]:
        if message.name == "Pose":
            return {"translation_m": Member(f"{at}translation_m", "vec3")}
        found: dict[str, Member] = {}
        for f in message.fields:
            name = self.c["members"].get(f.path, f.name)
            if f.path in self.c.get("without", []):
                continue
            if name == ".":
                found |= self.members_of(f.message_of, at)
            elif name.endswith("."):
                found[name[:-1]] = Member(f"{at}{name[:-1]}", "bool")
                found |= self.members_of(f.message_of, at)
            else:
                found[name] = self.member_of(f, f"{at}{name}")
                if f.is_repeated:
                    found[f"n_{name}"] = Member(f"{at}n_{name}", "size")
        return found

    def member_of(self, f: Field, c: str) -> Member:
        if f.is_repeated:
            return Member(c, "list", f.of)
        if f.is_message:
            return Member(c, "vec3" if f.message_of.name == "Vec3" else "message", f.of)
        if f.is_enum:
            return Member(c, "enum", f.of)
        if self.c.get("types", {}).get(f.path) == "size_t":
            return Member(c, "size")
        kinds = {Types.TYPE_STRING: "text", Types.TYPE_BOOL: "bool", Types.TYPE_DOUBLE: "real",
                 Types.TYPE_FLOAT: "real", Types.TYPE_INT64: "i64"}  # fmt: skip
        if f.type in INTEGERS_32:
            return Member(c, "u32" if f.type in UNSIGNED_32 else "i32")
        return Member(c, kinds.get(f.type, "u64"))

    def find(self, path: str, scope: Scope) -> Member:
        """The member of a path: "lattice.size_m.0"; "args.0" is a word of the command line, "i"
        the number of a list's item, and "." the item."""
        if path == ".":
            return scope.members["."]
        if path == "i" and scope.index:
            return Member(scope.index, "size")
        first, *others = path.split(".")
        if first == "args":
            return Member(f"args->words[{others[0]}]", "text")
        members, found = scope.members, None
        for name in [first, *others]:
            if found is not None and found.kind == "vec3":
                found = Member(f"{found.c}[{name}]", "real")
                continue
            found = members.get(name)
            if found is None:
                fail(f"faces/{self.line.noun}.toml: no member {path} of what is printed")
            assert found is not None
            if found.kind == "message":
                members = self.members_of(found.of, f"{found.c}.")
        assert found is not None
        return found

    def condition(self, text: str, scope: Scope) -> str:
        """As C: NAME is true, a text that is not empty, a number above 0, or a message that is
        there; !NAME is not; NAME>1, NAME=ENUMERATOR."""
        match = re.fullmatch(r"(!?)([\w.]+?)(?:(>|=)(\w+))?", text)
        if match is None:
            fail(f'faces/{self.line.noun}.toml: the condition "{text}" is of no form that is known')
        assert match is not None
        is_not, path, relation, value = match.groups()
        m = self.find(path, scope)
        if relation == ">":
            return f"{m.c} > {value}"
        if relation == "=":
            _, ours, _ = self.c["enums"][m.of.name]
            return f"{m.c} == {ours}{value}"
        if m.kind == "bool":
            return is_not + m.c
        if m.kind == "text":
            return f"{m.c}[0] {'==' if is_not else '!='} '\\0'"
        if m.kind == "message":
            return is_not + re.sub(r"(\w+)$", r"has_\1", m.c)
        return f"{m.c} {'==' if is_not else '>'} 0"

    # Values -------------------------------------------------------------------------------------

    def value(self, v: Value, scope: Scope, out: Statement) -> tuple[str, list[str]]:
        """The piece of a format, and its arguments."""
        if v.what.startswith("="):
            form = f"%{v.form}" if v.form else '%" PRIu64 "'
            return form, [v.what[1:].replace("@", scope.at)]
        m = self.find(v.what, scope)
        calls = {",": "ctl_thousands", "bytes": "ctl_bytes", "date": "ctl_date"}
        if v.form in calls:
            return "%s", [f"{calls[v.form]}({m.c}, {out.text()})"]
        if m.kind == "enum":
            return "%s", [self.word_of(m)]
        if m.kind == "vec3":
            form = v.form or "g"
            return f"%{form}, %{form}, %{form}", [f"{m.c}[{i}]" for i in range(3)]
        if m.kind in ("u32", "u64", "i32", "i64"):
            width = v.form.rstrip("xu")
            letter = v.form[-1] if v.form and v.form[-1] in "xu" else m.kind[0]
            macro = f"PRI{letter.replace('i', 'd')}{m.kind[1:]}"
            return f'%{width}" {macro} "', [m.c]
        forms = {"text": "s", "real": "g", "size": "zu"}
        if m.kind not in forms:
            fail(f"faces/{self.line.noun}.toml: {v.what} cannot be printed as it is")
        return f"%{v.form or forms[m.kind]}", [m.c]

    def word_of(self, m: Member) -> str:
        """An enum's word."""
        if m.of.name == "DType":
            return f"ctl_dtype_name({m.c})"
        if m.of.name == "Code":
            return f"voxeld_status_name({m.c})"
        name = f"words_of_{m.of.name.replace('.', '_').lower()}"
        self.words[name] = self.face.get("said_as", {}).get(m.of.name) or self.line.choices(m.of)
        return f"ctl_word({name}, sizeof {name} / sizeof {name}[0], (size_t){m.c})"

    def simple(self, pieces: tuple[Any, ...], scope: Scope, out: Statement) -> str | None:
        """What is one text in C; None where it takes more."""
        if not pieces:
            return '""'
        if len(pieces) > 1 or isinstance(pieces[0], Repeat):
            return None
        piece = pieces[0]
        if isinstance(piece, Literal):
            return f'"{c_text(piece.text)}"'
        if isinstance(piece, Value):
            form, arguments = self.value(piece, scope, out)
            return arguments[0] if form == "%s" else None
        then = self.simple(piece.then, scope, out)
        other = self.simple(piece.other, scope, out)
        if then is None or other is None:
            return None
        return f"({self.condition(piece.condition, scope)} ? {then} : {other})"

    def add(self, piece: Any, scope: Scope, out: Statement) -> bool:
        """Adds a piece to a statement, if it goes into one."""
        if isinstance(piece, Literal):
            out.form += c_text(piece.text).replace("%", "%%")
            return True
        if isinstance(piece, Value):
            form, arguments = self.value(piece, scope, out)
            out.form += form
            out.arguments += arguments
            return True
        trial = replace(out)
        text = self.simple((piece,), scope, trial) if isinstance(piece, Choice) else None
        if text is None:
            return False
        out.n_texts = trial.n_texts
        out.form += "%s"
        out.arguments.append(text)
        return True

    def call(self, head: str, out: Statement) -> str:
        self.n_texts = max(self.n_texts, out.n_texts)
        form = f'"{out.form}"'.removesuffix(' ""')
        return f"{head}{', '.join([form, *out.arguments])});"

    # Statements ---------------------------------------------------------------------------------

    def flush(self, out: Statement) -> list[str]:
        if not out.form:
            return []
        if out.arguments:
            return [self.call("(void)printf(", out)]
        text = out.form.replace("%%", "%")
        return [f'(void)fputs("{text}", stdout);']

    def print_lines(self, pieces: tuple[Any, ...], scope: Scope) -> list[str]:
        lines: list[str] = []
        out = Statement()
        for piece in pieces:
            if self.add(piece, scope, out):
                continue
            lines += self.flush(out)
            out = Statement()
            if isinstance(piece, Repeat):
                lines += self.repeat_lines(piece, scope)
                continue
            lines += [f"if ({self.condition(piece.condition, scope)}) {{",
                      *self.print_lines(piece.then, scope)]  # fmt: skip
            if piece.other:
                lines += ["} else {", *self.print_lines(piece.other, scope)]
            lines.append("}")
        return lines + self.flush(out)

    def item_scope(self, items: Member, scope: Scope) -> Scope:
        index = "j" if scope.index else "i"
        at = f"{items.c}[{index}]"
        if isinstance(items.of, Message):
            return Scope(f"{at}.", self.members_of(items.of, f"{at}."), index)
        return Scope(at, {".": Member(at, "text")}, index)

    def loop(self, path: str, scope: Scope) -> tuple[Scope, str]:
        """The scope of a list's items, and the head of the loop over them."""
        items = self.find(path, scope)
        count = self.find(".".join([*path.split(".")[:-1], f"n_{path.split('.')[-1]}"]), scope)
        inner = self.item_scope(items, scope)
        i = inner.index
        return inner, f"for (size_t {i} = 0; {i} < {count.c}; {i}++) {{"

    def repeat_lines(self, piece: Repeat, scope: Scope) -> list[str]:
        inner, head = self.loop(piece.what, scope)
        between = self.simple(piece.between, inner, Statement())
        each = self.print_lines(piece.each, inner)
        if between != '""':
            each.insert(0, f'(void)fputs({inner.index} > 0 ? {between} : "", stdout);')
        return [head, *each, "}"]

    def cell_lines(self, pieces: tuple[Any, ...], scope: Scope) -> list[str]:
        """A cell is one call, so that what stands around a choice is in both branches."""
        out = Statement()
        for i, piece in enumerate(pieces):
            if self.add(piece, scope, out):
                continue
            assert isinstance(piece, Choice)
            before, after = pieces[:i], pieces[i + 1 :]
            return [
                f"if ({self.condition(piece.condition, scope)}) {{",
                *self.cell_lines((*before, *piece.then, *after), scope),
                "} else {",
                *self.cell_lines((*before, *piece.other, *after), scope),
                "}",
            ]
        if not out.arguments and out.form:
            out = Statement("%s", [f'"{out.form}"'])
        return [self.call("ctl_table_cell(&table, ", out)]

    def table_lines(self, block: dict[str, Any], scope: Scope) -> list[str]:
        inner, head = self.loop(block["table"], scope)
        cells = [line for _, text in block["columns"]
                 for line in self.cell_lines(parsed(text), inner)]  # fmt: skip
        heads = "|".join(head for head, _ in block["columns"])
        return [f'ctl_table_begin(&table, "{heads}");', head, *cells, "}", "ctl_table_end(&table);"]

    def block_lines(self, block: Any, scope: Scope) -> list[str]:
        if isinstance(block, str):
            return self.print_lines(parsed(block + "\n"), scope)
        if "if" in block:
            lines = self.blocks_lines(block["then"], scope)
            lines = [f"if ({self.condition(block['if'], scope)}) {{", *lines]
            if "else" in block:
                lines += ["} else {", *self.blocks_lines(block["else"], scope)]
            return [*lines, "}"]
        if "each" in block:
            inner, head = self.loop(block["each"], scope)
            return [head, *self.print_lines(parsed(block["text"] + "\n"), inner), "}"]
        if "table" in block:
            return self.table_lines(block, scope)
        return [f"{block['calls']}(r);"]

    def blocks_lines(self, blocks: Any, scope: Scope) -> list[str]:
        blocks = blocks if isinstance(blocks, list) else [blocks]
        return [line for block in blocks for line in self.block_lines(block, scope)]

    # The file -----------------------------------------------------------------------------------

    def scope_of(self, command: dict[str, Any]) -> Scope:
        one = self.line.one_record(command)
        if one is not None:
            return Scope("r->", self.members_of(one.message_of, "r->"))
        method = self.line.schema.method(command["method"])
        face = self.c["methods"][method.name]
        members = self.members_of(method.response, "r->")
        result = self.c["results"].get(face.get("result", ""), {})
        for f in method.response.fields:
            if "list" in result and f.is_repeated and f.is_message:
                members[result["list"]] = Member(f"r->{result['list']}", "list", f.of)
                members[f"n_{result['list']}"] = Member(f"r->n_{result['list']}", "size")
        for name in result.get("header", []):
            members[name] = Member(f"r->{name}", "real" if name.endswith("_ms") else "text")
        return Scope("r->", members)

    def emit(self, command: dict[str, Any], name: str) -> str:
        self.n_texts = 0
        body = self.blocks_lines(self.face["prints"][name], self.scope_of(command))
        declared = []
        if any("&table" in line for line in body):
            declared.append("struct ctl_table table;")
        if self.n_texts > 0:
            declared.append(f"char text[{self.n_texts}][CTL_NUMBER_BYTES];")
        if declared:
            declared.append("")
        if command.get("with_args") and not any("args->" in line for line in body):
            body.insert(0, "(void)args;")
        head = f"void {name}({self.line.printed(command)})"
        return f"{head}\n{{\n" + "\n".join([*declared, *body]) + "\n}\n"

    def functions(self) -> Iterator[str]:
        commands = {c["prints"]: c for c in self.face["commands"] if "prints" in c}
        for name in self.face["prints"]:
            if name not in commands:
                fail(f"faces/{self.line.noun}.toml: no command prints by {name}")
            yield self.emit(commands[name], name)

    def text(self) -> str:
        functions = list(self.functions())
        words = [
            f"static const char *const {name}[] = {{" + ", ".join(f'"{w}"' for w in ws) + "};"
            for name, ws in self.words.items()
        ]
        what = f"What voxelctl {self.line.word} prints for people."
        head = HEAD.format(sources=self.line.sources, what=what)
        body = "\n".join([*words, "", *functions] if words else functions)
        if "PRI" in body:
            head += "#include <inttypes.h>\n\n"
        head += f'#include "client/voxelctl/generated/{self.line.noun}_args.h"\n\n'
        return formatted(head + body)


def outputs(line: CommandLine) -> dict[str, str]:
    if "prints" not in line.face:
        return {}
    return {f"{FOLDER}/{line.noun}_texts.c": CommandText(line).text()}
