"""Words planted in every place: of who is forgotten not one byte is left, of the others nothing is missing."""

import logging
import os
from datetime import timedelta

import pytest
from people.crowd import find_bytes, rows_of
from people.planted import ACCOUNTS, ALICE, HERS, MARK, NUMBERS, OTHER, OTHERS, town

from botservice.errors import StorageUnavailable
from botservice.people.archive import as_values, read_person
from botservice.people.forgetting import forget_person
from botservice.upkeep import Upkeep

RUNS = int(os.environ.get("BOTSERVICE_TEST_PLANTED_RUNS", "2"))
_OURS = ("botservice", "transports")
WAYS = ("on Telegram", "cut off", "in Slack")
# Where something of hers has to stand beforehand, or the test would show nothing.
PLANTED = {
    *("messages", "events", "steps", "prompt_log", "deliveries", "blobs", "reminders", "facts", "identities"),
    *("contexts", "model_usage", "feedback"),
}


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


async def forget(place, way):
    """Have her be forgotten; where that is cut off, it is asked again."""
    if way == "on Telegram":
        place.telegram.person_says("/forget me yes", chat_id=ALICE.id)
        await place.telegram.message(ALICE.id, lambda shown: "Forgotten" in shown.text)
    elif way == "in Slack":
        place.slack.person_says("!forget me yes")
        await place.slack.until(lambda: any("Forgotten" in text for text in place.slack.said()))
    else:
        writes = 0
        while True:
            try:
                await forget_person(CutOff(place.storage, writes), ACCOUNTS[0])
                break
            except StorageUnavailable:
                writes += 1
    await place.quiet()


async def of_the_others(storage):
    return [as_values(await read_person(storage, each)) for each in OTHERS]


async def traces(storage):
    """Return where anything of hers is kept."""
    return {each for mark in HERS for each in await find_bytes(storage, mark)}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(RUNS))
async def test_nothing_of_a_forgotten_person_is_left_and_everything_of_the_others(storage, seed, caplog):
    caplog.set_level(logging.INFO)
    async with town(storage, seed) as place:
        await place.plant()
        assert traces_in_tables(await storage.read(rows_of)) >= PLANTED
        before = await of_the_others(storage)
        await forget(place, WAYS[seed % len(WAYS)])
        assert await of_the_others(storage) == before
        await storage.scrub(patience_seconds=60)
        assert await find_bytes(storage, MARK) == []
        rows = await storage.read(rows_of)
        assert traces_in_tables(rows) <= {"contexts", "model_usage", "events"}, "what names the chat goes later"
        assert not [number for number in NUMBERS if number in rows["events"]]
    for later in (timedelta(hours=5), timedelta(days=32)):
        await Upkeep(storage, clock=lambda later=later: storage.now() + later).run_once()
    await storage.scrub(patience_seconds=60)
    assert await traces(storage) == set()
    logged = [f"{each.getMessage()} {vars(each)}" for each in caplog.records if each.name.startswith(_OURS)]
    assert logged
    assert not [line for line in logged if MARK in line or OTHER in line]


def traces_in_tables(rows):
    return {name for name, text in rows.items() if any(mark in text for mark in HERS)}
