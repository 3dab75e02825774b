"""Signatures of people's decisions."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from ._call import Request, Settings, call
from ._json import answer_of, member_spans, value_of
from ._key import WITHOUT_KEY
from ._scope import now
from .errors import HandoffError

if TYPE_CHECKING:
    from ._call import CallOptions
    from ._json import Answer
    from ._transport import Address


class SignedDecision(TypedDict):
    """What a person decided, as the service signed it."""

    #: The service's address.
    iss: str
    #: The handoff that the person decided on. A further attempt has another id.
    handoff_id: str
    tenant: str
    to: str | None
    passed_by: str
    created_at: str
    #: Of the content, as ``approval`` has it.
    digest: str | None
    #: Whether who decided sent the digest of what they saw.
    confirmed: bool
    state: Literal["approved", "rejected"]
    decided_at: str
    decided_by: str
    #: Whom an issuer signed in; None for a key.
    decided_by_subject: str | None
    note: str | None


class Jwks(TypedDict):
    """Public keys (RFC 7517)."""

    keys: Sequence[Mapping[str, Any]]


#: How long the service's keys are kept, and from when on an unknown one makes them read again, in seconds.
_KEPT_FOR, _KEPT_AT_LEAST = 300.0, 10.0

#: The members that stand beside a signature, and in it.
_TOLD = ("state", "decided_at", "decided_by", "decided_by_subject", "note")


class Verifier:
    """Checks signatures of people's decisions."""

    def __init__(self, settings: Settings) -> None:
        self._settings = dataclasses.replace(settings, authorization=WITHOUT_KEY)
        self._jwks: tuple[float, Jwks] | None = None

    def verify(self, caught: Answer, jwks: Jwks | None, issuer: str | None, options: CallOptions) -> SignedDecision:
        text = caught.text
        shown = answer_of(text)
        approval = shown.get("approval") or {}
        jws = approval.get("signature")
        if not isinstance(jws, str):
            raise _fault("unsigned", "the answer has no signature")
        parts = [_decoded(part) for part in jws.split(".")]
        if len(parts) != 3 or None in parts:
            raise _fault("signature", "it is no compact JWS")
        header, payload, signature = cast("list[bytes]", parts)
        protected = _object_in(header)
        x = self._key_of(protected.get("kid"), jwks, options)
        is_ours = protected.get("alg") == "EdDSA" and protected.get("typ") == "handoff-approval+jws"
        if not is_ours or "crit" in protected:
            raise _fault("signature", "it is of another kind")
        _check(x, signature, jws[:jws.rindex(".")].encode())
        claims = _object_in(payload)
        if any(name not in claims or approval.get(name) != claims[name] for name in _TOLD):
            raise _fault("signature", "the answer says something else than what was signed")
        if claims.get("iss") != (_own(self._settings.transport.address) if issuer is None else issuer):
            raise _fault("issuer", f"it was signed by {claims.get('iss')}")
        if not _is_of(shown, claims):
            raise _fault("handoff", f"it is for the handoff {claims.get('handoff_id')}")
        digest = claims.get("digest")
        if digest is None or approval.get("digest") != digest or _digest_of(text) != digest:
            raise _fault("digest", "the content is gone" if shown.get("task") is None else "the content is another one")
        if claims["state"] != "approved":
            raise _fault("rejected", "a person has rejected it")
        return cast("SignedDecision", claims)

    def _key_of(self, kid: object, jwks: Jwks | None, options: CallOptions) -> bytes:
        """Raises HandoffError with the code ``unknown_key``, and what a call raises."""
        jwk = _key_in(self._published(_KEPT_FOR, options) if jwks is None else jwks, kid)
        if jwk is None and jwks is None:
            jwk = _key_in(self._published(_KEPT_AT_LEAST, options), kid)
        if jwk is None:
            raise _fault("unknown_key", f"there is no key {kid}")
        x = _decoded(str(jwk.get("x")))
        if x is None or len(x) != 32:
            raise _fault("unknown_key", f"the key {kid} can’t be used")
        return x

    def _published(self, age: float, options: CallOptions) -> Jwks:
        """The service's keys, which are read again when they are older."""
        if self._jwks is not None and now() - self._jwks[0] < age:
            return self._jwks[1]
        at = now()
        try:
            found = cast("Jwks", call(self._settings, Request("GET", "/.well-known/jwks.json"), options))
        except HandoffError as error:
            if error.status != 404:
                raise
            found = {"keys": []}
        self._jwks = (at, found)
        return found


def _own(address: Address) -> str:
    is_usual = address.port == (443 if address.scheme == "https" else 80)
    return str(dataclasses.replace(address, port=None) if is_usual else address)


def _fault(code: str, detail: str) -> HandoffError:
    return HandoffError(code, detail=f"The decision can’t be relied on: {detail}.")


def _check(x: bytes, signature: bytes, signed: bytes) -> None:
    try:
        # Type checkers may not have it.
        from cryptography.exceptions import InvalidSignature  # type: ignore[import-not-found,unused-ignore]
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # type: ignore[import-not-found,unused-ignore]
            Ed25519PublicKey,
        )
    except ImportError as missing:
        raise ImportError('verify_approval needs cryptography: pip install "agent_handoff[verify]"') from missing
    try:
        Ed25519PublicKey.from_public_bytes(x).verify(signature, signed)
    except InvalidSignature:
        raise _fault("signature", "it is wrong") from None


def _key_in(jwks: Jwks, kid: object) -> Mapping[str, Any] | None:
    for key in jwks["keys"]:
        is_right = key.get("kty") == "OKP" and key.get("crv") == "Ed25519"
        if is_right and key.get("kid") == kid and key.get("use", "sig") == "sig" and key.get("alg", "EdDSA") == "EdDSA":
            return key
    return None


def _decoded(text: str) -> bytes | None:
    """The bytes that base64url says, without padding; None if it is something else."""
    if not re.fullmatch("[A-Za-z0-9_-]+", text) or len(text) % 4 == 1:
        return None
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _object_in(part: bytes) -> dict[str, Any]:
    try:
        value = value_of(part.decode())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _fault("signature", "it is no compact JWS")
    return value


def _is_of(shown: Mapping[str, Any], claims: Mapping[str, Any]) -> bool:
    """Is it a decision on this handoff, or on an earlier attempt?

    The second attempt names the first. A later one doesn't, but all attempts' ids begin alike.
    """
    id, passed_by = claims.get("handoff_id"), claims.get("passed_by")
    if shown.get("to") != claims.get("to", "") or shown.get("passed_by", passed_by) != passed_by:
        return False
    if shown.get("handoff_id") == id:
        return bool(shown.get("created_at") == claims.get("created_at"))
    attempt = shown.get("attempt")
    if not isinstance(attempt, int):
        return False
    is_near = attempt > 2 and str(shown.get("handoff_id"))[:3] == str(id)[:3]
    return bool(shown.get("reissue_of") == id) or is_near


def _digest_of(text: str) -> str | None:
    """The digest of what was passed, as the answer has it. None where names are repeated: then readers may differ."""
    spans = member_spans(text)
    names = [name for name, _, _ in spans]
    if len(set(names)) < len(names) or "task" not in names or "created_at" not in names:
        return None
    first, end = names.index("task"), names.index("created_at")
    if end <= first:
        return None
    content = f"{{{text[spans[first][1]:spans[end - 1][2]]}}}"
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}:"
