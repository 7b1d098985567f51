"""Texts that parsers of markup take long for, as a model may write them when a person has talked it into it."""

from collections.abc import Iterator

LENGTH = 30_000

# What is repeated.
UNITS = {
    "lists within lists": "1. ", "short lists": "1. a\n", "points": "- ", "many points": "- a\n",
    "quotations": "> ", "quoted lines": ">", "quoted code": "> ```\n> a\n", "headings": "# a\n", "head signs": "# ",
    "underlined headings": "a\n=\n", "rules": "---\n", "open brackets": "[", "brackets": "[]", "links": "[a](b) ",
    "half links": "[a](", "open pictures": "![", "references": "[a][b] ", "definitions": "[a]: b\n",
    "footnotes": "[^a]: ", "stars": "*", "left emphasis": "*a ", "right emphasis": "a*", "crossed emphasis": "*a_ ",
    "bold": "**a** ", "open bold": "**a ", "underscores": "_", "open underscores": "_a ", "all marks": "*_`",
    "struck": "~~a~~ ", "tildes": "~", "backticks": "`", "code of two kinds": "`` ` ", "fences": "```\n",
    "other fences": "~~~\n", "open fences": "```a\nb\n", "tags": "<b>", "empty tags": "<b></b>", "open tags": "<a ",
    "odd tags": "<b a=  ", "comments": "<!--", "less": "<", "entities": "&amp;", "autolinks": "<http://a.b> ",
    "addresses": "http://a.b ", "mentions": "<@a|", "ends of mentions": "<@a>", "channels": "<!channel|",
    "groups": "<!subteam^", "here": "@here ", "at signs": "@", "blanks": " ", "lines": "\n", "blank lines": "\n ",
    "tabs": "\t", "columns": "|a", "tables": "|a|b|\n|-|-|\n|c|d|\n", "bars": "|", "spoilers": "||a|| ",
    "dollars": "$", "prices": "$1 ", "formulas": "$a$ ", "backslashes": "\\", "escapes": "\\*", "emojis": "😀",
    "nothing to see": "\u200b", "accents": "e\u0301", "one word": "a", "sentences": "a. ", "comment ends": "*/",
}  # fmt: skip


def _grown() -> dict[str, str]:
    """Return what is no plain repetition."""
    rows = "|".join(["", *["y"] * 20, ""]) + "\n"
    wide, ruler = "|a" * 2000 + "|\n", "|-" * 2000 + "|\n"
    return {
        "deeper and deeper points": "".join("  " * depth + "- a\n" for depth in range(170)),
        "deeper and deeper quotations": "".join(">" * depth + " a\n" for depth in range(240)),
        "a wide table": wide + ruler + wide * 5,
        "a wide table with short rows": wide + ruler + "|\n" * 10_000,
        "a long table": rows + "|-" * 20 + "|\n" + rows * 650,
        "blanks before a word": " " * (LENGTH - 1) + "x",
        "blanks before a name": "a" + " " * (LENGTH - 5) + "<@B>",
        "balanced brackets": "[" * (LENGTH // 2) + "]" * (LENGTH // 2),
        "links within links": "[a" * 4000 + "](b)" * 4000,
        "emphasis within emphasis": "*a **b " * 2000 + "b** a*" * 2000,
        "one long fence": "```\n" + "a * b[c] | d\n" * 2300,
    }


def shapes() -> Iterator[tuple[str, str]]:
    """Yield every shape, with its name."""
    for name, unit in UNITS.items():
        yield name, (unit * (LENGTH // len(unit) + 1))[:LENGTH]
    for name, text in _grown().items():
        yield name, text[:LENGTH]
