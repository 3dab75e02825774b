"""Serving an inbox."""

from __future__ import annotations

import inspect
import logging
import os
import queue
import re
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ._insist import insist, is_of_output
from ._json import RawJson, encode
from ._lease import REPORTED_FOR, Context, Lease
from ._operations import failure_of
from ._scope import MAX_WAIT, Scope, current, now, watch
from ._wait import not_at_once
from .errors import HandoffError

if TYPE_CHECKING:
    from . import types as t
    from ._operations import Operations

#: What a worker serves: an inbox, several in the order in which it asks them, or the agent's own.
Served = str | Sequence[str] | None
#: Does the work. It returns the output, an object or nothing; what it raises fails the handoff.
Handler = Callable[["t.Handoff", Context], Mapping[str, Any] | RawJson | None]
OnError = Callable[[BaseException, "t.Handoff | None"], object]
OnEnd = Callable[["t.Handoff", str], object]

#: How many handoffs one request can catch.
_MAX_ITEMS = 100
#: How long a handler may go on after it lost its handoff, in seconds; then its place goes to another handoff.
GRACE = 2.0


class Worker:
    """Catches no more than it can start at once, until it is stopped; then it finishes what it has."""

    def __init__(
        self, client: Operations, served: Served, handler: Handler, concurrency: int, on_error: OnError | None,
        on_end: OnEnd | None, worker: str | None = None,
    ) -> None:
        if not isinstance(concurrency, int) or concurrency < 1:
            raise ValueError("concurrency must be a whole number, 1 or more")
        self._client = client
        is_one = served is None or isinstance(served, str)
        self._served: dict[str, Any] = {"inbox": served} if is_one else {"inboxes": list(served or ())}
        self._handler = handler
        self._concurrency = concurrency
        self._on_error = on_error or _log
        self._on_end = on_end or (lambda handoff, how: None)
        #: Its name for people.
        self._name = (own_name() if worker is None else worker) or None
        self._running = 0
        self._changed = threading.Condition()
        self._raised: BaseException | None = None
        self._over = Scope()

    def run(self, stop: threading.Event | None) -> None:
        self._over = over = Scope(None, current())
        over.on_cancel(self._wake)
        if stop is not None:
            watch(stop, over)
        try:
            while not over.cancelled:
                free = self._free()
                if free == 0:
                    continue
                sent_at = now()
                items = self._take(min(_MAX_ITEMS, free))
                for item in items:
                    self._start(item, sent_at)
                # An empty answer before its time: the service stops, or something in front of it doesn't let
                # requests wait.
                if not items and not over.cancelled:
                    self._within(lambda: not_at_once(sent_at))
        finally:
            over.cancel()
            over.close()
            with self._changed:
                while self._running > 0:
                    self._changed.wait()
        if self._raised is not None:
            raise self._raised

    def _free(self) -> int:
        with self._changed:
            if self._running >= self._concurrency and not self._over.cancelled:
                self._changed.wait()
            return 0 if self._over.cancelled else self._concurrency - self._running

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _crash(self, error: BaseException) -> None:
        self._raised = self._raised or error
        self._over.cancel()

    def _within(self, call: Callable[[], object]) -> None:
        """A call that ends when the worker is stopped."""
        try:
            with Scope(None, self._over).active():
                call()
        except HandoffError as error:
            if not self._over.cancelled or error.code != "aborted":
                raise

    def _take(self, max: int) -> list[t.Handoff]:
        """What comes next; nothing when the worker is stopped, unless something had been caught by then."""
        what: dict[str, Any] = {
            **self._served, "max": max, "idempotency_key": str(uuid.uuid4()), "worker": self._name
        }
        items: list[t.Handoff] = []

        def catch() -> None:
            items.extend(insist(
                lambda: self._client.catch_next(**what, wait=MAX_WAIT), on_error=lambda error: self._tell(error, None)
            ))

        try:
            self._within(catch)
        except KeyboardInterrupt as interrupt:
            self._crash(interrupt)
        if not self._over.cancelled or items:
            return items
        # The request may have caught something before it was cut off. A request with the same key returns that, and
        # catches nothing else.
        try:
            with _unscoped():
                return list(self._client.catch_next(**what))
        except HandoffError as error:
            self._tell(error, None)
            return []

    def _tell(self, error: BaseException, handoff: t.Handoff | None) -> None:
        try:
            self._on_error(error, handoff)
        except BaseException as raised:
            self._crash(raised)

    def _start(self, handoff: t.Handoff, sent_at: float) -> None:
        with self._changed:
            self._running += 1
        lease = Lease(self._client, handoff, sent_at, self._name)
        threading.Thread(target=self._serve, args=(handoff, lease), name="handoff-lease", daemon=True).start()

    def _serve(self, handoff: t.Handoff, lease: Lease) -> None:
        """Looks after a handoff while its handler, in a thread of its own, works on it and reports."""
        ended, beats, reported = threading.Event(), Scope(), threading.Lock()

        def report(how: str | None) -> None:
            """Once, by the first: this thread if the handoff was lost and its handler goes on."""
            if reported.acquire(blocking=False) and how is not None:
                try:
                    self._on_end(handoff, how)
                except BaseException as raised:
                    self._crash(raised)

        def handle() -> None:
            try:
                report(self._handle(handoff, lease))
            finally:
                ended.set()
                beats.cancel()

        try:
            threading.Thread(target=handle, name="handoff-handler", daemon=True).start()
            while not ended.is_set():
                if lease.is_lost():
                    ended.wait(GRACE)
                    break
                lease.look(beats)
                ended.wait(lease.step)
            if lease.is_lost():
                report(_own_end(lease.reason) or "lost")
        except BaseException as raised:
            self._crash(raised)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _handle(self, handoff: t.Handoff, lease: Lease) -> str | None:
        """How it ended: None where the report was refused."""
        output, error = None, None
        try:
            output = self._handler(handoff, Context(lease))
        except BaseException as raised:
            error = raised
        if lease.is_lost():
            return _own_end(lease.reason) or "lost"
        try:
            refusal = lease.run(lambda: self._report(handoff["handoff_id"], output, error, lease))
            if refusal is not None:
                self._tell(refusal, handoff)
            return "done" if error is None and refusal is None else "failed"
        except HandoffError as refused:
            if lease.is_lost():
                return _own_end(lease.reason) or "lost"
            end = _own_end(refused)
            if end is None:
                self._tell(refused, handoff)
            return end
        except Exception as refused:
            self._tell(refused, handoff)
        return None

    def _report(self, id: str, output: Any, error: BaseException | None, lease: Lease) -> Exception | None:
        """With one key for all its tries. If the service doesn't accept the output, the handoff fails: why it didn't."""

        def say(send: Callable[..., object]) -> None:
            once = {"idempotency_key": str(uuid.uuid4()), "retry_for": REPORTED_FOR, "worker": self._name}
            insist(lambda: send(**once), goes_on=lambda: not self._over.cancelled and not lease.is_lost())

        def fail(error: BaseException) -> None:
            failure = failure_of(error)
            say(lambda **once: self._client.fail(id, failure["message"], code=failure.get("code"), **once))

        if error is not None:
            fail(error)
            return None
        try:
            encode(output)
            say(lambda **once: self._client.done(id, output, files=lease.files or None, **once))
            return None
        except HandoffError as refused:
            if not is_of_output(refused):
                raise
            fail(refused)
            return refused
        except (TypeError, ValueError, RecursionError) as unsayable:
            fail(unsayable)
            return unsayable


def own_name() -> str | None:
    """This process among an agent's workers: what HANDOFF_WORKER says, else host and process. None for none."""
    said = os.environ.get("HANDOFF_WORKER")
    name, end = (socket.gethostname(), f":{os.getpid()}") if said is None else (said, "")
    # In characters that the service takes, and at most 100.
    return re.sub(r"[^A-Za-z0-9._:@/-]", "-", name)[:100 - len(end)] + end or None


def _own_end(error: HandoffError | None) -> str | None:
    """The handler may have ended its handoff itself; then that end stands."""
    ends = {"already_done": "done", "already_failed": "failed", "already_declined": "declined"}
    return None if error is None else ends.get(error.code)


def _log(error: BaseException, handoff: t.Handoff | None) -> None:
    """Reports an error or a loss that no callback is for."""
    of = "" if handoff is None else f" (handoff {handoff['handoff_id']})"
    logging.getLogger("agent_handoff").warning("%s%s", error, of)


class _unscoped:
    """What is called in here goes on when the thread's scope has ended."""

    def __enter__(self) -> None:
        self._inside = Scope().active()
        self._inside.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._inside.__exit__(*error)


class Registered(NamedTuple):
    """A handler that ``run`` will serve with."""

    served: Any
    handler: Any
    concurrency: int


def no_coroutine(handler: Any) -> None:
    if inspect.iscoroutinefunction(handler):
        raise TypeError("the handler is a coroutine function: AsyncClient takes these")


def run_all(works: Sequence[Callable[[threading.Event], None]], stop: threading.Event | None) -> None:
    """Runs them side by side until all have ended: on SIGTERM, SIGINT or ``stop`` when what they have is done.

    A second signal does what it did before. Only the main thread hears signals. Raises what ended one of them.
    """
    own = threading.Event()
    news: queue.SimpleQueue[BaseException | str | None] = queue.SimpleQueue()

    def work(one: Callable[[threading.Event], None]) -> None:
        try:
            one(own)
            news.put(None)
        except BaseException as error:
            news.put(error)

    before: dict[int, Any] = {}

    def restore() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, handler)

    def heard(number: int, frame: object) -> None:
        # No more than this: the thread that it interrupts may hold any lock.
        news.put("stop")

    over = Scope(None, current())
    over.on_cancel(lambda: news.put("stop"))
    raised: BaseException | None = None
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, heard)
    try:
        if stop is not None:
            watch(stop, over)
        for one in works:
            threading.Thread(target=work, args=(one,), name="handoff-work", daemon=True).start()
        left = len(works)
        while left > 0:
            said = _next(news)
            if said == "stop":
                restore()
            else:
                left -= 1
                if isinstance(said, BaseException):
                    raised = raised or said
            own.set()
    finally:
        restore()
        own.set()
        over.cancel()
        over.close()
    if raised is not None:
        raise raised


def _next(news: queue.SimpleQueue[Any]) -> Any:
    """Waits in short steps, since not all systems interrupt a thread that waits when a signal comes."""
    while True:
        try:
            return news.get(timeout=1)
        except queue.Empty:
            pass
