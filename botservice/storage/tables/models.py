"""The tables of what processes learn at work: what models refuse, and what an operator was told."""

from sqlalchemy import Boolean, Column, Table, Text, false

from botservice.storage.tables.columns import Json, Timestamp, context_id, metadata

# What a model of a server does not take, such as "image" or "stream_options", until when that is believed, and by which
# words of its own the server said so: no words of people.
model_refusals = Table(
    "model_refusals",
    metadata,
    Column("server", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("what", Text, primary_key=True),
    Column("wording", Text),
    Column("learned_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
)

# Which messages of a conversation its prompts for a model go without, by their ids, because the model refuses them.
refused_messages = Table(
    "refused_messages",
    metadata,
    context_id(is_key=True),
    Column("model", Text, primary_key=True),
    Column("kept_out", Json, nullable=False),
    Column("is_told", Boolean, nullable=False, server_default=false()),
    Column("expires_at", Timestamp, nullable=False),
)


# One row for each kind of alert. is_on: it was told, and not yet that it is over. since: from when on what it is about
# went wrong; told_at: when it was told last, for all processes together.
alerts = Table(
    "alerts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("is_on", Boolean, nullable=False),
    Column("since", Timestamp),
    Column("told_at", Timestamp),
)
