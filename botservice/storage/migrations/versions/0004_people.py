"""Persons, their identities and what is known of them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add to the tables."""
    op.add_column("contexts", sa.Column("is_shared", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("contexts", sa.Column("only_identity_id", _ID))
    op.add_column("blobs", sa.Column("is_encrypted", sa.Boolean(), nullable=False, server_default=sa.false()))
    _index_what_is_deleted()
    op.create_table(
        "persons",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("failed_guesses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("guessing_since", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_persons")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "identities",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("person_id", _ID, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("platform_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        _refers_to("identities", "person_id", "persons"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identities")),
        sa.UniqueConstraint("platform", "platform_id", name=op.f("uq_identities_platform_platform_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_identities_person_id"), "identities", ["person_id"])
    _make_link_codes()
    _make_facts()


def _make_link_codes() -> None:
    op.create_table(
        "link_codes",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("identity_id", _ID, nullable=False),
        sa.Column("other_identity_id", _ID, nullable=True),
        sa.Column("is_accepted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        _refers_to("link_codes", "identity_id", "identities"),
        _refers_to("link_codes", "other_identity_id", "identities"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_link_codes")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_link_codes_code_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_link_codes_identity_id"), "link_codes", ["identity_id"])
    op.create_index(op.f("ix_link_codes_other_identity_id"), "link_codes", ["other_identity_id"])


def _make_facts() -> None:
    op.create_table(
        "facts",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("identity_id", _ID, nullable=False),
        sa.Column("context_id", _ID, nullable=False),
        sa.Column("source_message_id", _ID, nullable=True),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("is_shareable", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("superseded_at", sa.BigInteger(), nullable=True),
        _refers_to("facts", "identity_id", "identities"),
        _refers_to("facts", "context_id", "contexts"),
        _refers_to("facts", "source_message_id", "messages"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_facts")),
        sqlite_autoincrement=True,
    )
    for column in ("identity_id", "context_id", "source_message_id"):
        op.create_index(op.f(f"ix_facts_{column}"), "facts", [column])


def _index_what_is_deleted() -> None:
    """Let a person or a chat be forgotten without reading whole tables."""
    op.create_index(
        "ix_messages_author",
        "messages",
        ["author_platform", "author_id", "context_id"],
        sqlite_where=sa.text("author_id IS NOT NULL"),
        postgresql_where=sa.text("author_id IS NOT NULL"),
    )
    op.create_index(
        "ix_contexts_only_identity_id",
        "contexts",
        ["only_identity_id"],
        sqlite_where=sa.text("only_identity_id IS NOT NULL"),
        postgresql_where=sa.text("only_identity_id IS NOT NULL"),
    )
    for table in ("events", "tool_calls", "prompt_log", "deliveries"):
        op.create_index(op.f(f"ix_{table}_context_id"), table, ["context_id"])


def _refers_to(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE")
