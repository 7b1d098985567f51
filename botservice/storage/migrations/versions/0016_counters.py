"""Counters that are kept: messages of each conversation, use of each model on each day; and files to be looked for."""

import sqlalchemy as sa
from alembic import op

from botservice.storage.tables.triggers import make_triggers

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SUMS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "cache_write_tokens")


def upgrade() -> None:
    """Add the counters, and have the database keep them; on Postgres `migrate` counts afterwards, a few rows at a time.

    What was used is summed up here: budgets go by it from the first moment.
    """
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.add_column("contexts", sa.Column("last_message_id", _ID, server_default="0", nullable=False))
    if is_sqlite:
        op.add_column("contexts", sa.Column("message_count", _ID, server_default="0", nullable=True))
    else:  # NULL in every row that there is, which is not written for that; 0 in those that come
        op.add_column("contexts", sa.Column("message_count", _ID, nullable=True))
        op.alter_column("contexts", "message_count", server_default="0")
    op.create_table(
        "model_usage_days",
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        *(sa.Column(name, _ID, nullable=False) for name in _SUMS),
        sa.PrimaryKeyConstraint("day", "model", "shard", name=op.f("pk_model_usage_days")),
    )
    op.create_table(
        "loose_files",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_loose_files_context_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_loose_files")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_loose_files_context_id", "loose_files", ["context_id"])
    make_triggers(op.get_bind())
    op.execute(
        "INSERT INTO model_usage_days "
        "(day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens) "
        "SELECT day, model, 0, sum(calls), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(cost), "
        "sum(cache_write_tokens) FROM model_usage GROUP BY day, model"
    )
    if is_sqlite:
        _count_messages()


def _count_messages() -> None:
    op.execute(
        "UPDATE contexts SET message_count = (SELECT count(*) FROM messages WHERE context_id = contexts.id), "
        "last_message_id = coalesce((SELECT id FROM messages WHERE context_id = contexts.id "
        "ORDER BY position DESC LIMIT 1), 0)"
    )
    op.create_index("ix_contexts_last_message_id", "contexts", ["last_message_id", "id"])
    op.create_index("ix_contexts_with_metadata", "contexts", ["id"], sqlite_where=sa.text("metadata <> '{}'"))
