"""Tools that a model's server runs itself: offered to those models alone whose server may have them."""

from collections.abc import Sequence
from typing import Final

from botservice.llm.chat import ChatLLM, ToolSchema

MOST_SEARCHES: Final = 5
"""How often the server may search the web for one answer of a model: so many are asked for, and paid at most."""


def searches_web(llm: ChatLLM) -> bool:
    """Return whether the server of a model may search the web itself, as far as is known."""
    return bool(getattr(llm, "searches_web", False))


def offered_to(llm: ChatLLM, tools: Sequence[ToolSchema]) -> Sequence[ToolSchema]:
    """Return the tools that a model takes."""
    if searches_web(llm):
        return tools
    return [schema for schema in tools if schema.get("type") == "function"]


def count_searches(tools: Sequence[ToolSchema]) -> int:
    """Return how often the web may be searched for an answer to a request with these tools."""
    return MOST_SEARCHES if any(schema.get("type") == "web_search" for schema in tools) else 0
