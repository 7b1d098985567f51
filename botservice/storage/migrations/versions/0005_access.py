"""Who may use the bot, and what it may cost."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add to the tables."""
    _make_access()
    _make_usage()
    _make_budgets()


def _make_access() -> None:
    op.create_table(
        "access_roles",
        _text("kind"),
        _text("subject"),
        _text("role"),
        sa.Column("granted_by", sa.Text()),
        _whole("granted_at"),
        _key("access_roles", "kind", "subject"),
    )
    op.create_table(
        "access_refusals",
        _text("kind"),
        _text("subject"),
        _whole("told_at"),
        _key("access_refusals", "kind", "subject"),
    )
    op.create_table(
        "access_codes",
        _text("person"),
        _text("code"),
        sa.Column("name", sa.Text()),
        sa.Column("turn_id", _ID, nullable=False),
        _text("welcome"),
        _whole("expires_at"),
        _of_a_turn("access_codes"),
        _key("access_codes", "person"),
        sa.UniqueConstraint("code", name=op.f("uq_access_codes_code")),
    )
    op.create_index(op.f("ix_access_codes_turn_id"), "access_codes", ["turn_id"])
    op.create_table(
        "access_invitations", _text("chat"), _text("person"), _whole("invited_at"), _key("access_invitations", "chat")
    )


def _make_usage() -> None:
    op.create_table(
        "model_usage",
        _text("day"),
        sa.Column("context_id", _ID, autoincrement=False, nullable=False),
        _text("person"),
        _text("model"),
        _text("chat"),
        *(
            sa.Column(name, _ID, nullable=False)
            for name in ("calls", "input_tokens", "output_tokens", "cached_tokens", "cost")
        ),
        _key("model_usage", "day", "context_id", "person", "model"),
    )
    op.create_index("ix_model_usage_person_day", "model_usage", ["person", "day"])
    op.create_index("ix_model_usage_chat_day", "model_usage", ["chat", "day"])


def _make_budgets() -> None:
    op.create_table(
        "budget_reservations",
        sa.Column("turn_id", _ID, autoincrement=False, nullable=False),
        _text("person"),
        _text("chat"),
        sa.Column("tokens", _ID, nullable=False),
        sa.Column("cost", _ID, nullable=False),
        _whole("expires_at"),
        _of_a_turn("budget_reservations"),
        _key("budget_reservations", "turn_id"),
    )
    op.create_table(
        "budget_rates",
        _text("scope"),
        _text("subject"),
        _text("minute"),
        sa.Column("messages", sa.Integer(), nullable=False),
        _key("budget_rates", "scope", "subject"),
    )
    op.create_table("budget_notices", _text("notice"), _whole("told_at"), _key("budget_notices", "notice"))


def _text(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.Text(), nullable=False)


def _whole(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"pk_{table}"))


def _of_a_turn(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name=op.f(f"fk_{table}_turn_id"), ondelete="CASCADE")
