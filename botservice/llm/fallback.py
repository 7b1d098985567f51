"""Several models, one after the other: the next one is asked where one cannot answer."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from botservice.core.adapters import adopt
from botservice.core.arguments import check_listed
from botservice.core.errors import LLMError, LLMFailure
from botservice.llm.chat import AnswerSchema, ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.llm.circuit_breaker import Circuit
from botservice.llm.fallback_call import DEFAULT_PATIENCE_SECONDS, FallbackCall

logger = logging.getLogger(__name__)

_OF_ONE_MODEL: Final = (LLMFailure.OUT_OF_QUOTA, LLMFailure.UNKNOWN_MODEL)
# How long a model is left alone that failed for the first time. Credit and names come back by somebody's hand.
_FIRST_PAUSE_SECONDS: Final = {LLMFailure.OUT_OF_QUOTA: 300.0, LLMFailure.UNKNOWN_MODEL: 600.0}
_FIRST_PAUSE_OTHERWISE_SECONDS: Final = 10.0
# A hanging model is tried again by somebody who may have to wait as long: that is to be rare.
_PAUSE_PER_SECOND: Final = 2.0


@dataclass(slots=True, eq=False)
class _Member:
    llm: ChatLLM
    circuit: Circuit = field(default_factory=Circuit)

    @property
    def name(self) -> str:
        return self.llm.models[0]


class FallbackLLM(ChatLLM):
    """Asks the first of several models, and the next one where that is unavailable, rate limited, retired or unknown.

    Nobody is asked after the first words of an answer were shown, nor where the request is wrong by itself. One that
    failed is left alone for a while; then one call tries it again.

    Attributes:
        model: The first one's name, by whose measure prompts are counted.
    """

    takes_schema = True

    def __init__(
        self,
        llms: Iterable[ChatLLM],
        *,
        patience_seconds: float = DEFAULT_PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make one of several.

        Args:
            patience_seconds: How long after a first failure the others may take until one says something.
            clock: Seconds that never go back.

        Raises:
            ValueError: there is none.
            InvalidArgument: one is no model.
        """
        given = check_listed("llms", llms, remedy="give a list of models")
        if not given:
            raise ValueError("a FallbackLLM needs models, such as [OpenAIChatLLM(…), OpenAIChatLLM(…)]")
        remedy = "give objects such as OpenAIChatLLM(…)"
        self._members = [_Member(adopt(ChatLLM, each, "one of the models", remedy=remedy)) for each in given]
        self._patience_seconds = patience_seconds
        self._clock = clock
        self.model = self._members[0].name

    def __repr__(self) -> str:
        return f"FallbackLLM({list(self.llms)!r})"

    @property
    def llms(self) -> Sequence[ChatLLM]:
        """The models, in order."""
        return tuple(member.llm for member in self._members)

    @property
    def models(self) -> Sequence[str]:
        """The names of all; a response says by one of them who answered."""
        return tuple(name for llm in self.llms for name in llm.models)

    @property
    def shows_thoughts(self) -> bool:  # type: ignore[override] # nobody sets it
        """Whether `chat` has something for on_thought."""
        return any(llm.shows_thoughts for llm in self.llms)

    @property
    def searches_web(self) -> bool:  # type: ignore[override] # nobody sets it
        """Whether the server of one of them may search the web itself."""
        return any(llm.searches_web for llm in self.llms)

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSchema] = (),
        *,
        on_text: TextSink | None = None,
        on_thought: TextSink | None = None,
        schema: AnswerSchema | None = None,
    ) -> ChatResponse:
        """Return the answer of the first model that gives one (see `ChatLLM.chat`).

        Args:
            on_thought: Called with what a model thinks, where it shows that.
            schema: The form of the answer, for those that take one.
        """
        call = FallbackCall(
            messages, tools, on_text, on_thought, schema=schema, patience_seconds=self._patience_seconds
        )
        for member in self._in_order():
            try:
                return await self._ask(member, call)
            except LLMError as error:
                call.note(member.name, error)
                if call.is_shown or not _may_others_help(error):
                    raise
        raise call.failure()

    async def close(self) -> None:
        """Close the connections of all."""
        async with contextlib.AsyncExitStack() as stack:
            for llm in self.llms:
                stack.push_async_callback(llm.close)

    def _in_order(self) -> list[_Member]:
        """Return the members in their order; at the end those that are left alone, the one that is due first before."""
        now = self._clock()
        welcome = [member for member in self._members if member.circuit.admits(now)]
        paused = [member for member in self._members if member not in welcome]
        return [*welcome, *sorted(paused, key=lambda member: member.circuit.resumes_at or 0.0)]

    async def _ask(self, member: _Member, call: FallbackCall) -> ChatResponse:
        """Return a member's answer, and take note of how it is."""
        circuit, began_at = member.circuit, self._clock()
        era = circuit.begin()
        try:
            response = await call.put_to(member.llm)
        except LLMError as error:
            if _may_others_help(error):
                waited = 0.0 if call.is_shown else self._clock() - began_at
                self._note_failure(member, era, error, waited)
            raise
        finally:
            circuit.let_go(era)
        if circuit.succeed(era):
            logger.info("model.back", extra={"model": member.name})
        return response if response.model in member.llm.models else replace(response, model=member.name)

    def _note_failure(self, member: _Member, era: int, error: LLMError, waited_seconds: float) -> None:
        pause = member.circuit.fail(
            era,
            self._clock(),
            first_pause_seconds=_FIRST_PAUSE_SECONDS.get(error.kind, _FIRST_PAUSE_OTHERWISE_SECONDS),
            least_seconds=max(waited_seconds * _PAUSE_PER_SECOND, error.retry_after_seconds or 0.0),
        )
        if pause is not None:
            facts = {"model": member.name, "kind": error.kind.value, "reason": str(error), "pause_seconds": pause}
            logger.warning("model.left_alone", extra=facts)


def _may_others_help(error: LLMError) -> bool:
    """Return whether another model may answer: the request itself is not what was wrong."""
    return error.is_transient or error.kind in _OF_ONE_MODEL
