"""The bot that the chaos suite works on: the one of the crash tests, on a machine whose clock can be set wrong.

Each of its calls to the model and to Telegram says which process makes it.
"""

import functools
import os
import time
from pathlib import Path
from typing import Any

import aiohttp
import crash_bot
import openai

from botservice.storage import postgres_clock as clock
from botservice.storage import writer

_CLOCK = Path("clock").absolute()  # in the replica's own folder: replicas may disagree
_HEADERS = {"x-process": os.environ["CHAOS_PROCESS"]}


def machine_time() -> float:
    """Return the seconds since 1970, wrong by as many as the file says."""
    try:
        wrong_seconds = float(_CLOCK.read_text() or 0)
    except (OSError, ValueError):  # it is being written
        wrong_seconds = 0.0
    return time.time() + wrong_seconds


def begin_request(session: aiohttp.ClientSession, *args: Any, **kwargs: Any) -> Any:
    """Do what the library under the clients of Telegram and Slack does, and name the process."""
    return _begin_request(session, *args, **kwargs | {"headers": dict(kwargs.get("headers") or {}) | _HEADERS})


_begin_request = aiohttp.ClientSession.request
aiohttp.ClientSession.request = begin_request
openai.AsyncOpenAI = functools.partial(openai.AsyncOpenAI, default_headers=_HEADERS)
writer.DatabaseClock = functools.partial(clock.DatabaseClock, own=machine_time)

service = crash_bot.service
