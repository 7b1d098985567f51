"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "contexts",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("context_keys", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("last_position", _ID, server_default="0", nullable=False),
        sa.Column("deletion_version", _ID, server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contexts")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_contexts_key_hash")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "blobs",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_blobs_context_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_blobs")),
        sa.UniqueConstraint("context_id", "sha256", name=op.f("uq_blobs_context_id_sha256")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "messages",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("position", _ID, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("attachments", sa.Text(), nullable=True),
        sa.Column("author_platform", sa.Text(), nullable=True),
        sa.Column("author_id", sa.Text(), nullable=True),
        sa.Column("author_name", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("token_count", sa.Integer(), nullable=True),
        sa.Column("token_encoding", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("event_id", _ID, nullable=True),
        sa.Column("answers_turn_id", _ID, nullable=True),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_messages_context_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sa.UniqueConstraint("answers_turn_id", name=op.f("uq_messages_answers_turn_id")),
        sa.UniqueConstraint("context_id", "position", name=op.f("uq_messages_context_id_position")),
        sa.UniqueConstraint("event_id", name=op.f("uq_messages_event_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_messages_of_people",
        "messages",
        ["context_id", "position"],
        unique=False,
        postgresql_where=sa.text("role = 'user'"),
        sqlite_where=sa.text("role = 'user'"),
    )
    op.create_index(
        "ix_messages_external",
        "messages",
        ["context_id", "external_id"],
        unique=False,
        postgresql_where=sa.text("external_id IS NOT NULL"),
        sqlite_where=sa.text("external_id IS NOT NULL"),
    )
    op.create_table(
        "vectors",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("message_id", _ID, nullable=False),
        sa.Column("model_key", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_vectors_context_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name=op.f("fk_vectors_message_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vectors")),
        sa.UniqueConstraint("message_id", name=op.f("uq_vectors_message_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_vectors_context_id_id", "vectors", ["context_id", "id"], unique=False)
    op.create_table(
        "turns",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("order_key", _ID, nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("system_prompt", sa.Text(), nullable=True),
        sa.Column("keeps_steps", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("steps_taken", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_step_number", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_turns_context_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_turns_context_id_id", "turns", ["context_id", "id"], unique=False)
    op.create_index(
        "ix_turns_numbered",
        "turns",
        ["context_id", "id"],
        unique=False,
        postgresql_where=sa.text("last_step_number IS NOT NULL"),
        sqlite_where=sa.text("last_step_number IS NOT NULL"),
    )
    op.create_index(
        "ix_turns_open",
        "turns",
        ["context_id", "order_key"],
        unique=False,
        postgresql_where=sa.text("status IN ('queued', 'running')"),
        sqlite_where=sa.text("status IN ('queued', 'running')"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("turn_id", _ID, nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_deliveries_context_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_deliveries_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_deliveries_open",
        "deliveries",
        ["context_id", "id"],
        unique=False,
        postgresql_where=sa.text("status IN ('pending', 'attempting')"),
        sqlite_where=sa.text("status IN ('pending', 'attempting')"),
    )
    op.create_index(op.f("ix_deliveries_turn_id"), "deliveries", ["turn_id"], unique=False)
    op.create_table(
        "events",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("turn_id", _ID, nullable=True),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("order_key", _ID, nullable=False),
        sa.Column("group_key", sa.Text(), nullable=True),
        sa.Column("raw", sa.LargeBinary(), nullable=True),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("handled_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_events_context_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_events_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.UniqueConstraint("key", name=op.f("uq_events_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_events_turn_id"), "events", ["turn_id"], unique=False)
    op.create_index(
        "ix_events_unhandled",
        "events",
        ["context_id"],
        unique=False,
        postgresql_where=sa.text("turn_id IS NULL AND handled_at IS NULL"),
        sqlite_where=sa.text("turn_id IS NULL AND handled_at IS NULL"),
    )
    op.create_table(
        "prompt_log",
        sa.Column("turn_id", _ID, autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_prompt_log_context_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_prompt_log_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("turn_id", "seq", name=op.f("pk_prompt_log")),
    )
    op.create_table(
        "steps",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("turn_id", _ID, nullable=False),
        sa.Column("position", sa.Float(precision=53), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("step_number", sa.Integer(), nullable=True),
        sa.Column("is_open", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("prompt_ranges", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_steps_context_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_steps_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_steps")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_steps_context_id_position", "steps", ["context_id", "position"], unique=False)
    op.create_index(op.f("ix_steps_turn_id"), "steps", ["turn_id"], unique=False)
    op.create_table(
        "tool_calls",
        sa.Column("step_id", _ID, autoincrement=False, nullable=False),
        sa.Column("call_index", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_tool_calls_context_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["step_id"], ["steps.id"], name=op.f("fk_tool_calls_step_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("step_id", "call_index", name=op.f("pk_tool_calls")),
    )
