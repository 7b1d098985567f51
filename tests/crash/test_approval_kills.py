"""Payments that ask first, on two replicas that are killed again and again: each is made once, or not at all."""

import asyncio
import os
import random
import sys
from collections import Counter

import pytest
from crash import till_bot
from crash.warm import processes
from sqlalchemy import func, select

from botservice import Author, Storage
from botservice.conversation.queries import read_context_keys
from botservice.storage.tables.conversations import contexts, steps, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.inbox import Inbox, LocalWork
from botservice.turns.turn import InboundEvent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TURNS = int(os.environ.get("APPROVAL_TURNS", "40"))
FURTHER = 8  # turns that were asked about, or are done, between two kills
ALICE = Author("messenger", "7", "alice")


class Replicas:
    """Processes that work, and are killed."""

    def __init__(self, count, *arguments):
        self._arguments = arguments
        self._chance = random.Random(17)
        self.kills = 0
        self._running = [self._begin() for _ in range(count)]

    def _begin(self):
        begun = processes.Process(target=till_bot.run, args=self._arguments)
        begun.start()
        return begun

    def kill_one(self):
        """Kill a replica, and begin another one in its place."""
        place = self._chance.randrange(len(self._running))
        self._running[place].kill()
        self._running[place].join()
        self._running[place] = self._begin()
        self.kills += 1

    def end(self):
        for each in self._running:
            each.kill()
            each.join()


async def decide(storage, inbox, chance, wanted):
    """Have a word about every call that waits, twice for some; None where everybody has had theirs."""
    open_ones = select(pending_calls.c.id, pending_calls.c.context_id).where(pending_calls.c.status == "waiting")
    for row in await storage.read(lambda connection: connection.execute(open_ones).all()):
        keys = await storage.read(lambda connection, at=row.context_id: _keys(connection, at))
        word = wanted[keys["chat_id"]]
        if word is None or chance.random() < 0.5:
            continue  # later, or never
        for _ in range(chance.choice([1, 1, 2])):
            await inbox.decide(keys, f"/{word} {row.id}", ALICE)


def _keys(connection, context_id):
    return dict(read_context_keys(connection, context_id))


def _find_cut_off(connection):
    """Return the chats in which the outcome of a call is unknown."""
    query = select(contexts.c.context_keys, steps.c.data).join(steps)
    return {keys["chat_id"] for keys, data in connection.execute(query) if "Interrupted: the outcome" in data}


async def see_them_done(storage, replicas, meanwhile):
    """Return when every turn is done; a replica is killed each time that a few have got further."""
    asked = select(func.count()).select_from(pending_calls)
    done = select(func.count()).select_from(turns).where(turns.c.status == "done")
    killing_at, count = FURTHER, 0
    async with asyncio.timeout(600):
        while count < TURNS:
            waited, count = await storage.read(
                lambda connection: [connection.execute(each).scalar_one() for each in (asked, done)]
            )
            if waited + count >= killing_at:
                replicas.kill_one()
                killing_at = waited + count + FURTHER
            await meanwhile()
            await asyncio.sleep(0.05)


async def test_each_payment_is_made_once_or_not_at_all(postgres_url, tmp_path):
    till, chance = tmp_path / "till", random.Random(4)
    till.touch()
    wanted = {str(number): chance.choice(["allow", "allow", "deny"]) for number in range(TURNS)}
    async with Storage.open(postgres_url) as storage:
        inbox = Inbox(storage, lambda *_: None, work=LocalWork(share=None))
        replicas = Replicas(2, postgres_url, str(till))
        try:
            for number in range(TURNS):
                keys = {"transport": "messenger", "chat_id": str(number)}
                await inbox.accept("messenger", [InboundEvent(f"{number}:1", keys, 1, b"pay")])
            await see_them_done(storage, replicas, lambda: decide(storage, inbox, chance, wanted))
        finally:
            replicas.end()
        outcomes = set(await storage.read(lambda connection: connection.execute(select(turns.c.outcome)).scalars()))
        cut_off = await storage.read(_find_cut_off)
    paid = Counter(line.split()[0] for line in till.read_text().splitlines())
    allowed = {chat for chat, word in wanted.items() if word == "allow"}
    assert set(paid) <= allowed, "nothing is paid that was denied"
    assert max(paid.values()) == 1, "nothing is paid twice"
    assert outcomes == {"answered"}
    assert allowed - set(paid) <= cut_off, "what was allowed is paid, unless it was cut off in the middle"
    sys.stderr.write(f"{TURNS} turns, {len(allowed)} allowed, {len(paid)} paid, {replicas.kills} kills\n")
