# SPDX-License-Identifier: Apache-2.0
"""How results look at a prompt and in a notebook: sizes and units in place of numbers."""

from __future__ import annotations

import dataclasses
import difflib
import html
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Value = TypeVar("Value")

MOST_ITEMS = 4  # of a list that is shown whole


def text_of(value: Any) -> str:
    """An array as "float32 125565 x 3", a long list by its length, anything else as it is."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {' x '.join(map(str, value.shape)) or 'scalar'}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {text_of(v)}" for name, v in value.items()) + "}"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes"
    if isinstance(value, list | tuple) and len(value) > MOST_ITEMS:
        return f"{len(value)} x {type(value[0]).__name__}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return repr(value)


def members_of(record: Any) -> list[tuple[str, str]]:
    """The names and texts of a record's members, without those that are None."""
    values = [(f.name, getattr(record, f.name)) for f in dataclasses.fields(record)]
    return [(name, text_of(value)) for name, value in values if value is not None]


def table_of(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """An HTML table for a notebook."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in rows
    )
    return f"<table><caption>{html.escape(title)}</caption>{cells}</table>"


def repr_of(record: Any) -> str:
    members = ", ".join(f"{name}={text}" for name, text in members_of(record))
    return f"{type(record).__name__}({members})"


def html_of(record: Any) -> str:
    return table_of(type(record).__name__, members_of(record))


def shown(kind: type[T]) -> type[T]:
    """Gives a dataclass with arrays a repr with their sizes, and a table for notebooks."""
    kind.__repr__ = repr_of  # type: ignore[method-assign, assignment]
    kind._repr_html_ = html_of  # type: ignore[attr-defined]
    return kind


class Named(dict[str, Value]):
    """A dict by name whose KeyError says which names there are."""

    def __init__(self, values: Iterable[tuple[str, Value]], what: str) -> None:
        super().__init__(values)
        self._what = what

    def __missing__(self, name: object) -> Value:
        raise KeyError(missing(self._what, name, self))


def missing(what: str, name: object, names: Iterable[str]) -> str:
    """Says that there is no `name`, what there is, and what may have been meant."""
    known = list(names)
    close = difflib.get_close_matches(str(name), known, 1)
    meant = f". Did you mean {close[0]!r}?" if close else ""
    return f"no {what} {name!r}; there are: {', '.join(known) or 'none'}{meant}"
