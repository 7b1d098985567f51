"""How much of the prompts servers kept for later calls."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what was written to caches; releases that do not know of it count none."""
    op.add_column(
        "model_usage",
        sa.Column(
            "cache_write_tokens",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            server_default="0",
            nullable=False,
        ),
    )
