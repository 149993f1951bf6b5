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
# By how a member's name ends.
UNITS = {"_m": "m", "_ms": "ms", "_s": "s", "_deg": "degrees", "_hz": "Hz"}
BYTES = ("B", "kB", "MB", "GB", "TB")
# Arrays of metres, in whatever record.
METRES = ("vertices",)


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


def bytes_of(n: float) -> str:
    """Bytes as "1.2 MB"."""
    unit = 0
    while n >= 999.5 and unit + 1 < len(BYTES):
        n /= 1000
        unit += 1
    return f"{n:.3g} {BYTES[unit]}"


def with_unit(name: str, value: Any) -> str:
    """The text of a member with the unit that its name says."""
    text = text_of(value)
    if isinstance(value, bool) or value is None:
        return text
    if name in METRES and isinstance(value, np.ndarray):
        return f"{text}, m"
    if not isinstance(value, int | float | tuple):
        return text
    if name.endswith("bytes") and isinstance(value, int):
        return bytes_of(value)
    unit = next((UNITS[end] for end in UNITS if name.endswith(end)), "")
    if name in ("voxel_size", "size") and not isinstance(value, int):
        unit = "m"
    return f"{text} {unit}".rstrip()


def members_of(record: Any) -> list[tuple[str, str]]:
    """The names and texts of a record's members, without those that are None."""
    values = [(f.name, getattr(record, f.name)) for f in dataclasses.fields(record)]
    return [(name, with_unit(name, value)) for name, value in values if value is not None]


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


def show_all(kinds: Iterable[Any]) -> None:
    """Gives records that are not shown otherwise a table for notebooks, and those with times and
    bytes a repr with units."""
    for kind in kinds:
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            continue
        if "_repr_html_" in kind.__dict__ or "_repr_png_" in kind.__dict__:
            continue
        kind._repr_html_ = html_of  # type: ignore[attr-defined]
        names = [f.name for f in dataclasses.fields(kind)]
        if any(name.endswith(("_ms", "_bytes", "_ns")) for name in names):
            kind.__repr__ = repr_of  # type: ignore[assignment]


def handle_html(handle: Any) -> str:
    """The table of a handle on a named object: what is known without asking the server."""
    known = [(name, value) for name, value in vars(handle).items() if not name.startswith("_")]
    rows = [(name, with_unit(name, value)) for name, value in known if value is not None]
    return table_of(type(handle).__name__, [*rows, ("at", handle._client.url)])


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
