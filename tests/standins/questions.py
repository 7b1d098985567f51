"""A tool that asks the person for a room and a name, and a model that wants to use it."""

import itertools
from typing import Any

from botservice import Tool, ToolCall
from botservice.agent.tool_questions import Field, FieldKind, QuestionsAsked, ToolQuestion, questions_of_call

_numbers = itertools.count(1)


class Hotel:
    """Rooms that were booked, each with what the person answered."""

    def __init__(self, *sizes: str) -> None:
        self.booked: list[dict[str, Any]] = []
        options = tuple((each, each) for each in sizes or ("Single", "Double"))
        self._form = (Field("size", FieldKind.CHOICE, "Room", options=options), Field("name", FieldKind.TEXT, "Name"))
        self.tools = [Tool(self.book)]

    async def book(self) -> str:
        """Book a room."""
        replied = questions_of_call().replied
        if replied is None:
            raise QuestionsAsked("hotel", [ToolQuestion("Which room?", self._form)], {})
        self.booked.append(dict(replied.replies[0].content))
        return f"booked {self.booked[-1]}"


def receptionist(prompt: list[Any]) -> Any:
    """Book where a person says "reserve", and otherwise say what was said last."""
    last = prompt[-1]
    if last["role"] == "user" and "reserve" in last["content"]:
        return ToolCall(f"call-{next(_numbers)}", "book", {})
    return f"Read: {last['content']}"
