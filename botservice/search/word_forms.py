"""Words for each other: inflections, regular ones by a stemmer and others by a list, synonyms, and general words."""

from functools import cache, lru_cache
from importlib.resources import files

from botservice.search.languages import stem
from botservice.search.tokens import fold


def _lines_of(name: str) -> list[str]:
    """Return the lines of a file of words next to this module, without comments."""
    lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


@cache
def _forms_of() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in _lines_of("inflections.txt"):
        forms = line.split()
        for form in forms:
            table.setdefault(fold(form), set()).update(forms)
    return {form: frozenset(forms) for form, forms in table.items()}


@lru_cache(maxsize=8192)
def form_keys(word: str, spoken: tuple[int, ...]) -> frozenset[str]:
    """Return the keys under which a vocabulary has word and its inflections in the languages spoken."""
    keys = set()
    for form in {word, *_forms_of().get(fold(word), ())}:
        keys.add(fold(form))
        if is_inflected(form):
            keys.update(stem(form, language) for language in spoken)
    return frozenset(keys)


def is_inflected(word: str) -> bool:
    """Return whether word is of a script that a stemmer works on."""
    return word.isalpha() and word[0] < "\u0e00"


@cache
def _related() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in _lines_of("related.txt"):
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
    table, own = _related(), form_keys(word, spoken)
    others = {other for key in own for other in table.get(key, ())}
    return frozenset(key for other in others for key in form_keys(other, spoken)) - own
