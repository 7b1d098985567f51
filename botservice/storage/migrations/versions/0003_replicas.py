"""What many processes need on one database."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Count what joins a turn, find what was set aside, and say which programs may work on this schema."""
    op.add_column("turns", sa.Column("joined_events", sa.Integer, nullable=False, server_default="0"))
    is_set_aside = sa.text("status = 'set_aside'")
    op.create_index("ix_turns_set_aside", "turns", ["id"], postgresql_where=is_set_aside, sqlite_where=is_set_aside)
    compatibility = op.create_table("schema_compatibility", sa.Column("oldest_version", sa.Text, nullable=False))
    # Everything since the first release was only added to. A migration that takes something away raises this.
    op.bulk_insert(compatibility, [{"oldest_version": "0001"}])
