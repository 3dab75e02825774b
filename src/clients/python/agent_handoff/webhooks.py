"""Webhooks, as Standard Webhooks 1.0 has them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ._json import answer_of
from .errors import WebhookVerificationError

if TYPE_CHECKING:
    from . import types as t


def verify_webhook(
    headers: Mapping[str, str], body: bytes | str, secret: str, tolerance: float = 300
) -> t.WebhookEvent:
    """The event that a webhook brings. Raises WebhookVerificationError if it isn't the service's, or too old.

    ``body`` is what was received, byte for byte, and ``secret`` what the webhook was made with (``whsec_…``). The same
    event may come again: its id is the header ``webhook-id``.

    >>> event = verify_webhook(request.headers, request.get_data(), os.environ["WEBHOOK_SECRET"])
    >>> event["type"], event["data"]["handoff_id"]
    """
    key = _key(secret)
    given = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp, signatures = (given[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as missing:
        raise WebhookVerificationError(f"the header {missing.args[0]} is missing") from None
    if not re.fullmatch("[0-9]{1,12}", timestamp):
        raise WebhookVerificationError("webhook-timestamp is no time")
    content = body.encode() if isinstance(body, str) else bytes(body)
    signed = b".".join((id.encode(errors="replace"), timestamp.encode(), content))
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    # While a secret is being rotated there is one for each. All are compared, for as long as that takes.
    matches = [
        hmac.compare_digest(expected, value.encode(errors="replace"))
        for version, _, value in (one.partition(",") for one in signatures.split(" ")) if version == "v1"
    ]
    if not any(matches):
        raise WebhookVerificationError("no signature of the webhook is right")
    if abs(time.time() - int(timestamp)) > tolerance:
        raise WebhookVerificationError("the webhook is too old, or a clock is wrong")
    try:
        return cast("t.WebhookEvent", answer_of(content.decode()))
    except ValueError:
        raise WebhookVerificationError("the webhook's body is no JSON object") from None


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_").encode("ascii"), validate=True)
    except (binascii.Error, UnicodeError):
        key = b""
    if not key:
        raise ValueError("a webhook's secret is whsec_ and Base64")
    return key
