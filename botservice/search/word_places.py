"""Which of a few texts have a word, in any of its forms: what an index of a chat knows, for texts outside of one."""

from collections.abc import Iterable

from botservice.search import languages
from botservice.search.tokens import fold
from botservice.search.word_forms import is_inflected


class WordPlaces:
    """The places of the texts that each word stands in."""

    def __init__(self, texts: Iterable[list[str]]) -> None:
        """Take in the tokens of each text."""
        self._places: dict[str, list[int]] = {}
        for place, tokens in enumerate(texts):
            for token in set(tokens):
                self._places.setdefault(token, []).append(place)
        self._folded = _grouped(zip(map(fold, self._places), self._places.values(), strict=True))
        self._stemmed: dict[int, dict[str, list[int]]] = {}

    def having(self, keys: Iterable[str], spoken: Iterable[int]) -> list[int]:
        """Return the places of the texts that have a word under one of keys, as form_keys makes them.

        Args:
            spoken: Languages to stem in (indices into languages.CODES).
        """
        tables = [self._folded, *map(self._stemmed_in, spoken)]
        return [place for table in tables for key in keys for place in table.get(key, ())]

    def _stemmed_in(self, language: int) -> dict[str, list[int]]:
        found = self._stemmed.get(language)
        if found is None:
            words = [word for word in self._places if is_inflected(word)]
            stems = zip(languages.stem_all(words, language), map(self._places.__getitem__, words), strict=True)
            found = self._stemmed[language] = _grouped(stems)
        return found


def _grouped(pairs: Iterable[tuple[str, list[int]]]) -> dict[str, list[int]]:
    """Return the places of each key together; those of a key that comes once are not copied."""
    found: dict[str, list[int]] = {}
    for key, places in pairs:
        found[key] = found[key] + places if key in found else places
    return found
