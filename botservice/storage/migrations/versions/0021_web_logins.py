"""Links that open a person's chat in a browser, and the browsers that they have opened."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.BigInteger()


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "web_links",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("identity_id", _ID, nullable=False),
        sa.Column("used_at", _TIME),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_web_links")),
        _refers_to_identities("web_links", "identity_id"),
    )
    op.create_index(op.f("ix_web_links_identity_id"), "web_links", ["identity_id"])
    op.create_table(
        "web_logins",
        sa.Column("digest", sa.Text(), nullable=False),
        *(sa.Column(name, _ID, nullable=False) for name in ("identity_id", "account_id")),
        *(sa.Column(name, _TIME, nullable=False) for name in ("created_at", "expires_at")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_web_logins")),
        *(_refers_to_identities("web_logins", name) for name in ("identity_id", "account_id")),
    )
    for name in ("identity_id", "account_id"):
        op.create_index(op.f(f"ix_web_logins_{name}"), "web_logins", [name])


def _refers_to_identities(table: str, column: str) -> sa.Constraint:
    return sa.ForeignKeyConstraint([column], ["identities.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE")
