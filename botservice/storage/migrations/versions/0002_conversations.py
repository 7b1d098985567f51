"""A chat's fresh start, and what its messages need for edits and buttons."""

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add to the tables."""
