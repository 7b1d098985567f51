"""Emphasis next to Chinese, Japanese and Korean words is found on every screen, and other markdown reads as before."""
# ruff: noqa: RUF001 - signs as wide as CJK letters are what this is about

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from transports.markdown.emphasis import take_emphasis
from transports.telegram.formatting import format_markdown
from transports.telegram.rich import as_rich
from transports.terminal.rendering import RenderedScreen
from transports.web.markdown import render_markdown

BOLD = [
    ("**注意：**请先备份数据。", "注意："),
    ("これは**「重要」**です。", "「重要」"),
    ('이것은 **"중요"**입니다.', '"중요"'),
    ("这是**“重要”**的", "“重要”"),
    ("第一步**（必须）**，然后继续", "（必须）"),
    ("请看**100%**的结果", "100%"),
    ("共有**3**个选项", "3"),
    ("**（重要）**2个", "（重要）"),
    ("**Note：**see below", "Note："),
    ("우리는 **Note🎉**이라고", "Note🎉"),
    ("**\u1112\u1161\u11ab!**\u1100\u1173", "\u1112\u1161\u11ab!"),
]
UNCHANGED = [
    "**Note:**see below",
    'say**"this"**again',
    "**Done!**🎉 and **Done**🎉",
    "~~No.~~Yes",
    "naïve**(é)**è",
    "**Внимание:**текст",
]
LITERAL = [
    "价格100元*（含税），200元*（不含税）",
    "char*「指针」和 int*「指针」",
    "x*（a+b）*y",
    "2*(3+4)*5 and a*(b)*c",
]
PLAIN, FRIENDLY = (MarkdownIt("commonmark").enable("strikethrough") for _ in range(2))
take_emphasis(FRIENDLY)
LETTERS = st.lists(st.sampled_from(["**", "~~", *"ab é.:!\"'()`[]\\$-+\n🎉€“”"]), max_size=30).map("".join)


@pytest.mark.parametrize(("markdown", "bold"), BOLD)
def test_words_beside_cjk_are_bold_in_telegram(markdown: str, bold: str) -> None:
    (piece,) = format_markdown(markdown)
    assert piece.text == markdown.replace("**", "")
    assert [(each.kind, piece.text[each.begin : each.end]) for each in piece.entities] == [("bold", bold)]


@pytest.mark.parametrize("markdown", LITERAL)
def test_single_stars_beside_brackets_are_no_emphasis(markdown: str) -> None:
    (piece,) = format_markdown(markdown)
    assert (piece.text, list(piece.entities)) == (markdown, [])
    assert FRIENDLY.render(markdown) == f"<p>{markdown}</p>\n"


@pytest.mark.parametrize(("markdown", "bold"), BOLD)
def test_words_beside_cjk_are_bold_in_a_rich_message(markdown: str, bold: str) -> None:
    rich = as_rich(f"| a |\n|---|\n| {markdown} |", is_long=False)
    assert rich is not None
    text = rich["blocks"][0]["cells"][1][0]["text"]
    assert {"type": "bold", "text": bold} in text


@pytest.mark.parametrize(("markdown", "bold"), BOLD)
def test_words_beside_cjk_are_bold_in_the_browser(markdown: str, bold: str) -> None:
    (shown,) = render_markdown(markdown)
    assert f"<strong>{bold}</strong>".replace('"', "&quot;") in shown


@pytest.mark.parametrize(("markdown", "bold"), BOLD)
def test_words_beside_cjk_are_bold_on_the_terminal(markdown: str, bold: str) -> None:
    target = io.StringIO()
    RenderedScreen(Console(file=target, force_terminal=True, width=80)).answer(markdown)
    assert f"\x1b[1m{bold}\x1b[0m" in target.getvalue()


@pytest.mark.parametrize("markdown", UNCHANGED)
def test_other_words_are_read_as_before(markdown: str) -> None:
    assert FRIENDLY.render(markdown) == PLAIN.render(markdown)


@given(LETTERS)
def test_nothing_changes_without_cjk(markdown: str) -> None:
    assert FRIENDLY.render(markdown) == PLAIN.render(markdown)


@given(st.text("ab注意です중：。「」（）.:()*_\\ \n", max_size=30))
def test_what_is_shown_is_what_was_written(markdown: str) -> None:
    shown = "".join(piece.text for piece in format_markdown(markdown))
    letters = r"[^\W_]|[：。「」（）]"
    assert re.findall(letters, shown) == re.findall(letters, markdown)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("`**注意：**请` and\n\n```\n**注意：**请\n```", "**注意：**请 and\n\n**注意：**请"),
        ("长*（宽+高）*2", "长*（宽+高）*2"),
        (r"请\**注意：**看", "请**注意：**看"),
        ("| 名 | b |\n|---|---|\n| **注意：**请 | c |", "名       | b\n---------+--\n注意：请 | c"),
        ("[这里](https://example.com/**：**请)", "这里"),
    ],
)
def test_code_arithmetic_and_tables_are_kept_as_they_are(markdown: str, shown: str) -> None:
    (piece,) = format_markdown(markdown)
    assert piece.text == shown
