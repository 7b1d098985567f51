"""The tables of what is noted of conversations, off the reply path."""

from sqlalchemy import Column, Index, Integer, Table, Text, UniqueConstraint

from botservice.storage.tables.columns import Id, Json, Timestamp, context_id, metadata
from botservice.storage.tables.conditions import READING_IS_DUE, index_where

# How far a conversation is read: up to the position read_to. again_to: so far it had been read before something was
# forgotten or changed (see triggers.py). version grows with every change: a write names the one that was read.
# seen_id: its last_message_id when it was looked at. due_at: when it is to be looked at, or read; 0 at once. tries:
# how often its next stretch was refused by the model. last_number: of its notes.
observed = Table(
    "observed",
    metadata,
    context_id(is_key=True),
    Column("read_to", Id, nullable=False, server_default="0"),
    Column("again_to", Id, nullable=False, server_default="0"),
    Column("version", Id, nullable=False, server_default="0"),
    Column("seen_id", Id, nullable=False, server_default="0"),
    Column("due_at", Timestamp),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("last_number", Id, nullable=False, server_default="0"),
    index_where("ix_observed_due_at", "due_at", where=READING_IS_DUE),
    Index("ix_observed_seen_id", "seen_id"),
)

# What is noted of a conversation. message_ids: what a note says that it came from. first_position to last_position:
# all that was read by whoever wrote it, whatever it says: with any of that it goes. span: how many times was read.
notes = Table(
    "notes",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("number", Id, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Timestamp, nullable=False),
    Column("message_ids", Json, nullable=False),
    Column("first_position", Id, nullable=False),
    Column("last_position", Id, nullable=False),
    Column("span", Id, nullable=False),
    Column("tokens", Integer, nullable=False),
    UniqueConstraint("context_id", "number"),
    Index("ix_notes_context_id_last_position", "context_id", "last_position"),
    sqlite_autoincrement=True,
)

# Notes that people have deleted, by a digest of their words: they do not come back.
refused_notes = Table("refused_notes", metadata, context_id(is_key=True), Column("digest", Text, primary_key=True))

# What readings under way may take of budgets.
observer_reservations = Table(
    "observer_reservations",
    metadata,
    context_id(is_key=True),
    Column("person", Text, nullable=False),
    Column("chat", Text, nullable=False),
    Column("tokens", Id, nullable=False),
    Column("cost", Id, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
)
