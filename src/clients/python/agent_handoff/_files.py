"""Files that are too large to pass. Their bytes go to the service's store, by URLs that need no key."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, TypedDict, cast

from ._call import CallOptions, Request, Settings, call, key_of, path_of
from ._json import encode
from ._scope import backoff, now, pause, retry_pause
from .errors import HandoffError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import types as t

#: How much of a file is in memory at once.
_PIECE = 1 << 18
#: For how long a store may be silent, in seconds: it may have to write gigabytes to its disk.
_SILENCE = 300.0
#: The statuses of a store that may go by.
_PASSING = frozenset((408, 429, 500, 502, 503, 504))


class _Uploaded(TypedDict):
    name: str
    uri: str
    bytes: int
    sha256: str


class UploadedFile(_Uploaded, total=False):
    """An uploaded file: what ``files`` of a handoff take."""

    media_type: str


class Files:
    """A tenant's uploaded files."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def put(
        self, file: str | os.PathLike[str] | bytes, *, name: str | None = None, media_type: str | None = None,
        **options: Unpack[CallOptions],
    ) -> UploadedFile:
        """Uploads a file, as it streams from the disk; ``file`` is its path, or its bytes.

        ``name`` is by default the last part of the path; bytes need one. With the same ``idempotency_key`` again it
        sends no bytes that are there.
        """
        called = os.path.basename(os.fspath(file)) if name is None and not isinstance(file, bytes) else name
        if called is None:
            raise TypeError("bytes need a name")
        with io.BytesIO(file) if isinstance(file, bytes) else open(file, "rb") as body:
            digest, size = _digest_of(body)
            members = {"name": called, "bytes": size, "sha256": digest, "media_type": media_type}
            body_text = encode({key: value for key, value in members.items() if value is not None})
            made = cast("t.MadeFile", call(
                self._settings, Request("POST", "/api/files", body_text, key_of(options)), options
            ))
            upload = made["upload"]

            def send() -> None:
                body.seek(0)
                self._open(upload["url"], lambda answer: answer.read(), upload["method"], upload["headers"], body)

            def is_there() -> bool:
                return self.info(made["file_id"], **options)["state"] == "whole"

            if options.get("idempotency_key") is None or not is_there():
                try:
                    self._insist(send, options)
                except HandoffError:
                    # A store that writes an object once says so when the answer to an earlier attempt was lost.
                    if not is_there():
                        raise
        found = {"name": called, "uri": made["uri"], "media_type": media_type, "bytes": size, "sha256": digest}
        return cast("UploadedFile", {key: value for key, value in found.items() if value is not None})

    def info(self, file: str, **options: Unpack[CallOptions]) -> t.FileInfo:
        """What a file is, and for a while where its bytes are; ``file`` is its id or its ``handoff-file:`` URI."""
        return cast("t.FileInfo", call(self._settings, Request("GET", path_of("files", _id_of(file))), options))

    def get(self, file: str, path: str | os.PathLike[str], **options: Unpack[CallOptions]) -> t.FileInfo:
        """Downloads a file. It is at the path once all of it is there, with the right length and digest."""
        info = self.info(file, **options)
        url = info["url"]
        if url is None:
            raise HandoffError("file_missing", detail="Its bytes are not there yet.")
        # Its own name may be as long as a name can be.
        temporary = os.path.join(os.path.dirname(os.fspath(path)), f"{uuid.uuid4()}.part")

        def take(answer: IO[bytes]) -> None:
            with open(temporary, "wb", buffering=0) as target:
                digest, size = _digest_of(answer, lambda piece: _write(piece, target))
            if (digest, size) != (info["sha256"], info["bytes"]):
                raise HandoffError("connection_failed", detail="Other bytes came than were put.", retryable=True)

        try:
            self._insist(lambda: self._open(url, take), options)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)
        return info

    def delete(self, file: str, **options: Unpack[CallOptions]) -> None:
        """Deletes a file, while no handoff has it. If an answer was lost, the retry finds none: that counts too."""
        def again(problem: dict[str, Any]) -> dict[str, Any] | None:
            return {} if problem.get("code") == "not_found" else None

        call(self._settings, Request("DELETE", path_of("files", _id_of(file)), again=again), options)

    def _insist(self, send: Callable[[], None], options: CallOptions) -> None:
        """Does it again while the store can't answer."""
        given = options.get("retry_for")
        end = now() + (self._settings.retry_for if given is None else given)
        attempt = 0
        while True:
            try:
                return send()
            except HandoffError as error:
                left = end - now()
                if not error.retryable or left <= 0:
                    raise
                seconds = max(min(retry_pause(error.retry_after), left), backoff(attempt))
            pause(seconds)
            attempt += 1

    def _open(
        self, url: str, take: Callable[[IO[bytes]], object], method: str = "GET",
        headers: dict[str, str] | None = None, body: IO[bytes] | None = None,
    ) -> None:
        """One request to the store, without the key."""
        request = urllib.request.Request(url, data=body, method=method)
        for field, value in {"content-type": "application/octet-stream", **(headers or {})}.items():
            request.add_unredirected_header(field.capitalize(), value)
        context = self._settings.transport.context() if url.startswith("https:") else None
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect)
        try:
            with opener.open(request, timeout=_SILENCE) as answer:
                take(answer)
        except urllib.error.HTTPError as error:
            with error:
                wanted = error.headers.get("retry-after") or ""
            raise HandoffError(
                "connection_failed", status=error.code, retryable=error.code in _PASSING,
                detail=f"The store of files answered {error.code}.",
                retry_after=float(wanted) if wanted.isdigit() else None,
            ) from None
        except _DiskFault as fault:
            raise fault.error from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            # Nor is a folder that isn't there a fault of the store's.
            if isinstance(error, OSError) and error.filename is not None:
                raise
            raise HandoffError(
                "connection_failed", retryable=True, detail="The store of files did not answer, or broke off."
            ) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


def with_uploads(files: Files, body: Mapping[str, Any], options: CallOptions) -> Mapping[str, Any]:
    """A body whose files are what the API takes: it uploads those that are given by their paths, one after the other.

    Where the caller repeats a call, by its key, each upload is the one that it was before: its key is made of that key
    and its place.
    """
    given = body.get("files") if isinstance(body, Mapping) else None
    if given is None or isinstance(given, (str, os.PathLike)):
        return body
    key = options.get("idempotency_key")
    digest = None if key is None else hashlib.sha256(key.encode()).hexdigest()

    def sent(place: int, file: t.FileOrPath) -> Mapping[str, Any]:
        if not isinstance(file, (str, os.PathLike)):
            return file
        own: CallOptions = {**options, "idempotency_key": None if digest is None else f"file-{place}-{digest}"}
        return cast("Mapping[str, Any]", files.put(file, **own))

    return {**body, "files": [sent(place, file) for place, file in enumerate(given)]}


class _DiskFault(Exception):
    """What this machine's own disk could not do is no fault of a store's, and goes to the caller as it is."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


def _write(piece: bytes, target: io.FileIO) -> None:
    left = memoryview(piece)
    try:
        while left:
            left = left[target.write(left):]
    except OSError as error:
        raise _DiskFault(error) from None


def _digest_of(source: IO[bytes], take: Callable[[bytes], object] = lambda piece: None) -> tuple[str, int]:
    """The SHA-256 and the length of what it reads, piece by piece."""
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE):
        digest.update(piece)
        size += len(piece)
        take(piece)
    return digest.hexdigest(), size


def _id_of(file: str) -> str:
    return file.removeprefix("handoff-file:")
