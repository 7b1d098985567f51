"""Inflections: what a stemmer finds, and the irregular forms that it cannot know."""

from functools import cache, lru_cache
from importlib.resources import files

from botservice.history.ranking.words.languages import stem
from botservice.history.ranking.words.tokens import fold


@cache
def _forms_of() -> dict[str, frozenset[str]]:
    text = files(__package__).joinpath("inflections.txt").read_text(encoding="utf-8")
    table: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
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
