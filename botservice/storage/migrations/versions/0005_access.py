"""Who may use the bot, and what it may cost."""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add to the tables."""
