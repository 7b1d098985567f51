"""Calls of servers that ask by a request while the call is open, as revisions of MCP before 2026-07-28 do.

A call that has asked stays open in this process until the person has answered: another turn of its conversation may run
meanwhile. If the process ends, or the server gives up, the call is lost, and its questions and answers are not.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from botservice.agent.tool_outputs import OutputError
from botservice.agent.tool_questions import Reply, ReplyAction, ToolQuestion, held_calls
from botservice.core.errors import BotServiceError
from botservice.mcp.elicitation import MOST_QUESTIONS, QuestionRefused, as_result, digest_of, read_form, read_url
from botservice.mcp.sampling import Sampler

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext
    from mcp.types import CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData

HELD_SECONDS: Final = 3_600.0  # how long a call stays open for an answer
Make = Callable[[], Coroutine[Any, Any, Any]]
Known = dict[str, dict[str, Any]]
"""The results of questions that were answered before, by their digest."""

logger = logging.getLogger(__name__)


class OpenCall:
    """A call that runs in a task of its own, so that it can outlast the turn that made it.

    Attributes:
        key: By which it is found again.
        has_moved: Whether the server has shown anything of its work but questions.
        is_cut_off: Whether it was ended before the server had answered, so that the server may still work at it.
        can_ask: Whether there is a person who can be asked.
        asked: How many questions it has asked.
        sampler: Asks the model for the server, where it may.
        notes: What the model is told of questions that nobody was asked.
    """

    def __init__(self, known: Known, *, can_ask: bool) -> None:
        self.key = secrets.token_hex(8)
        self.has_moved = False
        self.is_cut_off = False
        self.asked = 0
        self.notes: list[str] = []
        self.sampler: Sampler | None = None
        self._known = known
        self.can_ask = can_ask
        self._task: asyncio.Task[Any] | None = None
        self._question: asyncio.Future[ToolQuestion] | None = None
        self._reply: asyncio.Future[dict[str, Any]] | None = None

    @property
    def is_held(self) -> bool:
        """Whether the server waits for an answer."""
        return self._reply is not None and not self._reply.done()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or was never made."""
        return self._task is None or self._task.done()

    async def run(self, step: Make | dict[str, Any], ended: Callable[[], None]) -> Any:
        """Make the call, or go on with it by an answer; return its result, or the question that it asks.

        Args:
            ended: Called when a call that is made now has ended.
        """
        self._question = asyncio.get_running_loop().create_future()
        if not isinstance(step, dict):
            self._task = asyncio.create_task(step(), name="mcp-call")
            self._task.add_done_callback(self._give_up)
            self._task.add_done_callback(lambda _: ended())
        elif self.is_held and self._reply is not None:
            self._reply.set_result(step)
        assert self._task is not None, "it was made"  # noqa: S101 - an invariant
        try:
            await asyncio.wait([self._task, self._question], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.drop()
            raise
        return self._question.result() if self._question.done() else self._task.result()

    def drop(self) -> None:
        """End it; the server is told that it is cancelled."""
        if self._task is not None and not self._task.done():
            self.is_cut_off = True
            self._task.cancel()

    def _give_up(self, _: "asyncio.Task[Any]") -> None:
        """Answer the open question of a call that has ended; the server knows of the end already."""
        if self.is_held and self._reply is not None:
            self._reply.set_result({"action": ReplyAction.CANCEL.value})

    async def ask(self, question: ToolQuestion) -> dict[str, Any]:
        """Return the answer to a question of the server: one from before, or one that the person gives."""
        self.asked += 1
        known = self._known.pop(digest_of(question), None)
        if known is not None:
            return known
        if self.asked > MOST_QUESTIONS:
            raise QuestionRefused(f"it asks more than {MOST_QUESTIONS} questions in one call")
        assert self._question is not None, "it runs"  # noqa: S101 - an invariant
        self._reply = asyncio.get_running_loop().create_future()
        held_calls[self.key] = self
        self._question.set_result(question)
        try:
            async with asyncio.timeout(HELD_SECONDS):
                return await self._reply
        except TimeoutError:
            self.drop()
            raise


class OpenCalls:
    """The open calls of one connection, and whose a question is.

    The protocol does not say that. So a question is passed on only while exactly one call is open, which has no open
    question; any other question is nobody's. From its first question on, a server gets one call after another, but for
    the one that waits for an answer. A call that was cut off may still ask: until the connection is renewed, no
    question is passed on.

    Attributes:
        has_asked: Whether the server has ever asked anything.
    """

    def __init__(self, renew: Callable[[], None], *, has_asked: bool = False) -> None:
        """Begin with no call.

        Args:
            renew: Connects again. It is called while no call is made or open.
        """
        self.has_asked = has_asked
        self._calls: dict[str, OpenCall] = {}
        self._one_at_a_time = asyncio.Lock()
        self._renew = renew
        self._runs = 0
        self._has_cut_off = False
        self._is_told = False

    @property
    def are_held(self) -> bool:
        """Whether a call waits for an answer."""
        return any(each.is_held and not each.is_over for each in self._calls.values())

    def take(self, key: str) -> OpenCall | None:
        """Return a call that waits for an answer, if it is still open here."""
        found = self._calls.get(key)
        return found if found is not None and found.is_held and not found.is_over else None

    async def run(self, call: OpenCall, step: Make | dict[str, Any]) -> Any:
        """Make a call, or go on with it by an answer; return its result, or the question that it asks."""
        self._runs += 1
        try:
            async with self._one_at_a_time if self.has_asked else contextlib.nullcontext():
                self._calls[call.key] = call
                return await call.run(step, self._tidy)
        finally:
            self._runs -= 1
            self._tidy()

    def _tidy(self) -> None:
        """Drop the calls that have ended; renew the connection once nothing is open and one was cut off."""
        if not self._find_open() and self._has_cut_off and self.has_asked and not self._runs:
            self._has_cut_off = False
            self._renew()

    def _find_open(self) -> list[OpenCall]:
        self._has_cut_off = self._has_cut_off or any(each.is_cut_off for each in self._calls.values())
        self._calls = {key: each for key, each in self._calls.items() if not each.is_over}
        return list(self._calls.values())

    def _find_asking(self) -> OpenCall | None:
        """Return the call that has sent a request; None if it may be another one's."""
        self.has_asked = True
        found = self._find_open()
        return found[0] if len(found) == 1 and not found[0].is_held and not self._has_cut_off else None

    async def ask(self, context: "ClientRequestContext", params: "ElicitRequestParams") -> "ElicitResult":  # noqa: ARG002
        """Answer a question of the server."""
        from mcp.types import ElicitResult

        call = self._find_asking()
        if call is None:
            level = logging.DEBUG if self._is_told else logging.WARNING  # a server may ask all day
            logger.log(level, "mcp.question_of_nobody", extra={"calls": len(self._calls)})
            self._is_told = True
            for each in self._calls.values():
                if not each.is_held:
                    each.notes.append("it asked while another call or question was open there; nobody was asked")
            return ElicitResult(action=ReplyAction.CANCEL.value)
        try:
            result = await call.ask(read_question(params, can_ask=call.can_ask))
        except QuestionRefused as refused:
            call.notes.append(str(refused))
            return ElicitResult(action=ReplyAction.DECLINE.value)
        except TimeoutError:
            return ElicitResult(action=ReplyAction.CANCEL.value)
        return ElicitResult.model_validate(result)

    async def sample(
        self,
        context: "ClientRequestContext",  # noqa: ARG002
        params: "CreateMessageRequestParams",
    ) -> "CreateMessageResult | ErrorData":
        """Answer a request of the server for the model."""
        from mcp.types import INVALID_REQUEST, CreateMessageResult, ErrorData

        call = self._find_asking()
        sampler = None if call is None else call.sampler
        if sampler is None:
            return ErrorData(code=INVALID_REQUEST, message="Sampling was refused: it is not known for which call")
        try:
            return CreateMessageResult.model_validate(await sampler.answer(params))
        except (QuestionRefused, BotServiceError) as error:
            return ErrorData(code=INVALID_REQUEST, message=f"Sampling was refused: {error}")

    def close(self) -> None:
        """End all of them: the connection is gone."""
        calls, self._calls = self._calls, {}
        for each in calls.values():
            each.drop()


def read_question(params: "ElicitRequestParams", *, can_ask: bool) -> ToolQuestion:
    """Return what a server asks.

    Raises:
        QuestionRefused: nobody is asked that, or there is nobody.
    """
    if not can_ask:
        raise QuestionRefused("nobody can be asked here")
    if params.mode == "url":
        return read_url(params.message, params.url)
    return read_form(params.message, params.requested_schema)


def known_results(questions: tuple[ToolQuestion, ...], replies: tuple[Reply, ...]) -> Known:
    """Return the results of answered questions, by their digest."""
    pairs = zip(questions, replies, strict=True)
    return {digest_of(question): as_result(reply, question) for question, reply in pairs}


def lost(name: str, replies: tuple[Reply, ...]) -> OutputError:
    """Return what a model is told of a call that was lost while the person answered."""
    said = "; ".join(str({"action": each.action.value, **each.content}) for each in replies)
    return OutputError(
        f"server {name} asked the person something, and the connection was lost before they had answered: the outcome "
        f"of the call is unknown, and it is not made again by itself. They answered: {said}"
    )
