"""The tables of conversations: what was said, what the agent did, and the turns that answer it."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from botservice.storage.tables import conditions
from botservice.storage.tables.columns import Compressed, Id, Json, Places, Reason, Timestamp, context_id, metadata
from botservice.storage.tables.conditions import index_where

# One conversation with its own memory. last_position numbers its messages: it grows under the row's lock, so that
# positions become visible in their order. deletion_version grows when messages change or go; caches compare it.
# is_shared: more than one person was seen there, or the platform says that others listen; it never becomes private
# again. only_identity_id: who was seen there, as long as that is one.
# forgotten_at: when its people were forgotten; its keys go when nothing is pending there any more.
# fresh_from is the position after which a fresh conversation began: what is before it is found, and not shown unasked.
# message_count and last_message_id are kept by triggers; NULL: the messages are not counted yet.
contexts = Table(
    "contexts",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("key_hash", Text, nullable=False, unique=True),
    Column("context_keys", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("last_position", Id, nullable=False, server_default="0"),
    Column("deletion_version", Id, nullable=False, server_default="0"),
    Column("is_shared", Boolean, nullable=False, server_default=false()),
    Column("only_identity_id", Id),
    Column("created_at", Timestamp, nullable=False),
    Column("fresh_from", Id, nullable=False, server_default="0"),
    Column("forgotten_at", Timestamp),
    Column("last_message_id", Id, nullable=False, server_default="0"),
    Column("message_count", Id, server_default="0"),
    # The position after which a tool last gave what strangers wrote, such as a page, or a message was edited or deleted
    # that may have held their words; NULL where none did.
    Column("untrusted_at", Id),
    Index("ix_contexts_last_message_id", "last_message_id", "id"),
    index_where("ix_contexts_with_metadata", "id", where=conditions.CONTEXT_HAS_METADATA),
    index_where("ix_contexts_forgotten", "id", where=conditions.CONTEXT_IS_FORGOTTEN),
    index_where("ix_contexts_only_identity_id", "only_identity_id", where=conditions.CONTEXT_IS_OF_ONE),
    sqlite_autoincrement=True,
)

# What was said. event_id and answers_turn_id make an append happen once, however often it is tried.
messages = Table(
    "messages",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("position", Id, nullable=False),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("attachments", Json),
    Column("author_platform", Text),
    Column("author_id", Text),
    Column("author_name", Text),
    Column("created_at", Timestamp, nullable=False),
    Column("token_count", Integer),
    Column("token_encoding", Text),
    Column("external_id", Text),
    Column("event_id", Id, unique=True),
    Column("answers_turn_id", Id, unique=True),
    Column("edited_at", Timestamp),
    Column("own_text", Text),  # what its author says in their own words; NULL where that is all of it
    # What it quotes, forwards or shares of others, as JSON; NULL where a version wrote it that had all in text.
    Column("said_by_others", Text),
    # Whether its author wrote all of it, files included; NULL where that is not known.
    Column("is_all_own", Boolean),
    UniqueConstraint("context_id", "position"),
    # Finds the last message of a person at once: without statistics Postgres sorts the whole chat for it otherwise.
    index_where("ix_messages_of_people", "context_id", "position", where=conditions.MESSAGE_IS_OF_A_PERSON),
    index_where("ix_messages_external", "context_id", "external_id", where=conditions.MESSAGE_IS_EXTERNAL),
    index_where("ix_messages_edited", "edited_at", where=conditions.MESSAGE_IS_EDITED),
    # All that one person wrote, to export or to forget it.
    index_where(
        "ix_messages_author", "author_platform", "author_id", "context_id", where=conditions.MESSAGE_HAS_AUTHOR
    ),
    sqlite_autoincrement=True,
)

# Whose words a message repeats (see said_by_others), so that they are found: person_id is NULL where a platform hides
# who a person is. external_id is the platform's id of the message that is repeated.
message_references = Table(
    "message_references",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("message_id", Id, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("platform", Text),
    Column("person_id", Text),
    Column("external_id", Text),
    Index("ix_message_references_person", "platform", "person_id"),
    Index("ix_message_references_context_id", "context_id"),
    sqlite_autoincrement=True,
)

# What a message means to one embedding model: little-endian half floats of length 1. Ids grow with every change.
vectors = Table(
    "vectors",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("message_id", Id, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("model_key", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("ix_vectors_context_id_id", "context_id", "id"),
    sqlite_autoincrement=True,
)

# Releases before 1.3 wrote down here where the words of very long chats stand; a search reads the messages now.
word_blocks = Table(
    "word_blocks",
    metadata,
    context_id(),
    Column("block", Integer, nullable=False),
    Column("first_position", Id, nullable=False),
    Column("last_position", Id, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("context_id", "block", "first_position"),
)

# The bytes of attachments, once per context. is_encrypted: with a key that is kept elsewhere.
blobs = Table(
    "blobs",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("sha256", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("is_encrypted", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("context_id", "sha256"),
    sqlite_autoincrement=True,
)

# Files that lost a reference: a sweep looks for another one, and deletes them where there is none.
loose_files = Table(
    "loose_files",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("sha256", Text, nullable=False),
    Index("ix_loose_files_context_id", "context_id"),
    sqlite_autoincrement=True,
)

# What answers one or more events. due_at: not before then; due_set_at: when that was decided, where it was later than
# created_at. attempts counts how often it was begun, and failures how often that ended in an error, since it last got
# further. steps_taken counts its action steps, also those that were
# deleted since; last_step_number is the newest one's. joined_events counts those after the first: whoever
# begins a turn sees by it whether there are more of them than were read. compacted_at: since when its steps are gone.
# question_id: the message that it answers, where others may have been said since: it has waited (see waiting.py).
turns = Table(
    "turns",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("status", Text, nullable=False),
    Column("outcome", Text),
    Column("transport", Text, nullable=False),
    Column("order_key", Id, nullable=False),
    Column("due_at", Timestamp, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("error", Reason),
    Column("system_prompt", Text),
    Column("keeps_steps", Boolean, nullable=False, server_default=false()),
    Column("steps_taken", Integer, nullable=False, server_default="0"),
    Column("last_step_number", Integer),
    Column("joined_events", Integer, nullable=False, server_default="0"),
    Column("created_at", Timestamp, nullable=False),
    Column("started_at", Timestamp),
    Column("finished_at", Timestamp),
    Column("compacted_at", Timestamp),
    Column("due_set_at", Timestamp),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("question_id", Id),
    Index("ix_turns_context_id_id", "context_id", "id"),
    index_where("ix_turns_uncompacted", "id", where=conditions.TURN_IS_WHOLE),
    index_where("ix_turns_numbered", "context_id", "id", where=conditions.TURN_IS_NUMBERED),
    index_where("ix_turns_set_aside", "id", where=conditions.TURN_IS_SET_ASIDE),
    index_where("ix_turns_unanswered", "outcome", "id", where=conditions.TURN_IS_UNANSWERED),
    index_where("ix_turns_open", "context_id", "order_key", where=conditions.TURN_IS_OPEN),
    index_where("ix_turns_due", "due_at", where=conditions.TURN_IS_OPEN),
    sqlite_autoincrement=True,
)

# Sums over the calls of models for a turn, those of other agents within it too; it outlives the turn's steps. cost is
# in billionths of the currency. lasted_ms: from when the turn came until its last call was over, without the time in
# which a person had to decide (0.17.0 and earlier: with it). model: the first that
# answered, or was asked without success. tools: the names of those that were called, each between blanks.
turn_figures = Table(
    "turn_figures",
    metadata,
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    *(
        Column(name, Id, nullable=False, server_default="0")
        for name in (
            *("calls", "failed_calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "model_ms"),
            "lasted_ms",
        )
    ),
    Column("first_token_ms", Integer),
    Column("model", Text),
    Column("tools", Text, nullable=False),
    Index("ix_turn_figures_cost", "cost", "turn_id"),
    Index("ix_turn_figures_lasted_ms", "lasted_ms", "turn_id"),
)

# What a platform delivered, once per key. A control has no turn: handled_at says when it took effect. external_id is
# the platform's id of the message that an edit or a deletion is about.
events = Table(
    "events",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False, unique=True),
    context_id(),
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), index=True),
    Column("transport", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("order_key", Id, nullable=False),
    Column("group_key", Text),
    Column("raw", LargeBinary),
    Column("received_at", Timestamp, nullable=False),
    Column("handled_at", Timestamp),
    Column("reading_at", Timestamp),  # its files are being read, or were when their process ended
    Column("external_id", Text),
    index_where("ix_events_external", "context_id", "external_id", where=conditions.EVENT_IS_EXTERNAL),
    Index("ix_events_context_id", "context_id"),
    index_where("ix_events_unhandled", "context_id", where=conditions.EVENT_IS_UNHANDLED),
    # Finds changes that are due: without turn_id in its condition, or SQLite would rather look through all controls.
    index_where("ix_events_changes", "context_id", where=conditions.CHANGE_IS_UNHANDLED),
    sqlite_autoincrement=True,
)

# The agent's record of its work. position orders the steps of a context; one that is put between two others gets the
# middle of theirs. An open step is an action whose calls have not all ended.
steps = Table(
    "steps",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("position", Float(53), nullable=False),
    Column("kind", Text, nullable=False),
    Column("step_number", Integer),
    Column("is_open", Boolean, nullable=False, server_default=false()),
    Column("prompt", Places),
    # A default that no step has: SQLite adds no column without one to a table that has rows.
    Column("data", Compressed, nullable=False, server_default=text("''")),
    Index("ix_steps_context_id_position", "context_id", "position"),
    sqlite_autoincrement=True,
)

# The calls of an open step: committed as started before they run and as ended with their result.
tool_calls = Table(
    "tool_calls",
    metadata,
    Column("step_id", Id, ForeignKey("steps.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("call_index", Integer, primary_key=True, autoincrement=False),
    context_id(),
    Column("status", Text, nullable=False),
    Column("result", Text),
    Index("ix_tool_calls_context_id", "context_id"),
)

# Every distinct message that a turn sent to the model, once: a row has those that one more prompt added, and seq is the
# place of its first. A step's prompt has the places of those that made its prompt.
prompt_log = Table(
    "prompt_log",
    metadata,
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    context_id(),
    Column("content", Compressed, nullable=False, server_default=text("''")),
    Index("ix_prompt_log_context_id", "context_id"),
)

# What has to become visible on a platform, in order. buttons are what can be pressed under it. replaces: the delivery
# in whose message's place this one is shown.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("transport", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("payload", Json, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("due_at", Timestamp, nullable=False),
    Column("external_id", Text),
    Column("error", Reason),
    Column("created_at", Timestamp, nullable=False),
    Column("finished_at", Timestamp),
    Index("ix_deliveries_context_id", "context_id"),
    Column("buttons", Json),
    Column("due_set_at", Timestamp),
    Column("replaces", Id),
    index_where("ix_deliveries_buttons", "context_id", "external_id", where=conditions.DELIVERY_HAS_BUTTONS),
    index_where("ix_deliveries_open", "context_id", "id", where=conditions.DELIVERY_IS_OWED),
    index_where("ix_deliveries_due", "due_at", where=conditions.DELIVERY_IS_OWED),
    sqlite_autoincrement=True,
)

# A form that a platform refused in a conversation, such as "rich": it is not tried there again.
refused_forms = Table(
    "refused_forms",
    metadata,
    context_id(is_key=True),
    Column("form", Text, primary_key=True),
    Column("refused_at", Timestamp, nullable=False),
)

# What a chat is to be told, or the agent to be asked, later. starts_at is the first time, from which the others of one
# that comes again are counted; fired_at is the last time that it came.
reminders = Table(
    "reminders",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    context_id(),
    Column("key", Text, nullable=False, unique=True),
    Column("transport", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("is_task", Boolean, nullable=False, server_default=false()),
    Column("due_at", Timestamp, nullable=False),
    Column("starts_at", Timestamp, nullable=False),
    Column("repeats", Text),
    Column("time_zone", Text, nullable=False),
    Column("language", Text),
    Column("author_platform", Text),
    Column("author_id", Text),
    Column("author_name", Text),
    Column("created_at", Timestamp, nullable=False),
    Column("fired_at", Timestamp),
    Column("finished_at", Timestamp),
    Column("rule", Text),  # of a schedule: five fields of cron
    Index("ix_reminders_context_id_id", "context_id", "id"),
    index_where("ix_reminders_waiting", "due_at", where=conditions.REMINDER_IS_WAITING),
    sqlite_autoincrement=True,
)

# The oldest version of the tables whose program still works on these: one row.
schema_compatibility = Table("schema_compatibility", metadata, Column("oldest_version", Text, nullable=False))
