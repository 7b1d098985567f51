"""Administrators of a group on Telegram pause the bot there; members, channels and former administrators do not."""

import time
from typing import Any

import pytest
from standins.bot_api import BotApi
from standins.bot_api.chats import Person
from standins.bot_api.faults import Drop, Hang, Refuse, flood
from turns.group_scenes import gate_of

from botservice import Storage
from botservice.commands import pause_and_listen
from botservice.people.access import Access
from botservice.texts import in_language

GROUP, CHANNEL = -1001000000001, -1002000000009
ANN, BEN, EVE = Person(42, "Ann"), Person(43, "Ben"), Person(44, "Eve")
OWNED = Access(owners=frozenset({"telegram:42"}))
PAUSED, RESUMED = in_language("pause.done", "en"), in_language("resume.done", "en")
REFUSED, NOT_CHECKED = in_language("access.for_administrators", "en"), in_language("access.not_checked", "en")

pytestmark = pytest.mark.any_database


@pytest.fixture
def group(api: BotApi) -> BotApi:
    """A group of Ben, who is an administrator, and of Eve; Ann owns the bot."""
    api.add_group(GROUP, members=(ANN, BEN, EVE))
    api.promote(GROUP, BEN)
    return api


def say(api: BotApi, text: str, user: Person | None = None, **how: Any) -> Any:
    return api.person_says(text, chat_id=GROUP, user=user, **how)


async def answer(api: BotApi, number: int) -> str:
    """Return an answer as soon as there are so many."""
    await api.until(lambda: len(api.visible_texts(GROUP)) >= number)
    return api.visible_texts(GROUP)[number - 1]


async def goes_on(api: BotApi) -> None:
    """Return when the bot answers Eve, which a paused one would not do."""
    say(api, f"@{api.username} hello", EVE)
    await api.until(lambda: any(each.endswith("hello") for each in api.visible_texts(GROUP)))
    assert PAUSED not in api.visible_texts(GROUP)


@pytest.mark.parametrize("status", ["administrator", "creator"])
async def test_an_administrator_pauses_and_resumes_the_bot(group: BotApi, bot_on_both, status: str):
    group.promote(GROUP, BEN, status)
    async with bot_on_both(group, access=OWNED):
        say(group, "/pause", BEN)
        assert await answer(group, 1) == PAUSED
        say(group, f"@{group.username} hello?", EVE)
        say(group, "/resume", BEN)
        assert await answer(group, 2) == RESUMED
        say(group, f"@{group.username} and now?", EVE)
        assert await answer(group, 3) == "You said: and now?"


@pytest.mark.parametrize("command", ["/pause", "/resume", "/listen on"])
async def test_a_member_is_refused(group: BotApi, bot_on_both, command: str):
    async with bot_on_both(group, access=OWNED, gate=gate_of("no", listens=False)):
        say(group, command, EVE)
        assert await answer(group, 1) == REFUSED
        await goes_on(group)


async def test_an_administrator_has_the_bot_listen(group: BotApi, bot_on_both):
    async with bot_on_both(group, access=OWNED, gate=gate_of("no", listens=False)):
        say(group, "/listen on", BEN)
        assert (await answer(group, 1)).startswith("I listen in this group")


async def test_who_is_no_administrator_any_more_is_refused_at_once(group: BotApi, bot_on_both):
    async with bot_on_both(group, access=OWNED):
        say(group, "/pause", BEN)
        assert await answer(group, 1) == PAUSED
        group.promote(GROUP, BEN, "member")
        say(group, "/resume", BEN)
        assert await answer(group, 2) == REFUSED


async def test_an_owner_need_not_be_an_administrator_and_telegram_is_not_asked(group: BotApi, bot_on_both):
    async with bot_on_both(group, access=OWNED):
        say(group, "/pause", ANN)
        assert await answer(group, 1) == PAUSED
    assert group.calls("getChatAdministrators") == []


async def test_an_anonymous_administrator_pauses(group: BotApi, bot_on_both):
    async with bot_on_both(group, access=OWNED):
        group.chat_says("/pause", chat_id=GROUP)
        assert await answer(group, 1) == PAUSED
    assert group.calls("getChatAdministrators") == [], "Telegram lets nobody else write in the name of the group"


async def test_neither_a_channel_nor_the_linked_one_pauses(group: BotApi, bot_on_both):
    channel = {"id": CHANNEL, "type": "channel", "title": "News"}
    telegram = {"id": 777000, "is_bot": False, "first_name": "Telegram"}
    origin = {"type": "channel", "chat": channel, "message_id": 5, "date": int(time.time())}
    forwarded = {"from": telegram, "is_automatic_forward": True, "forward_origin": origin}
    async with bot_on_both(group, access=OWNED):
        group.chat_says("/pause", chat_id=GROUP, sender=channel, extra=forwarded)
        group.chat_says("/pause", chat_id=GROUP, sender=channel)
        await group.until(lambda: REFUSED in group.visible_texts(GROUP))
        await goes_on(group)


async def test_a_command_of_an_administrator_that_somebody_else_quotes_or_forwards_is_none_of_theirs(
    group: BotApi, bot_on_both
):
    origin = {"type": "user", "sender_user": BEN.as_user(), "date": int(time.time())}
    async with bot_on_both(group, access=OWNED):
        said = say(group, "/pause@another_bot", BEN)
        say(group, "/pause", EVE, extra={"forward_origin": origin})
        say(group, "/pause", EVE, reply_to=said.message_id)
        await group.until(lambda: REFUSED in group.visible_texts(GROUP))
        say(group, "/pause", BEN, extra={"via_bot": {"id": 9, "is_bot": True, "first_name": "Inline"}})
        await goes_on(group)


async def test_a_message_that_is_edited_into_a_command_pauses_nothing(group: BotApi, bot_on_both):
    async with bot_on_both(group, access=OWNED):
        said = say(group, "good morning", BEN)
        group.person_edits(GROUP, said.message_id, "/pause")
        await goes_on(group)


async def test_a_pause_command_is_not_done_again_if_it_is_edited_later(group: BotApi, bot_on_both):
    async with bot_on_both(group, access=OWNED):
        said = say(group, "/pause", BEN)
        assert await answer(group, 1) == PAUSED
        say(group, "/resume", BEN)
        assert await answer(group, 2) == RESUMED
        group.person_edits(GROUP, said.message_id, "/pause 2d")
        say(group, f"@{group.username} hello", EVE)
        assert await answer(group, 3) == "You said: hello"


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(403, "Forbidden: bot is not a member of the supergroup chat"),
        Refuse(400, "Bad Request: CHAT_ADMIN_REQUIRED"),
        flood(30),
        Refuse(500, "Internal Server Error"),
        Drop(),
    ],
    ids=["403", "400", "429", "500", "lost"],
)
async def test_nothing_changes_where_telegram_does_not_say_who_is_in_charge(group: BotApi, bot_on_both, fault: Any):
    async with bot_on_both(group, access=OWNED):
        order = group.order(fault, "getChatAdministrators", times=None)
        say(group, "/pause", BEN)
        assert await answer(group, 1) == NOT_CHECKED
        order.cancel()
        say(group, "/pause", BEN)
        assert await answer(group, 2) == PAUSED


async def test_nobody_waits_for_telegram_longer_than_a_moment(group: BotApi, bot_on_both, monkeypatch):
    monkeypatch.setattr(pause_and_listen, "_ASK_SECONDS", 0.05)
    async with bot_on_both(group, access=OWNED):
        order = group.order(Hang(), "getChatAdministrators", times=None)
        say(group, "/pause", BEN)
        assert await answer(group, 1) == NOT_CHECKED
        order.cancel()


async def test_in_a_private_chat_only_owners_pause(api: BotApi, bot_on_both):
    async with bot_on_both(api, access=Access(owners=frozenset({"telegram:9"}))):
        api.person_says("/pause", chat_id=42)
        await api.until(lambda: api.visible_texts(42) == [in_language("access.for_owners", "en")])


async def test_a_blocked_administrator_pauses_nothing(group: BotApi, bot_on_both, storage: Storage):
    async with bot_on_both(group, access=OWNED):
        await storage.write(lambda connection: OWNED.revoke(connection, "telegram:43", "telegram:42", storage.now()))
        say(group, "/pause", BEN)
        group.chat_says("/pause", chat_id=GROUP)  # it may be Ben
        await goes_on(group)


async def test_a_group_that_becomes_a_supergroup_stays_paused_and_its_administrators_stay_in_charge(
    api: BotApi, bot_on_both
):
    api.add_group(-500, type="group", members=(BEN, EVE))
    api.promote(-500, BEN, "creator")
    async with bot_on_both(api, access=OWNED):
        api.person_says("/pause", chat_id=-500, user=BEN)
        await api.until(lambda: api.visible_texts(-500) == [PAUSED])
        api.migrate(-500, GROUP)
        say(api, f"@{api.username} anybody?", EVE)
        say(api, "/resume", EVE)
        assert await answer(api, 1) == REFUSED
        say(api, "/resume", BEN)
        assert await answer(api, 2) == RESUMED
