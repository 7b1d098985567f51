"""What the stand-in writes down. An oracle counts with it, so nothing is left out and everything has its place."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from standins.serving import Entry


class Outcome(StrEnum):
    """What became of a call's answer."""

    ANSWERED = "answered"
    DROPPED = "dropped"  # the connection was cut and nothing happened
    LOST = "lost"  # it happened, and the connection was cut instead of an answer
    ABANDONED = "abandoned"  # the client left, or the stand-in stopped, before the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReceived(Entry):
    """A call arrived whole. Its `seq` is what other entries call `call_seq`."""

    method: str
    chat_id: int | str | None
    params: dict[str, Any]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswered(Entry):
    """A call ended, one way or another."""

    call_seq: int
    method: str
    chat_id: int | str | None
    status: int
    description: str
    outcome: Outcome
    had_effect: bool
    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageShown(Entry):
    """A message became visible. `call_seq` is None for what people say."""

    chat_id: int
    message_id: int
    from_bot: bool
    text: str
    thread_id: int | None
    call_seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdited(Entry):
    chat_id: int
    message_id: int
    from_bot: bool
    text: str
    call_seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeleted(Entry):
    chat_id: int
    message_id: int
    call_seq: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShown(Entry):
    """A draft was shown or grew. Empty text is "Thinking…"."""

    chat_id: int
    draft_id: int
    text: str
    thread_id: int | None
    call_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMade(Entry):
    """An update waits for the bot."""

    update_id: int
    chat_id: int | None
    update: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSent(Entry):
    """An update was handed out: `way` is "polling" or "webhook"; attempts count from 1."""

    update_id: int
    way: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAnswered(Entry):
    """The bot's answer to a webhook delivery; `status` is None where there was none, and `error` says why."""

    update_id: int
    attempt: int
    status: int | None
    error: str
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfirmed(Entry):
    """The bot owns the update now: it moved its offset past it, or answered 2xx."""

    update_id: int
    way: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatesThrownAway(Entry):
    """`drop_pending_updates`: people's messages that nobody will read."""

    update_ids: tuple[int, ...]
    call_seq: int
