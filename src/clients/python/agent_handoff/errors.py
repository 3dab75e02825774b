"""What a call raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class HandoffError(Exception):
    """Any error of a call.

    ``code`` is one of the API's (docs/api.md has the table), or one of these: ``connection_failed`` (no answer, or one
    that isn't the service's), ``timeout`` (no answer in time), ``aborted`` (the call was cancelled) and
    ``key_unavailable`` (there was no key to send; ``__cause__`` says why)::

        try:
            client.catch(id)
        except HandoffError as error:
            if error.code != "already_caught":
                raise
    """

    def __init__(
        self,
        code: str,
        status: int | None = None,
        retryable: bool = False,
        request_id: str | None = None,
        detail: str | None = None,
        handoff_status: str | None = None,
        reissued_as: str | None = None,
        errors: Sequence[Mapping[str, Any]] | None = None,
        *,
        open: Sequence[str] | None = None,
        retry_after: float | None = None,
        text: str | None = None,
    ) -> None:
        self.code = code
        #: The HTTP status; None if there was no answer.
        self.status = status
        #: The same call may succeed later.
        self.retryable = retryable
        #: The request's id in the service's log.
        self.request_id = request_id
        self.detail = code if detail is None else detail
        #: The handoff's status, if the refusal is about it.
        self.handoff_status = handoff_status
        #: The id of the handoff's next attempt.
        self.reissued_as = reissued_as
        #: What is wrong with the request: each with ``pointer`` and ``message``.
        self.errors = None if errors is None else list(errors)
        #: The ids that have not ended, when the time of ``wait_for_all`` is over.
        self.open = None if open is None else list(open)
        #: How many seconds to wait before asking again, as the service says.
        self.retry_after = retry_after
        #: The exact JSON of the refusal, if the service sent one.
        self.text = text
        faults = "; ".join(f"{one.get('pointer', '')} {one.get('message', '')}" for one in self.errors or ())
        super().__init__(f"{self.detail}{' ' if faults else ''}{faults} ({code})")

    def __reduce__(self) -> tuple[Any, ...]:
        # By its own arguments, so that it comes whole out of another process.
        return (_again, (type(self), dict(self.__dict__)))


def _again(kind: type[HandoffError], members: dict[str, Any]) -> HandoffError:
    known = {name: value for name, value in members.items() if name in _members}
    error = kind(**known)
    error.__dict__.update(members)
    return error


_members = frozenset((
    "code", "status", "retryable", "request_id", "detail", "handoff_status", "reissued_as", "errors", "open",
    "retry_after", "text",
))


class WebhookVerificationError(ValueError):
    """A webhook that isn't the service's, or too old: answer it with 400, and do nothing else."""
