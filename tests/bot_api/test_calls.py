"""How the Bot API stand-in takes calls: tokens, methods, parameters, polling."""

import asyncio

import httpx
import pytest
from bot_api.bot_clients import Refusal, client
from standins.bot_api import BotApi, Outcome, UpdateConfirmed, random_token
from telegram import Bot
from telegram.error import Conflict, InvalidToken


async def test_a_wrong_token_is_unauthorized_and_a_malformed_one_is_not_found(api: BotApi) -> None:
    stranger = client(api, random_token())
    with pytest.raises(InvalidToken, match="rejected by the server"):
        await stranger.initialize()
    await stranger.shutdown()
    async with httpx.AsyncClient(verify=False) as http:
        assert (await http.get(f"{api.base_url}nonsense/getMe")).status_code == 404


async def test_an_unknown_method_is_not_found(bot: Bot) -> None:
    with pytest.raises(Exception, match="not found"):
        await bot.do_api_request("sendSmell", api_kwargs={"chat_id": 42})


async def test_parameters_arrive_as_query_form_json_and_multipart_in_any_case_of_the_method(api: BotApi) -> None:
    url = f"{api.base_url}{api.token}"
    entities = [{"type": "bold", "offset": 0, "length": 2}]
    async with httpx.AsyncClient(verify=False) as http:
        for answer in (
            await http.get(f"{url}/sendmessage", params={"chat_id": "42", "text": "query"}),
            await http.post(f"{url}/SendMessage", data={"chat_id": "42", "text": "form ✓"}),
            await http.post(f"{url}/sendMessage", json={"chat_id": 42, "text": "json", "entities": entities}),
            await http.post(f"{url}/sendMessage", data={"chat_id": "42", "text": "multipart"}, files={"x": b"x"}),
        ):
            assert answer.json()["ok"] is True
        broken = await http.post(f"{url}/sendMessage", content=b"{", headers={"content-type": "application/json"})
        assert broken.status_code == 400
    assert api.visible_texts(42) == ["query", "form ✓", "json", "multipart"]
    assert api.visible_messages(42)[2].entities == tuple(entities)


async def test_get_me_and_get_chat_satisfy_the_client(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    assert (bot.username, bot.id) == (api.username, int(api.token.partition(":")[0]))
    assert (await bot.get_chat(42)).first_name == "Person 42"
    assert (await bot.get_chat_member(42, bot.id)).status == "member"
    assert await refusal(bot.get_chat(43)) == "chat not found"


async def test_polling_waits_for_an_update_and_the_offset_confirms(api: BotApi, bot: Bot) -> None:
    waiting = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    said = api.person_says("hello", chat_id=42)
    (update,) = await waiting
    assert (update.update_id, update.message.text, update.effective_user.id) == (said.update_id, "hello", 42)
    assert len(await bot.get_updates()) == 1, "unconfirmed updates come again"
    second = api.person_says("again", chat_id=42)
    assert [u.update_id for u in await bot.get_updates(offset=said.update_id + 1)] == [second.update_id]
    confirmed = api.journal.entries(UpdateConfirmed)
    assert [entry.update_id for entry in confirmed] == [said.update_id]
    assert second.update_id == said.update_id + 1


async def test_limit_negative_offset_and_allowed_updates(api: BotApi, bot: Bot) -> None:
    for number in range(5):
        api.person_says(str(number), chat_id=42)
    assert [u.message.text for u in await bot.get_updates(limit=2)] == ["0", "1"]
    assert [u.message.text for u in await bot.get_updates(offset=-2)] == ["3", "4"]
    assert len(api.journal.entries(UpdateConfirmed)) == 3
    await bot.get_updates(allowed_updates=["callback_query"])
    assert api.person_says("unheard", chat_id=42).update_id is None
    assert api.person_stops_generation(42) is None
    await bot.get_updates(allowed_updates=["message", "stopped_message_generation"])
    assert api.person_stops_generation(42) is not None


async def test_a_second_poller_throws_the_first_out(api: BotApi, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    another = client(api)
    await another.initialize()
    second = asyncio.create_task(another.get_updates(timeout=20))
    with pytest.raises(Conflict, match="terminated by other getUpdates request"):
        await first
    api.person_says("hello", chat_id=42)
    assert len(await second) == 1
    await another.shutdown()


async def test_a_poller_that_dies_leaves_its_updates(api: BotApi, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await api.until(lambda: api.answers("getUpdates"))
    assert api.answers("getUpdates")[0].outcome is Outcome.ABANDONED
    api.person_says("hello", chat_id=42)
    assert len(await bot.get_updates()) == 1


async def test_polling_and_webhook_exclude_each_other(api: BotApi, bot: Bot) -> None:
    waiting = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    await bot.set_webhook("http://127.0.0.1:9/telegram", secret_token="s3cret")
    with pytest.raises(Conflict, match="terminated by setWebhook"):
        await waiting
    with pytest.raises(Conflict, match="can't use getUpdates method while webhook is active"):
        await bot.get_updates()
    await bot.delete_webhook()
    assert await bot.get_updates() == ()
