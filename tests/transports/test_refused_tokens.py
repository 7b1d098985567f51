"""A token that one platform refuses keeps nobody from the other platforms."""

import asyncio
import json
import urllib.request

import pytest
from crash.served import ServedBot
from sqlalchemy import select
from standins.bot_api import BotApi
from standins.slack_api import SlackApi
from standins.slack_api.server import BOT_TOKEN

from botservice import Storage
from botservice.storage.tables.conversations import turns
from botservice.turns.inbox import Inbox
from transports.slack.inbound_events import message_event, read_message

pytestmark = pytest.mark.any_database


def test_telegram_goes_on_where_slack_refuses_its_token(tmp_path):
    with BotApi.running() as telegram, SlackApi.running() as slack:
        settings = {
            "DATABASE_URL": f"sqlite:///{tmp_path / 'bot.db'}",
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_API_URL": telegram.url,
            "SLACK_BOT_TOKEN": "xoxb-1-1-revoked",
            "SLACK_SIGNING_SECRET": "0" * 32,
            "SLACK_API_URL": slack.url,
        }
        with ServedBot(tmp_path, **settings) as bot:
            said = "".join(bot.start())
            assert "SLACK_BOT_TOKEN is refused by Slack" in said
            telegram.person_says("Hello", chat_id=1000)
            telegram.wait_until(lambda: telegram.visible_texts(1000), timeout=60, what="an answer")
            with urllib.request.urlopen(f"{bot.url}/readyz", timeout=10) as answer:
                ready = json.load(answer)
            assert ready["ready"] is True
            assert "SLACK_BOT_TOKEN" in ready["warnings"][0]


async def accept_in_slack(url, slack, text):
    """Store a question as a service does that ends before it answers."""
    slack.person_says(text, deliver=False)
    with slack.condition:
        post = slack.world.posts[-1]
        body = slack.envelope(slack.message_event(post), "Ev1")
    async with Storage.open(url) as storage:
        await Inbox(storage, lambda *_: None).accept(
            "slack", [message_event(read_message(body), body, is_thread=False)]
        )
    return post.channel


async def read_turns(url):
    async with Storage.open(url) as storage:
        columns = turns.c["transport", "status", "attempts", "failures"]
        rows = await storage.read(lambda connection: connection.execute(select(*columns)).all())
        return [tuple(row)[1:] for row in rows if row.transport == "slack"]


def test_what_was_asked_before_a_token_was_refused_waits_for_the_right_one(tmp_path):
    with BotApi.running() as telegram, SlackApi.running() as slack:
        settings = {
            "DATABASE_URL": (url := f"sqlite:///{tmp_path / 'bot.db'}"),
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_API_URL": telegram.url,
            "SLACK_SIGNING_SECRET": "0" * 32,
            "SLACK_API_URL": slack.url,
        }
        channel = asyncio.run(accept_in_slack(url, slack, "Are you there?"))
        with ServedBot(tmp_path, SLACK_BOT_TOKEN="xoxb-1-1-revoked", **settings) as bot:
            bot.start()
            telegram.person_says("Hello", chat_id=1000)
            telegram.wait_until(lambda: telegram.visible_texts(1000), timeout=60, what="an answer")
        assert asyncio.run(read_turns(url)) == [("queued", 0, 0)]
        with ServedBot(tmp_path, SLACK_BOT_TOKEN=BOT_TOKEN, **settings) as bot:
            bot.start()
            asyncio.run(slack.until(lambda: slack.said(channel)))


def test_where_the_only_platform_refuses_its_token_the_start_says_so_and_ends(tmp_path):
    with BotApi.running() as telegram:
        settings = {
            "DATABASE_URL": f"sqlite:///{tmp_path / 'bot.db'}",
            "TELEGRAM_BOT_TOKEN": "1234567890:" + "A" * 35,
            "TELEGRAM_API_URL": telegram.url,
        }
        with (
            ServedBot(tmp_path, **settings) as bot,
            pytest.raises(AssertionError, match="TELEGRAM_BOT_TOKEN is refused"),
        ):
            bot.start()
