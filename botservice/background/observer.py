"""The observer: it finds conversations to read, has the model read them, and stores notes and facts."""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Final, Self

from botservice.background import queries
from botservice.background.observed_messages import Stretch, read_stretch
from botservice.background.observer_reading import Observation, StretchReader
from botservice.background.observer_schedule import next_end, note_plans, plan_readings
from botservice.conversation.context import AgentContext
from botservice.core.errors import (
    BotServiceError,
    BudgetExceeded,
    ClaimLost,
    DatabaseInUse,
    LLMError,
    StorageUnavailable,
)
from botservice.history.notes import NOTES_TOKENS
from botservice.llm.chat import ChatLLM
from botservice.llm.tokens import count_aside, counter_for
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.people.names import is_guest
from botservice.storage.activity import in_background
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage

__all__ = ["Observation", "Observer"]

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0
_MOST_TOKENS: Final = 4_000  # that are read at a time
_AT_ONCE: Final = 4  # conversations
_REST_PER_LOOK: Final = 3.0  # times as long as a look took: of many new conversations, answers come first
# Contexts count from 1: this claim says which of the replicas observes. Upkeep has 0, the indexer -1.
_OBSERVER: Final = -2
_OVERLAP: Final = 256  # ids that are looked at again: on Postgres, a smaller one may become visible later
_BACKOFF: Final = tuple(timedelta(seconds=each) for each in (30, 120, 600, 3600))
_MOST_TRIES: Final = 3


class Observer:
    """Reads conversations in the background: `async with Observer(storage, OpenAIChatLLM()):`.

    While the block runs, it reads messages that leave the window, and chats that have become quiet. It writes notes for
    their prompts and facts that people state about themselves. Several processes may run one on the same database: one
    of them works.
    """

    def __init__(
        self,
        storage: Storage,
        llm: ChatLLM,
        *,
        window_tokens: int = 4000,
        notes_tokens: int = NOTES_TOKENS,
        budgets: Budgets | None = None,
        access: Access | None = None,
        clock: Callable[[], datetime] | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Make an observer for an open storage.

        Args:
            window_tokens: How many of the newest tokens prompts show anyway.
            notes_tokens: How many tokens the notes of a conversation may take.
            budgets: What may be used; without any, everything is counted and nothing limited.
            access: Who has access; chats of others are not read.
            clock: What time it is; by default what the storage says.
            poll_seconds: How often to look for what is due.
        """
        self._storage = storage
        self._reading = StretchReader(storage, llm, budgets or Budgets(), clock or storage.now)
        self._window_tokens = window_tokens
        self._notes_tokens = notes_tokens
        self._access = access
        self._clock = clock or storage.now
        self._poll_seconds = poll_seconds
        self._seen: int | None = None
        self._next_look: int | None = None  # where the look at new messages goes on; None for at its beginning
        self._failures = 0
        self._answered = 0
        self._unanswered: dict[int, int] = {}  # conversations, with how much had been answered then
        self._paused_until = datetime.min.replace(tzinfo=UTC)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="botservice-observer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Close the connections of its model."""
        await self._reading.close()

    async def observe(self, context: AgentContext) -> list[Observation]:
        """Read the rest of a conversation now, however short, and return the observations.

        It gives up if the messages change again and again meanwhile.

        Raises:
            LLMError: the model did not answer; earlier observations are kept.
            BudgetExceeded: the budget does not allow a model call now.
        """
        await self._storage.write(partial(queries.ensure_state, context_id=context.id))
        done: list[Observation] = []
        while (stretch := await self._next(context.id, _EVERYTHING)) is not None:
            done.append(await self._reading.read(stretch))
            if len(done) >= _MOST_TRIES and all(each.is_stale for each in done[-_MOST_TRIES:]):
                break
        return done

    async def catch_up(self) -> int:
        """Read the conversations that are due, and return the number of model calls.

        Returns 0 if another process does the same.
        """
        if self._is_paused() or not await self._storage.read(self._has_work):
            return 0
        claim = await self._storage.claims.try_claim(_OBSERVER)
        if claim is None:
            return 0
        attending: dict[int, asyncio.Task[int]] = {}
        try:
            return await self._work_off(claim, attending)
        finally:
            for task in attending.values():
                task.cancel()
            await asyncio.gather(*attending.values(), return_exceptions=True)
            await asyncio.shield(self._storage.claims.release(claim))

    async def _work_off(self, claim: Claim, attending: dict[int, asyncio.Task[int]]) -> int:
        """Schedule what is new, a few conversations at a time, and read what is due, each on its own.

        A call of the model that hangs holds up no other conversation.
        """
        count = 0
        while True:
            began_at = time.monotonic()
            has_more = await self._look_at_some(claim)
            rest = _REST_PER_LOOK * (time.monotonic() - began_at) if has_more else self._poll_seconds
            due = [] if self._is_paused() else await self._storage.read(partial(queries.find_due, now=self._clock()))
            for context_id in [each for each in due if each not in attending][: _AT_ONCE - len(attending)]:
                attending[context_id] = asyncio.create_task(self._attend(context_id, claim))
            if attending:
                await asyncio.wait(attending.values(), timeout=rest, return_when=asyncio.FIRST_COMPLETED)
            elif has_more:
                await asyncio.sleep(rest)
            else:
                return count
            for context_id in [context_id for context_id, task in attending.items() if task.done()]:
                count += attending.pop(context_id).result()

    def _has_work(self, connection: Connection) -> bool:
        if self._seen is None:
            self._seen = queries.find_seen(connection)
        return bool(
            queries.find_changed(connection, self._looked_up_to()) or queries.find_due(connection, self._clock())
        )

    def _is_paused(self) -> bool:
        """Whether the model is not asked for a while, because it answers nothing."""
        return self._clock() < self._paused_until

    def _looked_up_to(self) -> int:
        return max(0, (self._seen or 0) - _OVERLAP)

    async def _run(self) -> None:
        in_background.set(True)
        while True:
            try:
                await self.catch_up()
            except (ClaimLost, DatabaseInUse):
                logger.debug("observer.left_to_another_process")
            except BotServiceError as error:
                logger.warning("observer.postponed", extra={"reason": str(error)})
            except Exception:
                logger.exception("observer.failed")  # whatever it was: answers do not depend on it
            await self._storage.activity.pause(self._poll_seconds)

    async def _look_at_some(self, claim: Claim) -> bool:
        """Schedule the next few conversations that have new messages; return whether there may be more of them."""
        after = self._looked_up_to() if self._next_look is None else self._next_look
        changed = await self._storage.read(partial(queries.find_changed, after=after))
        if changed:
            window_tokens, now = self._window_tokens, self._clock()
            plans = await self._storage.read(
                partial(plan_readings, changed=changed, window_tokens=window_tokens, now=now)
            )
            await self._storage.write(partial(note_plans, plans=plans), fence=claim)
            self._seen = max(self._seen or 0, changed[-1][1])
        self._next_look = changed[-1][1] if len(changed) == queries.CHANGED_AT_ONCE else None
        return self._next_look is not None

    async def _attend(self, context_id: int, claim: Claim) -> int:
        """Attend to a conversation, and return the number of calls; what is wrong with one holds up no other."""
        try:
            return await self._read_due(context_id, claim)
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception:
            logger.exception("observer.failed", extra={"context": context_id})
            await self._put_off(context_id, self._clock() + _BACKOFF[-1], claim)
            return 0

    async def _read_due(self, context_id: int, claim: Claim) -> int:
        """Read at most one due stretch of a conversation; schedule the next look; return the number of calls."""
        up_to, again_at = await self._next_end(context_id)
        if up_to is None:
            await self._put_off(context_id, again_at, claim)
            return 0
        stretch = await self._next(context_id, up_to)
        if stretch is None:
            await self._storage.write(partial(queries.end_again, context_id=context_id), fence=claim)
            await self._put_off(context_id, None, claim)
            return 0
        if not await self._may_read(stretch):
            await self._put_off(context_id, None, claim)
            return 0
        count, again_at = await self._read(stretch, claim)
        if again_at is None:
            _, again_at = await self._next_end(context_id)
        await self._put_off(context_id, again_at, claim)
        return count

    async def _read(self, stretch: Stretch, claim: Claim) -> tuple[int, datetime | None]:
        """Read a stretch; return the number of model calls, and when to try again if it was not read."""
        try:
            done = await self._reading.read(stretch, fence=claim)
        except BudgetExceeded as error:
            logger.info("observer.budget_used_up", extra={"context": stretch.context_id, "scope": str(error.scope)})
            return 0, error.ends_at
        except LLMError as error:
            extra = {"context": stretch.context_id, "kind": error.kind.value, "reason": str(error)}
            logger.warning("observer.not_answered", extra=extra)
            if error.kind.is_of_request or self._is_to_blame(stretch):
                return 1, await self._try_later(stretch, claim)
            return 1, self._pause(error)
        except BotServiceError:
            raise
        except Exception:
            logger.exception("observer.failed", extra={"context": stretch.context_id})
            return 1, await self._try_later(stretch, claim)
        self._failures = 0
        self._answered += 1
        self._unanswered.pop(stretch.context_id, None)
        return 1, self._clock() + _BACKOFF[0] if done.is_stale else None

    def _is_to_blame(self, stretch: Stretch) -> bool:
        """Return whether the model fails on this stretch alone: it answered about others since the last try."""
        before = self._unanswered.setdefault(stretch.context_id, self._answered)
        return before != self._answered

    def _pause(self, error: LLMError) -> datetime:
        """Pause the calls of the model, and return until when."""
        wait = max(
            _BACKOFF[min(self._failures, len(_BACKOFF) - 1)], timedelta(seconds=error.retry_after_seconds or 0.0)
        )
        if not self._is_paused():  # of several calls at once, that is one failure
            self._failures += 1
        self._paused_until = max(self._paused_until, self._clock() + wait)
        return self._paused_until

    async def _try_later(self, stretch: Stretch, claim: Claim) -> datetime | None:
        """Return when to try a stretch again; skip one that was refused too often."""
        context_id, tries = stretch.context_id, stretch.tries + 1
        if tries >= _MOST_TRIES:
            passing = partial(queries.mark_read, context_id=context_id, version=stretch.version, last=stretch.last)
            await self._storage.write(passing, fence=claim)
            self._unanswered.pop(context_id, None)
            return None
        due_at = self._clock() + _BACKOFF[min(tries, len(_BACKOFF)) - 1]
        await self._storage.write(
            partial(queries.put_off, context_id=context_id, due_at=due_at, tries=tries), fence=claim
        )
        return due_at

    async def _next_end(self, context_id: int) -> tuple[int | None, datetime | None]:
        find = partial(next_end, context_id=context_id, window_tokens=self._window_tokens, now=self._clock())
        return await self._storage.read(find)

    async def _next(self, context_id: int, up_to: int) -> Stretch | None:
        counter = await count_aside(counter_for, self._reading.model)
        return await self._storage.read(
            partial(
                read_stretch,
                context_id=context_id,
                up_to=up_to,
                max_tokens=_MOST_TOKENS,
                notes_tokens=self._notes_tokens,
                count=counter.count,
            )
        )

    async def _may_read(self, stretch: Stretch) -> bool:
        chat = stretch.chat
        if is_guest(chat.keys):
            return False
        if self._access is None:
            return True
        return await self._access.lets_in(self._storage, chat.keys, chat.person, is_shared=chat.is_shared)

    async def _put_off(self, context_id: int, due_at: datetime | None, claim: Claim) -> None:
        await self._storage.write(partial(queries.put_off, context_id=context_id, due_at=due_at), fence=claim)


_EVERYTHING: Final = (1 << 62) - 1
