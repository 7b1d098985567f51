"""What people think of an answer, by a reaction: kept for answers alone, and for people who can be told apart."""

from typing import Any

import pytest
from sqlalchemy import select
from standins.bot_api import BotApi, Person

from botservice import Storage
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.storage.tables.services import feedback

GROUP = -1001000000001


async def verdicts(storage: Storage) -> list[tuple[str, str]]:
    query = select(feedback.c.person_id, feedback.c.verdict).where(feedback.c.platform == "telegram")
    return await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])


@pytest.mark.parametrize("webhook", [False, True])
async def test_a_thumb_at_an_answer_is_kept_changed_and_taken_back(
    api: BotApi, bot_on: Any, sqlite_storage: Storage, webhook: bool
) -> None:
    async with bot_on(api, webhook=webhook):
        api.person_says("hello", chat_id=42)
        answer = await api.message(42, "You said: hello")
        seen = []
        for before, after in (((), "👍"), (("👍",), "👎"), (("👎",), "❤")):
            api.person_reacts(42, answer.message_id, after, before=before)
            await api.all_taken()
            seen.append(await verdicts(sqlite_storage))
    assert seen == [[("42", "good")], [("42", "bad")], []]


async def test_a_thumb_at_anything_but_an_answer_is_not_kept(api: BotApi, bot_on: Any, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        question = api.person_says("hello", chat_id=42)
        await api.message(42, "You said: hello")
        api.person_says("/help", chat_id=42)
        notice = (await api.messages(42, 2))[1]
        for message_id in (question.message_id, notice.message_id, 999_999):
            api.person_reacts(42, message_id, "👍")
        await api.all_taken()
    assert await verdicts(sqlite_storage) == []


async def test_in_a_group_each_person_has_one_opinion_and_an_anonymous_one_counts_for_nobody(
    api: BotApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    group = api.add_group(GROUP, members=[Person(7, "Ann"), Person(8, "Bob")])
    group.bot_status = "administrator"
    async with bot_on(api):
        api.person_says("/stop", chat_id=GROUP, user=7)
        api.person_says(f"@{api.username} hello", chat_id=GROUP, user=7)
        answer = await api.message(GROUP, "You said: hello")
        api.person_reacts(GROUP, answer.message_id, "👍", user=7)
        api.person_reacts(GROUP, answer.message_id, "👎", user=8)
        api.person_reacts(GROUP, answer.message_id, "👎", as_chat=True)
        await api.all_taken()
    assert sorted(await verdicts(sqlite_storage)) == [("7", "good"), ("8", "bad")]


async def test_who_is_blocked_leaves_no_opinion(api: BotApi, bot_on: Any, sqlite_storage: Storage) -> None:
    access = Access()
    async with bot_on(api, access=access):
        api.person_says("hello", chat_id=42)
        answer = await api.message(42, "You said: hello")
        now = sqlite_storage.now()
        await sqlite_storage.write(lambda connection: access.revoke(connection, "telegram:42", "telegram:1", now))
        api.person_reacts(42, answer.message_id, "👍")
        await api.all_taken()
    assert await verdicts(sqlite_storage) == []


async def test_who_is_not_let_in_leaves_no_opinion(api: BotApi, bot_on: Any, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        api.person_says("hello", chat_id=42)
        answer = await api.message(42, "You said: hello")
    async with bot_on(api, access=Access(AccessMode.ALLOW)):
        api.person_reacts(42, answer.message_id, "👍")
        await api.all_taken()
    assert await verdicts(sqlite_storage) == []
