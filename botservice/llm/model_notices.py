"""What has to be done about the models in use: before one of them ends, and where one is not there."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from botservice.core.errors import LLMError, LLMFailure
from botservice.llm.openai.catalogue import Lifetime, Shutdown, known_shutdown, read_catalogue, read_model
from botservice.llm.openai.http_client import OpenAIClients
from botservice.llm.server_limits import is_openai

NOTICE_DAYS: Final = 60

_MOST_NEAR: Final = 3
_VERSION: Final = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?:-|$)")
# chat.completions of OpenAI's own API refuses function tools from this version on, unless nothing is thought.
_TOOLS_BY_RESPONSES_ONLY: Final = (5, 6)


@dataclass(frozen=True, slots=True)
class UsedModel:
    """A model in use.

    Attributes:
        setting: Where its name stands, such as OPENAI_MODEL.
        is_gateway: Whether a setting says that OpenAI's models are behind a server of another host.
        takes_tools_by_chat: Whether it thinks and is given tools by chat.completions, because it is configured so.
    """

    name: str
    setting: str
    clients: OpenAIClients
    is_gateway: bool = False
    takes_tools_by_chat: bool = False

    @property
    def is_openai(self) -> bool:
        """Whether OpenAI's models are behind its server."""
        return self.is_gateway or is_openai(self.clients.base_url)


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """Something that has to be done.

    Attributes:
        key: What it is about, whatever day it is.
        text: What is so and what to do, in one line.
    """

    key: str
    text: str


async def examine_models(models: Iterable[UsedModel], today: date) -> list[ModelNotice]:
    """Return what has to be done about models; what a server does not say is no reason to worry anybody."""
    of_server: dict[str, list[UsedModel]] = {}
    for model in models:
        of_server.setdefault(model.clients.base_url, []).append(model)
    return [notice for group in of_server.values() for notice in await _examine_server(group, today)]


async def _examine_server(models: Sequence[UsedModel], today: date) -> list[ModelNotice]:
    notices = []
    catalogue: Mapping[str, Lifetime] = {}
    try:
        catalogue = await read_catalogue(models[0].clients)
    except LLMError as error:
        notices += _key_notice(error, models[0].clients.base_url)
    for model in models:
        notices += await _examine(model, catalogue, today)
    return notices


async def _examine(model: UsedModel, catalogue: Mapping[str, Lifetime], today: date) -> list[ModelNotice]:
    lifetime = catalogue.get(model.name, Lifetime())
    if catalogue and model.name not in catalogue:
        try:
            lifetime = await read_model(model.clients, model.name)
        except LLMError as error:
            if error.kind is LLMFailure.UNKNOWN_MODEL:
                return [_unknown_notice(model, catalogue)]
    shutdown = _shutdown(model, lifetime)
    is_near = shutdown is not None and (shutdown.on - today).days <= NOTICE_DAYS
    return [*([_end_notice(model, shutdown, today)] if shutdown and is_near else []), *_tools_notice(model)]


def _shutdown(model: UsedModel, lifetime: Lifetime) -> Shutdown | None:
    """Return when a model ends: by what its server says, and where OpenAI's own says nothing, by the table."""
    known = known_shutdown(model.name.rpartition("/")[2])
    if lifetime.ends_on is not None:
        return Shutdown(lifetime.ends_on, known.instead if known else None)
    return known if model.is_openai and not lifetime.is_told else None


def _key_notice(error: LLMError, base_url: str) -> list[ModelNotice]:
    if error.status_code == 401:
        text = f"{base_url} does not know the key (401): set OPENAI_API_KEY to one that is valid there"
        return [ModelNotice("key", text)]
    if error.status_code == 403:
        text = (
            f"the key may not read the list of models at {base_url} (403), so nobody is told in time when one of them "
            "ends: give it that right, or another OPENAI_API_KEY"
        )
        return [ModelNotice("key", text)]
    return []


def _unknown_notice(model: UsedModel, names: Iterable[str]) -> ModelNotice:
    text = f"there is no model {model.name!r} at {model.clients.base_url}, or the key may not use it"
    near = difflib.get_close_matches(model.name, list(names), n=_MOST_NEAR)
    remedy = f"set {model.setting} to {' or '.join(near)}" if near else f"set {model.setting} to one that is there"
    return ModelNotice(f"unknown {model.name}", f"{text}: {remedy}")


def _end_notice(model: UsedModel, shutdown: Shutdown, today: date) -> ModelNotice:
    days = (shutdown.on - today).days
    left = "1 day" if days == 1 else f"{days} days"
    when = f"ends on {shutdown.on}, in {left}" if days > 0 else f"has ended on {shutdown.on}"
    remedy = f"set {model.setting} to {shutdown.instead or 'another one'}"
    return ModelNotice(f"end {model.name}", f"the model {model.name} {when}: {remedy}")


def _tools_notice(model: UsedModel) -> list[ModelNotice]:
    if not (model.takes_tools_by_chat and model.is_openai and _wants_responses(model.name)):
        return []
    text = f"the model {model.name} takes no tools by chat.completions: set OPENAI_API=auto"
    return [ModelNotice(f"tools {model.name}", text)]


def _wants_responses(name: str) -> bool:
    found = _VERSION.match(name)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _TOOLS_BY_RESPONSES_ONLY
