"""The models that a server has, and when they end: by its own word, or by a small table where it says nothing."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import quote

from botservice.core.errors import LLMError, LLMFailure
from botservice.llm.openai.http_client import OpenAIClients

TABLE_DATE: Final = date(2026, 11, 22)

_LIMIT_SECONDS: Final = 10.0
_SHUTDOWN: Final = "shutdown_date"
_UNKNOWN_CODE: Final = "model_not_found"
_SNAPSHOT: Final = re.compile(r"-\d{4}-\d\d-\d\d$")
# Source: OpenAI, "Deprecations", as of TABLE_DATE: names, the last day, and what OpenAI recommends instead.
_TABLE: Final = (
    (("gpt-5", "gpt-5-pro", "o3", "o3-pro"), date(2026, 12, 11), "gpt-6.1-sol"),
    (("gpt-5-mini",), date(2026, 12, 11), "gpt-6.1-terra"),
    (("gpt-5-nano",), date(2026, 12, 11), "gpt-6-luna"),
    (("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini"), date(2027, 1, 14), "gpt-6-luna"),
    (
        ("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize"),
        date(2027, 2, 26),
        "gpt-transcribe",
    ),
    (("gpt-5.1",), date(2027, 4, 1), None),
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a model is there, as its server says.

    Attributes:
        ends_on: Its last day, where one is announced.
        is_told: Whether the server says anything of that.
    """

    ends_on: date | None = None
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The end of a model.

    Attributes:
        on: The day from which on it answers no more.
        instead: The name of the model that is recommended for it.
    """

    on: date
    instead: str | None = None


def known_shutdown(model: str) -> Shutdown | None:
    """Return when a model of OpenAI's own API ends, as far as it was known at TABLE_DATE."""
    name = _SNAPSHOT.sub("", model)
    return next((Shutdown(on, instead) for names, on, instead in _TABLE if name in names), None)


async def read_catalogue(clients: OpenAIClients) -> Mapping[str, Lifetime]:
    """Return the names of a server's models, each with its lifetime.

    Raises:
        LLMError: the server does not say.
    """
    answer = await _get(clients, "/models", "")
    listed = answer.get("data")
    models = [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []
    return {str(model["id"]): _lifetime(model) for model in models if "id" in model}


async def read_model(clients: OpenAIClients, name: str) -> Lifetime:
    """Return the lifetime of a model.

    Raises:
        LLMError: the server does not say; where its kind is UNKNOWN_MODEL, because it has no such model.
    """
    try:
        answer = await _get(clients, f"/models/{quote(name, safe='')}", name)
    except LLMError as error:
        # Many servers list their models and have no such page: only a clear word counts.
        if error.kind is LLMFailure.UNKNOWN_MODEL and error.code != _UNKNOWN_CODE:
            raise LLMError(str(error), is_transient=False, kind=LLMFailure.BAD_REQUEST) from error
        raise
    return _lifetime(answer)


def _lifetime(model: Mapping[str, Any]) -> Lifetime:
    return Lifetime(read_date(model.get(_SHUTDOWN)), is_told=_SHUTDOWN in model)


async def _get(clients: OpenAIClients, path: str, name: str) -> dict[str, Any]:
    client = await clients.current()
    import openai

    from botservice.llm.openai.errors import translate

    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            answer = await client.get(path, cast_to=object)
    except TimeoutError as error:
        raise LLMError(f"the model's server did not answer within {_LIMIT_SECONDS:g} seconds") from error
    except openai.OpenAIError as error:
        raise translate(error, name) from error
    except ValueError as error:
        raise LLMError("the model's server answered no JSON", is_transient=False) from error
    return answer if isinstance(answer, dict) else {}


def read_date(value: Any) -> date | None:
    """Return the day that a server names as YYYY-MM-DD; None for anything else."""
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
