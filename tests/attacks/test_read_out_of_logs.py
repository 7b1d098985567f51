"""Read out: whoever reads the log reads no word of what people said, whatever fails on the way."""

import asyncio
import io
import logging

import pytest
from standins.bot_api import BotApi, Refuse
from standins.clocks import fast_clock
from standins.running import telegram_bot

from botservice import Storage, Tool, ToolCall
from botservice.core.errors import BotServiceError
from botservice.telemetry.logs import configure_logging, format_error

MARK = "swordfish"


@pytest.fixture(params=["text", "json"])
def log(request, monkeypatch):
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging(level="DEBUG", style=request.param)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def api():
    with BotApi.running() as server:
        server.add_private_chat(42)
        yield server


def look_up(word: str) -> str:
    """Look a word up."""
    try:
        return {}[word]
    except KeyError as error:
        raise ValueError(f"nobody knows {word}") from error


def divide(word: str) -> str:
    """Do several things at once, and all of them wrong."""
    errors = [KeyError(word), ValueError(word, word)]
    for each in errors:
        each.add_note(f"while working on {word}")
    raise ExceptionGroup(f"all about {word}", errors)


async def forget(word: str) -> str:
    """Leave a task behind that fails and that nobody waits for."""

    async def fail() -> None:
        raise RuntimeError(word)

    task = asyncio.create_task(fail(), name=f"task about {word}")
    await asyncio.wait([task])
    return "left"


async def test_a_whole_conversation_with_failing_tools_leaves_no_word_of_it_in_the_log(
    api: BotApi, sqlite_storage: Storage, log: io.StringIO
) -> None:
    script = [
        [ToolCall("1", "look_up", {"word": MARK}), ToolCall("2", "divide", {"word": MARK})],
        ToolCall("3", "forget", {"word": MARK}),
        ToolCall("4", MARK, {MARK: MARK}),
        ToolCall("5", "look_up", {MARK: MARK}),
        f"I cannot say anything about {MARK}, [see](https://{MARK}.example)",
        "well",
    ]
    tools = [Tool(look_up), Tool(divide), Tool(forget)]
    async with telegram_bot(api, sqlite_storage, script, tools=tools, clock=fast_clock()):
        api.order(Refuse(400, "Bad Request: can't parse entities"), "sendMessage")
        api.person_says(f"what about {MARK}?", chat_id=42)
        await api.message(42, "cannot say")
        api.person_sends_document(b"%PDF- " + MARK.encode(), name=f"{MARK}.pdf", chat_id=42)
        await api.messages(42, 2)
        api.person_edits(42, 1, f"no, {MARK}!")
        api.person_says(f"/memory {MARK}", chat_id=42)
        await api.messages(42, 3)
    asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": ValueError(MARK)})
    logged = log.getvalue()
    assert logged.count("tool.failed") == 2
    assert "ValueError" in logged
    assert "test_read_out_of_logs.py" in logged
    assert MARK not in logged


def test_an_error_tells_where_and_what_it_came_of_and_not_what_it_says() -> None:
    try:
        look_up(MARK)
    except ValueError as error:
        told = format_error(error)
    assert MARK not in told
    assert told.index("KeyError") < told.index("which led to:") < told.rindex("ValueError")
    assert "raise ValueError" in told
    try:
        divide(MARK)
    except ExceptionGroup as error:
        told = format_error(error)
    assert MARK not in told
    assert told.count("  | ") >= 2


def test_errors_of_the_program_say_what_happened() -> None:
    class Odd(BotServiceError):
        pass

    assert format_error(BotServiceError("the database does not answer")).endswith("the database does not answer")
    assert MARK not in format_error(Odd(MARK))


def test_an_error_that_led_to_itself_ends() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert format_error(first).count("ValueError") == 1
