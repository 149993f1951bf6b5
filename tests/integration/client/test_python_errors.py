# SPDX-License-Identifier: Apache-2.0
"""The Python client when something is wrong: bad arguments, no server, overload, and peers
that lie."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pynng
import pytest
import voxeld
from harness import MIB, SLOW, Daemon, common_pb2, random_points, rpc_pb2, running, wait_until
from voxeld.transport import Connection


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[voxeld.Client]:
    with voxeld.connect(daemon.ipc, timeout=30 * SLOW) as connected:
        yield connected


def connect(*arguments: Any) -> voxeld.Client:
    """A client for calls that must not end for want of time."""
    return voxeld.connect(*arguments, timeout=30 * SLOW)


# Arguments and servers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"size": -1}, "size"),
        ({"size": float("nan")}, "size"),
        ({"size": (1, 2)}, "size"),
        ({"size": "large"}, "size"),
        ({"rule": "spconv"}, "range"),
        ({"rule": "other"}, "rule"),
        ({"order": "random"}, "order"),
        ({"reduce": "median"}, "reduce"),
        ({"outputs": "voxels"}, "outputs"),
        ({"outputs": "points"}, "max_points"),
        ({"features": ["nothing"]}, "features"),
        ({"range": (1, 2, 3)}, "range"),
        ({"origin": (1, 2)}, "origin"),
        ({"max_points": 70000}, "max_points"),
        ({"max_points": -1}, ""),
        ({"keep_last": 1}, "stream"),
        ({"timeout": 0}, "timeout"),
        ({"request_id": "a\nb"}, "request_id"),
        ({"points": []}, ""),
        ({"points": [[1, 2, 3], [4, 5]]}, "points"),
        ({"points": "text"}, "points"),
        ({"points": None}, "points"),
        ({"points": [voxeld.Cloud([], 12, b"")], "stamp_ns": 3}, "stamp_ns"),
        ({"points": voxeld.Cloud([], 12, b"")}, "clouds[0]"),
        ({"points": voxeld.Cloud([], 12, "text")}, "clouds[0].data"),
        ({"points": voxeld.Cloud([], -12, b"")}, "clouds[0]"),
        ({"points": voxeld.Cloud([voxeld.Field("x", 0, 99)], 12, b"")}, "clouds[0]"),
        ({"pose": voxeld.Pose((0, 0))}, "T_map_sensor.translation"),
        ({"pose": voxeld.Pose(rotation=(0, 0, 0, 3))}, "T_map_sensor"),
    ],
)
def test_bad_arguments_are_refused_and_named(
    client: voxeld.Client, arguments: dict[str, Any], field: str
) -> None:
    call = {"points": random_points(10), "size": 0.1, **arguments}
    with pytest.raises(voxeld.InvalidArgument) as caught:
        client.voxelize(**call)
    error = caught.value
    assert field in error.field + error.message, error
    assert error.code == voxeld.Code.INVALID_ARGUMENT and error.message
    assert "INVALID_ARGUMENT" in str(error)


BOX = voxeld.Box((0, 0, 0), (1, 1, 1))
DEPTH = np.ones((48, 64), np.float32)


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda c, _: c.voxelize("scan.npy", 0.1), "'scan.npy' is a path; points are right"),
        (lambda c, _: c.voxelize(Path("scan.npy"), 0.1), "numpy.load of an .npy file"),
        (lambda c, _: c.voxelize(np.zeros((3, 500)), 0.1), "a row a point is right: points.T"),
        (lambda c, _: c.voxelize(np.zeros((5, 3)), "0.1m"), "metres: one number or three"),
        (lambda c, _: c.voxelize(np.zeros((5, 3)), 0.1, timeout="5s"), "a number of seconds"),
        (lambda c, _: c.voxelize(np.zeros((5, 3)), 0.1, features=["i"]), "fields: x, y, z"),
        (lambda c, _: c.scene("lawm"), 'Did you mean "lawn"?'),
        (lambda c, _: c.map("nope"), "there are no maps"),
        (lambda c, _: c.odometry("car"), "there are no odometries"),
        (lambda c, _: c.posegraph("loop"), "there are no pose graphs"),
        (lambda c, _: c.network_load("surface"), 'Did you mean "surfaces"?'),
        (lambda c, _: c.infer("surface", np.zeros((5, 3))), 'Did you mean "surfaces"?'),
        (lambda c, _: c.scene_create("lawn", 0.1), "voxel_size_m is 0.2, not 0.1"),
        (lambda c, _: c.scene_create("My Lawn", 0.1), "is no name: lower-case letters, digits"),
        (lambda c, s: s.edit(((0, 0, 0), (1, 1, 1))), "tuple is no shape; a Box, Ball, Capsule"),
        (lambda c, s: s.edit(voxeld.Operation(BOX, material="grass")), "Scene.palette has names"),
        (lambda c, s: s.edit(voxeld.Operation(BOX, "delete")), "one of fill, erase, set_free"),
        (lambda c, s: s.integrate(np.zeros((5, 3)), pose=(1, 2, 3)), "4 x 4 or 3 x 4 is right"),
        (lambda c, s: s.values([[0, 0, 0]], at="monday"), "has no snapshot"),
        (lambda c, s: s.values([[0, 0, 0]], at=99), "99 is not kept"),
        (lambda c, s: s.render(mode="colr"), "not one of colour, height, depth"),
        (lambda c, s: s.render(size=640), "(width, height) is right"),
        (lambda c, s: s.nearest([[0, 0, 0]], -1), "must be > 0"),
    ],
)  # fmt: skip
def test_mistakes_of_new_users_are_explained(
    client: voxeld.Client, mistake: Callable[[voxeld.Client, voxeld.Scene], Any], says: str
) -> None:
    lawn = client.scene_create("lawn", 0.2)
    try:
        with pytest.raises(voxeld.Error) as caught:
            mistake(client, lawn)
        assert says in str(caught.value), caught.value
    finally:
        lawn.drop()


def test_mistakes_with_images_and_graphs_are_explained(client: voxeld.Client) -> None:
    kitchen = client.volume_create("kitchen", 0.05)
    with pytest.raises(voxeld.InvalidArgument, match=r"Camera\(0, 0, fx, fy, cx, cy\) is right"):
        kitchen.integrate(DEPTH, (50, 50, 32, 24))
    with pytest.raises(voxeld.InvalidArgument, match="a Pose or a 4 x 4 matrix is right"):
        kitchen.integrate(DEPTH, voxeld.Camera(0, 0, 50, 50, 32, 24), T_grid_camera=(1, 2, 3))
    kitchen.drop()
    loop = client.posegraph_create("loop")
    with pytest.raises(voxeld.InvalidArgument, match="ndarray; a PosegraphNode is right"):
        loop.add(nodes=[np.eye(4)])
    loop.drop()


def test_error_of_the_server_names_its_request(client: voxeld.Client) -> None:
    with pytest.raises(voxeld.InvalidArgument) as caught:
        client.voxelize(random_points(10), -1, request_id="mine-1")
    assert caught.value.request_id == "mine-1"
    assert caught.value.field.startswith("size")
    assert client.voxelize(random_points(10), 1, request_id="mine-2").request_id == "mine-2"


def test_every_code_has_its_exception() -> None:
    kinds = {int(kind.code): kind for kind in voxeld.Error.__subclasses__()}
    codes = dict(common_pb2.Code.items())
    assert {c.name: int(c) for c in voxeld.Code} == codes
    assert set(kinds) == set(codes.values()) - {0}
    assert all(kind.__name__ in voxeld.__all__ for kind in kinds.values())
    dtypes = {d.name: int(d) for d in voxeld.DType}
    assert dtypes | {"DTYPE_UNSPECIFIED": 0} == dict(common_pb2.DType.items())


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"url": "nonsense"}, voxeld.InvalidArgument),
        ({"url": "ipc://" + "x" * 200}, voxeld.InvalidArgument),
        ({"timeout": -1}, voxeld.InvalidArgument),
        ({"wait": -1}, voxeld.InvalidArgument),
        ({"max_in_flight": 0}, voxeld.InvalidArgument),
        ({"max_reply_bytes": 0}, voxeld.InvalidArgument),
        ({"url": "tcp://127.0.0.1:1", "wait": 0.05}, voxeld.Unavailable),
    ],
)
def test_connect_says_what_is_wrong(
    directory: Path, options: dict[str, Any], kind: type[voxeld.Error]
) -> None:
    with pytest.raises(kind):
        voxeld.connect(**{"url": f"ipc://{directory}/no.sock", **options})


def test_no_server_is_unavailable_at_once(directory: Path) -> None:
    url = f"ipc://{directory}/nobody.sock"
    begin = time.monotonic()
    with pytest.raises(voxeld.Unavailable, match="is voxeld running"):
        voxeld.connect(url, timeout=60)
    with voxeld.connect(url, timeout=60, wait=0) as client:
        assert not client.is_connected
        with pytest.raises(voxeld.Unavailable):
            client.voxelize(random_points(10), 0.1)
    assert time.monotonic() - begin < 30


def test_url_is_chosen_as_libvoxeld_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VOXELD_URL", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with voxeld.connect(wait=0) as client:
        assert client.url == "ipc:///run/voxeld/voxeld.sock"
    (tmp_path / "voxeld").mkdir()
    (tmp_path / "voxeld" / "voxeld.sock").touch()
    with voxeld.connect(wait=0) as client:
        assert client.url == f"ipc://{tmp_path}/voxeld/voxeld.sock"
    monkeypatch.setenv("VOXELD_URL", "ipc:///elsewhere.sock")
    with voxeld.connect(wait=0) as client:
        assert client.url == "ipc:///elsewhere.sock"
    with voxeld.connect("ipc:///given.sock", wait=0) as client:
        assert client.url == "ipc:///given.sock"


def test_request_over_the_servers_limit_is_not_sent(directory: Path) -> None:
    limits = {"limits": {"message_bytes": 2 << 20}}
    with running(directory, limits) as daemon, connect(daemon.ipc) as client:
        with pytest.raises(voxeld.ResourceExhausted, match="at most 2097152"):
            client.voxelize(np.zeros((200000, 3), np.float32), 1)
        assert client.status().state == "serving"


def test_client_reconnects_after_a_restart(directory: Path) -> None:
    with running(directory) as daemon:
        client = voxeld.connect(daemon.ipc, timeout=20 * SLOW)
        first = client.server_info().instance_id
    with client:
        wait_until(lambda: not client.is_connected, 5, "the loss is noticed")
        with pytest.raises(voxeld.Unavailable):
            client.status()
        with running(directory):
            wait_until(lambda: client.is_connected, 10, "it connects again")
            assert client.server_info().instance_id != first


def test_deadline_is_kept_and_the_client_goes_on(client: voxeld.Client) -> None:
    begin = time.monotonic()
    with pytest.raises(voxeld.DeadlineExceeded):
        client.self_test(60000, timeout=0.2)
    assert time.monotonic() - begin < 30
    assert client.voxelize(random_points(10), 0.1).n_points == 10


def test_token_of_wrong_kind_is_unauthenticated(directory: Path) -> None:
    with Peer(directory, lambda _: failed(16)) as peer, connect(peer.url, "t") as client:
        with pytest.raises(voxeld.Unauthenticated):
            client.status()
        assert peer.requests[0].header.token == "t"


# Overload ----------------------------------------------------------------------------------


def test_calls_over_the_bound_fail_at_once_and_close_gives_up_the_rest(daemon: Daemon) -> None:
    client = voxeld.connect(daemon.ipc, timeout=30 * SLOW, max_in_flight=2)
    with ThreadPoolExecutor(2) as pool:
        running_calls = [pool.submit(client.self_test, 20000, timeout=25) for _ in range(2)]
        wait_until(
            lambda: client._connection._n_in_flight == 2, 5, "both calls are under way"
        )
        with pytest.raises(voxeld.ResourceExhausted):
            client.status()
        begin = time.monotonic()
        client.close()
        for call in running_calls:
            with pytest.raises(voxeld.Cancelled):
                call.result(30)
        assert time.monotonic() - begin < 15
    with pytest.raises(voxeld.Cancelled):
        client.status()
    client.close()


def test_newer_request_of_a_stream_supersedes_the_waiting_one(directory: Path) -> None:
    points = random_points(400000, seed=1)
    config = {"engine": {"backend": "cpu", "threads": 1}}
    with (
        running(directory, config) as daemon,
        voxeld.connect(
            daemon.ipc, client_id="robot", timeout=30 * SLOW, max_in_flight=64
        ) as client,
        ThreadPoolExecutor(24) as pool,
    ):
        calls = [
            pool.submit(client.voxelize, points, 0.05, stream="s", keep_last=1, features=())
            for _ in range(24)
        ]
        errors = [call.exception() for call in calls]
    assert None in errors
    assert {type(e) for e in errors if e is not None} <= {voxeld.Aborted}
    assert any(e is not None and "superseded" in e.message for e in errors)


# Peers that lie ----------------------------------------------------------------------------


class Peer:
    """A REP socket that answers each request with what reply() makes of it."""

    def __init__(self, directory: Path, reply: Callable[[Any], Any]) -> None:
        self.url = f"ipc://{directory}/peer.sock"
        self.requests: list[Any] = []
        self.reply = reply
        self.socket = pynng.Rep0(listen=self.url, recv_timeout=-1)
        self.socket.recv_max_size = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self) -> Peer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.thread.join(20)

    def serve(self) -> None:
        try:
            while True:
                self.requests.append(rpc_pb2.Request.FromString(self.socket.recv()))
                answer = self.reply(self.requests[-1])
                if answer is not None:
                    data = answer if isinstance(answer, bytes) else answer.SerializeToString()
                    self.socket.send(data)
        except pynng.Closed:
            pass


def failed(code: int) -> Any:
    return rpc_pb2.Response(header=rpc_pb2.ResponseHeader(code=code, field="f"))


def tensor(dtype: int, array: np.ndarray) -> common_pb2.Tensor:
    return common_pb2.Tensor(dtype=dtype, shape=array.shape, data=array.tobytes())


def good_reply() -> Any:
    """The reply to two points in one voxel, with coords, counts, inverse and mean asked for."""
    response = rpc_pb2.Response(header=rpc_pb2.ResponseHeader(request_id="r"))
    v = response.voxelize
    v.n_voxels = 1
    v.items.add(n_points=2, n_used=2, n_voxels=1)
    v.coords.CopyFrom(tensor(common_pb2.INT32, np.zeros((1, 4), "<i4")))
    v.counts.CopyFrom(tensor(common_pb2.UINT32, np.full(1, 2, "<u4")))
    v.inverse.CopyFrom(tensor(common_pb2.INT32, np.zeros(2, "<i4")))
    v.mean.CopyFrom(tensor(common_pb2.FLOAT32, np.zeros((1, 3), "<f4")))
    v.features.extend("xyz")
    return response


def ask(directory: Path, answer: Any) -> voxeld.Voxels:
    with Peer(directory, lambda _: answer) as peer, connect(peer.url) as client:
        return client.voxelize(
            np.zeros((2, 3), np.float32), 1, outputs=("coords", "counts", "inverse")
        )


def test_good_reply_of_a_peer_is_taken(directory: Path) -> None:
    assert ask(directory, good_reply()).counts.tolist() == [2]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda v: setattr(v.coords, "data", v.coords.data[:-1]), "coords"),
        (lambda v: setattr(v.coords, "data", v.coords.data * 2), "coords"),
        (lambda v: v.coords.ClearField("data"), "coords"),
        (lambda v: v.ClearField("counts"), "counts"),
        (lambda v: setattr(v.counts, "dtype", common_pb2.INT32), "counts"),
        (lambda v: v.mean.shape.__setitem__(1, 2), "mean"),
        (lambda v: v.mean.shape.__setitem__(0, -1), "mean"),
        (lambda v: v.mean.shape.append(1), "mean"),
        (lambda v: v.mean.values.append(1), "mean"),
        (lambda v: setattr(v, "n_voxels", 2**40), "n_voxels"),
        (lambda v: setattr(v, "n_voxels", 2), "coords"),
        (lambda v: setattr(v.inverse, "data", b"\1\0\0\0" + bytes(4)), "inverse"),
        (lambda v: setattr(v.inverse, "data", b"\xfe\xff\xff\xff" + bytes(4)), "inverse"),
        (lambda v: setattr(v.items[0], "n_voxels", 2), "items"),
        (lambda v: setattr(v.items[0], "first_voxel", 2**64 - 1), "items"),
        (lambda v: setattr(v.items[0], "first_point", 1), "items"),
        (lambda v: setattr(v.items[0], "n_points", 3), "inverse"),
        (lambda v: v.items.add(), "items"),
        (lambda v: v.features.append("w"), "mean"),
        (lambda v: v.grid.extend([1, 2]), "grid"),
    ],
)
def test_reply_that_contradicts_itself_is_internal(
    directory: Path, change: Callable[[Any], Any], field: str
) -> None:
    response = good_reply()
    change(response.voxelize)
    with pytest.raises(voxeld.Internal, match="inconsistent") as caught:
        ask(directory, response)
    wanted = {field} if field != "coords" else {"coords", "counts", "mean"}
    assert caught.value.field in wanted


GOOD = good_reply().SerializeToString()


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff" * 20, b"\x0a\x7f", b"\x0b\x0c", GOOD[:-1], GOOD[:40], b"\xa2\x01\x7f",
     b"\x0a\x02\x0a\x7f", rpc_pb2.Response(status={}).SerializeToString(),
     rpc_pb2.Response(header={}, status={}).SerializeToString(),
     rpc_pb2.Response(header={}).SerializeToString()],
)  # fmt: skip
def test_reply_that_is_none_is_internal(directory: Path, data: bytes) -> None:
    with pytest.raises(voxeld.Internal):
        ask(directory, data)


def test_reply_of_every_truncation_is_an_error_or_right() -> None:
    from voxeld import calls as module

    for n in range(len(GOOD)):
        try:
            module.opened(memoryview(GOOD[:n]), "voxelize")
        except voxeld.Internal:
            continue


@pytest.mark.parametrize(("code", "name"), [(99, "UNKNOWN"), (10, "ABORTED"), (1, "CANCELLED")])
def test_code_of_the_server_becomes_its_exception(directory: Path, code: int, name: str) -> None:
    with pytest.raises(voxeld.Error) as caught:
        ask(directory, failed(code))
    assert caught.value.code.name == name
    assert caught.value.message == "no reason given"


def test_peer_that_stays_silent_or_dies_is_bounded(directory: Path) -> None:
    silent = Peer(directory, lambda _: None)
    with silent, voxeld.connect(silent.url, timeout=0.2) as client:
        begin = time.monotonic()
        with pytest.raises(voxeld.DeadlineExceeded):
            client.status()
        assert time.monotonic() - begin < 30
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(client.status, timeout=60)
            time.sleep(0.1)
            silent.socket.close()
            with pytest.raises(voxeld.Unavailable):
                call.result(30)


def test_requests_not_sent_when_the_server_dies_are_unavailable_at_once(directory: Path) -> None:
    path = str(directory / "s")
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(4) as pool:
        listener.bind(path)
        listener.listen(1)
        connection = Connection(f"ipc://{path}", 4, MIB)
        server, _ = listener.accept()
        server.sendall(b"\0SP\0\0\x31\0\0")
        assert server.recv(8) == b"\0SP\0\0\x30\0\0"
        # The peer reads nothing more: the first request fills the connection, and the others wait.
        connection.wait(10 * SLOW)
        calls = [pool.submit(connection.exchange, [bytes(4 * MIB)], 90) for _ in range(4)]
        time.sleep(0.3 * SLOW)
        begin = time.monotonic()
        server.close()
        listener.close()
        for call in calls:
            with pytest.raises(voxeld.Unavailable):
                call.result(100)
        assert time.monotonic() - begin < 30
        connection.close()


def test_close_returns_while_a_reply_is_half_received(directory: Path) -> None:
    path = f"{directory}/half.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        client = voxeld.connect(f"ipc://{path}", timeout=0.5 * SLOW, wait=0)
        peer, _ = listener.accept()
        with peer, ThreadPoolExecutor(1) as pool:
            peer.sendall(b"\0SP\0\0\x31\0\0")  # REP's half of the handshake
            wait_until(lambda: client.is_connected, 5, "the peer is taken for a server")
            call = pool.submit(client.status)
            request = peer.recv(4096)
            peer.sendall(b"\x01" + (4 * MIB).to_bytes(8, "big") + request[-4:] + bytes(MIB))
            with pytest.raises(voxeld.DeadlineExceeded):
                call.result(10 * SLOW)
            begin = time.monotonic()
            client.close()
            assert time.monotonic() - begin < 30


def test_reply_over_the_bound_is_not_taken(directory: Path) -> None:
    with (
        Peer(directory, lambda _: bytes(1 << 20)) as peer,
        voxeld.connect(peer.url, timeout=0.5, max_reply_bytes=1 << 16) as client,
        pytest.raises((voxeld.Unavailable, voxeld.DeadlineExceeded)),
    ):
        client.status()
