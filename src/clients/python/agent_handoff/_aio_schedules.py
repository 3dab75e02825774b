"""Schedules as coroutines: those of the client for threads, each in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ._call import CallOptions
from ._schedules import Schedules

if TYPE_CHECKING:
    from ._aio_operations import AsyncOperations
    from typing_extensions import Unpack

    from . import types as t

T = TypeVar("T")


class AsyncSchedules:
    """A tenant's schedules."""

    def __init__(self, operations: AsyncOperations) -> None:
        self._operations = operations

    async def put(self, name: str, body: Mapping[str, Any], **options: Unpack[CallOptions]) -> t.Schedule:
        """Makes a schedule, or replaces all that it says."""
        return await self._run(lambda schedules: schedules.put(name, body, **options))

    async def get(self, name: str, **options: Unpack[CallOptions]) -> t.Schedule:
        """Reads a schedule."""
        return await self._run(lambda schedules: schedules.get(name, **options))

    async def list(
        self, *, cursor: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> t.ScheduleList:
        """Lists the tenant's schedules by name."""
        return await self._run(lambda schedules: schedules.list(cursor=cursor, limit=limit, **options))

    async def delete(self, name: str, **options: Unpack[CallOptions]) -> None:
        """Deletes a schedule. What it has passed stays."""
        await self._run(lambda schedules: schedules.delete(name, **options))

    async def pause(self, name: str, **options: Unpack[CallOptions]) -> t.Schedule:
        """Stops it until it is resumed."""
        return await self._run(lambda schedules: schedules.pause(name, **options))

    async def resume(self, name: str, **options: Unpack[CallOptions]) -> t.Schedule:
        """It goes on from its next time."""
        return await self._run(lambda schedules: schedules.resume(name, **options))

    async def run(self, name: str, **options: Unpack[CallOptions]) -> t.Passed:
        """Passes its handoff now."""
        return await self._run(lambda schedules: schedules.run(name, **options))

    async def runs(
        self, name: str, *, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> t.ScheduleRuns:
        """The newest runs, the newest first."""
        return await self._run(lambda schedules: schedules.runs(name, limit=limit, **options))

    async def backfill(
        self, name: str, since: str, until: str, **options: Unpack[CallOptions]
    ) -> t.Backfilled:
        """Passes what didn't run in a span, up to 100: ``next`` is where to go on."""
        return await self._run(lambda schedules: schedules.backfill(name, since, until, **options))

    async def _run(self, call: Callable[[Schedules], T]) -> T:
        return await self._operations._run(lambda: call(self._operations._client.schedules))
