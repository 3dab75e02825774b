"""Waiting for as long as it takes, for one handoff, for many, or for an answer."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._call import CallOptions, Request, Settings, call, path_of, query_of
from ._json import Answer, counted, encode, with_texts
from ._scope import MAX_WAIT, Scope, TooLate, current, now, pause
from .errors import HandoffError

if TYPE_CHECKING:
    from . import types as t

_ENDS = frozenset(("done", "failed", "declined", "cancelled", "expired", "rejected"))

#: The longest wait that the service takes, in seconds.
_LONGEST = 60


def not_at_once(sent_at: float) -> None:
    """Pauses after an answer that came early: the service stops, or a gateway doesn't let requests wait."""
    if now() - sent_at < 1:
        pause(0.2 + random.random() * 0.8)


def asked(settings: Settings, id: str, wait: float | None, options: CallOptions) -> Answer:
    """The latest question. A wait that is too long for one request is several."""

    def read(seconds: int | None) -> Answer:
        path = f"{path_of('ask', id)}{query_of(wait=seconds)}"
        return call(settings, Request("GET", path, wait=seconds), options)

    if wait is None or not wait > _LONGEST:
        return read(None if wait is None else math.ceil(wait))
    began = now()
    while True:
        sent_at = now()
        question = read(math.ceil(min(MAX_WAIT, max(0.0, wait - (now() - began)))))
        if question["state"] != "open" or now() - began >= wait:
            return question
        not_at_once(sent_at)


def _status(
    settings: Settings, id: str, options: CallOptions, wait: int | None = None, until: str | None = None
) -> Answer:
    path = f"{path_of('status', id)}{query_of(wait=wait, until=until)}"
    return counted(call(settings, Request("GET", path, wait=wait), options))


def _wait_of(timeout: float | None) -> int:
    return MAX_WAIT if timeout is None else max(0, math.ceil(min(MAX_WAIT, timeout)))


class _Last:
    """The attempt that is waited for, and what was last known of it."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.status: str | None = None


def wait_for(
    settings: Settings, id: str, until: str, timeout: float | None, follow: bool, options: CallOptions
) -> t.Status:
    if until not in ("caught", "done"):
        raise ValueError('until is "caught" or "done"')
    last = _Last(id)
    try:
        with Scope(timeout, current()).active():
            return cast("t.Status", _follow(settings, until, timeout, follow, last, {**options, "retry_for": math.inf}))
    except TooLate:
        outer = current()
        if outer is not None:
            outer.check()
    attempt = id if last.id == id else f"{id} (now {last.id})"
    known = "its status is not known" if last.status is None else f"its last status is {last.status}"
    raise HandoffError(
        "timeout", retryable=True, detail=f"{attempt} is not {until} within {timeout:g} s; {known}.",
        handoff_status=last.status, reissued_as=None if last.id == id else last.id,
    )


def _follow(
    settings: Settings, until: str, timeout: float | None, follow: bool, last: _Last, options: CallOptions
) -> Answer:
    wait = _wait_of(timeout)
    state = until
    # What it is now is to be known where nothing comes of the wait.
    is_known = timeout is None
    while True:
        sent_at = now()
        status = _status(settings, last.id, options, wait if is_known else None, state if is_known else None)
        if follow and status.get("reissued_as") is not None:
            last.id, last.status, is_known, state = status["reissued_as"], None, timeout is None, until
            continue
        last.status = status["status"]
        # None says that the successor hasn't been made yet. A wait for the end also waits for its id.
        is_awaited = follow and "reissued_as" in status
        if not is_awaited and _is_reached(status, until):
            return status
        if is_awaited:
            state = "done"
        if is_known:
            not_at_once(sent_at)
        is_known = True


def _is_reached(status: Mapping[str, Any], until: str) -> bool:
    """A status that this version doesn't know is an end if the answer says when it ended."""
    has_ended = status["status"] in _ENDS or any(status.get(name) is not None for name in ("completed_at", "ended_at"))
    return has_ended or (until == "caught" and status["status"] == "caught")


#: How many ids a request takes.
_IDS_EACH = 100
#: How many requests wait at once. A key may have 20 at a replica, and there are others.
_WAITS_AT_ONCE = 4
#: How long each last look takes at most when the time is over, in seconds.
_LAST_LOOK = 1.0


class _Many:
    """What is known of each, by the id that was asked for, and which have not ended."""

    def __init__(self, settings: Settings, ids: Sequence[str], results: bool | None) -> None:
        self.settings = settings
        self.results = results
        self.found: dict[str, Answer] = {}
        self.open = dict.fromkeys(ids)

    def look(self, ids: list[str], wait: int | None, options: CallOptions) -> bool:
        """Whether all of these have ended."""
        body = {"ids": ids} if self.results is None else {"ids": ids, "results": self.results}
        request = Request("POST", f"/api/wait{query_of(wait=wait)}", encode(body), wait=wait)
        answer = call(self.settings, request, options)
        for id, item in zip(ids, with_texts(answer, "items")):
            self.found[id] = counted(item)
            if answer["complete"] or _has_ended(item):
                self.open.pop(id, None)
        return bool(answer["complete"])

    def until_settled(self, timeout: float | None, options: CallOptions) -> None:
        """Asks again and again, a few requests at a time, each for as many as it takes."""
        ids = list(self.open)
        queue = [ids[at:at + _IDS_EACH] for at in range(0, len(ids), _IDS_EACH)]
        scope = Scope(timeout, current())
        raised: list[BaseException] = []

        def ask() -> None:
            while queue:
                try:
                    some = queue.pop(0)
                except IndexError:
                    return
                sent_at = now()
                if self.look(some, _wait_of(timeout), options):
                    continue
                not_at_once(sent_at)
                # Behind the others: a caller that waits for the first ones alone may find the last ones removed.
                left = [id for id in some if id in self.open]
                if left:
                    queue.append(left)

        def run() -> None:
            try:
                with Scope(None, scope).active():
                    ask()
            except BaseException as error:
                raised.append(error)
                scope.cancel()

        with scope.active():
            others = [threading.Thread(target=run, daemon=True) for _ in range(min(_WAITS_AT_ONCE, len(queue)) - 1)]
            for other in others:
                other.start()
            try:
                ask()
            except BaseException as error:
                raised.append(error)
                # After an error nothing else of it goes on.
                scope.cancel()
            for other in others:
                other.join()
        if raised:
            raise raised[0]


def _has_ended(item: Mapping[str, Any]) -> bool:
    """Whether it has ended, and no further attempt will be made."""
    is_awaited = "reissued_as" in item and item["reissued_as"] is None
    return item["status"] == "unknown" or (not is_awaited and _is_reached(item, "done"))


def wait_for_all(
    settings: Settings, ids: Iterable[str], timeout: float | None, results: bool | None, options: CallOptions
) -> list[t.Standing]:
    if isinstance(ids, str):
        raise TypeError("ids are several: give a list")
    wanted = list(ids)
    many = _Many(settings, wanted, results)
    try:
        many.until_settled(timeout, {**options, "retry_for": math.inf})
    except TooLate:
        outer = current()
        if outer is not None:
            outer.check()
        _look_again(many, options)
    if many.open:
        raise _all_too_late(many, timeout or 0)
    if results is not False:
        _read_omitted(many, options)
    return cast("list[t.Standing]", [many.found[id] for id in wanted])


def _look_again(many: _Many, options: CallOptions) -> None:
    """The time is over, and some were asked for a while ago: what has ended since isn't open."""
    left = list(many.open)
    given = options.get("attempt_timeout")
    timeout = _LAST_LOOK if given is None else min(given, _LAST_LOOK)
    try:
        for at in range(0, len(left), _IDS_EACH):
            many.look(left[at:at + _IDS_EACH], None, {"attempt_timeout": timeout, "retry_for": 0})
    except HandoffError as error:
        # No answer comes: it is as it was in the last one.
        if error.code == "aborted":
            raise


def _read_omitted(many: _Many, options: CallOptions) -> None:
    """Reads those results that would have made an answer too large."""
    for id, item in many.found.items():
        if item["status"] == "unknown" or item.get("result_omitted") is not True:
            continue
        try:
            status = _status(many.settings, item["handoff_id"], options)
        except HandoffError as error:
            # It is gone by now, and that it ended stays true.
            if error.code != "not_found":
                raise
            continue
        if "asked_as" in item:
            more = encode({"asked_as": item["asked_as"]}).decode()
            status = Answer({**status, "asked_as": item["asked_as"]}, f"{status.text.rstrip()[:-1]},{more[1:]}")
        many.found[id] = status


#: How many open ones the error's text names; its ``open`` has all.
_MAX_NAMED = 100


def _all_too_late(many: _Many, timeout: float) -> HandoffError:
    ids = list(many.open)

    def named(id: str) -> str:
        item = many.found.get(id)
        if item is None:
            return f"{id} (its status is not known)"
        now_as = "" if item["handoff_id"] == id else f"now {item['handoff_id']}, "
        return f"{id} ({now_as}{item['status']})"

    more = f", and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
    detail = f"Not ended within {timeout:g} s: {', '.join(named(id) for id in ids[:_MAX_NAMED])}{more}."
    return HandoffError("timeout", detail=detail, retryable=True, open=ids)
