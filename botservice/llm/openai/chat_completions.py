"""Requests of /chat/completions, and reading what it answers, whole or in pieces, in the variants of its servers.

`tests/data/answers` holds a recorded answer for each variant.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from botservice.core.errors import LLMError
from botservice.core.messages import TokenUsage
from botservice.llm.chat import ChatMessage, ChatResponse, FinishReason, ModelItem, SaidMessage, TextSink, ToolSchema
from botservice.llm.openai.answer_parts import CallAssembler, PartialCall, as_text, merge, read_calls, read_usage
from botservice.llm.openai.error_table import (
    ALTERNATING_ROLES,
    LATER_SYSTEM,
    REASONING_BACK,
    SCHEMA,
    SIGNATURE_BACK,
    STREAM,
    SYSTEM_ROLE,
)
from botservice.llm.openai.errors import reported, unanswered
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.prompt_caching import KEY, CacheMarks, marked
from botservice.llm.openai.thinking import ThinkingFilter, ends_alone

_GIVEN: Final = "chat_message"
_NO_REASONING: Final = " "  # Kimi takes no empty text, and DeepSeek takes this one
# For calls of another model. Source: Google, Gemini API, "Thought signatures".
_NO_SIGNATURE: Final = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_MARKABLE: Final = ("system", "developer", "user", "tool")


def build_body(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolSchema],
    options: CallOptions,
    *,
    refused_seals: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the body of a request. What nobody asked for is not in it: other servers refuse what they do not know.

    Args:
        refused_seals: What came with earlier answers and the server does not take: their messages go without it.
    """
    marks = CacheMarks.of(messages, options)
    shown = [_as_given(message, options, refused_seals) for message in messages]
    for place in marks.breakpoints:
        shown[place] = _marked(shown[place])
    body: dict[str, Any] = {"model": options.model, "stream": STREAM not in options.refused}
    if functions := [tool for tool in tools if tool.get("type") == "function"]:
        body["tools"] = functions  # what a server runs itself is there by Responses alone
    if body["stream"] and "stream_options" not in options.refused:
        body["stream_options"] = {"include_usage": True}
    if options.max_answer_tokens is not None:
        is_older = "max_completion_tokens" in options.refused
        body["max_tokens" if is_older else "max_completion_tokens"] = options.max_answer_tokens
    if options.reasoning_effort is not None:
        body["reasoning_effort"] = options.reasoning_effort
    if options.temperature is not None and "temperature" not in options.refused:
        body["temperature"] = options.temperature
    if options.schema is not None and SCHEMA not in options.refused:
        form = {"name": options.schema.name, "strict": True, "schema": options.schema.schema}
        body[SCHEMA] = {"type": "json_schema", "json_schema": form}
    if marks.key is not None:
        body[KEY] = marks.key
    # Last, so that a request begins as the one before it did.
    body["messages"] = _arranged(shown, options.refused) if options.refused else shown
    return body


def chat_item(
    options: CallOptions, fields: Mapping[str, Any], of_calls: Sequence[Mapping[str, Any]], thinking: str
) -> ModelItem:
    """Return what is kept of an answer next to its words: what its server wants to read again, and what it thought.

    Args:
        fields: Those of the message that chat.completions does not know, such as `reasoning_content`.
        of_calls: Those of each call.
        thinking: What stood in the text.
    """
    item: dict[str, Any] = {"type": _GIVEN, "model": options.model, "server": urlsplit(options.base_url).hostname}
    if fields:
        item["fields"] = dict(fields)
    if any(of_calls):
        item["calls"] = [dict(each) for each in of_calls]
    return {**item, "thinking": thinking} if thinking else item


def seals(messages: Sequence[ChatMessage], options: CallOptions, refused_seals: frozenset[str]) -> frozenset[str]:
    """Return what tells apart what goes back with the messages of earlier steps."""
    found = (_given(message, options) for message in messages)
    return frozenset(_seal(item) for item in found if item is not None) - refused_seals


def _given(message: ChatMessage, options: CallOptions) -> ModelItem | None:
    """Return what came with a message, if it was this model of this server that gave it."""
    if not isinstance(message, SaidMessage):
        return None
    origin = (_GIVEN, options.model, urlsplit(options.base_url).hostname)
    items = (item for item in message.items_given if item.get("fields") or item.get("calls"))
    return next((item for item in items if (item.get("type"), item.get("model"), item.get("server")) == origin), None)


def _seal(item: ModelItem) -> str:
    return hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest()


def _as_given(message: ChatMessage, options: CallOptions, refused_seals: frozenset[str]) -> ChatMessage:
    """Return an assistant's message with what came with it."""
    item = _given(message, options)
    if item is None or (refused_seals and _seal(item) in refused_seals):
        return message
    fields = {name: value for name, value in (item.get("fields") or {}).items() if name not in options.refused}
    calls, of_calls = message.get("tool_calls") or (), item.get("calls") or ()
    if len(calls) != len(of_calls):
        return {**message, **fields}
    known = [{name: value for name, value in each.items() if name not in options.refused} for each in of_calls]
    return {**message, **fields, "tool_calls": [{**call, **each} for call, each in zip(calls, known, strict=True)]}


def _arranged(messages: Sequence[ChatMessage], refused: frozenset[str]) -> list[ChatMessage]:
    """Return messages in the order, and with the fields, that the server has asked for by its refusals."""
    arranged = list(messages)
    if refused & {LATER_SYSTEM, SYSTEM_ROLE}:
        arranged = list(_without_system(arranged, keeps_first=SYSTEM_ROLE not in refused))
    if REASONING_BACK in refused:
        arranged = [
            {"reasoning_content": _NO_REASONING, **each} if each["role"] == "assistant" else each for each in arranged
        ]
    if SIGNATURE_BACK in refused:
        arranged = [_signed(each) for each in arranged]
    return merge_consecutive(arranged) if ALTERNATING_ROLES in refused else arranged


def _without_system(messages: Sequence[ChatMessage], *, keeps_first: bool) -> Iterator[ChatMessage]:
    """Yield messages with those of the system said by the user, but for the first ones, which are made into one."""
    begun: list[ChatMessage] = []
    for message in messages:
        if message["role"] not in ("system", "developer"):
            yield from merge_consecutive(begun, "system")
            begun = []
            keeps_first = False
            yield message
        elif keeps_first:
            begun.append(message)
        else:
            yield {**message, "role": "user"}
    yield from merge_consecutive(begun, "system")


def _signed(message: ChatMessage) -> ChatMessage:
    calls = message.get("tool_calls")
    if not calls or calls[0].get("extra_content"):
        return message
    return {**message, "tool_calls": [{**calls[0], "extra_content": _NO_SIGNATURE}, *calls[1:]]}


def _marked(message: ChatMessage) -> ChatMessage:
    if message["role"] not in _MARKABLE or not message.get("content"):
        return message
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": marked(parts)}


def merge_consecutive(messages: Sequence[ChatMessage], role: str = "user") -> list[ChatMessage]:
    """Return messages with those of a role that follow one another made into one."""
    joined: list[ChatMessage] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == role:
            joined[-1] = {**joined[-1], "content": _joined(joined[-1]["content"], message["content"])}
        else:
            joined.append(message)
    return joined


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


# Source: the API references of OpenAI, DeepSeek, Mistral, Anthropic, Gemini, OpenRouter, Zhipu; vLLM and SGLang.
_IS_CUT: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "token_limit"}
)
_IS_FILTERED: Final = frozenset(
    {"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii", "sensitive", "refusal"}
    | {"guardrail_intervened", "content_filtered", "image_safety"}
)
_IS_BROKEN: Final = frozenset(
    {"error", "insufficient_system_resource", "abort", "aborted", "cancelled", "canceled", "network_error", "timeout"}
    | {"malformed_function_call", "unexpected_tool_call", "engine_error", "server_error", "failed"}
)
_KNOWN: Final = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "annotations", "audio", "name", "logprobs", "id"}
    | {"object", "index", "type", "parsed", "token_ids", "images", "tool_call_id"}
)
_REASONING: Final = ("reasoning_content", "reasoning")
_OF_TEXT: Final = ("text", "output_text")
_OF_THOUGHT: Final = ("thinking", "reasoning")


class ChatAnswer:
    """An answer that arrives, in pieces or at once.

    Attributes:
        is_over: Whether nothing more is to come.
    """

    def __init__(
        self, on_text: TextSink | None = None, options: CallOptions | None = None, tools: Sequence[ToolSchema] = ()
    ) -> None:
        self.is_over = False
        self._on_text = on_text
        self._options = options
        self._tools = tools
        self._text: list[str] = []
        self._filter = ThinkingFilter(ends_alone=options is not None and ends_alone(options.model))
        self._thoughts: list[str] = []
        self._extras: dict[str, Any] = {}
        self._assembler = CallAssembler()
        self._usage: TokenUsage | None = None
        self._model: str | None = None
        self._index: object = None
        self._reason: str | None = None
        self._is_refused = False

    @property
    def is_complete(self) -> bool:
        """Whether all of the answer is there; what may still come is figures and the end of the stream."""
        return self._reason is not None

    @property
    def has_text(self) -> bool:
        """Whether a person may have seen the beginning of it."""
        return bool(self._text)

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take the next piece.

        Raises:
            LLMError: it says that something went wrong.
        """
        if usage := chunk.get("usage"):  # in one piece of many
            self._usage = read_usage(usage, given="prompt", made="completion") or self._usage
        self._model = chunk.get("model") or self._model
        choices = chunk.get("choices")
        if not choices:
            return
        choice = choices[0]
        if choice.get("error"):
            raise reported(choice)
        index = choice.get("index")
        if self._index is None:
            self._index = index
        if index != self._index and index is not None:  # another answer, which nobody has asked for
            return
        self._reason = choice.get("finish_reason") or self._reason
        delta = choice.get("delta")
        if message := choice.get("message") if delta is None else delta:
            self._add_message(message)

    def add_whole(self, completion: Mapping[str, Any]) -> None:
        """Take an answer that came in one piece.

        Raises:
            LLMError: there is none in it.
        """
        if completion.get("error") or not completion.get("choices"):
            raise unanswered(completion, "the model's answer has no choices")
        self.add(completion)
        self._reason = self._reason or FinishReason.STOP

    def end(self) -> None:
        """Take note that the server says that this was all."""
        self.is_over = True
        if self._text or self._assembler.calls:
            self._reason = self._reason or FinishReason.STOP

    def response(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            LLMError: it broke off.
        """
        reason = (self._reason or "").lower()
        if not reason:
            raise LLMError("the model's answer broke off")
        if reason in _IS_BROKEN:
            raise LLMError(f"the model's server broke off its answer ({reason})")
        self._append(self._filter.finish())
        parts = self._calls()
        names = [tool["function"]["name"] for tool in self._tools if tool.get("type") == "function"]
        calls = read_calls(((call.id, call.name, call.arguments) for call in parts), names)
        return ChatResponse(
            "".join(self._text),
            calls,
            self._usage,
            self._model,
            self._end(reason, has_calls=bool(calls)).value,
            self._items(),
        )

    def _end(self, reason: str, *, has_calls: bool) -> FinishReason:
        if reason in _IS_CUT:
            return FinishReason.LENGTH
        if reason in _IS_FILTERED:
            return FinishReason.FILTERED if self._text and not self._is_refused else FinishReason.REFUSAL
        if self._is_refused:
            return FinishReason.REFUSAL
        return FinishReason.TOOL_CALLS if has_calls else FinishReason.STOP

    def _items(self) -> tuple[ModelItem, ...]:
        """Return what came next to the answer, for the step: the same model may want to read it again."""
        of_calls = [call.extras for call in self._calls()]
        thinking = "".join([*self._thoughts, self._filter.thinking]).strip()
        if self._options is None or not (self._extras or thinking or any(of_calls)):
            return ()
        return (chat_item(self._options, self._extras, of_calls, thinking),)

    def _add_message(self, message: Mapping[str, Any]) -> None:
        refusal = message.get("refusal")
        self._is_refused = self._is_refused or bool(refusal)
        if content := message.get("content") or refusal:
            if isinstance(content, str):
                self._append(self._filter.feed(content))
            else:
                self._add_parts([content] if isinstance(content, Mapping) else content)
        if parts := message.get("tool_calls"):
            self._assembler.add(part for part in parts if isinstance(part, Mapping))
        if function := message.get("function_call"):  # as it was before there were several at a time
            self._assembler.add([{"function": function}])
        if _KNOWN.issuperset(message):
            return
        for name, value in message.items():
            if name not in _KNOWN and value:
                self._extras[name] = merge(self._extras.get(name), value)
                if name in _REASONING:
                    self._append(self._filter.see_reasoning())

    def _add_parts(self, parts: Sequence[Any]) -> None:
        """Take content that is a list: of texts, and of what the model thinks (Mistral)."""
        for part in parts:
            if isinstance(part, str):
                self._append(self._filter.feed(part))
            elif not isinstance(part, Mapping):
                continue
            elif part.get("type", "text") in _OF_TEXT:
                self._append(self._filter.feed(as_text(part.get("text"))))
            elif part.get("type") == "refusal":
                self._is_refused = True
                self._append(as_text(part.get("refusal")))
            elif part.get("type") in _OF_THOUGHT:
                self._thoughts.append(_thought(part))

    def _calls(self) -> list[PartialCall]:
        return [call for call in self._assembler.calls if call.name or call.arguments]

    def _append(self, piece: str) -> None:
        if piece:
            self._text.append(piece)
            if self._on_text is not None:
                self._on_text(piece)


def _thought(part: Mapping[str, Any]) -> str:
    """Return what a part of a content says of the model's thinking: a text, or a list of parts with texts."""
    said = part.get("thinking") or part.get("text") or part.get("reasoning") or ""
    if isinstance(said, str):
        return said
    return "".join(as_text(each.get("text")) for each in said if isinstance(each, Mapping))
