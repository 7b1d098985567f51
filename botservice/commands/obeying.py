"""Running the handler of a command: once, unless the storage fails around it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from botservice.commands.command import Command
from botservice.core.errors import BudgetExceeded, ClaimLost, CommandFailed, StorageError, StorageUnavailable, TurnGrew
from botservice.core.formatted_text import FormattedText
from botservice.storage.database import Connection
from botservice.storage.failures import Failure, is_lost_connection
from botservice.turns.command_parsing import CommandAnswer, CommandRequest

logger = logging.getLogger(__name__)

_PASSING: Final = (StorageError, ClaimLost, TurnGrew, BudgetExceeded)
"""What is not the command's own failure: it is done again, or the person is told of their budget."""


async def obey(command: Command, request: CommandRequest) -> CommandAnswer:
    """Run a command and return its answer; what that does later is guarded as well.

    Raises:
        CommandFailed: the command failed by itself; the log says how.
    """
    try:
        answer = _checked(await command.handler(request))
    except _PASSING:
        raise
    except Exception as error:
        raise _failed(request, error) from error
    apply, after = answer.apply, answer.after
    if apply is not None:
        answer = replace(answer, apply=_guarded(apply, request))
    return answer if after is None else replace(answer, after=_guarded_after(after, request))


def _checked(given: object) -> CommandAnswer:
    """Return what a handler gave as an answer."""
    if isinstance(given, str):
        return CommandAnswer(given)
    if not isinstance(given, CommandAnswer):
        raise TypeError(f"a handler returns a text or a CommandAnswer, not {type(given).__name__}")
    if not isinstance(given.text, str | FormattedText):
        raise TypeError(f"the text of a CommandAnswer is a str or a FormattedText, not {type(given.text).__name__}")
    return given


def _guarded(apply: Callable[[Connection], object], request: CommandRequest) -> Callable[[Connection], object]:
    def guarded(connection: Connection) -> object:
        try:
            return apply(connection)
        except _PASSING:
            raise
        except Exception as error:
            told = Failure.of(error, is_lost=is_lost_connection(error), has_begun=True).error
            if isinstance(told, StorageUnavailable):
                raise
            raise _failed(request, told) from told

    return guarded


def _guarded_after(after: Callable[[], Awaitable[object]], request: CommandRequest) -> Callable[[], Awaitable[object]]:
    async def guarded() -> None:
        try:
            await after()
        except _PASSING:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code; the answer is stored: only the log is left to tell
            _failed(request, error)

    return guarded


def _failed(request: CommandRequest, error: BaseException) -> CommandFailed:
    """Log how a command failed, and return the error for its turn."""
    kind = type(error).__name__
    logger.error("command.failed", exc_info=error, extra={"command": request.call.name, "error": kind})
    return CommandFailed(f"/{request.call.name}: {kind}")
