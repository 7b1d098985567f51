"""The event stream: what is stored and what is being written, without a gap and without a repetition."""

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta

import httpx

from botservice import Button, ChatResponse, LLMError, Storage, TokenUsage, ToolCall, progress, tool
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets
from transports.web.server_sent_events import PageStream, StreamPace
from transports.web.streaming import Hub
from transports.web.timeline import TimelineCursor

ONE_A_MINUTE = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
LATER = datetime.now(UTC) + timedelta(hours=1)
"""A moment by which everything is due, and which is in one minute for ever."""


async def test_a_message_and_its_answer_come_once_each_and_in_order(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await events.until_idle()
        assert (await visitor.say("hello")).status_code == 202
        await events.until_answered()
        assert events.texts == ["hello", "You said: hello"]
        question, answer = events.messages
        assert (question["role"], question["client_id"]) == ("user", "message-1")
        assert (answer["role"], answer["blocks"]) == ("assistant", ["<p>You said: hello</p>\n"])


async def test_the_answer_is_shown_while_it_is_written(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("tell me")
            await events.until("state", lambda data: data["working"])
            typist.write("Once ")
            await events.until_written("Once")
            typist.write("upon ", "a time")
            await events.until_written("Once upon a time")
            typist.write(None)
            await events.until_answered()
            assert events.texts == ["tell me", "Once upon a time"]
            names = [event.name for event in events.seen if event.name != "blocks"]
            assert names[-3:] == ["draft", "message", "state"]
            assert [name for name in names[:-3] if name != "state"][-1] == "message", "the question is shown first"


async def test_who_comes_in_the_middle_sees_the_whole_draft(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as first:
            await visitor.say("tell me")
            typist.write("Once upon ")
            await first.until_written("Once upon")
        async with visitor.events() as second:
            assert (await second.until("draft")).data["blocks"] == ["<p>Once upon</p>\n"]
            assert second.texts == ["tell me"]
            typist.write("a time", None)
            await second.until_answered()


async def test_a_tool_that_runs_is_named(run_site):
    is_free = asyncio.Event()

    @tool
    async def look_up(word: str) -> str:
        """Look a word up."""
        await is_free.wait()
        return "a word"

    script = [["Let me see. ", ToolCall("", "look_up", {"word": "bot"})], "It is a word."]
    async with run_site(script, tools=[look_up]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("what is a bot?")
            await events.until("draft", lambda data: data == {"blocks": [], "activity": "look_up"})
            is_free.set()
            await events.until_answered()
            assert events.texts[-1] == "It is a word."


async def test_what_a_tool_says_of_its_work_is_shown_also_to_who_comes_later(run_site):
    is_free = asyncio.Event()

    @tool
    async def look_up() -> str:
        """Look a word up."""
        progress("page <b>3</b>\nof 10")
        await is_free.wait()
        return "a word"

    async with run_site([ToolCall("", "look_up", {}), "It is a word."], tools=[look_up]) as site:
        visitor = await site.visitor()
        said = {"activity": "look_up", "text": "page <b>3</b> of 10"}
        async with visitor.events() as events:
            await visitor.say("what is a bot?")
            assert (await events.until("progress")).data == said
            async with visitor.events() as later:
                assert (await later.until("progress")).data == said
            is_free.set()
            await events.until_answered()
            assert events.texts == ["what is a bot?", "It is a word."]
            assert events.of("progress") == [said]


async def test_an_answer_that_another_process_wrote_is_shown(run_site, sqlite_url):
    async with run_site(works=False) as front, run_site(storage_url=sqlite_url) as worker:
        visitor = await front.visitor()
        async with visitor.events() as events:
            await visitor.say("who answers?")
            await events.until_answered()
            assert events.texts == ["who answers?", "You said: who answers?"]
        assert worker.llm.prompts


async def test_what_waits_is_shown_also_to_who_comes_later(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        await visitor.say("first")
        await typist.is_asked.wait()
        await visitor.say("second")
        async with visitor.events() as events:
            await events.until("state")
            assert events.texts == ["first"]
            assert [each["text"] for each in events.of("waiting")] == ["second"]
            typist.write("1", None, "2", None)
            await events.until_idle()
            assert events.texts == ["first", "1", "second", "2"]


async def test_an_apology_is_shown_and_does_not_become_part_of_the_conversation(run_site):
    async with run_site([LLMError("it is broken", is_transient=False), "better"]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("hello")
            notice = await events.until("notice")
            assert "Sorry" in notice.data["text"]
            assert (notice.data["asked"], notice.data["is_trouble"]) == (None, True)
            assert "it is broken" not in notice.data["text"]
        async with visitor.events() as again:
            await again.until_idle()
            assert [each["text"] for each in again.of("notice")] == [notice.data["text"]]
        async with visitor.events(after=notice.id) as events:
            await visitor.say("again")
            await events.until_answered()
            assert events.of("notice") == []
            assert events.texts == ["again", "better"]


async def test_a_stop_ends_the_answer_and_keeps_what_was_said(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("count")
            typist.write("one, two")
            await events.until_written("one, two")
            assert (await visitor.post("/web/stop", {"id": "stop-0001"})).status_code == 202
            await events.until_answered()
            assert events.texts == ["count", "one, two"]


async def test_a_draft_of_which_nothing_was_kept_goes_away(run_site):
    @tool
    async def wait_for_ever() -> str:
        """Wait."""
        return str(await asyncio.Event().wait())

    async with run_site([ToolCall("", "wait_for_ever")], tools=[wait_for_ever]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("wait")
            await events.until("draft", lambda data: data["activity"] == "wait_for_ever")
            await visitor.post("/web/stop", {"id": "stop-0001"})
            await events.until("draft_end")
            assert events.texts == ["wait"]


async def test_stopping_the_service_ends_the_streams_at_once(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await events.until_idle()
        await site.transport.stop()
        assert await events.next() is None
    assert (await visitor.client.get("/web/events")).status_code == 503
    refused = await visitor.say("too late")
    assert (refused.status_code, refused.json()["error"]) == (
        503,
        "The service is about to stop, or has not started yet.",
    )
    await site.transport.start(site.inbox, site.storage)
    assert (await visitor.say("in time")).status_code == 202


async def test_two_browsers_do_not_see_each_other(site):
    alice, bob = await site.visitor(), await site.visitor()
    async with alice.events() as hers, bob.events() as his:
        await alice.say("my secret")
        await hers.until_answered()
        await bob.say("hello")
        await his.until_answered()
        assert his.texts == ["hello", "You said: hello"]
        assert hers.texts == ["my secret", "You said: my secret"]


async def test_two_tabs_see_the_same(site):
    visitor = await site.visitor()
    async with visitor.events() as one, visitor.events() as other:
        await visitor.say("hello")
        await one.until_answered()
        await other.until_answered()
        assert one.texts == other.texts


async def test_a_question_without_a_session_is_refused(site):
    stranger = await site.visitor(is_open=False)
    assert (await stranger.client.get("/web/events")).status_code == 409
    assert (await stranger.client.get("/web/earlier?before=1")).status_code == 409
    assert (await stranger.say("hello")).status_code == 409


async def test_head_does_not_open_a_stream(site):
    visitor = await site.visitor()
    response = await visitor.client.head("/web/events")
    assert (response.status_code, response.content) == (200, b"")


async def test_a_silent_stream_gives_a_sign_of_life(sqlite_storage):
    stream = PageStream(
        sqlite_storage, Hub(), "nobody", TimelineCursor(), StreamPace(working=0.01, idle=0.01, heartbeat=0.02)
    )
    async with contextlib.aclosing(stream.events()) as events, asyncio.timeout(60):
        said = [await anext(events) for _ in range(4)]
    assert said[1].startswith("event: state")
    assert said[2:] == [": still here\n\n"] * 2


async def test_trouble_with_storage_is_said_once_and_taken_back(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        hub = Hub()
        stream = PageStream(storage, hub, "nobody", TimelineCursor(), StreamPace(working=0.01, idle=0.01, heartbeat=60))
        async with contextlib.aclosing(stream.events()) as events, asyncio.timeout(60):
            assert [await anext(events) for _ in range(2)][1].startswith("event: state")
            await storage.close()
            assert (await anext(events)).startswith("event: trouble")
            await storage
            assert (await anext(events)).startswith("event: state")


async def test_readers_that_left_are_not_kept(site):
    visitor = await site.visitor()
    hub = site.transport._hub
    for _ in range(3):
        async with visitor.events() as events:
            await events.until_idle()
    async with visitor.events() as events:
        await events.until_idle()
        async with asyncio.timeout(60):
            while hub.count_watchers() != 1:
                await visitor.client.get("/")


async def test_a_client_that_goes_away_while_the_answer_is_written_harms_nothing(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        with contextlib.suppress(httpx.HTTPError):
            async with visitor.events() as events:
                await visitor.say("tell me")
                typist.write("Once ")
                await events.until_written("Once")
        typist.write(*("word " for _ in range(1000)), None)
        async with visitor.events() as events:
            await events.until_answered()
            assert len(events.texts[-1]) == 5005


async def test_buttons_come_with_their_answer_and_stay_with_it(run_site):
    @tool
    async def offer() -> list:
        """Offer a choice."""
        return [
            Button("Small"),
            Button("Large", value="size L"),
            Button("All", url="https://x.org"),
            Button("Bad", url="x:y"),
        ]

    async with run_site([ToolCall("", "offer", {}), "Which size?"], tools=[offer]) as site:
        visitor = await site.visitor()
        shown = [{"text": "Small", "says": "Small"}, {"text": "Large", "says": "size L"}]
        shown.append({"text": "All", "url": "https://x.org"})
        async with visitor.events() as events:
            await visitor.say("choose")
            await events.until_answered()
            assert events.messages[1]["buttons"] == shown
        async with visitor.events() as events:
            await events.until_idle()
            assert events.messages[1]["buttons"] == shown


async def test_the_answer_to_a_command_is_a_notice_and_no_part_of_the_conversation(run_site):
    async with run_site(["never asked"]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("/new")
            notice = (await events.until("notice")).data
            assert notice["text"].startswith("We’re starting over.")
            assert notice["blocks"][0].startswith('<p class="plain">We’re starting over.')
            assert (notice["asked"], notice["is_trouble"]) == ("/new", False)
            assert events.messages == []


async def test_a_budget_that_is_nearly_used_or_does_not_reach_is_said_also_to_who_comes_later(run_site, storage_url):
    limits = Budgets({Scope.PERSON: parse_limits("1000 tokens/day")}, answer_tokens=100)
    answers = [ChatResponse("one", usage=TokenUsage(800, 50))]
    async with run_site(answers, storage_url=storage_url, budgets=limits) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("first")
            line = (await events.until("notice")).data
            assert line["text"].startswith("(More than 80% of your budget is used.")
            assert events.texts == ["first", "one"]
            assert (line["at"] >= events.messages[1]["at"], line["is_aside"], line["is_trouble"]) == (True, True, False)
            await events.until_idle()
            await visitor.say("second")
            refusal = (await events.until("notice")).data
            assert refusal["text"].startswith("I can’t answer right now: your budget is used up.")
            assert (refusal["asked"], refusal["is_aside"], refusal["is_trouble"]) == (None, False, False)
            assert events.texts == ["first", "one", "second"]
        async with visitor.events() as again:
            await again.until_idle()
            assert (again.texts, again.of("notice")) == (["first", "one", "second"], [line, refusal])


async def test_who_writes_too_fast_is_told_so_once_and_still_after_a_reload(run_site, storage_url):
    async with run_site(storage_url=storage_url, budgets=ONE_A_MINUTE, clock=lambda: LATER) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            for text in ("one", "two", "three"):
                await visitor.say(text)
                await events.until("message", lambda data, text=text: data["text"] == text)
            [slow] = events.of("notice")
            assert slow["text"].startswith("That was a lot at once.")
            assert (slow["asked"], slow["is_aside"]) == (None, False)
        async with visitor.events() as again:
            await again.until_idle()
            assert (again.texts, again.of("notice")) == (["one", "You said: one", "two", "three"], [slow])


async def test_a_command_beyond_the_limit_stands_above_what_is_said_of_it(run_site):
    async with run_site(budgets=ONE_A_MINUTE, clock=lambda: LATER) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("one")
            await events.until_answered()
            await visitor.say("/export")
            slow = (await events.until("notice")).data
            assert slow["text"].startswith("That was a lot at once.")
            assert slow["asked"] == "/export"
