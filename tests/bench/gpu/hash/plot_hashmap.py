#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what bench_hashmap --csv wrote: ASH's Figures 5, 6 and 8 (time over the size of a
value, both indices) from set-up 1, and Figure 7 (time over uniqueness) from set-up 2.

    bench_hashmap --backend cuda --part all --csv hashmap.csv
    plot_hashmap.py hashmap.csv hashmap.png

Drawing needs matplotlib (made with 3.10.3: pip install matplotlib==3.10.3); nothing else of
the project does."""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from pathlib import Path

OPERATIONS = ("insert any", "insert first", "activate", "find")
STYLES = {"open": "-", "slab": "--"}


@dataclass(frozen=True)
class Row:
    """One measured batch."""

    setup: int
    index: str
    operation: str
    capacity: int
    value_bytes: int
    uniqueness: float
    ms: float


def read_rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        rows = [
            Row(
                int(row["setup"]),
                row["index"],
                row["operation"],
                int(row["capacity"]),
                int(row["value_bytes"]),
                float(row["uniqueness"]),
                float(row["ms"]),
            )
            for row in csv.DictReader(file)
        ]
    if not rows:
        raise ValueError(f"{path}: no rows")
    return rows


def panels_of(rows: list[Row]) -> list[tuple[str, int, float | None]]:
    """A panel line for each uniqueness of set-up 1, and one for set-up 2."""
    panels: list[tuple[str, int, float | None]] = [
        (f"set-up 1, int3 keys, {ratio:g} unique", 1, ratio)
        for ratio in sorted({row.uniqueness for row in rows if row.setup == 1})
    ]
    if any(row.setup == 2 for row in rows):
        panels.append(("set-up 2, int keys, one float32", 2, None))
    return panels


def draw(rows: list[Row], title: str, out: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    panels = panels_of(rows)
    figure, axes = pyplot.subplots(
        len(panels), len(OPERATIONS), figsize=(4.5 * len(OPERATIONS), 4 * len(panels)),
        squeeze=False,
    )  # fmt: skip
    capacities = sorted({row.capacity for row in rows})
    for line, (name, setup, ratio) in enumerate(panels):
        for column, operation in enumerate(OPERATIONS):
            panel = axes[line][column]
            for index, style in STYLES.items():
                for color, capacity in enumerate(capacities):
                    points = sorted(
                        (row.value_bytes if setup == 1 else row.uniqueness, row.ms)
                        for row in rows
                        if (row.setup, row.index, row.operation, row.capacity)
                        == (setup, index, operation, capacity)
                        and ratio in (None, row.uniqueness)
                    )
                    if points:
                        panel.plot(
                            *zip(*points, strict=True), style, color=f"C{color}",
                            marker=".", label=f"{index}, {capacity:,}",
                        )  # fmt: skip
            panel.set_yscale("log")
            if setup == 1:
                panel.set_xscale("log", base=2)
            panel.set_xlabel("bytes of a value" if setup == 1 else "unique keys / keys")
            panel.set_ylabel("ms")
            panel.set_title(f"{operation}\n{name}", fontsize="small")
            panel.grid(visible=True, alpha=0.3)
    figure.suptitle(title)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.legend(
        *axes[0][0].get_legend_handles_labels(),
        fontsize="small", loc="lower center", ncols=len(capacities),
    )  # fmt: skip
    figure.savefig(out, dpi=80)


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws what bench_hashmap --csv wrote.")
    parser.add_argument("csv", type=Path)
    parser.add_argument("png", type=Path)
    parser.add_argument("--title", default="Hash maps of voxeld in ASH's set-ups")
    arguments = parser.parse_args()
    try:
        draw(read_rows(arguments.csv), arguments.title, arguments.png)
    except (OSError, KeyError, ValueError) as error:
        print(f"plot_hashmap.py: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"plot_hashmap.py: {error}: pip install matplotlib==3.10.3", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
