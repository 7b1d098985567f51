"""Tokens of Slack installations that end after some hours, and are refreshed before that."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_TABLE = "slack_installations"


def upgrade() -> None:
    """Add the columns."""
    op.add_column(_TABLE, sa.Column("refresh_token", sa.LargeBinary()))
    op.add_column(_TABLE, sa.Column("token_expires_at", sa.BigInteger()))
    op.add_column(_TABLE, sa.Column("refreshing_until", sa.BigInteger()))
