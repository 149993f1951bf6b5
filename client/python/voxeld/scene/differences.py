# SPDX-License-Identifier: Apache-2.0
"""What sets of differences between versions are made of."""

from __future__ import annotations

import enum


class Difference(enum.IntFlag):
    """How some voxel of a cell changed. CHANGED: it has another material; UNFREED: it was free."""

    ADDED = 1
    REMOVED = 2
    CHANGED = 4
    FREED = 8
    UNFREED = 16
