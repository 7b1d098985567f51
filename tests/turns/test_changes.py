"""What people wrote and then changed: unanswered it is answered as changed, afterwards the history says so."""

import asyncio

import pytest
from turns.messenger import PATIENCE_SECONDS, HastyClock, Messenger, echo, office

from botservice import AgentContext, InboundMessage, Storage
from botservice.core.messages import Author
from botservice.core.policies import AccessMode
from botservice.core.states import EventKind
from botservice.people.access import Access
from botservice.storage.tables.conversations import events, vectors
from botservice.turns.turn import InboundEvent

CHAT = {"transport": "messenger", "chat_id": "1"}


class Mutable(Messenger):
    """A messenger whose messages have ids: a raw event is "id text"."""

    async def read(self, event):
        message = await super().read(event)
        number, _, text = message.text.partition(" ")
        return InboundMessage(text, Author(self.name, "7", "alice"), external_id=number, is_addressed=text[:1] != "~")


async def history(storage: Storage) -> list[str]:
    context = await AgentContext.get_or_create(storage, CHAT)
    return [each.text for each in await context.chat_history.messages()]


def change(number: str, text: str | None, *, order: int, chat: str = "1") -> InboundEvent:
    kind = EventKind.DELETE if text is None else EventKind.EDIT
    keys = {"transport": "messenger", "chat_id": chat}
    return InboundEvent(f"change:{chat}:{order}", keys, order, f"{number} {text}".encode(), kind, external_id=number)


async def until_history(storage: Storage, *texts: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await history(storage) != list(texts):  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


async def until_handled(storage: Storage) -> None:
    unhandled = events.select().where(events.c.turn_id.is_(None), events.c.handled_at.is_(None))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await storage.read(lambda connection: connection.execute(unhandled).all()):  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


async def test_an_unanswered_question_is_answered_as_its_newest_edit_says(storage):
    async with office(storage, echo, messenger=Mutable(), is_started=False) as bot:
        await bot.write("m1 helo", order=1)
        for order, text in ((4, "newest"), (2, "hallo"), (3, "hello")):
            await bot.inbox.accept("messenger", [change("m1", text, order=order)])
        await bot.worker.start()
        await bot.messenger.shows("1", "re: newest")
        await until_handled(storage)
    assert await history(storage) == ["newest", "re: newest"]


@pytest.mark.any_database
async def test_an_answered_message_is_changed_in_its_place_and_found_by_its_new_words(storage):
    async with office(storage, echo, messenger=Mutable()) as bot:
        await bot.write("m1 my cat is called Tom", order=1)
        await bot.messenger.shows("1", "re: my cat is called Tom")
        context = await AgentContext.get_or_create(storage, CHAT)
        before = next(each for each in await context.chat_history.messages() if each.external_id == "m1")
        await bot.inbox.accept("messenger", [change("m1", "my cat is called Felix, and she is black", order=2)])
        await until_history(storage, "my cat is called Felix, and she is black", "re: my cat is called Tom")
        after = (await context.chat_history.messages())[0]
        assert (after.id, after.created_at, after.author) == (before.id, before.created_at, before.author)
        assert after.token_count > before.token_count
        assert [each.message.text for each in await context.chat_history.search("Felix", k=1)] == [after.text]
        [found] = await context.chat_history.search("Tom", k=1)
        assert found.message.role == "assistant", "what was edited away is not found"


@pytest.mark.any_database
async def test_a_run_goes_on_with_what_it_was_asked_and_the_history_says_what_was_edited(storage):
    running, held = asyncio.Event(), asyncio.Event()

    async def model(messages):
        running.set()
        await held.wait()
        return f"re: {messages[-1]['content']}"

    async with office(storage, model, messenger=Mutable()) as bot:
        await bot.write("m1 first", order=1)
        await running.wait()
        await bot.inbox.accept("messenger", [change("m1", "second", order=2)])
        held.set()
        await bot.messenger.shows("1", "re: first")
        await until_history(storage, "second", "re: first")


@pytest.mark.any_database
async def test_an_edit_that_overtakes_its_message_waits_for_it(storage):
    async with office(storage, echo, messenger=Mutable()) as bot:
        await bot.inbox.accept("messenger", [change("m1", "edited", order=2)])
        await bot.write("m0 other", order=3)
        await bot.messenger.shows("1", "re: other")
        await bot.write("m1 original", order=1)
        await bot.messenger.shows("1", "re: other", "re: edited")


@pytest.mark.any_database
async def test_an_older_edit_that_comes_late_changes_nothing(storage):
    async with office(storage, echo, messenger=Mutable()) as bot:
        await bot.write("m1 one", order=1)
        await bot.messenger.shows("1", "re: one")
        await bot.inbox.accept("messenger", [change("m1", "three", order=3)])
        await until_history(storage, "three", "re: one")
        await bot.inbox.accept("messenger", [change("m1", "two", order=2)])
        await until_handled(storage)
    assert await history(storage) == ["three", "re: one"]


async def test_a_deleted_message_is_not_answered_or_leaves_the_history(storage):
    async with office(storage, echo, messenger=Mutable(), is_started=False) as bot:
        await bot.write("m1 never mind", order=1)
        await bot.inbox.accept("messenger", [change("m1", None, order=2)])
        await bot.write("m2 hello", order=3)
        await bot.worker.start()
        await bot.messenger.shows("1", "re: hello")
        await bot.inbox.accept("messenger", [change("m2", None, order=4)])
        await until_history(storage, "re: hello")


@pytest.mark.any_database
async def test_an_edit_elsewhere_changes_nothing_here_and_one_of_an_unknown_message_is_given_up(storage):
    clock = HastyClock()
    async with office(storage, echo, messenger=Mutable(), clock=clock) as bot:
        await bot.write("m1 here", order=1)
        await bot.messenger.shows("1", "re: here")
        await bot.inbox.accept("messenger", [change("m1", "there", order=2, chat="2")])
        await until_handled(storage)
    assert await history(storage) == ["here", "re: here"]


async def test_a_change_that_nobody_was_woken_for_is_found_by_the_next_process(storage):
    async with office(storage, echo, messenger=Mutable()) as bot:
        await bot.write("m1 one", order=1)
        await bot.messenger.shows("1", "re: one")
    async with office(storage, echo, messenger=Mutable(), is_started=False) as bot:
        await bot.inbox.accept("messenger", [change("m1", "two", order=2)])
        await bot.worker.start()
        await until_history(storage, "two", "re: one")


async def test_what_an_edit_said_is_kept_in_the_history_alone(storage):
    async with office(storage, echo, messenger=Mutable()) as bot:
        await bot.write("m1 one", order=1)
        await bot.messenger.shows("1", "re: one")
        await bot.inbox.accept("messenger", [change("m1", "two", order=2), change("m9", "nobody's", order=3)])
        await until_history(storage, "two", "re: one")
    kept = events.select().where(events.c.kind == EventKind.EDIT.value).order_by(events.c.order_key)
    raws = [row.raw for row in await storage.read(lambda connection: connection.execute(kept).all())]
    assert raws == [None, b"m9 nobody's"], "one whose message may still come has to wait for it"


@pytest.mark.any_database
async def test_an_edit_without_new_words_is_no_change(storage):
    async with office(storage, echo, messenger=Mutable()) as bot:
        await bot.write("m1 same", order=1)
        await bot.messenger.shows("1", "re: same")
        context = await AgentContext.get_or_create(storage, CHAT)
        message = (await context.chat_history.messages())[0]
        kept = {"context_id": context.id, "message_id": message.id, "model_key": "m", "data": b"\0\0"}
        await storage.write(lambda connection: connection.execute(vectors.insert(), kept))
        await bot.inbox.accept("messenger", [change("m1", "same", order=2)])
        await until_handled(storage)
        assert await storage.read(lambda connection: connection.execute(vectors.select()).all())
        await bot.inbox.accept("messenger", [change("m1", "other", order=3)])
        await until_history(storage, "other", "re: same")
        assert not await storage.read(lambda connection: connection.execute(vectors.select()).all())


@pytest.mark.any_database
async def test_a_change_that_cannot_be_read_holds_nothing_up_where_people_are_judged(storage):
    class Unreadable(Mutable):
        async def read(self, event):
            if b"broken" in event.raw:
                raise ValueError("what is that?")
            return await super().read(event)

    access = Access(AccessMode.ALLOW, allowed=frozenset({"messenger:7"}))
    async with office(storage, echo, messenger=Unreadable(), access=access) as bot:
        await bot.write("m1 first", order=1)
        await bot.messenger.shows("1", "re: first")
        await bot.inbox.accept("messenger", [change("m1", "broken", order=2)])
        await bot.write("m2 second", order=3)
        await bot.messenger.shows("1", "re: first", "re: second")
        await until_handled(storage)
    assert await history(storage) == ["first", "re: first", "second", "re: second"]
