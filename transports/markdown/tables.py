"""Tables: a bar within code parts no cells, and a row may have more of them than the head."""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

_DASHES: Final = re.compile(r":?-+:?")
_DELIMITERS: Final = re.compile(r"[|:-][|:\s-]*")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t]|$)")  # is read as such wherever a text is cut into blocks
_PARTS: Final = re.compile(r"\\\||`+|\||[^\\`|]+|\\")


def take_tables(parser: MarkdownIt) -> None:
    """Let a parser find tables; each cell is an inline token, each row and the whole of them open and close."""
    parser.block.ruler.at("table", _find, {"alt": ["paragraph", "reference"]})


def _find(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
    if start_line + 2 > end_line or state.sCount[start_line + 1] < state.blkIndent:
        return False
    dashes, head = _line(state, start_line + 1), _line(state, start_line)
    if (
        "|" not in head
        or _HEADING.match(head) is not None
        or _DELIMITERS.fullmatch(dashes) is None
        or dashes.startswith(("- ", "-\t"))
    ):
        return False
    if state.is_code_block(start_line) or state.is_code_block(start_line + 1):
        return False
    aligned, cells = _aligned(dashes), split_cells(head)
    if not cells or len(aligned) != len(cells):
        return False
    if silent:
        return True
    token = state.push("table_open", "", 1)
    token.meta["aligned"] = aligned
    _push_row(state, start_line, cells)
    old_type, state.parentType = state.parentType, "table"
    number = start_line + 2
    while number < end_line and state.sCount[number] >= state.blkIndent and not _ends(state, number, end_line):
        _push_row(state, number, split_cells(_line(state, number)))
        number += 1
    state.parentType = old_type
    state.push("table_close", "", -1)
    token.map = [start_line, number]
    state.line = number
    return True


def _ends(state: StateBlock, number: int, end_line: int) -> bool:
    """Return whether a table ends before a line."""
    if state.isEmpty(number) or state.is_code_block(number):
        return True
    return any(rule(state, number, end_line, True) for rule in state.md.block.ruler.getRules("blockquote"))  # noqa: FBT003


def _push_row(state: StateBlock, number: int, cells: list[str]) -> None:
    state.push("tr_open", "", 1)
    for cell in cells:
        token = state.push("inline", "", 0)
        token.map, token.content, token.children = [number, number + 1], cell, []
    state.push("tr_close", "", -1)


def _aligned(dashes: str) -> list[str]:
    """Return how the columns are aligned; nothing where the line is none below a head."""
    columns = [each.strip() for each in dashes.strip().removeprefix("|").removesuffix("|").split("|")]
    if any(_DASHES.fullmatch(each) is None for each in columns):
        return []
    sides = {(True, True): "center", (False, True): "right", (True, False): "left"}
    return [sides.get((each.startswith(":"), each.endswith(":")), "") for each in columns]


def split_cells(line: str) -> list[str]:
    """Return the cells of a line; an escaped bar is one of the words, also in code."""
    parts = _PARTS.findall(line.strip())
    cells, code_until = [""], _code_ends(parts)
    end = -1
    for at, part in enumerate(parts):
        end = max(end, code_until.get(at, -1)) if at > end else end
        if part == "|" and at > end:
            cells.append("")
        else:
            cells[-1] += "|" if part == "\\|" else part
    cells = [each.strip() for each in cells]
    if len(cells) > 1 and not cells[0]:
        del cells[0]
    if len(cells) > 1 and not cells[-1]:
        del cells[-1]
    return cells


def _code_ends(parts: list[str]) -> dict[int, int]:
    """Return for each run of ticks that is not escaped where the next one of its length stands."""
    ends, following = {}, dict[str, int]()
    for at in range(len(parts) - 1, -1, -1):
        if parts[at].startswith("`"):
            is_escaped = at > 0 and parts[at - 1] == "\\"
            if parts[at] in following and not is_escaped:
                ends[at] = following[parts[at]]
            following[parts[at]] = at
    return ends


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].strip()
