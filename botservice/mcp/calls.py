"""One call of a tool with the questions that its server asks, in both ways of the protocol.

From revision 2026-07-28 on, a server returns what it asks, and is called again with the answers and its own state.
Before, it asks by a request while the call is open (`open_calls`). Both raise `QuestionsAsked`, and go on from what
that has kept.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botservice.agent.tool_outputs import OutputError
from botservice.agent.tool_progress import LONGEST
from botservice.agent.tool_progress import progress as say
from botservice.agent.tool_questions import CallQuestions, QuestionsAsked, ReplyAction, ToolQuestion, ToolQuestions
from botservice.mcp.elicitation import MOST_QUESTIONS, QuestionRefused, as_result, digest_of, read_url
from botservice.mcp.listing import clean
from botservice.mcp.open_calls import Known, Make, OpenCall, OpenCalls, known_results, lost, read_question
from botservice.mcp.sampling import Sampler

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

_MOST_ROUNDS: Final = 10
_LONGEST_STATE: Final = 64_000  # characters
_PAUSE_SECONDS: Final = 0.25
_LARGEST: Final = 1e12  # number that is shown as progress
_URL_REQUIRED: Final = -32042  # MCP 2025-11-25, URLElicitationRequiredError
_INVALID_PARAMS: Final = -32602

Send = Callable[..., Coroutine[Any, Any, Any]]
"""Calls the tool once, with `input_responses` and `request_state`."""


class Answered(NamedTuple):
    """What a call gave.

    Attributes:
        result: As the client has it.
        notes: What the model is told of questions that nobody was asked.
    """

    result: Any
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AskingCall:
    """One call.

    Attributes:
        server: The name of the server.
        may_repeat: Whether the tool says that it may be called twice.
        questions: Whether a person can be asked, and what they answered.
        sampler: Asks the model for the server, where it may.
    """

    server: str
    may_repeat: bool
    questions: CallQuestions
    sampler: Sampler | None = None

    async def in_rounds(self, send: Send) -> Answered:
        """Call a server that returns what it asks.

        Raises:
            QuestionsAsked: a person is to be asked.
            OutputError: it asks for too much.
        """
        from mcp import MCPError
        from mcp.types import InputRequiredResult

        replied, notes = self.questions.replied, list[str]()
        state: Mapping[str, Any] = {} if replied is None else replied.state
        request_state, known = state.get("request_state"), Known()
        responses: dict[str, Any] | None = None
        if replied is not None and "keys" in state:
            responses = {**state["given"], **responses_of(state["keys"], replied)}
        elif replied is not None:  # it asked by a request, and has been renewed since
            known = self._known_again(replied)
        for _ in range(_MOST_ROUNDS):
            try:
                result = await send(input_responses=_read(responses), request_state=request_state)
            except MCPError as error:
                if replied is None or error.code != _INVALID_PARAMS or known or not state["may_repeat"]:
                    raise
                # Its process has begun again and knows its state no more.
                known, responses, request_state = self._known_again(replied), None, None
                continue
            if not isinstance(result, InputRequiredResult):
                return Answered(result, notes)
            request_state = result.request_state
            if len(request_state or "") > _LONGEST_STATE:
                raise OutputError(f"server {self.server} gave a state of more than {_LONGEST_STATE} characters")
            responses, open_ones = await self.sort(result.input_requests or {}, known, notes)
            if open_ones:
                asked = int(state.get("asked", 0)) + len(open_ones)
                kept = {"request_state": request_state, "keys": list(open_ones), "given": responses, "asked": asked}
                raise self._ask(list(open_ones.values()), kept)
            if not responses:
                await asyncio.sleep(_PAUSE_SECONDS)
        raise OutputError(f"server {self.server} did not come to an end within {_MOST_ROUNDS} rounds of this call")

    def _ask(self, questions: Sequence[ToolQuestion], kept: Mapping[str, Any]) -> Exception:
        """Return what is raised to ask the person, or where that would be too much."""
        if kept["asked"] > MOST_QUESTIONS:
            return OutputError(f"server {self.server} asks more than {MOST_QUESTIONS} questions in one call: given up")
        replied = self.questions.replied
        answered = {} if replied is None else known_results(replied.questions, replied.replies)
        known = {**({} if replied is None else replied.state["known"]), **answered}
        may_repeat = self.may_repeat or replied is None
        return QuestionsAsked(self.server, questions, {**kept, "known": known, "may_repeat": may_repeat})

    def _known_again(self, replied: ToolQuestions) -> Known:
        """Return the answers for a call that begins again: the same questions get the same answers.

        Raises:
            OutputError: it is not to begin again.
        """
        if not replied.state["may_repeat"]:
            raise lost(self.server, replied.replies)
        return {**replied.state["known"], **known_results(replied.questions, replied.replies)}

    async def sort(
        self, requests: Mapping[str, Any], known: Known, notes: list[str]
    ) -> tuple[dict[str, Any], dict[str, ToolQuestion]]:
        """Return the answers that need no person, and what a person is asked."""
        given: dict[str, Any] = {}
        open_ones: dict[str, ToolQuestion] = {}
        for key, request in requests.items():
            if request.method == "roots/list":
                given[key] = {"roots": []}
                continue
            if request.method != "elicitation/create":
                given[key] = await self._sample(request.params)
                continue
            try:
                question = read_question(request.params, can_ask=self.questions.can_ask)
            except QuestionRefused as refused:
                notes.append(str(refused))
                given[key] = {"action": ReplyAction.DECLINE.value}
                continue
            if (answer := known.pop(digest_of(question), None)) is None:
                open_ones[key] = question
            else:
                given[key] = answer
        return given, open_ones

    async def _sample(self, params: Any) -> dict[str, Any]:
        if self.sampler is None:
            raise OutputError(f"server {self.server} wants to use the model (sampling), which it may not here")
        try:
            return await self.sampler.answer(params)
        except QuestionRefused as refused:
            raise OutputError(
                f"server {self.server} wants to use the model (sampling), and may not: {refused}"
            ) from None

    async def while_open(self, send: Send, calls: OpenCalls, started: Callable[[OpenCall], None]) -> Answered:
        """Call a server that asks by requests.

        Args:
            started: Told of a call before it is made.

        Raises:
            QuestionsAsked: a person is to be asked.
            OutputError: the call was lost, and is not made again.
        """
        from mcp import MCPError

        replied = self.questions.replied
        state: Mapping[str, Any] = {} if replied is None else replied.state
        call: OpenCall | None = None
        step: Make | dict[str, Any] | None = None
        if replied is not None and state.get("required"):
            if any(each.action is not ReplyAction.ACCEPT for each in replied.replies):
                raise OutputError(f"the person did not want to open what server {self.server} needs them to open")
        elif replied is not None:
            call = calls.take(state.get("open", ""))
            step = as_result(replied.replies[0], replied.questions[0])
            if call is None:
                self._known_again(replied)
        answered = {} if replied is None else known_results(replied.questions, replied.replies)
        known: Known = {**state.get("known", {}), **answered}
        if call is None or step is None:
            call = OpenCall(dict(known), can_ask=self.questions.can_ask)
            started(call)
            step = send
        call.sampler = self.sampler
        try:
            result = await calls.run(call, step)
        except MCPError as error:
            if error.code != _URL_REQUIRED:
                raise
            raise self._required(error, state) from None
        if not isinstance(result, ToolQuestion):
            return Answered(result, call.notes)
        is_first = replied is None and call.asked == 1 and not call.has_moved
        raise QuestionsAsked(
            self.server,
            [result],
            {"open": call.key, "known": known, "may_repeat": self.may_repeat or is_first, "required": False},
        )

    def _required(self, error: Any, state: Mapping[str, Any]) -> Exception:
        """Return what is raised where a server does nothing before the person has opened an address."""
        asked = int(state.get("asked", 0))
        data = error.data if isinstance(error.data, dict) else {}
        wanted = [each for each in data.get("elicitations") or () if isinstance(each, dict)]
        if not wanted or not self.questions.can_ask or asked + len(wanted) > MOST_QUESTIONS:
            return OutputError(f"server {self.server} wants the person to open an address first, and cannot ask them")
        try:
            questions = [read_url(each.get("message", ""), each.get("url")) for each in wanted]
        except QuestionRefused as refused:
            return OutputError(f"server {self.server} did nothing: {refused}")
        kept = {"open": "", "known": {}, "may_repeat": True, "required": True, "asked": asked + len(wanted)}
        return QuestionsAsked(self.server, questions, kept)


def responses_of(keys: Sequence[str], replied: ToolQuestions) -> dict[str, Any]:
    """Return what a person has replied, as the protocol writes it, by the keys of the requests."""
    pairs = zip(keys, replied.replies, replied.questions, strict=True)
    return {key: as_result(reply, question) for key, reply, question in pairs}


def _read(responses: Mapping[str, Any] | None) -> Any:
    """Return responses as the client takes them."""
    if not responses:
        return None
    from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult

    kinds: dict[str, Any] = {"roots": ListRootsResult, "role": CreateMessageResult, "action": ElicitResult}
    return {
        key: next(kind for name, kind in kinds.items() if name in each).model_validate(each)
        for key, each in responses.items()
    }


def progress_of_server(calls: Sequence[OpenCall] = ()) -> "ProgressFnT":
    """Return what takes notifications of progress for the call that is made now, whichever task they come in.

    Args:
        calls: What takes note that the server has begun to work.
    """
    context = contextvars.copy_context()

    async def show(progress: float, total: float | None, message: str | None) -> None:
        for each in calls:
            each.has_moved = True
        text = _describe_progress(progress, total, message)
        if text:
            context.run(say, text)

    return show


def _describe_progress(done: float, total: float | None, message: str | None) -> str:
    """Return it in words: those of the server where it has some, otherwise how much is done."""
    said = clean((message or "")[: LONGEST + 1], LONGEST)
    if said or not 0 <= done <= _LARGEST:
        return said
    return f"{done:g} / {total:g}" if total is not None and 0 <= total <= _LARGEST else f"{done:g}"
