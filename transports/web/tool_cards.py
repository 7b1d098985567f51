"""The calls of tools as the page shows them: a card each, without secrets, while they run and afterwards."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from botservice.conversation.masked_secrets import find_secrets, masked
from botservice.conversation.tool_calls import MadeCall, read_made_calls, state_of_unmade
from botservice.core.messages import ToolCall
from botservice.storage.database import Connection
from botservice.turns.approval_message import readable
from transports.common.growing_answer import Step

Card = dict[str, Any]
"""A call as JSON."""

MOST: Final = 30  # calls of a turn; of more, the newest
_LONGEST_RESULT: Final = 1_000  # characters
_LOOKED_THROUGH: Final = 1_500  # characters, for secrets: dots are shorter than some


def show_running(steps: Sequence[Step]) -> list[Card]:
    """Return the cards of the newest calls while a turn works, in the order in which they began."""
    return [
        {
            "name": step.name,
            "arguments": step.arguments,
            "state": "running" if not step.is_done else "failed" if step.has_failed else "done",
            "said": step.said,
        }
        for step in [each for each in steps if each.call is not None][-MOST:]
    ]


def read_cards(connection: Connection, context_id: int, turn_ids: Iterable[int | None]) -> dict[int, list[Card]]:
    """Return the cards of the calls that turns made, by the turn."""
    made = read_made_calls(connection, context_id, {each for each in turn_ids if each is not None})
    return {turn_id: _show(calls) for turn_id, calls in made.items() if calls}


def _show(calls: Sequence[MadeCall]) -> list[Card]:
    cards = [_show_made(each) for each in calls[-MOST:]]
    cards[0]["before"] = len(calls) - len(cards)
    return cards


def _show_made(made: MadeCall) -> Card:
    result = made.result
    card: Card = {"name": made.call.name, "arguments": show_arguments(made.call)}
    if result is None:
        return card | {"state": "cut"}
    if (state := state_of_unmade(result.text)) is not None:
        return card | {"state": state}
    text = result.text.removeprefix("Error: ") if result.is_error else result.text
    return card | {
        "state": "failed" if result.is_error else "done",
        "result": _show_result(text),
        "seconds": result.duration_seconds,
    }


def show_arguments(call: ToolCall) -> str:
    """Return what a tool is called with, without secrets."""
    if call.malformed_arguments is not None:
        return _show_result(call.malformed_arguments)
    return readable(call.arguments)[0]


def _show_result(text: str) -> str:
    """Return what a tool gave, without secrets; of a long text, the beginning with its whole length."""
    shown = _mask(text[:_LOOKED_THROUGH])
    if len(text) <= _LONGEST_RESULT:
        return shown
    return f"{shown[:_LONGEST_RESULT]}… ({len(text):,} characters)"


@lru_cache(maxsize=2_000)
def _mask(text: str) -> str:
    """Return text without secrets; kept, because it takes a millisecond and pages are opened again and again."""
    return masked(text, find_secrets(text))
