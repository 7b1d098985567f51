"""Updates of another API version, or of nobody's: never a crash, never a good message lost."""

import asyncio
import copy
import json
import logging
import random
from typing import Any

import httpx
import pytest
from standins.bot_api import BotApi

from botservice.core.states import EventKind
from transports.telegram.inbound_events import BotIdentity, read_event
from transports.telegram.updates import derive_secret

BOT = BotIdentity(7140000001, "stand_in_bot")
PRIVATE = {"id": 42, "type": "private", "first_name": "Ada"}
GROUP = {"id": -1001, "type": "supergroup", "title": "Team", "is_forum": True}
ADA = {"id": 42, "is_bot": False, "first_name": "Ada", "username": "ada", "language_code": "en"}
PHOTO = [{"file_id": "p", "file_unique_id": "u", "width": 90, "height": 90, "file_size": 1000}]
VOICE = {"file_id": "v", "file_unique_id": "v", "duration": 3, "mime_type": "audio/ogg", "file_size": 10}
OLDER = {"message_id": 3, "date": 1_700_000_000, "chat": PRIVATE, "from": ADA, "text": "before"}
BASE = {"message_id": 5, "date": 1_700_000_000, "chat": PRIVATE, "from": ADA}
TOPIC = {"chat": GROUP, "message_thread_id": 7, "is_topic_message": True}
MEMBER = {"chat": PRIVATE, "from": ADA, "date": 1, "old_chat_member": {"status": "member", "user": ADA},
          "new_chat_member": {"status": "kicked", "user": ADA, "until_date": 0}}  # fmt: skip

SEEDS: list[dict[str, Any]] = [
    {"message": BASE | {"text": "hello"}},
    {"message": BASE | {"text": "/start", "entities": [{"type": "bot_command", "offset": 0, "length": 6}]}},
    {"message": BASE | {"text": "/stop"}},
    {"message": BASE | {"caption": "see", "photo": PHOTO, "media_group_id": "9"}},
    {"message": BASE | {"voice": VOICE}},
    {"message": BASE | {"document": VOICE | {"file_name": "a.txt"}}},
    {"message": BASE | {"sticker": {"file_id": "s", "file_unique_id": "s", "type": "regular", "width": 1, "height": 1,
                                    "is_animated": False, "is_video": False, "emoji": "🎉"}}},
    {"message": BASE | {"text": "why", "reply_to_message": OLDER, "quote": {"text": "be", "position": 0}}},
    {"message": BASE | {"text": "see", "forward_origin": {"type": "user", "date": 1, "sender_user": ADA}}},
    {"message": BASE | TOPIC | {"text": "@stand_in_bot hi",
                                "entities": [{"type": "mention", "offset": 0, "length": 13}]}},
    {"message": BASE | {"location": {"latitude": 1.0, "longitude": 2.0}}},
    {"message": BASE | {"contact": {"phone_number": "1", "first_name": "B"}}},
    {"message": BASE | {"checklist": {"title": "T", "tasks": [{"id": 1, "text": "a"}]}}},
    {"message": BASE | {"rich_message": {"blocks": [{"type": "paragraph", "text": ["a", {"text": "b"}]}]}}},
    {"guest_message": BASE | {"text": "@stand_in_bot hi", "guest_query_id": "77", "guest_bot_caller_user": ADA}},
    {"edited_message": BASE | {"text": "changed", "edit_date": 1}},
    {"my_chat_member": MEMBER},
    {"callback_query": {"id": "1", "from": ADA, "chat_instance": "1", "data": "x", "message": OLDER}},
    {"stopped_message_generation": {"chat": PRIVATE, "draft_id": 3}},
    {"message_reaction": {"chat": PRIVATE, "message_id": 1, "date": 1, "old_reaction": [], "new_reaction": []}},
]  # fmt: skip

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 1.5, 1e308, "", "x", "0", "true", "\ud800", "\0",
    "x" * 5000, "🎉" * 50, [], [None], [[]], [{}], {}, {"id": None}, {"id": 1}, {"a": {"b": {"c": []}}},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value inside of value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [each for key, child in inner for each in places(child, (*path, key))]


def mutated(seed: random.Random) -> dict[str, Any]:
    """Return an update that is wrong, or new, in a few places."""
    update: dict[str, Any] = {"update_id": 10_000_000 + seed.randrange(10**9), **copy.deepcopy(seed.choice(SEEDS))}
    for _ in range(seed.choice((1, 1, 1, 2, 3, 6))):
        path = seed.choice(places(update))
        parent = update
        for key in path[:-1]:
            parent = parent[key]
        match seed.randrange(5):
            case 0 if isinstance(parent, dict):
                del parent[path[-1]]
            case 1 if isinstance(parent, dict):
                parent[f"new_field_{seed.randrange(9)}"] = copy.deepcopy(seed.choice(ODD))
            case 2 if isinstance(parent, dict):
                parent[f"{path[-1]}_v2"] = parent.pop(path[-1])
            case _:
                parent[path[-1]] = copy.deepcopy(seed.choice(ODD))
        if not update:
            break
    return update


MANY = pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(600)])


@pytest.mark.parametrize("count", [300, MANY])
@pytest.mark.slow
async def test_odd_updates_do_no_harm_to_good_ones(api: BotApi, bot_on, count: int, caplog) -> None:
    caplog.set_level(logging.ERROR)
    seed = random.Random(count)
    headers = {"X-Telegram-Bot-Api-Secret-Token": derive_secret(api.token), "content-type": "application/json"}
    people = range(1000, 1020)
    async with bot_on(api, webhook=True) as bot, httpx.AsyncClient(verify=False) as telegram:
        await api.until(lambda: api.webhooks.url)
        for start in range(0, count, 10):
            person = people[start // 10 % len(people)]
            api.person_says(f"good message {start}", chat_id=person)
            bodies = [json.dumps(mutated(seed)).encode() for _ in range(10)]
            posts = [telegram.post(api.webhooks.url, content=body, headers=headers) for body in bodies]
            assert all(answer.status_code < 500 for answer in await asyncio.gather(*posts))
        for person in people:
            wanted = [n for n in range(0, count, 10) if people[n // 10 % len(people)] == person]
            await api.messages(person, len(wanted), "good message", timeout=120)
            texts = [text for text in api.visible_texts(person) if "good message" in text]
            assert texts == [f"You said: good message {n}" for n in wanted]
        assert bot.worker.is_running
    failed = [record.message for record in caplog.records if record.message in ("turn.failed", "worker.context_failed")]
    assert failed == []


def test_accepting_never_fails() -> None:
    seed = random.Random(1)
    for _ in range(2000):
        event = read_event(mutated(seed), BOT)
        if event is not None:
            assert all(isinstance(value, str) for value in event.context_keys.values())
            assert event.raw
    for odd in ODD:
        assert read_event(odd, BOT) is None
        assert read_event({"update_id": 1, "message": odd}, BOT) is None


async def test_text_is_answered_though_another_field_cannot_be_read(api: BotApi, bot_on) -> None:
    async with bot_on(api):
        for field in ("reply_to_message", "sender_chat", "quote", "new_thing", "via_bot", "photo", "date"):
            api.push_update({"message": BASE | {"text": f"hello, {field}", field: {"of": {"another": "api"}}}})
            await api.message(42, f"hello, {field}")


def test_stops_are_told_from_messages() -> None:
    kinds = [read_event({"update_id": 1, **seed}, BOT) for seed in SEEDS]
    stops = [event for event in kinds if event is not None and event.kind is EventKind.STOP]
    assert len(stops) == 2
