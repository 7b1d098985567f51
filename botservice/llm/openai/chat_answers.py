"""Reading what /chat/completions answers, whole or in pieces, in the variants of the servers that exist.

`tests/data/answers` holds a recorded answer for each variant.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from botservice.core.errors import LLMError
from botservice.core.messages import TokenUsage
from botservice.llm.chat import ChatResponse, FinishReason, ModelItem, TextSink, ToolSchema
from botservice.llm.openai.answer_parts import CallAssembler, PartialCall, as_text, merge, read_calls, read_usage
from botservice.llm.openai.chat_wire import chat_item
from botservice.llm.openai.errors import reported, unanswered
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.thinking import ThinkingFilter, ends_alone

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
        """Whether somebody may have seen the beginning of it."""
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
        """Return what came beside the answer, for the step: the same model may want to read it again."""
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
