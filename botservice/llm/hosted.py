"""Tools that a model's server runs itself: offered to those models alone whose server may have them."""

from collections.abc import Sequence

from botservice.llm.chat import ChatLLM, ToolSchema


def searches_web(llm: ChatLLM) -> bool:
    """Return whether the server of a model may search the web itself, as far as is known."""
    return bool(getattr(llm, "searches_web", False))


def offered_to(llm: ChatLLM, tools: Sequence[ToolSchema]) -> Sequence[ToolSchema]:
    """Return the tools that a model takes."""
    if searches_web(llm):
        return tools
    return [schema for schema in tools if schema.get("type") == "function"]
