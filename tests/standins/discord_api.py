"""A stand-in of Discord's API: interactions that it signs and delivers, and the calls that answer them.

Source: Discord's developer documentation, "Receiving and Responding to Interactions" and "Create Message", API v10.
"""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from standins.serving import Entry, Exchange, Served

APPLICATION, TOKEN = "4242", "token-of-the-discord-bot"
_RESPONSE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Entry):
    """A message that appeared, or says something else now."""

    channel_id: str
    message_id: str
    content: str
    is_edit: bool


@dataclass(slots=True)
class _Message:
    channel_id: str
    content: str = ""
    components: list[Any] = field(default_factory=list)
    nonce: str | None = None


class DiscordApi(Served):
    """Discord, as one application meets it.

    Attributes:
        bot_url: Where interactions are delivered.
        failures: Statuses that the next calls are answered with.
    """

    def __init__(self) -> None:
        super().__init__()
        self._key = Ed25519PrivateKey.generate()
        self._ids = itertools.count(1000)
        self._messages: dict[str, _Message] = {}
        self._originals: dict[str, str | None] = {}  # by the tokens of interactions: the message, once there is one
        self.commands: list[Any] = []
        self.bot_url = ""
        self.failures: list[int] = []

    @classmethod
    @contextmanager
    def running(cls) -> Iterator["DiscordApi"]:
        api = cls()
        with api.serving():
            yield api

    @property
    def public_key(self) -> str:
        return self._key.public_key().public_bytes_raw().hex()

    def visible(self, channel_id: str = "7") -> list[str]:
        """Return what stands in a channel."""
        with self.condition:
            return [each.content for each in self._messages.values() if each.channel_id == channel_id]

    def buttons(self, channel_id: str = "7") -> list[dict[str, Any]]:
        with self.condition:
            found = [each for each in self._messages.values() if each.channel_id == channel_id]
            return [button for each in found for row in each.components for button in row["components"]]

    def expire_tokens(self) -> None:
        with self.condition:
            self._originals.clear()

    def asks(self, text: str, *, channel_id: str = "7") -> dict[str, Any]:
        """Have a person say /ask, and return what the bot says at once."""
        return self._interact(
            {"type": 2, "data": {"name": "ask", "options": [{"name": "question", "value": text}]}}, channel_id
        )

    def presses(self, custom_id: str, *, channel_id: str = "7") -> dict[str, Any]:
        return self._interact({"type": 3, "data": {"custom_id": custom_id}}, channel_id)

    def _interact(self, said: dict[str, Any], channel_id: str) -> dict[str, Any]:
        number = str(next(self._ids))
        token = f"interaction-{number}"
        user = {"id": "5", "username": "ann", "global_name": "Ann"}
        body = {
            "id": number,
            "token": token,
            "channel_id": channel_id,
            "guild_id": "9",
            "member": {"user": user},
            **said,
        }
        with self.condition:
            self._originals[token] = None
        response = self.deliver(json.dumps(body).encode())
        response.raise_for_status()
        return self._respond(token, channel_id, response.json())

    def _respond(self, token: str, channel_id: str, answer: dict[str, Any]) -> dict[str, Any]:
        if answer["type"] == 5:
            with self.condition:
                message_id = str(next(self._ids))
                self._messages[message_id] = _Message(channel_id, "is thinking…")
                self._originals[token] = message_id
        return answer

    def deliver(self, body: bytes, *, signature: str | None = None) -> httpx.Response:
        """Deliver a body to the bot, signed as it is or otherwise."""
        timestamp = "1763800000"
        signature = signature or self._key.sign(timestamp.encode() + body).hex()
        headers = {"x-signature-ed25519": signature, "x-signature-timestamp": timestamp}
        return httpx.post(self.bot_url, content=body, headers=headers, timeout=_RESPONSE_SECONDS * 10)

    async def handle(self, exchange: Exchange) -> None:
        body = json.loads(await exchange.body())
        if self.failures:
            status = self.failures.pop(0)
            await exchange.answer_json(status, {"message": "as the test wants it", "retry_after": 0.01})
            return
        status, answer = self._answer(exchange.method, exchange.path, exchange.headers, body)
        await exchange.answer_json(status, answer)

    def _answer(self, method: str, path: str, headers: Any, body: Any) -> tuple[int, Any]:
        with self.condition:
            match method, path.strip("/").split("/"):
                case "PATCH", ["webhooks", "4242", token, "messages", "@original"]:
                    message_id = self._originals.get(token)
                    return (404, {"code": 10015}) if message_id is None else self._edit(message_id, body)
                case _ if headers.get("authorization") != f"Bot {TOKEN}":
                    return 401, {"message": "401: Unauthorized"}
                case "PUT", ["applications", "4242", "commands"]:
                    self.commands = body
                    return 200, body
                case "POST", ["channels", channel_id, "messages"]:
                    return self._send(channel_id, body)
                case "PATCH", ["channels", _, "messages", message_id] if message_id in self._messages:
                    return self._edit(message_id, body)
        return 404, {"message": "404: Not Found"}

    def _send(self, channel_id: str, body: Any) -> tuple[int, Any]:
        if problem := _problem(body):
            return 400, problem
        nonce = body.get("nonce") if body.get("enforce_nonce") else None
        known = next((key for key, each in self._messages.items() if nonce and each.nonce == nonce), None)
        if known is not None:
            return 200, {"id": known}
        message_id = str(next(self._ids))
        self._messages[message_id] = _Message(channel_id, body["content"], body.get("components", []), nonce)
        self._record(message_id, is_edit=False)
        return 200, {"id": message_id}

    def _edit(self, message_id: str, body: Any) -> tuple[int, Any]:
        if problem := _problem(body):
            return 400, problem
        message = self._messages[message_id]
        message.content = body.get("content", message.content)
        message.components = body.get("components", message.components)
        self._record(message_id, is_edit=True)
        return 200, {"id": message_id}

    def _record(self, message_id: str, *, is_edit: bool) -> None:
        message = self._messages[message_id]
        fields = {"channel_id": message.channel_id, "message_id": message_id, "content": message.content}
        self.journal.record(Shown, is_edit=is_edit, **fields)


def _problem(body: Any) -> dict[str, Any] | None:
    """Return why Discord would refuse a message."""
    if not 0 < len(body.get("content", "")) <= 2000:
        return {"message": "content has 1 to 2000 characters"}
    if len(body.get("nonce", "")) > 25:
        return {"message": "a nonce has at most 25 characters"}
    rows = body.get("components", [])
    buttons = [button for row in rows for button in row["components"]]
    is_good = len(rows) <= 5 and all(1 <= len(row["components"]) <= 5 for row in rows)
    is_good &= all(len(each["label"]) <= 80 and len(each.get("custom_id", "")) <= 100 for each in buttons)
    return None if is_good else {"message": "components do not fit"}
