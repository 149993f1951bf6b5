# SPDX-License-Identifier: Apache-2.0
"""One nng REQ socket whose dialer reconnects by itself, and a REQ context for each call.

The messages are made and read through nng's own calls, which pynng exports: its Context
knows no timeout, copies a request twice, and leaks it when the send fails.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pynng

from .errors import (
    Cancelled,
    DeadlineExceeded,
    Error,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    Unavailable,
)

RECONNECT_MIN_MS = 20
RECONNECT_MAX_MS = 1000
CLOSE_S = 5.0  # more than aborted calls take
TLS_CLOSE_S = 1.0
MAX_URL_BYTES = 128  # nng's NNG_MAXADDRLEN
IPC = "ipc://"
# nng tries again and does not say what failed.
NO_TRUST = (
    "; or its certificate is not signed by those of ca_file, not for this host or over, or it does "
    "not accept ours"
)

lib, ffi = pynng.lib, pynng.ffi

ERRORS: dict[int, type[Error]] = {
    lib.NNG_ETIMEDOUT: DeadlineExceeded,
    lib.NNG_ECANCELED: Cancelled,
    lib.NNG_ENOMEM: ResourceExhausted,
    lib.NNG_ENOFILES: ResourceExhausted,
    lib.NNG_EMSGSIZE: ResourceExhausted,
    lib.NNG_EADDRINVAL: InvalidArgument,
    lib.NNG_EINVAL: InvalidArgument,
    lib.NNG_ENOTSUP: InvalidArgument,
    lib.NNG_ECONNREFUSED: Unavailable,
    lib.NNG_ECONNRESET: Unavailable,
    lib.NNG_ECONNABORTED: Unavailable,
    lib.NNG_ECONNSHUT: Unavailable,
    lib.NNG_ECLOSED: Unavailable,
    lib.NNG_ENOENT: Unavailable,
    lib.NNG_EUNREACHABLE: Unavailable,
}


def nng_error(number: int, doing: str, field: str = "") -> Error:
    reason = ffi.string(lib.nng_strerror(number)).decode()
    return ERRORS.get(number, Internal)(f"{doing}: {reason}", field)


def choose_url(given: str | None) -> str:
    """Chooses as libvoxeld does: the given URL, $VOXELD_URL, the user's socket where it exists,
    the system's."""
    url = given if given is not None else os.environ.get("VOXELD_URL", "")
    if url:
        return url
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    path = f"{runtime}/voxeld/voxeld.sock"
    if runtime.startswith("/") and os.path.exists(path):
        return IPC + path
    return IPC + "/run/voxeld/voxeld.sock"


@dataclass(frozen=True)
class Tls:
    """PEM files for tls+tcp; see connect()."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


def pem_of(option: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as e:
        raise InvalidArgument(f"cannot read {path}: {e}", option) from None


def tls_config(url: str, tls: Tls) -> Any:
    """None for other URLs than tls+tcp."""
    if url.startswith("http"):
        raise InvalidArgument(
            f"{url} is for HTTP clients (requests, curl --cacert); this one speaks nng: "
            "ipc:///PATH, tcp://HOST:PORT or tls+tcp://HOST:PORT",
            "url",
        )
    if not url.startswith("tls+"):
        return None
    if tls.ca_file is None:
        raise InvalidArgument(
            "tls+tcp needs the authorities that may have signed the server's certificate",
            "ca_file",
        )
    if tls.key_file is not None and tls.cert_file is None:
        raise InvalidArgument("goes with cert_file, the certificate", "key_file")
    own = {}
    if tls.cert_file is not None:
        own["own_cert_string"] = pem_of("cert_file", tls.cert_file)
        own["own_key_string"] = pem_of("key_file", tls.key_file or tls.cert_file)
    try:
        return pynng.TLSConfig(
            pynng.TLSConfig.MODE_CLIENT,
            server_name=urlsplit(url).hostname,
            ca_string=pem_of("ca_file", tls.ca_file),
            auth_mode=pynng.TLSConfig.AUTH_MODE_REQUIRED,
            **own,
        )
    except pynng.exceptions.NotSupported:
        raise InvalidArgument(
            "this pynng was built without TLS: install one that has it, or use HTTPS with an HTTP "
            "client",
            "url",
        ) from None
    except pynng.NNGException as e:
        raise InvalidArgument(f"no certificates or key in PEM, or not of each other: {e}") from e


class Connection:
    """Any number of threads may exchange at once; close gives up what is in flight."""

    def __init__(
        self, url: str, max_in_flight: int, max_reply_bytes: int, tls: Tls | None = None
    ) -> None:
        if len(url.encode()) >= MAX_URL_BYTES:
            raise InvalidArgument(f"longer than {MAX_URL_BYTES - 1} bytes", "url")
        self.url = url
        self.max_in_flight = max_in_flight
        self._changed = threading.Condition()
        self._pipes: set[int] = set()
        self._sending: set[Any] = set()  # aios whose request nng has not taken yet
        self._receiving: set[Any] = set()  # aios that wait for a reply
        self._n_in_flight = 0
        self._closing = False
        # Counts connections: what was learnt about a server holds for one of them.
        self.number = 0
        config = tls_config(url, tls or Tls())
        try:
            self._socket = pynng.Req0(
                # A plain REQ socket sends a slow request again after a minute.
                resend_time=-1,
                recv_max_size=max_reply_bytes,
                reconnect_time_min=RECONNECT_MIN_MS,
                reconnect_time_max=RECONNECT_MAX_MS,
                **({"tls_config": config} if config is not None else {}),
            )
        except pynng.NNGException as e:
            raise nng_error(e.errno, "opening a socket") from e
        try:
            self._socket.add_post_pipe_connect_cb(self._on_connect)
            self._socket.add_post_pipe_remove_cb(self._on_remove)
            self._socket.dial(url, block=False)
        except pynng.NNGException as e:
            self._socket.close()
            error = nng_error(e.errno, url, "url")
            if isinstance(error, InvalidArgument):
                error = InvalidArgument(
                    f"{url} is no address of a daemon; right are ipc:///PATH, tcp://HOST:PORT and "
                    "tls+tcp://HOST:PORT",
                    "url",
                )
            raise error from e

    def _on_connect(self, pipe: Any) -> None:
        with self._changed:
            self._pipes.add(pipe.id)
            self.number += 1
            self._changed.notify_all()

    def _on_remove(self, pipe: Any) -> None:
        with self._changed:
            self._pipes.discard(pipe.id)
            self._abort_sends()
            self._changed.notify_all()

    def _abort_sends(self) -> None:
        """Aborts sends; the caller holds the lock. nng would keep what waits for a connection
        until its time is over."""
        if not self._pipes:
            for aio in self._sending:
                lib.nng_aio_abort(aio, lib.NNG_ECONNRESET)
        self._abort_if_closing()

    def _abort_if_closing(self) -> None:
        """With the lock."""
        if self._closing:
            for aio in self._sending | self._receiving:
                lib.nng_aio_abort(aio, lib.NNG_ECLOSED)

    @property
    def is_connected(self) -> bool:
        with self._changed:
            return bool(self._pipes)

    def wait(self, wait_s: float | None) -> None:
        """Waits for the first connection; None: a second, but not for a missing socket."""
        path = self.url.removeprefix(IPC)
        if wait_s is None and path != self.url and not os.path.exists(path):
            raise Unavailable(f"no socket at {path}; is voxeld running?", "url")
        limit_s = 1.0 if wait_s is None else wait_s
        with self._changed:
            if not self._changed.wait_for(lambda: self._pipes, limit_s):
                raise Unavailable(
                    f"nobody answers at {self.url} within {limit_s:g} s"
                    + (NO_TRUST if self.url.startswith("tls+") else ""),
                    "url",
                )

    def exchange(
        self,
        parts: Sequence[Any],
        timeout_s: float,
        sent: Callable[[], None] | None = None,
    ) -> memoryview:
        """Sends the parts as one message and returns the reply, which owns its memory. `sent` is
        called once the request is on its way.

        Takes at most timeout_s; without a connection, or with too many calls in flight, it
        fails at once.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            if self._closing:
                raise Cancelled("the client is closed")
            if not self._pipes:
                raise Unavailable(f"no connection to {self.url}")
            if self._n_in_flight >= self.max_in_flight:
                raise ResourceExhausted(
                    f"{self._n_in_flight} calls are in flight already, max_in_flight allows "
                    "no more"
                )
            self._n_in_flight += 1
        try:
            return self._exchange(parts, deadline, sent)
        except DeadlineExceeded:
            raise DeadlineExceeded(
                f"no reply within {timeout_s:g} s, which timeout= of the call or of connect() says"
            ) from None
        except Unavailable:
            if self._closing:
                raise Cancelled("the client was closed meanwhile") from None
            raise
        finally:
            with self._changed:
                self._n_in_flight -= 1
                self._changed.notify_all()

    def _exchange(
        self, parts: Sequence[Any], deadline: float, sent: Callable[[], None] | None
    ) -> memoryview:
        message = message_of(parts)
        context = ffi.new("nng_ctx *")
        aio = ffi.new("nng_aio **")
        try:
            check(lib.nng_ctx_open(context, self._socket.socket), "making a call")
            try:
                check(lib.nng_aio_alloc(aio, ffi.NULL, ffi.NULL), "making a call")
                try:
                    message = self._send(context[0], aio[0], message, deadline)
                    if sent is not None:
                        sent()
                    return self._receive(context[0], aio[0], deadline)
                finally:
                    lib.nng_aio_free(aio[0])
            finally:
                # This also makes nng forget a request whose reply may still come.
                lib.nng_ctx_close(context[0])
        finally:
            if message != ffi.NULL:
                lib.nng_msg_free(message)

    def _send(self, context: Any, aio: Any, message: Any, deadline: float) -> Any:
        """NULL means that the message is nng's. After a failed send it is ours."""
        set_timeout(aio, deadline)
        lib.nng_aio_set_msg(aio, message)
        with self._changed:
            self._sending.add(aio)
        try:
            lib.nng_ctx_send(context, aio)
            with self._changed:
                self._abort_sends()  # the connection may have ended before it was to be aborted
            lib.nng_aio_wait(aio)
        finally:
            with self._changed:
                self._sending.remove(aio)
        result = lib.nng_aio_result(aio)
        if result != 0:
            lib.nng_aio_set_msg(aio, ffi.NULL)
            raise nng_error(result, "sending the request")
        return ffi.NULL

    def _receive(self, context: Any, aio: Any, deadline: float) -> memoryview:
        set_timeout(aio, deadline)
        with self._changed:
            self._receiving.add(aio)
        try:
            lib.nng_ctx_recv(context, aio)
            with self._changed:
                self._abort_if_closing()  # nothing was there to abort before
            lib.nng_aio_wait(aio)
        finally:
            with self._changed:
                self._receiving.remove(aio)
        check(lib.nng_aio_result(aio), "waiting for the reply")
        return view_of(lib.nng_aio_get_msg(aio))

    def close(self) -> None:
        """Ends the connection; calls in flight on other threads fail.

        They end before the socket does: nng 1.6 can wait for ever when its socket is closed while
        others close their contexts.
        """
        with self._changed:
            self._closing = True
            self._abort_if_closing()
            self._changed.wait_for(lambda: self._n_in_flight == 0, CLOSE_S)
        if not self.url.startswith("tls+"):
            self._socket.close()
            return
        # With TLS, nng 1.6 can wait for ever when a late reply arrives while its socket is closed.
        # That thread is left behind then, and pynng must not wait for it when the program ends.
        closer = threading.Thread(target=self._socket.close, daemon=True)
        closer.start()
        closer.join(TLS_CLOSE_S)
        if closer.is_alive():
            atexit.unregister(getattr(pynng.nng, "_pynng_atexit", print))


def check(result: int, doing: str) -> None:
    if result != 0:
        raise nng_error(result, doing)


def set_timeout(aio: Any, deadline: float) -> None:
    left_ms = round((deadline - time.monotonic()) * 1000)
    lib.nng_aio_set_timeout(aio, max(left_ms, 0))


def message_of(parts: Sequence[Any]) -> Any:
    """Makes one nng message of the parts; this is the only copy of a request."""
    message = ffi.new("nng_msg **")
    check(lib.nng_msg_alloc(message, 0), "making the request")
    try:
        n_bytes = sum(len(part) for part in parts)
        check(lib.nng_msg_reserve(message[0], n_bytes), "making the request")
        for part in parts:
            data = ffi.from_buffer(part)
            check(lib.nng_msg_append(message[0], data, len(part)), "making the request")
    except Error:
        lib.nng_msg_free(message[0])
        raise
    return message[0]


def view_of(message: Any) -> memoryview:
    """Returns the body; the message is freed with the last view of it."""
    n_bytes = lib.nng_msg_len(message)
    body = ffi.cast("char *", lib.nng_msg_body(message))
    if n_bytes == 0:
        lib.nng_msg_free(message)
        return memoryview(b"")
    owner = ffi.gc(body, lambda _: lib.nng_msg_free(message), n_bytes)
    return memoryview(ffi.buffer(owner, n_bytes))
