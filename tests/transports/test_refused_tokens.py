"""A token that one platform refuses keeps nobody from the other platforms."""

import json
import urllib.request

import pytest
from crash.served import ServedBot
from standins.bot_api import BotApi
from standins.slack_api import SlackApi

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
