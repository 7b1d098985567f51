"""Turns that were stopped or failed leave a mark, for every page that looks, and calls of tools are shown meanwhile."""

import asyncio

import pytest

from botservice import LLMError, ToolCall, tool


async def stop(visitor):
    assert (await visitor.post("/web/stop", {"id": "stop-0001"})).status_code == 202


async def test_a_stop_before_the_first_word_marks_the_question(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("count")
            question = await events.until("message")
            await typist.is_asked.wait()
            await stop(visitor)
            assert (await events.until("stopped")).data == {"id": question.data["id"]}
            await events.until_idle()
            assert events.texts == ["count"]
        async with visitor.events() as later:
            assert (await later.until("message")).data["is_stopped"]
        async with visitor.events(after=question.id) as again:
            assert (await again.until("stopped")).data == {"id": question.data["id"]}


async def test_an_answer_that_was_stopped_says_so_and_its_question_does_not(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("count")
            typist.write("one, two")
            await events.until_written("one, two")
            await stop(visitor)
            await events.until_answered()
        async with visitor.events() as later:
            await later.until_idle()
            assert [each["is_stopped"] for each in later.messages] == [False, True]
            assert later.of("stopped") == []
            typist.write("yes", None)
            await visitor.say("/retry")
            await later.until("message", lambda data: data["text"] == "yes")
            assert not later.messages[-1]["is_stopped"]


async def test_a_turn_that_failed_offers_to_ask_again_and_names_nobody_to_ask(run_site):
    async with run_site([LLMError("broken", is_transient=False), "better"]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("hello")
            notice = (await events.until("notice")).data
            assert notice["is_trouble"]
            assert notice["text"].startswith("Sorry, I could not answer this")
            assert "/retry" not in notice["text"]
            assert "T1" not in notice["text"]
            await visitor.say("/retry")
            await events.until_answered()
            assert events.texts[-1] == "better"


async def test_a_call_is_shown_with_its_arguments_and_what_became_of_it_and_without_secrets(run_site):
    is_free = asyncio.Event()

    @tool
    async def look_up(word: str, api_key: str) -> str:
        """Look a word up."""
        await is_free.wait()
        raise ValueError("no such word")

    call = ToolCall("", "look_up", {"word": "<b>bot</b>\nnet", "api_key": "sk-1234567890abcdef"})
    async with run_site([call, "It is a word."], tools=[look_up]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("what is a bot?")
            (running,) = (await events.until("calls")).data["calls"]
            assert (running["name"], running["state"]) == ("look_up", "running")
            assert "word: <b>bot</b>\\nnet" in running["arguments"]
            assert "sk-1234567890abcdef" not in running["arguments"]
            async with visitor.events() as later:
                assert (await later.until("calls")).data["calls"] == [running]
            is_free.set()
            await events.until("calls", lambda data: data["calls"] == [{**running, "state": "failed"}])
            await events.until_answered()


@pytest.mark.parametrize("count", [40])
async def test_of_many_calls_the_newest_are_shown(run_site, count):
    @tool
    async def add(number: int) -> int:
        """Add."""
        return number

    calls = [[ToolCall(str(each), "add", {"number": each}) for each in range(count)]]
    async with run_site([*calls, "done"], tools=[add]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("add")
            await events.until_answered()
            assert all(len(each["calls"]) <= 30 for each in events.of("calls"))
