"""Reading what /chat/completions answers, whole or in pieces, with the limits of the servers that exist."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botservice.errors import LLMError
from botservice.llm.chat import ChatResponse, FinishReason, TextSink
from botservice.llm.openai.answer_parts import as_text, read_calls, read_usage
from botservice.llm.openai.errors import reported
from botservice.messages import TokenUsage

_REASONS: Final = {"length": FinishReason.LENGTH, "content_filter": FinishReason.REFUSAL}


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ChatAnswer:
    """An answer that arrives, in pieces or at once.

    Attributes:
        is_over: Whether nothing more is to come.
    """

    def __init__(self, on_text: TextSink | None = None) -> None:
        self.is_over = False
        self._on_text = on_text
        self._text: list[str] = []
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._usage: TokenUsage | None = None
        self._model: str | None = None
        self._reason: str | None = None
        self._is_refused = False

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take the next piece."""
        self._note(chunk)
        if choices := chunk.get("choices"):
            choice = choices[0]
            self._reason = choice.get("finish_reason") or self._reason
            if delta := choice.get("delta"):
                self._add_message(delta)

    def add_whole(self, completion: Mapping[str, Any]) -> None:
        """Take an answer that came in one piece.

        Raises:
            LLMError: there is none in it.
        """
        if error := completion.get("error"):
            raise reported(error)
        if not completion.get("choices"):
            raise LLMError("the model's answer has no choices")
        self._note(completion)
        choice = completion["choices"][0]
        self._reason = choice.get("finish_reason") or FinishReason.STOP
        message = choice["message"]
        calls = [{**call, "index": number} for number, call in enumerate(message.get("tool_calls") or ())]
        self._add_message({**message, "tool_calls": [call for call in calls if call.get("function") is not None]})

    def end(self) -> None:
        """Take note that the server says that this was all."""
        self.is_over = True

    def response(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            LLMError: it broke off.
        """
        if not self._reason:
            raise LLMError("the model's answer broke off")
        calls = read_calls((call.id, call.name, "".join(call.arguments)) for call in self._calls)
        reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        if self._is_refused:
            reason = FinishReason.REFUSAL
        return ChatResponse(
            "".join(self._text), calls, self._usage, self._model, _REASONS.get(self._reason, reason).value
        )

    def _note(self, chunk: Mapping[str, Any]) -> None:
        if usage := chunk.get("usage"):  # in one piece of many
            self._usage = read_usage(usage, given="prompt", made="completion") or self._usage
        self._model = chunk.get("model") or self._model

    def _add_message(self, delta: Mapping[str, Any]) -> None:
        refusal = delta.get("refusal")
        self._is_refused = self._is_refused or bool(refusal)
        if piece := delta.get("content") or refusal:
            self._text.append(piece)
            if self._on_text is not None:
                self._on_text(piece)
        for part in delta.get("tool_calls") or ():
            self._add_call(part)

    def _add_call(self, part: Mapping[str, Any]) -> None:
        call = self._find_call(part)
        call.id = call.id or part.get("id") or ""
        function = part.get("function")
        if function is not None:
            call.name = call.name or function.get("name") or ""
            call.arguments.append(as_text(function.get("arguments")))

    def _find_call(self, part: Mapping[str, Any]) -> _PartialCall:
        """Return the call that a part belongs to.

        Some servers leave the index out, or give every call the index 0: a part that brings a name and another id
        begins a call, too.
        """
        given = part.get("index")
        index = -1 if given is None else given
        known = self._by_index.get(index)
        call_id = part.get("id")
        begins = bool(call_id and (part.get("function") or {}).get("name"))
        if known is None or (begins and known.id and call_id != known.id):
            known = self._by_index[index] = _PartialCall()
            self._calls.append(known)
        return known
