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
            assert (await events.until("stopped")).data == {"id": question.data["id"], "calls": []}
            await events.until_idle()
            assert events.texts == ["count"]
        async with visitor.events() as later:
            assert (await later.until("message")).data["is_stopped"]
        async with visitor.events(after=question.id) as again:
            assert (await again.until("stopped")).data == {"id": question.data["id"], "calls": []}


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
            assert notice["text"].startswith("Sorry, I couldn’t answer this")
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


async def test_calls_stay_with_their_answer_and_long_results_are_cut_and_masked(run_site, storage_url):
    @tool
    async def read(path: str, token: str) -> str:
        """Read a file."""
        if path == "missing":
            raise FileNotFoundError("no such file")
        return '{"api_key": "sk-1234567890abcdefghij"}' + "x" * 5_000

    calls = [
        ToolCall("1", "read", {"path": "a", "token": "hunter2hunter2"}),
        ToolCall("2", "read", {"path": "missing", "token": "hunter2hunter2"}),
        ToolCall("3", "read", {}, '{"path": "b'),
    ]
    async with run_site([calls, "It is long.", "Nothing."], tools=[read], storage_url=storage_url) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("read")
            await events.until_answered()
            await visitor.say("and now")
            await events.until_answered()
        async with visitor.events() as later:
            await later.until_idle()
        assert [len(each["calls"]) for each in later.messages] == [0, 3, 0, 0]
        done, failed, malformed = later.messages[1]["calls"]
        assert (done["name"], done["state"], failed["state"], malformed["state"]) == (
            "read",
            "done",
            "failed",
            "failed",
        )
        assert done["result"].endswith("… (5,038 characters)")
        assert len(done["result"]) < 1_100
        assert "no such file" in failed["result"]
        assert malformed["arguments"] == '{"path": "b'
        assert done["seconds"] >= 0
        assert "hunter2hunter2" not in str(later.messages)
        assert "1234567890" not in str(later.messages)
        last = later.messages[-1]["id"]
        page = (await visitor.client.get(f"/web/earlier?before={last}")).json()
        assert page["messages"][1]["calls"] == later.messages[1]["calls"]
        stranger = await site.visitor()
        async with stranger.events() as others:
            await others.until_idle()
            assert others.messages == []


async def test_calls_stay_with_a_question_that_was_stopped_before_an_answer(run_site, typist):
    is_reached = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        is_reached.set()
        await asyncio.Event().wait()
        return ""

    async with run_site([ToolCall("", "wait", {}), "done"], tools=[wait]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("wait")
            await is_reached.wait()
            await stop(visitor)
            (stopped,) = (await events.until("stopped")).data["calls"]
            assert stopped["name"] == "wait"
            await events.until_idle()
        async with visitor.events() as later:
            assert (await later.until("message")).data["calls"] == [stopped]
