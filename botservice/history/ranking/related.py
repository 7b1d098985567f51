"""Words that stand for each other: synonyms, and the general word for a special one."""

from functools import cache
from importlib.resources import files

from botservice.history.ranking.tokens import fold


@cache
def _table() -> dict[str, frozenset[str]]:
    text = files(__package__).joinpath("related.txt").read_text(encoding="utf-8")
    table: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            left, _, right = line.partition(":")
            general, special = left.split(), right.split()
            for word in general:
                table.setdefault(fold(word), set()).update(general, special)
            for word in special:
                table.setdefault(fold(word), set()).update(general)
    return {word: frozenset(others) - {word} for word, others in table.items()}


def related_to(words: set[str]) -> set[str]:
    """Return the words that may stand for any of words; none where words have none."""
    table = _table()
    return {other for word in words for other in table.get(fold(word), ())} - words
