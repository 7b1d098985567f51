"""Edits and deletions of what people wrote, as events to be stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botservice.turns.turn import EventKind, InboundEvent
from transports.slack.inbound import SlackMessage, Way, field, order_of, raw, read_message, timestamp, word


@dataclass(frozen=True, slots=True)
class ChangedMessage:
    """A message that was edited or deleted.

    Attributes:
        message: As it is now, or as it was before it went.
        body: What delivers it as it is now, in the form of a message.
    """

    kind: EventKind
    message: SlackMessage
    body: Mapping[str, Any]
    event_id: str
    order_key: int

    def event(self, *, is_thread: bool) -> InboundEvent:
        """Return the change as an event of the thread that the message belongs to, or of the channel itself."""
        keys = self.message.keys(is_thread=is_thread)
        return InboundEvent(
            key=f"slack:{self.message.team_id}:{self.event_id}{':thread' if 'thread_ts' in keys else ''}",
            context_keys=keys,
            order_key=self.order_key,
            raw=raw(Way.MESSAGE, self.body),
            kind=self.kind,
            external_id=self.message.ts,
        )


def read_change(body: Mapping[str, Any]) -> ChangedMessage | None:
    """Return what became of a message; None where that changes nothing that anybody wrote."""
    event = field(body, "event")
    before, after = field(event, "previous_message"), field(event, "message")
    match field(event, "subtype"):
        case "message_changed" if field(after, "subtype") == "tombstone":  # deleted, with a thread below it
            kind, now = EventKind.DELETE, before
        case "message_changed":
            kind, now = EventKind.EDIT, after
        case "message_deleted":
            kind, now = EventKind.DELETE, before
        case _:
            return None
    if not isinstance(now, Mapping) or (kind is EventKind.EDIT and _says(before) == _says(after)):
        return None  # a link was unfurled, or somebody answered in its thread
    place = {name: field(event, name) for name in ("channel", "channel_type")}
    whole = {**body, "event": {**now, "type": "message", **place}}
    message, event_id = read_message(whole), word(field(body, "event_id"))
    at = timestamp(field(event, "event_ts")) or timestamp(field(event, "ts"))
    if message is None or event_id is None or at is None:
        return None
    return ChangedMessage(kind, message, whole, event_id, order_of(at))


def _says(message: object) -> tuple[object, ...]:
    files = field(message, "files")
    return field(message, "text"), tuple(field(each, "id") for each in files) if isinstance(files, list) else ()
