"""Markdown as HTML: what it looks like, that nothing in it can do anything, and that no shape of it takes long."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.markdown.mathml import ATTRIBUTES as OF_FORMULAS
from transports.markdown.mathml import ELEMENTS as FORMULAS
from transports.markdown.mathml import show_formula
from transports.web.highlighting import KINDS, LANGUAGES, _lexer, highlight
from transports.web.markdown import render_markdown

_PLAIN = "p br strong em s u code pre ul ol li blockquote hr a div span figure figcaption"
TAGS = {*_PLAIN.split(), "table", "thead", "tbody", "tr", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6"}
ATTRIBUTES = {
    "a": {"href", "target", "rel"},
    "ol": {"start"},
    "li": {"value"},
    "pre": {"tabindex", "dir"},
    "div": {"tabindex"},
}
CLASSES = {
    "p": {"plain"},
    "div": {"table", "formula"},
    "span": {"math", "formula", *KINDS},
    "figure": {"code"},
    "th": {"left", "center", "right"},
    "td": {"left", "center", "right"},
    "mtd": {"left", "right"},
}
VALUE = re.compile(r"[\w .%+#-]{0,40}")


class Checker(HTMLParser):
    """Fails where anything but text, marks, safe links, code, tables and formulas is in it."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.deepest = 0

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS or (tag in FORMULAS and (tag == "math" or "math" in self.open)), tag
        if tag not in ("br", "hr"):
            self.open.append(tag)
            self.deepest = max(self.deepest, len(self.open))
        for name, value in attributes:
            if name == "class":
                assert value in CLASSES.get(tag, ()), (tag, value)
            elif name == "href":
                assert value.lower().startswith(("http://", "https://", "mailto:", "tel:")), value
            else:
                assert name in (OF_FORMULAS if tag in FORMULAS else ATTRIBUTES.get(tag, ())), (tag, name)
                assert VALUE.fullmatch(value), value

    def handle_endtag(self, tag):
        if tag not in ("br", "hr"):
            assert self.open.pop() == tag

    def handle_comment(self, data):
        raise AssertionError(data)

    def handle_decl(self, decl):
        raise AssertionError(decl)

    def unknown_decl(self, data):
        raise AssertionError(data)

    def handle_pi(self, data):
        raise AssertionError(data)


def check(text: str) -> str:
    blocks = render_markdown(text)
    for block in blocks:
        checker = Checker()
        checker.feed(block)
        checker.close()
        assert checker.open == [], "a block ends what it begins"
        assert checker.deepest < 120
    return "".join(blocks)


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
        "$\\text{<script>alert(1)</script>}$",
        "$\\href{javascript:alert(1)}{x}$ $\\url{javascript:alert(1)}$",
        "$\\style{background:url(//evil.example)}{x} \\class{evil}{x} \\cssId{evil}{x}$",
        "$$\\color{red;background:url(//evil.example)}{x}$$",
        "$\\unicode{x3c}script\\unicode{x3e}$ $\\includegraphics{//evil.example/x.png}$",
        "\\[</math><script>alert(1)</script>\\]",
        '\\("onmouseover=alert(1)\\)',
        "$&lt;img src=x onerror=alert(1)&gt;$",
        "$\\begin{align}a&=b\\\\c&=d\\tag{<b>}\\end{align}$",
        "```html\n<script>alert(1)</script><!-- x -->\n```",
        "```javascript\nvar x = '</code></pre><script>alert(1)</script>'\n```",
        '```python\n"""</span><img src=x onerror=alert(1)>\n```',
    ],
)
def test_nothing_in_an_answer_can_do_anything(text):
    html = check(text)
    assert "<script" not in html
    assert "<img" not in html


@given(st.text(alphabet="ab<>\"'`[]()!*_#|-\n :/\\&;jscript=x0123456789~$^{}", max_size=120))
def test_no_mixture_of_signs_becomes_more_than_text_and_marks(text):
    check(text)


@given(st.text(max_size=60))
def test_no_text_breaks_the_renderer(text):
    check(text)


def test_links_open_elsewhere_and_tell_nobody_where_from():
    assert check("[x](https://e.example 'title')") == (
        '<p><a href="https://e.example" target="_blank" rel="noopener noreferrer nofollow">x</a> (title)</p>\n'
    )


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("See https://e.example/a_b_c?x=1&y=2#top.", "https://e.example/a_b_c?x=1&amp;y=2#top"),
        ("(HTTPS://E.example/a_(b))", "HTTPS://E.example/a_(b)"),
        ("**http://localhost:8080/** and", "http://localhost:8080/"),
        ("*see https://e.example/x*", "https://e.example/x"),
        ("“https://e.example/x”", "https://e.example/x"),
        ("'https://e.example/x'!", "https://e.example/x"),
        ("| a |\n|---|\n| https://e.example/x |", "https://e.example/x"),
        ("请看https://e.example/x。", "https://e.example/x"),
        ("[not a link: https://e.example/x]", "https://e.example/x"),
        ("https://e.example/x...\nmore", "https://e.example/x"),
        ("https://e.example/$x$ and $x$", "https://e.example/$x$"),
        ("https://e.example/?x=1&amp;y=2", "https://e.example/?x=1&amp;y=2"),
        ("https://e.example/x&lt;br&gt;", "https://e.example/x"),
    ],
)
def test_an_address_is_a_link_without_the_marks_around_it(text, address):
    links = re.findall(r'<a href="([^"]*)" target="_blank" rel="noopener noreferrer nofollow">([^<]*)</a>', check(text))
    assert links == [(address, address)]


@pytest.mark.parametrize(
    "text",
    [
        "`https://e.example`",
        "```\nhttps://e.example\n```",
        "$https://e.example$",
        "javascript://e.example/%0aalert(1) ftp://e.example file:///etc mailto://x data://x xhttps://e.example",
        "https:// https://. https://) http:/e.example www.e.example e.example",
    ],
)
def test_what_is_code_or_leads_elsewhere_is_no_link(text):
    assert "<a" not in check(text)


def test_an_address_within_a_link_leads_where_the_link_does():
    html = check("[see https://one.example](https://two.example) ![https://three.example](https://four.example)")
    assert re.findall('href="([^"]*)"', html) == ["https://two.example", "https://four.example"]


def test_pictures_of_other_places_are_links_to_them():
    html = check("![a cat](https://e.example/cat.png)")
    assert '<a href="https://e.example/cat.png"' in html
    assert ">a cat</a>" in html
    assert ">https://e.example/cat.png</a>" in check("![](https://e.example/cat.png)")


TEX = ("\\frac", "\\text{", "\\href{", "{", "}", "^", "_", "&", "\\\\", "<b>", '"', "a", "1", "\\left(", "\\sqrt")


@given(st.lists(st.sampled_from(TEX), max_size=30).map("".join))
def test_no_mixture_of_tex_becomes_more_than_a_formula(tex):
    check(f"$${tex}$$ \\({tex}\\)")


@given(st.sampled_from(sorted(LANGUAGES)), st.text(max_size=80))
def test_no_code_becomes_more_than_code_in_colours(language, code):
    html = check(f"~~~~~~~{language}\n{code}\n~~~~~~~")
    assert html.count("<figure") == 1


def test_code_tables_and_line_breaks_are_rendered():
    assert check("```python\nx < 1\n```") == (
        '<figure class="code"><figcaption>python</figcaption><pre tabindex="0" dir="ltr"><code>'
        'x &lt; <span class="number">1</span>\n</code></pre></figure>\n'
    )
    assert '<div class="table" tabindex="0"><table>' in check("| a |\n|---|\n| b |")
    assert '<th class="right">a</th>' in check("| a |\n|--:|\n| b |")
    assert check("one\ntwo") == "<p>one<br />\ntwo</p>\n"
    assert check("~~gone~~ **strong**") == "<p><s>gone</s> <strong>strong</strong></p>\n"


@pytest.mark.parametrize(
    ("language", "code", "kinds"),
    [
        ("python", "def f(): return 'x' # why", {"keyword", "name", "string", "comment"}),
        ("typescript", "const f = (a: string) => `x`; // why", {"keyword", "string", "comment"}),
        ("c++", '#include <x>\nint main() { return 0; } /* why */ "x"', {"keyword", "name", "number", "comment"}),
        ("bash", "echo $HOME # why", {"builtin", "comment"}),
        ("json", '{"a": 1}', {"keyword", "number"}),
        ("diff", "-a\n+b\n", {"deleted", "inserted"}),
        ("sql", "SELECT 1 FROM t -- why", {"keyword", "number", "comment"}),
    ],
)
def test_code_is_in_colours(language, code, kinds):
    assert kinds <= set(re.findall(r'<span class="(\w+)">', check(f"```{language}\n{code}\n```")))


def test_code_of_a_language_that_nobody_knows_is_shown_as_it_is():
    assert highlight("x <y>", "klingon") == "x &lt;y&gt;"


@pytest.mark.parametrize(
    ("text", "is_formula"),
    [
        *(("the $u(x, t)$ of", True), ("$n - 1$ of them", True), ("the point $(a, b)$", True)),
        *(("$40; 100$ for both", False), ("$1 - 2$", False), ("set $HOME and $PATH", False), ("$x or y$", False)),
    ],
)
def test_variables_with_spaces_between_them_are_a_formula_and_words_are_not(text, is_formula):
    assert ("<math" in check(text)) == is_formula


@pytest.mark.parametrize("written", ["$a^2$", "\\(a^2\\)"])
def test_a_formula_stands_in_its_line(written):
    assert check(f"so {written} is it") == (
        '<p>so <span class="math"><math><msup><mi>a</mi><mn>2</mn></msup></math></span> is it</p>\n'
    )


@pytest.mark.parametrize(
    "written", ["$$\n\\frac{a}{b}\n+ c\n$$", "\\[\n\\frac{a}{b}\n+ c\n\\]", "\\[ \\frac{a}{b} + c \\]"]
)
def test_a_formula_on_its_own_lines_is_a_block(written):
    html = check(f"so\n\n{written}\n\nis it")
    assert '<div class="formula" tabindex="0"><math display="block"><mfrac>' in html
    assert "<li>" not in html


def test_prices_are_no_formula_and_what_is_no_tex_is_shown_as_it_was_written():
    assert check("It costs $5 or $10.") == "<p>It costs $5 or $10.</p>\n"
    assert "<code>\\unknown{x}</code>" in check("$\\unknown{x}$")
    assert "<math" not in check("`$a$`")


@pytest.mark.parametrize(
    "tex",
    [
        "(" * 60,
        "[0," * 60 + r"\text{)}" * 60,
        r"\bigl( x" * 60,
        r"\left( x \right. \lfloor" * 60,
        r"\{ {)}" * 60,
        "(" * 60 + r"\mathclose)" * 60,
        r"\newcommand{\a}{((((((((((}\a\a\a\a\a\a",
        r"\def\a{(}" + r"\a" * 60,
    ],
)
def test_a_formula_with_many_brackets_that_nothing_closes_is_shown_as_it_was_written(tex):
    assert "<code>" in show_formula(tex, is_block=True)


@pytest.mark.parametrize(
    "tex",
    [
        r"f(x) = \left(\frac{a}{b}\right)^2 + \sum_{i=0}^{n}(x_i-\bar{x})",
        r"x \in [0, 1) \cup ]2, 3] \cup [4, 5[",
        r"\begin{pmatrix} (a) & (b) \\ (c) & (d) \end{pmatrix}",
        r"\log(x) + \lambda \leq \left\lfloor x \right\rfloor + \lfloor y \rfloor + \lVert v \rVert + 100\%",
        "(" * 60 + "x" + ")" * 60,
    ],
)
def test_a_formula_with_the_brackets_that_people_write_is_one(tex):
    assert show_formula(tex, is_block=False).startswith("<math")


def test_the_columns_of_equations_keep_to_their_sides_without_a_style():
    html = check("$$\\begin{aligned}a&=b\\\\c&=d\\end{aligned}$$")
    assert '<mtd class="right">' in html
    assert " style=" not in html


def test_a_link_may_be_named_before_or_after_it_is_used():
    link = '<a href="https://example.com" target="_blank" rel="noopener noreferrer nofollow">here</a>'
    assert link in check("see [here][1]\n\n[1]: https://example.com")
    assert link in check("[1]: https://example.com\n\nsee [here][1]")


HEAVY = {
    "quotations": "> " * 15_000,
    "brackets": "[" * 30_000,
    "pictures": "![a" * 10_000,
    "ticks": "`" * 29_999,
    "lists": "- " * 15_000,
    "cells": "|a" * 15_000,
    "one line": "x" * 100_000,
    "dollars": "$" * 10_000,
    "dollars apart": "$ " * 10_000,
    "dollars with words": "$a " * 4_000,
    "brackets of formulas": "\\( " * 10_000,
    "blocks of formulas": "\\[\n" * 10_000,
    "braces in a formula": "$$" + "{" * 10_000 + "$$",
    "roots in a formula": "$" + "\\sqrt{" * 400 + "x" + "}" * 400 + "$",
    "fractions": "$" + "\\frac{" * 500 + "x" + "}{y}" * 500 + "$",
    "a table of formulas": "| $a$ |\n|---|\n" + "| $\\frac{a}{b}$ |\n" * 900,
    "paragraphs": "a\n\n" * 40_000,
    "headings": "# a\n" * 40_000,
    "fences": "```\n" * 40_000,
    "schemes": "https://" * 3_500,
    "schemes of nothing": "a://" * 7_000,
    "addresses that go on with an escape": "(https://a" * 2_800 + "\\_",
    "addresses": "https://e.example/x " * 1_400,
    "brackets behind an address": "https://e.example/" + "),(" * 9_000 + ")" * 2_900,
    "definitions": "".join(f"[{each}]: https://example.com\n\n" for each in range(5_000)),
}


@pytest.mark.parametrize("shape", HEAVY)
def test_a_text_that_means_to_take_for_ever_does_not(shape):
    html = check(HEAVY[shape])
    assert len(html) < 30 * len(HEAVY[shape])
    assert html.count("<figure") + html.count("<p>") + html.count("<h1") <= 2_100


HOSTILE = ("\\", '"', "'", '\\"', "a \n", "(", "<", "<a ", "/*", "${", "{{", "`", "<!--", "--", "<<a", "1", " ", "#{")


@pytest.mark.parametrize("language", sorted({str(type(_lexer(each))): each for each in sorted(LANGUAGES)}.values()))
@pytest.mark.slow
def test_code_that_means_to_take_for_ever_does_not(language):
    for sign in HOSTILE:
        for begin, lines in (("", 10), ('"', 5), ("a = ", 5)):
            line = (begin + sign * 400)[:400]
            highlight((line + "\n") * lines, language)


@pytest.mark.parametrize("code", ["x = 1\n" * 2_000, "x" * 500, "\n" * 50, "x\0"])
def test_code_that_could_take_long_has_no_colours(code):
    assert "<span" not in highlight(code, "python")


def test_long_code_is_still_a_block_of_code():
    code = "x = 1\n" * 20_000
    assert check(f"```python\n{code}```\nafter") == (
        '<figure class="code"><figcaption>python</figcaption><pre tabindex="0" dir="ltr"><code>'
        f"{code}</code></pre></figure>\n<p>after</p>\n"
    )


@pytest.mark.parametrize("sign", ["", "\\_"])
def test_no_address_within_one_that_is_no_link_is_one(sign):
    length = 10 if sign else 2_000
    html = check(f"https://bank.example/{'a' * length}?next=https://evil.example/x{sign} but https://e.example/y")
    assert re.findall('href="([^"]*)"', html) == ["https://e.example/y"]


def test_a_long_answer_is_formatted_where_one_paragraph_of_it_is_not():
    html = check("**bold**\n\n" + "x" * 40_000 + "\n\n*after*")
    assert html.startswith("<p><strong>bold</strong></p>")
    assert '<p class="plain">xxx' in html
    assert html.endswith("<p><em>after</em></p>\n")
