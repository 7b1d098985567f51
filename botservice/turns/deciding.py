"""Deciding calls that wait: who may decide which, and storing it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from botservice.conversation.queries import read_is_shared
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Author
from botservice.people.access_queries import read_names
from botservice.people.names import person_name
from botservice.people.queries import ensure_identity
from botservice.storage.database import Connection
from botservice.texts.formatted import below, code, say
from botservice.turns.call_queries import decide_call, find_call, find_of_context, find_open
from botservice.turns.grant_queries import grant_tool, is_named
from botservice.turns.parsing_decisions import DecisionRequest
from botservice.turns.waiting_calls import PendingKind, PendingStatus, WaitingCall


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of a pressed button.

    Attributes:
        text: What the person who pressed it is told, and nobody else.
        is_taken: Whether it decided something.
    """

    text: FormattedText
    is_taken: bool = False


@dataclass(frozen=True, slots=True)
class CallSelection:
    """The calls that an order is about.

    Attributes:
        calls: Those that may be decided now.
        refusal: The text that says why there are none.
    """

    calls: Sequence[WaitingCall] = ()
    refusal: str = "approval.none"


@dataclass(frozen=True, slots=True)
class Decider:
    """Who has a word.

    Attributes:
        is_owner: Whether they may decide for others, too.
        is_private: Whether nobody else is where they say it.
        said_at: When they said it; None for this moment.
    """

    author: Author | None
    is_owner: bool = False
    is_private: bool = False
    said_at: datetime | None = None


def choose(
    connection: Connection, context_id: int, order: DecisionRequest, decider: Decider, now: datetime
) -> CallSelection:
    """Return the calls of a context that an order is about and that its author may decide."""
    if not order.numbers:
        return _choose_shown(connection, context_id, order, decider, now)
    waiting = [each for each in find_open(connection, context_id) if _is_decidable(each, now)]
    wanted = [each for each in waiting if each.id in order.numbers]
    allowed = [each for each in wanted if decider.is_owner or _may_decide(connection, each, decider)]
    if wanted and not allowed:
        return CallSelection(refusal="buttons.not_asked")
    known = any(find_call(connection, context_id, number) is not None for number in order.numbers)
    return CallSelection(allowed, "approval.over" if known else "approval.unknown")


def _choose_shown(
    connection: Connection, context_id: int, order: DecisionRequest, decider: Decider, now: datetime
) -> CallSelection:
    """Return the calls that an order without numbers is about.

    It means what a message had asked about and what waited when it was said, so it never takes anything that nobody had
    seen then; and worked off once more after a cut, it means the same.
    """
    said_at = decider.said_at or now
    meant = [
        each
        for each in find_of_context(connection, context_id)
        if each.kind is PendingKind.APPROVAL
        and each.delivery_id is not None
        and each.created_at <= said_at < each.expires_at
        and (each.is_waiting or (each.decided_at is not None and each.decided_at > said_at))
        and _may_decide(connection, each, decider)
    ]
    wanted = meant if order.is_all else meant[-1:]
    calls = [each for each in wanted if _is_decidable(each, now)]
    return CallSelection(calls, "approval.over" if wanted else "approval.none")


def carry_out(
    connection: Connection, calls: Sequence[WaitingCall], order: DecisionRequest, decider: Decider, now: datetime
) -> list[WaitingCall]:
    """Decide calls as an order says, and return those that were undecided before."""
    identity = ensure_identity(connection, decider.author, now) if calls else None  # an owner may never have written
    status = PendingStatus.ALLOWED if order.is_allowing else PendingStatus.DENIED
    by = None if identity is None else identity.id
    taken = [each for each in calls if decide_call(connection, each, status, now, by)]
    for each in taken if order.is_always and order.is_allowing else ():
        if each.author is not None and is_named(each.author):
            grant_tool(connection, each.context_id, each.tool, each.author, now, digest=each.tool_digest)
    return taken


def say_taken(calls: Sequence[WaitingCall], order: DecisionRequest, language: str | None) -> FormattedText:
    """Return what to tell the person who decided."""
    key = "approval.said_denied"
    if order.is_allowing:
        key = "approval.said_always" if order.is_always else "approval.said_allowed"
    tools = dict.fromkeys(each.tool for each in calls)
    return below(*(say(key, language, tool=code(tool)) for tool in tools), is_close=True)


def decide_now(
    connection: Connection,
    context_id: int,
    order: DecisionRequest,
    decider: Decider,
    language: str | None,
    now: datetime,
) -> Decision:
    """Do what a pressed button says, as far as the person may, and return what to tell them."""
    choice = choose(connection, context_id, order, decider, now)
    taken = carry_out(connection, choice.calls, order, decider, now)
    if taken:
        return Decision(say_taken(taken, order, language), is_taken=True)
    return Decision(say("approval.over" if choice.calls else choice.refusal, language))


def is_own(connection: Connection, call: WaitingCall, author: Author | None) -> bool:
    """Return whether a person is the asker of a call: by this account, a linked one, or as the only one there."""
    asker = person_name(call.author)
    if not asker:
        return not read_is_shared(connection, call.context_id)
    return asker in read_names(connection, person_name(author))


def _is_decidable(call: WaitingCall, now: datetime) -> bool:
    return call.kind is PendingKind.APPROVAL and call.is_waiting and call.expires_at > now


def _may_decide(connection: Connection, call: WaitingCall, decider: Decider) -> bool:
    """Return whether a call is a person's own; one without a named asker must be shown in a private conversation."""
    is_named_asker = bool(person_name(call.author))
    if not is_named_asker and (call.delivery_id is None or not decider.is_private):
        return False
    return is_own(connection, call, decider.author)
