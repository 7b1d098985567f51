"""What people are told in chats: a file of texts for each language stands beside this one, see docs/translating.md."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
DEFAULT_LANGUAGE: Final = "en"
LANGUAGES: Final = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""The two letters of every language that has a file."""


def in_language(key: str, /, language: str | None, **values: object) -> str:
    """Return a text in a language, such as "de" or "pt-BR"; in English where that has no file.

    Args:
        key: The table of the text in the files and its name there, such as "forget.done".
        values: What is put into its placeholders.
    """
    return template_in_language(key, language).format(**values)


def template_in_language(key: str, language: str | None) -> str:
    """Return a text in a language with its placeholders."""
    code = (language or DEFAULT_LANGUAGE).partition("-")[0].lower()
    table, _, name = key.partition(".")
    return _texts(code if code in LANGUAGES else DEFAULT_LANGUAGE)[table][name]


def number_in_language(number: float, language: str | None, *, places: int = 0) -> str:
    """Return a number as it is written in a language, such as "1.234,5" in German."""
    marks = {ord(","): in_language("numbers.thousands", language), ord("."): in_language("numbers.decimal", language)}
    return f"{number:,.{places}f}".translate(marks)


@cache
def _texts(language: str) -> Mapping[str, Mapping[str, str]]:
    """Return the texts of a language by their tables; its file is read when a person first speaks it."""
    return tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
