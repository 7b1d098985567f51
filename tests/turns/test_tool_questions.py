"""Questions of MCP servers: asked in the chat, answered by the asker alone, and the call goes on with the answers."""

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
from botservice.privacy.right_queries import read_others
from botservice.storage.tables.conversations import deliveries, turn_figures
from botservice.storage.tables.waiting import approvals, pending_calls
from botservice.turns.inbox import Inbox
from botservice.turns.tool_answers import as_answer
from tests.turns.asking_hotel import REVISIONS, acted, buttons, calling, hotel, newest, statuses
from tests.turns.bots import call
from tests.turns.messenger import SetClock, office
from tests.turns.test_waiting import ANNA, BOB, OLGA, Group, Shop

pytestmark = [pytest.mark.slow, pytest.mark.any_database]


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
