# SPDX-License-Identifier: Apache-2.0
"""Prints the public names of the package voxeld, one a line: names.py runs it."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
from collections.abc import Callable, Iterator

import voxeld

PROTOCOL = {f"__{n}__" for n in "call contains enter exit getitem iter len".split()}


def parameters(function: Callable[..., object]) -> str:
    """Prints names, kinds and plain defaults, without annotations."""
    shown = []
    seen_star = False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not seen_star:
            shown.append("*")
        seen_star = seen_star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = ""
        if p.default is not p.empty:
            is_plain = p.default is None or type(p.default) in (bool, int, float, str, tuple)
            default = f"={p.default!r}" if is_plain else "=..."
        shown.append(star + p.name + default)
    return f"({', '.join(shown)})"


def of_class(name: str, kind: type) -> Iterator[str]:
    bases = ", ".join(b.__name__ for b in kind.__bases__)
    yield f"class {name}({bases})"
    if issubclass(kind, enum.Enum):
        yield from (f"{name}.{n} = {m.value!r}" for n, m in kind.__members__.items())
    elif dataclasses.is_dataclass(kind):
        yield f"{name}{parameters(kind)}"
        yield from (f"{name}.{f.name}" for f in dataclasses.fields(kind))
    elif "__init__" in vars(kind):
        yield f"{name}.__init__{parameters(kind.__init__)}"
    for base in kind.__mro__:
        if not base.__module__.startswith("voxeld"):
            continue
        for member in vars(base):
            if member.startswith("_") and member not in PROTOCOL:
                continue
            value = inspect.getattr_static(kind, member)
            if isinstance(value, classmethod | staticmethod):
                yield f"{name}.{member}{parameters(value.__func__)} {type(value).__name__}"
            elif inspect.isfunction(value):
                yield f"{name}.{member}{parameters(value)}"
            elif not issubclass(kind, enum.Enum):
                yield f"{name}.{member}"
        for member in inspect.get_annotations(base):
            if not member.startswith("_"):
                yield f"{name}.{member}"


def main() -> None:
    for name, value in vars(voxeld).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        if inspect.isclass(value):
            print("\n".join(of_class(name, value)))
        elif inspect.isfunction(value):
            print(f"{name}{parameters(value)}")
        elif getattr(value, "__module__", "") != "__future__":
            print(name)


if __name__ == "__main__":
    main()
