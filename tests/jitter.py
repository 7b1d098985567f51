"""`--jitter SEED`: late answers, slow databases, tardy tasks and hiccups, to find the tests that need luck.

What is late, how often and by how much is drawn for each test from the seed and the test's name, so that a run can be
repeated; threads still take turns as they like. Every place has habits of its own: what finds a race is not that all
is slow, but that one thing is slow and another is not.
"""

import asyncio
import functools
import random
import sys
import threading
import time
from asyncio import base_events
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

_PRODUCT = tuple(f"{Path(__file__).parents[1] / name}/" for name in ("botservice", "transports"))
_ASYNCIO = str(Path(asyncio.__file__).parent)
_HABITS = ((0.0, 0.0), (0.0, 0.0), (0.15, 0.05), (0.5, 0.02), (0.3, 0.3), (1.0, 0.1))
"""How often a place is late, and by how many seconds at most."""
_PATIENCE_SECONDS = 6.0
"""So late is one place in all during a test: whoever asks again and again would never come to an end otherwise."""


class Jitter:
    """What is late in one test."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)
        self._seed = seed
        self._habits: dict[str, tuple[float, float]] = {}
        self._left: dict[str, float] = {}

    def seconds(self, place: str) -> float:
        """Return how late a place is this time."""
        if place not in self._habits:  # drawn from its name: which place is asked first may differ
            self._habits[place] = random.Random(f"{self._seed} {place}").choice(_HABITS)
        often, longest = self._habits[place]
        left = self._left.get(place, _PATIENCE_SECONDS)
        if left <= 0 or self.chance.random() >= often:
            return 0.0
        drawn = self.chance.uniform(0.0, longest)
        self._left[place] = left - drawn
        return drawn


_now: Jitter | None = None


def seconds(place: str) -> float:
    """Return how late a place is this time, in the test that runs."""
    return 0.0 if _now is None else _now.seconds(place)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a person shake the tests."""
    parser.addoption("--jitter", metavar="SEED", help="delay what tests wait for by chance, to find those that race")


def pytest_configure(config: pytest.Config) -> None:
    """Make late what is asked for, where it is asked for."""
    if config.getoption("--jitter") is not None:
        _shake_servers()
        _shake_clients()
        _shake_storage()
        _shake_loops()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Draw again for each test."""
    global _now  # noqa: PLW0603 - tests run one after the other
    seed = item.config.getoption("--jitter")
    if seed is None:
        return (yield)
    _now = Jitter(f"{seed} {item.nodeid}")
    before = sys.getswitchinterval()
    sys.setswitchinterval(_now.chance.choice([0.00001, before, 0.02]))
    try:
        return (yield)
    finally:
        sys.setswitchinterval(before)
        _now = None


def _shake_servers() -> None:
    from standins.bot_api.posting import Poster
    from standins.bot_api.updates import Updates
    from standins.serving import Exchange
    from standins.slack_api import SlackApi
    from standins.slack_api.events import Events

    _late(Exchange, "body", before="request")
    _late(Exchange, "start", before="answer")
    _late(Exchange, "write", before="piece")
    _late(Poster, "post", before="update", after="update-answer")
    _late(SlackApi, "_call", before="slack-call", after="slack-answer")
    _late(SlackApi, "_respond", before="slack-call", after="slack-answer")
    _late(Events, "_by_http", before="slack-event", after="slack-event-answer")
    _late(Events, "_by_socket", before="slack-envelope")
    take = Updates.take

    @functools.wraps(take)
    def take_some(self: Updates, call: Any) -> Any:
        if _now is not None and seconds("batch"):
            call.params["limit"] = _now.chance.randint(1, 2)
        return take(self, call)

    _put(Updates, "take", take_some)


def _shake_clients() -> None:
    """Let the product hear late of what it has done, and tests of what they wait for."""
    import aiohttp
    import httpx
    from standins.bot_api.watching import Watching
    from standins.openai_api import OpenAIApi
    from standins.slack_api import SlackApi
    from turns.messenger import Messenger

    from botservice import ScriptedChatLLM

    _late(ScriptedChatLLM, "chat", before="model", after="model-answer")
    _late(Messenger, "read", before="read")
    _late(Messenger, "send", before="send", after="sent")
    _late(httpx.AsyncHTTPTransport, "handle_async_request", before="ask", after="heard")
    _late(aiohttp.ClientSession, "_request", before="ask", after="heard")
    for watching in (Watching, SlackApi, Messenger):
        _late(watching, "until", after="test")
    for name in ("message", "messages", "call"):
        _late(Watching, name, after="test")
    for name in ("call", "end"):
        _late(OpenAIApi, name, after="test")


def _shake_storage() -> None:
    from botservice.storage import readers, writer

    _held(writer.Writer, "_commit", "write")
    _held(writer, "_resolve", "written")
    _held(readers._ReaderThread, "attempt", "reading")
    _held(readers, "_resolve", "been-read")


def _shake_loops() -> None:
    """Let tasks of the product begin late, and whole loops stand still for a moment."""
    create_task, run_once = base_events.BaseEventLoop.create_task, base_events.BaseEventLoop._run_once  # type: ignore[attr-defined] # private

    @functools.wraps(create_task)
    def create_late(self: Any, coro: Any, **options: Any) -> Any:
        delay = seconds("task") if _is_of_product(coro) else 0.0
        return create_task(self, _begin_late(coro, delay) if delay else coro, **options)

    def run_haltingly(self: Any) -> None:
        if _now is not None and _now.chance.random() < 0.01:
            time.sleep(seconds(f"loop of {threading.current_thread().name}"))
        run_once(self)

    _put(base_events.BaseEventLoop, "create_task", create_late)
    _put(base_events.BaseEventLoop, "_run_once", run_haltingly)


def _is_of_product(coro: object) -> bool:
    """Return whether the product makes a task of a coroutine of its own: tests may count on their order."""
    code = getattr(coro, "cr_code", None)
    if code is None or not code.co_filename.startswith(_PRODUCT):
        return False
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_ASYNCIO):
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(_PRODUCT)


async def _begin_late(coro: Coroutine[Any, Any, Any], delay: float) -> Any:
    try:
        await asyncio.sleep(delay)
    except BaseException:
        coro.close()
        raise
    return await coro


def _late(owner: Any, name: str, *, before: str = "", after: str = "") -> None:
    """Have an async function begin late, or be done late."""
    function = getattr(owner, name)

    @functools.wraps(function)
    async def late(*args: Any, **options: Any) -> Any:
        if before and (delay := seconds(before)):
            await asyncio.sleep(delay)
        result = await function(*args, **options)
        if after and (delay := seconds(after)):
            await asyncio.sleep(delay)
        return result

    _put(owner, name, late)


def _held(owner: Any, name: str, place: str) -> None:
    """Have a function of a thread begin late."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def held(*args: Any, **options: Any) -> Any:
        if delay := seconds(place):
            time.sleep(delay)
        return function(*args, **options)

    _put(owner, name, held)


def _put(owner: Any, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)
