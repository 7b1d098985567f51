"""What upkeep does at once is as little where much is kept as where little is."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, insert
from storage.effort import Efforts

from botservice import Storage
from botservice.background.maintenance import Maintenance
from botservice.background.queries import list_failed
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_or_insert_context
from botservice.core.states import Outcome, TurnStatus
from botservice.people.usage import ModelCall, Payer
from botservice.people.usage_queries import record_call
from botservice.storage.tables.people import identities, persons
from botservice.turns.queries import insert_turns, turn_row

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
LAST_MONTH = NOW - timedelta(days=40)


def know(connection: Connection, numbers: range) -> None:
    """Have people be known who used something a month ago."""
    for number in numbers:
        person = connection.execute(insert(persons).values(created_at=NOW).returning(persons.c.id)).scalar_one()
        row = {"person_id": person, "platform": "telegram", "platform_id": str(number), "created_at": NOW}
        connection.execute(insert(identities).values(row))
        record_call(connection, Payer(number, f"telegram:{number}", ""), ModelCall("m", 10, 1), LAST_MONTH)


async def test_four_times_as_many_people_take_upkeep_no_longer_at_once(sqlite_storage: Storage) -> None:
    efforts, upkeep = Efforts(sqlite_storage), Maintenance(sqlite_storage, clock=lambda: NOW)
    most = []
    for numbers in (range(250), range(250, 1000)):
        await sqlite_storage.write(lambda connection, numbers=numbers: know(connection, numbers))  # type: ignore[misc]  # bound at once
        efforts.most()
        await upkeep.run_once()
        most.append(max(efforts.most()))
    assert most[1] < 1.5 * most[0]


def answer(connection: Connection, count: int) -> None:
    """Have turns of one conversation be answered."""
    context_id = find_or_insert_context(connection, ContextKeys.of({"id": "1"}), NOW)
    end = {"outcome": Outcome.ANSWERED.value, "finished_at": NOW}
    insert_turns(connection, [turn_row(context_id, "telegram", NOW, status=TurnStatus.DONE, **end)] * count)


async def test_the_newest_failed_turns_are_found_without_looking_at_those_that_were_answered(
    sqlite_storage: Storage,
) -> None:
    efforts = Efforts(sqlite_storage)
    most = []
    for count in (250, 2_000):
        await sqlite_storage.write(lambda connection, count=count: answer(connection, count))  # type: ignore[misc]  # bound at once
        efforts.most()
        assert await sqlite_storage.read(lambda connection: list_failed(connection, 3)) == []
        most.append(efforts.most()[0])
    assert most[1] <= most[0]
