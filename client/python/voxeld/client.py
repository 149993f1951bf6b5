# SPDX-License-Identifier: Apache-2.0
"""The client: one method for each of the server's."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import TracebackType

import numpy as np
import numpy.typing as npt

from voxeld.v1 import voxelize_pb2

from . import exchange, wire
from .calls import DEFAULT_IN_FLIGHT, DEFAULT_REPLY_BYTES
from .cloud import Pose
from .errors import InvalidArgument
from .generated.client_class import ClientMethods
from .maps import Merge, merge_request
from .pipeline import Pipeline
from .points import Points, clouds_of, pose_of
from .reply import OUTPUTS, REDUCTIONS, RULES, Expect, Voxels, voxels_of
from .transport import Tls
from .watching import WatchCalls

ORDERS = ("morton", "first_point")
DEFAULT_OUTPUTS = ("coords", "counts")


def connect(
    url: str | None = None,
    token: str | None = None,
    client_id: str | None = None,
    timeout: float | None = None,
    *,
    wait: float | None = None,
    max_in_flight: int = DEFAULT_IN_FLIGHT,
    max_reply_bytes: int = DEFAULT_REPLY_BYTES,
    shared_bytes: int | None = None,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
) -> Client:
    """Connects, and reconnects by itself from then on.

    url              "ipc:///run/voxeld/voxeld.sock", "tcp://host:port", "tls+tcp://host:port".
                     None: $VOXELD_URL, else ipc://$XDG_RUNTIME_DIR/voxeld/voxeld.sock where that
                     socket exists, else ipc:///run/voxeld/voxeld.sock
    token            None: $VOXELD_TOKEN, else none
    client_id        names the sender, for fairness and calls that change something (see Client):
                     [a-z0-9][a-z0-9._-]{0,62}, of one client at a time. None: a random one
    timeout          seconds, of every call that names none. None: as long as the server allows (its
                     limits.max_timeout_ms), at most a minute
    wait             seconds to wait for the first connection. None: 1, but a Unix socket
                     that does not exist fails at once; 0: not at all, connect in the
                     background
    max_in_flight    calls in flight at once, 1 to 1024
    max_reply_bytes  largest reply taken
    shared_bytes     over ipc: memory of so many bytes is shared with the daemon, and large
                     requests and replies go through it; arrays of results lie there until the
                     last of them is gone. What does not fit uses the socket. None: as much as
                     two calls need, 8 to 256 MiB, from the second call on that has 256 KiB; 0: none
    ca_file          for tls+tcp: PEM file of the authorities that may have signed the server's
                     certificate, which must be for the URL's host
    cert_file        PEM file of one's own certificate, where the server wants one
    key_file         of its key; None: it is in cert_file

    Raises Unavailable (nobody answers there), InvalidArgument (a malformed URL or option),
    ResourceExhausted (no memory, threads or file descriptors).
    """
    return Client(
        url,
        token,
        client_id,
        timeout,
        wait=wait,
        max_in_flight=max_in_flight,
        max_reply_bytes=max_reply_bytes,
        shared_bytes=shared_bytes,
        tls=Tls(ca_file, cert_file, key_file),
    )


class Client(ClientMethods, WatchCalls):
    """A connection to a daemon; connect() makes it, `with` or close() ends it.

    Any number of threads may use it at once. Failing calls never wait: without a connection
    a call is Unavailable at once, with too many in flight ResourceExhausted at once, and no
    call takes longer than its timeout. Requests are never sent twice behind the caller's
    back. All failures are exceptions of class Error. Ctrl-C during a call takes effect when
    the call ends. Do not use a client across fork().

    Each method takes timeout (seconds, None: the client's) and request_id (at most 63
    printable ASCII characters, for the server's log; None: one is made).

    Methods that change something also take sequence. Such a call takes effect exactly once a
    client_id and sequence, however often it is repeated; the client numbers it by itself where
    sequence is 0. When one ends with DeadlineExceeded or Unavailable nobody knows whether it
    took effect: repeat it, with everything else as it was, and the error's sequence. It then
    takes effect unless it did, and returns the first one's result (replayed is True; large
    results have lost their arrays, which arrays_dropped says). repeat() does that:

        inserted = voxeld.repeat(lambda n: seen.insert(keys, sequence=n), seconds=10)

    After any other error nothing has changed. The server remembers the last 64 such calls of
    a client_id, until it restarts.
    """

    def __init__(
        self,
        url: str | None,
        token: str | None,
        client_id: str | None,
        timeout: float | None,
        *,
        wait: float | None,
        max_in_flight: int,
        max_reply_bytes: int,
        shared_bytes: int | None = None,
        tls: Tls | None = None,
    ) -> None:
        super().__init__(
            url,
            token,
            client_id,
            timeout,
            wait=wait,
            max_in_flight=max_in_flight,
            max_reply_bytes=max_reply_bytes,
            shared_bytes=shared_bytes,
            tls=tls,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. Calls in flight on other threads raise Cancelled. Closing again
        is fine."""
        self._shared.drop()
        self._connection.close()

    def pipeline(self, depth: int = 4) -> Pipeline:
        """Makes a pipeline: up to `depth` calls are under way on this connection, and their
        requests go out in order."""
        return Pipeline(self, depth)

    @property
    def is_connected(self) -> bool:
        """Whether a connection stands at this moment."""
        return self._connection.is_connected

    def voxelize(
        self,
        points: Points,
        size: float | Sequence[float],
        range: npt.ArrayLike | None = None,
        rule: str | None = None,
        order: str | None = None,
        origin: Sequence[float] | None = None,
        features: Sequence[str] | None = None,
        reduce: str | Sequence[str] | None = None,
        outputs: str | Sequence[str] | None = None,
        max_points: int = 0,
        max_voxels: int = 0,
        *,
        pose: Pose | npt.ArrayLike | None = None,
        frame_id: str = "",
        stamp_ns: int = 0,
        merge: Merge | str | None = None,
        stream: str = "",
        keep_last: int = 0,
        max_age_ms: int = 0,
        timeout: float | None = None,
        request_id: str | None = None,
        sequence: int = 0,
    ) -> Voxels:
        """Groups points by voxel and reduces their features.

        points      an N x C array or N records (see Cloud.from_numpy), a Cloud, or a list of
                    Clouds or arrays, one a batch item, 1 to 1024
        size        voxel edge in metres, one number or one an axis
        range       (low, high) corners in metres, or their six numbers; low included
        rule        "spconv" (floor((p - low) / size) within the range's grid; needs a
                    range), "minkowski" (floor(p / size); a range only crops) or "double"
                    (that in float64, as Open3D's voxel_down_sample). None: spconv when a
                    range is given
        order       of the voxels of an item: "morton" (None) or "first_point"
        origin      map position of the lattice's zero
        features    names of the channels: fields, "x" "y" "z", "dt". None: x, y, z and all
                    other fields; empty: no features, so no reductions
        reduce      of "mean" (None), "sum", "min", "max", "first"
        outputs     of "coords", "counts" (None: these two), "inverse", "points" (needs
                    max_points and max_voxels), "first_index"
        max_points  kept a voxel, 0 = all, at most 65536; the first by index survive
        max_voxels  kept an item, 0 = all; those with the earliest first points survive
        pose        sensor to map, a Pose or a 4 x 4 matrix; with frame_id and stamp_ns
                    (echoed) for arrays only: a Cloud has its own
        merge       adds the voxels to a named map as well, a Merge or the map's name: a running
                    map of a drive. The map has a uint64 "count" and, with features, a
                    float64 "sum" of them a voxel. Such a call changes something. Needs the
                    minkowski rule, and neither max_points nor max_voxels
        stream, keep_last
                    with both, at most keep_last requests of this client and stream wait at
                    the server; an older one ends with Aborted
        max_age_ms  a request that has waited longer does not start: Aborted. 0: no limit

        The size is checked against the server's limit before anything is sent.
        """
        clouds = clouds_of(
            points, stamp_ns=stamp_ns, frame_id=frame_id, T_map_sensor=pose_of(pose)
        )
        request, expect = voxelize_request(
            size, range, rule, order, origin, features, reduce, outputs, len(clouds)
        )
        try:
            request.max_points = max_points
            request.max_voxels = max_voxels
        except (TypeError, ValueError) as e:
            raise InvalidArgument(str(e)) from None
        if merge is not None:
            request.merge.CopyFrom(merge_request(merge))
        expect = dataclasses.replace(expect, max_points=max_points, merges=merge is not None)
        reply = exchange.send(
            self, "voxelize", request, exchange.clouds("clouds", request, clouds), timeout,
            request_id, None if merge is None else sequence,
            stream=stream, keep_last=keep_last, max_age_ms=max_age_ms,
        )  # fmt: skip
        with reply:
            return voxels_of(reply, expect)


def chosen(
    given: str | Sequence[str] | None, known: Sequence[str], default: Sequence[str], field: str
) -> list[str]:
    names = [given] if isinstance(given, str) else list(given or default)
    for name in names:
        if name not in known:
            raise InvalidArgument(f"{name!r}; one of {', '.join(known)}", field)
    return list(dict.fromkeys(names))


def corners(range: npt.ArrayLike) -> voxelize_pb2.Range:
    try:
        low, high = np.asarray(range, np.float64).reshape(2, 3)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{range!r}; (low, high) or six numbers are right", "range"
        ) from None
    return voxelize_pb2.Range(low=wire.vec3(low, "range.low"), high=wire.vec3(high, "range.high"))


def voxelize_request(
    size: float | Sequence[float],
    range: npt.ArrayLike | None,
    rule: str | None,
    order: str | None,
    origin: Sequence[float] | None,
    features: Sequence[str] | None,
    reduce: str | Sequence[str] | None,
    outputs: str | Sequence[str] | None,
    n_clouds: int,
) -> tuple[voxelize_pb2.VoxelizeRequest, Expect]:
    """Makes the request without its clouds, and what its reply must have."""
    requested = chosen(outputs, OUTPUTS, DEFAULT_OUTPUTS, "outputs")
    reductions = chosen(reduce, REDUCTIONS, ("mean",), "reduce")
    no_features = features is not None and len(features) == 0
    sizes = (size, size, size) if np.isscalar(size) else size
    if isinstance(size, str):
        raise InvalidArgument(f"{size!r}; metres: one number or three", "size")
    request = voxelize_pb2.VoxelizeRequest(
        size=wire.vec3(sizes, "size"),
        rule=chosen(rule, RULES[1:], (), "rule")[0].upper() if rule is not None else None,
        order=chosen(order, ORDERS, ORDERS[:1], "order")[0].upper(),
        features=features or (),
        no_features=no_features,
        outputs=[f"OUTPUT_{name.upper()}" for name in requested],
        reduce=[] if no_features else [f"REDUCE_{name.upper()}" for name in reductions],
    )
    if range is not None:
        request.range.CopyFrom(corners(range))
    if origin is not None:
        request.origin.CopyFrom(wire.vec3(origin, "origin"))
    reduced = frozenset() if no_features else frozenset(reductions)
    return request, Expect(n_clouds, frozenset(requested), reduced, 0)
