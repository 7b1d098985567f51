"""The Bot API stand-in as a tool of tests: any update, waiting, going away, many chats."""

import asyncio
import json
import random
import threading

import pytest
from bot_api.bot_clients import client
from standins.bot_api import BotApi, random_token
from standins.bot_api.posting import Poster
from telegram import Bot


async def test_arbitrary_updates_pass_through(api: BotApi, bot: Bot) -> None:
    api.push_update({"message_from_mars": {"chat": {"id": 42}, "antennas": 3}})
    api.push_update({"update_id": 5, "message": api.person_says("x", chat_id=42).message})
    updates = await bot.get_updates()
    assert updates[0].api_kwargs["message_from_mars"]["antennas"] == 3
    assert 5 in [update.update_id for update in updates]


def test_waiting_says_what_is_there_when_it_fails(api: BotApi) -> None:
    api.person_says("only this", chat_id=42)
    with pytest.raises(TimeoutError, match="only this"):
        api.wait_for_message(42, timeout=0.01)
    threading.Timer(0.01, api.person_says, ["in the end"], {"chat_id": 42}).start()
    assert api.wait_for_message(42, "end", from_bot=None).from_bot is False


async def test_the_server_can_go_away_and_come_back_with_its_state(api: BotApi) -> None:
    other = BotApi(token=random_token())
    with other.serving():
        port = other.port
        other.person_says("first", chat_id=1)
    with other.serving(port):
        async with client(other) as bot:
            assert [update.message.text for update in await bot.get_updates()] == ["first"]


@pytest.mark.slow
async def test_two_hundred_chats_with_ten_messages_each_pass_quickly_and_in_order(api: BotApi) -> None:
    chats = range(1000, 1200)
    everything = [(chat, number) for number in range(10) for chat in chats]
    random.Random(1).shuffle(everything)
    for chat, number in everything:
        api.person_says(str(number), chat_id=chat)
    url = f"{api.base_url}{api.token}"
    got: dict[int, list[str]] = {chat: [] for chat in chats}
    poster, json_type = Poster(), {"content-type": "application/json"}
    offset = 0
    while True:
        _, answer = await poster.post(f"{url}/getUpdates", json.dumps({"offset": offset}).encode(), json_type)
        updates = json.loads(answer)["result"]
        if not updates:
            break
        offset = updates[-1]["update_id"] + 1
        for update in updates:
            got[update["message"]["chat"]["id"]].append(update["message"]["text"])

    async def echo(chat: int) -> None:
        for text in got[chat]:
            body = json.dumps({"chat_id": chat, "text": text}).encode()
            status, _ = await poster.post(f"{url}/sendMessage", body, json_type)
            assert status == 200

    await asyncio.gather(*map(echo, chats))
    poster.close()
    for chat in chats:
        assert api.visible_texts(chat, from_bot=True) == api.visible_texts(chat, from_bot=False)
    assert api.world.shown_by_bot == 2000
    assert [entry.seq for entry in api.journal.entries()] == list(range(1, len(api.journal) + 1))
