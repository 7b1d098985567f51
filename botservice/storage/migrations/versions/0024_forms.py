"""Which forms of messages a conversation does not take."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "refused_forms",
        sa.Column("context_id", _ID, autoincrement=False, nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("refused_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("context_id", "form", name=op.f("pk_refused_forms")),
        sa.ForeignKeyConstraint(
            ["context_id"], ["contexts.id"], name=op.f("fk_refused_forms_context_id"), ondelete="CASCADE"
        ),
    )
