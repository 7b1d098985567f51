"""Reminders and retention."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add what waits for its time, and say which turns have lost their steps."""
    op.add_column("turns", sa.Column("compacted_at", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_turns_uncompacted",
        "turns",
        ["id"],
        postgresql_where=sa.text("compacted_at IS NULL"),
        sqlite_where=sa.text("compacted_at IS NULL"),
    )
    _create_reminders()


def _create_reminders() -> None:
    op.create_table(
        "reminders",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("is_task", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("starts_at", sa.BigInteger(), nullable=False),
        sa.Column("repeats", sa.Text(), nullable=True),
        sa.Column("time_zone", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("author_platform", sa.Text(), nullable=True),
        sa.Column("author_id", sa.Text(), nullable=True),
        sa.Column("author_name", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("fired_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_reminders_context_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reminders")),
        sa.UniqueConstraint("key", name=op.f("uq_reminders_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reminders_context_id_id", "reminders", ["context_id", "id"])
    op.create_index(
        "ix_reminders_waiting",
        "reminders",
        ["due_at"],
        postgresql_where=sa.text("status = 'waiting'"),
        sqlite_where=sa.text("status = 'waiting'"),
    )
