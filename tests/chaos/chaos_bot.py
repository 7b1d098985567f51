"""The bot that the chaos suite works on: the one of the crash tests, with a clock that can be told to jump."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import crash_bot

from botservice import AgentService

_JUMP = Path(os.environ["CHAOS_CLOCK"])


def jumping_clock() -> datetime:
    """Return the time, wrong by as many seconds as the file says."""
    try:
        wrong_seconds = float(_JUMP.read_text() or 0)
    except (OSError, ValueError):  # it is being written
        wrong_seconds = 0.0
    return datetime.now(UTC) + timedelta(seconds=wrong_seconds)


service = AgentService(crash_bot.service.agent, clock=jumping_clock)
