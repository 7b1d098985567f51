"""Questions of tools: calls that wait for answers of a person."""

from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what a waiting call asks."""
    op.execute("ALTER TABLE pending_calls ADD COLUMN question TEXT")
