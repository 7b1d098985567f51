"""Which messages of a chat stand in a prompt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from botservice.llm.tokens import counter_for
from botservice.messages import Message, Role

CONVERSATION = frozenset({Role.USER, Role.ASSISTANT})


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


def count_tokens(message: Message) -> int:
    """Return the tokens of a message's text, as it was counted or else counted now."""
    return counter_for().count(message.text) if message.token_count is None else message.token_count


def _newest_first(messages: Sequence[Message]) -> Iterator[Message]:
    return (message for message in reversed(messages) if message.role in CONVERSATION)
