"""What calls are given besides members of a pass: a query's parameters have no schema of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

#: A file of a pass or a done: what the API takes, which ``files.put`` returns, or a path, which is uploaded first.
FileOrPath = Mapping[str, Any] | str | os.PathLike[str]
#: Who is asked.
Asker = Literal["person", "passer"]
#: What is waited for.
Until = Literal["caught", "done"]
#: How many of several are waited for.
HowMany = Literal["all", "any"]


class _Wanted(TypedDict, total=False):
    inbox: str | None
    passed_by: str | None
    #: They have all of these.
    labels: Mapping[str, str] | None
    #: The code given to ``fail``.
    error_code: str | None
    #: They ended then or later: a time like 2026-11-20T09:00:00.000Z.
    since: str | None
    #: They ended before that.
    until: str | None
    idempotency_key: str | None
    retry_for: float | None
    attempt_timeout: float | None


class FailedWanted(_Wanted, total=False):
    """What failed handoffs are to have, and the options of a call."""

    #: How they ended.
    status: Sequence[Literal["failed", "declined", "expired"]]


class ListWanted(_Wanted, total=False):
    """What listed handoffs are to have. What is only about an end needs the state ``failed`` or ``ended``."""

    state: Literal["live", "failed", "ended"] | None
    #: Of what has ended, also attempts that have a successor.
    attempts: Literal["all"] | None
    #: How they ended.
    status: Sequence[Literal["done", "failed", "declined", "cancelled", "expired", "rejected"]]
    caught_by: str | None
    group: str | None
    #: The schedule that they are runs of.
    schedule: str | None
