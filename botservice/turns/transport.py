"""What turns need of a transport: to read what came in, and to make visible what goes out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, runtime_checkable

from botservice.capabilities import Capabilities
from botservice.messages import InboundMessage, Message, ToolCall
from botservice.turns.turn import Delivery, StoredEvent

Payload = Mapping[str, object]
BUTTONS: Final = "buttons"
"""The field of a payload that holds its buttons, as `write_buttons` gives them: it is stored beside the payload."""


THEN: Final = "then"
"""The field of a payload that holds the payloads that are to be sent behind it, in the same place of the order."""

OF_MESSAGE: Final = "message"
"""The field of an unplanned delivery that holds the number of the message to plan."""


OFFERED: Final = "offered"
"""The field of an unplanned delivery that holds the buttons under its message."""

ReadEvent = Callable[[StoredEvent], Awaitable[InboundMessage | None]]
"""Returns what an event says; None if it says nothing to anybody."""


OpenTopic = Callable[[str], Awaitable[bool]]
"""Makes a place for a new conversation, by its name, and returns whether it is there."""


class Live(Protocol):
    """Shows a person that, and what, the bot is about to answer. Nothing of it needs to last."""

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""

    def on_activity(self, activity: str) -> None:
        """Take what the bot does now, such as the name of a tool."""

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Take what a tool says of a call that runs: in one short line, and nothing that is to be kept."""

    def on_restart(self) -> None:
        """Take note that the answer begins anew, because the model failed in the middle of it."""

    async def close(self) -> None:
        """End it; the answer is stored next, and its deliveries follow. It may be called more than once."""


@runtime_checkable
class ShowsCalls(Protocol):
    """What a `Live` may do besides: show each call of a tool, with its arguments and what became of it.

    It gets no activity of calls then.
    """

    def on_call(self, call: ToolCall) -> None:
        """Take a call that begins."""

    def on_call_end(self, call: ToolCall, *, is_error: bool) -> None:
        """Take what became of a call."""


def begin_call(live: Live, call: ToolCall) -> None:
    """Show that a call begins, if live can show calls."""
    if isinstance(live, ShowsCalls):
        live.on_call(call)
    else:
        live.on_activity(call.name)


def end_call(live: Live, call: ToolCall, *, is_error: bool) -> None:
    """Show that a call has ended, if live can show single calls."""
    if isinstance(live, ShowsCalls):
        live.on_call_end(call, is_error=is_error)


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


class Transport(Protocol):
    """One way in which people reach the service.

    One that fetches files to read an event may have `peek` as well: it returns what `read` does, with files only named,
    and says by `is_whole` whether there is more. By that it is decided who is let in, and who writes too fast. One with
    groups may have `is_shared`: there, others need not wait for the end of a long answer. One whose chats have room for
    several conversations may have `open_topic`, which makes a place for a new one and returns whether it is there. One
    with voice messages may have `was_spoken`: it says whether events were, and shows the `spoken` of an answer. One on
    which one question may come as several messages may have `belong_together`, which is pure: it says whether an event
    is a part of the question that others ask.

    One that has a button under what could not be answered, which asks it again, says so by `offers_retry`; one that
    shows people what the history has as soon as it has it, by its numbers, says so by `shows_history`. What it shows
    and takes is told by `capabilities`: texts name what people can press or type there.

    Attributes:
        name: Stands in the context keys, with the events and with the deliveries.
    """

    name: str

    async def read(self, event: StoredEvent) -> InboundMessage | None:
        """Return what an event says; None if it says nothing to anybody.

        By one with is_meant, the bot is addressed, whatever it says itself.
        """

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:
        """Return the messages that make answer visible, in order. Pure."""

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make one message visible and return the platform's id of it.

        A delivery with an external_id replaces that message.

        Raises:
            DeliveryError: it was not taken; DeliveryRefused: it never will be; DeliveryInstead: others go in its place.
        """

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows the turn's progress, or None. It is called while a loop runs."""


def glimpse(transport: Transport) -> ReadEvent:
    """Return the function that reads a transport's events without fetching files, if it has one, else its `read`."""
    peek: ReadEvent | None = getattr(transport, "peek", None)
    return peek or transport.read


def is_shared(transport: Transport, context_keys: Mapping[str, str]) -> bool:
    """Return whether several people read a conversation; False if the transport cannot tell."""
    says: Callable[[Mapping[str, str]], bool] | None = getattr(transport, "is_shared", None)
    return says is not None and says(context_keys)


def belong_together(transport: Transport, known: Sequence[StoredEvent], event: StoredEvent) -> bool:
    """Return whether an event is a part of the question that known ones ask; False if the transport cannot tell."""
    says: Callable[[Sequence[StoredEvent], StoredEvent], bool] | None = getattr(transport, "belong_together", None)
    return says is not None and says(known, event)


def has_parts(transport: Transport) -> bool:
    """Return whether one question may come as several messages."""
    return hasattr(transport, "belong_together")


def topics_of(transport: Transport, context_keys: Mapping[str, str]) -> OpenTopic | None:
    """Return a function that opens a topic of a chat for a new conversation; None if the transport has no topics."""
    opens: Callable[[Mapping[str, str], str], Awaitable[bool]] | None = getattr(transport, "open_topic", None)
    return None if opens is None else partial(opens, context_keys)


def was_spoken(transport: Transport, events: Sequence[StoredEvent]) -> bool:
    """Return whether the question was spoken; False if the transport cannot tell."""
    says: Callable[[Sequence[StoredEvent]], bool] | None = getattr(transport, "was_spoken", None)
    return says is not None and says(events)


class NoTransport:
    """The transport of turns that a program asked for."""

    name = "api"
    capabilities = Capabilities(label="Program")

    async def read(self, event: StoredEvent) -> InboundMessage | None:  # noqa: ARG002 - nobody hands in events
        """Return nothing."""
        return None

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:  # noqa: ARG002 - nobody waits
        """Return no message."""
        return []

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:  # noqa: ARG002 - nobody waits
        """Do nothing."""
        return None

    def live(
        self,
        context_keys: Mapping[str, str],  # noqa: ARG002 - nobody looks
        events: Sequence[StoredEvent],  # noqa: ARG002 - nobody looks
        record: StreamRecord,  # noqa: ARG002 - nobody looks
    ) -> Live | None:
        """Return nothing."""
        return None
