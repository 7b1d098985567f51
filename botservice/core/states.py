"""The states and kinds of what is stored, as their columns have them."""

from enum import StrEnum
from typing import Final

API: Final = "api"
"""The transport of turns that a program asked for: it has the answer, and nothing is delivered."""


class EventKind(StrEnum):
    """What an event asks for."""

    MESSAGE = "message"  # makes a turn
    STOP = "stop"  # a control: reaches the turn that runs, does not queue behind it
    EDIT = "edit"  # a control: what a message says from now on
    DELETE = "delete"  # a control: a message is gone
    MOVE = "move"  # a control: the conversation goes on at the end of another one
    FORGET = "forget"  # a control: something is to be removed from the records of the conversation
    DECISION = "decision"  # no event is stored of it: replicas tell each other that a person decided
    PROGRAM = "program"  # nor of it: replicas tell each other that a program wants something done


class TurnStatus(StrEnum):
    """Where a turn is."""

    QUEUED = "queued"  # accepted, not begun
    RUNNING = "running"  # begun; the process that claims its context goes on with it
    WAITING = "waiting"  # suspended with a call that waits; nobody holds its context for it
    DONE = "done"  # nothing more to do
    SET_ASIDE = "set_aside"  # given up; a person may have it tried again


OPEN: Final = (TurnStatus.QUEUED, TurnStatus.RUNNING)
"""The statuses of a turn that a process is to work on."""
UNFINISHED: Final = (*OPEN, TurnStatus.WAITING)
"""The statuses of a turn that is still to be answered."""


class Outcome(StrEnum):
    """How a turn ended."""

    ANSWERED = "answered"
    LISTENED = "listened"  # kept in the history, not answered: the bot was not meant
    REFUSED = "refused"  # the person who asked has no access, or a budget does not reach
    STOPPED = "stopped"  # interrupted; what was said until then is kept
    FAILED = "failed"  # the person was told so, where there is one


UNANSWERED: Final = (Outcome.FAILED, Outcome.STOPPED, Outcome.REFUSED)
"""The outcomes of a turn that got no whole answer."""


class DeliveryStatus(StrEnum):
    """Where a delivery is."""

    PENDING = "pending"  # to be sent
    ATTEMPTING = "attempting"  # on its way: after a cut, it may have arrived
    DELIVERED = "delivered"
    FAILED = "failed"  # the platform will not take it


class DeliveryKind(StrEnum):
    """What a delivery puts on a platform."""

    MESSAGE = "message"
    UNPLANNED = "unplanned"  # a program's own words: the platform's messages are made of them before the first is sent
    STREAM = "stream"  # a message that grows while its turn runs; the answer takes it over, as a MESSAGE


class ReminderStatus(StrEnum):
    """Where a reminder is."""

    WAITING = "waiting"  # for its time, or for its next time
    DONE = "done"
    PAUSED = "paused"  # a schedule that does nothing for now
    CANCELLED = "cancelled"
    FAILED = "failed"  # it cannot be made a message, or who asked for it no longer has access


class PendingKind(StrEnum):
    """What a call waits for."""

    APPROVAL = "approval"  # a person's word: it has not begun
    LATER = "later"  # its result: it has
    QUESTION = "question"  # answers of the person, with which it is made again; stored as "later", with its exchange


class PendingStatus(StrEnum):
    """What became of a call that waits."""

    WAITING = "waiting"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"  # nobody had a word in time, or nothing came
    WITHDRAWN = "withdrawn"  # its turn was stopped, or the person who asked may not ask any more
    HANDED_IN = "handed_in"
