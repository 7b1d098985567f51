"""What is noted of conversations, and since when and until when a fact holds."""

import sqlalchemy as sa
from alembic import op

from botservice.storage.tables.triggers import make_observing_triggers

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.BigInteger()
_ENDED = sa.text("ended_by IS NOT NULL")
_DUE = sa.text("due_at IS NOT NULL")


def upgrade() -> None:
    """Add the tables and the columns, and have notes go with what they came from."""
    op.add_column("facts", sa.Column("set_by", sa.Text(), nullable=True))
    op.add_column("facts", sa.Column("valid_from", _TIME, nullable=True))
    op.add_column("facts", sa.Column("valid_to", _TIME, nullable=True))
    op.add_column("facts", sa.Column("ended_by", _ID, nullable=True))
    op.create_index("ix_facts_ended_by", "facts", ["ended_by"], postgresql_where=_ENDED, sqlite_where=_ENDED)
    op.create_table(
        "observed",
        sa.Column("context_id", _ID, autoincrement=False, nullable=False),
        *(
            sa.Column(name, _ID, server_default="0", nullable=False)
            for name in ("read_to", "again_to", "version", "seen_id")
        ),
        sa.Column("due_at", _TIME, nullable=True),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_number", _ID, server_default="0", nullable=False),
        *_keys("observed", "context_id", refers_to="contexts"),
    )
    op.create_index("ix_observed_due_at", "observed", ["due_at"], postgresql_where=_DUE, sqlite_where=_DUE)
    op.create_index("ix_observed_seen_id", "observed", ["seen_id"])
    op.create_table(
        "notes",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("number", _ID, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("message_ids", sa.Text(), nullable=False),
        *(sa.Column(name, _ID, nullable=False) for name in ("first_position", "last_position", "span")),
        sa.Column("tokens", sa.Integer(), nullable=False),
        *_keys("notes", "id", refers_to="contexts"),
        sa.UniqueConstraint("context_id", "number", name=op.f("uq_notes_context_id_number")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notes_context_id_last_position", "notes", ["context_id", "last_position"])
    op.create_table(
        "refused_notes",
        sa.Column("context_id", _ID, autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        *_keys("refused_notes", "context_id", "digest", refers_to="contexts"),
    )
    op.create_table(
        "refused_facts",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("identity_id", _ID, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("digest", "topic_digest")),
        sa.Column("message_id", _ID, nullable=True),
        sa.Column("refused_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name=op.f("fk_refused_facts_message_id"), ondelete="SET NULL"
        ),
        *_keys("refused_facts", "id", refers_to="identities", by="identity_id"),
        sqlite_autoincrement=True,
    )
    for column in ("identity_id", "message_id"):
        op.create_index(op.f(f"ix_refused_facts_{column}"), "refused_facts", [column])
    op.create_table(
        "observer_reservations",
        sa.Column("context_id", _ID, autoincrement=False, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("person", "chat")),
        *(sa.Column(name, _ID, nullable=False) for name in ("tokens", "cost")),
        sa.Column("expires_at", _TIME, nullable=False),
        *_keys("observer_reservations", "context_id", refers_to="contexts"),
    )
    make_observing_triggers(op.get_bind())


def _keys(table: str, *columns: str, refers_to: str, by: str = "context_id") -> list[sa.Constraint]:
    return [
        sa.PrimaryKeyConstraint(*columns, name=op.f(f"pk_{table}")),
        sa.ForeignKeyConstraint([by], [f"{refers_to}.id"], name=op.f(f"fk_{table}_{by}"), ondelete="CASCADE"),
    ]
