"""Logging: ids and never texts, the turn in every line, no secret in any."""

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

_turn: ContextVar[int | None] = ContextVar("turn", default=None)
_secrets: set[str] = set()
_SHORTEST_SECRET = 6
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "turn", "taskName", "color_message"}


def register_secret(secret: str | None) -> None:
    """Never let secret appear in a log line or in what `redact` returns."""
    if secret and len(secret) >= _SHORTEST_SECRET:
        _secrets.add(secret)


def redact(text: str) -> str:
    """Return text with every registered secret replaced."""
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, "[secret]")
    return text


@contextlib.contextmanager
def turn_logging(turn_id: int) -> Iterator[None]:
    """Put the turn's id into every log line that is written inside."""
    token = _turn.set(turn_id)
    try:
        yield
    finally:
        _turn.reset(token)


def configure_logging(*, level: str, style: str) -> None:
    """Log to standard error.

    Args:
        level: DEBUG, INFO, WARNING or ERROR.
        style: text or json, one line each.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if style == "json" else _TextFormatter())
    handler.addFilter(_add_turn)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for chatty in ("alembic", "httpx", "httpx2", "httpcore", "httpcore2", "openai", "slack_bolt", "slack_sdk", "uvicorn"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def _add_turn(record: logging.LogRecord) -> bool:
    record.turn = _turn.get()
    return True


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    facts = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    turn = getattr(record, "turn", None)
    return facts if turn is None else {"turn": turn, **facts}


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        line = f"{time} {record.levelname:<7} {record.name} {record.getMessage()}{facts}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return redact(line)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return redact(json.dumps(line, default=str))
