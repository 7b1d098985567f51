"""Closed classes of the languages that are served best: function words, persons, questions, fillers.

Grammar, not vocabulary: words such as these carry no topic. Longer lists come from a library (see languages.py);
those have "work", "home" and "name" in them and so cannot be dropped outright, these can. The words themselves stand in
`languages.toml`.
"""

import tomllib
from pathlib import Path
from typing import Any, Final

TABLES: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
FUNCTION_WORDS: Final = {code: frozenset(words.split()) for code, words in TABLES["function_words"].items()}


def _class(name: str) -> frozenset[str]:
    return frozenset(TABLES["classes"][name].split())


SPEAKER: Final = _class("speaker")
LISTENER: Final = _class("listener")
ASKS_WHEN: Final = _class("asks_when")
TIMES: Final = _class("times")
QUESTION: Final = _class("question")
JOINS: Final = _class("joins")
FILLERS: Final = _class("fillers")
