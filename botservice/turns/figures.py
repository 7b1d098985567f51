"""What turns took: one row for each turn that asked a model, so that turns can be compared without their steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, Text, bindparam, case, func, select, type_coerce
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeEngine

from botservice.storage.statements import execute
from botservice.storage.tables.conversations import turns
from botservice.storage.tables.figures import turn_figures

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SUMS = ("calls", "failed_calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "model_ms")
_TYPES: dict[str, TypeEngine[Any]] = {"model": Text(), "tools": Text(), "first_token_ms": Integer()}
_COLUMNS = (*_SUMS, *_TYPES)


@dataclass(frozen=True, slots=True)
class Figures:
    """What calls of a model add to the figures of their turn.

    Attributes:
        cost: In billionths of the currency.
        model_ms: How long the model took, in milliseconds.
        first_token_ms: How long it was before its first words; None where it said none.
        tools: The names of the tools that it called.
    """

    calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: int = 0
    model_ms: int = 0
    first_token_ms: int | None = None
    model: str | None = None
    tools: Sequence[str] = ()


def _adding(dialect: Any) -> Any:
    given = [bindparam(name, type_=_TYPES.get(name, BigInteger())).label(name) for name in _COLUMNS]
    # Nothing is added to a turn that was forgotten meanwhile.
    lasted = (bindparam("now", type_=BigInteger()) - type_coerce(turns.c.created_at, BigInteger)) // 1_000
    of_turn = select(turns.c.id, *given, lasted.label("lasted_ms")).where(turns.c.id == bindparam("turn"))
    new = dialect.insert(turn_figures).from_select(["turn_id", *_COLUMNS, "lasted_ms"], of_turn)
    changed: dict[str, Any] = {name: turn_figures.c[name] + new.excluded[name] for name in _SUMS}
    mine, theirs = turn_figures.c, new.excluded
    changed["first_token_ms"] = func.coalesce(mine.first_token_ms, theirs.first_token_ms)
    # The first that answered; as long as none did, the one that was asked.
    changed["model"] = case((mine.calls == 0, theirs.model), else_=mine.model)
    changed["tools"] = turn_figures.c.tools + new.excluded.tools
    changed["lasted_ms"] = new.excluded.lasted_ms
    return new.on_conflict_do_update(index_elements=["turn_id"], set_=changed)


_ADD = {"sqlite": _adding(sqlite), "postgresql": _adding(postgresql)}


def add_figures(connection: Connection, turn_id: int, figures: Figures, now: datetime) -> None:
    """Add to the figures of a turn, which has lasted until now; nothing happens where it was forgotten."""
    values: dict[str, Any] = {name: getattr(figures, name) for name in _COLUMNS}
    values["tools"] = "".join(f" {name} " for name in figures.tools)
    execute(
        connection, _ADD[connection.dialect.name], {**values, "turn": turn_id, "now": (now - _EPOCH) // _MICROSECOND}
    )
