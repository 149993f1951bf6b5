#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares blocks that bench_volume integrated with the same in float64 by NumPy:

    bench_volume --frames F --n 15 --dump D && check_volume.py F D 15

Every voxel of every block, but for those whose projection is so near to the border of two pixels,
or whose block is touched so narrowly, that float32 may decide otherwise: these are counted. The
exit status is 1 where a voxel is off by more than 1e-5 of the truncation, where more than 1e-4 of
the voxels differ at ties, or where the sets of blocks differ.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np

EDGE = 8
BORDER = 1e-4  # pixels from the border of two
SLACK = 1e-5  # blocks
NEAR_M, FAR_M = 0.2, 3.0


class Frames:
    def __init__(self, path: str) -> None:
        self.data = Path(path).read_bytes()
        words = self.data[: self.data.index(b"\n")].split()
        self.n, self.width, self.height = (int(w) for w in words[1:4])
        self.fx, self.fy, self.cx, self.cy = (float(w) for w in words[4:8])
        self.start = self.data.index(b"\n") + 1

    def frame(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        n = self.width * self.height
        at = self.start + i * (128 + 5 * n)
        pose = np.frombuffer(self.data, "<f8", 16, at).reshape(4, 4)
        raw = np.frombuffer(self.data, "<u2", n, at + 128).reshape(self.height, self.width)
        z = np.where(raw == 65535, 0, raw) / 1000.0
        return pose, np.where((z >= NEAR_M) & (z <= FAR_M), z, 0)


def code(keys: np.ndarray) -> np.ndarray:
    k = keys.astype(np.int64) + (1 << 20)
    return k[..., 0] << 42 | k[..., 1] << 21 | k[..., 2]


def touched(f: Frames, pose: np.ndarray, z: np.ndarray, mu: float, block: float) -> list:
    """Codes of the blocks that rays surely meet within mu of the depth, and of those in doubt."""
    v, u = np.nonzero(z > 0)
    d = z[v, u][:, None]
    ray = np.stack([(u - f.cx) / f.fx, (v - f.cy) / f.fy, np.ones(len(u))], axis=1)
    ends = [(ray * t @ pose[:3, :3].T + pose[:3, 3]) / block for t in (d - mu, d + mu)]
    low = np.floor(np.minimum(*ends)).astype(np.int64)
    n = np.floor(np.maximum(*ends)).astype(np.int64) - low
    step = ends[1] - ends[0]
    answers: list[list[np.ndarray]] = [[], []]
    for offset in product(range(n[:, 0].max() + 1), range(n[:, 1].max() + 1),
                          range(n[:, 2].max() + 1)):  # fmt: skip
        mine = np.all(n >= offset, axis=1)
        key, a, s = low[mine] + offset, ends[0][mine], step[mine]
        for answer, grow in zip(answers, (-SLACK, SLACK), strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                t0, t1 = (key - grow - a) / s, (key + 1 + grow - a) / s
            first = np.maximum(np.minimum(t0, t1).max(axis=1), 0)
            last = np.minimum(np.maximum(t0, t1).min(axis=1), 1)
            answer.append(np.unique(code(key[first <= last])))
    sure, maybe = (np.unique(np.concatenate(a)) for a in answers)
    return [sure, np.setdiff1d(maybe, sure)]


def main() -> int:
    f, n_frames = Frames(sys.argv[1]), int(sys.argv[3])
    dump = Path(sys.argv[2]).read_bytes()
    words = dump[: dump.index(b"\n")].split()
    n, size, mu = int(words[1]), float(words[2]), float(words[3])
    at, n_voxels = dump.index(b"\n") + 1, EDGE**3
    keys = np.frombuffer(dump, "<i4", 3 * n, at).reshape(n, 3)
    got = np.frombuffer(dump, "<f4", n_voxels * n, at + 12 * n).reshape(n, n_voxels)
    got_w = np.frombuffer(dump, "<f4", n_voxels * n, at + (12 + 4 * n_voxels) * n)
    codes = code(keys)
    index = np.arange(n_voxels)
    local = np.stack([index % EDGE, index // EDGE % EDGE, index // EDGE**2], axis=1)
    value, weight = np.zeros((n, n_voxels)), np.zeros((n, n_voxels))
    tie, seen = np.zeros((n, n_voxels), bool), np.zeros(n, bool)
    missing = 0
    for i in range(n_frames):
        pose, z = f.frame(i)
        sure, doubt = touched(f, pose, z, mu, EDGE * size)
        mine = np.isin(codes, sure)
        tie[np.isin(codes, doubt)] = True
        missing += len(np.setdiff1d(sure, codes))
        seen |= mine | np.isin(codes, doubt)
        which = np.nonzero(mine)[0]
        p = (keys[which][:, None, :] * EDGE + local + 0.5) * size
        c = (p - pose[:3, 3]) @ pose[:3, :3]
        with np.errstate(divide="ignore", invalid="ignore"):
            u = f.fx * c[..., 0] / c[..., 2] + f.cx + 0.5
            v = f.fy * c[..., 1] / c[..., 2] + f.cy + 0.5
        inside = (c[..., 2] > 0) & (u >= 0) & (v >= 0) & (u < f.width) & (v < f.height)
        near = (np.abs(u - np.rint(u)) < BORDER) | (np.abs(v - np.rint(v)) < BORDER)
        pu, pv = (np.where(inside, np.floor(x), 0).astype(int) for x in (u, v))
        depth = np.where(inside, z[pv, pu], 0)
        d = (depth - c[..., 2]) / mu
        use = (depth > 0) & (d >= -1)
        tie[which] |= near | ((depth > 0) & (np.abs(d + 1) < 2e-5))
        w = weight[which]
        value[which] = np.where(use, (value[which] * w + np.minimum(d, 1)) / (w + 1), value[which])
        weight[which] = w + use
    off = np.abs(got - value)
    wrong = (off > 1e-5) | (got_w.reshape(n, n_voxels) != weight)
    n_wrong, n_ties = int((wrong & ~tie).sum()), int((wrong & tie).sum())
    known = (weight > 0) & ~tie
    print(f"{n} blocks, {n_frames} frames, {int((weight > 0).sum())} voxels observed; bounds "
          f"{' x '.join(str(v) for v in (np.ptp(keys, axis=0) + 1) * EDGE)} voxels")  # fmt: skip
    print(f"off by at most {off[known].max():.2e} of the truncation, mean {off[known].mean():.1e}; "
          f"{n_wrong} voxels wrong, {n_ties} ({n_ties / weight.size:.1e}) at ties; "
          f"{missing} blocks missing, {int((~seen).sum())} too many")  # fmt: skip
    bad = n_wrong > 0 or n_ties > 1e-4 * weight.size or missing > 0 or not seen.all()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
