"""The commands of a service: found by their names, run, and answered."""

import difflib
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from botservice.commands.command import Command, CommandRefused
from botservice.core.errors import BudgetExceeded, ClaimLost, CommandFailed, StorageError, StorageUnavailable, TurnGrew
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import InboundMessage
from botservice.core.platform_capabilities import Capabilities
from botservice.storage.database import Connection
from botservice.storage.failures import Failure, is_lost_connection
from botservice.texts.formatted import with_commands
from botservice.turns.commands import CommandAnswer, CommandRequest

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
    except CommandRefused as refusal:
        return CommandAnswer(refusal.text)
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


_DEFAULT: Final = "/"
_NAMED: Final = re.compile(r"(?<![\w/])/(?=([a-z0-9_]{1,32})(?![\w/]))")  # a command in a sentence


class Catalogue:
    """Finds commands by their names; the order is that of the menu."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = {command.name: command for command in commands}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def add(self, command: Command) -> None:
        """Add a command at the end of the menu."""
        self._commands.setdefault(command.name, command)

    def takes(self, message: InboundMessage) -> bool:
        """Return whether a message is a command, known or not: no model is paid to guess /hlep.

        What a platform alone takes for a command, such as "!" in Slack, is one only where there is such a command.
        """
        call = message.command
        return call is not None and (call.name in self._commands or message.text.lstrip().startswith("/"))

    def counts(self, name: str) -> bool:
        """Return whether a command counts as a message."""
        command = self._commands.get(name)
        return command is not None and command.is_counted

    async def answer(self, request: CommandRequest) -> CommandAnswer:
        """Run a command; for an unknown one, suggest the closest name.

        Raises:
            CommandFailed: it failed by itself; it is not to be run again.
        """
        answer = await self._answer(request)
        prefix = _DEFAULT if request.capabilities is None else request.capabilities.command_prefix
        text = answer.text
        typed = as_typed(text, self._commands, prefix) if isinstance(text, str) else with_commands(text, prefix)
        return replace(answer, text=typed)

    async def _answer(self, request: CommandRequest) -> CommandAnswer:
        command = self._commands.get(request.call.name)
        if command is not None:
            answer = await obey(command, request)
            return replace(answer, is_personal=True) if command.is_personal else answer
        name, listed = request.call.name, [each.name for each in self.offered(request.tools, request.capabilities)]
        similar = difflib.get_close_matches(name, listed, n=1)
        if similar:
            return CommandAnswer(request.say("help.meant", name=name, like=similar[0]), is_personal=True)
        return CommandAnswer(request.say("help.unknown", name=name), is_personal=True)

    def offered(self, tools: Collection[str] | None, capabilities: Capabilities | None = None) -> list[Command]:
        """Return the commands that menus show for an agent on a platform.

        Args:
            tools: The agent's; None for one that could have any.
            capabilities: The platform's; None for one that could show anything.
        """
        has_files = capabilities is None or bool(capabilities.files_out)
        return [
            each
            for each in self
            if each.is_listed
            and (tools is None or each.needs is None or each.needs in tools)
            and (has_files or not each.needs_files)
        ]


def as_typed(text: str, names: Collection[str], prefix: str) -> str:
    """Return a text with its commands written as people type them on a platform."""
    if prefix == _DEFAULT or _DEFAULT not in text:
        return text

    def typed(found: re.Match[str]) -> str:
        is_typed = text.endswith(prefix, 0, found.start())
        return prefix if found[1] in names and not is_typed else found[0]

    return _NAMED.sub(typed, text)
