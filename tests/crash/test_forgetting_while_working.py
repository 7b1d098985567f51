"""A person is forgotten while turns run; workers and the process that forgets are killed at any time."""

import asyncio
import json
import os
import random
import signal

import pytest
from conftest import PATIENT
from crash import forgetting_worker
from crash.warm import processes, run_here
from people.conversing import see
from people.crowd import find_bytes
from sqlalchemy import func, select

from botservice import AgentContext, Author, Storage
from botservice.storage.tables.conversations import deliveries, events, messages, turns
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent

MARK = "round4711word"
ROUNDS = int(os.environ.get("CHAOS_FORGETTING_ROUNDS", "2"))
PATIENCE_SECONDS = 120
CHATS = ("group1", "group2", "alice", "bob")
ALICE = Author("messenger", "alice", "alice")


async def hand_in(storage, chance):
    """Accept what Alice and Bob write in several chats, in any order."""
    inbox, new = Inbox(storage, lambda *_: None, storage.now), []
    for order in range(1, 25):
        chat = chance.choice(CHATS)
        who = chat if chat in ("alice", "bob") else chance.choice(("alice", "bob"))
        text = f"I like {MARK} number {order} best" if who == "alice" else f"what do you think, number {order}?"
        said = {"who": who, "name": who, "text": text, "is_group": chat.startswith("group")}
        keys = {"transport": "messenger", "chat_id": chat}
        new.append(InboundEvent(f"{chat}:{order}", keys, order, json.dumps(said).encode()))
    await inbox.accept("messenger", new)


async def seed(storage):
    for chat in ("group1", "alice"):
        context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": chat})
        people = (ALICE,) if chat == "alice" else (ALICE, Author("messenger", "bob", "bob"))
        await see(storage, context, *people, is_private=chat == "alice")
        await context.chat_history.append_user_message(f"I am {MARK}", author=ALICE)


async def is_quiet(storage):
    """Return whether no turn, message or cleaning waits."""

    def count(connection):
        waiting = (
            select(func.count()).select_from(turns).where(turns.c.status.in_(("queued", "running"))),
            select(func.count()).select_from(deliveries).where(deliveries.c.finished_at.is_(None)),
            select(func.count()).select_from(events).where(events.c.kind == "forget"),
        )
        return sum(connection.execute(each).scalar_one() for each in waiting)

    return not await storage.read(count)


async def until_said(storage, count):
    """Return when so many messages are in the histories."""
    query = select(func.count()).select_from(messages)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await storage.read(lambda c: c.execute(query).scalar_one())) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # only the database tells


async def pause(chance, most):
    await asyncio.sleep(chance.random() * most)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed_number", range(ROUNDS))
async def test_not_a_byte_is_left_of_a_person_who_is_forgotten_while_processes_are_killed(storage_url, seed_number):
    chance = random.Random(seed_number + int(os.environ.get("CHAOS_FORGETTING_SEED", "0")))
    is_postgres = storage_url.startswith("postgres")

    def begin():
        process = processes.Process(target=forgetting_worker.work, args=(storage_url,), daemon=True)
        process.start()
        return process

    async with Storage.open(storage_url, limits=PATIENT) as storage:
        await seed(storage)
        await hand_in(storage, chance)
        workers = [begin() for _ in range(1 + is_postgres)]
        try:
            await until_said(storage, chance.randrange(4, 30))
            code = None
            for _ in range(12):
                forgetting = run_here("forget", "--person", "messenger:alice", "--yes", DATABASE_URL=storage_url)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    if chance.random() < 0.6:
                        await pause(chance, 1.5)
                        forgetting.send_signal(signal.SIGKILL)
                    if chance.random() < 0.7:
                        place = chance.randrange(len(workers))
                        workers[place].kill()
                        await asyncio.to_thread(workers[place].join)
                        workers[place] = begin()
                    code = await forgetting.ended()
                if code in (0, 1):
                    break
            assert code in (0, 1)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await is_quiet(storage):  # noqa: ASYNC110 - only the database tells
                    await asyncio.sleep(0.05)
        finally:
            for each in workers:
                each.kill()
                each.join()
        await storage.scrub(patience_seconds=PATIENCE_SECONDS)
        assert await find_bytes(storage, MARK) == []
        left = select(func.count()).where(messages.c.author_id == "bob")
        assert await storage.read(lambda c: c.execute(left).scalar_one()), "what the other said is there"
        failed = select(func.count()).where(turns.c.status == "set_aside", turns.c.error.contains("Error"))
        assert not await storage.read(lambda c: c.execute(failed).scalar_one())
