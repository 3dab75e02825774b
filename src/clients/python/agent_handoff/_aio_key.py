"""A key that a coroutine function gives."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from typing import Union

from ._scope import current, now

#: A key or a token, or a function that gives one. The function is called for each request.
AsyncKeySource = Union[str, Callable[[], Union[str, Awaitable[str]]]]

#: How often it is looked whether the call goes on and the event loop runs, in seconds.
_LOOK = 0.1


class LoopKey:
    """Calls a function in a call's thread, and awaits what it returns in the event loop."""

    def __init__(self, key: Callable[[], str | Awaitable[str]], timeout: float) -> None:
        self._key = key
        self._timeout = timeout
        self._last: str | None = None
        #: The loop of the client's latest call.
        self.loop: asyncio.AbstractEventLoop | None = None

    def __call__(self) -> str:
        loop = self.loop
        if loop is None or not loop.is_running():
            # What a call caught is given back also when its loop has ended.
            if self._last is None:
                raise RuntimeError("no event loop runs")
            return self._last
        given = self._key()
        self._last = _in_loop(given, loop, self._timeout) if inspect.isawaitable(given) else given
        return self._last


def _in_loop(given: Awaitable[str], loop: asyncio.AbstractEventLoop, timeout: float) -> str:
    async def awaited() -> str:
        return await given

    future = asyncio.run_coroutine_threadsafe(awaited(), loop)
    scope, deadline = current(), now() + timeout
    try:
        while not wait({future}, timeout=min(_LOOK, max(0.0, deadline - now()))).done:
            if scope is not None:
                scope.check()
            if not loop.is_running():
                raise RuntimeError("the event loop has ended")
            if now() >= deadline:
                raise TimeoutError(f"it takes more than {timeout:g} s")
        return future.result()
    finally:
        future.cancel()
