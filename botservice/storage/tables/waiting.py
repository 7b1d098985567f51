"""The tables of what waits for a person, or for a result that comes later."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text, true

from botservice.storage.tables.columns import Id, Timestamp, context_id, metadata
from botservice.storage.tables.conditions import CALL_IS_OPEN, index_where

# A call of a tool that its turn waits with: kind "approval" has not begun and waits for a person's word, "later" has
# and waits for its result. question: JSON, what the tool asks the person and what they have answered so far; the call
# is made again with their answers. Such a call is of kind "later", as releases before 1.2.0 know no other, and
# "handed_in" once answered. is_open: the turn waits still. due_at: when a worker has to look at it, at the latest when
# its time is over (expires_at); NULL where that was done. name: what a tool calls its later result. author_*: on whose
# behalf. decided_by: who had their word, in identities. delivery_id: the message that asks; told_at: since when that
# message says what was decided.
pending_calls = Table(
    "pending_calls",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("step_id", Id, nullable=False),
    Column("call_index", Integer, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("name", Text),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("is_open", Boolean, nullable=False, server_default=true()),
    Column("transport", Text, nullable=False),
    Column("author_platform", Text),
    Column("author_id", Text),
    Column("author_name", Text),
    Column("delivery_id", Id),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("due_at", Timestamp),
    Column("due_set_at", Timestamp),
    Column("decided_at", Timestamp),
    Column("decided_by", Id),
    Column("told_at", Timestamp),
    Column("tool_digest", Text),  # of the tool's description and schema when it was asked about
    Column("question", Text),
    Index("ix_pending_calls_context_id", "context_id", "id"),
    index_where("ix_pending_calls_due", "due_at", where=CALL_IS_OPEN),
    sqlite_autoincrement=True,
)

# Whose calls of which tool run in a conversation without being asked about.
tool_grants = Table(
    "tool_grants",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("tool", Text, nullable=False),
    Column("author_platform", Text),
    Column("author_id", Text),
    Column("created_at", Timestamp, nullable=False),
    Column("tool_digest", Text),  # a grant is for the tool that has this one; one without is for none
    Index("ix_tool_grants_context_id", "context_id"),
    sqlite_autoincrement=True,
)

# The ledger of decided approvals. It stands alone: a row outlives the call, its turn and its chat. call: the number of
# the call that waited; step_id and call_index: where its result comes from. arguments: JSON, with secrets masked;
# digest: of all of them, also where long ones are cut here. asker, decider, chat: names such as telegram:42, or what
# stands for a person who was forgotten.
approvals = Table(
    "approvals",
    metadata,
    Column("call", Id, primary_key=True, autoincrement=False),
    Column("step_id", Id, nullable=False, index=True),
    Column("call_index", Integer, nullable=False),
    Column("tool", Text, nullable=False),
    Column("tool_digest", Text),
    Column("arguments", Text, nullable=False),
    Column("digest", Text),
    Column("asker", Text),
    Column("asked_at", Timestamp, nullable=False),
    Column("decision", Text, nullable=False),
    Column("decider", Text),
    Column("decided_at", Timestamp, nullable=False, index=True),
    Column("chat", Text, nullable=False),
    Column("is_shared", Boolean, nullable=False),
    Column("result", Text, nullable=False),
    Column("ended_at", Timestamp),
)
