"""The tables of people who have signed in to servers of tools."""

from sqlalchemy import Column, ForeignKey, LargeBinary, Table, Text, UniqueConstraint

from botservice.storage.tables.columns import Id, Timestamp
from botservice.storage.tables.metadata import metadata

# What a server gave for one account of a person: data is encrypted, and says for which address it is. updated_at: when
# it was renewed.
tool_sign_ins = Table(
    "tool_sign_ins",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False),
    Column("server", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    UniqueConstraint("identity_id", "server"),
    sqlite_autoincrement=True,
)

# A sign-in that has begun: good for one return, of one person, from one server. data is encrypted.
tool_sign_in_states = Table(
    "tool_sign_in_states",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False),
    Column("server", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("expires_at", Timestamp, nullable=False, index=True),
    UniqueConstraint("identity_id", "server"),
)
