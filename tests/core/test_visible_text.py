"""Text of others as people see it: whatever hides is written out, and no direction of writing moves its neighbours."""
# ruff: noqa: RUF001 - signs of many scripts

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.core.quoting import quote_name
from botservice.core.visible_text import FSI, PDI, begun_isolate, hides, is_all_seen, shown_beginning, visible
from botservice.turns.readable_arguments import arguments_in_one_line, readable_arguments

SIGNS = st.sampled_from("אבגדשם عرب ٥٩ 09 ab\"',:;{}[]()-/.\n") | st.characters(categories=("Lo", "Mn", "Nl", "So"))
MIXED = st.text(SIGNS, max_size=30)


def outside(shown: str) -> str:
    """Return what stands in no isolate; isolates stand in none, and end in their line."""
    kept, is_open = [], False
    for sign in shown:
        if sign in (FSI, PDI):
            assert is_open is (sign == PDI)
            is_open = sign == FSI
        else:
            assert not (is_open and sign == "\n")
            kept += [] if is_open else [sign]
    assert not is_open
    return "".join(kept)


def runs_from_left(text: str) -> bool:
    return not {unicodedata.bidirectional(each) for each in text} & {"R", "AL", "AN"}


@given(MIXED)
def test_nothing_beside_an_isolate_runs_from_right_to_left(text: str) -> None:
    for is_code in (False, True):
        assert runs_from_left(outside(visible(text, is_code=is_code, keeps_lines=True)))


@given(st.dictionaries(MIXED, MIXED | st.lists(MIXED | st.integers(), max_size=4), max_size=3))
def test_what_stands_between_values_is_in_the_order_in_which_it_runs(arguments: dict) -> None:
    for shown, _ in (readable_arguments(arguments), arguments_in_one_line(arguments, 300)):
        assert runs_from_left(outside(shown))


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"way": ["א", 5, 900, "ב"]}, 'way: ["<א>", 5, 900, "<ב>"]'),
        ({"run": 'pay "א" 5 900 "ב"'}, 'run: pay "<א>" 5 900 "<ב>"'),
        ({"run": '["א", 5, 900, "ב"]'}, 'run: "["<א>", 5, 900, "<ב>"]"'),
        ({"run": "א; send 900 to ב"}, "run: <א>; send 900 to <ב>"),
        ({"title": "שלום, מה נשמע?"}, "title: <שלום, מה נשמע?>"),
        ({"title": "לשלם 100 לדני"}, "title: <לשלם 100 לדני>"),
        ({"path": "א/ב/ג"}, "path: <א>/<ב>/<ג>"),
        ({"amounts": "from ٥ ٩٠٠ to"}, "amounts: from <٥> <٩٠٠> to"),
        ({"שם": 5}, '"<שם>": 5'),
        (
            {"note": {"token": "אבגדהוזחטיכלמנסעפצקרשת", "to": "א"}},
            'note: {"token": "<אב>••••••<שת> (22)", "to": "<א>"}',
        ),
    ],
)
def test_values_from_right_to_left_stand_by_themselves(arguments: dict, shown: str) -> None:
    assert readable_arguments(arguments)[0].replace(FSI, "<").replace(PDI, ">") == shown


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u2068", "\u2069", "\u200f", "\u061c"])
def test_what_turns_the_direction_is_written_out(sign: str) -> None:
    assert visible(f"a{sign}b") == f"a\\u{ord(sign):04x}b"


@pytest.mark.parametrize(
    "text",
    [
        "a\u0336",  # crossed out
        "a\u20e0",  # a sign that forbids
        "a\u20dd",
        "50\u0338",
        "a\u030a",  # Telegram takes it out
        "a\u0333",
        "\u0301",  # on what stands before it
        " \u0301",
        '"\u0301',
        "a\u0301\u0301\u0301",
        "ก\u0e34\u0e34\u0e34\u0e34\u0e34\u0e34",
        "a\U000e0041",
        "\U0001f3f4\U000e0067\U000e007f",
        "a\ufe0f",
        "a\ufe01",
        "\u2603\U000e0100",
        "\u2603\u3164",
        "\u2603\u200d",
        "\u2801\ufe0f",  # Braille, and a box, are no pictures
        "\u2500\ufe0f",
        "`\u200d",
        "a\u115f",
        "a\u1160",
        "a\u2800",
        "a\U0001d159",
        "a\U00013441",
        "a\ufffc",
        "a\u2d7f",
        "a\ue000",
        "a\u0378",
        "a\u200b",
        "a\u2028",
        "a\u3000",
    ],
)
def test_what_hides_or_covers_others_is_written_out(text: str) -> None:
    sign = text[-1]
    written = f"\\u{ord(sign):04x}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08x}"
    assert written in visible(text)


@pytest.mark.parametrize(
    "text",
    [
        "Zoe\u0308",
        "mo\u0302\u0323t",
        "は\u3099",
        "हिन्दी",
        "ภาษาไทยที่",
        "မြန်မာကြွှော",
        "བསྒྲུབས་",
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468",
        "1\ufe0f\u20e3",
        "\u2194\ufe0f",
        "\u25b6\ufe0f",
        "\u00a9\ufe0f",
        "\U0001f44d\U0001f3fd",
        "⭐\ufe0f",
    ],
)
def test_what_writing_and_pictures_need_stays(text: str) -> None:
    assert visible(text) == text
    assert not any(hides(text))


def test_line_breaks_are_written_out_where_they_are_not_kept() -> None:
    assert visible("é\nb") == "é\\nb"
    assert visible("a\nb") == "a\\nb"
    assert visible("é\nb", keeps_lines=True) == "é\nb"


def test_hebrew_with_all_its_points_stays() -> None:
    text = "שׁ\u05bc\u05b8\u0596לוֹם"
    assert visible(text) == f"{FSI}{text}{PDI}"


def test_every_sign_of_the_categories_that_hide_is_written_out() -> None:
    for each in map(chr, (*range(0x30000), *range(0xE0000, 0xE1000), 0xF0000, sys.maxunicode)):
        hiding = unicodedata.category(each) in ("Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp")
        if hiding and each != "\n":
            assert visible(f"/{each}/") in (f"/\\u{ord(each):04x}/", f"/\\U{ord(each):08x}/")


def test_what_is_not_looked_through_hides_nothing() -> None:
    for each in filter(is_all_seen, map(chr, range(0x20000))):
        assert list(hides(f"{each}\u2060")) == [False, True]


def test_names_for_a_model_lose_what_is_not_seen_and_keep_what_is() -> None:
    assert quote_name("Z\u0336a\u0336l\u0301\u0302\u0303\u0304go\u3164 \u2800\U000e0041X") == "Zal\u0301\u0302go X"
    assert quote_name("\u3164\u2800\u115f") == "somebody"
    assert quote_name("\u0631\u0648\u200c\u0632 \u2764\ufe0f") == "\u0631\u0648\u200c\u0632 \u2764\ufe0f"


def test_a_cut_text_keeps_its_isolates() -> None:
    shown = visible("pay אבגדה now")
    assert outside(shown_beginning(shown, 7)) == "pay "
    assert begun_isolate(shown, 7) == FSI
    assert begun_isolate(shown, len(shown)) == ""
    assert begun_isolate("\u2068א\nb", 4) == ""
