"""The workspaces that installed the bot, and what people think of answers."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add to the tables."""
    op.create_table(
        "slack_installations",
        sa.Column("enterprise_id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("team_name", sa.Text()),
        sa.Column("is_enterprise", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("app_id", sa.Text()),
        sa.Column("bot_id", sa.Text()),
        sa.Column("bot_user_id", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("token", sa.LargeBinary(), nullable=False),
        sa.Column("installed_by", sa.Text()),
        sa.Column("installed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("enterprise_id", "team_id", name=op.f("pk_slack_installations")),
    )
    op.create_table(
        "slack_oauth_states",
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("state", name=op.f("pk_slack_oauth_states")),
    )
    op.create_index(op.f("ix_slack_oauth_states_expires_at"), "slack_oauth_states", ["expires_at"])
    op.create_table(
        "feedback",
        sa.Column("turn_id", _ID, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f("fk_feedback_turn_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("turn_id", "platform", "person_id", name=op.f("pk_feedback")),
    )
