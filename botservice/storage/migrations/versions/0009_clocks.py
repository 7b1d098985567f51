"""When it was decided that something is due, and how often turns failed."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the moment to what waits; where it is missing, nothing was put off since it was made.

    Turns say apart how often they were begun and how often they failed: being cut off is no failure.
    """
    for table in ("turns", "deliveries"):
        op.add_column(table, sa.Column("due_set_at", sa.BigInteger(), nullable=True))
    op.add_column("turns", sa.Column("failures", sa.Integer(), server_default="0", nullable=False))
