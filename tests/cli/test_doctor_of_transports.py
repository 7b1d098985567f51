"""`botservice doctor` tries what people reach the service by: Telegram, the web server, Slack."""

from typing import Any

import pytest
from cli.examining import examine, free_port
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi


async def test_a_bot_that_answers_is_named() -> None:
    with BotApi.running() as api:
        finding = await examine("telegram", telegram_bot_token=api.token, telegram_api_url=api.url)
    assert finding.mark == "✓"
    assert "@stand_in_bot answers and is polled" in finding.text


async def test_a_token_that_telegram_does_not_know_is_wrong() -> None:
    with BotApi.running() as api:
        finding = await examine(
            "telegram", telegram_bot_token="7140000001:AAanother-token-of-somebody-else", telegram_api_url=api.url
        )
    assert finding.is_wrong
    assert "@BotFather" in finding.text
    assert "AAanother" not in finding.text


async def test_a_bot_api_that_is_not_there_is_wrong() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    finding = await examine("telegram", telegram_bot_token="1:hidden-token", telegram_api_url=url)
    assert finding.is_wrong
    assert "TELEGRAM_API_URL" in finding.text
    assert "hidden" not in finding.text


async def test_a_server_that_is_no_bot_api_is_wrong() -> None:
    with OpenAIApi.running() as api:
        finding = await examine("telegram", telegram_bot_token="1:hidden-token", telegram_api_url=api.url)
    assert finding.is_wrong


async def test_a_webhook_that_is_not_set_yet_is_no_fault() -> None:
    with BotApi.running() as api:
        public = f"http://127.0.0.1:{free_port()}"
        finding = await examine("telegram", telegram_bot_token=api.token, telegram_api_url=api.url, public_url=public)
    assert finding.mark == "✓"
    assert f"{public}/telegram/webhook" in finding.text


# The web server


@pytest.mark.parametrize(
    ("values", "is_wrong", "text"),
    [
        ({}, True, "WEB_ACCESS=link needs PUBLIC_URL, where the links lead and TELEGRAM_BOT_TOKEN or SLACK_BOT_TOKEN"),
        ({"slack_bot_token": "xoxb-1"}, True, "WEB_ACCESS=link needs PUBLIC_URL"),
        ({"slack_bot_token": "xoxb-1", "public_url": "http://localhost:1"}, False, "the inspector is off"),
        (
            {"slack_bot_token": "xoxb-1", "public_url": "http://localhost:1", "admin_token": "a-long-admin-token"},
            False,
            "ADMIN_TOKEN opens everything",
        ),
    ],
)
async def test_what_people_need_to_come_by_links_is_named(values: dict[str, Any], is_wrong: bool, text: str) -> None:
    finding = await examine("browser", web_access="link", **values)
    assert finding.is_wrong == is_wrong
    assert text in finding.text


@pytest.mark.parametrize(
    ("values", "mark", "says"),
    [
        ({}, "✓", "this machine alone"),
        ({"host": "0.0.0.0"}, "·", "ADMIN_TOKEN opens"),
        ({"admin_token": "x" * 16}, "✓", "ask for ADMIN_TOKEN"),
    ],
)
async def test_who_may_see_the_pages(values: dict[str, Any], mark: str, says: str) -> None:
    finding = await examine("browser", **values)
    assert finding.mark == mark
    assert says in finding.text


async def test_a_port_that_somebody_else_has_is_wrong() -> None:
    with OpenAIApi.running() as api:
        finding = await examine("port", port=int(api.url.rpartition(":")[2]))
    assert finding.is_wrong
    assert "set PORT" in finding.text


async def test_a_public_address_that_leads_elsewhere_is_wrong() -> None:
    with OpenAIApi.running() as api:
        finding = await examine("public", public_url=api.url)
    assert finding.is_wrong
    assert "serve" in finding.text


async def test_slack_settings_are_not_passed_over_in_silence() -> None:
    finding = await examine("slack", slack_bot_token="xoxb-hidden", slack_api_url=f"http://127.0.0.1:{free_port()}/api")
    assert finding.is_wrong
    assert "hidden" not in finding.text
