# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.0 description of the HTTP side: every route, with units, ranges, defaults and an
example of each request."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import openapi_query
import openapi_views
from model import (
    INTEGERS_32,
    INTEGERS_64,
    Enum,
    Field,
    Message,
    Method,
    Schema,
    Types,
    json_name,
    reachable,
)

Json = dict[str, Any]
PROTOBUF = "application/x-protobuf"
SAFETENSORS = "application/x-safetensors"
# A file as the body: what it is where it is no scan, and the parts of a form.
FILES = {"scene_import_mesh": "a mesh", "volume_integrate": "a depth image"}
PARTS = {"volume_integrate": ["depth", "colour", "labels"]}
# gRPC's codes -> HTTP's, as common.proto has them.
STATUS = {
    "INVALID_ARGUMENT": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "FAILED_PRECONDITION": 412,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
# What every method may answer.
COMMON = {
    "INVALID_ARGUMENT": "A field is wrong; `field` says which and `message` what is right.",
    "UNAUTHENTICATED": "The server asks for a token, and there was none that it knows.",
    "PERMISSION_DENIED": "The token has not the scope, or Host or Origin are not allowed.",
    "UNAVAILABLE": "The queue is full, or the server starts or ends; try again later.",
    "DEADLINE_EXCEEDED": "Not done in time.",
}
# What some answer, besides.
MORE = {
    "FAILED_PRECONDITION": "What it is of is not such that it could be done.",
    "NOT_FOUND": "There is none of that name.",
    "RESOURCE_EXHAUSTED": "It would exceed a limit, which `message` names.",
}
EXAMPLES = {
    "INVALID_ARGUMENT": ("size.y", "is -0.1, it must be > 0 and finite as float32, in metres"),
    "UNAUTHENTICATED": ("Authorization", "a token is needed: Authorization: Bearer TOKEN"),
    "PERMISSION_DENIED": ("", "'robot' has not the scope write"),
    "UNAVAILABLE": ("", "the queue is full: 64 requests wait (limits.queue)"),
    "DEADLINE_EXCEEDED": ("header.timeout_ms", "not done within 1000 ms"),
    "FAILED_PRECONDITION": ("show", "the volume \"kitchen\" keeps no labels"),
    "NOT_FOUND": ("name", "there is no scene 'yerd'; did you mean 'yard'?"),
    "RESOURCE_EXHAUSTED": ("", "the map would have 2147483648 bytes (limits.map_bytes)"),
}
HEADERS = {
    "X-Request-Id": (
        {"type": "string", "maxLength": 63},
        "Echoed in reply, log and errors; made when absent.",
    ),
    "X-Voxeld-Timeout-Ms": (
        {"type": "integer", "minimum": 0},
        "From arrival to reply; absent or 0 = the server's default.",
    ),
    "X-Voxeld-Client-Id": (
        {"type": "string", "maxLength": 63},
        "Who sends, for fairness and exactly-once.",
    ),
    "X-Voxeld-Stream": (
        {"type": "string", "maxLength": 63},
        "Sensor stream whose newest requests matter.",
    ),
    "X-Voxeld-Keep-Last": (
        {"type": "integer", "minimum": 0},
        "Requests of the stream that may wait; older ones are answered ABORTED.",
    ),
    "X-Voxeld-Max-Age-Ms": (
        {"type": "integer", "minimum": 0},
        "Not started when it has waited longer; 0 = no limit.",
    ),
    "traceparent": (
        {"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"},
        "W3C Trace Context; logged and returned.",
    ),
    "Idempotency-Key": (
        {"type": "string"},
        "1 to 63 printable ASCII characters; a request that changes something and is repeated "
        "with its key gets the first one's outcome.",
    ),
}
DESCRIPTION = (
    "Bodies are JSON (the proto3 mapping: lowerCamelCase or original names, 64-bit integers as "
    "strings, bytes as base64) or application/x-protobuf. Fields at their default are left out "
    "of replies; unknown fields in requests are refused. Positions are metres, frames "
    "right-handed, quaternions (x, y, z, w), times nanoseconds since the Unix epoch."
)
TENSOR = (
    "A dense array. shape: extents, slowest axis first, at most 8; empty = a scalar. data: the "
    "elements, little-endian, row-major, exactly product(shape) * size(dtype) bytes. values: the "
    "same as numbers, instead of data; replies use it where there are at most 4096 elements."
)


def ref(name: str, kind: str = "schemas") -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def response_name(code: str) -> str:
    return code.title().replace("_", "")


def scalar(f: Field) -> Json:
    if f.type in INTEGERS_32:
        if f.type in (Types.TYPE_INT32, Types.TYPE_SINT32):
            return {"type": "integer", "format": "int32"}
        return {"type": "integer", "format": "int64", "minimum": 0, "maximum": 4294967295}
    if f.type in INTEGERS_64:
        signed = f.type in (Types.TYPE_INT64, Types.TYPE_SINT64)
        return {"type": "string", "format": "int64" if signed else "uint64"}
    return {
        Types.TYPE_FLOAT: {"type": "number", "format": "float"},
        Types.TYPE_DOUBLE: {"type": "number", "format": "double"},
        Types.TYPE_BOOL: {"type": "boolean"},
        Types.TYPE_BYTES: {"type": "string", "format": "byte"},
    }.get(f.type, {"type": "string"})


def limits(f: Field, made: Json) -> None:
    """Range, choices and pattern, where JSON's type has them."""
    if f.range is not None and made.get("type") in ("integer", "number"):
        made["minimum"] = f.range.low
        if f.range.open_low:
            made["exclusiveMinimum"] = True
        if not math.isinf(f.range.high):
            made["maximum"] = f.range.high
        for key in ("minimum", "maximum"):
            if key in made and float(made[key]).is_integer():
                made[key] = int(made[key])
    if f.option.one_of and not f.is_enum:
        words = f.option.one_of.split()
        made["enum"] = [int(w) if w.isdigit() else w for w in words]
    if f.option.pattern:
        optional = f.option.default or not f.message.name.endswith("Request")
        made["pattern"] = f"^({f.option.pattern})?$" if optional else f"^{f.option.pattern}$"


def field_schema(f: Field) -> Json:
    inner = ref(f.of.name) if f.of is not None else scalar(f)
    if "$ref" not in inner:
        limits(f, inner)
    made: Json = {"type": "array", "items": inner} if f.is_repeated else inner
    words = [f.comment] if f.comment else []
    if f.option.default and f.option.default not in f.comment:
        words.append(f"Default: {f.option.default}.")
    if words:
        made["description"] = " ".join(words)
    named = {
        "unit": f.unit,
        "frame": f.option.frame,
        "axes": f.option.axes,
        "shape": f.option.shape,
        "dtype": f.option.dtype,
        "range": f.range.words() if f.range is not None else "",
    }
    made |= {f"x-voxeld-{key}": value for key, value in named.items() if value}
    return made


def message_schema(message: Message) -> Json:
    made: Json = {"type": "object"}
    text = TENSOR if message.name == "Tensor" else without_routes(message.comment)
    if text:
        made["description"] = text
    made["properties"] = {json_name(f.name): field_schema(f) for f in message.fields}
    return made


def enum_schema(enum: Enum) -> Json:
    made: Json = {"type": "string", "enum": [v.name for v in enum.values]}
    words = [enum.comment] if enum.comment else []
    words += [f"{v.name}: {v.comment}" for v in enum.values if v.comment]
    if words:
        made["description"] = "\n\n".join(words)
    return made


def without_routes(comment: str) -> str:
    """The sentences that repeat the path and the scope go."""
    comment = re.sub(r"HTTP: POST (?:or GET )?\S+(?: or GET \S+)?\.(?= |$)", "", comment)
    return " ".join(re.sub(r"Scope \w+\.", "", comment).split())


def holds_tensors(message: Message) -> bool:
    return any(m.name == "Tensor" for m in reachable(message))


def as_json(message: Message, value: Any) -> Any:
    """An example as a reply would have it: 64-bit integers are strings, as the schema says."""

    def one(f: Field, inner: Any) -> Any:
        if isinstance(f.of, Message):
            return as_json(f.of, inner)
        return str(inner) if f.type in INTEGERS_64 else inner

    made = {}
    for f in message.fields:
        key = json_name(f.name)
        if key in value:
            inner = value[key]
            made[key] = [one(f, i) for i in inner] if f.is_repeated else one(f, inner)
    assert set(made) == set(value), (message.name, set(value) - set(made))
    return made


class OpenApi:
    """Writes the document."""

    def __init__(self, schema: Schema, version: str) -> None:
        self.schema = schema
        self.version = version

    def content(self, message: Message, example: Any = None) -> Json:
        body: Json = {"schema": ref(message.name)}
        if example is not None:
            body["example"] = as_json(message, example)
        binary = {"type": "string", "format": "binary"}
        serialized = {**binary, "description": f"a serialized voxeld.v1.{message.name}"}
        return {"application/json": body, PROTOBUF: {"schema": serialized}}

    def responses(self, method: Method) -> Json:
        content = self.content(method.response)
        if holds_tensors(method.response):
            binary = {"type": "string", "format": "binary"}
            text = "the reply's tensors by name, and the rest of it as metadata"
            content[SAFETENSORS] = {"schema": {**binary, "description": text}}
        made: Json = {"200": {"description": "OK", "content": content}}
        special: dict[int, list[str]] = {}
        for code, what in method.errors:
            special.setdefault(STATUS[code], []).append(f"{code}: {what}")
        for status, texts in sorted(special.items()):
            error = {"application/json": {"schema": ref("Error")}}
            made[str(status)] = {"description": "; ".join(texts), "content": error}
        for code in COMMON:
            made.setdefault(str(STATUS[code]), ref(response_name(code), "responses"))
        made["default"] = ref("Error", "responses")
        return made

    def operation(self, method: Method, verb: str) -> Json:
        made: Json = {
            "operationId": method.name if verb == "post" else f"{method.name}_view",
            "tags": [method.noun or "service"],
            "summary": method.option.summary,
        }
        words = [without_routes(method.request.comment), f"Scope: {method.scope}."]
        if method.mutates:
            words.append("Takes effect exactly once, by Idempotency-Key.")
        elif method.option.mutating_with:
            words.append(
                f"With {method.option.mutating_with} it takes effect exactly once, by "
                "Idempotency-Key."
            )
        made["description"] = " ".join(w for w in words if w)
        made["x-voxeld-scope"] = method.scope
        made["x-voxeld-since"] = method.since
        return made

    def post(self, method: Method) -> Json:
        made = self.operation(method, "post")
        made["parameters"] = [ref(name, "parameters") for name in HEADERS]
        content = self.content(method.request, json.loads(method.option.example))
        if method.option.query:
            beside = openapi_query.beside_file(method.name, list(method.option.query))
            for parameter in beside:
                parameter["description"] = f"Beside a file: {parameter['description']}."
            made["parameters"] += beside
            content |= self.file_bodies(method, beside)
        made["requestBody"] = {"required": True, "content": content}
        made["responses"] = self.responses(method)
        return made

    def file_bodies(self, method: Method, beside: list[Json]) -> Json:
        """A file as the body, or in the parts of a form; the rest of the request is the query."""
        binary = {"type": "string", "format": "binary"}
        shown = {p["name"]: p["example"] for p in beside}
        kept = [key for key in ("format", "name", "network", "size") if key in shown]
        query = "&".join(f"{key}={shown[key]}" for key in kept)
        words = (
            f"{FILES.get(method.name, 'a scan file')}, as `format` says: "
            "curl -H 'Content-Type: application/octet-stream' --data-binary @FILE "
            f"'http://localhost:8420/v1/{method.name}?{query}'"
        )
        made: Json = {"application/octet-stream": {"schema": {**binary, "description": words}}}
        if method.name in PARTS:
            parts = PARTS[method.name]
            form = {
                "type": "object",
                "required": parts[:1],
                "properties": {p: binary for p in parts},
            }
            made["multipart/form-data"] = {"schema": form}
        return made

    def get(self, method: Method) -> Json:
        made = self.operation(method, "get")
        made["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": field_schema(method.request.field(name)),
                "example": json.loads(method.option.example)[name],
            }
            for name in re.findall(r"\{(\w+)\}", method.option.get)
        ]
        headers = ("X-Request-Id", "X-Voxeld-Timeout-Ms", "X-Voxeld-Client-Id")
        made["parameters"] += [ref(name, "parameters") for name in headers]
        made["responses"] = self.responses(method)
        return made

    def paths(self) -> Json:
        made: Json = {}
        for method in self.schema.methods:
            made.setdefault(f"/v1/{method.name}", {})["post"] = self.post(method)
        for method in self.schema.methods:
            if method.option.get:
                made.setdefault(method.option.get, {})["get"] = self.get(method)
        return made | openapi_views.paths(self.version)

    def error_schema(self) -> Json:
        return {
            "type": "object",
            "required": ["code", "message", "field", "request_id"],
            "properties": {
                "code": ref("Code"),
                "message": {
                    "type": "string",
                    "description": "what was wrong and what would be right",
                },
                "field": {
                    "type": "string",
                    "description": "the offending field as written, empty where no single field "
                    "is to blame",
                },
                "request_id": {"type": "string"},
            },
            "example": {
                "code": "INVALID_ARGUMENT",
                "message": "is -0.1, it must be > 0 and finite as float32, in metres",
                "field": "size.y",
                "request_id": "1b23d483-3",
            },
        }

    def components(self) -> Json:
        schemas: Json = {"Error": self.error_schema()}
        seen: dict[str, Message | Enum] = {}
        for method in self.schema.methods:
            for top in (method.request, method.response):
                for item in reachable(top):
                    seen.setdefault(item.name, item)
        seen.setdefault("Code", self.schema.enums["Code"])
        for name, item in seen.items():
            made = message_schema(item) if isinstance(item, Message) else enum_schema(item)
            schemas[name] = made
        body = {"application/json": {"schema": ref("Error")}}
        responses = {
            "Error": {
                "description": "The request failed; the HTTP status follows from the code.",
                "content": body,
            }
        }
        for code, what in (COMMON | MORE).items():
            field, message = EXAMPLES[code]
            shown = {"code": code, "message": message, "field": field, "request_id": "1b23d483-3"}
            responses[response_name(code)] = {
                "description": what,
                "content": {"application/json": {"schema": ref("Error"), "example": shown}},
            }
        return {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token, where the server asks for one. A client certificate "
                    "(tls.client_names) or the user at the other end of a unix socket may stand "
                    "for one.",
                },
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "voxeld_8420",
                    "description": "The dashboard's, which POST /v1/session gives; its name ends "
                    "in the server's port.",
                },
                "ticket": {
                    "type": "apiKey",
                    "in": "query",
                    "name": "token",
                    "description": "In URLs of WebSockets: a ticket of POST /v1/session/ticket, or "
                    "a token with the scope read alone.",
                },
            },
            "responses": responses,
            "parameters": {
                name: {
                    "name": name,
                    "in": "header",
                    "required": False,
                    "description": what,
                    "schema": kind,
                }
                for name, (kind, what) in HEADERS.items()
            },
            "schemas": schemas,
        }

    def document(self) -> Json:
        nouns = list(dict.fromkeys(m.noun or "service" for m in self.schema.methods))
        return {
            "openapi": "3.0.3",
            "info": {
                "title": "voxeld",
                "version": self.version,
                "license": {"name": "Apache-2.0"},
                "description": DESCRIPTION,
            },
            "servers": [{"url": "/"}],
            # None of them where the server has no tokens.
            "security": [{"bearer": []}, {"cookie": []}, {}],
            "tags": [{"name": noun} for noun in [*nouns, "dashboard"]],
            "paths": self.paths(),
            "components": self.components(),
        }


def dumped(document: Json) -> str:
    """Compact, but a line for each path and each schema, so that changes can be read."""

    def one(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def lines(members: Json) -> str:
        return ",\n".join(f"{one(k)}:{one(v)}" for k, v in members.items())

    parts = []
    for key, value in document.items():
        if key == "paths":
            parts.append(f'"paths":{{\n{lines(value)}\n}}')
        elif key == "components":
            inner = ",\n".join(f"{one(k)}:{{\n{lines(v)}\n}}" for k, v in value.items())
            parts.append(f'"components":{{\n{inner}\n}}')
        else:
            parts.append(f"{one(key)}:{one(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def outputs(schema: Schema, version: str) -> dict[str, str]:
    return {"proto/generated/openapi.json": dumped(OpenApi(schema, version).document())}
