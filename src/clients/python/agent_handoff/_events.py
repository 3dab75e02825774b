"""What happens to a tenant's handoffs, as it happens."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from ._call import CallOptions, Request, Settings, call, labels_text, query_of
from ._insist import insist
from ._json import Answer, with_texts
from ._scope import MAX_WAIT, Scope, current, now, pause, watch
from .errors import HandoffError

if TYPE_CHECKING:
    from . import types as t

_OLDEST = "0-0"
#: Events in one answer.
_PAGE = 100
#: Seconds from one answer to the next request: what happens meanwhile comes in one answer.
_GAP = 0.1


class Reader:
    """Reads page by page. A page that was asked for again is the same from the same place on: each event comes once."""

    def __init__(
        self, settings: Settings, after: str | None, types: Sequence[str] | None, handoff_id: str | None,
        inbox: str | None, labels: Mapping[str, str] | None, follow: bool,
        on_error: Callable[[HandoffError], object] | None, options: CallOptions,
    ) -> None:
        if isinstance(types, str):
            raise TypeError("types are several: give a list")
        self._settings = settings
        self._after = after if after is not None or follow else _OLDEST
        self._filter = {
            "types": None if types is None else ",".join(types), "handoff_id": handoff_id, "inbox": inbox,
            "labels": labels_text(labels),
        }
        self._follow = follow
        self._on_error = on_error or (lambda error: None)
        self._options = options
        self._rest = 0.0
        self._answered = now()
        self.has_ended = False

    def page(self) -> list[Answer]:
        """The next events; may be none."""
        rest = self._rest - (now() - self._answered)
        if rest > 0:
            pause(rest)
        after = self._after
        # Without a place it doesn't wait: if that answer were lost, so would be all that came meanwhile.
        wait = MAX_WAIT if self._follow and after is not None else None
        request = Request("GET", f"/api/events{query_of(after=after, **self._filter, wait=wait)}", wait=wait)

        def read() -> Answer:
            return call(self._settings, request, self._options)

        sent_at = now()
        page = insist(read, on_error=self._on_error) if self._follow else read()
        self._answered = now()
        events = with_texts(page, "items")
        self._after = page["next"]
        if not self._follow:
            self.has_ended = not events and page["next"] == after
        elif len(events) < _PAGE:
            # An empty answer before its time: the service stops, or something in front of it doesn't let requests wait.
            is_early = after is not None and not events and self._answered - sent_at < 1
            self._rest = 0.2 + random.random() * 0.8 if is_early else _GAP
        else:
            self._rest = 0.0
        if page.get("reset") is True:
            events.insert(0, Answer({"type": "reset", "data": {}}, '{"type":"reset","data":{}}'))
        return events


def read_events(reader: Reader, stop: threading.Event | None) -> Iterator[t.Event]:
    scope = Scope(None, current())
    if stop is not None:
        watch(stop, scope)
    try:
        while not reader.has_ended:
            try:
                with scope.active():
                    events = reader.page()
            except HandoffError as error:
                if error.code == "aborted" and stop is not None and stop.is_set():
                    return
                raise
            for event in events:
                if stop is not None and stop.is_set():
                    return
                yield cast("t.Event", event)
    finally:
        scope.cancel()
