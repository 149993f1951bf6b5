# SPDX-License-Identifier: Apache-2.0
"""Requests of every method, from the schema: the example that each method has there, in an order in
which all of them succeed, and the same examples with some fields changed at random. A new method
is among them by itself; where its example needs what is not there, `prepare` has to make it."""

from __future__ import annotations

import base64
import itertools
import json
import os
import random
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from depth_scene import CAMERA, shoot
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from harness import OK, SOURCE, Daemon, Rpc, common_pb2, rpc_pb2
from networks import write_network

sys.path.append(str(SOURCE / "proto" / "gen"))
from model import Field, Schema  # noqa: E402
from objects import Named, of_request  # noqa: E402

# What may be wrong with a request, with what it asks for, or with the moment. INTERNAL, UNKNOWN and
# DATA_LOSS are the daemon's own faults.
REFUSALS = {
    common_pb2.Code.Value(name)
    for name in (
        "CANCELLED", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
        "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE",
        "UNIMPLEMENTED",
    )
}  # fmt: skip
LAST = ("_drop", "_unload")
WHY_ID = "robot-7.scan-4711"  # of the example of `why`


@cache
def schema() -> Schema:
    return Schema()


@cache
def names_of(method: str) -> list[Named]:
    return of_request(schema().method(method))


def methods() -> list[str]:
    return [method.name for method in schema().methods]


def rank(method: str) -> int:
    """What makes something goes first, what takes it away goes last."""
    if method.endswith(("_create", "_load")) and method != "map_load":
        return 0
    return 2 if method.endswith(LAST) else 1


class World:
    """The objects that the examples name, under names with an ending of their own, and a client
    that works on them."""

    def __init__(self, daemon: Daemon, ending: str, url: str = "") -> None:
        self.rpc = Rpc(url or daemon.ipc, 120)
        self.ending = ending
        self.client_id = f"every{ending}-{os.urandom(4).hex()}"
        self.sequence = itertools.count(1)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.rpc.socket.close()

    def send(
        self, method: str, message: Message | None = None, timeout_ms: int = 0, request_id: str = ""
    ) -> rpc_pb2.Response:
        return self.rpc.call(
            method, message, client_id=self.client_id, sequence=next(self.sequence),
            timeout_ms=timeout_ms, request_id=request_id,
        )  # fmt: skip

    def call(self, method: str, fields: dict[str, Any]) -> Any:
        """Sends fields, as JSON has them, whose names of objects get the ending."""
        response = self.send(method, self.rename(method, parse(method, fields)))
        assert response.header.code == OK, (method, response.header)
        return getattr(response, method)

    def rename(self, method: str, message: Message) -> Message:
        for named in names_of(method):
            add_ending(message, list(named.path), self.ending)
        return message

    def example(self, method: str) -> Message:
        return self.rename(method, parse(method, example(method)))

    def prepare(self) -> None:
        """What the examples need and do not make themselves."""
        stamped = example("scene_integrate")  # scene_decay goes by the scans' times
        self.call("scene_integrate", {**stamped, "cloud": {**stamped["cloud"], "stampNs": "1"}})
        for i, name in enumerate(("kitchen", "part-0", "part-1")):
            size = {"voxelSizeM": 0.02, "truncationM": 0.08}
            if name != "kitchen":
                self.call("volume_create", {"name": name, **size})
            self.call("volume_integrate", {"name": name, **image(i)})

    def walk(self) -> Iterator[tuple[str, rpc_pb2.Response]]:
        """Sends every example, and afterwards takes away what they have made."""
        order = sorted(methods(), key=rank)
        n_created = sum(rank(method) == 0 for method in order)
        for i, method in enumerate(order):
            if i == n_created:
                self.prepare()
            if method == "why":  # whose answer is forgotten when many requests have come since
                self.send("scene_get", parse("scene_get", {"name": "nowhere"}), request_id=WHY_ID)
            yield method, self.send(method, self.example(method))
        self.clear()

    def clear(self) -> None:
        """Drops all objects of this world; changes at random cut up to three letters off a name."""
        for method in methods():
            listing = method.rsplit("_", 1)[0] + "_list"
            if not method.endswith(LAST) or listing not in methods():
                continue
            for name in self.listed(listing):
                if self.ending[:-3] in name:
                    self.send(method, parse(method, {"name": name}))
        self.send("set_log_level", parse("set_log_level", {"level": "info"}))

    def listed(self, method: str) -> list[str]:
        reply = getattr(self.send(method), method)
        field = next(f for f in reply.DESCRIPTOR.fields if is_repeated(f) and f.message_type)
        return [item.name for item in getattr(reply, field.name)]

    def random_request(self, generator: random.Random) -> tuple[str, Message]:
        """An example, of which up to three fields are changed."""
        method = generator.choice(methods())
        message = self.example(method)
        for _ in range(generator.choice([0, 1, 1, 2, 3])):
            change(message, generator)
        return method, message


def write_networks(directory: Any, endings: list[str]) -> None:
    """The network of the examples, as a small one, for each world."""
    for ending in endings:
        name = example("infer")["network"] + ending
        write_network(directory, name, input={
            "mode": "voxelize", "features": ["x", "y", "z", {"field": "z", "scale": 2}],
            "voxel_size": 0.5, "range": [-8, -8, -2, 8, 8, 4], "reduce": "mean",
            "bounded": [32, 32, 12], "overflow": "error",
        })  # fmt: skip


@cache
def examples() -> dict[str, Any]:
    paths = json.loads((SOURCE / "proto" / "generated" / "openapi.json").read_text())["paths"]
    return {
        method: paths[f"/v1/{method}"]["post"]["requestBody"]["content"]["application/json"][
            "example"
        ]
        for method in methods()
    }


def example(method: str) -> dict[str, Any]:
    return examples()[method]


def parse(method: str, fields: dict[str, Any]) -> Message:
    message = getattr(rpc_pb2.Request(), method)
    return json_format.ParseDict(fields, type(message)())


def image(i: int) -> dict[str, Any]:
    shot = shoot(i)
    camera = {name: getattr(CAMERA, name) for name in ("width", "height", "fx", "fy", "cx", "cy")}
    return {
        "camera": camera, "depth": base64.b64encode(shot.millimetres.tobytes()).decode(),
        "depthType": "VOLUME_DEPTH_UINT16",
    }  # fmt: skip


def is_repeated(field: Any) -> bool:
    return field.label == field.LABEL_REPEATED


def add_ending(message: Message, path: list[Field], ending: str) -> None:
    name = path[0].name
    value = getattr(message, name)
    if len(path) > 1:
        inner = value if path[0].is_repeated else [value] if message.HasField(name) else []
        for item in inner:
            add_ending(item, path[1:], ending)
    elif path[0].is_repeated:
        value[:] = [text + ending for text in value]
    elif value:
        setattr(message, name, value + ending)


# Changes ------------------------------------------------------------------------------------------


def change(message: Message, generator: random.Random) -> None:
    """Changes one field somewhere in the message."""
    nodes = list(below(message))
    node = generator.choice(nodes)
    fields = list(node.DESCRIPTOR.fields)
    if not fields:
        return
    field = generator.choice(fields)
    if generator.random() < 0.2:
        node.ClearField(field.name)
    elif is_repeated(field):
        change_list(getattr(node, field.name), field, generator)
    elif field.message_type is not None:
        getattr(node, field.name).SetInParent()
    else:
        setattr(node, field.name, value_of(field, getattr(node, field.name), generator))


def below(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if is_repeated(field) else [value]:
                yield from below(item)


def change_list(values: Any, field: Any, generator: random.Random) -> None:
    """Removes an item, repeats one, or changes or adds a number or a text."""
    at = generator.randrange(len(values)) if values else 0
    if values and generator.random() < 0.3:
        del values[at]
    elif field.message_type is not None:
        values.add().CopyFrom(values[at] if values else values.add())
    elif values and generator.random() < 0.7:
        values[at] = value_of(field, values[at], generator)
    else:
        values.append(value_of(field, BLANK.get(field.cpp_type, 0), generator))


BLANK = {FieldDescriptor.CPPTYPE_STRING: "", FieldDescriptor.CPPTYPE_BOOL: False}
INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def value_of(field: Any, value: Any, generator: random.Random) -> Any:
    """A value of the field's type: near the one that is there, or where mistakes are made."""
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return not value
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return generator.choice([*field.enum_type.values_by_number, 99])
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return value[: generator.randrange(len(value) + 1)]
        return generator.choice(["", value[:-1], "no such name", "x" * 100])
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        near = value + generator.choice([-1, 1, 2, 3])
        return min(max(generator.choice([near, near, 0, 1, 7, low, high]), low), high)
    edges = [0.0, -1.0, 1e-9, 1e9, float("inf"), float("nan")]
    return generator.choice([value * generator.uniform(0.5, 2), value + 0.5, *edges])
