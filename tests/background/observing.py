"""Small conversations that are observed, with models that observe as a test has it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from people.conversing import see

from botservice import AgentContext, Author, Observer, ScriptedChatLLM, Storage
from botservice.llm.tokens import counter_for

ALICE = Author("telegram", "1", "Alice")
BOB = Author("telegram", "2", "Bob")
NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that stands until a person moves it."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **how: float) -> None:
        """Have so much time pass."""
        self.now += timedelta(**how)


def told(prompt: list) -> dict:
    """Return what a model is given to read."""
    return json.loads(prompt[-1]["content"])


def noting(*, notes: Callable[[dict], list] | None = None, facts: Callable[[dict], list] | None = None):
    """Return a model that answers by what it is given."""

    def answer(prompt: list) -> str:
        data = told(prompt)
        return json.dumps({"notes": notes(data) if notes else [], "facts": facts(data) if facts else []})

    return ScriptedChatLLM(answer)


def first_words(data: dict) -> list[dict]:
    """Note each message by its first words."""
    return [
        {"text": " ".join(each["text"].split()[:8]), "messages": [each["id"]], "earlier": []}
        for each in data["messages"]
    ]


def one_note(data: dict) -> list[dict]:
    """Note all in one note of the first words of each, and merge what there was with it."""
    words = [each["text"].split()[0] for each in data["messages"]][:20]
    earlier = [word for each in data["earlier"] for word in each["text"].split()]
    return [
        {
            "text": " ".join(dict.fromkeys([*earlier, *words]))[:280],
            "messages": [each["id"] for each in data["messages"]],
            "earlier": [each["number"] for each in data["earlier"]],
        }
    ]


def fact(data: dict, quote: str, topic: str, subject: str = "") -> list[dict]:
    """Return a fact that is quoted from whichever message says it."""
    return [
        {"message": each["id"], "quote": quote, "topic": topic, "subject": subject}
        for each in data["messages"]
        if quote in each["text"]
    ]


async def open_chat(storage: Storage, name: str, *people: Author) -> AgentContext:
    """Return a chat in which these people were seen: a group where there is more than one."""
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": name})
    await see(storage, context, *people, is_private=len(people) < 2)
    return context


async def say(context: AgentContext, *texts: str, author: Author = ALICE, at: datetime = NOON):
    """Have a person say something, and return the messages."""
    return [await context.chat_history.append_user_message(each, author=author, created_at=at) for each in texts]


def tokens(count: int, word: str = "word") -> str:
    """Return a text of about so many tokens, and not more."""
    counter = counter_for()
    words = count
    while (counted := counter.count(" ".join([word] * words))) > count:
        words = min(words - 1, words * count // counted)
    return " ".join([word] * words)


async def texts_of(context: AgentContext) -> list[str]:
    return [each.text for each in await context.notes()]


def observer_of(storage: Storage, llm, clock: Clock | None = None, **how) -> Observer:
    return Observer(storage, llm, clock=clock or Clock(), **how)
