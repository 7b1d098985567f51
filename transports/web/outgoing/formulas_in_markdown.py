"""Where formulas stand in Markdown: between dollars, and between the brackets with backslashes that models write."""

from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath import dollarmath_plugin

from transports.web.outgoing.mathematics import show_formula

_INLINE: Final = {"\\(": ("\\)", "math_inline"), "\\[": ("\\]", "math_inline_double")}
_LONGEST: Final = 4_000  # characters in which the end of a formula is sought
_MOST_LINES: Final = 100


def take_formulas(parser: MarkdownIt) -> None:
    """Have a parser find formulas and show them as MathML."""
    dollarmath_plugin(
        parser,
        allow_labels=False,
        allow_space=False,
        allow_digits=False,  # what things cost is no formula
        allow_blank_lines=False,
        double_inline=True,
    )
    parser.inline.ruler.before("escape", "bracket_formula", _find_inline)
    parser.block.ruler.before("fence", "bracket_formula_block", _find_block, {"alt": ["paragraph"]})
    parser.add_render_rule("math_inline", _show_inline)
    parser.add_render_rule("math_inline_double", _show_display)
    parser.add_render_rule("math_block", _show_block)


def _find_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's signature
    closing, kind = _INLINE.get(state.src[state.pos : state.pos + 2], ("", ""))
    if not closing:
        return False
    begin = state.pos + 2
    end = state.src.find(closing, begin, begin + _LONGEST)
    if end <= begin:
        return False
    if not silent:
        state.push(kind, "math", 0).content = state.src[begin:end]
    state.pos = end + 2
    return True


def _find_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001 - as above
    if state.is_code_block(start_line) or not _line(state, start_line).startswith("\\["):
        return False
    last = min(end_line, start_line + _MOST_LINES)
    lines: list[str] = []
    for number in range(start_line, last):
        lines.append(_line(state, number))
        if not lines[-1] or lines[-1].endswith("\\]"):
            break
    if not lines[-1].endswith("\\]"):
        return False
    if not silent:
        state.line = start_line + len(lines)
        token = state.push("math_block", "math", 0)
        token.content = "\n".join(lines)[2:-2]
        token.map = [start_line, state.line]
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].strip()


def _show_inline(_: Any, tokens: Any, index: int, *__: Any) -> str:
    return f'<span class="math">{show_formula(tokens[index].content.strip(), is_block=False)}</span>'


def _show_display(_: Any, tokens: Any, index: int, *__: Any) -> str:
    return f'<span class="formula">{show_formula(tokens[index].content.strip(), is_block=True)}</span>'


def _show_block(_: Any, tokens: Any, index: int, *__: Any) -> str:
    return f'<div class="formula" tabindex="0">{show_formula(tokens[index].content.strip(), is_block=True)}</div>\n'
