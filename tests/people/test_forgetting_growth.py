"""Whoever forgets a little looks through nothing of a long chat while no other person can write."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from people.conversing import command, open_chat, say
from people.crowd import rows_of
from people.test_facts import tell
from sqlalchemy import Connection, insert, update
from storage.effort import Efforts
from turns.answered import answer_often, work_with

from botservice import AgentContext, Attachment, Author, Storage
from botservice.commands.catalogue import Catalogue
from botservice.commands.memory import MEMORY
from botservice.core.messages import Role
from botservice.core.states import TurnStatus
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.privacy.forgetting import forget_chat, forget_messages, forget_person
from botservice.privacy.forgotten_counts import Forgotten
from botservice.storage.tables.conversations import steps, turns
from botservice.turns.queries import insert_turn

ALICE, BOB = Author("telegram", "1", "Alice"), Author("telegram", "2", "Bob")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PICTURE = Attachment("image/png", data=b"a picture" * 100)
STEPS = 1_000
FACT = "the dog is called zx81rex"


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


async def most_written(storage: Storage, chat: str, asker: Author, *, times: int, whole: bool) -> tuple[int, Forgotten]:
    """Return how much the greatest write takes by which a person is forgotten, and what was forgotten."""
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": chat})
    await storage.write(lambda connection: answer_often(connection, context.id, asker if whole else BOB, times, NOW))
    if not whole:
        await storage.write(lambda connection: answer_often(connection, context.id, asker, 3, NOW - timedelta(days=1)))
    efforts = Efforts(storage)
    gone = await forget_person(storage, asker)
    return efforts.most()[1], gone


@pytest.mark.parametrize("whole", [True, False], ids=["a chat of their own", "a group"])
@pytest.mark.slow
async def test_the_writer_does_no_more_at_once_in_a_longer_chat(sqlite_storage: Storage, *, whole: bool) -> None:
    short, _ = await most_written(sqlite_storage, "1", Author("telegram", "11"), times=250, whole=whole)
    long, gone = await most_written(sqlite_storage, "2", Author("telegram", "12"), times=1_000, whole=whole)
    assert long < 1.5 * short
    said = 1_000 if whole else 3
    assert gone == Forgotten(contexts=int(whole), messages=said, answers=said)


@pytest.mark.slow
async def test_the_writer_does_no_more_at_once_to_delete_a_longer_chat(sqlite_storage: Storage) -> None:
    most, efforts = [], Efforts(sqlite_storage)
    for times in (250, 1_000):
        chat = await AgentContext.get_or_create(sqlite_storage, {"transport": "telegram", "chat_id": str(times)})
        await sqlite_storage.write(partial(answer_often, context_id=chat.id, asker=BOB, times=times, now=NOW))
        efforts.most()
        assert await forget_chat(sqlite_storage, chat.id) == Forgotten(contexts=1, messages=times, answers=times)
        most.append(efforts.most()[1])
    assert most[1] < 1.5 * most[0]


@pytest.mark.parametrize("whole", [True, False], ids=["with its chat", "by itself"])
@pytest.mark.slow
async def test_the_writer_does_no_more_at_once_to_forget_what_is_known_where_more_was_done_with_it(
    sqlite_storage: Storage, *, whole: bool
) -> None:
    most, efforts = [], Efforts(sqlite_storage)
    for times in (250, 1_000):
        asker = Author("telegram", str(times), "Alice")
        chat, other = [await open_chat(sqlite_storage, f"telegram-{times}{each}", asker) for each in "ab"]
        await say(other, "hello", asker)
        fact = await tell(sqlite_storage, chat, asker, FACT)
        await sqlite_storage.write(partial(work_with, context_id=other.id, text=FACT, now=NOW, times=times))
        efforts.most()
        if whole:
            assert (await forget_chat(sqlite_storage, chat.id)).facts == 1
        else:
            await command(chat, f"/memory delete {fact.id}", asker, Catalogue([MEMORY]))
        most.append(efforts.most()[1])
    kept = await sqlite_storage.read(rows_of)
    assert not [name for name in ("steps", "prompt_log", "tool_calls", "deliveries") if FACT in kept[name]]
    assert most[1] < 1.5 * most[0]
