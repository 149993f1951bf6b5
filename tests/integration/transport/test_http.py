# SPDX-License-Identifier: Apache-2.0
"""HTTP as dashboards and curl use it: JSON, protobuf, files, views, errors."""

from __future__ import annotations

import base64
import http.client
import io
import json
import re
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness import (
    SLOW,
    SOURCE,
    Daemon,
    Reply,
    array_of,
    cloud_of,
    http_call,
    idle_bytes,
    inflight_bytes,
    random_points,
    raw_http,
    running,
    voxelize_pb2,
    voxelize_request,
    wait_until,
)
from oracle import Voxels

PROTOBUF = {"Content-Type": "application/x-protobuf"}
SCAN = SOURCE / "tests" / "data" / "spconv_benchmark_pc.npy"


def curl(daemon: Daemon, path: str, *args: str, data: bytes | None = None) -> bytes:
    """Returns what curl prints; fails on statuses of 400 and above."""
    url = f"http://127.0.0.1:{daemon.http_port}{path}"
    done = subprocess.run(
        ["curl", "-sS", "--fail-with-body", "--max-time", str(60 * SLOW), *args, url],
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def error_of(reply: Reply) -> dict[str, str]:
    """Returns the error of a reply, which has its documented shape."""
    error = reply.json()
    assert list(error) == ["code", "message", "field", "request_id"]
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cache-Control"] == "no-store"
    assert error["message"]
    return error


def json_cloud(points: np.ndarray) -> dict:
    return {
        "fields": [
            {"name": n, "offset": 4 * i, "dtype": "FLOAT32"} for i, n in enumerate("xyz")
        ],
        "pointStep": 12,
        "data": base64.b64encode(points.astype("<f4").tobytes()).decode(),
    }


def test_voxelize_json_by_curl_matches_the_oracle(daemon: Daemon) -> None:
    points = random_points(500, seed=11)
    body = {
        "clouds": [json_cloud(points)],
        "size": {"x": 0.5, "y": 0.5, "z": 0.5},
        "outputs": ["OUTPUT_COORDS", "OUTPUT_COUNTS"],
    }
    out = curl(
        daemon, "/v1/voxelize", "-H", "Content-Type: application/json", "--data-binary",
        "@-", data=json.dumps(body).encode(),
    )  # fmt: skip
    result = json.loads(out)
    expected = Voxels(points, points, 0.5, "minkowski")
    assert int(result["nVoxels"]) == len(expected.coords)
    coords = np.array(result["coords"]["values"]).reshape(-1, 4)
    np.testing.assert_array_equal(coords[:, 1:], expected.coords)
    np.testing.assert_array_equal(result["counts"]["values"], expected.counts)


def test_voxelize_protobuf_by_curl_matches_the_oracle(
    daemon: Daemon, directory: Path
) -> None:
    points = random_points(20000, seed=12)
    file = directory / "request.pb"
    file.write_bytes(voxelize_request(cloud_of(points), size=0.5).SerializeToString())
    out = curl(
        daemon, "/v1/voxelize", "-H", "Content-Type: application/x-protobuf",
        "--data-binary", f"@{file}",
    )  # fmt: skip
    response = voxelize_pb2.VoxelizeResponse.FromString(out)
    expected = Voxels(points, points, 0.5, "minkowski")
    np.testing.assert_array_equal(array_of(response.coords)[:, 1:], expected.coords)


def pcd_of(points: np.ndarray) -> bytes:
    head = (
        "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {len(points)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {len(points)}\n"
        "DATA binary\n"
    )
    return head.encode() + points.astype("<f4").tobytes()


def npy_of(points: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, points)
    return buffer.getvalue()


@pytest.mark.parametrize(("name", "write"), [("pcd", pcd_of), ("npy", npy_of)])
def test_file_by_plain_curl_matches_the_oracle(
    daemon: Daemon, directory: Path, name: str, write: Callable[[np.ndarray], bytes]
) -> None:
    points = random_points(3000, seed=13)
    file = directory / f"scan.{name}"
    file.write_bytes(write(points))
    out = curl(
        daemon, f"/v1/voxelize?format={name}&size=0.5", "--data-binary", f"@{file}",
        "-H", "Accept: application/x-protobuf",
    )  # fmt: skip
    response = voxelize_pb2.VoxelizeResponse.FromString(out)
    expected = Voxels(points, points, 0.5, "minkowski")
    np.testing.assert_array_equal(array_of(response.coords)[:, 1:], expected.coords)


def las_of(raw: np.ndarray, scale: float, bias: float) -> bytes:
    """Makes LAS 1.2, point format 0, from its specification."""
    head = struct.pack(
        "<4s20xBB68xHIIBHI20x6d48x", b"LASF", 1, 2, 227, 227, 0, 0, 20, len(raw),
        scale, scale, scale, bias, bias, bias,
    )  # fmt: skip
    records = np.zeros(len(raw), dtype=[("xyz", "<i4", 3), ("rest", "u1", 8)])
    records["xyz"] = raw
    return head + records.tobytes()


def test_las_by_plain_curl_matches_the_oracle(daemon: Daemon, directory: Path) -> None:
    scale, bias = 1 / 1024, 2.5  # so that every coordinate is a float32
    raw = np.round((random_points(3000, seed=14) - bias) / scale).astype("<i4")
    file = directory / "scan.las"
    file.write_bytes(las_of(raw, scale, bias))
    out = curl(
        daemon, "/v1/voxelize?format=las&size=0.5", "--data-binary", f"@{file}",
        "-H", "Accept: application/x-protobuf",
    )  # fmt: skip
    response = voxelize_pb2.VoxelizeResponse.FromString(out)
    points = (raw * scale + bias).astype("<f4")
    expected = Voxels(points, points, 0.5, "minkowski")
    np.testing.assert_array_equal(array_of(response.coords)[:, 1:], expected.coords)


@pytest.mark.skipif(not SCAN.exists(), reason="the benchmark scan is not there")
def test_real_scan_by_curl_matches_the_oracle(daemon: Daemon) -> None:
    points = np.load(SCAN)
    out = curl(
        daemon, "/v1/voxelize?format=npy&size=0.1", "--data-binary", f"@{SCAN}",
        "-H", "Accept: application/x-protobuf",
    )  # fmt: skip
    response = voxelize_pb2.VoxelizeResponse.FromString(out)
    expected = Voxels(points[:, :3], points[:, :3], 0.1, "minkowski")
    np.testing.assert_array_equal(array_of(response.coords)[:, 1:], expected.coords)
    np.testing.assert_array_equal(array_of(response.counts), expected.counts)


def test_safetensors_reply_has_named_tensors(daemon: Daemon) -> None:
    points = random_points(1000)
    body = voxelize_request(cloud_of(points), size=0.5).SerializeToString()
    reply = http_call(
        daemon, "POST", "/v1/voxelize", body,
        {**PROTOBUF, "Accept": "application/x-safetensors"},
    )  # fmt: skip
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/x-safetensors"
    n_header = struct.unpack("<Q", reply.body[:8])[0]
    header = json.loads(reply.body[8 : 8 + n_header])
    begin, end = header["coords"]["data_offsets"]
    rows = np.frombuffer(reply.body[8 + n_header :][begin:end], "<i4").reshape(-1, 4)
    expected = Voxels(points, points, 0.5, "minkowski")
    np.testing.assert_array_equal(rows[:, 1:], expected.coords)


@pytest.mark.parametrize(
    ("accept", "type_"),
    [
        (None, "application/x-protobuf"),
        ("*/*", "application/x-protobuf"),
        ("application/json", "application/json"),
        ("application/json;q=0.2, application/x-protobuf;q=0.9", "application/x-protobuf"),
        ("application/x-protobuf; q=0.1, application/json", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("application/json;q=0", "application/x-protobuf"),
    ],
)
def test_accept_chooses_the_reply(daemon: Daemon, accept: str | None, type_: str) -> None:
    headers = dict(PROTOBUF)
    if accept:
        headers["Accept"] = accept
    reply = http_call(daemon, "POST", "/v1/server_info", b"", headers)
    assert (reply.status, reply.headers["Content-Type"]) == (200, type_)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"clouds":[],"clouds":[]}', ""),
        ('{"unknown":1}', "unknown"),
        ('{"size":{"x":"wide"}}', "size.x"),
        ('{"size":{"x":0.1,"y":0.1,"z":0.1}}', "clouds"),
        ('{"maxPoints":-1}', "maxPoints"),
        ('{"size":', ""),
        ("[]", ""),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_bad_json_is_a_400_that_names_the_field(
    daemon: Daemon, body: str, field: str
) -> None:
    reply = http_call(
        daemon, "POST", "/v1/voxelize", body, {"Content-Type": "application/json"}
    )
    assert reply.status == 400
    error = error_of(reply)
    assert error["code"] == "INVALID_ARGUMENT"
    assert field in error["field"]


def test_request_id_is_echoed_everywhere(daemon: Daemon) -> None:
    ids = {"X-Request-Id": "trace-42"}
    good = http_call(daemon, "POST", "/v1/server_info", {}, ids)
    assert (good.status, good.headers["X-Request-Id"]) == (200, "trace-42")
    bad = http_call(daemon, "POST", "/v1/voxelize", {}, ids)
    assert bad.headers["X-Request-Id"] == "trace-42"
    assert error_of(bad)["request_id"] == "trace-42"
    missing = http_call(daemon, "POST", "/v1/nothing", {}, ids)
    assert error_of(missing)["request_id"] == "trace-42"
    made = http_call(daemon, "POST", "/v1/server_info", {})
    assert made.headers["X-Request-Id"]


@pytest.mark.parametrize(
    "name", ["X-Voxeld-Timeout-Ms", "X-Voxeld-Keep-Last", "X-Voxeld-Max-Age-Ms"]
)
@pytest.mark.parametrize("value", ["", "-1", "1.5", "0x10", "9" * 30, "1 ", "ten"])
def test_bad_number_in_a_header_is_named(daemon: Daemon, name: str, value: str) -> None:
    if value == "1 ":
        value = "1 2"
    reply = http_call(daemon, "POST", "/v1/server_info", {}, {name: value})
    assert reply.status == 400
    assert error_of(reply)["field"] == name


@pytest.mark.parametrize("value", ["", "k" * 64, "caf\xe9"])
def test_idempotency_key_malformed_is_refused(daemon: Daemon, value: str) -> None:
    reply = http_call(daemon, "POST", "/v1/server_info", {}, {"Idempotency-Key": value})
    assert reply.status == 400
    assert error_of(reply)["field"] == "Idempotency-Key"


def test_statuses_of_http_itself(daemon: Daemon) -> None:
    assert error_of(reply := http_call(daemon, "GET", "/nothing"))["code"] == "NOT_FOUND"
    assert reply.status == 404
    assert http_call(daemon, "POST", "/v1/", {}).status == 404
    reply = http_call(daemon, "GET", "/v1/voxelize")
    assert reply.status == 405
    assert "POST" in reply.headers["Allow"]
    error_of(reply)
    reply = http_call(daemon, "POST", "/metrics", {})
    assert reply.status == 405
    assert reply.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert http_call(daemon, "DELETE", "/v1/voxelize").status == 405
    for type_ in ("text/plain", "multipart/form-data; boundary=x", "text/json"):
        reply = http_call(daemon, "POST", "/v1/voxelize", "{}", {"Content-Type": type_})
        assert reply.status == 415
        assert error_of(reply)["field"] == "Content-Type"
    octets = {"Content-Type": "application/octet-stream"}
    assert http_call(daemon, "POST", "/v1/voxelize", "x", octets).status == 415
    assert http_call(daemon, "POST", "/v1/status?format=pcd", "x", octets).status == 400
    many = "&".join(f"k{i}=1" for i in range(40))
    reply = http_call(daemon, "POST", f"/v1/voxelize?format=pcd&{many}", "x", octets)
    assert reply.status == 400
    twice = "/v1/voxelize?format=npy&size=1&size=2"
    assert error_of(http_call(daemon, "POST", twice, "x", octets))["field"] == "size"


def test_chunked_upload_is_a_411(daemon: Daemon) -> None:
    data = (
        f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\n{}\r\n0\r\n\r\n"
    )
    assert raw_http(daemon, data.encode()).startswith(b"HTTP/1.1 411 ")


@pytest.mark.parametrize("expect", ["", "Expect: 100-continue\r\n"])
@pytest.mark.parametrize("type_", ["application/x-protobuf", "application/json"])
def test_too_large_body_is_a_413_before_it_is_read(
    daemon: Daemon, expect: str, type_: str
) -> None:
    n_bytes = 2 * 1024 * 1024 if type_.endswith("json") else 2**40
    data = (
        f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        f"Content-Type: {type_}\r\nContent-Length: {n_bytes}\r\n{expect}\r\n"
    )
    start = time.monotonic()
    answer = raw_http(daemon, data.encode() + (b"" if expect else b"\0" * 1000))
    assert answer.startswith(b"HTTP/1.1 413 "), answer
    assert b'"field":"Content-Length"' in answer
    assert time.monotonic() - start < 20 * SLOW


def test_expect_continue_is_answered(daemon: Daemon) -> None:
    data = (
        f"POST /v1/server_info HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    answer = raw_http(daemon, data.encode())
    assert answer.startswith(b"HTTP/1.1 100 "), answer
    body = json.dumps({"clouds": [json_cloud(random_points(3000))]}).encode()
    out = subprocess.run(
        ["curl", "-sS", "-H", "Expect: 100-continue", "-H",
         "Content-Type: application/json", "--data-binary", "@-",
         f"http://127.0.0.1:{daemon.http_port}/v1/voxelize"],
        input=body, capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(out.stdout)["field"] == "size"


def test_connection_is_kept_alive_after_pages_and_errors(daemon: Daemon) -> None:
    paths = ["/v1/health/live", "/metrics", "/v1/maps", "/nothing", "/v1/status"]
    requests = "".join(
        f"GET {path} HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n\r\n" for path in paths
    )
    answer = raw_http(daemon, requests.encode())
    assert answer.count(b"HTTP/1.1 200 ") == 4 and answer.count(b"HTTP/1.1 404 ") == 1
    assert b"Connection: close" not in answer


def test_connection_is_kept_alive_after_a_small_refused_body(daemon: Daemon) -> None:
    one = (
        f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
    )
    answer = raw_http(daemon, (one + one).encode())
    assert answer.count(b"HTTP/1.1 415 ") == 2


def test_upload_that_ends_early_harms_nobody(daemon: Daemon) -> None:
    head = (
        f"POST /v1/voxelize HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        "Content-Type: application/x-protobuf\r\nContent-Length: 1000000\r\n\r\n"
    )
    before = idle_bytes(daemon)
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", daemon.http_port)) as s:
            s.sendall(head.encode() + bytes(300000))
    assert http_call(daemon, "GET", "/v1/health/ready").status == 200
    wait_until(lambda: inflight_bytes(daemon) == before, 2, "the buffers are given back")


def test_views(daemon: Daemon) -> None:
    assert http_call(daemon, "GET", "/v1/health/live").json() == {"live": True}
    ready = http_call(daemon, "GET", "/v1/health/ready")
    assert (ready.status, ready.json()) == (200, {"ready": True, "state": "serving"})
    assert http_call(daemon, "GET", "/v1/status").json()["state"] == "serving"
    assert http_call(daemon, "POST", "/v1/status", {}).json()["state"] == "serving"
    assert "voxelize" in http_call(daemon, "GET", "/v1/server_info").json()["methods"]
    index = http_call(daemon, "GET", "/")
    assert index.status == 200
    assert "default-src 'none'" in index.headers["Content-Security-Policy"]
    assert b"/app.js" in index.body
    assert http_call(daemon, "GET", "/style.css").headers["Content-Type"].startswith("text/css")
    for path in ("/", "/metrics", "/v1/status", "/v1/health/ready"):
        head = http_call(daemon, "HEAD", path)
        assert (head.status, head.body) == (200, b"")


METRIC = re.compile(
    r"^[a-zA-Z_][a-zA-Z0-9_]*"
    r"(\{[a-zA-Z_]\w*=\"(?:[^\"\\\n]|\\[\\\"n])*\"(,[a-zA-Z_]\w*=\"(?:[^\"\\\n]|\\[\\\"n])*\")*\})?"
    r" (?:[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|NaN|[+-]Inf)$"
)
COMMENT = re.compile(r"^# (HELP|TYPE) [a-zA-Z_][a-zA-Z0-9_]* .+$")


def test_metrics_are_valid_exposition(daemon: Daemon) -> None:
    http_call(daemon, "POST", "/v1/voxelize", {})
    reply = http_call(daemon, "GET", "/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    assert text.endswith("\n")
    typed: set[str] = set()
    seen: set[str] = set()
    for line in text.splitlines():
        if line.startswith("#"):
            assert COMMENT.match(line), line
            if line.startswith("# TYPE"):
                typed.add(line.split()[2])
            continue
        assert METRIC.match(line), line
        series = line.rsplit(" ", 1)[0]
        assert series not in seen, f"twice: {series}"
        seen.add(series)
        name = series.split("{")[0]
        assert name in typed or re.sub("_(bucket|sum|count)$", "", name) in typed, line
    for name in (
        "voxeld_requests_total", "voxeld_request_duration_seconds_bucket",
        "voxeld_queue_depth", "voxeld_inflight_bytes", "voxeld_build_info",
    ):  # fmt: skip
        assert name in text
    pattern = r'voxeld_requests_total\{[^}]*op="voxelize"[^}]*code="INVALID_ARGUMENT"[^}]*\} [1-9]'
    assert re.search(pattern, text)


def test_ipv6_listener_works_and_is_its_own_host(directory: Path) -> None:
    with running(directory, {"listen": {"http": "[::1]:0"}}) as daemon:
        connection = http.client.HTTPConnection("::1", daemon.http_port, timeout=10 * SLOW)
        connection.request("GET", "/v1/status")
        assert connection.getresponse().status == 200
        connection.close()


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length : 2\r\n",
    ],
)
@pytest.mark.parametrize("path", ["/v1/status", "/v1/health/live"])
def test_uncertain_framing_is_refused_and_ends_the_connection(
    daemon: Daemon, lines: str, path: str
) -> None:
    one = (
        f"POST {path} HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        f"Content-Type: application/json\r\n{lines}\r\n{{}}"
    )
    answer = raw_http(daemon, (one + one).encode())
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("path", ["/v1%2fstatus", "/v1/maps/a%2Fb", "/v1/status%00", "/v1/sta%t"])
def test_escapes_that_change_a_path_are_refused(daemon: Daemon, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n\r\n"
    answer = raw_http(daemon, request.encode())
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
    assert b'"path"' in answer


def test_a_refused_path_is_answered_behind_its_body(daemon: Daemon) -> None:
    one = (
        f"POST /v1%00/status HTTP/1.1\r\nHost: localhost:{daemon.http_port}\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    answer = raw_http(daemon, (one + one).encode())
    assert answer.count(b"HTTP/1.1 400 ") == 2
