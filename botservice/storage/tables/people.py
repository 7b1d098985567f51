"""The tables of persons: who they are, and what is known of them."""

from sqlalchemy import Boolean, Column, ForeignKey, Integer, Table, Text, UniqueConstraint, false

from botservice.storage.tables.columns import Id, Timestamp, context_id
from botservice.storage.tables.conditions import FACT_IS_ENDED, index_where
from botservice.storage.tables.metadata import metadata

# A person, on all platforms on which they write. failed_guesses: wrong codes given since guessing_since.
persons = Table(
    "persons",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("failed_guesses", Integer, nullable=False, server_default="0"),
    Column("guessing_since", Timestamp),
    Column("created_at", Timestamp, nullable=False),
    sqlite_autoincrement=True,
)

# An account of a person on a platform. What belongs to a person hangs on the identity that it came through, so that
# linking two moves nothing and can be undone.
identities = Table(
    "identities",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("person_id", Id, ForeignKey("persons.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("platform", Text, nullable=False),
    Column("platform_id", Text, nullable=False),
    Column("name", Text),
    Column("created_at", Timestamp, nullable=False),
    UniqueConstraint("platform", "platform_id"),
    sqlite_autoincrement=True,
)

# Roles of the owner's own naming: tools may want one. They go with the account that they were given to.
person_roles = Table(
    "person_roles",
    metadata,
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("role", Text, primary_key=True),
    Column("granted_at", Timestamp, nullable=False),
)

# A code that joins two identities: shown to one of them, given by the other, agreed to by both.
link_codes = Table(
    "link_codes",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("code_hash", Text, nullable=False, unique=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("other_identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), index=True),
    Column("is_accepted", Boolean, nullable=False, server_default=false()),
    Column("expires_at", Timestamp, nullable=False),
    sqlite_autoincrement=True,
)

# A link that opens a person's chat in a browser, by a digest, for whoever wrote /web. One that is used, or that a newer
# one took the place of, stays until expires_at: so many may be asked for, and no more.
web_links = Table(
    "web_links",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("used_at", Timestamp),
    Column("expires_at", Timestamp, nullable=False),
)

# A browser that a link has opened, by a digest of its cookie: who wrote /web, and the account that they have there.
web_logins = Table(
    "web_logins",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("account_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
)

# A lasting thing about a person: where and with which words they said it, and whether other chats may know.
# superseded_at: since when another one is known in its place, ended_by. valid_from, valid_to: when it was said, and
# when the other one was. set_by: "observer" or "person", who corrected it; NULL for the agent.
facts = Table(
    "facts",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False, index=True),
    context_id(index=True),
    Column("source_message_id", Id, ForeignKey("messages.id", ondelete="CASCADE"), index=True),
    Column("topic", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("is_shareable", Boolean, nullable=False, server_default=false()),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("superseded_at", Timestamp),
    Column("set_by", Text),
    Column("valid_from", Timestamp),
    Column("valid_to", Timestamp),
    Column("ended_by", Id),
    index_where("ix_facts_ended_by", "ended_by", where=FACT_IS_ENDED),
    sqlite_autoincrement=True,
)

# Facts that people have deleted or corrected, by digests of their words and of their topic, and by the message that
# they came from: nobody but the person brings them back.
refused_facts = Table(
    "refused_facts",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("digest", Text, nullable=False),
    Column("topic_digest", Text, nullable=False),
    Column("message_id", Id, ForeignKey("messages.id", ondelete="SET NULL"), index=True),
    Column("refused_at", Timestamp, nullable=False),
    sqlite_autoincrement=True,
)

# Archives of all that is kept of a person, which they have asked for; each for a day at most. It goes with its turn.
exports = Table(
    "exports",
    metadata,
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    context_id(index=True),
    Column("identity_id", Id, ForeignKey("identities.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("sha256", Text, nullable=False),
    Column("made_at", Timestamp, nullable=False),
)
