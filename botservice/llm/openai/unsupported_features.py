"""What a model's server does not accept, learned from its refusals, so that each is found out once."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from botservice.llm.openai.chat_wire import ALTERNATING_ROLES
from botservice.llm.openai.errors import failure_kind, is_missing_route, is_overflow
from botservice.llm.openai.prompt_caching import BREAKPOINT, KEY

if TYPE_CHECKING:
    import openai

_MOST_SEALS: Final = 10_000
_REFUSING: Final = (400, 422)
_REFUSING_ITEMS: Final = (400, 404, 422)
_MAY_BE_LEFT_OUT: Final = ("stream_options", "max_completion_tokens", "max_tool_calls", KEY, BREAKPOINT)
WEB_SEARCH: Final = "web_search"
# What names an answer's schema on either wire: where a server does not take one, the answer is asked for in words.
_OF_SCHEMA: Final = re.compile(
    r"response_format|text\.format|json_schema|structured.output|guided|grammar", re.IGNORECASE
)
_UNKNOWN: Final = re.compile(
    r"un(recogni|known|supported|expected)|extra|additional|not (permitted|allowed|support)", re.IGNORECASE
)
_NO_SEALS: Final = re.compile(r"encrypted.content is not supported|reasoning\.encrypted_content", re.IGNORECASE)
_ALTERNATE: Final = re.compile(r"roles? must alternate", re.IGNORECASE)
_RESPONSES: Final = re.compile(r"/v1/responses\b")


class Wire(StrEnum):
    """An API that models are asked by."""

    RESPONSES = "responses"
    CHAT = "chat"


class ServerLimits:
    """What one server and model accept, as far as their refusals have shown.

    Attributes:
        wire: The API that it is asked by.
        is_wire_fixed: Whether a setting names the API; otherwise a refusal may change it.
        refused: Fields that it does not accept.
        refused_seals: Encrypted reasoning that it does not accept.
    """

    def __init__(self, wire: Wire, *, is_wire_fixed: bool) -> None:
        self.wire = wire
        self.is_wire_fixed = is_wire_fixed
        self.refused: frozenset[str] = frozenset()
        self.refused_seals: frozenset[str] = frozenset()

    def note_seals(self, seals: Iterable[str]) -> None:
        """Add encrypted reasoning that the server has refused."""
        known = self.refused_seals if len(self.refused_seals) < _MOST_SEALS else frozenset()
        self.refused_seals = known.union(seals)


def other_wire(error: "openai.APIStatusError", wire: Wire) -> Wire | None:
    """Return the API that a refusal points to; None if it points to none."""
    if wire is Wire.CHAT:
        is_pointed_to = error.status_code == 400 and bool(_RESPONSES.search(str(error)))
        return Wire.RESPONSES if is_pointed_to else None
    return Wire.CHAT if is_missing_route(error) else None


def refuses_schema(error: "openai.APIStatusError") -> bool:
    """Return whether a server refuses the schema that an answer was asked for with."""
    return error.status_code in _REFUSING and bool(_OF_SCHEMA.search(str(error)))


def refused_field(error: "openai.APIStatusError", refused: frozenset[str]) -> str | None:
    """Return the field, or the form of a request, that a server refuses and that a request can go without.

    Args:
        refused: What is left out already.
    """
    text = str(error)
    if ALTERNATING_ROLES not in refused and _ALTERNATE.search(text):  # vLLM answers 400, llama.cpp 500
        return ALTERNATING_ROLES
    if error.status_code not in _REFUSING:
        return None
    if "include" not in refused and (error.param == "include" or _NO_SEALS.search(text)):
        return "include"
    if WEB_SEARCH not in refused and WEB_SEARCH in text:
        return WEB_SEARCH
    if not _UNKNOWN.search(text) and error.code != "unknown_parameter":
        return None
    return next((name for name in _MAY_BE_LEFT_OUT if name in text and name not in refused), None)


def may_be_about_items(error: "openai.APIStatusError") -> bool:
    """Return whether a request may be accepted without the items of earlier answers."""
    if error.status_code not in _REFUSING_ITEMS or is_overflow(error) or error.code == "model_not_found":
        return False
    return failure_kind(error).value == "bad_request"
