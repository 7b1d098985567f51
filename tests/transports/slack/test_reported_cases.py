"""What people reported of other AI bots in Slack: each case stands for a kind."""

from typing import Any

import pytest
from standins.slack_api import BOT_USER, SlackApi
from standins.slack_api.world import Post

from botservice import AgentContext, Storage

CHANNEL = "C0GENERAL"
GROUP = "G0MPIM"


async def settle(api: SlackApi) -> None:
    """Return when the bot has answered whatever it was sent: one more question is the last one that it takes."""
    await api.all_taken()
    api.person_says("the end", user="U0BOB", channel="D0BOB")
    await api.until(lambda: api.said("D0BOB") == ["You said: the end"])


def sent(api: SlackApi, **event: Any) -> None:
    """Deliver an event of a message as Slack words it."""
    with api.condition:
        ts = api.world.next_ts()
        if isinstance(event.get("text"), str) and "user" in event:
            channel = event.get("channel", CHANNEL)
            api.world.add(Post(channel, ts, event["user"], event["text"], thread_ts=event.get("thread_ts")))
    api.send_event({"type": "message", "channel": CHANNEL, "ts": ts, "event_ts": ts, "channel_type": "channel"} | event)


@pytest.mark.parametrize(
    "event",
    [
        {"subtype": "huddle_thread", "user": "USLACKBOT", "text": "A huddle started", "room": {"id": "R1"}},
        {"subtype": "file_comment", "file": {"id": "F1"}, "comment": {"comment": f"<@{BOT_USER}> look"}, "text": "c"},
        {"subtype": "channel_canvas_updated", "user": "U0ALICE", "text": ""},
        {"subtype": "document_mention", "user": "U0ALICE", "text": f"<@{BOT_USER}>"},
        {"subtype": "reminder_add", "user": "U0ALICE", "text": f"set a reminder for <@{BOT_USER}>"},
        {"subtype": "bot_message", "bot_id": "B0FLOW", "username": "Flow", "text": f"<@{BOT_USER}> run"},
        {"subtype": "assistant_app_thread", "user": "U0ALICE", "text": ""},
        {"user": "U0OTHERBOT", "bot_id": "B0OTHER", "app_id": "A0OTHER", "text": f"<@{BOT_USER}> hello"},
        {"subtype": "channel_join", "user": "U0BOB", "text": f"<@U0BOB> has joined, invited by <@{BOT_USER}>"},
        {"subtype": "message_replied", "message": {"user": "U0ALICE", "text": f"<@{BOT_USER}> hi"}, "hidden": True},
        {"subtype": ["odd"], "user": "U0ALICE", "text": f"<@{BOT_USER}> hi"},
        {"user": "U0ALICE", "text": None, "blocks": "odd"},
    ],
    ids=lambda event: str(event.get("subtype", "plain")),
)
async def test_what_nobody_wrote_to_the_bot_is_left_alone(api: SlackApi, bot_on: Any, event: dict[str, Any]) -> None:
    async with bot_on(api):
        sent(api, **event)
        await settle(api)
    assert api.said(CHANNEL) == []


async def test_changes_of_an_answered_message_ask_nothing_again(api: SlackApi, bot_on: Any) -> None:
    """Slack tells of a change also where a reply came, a link was unfurled, or an app has synced its fields."""
    async with bot_on(api):
        ts = api.person_says(f"<@{BOT_USER}> say hi", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL))
        now = {"type": "message", "user": "U0ALICE", "text": f"<@{BOT_USER}> say hi", "ts": ts}
        for change in (
            {"reply_count": 1, "latest_reply": ts},
            {"attachments": [{"title": "a link"}]},
            {"edited": {"user": "U0ALICE", "ts": ts}, "text": f"<@{BOT_USER}> say hi!"},
            {"metadata": {"event_type": "synced", "event_payload": {}}},
        ):
            sent(api, subtype="message_changed", hidden=True, message=now | change, previous_message=now)
            sent(api, subtype="message_changed", hidden=True, message=now | change)
        await settle(api)
    assert len(api.said(CHANNEL)) == 1


async def test_a_reply_that_is_shown_in_the_channel_too_is_answered_once_in_its_thread(
    api: SlackApi, bot_on: Any
) -> None:
    async with bot_on(api):
        ts = api.person_says(f"<@{BOT_USER}> hello", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL))
        sent(api, subtype="thread_broadcast", user="U0ALICE", text="and this?", thread_ts=ts, root={"ts": ts})
        await api.until(lambda: len(api.said(CHANNEL)) == 2)
        await settle(api)
    assert [each.thread_ts for each in api.bot_posts(CHANNEL)] == [ts, ts]


async def test_in_a_conversation_of_several_the_bot_answers_when_it_is_meant(api: SlackApi, bot_on: Any) -> None:
    api.world.channels[GROUP] = {"U0ALICE", "U0BOB", BOT_USER}
    async with bot_on(api):
        sent(api, channel=GROUP, channel_type="mpim", user="U0BOB", text="lunch?")
        sent(api, channel=GROUP, channel_type="mpim", user="U0ALICE", text=f"<@{BOT_USER}> where?")
        await settle(api)
        await api.until(lambda: api.said(GROUP))
    assert api.said(GROUP) == ["You said: where?"]


async def test_people_of_an_organisation_and_of_other_workspaces_are_answered(
    api: SlackApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    for user in ("W0GRID", "U0GUEST"):
        api.world.users[user] = {"id": user, "name": user.lower(), "profile": {}}
        api.world.channels[CHANNEL].add(user)
    async with bot_on(api):
        sent(api, user="W0GRID", text=f"<@{BOT_USER}> one")
        await api.until(lambda: api.said(CHANNEL) == ["You said: one"])
        sent(api, user="U0GUEST", user_team="T0OTHER", source_team="T0OTHER", text=f"<@{BOT_USER}|botty> two")
        await api.until(lambda: len(api.said(CHANNEL)) == 2)
    assert api.said(CHANNEL)[1] == "You said: two"


async def test_a_mention_alone_is_answered(api: SlackApi, bot_on: Any) -> None:
    async with bot_on(api):
        sent(api, user="U0ALICE", text=f"<@{BOT_USER}>")
        await api.until(lambda: api.said(CHANNEL))


async def test_a_mention_in_code_or_beside_everybody_is_one(api: SlackApi, bot_on: Any) -> None:
    async with bot_on(api):
        sent(api, user="U0ALICE", text=f"<!channel> <@{BOT_USER}> status &lt;prod&gt; &amp; co?")
        await api.until(lambda: api.said(CHANNEL))
    assert api.said(CHANNEL)[0].endswith("status <prod> & co?")


async def test_a_voice_clip_and_a_list_are_named(api: SlackApi, bot_on: Any, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        file = {"id": "F1", "name": "audio_message.m4a", "mimetype": "audio/mp4", "filetype": "m4a", "size": 9,
                "subtype": "slack_audio", "mode": "hosted", "url_private": f"{api.url}/files/F1"}  # fmt: skip
        sent(api, channel="D0ALICE", channel_type="im", user="U0ALICE", text="", subtype="file_share", files=[file])
        await api.until(lambda: api.said("D0ALICE"))
    context = await AgentContext.get_or_create(
        sqlite_storage, {"transport": "slack", "team_id": "T0001", "channel_id": "D0ALICE"}
    )
    assert "audio_message.m4a" in (await context.chat_history.messages())[0].text
