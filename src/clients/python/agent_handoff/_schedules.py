"""Schedules: what passes handoffs by itself, again and again. Answers have the API's members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._call import CallOptions, Request, Settings, call, key_of, path_of, query_of
from ._json import Answer, encode

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Schedules:
    """A tenant's schedules."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def put(self, name: str, body: Mapping[str, Any], **options: Unpack[CallOptions]) -> Answer:
        """Makes a schedule, or replaces all that it says."""
        return self._call("PUT", path_of("schedules", name), options, encode(body))

    def get(self, name: str, **options: Unpack[CallOptions]) -> Answer:
        """Reads a schedule."""
        return self._call("GET", path_of("schedules", name), options)

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> Answer:
        """Lists the tenant's schedules by name."""
        return self._call("GET", f"/api/schedules{query_of(cursor=cursor, limit=limit)}", options)

    def delete(self, name: str, **options: Unpack[CallOptions]) -> None:
        """Deletes a schedule. If an answer was lost, the retry finds none: that counts as this call's own."""
        def again(problem: dict[str, Any]) -> dict[str, Any] | None:
            return {} if problem.get("code") == "not_found" else None

        call(self._settings, Request("DELETE", path_of("schedules", name), again=again), options)

    def pause(self, name: str, **options: Unpack[CallOptions]) -> Answer:
        """Stops it until it is resumed."""
        return self._call("POST", f"{path_of('schedules', name)}/pause", options, encode({}))

    def resume(self, name: str, **options: Unpack[CallOptions]) -> Answer:
        """It goes on from its next time."""
        return self._call("POST", f"{path_of('schedules', name)}/resume", options, encode({}))

    def run(
        self, name: str, *, idempotency_key: str | None = None, **options: Unpack[CallOptions]
    ) -> Answer:
        """Passes its handoff now."""
        key = key_of({"idempotency_key": idempotency_key})
        return self._call("POST", f"{path_of('schedules', name)}/run", options, encode({}), key=key)

    def runs(self, name: str, *, limit: int | None = None, **options: Unpack[CallOptions]) -> Answer:
        """The newest runs, the newest first."""
        return self._call("GET", f"{path_of('schedules', name)}/runs{query_of(limit=limit)}", options)

    def backfill(self, name: str, since: str, until: str, **options: Unpack[CallOptions]) -> Answer:
        """Passes what didn't run in a span, up to 100: ``next`` is where to go on."""
        body = encode({"since": since, "until": until})
        return self._call("POST", f"{path_of('schedules', name)}/backfill", options, body)

    def _call(self, method: str, path: str, options: CallOptions, *body: bytes, **more: Any) -> Answer:
        return call(self._settings, Request(method, path, *body, **more), options)
