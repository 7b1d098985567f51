"""A Bot API stand-in with one private chat, and the real client at it."""

from collections.abc import AsyncIterator, Awaitable, Iterator

import pytest
from bot_api.bot_clients import Refusal, client
from standins.bot_api import BotApi
from telegram import Bot
from telegram.error import BadRequest


@pytest.fixture(autouse=True)
def _times_as_timedelta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")  # or the client warns at every 429, and a warning is an error here


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi.running() as server:
        server.add_private_chat(42)
        yield server


@pytest.fixture
async def bot(api: BotApi) -> AsyncIterator[Bot]:
    async with client(api) as made:
        yield made


@pytest.fixture
def refusal(api: BotApi) -> Refusal:
    """Return what makes a call that must be refused, and gives the reason as it stood on the wire."""

    async def refused(call: Awaitable[object]) -> str:
        with pytest.raises(BadRequest):
            await call
        return api.answers()[-1].description.removeprefix("Bad Request: ")

    return refused
