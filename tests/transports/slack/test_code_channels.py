"""Code channels: one channel for one task, in which every message is for the bot and is answered in the channel."""

from typing import Any

import pytest
from standins.payments import Till, cashier
from standins.slack_api import BOT_USER, Refuse, SlackApi

from botservice import AgentContext, Button, Storage, Tool, ToolCall

CHANNEL = "C0GENERAL"


@pytest.fixture(autouse=True)
def code_channel(api: SlackApi) -> None:
    api.world.code_channels[CHANNEL] = ["U0OTHERBOT", BOT_USER]


async def offer() -> list:
    """Offer a choice."""
    return ["Sizes.", Button("Small"), Button("Large", "I take size L")]


def buttons(post: Any) -> dict[str, dict[str, Any]]:
    rows = [block["elements"] for block in post.blocks if block["type"] == "actions"]
    return {each["text"]["text"]: each for row in rows for each in row}


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


async def test_the_answer_grows_in_the_channel(api: SlackApi, bot_on, typist: Any) -> None:
    async with bot_on(api, typist):
        api.person_says("migrate the job", channel=CHANNEL)
        await api.until(lambda: typist.prompts)
        typist.write("half of the answer. ")
        await api.until(lambda: any(each.is_streaming for each in api.world.posts))
        typist.write("And the rest.")
        typist.finish()
        await api.until(lambda: api.said(CHANNEL) == ["half of the answer. And the rest."])
        await api.until(lambda: (CHANNEL, None, "active") in api.world.statuses)
    assert [each.thread_ts for each in api.bot_posts(CHANNEL)] == [None]


async def test_where_slack_streams_in_threads_alone_the_answer_comes_in_one_piece(
    api: SlackApi, bot_on, typist: Any
) -> None:
    api.world.without.add("top-level streams")
    async with bot_on(api, typist):
        for number in (1, 2):
            api.person_says("migrate the job", channel=CHANNEL)
            await api.until(lambda number=number: len(typist.prompts) == number)
            typist.write("the answer")
            await api.until(lambda: api.calls("chat.startStream"))
            typist.finish()
            await api.until(lambda number=number: len(api.said(CHANNEL)) == number)
            await api.until(lambda: (CHANNEL, None, "active") in api.world.statuses)
    assert len(api.calls("chat.startStream")) == 1


async def test_a_choice_goes_on_in_the_channel(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    def script(prompt: list[Any]) -> str | ToolCall:
        last = prompt[-1]
        if last["role"] == "tool":
            return "Which one?"
        return ToolCall("1", "offer", {}) if "choose" in last["content"] else f"You said: {last['content']}"

    async with bot_on(api, script, tools=[Tool(offer)]):
        api.person_says("let me choose", channel=CHANNEL)
        post = (await api.until(lambda: [each for each in api.bot_posts(CHANNEL) if buttons(each)]))[0]
        api.press(post, buttons(post)["Large"])
        await api.until(lambda: api.said(CHANNEL)[1:] == ["You said: I take size L"])
    assert [each.thread_ts for each in api.bot_posts(CHANNEL)] == [None, None]
    assert (await words(sqlite_storage))[-1] == "You said: I take size L"


async def test_while_a_tool_waits_for_a_decision_its_session_is_suspended(api: SlackApi, bot_on) -> None:
    till = Till()
    async with bot_on(api, cashier(), tools=till.tools):
        api.person_says("pay her", channel=CHANNEL)
        question = (await api.until(lambda: [each for each in api.bot_posts(CHANNEL) if buttons(each)]))[0]
        await api.until(lambda: (CHANNEL, None, "suspended") in api.world.statuses)
        api.press(question, buttons(question)["Allow"])
        await api.until(lambda: "paid 5 to Anna" in api.said(CHANNEL)[-1])
        await api.until(lambda: api.world.statuses[-1] == (CHANNEL, None, "active"))
    assert till.paid == [("Anna", 5)]
    assert {each.thread_ts for each in api.bot_posts(CHANNEL)} == {None}


async def test_a_code_channel_of_another_agent_is_an_ordinary_channel(api: SlackApi, bot_on) -> None:
    api.world.code_channels[CHANNEL] = ["U0OTHERBOT"]
    async with bot_on(api):
        api.person_says("migrate the job", channel=CHANNEL)
        ts = api.person_says(f"<@{BOT_USER}> what do you think?", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL))
    assert [(each.shown, each.thread_ts) for each in api.bot_posts(CHANNEL)] == [("You said: what do you think?", ts)]


async def test_an_agent_that_is_added_to_a_code_channel_answers_there_at_once(api: SlackApi, bot_on) -> None:
    api.world.code_channels[CHANNEL] = ["U0OTHERBOT"]
    async with bot_on(api):
        api.person_says("migrate the job", channel=CHANNEL)
        await api.all_taken()
        api.world.code_channels[CHANNEL].append(BOT_USER)
        api.send_event({"type": "member_joined_channel", "channel": CHANNEL, "user": BOT_USER, "team": "T0001"})
        await api.all_taken()
        api.person_says("and now?", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL) == ["You said: and now?"])
