"""One call of a model: what is sent, and what is sent instead where the server refuses that."""

import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from botservice.errors import LLMError, LLMFailure
from botservice.llm.chat import ChatMessage, SaidMessage, TextSink, ToolSchema
from botservice.llm.openai import chat_wire, responses_wire
from botservice.llm.openai.chat_answers import ChatAnswer
from botservice.llm.openai.error_table import (
    ALTERNATING_ROLES,
    CALL_IDS,
    CHAT_PATH,
    INCLUDE,
    LATER_SYSTEM,
    MESSAGE_FIELDS,
    MISSING_PATH,
    REASONING_BACK,
    SCHEMA,
    SIGNATURE_BACK,
    SYSTEM_ROLE,
    WEB_SEARCH,
)
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.prompt_caching import BREAKPOINT, KEY
from botservice.llm.openai.responses_answers import ResponsesAnswer
from botservice.llm.openai.unsupported_features import ServerLimits, Wire

OpenAIAnswer: TypeAlias = ChatAnswer | ResponsesAnswer
"""What reads an answer of either wire."""

logger = logging.getLogger(__name__)

# What a request can do without, or can be written without.
_CAN_BE_LEFT_OUT: Final = frozenset(
    {"stream_options", "max_completion_tokens", "max_tool_calls", "temperature"}
    | {KEY, BREAKPOINT, INCLUDE, SCHEMA, WEB_SEARCH, ALTERNATING_ROLES, LATER_SYSTEM, SYSTEM_ROLE}
    | {CALL_IDS, REASONING_BACK, SIGNATURE_BACK, *MESSAGE_FIELDS}
)
_SHORT_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")
# A refusal that points to the other API.
_POINTS_TO: Final[dict[tuple[Wire, str | None], Wire]] = {
    (Wire.CHAT, CHAT_PATH): Wire.RESPONSES,
    (Wire.RESPONSES, MISSING_PATH): Wire.CHAT,
}
_REFUSING_ITEMS: Final = (400, 404, 422)


class OpenAICall:
    """A request that is made anew where its server refuses it.

    Attributes:
        wire: The API that the server is asked by.
    """

    def __init__(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema], options: CallOptions, limits: ServerLimits
    ) -> None:
        self.wire = limits.wire
        self._messages = messages
        self._tools = tools
        self._options = options
        self._limits = limits
        self._left_wire: LLMError | None = None
        self._left_out: frozenset[str] = frozenset()

    @property
    def path(self) -> str:
        """The path of the request."""
        return responses_wire.PATH if self.wire is Wire.RESPONSES else chat_wire.PATH

    def body(self) -> dict[str, Any]:
        """Return the body of the request."""
        build = chat_wire.build_body if self.wire is Wire.CHAT else responses_wire.build_body
        messages = _with_short_ids(self._messages) if CALL_IDS in self._options.refused else self._messages
        return build(messages, self._tools, self._options, refused_seals=self._limits.refused_seals | self._left_out)

    def new_answer(self, on_text: TextSink | None, on_thought: TextSink | None) -> OpenAIAnswer:
        """Return a reader of the answer."""
        if self.wire is Wire.RESPONSES:
            return ResponsesAnswer(on_text, on_thought)
        return ChatAnswer(on_text, self._options, self._tools)

    def adapt(self, error: LLMError) -> bool:
        """Return whether the request was changed so that it may be accepted.

        Raises:
            LLMError: the server has neither API; it is the refusal of the first.
        """
        return self._leave_out(error) or self._change_wire(error) or self._leave_out_items(error)

    def remember(self) -> None:
        """Remember what the server has accepted."""
        if self._left_out:
            self._limits.note_seals(self._left_out)
        if self._left_wire is not None:
            self._limits.wire = self.wire

    def _leave_out(self, error: LLMError) -> bool:
        """Make the request without what the server does not take, where there is a form without it."""
        name = error.refused
        if name not in _CAN_BE_LEFT_OUT or name in self._options.refused:
            return False
        body = self.body()
        self._options = replace(self._options, refused=self._options.refused | {name})
        if self.body() == body:  # it is about something else
            return False
        self._limits.refused |= {name}
        if name == WEB_SEARCH:
            logger.warning("model.no_web_search", extra={"model": self._options.model})
        return True

    def _change_wire(self, error: LLMError) -> bool:
        other = _POINTS_TO.get((self.wire, error.refused))
        if other is None or self._limits.is_wire_fixed:
            return False
        if self._left_wire is not None:
            raise self._left_wire
        self.wire, self._left_wire = other, error
        return True

    def _leave_out_items(self, error: LLMError) -> bool:
        """Make the request without the items of earlier answers, where they may be what the server does not take."""
        if self._left_out or error.status_code not in _REFUSING_ITEMS or error.kind is not LLMFailure.BAD_REQUEST:
            return False
        find = chat_wire.seals if self.wire is Wire.CHAT else responses_wire.seals
        self._left_out = find(self._messages, self._options, self._limits.refused_seals)
        return bool(self._left_out)


def _with_short_ids(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages with ids of calls that any server takes: nine letters and digits, the same ones for the same id.

    Source: Mistral's validation of requests. An id that is one stays.
    """
    return [_with_short_id(message) for message in messages]


def _with_short_id(message: ChatMessage) -> ChatMessage:
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _short_id(message["tool_call_id"])}
    if not message.get("tool_calls"):
        return message
    calls = [{**call, "id": _short_id(call["id"])} for call in message["tool_calls"]]
    changed = {**message, "tool_calls": calls}
    return SaidMessage(changed, message.items_given) if isinstance(message, SaidMessage) else changed


def _short_id(call_id: str) -> str:
    return call_id if _SHORT_ID.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]
