"""An answer that grows is looked at as often as it may be shown, and one that is there at once not at all."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from transports.growing_answers import Growing

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


class Answer(Growing):
    def __init__(self, page: Page, first_sign_seconds: float) -> None:
        self.page = page
        self.looks = 0
        self.has_begun = asyncio.Event()
        super().__init__(first_sign_seconds)

    def say(self, piece: str) -> None:
        self._text.append(piece)
        self._changed.set()

    def _begin(self) -> Iterable[Coroutine[Any, Any, None]]:
        self.has_begun.set()
        return (self._grow(self.page),)

    def _due(self) -> float | None:
        self.looks += 1
        return 0.0 if self._said() and not self.page.shown else None

    async def _paint(self) -> None:
        self.page.shown.append(self._said())


async def test_what_was_just_shown_is_not_looked_at_again_for_every_piece() -> None:
    answer = Answer(Page(), 0.0)
    await answer.has_begun.wait()
    for number in range(500):
        answer.say(f"{number} ")
        await asyncio.sleep(0)
    assert len(answer.page.shown) == 1
    assert answer.looks <= 4, "before there was anything, when it was due, and once after it was shown"
    await answer.close()


async def test_an_answer_that_is_there_at_once_is_shown_on_nothing() -> None:
    answer = Answer(Page(), LONG)
    answer.say("It is there.")
    await asyncio.sleep(0)
    await answer.close()
    assert not answer.has_begun.is_set()
