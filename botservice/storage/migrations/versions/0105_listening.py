"""Where the bot decides by itself when to speak, and what it decided."""

import sqlalchemy as sa
from alembic import op

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "access_listening",
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("chat", name=op.f("pk_access_listening")),
    )
    op.create_table(
        "gate_decisions",
        sa.Column("turn_id", _ID, autoincrement=False, nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("decision", sa.Text()),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_gate_decisions_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("turn_id", name=op.f("pk_gate_decisions")),
    )
    op.create_index(op.f("ix_gate_decisions_chat_decided_at"), "gate_decisions", ["chat", "decided_at"])
