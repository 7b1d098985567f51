"""Words that stand for each other: synonyms, and the general word for a special one."""

from functools import cache, lru_cache
from importlib.resources import files

from botservice.history.ranking.words.inflections import form_keys
from botservice.history.ranking.words.tokens import fold


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
    return {word: frozenset(others) for word, others in table.items()}


@lru_cache(maxsize=8192)
def related_keys(word: str, spoken: tuple[int, ...]) -> frozenset[str]:
    """Return the vocabulary keys of words that may stand for word; none for most words."""
    table, own = _table(), form_keys(word, spoken)
    others = {other for key in own for other in table.get(key, ())}
    return frozenset(key for other in others for key in form_keys(other, spoken)) - own
