"""Which events had files that were being read."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Say when an event's files began to be read, for those whose reading has not ended."""
    op.add_column("events", sa.Column("reading_at", sa.BigInteger(), nullable=True))
