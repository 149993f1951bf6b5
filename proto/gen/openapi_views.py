# SPDX-License-Identifier: Apache-2.0
"""Routes in the OpenAPI description that are no methods: health, metrics, sessions, files of
scenes, streams of events, WebSockets, the dashboard's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openapi_query

Json = dict[str, Any]
WEB_FILES = Path(__file__).resolve().parents[2] / "server" / "web" / "files"
JSON_TYPE = "application/json"
BINARY: Json = {"type": "string", "format": "binary"}
TEXT: Json = {"type": "string"}


def response(name: str) -> Json:
    return {"$ref": f"#/components/responses/{name}"}


DENIED = {"401": response("Unauthenticated"), "403": response("PermissionDenied")}
STARTING = {"503": response("Unavailable")}
OTHERS = {"default": response("Error")}
OF_SCENES = {
    "400": response("InvalidArgument"),
    **DENIED,
    "404": response("NotFound"),
    **STARTING,
    "504": response("DeadlineExceeded"),
    **OTHERS,
}
NAME: Json = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "the scene's name",
    "schema": {"type": "string", "pattern": openapi_query.NAME},
    "example": "yard",
}


def body(schema: Json, example: Any = None) -> Json:
    return {"schema": schema} if example is None else {"schema": schema, "example": example}


def operation(identity: str, what: str, content: Json, **more: Any) -> Json:
    """An answer of 200 with this content; more: parameters, security, further responses."""
    responses = {"200": {"description": "OK", "content": content}, **more.pop("responses", {})}
    tags = more.pop("tags", ["service"])
    return {"operationId": identity, "tags": tags, "summary": what, **more, "responses": responses}


def health() -> Json:
    state = {"type": "string", "enum": ["starting", "serving", "draining", "lost"]}
    degraded = {"type": "array", "items": {"type": "string", "enum": ["journal", "archive"]}}
    ready = {
        "type": "object",
        "required": ["ready", "state"],
        "properties": {"ready": {"type": "boolean"}, "state": state, "degraded": degraded},
    }
    live = {"type": "object", "required": ["live"], "properties": {"live": {"type": "boolean"}}}
    purpose = {
        "name": "for",
        "in": "query",
        "required": False,
        "description": "write: changes must be possible, too",
        "schema": {"type": "string", "enum": ["write"]},
        "example": "write",
    }
    refused = {"ready": False, "state": "serving", "degraded": ["journal"]}
    return {
        "/v1/health/live": {
            "get": operation(
                "health_live", "The process lives.", {JSON_TYPE: body(live, {"live": True})},
                security=[],
            )
        },
        "/v1/health/ready": {
            "get": operation(
                "health_ready", "Requests are served.",
                {JSON_TYPE: body(ready, {"ready": True, "state": "serving"})},
                security=[],
                parameters=[purpose],
                responses={
                    "503": {
                        "description": "not ready",
                        "content": {JSON_TYPE: body(ready, refused)},
                    }
                },
            )
        },
    }  # fmt: skip


def session(version: str) -> Json:
    who = {
        "type": "object",
        "required": ["name", "version", "tokens", "scopes"],
        "properties": {
            "name": {"type": "string", "description": "who the token belongs to"},
            "version": {"type": "string", "description": "of the server"},
            "tokens": {"type": "boolean", "description": "whether the server asks for tokens"},
            "scopes": {
                "type": "array",
                "items": {"type": "string", "enum": ["read", "write", "admin"]},
            },
        },
    }
    shown = {
        "name": "anonymous",
        "version": version,
        "tokens": False,
        "scopes": ["read", "write", "admin"],
    }
    ticket = {
        "type": "object",
        "required": ["ticket", "expires_s"],
        "properties": {"ticket": TEXT, "expires_s": {"type": "integer"}},
    }
    given = {"type": "object", "properties": who["properties"]}
    more = {"responses": {**DENIED, **STARTING, **OTHERS}, "tags": ["dashboard"]}
    return {
        "/v1/session": {
            "get": operation("session", "Who asks.", {JSON_TYPE: body(who, shown)}, **dict(more)),
            "post": operation(
                "session_begin",
                "Gives the token of Authorization back as a cookie; without one forgets it.",
                {JSON_TYPE: body(given, {})},
                description="For the dashboard's pages. Goes without a body.",
                **dict(more),
            ),
        },
        "/v1/session/ticket": {
            "post": operation(
                "session_ticket",
                "A ticket that stands for the token in URLs of WebSockets, for an hour.",
                {JSON_TYPE: body(ticket, {"ticket": "t-0123456789abcdef", "expires_s": 3600})},
                description="Goes without a body. Scope: read.",
                **dict(more),
            )
        },
    }


def scene_files() -> Json:
    """Pictures and costmaps by GET."""
    types = {
        "image.png": "image/png",
        "image.jpg": "image/jpeg",
        "image.jpeg": "image/jpeg",
        "costmap.png": "image/png",
        "costmap.pgm": "image/x-portable-graymap",
        "costmap.yaml": "application/yaml",
    }
    made = {}
    tag = {"description": "of the scene's version and the request", "schema": TEXT}
    for file, kind in types.items():
        is_picture = file.startswith("image")
        table = openapi_query.PICTURE if is_picture else openapi_query.COSTMAP
        method = "scene_render" if is_picture else "scene_grid"
        schema = TEXT if kind == "application/yaml" else BINARY
        got = operation(
            "scene_" + file.replace(".", "_"),
            f"A {'picture' if is_picture else 'costmap'} of a scene, as {method} makes it.",
            {kind: {"schema": schema}},
            parameters=[NAME, *openapi_query.of(table)],
            responses={"304": {"description": "as If-None-Match has it"}, **OF_SCENES},
            tags=["render" if is_picture else "grid"],
            description="Scope: read.",
        )
        got["responses"]["200"]["headers"] = {"ETag": tag}
        made[f"/v1/scenes/{{name}}/{file}"] = {"get": got}
    return made


def volume_files() -> Json:
    """Pictures of volumes by GET."""
    made = {}
    for ending, kind in (("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg")):
        got = operation(
            f"volume_image_{ending}",
            "A picture of a volume, as volume_render makes it.",
            {kind: {"schema": BINARY}},
            parameters=[
                {**NAME, "description": "the volume's name"},
                *openapi_query.of(openapi_query.VOLUME_PICTURE),
            ],
            responses={**OF_SCENES, "412": response("FailedPrecondition")},
            tags=["volume"],
            description="Scope: read.",
        )
        made[f"/v1/volumes/{{name}}/image.{ending}"] = {"get": got}
    return made


def watches() -> Json:
    last = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "the id of the last event that was seen",
        "schema": openapi_query.WATCH["after"][0],
    }
    events = 'id: 1-4\nevent: cells\ndata: {"name":"yard","kind":"WATCH_CELLS"}\n\n'
    upgraded = {
        "101": {"description": "Switching to a WebSocket, whose messages are the events' data."},
        "426": {
            "description": "A handshake that is not one of version 13.",
            "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}},
        },
        **OF_SCENES,
        "429": response("ResourceExhausted"),
    }
    made = {}
    of_scene = openapi_query.of(openapi_query.WATCH)
    of_volume = openapi_query.of(openapi_query.WATCH_VOLUME)
    parts = "What changes in a volume: the surface in parts."
    for path, identity, what, parameters in (
        ("/v1/watch", "watch", "Which scenes change.", of_scene),
        ("/v1/scenes/{name}/watch", "scene_watch_events", "What changes in a scene.",
         [NAME, *of_scene]),
        ("/v1/watch/volumes", "watch_volumes", "Which volumes change.", of_volume),
        ("/v1/volumes/{name}/watch", "volume_watch_events", parts, [NAME, *of_volume]),
    ):
        method = "volume_watch" if "volume" in path else "scene_watch"
        made[path] = {
            "get": operation(
                identity, what, {"text/event-stream": body(TEXT, events)},
                description=f"Server-sent events that go on, each with the reply of {method} as "
                "JSON; a comment comes every 15 s. The handshake of a WebSocket gets a WebSocket. "
                "Scope: read.",
                parameters=[*parameters, last],
                security=[{"bearer": []}, {"cookie": []}, {"ticket": []}],
                responses=dict(upgraded),
                tags=["watch"],
            )
        }  # fmt: skip
    foxglove = operation(
        "foxglove", "The Foxglove WebSocket protocol.", {},
        description="A WebSocket's handshake with the subprotocol foxglove.sdk.v1. Scope: read.",
        security=[{"bearer": []}, {"cookie": []}, {"ticket": []}],
        responses=dict(upgraded),
        tags=["watch"],
    )  # fmt: skip
    del foxglove["responses"]["200"]
    made["/foxglove"] = {"get": foxglove}
    return made


def dashboard() -> Json:
    kinds = {
        ".js": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".html": "text/html",
    }
    files = {"": ".html"} | {p.name: p.suffix for p in sorted(WEB_FILES.iterdir())}
    return {
        f"/{name}": {
            "get": operation(
                "dashboard_" + (name.replace(".", "_") or "page"),
                "The dashboard." if name == "" else "A file of the dashboard.",
                {kinds[suffix]: {"schema": TEXT}},
                security=[],
                responses=dict(STARTING),
                tags=["dashboard"],
            )
        }
        for name, suffix in files.items()
    }


def paths(version: str) -> Json:
    metrics = "# TYPE voxeld_requests_total counter\nvoxeld_requests_total 7\n"
    return {
        "/metrics": {
            "get": operation(
                "metrics", "Metrics in Prometheus' text format. Scope read.",
                {"text/plain": body(TEXT, metrics)},
                responses={**DENIED, **STARTING},
            )
        },
        **health(),
        "/v1/openapi.json": {
            "get": operation(
                "openapi", "This document.", {JSON_TYPE: body({"type": "object"})},
                security=[], responses=dict(STARTING),
            )
        },
        **session(version),
        **scene_files(),
        **volume_files(),
        **watches(),
        **dashboard(),
    }  # fmt: skip
