"""The real Telegram client, at the stand-in."""

from collections.abc import Awaitable, Callable

from standins.bot_api import BotApi
from telegram import Bot
from telegram.request import HTTPXRequest

Refusal = Callable[[Awaitable[object]], Awaitable[str]]


def client(api: BotApi, token: str | None = None) -> Bot:
    """Return the real client, without the 40 ms that it takes to load certificates nobody needs here."""
    plain = {"verify": False}
    return Bot(
        token or api.token,
        base_url=api.base_url,
        base_file_url=api.base_file_url,
        request=HTTPXRequest(httpx_kwargs=plain),
        get_updates_request=HTTPXRequest(httpx_kwargs=plain),
    )
