"""Which messages of a chat stand in a prompt."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Protocol

from botservice.llm.tokens import counter_for
from botservice.messages import Message, Role

CONVERSATION = frozenset({Role.USER, Role.ASSISTANT})
_LOOKED_BACK = 8  # messages before a window, among which a person's last one is looked for


class MessageSelector(Protocol):
    """Chooses messages. Pure and synchronous; walking from the end reads only what it takes."""

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return the chosen ones of messages; both are oldest first."""


@dataclass(frozen=True, slots=True)
class NoMessages:
    """Chooses nothing."""

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:  # noqa: ARG002 - the protocol's name
        """Return no message."""
        return []


@dataclass(frozen=True, slots=True)
class MessageWindowMessageSelector:
    """Chooses the k newest messages of people and the assistant.

    Raises:
        ValueError: k is negative.
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"k counts messages and must be 0 or more, not {self.k}")

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return the k newest, oldest first."""
        chosen: list[Message] = []
        if self.k:
            for message in _newest_first(messages):
                chosen.append(message)
                if len(chosen) == self.k:
                    break
        return chosen[::-1]


@dataclass(frozen=True, slots=True)
class TokenWindowMessageSelector:
    """Chooses the longest unbroken run of newest messages that fits into max_tokens, an exact fit included.

    Messages that carry no count are counted with o200k_base.

    Raises:
        ValueError: max_tokens is negative.
    """

    max_tokens: int

    def __post_init__(self) -> None:
        if self.max_tokens < 0:
            raise ValueError(f"max_tokens must be 0 or more, not {self.max_tokens}")

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return the run, oldest first."""
        chosen: list[Message] = []
        left = self.max_tokens
        for message in _newest_first(messages):
            left -= count_tokens(message)
            if left < 0:
                break
            chosen.append(message)
        return chosen[::-1]


@dataclass(frozen=True, slots=True)
class SteadyWindowMessageSelector:
    """Chooses an unbroken run of newest messages whose beginning stays where it is for many turns, then moves on.

    A server that has read the beginning of a prompt before charges little for reading it again. The run takes at most
    max_tokens, and at least half of that where the chat is long enough and no single message stands in the way. Where
    it can, it begins with a message of a person.

    Nothing is kept from one call to the next: of the places where the run may begin, it begins at the one where the
    messages' ids step over the highest power of two, and that one stays the best until it has to go. A message that is
    deleted moves hardly anything. Messages without ids are numbered by their place.

    Raises:
        ValueError: max_tokens is negative.
    """

    max_tokens: int

    def __post_init__(self) -> None:
        if self.max_tokens < 0:
            raise ValueError(f"max_tokens must be 0 or more, not {self.max_tokens}")

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return the run, oldest first."""
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


_QUICK = (NoMessages, MessageWindowMessageSelector, TokenWindowMessageSelector, SteadyWindowMessageSelector)


def is_quick(selector: MessageSelector) -> bool:
    """Return whether others may wait for a selector: what one of a program's own does, nobody knows."""
    return type(selector) in _QUICK


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
