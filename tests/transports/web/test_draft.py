"""An answer while it is written: block by block, at a cost that grows with its length, and as it is stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.common.growing_answer import AnswerState
from transports.markdown.sections import Sections, split_sections
from transports.web.markdown import render_markdown
from transports.web.streaming import WebDraft

ANSWER = """# Plan

Text with **bold**, `code`, $x^2$ and a [link](https://example.com).
Another line.
- one
- two

  still two

1. a

2. b

| a | b |
|---|--:|
| 1 | 2 |

```python
def f(x):

    return x
```
After the code
$$
\\frac{a}{b}
$$

> said

*End*.

# Last"""
SIGNS = (
    "a",
    "# ",
    "- ",
    "1. ",
    "2. ",
    "\n",
    "\n\n",
    "  ",
    "    ",
    "```",
    "~~~",
    "`",
    "> ",
    "|",
    "---",
    "**",
    "$$",
    "\r\n",
)


def pieces_of(text: str, size: int) -> list[str]:
    return [text[begin : begin + size] for begin in range(0, len(text), size)]


async def write(pieces: list[str], *, is_all: bool = False) -> WebDraft:
    draft = WebDraft(AnswerState())
    for piece in pieces:
        draft.add(piece)
        await draft.format(is_all=is_all)
    return draft


@given(st.lists(st.sampled_from(SIGNS), max_size=40).map("".join), st.integers(1, 9))
def test_sections_do_not_depend_on_the_pieces_in_which_a_text_comes(text, size):
    sections = Sections()
    for piece in pieces_of(text, size):
        sections.add(piece)
    sections.end()
    rest = sections.open
    assert [*sections.closed, *([rest.strip("\n")] if rest.strip() else [])] == split_sections(text)


@given(st.lists(st.sampled_from(SIGNS), max_size=40).map("".join))
def test_sections_hold_every_line_of_a_text(text):
    lines = [line for section in split_sections(text) for line in section.split("\n") if line.strip()]
    assert lines == [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
async def test_the_stored_answer_looks_as_the_draft_left_it(size):
    draft = await write(pieces_of(ANSWER, size))
    draft.close()
    await draft.format(is_all=True)
    stored = render_markdown(ANSWER)
    assert draft.all_blocks == stored
    assert len(stored) == 8


@pytest.mark.parametrize("size", [1, 7])
async def test_a_block_that_is_complete_does_not_change_any_more(size):
    draft, known = WebDraft(AnswerState()), []
    for piece in pieces_of(ANSWER, size):
        draft.add(piece)
        await draft.format(is_all=True)
        assert draft.blocks[: len(known)] == known
        known = list(draft.blocks)
    assert len(known) == 6


@pytest.mark.parametrize(
    "block",
    [
        "word " * 20 + "\n\n",
        "word " * 40,
        "- a point of a list\n",
        "| a | b | c |\n",
        "    code\n",
        "a line **of** text\n",
    ],
)
@pytest.mark.slow
async def test_the_work_grows_with_the_answer_and_not_with_its_square(block):
    text = ("| a | b | c |\n|---|---|---|\n" if "|" in block else "") + block * (40_000 // len(block))
    draft = await write(pieces_of(text, len(text) // 2_000))
    assert draft.formatted <= 30 * len(text)
    assert len("".join(draft.all_blocks)) >= 0.9 * len(text)


@pytest.mark.slow
async def test_the_work_on_a_long_block_of_code_grows_with_its_length():
    text = "```python\n" + "value = compute(1)  # and so on\n" * 600
    draft = await write(pieces_of(text, 20))
    assert draft.formatted <= 30 * len(text)


async def test_a_short_block_grows_with_every_word():
    draft, seen = WebDraft(AnswerState()), []
    for word in ("Once ", "upon ", "a ", "time"):
        draft.add(word)
        await draft.format(is_all=False)
        seen.append(draft.open_block)
    assert seen == ["<p>Once</p>\n", "<p>Once upon</p>\n", "<p>Once upon a</p>\n", "<p>Once upon a time</p>\n"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("so **bold", "<p>so <strong>bold</strong></p>\n"),
        ("so **bold*", "<p>so <strong>bold</strong></p>\n"),
        ("so **", "<p>so</p>\n"),
        ("see `code", "<p>see <code>code</code></p>\n"),
        ("see [the page](https://exam", "<p>see the page</p>\n"),
        ("see [the pa", "<p>see the pa</p>\n"),
        ("so\n| a | b |\n|--", "<p>so</p>\n"),
        ("so\n$$\n\\frac{a", "<p>so</p>\n"),
        ("so\n\\[\n\\frac{a", "<p>so</p>\n"),
    ],
)
async def test_signs_that_are_not_closed_yet_do_not_show(written, shown):
    assert (await write([written], is_all=True)).open_block == shown


async def test_a_table_and_code_can_be_read_while_they_are_written():
    table = await write(["| a | b |\n|---|---|\n| 1 | 2 |\n| 3"], is_all=True)
    assert "<td>2</td>" in table.open_block
    assert "<td>3</td>" in table.open_block
    code = await write(["```python\nx = 1\ny = "], is_all=True)
    assert 'class="code"' in code.open_block
    assert "y = " in code.open_block


async def test_what_an_answer_shows_of_a_link_that_is_named_later_is_put_right_at_the_end():
    text = "see [here][1]\n\n[1]: https://example.com\n\nend"
    draft = await write([text], is_all=True)
    assert [a != b for a, b in zip(draft.all_blocks, render_markdown(text), strict=True)] == [True, False]
