# SPDX-License-Identifier: Apache-2.0
"""WebSockets: the watch of scenes, and the Foxglove protocol, seen by an independent client (PyPI
`websockets`) that decodes by the schemas that the server sends."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from depth_scene import CAMERA, shoot
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from harness import (
    SLOW,
    SOURCE,
    Daemon,
    array_of,
    cloud_of,
    http_call,
    running,
    tensor_of,
    wait_until,
)
from scenes import Scenes, ball, box, spec, vec
from street_scene import scan
from voxeld import Pose, PosegraphEdge, PosegraphNode
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_socket

FILES = SOURCE / "tests" / "integration" / "web"
PROTOCOLS = ["foxglove.sdk.v1", "foxglove.websocket.v1"]
TOKENS = {"alice": ("read,write", "s3cret"), "bob": ("read", "bobs")}
ORIGIN = "https://app.foxglove.dev"
TOPICS = {
    "points": "foxglove.PointCloud",
    "cubes": "foxglove.SceneUpdate",
    "voxels": "foxglove.VoxelGrid",
    "costmap": "foxglove.Grid",
}
SENSOR_TOPICS = {
    "image": "foxglove.CompressedImage",
    "scan": "foxglove.LaserScan",
    "pose": "foxglove.PoseInFrame",
}
EMPTY = "/posegraphs/empty/poses"
MESSAGE_S = 5  # how long a message may take


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(
        tmp_path_factory.mktemp("fox"), {"listen": {"foxglove": "127.0.0.1:0"}}
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("guarded")
    tokens = directory / "tokens"
    tokens.write_text(
        "".join(
            f"{name} {scopes} {hashlib.sha256(token.encode()).hexdigest()}\n"
            for name, (scopes, token) in TOKENS.items()
        )
    )
    tokens.chmod(0o600)
    config = {
        "auth": {"tokens_file": str(tokens)},
        "http": {"allowed_origins": [ORIGIN]},
        "limits": {"watchers_per_client": 3},
    }
    with running(directory / "d", config) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def stalled(daemon: Daemon) -> Iterator[tuple[socket.socket, float]]:
    """Half a message, early, so that the other tests wait for its end."""
    with handshake(daemon) as peer:
        peer.sendall(frame(b'{"op":', fin=False))
        yield peer, time.monotonic()


@pytest.fixture
def name(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.split("[")[0].removeprefix("test_")[:60].replace("_", "-")
    with Scenes(daemon) as scenes:
        scenes.call("scene_create", name=name, spec=spec(bits=8))
        yield name
        scenes.call("scene_drop", name=name, missing_ok=True)


def url(daemon: Daemon, path: str, port: int = 0) -> str:
    return f"ws://127.0.0.1:{port or daemon.http_port}{path}"


@contextlib.contextmanager
def connected(daemon: Daemon, path: str, **options: Any) -> Iterator[ClientConnection]:
    with open_socket(
        url(daemon, path),
        max_size=None,
        open_timeout=10 * SLOW,
        close_timeout=10 * SLOW,
        compression=None,
        **options,
    ) as opened:
        yield opened


def refusal(daemon: Daemon, path: str, **options: Any) -> tuple[int, dict[str, Any]]:
    with pytest.raises(InvalidStatus) as caught, connected(daemon, path, **options):
        pass
    response = caught.value.response
    return response.status_code, json.loads(response.body)


def decoder(channel: dict[str, Any]) -> Any:
    """The class of a channel's messages, by nothing but its schema."""
    files = descriptor_pb2.FileDescriptorSet.FromString(
        base64.b64decode(channel["schema"], validate=True)
    )
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(channel["schemaName"]))


class Viewer:
    """A Foxglove client: knows channels, subscribes, decodes."""

    def __init__(self, opened: ClientConnection) -> None:
        self.socket = opened
        self.channels: dict[str, dict[str, Any]] = {}
        self.gone: list[int] = []
        self.status: list[dict[str, Any]] = []
        self.info: dict[str, Any] = {}
        self.subscribed: dict[int, str] = {}
        self.classes: dict[str, Any] = {}
        self.messages: list[tuple[str, Any]] = []
        self.frames: list[bytes | str] = []
        self.n_data = 0

    def read(self, timeout_s: float = 10) -> bool:
        try:
            frame = self.socket.recv(timeout=timeout_s * SLOW if timeout_s > 1 else timeout_s)
        except TimeoutError:
            return False
        self.take(frame)
        return True

    def take(self, frame: bytes | str) -> None:
        self.frames.append(frame)
        if isinstance(frame, bytes):
            op, subscription, log_ns = struct.unpack_from("<BIQ", frame)
            assert op == 1 and abs(log_ns / 1e9 - time.time()) < 3600
            topic = self.subscribed[subscription]
            self.n_data += 1
            self.messages.append((topic, self.classes[topic].FromString(frame[13:])))
            return
        message = json.loads(frame)
        if message["op"] == "serverInfo":
            assert not self.info
            self.info = message
        elif message["op"] == "advertise":
            assert 0 < len(message["channels"]) <= 100
            for channel in message["channels"]:
                assert channel["topic"] not in self.channels
                self.channels[channel["topic"]] = channel
        elif message["op"] == "unadvertise":
            self.gone += message["channelIds"]
            self.channels = {
                t: c for t, c in self.channels.items() if c["id"] not in self.gone
            }
        else:
            assert message["op"] == "status"
            self.status.append(message)

    def until(self, condition: Any, timeout_s: float = 10) -> None:
        end = time.monotonic() + timeout_s * SLOW
        while not condition():
            assert time.monotonic() < end, (list(self.channels), self.status[-3:])
            self.read()

    def subscribe(self, *topics: str) -> None:
        subscriptions = []
        for topic in topics:
            self.until(lambda topic=topic: topic in self.channels)
            channel = self.channels[topic]
            self.classes[topic] = decoder(channel)
            self.subscribed[1000 + channel["id"]] = topic
            subscriptions.append({"id": 1000 + channel["id"], "channelId": channel["id"]})
        self.say(op="subscribe", subscriptions=subscriptions)

    def say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def next(self, topic: str) -> Any:
        self.until(lambda: any(t == topic for t, _ in self.messages))
        at = next(i for i, (t, _) in enumerate(self.messages) if t == topic)
        return self.messages.pop(at)[1]


@contextlib.contextmanager
def viewing(daemon: Daemon, path: str = "/foxglove", **options: Any) -> Iterator[Viewer]:
    options.setdefault("subprotocols", PROTOCOLS)
    with connected(daemon, path, **options) as opened:
        yield Viewer(opened)


def frame(
    payload: bytes, opcode: int = 1, fin: bool = True, masked: bool = True, rsv: int = 0
) -> bytes:
    n = len(payload)
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    mark = 0x80 if masked else 0
    if n < 126:
        head += bytes([mark | n])
    elif n < 65536:
        head += bytes([mark | 126]) + struct.pack(">H", n)
    else:
        head += bytes([mark | 127]) + struct.pack(">Q", n)
    key = os.urandom(4)
    body = bytes(b ^ key[i % 4] for i, b in enumerate(payload))
    return head + (key + body if masked else payload)


def handshake_text(daemon: Daemon, path: str = "/foxglove", **headers: str) -> bytes:
    fields = {
        "Host": f"127.0.0.1:{daemon.http_port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": PROTOCOLS[0],
        **headers,
    }
    lines = "".join(f"{k}: {v}\r\n" for k, v in fields.items() if v)
    return f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode()


def handshake(daemon: Daemon, after: bytes = b"", path: str = "/foxglove") -> socket.socket:
    """A raw connection after its handshake; `after` goes with it in one packet."""
    peer = socket.create_connection(("127.0.0.1", daemon.http_port), timeout=20 * SLOW)
    peer.sendall(handshake_text(daemon, path) + after)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = peer.recv(1)
        assert byte, head
        head += byte
    assert head.startswith(b"HTTP/1.1 101 "), head
    # The sample of RFC 6455, 1.3.
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
    return peer


def refused(daemon: Daemon, text: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=10 * SLOW) as peer:
        peer.sendall(text)
        reply = b""
        while not reply.endswith(b"}\n"):
            piece = peer.recv(4096)
            assert piece, reply
            reply += piece
    return reply


def read_frames(peer: socket.socket) -> list[tuple[int, bytes]]:
    """All frames until the end of the connection."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := peer.recv(65536):
            data += piece
    frames = []
    while len(data) >= 2:
        n, at = data[1], 2
        if n == 126:
            n, at = struct.unpack_from(">H", data, 2)[0], 4
        elif n == 127:
            n, at = struct.unpack_from(">Q", data, 2)[0], 10
        frames.append((data[0] & 15, data[at : at + n]))
        data = data[at + n :]
    return frames


def close_code(peer: socket.socket) -> int:
    frames = read_frames(peer)
    assert frames and frames[-1][0] == 8, frames[-1:]
    return int(struct.unpack_from(">H", frames[-1][1])[0]) if frames[-1][1] else 0


# What the protocol says ---------------------------------------------------------------------


def test_half_message_begins(stalled: tuple[socket.socket, float]) -> None:
    assert stalled[0].fileno() >= 0


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(PROTOCOLS, PROTOCOLS[0]), (PROTOCOLS[::-1], PROTOCOLS[0]), (PROTOCOLS[1:], PROTOCOLS[1])],
)
def test_subprotocol_is_one_that_was_offered(
    daemon: Daemon, offered: list[str], chosen: str
) -> None:
    with viewing(daemon, subprotocols=["chat", *offered]) as viewer:
        assert viewer.socket.subprotocol == chosen
        viewer.until(lambda: "/tf" in viewer.channels)
        assert viewer.info["name"].startswith("voxeld ") and viewer.info["sessionId"]
        assert viewer.info["capabilities"] == [] and not viewer.status
        first = json.loads(viewer.frames[0])
        assert first["op"] == "serverInfo"


def published(files: descriptor_pb2.FileDescriptorSet) -> set[str]:
    """Lines as in foxglove_schemas.txt of what a set of files describes."""
    names = {1: "double", 3: "int64", 5: "int32", 7: "fixed32", 8: "bool", 9: "string", 12: "bytes"}
    lines = set()
    for file in files.file:
        if file.package != "foxglove":
            continue
        for message in file.message_type:
            for field in message.field:
                kind = names.get(field.type) or field.type_name.removeprefix(".")
                many = "repeated " if field.label == field.LABEL_REPEATED else ""
                lines.add(f"{message.name} {field.number} {field.name} {many}{kind}")
            for enum in message.enum_type:
                for value in enum.value:
                    lines.add(f"{message.name}.{enum.name} {value.number} {value.name}")
    return lines


def test_schemas_are_the_published_ones(daemon: Daemon, name: str) -> None:
    text = (FILES / "foxglove_schemas.txt").read_text().splitlines()
    wanted = {line for line in text if not line.startswith("#")}
    with viewing(daemon) as viewer, voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client:
        client.posegraph_create("empty")
        viewer.until(lambda: {f"/scenes/{name}/costmap", EMPTY} <= viewer.channels.keys())
        client.posegraph_drop("empty")
        ours: set[str] = set()
        for channel in viewer.channels.values():
            assert channel["encoding"] == channel["schemaEncoding"] == "protobuf"
            assert decoder(channel).DESCRIPTOR.full_name == channel["schemaName"]
            ours |= published(
                descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(channel["schema"]))
            )
        for topic, schema in (TOPICS | SENSOR_TOPICS).items():
            assert viewer.channels[f"/scenes/{name}/{topic}"]["schemaName"] == schema
    assert ours == wanted


def test_names_that_come_and_go_are_advertised(daemon: Daemon, name: str) -> None:
    with viewing(daemon) as viewer, Scenes(daemon) as scenes:
        topic = f"/scenes/{name}/points"
        viewer.subscribe(topic)
        viewer.next(topic)
        first = viewer.channels[topic]["id"]
        scenes.call("scene_drop", name=name)
        viewer.until(lambda: first in viewer.gone and topic not in viewer.channels)
        scenes.call("scene_create", name=name, spec=spec(bits=4))
        viewer.until(lambda: topic in viewer.channels)
        assert viewer.channels[topic]["id"] > first, "an id comes once"


def test_wrong_messages_are_answered_and_ignored(daemon: Daemon, name: str) -> None:
    with viewing(daemon) as viewer:
        topic = f"/scenes/{name}/points"
        viewer.subscribe(topic)
        viewer.next(topic)
        channel = viewer.channels[topic]["id"]
        wrong = [
            ("{", 2, "JSON"),
            ("[1]", 2, "op"),
            ('{"op":7}', 2, "op"),
            ('{"op":"subscribe","op":"subscribe"}', 2, "duplicate"),
            ('{"op":"fly"}', 2, "'fly' is not known"),
            ('{"op":"subscribe"}', 2, "subscriptions"),
            ('{"op":"subscribe","subscriptions":[{"id":-1,"channelId":1}]}', 2, "item 0"),
            ('{"op":"subscribe","subscriptions":[{"id":1,"channelId":4294967296}]}', 2, "item 0"),
            ('{"op":"subscribe","subscriptions":[7]}', 2, "item 0"),
            ('{"op":"subscribe","subscriptions":[' + "7," * 300 + "7]}", 2, "at most 256"),
            ('{"op":"subscribe","subscriptions":[{"id":1,"channelId":99999}]}', 2, "no channel"),
            (
                f'{{"op":"subscribe","subscriptions":[{{"id":{1000 + channel},"channelId":1}}]}}',
                2,
                "in use",
            ),
            (
                f'{{"op":"subscribe","subscriptions":[{{"id":1,"channelId":{channel}}}]}}',
                1,
                f"has subscription {1000 + channel}",
            ),
            ('{"op":"unsubscribe","subscriptionIds":[5]}', 1, "no subscription 5"),
            ('{"op":"unsubscribe","subscriptionIds":["x"]}', 2, "item 0"),
            ('{"op":"advertise","channels":[]}', 2, "clientPublish"),
            ('{"op":"getParameters","parameterNames":[]}', 2, "parameters"),
            ('{"op":"subscribeConnectionGraph"}', 2, "connectionGraph"),
            ('{"op":"fetchAsset","uri":"x","requestId":1}', 2, "assets"),
            (b"\x01\x01\x00\x00\x00", 2, "services"),
        ]
        for message, level, text in wrong:
            n = len(viewer.status)
            viewer.socket.send(message)
            viewer.until(lambda n=n: len(viewer.status) > n)
            assert viewer.status[-1]["level"] == level, message
            assert text in viewer.status[-1]["message"], (message, viewer.status[-1])
        viewer.say(op="unsubscribe", subscriptionIds=[1000 + channel])
        n_data = viewer.n_data
        with Scenes(daemon) as scenes:
            scenes.edit(name, ball((0, 0, 0), 1))
        while viewer.read(0.3):  # what other things come and go
            pass
        assert viewer.n_data == n_data, "an ended subscription gets nothing"


# What is shown ------------------------------------------------------------------------------


def occupied(scenes: Scenes, name: str, side: int = 64) -> np.ndarray:
    states, _ = scenes.dense(name, side)
    return np.argwhere(states == 2)


def points_of(cloud: Any) -> tuple[np.ndarray, np.ndarray]:
    """Positions and colours of a PointCloud, by its own fields."""
    types = {1: "u1", 3: "<u2", 7: "<f4"}
    kind = np.dtype(
        {
            "names": [f.name for f in cloud.fields],
            "formats": [types[f.type] for f in cloud.fields],
            "offsets": [f.offset for f in cloud.fields],
            "itemsize": cloud.point_stride,
        }
    )
    rows = np.frombuffer(cloud.data, kind)
    at = cloud.pose.position
    places = np.stack([rows[k].astype(float) for k in "xyz"], 1) + [at.x, at.y, at.z]
    return places, np.stack([rows[k] for k in ("red", "green", "blue", "alpha")], 1)


def test_messages_are_what_the_scene_holds(daemon: Daemon, name: str) -> None:
    with viewing(daemon) as viewer, Scenes(daemon) as scenes:
        scenes.edit(
            name,
            box((-1, -2, -3), (0.5, 1, -2.5), material=2),
            ball((1, 1, 1), 0.7, material=3),
        )
        viewer.subscribe("/tf", *(f"/scenes/{name}/{t}" for t in TOPICS))
        cells = occupied(scenes, name)
        low = np.full(3, -3.2)
        centres = low + (cells + 0.5) * 0.1
        order = np.lexsort(centres.round(3).T)

        cloud = viewer.next(f"/scenes/{name}/points")
        places, colours = points_of(cloud)
        assert len(places) == len(cells) > 1000
        np.testing.assert_allclose(
            places[np.lexsort(places.round(3).T)], centres[order], atol=1e-5
        )
        assert (colours[:, 3] == 255).all() and len(np.unique(colours, axis=0)) == 2
        assert cloud.frame_id == "map" and cloud.timestamp.seconds > 0

        (entity,) = viewer.next(f"/scenes/{name}/cubes").entities
        assert entity.id == name and len(entity.cubes) == len(cells)
        position = [(c.pose.position.x, c.pose.position.y, c.pose.position.z) for c in entity.cubes]
        middles = np.array(position)
        np.testing.assert_allclose(
            middles[np.lexsort(middles.round(3).T)], centres[order], atol=1e-9
        )
        assert {round(c.size.x, 9) for c in entity.cubes} == {0.1}
        assert all(c.pose.orientation.w == 1 and c.color.a == 1 for c in entity.cubes)

        grid = viewer.next(f"/scenes/{name}/voxels")
        n = np.array([grid.column_count, grid.row_count, len(grid.data) // grid.slice_stride])
        assert grid.row_stride == grid.cell_stride * n[0]
        assert grid.slice_stride == grid.row_stride * n[1]
        alpha = next(f.offset for f in grid.fields if f.name == "alpha")
        data = np.frombuffer(grid.data, np.uint8).reshape(n[2], n[1], n[0], grid.cell_stride)
        seen = np.argwhere(data[..., alpha] == 255)[:, ::-1]
        corner = grid.pose.position
        first = np.rint((np.array([corner.x, corner.y, corner.z]) - low) / 0.1).astype(int)
        assert {tuple(c) for c in seen + first} == {tuple(c) for c in cells}

        costs = viewer.next(f"/scenes/{name}/costmap")
        reply = http_call(
            daemon,
            "POST",
            "/v1/scene_grid",
            json.dumps({"name": name, "kind": "GRID_COSTMAP"}).encode(),
            {"Content-Type": "application/json"},
        ).json()
        shape = (reply["nY"], reply["nX"])
        cell = next(f.offset for f in costs.fields if f.name == "cost")
        ours = np.frombuffer(costs.data, np.uint8).reshape(*shape, costs.cell_stride)[..., cell]
        tensor = reply["cells"]
        truth = (
            np.frombuffer(base64.b64decode(tensor["data"]), np.uint8)
            if "data" in tensor
            else np.array(tensor["values"], np.uint8)
        ).reshape(shape)
        assert (ours == truth).all() and (truth == 254).any()
        assert costs.column_count == shape[1] and costs.row_stride == 5 * shape[1]

        (transform,) = (
            t for t in viewer.next("/tf").transforms if t.child_frame_id == f"scene/{name}"
        )
        assert transform.parent_frame_id == "map" and transform.rotation.w == 1
        np.testing.assert_allclose(transform.translation.x, -3.2)
        assert transform.timestamp.seconds <= cloud.timestamp.seconds


def test_large_scene_is_coarser_within_the_budget(daemon: Daemon, name: str) -> None:
    budget = 100_000
    with viewing(daemon, f"/foxglove?max_bytes={budget}") as viewer, Scenes(daemon) as scenes:
        scenes.edit(name, box((-3.1, -3.1, -3.1), (3.1, 3.1, 3.1)))
        topics = [f"/scenes/{name}/{t}" for t in TOPICS]
        viewer.subscribe(*topics)
        (entity,) = viewer.next(topics[1]).entities
        assert 0 < len(entity.cubes) * 112 <= budget
        side = entity.cubes[0].size.x
        assert side > 0.1
        cells = occupied(scenes, name)
        factor = round(side / 0.1)
        assert len(entity.cubes) == len(np.unique(cells // factor, axis=0))
        assert 0 < len(viewer.next(topics[0]).data) <= budget
        assert 0 < len(viewer.next(topics[2]).data) <= budget
        assert 0 < len(viewer.next(topics[3]).data) <= budget
        assert all(len(f) < 1.3 * budget for f in viewer.frames)
        # When it has become small again, every cell comes in the end.
        scenes.edit(name, box((-3.2, -3.2, -3.2), (3.2, 3.2, 3.2), action="SCENE_ERASE"))
        for i in range(6):
            scenes.edit(name, ball((0, 0, 0), 0.3 + i / 100))
            viewer.next(topics[1])
        while viewer.read(0.3):
            pass
        scenes.edit(name, ball((0, 0, 0), 0.5))
        viewer.messages.clear()
        (entity,) = viewer.next(topics[1]).entities
        assert len(entity.cubes) == len(occupied(scenes, name))


def test_sensors_of_a_scene_are_seen_where_its_newest_scan_was(daemon: Daemon, name: str) -> None:
    """A picture, the scan's pose, what a level lidar there measures in the scene, and the log."""
    with viewing(daemon) as viewer, Scenes(daemon) as scenes:
        pose, scan, image = (f"/scenes/{name}/{topic}" for topic in ("pose", "scan", "image"))
        log = "/log"
        viewer.subscribe(pose, scan, image, log)
        scenes.edit(name, box((-2.4, -2.0, -1), (2.1, 2.3, 1), material=1))
        scenes.edit(name, box((-2.3, -1.9, -0.9), (2.0, 2.2, 1), action="SCENE_ERASE"))
        viewer.until(lambda: any(t == image for t, _ in viewer.messages))
        assert not any(t in (pose, scan) for t, _ in viewer.messages), "no scan has come"
        points = np.array([[1.0, 0.0, 0.0], [0.5, 0.7, 0.1]], np.float32)
        half = np.sqrt(0.5)
        cloud = cloud_of(points, ["x", "y", "z"], stamp_ns=1_700_000_000_123_456_789)
        cloud.T_map_sensor.translation.CopyFrom(vec(0.3, -0.2, 0.05))
        cloud.T_map_sensor.rotation.z = cloud.T_map_sensor.rotation.w = half
        scenes.call("scene_integrate", name=name, cloud=cloud)
        seen = viewer.next(pose)
        assert (seen.timestamp.seconds, seen.timestamp.nanos) == (1_700_000_000, 123_456_789)
        at = seen.pose.position
        assert seen.frame_id == "map" and np.allclose((at.x, at.y, at.z), (0.3, -0.2, 0.05))
        turn = seen.pose.orientation
        assert np.allclose((turn.x, turn.y, turn.z, turn.w), (0, 0, half, half))
        message = viewer.next(scan)
        n = len(message.ranges)
        assert n == 720 and message.frame_id == "map"
        assert np.isclose(message.pose.position.x, 0.3) and message.pose.orientation.w == 1
        angles = np.linspace(message.start_angle, message.end_angle, n)
        ways = np.stack([np.cos(angles), np.sin(angles), np.zeros(n)], 1)
        origin = np.array([[0.3, -0.2, 0.05]])
        rays = scenes.call(
            "scene_cast_rays", name=name, origins=tensor_of(origin), directions=tensor_of(ways)
        )
        known = array_of(rays.distances)
        assert (known > 0).all() and np.ptp(known) > 0.5
        close = np.isclose(np.array(message.ranges), known, rtol=1e-4, atol=1e-4)
        assert close.mean() > 0.99, "counter-clockwise from behind"
        picture = viewer.next(image)
        assert picture.format == "jpeg" and picture.data[:3] == b"\xff\xd8\xff"
        # The picture may have been an earlier version's, which came late.
        viewer.until(
            lambda: any(t == log and m.message == "version 4" for t, m in viewer.messages)
        )
        lines = [m for t, m in viewer.messages if t == log and m.name == name]
        assert lines[-1].message == "version 4" and lines[-1].level == 2
        viewer.messages.clear()
        scenes.call("scene_drop", name=name)
        assert viewer.next(log).message == "dropped"


def pose_row(pose: Any) -> list[float]:
    at, turn = pose.position, pose.orientation
    return [at.x, at.y, at.z, turn.x, turn.y, turn.z, turn.w]


def lines_of(update: Any) -> list[np.ndarray]:
    """Pairs of points, of the edges of a graph's steps and of its other edges."""
    (entity,) = update.entities
    assert entity.frame_id == "map" and len(entity.lines) == 2 and not update.deletions
    assert all(line.type == 2 and line.scale_invariant for line in entity.lines)
    return [np.array([(p.x, p.y, p.z) for p in line.points]).reshape(-1, 2, 3)
            for line in entity.lines]  # fmt: skip


def test_poses_and_edges_of_a_pose_graph_are_seen(daemon: Daemon) -> None:
    rng = np.random.default_rng(7)
    ids = (np.arange(100, dtype=np.uint64) * 7919 + 3) % 1009 << 40  # in no order
    rows = np.concatenate([rng.normal(0, 9, (100, 3)), rng.normal(0, 1, (100, 4))], 1)
    rows[:, 3:] /= np.linalg.norm(rows[:, 3:], axis=1, keepdims=True)
    poses = [Pose(tuple(r[:3]), tuple(r[3:])) for r in rows]
    nodes = [PosegraphNode(int(i), p) for i, p in zip(ids, poses, strict=True)]
    steps, loops = [(i, i + 1) for i in range(98)], [(3, 17), (30, 2)]
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client, viewing(daemon) as viewer:
        graph = client.posegraph_create("drive")
        seen, edges = "/posegraphs/drive/poses", "/posegraphs/drive/edges"
        graph.add(nodes[:99], [edge(ids, i, j) for i, j in steps + loops])
        viewer.subscribe(seen, edges)
        message = viewer.next(seen)
        assert message.frame_id == "map"
        assert np.allclose([pose_row(p) for p in message.poses], rows[:99])
        for found, known in zip(lines_of(viewer.next(edges)), (steps, loops), strict=True):
            assert np.allclose(found, rows[np.array(known)][..., :3])
        graph.add(nodes[99:], [edge(ids, 98, 99)])  # a change comes by itself
        assert len(viewer.next(seen).poses) == 100
        assert np.allclose(lines_of(viewer.next(edges))[0][-1], rows[[98, 99], :3])
        with viewing(daemon, "/foxglove?max_bytes=4096") as narrow:
            narrow.subscribe(seen, edges)
            few = [pose_row(p) for p in narrow.next(seen).poses]
            assert 1 < len(few) * 69 <= 4096 and np.allclose(few, rows[::2])
            narrow.until(lambda: any("for 101 edges" in s["message"] for s in narrow.status))
        graph.drop()
        viewer.until(lambda: seen not in viewer.channels and edges not in viewer.channels)


def edge(ids: np.ndarray, i: int, j: int) -> PosegraphEdge:
    return PosegraphEdge(int(ids[i]), int(ids[j]), Pose((1, 0, 0)))


def test_an_odometry_moves_its_frame(daemon: Daemon) -> None:
    topic, moving = "/odometries/car/pose", "odometry/car"
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client, viewing(daemon) as viewer:
        car = client.odometry_create("car", max_range_m=60.0, voxel_size_m=0.8)
        viewer.subscribe(topic, "/tf")
        for i in range(4):
            found = car.register(scan(i), stamp_ns=1_700_000_000_000_000_000 + 10**8 * i)
            known = [*found.T_map_sensor.translation, *found.T_map_sensor.rotation]

            def is_there(known: list[float] = known, nanos: int = 10**8 * i) -> bool:
                poses = [m for t, m in viewer.messages if t == topic]
                frames = [
                    f for t, m in viewer.messages if t == "/tf"
                    for f in m.transforms if f.child_frame_id == moving
                ]  # fmt: skip
                return (
                    bool(poses and frames)
                    and np.allclose(pose_row(poses[-1].pose), known)
                    and np.isclose(frames[-1].translation.x, known[0])
                    and np.isclose(frames[-1].rotation.w, known[6])
                    and frames[-1].parent_frame_id == poses[-1].frame_id == "map"
                    and poses[-1].timestamp.nanos == frames[-1].timestamp.nanos == nanos
                )

            viewer.until(is_there)
        car.reset()
        viewer.messages.clear()
        assert np.allclose(pose_row(viewer.next(topic).pose), [0, 0, 0, 0, 0, 0, 1])
        car.drop()
        viewer.until(lambda: topic not in viewer.channels)
        viewer.messages.clear()
        viewer.until(lambda: any(t == "/tf" for t, _ in viewer.messages))
        frames = [f.child_frame_id for t, m in viewer.messages if t == "/tf" for f in m.transforms]
        assert moving not in frames


def corners_of(entity: Any) -> np.ndarray:
    """The corners of a part's triangles, three rows each, after checks of its model."""
    assert entity.frame_id == "volume/room"
    (model,) = entity.models
    assert model.media_type == "model/gltf-binary"
    magic, version, n_bytes = struct.unpack_from("<4sII", model.data)
    assert (magic, version, n_bytes) == (b"glTF", 2, len(model.data))
    n_json, kind = struct.unpack_from("<I4s", model.data, 12)
    assert kind == b"JSON" and n_json % 4 == 0
    gltf = json.loads(model.data[20 : 20 + n_json])
    n_bin, kind = struct.unpack_from("<I4s", model.data, 20 + n_json)
    assert kind == b"BIN\0" and 28 + n_json + n_bin == n_bytes
    blob = model.data[28 + n_json :]
    assert gltf["buffers"][0]["byteLength"] == n_bin

    def view(index: int, kind: str) -> np.ndarray:
        accessor = gltf["accessors"][index]
        part = gltf["bufferViews"][accessor["bufferView"]]
        assert part["byteOffset"] % 4 == 0
        data = blob[part["byteOffset"] : part["byteOffset"] + part["byteLength"]]
        return np.frombuffer(data, kind).reshape(accessor["count"], -1)

    places = view(0, "<f4")
    np.testing.assert_array_equal(places.min(0), np.float32(gltf["accessors"][0]["min"]))
    np.testing.assert_array_equal(places.max(0), np.float32(gltf["accessors"][0]["max"]))
    np.testing.assert_allclose(np.linalg.norm(view(1, "<f4"), axis=1), 1, atol=1e-4)
    indices = view(2, "<u4")
    assert indices.max() < len(places)
    # glTF has y up: the node turns z up to it.
    x, y, z, w = gltf["nodes"][0]["rotation"]
    up = [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)]
    np.testing.assert_allclose(up, [0, 1, 0], atol=1e-12)
    return places[indices.ravel()]


def take_surface(viewer: Viewer, parts: dict[str, np.ndarray]) -> list[str]:
    """Takes the next message of the surface into the parts; which of them it has."""
    taken = []
    message = viewer.next("/volumes/room/mesh")
    for gone in message.deletions:
        parts.pop(gone.id, None)
    for entity in message.entities:
        parts[entity.id] = corners_of(entity)
        taken.append(entity.id)
    return taken


def is_surface(parts: dict[str, np.ndarray], volume: voxeld.Volume) -> bool:
    mesh = volume.extract()
    truth = np.asarray(mesh.vertices)[np.asarray(mesh.triangles).ravel()]
    ours = np.concatenate([*parts.values(), np.empty((0, 3), np.float32)])
    return ours.shape == truth.shape and np.allclose(np.sort(ours, 0), np.sort(truth, 0), atol=1e-6)


def test_surface_of_a_volume_is_a_model(daemon: Daemon) -> None:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client, viewing(daemon) as viewer:
        volume = client.volume_create("room", 0.02, truncation_m=0.08)
        shot = shoot(0)
        volume.integrate(shot.depth, CAMERA, shot.pose)
        viewer.subscribe("/volumes/room/mesh")
        parts: dict[str, np.ndarray] = {}
        while not is_surface(parts, volume):
            take_surface(viewer, parts)
        volume.integrate(shoot(1).depth, CAMERA, shoot(1).pose)
        while not is_surface(parts, volume):  # a change comes by itself
            take_surface(viewer, parts)
        client.volume_drop("room")
        viewer.until(lambda: "/volumes/room/mesh" not in viewer.channels)


def test_parts_of_a_surface_that_change_come_again_within_the_budget(daemon: Daemon) -> None:
    budget = 100_000
    with (
        voxeld.connect(daemon.ipc, timeout=30 * SLOW) as client,
        viewing(daemon, f"/foxglove?max_bytes={budget}") as viewer,
    ):
        volume = client.volume_create("room", 0.02, truncation_m=0.08)
        shot = shoot(0)
        volume.integrate(shot.depth, CAMERA, shot.pose)
        viewer.subscribe("/volumes/room/mesh")
        parts: dict[str, np.ndarray] = {}
        while not is_surface(parts, volume):
            take_surface(viewer, parts)
        assert len(parts) >= 4

        # A small piece of the image: few of the parts have its blocks.
        patch = np.zeros_like(shot.depth)
        patch[:12, :12] = shot.depth[:12, :12] * 0.99
        volume.integrate(patch, CAMERA, shot.pose)
        taken: list[str] = []
        while not is_surface(parts, volume):
            taken += take_surface(viewer, parts)
        assert 0 < len(set(taken)) < len(parts) / 2
        # Blocks that are gone are gone here, too.
        volume.clear(voxeld.VolumeBox((-10, -10, -10), (0, 10, 10)))
        while not is_surface(parts, volume):
            take_surface(viewer, parts)
        client.volume_drop("room")


def test_recorded_frames_are_decoded_as_they_were(daemon: Daemon) -> None:
    """Frames that both subprotocols got from this server once, and what it sends now."""
    recorded = json.loads((FILES / "foxglove_frames.json").read_text())
    with viewing(daemon) as viewer, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="golden", spec=spec(bits=4))
        scenes.edit("golden", ball((0.25, -0.5, 0), 0.22, material=5))
        topics = [f"/scenes/golden/{t}" for t in TOPICS]
        viewer.subscribe(*topics)
        for topic in topics:
            now = viewer.next(topic)
            for protocol in PROTOCOLS:
                old = base64.b64decode(recorded[protocol][topic])
                assert old[0] == 1
                then = viewer.classes[topic].FromString(old[13:])
                for message in (now, then):
                    message.ClearField("timestamp") if topic != topics[1] else [
                        e.ClearField("timestamp") for e in message.entities
                    ]
                assert now == then, (topic, protocol)
        scenes.call("scene_drop", name="golden")


def record(path: Path, daemon: Daemon) -> None:
    """Writes foxglove_frames.json: what the test above compares with."""
    frames: dict[str, dict[str, str]] = {}
    with Scenes(daemon) as scenes:
        scenes.call("scene_create", name="golden", spec=spec(bits=4))
        scenes.edit("golden", ball((0.25, -0.5, 0), 0.22, material=5))
        for protocol in PROTOCOLS:
            with viewing(daemon, subprotocols=[protocol]) as viewer:
                topics = [f"/scenes/golden/{t}" for t in TOPICS]
                viewer.subscribe(*topics)
                viewer.until(lambda viewer=viewer: viewer.n_data == len(TOPICS))
                frames[protocol] = {
                    viewer.subscribed[struct.unpack_from("<I", f, 1)[0]]: base64.b64encode(
                        f
                    ).decode()
                    for f in viewer.frames
                    if isinstance(f, bytes)
                }
    path.write_text(json.dumps(frames, indent=1, sort_keys=True) + "\n")


# Who is slow, and who is many ---------------------------------------------------------------


def test_slow_viewer_gets_the_newest_version_and_costs_one_message(
    daemon: Daemon, name: str
) -> None:
    n_edits = 60
    with viewing(daemon) as viewer, Scenes(daemon) as scenes:
        topic = f"/scenes/{name}/points"
        scenes.edit(name, box((-3, -3, -3), (3, 3, 0)))
        viewer.subscribe(topic)
        cloud = viewer.next(topic)
        assert len(cloud.data) > 1_000_000
    with socket.create_connection(("127.0.0.1", daemon.http_port)) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        with (
            connected(daemon, "/foxglove", sock=peer, subprotocols=PROTOCOLS, max_queue=1) as slow,
            Scenes(daemon) as scenes,
        ):
            viewer = Viewer(slow)
            viewer.subscribe(topic)
            time.sleep(0.3)
            before = daemon.resident_bytes()
            for i in range(n_edits):
                scenes.edit(name, box((-3, -3, -3), (3, 3, 0.1 * (i % 2))))
                scenes.edit(name, ball((0, 0, 2), 0.3 + i / 100))
            grown = daemon.resident_bytes() - before
            assert SLOW > 1 or grown < 48 << 20, f"{grown >> 20} MiB"
            n_cells = len(occupied(scenes, name))
            stride = cloud.point_stride
            viewer.until(
                lambda: any(len(m.data) // stride == n_cells for _, m in viewer.messages), 20
            )
            assert viewer.n_data <= 12 < 2 * n_edits


def test_hundred_viewers_all_see_a_change(daemon: Daemon, name: str) -> None:
    n = 100
    topic = f"/scenes/{name}/cubes"
    with contextlib.ExitStack() as stack, Scenes(daemon) as scenes:
        viewers = [stack.enter_context(viewing(daemon)) for _ in range(n)]
        for viewer in viewers:
            viewer.subscribe(topic)
            assert not viewer.next(topic).entities[0].cubes
        scenes.edit(name, ball((0, 0, 0), 0.3))
        n_cells = len(occupied(scenes, name))
        for viewer in viewers:
            assert len(viewer.next(topic).entities[0].cubes) == n_cells
    # The connection with half a message may have its place still.
    wait_until(lambda: open_watchers(daemon) <= 1, 10, "all places are free again")


def open_watchers(daemon: Daemon) -> int:
    text = http_call(daemon, "GET", "/metrics").body.decode()
    line = next(x for x in text.splitlines() if x.startswith("voxeld_watchers"))
    return int(float(line.split()[-1]))


# Who may ------------------------------------------------------------------------------------


def test_handshakes_that_are_none_are_refused(daemon: Daemon) -> None:
    wrong = [
        ({"Upgrade": "h2c"}, 400, "Upgrade"),
        ({"Connection": "close"}, 400, "Connection"),
        ({"Sec-WebSocket-Version": "8"}, 426, "Sec-WebSocket-Version"),
        ({"Sec-WebSocket-Version": ""}, 426, "Sec-WebSocket-Version"),
        ({"Sec-WebSocket-Key": ""}, 400, "Sec-WebSocket-Key"),
        ({"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ"}, 400, "Sec-WebSocket-Key"),
        ({"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==AAAA"}, 400, "Sec-WebSocket-Key"),
        ({"Sec-WebSocket-Key": "dGhlIHNhbXBs!SBub25jZQ=="}, 400, "Sec-WebSocket-Key"),
        ({"Sec-WebSocket-Protocol": "chat, foxglove.websocket.v2"}, 400, "foxglove.sdk.v1"),
        ({"Sec-WebSocket-Protocol": ""}, 400, "foxglove.sdk.v1"),
        ({"Origin": "https://evil.example"}, 403, "http.allowed_origins"),
        ({"Host": "evil.example"}, 403, "http.allowed_hosts"),
    ]
    for headers, status, text in wrong:
        reply = refused(daemon, handshake_text(daemon, **headers))
        assert reply.startswith(f"HTTP/1.1 {status} ".encode()), (headers, reply[:200])
        assert text in reply.decode(), (headers, reply)
    twice = handshake_text(daemon).replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Key: x\r\n\r\n")
    assert refused(daemon, twice).startswith(b"HTTP/1.1 400 ")
    assert http_call(daemon, "GET", "/foxglove").status == 426
    assert http_call(daemon, "POST", "/foxglove").status == 405
    for path in ("/foxglove?max_bytes=1", "/foxglove?max_bytes=1e9", "/foxglove?max_bytes="):
        assert refusal(daemon, path, subprotocols=PROTOCOLS)[0] == 400
    many = handshake_text(daemon).replace(
        b"Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n",
        b"Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: x,foxglove.websocket.v1\r\n",
    )
    with socket.create_connection(("127.0.0.1", daemon.http_port), timeout=10 * SLOW) as peer:
        peer.sendall(many)
        assert b"foxglove.websocket.v1" in peer.recv(4096)


def test_frames_that_break_the_rules_close_the_connection(daemon: Daemon) -> None:
    wrong = [
        (frame(b"{}", masked=False), 1002),
        (frame(b"{}", opcode=3), 1002),
        (frame(b"{}", rsv=4), 1002),
        (frame(b"x" * 126, opcode=9), 1002),
        (frame(b"{}", opcode=0), 1002),
        (frame(b"\xff\xfe"), 1007),
        (frame(b"x" * 70000), 1009),
        (frame(b"x" * 40000, fin=False) + frame(b"x" * 40000, opcode=0), 1009),
    ]
    for data, code in wrong:
        with handshake(daemon, data) as peer:
            # libwslay says no code where a frame's head is wrong.
            assert close_code(peer) in ((code, 0) if code == 1002 else (code,)), data[:10]
    with handshake(daemon, frame(struct.pack(">H", 1000), opcode=8)) as peer:
        assert close_code(peer) == 1000
    with viewing(daemon) as viewer:
        assert viewer.socket.ping(b"hello").wait(10 * SLOW), "a ping is answered"
    with handshake(daemon) as peer:
        peer.close()
    rng = np.random.default_rng(7)
    for _ in range(30):
        with handshake(daemon, rng.bytes(200)) as peer:
            peer.shutdown(socket.SHUT_WR)
            read_frames(peer)
    with viewing(daemon) as viewer:
        viewer.until(lambda: viewer.info)


def test_tokens_and_origins(guarded: Daemon) -> None:
    options: dict[str, Any] = {"subprotocols": PROTOCOLS}
    assert refusal(guarded, "/foxglove", **options)[0] == 401
    assert refusal(guarded, "/foxglove?token=wrong", **options)[0] == 401
    status, error = refusal(guarded, "/foxglove?token=s3cret", **options)
    assert status == 403 and "read alone" in error["message"] and "s3cret" not in str(error)
    assert refusal(guarded, "/v1/watch")[0] == 401
    with viewing(guarded, "/foxglove?token=bobs", origin=ORIGIN) as viewer:
        viewer.until(lambda: viewer.channels)
    status, error = refusal(guarded, "/foxglove?token=bobs", origin="https://x.example", **options)
    assert status == 403 and "http.allowed_origins" in error["message"]
    alice = {"Authorization": "Bearer s3cret"}
    with viewing(guarded, additional_headers=alice) as viewer:
        viewer.until(lambda: viewer.channels)
    with connected(guarded, "/v1/watch?token=bobs") as watch:
        assert json.loads(watch.recv(timeout=10 * SLOW))["event"] == "heads"
    # A ticket stands for any token for an hour, in URLs alone.
    assert http_call(guarded, "POST", "/v1/session/ticket").status == 401
    assert http_call(guarded, "GET", "/v1/session/ticket").status == 405
    ticket = http_call(guarded, "POST", "/v1/session/ticket", headers=alice).json()["ticket"]
    with viewing(guarded, f"/foxglove?token={ticket}", origin=ORIGIN) as viewer:
        viewer.until(lambda: viewer.channels)
    bearer = {"Authorization": f"Bearer {ticket}"}
    assert http_call(guarded, "GET", "/v1/status", headers=bearer).status == 401
    wrong = ticket[:-1] + ("1" if ticket.endswith("0") else "0")
    assert refusal(guarded, f"/foxglove?token={wrong}", **options)[0] == 401
    assert not any("bobs" in line or "s3cret" in line for line in guarded.lines)
    # A cookie is the dashboard's own, so an allowed foreign page cannot use it.
    reply = http_call(guarded, "POST", "/v1/session", headers=alice)
    cookie = {"Cookie": reply.headers["Set-Cookie"].split(";")[0]}
    own = f"http://127.0.0.1:{guarded.http_port}"
    with viewing(guarded, additional_headers=cookie, origin=own) as viewer:
        viewer.until(lambda: viewer.channels)
    options |= {"additional_headers": cookie, "origin": ORIGIN}
    assert refusal(guarded, "/foxglove", **options)[0] == 401


def test_places_are_those_of_watchers(guarded: Daemon) -> None:
    path = "/foxglove?token=bobs"
    with contextlib.ExitStack() as stack:
        for i in range(3):
            where = "/v1/watch?token=bobs" if i == 1 else path
            stack.enter_context(
                connected(guarded, where, subprotocols=PROTOCOLS if i != 1 else None)
            )
        status, error = refusal(guarded, path, subprotocols=PROTOCOLS)
        assert status == 429 and "limits.watchers_per_client" in error["message"]
        with viewing(guarded, additional_headers={"Authorization": "Bearer s3cret"}) as other:
            other.until(lambda: other.channels)

    def has_place() -> bool:
        with contextlib.suppress(InvalidStatus), viewing(guarded, path):
            return True
        return False

    wait_until(has_place, 10, "a place is free again")


def test_own_port_serves_viewers_alone(daemon: Daemon) -> None:
    ready = daemon.find("ready")
    assert ready is not None
    port = int(ready["foxglove"].rsplit(":", 1)[1])
    for path in ("/", "/foxglove"):
        with open_socket(url(daemon, path, port), subprotocols=PROTOCOLS) as opened:
            assert json.loads(opened.recv(timeout=10 * SLOW))["op"] == "serverInfo"
    for path in ("/v1/status", "/metrics", "/index.html", "/v1/watch", "/v1/scene_list"):
        with pytest.raises(InvalidStatus) as caught, open_socket(url(daemon, path, port)):
            pass
        assert caught.value.response.status_code == 404


# The watch ----------------------------------------------------------------------------------


def test_watch_over_a_socket_has_the_events_of_the_stream(daemon: Daemon, name: str) -> None:
    path = f"/v1/scenes/{name}/watch?max_bytes=4096"
    with Scenes(daemon) as scenes, connected(daemon, path) as watch:
        heads = json.loads(watch.recv(timeout=10 * SLOW))
        assert heads["event"] == "resync"
        generation, first = (int(x) for x in heads["id"].split("-"))
        scenes.edit(name, box((-1, -1, -1), (1, 1, 1)))
        scenes.edit(name, ball((2, 2, 2), 0.5))
        last = scenes.edit(name, ball((2, 2, -2), 0.5)).change.version
        events = []
        while not events or events[-1]["id"] != f"{generation}-{last}":
            events.append(json.loads(watch.recv(timeout=10 * SLOW)))
            assert events[-1]["event"] == "cells"
        seen = {}
        for event in events:
            for cell, change in zip(*cells_of(event["data"]), strict=True):
                seen[tuple(cell)] = change
        assert set(seen) == {tuple(c) for c in occupied(scenes, name)}
        # It goes on from the id of any event, as the stream does: the same bytes.
        after = events[0]["id"]
        with connected(daemon, f"{path}&after={after}") as again:
            data = json.loads(again.recv(timeout=10 * SLOW))["data"]
        with socket.create_connection(("127.0.0.1", daemon.http_port)) as stream:
            stream.settimeout(10 * SLOW)
            stream.sendall(
                f"GET {path}&after={after} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.http_port}\r\n\r\n"
                .encode()
            )
            text = b""
            while b"\ndata: " not in text or not text.split(b"\ndata: ", 1)[1].count(b"\n\n"):
                text += stream.recv(65536)
        told = json.loads(text.split(b"\ndata: ", 1)[1].split(b"\n\n")[0])
        for reply in (data, told):
            reply.pop("engineMs", None)
        assert data == told
        scenes.call("scene_drop", name=name)
        assert json.loads(watch.recv(timeout=10 * SLOW))["event"] == "dropped"
        watch.send("hello")
        with pytest.raises(ConnectionClosed) as caught:
            watch.recv(timeout=10 * SLOW)
        assert caught.value.rcvd is not None and caught.value.rcvd.code == 1008
    assert refusal(daemon, "/v1/scenes/nothing/watch")[0] == 404
    assert refusal(daemon, f"/v1/scenes/{name}/watch?colour=red")[0] == 400


def cells_of(reply: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    arrays = []
    for member, kind in (("cells", "<i4"), ("changes", "u1")):
        tensor = reply[member]
        arrays.append(
            np.frombuffer(base64.b64decode(tensor["data"]), kind)
            if "data" in tensor
            else np.array(tensor.get("values", []), kind)
        )
    return arrays[0].reshape(-1, 3), arrays[1]


def test_half_message_ends_within_its_time(stalled: tuple[socket.socket, float]) -> None:
    peer, since = stalled
    peer.settimeout((MESSAGE_S + 10) * SLOW)
    assert close_code(peer) == 1008
    assert time.monotonic() - since > MESSAGE_S - 1


def test_sockets_end_when_the_server_does(tmp_path: Path) -> None:
    with running(tmp_path / "d") as daemon, Scenes(daemon) as scenes:
        scenes.call("scene_create", name="yard", spec=spec())
        with viewing(daemon) as viewer, connected(daemon, "/v1/watch") as watch:
            viewer.subscribe("/scenes/yard/points")
            viewer.next("/scenes/yard/points")
            watch.recv(timeout=10 * SLOW)
            daemon.stop()
            for opened in (viewer.socket, watch):
                with pytest.raises(ConnectionClosed) as caught:
                    while True:
                        opened.recv(timeout=10 * SLOW)
                assert caught.value.rcvd is not None and caught.value.rcvd.code == 1001
