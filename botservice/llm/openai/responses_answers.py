"""Reading what /responses answers, whole or as events."""

from collections.abc import Mapping
from typing import Any, Final

from botservice.core.errors import LLMError
from botservice.llm.chat import ChatResponse, FinishReason, ModelItem, TextSink
from botservice.llm.openai.answer_parts import as_text, read_calls, read_usage
from botservice.llm.openai.citations import Citations
from botservice.llm.openai.errors import reported, unanswered
from botservice.llm.openai.responses_wire import item_text

_SEARCH: Final = "web_search_call"
_PARAGRAPH: Final = "\n\n"  # between the messages of one answer


class ResponsesAnswer:
    """An answer that arrives, as events or at once.

    Attributes:
        is_over: Whether nothing more is to come: an event says so, and no other end of the stream is one that servers
            agree on.
    """

    def __init__(self, on_text: TextSink | None = None, on_thought: TextSink | None = None) -> None:
        self.is_over = False
        self._on_text = on_text
        self._on_thought = on_thought
        self._text: list[str] = []
        self._last_item: object = None
        self._items: dict[int, ModelItem] = {}
        self._end: Mapping[str, Any] = {}
        self._has_searched = False
        self._citations = Citations()
        self._part: tuple[object, object] | None = None
        self._part_text = self._part_shown = ""
        self._part_annotations: list[Mapping[str, Any]] = []

    @property
    def is_complete(self) -> bool:
        """Whether all of the answer is there."""
        return self.is_over

    @property
    def has_text(self) -> bool:
        """Whether somebody may have seen the beginning of it."""
        return bool(self._text)

    def add(self, event: Mapping[str, Any]) -> None:
        """Take the next event.

        Raises:
            LLMError: it says that something went wrong.
        """
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self._add_text(event)
            case "response.output_text.annotation.added":
                self._part_annotations.append(event.get("annotation") or {})
            case "response.output_item.done":
                self._items[event.get("output_index", len(self._items))] = event["item"]
                self._has_searched = self._has_searched or event["item"].get("type") == _SEARCH
                self._finish_part()
            case "response.reasoning_summary_text.done" if self._on_thought is not None:
                self._on_thought(event.get("text") or "")
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self._take_end(event.get("response") or {})
            case "error":
                raise reported(event.get("error") or event)

    def add_whole(self, response: Mapping[str, Any]) -> None:
        """Take an answer that came in one piece.

        Raises:
            LLMError: there is none in it.
        """
        if response.get("error") or "output" not in response:
            raise unanswered(response, "the model's answer has no output")
        self._take_end(response)

    def end(self) -> None:
        """Take note that the server says that this was all: an event has said so before, or it broke off."""

    def response(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            LLMError: it broke off.
        """
        if not self.is_over:
            raise LLMError("the model's answer broke off")
        items = tuple(item for _, item in sorted(self._items.items()))
        citations = Citations()
        whole = item_text(items, citations)
        wanted = [item for item in items if item.get("type") == "function_call"]
        calls = read_calls(
            (item.get("call_id") or "", item.get("name") or "", as_text(item.get("arguments"))) for item in wanted
        )
        is_whole = self._end.get("status") != "incomplete"
        return ChatResponse(
            whole if citations.sources else "".join(self._text) or whole,
            calls,
            read_usage(self._end.get("usage"), given="input", made="output", tools=self._end.get("tool_usage")),
            self._end.get("model"),
            self._reason(items, has_calls=bool(calls)).value,
            items if is_whole else (),
            citations.sources,
        )

    def _reason(self, items: tuple[ModelItem, ...], *, has_calls: bool) -> FinishReason:
        if self._end.get("status") == "incomplete":
            details = self._end.get("incomplete_details") or {}
            if details.get("reason") != "content_filter":
                return FinishReason.LENGTH
            return FinishReason.FILTERED if self._text else FinishReason.REFUSAL
        if has_calls:
            return FinishReason.TOOL_CALLS
        parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or ()]
        is_refused = any(part.get("type") == "refusal" for part in parts)
        return FinishReason.REFUSAL if is_refused else FinishReason.STOP

    def _take_end(self, response: Mapping[str, Any]) -> None:
        """Take the end of an answer; what came item by item is what was sealed."""
        if response.get("error") or response.get("status") in ("failed", "cancelled"):
            raise reported(response.get("error") or {})
        self._finish_part()
        self._items = self._items or dict(enumerate(response.get("output") or ()))
        self._end, self.is_over = response, True
        if not self._text and (text := item_text(list(self._items.values()))):
            self._append(None, text)

    def _add_text(self, event: Mapping[str, Any]) -> None:
        """Add the next piece of a text; once the web was searched, it is shown line by line, with numbers for links."""
        item = event.get("item_id") or event.get("output_index")
        if not self._has_searched:
            return self._append(item, event.get("delta") or "")
        part = item, event.get("content_index")
        if part != self._part:
            self._finish_part()
            self._part = part
        self._part_text += event.get("delta") or ""
        self._show_part(self._part_text.rfind("\n") + 1)
        return None

    def _finish_part(self) -> None:
        """Show the rest of a part of the text, which has ended."""
        if self._part is not None:
            self._show_part(len(self._part_text))
        self._part, self._part_text, self._part_shown, self._part_annotations = None, "", "", []

    def _show_part(self, end: int) -> None:
        text = self._citations.number(self._part_text[:end], self._part_annotations)
        if self._part is not None and text.startswith(self._part_shown):
            self._append(self._part[0], text[len(self._part_shown) :])
            self._part_shown = text

    def _append(self, item: object, piece: str) -> None:
        if self._text and item != self._last_item:
            piece = _PARAGRAPH + piece
        self._last_item = item
        if piece:
            self._text.append(piece)
            if self._on_text is not None:
                self._on_text(piece)
