"""Roles of people, which tools may want."""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "person_roles",
        sa.Column("identity_id", _ID, autoincrement=False, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("granted_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["identity_id"], ["identities.id"], name=op.f("fk_person_roles_identity_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("identity_id", "role", name=op.f("pk_person_roles")),
    )
