"""Asking again beyond one call's time, where only the connection, a gateway or the service's state is in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ._scope import backoff, pause, retry_pause
from .errors import HandoffError

T = TypeVar("T")

#: Statuses that refuse an output, rather than its being reported.
_REFUSED_OUTPUT = frozenset((400, 413, 422))

#: How often something else may answer in the service's place, with a page that says nothing of its coming back: for
#: about ten seconds.
_MAX_FOREIGN = 7


def insist(
    send: Callable[[], T], *, goes_on: Callable[[], bool] = lambda: True,
    on_error: Callable[[HandoffError], object] = lambda error: None,
) -> T:
    """Repeats a call, which asks again for ``retry_for`` by itself; ``goes_on`` is asked before a further one."""
    foreign = 0
    attempt = 0
    while True:
        try:
            return send()
        except HandoffError as error:
            may_pass = error.retryable or (error.status or 0) >= 500
            if not may_pass and _is_foreign(error) and foreign < _MAX_FOREIGN:
                foreign += 1
                may_pass = True
            if not may_pass or not goes_on():
                raise
            on_error(error)
            seconds = retry_pause(error.retry_after) + backoff(attempt)
        pause(seconds)
        attempt += 1


def _is_foreign(error: HandoffError) -> bool:
    """Not the service's answer, and nothing that is known to pass: a gateway without a route to it, for instance."""
    return error.code == "connection_failed" and not error.retryable and error.status not in _REFUSED_OUTPUT


def is_of_output(error: HandoffError) -> bool:
    """Whether the output, or a file of it, isn't taken: then the handoff fails, since it can't be done with that."""
    return error.status in _REFUSED_OUTPUT or error.code == "file_missing" or _is_foreign(error)
