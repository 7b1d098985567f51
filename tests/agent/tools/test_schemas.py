"""A tool's schema comes from the signature and the docstring of its function."""

import enum
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from botservice import AgentContext, FunctionsBasedAgent, InvalidTool, ScriptedChatLLM, Tool, tool


def properties(function: Any) -> dict[str, Any]:
    return Tool(function).schema["function"]["parameters"]["properties"]


def required(function: Any) -> list[str]:
    return Tool(function).schema["function"]["parameters"].get("required", [])


def test_the_whole_schema_of_a_small_tool() -> None:
    @tool
    async def add(a: int, b: int = 2) -> int:
        """Add two numbers.

        Whole ones, that is.

        Args:
            a: The first of them.
        """
        return a + b

    assert add.schema == {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.\n\nWhole ones, that is.",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "description": "The first of them."},
                    "b": {"type": "integer", "default": 2},
                },
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def now() -> str: ...

    parameters = Tool(now).schema["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": True}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - people write it
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (date, {"type": "string", "format": "date"}),
        (
            Annotated[int, Field(ge=1, description="Above 0.")],
            {"type": "integer", "minimum": 1, "description": "Above 0."},
        ),
        (Any, {}),
    ],
)
def test_every_type_has_its_json(hint: Any, schema: dict[str, Any]) -> None:
    def take(value: hint) -> None: ...  # type: ignore[valid-type]

    assert properties(take) == {"value": schema}


def test_a_parameter_without_annotation_takes_anything() -> None:
    def take(value, other=None): ...

    assert properties(take) == {"value": {}, "other": {"default": None}}


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int = Field(description="To the right.")
    title: str = "here"


@dataclass
class Box:
    corner: Point
    colour: Colour = Colour.RED


class Options(TypedDict):
    title: str
    deep: NotRequired[bool]


def test_nested_types_are_described_without_made_up_titles() -> None:
    def draw(box: Box, options: Options, points: list[Point]) -> None: ...

    schema = Tool(draw).schema["function"]["parameters"]
    assert schema["$defs"]["Point"] == {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "To the right."},
            "title": {"type": "string", "default": "here"},
        },
        "required": ["x"],
    }
    assert schema["$defs"]["Colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert set(schema["$defs"]["Options"]["properties"]) == {"title", "deep"}
    assert schema["$defs"]["Box"]["properties"]["colour"]["default"] == "red"


def test_a_title_in_a_default_value_stays() -> None:
    def take(value: dict[str, str] = {"title": "kept"}) -> None: ...  # noqa: B006

    assert properties(take)["value"]["default"] == {"title": "kept"}


UNKNOWN_TO_JSON = object()
FOLDER = Path("x")


def test_a_default_that_json_does_not_know_is_left_out() -> None:
    def take(value: Any = UNKNOWN_TO_JSON, where: Path = FOLDER) -> None: ...

    assert properties(take)["value"] == {}
    assert required(take) == []


def test_a_description_in_the_docstring_counts_before_that_of_the_type() -> None:
    def take(
        a: Annotated[int, Field(description="of the type")], b: Annotated[int, Field(description="of the type")]
    ) -> None:
        """Take.

        Args:
            a: of the docstring
        """

    assert [each["description"] for each in properties(take).values()] == ["of the docstring", "of the type"]


@pytest.mark.parametrize(
    "docstring",
    [
        "Take.\n\nArgs:\n    a: The value.",
        "Take.\n\n:param a: The value.",
        "Take.\n\nParameters\n----------\na : int\n    The value.",
    ],
)
def test_docstrings_of_every_style_are_read(docstring: str) -> None:
    def take(a: int) -> None: ...

    take.__doc__ = docstring
    assert Tool(take).description == "Take."
    assert properties(take)["a"]["description"] == "The value."


def test_a_docstring_in_no_style_is_the_description() -> None:
    def take(a: int) -> None: ...

    take.__doc__ = "Take.\n\n:param a int: b: c:\n:raises\n: :"
    assert Tool(take).description.startswith("Take.")


@pytest.mark.parametrize(
    "name", ["schema", "self_", "model_config", "json", "copy", "field0", "cls", "fields", "validate", "dict"]
)
def test_parameters_may_have_the_names_that_pydantic_keeps_to_itself(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def take({name}: int) -> int:\n    return {name}", scope)
    made = Tool(scope["take"])
    assert list(made.schema["function"]["parameters"]["properties"]) == [name]
    assert made.bind({name: 5}, context=None)() == 5  # type: ignore[arg-type]


def test_the_context_is_hidden_however_it_is_annotated() -> None:
    def take(
        a: int,
        b: AgentContext,
        c: "AgentContext",
        d: AgentContext | None = None,
        e: Optional[AgentContext] = None,  # noqa: UP045 - people write it
        f: Annotated[AgentContext, "the chat"] = None,  # type: ignore[assignment]
    ) -> str:
        return f"{a} {b} {c} {d} {e} {f}"

    assert list(properties(take)) == ["a"]
    assert Tool(take).bind({"a": 1}, context="C")() == "1 C C C C C"  # type: ignore[arg-type]


def test_a_method_and_an_object_that_is_called_can_be_tools() -> None:
    class Adder:
        def __init__(self, start: int) -> None:
            self.start = start

        def add(self, a: int) -> int:
            """Add."""
            return self.start + a

        async def __call__(self, a: int) -> int:
            return self.start + a

    assert list(properties(Adder(1).add)) == ["a"]
    named = Tool(Adder(1), name="adder")
    assert list(named.schema["function"]["parameters"]["properties"]) == ["a"]


def test_a_decorated_function_keeps_its_signature() -> None:
    def plain(a: int) -> int:
        """Double."""
        return a

    @functools.wraps(plain)
    def doubled(*args: Any, **kwargs: Any) -> int:
        return plain(*args, **kwargs) * 2

    assert list(properties(doubled)) == ["a"]
    assert Tool(doubled).bind({"a": 3}, None)() == 6  # type: ignore[arg-type]


def test_a_tool_is_still_its_function() -> None:
    @tool(name="plus", description="Sums.", is_final=True, idempotent=True, timeout_seconds=5)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    assert add(1, b=2) == 3
    assert (add.name, add.description, add.is_final, add.idempotent, add.timeout_seconds) == (
        "plus",
        "Sums.",
        True,
        True,
        5,
    )
    assert repr(add) == "Tool(plus)"


@pytest.mark.parametrize("name", ["", "with blank", "ümlaut", "a" * 65, "dot.ted"])
def test_a_name_that_models_refuse_is_refused(name: str) -> None:
    with pytest.raises(InvalidTool, match="pass name="):
        Tool(lambda: None, name=name or None)


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan])
def test_a_time_limit_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidTool, match="timeout_seconds of f"):
        Tool(lambda: None, name="f", timeout_seconds=seconds)


def positional(a: int, /) -> None: ...
def star(*a: int) -> None: ...
def stars(**a: int) -> None: ...
def unknown(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def no_json(a: AgentContext | int) -> None: ...
def a_function(a: type[int]) -> None: ...
def field_default(a: int = Field(3)) -> None: ...


@pytest.mark.parametrize("function", [positional, star, stars, unknown, no_json, field_default])
def test_a_signature_that_no_model_can_fill_is_refused(function: Any) -> None:
    with pytest.raises(InvalidTool, match=function.__name__):
        Tool(function)


def test_a_method_becomes_a_tool_by_its_object_alone() -> None:
    class Shop:
        def count(self, shelf: str) -> int:
            return len(shelf)

    with pytest.raises(InvalidTool, match=r"tool count is a method.*tool\(thing.count\)"):
        tool(Shop.count)
    assert required(Shop().count) == ["shelf"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidTool, match="two tools are called star_less"):
        FunctionsBasedAgent([Tool(lambda: 1, name="star_less"), Tool(lambda: 2, name="star_less")], ScriptedChatLLM([]))
