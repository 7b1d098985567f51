"""The ledger of approvals: every statement that writes a decided call there, completes it, and reads it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Any, Final

from sqlalchemy import select, update

from botservice.agent.tool_executor import ToolOutcome
from botservice.conversation.masked_secrets import mask
from botservice.conversation.tool_calls import WITHDRAWN, read_calls
from botservice.core.messages import storable
from botservice.core.quoting import shortened
from botservice.core.states import PendingStatus
from botservice.people.names import chat_name, person_name
from botservice.storage.database import Connection
from botservice.storage.statements import chunks, of_each_database
from botservice.storage.tables.conversations import contexts
from botservice.storage.tables.people import identities
from botservice.storage.tables.waiting import approvals
from botservice.turns.waiting_calls import WaitingCall

_LONGEST: Final = 2_000  # characters of a text among arguments
_SERVER: Final = "__"  # in the name of a tool, behind the name of its MCP server


class CallResult(StrEnum):
    """What came of a call about which somebody had to decide."""

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
        digest: Of all arguments, with secrets masked; None where somebody in them was forgotten.
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
