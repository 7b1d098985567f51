"""What turns took, and ways to find the turns that went wrong, took long or were disliked."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SUMS = ("calls", "failed_calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "model_ms", "lasted_ms")
_UNANSWERED = sa.text("outcome IN ('failed', 'stopped', 'refused')")
_BAD = sa.text("verdict = 'bad'")


def upgrade() -> None:
    """Add the table and the indexes."""
    op.create_table(
        "turn_figures",
        sa.Column("turn_id", _ID, autoincrement=False, nullable=False),
        *(sa.Column(name, _ID, server_default="0", nullable=False) for name in _SUMS),
        sa.Column("first_token_ms", sa.Integer(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", name=op.f("pk_turn_figures")),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_turn_figures_turn_id"), ondelete="CASCADE"),
    )
    op.create_index("ix_turn_figures_cost", "turn_figures", ["cost", "turn_id"])
    op.create_index("ix_turn_figures_lasted_ms", "turn_figures", ["lasted_ms", "turn_id"])
    op.create_index(
        "ix_turns_unanswered", "turns", ["outcome", "id"], postgresql_where=_UNANSWERED, sqlite_where=_UNANSWERED
    )
    op.create_index("ix_feedback_bad", "feedback", ["turn_id"], postgresql_where=_BAD, sqlite_where=_BAD)
