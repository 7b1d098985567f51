"""The previous release works alongside this one on one Postgres: neither has to stop for the other."""

import asyncio
import signal
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crash.served import ROOT, ServedBot, WarmBot
from crash.watching import is_ready, rows, said, settings, wait_for
from sqlalchemy import select
from standins.bot_api import BotApi, flood
from standins.openai_api import OpenAIApi, Reply

from botservice import Storage
from botservice.privacy.record_queries import queue_texts
from botservice.storage.schema import SCHEMA_VERSION
from botservice.storage.schema import migrate as migrate_tables
from botservice.storage.tables.conversations import messages
from botservice.storage.url import DatabaseUrl

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Python 3.11 knows it since 3.11.4.
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
RELEASES = ("1.3.0",)
HELD, EARLY, LATE, OWED = 1000, 1001, 1002, 1003
BOTH, SAID_TO_BOTH = range(2000, 2010), 4
QUEUED = "SELECT count(*) FROM events WHERE kind = 'forget'"
PUT_OFF = "SELECT count(*) FROM deliveries WHERE status = 'pending' AND due_set_at IS NOT NULL AND error IS NOT NULL"
# A platform migrates before it starts a release. One process does both here, because loading the program takes longest.
MIGRATE_AND_SERVE = """
import contextlib, runpy, sys
sys.argv[1:] = ["migrate"]
with contextlib.suppress(SystemExit):
    runpy.run_module("botservice.__main__", run_name="__main__")
sys.argv[1:] = ["serve"]
runpy.run_module("botservice.__main__", run_name="__main__")
"""


class Model:
    """Leave the first call for "hold on" open for ever; answer everything else at once."""

    def __init__(self) -> None:
        self._held = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        asked = body["messages"][-1]["content"]
        self._held += asked == "hold on"
        return Reply(text=f"re: {asked}", hang=asked == "hold on" and self._held == 1)


@dataclass(frozen=True)
class Release:
    """An earlier release and the folder of its program."""

    name: str
    folder: Path


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """An earlier release, unpacked once, so that Python compiles it once."""
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(ROOT / "tests" / "data" / "releases" / f"{request.param}.tar.xz") as archive:
        archive.extractall(folder, **SAFELY)
    return Release(request.param, folder)


def run_old(release: Release, folder: Path, **wires: str) -> ServedBot:
    folder.mkdir()

    class Old(ServedBot):
        source = release.folder
        program = ("-c", MIGRATE_AND_SERVE)
        command = ()

    return Old(folder, **wires)


def test_an_old_process_goes_on_while_a_new_one_migrates_and_works_alongside(
    release: Release, tmp_path: Path, own_postgres_url: str
) -> None:
    (tmp_path / "new").mkdir()
    with OpenAIApi.running(Model()) as llm, BotApi.running() as api:
        wires = settings(llm, api, own_postgres_url)
        with run_old(release, tmp_path / "old", **wires) as old, WarmBot(tmp_path / "new", **wires) as new:
            old.start()
            assert version_of(own_postgres_url) <= SCHEMA_VERSION
            api.reach_webhooks_at(old.url)
            api.person_says("before", chat_id=EARLY)
            api.wait_until(lambda: api.visible_texts(EARLY) == ["re: before"], timeout=60, what="the old one answers")
            api.person_says("hold on", chat_id=HELD)
            llm.wait_for_call(lambda body: body["messages"][-1]["content"] == "hold on")

            assert migrate_tables(DatabaseUrl.parse(own_postgres_url)) == SCHEMA_VERSION
            api.person_says("after", chat_id=EARLY)
            answered = ["re: before", "re: after"]
            api.wait_until(lambda: api.visible_texts(EARLY) == answered, timeout=60, what="the old one goes on")
            assert is_ready(old)

            new.start()
            api.reach_webhooks_at(new.url)
            api.person_says("to the new one", chat_id=EARLY)
            api.person_says("hello", chat_id=LATE)
            answered.append("re: to the new one")
            api.wait_until(lambda: api.visible_texts(EARLY) == answered, timeout=60, what="the new one has the chat")
            api.wait_until(lambda: api.visible_texts(LATE) == ["re: hello"], timeout=60, what="the new one answers")
            see_what_both_accept_at_once_answered_once_and_in_order(api, old, new)
            assert api.visible_texts(HELD) == []

            assert old.kill(signal.SIGTERM) == 0
            api.wait_until(lambda: api.visible_texts(HELD) == ["re: hold on"], timeout=60, what="the turn moved over")
            assert "Traceback" not in old.log
            assert "ERROR" not in old.log
    assert len(said(own_postgres_url)) == 10 + 2 * len(BOTH) * SAID_TO_BOTH
    assert rows(own_postgres_url, "SELECT DISTINCT status FROM turns") == [("done",)]


def see_what_both_accept_at_once_answered_once_and_in_order(api: BotApi, old: ServedBot, new: ServedBot) -> None:
    """Deliver each message of a chat to another process than the one before."""
    for number in range(SAID_TO_BOTH):
        api.reach_webhooks_at((old, new)[number % 2].url)
        for chat in BOTH:
            api.person_says(f"m{number}", chat_id=chat)
    api.wait_until(
        lambda: all(len(api.visible_texts(chat)) >= SAID_TO_BOTH for chat in BOTH), timeout=120, what="all is answered"
    )
    expected = [f"re: m{number}" for number in range(SAID_TO_BOTH)]
    assert {chat: api.visible_texts(chat) for chat in BOTH} == dict.fromkeys(BOTH, expected)


def test_an_old_process_starts_on_newer_tables_and_goes_on_with_what_a_new_one_left(
    release: Release, tmp_path: Path, postgres_url: str
) -> None:
    (tmp_path / "new").mkdir()
    with OpenAIApi.running(Model()) as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        with run_old(release, tmp_path / "old", **wires) as old, WarmBot(tmp_path / "new", **wires) as new:
            new.start()
            api.reach_webhooks_at(new.url)
            api.person_says("to the new one", chat_id=EARLY)
            answered = ["re: to the new one"]
            api.wait_until(lambda: api.visible_texts(EARLY) == answered, timeout=60, what="the new one answers")
            too_much = api.order(flood(1), "sendMessage", chat_id=OWED, times=None)
            api.person_says("send it later", chat_id=OWED)
            wait_for(lambda: rows(postgres_url, PUT_OFF) == [(1,)])
            api.person_says("hold on", chat_id=HELD)
            llm.wait_for_call(lambda body: body["messages"][-1]["content"] == "hold on")
            new.kill()
            too_much.cancel()

            old.start()
            assert version_of(postgres_url) == SCHEMA_VERSION
            api.reach_webhooks_at(old.url)
            api.wait_until(lambda: api.visible_texts(HELD) == ["re: hold on"], timeout=60, what="the turn goes on")
            api.wait_until(lambda: api.visible_texts(OWED) == ["re: send it later"], timeout=60, what="it is sent")
            api.person_says("to the old one", chat_id=EARLY)
            answered.append("re: to the old one")
            api.wait_until(lambda: api.visible_texts(EARLY) == answered, timeout=60, what="the old one has the chat")
            asyncio.run(queue_cleaning(postgres_url))
            api.person_says("and once more", chat_id=EARLY)
            answered.append("re: and once more")
            api.wait_until(lambda: api.visible_texts(EARLY) == answered, timeout=60, what="the old one goes on")
            wait_for(lambda: rows(postgres_url, QUEUED) == [(0,)])
            assert is_ready(old)

            new.start()
            api.reach_webhooks_at(new.url)
            api.person_says("again", chat_id=EARLY)
            answered.append("re: again")
            api.wait_until(lambda: api.visible_texts(EARLY) == answered, timeout=60, what="the new one has it again")
            assert "Traceback" not in old.log
            assert "ERROR" not in old.log
    assert len(said(postgres_url)) == 12
    assert rows(postgres_url, "SELECT DISTINCT status FROM turns") == [("done",)]
    assert rows(postgres_url, PUT_OFF) == [(0,)]


async def queue_cleaning(url: str) -> None:
    """Ask for a text to be removed from the records of the chat that both know."""
    async with Storage.open(url) as storage:
        query = select(messages.c.context_id).where(messages.c.text == "to the old one")
        chat = await storage.read(lambda connection: connection.execute(query).scalar_one())
        await storage.write(lambda connection: queue_texts(connection, [chat], ["to the old one"], storage.now()))


def version_of(url: str) -> str:
    """Return the version of a database's tables."""
    [(version,)] = rows(url, "SELECT version_num FROM botservice_version")
    return str(version)
