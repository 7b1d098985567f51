"""Decisions about calls that wait: what people say (/allow, /deny), who may decide which, and how it is stored."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botservice.agent.tool_executor import ToolOutcome, describe_failure, outcome_of
from botservice.agent.tool_outputs import OutputError
from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_is_shared
from botservice.core.errors import BotServiceError, InvalidField
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Author, CommandCall
from botservice.core.states import EventKind, PendingKind, PendingStatus
from botservice.people.access_queries import read_names
from botservice.people.names import person_name
from botservice.people.queries import ensure_identity
from botservice.storage.database import Connection, Storage
from botservice.texts.formatted import below, code, say
from botservice.turns import call_queries
from botservice.turns.approval_queries import grant_tool, is_named
from botservice.turns.call_queries import decide_call, find_call, find_of_context, find_open
from botservice.turns.commands import parse_command
from botservice.turns.finding_queries import find_running_turn
from botservice.turns.waiting_calls import WaitingCall
from botservice.turns.wakeups import Wakeup, notify_replicas

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


def say_order(word: str, numbers: Iterable[int], more: str = "") -> str:
    """Return the text of a button that gives an order about calls."""
    return " ".join([f"/{word}", *map(str, numbers), *([more] if more else [])])


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of a pressed button.

    Attributes:
        text: What the person who pressed it is told, and no other person.
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
        is_private: Whether no other person is where they say it.
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
    allowed = [
        each
        for each in wanted
        if (decider.is_owner and each.kind is PendingKind.APPROVAL) or _may_decide(connection, each, decider)
    ]
    if order.is_allowing and any(each.kind is PendingKind.QUESTION for each in allowed):
        return CallSelection(refusal="asking.not_allowed")
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
        if (each.kind is PendingKind.APPROVAL or (each.kind is PendingKind.QUESTION and not order.is_allowing))
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
    for each in taken:
        if each.author is not None and _is_for_always(each, order):
            grant_tool(connection, each.context_id, each.tool, each.author, now, digest=each.tool_digest)
    return taken


def say_taken(calls: Sequence[WaitingCall], order: DecisionRequest, language: str | None) -> FormattedText:
    """Return what to tell the person who decided."""
    said = dict.fromkeys((_key_of(each, order), each.tool) for each in calls)
    return below(*(say(key, language, tool=code(tool)) for key, tool in said), is_close=True)


def _key_of(call: WaitingCall, order: DecisionRequest) -> str:
    if not order.is_allowing:
        return "approval.said_denied"
    return "approval.said_always" if _is_for_always(call, order) else "approval.said_allowed"


def _is_for_always(call: WaitingCall, order: DecisionRequest) -> bool:
    """Return whether a call is allowed for always: only for one known person."""
    return order.is_allowing and order.is_always and is_named(call.author)


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
    return call.kind is not PendingKind.LATER and call.is_waiting and call.expires_at > now


def _may_decide(connection: Connection, call: WaitingCall, decider: Decider) -> bool:
    """Return whether a call is a person's own; one without a named asker must be shown in a private conversation."""
    is_named_asker = bool(person_name(call.author))
    if not is_named_asker and (call.delivery_id is None or not decider.is_private):
        return False
    return is_own(connection, call, decider.author)


_PAUSES_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0, 2.0)


async def decide(
    context: AgentContext, call_id: str | int, *, is_allowed: bool, is_always: bool, now: datetime
) -> bool:
    """Store the decision about a waiting call, and return whether it was undecided before.

    Raises:
        BotServiceError: no such call waits, or has; or several are called so; or is_allowed is neither True nor False.
    """
    if not isinstance(is_allowed, bool):
        raise BotServiceError(f"allow must be True or False, not {is_allowed!r}")
    order = DecisionRequest(is_allowed, is_always=is_always)

    def write(connection: Connection) -> bool:
        call = _find_named(connection, context.id, call_id, PendingKind.APPROVAL)
        if call is None:
            raise BotServiceError(f"no call {call_id!r} awaits approval in context {context.id}")
        if not call.is_waiting or call.expires_at <= now:
            return False
        notify_replicas(connection, [Wakeup(context.id, EventKind.DECISION, is_open=True)])
        return bool(carry_out(connection, [call], order, Decider(None), now))

    return await context.storage.write(write, sort_key=(context.id,))


async def hand_in(context: AgentContext, name: str | int, result: Any, now: datetime) -> bool:
    """Hand in the result that a turn waits for, and return whether nothing had become of it before.

    A result that is faster than the storing of what waits for it waits a moment.

    Raises:
        BotServiceError: nothing of that name waits, or has; or several do.
        InvalidField: the result cannot be represented as JSON.
    """
    outcome = _outcome(result)
    for pause_seconds in (*_PAUSES_SECONDS, None):
        taken = await context.storage.write(
            lambda connection: _take_result(connection, context.id, name, outcome, now), sort_key=(context.id,)
        )
        if taken is not None:
            return taken
        if pause_seconds is None or not await _is_running(context.storage, context.id):
            break
        await asyncio.sleep(pause_seconds)
    raise BotServiceError(f"nothing called {name!r} waits for its result in context {context.id}")


def _take_result(
    connection: Connection, context_id: int, name: str | int, outcome: ToolOutcome, now: datetime
) -> bool | None:
    call = _find_named(connection, context_id, name, PendingKind.LATER)
    if call is None:
        return None
    if not call.is_waiting or not decide_call(connection, call, PendingStatus.HANDED_IN, now):
        return False
    call_queries.write_ended(connection, call.step_id, call.call_index, outcome)
    notify_replicas(connection, [Wakeup(context_id, EventKind.DECISION, is_open=True)])
    return True


def _find_named(connection: Connection, context_id: int, call_id: str | int, kind: PendingKind) -> WaitingCall | None:
    """Return the call that waits and is called so; else the newest that has waited.

    Raises:
        BotServiceError: several wait that are called so: models give one id to many calls; or it is no name at all.
    """
    if not isinstance(call_id, str | int) or isinstance(call_id, bool):
        raise BotServiceError(f"a call is named by its id, a text, or by its number, not by {call_id!r}")
    found = [
        each
        for each in find_of_context(connection, context_id)
        if each.kind is kind and call_id in (each.id, each.call_id, each.name)
    ]
    waiting = [each for each in found if each.is_waiting]
    if len(waiting) > 1:
        numbers = ", ".join(str(each.id) for each in waiting)
        raise BotServiceError(
            f"{len(waiting)} calls that are called {call_id!r} wait in context {context_id}; say its number: {numbers}"
        )
    return next(iter(waiting), found[-1] if found else None)


def _outcome(result: Any) -> ToolOutcome:
    if isinstance(result, BaseException):
        return ToolOutcome(f"Error: {describe_failure(result)}", error_type=type(result).__name__)
    try:
        return outcome_of(result)
    except OutputError as error:
        raise InvalidField(str(error)) from error


async def _is_running(storage: Storage, context_id: int) -> bool:
    return await storage.read(lambda connection: find_running_turn(connection, context_id)) is not None
