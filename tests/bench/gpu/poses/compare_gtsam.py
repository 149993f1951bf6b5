# SPDX-License-Identifier: Apache-2.0
"""Optimizes a g2o file with GTSAM, beside bench_posegraph: the same cost, time and CPU time.

    pip install gtsam && compare_gtsam.py FILE.g2o [RUNS]

The first pose is held by a strong prior. GTSAM begins at the file's poses, or (chordal) at its own
InitializePose3; both times are from the loaded graph to the poses, with Levenberg and Marquardt's
defaults (relative tolerance 1e-5)."""

from __future__ import annotations

import sys
import time

import gtsam
import numpy as np


def main() -> int:
    graph, initial = gtsam.readG2o(sys.argv[1], True)
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    held = gtsam.noiseModel.Diagonal.Variances(np.full(6, 1e-12))
    graph.add(gtsam.PriorFactorPose3(0, initial.atPose3(0), held))
    for name in ("file's poses", "chordal"):
        best = None
        for _ in range(runs):
            wall, cpu = time.perf_counter(), time.process_time()
            start = initial if name != "chordal" else gtsam.InitializePose3.initialize(graph)
            optimizer = gtsam.LevenbergMarquardtOptimizer(graph, start)
            result = optimizer.optimize()
            spent = (time.perf_counter() - wall, time.process_time() - cpu)
            best = spent if best is None or spent < best else best
        print(
            f"GTSAM from the {name}: cost {2 * graph.error(result):.8g} in "
            f"{optimizer.iterations()} steps, best of {runs}: {1e3 * best[0]:.1f} ms, "
            f"CPU {1e3 * best[1]:.1f} ms"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
