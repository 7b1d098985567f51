"""Formatted texts: what is stored of one is read back as it was."""

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from botservice.core.formatted_text import (
    CodeBlock,
    FormattedText,
    Formula,
    FormulaBlock,
    Heading,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Span,
    Table,
)
from botservice.texts.formatted import say, time
from transports.slack.formatting import format_service_text
from transports.web.markdown import render_formatted

_SPANS = st.lists(
    st.builds(
        Span, st.text(max_size=9), st.booleans(), code=st.booleans(), link=st.none() | st.just("https://example.com")
    )
    | st.builds(Formula, st.text(max_size=5), st.text(max_size=5)),
    max_size=4,
).map(tuple)
_LEAVES = (
    st.builds(Paragraph, _SPANS, st.booleans())
    | st.builds(Heading, _SPANS, st.integers(1, 6))
    | st.builds(CodeBlock, st.text(max_size=9), st.sampled_from(["", "sh"]))
    | st.builds(FormulaBlock, st.text(max_size=5), st.text(max_size=5))
    | st.builds(Table, st.just((((Span("a"),), (Span("b"),)), ((Span("1"),), ()))), st.just(("left", "")))
    | st.just(Rule())
)


def _nested(blocks: st.SearchStrategy) -> st.SearchStrategy:
    inside = st.lists(blocks, min_size=1, max_size=3).map(tuple)
    items = st.lists(st.builds(Item, inside, st.none() | st.just("7."), st.none() | st.booleans()), max_size=3)
    return st.builds(Quote, inside) | st.builds(List, items.map(tuple))


@given(st.lists(st.recursive(_LEAVES, _nested, max_leaves=5), max_size=4).map(tuple))
def test_every_tree_comes_back_from_json_as_it_was(blocks: tuple) -> None:
    text = FormattedText(blocks)
    assert FormattedText.from_json(json.loads(json.dumps(text.to_json()))) == text


def test_the_plain_text_has_every_word_and_no_markup() -> None:
    text = FormattedText(
        (
            Paragraph((Span("May I do this for "), Span("*Ann*", bold=True), Span("?"))),
            CodeBlock("echo `hi` \\(x\\)", is_close=True),
            List((Item((Paragraph((Span("one"),)),)), Item((Paragraph((Span("two"),)),), "7."))),
        )
    )
    assert text.plain == "May I do this for *Ann*?\necho `hi` \\(x\\)\n\n- one\n7. two"


def test_what_a_later_release_stored_is_read_without_what_is_new_in_it() -> None:
    stored = [
        {
            "kind": "Paragraph",
            "spans": [{"text": "Pay ", "colour": "red"}, {"kind": "Chip", "text": "Anna"}],
            "size": 2,
        },
        {"kind": "CodeBlock", "text": "to: Anna", "is_folded": True},
        {"kind": "Panel", "blocks": [{"kind": "Paragraph", "spans": [{"text": "in"}]}, {"kind": "X", "text": "side"}]},
        {"kind": "Aside", "spans": [{"text": "beside"}]},
        {"kind": "Clock", "text": "12:00"},
    ]
    assert FormattedText.from_json(stored).plain == "Pay Anna\n\nto: Anna\n\nin\n\nside\n\nbeside\n\n12:00"


def test_each_reader_sees_a_time_by_their_own_clock() -> None:
    at = datetime(2026, 11, 28, 20, 20, tzinfo=UTC)
    text = say("reminders.late", "en", time=time(at, "en", now=at - timedelta(days=1)))
    assert FormattedText.from_json(json.loads(json.dumps(text.to_json()))) == text
    assert text.plain == "This reminder is late. It was due: tomorrow, 20:20 UTC"
    (html,) = render_formatted(text)
    assert '<time datetime="2026-11-28T20:20:00+00:00">tomorrow, 20:20 UTC</time>' in html
    ((piece,),) = [each["rich"] for each in format_service_text(text)]
    assert piece["elements"][-1] == {
        "type": "date",
        "timestamp": 1795897200,
        "format": "{date_short_pretty}, {time}",
        "fallback": "tomorrow, 20:20 UTC",
    }
