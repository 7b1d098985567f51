"""An answer that grows is looked at as often as it may be shown, and one that is there at once not at all."""

import asyncio
import gc
from typing import Any

from transports.common.growing_answers import Growing, joined
from transports.telegram.client import BotClient
from transports.telegram.drafts import TelegramDraft, TelegramTempo
from transports.telegram.work_in_progress import TelegramLive

LONG = 3600.0


class Page:
    patience_seconds = 5.0
    refresh_seconds = None

    def __init__(self) -> None:
        self.shown: list[str] = []

    def rest(self) -> float:
        return LONG if self.shown else 0.0

    def fade(self) -> None:
        raise AssertionError("nothing here fades")


class Answer:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.looks = 0
        self._text: list[str] = []
        self._changed = asyncio.Event()
        self._growing = Growing(self._changed)
        self._growing.begin(self._growing.grow(page, self._due, self._paint))

    def say(self, piece: str) -> None:
        self._text.append(piece)
        self._changed.set()

    async def close(self) -> None:
        await self._growing.close()

    def _due(self) -> float | None:
        self.looks += 1
        return 0.0 if joined(self._text) and not self.page.shown else None

    async def _paint(self) -> None:
        self.page.shown.append(joined(self._text))


async def test_what_was_just_shown_is_not_looked_at_again_for_every_piece() -> None:
    answer = Answer(Page())
    for number in range(500):
        answer.say(f"{number} ")
        await asyncio.sleep(0)
    assert len(answer.page.shown) == 1
    assert answer.looks <= 4, "before there was anything, when it was due, and once after it was shown"
    await answer.close()


async def test_an_answer_that_is_there_at_once_is_shown_on_nothing() -> None:
    begun: list[str] = []

    def open_draft() -> TelegramDraft:
        begun.append("draft")
        raise AssertionError("nothing is drawn")

    client = BotClient("1:token", "http://127.0.0.1:9")
    answer = TelegramLive(client, TelegramTempo(first_sign=LONG), {"chat_id": "42"}, open_draft)
    answer.on_text("It is there.")
    await asyncio.sleep(0)
    await answer.close()
    await client.close_connections()
    assert not begun


async def test_a_call_that_fails_after_the_answer_is_there_is_no_error_of_the_service() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    begun, may_fail = asyncio.Event(), asyncio.Event()
    growing = Growing(asyncio.Event())

    async def fail() -> None:
        begun.set()
        await may_fail.wait()
        raise ConnectionError

    async def show(growing: Growing) -> None:
        growing._surface = Page()
        await growing.finish(fail())

    growing.begin(show(growing))
    await begun.wait()
    closing = asyncio.create_task(growing.close())
    await asyncio.sleep(0)
    may_fail.set()
    await closing
    del growing, closing
    gc.collect()
    assert not told
