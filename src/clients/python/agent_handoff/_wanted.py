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
    group: str | None
