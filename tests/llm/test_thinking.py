"""Thinking is taken out of a text however it is cut into pieces, and nothing else is."""

import itertools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from botservice.llm.openai.answer_parts import CallAssembler, merge, read_calls
from botservice.llm.openai.thinking import ThinkingFilter, ends_alone

PARTS = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "[THINK]",
        "[/THINK]",
        "\n",
        " ",
        "<",
        "think",
        ">",
        "ab",
        "</",
        "`",
    ]
)
TEXTS = st.lists(PARTS, max_size=12).map("".join)


def read(pieces: list[str], *, is_lone: bool) -> tuple[str, str]:
    found = ThinkingFilter(ends_alone=is_lone)
    text = "".join([*(found.feed(piece) for piece in pieces), found.finish()])
    return text, found.thinking


@given(TEXTS, st.lists(st.integers(0, 60)), st.booleans())
@example("<think>a</think>\n\nb", [3, 5], False)
def test_pieces_make_no_difference(text: str, cuts: list[int], is_lone: bool) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    whole = read([text], is_lone=is_lone)
    assert read(pieces, is_lone=is_lone) == whole
    assert read(list(text), is_lone=is_lone) == whole


@given(TEXTS)
def test_a_text_that_does_not_begin_with_a_block_stays_as_it_is(text: str) -> None:
    said = f"x{text}"
    assert read([said], is_lone=False) == (said, "")


@given(TEXTS)
def test_nothing_but_tags_and_blank_space_is_lost(text: str) -> None:
    answer, thinking = read([text], is_lone=False)
    letters = [each for each in text if each == "b"]
    assert [each for each in thinking + answer if each == "b"] == letters


@pytest.mark.parametrize(
    ("model", "is_so"),
    [
        ("deepseek-r1:14b", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", True),
        ("Qwen/QwQ-32B", True),
        ("qwen3-30b-a3b-thinking-2507", True),
        ("qwen3-8b", False),
        ("deepseek-chat", False),
        ("gpt-5.5", False),
    ],
)
def test_models_that_end_thinking_which_they_have_not_begun_are_known_by_name(model: str, is_so: bool) -> None:
    assert ends_alone(model) is is_so


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "index", "type", "text"]), inner),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=5))
def test_whatever_a_field_holds_its_pieces_are_merged(pieces: list[object]) -> None:
    merged: object = None
    for piece in pieces:
        merged = merge(merged, piece)
    texts = [piece for piece in pieces if piece is not None]
    if texts and all(isinstance(piece, str) for piece in texts):
        assert merged == "".join(str(piece) for piece in texts)


ARGUMENTS = st.dictionaries(st.sampled_from("abc"), st.integers() | st.text(max_size=4), max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from(["add", "mul"]), ARGUMENTS), min_size=1, max_size=4)


@given(CALLS, st.data())
def test_calls_with_an_index_are_put_together_however_they_are_cut(
    calls: list[tuple[str, dict[str, object]]], data: st.DataObject
) -> None:
    assembler = CallAssembler()
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        cut = data.draw(st.integers(0, len(text)))
        first = {"index": index, "id": f"id{index}", "function": {"name": name, "arguments": text[:cut]}}
        assembler.add([first])
        assembler.add([{"index": index, "function": {"arguments": text[cut:]}}])
    read_back = read_calls((call.id, call.name, call.arguments) for call in assembler.calls)
    assert [(call.name, dict(call.arguments)) for call in read_back] == calls
