"""A call of a model, measured: what was asked, when the first piece came, what the answer says of itself."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.telemetry.measuring import ModelCall, is_measuring, measured

_ON_TEXT: Final = "on_text"


async def ask(
    llm: ChatLLM,
    prompt: Sequence[ChatMessage],
    tools: Sequence[ToolSchema] = (),
    options: Mapping[str, Any] | None = None,
    *,
    purpose: str = "answer",
) -> ChatResponse:
    """Return the model's answer. Raises what the model raises.

    Args:
        options: What its chat is given by name, such as on_text.
        purpose: What it is asked for: answer, or observe.
    """
    options = dict(options or {})
    if not is_measuring():  # nothing is written down, and no piece of the text passes a second hearer
        return await llm.chat(prompt, tools, **options)
    model, server = str(getattr(llm, "model", "unknown")), getattr(llm, "base_url", None)
    hear: TextSink | None = options.get(_ON_TEXT)
    call = ModelCall(model, str(server) if server else None, purpose, prompt, tools, is_streamed=hear is not None)
    if hear is not None:
        options[_ON_TEXT] = _hearing(call, hear)
    with measured(call):
        response = await llm.chat(prompt, tools, **options)
        call.model, call.finish_reason, call.usage = response.model, response.finish_reason, response.usage
        call.text, call.tool_calls = response.text, response.tool_calls
    return response


def _hearing(call: ModelCall, hear: TextSink) -> TextSink:
    def take(piece: str) -> None:
        call.hear()
        hear(piece)

    return take
