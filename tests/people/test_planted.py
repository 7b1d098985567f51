"""Words planted in every place: of who is forgotten not one byte is left, of the others nothing is missing."""

import logging
import os
import re
from datetime import timedelta

import pytest
from people.asking import WAYS, cut_off, killed
from people.crowd import find_bytes, rows_of
from people.deeds import by_hand, owing
from people.deeds.every import EVERY
from people.places import PLACES
from people.planted import CAROLS, HERS, MARK, NUMBERS, OTHER, OTHERS, town
from sqlalchemy import func, select

from botservice.background.maintenance import Maintenance
from botservice.privacy.exported_data import as_values, read_person
from botservice.storage.tables.conversations import loose_files
from botservice.storage.tables.knowledge import refused_notes
from botservice.storage.tables.people import exports, link_codes, refused_facts, web_links, web_logins

RUNS = int(os.environ.get("BOTSERVICE_TEST_PLANTED_RUNS", "5"))
STOPPED = (cut_off, killed)  # where the database forgets in more than one go
ABOVE = pytest.mark.any_database
REPEATED = re.compile(r"\[(in reply to|forwarded|shared|about)[^\]]*\]")
_OURS = ("botservice", "transports")
# What holds digests alone is counted; who installed the bot in a workspace is not theirs to have forgotten.
DIGESTS = (exports, link_codes, refused_facts, refused_notes, web_links, web_logins)
PLANTED = {each.where for each in PLACES if each.columns and not each.where.startswith("knowledge_")} - {
    "approvals",  # of calls that were decided: turns/test_ledger.py
    "exports",
    "link_codes",
    "loose_files",
    "refused_facts",
    "refused_notes",
    "slack_installations",
    "web_links",
    "web_logins",
}
OF_THE_OWNER = {"access_roles", "access_invitations"}
LATER = {
    "contexts",
    "model_usage",
    "events",
    "deliveries",
    "access_refusals",
}  # what names the chat, or is not read yet


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seed", [pytest.param(each, marks=() if WAYS[each % len(WAYS)] in STOPPED else ABOVE) for each in range(RUNS)]
)
async def test_nothing_of_a_forgotten_person_is_left_and_everything_of_the_others(storage, storage_url, seed, caplog):
    for each in _OURS:
        caplog.set_level(logging.INFO, logger=each)
    async with town(storage, storage_url, seed) as place:
        await place.plant(EVERY)
        await by_hand.plant(place)
        await owing.begin(place)
        assert traces_in(await storage.read(rows_of)) >= PLANTED
        assert all([await count(storage, table) for table in DIGESTS])
        before = await of_the_others(storage)
        await WAYS[seed % len(WAYS)](place)
        place.owed.cancel()
        await place.quiet()
        after = await of_the_others(storage)
        assert [each for each in before if each not in after] == []
        assert after == before
        await edit_what_replied(place)
        await storage.scrub(patience_seconds=60)
        assert await find_bytes(storage, MARK) == []
        rows = await storage.read(rows_of)
        assert traces_in(rows) <= LATER | OF_THE_OWNER
        assert not [number for number in NUMBERS if number in rows["events"] + rows["deliveries"]]
        assert rows["messages"].count(CAROLS) > 2, "who waited behind what was owed to her is heard and answered"
    assert [await count(storage, table) for table in (*DIGESTS, loose_files)] == [0] * (len(DIGESTS) + 1)
    await find_nothing_later(storage)
    logged = [f"{each.getMessage()} {vars(each)}" for each in caplog.records if each.name.startswith(_OURS)]
    assert logged
    assert not [line for line in logged if MARK in line or OTHER in line]


async def find_nothing_later(storage):
    """See that time takes what names her, and that what the owner decided about her goes when they take it back."""
    for later in (timedelta(hours=5), timedelta(days=32)):
        await Maintenance(storage, clock=lambda later=later: storage.now() + later).run_once()
    assert traces_in(await storage.read(rows_of)) == OF_THE_OWNER
    await storage.write(by_hand.take_back)
    await storage.scrub(patience_seconds=60)
    assert {each for mark in HERS for each in await find_bytes(storage, mark)} == set()


async def edit_what_replied(place):
    """Have Bob change what replied to her: the platform delivers what it replied to once more."""
    for said in place.replies:
        place.telegram.person_edits(said.chat_id, said.message_id, f"listen: {place.words(OTHER)}")
    await place.quiet()


async def of_the_others(storage):
    """Return each thing of their own that the others would be given in an export, so that it is seen what is missing.

    Answers that repeat hers are to go; that a message repeats a person is said in other words then.
    """
    given = [as_values(await read_person(storage, each)) for each in OTHERS]
    every = [f"{name}: {entry}" for each in given for name, entries in each.items() for entry in entries]
    return sorted(REPEATED.sub("", each) for each in every if MARK not in each)


async def count(storage, table):
    query = select(func.count()).select_from(table)
    return await storage.read(lambda connection: connection.execute(query).scalar_one())


def traces_in(rows):
    """Return the tables in which anything of hers is kept."""
    return {name for name, text in rows.items() if any(mark in text for mark in HERS)}
