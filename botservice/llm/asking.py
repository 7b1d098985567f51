"""Asking a model: with the tools that it takes, and measured where figures or traces are on."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from botservice.core.errors import LLMError
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.telemetry.instrumentation import MeasuredModelCall, is_measuring, measured

MOST_SEARCHES: Final = 5
"""How often the server may search the web for one answer of a model: so many are asked for, and paid at most."""

_ON_TEXT: Final = "on_text"


async def ask(
    llm: ChatLLM,
    prompt: Sequence[ChatMessage],
    tools: Sequence[ToolSchema] = (),
    options: Mapping[str, Any] | None = None,
    *,
    purpose: str = "answer",
) -> ChatResponse:
    """Return the model's answer.

    Args:
        options: What its chat is given by name, such as on_text.
        purpose: What it is asked for: answer, observe or gate.

    Raises:
        LLMError: it did not answer.
    """
    try:
        return await _ask(llm, prompt, tools, dict(options or {}), purpose)
    except LLMError:
        raise
    except Exception as error:  # a border: a model is foreign code
        raise LLMError(f"the model failed with {type(error).__name__}") from error


async def _ask(
    llm: ChatLLM, prompt: Sequence[ChatMessage], tools: Sequence[ToolSchema], options: dict[str, Any], purpose: str
) -> ChatResponse:
    if not is_measuring():
        return await llm.chat(prompt, tools, **options)
    on_text: TextSink | None = options.get(_ON_TEXT)
    call = MeasuredModelCall(llm.models[0], llm.base_url, purpose, prompt, tools, is_streamed=on_text is not None)
    if on_text is not None:
        options[_ON_TEXT] = partial(_pass_on, call, on_text)
    with measured(call):
        response = await llm.chat(prompt, tools, **options)
        call.model, call.finish_reason, call.usage = response.model, response.finish_reason, response.usage
        call.text, call.tool_calls = response.text, response.tool_calls
    return response


def _pass_on(call: MeasuredModelCall, on_text: TextSink, piece: str) -> None:
    """Note that a piece has come, and pass it on."""
    call.note_text()
    on_text(piece)


def offered_to(llm: ChatLLM, tools: Sequence[ToolSchema]) -> Sequence[ToolSchema]:
    """Return the tools that a model takes: those that a server runs itself go to models whose server may have them."""
    if llm.searches_web:
        return tools
    return [schema for schema in tools if schema.get("type") == "function"]


def count_searches(tools: Sequence[ToolSchema]) -> int:
    """Return how often the web may be searched for an answer to a request with these tools."""
    return MOST_SEARCHES if any(schema.get("type") == "web_search" for schema in tools) else 0
