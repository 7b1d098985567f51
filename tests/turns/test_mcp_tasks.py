"""Calls of MCP servers that become tasks: whoever works on the turn goes on with the same task."""

import asyncio
import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from standins.mcp_servers import TASKS as SERVER
from standins.mcp_servers import free_port, making_tasks, running

from botservice import AgentService, FunctionsBasedAgent, MCPServers, ScriptedChatLLM
from botservice.commands.standard import standard_commands
from botservice.conversation.context import AgentContext
from botservice.storage.tables.conditions import CALL_IS_OPEN
from botservice.storage.tables.conversations import tool_calls
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.inbox import Inbox
from tests.turns.asking_hotel import acted, newest, until_acted
from tests.turns.bots import call
from tests.turns.messenger import SetClock, office
from tests.turns.test_waiting import Group, Shop

pytestmark = [pytest.mark.slow, pytest.mark.any_database]


def calling(name, **arguments):
    """Return a model that makes one call for what says `go`, and says what came of it."""

    def answer(prompt):
        results = [each["content"] for each in prompt if each["role"] == "tool"]
        said = [each["content"] for each in prompt if each["role"] == "user"][-1].rpartition(": ")[2]
        if said.startswith("go"):
            return f"got {results[-1]}" if results else call(f"lab__{name}", **arguments)
        return f"re {said}"

    return answer


@contextlib.asynccontextmanager
async def lab(storage, folder, model, *, entry=None, **options):
    toolset = MCPServers({"lab": entry or making_tasks(folder)}, wait_seconds=60)
    messenger = options.pop("messenger", None) or Group()
    try:
        async with office(
            storage, model, messenger=messenger, toolsets=[toolset], commands=standard_commands(), **options
        ) as opened:
            yield Shop(opened, [], Inbox(storage, opened.worker.wake))
    finally:
        await toolset.close()


def task_of(folder):
    [path] = folder.glob("*.json")
    return path


def change(folder, **values):
    """Have the server say something else of its task."""
    path = task_of(folder)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@contextlib.contextmanager
def by_http(folder, port=None):
    port = port or free_port()
    with running(
        f"import sys, runpy; sys.argv[0] = 'x'; runpy.run_path({str(SERVER)!r})", port, str(folder), str(port)
    ):
        yield {"url": f"http://127.0.0.1:{port}/mcp", "approval": "never"}


async def until_kept(bot):
    """Wait until the task is kept with its call."""
    async with asyncio.timeout(30):
        while not any(  # noqa: ASYNC110 - a worker writes it
            "has_paused" in (row.result or "") for row in await bot.read(select(tool_calls.c.result))
        ):
            await asyncio.sleep(0.01)


async def until_pause(bot):
    """Wait until the turn waits for the task."""
    async with asyncio.timeout(30):
        query = select(pending_calls.c.id).where(pending_calls.c.question.is_(None), CALL_IS_OPEN)
        while not await bot.read(query):  # noqa: ASYNC110 - a worker writes it
            await asyncio.sleep(0.01)


async def newest_after(bot, clock, words):
    """Return the newest message as soon as it has these words, with two minutes between two looks at the task."""
    async with asyncio.timeout(60):
        while not any(words in each for each in bot.platform.visible.get("1", ())):
            clock.now += timedelta(minutes=2)
            await asyncio.sleep(0.2)


async def test_a_call_that_becomes_a_task_gives_the_result_of_the_task(storage, tmp_path):
    with by_http(tmp_path) as entry:
        async with lab(storage, tmp_path, calling("research", word="bees"), entry=entry) as bot:
            await bot.say("go")
            await until_kept(bot)
            (tmp_path / "done").touch()
            assert await newest(bot, "got ") == f"got found by {task_of(tmp_path).stem}"
    assert acted(tmp_path) == ["research bees"]


async def test_what_the_server_says_of_its_task_is_shown_as_progress(storage, tmp_path):
    shown = []

    class Live:
        def __getattr__(self, name):
            return lambda *_, **__: None

        def on_progress(self, call, text):
            shown.append(text)

        async def close(self):
            pass

    messenger = Group()
    messenger.make_live = lambda *_: Live()
    async with lab(storage, tmp_path, calling("research"), messenger=messenger) as bot:
        await bot.say("go")
        async with asyncio.timeout(30):
            while not shown:  # noqa: ASYNC110 - it comes from the server
                await asyncio.sleep(0.01)
        (tmp_path / "done").touch()
        await newest(bot, "got found")
    assert set(shown) == {"reading the sources"}


async def test_another_process_goes_on_with_the_task_of_a_turn_that_was_cut_off(storage, tmp_path):
    model = calling("research", word="bees")
    async with lab(storage, tmp_path, model) as bot:
        await bot.say("go")
        await until_kept(bot)
    assert acted(tmp_path) == ["research bees"]  # stopping a process cancels no task
    (tmp_path / "done").touch()
    async with lab(storage, tmp_path, model) as bot:
        assert await newest(bot, "got ") == f"got found by {task_of(tmp_path).stem}"
    assert acted(tmp_path) == ["research bees"]


async def test_a_turn_waits_for_a_task_that_takes_long_and_looks_at_it_from_time_to_time(storage, tmp_path):
    clock = SetClock(datetime(2026, 6, 1, tzinfo=UTC))
    model = calling("research", more=json.dumps({"pollIntervalMs": 600_000}))
    async with lab(storage, tmp_path, model, clock=clock) as bot:
        await bot.say("go")
        await newest(bot, "takes longer")
        await bot.say("hello")
        await newest(bot, "re hello")
        clock.now += timedelta(minutes=9)
        [(first,)] = await bot.read(select(pending_calls.c.id))
        clock.now += timedelta(minutes=2)
        async with asyncio.timeout(30):
            query = select(pending_calls.c.id)
            while (rows := await bot.read(query)) == [(first,)] or len(rows) != 1:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
    (tmp_path / "done").touch()
    async with lab(storage, tmp_path, model, clock=clock) as bot:
        clock.now += timedelta(minutes=11)
        await newest(bot, "got found")
        assert len(bot.platform.visible["1"]) == 1
    assert acted(tmp_path) == ["research "]


async def test_stop_cancels_the_task_that_a_turn_works_on(storage, tmp_path):
    async with lab(storage, tmp_path, calling("research")) as bot:
        await bot.say("go")
        await until_kept(bot)
        await bot.stop()
        await until_acted(tmp_path, "cancelled")
        await bot.say("hello")
        await newest(bot, "re hello")


async def test_stop_cancels_the_task_that_a_turn_waits_for(storage, tmp_path):
    model = calling("research", more=json.dumps({"pollIntervalMs": 600_000}))
    async with lab(storage, tmp_path, model) as bot:
        await bot.say("go")
        await newest(bot, "takes longer")
    async with lab(storage, tmp_path, model) as bot:
        bot.order = 1
        await bot.stop()
        await until_acted(tmp_path, "cancelled")
        await bot.say("hello")
        await newest(bot, "re hello")


async def test_the_questions_of_a_task_are_asked_in_the_chat_each_once(storage, tmp_path):
    model = calling("greet")
    async with lab(storage, tmp_path, model) as bot:
        await bot.say("go")
        await newest(bot, "Who is there?")
        await bot.say("Anna")
        await newest(bot, "Anna, and your surname?")
    async with lab(storage, tmp_path, model) as bot:
        bot.order = 2
        await bot.say("Adams")
        assert await newest(bot, "got ") == "got hello {'name': 'Adams'}"
    assert acted(tmp_path) == [
        "greet ",
        'answered first {"action": "accept", "content": {"name": "Anna"}}',
        'answered second {"action": "accept", "content": {"name": "Adams"}}',
    ]


async def test_a_task_is_made_after_a_question_and_the_call_goes_on_with_it(storage, tmp_path):
    model = calling("confirm")
    async with lab(storage, tmp_path, model) as bot:
        await bot.say("go")
        await newest(bot, "Really?")
        await bot.say("Anna")
        await until_kept(bot)
    change(tmp_path, status="completed", result={"content": [{"type": "text", "text": "confirmed"}]})
    async with lab(storage, tmp_path, model) as bot:
        await newest(bot, "got confirmed")
    assert acted(tmp_path) == ["confirm "]


@pytest.mark.parametrize("how", ["/deny", "expired"])
async def test_a_question_of_a_task_that_is_not_answered_is_told_to_the_server(storage, tmp_path, how):
    clock = SetClock(datetime(2026, 6, 1, tzinfo=UTC))
    async with lab(storage, tmp_path, calling("greet"), clock=clock) as bot:
        await bot.say("go")
        await newest(bot, "Who is there?")
        if how == "/deny":
            await bot.say("/deny")
        else:
            clock.now += timedelta(hours=25)
        action = "decline" if how == "/deny" else "cancel"
        await newest(bot, f"got hello {action}")
    assert acted(tmp_path) == ["greet ", f'answered first {{"action": "{action}"}}']


async def test_the_answers_reach_a_server_that_is_away_once_it_is_back(storage, tmp_path):
    clock, model, port = SetClock(datetime.now(UTC)), calling("greet"), free_port()
    with by_http(tmp_path, port) as entry:
        async with lab(storage, tmp_path, model, entry=entry) as bot:
            await bot.say("go")
            await newest(bot, "Who is there?")
    async with lab(storage, tmp_path, model, entry=entry, clock=clock) as bot:
        bot.order, clock.now = 1, datetime.now(UTC)
        await bot.say("Anna")
        await until_pause(bot)
        with by_http(tmp_path, port):
            await newest_after(bot, clock, "Anna, and your surname?")
    assert acted(tmp_path) == ["greet ", 'answered first {"action": "accept", "content": {"name": "Anna"}}']


async def test_a_call_whose_server_was_taken_away_is_not_taken_as_never_made(storage, tmp_path):
    async with lab(storage, tmp_path, calling("research")) as bot:
        await bot.say("go")
        await until_kept(bot)
    async with office(storage, calling("research"), messenger=Group(), commands=standard_commands()) as opened:
        assert "may have taken effect" in await newest(Shop(opened, [], None), "got ")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"status": "failed", "error": {"code": -32603, "message": "the oven is\x1b cold"}},
            "failed: the oven is  cold",
        ),
        ({"status": "failed", "error": None}, "failed"),
        ({"status": "cancelled", "statusMessage": "no time"}, "cancelled its task for this call: no time"),
        ({"status": "paused"}, "a status that MCP does not know"),
        ({"status": None}, "a status that MCP does not know"),
        ({"taskId": "another"}, "about another task"),
        ({"status": "completed"}, "something that is no result"),
        ({"status": "completed", "result": {"content": "x"}}, "something that is no result"),
        ({"status": "completed", "result": {"content": [{"type": "text", "text": "bad"}], "isError": True}}, "bad"),
        ({"status": "input_required", "inputRequests": [1]}, "something that is no result"),
        (
            {
                "status": "input_required",
                "inputRequests": {
                    str(place): {
                        "method": "elicitation/create",
                        "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
                    }
                    for place in range(6)
                },
            },
            "asks too much in one call",
        ),
    ],
)
async def test_a_server_that_says_nonsense_of_its_task_ends_the_call_with_a_clear_error(
    storage, tmp_path, values, says
):
    async with lab(storage, tmp_path, calling("research")) as bot:
        await bot.say("go")
        await until_kept(bot)
        change(tmp_path, **values)
        assert says in await newest(bot, "got ")
    assert acted(tmp_path)[0] == "research "


@pytest.mark.parametrize("interval", [0, -5, "x", True, None, 1e300])
async def test_a_server_is_asked_at_a_sane_interval(storage, tmp_path, interval):
    async with lab(storage, tmp_path, calling("research", more=json.dumps({"pollIntervalMs": interval}))) as bot:
        await bot.say("go")
        await until_kept(bot)
        (tmp_path / "done").touch()
        await newest(bot, "takes longer" if interval == 1e300 else "got found")


async def test_a_server_that_no_longer_knows_the_task_is_told_plainly(storage, tmp_path):
    async with lab(storage, tmp_path, calling("research")) as bot:
        await bot.say("go")
        await until_kept(bot)
        task_of(tmp_path).unlink()
        assert "no longer knows its task" in await newest(bot, "got ")


async def test_an_endless_task_is_cancelled_after_a_day(storage, tmp_path):
    clock = SetClock(datetime(2026, 6, 1, tzinfo=UTC))
    async with lab(storage, tmp_path, calling("research", more='{"pollIntervalMs": 600000}'), clock=clock) as bot:
        await bot.say("go")
        await newest(bot, "takes longer")
        clock.now += timedelta(hours=25)
        assert "did not end its task for this call in time" in await newest(bot, "got ")
    assert acted(tmp_path) == ["research ", "cancelled"]


async def test_a_program_waits_for_a_task_as_long_as_a_call_may_take(storage, tmp_path):
    toolset = MCPServers({"lab": making_tasks(tmp_path, timeout=2)}, wait_seconds=60)
    llm = ScriptedChatLLM([call("lab__research"), lambda prompt: prompt[-1]["content"]])
    agent = FunctionsBasedAgent(llm=llm, toolsets=[toolset], search_k=0)
    async with AgentService(agent, storage) as service:
        context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
        assert "in time" in (await service.prompt(context, "go")).text
    assert acted(tmp_path) == ["research ", "cancelled"]
