"""A tool that asks first, and a model that wants to use it."""

import itertools
from typing import Any

from botservice import ToolCall, tool

_numbers = itertools.count(1)


class Till:
    """Payments that were made, each after a person's word."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

        @tool(needs_approval=True)
        async def pay(to: str, amount: int, note: str = "") -> str:
            """Pay a person."""
            self.paid.append((to, amount))
            return f"paid {amount} to {to}"

        self.tools = [pay]


def cashier(*calls: dict[str, Any]) -> Any:
    """Return a model that makes calls where a person says "pay", and otherwise says what it has read last."""
    wanted = calls or ({"to": "Anna", "amount": 5},)

    def answer(prompt: list[Any]) -> Any:
        last = prompt[-1]
        if last["role"] == "user" and "pay" in last["content"]:
            return [ToolCall(f"call-{next(_numbers)}", "pay", each) for each in wanted]
        return f"Read: {last['content']}"

    return answer


HOSTILE = "<b>bold</b> *star* `tick` ```fence``` [x](https://x.org) @here <!channel> \u202eevil\u202c & \\"
"""What could be taken for markup, and turns the direction of what follows."""
