"""Looking for a prompt that a model takes, in the place of one that it has refused."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from botservice.agent.isolation import Isolation, may_be_one_message
from botservice.conversation.kept_out import KeptOut, PromptBounds
from botservice.core.errors import ContextOverflow, LLMError
from botservice.core.messages import Message

_SHRINKING: Final = (0.5, 0.25, 0.125)


class Narrowing:
    """Finds bounds of a prompt that a model takes.

    A prompt that is too long is shortened; of one that is refused otherwise, the part is looked for that is refused.

    Attributes:
        isolation: What looks for the part, where that has begun.
    """

    def __init__(
        self,
        asked: Sequence[Message],
        window: Sequence[Message],
        known: KeptOut,
        tokens: int,
        keep_out: Callable[[KeptOut], Awaitable[None]],
        *,
        has_step_pictures: bool = False,
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
        self.isolation: Isolation | None = None
        self._asked, self._window, self._known = asked, window, known
        self._keep_out = keep_out
        self._has_step_pictures = has_step_pictures
        self._sizes = iter([int(tokens * fraction) for fraction in _SHRINKING])

    async def next_bounds(self, error: LLMError) -> PromptBounds:
        """Return the bounds of the next prompt to try.

        Raises:
            LLMError: there are none left; it is the first refusal that is no overflow. Or the error is not about a part
                of the prompt: a server that fails meanwhile says nothing about one.
        """
        if isinstance(error, ContextOverflow) and self.isolation is None:
            size = next(self._sizes, None)
            if size is not None:
                return PromptBounds(size, self._known)
        if not may_be_one_message(error):
            raise error
        if self.isolation is None:
            self.isolation = Isolation(
                self._asked, self._window, self._known, error, has_step_pictures=self._has_step_pictures
            )
        kept_out = self.isolation.next_try()
        if kept_out is None:
            await self._keep_out(self.isolation.blame_question())
            raise self.isolation.error
        return PromptBounds(kept_out=kept_out)
