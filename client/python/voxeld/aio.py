# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio: the same methods, awaited.

    import numpy as np, voxeld.aio

    async with await voxeld.aio.connect() as client:
        voxels = await client.voxelize(np.load("scan.npy"), size=0.1)
        yard = await client.scene_create("yard", voxel_size=0.1, track_free=True)
        await asyncio.gather(*(yard.integrate(scan) for scan in scans))
        async for change in yard.watch():
            ...

Each call runs on a thread of the client's own, at most max_in_flight at once; others wait for one.
A task that is cancelled goes on at once, while its call ends by itself within its timeout: what it
changes may still take effect. Everything else is as of voxeld.Client.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from . import client as blocking
from .calls import DEFAULT_IN_FLIGHT
from .maps import Map
from .scenes import Scene
from .volumes import Volume

T = TypeVar("T")

NOUNS = (Map, Scene, Volume)
END = object()


class Threads:
    """Runs blocking functions without blocking the event loop."""

    def __init__(self, n: int) -> None:
        self._executor = ThreadPoolExecutor(n, thread_name_prefix="voxeld")

    async def run(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        context = contextvars.copy_context()  # voxeld.trace() holds in it
        call = functools.partial(context.run, function, *args, **options)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def stop(self) -> None:
        self._executor.shutdown(wait=False)


class Awaited:
    """An object whose methods are awaited; what else it has is there as it is. Maps, scenes and
    volumes that methods return are such objects, too; what iterates does so with "async for"."""

    def __init__(self, of: Any, threads: Threads) -> None:
        self._of = of
        self._threads = threads

    def __repr__(self) -> str:
        return f"<voxeld.aio of {self._of!r}>"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._of)})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._of, name)
        if not callable(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **options: Any) -> Result:
            return Result(self._threads, functools.partial(value, *args, **options))

        return call


class Result(Awaitable[Any], AsyncIterator[Any]):
    """What a method gives: to be awaited, or where it iterates, to be iterated."""

    def __init__(self, threads: Threads, call: Callable[[], Any]) -> None:
        self._threads = threads
        self._call = call
        self._iterator: Iterator[Any] | None = None

    def __await__(self) -> Any:
        return self._value().__await__()

    async def _value(self) -> Any:
        value = await self._threads.run(self._call)
        return Awaited(value, self._threads) if isinstance(value, NOUNS) else value

    async def __anext__(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(await self._threads.run(self._call))
        value = await self._threads.run(next, self._iterator, END)
        if value is END:
            raise StopAsyncIteration
        return value


class Client(Awaited):
    """A connection to a daemon; connect() makes it, `async with` or close() ends it."""

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection; calls in flight raise Cancelled."""
        # Not on a thread of the calls, which may all be busy.
        await asyncio.to_thread(self._of.close)
        self._threads.stop()


async def connect(
    url: str | None = None, *, max_in_flight: int = DEFAULT_IN_FLIGHT, **options: Any
) -> Client:
    """Connects as voxeld.connect does, with the same options."""
    threads = Threads(max_in_flight)
    try:
        client = await threads.run(
            blocking.connect, url, max_in_flight=max_in_flight, **options
        )
    except BaseException:
        threads.stop()
        raise
    return Client(client, threads)
