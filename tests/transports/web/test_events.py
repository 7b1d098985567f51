"""The event stream: what is stored and what is being written, without a gap and without a repetition."""

import asyncio
import contextlib
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from botservice import AgentContext, LLMError, Storage, ToolCall, tool
from botservice.storage.tables import contexts
from transports.web.events import Pace, PageStream
from transports.web.inbound import context_keys
from transports.web.streaming import Hub
from transports.web.timeline import Cursor


def shown(events: Any, name: str = "message") -> list[Any]:
    return [event.data for event in events if event.name == name]


def texts(events: Any) -> list[str]:
    return [message["text"] for message in shown(events)]


async def context_of(storage: Storage) -> AgentContext:
    """Return the only context."""
    keys = await storage.read(lambda connection: connection.execute(select(contexts.c.context_keys)).scalar_one())
    return await AgentContext.get_or_create(storage, keys)


async def test_a_message_and_its_answer_come_once_each_and_in_order(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await events.until_idle()
        assert (await visitor.say("hello")).status_code == 202
        await events.until_answered()
        assert texts(events.seen) == ["hello", "You said: hello"]
        question, answer = shown(events.seen)
        assert (question["role"], question["client_id"]) == ("user", "message-1")
        assert (answer["role"], answer["html"]) == ("assistant", "<p>You said: hello</p>\n")


async def test_the_answer_is_shown_while_it_is_written(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("tell me")
            await events.until("state", lambda data: data["working"])
            typist.write("Once ")
            await events.until_written("Once ")
            typist.write("upon ", "a time")
            assert (await events.until("delta")).data == {"text": "upon a time"}
            typist.write(None)
            await events.until_answered()
            assert texts(events.seen) == ["tell me", "Once upon a time"]
            names = [event.name for event in events.seen if event.name != "delta"]
            assert names[-4:] == ["message", "draft", "message", "state"]


async def test_who_comes_in_the_middle_sees_the_whole_draft(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as first:
            await visitor.say("tell me")
            typist.write("Once upon ")
            await first.until_written("Once upon ")
        async with visitor.events() as second:
            assert (await second.until("draft")).data["text"] == "Once upon "
            assert texts(second.seen) == ["tell me"]
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
            await events.until("draft", lambda data: data == {"text": "", "activity": "look_up"})
            is_free.set()
            await events.until_answered()
            assert texts(events.seen)[-1] == "It is a word."


async def test_a_reconnect_loses_nothing_and_repeats_nothing(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("one")
        await events.until_answered()
        ids = [event.id for event in events.seen if event.id]
    await visitor.say("two")
    async with visitor.events(after=ids[0]) as events:
        await events.until("message", lambda data: data["text"] == "You said: two")
        assert texts(events.seen) == ["You said: one", "two", "You said: two"]
        last = events.seen[-1].id
    async with visitor.events(after=last) as events:
        await events.until_idle()
        assert texts(events.seen) == []


async def test_the_id_of_a_message_alone_is_a_place_to_go_on_from(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("one")
        await events.until_answered()
        first = shown(events.seen)[0]["id"]
    async with visitor.events(after=str(first)) as events:
        await events.until_idle()
        assert texts(events.seen) == ["You said: one"]
    response = visitor.client.stream("GET", f"/web/events?after={first}")
    async with response as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("after", ["nonsense", "-1", "1.2.3.4", "9" * 40, "\u0661", "1.x"])
async def test_a_place_that_does_not_exist_is_the_beginning(site, after):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("one")
        await events.until_answered()
    async with visitor.client.stream("GET", "/web/events", params={"after": after}) as response:
        again = type(events)(response)
        await again.until_idle()
        assert texts(again.seen) == ["one", "You said: one"]


async def test_an_answer_that_another_process_wrote_is_shown(run_site, sqlite_url):
    async with run_site(works=False) as front, run_site(storage_url=sqlite_url) as worker:
        visitor = await front.visitor()
        async with visitor.events() as events:
            await visitor.say("who answers?")
            await events.until_answered()
            assert texts(events.seen) == ["who answers?", "You said: who answers?"]
        assert worker.llm.prompts


async def test_what_waits_is_shown_also_to_who_comes_later(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        await visitor.say("first")
        await typist.is_asked.wait()
        await visitor.say("second")
        async with visitor.events() as events:
            await events.until("state")
            assert texts(events.seen) == ["first"]
            assert [each["text"] for each in shown(events.seen, "waiting")] == ["second"]
            typist.write("1", None, "2", None)
            await events.until_idle()
            assert texts(events.seen) == ["first", "1", "second", "2"]


async def test_an_apology_is_shown_and_does_not_become_part_of_the_conversation(run_site):
    async with run_site([LLMError("it is broken", is_transient=False), "better"]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("hello")
            notice = await events.until("notice")
            assert "Sorry" in notice.data["text"]
            assert "it is broken" not in notice.data["text"]
        async with visitor.events() as again:
            await again.until_idle()
            assert [each["text"] for each in shown(again.seen, "notice")] == [notice.data["text"]]
        async with visitor.events(after=notice.id) as events:
            await visitor.say("again")
            await events.until_answered()
            assert shown(events.seen, "notice") == []
            assert texts(events.seen) == ["again", "better"]


async def test_a_page_that_shows_what_was_deleted_begins_anew(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        for text in ("one", "two"):
            await visitor.say(text)
            await events.until_answered()
        context = await context_of(site.storage)
        await context.chat_history.delete_messages([shown(events.seen)[0]["id"]])
        await visitor.say("three")
        await events.until("reset")
        count = len(events.seen)
        await events.until("message", lambda data: data["text"] == "You said: three")
        assert texts(events.seen[count:]) == ["You said: one", "two", "You said: two", "three", "You said: three"]


async def test_a_conversation_that_was_forgotten_is_gone_from_the_page(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, context_keys("somebody"))
    await context.chat_history.append_user_message("one")
    stream = PageStream(sqlite_storage, Hub(), "somebody", Cursor(), Pace(working=0.01, idle=0.01))
    async with contextlib.aclosing(stream.events()) as events, asyncio.timeout(5):
        assert '"text":"one"' in [await anext(events) for _ in range(2)][1]
        forget = contexts.delete().where(contexts.c.id == context.id)
        await sqlite_storage.write(lambda connection: connection.execute(forget))
        assert "event: reset" in await anext(events)


async def test_a_stop_ends_the_answer_and_keeps_what_was_said(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("count")
            typist.write("one, two")
            await events.until_written("one, two")
            assert (await visitor.post("/web/stop", {"id": "stop-0001"})).status_code == 202
            await events.until_answered()
            assert texts(events.seen) == ["count", "one, two"]


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
            assert texts(events.seen) == ["wait"]


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
        assert texts(his.seen) == ["hello", "You said: hello"]
        assert texts(hers.seen) == ["my secret", "You said: my secret"]


async def test_two_tabs_see_the_same(site):
    visitor = await site.visitor()
    async with visitor.events() as one, visitor.events() as other:
        await visitor.say("hello")
        await one.until_answered()
        await other.until_answered()
        assert texts(one.seen) == texts(other.seen)


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
    stream = PageStream(sqlite_storage, Hub(), "nobody", Cursor(), Pace(working=0.01, idle=0.01, heartbeat=0.02))
    async with contextlib.aclosing(stream.events()) as events, asyncio.timeout(5):
        said = [await anext(events) for _ in range(4)]
    assert said[1].startswith("event: state")
    assert said[2:] == [": still here\n\n"] * 2


async def test_trouble_with_storage_is_said_once_and_taken_back(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        hub = Hub()
        stream = PageStream(storage, hub, "nobody", Cursor(), Pace(working=0.01, idle=0.01, heartbeat=60))
        async with contextlib.aclosing(stream.events()) as events, asyncio.timeout(5):
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
        for _ in range(100):
            if hub.count_watchers() == 1:
                break
            await visitor.client.get("/")
        assert hub.count_watchers() == 1


async def test_a_long_conversation_is_read_from_its_end_page_by_page(run_site, storage_url):
    async with run_site(storage_url=storage_url) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("0")
            await events.until_answered()
        history = (await context_of(site.storage)).chat_history
        for number in range(1, 230):
            await history.append_user_message(str(number))
        async with visitor.events() as events:
            await events.until_idle()
            assert events.seen[0].name == "earlier"
            assert texts(events.seen) == [str(number) for number in range(130, 230)]
            first = shown(events.seen)[0]["id"]
        page = (await visitor.client.get(f"/web/earlier?before={first}")).json()
        assert [each["text"] for each in page["messages"]] == [str(number) for number in range(30, 130)]
        assert page["has_earlier"]
        page = (await visitor.client.get(f"/web/earlier?before={page['messages'][0]['id']}")).json()
        assert [each["text"] for each in page["messages"]][:3] == ["0", "You said: 0", "1"]
        assert not page["has_earlier"]


async def test_a_page_that_fell_far_behind_begins_anew_instead_of_having_a_gap(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("0")
        await events.until_answered()
        last = [event.id for event in events.seen if event.id][-1]
    history = (await context_of(site.storage)).chat_history
    for number in range(150):
        await history.append_user_message(str(number))
    async with visitor.events(after=last) as events:
        await events.until_idle()
        assert [event.name for event in events.seen[:2]] == ["reset", "earlier"]
        assert texts(events.seen) == [str(number) for number in range(50, 150)]


async def test_earlier_messages_of_somebody_else_are_not_given(site):
    alice, bob = await site.visitor(), await site.visitor()
    async with alice.events() as events:
        await alice.say("my secret")
        await events.until_answered()
    await bob.say("hello")
    assert "my secret" not in (await bob.client.get("/web/earlier?before=999")).text
    for before in ("", "x", "-1", "9" * 30):
        assert (await bob.client.get(f"/web/earlier?before={before}")).status_code == 400


async def test_a_client_that_goes_away_while_the_answer_is_written_harms_nothing(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        with contextlib.suppress(httpx.HTTPError):
            async with visitor.events() as events:
                await visitor.say("tell me")
                typist.write("Once ")
                await events.until_written("Once ")
        typist.write(*("word " for _ in range(1000)), None)
        async with visitor.events() as events:
            await events.until_answered()
            assert len(texts(events.seen)[-1]) == 5005
