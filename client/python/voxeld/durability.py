# SPDX-License-Identifier: Apache-2.0
"""What the reply to a change of a durable scene promises."""

from __future__ import annotations

from voxeld.v1 import scene_pb2

from .errors import InvalidArgument

FSYNCS = ("always", "everysec", "off")


def durable_of(message: scene_pb2.SceneDurability) -> str:
    """Which promise it makes."""
    number = message.fsync
    return FSYNCS[number] if 0 <= number < len(FSYNCS) else str(number)


def durability_of(
    durable: str | None, journal_max_bytes: int
) -> scene_pb2.SceneDurability | None:
    if durable is None:
        if journal_max_bytes:
            raise InvalidArgument("goes with durable", "journal_max_bytes")
        return None
    if durable not in FSYNCS:
        raise InvalidArgument(f"{durable!r}; one of {', '.join(FSYNCS)}", "durable")
    try:
        return scene_pb2.SceneDurability(
            fsync=f"SCENE_FSYNC_{durable.upper()}", journal_max_bytes=journal_max_bytes
        )
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), "journal_max_bytes") from None
