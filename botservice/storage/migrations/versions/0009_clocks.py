"""When the time was set at which something is due: a clock that was ahead then holds nothing up."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the moment to what waits; where it is missing, nothing was put off since it was made."""
    for table in ("turns", "deliveries"):
        op.add_column(table, sa.Column("due_set_at", sa.BigInteger(), nullable=True))
