"""What the tests of several processes see from outside."""

import time
from collections.abc import Callable
from typing import Any

import httpx
from crash.served import ServedBot
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi


def settings(llm: OpenAIApi, api: BotApi, url: str) -> dict[str, str]:
    """Return the settings of every process of one service; the platform is told where to find one of them."""
    return {
        "DATABASE_URL": url,
        "OPENAI_BASE_URL": llm.base_url,
        "OPENAI_MODEL": "gpt-5.5",
        "TELEGRAM_BOT_TOKEN": api.token,
        "TELEGRAM_API_URL": api.url,
        "PUBLIC_URL": "https://bot.example",
    }


def rows(url: str, query: str) -> list[Any]:
    """Return what a Postgres has."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query)).all()]


def said(url: str) -> list[Any]:
    """Return everything that was said, in its order."""
    return rows(url, "SELECT role, text FROM messages ORDER BY context_id, position")


def is_ready(bot: ServedBot) -> bool:
    """Return whether a process says that it can work."""
    return httpx.get(f"{bot.url}/readyz", timeout=60, verify=False).is_success


def wait_for(condition: Callable[[], bool], *, seconds: float = 60) -> None:
    """Return once condition holds."""
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it did not come about"
        time.sleep(0.02)
