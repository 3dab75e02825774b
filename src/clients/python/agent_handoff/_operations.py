"""The API's operations. Answers have the API's members; a refusal raises HandoffError."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from . import _undo
from ._call import CallOptions, Request, Settings, call, key_of, labels_text, path_of, query_of
from ._files import Files, with_uploads
from ._json import Answer, Answers, RawJson, counted, encode, member_text, present, with_texts
from ._key import KeyFile, KeySource, authorization_of
from ._schedules import Schedules
from ._scope import now
from ._transport import Transport, address_of
from ._wait import asked
from .inboxes import I, InboxDefinition, Written

if TYPE_CHECKING:
    import builtins
    import ssl

    from typing_extensions import Unpack

    from . import types as t

#: A JSON object, or its text.
JsonObject = Mapping[str, Any] | RawJson

#: The operations that need a key so as not to be carried out twice; the others are safe to repeat.
_KEYED = frozenset(("pass", "catch", "done", "fail", "decline"))


class _Unset:
    """Says that a setting stays, where None takes it away."""


UNSET = _Unset()


class Operations:
    """What clients and their approvals have in common."""

    def __init__(
        self, base_url: str | None, key: KeySource | None, key_file: KeyFile | None, retry_for: float,
        attempt_timeout: float, ssl_context: ssl.SSLContext | None,
    ) -> None:
        # An empty one is a mistake, and no wish for another address: a key would go there.
        url = (os.environ.get("HANDOFF_URL") or "http://127.0.0.1:8080") if base_url is None else base_url
        self._settings = Settings(
            Transport(address_of(url), ssl_context), authorization_of(key, key_file), retry_for, attempt_timeout, now()
        )
        self.approvals = Approvals(self._settings)
        self.schedules = Schedules(self._settings)
        self.files = Files(self._settings)

    def _get(self, path: str, options: CallOptions, **more: Any) -> Any:
        return call(self._settings, Request("GET", path, **more), options)

    def _post(self, path: str, body: object, options: CallOptions, **more: Any) -> Any:
        return call(self._settings, Request("POST", path, encode(body), **more), options)

    @overload
    def pass_(
        self, task: str, *, to: InboxDefinition[I, Any], output: Written[I], idempotency_key: str | None = None,
        retry_for: float | None = None, attempt_timeout: float | None = None, **members: Any,
    ) -> t.Passed: ...

    @overload
    def pass_(
        self, task: str, *, to: InboxDefinition[dict[str, Any], Any], output: JsonObject | None = None,
        idempotency_key: str | None = None, retry_for: float | None = None, attempt_timeout: float | None = None,
        **members: Any,
    ) -> t.Passed: ...

    @overload
    def pass_(
        self, task: str, *, idempotency_key: str | None = None, retry_for: float | None = None,
        attempt_timeout: float | None = None, **members: Unpack[t.PassMembers],
    ) -> t.Passed: ...

    def pass_(
        self, task: str, *, idempotency_key: str | None = None, retry_for: float | None = None,
        attempt_timeout: float | None = None, **members: Any,
    ) -> t.Passed:
        """Passes a task. The members are the API's: ``to``, ``output``, ``context``, ``max_attempts`` and so on.

        With an inbox of ``define_inbox`` as ``to``, its output is checked first, and the service checks the result.
        ``files`` may be paths: the client uploads these first.

        >>> client.pass_("Count the rows.", to="counter", context={"file": "a.csv"})["handoff_id"]
        """
        options: CallOptions = {
            "idempotency_key": idempotency_key, "retry_for": retry_for, "attempt_timeout": attempt_timeout
        }
        to = members.get("to")
        sent = to._members(members) if isinstance(to, InboxDefinition) else members
        key = key_of(options)
        body = with_uploads(self.files, {"task": task, **present(**sent)}, options)
        return cast("t.Passed", self._post("/api/pass", body, options, key=key))

    def catch(self, id: str, *, wait: float | None = None, **options: Unpack[CallOptions]) -> t.Handoff:
        """Catches a handoff by its id. ``wait`` waits for an approval, for what it comes after, and for a delay."""
        path = f"{path_of('catch', id)}{query_of(wait=_whole(wait))}"
        key = key_of(options)
        with _undo.undone(lambda: _undo.undo_catch(self, id, key)):
            return cast("t.Handoff", counted(self._get(path, options, key=key, wait=wait)))

    def catch_next(
        self, inbox: str | None = None, *, inboxes: Sequence[str] | None = None, max: int | None = None,
        wait: float | None = None, **options: Unpack[CallOptions],
    ) -> Answers[t.Handoff]:
        """Catches the next handoffs from an inbox, by default the agent's own: up to ``max``, 1 if left out.

        With ``inboxes`` instead, up to ten names, those of the first that has something. The list is empty if nothing
        came within ``wait`` seconds.

        >>> for handoff in client.catch_next("counter", wait=50):
        ...     client.done(handoff["handoff_id"], {"rows": count(handoff["context"]["file"])})
        """
        body = present(inbox=inbox, inboxes=None if inboxes is None else list(inboxes), max=max)
        key = key_of(options)
        with _undo.undone(lambda: _undo.undo_catch_next(self, body, key)):
            answer = self._post(f"/api/catch{query_of(wait=_whole(wait))}", body, options, key=key, wait=wait)
        items = [counted(one) for one in with_texts(answer, "items")]
        return Answers(cast("builtins.list[t.Handoff]", items), answer.text)

    def done(
        self, id: str, output: JsonObject | None = None, *, files: Sequence[t.FileOrPath] | None = None,
        **options: Unpack[CallOptions],
    ) -> t.Done:
        """Reports that the work is done; its passer reads ``output`` as ``result``.

        ``files`` may be paths: the client uploads these first.
        """
        key = key_of(options)
        body = with_uploads(self.files, present(output=output, files=files), options)
        return cast("t.Done", self._post(path_of("done", id), body, options, key=key))

    def fail(
        self, id: str, message: str | BaseException, *, code: str | None = None, data: JsonObject | None = None,
        retry: bool | None = None, checkpoint: JsonObject | None = None, **options: Unpack[CallOptions],
    ) -> t.Failed:
        """Reports that the work failed. With ``retry=False`` there is no further attempt."""
        known = failure_of(message) if isinstance(message, BaseException) else {"message": message}
        body = present(error={**known, **present(code=code, data=data)}, retry=retry, checkpoint=checkpoint)
        return cast("t.Failed", self._post(path_of("fail", id), body, options, key=key_of(options)))

    def decline(
        self, id: str, reason: str, *, checkpoint: JsonObject | None = None, **options: Unpack[CallOptions]
    ) -> t.Declined:
        """Gives a caught handoff back undone."""
        body = {"reason": reason, **present(checkpoint=checkpoint)}
        return cast("t.Declined", self._post(path_of("decline", id), body, options, key=key_of(options)))

    def heartbeat(
        self, id: str, *, message: str | None = None, percent: float | None = None, extend_by: int | None = None,
        checkpoint: JsonObject | None = None, **options: Unpack[CallOptions],
    ) -> t.Heartbeat:
        """Reports that the work goes on, how far it is, and with ``extend_by`` how many seconds more it needs.

        The service keeps the checkpoint for whoever goes on with the work.
        """
        progress = present(message=message, percent=percent) or None
        body = present(progress=progress, extend_by=extend_by, checkpoint=checkpoint)
        return cast("t.Heartbeat", self._post(path_of("heartbeat", id), body, options))

    def ask(
        self, id: str, question: str, *, of: t.Asker | None = None, details: JsonObject | None = None,
        schema: JsonObject | None = None, expires_in: int | None = None, wait: float | None = None,
        **options: Unpack[CallOptions],
    ) -> t.Question:
        """Asks a person, or with ``of="passer"`` the passer, about a handoff that this agent caught.

        With ``wait``, for as many seconds as you like, it returns the question as it stands when it isn't open any
        more, or after that time.

        >>> schema = {"properties": {"name": {"enum": ["a", "b"]}}}
        >>> question = client.ask(id, "Which of the two?", schema=schema, wait=600)
        >>> question["answer"] if question["state"] == "answered" else None
        """
        body = {"question": question, **present(of=of, details=details, schema=schema, expires_in=expires_in)}
        sent = self._post(path_of("ask", id), body, options, key=key_of(options))
        return cast("t.Question", sent if wait is None else asked(self._settings, id, wait, options))

    def asked(self, id: str, *, wait: float | None = None, **options: Unpack[CallOptions]) -> t.Question:
        """Reads a handoff's latest question and its answer; with ``wait`` when it isn't open any more."""
        return cast("t.Question", asked(self._settings, id, wait, options))

    def answer(
        self, id: str, ask_id: str, answer: JsonObject, *, note: str | None = None, **options: Unpack[CallOptions]
    ) -> t.Answered:
        """Answers a question: a person's with an approver's key, the passer's with the passer's own."""
        body = {"ask_id": ask_id, "answer": answer, **present(note=note)}
        return cast("t.Answered", self._post(path_of("answer", id), body, options))

    def asks(
        self, *, of: t.Asker | None = None, inbox: str | None = None, labels: Mapping[str, str] | None = None,
        cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions],
    ) -> t.AskList:
        """A page of the open questions, the oldest first."""
        query = query_of(of=of, inbox=inbox, labels=labels_text(labels), cursor=cursor, limit=limit)
        return cast("t.AskList", self._list(f"/api/asks{query}", options))

    def cancel(
        self, id: str, *, reason: str | None = None, force: bool | None = None, **options: Unpack[CallOptions]
    ) -> t.Cancelled:
        """Takes back what was passed. Its catcher is asked to stop; with ``force`` it loses the handoff at once."""
        return cast("t.Cancelled", self._post(path_of("cancel", id), present(reason=reason, force=force), options))

    def reissue(self, id: str, **options: Unpack[CallOptions]) -> t.Passed:
        """Makes another attempt at what was passed."""
        return cast("t.Passed", self._post(path_of("reissue", id), {}, options))

    def status(
        self, id: str, *, wait: float | None = None, until: t.Until | None = None, explain: bool = False,
        **options: Unpack[CallOptions],
    ) -> t.Status:
        """Reads a handoff's status. With ``wait`` it waits until it is caught, or by default until it has ended.

        With ``explain`` it has what a pending one waits for.
        """
        query = query_of(wait=_whole(wait), until=until, explain="true" if explain else None)
        return cast("t.Status", counted(self._get(f"{path_of('status', id)}{query}", options, wait=wait)))

    def get(self, id: str, **options: Unpack[CallOptions]) -> t.Everything:
        """Reads all of a handoff: what was passed, what came of it, and its attempts (with a reader's key)."""
        return cast("t.Everything", self._get(path_of("handoffs", id), options))

    def wait(
        self, ids: Sequence[str], *, until: t.HowMany | None = None, results: bool | None = None,
        wait: float | None = None, **options: Unpack[CallOptions],
    ) -> t.Settled:
        """Reads what has become of up to 100 handoffs, each at its last attempt.

        With ``wait``, at most 60 seconds, it waits until all have ended for good, or ``any`` has. ``wait_for_all``
        waits for any number of them, for as long as it takes.
        """
        body = {"ids": list_of(ids), **present(until=until, results=results)}
        answer = self._post(f"/api/wait{query_of(wait=_whole(wait))}", body, options, wait=wait)
        for one in with_texts(answer, "items"):
            counted(one)
        return cast("t.Settled", answer)

    def inbox(self, name: str, **options: Unpack[CallOptions]) -> t.Inbox:
        """Counts what is in an inbox."""
        return cast("t.Inbox", self._get(path_of("inboxes", name), options))

    def workers(self, inbox: str, **options: Unpack[CallOptions]) -> t.Workers:
        """Who works on an inbox: has something of it caught, waits for some, or asked for some within a minute."""
        return cast("t.Workers", self._get(f"{path_of('inboxes', inbox)}/workers", options))

    def groups(
        self, inbox: str, *, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> t.GroupList:
        """A page of an inbox's groups that have something pending or caught: first what has none, then by name."""
        query = query_of(cursor=cursor, limit=limit)
        return cast("t.GroupList", self._list(f"{path_of('inboxes', inbox)}/groups{query}", options))

    def whoami(self, **options: Unpack[CallOptions]) -> t.Whoami:
        """Who this client is, by its key or its token."""
        return cast("t.Whoami", self._get("/api/whoami", options))

    def inboxes(
        self, *, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> t.InboxList:
        """A page of the tenant's inboxes, by name."""
        return cast("t.InboxList", self._list(f"/api/inboxes{query_of(cursor=cursor, limit=limit)}", options))

    def set_inbox(
        self, name: str, *, paused: bool | None = None, max_caught: int | None | _Unset = UNSET,
        max_pending: int | None | _Unset = UNSET, max_caught_per_group: int | None | _Unset = UNSET,
        **options: Unpack[CallOptions],
    ) -> t.Inbox:
        """Pauses, resumes or limits an inbox (with an operator's key).

        What is left out stays; None removes a limit.
        """
        limits = {
            "max_caught": max_caught, "max_pending": max_pending, "max_caught_per_group": max_caught_per_group,
        }
        body = present(paused=paused) | {name: value for name, value in limits.items() if value is not UNSET}
        request = Request("PUT", path_of("inboxes", name), encode(body))
        return cast("t.Inbox", call(self._settings, request, options))

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, **wanted: Unpack[t.ListWanted]
    ) -> t.HandoffList:
        """A page of the tenant's handoffs: what is live, what ``failed`` or what has ``ended``, as ``state`` says.

        It may have fewer items than ``limit``, or none, even if there is a ``next_cursor``.
        """
        filters, options = _wanted(wanted)
        labels, status = filters.pop("labels", None), filters.pop("status", None)
        query = query_of(
            state=filters.pop("state", None), attempts=filters.pop("attempts", None), inbox=filters.pop("inbox", None),
            passed_by=filters.pop("passed_by", None), caught_by=filters.pop("caught_by", None),
            labels=labels_text(labels), status=None if status is None else ",".join(status), **filters, cursor=cursor,
            limit=limit,
        )
        answer = self._list(f"/api/handoffs{query}", options)
        for one in answer["items"]:
            counted(one)
        return cast("t.HandoffList", answer)

    def list_all(self, *, limit: int = 100, **wanted: Unpack[t.ListWanted]) -> Iterator[t.ListedHandoff]:
        """All that ``list`` has, page by page. ``limit`` is how many one page has."""
        cursor: str | None = None
        while True:
            page = self.list(limit=limit, cursor=cursor, **wanted)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def runs(
        self, *, label: str | None = None, cursor: str | None = None, limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> t.RunList:
        """The runs of a label: its values, with what became of what was passed with each."""
        return cast("t.RunList", self._list(f"/api/runs{query_of(label=label, cursor=cursor, limit=limit)}", options))

    def redrive(self, *, limit: int | None = None, **wanted: Unpack[t.FailedWanted]) -> t.Redriven:
        """Reissues what failed, the earliest end first, with an operator's key. Call it again if there is ``more``."""
        filters, options = _wanted(wanted)
        return cast("t.Redriven", self._post("/api/redrive", present(limit=limit, **filters), options))

    def purge(
        self, inbox: str | None = None, *, reason: str | None = None, labels: Mapping[str, str] | None = None,
        caught: Literal["ask", "force"] | None = None, limit: int | None = None, **options: Unpack[CallOptions],
    ) -> t.Purged:
        """Cancels what is pending in an inbox, or of the run that ``labels`` name (with an operator's key).

        ``caught`` says what becomes of those that are caught. If there is ``more``, call it again.
        """
        body = present(inbox=inbox, reason=reason, labels=labels, caught=caught, limit=limit)
        return cast("t.Purged", self._post("/api/purge", body, options))

    def batch(self, operations: Sequence[Mapping[str, Any]], **options: Unpack[CallOptions]) -> t.BatchResults:
        """Up to 100 operations in one request. What is refused is a result like any other, and isn't asked again.

        >>> client.batch([{"op": "pass", "body": {"task": "One."}}, {"op": "status", "id": id}])["results"]
        """
        # Of 125 characters at most: each operation's key is this one with -0 to -99 behind it.
        key = key_of(options, 125)

        def named(index: int, one: Mapping[str, Any]) -> dict[str, Any]:
            if one.get("op") not in _KEYED:
                return dict(one)
            own = one.get("idempotency_key") or f"{key}-{index}"
            is_given = one.get("idempotency_key") or options.get("idempotency_key")
            given: CallOptions = {**options, "idempotency_key": own if is_given else None}
            body = with_uploads(self.files, one.get("body") or {}, given)
            return {**one, **({"body": body} if "body" in one else {}), "idempotency_key": own}

        sent = [named(index, one) for index, one in enumerate(operations)]
        with _undo.undone(lambda: _undo.undo_batch(self, operations, key)):
            answer = self._post("/api/batch", {"operations": sent}, options)
        for result in with_texts(answer, "results"):
            result["body"] = Answer(result["body"], member_text(result.text, "body") or "")
        return cast("t.BatchResults", answer)

    def _list(self, path: str, options: CallOptions) -> Answer:
        answer: Answer = self._get(path, options)
        with_texts(answer, "items")
        return answer


class Approvals:
    """People's decisions. These calls need an approver's key."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, inbox: str | None = None,
        labels: Mapping[str, str] | None = None, **options: Unpack[CallOptions],
    ) -> t.ApprovalList:
        """Lists the handoffs that wait for a decision, the oldest first."""
        query = query_of(cursor=cursor, limit=limit, inbox=inbox, labels=labels_text(labels))
        answer = call(self._settings, Request("GET", f"/api/approvals{query}"), options)
        with_texts(answer, "items")
        return cast("t.ApprovalList", answer)

    def decisions(
        self, *, by: str | None = None, inbox: str | None = None,
        state: Literal["approved", "rejected", "answered"] | None = None, since: str | None = None,
        until: str | None = None, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions],
    ) -> t.DecisionList:
        """What people decided, and which questions they answered, the latest first."""
        query = query_of(by=by, inbox=inbox, state=state, since=since, until=until, cursor=cursor, limit=limit)
        answer = call(self._settings, Request("GET", f"/api/decisions{query}"), options)
        with_texts(answer, "items")
        return cast("t.DecisionList", answer)

    def get(self, id: str, **options: Unpack[CallOptions]) -> t.ApprovalDetails:
        """Reads the whole of one handoff. Reading it changes nothing."""
        return cast("t.ApprovalDetails", call(self._settings, Request("GET", path_of("approvals", id)), options))

    def approve(
        self, id: str, *, note: str | None = None, digest: str | None = None, **options: Unpack[CallOptions]
    ) -> t.Decided:
        """Approves. If the content isn't that of ``digest`` any more, it is refused with ``content_changed``."""
        return self._decide(id, "approve", note, digest, options)

    def reject(self, id: str, note: str, *, digest: str | None = None, **options: Unpack[CallOptions]) -> t.Decided:
        """Rejects, and says why."""
        return self._decide(id, "reject", note, digest, options)

    def _decide(self, id: str, verb: str, note: str | None, digest: str | None, options: CallOptions) -> t.Decided:
        # Decisions take no Idempotency-Key. If an answer was lost, the retry is refused because a decision stands. If
        # that has the same verdict and the same note, it counts as this call's own.
        state = "approved" if verb == "approve" else "rejected"

        def again(problem: dict[str, Any]) -> dict[str, Any] | None:
            stands = problem.get("approval")
            if problem.get("code") != "already_decided" or not isinstance(stands, dict):
                return None
            if stands.get("state") != state or stands.get("note") != note:
                return None
            return {"handoff_id": id, "status": problem.get("handoff_status"), "approval": stands}

        request = Request("POST", path_of(verb, id), encode(present(note=note, digest=digest)), again=again)
        return cast("t.Decided", call(self._settings, request, options))


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else math.ceil(seconds)


def list_of(ids: Sequence[str]) -> list[str]:
    if isinstance(ids, str):
        raise TypeError("ids are several: give a list")
    return list(ids)


def _wanted(wanted: Mapping[str, Any]) -> tuple[dict[str, Any], CallOptions]:
    """What is wanted, and the options of the call."""
    options = {name: wanted.get(name) for name in CallOptions.__annotations__}
    return {name: value for name, value in wanted.items() if name not in options}, cast(CallOptions, options)


#: Characters that the service takes as a failure's message, and as its code.
_MAX_MESSAGE, _CODE = 4000, re.compile(r"[A-Za-z0-9._-]{1,64}")


def failure_of(error: BaseException) -> dict[str, Any]:
    """What is reported of something raised; it may also raise when it is looked at."""
    try:
        message, code = str(error) or type(error).__name__, getattr(error, "code", None)
    except Exception:
        return {"message": "The handler failed."}
    # What a program exits with is no code of an error.
    is_code = isinstance(code, str) and _CODE.fullmatch(code) and not isinstance(error, SystemExit)
    known = {"code": code} if is_code else {}
    return {"message": message[:_MAX_MESSAGE], **known}
