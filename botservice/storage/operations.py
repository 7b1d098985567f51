"""What a writer is asked to do, and how those who asked learn what came of it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection

from botservice.errors import ClaimLost

logger = logging.getLogger(__name__)

SortKey = tuple[str | int, ...]


class Fence(Protocol):
    """What decides whether a write still has the right to happen."""

    def check(self) -> None:
        """Return if it has.

        Raises:
            ClaimLost: it has not.
        """


@dataclass(slots=True)
class Operation:
    """A write that waits for its transaction, and what became of it.

    Attributes:
        run: What it does; None only waits for what was issued before.
        is_confined: Whether it may be interleaved with those that have another first part in their sort key.
    """

    run: Callable[[Connection], Any] | None
    fence: Fence | None = None
    sort_key: SortKey = ()
    is_last: bool = False
    is_confined: bool = False
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None

    def apply(self, connection: Connection) -> None:
        """Do it, unless the right to do it is lost: then nobody else's transaction fails for that."""
        self.error = None
        try:
            if self.fence is not None:
                self.fence.check()
        except ClaimLost as error:
            self.error = error
        else:
            self.result = None if self.run is None else self.run(connection)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a transaction did not happen.

    Attributes:
        is_general: Whether any other transaction would have failed now as well.
        is_blocked: Whether it waited in vain for somebody else's lock.
    """

    error: BaseException
    is_general: bool = False
    is_blocked: bool = False


def rank(operation: Operation) -> tuple[tuple[str, str | int], ...]:
    """Return what two replicas sort equally, whatever types their keys have."""
    return tuple((type(part).__name__, part) for part in operation.sort_key)


def fail(batch: Sequence[Operation], failure: Failure) -> None:
    """Give every operation the error of a transaction that did not happen."""
    for operation in batch:
        operation.error = failure.error


def resolve(batch: Sequence[Operation]) -> None:
    """Hand the results to the event loops that wait for them, with one call per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Operation]] = {}
    for operation in batch:
        if operation.loop is not None:
            by_loop.setdefault(operation.loop, []).append(operation)
        elif operation.error is not None:
            logger.error("storage.unawaited_write_failed", exc_info=operation.error)
    for loop, operations in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop that asked is closed: nobody waits
            loop.call_soon_threadsafe(_set_results, operations)


def _set_results(operations: Sequence[Operation]) -> None:
    for operation in operations:
        if operation.future is None or operation.future.done():
            if operation.error is not None and not isinstance(operation.error, ClaimLost):
                logger.error("storage.unawaited_write_failed", exc_info=operation.error)
        elif operation.error is None:
            operation.future.set_result(operation.result)
        else:
            operation.future.set_exception(operation.error)
