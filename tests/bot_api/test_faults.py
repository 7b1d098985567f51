"""Faults that the Bot API stand-in makes as ordered."""

import asyncio
from datetime import timedelta

import pytest
from standins.bot_api import BotApi, Delay, Drop, Hang, LoseAnswer, Outcome, RateLimits, flood, server_error
from telegram import Bot
from telegram.error import NetworkError, RetryAfter, TimedOut


async def test_faults_happen_as_ordered(api: BotApi, bot: Bot) -> None:
    api.order(flood(3), "sendMessage", chat_id=42, times=2)
    for _ in range(2):
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(42, "x")
        assert caught.value.retry_after == timedelta(seconds=3)
    await bot.send_message(42, "through")
    api.order(server_error(502), when=lambda call: call.text("text") == "bad")
    api.order(server_error(500, html=True), times=1)
    with pytest.raises(NetworkError):
        await bot.send_message(42, "good")
    with pytest.raises(NetworkError, match="Bad Gateway"):
        await bot.send_message(42, "bad")
    assert api.visible_texts(42) == ["through"]


async def test_a_dropped_call_has_no_effect_and_a_lost_answer_has(api: BotApi, bot: Bot) -> None:
    api.order(Drop(), "sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(42, "dropped")
    api.order(LoseAnswer(), "sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(42, "lost")
    assert api.visible_texts(42) == ["lost"]
    assert [(a.outcome, a.had_effect) for a in api.answers("sendMessage")] == [
        (Outcome.DROPPED, False),
        (Outcome.LOST, True),
    ]


async def test_a_call_can_hang_before_or_after_its_effect(api: BotApi, bot: Bot) -> None:
    before = api.order(Hang(), "sendMessage")
    with pytest.raises(TimedOut):
        await bot.send_message(42, "never", read_timeout=0.05)
    after = api.order(Hang(after_effect=True), "sendMessage")
    sending = asyncio.create_task(bot.send_message(42, "at last", read_timeout=60))
    await api.message(42, "at last")
    assert not sending.done()
    after.release()
    assert (await sending).text == "at last"
    assert before.used == after.used == 1
    api.order(Delay(0.01), "sendMessage")
    await bot.send_message(42, "late")
    assert api.visible_texts(42) == ["at last", "late"]


async def test_published_limits_answer_429_when_switched_on(api: BotApi, bot: Bot) -> None:
    now = [0.0]
    api.limits = RateLimits(clock=lambda: now[0])
    api.add_group(-100123)
    await bot.send_message(42, "1")
    with pytest.raises(RetryAfter):
        await bot.send_message(42, "too fast")
    await bot.send_chat_action(42, "typing")
    now[0] += 1
    await bot.send_message(42, "2")
    for _ in range(20):
        now[0] += 2
        await bot.send_message(-100123, "x")
    now[0] += 2
    with pytest.raises(RetryAfter) as caught:
        await bot.send_message(-100123, "21st")
    assert caught.value.retry_after == timedelta(seconds=20)
    assert api.limits.refused == 2
