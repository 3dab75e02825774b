"""A caught handoff, for as long as it is this worker's."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from ._files import with_uploads
from ._scope import Scope, now
from .errors import HandoffError

if TYPE_CHECKING:
    from . import types as t
    from ._operations import JsonObject, Operations

#: How often, in seconds, a handoff without heartbeats is asked after: its passer may take it back, and its work's time
#: may be over.
_CHECK = 10.0
#: For how long each call that reports asks again, in seconds: a worker that ends makes one, and a result is worth more
#: than its haste.
REPORTED_FOR = 30.0


class Cancelled(threading.Event):
    """Set when the handoff isn't this worker's any more; true then, so that ``while not context.cancelled`` will do."""

    def __bool__(self) -> bool:
        return self.is_set()


class Lease:
    """Sends the heartbeats, and knows when the handoff is lost.

    That is when the service says so, or when no heartbeat got through in time by the local clock.
    """

    def __init__(self, client: Operations, handoff: Mapping[str, Any], sent_at: float, worker: str | None = None) -> None:
        """``sent_at`` is when the catch was sent: the handoff can have been caught at any time since."""
        seconds: float | None = handoff.get("heartbeat_within")
        self._client = client
        self._id: str = handoff["handoff_id"]
        self._worker = worker
        self._within = math.inf if seconds is None else float(seconds)
        #: The time between two heartbeats, and after one that failed.
        self._regular = _CHECK if seconds is None else seconds / 3
        self._soon = _CHECK if seconds is None else min(seconds / 12, 1)
        self._pause = self._regular
        self._work_expires = _time_of(handoff.get("work_expires_at"))
        # Where the catch took long, a heartbeat at once shows how old it is. Without heartbeats that doesn't matter.
        self._tried = now() if seconds is None else sent_at
        #: When the request was sent that gave or prolonged the lease. Its answer may have been on its way for long.
        self._renewed = sent_at if now() - sent_at < self._regular else now()
        #: The work's time by the wall clock when the last heartbeat was tried: it only says when to ask.
        self._tried_wall = time.time()
        self._asking = 0
        self._lock = threading.Lock()
        self.cancelled = Cancelled()
        self.reason: HandoffError | None = None
        #: What runs for it ends with it.
        self.scope = Scope()
        #: What goes with the result.
        self.files: list[Mapping[str, Any]] = []
        #: How often to look, in seconds.
        self.step = min(1.0, self._regular / 4)

    def is_lost(self) -> bool:
        """Checked by the clock now: threads may be late."""
        if self._asking == 0 and now() - self._renewed >= self._within:
            self.end(HandoffError("expired", detail="No heartbeat got through in time: the handoff is lost."))
        return self.reason is not None

    def end(self, reason: HandoffError) -> None:
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
        self.cancelled.set()
        self.scope.cancel()

    def look(self, stop: Scope) -> None:
        """Sends a heartbeat if one is due, once; ``stop`` ends that."""
        if self.is_lost() or now() - self._tried < self._pause_now():
            return
        try:
            with stop.active():
                self.heartbeat(retry_for=0, attempt_timeout=min(self._regular, _CHECK))
        except HandoffError as error:
            self._pause = min(self._regular, max(self._soon, error.retry_after or 0))

    def heartbeat(self, **options: Any) -> t.Heartbeat:
        self._check()
        sent = self._tried = now()
        self._tried_wall = time.time()
        try:
            answer = self._client.heartbeat(self._id, **options, worker=self._worker)
        except HandoffError as error:
            if _is_end(error):
                self.end(error)
            raise self._reason(error) from None
        self._renewed = max(self._renewed, sent)
        self._pause = self._regular
        self._work_expires = _time_of(answer["work_expires_at"])
        return answer

    def ask(self, question: str, **options: Any) -> dict[str, Any]:
        """Asks, and waits for the answer."""
        self._check()
        patient: Any = {"retry_for": math.inf}
        mine = {**patient, "worker": self._worker}
        try:
            id = self._client.ask(self._id, question, **{**options, **mine, "wait": None})["ask_id"]
            with self._lock:
                self._asking += 1
            try:
                found = self._client.asked(self._id, wait=math.inf, **mine)
            finally:
                self._renewed = now()
                with self._lock:
                    self._asking -= 1
            # Only the service knows since when the deadlines count again, and whether one is over by now. If the
            # question is withdrawn, the work has ended, and this ends the lease.
            try:
                self.heartbeat(**patient)
            except HandoffError:
                if found["state"] != "withdrawn":
                    raise
            return _answer_of(cast(Mapping[str, Any], found), id)
        except HandoffError as error:
            raise self._reason(error) from None

    def attach(self, file: t.FileOrPath) -> None:
        sent = with_uploads(self._client.files, {"files": [file]}, {"retry_for": REPORTED_FOR})
        self.files.extend(sent["files"])

    def run(self, call: Callable[[], Any]) -> Any:
        """A call that ends with the lease."""
        with Scope(None, self.scope).active():
            return call()

    def _check(self) -> None:
        if self.is_lost() and self.reason is not None:
            raise self.reason

    def _reason(self, error: HandoffError) -> HandoffError:
        """The reason why the lease ended says more than ``aborted``."""
        return self.reason if error.code == "aborted" and self.reason is not None else error

    def _pause_now(self) -> float:
        """None when the work's deadline has just passed. That is so by the service's clock."""
        is_past = self._tried_wall < self._work_expires <= time.time()
        return 0 if self._within == math.inf and is_past else self._pause


class Context:
    """What a handler gets besides the handoff."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        #: Set when the handoff is no longer this worker's: it was cancelled by force or has ended, or its time is over.
        #: Nothing is reported after that.
        self.cancelled = lease.cancelled

    def heartbeat(
        self, *, message: str | None = None, percent: float | None = None, extend_by: int | None = None,
        checkpoint: JsonObject | None = None,
    ) -> t.Heartbeat:
        """Reports progress, or that the work needs more time. Regular heartbeats are sent in any case.

        >>> if context.heartbeat(message="Read 3 of 7.")["cancel_requested"]: ...
        """
        sent = {"message": message, "percent": percent, "extend_by": extend_by, "checkpoint": checkpoint}
        return cast("t.Heartbeat", self._lease.run(lambda: self._lease.heartbeat(**sent)))

    def checkpoint(self, value: JsonObject) -> t.Heartbeat:
        """Keeps how far the work has got, in a heartbeat: whoever catches the handoff again finds it there.

        >>> rows = handoff.get("checkpoint", {"rows": 0})["rows"]
        >>> context.checkpoint({"rows": rows + 1})
        """
        return self.heartbeat(checkpoint=value)

    def ask(
        self, question: str, *, of: t.Asker | None = None, details: JsonObject | None = None,
        schema: JsonObject | None = None, expires_in: int | None = None, idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Asks a person, or the passer, waits for as long as it takes, and returns the answer.

        Meanwhile the deadlines are paused. Raises HandoffError with ``expired`` if no answer came in time, and with
        ``withdrawn`` if the work has ended meanwhile.

        >>> context.ask("Which of the two?", schema={"properties": {"name": {"enum": ["a", "b"]}}})["name"]
        """
        what: dict[str, Any] = {"of": of, "details": details, "schema": schema, "expires_in": expires_in}
        what["idempotency_key"] = idempotency_key
        return cast("dict[str, Any]", self._lease.run(lambda: self._lease.ask(question, **what)))

    def attach(self, file: t.FileOrPath) -> None:
        """Uploads a file now, by its path, and sends it with the result. A dict that ``files`` of done take will do too.

        >>> context.attach("rows.csv")
        """
        self._lease.run(lambda: self._lease.attach(file))


def _time_of(text: str | None) -> float:
    return math.inf if text is None else datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _answer_of(found: Mapping[str, Any], asked: str) -> dict[str, Any]:
    if found["ask_id"] != asked:
        raise HandoffError("withdrawn", detail="Another question was asked since.")
    if found["state"] == "expired":
        raise HandoffError("expired", detail="No answer to the question came in time.")
    if found["answer"] is None:
        raise HandoffError("withdrawn", detail="The work on the handoff ended, and its question with it.")
    return cast("dict[str, Any]", found["answer"])


def _is_end(error: HandoffError) -> bool:
    """Whether it says that the handoff isn't ours any more.

    A refusal of what a heartbeat carried doesn't, nor what a gateway says in the service's place.
    """
    return error.code != "connection_failed" and (error.code == "not_the_catcher" or error.status in (404, 409, 410))
