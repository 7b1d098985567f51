"""Buttons: those that tools offer for the answer, and those under a message that was sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from botservice.conversation.steps import ActionStep
from botservice.core.messages import Button, ButtonStyle
from botservice.storage.database import Connection
from botservice.storage.tables.conditions import DELIVERY_HAS_BUTTONS, DELIVERY_IS_OWED
from botservice.storage.tables.conversations import deliveries, events

_FIELD = "offered_buttons"


def write_buttons(buttons: Sequence[Button]) -> list[dict[str, str]]:
    """Return buttons as JSON values, which every version can read."""
    return [_write(each) for each in buttons]


def read_buttons(kept: object) -> tuple[Button, ...]:
    """Return the buttons that `write_buttons` wrote, without anything that is no button."""
    if not isinstance(kept, list | tuple):
        return ()
    return tuple(
        Button(each["text"], each.get("value"), each.get("url"), _style(each.get("style")))
        for each in kept
        if isinstance(each, dict) and isinstance(each.get("text"), str)
    )


def offer_buttons(step: ActionStep, buttons: Sequence[Button]) -> None:
    """Keep with a step the buttons that its tools offer."""
    if buttons:
        step.set_value(_FIELD, write_buttons(buttons))


def offered_buttons(steps: Sequence[ActionStep]) -> tuple[Button, ...]:
    """Return what was offered last in these steps: an answer has the buttons of the newest question."""
    return next((found for step in reversed(steps) if (found := read_buttons(step.get_value(_FIELD)))), ())


def _write(button: Button) -> dict[str, str]:
    fields = {"text": button.text, "value": button.value, "url": button.url, "style": button.style}
    return {name: value for name, value in fields.items() if value is not None}


def _style(kept: object) -> ButtonStyle | None:
    return next((each for each in ButtonStyle if each == kept), None)


@dataclass(frozen=True, slots=True)
class Offered:
    """The buttons under a message.

    Attributes:
        asked: What its turn answers, as the platform delivered it.
    """

    buttons: tuple[Button, ...]
    asked: Sequence[bytes]


def are_owed(connection: Connection, context_id: int) -> bool:
    """Return whether some buttons are on their way or wait to be sent: they may have arrived without a word of it."""
    owed = select(deliveries.c.id).where(DELIVERY_IS_OWED, DELIVERY_HAS_BUTTONS, deliveries.c.context_id == context_id)
    return connection.execute(owed.limit(1)).first() is not None


def has_arrived(connection: Connection, context_id: int, transport: str, message_id: str) -> bool:
    """Return whether a message is known to have arrived, with or without buttons."""
    return connection.execute(_select_arrived(context_id, transport, message_id)).first() is not None


def find_offered(connection: Connection, context_id: int, transport: str, message_id: str) -> Offered | None:
    """Return the buttons under a message, or None if it is not known to have any."""
    arrived = _select_arrived(context_id, transport, message_id).where(DELIVERY_HAS_BUTTONS)
    row = connection.execute(arrived.order_by(deliveries.c.id.desc()).limit(1)).one_or_none()
    if row is None:
        return None
    asked = select(events.c.raw).where(events.c.turn_id == row.turn_id, events.c.raw.is_not(None))
    return Offered(read_buttons(row.buttons), connection.execute(asked).scalars().all())


def _select_arrived(context_id: int, transport: str, message_id: str) -> Select[Any]:
    is_it = deliveries.c.external_id == message_id, deliveries.c.transport == transport
    return select(deliveries.c.turn_id, deliveries.c.buttons).where(deliveries.c.context_id == context_id, *is_it)
