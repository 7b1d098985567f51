"""Persons, their identities and what is known of them."""

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add to the tables."""
