"""What people write comes in once, is answered once, in its place, whichever way Slack delivers it."""

import itertools
import json
import time

import httpx
import pytest
from sqlalchemy import text
from standins.slack_api import BOT_USER, TEAM, Hang, SlackApi
from standins.slack_api.world import Post

from botservice import AgentContext, Storage
from botservice.config.setting_choices import SlackListen
from botservice.core.errors import StorageUnavailable
from transports.slack.context import Manners

MENTION = f"<@{BOT_USER}>"


async def rows(storage: Storage, query: str) -> list:
    return await storage.read(lambda connection: list(connection.execute(text(query)).scalars()))


async def keys(storage: Storage) -> list[dict[str, str]]:
    return [json.loads(each) for each in await rows(storage, "SELECT context_keys FROM contexts ORDER BY id")]


async def post(api: SlackApi, url: str, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    signed = api.events.sign(body) | {"content-type": "application/json"} if headers is None else headers
    async with httpx.AsyncClient(verify=False) as client:
        return await client.post(f"{url}/slack/events", content=body, headers=signed)


@pytest.mark.parametrize("way", ["http", "socket"])
async def test_a_direct_message_is_answered_in_its_thread(api: SlackApi, bot_on, way: str) -> None:
    async with bot_on(api, way=way):
        ts = api.person_says("hello")
        await api.until(api.said)
    assert api.said() == ["You said: hello"]
    assert api.bot_posts()[0].thread_ts == ts


@pytest.mark.parametrize("way", ["http", "socket"])
async def test_a_mention_that_comes_twice_is_answered_once_in_a_thread(
    api: SlackApi, bot_on, sqlite_storage: Storage, way: str
) -> None:
    async with bot_on(api, way=way):
        ts = api.person_says(f"{MENTION} what is up?", channel="C0GENERAL")
        await api.until(lambda: len(api.events.tries) == 2 and api.said("C0GENERAL"))
        api.person_says(f"{MENTION} and now?", channel="C0GENERAL")
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
    assert api.said("C0GENERAL") == ["You said: what is up?", "You said: and now?"]
    assert api.bot_posts("C0GENERAL")[0].thread_ts == ts
    assert len(await rows(sqlite_storage, "SELECT id FROM events")) == 2
    channel = {"transport": "slack", "team_id": TEAM, "channel_id": "C0GENERAL"}
    assert (await keys(sqlite_storage))[0] == channel | {"thread_ts": ts}


@pytest.mark.parametrize("first", ["message", "app_mention"])
async def test_whether_the_bot_is_meant_does_not_depend_on_what_came_first(api: SlackApi, bot_on, first: str) -> None:
    async with bot_on(api):
        ts = api.person_says(f"{MENTION} hi", channel="C0GENERAL", deliver=False)
        event = api.message_event(api.world.find("C0GENERAL", ts))
        kinds = [first, "app_mention" if first == "message" else "message"]
        for number, kind in enumerate(kinds, start=1):
            api.send_event({**event, "type": kind})
            await api.until(lambda number=number: len(api.events.tries) == number)
        await api.until(lambda: api.said("C0GENERAL"))
    assert api.said("C0GENERAL") == ["You said: hi"]


async def test_a_thread_goes_on_without_a_new_mention_for_whoever_asked(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api) as bot:
        ts = api.person_says(f"{MENTION} hi", channel="C0GENERAL")
        await api.until(lambda: len(api.said("C0GENERAL")) == 1)
        api.person_says("I like tea", channel="C0GENERAL", user="U0BOB", thread_ts=ts)
        api.person_says("<@U0ALICE> and you?", channel="C0GENERAL", user="U0BOB", thread_ts=ts)
        await api.until(lambda: len(api.events.tries) == 4)
        api.person_says("what does Bob like?", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
        prompt = str(bot.llm.prompts[-1])
    assert api.said("C0GENERAL") == ["You said: hi", "You said: Alice: what does Bob like?"]
    assert "I like tea" in prompt
    assert "Bob" in prompt
    assert "@Alice and you?" in prompt
    assert len(await keys(sqlite_storage)) == 1


async def test_two_people_of_one_name_are_told_apart(api: SlackApi, bot_on) -> None:
    api.world.users["U0ALICE2"] = {**api.world.users["U0ALICE"], "id": "U0ALICE2", "name": "alice2"}
    api.world.channels["C0GENERAL"].add("U0ALICE2")
    async with bot_on(api) as bot:
        ts = api.person_says(f"{MENTION} I am allergic to nuts", channel="C0GENERAL")
        await api.until(lambda: len(api.said("C0GENERAL")) == 1)
        api.person_says(f"{MENTION} am I?", channel="C0GENERAL", user="U0ALICE2", thread_ts=ts)
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
    said = [each["content"].partition(": ") for each in bot.llm.prompts[-1] if each["role"] == "user"]
    assert [text for _, _, text in said] == ["I am allergic to nuts", "am I?"]
    assert said[0][0] != said[1][0]
    assert all(label.startswith("Alice [") for label, _, _ in said)


async def test_a_mention_in_the_middle_of_a_thread_brings_its_beginning(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        parent = api.person_says("The server is down", channel="C0GENERAL", user="U0BOB")
        api.person_says("Since when?", channel="C0GENERAL", thread_ts=parent)
        api.person_says("An hour", channel="C0GENERAL", user="U0BOB", thread_ts=parent)
        await api.all_taken()  # or one may come behind the mention
        api.person_says(f"{MENTION} what is down?", channel="C0GENERAL", thread_ts=parent)
        await api.until(lambda: api.said("C0GENERAL"))
    context = await AgentContext.get_or_create(
        sqlite_storage, {"transport": "slack", "team_id": TEAM, "channel_id": "C0GENERAL", "thread_ts": parent}
    )
    history = await context.chat_history.messages()
    assert [(message.author.name if message.author else None, message.text) for message in history] == [
        ("Bob", "The server is down"),
        ("Alice", "Since when?"),
        ("Bob", "An hour"),
        ("Alice", "what is down?"),
        (None, "You said: Alice: what is down?"),
    ]


async def test_a_mention_brings_what_was_said_before_also_where_the_last_of_it_is_delivered_after_it(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api) as bot:
        await bot.worker.stop(grace_seconds=5)
        parent = api.person_says("The server is down", channel="C0GENERAL", user="U0BOB")
        late = api.person_says("An hour", channel="C0GENERAL", user="U0BOB", thread_ts=parent, deliver=False)
        await api.all_taken()
        api.person_says(f"{MENTION} what is down?", channel="C0GENERAL", thread_ts=parent)
        await api.all_taken()
        api.send_event(api.message_event(api.world.find("C0GENERAL", late)))
        await api.all_taken()
    assert len(await rows(sqlite_storage, "SELECT id FROM events")) == 2
    async with bot_on(api):
        await api.until(lambda: api.said("C0GENERAL"))
    [keys_of_thread] = await keys(sqlite_storage)
    history = await (await AgentContext.get_or_create(sqlite_storage, keys_of_thread)).chat_history.messages()
    assert sorted(message.text for message in history) == [
        "An hour",
        "The server is down",
        "You said: Alice: what is down?",
        "what is down?",
    ]
    assert history[-2].text == "what is down?"


async def test_channels_are_not_listened_to_unless_that_is_wanted(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        ts = api.person_says("nobody is meant", channel="C0GENERAL")
        api.person_says("in a thread", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: len(api.events.tries) == 2)
    assert await rows(sqlite_storage, "SELECT id FROM events") == []
    async with bot_on(api, manners=Manners(listening=SlackListen.CHANNELS)) as bot:
        api.person_says("the code is 7", channel="C0GENERAL")
        await api.until(lambda: len(api.events.tries) == 3)
        assert bot.llm.prompts == []
    assert await keys(sqlite_storage) == [{"transport": "slack", "team_id": TEAM, "channel_id": "C0GENERAL"}]
    assert api.said("C0GENERAL") == []


async def test_a_direct_channel_is_one_conversation_whatever_thread_inside_it(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        ts = api.person_says("one")
        await api.until(api.said)
        reply = api.person_says("two", thread_ts=ts)
        await api.until(lambda: len(api.said()) == 2)
    assert await keys(sqlite_storage) == [{"transport": "slack", "team_id": TEAM, "channel_id": "D0ALICE"}]
    assert [each.thread_ts for each in api.bot_posts()] == [ts, ts]
    assert reply != ts


async def test_a_message_that_is_delivered_again_and_again_is_answered_once(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        ts = api.person_says("hello", deliver=False)
        event = api.message_event(api.world.find("D0ALICE", ts))
        for number in range(6):
            api.send_event(event, event_id="Ev1" if number < 4 else f"Ev{number}")
        await api.until(lambda: len(api.events.tries) == 6)
        api.person_says("bye")
        await api.until(lambda: len(api.said()) == 2)
        assert len(bot.llm.prompts) == 2
    assert all(each.status == 200 for each in api.events.tries)


@pytest.mark.parametrize(
    "change",
    [
        {"bot_id": "B1"},
        {"subtype": "bot_message", "bot_id": "B1"},
        {"subtype": "message_changed", "message": {"text": "new"}, "previous_message": {"text": "old"}},
        {"subtype": "message_deleted", "deleted_ts": "1.1"},
        {"subtype": "channel_join"},
        {"user": BOT_USER},
        {"hidden": True},
        {"user": None},
    ],
)
async def test_what_nobody_wrote_is_left_alone(api: SlackApi, bot_on, sqlite_storage: Storage, change: dict) -> None:
    async with bot_on(api):
        event = api.message_event(Post("D0ALICE", "1763640000.000001", "U0ALICE", "hello"), **change)
        api.send_event(event)
        await api.until(lambda: api.events.tries)
    assert [each.status for each in api.events.tries] == [200]
    assert await rows(sqlite_storage, "SELECT id FROM events") == []


async def test_events_that_nobody_asked_for_are_acknowledged(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        for kind in ("reaction_added", "team_join", "something_new", "app_home_opened"):
            api.send_event({"type": kind, "user": "U0ALICE", "event_ts": "1.1"})
        await api.until(lambda: len(api.events.tries) == 4)
    assert {each.status for each in api.events.tries} == {200}


async def test_a_new_address_is_verified(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        answer = await post(api, bot.url, b'{"type": "url_verification", "challenge": "abc", "token": "t"}')
    assert (answer.status_code, answer.json()) == (200, {"challenge": "abc"})


async def test_nothing_is_stored_without_a_signature(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api) as bot:
        event = api.message_event(Post("D0ALICE", "1763640000.000001", "U0ALICE", "hello"))
        body = json.dumps(api.envelope(event, "Ev1")).encode()
        right = api.events.sign(body)
        wrong = [
            {},
            right | {"X-Slack-Signature": "v0=" + "0" * 64},
            right | {"X-Slack-Signature": "ü"},
            right | {"X-Slack-Request-Timestamp": "yesterday"},
            api.events.sign(body, at=1_700_000_000),
            api.events.sign(body + b" "),
        ]
        for headers in wrong:
            encoded = {name: value.encode() for name, value in headers.items()}
            assert (await post(api, bot.url, body, encoded)).status_code == 401
    assert await rows(sqlite_storage, "SELECT id FROM events") == []


@pytest.mark.parametrize("way", ["http", "socket"])
async def test_a_database_that_fails_has_slack_deliver_again(
    api: SlackApi, bot_on, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    api.events.retry_seconds = (0.0, 0.05)
    if way == "socket":
        monkeypatch.setattr("standins.slack_api.events.ACK_SECONDS", 0.2)
    async with bot_on(api, way=way) as bot:
        accept, left = bot.inbox.accept, 3

        async def failing(transport, events):
            nonlocal left
            if left > 0:
                left -= 1
                raise StorageUnavailable("the disk is full")
            return await accept(transport, events)

        monkeypatch.setattr(bot.inbox, "accept", failing)
        api.person_says("hello")
        await api.until(api.said)
        await api.all_taken()
        statuses = [each.status for each in api.events.tries]
    assert statuses[:3] == [503 if way == "http" else None] * 3
    assert statuses[-1] == 200
    assert api.said() == ["You said: hello"]


async def test_slack_has_its_answer_while_the_model_thinks(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        api.person_says("hello")
        await api.until(lambda: api.events.tries)
        assert api.events.tries[0].status == 200
        typist.write("done")
        typist.finish()
        await api.until(api.said)
    assert api.said() == ["done"]


async def test_a_socket_that_slack_replaces_or_cuts_loses_nothing(api: SlackApi, bot_on) -> None:
    async with bot_on(api, way="socket") as bot:
        bot.transport._socket._ping_seconds = 0.2
        api.person_says("one")
        await api.until(lambda: len(api.said()) == 1)
        api.events.disconnect()
        await api.until(lambda: api.events.connections >= 2)
        api.person_says("two")
        await api.until(lambda: len(api.said()) == 2)
        api.events.cut()
        api.person_says("three")
        await api.until(lambda: len(api.said()) == 3)
    assert api.said() == ["You said: one", "You said: two", "You said: three"]


async def test_the_stop_button_ends_an_answer_and_keeps_what_was_said(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        ts = api.person_says(f"{MENTION} tell me a story", channel="C0GENERAL")
        typist.write("Once upon a time")
        await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
        api.send_event({"type": "agent_session_stopped", "channel": "C0GENERAL", "thread_ts": ts, "user": "U0ALICE"})
        await api.until(lambda: api.said("C0GENERAL"))
        await api.until(lambda: ("C0GENERAL", ts, "active") in api.world.statuses)
    assert api.said("C0GENERAL") == ["Once upon a time"]


async def test_workspaces_do_not_share_a_conversation(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        api.person_says("one")
        api.person_says("two", team="T0002")
        await api.until(lambda: len(api.said()) == 2)
    assert {each["team_id"] for each in await keys(sqlite_storage)} == {TEAM, "T0002"}


async def test_edits_and_deletions_change_the_history(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async def history() -> list[str]:
        return await rows(sqlite_storage, "SELECT text FROM messages WHERE role = 'user' ORDER BY position")

    async with bot_on(api, lambda _: "ok") as bot:
        first = api.person_says("my code is 1234")
        await api.until(lambda: len(api.said()) == 1)
        second = api.person_says("and my dog is Rex")
        await api.until(lambda: len(api.said()) == 2)
        changes = [
            api.changed_event("D0ALICE", first, "my code is secret"),
            api.changed_event("D0ALICE", first, "my code is secret"),  # a link was unfurled
            api.deleted_event("D0ALICE", second),
        ]
        for change in changes:
            api.send_event(change)
        await api.until(lambda: len(api.events.tries) == 5)
        api.person_says("what do you know?")
        await api.until(lambda: len(api.said()) == 3)
        prompt = str(bot.llm.prompts[-1])
    assert await history() == ["my code is secret", "what do you know?"]
    assert "1234" not in prompt
    assert "my dog is Rex" not in await history()


async def test_an_edit_in_a_thread_reaches_its_conversation_alone(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        ts = api.person_says(f"{MENTION} hi", channel="C0GENERAL")
        await api.until(lambda: api.said("C0GENERAL"))
        other = api.person_says("elsewhere", channel="C0GENERAL")
        api.send_event(api.changed_event("C0GENERAL", other, "nobody listens"))
        api.send_event(api.changed_event("C0GENERAL", ts, f"{MENTION} hello"))
        await api.all_taken()
        api.person_says(f"{MENTION} more", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
    assert await rows(sqlite_storage, "SELECT text FROM messages WHERE role = 'user' ORDER BY position") == [
        "hello",
        "more",
    ]
    assert len(await rows(sqlite_storage, "SELECT id FROM contexts")) == 1


async def test_what_followed_a_mention_that_came_late_is_not_lost(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    api.world._seconds = itertools.count(int(time.time()) - 100)
    async with bot_on(api):
        ts = api.person_says(f"{MENTION} what is up?", channel="C0GENERAL", deliver=False)
        api.person_says("I mean in Berlin", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: len(api.events.tries) == 1)
        api.send_event(api.message_event(api.world.find("C0GENERAL", ts)))
        await api.until(lambda: api.said("C0GENERAL"))
    said = await rows(sqlite_storage, "SELECT text FROM messages WHERE role = 'user' ORDER BY position")
    assert sorted(said) == ["I mean in Berlin", "what is up?"]


async def test_what_follows_a_mention_at_once_is_kept_once(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, lambda _: "ok"):
        parent = api.person_says("The server is down", channel="C0GENERAL", user="U0BOB")
        asking = api.order(Hang(), "conversations.replies")
        api.person_says(f"{MENTION} really?", channel="C0GENERAL", thread_ts=parent)
        await api.until(lambda: asking.used)
        api.person_says("since when?", channel="C0GENERAL", thread_ts=parent)
        await api.until(lambda: len(api.events.tries) == 4)
        asking.release()
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
    said = await rows(sqlite_storage, "SELECT text FROM messages WHERE role = 'user' ORDER BY position")
    assert said == ["The server is down", "really?", "since when?"]


async def test_a_conversation_in_a_thread_is_the_same_on_both_databases(
    api: SlackApi, bot_on_both, storage: Storage
) -> None:
    async with bot_on_both(api, lambda _: "ok"):
        ts = api.person_says(f"{MENTION} hi", channel="C0GENERAL")
        await api.until(lambda: len(api.said("C0GENERAL")) == 1)
        api.person_says("nothing", channel="C0GENERAL", user="U0BOB", thread_ts=ts)
        await api.until(lambda: len(api.events.tries) == 3)
        api.person_says("and now?", channel="C0GENERAL", thread_ts=ts)
        post = (await api.until(lambda: api.bot_posts("C0GENERAL")[1:]))[0]
        buttons = next(block["elements"][0] for block in post.blocks if block["type"] == "context_actions")
        api.press(post, buttons, value=buttons["positive_button"]["value"])
        api.send_event(api.changed_event("C0GENERAL", ts, f"{MENTION} hello"))
        api.send_event({"type": "app_home_opened", "user": "U0ALICE", "tab": "home", "event_ts": "1.1"})
        view = json.dumps(await api.until(lambda: api.world.views.get("U0ALICE")))
        await api.until(lambda: len(api.events.tries) == 7)
        api.person_says("bye", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: len(api.said("C0GENERAL")) == 3)
    assert "*2* messages from you in *1* conversation since" in view
    said = await rows(storage, "SELECT text FROM messages WHERE role = 'user' ORDER BY position")
    assert said == ["hello", "nothing", "and now?", "bye"]
    assert await rows(storage, "SELECT verdict FROM feedback") == ["good"]


async def test_a_missing_stop_button_is_named_once(api: SlackApi, bot_on, typist, caplog) -> None:
    def advice() -> list[str]:
        return [record.advice for record in caplog.records if record.message == "slack.no_stop_button"]

    api.world.has_stop_button = False
    async with bot_on(api, typist):
        for number in (1, 2):
            api.person_says("hello")
            await api.until(lambda number=number: len(api.calls("agents.sessions.setStatus")) >= 2 * number - 1)
            await api.until(advice)
            typist.write("ok")
            typist.finish()
            await api.until(lambda number=number: len(api.calls("agents.sessions.setStatus")) == 2 * number)
    assert len(advice()) == 1
    assert "settings.event_subscriptions.bot_events" in advice()[0]
