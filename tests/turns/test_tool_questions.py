"""Questions of MCP servers: asked in the chat, answered by the asker alone, and the call goes on with the answers."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from standins.mcp_servers import asking

from botservice import Attachment, FunctionsBasedAgent, InboundMessage, MCPServers, ScriptedChatLLM, Tool
from botservice.agent.agent import AgentTool
from botservice.agent.tool_questions import QuestionsAsked, ToolQuestion, questions_of_call
from botservice.commands.standard import standard_commands
from botservice.core.message_references import Reference, ReferenceKind
from botservice.people.access import Access
from botservice.privacy.right_queries import read_others
from botservice.storage.tables.conversations import deliveries, turn_figures
from botservice.storage.tables.people import model_usage
from botservice.storage.tables.waiting import approvals, pending_calls
from botservice.turns.inbox import Inbox
from botservice.turns.tool_answers import as_answer
from tests.turns.bots import call
from tests.turns.messenger import SetClock, office
from tests.turns.test_waiting import ANNA, BOB, OLGA, Group, Shop

pytestmark = [pytest.mark.slow, pytest.mark.any_database]
REVISIONS = pytest.mark.parametrize("revision", ["new", "old"])


def calling(name, **arguments):
    """Return a model that makes one call for what says `go`, and says what came of it."""

    def answer(prompt):
        results = [each["content"] for each in prompt if each["role"] == "tool"]
        said = [each["content"] for each in prompt if each["role"] == "user"][-1].rpartition(": ")[2]
        if said.startswith("go"):
            return f"got {results[-1]}" if results else call(f"hotel__{name}", **arguments)
        return f"re {said}"

    return answer


@contextlib.asynccontextmanager
async def hotel(storage, folder, revision, model, *, entry=None, **options):
    toolset = MCPServers({"hotel": asking(revision, folder, **(entry or {}))}, wait_seconds=60)
    access = Access(owners=frozenset({"messenger:olga"}))
    try:
        async with office(
            storage,
            model,
            messenger=Group(),
            toolsets=[toolset],
            access=access,
            commands=standard_commands(),
            **options,
        ) as opened:
            yield Shop(opened, [], Inbox(storage, opened.worker.wake, access=access))
    finally:
        await toolset.close()


def acted(folder):
    path = folder / "acted.txt"
    return path.read_text().splitlines() if path.exists() else []


async def newest(bot, words):
    """Return the newest message, as soon as it has these words."""
    return (await bot.shows(lambda texts: texts and words in texts[-1]))[-1]


async def buttons(bot, count):
    return (await bot.asked(count))[-1]


@REVISIONS
async def test_a_form_is_asked_field_by_field_and_the_call_goes_on_with_the_answers(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("book", hotel="Ritz")) as bot:
        await bot.say("go")
        text = await newest(bot, "Your name")
        assert text.startswith("hotel has a question for Anna, about hotel__book:")
        assert "Who is *coming*? @everyone <b>https://evil.example</b>" in text
        assert "(1/5)" in text
        assert await statuses(bot) == ["waiting"]
        await bot.say("x" * 21)
        assert "between 1 and 20 characters" in await newest(bot, "Try again")
        await bot.say("Anna")
        await newest(bot, "Age (2/5)")
        await bot.say("old")
        await newest(bot, "not a whole number")
        await bot.say("200")
        await newest(bot, "between 1 and 120")
        await bot.say("37")
        await newest(bot, "Room (3/5)")
        double = (await buttons(bot, 1))[1]
        await bot.say("how are you?")
        await newest(bot, "re how are you?")
        await bot.say(double)
        await newest(bot, "Breakfast (4/5)")
        await bot.say("yes")
        await newest(bot, "Email (5/5)")
        await bot.say("nobody")
        await newest(bot, "anna@example.com")
        await bot.say("anna@example.org")
        await newest(bot, "got booked Ritz for Anna, 37, double, True, anna@example.org")
        assert len(acted(tmp_path)) == 1
        await bot.say(double)
        await newest(bot, "already answered")


async def statuses(bot):
    return [each.status for each in await bot.read(select(pending_calls.c.status).order_by(pending_calls.c.id))]


@REVISIONS
async def test_only_the_asker_answers_and_to_decline_is_an_answer(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("book", hotel="Ritz")) as bot:
        await bot.say("go")
        await newest(bot, "Your name")
        await bot.say("Bob", who="bob")
        await newest(bot, "re Bob")
        for who in (BOB, OLGA):
            assert not (await bot.press("/deny 1", who)).is_taken
        assert not (await bot.press("/allow 1")).is_taken
        await bot.say("/answer 1 Bob", who="bob")
        assert "asked" in await newest(bot, "Only the person who")
        await bot.say("/deny")
        text = await newest(bot, "got ")
        assert "decline" in text
        assert await bot.shows(lambda texts: any("Declined for Anna" in each for each in texts))
        assert acted(tmp_path) == []
        assert await statuses(bot) == ["denied"]


@REVISIONS
async def test_a_call_that_was_allowed_may_ask_and_is_in_the_ledger_once(storage, tmp_path, revision):
    entry = {"approval": "writes"}
    async with hotel(storage, tmp_path, revision, calling("ask_often", times=1), entry=entry) as bot:
        await bot.say("go")
        await newest(bot, "May I do this for Anna")
        await bot.press("/allow 1")
        await newest(bot, "Question 0?")
        assert await statuses(bot) == ["allowed", "waiting"]
        await bot.say("yes")
        await newest(bot, "got a")
        [entry] = await bot.read(select(approvals.c.decision, approvals.c.result))
        assert tuple(entry) == ("allowed", "worked")


@REVISIONS
async def test_an_agent_that_works_for_another_has_nobody_to_ask(storage, tmp_path, revision):
    toolset = MCPServers({"hotel": asking(revision, tmp_path)}, wait_seconds=60)
    inner = FunctionsBasedAgent(llm=ScriptedChatLLM(calling("book", hotel="Ritz")), toolsets=[toolset], search_k=0)
    clerk = AgentTool(inner, name="clerk", description="Book.")

    def answer(prompt):
        results = [each["content"] for each in prompt if each["role"] == "tool"]
        return f"got {results[-1]}" if results else call("clerk", task="go")

    try:
        async with office(storage, answer, messenger=Group(), tools=[clerk]) as opened:
            bot = Shop(opened, [], None)
            await bot.say("go")
            assert "nobody can be asked here" in await newest(bot, "got ")
    finally:
        await toolset.close()
    assert acted(tmp_path) == []


async def test_an_archive_holds_a_question_without_the_state_of_the_server(storage, tmp_path):
    async with hotel(storage, tmp_path, "new", calling("book", hotel="Ritz")) as bot:
        await bot.say("go")
        await newest(bot, "Your name")
        [kept] = (await storage.read(lambda connection: read_others(connection, [ANNA])))["pending_calls"]
        assert kept["question"]["asker"] == "hotel"
        assert "state" not in kept["question"]


@REVISIONS
async def test_a_question_can_be_cancelled(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("book", hotel="Ritz")) as bot:
        await bot.say("go")
        await newest(bot, "Your name")
        await bot.say("/cancel")
        assert "cancel" in await newest(bot, "got ")
        assert acted(tmp_path) == []
        await bot.say("/cancel")
        await newest(bot, "No question is waiting")


@REVISIONS
async def test_a_secret_is_never_asked_for_and_the_model_is_told_so(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("log_in")) as bot:
        await bot.say("go")
        text = await newest(bot, "got ")
        assert "its form asks for a secret, in the field 'api_key'" in text
        assert len(bot.platform.visible["1"]) == 1
        assert acted(tmp_path) == []


@REVISIONS
async def test_a_server_asks_five_questions_in_one_call_and_no_more(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("ask_often", times=7)) as bot:
        await bot.say("go")
        for number in range(5):
            await newest(bot, f"Question {number}?")
            await bot.say("yes")
        text = await newest(bot, "got ")
        assert "more than 5 questions in one call" in text
        if revision == "old":
            assert "accept accept accept accept accept decline decline" in text


async def test_a_call_that_asks_while_it_is_open_acts_once(storage, tmp_path):
    async with hotel(storage, tmp_path, "old", calling("act_and_ask")) as bot:
        await bot.say("go")
        await newest(bot, "Go on?")
        await bot.say("yes")
        await newest(bot, "got the person: accept")
    assert acted(tmp_path) == ["before", "after accept"]


@REVISIONS
async def test_the_answer_reaches_the_call_on_another_replica(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("ask_often", times=1)) as bot:
        await bot.say("go")
        await newest(bot, "Question 0?")
    async with hotel(storage, tmp_path, revision, calling("ask_often", times=1)) as bot:
        bot.order = 1
        await bot.say("yes")
        await newest(bot, "got a")


async def test_a_call_that_was_lost_after_it_had_moved_is_not_made_again(storage, tmp_path):
    async with hotel(storage, tmp_path, "old", calling("act_and_ask")) as bot:
        await bot.say("go")
        await newest(bot, "Go on?")
    async with hotel(storage, tmp_path, "old", calling("act_and_ask")) as bot:
        bot.order = 1
        await bot.say("yes")
        text = await newest(bot, "got ")
        assert "the connection was lost before they had answered" in text
        assert "accept" in text
    assert acted(tmp_path) == ["before"]


@pytest.mark.parametrize(("says", "becomes"), [("yes", "got the files"), ("/deny", "did not want to open")])
async def test_a_server_that_needs_a_page_opened_first_is_called_again(storage, tmp_path, says, becomes):
    async with hotel(storage, tmp_path, "old", calling("read_files")) as bot:
        await bot.say("go")
        await newest(bot, "https://files.example/connect")
        (tmp_path / "connected").touch()
        await bot.say(says)
        await newest(bot, becomes)


@REVISIONS
async def test_a_question_expires_and_the_model_is_told_so(storage, tmp_path, revision):
    clock = SetClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with hotel(storage, tmp_path, revision, calling("book", hotel="Ritz"), clock=clock) as bot:
        await bot.say("go")
        await newest(bot, "Your name")
        clock.now += timedelta(hours=25)
        await bot.say("hello?")
        await bot.shows(lambda texts: any("did not answer in time" in each for each in texts))
        await bot.shows(lambda texts: any("Expired for Anna" in each for each in texts))
        assert await statuses(bot) == ["expired"]
    assert acted(tmp_path) == []


@pytest.mark.parametrize("revisions", [("old", "new"), ("new", "old")])
async def test_a_server_that_is_renewed_meanwhile_is_asked_again(storage, tmp_path, revisions):
    for revision, says, becomes in zip(revisions, ("go", "yes"), ("Question 0?", "got a"), strict=True):
        async with hotel(storage, tmp_path, revision, calling("ask_often", times=1)) as bot:
            bot.order = 0 if says == "go" else 1
            await bot.say(says)
            await newest(bot, becomes)


async def test_only_own_words_of_the_asker_that_mean_the_question_are_an_answer(storage, tmp_path):
    async with hotel(storage, tmp_path, "new", calling("book", hotel="Ritz")) as bot:
        await bot.say("go")
        await newest(bot, "Your name")
        now = storage.now()
        [asked] = await bot.read(select(pending_calls.c.context_id, pending_calls.c.told_at))
        await bot.say("hello", who="bob")
        await newest(bot, "re hello")  # by now, the platform's id of the question is stored
        sent = select(deliveries.c.external_id).join(pending_calls, pending_calls.c.delivery_id == deliveries.c.id)
        [shown] = await bot.read(sent)
        plain = InboundMessage("Carol", ANNA, is_private=False)
        forward = Reference(ReferenceKind.FORWARD, BOB, "Carol")

        def takes(at=now, **changes):
            def read(connection):
                return as_answer(connection, asked.context_id, replace(plain, **changes), at).command is not None

            return storage.read(read)

        assert await takes()
        assert await takes(replies_to=shown.external_id)
        assert not await takes(replies_to="another message")
        assert not await takes(is_addressed=False)
        assert not await takes(author=BOB)
        assert not await takes(author=OLGA)
        assert not await takes(references=(forward,), is_all_own=False)
        assert not await takes(attachments=(Attachment("image/png", "a.png", b""),), is_all_own=False)
        assert not await takes(text="[voice message]\nCarol", own_text="Carol")
        assert not await takes(text=" ")
        assert not await takes(only_tools=frozenset())
        assert not await takes(at=asked.told_at - timedelta(seconds=1))
        assert not await takes(at=now + timedelta(hours=25))


async def test_an_address_is_shown_whole_and_only_plain_https_is_passed_on(storage, tmp_path):
    async with hotel(storage, tmp_path, "new", calling("pay", url="https://pay.example/42")) as bot:
        await bot.say("go")
        text = await newest(bot, "https://pay.example/42")
        assert "a page of pay.example" in text
        await bot.say("yes")
        await newest(bot, "got the person: accept")


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "http://pay.example", "https://bank.example@evil.example/"]
)
async def test_another_address_is_declined(storage, tmp_path, url):
    async with hotel(storage, tmp_path, "new", calling("pay", url=url)) as bot:
        await bot.say("go")
        assert "was not passed on" in await newest(bot, "got ")
        assert len(bot.platform.visible["1"]) == 1


@REVISIONS
async def test_a_server_that_may_asks_the_model_on_the_bill_of_the_person(storage, tmp_path, revision):
    answer, seen = calling("sum_up"), []

    def model(prompt):
        if "Sum up" not in str(prompt[-1]["content"]):
            return answer(prompt)
        seen.append([each["content"] for each in prompt])
        return "wide sea"

    async with hotel(storage, tmp_path, revision, model, entry={"sampling": True}) as bot:
        await bot.say("go")
        await newest(bot, "got in short: wide sea")
        [used] = await bot.read(select(model_usage.c.calls))
        assert used.calls == 3
    assert seen == [["You sum up.", "Sum up: the sea is wide."]]


@REVISIONS
async def test_no_other_server_asks_the_model(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("sum_up")) as bot:
        await bot.say("go")
        text = await newest(bot, "got ")
        assert "ampling" in text


def by_word(prompt):
    """Call the tool that is named first with the word that comes after it."""
    results = [each["content"] for each in prompt if each["role"] == "tool"]
    said = [each["content"] for each in prompt if each["role"] == "user"][-1].rpartition(": ")[2]
    name, _, word = said.partition(" ")
    if name not in ("ask_twice_at_once", "work", "linger", "act_and_ask", "ask_often"):
        return f"re {said}"
    return f"got {results[-1]}" if results else call(f"hotel__{name}", **({"word": word} if word else {}))


async def see(bot, chat, words):
    await bot.shows(lambda texts: texts and words in texts[-1], chat)


async def until_acted(folder, line):
    async with asyncio.timeout(30):
        while line not in acted(folder):  # noqa: ASYNC110 - another process writes the file
            await asyncio.sleep(0.01)


async def test_a_second_question_of_a_call_never_reaches_the_chat_of_another_call(storage, tmp_path):
    async with hotel(storage, tmp_path, "old", by_word) as bot:
        await bot.say("ask_twice_at_once Anna's", chat="1")
        await see(bot, "1", "First about Anna's?")
        await bot.say("work Bob's", chat="2")
        await until_acted(tmp_path, "working on Bob's")
        (tmp_path / "second").touch()
        await until_acted(tmp_path, "second cancel")
        (tmp_path / "done").touch()
        await see(bot, "2", "worked on Bob's")
        await bot.say("yes", chat="1")
        await see(bot, "1", "got Anna's: accept cancel")
        assert not any("Anna" in each for each in bot.platform.visible["2"])


async def test_a_question_while_another_chat_has_an_open_one_reaches_nobody(storage, tmp_path):
    async with hotel(storage, tmp_path, "old", by_word) as bot:
        await bot.say("act_and_ask", chat="1")
        await see(bot, "1", "Go on?")
        await bot.say("act_and_ask", chat="2")
        await see(bot, "2", "nobody was asked")
        await bot.say("yes", chat="1")
        await see(bot, "1", "got the person: accept")
        await bot.say("act_and_ask", chat="2")
        await see(bot, "2", "Go on?")


async def test_stop_ends_a_call_that_is_held_and_the_server_can_ask_again(storage, tmp_path):
    async with hotel(storage, tmp_path, "old", by_word) as bot:
        await bot.say("act_and_ask")
        await newest(bot, "Go on?")
        await bot.stop()
        await newest(bot, "topped")
        await bot.say("act_and_ask", chat="2")
        await see(bot, "2", "Go on?")
        await bot.say("yes", chat="2")
        await see(bot, "2", "got the person: accept")
    assert acted(tmp_path) == ["before", "before", "after accept"]


async def test_a_question_of_a_call_that_was_stopped_never_reaches_another_chat(storage, tmp_path):
    async with hotel(storage, tmp_path, "old", by_word) as bot:
        await bot.say("linger Anna's", chat="1")
        await until_acted(tmp_path, "lingering over Anna's")
        await bot.say("work Bob's", chat="2")
        await until_acted(tmp_path, "working on Bob's")
        await bot.stop()
        await bot.say("hello", chat="1")
        await see(bot, "1", "re hello")
        (tmp_path / "late").touch()
        await until_acted(tmp_path, "late cancel")
        (tmp_path / "done").touch()
        await see(bot, "2", "worked on Bob's")
        assert not any("Anna" in each for each in bot.platform.visible["2"])
        await bot.say("ask_twice_at_once Bob's", chat="2")
        await see(bot, "2", "First about Bob's?")


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_an_answered_call_that_is_cut_off_runs_again_only_where_it_may(storage, is_idempotent):
    runs, began = [], asyncio.Event()

    async def ask() -> str:
        """Ask."""
        replied = questions_of_call().replied
        runs.append(None if replied is None else replied.replies[0].action.value)
        if replied is None:
            raise QuestionsAsked("asker", [ToolQuestion("Go on?")], {})
        if len(runs) == 2:
            began.set()
            await asyncio.Event().wait()
        return "asked"

    def answer(prompt):
        results = [each["content"] for each in prompt if each["role"] == "tool"]
        return f"got {results[-1]}" if results else call("ask")

    options = {"tools": [Tool(ask, idempotent=is_idempotent)], "commands": standard_commands()}
    async with office(storage, answer, messenger=Group(), **options) as opened:
        bot = Shop(opened, [], None)
        await bot.say("go")
        await newest(bot, "Go on?")
        await bot.say("yes")
        await began.wait()
    async with office(storage, answer, messenger=Group(), **options) as opened:
        await newest(Shop(opened, [], None), "got asked" if is_idempotent else "Interrupted: the outcome")
    assert runs == [None, "accept", *["accept"] * is_idempotent]


async def test_the_time_that_a_person_took_to_allow_and_to_answer_is_not_the_bots(storage):
    async def ask() -> str:
        """Ask."""
        if questions_of_call().replied is None:
            raise QuestionsAsked("asker", [ToolQuestion("Go on?")], {})
        return "asked"

    clock = SetClock(datetime(2026, 1, 1, tzinfo=UTC))
    options = {"tools": [Tool(ask, needs_approval=True)], "commands": standard_commands(), "clock": clock}
    async with office(storage, calling_for_go("ask"), messenger=Group(), **options) as opened:
        bot = Shop(opened, [], Inbox(storage, opened.worker.wake, clock=clock))
        await bot.say("go")
        (says,) = await bot.asked()
        clock.now += timedelta(hours=1)
        await bot.press(says[0])
        await newest(bot, "Go on?")
        clock.now += timedelta(minutes=2)
        await bot.say("yes")
        await newest(bot, "got asked")
        assert [each.lasted_ms for each in await bot.read(select(turn_figures.c.lasted_ms))] == [0]


async def test_a_second_question_that_expires_is_not_asked_again(storage):
    runs = []

    async def ask() -> str:
        """Ask twice."""
        replied = questions_of_call().replied
        runs.append(replied is not None)
        raise QuestionsAsked("asker", [ToolQuestion("First?" if replied is None else "Second?")], {})

    clock = SetClock(datetime(2026, 1, 1, tzinfo=UTC))
    options = {"tools": [Tool(ask)], "commands": standard_commands(), "clock": clock}
    async with office(storage, calling_for_go("ask"), messenger=Group(), **options) as opened:
        bot = Shop(opened, [], None)
        await bot.say("go")
        await newest(bot, "First?")
        await bot.say("yes")
        await newest(bot, "Second?")
        clock.now += timedelta(hours=25)
        await bot.say("hello?")
        await bot.shows(lambda texts: any("did not answer in time" in each for each in texts))
    assert runs == [False, True]


def calling_for_go(name):
    """Return a model that calls a tool without arguments, and says what it gave."""

    def answer(prompt):
        results = [each["content"] for each in prompt if each["role"] == "tool"]
        is_asked = [each["content"] for each in prompt if each["role"] == "user"][-1].endswith("go")
        return f"got {results[-1]}" if results else call(name) if is_asked else "hello"

    return answer


async def test_the_open_questions_of_a_person_are_listed_among_their_tools(storage, tmp_path):
    async with hotel(storage, tmp_path, "new", calling("book", hotel="Ritz")) as bot:
        await bot.say("go")
        await newest(bot, "Your name")
        await bot.say("/tools", "bob")
        await newest(bot, "No pending approvals.")
        await bot.say("/tools")
        assert "hotel__book" in await newest(bot, "Open questions:")
