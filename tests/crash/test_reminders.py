"""Reminders of a bot that is killed while they are due: each is said once, and no more is repeated than may be."""

import asyncio
import itertools
import sqlite3
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from crash.served import WarmBot
from standins.bot_api import BotApi
from standins.patience import PATIENT

from botservice import AgentContext, Storage
from botservice.conversation.reminder_queries import NewReminder, insert_reminder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHATS = 30
KILLS = 6


async def set_reminders(url: str) -> None:
    """Set one in each chat, due already."""
    now = datetime.now(UTC)
    async with Storage.open(url, limits=PATIENT) as storage:
        for chat in range(1000, 1000 + CHATS):
            context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat)})
            due_at = now - timedelta(seconds=1)
            new = NewReminder(str(chat), context.id, "telegram", f"note {chat}", due_at, now)
            await storage.write(lambda connection, new=new: insert_reminder(connection, new))


def test_kills_repeat_no_reminder_but_one_that_was_on_its_way(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bot.db'}"
    asyncio.run(set_reminders(url))
    with BotApi.running() as api:
        for chat in range(1000, 1000 + CHATS):
            api.add_private_chat(chat)
        settings = {"DATABASE_URL": url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}

        def reminded() -> int:
            return sum(bool(api.visible_texts(chat)) for chat in range(1000, 1000 + CHATS))

        with WarmBot(tmp_path, **settings) as bot:
            for kill in range(KILLS):
                bot.start()
                wanted = min(CHATS, reminded() + 1 + kill % 3)
                api.wait_until(lambda wanted=wanted: reminded() >= wanted, timeout=60, what="somebody is reminded")
                bot.kill()
            bot.start()
            api.wait_until(lambda: reminded() == CHATS, timeout=60, what="everyone is reminded")
        counts = Counter(
            itertools.chain.from_iterable(set_of(api.visible_texts(chat)) for chat in range(1000, 1000 + CHATS))
        )
    assert len(counts) == CHATS
    assert sum(counts.values()) <= CHATS + KILLS * CHATS
    assert max(counts.values()) <= 1 + KILLS
    with sqlite3.connect(tmp_path / "bot.db") as database:
        said = database.execute("SELECT text FROM messages ORDER BY text").fetchall()
        assert [text for (text,) in said] == [f"⏰ note {chat}" for chat in range(1000, 1000 + CHATS)]
        assert set(database.execute("SELECT status FROM reminders")) == {("done",)}
    database.close()


def set_of(texts: list[str]) -> list[str]:
    """Return what was said, without what may stand behind it."""
    return [text.partition("\n")[0] for text in texts]
