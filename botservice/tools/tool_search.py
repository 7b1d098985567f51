"""Finding tools by the words of their names and descriptions."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from botservice.history.ranking.words.grammar import FUNCTION_WORDS
from botservice.history.ranking.words.languages import CODES, stem_all
from botservice.history.ranking.words.tokens import tokenize
from botservice.tools.tool import Tool

_ENGLISH: Final = CODES.index("en")
_IN_NAME: Final = 3  # a word of the name counts like so many of the description
_ENOUGH: Final = 1.2  # BM25's k1: how soon a word that comes again says nothing new


def find_tools(query: str, tools: Sequence[Tool], *, most: int) -> list[Tool]:
    """Return the tools whose words are those of query, the best first, or none if no word is."""
    texts = [_words(tool) for tool in tools]
    having = Counter(word for words in texts for word in words)
    wanted = {word: math.log1p(len(tools) / having[word]) for word in _stems(query) if word in having}
    scores = [_score(words, wanted) for words in texts]
    best = sorted(range(len(tools)), key=lambda place: (-scores[place], place))[:most]
    return [tools[place] for place in best if scores[place] > 0]


def _score(words: Counter[str], wanted: dict[str, float]) -> float:
    return sum(worth * words[word] / (words[word] + _ENOUGH) for word, worth in wanted.items())


def _words(tool: Tool) -> Counter[str]:
    words = Counter(_stems(tool.description))
    for word in _stems(tool.name.replace("_", " ")):
        words[word] += _IN_NAME
    return words


def _stems(text: str) -> list[str]:
    words = [word for word in tokenize(text) if word not in FUNCTION_WORDS["en"]]
    return stem_all(words, _ENGLISH)
