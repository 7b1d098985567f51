"""The ways in which a person of the planted town asks to be forgotten, and in which that is cut off."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator

from crash.warm import WarmProcess, run_here
from people.planted import ACCOUNTS, ALICE, PATIENCE_SECONDS, Town
from sqlalchemy import func, select

from botservice.core.errors import StorageError, StorageUnavailable
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import messages


class CutOff:
    """A storage whose process ends before one of its writes."""

    def __init__(self, storage, writes):
        self._storage, self._left = storage, writes

    def __getattr__(self, name):
        return getattr(self._storage, name)

    async def write(self, operation, **options):
        if self._left == 0:
            raise StorageUnavailable("cut off")
        self._left -= 1
        return await self._storage.write(operation, **options)


async def on_telegram(town: Town) -> None:
    town.telegram.person_says("/forget me yes", chat_id=ALICE.id)
    await town.telegram.message(ALICE.id, lambda shown: "Forgotten" in shown.text)


async def in_slack(town: Town) -> None:
    town.slack.person_says("!forget me yes")
    await town.slack.until(lambda: any("Forgotten" in text for text in town.slack.said()), timeout=PATIENCE_SECONDS)


async def in_the_browser(town: Town) -> None:
    await town.browse("/forget me yes")
    await until_so_many_are_left(town, 0)


async def cut_off(town: Town) -> None:
    """Have the process end before a write, again and again, each time a little later."""
    writes = 0
    while True:
        try:
            await forget_person(CutOff(town.storage, writes), ACCOUNTS["telegram"])
        except StorageUnavailable:
            writes += town.chance.randrange(1, 8)
        except StorageError:  # all was deleted, and the cut came while others were still cleaned after
            assert writes
            return
        else:
            return


async def killed(town: Town) -> None:
    """Have a process that forgets her be killed at some time, and another one go on."""
    before = await count_hers(town)
    async with forgetting_process(town) as first:
        await until_so_many_are_left(town, town.chance.randrange(before), first)
    async with forgetting_process(town) as again:
        # Where it was done before it could be killed, there is nobody any more, and it says so.
        assert await again.ended() in (0, 1)


async def until_so_many_are_left(town: Town, count: int, process=None) -> None:
    """Return when no more messages of hers are left, or a process has ended."""
    async with asyncio.timeout(3 * PATIENCE_SECONDS):  # a process has to begin first
        while await count_hers(town) > count and (process is None or process.poll() is None):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def count_hers(town: Town) -> int:
    """Return how many messages of hers are left."""
    accounts = [each.id for each in ACCOUNTS.values()]
    query = select(func.count()).where(messages.c.author_id.in_(accounts))
    return await town.storage.read(lambda connection: connection.execute(query).scalar_one())


@contextlib.asynccontextmanager
async def forgetting_process(town: Town) -> AsyncIterator[WarmProcess]:
    """Run a process that forgets her, and kill it where it has not ended when the block is left."""
    process = run_here("forget", "--person", f"telegram:{ALICE.id}", "--yes", DATABASE_URL=town.url)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        await process.ended()


WAYS = (on_telegram, cut_off, in_slack, killed, in_the_browser)
