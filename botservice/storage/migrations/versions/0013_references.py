"""What messages hold of others, as values."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what a message quotes, forwards or shares, and the table by which it is found.

    What older versions wrote into the texts of messages is brought over later, a little at a time.
    """
    op.add_column("messages", sa.Column("said_by_others", sa.Text(), nullable=True))
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "message_references",
        sa.Column("id", identity, autoincrement=True, nullable=False),
        sa.Column("context_id", identity, nullable=False),
        sa.Column("message_id", identity, nullable=False),
        sa.Column("platform", sa.Text(), nullable=True),
        sa.Column("person_id", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_message_references_context_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name=op.f("fk_message_references_message_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message_references")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_message_references_message_id", "message_references", ["message_id"])
    op.create_index("ix_message_references_person", "message_references", ["platform", "person_id"])
    op.create_index("ix_message_references_context_id", "message_references", ["context_id"])
