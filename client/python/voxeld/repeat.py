# SPDX-License-Identifier: Apache-2.0
"""Repeating calls that change something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .errors import DeadlineExceeded, Unavailable

Result = TypeVar("Result")

FIRST_WAIT_S = 0.01
LONGEST_WAIT_S = 0.5


def repeat(call: Callable[[int], Result], seconds: float) -> Result:
    """Calls call(0), and after DeadlineExceeded and Unavailable again with the sequence of the
    first one, for at most seconds after that had ended: so it takes effect at most once. What the
    server has given up at its deadline is not repeated, since it would not be in time again.

    call  gets the sequence to hand on: lambda n: seen.insert(keys, sequence=n)

    Raises what the last call raised. Between calls after Unavailable it waits 10 to 500 ms,
    ever longer. The last call may end its own timeout later.
    """
    sequence = 0
    until: float | None = None
    wait_s = FIRST_WAIT_S
    while True:
        try:
            return call(sequence)
        except (DeadlineExceeded, Unavailable) as e:
            now = time.monotonic()
            until = now + seconds if until is None else until
            pause_s = wait_s if isinstance(e, Unavailable) else 0.0
            given_up = isinstance(e, DeadlineExceeded) and e.field == "header.timeout_ms"
            if given_up or not e.sequence or now + pause_s >= until:
                raise
            sequence = e.sequence
        if pause_s:
            time.sleep(pause_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
