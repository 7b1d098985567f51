"""Calls that ask while they are open: each acts once, whatever ends it, and no question reaches another chat."""

import asyncio

import pytest

from botservice import Tool
from botservice.agent.tool_questions import QuestionsAsked, ToolQuestion, questions_of_call
from botservice.commands.standard import standard_commands
from tests.turns.asking_hotel import REVISIONS, acted, calling, hotel, newest, until_acted
from tests.turns.bots import call
from tests.turns.messenger import office
from tests.turns.test_waiting import Group, Shop

pytestmark = [pytest.mark.slow, pytest.mark.any_database]


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


@pytest.mark.parametrize("revisions", [("old", "new"), ("new", "old")])
async def test_a_server_that_is_renewed_meanwhile_is_asked_again(storage, tmp_path, revisions):
    for revision, says, becomes in zip(revisions, ("go", "yes"), ("Question 0?", "got a"), strict=True):
        async with hotel(storage, tmp_path, revision, calling("ask_often", times=1)) as bot:
            bot.order = 0 if says == "go" else 1
            await bot.say(says)
            await newest(bot, becomes)


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
