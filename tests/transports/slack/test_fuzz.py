"""Whatever Slack, or another person with its signature, may send: nothing crashes, and no good message is lost."""

import contextlib
import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from standins.slack_api import SlackApi
from standins.slack_api.events import encode
from standins.slack_api.world import Post

from botservice.core.errors import BotServiceError

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    " ",
    "x" * 300,
    "\ud800",
    "\x00",
    [],
    [[]],
    {},
    {"id": 7},
    "D1",
    "1.1",
]
KINDS = [
    *("message", "app_mention", "agent_session_stopped", "app_home_opened"),
    *("agent_session_title_changed", "app_context_changed"),
    *("app_uninstalled", "tokens_revoked", "member_joined_channel", "member_left_channel"),
]


def bodies(api: SlackApi) -> list[tuple[str, dict[str, Any]]]:
    """Return one good body of every kind."""
    event = api.message_event(Post("D0ALICE", "1795000000.000001", "U0ALICE", "hello <@U0BOB> <#C1|x>"))
    viewed = {"channel_id": "C0GENERAL", "message_ts": "1.1"}
    entities = [
        {"type": "slack#/types/channel_id", "value": "C0GENERAL", "team_id": "T0001"},
        {"type": "slack#/types/message_context", "value": viewed},
    ]
    event |= {"context": {"entities": entities}, "app_context": {"entities": entities}, "tab": "messages"}
    found = [
        ("events_api", api.envelope({**event, "type": kind, "thread_ts": "1795000000.000000"}, "Ev1")) for kind in KINDS
    ]
    changed = {"subtype": "message_changed", "message": event, "previous_message": {**event, "text": "x"}, "ts": "1.2"}
    found.append(("events_api", api.envelope({**event, **changed}, "Ev2")))
    person = {"team": {"id": "T0001"}, "user": {"id": "U0ALICE"}, "trigger_id": "t1"}
    action = {"action_id": "say:0", "value": "yes", "action_ts": "1795000000.000002", "type": "button"}
    pressed = {"actions": [action], "channel": {"id": "D0ALICE"}, "container": {"message_ts": "1795000000.000001"}}
    found.append(("interactive", {"type": "block_actions", **person, **pressed}))
    view = {"id": "V1", "callback_id": "ask_about_message", "private_metadata": "{}", "state": {"values": {}}}
    found.append(("interactive", {"type": "view_submission", **person, "view": view}))
    shortcut = {"callback_id": "ask_about_message", "message": {"text": "x", "user": "U1"}, "channel": {"id": "C1"}}
    found.append(("interactive", {"type": "message_action", **person, **shortcut}))
    found.append(("interactive", {"type": "shortcut", **person, "callback_id": "ask_anything"}))
    command = {"command": "/botservice", "text": "hi", "user_id": "U0ALICE", "team_id": "T0001", "trigger_id": "t2"}
    found.append(("slash_commands", {**command, "channel_id": "C1", "response_url": f"{api.base}/response/x"}))
    return found


def spoil(value: Any, chance: random.Random) -> Any:
    """Return value with something odd somewhere in it, or something missing."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(sorted(value))
        spoiled = dict(value)
        if chance.random() < 0.2:
            del spoiled[name]
        else:
            spoiled[name] = spoil(value[name], chance)
        return spoiled
    if isinstance(value, list) and value and chance.random() < 0.9:
        return [spoil(value[0], chance), *value[1:]]
    return chance.choice(ODD)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
async def test_spoiled_events_harm_nobody(api: SlackApi, bot_on, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(f"slack-{seed}")
    good = bodies(api)
    async with bot_on(api, lambda _: "ok") as bot, httpx.AsyncClient(verify=False) as client:
        for number in range(150):
            kind, body = chance.choice(good)
            for _ in range(chance.randrange(1, 4)):
                body = spoil(body, chance)
            raw, content_type = encode(kind, body if isinstance(body, dict) else {"payload": body})
            headers = {**api.events.sign(raw), "content-type": content_type}
            answer = await client.post(f"{bot.url}/slack/events", content=raw, headers=headers)
            assert answer.status_code < 500 or b"deliver it again" in answer.content, (number, body)
            if number % 30 == 0:
                api.person_says(f"good {number}", channel="D0BOB", user="U0BOB")
        await api.until(lambda: len(api.said("D0BOB")) == 5, timeout=60)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def spoiled_everywhere(value: Any) -> Iterator[Any]:
    """Yield value with each odd thing in each of its places, one at a time."""
    yield from ODD
    if isinstance(value, dict):
        for name, part in value.items():
            yield {key: each for key, each in value.items() if key != name}
            yield from ({**value, name: each} for each in spoiled_everywhere(part))
    elif isinstance(value, list) and value:
        yield from ([each, *value[1:]] for each in spoiled_everywhere(value[0]))


@pytest.mark.slow
async def test_nothing_odd_in_any_place_of_an_event_is_asked_for_again(
    api: SlackApi, bot_on, caplog: pytest.LogCaptureFixture
) -> None:
    async with bot_on(api, lambda _: "ok") as bot:
        intake = bot.transport._intake
        for kind, body in bodies(api):
            take = {"events_api": intake.take_event, "slash_commands": intake.take_command}.get(kind)
            for spoiled in spoiled_everywhere(body):
                if isinstance(spoiled, dict):
                    with contextlib.suppress(BotServiceError, TimeoutError):
                        await (take or intake.take_interaction)(spoiled)


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain"])
async def test_bodies_that_are_none_are_answered_below_500(api: SlackApi, bot_on, content_type: str) -> None:
    async with bot_on(api) as bot, httpx.AsyncClient(verify=False) as client:
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"[" * 5000, b"payload=%7B", b"payload="):
            headers = {**api.events.sign(body), "content-type": content_type}
            answer = await client.post(f"{bot.url}/slack/events", content=body, headers=headers)
            assert answer.status_code < 500, body


async def test_spoiled_events_through_a_socket_harm_nobody(api: SlackApi, bot_on) -> None:
    chance = random.Random("slack-socket")
    good = bodies(api)
    async with bot_on(api, lambda _: "ok", way="socket"):
        bodies_sent = [
            (kind, json.loads(json.dumps(spoil(body, chance)))) for kind, body in chance.choices(good, k=150)
        ]
        for kind, body in bodies_sent:
            api.events.send(kind, body, retries=False)
        readable = sum(isinstance(body, dict | str) for _, body in bodies_sent)  # Slack's client drops what is neither
        await api.until(lambda: len(api.events.tries) == readable)
        api.person_says("still there?", channel="D0BOB", user="U0BOB")
        await api.until(lambda: api.said("D0BOB"))
    assert api.said("D0BOB") == ["ok"]
