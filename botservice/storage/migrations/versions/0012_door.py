"""What of a message is its author's own, and which logins of the web pages have ended."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a message's own words, where they are not all of it, and the logins that are over before their time."""
    op.add_column("messages", sa.Column("own_text", sa.Text(), nullable=True))
    op.create_table(
        "ended_logins",
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
    )
