"""Signatures as their senders publish them, and what is none."""

import time

import pytest

from tests.transports.api.signing import KEY, SECRET, SIGN, github, standard, stripe
from transports.api.signatures import FRESH_SECONDS, Sender, SenderKind, delivery_id

BODY = b'{"test": 1}'
SECRETS = {"standard-webhooks": f"whsec_{KEY}"}


def is_proved(sender, headers, body, now=None):
    now = time.time() if now is None else now
    return sender.may_be_signed(headers, None, now) and sender.is_signed(headers, body)


def test_the_example_of_github_is_signed():
    """Source: docs.github.com, "Validating webhook deliveries", "Testing the webhook payload validation"."""
    sender = Sender.of(SenderKind.GITHUB, "It's a Secret to Everybody")
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"  # pragma: allowlist secret
    assert is_proved(sender, {"x-hub-signature-256": signature}, b"Hello, World!")
    assert not is_proved(sender, {"x-hub-signature-256": signature}, b"Hello, World")


def test_the_example_of_standard_webhooks_is_signed():
    """Source: the tests of the reference libraries of standard-webhooks."""
    sender = Sender.of(SenderKind.STANDARD, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")  # pragma: allowlist secret
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,bm9wZQ== v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert is_proved(sender, headers, b'{"test": 2432232314}', 1614265330.0)
    assert not is_proved(sender, headers, b'{"test": 2432232314}', 1614265330.0 + FRESH_SECONDS + 1)
    assert not is_proved(sender, headers, b'{"test": 2432232314}', 1614265330.0 - FRESH_SECONDS - 1)


def test_a_header_in_the_form_of_stripe_is_read():
    """Source: docs.stripe.com, "Verify webhook signatures manually"; Stripe publishes no secret with its example."""
    sender = Sender.of(SenderKind.STRIPE, "whsec_test_secret_0123456789")  # pragma: allowlist secret
    headers = stripe(BODY, "whsec_test_secret_0123456789", 1492774577)
    assert headers["stripe-signature"].startswith("t=1492774577,v1=")
    assert is_proved(sender, headers, BODY, 1492774577.0)
    two = {"stripe-signature": headers["stripe-signature"].replace(",v1=", f",v1={'0' * 64},v1=")}
    assert is_proved(sender, two, BODY, 1492774577.0)
    only_old = {"stripe-signature": headers["stripe-signature"].replace(",v1=", ",v0=")}
    assert not is_proved(sender, only_old, BODY, 1492774577.0)


@pytest.mark.parametrize("kind", SIGN)
def test_what_is_signed_otherwise_is_not_taken(kind):
    sender = Sender.of(SenderKind(kind), SECRETS.get(kind, SECRET))
    headers = SIGN[kind](BODY)
    assert is_proved(sender, headers, BODY)
    assert not is_proved(sender, {}, BODY)
    assert not is_proved(sender, dict.fromkeys(headers, ""), BODY)
    assert not is_proved(sender, dict.fromkeys(headers, "ä\x00"), BODY)
    other = "b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIh" if kind == "standard-webhooks" else "another-secret-of-one"
    assert not is_proved(sender, SIGN[kind](BODY, other), BODY)
    if kind != "bearer":
        assert not is_proved(sender, headers, BODY + b" ")


@pytest.mark.parametrize("sign", [stripe, standard])
@pytest.mark.parametrize("seconds", [-FRESH_SECONDS - 5, FRESH_SECONDS + 5])
def test_what_was_signed_at_another_time_is_not_taken(sign, seconds):
    kind = SenderKind.STRIPE if sign is stripe else SenderKind.STANDARD
    sender = Sender.of(kind, SECRET if sign is stripe else KEY)
    assert not is_proved(sender, sign(BODY, at=int(time.time()) + seconds), BODY)


@pytest.mark.parametrize("header", ["t=1,t=2,v1=0", "v1=00", "t=,v1=00", "t=1e9,v1=0", "t=٣,v1=0", "t=" + "9" * 99])
def test_times_that_are_none_are_not_taken(header):
    assert not is_proved(Sender.of(SenderKind.STRIPE, SECRET), {"stripe-signature": header}, BODY, 1.0)


def test_a_delivery_is_named_by_its_sender_or_by_its_body():
    first, second = (delivery_id(SenderKind.GITHUB, github(BODY, delivery=each), BODY) for each in ("d1", "d2"))
    assert first != second
    first, second = (delivery_id(SenderKind.STRIPE, stripe(BODY, at=each), BODY) for each in (1, 2))
    assert first == second
    assert delivery_id(SenderKind.BEARER, {}, BODY) != delivery_id(SenderKind.BEARER, {}, BODY + b" ")
