# SPDX-License-Identifier: Apache-2.0
"""The manuals of voxelctl's subcommands of a noun, --help, and what options each of them takes."""

from __future__ import annotations

import textwrap
from typing import Any

from clients.c_names import formatted
from command_line import FOLDER, HEAD, CommandLine, ident

WIDTH = 80
COLUMN = 21


def c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'"{line}\\n"' for line in escaped.split("\n"))


def option_lines(flag: str, help: str) -> str:
    indent = " " * COLUMN
    text = textwrap.fill(
        help,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    head = f"  {flag}"
    return head.ljust(COLUMN) + text.lstrip() if len(head) < COLUMN else f"{head}\n{text}"


class CommandManuals:
    """Writes one noun's file."""

    def __init__(self, line: CommandLine) -> None:
        self.line = line
        self.schema, self.noun, self.face, self.c = line.schema, line.noun, line.face, line.c

    def manual(self, command: dict[str, Any]) -> str:
        name = f"voxelctl {self.line.full_name(command)}"
        words = f" {command['words']}" if command["words"] else ""
        options = self.line.command_options[command["name"]]
        usage = f"usage: {name}{words}"
        for more in command.get("usages", []):
            usage += f" [OPTIONS]\n       {name} {more}"
        if len(options) <= 2 and not command.get("required"):
            for o in options:
                if self.line.helps[command["name"], o] and f"--{o}" not in words:
                    usage += f" [{self.line.options[o].flag}]"
        usage += " [OPTIONS]"
        blocks = [f"{name} - {command['summary']}", usage]
        if "text" in command:
            blocks.append(command["text"].strip("\n"))
        overrides = command.get("help", {})
        lines = []
        for o in options:
            help = overrides.get(o) or self.line.helps[command["name"], o]
            if o in command.get("sections", {}):
                title = command["sections"][o]
                lines += ["", title] if title else [""]
            if help:
                lines.append(option_lines(self.line.options[o].flag, help))
        if "more" in command:
            lines.append(command["more"].strip("\n"))
        if lines:
            blocks.append("\n".join(lines).strip("\n"))
        if "after" in command:
            blocks.append(command["after"].strip("\n"))
        if command.get("top"):
            blocks.append("The shared options: voxelctl --help.")
        example = textwrap.indent(command["example"].strip("\n"), "  ")
        several = "examples" if command.get("several") else "example"
        blocks.append(f"{several}\n{example}")
        return "\n\n".join(blocks)

    def noun_manual(self) -> str:
        commands = []
        for command in self.line.subcommands:
            word = command["words"].split(" | ")[0].split(" --")[0].replace("[@V]", "")
            word = command.get("index", word)
            head = f"{command['name']} {word}".strip()
            commands.append(f"  {head.ljust(20)} {command.get('short', command['summary'])}")
        head = f"subcommands (voxelctl {self.line.word} SUBCOMMAND --help is the manual of each)"
        return "\n\n".join(
            [
                f"voxelctl {self.line.word} - {self.face['title']}",
                f"usage: voxelctl {self.line.word} SUBCOMMAND ... [OPTIONS]",
                self.face["text"].strip("\n"),
                "\n".join([head, *commands]),
                self.face["after"].strip("\n"),
                "\n".join(["examples", *(f"  {e}" for e in self.face["examples"])]),
            ]
        )

    def emit_manual(self, command: dict[str, Any]) -> str:
        name = command["name"]
        low, high = command.get("n_words") or [len(command["words"].split())] * 2
        text = c_string(self.manual(command))
        lines = []
        if command.get("top"):
            lines.append(f"const char ctl_{self.noun}_{ident(name)}_help[] = {text};\n")
            text = f"ctl_{self.noun}_{ident(name)}_help"
        lines += [
            f"const struct ctl_manual ctl_{self.noun}_{ident(name)}_manual = {{",
            f'.command = {{.name = "{self.line.full_name(command)}",',
            f".help = {text}}},",
        ]
        if self.line.command_options[name]:
            lines.append(f".options = {self.line.bits(self.line.command_options[name])},")
        if command.get("required"):
            lines.append(f".required = {self.line.bits(command['required'])},")
        if high:
            lines.append(f".n_min = {low}, .n_max = {'SIZE_MAX' if high < 0 else high},")
        if self.line.takes_request(command):
            lines.append(f'.method = "{command["method"]}",')
            if self.line.changes(command):
                lines.append(".changes = true,")
        return "\n".join([*lines, "};\n"])

    def text(self) -> str:
        commands = [c for c in self.face["commands"] if "main" not in c]
        parts = [self.emit_manual(command) for command in commands]
        if self.line.has_noun:
            parts.append(f"const char ctl_{self.noun}_help[] = {c_string(self.noun_manual())};\n")
            parts.append(f'const char ctl_{self.noun}_summary[] = "{self.face["summary"]}";\n')
        what = f"Manuals of voxelctl {self.noun}."
        head = HEAD.format(sources=self.line.sources, what=what)
        head += f'#include "client/voxelctl/generated/{self.noun}_args.h"\n\n'
        return formatted(head + "\n".join(parts))


def outputs(line: CommandLine) -> dict[str, str]:
    return {f"{FOLDER}/{line.noun}_manuals.c": CommandManuals(line).text()}
