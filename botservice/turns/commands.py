"""Commands: what a person asks of the service itself, answered without the agent."""

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Final, Protocol

from botservice.conversation.context import AgentContext
from botservice.core.formatted_text import FormattedText, Span
from botservice.core.messages import Attachment, Button, CommandCall, InboundMessage, Message, Moment, Role
from botservice.core.platform_capabilities import Capabilities
from botservice.people.access import Access
from botservice.people.access_values import AccessRole
from botservice.people.budgets import Budgets
from botservice.storage.claims import Claim
from botservice.storage.database import Connection
from botservice.texts import date_in_language, in_language, number_in_language
from botservice.texts.formatted import Value, say, time
from botservice.turns.turn import Turn

if TYPE_CHECKING:
    from botservice.turns.listening import ListeningGate

# \s is every whitespace of Unicode: a line break, a tab or a no-break space ends a command's name as a space does.
_COMMAND: Final = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{1,64}))?(?:\s+(.*))?", re.DOTALL)


async def _nobody_is() -> None:
    """Return that nobody is in charge of a chat."""


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command with everything that its handler may need.

    Attributes:
        message: The message: its author, language, and whether others can read it.
        claim: The claim on the context, which changes to it require.
        role: The role of the person; None if no owner has named them.
        is_let_in: Whether that person has access; nothing is stored about others.
        tools: The names of the agent's own tools; None if any could be there.
        open_topic: Creates a topic for a new conversation in this chat, by its name; returns whether it exists.
        capabilities: The features of the platform, and its prefix of commands.
        zone: The time zone of the person; None if it is unknown.
        gate: Decides when to speak in groups unasked; None without a model.
        withheld_in_groups: The key of the text that says what the platform keeps back; empty if nothing.
        is_administrator: Asks the platform whether the person is in charge of this chat, as `Transport` does.
    """

    call: CommandCall
    message: InboundMessage
    context: AgentContext
    turn: Turn
    claim: Claim
    now: datetime
    role: AccessRole | None = None
    access: Access = field(default_factory=Access)
    budgets: Budgets = field(default_factory=Budgets)
    is_let_in: bool = True
    tools: Collection[str] | None = None
    open_topic: Callable[[str], Awaitable[bool]] | None = None
    capabilities: Capabilities | None = None
    zone: tzinfo | None = None
    gate: "ListeningGate | None" = None
    withheld_in_groups: str = ""
    is_administrator: Callable[[], Awaitable[bool | None]] = _nobody_is

    def has_tool(self, name: str) -> bool:
        """Check whether the agent has a tool of its own."""
        return self.tools is None or name in self.tools

    def say(self, key: str, /, **values: Value) -> FormattedText:
        """Fill in a text in the person's language, with its formatting."""
        return say(key, self.message.language, **values)

    def label(self, key: str, /, **values: object) -> str:
        """Fill in a text for a button or a name in that language."""
        return in_language(key, self.message.language, **values)

    def say_number(self, number: float, *, places: int = 0) -> str:
        """Write a number in that language."""
        return number_in_language(number, self.message.language, places=places)

    def say_date(self, day: datetime) -> str:
        """Write a date in that language."""
        return date_in_language(day, self.message.language)

    def say_time(self, moment: datetime, zone: tzinfo | None = None) -> Span:
        """Write a time in that language and in a time zone; by default in the person's own, or in UTC."""
        return time(moment, self.message.language, now=self.now, zone=zone or self.zone)


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The effects of a command.

    Attributes:
        text: The answer: a str is Markdown; a FormattedText is shown as it is, and is required for words of other
            people. Without a text and a file, nothing is sent.
        apply: Its change, in the transaction that stores the answer: both happen or none.
        ask: A message for the agent instead of an answer.
        after: Called once the answer is stored, unless the process ends before.
        is_personal: Whether it concerns only the person who sent the command.
        moments: The times in the text.
    """

    text: str | FormattedText = ""
    buttons: tuple[Button, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    apply: Callable[[Connection], object] | None = None
    ask: InboundMessage | None = None
    after: Callable[[], Awaitable[object]] | None = None
    is_personal: bool = False
    moments: tuple[Moment, ...] = ()

    def as_message(self, now: datetime) -> Message | None:
        """Build the message to send, or None."""
        formatted = self.text if isinstance(self.text, FormattedText) else None
        text = self.text if isinstance(self.text, str) else self.text.plain
        if not text and not self.attachments:
            return None
        said = Message(None, Role.ASSISTANT, text, self.attachments, created_at=now, buttons=self.buttons)
        return replace(said, is_personal=self.is_personal, moments=self.moments, formatted=formatted)


class Commands(Protocol):
    """The commands that a service knows."""

    def takes(self, message: InboundMessage) -> bool:
        """Return whether a message is answered as a command, be it by saying that there is none of this name."""

    def counts(self, name: str) -> bool:
        """Return whether a command counts as a message where messages are limited."""

    async def answer(self, request: CommandRequest) -> CommandAnswer:
        """Do what a command asks. It may be called again after a cut: what it changed is changed once."""


class NoCommands:
    """No command at all: whatever is said is for the agent."""

    def takes(self, message: InboundMessage) -> bool:  # noqa: ARG002 - none is
        """Return no."""
        return False

    def counts(self, name: str) -> bool:  # noqa: ARG002 - none is
        """Return no."""
        return False

    async def answer(self, request: CommandRequest) -> CommandAnswer:  # noqa: ARG002 - nobody asks
        """Return nothing."""
        return CommandAnswer()


def parse_command(text: str, *, is_called: Callable[[str], bool] | None = None) -> CommandCall | None:
    """Return the command that a text is, such as "/forget chat"; None if it is none.

    Args:
        is_called: Whether a name, as in "/forget@name", is the bot's; None where commands name no bot.
    """
    found = _COMMAND.fullmatch(text.strip())
    if found is None or (found[2] is not None and (is_called is None or not is_called(found[2]))):
        return None
    return CommandCall(found[1].lower(), (found[3] or "").strip())


def apply_all(connection: Connection, answers: Sequence[CommandAnswer]) -> None:
    """Make the changes of several commands, in their order."""
    for answer in answers:
        if answer.apply is not None:
            answer.apply(connection)
