# SPDX-License-Identifier: Apache-2.0
"""Docstrings of the Python package: the schema's comments, and what its options say beside."""

from __future__ import annotations

import re
import textwrap

from model import Field, Schema

WIDTH = 100
UNITS = {"m": "metres", "deg": "degrees", "voxels": "voxels"}


def class_of(code: str) -> str:
    """ALREADY_EXISTS as AlreadyExists."""
    return code.title().replace("_", "")


def without_http(comment: str) -> str:
    """A message's comment without what concerns HTTP alone."""
    comment = re.sub(r"HTTP: POST (or GET )?\S+( or GET \S+)?(?<=\w)\.", "", comment)
    return " ".join(re.sub(r"Scope \w+\.", "", comment).split())


def filled(text: str, indent: str, hanging: str | None = None) -> str:
    return textwrap.fill(
        text,
        WIDTH - 4,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(rows: list[tuple[str, str]], indent: str) -> list[str]:
    """Names and what they are, in two columns."""
    width = max((len(name) for name, _ in rows), default=0) + 2
    return [
        filled(f"{name.ljust(width)}{text}", indent, indent + " " * width).rstrip()
        for name, text in rows
    ]


def docstring(paragraphs: list[str], rows: list[tuple[str, str]], after: str, indent: str) -> str:
    blocks = [filled(p, indent) for p in paragraphs if p]
    if rows:
        blocks.append("\n".join(table(rows, indent)))
    if after:
        blocks.append(filled(after, indent))
    text = "\n\n".join(blocks).strip()
    one_line = "\n" not in text and len(indent) + len(text) + 6 <= WIDTH
    end = '"""' if one_line or not rows else f'\n{indent}"""'
    if one_line or (not rows and len(text.splitlines()[-1]) + 3 <= WIDTH):
        end = '"""'
    return f'{indent}"""{text}{end}'


def sentence(f: Field, comment: str) -> str:
    """A field's comment, and what the options say beside it."""
    is_name = re.match(r"\w+[A-Z]|[A-Z]{2}", comment)
    words = [comment if is_name else comment[:1].lower() + comment[1:]]
    if not comment and f.shape:
        words = [" x ".join(f.shape)]
    unit = UNITS.get(f.unit, "")
    if unit and unit not in comment:
        words.append(unit)
    if f.range is not None and not f.is_tensor and f"{f.range.high:g}" not in comment:
        words.append(f.range.words())
    default = f.option.default
    if default and default != "*" and not re.search(r"0 =|counts as|Empty|none =", comment):
        words.append(f"None: {default}" if f.is_message else f"0: {default}")
    return "; ".join(w if w.endswith("...") else w.removesuffix(".") for w in words if w)


def own_comment(schema: Schema, f: Field) -> str:
    """The comment; that of the message which it refers to where it says "As in" that one."""
    match = re.match(r"As in (\w+)", f.comment)
    if match and match[1] in schema.messages and schema.messages[match[1]].has(f.name):
        return schema.messages[match[1]].field(f.name).comment
    return f.comment
