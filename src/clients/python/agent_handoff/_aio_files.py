"""Files as coroutines: those of the client for threads, each in a thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ._call import CallOptions
from ._files import Files, UploadedFile

if TYPE_CHECKING:
    from ._aio_operations import AsyncOperations
    from typing_extensions import Unpack

    from . import types as t

T = TypeVar("T")


class AsyncFiles:
    """A tenant's uploaded files."""

    def __init__(self, operations: AsyncOperations) -> None:
        self._operations = operations

    async def put(
        self, file: str | os.PathLike[str] | bytes, *, name: str | None = None, media_type: str | None = None,
        **options: Unpack[CallOptions],
    ) -> UploadedFile:
        """Uploads a file, as it streams from the disk; ``file`` is its path, or its bytes."""
        return await self._run(lambda files: files.put(file, name=name, media_type=media_type, **options))

    async def info(self, file: str, **options: Unpack[CallOptions]) -> t.FileInfo:
        """What a file is, and for a while where its bytes are."""
        return await self._run(lambda files: files.info(file, **options))

    async def get(self, file: str, path: str | os.PathLike[str], **options: Unpack[CallOptions]) -> t.FileInfo:
        """Downloads a file. It is at the path once all of it is there, with the right length and digest."""
        return await self._run(lambda files: files.get(file, path, **options))

    async def delete(self, file: str, **options: Unpack[CallOptions]) -> None:
        """Deletes a file, while no handoff has it."""
        await self._run(lambda files: files.delete(file, **options))

    async def _run(self, call: Callable[[Files], T]) -> T:
        return await self._operations._run(lambda: call(self._operations._client.files))
