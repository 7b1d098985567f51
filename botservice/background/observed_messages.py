"""A stretch: the messages that are read at a time, and the notes right before them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final

from botservice.background import queries
from botservice.core.messages import Author, Role
from botservice.core.quoting import quote_name
from botservice.history.note_queries import read_notes, refused_digests
from botservice.history.notes import StoredNote
from botservice.people.fact_keeping import TOPICS_BY_SUBJECT
from botservice.people.fact_queries import own_words_in, visible_facts
from botservice.people.names import is_chat_name
from botservice.storage.database import Connection
from botservice.storage.message_references import full_text_of

_MOST_KNOWN: Final = 60  # keys of what is known of one person
_LEAST_SHARE: Final = 6  # of the room for notes, that newer ones get at least: one part in so many


@dataclass(frozen=True, slots=True)
class ObservedMessage:
    """A message that is read.

    Attributes:
        who: The speaker's name here, unique among the speakers.
        text: All that it says.
        own: What its author says in their own words.
        author: Who said it, where that is a person with an identity.
    """

    id: int
    at: datetime
    who: str
    text: str
    own: str
    author: Author | None


@dataclass(frozen=True, slots=True)
class ObservedChat:
    """The conversation that is read, and the person whose it is.

    Attributes:
        person: The only one who was ever seen there, or None if that is nobody, or more than one.
    """

    context_id: int
    keys: Mapping[str, str]
    is_shared: bool
    person: Author | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is read at a time.

    Attributes:
        version: Of what is noted of the conversation when it was read.
        first, last: The positions between which it lies.
        rows: The messages as they were stored: they have to stand like that when something is noted of them.
        earlier: Notes of what was said before, which may be merged with new ones.
        room: How many tokens these and the new ones may take.
        refused: Digests of notes that people have deleted.
        known: What is known of the speakers, by subject and by their names here: the keys alone.
    """

    chat: ObservedChat
    version: int
    tries: int
    first: int
    last: int
    rows: tuple[tuple[Any, ...], ...]
    said: tuple[ObservedMessage, ...]
    earlier: tuple[StoredNote, ...]
    room: int
    refused: frozenset[str]
    known: Mapping[str, tuple[str, ...]]

    @property
    def context_id(self) -> int:
        """The conversation."""
        return self.chat.context_id

    @property
    def first_seen(self) -> int:
        """The position of the first message that anything in this reading may come from."""
        return min([self.first, *(each.first for each in self.earlier)])

    @property
    def span(self) -> int:
        """How many readings its notes will sum up."""
        return 1 + sum(segment[0].span for segment in _segments(self.earlier))


def read_chat(connection: Connection, context_id: int) -> tuple[ObservedChat, int] | None:
    """Return a conversation, and where it last began afresh, or None if it is gone, or is about to go."""
    row = queries.find_chat(connection, context_id)
    if row is None:
        return None
    person = None if row.platform is None else Author(row.platform, row.platform_id)
    return ObservedChat(context_id, row.context_keys, bool(row.is_shared), person), row.fresh_from


def read_stretch(
    connection: Connection,
    context_id: int,
    up_to: int,
    *,
    max_tokens: int,
    notes_tokens: int,
    count: Callable[[str], int],
) -> Stretch | None:
    """Return the next stretch of a conversation, or None if there is nothing to read.

    It ends where the conversation began afresh, and what was noted before that is not merged with what comes after.
    """
    found, state = read_chat(connection, context_id), queries.read_state(connection, context_id)
    if found is None or state is None:
        return None
    chat, fresh_from = found
    rows, is_before = _read_side(connection, context_id, state.read_to, up_to, fresh_from)
    if not (taken := _take(rows, max_tokens, count)):
        return None
    is_all = len(taken) == len(rows) < queries.MOST_READ and not is_before
    last = max(taken[-1].position, min(up_to, state.again_to) if is_all else 0)
    kept = [each for each in read_notes(connection, context_id) if is_before or each.first > fresh_from]
    earlier, room = choose_earlier(kept, notes_tokens)
    said = _as_said(taken)
    return Stretch(
        chat,
        state.version,
        state.tries,
        state.read_to + 1,
        last,
        tuple(map(as_stored, taken)),
        said,
        earlier,
        room,
        frozenset(refused_digests(connection, context_id)),
        _read_known(connection, context_id, said),
    )


def _read_known(connection: Connection, context_id: int, said: Sequence[ObservedMessage]) -> dict[str, tuple[str, ...]]:
    """Return the known facts of each speaker that may be told here, newest first."""
    known = {}
    for who, author in {each.who: each.author for each in said if each.author is not None}.items():
        every = (each.topic for each in visible_facts(connection, context_id, author))
        topics = [each for each in every if each.partition(":")[0] in TOPICS_BY_SUBJECT]
        if topics:
            known[who] = tuple(topics[:_MOST_KNOWN])
    return known


def _read_side(
    connection: Connection, context_id: int, after: int, up_to: int, fresh_from: int
) -> tuple[Sequence[Any], bool]:
    """Return the next messages on one side of the last /new, and whether they are before it."""
    if after < fresh_from and (rows := queries.list_said(connection, context_id, after, min(up_to, fresh_from))):
        return rows, True
    return queries.list_said(connection, context_id, after, up_to), False


def as_stored(row: Any) -> tuple[Any, ...]:
    """Return the values of a message that must not change while it is read."""
    return (row.id, row.text, row.own_text, row.said_by_others)


def read_rows(connection: Connection, stretch: Stretch) -> tuple[tuple[Any, ...], ...]:
    """Return the messages of a stretch as they are now."""
    return tuple(map(as_stored, queries.list_said(connection, stretch.context_id, stretch.first - 1, stretch.last)))


def choose_earlier(kept: Sequence[StoredNote], max_tokens: int) -> tuple[tuple[StoredNote, ...], int]:
    """Return the newest notes that are read again to be merged with new ones, and the room for all of these together.

    What sums up as much as what follows it, or less, is merged with that, and so is what leaves too little room. So
    notes sum up the more the older they are, and what is forgotten takes few others along.
    """
    left = _segments(kept)
    chosen: list[StoredNote] = []
    span = 1
    while left:
        room = _room_left(left, max_tokens)
        if left[-1][0].span > span and room >= max_tokens // _LEAST_SHARE:
            break
        segment = left.pop()
        chosen[:0] = segment
        span += segment[0].span
    return tuple(chosen), max(0, _room_left(left, max_tokens))


def _room_left(segments: Sequence[Sequence[StoredNote]], max_tokens: int) -> int:
    return (max_tokens - sum(each.tokens for each in chain.from_iterable(segments))) // 2


def _segments(kept: Sequence[StoredNote]) -> list[list[StoredNote]]:
    """Return notes by the reading that wrote them, which all sum up as much, in their order."""
    reading = attrgetter("last", "first")
    return [list(notes) for _, notes in groupby(sorted(kept, key=reading), reading)]


def _take(rows: Sequence[Any], max_tokens: int, count: Callable[[str], int]) -> list[Any]:
    taken: list[Any] = []
    tokens = 0
    for row in rows:
        tokens += count(row.text) if row.token_count is None else row.token_count
        if taken and tokens > max_tokens:
            break
        taken.append(row)
    return taken


def _as_said(rows: Sequence[Any]) -> tuple[ObservedMessage, ...]:
    names: dict[tuple[str | None, str | None], str] = {}
    said = []
    for row in rows:
        is_person = row.role == Role.USER.value
        author = _author(row) if is_person else None
        who = _name(row, names) if is_person else Role.ASSISTANT.value
        own = own_words_in(row) if author is not None else ""
        said.append(ObservedMessage(row.id, row.created_at, who, full_text_of(row), own, author))
    return tuple(said)


def _author(row: Any) -> Author | None:
    """Return the author of a message, or None if it is not known: several people may write in the name of a chat."""
    if not row.author_id or is_chat_name(f"{row.author_platform}:{row.author_id}"):
        return None
    return Author(row.author_platform, row.author_id, row.author_name)


def _name(row: Any, names: dict[tuple[str | None, str | None], str]) -> str:
    """Return a person's name in a stretch, with a number if another person has the same."""
    account = (row.author_platform, row.author_id or row.author_name)
    if account not in names:
        name, number = quote_name(row.author_name, Role.USER.value), 1
        taken = {*names.values(), Role.ASSISTANT.value}
        names[account] = name
        while names[account] in taken:
            number += 1
            names[account] = f"{name} {number}"
    return names[account]
