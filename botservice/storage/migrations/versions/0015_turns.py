"""Finding what is due without looking through what is not."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_OPEN = {"turns": "status IN ('queued', 'running')", "deliveries": "status IN ('pending', 'attempting')"}


def upgrade() -> None:
    """Add indexes of what is open by the time at which it is due; on Postgres `migrate` builds them afterwards."""
    if op.get_bind().dialect.name == "sqlite":
        for table, is_open in _OPEN.items():
            op.create_index(f"ix_{table}_due", table, ["due_at"], sqlite_where=sa.text(is_open))
