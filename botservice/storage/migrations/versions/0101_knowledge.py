"""Documents that the bot may quote."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "knowledge_sources",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("readers", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("added_at", sa.BigInteger(), nullable=False),
        sa.Column("read_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_knowledge_sources_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "knowledge_documents",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("source_id", _ID, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("stamp", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_documents")),
        sa.UniqueConstraint("source_id", "path", name=op.f("uq_knowledge_documents_source_id_path")),
        sa.ForeignKeyConstraint(
            ["source_id"], ["knowledge_sources.id"], name=op.f("fk_knowledge_documents_source_id"), ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "knowledge_passages",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("document_id", _ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer()),
        sa.Column("heading", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("vector", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_passages")),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["knowledge_documents.id"],
            name=op.f("fk_knowledge_passages_document_id"),
            ondelete="CASCADE",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_knowledge_passages_document_id"), "knowledge_passages", ["document_id"])
