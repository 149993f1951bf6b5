# SPDX-License-Identifier: Apache-2.0
"""Which materials a network's labels become in a scene."""

from __future__ import annotations

from collections.abc import Mapping

from voxeld.v1 import scene_pb2

from ..errors import InvalidArgument

# A label: its number, or its name in the network's config. A material: its number, its name in
# the scene's palette, or None.
Labels = Mapping[int | str, int | str | None]


def labels_of(labels: Labels | None) -> list[scene_pb2.SceneLabel]:
    entries = []
    for label, material in (labels or {}).items():
        material = -1 if material is None else material
        entry = scene_pb2.SceneLabel()
        try:
            setattr(entry, "label_name" if isinstance(label, str) else "label", label)
            setattr(entry, "material_name" if isinstance(material, str) else "material", material)
        except (TypeError, ValueError) as e:
            raise InvalidArgument(f"{label!r}: {material!r}: {e}", "labels") from None
        entries.append(entry)
    return entries
