"""The ledger of approvals."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "approvals",
        sa.Column("call", _ID, autoincrement=False, nullable=False),
        sa.Column("step_id", _ID, nullable=False),
        sa.Column("call_index", sa.Integer(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("tool_digest", sa.Text()),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text()),
        sa.Column("asker", sa.Text()),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("decider", sa.Text()),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("call", name=op.f("pk_approvals")),
    )
    op.create_index(op.f("ix_approvals_step_id"), "approvals", ["step_id"])
    op.create_index(op.f("ix_approvals_decided_at"), "approvals", ["decided_at"])
