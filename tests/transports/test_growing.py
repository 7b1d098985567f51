"""An answer that grows is looked at as often as it may be shown, and one that is there at once not at all."""

import asyncio
import gc
import warnings
from typing import Any

import pytest

from botservice.core.messages import ToolCall
from transports.common.growing_answer import AnswerState, GrowingAnswer, Surface

LONG = 3600.0


class Page(Surface):
    """A surface on which everything but the waiting is seen."""

    name = "page"
    errors = (ConnectionError,)

    def __init__(self, *, pause: float = LONG) -> None:
        self.pause_seconds = pause
        self.shown: list[str] = []
        self.looks = 0
        self.has_changed = asyncio.Event()
        self.finished: list[bool] = []

    def pause(self, answer: GrowingAnswer) -> float | None:
        self.looks += 1
        if not answer.text or answer.text in self.shown:
            return None
        return 0.0 if not self.shown else self.pause_seconds

    async def update(self, answer: GrowingAnswer) -> None:
        self.shown.append(answer.text)
        self.has_changed.set()

    async def finish(self, *, was_opened: bool) -> None:
        self.finished.append(was_opened)


class FailingPage(Page):
    """A surface whose calls fail while they are told to, and say when to try again."""

    def __init__(self, seconds: float | None, error: Exception) -> None:
        super().__init__(pause=0.0)
        self.seconds, self.error, self.fails = seconds, error, 1

    async def update(self, answer: GrowingAnswer) -> None:
        if self.fails:
            self.fails -= 1
            raise self.error
        await super().update(answer)

    def after_failure(self, error: Exception) -> float | None:
        return self.seconds


async def test_what_was_just_shown_is_not_looked_at_again_for_every_piece() -> None:
    page = Page()
    answer = GrowingAnswer(page, first_sign_seconds=0.0)
    for number in range(500):
        answer.on_text(f"{number} ")
        await asyncio.sleep(0)
    assert len(page.shown) == 1
    assert page.looks <= 4, "before there was anything, when it was due, and once after it was shown"
    await answer.close()
    await answer.close()
    assert page.finished == [True]


async def test_an_answer_that_is_there_at_once_is_shown_on_nothing() -> None:
    page = Page()
    answer = GrowingAnswer(page, first_sign_seconds=LONG)
    answer.on_text("It is there.")
    await asyncio.sleep(0)
    await answer.close()
    assert (page.shown, page.looks, page.finished) == ([], 0, [False])


async def test_an_answer_that_ends_as_it_is_shown_leaves_nothing_that_was_begun_and_not_awaited() -> None:
    page = Page()
    answer = GrowingAnswer(page, first_sign_seconds=LONG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        answer._open()  # the first sign is due at this moment
        await answer.close()
        del answer  # its tasks hold what they were handed
        gc.collect()
    assert (page.looks, page.finished, [str(each.message) for each in warned]) == (0, [True], [])


async def test_an_answer_grows_on_after_the_time_that_a_platform_asks_to_wait() -> None:
    page = FailingPage(0.0, ConnectionError())
    answer = GrowingAnswer(page, first_sign_seconds=0.0)
    answer.on_text("It grows.")
    async with asyncio.timeout(30):
        await page.has_changed.wait()
    await answer.close()
    assert page.shown == ["It grows."]


@pytest.mark.parametrize(
    ("error", "events"), [(ConnectionError(), ["transport.live_ended"]), (ValueError(), ["transport.live_failed"])]
)
async def test_a_surface_that_fails_for_good_is_asked_no_more(caplog, error: Exception, events: list[str]) -> None:
    caplog.set_level("INFO", "transports.common")
    page = FailingPage(None, error)
    answer = GrowingAnswer(page, first_sign_seconds=0.0)
    answer.on_text("It grows.")
    async with asyncio.timeout(30):
        while not caplog.records:  # noqa: ASYNC110 - the log wakes nobody
            await asyncio.sleep(0)
    answer.on_text(" On and on.")
    await asyncio.sleep(0)
    await answer.close()
    assert (page.shown, [each.msg for each in caplog.records]) == ([], events)


async def test_a_call_that_fails_after_the_answer_is_there_is_no_error_of_the_service() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    begun, may_fail = asyncio.Event(), asyncio.Event()

    class Hanging(Page):
        async def update(self, answer: GrowingAnswer) -> None:
            begun.set()
            await may_fail.wait()
            raise ConnectionError

    answer = GrowingAnswer(Hanging(), first_sign_seconds=0.0)
    answer.on_text("It grows.")
    await begun.wait()
    closing = asyncio.create_task(answer.close())
    await asyncio.sleep(0)
    may_fail.set()
    await closing
    del answer, closing
    gc.collect()
    assert not told


def test_what_was_said_before_a_tool_ran_is_no_part_of_the_answer() -> None:
    answer, call = AnswerState(), ToolCall("1", "look_up")
    answer.on_text("Let me see.")
    answer.on_call(call)
    assert (answer.text, answer.earlier, answer.at_work.name) == ("", "Let me see.\n\n", "look_up")
    answer.on_progress(call, "page 3")
    assert [(each.said, each.is_done) for each in answer.steps] == [("page 3", False)]
    answer.on_text("It is")
    answer.on_text(" 42.")
    assert (answer.text, answer.at_work) == ("It is 42.", None)
    assert [(each.said, each.is_done) for each in answer.steps] == [("", True)]


def test_an_answer_that_begins_again_repeats_nothing() -> None:
    answer = AnswerState()
    answer.on_text("The first try")
    answer.on_restart()
    answer.on_text("The second")
    assert (answer.text, answer.earlier) == ("The second", "The first try\n\n")


def test_calls_at_the_same_time_are_kept_apart_also_where_a_model_gives_them_no_ids() -> None:
    answer, calls = AnswerState(), [ToolCall("", "look_up", {"n": number}) for number in range(2)]
    for call in calls:
        answer.on_call(call)
    answer.on_call_end(calls[0], is_error=True)
    assert [(each.is_done, each.has_failed) for each in answer.steps] == [(True, True), (False, False)]
