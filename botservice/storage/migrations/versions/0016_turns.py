"""Finding what is due without looking through what is not."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0013"
branch_labels = None
depends_on = None

_OPEN = {"turns": "status IN ('queued', 'running')", "deliveries": "status IN ('pending', 'attempting')"}


def upgrade() -> None:
    """Add indexes of what is open by the time at which it is due."""
    for table, is_open in _OPEN.items():
        where = sa.text(is_open)
        op.create_index(f"ix_{table}_due", table, ["due_at"], postgresql_where=where, sqlite_where=where)
