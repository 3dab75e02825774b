"""What agents ask and are answered.

Answers are dicts with these members, and have their exact JSON as ``text``. A newer service may send more members.
Made from /openapi.json: CLIENT_TYPES=write npm run test:smoke -- test/others/client-types.smoke.test.ts
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, overload

from ._json import Answer, RawJson

#: Who is asked.
Asker = Literal["person", "passer"]
#: What is waited for.
Until = Literal["caught", "done"]
#: How many of several are waited for.
HowMany = Literal["all", "any"]


class Passed(Answer):
    """The handoff is passed."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["pickup_url"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["pending"]: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["available_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["blocked_by"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["approval_url"], /) -> str: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _HandoffApproval(TypedDict):
    state: Literal["waiting", "approved", "rejected"]
    #: When a person decided.
    decided_at: str | None
    #: Name of the person’s key.
    decided_by: str | None
    #: The person’s note.
    note: str | None


class HandoffApproval(_HandoffApproval, total=False):
    """A part of an answer."""

    #: Digest of the content that the person saw, if the decision sent it.
    digest: str


class _HandoffAfter(TypedDict):
    #: As passed.
    handoff_id: str
    #: How it ended.
    status: str


class HandoffAfter(_HandoffAfter, total=False):
    """A part of an answer."""

    #: Its last attempt, if that is another.
    last: str
    #: The output given to done.
    result: dict[str, Any] | None
    #: The result is left out: together they would be over 4 MiB, or it is gone.
    result_omitted: Literal[True]


class Handoff(Answer):
    """Caught: the work is yours."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["caught"]: ...
    @overload
    def __getitem__(self, key: Literal["task"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["output"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["context"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["constraints"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["approval"], /) -> HandoffApproval: ...
    @overload
    def __getitem__(self, key: Literal["to"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: Literal["work_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_within"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["attempt"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["reissue_of"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["parent"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["root"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["hops"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["schedule"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["scheduled_for"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["result_schema"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["after"], /) -> list[HandoffAfter]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Done(Answer):
    """Done."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["done"]: ...
    @overload
    def __getitem__(self, key: Literal["completed_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Failed(Answer):
    """The handoff has ended."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["failed"]: ...
    @overload
    def __getitem__(self, key: Literal["ended_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["reissued_as"], /) -> str: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Declined(Answer):
    """The handoff has ended."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["declined"]: ...
    @overload
    def __getitem__(self, key: Literal["ended_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["reissued_as"], /) -> str: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class HeartbeatAsk(TypedDict):
    """The latest question, once there was one."""

    #: The question’s id.
    ask_id: str
    #: How it stands.
    state: Literal["open", "answered", "expired", "withdrawn"]


class Heartbeat(Answer):
    """The heartbeat is recorded."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["caught"]: ...
    @overload
    def __getitem__(self, key: Literal["work_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["cancel_requested"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["cancel_reason"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["ask"], /) -> HeartbeatAsk: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Cancelled(Answer):
    """Cancelled."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["cancelled", "caught"]: ...
    @overload
    def __getitem__(self, key: Literal["ended_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["cancel_requested_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Question(Answer):
    """Asked. The deadlines of the work are paused until it is answered."""

    @overload
    def __getitem__(self, key: Literal["ask_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["state"], /) -> Literal["open", "answered", "expired", "withdrawn"]: ...
    @overload
    def __getitem__(self, key: Literal["question"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["asked_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["answer_url"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["of"], /) -> Literal["person", "passer"]: ...
    @overload
    def __getitem__(self, key: Literal["details"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["schema"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["answer"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["answered_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["answered_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["note"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Answered(Answer):
    """Answered."""

    @overload
    def __getitem__(self, key: Literal["ask_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["state"], /) -> Literal["answered"]: ...
    @overload
    def __getitem__(self, key: Literal["answered_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["answered_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class OpenQuestion(Answer):
    """A part of an answer."""

    @overload
    def __getitem__(self, key: Literal["ask_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["question"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["to"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: Literal["asked_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["asked_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["answer_url"], /) -> str: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class AskList(Answer):
    """Open questions, the oldest first."""

    @overload
    def __getitem__(self, key: Literal["items"], /) -> list[OpenQuestion]: ...
    @overload
    def __getitem__(self, key: Literal["next_cursor"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _StatusApproval(TypedDict):
    state: Literal["waiting", "approved", "rejected"]
    #: When a person decided.
    decided_at: str | None
    #: Name of the person’s key.
    decided_by: str | None
    #: The person’s note.
    note: str | None


class StatusApproval(_StatusApproval, total=False):
    """A part of an answer."""

    #: Digest of the content that the person saw, if the decision sent it.
    digest: str


class StatusCallback(TypedDict):
    """Its callback."""

    #: Without its query.
    url: str
    #: How many are to be delivered.
    pending: int
    delivered: int
    #: How many could not be delivered.
    failed: int
    #: How the address answered last.
    last_status: int | None
    #: Why it gave no answer.
    last_error: str | None
    #: When that was.
    last_at: str | None


class _StatusProgress(TypedDict):
    at: str


class StatusProgress(_StatusProgress, total=False):
    """The catcher’s latest progress report."""

    message: str
    percent: float


class StatusAsk(TypedDict):
    """Its catcher’s latest question."""

    #: The question’s id.
    ask_id: str
    #: How it stands.
    state: Literal["open", "answered", "expired", "withdrawn"]
    #: Who is asked: a person, or the agent that passed the handoff.
    of: Literal["person", "passer"]
    #: When it was asked.
    asked_at: str
    answered_at: str | None
    #: Who answered.
    answered_by: str | None


class _StatusWaitsFor(TypedDict):
    #: A person has yet to decide; its delay isn’t over; it comes after others; its inbox is paused, or has as many
    #: caught as may be; others are caught before it; nobody works on its inbox.
    reason: Literal["approval", "delay", "after", "paused", "max_caught", "ahead", "no_listener"]


class StatusWaitsFor(_StatusWaitsFor, total=False):
    """A part of an answer."""

    #: Of a delay: its end. Of an approval: by when.
    until: str
    #: How many it comes after that have not ended.
    blocked_by: int
    #: How many of the inbox are caught.
    caught: int
    #: How many may be.
    max: int
    #: How many the inbox gives before it.
    ahead: int
    #: There are more ahead than that.
    at_least: Literal[True]


class Status(Answer):
    """The handoff’s status. What hasn’t happened is null. Members that only some handoffs have are left …"""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]: ...
    @overload
    def __getitem__(self, key: Literal["require_human"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["caught_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["caught_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["completed_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["approval"], /) -> StatusApproval | None: ...
    @overload
    def __getitem__(self, key: Literal["result"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["to"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["priority"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: Literal["available_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["callback"], /) -> StatusCallback: ...
    @overload
    def __getitem__(self, key: Literal["blocked_by"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["work_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["worker"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["progress"], /) -> StatusProgress: ...
    @overload
    def __getitem__(self, key: Literal["cancel_requested_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["cancel_reason"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["error"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["reason"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expired_because"], /) -> Literal["not_caught", "not_decided", "not_done", "stalled"]: ...
    @overload
    def __getitem__(self, key: Literal["ask"], /) -> StatusAsk: ...
    @overload
    def __getitem__(self, key: Literal["attempt"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["reissue_of"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["reissued_as"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["parent"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["root"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["hops"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["schedule"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["scheduled_for"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["waits_for"], /) -> list[StatusWaitsFor]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _StandingApproval(TypedDict):
    state: Literal["waiting", "approved", "rejected"]
    #: When a person decided.
    decided_at: str | None
    #: Name of the person’s key.
    decided_by: str | None
    #: The person’s note.
    note: str | None


class StandingApproval(_StandingApproval, total=False):
    """A part of an answer."""

    #: Digest of the content that the person saw, if the decision sent it.
    digest: str


class StandingCallback(TypedDict):
    """Its callback."""

    #: Without its query.
    url: str
    #: How many are to be delivered.
    pending: int
    delivered: int
    #: How many could not be delivered.
    failed: int
    #: How the address answered last.
    last_status: int | None
    #: Why it gave no answer.
    last_error: str | None
    #: When that was.
    last_at: str | None


class _StandingProgress(TypedDict):
    at: str


class StandingProgress(_StandingProgress, total=False):
    """The catcher’s latest progress report."""

    message: str
    percent: float


class StandingAsk(TypedDict):
    """Its catcher’s latest question."""

    #: The question’s id.
    ask_id: str
    #: How it stands.
    state: Literal["open", "answered", "expired", "withdrawn"]
    #: Who is asked: a person, or the agent that passed the handoff.
    of: Literal["person", "passer"]
    #: When it was asked.
    asked_at: str
    answered_at: str | None
    #: Who answered.
    answered_by: str | None


class Standing(Answer):
    """A part of an answer."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"] | Literal["unknown"]: ...
    @overload
    def __getitem__(self, key: Literal["require_human"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["caught_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["caught_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["completed_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["approval"], /) -> StandingApproval | None: ...
    @overload
    def __getitem__(self, key: Literal["result"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["to"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["priority"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: Literal["available_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["callback"], /) -> StandingCallback: ...
    @overload
    def __getitem__(self, key: Literal["blocked_by"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["work_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["worker"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["progress"], /) -> StandingProgress: ...
    @overload
    def __getitem__(self, key: Literal["cancel_requested_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["cancel_reason"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["error"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["reason"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expired_because"], /) -> Literal["not_caught", "not_decided", "not_done", "stalled"]: ...
    @overload
    def __getitem__(self, key: Literal["ask"], /) -> StandingAsk: ...
    @overload
    def __getitem__(self, key: Literal["attempt"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["reissue_of"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["reissued_as"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["parent"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["root"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["hops"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["schedule"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["scheduled_for"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["asked_as"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["result_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Settled(Answer):
    """What is true now."""

    @overload
    def __getitem__(self, key: Literal["items"], /) -> list[Standing]: ...
    @overload
    def __getitem__(self, key: Literal["complete"], /) -> bool: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _EverythingApproval(TypedDict):
    state: Literal["waiting", "approved", "rejected"]
    #: When a person decided.
    decided_at: str | None
    #: Name of the person’s key.
    decided_by: str | None
    #: The person’s note.
    note: str | None


class EverythingApproval(_EverythingApproval, total=False):
    """A part of an answer."""

    #: Digest of the content that the person saw, if the decision sent it.
    digest: str


class EverythingCallback(TypedDict):
    """Its callback."""

    #: Without its query.
    url: str
    #: How many are to be delivered.
    pending: int
    delivered: int
    #: How many could not be delivered.
    failed: int
    #: How the address answered last.
    last_status: int | None
    #: Why it gave no answer.
    last_error: str | None
    #: When that was.
    last_at: str | None


class _EverythingProgress(TypedDict):
    at: str


class EverythingProgress(_EverythingProgress, total=False):
    """The catcher’s latest progress report."""

    message: str
    percent: float


class EverythingAsk(TypedDict):
    """Its catcher’s latest question."""

    #: The question’s id.
    ask_id: str
    #: How it stands.
    state: Literal["open", "answered", "expired", "withdrawn"]
    #: Who is asked: a person, or the agent that passed the handoff.
    of: Literal["person", "passer"]
    #: When it was asked.
    asked_at: str
    answered_at: str | None
    #: Who answered.
    answered_by: str | None


class EverythingAttempts(TypedDict):
    """A part of an answer."""

    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    attempt: int
    status: Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]
    #: What its worker called itself (Handoff-Worker); null if it said nothing.
    worker: str | None
    #: Null while it hasn’t ended.
    ended_at: str | None


class Everything(Answer):
    """All of the handoff. What is gone is null."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]: ...
    @overload
    def __getitem__(self, key: Literal["require_human"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["caught_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["caught_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["completed_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["approval"], /) -> EverythingApproval | None: ...
    @overload
    def __getitem__(self, key: Literal["to"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["priority"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: Literal["available_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["callback"], /) -> EverythingCallback: ...
    @overload
    def __getitem__(self, key: Literal["blocked_by"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["work_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["worker"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["progress"], /) -> EverythingProgress: ...
    @overload
    def __getitem__(self, key: Literal["cancel_requested_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["cancel_reason"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["reason"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expired_because"], /) -> Literal["not_caught", "not_decided", "not_done", "stalled"]: ...
    @overload
    def __getitem__(self, key: Literal["ask"], /) -> EverythingAsk: ...
    @overload
    def __getitem__(self, key: Literal["attempt"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["reissue_of"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["reissued_as"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["parent"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["root"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["hops"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["schedule"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["scheduled_for"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["passed_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["task"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["task_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["output"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["output_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["context"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["context_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["constraints"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["constraints_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["result"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["result_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["error"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["error_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["question"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["question_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["answer"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["answer_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_omitted"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["attempts"], /) -> list[EverythingAttempts]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Inbox(Answer):
    """The state of the inbox. One that was never used is empty."""

    @overload
    def __getitem__(self, key: Literal["inbox"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["pending"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["oldest_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["waiting_approval"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["delayed"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["blocked"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["caught"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["failed"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["listening"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["paused"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["max_caught"], /) -> int | None: ...
    @overload
    def __getitem__(self, key: Literal["max_pending"], /) -> int | None: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class WorkersItems(TypedDict):
    """A part of an answer."""

    #: Name of the agent.
    agent: str
    #: What it calls itself (Handoff-Worker); null if it says nothing.
    worker: str | None
    #: Number of its requests that wait for this inbox.
    waiting: int
    #: Number of handoffs of this inbox that it has caught.
    caught: int
    #: When it was heard of last.
    last_seen_at: str
    #: When it last caught one of its handoffs, as far as is known.
    last_caught_at: str | None


class Workers(Answer):
    """Who has handoffs of the inbox caught, waits for some, or asked for some within a minute."""

    @overload
    def __getitem__(self, key: Literal["items"], /) -> list[WorkersItems]: ...
    @overload
    def __getitem__(self, key: Literal["more"], /) -> bool: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class InboxList(Answer):
    """The tenant’s inboxes that hold something or have settings."""

    @overload
    def __getitem__(self, key: Literal["items"], /) -> list[Inbox]: ...
    @overload
    def __getitem__(self, key: Literal["next_cursor"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _ListedHandoffApproval(TypedDict):
    state: Literal["waiting", "approved", "rejected"]
    #: When a person decided.
    decided_at: str | None
    #: Name of the person’s key.
    decided_by: str | None
    #: The person’s note.
    note: str | None


class ListedHandoffApproval(_ListedHandoffApproval, total=False):
    """A part of an answer."""

    #: Digest of the content that the person saw, if the decision sent it.
    digest: str


class _ListedHandoffProgress(TypedDict):
    at: str


class ListedHandoffProgress(_ListedHandoffProgress, total=False):
    """The catcher’s latest progress report."""

    message: str
    percent: float


class ListedHandoffAsk(TypedDict):
    """Its open question."""

    #: The question’s id.
    ask_id: str
    #: When it was asked.
    asked_at: str


class _ListedHandoffError(TypedDict):
    #: Truncated to 1,000 characters.
    message: str


class ListedHandoffError(_ListedHandoffError, total=False):
    """As sent with fail, without its data."""

    code: str


class ListedHandoff(Answer):
    """A part of an answer."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]: ...
    @overload
    def __getitem__(self, key: Literal["require_human"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["passed_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["to"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["priority"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: Literal["parent"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["attempt"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["max_attempts"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["available_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["blocked_by"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["schedule"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["scheduled_for"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["approval"], /) -> ListedHandoffApproval | None: ...
    @overload
    def __getitem__(self, key: Literal["caught_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["caught_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["work_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_expires_at"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["worker"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["checkpoint_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["progress"], /) -> ListedHandoffProgress: ...
    @overload
    def __getitem__(self, key: Literal["cancel_requested_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ask"], /) -> ListedHandoffAsk: ...
    @overload
    def __getitem__(self, key: Literal["completed_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["ended_by"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["reissued_as"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["error"], /) -> ListedHandoffError: ...
    @overload
    def __getitem__(self, key: Literal["reason"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expired_because"], /) -> Literal["not_caught", "not_decided", "not_done", "stalled"]: ...
    @overload
    def __getitem__(self, key: Literal["title"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["task"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["task_truncated"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class HandoffList(Answer):
    """A tenant’s handoffs, like AVHdDBR3Ox_T_H9gltuUjYVhg. Members that only some handoffs have are left …"""

    @overload
    def __getitem__(self, key: Literal["items"], /) -> list[ListedHandoff]: ...
    @overload
    def __getitem__(self, key: Literal["next_cursor"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Redriven(Answer):
    """What was reissued."""

    @overload
    def __getitem__(self, key: Literal["reissued"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["skipped"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["more"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["would_change"], /) -> int: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class Purged(Answer):
    """What was cancelled."""

    @overload
    def __getitem__(self, key: Literal["cancelled"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["requested"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["more"], /) -> bool: ...
    @overload
    def __getitem__(self, key: Literal["would_change"], /) -> int: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class WaitingApproval(Answer):
    """A part of an answer."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["task"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["task_truncated"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["passed_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["available_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class ApprovalList(Answer):
    """Handoffs that wait for approval, oldest first."""

    @overload
    def __getitem__(self, key: Literal["items"], /) -> list[WaitingApproval]: ...
    @overload
    def __getitem__(self, key: Literal["next_cursor"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _ApprovalDetailsApproval(TypedDict):
    state: Literal["waiting", "approved", "rejected"]
    #: When a person decided.
    decided_at: str | None
    #: Name of the person’s key.
    decided_by: str | None
    #: The person’s note.
    note: str | None


class ApprovalDetailsApproval(_ApprovalDetailsApproval, total=False):
    """A part of an answer."""

    #: Digest of the content that the person saw, if the decision sent it.
    digest: str


class ApprovalDetailsCallback(TypedDict):
    """The address that is told what becomes of it."""

    #: Without its query.
    url: str
    #: Whether the result is sent there.
    result: bool


class ApprovalDetails(Answer):
    """The complete handoff."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]: ...
    @overload
    def __getitem__(self, key: Literal["task"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["output"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["context"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, key: Literal["constraints"], /) -> str | None: ...
    @overload
    def __getitem__(self, key: Literal["created_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["expires_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["passed_by"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["approval"], /) -> ApprovalDetailsApproval: ...
    @overload
    def __getitem__(self, key: Literal["to"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["priority"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["parent"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["work_within"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["heartbeat_within"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["max_attempts"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["available_at"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["labels"], /) -> dict[str, str]: ...
    @overload
    def __getitem__(self, key: Literal["digest"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["result_schema"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["callback"], /) -> ApprovalDetailsCallback: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _DecidedApproval(TypedDict):
    state: Literal["waiting", "approved", "rejected"]
    #: When a person decided.
    decided_at: str | None
    #: Name of the person’s key.
    decided_by: str | None
    #: The person’s note.
    note: str | None


class DecidedApproval(_DecidedApproval, total=False):
    """A part of an answer."""

    #: Digest of the content that the person saw, if the decision sent it.
    digest: str


class Decided(Answer):
    """The decision is recorded."""

    @overload
    def __getitem__(self, key: Literal["handoff_id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["status"], /) -> Literal["pending", "rejected"]: ...
    @overload
    def __getitem__(self, key: Literal["approval"], /) -> DecidedApproval: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class BatchResult(Answer):
    """A part of an answer."""

    @overload
    def __getitem__(self, key: Literal["status"], /) -> int: ...
    @overload
    def __getitem__(self, key: Literal["body"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["replayed"], /) -> Literal[True]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class BatchResults(Answer):
    """The answers of the operations. One that fails does not affect the others. If one was rate limited, …"""

    @overload
    def __getitem__(self, key: Literal["results"], /) -> list[BatchResult]: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class EventData(TypedDict, total=False):
    """A part of an answer."""

    handoff_id: str
    #: The handoff’s inbox.
    to: str
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: The agent that passed the handoff.
    passed_by: str
    #: Id of the handoff that this one is a part of.
    parent: str
    #: Number of this attempt, from the second one on.
    attempt: int
    #: Id of the previous attempt.
    reissue_of: str
    #: The schedule that it is a run of.
    schedule: str
    #: For which time that ran.
    scheduled_for: str
    status: Literal["pending", "rejected", "caught", "done", "failed", "declined", "cancelled", "expired"]
    #: The page where a person decides.
    approval_url: str
    #: When the handoff expires if nobody has caught it by then.
    expires_at: str
    #: The agent that caught the handoff.
    caught_by: str
    #: Id of the question.
    ask_id: str
    #: Who is asked.
    of: Literal["person", "passer"]
    #: The page where a person answers; only if a person is asked.
    answer_url: str
    #: The agent that answered: a person’s key, or the passer.
    answered_by: str
    #: How it ended without an answer.
    state: Literal["expired", "withdrawn"]
    #: What was missed: not_decided if a person still had to decide.
    expired_because: Literal["not_caught", "not_decided", "not_done", "stalled"]
    #: Id of the next attempt, the successor.
    reissued_as: str
    #: The webhook’s id.
    webhook_id: str
    #: gone: the receiver answered 410. failing: no attempt succeeded for 72 hours.
    reason: Literal["gone", "failing"]


class Event(Answer):
    """A part of an answer."""

    @overload
    def __getitem__(self, key: Literal["id"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["type"], /) -> Literal["handoff.passed", "handoff.approval_requested", "handoff.approved", "handoff.rejected", "handoff.caught", "handoff.asked", "handoff.answered", "handoff.ask_ended", "handoff.done", "handoff.failed", "handoff.declined", "handoff.cancelled", "handoff.cancel_requested", "handoff.expired", "handoff.reissued", "webhook.disabled"]: ...
    @overload
    def __getitem__(self, key: Literal["time"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["data"], /) -> EventData: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class EventsPage(Answer):
    """Events. With Accept: text/event-stream, the answer is a stream of server-sent events."""

    @overload
    def __getitem__(self, key: Literal["items"], /) -> list[Event]: ...
    @overload
    def __getitem__(self, key: Literal["next"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["reset"], /) -> bool: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class _PassMembersCallback(TypedDict):
    #: Like a webhook’s.
    url: str


class PassMembersCallback(_PassMembersCallback, total=False):
    """The address that is told what becomes of the handoff."""

    #: What is told; without it how the handoff ended, and what its catcher asks.
    types: list[Literal["handoff.caught", "handoff.done", "handoff.failed", "handoff.declined", "handoff.cancelled", "handoff.expired", "handoff.rejected", "handoff.asked", "handoff.reissued"]] | None
    #: Sent as a bearer token. No answer shows it.
    token: str | None
    #: Whether the result, or the error, is sent.
    result: bool | None


class PassMembers(TypedDict, total=False):
    """What a pass may have besides its task."""

    #: Result of the passing agent’s own work.
    output: Mapping[str, Any] | RawJson | None
    #: Metadata or history.
    context: Mapping[str, Any] | RawJson | None
    #: Rules or boundaries for the next agent.
    constraints: str | None
    #: The inbox that the handoff is for. Any agent of the tenant can catch it there.
    to: str | None
    #: Priority in that inbox: each step outweighs a minute of waiting. Needs ``to``.
    priority: int | None
    #: Names and values by which lists and events can be filtered: 1 to 8. A name is 1 to 32 of A-Z a-z 0-9 . _ -, a
    #: value 1 to 64 of these and : / @.
    labels: Mapping[str, str] | None
    #: If true, a person must approve before anyone can catch the handoff.
    require_human: bool | None
    #: For how many seconds the handoff can be caught.
    expires_in: int | None
    #: Seconds, from the catch on, within which the work must be done.
    work_within: int | None
    #: Longest time between two heartbeats of the catcher, from the catch on, in seconds.
    heartbeat_within: int | None
    #: Seconds until the handoff can be caught; less than expires_in.
    delay: int | None
    #: Attempts in total. An attempt that fails, is declined or runs out of time gets a successor while any are left.
    max_attempts: int | None
    #: Seconds until the second attempt can be caught; doubles with each further attempt, up to an hour.
    retry_delay: int | None
    #: A JSON Schema (2020-12) that done’s output must satisfy: at most 16,384 bytes, and only the keywords that the
    #: documentation lists.
    result_schema: Mapping[str, Any] | RawJson | None
    #: Id of the handoff that this one is a part of. This agent must have caught it.
    parent: str | None
    #: Ids of 1 to 100 handoffs that must end first: until then nobody can catch this one. Its catcher gets their
    #: results.
    after: Sequence[str] | None
    #: What is needed of those: that all are ``done`` (one that ends otherwise cancels this handoff), or only that they
    #: have ``ended``. Needs ``after``.
    after_need: Literal["done", "ended"] | None
    #: The address that is told what becomes of the handoff.
    callback: PassMembersCallback | None


class WebhookEvent(Answer):
    """What a webhook brings."""

    @overload
    def __getitem__(self, key: Literal["type"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["timestamp"], /) -> str: ...
    @overload
    def __getitem__(self, key: Literal["data"], /) -> EventData: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...


class FailedWanted(TypedDict, total=False):
    """What failed handoffs are to have, and the options of a call."""

    inbox: str | None
    passed_by: str | None
    #: They have all of these.
    labels: Mapping[str, str] | None
    #: How they ended.
    status: Sequence[Literal["failed", "declined", "expired"]]
    #: The code given to ``fail``.
    error_code: str | None
    #: They ended then or later: a time like 2026-11-20T09:00:00.000Z.
    since: str | None
    #: They ended before that.
    until: str | None
    idempotency_key: str | None
    retry_for: float | None
    attempt_timeout: float | None


class ListWanted(FailedWanted, total=False):
    """What listed handoffs are to have. What is only about an end needs the state ``failed``."""

    state: Literal["live", "failed"] | None
    caught_by: str | None
