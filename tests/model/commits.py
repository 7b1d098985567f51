"""What a step is, and whether the commit that it makes may be made."""

from collections.abc import Sequence
from typing import NamedTuple

from .moves import Change, explain
from .states import FREE, Chat, Delivery, Memory, Plan, Rules, Turn, World

WRITTEN_BACK = "what was forgotten is written back"
EXCUSED = "excused"
"""What a worker's memory says that was cut off right before it sends: its message may come a second time."""
FORGOTTEN = "what was forgotten"
"""What a worker's memory says that has had words in its prompt which were forgotten since."""
_ENDED = ("nothing", "done", "set_aside", "gone")


class Step(NamedTuple):
    """Something that happens.

    Attributes:
        says: What, in plain words.
        actor: Who has to do it some time if it stays possible; "" where nobody has to.
    """

    says: str
    actor: str
    chat: Chat
    world: World


class Situation(NamedTuple):
    """What a step is looked for in."""

    chat: Chat
    world: World
    rules: Rules
    plan: Plan
    is_strict: bool


COMMITS: dict[tuple[tuple[Change, ...], bool], str | None] = {}
"""Every commit that was made, by whether its worker had the conversation, with what the table of moves says of it."""


def _explain(changes: tuple[Change, ...], *, holds: bool) -> str | None:
    if (changes, holds) not in COMMITS:
        COMMITS[changes, holds] = explain(changes, holds=holds)
    return COMMITS[changes, holds]


def is_unanswered(turn: Turn) -> bool:
    """Return whether a person still has to be told something because of a message."""
    is_open = turn.status not in _ENDED or is_owed(turn.asked) or is_owed(turn.answer)
    return is_open or (turn.status == "done" and turn.answers > 0 and turn.answer.status == "nothing")


def name_of(turn: int) -> str:
    """Return what a message is called in a story."""
    return f"message {turn + 1}"


def name_of_delivery(index: int, part: str) -> str:
    what = "the question about" if part == "asked" else "the answer to"
    return f"{what} {name_of(index)}"


def is_owed(delivery: Delivery) -> bool:
    return delivery.status in ("pending", "attempting")


def put_turn(chat: Chat, index: int, turn: Turn) -> Chat:
    """Return a conversation with another state of one of its turns."""
    return chat._replace(turns=(*chat.turns[:index], turn, *chat.turns[index + 1 :]))


def put_delivery(turn: Turn, part: str, delivery: Delivery) -> Turn:
    """Return a turn with another state of one of its two messages."""
    return turn._replace(asked=delivery) if part == "asked" else turn._replace(answer=delivery)


def put_memory(chat: Chat, worker: int, memory: Memory | None) -> Chat:
    """Return a conversation with something else in the memory of a worker."""
    return chat._replace(memory=(*chat.memory[:worker], memory, *chat.memory[worker + 1 :]))


def checked_commit(new: Chat, old: Chat, session: int | None, changes: Sequence[Change], is_strict: bool) -> Chat:
    """Return a conversation after a commit, with an alarm if that commit must not be."""
    if new.alarm:
        return new
    holds = session is not None and old.lock == session + 1
    if session is not None and old.lock not in (FREE, session + 1):
        return new._replace(alarm="a write is accepted while another worker has the conversation")
    if is_strict and (reason := _explain(tuple(changes), holds=holds)) is not None:
        return new._replace(alarm=reason)
    first = new.turns[0]
    if new.edit == "handled" and not first.is_changed and first.status in ("running", "waiting", "done"):
        return new._replace(alarm="an edit is handled and has changed nothing")
    return new
