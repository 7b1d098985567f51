"""Whether a fact is said in a person's own words: all of it, and not just a part.

A fact is a rule for every later answer, so that nothing may get into one that its person has not said. Agents say facts
again ("Lives in Lyon" for "I live in Lyon"): words may change their form and their order, and what only holds a
sentence together may come and go. Every word that means something has to be one of the person's.
"""

import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Final

_WORD: Final = re.compile(r"\w+")
_SPACELESS: Final = 0x2E80
_LONGEST_OWN: Final = 20_000  # characters of a message in which a fact is looked for
_WORDS_BETWEEN: Final = 12
_SHORTEST_STEM: Final = 3
_SHARED_PART: Final = 0.6  # of the longer of two forms of a word
_LONGEST_ENDING: Final = 5


def _folded(word: str) -> str:
    """Return a word without accents, which people leave out."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word)
    return "".join(part for part in parts if not unicodedata.combining(part)) or word


_WORDING: Final[dict[str, str]] = tomllib.loads(Path(__file__).with_name("wording.toml").read_text(encoding="utf-8"))
_GLUE: Final = frozenset(map(_folded, _WORDING["glue"].split()))
_GLUE_WITHOUT_SPACES: Final = re.compile("|".join(_WORDING["glue_without_spaces"].split()))
_TOPICS: Final = frozenset(_WORDING["topics"].split())


def is_said_in(fact: str, own: str) -> bool:
    """Return whether a person's own words hold every content word of a fact."""
    spoken, written = _parted(own[:_LONGEST_OWN])
    words, runs = _parted(fact)
    wanted = {word for word in words if word not in _GLUE and (len(word) > 1 or word.isdigit())}
    unglued = [part for run in runs for part in _GLUE_WITHOUT_SPACES.split(run) if part]
    if not wanted and not unglued:
        return any(word in spoken for word in words) or any(run in text for run in runs for text in written)
    if not all(any(part in text for text in written) for part in unglued):
        return False
    forms = _forms(wanted, spoken)
    return all(forms) and any(_holds(passage, forms) for passage in _passages(spoken, len(wanted)))


def share_said(text: str, own: str) -> float:
    """Return the share of a text's content words that another text holds, from 0 to 1.

    Words count in any form of theirs; of scripts without blanks, each two signs that follow each other.
    """
    spoken, written = _parted(own[:_LONGEST_OWN])
    words, runs = _parted(text)
    wanted = {word for word in words if word not in _GLUE and (len(word) > 1 or word.isdigit())}
    pairs = {run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1))}
    found = sum(map(bool, _forms(wanted, spoken))) + sum(any(pair in each for each in written) for pair in pairs)
    return found / (len(wanted) + len(pairs)) if wanted or pairs else 0.0


def fitting_topic(topic: str, own: str) -> str:
    """Return a topic if it holds only common topics and the person's own words, otherwise ""."""
    spoken, _ = _parted(own[:_LONGEST_OWN])
    words, runs = _parted(topic)
    if words and not runs and all(word in _TOPICS or word in _GLUE or word in spoken for word in words):
        return topic
    return topic if is_said_in(topic, own) else ""


def _forms(wanted: set[str], spoken: list[str]) -> list[set[str]]:
    """Return for each word the forms of it that a person has used; forms begin alike."""
    by_beginning: dict[str, set[str]] = {}
    for word in spoken:
        by_beginning.setdefault(word[:_SHORTEST_STEM], set()).add(word)
    return [{each for each in by_beginning.get(word[:_SHORTEST_STEM], ()) if _is_form(word, each)} for word in wanted]


def _passages(words: list[str], count: int) -> list[set[str]]:
    """Return the overlapping windows of a text in which a number of words may stand together.

    Words from here and there in a long text could be put together to say anything.
    """
    size = 2 * count + _WORDS_BETWEEN
    return [set(words[begin : begin + 2 * size]) for begin in range(0, max(1, len(words)), size)]


def _holds(passage: set[str], forms: list[set[str]]) -> bool:
    return all(not passage.isdisjoint(each) for each in forms)


def _parted(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, and its runs in scripts without blanks between words."""
    # Once more: some signs stand for many letters.
    found = _WORD.findall(unicodedata.normalize("NFKC", text)[:_LONGEST_OWN].casefold())
    runs = [word for word in found if any(ord(letter) >= _SPACELESS for letter in word)]
    unparted = set(runs)
    return [_folded(word) for word in found if word not in unparted], runs


def _is_form(word: str, other: str) -> bool:
    """Return whether two words are forms of one: the same beginning, and short endings."""
    if word == other:
        return True
    shared = 0
    for first, second in zip(word, other, strict=False):
        if first != second:
            break
        shared += 1
    longer, ending = max(len(word), len(other)), max(len(word), len(other)) - shared
    return (
        shared >= _SHORTEST_STEM
        and shared >= _SHARED_PART * longer
        and ending <= _LONGEST_ENDING
        and not (word + other).isdigit()
        and word.isalpha()
        and other.isalpha()
    )
