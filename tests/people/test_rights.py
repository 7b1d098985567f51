"""Whoever is not let in gets what is kept of them, and has it forgotten: once a day, and nothing besides."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from people.crowd import find_bytes
from people.gatehouse import Clock, raw_of, say, saying, until_done
from people.test_access_gate import EVE, GROUP, OWNER, at_gate
from sqlalchemy import select
from turns.messenger import PATIENCE_SECONDS

from botservice import Author, Storage
from botservice.background.maintenance import Maintenance
from botservice.core.policies import AccessMode
from botservice.core.states import EventKind
from botservice.people.queries import find_identity
from botservice.privacy.exported_data import read_person
from botservice.storage.tables.people import access_refusals
from botservice.texts import in_language

WORDS = "word8812eve"
NAME = f"name of {EVE}"


async def block(bot) -> None:
    """Have a person say something, and be taken out."""
    await say(bot, f"my plan is {WORDS}", EVE)
    await say(bot, f"/revoke crowd:{EVE}", OWNER)


def shown(bot) -> list[str]:
    """Return what a person was told since they are out."""
    return bot.messenger.visible[EVE][1:]


@pytest.mark.any_database
async def test_who_is_blocked_is_given_all_that_is_kept_of_them_once_a_day(storage: Storage) -> None:
    clock = Clock()
    async with at_gate(storage, AccessMode.OPEN, clock=clock) as bot:
        await block(bot)
        await say(bot, "/export", EVE)
        assert shown(bot) == [in_language("export.here_it_is", "en")]
        await say(bot, "/export", EVE)
        assert len(shown(bot)) == 2, "they are told that they are not let in, and that once"
        clock.pass_(hours=25)
        await say(bot, "/export", EVE)
        assert shown(bot)[2:] == [in_language("export.here_it_is", "en")]
    assert (await read_person(storage, Author("crowd", EVE))).conversations


@pytest.mark.any_database
async def test_who_is_blocked_is_forgotten_when_they_ask_and_confirm(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.OPEN) as bot:
        await block(bot)
        await say(bot, "/forget me", EVE)
        assert "/forget me yes" in shown(bot)[0]
        await say(bot, "/forget me yes", EVE)
        await say(bot, "/forget me yes", EVE)
        await say(bot, "/forget me", EVE)
        await storage.scrub()
    assert await find_bytes(storage, WORDS) == []
    assert await find_bytes(storage, NAME) == []
    assert sum("Forgotten" in text for text in shown(bot)) == 1
    assert len(shown(bot)) == 3, "the third is that they are not let in"


@pytest.mark.any_database
@pytest.mark.parametrize(
    "text", ["/memory", "/forget chat yes", "/help", "/forget me yes and all", "hello", "/export x"]
)
async def test_nothing_else_is_answered(storage: Storage, text: str) -> None:
    async with at_gate(storage, AccessMode.OPEN) as bot:
        await block(bot)
        await say(bot, "first of all", EVE)
        await say(bot, text, EVE)
        assert len(shown(bot)) == 1
        assert "not everyone can use me" in shown(bot)[0]


@pytest.mark.any_database
async def test_a_stranger_is_told_that_nothing_is_kept_and_asking_makes_them_no_known_person(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.ALLOW) as bot:
        for text in ("/export", "/forget me"):
            await say(bot, text, EVE)
        assert bot.messenger.visible[EVE] == [in_language("forget.nothing_kept", "en")] * 2
        await say(bot, "/export", EVE, GROUP)
    assert await storage.read(lambda c: find_identity(c, Author("crowd", EVE))) is None
    assert await raw_of(storage) == [None] * 3


@pytest.mark.any_database
async def test_what_is_asked_for_cannot_be_changed_into_anything_else(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.OPEN, is_started=False) as bot:
        await bot.worker.start()
        await block(bot)
        await bot.worker.stop()
    async with at_gate(storage, AccessMode.OPEN, is_started=False) as bot:
        asked = saying("/export", EVE)
        edit = replace(saying("/memory", EVE), kind=EventKind.EDIT, external_id=asked.key)
        await bot.inbox.accept("crowd", [asked, edit])
        await bot.worker.start()
        await until_done(bot, asked.key)
        assert EVE not in bot.messenger.visible


async def test_that_somebody_asked_is_known_for_a_day(storage: Storage) -> None:
    clock = Clock()
    async with at_gate(storage, AccessMode.ALLOW, clock=clock) as bot:
        await say(bot, "/export", EVE)

    async def noted():
        return await storage.read(lambda c: c.execute(select(access_refusals.c.kind)).scalars().all())

    assert await noted() == ["export"]
    await Maintenance(storage, clock=lambda: clock() + timedelta(hours=25)).run_once()
    assert await noted() == []


async def test_what_a_stranger_said_leaves_the_log_of_the_database(sqlite_storage: Storage) -> None:
    async with at_gate(sqlite_storage, AccessMode.ALLOW) as bot:
        await say(bot, f"my plan is {WORDS}", EVE)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not sqlite_storage.is_scrubbed:  # noqa: ASYNC110 - a thread cleans it, by and by
                await asyncio.sleep(0.01)
    assert await find_bytes(sqlite_storage, WORDS) == []
