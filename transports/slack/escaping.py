r"""Markdown for Slack's own parser: what that would take as marks, and is none for us, gets a backslash.

Slack reads Markdown itself, as its streams and blocks of it come (docs.slack.dev, markdown-block: `\*` is an asterisk),
and it reads as CommonMark does. What is decided for a place depends on what stands before it and in its word alone, so
that a text that grows reads as it will in the end.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from transports.common.too_long_messages import is_too_intricate
from transports.markdown.emphasis import is_literal
from transports.markdown.formulas import after_bracket
from transports.markdown.parser import PARSER
from transports.markdown.reading import language_of
from transports.markdown.tables import split_cells

_ITEM: Final = re.compile(r"([ \t]*)(\d{1,9})([.)][ \t])")
_BULLET: Final = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]")
_DELIMITERS: Final = re.compile(r"[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+(?:\|[ \t]*+)?")
_DEFINITION: Final = re.compile(r" {0,3}\[([^\]\n]+)\]:")
_PIECES: Final = re.compile(
    r"(?P<path>(?<=\w)\\(?=\*\.\w))|(?P<formula>\\[(\[])|!?\[\]\((?P<bare>[^()\s<\\]+)\)"
    r"|(?P<torn>\](?=\(<(?!https?://|mailto:|tel:)[A-Za-z/?!]))"  # escaped, what follows would be an address
    r"""|(?P<titled>\]\([^()\s<]*[ \t]+(?=["']))"""
    r"|(?P<kept>\\.|https?://[^\s<>]*|\]\([^()\s<]*(?:\([^()\s<]*\)[^()\s<]*)*"
    r"|<(?:https?://|mailto:|tel:|[@#]|!(?:channel|here|everyone|subteam\^|date\^)|[^\s<>/]+@[^\s<>]+>)[^<>\n]*)"
    r"|(?P<ticks>`+)|(?P<marks>\*+|_+)|(?P<tag><(?=[A-Za-z/?!]))"
)
# How a line or a word begins that may become something else with what comes next.
_OPEN_LINE: Final = re.compile(r"[ \t]*\d{1,9}[.)]?|[ \t>]*[`~]{1,2}| {0,3}\[[^\]\n]*\]?|[ \t>]*(?:```|~~~).*|.*\|.*")
_OPEN_WORD: Final = re.compile(r"(?:<[^<>\s]*|[*_]+\S{0,2}|\S*__\S*|\\\S{0,3}|!?\[\]?(?:\([^()\s]*)?|\]\(?|!)\Z")
_BLOCK: Final = re.compile(r" {0,3}(?:[#>]|[-+*][ \t]|\d{1,9}[.)][ \t])")
_BLOCKS: Final = {"$$": "$$", "\\[": "\\]"}
_SPECIAL: Final = re.compile(r"[\\*_<`\[\]|~]")
_BEGINNING: Final = re.compile(r"^[#>+=-]")  # of a line, where it is no word
_NUMBER: Final = re.compile(r"^(\d{1,9})([.)])")
_SLACK: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])  # as its documentation has it
_TITLE: Final = re.compile(r"""(["'])([^"'\n\\]*)\1[ \t]*\)""")
_MOST_LOOKS: Final = 8  # a line with so many marks in a row is shown once it is whole
_LONGEST_WORD: Final = 200
_MAX_CHARACTERS: Final = 12_000  # of a block


def escape_literals(text: str) -> str:
    """Return Markdown of which Slack shows every sign that is none of Markdown's; as it is where that is too much."""
    escaped = _Escaper().escape(text)
    return escaped if len(escaped) <= _MAX_CHARACTERS or len(text) > _MAX_CHARACTERS else text


def escape_hidden(text: str) -> str:
    """Return a whole text as `escape_literals` does; where Slack would hide some of it all the same, as plain words.

    Both parsers agree on what people write. Where marks stand in odd places, a block may be another one for Slack.
    """
    escaped = escape_literals(text)
    if is_too_intricate(escaped):
        return escaped
    shown = _SLACK.parse(escaped)
    if not _hides(shown) and _count_unseen(shown) <= _count_unseen(PARSER.parse(text)):
        return escaped
    lines = (_BEGINNING.sub(r"\\\g<0>", _escape_all(line.lstrip())) for line in text.split("\n"))
    return "\n".join(_NUMBER.sub(r"\1\\\2", line) for line in lines)


def _hides(tokens: Sequence[Token]) -> bool:
    """Return whether Slack leaves out something that its tokens say, or counts points anew."""
    numbers: list[int] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "ordered_list_open":
            numbers.append(int(token.attrs.get("start", 1)))
        elif token.type == "ordered_list_close":
            numbers.pop()
        elif token.type == "list_item_open" and token.info:
            if int(token.info) != numbers[-1]:
                return True
            numbers[-1] += 1
        elif _is_hidden(token, before) or _hides(token.children or ()):
            return True
    return False


def _is_hidden(token: Token, before: Token | None) -> bool:
    return (
        token.type in ("html_block", "html_inline")
        or (token.type == "fence" and bool(language_of(token)[1]))
        or (token.type == "image" and not token.content.strip())
        or "title" in token.attrs
        or (token.type == "link_close" and before is not None and before.type == "link_open")
    )


def _count_unseen(tokens: Sequence[Token]) -> int:
    """Return how many languages of code and addresses behind words a text has: nobody sees these."""
    count = 0
    for token in tokens:
        count += token.type in ("link_open", "image") or (token.type == "fence" and bool(token.info.strip()))
        count += _count_unseen(token.children or ())
    return count


def settled_literals(text: str) -> str:
    """Return so much of a text that grows as is escaped the same way, however it goes on."""
    begin = text.rfind("\n") + 1
    if _OPEN_LINE.fullmatch(text, begin):
        return text[:begin]
    line, pieces = text[begin:], list(_pieces(text[begin:]))
    begins = [at for at, _, _ in pieces]
    cut = next((at for at, _, is_open in pieces if is_open), len(line))
    for _ in range(_MOST_LOOKS):  # what stands before a cut may need what was cut off
        found = _OPEN_WORD.search(line, max(0, cut - _LONGEST_WORD), cut)
        earlier = found.start() if found else cut
        number = bisect_right(begins, earlier) - 1
        earlier = begins[number] if number % 2 else earlier  # no piece is torn
        if earlier == cut:
            return text[: begin + cut]
        cut = earlier
    return text[:begin]


def _pieces(line: str) -> Iterator[tuple[int, str, bool]]:
    """Yield a line in pieces, of which every second one is marks, code or a formula.

    Of each, where it begins, its text as it is escaped, and whether more of the line may change it.
    """
    at = 0
    while found := _PIECES.search(line, at):
        yield at, line[at : found.start()], False
        begin, at, is_open = found.start(), found.end(), False
        escaped = found[0]
        if found["ticks"]:
            closing = re.search(rf"(?<!`){escaped}(?!`)", line[at:])
            is_open = closing is None or at + closing.end() == len(line)
            at += 0 if closing is None else closing.end()
            escaped = line[begin:at]
        elif found["formula"]:
            end = after_bracket(line, begin)
            is_open = end < 0
            escaped = escaped if is_open else _escape_all(line[begin:end])
            at = max(at, end)
        elif found["titled"]:
            title = _TITLE.match(line, at)
            is_open = title is None
            at = at if title is None else title.end()
            if title is not None:
                is_said = line[:begin].endswith(f"[{title[2]}")
                escaped = f"{escaped.rstrip()})" + ("" if is_said else f" ({title[2]})")
        elif found["bare"]:
            escaped = found["bare"]
        elif (
            found["torn"]
            or found["tag"]
            or found["path"]
            or (found["marks"] and is_literal(line, begin, at, len(line)))
        ):
            escaped = "".join(f"\\{each}" for each in escaped)
        yield begin, escaped, is_open
    yield at, line[at:], False


def _inline(line: str) -> str:
    return "".join(escaped for _, escaped, _ in _pieces(line))


def _find_code(text: str) -> dict[int, Token | None]:
    """Return the lines of code of a text, with what opens it if a line does; none where a text is too intricate."""
    found: dict[int, Token | None] = {}
    for token in () if is_too_intricate(text) else PARSER.parse(text):
        if token.type in ("fence", "code_block") and token.map is not None:
            found |= dict.fromkeys(range(*token.map))
            found |= {token.map[0]: token} if token.type == "fence" else {}
    return found


class _Escaper:
    def __init__(self) -> None:
        self._formula = ""  # what ends the one that goes on
        self._next: dict[int, int] = {}  # the number that the next point has, by its indentation
        self._columns = 0  # of the table that goes on
        self._is_after_blank = True
        self._before = ""

    def escape(self, text: str) -> str:
        """Return a text with backslashes."""
        lines, code = text.split("\n"), _find_code(text)
        escaped = []
        for at, line in enumerate(lines):
            escaped.append(self._code(line, code[at]) if at in code else self._line(line, lines[at - 1] if at else ""))
            self._before += f"{line}\n"
        return "\n".join(escaped)

    def _code(self, line: str, opening: Token | None) -> str:
        """Return a line of code; where more than a language is named at its beginning, that stands above."""
        self._columns, self._formula = 0, ""
        if opening is None:
            return line
        begin, (language, info) = line.find(opening.markup), language_of(opening)
        before = self._number(line[:begin])
        if not info:
            return before + line[begin:]
        below = line[:begin] if not line[:begin].strip(" \t>") else " " * begin
        shown = _BEGINNING.sub(r"\\\g<0>", _escape_all(info))
        return f"{before}{shown}\n{below}{opening.markup}{language}"

    def _line(self, line: str, before: str) -> str:
        said = line.strip()
        if self._formula:
            self._formula = "" if said.endswith(self._formula) or not said else self._formula
            return _escape_all(line)
        if said in _BLOCKS:
            self._formula = _BLOCKS[said]
            return _escape_all(line)
        if self._is_after_blank and said and not line[0].isspace() and _BULLET.match(line) is None:
            self._next.clear()
        self._is_after_blank = not said
        if not said:
            self._columns = 0
        elif "|" in line and self._columns:
            line = self._row(line)
        elif "|" in before and _DELIMITERS.fullmatch(line) and len(split_cells(before)) == len(split_cells(line)):
            self._columns = len(split_cells(line))
        else:
            self._columns = 0 if _BLOCK.match(line) else self._columns  # any other line goes on with a table
            line = self._number(self._definition(_inline(line)))
        return line

    def _row(self, line: str) -> str:
        """Return a row of a table: a bar within a cell is escaped, and cells beyond the head join the last."""
        cells = split_cells(line)
        if len(cells) <= self._columns and not any("|" in each for each in cells):
            return _inline(line)
        cells = [_inline(each).replace("|", "\\|") for each in cells]
        last = " \\| ".join(cells[self._columns - 1 :])
        return f"| {' | '.join([*cells[: self._columns - 1], last])} |"

    def _number(self, line: str) -> str:
        """Return a line whose number would be counted anew, as words."""
        found = _ITEM.match(line)
        if found is None:
            return line
        indent, number = len(found[1]), int(found[2])
        expected = self._next.get(indent, number)
        self._next = {each: following for each, following in self._next.items() if each < indent}
        if number != expected:
            self._next[indent] = expected
            return f"{found[1]}{found[2]}\\{line[found.start(3) :]}"
        self._next[indent] = number + 1
        return line

    def _definition(self, line: str) -> str:
        found = _DEFINITION.match(line)
        return line if found is None or f"[{found[1]}]" in self._before else line.replace("[", "\\[", 1)


def _escape_all(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)
