"""What a conversation has to do next, in the order of docs/turns.md."""

from collections.abc import Iterator
from typing import NamedTuple

from .commits import is_owed
from .states import Chat, Rules

_DECIDED = ("allowed", "denied", "withdrawn", "expired")


class Work(NamedTuple):
    """What a conversation has to do next."""

    what: str
    turn: int = 0
    part: str = ""


def next_work(chat: Chat, rules: Rules) -> Work | None:
    """Return what comes next in a conversation; None if all of it has to wait."""
    if chat.stop == "stored":
        return _stop(chat, rules)
    return None if chat.wait else next(_in_order(chat, rules), None)


def _stop(chat: Chat, rules: Rules) -> Work:
    """Return the turn that a stop ends, if one runs that it is about."""
    for index, turn in enumerate(chat.turns):
        if turn.status == "running" and (index < chat.stop_behind or not rules.stops_what_came_before):
            return Work("stop", index)
    return Work("stops")


def _in_order(chat: Chat, rules: Rules) -> Iterator[Work]:
    for index, turn in enumerate(chat.turns):
        yield from (Work("owes", index, part) for part in ("asked", "answer") if is_owed(getattr(turn, part)))
    if chat.edit == "stored" and chat.turns[0].status not in ("nothing", "queued"):
        yield Work("edit")
    yield from _turns(chat, "running")
    for work in _turns(chat, "waiting"):
        turn = chat.turns[work.turn]
        if turn.approval in _DECIDED or turn.is_over:
            yield work
    queued = list(_turns(chat, "queued"))
    yield from queued if rules.begins_in_order else queued[::-1]


def _turns(chat: Chat, status: str) -> Iterator[Work]:
    return (Work("turn", index) for index, turn in enumerate(chat.turns) if turn.status == status)
