"""The claims of conversations for programs, whose prompts of one conversation wait for each other."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from botservice.conversation.context import AgentContext
from botservice.core.errors import StorageUnavailable, TurnInProgress
from botservice.storage.claims import Claim
from botservice.storage.database import Storage

_POLL_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(slots=True)
class _Line:
    """The prompts of one context in one event loop, which wait for each other; other loops wait for the claim."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class ProgramClaims:
    """Claims conversations for a service."""

    def __init__(self) -> None:
        self._lines: dict[tuple[asyncio.AbstractEventLoop, Storage, int], _Line] = {}

    async def claim(self, context: AgentContext, *, waits: bool) -> Claim:
        """Return a claim on a context.

        Args:
            waits: Whether to wait for the holder, unless that is a paused run.

        Raises:
            TurnInProgress: it is not waited for.
        """
        claims = open_storage(context).claims
        attempt = 0
        while True:
            claim = await claims.try_claim(context.id)
            if claim is not None:
                return claim
            holder = claims.holder(context.id)
            if not waits or (holder is not None and holder.is_idle):
                raise TurnInProgress(
                    f"context {context.id} has a turn that is not finished: finish or close that run first, "
                    "or take it over with service.resume(context)"
                )
            await asyncio.sleep(_POLL_SECONDS[min(attempt, len(_POLL_SECONDS) - 1)])
            attempt += 1

    async def take_over(self, context: AgentContext) -> Claim:
        """Return a claim on a context on which no work is under way, if need be that of a paused run."""
        claims = open_storage(context).claims
        for pause_seconds in (*_POLL_SECONDS, None):
            claim = await claims.try_claim(context.id)
            if claim is not None:
                return claim
            holder = claims.holder(context.id)
            if holder is not None and holder.is_idle:
                return claims.take_over(holder)
            if holder is not None or pause_seconds is None:
                break
            # Another replica has it: one that has just died gives it back within milliseconds.
            await asyncio.sleep(pause_seconds)
        raise TurnInProgress(f"a turn of context {context.id} is being worked on")

    @contextlib.asynccontextmanager
    async def in_order(self, context: AgentContext) -> AsyncIterator[Claim]:
        """Let the prompts of one context pass in the order in which they came, each with a claim."""
        holder = open_storage(context).claims.holder(context.id)
        if holder is not None and holder.worked_on_by is asyncio.current_task():
            raise TurnInProgress(
                f"context {context.id} has a turn that this very task works on, so that the prompt would wait for "
                "itself: ask in a task of its own that nobody awaits before the turn has ended, or in another context"
            )
        place = (asyncio.get_running_loop(), context.storage, context.id)
        line = self._lines.setdefault(place, _Line())
        line.length += 1
        try:
            async with line.lock:
                claim = await self.claim(context, waits=True)
                try:
                    yield claim
                finally:
                    await asyncio.shield(open_storage(context).claims.release(claim))
        finally:
            line.length -= 1
            if line.length == 0:
                self._lines.pop(place, None)


def open_storage(context: AgentContext) -> Storage:
    """Return the storage of a context.

    Raises:
        StorageUnavailable: it is closed.
    """
    if not context.storage.is_open:
        raise StorageUnavailable("the storage of this context is closed")
    return context.storage
