# SPDX-License-Identifier: Apache-2.0
"""Many calls under way on one connection, in the order in which they were submitted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from .calls import Calls, Turn, turn_of
from .errors import InvalidArgument

P = ParamSpec("P")
T = TypeVar("T")


class Pipeline:
    """Calls whose requests go out one after the other without waiting for replies, so that the next
    scan goes to the server while it works on the last one. Client.pipeline() makes it; leaving the
    `with` waits for all calls.

        with client.pipeline(depth=4) as line:
            scans = [line.submit(yard.integrate, scan, pose=pose) for scan, pose in drive]
        for scan in scans:
            print(scan.result().change.version)

    Requests are sent in the order of their submission, and the server makes changes of one scene in
    that order. A future has the call's result or its exception; asyncio.wrap_future makes one that
    a task can await. What a call is given must stay as it is until its future is done. Any thread
    may submit; the order is that of submit's calls.
    """

    def __init__(self, client: Calls, depth: int) -> None:
        most = client._connection.max_in_flight
        if not 1 <= depth <= most:
            raise InvalidArgument(f"{depth}; 1 to the client's max_in_flight, {most}", "depth")
        self._places = threading.Semaphore(depth)
        self._pool = ThreadPoolExecutor(depth, thread_name_prefix="voxeld-pipeline")
        self._mutex = threading.Lock()
        self._last = Turn(None)
        self._last.end()

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Starts a call of a method of the client, or of something that it gave. Waits while
        `depth` calls are under way."""
        self._places.acquire()
        try:
            with self._mutex:
                turn = Turn(self._last)
                context = copy_context()  # a trace of the caller's holds for the call, too
                future = self._pool.submit(context.run, self._run, turn, call, args, kwargs)
                self._last = turn
            return future
        except BaseException:
            self._places.release()
            raise

    def _run(self, turn: Turn, call: Callable[..., T], args: Any, kwargs: Any) -> T:
        turn_of.set(turn)
        try:
            return call(*args, **kwargs)
        finally:
            turn.wait()  # a call that sent nothing keeps its place all the same
            turn.end()
            self._places.release()

    def close(self) -> None:
        """Waits for all calls. Closing again is fine."""
        self._pool.shutdown(wait=True)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
