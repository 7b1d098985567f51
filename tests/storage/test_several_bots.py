"""Several bots on one Postgres, a schema each: none hears, holds, sees or forgets anything of another one."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3
import yaml
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.core.messages import Author
from botservice.core.states import EventKind
from botservice.privacy.forgetting import forget_person
from botservice.storage.schema import read_version
from botservice.turns.wakeups import Wakeup, notify_replicas

ROOT = Path(__file__).parents[2]
KEYS = {"transport": "telegram", "chat_id": "42"}
ANN = Author("telegram", "7", "Ann")


def in_schema(url, name):
    """Return the address of a schema, as docs/several-bots.md has people write it."""
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"


@contextlib.asynccontextmanager
async def two_bots(url):
    async with (
        Storage.open(in_schema(url, "ada"), migrate=True) as ada,
        Storage.open(in_schema(url, "ben"), migrate=True) as ben,
    ):
        yield ada, ben


@pytest.mark.slow
async def test_migrate_makes_the_schema_that_the_address_names(own_postgres_url):
    async with two_bots(own_postgres_url) as (ada, ben):
        versions = [await each.read(read_version) for each in (ada, ben)]
    assert versions[0] == versions[1] is not None
    with _engine(own_postgres_url).connect() as connection:
        found = connection.execute(text("SELECT nspname FROM pg_namespace WHERE nspname IN ('ada', 'ben')"))
        assert sorted(found.scalars()) == ["ada", "ben"]
        assert connection.execute(text("SELECT to_regclass('public.messages')")).scalar() is None


@pytest.mark.slow
async def test_what_processes_of_one_bot_tell_each_other_is_not_heard_by_another_bot(own_postgres_url):
    heard = asyncio.Queue()
    async with (
        two_bots(own_postgres_url) as (ada, ben),
        Storage.open(in_schema(own_postgres_url, "ada")) as beside_ada,
        Storage.open(in_schema(own_postgres_url, "ben")) as beside_ben,
    ):
        listening = [
            asyncio.create_task(storage.listen(lambda payload, name=name: heard.put_nowait((name, payload))))
            for name, storage in (("ada", beside_ada), ("ben", beside_ben))
        ]
        try:
            # A stop of the conversation of this number would end an answer of the other bot.
            async with asyncio.timeout(120):
                for name, storage in (("ada", ada), ("ben", ben)):
                    while True:  # until it is heard: whoever listens has to be connected first
                        await storage.write(lambda c: notify_replicas(c, [Wakeup(1, EventKind.STOP)]))
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(1):
                                first = await heard.get()
                                break
                    assert first[0] == name
                # Postgres gives what was said to everybody in the same order: after these two, nothing is missing.
                await ada.write(lambda c: notify_replicas(c, [Wakeup(2)]))
                await ben.write(lambda c: notify_replicas(c, [Wakeup(3)]))
                rest = []
                while not {("ada", "2"), ("ben", "3")} <= {*rest}:
                    rest.append(await heard.get())
        finally:
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
    assert {each for each in rest if each[0] == "ada"} <= {("ada", "1 stop"), ("ada", "2")}
    assert {each for each in rest if each[0] == "ben"} <= {("ben", "1 stop"), ("ben", "3")}


@pytest.mark.slow
async def test_the_same_chat_and_person_are_strangers_to_each_bot(own_postgres_url):
    async with two_bots(own_postgres_url) as (ada, ben):
        answers = []
        for storage, says in ((ada, "I am Ada"), (ben, "I am Ben")):
            llm = ScriptedChatLLM([says])
            service = AgentService(FunctionsBasedAgent(llm=llm), storage=storage)
            context = await AgentContext.get_or_create(storage, KEYS)
            await context.chat_history.append_user_message(f"Only {says[5:]} knows", author=ANN)
            answers.append((await service.prompt(context, "Who are you?")).text)
            other = "Ben" if says.endswith("Ada") else "Ada"
            assert f"Only {other}" not in str(llm.prompts)
            assert context.id == 1, "numbers alone would let them meet"
        assert answers == ["I am Ada", "I am Ben"]
        held = [await storage.claims.try_claim(1) for storage in (ada, ben)]
        assert None not in held
        for storage, claim in zip((ada, ben), held, strict=True):
            await storage.claims.release(claim)
        before = await _counts(ben)
        await forget_person(ada, ANN)
        assert await _counts(ben) == before
        assert (await _counts(ada))["messages"] < before["messages"]


async def _counts(storage):
    def count(connection):
        tables = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"))
        names = sorted(tables.scalars())
        return {each: connection.execute(text(f'SELECT count(*) FROM "{each}"')).scalar() for each in names}

    return await storage.read(count, is_long=True)


def _engine(url):
    return create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)


# As the document has it


def blocks(kind):
    found = (ROOT / "docs" / "several-bots.md").read_text()
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", found, re.MULTILINE | re.DOTALL)
    return [text for name, text in fences if name == kind]


def test_the_compose_file_of_the_document_gives_each_bot_a_schema_and_migrates_before_it_serves():
    [found] = [yaml.safe_load(each) for each in blocks("yaml")]
    services = found["services"]
    urls = {name: services[name]["environment"]["DATABASE_URL"] for name in ("ada", "ben")}
    assert {name: url.partition("search_path%3D")[2] for name, url in urls.items()} == {"ada": "ada", "ben": "ben"}
    for name in ("ada", "ben"):
        migrating = services[f"migrate-{name}"]
        assert services[name]["depends_on"] == {f"migrate-{name}": {"condition": "service_completed_successfully"}}
        assert migrating["environment"]["DATABASE_URL"] == urls[name]
        assert migrating["depends_on"] == {"db": {"condition": "service_healthy"}}


@pytest.mark.slow
def test_the_procfile_of_the_document_runs_two_bots_on_one_postgres(own_postgres_url, tmp_path):
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**kept, "PYTHONPATH": str(ROOT), "PATH": path}
    options = {"cwd": tmp_path, "env": environment, "text": True}
    [procfile] = [each for each in blocks("") if each.startswith("release:")]
    for name in ("ada", "ben"):
        subprocess.run([sys.executable, "-m", "botservice", "new", name], check=True, capture_output=True, **options)
        (tmp_path / name / ".env").write_text(f"DATABASE_URL={in_schema(own_postgres_url, name)}\n")
    (tmp_path / "Procfile").write_text(re.sub(r"PORT=\d+", "PORT=0", procfile))
    manager = [sys.executable, "-m", "honcho", "start"]
    released = subprocess.run([*manager, "release"], check=False, capture_output=True, **options)
    assert released.stdout.count("has version") == 2, released.stdout + released.stderr
    with subprocess.Popen([*manager, "ada", "ben"], stdout=subprocess.PIPE, **options) as running:
        try:
            ports = {}
            for line in running.stdout:
                if found := re.search(r"(ada|ben)\S* +\|.*listening +\S+:(\d+)", line):
                    ports[found[1]] = found[2]
                if len(ports) == 2:
                    break
            pages = {name: urllib3.request("GET", f"http://127.0.0.1:{port}/readyz") for name, port in ports.items()}
        finally:
            running.send_signal(signal.SIGTERM)
        running.stdout.read()
        running.wait(60)
    assert {name: page.status for name, page in pages.items()} == {"ada": 200, "ben": 200}
