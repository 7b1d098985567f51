"""Keeping out of prompts what a model refuses: one picture or one sentence must not silence a conversation."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from botservice.conversation.prompt_exclusions import KeptOut, PromptBounds
from botservice.conversation.readable_values import image_url
from botservice.core.errors import ContextOverflow, LLMError, LLMFailure
from botservice.core.messages import Attachment, Message
from botservice.history.message_rendering import is_image
from botservice.llm.chat import picture_digest

_MAYBE: Final = (LLMFailure.UNSUPPORTED_INPUT, LLMFailure.CONTENT_FILTER)
_STATUSES: Final = (400, 404, 413, 422)


def may_be_one_message(error: LLMError) -> bool:
    """Return whether a refusal may be about one message of the prompt, so that another one is taken."""
    if error.kind in _MAYBE or isinstance(error, ContextOverflow):
        return True
    return error.kind is LLMFailure.BAD_REQUEST and error.status_code in _STATUSES and error.refused is None


def find_not_seen(
    asked: Iterable[Message], given: Sequence[Attachment], left_out: Collection[str], kept_out: KeptOut
) -> tuple[str, ...]:
    """Return the names of pictures of a question that the model has not seen; an empty one for those without a name.

    Args:
        given: The pictures that tools gave for it.
        left_out: The media types that the server did not take, and the digests of single pictures.
    """
    if not left_out and not kept_out.files_of and not given and not any(each.attachments for each in asked):
        return ()
    names = [
        file.name or ""
        for message in asked
        for file in message.attachments
        if file.mime_type.startswith("image/")
        and (not is_image(file) or message.id in kept_out.files_of or _is_among(file, left_out))
    ]
    names += [
        file.name or "" for file in given if not is_image(file) or kept_out.step_pictures or _is_among(file, left_out)
    ]
    return tuple(dict.fromkeys(names))


def _is_among(file: Attachment, left_out: Collection[str]) -> bool:
    return bool(left_out) and (file.mime_type.lower() in left_out or picture_digest(image_url(file)) in left_out)


_SHRINKING: Final = (0.5, 0.25, 0.125)


class Narrowing:
    """Finds a prompt that a model takes, in the place of one that it has refused.

    One that was too long is shortened; of one that is refused otherwise, the part is looked for by asking without it.
    """

    def __init__(
        self,
        asked: Sequence[Message],
        window: Sequence[Message],
        known: KeptOut,
        tokens: int,
        keep_out: Callable[[KeptOut], Awaitable[None]],
        *,
        has_step_pictures: bool,
    ) -> None:
        """Begin with a prompt that was refused.

        Args:
            asked: The messages that are asked now.
            window: The earlier messages of the prompt.
            known: What was kept out of it.
            tokens: How long it was.
            keep_out: Stores what is kept out, where that is what is asked.
            has_step_pictures: Whether pictures that tools gave stand in it.
        """
        self._asked, self._window, self._known = asked, window, known
        self._keep_out = keep_out
        self._without_step_pictures = replace(known, step_pictures=known.step_pictures or has_step_pictures)
        self._sizes = iter([int(tokens * fraction) for fraction in _SHRINKING])
        self._tries = self._plan()
        self._tried: KeptOut | None = None  # what the last request went without
        self._refusal: LLMError | None = None  # the first that was no overflow

    async def next_bounds(self, error: LLMError) -> PromptBounds:
        """Return the bounds of the next prompt to try.

        Raises:
            LLMError: there are none left; it is the first refusal that is no overflow. Or the error is not about a part
                of the prompt: a server that fails meanwhile says nothing about one.
        """
        if isinstance(error, ContextOverflow) and self._refusal is None:
            size = next(self._sizes, None)
            if size is not None:
                return PromptBounds(size, self._known)
        if not may_be_one_message(error):
            raise error
        self._refusal = self._refusal or error
        self._tried = next(self._tries, None)
        if self._tried is None:  # what was asked is what is refused
            asked = {each.id for each in self._asked if each.id}
            await self._keep_out(replace(self._known, messages=self._known.messages | asked))
            raise self._refusal
        return PromptBounds(kept_out=self._tried)

    def found(self) -> KeptOut | None:
        """Return what is kept out from now on, because the last try was answered; None if no part was looked for.

        The person is told of something earlier; a file of the question, or of a tool, is named in the answer anyway.
        """
        tried, known = self._tried, self._known
        if tried is None:
            return None
        if tried == self._without_step_pictures:
            return replace(tried, is_told=True)
        if tried.files_of != known.files_of:
            return replace(known, files_of=tried.files_of, is_told=True)
        pictures = {each.id for each in self._window if each.id and any(map(is_image, each.attachments))}
        if pictures - known.messages:
            return replace(known, messages=known.messages | pictures, is_told=False)
        up_to = max((each.id or 0 for each in self._window), default=known.up_to)
        return replace(known, up_to=up_to, is_told=False)

    def _plan(self) -> Iterator[KeptOut]:
        """Yield what to ask without, the last that came first: the steps before it were answered."""
        if self._without_step_pictures != self._known:
            yield self._without_step_pictures
        alone = replace(self._without_step_pictures, is_question_alone=True)
        if self._window:
            yield alone
        files = {each.id for each in self._asked if each.id and each.attachments}
        if files - self._known.files_of:
            yield replace(alone, files_of=self._known.files_of | files)
