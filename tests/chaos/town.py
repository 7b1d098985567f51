"""The people who write to the bot, and the model that answers them."""

import random
from typing import Any

from standins.bot_api import BotApi, MessageShown
from standins.openai_api import Reply, ToolUse

DONE = "done "


def model(body: dict[str, Any]) -> Reply:
    """Look the invoice up and pay it, at once; then answer with its name."""
    invoice = invoice_of(body)
    if body["messages"][-1]["role"] == "tool":
        return Reply(text=f"{DONE}{invoice}", delay=0.1)
    calls = [ToolUse("look_up", {"invoice": invoice}), ToolUse("pay", {"invoice": invoice})]
    return Reply(tool_calls=calls, delay=0.1)


def invoice_of(body: dict[str, Any]) -> str:
    """Return which invoice a prompt is about."""
    last_user = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    return str(last_user["content"]).removeprefix("pay ")


class Town:
    """Chats in which people write one message after the other, without waiting for every answer.

    Args:
        messages: How many each of them writes; None: as long as something happens.
    """

    def __init__(self, api: BotApi, *, chats: int, messages: int | None, waiting: int = 3) -> None:
        self._api = api
        self._messages = messages
        self._waiting = waiting
        self._seen = 0  # how much of the platform's journal
        self._unanswered: dict[int, set[str]] = {chat: set() for chat in range(1000, 1000 + chats)}
        self.said: dict[int, list[str]] = {chat: [] for chat in self._unanswered}

    def write(self, seed: random.Random) -> None:
        """Have everybody whose questions are nearly all answered ask the next ones."""
        self._look()
        chats = [chat for chat in self.said if self._still_to_say(chat)]
        seed.shuffle(chats)
        for chat in chats:
            for _ in range(min(self._waiting - len(self._unanswered[chat]), self._still_to_say(chat))):
                invoice = f"{chat}-{len(self.said[chat]) + 1}"
                self.said[chat].append(invoice)
                self._unanswered[chat].add(invoice)
                self._api.person_says(f"pay {invoice}", chat_id=chat)

    @property
    def has_said_everything(self) -> bool:
        return self._messages is None or not any(map(self._still_to_say, self.said))

    def unanswered(self) -> list[str]:
        """Return what is not answered yet."""
        self._look()
        return [invoice for invoices in self._unanswered.values() for invoice in sorted(invoices)]

    def _still_to_say(self, chat: int) -> int:
        return self._waiting if self._messages is None else self._messages - len(self.said[chat])

    def _look(self) -> None:
        """Take note of what was shown since the last look."""
        for entry in self._api.journal.entries(since=self._seen):
            self._seen = entry.seq
            if isinstance(entry, MessageShown) and entry.from_bot and entry.chat_id in self.said:
                self._unanswered[entry.chat_id].discard(entry.text.removeprefix(DONE))
