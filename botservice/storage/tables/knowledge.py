"""The tables of what the bot knows besides messages: notes of conversations, and documents."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint

from botservice.storage.tables.columns import Id, Json, Reason, Timestamp, context_id, metadata
from botservice.storage.tables.conditions import READING_IS_DUE, index_where

# What is noted of conversations, off the reply path

# How far a conversation is read: up to the position read_to. again_to: so far it had been read before something was
# forgotten or changed (by triggers). version grows with every change: a write names the one that was read.
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
# all that was read by its author, whatever it says: with any of that it goes. span: how many times was read.
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


# Documents that a team gave the bot to read

# A folder, a file or a web page. readers: who may read it, as `knowledge add --for` takes it; none for owners alone.
# version: counts the changes of its passages, so that an index in memory knows that it is old.
knowledge_sources = Table(
    "knowledge_sources",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("location", Text, nullable=False),
    Column("readers", Json, nullable=False),
    Column("version", Integer, nullable=False, server_default="0"),
    Column("added_at", Timestamp, nullable=False),
    Column("read_at", Timestamp),
    sqlite_autoincrement=True,
)

# A file of a source. path: below the source's folder. stamp: its size and time, to see that it is unchanged without
# reading it. problem: why it could not be read.
knowledge_documents = Table(
    "knowledge_documents",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source_id", Id, ForeignKey("knowledge_sources.id", ondelete="CASCADE"), nullable=False),
    Column("path", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("stamp", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("problem", Reason),
    UniqueConstraint("source_id", "path"),
    sqlite_autoincrement=True,
)

# A passage of a document: its text never changes, so that it is embedded once. digest: of heading and text.
knowledge_passages = Table(
    "knowledge_passages",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("document_id", Id, ForeignKey("knowledge_documents.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("position", Integer, nullable=False),
    Column("page", Integer),
    Column("heading", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("model", Text),
    Column("vector", LargeBinary),
    sqlite_autoincrement=True,
)
