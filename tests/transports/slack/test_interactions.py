"""Commands, dialogs, buttons and pages: what people do in Slack besides writing."""

import json
import re
from datetime import UTC, datetime

from sqlalchemy import select
from standins.slack_api import BOT_USER, LoseAnswer, Refuse, SlackApi

from botservice import Storage, ToolCall
from botservice.agent.remembering import remember
from botservice.core.messages import Author
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import contexts
from botservice.storage.tables.services import feedback
from botservice.turns.turn import StoredEvent
from transports.slack.inbound_events import EventSource, raw
from transports.slack.interactions import ASK_ANYTHING, ASK_CALLBACK, QUESTION_BLOCK, QUESTION_INPUT


async def context_keys(storage: Storage) -> list[dict[str, str]]:
    return await storage.read(lambda connection: list(connection.execute(select(contexts.c.context_keys)).scalars()))


def element(post, kind: str) -> dict:
    return next(block["elements"][0] for block in post.blocks if block["type"] == kind)


async def test_a_command_is_answered_where_only_the_asker_sees_it(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        name = api.command("what is up?", channel="C0OTHER")
        (where, body) = (await api.until(lambda: api.world.responses))[0]
    assert (where, body["text"], body["response_type"]) == (name, "You said: what is up?", "ephemeral")
    assert api.said("C0OTHER") == api.said() == []
    assert (await context_keys(sqlite_storage))[0]["channel_id"] == "D0ALICE"


async def test_a_command_in_the_direct_channel_is_answered_there(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.command("what is up?", channel="D0ALICE")
        await api.until(api.said)
    assert api.said() == ["You said: what is up?"]
    assert api.world.responses == []


async def test_a_command_whose_address_has_expired_is_answered_directly(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.order(Refuse("expired_url"), "response_url", times=None)
        api.command("what is up?", channel="C0OTHER")
        await api.until(api.said)
    assert api.said() == ["You said: what is up?"]


async def test_service_commands_pass_through_the_slash_command_and_direct_messages(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        api.command("help")
        help_text = (await api.until(lambda: api.world.responses))[0][1]["text"]
        api.person_says("!help")
        await api.until(lambda: len(api.said()) == 1)
        api.person_says("/help")
        await api.until(lambda: len(api.said()) == 2)
        api.person_says("!important: buy milk")
        await api.until(lambda: len(api.said()) == 3)
        assert len(bot.llm.prompts) == 1
    assert "!help" in help_text
    assert not re.search(r"(?<!\S)/\w", help_text), "Slack keeps what begins with / for itself"
    assert api.said()[0] == api.said()[1]
    assert api.said()[2] == "You said: !important: buy milk"
    assert not any(block["type"] == "context_actions" for block in api.bot_posts()[0].blocks)


async def test_a_question_is_not_taken_for_a_command(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        for text, name in (
            ("why is the sky blue?", None),
            ("new idea: a dog", None),
            ("why", "why"),
            ("/why now", "why"),
            ("memory delete 3", "memory"),
            ("", "help"),
        ):
            body = {"user_id": "U0ALICE", "team_id": "T0001", "text": text, "channel_id": "C1", "trigger_id": "t1"}
            event = StoredEvent(1, "k", raw(EventSource.COMMAND, body, channel="D0ALICE"), datetime.now(UTC))
            message = await bot.transport.read(event)
            assert message is not None
            assert (message.command.name if message.command else None) == name, text


async def test_a_command_that_cannot_be_placed_says_so(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.order(Refuse("missing_scope"), "conversations.open")
        api.command("what is up?")
        await api.until(lambda: api.events.tries)
    assert api.events.tries[0].status == 503


async def test_a_question_about_a_message_is_answered_privately(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        ts = api.person_says("The launch is on 4 May &amp; we are late", channel="C0OTHER", user="U0BOB", deliver=False)
        api.interact(
            "message_action",
            callback_id=ASK_CALLBACK,
            message={"type": "message", "user": "U0BOB", "ts": ts, "text": "The launch is on 4 May &amp; we are late"},
            channel={"id": "C0OTHER", "name": "other"},
            response_url=f"{api.base}/response/asked",
        )
        modal = (await api.until(lambda: api.world.modals))[0]
        view = modal | {"state": {"values": {QUESTION_BLOCK: {QUESTION_INPUT: {"value": "When is it?"}}}}}
        api.interact("view_submission", view=view, retries=True)
        where, body = (await api.until(lambda: api.world.responses))[0]
        prompt = str(bot.llm.prompts[-1])
    assert where == "asked"
    assert "When is it?" in body["text"]
    assert "Bob" in prompt
    assert "The launch is on 4 May & we are late" in prompt
    assert api.said("C0OTHER") == []


async def test_a_question_from_the_menu_is_answered_in_the_direct_conversation(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        api.interact("shortcut", callback_id=ASK_ANYTHING)
        modal = (await api.until(lambda: api.world.modals))[0]
        assert modal["title"]["text"] == "Ask a question"
        view = modal | {"state": {"values": {QUESTION_BLOCK: {QUESTION_INPUT: {"value": "When is it?"}}}}}
        api.interact("view_submission", view=view, retries=True)
        await api.until(api.said)
        assert "about" not in str(bot.llm.prompts[-1][-1]["content"])
    assert api.said() == ["You said: When is it?"]
    assert api.world.responses == []


async def test_what_people_think_of_an_answer_is_stored_with_its_turn(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async def verdicts() -> list[tuple[str, str]]:
        query = select(feedback.c.person_id, feedback.c.verdict).order_by(feedback.c.person_id)
        return await sqlite_storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])

    async with bot_on(api):
        api.person_says(f"<@{BOT_USER}> hello", channel="C0GENERAL")
        post = (await api.until(lambda: api.bot_posts("C0GENERAL")))[0]
        buttons = element(post, "context_actions")
        good, bad = buttons["positive_button"]["value"], buttons["negative_button"]["value"]
        pressed = [("U0ALICE", good), ("U0BOB", bad), ("U0ALICE", bad), ("U0BOB", "good:999"), ("U0BOB", "nonsense")]
        for number, (user, value) in enumerate(pressed, start=2):
            api.press(post, buttons, user=user, value=value)
            await api.until(lambda number=number: len(api.events.tries) > number)
    assert {each.status for each in api.events.tries} == {200}
    assert await verdicts() == [("T0001:U0ALICE", "bad"), ("T0001:U0BOB", "bad")]


async def test_feedback_from_another_workspace_is_not_believed(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        api.person_says("hello")
        post = (await api.until(api.bot_posts))[0]
        buttons = element(post, "context_actions")
        body = api.interact(
            "block_actions",
            actions=[{**buttons, "value": buttons["positive_button"]["value"], "action_ts": "1.1"}],
            channel={"id": "D0ALICE"},
        )
        await api.until(lambda: len(api.events.tries) == 2)
        api.events.send("interactive", body | {"team": {"id": "T9"}})
        await api.until(lambda: len(api.events.tries) == 3)
    rows = await sqlite_storage.read(lambda connection: list(connection.execute(select(feedback.c.person_id))))
    assert len(rows) == 1


async def test_a_page_shows_what_is_kept_of_a_person(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.send_event({"type": "app_home_opened", "user": "U0ALICE", "tab": "home", "event_ts": "1.1"})
        view = await api.until(lambda: api.world.views.get("U0ALICE"))
        assert "Nothing yet" in json.dumps(view)
        api.person_says("hello")
        await api.until(api.said)
        del api.world.views["U0ALICE"]
        api.send_event({"type": "app_home_opened", "user": "U0ALICE", "tab": "home", "event_ts": "2.2"})
        view = json.dumps(await api.until(lambda: api.world.views.get("U0ALICE")))
    assert "*1* message from you in *1* conversation since" in view


async def test_a_page_shows_what_is_known_of_a_person(api: SlackApi, bot_on) -> None:
    script = [ToolCall("1", "remember", {"topic": "drink", "text": "I like <tea> & cake"}), "noted"]
    async with bot_on(api, script, tools=[remember]):
        api.person_says("I like <tea> & cake".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
        await api.until(api.said)
        api.send_event({"type": "app_home_opened", "user": "U0ALICE", "tab": "home", "event_ts": "1.1"})
        view = json.dumps(await api.until(lambda: api.world.views.get("U0ALICE")))
    assert "I like &lt;tea&gt; &amp; cake" in view


async def test_who_is_forgotten_leaves_no_opinion(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        api.person_says(f"<@{BOT_USER}> hello", channel="C0GENERAL")
        post = (await api.until(lambda: api.bot_posts("C0GENERAL")))[0]
        buttons = element(post, "context_actions")
        for user in ("U0ALICE", "U0BOB"):
            api.press(post, buttons, user=user, value=buttons["positive_button"]["value"])
        await api.until(lambda: len(api.events.tries) == 4)
    query = select(feedback.c.person_id)
    await forget_person(sqlite_storage, Author("slack", "T0001:U0ALICE"))
    left = await sqlite_storage.read(lambda connection: list(connection.execute(query).scalars()))
    assert "U0ALICE" not in left


async def test_an_answer_where_only_the_asker_sees_it_is_tried_again(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.order(LoseAnswer(), "conversations.open")
        api.command("one")
        await api.until(lambda: api.events.tries)
        api.command("two")
        await api.until(lambda: api.world.responses)
    assert api.world.responses[0][1]["text"] == "You said: two"


async def test_in_a_channel_what_concerns_one_person_is_read_by_them_alone(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        ts = api.person_says(f"<@{BOT_USER}> !memory", channel="C0GENERAL")
        await api.until(lambda: api.world.whispers)
        api.person_says(f"<@{BOT_USER}> !help", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: api.said("C0GENERAL"))
    ((channel, user, _),) = api.world.whispers
    assert (channel, user) == ("C0GENERAL", "U0ALICE")
    assert api.calls("chat.postEphemeral")[0]["thread_ts"] == ts
    assert [block["type"] for block in api.calls("chat.postEphemeral")[0]["blocks"]] == ["rich_text"]
    assert len(api.said("C0GENERAL")) == 1, "help is for everybody"
    assert "!help" in api.said("C0GENERAL")[0]
