"""Which sessions of Slack have a title, what workspaces refuse, and which organisation they belong to."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.BigInteger()


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "slack_grids",
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("enterprise_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", name=op.f("pk_slack_grids")),
    )
    op.create_table(
        "slack_refusals",
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("feature", sa.Text(), nullable=False),
        sa.Column("refused_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("team_id", "feature", name=op.f("pk_slack_refusals")),
    )
    op.create_table(
        "slack_titles",
        sa.Column("context_id", _ID, autoincrement=False, nullable=False),
        sa.Column("thread_ts", sa.Text(), nullable=False),
        sa.Column("titled_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("context_id", "thread_ts", name=op.f("pk_slack_titles")),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_slack_titles_context_id"), ondelete="CASCADE"
        ),
    )
