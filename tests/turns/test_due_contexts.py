"""What an idle worker asks: one question, which finds what may be done now and nothing else."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update
from turns.messenger import echo, message, office

from botservice import Storage
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_or_insert_context
from botservice.core.states import EventKind, TurnStatus
from botservice.storage.claims import Claim
from botservice.storage.tables.conversations import deliveries, reminders, turns
from botservice.turns.backlog_queries import _DUE, DueContext, What, find_due_contexts, put_off
from botservice.turns.event_queries import insert_event
from botservice.turns.queries import insert_turn
from botservice.turns.turn import InboundEvent

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
OURS = ["messenger"]


class Chat:
    """A context that is filled row by row."""

    def __init__(self, connection: Connection, number: int = 1) -> None:
        self._connection = connection
        self.keys = ContextKeys.of({"transport": "messenger", "chat_id": str(number)})
        self.id = find_or_insert_context(connection, self.keys, NOW)

    def owe(self, due_at: datetime = NOW, tries: int = 0) -> None:
        turn = insert_turn(self._connection, self.id, "messenger", NOW, status=TurnStatus.DONE)
        row = {"context_id": self.id, "turn_id": turn, "transport": "messenger", "kind": "message", "payload": {}}
        row |= {"status": "pending", "attempts": tries, "due_at": due_at, "due_set_at": NOW, "created_at": NOW}
        self._connection.execute(insert(deliveries).values(row))

    def ask(self, due_at: datetime = NOW, status: TurnStatus = TurnStatus.QUEUED, attempts: int = 0) -> None:
        turn = insert_turn(self._connection, self.id, "messenger", NOW, status=status, due_at=due_at)
        self._connection.execute(update(turns).where(turns.c.id == turn).values(attempts=attempts))

    def control(self, kind: EventKind, received_at: datetime = NOW) -> None:
        external_id = "m1" if kind in (EventKind.EDIT, EventKind.DELETE) else None
        event = InboundEvent(f"{kind}:{self.id}", self.keys.values, 5, b"{}", kind, external_id=external_id)
        insert_event(self._connection, "messenger", self.keys, event, received_at)

    def remind(self, due_at: datetime = NOW) -> None:
        row = {"context_id": self.id, "key": f"{self.id}:{due_at}", "transport": "messenger", "status": "waiting"}
        row |= {"text": "tea", "due_at": due_at, "starts_at": due_at, "time_zone": "UTC", "created_at": NOW}
        self._connection.execute(insert(reminders).values(row))


async def look(storage: Storage, *fill: Any, beginnings: int = 100) -> list[DueContext]:
    """Return what is found once chats are filled."""

    def write(connection: Connection) -> list[DueContext]:
        for number, each in enumerate(fill):
            each(Chat(connection, number))
        return _find(connection, NOW, beginnings)

    return await storage.write(write)


def _find(connection: Connection, now: datetime, beginnings: int = 100) -> list[DueContext]:
    return find_due_contexts(connection, now, OURS, beginnings=beginnings)


def kinds(found: Sequence[DueContext]) -> list[What]:
    return [each.what for each in found]


async def test_what_is_due_is_found_whatever_it_is(storage: Storage) -> None:
    found = await look(
        storage,
        lambda chat: chat.owe(),
        lambda chat: chat.ask(),
        lambda chat: chat.remind(),
        lambda chat: chat.control(EventKind.STOP),
        lambda chat: chat.control(EventKind.EDIT, NOW - HOUR),
    )
    assert sorted(kinds(found)) == ["control", "control", "delivery", "reminder", "turn"]


async def test_what_waits_behind_something_is_found_when_that_is_due(storage: Storage) -> None:
    def undeliverable(chat: Chat) -> None:
        chat.owe(NOW + HOUR, tries=3)
        chat.owe()
        chat.ask()
        chat.remind()
        chat.control(EventKind.EDIT, NOW - HOUR)

    def failing(chat: Chat) -> None:
        chat.ask(NOW + HOUR, TurnStatus.RUNNING)
        chat.ask()
        chat.remind()

    def put(connection: Connection) -> tuple[list[DueContext], set[What]]:
        for chat in (Chat(connection, 0), Chat(connection, 1)):
            put_off(connection, chat.id, NOW + HOUR, NOW)
        later = NOW + HOUR
        return _find(connection, NOW), {each.what for each in _find(connection, later)}

    assert kinds(await look(storage, undeliverable, failing)) == ["turn"], "nothing behind what was refused"
    now, later = await storage.write(put)
    assert now == []
    assert later == {What.DELIVERY, What.TURN}


@pytest.mark.any_database
async def test_a_message_that_was_not_taken_says_how_often(storage: Storage) -> None:
    [found] = await look(storage, lambda chat: chat.owe(NOW, tries=3))
    assert (found.what, found.tries) == (What.DELIVERY, 3)


@pytest.mark.any_database
async def test_messages_that_were_refused_wait_while_there_is_no_room_for_them(storage: Storage) -> None:
    def refused(chat: Chat) -> None:
        chat.owe(tries=3)
        chat.owe()
        chat.ask()

    await look(storage, refused, lambda chat: chat.owe())

    def find(connection: Connection, resending: Sequence[str]) -> list[int]:
        found = find_due_contexts(connection, NOW, OURS, beginnings=100, resending=resending)
        return sorted(each.tries for each in found)

    assert await storage.read(lambda connection: find(connection, OURS)) == [0, 3]
    assert await storage.read(lambda connection: find(connection, ())) == [0]


@pytest.mark.any_database
async def test_a_turn_that_may_end_a_process_waits_until_that_is_older(storage: Storage) -> None:
    def suspect(chat: Chat) -> None:
        chat.ask(status=TurnStatus.RUNNING, attempts=5)

    assert await look(storage, suspect, beginnings=4) == []
    assert kinds(await look(storage, beginnings=8)) == [What.TURN]


async def test_reminders_of_one_chat_hide_no_other_chat(storage: Storage) -> None:
    def busy(chat: Chat) -> None:
        for minutes in range(150):
            chat.remind(NOW - HOUR - timedelta(minutes=minutes))

    assert kinds(await look(storage, busy, lambda chat: chat.remind())) == [What.REMINDER, What.REMINDER]


async def test_who_has_waited_longest_comes_first(storage: Storage) -> None:
    found = await look(storage, lambda chat: chat.ask(), lambda chat: chat.owe(NOW - HOUR), lambda chat: chat.ask())
    assert kinds(found) == [What.DELIVERY, What.TURN, What.TURN]


@pytest.mark.parametrize(
    "index", ["ix_turns_due (due_at<?)", "ix_deliveries_due (due_at<?)", "ix_events_changes", "ix_reminders_waiting"]
)
async def test_the_question_goes_through_partial_indexes(sqlite_storage: Storage, index: str) -> None:
    def explain(connection: Connection) -> list[str]:
        query = re.sub(r"\(__\[POSTCOMPILE_\w+\]\)", "('web', 'telegram')", str(_DUE.compile(connection)))
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", (1,) * query.count("?"))
        return [row.detail for row in plan]

    plan = await sqlite_storage.read(explain)
    assert any(index in line for line in plan), plan
    assert not any(re.fullmatch(r"SCAN (?!resends)\w+", line) for line in plan), plan


class Looks:
    """Notes which chats a process tries to work on."""

    def __init__(self, storage: Storage) -> None:
        self.at: list[int] = []
        self._claim = storage.claims.try_claim
        storage.claims.try_claim = self._look  # type: ignore[method-assign]

    async def _look(self, context_id: int) -> Claim | None:
        self.at.append(context_id)
        return await self._claim(context_id)


@pytest.mark.parametrize("is_put_off", [True, False], ids=["a delivery", "a turn"])
async def test_a_chat_that_has_to_wait_is_looked_at_no_more_than_it_does_something(
    storage: Storage, *, is_put_off: bool
) -> None:
    later = datetime.now(UTC) + HOUR

    def fill(connection: Connection) -> int:
        chat = Chat(connection)
        if is_put_off:
            chat.owe(later, tries=3)
        else:
            chat.ask(later, TurnStatus.RUNNING)
        chat.ask()
        return chat.id

    waiting = await storage.write(fill)
    looks = Looks(storage)
    async with office(storage, echo, sweep_seconds=0.01) as bot:
        for order in range(1, 12):
            await bot.inbox.accept("messenger", [message("hello", chat="2", order=order)])
            await bot.messenger.until(lambda order=order: len(bot.messenger.visible.get("2", ())) == order)  # type: ignore[misc]
    most = 0 if is_put_off else 2
    assert looks.at.count(waiting) <= most, "once to see that it waits, and perhaps while that was stored"
