"""One call of a model: what is sent, and what is sent instead where the server refuses that."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from botservice.errors import LLMError
from botservice.llm.chat import ChatMessage, TextSink, ToolSchema
from botservice.llm.openai import chat_wire, responses_wire
from botservice.llm.openai.chat_answers import ChatAnswer
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.responses_answers import ResponsesAnswer
from botservice.llm.openai.unsupported_features import (
    WEB_SEARCH,
    ServerLimits,
    Wire,
    may_be_about_items,
    other_wire,
    refused_field,
    refuses_schema,
)

if TYPE_CHECKING:
    import openai

OpenAIAnswer: TypeAlias = ChatAnswer | ResponsesAnswer
"""What reads an answer of either wire."""

logger = logging.getLogger(__name__)


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
        if self.wire is Wire.CHAT:
            return chat_wire.build_body(self._messages, self._tools, self._options)
        return responses_wire.build_body(
            self._messages, self._tools, self._options, refused_seals=self._limits.refused_seals | self._left_out
        )

    def new_answer(self, on_text: TextSink | None, on_thought: TextSink | None) -> OpenAIAnswer:
        """Return a reader of the answer."""
        return ResponsesAnswer(on_text, on_thought) if self.wire is Wire.RESPONSES else ChatAnswer(on_text)

    def adapt(self, error: LLMError) -> bool:
        """Return whether the request was changed so that it may be accepted.

        Raises:
            LLMError: the server has neither API; it is the refusal of the first.
        """
        import openai

        cause = error.__cause__
        if not isinstance(cause, openai.APIStatusError):
            return False
        return (
            self._leave_out_schema(cause)
            or self._leave_out_field(cause)
            or self._change_wire(cause, error)
            or self._leave_out_items(cause)
        )

    def remember(self) -> None:
        """Remember what the server has accepted."""
        if self._left_out:
            self._limits.note_seals(self._left_out)
        if self._left_wire is not None:
            self._limits.wire = self.wire

    def _leave_out_schema(self, cause: "openai.APIStatusError") -> bool:
        fields = frozenset({chat_wire.SCHEMA, responses_wire.SCHEMA})
        if self._options.schema is None or fields <= self._options.refused or not refuses_schema(cause):
            return False
        self._limits.refused |= fields
        self._options = replace(self._options, refused=self._options.refused | fields)
        return True

    def _leave_out_field(self, cause: "openai.APIStatusError") -> bool:
        name = refused_field(cause, self._options.refused)
        if name is None:
            return False
        self._limits.refused |= {name}
        if name == WEB_SEARCH:
            logger.warning("model.no_web_search", extra={"model": self._options.model})
        self._options = replace(self._options, refused=self._options.refused | {name})
        return True

    def _change_wire(self, cause: "openai.APIStatusError", error: LLMError) -> bool:
        other = None if self._limits.is_wire_fixed else other_wire(cause, self.wire)
        if other is None:
            return False
        if self._left_wire is not None:
            raise self._left_wire
        self.wire, self._left_wire = other, error
        return True

    def _leave_out_items(self, cause: "openai.APIStatusError") -> bool:
        if self.wire is not Wire.RESPONSES or self._left_out or not may_be_about_items(cause):
            return False
        self._left_out = responses_wire.seals(self._messages, self._limits.refused_seals)
        return bool(self._left_out)
