"""Messages that nobody asked for, from a program that is killed, by a bot that is killed: each is said once."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from crash.served import ROOT, WarmBot
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.pool import NullPool
from standins.bot_api import BotApi, LoseAnswer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FIRST = 1000
CHATS = 30
KILLS = 6


def program(url: str) -> "subprocess.Popen[str]":
    """Start the sending program, as a person's cron job does: it knows nothing but the database."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "crash")])
    command = [sys.executable, "-m", "sending_program", url, str(FIRST), str(CHATS)]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def list_unnoted(storage_url: str) -> list[int]:
    """Return the deliveries that the platform may have, and of which that is not stored yet."""
    with create_engine(_driver(storage_url), poolclass=NullPool).connect() as connection:
        return list(connection.execute(text("SELECT id FROM deliveries WHERE status <> 'delivered'")).scalars())


def test_kills_of_the_program_and_of_the_bot_lose_no_message_and_repeat_none(storage_url: str, tmp_path: Path) -> None:
    chats = range(FIRST, FIRST + CHATS)
    with BotApi.running() as api:
        for chat in chats:
            api.add_private_chat(chat)
        api.order(LoseAnswer(), "sendMessage", times=2)
        settings = {"DATABASE_URL": storage_url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}

        def told() -> int:
            return sum(bool(api.visible_texts(chat)) for chat in chats)

        ids: list[set[str]] = []
        with WarmBot(tmp_path, **settings) as bot:
            for kill in range(KILLS):
                bot.start()
                with program(storage_url) as sending:
                    assert sending.stdout is not None
                    ids.append({sending.stdout.readline().strip() for _ in range(1 + 4 * kill)})
                    sending.kill()
                wanted = min(len(ids[-1]), told() + kill % 3)
                api.wait_until(lambda wanted=wanted: told() >= wanted, timeout=60, what="somebody is told")
                bot.kill()
            bot.start()
            with program(storage_url) as sending:
                said, _ = sending.communicate(timeout=120)
            ids.append(set(said.split()))
            api.wait_until(lambda: told() == CHATS, timeout=60, what="everyone is told")
            api.wait_until(lambda: not list_unnoted(storage_url), timeout=60, what="each delivery is noted")
        visible = {chat: [each.partition("\n")[0] for each in api.visible_texts(chat)] for chat in chats}
    assert {chat: set(texts) for chat, texts in visible.items()} == {chat: {f"news for {chat}"} for chat in chats}
    repeats = sum(len(texts) - 1 for texts in visible.values())
    assert repeats <= 2 + KILLS * 8, "only what was on its way at a kill, or whose answer was lost, comes again"
    assert set().union(*ids[:-1]) <= ids[-1], "a key sent again is the same message"
    engine = create_engine(_driver(storage_url), poolclass=NullPool)
    with engine.connect() as connection:
        stored = Counter(connection.execute(text("SELECT text FROM messages WHERE role = 'assistant'")).scalars())
        assert stored == Counter(f"news for {chat}" for chat in chats)
        states = connection.execute(text("SELECT DISTINCT status, kind FROM deliveries")).all()
        assert [tuple(row) for row in states] == [("delivered", "message")]
    engine.dispose()


def _driver(url: str) -> URL:
    return make_url(url) if url.startswith("sqlite") else make_url(url).set(drivername="postgresql+psycopg")
