# SPDX-License-Identifier: Apache-2.0
"""A foreign client over nng: results against the NumPy oracle, and the envelope's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import (
    OK,
    Daemon,
    Rpc,
    array_of,
    cloud_of,
    common_pb2,
    random_points,
    rpc_pb2,
    voxelize_pb2,
    voxelize_request,
)
from oracle import Voxels

RULES = {"spconv": voxelize_pb2.SPCONV, "minkowski": voxelize_pb2.MINKOWSKI}
LOW, HIGH = (-16.0, -12.0, -3.0), (15.0, 12.0, 5.0)


def range_of(low: tuple[float, ...], high: tuple[float, ...]) -> voxelize_pb2.Range:
    return voxelize_pb2.Range(
        low=common_pb2.Vec3(x=low[0], y=low[1], z=low[2]),
        high=common_pb2.Vec3(x=high[0], y=high[1], z=high[2]),
    )


def check(response: rpc_pb2.Response, expected: Voxels) -> None:
    assert response.header.code == OK, response.header
    result = response.voxelize
    coords = array_of(result.coords)
    assert (coords[:, 0] == 0).all()
    np.testing.assert_array_equal(coords[:, 1:], expected.coords)
    np.testing.assert_array_equal(array_of(result.counts), expected.counts)
    np.testing.assert_array_equal(array_of(result.inverse), expected.inverse)
    np.testing.assert_allclose(
        array_of(result.mean), expected.mean, rtol=1e-5, atol=1e-5 * 20
    )


@pytest.mark.parametrize("rule", ["spconv", "minkowski"])
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_voxelize_by_a_foreign_client_matches_the_oracle(
    daemon: Daemon, rule: str, transport: str
) -> None:
    points = random_points(30000, seed=7)
    points[5] = np.nan
    points[6, 2] = np.inf
    intensity = np.arange(len(points), dtype=np.float32)[:, None] / 1000
    rows = np.hstack([points, intensity])
    request = voxelize_request(
        cloud_of(rows, ["x", "y", "z", "intensity"]),
        size=0.4,
        rule=RULES[rule],
        range=range_of(LOW, HIGH),
        outputs=[
            voxelize_pb2.OUTPUT_COORDS,
            voxelize_pb2.OUTPUT_COUNTS,
            voxelize_pb2.OUTPUT_INVERSE,
        ],
    )
    with Rpc(daemon.ipc if transport == "ipc" else daemon.tcp) as client:
        check(client.call("voxelize", request), Voxels(points, rows, 0.4, rule, LOW, HIGH))


def test_voxelize_negative_coordinates_without_range_are_signed(rpc: Rpc) -> None:
    points = random_points(5000, seed=3)
    request = voxelize_request(
        cloud_of(points),
        size=0.25,
        outputs=[
            voxelize_pb2.OUTPUT_COORDS,
            voxelize_pb2.OUTPUT_COUNTS,
            voxelize_pb2.OUTPUT_INVERSE,
        ],
    )
    expected = Voxels(points, points, 0.25, "minkowski")
    assert expected.coords.min() < 0
    check(rpc.call("voxelize", request), expected)


def test_voxelize_batch_with_empty_items_keeps_items_apart(rpc: Rpc) -> None:
    points = random_points(2000, seed=4)
    empty = np.zeros((0, 3), np.float32)
    request = voxelize_request(
        cloud_of(empty), cloud_of(points), cloud_of(empty), cloud_of(points), size=0.5
    )
    response = rpc.call("voxelize", request)
    assert response.header.code == OK, response.header
    items = response.voxelize.items
    expected = Voxels(points, points, 0.5, "minkowski")
    assert [i.n_voxels for i in items] == [0, len(expected.coords), 0, len(expected.coords)]
    coords = array_of(response.voxelize.coords)
    for index in (1, 3):
        first = items[index].first_voxel
        rows = coords[first : first + items[index].n_voxels]
        assert (rows[:, 0] == index).all()
        np.testing.assert_array_equal(rows[:, 1:], expected.coords)


def test_voxelize_zero_points_gives_zero_voxels(rpc: Rpc) -> None:
    response = rpc.call("voxelize", voxelize_request(cloud_of(np.zeros((0, 3)))))
    assert response.header.code == OK, response.header
    assert response.voxelize.n_voxels == 0
    assert list(response.voxelize.coords.shape) == [0, 4]


def test_voxelize_nan_clouds_are_dropped_and_counted(rpc: Rpc) -> None:
    points = np.full((100, 3), np.nan, np.float32)
    points[50] = (1, 2, 3)
    points[51] = (np.inf, 0, 0)
    points[52] = (3e38, 0, 0)
    response = rpc.call("voxelize", voxelize_request(cloud_of(points)))
    assert response.header.code == OK, response.header
    item = response.voxelize.items[0]
    assert (item.n_points, item.n_used, item.n_non_finite, item.n_out_of_range) == (
        100,
        1,
        98,
        1,
    )


def test_voxelize_echoes_stamp_frame_and_geometry(rpc: Rpc) -> None:
    cloud = cloud_of(random_points(10), stamp_ns=123456789, frame_id="lidar_top")
    response = rpc.call("voxelize", voxelize_request(cloud, size=0.2), request_id="echo-1")
    assert response.header.request_id == "echo-1"
    assert response.header.total_ms >= response.header.queue_ms >= 0
    item = response.voxelize.items[0]
    assert (item.stamp_ns, item.frame_id) == (123456789, "lidar_top")
    assert response.voxelize.axes == "xyz"
    assert response.voxelize.size.x == pytest.approx(0.2)


def test_server_info_names_methods_and_limits(rpc: Rpc) -> None:
    response = rpc.call("server_info")
    assert response.header.code == OK
    info = response.server_info
    assert list(info.methods) == sorted(info.methods)
    assert {"server_info", "status", "self_test", "voxelize"} <= set(info.methods)
    assert info.backend == "cpu"
    assert info.max_message_bytes > 0
    assert response.header.request_id  # made by the server


def test_unknown_method_is_unimplemented_and_named(rpc: Rpc) -> None:
    header = rpc_pb2.Request(header=rpc_pb2.RequestHeader(request_id="later"))
    # field 999, length-delimited, empty: a method of a newer client
    data = header.SerializeToString() + bytes([0xBA, 0x3E, 0x00])
    response = rpc.call_raw(data)
    assert response.header.code == common_pb2.UNIMPLEMENTED
    assert response.header.request_id == "later"
    assert "999" in response.header.message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x0a\x7f",
        b"\x0b\x0c",
        b"\x00\x00",
        rpc_pb2.Request(header=rpc_pb2.RequestHeader()).SerializeToString(),
    ],
)
def test_malformed_envelope_is_an_invalid_argument(rpc: Rpc, data: bytes) -> None:
    assert rpc.call_raw(data).header.code == common_pb2.INVALID_ARGUMENT
    assert rpc.call("server_info").header.code == OK


def test_malformed_envelope_still_echoes_its_request_id(rpc: Rpc) -> None:
    head = rpc_pb2.Request(header=rpc_pb2.RequestHeader(request_id="broken-7"))
    response = rpc.call_raw(head.SerializeToString() + b"\xa2\x01\x7f")
    assert response.header.code == common_pb2.INVALID_ARGUMENT
    assert response.header.request_id == "broken-7"


@pytest.mark.parametrize(
    ("header", "word"),
    [
        ({"request_id": "a\nb"}, "request_id"),
        ({"request_id": "x" * 64}, "request_id"),
        ({"client_id": "Not A Name"}, "client_id"),
        ({"stream": "UPPER"}, "stream"),
        ({"keep_last": 1}, "stream"),
        ({"timeout_ms": 0xFFFFFFFF}, "timeout_ms"),
        ({"expect_digests": ["net=00"]}, "expect_digests"),
    ],
)
def test_bad_header_is_refused_and_named(rpc: Rpc, header: dict, word: str) -> None:
    response = rpc.call("server_info", **header)
    assert response.header.code == common_pb2.INVALID_ARGUMENT
    assert word in response.header.field + " " + response.header.message


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda r: r.ClearField("size"), "size"),
        (lambda r: setattr(r.size, "x", -1.0), "size"),
        (lambda r: setattr(r.size, "y", float("nan")), "size"),
        (lambda r: r.ClearField("clouds"), "clouds"),
        (lambda r: setattr(r.clouds[0], "point_step", 0), "point_step"),
        (lambda r: setattr(r.clouds[0], "point_step", 11), "clouds[0]"),
        (lambda r: setattr(r.clouds[0].fields[2], "offset", 0xFFFFFFFC), "offset"),
        (lambda r: setattr(r.clouds[0].fields[2], "dtype", 99), "dtype"),
        (lambda r: setattr(r.clouds[0], "data", b"1234567"), "data"),
        (lambda r: r.features.append("nothing"), "features"),
        (lambda r: setattr(r, "rule", voxelize_pb2.SPCONV), "range"),
        (lambda r: setattr(r, "max_points", 70000), "max_points"),
    ],
)
def test_bad_field_is_refused_and_named(
    rpc: Rpc, change: Callable[[Any], object], field: str
) -> None:
    request = voxelize_request(cloud_of(random_points(10)))
    change(request)
    response = rpc.call("voxelize", request)
    assert response.header.code == common_pb2.INVALID_ARGUMENT, response
    assert field in response.header.field, response.header
    assert response.WhichOneof("method") is None


def test_message_over_the_limit_is_refused_and_named(daemon: Daemon) -> None:
    with Rpc(daemon.tcp) as client:
        limit = client.call("server_info").server_info.max_message_bytes
        head = rpc_pb2.Request(header=rpc_pb2.RequestHeader(request_id="large-1"))
        response = client.call_raw(head.SerializeToString() + bytes(limit + 100000))
        assert response.header.code == common_pb2.RESOURCE_EXHAUSTED
        assert response.header.request_id == "large-1"
        assert f"limits.message_bytes is {limit}" in response.header.message
        assert client.call("server_info").header.code == OK
