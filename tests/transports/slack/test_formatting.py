"""Answers fit into Slack's messages, wherever they are cut, and ping nobody."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botservice.config.setting_choices import SlackPings
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import is_blank
from botservice.texts.formatted import line, words
from transports.markdown.reading import read_markdown
from transports.markdown.splitting import in_pieces
from transports.slack.answer_blocks import as_page, read_page
from transports.slack.formatting import (
    MAX_CHARACTERS,
    escape_words,
    format_answer,
    format_service_text,
    settled_text,
    without_pings,
)

NOBODY = SlackPings.NONE
DATA = Path(__file__).parents[2] / "data"
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


def pieces_of(text: str, limit: int) -> list[str]:
    """Return a text in pieces as each is sent."""
    return [as_page(piece).text for piece in in_pieces(read_markdown(text), limit)]


@given(MARKDOWN, st.integers(100, 400))
@settings(deadline=None)
def test_pieces_fit_and_hold_every_word(text: str, limit: int) -> None:
    pieces = list(in_pieces(read_markdown(text), limit))
    assert all(len(FormattedText(piece).plain) <= limit for piece in pieces)
    kept = "".join(as_page(piece).text for piece in pieces)
    for word in set(re.findall(r"\w+", as_page(read_markdown(text)).text)):
        assert word in re.sub(r"\s", "", kept) or word in kept


@given(st.lists(st.sampled_from(["*_`<|" * 500, "word " * 400, "```\n" + "x = 1\n" * 300 + "```", "- a\n" * 300])))
@settings(deadline=None, max_examples=30)
def test_what_is_sent_fits_whatever_keeps_signs_from_being_marks(parts: list[str]) -> None:
    assert all(len(read_page(each).text) <= MAX_CHARACTERS for each in format_answer("\n\n".join(parts), NOBODY))


def test_code_that_is_cut_stays_code() -> None:
    code = "\n".join(f"print({number})" for number in range(60))
    pieces = pieces_of(f"Look:\n\n```python\n{code}\n```\n\nDone.", 200)
    assert len(pieces) > 3
    for piece in pieces:
        assert piece.count("```") % 2 == 0
    inner = [line for piece in pieces for line in piece.splitlines() if line.startswith("print")]
    assert "\n".join(inner) == code


def test_a_table_that_is_cut_repeats_its_head() -> None:
    rows = [f"| {number} | row |" for number in range(40)]
    table = "\n".join(["| n | what |", "|---|---|", *rows])
    pieces = pieces_of(table, 150)
    assert len(pieces) > 2
    assert all(piece.startswith("| n | what |\n|---|---|\n") for piece in pieces)
    assert [line for piece in pieces for line in piece.splitlines()[2:]] == rows


def test_cuts_fall_between_paragraphs_then_sentences() -> None:
    paragraphs = ["word " * 10 + "end." for _ in range(20)]
    for text in ("\n\n".join(paragraphs), " ".join(paragraphs)):
        pieces = pieces_of(text, 120)
        assert all(piece.startswith("word") and piece.endswith("end.") for piece in pieces)


def test_words_that_are_cut_keep_their_formatting_and_no_letter_is_torn() -> None:
    england, hangul = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\u1112\u1161\u11ab"
    assert all(each.startswith("**word") and each.endswith("**") for each in pieces_of(f"**{'word ' * 200}end**", 150))
    for glyph in (england, hangul, "👨‍👩‍👧‍👦"):
        pieces = pieces_of(glyph * 200, 150)
        assert all(each.startswith(glyph) and len(each) % len(glyph) == 0 for each in pieces)
        assert "".join(pieces) == glyph * 200


@pytest.mark.parametrize("text", ["", " \n ", "\n\n", "\u200b", "\u2800\ufeff", " \u200b" * 9000])
def test_nothing_to_read_makes_no_message(text: str) -> None:
    assert format_answer(text, NOBODY) == []


@pytest.mark.parametrize("text", ["```", "<b></b>", "> > ```", "# ", "| |\n|-|", "```chart\n```", "<!here>", "<@>"])
def test_an_answer_that_is_nothing_but_markup_makes_a_message(text: str) -> None:
    (piece,) = format_answer(text, NOBODY)
    assert read_page(piece).blocks()
    assert not is_blank(read_page(piece).text)


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
    assert without_pings(text, SlackPings.ALL) == text
    assert "<@U0BOB>" in without_pings(text, SlackPings.USERS)
    assert "<!here>" not in without_pings(text, SlackPings.USERS)


ANSWERS = [json.loads(line)["text"] for line in (DATA / "model_answers.jsonl").read_text("utf-8").splitlines()]


def growing(text: str) -> str:
    return as_page(read_markdown(settled_text(text, NOBODY)), is_growing=True).text


def test_what_was_shown_of_a_growing_answer_stays() -> None:
    """Nearly all of it is shown at once: where it is not, people would wait for whole paragraphs."""
    late = []
    for text in ANSWERS[::5]:
        whole = read_page(text).text
        for cut in range(1, len(text) + 1):
            shown = growing(text[:cut])
            assert whole.startswith(shown), text[:cut]
            late.append(cut - len(shown))
    assert sum(late) / len(late) < 20


@pytest.mark.parametrize("name", ["<!channel>", "<@U1>", "@here", "<!subteam^S1|team>"])
def test_the_words_beside_rich_text_are_as_they_are_and_no_markup_once_they_are_escaped(name: str) -> None:
    (message,) = format_service_text(line("Allowed by ", words(name), "."))
    assert message["text"] == f"Allowed by {name}."
    assert "<" not in escape_words(message["text"])
    assert name in json.dumps(message["rich"]), "where nothing is a mention, it stands as it is"
