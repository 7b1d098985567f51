"""Code channels: one channel for one task, in which every message is for the bot and is answered in the channel."""

from typing import Any

import pytest
from standins.slack_api import BOT_USER, Refuse, SlackApi

from botservice import AgentContext, Storage

CHANNEL = "C0GENERAL"


@pytest.fixture(autouse=True)
def code_channel(api: SlackApi) -> None:
    api.world.code_channels.add(CHANNEL)


async def words(storage: Storage, **keys: str) -> list[str]:
    of_channel = {"transport": "slack", "team_id": "T0001", "channel_id": CHANNEL}
    context = await AgentContext.get_or_create(storage, of_channel | keys)
    return [message.text for message in await context.chat_history.messages()]


async def test_every_message_is_answered_in_the_channel_without_a_mention(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        for text in ("migrate the job", f"<@{BOT_USER}> and now?"):
            before = len(api.said(CHANNEL))
            api.person_says(text, channel=CHANNEL)
            await api.until(lambda before=before: len(api.said(CHANNEL)) > before)
    assert all(each.thread_ts is None for each in api.bot_posts(CHANNEL))
    assert await words(sqlite_storage) == [
        "migrate the job",
        "You said: migrate the job",
        "and now?",
        "You said: and now?",
    ]
    assert len(api.calls("conversations.info")) == 1


async def test_its_session_has_no_thread(api: SlackApi, bot_on, typist: Any) -> None:
    async with bot_on(api, typist):
        api.person_says("migrate the job", channel=CHANNEL)
        await api.until(lambda: (CHANNEL, None, "processing") in api.world.statuses)
        typist.write("done")
        typist.finish()
        await api.until(lambda: api.said(CHANNEL) == ["done"])
        await api.until(lambda: (CHANNEL, None, "active") in api.world.statuses)


async def test_the_stop_button_stops_what_runs_there(api: SlackApi, bot_on, typist: Any) -> None:
    async with bot_on(api, typist):
        api.person_says("migrate the job", channel=CHANNEL)
        await api.until(lambda: typist.prompts)
        typist.write("half of")
        await api.until(typist.pieces.empty)
        api.send_event({"type": "agent_session_stopped", "channel": CHANNEL, "user": "U0ALICE"})
        await api.until(lambda: api.said(CHANNEL) == ["half of"])


async def test_a_thread_there_is_a_conversation_of_its_own(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        ts = api.person_says("migrate the job", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL))
        api.person_says("a detail", channel=CHANNEL, thread_ts=ts)
        await api.until(lambda: len(api.said(CHANNEL)) == 2)
    assert [each.thread_ts for each in api.bot_posts(CHANNEL)] == [None, ts]
    assert (await words(sqlite_storage, thread_ts=ts))[-1] == "You said: a detail"


async def test_what_names_somebody_else_is_theirs(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.person_says("<@U0BOB> what do you think?", channel=CHANNEL)
        api.person_says("go on", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL))
    assert len(api.said(CHANNEL)) == 1


async def test_where_slack_does_not_say_it_is_an_ordinary_channel(api: SlackApi, bot_on) -> None:
    api.order(Refuse("missing_scope"), "conversations.info", times=None)
    async with bot_on(api):
        api.person_says("hello?", channel=CHANNEL)
        api.person_says(f"<@{BOT_USER}> hello", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL))
    assert api.said(CHANNEL) == ["You said: hello"]
