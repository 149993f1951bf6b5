# SPDX-License-Identifier: Apache-2.0
"""How the scans of a scene meet what it has: the last word, or log-odds."""

from __future__ import annotations

from voxeld.v1 import scene_pb2

from ..errors import InvalidArgument
from ..generated.scene_records import LogOdds

FUSIONS = ("", "last", "log-odds")


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
