# SPDX-License-Identifier: Apache-2.0
"""How the scans of a scene meet what it has: the last word, or log-odds."""

from __future__ import annotations

import dataclasses

from voxeld.v1 import scene_pb2

from .errors import InvalidArgument

FUSIONS = ("", "last", "log-odds")


@dataclasses.dataclass(frozen=True)
class LogOdds:
    """Probabilities of a scene that fuses by log-odds; 0: OctoMap's (0.7, 0.4, 0.1192, 0.971,
    0.5).

    hit, miss   of a voxel that a point hits, and of one that a ray passes
    clamp_low, clamp_high  a voxel's probability stays between these
    occupied    from here on a voxel is occupied
    step, error  in what comes out: log-odds of a step of the server's 8-bit numbers, and the
                 largest relative error of the five, at most 0.01
    label_votes  a voxel's material is that of most of its last so many scans that hit it, 2 to 4;
                 0: of the last hit
    """

    hit: float = 0.0
    miss: float = 0.0
    clamp_low: float = 0.0
    clamp_high: float = 0.0
    occupied: float = 0.0
    step: float = 0.0
    error: float = 0.0
    label_votes: int = 0


def fusion_of(name: str) -> int:
    if name not in FUSIONS:
        raise InvalidArgument(f"{name!r}; one of 'last', 'log-odds'", "fusion")
    return FUSIONS.index(name)


def log_odds_of(odds: LogOdds | None) -> scene_pb2.SceneLogOdds | None:
    if odds is None:
        return None
    try:
        return scene_pb2.SceneLogOdds(
            hit=odds.hit, miss=odds.miss, clamp_low=odds.clamp_low,
            clamp_high=odds.clamp_high, occupied=odds.occupied, label_votes=odds.label_votes,
        )  # fmt: skip
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), "log_odds") from None
