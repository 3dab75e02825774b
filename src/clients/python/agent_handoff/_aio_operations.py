"""The API's operations as coroutines: those of the client for threads, each in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from . import _undo
from ._aio_files import AsyncFiles
from ._aio_key import LoopKey
from ._aio_schedules import AsyncSchedules
from ._call import CallOptions, key_of
from ._json import Answers
from ._operations import UNSET, JsonObject, _Unset
from ._threads import Threads, run
from .client import Client
from .inboxes import I, InboxDefinition, Written

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import types as t

T = TypeVar("T")


class AsyncOperations:
    """What an AsyncClient has of the API. A call that is cancelled leaves nothing caught."""

    def __init__(self, client: Client, key: LoopKey | None) -> None:
        self._client = client
        self._key = key
        self._threads = Threads()
        self.approvals = AsyncApprovals(self)
        self.schedules = AsyncSchedules(self)
        self.files = AsyncFiles(self)

    async def _run(self, call: Callable[[], T], undo: Callable[[T | None], object] | None = None) -> T:
        if self._key is not None:
            self._key.loop = asyncio.get_running_loop()
        return await run(self._threads, call, undo)

    @overload
    async def pass_(
        self, task: str, *, to: InboxDefinition[I, Any], output: Written[I], idempotency_key: str | None = None,
        retry_for: float | None = None, attempt_timeout: float | None = None, **members: Any,
    ) -> t.Passed: ...

    @overload
    async def pass_(
        self, task: str, *, to: InboxDefinition[dict[str, Any], Any], output: JsonObject | None = None,
        idempotency_key: str | None = None, retry_for: float | None = None, attempt_timeout: float | None = None,
        **members: Any,
    ) -> t.Passed: ...

    @overload
    async def pass_(
        self, task: str, *, idempotency_key: str | None = None, retry_for: float | None = None,
        attempt_timeout: float | None = None, **members: Unpack[t.PassMembers],
    ) -> t.Passed: ...

    async def pass_(
        self, task: str, *, idempotency_key: str | None = None, retry_for: float | None = None,
        attempt_timeout: float | None = None, **members: Any,
    ) -> t.Passed:
        """Passes a task. The members are the API's: ``to``, ``output``, ``context``, ``max_attempts`` and so on."""
        return await self._run(lambda: self._client.pass_(
            task, idempotency_key=idempotency_key, retry_for=retry_for, attempt_timeout=attempt_timeout,
            **members
        ))

    async def catch(self, id: str, *, wait: float | None = None, **options: Unpack[CallOptions]) -> t.Handoff:
        """Catches a handoff by its id. ``wait`` waits for an approval, for what it comes after, and for a delay."""
        key = options["idempotency_key"] = key_of(options)
        return await self._run(
            lambda: self._client.catch(id, wait=wait, **options),
            lambda found: _undo.undo_catch(self._client, id, key) if found is None
            else _undo.give_back(self._client, [found]),
        )

    async def catch_next(
        self, inbox: str | None = None, *, inboxes: Sequence[str] | None = None, max: int | None = None,
        wait: float | None = None, **options: Unpack[CallOptions],
    ) -> Answers[t.Handoff]:
        """Catches the next handoffs from an inbox, or from the first of ``inboxes`` that has something."""
        key = options["idempotency_key"] = key_of(options)
        what: dict[str, Any] = {"inbox": inbox, "inboxes": inboxes, "max": max}
        return await self._run(
            lambda: self._client.catch_next(**what, wait=wait, **options),
            lambda found: _undo.undo_catch_next(self._client, what, key) if found is None
            else _undo.give_back(self._client, found),
        )

    async def done(
        self, id: str, output: JsonObject | None = None, *, files: Sequence[t.FileOrPath] | None = None,
        **options: Unpack[CallOptions],
    ) -> t.Done:
        """Reports that the work is done; its passer reads ``output`` as ``result``."""
        return await self._run(lambda: self._client.done(id, output, files=files, **options))

    async def fail(
        self, id: str, message: str | BaseException, *, code: str | None = None, data: JsonObject | None = None,
        retry: bool | None = None, checkpoint: JsonObject | None = None, **options: Unpack[CallOptions],
    ) -> t.Failed:
        """Reports that the work failed. With ``retry=False`` there is no further attempt."""
        return await self._run(lambda: self._client.fail(
            id, message, code=code, data=data, retry=retry, checkpoint=checkpoint, **options
        ))

    async def decline(
        self, id: str, reason: str, *, checkpoint: JsonObject | None = None, **options: Unpack[CallOptions]
    ) -> t.Declined:
        """Gives a caught handoff back undone."""
        return await self._run(lambda: self._client.decline(id, reason, checkpoint=checkpoint, **options))

    async def heartbeat(
        self, id: str, *, message: str | None = None, percent: float | None = None, extend_by: int | None = None,
        checkpoint: JsonObject | None = None, **options: Unpack[CallOptions],
    ) -> t.Heartbeat:
        """Reports that the work goes on, how far it is, and with ``extend_by`` how many seconds more it needs."""
        return await self._run(lambda: self._client.heartbeat(
            id, message=message, percent=percent, extend_by=extend_by, checkpoint=checkpoint, **options
        ))

    async def ask(
        self, id: str, question: str, *, of: t.Asker | None = None, details: JsonObject | None = None,
        schema: JsonObject | None = None, expires_in: int | None = None, wait: float | None = None,
        **options: Unpack[CallOptions],
    ) -> t.Question:
        """Asks a person, or with ``of="passer"`` the passer, about a handoff that this agent caught."""
        return await self._run(lambda: self._client.ask(
            id, question, of=of, details=details, schema=schema, expires_in=expires_in, wait=wait, **options
        ))

    async def asked(self, id: str, *, wait: float | None = None, **options: Unpack[CallOptions]) -> t.Question:
        """Reads a handoff's latest question and its answer; with ``wait`` when it isn't open any more."""
        return await self._run(lambda: self._client.asked(id, wait=wait, **options))

    async def answer(
        self, id: str, ask_id: str, answer: JsonObject, *, note: str | None = None, **options: Unpack[CallOptions]
    ) -> t.Answered:
        """Answers a question: a person's with an approver's key, the passer's with the passer's own."""
        return await self._run(lambda: self._client.answer(id, ask_id, answer, note=note, **options))

    async def asks(
        self, *, of: t.Asker | None = None, inbox: str | None = None, labels: Mapping[str, str] | None = None,
        cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions],
    ) -> t.AskList:
        """A page of the open questions, the oldest first."""
        return await self._run(lambda: self._client.asks(
            of=of, inbox=inbox, labels=labels, cursor=cursor, limit=limit, **options
        ))

    async def cancel(
        self, id: str, *, reason: str | None = None, force: bool | None = None, **options: Unpack[CallOptions]
    ) -> t.Cancelled:
        """Takes back what was passed. Its catcher is asked to stop; with ``force`` it loses the handoff at once."""
        return await self._run(lambda: self._client.cancel(id, reason=reason, force=force, **options))

    async def reissue(self, id: str, **options: Unpack[CallOptions]) -> t.Passed:
        """Makes another attempt at what was passed."""
        return await self._run(lambda: self._client.reissue(id, **options))

    async def status(
        self, id: str, *, wait: float | None = None, until: t.Until | None = None, explain: bool = False,
        **options: Unpack[CallOptions],
    ) -> t.Status:
        """Reads a handoff's status. With ``wait`` it waits until it is caught, or by default until it has ended."""
        return await self._run(lambda: self._client.status(id, wait=wait, until=until, explain=explain, **options))

    async def get(self, id: str, **options: Unpack[CallOptions]) -> t.Everything:
        """Reads all of a handoff: what was passed, what came of it, and its attempts (with a reader's key)."""
        return await self._run(lambda: self._client.get(id, **options))

    async def wait(
        self, ids: Sequence[str], *, until: t.HowMany | None = None, results: bool | None = None,
        wait: float | None = None, **options: Unpack[CallOptions],
    ) -> t.Settled:
        """Reads what has become of up to 100 handoffs, each at its last attempt."""
        return await self._run(lambda: self._client.wait(ids, until=until, results=results, wait=wait, **options))

    async def whoami(self, **options: Unpack[CallOptions]) -> t.Whoami:
        """Who this client is, by its key or its token."""
        return await self._run(lambda: self._client.whoami(**options))

    async def inbox(self, name: str, **options: Unpack[CallOptions]) -> t.Inbox:
        """Counts what is in an inbox."""
        return await self._run(lambda: self._client.inbox(name, **options))

    async def workers(self, inbox: str, **options: Unpack[CallOptions]) -> t.Workers:
        """Who works on an inbox: has something of it caught, waits for some, or asked for some within a minute."""
        return await self._run(lambda: self._client.workers(inbox, **options))

    async def groups(
        self, inbox: str, *, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> t.GroupList:
        """A page of an inbox's groups that have something pending or caught: first what has none, then by name."""
        return await self._run(lambda: self._client.groups(inbox, cursor=cursor, limit=limit, **options))

    async def inboxes(
        self, *, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> t.InboxList:
        """A page of the tenant's inboxes, by name."""
        return await self._run(lambda: self._client.inboxes(cursor=cursor, limit=limit, **options))

    async def set_inbox(
        self, name: str, *, paused: bool | None = None, max_caught: int | None | _Unset = UNSET,
        max_pending: int | None | _Unset = UNSET, max_caught_per_group: int | None | _Unset = UNSET,
        **options: Unpack[CallOptions],
    ) -> t.Inbox:
        """Pauses, resumes or limits an inbox (with an operator's key). None removes a limit."""
        return await self._run(lambda: self._client.set_inbox(
            name, paused=paused, max_caught=max_caught, max_pending=max_pending,
            max_caught_per_group=max_caught_per_group, **options
        ))

    async def list(
        self, *, limit: int | None = None, cursor: str | None = None, **wanted: Unpack[t.ListWanted]
    ) -> t.HandoffList:
        """A page of the tenant's handoffs: what is live, what ``failed`` or what has ``ended``, as ``state`` says."""
        return await self._run(lambda: self._client.list(limit=limit, cursor=cursor, **wanted))

    async def list_all(self, *, limit: int = 100, **wanted: Unpack[t.ListWanted]) -> AsyncIterator[t.ListedHandoff]:
        """All that ``list`` has, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list(limit=limit, cursor=cursor, **wanted)
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]
            if cursor is None:
                return

    async def runs(
        self, *, label: str | None = None, cursor: str | None = None, limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> t.RunList:
        """The runs of a label: its values, with what became of what was passed with each."""
        return await self._run(lambda: self._client.runs(label=label, cursor=cursor, limit=limit, **options))

    async def redrive(self, *, limit: int | None = None, **wanted: Unpack[t.FailedWanted]) -> t.Redriven:
        """Reissues what failed, the earliest end first, with an operator's key. Call it again if there is ``more``."""
        return await self._run(lambda: self._client.redrive(limit=limit, **wanted))

    async def purge(
        self, inbox: str | None = None, *, reason: str | None = None, labels: Mapping[str, str] | None = None,
        caught: Literal["ask", "force"] | None = None, limit: int | None = None, **options: Unpack[CallOptions],
    ) -> t.Purged:
        """Cancels what is pending in an inbox, or of the run that ``labels`` name (with an operator's key)."""
        return await self._run(
            lambda: self._client.purge(inbox, reason=reason, labels=labels, caught=caught, limit=limit, **options)
        )

    async def batch(self, operations: Sequence[Mapping[str, Any]], **options: Unpack[CallOptions]) -> t.BatchResults:
        """Up to 100 operations in one request. What is refused is a result like any other."""
        key = options["idempotency_key"] = key_of(options, 125)
        return await self._run(
            lambda: self._client.batch(operations, **options),
            lambda found: _undo.undo_batch(self._client, operations, key),
        )


class AsyncApprovals:
    """People's decisions. These calls need an approver's key."""

    def __init__(self, operations: AsyncOperations) -> None:
        self._operations = operations

    async def list(
        self, *, cursor: str | None = None, limit: int | None = None, inbox: str | None = None,
        labels: Mapping[str, str] | None = None, **options: Unpack[CallOptions],
    ) -> t.ApprovalList:
        """Lists the handoffs that wait for a decision, the oldest first."""
        return await self._operations._run(lambda: self._operations._client.approvals.list(
            cursor=cursor, limit=limit, inbox=inbox, labels=labels, **options
        ))

    async def decisions(
        self, *, by: str | None = None, inbox: str | None = None,
        state: Literal["approved", "rejected", "answered"] | None = None, since: str | None = None,
        until: str | None = None, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions],
    ) -> t.DecisionList:
        """What people decided, and which questions they answered, the latest first."""
        return await self._operations._run(lambda: self._operations._client.approvals.decisions(
            by=by, inbox=inbox, state=state, since=since, until=until, cursor=cursor, limit=limit, **options
        ))

    async def get(self, id: str, **options: Unpack[CallOptions]) -> t.ApprovalDetails:
        """Reads the whole of one handoff. Reading it changes nothing."""
        return await self._operations._run(
            lambda: self._operations._client.approvals.get(id, **options)
        )

    async def approve(
        self, id: str, *, note: str | None = None, digest: str | None = None, **options: Unpack[CallOptions]
    ) -> t.Decided:
        """Approves. If the content isn't that of ``digest`` any more, it is refused with ``content_changed``."""
        return await self._operations._run(
            lambda: self._operations._client.approvals.approve(id, note=note, digest=digest, **options)
        )

    async def reject(
        self, id: str, note: str, *, digest: str | None = None, **options: Unpack[CallOptions]
    ) -> t.Decided:
        """Rejects, and says why."""
        return await self._operations._run(
            lambda: self._operations._client.approvals.reject(id, note, digest=digest, **options)
        )
