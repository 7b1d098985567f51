"""The writes that wait for a transaction: done together in it, with a result for each."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Connection

from botservice.errors import ClaimLost
from botservice.storage.statements import interleave

logger = logging.getLogger(__name__)

SortKey = tuple[str | int, ...]


class Fence(Protocol):
    """The condition of a write, such as a claim."""

    def check(self) -> None:
        """Return if it holds.

        Raises:
            ClaimLost: it does not.
        """


@dataclass(slots=True)
class Operation:
    """A write that waits for its transaction, and its result.

    Attributes:
        run: What it does; None only waits for what was issued before.
        subject: What run is given, in a list with those of all operations of the batch that run the same.
        is_confined: Whether it may be interleaved with those that have another first part in their sort key.
    """

    run: Callable[..., Any] | None
    fence: Fence | None = None
    sort_key: SortKey = ()
    is_last: bool = False
    is_confined: bool = False
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Any] | None = None
    subject: Any = None
    result: Any = None
    error: BaseException | None = None

    def apply(self, connection: Connection) -> None:
        """Run it if its fence holds; otherwise note ClaimLost, so that the transaction goes on for the others."""
        self.error = None
        try:
            if self.fence is not None:
                self.fence.check()
        except ClaimLost as error:
            self.error = error
        else:
            self.result = None if self.run is None else self.run(connection)


def apply_all(batch: Sequence[Operation], connection: Connection) -> None:
    """Do the operations of a batch in its order, but for those that are interleaved or done together."""
    alone = batch
    if len(batch) > 1:
        interleave(*_chains(batch, connection), connection=connection)
        alone = [operation for operation in batch if not operation.is_confined]
    together: dict[Any, list[Operation]] = {}
    for operation in alone:
        if operation.subject is not None:
            together.setdefault(operation.run, []).append(operation)
    _apply_each([operation for operation in alone if operation.subject is None], connection)
    for run, operations in together.items():
        results = run(connection, [operation.subject for operation in operations])
        for operation, operation.result in zip(operations, results, strict=True):
            operation.error = None


def _chains(batch: Sequence[Operation], connection: Connection) -> list[Callable[[], None]]:
    """Return a function for each context of a batch, which runs its confined operations one after the other."""
    by_context: dict[object, list[Operation]] = {}
    for operation in batch:
        if operation.is_confined:
            by_context.setdefault(operation.sort_key[:1], []).append(operation)

    return [partial(_apply_each, operations, connection) for operations in by_context.values()]


def _apply_each(operations: Sequence[Operation], connection: Connection) -> None:
    for operation in operations:
        operation.apply(connection)


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
