"""Messages as records that a model reads: dated, with their author, between two marks, and no instructions."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from botservice.history import Room, SearchHit
from botservice.history.shown import CUT, LONGEST_RECORD, Records, as_record, record_heading
from botservice.llm.tokens import TokenCounter
from botservice.memory.found import FOUND_END, FOUND_START
from botservice.messages import Message

_SMALLEST = 20  # characters that say something
_AROUND_ALL = 14  # tokens of the marks, and of what a server puts around a message
_SIZED_DATE = "2024-03-01 09:00"  # all dates take alike


def records_of(found: Sequence[SearchHit]) -> Records:
    """Return what was found as records, oldest first."""
    every = (message for hit in found for message in hit.messages)
    return Records.of(sorted(every, key=lambda message: (message.created_at, message.id or 0)))


def describe_records(heading: str, records: Records) -> str:
    """Return records between their marks, below a heading that says what they are."""
    return "\n".join([heading, FOUND_START, *records.texts, FOUND_END])


def room_for_records(tokens: int, counter: TokenCounter, heading: str) -> Room:
    """Return room for so many tokens of records, those of the heading included."""
    around = size_around(heading, counter)
    return Room(max(0, tokens - around), partial(size_of, counter=counter), partial(_shortened, counter=counter))


def size_around(heading: str, counter: TokenCounter) -> int:
    """Return how many tokens stand around records."""
    return count_again(heading, counter) + _AROUND_ALL


def size_of(message: Message, counter: TokenCounter) -> int:
    """Return how many tokens a record takes, with its end of line; a text that is counted is not counted again."""
    if message.token_count is None or message.attachments or len(message.full_text) > LONGEST_RECORD:
        return counter.count(as_record(message) + "\n")
    heading = count_again(record_heading(message, date=_SIZED_DATE), counter)
    return heading + message.token_count + message.full_text.count("\n") + 1


def count_again(text: str, counter: TokenCounter) -> int:
    """Return how many tokens a text takes that comes again and again, such as a name; a few thousand are remembered."""
    return _counted(text, counter)  # type: ignore[arg-type]  # a protocol does not say that every object has a hash


@lru_cache(maxsize=4096)
def _counted(text: str, counter: TokenCounter) -> int:
    return counter.count(text)


def _shortened(message: Message, most: int, counter: TokenCounter) -> Message:
    """Return message with as much of its text as most tokens hold."""
    size = size_of(message, counter)
    if size <= most:
        return message
    text = message.full_text[:LONGEST_RECORD]
    while size > most and len(text) > _SMALLEST:
        text = text[: max(_SMALLEST, len(text) * most // size - 1)]
        message = replace(message, text=text + CUT, references=(), token_count=counter.count(text) + 1)
        size = size_of(message, counter)
    return message
