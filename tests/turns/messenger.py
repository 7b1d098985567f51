"""A transport whose platform is a list: for tests of what every transport relies on."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from turns.bots import NO_WAITING

from botservice import Author, FunctionsBasedAgent, InboundMessage, NoMessages, ScriptedChatLLM, Storage
from botservice.conversation.callbacks import StepCallbacks
from botservice.core.states import EventKind
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.turns.commands import Commands, NoCommands
from botservice.turns.inbox import Inbox
from botservice.turns.run_options import RunOptions
from botservice.turns.turn import InboundEvent, Share
from botservice.turns.worker import Worker

PATIENCE_SECONDS = 60
_SWEEP_SECONDS = 0.05  # so that what becomes due is not waited for; who says something else means it


class Messenger:
    """Keeps what was sent, per chat, in the order in which it became visible."""

    name = "messenger"

    def __init__(self) -> None:
        self.visible: dict[str, list[str]] = {}
        self.tries: list[str] = []
        self.read_errors: list[Exception] = []
        self.send_errors: list[Exception] = []
        self.lives: list[Any] = []
        self.make_live: Callable[..., Any] = lambda *_: None
        self.listens_to = "~"  # messages that begin so are not addressed to the bot
        self._ids = itertools.count(1)
        self._messages: dict[str, tuple[str, int]] = {}
        self._changed = asyncio.Condition()

    async def read(self, event):
        if self.read_errors:
            raise self.read_errors.pop(0)
        text = event.raw.decode()
        if text == "(nothing)":
            return None
        return InboundMessage(text, Author(self.name, "7", "alice"), is_addressed=not text.startswith(self.listens_to))

    def plan(self, answer, events):
        return [{"text": part} for part in answer.text.split("|") if part]

    async def send(self, context_keys, delivery):
        async with self._changed:
            self.tries.append(delivery.payload["text"])
            self._changed.notify_all()
        if self.send_errors:
            raise self.send_errors.pop(0)
        return await self.show(context_keys["chat_id"], delivery.payload["text"], delivery.external_id)

    async def show(self, chat: str, text: str, external_id: str | None = None) -> str:
        """Make a text visible, in the place of an earlier message where there is one."""
        async with self._changed:
            texts = self.visible.setdefault(chat, [])
            if external_id is not None:
                texts[self._messages[external_id][1]] = text
            else:
                external_id = str(next(self._ids))
                self._messages[external_id] = (chat, len(texts))
                texts.append(text)
            self._changed.notify_all()
        return external_id

    def live(self, context_keys, events, record):
        made = self.make_live(self, context_keys, record)
        self.lives.append(made)
        return made

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when what is visible fulfils condition."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(condition)

    async def until_tried(self, times: int) -> None:
        """Return when so many messages were sent, or at least tried."""
        await self.until(lambda: len(self.tries) >= times)

    async def shows(self, chat: str, *texts: str) -> None:
        """Return when exactly these texts are visible in a chat."""
        await self.until(lambda: self.visible.get(chat, [])[: len(texts)] == list(texts))
        assert self.visible[chat] == list(texts)


class Office:
    """A worker with its inbox, and a messenger to write through."""

    def __init__(self, storage: Storage, messenger: Messenger, worker: Worker, clock: Callable[[], datetime]) -> None:
        self.storage = storage
        self.messenger = messenger
        self.worker = worker
        self.inbox = Inbox(storage, worker.wake, clock)

    async def write(self, text: str, *, chat: str = "1", order: int, group: str | None = None, key: str | None = None):
        """Hand in one message and return how many events were new."""
        return await self.inbox.accept(
            self.messenger.name, [message(text, chat=chat, order=order, group=group, key=key)]
        )

    async def stop_turn(self, *, chat: str = "1", order: int):
        """Hand in a stop control."""
        event = InboundEvent(f"stop:{chat}:{order}", _keys(chat), order, b"", EventKind.STOP)
        return await self.inbox.accept(self.messenger.name, [event])


def message(text: str, *, chat: str = "1", order: int, group: str | None = None, key: str | None = None):
    """Return a message as a transport hands it in."""
    return InboundEvent(key or f"{chat}:{order}", _keys(chat), order, text.encode(), group_key=group)


def _keys(chat: str) -> dict[str, str]:
    return {"transport": "messenger", "chat_id": chat}


@contextlib.asynccontextmanager
async def office(
    storage: Storage,
    script: Any,
    *,
    messenger: Messenger | None = None,
    others: Sequence[Messenger] = (),
    tools: Sequence[Any] = (),
    toolsets: Sequence[Any] = (),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    max_turns: int = 256,
    sweep_seconds: float = _SWEEP_SECONDS,
    is_started: bool = True,
    selector: Any = None,
    search_k: int = 0,
    budgets: Budgets | None = None,
    access: Access | None = None,
    commands: Commands | None = None,
    callbacks: Any = None,
    share: Share = Share(),  # noqa: B008 - frozen
    gate: Any = None,
    program_seconds: float = 0.0,
) -> AsyncIterator[Office]:
    """Run a worker for a scripted model until the block is left."""
    llm = script if hasattr(script, "chat") else ScriptedChatLLM(script)
    agent = FunctionsBasedAgent(
        tools=tools, toolsets=toolsets, llm=llm, message_selector=selector or NoMessages(), search_k=search_k, prompt=""
    )
    options = RunOptions(
        agent, StepCallbacks(callbacks), 10, clock, NO_WAITING, budgets or Budgets(), access or Access(), gate=gate
    )
    messenger = messenger or Messenger()
    worker = Worker(
        storage,
        options,
        [messenger, *others],
        commands=commands or NoCommands(),
        max_turns=max_turns,
        sweep_seconds=sweep_seconds,
        share=share,
        program_seconds=program_seconds,
    )
    opened = Office(storage, messenger, worker, clock)
    if is_started:
        await worker.start()
    try:
        yield opened
    finally:
        await worker.stop()


class SetClock:
    """A clock that stands still until it is set."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


class HastyClock:
    """A clock on which an hour passes in a second."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()

    def __call__(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=3600 * (self._loop.time() - self._started))


def echo(messages: list[Any]) -> str:
    """Answer with what was said."""
    return f"re: {messages[-1]['content']}"
