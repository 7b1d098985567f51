"""Naming the conversation of a chat as an operator writes it: telegram:-100123, slack:TEAM/CHANNEL, a number."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

CHAT_FORMS: Final = (
    "telegram:CHAT_ID[/THREAD_ID], slack:TEAM/CHANNEL[/THREAD_TS], web:SESSION, the number of a context, "
    "or its keys, such as transport=telegram chat_id=-100123"
)
_TELEGRAM: Final = re.compile(r"telegram:(?P<chat_id>-?[0-9]{1,18})(/(?P<thread_id>[0-9]{1,18}))?", re.ASCII)
_SLACK: Final = re.compile(
    r"slack:(?P<team_id>[A-Z0-9]{1,32})/(?P<channel_id>[A-Z0-9]{1,32})(/(?P<thread_ts>[0-9]{1,16}\.[0-9]{1,9}))?",
    re.ASCII,
)
_WEB: Final = re.compile(r"web:(?P<session_id>[A-Za-z0-9-]{1,64})", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def address_of(context_id: int, keys: Mapping[str, Any]) -> str:
    """Return how an operator writes the chat of a context: a thread is named by its chat."""
    match keys:
        case {"transport": "telegram", "chat_id": str(chat)}:
            return f"telegram:{chat}"
        case {"transport": "slack", "team_id": str(team), "channel_id": str(channel)}:
            return f"slack:{team}/{channel}"
        case _:
            return str(context_id)


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """The conversation of a chat.

    Attributes:
        number: The id of its context; None where it is named by its keys.
        keys: Its context keys; empty where it is named by its number.
    """

    number: int | None
    keys: Mapping[str, str]

    @property
    def must_write_first(self) -> bool:
        """Whether a new conversation there shows nothing: Telegram lets no bot begin one with a person (Bots FAQ)."""
        is_of_person = self.keys.get("transport") == "telegram" and not self.keys.get("chat_id", "-").startswith("-")
        return is_of_person or self.keys.get("transport") == "web"

    @classmethod
    def parse(cls, text: str) -> "ChatAddress":
        """Read an address.

        Raises:
            ValueError: it has none of the forms of `CHAT_FORMS`.
        """
        if _NUMBER.fullmatch(text):
            return cls(int(text), {})
        for name, form in (("telegram", _TELEGRAM), ("slack", _SLACK), ("web", _WEB)):
            found = form.fullmatch(text)
            if found is not None:
                keys = {"transport": name} | {key: value for key, value in found.groupdict().items() if value}
                if keys.get("channel_id", "").startswith("D"):  # a direct conversation is whole
                    keys.pop("thread_ts", None)
                return cls(None, keys)
        pairs = [part.partition("=") for part in text.replace(",", " ").split()]
        if not pairs or not all(name and separator and value for name, separator, value in pairs):
            raise ValueError(f"no chat is named so: write {CHAT_FORMS}")
        return cls(None, {name: value for name, _, value in pairs})
