"""One call of a model: what is sent, and what is sent instead where the server refuses that."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from botservice.core.errors import LLMError, LLMFailure
from botservice.llm.chat import ChatMessage, TextSink, ToolSchema
from botservice.llm.openai import chat_completions, responses
from botservice.llm.openai.chat_completions import ChatAnswer
from botservice.llm.openai.error_table import (
    ALTERNATING_ROLES,
    CALL_IDS,
    CALLS_ALONE,
    CHAT_PATH,
    INCLUDE,
    LATER_SYSTEM,
    MESSAGE_FIELDS,
    MISSING_PATH,
    ONE_IMAGE,
    REASONING_BACK,
    SCHEMA,
    SIGNATURE_BACK,
    STREAM,
    SYSTEM_ROLE,
    TOOLS,
    WEB_SEARCH,
)
from botservice.llm.openai.message_forms import (
    digests,
    find_left_out,
    find_types,
    is_input,
    newest_digests,
    with_calls_as_text,
    with_short_ids,
    without_input,
)
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.prompt_caching import BREAKPOINT, KEY, copy_marks
from botservice.llm.openai.responses import ResponsesAnswer
from botservice.llm.server_limits import ServerLimits, Wire

OpenAIAnswer: TypeAlias = ChatAnswer | ResponsesAnswer
"""What reads an answer of either wire."""

logger = logging.getLogger(__name__)

# What a request can do without, or can be written without.
_CAN_BE_LEFT_OUT: Final = frozenset(
    {"stream_options", "max_completion_tokens", "max_tool_calls", "temperature"}
    | {KEY, BREAKPOINT, INCLUDE, SCHEMA, WEB_SEARCH, ALTERNATING_ROLES, LATER_SYSTEM, SYSTEM_ROLE}
    | {CALL_IDS, CALLS_ALONE, REASONING_BACK, SIGNATURE_BACK, STREAM, TOOLS, *MESSAGE_FIELDS}
)
_POINTS_TO_OTHER: Final = {Wire.CHAT: CHAT_PATH, Wire.RESPONSES: MISSING_PATH}
"""By what an API is refused where the other one may be there."""
_REFUSING_ITEMS: Final = (400, 404, 422)


class OpenAICall:
    """A request that is made again where its server refuses it.

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
        self._answer: OpenAIAnswer | None = None
        self._left_wire: LLMError | None = None
        self._left_out: frozenset[str] = frozenset()
        self._gone_without: dict[str, str | None] = {}

    @property
    def path(self) -> str:
        """The path of the request."""
        return self.wire.path

    def body(self) -> dict[str, Any]:
        """Return the body of the request."""
        build = chat_completions.build_body if self.wire is Wire.CHAT else responses.build_body
        seals = self._limits.refused_seals | self._left_out
        messages, tools, refused = self._messages, self._tools, self._options.refused
        if refused:
            messages = self._in_the_form_asked_for(refused)
            tools = () if TOOLS in refused else tools
        return build(messages, tools, self._options, refused_seals=seals)

    def _in_the_form_asked_for(self, refused: frozenset[str]) -> Sequence[ChatMessage]:
        messages = self._messages
        if find_left_out(messages, refused):
            messages = copy_marks(messages, without_input(messages, refused))
        if CALLS_ALONE in refused and (not self._tools or TOOLS in refused):
            return copy_marks(messages, with_calls_as_text(messages))
        return copy_marks(messages, with_short_ids(messages)) if CALL_IDS in refused else messages

    def new_answer(self, on_text: TextSink | None, on_thought: TextSink | None) -> OpenAIAnswer:
        """Return a reader of the answer."""
        is_chat = self.wire is Wire.CHAT
        chat = partial(ChatAnswer, on_text, self._options, self._tools)
        self._answer = chat() if is_chat else ResponsesAnswer(on_text, on_thought)
        return self._answer

    def left_out(self) -> tuple[str, ...]:
        """Return what the request goes without, as `ChatResponse.left_out` has it."""
        return find_left_out(self._messages, self._options.refused) if self._options.refused else ()

    def adapt(self, error: LLMError) -> bool:
        """Return whether the request was changed so that it may be accepted.

        Raises:
            LLMError: the server has neither API; it is the refusal of the first.
        """
        if self._answer is not None and self._answer.has_text:
            return False
        return self._leave_out(error) or self._change_wire(error) or self._leave_out_items(error)

    def remember(self) -> None:
        """Remember what the server has accepted: only an answer shows that a refusal was about what was left out."""
        if types := find_types(self._messages, self._options.refused) - self._limits.taken_types:
            self._limits.taken_types |= types
        if self._gone_without:
            self._limits.refuse(self._gone_without)
        if self._left_out:
            self._limits.note_seals(self._left_out)
        if self._left_wire is not None:
            self._limits.refuse({self.wire.other.path: self._left_wire.wording})

    def _leave_out(self, error: LLMError) -> bool:
        """Make the request without what the server does not take, where there is a form without it."""
        name = error.refused
        if name is None or not (name in _CAN_BE_LEFT_OUT or is_input(name)) or name in self._options.refused:
            return False
        is_single = name == ONE_IMAGE or name in self._limits.taken_types
        names = self._pictures_refused() if is_single else frozenset({name})
        body = self.body()
        self._options = replace(self._options, refused=self._options.refused | names)
        if self.body() == body:  # it is about something else
            return False
        self._gone_without |= dict.fromkeys(names, error.wording)
        if name == WEB_SEARCH:
            logger.warning("model.no_web_search", extra={"model": self._options.model})
        return True

    def _pictures_refused(self) -> frozenset[str]:
        """Return the pictures of which one is refused: earlier ones were taken, so it is a new one, if that helps."""
        newest = newest_digests(self._messages, self._options.refused)
        return digests(self._messages) if self._gone_without.keys() & digests(self._messages) else newest

    def _change_wire(self, error: LLMError) -> bool:
        if error.refused != _POINTS_TO_OTHER[self.wire] or self._limits.is_wire_fixed:
            return False
        if self._left_wire is not None:
            raise self._left_wire
        self.wire, self._left_wire = self.wire.other, error
        return True

    def _leave_out_items(self, error: LLMError) -> bool:
        """Make the request without the items of earlier answers, where they may be what the server does not take."""
        if self._left_out or error.status_code not in _REFUSING_ITEMS or error.kind is not LLMFailure.BAD_REQUEST:
            return False
        find = chat_completions.seals if self.wire is Wire.CHAT else responses.seals
        self._left_out = find(self._messages, self._options, self._limits.refused_seals)
        return bool(self._left_out)
