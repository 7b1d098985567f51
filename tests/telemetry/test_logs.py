"""Logs: one line each, with the turn in it, without any secret."""

import io
import json
import logging
from datetime import UTC, datetime

import pytest

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage, ToolCall, tool
from botservice.core.errors import StorageUnavailable, UnsuitablePooler
from botservice.telemetry.instrumentation import TurnIdentity, in_turn
from botservice.telemetry.logs import BACK, configure_logging, redact, register_secret

SECRET = 'swordfish "ünder" water/42'


@pytest.fixture(params=["text", "json"])
def style(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, style: str) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging(level="INFO", style=style)
    return stream


def test_a_line_has_its_time_level_logger_event_and_facts(lines: io.StringIO, style: str) -> None:
    logging.getLogger("botservice.x").warning(
        "model.failed", extra={"reason": "no way", "wait_seconds": 0.5, "code": "a"}
    )
    line = lines.getvalue()
    assert line.endswith("\n")
    if style == "json":
        read = json.loads(line)
        assert read.pop("time").endswith("+00:00")
        assert read == {
            "level": "WARNING",
            "logger": "botservice.x",
            "event": "model.failed",
            "reason": "no way",
            "wait_seconds": 0.5,
            "code": "a",
        }
    else:
        assert line[24:] == 'WARNING botservice.x model.failed reason="no way" wait_seconds=0.5 code=a\n'


def test_every_line_of_a_turn_carries_its_number(lines: io.StringIO, style: str) -> None:
    with in_turn(TurnIdentity(7, 1, "telegram", datetime(2026, 1, 1, tzinfo=UTC))):
        logging.getLogger("botservice.x").info("inside")
    logging.getLogger("botservice.x").info("outside")
    inside, outside = lines.getvalue().splitlines()
    assert ('"turn": 7' if style == "json" else " turn=7") in inside
    assert "turn" not in outside


async def test_a_failing_tool_and_what_it_logs_carry_the_turn(
    sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging(level="INFO", style="json")

    @tool
    def fail() -> None:
        """Fail, in a thread."""
        logging.getLogger("mine").info("about to fail")
        raise LookupError("gone")

    service = AgentService(
        FunctionsBasedAgent([fail], ScriptedChatLLM([ToolCall("1", "fail"), "sorry"])), sqlite_storage
    )
    context = await AgentContext.get_or_create(sqlite_storage, {"chat": "1"})
    await service.prompt(context, "go")
    read = [json.loads(line) for line in stream.getvalue().splitlines()]
    of_the_turn = {each["event"]: each["turn"] for each in read if "tokens" not in each["logger"]}
    assert of_the_turn == {"about to fail": context.turn_id, "tool.failed": context.turn_id}


def test_no_secret_is_in_any_part_of_a_line(lines: io.StringIO) -> None:
    register_secret(SECRET)
    logger = logging.getLogger("botservice.x")
    try:
        int(f"at {SECRET}")
    except ValueError:
        logger.exception("failed with %s", SECRET, extra={"url": f"https://x/{SECRET}", "values": [SECRET]})
    text = lines.getvalue()
    assert "swordfish" not in text
    assert "ValueError" in text
    assert text.count("[secret]") >= 3


@pytest.mark.parametrize(
    "spelling", [SECRET, json.dumps(SECRET), repr(SECRET), "swordfish%20%22%C3%BCnder%22%20water/42"]
)
def test_a_secret_is_known_in_every_spelling(spelling: str) -> None:
    register_secret(SECRET)
    assert "swordfish" not in redact(f"before {spelling} after")


@pytest.mark.parametrize("value", [None, "", "short", "ollama", "postgres"])
def test_what_is_no_secret_stays(value: str | None) -> None:
    register_secret(value)
    assert redact(f"a {value} b") == f"a {value} b"


def test_a_secret_within_another_leaves_nothing_of_it() -> None:
    register_secret("open-sesame")
    register_secret("open-sesame-and-more")
    assert redact("open-sesame-and-more") == "[secret]"


def test_line_breaks_do_not_make_lines(lines: io.StringIO) -> None:
    logging.getLogger("botservice.x").warning("first\nsecond", extra={"reason": "a\nb"})
    assert len(lines.getvalue().splitlines()) == 1


def test_facts_do_not_hide_the_fields_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging(level="INFO", style="json")
    logging.getLogger("x").warning("real", extra={"event": "fake", "level": "fake"})
    read = json.loads(stream.getvalue())
    assert (read["event"], read["level"], read["event_"]) == ("real", "WARNING", "fake")


def test_configuring_again_replaces_our_handler_and_no_other(lines: io.StringIO) -> None:
    theirs = logging.NullHandler()
    root = logging.getLogger()
    root.addHandler(theirs)
    before = len(root.handlers)
    configure_logging(level="ERROR", style="text")
    assert len(root.handlers) == before
    assert theirs in root.handlers
    logging.getLogger("x").warning("quiet")
    assert lines.getvalue() == ""


def test_libraries_that_log_addresses_are_kept_quiet(lines: io.StringIO) -> None:
    configure_logging(level="DEBUG", style="text")
    for name in ("httpx", "telegram", "openai", "uvicorn.error"):
        logging.getLogger(name).info("GET https://api.telegram.org/bot1:token/getMe")
    assert lines.getvalue() == ""


def _fail_as_the_database_does(times: int) -> None:
    error = StorageUnavailable("the database did not take a write: connection refused")
    for number in range(times):
        if number % 2:
            logging.getLogger("botservice.x").error("turn.failed", exc_info=error)
        else:
            logging.getLogger("botservice.y").warning("worker.storage_unavailable", extra={"reason": str(error)})


def test_an_outage_is_one_line_then_one_a_minute_with_a_count_and_one_at_its_end(
    lines: io.StringIO, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("botservice.telemetry.logs.time.monotonic", lambda: now[0])
    _fail_as_the_database_does(500)
    assert lines.getvalue().count("\n") == 1
    assert "connection refused" in lines.getvalue()
    logging.getLogger("botservice.x").warning("model.failed")
    assert "model.failed" in lines.getvalue(), "what has nothing to do with it is written"
    now[0] += 61.0
    _fail_as_the_database_does(101)
    second = lines.getvalue().splitlines()[2:]
    assert len(second) == 1
    assert ("lines_kept_back=499" if style == "text" else '"lines_kept_back": 499') in second[0]
    logging.getLogger("botservice.storage").warning(BACK)
    assert ("lines_kept_back=100" if style == "text" else '"lines_kept_back": 100') in lines.getvalue().splitlines()[3]
    _fail_as_the_database_does(2)
    assert len(lines.getvalue().splitlines()) == 5, "the next outage is told at once"
    assert "Traceback" not in lines.getvalue()


def test_what_any_module_says_while_it_deals_with_an_outage_counts_as_one_of_its_lines(lines: io.StringIO) -> None:
    logger = logging.getLogger("botservice.tests")
    for _ in range(3):
        try:
            raise StorageUnavailable("the database is away")  # noqa: TRY301 - as a read does
        except StorageUnavailable as error:
            logger.warning("observer.postponed", extra={"reason": str(error)})
    try:
        raise UnsuitablePooler("a pooler in transaction mode")
    except StorageUnavailable as error:
        logger.warning("storage.refused", extra={"reason": str(error)})
    logger.warning("model.failed")
    said = lines.getvalue().splitlines()
    assert len(said) == 3
    assert all(
        word in line for word, line in zip(("observer.postponed", "storage.refused", "model.f"), said, strict=True)
    )
