#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the sweep that bench_load --csv wrote: latency percentiles and throughput over the
load, a column of panels for each method.

    bench_load --concurrency 1,2,4,8 --csv load.csv
    plot_load.py load.csv load.png

Drawing needs matplotlib (made with 3.10.3: pip install matplotlib==3.10.3); nothing else of
the project does."""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass, field
from pathlib import Path

PERCENTILES = {"p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9", "max": "max"}


@dataclass
class Curve:
    """One method over the steps of a sweep."""

    method: str
    loop: str
    load: list[float] = field(default_factory=list)  # clients, or requests a second
    ok_per_s: list[float] = field(default_factory=list)
    failed_per_s: list[float] = field(default_factory=list)
    latency_ms: dict[str, list[float]] = field(default_factory=dict)
    overhead_ms: dict[str, list[float]] = field(default_factory=dict)


def read_curves(path: Path) -> list[Curve]:
    """Returns the methods in the file's order; "all" comes last where there are several."""
    curves: dict[str, Curve] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            curve = curves.setdefault(row["method"], Curve(row["method"], row["loop"]))
            is_open = row["loop"] == "open"
            curve.load.append(float(row["rate"] if is_open else row["concurrency"]))
            curve.ok_per_s.append(float(row["ok_per_s"]))
            seconds = float(row["seconds"])
            curve.failed_per_s.append(float(row["failed"]) / seconds if seconds else 0.0)
            for name in PERCENTILES:
                curve.latency_ms.setdefault(name, []).append(float(row[f"latency_{name}_ms"]))
                curve.overhead_ms.setdefault(name, []).append(
                    float(row[f"overhead_{name}_ms"])
                )
    if not curves:
        raise ValueError(f"{path}: no rows")
    return list(curves.values())


def draw(curves: list[Curve], title: str, out: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        2, len(curves), figsize=(5.5 * len(curves), 8), sharex="col", squeeze=False
    )
    for column, curve in enumerate(curves):
        times, counts = panels[0][column], panels[1][column]
        for name, label in PERCENTILES.items():
            times.plot(curve.load, curve.latency_ms[name], marker="o", label=label)
        if any(curve.overhead_ms["p50"]):
            times.plot(
                curve.load, curve.overhead_ms["p50"], linestyle="--", color="gray",
                label="p50 without the engine",
            )  # fmt: skip
        if any(value > 0 for values in curve.latency_ms.values() for value in values):
            times.set_yscale("log")
        times.set_title(curve.method)
        times.set_ylabel("latency, ms")
        counts.plot(curve.load, curve.ok_per_s, marker="o", label="OK")
        if any(curve.failed_per_s):
            counts.plot(curve.load, curve.failed_per_s, marker="x", label="failed")
        is_open = curve.loop == "open"
        counts.set_xlabel("requests a second, offered" if is_open else "clients")
        counts.set_ylabel("answers a second")
        for panel in (times, counts):
            panel.grid(visible=True, alpha=0.3)
            panel.legend(fontsize="small")
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws what bench_load --csv wrote.")
    parser.add_argument("csv", type=Path)
    parser.add_argument("png", type=Path)
    parser.add_argument("--title", default="voxeld under load")
    arguments = parser.parse_args()
    try:
        curves = read_curves(arguments.csv)
        draw(curves, arguments.title, arguments.png)
    except (OSError, KeyError, ValueError) as error:
        print(f"plot_load.py: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"plot_load.py: {error}: pip install matplotlib==3.10.3", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
