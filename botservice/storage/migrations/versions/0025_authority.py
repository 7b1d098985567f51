"""Whose words a conversation holds, and what a tool looked like when it was allowed for always."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns: all of them may be NULL, which means that it is not known."""
    op.add_column("messages", sa.Column("is_all_own", sa.Boolean(), nullable=True))
    op.add_column("contexts", sa.Column("untrusted_at", _ID, nullable=True))
    op.add_column("pending_calls", sa.Column("tool_digest", sa.Text(), nullable=True))
    op.add_column("tool_grants", sa.Column("tool_digest", sa.Text(), nullable=True))
