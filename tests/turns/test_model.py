"""The states of a turn, walked through in any order: whatever happens when, docs/turns.md holds.

Nothing runs by itself: the model and the platform wait for a pass, the clock stands still until it is set, and the
worker looks for work when it is told to. So each step ends where nothing can move any more, and is looked at there.
"""

import asyncio
import contextlib
import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from standins.patience import PATIENT
from turns.messenger import Messenger, SetClock, message, office

from botservice import (
    AgentContext,
    Author,
    BotServiceError,
    InboundMessage,
    LLMError,
    Storage,
    StorageError,
    ToolCall,
    tool,
)
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.conversation.reminder_queries import NewReminder, insert_reminder
from botservice.core.errors import DeliveryError
from botservice.core.states import EventKind
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import events, turns
from botservice.turns.administration import retry_turn
from botservice.turns.backlog_queries import find_stops
from botservice.turns.call_decisions import decide
from botservice.turns.call_queries import find_open
from botservice.turns.turn import InboundEvent

PATIENCE_SECONDS = 60
NEVER = 3600.0
_numbers = itertools.count(1)


class Gate:
    """Where something waits until a test lets it on, with or without an error."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        passing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(passing)
        try:
            await passing
        finally:
            self.waiting.remove(passing)

    def let_pass(self, error: Exception | None = None) -> bool:
        """Let the first on; return whether one waited."""
        for passing in self.waiting:
            if not passing.done():
                passing.set_exception(error) if error is not None else passing.set_result(None)
                return True
        return False


class GatedPlatform(Messenger):
    """A platform that takes each message when it is told to. Messages say who wrote them: `bob: hello`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def read(self, event: Any) -> InboundMessage:
        who, _, text = event.raw.decode().partition(": ")
        return InboundMessage(text or who, Author(self.name, who, who), external_id=event.key)

    async def send(self, context_keys: Any, delivery: Any) -> Any:
        await self.gate.wait()
        return await super().send(context_keys, delivery)


@dataclass
class Walk:
    """One walk through the states: what was asked for, and what may have become of it."""

    storage: Storage
    run: int = field(default_factory=lambda: next(_numbers))
    clock: SetClock = field(default_factory=lambda: SetClock(datetime(2026, 6, 1, 12, tzinfo=UTC)))
    platform: GatedPlatform = field(default_factory=GatedPlatform)
    model: Gate = field(default_factory=Gate)
    order: int = 0
    stoppable: set[int] = field(default_factory=set)
    bot: Any = None
    allowed: set[str] = field(default_factory=set)
    paid: list[str] = field(default_factory=list)

    @property
    def keys(self) -> dict[str, str]:
        return {"transport": "messenger", "chat_id": f"walk {self.run}"}

    async def think(self, prompt: Any) -> Any:
        await self.model.wait()
        asked = [each["content"] for each in prompt if each["role"] == "user"][-1]
        if "pay" in asked and prompt[-1]["role"] != "tool":
            return ToolCall("", "pay", {"what": asked})
        return f"{prompt[-1]['content']} 1|2|3"

    def till(self) -> Any:
        """Return a tool that asks first; it takes note of what it is called for."""

        @tool(needs_approval=True)
        async def pay(what: str) -> str:
            """Pay."""
            self.paid.append(what)
            return "paid"

        return pay

    async def go(self, steps: list[str]) -> None:
        """Take steps, a process after the other, until one walks to the end."""
        self.storage.now = self.clock  # type: ignore[method-assign]  # whoever forgets goes by it
        left = iter([*steps, "end"])
        step = ""
        while step != "end":
            async with office(
                self.storage,
                self.think,
                messenger=self.platform,
                clock=self.clock,
                sweep_seconds=NEVER,
                tools=[self.till()],
            ) as self.bot:
                await self.rest()
                for step in left:
                    if step == "kill":
                        break
                    await getattr(self, step)()
                    await self.rest()

    async def rest(self) -> None:
        """Return when nothing can move any more, and nothing is found that could."""
        worker = self.bot.worker
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(2):
                await self._settle()
                found, stops = await self.storage.read(partial(worker._look, resting=()))
                worker._take_up(found)
                for context_id, order_key in stops.items():
                    if order_key > worker._context_work.runs[context_id].heard:
                        worker._spawn(worker._stop_turn(context_id))
                await self._settle()
        found, _ = await self.storage.read(partial(worker._look, resting=()))
        assert found == [], "what has to wait is not looked at again and again"
        await self.storage.read(self._check)

    async def _settle(self) -> None:
        worker = self.bot.worker
        while worker._tasks or len(worker._busy) > self._held():  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.001)

    def _held(self) -> int:
        gates = (self.model, self.platform.gate)
        return sum(not each.done() for gate in gates for each in gate.waiting)

    def _check(self, connection: Any) -> None:
        context_id = find_context(connection, ContextKeys.of(self.keys))
        if context_id is None:
            return
        rows = connection.execute(select(turns).where(turns.c.context_id == context_id)).all()
        assert sum(row.status == "running" for row in rows) <= 1, "one turn at a time"
        assert len(self.paid) == len(set(self.paid)), "nothing is paid twice"
        assert set(self.paid) <= self.allowed, "nothing is paid that nobody allowed"
        is_busy = context_id in self.bot.worker._busy
        assert is_busy or not find_stops(connection, [context_id]), "no stop is left to end a later turn"
        for row in rows:
            assert row.outcome != "stopped" or row.id in self.stoppable, "a stop is about what began before it"
            assert row.outcome != "failed" or row.status == "set_aside", "it is listed"
        asked = select(events.c.key).outerjoin(turns, turns.c.id == events.c.turn_id)
        lost = asked.where(events.c.context_id == context_id, events.c.kind == "message", turns.c.id.is_(None))
        assert [each for each in connection.execute(lost).scalars() if ":bob:" in each] == [], "no question is lost"

    async def accept(self) -> None:
        await self._say("bob")

    async def pay(self) -> None:
        await self._say("bob", "pay ")

    async def allow(self) -> None:
        await self._decide(is_allowed=True)

    async def deny(self) -> None:
        await self._decide(is_allowed=False)

    async def _decide(self, *, is_allowed: bool) -> None:
        context = await AgentContext.get_or_create(self.storage, self.keys)
        pending = await self.storage.read(lambda connection: find_open(connection, context.id))
        call = next((each for each in pending if each.is_waiting), None)
        if call is not None and await decide(
            context, call.id, is_allowed=is_allowed, is_always=False, now=self.clock()
        ):
            if is_allowed:
                step = (await AgentContext.load(self.storage, context.id, call.turn_id)).open_step
                assert step is not None
                self.allowed.add(step.item.get_value("tool_calls")[0].arguments["what"])
            self.bot.worker.wake(context.id, EventKind.DECISION)

    async def expire(self) -> None:
        self.clock.now += timedelta(hours=25)

    async def of_another(self) -> None:
        await self._say("alice")

    async def _say(self, who: str, what: str = "") -> None:
        self.order += 1
        event = message(f"{who}: {what}q{self.order}", chat=self.keys["chat_id"], order=self.order)
        key = f"{self.run}:{who}:{self.order}"
        await self.bot.inbox.accept("messenger", [InboundEvent(key, self.keys, event.order_key, event.raw)])

    async def stop(self) -> None:
        self.order += 1
        begun = select(turns.c.id).where(turns.c.status.in_(["running", "waiting"]))
        self.stoppable |= set(await self.storage.read(lambda connection: connection.execute(begun).scalars().all()))
        event = InboundEvent(f"{self.run}:stop:{self.order}", self.keys, self.order, b"", EventKind.STOP)
        await self.bot.inbox.accept("messenger", [event])

    async def edit(self) -> None:
        self.order += 1
        key = f"{self.run}:bob:{max(1, self.order - 2)}"
        raw = f"bob: e{self.order}".encode()
        event = InboundEvent(f"{self.run}:e{self.order}", self.keys, self.order, raw, EventKind.EDIT, external_id=key)
        await self.bot.inbox.accept("messenger", [event])

    async def remind(self) -> None:
        def write(connection: Any) -> None:
            context_id = find_context(connection, ContextKeys.of(self.keys))
            if context_id is not None:
                self.order += 1
                now = self.clock()
                key = f"{self.run}:r{self.order}"
                insert_reminder(connection, NewReminder(key, context_id, "messenger", "tea", now, now, is_task=True))

        await self.storage.write(write)

    async def forget(self) -> None:
        with contextlib.suppress(StorageError):  # nothing is kept of her yet
            await forget_person(self.storage, Author("messenger", "alice"))

    async def retry(self) -> None:
        def find(connection: Any) -> list[int]:
            context_id = find_context(connection, ContextKeys.of(self.keys))
            aside = select(turns.c.id).where(turns.c.context_id == context_id, turns.c.status == "set_aside")
            return list(connection.execute(aside).scalars())

        for turn_id in await self.storage.read(find):
            with contextlib.suppress(BotServiceError):  # what it takes to try it again may be forgotten
                await retry_turn(self.storage, turn_id, self.clock())
        await self.later()

    async def step(self) -> None:
        self.model.let_pass()

    async def fail(self) -> None:
        self.model.let_pass(LLMError("away", is_transient=False))

    async def deliver(self) -> None:
        self.platform.gate.let_pass()

    async def refuse(self) -> None:
        self.platform.gate.let_pass(DeliveryError("not now", retry_after_seconds=60))

    async def later(self) -> None:
        self.clock.now += timedelta(minutes=2)

    async def end(self) -> None:
        """Let everything pass: nothing stays open, and nobody waits for an answer."""
        for _ in range(400):
            await self.rest()
            if not (self.model.let_pass() or self.platform.gate.let_pass()):
                await self.expire()
                await self.rest()
                if not self._held():
                    break
        context = ContextKeys.of(self.keys)

        def left(connection: Any) -> list[str]:
            context_id = find_context(connection, context)
            is_open = turns.c.status.in_(["queued", "running", "waiting"])
            return list(
                connection.execute(select(turns.c.status).where(turns.c.context_id == context_id, is_open)).scalars()
            )

        assert await self.storage.read(left) == []


STEPS = [
    *("accept", "accept", "of_another", "stop", "edit", "remind", "forget", "kill", "retry"),
    *("pay", "pay", "allow", "deny", "expire"),
    *("step", "step", "fail", "deliver", "deliver", "refuse", "later"),
]


def walk(url: str, steps: list[str]) -> None:
    async def run() -> None:
        async with Storage.open(url, limits=PATIENT) as storage:
            await Walk(storage).go(steps)

    asyncio.run(run())


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=20))
@pytest.mark.slow
def test_whatever_happens_when_every_question_comes_to_its_end(walk_url: str, steps: list[str]) -> None:
    walk(walk_url, steps)


@pytest.mark.any_database  # walks are drawn on both
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param("accept step deliver stop deliver remind step", id="a stop while an answer is being sent"),
        pytest.param("accept stop accept step", id="a stop, and then another question"),
        pytest.param("accept accept stop step deliver", id="a stop while one runs and one waits"),
        pytest.param("accept step refuse accept later deliver", id="a message that is not taken"),
        pytest.param(
            "of_another step deliver deliver deliver accept forget step", id="somebody is forgotten beside a question"
        ),
        pytest.param("accept kill stop kill accept step", id="a stop while nobody is there"),
        pytest.param("accept fail retry stop step", id="a stop of what is tried again"),
        pytest.param("pay step deliver accept allow step deliver step", id="a word beside another question"),
        pytest.param("pay step kill deliver allow kill step", id="a word between two processes"),
        pytest.param("pay step allow stop step", id="a stop right behind a word"),
        pytest.param("of_another step deliver pay step forget allow step", id="somebody is forgotten"),
        pytest.param("pay step refuse expire step", id="a question that is not taken, until it is over"),
    ],
)
def test_what_once_went_wrong_goes_right(walk_url: str, steps: str) -> None:
    walk(walk_url, steps.split())


@pytest.fixture
def walk_url(storage_url: str) -> str:
    """The address of a database with tables."""
    return storage_url
