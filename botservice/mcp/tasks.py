"""Calls at which a server works as a task: polled until it ends, whichever process does so.

Source: MCP 2026-07-28, extension io.modelcontextprotocol/tasks. The server alone decides to make a task of a call. What
finds it again is kept with the call, so a call that is made again goes on with its task.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botservice.agent.tool_outputs import OutputError
from botservice.agent.tool_progress import LONGEST, progress
from botservice.agent.tool_questions import Paused, QuestionsAsked
from botservice.mcp.calls import Answered, AskingCall, responses_of
from botservice.mcp.elicitation import MOST_QUESTIONS
from botservice.mcp.failures import ServerAway, is_closed
from botservice.mcp.listing import clean

if TYPE_CHECKING:
    from mcp.client.extension import ClientExtension

_LEAST_SECONDS: Final = 0.5  # between two polls, whatever the server says
_MOST_SECONDS: Final = 3_600.0
_USUAL_SECONDS: Final = 2.0
_PAUSES: Final = (10.0, 300.0)  # of a turn that waits: a tenth of the time so far, within these
_ASK_SECONDS: Final = 10.0
_CANCEL_SECONDS: Final = 3.0
_MARGIN: Final = 0.9  # of the time limit of a call: the rest is for its end
_LONGEST_ID: Final = 1_000
_LONGEST_REASON: Final = 1_000
_MOST_REQUESTS: Final = 20
_UNKNOWN: Final = -32602  # Invalid params: the server has no such task
_REFUSALS: Final = (-32600, -32601, -32021)  # Invalid request, Method not found, Missing required client capability

Request = Callable[[str, Mapping[str, Any], float], Awaitable[Mapping[str, Any]]]
"""Sends a request of the extension: its method, its parameters, and how many seconds it may take."""


class TaskCall:
    """One call whose server works at it as a task."""

    def __init__(self, call: AskingCall, request: Request, seconds: float) -> None:
        """Make one, at the begin of the call.

        Args:
            seconds: The time limit of the call.
        """
        self._call = call
        self._request = request
        self._seconds = seconds
        self._started = asyncio.get_running_loop().time()
        self._until = self._started + _MARGIN * seconds
        self._kept: dict[str, Any] = {}

    def find_kept(self) -> Mapping[str, Any] | None:
        """Return what an earlier run of the call has kept; None if it made no task."""
        replied = self._call.questions.replied
        return self._call.questions.kept or (None if replied is None else replied.state.get("kept"))

    async def begin(self, made: Answered) -> Answered:
        """Go on with a task that the server has just made."""
        handle = made.result.model_extra or {}
        task = handle.get("taskId")
        if not isinstance(task, str) or not 0 < len(task) <= _LONGEST_ID:
            raise OutputError(
                f"server {self._call.server} made a task of this call without an id: the outcome is unknown"
            )
        new = {"answered": [], "asked": 0, "notes": [*made.notes], "has_paused": False}
        await self._keep({"task": task, "since": time.time(), **new})
        return await self._poll(_interval(handle))

    async def go_on(self, kept: Mapping[str, Any]) -> Answered:
        """Go on with a task that an earlier run of the call has kept.

        Raises:
            QuestionsAsked: the server asks the person something.
            Paused: it takes longer than a turn is held.
            OutputError: nothing comes of it.
        """
        questions, self._kept = self._call.questions, dict(kept)
        if kept["has_paused"]:  # a turn is held once
            self._until = self._started
        replied = questions.replied
        if replied is not None and replied.state.get("kept") == kept:  # the server has not got the answers yet
            responses = {**replied.state["given"], **responses_of(replied.state["of_task"], replied)}
            await self._respond(responses, asked=replied.state["asked"], notes=replied.state["notes"])
        return await self._poll(0.0)

    async def _poll(self, pause: float) -> Answered:
        try:
            while True:
                await self._wait(pause)
                task = await self._see_to()
                pause = _interval(task)
                if (result := await self._read(task)) is not None:
                    return Answered(result, self._kept["notes"])
        except asyncio.CancelledError:
            if self._call.questions.keep is None:  # nobody will ever go on with it
                await cancel_task(self._request, self._kept)
            raise

    async def _see_to(self) -> Mapping[str, Any]:
        """Give the server the answers that it has not got yet, and ask how its task is; empty if it cannot be asked."""
        responses = self._kept.get("responses")
        if responses:
            if await self._ask("tasks/update", inputResponses=responses) is None:
                return {}
            await self._keep({key: each for key, each in self._kept.items() if key != "responses"})
        return await self._ask("tasks/get") or {}

    async def _read(self, task: Mapping[str, Any]) -> Any:
        """Return the result of a task; None while it goes on."""
        from mcp.types import CallToolResult

        server = self._call.server
        if not task:
            return None
        said = clean(str(task.get("statusMessage") or "")[: _LONGEST_REASON + 1], _LONGEST_REASON)
        if task.get("taskId") != self._kept["task"]:
            raise OutputError(
                f"server {server} answered about another task than that of this call: the outcome is unknown"
            )
        match task.get("status"):
            case "working":
                if said:
                    progress(said[:LONGEST])
                return None
            case "input_required":
                await self._answer(task.get("inputRequests"))
                return None
            case "completed":
                return CallToolResult.model_validate(task.get("result"))
            case "failed":
                error = task.get("error")
                why = error.get("message") if isinstance(error, dict) else None
                why = clean(str(why or said or "it does not say why")[: _LONGEST_REASON + 1], _LONGEST_REASON)
                raise OutputError(f"the task of server {server} for this call failed: {why}")
            case "cancelled":
                raise OutputError(f"server {server} cancelled its task for this call" + (f": {said}" if said else ""))
        await cancel_task(self._request, self._kept)
        raise OutputError(f"server {server} gave its task a status that MCP does not know: the outcome is unknown")

    async def _answer(self, requests: Any) -> None:
        """Answer what the server asks and was not answered before.

        Raises:
            QuestionsAsked: a person is to be asked.
        """
        from mcp.types import InputRequests
        from pydantic import TypeAdapter

        read = TypeAdapter(InputRequests).validate_python(requests, by_name=False)
        new = {key: each for key, each in read.items() if key not in self._kept["answered"]}
        if not new:
            return
        notes: list[str] = []
        given, open_ones = await self._call.sort(dict(list(new.items())[:_MOST_REQUESTS]), {}, notes)
        asked, notes = self._kept["asked"] + len(open_ones), [*self._kept["notes"], *notes]
        if asked > MOST_QUESTIONS or len(new) > _MOST_REQUESTS:
            await cancel_task(self._request, self._kept)
            raise OutputError(f"server {self._call.server} asks too much in one call: its task was cancelled")
        if open_ones:
            state = {"kept": self._kept, "of_task": list(open_ones), "given": given, "asked": asked, "notes": notes}
            questions = list(open_ones.values())
            raise QuestionsAsked(self._call.server, questions, {**state, "known": {}, "may_repeat": False})
        await self._respond(given, asked=asked, notes=notes)

    async def _respond(self, responses: Mapping[str, Any], *, asked: int, notes: list[str]) -> None:
        """Keep answers until the server has got them."""
        answered = [*self._kept["answered"], *responses]
        new = {"responses": dict(responses), "answered": answered, "asked": asked, "notes": notes}
        await self._keep({**self._kept, **new})

    async def _ask(self, method: str, **params: Any) -> Mapping[str, Any] | None:
        """Return what the server says of the task; None if it cannot be asked now.

        Raises:
            OutputError: it knows nothing of the task.
        """
        from mcp import MCPError

        server = self._call.server
        left = self._started + self._seconds * (1 + _MARGIN) / 2 - asyncio.get_running_loop().time()
        seconds = min(_ASK_SECONDS, max(0.0, left))
        try:
            async with asyncio.timeout(seconds):
                return await self._request(method, {"taskId": self._kept["task"], **params}, seconds)
        except (TimeoutError, ServerAway):
            return None
        except MCPError as error:
            if is_closed(error) or error.code not in (_UNKNOWN, *_REFUSALS):
                return None
            if error.code == _UNKNOWN:
                raise OutputError(
                    f"server {server} no longer knows its task for this call, because its time was over or the server "
                    "began again: the outcome of the call is unknown"
                ) from None
            reason = clean(error.message, _LONGEST_REASON)
            raise OutputError(f"server {server} does not say what became of this call: {reason}") from None

    async def _wait(self, pause: float) -> None:
        """Wait before the task is looked at again.

        Raises:
            Paused: that is longer than a turn is held.
            OutputError: the task takes too long.
        """
        left, can_pause = self._until - asyncio.get_running_loop().time(), self._call.questions.can_pause
        if pause <= left or pause == 0.0:
            await asyncio.sleep(pause)
        elif can_pause:
            least, most = _PAUSES
            usual = min(most, max(least, (time.time() - self._kept["since"]) / 10))
            is_told = not self._kept["has_paused"]
            await self._keep({**self._kept, "has_paused": True})
            raise Paused(max(pause, usual), is_told=is_told)
        elif left > 0:
            await asyncio.sleep(left)
        else:
            await cancel_task(self._request, self._kept)
            raise OutputError(
                f"server {self._call.server} did not end its task for this call in time, and was told to cancel it; "
                "it may have taken effect, or not"
            )

    async def _keep(self, kept: dict[str, Any]) -> None:
        self._kept = kept
        if self._call.questions.keep is not None:
            await self._call.questions.keep(kept)


async def cancel_task(request: Request, kept: Mapping[str, Any]) -> None:
    """Tell the server that nobody waits for a task any more, by what its call has kept."""
    from mcp import MCPError

    with contextlib.suppress(TimeoutError, MCPError, ServerAway, OSError, ValueError, RuntimeError):
        async with asyncio.timeout(_CANCEL_SECONDS):
            await request("tasks/cancel", {"taskId": kept["task"]}, _CANCEL_SECONDS)


def _interval(task: Mapping[str, Any]) -> float:
    """Return how many seconds a server wants between two polls, within reason."""
    value = task.get("pollIntervalMs")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return _USUAL_SECONDS
    return min(_MOST_SECONDS, max(_LEAST_SECONDS, value / 1_000))


class TaskTypes(NamedTuple):
    """What the client's package needs to know of tasks.

    Attributes:
        extension: Declares that this client takes tasks.
        handle: The result of a call that became one.
        request: A request about one.
        answer: Reads what comes back.
    """

    extension: "ClientExtension"
    handle: type
    request: type
    answer: Any


@cache
def task_types() -> TaskTypes:
    """Return the types for tasks: made late, because the package takes a second to load."""
    from typing import Literal

    from mcp.client.extension import ClientExtension, ResultClaim
    from mcp.types import Request, Result
    from pydantic import ConfigDict, Field, TypeAdapter

    class TaskHandle(Result):
        model_config = ConfigDict(extra="allow")

        result_type: Literal["task"] = Field(alias="resultType")

    class TaskRequest(Request[dict[str, Any], str]):
        name_param = "taskId"  # by which a load balancer finds the server that has the task

    class TasksExtension(ClientExtension):
        identifier = "io.modelcontextprotocol/tasks"

        def claims(self) -> "list[ResultClaim[Any]]":
            return [ResultClaim(result_type="task", model=TaskHandle, resolve=_resolve)]

    return TaskTypes(TasksExtension(), TaskHandle, TaskRequest, TypeAdapter(dict[str, Any]))


async def _resolve(*_: Any) -> Any:
    """Take the place of what the package wants to have here: calls are made without it."""
    raise NotImplementedError
