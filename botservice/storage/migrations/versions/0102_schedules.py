"""Schedules: reminders that come by a rule."""

from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the rule of a schedule."""
    op.execute("ALTER TABLE reminders ADD COLUMN rule TEXT")
