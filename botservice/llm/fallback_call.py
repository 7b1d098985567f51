"""One question that is put to one model after the other."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from botservice.core.errors import LLMError, LLMFailure
from botservice.llm.asking import offered_to
from botservice.llm.chat import AnswerSchema, ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema

logger = logging.getLogger(__name__)

# A model that is busy is asked again after a wait between these; where it asks for a longer one, others answer sooner.
_SHORTEST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 2.0
# As long as the service tries again after a first failure: until then, whoever asked sees an answer or an apology.
DEFAULT_PATIENCE_SECONDS: Final = 20.0


class FallbackCall:
    """A prompt, and what came of it until now.

    Attributes:
        is_shown: Whether a person has seen the beginning of an answer.
    """

    def __init__(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSchema],
        on_text: TextSink | None,
        on_thought: TextSink | None = None,
        *,
        schema: AnswerSchema | None = None,
        patience_seconds: float = DEFAULT_PATIENCE_SECONDS,
    ) -> None:
        self.is_shown = False
        self._messages = messages
        self._tools = tools
        self._on_text = on_text
        self._on_thought = on_thought
        self._schema = schema
        self._patience_seconds = patience_seconds
        self._failures: list[tuple[str, LLMError]] = []
        self._failing_since: float | None = None

    async def put_to(self, llm: ChatLLM) -> ChatResponse:
        """Return a model's answer; one that is busy for a moment is asked once more.

        Raises:
            LLMError: it did not answer.
        """
        try:
            return await self._send(llm)
        except LLMError as error:
            wait = max(error.retry_after_seconds or 0.0, _SHORTEST_WAIT_SECONDS)
            if error.kind is not LLMFailure.RATE_LIMITED or self.is_shown or wait > _LONGEST_WAIT_SECONDS:
                raise
        self._note_time()
        await asyncio.sleep(wait)
        return await self._send(llm)

    def note(self, name: str, error: LLMError) -> None:
        """Take note that a model did not answer."""
        self._failures.append((name, error))
        self._note_time()

    def failure(self) -> LLMError:
        """Return all failures as one, which may pass where one of them may."""
        if len(self._failures) == 1:
            return self._failures[0][1]
        errors = [error for _, error in self._failures]
        passing = [error for error in errors if error.is_transient]
        reasons = "; ".join(f"{name}: {error}" for name, error in self._failures)
        return LLMError(
            f"no model answered: {reasons}",
            is_transient=bool(passing),
            retry_after_seconds=min((error.retry_after_seconds or 0.0 for error in passing), default=0.0) or None,
            kind=(passing or errors)[0].kind,
            failed_for_seconds=self._failing_seconds(),
        )

    async def _send(self, llm: ChatLLM) -> ChatResponse:
        """Return a model's answer. After a failure, a model has to begin soon, as somebody has waited before."""
        patience = None if self._failing_since is None else max(0.0, self._patience_seconds - self._failing_seconds())
        try:
            async with asyncio.timeout(patience) as self._limit:
                return await llm.chat(self._messages, offered_to(llm, self._tools), **self._sinks(llm))
        except LLMError:
            raise
        except TimeoutError as error:
            raise LLMError("the model sent nothing in time") from error
        except Exception as error:  # a border: a model is foreign code
            logger.warning("model.broke", exc_info=True)
            raise LLMError(f"the model failed with {type(error).__name__}") from error

    def _sinks(self, llm: ChatLLM) -> dict[str, Any]:
        """Return the listeners to a model, each only where there is one, and the form of the answer, if it has one."""
        sinks: dict[str, Any] = {}
        if self._schema is not None and llm.takes_schema:
            sinks["schema"] = self._schema
        if self._on_text is not None:
            sinks["on_text"] = partial(self._pass_on, self._on_text, is_answer=True)
        if self._on_thought is not None and llm.shows_thoughts:
            sinks["on_thought"] = partial(self._pass_on, self._on_thought, is_answer=False)
        return sinks

    def _pass_on(self, sink: TextSink, piece: str, *, is_answer: bool) -> None:
        """Pass on a piece; a model that says something works, and may take its time from then on."""
        if piece:
            self.is_shown = self.is_shown or is_answer
            if not self._limit.expired():
                self._limit.reschedule(None)
        sink(piece)

    def _note_time(self) -> None:
        if self._failing_since is None:
            self._failing_since = _now()

    def _failing_seconds(self) -> float:
        return 0.0 if self._failing_since is None else _now() - self._failing_since


def _now() -> float:
    return asyncio.get_running_loop().time()
