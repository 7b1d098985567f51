"""Whoever is not let in reaches neither the history nor the model, and is told so once."""

import asyncio
import contextlib
import re
from dataclasses import replace
from typing import Any

import pytest
from people.gatehouse import Clock, Crowd, outcomes, raw_of, say, saying, until_done
from sqlalchemy import Connection, select
from standins.patience import PATIENT
from turns.messenger import PATIENCE_SECONDS, echo, office

from botservice import Author, Storage
from botservice.commands.standard import standard_commands
from botservice.core.policies import AccessMode
from botservice.core.states import EventKind
from botservice.people.access import Access
from botservice.people.access_queries import list_entries, move_chat, note_departure, note_invitation, take_code
from botservice.people.queries import ensure_identity, join_identities
from botservice.storage.tables.conversations import messages
from botservice.texts import in_language

OWNER, BOB, EVE = "1", "2", "666"
GROUP = "-100"


def at_gate(storage: Storage, mode: AccessMode, *, clock: Any = None, allowed: tuple[str, ...] = (), **options: Any):
    access = Access(mode, owners=frozenset({"crowd:1"}), allowed=frozenset(allowed))
    crowd = Crowd()
    return office(
        storage,
        options.pop("script", echo),
        messenger=crowd,
        clock=clock or Clock(),
        access=access,
        commands=standard_commands(),
        **options,
    )


async def texts(storage: Storage) -> list[str]:
    query = select(messages.c.text).order_by(messages.c.id)
    return await storage.read(lambda connection: list(connection.execute(query).scalars()))


def code_in(text: str) -> str:
    found = re.search(r"[A-Z2-9]{4}-[A-Z2-9]{4}", text)
    assert found is not None
    return found[0]


@pytest.mark.any_database
async def test_whom_the_owner_named_is_answered_and_a_stranger_is_told_once_and_not_kept(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.ALLOW, allowed=("crowd:2",)) as bot:
        await say(bot, "secret of eve", EVE)
        await say(bot, "another one", EVE)
        await say(bot, "hello", BOB)
        await say(bot, "hello", OWNER)
        assert bot.messenger.visible[EVE] == [in_language("access.refused", "en", name="crowd:666")]
        assert bot.messenger.visible[BOB] == bot.messenger.visible[OWNER] == ["re: hello"]
        assert bot.messenger.read_fully == ["hello", "hello"], "not even the files of a stranger are fetched"
    assert await texts(storage) == ["hello", "re: hello"] * 2
    assert [raw is None for raw in await raw_of(storage)] == [True, True, False, False]
    assert await outcomes(storage) == ["refused", "refused", "answered", "answered"]


async def test_a_stranger_is_told_once_also_when_everything_comes_at_once_and_the_service_starts_anew(
    storage: Storage,
) -> None:
    first = [saying(f"knock {number}", EVE, f"5{number}") for number in range(20)]
    async with at_gate(storage, AccessMode.ALLOW) as bot:
        await bot.inbox.accept("crowd", first)
        await asyncio.gather(*(until_done(bot, each.key) for each in first))
        told = [text for shown in bot.messenger.visible.values() for text in shown]
    async with at_gate(storage, AccessMode.ALLOW) as bot:
        await say(bot, "knock again", EVE)
        told += [text for shown in bot.messenger.visible.values() for text in shown]
    assert len(told) == 1
    assert await texts(storage) == []


@pytest.mark.any_database
async def test_commands_are_for_those_who_are_let_in(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.ALLOW) as bot:
        await say(bot, "/help", EVE)
        await say(bot, "/start", EVE)
        await say(bot, "/approve crowd:666", EVE)
        assert bot.messenger.visible[EVE] == [in_language("access.refused", "en", name="crowd:666")]
        await say(bot, "hello", EVE)
    assert await texts(storage) == []


async def test_a_newcomer_gets_a_code_that_the_owner_approves_and_is_welcomed(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.PAIRING) as bot:
        await say(bot, "hallo", BOB, language="de-AT")
        (told,) = bot.messenger.visible[BOB]
        code = code_in(told)
        assert told == in_language("access.code", "de", code=code)
        await say(bot, "hallo?", BOB, language="de-AT")
        assert bot.messenger.visible[BOB] == [told], "said once"
        await say(bot, f"/approve {code.lower().replace('-', ' ')}", OWNER)
        assert "crowd:2" in bot.messenger.visible[OWNER][-1]
        await bot.messenger.shows(BOB, told, in_language("access.welcome", "de"))
        await say(bot, "danke", BOB)
        await bot.messenger.shows(BOB, told, in_language("access.welcome", "de"), "re: danke")
    assert await texts(storage) == ["danke", "re: danke"]


@pytest.mark.any_database
async def test_start_gives_a_newcomer_the_code_again_and_a_new_one_when_it_is_over(storage: Storage) -> None:
    clock = Clock()
    async with at_gate(storage, AccessMode.PAIRING, clock=clock) as bot:
        await say(bot, "hello", BOB)
        await say(bot, "/start", BOB)
        clock.pass_(minutes=61)
        await say(bot, "/start", BOB)
        codes = [code_in(text) for text in bot.messenger.visible[BOB]]
        assert codes[0] == codes[1] != codes[2]
        await say(bot, f"/approve {codes[0]}", OWNER)
        await say(bot, "hello", BOB)
        assert len(bot.messenger.visible[BOB]) == 3, "a code that is over lets nobody in"
        await say(bot, f"/approve {codes[2]}", OWNER)
        await bot.messenger.shows(BOB, *bot.messenger.visible[BOB][:3], in_language("access.welcome", "en"))


@pytest.mark.any_database
async def test_only_owners_approve_and_a_member_does_not_make_members(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.PAIRING, allowed=("crowd:2",)) as bot:
        await say(bot, "hello", EVE)
        code = code_in(bot.messenger.visible[EVE][0])
        await say(bot, f"/approve {code}", BOB)
        await say(bot, "hello", EVE)
        assert len(bot.messenger.visible[EVE]) == 1
        await say(bot, "/access", BOB)
        assert code not in bot.messenger.visible[BOB][-1]
        await say(bot, "/access", OWNER)
        assert code in bot.messenger.visible[OWNER][-1]
        assert "name of 666" in bot.messenger.visible[OWNER][-1]


@pytest.mark.any_database
async def test_an_owner_takes_somebody_out_and_nobody_takes_the_owner_out(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.OPEN) as bot:
        await say(bot, "hello", EVE)
        await say(bot, "/revoke crowd:666", OWNER)
        await say(bot, "hello?", EVE)
        assert bot.messenger.visible[EVE] == ["re: hello", in_language("access.refused", "en", name="crowd:666")]
        await say(bot, "/revoke crowd:1", OWNER)
        assert "OWNERS" in bot.messenger.visible[OWNER][-1]
        await say(bot, "/approve crowd:666 owner", OWNER)
        await say(bot, "/revoke crowd:2", EVE)
        await say(bot, "hello", BOB)
        assert bot.messenger.visible[BOB] == [in_language("access.refused", "en", name="crowd:2")]


async def test_an_owner_who_names_nobody_is_told_how_and_nothing_is_noted(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.ALLOW) as bot:
        for said in ("/revoke telegram:@spammer", "/revoke telegrm:42", "/revoke nonsense:1"):
            await say(bot, said, OWNER)
            assert bot.messenger.visible[OWNER][-1] == in_language("revoke.how", "en")
        for said in ("/approve telegram:@alice", "/approve telegrm:42 owner"):
            await say(bot, said, OWNER)
            assert bot.messenger.visible[OWNER][-1] == in_language("approve.how", "en")
        entries = await storage.read(lambda connection: list_entries(connection, Clock()()))
        assert entries == []
        await storage.write(lambda connection: ensure_identity(connection, Author("fax", "7"), Clock()()))
        await say(bot, "/revoke fax:8", OWNER)
        await say(bot, "/approve telegram:-100", OWNER)
        entries = await storage.read(lambda connection: list_entries(connection, Clock()()))
        assert [each.subject.name for each in entries] == ["fax:8", "telegram:-100"]


async def test_a_group_is_let_in_by_whoever_brought_the_service_there(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.ALLOW, allowed=("crowd:2",)) as bot:
        await storage.write(lambda connection: note_invitation(connection, "crowd:-100", "crowd:666", Clock()()))
        await say(bot, "~ between people", EVE, GROUP)
        await say(bot, "hello", EVE, GROUP, language="de")
        await say(bot, "hello", BOB, GROUP)
        assert bot.messenger.visible[GROUP] == [in_language("access.group", "de")], "one sentence, then silence"
        assert await texts(storage) == []
        await storage.write(lambda connection: note_invitation(connection, "crowd:-100", "crowd:2", Clock()()))
        await say(bot, "hello", EVE, GROUP)
        assert bot.messenger.visible[GROUP] == [in_language("access.group", "de"), "re: hello"]
        await storage.write(lambda connection: note_departure(connection, "crowd:-100"))
        await say(bot, "and now", EVE, GROUP)
        assert bot.messenger.visible[GROUP][2:] == [in_language("access.group", "en")], "it was brought there again"


async def test_a_member_lets_a_group_in_where_it_is_and_a_stranger_does_not(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.PAIRING, allowed=("crowd:2",)) as bot:
        await say(bot, "/approve", EVE, GROUP)
        await say(bot, "hello", EVE, GROUP)
        assert bot.messenger.visible[GROUP] == [in_language("access.group", "en")]
        await say(bot, "/approve", BOB, GROUP)
        await say(bot, "hello", EVE, GROUP)
        assert bot.messenger.visible[GROUP][-1] == "re: hello"
        await storage.write(lambda connection: move_chat(connection, "crowd:-100", "crowd:-1001"))
        await say(bot, "hello", EVE, "-1001")
        assert bot.messenger.visible["-1001"] == ["re: hello"]
        await say(bot, "hello", EVE)
        assert code_in(bot.messenger.visible[EVE][0]), "in private they are a stranger all the same"


@pytest.mark.any_database
async def test_somebody_who_is_blocked_is_not_heard_in_a_group_either(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.ALLOW, allowed=("crowd:-100",)) as bot:
        await say(bot, "hello", EVE, GROUP)
        await say(bot, "/revoke crowd:666", OWNER)
        await say(bot, "nasty", EVE, GROUP)
        await say(bot, "hello", BOB, GROUP)
        assert bot.messenger.visible[GROUP] == ["re: hello", "re: name of 2: hello"]  # two people have spoken by then
    assert "nasty" not in await texts(storage)


@pytest.mark.any_database
async def test_open_means_everybody_and_judges_nobody(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.OPEN) as bot:
        await say(bot, "hello", EVE)
        await say(bot, "hello", EVE, GROUP)
        assert bot.messenger.visible == {EVE: ["re: hello"], GROUP: ["re: hello"]}


async def test_two_replicas_tell_a_stranger_once(postgres_url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(Storage.open(postgres_url, limits=PATIENT)) for _ in range(2)]
        bots = [await stack.enter_async_context(at_gate(each, AccessMode.PAIRING)) for each in stores]
        knocks = [saying("hello", EVE, f"5{number}") for number in range(20)]
        for number, knock in enumerate(knocks):
            await bots[number % 2].inbox.accept("crowd", [knock])
        await asyncio.gather(*(until_done(bots[0], each.key) for each in knocks))
        told = [text for bot in bots for shown in bot.messenger.visible.values() for text in shown]
        assert len(told) == 1


async def test_what_a_stranger_changes_their_words_to_is_not_kept_either(storage: Storage) -> None:
    async with at_gate(storage, AccessMode.ALLOW) as bot:
        first = saying("secret", EVE)
        await bot.inbox.accept("crowd", [first])
        await until_done(bot, first.key)
        edit = replace(saying("another secret", EVE), kind=EventKind.EDIT, external_id=first.key)
        await bot.inbox.accept("crowd", [edit])
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await raw_of(storage) != [None, None]:  # noqa: ASYNC110 - only the database tells
                await asyncio.sleep(0.01)


@pytest.mark.any_database
async def test_accounts_that_were_linked_are_let_in_and_taken_out_together(storage: Storage) -> None:
    def link(connection: Connection) -> None:
        accounts = [Author("crowd", BOB), Author("telegram", "22")]
        first, second = (ensure_identity(connection, account, Clock()()) for account in accounts)
        assert first is not None
        assert second is not None
        join_identities(connection, first, second)

    await storage.write(link)
    async with at_gate(storage, AccessMode.ALLOW, allowed=("telegram:22",)) as bot:
        await say(bot, "hello", BOB)
        await say(bot, "/revoke telegram:22", OWNER)
        await say(bot, "hello?", BOB)
        assert bot.messenger.visible[BOB] == ["re: hello", in_language("access.refused", "en", name="crowd:2")]


async def test_a_code_that_two_owners_take_on_two_replicas_at_once_welcomes_once(postgres_url, postgres_storage):
    clock, welcomed = Clock(), []
    async with at_gate(postgres_storage, AccessMode.PAIRING, clock=clock) as bot:
        await say(bot, "hello", BOB)
        code = code_in(bot.messenger.visible[BOB][0])

    def take(connection: Connection) -> bool:
        return take_code(connection, code, clock(), lambda *told: welcomed.append(told)) is not None

    async with Storage.open(postgres_url, limits=PATIENT) as other:
        taking = [(postgres_storage, other)[place % 2].write(take, sort_key=(place,)) for place in range(4)]
        assert sum(await asyncio.gather(*taking)) == 1
    assert len(welcomed) == 1
