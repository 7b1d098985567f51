"""What the demo understands: names, wishes to remember, questions, in the languages that the service has texts in."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from botservice.texts import LANGUAGES, in_language

_PATTERNS: Final = Path(__file__).with_suffix(".toml")
_QUESTION: Final = re.compile(
    r"[?\uff1f\u061f]\s*$|^\s*(what|who|where|when|which|how|why|do|does|did|is|are|can|could|tell me|remind me)\b",
    re.IGNORECASE,
)
_ABILITIES: Final = re.compile(
    r"\b(?:(?:who|what) are you|what (?:can|could|do) you do|how can you help)\b", re.IGNORECASE
)
_ASKED_POLITELY: Final = re.compile(r"\W*(?:can|could|will|would) you\b", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_CLAUSE_END: Final = re.compile(r"[,;\uff0c\u3001]\s*(?!$)")
_TITLE: Final = re.compile(r"\b(?:dr|mr|mrs|ms|st|prof)\.$", re.IGNORECASE)
_END_SIGNS: Final = " \t.,!\u2026\u3002\uff01"
_LONGEST_GREETING: Final = 40
_NAME: Final = r"(?P<name>[^\W\d_][\w'\u2019.-]*(?: [^\W\d_][\w'\u2019.-]*){0,3}?)"


@dataclass(frozen=True, slots=True)
class Introduction:
    """How a person gives their name.

    Attributes:
        said: The statement that holds it, such as "I am Anna".
        is_certain: Whether it can be nothing else; "I am French" may give no name.
    """

    name: str
    said: str
    is_certain: bool


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, with the signs that end them."""
    found: list[str] = []
    for each in filter(None, map(str.strip, _SENTENCE_END.split(text))):
        if found and _TITLE.search(found[-1]):
            found[-1] += f" {each}"
        else:
            found.append(each)
    return found


def is_question(text: str) -> bool:
    """Return whether a sentence asks something."""
    return _QUESTION.search(text) is not None


def statement_of(text: str) -> str:
    """Return what a message says besides its questions: all of it where it asks nothing."""
    parts = sentences(text)
    said = [each for each in parts if not is_question(each)]
    return text if len(said) == len(parts) else " ".join(said)


def is_greeting(text: str) -> bool:
    """Return whether the first sentence of a message is short and begins with a greeting."""
    first = next(iter(sentences(text)), "")
    return len(first) <= _LONGEST_GREETING and any(each.match(first) for each in _patterns("greetings"))


def asks_for_abilities(text: str) -> bool:
    """Return whether a message asks what the demo is, or can do."""
    return _ABILITIES.search(text) is not None or is_starter("starters.abilities", text)


def asks_for_the_name(text: str) -> bool:
    """Return whether a message asks for the name of its author."""
    return any(each.search(text) for each in _patterns("name_questions"))


def find_introduction(text: str) -> Introduction | None:
    """Return how a person introduces themselves in a message, or None."""
    is_meeting = is_greeting(text) or asks_for_abilities(text)
    for part in [clause for each in sentences(text) if not is_question(each) for clause in _CLAUSE_END.split(each)]:
        said = part.strip(_END_SIGNS)
        for greeting in _patterns("greetings"):
            said = greeting.sub("", said, count=1).strip(_END_SIGNS) or said
        for kind in ("names", "maybe_names"):
            found = next(filter(None, (each.fullmatch(said) for each in _patterns(kind))), None)
            if found is not None and (kind == "names" or not found["name"][0].islower()):
                return Introduction(found["name"], said, is_certain=kind == "names" or is_meeting)
    return None


def find_wish(text: str) -> str | None:
    """Return the whole statement that a person wants to be remembered, or None."""
    if is_question(text) and not _ASKED_POLITELY.match(text):
        return None
    for pattern in _patterns("wishes"):
        if (found := pattern.fullmatch(text.strip())) is not None:
            fact: str = found["fact"].strip()
            return fact.rstrip("?").rstrip() if is_question(text) else fact
    return None


def is_starter(key: str, text: str) -> bool:
    """Return whether a message is what stands on a starter of the empty page, in any language."""
    return text.strip() in _starters(key)


@cache
def _starters(key: str) -> frozenset[str]:
    return frozenset(in_language(key, language) for language in LANGUAGES)


@cache
def _patterns(kind: str) -> Sequence[re.Pattern[str]]:
    """Return the patterns of a kind in all languages."""
    languages: Mapping[str, Mapping[str, Sequence[str]]] = tomllib.loads(_PATTERNS.read_text(encoding="utf-8"))
    shape = {"greetings": r"\W*(?:{})(?!\w)", "wishes": r"\W*(?:{})"}.get(kind, "(?:{})")
    found = [shape.replace("{}", pattern) for patterns in languages.values() for pattern in patterns[kind]]
    given = [each.replace("NAME", _NAME).replace("FACT", "(?P<fact>.+)") for each in found]
    return [re.compile(each, re.IGNORECASE | re.DOTALL) for each in given]
