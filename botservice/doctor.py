"""Checking every setting against the real thing."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from botservice.app import build_service
from botservice.errors import BotServiceError
from botservice.settings import Settings, is_loopback, reveal
from botservice.storage import Storage
from botservice.telemetry import redact

_LIMIT_SECONDS = 30.0
_SHORTEST_ADMIN_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check.

    Attributes:
        text: What is so, and what to do where that is wrong.
        is_wrong: Whether something has to be done.
    """

    name: str
    text: str
    is_wrong: bool = False
    is_off: bool = False

    @property
    def mark(self) -> str:
        """One sign for the beginning of a line."""
        return "✗" if self.is_wrong else "·" if self.is_off else "✓"


async def check_everything(settings: Settings) -> list[Finding]:
    """Return what is right, what is off and what is wrong, one finding for each part."""
    checks: list[tuple[str, Callable[[Settings], Awaitable[Finding]]]] = [
        ("database", _check_database),
        ("model", _check_model),
        ("telegram", _check_telegram),
        ("web", _check_web),
    ]
    return [await _check(name, check, settings) for name, check in checks]


async def _check(name: str, check: Callable[[Settings], Awaitable[Finding]], settings: Settings) -> Finding:
    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            return await check(settings)
    except BotServiceError as error:
        return Finding(name, redact(str(error)), is_wrong=True)
    except TimeoutError:
        return Finding(name, f"no answer within {_LIMIT_SECONDS:g} seconds", is_wrong=True)


async def _check_database(settings: Settings) -> Finding:
    async with Storage.open(settings.database_url, migrate=False) as storage:
        started = time.monotonic()
        await storage.ping()
        return Finding("database", f"{storage.name} answers in {(time.monotonic() - started) * 1000:.0f} ms")


async def _check_model(settings: Settings) -> Finding:
    if not settings.has_model:
        return Finding("model", "none: the demo answers; set OPENAI_API_KEY or OPENAI_BASE_URL", is_off=True)
    llm = getattr(build_service(settings).agent, "llm", None)
    if llm is None:
        return Finding("model", "your own agent: not checked", is_off=True)
    response = await llm.chat([{"role": "user", "content": "Say: ready"}])
    await llm.close()
    return Finding("model", f"{llm.model} answers: {response.text.strip()[:40]!r}")


async def _check_telegram(settings: Settings) -> Finding:
    if settings.telegram_bot_token is None:
        return Finding("telegram", "off; set TELEGRAM_BOT_TOKEN, which @BotFather gives you", is_off=True)
    from transports.registry import build_telegram

    return Finding("telegram", await build_telegram(settings).check())


async def _check_web(settings: Settings) -> Finding:
    token = reveal(settings.admin_token)
    is_open = not is_loopback(settings.host) or settings.public_url is not None
    if is_open and token is None:
        return Finding("web", "the pages are off: this listener is public; set ADMIN_TOKEN to open them", is_off=True)
    if token is not None and len(token) < _SHORTEST_ADMIN_TOKEN:
        return Finding(
            "web", f"ADMIN_TOKEN can be guessed: make it {_SHORTEST_ADMIN_TOKEN} characters or longer", is_wrong=True
        )
    return Finding("web", f"listens on {settings.host}:{settings.port}")
