# SPDX-License-Identifier: Apache-2.0
"""What the reply to a change of a durable scene or map promises."""

from __future__ import annotations

from voxeld.v1 import hashmap_pb2, scene_pb2

from .errors import InvalidArgument

FSYNCS = ("always", "everysec", "off")


def fsync_of(number: int) -> str:
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


def set_map_durability(
    message: hashmap_pb2.MapCreateRequest, durable: str | None, journal_max_bytes: int
) -> None:
    """Sets in the request how the map is kept."""
    if durable is None:
        if journal_max_bytes:
            raise InvalidArgument("goes with durable", "journal_max_bytes")
        return
    if durable not in FSYNCS:
        raise InvalidArgument(f"{durable!r}; one of {', '.join(FSYNCS)}", "durable")
    message.durable = True
    message.fsync = hashmap_pb2.MapFsync.Value(f"MAP_FSYNC_{durable.upper()}")
    try:
        message.journal_max_bytes = journal_max_bytes
    except (TypeError, ValueError) as e:
        raise InvalidArgument(str(e), "journal_max_bytes") from None
