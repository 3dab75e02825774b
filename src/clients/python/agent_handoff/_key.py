"""Where a client's key comes from."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from typing import Any, Union

from ._scope import TooLate
from .errors import HandoffError

#: A key or a token, or a function that gives one. The function is called for each request.
KeySource = Union[str, Callable[[], str]]

#: The path of a file with the key.
KeyFile = Union[str, "os.PathLike[str]"]


class Authorization:
    """What stands in the header field Authorization of a client's requests."""

    def __init__(self, get: Callable[[bool], str], fault: str, was_there: bool = False) -> None:
        """``get`` is told whether the key that it gave last was refused."""
        self._get = get
        self._fault = fault
        # If it gave a key before, what goes wrong now may pass.
        self._was_there = was_there

    #: Whether another key may be had where one was refused.
    is_renewable = True

    def read(self, is_refused: bool = False) -> str | None:
        """Raises HandoffError with the code ``key_unavailable``."""
        try:
            authorization = _bearer(self._get(is_refused))
        except (HandoffError, TooLate):
            raise
        except Exception as cause:
            detail = f"No key: {self._fault}: {str(cause) or type(cause).__name__}."
            raise HandoffError("key_unavailable", detail=detail, retryable=self._was_there) from cause
        self._was_there = True
        return authorization


class _Fixed(Authorization):
    """A key that stays, or none."""

    is_renewable = False

    def __init__(self, key: str | None) -> None:
        self._authorization = None if key is None else _bearer(key)

    def read(self, is_refused: bool = False) -> str | None:
        return self._authorization


#: For what needs no key.
WITHOUT_KEY: Authorization = _Fixed(None)


def authorization_of(key: KeySource | None, key_file: KeyFile | None) -> Authorization:
    """The first that is there: a key, a file, HANDOFF_KEY, HANDOFF_KEY_FILE.

    Raises ValueError or TypeError for what can't be a key, and for a file that can't be read.
    """
    if key is not None and key_file is not None:
        raise TypeError("key and key_file are given: one of them must do")
    if callable(key):
        return _of_function(key)
    fixed = key if key is not None or key_file is not None else os.environ.get("HANDOFF_KEY") or None
    if fixed is not None:
        return _Fixed(fixed)
    path = key_file if key_file is not None else os.environ.get("HANDOFF_KEY_FILE") or None
    return _Fixed(None) if path is None else _of_file(path)


def _of_function(key: Callable[[], str]) -> Authorization:
    if inspect.iscoroutinefunction(key):
        raise TypeError("the key is a coroutine function: AsyncClient takes these")
    return Authorization(lambda is_refused: key(), "the function that gives the key failed")


def _of_file(path: KeyFile) -> Authorization:
    fault = f"the key’s file {os.fspath(path)} can’t be used"
    read = _file_reader(path)
    try:
        _bearer(read(False))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{fault}: {error}") from error
    return Authorization(read, fault, was_there=True)


def _bearer(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, not {type(key).__name__}")
    if not re.fullmatch("[!-~]+", key):
        raise ValueError("a key must have only visible ASCII characters" if key else "a key must not be empty")
    return f"Bearer {key}"


def _file_reader(path: KeyFile) -> Callable[[bool], str]:
    """Reads a file when it has changed.

    Kubernetes replaces a token by another target of a link, so what is looked at is the target. It is looked at before
    it is read: one that changes in between is read once more.
    """
    # One tuple, so that threads see the two together.
    known: tuple[tuple[int, ...], str] = ((), "")

    def read(is_refused: bool) -> str:
        nonlocal known
        found = os.stat(path)
        state = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
        if is_refused or state != known[0]:
            # It may have a byte order mark in front.
            with open(path, encoding="utf-8-sig") as file:
                known = (state, file.read().strip())
        return known[1]

    return read
