"""The people who write to the bot, and the oracle: what they said, and what became of it."""

import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.database import Database
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply, ToolUse

_DONE = "done "


def model(body: dict[str, Any]) -> Reply:
    """Look the invoice up and pay it, at once; then answer with its name."""
    invoice = invoice_of(body)
    if body["messages"][-1]["role"] == "tool":
        return Reply(text=f"{_DONE}{invoice}", delay=0.05)
    calls = [ToolUse("look_up", {"invoice": invoice}), ToolUse("pay", {"invoice": invoice})]
    return Reply(tool_calls=calls, delay=0.05)


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
        self._answered: dict[int, int] = dict.fromkeys(range(1000, 1000 + chats), 0)
        self.said: dict[int, list[str]] = {chat: [] for chat in self._answered}

    def write(self, seed: random.Random) -> None:
        """Have everybody whose questions are nearly all answered ask the next ones."""
        chats = [chat for chat in self.said if self._still_to_say(chat)]
        seed.shuffle(chats)
        for chat in chats:
            waiting = len(self.said[chat]) - len(self.answers(chat))
            for _ in range(min(self._waiting - waiting, self._still_to_say(chat))):
                invoice = f"{chat}-{len(self.said[chat]) + 1}"
                self.said[chat].append(invoice)
                self._api.person_says(f"pay {invoice}", chat_id=chat)

    @property
    def has_said_everything(self) -> bool:
        return self._messages is None or not any(map(self._still_to_say, self.said))

    def _still_to_say(self, chat: int) -> int:
        return self._waiting if self._messages is None else self._messages - len(self.said[chat])

    def answers(self, chat: int) -> set[str]:
        return {text.removeprefix(_DONE) for text in self._api.visible_texts(chat) if text.startswith(_DONE)}

    def unanswered(self) -> list[str]:
        answered = {chat: self.answers(chat) for chat in self.said}
        return [invoice for chat, said in self.said.items() for invoice in said if invoice not in answered[chat]]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the oracle counts.

    Attributes:
        lost: Questions without an answer, in the chat or in the history.
        out_of_order: Chats whose answers, or whose history, are not in the order of the questions.
        paid_twice: Calls of a tool that must not run twice, and did.
        shown_again: Answers that a person saw more than once; the worst one's count is most_shown.
        asked_again: Model calls beyond two for each question; the worst question's count is most_asked.
    """

    messages: int
    lost: int
    out_of_order: int
    paid_twice: int
    shown_again: int
    most_shown: int
    asked_again: int
    most_asked: int


def examine(town: Town, api: BotApi, llm: OpenAIApi, database: Database, tool_log: Path) -> Findings:
    """Hold what people saw, what the tools did, what the model was asked and what is stored against what was said."""
    shown = {
        chat: [text.removeprefix(_DONE) for text in api.visible_texts(chat) if text.startswith(_DONE)]
        for chat in town.said
    }
    history = _histories(database)
    expected = {
        chat: [pair for invoice in said for pair in (f"pay {invoice}", f"{_DONE}{invoice}")]
        for chat, said in town.said.items()
    }
    times_shown = Counter(invoice for invoices in shown.values() for invoice in invoices)
    asked = Counter(invoice_of(body) for body in llm.bodies())
    paid = Counter(line for line in tool_log.read_text().splitlines() if line.startswith("pay "))
    return Findings(
        messages=sum(map(len, town.said.values())),
        lost=sum(
            len({*said} - {*shown[chat]}) + len({*expected[chat]} - {*history.get(chat, [])})
            for chat, said in town.said.items()
        ),
        out_of_order=sum(
            list(dict.fromkeys(shown[chat])) != said or history.get(chat) != expected[chat]
            for chat, said in town.said.items()
        ),
        paid_twice=sum(count - 1 for count in paid.values()),
        shown_again=sum(count - 1 for count in times_shown.values()),
        most_shown=max(times_shown.values(), default=0),
        asked_again=sum(max(0, count - 2) for count in asked.values()),
        most_asked=max(asked.values(), default=0),
    )


def _histories(database: Database) -> dict[int, list[str]]:
    rows = database.rows(
        "SELECT contexts.context_keys, messages.text FROM messages JOIN contexts ON contexts.id = messages.context_id "
        "ORDER BY messages.context_id, messages.position"
    )
    histories: dict[int, list[str]] = {}
    for keys, text in rows:
        chat = int((json.loads(keys) if isinstance(keys, str) else keys)["chat_id"])
        histories.setdefault(chat, []).append(text)
    return histories
