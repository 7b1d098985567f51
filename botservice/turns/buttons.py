"""Buttons: those that tools offer for the answer, and those under a message that was sent."""

from collections.abc import Sequence
from dataclasses import dataclass

from botservice.conversation.steps import ActionStep
from botservice.core.messages import Button, ButtonStyle

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
