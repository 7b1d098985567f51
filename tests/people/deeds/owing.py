"""What is not done yet when a person is forgotten: an answer that cannot be sent, and who waits behind it."""

import asyncio

from people.planted import ALICE, CAROL, CAROLS, OWED, PATIENCE_SECONDS, Town
from sqlalchemy import func, select
from standins.bot_api import server_error

from botservice.storage.tables.conversations import deliveries, events


async def begin(town: Town) -> None:
    """Have nothing be sent into a group in which she asks, and another asks what she means."""
    told = f"@{town.telegram.username} listen: {CAROLS}"
    town.telegram.person_says(f"{told} hello", chat_id=OWED, user=CAROL)
    await town.quiet()
    town.owed = town.telegram.order(server_error(), "sendMessage", chat_id=OWED, times=None)
    said = town.telegram.person_says(f"@{town.telegram.username} {town.words()}", chat_id=OWED, user=ALICE)
    await until(town, select(func.max(deliveries.c.attempts)).where(deliveries.c.finished_at.is_(None)))
    known = await town.storage.read(lambda connection: connection.execute(_COUNT).scalar_one())
    town.telegram.person_says(f"{told} what?", chat_id=OWED, user=CAROL, reply_to=said.message_id)
    await until(town, select(_COUNT.scalar_subquery() > known))


async def until(town: Town, query) -> None:
    """Return when a query gives something."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await town.storage.read(lambda connection: connection.execute(query).scalar()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


_COUNT = select(func.count()).select_from(events)
