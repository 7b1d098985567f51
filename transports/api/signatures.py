"""Proving who sent an event: each kind of sender signs in its own way."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from botservice.core.errors import SettingsError
from transports.common.requests import bearer_of, is_same

FRESH_SECONDS: Final = 300  # Source: standardwebhooks.com, and docs.stripe.com, "Receive Stripe events"
SHORTEST_SECRET: Final = 16
_PREFIX: Final = "whsec_"


class SenderKind(StrEnum):
    """How a sender proves who it is."""

    GITHUB = "github"
    STANDARD = "standard-webhooks"
    STRIPE = "stripe"
    SLACK = "slack-compatible"
    BEARER = "bearer"


_IDS: Final = {
    SenderKind.GITHUB: "x-github-delivery",
    SenderKind.STANDARD: "webhook-id",
    SenderKind.BEARER: "idempotency-key",
}


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends the events of a hook.

    Attributes:
        key: What it signs with, or what it sends.
    """

    kind: SenderKind
    key: bytes

    @classmethod
    def of(cls, kind: SenderKind, secret: str) -> "Sender":
        """Read a secret as its sender gives it.

        Raises:
            SettingsError: it is none of that sender's, or it can be guessed.
        """
        if kind is SenderKind.STANDARD:
            try:
                key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
            except (binascii.Error, ValueError):
                raise SettingsError("it must be whsec_ and base64, as the sender gives it") from None
        else:
            key = secret.encode()
        if len(key) < SHORTEST_SECRET:
            raise SettingsError(f"it must have {SHORTEST_SECRET} characters or more, or it can be guessed")
        if kind is SenderKind.SLACK and not all(each.isalnum() or each in "-_" for each in secret):
            raise SettingsError("it must be letters, digits, - and _, because it stands in the address")
        return cls(kind, key)

    def may_be_signed(self, headers: Mapping[str, str], in_address: str | None, now: float) -> bool:
        """Return whether headers are those of a signed request; its body is not read yet."""
        match self.kind:
            case SenderKind.BEARER:
                return is_same(bearer_of(headers) or "", self.key.decode())
            case SenderKind.SLACK:
                return is_same(in_address or "", self.key.decode())
            case SenderKind.GITHUB:
                return headers.get("x-hub-signature-256", "").startswith("sha256=")
            case SenderKind.STRIPE:
                return _is_fresh(_of_stripe(headers)[0], now)
            case SenderKind.STANDARD:
                return _is_fresh(headers.get("webhook-timestamp", ""), now) and bool(headers.get("webhook-id"))

    def is_signed(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Return whether a body is signed as headers say, where those may be of a signed request."""
        match self.kind:
            case SenderKind.BEARER | SenderKind.SLACK:
                return True
            case SenderKind.GITHUB:
                given = headers["x-hub-signature-256"].removeprefix("sha256=")
                return is_same(given, self._sign(body).hex())
            case SenderKind.STRIPE:
                at, signatures = _of_stripe(headers)
                made = self._sign(at.encode() + b"." + body).hex()
                return any(is_same(each, made) for each in signatures)
            case SenderKind.STANDARD:
                at, name = headers["webhook-timestamp"], headers["webhook-id"]
                made = base64.b64encode(self._sign(f"{name}.{at}.".encode() + body)).decode()
                given_all = headers.get("webhook-signature", "").split(" ")
                return any(is_same(each, f"v1,{made}") for each in given_all)

    def _sign(self, content: bytes) -> bytes:
        return hmac.new(self.key, content, hashlib.sha256).digest()


def delivery_id(kind: SenderKind, headers: Mapping[str, str], body: bytes) -> str:
    """Return what names a delivery: the id that its kind of sender gives, or else a digest of its body.

    No other header counts: with one that is not signed, anybody who recorded a delivery could repeat it as a new one.
    """
    name = _IDS.get(kind, "")
    return f"{name}:{headers[name]}" if headers.get(name) else f"body:{hashlib.sha256(body).hexdigest()}"


def _of_stripe(headers: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the time and the signatures that a header `t=…,v1=…,v1=…` holds."""
    pairs = [part.strip().partition("=") for part in headers.get("stripe-signature", "").split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    return times[0] if len(times) == 1 else "", [value for name, _, value in pairs if name == "v1"]


def _is_fresh(at: str, now: float) -> bool:
    return at.isascii() and at.isdecimal() and len(at) < 16 and abs(now - int(at)) <= FRESH_SECONDS
