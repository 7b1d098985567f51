"""Several models, one after the other: the next one is asked where one cannot answer, and a failed one is spared."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from botservice.core.argument_checks import adopt, check_listed
from botservice.core.errors import LLMError, LLMFailure
from botservice.llm.asking import offered_to
from botservice.llm.chat import AnswerSchema, ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema

logger = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS: Final = 600.0


class Circuit:
    """Keeps calls away from a model that failed, and lets one call try it once its pause is over.

    A call that began before the model failed, or before it came back, says nothing of it any more. So many that fail
    at once are one failure.

    Attributes:
        resumes_at: When the pause is over, in seconds of the caller's clock; None while the model works.
    """

    def __init__(self) -> None:
        self.resumes_at: float | None = None
        self._failures = 0
        self._is_tried = False
        self._era = 0

    def admits(self, now: float) -> bool:
        """Return whether a call is welcome: each while the model works, and one alone once its pause is over."""
        return self.resumes_at is None or (now >= self.resumes_at and not self._is_tried)

    def begin(self) -> int:
        """Take note that a call begins; return what is handed in when it ends."""
        self._is_tried = self.resumes_at is not None
        return self._era

    def let_go(self, era: int) -> None:
        """Take note that a call ended without a word about the model: it was stopped, or wrong by itself."""
        if era == self._era:
            self._is_tried = False

    def succeed(self, era: int) -> bool:
        """Take note that a call was answered; return whether the model is back by that."""
        if era != self._era or self.resumes_at is None:
            return False
        self._close()
        return True

    def fail(self, era: int, now: float, *, first_pause_seconds: float, least_seconds: float = 0.0) -> float | None:
        """Take note that a call failed; return how long the pause is that begins by that, None if none does.

        Args:
            first_pause_seconds: The pause after a first failure; after each further one it is twice as long.
            least_seconds: The shortest pause that makes sense now.
        """
        self.let_go(era)
        if era != self._era or (self.resumes_at is not None and now < self.resumes_at):
            return None
        pause = min(LONGEST_PAUSE_SECONDS, max(first_pause_seconds * 2.0 ** min(self._failures, 20), least_seconds))
        self._failures += 1
        self._era += 1
        self.resumes_at = now + pause
        return pause

    def _close(self) -> None:
        self.resumes_at = None
        self._failures = 0
        self._is_tried = False
        self._era += 1


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
        """Return a model's answer. After a failure, a model has to begin soon, as a person has waited before."""
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


_OF_ONE_MODEL: Final = (LLMFailure.OUT_OF_QUOTA, LLMFailure.UNKNOWN_MODEL)
# How long a model is left alone that failed for the first time. Credit and names come back by a person's hand.
_FIRST_PAUSE_SECONDS: Final = {LLMFailure.OUT_OF_QUOTA: 300.0, LLMFailure.UNKNOWN_MODEL: 600.0}
_FIRST_PAUSE_OTHERWISE_SECONDS: Final = 10.0
# A hanging model is tried again by a person who may have to wait as long: that is to be rare.
_PAUSE_PER_SECOND: Final = 2.0


@dataclass(slots=True, eq=False)
class _Member:
    llm: ChatLLM
    circuit: Circuit = field(default_factory=Circuit)

    @property
    def name(self) -> str:
        return self.llm.models[0]


class FallbackLLM(ChatLLM):
    """Asks the first of several models, and the next one if that is unavailable, rate limited, retired or unknown.

    No other model is asked after the first words of an answer were shown, or if the request itself is invalid. A
    model that failed is left alone for a while; then one call tries it again.

    Attributes:
        model: The name of the first model, which decides how prompts are counted.
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
        """The names of all models; a response names the one that answered."""
        return tuple(name for llm in self.llms for name in llm.models)

    @property
    def shows_thoughts(self) -> bool:  # type: ignore[override] # nobody sets it
        """Whether `chat` calls on_thought."""
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
        """Ask the models in order for an answer (see `ChatLLM.chat`).

        Args:
            on_thought: Called with the thoughts of models that show them.
            schema: The format of the answer, for models that accept one.
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
        """Close the connections of all models."""
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
