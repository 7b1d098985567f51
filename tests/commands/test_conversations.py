"""/new, /retry and /why, given in a chat."""

import asyncio
import contextlib
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select
from turns.bots import NO_WAITING, add, call, fail
from turns.messenger import Messenger, Office

from botservice import (
    AgentContext,
    ChatResponse,
    EmbeddingIndexer,
    FunctionsBasedAgent,
    LLMError,
    ScriptedChatLLM,
    TokenUsage,
)
from botservice.commands.standard import standard_commands
from botservice.commands.why import read_sources
from botservice.conversation.callbacks import StepCallbacks
from botservice.core.messages import Author
from botservice.core.policies import parse_prices
from botservice.people.budgets import Budgets
from botservice.storage.tables.conversations import turns
from botservice.texts import LANGUAGES
from botservice.turns.commands import parse_command
from botservice.turns.run_options import RunOptions, utc_now
from botservice.turns.worker import Worker

CHAT = {"transport": "messenger", "chat_id": "1"}


class Commanded(Messenger):
    """A messenger that knows commands; "bob: text" is said by Bob, in a group."""

    language = "en"
    is_private = True

    async def read(self, event):
        message = await super().read(event)
        name, separator, text = message.text.partition(": ")
        author = Author(self.name, "8", "bob") if separator and name == "bob" else message.author
        said = text if separator and name == "bob" else message.text
        return replace(
            message,
            text=said,
            author=author,
            command=parse_command(said),
            language=self.language,
            is_private=self.is_private,
            external_id=event.key,
        )


@contextlib.asynccontextmanager
async def chatting(storage, script, *, tools=(), messenger=None, budgets=None, **searching):
    llm = ScriptedChatLLM(script)
    agent = FunctionsBasedAgent(tools=tools, llm=llm, **(searching or {"search_k": 3}), prompt="")
    options = RunOptions(agent, StepCallbacks(None), 10, utc_now, NO_WAITING, budgets or Budgets())
    messenger = messenger or Commanded()
    worker = Worker(storage, options, [messenger], commands=standard_commands())
    await worker.start()
    try:
        yield Office(storage, messenger, worker, utc_now), llm
    finally:
        await worker.stop()


async def history(storage) -> list[str]:
    return [each.text for each in await (await AgentContext.get_or_create(storage, CHAT)).chat_history.messages()]


async def answer_to(bot, text: str, order: int) -> str:
    """Say something and return what becomes visible next."""
    before = len(bot.messenger.visible.get("1", []))
    await bot.write(text, order=order)
    await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", [])) > before)
    return bot.messenger.visible["1"][before]


async def until_stopped(storage) -> None:
    """Wait until a turn ended because it was stopped."""
    query = select(turns.c.id).where(turns.c.outcome == "stopped")
    async with asyncio.timeout(20):
        while not await storage.read(lambda connection: connection.execute(query).all()):  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.01)


def contents(prompt) -> list[str]:
    return [each["content"] for each in prompt]


@pytest.mark.any_database
async def test_new_begins_afresh_and_the_past_is_still_found(storage):
    async with chatting(storage, ["Nice.", "Hello.", "Rex."], search_k=1) as (bot, llm):
        await answer_to(bot, "my dog is called Rex", 1)
        assert (await answer_to(bot, "/new", 2)).startswith("We’re starting over.")
        await answer_to(bot, "good morning", 3)
        assert contents(llm.prompts[1]) == ["good morning"]
        await answer_to(bot, "what is my dog called?", 4)
        *window, remembered, question = contents(llm.prompts[2])
        assert "my dog is called Rex" in remembered
        assert [*window, question] == ["good morning", "Hello.", "what is my dog called?"]
    assert len(await history(storage)) == 6, "nothing is deleted"


@pytest.mark.any_database
async def test_select_messages_begins_where_the_conversation_does(storage):
    from botservice import MessageWindowMessageSelector

    async with chatting(storage, ["one", "two"]) as (bot, _):
        await answer_to(bot, "first", 1)
        await answer_to(bot, "/new", 2)
        await answer_to(bot, "second", 3)
    context = await AgentContext.get_or_create(storage, CHAT)
    found = await context.chat_history.select_messages(MessageWindowMessageSelector(10))
    assert [each.text for each in found] == ["second", "two"]


@pytest.mark.any_database
async def test_retry_replaces_the_last_answer_as_often_as_one_likes(storage):
    async with chatting(storage, ["zero", "first", "second", "third"]) as (bot, llm):
        await answer_to(bot, "before", 1)
        await answer_to(bot, "question", 2)
        for order, answer in ((3, "second"), (4, "third")):
            assert await answer_to(bot, "bob: /retry", order) == answer
        assert contents(llm.prompts[-1]) == ["before", "zero", "question"]
    context = await AgentContext.get_or_create(storage, CHAT)
    kept = await context.chat_history.messages()
    assert [each.text for each in kept] == ["before", "zero", "question", "third"]
    assert kept[2].author.name == "alice", "it stays the question of whoever asked it"
    assert kept[2].external_id == "1:2", "and an edit of it still finds it"


@pytest.mark.any_database
async def test_retry_takes_up_a_question_that_could_not_be_answered(storage):
    script = [LLMError("down", is_transient=False), "now"]
    async with chatting(storage, script) as (bot, _):
        assert (await answer_to(bot, "question", 1)).startswith("Sorry")
        assert await answer_to(bot, "/retry", 2) == "now"
    assert await history(storage) == ["question", "now"]


@pytest.mark.any_database
@pytest.mark.parametrize("command", ["/retry", "/why"])
async def test_where_nothing_was_asked_that_is_said(storage, command):
    async with chatting(storage, ["one"]) as (bot, llm):
        assert (await answer_to(bot, command, 1)) != ""
        await answer_to(bot, "question", 2)
        await answer_to(bot, "/new", 3)
        assert not (await answer_to(bot, command, 4)).startswith("My last")
        assert len(llm.prompts) == 1


@pytest.mark.any_database
async def test_why_says_what_the_last_answer_was_made_of(storage):
    script = ["Nice.", "Ok.", [call("add", a=1, b=2), call("fail")], "Three."]
    async with chatting(storage, script, tools=[add, fail], search_k=1) as (bot, _):
        await answer_to(bot, "my lucky number is *seven*", 1)
        await answer_to(bot, "/new", 2)
        await answer_to(bot, "good morning", 3)
        await answer_to(bot, "what is my lucky number?", 4)
        why = await answer_to(bot, "/why", 5)
        assert "“what is my lucky number?”" in why
        assert "the newest 2 messages of this chat" in why
        assert " UTC] alice: my lucky number is *seven*" in why
        assert "found by words; the best match covers 78% of the question" in why
        assert "  - add: succeeded" in why
        assert "  - fail: failed (ValueError: it broke)" in why
        assert "the model scripted: 2 calls" in why
        assert await answer_to(bot, "/why", 6) == why, "the answer to /why is no answer of the model"
    assert "/why" not in await history(storage)


async def test_why_says_nothing_of_the_newest_messages_where_a_question_was_the_first(storage):
    async with chatting(storage, ["Nice."]) as (bot, _):
        await answer_to(bot, "good morning", 1)
        why = await answer_to(bot, "/why", 2)
        assert "newest" not in why
        assert "the model scripted: 1 call" in why


class Alike:
    """An embedder to which all texts mean the same."""

    model_key, dim = "alike", 2

    async def embed_documents(self, texts):
        return np.ones((len(texts), 2), np.float32)

    async def embed_query(self, text):
        return np.ones(2, np.float32)


async def test_why_says_that_meaning_was_searched_too(storage):
    async with chatting(storage, ["Nice.", "Ok.", "Seven."]) as (bot, _), EmbeddingIndexer(storage, Alike()) as indexer:
        await answer_to(bot, "my lucky number is seven", 1)
        await answer_to(bot, "/new", 2)
        await answer_to(bot, "good morning", 3)
        await indexer.catch_up()
        await answer_to(bot, "what is my lucky number?", 4)
        assert "found by words and meaning; the best match covers" in await answer_to(bot, "/why", 5)


@pytest.mark.any_database
async def test_why_shows_the_passage_and_the_newer_of_two_values(storage):
    filler = "The weather stays as it is. " * 60
    async with chatting(storage, ["Ok."] * 5, search_tokens=500) as (bot, _):
        await answer_to(bot, "the rent of my flat is 800", 1)
        await answer_to(bot, f"{filler}From May on the rent of my flat is 760. {filler}", 2)
        await answer_to(bot, "/new", 3)
        await answer_to(bot, "good morning", 4)
        await answer_to(bot, "how much is the rent of my flat?", 5)
        why = (await answer_to(bot, "/why", 6)).replace("\\", "")
    newer = next(each for each in why.splitlines() if "(newer)" in each)
    assert "[…]" in newer
    assert why.index("is 800") < why.index(newer)


@pytest.mark.any_database
@pytest.mark.parametrize(
    "said",
    [
        "[2026-01-02] (I eat no meat) at 10:30",
        "*a* _b_ `c` ~d~ <b> [e](http://f.g/h_i) j \\(k\\)",
        "$5, $6 and $x$",
        "# no",
        "- no",
    ],
)
async def test_why_shows_what_was_said_as_it_was_said(storage, said):
    async with chatting(storage, ["Ok."]) as (bot, _):
        await answer_to(bot, said, 1)
        why = await answer_to(bot, "/why", 2)
    assert f"“{said}”" in why


@pytest.mark.any_database
async def test_why_tells_of_what_could_not_be_answered_and_not_of_the_answer_before(storage):
    script = ["an answer", LLMError("down", is_transient=False)]
    async with chatting(storage, script) as (bot, _):
        await answer_to(bot, "first", 1)
        assert (await answer_to(bot, "second", 2)).startswith("Sorry")
        why = (await answer_to(bot, "/why", 3)).replace("\\", "")
    said, cause, made_of = why.split("\n", 2)
    assert "server did not respond, or failed." in cause
    told = "I couldn’t answer “second”: something went wrong on my side (error T2, 1 attempt)."
    assert said == f"{told} To ask again, use /retry."
    assert "The last attempt is based on:" in made_of


async def test_why_tells_of_what_was_stopped_and_how_far_it_came(storage):
    started, going_on = asyncio.Event(), asyncio.Event()

    async def slow(messages):
        started.set()
        await going_on.wait()
        return "too late"

    async with chatting(storage, ["an answer", slow]) as (bot, _):
        await answer_to(bot, "first", 1)
        await bot.write("second", order=2)
        await started.wait()
        await bot.stop_turn(order=3)
        await until_stopped(storage)
        assert await answer_to(bot, "/why", 4) == (
            "I was stopped before I began to answer “second”. No model was called."
        )


@pytest.mark.any_database
async def test_what_nobody_knows_and_a_late_stop_cost_no_call_of_the_model(storage):
    async with chatting(storage, []) as (bot, llm):
        assert "Did you mean /retry?" in await answer_to(bot, "/rety", 1)
        assert "I don’t know the command /frobnicate." in await answer_to(bot, "/frobnicate the dog", 2)
        assert "not writing an answer" in await answer_to(bot, "/stop", 3)
    assert llm.prompts == []
    assert await history(storage) == []


PRICED = Budgets(prices=parse_prices("scripted=10/100"))
TAKING = [
    ChatResponse(tool_calls=(call("add", a=1, b=2),), usage=TokenUsage(1000, 10)),
    ChatResponse("Three.", usage=TokenUsage(2000, 20)),
]


@pytest.mark.any_database
async def test_why_says_what_all_calls_of_the_model_cost_together(storage):
    async with chatting(storage, TAKING, tools=[add], budgets=PRICED) as (bot, _):
        await answer_to(bot, "what is 1 + 2?", 1)
        assert (await answer_to(bot, "/why", 2)).splitlines()[-1] == "- cost: 0.0330 USD"


@pytest.mark.any_database
@pytest.mark.parametrize("budgets", [Budgets(), Budgets(prices=parse_prices("other=1/2"))])
async def test_why_says_nothing_of_a_cost_that_is_not_known(storage, budgets):
    async with chatting(storage, TAKING, tools=[add], budgets=budgets) as (bot, _):
        await answer_to(bot, "what is 1 + 2?", 1)
        assert "cost" not in await answer_to(bot, "/why", 2)


@pytest.mark.any_database
async def test_where_others_read_why_the_cost_is_for_owners_alone(storage):
    messenger = Commanded()
    messenger.is_private = False
    async with chatting(storage, TAKING, tools=[add], budgets=PRICED, messenger=messenger) as (bot, _):
        await answer_to(bot, "what is 1 + 2?", 1)
        said = await answer_to(bot, "/why", 2)
    assert "2 calls" in said
    assert "cost" not in said


@pytest.mark.any_database
async def test_why_after_another_command_is_about_the_last_answer(storage):
    async with chatting(storage, ["Ok."]) as (bot, _):
        await answer_to(bot, "hello", 1)
        await answer_to(bot, "/help", 2)
        assert "“hello”" in await answer_to(bot, "/why", 3)


@pytest.mark.any_database
async def test_why_is_short_enough_for_a_chat_however_much_an_answer_was_made_of(storage):
    calls = [[call("add", a=number, b=number) for number in range(9)], "Done."]
    async with chatting(storage, ["Ok."] * 12 + calls, tools=[add], search_k=24) as (bot, _):
        for number in range(12):
            await answer_to(bot, f"my lucky number {number} is {'very ' * 80}lucky", number + 1)
        await answer_to(bot, "/new", 13)
        await answer_to(bot, "which lucky numbers do I have?", 14)
        said = await answer_to(bot, "/why", 15)
    assert "  - and 3 more" in said
    assert said.count("add: succeeded") == 6
    assert len(said) < 3000


async def test_why_never_tells_of_another_chat(storage):
    async with chatting(storage, ["elsewhere", "here"]) as (bot, _):
        await bot.write("a secret of another chat", chat="2", order=1)
        await bot.messenger.until(lambda: "2" in bot.messenger.visible)
        await answer_to(bot, "hello", 2)
        assert "secret" not in await answer_to(bot, "/why", 3)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_everything_is_said_in_every_language(sqlite_storage, language):
    messenger = Commanded()
    messenger.language = language
    script = [[call("add", a=1, b=1), call("fail")], "ok"]
    async with chatting(sqlite_storage, script, tools=[add, fail], messenger=messenger) as (bot, _):
        said = [await answer_to(bot, command, order) for order, command in enumerate(("/retry", "/why"))]
        await answer_to(bot, "question", 3)
        said += [await answer_to(bot, command, order) for order, command in ((4, "/why"), (5, "/new"))]
    assert all(said)
    assert not any("{" in each for each in said)
    assert language == "en" or not any(each.startswith(("My last", "A fresh", "There is", "I have")) for each in said)


def test_nothing_comes_of_no_steps():
    assert read_sources([]).calls == 0
