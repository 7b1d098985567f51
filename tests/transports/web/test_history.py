"""What a page is told of the past: from where it is, from the end, or from the beginning."""

import asyncio
import contextlib

from botservice import AgentContext
from botservice.storage.tables.conversations import contexts
from transports.web.inbound_events import context_keys
from transports.web.server_sent_events import PageStream, StreamPace
from transports.web.streaming import Hub
from transports.web.timeline import TimelineCursor


async def test_a_reconnect_loses_nothing_and_repeats_nothing(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("one")
        await events.until_answered()
        ids = [event.id for event in events.seen if event.id]
    await visitor.say("two")
    async with visitor.events(after=ids[0]) as events:
        await events.until("message", lambda data: data["text"] == "You said: two")
        assert events.texts == ["You said: one", "two", "You said: two"]
        last = events.seen[-1].id
    async with visitor.events(after=last) as events:
        await events.until_idle()
        assert events.texts == []


async def test_the_id_of_a_message_alone_is_a_place_to_go_on_from(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("one")
        await events.until_answered()
        first = events.messages[0]["id"]
    async with visitor.events(after=str(first)) as events:
        await events.until_idle()
        assert events.texts == ["You said: one"]
    response = visitor.client.stream("GET", f"/web/events?after={first}")
    async with response as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store"


async def test_a_place_that_does_not_exist_is_the_beginning(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("one")
        await events.until_answered()
    for after in ("nonsense", "-1", "1.2.3.4", "9" * 40, "\u0661", "1.x"):
        async with visitor.client.stream("GET", "/web/events", params={"after": after}) as response:
            again = type(events)(response)
            await again.until_idle()
            assert again.texts == ["one", "You said: one"], after


async def test_a_page_that_shows_what_was_deleted_begins_anew(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        for text in ("one", "two"):
            await visitor.say(text)
            await events.until_answered()
        context = await site.context()
        await context.chat_history.delete_messages([events.messages[0]["id"]])
        await visitor.say("three")
        await events.until("reset")
        count = len(events.texts)
        await events.until("message", lambda data: data["text"] == "You said: three")
        assert events.texts[count:] == ["You said: one", "two", "You said: two", "three", "You said: three"]


async def test_a_conversation_that_was_forgotten_is_gone_from_the_page(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, context_keys("somebody"))
    await context.chat_history.append_user_message("one")
    stream = PageStream(sqlite_storage, Hub(), "somebody", TimelineCursor(), StreamPace(working=0.01, idle=0.01))
    async with contextlib.aclosing(stream.events()) as events, asyncio.timeout(60):
        assert '"text":"one"' in [await anext(events) for _ in range(2)][1]
        forget = contexts.delete().where(contexts.c.id == context.id)
        await sqlite_storage.write(lambda connection: connection.execute(forget))
        assert "event: reset" in await anext(events)


async def test_a_long_conversation_is_read_from_its_end_page_by_page(run_site, storage_url):
    async with run_site(storage_url=storage_url) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("0")
            await events.until_answered()
        history = (await site.context()).chat_history
        for number in range(1, 230):
            await history.append_user_message(str(number))
        async with visitor.events() as events:
            await events.until_idle()
            assert events.seen[0].name == "earlier"
            assert events.texts == [str(number) for number in range(130, 230)]
            first = events.messages[0]["id"]
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
    history = (await site.context()).chat_history
    for number in range(150):
        await history.append_user_message(str(number))
    async with visitor.events(after=last) as events:
        await events.until_idle()
        assert [event.name for event in events.seen[:2]] == ["reset", "earlier"]
        assert events.texts == [str(number) for number in range(50, 150)]


async def test_earlier_messages_of_somebody_else_are_not_given(site):
    alice, bob = await site.visitor(), await site.visitor()
    async with alice.events() as events:
        await alice.say("my secret")
        await events.until_answered()
    await bob.say("hello")
    assert "my secret" not in (await bob.client.get("/web/earlier?before=999")).text
    for before in ("", "x", "-1", "9" * 30):
        assert (await bob.client.get(f"/web/earlier?before={before}")).status_code == 400


async def test_what_was_forgotten_is_counted_on_the_page_and_is_there_when_it_is_loaded_again(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("one")
        await events.until_answered()
        await visitor.say("/forget chat yes")
        told = await events.until("notice")
        assert told.data["text"].startswith("Forgotten. Deleted: 1 whole chat, 1 message, 1 answer.")
    async with visitor.events() as events:
        await events.until_idle()
        (again,) = [event.data["text"] for event in events.seen if event.name == "notice"]
        assert again == told.data["text"]
