"""What a server says of the models that it has."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import quote

from botservice.errors import LLMError, LLMFailure
from botservice.llm.openai.clients import OpenAIClients
from botservice.llm.openai.shutdowns import read_date

_LIMIT_SECONDS: Final = 10.0
_SHUTDOWN: Final = "shutdown_date"
_UNKNOWN_CODE: Final = "model_not_found"


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a model is there, as its server says.

    Attributes:
        ends_on: Its last day, where one is announced.
        is_told: Whether the server says anything of that.
    """

    ends_on: date | None = None
    is_told: bool = False


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
    import openai

    from botservice.llm.openai.errors import translate

    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            answer = await clients.current().get(path, cast_to=object)
    except TimeoutError as error:
        raise LLMError(f"the model's server did not answer within {_LIMIT_SECONDS:g} seconds") from error
    except openai.OpenAIError as error:
        raise translate(error, name) from error
    except ValueError as error:
        raise LLMError("the model's server answered no JSON", is_transient=False) from error
    return answer if isinstance(answer, dict) else {}
