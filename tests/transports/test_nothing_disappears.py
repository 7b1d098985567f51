"""What a model writes is what people read on every platform: nothing of it disappears, and nothing is counted again."""

import html
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console
from standins.slack_api.mrkdwn import read_mrkdwn

from botservice.config.setting_choices import SlackPings
from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    Formula,
    FormulaBlock,
    Heading,
    List,
    Paragraph,
    Quote,
    Span,
    Spans,
    Table,
)
from transports.markdown.reading import read_markdown
from transports.slack.answer_blocks import read_page
from transports.slack.formatting import as_text, format_answer
from transports.telegram.formatting import format_blocks, format_markdown
from transports.telegram.rich import as_rich
from transports.terminal.rendering import RenderedScreen
from transports.web.markdown import render_markdown

DATA = Path(__file__).parents[1] / "data"


def in_telegram(text: str) -> str:
    return "\n".join(piece.text for piece in format_markdown(text))


def in_rich_telegram(text: str) -> str:
    """Return the words of a rich message; where a text gains nothing by one, those of the messages that it makes."""
    rich = as_rich(text, is_long=True)
    return in_telegram(text) if rich is None else "".join(rich_words(rich["blocks"]))


def rich_words(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from rich_words(each)
        case dict():
            if "blocks" in value and "value" in value:
                yield f"\n{value['value']}. "
            for name in ("language", "text", "expression", "cells", "items", "blocks"):
                yield from rich_words(value.get(name, []))


def in_browser(text: str) -> str:
    """Return the words of a page; a list shows the numbers that its elements say."""
    return in_html("".join(render_markdown(text)))


def in_html(shown: str) -> str:
    number = 0
    parts = []
    for part in re.split(r"(<[^>]*>)", shown):
        if part.startswith("<ol"):
            number = int((re.search(r'start="(\d+)"', part) or [0, 1])[1]) - 1
        elif part.startswith("<li"):
            value = re.search(r'value="(\d+)"', part)
            number = int(value[1]) if value else number + 1
            parts.append(f"{number}. ")
        elif not part.startswith("<"):
            parts.append(html.unescape(part))
    return "".join(parts)


def on_terminal(text: str) -> str:
    target = io.StringIO()
    RenderedScreen(Console(file=target, width=400, highlight=False)).answer(text)
    return target.getvalue()


SLACK = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])  # as its documentation has it


def in_slack(text: str) -> str:
    """Return what Slack shows: its own parser leaves tags out, and counts the points of a list."""
    parts = []
    for piece in format_answer(text, SlackPings.NONE):
        for block in read_page(piece).blocks():
            rows = block.get("rows", ())
            parts += [cell["text"] for row in rows for cell in row]
            shown = SLACK.render(block.get("text", ""))
            parts.append(in_html(re.sub(r'<img [^>]*alt="([^"]*)"[^>]*>', r"\1", shown)))  # a picture is a link
    return " ".join(parts)


def in_slack_text(text: str) -> str:
    """Return what Slack shows where it takes neither blocks nor Markdown, as its sender sends it then."""
    return " ".join(read_mrkdwn(as_text(piece), has_marks=False) for piece in format_answer(text, SlackPings.NONE))


PLATFORMS: dict[str, Callable[[str], str]] = {"telegram": in_telegram, "browser": in_browser, "terminal": on_terminal}
EVERYWHERE = {**PLATFORMS, "slack": in_slack}
PLAIN = {
    "telegram": lambda text: "\n".join(each.text for each in format_blocks((Paragraph((Span(text),)),))),
    "slack": in_slack_text,
}
LITERAL = [
    "5$/month or 50$/year",
    "$AAPL/$MSFT",
    "cp $SRC/$FILE and echo $A$B",
    "^foo$|^bar$",
    "^[a-z]+\\d{2,}$|^x$ and (a|b)+$|^c$",
    "from 60k$ in May to 3k$ in June",
    "between $5-$10, US$30 to $40; 100$ and 200$",
    "($5) and ($6), $5/$6",
    "cost 5$$ or $$6",
    "F = m*a*t",
    "price*qty*tax",
    "snake_case_name and a_b_c",
    "2**n + 3**n, x**2 and y**2",
    "(a)*2*(b), 2*(3+4)*5",
    "Use <b> for bold, <i> for italics and <div> for a block",
    "the <p> and </p> tags, an empty <b></b>, a <br> alone, <img src=x>",
    "std::vector<std::string> and Map<K, V>, if a<b and c>d",
    "git clone <url> && cd <your folder>",
    "*.py and **/*.txt, src/**/test_*.py, test_*_a and test_*_b",
    "C:\\logs\\*.txt",
    "__init__ and __all__",
    "if a || b || c",
    "if x ~ 5 and y ~ 6",
    "<# a> and <@ b>, <!c> and <!date^1^d|e>",
]
TEXTS = [
    ("**Apples 5$/kg** and **pears 7$/kg**", "Apples 5$/kg and pears 7$/kg"),
    ("2. two\n5. five\n9. nine", "2. two 5. five 9. nine"),
    ("1. one\n\n1986. That was the year.", "1. one 1986. That was the year."),
    ("<help@example.com>", "help@example.com"),
    ("see [1]\n\n[2]: https://example.com/2", "see [1] [2]: https://example.com/2"),
    ("[](https://example.com/page)", "https://example.com/page"),
    ("![](https://example.com/a.png)", "https://example.com/a.png"),
]


@pytest.mark.parametrize("platform", EVERYWHERE)
@pytest.mark.parametrize("text", LITERAL)
def test_signs_that_are_no_marks_stay(platform: str, text: str) -> None:
    assert EVERYWHERE[platform](text).strip() == text


@pytest.mark.parametrize("platform", PLAIN)
@pytest.mark.parametrize("text", [*LITERAL, *(text for text, _ in TEXTS)])
def test_without_formatting_all_is_shown_as_it_was_written(platform: str, text: str) -> None:
    assert PLAIN[platform](text).strip() == text


@pytest.mark.parametrize("platform", EVERYWHERE)
@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_marks_become_formatting_and_the_words_stay(platform: str, text: str, shown: str) -> None:
    assert " ".join(EVERYWHERE[platform](text).split()) == shown


@pytest.mark.parametrize("platform", EVERYWHERE)
@pytest.mark.parametrize(
    "text",
    ['[a](https://e.example "The title")', "![a](https://e.example/b.png 'The title')", '[a]\n\n[a]: /b "The title"'],
)
def test_the_title_of_a_link_is_shown(platform: str, text: str) -> None:
    """No platform shows it by itself: it is not a mark that was turned into formatting."""
    shown = EVERYWHERE[platform](text)
    assert letters(shown).startswith("a")
    assert "The title" in shown


@pytest.mark.parametrize("platform", EVERYWHERE)
def test_a_title_that_says_the_same_as_its_link_is_shown_once(platform: str) -> None:
    assert EVERYWHERE[platform]('[Docs](https://e.example "Docs")').count("Docs") == 1


def test_an_address_of_mail_in_angle_brackets_leads_to_no_web_page() -> None:
    text = "<help@example.com>"
    assert [each.kind for piece in format_markdown(text) for each in piece.entities] == []
    assert 'href="mailto:help@example.com"' in "".join(render_markdown(text))
    assert read_page(text).text == "[help@example.com](mailto:help@example.com)"


@pytest.mark.parametrize("platform", EVERYWHERE)
def test_every_cell_of_a_table_is_shown(platform: str) -> None:
    shown = EVERYWHERE[platform]("| Call | Means |\n|---|---|\n| `a|b` | either | and more |\n| `x \\| y` | both |")
    for words in ("a|b", "either", "and more", "x | y", "both"):
        assert words in shown


@pytest.mark.parametrize("platform", EVERYWHERE)
def test_a_formula_stands_between_cjk_words_without_blanks(platform: str) -> None:
    assert EVERYWHERE[platform]("面积是$x^2$。").strip() in ("面积是x²。", "面积是x2。", "面积是$x^2$。")


@pytest.mark.parametrize("platform", EVERYWHERE)
@pytest.mark.parametrize("formula", ["$x^2$", "\\(x^2\\)", "\\[x^2\\]", "$$x^2$$", "$$\nx^2\n$$", "\\[\nx^2\n\\]"])
def test_a_formula_is_found_where_it_is_one_for_certain(platform: str, formula: str) -> None:
    assert EVERYWHERE[platform](formula).strip() in ("x²", "x2", formula)
    assert "x^2" in EVERYWHERE[platform](f"`{formula}`" if "\n" not in formula else f"```\n{formula}\n```")


def letters(text: str) -> str:
    """Return the letters and digits of a text, whatever they are written as."""
    return "".join(each for each in unicodedata.normalize("NFKC", text) if each.isalnum())


def holds(shown: str, wanted: str) -> str:
    """Return what of the letters wanted is not shown, in their order; nothing if all of it is."""
    rest = iter(letters(shown))
    for at, letter in enumerate(letters(wanted)):
        if letter not in rest:  # which goes on from where the last one was found
            return letters(wanted)[max(0, at - 10) :]
    return ""


def below(blocks: Blocks) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Quote):
            yield from below(block.blocks)
        elif not isinstance(block, List):
            yield block
        else:
            for item in block.items:
                yield Paragraph((), is_close=True) if item.number is None else CodeBlock(item.number)
                yield CodeBlock("x" if item.is_checked else "")
                yield from below(item.blocks)


def words(spans: Spans, *, with_links: bool) -> str:
    said, link = [], None
    for each in spans:
        new = None if isinstance(each, Formula) else each.link
        if link is not None and link != new and with_links:
            said.append(link)
        link = new
        said.append(each.written if isinstance(each, Formula) else each.text)
    return "".join([*said, link or ""] if with_links else said)


def said_by(blocks: Blocks, *, is_whole: bool) -> str:
    """Return what a tree says: all of it, or what every platform shows in this order."""
    parts = []
    for block in below(blocks):
        match block:
            case Paragraph(spans) | Heading(spans):
                parts.append(words(spans, with_links=is_whole))
            case CodeBlock(text, language):
                parts += [language if is_whole else "", "" if text == "x" and not is_whole else text]
            case FormulaBlock(_, written):
                parts.append(written)
            case Table(rows) if is_whole:
                parts += [words(cell, with_links=True) for row in rows for cell in row]
    return "".join(parts)


def cells_of(blocks: Blocks) -> Iterator[str]:
    for block in below(blocks):
        if isinstance(block, Table):
            yield from (words(cell, with_links=False) for row in block.rows for cell in row)


_ADDRESS = re.compile(r"\]\(https?://[^\s)]*")
_TAGS = re.compile(r"</?(?:b|i|br|div)>")


SURFACES = {
    **EVERYWHERE,
    "rich messages of telegram": in_rich_telegram,
    **{f"{name}, plain": show for name, show in PLAIN.items()},
}


def check(text: str, *surfaces: str) -> None:
    """Check that the tree says all of a text, and every platform, or those that are named, all of the tree."""
    tree = read_markdown(text)
    assert holds(said_by(tree, is_whole=True), _TAGS.sub("", text)) == ""
    wanted = said_by(tree, is_whole=False)
    for name in surfaces or SURFACES:
        shown = SURFACES[name](text)
        # For Slack, a link within dollars is a link: its address was turned into formatting.
        assert holds(shown, _ADDRESS.sub("", wanted) if name == "slack" else wanted) == "", name
        assert all(holds(shown, cell) == "" for cell in cells_of(tree)), name


SIGNS = (
    *("a", "b1", "Zé", "你好", "は", "한", "  ", " ", "\n", "\n\n", "\n    ", "*", "**", "***", "_", "__", "~~"),
    *(
        "`",
        "``",
        "```",
        "~~~",
        "$",
        "$$",
        "$x$",
        "|",
        "||",
        "\n|",
        "|---|",
        "\n|-|-|\n",
        "[",
        "](",
        ")",
        "![",
        "<",
        ">",
    ),
    *("<b>", "</b>", "<br>", "<div>", "</div>", "<x>", "- ", "\n- ", "\n1. ", "\n7) ", "1986. ", "> ", "\n> ", "# "),
    *(
        "\n## ",
        "\n---\n",
        "\n===\n",
        "- [ ] ",
        "- [x] ",
        "\n3. [x] ",
        "https://a.example/b_c",
        "<https://b.example>",
        "!",
        "(",
    ),
    *(
        "<c@d.example>",
        "<",
        ">",
        "5$/kg",
        "a*b*c",
        "{",
        "}",
        "^",
        "=",
        "+",
        ".",
        ":",
        "/",
        "\\*",
        "\\(",
        "\\)",
        ' "t9")',
        '[w](https://u.example "t8")',
        "\t",
        "&",
    ),
)
SOUP = st.lists(st.sampled_from(SIGNS), max_size=40).map("".join)


@settings(max_examples=300, deadline=None)
@given(SOUP)
def test_no_letter_of_any_text_disappears(text: str) -> None:
    check(text)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("surface", SURFACES)
def test_no_letter_of_ten_thousand_texts_disappears(surface: str) -> None:
    @settings(max_examples=10_000, deadline=None)
    @given(SOUP | st.lists(st.sampled_from(SIGNS), min_size=40, max_size=120).map("".join))
    def check_each(text: str) -> None:
        check(text, surface)

    check_each()


ANSWERS = [json.loads(line) for line in (DATA / "model_answers.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_answers_are_many_and_in_ten_languages() -> None:
    assert len(ANSWERS) >= 300
    assert len({each["language"] for each in ANSWERS}) == 10


@pytest.mark.parametrize("kind", sorted({each["kind"] for each in ANSWERS}))
def test_answers_as_models_write_them_are_read_whole_everywhere(kind: str) -> None:
    """A formula may be converted; everything else of an answer has to be there as it was written."""
    for text in (each["text"] for each in ANSWERS if each["kind"] == kind):
        if "\\frac" not in text:
            check(text)
        if "formula" not in kind:
            assert all(show(text).count("$") == text.count("$") for show in EVERYWHERE.values()), text
        shown = in_slack(text)
        wanted = said_by(read_markdown(text), is_whole=False).replace("x", "")  # of a ticked box
        assert holds(shown, wanted) == "", text
