"""Forgetting that is killed in the middle goes on when it is asked again."""

import asyncio
import signal

import pytest
from crash.warm import WarmProcess, run_here
from people.conversing import ALICE, BOB, open_chat
from people.crowd import find_bytes
from sqlalchemy import func, select
from standins.patience import PATIENT

from botservice import Storage
from botservice.storage.tables.conversations import messages

MARK = "killed4711word"
CHATS = 60
PATIENCE_SECONDS = 60


async def fill(storage: Storage) -> None:
    for number in range(CHATS):
        group = await open_chat(storage, f"telegram-{number}", ALICE, BOB)
        for _ in range(5):
            await group.chat_history.append_user_message(f"my plan is {MARK} {'and so on ' * 30}", author=ALICE)
            await group.chat_history.append_user_message("and then?", author=BOB)


def begin(url: str) -> WarmProcess:
    return run_here("forget", "--person", "telegram:1", "--yes", DATABASE_URL=url)


async def count_hers(storage: Storage) -> int:
    query = select(func.count()).where(messages.c.author_id == "1")
    return await storage.read(lambda connection: connection.execute(query).scalar_one())


@pytest.mark.slow
async def test_what_is_killed_in_the_middle_is_forgotten_when_it_is_asked_again(storage_url: str) -> None:
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        await fill(storage)
        killed = begin(storage_url)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await count_hers(storage) == CHATS * 5 and killed.poll() is None:  # noqa: ASYNC110
                await asyncio.sleep(0.002)  # only the database tells how far it is
        killed.send_signal(signal.SIGKILL)
        await killed.ended()
        again = begin(storage_url)
        async with asyncio.timeout(PATIENCE_SECONDS):
            # Where it was done before it could be killed, there is nobody any more, and it says so.
            assert await again.ended() in (0, 1)
        await storage.scrub(patience_seconds=PATIENCE_SECONDS)
        assert await find_bytes(storage, MARK) == []
        left = await storage.read(lambda c: c.execute(select(func.count()).select_from(messages)).scalar_one())
        assert left == CHATS * 5, "what the others said is all there"
