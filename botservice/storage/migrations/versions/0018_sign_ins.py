"""People who have signed in to servers of tools, and sign-ins that have begun."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.BigInteger()


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "tool_sign_ins",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        *_columns(),
        *(sa.Column(name, _TIME, nullable=False) for name in ("created_at", "updated_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tool_sign_ins")),
        *_keys("tool_sign_ins"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tool_sign_in_states",
        sa.Column("digest", sa.Text(), nullable=False),
        *_columns(),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_tool_sign_in_states")),
        *_keys("tool_sign_in_states"),
    )
    op.create_index("ix_tool_sign_in_states_expires_at", "tool_sign_in_states", ["expires_at"])


def _columns() -> list[sa.Column[object]]:
    return [
        sa.Column("identity_id", _ID, nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    ]


def _keys(table: str) -> list[sa.Constraint]:
    return [
        sa.ForeignKeyConstraint(
            ["identity_id"], ["identities.id"], name=op.f(f"fk_{table}_identity_id"), ondelete="CASCADE"
        ),
        sa.UniqueConstraint("identity_id", "server", name=op.f(f"uq_{table}_identity_id_server")),
    ]
