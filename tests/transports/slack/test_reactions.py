"""What people think of an answer, by a reaction: kept for answers of the bot alone, and for people who are let in."""

import pytest
from sqlalchemy import select
from standins.slack_api import BOT_USER, SlackApi
from standins.slack_api.world import Post

from botservice import Storage
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.storage.tables.services import feedback


async def verdicts(storage: Storage) -> list[tuple[str, str]]:
    query = select(feedback.c.person_id, feedback.c.verdict).where(feedback.c.platform == "slack")
    return sorted(await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)]))


async def answer_in(api: SlackApi, channel: str = "D0ALICE") -> Post:
    api.person_says("hello" if channel.startswith("D") else f"<@{BOT_USER}> hello", channel=channel)
    post: Post = (await api.until(lambda: api.bot_posts(channel)))[0]
    return post


@pytest.mark.parametrize(("way", "channel"), [("http", "D0ALICE"), ("socket", "C0GENERAL")])
async def test_a_thumb_at_an_answer_is_kept_changed_and_taken_back(
    api: SlackApi, bot_on_both, storage: Storage, way: str, channel: str
) -> None:
    async with bot_on_both(api, way=way):
        post = await answer_in(api, channel)
        seen = []
        steps = [("+1", False), ("-1::skin-tone-3", False), ("+1", True), ("-1::skin-tone-3", True)]
        for name, is_removed in steps:
            api.person_reacts(post, name, is_removed=is_removed)
            await api.all_taken()
            seen.append([verdict for _, verdict in await verdicts(storage)])
    assert seen == [["good"], ["bad"], ["bad"], []]


@pytest.mark.parametrize(
    ("name", "kept"),
    [("thumbsup", ["good"]), ("+1::skin-tone-6", ["good"]), ("thumbsdown", ["bad"]), ("heart", []), ("+12", [])],
)
async def test_a_thumb_has_several_names_and_nothing_else_is_one(
    api: SlackApi, bot_on, sqlite_storage: Storage, name: str, kept: list[str]
) -> None:
    async with bot_on(api):
        api.person_reacts(await answer_in(api), name)
        await api.all_taken()
    assert [verdict for _, verdict in await verdicts(sqlite_storage)] == kept


async def test_a_thumb_at_anything_but_an_answer_is_not_kept(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        post = await answer_in(api)
        api.person_says("!help")
        notice = (await api.until(lambda: api.bot_posts()[1:]))[0]
        question = next(each for each in api.world.posts if each.user == "U0ALICE")
        elsewhere = Post("C0GENERAL", post.ts, BOT_USER)
        for each in (question, notice, elsewhere, Post("D0ALICE", "1.1", BOT_USER), Post("D0ALICE", post.ts, "U0BOB")):
            api.person_reacts(each, "+1")
        await api.all_taken()
    assert {each.status for each in api.events.tries} == {200}
    assert await verdicts(sqlite_storage) == []


async def test_each_person_has_one_opinion_and_programs_have_none(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    api.world.users["U0OTHERBOT"] = {"id": "U0OTHERBOT", "name": "other", "is_bot": True, "profile": {}}
    async with bot_on(api):
        post = await answer_in(api, "C0GENERAL")
        for user, name in (("U0ALICE", "+1"), ("U0BOB", "-1"), (BOT_USER, "+1"), ("U0OTHERBOT", "+1")):
            api.person_reacts(post, name, user=user)
        await api.all_taken()
    assert await verdicts(sqlite_storage) == [("T0001:U0ALICE", "good"), ("T0001:U0BOB", "bad")]


async def test_what_is_delivered_again_late_changes_nothing(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        post = await answer_in(api)
        api.person_reacts(post, "+1")
        await api.all_taken()
        first = api.events.tries[-1].body
        api.events.send("events_api", first)
        await api.all_taken()
        assert [verdict for _, verdict in await verdicts(sqlite_storage)] == ["good"]
        api.person_reacts(post, "+1", is_removed=True)
        await api.all_taken()
        api.events.send("events_api", first)
        await api.all_taken()
    assert await verdicts(sqlite_storage) == []


async def test_who_is_blocked_leaves_no_opinion(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    access = Access()
    async with bot_on(api, access=access):
        post, now = await answer_in(api), sqlite_storage.now()
        await sqlite_storage.write(
            lambda connection: access.revoke(connection, "slack:T0001:U0ALICE", "slack:T0001:U0BOB", now)
        )
        api.person_reacts(post, "+1")
        await api.all_taken()
    assert await verdicts(sqlite_storage) == []


async def test_without_the_scope_or_the_subscription_answers_come_as_before(api: SlackApi, bot_on) -> None:
    api.world.subscribed = set()
    async with bot_on(api):
        post = await answer_in(api)
        api.person_reacts(post, "+1")
        await api.all_taken()
    assert len(api.events.tries) == 1
    assert post.shown == "You said: hello"


async def test_who_is_not_let_in_leaves_no_opinion(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        post = await answer_in(api)
    async with bot_on(api, access=Access(AccessMode.ALLOW)):
        api.person_reacts(post, "+1")
        await api.all_taken()
    assert await verdicts(sqlite_storage) == []
