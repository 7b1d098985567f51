"""Taking in: messages that pile up share turns, and nothing is taken where too much is waiting."""

import asyncio

import pytest
from sqlalchemy import func, select
from storage.writing import Held
from turns.messenger import HastyClock, Messenger, echo, message, office

from botservice.core.errors import InboxFull
from botservice.core.states import EventKind
from botservice.storage.tables.conversations import events, turns
from botservice.turns.event_queries import MAX_OWN_TURNS
from botservice.turns.inbox import Inbox, Pressure
from botservice.turns.turn import InboundEvent


async def shares(storage):
    """Return the order keys of the events of each turn, in the order of the turns."""
    query = select(events.c.turn_id, events.c.order_key).join(turns, turns.c.id == events.c.turn_id)
    rows = await storage.read(
        lambda connection: connection.execute(query.order_by(turns.c.order_key, events.c.order_key)).all()
    )
    found = {}
    for turn_id, order_key in rows:
        found.setdefault(turn_id, []).append(order_key)
    return list(found.values())


class Reader(Messenger):
    """Shows which messages each answer is for."""

    def plan(self, answer, events):
        return [{"text": "+".join(event.raw.decode() for event in events)}]


@pytest.mark.any_database
async def test_beyond_ten_that_wait_messages_share_the_last_turn_in_their_order(storage):
    messenger = Reader()
    async with office(storage, echo, messenger=messenger, is_started=False) as bot:
        for order in range(1, 16):
            assert await bot.write(f"m{order}", order=order) == 1
        assert await shares(storage) == [[n] for n in range(1, 10)] + [[10, 11, 12, 13, 14, 15]]
        await bot.worker.start()
        await messenger.shows("1", *(f"m{n}" for n in range(1, 10)), "m10+m11+m12+m13+m14+m15")


@pytest.mark.any_database
async def test_a_message_that_came_late_shares_the_turn_before_which_it_belongs(storage):
    async with office(storage, echo, is_started=False) as bot:
        for order in range(10, 120, 10):
            await bot.write(f"m{order}", order=order)
        await bot.write("late", order=55)
        assert [50, 55] in await shares(storage)


async def test_what_is_delivered_again_is_not_counted_again(storage):
    async with office(storage, echo, is_started=False) as bot:
        for order in range(1, 13):
            await bot.write(f"m{order}", order=order)
        assert await bot.write("m12", order=12) == 0
        query = select(turns.c.joined_events).order_by(turns.c.order_key.desc()).limit(1)
        assert await storage.read(lambda connection: connection.execute(query).scalar_one()) == 2


@pytest.mark.any_database
async def test_no_turn_is_shared_without_end(storage):
    async with office(storage, echo, is_started=False) as bot:
        await bot.inbox.accept("messenger", [message(f"m{n}", order=n) for n in range(150)])
    groups = await shares(storage)
    assert [order for group in groups for order in group] == list(range(150))
    assert max(map(len, groups)) <= 51
    assert len(groups) < MAX_OWN_TURNS + 5


async def test_other_chats_have_their_own_turns_beside_a_chat_that_shares(storage):
    async with office(storage, echo, is_started=False) as bot:
        for order in range(1, 13):
            await bot.write("m", order=order)
        await bot.write("m", chat="2", order=13)
        assert [13] in await shares(storage)


async def test_what_joins_a_turn_at_the_moment_it_begins_is_answered_with_it(storage):
    messenger = Reader()
    messenger.reading, messenger.go = asyncio.Event(), asyncio.Event()
    read = messenger.read

    async def slowly(event):
        messenger.reading.set()
        await messenger.go.wait()
        return await read(event)

    messenger.read = slowly
    async with office(storage, echo, messenger=messenger, clock=HastyClock()) as bot:
        await bot.write("one", order=1, group="album")
        await messenger.reading.wait()  # the turn has been read, and is not yet begun
        await bot.write("two", order=2, group="album")
        messenger.go.set()
        await messenger.shows("1", "one+two")


@pytest.mark.any_database
async def test_what_comes_after_a_turn_has_begun_is_a_turn_of_its_own(storage):
    asked, held = asyncio.Event(), asyncio.Event()

    async def model(messages):
        asked.set()
        await held.wait()
        return "done"

    messenger = Reader()
    async with office(storage, model, messenger=messenger, clock=HastyClock()) as bot:
        await bot.write("one", order=1, group="album")
        await asked.wait()
        await bot.write("two", order=2, group="album")
        held.set()
        await messenger.shows("1", "one", "two")


@pytest.mark.any_database
async def test_where_too_much_waits_nothing_is_taken_but_controls(storage):
    pressure = Pressure(max_waiting=3)
    inbox = Inbox(storage, lambda *_: None, pressure=pressure)
    for order in range(3):
        assert await inbox.accept("messenger", [message("m", chat=str(order), order=order)]) == 1
    with pytest.raises(InboxFull, match="MAX_WAITING is 3") as refused:
        await inbox.accept("messenger", [message("m", chat="4", order=4)])
    assert refused.value.retry_after_seconds > 0
    stop = InboundEvent("stop", {"transport": "messenger", "chat_id": "1"}, 5, b"", EventKind.STOP)
    assert await inbox.accept("messenger", [stop]) == 1


@pytest.mark.any_database
async def test_there_is_room_again_as_soon_as_turns_are_done(storage):
    pressure = Pressure(max_waiting=1)
    async with office(storage, echo) as bot:
        inbox = Inbox(storage, bot.worker.wake, pressure=pressure)
        await inbox.accept("messenger", [message("first", order=1)])
        with pytest.raises(InboxFull):
            await inbox.accept("messenger", [message("second", order=2)])
        await bot.messenger.shows("1", "re: first")
        async with pressure.watching(storage), asyncio.timeout(60):
            while pressure.waiting:  # noqa: ASYNC110 - a database tells nobody
                await asyncio.sleep(0.01)
        await inbox.accept("messenger", [message("second", order=2)])
        await bot.messenger.shows("1", "re: first", "re: second")


async def test_a_database_that_cannot_keep_up_is_given_no_more(storage):
    pressure = Pressure(max_storing=2)
    inbox = Inbox(storage, lambda *_: None, pressure=pressure)
    async with Held(storage):
        storing = [asyncio.ensure_future(inbox.accept("messenger", [message("m", order=n)])) for n in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(InboxFull, match="cannot keep up"):
            await inbox.accept("messenger", [message("m", order=3)])
    assert await asyncio.gather(*storing) == [1, 1]
    assert pressure.storing == 0
    assert await inbox.accept("messenger", [message("m", order=3)]) == 1


async def test_a_slow_database_is_not_waited_for_with_more_than_so_many_bytes_and_nothing_is_lost(storage):
    """Many chats send large messages at once; who is refused delivers again, as platforms do."""
    most = 10 * 1024**2
    pressure = Pressure(max_storing_bytes=most)
    inbox = Inbox(storage, lambda *_: None, pressure=pressure)
    large = [message("x" * 1024**2, chat=str(n), order=n) for n in range(40)]
    refused = []

    async def deliver(event):
        try:
            await inbox.accept("messenger", [event])
        except InboxFull:
            refused.append(event)

    async with Held(storage):
        storing = [asyncio.ensure_future(deliver(event)) for event in large]
        await asyncio.sleep(0)
        assert (pressure.storing, pressure.storing_bytes) == (10, most)
    await asyncio.gather(*storing)
    while refused:
        await deliver(refused.pop())
    stored = select(func.count()).select_from(events)
    assert await storage.read(lambda connection: connection.execute(stored).scalar_one()) == len(large)
    assert (pressure.storing, pressure.storing_bytes) == (0, 0)


@pytest.mark.any_database
async def test_one_message_is_taken_however_large_it_is(storage):
    inbox = Inbox(storage, lambda *_: None, pressure=Pressure(max_storing_bytes=1))
    assert await inbox.accept("messenger", [message("more than a byte", order=1)]) == 1
