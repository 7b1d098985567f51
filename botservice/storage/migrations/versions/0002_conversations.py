"""A chat's fresh start, and what edits of its messages and buttons under them need."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Say where a chat's window begins, what an edit changes, when a message was changed, and what can be pressed."""
    op.add_column("contexts", sa.Column("fresh_from", _ID, nullable=False, server_default="0"))
    op.add_column("events", sa.Column("external_id", sa.Text(), nullable=True))
    op.add_column("messages", sa.Column("edited_at", sa.BigInteger(), nullable=True))
    op.add_column("deliveries", sa.Column("buttons", sa.Text(), nullable=True))
    _index("ix_deliveries_buttons", "deliveries", ["context_id", "external_id"], "buttons IS NOT NULL")
    _index("ix_events_external", "events", ["context_id", "external_id"], "external_id IS NOT NULL")
    _index("ix_events_changes", "events", ["context_id"], "handled_at IS NULL AND kind IN ('edit', 'delete')")
    _index("ix_messages_edited", "messages", ["edited_at"], "edited_at IS NOT NULL")


def _index(name: str, table: str, columns: list[str], condition: str) -> None:
    op.create_index(name, table, columns, postgresql_where=sa.text(condition), sqlite_where=sa.text(condition))
