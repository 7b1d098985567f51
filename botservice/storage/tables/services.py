"""The tables of what platforms and servers of models were told, have given, or refuse."""

from sqlalchemy import Boolean, Column, ForeignKey, LargeBinary, Table, Text, false

from botservice.storage.tables.columns import Id, Json, Timestamp, context_id, metadata
from botservice.storage.tables.conditions import VERDICT_IS_BAD, index_where

# The menus of commands that a bot has at Telegram, as the digest of all of them.
telegram_menus = Table(
    "telegram_menus",
    metadata,
    Column("bot_id", Id, primary_key=True, autoincrement=False),
    Column("digest", Text, nullable=False),
    Column("set_at", Timestamp, nullable=False),
)


# A workspace, or a whole organisation, that has installed the bot. token is encrypted; enterprise_id is "" where the
# workspace belongs to none, team_id where an organisation installed the bot for all of its workspaces.
slack_installations = Table(
    "slack_installations",
    metadata,
    Column("enterprise_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("team_name", Text),
    Column("is_enterprise", Boolean, nullable=False, server_default=false()),
    Column("app_id", Text),
    Column("bot_id", Text),
    Column("bot_user_id", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("token", LargeBinary, nullable=False),
    Column("installed_by", Text),
    Column("installed_at", Timestamp, nullable=False),
    # Where tokens rotate: when this one ends, what gets the next one, and until when a process is getting it.
    Column("refresh_token", LargeBinary),
    Column("token_expires_at", Timestamp),
    Column("refreshing_until", Timestamp),
)

# The states of installations that have begun: each is good for one return from Slack.
slack_oauth_states = Table(
    "slack_oauth_states",
    metadata,
    Column("state", Text, primary_key=True),
    Column("expires_at", Timestamp, nullable=False, index=True),
)

# Which workspaces belong to an organisation: where that has installed the bot for all of them, its token speaks there.
slack_grids = Table(
    "slack_grids", metadata, Column("team_id", Text, primary_key=True), Column("enterprise_id", Text, nullable=False)
)

# What a workspace has refused of what Slack offers, so that it is not tried again at every message.
slack_refusals = Table(
    "slack_refusals",
    metadata,
    Column("team_id", Text, primary_key=True),
    Column("feature", Text, primary_key=True),
    Column("refused_at", Timestamp, nullable=False),
)

# The sessions that have a title, by their threads; not the title itself, which stands at Slack.
slack_titles = Table(
    "slack_titles",
    metadata,
    context_id(is_key=True),
    Column("thread_ts", Text, primary_key=True),
    Column("titled_at", Timestamp, nullable=False),
)

# What a person thinks of an answer: "good" or "bad".
feedback = Table(
    "feedback",
    metadata,
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("platform", Text, primary_key=True),
    Column("person_id", Text, primary_key=True),
    Column("verdict", Text, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    index_where("ix_feedback_bad", "turn_id", where=VERDICT_IS_BAD),
)


# What processes learn at work: what models refuse, and what an operator was told

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
