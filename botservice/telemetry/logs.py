"""Log lines: ids and never texts, also in tracebacks, the turn in every line, no secret in any."""

import contextlib
import json
import logging
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO
from urllib.parse import quote

from botservice.core.errors import StorageUnavailable, UnsuitableDatabase
from botservice.telemetry.instrumentation import turn_now

BACK = "storage.back"
"""What is logged once a database that was away answers again."""
_OF_OUTAGES = (".storage_unavailable", "storage.connection_lost", "storage.not_listening", ".not_stored")
_OUTAGE_SECONDS = 60.0
_MOST_CAUSES = 10

_secrets: tuple[str, ...] = ()
_guard = threading.Lock()
_more_facts: Callable[[], Mapping[str, str]] | None = None
_SHORTEST_SECRET = 6
_MOST_FRAMES = 40
_OWN_PACKAGES = ("botservice.", "transports.")
# What people put where a local server or a database on their own machine wants something, whatever it is.
_NO_SECRETS = frozenset(
    {"botservice", "dummy-key", "lm-studio", "no-key", "not-needed", "ollama", "password", "postgres"}
)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "turn", "taskName", "color_message"}
_CHATTY = (
    *("alembic", "httpcore", "httpcore2", "httpx", "httpx2", "openai", "opentelemetry"),
    *("slack_bolt", "slack_sdk", "telegram", "urllib3", "uvicorn"),
)
# The client of MCP servers writes down what goes over the wire, and the garbage that comes; our own events say enough.
_SILENT = ("client", "mcp")


def register_secret(secret: str | None) -> None:
    """Register a secret to be masked in log lines and by `redact`, also as JSON, repr or a URL spell it."""
    global _secrets  # noqa: PLW0603 - one tuple, replaced whole: readers in other threads need no lock
    if not secret or len(secret) < _SHORTEST_SECRET or secret.lower() in _NO_SECRETS:
        return
    spellings = {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret), quote(secret, safe="")}
    with _guard:
        _secrets = tuple(sorted({*_secrets, *spellings}, key=len, reverse=True))


def redact(text: str) -> str:
    """Return text with every registered secret replaced."""
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, "[secret]")
    return text


def find_registered(text: str) -> Iterator[tuple[int, int]]:
    """Yield where registered secrets begin and end in a text."""
    for secret in _secrets:
        begin = text.find(secret)
        while begin >= 0:
            yield begin, begin + len(secret)
            begin = text.find(secret, begin + len(secret))


@contextlib.contextmanager
def telling(facts: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """Add what facts returns to every log line inside the block."""
    global _more_facts  # noqa: PLW0603 - one function for the process, like the handler
    _more_facts = facts
    try:
        yield
    finally:
        _more_facts = None


def configure_logging(*, level: str, style: str) -> None:
    """Log to standard error; a second call takes the place of the first.

    Args:
        level: DEBUG, INFO, WARNING or ERROR.
        style: text or json, one line each; a traceback follows its line in text.
    """
    handler = _Handler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if style == "json" else _TextFormatter())
    handler.addFilter(_Outage())
    handler.addFilter(_add_turn)
    root = logging.getLogger()
    root.handlers[:] = [*(each for each in root.handlers if not isinstance(each, _Handler)), handler]
    root.setLevel(level)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    for silent in _SILENT:
        logging.getLogger(silent).setLevel(logging.CRITICAL)


def logs_json() -> bool:
    """Return whether each line of the log is a JSON object."""
    return any(isinstance(each.formatter, _JsonFormatter) for each in logging.getLogger().handlers)


class _Outage:
    """Passes one line when the database goes away, and then one a minute that says how many it stands for.

    Everything that needs the database fails meanwhile, each in its own words and with its own traceback.
    """

    def __init__(self) -> None:
        self._told_at: float | None = None
        self._kept_back = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        if record.msg == BACK:
            record.lines_kept_back, self._kept_back = self._kept_back, 0
            self._told_at = None
            return True
        error = _find_unavailable(record.exc_info[1] if record.exc_info else None)
        if error is None and not str(record.msg).endswith(_OF_OUTAGES) and not _is_handling_outage(record):
            return True
        if self._told_at is not None and time.monotonic() - self._told_at < _OUTAGE_SECONDS:
            self._kept_back += 1
            return False
        if error is not None:  # where in the program it came up says nothing about the database
            record.exc_info = record.exc_text = None
            record.reason = str(error)
        if self._kept_back:
            record.lines_kept_back, self._kept_back = self._kept_back, 0
        self._told_at = time.monotonic()
        return True


def _is_handling_outage(record: logging.LogRecord) -> bool:
    """Return whether a line is written where it is dealt with that the database is away, in whatever words."""
    handled = sys.exc_info()[1]
    is_outage = isinstance(handled, StorageUnavailable) and not isinstance(handled, UnsuitableDatabase)
    return is_outage and record.levelno >= logging.WARNING


def _find_unavailable(error: BaseException | None) -> StorageUnavailable | None:
    for _ in range(_MOST_CAUSES):
        if error is None or isinstance(error, StorageUnavailable):
            return error
        error = error.__cause__ or error.__context__
    return None


class _Handler(logging.StreamHandler[TextIO]):
    """The handler that `configure_logging` installs, once in a process."""


def _add_turn(record: logging.LogRecord) -> bool:
    turn = turn_now()
    record.turn = None if turn is None else turn.turn_id
    if _more_facts is not None:
        vars(record).update(_more_facts())
    return True


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    facts = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    turn = getattr(record, "turn", None)
    return facts if turn is None else {"turn": turn, **facts}


def _event(record: logging.LogRecord) -> str:
    """Return the event of a log line, without the words of errors that the event loop spells out."""
    event = record.getMessage()
    return event.partition("\n")[0] if record.name == "asyncio" else event


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        facts = "".join(f" {key}={_in_one_line(value)}" for key, value in _facts(record).items())
        event = _event(record).replace("\n", "\\n")
        line = f"{time} {record.levelname:<7} {record.name} {event}{facts}"
        if record.exc_info and record.exc_info[1] is not None:
            line = f"{line}\n{format_error(record.exc_info[1])}"
        return redact(line)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "event": _event(record),
        }
        line |= {f"{key}_" if key in line else key: value for key, value in _facts(record).items()}
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = format_error(record.exc_info[1])
        return redact(json.dumps(line, default=str))


def _in_one_line(value: object) -> str:
    text = redact(str(value))  # before it is quoted
    return text if text.isprintable() and " " not in text else json.dumps(text, ensure_ascii=False)


def format_error(error: BaseException) -> str:
    """Return an error with the lines of code that led to it, and with what it came of.

    What it says is left out: tools and libraries repeat in it what people wrote. Errors of this program say only what
    may be logged.
    """
    return "\n".join(_traceback_lines(error, set()))


def _traceback_lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    source = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if source is not None and id(source) not in seen:
        yield from _traceback_lines(source, seen)
        yield "which led to:"
    yield "Traceback (most recent call last):"
    for frame in traceback.format_tb(error.__traceback__, limit=-_MOST_FRAMES):
        yield frame.rstrip("\n")
    yield _error_name(error)
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            if id(each) not in seen:
                yield textwrap.indent("\n".join(_traceback_lines(each, seen)), "  | ")


def _error_name(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    says = str(error) if kind.__module__.startswith(_OWN_PACKAGES) else ""
    return f"{name}: {says}" if says else name
