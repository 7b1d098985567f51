"""What people say to decide: /allow and /deny, with numbers, all, always or show behind them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from botservice.core.messages import Button, CommandCall
from botservice.turns.command_parsing import parse_command

ALLOW: Final = "allow"
DENY: Final = "deny"
_ALL: Final = "all"
_ALWAYS: Final = "always"
_SHOW: Final = "show"
_NUMBER: Final = re.compile(r"#?(\d{1,18})")
_MOST_NUMBERS: Final = 200


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A person's order about calls that wait.

    Attributes:
        is_allowing: Whether they may run.
        numbers: Which; none for the newest of the person who says it.
        is_all: All of the person who says it.
        is_always: From now on without being asked about.
        is_showing: Only to be seen, with all their arguments.
    """

    is_allowing: bool
    numbers: tuple[int, ...] = ()
    is_all: bool = False
    is_always: bool = False
    is_showing: bool = False


def parse_order(command: CommandCall | None) -> DecisionRequest | None:
    """Return what a command wants to become of calls; None if it is about something else, or not understood."""
    if command is None or command.name not in (ALLOW, DENY):
        return None
    words = command.arguments.lower().replace(",", " ").split()
    numbers = [found[1] for word in words if (found := _NUMBER.fullmatch(word))]
    others = {word for word in words if not _NUMBER.fullmatch(word)}
    is_allowing = command.name == ALLOW
    known = {_ALL, _SHOW, _ALWAYS} if is_allowing else {_ALL, _SHOW}
    if not others <= known or len(numbers) > _MOST_NUMBERS:
        return None
    return DecisionRequest(
        is_allowing,
        tuple(dict.fromkeys(map(int, numbers))),
        is_all=_ALL in others,
        is_always=_ALWAYS in others,
        is_showing=_SHOW in others,
    )


def order_of(says: str) -> DecisionRequest | None:
    """Return what a button wants to become of calls; None if it says something else."""
    return parse_order(parse_command(says))


def say(word: str, numbers: Iterable[int], more: str = "") -> str:
    """Return the text of a button that gives an order about calls."""
    return " ".join([f"/{word}", *map(str, numbers), *([more] if more else [])])


def is_question(buttons: Iterable[Button]) -> bool:
    """Return whether a message with these buttons asks for a decision about calls of tools."""
    return any(order_of(each.says) is not None for each in buttons if each.url is None)
