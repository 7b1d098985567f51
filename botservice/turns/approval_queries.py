"""Every statement of approvals: the ledger of decided calls, and the tools that need not ask a person."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, delete, insert, select, update

from botservice.agent.tool_executor import ToolOutcome
from botservice.conversation.masked_secrets import mask
from botservice.conversation.tool_calls import WITHDRAWN, read_calls
from botservice.core.messages import Author, storable
from botservice.core.quoting import shortened
from botservice.core.states import PendingStatus
from botservice.people.access_queries import read_decided_at
from botservice.people.names import chat_name, person_name
from botservice.storage.database import Connection
from botservice.storage.message_references import decode_references
from botservice.storage.statements import chunks, of_each_database
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON, TURN_IS_OPEN, TURN_IS_RUNNING
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, turns
from botservice.storage.tables.people import identities
from botservice.storage.tables.waiting import approvals, tool_grants
from botservice.turns.waiting_calls import WaitingCall

# The ledger: every decided call, when it was completed, and what came of it

_LONGEST: Final = 2_000  # characters of a text among arguments
_SERVER: Final = "__"  # in the name of a tool, behind the name of its MCP server


class CallResult(StrEnum):
    """What came of a call about which a person had to decide."""

    WORKED = "worked"
    FAILED = "failed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"  # it has not ended yet, or nobody can say


DECISIONS: Final[Mapping[PendingStatus, str]] = {
    PendingStatus.ALLOWED: "allowed",
    PendingStatus.DENIED: "denied",
    PendingStatus.EXPIRED: "expired",
    PendingStatus.WITHDRAWN: "cancelled",
}
_NOT_MADE: Final = {"Denied", "ApprovalExpired", "ApprovalNeeded"}
_NOBODY_KNOWS: Final = {"Interrupted", "RunInterrupted", "ResultExpired"}


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A decided approval.

    Attributes:
        call: The number of the call, as in /allow 3.
        arguments: JSON, with secrets masked and long texts cut.
        digest: Of all arguments, with secrets masked; None where a person in them was forgotten.
        asker: Who asked, such as telegram:42.
        decider: Who decided; None where a program did, or nobody.
        names: What people are called now, by such names.
    """

    call: int
    tool: str
    tool_digest: str | None
    arguments: str
    digest: str | None
    asker: str | None
    asked_at: datetime
    decision: str
    decider: str | None
    decided_at: datetime
    chat: str
    result: CallResult
    ended_at: datetime | None
    names: Mapping[str, str]

    @property
    def server(self) -> str | None:
        """The MCP server of the tool; None for the bot's own."""
        server, mark, _ = self.tool.partition(_SERVER)
        return server if mark else None

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {
            "call": self.call,
            "asked_at": self.asked_at.isoformat(),
            "asker": self.asker,
            "asker_name": self.names.get(self.asker or ""),
            "tool": self.tool,
            "server": self.server,
            "tool_digest": self.tool_digest,
            "arguments": json.loads(self.arguments),
            "digest": self.digest,
            "decision": self.decision,
            "decider": self.decider,
            "decider_name": self.names.get(self.decider or ""),
            "decided_at": self.decided_at.isoformat(),
            "chat": self.chat,
            "result": self.result.value,
            "ended_at": self.ended_at and self.ended_at.isoformat(),
        }


FIELDS: Final = (
    *("call", "asked_at", "asker", "asker_name", "tool", "server", "tool_digest", "arguments", "digest"),
    *("decision", "decider", "decider_name", "decided_at", "chat", "result", "ended_at"),
)
"""What `LedgerEntry.as_dict` has, in its order."""

_OF_ENTRY = [approvals.c[each.name] for each in fields(LedgerEntry) if each.name in approvals.c]
_insert = of_each_database(lambda insert: insert(approvals).on_conflict_do_nothing(index_elements=["call"]))
_IS_OPEN = approvals.c.result == CallResult.UNKNOWN.value


def record(
    connection: Connection, call: WaitingCall, status: PendingStatus, now: datetime, decided_by: int | None = None
) -> None:
    """Write what was decided about a call, in the transaction that stores the decision."""
    of_chat = select(contexts.c.context_keys, contexts.c.is_shared).where(contexts.c.id == call.context_id)
    chat = connection.execute(of_chat).one()
    of_decider = select(identities.c.platform, identities.c.platform_id).where(identities.c.id == decided_by)
    decider = None if decided_by is None else connection.execute(of_decider).one_or_none()
    arguments, digest = _describe(call.arguments_in(read_calls(connection, call.step_id)))
    values = {
        "call": call.id,
        "step_id": call.step_id,
        "call_index": call.call_index,
        "tool": call.tool,
        "tool_digest": call.tool_digest,
        "arguments": arguments,
        "digest": digest,
        "asker": person_name(call.author) or None,
        "asked_at": call.created_at,
        "decision": DECISIONS[status],
        "decider": None if decider is None else storable(f"{decider.platform}:{decider.platform_id}"),
        "decided_at": now,
        "chat": chat_name(chat.context_keys),
        "is_shared": chat.is_shared,
        "result": (CallResult.UNKNOWN if status is PendingStatus.ALLOWED else CallResult.NOT_RUN).value,
    }
    connection.execute(_insert(connection), values)


def complete_step(connection: Connection, step_id: int, outcomes: Sequence[ToolOutcome], now: datetime) -> None:
    """Write what came of the allowed calls of a step, in the transaction that closes it."""
    is_allowed = approvals.c.decision == DECISIONS[PendingStatus.ALLOWED]
    query = select(approvals.c.call, approvals.c.call_index).where(approvals.c.step_id == step_id, is_allowed, _IS_OPEN)
    for row in connection.execute(query).all():
        if row.call_index < len(outcomes):
            complete(connection, row.call, _result_of(outcomes[row.call_index]), now)


def complete(connection: Connection, call: int, result: CallResult, now: datetime) -> None:
    """Write what came of an allowed call."""
    completing = update(approvals).where(approvals.c.call == call, _IS_OPEN)
    connection.execute(completing.values(result=result.value, ended_at=now))


def list_approvals(
    connection: Connection, *, since: datetime | None = None, before: int | None = None, limit: int | None = None
) -> list[LedgerEntry]:
    """Return decided approvals, those that were asked about last first.

    Args:
        since: Only what was decided from then on.
        before: Only calls with smaller numbers.
        limit: How many at most.
    """
    query = select(*_OF_ENTRY).order_by(approvals.c.call.desc()).limit(limit)
    if since is not None:
        query = query.where(approvals.c.decided_at >= since)
    if before is not None:
        query = query.where(approvals.c.call < before)
    rows = connection.execute(query).mappings().all()
    names = _read_names(connection, {name for row in rows for name in (row["asker"], row["decider"]) if name})
    return [LedgerEntry(**{**row, "result": CallResult(row["result"])}, names=names) for row in rows]


def _read_names(connection: Connection, accounts: set[str]) -> dict[str, str]:
    """Return what people are called, by their accounts."""
    found: dict[str, str] = {}
    for chunk in chunks(sorted({each.partition(":")[2] for each in accounts})):
        query = select(identities.c.platform, identities.c.platform_id, identities.c.name)
        for row in connection.execute(query.where(identities.c.platform_id.in_(chunk))):
            if row.name:
                found[f"{row.platform}:{row.platform_id}"] = row.name
    return found


def _describe(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return arguments as they are kept, and the digest of all of them; both with secrets masked.

    A digest of what is masked would give a short secret away to a person who tries all of them.
    """
    masked = _with_masked_names(mask(arguments))
    whole = json.dumps(masked, sort_keys=True, default=str)
    return json.dumps(_cut(masked), default=str), hashlib.sha256(whole.encode()).hexdigest()


def _with_masked_names(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {mask(str(key)): _with_masked_names(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_masked_names(each) for each in value]
    return value if not isinstance(value, float) or isfinite(value) else str(value)


def _cut(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {shortened(key, _LONGEST): _cut(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_cut(each) for each in value]
    return shortened(value, _LONGEST) if isinstance(value, str) else value


def _result_of(outcome: ToolOutcome) -> CallResult:
    if not outcome.is_error:
        return CallResult.WORKED
    if outcome.error_type in _NOT_MADE or outcome.text == WITHDRAWN:
        return CallResult.NOT_RUN
    return CallResult.UNKNOWN if outcome.error_type in _NOBODY_KNOWS else CallResult.FAILED


# Grants: whose calls of which tool run in a conversation without being asked about

_SAID = select(*messages.c["position", "author_platform", "author_id", "is_all_own", "said_by_others"])
# Also events that have no message (any more): what was said there, and by whom, is not known.
_SAID_BY_EVENTS = _SAID.select_from(events.outerjoin(messages, messages.c.event_id == events.c.id))
_BEFORE_ALL = -1


@dataclass(frozen=True, slots=True)
class ToolGrant:
    """A tool that need not ask for a person in a conversation.

    Attributes:
        digest: Of what the tool looked like when it was allowed; None where that is not known, and it asks again.
    """

    tool: str
    created_at: datetime
    digest: str | None = None


def is_named(author: Author | None) -> bool:
    """Return whether an author is one known person, and does not write in the name of a chat as several may."""
    return author is not None and author.id is not None and not author.is_chat


def grant_tool(
    connection: Connection, context_id: int, tool: str, author: Author, now: datetime, *, digest: str | None
) -> None:
    """Let a tool run without asking, for one person in one conversation, as long as it has this digest."""
    if any((each.tool, each.digest) == (tool, digest) for each in find_grants(connection, context_id, author)):
        return
    revoke_grants(connection, context_id, author, [tool])
    values = {"context_id": context_id, "tool": tool, "created_at": now, "tool_digest": digest}
    connection.execute(insert(tool_grants), {**values, "author_platform": author.platform, "author_id": author.id})


def revoke_grants(connection: Connection, context_id: int, author: Author, tools: Sequence[str] | None = None) -> None:
    """Make tools ask again, for one person in one conversation; all of them by default."""
    wanted = delete(tool_grants).where(_is_theirs(context_id, author))
    connection.execute(wanted if tools is None else wanted.where(tool_grants.c.tool.in_(list(tools))))


def find_grants(connection: Connection, context_id: int, author: Author | None) -> list[ToolGrant]:
    """Return the tools that need not ask for a person in a conversation, each once.

    What was allowed before a person last gave the person roles or access was allowed to a person of another standing.
    """
    if author is None or author.id is None:
        return []
    theirs = select(tool_grants).where(_is_theirs(context_id, author)).order_by(tool_grants.c.created_at)
    own = connection.execute(theirs).all()
    decided_at = read_decided_at(connection, person_name(author)) if own else None
    if decided_at is not None:
        own = [row for row in own if row.created_at >= decided_at]
    return list({row.tool: ToolGrant(row.tool, row.created_at, row.tool_digest) for row in own}.values())


def is_all_said_by(connection: Connection, context_id: int, turn_id: int | None, author: Author | None) -> bool:
    """Return whether a turn is about nothing but a person's own words, with no other person's since those before it.

    What they allowed for always is for what they ask for themselves: not for what others wrote, in a message, a file or
    a page, and not for what is asked again or was written for them. Whatever is not known counts as another person's.

    Args:
        turn_id: None for the one that is worked on in the context.
    """
    if not is_named(author) or author is None:
        return False
    asked = _read_asked(connection, context_id, turn_id)
    if not _are_own(asked, author) or not _answer_own(connection, context_id, asked, author):
        return False
    positions = {row.position for row in asked}
    said = select(messages.c.position).where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON)
    is_theirs = (messages.c.author_platform == author.platform) & (messages.c.author_id == author.id)
    earlier = said.where(is_theirs, messages.c.is_all_own.is_(True), messages.c.position < min(positions))
    newest = earlier.order_by(messages.c.position.desc()).limit(1)
    before = connection.execute(newest).scalar_one_or_none()
    after = _BEFORE_ALL if before is None else before
    since = said.where(messages.c.position > after).order_by(messages.c.position).limit(len(asked) + 1)
    is_alone = set(connection.execute(since).scalars()) == positions
    find_untrusted = select(contexts.c.untrusted_at).where(contexts.c.id == context_id)
    untrusted_at = connection.execute(find_untrusted).scalar_one_or_none()
    return is_alone and (untrusted_at is None or untrusted_at < after)


def _read_asked(connection: Connection, context_id: int, turn_id: int | None) -> Sequence[Any]:
    """Return what a turn is asked, or the one that is worked on; what a program asks is the newest message."""
    is_it: ColumnElement[bool] = turns.c.id == turn_id
    if turn_id is None:
        is_it = and_(turns.c.context_id == context_id, TURN_IS_OPEN, TURN_IS_RUNNING)
    of_turn = _SAID_BY_EVENTS.join(turns, turns.c.id == events.c.turn_id).where(is_it)
    by_program = _SAID.where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON, messages.c.event_id.is_(None))
    newest = by_program.order_by(messages.c.position.desc()).limit(1)
    return connection.execute(of_turn).all() or connection.execute(newest).all()


def list_askers(connection: Connection, turn_id: int) -> list[Author | None]:
    """Return who sent the messages that a turn answers; None for one that is not known (any more)."""
    rows = connection.execute(_SAID_BY_EVENTS.where(events.c.turn_id == turn_id)).all()
    return [None if row.position is None else Author(row.author_platform, row.author_id) for row in rows]


def _are_own(rows: Sequence[Any], author: Author) -> bool:
    """Return whether there are messages, and an author wrote all of each."""
    theirs = (author.platform, author.id)
    return bool(rows) and all((row.author_platform, row.author_id) == theirs and row.is_all_own for row in rows)


def _answer_own(connection: Connection, context_id: int, rows: Sequence[Any], author: Author) -> bool:
    """Return whether whatever messages reply to is the bot's answer to the same author's own words.

    Another person may have had the bot say something, and a stranger's text may have.
    """
    held = [each for row in rows if row.said_by_others for each in decode_references(row.said_by_others)]
    for each in held:
        is_it = deliveries.c.context_id == context_id, deliveries.c.external_id == each.external_id
        answered = connection.execute(select(deliveries.c.turn_id).where(*is_it)).scalars().all()
        asked = [connection.execute(_SAID_BY_EVENTS.where(events.c.turn_id == turn_id)).all() for turn_id in answered]
        if not each.is_of_assistant or not asked or not all(_are_own(rows, author) for rows in asked):
            return False
    return True


def _is_theirs(context_id: int, author: Author) -> Any:
    return (
        (tool_grants.c.context_id == context_id)
        & (tool_grants.c.author_platform == author.platform)
        & (tool_grants.c.author_id == author.id)
    )
