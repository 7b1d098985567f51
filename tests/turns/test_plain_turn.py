"""What a plain question costs: how often the database is asked, and what of the code it passes."""

import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from turns.bots import make_service
from turns.messenger import Messenger, echo, office

import botservice
from botservice import AgentContext, Storage
from botservice.commands.standard import standard_commands
from botservice.conversation.steps import TaskStep
from transports.web.app import WebTransport
from transports.web.owner_token import PageAccess

PACKAGE = Path(botservice.__file__).parent
MOST_MODULES = 20
MOST_STATEMENTS = 25
NOT_NEEDED = {
    *("turns/edits_and_deletions.py", "turns/buttons.py", "turns/wakeups.py"),
    *("turns/reminder_scheduler.py", "turns/unanswered_turns.py"),
    *("turns/sub_agents.py", "turns/open_step.py", "turns/spoken_answers.py"),
    *("turns/call_queries.py", "turns/suspension.py", "turns/turn_admission.py", "turns/control_effects.py"),
    *("commands/catalogue.py", "core/platform_capabilities.py", "core/personas.py"),
}


class Counting(Storage):
    """A storage that says how it was used."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.log = []
        self.told = []

    async def read(self, query, **how):
        self.log.append("read")
        return await super().read(query, **how)

    def issue(self, operation, **how):
        self.log.append("write")
        self.told.append(how.get("is_told", True))
        return super().issue(operation, **how)

    def issue_for(self, subject, operation, **how):
        self.log.append("write")
        self.told.append(how.get("is_told", True))
        return super().issue_for(subject, operation, **how)


class Passed:
    """The modules of the package that are entered within the block, in any thread that begins within it or runs it."""

    def __init__(self):
        self.modules = set()

    def __enter__(self):
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self.modules

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    def _look(self, frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            self.modules.add(str(path.relative_to(PACKAGE)))


async def test_a_prompt_begins_with_one_read_and_is_two_commits(storage_url):
    async with Counting.open(storage_url) as storage:
        service, _ = make_service(storage, ["hello", "again"])
        context = await AgentContext.get_or_create(storage, {"id": "1"})
        await service.prompt(context, "hi")
        storage.log.clear()
        await service.prompt(context, "and you?")
        assert storage.log[:2] == ["read", "write"]
        assert storage.log.count("write") == 2
        assert storage.log.count("read") <= 3  # two of them are the agent's: the window, and what is known


async def test_a_prompt_waits_for_the_disk_once_when_its_answer_is_stored(sqlite_url):
    async with Counting.open(sqlite_url) as storage:
        service, _ = make_service(storage, ["hello"])
        context = await AgentContext.get_or_create(storage, {"id": "1"})
        storage.told.clear()
        await service.prompt(context, "hi")
        assert storage.told == [False, True]


async def test_the_disk_has_a_turn_that_a_program_was_handed_or_whose_steps_it_sees(sqlite_url):
    async with Counting.open(sqlite_url) as storage:
        context = await AgentContext.get_or_create(storage, {"id": "1"})
        storage.told.clear()
        await (await make_service(storage, ["hello"])[0].start(context, "hi")).close()
        await make_service(storage, ["hello", "again"], callbacks=[print])[0].prompt(context, "hi")
        assert all(storage.told)


@pytest.mark.parametrize("seen_by", ["nobody", "a page", "a callback"])
async def test_the_disk_has_a_question_before_a_page_or_a_callback_sees_it(sqlite_url, seen_by):
    """A power cut would give its number out once more, and a page that knows it would pass over its answer."""
    messenger = Messenger()
    messenger.shows_history = seen_by == "a page"
    callbacks = {TaskStep: lambda step: None} if seen_by == "a callback" else None
    async with (
        Counting.open(sqlite_url) as storage,
        office(storage, echo, messenger=messenger, callbacks=callbacks, sweep_seconds=600) as bot,
    ):
        storage.told.clear()
        await bot.write("hi", order=1)
        await messenger.shows("1", "re: hi")
        await bot.worker.stop(grace_seconds=60)
        assert storage.told == [True, seen_by != "nobody", True, True]


def test_a_page_is_a_way_that_shows_what_is_stored_at_once():
    assert WebTransport(access=PageAccess()).shows_history


async def test_a_message_is_four_commits_from_its_arrival_to_its_delivery(sqlite_url):
    async with Counting.open(sqlite_url) as storage, office(storage, echo, sweep_seconds=600) as bot:
        storage.log.clear()
        await bot.write("hi", order=1)
        await bot.messenger.shows("1", "re: hi")
        await bot.worker.stop(grace_seconds=60)
        assert storage.log.count("write") == 4


async def test_a_message_runs_so_many_statements_and_no_more(sqlite_url):
    """Each costs about as much as forty calls, and on Postgres a way to the server and back."""
    async with Storage.open(sqlite_url) as storage, office(storage, echo, sweep_seconds=600) as bot:
        await bot.write("first", order=1)
        await bot.messenger.shows("1", "re: first")
        statements: list[str] = []

        @event.listens_for(Engine, "before_cursor_execute")
        def note(connection, cursor, statement, *_):
            if not statement.startswith("UPDATE deliveries"):  # of the first answer, it may come late
                statements.append(statement)

        try:
            await bot.write("second", order=2)
            await bot.messenger.shows("1", "re: first", "re: second")
            await bot.worker.stop(grace_seconds=60)
        finally:
            event.remove(Engine, "before_cursor_execute", note)
    assert len(statements) <= MOST_STATEMENTS, statements


async def test_a_message_passes_nothing_that_it_does_not_need(sqlite_url):
    messenger, commands = Messenger(), standard_commands()
    with Passed() as modules:
        async with (
            Storage.open(sqlite_url) as storage,
            office(storage, echo, messenger=messenger, commands=commands, sweep_seconds=600) as bot,
        ):
            await bot.write("first", order=1)
            await messenger.shows("1", "re: first")
            modules.clear()
            await bot.write("second", order=2)
            await messenger.shows("1", "re: first", "re: second")
            of_message = set(modules)
    assert [each for each in NOT_NEEDED if not (PACKAGE / each).is_file()] == []
    assert of_message & NOT_NEEDED == set()
    assert len([each for each in of_message if each.startswith("turns/")]) <= MOST_MODULES
