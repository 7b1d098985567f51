"""What an answer of a case has to be, and what of that it is not."""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from botservice.core.errors import BotServiceError
from botservice.core.policies import NANO
from botservice.devtools.replayed_answers import ReplayedAnswer
from botservice.llm.tokens import counter_for
from botservice.search.languages import CODES, guess
from botservice.search.tokens import tokenize

_SCRIPTS: Final = {"HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "THAI": "th", "CJK": "zh"}
LANGUAGES: Final = tuple(sorted({*CODES, *_SCRIPTS.values()}))
"""What can be told apart."""
_MOST: Final = 4_000  # characters that are looked at


def language_of(text: str) -> str | None:
    """Return the two letters of the language that a text is in, or None if that is not clear."""
    scripts = [unicodedata.name(each, "").partition(" ")[0] for each in text[:_MOST] if each.isalpha()]
    counts = Counter(_SCRIPTS[script] for script in scripts if script in _SCRIPTS)
    if counts.total() * 2 > len(scripts):
        return "ja" if counts["ja"] else max(_SCRIPTS.values(), key=lambda code: counts[code])
    found = guess(tokenize(text[:_MOST]))
    return None if found < 0 else CODES[found]


class Pattern:
    """A regular expression as the Rust library `regex` reads it: without look-around and back-references."""

    __slots__ = ("_validator", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._validator = SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex"))
        except SchemaError as error:
            reason = " ".join(str(error).partition("regex parse error:")[2].split()) or "it cannot be read"
            raise BotServiceError(
                f"{text!r} is no pattern that is safe to look for: {reason[-160:]}. "
                "Leave out look-around and back-references"
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def is_in(self, text: str) -> bool:
        """Return whether it is found anywhere in a text."""
        try:
            self._validator.validate_python(text)
        except ValidationError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Expectations:
    """What an answer has to be; whatever is not said here does not matter.

    Attributes:
        contains: Texts that are in it, in small letters or capitals.
        calls: Tools that the model calls on its way.
        max_tokens: How many tokens its model may write, on the way too.
        max_cost: In the currency.
        language: Two letters.
        judge: What a model that judges has to find true of it.
    """

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    regex: tuple[Pattern, ...] = ()
    not_regex: tuple[Pattern, ...] = ()
    calls: tuple[str, ...] = ()
    not_calls: tuple[str, ...] = ()
    max_tokens: int | None = None
    max_cost: float | None = None
    language: str | None = None
    judge: str | None = None


def find_failures(answer: ReplayedAnswer, expect: Expectations) -> list[str]:
    """Return the expectations that an answer does not meet, each in a line. It may block for a moment."""
    if answer.error is not None:
        return [f"no answer: {answer.error}"]
    return [*_of_text(answer.text, expect), *_of_calls(answer, expect), *_of_costs(answer, expect)]


def _of_text(text: str, expect: Expectations) -> Iterator[str]:
    small = text.casefold()
    yield from (f"does not contain {each!r}" for each in expect.contains if each.casefold() not in small)
    yield from (f"contains {each!r}" for each in expect.not_contains if each.casefold() in small)
    yield from (f"does not match {each.text!r}" for each in expect.regex if not each.is_in(text))
    yield from (f"matches {each.text!r}" for each in expect.not_regex if each.is_in(text))
    if expect.language is not None and (found := language_of(text)) != expect.language:
        yield f"is in {found or 'no language that can be told'}, not in {expect.language}"


def _of_calls(answer: ReplayedAnswer, expect: Expectations) -> Iterator[str]:
    called = {each.name for each in answer.tool_calls}
    yield from (f"does not call {each}" for each in expect.calls if each not in called)
    yield from (f"calls {each}" for each in expect.not_calls if each in called)


def _of_costs(answer: ReplayedAnswer, expect: Expectations) -> Iterator[str]:
    if expect.max_tokens is not None:
        tokens = count_said(answer)
        if tokens > expect.max_tokens:
            yield f"takes {tokens:,} tokens, not {expect.max_tokens:,} at most"
    if expect.max_cost is not None:
        if answer.cost is None:
            yield "costs nobody knows what: PRICES says what its model costs"
        elif answer.cost > expect.max_cost * NANO:
            yield f"costs {answer.cost / NANO:.6f}, not {expect.max_cost:g} at most"


def count_said(answer: ReplayedAnswer) -> int:
    """Return how many tokens were written for an answer; where no server says, about how many are in it."""
    if answer.usage is not None:
        return answer.usage.output_tokens
    return counter_for(answer.models[-1] if answer.models else None).count(answer.text)
