"""What strangers used is under their names no longer than a budget needs it."""

from datetime import UTC, datetime, timedelta

import pytest
from people.conversing import ALICE, open_chat
from sqlalchemy import select

from botservice.background.maintenance import Maintenance
from botservice.people.usage import ModelCall, Payer
from botservice.people.usage_queries import PEOPLE_AT_ONCE, find_strangers, record_call
from botservice.storage.tables.people import model_usage


@pytest.mark.slow
async def test_upkeep_looks_for_strangers_a_few_at_a_time_and_finds_them_all(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    now, count = datetime.now(UTC), 2 * PEOPLE_AT_ONCE + 50

    def use(connection):
        for payer in [Payer(0, f"telegram:{number}", "") for number in range(1000, 1000 + count)]:
            record_call(connection, payer, ModelCall("m", 10, 1), now - timedelta(days=40))
        payer = Payer.of(chat.id, chat.context_keys, ALICE)
        record_call(connection, payer, ModelCall("m", 10, 1), now - timedelta(days=40))

    await storage.write(use)
    found = await storage.read(lambda c: find_strangers(c, "", now))
    assert (len(found.names), found.is_last) == (PEOPLE_AT_ONCE - 1, False)  # Alice is among them, and known
    await Maintenance(storage, clock=lambda: now).run_once()
    left = await storage.read(lambda c: set(c.execute(select(model_usage.c.person)).scalars()))
    assert left == {"", "telegram:1"}
