"""The release before this one, beside this one on one database: nobody has to stop for the other."""

import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from crash.served import ROOT, ServedBot
from crash.watching import is_ready, rows, said, settings
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

from botservice.storage import DatabaseUrl
from botservice.storage.schema import SCHEMA_VERSION
from botservice.storage.schema import migrate as migrate_tables

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Python 3.11 knows it since 3.11.4.
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
RELEASES = ROOT / "tests" / "data" / "releases"
FIRST_VERSION = "0001"
HELD, EARLY, LATE = 1000, 1001, 1002


class Model:
    """Never answers the question that the old process is in the middle of; whoever asks it again is answered."""

    def __init__(self) -> None:
        self._held = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        asked = body["messages"][-1]["content"]
        self._held += asked == "hold on"
        return Reply(text=f"re: {asked}", hang=asked == "hold on" and self._held == 1)


@pytest.fixture(params=sorted(RELEASES.glob("*.tar.xz")), ids=lambda path: path.name.removesuffix(".tar.xz"))
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the program of an earlier release."""
    folder = tmp_path / "release"
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, **SAFELY)
    return folder


def run_old(release: Path, folder: Path, **wires: str) -> ServedBot:
    folder.mkdir()

    class Old(ServedBot):
        source = release

    return Old(folder, **wires)


def make_old_tables(release: Path, url: str) -> None:
    """Bring an empty database to the tables of the earlier release, by its own program."""
    environment = {**os.environ, "PYTHONPATH": str(release), "DATABASE_URL": url}
    subprocess.run(
        [sys.executable, "-m", "botservice", "migrate"], cwd=release, env=environment, check=True, capture_output=True
    )


def test_an_old_process_goes_on_while_a_new_one_migrates_and_works_beside_it(
    release: Path, tmp_path: Path, own_postgres_url: str
) -> None:
    make_old_tables(release, own_postgres_url)
    assert rows(own_postgres_url, "SELECT version_num FROM alembic_version") == [(FIRST_VERSION,)]
    (tmp_path / "new").mkdir()
    with OpenAIApi.running(Model()) as llm, BotApi.running() as api:
        wires = settings(llm, api, own_postgres_url)
        with run_old(release, tmp_path / "old", **wires) as old, ServedBot(tmp_path / "new", **wires) as new:
            old.start()
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
            assert api.visible_texts(HELD) == []

            assert old.kill(signal.SIGTERM) == 0
            api.wait_until(lambda: api.visible_texts(HELD) == ["re: hold on"], timeout=60, what="the turn moved over")
            assert "Traceback" not in old.log
            assert "ERROR" not in old.log
    assert len(said(own_postgres_url)) == 10
    assert rows(own_postgres_url, "SELECT DISTINCT status FROM turns") == [("done",)]


def test_what_both_accept_at_once_is_answered_once_and_in_order(
    release: Path, tmp_path: Path, own_postgres_url: str
) -> None:
    make_old_tables(release, own_postgres_url)
    migrate_tables(DatabaseUrl.parse(own_postgres_url))
    (tmp_path / "new").mkdir()
    # The first release asks for exactly its own tables when it starts: this one was running before they were added to.
    _set_version(own_postgres_url, FIRST_VERSION)
    with OpenAIApi.running(Model()) as llm, BotApi.running() as api:
        wires = settings(llm, api, own_postgres_url)
        with run_old(release, tmp_path / "old", **wires) as old, ServedBot(tmp_path / "new", **wires) as new:
            old.start()
            _set_version(own_postgres_url, SCHEMA_VERSION)
            new.start()
            expected = {chat: [f"re: m{number}" for number in range(10)] for chat in range(2000, 2020)}
            for number in range(10):
                api.reach_webhooks_at((old, new)[number % 2].url)
                for chat in expected:
                    api.person_says(f"m{number}", chat_id=chat)
            api.wait_until(
                lambda: all(len(api.visible_texts(chat)) >= 10 for chat in expected),
                timeout=120,
                what="all is answered",
            )
            assert {chat: api.visible_texts(chat) for chat in expected} == expected


def test_the_old_program_says_clearly_that_it_cannot_start_on_newer_tables(
    release: Path, tmp_path: Path, own_postgres_url: str
) -> None:
    migrate_tables(DatabaseUrl.parse(own_postgres_url))
    refused = pytest.raises(AssertionError, match="newer")
    with run_old(release, tmp_path / "old", DATABASE_URL=own_postgres_url) as old, refused:
        old.start()


def _set_version(url: str, version: str) -> None:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
