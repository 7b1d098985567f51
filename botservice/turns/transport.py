"""What turns need of a transport: to read what came in, and to make visible what goes out."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from botservice.core.messages import Author, InboundMessage, Message, ToolCall
from botservice.core.platform_capabilities import Capabilities
from botservice.turns.turn import Delivery, StoredEvent

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from botservice.storage.database import Storage
    from botservice.turns.inbox import Inbox

Payload = Mapping[str, object]
BUTTONS: Final = "buttons"
"""The field of a payload that holds its buttons, as `write_buttons` gives them: it is stored next to the payload."""


THEN: Final = "then"
"""The field of a payload that holds the payloads that are to be sent behind it, in the same place of the order."""

OF_MESSAGE: Final = "message"
"""The field of an unplanned delivery that holds the number of the message to plan."""


OFFERED: Final = "offered"
"""The field of an unplanned delivery that holds the buttons under its message."""

ReceivedMessage = tuple[StoredEvent, InboundMessage]
"""What an event says, with that event."""

TurnMessage = tuple[StoredEvent | None, InboundMessage]
"""A message of a turn; where no event brought it, a program or a reminder asks it."""

DeliveryPlan = Callable[[Message], Sequence[Payload]]
"""Returns the platform's messages that show a message."""

ReadEvent = Callable[[StoredEvent], Awaitable[InboundMessage | None]]
"""Returns what an event says; None if it says nothing to anybody."""


class Live:
    """Shows a person that, and what, the bot is about to answer. Nothing of it needs to last."""

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""

    def on_activity(self, activity: str) -> None:
        """Take what the bot does now, such as the name of a tool."""

    def on_call(self, call: ToolCall) -> None:
        """Take a call of a tool that begins; by default as an activity."""
        self.on_activity(call.name)

    def on_call_end(self, call: ToolCall, *, is_error: bool) -> None:
        """Take what became of a call."""

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Take what a tool says of a call that runs: in one short line, and nothing that is to be kept."""

    def on_restart(self) -> None:
        """Take note that the answer begins again, because the model failed in the middle of it."""

    async def close(self) -> None:
        """End it; the answer is stored next, and its deliveries follow. It may be called more than once."""


class StreamRecord(Protocol):
    """Keeps a visible stream as a delivery: its intent before it opens, its message id right after."""

    async def confirm(self) -> None:
        """Return if this process still has the turn, and may show something of it.

        Raises:
            BotServiceError: another one may have it.
        """

    async def opening(self) -> str | None:
        """Return once the intent is committed; with the id of the message that the turn has opened before, if any."""

    async def opened(self, external_id: str) -> None:
        """Return once the platform's id is committed."""


class Transport(ABC):
    """One way in which people reach the service: what a class of your own overrides, with what holds otherwise.

    `name`, `read`, `plan` and `send` are needed. An object that has them and does not inherit is taken as well.

    Attributes:
        name: Stands in the context keys, with the events and with the deliveries.
        capabilities: What it shows and takes; texts name what people can press or type there.
        has_parts: Whether one question may come as several messages; then `belong_together` says which.
        has_topics: Whether its chats have room for several conversations, which `open_topic` makes.
        offers_retry: Whether there is a button under what could not be answered, which asks it again.
        shows_history: Whether people see what the history has as soon as it has it, by its numbers.
        is_local: Whether people see it on a screen of this process, which then works on all of its conversations.
        withheld_in_groups: The key of the text that says what of groups never reaches it; empty if all does.
        routes: What it answers on the web server, with the handlers of errors there.
    """

    name: str
    capabilities: Capabilities = Capabilities()
    has_parts: bool = False
    has_topics: bool = False
    offers_retry: bool = False
    shows_history: bool = False
    is_local: bool = False
    withheld_in_groups: str = ""
    routes: "Sequence[BaseRoute]" = ()
    exception_handlers: Mapping[Any, Any] = MappingProxyType({})

    @abstractmethod
    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what an event says; None if it says nothing to anybody.

        By one with is_meant, the bot is addressed, whatever it says itself.
        """

    async def peek(self, event: StoredEvent) -> InboundMessage | None:
        """Return what `read` does without fetching files: they are only named, and `is_whole` says if there is more.

        By that it is decided who has access, and who writes too fast.
        """
        return await self.read(event)

    @abstractmethod
    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:
        """Return the messages that make answer visible, in order. Pure."""

    @abstractmethod
    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make one message visible and return the platform's id of it.

        A delivery with an external_id replaces that message.

        Raises:
            DeliveryError: it was not taken; DeliveryRefused: it never will be; DeliveryInstead: others go in its place.
        """

    def live(
        self,
        context_keys: Mapping[str, str],  # noqa: ARG002 - others need it
        events: Sequence[StoredEvent],  # noqa: ARG002 - others need it
        record: StreamRecord,  # noqa: ARG002 - others need it
    ) -> Live | None:
        """Return what shows the turn's progress, or None. It is called while a loop runs."""
        return None

    def is_shared(self, context_keys: Mapping[str, str]) -> bool:  # noqa: ARG002 - others need it
        """Return whether several people read a conversation: then a long answer holds others up less."""
        return False

    def belong_together(self, known: Sequence[StoredEvent], event: StoredEvent) -> bool:  # noqa: ARG002 - others need it
        """Return whether an event is a part of the question that known ones ask. Pure."""
        return False

    async def open_topic(self, context_keys: Mapping[str, str], name: str) -> bool:  # noqa: ARG002 - others need it
        """Make a place for a new conversation, and return whether it is there."""
        return False

    async def is_administrator(
        self,
        context_keys: Mapping[str, str],  # noqa: ARG002 - others need it
        author: Author | None,  # noqa: ARG002 - others need it
    ) -> bool | None:
        """Return whether a person is in charge of a chat now, as the platform says; None where nobody is.

        Raises:
            DeliveryError: the platform does not say so for now.
        """
        return None

    def was_spoken(self, events: Sequence[StoredEvent]) -> bool:  # noqa: ARG002 - others need it
        """Return whether the question was spoken; then the `spoken` of an answer is shown."""
        return False

    async def start(self, inbox: "Inbox", storage: "Storage") -> None:
        """Begin to take in events.

        Raises:
            SettingsError: it cannot; then the process says so and ends.
        """

    async def stop(self) -> None:
        """Take in no more; answers may still go out."""

    async def close(self) -> None:
        """Let go of every connection: nothing goes out any more."""

    def describe(self) -> str:
        """Return how it is reached, in a few words."""
        return self.name


class NoTransport(Transport):
    """The transport of turns that a program asked for: nobody hands in events, and nobody waits."""

    name = "api"
    capabilities = Capabilities(label="Program")

    async def read(self, event: StoredEvent) -> InboundMessage | None:  # noqa: ARG002 - nobody hands in events
        """Return nothing."""
        return None

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:  # noqa: ARG002 - nobody waits
        """Select no message."""
        return []

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:  # noqa: ARG002 - nobody waits
        """Do nothing."""
        return None
