"""Requests of every kind, some as they should be and some spoiled, for all routes of the web server."""

import hashlib
import hmac
import json
import random
import time
from collections.abc import Iterator
from typing import Any

SLACK_SECRET = "shh"
TELEGRAM_SECRET = "telegram-secret"
ADMIN_TOKEN = "a-token-of-the-owner"
Request = tuple[str, str, dict[str, str], bytes]

ODD: list[Any] = [
    None, True, 0, -1, 2**70, 1.5, 1e308, "", " ", "x" * 300, "\ud800", "\x00", [], [[]], [None], {}, {"id": 7}, "D1",
    "1.1", ["message_changed"], {"a": {"b": []}}, "🎉",
]  # fmt: skip
ADA = {"id": 42, "is_bot": False, "first_name": "Ada", "language_code": "en"}
MESSAGE = {"message_id": 5, "date": 1_700_000_000, "chat": {"id": 42, "type": "private"}, "from": ADA, "text": "hello"}
SAID = {"type": "message", "channel": "D0ADA", "channel_type": "im", "user": "U0ADA", "text": "hi", "ts": "1.000001"}
CHANGED = {
    "type": "message", "subtype": "message_changed", "channel": "D0ADA", "channel_type": "im", "ts": "2.000001",
    "event_ts": "2.000001", "message": {**SAID, "text": "hello", "edited": {"user": "U0ADA", "ts": "2.000000"}},
    "previous_message": SAID, "hidden": True,
}  # fmt: skip
DELETED = {**CHANGED, "subtype": "message_deleted", "deleted_ts": "1.000001"}
MENTIONED = {**SAID, "type": "app_mention", "channel": "C0TEAM", "text": "<@U0BOT> hi", "thread_ts": "1.000000"}
STOPPED = {"type": "agent_session_stopped", "channel": "D0ADA", "event_ts": "3.000001"}
JOINED = {"type": "member_joined_channel", "channel": "C0TEAM", "user": "U0BOT", "inviter": "U0ADA"}
SLACK = [
    {"type": "event_callback", "team_id": "T1", "event_id": "E1", "event": event}
    for event in (SAID, CHANGED, DELETED, MENTIONED, STOPPED, JOINED, {"type": "app_home_opened", "tab": "messages"})
]
TELEGRAM = [
    {"update_id": 1, "message": MESSAGE},
    {"update_id": 2, "edited_message": MESSAGE | {"edit_date": 1}},
    {"update_id": 3, "message": MESSAGE | {"text": "/stop"}},
    {"update_id": 4, "callback_query": {"id": "1", "from": ADA, "data": "b0", "message": MESSAGE}},
    {"update_id": 5, "my_chat_member": {"chat": {"id": -5, "type": "group"}, "from": ADA, "date": 1}},
]
WEB = [
    ("/web/messages", {"id": "abcdefgh", "text": "hello", "files": []}),
    ("/web/stop", {"id": "abcdefgh"}),
    ("/web/new", {}),
    ("/web/messages", {"id": "abcdefgi", "text": "hello", "conversation": "a1", "edits": "abcdefgh", "files": []}),
    ("/web/conversations/rename", {"conversation": "first", "title": "mine"}),
    ("/web/conversations/delete", {"conversation": "first"}),
    ("/web/feedback", {"conversation": "first", "message": 1, "verdict": "good"}),
]
PAGES = (
    "/", "/web/events", "/web/earlier?before=5", "/web/files/1/0", "/web/notices/1/0",
    "/web/conversations?search=x&before=5",
    "/web/why?message=1", "/web/commands", "/web/app.webmanifest", "/?conversation=a1", "/inspect", "/inspect/1",
    "/inspect/1/1", "/web/login", "/web/logout", "/web/static/chat.css", "/healthz", "/readyz", "/slack/events",
    "/telegram/webhook", "/nowhere", "/web/static/../../x", "/inspect/99999999999999999999",
    "/web/earlier?before=\u00b2",
)  # fmt: skip


def spoil(value: Any, chance: random.Random) -> Any:
    """Return value with something odd somewhere in it, or something missing."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(sorted(value))
        spoiled = dict(value)
        if chance.random() < 0.2:
            del spoiled[name]
        else:
            spoiled[name] = spoil(value[name], chance)
        return spoiled
    if isinstance(value, list) and value and chance.random() < 0.9:
        return [spoil(value[0], chance), *value[1:]]
    return chance.choice(ODD)


def requests(count: int, seed: int) -> Iterator[Request]:
    """Yield requests: method, path, headers and body."""
    chance = random.Random(seed)
    for _ in range(count):
        make = chance.choice((_slack, _slack, _telegram, _web, _page))
        method, path, headers, body = make(chance)
        if chance.random() < 0.1:
            body = _torn(body, chance)
        if chance.random() < 0.1:
            headers = {**headers, chance.choice(sorted(headers) or ["x-odd"]): chance.choice(("", "x" * 2000, "é"))}
        yield method, path, headers, body


def _spoiled(value: Any, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(4)):
        value = spoil(value, chance)
    return json.dumps(value).encode()


def _torn(body: bytes, chance: random.Random) -> bytes:
    return chance.choice((body[: len(body) // 2], body[::-1], b"", b"\xff\xfe" + body, b"[" * 2000, body * 3))


def _slack(chance: random.Random) -> Request:
    body, at = _spoiled(chance.choice(SLACK), chance), str(int(time.time()))
    if chance.random() < 0.2:
        body = b"payload=" + body
    mark = hmac.new(SLACK_SECRET.encode(), b"v0:" + at.encode() + b":" + body, hashlib.sha256).hexdigest()
    kind = chance.choice(("application/json", "application/x-www-form-urlencoded", "text/plain"))
    headers = {"x-slack-request-timestamp": at, "x-slack-signature": f"v0={mark}", "content-type": kind}
    return "POST", "/slack/events", headers, body


def _telegram(chance: random.Random) -> Request:
    headers = {"x-telegram-bot-api-secret-token": TELEGRAM_SECRET, "content-type": "application/json"}
    return "POST", "/telegram/webhook", headers, _spoiled(chance.choice(TELEGRAM), chance)


def _web(chance: random.Random) -> Request:
    path, fields = chance.choice(WEB)
    headers = {
        "content-type": "application/json",
        "origin": "http://localhost",
        "authorization": f"Bearer {ADMIN_TOKEN}",
    }
    return "POST", path, headers, _spoiled(fields, chance)


def _page(chance: random.Random) -> Request:
    method = chance.choice(("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"))
    path = chance.choice(PAGES)
    is_endless = method == "GET" and path == "/web/events"
    headers = {} if is_endless or chance.random() < 0.5 else {"authorization": f"Bearer {ADMIN_TOKEN}"}
    return method, path, headers, b"" if method == "GET" else b"x=1"
