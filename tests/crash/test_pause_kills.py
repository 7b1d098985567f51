"""A bot that is killed while chats are paused: what is said is kept once, and is not answered, then or later."""

import asyncio
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from crash.served import WarmBot
from crash.watching import rows
from standins.bot_api import BotApi
from standins.bot_api.chats import Person
from standins.bot_api.faults import Hang
from standins.patience import PATIENT

from botservice import AgentContext, Storage
from botservice.conversation.pausing import Pause, set_pause
from botservice.texts import in_language

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHATS = range(1000, 1006)
KILLS = 4
TOLD = in_language("pause.told", "en")


async def switch(url: str, *, is_on: bool) -> None:
    """Pause every chat, or end the pause."""
    async with Storage.open(url, limits=PATIENT) as storage:
        for chat in CHATS:
            context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat)})
            pause = Pause(storage.now()) if is_on else None
            await storage.write(lambda connection, one=context.id, pause=pause: set_pause(connection, one, pause))


def test_kills_lose_nothing_that_is_said_in_a_pause_and_answer_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    url = f"sqlite:///{path}"
    asyncio.run(switch(url, is_on=True))

    def stored() -> Counter[str]:
        with sqlite3.connect(path) as database:
            found = Counter(text for (text,) in database.execute("SELECT text FROM messages WHERE role = 'user'"))
        database.close()
        return found

    with BotApi.running() as api:
        settings = {"DATABASE_URL": url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        for chat in CHATS:
            api.add_private_chat(chat)
        said = []
        with WarmBot(tmp_path, **settings) as bot:
            for kill in range(KILLS):
                bot.start()
                for chat in CHATS:
                    said.append(f"kept {chat} {kill}")
                    api.person_says(said[-1], chat_id=chat)
                least = len(stored()) + 1 + kill
                api.wait_until(lambda least=least: len(stored()) >= least, timeout=60, what="something is kept")
                bot.kill()
            bot.start()
            api.wait_until(lambda: len(stored()) == len(said), timeout=60, what="everything is kept")
            api.wait_until(
                lambda: all(TOLD in api.visible_texts(chat) for chat in CHATS), timeout=60, what="everybody is told"
            )
            bot.kill()
            asyncio.run(switch(url, is_on=False))
            bot.start()
            for chat in CHATS:
                said.append(f"asked {chat}")
                api.person_says(said[-1], chat_id=chat)
            api.wait_until(
                lambda: all(set(api.visible_texts(chat)) - {TOLD} for chat in CHATS), timeout=60, what="answers"
            )
            bot.kill()
    assert stored() == Counter(said)
    with sqlite3.connect(path) as database:
        answers = database.execute("SELECT context_id, count(*) FROM messages WHERE role = 'assistant' GROUP BY 1")
        assert [count for _, count in answers] == [1] * len(CHATS)
        told = database.execute(
            "SELECT count(*) FROM deliveries d JOIN turns t ON t.id = d.turn_id WHERE t.outcome = 'listened'"
        )
        assert told.fetchone() == (len(CHATS),), "each is told once"
    database.close()


def test_replicas_that_are_killed_answer_nothing_of_a_pause_and_tell_of_it_once(
    tmp_path: Path, postgres_url: str
) -> None:
    asyncio.run(switch(postgres_url, is_on=True))
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()

    def stored() -> Counter[str]:
        return Counter(text for (text,) in rows(postgres_url, "SELECT text FROM messages WHERE role = 'user'"))

    def say(api: BotApi, what: str) -> list[str]:
        texts = [f"{what} {chat}" for chat in CHATS]
        for chat, text in zip(CHATS, texts, strict=True):
            api.person_says(text, chat_id=chat)
        return texts

    with BotApi.running() as api:
        shared = {"DATABASE_URL": postgres_url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        shared["PUBLIC_URL"] = "https://bot.example"
        for chat in CHATS:
            api.add_private_chat(chat)
        said = list[str]()
        with WarmBot(folders[0], **shared) as one, WarmBot(folders[1], **shared) as two:
            one.start()
            two.start()
            for kill in range(KILLS):
                killed, other = (one, two) if kill % 2 == 0 else (two, one)
                api.reach_webhooks_at(killed.url)
                least = len(stored()) + 1 + kill
                said += say(api, f"kept {kill}")
                api.wait_until(lambda least=least: len(stored()) >= least, timeout=60, what="something is kept")
                killed.kill()
                api.reach_webhooks_at(other.url)
                total = len(CHATS) * (kill + 1)
                api.wait_until(lambda total=total: len(stored()) == total, timeout=60, what="the other keeps the rest")
                killed.start()
            api.wait_until(
                lambda: all(TOLD in api.visible_texts(chat) for chat in CHATS), timeout=60, what="everybody is told"
            )
            asyncio.run(switch(postgres_url, is_on=False))
            said += say(api, "asked")
            two.kill()
            api.reach_webhooks_at(one.url)
            api.wait_until(
                lambda: all(set(api.visible_texts(chat)) - {TOLD} for chat in CHATS), timeout=60, what="answers"
            )
    assert stored() == Counter(said)
    answers = rows(postgres_url, "SELECT count(*) FROM messages WHERE role = 'assistant' GROUP BY context_id")
    assert answers == [(1,)] * len(CHATS)
    listened = "SELECT count(*) FROM deliveries d JOIN turns t ON t.id = d.turn_id WHERE t.outcome = 'listened'"
    assert rows(postgres_url, listened) == [(len(CHATS),)], "each is told once"


@pytest.mark.any_database
@pytest.mark.parametrize("held", ["getChatAdministrators", "sendMessage"])
@pytest.mark.parametrize("is_demoted", [False, True])
def test_a_kill_at_a_pause_by_an_administrator_leaves_all_of_it_or_nothing(
    tmp_path: Path, storage_url: str, held: str, is_demoted: bool
) -> None:
    """What was confirmed by nobody yet is asked of Telegram again; what is stored is confirmed, and stays."""
    group, ben, eve = -1001000000001, Person(43, "Ben"), Person(44, "Eve")
    paused, refused = in_language("pause.done", "en"), in_language("access.for_administrators", "en")
    with BotApi.running() as api, WarmBot(tmp_path, **_wires(api, storage_url)) as bot:
        api.add_group(group, members=(ben, eve))
        api.promote(group, ben)
        bot.start()
        order = api.order(Hang(), held, times=None)
        api.person_says("/pause", chat_id=group, user=ben)
        api.wait_until(lambda: order.used > 0, timeout=60, what="the call")
        bot.kill()
        order.cancel()
        api.promote(group, ben, "member" if is_demoted else "administrator")
        bot.start()
        is_paused = held == "sendMessage" or not is_demoted
        expected = paused if is_paused else refused
        api.wait_until(lambda: api.visible_texts(group) == [expected], timeout=60, what="the answer to the command")
        api.person_says(f"@{api.username} hello", chat_id=group, user=eve)
        api.person_says("/reminders", chat_id=group, user=eve)
        api.wait_until(lambda: len(api.visible_texts(group)) == (2 if is_paused else 3), timeout=60, what="answers")
        bot.kill()


def _wires(api: BotApi, database_url: str) -> dict[str, str]:
    return {"DATABASE_URL": database_url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
