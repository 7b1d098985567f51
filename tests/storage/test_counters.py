"""What the database keeps count of: always what counting gives, whoever writes, and also what was there before."""

from datetime import UTC, datetime

from sqlalchemy import Connection, delete, func, insert, select, update

from botservice import AgentContext, Storage
from botservice.devtools.conversations import list_contexts
from botservice.people.usage import ModelCall, Payer, UsageBy
from botservice.people.usage_queries import list_usage, record_call
from botservice.storage.tables.conversations import contexts, messages
from botservice.storage.tables.people import model_usage

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


async def counters(storage: Storage) -> list[tuple[int, int]]:
    query = select(contexts.c.message_count, contexts.c.last_message_id).order_by(contexts.c.id)
    return await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])


async def counted(storage: Storage) -> list[tuple[int, int]]:
    """Return what counters have to be."""

    def query(connection: Connection) -> list[tuple[int, int]]:
        found = []
        for context_id in connection.execute(select(contexts.c.id).order_by(contexts.c.id)).scalars().all():
            of_context = select(func.count(), func.coalesce(func.max(messages.c.id), 0)).where(
                messages.c.context_id == context_id
            )
            found.append(tuple(connection.execute(of_context).one()))
        return found

    return await storage.read(query)


async def test_messages_are_counted_as_they_come_go_and_move(storage: Storage) -> None:
    one, two = [await AgentContext.get_or_create(storage, {"chat_id": name}) for name in "12"]
    said = [await one.chat_history.append_user_message(str(number)) for number in range(5)]
    await two.chat_history.append_user_message("hello")
    assert await counters(storage) == await counted(storage) == [(5, said[4].id), (1, 6)]
    await one.chat_history.delete_messages([said[4].id, said[1].id])
    assert await counters(storage) == await counted(storage) == [(3, said[3].id), (1, 6)]
    moved = update(messages).where(messages.c.context_id == two.id).values(context_id=one.id, position=9)
    await storage.write(lambda connection: connection.execute(moved))
    assert (await counters(storage))[0] == (await counted(storage))[0] == (4, 6)
    await one.chat_history.clear()
    assert (await counters(storage))[0] == (0, 0)
    await storage.write(lambda connection: connection.execute(delete(contexts).where(contexts.c.id == one.id)))
    assert [each.id for each in await list_contexts(storage)] == [two.id]


async def test_what_was_used_is_summed_up_by_whoever_writes_it(storage: Storage) -> None:
    payer, other = Payer(1, "telegram:1", "telegram:1"), Payer(2, "telegram:2", "telegram:2")

    def use(connection: Connection) -> None:
        for each in (payer, other, payer):
            record_call(connection, each, ModelCall("m", 10, 5, 1, 7, 2), NOON)
        record_call(connection, payer, ModelCall("n", 1), NOON)
        row = {"day": "2026-05-03", "context_id": 9, "person": "", "model": "m", "chat": "", "calls": 1}
        tokens = {"input_tokens": 100, "output_tokens": 0, "cached_tokens": 0, "cost": 0}
        connection.execute(insert(model_usage).values({**row, **tokens}))  # as an earlier release does
        connection.execute(delete(model_usage).where(model_usage.c.person == "telegram:2"))

    await storage.write(use)
    since = datetime(2026, 5, 1, tzinfo=UTC)
    lines = {
        by: await storage.read(lambda connection, by=by: list_usage(connection, by, since))  # type: ignore[misc]  # bound at once
        for by in (None, UsageBy.DAY, UsageBy.MODEL, UsageBy.PERSON)
    }
    assert [(each.calls, each.input_tokens, each.cache_write_tokens) for each in lines[None]] == [(4, 121, 4)]
    assert [(each.subject, each.input_tokens) for each in lines[UsageBy.DAY]] == [
        ("2026-05-03", 100),
        ("2026-05-04", 21),
    ]
    assert [(each.subject, each.input_tokens) for each in lines[UsageBy.MODEL]] == [("m", 120), ("n", 1)]
    assert sum(each.cost for each in lines[UsageBy.PERSON]) == lines[None][0].cost == 14
