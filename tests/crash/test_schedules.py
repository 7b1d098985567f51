"""Schedules of bots that are killed while they are due: each missed one is done once, late, and says so."""

import asyncio
import re
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from crash.served import WarmBot
from crash.test_hooks import read
from sqlalchemy import select
from standins.bot_api import BotApi, LoseAnswer
from standins.openai_api import OpenAIApi
from standins.patience import PATIENT

from botservice import AgentContext, Storage
from botservice.conversation.reminder_queries import NewReminder, insert_reminder
from botservice.conversation.schedule_rules import next_by_rule
from botservice.storage.tables.conversations import reminders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHATS = range(1000, 1024)
KILLS = 9
RULE, MADRID = "0 9 * * *", "Europe/Madrid"


async def set_schedules(url: str) -> datetime:
    """Set a daily one in each chat, and return when it was due: more than three days ago, so that four were missed."""
    made_at = datetime.now(UTC) - timedelta(days=4, hours=1)
    due_at = next_by_rule(RULE, MADRID, made_at)
    assert due_at is not None
    async with Storage.open(url, limits=PATIENT) as storage:
        for chat in CHATS:
            context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat)})
            task = {"is_task": True, "rule": RULE, "time_zone": MADRID}
            new = NewReminder(str(chat), context.id, "telegram", f"look {chat}", due_at, made_at, **task)
            await storage.write(lambda connection, new=new: insert_reminder(connection, new))
    return due_at


async def read_schedules(url: str) -> list[tuple[str, datetime]]:
    async with Storage.open(url, limits=PATIENT) as storage:
        query = select(reminders.c.status, reminders.c.due_at)
        return await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])


def answer(body):
    """Answer with the number of the task that is asked about, which is the last one of its chat."""
    return f"done {re.findall(r'look ([0-9]+)', str(body['messages']))[-1]}"


def answered(api: BotApi) -> set[int]:
    return {chat for chat in CHATS if f"done {chat}" in api.visible_texts(chat)}


@pytest.mark.parametrize("replicas", [1, 2])
def test_kills_repeat_no_schedule_and_lose_none(storage_url: str, tmp_path: Path, replicas: int) -> None:
    if replicas > 1 and storage_url.startswith("sqlite"):
        pytest.skip("one process works on an SQLite file")
    began_at = datetime.now(UTC)
    due_at = asyncio.run(set_schedules(storage_url))
    with BotApi.running() as api, OpenAIApi.running(answer) as llm:
        for chat in CHATS:
            api.add_private_chat(chat)
        api.order(LoseAnswer(), "sendMessage", times=2)
        settings = {
            "DATABASE_URL": storage_url,
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_MODEL": "gpt-5.5",
            "MAX_TURNS": "2",  # so that kills find some of them at each point
        }
        with WarmBot(tmp_path, **settings) as bot, WarmBot(tmp_path, **settings) as other:
            bots = [bot, other][:replicas]
            for each in bots:
                each.start()
            for kill in range(KILLS):
                asked, done = len(llm.requests()), len(answered(api))
                match kill % 3:  # 0: just begun, whatever it holds
                    case 1:
                        wanted = min(asked + 1, len(CHATS))
                        api.wait_until(lambda wanted=wanted: len(llm.requests()) >= wanted, timeout=120, what="asked")
                    case 2:
                        wanted = min(done + 2, len(CHATS))
                        api.wait_until(lambda wanted=wanted: len(answered(api)) >= wanted, timeout=120, what="answered")
                victim = bots[kill % replicas]
                victim.kill()
                victim.start()
            api.wait_until(lambda: answered(api) == set(CHATS), timeout=120, what="all is done")
            for each in bots:
                each.kill(signal.SIGTERM)
        shown = {chat: Counter(text.partition(":")[0] for text in api.visible_texts(chat)) for chat in CHATS}
    for chat, texts in shown.items():
        assert set(texts) == {"This reminder is late. It was due", f"done {chat}"}
    repeats = sum(sum(texts.values()) - 2 for texts in shown.values())
    assert repeats <= 2 + KILLS * 4, "only what was on its way at a kill, or whose answer was lost, comes again"
    assert set(read(storage_url, "SELECT count(*) FROM turns GROUP BY context_id")) == {(1,)}, "missed ones are one"
    said = read(storage_url, "SELECT text FROM messages WHERE role = 'assistant' ORDER BY text")
    assert [text for (text,) in said] == [f"done {chat}" for chat in CHATS]
    tasks = [text for (text,) in read(storage_url, "SELECT text FROM messages WHERE role = 'user'")]
    assert all(f"it was due at {due_at:%Y-%m-%d}" in text for text in tasks)
    following = {("waiting", next_by_rule(RULE, MADRID, moment)) for moment in (began_at, datetime.now(UTC))}
    assert set(asyncio.run(read_schedules(storage_url))) <= following
