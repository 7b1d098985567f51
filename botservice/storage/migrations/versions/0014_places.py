"""Which archives people were given, and which conversations are to lose their names."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the archives that people were given, and since when a conversation is forgotten."""
    op.create_table(
        "exports",
        sa.Column("turn_id", _ID, autoincrement=False, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("identity_id", _ID, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        _refers_to("turn_id", "turns"),
        _refers_to("context_id", "contexts"),
        _refers_to("identity_id", "identities"),
        sa.PrimaryKeyConstraint("turn_id", name=op.f("pk_exports")),
    )
    op.create_index(op.f("ix_exports_context_id"), "exports", ["context_id"])
    op.create_index(op.f("ix_exports_identity_id"), "exports", ["identity_id"])
    op.add_column("contexts", sa.Column("forgotten_at", sa.BigInteger(), nullable=True))
    if op.get_bind().dialect.name == "sqlite":  # on Postgres `migrate` builds it afterwards, without a lock
        which = sa.text("forgotten_at IS NOT NULL")
        op.create_index("ix_contexts_forgotten", "contexts", ["id"], sqlite_where=which)


def _refers_to(column: str, table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_exports_{column}")
    return sa.ForeignKeyConstraint([column], [f"{table}.id"], name=name, ondelete="CASCADE")
