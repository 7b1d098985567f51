"""What a page is asked for in its address: which turns, in which order, and from where on."""

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from botservice.messages import storable
from botservice.overview.turn_search import Cursor, Order, Rating, State, TurnFilter

_CURSOR: Final = re.compile(r"(\d{1,18})-(\d{1,18})")
_LONGEST: Final = 200  # characters of what is looked for
_TEXTS: Final = ("text", "person", "platform", "model", "tool")

E = TypeVar("E", bound=StrEnum)


def read_filter(query: QueryParams, context_id: int | None = None) -> TurnFilter:
    """Return what is looked for; what makes no sense is as if it was not there."""
    until = _day(query.get("until", ""))
    return TurnFilter(
        **{name: storable(query.get(name, "").strip()[:_LONGEST]).replace("\0", "") for name in _TEXTS},
        state=_one_of(State, query.get("state")) or State.ASKED,
        rating=_one_of(Rating, query.get("rating")),
        since=_day(query.get("since", "")),
        until=None if until is None else until + timedelta(days=1),  # both days are meant
        order=_one_of(Order, query.get("order")) or Order.NEWEST,
        context_id=context_id,
    )


def read_cursor(query: QueryParams) -> Cursor | None:
    """Return where the page begins; None for the beginning."""
    found = _CURSOR.fullmatch(query.get("after", ""))
    return None if found is None or not found[0].isascii() else Cursor(int(found[1]), int(found[2]))


def write_cursor(value: int, number: int) -> str:
    """Return where a page begins, for its address."""
    return f"{value}-{number}"


def filter_values(sought: TurnFilter) -> dict[str, str]:
    """Return what is looked for as the address has it; what is looked for by default is not in it."""
    plain = TurnFilter()
    values = {each.name: getattr(sought, each.name) for each in fields(sought) if each.name != "context_id"}
    shown = {name: _show(name, value) for name, value in values.items() if value != getattr(plain, name)}
    return {name: value for name, value in shown.items() if value}


def address(path: str, values: Mapping[str, str], **others: str | None) -> str:
    """Return an address with what is asked for."""
    asked = {name: value for name, value in {**values, **others}.items() if value}
    return f"{path}?{urlencode(asked)}" if asked else path


def _show(name: str, value: object) -> str:
    if isinstance(value, datetime):
        return f"{value - timedelta(days=1) if name == 'until' else value:%Y-%m-%d}"
    return "" if value is None else str(value)


def _day(text: str) -> datetime | None:
    try:
        found = date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None
    is_sane = found is not None and 1970 < found.year < 3000
    return datetime(found.year, found.month, found.day, tzinfo=UTC) if found is not None and is_sane else None


def _one_of(kind: type[E], text: str | None) -> E | None:
    return kind(text) if text in {each.value for each in kind} else None
