"""Tools return text, JSON values, files, and lists of them."""

import dataclasses
import enum
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from botservice import Attachment, Button
from botservice.agent.tool_outputs import LONGEST_OBSERVATION, Output, OutputError, read_output

PNG = Attachment("image/png", "plot.png", b"\x89PNG")


class Point(BaseModel):
    x: int
    when: datetime


@dataclasses.dataclass
class Box:
    side: Decimal


class Colour(enum.Enum):
    RED = "red"


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("returned", "text", "value"),
    [
        ("text", "text", "text"),
        ("", "", ""),
        (None, "", None),
        (5, "5", 5),
        (2.5, "2.5", 2.5),
        (True, "true", True),
        (float("nan"), "NaN", "NaN"),
        (float("-inf"), "-Infinity", "-Infinity"),
        ({"a": [1, None]}, '{"a": [1, null]}', {"a": [1, None]}),
        ({1: "é"}, '{"1": "é"}', {"1": "é"}),
        ([], "[]", []),
        (["a", 1], '["a", 1]', ["a", 1]),
        (("a", 1), '["a", 1]', ["a", 1]),
        (frozenset({7}), "[7]", [7]),
        (Point(x=1, when=NOON), '{"x": 1, "when": "2026-01-02T12:00:00Z"}', {"x": 1, "when": "2026-01-02T12:00:00Z"}),
        (Box(Decimal("1.50")), '{"side": "1.50"}', {"side": "1.50"}),
        (Colour.RED, "red", "red"),
        (date(2026, 1, 2), "2026-01-02", "2026-01-02"),
        (Path("a/b"), "a/b", "a/b"),
        (b"bytes", "bytes", "bytes"),
        ("lone \ud800, NUL \0", "lone \ufffd, NUL \ufffd", "lone \ufffd, NUL \ufffd"),
        ({"\0": ["\0"]}, '{"\ufffd": ["\ufffd"]}', {"\ufffd": ["\ufffd"]}),
    ],
)
def test_values_have_a_text_and_a_json_value(returned: Any, text: str, value: Any) -> None:
    assert read_output(returned) == Output(text, value)
    json.dumps(value, allow_nan=False)


def test_a_file_is_named_in_the_text() -> None:
    assert read_output(PNG) == Output("[plot.png: image/png]", "", (PNG,))
    unnamed = Attachment("audio/ogg", url="https://example.org/a")
    assert read_output(unnamed).text == "[file: audio/ogg]"


def test_files_and_values_travel_together() -> None:
    output = read_output(["Here it is:", None, {"rows": 2}, PNG, PNG])
    assert output.text == 'Here it is:\n{"rows": 2}\n[plot.png: image/png]\n[plot.png: image/png]'
    assert output.value == 'Here it is:\n{"rows": 2}'
    assert output.files == (PNG, PNG)


def test_buttons_are_named_to_the_model_and_kept_apart() -> None:
    output = read_output(["Shall I?", Button("Yes", value="order 7"), Button("No")])
    assert output == Output(
        "Shall I?\n[buttons under your answer: Yes | No]", "Shall I?", (), (Button("Yes", "order 7"), Button("No"))
    )
    assert read_output(Button("a\0")).buttons == (Button("a\ufffd"),)
    with pytest.raises(OutputError, match="has a text"):
        read_output([Button(" ")])


@pytest.mark.parametrize("returned", [object(), {"a": object()}, [PNG, object()], {"file": PNG}, lambda: None, b"\xff"])
def test_what_has_no_json_is_said(returned: Any) -> None:
    with pytest.raises(OutputError, match="no JSON value"):
        read_output(returned)


def test_a_circle_has_no_json_either() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(OutputError):
        read_output(circle)


def test_what_is_too_long_is_cut_and_says_so() -> None:
    whole = "x" * LONGEST_OBSERVATION
    assert read_output(whole).text == whole
    output = read_output(whole + "yz")
    assert output.text == f"{whole}… (cut: it has 100002 characters)"
    assert output.value == output.text
    rows = ["x"] * LONGEST_OBSERVATION
    assert read_output(rows).value == read_output(rows).text
