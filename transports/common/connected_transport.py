"""What the transports of platforms that know the bot by a token have in common: how they connect, take in and wait."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from botservice.core.errors import SettingsError, StorageUnavailable
from botservice.people.access_queries import note_departure, note_invitation
from botservice.storage.database import Connection, Storage
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Transport
from transports.common.background_tasks import BackgroundTasks

logger = logging.getLogger(__name__)

_START_SECONDS: Final = 10.0
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FailedCall:
    """Why a platform did not do what it was asked.

    Attributes:
        is_token_refused: Whether it does not know the token, so that trying again helps nothing.
        retry_after_seconds: How long it asks to wait, if it does.
    """

    reason: str
    is_token_refused: bool = False
    retry_after_seconds: float | None = None


async def insist(
    work: Callable[[], Awaitable[Result]],
    errors: type[Exception] | tuple[type[Exception], ...],
    note: Callable[[Exception, float], float | None],
) -> Result:
    """Do work until it is done, with pauses that grow to a minute.

    Args:
        errors: What it may fail with and be tried again.
        note: Is told an error and the pause; returns how long the platform asks to wait instead, if it does.
    """
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return await work()
        except errors as error:
            await asyncio.sleep(note(error, pause) or pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


class Intake:
    """Hands events to the inbox, and does what cannot wait for a turn."""

    def __init__(self) -> None:
        self._inbox: Inbox | None = None
        self._storage: Storage | None = None
        self._background = BackgroundTasks()

    def open(self, inbox: Inbox, storage: Storage) -> None:
        """Begin to take in."""
        self._inbox, self._storage = inbox, storage

    async def close(self) -> None:
        """Take in no more."""
        self._inbox = None
        await self._background.close()

    def opened(self) -> tuple[Inbox, Storage]:
        """Return where events go.

        Raises:
            StorageUnavailable: nothing is taken in.
        """
        if self._inbox is None or self._storage is None:
            raise StorageUnavailable("this process takes in nothing at the moment")
        return self._inbox, self._storage

    async def note_membership(self, chat: str, inviter: str | None, *, is_there: bool) -> None:
        """Take note of who has brought the bot into a chat, or that it is gone: access may depend on that."""
        _, storage = self.opened()
        now = storage.now()
        if not is_there:
            await storage.write(lambda connection: note_departure(connection, chat))
        elif inviter is not None:
            await storage.write(lambda connection: note_invitation(connection, chat, inviter, now))


class ConnectedTransport(Transport):
    """A transport of a platform that knows the bot by a token.

    Attributes:
        errors: What the platform's calls fail with.
        token_name: The setting with the token.
        token_source: Where the token is found.
    """

    errors: ClassVar[type[Exception]]
    token_name: ClassVar[str]
    token_source: ClassVar[str]
    _intake: Intake
    _taking_in: asyncio.Task[None] | None = None

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Begin to take in. Where the platform cannot be reached, that is tried again until it can.

        Raises:
            SettingsError: it does not know the token.
        """
        self._intake.open(inbox, storage)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._identify()
        except TimeoutError:
            logger.warning(f"{self.name}.unreachable", extra={"reason": "timeout"})  # noqa: G004 - the platform's event
        except self.errors as error:
            failed = self._explain(error)
            if failed.is_token_refused:
                raise SettingsError(
                    f"{self.token_name} is refused by {self.capabilities.label}: copy it again from {self.token_source}"
                ) from error
            logger.warning(f"{self.name}.unreachable", extra={"reason": failed.reason})  # noqa: G004 - as above
        self._taking_in = asyncio.create_task(self._take_in(), name=f"{self.name}-intake")

    async def stop(self) -> None:
        """Take in no more; answers may still go out."""
        task, self._taking_in = self._taking_in, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self._intake.close()

    @abstractmethod
    async def _identify(self) -> object:
        """Ask the platform who the bot is, if that is not known yet."""

    @abstractmethod
    async def _receive(self) -> None:
        """Take in what comes, until cancelled; return where the platform delivers by itself."""

    @abstractmethod
    def _explain(self, error: Exception) -> FailedCall:
        """Return why the platform did not say who the bot is."""

    async def _take_in(self) -> None:
        """Take in until cancelled, whatever happens."""
        while True:
            try:
                await insist(self._identify, self.errors, self._note_unreachable)
                return await self._receive()
            except Exception:  # a border: a service that has become deaf without a word would be the worst of all
                logger.exception(f"{self.name}.intake_failed")  # noqa: G004 - the platform's event
                await asyncio.sleep(_LONGEST_PAUSE_SECONDS)

    def _note_unreachable(self, error: Exception, pause_seconds: float) -> float | None:
        failed = self._explain(error)
        reason = f"{self.token_name} is refused" if failed.is_token_refused else failed.reason
        details = {"reason": reason, "wait_seconds": pause_seconds}
        logger.warning(f"{self.name}.unreachable", extra=details)  # noqa: G004 - the platform's event
        return failed.retry_after_seconds


PAUSES_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.5)

Found = TypeVar("Found")


async def read_when_known(
    storage: Storage,
    query: Callable[[Connection], Found],
    is_known: Callable[[Found], bool] = lambda found: found is not None,
    pauses_seconds: Sequence[float] = PAUSES_SECONDS,
) -> Found:
    """Return what a query finds as soon as that is known, or in the end what it finds then."""
    for pause_seconds in pauses_seconds:
        found = await storage.read(query)
        if is_known(found):
            return found
        await asyncio.sleep(pause_seconds)
    return await storage.read(query)
