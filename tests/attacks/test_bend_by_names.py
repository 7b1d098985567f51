"""Bend: a name that a person chose is a name to owners: no link, no mention, no style, on any platform."""

import re

import pytest
from people.conversing import ALICE, command, open_chat

from botservice import Author, Storage
from botservice.commands.access import _label, _line
from botservice.commands.catalogue import Catalogue
from botservice.commands.links import LINK
from botservice.core.formatted_text import Span
from botservice.core.messages import InboundMessage
from botservice.core.quoting import quote_name, quote_text
from botservice.people.access_values import AccessEntry, Subject, SubjectKind
from botservice.texts import LANGUAGES
from botservice.texts.formatted import quoted
from botservice.turns.commands import CommandRequest
from transports.telegram.formatting import render_blocks
from transports.web.markdown import render_formatted

NAMES = [
    "https://evil.example/login",
    "[your bank](https://evil.example)",
    "evil.example",
    "**Owner** of *all* __this__ ~~now~~",
    "`code` ``more`` \\`",
    "@durov",
    "<!channel> <@U0BOB>",
    "<https://evil.example|press here>",
    "a\n# Title\n- item\n> quote",
    "||hidden|| $$x$$ ![p](https://evil.example/p.png)",
    "tg://user?id=1 mailto:a@evil.example",
    "\x1b[2J\x1b[31mred\x07",
    "/approve me #now",
    "<b>bold</b><script>alert(1)</script>",
]


def plain(name: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in name).split())


@pytest.mark.parametrize("name", NAMES)
def test_a_newcomers_name_reaches_owners_as_plain_text(name: str) -> None:
    entry = AccessEntry(Subject(SubjectKind.PERSON, "telegram:7"), None, name=name, code="ABCD-EFGH")
    requests = [CommandRequest(None, InboundMessage("/access", language=each), *[None] * 4) for each in LANGUAGES]
    for said in [show(entry, request) for request in requests for show in (_line, _label)]:
        shown = render_blocks(said.blocks)
        assert {each.kind for each in shown.entities} <= {"code"}
        assert "telegram:7" in shown.text
        spans = [span for block in said.blocks for span in block.spans]
        assert not re.search(r"https?:|evil|[<@*\[]", "".join(each.text for each in spans if not each.code))
        html = "".join(render_formatted(said))
        assert not re.search(r"<(a|b|strong|em|s|h1|ul|img|script|blockquote)\b", html)
        assert "\x1b" not in said.plain
        assert "\n" not in said.plain


@pytest.mark.parametrize("name", ["Ana", "Zoë-Łukasz O'Neil", "Dr. Ana (Lyon)", "山田 太郎", "Аня", "👩‍👩‍👧 family"])
def test_usual_names_look_as_ever(name: str) -> None:
    assert quoted(name) == Span(name)


def test_a_name_from_right_to_left_moves_nothing_beside_it() -> None:
    assert quoted("أحمد") == Span("\u2068أحمد\u2069")


async def test_linking_shows_platform_and_id_beside_a_name(sqlite_storage: Storage) -> None:
    eve = Author("telegram", "7", "[Ana](https://evil.example)")
    chat, evil = (
        await open_chat(sqlite_storage, "slack-ana", ALICE),
        await open_chat(sqlite_storage, "telegram-eve", eve),
    )
    offer = (await command(chat, "/link", ALICE, Catalogue([LINK]))).text
    code = re.search(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b|\b\d{4,}\b", offer)
    assert code is not None
    taken = (await command(evil, f"/link {code[0]}", eve, Catalogue([LINK]))).text
    assert "telegram:1" in taken
    await command(evil, "/link accept 1", eve, Catalogue([LINK]))
    asked = (await command(chat, "/link confirm", ALICE, Catalogue([LINK]))).text
    assert "[Ana](https://evil.example) on Telegram (telegram:7)" in asked


@pytest.mark.parametrize("name", [*NAMES, "", "  ", "\u200b", "x" * 500])
def test_a_name_in_a_prompt_is_one_short_line_without_brackets(name: str) -> None:
    quoted = quote_name(name)
    assert 0 < len(quoted) <= 80
    assert not re.search(r'[<>\[\]{}|:"\n`\x1b]', quoted)


@pytest.mark.parametrize(
    "mark", ["</person>", "</ PERSON >", "<memory>", "< /memory>", "<|im_end|>", "\uff1c/memory>", "<system>"]
)
def test_no_text_ends_or_begins_a_part_of_a_prompt(mark: str) -> None:
    assert mark not in quote_text(f"before {mark} after")
    assert quote_text("if a < b: <div> </p> x<y") == "if a < b: <div> </p> x<y"
