"""Giving back what a cancelled call has caught, or may have: its answer can have been on its way."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._scope import Scope, TooLate
from .errors import HandoffError

if TYPE_CHECKING:
    from ._operations import Operations

_REASON = "The call that caught it was cancelled."
#: After so many seconds what was on its way when the call ended has been carried out, or will not be.
_SETTLED = 0.25
#: How long an interrupted call is held up, in seconds.
_GRACE = 5.0
#: What this thread gives back just now.
_local = threading.local()


@contextmanager
def undone(undo: Callable[[], None]) -> Iterator[None]:
    """Where Ctrl-C, or an exit in a signal's handler, ends the call in it, what that may have caught is given back."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        # A second one while this goes on ends it.
        if getattr(_local, "is_undoing", False):
            raise
        _local.is_undoing = True
        try:
            time.sleep(_SETTLED)
            with Scope(_GRACE).active():
                undo()
        except TooLate:
            pass
        finally:
            _local.is_undoing = False
        raise


def give_back(client: Operations, caught: Iterable[Mapping[str, Any]]) -> None:
    """Declines them: what has further attempts left is tried again, and of the others their passer hears."""
    for handoff in caught:
        try:
            client.decline(handoff["handoff_id"], _REASON)
        except (HandoffError, RuntimeError):
            pass


def undo_catch(client: Operations, id: str, key: str) -> None:
    """Nothing is caught by that: the key gives only what it has caught, and that only where this agent has it."""
    try:
        client.heartbeat(id)
        give_back(client, [client.catch(id, idempotency_key=key)])
    except (HandoffError, RuntimeError):
        pass


def undo_catch_next(client: Operations, what: Mapping[str, Any], key: str) -> None:
    """Asks for something else with the same key first: that is refused only if the key has caught something.

    So nothing more is caught than what was. An inbox of that name has nothing.
    """
    try:
        client.catch_next(f"none-{uuid.uuid4()}", idempotency_key=key)
        return
    except HandoffError as error:
        if error.code not in ("idempotency_key_reused", "not_addressee"):
            return
    except RuntimeError:
        return
    try:
        give_back(client, client.catch_next(**what, idempotency_key=key))
    except (HandoffError, RuntimeError):
        pass


def undo_batch(client: Operations, operations: Sequence[Mapping[str, Any]], key: str) -> None:
    for index, one in enumerate(operations):
        if one.get("op") == "catch" and isinstance(one.get("id"), str):
            undo_catch(client, one["id"], one.get("idempotency_key") or f"{key}-{index}")
