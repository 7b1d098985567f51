"""The tables of access and budgets: who may come in, what is used, and what may be used."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text

from botservice.storage.tables.columns import Id, Json, Timestamp
from botservice.storage.tables.metadata import metadata

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

# The sums of model_usage by day and model, kept by the database (see triggers.py): a sum is in as many rows as sessions
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

# How many messages a person has sent in the minute that is named.
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
