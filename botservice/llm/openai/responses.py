"""Requests of /responses, and reading what it answers, whole or as events.

The prompt goes as items, and nothing is kept at the server.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from botservice.core.errors import LLMError
from botservice.llm.asking import count_searches
from botservice.llm.chat import ChatMessage, ChatResponse, FinishReason, ModelItem, SaidMessage, TextSink, ToolSchema
from botservice.llm.openai.answer_parts import as_text, read_calls, read_usage
from botservice.llm.openai.citations import Citations
from botservice.llm.openai.error_table import INCLUDE, SCHEMA, STREAM
from botservice.llm.openai.errors import reported, unanswered
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.prompt_caching import KEY, CacheMarks, marked

SEALED_REASONING: Final = "reasoning.encrypted_content"
MOST_CALLS: Final = "max_tool_calls"
_FEWEST_ANSWER_TOKENS: Final = 16  # OpenAI API reference, responses, max_output_tokens


def build_body(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolSchema],
    options: CallOptions,
    *,
    refused_seals: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the body of a request.

    Args:
        refused_seals: Sealed reasoning that the server does not take: its step goes without its items.
    """
    marks = CacheMarks.of(messages, options)
    items = [
        item
        for place, message in enumerate(messages)
        for item in _items(message, is_marked=place in marks.breakpoints, refused_seals=refused_seals)
    ]
    body: dict[str, Any] = {"model": options.model, "stream": STREAM not in options.refused, "store": False}
    if INCLUDE not in options.refused:
        body["include"] = [SEALED_REASONING]
    if offered := [_tool(tool) for tool in tools if is_offered(tool, options.refused)]:
        body["tools"] = offered
        if (most := count_searches(offered)) and MOST_CALLS not in options.refused:
            body[MOST_CALLS] = most  # of what the server runs itself; OpenAI API reference, responses
    if options.max_answer_tokens is not None:
        body["max_output_tokens"] = max(options.max_answer_tokens, _FEWEST_ANSWER_TOKENS)
    reasoning = {"effort": options.reasoning_effort, "summary": options.reasoning_summary}
    if asked := {name: value for name, value in reasoning.items() if value is not None}:
        body["reasoning"] = asked
    if options.temperature is not None and "temperature" not in options.refused:
        body["temperature"] = options.temperature
    if options.schema is not None and SCHEMA not in options.refused:
        form = {"name": options.schema.name, "strict": True, "schema": options.schema.schema}
        body["text"] = {"format": {"type": "json_schema", **form}}
    if marks.key is not None:
        body[KEY] = marks.key
    return {**body, "input": items}  # last, so that a request begins as the one before it did


def seals(messages: Sequence[ChatMessage], _: CallOptions, refused_seals: frozenset[str]) -> frozenset[str]:
    """Return what would tell the items of messages apart: their seals, and the ids of those without one."""
    given = (message for message in messages if isinstance(message, SaidMessage) and _fits(message, refused_seals))
    return frozenset(seal for message in given for seal in _seals(message))


def _items(message: ChatMessage, *, is_marked: bool, refused_seals: frozenset[str]) -> Iterator[Mapping[str, Any]]:
    """Yield what stands for one message."""
    content = message.get("content")
    match message["role"]:
        case "assistant":
            if isinstance(message, SaidMessage) and _fits(message, refused_seals):
                yield from message.items_given
                return
            if text := _text(content):
                # llama.cpp tells an answer by its type, and wants its text in a part.
                said = {"type": "output_text", "text": text}
                yield {"type": "message", "role": "assistant", "content": [said]}
            for call in message.get("tool_calls") or ():
                function = call["function"]
                yield _call(call["id"], function["name"], function["arguments"])
        case "tool":
            output = _parts(content, is_marked=is_marked)
            yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}
        case role:
            yield {"role": role, "content": _parts(content, is_marked=is_marked)}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _fits(message: SaidMessage, refused_seals: frozenset[str]) -> bool:
    """Return whether the items of a message still say what it says, and may be sent."""
    if not message.items_given or not refused_seals.isdisjoint(_seals(message)):
        return False
    if item_text(message.items_given) != _text(message.get("content")):
        return False
    asked = [
        (call["id"], call["function"]["name"], _parsed(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    given = [item for item in message.items_given if item.get("type") == "function_call"]
    return asked == [(item.get("call_id"), item.get("name"), _parsed(item.get("arguments"))) for item in given]


def _seals(message: SaidMessage) -> Iterator[str]:
    for item in message.items_given:
        yield str(item.get("encrypted_content") or item.get("id") or item.get("call_id"))


def item_text(items: Sequence[ModelItem], citations: Citations | None = None) -> str:
    """Return what the messages among items say, with numbers for the pages that they name."""
    citations = citations or Citations()
    said = (item.get("content") or () for item in items if item.get("type") == "message")
    texts = ("".join(_part_text(part, citations) for part in parts) for parts in said)
    return "\n\n".join(text for text in texts if text)


def _part_text(part: Mapping[str, Any], citations: Citations) -> str:
    return citations.number(str(part.get("text") or part.get("refusal") or ""), part.get("annotations") or ())


def _parsed(arguments: Any) -> Any:
    try:
        return json.loads(arguments or "{}")
    except (TypeError, ValueError, RecursionError):
        return arguments


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in content)


def _parts(content: Any, *, is_marked: bool) -> Any:
    if isinstance(content, str) or content is None:
        text = content or ""
        return marked([{"type": "input_text", "text": text}]) if is_marked and text else text
    parts = [_part(part) for part in content]
    return marked(parts) if is_marked and parts else parts


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    match part.get("type"):
        case "text":
            return {"type": "input_text", "text": part["text"]}
        case "image_url":
            image = part["image_url"]
            return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
        case "file":
            return {"type": "input_file", **part["file"]}
        case _:
            return dict(part)


def is_offered(schema: ToolSchema, refused: frozenset[str]) -> bool:
    """Return whether a tool goes along: a function, or what the server runs itself and has not refused."""
    kind = schema.get("type")
    return kind == "function" or kind not in refused


def _tool(schema: ToolSchema) -> dict[str, Any]:
    """Return a tool in the form of this wire, where a function has to say whether its schema is strict."""
    function = schema.get("function")
    if schema.get("type") != "function" or function is None:
        return dict(schema)
    return {"type": "function", "parameters": None, **function, "strict": bool(function.get("strict"))}


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
        """Whether a person may have seen the beginning of it."""
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
