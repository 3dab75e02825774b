"""Schedules: what passes handoffs by itself, again and again. Answers have the API's members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ._call import CallOptions, Request, Settings, call, key_of, path_of, query_of
from ._json import encode, with_texts

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import types as t


class Schedules:
    """A tenant's schedules."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def put(self, name: str, body: Mapping[str, Any], **options: Unpack[CallOptions]) -> t.Schedule:
        """Makes a schedule, or replaces all that it says."""
        return cast("t.Schedule", self._call("PUT", path_of("schedules", name), options, encode(body)))

    def get(self, name: str, **options: Unpack[CallOptions]) -> t.Schedule:
        """Reads a schedule."""
        return cast("t.Schedule", self._call("GET", path_of("schedules", name), options))

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> t.ScheduleList:
        """Lists the tenant's schedules by name."""
        answer = self._call("GET", f"/api/schedules{query_of(cursor=cursor, limit=limit)}", options)
        with_texts(answer, "items")
        return cast("t.ScheduleList", answer)

    def delete(self, name: str, **options: Unpack[CallOptions]) -> None:
        """Deletes a schedule. If an answer was lost, the retry finds none: that counts as this call's own."""
        def again(problem: dict[str, Any]) -> dict[str, Any] | None:
            return {} if problem.get("code") == "not_found" else None

        call(self._settings, Request("DELETE", path_of("schedules", name), again=again), options)

    def pause(self, name: str, **options: Unpack[CallOptions]) -> t.Schedule:
        """Stops it until it is resumed."""
        return cast("t.Schedule", self._call("POST", f"{path_of('schedules', name)}/pause", options, encode({})))

    def resume(self, name: str, **options: Unpack[CallOptions]) -> t.Schedule:
        """It goes on from its next time."""
        return cast("t.Schedule", self._call("POST", f"{path_of('schedules', name)}/resume", options, encode({})))

    def run(self, name: str, **options: Unpack[CallOptions]) -> t.Passed:
        """Passes its handoff now."""
        key = key_of(options)
        return cast("t.Passed", self._call("POST", f"{path_of('schedules', name)}/run", options, encode({}), key=key))

    def runs(self, name: str, *, limit: int | None = None, **options: Unpack[CallOptions]) -> t.ScheduleRuns:
        """The newest runs, the newest first."""
        answer = self._call("GET", f"{path_of('schedules', name)}/runs{query_of(limit=limit)}", options)
        with_texts(answer, "items")
        return cast("t.ScheduleRuns", answer)

    def backfill(self, name: str, since: str, until: str, **options: Unpack[CallOptions]) -> t.Backfilled:
        """Passes what didn't run in a span, up to 100: ``next`` is where to go on."""
        body = encode({"since": since, "until": until})
        return cast("t.Backfilled", self._call("POST", f"{path_of('schedules', name)}/backfill", options, body))

    def _call(
        self, method: str, path: str, options: CallOptions, body: bytes | None = None, key: str | None = None
    ) -> Any:
        return call(self._settings, Request(method, path, body, key), options)
