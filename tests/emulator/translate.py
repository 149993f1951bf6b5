#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites the parts of CUDA sources that a C++ compiler does not accept, line by line in place.

usage: translate.py SOURCE_DIR OUTPUT_DIR @LIST

LIST has lines of files relative to SOURCE_DIR; each is written to the same place below OUTPUT_DIR,
with a .cu.cpp that includes it beside each .cu. Rewritten are

    kernel<<<grid, block, shared, stream>>>(args)   into a call of the emulator's launcher,
    __shared__ declarations                         into references to the block's own memory,
    __grid_constant__ parameters                    into references,
    asm statements                                  into calls named after the instruction,

and kernels are registered under their names, for launches by address.
emulator.h declares everything else of CUDA.
"""

import re
import sys
from pathlib import Path

OPEN, CLOSE = "([{", ")]}"


def end_of(text: str, at: int) -> int:
    """Index past the bracket that closes the one at `at`."""
    depth = 0
    while at < len(text):
        if text[at] == '"':
            at = end_of_string(text, at)
            continue
        depth += (text[at] in OPEN) - (text[at] in CLOSE)
        at += 1
        if depth == 0:
            return at
    raise ValueError("unbalanced brackets")


def end_of_string(text: str, at: int) -> int:
    at += 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def split(text: str, separator: str) -> list[str]:
    """Splits text at separators that are outside of brackets and strings."""
    parts, begin, at = [], 0, 0
    while at < len(text):
        if text[at] in OPEN:
            at = end_of(text, at)
        elif text[at] == '"':
            at = end_of_string(text, at)
        elif text[at] == separator:
            parts.append(text[begin:at])
            at += 1
            begin = at
        else:
            at += 1
    parts.append(text[begin:])
    return parts


def begin_of_callee(text: str, end: int) -> int:
    """Index where `kernel` or `kernel<A, B>` begins that ends at `end`, without blanks."""
    at = end
    if text[at - 1] == ">":
        depth = 0
        while True:
            at -= 1
            depth += (text[at] == ">") - (text[at] == "<")
            if depth == 0:
                break
    while text[at - 1].isalnum() or text[at - 1] in "_:":
        at -= 1
    return at


def launches(text: str) -> str:
    while "<<<" in text:
        at = text.index("<<<")
        end_name = len(text[:at].rstrip(" \t\n\\"))
        begin = begin_of_callee(text, end_name)
        end = text.index(">>>", at)
        kernel = text[begin:end_name]
        gap = text[end_name:at]
        config = text[at + 3 : end]
        text = (
            f'{text[:begin]}emu_launcher_of({kernel}, "{kernel.split("<")[0]}", '
            f"{gap}{config}){text[end + 3 :]}"
        )
    return text


def addresses(text: str) -> str:
    """Templates are registered where their address is taken."""
    return re.sub(
        r"\(const void \*\)\s*(\w+_kernel)(<[\w\s,:]+>)", r'emu_address_of(\1\2, "\1")', text
    )


def shared(text: str) -> str:
    text = re.sub(
        r"extern __shared__ ([\w ]+?) (\w+)\[\];",
        r"\1 *const \2 = (\1 *)emu_dynamic_shared();",
        text,
    )
    return re.sub(
        r"__shared__ ([\w ]+?) (\w+)((?:\[[^\]]*\])*);",
        r"typedef \1 \2_emu\3; static struct emu_slot \2_slot; "
        r"\2_emu &\2 = *(\2_emu *)emu_shared(&\2_slot, sizeof(\2_emu), alignof(\2_emu));",
        text,
    )


def assembly(text: str) -> str:
    at = 0
    while match := re.compile(r"\basm volatile\(").search(text, at):
        begin = match.start()
        end = end_of(text, match.end() - 1)
        parts = split(text[match.end() : end - 1], ":")
        code = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', parts[0])).replace("\\n", " ")
        name = re.search(r"\b(ld|st|rcp|prefetch|fence|atom\S*cas\.b128|atom\S*cas\.b32)\b", code)
        operands = []
        for part in parts[1:3]:
            for operand in split(part, ","):
                if "(" in operand:
                    operands.append(operand[operand.index("(") + 1 : operand.rindex(")")])
        n_outputs = len([o for o in split(parts[1], ",") if "(" in o]) if len(parts) > 1 else 0
        known = {
            "ld": "emu_ptx_load",
            "st": "emu_ptx_store",
            "prefetch": "emu_ptx_prefetch",
            "fence": "__threadfence",
        }
        if name is None:
            call = f'emu_ptx_unknown("{code}")'
        elif name[1] == "rcp":
            call = f"{operands[0]} = 1.0f / ({operands[1]})"
        else:
            cas = "emu_ptx_cas32" if name[1].endswith("b32") else "emu_ptx_cas128"
            call = f"{known.get(name[1], cas)}({', '.join(operands)})"
            if name[1] == "ld" and n_outputs + 1 != len(operands):
                raise ValueError(f"{code}: {n_outputs} outputs of {len(operands)} operands")
        if re.search(r"\bld\.acquire\b", code):
            call += ", emu_fence(false)"
        elif re.search(r"\b(st|atom)\.release\b", code):
            call = "emu_fence(false), " + call
        lines = text[begin:end].count("\n")
        text = text[:begin] + call + "\n" * lines + text[end:]
        at = begin + len(call)
    return text


def kernels(text: str) -> str:
    """Registrations of all kernels that are not templates."""
    rows = []
    for match in re.finditer(
        r"(template <[^;{]*?>\s*)?(?:static\s+)?__global__\s+void\s+"
        r"(?:__launch_bounds__\([^;{]*?\)\s+)?(\w+)\(",
        text,
    ):
        if match[1] is None:
            rows.append(f'static const emu_entry emu_entry_{match[2]}({match[2]}, "{match[2]}");')
    return "\n".join(rows)


def translate(text: str, path: Path) -> str:
    entries = kernels(text) if path.suffix == ".cu" else ""
    text = re.sub(
        r"const\s+__grid_constant__\s+((?:struct\s+)?\w+)\s+(\w+)", r"const \1 &\2", text
    )
    return f'#line 1 "{path}"\n{assembly(shared(addresses(launches(text))))}\n{entries}\n'


def write(out: Path, text: str) -> None:
    """Writes the file unless it has that text already, so that nothing is rebuilt for it."""
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")


def main(source_dir: str, output_dir: str, names: list[str]) -> None:
    for name in names:
        path = Path(source_dir) / name
        text = translate(path.read_text(encoding="utf-8"), path)
        write(Path(output_dir) / name, text)
        if path.suffix == ".cu":
            write(Path(output_dir) / (name + ".cpp"), f'#include "{name}"\n')


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3][1:]).read_text(encoding="utf-8").split())
