"""Calls that block, for an event loop."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from ._scope import Scope

T = TypeVar("T")
Job = Callable[[], object]

#: After so many seconds without work a thread ends.
_IDLE = 30.0
#: How long a call that was cancelled waits until what it caught has been given back, in seconds.
_GRACE = 5.0


class Threads:
    """As many as there are calls, since most of these wait; kept for the next ones. None keeps the process alive."""

    def __init__(self) -> None:
        self._idle: deque[queue.SimpleQueue[Job]] = deque()
        self._pid = os.getpid()

    def start(self, job: Job) -> None:
        if self._pid != os.getpid():
            # A forked process has none of its parent's threads.
            self._idle, self._pid = deque(), os.getpid()
        try:
            self._idle.pop().put(job)
        except IndexError:
            threading.Thread(target=self._run, args=(job, self._idle), name="handoff-call", daemon=True).start()

    @staticmethod
    def _run(job: Job, idle: deque[queue.SimpleQueue[Job]]) -> None:
        own: queue.SimpleQueue[Job] = queue.SimpleQueue()
        while True:
            job()
            del job
            idle.append(own)
            try:
                job = own.get(timeout=_IDLE)
            except queue.Empty:
                try:
                    idle.remove(own)
                    return
                except ValueError:
                    # Taken in this moment: its job is about to come.
                    job = own.get()


async def run(threads: Threads, call: Callable[[], T], undo: Callable[[T | None], object] | None = None) -> T:
    """What a call in a thread returns.

    If this is cancelled, so is that call, at once. Then, and if the loop is closed meanwhile, ``undo`` gets what it
    returned, or None if it didn't get that far.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    scope = Scope()
    ended = threading.Event()
    found: list[T] = []
    undone = threading.Lock()

    def settle(error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(found[0])
        else:
            future.set_exception(error)

    def clean() -> None:
        ended.wait()
        if undo is not None and undone.acquire(blocking=False):
            undo(found[0] if found else None)

    def job() -> None:
        error: BaseException | None = None
        try:
            with scope.active():
                found.append(call())
        except BaseException as raised:
            # asyncio can't hand on a StopIteration.
            error = RuntimeError(repr(raised)) if isinstance(raised, StopIteration) else raised
        ended.set()
        try:
            loop.call_soon_threadsafe(settle, error)
        except RuntimeError:
            # No coroutine waits in a closed loop.
            clean()

    threads.start(job)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        scope.cancel()
        future.cancel()
        if undo is not None:
            await _within(threads, clean, loop)
        raise
    except GeneratorExit:
        # The loop has ended without it.
        scope.cancel()
        # Where the interpreter ends as well, no thread can be started any more.
        if undo is not None and not sys.is_finalizing():
            threads.start(clean)
        raise


async def _within(threads: Threads, clean: Job, loop: asyncio.AbstractEventLoop) -> None:
    """Waits for it, but not for long: it goes on by itself."""
    cleaned = asyncio.Event()

    def job() -> None:
        try:
            clean()
        finally:
            try:
                loop.call_soon_threadsafe(cleaned.set)
            except RuntimeError:
                pass

    threads.start(job)
    try:
        await asyncio.wait_for(cleaned.wait(), _GRACE)
    except asyncio.TimeoutError:
        pass


