"""One logical call: a request that is sent until there is an answer."""

from __future__ import annotations

import email.utils
import re
import time
import urllib.parse
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any, TypedDict

from ._json import Answer, answer_of, encode
from ._key import Authorization
from ._scope import backoff, current, now, pause, retry_pause
from ._transport import Reply, Transport
from .errors import HandoffError


class CallOptions(TypedDict, total=False):
    """What every call takes besides."""

    #: The operation's Idempotency-Key, by which it is carried out only once: 1 to 128 visible ASCII characters. By
    #: default each call makes a new one.
    idempotency_key: str | None
    #: What the worker that calls is named, for people who look after the work (Handoff-Worker): 1 to 100 of
    #: A-Z a-z 0-9 . _ : @ / -. ``work`` names itself.
    worker: str | None
    #: How long this call is asked again, in seconds; by default as the client's option says.
    retry_for: float | None
    #: How long one attempt of this call may take, in seconds, on top of its ``wait``.
    attempt_timeout: float | None


@dataclass
class Settings:
    """What all calls of a client share."""

    transport: Transport
    authorization: Authorization
    retry_for: float
    attempt_timeout: float
    #: When the last answer came.
    answered_at: float


@dataclass(frozen=True)
class Request:
    method: str
    #: The path and the query.
    path: str
    body: bytes | None = None
    key: str | None = None
    #: How long the service may wait before it answers, in seconds.
    wait: float | None = None
    #: Turns the refusal of a retry into an answer, if the refusal shows that an earlier attempt was carried out.
    again: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None


#: After so many seconds without an answer a long wait is preceded by a short request, which has so many for its answer.
_SILENCE, _PROBE_TIME = 15.0, 3.0

#: The statuses that are asked again: the service can't answer now, or a gateway couldn't reach it.
_PASSING = frozenset((408, 429, 502, 503, 504))


def call(settings: Settings, request: Request, options: Mapping[str, Any]) -> Answer:
    """Sends the request until there is an answer or ``retry_for`` is over, each time with the same bytes and key."""
    retry_for = _seconds(options, "retry_for", settings.retry_for)
    attempt_timeout = _seconds(options, "attempt_timeout", settings.attempt_timeout)
    headers = _headers(request, options.get("worker"))
    wait = request.wait or 0
    began = now()
    waited = 0.0
    is_silent = False
    attempt = 0
    while True:
        sent_at = now()
        try:
            reply = _send_with_key(settings, request, headers, attempt_timeout, wait, is_silent)
            return _read(reply, request.again if attempt > 0 or reply.is_second else None)
        except HandoffError as error:
            if not error.retryable:
                raise
            # Only where nothing came back in time: others show that a server is there, or close the connection.
            is_silent = error.code == "timeout"
            # What the service was asked to wait isn't lost. But where no server answers none waits.
            waited = min(wait, waited + now() - sent_at)
            left = retry_for + waited - (now() - began)
            if left <= 0 or (error.retry_after or 0) > left:
                raise
            # Not before Retry-After is over, and not all clients at the same moment then.
            rest = retry_pause(error.retry_after)
            # Only the pause is left of it: an error holds on to all that its call knew.
            seconds = max(rest, min(rest + backoff(attempt), left))
        pause(seconds)
        attempt += 1


def _seconds(options: Mapping[str, Any], name: str, default: float) -> float:
    value: float | None = options.get(name)
    return default if value is None else value


def _send_with_key(
    settings: Settings, request: Request, headers: dict[str, str], attempt_timeout: float, wait: float, is_silent: bool
) -> Reply:
    """One attempt. Where its key is refused, and another one may be had, it is made once more."""
    authorization = settings.authorization
    reply = _send(settings, request, _with_key(headers, authorization.read()), attempt_timeout, wait, is_silent)
    if reply.status == 401 and authorization.is_renewable:
        again = _with_key(headers, authorization.read(is_refused=True))
        reply = _send(settings, request, again, attempt_timeout, wait, False)
    return reply


def _with_key(headers: dict[str, str], authorization: str | None) -> dict[str, str]:
    return headers if authorization is None else {**headers, "Authorization": authorization}


def _send(
    settings: Settings, request: Request, headers: dict[str, str], attempt_timeout: float, wait: float, is_silent: bool
) -> Reply:
    """One attempt, on new connections if the last was unheard.

    A long one is preceded by a short one where nothing was heard for a while: what went silent meanwhile would let it
    wait in vain, and it would be unknown before its time is over.
    """
    transport, scope = settings.transport, current()
    probes = wait > 0 and (is_silent or now() - settings.answered_at > _SILENCE)
    if is_silent or probes:
        transport.drop_kept()
    if probes:
        # Any answer will do.
        transport.send("GET", "/healthz", None, {}, min(attempt_timeout, _PROBE_TIME), scope)
    reply = transport.send(request.method, request.path, request.body, headers, attempt_timeout + wait, scope)
    settings.answered_at = now()
    return reply


def _headers(request: Request, worker: str | None) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    if request.key is not None:
        headers["Idempotency-Key"] = request.key
    if worker is not None:
        headers["Handoff-Worker"] = worker
    return headers


def _read(reply: Reply, again: Callable[[dict[str, Any]], dict[str, Any] | None] | None) -> Answer:
    status = reply.status
    try:
        text = "{}" if status == 204 else reply.body.decode()
        answer = answer_of(text)
    except ValueError:
        raise _foreign(reply) from None
    if 200 <= status < 300:
        return answer
    if status < 400 or not isinstance(answer.get("code"), str):
        raise _foreign(reply)
    known = None if again is None else again(answer)
    if known is not None:
        return Answer(known, encode(known).decode())
    raise HandoffError(
        answer["code"], status, status in _PASSING,
        _text(answer.get("request_id")) or reply.headers.get("X-Request-Id"),
        _text(answer.get("detail")), _text(answer.get("handoff_status")), _text(answer.get("reissued_as")),
        _faults(answer.get("errors")), retry_after=_retry_after(reply.headers), text=text,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _faults(value: object) -> list[dict[str, Any]] | None:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else None


def _foreign(reply: Reply) -> HandoffError:
    """The error for an answer that isn't the service's: a gateway's error page, mostly."""
    status, headers = reply.status, reply.headers
    if 300 <= status < 400 and status != 304:
        # Without what may be secret in it.
        to = re.split("[?#]", headers.get("Location", ""))[0][:200]
        what = f"a redirect{f' to {to!r}' if to else ''}, which isn’t followed: give the address that it leads to"
    else:
        start = reply.body[:200].decode(errors="replace").strip()[:60]
        what = f"{headers.get('Content-Type', 'no content type')}, {f'beginning {start!r}' if start else 'empty'}"
    return HandoffError(
        "connection_failed", status, status in _PASSING, headers.get("X-Request-Id"),
        f"The answer isn’t the service’s: status {status}, {what}.", retry_after=_retry_after(headers),
    )


def _retry_after(headers: Message) -> float | None:
    """Retry-After in seconds. A date in it is by the clock that the answer's own Date is of."""
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch("[0-9]{1,12}", value):
        return float(value)
    until, sent = _date(value), _date(headers.get("Date", ""))
    return None if until is None else max(0.0, until - (time.time() if sent is None else sent))


def _date(value: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def key_of(options: Mapping[str, Any], longest: int = 128) -> str:
    key: str | None = options.get("idempotency_key")
    if key is None:
        return str(uuid.uuid4())
    if not isinstance(key, str) or not re.fullmatch(f"[!-~]{{1,{longest}}}", key):
        raise ValueError(f"an idempotency_key must be 1 to {longest} visible ASCII characters")
    return key


def path_of(what: str, name: str) -> str:
    """The path of an operation on a handoff or an inbox."""
    if not isinstance(name, str):
        raise TypeError(f"an id or a name is a str, not {type(name).__name__}")
    return f"/api/{what}/{urllib.parse.quote(name, safe='', errors='replace')}"


def query_of(**members: object) -> str:
    """The query of the members that aren't None, with its question mark; empty if there are none."""
    given = {name: value for name, value in members.items() if value is not None}
    quoted = urllib.parse.urlencode(given, quote_via=urllib.parse.quote, safe="", errors="replace")
    return f"?{quoted}" if given else ""


def labels_text(labels: Mapping[str, str] | None) -> str | None:
    """The labels that a list is to have, as a query says them. Raises ValueError for what would be others there."""
    if labels is None:
        return None
    if any(re.search("[:,]", name) or "," in value for name, value in labels.items()):
        raise ValueError("a label’s name has no colon, and neither it nor its value has a comma")
    return ",".join(f"{name}:{value}" for name, value in labels.items())

