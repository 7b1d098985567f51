"""Updates come in: by polling and by webhook, stored before Telegram is told so, once each."""

import asyncio
import json
import logging

import httpx
import pytest
from crash.watching import rows
from standins.bot_api import (
    BotApi,
    Drop,
    Hang,
    UpdateConfirmed,
    UpdatesThrownAway,
    WebhookAnswered,
    flood,
    random_token,
    server_error,
)
from standins.clocks import fast_clock

from botservice import AgentContext, Storage
from botservice.core.errors import SettingsError, StorageUnavailable
from botservice.turns.inbox import Pressure
from transports.telegram.app import TelegramTransport
from transports.telegram.client import POLL_SECONDS
from transports.telegram.inbound_events import ALLOWED_UPDATES
from transports.telegram.updates import derive_secret, poller_of

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
CUT_OFF = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def confirmed(api: BotApi) -> list[int]:
    return [entry.update_id for entry in api.journal.entries(UpdateConfirmed)]


@pytest.mark.parametrize("webhook", [False, True])
async def test_messages_are_answered_in_order_and_confirmed_once(api: BotApi, bot_on, webhook: bool) -> None:
    async with bot_on(api, webhook=webhook):
        said = [api.person_says(f"message {n}", chat_id=42) for n in range(10)]
        await api.messages(42, 10)
        assert api.visible_texts(42) == [f"You said: message {n}" for n in range(10)]
        await api.until(lambda: len(confirmed(api)) == 10)
    assert confirmed(api) == [each.update_id for each in said]
    assert not api.journal.entries(UpdatesThrownAway)


@pytest.mark.parametrize("webhook", [False, True])
async def test_what_came_while_the_bot_was_away_is_answered(api: BotApi, bot_on, webhook: bool) -> None:
    api.person_says("are you there?", chat_id=42)
    async with bot_on(api, webhook=webhook):
        assert (await api.message(42)).text == "You said: are you there?"


async def test_the_offset_moves_only_once_updates_are_stored(api: BotApi, bot_on, monkeypatch) -> None:
    async with bot_on(api) as bot:
        accept, failures = bot.inbox.accept, iter([StorageUnavailable("down"), StorageUnavailable("down")])

        async def fail_first(*arguments):
            if (failure := next(failures, None)) is not None:
                assert not confirmed(api)
                raise failure
            return await accept(*arguments)

        monkeypatch.setattr(bot.inbox, "accept", fail_first)
        monkeypatch.setattr("transports.telegram.updates._STORAGE_PAUSE_SECONDS", 0.01)
        api.person_says("hello", chat_id=42)
        assert (await api.message(42)).text == "You said: hello"
        await api.until(lambda: confirmed(api))


async def test_where_too_much_waits_a_stop_is_taken_all_the_same(api: BotApi, bot_on) -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def model(prompt):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with bot_on(api, model) as bot:
        api.person_says("tell me", chat_id=42)
        await asyncio.wait_for(asked.wait(), 60)
        await api.until(lambda: len(confirmed(api)) == 1)
        bot.inbox._pressure = Pressure(max_waiting=0)
        api.person_says("more", chat_id=43)
        api.person_says("/stop", chat_id=42)
        await asyncio.wait_for(cancelled.wait(), 60)
        assert len(confirmed(api)) == 1, "what is not stored is still Telegram's"


async def test_a_webhook_that_cannot_store_gets_the_update_again(api: BotApi, bot_on, monkeypatch) -> None:
    async with bot_on(api, webhook=True) as bot:
        accept, failures = bot.inbox.accept, iter([StorageUnavailable("down"), StorageUnavailable("down")])

        async def fail_first(*arguments):
            if (failure := next(failures, None)) is not None:
                raise failure
            return await accept(*arguments)

        monkeypatch.setattr(bot.inbox, "accept", fail_first)
        api.person_says("hello", chat_id=42)
        assert (await api.message(42)).text == "You said: hello"
        await api.until(lambda: confirmed(api))
    assert [entry.status for entry in api.journal.entries(WebhookAnswered)] == [503, 503, 200]


@pytest.mark.parametrize("how", [{"twice": "after"}, {"twice": "at_once"}, {"order": "at_once"}])
async def test_a_webhook_that_delivers_twice_or_at_once_gets_one_answer_each(api: BotApi, bot_on, how) -> None:
    async with bot_on(api, webhook=True):
        api.deliver(**how)
        for number in range(10):
            api.person_says(f"message {number}", chat_id=42)
        await api.messages(42, 10)
        await api.until(lambda: len(confirmed(api)) == 10)
    assert sorted(api.visible_texts(42)) == sorted(f"You said: message {n}" for n in range(10))


async def test_a_restart_repeats_nothing(api: BotApi, bot_on) -> None:
    async with bot_on(api):
        api.person_says("one", chat_id=42)
        await api.message(42)
    api.person_says("two", chat_id=42)
    async with bot_on(api):
        await api.messages(42, 2)
    assert api.visible_texts(42) == ["You said: one", "You said: two"]


async def test_wrong_or_missing_secrets_store_nothing(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, webhook=True) as bot, httpx.AsyncClient(verify=False) as client:
        await api.call("setWebhook")
        url = api.webhooks.url
        update = {"update_id": 1, "message": {"message_id": 1, "date": 0, "chat": {"id": 42, "type": "private"}}}
        for headers in ({}, {SECRET_HEADER: ""}, {SECRET_HEADER: "wrong"}, {SECRET_HEADER: "ünïcode".encode()}):
            assert (await client.post(url, json=update, headers=headers)).status_code == 401
        assert (await client.get(url)).status_code == 405
        right = {SECRET_HEADER: derive_secret(api.token)}
        for body in (
            b"",
            b"{",
            b"null",
            b"[]",
            b"1",
            b'"x"',
            b"\xff\xfe",
            b"[" * 100_000,
            b"{}",
            b'{"update_id": "x"}',
        ):
            assert (await client.post(url, content=body, headers=right)).status_code < 500
        assert (await client.post(url, content=b"x" * 5_000_000, headers=right)).status_code == 413
        assert bot.worker.is_running
        context = await AgentContext.get_or_create(sqlite_storage, {"transport": "telegram", "chat_id": "42"})
        assert await context.chat_history.messages() == []


async def test_a_secret_of_ones_own_is_used(api: BotApi, bot_on) -> None:
    async with bot_on(api, webhook=True, webhook_secret="my-own_secret"):
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert api.calls("setWebhook")[0].params["secret_token"] == "my-own_secret"


async def test_the_webhook_asks_for_what_it_needs_and_throws_nothing_away(api: BotApi, bot_on) -> None:
    async with bot_on(api, webhook=True):
        call = await api.call("setWebhook")
        await api.until(lambda: api.webhooks.url)
        assert call.params["allowed_updates"] == ALLOWED_UPDATES
        assert "drop_pending_updates" not in call.params
        assert call.params["url"].endswith("/telegram/webhook")


async def test_a_webhook_that_somebody_removed_is_set_again(api: BotApi, bot_on, monkeypatch, caplog) -> None:
    monkeypatch.setattr("transports.telegram.updates._CHECK_SECONDS", 0.05)
    async with bot_on(api, webhook=True):
        await api.until(lambda: api.webhooks.url)
        url = api.webhooks.url
        with api.condition:
            api.webhooks.url = "https://elsewhere.example.com/hook"
        await api.until(lambda: api.webhooks.url == url)
    assert "telegram.webhook_lost" in caplog.text


async def test_polling_takes_over_from_a_webhook(api: BotApi, bot_on) -> None:
    with api.condition:
        api.webhooks.url = "https://old.example.com/hook"
    api.person_says("hello", chat_id=42)
    async with bot_on(api):
        assert (await api.message(42)).text == "You said: hello"
    assert "drop_pending_updates" not in api.calls("deleteWebhook")[0].params


async def test_a_process_that_would_poll_leaves_the_webhook_of_another_one_until_that_goes(
    api: BotApi, bot_in, postgres_url: str
) -> None:
    """As a worker without PUBLIC_URL next to a server with one; the worker was there first."""
    async with Storage.open(postgres_url) as first, Storage.open(postgres_url) as second, bot_in(api, first):
        await api.until(lambda: api.calls("getUpdates"))
        async with bot_in(api, second, webhook=True):
            await api.until(lambda: api.webhooks.url and polls_here(api, second))
            for number, text in enumerate(["one", "two"], 1):
                api.person_says(text, chat_id=42)
                await api.messages(42, number)
            assert not api.calls("deleteWebhook")
        api.person_says("three", chat_id=42)
        await api.messages(42, 3)
    assert api.calls("deleteWebhook")
    assert api.visible_texts(42) == ["You said: one", "You said: two", "You said: three"]


async def test_of_two_processes_on_one_database_one_polls_until_it_goes(
    api: BotApi, bot_in, postgres_url: str, caplog
) -> None:
    """Telegram, and its stand-in, answer 409 to whoever polls next to another one."""
    async with Storage.open(postgres_url) as first, Storage.open(postgres_url) as second:
        async with bot_in(api, first):
            await api.until(lambda: api.calls("getUpdates"))
            async with bot_in(api, second):
                api.person_says("one", chat_id=42)
                assert (await api.message(42)).text == "You said: one"
            api.person_says("two", chat_id=42)
            await api.messages(42, 2)
        async with bot_in(api, second):
            api.person_says("three", chat_id=42)
            await api.messages(42, 3)
    assert api.visible_texts(42) == ["You said: one", "You said: two", "You said: three"]
    assert not [record for record in caplog.records if record.message == "telegram.conflict"]


async def lose_claim(api: BotApi, storage: Storage, url: str) -> None:
    """Cut the connection with which a bot's only process polls, and return once that is noticed there.

    It is cut while Telegram is asked: a process that is between two questions would take the claim again at once.
    """
    await api.until(lambda: len(api.calls("getUpdates")) > len(api.answers("getUpdates")))
    await asyncio.to_thread(rows, url, CUT_OFF)
    async with asyncio.timeout(30):
        while polls_here(api, storage):  # noqa: ASYNC110 - no other person says it
            await asyncio.sleep(0.01)


def polls_here(api: BotApi, storage: Storage) -> bool:
    return storage.claims.holder(poller_of(int(api.token.partition(":")[0]))) is not None


async def test_a_process_that_lost_the_right_to_poll_leaves_it_to_the_next_without_a_word(
    api: BotApi, bot_in, postgres_url: str, caplog
) -> None:
    async with Storage.open(postgres_url) as first, Storage.open(postgres_url) as second, bot_in(api, first):
        await lose_claim(api, first, postgres_url)
        async with bot_in(api, second):
            await api.until(lambda: len(api.calls("getUpdates")) > 1)
            api.person_says("one", chat_id=42)
            assert (await api.message(42)).text == "You said: one"
    assert not [record for record in caplog.records if record.message == "telegram.conflict"]


async def test_a_process_that_polls_again_passes_over_nothing_that_was_numbered_anew(
    api: BotApi, bot_in, postgres_url: str
) -> None:
    async with Storage.open(postgres_url) as first, Storage.open(postgres_url) as second, bot_in(api, first):
        api.person_says("one", chat_id=42)
        await api.message(42)
        await lose_claim(api, first, postgres_url)
        asked = len(api.calls("getUpdates"))
        async with bot_in(api, second):
            await api.until(lambda: len(api.calls("getUpdates")) > asked)
            api.updates.number_from(7)
            api.person_says("two", chat_id=42)
            await api.messages(42, 2)
        api.person_says("three", chat_id=42)
        await api.messages(42, 3)
    assert api.visible_texts(42) == ["You said: one", "You said: two", "You said: three"]


def test_bots_with_similar_ids_poll_beside_each_other() -> None:
    ids = [7_000_000_123, 7_001_000_123, 123, 1_000_123]
    assert len({poller_of(each) for each in ids}) == len(ids)
    assert max(poller_of(each) for each in (0, *ids)) <= -1_000


async def test_a_second_poller_is_told_what_to_do(api: BotApi, bot_on, monkeypatch, caplog) -> None:
    monkeypatch.setattr("transports.telegram.updates._CONFLICT_PAUSE_SECONDS", 0.05)
    async with bot_on(api):
        await api.call("getUpdates")
        async with httpx.AsyncClient(verify=False) as other:
            await other.post(f"{api.base_url}{api.token}/getUpdates", json={"timeout": 0})
        api.person_says("hello", chat_id=42)
        assert (await api.message(42)).text == "You said: hello"
    record = next(record for record in caplog.records if record.message == "telegram.conflict")
    assert "TELEGRAM_BOT_TOKEN" in record.advice
    assert "PUBLIC_URL" in record.advice


async def test_a_token_that_telegram_refuses_is_named_and_not_shown(api: BotApi, sqlite_storage: Storage) -> None:
    token = random_token()
    transport = TelegramTransport(token=token, api_url=api.url)
    with pytest.raises(SettingsError, match="TELEGRAM_BOT_TOKEN") as caught:
        await transport.start(None, sqlite_storage)
    assert token not in str(caught.value)
    await transport.close()


async def test_an_api_that_is_down_at_the_start_is_waited_for(bot_on, monkeypatch) -> None:
    monkeypatch.setattr("transports.common.connected_transport._FIRST_PAUSE_SECONDS", 0.02)
    api = BotApi()
    with api.serving():
        api.add_private_chat(42)
        api.person_says("hello", chat_id=42)
        port = api.port
    async with bot_on(api) as bot:
        assert "not reached yet" in bot.transport.describe()
        with api.serving(port):
            assert (await api.message(42)).text == "You said: hello"
            assert bot.transport.describe() == "@stand_in_bot, by polling"
            await bot.transport.stop()


@pytest.mark.parametrize("fault", [Drop(), server_error(502, html=True), server_error(500), flood(0)])
async def test_polling_survives(api: BotApi, bot_on, fault, monkeypatch) -> None:
    monkeypatch.setattr("transports.telegram.updates._FIRST_PAUSE_SECONDS", 0.01)
    api.order(fault, "getUpdates", times=3)
    async with bot_on(api):
        api.person_says("hello", chat_id=42)
        assert (await api.message(42)).text == "You said: hello"


async def test_being_blocked_and_let_in_again_is_noted(api: BotApi, bot_on, caplog) -> None:
    caplog.set_level(logging.INFO)
    async with bot_on(api):
        api.person_blocks(42)
        api.person_unblocks(42)
        api.person_says("hello again", chat_id=42)
        await api.message(42)
    noted = [(record.chat, record.status) for record in caplog.records if record.message == "telegram.membership"]
    assert noted == [("telegram:42", "kicked"), ("telegram:42", "member")]


async def test_stopping_is_quick_while_a_poll_waits(api: BotApi, bot_on) -> None:
    async with bot_on(api) as bot:
        await api.call("getUpdates")
        async with asyncio.timeout(POLL_SECONDS - 5):
            await bot.transport.stop()


async def test_a_start_that_hangs_does_not_hold_the_service_up(api: BotApi, bot_on, monkeypatch) -> None:
    monkeypatch.setattr("transports.common.connected_transport._START_SECONDS", 0.05)
    api.order(Hang(), "getMe")
    api.person_says("hello", chat_id=42)
    async with bot_on(api):
        assert (await api.message(42)).text == "You said: hello"


async def test_no_token_and_no_text_reaches_the_log(api: BotApi, bot_on, caplog) -> None:
    caplog.set_level(logging.INFO)
    api.order(server_error(500), "sendMessage", times=2)
    async with bot_on(api, clock=fast_clock()):
        api.person_says("my secret thoughts", chat_id=42)
        await api.message(42)
    ours = "\n".join(
        json.dumps(vars(record), default=str)
        for record in caplog.records
        if record.name.startswith(("botservice", "transports"))
    )
    assert "secret thoughts" not in ours
    assert api.token not in ours
