"""A question, taken apart: its words with their weights, the people and the times that it names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from botservice.search import languages
from botservice.search.dates import DateSpan, find_spans
from botservice.search.grammar import ASKS_WHEN, FILLERS, JOINS, LISTENER, QUESTION, SPEAKER
from botservice.search.tokens import normalize, token_weight, tokenize
from botservice.search.weights import Weights

MAX_CHARACTERS: Final = 4_000
MAX_WORDS: Final = 200
_SPACELESS: Final = "\u1100"  # scripts in which words run into each other, and Korean
_WORD: Final = re.compile(r"[^\W_]+")
_FILLERS: Final = frozenset(normalize(word) for word in FILLERS)
# Scripts without spaces: fillers run into each other.
_FILLER_RUN: Final = re.compile(
    "(?:" + "|".join(sorted((word for word in _FILLERS if word[0] > "\u1000"), key=len, reverse=True)) + ")+"
)
_GERMAN: Final = languages.CODES.index("de")
_QUESTION_MARK: Final = re.compile("[?\uff1f\u00bf]")
_AFTER_QUESTION: Final = re.compile(r"(?<=[?\uff1f\u061f])\s*(?![?\uff1f\u061f!])")
_MOST_QUESTIONS: Final = 4


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_LEAST_OF_QUESTION: Final = 2  # tokens: in "where and when did we meet", the first half asks nothing by itself
# "… and what …"; where question words come late, and in scripts without spaces, between two clauses.
_JOINED: Final = re.compile(
    f"[,;]? (?:{_any_of(word for word in JOINS if word[0] < _SPACELESS)}) "
    f"(?=(?:{_any_of(word for word in QUESTION if word[0] < _SPACELESS)})\\b)"
    f"|(?:[,\uff0c\u3001] ?| )(?:{_any_of(word for word in JOINS if word[0] >= _SPACELESS)})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """What a question asks for.

    Attributes:
        tokens: All of it, in order.
        words: Its words, once each, with how much each counts before rarity.
        spoken: Languages to stem in (indices into languages.CODES).
        spans: The times that it names.
        is_about_speaker, is_about_listener: Whether it says "I" or "my", "you" or "your".
    """

    tokens: list[str]
    words: dict[str, float]
    spoken: tuple[int, ...]
    spans: list[DateSpan] = field(default_factory=list)
    is_about_speaker: bool = False
    is_about_listener: bool = False
    asks_when: bool = False


def parse(text: str, *, chat_languages: tuple[int, ...], now: datetime | None, weights: Weights) -> Query:
    """Return text taken apart."""
    text = text[:MAX_CHARACTERS]
    tokens = tokenize(text)
    guessed = languages.guess(tokens)
    spoken = tuple(dict.fromkeys((*((guessed,) if guessed >= 0 else ()), *chat_languages)))
    counted = (guessed,) if guessed >= 0 else chat_languages[:1]
    words: dict[str, float] = {}
    function_words, light_words = languages.word_lists(counted)
    for token in tokens:
        if token not in function_words:
            light = weights.light_word if token in light_words else 1.0
            words[token] = max(words.get(token, 0), light * token_weight(token))
    if not words:
        words = {token: token_weight(token) for token in tokens}
    found = set(tokens)
    return Query(
        tokens=tokens,
        words=dict(list(words.items())[:MAX_WORDS]),
        spoken=spoken,
        spans=find_spans(text, now=now, is_german=spoken[0] == _GERMAN),
        is_about_speaker=not found.isdisjoint(SPEAKER),
        is_about_listener=not found.isdisjoint(LISTENER),
        asks_when=not found.isdisjoint(ASKS_WHEN),
    )


def split_questions(text: str) -> list[str]:
    """Split a text into its questions, at "?" and between "… and what …"; one text for a single one."""
    parts = [part for part in _AFTER_QUESTION.split(text[:MAX_CHARACTERS]) if part.strip()]
    asked = [part for part in parts if _QUESTION_MARK.search(part)] or parts
    asking = [question for part in asked for question in _split_joined(part)]
    if len(asking) > 1:
        asking = [question for question in asking if is_worth_searching(_QUESTION_MARK.sub("", question))]
    return asking[:_MOST_QUESTIONS] if len(asking) > 1 else [text]


def _split_joined(text: str) -> list[str]:
    """Split a sentence into the questions that it joins, if each of them asks something by itself."""
    parts = _JOINED.split(text)
    if len(parts) == 1 or QUESTION.isdisjoint(tokenize(parts[0])):
        return [text]
    asks = (len(tokens) >= _LEAST_OF_QUESTION and not QUESTION.isdisjoint(tokens) for tokens in map(tokenize, parts))
    return parts if all(asks) else [text]


def is_worth_searching(text: str) -> bool:
    """Return whether text asks for or speaks of anything: not for "ok", thanks, emoji, blanks."""
    words = _WORD.findall(normalize(text[:MAX_CHARACTERS]).lower())
    words = [word for word in words if word not in _FILLERS and not _FILLER_RUN.fullmatch(word)]
    if not words:
        return False
    if _QUESTION_MARK.search(text):
        return True
    tokens = tokenize(text[:MAX_CHARACTERS])
    if not QUESTION.isdisjoint(tokens):
        return True
    guessed = languages.guess(tokens)
    spoken = (guessed,) if guessed >= 0 else (0,)
    return not all(languages.is_function_word(word, spoken) for word in words)
