"""Webhooks of the Bot API stand-in: their order, their secret, receivers that fail."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from bot_api.bot_clients import Refusal
from standins.bot_api import BotApi, UpdateConfirmed, UpdateSent, UpdatesThrownAway, WebhookAnswered
from standins.serving import Exchange, Gate, Served
from telegram import Bot


class Receiver(Served):
    """A webhook of a test: what it got, and what it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[tuple[int, str, str | None]] = []
        self.statuses: list[int] = []
        self.gate = Gate(is_open=True)
        self.at_once = 0
        self.peak = 0

    @property
    def address(self) -> str:
        return f"{self.url}/telegram/webhook"

    @property
    def texts(self) -> list[str]:
        return [text for _, text, _ in self.got]

    async def handle(self, exchange: Exchange) -> None:
        update = json.loads(await exchange.body())
        text = update.get("message", {}).get("text", "")
        self.got.append((update["update_id"], text, exchange.headers.get("x-telegram-bot-api-secret-token")))
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        await self.gate.passed()
        self.at_once -= 1
        await exchange.answer(self.statuses.pop(0) if self.statuses else 200, b"")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    with made.serving():
        yield made


def confirmed(api: BotApi, count: int) -> "asyncio.Future[None]":
    return asyncio.ensure_future(api.until(lambda: len(api.journal.entries(UpdateConfirmed)) >= count))


async def test_a_webhook_gets_updates_with_its_secret_until_it_accepts(
    api: BotApi, bot: Bot, receiver: Receiver
) -> None:
    receiver.statuses = [500, 401, 200]
    waiting = api.person_says("before", chat_id=42)
    await bot.set_webhook(receiver.address, secret_token="s3cret", max_connections=3, allowed_updates=["message"])
    api.person_says("after", chat_id=42)
    await confirmed(api, 2)
    assert receiver.got[:3] == [(waiting.update_id, "before", "s3cret")] * 3
    assert receiver.texts[3:] == ["after"]
    assert [entry.status for entry in api.journal.entries(WebhookAnswered)] == [500, 401, 200, 200]
    info = await bot.get_webhook_info()
    assert (info.url, info.max_connections, info.pending_update_count) == (receiver.address, 3, 0)
    assert "401" in info.last_error_message


async def test_a_webhook_keeps_order_within_a_chat_and_goes_side_by_side_across_chats(
    api: BotApi, bot: Bot, receiver: Receiver
) -> None:
    receiver.gate = Gate()
    await bot.set_webhook(receiver.address, max_connections=5)
    for number in range(3):
        for chat_id in range(101, 109):
            api.person_says(f"{chat_id}:{number}", chat_id=chat_id)
    await api.until(lambda: len(api.journal.entries(UpdateSent)) >= 5)
    receiver.gate.open()
    await confirmed(api, 24)
    assert receiver.peak <= 5
    assert api.webhooks.peak == 5
    for chat_id in range(101, 109):
        assert [t for t in receiver.texts if t.startswith(str(chat_id))] == [f"{chat_id}:{n}" for n in range(3)]


@pytest.mark.parametrize("order", ["reversed", "shuffled", "at_once"])
async def test_a_webhook_can_be_out_of_order_and_twice(api: BotApi, bot: Bot, receiver: Receiver, order: str) -> None:
    api.deliver(order=order, twice="after", seed=3)
    await bot.set_webhook(receiver.address, max_connections=1 if order == "reversed" else 40)
    with api.webhook_paused():
        for number in range(6):
            api.person_says(str(number), chat_id=42)
    await confirmed(api, 6)
    firsts = list(dict.fromkeys(receiver.texts))
    assert sorted(receiver.texts) == sorted([str(n) for n in range(6)] * 2)
    if order == "reversed":
        assert firsts == [str(n) for n in reversed(range(6))]


async def test_a_webhook_that_is_down_gets_everything_when_it_is_back(
    api: BotApi, bot: Bot, receiver: Receiver
) -> None:
    await bot.set_webhook("https://bot.example.org/telegram/webhook")
    api.person_says("hello", chat_id=42)
    await api.until(lambda: len(api.journal.entries(WebhookAnswered)) >= 2)
    api.reach_webhooks_at(receiver.address)
    await confirmed(api, 1)
    assert receiver.texts == ["hello"]


async def test_webhook_settings_are_checked_and_dropping_is_noted(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    assert "HTTPS URL" in await refusal(bot.set_webhook("http://bot.example.org/x"))
    assert "ports" in await refusal(bot.set_webhook("https://bot.example.org:8000/x"))
    assert "unallowed characters" in await refusal(bot.set_webhook("http://127.0.0.1:9/", secret_token="a b"))
    said = api.person_says("gone", chat_id=42)
    await bot.delete_webhook(drop_pending_updates=True)
    (thrown,) = api.journal.entries(UpdatesThrownAway)
    assert thrown.update_ids == (said.update_id,)
