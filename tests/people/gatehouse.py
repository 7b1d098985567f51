"""A platform with many people, private chats and groups, in front of a worker: for tests of who is let in."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select
from turns.messenger import Messenger

from botservice import Author, InboundMessage, Storage
from botservice.storage.tables.conversations import events, turns
from botservice.turns.commands import parse_command
from botservice.turns.turn import InboundEvent

MONDAY = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Clock:
    """A clock that a person sets."""

    def __init__(self, now: datetime = MONDAY) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **time: float) -> None:
        """Let time pass."""
        self.now += timedelta(**time)


class Crowd(Messenger):
    """People are named as "crowd:42"; those who write "~" in front are not talking to the bot."""

    name = "crowd"

    def __init__(self) -> None:
        super().__init__()
        self.read_fully: list[str] = []

    async def peek(self, event: Any) -> InboundMessage | None:
        said = json.loads(event.raw or b"{}")
        if not said:
            return None
        return InboundMessage(
            said["text"],
            Author(self.name, said["who"], f"name of {said['who']}"),
            external_id=event.key,
            is_addressed=not said["text"].startswith("~"),
            command=parse_command(said["text"]),
            language=said.get("language"),
            is_private=not said["chat"].startswith("-"),
        )

    async def read(self, event: Any) -> InboundMessage | None:
        message = await self.peek(event)
        if message is not None:
            self.read_fully.append(message.text)
        return message


_numbers = iter(range(1, 10**9))


def saying(text: str, who: str, chat: str | None = None, *, language: str | None = None) -> InboundEvent:
    """Return what a person says in a chat, in their private one by default."""
    chat = chat or who
    number = next(_numbers)
    raw = json.dumps({"text": text, "who": who, "chat": chat, "language": language})
    return InboundEvent(f"crowd:{number}", {"transport": "crowd", "chat_id": chat}, number, raw.encode())


async def say(bot: Any, text: str, who: str, chat: str | None = None, *, language: str | None = None) -> None:
    """Have a person say something, and return when its turn has ended."""
    event = saying(text, who, chat, language=language)
    await bot.inbox.accept("crowd", [event])
    await until_done(bot, event.key)


async def until_done(bot: Any, key: str) -> None:
    """Return when the turn of an event has ended and nothing of it is left to be sent."""
    import asyncio

    from turns.messenger import PATIENCE_SECONDS

    from botservice.storage.tables.conversations import deliveries

    owed = select(deliveries.c.id).where(
        deliveries.c.turn_id == turns.c.id, deliveries.c.status.in_(["pending", "attempting"])
    )
    query = (
        select(turns.c.id)
        .join(events, events.c.turn_id == turns.c.id)
        .where(events.c.key == key, turns.c.finished_at.is_not(None), ~owed.exists())
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await bot.storage.read(lambda connection: connection.execute(query).first()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # another process may be the one that ends it: only the database tells


async def raw_of(storage: Storage) -> list[bytes | None]:
    """Return what is kept of what the platform delivered."""
    query = select(events.c.raw).order_by(events.c.id)
    return await storage.read(lambda connection: list(connection.execute(query).scalars()))


async def outcomes(storage: Storage) -> list[str | None]:
    """Return how the turns ended."""
    query = select(turns.c.outcome).order_by(turns.c.id)
    return await storage.read(lambda connection: list(connection.execute(query).scalars()))
