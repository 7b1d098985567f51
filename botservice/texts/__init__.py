"""The texts that people read in chats, in a file for each language; see docs/translating.md."""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from babel import Locale

_FOLDER: Final = Path(__file__).parent
_OTHER: Final = "other"  # the plural category for the rest
DEFAULT_LANGUAGE: Final = "en"
LANGUAGES: Final = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""The two letters of every language that has a file."""

_Texts: TypeAlias = Mapping[str, Mapping[str, str | Mapping[str, str]]]


def in_language(key: str, /, language: str | None, **values: object) -> str:
    """Fill in a text in a language, such as "de" or "pt-BR"; in English if that language has no file.

    Args:
        key: The table of the text in the files and its name there, such as "forget.done".
        values: The values of its placeholders. An int `count` selects the plural form and is written as a number.
    """
    count = values.get("count")
    if isinstance(count, int):
        values["count"] = number_in_language(count, language)
        return template_in_language(key, language, count).format(**values)
    return template_in_language(key, language).format(**values)


def template_in_language(key: str, language: str | None, count: int = 0) -> str:
    """Look up a text in a language, with its placeholders, in the plural form for a count."""
    code = _code(language)
    table, _, name = key.partition(".")
    text = _texts(code)[table][name]
    if isinstance(text, str):
        return text
    category = _locale(code).plural_form(count)
    return text[category] if category in text else text[_OTHER]


def number_in_language(number: float, language: str | None, *, places: int = 0) -> str:
    """Write a number as people write it in a language, such as "1.234,5" in German."""
    from babel.numbers import format_decimal

    pattern = f"#,##0.{'0' * places}" if places else "#,##0"
    return format_decimal(number, pattern, locale=_locale(_code(language)))


def date_in_language(day: datetime, language: str | None) -> str:
    """Write the date of a moment, such as "Nov 28, 2026"."""
    return _write(day, "yMMMd", language)


def time_in_language(
    moment: datetime, language: str | None, *, now: datetime, zone: tzinfo | None = None, is_today: bool = False
) -> str:
    """Write a moment as apps do, such as "tomorrow, 20:20" or "Nov 28, 20:20 UTC".

    Args:
        zone: The time zone of the reader; None if it is unknown: the text then names UTC.
        is_today: Leave out the day, which the reader knows.
    """
    local, today = moment.astimezone(zone or UTC), now.astimezone(zone or UTC)
    time = _write(local, "Hm", language) + ("" if zone else " UTC")
    if is_today:
        return time
    days = (local.date() - today.date()).days
    if days in _NEAR:
        return in_language(_NEAR[days], language, time=time)
    day = _write(local, "MMMd" if local.year == today.year else "yMMMd", language)
    return in_language("times.on_day", language, day=day, time=time)


_NEAR: Final = {-1: "times.yesterday", 0: "times.today", 1: "times.tomorrow"}


def _write(moment: datetime, skeleton: str, language: str | None) -> str:
    from babel.dates import format_skeleton

    return format_skeleton(skeleton, moment, tzinfo=moment.tzinfo, locale=_locale(_code(language)))


def _code(language: str | None) -> str:
    code = (language or DEFAULT_LANGUAGE).partition("-")[0].lower()
    return code if code in LANGUAGES else DEFAULT_LANGUAGE


@cache
def _texts(code: str) -> _Texts:
    """Read the file of a language when a person first uses it."""
    return tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))


@cache
def _locale(code: str) -> "Locale":
    """Load the rules of a language: plural forms, numbers, dates. Source: Unicode CLDR."""
    from babel import Locale

    return Locale(code)
