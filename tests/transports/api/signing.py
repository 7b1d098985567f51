"""What senders of events send with a body, so that one can prove who they are."""

import base64
import hashlib
import hmac
import json
import time

SECRET = "a-secret-of-a-sender"
KEY = base64.b64encode(b"a key of twenty-four by.").decode()


def _sign(key, content):
    return hmac.new(key, content, hashlib.sha256).digest()


def github(body, secret=SECRET, delivery="1"):
    """Return what GitHub sends."""
    signature = f"sha256={_sign(secret.encode(), body).hex()}"
    return {"x-hub-signature-256": signature, "x-github-delivery": delivery, "x-github-event": "push"}


def stripe(body, secret=SECRET, at=None):
    """Return what Stripe sends."""
    at = int(time.time()) if at is None else at
    return {"stripe-signature": f"t={at},v1={_sign(secret.encode(), f'{at}.'.encode() + body).hex()},v0=00"}


def standard(body, secret=KEY, at=None, name="msg_1", others=()):
    """Return what senders of Standard Webhooks send; others are signatures before the right one."""
    at = int(time.time()) if at is None else at
    made = base64.b64encode(_sign(base64.b64decode(secret), f"{name}.{at}.".encode() + body)).decode()
    return {"webhook-id": name, "webhook-timestamp": str(at), "webhook-signature": " ".join([*others, f"v1,{made}"])}


def bearer(_, secret=SECRET, key=None):
    """Return what a program with a token sends."""
    return {"authorization": f"Bearer {secret}"} | ({} if key is None else {"idempotency-key": key})


SIGN = {"github": github, "stripe": stripe, "standard-webhooks": standard, "bearer": bearer}


def write_hooks(folder, **hooks):
    """Write hooks.json and return its path."""
    standard_ones = {"from": "bearer", "secret": SECRET, "to": "transport=messenger chat_id=1"}
    path = folder / "hooks.json"
    path.write_text(json.dumps({"hooks": {name: standard_ones | hook for name, hook in hooks.items()}}))
    return str(path)
