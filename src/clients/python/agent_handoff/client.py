"""The client for threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._events import Reader, read_events
from ._operations import Operations
from ._wait import wait_for, wait_for_all
from .inboxes import R, InboxDefinition, served_by
from .signatures import Jwks, SignedDecision, Verifier
from .worker import Handler, OnEnd, OnError, Registered, Served, Worker, no_coroutine, run_all

if TYPE_CHECKING:
    import builtins
    import ssl

    from typing_extensions import Self, Unpack

    from . import types as t
    from ._call import CallOptions
    from ._json import Answer
    from ._key import KeyFile, KeySource
    from ._lease import Context
    from .errors import HandoffError

H = TypeVar("H", bound=Callable[..., Any])


class Client(Operations):
    """A client of the Agent Handoff Service. Threads share it, and so do processes that are forked.

    >>> with Client("http://127.0.0.1:8080", key="…") as client:
    ...     id = client.pass_("Count the rows.", to="counter")["handoff_id"]
    ...     print(client.wait_for(id)["result"])
    """

    def __init__(
        self, base_url: str | None = None, key: KeySource | None = None, *, key_file: KeyFile | None = None,
        retry_for: float = 30.0, attempt_timeout: float = 10.0, ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """
        :param base_url: the service's address; by default HANDOFF_URL, or else http://127.0.0.1:8080
        :param key: the API key or a token, or a function that gives one and is called for each request
        :param key_file: instead of ``key``, the path of a file with it, which is read again when it has changed. By
            default the key is what HANDOFF_KEY says, or else what is in the file that HANDOFF_KEY_FILE names
        :param retry_for: how long a call is asked again after its first attempt, in seconds
        :param attempt_timeout: how long an attempt may take, in seconds, on top of the ``wait`` that it asks for
        :param ssl_context: what it checks an https address with; by default ``ssl.create_default_context()``
        """
        super().__init__(base_url, key, key_file, retry_for, attempt_timeout, ssl_context)
        self._workers: builtins.list[Registered] = []
        self._verifier = Verifier(self._settings)

    def verify_approval(
        self, caught: Answer, *, jwks: Jwks | None = None, issuer: str | None = None, **options: Unpack[CallOptions]
    ) -> SignedDecision:
        """Checks that a person approved exactly what was caught. It needs ``agent_handoff[verify]``.

        ``caught`` is an answer of ``catch``, ``catch_next`` or ``approvals.get``, or what a handler gets. It returns
        what was signed, or raises HandoffError with the code ``unsigned``, ``unknown_key``, ``signature``, ``issuer``,
        ``handoff``, ``digest`` or ``rejected``. ``jwks`` are the keys that count, by default those that the service
        publishes; ``issuer`` is the service's address as its BASE_URL says it, by default this client's.

        >>> client.verify_approval(client.catch(id))["decided_by"]
        """
        return self._verifier.verify(caught, jwks, issuer, options)

    def close(self) -> None:
        """Closes the connections that are kept. What is under way goes on; a further call raises RuntimeError."""
        self._settings.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def wait_for(
        self, id: str, until: t.Until = "done", *, timeout: float | None = None, follow: bool = True,
        attempt_timeout: float | None = None, of: InboxDefinition[Any, Any] | None = None,
    ) -> t.Status:
        """Waits for as long as it takes until a handoff is caught, or has ended in any way: check ``status``.

        With ``follow`` across all its attempts. After ``timeout`` seconds it raises HandoffError with the code
        ``timeout``, whose ``handoff_status`` is the last status, and ``reissued_as`` the attempt that it had come to.
        With ``of``, an inbox of ``define_inbox``, the result is checked, and as its type reads it.
        """
        status = wait_for(self._settings, id, until, timeout, follow, {"attempt_timeout": attempt_timeout})
        return status if of is None else of._status(status)

    def wait_for_all(
        self, ids: Iterable[str], *, timeout: float | None = None, results: bool | None = None,
        attempt_timeout: float | None = None,
    ) -> builtins.list[t.Standing]:
        """Waits until all of them, however many, have ended in any way, across all their attempts.

        Returns what became of each, in the order of the ids. An id that isn't there is ``unknown``. After ``timeout``
        seconds it raises HandoffError with the code ``timeout``, whose ``open`` has the ids that have not ended.

        >>> ids = [client.pass_(f"Summarise {file}.", to="summaries")["handoff_id"] for file in files]
        >>> [one["result"] for one in client.wait_for_all(ids, timeout=600) if one["status"] == "done"]
        """
        return wait_for_all(self._settings, ids, timeout, results, {"attempt_timeout": attempt_timeout})

    def events(
        self, *, after: str | None = None, types: Sequence[str] | None = None, handoff_id: str | None = None,
        inbox: str | None = None, labels: Mapping[str, str] | None = None, follow: bool = True,
        stop: threading.Event | None = None, on_error: Callable[[HandoffError], object] | None = None,
        **options: Unpack[CallOptions],
    ) -> Iterator[t.Event]:
        """What happens to the tenant's handoffs, each event once and in order, until ``stop`` is set.

        It resumes by itself after a lost connection or a restart of the service. Keep the ``id`` of the last event
        that you have used, and go on from there with ``after``; ``"0-0"`` begins with the oldest that is kept, and
        without it with what happens from now on. An event of the type ``reset``, without an id, says that some are
        missing. With ``follow=False`` it ends after the newest.

        >>> for event in client.events(after=last, types=["handoff.done", "handoff.failed"]):
        ...     use(event); last = event["id"]
        """
        reader = Reader(self._settings, after, types, handoff_id, inbox, labels, follow, on_error, options)
        return read_events(reader, stop)

    @overload
    def work(
        self, inbox: InboxDefinition[Any, R], handler: Callable[[t.Handoff, Context], R], *, concurrency: int = 1,
        stop: threading.Event | None = None, worker: str | None = None, on_error: OnError | None = None,
        on_end: OnEnd | None = None,
    ) -> None: ...

    @overload
    def work(
        self, inbox: Served, handler: Handler, *, concurrency: int = 1, stop: threading.Event | None = None,
        worker: str | None = None, on_error: OnError | None = None, on_end: OnEnd | None = None,
    ) -> None: ...

    def work(
        self, inbox: Any, handler: Any, *, concurrency: int = 1, stop: threading.Event | None = None,
        worker: str | None = None, on_error: OnError | None = None, on_end: OnEnd | None = None,
    ) -> None:
        """Serves an inbox (the agent's own if None), or several, the first one first, until ``stop`` is set.

        ``handler(handoff, context)`` returns the output, an object or nothing; what it raises fails the handoff. Each
        runs in a thread. When ``stop`` is set, it catches nothing more, finishes what it has, and returns. If the
        service refuses it (for a wrong key, say), it finishes what it has and raises; after any other error it goes on
        and calls ``on_error(error, handoff)``, by default the log. ``on_end(handoff, how)`` is called when the service
        has a handler's end (``done``, ``failed``, or ``declined`` by the handler itself), or the handoff was ``lost``.

        With an inbox of ``define_inbox`` the handler's handoff and result are checked. ``worker`` is this worker's name
        for people, by default what HANDOFF_WORKER says, or else host and process; empty: none.

        >>> client.work("counter", lambda handoff, context: {"rows": count(handoff["context"]["file"])}, concurrency=4)
        """
        no_coroutine(handler)
        served, handle = served_by(inbox, self, handler)
        Worker(self, served, handle, concurrency, on_error, on_end, worker).run(stop)

    def worker(self, inbox: Served | InboxDefinition[Any, Any] = None, *, concurrency: int = 1) -> Callable[[H], H]:
        """Has ``run`` serve an inbox with a function.

        >>> @client.worker("counter", concurrency=4)
        ... def count(handoff, context):
        ...     return {"rows": len(open(handoff["context"]["file"]).readlines())}
        ...
        >>> client.run()
        """

        def register(handler: H) -> H:
            no_coroutine(handler)
            self._workers.append(Registered(*served_by(inbox, self, handler), concurrency))
            return handler

        return register

    def run(
        self, *, stop: threading.Event | None = None, on_error: OnError | None = None, on_end: OnEnd | None = None
    ) -> None:
        """Serves with all functions that ``worker`` was put before.

        It ends on SIGTERM, SIGINT or ``stop`` when what it has is done; a second signal ends it at once.
        """
        if not self._workers:
            raise RuntimeError("nothing to run: put @client.worker(inbox) before a function")
        workers = [
            Worker(self, served, handler, concurrency, on_error, on_end)
            for served, handler, concurrency in self._workers
        ]
        run_all([one.run for one in workers], stop)
