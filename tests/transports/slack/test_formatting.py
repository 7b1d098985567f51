"""Answers fit into Slack's messages, wherever they are cut, and ping nobody."""

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botservice.texts.formatted import line, words
from transports.slack.escaping import escape_literals
from transports.slack.figures import as_blocks, find_figures
from transports.slack.formatting import Pings, format_answer, split_markdown, stable_part, without_pings
from transports.slack.rich_text import escape_words, format_service_text

NOBODY = Pings()
PINGS = re.compile(r"<!(channel|here|everyone|subteam)|<@U|(?<![\w.@/])@(channel|here|everyone)\b(?!\.\w)")
MARKDOWN = st.lists(
    st.sampled_from(
        [
            "word ",
            "\n",
            "\n\n",
            "```\n",
            "```python\n",
            "# Title\n",
            "- item\n",
            "| a | b |\n|---|---|\n",
            "| 1 | 2 |\n",
        ]
    )
    | st.text(alphabet="ab <!@>cel\n`|*😀", max_size=40),
    max_size=60,
).map("".join)


@given(MARKDOWN, st.integers(100, 400))
@settings(deadline=None)
def test_pieces_fit_and_hold_every_word(text: str, limit: int) -> None:
    pieces = split_markdown(text, max_characters=limit)
    assert all(0 < len(piece) <= limit for piece in pieces)
    kept = "".join(pieces)
    for word in set(re.findall(r"\w+", text)):
        assert word in kept or any(word in left + right for left, right in itertools.pairwise(pieces))


def test_code_that_is_cut_stays_code() -> None:
    code = "\n".join(f"print({number})" for number in range(60))
    pieces = split_markdown(f"Look:\n\n```python\n{code}\n```\n\nDone.", max_characters=200)
    assert len(pieces) > 3
    for piece in pieces:
        assert piece.count("```") % 2 == 0
    inner = [line for piece in pieces for line in piece.splitlines() if line.startswith("print")]
    assert "\n".join(inner) == code


def test_a_table_that_is_cut_repeats_its_head() -> None:
    rows = [f"| {number} | row |" for number in range(40)]
    table = "\n".join(["| n | what |", "|---|---|", *rows])
    pieces = split_markdown(table, max_characters=150)
    assert all(piece.startswith("| n | what |\n|---|---|\n") for piece in pieces)
    assert [line for piece in pieces for line in piece.splitlines()[2:]] == rows


def test_cuts_fall_between_paragraphs() -> None:
    paragraphs = ["word " * 10 + "end." for _ in range(20)]
    pieces = split_markdown("\n\n".join(paragraphs), max_characters=120)
    assert all(piece.startswith("word") and piece.endswith("end.") for piece in pieces)


@pytest.mark.parametrize("text", ["", " \n ", "\n\n", "\u200b", "\u2800\ufeff", " \u200b" * 9000])
def test_nothing_to_read_makes_no_message(text: str) -> None:
    assert format_answer(text, NOBODY) == []


@pytest.mark.parametrize("text", ["```", "<b></b>", "> > ```", "# ", "| |\n|-|", "```chart\n```", "<!here>", "<@>"])
def test_an_answer_that_is_nothing_but_markup_makes_a_message(text: str) -> None:
    (piece,) = format_answer(text, NOBODY)
    assert as_blocks(piece, find_figures(piece))


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4 = 24",
        "a < b && c > d",
        "mail me@here.com",
        "<https://example.com|a link>",
        "<!-- note -->",
        "@heretic",
    ],
)
def test_what_pings_nobody_is_left_alone(text: str) -> None:
    assert without_pings(text, NOBODY) == text


@given(MARKDOWN)
@settings(deadline=None)
def test_nobody_is_pinged(text: str) -> None:
    assert PINGS.search(without_pings(text, NOBODY)) is None


def test_pings_pass_where_they_are_allowed() -> None:
    text = "<!here> <@U0BOB>"
    assert without_pings(text, Pings(users=True, everybody=True)) == text
    assert "<@U0BOB>" in without_pings(text, Pings(users=True))
    assert "<!here>" not in without_pings(text, Pings(users=True))


SIGNS = st.lists(
    st.sampled_from(["a", "B1", "*", "**", "_", "__", "`", "``", "```", "<", ">", "1. ", "7. ", "- ", " ", "\n", "~~~"])
    | st.sampled_from(["|", "|---|", "[x]", ":", "\\", "    ", "https://a.example", "/", ".", "(", ")"])
    | st.sampled_from(["\n\n", "\\(", "\\)", "\\[", "\\]", "$$"]),
    max_size=40,
).map("".join)


@given(MARKDOWN | SIGNS, st.data())
@settings(deadline=None)
def test_what_was_shown_of_a_growing_text_stays(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    assert escape_literals(without_pings(text, NOBODY)).startswith(stable_part(text[:cut], NOBODY))


@pytest.mark.parametrize("name", ["<!channel>", "<@U1>", "@here", "<!subteam^S1|team>"])
def test_the_words_beside_rich_text_are_as_they_are_and_no_markup_once_they_are_escaped(name: str) -> None:
    (message,) = format_service_text(line("Allowed by ", words(name), "."))
    assert message["text"] == f"Allowed by {name}."
    assert "<" not in escape_words(message["text"])
    assert name in json.dumps(message["rich"]), "where nothing is a mention, it stands as it is"
