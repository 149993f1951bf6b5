# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI description and the daemon say the same: every route of one is one of the other,
with the same verbs, parameters and need of a token; every example is accepted, or refused in
order."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from harness import SLOW, SOURCE, Daemon, Reply, http_call, running
from names import literals
from openapi_schema_validator import OAS30Validator
from openapi_spec_validator import validate

DOCUMENT = json.loads((SOURCE / "proto" / "generated" / "openapi.json").read_text())
JSON_TYPE = "application/json"
SAFETENSORS = "application/x-safetensors"
STREAM = "text/event-stream"
VERBS = {"get": {"GET", "HEAD"}, "post": {"POST"}}


class Operation(NamedTuple):
    path: str
    verb: str
    what: dict[str, Any]


def operations() -> list[Operation]:
    return [
        Operation(path, verb, what)
        for path, verbs in DOCUMENT["paths"].items()
        for verb, what in verbs.items()
    ]


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        _, *names = part["$ref"].split("/")
        part = DOCUMENT
        for name in names:
            part = part[name]
    return part


def parameters(of: Operation, place: str) -> dict[str, dict[str, Any]]:
    found = [resolved(p) for p in of.what.get("parameters", [])]
    return {p["name"]: p for p in found if p["in"] == place}


def filled(of: Operation) -> str:
    """The path with its parameters' examples."""
    path = of.path
    for name, parameter in parameters(of, "path").items():
        path = path.replace(f"{{{name}}}", parameter["example"])
    return path


def text_of(example: Any) -> str:
    return str(example).lower() if isinstance(example, bool) else str(example)


def body_of(of: Operation) -> dict[str, Any]:
    return of.what.get("requestBody", {}).get("content", {})


def call(daemon: Daemon, verb: str, path: str, body: Any = None, **headers: str) -> Reply:
    """One request; of a stream the head alone."""
    if verb == "GET" and "/watch" in path.split("?")[0]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", daemon.http_port, timeout=30 * SLOW
        )
        connection.request(verb, path, headers=headers)
        response = connection.getresponse()
        is_stream = response.headers["Content-Type"] == STREAM
        reply = Reply(response.status, response.msg, b"" if is_stream else response.read())
        connection.close()
        return reply
    return http_call(daemon, verb, path, body, headers)


def schema_errors(schema: dict[str, Any], value: Any) -> list[str]:
    """The document itself is the root, so that its references resolve."""
    validator = OAS30Validator({**DOCUMENT, "allOf": [schema]})
    return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(value)]


def check_reply(of: Operation, reply: Reply) -> None:
    """What came is what the document says of this status."""
    where = f"{of.verb} {of.path}: {reply.status} {reply.body[:300]!r}"
    responses = of.what["responses"]
    assert str(reply.status) in responses or "default" in responses, where
    documented = resolved(responses.get(str(reply.status), responses.get("default", {})))
    kind = (reply.headers["Content-Type"] or "").split(";")[0]
    if reply.status == 304:
        return
    assert kind in documented["content"], f"{where} as {kind}"
    if reply.status >= 400 and of.path != "/v1/health/ready":
        assert kind == JSON_TYPE, where
        error = reply.json()
        assert set(error) == {"code", "message", "field", "request_id"}, where
        assert error["message"] != "" and error["code"] != "INTERNAL", where
    if kind == JSON_TYPE:
        assert schema_errors(documented["content"][kind]["schema"], reply.json()) == [], where


def test_the_daemon_serves_the_document_and_it_is_valid(daemon: Daemon) -> None:
    assert http_call(daemon, "GET", "/v1/openapi.json").json() == DOCUMENT
    validate(DOCUMENT)
    names = [o.what["operationId"] for o in operations()]
    assert len(names) == len(set(names)) and len(names) > 140
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert {tag for o in operations() for tag in o.what["tags"]} == tags


def test_every_operation_has_an_example_that_its_own_schema_accepts() -> None:
    for of in operations():
        for parameter in [*parameters(of, "path").values(), *parameters(of, "query").values()]:
            example, schema = parameter["example"], parameter["schema"]
            assert schema_errors(schema, example) == [], (of.path, parameter["name"])
        content = body_of(of)
        if content:
            sent = content[JSON_TYPE]
            assert schema_errors(sent["schema"], sent["example"]) == [], of.path
            if "application/octet-stream" in content:
                described = content["application/octet-stream"]["schema"]["description"]
                assert f"http://localhost:8420{of.path}?format=" in described
    for response in DOCUMENT["components"]["responses"].values():
        sent = response["content"][JSON_TYPE]
        shown = sent.get("example", resolved(sent["schema"])["example"])
        assert schema_errors(sent["schema"], shown) == []


# Routes in both directions ------------------------------------------------------------------------


class Asker:
    """Asks by OPTIONS, on one connection, what is possible at a path."""

    def __init__(self, daemon: Daemon) -> None:
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", daemon.http_port, timeout=30 * SLOW
        )

    def verbs(self, path: str) -> set[str]:
        self.connection.request("OPTIONS", path)
        response = self.connection.getresponse()
        response.read()
        if response.status == 404:
            return set()
        assert response.status == 204, (path, response.status)
        return {word.strip() for word in response.headers["Allow"].split(",")} - {"OPTIONS"}


def test_every_route_of_the_document_is_one_of_the_daemon(daemon: Daemon) -> None:
    asker = Asker(daemon)
    for path, verbs in DOCUMENT["paths"].items():
        some = next(o for o in operations() if o.path == path)
        expected = set().union(*(VERBS[verb] for verb in verbs))
        assert asker.verbs(filled(some)) == expected, path


@cache
def words_of_the_source() -> list[str]:
    return sorted({text for _, text in literals("server") if re.fullmatch(r"[\w./-]{1,60}", text)})


def candidates(asker: Asker) -> Iterator[str]:
    """Every path that the source could mean: its paths, its words behind /v1/, and below each of
    those that have names in them an object's name and its words behind that."""
    words = sorted({w.strip("/") for w in words_of_the_source()} - {""})
    yield from (f"/{w}" for w in words)
    folders = []
    for word in words:
        path = f"/v1/{word}"
        yield path
        if asker.verbs(f"{path}/yard"):
            folders.append(path)
    assert len(folders) >= 6
    for folder in folders:
        yield f"{folder}/yard"
        yield from (f"{folder}/yard/{w}" for w in words)
    yield from (f"/{p.name}" for p in (SOURCE / "server" / "web" / "files").iterdir())
    yield "/"


def test_every_route_of_the_daemon_is_in_the_document(daemon: Daemon) -> None:
    asker = Asker(daemon)
    found = {path for path in candidates(asker) if asker.verbs(path)}
    for method in http_call(daemon, "GET", "/v1/server_info").json()["methods"]:
        assert f"/v1/{method}" in found, f"the search for routes does not find {method}"
    of_yard = {re.sub(r"\{\w+\}", "yard", path) for path in DOCUMENT["paths"]}
    assert found - of_yard == set(), "proto/gen makes no operation of these"
    assert of_yard - found == set()


# Examples -----------------------------------------------------------------------------------------

# They end the daemon's state, or wait long; each is tried, but after all others.
LAST = ("_drop", "_reset", "_clear", "_cancel", "_delete")


def in_order() -> list[Operation]:
    """What makes something goes first, what takes it away last."""
    def rank(of: Operation) -> int:
        name = of.path.rsplit("/", 1)[-1]
        return 0 if name.endswith("_create") else 2 if name.endswith(LAST) else 1

    return sorted(operations(), key=rank)


def test_every_example_is_accepted_or_refused_in_order(daemon: Daemon) -> None:
    accepted, wrong = set(), []
    for of in in_order():
        example = body_of(of).get(JSON_TYPE, {}).get("example")
        reply = call(daemon, of.verb.upper(), filled(of), example)
        check_reply(of, reply)
        if reply.status < 300:
            accepted.add(of.what["operationId"])
        # What refuses an example refuses the state of things, not the example.
        elif reply.status == 400:
            wrong.append((of.path, reply.json()))
    assert wrong == []
    assert {"voxelize", "scene_create", "scene_edit", "scene_values", "map_insert"} <= accepted
    assert len(accepted) > 100, sorted({o.what["operationId"] for o in operations()} - accepted)


@pytest.fixture(scope="module")
def with_yard(daemon: Daemon) -> Daemon:
    for method in ("scene_create", "map_create", "volume_create", "odometry_create"):
        path = f"/v1/{method}"
        example = DOCUMENT["paths"][path]["post"]["requestBody"]["content"][JSON_TYPE]["example"]
        for name in {"yard", example["name"]}:
            reply = http_call(daemon, "POST", path, {**example, "name": name})
            assert reply.status in (200, 409), reply.body
    return daemon


def test_replies_with_arrays_come_as_safetensors(with_yard: Daemon) -> None:
    n_files = 0
    for of in in_order():
        kinds = of.what["responses"].get("200", {}).get("content", {})
        if of.verb != "post" or SAFETENSORS not in kinds:
            continue
        headers = {"Accept": SAFETENSORS}
        reply = call(with_yard, "POST", filled(of), body_of(of)[JSON_TYPE]["example"], **headers)
        check_reply(of, reply)
        if reply.status == 200:
            assert reply.headers["Content-Type"] == SAFETENSORS, of.path
            n_header = int.from_bytes(reply.body[:8], "little")
            assert isinstance(json.loads(reply.body[8 : 8 + n_header]), dict)
            n_files += 1
    assert n_files >= 10


FILES = {
    "npy": lambda: npy(),
    "obj": lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "float32": lambda: np.full((2, 2), 2, "<f4").tobytes(),
}


def npy() -> bytes:
    points = np.array([[1, 2, 3], [4, 5, 6]], "<f4")
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + points.tobytes()


def file_operations() -> list[Operation]:
    return [o for o in operations() if "application/octet-stream" in body_of(o)]


def send_file(daemon: Daemon, of: Operation, query: dict[str, str]) -> Reply:
    items = "&".join(f"{key}={value}" for key, value in query.items())
    body = FILES[query["format"]]()
    headers = {"Content-Type": "application/octet-stream"}
    return http_call(daemon, "POST", f"{of.path}?{items}", body, headers)


def is_unknown_key(reply: Reply, key: str) -> bool:
    if reply.status != 400:
        return False
    error = reply.json()
    words = ("no key of the query", "no such key", "has no such parameter", "known are")
    return error["field"] == key and any(word in error["message"] for word in words)


def all_keys() -> set[str]:
    """Every key that some operation has, and every field of the requests."""
    keys = {key for o in operations() for key in parameters(o, "query")}
    for schema in DOCUMENT["components"]["schemas"].values():
        names = schema.get("properties", {})
        keys |= {re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() for name in names}
    return keys


def test_files_as_bodies_take_the_keys_of_the_document_and_no_others(with_yard: Daemon) -> None:
    assert len(file_operations()) == 7
    for of in file_operations():
        known = parameters(of, "query")
        base = {k: text_of(known[k]["example"]) for k in ("format", "name", "size") if k in known}
        accepted = send_file(with_yard, of, base)
        check_reply(of, accepted)
        for key, parameter in known.items():
            value = text_of(parameter["example"]).replace("+", "%2B")
            reply = send_file(with_yard, of, {**base, key: value})
            check_reply(of, reply)
            assert not is_unknown_key(reply, key), (of.path, key, reply.body)
            if reply.status == 400 and reply.json()["field"] == key:
                assert "it must be" not in reply.json()["message"], (of.path, key, reply.body)
        for key in sorted(all_keys() - set(known)):
            reply = send_file(with_yard, of, {**base, key: "1"})
            assert is_unknown_key(reply, key), (of.path, key, reply.body)


def test_files_by_get_take_the_keys_of_the_document_and_no_others(with_yard: Daemon) -> None:
    folders = ("/v1/scenes/{name}/", "/v1/volumes/{name}/")
    found = [o for o in operations() if o.path.startswith(folders)]
    assert len(found) == 11
    for of in found:
        known = parameters(of, "query")
        for key, parameter in known.items():
            small = "&size=64x36" if "size" in known and key != "size" else ""
            path = f"{filled(of)}?{key}={text_of(parameter['example'])}{small}"
            reply = call(with_yard, "GET", path)
            check_reply(of, reply)
            if reply.status == 400:
                assert "it must be" not in reply.json()["message"], (of.path, key, reply.body)
                assert not is_unknown_key(reply, key), (of.path, key, reply.body)
        for key in sorted(all_keys() - set(known) - {"format"}):
            reply = call(with_yard, "GET", f"{filled(of)}?{key}=1")
            assert is_unknown_key(reply, key), (of.path, key, reply.body)


def test_depth_images_come_as_a_form(with_yard: Daemon) -> None:
    (of,) = (o for o in operations() if "multipart/form-data" in body_of(o))
    known = parameters(of, "query")
    keys = ("format", "name", "fx", "fy", "cx", "cy", "width", "height", "depth_scale", "pose")
    query = "&".join(f"{key}={text_of(known[key]['example'])}" for key in keys)
    form = body_of(of)["multipart/form-data"]["schema"]

    def send(part: str) -> Reply:
        head = f'--x\r\nContent-Disposition: form-data; name="{part}"; filename="f"\r\n\r\n'
        body = head.encode() + FILES["float32"]() + b"\r\n--x--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        return http_call(with_yard, "POST", f"{of.path}?{query}", body, headers)

    assert form["required"] == ["depth"]
    for part in form["properties"]:
        reply = send(part)
        check_reply(of, reply)
        assert "no such part" not in reply.body.decode(), (part, reply.body)
    assert send("depth").status == 200
    assert "no such part" in send("another").body.decode()


# Tokens -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory: Path = tmp_path_factory.mktemp("d")
    tokens = directory / "tokens"
    for scope in ("read", "write", "admin"):
        with tokens.open("a") as out:
            out.write(f"{scope} {scope} {hashlib.sha256(scope.encode()).hexdigest()}\n")
    tokens.chmod(0o600)
    with running(directory, {"auth": {"tokens_file": str(tokens)}}) as daemon:
        yield daemon


def test_tokens_are_asked_for_where_the_document_says(guarded: Daemon) -> None:
    for of in operations():
        security = of.what.get("security", DOCUMENT["security"])
        is_open = security == [] or of.path == "/v1/session" and of.verb == "post"
        example = body_of(of).get(JSON_TYPE, {}).get("example")
        reply = call(guarded, of.verb.upper(), filled(of), example)
        if of.path == "/foxglove":
            assert reply.status == 426  # before anything else it must be a handshake
            continue
        assert (reply.status == 401) == (not is_open), (of.verb, of.path, reply.status)
        check_reply(of, reply)
        scope = of.what.get("x-voxeld-scope")
        if scope is not None and scope != "read":
            below = {"write": "read", "admin": "write"}[scope]
            bearer = {"Authorization": f"Bearer {below}"}
            reply = call(guarded, of.verb.upper(), filled(of), example, **bearer)
            assert reply.status == 403, (of.path, scope, reply.body)
            check_reply(of, reply)
