"""The window: which messages of a chat stand in a prompt, read from the newest as far as a selector looks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import overload

from botservice.core.messages import Message, Role
from botservice.history.queries import count_messages, list_newest
from botservice.history.recent import Kept, Recent
from botservice.history.rows import read_message, read_messages
from botservice.llm.tokens import TokenCounter, counter_for
from botservice.storage.database import Connection
from botservice.storage.statements import LARGEST_ID

CONVERSATION = frozenset({Role.USER, Role.ASSISTANT})
_LOOKED_BACK = 8  # messages before a window, among which a person's last one is looked for
_FIRST_PAGE = 32
_LARGEST_PAGE = 1024


class MessageSelector(ABC):
    """Selects messages for a prompt. Pure and synchronous; reading from the end loads only the messages that it takes.

    Only `get_messages` is required, and an object with it need not inherit.

    Attributes:
        max_tokens: The most tokens that it selects; None if it does not count tokens.
    """

    max_tokens: int | None = None

    @abstractmethod
    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Select from messages; both lists are oldest first."""


@dataclass(frozen=True, slots=True)
class NoMessages(MessageSelector):
    """Selects nothing."""

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:  # noqa: ARG002 - the protocol's name
        """Select no message."""
        return []


@dataclass(frozen=True, slots=True)
class MessageWindowMessageSelector(MessageSelector):
    """Selects the k newest messages of people and the assistant.

    Raises:
        ValueError: k is negative.
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"k counts messages and must be 0 or more, not {self.k}")

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Select the k newest, oldest first."""
        return list(islice(_newest_first(messages), self.k))[::-1]


@dataclass(frozen=True, slots=True)
class TokenWindowMessageSelector(MessageSelector):
    """Selects the longest unbroken run of newest messages that fits into max_tokens.

    Messages without a token count are counted with o200k_base.

    Raises:
        ValueError: max_tokens is negative.
    """

    max_tokens: int = field()

    def __post_init__(self) -> None:
        if self.max_tokens < 0:
            raise ValueError(f"max_tokens must be 0 or more, not {self.max_tokens}")

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Select the run, oldest first."""
        chosen: list[Message] = []
        left = self.max_tokens
        for message in _newest_first(messages):
            left -= count_tokens(message)
            if left < 0:
                break
            chosen.append(message)
        return chosen[::-1]


@dataclass(frozen=True, slots=True)
class SteadyWindowMessageSelector(MessageSelector):
    """Selects an unbroken run of newest messages whose beginning stays the same for many turns.

    Servers charge less for a cached beginning of a prompt. The run takes at most max_tokens, and at least half of that
    if the chat is long enough and no single message is too long. If possible, it begins with a message of a person.

    Nothing is kept from one call to the next: of the places where the run may begin, it begins at the one where the
    messages' ids step over the highest power of two, and that one stays the best until it has to go. A message that is
    deleted moves hardly anything. Messages without ids are numbered by their place.

    Raises:
        ValueError: max_tokens is negative.
    """

    max_tokens: int = field()

    def __post_init__(self) -> None:
        if self.max_tokens < 0:
            raise ValueError(f"max_tokens must be 0 or more, not {self.max_tokens}")

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Select the run, oldest first."""
        run: list[_Numbered] = []
        starts: list[int] = []
        taken = 0
        newest_first = _numbered(messages)
        for each in newest_first:
            taken += count_tokens(each.message)
            if taken > self.max_tokens:
                length = _choose_length(run, starts, [each, *islice(newest_first, _LOOKED_BACK)])
                return [chosen.message for chosen in reversed(run[:length])]
            if 2 * taken >= self.max_tokens:
                starts.append(len(run))
            run.append(each)
        return [each.message for each in reversed(run)]


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int
    message: Message


def _choose_length(run: Sequence[_Numbered], starts: Sequence[int], older: Iterable[_Numbered]) -> int:
    """Return how many messages of a run to take, newest first.

    Args:
        starts: The places in run where it may end, which is where the window begins; all of run where there is none.
        older: What comes before run.
    """
    chat = [*run, *older]
    roles = {Role.USER} if any(run[place].message.role is Role.USER for place in starts) else CONVERSATION
    marks = [place for place, each in enumerate(chat) if each.message.role in roles]
    steps = {mark: (chat[mark].number ^ chat[before].number).bit_length() for mark, before in pairwise(marks)}
    eligible = [place for place in starts if chat[place].message.role in roles]
    return max(eligible, key=lambda place: (steps.get(place, 0), place), default=len(run) - 1) + 1


def count_tokens(message: Message) -> int:
    """Return the tokens of a message's text, as it was counted or else counted now."""
    return counter_for().count(message.text) if message.token_count is None else message.token_count


def _newest_first(messages: Sequence[Message]) -> Iterator[Message]:
    return (message for message in reversed(messages) if message.role in CONVERSATION)


def _numbered(messages: Sequence[Message]) -> Iterator[_Numbered]:
    """Yield what was said, newest first, with numbers that stay as they are when more is said."""
    for offset, message in enumerate(reversed(messages)):
        if message.role in CONVERSATION:
            yield _Numbered(len(messages) - offset if message.id is None else message.id, message)


class StoredMessages(Sequence[Message]):
    """The messages of one context, oldest first, after a position and up to another.

    It lives as long as the connection that it reads from. `reversed()` and indices read no further back than
    they reach, and files only of what they give; `len()` and positive indices count in the database; plain iteration
    reads everything.
    """

    def __init__(
        self,
        connection: Connection,
        context_id: int,
        *,
        after_position: int = 0,
        before_position: int | None = None,
        counter: TokenCounter | None = None,
        recent: Recent | None = None,
    ) -> None:
        """Make the sequence.

        Args:
            recent: What is known of it without reading, counted as counter counts.
        """
        self._connection = connection
        self._context_id = context_id
        self._after = after_position
        self._before = before_position
        self._counter = counter
        self._recent = recent
        self._known = iter(()) if recent is None else recent.newest_first(before_position)
        self._rows: list[Kept] = []  # newest first
        self._read: dict[int, Message] = {}
        self._oldest_position = before_position
        self._is_complete = False
        self._length: int | None = None

    def __len__(self) -> int:
        if self._is_complete:
            return len(self._rows)
        if self._length is None:
            before = LARGEST_ID if self._before is None else self._before
            self._length = count_messages(self._connection, self._context_id, after=self._after, before=before)
        return self._length

    def __reversed__(self) -> Iterator[Message]:
        place = 0
        while place < len(self._rows) or self._has(place + 1):
            yield self._message(place)
            place += 1

    def __iter__(self) -> Iterator[Message]:
        while not self._is_complete:
            self._read_page()
        for place in range(len(self._rows) - 1, -1, -1):
            yield self._message(place)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return self._slice(index)
        place = -index - 1 if index < 0 else len(self) - index - 1
        if place < 0 or not self._has(place + 1):
            raise IndexError("message index out of range")
        return self._message(place)

    def _slice(self, index: slice) -> list[Message]:
        start, stop, step = index.start, index.stop, index.step
        if start is not None and start < 0 and (stop is None or stop < 0) and (step is None or step > 0):
            self._has(-start)  # both ends count from the newest: how many there are does not matter
            length = len(self._rows)
        else:
            length = len(self)
        wanted = range(*index.indices(length))
        if wanted:
            self._has(length - min(wanted[0], wanted[-1]))
        return [self._message(length - each - 1) for each in wanted]

    def _has(self, count: int) -> bool:
        while len(self._rows) < count and not self._is_complete:
            self._read_page()
        return len(self._rows) >= count

    def _message(self, place: int) -> Message:
        """Return the message at a place, counted from the newest; its files are read only now."""
        row = self._rows[place]
        if isinstance(row, Message):
            return row
        known = self._read.get(place)
        if known is None:
            if row.attachments:
                [known] = read_messages(self._connection, self._context_id, [row], self._counter)
            else:
                known = read_message(row, None, self._counter)
            self._read[place] = known
        return known

    def _read_page(self) -> None:
        size = min(max(_FIRST_PAGE, len(self._rows)), _LARGEST_PAGE)
        page = list(islice(self._known, size)) or self._select_page(size)
        if page and page[-1][0] <= self._after:
            self._is_complete = True
            page = [(position, each) for position, each in page if position > self._after]
        if page:
            self._oldest_position = page[-1][0]
            self._rows += [each for _, each in page]

    def _select_page(self, size: int) -> list[tuple[int, Kept]]:
        """Return the next page from the database, newest first."""
        if self._recent is not None:  # all of it was taken
            begin = self._recent.after + 1
            self._oldest_position = begin if self._oldest_position is None else min(begin, self._oldest_position)
            self._recent = None
        before = LARGEST_ID if self._oldest_position is None else self._oldest_position
        rows = list_newest(self._connection, self._context_id, size, before=before) if before > self._after + 1 else []
        self._is_complete = len(rows) < size
        return [(row.position, row) for row in rows]
