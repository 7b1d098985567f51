"""Turns that wait: calls of tools that ask first or give their result later, and which need not ask."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.BigInteger()


def upgrade() -> None:
    """Add the tables, which question a turn goes on with, and which message another one takes the place of."""
    op.add_column("turns", sa.Column("question_id", _ID, nullable=True))
    op.add_column("deliveries", sa.Column("replaces", _ID, nullable=True))
    op.create_table(
        "pending_calls",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("turn_id", _ID, nullable=False),
        sa.Column("step_id", _ID, nullable=False),
        sa.Column("call_index", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("call_id", "tool", "kind", "status")),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("is_open", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("author_platform", "author_id", "author_name")),
        sa.Column("delivery_id", _ID, nullable=True),
        *(sa.Column(name, _TIME, nullable=False) for name in ("created_at", "expires_at")),
        *(sa.Column(name, _TIME, nullable=True) for name in ("due_at", "due_set_at", "decided_at")),
        sa.Column("decided_by", _ID, nullable=True),
        sa.Column("told_at", _TIME, nullable=True),
        *_keys("pending_calls"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_pending_calls_turn_id"), ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    is_open = sa.text("is_open")
    op.create_index("ix_pending_calls_turn_id", "pending_calls", ["turn_id"])
    op.create_index("ix_pending_calls_context_id", "pending_calls", ["context_id", "id"])
    op.create_index("ix_pending_calls_due", "pending_calls", ["due_at"], postgresql_where=is_open, sqlite_where=is_open)
    op.create_table(
        "tool_grants",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("author_platform", "author_id")),
        sa.Column("created_at", _TIME, nullable=False),
        *_keys("tool_grants"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tool_grants_context_id", "tool_grants", ["context_id"])


def _keys(table: str) -> list[sa.Constraint]:
    return [
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f(f"fk_{table}_context_id"), ondelete="CASCADE"
        ),
    ]
