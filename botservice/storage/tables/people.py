"""The tables of persons: who they are, what is known of them, what they may do and use, and where they signed in."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint, false

from botservice.storage.tables.columns import Id, Json, Timestamp, context_id, metadata
from botservice.storage.tables.conditions import FACT_IS_ENDED, index_where

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


# What the owner made of people and chats: "telegram:42" is an owner, a member or blocked, "telegram:-100" a member.
access_roles = Table(
    "access_roles",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("granted_by", Text),
    Column("granted_at", Timestamp, nullable=False),
)

# Who was told that they have no access: nobody is told twice. Also what is to be known of people for a while and no
# longer: who has used a right all the same (privacy/rights.py), who was forgotten (privacy/late_messages.py).
access_refusals = Table(
    "access_refusals",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("told_at", Timestamp, nullable=False),
)

# What newcomers may show the owner, and what tells them, in the turn that they were refused in, that they are let in.
access_codes = Table(
    "access_codes",
    metadata,
    Column("person", Text, primary_key=True),
    Column("code", Text, nullable=False, unique=True),
    Column("name", Text),
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("welcome", Json, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
)

# Who brought the service into a chat last.
access_invitations = Table(
    "access_invitations",
    metadata,
    Column("chat", Text, primary_key=True),
    Column("person", Text, nullable=False),
    Column("invited_at", Timestamp, nullable=False),
)

# In which groups the bot decides by itself when to speak, where an owner has said so, or that it does not.
access_listening = Table(
    "access_listening",
    metadata,
    Column("chat", Text, primary_key=True),
    Column("is_on", Boolean, nullable=False),
    Column("set_at", Timestamp, nullable=False),
)

# What models were asked, by day (UTC), conversation, person and model. It outlives conversations: what is spent is
# spent. cost is in billionths of the currency.
model_usage = Table(
    "model_usage",
    metadata,
    Column("day", Text, primary_key=True),
    Column("context_id", Id, primary_key=True, autoincrement=False),
    Column("person", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("chat", Text, nullable=False),
    Column("calls", Id, nullable=False),
    Column("input_tokens", Id, nullable=False),
    Column("output_tokens", Id, nullable=False),
    Column("cached_tokens", Id, nullable=False),
    Column("cost", Id, nullable=False),
    Column("cache_write_tokens", Id, nullable=False, server_default="0"),
    Index("ix_model_usage_person_day", "person", "day"),
    Index("ix_model_usage_chat_day", "chat", "day"),
)

# The sums of model_usage by day and model, kept by triggers: a sum is in as many rows as sessions
# have counted at once, and a row may be negative.
model_usage_days = Table(
    "model_usage_days",
    metadata,
    Column("day", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    *(
        Column(name, Id, nullable=False)
        for name in ("calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "cache_write_tokens")
    ),
)

# What calls under way may take. One counts as long as its turn is open and it has not expired.
budget_reservations = Table(
    "budget_reservations",
    metadata,
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("person", Text, nullable=False),
    Column("chat", Text, nullable=False),
    Column("tokens", Id, nullable=False),
    Column("cost", Id, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
)

# What was decided about messages of groups that did not address the bot: whether it answers all the same. tries: how
# often a model was asked. decision: NULL until it has answered.
gate_decisions = Table(
    "gate_decisions",
    metadata,
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("chat", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("decision", Text),
    Column("decided_at", Timestamp, nullable=False),
    Index("ix_gate_decisions_chat_decided_at", "chat", "decided_at"),
)

# How many messages a person has sent, or how many events a hook has taken, in the minute that is named.
budget_rates = Table(
    "budget_rates",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("minute", Text, nullable=False),
    Column("messages", Integer, nullable=False),
)

# Logins of the web pages that ended before their time, by a digest: their cookies open nothing any more.
ended_logins = Table(
    "ended_logins", metadata, Column("digest", Text, primary_key=True), Column("expires_at", Timestamp, nullable=False)
)

# What was said about a limit in a period: nothing is said twice.
budget_notices = Table(
    "budget_notices", metadata, Column("notice", Text, primary_key=True), Column("told_at", Timestamp, nullable=False)
)


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
