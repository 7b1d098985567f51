"""Buttons under answers: whoever was asked presses one, once, and has said what stands behind it."""

from typing import Any

import pytest
from sqlalchemy import select
from standins.slack_api import BOT_USER, Drop, Hang, LoseAnswer, Refuse, SlackApi
from standins.slack_api.mrkdwn import read_mrkdwn

from botservice import Button, Storage, Tool, ToolCall
from botservice.background.queries import delete_buttons
from botservice.storage.tables.conversations import messages

CHANNEL = "C0GENERAL"
SAID = "Which one, tea & cake or <tea>?"


async def offer() -> list:
    """Offer a choice."""
    return ["Sizes.", Button("Small"), Button("Large", "I take size L"), Button("Sizes", url="https://x.org/s")]


OFFER = Tool(offer)


def script(prompt: list[Any]) -> str | ToolCall:
    """Offer when asked to, and otherwise repeat what was said."""
    last = prompt[-1]
    if last["role"] == "tool":
        return SAID
    return ToolCall("1", "offer", {}) if "choose" in last["content"] else f"You said: {last['content']}"


def buttons(post) -> dict[str, dict]:
    """Return what may be pressed under a message, by what stands on it."""
    rows = [block["elements"] for block in post.blocks if block["type"] == "actions"]
    return {each["text"]["text"]: each for row in rows for each in row}


def chosen(post) -> list[str]:
    """Return what is shown of a choice."""
    return [block["text"]["text"] for block in post.blocks if block["type"] == "section"]


async def asked(api: SlackApi, channel: str = CHANNEL):
    """Have Alice ask for a choice, and return the message that offers it."""
    api.person_says(f"<@{BOT_USER}> let me choose" if channel == CHANNEL else "let me choose", channel=channel)
    return (await api.until(lambda: [each for each in api.bot_posts(channel) if buttons(each)]))[0]


async def said(storage: Storage) -> list[str]:
    query = select(messages.c.text).where(messages.c.role == "user").order_by(messages.c.position)
    return await storage.read(lambda connection: list(connection.execute(query).scalars()))


async def test_the_first_press_counts_and_shows_what_was_chosen(api: SlackApi, bot_on_both, storage: Storage) -> None:
    async with bot_on_both(api, script, tools=[OFFER]):
        post = await asked(api)
        offered = buttons(post)
        assert [*offered] == ["Small", "Large", "Sizes"]
        assert offered["Sizes"]["url"] == "https://x.org/s"
        api.press(post, offered["Large"])
        api.press(post, offered["Large"])
        await api.until(lambda: chosen(post) == ["✓ Large"])
        api.press(post, offered["Small"])
        await api.all_taken()
        await api.until(lambda: api.said(CHANNEL)[1:] == ["You said: I take size L"])
        assert [*buttons(post)] == ["Sizes"]
        assert post.shown == SAID
        assert post.blocks[-1]["type"] == "context_actions", "what people think of the answer can still be said"
        api.person_says("bye", channel=CHANNEL, thread_ts=post.thread_ts)
        await api.until(lambda: "You said: bye" in api.said(CHANNEL))
    assert await said(storage) == ["let me choose", "I take size L", "bye"]
    assert {each.thread_ts for each in api.bot_posts(CHANNEL)} == {post.thread_ts}
    assert api.world.responses == []


async def test_in_a_channel_only_who_asked_may_choose(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        post = await asked(api)
        offered = buttons(post)
        api.press(post, offered["Large"], user="U0BOB")
        where, body = (await api.until(lambda: api.world.responses))[0]
        assert (where, body["text"]) == ("pressed", "Diese Buttons sind nur für die Person, die gefragt hat.")
        assert (body["response_type"], body["replace_original"]) == ("ephemeral", False)
        assert body["thread_ts"] == post.thread_ts
        assert buttons(post) == offered
        api.press(post, offered["Small"])
        await api.until(lambda: "You said: Small" in api.said(CHANNEL))
        await api.until(lambda: chosen(post) == ["✓ Small"])
    assert await said(sqlite_storage) == ["let me choose", "Small"]


async def test_a_choice_has_slack_fetch_nothing_that_an_answer_names(api: SlackApi, bot_on) -> None:
    def naming(prompt: list[Any]) -> str | ToolCall:
        return "See https://evil.example/?q=secret" if prompt[-1]["role"] == "tool" else script(prompt)

    async with bot_on(api, naming, tools=[OFFER]):
        post = await asked(api)
        api.press(post, buttons(post)["Large"])
        await api.until(lambda: "You said: I take size L" in api.said(CHANNEL))
        api.press(post, buttons(post)["Small"])
        await api.all_taken()
    assert api.said(CHANNEL).count("You said: I take size L") == 1
    assert "You said: Small" not in api.said(CHANNEL)
    assert api.world.fetched == []


async def test_a_table_stands_there_once_after_a_choice(api: SlackApi, bot_on) -> None:
    def tabling(prompt: list[Any]) -> str | ToolCall:
        return "| a | b |\n|---|---|\n| 1 | 2 |" if prompt[-1]["role"] == "tool" else script(prompt)

    async with bot_on(api, tabling, tools=[OFFER]):
        post = await asked(api)
        kinds = [block["type"] for block in post.blocks]
        api.press(post, buttons(post)["Large"])
        await api.until(lambda: chosen(post) == ["✓ Large"])
        assert [block["type"] for block in post.blocks if block["type"] != "section"] == kinds


async def test_in_a_direct_conversation_a_choice_is_shown_as_well(api: SlackApi, bot_on) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        post = await asked(api, "D0ALICE")
        api.press(post, buttons(post)["Large"])
        await api.until(lambda: "You said: I take size L" in api.said())
        await api.until(lambda: chosen(post) == ["✓ Large"])


async def test_two_processes_take_one_press(api: SlackApi, bot_on_both, storage: Storage) -> None:
    async with bot_on_both(api, script, tools=[OFFER]):
        first_url = api.events.http_url
        async with bot_on_both(api, script, tools=[OFFER]):
            post = await asked(api)
            offered = buttons(post)
            api.press(post, offered["Small"])
            api.events.http_url = first_url
            api.press(post, offered["Large"])
            await api.all_taken()
            await api.until(lambda: chosen(post) and len(api.said(CHANNEL)) == 2)
            api.person_says("bye", channel=CHANNEL, thread_ts=post.thread_ts)
            await api.until(lambda: "You said: bye" in api.said(CHANNEL))
    counted = await said(storage)
    assert counted[1:] in (["Small", "bye"], ["I take size L", "bye"])
    assert chosen(post) == ["✓ Small" if "Small" in counted else "✓ Large"]


async def test_a_choice_that_was_not_shown_counts_and_is_shown_at_the_next_press(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        post = await asked(api)
        offered = buttons(post)
        order = api.order(Drop(), "chat.update")
        api.press(post, offered["Large"])
        await api.until(lambda: order.used and "You said: I take size L" in api.said(CHANNEL))
        assert buttons(post) == offered
    async with bot_on(api, script, tools=[OFFER]):
        api.press(post, offered["Small"])
        await api.until(lambda: chosen(post) == ["✓ Large"])
    assert await said(sqlite_storage) == ["let me choose", "I take size L"]


async def test_where_slack_refuses_the_blocks_the_choice_is_shown_in_words(api: SlackApi, bot_on) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        post = await asked(api)
        api.order(Refuse("invalid_blocks"), "chat.update")
        api.press(post, buttons(post)["Small"])
        await api.until(lambda: post.shown.endswith("\n\n✓ Small"))
    assert buttons(post) == {}


async def test_a_message_that_grew_keeps_its_words(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist, tools=[OFFER]):
        api.person_says(f"<@{BOT_USER}> let me choose", channel=CHANNEL)
        typist.write(ToolCall("1", "offer"))
        typist.write(SAID)
        await api.until(lambda: any(SAID in each.shown for each in api.world.posts))
        typist.finish()
        post = (await api.until(lambda: [each for each in api.bot_posts(CHANNEL) if buttons(each)]))[0]
        api.press(post, buttons(post)["Small"])
        await api.until(lambda: chosen(post) == ["✓ Small"])
        assert post.blocks[0] == {"type": "markdown", "text": SAID.replace("<", "\\<")}
        typist.write("ok")
        typist.finish()
        await api.until(lambda: "ok" in api.said(CHANNEL))


async def test_nobody_presses_before_it_is_known_who_was_asked(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        api.order(LoseAnswer(), "chat.postMessage")
        asking = api.order(Hang(), "conversations.replies")
        post = await asked(api)
        offered = buttons(post)
        api.press(post, offered["Small"], user="U0BOB")
        await api.until(lambda: [each for each in api.events.tries if each.kind == "interactive"])
        assert [each.status for each in api.events.tries if each.kind == "interactive"] == [503]
        asking.release()
        api.press(post, offered["Large"])
        await api.until(lambda: "You said: I take size L" in api.said(CHANNEL))
    assert await said(sqlite_storage) == ["let me choose", "I take size L"]


async def test_old_buttons_may_be_pressed_while_new_ones_are_on_their_way(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        post = await asked(api)
        await sqlite_storage.write(lambda connection: delete_buttons(connection, sqlite_storage.now()))
        sending = api.order(Hang(), "chat.postMessage")
        api.person_says("let me choose again", channel=CHANNEL, thread_ts=post.thread_ts)
        await api.until(lambda: sending.used)
        api.press(post, buttons(post)["Large"])
        await api.until(lambda: [each for each in api.events.tries if each.kind == "interactive"])
        assert [each.status for each in api.events.tries if each.kind == "interactive"] == [200]
        sending.release()
        await api.until(lambda: "You said: I take size L" in api.said(CHANNEL))


async def test_where_only_the_asker_sees_the_buttons_only_they_see_the_answer(api: SlackApi, bot_on) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        api.command("let me choose", channel="C0OTHER")
        _, body = (await api.until(lambda: api.world.responses))[0]
        row = next(block for block in body["blocks"] if block["type"] == "actions")
        for place in (1, 1, 0):
            api.interact(
                "block_actions",
                actions=[{**row["elements"][place], "action_ts": api.world.next_ts()}],
                channel={"id": "C0OTHER", "name": "other"},
                container={"type": "message", "message_ts": "1.000001", "channel_id": "C0OTHER", "is_ephemeral": True},
                response_url=f"{api.base}/response/pressed",
            )
        await api.until(lambda: len(api.world.responses) == 2)
        await api.all_taken()
        api.command("bye", channel="C0OTHER")
        await api.until(lambda: len(api.world.responses) >= 3)
    said = [read_mrkdwn(each["text"]) for _, each in api.world.responses]
    assert said == [SAID, "You said: I take size L", "You said: bye"]
    assert api.world.responses[1][0] == "pressed"
    assert api.said("C0OTHER") == api.said() == []


@pytest.mark.parametrize("wrong", [{"action_id": "say"}, {"action_id": "say:0", "value": " "}, {"action_id": "other"}])
async def test_what_says_nothing_is_stored_nowhere(
    api: SlackApi, bot_on, sqlite_storage: Storage, wrong: dict[str, str]
) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        post = await asked(api)
        api.press(post, {**buttons(post)["Small"], **wrong})
        await api.all_taken()
        api.press(post, buttons(post)["Large"])
        await api.until(lambda: "You said: I take size L" in api.said(CHANNEL))
    assert await said(sqlite_storage) == ["let me choose", "I take size L"]
