"""An album in a group is one message: where a part of it means the bot, the model is shown all of it, and no more."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from standins.bot_api import BotApi, Person
from standins.bot_api.entities import detect
from standins.bot_api.files import attached
from standins.bot_api.people import Said
from standins.clocks import LastingMinute

from botservice import AgentContext, Storage
from botservice.core.messages import Message, Role
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
ALBUM = [PNG + b"1", PNG + b"2", PNG + b"3"]
GROUP = -1001000000001
ADA, BOB = Person(1, "Ada"), Person(2, "Bob")


@pytest.fixture(autouse=True)
def group(api: BotApi) -> None:
    api.add_group(GROUP, members=[ADA, BOB])


@asynccontextmanager
async def gathering(api: BotApi, bot_on: Any, clock: LastingMinute, **options: Any) -> AsyncIterator[None]:
    """Run a bot that says how many pictures are in its prompt, and does so when what the block sends has gathered."""
    async with bot_on(api, count_pictures, clock=clock, **options):
        await api.until(lambda: api.updates.allowed)
        yield
        before = api.visible_texts(GROUP)
        await api.all_taken()
        clock.pass_(seconds=2)
        await api.messages(GROUP, len(before) + 1)


def count_pictures(prompt: Sequence[Any]) -> str:
    parts = [part for each in prompt if isinstance(each["content"], list) for part in each["content"]]
    return f"seen {sum(part['type'] == 'image_url' for part in parts)}"


def meaning_the_bot(api: BotApi) -> str:
    return f"@{api.username} which is best?"


async def said(storage: Storage) -> list[Message]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(GROUP)})
    return [each for each in await context.chat_history.messages() if each.role is Role.USER]


def pictures(kept: Sequence[Message]) -> list[bytes | None]:
    return [each.data for message in kept for each in message.attachments]


@pytest.mark.parametrize("webhook", [False, True])
@pytest.mark.parametrize("caption_at", [0, 1, 2])
async def test_all_pictures_are_shown_in_order(
    api: BotApi, bot_on, sqlite_storage: Storage, caption_at: int, webhook: bool
) -> None:
    async with gathering(api, bot_on, LastingMinute(), webhook=webhook):
        words = meaning_the_bot(api)
        api.person_sends_album(ALBUM, chat_id=GROUP, user=ADA, caption=words, caption_at=caption_at)
    assert api.visible_texts(GROUP) == ["seen 3"]
    kept = await said(sqlite_storage)
    assert pictures(kept) == ALBUM
    assert [each.text for each in kept] == ["which is best?" if place == caption_at else "" for place in range(3)]
    assert len(api.calls("getFile")) == 3


async def test_parts_that_come_in_any_order_are_shown_in_that_of_the_album(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    async with gathering(api, bot_on, LastingMinute(), webhook=True):
        with api.condition:
            api.person_sends_album(ALBUM, chat_id=GROUP, user=ADA, caption=meaning_the_bot(api), caption_at=1)
            api.updates.pending = dict(reversed(api.updates.pending.items()))
    assert api.visible_texts(GROUP) == ["seen 3"]
    assert pictures(await said(sqlite_storage)) == ALBUM


async def test_no_picture_of_anything_else_is_fetched(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with gathering(api, bot_on, LastingMinute()):
        api.person_sends_album(ALBUM, chat_id=GROUP, user=ADA, caption="of yesterday")
        api.person_sends_photo(PNG, chat_id=GROUP, user=BOB)
        album = api.person_sends_album(ALBUM[:2], chat_id=GROUP, user=ADA, caption=meaning_the_bot(api))
        send_part(api, PNG, album[0], user=BOB)
    assert api.visible_texts(GROUP) == ["seen 2"]
    kept = await said(sqlite_storage)
    assert pictures(kept) == ALBUM[:2]
    texts = ["of yesterday\n[picture]", *["[picture]"] * 3, "which is best?", "", "[picture]"]
    assert [each.text for each in kept] == texts
    assert len(api.calls("getFile")) == 2


async def test_it_counts_once_where_messages_are_counted(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    limits = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
    async with gathering(api, bot_on, LastingMinute(), budgets=limits):
        api.person_sends_album(ALBUM, chat_id=GROUP, user=ADA, caption=meaning_the_bot(api), caption_at=1)
    assert api.visible_texts(GROUP) == ["seen 3"]
    assert pictures(await said(sqlite_storage)) == ALBUM


async def test_an_album_of_somebody_who_writes_too_fast_is_not_fetched(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    limits = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
    async with gathering(api, bot_on, LastingMinute(), budgets=limits):
        api.person_says(f"@{api.username} hello", chat_id=GROUP, user=ADA)
        await api.message(GROUP, "seen 0")
        api.person_sends_album(ALBUM, chat_id=GROUP, user=ADA, caption=meaning_the_bot(api))
    assert pictures(await said(sqlite_storage)) == []
    assert not api.calls("getFile")


async def test_a_caption_that_is_changed_before_its_turn_begins_means_the_bot_with_all_pictures(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    async with gathering(api, bot_on, LastingMinute()):
        album = api.person_sends_album(ALBUM, chat_id=GROUP, user=ADA, caption="which is best?")
        api.person_edits(GROUP, album[0].message_id, meaning_the_bot(api))
    assert api.visible_texts(GROUP) == ["seen 3"]
    assert pictures(await said(sqlite_storage)) == ALBUM


async def test_a_process_that_ends_while_an_album_gathers_leaves_all_of_it_to_the_next(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    clock = LastingMinute()
    async with bot_on(api, count_pictures, clock=clock):
        (first,) = api.person_sends_album(ALBUM[:1], chat_id=GROUP, user=ADA, caption=meaning_the_bot(api))
        await api.all_taken()
    async with gathering(api, bot_on, clock):
        for each in ALBUM[1:]:
            send_part(api, each, first)
    assert api.visible_texts(GROUP) == ["seen 3"]
    assert pictures(await said(sqlite_storage)) == ALBUM


async def test_a_part_that_comes_after_the_answer_is_shown_as_well(api: BotApi, bot_on_both, storage: Storage) -> None:
    clock = LastingMinute()
    async with gathering(api, bot_on_both, clock):
        album = api.person_sends_album(ALBUM[:2], chat_id=GROUP, user=ADA, caption=meaning_the_bot(api))
        await api.all_taken()
        clock.pass_(seconds=2)
        await api.message(GROUP, "seen 2")
        send_part(api, ALBUM[2], album[0])
    assert api.visible_texts(GROUP) == ["seen 2", "seen 3"]
    assert pictures(await said(storage)) == ALBUM


@pytest.mark.parametrize(
    "limits", [None, Budgets({Scope.PERSON: parse_limits("1 messages/minute")})], ids=["open", "limited"]
)
async def test_a_caption_that_comes_late_shows_what_came_before_it(
    api: BotApi, bot_on_both, storage: Storage, limits: Budgets | None
) -> None:
    clock = LastingMinute()
    async with gathering(api, bot_on_both, clock, budgets=limits):
        album = api.person_sends_album(ALBUM[:2], chat_id=GROUP, user=ADA)
        theirs = send_part(api, PNG, album[0], user=BOB)
        await api.all_taken()
        clock.pass_(seconds=2)
        await until_said(storage, 3)
        assert not api.calls("getFile")
        send_part(api, ALBUM[2], album[0], caption=meaning_the_bot(api))
    assert api.visible_texts(GROUP) == ["seen 3"]
    kept = await said(storage)
    assert pictures(kept) == ALBUM
    assert [each.text for each in kept] == ["", "", "[picture]", "which is best?"]
    assert kept[2].external_id == str(theirs.message_id)


async def test_an_edit_of_one_part_leaves_its_picture(api: BotApi, bot_on_both, storage: Storage) -> None:
    async with gathering(api, bot_on_both, LastingMinute()):
        album = api.person_sends_album(ALBUM, chat_id=GROUP, user=ADA, caption=meaning_the_bot(api))
    async with gathering(api, bot_on_both, LastingMinute()):
        api.person_edits(GROUP, album[1].message_id, "the second")
        api.person_says(f"@{api.username} and now?", chat_id=GROUP, user=ADA)
    assert api.visible_texts(GROUP) == ["seen 3", "seen 3"]
    kept = await said(storage)
    assert pictures(kept) == ALBUM
    assert kept[1].text == "the second"


async def until_said(storage: Storage, count: int) -> None:
    """Return when people's messages are in the history."""
    async with asyncio.timeout(60):
        while len(await said(storage)) < count:  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


def send_part(api: BotApi, data: bytes, first: Said, *, user: Person = ADA, caption: str = "") -> Said:
    """Let a person's client deliver one more part of an album."""
    (wire,) = [each.wire for each in api.visible_messages(GROUP) if each.message_id == first.message_id]
    with api.condition:
        file = api.world.files.add("photo", data)
    words = {"caption": caption, "caption_entities": detect(caption)} if caption else {}
    content = attached("photo", file) | {"media_group_id": wire["media_group_id"]} | words
    return api.person_sends(content, chat_id=GROUP, user=user)
