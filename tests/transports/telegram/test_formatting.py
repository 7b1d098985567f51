"""Any markdown becomes messages that Telegram takes, with every word of it, in order."""

import itertools
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standins.bot_api.calls import Call
from standins.bot_api.entities import Strictness, formatted

from botservice.core.formatted_text import FormattedText, Item, List, Paragraph, Quote, Span, Spans
from botservice.core.messages import storable
from transports.markdown.reading import read_markdown
from transports.telegram.formatting import (
    Rich,
    as_wire,
    checked_link,
    format_blocks,
    format_markdown,
    render_blocks,
    units,
)

sys.path.insert(0, str(Path(__file__).parent))
from corpus import cases

CASES = cases()
STRICT = Strictness(count=True, nesting=True)


def accept(piece: Rich, limit: int = 4096) -> tuple[str, list[dict[str, object]]]:
    """Return a piece as the strictest Bot API would show it."""
    call = Call("sendMessage", {"text": piece.text, "entities": as_wire(piece)}, {})
    return formatted(call, {42}, limit=limit, strict=STRICT)


def rendered(markdown: str) -> str:
    """Return the words of a text, however long."""
    return render_blocks(read_markdown(storable(markdown))).text.strip() or markdown


def plain(text: str, limit: int = 4096) -> list[Rich]:
    """Return the messages of a text in which nothing is a mark."""
    return format_blocks((Paragraph((Span(storable(text)),)),), max_units=limit)


def ink(text: str) -> str:
    """Return what of a text can be seen."""
    return re.sub(r"[\s\u200b\u2060\u00ad\u200e\u200f\ufeff]", "", text)


def test_the_corpus_is_large_and_in_many_languages() -> None:
    assert len(CASES) >= 150


def pieces_of(markdown: str) -> list[Rich]:
    """Return the messages of a text once each is accepted and nothing is lost between them."""
    pieces = format_markdown(markdown)
    for piece in pieces:
        accept(piece)
    shown = iter(ink("".join(piece.text for piece in pieces)))
    assert all(sign in shown for sign in ink(rendered(markdown))), "in order; parts of a table repeat its head"
    return pieces


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("30,000")])
def test_every_piece_is_accepted_and_nothing_is_lost_between_pieces(name: str) -> None:
    pieces_of(CASES[name])


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("30,000")])
def test_long_prose_keeps_every_word_in_order_in_as_few_messages_as_it_needs(name: str) -> None:
    pieces = pieces_of(CASES[name])
    said = re.findall(r"[^\W_]+", re.sub(r"\(https://\S*\)", "", CASES[name]))
    shown = re.findall(r"[^\W_]+", " ".join(piece.text for piece in pieces))
    assert "".join(shown) == "".join(said)
    entities = sum(len(piece.entities) for piece in pieces)
    assert len(pieces) <= max(len(CASES[name]) * 2 // 4096, entities // 50) + 2


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("2*3*4 = 24 and 2**10 or 3**4", "2*3*4 = 24 and 2**10 or 3**4"),
        ("from $5-$10 or $20", "from $5-$10 or $20"),
        (r"from \$5 to \$10", "from $5 to $10"),
        ("a List<String> if a<b and c>d", "a List<String> if a<b and c>d"),
        ("if a || b || c", "if a || b || c"),
        ("def __init__(self)", "def __init__(self)"),
        ("__all__ of __my_name__, foo__ and __bar", "__all__ of __my_name__, foo__ and __bar"),
        ("__isNew__, __webpackRequire__ and __FILE__", "__isNew__, __webpackRequire__ and __FILE__"),
        ("created__ and __gte x__, __lt and gt__", "created__ and __gte x__, __lt and gt__"),
        ("test_* and my_** and _*", "test_* and my_** and _*"),
        ("*.py and **/*.txt and src/**/test_*.py", "*.py and **/*.txt and src/**/test_*.py"),
        ("<div>\nhello **x**\n</div>", "hello x"),
        ("one<br>two", "one\ntwo"),
        ("- [ ] open\n- [x] done", "☐ open\n☑ done"),
        ("[file](./a.py)", "file (./a.py)"),
        ("[up](#section)", "up"),
        ("[write](mailto:a@example.com)", "write (mailto:a@example.com)"),
        ("It is so[^1].\n\n[^1]: A note.", "It is so[^1].\n\n[^1]: A note."),
        ("[1]: https://example.com/1", "[1]: https://example.com/1"),
        ("# Title", "Title"),
        ("AI: hello", "AI: hello"),
        ("", ""),
        (" \n\t ", ""),
    ],
)
def test_text_that_looks_like_markup_stays(markdown: str, shown: str) -> None:
    assert "\n".join(piece.text for piece in format_markdown(markdown)) == shown


@pytest.mark.parametrize(
    ("markdown", "kinds"),
    [
        ("_**Note:**_ read this", {"italic", "bold"}),
        ("__*Note*__ read this", {"italic", "bold"}),
        ("*__Note__* read this", {"italic", "bold"}),
        ("__**Note**__ read this", {"bold"}),
        ("__Note that__ read this", {"bold"}),
    ],
)
def test_marks_within_each_other_are_all_read(markdown: str, kinds: set[str]) -> None:
    (piece,) = format_markdown(markdown)
    assert piece.text == re.sub(r"[*_]", "", markdown)
    assert {entity.kind for entity in piece.entities} == kinds


def test_entities_stand_where_the_words_are() -> None:
    (piece,) = format_markdown("👨‍👩‍👧‍👦 **bold** and [link](https://example.com/a_(b)) and `code`")
    text, entities = accept(piece)
    data = text.encode("utf-16-le")
    covered = {
        entity["type"]: data[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode("utf-16-le")
        for entity in entities
    }
    assert covered == {"bold": "bold", "text_link": "link", "code": "code"}
    assert next(e for e in entities if e["type"] == "text_link")["url"] == "https://example.com/a_(b)"


def test_a_narrow_table_is_shown_in_letters_of_one_width() -> None:
    (piece,) = format_markdown("| Name | Age |\n|---|---|\n| Ann | 30 |")
    assert piece.text == "Name | Age\n-----+----\nAnn  | 30"
    assert [entity.kind for entity in piece.entities] == ["pre"]


def test_a_table_that_is_too_wide_or_has_links_becomes_a_list_for_each_row() -> None:
    head = "| Model | Price | What it is good for |\n|---|---|---|\n"
    rows = "| **Small** | $1 | quick answers to short questions |\n| Large | | long `code` |\n"
    (piece,) = format_markdown(f"See:\n\n{head}{rows}\nThat is all.")
    assert piece.text.splitlines() == [
        "See:",
        "",
        "Model: Small",
        "• Price: $1",
        "• What it is good for: quick answers to short questions",
        "",
        "Model: Large",
        "• What it is good for: long code",
        "",
        "That is all.",
    ]
    (linked,) = format_markdown("| a | b |\n|---|---|\n| x | [docs](https://example.com) |")
    assert [entity.kind for entity in linked.entities] == ["bold", "text_link"]


def test_code_that_fits_is_never_torn() -> None:
    code = "\n".join(f"line {n}" for n in range(100))
    for before in range(3000, 4200, 37):
        pieces = format_markdown(f"{'w ' * (before // 2)}\n\n```python\n{code}\n```\n\nend")
        blocks = [p.text[e.begin : e.end] for p in pieces for e in p.entities if e.kind == "pre"]
        assert blocks == [code]


def test_long_code_is_cut_between_lines_and_stays_code() -> None:
    lines = [f"    print({n})  # line" for n in range(600)]
    pieces = format_markdown("```python\n" + "\n".join(lines) + "\n```")
    assert len(pieces) > 1
    for piece in pieces:
        (entity,) = piece.entities
        assert (entity.kind, entity.argument, entity.begin, entity.end) == ("pre", "python", 0, len(piece.text))
    assert "\n".join(piece.text for piece in pieces).split("\n") == lines


def test_prose_is_cut_between_paragraphs_then_sentences_then_words() -> None:
    paragraphs = [f"Paragraph {n} has some words in it. " * 20 for n in range(12)]
    for piece in format_markdown("\n\n".join(paragraphs)):
        assert piece.text.startswith("Paragraph")
        assert piece.text.endswith("in it.")
    sentences = "This sentence is here again and again. " * 300
    assert all(piece.text.endswith("again.") for piece in format_markdown(sentences))
    chinese = "我能吞下玻璃而不伤身体。" * 1000
    assert all(piece.text.endswith("。") for piece in format_markdown(chinese))
    assert all(not piece.text.startswith("ord") for piece in format_markdown("word " * 3000))


def test_links_are_never_torn() -> None:
    pieces = format_markdown("\n".join(f"see [link number {n}](https://example.com/{n}) here" for n in range(400)))
    found = [p.text[e.begin : e.end] for p in pieces for e in p.entities]
    assert found == [f"link number {n}" for n in range(400)]
    assert all(len(piece.entities) <= 100 for piece in pieces)


def test_families_and_flags_are_not_torn_apart() -> None:
    england, hangul = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\u1112\u1161\u11ab"
    for glyph in ("👨‍👩‍👧‍👦", "🇩🇪", "👍🏿", "1️⃣", "é", england, hangul):
        pieces = plain(glyph * 4000)
        assert "".join(piece.text for piece in pieces) == glyph * 4000
        assert all(piece.text.startswith(glyph[0]) for piece in pieces)


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://example.com", True),
        ("http://user@example.com:8080/x?y#z", True),
        ("example.com/path", True),
        ("https://münchen.de", True),
        ("http://127.0.0.1:8000/", True),
        ("tg://resolve?domain=x", True),
        ("./file", False),
        ("/etc/passwd", False),
        ("#anchor", False),
        ("javascript:alert(1)", False),
        ("mailto:a@example.com", False),
        ("http://localhost:8000", False),
        ("http://a b.com", False),
        ("https://", False),
        ("http://[", False),
        ("https://example.com:99999", False),
        ("ftp://example.com", False),
    ],
)
def test_only_addresses_that_telegram_links_become_links(url: str, linked: bool) -> None:
    assert (checked_link(url) is not None) is linked


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("ab *_~`[]()<>|#>-+.!\\\n\t$&:/1😀é"))))
def test_any_markup_soup_is_accepted(markdown: str) -> None:
    for piece in format_markdown(markdown):
        accept(piece)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("*_~`[]()<>|#>-+.!\\\n $&:/b;")), min_size=1, max_size=12))
def test_an_answer_that_is_nothing_but_markup_is_shown_as_it_is(markdown: str) -> None:
    assert bool(format_markdown(markdown)) is bool(markdown.strip())


@pytest.mark.parametrize("markdown", ["```", "<b></b>", "> > ```", "# ", "| |\n|-|", "&nbsp;", "~~~\n~~~"])
def test_markup_without_words_keeps_its_signs(markdown: str) -> None:
    (piece,) = format_markdown(markdown)
    assert piece.text == markdown.strip()
    accept(piece)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400), st.integers(20, 120))
def test_any_text_is_split_within_the_limit_and_kept(text: str, limit: int) -> None:
    pieces = plain(text, limit)
    assert all(0 < units(piece.text) <= limit for piece in pieces)
    stripped = storable(text)
    assert ink("".join(piece.text for piece in pieces)) == ink(stripped) or not ink(stripped)


BLOCKS = [
    "a",
    "word ",
    "# ",
    "- ",
    "7) ",
    "\n",
    "\n\n",
    "    ",
    "```",
    "> ",
    "| a | b |\n|--|--|\n| c | d |\n",
    "**",
    "`",
]
BLOCKS += ["[x](https://e.com)", "😀", "مرحبا ", "x " * 40]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(BLOCKS), max_size=80).map("".join), st.integers(20, 300))
def test_blocks_of_any_kind_are_cut_within_the_limit_and_no_letter_is_lost(markdown: str, limit: int) -> None:
    pieces = format_markdown(markdown, max_units=limit)
    assert all(0 < units(piece.text) <= limit for piece in pieces)
    said = Counter(filter(str.isalpha, FormattedText(read_markdown(markdown)).plain))
    assert not said - Counter("".join(piece.text for piece in pieces))


FLAGS = st.booleans()
WORDS = st.lists(
    st.builds(
        Span,
        st.text(alphabet="ab \n😀", min_size=1, max_size=12),
        bold=FLAGS,
        italic=FLAGS,
        code=FLAGS,
        strike=FLAGS,
        underline=FLAGS,
        spoiler=FLAGS,
        link=st.sampled_from([None, "https://example.com", "https://example.com/2"]),
    ),
    max_size=8,
).map(tuple)


@settings(max_examples=100, deadline=None)
@given(WORDS, WORDS, st.integers(12, 60))
def test_any_formatting_becomes_entities_that_are_accepted(words: Spans, others: Spans, limit: int) -> None:
    inner = (Paragraph(words), Quote((Paragraph(others), Quote((Paragraph(words),)))))
    for piece in format_blocks((*inner, List((Item(inner, "1."),))), max_units=limit):
        assert units(piece.text) <= limit
        accept(piece, limit)


def test_a_parser_that_fails_leaves_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("transports.markdown.reading.PARSER.parse", fail)
    assert [piece.text for piece in format_markdown("**as it is**")] == ["**as it is**"]


def test_formatting_is_pure() -> None:
    for name in itertools.islice(CASES, 40):
        assert format_markdown(CASES[name]) == format_markdown(CASES[name])


def test_a_table_with_wide_letters_has_straight_columns() -> None:
    table = "前\n\n| 名前 | 説明 |\n|---|---|\n| 犬 | とても**良い**動物 |\n| Rex | `a` dog |\n\n後"
    [shown] = format_markdown(table)
    assert shown.text.splitlines()[2:6] == [
        "名前 | 説明",
        "-----+---------------",
        "犬   | とても良い動物",
        "Rex  | a dog",
    ]
    assert [each.kind for each in shown.entities] == ["pre"]
