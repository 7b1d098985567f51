"""What models and their servers refuse, for every process."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "model_refusals",
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("wording", sa.Text()),
        sa.Column("learned_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("server", "model", "what", name=op.f("pk_model_refusals")),
    )
    op.create_table(
        "refused_messages",
        sa.Column("context_id", _ID, autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("kept_out", sa.Text(), nullable=False),
        sa.Column("is_told", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("context_id", "model", name=op.f("pk_refused_messages")),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_refused_messages_context_id"), ondelete="CASCADE"
        ),
    )
