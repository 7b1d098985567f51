"""The tables of documents that a team gave the bot to read."""

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, Table, Text, UniqueConstraint

from botservice.storage.tables.columns import Id, Json, Reason, Timestamp, metadata

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
