"""What agents ask and are answered.

Answers are dicts with these members, and have their exact JSON as ``text``. A newer service may send more members.
Made from /openapi.json: CLIENT_TYPES=write npm run test:smoke -- test/others/client-types.smoke.test.ts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._json import RawJson

#: Who is asked.
Asker = Literal["person", "passer"]
#: What is waited for.
Until = Literal["caught", "done"]
#: How many of several are waited for.
HowMany = Literal["all", "any"]


class _Passed(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    #: The URL to catch it at.
    pickup_url: str
    status: Literal["pending"]
    #: When the handoff was passed, by Redis’s clock.
    created_at: str
    #: The handoff can be caught until then.
    expires_at: str


class Passed(_Passed, total=False):
    """The handoff is passed."""

    #: The handoff can be caught from then on; only if it was delayed.
    available_at: str
    #: How many handoffs that it comes after have not ended yet.
    blocked_by: int
    #: The page on which a person decides; only with require_human.
    approval_url: str


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


class _Handoff(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["caught"]
    #: As passed.
    task: str
    #: As passed; {} when none was given.
    output: dict[str, Any]
    #: As passed; {} when none was given.
    context: dict[str, Any]
    #: As passed; null when none was given.
    constraints: str | None
    #: When the handoff was passed, by Redis’s clock.
    created_at: str


class Handoff(_Handoff, total=False):
    """Caught: the work is yours."""

    approval: HandoffApproval
    #: The inbox that it was passed to.
    to: str
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: Deadline of the work; null while a question is open.
    work_expires_at: str | None
    #: As passed: seconds.
    heartbeat_within: int
    #: Deadline of the next heartbeat; null while a question is open.
    heartbeat_expires_at: str | None
    #: Number of this attempt.
    attempt: int
    #: Id of the previous attempt.
    reissue_of: str
    #: Id of the handoff that this one is a part of.
    parent: str
    #: Id of the first handoff of the line.
    root: str
    #: Number of hops from the root to this handoff.
    hops: int
    #: The latest checkpoint that a catcher of this work gave.
    checkpoint: dict[str, Any]
    #: When the latest checkpoint was given.
    checkpoint_at: str
    #: The agent that gave the checkpoint.
    checkpoint_by: str
    #: The schedule that it is a run of.
    schedule: str
    #: For which time that ran.
    scheduled_for: str
    #: As passed: what the output given to done must satisfy.
    result_schema: dict[str, Any]
    #: What it comes after, in the order passed.
    after: list[HandoffAfter]


class Done(TypedDict):
    """Done."""

    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["done"]
    #: When the work was reported done.
    completed_at: str


class _Failed(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["failed"]
    #: When the handoff ended.
    ended_at: str


class Failed(_Failed, total=False):
    """The handoff has ended."""

    #: Id of the next attempt, the successor.
    reissued_as: str


class _Declined(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["declined"]
    #: When the handoff ended.
    ended_at: str


class Declined(_Declined, total=False):
    """The handoff has ended."""

    #: Id of the next attempt, the successor.
    reissued_as: str


class HeartbeatAsk(TypedDict):
    """The latest question, once there was one."""

    #: The question’s id.
    ask_id: str
    #: How it stands.
    state: Literal["open", "answered", "expired", "withdrawn"]


class _Heartbeat(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["caught"]
    #: Deadline of the work; null while a question is open.
    work_expires_at: str | None
    #: Deadline of the next heartbeat; null without heartbeat_within, and while a question is open.
    heartbeat_expires_at: str | None
    #: True if the passer wants the work stopped: fail or decline it, or go on and report it done.
    cancel_requested: bool
    #: Why it is cancelled.
    cancel_reason: str | None


class Heartbeat(_Heartbeat, total=False):
    """The heartbeat is recorded."""

    #: The latest question, once there was one.
    ask: HeartbeatAsk


class _Cancelled(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["cancelled", "caught"]


class Cancelled(_Cancelled, total=False):
    """Cancelled."""

    #: When the handoff ended.
    ended_at: str
    #: When cancelling was first requested.
    cancel_requested_at: str


class _Question(TypedDict):
    #: The question’s id.
    ask_id: str
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    state: Literal["open", "answered", "expired", "withdrawn"]
    #: As asked.
    question: str
    #: When it was asked.
    asked_at: str
    #: Until when it can be answered.
    expires_at: str


class Question(_Question, total=False):
    """Asked. The deadlines of the work are paused until it is answered."""

    #: The page where a person answers.
    answer_url: str
    #: Who is asked: a person, or the agent that passed the handoff.
    of: Literal["person", "passer"]
    #: As asked.
    details: dict[str, Any] | None
    #: What the answer must satisfy.
    schema: dict[str, Any] | None
    #: As answered.
    answer: dict[str, Any] | None
    answered_at: str | None
    #: Who answered.
    answered_by: str | None
    #: As sent with the answer.
    note: str | None


class Answered(TypedDict):
    """Answered."""

    #: The question’s id.
    ask_id: str
    state: Literal["answered"]
    #: When it was answered.
    answered_at: str
    #: Who answered.
    answered_by: str


class _OpenQuestion(TypedDict):
    #: The question’s id.
    ask_id: str
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    #: As asked, truncated to 1,000 characters.
    question: str
    #: The agent that asks: the handoff’s catcher.
    asked_by: str
    #: When it was asked.
    asked_at: str
    #: Until when it can be answered.
    expires_at: str


class OpenQuestion(_OpenQuestion, total=False):
    """A part of an answer."""

    #: The inbox that it was passed to.
    to: str
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: The page where a person answers.
    answer_url: str


class AskList(TypedDict):
    """Open questions, the oldest first."""

    #: May be fewer than ``limit``, or none, even if there is a next_cursor.
    items: list[OpenQuestion]
    #: The cursor of the next page; null on the last one.
    next_cursor: str | None


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


class _Status(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    #: Clients must tolerate statuses that they don’t know.
    status: Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]
    require_human: bool
    #: When the handoff was passed, by Redis’s clock.
    created_at: str
    #: The handoff can be caught until then.
    expires_at: str
    caught_at: str | None
    #: Name of the agent that caught it.
    caught_by: str | None
    completed_at: str | None
    approval: StatusApproval | None
    #: The output as sent with done.
    result: dict[str, Any] | None


class Status(_Status, total=False):
    """The handoff’s status. What hasn’t happened is null. Members that only some handoffs have are left …"""

    #: The inbox that it was passed to.
    to: str
    #: Its priority in that inbox.
    priority: int
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: The handoff can be caught from then on; only if it was delayed.
    available_at: str
    #: Its callback.
    callback: StatusCallback
    #: How many handoffs that it comes after have not ended yet.
    blocked_by: int
    #: Deadline of the work; null while a question is open.
    work_expires_at: str | None
    #: Deadline of the next heartbeat; null while a question is open.
    heartbeat_expires_at: str | None
    #: When the catcher’s last heartbeat came.
    heartbeat_at: str
    #: What its worker calls itself (Handoff-Worker).
    worker: str
    #: When the latest checkpoint was given.
    checkpoint_at: str
    #: The catcher’s latest progress report.
    progress: StatusProgress
    #: When the passer asked the catcher to stop.
    cancel_requested_at: str
    #: Why it is cancelled.
    cancel_reason: str
    #: When the handoff ended.
    ended_at: str
    #: The agent that ended the handoff; null if none did.
    ended_by: str | None
    #: As sent with fail.
    error: dict[str, Any]
    #: As sent with decline.
    reason: str
    #: What was missed: not_decided if a person still had to decide.
    expired_because: Literal["not_caught", "not_decided", "not_done", "stalled"]
    #: Its catcher’s latest question.
    ask: StatusAsk
    #: Number of this attempt.
    attempt: int
    #: Id of the previous attempt.
    reissue_of: str
    #: Id of the next attempt, the successor; null until it is made.
    reissued_as: str | None
    #: Id of the handoff that this one is a part of.
    parent: str
    #: Id of the first handoff of the line.
    root: str
    #: Number of hops from the root to this handoff.
    hops: int
    #: The schedule that it is a run of.
    schedule: str
    #: For which time that ran.
    scheduled_for: str
    #: Only with explain=true, and while it is pending: all that it waits for.
    waits_for: list[StatusWaitsFor]


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


class _Standing(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    #: Clients must tolerate statuses that they don’t know.
    status: Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"] | Literal["unknown"]


class Standing(_Standing, total=False):
    """A part of an answer."""

    require_human: bool
    #: When the handoff was passed, by Redis’s clock.
    created_at: str
    #: The handoff can be caught until then.
    expires_at: str
    caught_at: str | None
    #: Name of the agent that caught it.
    caught_by: str | None
    completed_at: str | None
    approval: StandingApproval | None
    #: The output as sent with done.
    result: dict[str, Any] | None
    #: The inbox that it was passed to.
    to: str
    #: Its priority in that inbox.
    priority: int
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: The handoff can be caught from then on; only if it was delayed.
    available_at: str
    #: Its callback.
    callback: StandingCallback
    #: How many handoffs that it comes after have not ended yet.
    blocked_by: int
    #: Deadline of the work; null while a question is open.
    work_expires_at: str | None
    #: Deadline of the next heartbeat; null while a question is open.
    heartbeat_expires_at: str | None
    #: When the catcher’s last heartbeat came.
    heartbeat_at: str
    #: What its worker calls itself (Handoff-Worker).
    worker: str
    #: When the latest checkpoint was given.
    checkpoint_at: str
    #: The catcher’s latest progress report.
    progress: StandingProgress
    #: When the passer asked the catcher to stop.
    cancel_requested_at: str
    #: Why it is cancelled.
    cancel_reason: str
    #: When the handoff ended.
    ended_at: str
    #: The agent that ended the handoff; null if none did.
    ended_by: str | None
    #: As sent with fail.
    error: dict[str, Any]
    #: As sent with decline.
    reason: str
    #: What was missed: not_decided if a person still had to decide.
    expired_because: Literal["not_caught", "not_decided", "not_done", "stalled"]
    #: Its catcher’s latest question.
    ask: StandingAsk
    #: Number of this attempt.
    attempt: int
    #: Id of the previous attempt.
    reissue_of: str
    #: Id of the next attempt, the successor; null until it is made.
    reissued_as: str | None
    #: Id of the handoff that this one is a part of.
    parent: str
    #: Id of the first handoff of the line.
    root: str
    #: Number of hops from the root to this handoff.
    hops: int
    #: The schedule that it is a run of.
    schedule: str
    #: For which time that ran.
    scheduled_for: str
    #: The id that was asked for, if this is a later attempt.
    asked_as: str
    #: What agents said would be larger than 4 MiB in all, so the result, error or reason is left out.
    result_omitted: Literal[True]


class Settled(TypedDict):
    """What is true now."""

    #: What has become of each, in the order of ids: the status of its last attempt.
    items: list[Standing]
    #: Whether what was waited for is so.
    complete: bool


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


class _Everything(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    #: Clients must tolerate statuses that they don’t know.
    status: Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]
    require_human: bool
    #: When the handoff was passed, by Redis’s clock.
    created_at: str
    #: The handoff can be caught until then.
    expires_at: str
    caught_at: str | None
    #: Name of the agent that caught it.
    caught_by: str | None
    completed_at: str | None
    approval: EverythingApproval | None
    #: The agent that passed it.
    passed_by: str
    #: The last 50 attempts of this work, in their order.
    attempts: list[EverythingAttempts]


class Everything(_Everything, total=False):
    """All of the handoff. What is gone is null."""

    #: The inbox that it was passed to.
    to: str
    #: Its priority in that inbox.
    priority: int
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: The handoff can be caught from then on; only if it was delayed.
    available_at: str
    #: Its callback.
    callback: EverythingCallback
    #: How many handoffs that it comes after have not ended yet.
    blocked_by: int
    #: Deadline of the work; null while a question is open.
    work_expires_at: str | None
    #: Deadline of the next heartbeat; null while a question is open.
    heartbeat_expires_at: str | None
    #: When the catcher’s last heartbeat came.
    heartbeat_at: str
    #: What its worker calls itself (Handoff-Worker).
    worker: str
    #: When the latest checkpoint was given.
    checkpoint_at: str
    #: The catcher’s latest progress report.
    progress: EverythingProgress
    #: When the passer asked the catcher to stop.
    cancel_requested_at: str
    #: Why it is cancelled.
    cancel_reason: str
    #: When the handoff ended.
    ended_at: str
    #: The agent that ended the handoff; null if none did.
    ended_by: str | None
    #: As sent with decline.
    reason: str
    #: What was missed: not_decided if a person still had to decide.
    expired_because: Literal["not_caught", "not_decided", "not_done", "stalled"]
    #: Its catcher’s latest question.
    ask: EverythingAsk
    #: Number of this attempt.
    attempt: int
    #: Id of the previous attempt.
    reissue_of: str
    #: Id of the next attempt, the successor; null until it is made.
    reissued_as: str | None
    #: Id of the handoff that this one is a part of.
    parent: str
    #: Id of the first handoff of the line.
    root: str
    #: Number of hops from the root to this handoff.
    hops: int
    #: The schedule that it is a run of.
    schedule: str
    #: For which time that ran.
    scheduled_for: str
    #: As passed.
    task: str | None
    #: task is left out: all texts together would be larger than 4 MiB.
    task_omitted: Literal[True]
    #: As passed; null once deleted.
    output: dict[str, Any] | None
    #: output is left out: all texts together would be larger than 4 MiB.
    output_omitted: Literal[True]
    #: As passed; null once deleted.
    context: dict[str, Any] | None
    #: context is left out: all texts together would be larger than 4 MiB.
    context_omitted: Literal[True]
    #: As passed.
    constraints: str | None
    #: constraints is left out: all texts together would be larger than 4 MiB.
    constraints_omitted: Literal[True]
    #: As given to done; null if there is none.
    result: dict[str, Any] | None
    #: result is left out: all texts together would be larger than 4 MiB.
    result_omitted: Literal[True]
    #: As sent with fail; null if there is none.
    error: dict[str, Any] | None
    #: error is left out: all texts together would be larger than 4 MiB.
    error_omitted: Literal[True]
    #: What its catcher asked last; null if it asked nothing.
    question: str | None
    #: question is left out: all texts together would be larger than 4 MiB.
    question_omitted: Literal[True]
    #: The answer to that question, any JSON; null if there is none.
    answer: dict[str, Any]
    #: answer is left out: all texts together would be larger than 4 MiB.
    answer_omitted: Literal[True]
    #: The latest checkpoint; null if there is none.
    checkpoint: dict[str, Any] | None
    #: checkpoint is left out: all texts together would be larger than 4 MiB.
    checkpoint_omitted: Literal[True]
    #: The agent that gave the checkpoint.
    checkpoint_by: str


class Inbox(TypedDict):
    """The state of the inbox. One that was never used is empty."""

    inbox: str
    #: Number of handoffs that can be caught now.
    pending: int
    #: When the oldest of them entered the inbox; null if there is none.
    oldest_at: str | None
    #: Number of handoffs that wait for approval.
    waiting_approval: int
    #: Number of handoffs that can be caught later.
    delayed: int
    #: Number of handoffs that wait for others.
    blocked: int
    #: Number of handoffs that are caught.
    caught: int
    #: Number of handoffs in the list of those that failed.
    failed: int
    #: Number of requests that wait for its handoffs, at all replicas; at most 10 s old.
    listening: int
    #: Whether nothing can be caught from the inbox now.
    paused: bool
    #: How many of its handoffs may be caught for the inbox to give more; null for any number.
    max_caught: int | None
    #: How many may be pending for it to take more; null for any number.
    max_pending: int | None


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


class Workers(TypedDict):
    """Who has handoffs of the inbox caught, waits for some, or asked for some within a minute."""

    #: The one that was heard of last first; at most 1,000.
    items: list[WorkersItems]
    #: Whether there are more.
    more: bool


class InboxList(TypedDict):
    """The tenant’s inboxes that hold something or have settings."""

    #: By name. May be fewer than ``limit``, or none, even if there is a next_cursor.
    items: list[Inbox]
    #: The cursor of the next page; null on the last one.
    next_cursor: str | None


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


class _ListedHandoff(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    #: Clients must tolerate statuses that they don’t know.
    status: Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]
    require_human: bool
    #: The agent that passed it.
    passed_by: str
    #: When the handoff was passed, by Redis’s clock.
    created_at: str
    #: The handoff can be caught until then.
    expires_at: str


class ListedHandoff(_ListedHandoff, total=False):
    """A part of an answer."""

    #: The inbox that it was passed to.
    to: str
    #: Its priority in that inbox.
    priority: int
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: Id of the handoff that this one is a part of.
    parent: str
    #: Number of this attempt.
    attempt: int
    #: As passed.
    max_attempts: int
    #: The handoff can be caught from then on; only if it was delayed.
    available_at: str
    #: How many handoffs that it comes after have not ended yet.
    blocked_by: int
    #: The schedule that it is a run of.
    schedule: str
    #: For which time that ran.
    scheduled_for: str
    approval: ListedHandoffApproval | None
    #: The agent that caught it.
    caught_by: str
    caught_at: str
    #: Deadline of the work; null while a question is open.
    work_expires_at: str | None
    #: Deadline of the next heartbeat; null while a question is open.
    heartbeat_expires_at: str | None
    #: When the catcher’s last heartbeat came.
    heartbeat_at: str
    #: What its worker calls itself (Handoff-Worker).
    worker: str
    #: When the latest checkpoint was given.
    checkpoint_at: str
    #: The catcher’s latest progress report.
    progress: ListedHandoffProgress
    #: When the passer asked the catcher to stop.
    cancel_requested_at: str
    #: Its open question.
    ask: ListedHandoffAsk
    completed_at: str
    #: When the handoff ended.
    ended_at: str
    #: The agent that ended the handoff; null if none did.
    ended_by: str | None
    #: Id of its successor.
    reissued_as: str
    #: As sent with fail, without its data.
    error: ListedHandoffError
    #: As sent with decline, truncated to 1,000 characters.
    reason: str
    #: What was missed: not_decided if a person still had to decide.
    expired_because: Literal["not_caught", "not_decided", "not_done", "stalled"]
    #: The first line of the task, up to 100 characters; only for keys with the scope operate or read.
    title: str
    #: Truncated to 200 characters; only for keys with the scope operate.
    task: str
    #: Only on a truncated task.
    task_truncated: Literal[True]


class HandoffList(TypedDict):
    """A tenant’s handoffs, like AVHdDBR3Ox_T_H9gltuUjYVhg. Members that only some handoffs have are left …"""

    #: May be fewer than ``limit``, or none, even if there is a next_cursor.
    items: list[ListedHandoff]
    #: The cursor of the next page; null on the last one.
    next_cursor: str | None


class _Redriven(TypedDict):
    #: Whether there are others: then send it again.
    more: bool


class Redriven(_Redriven, total=False):
    """What was reissued."""

    #: How many have a successor now.
    reissued: int
    #: How many could not be: they are gone, or somebody else reissued them.
    skipped: int
    #: How many would change.
    would_change: int


class _Purged(TypedDict):
    #: Whether there are others: then send it again.
    more: bool


class Purged(_Purged, total=False):
    """What was cancelled."""

    #: How many are cancelled now.
    cancelled: int
    #: With caught=ask: how many catchers are asked to stop.
    requested: int
    #: How many would change.
    would_change: int


class _WaitingApproval(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    #: As passed, truncated to 1,000 characters.
    task: str
    #: When the handoff was passed, by Redis’s clock.
    created_at: str
    #: The handoff can be caught until then.
    expires_at: str
    #: Name of the agent that passed the handoff.
    passed_by: str


class WaitingApproval(_WaitingApproval, total=False):
    """A part of an answer."""

    #: Only on a truncated task; /api/approvals/{id} has the full text.
    task_truncated: Literal[True]
    #: The handoff can be caught from then on; only if it was delayed.
    available_at: str
    #: The labels that it was passed with.
    labels: dict[str, str]


class ApprovalList(TypedDict):
    """Handoffs that wait for approval, oldest first."""

    #: May be fewer than ``limit``, or none, even if there is a next_cursor.
    items: list[WaitingApproval]
    #: The cursor of the next page; null on the last one.
    next_cursor: str | None


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


class _ApprovalDetails(TypedDict):
    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["pending", "caught", "done", "failed", "declined", "cancelled", "expired", "rejected"]
    #: As passed.
    task: str | None
    #: As passed; null once deleted.
    output: dict[str, Any] | None
    #: As passed; null once deleted.
    context: dict[str, Any] | None
    #: As passed.
    constraints: str | None
    #: When the handoff was passed, by Redis’s clock.
    created_at: str
    #: The handoff can be caught until then.
    expires_at: str
    #: Name of the agent that passed the handoff.
    passed_by: str
    approval: ApprovalDetailsApproval


class ApprovalDetails(_ApprovalDetails, total=False):
    """The complete handoff."""

    #: The inbox that it was passed to.
    to: str
    #: Its priority in that inbox.
    priority: int
    #: As passed.
    parent: str
    #: As passed: seconds.
    work_within: int
    #: As passed: seconds.
    heartbeat_within: int
    #: As passed.
    max_attempts: int
    #: The handoff can be caught from then on; only if it was delayed.
    available_at: str
    #: The labels that it was passed with.
    labels: dict[str, str]
    #: Digest of what was passed. Send it with approve or reject: the decision is refused if the content is different by
    #: then.
    digest: str
    #: As passed.
    result_schema: dict[str, Any]
    #: The address that is told what becomes of it.
    callback: ApprovalDetailsCallback


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


class Decided(TypedDict):
    """The decision is recorded."""

    #: The handoff’s id: 25 URL-safe characters.
    handoff_id: str
    status: Literal["pending", "rejected"]
    approval: DecidedApproval


class _BatchResult(TypedDict):
    #: The status that the single request would have had.
    status: int
    #: The body of its response: the answer, or a problem document.
    body: dict[str, Any]


class BatchResult(_BatchResult, total=False):
    """A part of an answer."""

    #: Only on a replayed answer: the operation had been carried out already.
    replayed: Literal[True]


class BatchResults(TypedDict):
    """The answers of the operations. One that fails does not affect the others. If one was rate limited, …"""

    #: One for each operation, in the order of the request.
    results: list[BatchResult]


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


class Event(TypedDict):
    """A part of an answer."""

    id: str
    type: Literal["handoff.passed", "handoff.approval_requested", "handoff.approved", "handoff.rejected", "handoff.caught", "handoff.asked", "handoff.answered", "handoff.ask_ended", "handoff.done", "handoff.failed", "handoff.declined", "handoff.cancelled", "handoff.cancel_requested", "handoff.expired", "handoff.reissued", "webhook.disabled"]
    #: When it was written to the feed. It never decreases in a feed.
    time: str
    data: EventData


class _EventsPage(TypedDict):
    #: In the order of the feed, each event once.
    items: list[Event]
    #: The value of ``after`` for the next request; there even if items is empty.
    next: str


class EventsPage(_EventsPage, total=False):
    """Events. With Accept: text/event-stream, the answer is a stream of server-sent events."""

    #: True if ``after`` is older than what is kept, or beyond both the newest event and Redis’s clock. Events may be
    #: missing then, and items starts with the oldest event kept.
    reset: bool


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


class WebhookEvent(TypedDict):
    """What a webhook brings."""

    type: str
    timestamp: str
    data: EventData


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
