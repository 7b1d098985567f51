"""Reading what a model answers: what does not have the form, or breaks a rule, is dropped and counted."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from botservice.background.observed_messages import Stretch
from botservice.core.quoting import digest_of_words, in_one_line
from botservice.history.notes import Note, StoredNote
from botservice.people.fact_evidence import is_said_in, share_said
from botservice.people.fact_keeping import SINGLE_TOPICS, TOPICS, Found
from botservice.telemetry.logs import redact

_LONGEST_ANSWER: Final = 60_000  # characters
_MOST_NOTES: Final = 20
_MOST_FACTS: Final = 30
_MOST_NUMBERS: Final = 200  # of messages or notes that one note names
_LONGEST_NOTE: Final = 300
_LONGEST_SUBJECT: Final = 40
_LEAST_SAID: Final = 1 / 3  # of the words of a note: others put it together
_NUMBER: Final = re.compile(r"\d+")
# What looks like a key or a token: a long word of letters and digits.
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9_-]{20,}")
_WORD: Final = re.compile(r"[\w-]+")

LONGEST: Final = 300  # characters
_SHORTEST: Final = 2
_LOOKED_BACK: Final = 6  # characters: longer than any word after which a point need not end a sentence
_END: Final = re.compile(
    r"[!?\u061f\u2026]+[\"'\u201d\u00bb)\]]*(?=\s|$)|[\u3002\uff01\uff1f]+[\u300d\u300f]?|\.[\"'\u201d\u00bb)\]]*(?=\s|$)"
)
_QUESTION: Final = re.compile(r"[?\uff1f\u061f\u00bf]")
# Where a line ends or begins like that, the one before it goes on: "I do not eat:", "- eggs", "that I live there".
_GOES_ON: Final = (":", ",", ";", "\uff1a", "\uff0c", "\u3001")
_GONE_ON: Final = ("-", "*", "\u2013", "\u2014", "\u2022")
# A point after these need not end a sentence: initials, "Dr.", "z.B.".
_SHORT_WORD: Final = re.compile(r"(?:^|[\s.(])(?:\w|[^\W\d_a-z]\w{1,2})$")


@dataclass(slots=True)
class ObserverAnswer:
    """What is left of an answer.

    Attributes:
        replaced: Earlier ones that these take the place of, or that there is no room for.
        dropped: How much was dropped, by reason.
    """

    notes: list[StoredNote] = field(default_factory=list)
    replaced: list[StoredNote] = field(default_factory=list)
    facts: list[Found] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def read_answer(text: str, stretch: Stretch, count: Callable[[str], int]) -> ObserverAnswer:
    """Return the notes and facts of an answer that pass every check."""
    answer = ObserverAnswer()
    given = _parse(text)
    if given is None:
        answer.dropped["unreadable"] += 1
        return answer
    for entry in _entries(given, "facts", _MOST_FACTS, answer):
        found = _read_fact(entry, stretch)
        if isinstance(found, Found):
            answer.facts.append(found)
        else:
            answer.dropped[found] += 1
    drafts = [_read_note(entry, stretch, count) for entry in _entries(given, "notes", _MOST_NOTES, answer)]
    answer.dropped.update(each for each in drafts if isinstance(each, str))
    _fit(answer, stretch, [each for each in drafts if not isinstance(each, str)])
    return answer


def _parse(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object in a text: some servers put words or a fence around it."""
    first, last = text.find("{"), text.rfind("}")
    if first < 0 or len(text) > _LONGEST_ANSWER:
        return None
    try:
        given = json.loads(text[first : last + 1])
    except (ValueError, RecursionError):
        return None
    is_formed = isinstance(given, dict) and all(isinstance(given.get(name), list) for name in ("notes", "facts"))
    return given if is_formed else None


def _entries(given: Mapping[str, Any], name: str, most: int, answer: ObserverAnswer) -> list[Any]:
    entries: list[Any] = given[name]
    if len(entries) > most:
        answer.dropped["too_many"] += len(entries) - most
    return entries[:most]


def _read_fact(entry: Any, stretch: Stretch) -> Found | str:
    """Return a fact, or the reason why it is dropped."""
    if isinstance(entry, dict):
        entry = {"replaces": "", **entry}  # where a server does not hold its model to the form, that is left out
    if not _has_form(entry, {"message": int, "quote": str, "topic": str, "subject": str, "replaces": str}):
        return "malformed"
    message = next((each for each in stretch.said if each.id == entry["message"]), None)
    if message is None or message.author is None:
        return "not_of_a_person"
    sentence = sentence_with(entry["quote"], message.own)
    if sentence is None:
        return "not_said"
    shown = in_one_line(sentence)
    subject = _subject(entry, shown)
    if subject is None or _is_secret(shown):
        return "unfit"
    replaces = _read_replaced(entry, stretch.known.get(message.who, ()))
    return Found(message.author, message.id, message.at, entry["topic"], subject, shown, replaces)


def _read_replaced(entry: Mapping[str, Any], known: Collection[str]) -> str:
    """Return which known thing a fact takes the place of: one of the same person and the same topic, or none."""
    is_same = entry["replaces"] in known and entry["replaces"].partition(":")[0] == entry["topic"]
    return str(entry["replaces"]) if is_same else ""


def _subject(entry: Mapping[str, Any], sentence: str) -> str | None:
    """Return what a fact is about besides its topic, or None if the topic is unknown, or its person has not said it."""
    if entry["topic"] in SINGLE_TOPICS:
        return ""
    subject = in_one_line(entry["subject"]).casefold()
    is_said = bool(subject) and len(subject) <= _LONGEST_SUBJECT and is_said_in(subject, sentence)
    return subject if entry["topic"] in TOPICS and is_said else None


def _read_note(entry: Any, stretch: Stretch, count: Callable[[str], int]) -> tuple[StoredNote, list[StoredNote]] | str:
    """Return a note with the earlier ones that it replaces, or the reason why it is dropped."""
    if not _has_form(entry, {"text": str, "messages": list, "earlier": list}):
        return "malformed"
    text = in_one_line(entry["text"])
    if not text or len(text) > _LONGEST_NOTE or _is_secret(text):
        return "malformed"
    said = _named(entry["messages"], {each.id: each for each in stretch.said})
    merged = _named(entry["earlier"], {each.note.number: each for each in stretch.earlier})
    if said is None or merged is None or not (said or merged):
        return "no_source"
    sources = [f"{each.who} {each.at:%Y-%m-%d} {each.text}" for each in said]
    sources += [f"{each.note.at:%Y-%m-%d} {each.note.text}" for each in merged]
    if not _is_of(text, "\n".join(sources)):
        return "not_of_its_source"
    if digest_of_words(text) in stretch.refused:
        return "refused"
    ids = dict.fromkeys([*(number for each in merged for number in each.note.message_ids), *(each.id for each in said)])
    at = max([*(each.at for each in said), *(each.note.at for each in merged)])
    note = Note(text, at, tuple(sorted(ids)))
    tokens = count(f"[{at:%Y-%m-%d}] {text}") + 1
    return StoredNote(note, stretch.first_seen, stretch.last, tokens, 0, stretch.span), merged


def _is_of(text: str, sources: str) -> bool:
    """Return whether a note's numbers, and enough of its words, stand in its sources."""
    numbers = set(_NUMBER.findall(sources))
    known = numbers | {each.lstrip("0") for each in numbers}
    return (
        set(_NUMBER.findall(text)) <= known
        and _codes(text) <= _codes(sources)
        and share_said(text, sources) >= _LEAST_SAID
    )


def _codes(text: str) -> set[str]:
    """Return the words that mix letters and digits, such as A4, which are compared whole."""
    words = (each.casefold() for each in _WORD.findall(text))
    return {each for each in words if each[0].isalpha() and any(map(str.isdigit, each))}


def _fit(answer: ObserverAnswer, stretch: Stretch, drafts: Iterable[tuple[StoredNote, list[StoredNote]]]) -> None:
    """Keep the notes for which there is room, dropping the oldest of the earlier ones first."""
    room = stretch.room
    replaced: dict[int, StoredNote] = {}
    for note, merged in drafts:
        if note.tokens > room:
            answer.dropped["no_room"] += 1
            continue
        room -= note.tokens
        answer.notes.append(note)
        replaced.update({each.id: each for each in merged})
    for each in reversed(stretch.earlier):
        if each.id in replaced:
            continue
        if each.tokens > room:
            replaced[each.id] = each
            answer.dropped["given_up"] += 1
        else:
            room -= each.tokens
    answer.replaced = list(replaced.values())


def _is_secret(text: str) -> bool:
    looks_like_one = any(re.search(r"\d", word) and re.search("[A-Za-z]", word) for word in _LONG_WORD.findall(text))
    return looks_like_one or redact(text) != text


def _named(numbers: Sequence[Any], known: Mapping[int, Any]) -> list[Any] | None:
    """Return the items that numbers name, each once, or None if a number names none."""
    if len(numbers) > _MOST_NUMBERS or not all(type(each) is int and each in known for each in numbers):
        return None
    return [known[each] for each in dict.fromkeys(numbers)]


def _has_form(entry: Any, form: Mapping[str, type]) -> bool:
    names: Collection[str] = entry.keys() if isinstance(entry, dict) else ()
    return set(names) == set(form) and all(type(entry[name]) is kind for name, kind in form.items())


def sentence_with(quote: str, own: str) -> str | None:
    """Return the sentence of a person's own words that holds a quotation word for word.

    Return None if there is none, if it is a question, or if it is too long to be a fact.
    """
    sought = _in_one_line(quote)
    if len(sought) < _SHORTEST:
        return None
    for line in _lines(own):
        place = _find_whole(sought, line)
        if place is not None:
            begin, end = _around(line, place, place + len(sought))
            sentence = line[begin:end].strip()
            return sentence if len(sentence) <= LONGEST and not _QUESTION.search(sentence) else None
    return None


def _in_one_line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _lines(own: str) -> list[str]:
    """Return the lines of a text, each joined with the one that it runs on into, where a "not" may stand."""
    lines: list[str] = []
    for line in filter(None, map(_in_one_line, own.splitlines())):
        if lines and (lines[-1].endswith(_GOES_ON) or line.startswith(_GONE_ON) or line[0].islower()):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return lines


def _find_whole(sought: str, line: str) -> int | None:
    """Return where a quotation stands in a line, at whole words."""
    place = line.find(sought)
    while place >= 0:
        end = place + len(sought)
        if not (_is_within_a_word(line, place) or _is_within_a_word(line, end)):
            return place
        place = line.find(sought, place + 1)
    return None


def _is_within_a_word(line: str, place: int) -> bool:
    before, after = line[place - 1 : place], line[place : place + 1]
    return before.isalnum() and after.isalnum() and max(before, after) < "\u2e80"


def _around(line: str, begin: int, end: int) -> tuple[int, int]:
    """Return where the sentences begin and end that a part of a line lies in."""
    ends = [each.end() for each in _END.finditer(line) if not _is_abbreviated(line, each)]
    first = max((each for each in ends if each <= begin), default=0)
    return first, min((each for each in ends if each >= end), default=len(line))


def _is_abbreviated(line: str, found: re.Match[str]) -> bool:
    return (
        found[0].startswith(".")
        and found.end() < len(line)
        and bool(_SHORT_WORD.search(line[max(0, found.start() - _LOOKED_BACK) : found.start()]))
    )
