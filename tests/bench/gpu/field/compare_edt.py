# SPDX-License-Identifier: Apache-2.0
"""Compares a dump of bench_field with edt and scikit-fmm (PyPI), and times them.

usage: compare_edt.py FILE X Y Z MAX_DISTANCE    (the sizes that bench_field prints)
"""

from __future__ import annotations

import sys
import time

import edt
import numpy as np
import skfmm


def timed(what: str, call: object) -> np.ndarray:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        found = call()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    print(f"{what}: {np.median(times) * 1e3:.0f} ms")
    return found


def main(path: str, *words: str) -> int:
    *size, reach = map(int, words)
    n = int(np.prod(size))
    raw = np.fromfile(path, np.uint8)
    obstacles = raw[:n].reshape(size).astype(bool)
    ours = raw[n:].view(np.int32).reshape(size)
    clear = np.ascontiguousarray(~obstacles).astype(np.uint8)
    for parallel in (1, 2):
        outside = timed(
            f"edt, threads: {parallel}", lambda p=parallel: edt.edtsq(clear, parallel=p)
        )
    inside = edt.edtsq(obstacles.astype(np.uint8))
    squares = np.where(obstacles, -inside, outside)
    squares[np.abs(squares) > reach * reach] = 0
    wrong = int((squares != ours).sum())
    print(f"{wrong} of {n} squares differ from edt's; {(ours != 0).sum()} are in reach")
    # It takes minutes for all, so it gets a corner, of which the middle counts.
    part = tuple(slice(0, min(n, 4 * reach)) for n in size)
    marched = skfmm.distance(np.where(obstacles[part], -0.5, 0.5))
    inner = tuple(slice(0, max(1, min(n, 4 * reach) - reach)) for n in size)
    near = (ours[inner] > 0) & ~obstacles[inner]
    apart = np.abs(marched[inner][near] - (np.sqrt(ours[inner][near]) - 0.5))
    print(f"scikit-fmm: at most {apart.max():.2f} voxels apart, {apart.mean():.3f} on average")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
