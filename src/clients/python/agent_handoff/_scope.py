"""Time that is left, and what ends a call from outside."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .errors import HandoffError

_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds, by a clock that can’t be set; where there is one, it goes on while the machine sleeps."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)


#: The longest ``wait`` of one request, in seconds: a little below the minute after which many gateways give up.
MAX_WAIT = 50

#: The longest time that a thread can wait.
_LONGEST = min(threading.TIMEOUT_MAX, 86_400.0)


def backoff(attempt: int) -> float:
    """Seconds before the nth retry (from 0): doubled each time, up to 5 s, with its second half random."""
    return min(5.0, 0.1 * 2.0 ** min(attempt, 10)) * (1 - random.random() / 2)


def retry_pause(seconds: float | None) -> float:
    """How much of a Retry-After is waited for. One of over an hour is a mistake: a worker would be deaf for as long."""
    return seconds if seconds is not None and seconds <= 3600 else 0.0


class TooLate(Exception):
    """The time of a scope is over."""


class Scope:
    """What a call runs in: it may be cancelled from another thread, and its time may be over."""

    def __init__(self, timeout: float | None = None, parent: Scope | None = None) -> None:
        self.deadline = None if timeout is None else now() + timeout
        if parent is not None and parent.deadline is not None:
            self.deadline = parent.deadline if self.deadline is None else min(self.deadline, parent.deadline)
        self.cancelled = False
        self._parent = parent
        self._lock = threading.Lock()
        self._stops: set[Callable[[], None]] = set()
        self._event = threading.Event()
        if parent is not None:
            parent.on_cancel(self.cancel)

    def cancel(self) -> None:
        """Ends what runs in it. May be called from anywhere but a signal handler, and more than once."""
        with self._lock:
            self.cancelled = True
            stops, self._stops = self._stops, set()
        self._event.set()
        for stop in stops:
            stop()

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """Calls it once when this is cancelled; at once if it is by now."""
        with self._lock:
            if not self.cancelled:
                self._stops.add(stop)
                return
        stop()

    def forget(self, stop: Callable[[], None]) -> None:
        with self._lock:
            self._stops.discard(stop)

    def close(self) -> None:
        if self._parent is not None:
            self._parent.forget(self.cancel)

    def left(self) -> float | None:
        """Seconds; None without an end."""
        return None if self.deadline is None else self.deadline - now()

    def check(self) -> None:
        """Raises where it is over."""
        if self.cancelled:
            raise HandoffError("aborted", detail="The call was cancelled.")
        if self.deadline is not None and now() >= self.deadline:
            raise TooLate

    def pause(self, seconds: float) -> None:
        """Waits; raises as soon as it is over."""
        until = now() + seconds
        while (rest := until - now()) > 0:
            left = self.left()
            self._event.wait(min(_LONGEST, rest if left is None else max(0.0, min(rest, left))))
            self.check()

    @contextmanager
    def active(self) -> Iterator[Scope]:
        """The calls of this thread run in it."""
        before = current()
        _local.scope = self
        try:
            yield self
        finally:
            _local.scope = before
            self.close()


def watch(stop: threading.Event, scope: Scope) -> None:
    """Cancels the scope when the event is set, for as long as the scope isn't cancelled otherwise."""

    def run() -> None:
        while not scope.cancelled:
            if stop.wait(0.2):
                scope.cancel()

    if stop.is_set():
        scope.cancel()
    else:
        threading.Thread(target=run, name="handoff-stop", daemon=True).start()


_local = threading.local()


def current() -> Scope | None:
    """The scope that this thread's calls run in."""
    scope: Scope | None = getattr(_local, "scope", None)
    return scope


def pause(seconds: float) -> None:
    """Waits, in whatever scope this thread's calls run."""
    scope = current()
    if scope is not None:
        scope.pause(seconds)
    elif seconds > 0:
        time.sleep(seconds)
