# SPDX-License-Identifier: Apache-2.0
"""Watches that go on over HTTP: server-sent events, arrays in their JSON, and
how many watch."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any

import numpy as np
from harness import SLOW, Daemon, http_call


def rows(tensor: dict[str, Any] | None, dtype: Any, *shape: int) -> np.ndarray:
    if not tensor:
        return np.zeros((0, *shape[1:]), dtype)
    if "data" in tensor:
        return np.frombuffer(base64.b64decode(tensor["data"]), dtype).reshape(shape)
    return np.array(tensor.get("values", []), dtype).reshape(shape)


class Events:
    """A stream of server-sent events, read line by line."""

    def __init__(
        self, daemon: Daemon, path: str, headers: dict[str, str] | None = None
    ) -> None:
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", daemon.http_port, timeout=60 * SLOW
        )
        self.connection.request("GET", path, headers=headers or {})
        self.response = self.connection.getresponse()
        self.n_comments = 0

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self.connection.close()

    def next(self) -> tuple[str, str, dict[str, Any]]:
        """Returns name, id and data of the next event."""
        fields: dict[str, str] = {}
        while True:
            line = self.response.readline()
            assert line, "the stream has ended"
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                self.n_comments += 1
            elif text:
                key, _, value = text.partition(": ")
                fields[key] = value
            elif "event" in fields:
                return fields["event"], fields.get("id", ""), json.loads(fields["data"])


def watchers(daemon: Daemon) -> int:
    text = http_call(daemon, "GET", "/metrics").body.decode()
    return int(next(x for x in text.splitlines() if x.startswith("voxeld_watchers ")).split()[1])
