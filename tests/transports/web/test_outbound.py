"""Markdown as HTML that cannot do anything."""

from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.messages import Message, Role
from transports.web.outgoing.outbound import plan_answer, render_markdown

TAGS = {
    "p",
    "br",
    "strong",
    "em",
    "s",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "a",
    "div",
    "table",
    "thead",
}
TAGS |= {"tbody", "tr", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6"}
ATTRIBUTES = {"a": {"href", "target", "rel"}, "code": {"class"}, "ol": {"start"}, "div": {"class", "tabindex"}}
ATTRIBUTES |= {"th": {"class"}, "td": {"class"}}


class Checker(HTMLParser):
    """Fails where anything but text, marks and safe links is in it."""

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS, tag
        for name, value in attributes:
            assert name in ATTRIBUTES.get(tag, set()), (tag, name)
            if name == "href":
                assert value.lower().startswith(("http://", "https://", "mailto:", "tel:")), value
            if name == "class" and tag in ("th", "td"):
                assert value in ("left", "center", "right")

    def handle_comment(self, data):
        raise AssertionError(data)

    def handle_decl(self, decl):
        raise AssertionError(decl)

    def unknown_decl(self, data):
        raise AssertionError(data)

    def handle_pi(self, data):
        raise AssertionError(data)


def check(text: str) -> str:
    html = render_markdown(text)
    assert html is not None
    checker = Checker(convert_charrefs=True)
    checker.feed(html)
    checker.close()
    return html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onmouseover=alert(1)>b</b>",
        "<!-- comment --><!DOCTYPE html><?php ?>",
        "<svg><script>alert(1)</script></svg>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](\x01javascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "[x](//evil.example)",
        "[x](/web/logout)",
        '[x](https://e.example/"onmouseover=alert(1))',
        "[x](<https://e.example/ onmouseover=alert(1)>)",
        "<javascript:alert(1)>",
        "![x](javascript:alert(1))",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
        '![" onerror=alert(1)](https://tracker.example/pixel.png)',
        "[ref]\n\n[ref]: javascript:alert(1)",
        "[ref]\n\n[ref]: https://e.example 'a\" onclick=\"x'",
        '```"><script>alert(1)</script>\ncode\n```',
        '```x" onclick="alert(1)\ncode\n```',
        "`<script>`",
        "| a |\n|:-:|\n| <script> |",
        "[x](https://e.example)" * 50,
        "\u202e<script>\u2066",
    ],
)
def test_nothing_in_an_answer_can_do_anything(text):
    html = check(text)
    assert "<script" not in html
    assert "<img" not in html


@given(st.text(alphabet="ab<>\"'`[]()!*_#|-\n :/\\&;jscript=x0123456789~", max_size=120))
def test_no_mixture_of_signs_becomes_more_than_text_and_marks(text):
    check(text)


@given(st.text(max_size=60))
def test_no_text_breaks_the_renderer(text):
    check(text)


def test_links_open_elsewhere_and_tell_nobody_where_from():
    assert check("[x](https://e.example 'title')") == (
        '<p><a href="https://e.example" target="_blank" rel="noopener noreferrer nofollow">x</a></p>\n'
    )


def test_pictures_of_other_places_are_links_to_them():
    html = check("![a cat](https://e.example/cat.png)")
    assert '<a href="https://e.example/cat.png"' in html
    assert ">a cat</a>" in html
    assert ">https://e.example/cat.png</a>" in check("![](https://e.example/cat.png)")


def test_code_tables_and_line_breaks_are_rendered():
    assert check("```python\nx < 1\n```") == '<pre><code class="language-python">x &lt; 1\n</code></pre>\n'
    assert '<div class="table" tabindex="0"><table>' in check("| a |\n|---|\n| b |")
    assert '<th class="right">a</th>' in check("| a |\n|--:|\n| b |")
    assert check("one\ntwo") == "<p>one<br />\ntwo</p>\n"
    assert check("~~gone~~ **strong**") == "<p><s>gone</s> <strong>strong</strong></p>\n"


@pytest.mark.parametrize(
    "text", ["> " * 15_000, "[" * 30_000, "![a" * 10_000, "`" * 29_999, "- " * 15_000, "|a" * 15_000]
)
def test_a_text_that_means_to_take_for_ever_does_not(text):
    assert render_markdown(text) is None, "it is shown as it is"


def test_a_very_long_answer_is_shown_as_it_is():
    assert render_markdown("x" * 30_001) is None


def test_an_answer_is_one_delivery():
    answer = Message(role=Role.ASSISTANT, text="hello", created_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert plan_answer(answer) == [{"text": "hello", "at": "2026-01-01T00:00:00+00:00"}]
