"""The right to work on a context: one holder at a time, in all processes together."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from sqlalchemy import Connection

from botservice.errors import ClaimLost


class Claim:
    """The right to work on one context, as long as nobody took it over.

    Attributes:
        is_idle: Whether its holder does nothing at the moment: a run between two steps may be taken over.
    """

    def __init__(self, context_id: int, holds: Callable[["Claim"], bool]) -> None:
        self.context_id = context_id
        self.is_idle = False
        self._holds = holds

    @property
    def is_held(self) -> bool:
        """Whether the right still exists."""
        return self._holds(self)

    def check(self) -> None:
        """Return if the claim is held.

        Raises:
            ClaimLost: it is not.
        """
        if not self.is_held:
            raise ClaimLost(f"context {self.context_id} is worked on by somebody else now")


class Claims(Protocol):
    """Who works on which context."""

    async def try_claim(self, context_id: int) -> Claim | None:
        """Return a claim, or None where somebody else holds it.

        Raises:
            DatabaseInUse: another process works on this SQLite file.
        """

    def release(self, claim: Claim) -> "asyncio.Future[None]":
        """Give the claim back once every write under it has ended; does nothing where it is lost already."""

    def holder(self, context_id: int) -> Claim | None:
        """Return the claim on a context, where this process has it."""

    def find_free(self, connection: Connection, context_ids: Sequence[int]) -> list[int]:
        """Return those of the contexts that nobody seems to work on, without trying to claim them."""

    def abandon(self, claim: Claim) -> None:
        """Give a claim back from any thread, without waiting."""

    def take_over(self, claim: Claim) -> Claim:
        """Return a new claim in the place of one whose holder is idle; the old holder writes nothing more."""

    def working(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which this process is the worker of its database, also while it has no claim.

        Raises:
            DatabaseInUse: another process works on this SQLite file (when it is entered).
        """

    def close(self) -> None:
        """Give everything back that was taken through this object."""
