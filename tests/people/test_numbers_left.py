"""After a person is forgotten, not even the number that a platform has for them stays."""

from datetime import timedelta

import pytest
from people.crowd import crowded, find_bytes
from people.test_forgetting_races import COMMANDS
from sqlalchemy import insert

from botservice import AgentContext, Author
from botservice.background.maintenance import Maintenance
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import events

NUMBER = "7700123456"
KEYS = {"transport": "messenger", "chat_id": NUMBER}
BUDGETS = Budgets({Scope.PERSON: parse_limits("50 messages/minute"), Scope.CHAT: parse_limits("1 messages/minute")})


def served(storage):
    return crowded(storage, lambda messages: "so it is", commands=COMMANDS, budgets=BUDGETS)


async def keep_up(storage, **later):
    await Maintenance(storage, clock=lambda: storage.now() + timedelta(**later)).run_once()


async def test_a_private_chat_loses_its_name_once_everything_is_said_there(storage):
    async with served(storage) as bot:
        for text in ("hello", "too fast for this chat", "/forget me yes"):
            await bot.messenger.say(bot, NUMBER, text, chat=NUMBER)
    assert "Forgotten" in bot.messenger.visible[NUMBER][-1]
    await keep_up(storage, hours=1)
    assert await find_bytes(storage, NUMBER), "what is delivered again at this time must be known"
    await keep_up(storage, hours=3)
    left = [each for each in await find_bytes(storage, NUMBER) if not each.startswith("bot.db")]
    assert left == ["model_usage"], "forgetting refills no budget"
    await keep_up(storage, days=32)
    assert await find_bytes(storage, NUMBER) == []


@pytest.mark.any_database
async def test_who_comes_back_keeps_the_chat(storage):
    async with served(storage) as bot:
        await bot.messenger.say(bot, NUMBER, "/forget me yes", chat=NUMBER)
        await bot.messenger.say(bot, NUMBER, "hello again", chat=NUMBER)
    await keep_up(storage, hours=3)
    await keep_up(storage, hours=6)
    chat = await AgentContext.get_or_create(storage, KEYS)
    assert [each.text for each in await chat.chat_history.messages()] == ["hello again", "so it is"]


@pytest.mark.parametrize(
    ("author", "key"),
    [
        (Author("telegram", NUMBER), f"telegram:99:pressed:{NUMBER}:17"),
        (Author("slack", f"T1:{NUMBER}"), f"slack:T1:button:C1:1700.1:1700.2:{NUMBER}"),
    ],
)
async def test_the_name_of_a_press_names_nobody_who_is_forgotten(storage, author, key):
    group = await AgentContext.get_or_create(storage, {"transport": author.platform, "chat_id": "-100"})
    await group.chat_history.append_user_message("hello", author=author)
    await group.chat_history.append_user_message("hello to you", author="somebody")

    def press(connection):
        for each in (key, key.replace(NUMBER, "88")):
            values = {"key": each, "context_id": group.id, "transport": author.platform, "kind": "message"}
            connection.execute(insert(events).values(**values, order_key=1, received_at=storage.now()))

    await storage.write(press)
    await forget_person(storage, author)
    assert await find_bytes(storage, NUMBER) == []
    keys = await storage.read(lambda c: sorted(c.execute(events.select()).mappings().all(), key=lambda e: e["id"]))
    assert keys[0]["key"] == f"forgotten:{keys[0]['id']}"
