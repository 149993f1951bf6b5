# SPDX-License-Identifier: Apache-2.0
"""Triangle meshes into scenes."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from voxeld.v1 import mesh_pb2

from ..errors import InvalidArgument
from ..exchange import metres_of, tensor_of
from .fields import SceneFields, number_of
from .records import message_of

RULES = ("conservative", "thin")


@dataclasses.dataclass(frozen=True)
class MeshImported:
    """What the triangles of a mesh did, in voxels.

    version         of the scene after the change
    n_added         voxels that are occupied now and were not before
    n_changed       voxels of another material
    n_voxels        set by triangles; a voxel that two of them set counts twice
    n_outside       triangles of which no part is in the scene
    n_non_finite    triangles with a vertex that is not finite
    """

    version: int
    n_added: int
    n_changed: int
    n_new_nodes: int
    n_voxels: int
    n_outside: int
    n_non_finite: int
    engine_ms: float
    replayed: bool


class SceneMeshes(SceneFields):
    """The calls of Scene on meshes."""

    def import_mesh(
        self,
        vertices: npt.ArrayLike,
        triangles: npt.ArrayLike,
        material: int = 0,
        *,
        materials: npt.ArrayLike | None = None,
        colours: npt.ArrayLike | None = None,
        rule: str = "conservative",
        in_voxels: bool = False,
        if_version: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> MeshImported:
        """Fills the voxels that triangles meet, as one change.

        vertices    n x 3, metres (or voxels from the low corner, with in_voxels)
        triangles   m x 3, rows of vertices
        materials   m, of each triangle, instead of one material
        colours     n x 3, 0 to 255, of each vertex: a triangle takes the palette's nearest colour
        rule        "conservative": the voxels whose cube a triangle meets; "thin": those in which
                    it meets an axis through the centre
        """
        message = message_of(
            mesh_pb2.SceneImportMeshRequest, "if_version",
            name=self.name, material=material, in_voxels=in_voxels, if_version=if_version,
            rule=number_of(rule, RULES, "rule"),
        )  # fmt: skip
        rows = np.asarray(triangles)
        if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
            raise InvalidArgument("m x 3 integers are right", "triangles")
        parts = tensor_of(message.VERTICES_FIELD_NUMBER, metres_of(vertices, "vertices", 3))
        parts += tensor_of(message.TRIANGLES_FIELD_NUMBER, rows.astype("<i8"))
        if materials is not None:
            values = np.asarray(materials)
            if values.dtype.kind not in "iu" or values.shape != rows.shape[:1]:
                raise InvalidArgument("an integer for each triangle is right", "materials")
            if len(values) > 0 and not 0 <= values.min() <= values.max() < 65536:
                raise InvalidArgument("materials are 0 to 65535", "materials")
            parts += tensor_of(message.MATERIALS_FIELD_NUMBER, values.astype("<u2"))
        if colours is not None:
            rgb = np.asarray(colours)
            if rgb.dtype.kind not in "iu" or rgb.shape != np.asarray(vertices).shape:
                raise InvalidArgument("three integers for each vertex are right", "colours")
            if rgb.size > 0 and not 0 <= rgb.min() <= rgb.max() < 256:
                raise InvalidArgument("colours are 0 to 255", "colours")
            parts += tensor_of(message.COLOURS_FIELD_NUMBER, rgb.astype("|u1"))
        number = self._client._numbered(sequence)
        reply = self._exchange("scene_import_mesh", message, parts, timeout, request_id, number)
        with reply:
            made = reply.message
            names = (f.name for f in dataclasses.fields(MeshImported) if f.name != "replayed")
            return MeshImported(**{n: getattr(made, n) for n in names}, replayed=reply.replayed)
