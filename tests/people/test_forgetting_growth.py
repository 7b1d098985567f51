"""Whoever forgets a little looks through no work of a long chat while nobody else can write."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, insert, update
from storage.effort import Efforts

from botservice import AgentContext, Attachment, Author, Storage
from botservice.history.rows import NewMessage, insert_message
from botservice.messages import Role
from botservice.privacy.forgetting import forget_messages, forget_person
from botservice.storage.tables.conversations import steps, turns
from botservice.turns.records import insert_turn
from botservice.turns.turn import TurnStatus

ALICE, BOB = Author("telegram", "1", "Alice"), Author("telegram", "2", "Bob")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PICTURE = Attachment("image/png", data=b"a picture" * 100)
STEPS = 1_000


def talk(connection: Connection, context_id: int) -> None:
    """Have Bob be answered with very many steps, and Alice send a picture an hour later."""
    turn_id = insert_turn(connection, context_id, "telegram", NOW, status=TurnStatus.DONE)
    connection.execute(update(turns).where(turns.c.id == turn_id).values(started_at=NOW, finished_at=NOW))
    row = {"context_id": context_id, "turn_id": turn_id, "kind": "TaskStep", "data": '{"task": "hm"}'}
    connection.execute(insert(steps), [{**row, "position": float(position)} for position in range(STEPS)])
    insert_message(connection, context_id, NewMessage(Role.USER, "hm", NOW, BOB))
    insert_message(connection, context_id, NewMessage(Role.ASSISTANT, "yes", NOW, answers_turn_id=turn_id))
    insert_message(connection, context_id, NewMessage(Role.USER, "see", NOW + timedelta(hours=1), ALICE, (PICTURE,)))


@pytest.mark.parametrize("is_person", [True, False], ids=["a person", "a message"])
async def test_the_writer_looks_through_no_steps_of_the_chat(sqlite_storage: Storage, *, is_person: bool) -> None:
    group = await AgentContext.get_or_create(sqlite_storage, {"transport": "telegram", "chat_id": "1"})
    await sqlite_storage.write(lambda connection: talk(connection, group.id))
    efforts = Efforts(sqlite_storage)
    if is_person:
        await forget_person(sqlite_storage, ALICE)
    else:
        await forget_messages(sqlite_storage, group.id, [(await group.chat_history.messages())[-1].id])
    assert efforts.most()[1] < STEPS, "of SQLite's machine: less than one for each"
    assert len(await group.chat_history.messages()) == 2
