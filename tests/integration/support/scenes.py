# SPDX-License-Identifier: Apache-2.0
"""Scenes for the tests: a client of their methods over nng, and the oracle, a dense grid."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
from harness import (
    OK,
    Daemon,
    Rpc,
    array_of,
    common_pb2,
    history_pb2,
    rpc_pb2,
    scene_pb2,
    scene_upkeep_pb2,
    scene_version_pb2,
    tensor_of,
)

UNIT = 256
UNKNOWN, OCCUPIED, FREE = 1, 2, 4


class Scenes:
    """One client of a daemon; numbers what changes something by itself."""

    def __init__(self, daemon: Daemon, client_id: str = "", token: str = "") -> None:
        self.rpc = Rpc(daemon.ipc)
        self.client_id = client_id or f"t-{os.urandom(6).hex()}"
        self.token = token
        self.sequence = itertools.count(1)

    def __enter__(self) -> Scenes:
        return self

    def __exit__(self, *_: object) -> None:
        self.rpc.socket.close()

    def send(self, method: str, sequence: int = 0, **fields: Any) -> rpc_pb2.Response:
        name = "".join(p.title() for p in method.split("_")) + "Request"
        modules = (scene_pb2, scene_version_pb2, scene_upkeep_pb2, history_pb2)
        message = next(getattr(m, name) for m in modules if hasattr(m, name))
        return self.rpc.call(
            method,
            message(**fields),
            client_id=self.client_id,
            sequence=sequence or next(self.sequence),
            token=self.token,
        )

    def call(self, method: str, **fields: Any) -> Any:
        response = self.send(method, **fields)
        assert response.header.code == OK, response.header
        return getattr(response, method)

    def fails(self, method: str, code: int, field: str = "", **fields: Any) -> str:
        header = self.send(method, **fields).header
        assert header.code == code, header
        assert not field or header.field == field, header
        return header.message

    def edit(self, name: str, *operations: Any, **fields: Any) -> Any:
        return self.call("scene_edit", name=name, operations=operations, **fields)

    def dense(
        self, name: str, side: int, **at: Any
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """States and materials of a scene of so many voxels a side; `at` a version."""
        box = scene_pb2.SceneBox(low=vec(0, 0, 0), high=vec(side, side, side))
        reply = self.call(
            "scene_export", name=name, format="SCENE_DENSE", box=box, in_voxels=True, **at
        )
        assert list(reply.low_cell) == [0, 0, 0]
        has_materials = reply.HasField("materials")
        return array_of(reply.states), array_of(reply.materials) if has_materials else None


def vec(x: float, y: float, z: float) -> common_pb2.Vec3:
    return common_pb2.Vec3(x=x, y=y, z=z)


def spec(
    depth: int = 6, size: float = 0.1, bits: int = 0, **fields: Any
) -> scene_pb2.SceneSpec:
    return scene_pb2.SceneSpec(voxel_size_m=size, depth=depth, material_bits=bits, **fields)


def box(
    low: Any, high: Any, action: str = "SCENE_FILL", **fields: Any
) -> scene_pb2.SceneOperation:
    shape = scene_pb2.SceneBox(low=vec(*low), high=vec(*high))
    return scene_pb2.SceneOperation(box=shape, action=action, **fields)


def ball(centre: Any, radius: float, action: str = "SCENE_FILL", **fields: Any) -> Any:
    shape = scene_pb2.SceneBall(centre=vec(*centre), radius=radius)
    return scene_pb2.SceneOperation(ball=shape, action=action, **fields)


def points(
    at: np.ndarray, action: str = "SCENE_FILL", materials: Any = None, **fields: Any
) -> Any:
    shape = scene_pb2.ScenePoints(points=tensor_of(at))
    if materials is not None:
        shape.materials.CopyFrom(tensor_of(materials))
    return scene_pb2.SceneOperation(points=shape, action=action, **fields)


class Grid:
    """The expected scene: states and materials of every voxel."""

    def __init__(self, depth: int, size: float = 0.1, tracks_free: bool = False) -> None:
        self.side = 1 << depth
        self.size = size
        self.origin = np.full(3, -self.side * size / 2)
        self.tracks_free = tracks_free
        self.states = np.full((self.side,) * 3, UNKNOWN, np.uint8)
        self.materials = np.zeros((self.side,) * 3, np.uint16)
        axis = np.arange(self.side, dtype=np.int64) * UNIT + UNIT // 2
        self.centres = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)

    def units(self, metres: Any) -> np.ndarray:
        return np.rint((np.asarray(metres) - self.origin) / self.size * UNIT).astype(np.int64)

    def length(self, metres: float) -> int:
        return int(np.rint(metres / self.size * UNIT))

    def in_box(self, low: Any, high: Any) -> np.ndarray:
        c = self.centres
        return ((self.units(low) <= c) & (c < self.units(high))).all(-1)

    def in_ball(self, centre: Any, radius: float) -> np.ndarray:
        d = self.centres - self.units(centre)
        return (d * d).sum(-1) <= self.length(radius) ** 2

    def in_capsule(self, a: Any, b: Any, radius: float) -> np.ndarray:
        """Computes the distance to a segment, squared and times |ab|^2, in whole numbers
        (Python's)."""
        ua, ub = self.units(a), self.units(b)
        ab = (ub - ua).astype(object)
        p = (self.centres - ua).astype(object)
        r2 = self.length(radius) ** 2
        pp, dot, ll = (p * p).sum(-1), (p * ab).sum(-1), int((ab * ab).sum())
        q = (self.centres - ub).astype(object)
        inside = np.where(
            dot <= 0,
            pp <= r2,
            np.where(dot >= ll, (q * q).sum(-1) <= r2, pp * ll - dot * dot <= r2 * ll),
        )
        return inside.astype(bool)

    def in_points(self, voxels: np.ndarray) -> np.ndarray:
        mask = np.zeros_like(self.states, bool)
        mask[tuple(voxels[self.is_inside(voxels)].T)] = True
        return mask

    def is_inside(self, voxels: np.ndarray) -> np.ndarray:
        return ((voxels >= 0) & (voxels < self.side)).all(-1)

    def apply(self, mask: np.ndarray, action: str, material: int = 0, source: int = 0) -> None:
        occupied = self.states == OCCUPIED
        if action == "SCENE_FILL":
            self.states[mask] = OCCUPIED
            self.materials[mask] = material
        elif action == "SCENE_ERASE":
            self.states[mask] = UNKNOWN
            self.materials[mask] = 0
        elif action == "SCENE_SET_FREE":
            self.states[mask] = FREE
            self.materials[mask] = 0
        elif action == "SCENE_PAINT":
            self.materials[mask & occupied] = material
        elif action == "SCENE_REPLACE":
            self.materials[mask & occupied & (self.materials == source)] = material
        else:
            raise AssertionError(action)

    def occupied(self) -> np.ndarray:
        return np.argwhere(self.states == OCCUPIED)


def check_dense(scenes: Scenes, name: str, grid: Grid) -> None:
    """Compares the whole scene with the oracle."""
    states, materials = scenes.dense(name, grid.side)
    np.testing.assert_array_equal(states, grid.states)
    if materials is not None:
        np.testing.assert_array_equal(materials, grid.materials)
    info = scenes.call("scene_get", name=name).scene
    assert info.n_occupied == (grid.states == OCCUPIED).sum()
    assert info.n_free == (grid.states == FREE).sum()


def box_of(low: Any, high: Any) -> scene_pb2.SceneBox:
    return scene_pb2.SceneBox(low=vec(*low), high=vec(*high))


def random_operation(rng: np.random.Generator, grid: Grid) -> scene_pb2.SceneOperation:
    """Makes a random operation in metres, and applies it to the grid as well."""
    half = grid.side * grid.size / 2
    action = str(rng.choice(["FILL", "FILL", "FILL", "ERASE", "SET_FREE", "PAINT", "REPLACE"]))
    action = "SCENE_" + action
    material, source = (int(m) for m in rng.integers(0, 4, 2))
    operation = scene_pb2.SceneOperation(action=action, material=material, from_material=source)
    a, b = rng.uniform(-1.2 * half, 1.2 * half, (2, 3))
    radius = float(rng.uniform(0, half))
    shape = rng.integers(0, 6)
    if shape == 0:
        low, high = np.minimum(a, b), np.maximum(a, b) + 1e-6
        operation.box.CopyFrom(box_of(low, high))
        mask = grid.in_box(low, high)
    elif shape == 1:
        operation.ball.CopyFrom(scene_pb2.SceneBall(centre=vec(*a), radius=radius))
        mask = grid.in_ball(a, radius)
    elif shape == 2:
        operation.capsule.CopyFrom(
            scene_pb2.SceneCapsule(a=vec(*a), b=vec(*b), radius=radius / 3)
        )
        mask = grid.in_capsule(a, b, radius / 3)
    elif shape == 3:
        axis = int(rng.integers(0, 3))
        normal = np.zeros(3)
        normal[axis] = rng.choice([-2.5, 0.3])
        offset = float(normal[axis] * a[axis])
        operation.half_space.CopyFrom(
            scene_pb2.SceneHalfSpace(normal=vec(*normal), offset=offset)
        )
        plane = grid.units(a)[axis]
        c = grid.centres[..., axis]
        mask = c <= plane if normal[axis] > 0 else c >= plane
    elif shape == 4:
        at = rng.uniform(-1.1 * half, 1.1 * half, (500, 3))
        operation.points.points.CopyFrom(tensor_of(at))
        mask = grid.in_points(grid.units(at) // 256)
    else:
        cell = int(rng.integers(1, 5)) * grid.size
        heights = rng.uniform(-half, half, (9, 7)).astype(np.float32)
        heights[rng.random((9, 7)) < 0.2] = np.nan
        operation.heightfield.CopyFrom(
            scene_pb2.SceneHeightfield(
                heights=tensor_of(heights), x=a[0], y=a[1], cell=cell, low_z=-half / 2
            )
        )
        mask = in_heights(grid, heights, a, cell, -half / 2)
    grid.apply(mask, action, material, source)
    return operation


def in_heights(
    grid: Grid, heights: np.ndarray, at: Any, cell: float, low_z: float
) -> np.ndarray:
    low = grid.units([at[0], at[1], low_z])
    c = grid.centres
    k = (c[..., :2] - low[:2]) // grid.length(cell)
    inside = ((k >= 0) & (k < heights.shape)).all(-1) & (c[..., 2] >= low[2])
    k = np.where(inside[..., None], k, 0)
    metres = heights.astype(np.float64)
    top = np.nan_to_num((metres - grid.origin[2]) / grid.size * 256, nan=-(2.0**40))
    return inside & (c[..., 2] < np.rint(top).astype(np.int64)[k[..., 0], k[..., 1]])


def random_scene(scenes: Scenes, grid: Grid, seed: int, bits: int = 4) -> None:
    rng = np.random.default_rng(seed)
    scenes.call("scene_create", name="s", spec=spec(5, bits=bits, track_free=True))
    while (grid.states == OCCUPIED).sum() < 500 or (grid.states == FREE).sum() < 500:
        operations = [random_operation(rng, grid) for _ in range(4)]
        assert scenes.send("scene_edit", name="s", operations=operations).header.code == OK


LONG_MS = 60000  # more than a slow edit may take


def slow_edit(name: str, sequence: int, timeout_ms: int, radius: float) -> rpc_pb2.Request:
    """Some bytes that keep a CPU busy; how long goes with the square of the radius."""
    ball = scene_pb2.SceneBall(
        centre=vec(0, 0, 0), radius=radius, noise=radius / 2, noise_seed=1
    )
    operation = scene_pb2.SceneOperation(ball=ball, action="SCENE_FILL", material=1)
    return rpc_pb2.Request(
        header=rpc_pb2.RequestHeader(
            request_id=f"slow-{sequence}",
            client_id=name,
            sequence=sequence,
            timeout_ms=timeout_ms,
        ),
        scene_edit=scene_pb2.SceneEditRequest(name=name, operations=[operation]),
    )
