"""What searching very long chats needs."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Write down where the words of very long chats stand."""
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "word_blocks",
        sa.Column("context_id", identity, nullable=False),
        sa.Column("block", sa.Integer(), nullable=False),
        sa.Column("first_position", identity, nullable=False),
        sa.Column("last_position", identity, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_word_blocks_context_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("context_id", "block", "first_position", name=op.f("pk_word_blocks")),
    )
