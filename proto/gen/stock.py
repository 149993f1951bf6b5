# SPDX-License-Identifier: Apache-2.0
"""The schema without our options: what protoc-c, other languages and the clients compile. It is
the annotated text with the options cut out, so comments and layout stay."""

from __future__ import annotations

import re

import model

IMPORT = 'import "voxeld/v1/options.proto";\n'


def end_of(text: str, start: int, opening: str, closing: str) -> int:
    """Just behind the bracket that closes the one at start; strings are skipped."""
    depth = 0
    i = start
    while i < len(text):
        c = text[i]
        if c in "\"'":
            i = text.index(c, i + 1)
        elif c == opening:
            depth += 1
        elif c == closing:
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    raise ValueError(f"no {closing} for the {opening} at {start}")


def without_field_options(text: str) -> str:
    at = text.find(" [")
    while at >= 0:
        if re.match(r" \[\s*\((\.voxeld\.v1\.)?field\)", text[at:]):
            text = text[:at] + text[end_of(text, at + 1, "[", "]") :]
            at -= 1
        at = text.find(" [", at + 1)
    return text


def without_method_options(text: str) -> str:
    head = "  option (method) = "
    at = text.find(head)
    while at >= 0:
        end = end_of(text, at + len(head), "{", "}")
        rest = text[end:].removeprefix(";").removeprefix("\n")
        if rest.startswith("}") and text[:at].endswith("{\n"):  # nothing else was in it
            text = text[: at - 1] + rest
        else:
            text = text[:at] + rest
        at = text.find(head)
    return text


def stock(text: str) -> str:
    text = without_method_options(without_field_options(text.replace(IMPORT, "")))
    text = re.sub(r"option \(file\)\.\w+ = \"[^\"]*\";\n", "", text)
    return re.sub(r"\n{3,}", "\n\n", text)


def outputs() -> dict[str, str]:
    """Path from the repository's root -> content."""
    return {
        f"proto/voxeld/v1/{name}.proto": stock((model.FOLDER / f"{name}.proto").read_text())
        for name in model.FILES
    }
