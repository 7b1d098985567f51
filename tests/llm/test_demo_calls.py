"""What people type to the demo to have a tool called keeps its words, in whatever language they are."""
# ruff: noqa: RUF001 - letters of other scripts are what this is about

from typing import Literal

import pytest

from botservice import Tool
from botservice.llm.demo import DemoChatLLM
from botservice.llm.demo_calls import describe_call, read_call


async def order(dish: str, count: int = 1) -> str:
    """Order a dish."""
    return f"{count} {dish}"


async def add(a: int, b: float) -> str:
    """Add."""
    return str(a + b)


async def add_item(name: str) -> str:
    """Add an item."""
    return name


async def send(to: str, text: str) -> str:
    """Send a message."""
    return f"{to}: {text}"


async def brew(size: Literal["S", "L"], hot: bool = True) -> str:
    """Brew."""
    return f"{size} {hot}"


TOOLS = [Tool(each).schema for each in (order, add, add_item, send, brew)]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("order pizza", {"dish": "pizza"}),
        ("order pizza 2", {"dish": "pizza", "count": 2}),
        ("order large pizza 2", {"dish": "large pizza", "count": 2}),
        ("order large pizza, 2", {"dish": "large pizza", "count": 2}),
        ("order Anna's pizza 2", {"dish": "Anna's pizza", "count": 2}),
        ('order "pizza, large" 2', {"dish": "pizza, large", "count": 2}),
        ('order dish="large pizza" count=2', {"dish": "large pizza", "count": 2}),
        ("order “große Pizza” 3", {"dish": "große Pizza", "count": 3}),
        ("order пицца с сыром", {"dish": "пицца с сыром"}),
        ("order 「ピザ、大」 2", {"dish": "ピザ、大", "count": 2}),
        ("add 2 3", {"a": 2, "b": 3}),
        ("add 2, 3.5", {"a": 2, "b": 3.5}),
        ("add a=2 b=3", {"a": 2, "b": 3}),
        ("add_item oat milk, 2 %", {"name": "oat milk, 2 %"}),
        ("add_item 'oat milk'", {"name": "oat milk"}),
        ("add_item x=1", {"name": "x=1"}),
        ("add_item 007", {"name": "007"}),
        ("send Anna hello,  how are you?", {"to": "Anna", "text": "hello,  how are you?"}),
        ('send "Anna Maria" it\'s "fine"', {"to": "Anna Maria", "text": 'it\'s "fine"'}),
        ("brew l true", {"size": "L", "hot": True}),
    ],
)
def test_arguments_are_what_was_written(text: str, arguments: dict[str, object]) -> None:
    call = read_call(text, TOOLS)
    assert call is not None
    assert call.arguments == arguments


@pytest.mark.parametrize(
    "text", ["order", "add two 3", "add 2 3 please", "add 2", "brew M", "send Anna", "orders pizza"]
)
def test_nothing_is_called_where_arguments_are_missing_or_left_over(text: str) -> None:
    assert read_call(text, TOOLS) is None


@pytest.mark.parametrize("text", ["order", "What can I do with “order”?", "Was mache ich mit „order“?", "order?"])
async def test_it_says_how_a_tool_is_called(text: str) -> None:
    answer = await DemoChatLLM().chat([{"role": "user", "content": text}], TOOLS)
    assert "`order DISH [COUNT]`" in answer.text


def test_a_call_is_described_by_its_parameters() -> None:
    assert [describe_call(each) for each in TOOLS[1:3]] == ["add A B", "add_item NAME"]
