"""The connection to one server: a task owns the client, lists the tools, and connects again where it is lost."""

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botservice.agent.tool_outputs import OutputError
from botservice.agent.tool_questions import questions_of_call
from botservice.conversation.context import AgentContext
from botservice.llm.proxies_and_tls import tls_context
from botservice.mcp.calls import Answered, AskingCall, progress_of_server
from botservice.mcp.config import ServerConfig
from botservice.mcp.elicitation import MOST_QUESTIONS
from botservice.mcp.failures import ServerAway, explain, is_closed
from botservice.mcp.http_and_stdio import ConnectionState, connected
from botservice.mcp.listing import ListedTool, clean, read_listing
from botservice.mcp.open_calls import HELD_SECONDS, OpenCall, OpenCalls
from botservice.mcp.sampling import Sampler
from botservice.mcp.stdio import Children
from botservice.mcp.tasks import TaskCall, cancel_task, task_types

if TYPE_CHECKING:
    from mcp import Client

    from botservice.mcp.oauth import PersonalAuth

CONNECT_SECONDS: Final = 60.0  # some commands fetch what they run first
_LIST_SECONDS: Final = 30.0
_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
_CLOSE_SECONDS: Final = 6.0
_STEADY_SECONDS: Final = 60.0  # who was up so long begins with the shortest pause again
_NO_SESSION: Final = (400, 404)  # MCP, streamable HTTP: what a server that began again answers, the first one by habit
_MOST_PAGES: Final = 50
_MOST_TOOLS: Final = 1_000
_LONGEST_REASON: Final = 1_000
_WANTS_SIGN_IN: Final = "it wants each person to sign in: PUBLIC_URL and ENCRYPTION_KEY let people do that by OAuth"

logger = logging.getLogger(__name__)


class _SessionLost(OutputError):
    """An HTTP server knows nothing of this connection any more."""


class ServerConnection:
    """One server.

    Attributes:
        listing: The tools that it had when it was last asked.
        problem: Why it cannot be used; None while it can, and before the first try.
        is_tried: Set once the first try has ended, well or not.
        wants_sign_in: Whether it takes nobody who has not signed in; it is not tried again then.
    """

    def __init__(
        self, config: ServerConfig, children: Children, wait_seconds: float, auth: "PersonalAuth | None" = None
    ) -> None:
        """Begin to connect.

        Args:
            wait_seconds: How long a call waits for a connection that is being made.
            auth: With what one person has signed in; without it the connection is everybody's.
        """
        self.wants_sign_in = False
        self._auth = auth
        self.config = config
        self._wait_seconds = wait_seconds
        self.listing: tuple[ListedTool, ...] = ()
        self.problem: str | None = None
        self.is_tried = asyncio.Event()
        self._children = children
        self._line = ConnectionState()
        self._tries = 0
        self._client: Client | None = None
        self._open_calls = OpenCalls(self._renew)
        self._is_up = asyncio.Event()
        self._is_stale = asyncio.Event()
        self._is_closing = False
        self._owner = asyncio.create_task(self._keep(), name=f"mcp-{config.prefix}")

    @property
    def is_asking(self) -> bool:
        """Whether a call that is open there waits for a person."""
        return self._open_calls.are_held

    @property
    def is_refused(self) -> bool:
        """Whether the server takes no more what one person has signed in with."""
        return self._auth is not None and self._auth.is_refused

    async def wait(self, seconds: float) -> None:
        """Wait until it has been tried once, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.is_tried.wait()

    async def close(self) -> None:
        """Let go of the server; what runs in it ends with it."""
        self._is_closing = True
        for _ in range(2):  # a server that does not answer to a goodbye is left without one
            self._owner.cancel()
            await asyncio.wait([self._owner], timeout=_CLOSE_SECONDS)
        if self._owner.done() and not self._owner.cancelled():
            self._owner.exception()  # it was on its way out

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, may_repeat: bool = False, context: AgentContext | None = None
    ) -> Answered:
        """Return what a tool of the server gives, as the client has it.

        Args:
            context: In which it is called; the server can ask the model only there.
            may_repeat: Whether it may be called once more where the server seems to have begun again.

        Raises:
            OutputError: it gives nothing; the message says why, for the model to read.
            QuestionsAsked: the server asks the person something.
            Paused: the server works at it as a task, which takes longer than a turn is held.
        """
        questions, sampler = questions_of_call(), None
        if self.config.allows_sampling and context is not None and questions.llm is not None:
            sampler = Sampler(questions.llm, context)
        call = AskingCall(self.config.name, may_repeat, questions, sampler)
        task = TaskCall(call, self.request, self.config.timeout_seconds)
        try:
            if (kept := task.find_kept()) is not None:
                answered = await task.go_on(kept)
            else:
                answered = await self._call(tool, arguments, call)
                if not isinstance(answered.result, task_types().handle):
                    return answered
                answered = await task.begin(answered)
            if self._client is not None and not answered.result.is_error:
                await self._client.session.validate_tool_result(tool, answered.result)
        except (ValueError, RuntimeError) as error:
            raise OutputError(
                f"server {self.config.name} answered with something that is no result ({type(error).__name__}); "
                "the outcome of the call is unknown"
            ) from None
        return answered

    async def give_up(self, kept: Mapping[str, Any]) -> None:
        """Cancel the task of a call, by what the call has kept."""
        await cancel_task(self.request, kept)

    async def request(self, method: str, params: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """Send a request about a task, and return what comes back."""
        client, types = await self._wait_for_client(), task_types()
        request = types.request(method=method, params=dict(params))
        answer: dict[str, Any] = await client.session.send_request(request, types.answer, seconds)
        return answer

    async def _call(self, tool: str, arguments: Mapping[str, Any], call: AskingCall) -> Answered:
        client = await self._wait_for_client()
        try:
            return await self._ask(client, tool, arguments, call)
        except _SessionLost:  # it knows this connection no more: of the call that is likely, and not certain
            if client is self._client:
                self._leave()
            if not call.may_repeat:
                raise
            return await self._ask(await self._wait_for_client(is_patient=True), tool, arguments, call)

    async def _ask(self, client: "Client", tool: str, arguments: Mapping[str, Any], call: AskingCall) -> Answered:
        from mcp import MCPError
        from mcp.types import HEADER_MISMATCH
        from mcp.types.version import MODERN_PROTOCOL_VERSIONS

        name, is_modern = self.config.name, client.protocol_version in MODERN_PROTOCOL_VERSIONS
        seconds = self.config.timeout_seconds + 1  # the executor's limit comes first, and is said better
        made: list[OpenCall] = []
        make = partial(
            client.session.call_tool,
            tool,
            dict(arguments),
            seconds if is_modern else seconds + HELD_SECONDS * MOST_QUESTIONS,
            progress_of_server(made),
            allow_input_required=True,
            allow_claimed=True,
        )

        async def send(**answers: Any) -> Any:
            try:
                return await make(**answers)
            except MCPError as mismatch:
                if mismatch.code != HEADER_MISMATCH or not is_modern:
                    raise
            await self._list(client)  # the schema, parts of which travel in headers, has changed since
            return await make(**answers)

        try:
            return await (call.in_rounds(send) if is_modern else call.while_open(send, self._open_calls, made.append))
        except MCPError as error:
            if is_closed(error) or client is not self._client:
                raise OutputError(
                    f"the connection to server {name} was lost during the call: its outcome is unknown"
                ) from None
            if self._line.refused_with in _NO_SESSION and client.session.initialize_result is not None:
                raise _SessionLost(
                    f"server {name} seems to have refused the call ({clean(error.message, _LONGEST_REASON)}): "
                    "its outcome is unknown"
                ) from None
            raise OutputError(f"server {name} refused the call: {clean(error.message, _LONGEST_REASON)}") from None

    async def _wait_for_client(self, *, is_patient: bool = False) -> "Client":
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0 if self.problem and not is_patient else self._wait_seconds):
                await self._is_up.wait()
        if self._client is None:
            raise ServerAway(self.explain_absence())
        return self._client

    def explain_absence(self) -> str:
        """Return what a model is told of a server that cannot be used."""
        return (
            f"server {self.config.name} cannot be reached at this moment ({self.problem or 'it is being connected'}), "
            "so its tools cannot be used; go on without them, or say so"
        )

    async def _keep(self) -> None:
        """Connect, and again whenever the connection is lost, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began, line = loop.time(), ConnectionState()
            self._line = line
            try:
                await self._live(line)
                if line.is_renewed and not self._is_closing:
                    continue
                self._note_down(line.problem or "it has ended")
            except (Exception, asyncio.CancelledError, BaseExceptionGroup) as error:
                if self._is_closing or _is_cancelled():
                    raise
                if self._is_unwelcome(line):
                    return
                self._note_down(
                    line.problem
                    or explain(
                        error, refused_with=line.refused_with, last_words="" if self.listing else line.last_words
                    )
                )
            if self._is_closing:  # the client's package swallows a cancellation now and then
                return
            if loop.time() - began > _STEADY_SECONDS:
                self._tries = 0
            await asyncio.sleep(_PAUSES[min(self._tries, len(_PAUSES) - 1)])
            self._tries += 1

    def _is_unwelcome(self, line: ConnectionState) -> bool:
        """Return whether trying again is of no use before a person has signed in, and take note of that."""
        if self._auth is None:
            self.wants_sign_in = line.wants_sign_in and (self.config.has_sign_in or not self.config.headers)
        else:
            self.wants_sign_in = self.is_refused
        if self.wants_sign_in:
            self.problem = _WANTS_SIGN_IN
            self.is_tried.set()
        return self.wants_sign_in

    async def _live(self, line: ConnectionState) -> None:
        """Connect and stay so for as long as it lasts."""
        from_package = await asyncio.to_thread(_load)  # takes a second, in which others go on
        way = connected(self.config, self._children, line, self._auth)
        async with asyncio.timeout(CONNECT_SECONDS) as limit, way as transport:
            self._open_calls = OpenCalls(self._renew, has_asked=self._open_calls.has_asked)
            client = from_package.Client(
                transport,
                read_timeout_seconds=_LIST_SECONDS,
                message_handler=self._hear,
                elicitation_callback=self._open_calls.ask,
                sampling_callback=self._open_calls.sample if self.config.allows_sampling else None,
                extensions=[task_types().extension],
            )
            async with client:
                await self._list(client)
                limit.reschedule(None)
                self._note_up(client)
                try:
                    await self._stay(client, line)
                finally:
                    self._open_calls.close()
                    self._let_go()

    async def _stay(self, client: "Client", line: ConnectionState) -> None:
        """List the tools again whenever the server says that they have changed, until the line is lost."""
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(self._listen(client)), group.create_task(self._list_again(client))]
            await line.is_lost.wait()
            for task in others:
                task.cancel()

    async def _listen(self, client: "Client") -> None:
        """Hear of changes from servers of the newer protocol, which have to be asked for them."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        has_changes = client.server_capabilities.tools is not None and client.server_capabilities.tools.list_changed
        while has_changes:
            with contextlib.suppress(SubscriptionLost, MCPError, TimeoutError):
                try:
                    async with client.listen(tools_list_changed=True) as changes:
                        self._is_stale.set()  # what has changed before it began is not said again
                        async for _ in changes:
                            self._is_stale.set()
                except ListenNotSupportedError:
                    return
            await asyncio.sleep(_PAUSES[-1])

    async def _list_again(self, client: "Client") -> None:
        from mcp import MCPError

        while True:
            await self._is_stale.wait()
            self._is_stale.clear()
            with contextlib.suppress(MCPError, ValueError, TimeoutError):
                await self._list(client)
            await asyncio.sleep(_PAUSES[0])  # a server whose tools change all the time is asked once a second

    async def _hear(self, message: Any) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self._is_stale.set()

    async def _list(self, client: "Client") -> None:
        found: list[Any] = []
        cursor, seen = None, set()
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or cursor in seen or len(found) >= _MOST_TOOLS:
                break
            seen.add(cursor)
        if cursor is not None:
            logger.warning("mcp.listing_cut", extra={"server": self.config.prefix, "tools": len(found)})
        config = self.config
        shown = found[:_MOST_TOOLS]
        self.listing = await asyncio.to_thread(
            read_listing, config.prefix, shown, config.tools, config.tools_with_roles
        )

    def _note_up(self, client: "Client") -> None:
        self._client, self.problem = client, None
        self._is_up.set()
        self.is_tried.set()
        logger.info("mcp.up", extra={"server": self.config.prefix, "tools": len(self.listing)})

    def _renew(self) -> None:
        """Connect again, so that nothing of a call that was cut off can still come."""
        self._line.is_renewed = True
        self._leave()

    def _leave(self) -> None:
        self._line.is_lost.set()
        self._let_go()

    def _let_go(self) -> None:
        self._client = None
        self._is_up.clear()

    def _note_down(self, problem: str) -> None:
        if problem != self.problem:
            logger.warning("mcp.down", extra={"server": self.config.prefix, "problem": problem})
        self.problem = problem
        self.is_tried.set()


def _load() -> Any:
    """Import what connections need, once, and return the package."""
    for name in ("jsonschema", "mcp.client.auth", "mcp.client.streamable_http", "mcp.client.subscriptions"):
        importlib.import_module(name)
    tls_context()
    return importlib.import_module("mcp")


def _is_cancelled() -> bool:
    """Return whether this task was cancelled from outside; an outage cancels it as well, within its own block."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
