"""Calls run with what the model gave; whatever goes wrong becomes a text that the model sees."""

import asyncio
import functools
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field

from botservice import AgentContext, Attachment, Tool, ToolCall, tool
from botservice.agent.tool_executor import ToolOutcome, execute
from botservice.agent.tool_outputs import OutputError
from botservice.telemetry.logs import register_secret


async def run(function: Any, context: AgentContext, /, **arguments: Any) -> ToolOutcome:
    made = function if isinstance(function, Tool) else Tool(function, name="under_test")
    return await execute({made.name: made}, ToolCall("1", made.name, arguments), context)


class Point(BaseModel):
    x: int


async def test_arguments_arrive_as_what_the_function_takes(context: AgentContext) -> None:
    seen: list[Any] = []

    def take(point: Point, numbers: set[int], text: str = "default") -> None:
        seen.extend([point, numbers, text])

    outcome = await run(take, context, point={"x": 1}, numbers=[1, 1, 2])
    assert not outcome.is_error
    assert seen == [Point(x=1), {1, 2}, "default"]


async def test_the_context_of_the_call_is_handed_in(context: AgentContext) -> None:
    @tool
    async def who(context: AgentContext | None = None) -> str:
        assert context is not None
        return context.context_keys["chat_id"]

    assert (await run(who, context)).text == "1"


async def test_a_model_cannot_hand_in_a_context_of_its_own(context: AgentContext) -> None:
    @tool
    async def who(context: AgentContext) -> str:
        return "called"

    outcome = await run(who, context, context={"chat_id": "2"})
    assert outcome.text == "Error: the arguments of who do not fit: context: Extra inputs are not permitted"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "a: Field required"),
        ({"a": "one"}, "a: Input should be a valid integer"),
        ({"a": 0}, "a: Input should be greater than or equal to 1"),
        ({"a": 1, "b": 2}, "b: Extra inputs are not permitted"),
        ({"a": 13}, "a: Value error, unlucky"),
        ({"field0": 1}, "field0: Extra inputs are not permitted"),
    ],
)
async def test_arguments_that_do_not_fit_are_named(context: AgentContext, arguments: dict[str, Any], says: str) -> None:
    def lucky(value: int) -> int:
        if value == 13:
            raise ValueError("unlucky")
        return value

    def take(a: Annotated[int, Field(ge=1), AfterValidator(lucky)]) -> None:
        raise AssertionError("it must not run")

    outcome = await run(take, context, **arguments)
    assert outcome.is_error
    assert outcome.text.startswith("Error: the arguments of under_test do not fit: ")
    assert says in outcome.text


async def test_a_nested_argument_is_named_by_its_path(context: AgentContext) -> None:
    def take(points: list[Point]) -> None: ...

    assert "points.1.x: " in (await run(take, context, points=[{"x": 1}, {"x": "y"}])).text


async def test_unknown_tools_and_malformed_arguments_are_said(context: AgentContext) -> None:
    tools = {"add": Tool(lambda: 1, name="add"), "sub": Tool(lambda: 2, name="sub")}
    unknown = await execute(tools, ToolCall("1", "ad\ud800d", {}), context)
    assert unknown.text == "Error: there is no tool 'ad\\ud800d'; there are: add, sub"
    assert (await execute({}, ToolCall("1", "add", {}), context)).text.endswith("there are: none")
    malformed = await execute(tools, ToolCall("1", "add", {}, malformed_arguments="{a"), context)
    assert malformed.text.startswith("Error: the arguments of add are not a JSON object")
    assert malformed.is_error


async def test_a_function_that_blocks_runs_beside_the_loop_and_knows_its_turn(context: AgentContext) -> None:
    turn = ContextVar("turn", default="none")
    seen: list[str] = []
    turn.set("the turn of the caller")
    await run(lambda: seen.extend([turn.get(), threading.current_thread().name]), context)
    assert seen == ["the turn of the caller", "tool-under_test"]


async def test_functions_that_never_end_keep_nobody_else_waiting(context: AgentContext) -> None:
    release = threading.Event()
    stuck = Tool(release.wait, name="stuck", timeout_seconds=0.01)
    outcomes = await asyncio.gather(
        *(execute({"stuck": stuck}, ToolCall("1", "stuck", {}), context) for _ in range(40))
    )
    assert {outcome.text for outcome in outcomes} == {"Error: stuck did not end within 0.01 seconds"}
    assert (await run(lambda: "still here", context)).text == "still here"
    assert await asyncio.to_thread(lambda: "here, too") == "here, too"
    release.set()


async def test_a_coroutine_that_never_ends_is_cancelled(context: AgentContext) -> None:
    was_cancelled = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    outcome = await run(Tool(wait, timeout_seconds=0.01), context)
    assert outcome.error_type == "TimeoutError"
    assert was_cancelled.is_set()


async def test_what_a_generator_yields_is_a_list_and_is_made_beside_the_loop(context: AgentContext) -> None:
    threads: list[str] = []

    def slow() -> Iterator[int]:
        threads.append(threading.current_thread().name)
        yield from (1, 2)

    async def rows() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    def closed() -> Iterator[int]:
        yield 1
        raise ValueError("the shop is closed")

    assert (await run(slow, context)).output == [1, 2]
    assert threads == ["tool-under_test"]
    assert (await run(rows, context)).output == ["a", "b"]
    assert (await run(closed, context)).text == "Error: ValueError: the shop is closed"


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_generator_that_does_not_end_is_said_to_the_model(context: AgentContext, is_async: bool) -> None:
    async def endless() -> AsyncIterator[int]:
        for number in itertools.count():
            yield number

    outcome = await run(endless if is_async else lambda: (each for each in itertools.count()), context)
    assert outcome.text == "Error: the tool yields more than 10000 values"


async def test_a_function_in_a_thread_cannot_end_the_process(context: AgentContext) -> None:
    outcome = await run(raiser(KeyboardInterrupt()), context)
    assert outcome.text == "Error: RuntimeError: the function raised KeyboardInterrupt"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("text/csv", "a.csv", "a,b"), "an Attachment's data is bytes, not str: a text becomes some by .encode()"),
        ((None, "a.unknown", b"x"), "an Attachment's mime_type is a text such as 'text/csv', not None"),
        (("text/csv", 7, b"x"), "an Attachment's name and url are texts, or None"),
    ],
)
async def test_a_file_that_is_none_is_refused_when_it_is_made(context: AgentContext, values: Any, says: str) -> None:
    outcome = await run(lambda: Attachment(*values), context)
    assert outcome.text == f"Error: TypeError: {says}"


class WordyError(Exception):
    pass


def raiser(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "text", "kind"),
    [
        (WordyError("no such row"), "Error: WordyError: no such row", "WordyError"),
        (WordyError(), "Error: WordyError", "WordyError"),
        (TimeoutError("the database was slow"), "Error: TimeoutError: the database was slow", "TimeoutError"),
        (ValueError("of its own"), "Error: ValueError: of its own", "ValueError"),
        (SystemExit(2), "Error: SystemExit: 2", "SystemExit"),
        (StopIteration(), "Error: RuntimeError: the function raised StopIteration", "RuntimeError"),
        (asyncio.CancelledError(), "Error: CancelledError", "CancelledError"),
        (WordyError("lone \ud800 and \0"), "Error: WordyError: lone \ufffd and \ufffd", "WordyError"),
    ],
)
async def test_what_a_tool_raises_is_told_and_logged(
    context: AgentContext, caplog: pytest.LogCaptureFixture, error: BaseException, text: str, kind: str
) -> None:
    fail = raiser(error)

    async def fail_later() -> None:
        fail()

    later = "Error: RuntimeError: coroutine raised StopIteration" if isinstance(error, StopIteration) else text
    for function, told in ((fail, text), (fail_later, later)):
        caplog.clear()
        outcome = await run(function, context)
        assert (outcome.text, outcome.error_type, outcome.output) == (told, kind, None)
        assert [(record.message, record.tool) for record in caplog.records] == [("tool.failed", "under_test")]  # type: ignore[attr-defined]
        assert caplog.records[0].exc_info


async def test_an_error_of_endless_length_is_cut_and_says_so(context: AgentContext) -> None:
    outcome = await run(raiser(WordyError("x" * 200_000)), context)
    assert len(outcome.text) < 100_100
    assert "cut: it has 200" in outcome.text


async def test_secrets_are_in_no_error_and_no_output(context: AgentContext) -> None:
    register_secret("the-launch-code")
    assert (await run(raiser(WordyError("at https://x/the-launch-code")), context)).text.endswith(
        "at https://x/[secret]"
    )
    assert (await run(raiser(OutputError("not with the-launch-code")), context)).text == "Error: not with [secret]"
    outcome = await run(lambda: {"env": ["the-launch-code"]}, context)
    assert outcome.text == '{"env": ["[secret]"]}'
    assert outcome.output == {"env": ["[secret]"]}
    assert (await run(lambda: "the-launch-code", context)).output == "[secret]"


async def test_cancellation_passes_through(context: AgentContext) -> None:
    began = asyncio.Event()

    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    call = asyncio.create_task(run(wait, context))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_cancellation_leaves_a_function_that_blocks_behind(context: AgentContext) -> None:
    loop, began, release = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def block() -> None:
        loop.call_soon_threadsafe(began.set)
        release.wait(60)

    call = asyncio.create_task(run(block, context))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    release.set()


async def test_a_function_that_returns_an_awaitable_is_awaited(context: AgentContext) -> None:
    async def later() -> str:
        return "later"

    assert (await run(functools.partial(later), context)).text == "later"


async def test_calls_say_how_long_they_took(context: AgentContext) -> None:
    outcome = await run(lambda: None, context)
    assert outcome.duration_seconds is not None
    assert outcome.duration_seconds >= 0


@pytest.fixture(autouse=True)
def quiet_threads() -> Iterator[None]:
    """No thread of a tool prints a traceback of its own."""
    seen: list[Any] = []
    before, threading.excepthook = threading.excepthook, seen.append
    yield
    threading.excepthook = before
    assert seen == []


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("cannot connect to postgres://bot:hunter22@db/x", "cannot connect to postgres://[secret]@db/x"),
        ("401 for https://api.example/v1?api_key=abcdef123&q=1", "401 for https://api.example/v1?api_key=[secret]&q=1"),
        ('{"password": "hunter22"}', '{"password": "[secret]"}'),
        ("headers: Authorization: Bearer abc.def.ghi-123", "headers: Authorization: [secret]"),
        ("no key sk-proj-abcdefghijklmnop here", "no key [secret] here"),
        ("no such city: Key West", "no such city: Key West"),
    ],
)
async def test_what_looks_like_a_secret_in_an_error_is_not_told(context, message, told) -> None:
    def fail() -> str:
        raise RuntimeError(message)

    outcome = await execute({"fail": Tool(fail)}, ToolCall("1", "fail"), context)
    assert outcome.text == f"Error: RuntimeError: {told}"
