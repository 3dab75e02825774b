"""The client for asyncio."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._aio_key import LoopKey
from ._aio_operations import AsyncOperations
from ._events import Reader
from ._json import RawJson
from ._lease import Context
from ._scope import Scope
from .client import Client
from .errors import HandoffError
from .inboxes import R, InboxDefinition, served_by
from .worker import GRACE, OnEnd, OnError, Registered, Served, Worker

if TYPE_CHECKING:
    import builtins
    import ssl

    from typing_extensions import Self, Unpack

    from . import types as t
    from ._aio_key import AsyncKeySource
    from ._call import CallOptions
    from ._json import Answer
    from ._key import KeyFile
    from ._operations import JsonObject
    from .signatures import Jwks, SignedDecision

Output = Mapping[str, Any] | RawJson | None
#: Does the work. It returns the output, an object or nothing; what it raises fails the handoff.
AsyncHandler = Callable[["t.Handoff", "AsyncContext"], Awaitable[Output]]
H = TypeVar("H", bound=Callable[..., Any])
T = TypeVar("T")


class AsyncCancelled(asyncio.Event):
    """Set when the handoff isn't this worker's any more; true then, so that ``while not context.cancelled`` will do."""

    def __bool__(self) -> bool:
        return self.is_set()


class AsyncContext:
    """What a handler gets besides the handoff."""

    def __init__(self, context: Context, operations: AsyncOperations) -> None:
        self._context = context
        self._operations = operations
        #: Set when the handoff is no longer this worker's. Two seconds later the handler is cancelled.
        self.cancelled = AsyncCancelled()

    async def heartbeat(
        self, *, message: str | None = None, percent: float | None = None, extend_by: int | None = None,
        checkpoint: JsonObject | None = None,
    ) -> t.Heartbeat:
        """Reports progress, or that the work needs more time. Regular heartbeats are sent in any case."""
        return await self._operations._run(lambda: self._context.heartbeat(
            message=message, percent=percent, extend_by=extend_by, checkpoint=checkpoint
        ))

    async def checkpoint(self, value: JsonObject) -> t.Heartbeat:
        """Keeps how far the work has got, in a heartbeat: whoever catches the handoff again finds it there."""
        return await self.heartbeat(checkpoint=value)

    async def ask(
        self, question: str, *, of: t.Asker | None = None, details: JsonObject | None = None,
        schema: JsonObject | None = None, expires_in: int | None = None, idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Asks a person, or the passer, waits for as long as it takes, and returns the answer."""
        return await self._operations._run(lambda: self._context.ask(
            question, of=of, details=details, schema=schema, expires_in=expires_in, idempotency_key=idempotency_key
        ))

    async def attach(self, file: t.FileOrPath) -> None:
        """Uploads a file now, by its path, and sends it with the result."""
        await self._operations._run(lambda: self._context.attach(file))


class AsyncClient(AsyncOperations):
    """A client of the Agent Handoff Service for asyncio. It belongs to no event loop.

    >>> async with AsyncClient("http://127.0.0.1:8080", key="…") as client:
    ...     passed = await client.pass_("Count the rows.", to="counter")
    ...     print((await client.wait_for(passed["handoff_id"]))["result"])
    """

    def __init__(
        self, base_url: str | None = None, key: AsyncKeySource | None = None, *, key_file: KeyFile | None = None,
        retry_for: float = 30.0, attempt_timeout: float = 10.0, ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """Takes what ``Client`` takes; ``key`` may be a coroutine function, which runs in the event loop."""
        given = LoopKey(key, attempt_timeout) if callable(key) else key
        client = Client(
            base_url, given, key_file=key_file, retry_for=retry_for, attempt_timeout=attempt_timeout,
            ssl_context=ssl_context,
        )
        super().__init__(client, given if isinstance(given, LoopKey) else None)
        self._workers: builtins.list[Registered] = []

    async def verify_approval(
        self, caught: Answer, *, jwks: Jwks | None = None, issuer: str | None = None, **options: Unpack[CallOptions]
    ) -> SignedDecision:
        """Checks that a person approved exactly what was caught. It needs ``agent_handoff[verify]``."""
        return await self._run(lambda: self._client.verify_approval(caught, jwks=jwks, issuer=issuer, **options))

    async def aclose(self) -> None:
        """Closes the connections that are kept."""
        self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def wait_for(
        self, id: str, until: t.Until = "done", *, timeout: float | None = None, follow: bool = True,
        attempt_timeout: float | None = None, of: InboxDefinition[Any, Any] | None = None,
    ) -> t.Status:
        """Waits for as long as it takes until a handoff is caught, or has ended in any way: check ``status``."""
        return await self._run(lambda: self._client.wait_for(
            id, until, timeout=timeout, follow=follow, attempt_timeout=attempt_timeout, of=of
        ))

    async def wait_for_all(
        self, ids: Iterable[str], *, timeout: float | None = None, results: bool | None = None,
        attempt_timeout: float | None = None,
    ) -> builtins.list[t.Standing]:
        """Waits until all of them, however many, have ended in any way: a list in the order of the ids."""
        return await self._run(lambda: self._client.wait_for_all(
            ids, timeout=timeout, results=results, attempt_timeout=attempt_timeout
        ))

    async def events(
        self, *, after: str | None = None, types: Sequence[str] | None = None, handoff_id: str | None = None,
        inbox: str | None = None, labels: Mapping[str, str] | None = None, follow: bool = True,
        stop: asyncio.Event | None = None, on_error: Callable[[HandoffError], object] | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncIterator[t.Event]:
        """What happens to the tenant's handoffs, each event once and in order, until ``stop`` is set.

        >>> async for event in client.events(after=last):
        ...     await use(event); last = event["id"]
        """
        settings = self._client._settings
        reader = Reader(settings, after, types, handoff_id, inbox, labels, follow, on_error, options)
        while not reader.has_ended:
            page = await _unless(stop, self._run(reader.page))
            for event in page or ():
                if stop is not None and stop.is_set():
                    return
                yield event  # type: ignore[misc]
            if page is None:
                return

    @overload
    async def work(
        self, inbox: InboxDefinition[Any, R], handler: Callable[[t.Handoff, AsyncContext], Awaitable[R]], *,
        concurrency: int = 1, stop: asyncio.Event | None = None, worker: str | None = None,
        on_error: OnError | None = None, on_end: OnEnd | None = None,
    ) -> None: ...

    @overload
    async def work(
        self, inbox: Served, handler: AsyncHandler, *, concurrency: int = 1, stop: asyncio.Event | None = None,
        worker: str | None = None, on_error: OnError | None = None, on_end: OnEnd | None = None,
    ) -> None: ...

    async def work(
        self, inbox: Any, handler: Any, *, concurrency: int = 1, stop: asyncio.Event | None = None,
        worker: str | None = None, on_error: OnError | None = None, on_end: OnEnd | None = None,
    ) -> None:
        """Serves an inbox (the agent's own if None), or several, the first one first, until ``stop`` is set.

        ``await handler(handoff, context)`` returns the output, an object or nothing; what it raises fails the handoff.
        When ``stop`` is set, it catches nothing more, finishes what it has, and returns. If it is cancelled, so are the
        handlers, and what they have is declined. ``on_error`` and ``on_end`` are called in a thread.
        """
        loop = asyncio.get_running_loop()
        scope, bridge = Scope(), _Bridge(self, handler, loop)
        served, handle = served_by(inbox, self._client, bridge.handle)
        serving_worker = Worker(self._client, served, handle, concurrency, on_error, on_end, worker)

        def serve() -> None:
            with scope.active():
                serving_worker.run(None)

        serving = asyncio.ensure_future(self._run(serve))
        stopping = None if stop is None else asyncio.ensure_future(stop.wait())
        try:
            if stopping is not None:
                await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                scope.cancel()
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            bridge.abort(asyncio.CancelledError())
            scope.cancel()
            await asyncio.wait({serving}, timeout=2 * GRACE)
            raise
        finally:
            scope.cancel()
            if stopping is not None:
                stopping.cancel()

    def worker(self, inbox: Served | InboxDefinition[Any, Any] = None, *, concurrency: int = 1) -> Callable[[H], H]:
        """Has ``run`` serve an inbox with a coroutine function."""

        def register(handler: H) -> H:
            self._workers.append(Registered(inbox, handler, concurrency))
            return handler

        return register

    async def run(
        self, *, stop: asyncio.Event | None = None, on_error: OnError | None = None, on_end: OnEnd | None = None
    ) -> None:
        """Serves with all functions that ``worker`` was put before.

        It ends on SIGTERM, SIGINT or ``stop`` when what it has is done; a second signal does what it did before.
        """
        if not self._workers:
            raise RuntimeError("nothing to run: put @client.worker(inbox) before a function")
        loop = asyncio.get_running_loop()
        own = asyncio.Event()
        heard: dict[signal.Signals, Any] = {}

        def restore() -> None:
            while heard:
                number, before = heard.popitem()
                loop.remove_signal_handler(number)
                signal.signal(number, before)

        def end() -> None:
            restore()
            own.set()

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before = signal.getsignal(number)
                try:
                    loop.add_signal_handler(number, end)
                except NotImplementedError:
                    # Windows: Ctrl-C cancels the task, as asyncio.run does.
                    break
                heard[number] = before
        works = [
            asyncio.ensure_future(self.work(
                served, handler, concurrency=concurrency, stop=own, on_error=on_error, on_end=on_end
            ))
            for served, handler, concurrency in self._workers
        ]
        stopping = None if stop is None else asyncio.ensure_future(_then(stop, own))
        try:
            await asyncio.wait(works, return_when=asyncio.FIRST_EXCEPTION)
            own.set()
            await asyncio.wait(works)
            for one in works:
                one.result()
        finally:
            restore()
            for task in works + ([] if stopping is None else [stopping]):
                task.cancel()
            await asyncio.gather(*works, return_exceptions=True)


class _Bridge:
    """Runs handlers in the loop, for a worker whose threads wait for them."""

    def __init__(self, client: AsyncOperations, handler: AsyncHandler, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._handler = handler
        self._loop = loop
        self._tasks: set[asyncio.Task[Output]] = set()
        self._aborted: BaseException | None = None

    def abort(self, reason: BaseException) -> None:
        """In the loop: no further handler runs."""
        self._aborted = reason
        for task in self._tasks:
            task.cancel()

    def handle(self, handoff: t.Handoff, context: Context) -> Output:
        """In a handler's thread."""
        own = AsyncContext(context, self._client)
        coroutine = self._run(handoff, own)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as closed:
            coroutine.close()
            return self._decline(handoff, closed)

        def lost() -> None:
            try:
                self._loop.call_soon_threadsafe(own.cancelled.set)
                self._loop.call_soon_threadsafe(self._loop.call_later, GRACE, future.cancel)
            except RuntimeError:
                pass

        context._lease.scope.on_cancel(lost)
        while not wait({future}, timeout=1).done:
            if self._loop.is_closed():
                return self._decline(handoff, RuntimeError("the event loop is closed"))
        try:
            return future.result()
        except BaseException as error:
            if self._aborted is None:
                raise
            return self._decline(handoff, error)

    def _decline(self, handoff: t.Handoff, error: BaseException) -> Output:
        """Gives it back; that ends it, so that nothing else is reported."""
        self._client._client.decline(handoff["handoff_id"], "The worker was cancelled.")
        raise error

    async def _run(self, handoff: t.Handoff, context: AsyncContext) -> Output:
        if self._aborted is not None:
            raise self._aborted
        task = asyncio.ensure_future(_awaited(self._handler(handoff, context)))
        self._tasks.add(task)
        try:
            return await task
        finally:
            self._tasks.discard(task)
            task.cancel()


async def _awaited(output: Awaitable[Output]) -> Output:
    return await output


async def _then(first: asyncio.Event, second: asyncio.Event) -> None:
    await first.wait()
    second.set()


async def _unless(stop: asyncio.Event | None, call: Awaitable[T]) -> T | None:
    """What it returns, or None where ``stop`` is set before."""
    if stop is None:
        return await call
    calling, stopping = asyncio.ensure_future(call), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({calling, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return calling.result() if calling.done() else None
    finally:
        calling.cancel()
        stopping.cancel()
