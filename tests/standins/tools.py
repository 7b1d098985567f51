"""Tools that tests give to agents."""

from typing import Any

from botservice import Tool, tool


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adder(ran: list[tuple[int, int]], **options: Any) -> Tool:
    """Return a tool that adds two numbers, and takes note of them each time that it runs."""

    async def plus(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append((a, b))
        return a + b

    return Tool(plus, name="add", **options)
