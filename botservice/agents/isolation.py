"""Keeping out of prompts what a model refuses: one picture or one sentence must not silence a conversation."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from botservice.errors import ContextOverflow, LLMError, LLMFailure
from botservice.history.shown import is_image, mention
from botservice.messages import Message

_REMEMBERED_SECONDS: Final = 86_400.0
_MOST_CONVERSATIONS: Final = 10_000
_MAYBE: Final = (LLMFailure.UNSUPPORTED_INPUT, LLMFailure.CONTENT_FILTER)
_STATUSES: Final = (400, 404, 413, 422)


@dataclass(frozen=True, slots=True)
class KeptOut:
    """What of a conversation a prompt goes without.

    Attributes:
        up_to: Nothing older than this message, nor the message itself, is shown; 0 for no limit.
        messages: Single messages that are not shown.
        files_of: Messages of which the text is shown alone.
        is_question_alone: Neither earlier messages nor notes nor anything found is shown.
    """

    up_to: int = 0
    messages: frozenset[int] = frozenset()
    files_of: frozenset[int] = frozenset()
    is_question_alone: bool = False

    def shows(self, message: Message) -> bool:
        """Return whether an earlier message may stand in the prompt."""
        number = message.id or 0
        return not self.is_question_alone and number > self.up_to and number not in self.messages

    def shown(self, message: Message) -> Message:
        """Return a message as it may be shown."""
        if message.id not in self.files_of or not message.attachments:
            return message
        named = "\n".join([message.text, *map(mention, message.attachments)]).strip()
        return replace(message, text=named, attachments=(), token_count=None)


NOTHING_KEPT_OUT: Final = KeptOut()


@dataclass(slots=True)
class _Record:
    expires: float
    kept_out: KeptOut = NOTHING_KEPT_OUT
    is_told: bool = True


@dataclass(slots=True)
class IsolationRecord:
    """What was found out about the conversations of a model, for a day, by this process."""

    clock: Callable[[], float] = time.monotonic
    _of: dict[tuple[int, str], _Record] = field(default_factory=dict)

    def kept_out(self, context_id: int, model: str) -> KeptOut:
        """Return what the prompts of a conversation go without."""
        found = self._of.get((context_id, model)) if self._of else None
        return NOTHING_KEPT_OUT if found is None or found.expires < self.clock() else found.kept_out

    def take_notice(self, context_id: int, model: str) -> bool:
        """Return whether the person is to be told that something earlier is left out; true once."""
        found = self._of.get((context_id, model)) if self._of else None
        is_due = found is not None and not found.is_told
        if found is not None:
            found.is_told = True
        return is_due

    def note(self, context_id: int, model: str, kept_out: KeptOut, *, is_told: bool = True) -> None:
        """Take note of what has to be kept out."""
        self._of.pop((context_id, model), None)
        self._of[context_id, model] = _Record(self.clock() + _REMEMBERED_SECONDS, kept_out, is_told)
        while len(self._of) > _MOST_CONVERSATIONS:
            del self._of[next(iter(self._of))]


def may_be_one_message(error: LLMError) -> bool:
    """Return whether a refusal may be about one message of the prompt, so that another one is taken."""
    if error.kind in _MAYBE or isinstance(error, ContextOverflow):
        return True
    return error.kind is LLMFailure.BAD_REQUEST and error.status_code in _STATUSES and error.refused is None


def find_not_seen(asked: Iterable[Message], left_out: Collection[str], kept_out: KeptOut) -> tuple[str, ...]:
    """Return the names of pictures of a question that the model has not seen; an empty one for those without a name.

    Args:
        left_out: The media types that the server did not take.
    """
    if not left_out and not kept_out.files_of and not any(each.attachments for each in asked):
        return ()
    names = [
        file.name or ""
        for message in asked
        for file in message.attachments
        if file.mime_type.startswith("image/")
        and (not is_image(file) or file.mime_type in left_out or message.id in kept_out.files_of)
    ]
    return tuple(dict.fromkeys(names))


class Isolation:
    """Finds out which part of a prompt a model refuses, by asking without it.

    Args:
        question: The messages that are asked now.
        window: The earlier messages of the refused prompt.
        known: What was kept out of it.
        error: The refusal.

    Attributes:
        error: The first refusal.
    """

    def __init__(self, question: Iterable[Message], window: Iterable[Message], known: KeptOut, error: LLMError) -> None:
        self.error = error
        self._question = list(question)
        self._window = list(window)
        self._known = known
        self._tries = self._plan()
        self._tried = known

    def next_try(self) -> KeptOut | None:
        """Return what the next request goes without; None where there is nothing left to try."""
        self._tried = next(self._tries, NOTHING_KEPT_OUT)
        return None if self._tried is NOTHING_KEPT_OUT else self._tried

    def found(self) -> KeptOut:
        """Return what is kept out from now on, because the last try was answered."""
        if self._tried.files_of != self._known.files_of:
            return replace(self._known, files_of=self._tried.files_of)
        pictures = {each.id for each in self._window if each.id and any(map(is_image, each.attachments))}
        if pictures - self._known.messages:
            return replace(self._known, messages=self._known.messages | pictures)
        return replace(self._known, up_to=max((each.id or 0 for each in self._window), default=self._known.up_to))

    @property
    def is_earlier(self) -> bool:
        """Whether it is something earlier that is kept out, and not a file of the question."""
        return self._tried.files_of == self._known.files_of

    def blame_question(self) -> KeptOut:
        """Return what is kept out from now on, because no try was answered: what was asked is what is refused."""
        asked = {each.id for each in self._question if each.id}
        return replace(self._known, messages=self._known.messages | asked)

    def _plan(self) -> Iterator[KeptOut]:
        alone = replace(self._known, is_question_alone=True)
        if self._window:
            yield alone
        files = {each.id for each in self._question if each.id and each.attachments}
        if files - self._known.files_of:
            yield replace(alone, files_of=self._known.files_of | files)
