"""What Discord delivers: its signature, and what it says. Pure."""

import json
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from botservice import Author, EventKind, InboundEvent, InboundMessage, parse_command

PING, COMMAND, BUTTON = 1, 2, 3
_KINDS: Final = {"/stop": EventKind.STOP}

COMMANDS: Final = [
    {
        "name": "ask",
        "description": "Ask the bot, or give it a command such as /help",
        "options": [{"type": 3, "name": "question", "description": "Your question", "required": True}],
    }
]
"""What people find when they type a slash."""


class Signature:
    """Tells Discord's requests from those of others."""

    def __init__(self, public_key: str) -> None:
        self._key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))

    def is_good(self, body: bytes, signature: str, timestamp: str) -> bool:
        """Return whether Discord has signed a body."""
        try:
            self._key.verify(bytes.fromhex(signature), timestamp.encode() + body)
        except (InvalidSignature, ValueError):
            return False
        return True


def said_in(interaction: dict[str, Any]) -> str:
    """Return what a person said, by a command or by a button."""
    data = interaction["data"]
    return str(data["custom_id"] if interaction["type"] == BUTTON else data["options"][0]["value"])


def as_event(body: bytes) -> InboundEvent:
    """Return the event that an interaction is. Its id is a number that grows, and names it for ever."""
    interaction = json.loads(body)
    number = str(interaction["id"])
    keys = {"transport": "discord", "channel_id": str(interaction["channel_id"])}
    kind = _KINDS.get(said_in(interaction).strip(), EventKind.MESSAGE)
    return InboundEvent(f"discord:{number}", keys, int(number), body, kind)


def as_message(body: bytes) -> InboundMessage:
    """Return what an event says, and who says it."""
    interaction = json.loads(body)
    user = interaction.get("user") or interaction["member"]["user"]
    text = said_in(interaction)
    return InboundMessage(
        text,
        Author("discord", str(user["id"]), str(user.get("global_name") or user["username"])),
        command=parse_command(text),
        language=interaction.get("locale"),
        is_private="guild_id" not in interaction,
        is_whole=True,
    )
