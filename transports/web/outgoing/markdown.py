"""Markdown as HTML that holds nothing but text, marks, links, code, tables and formulas: section by section."""

import html
import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from transports.cjk_emphasis import take_cjk_emphasis
from transports.too_long_messages import is_too_intricate
from transports.web.outgoing.addresses import take_addresses
from transports.web.outgoing.formulas import take_formulas
from transports.web.outgoing.highlighting import highlight
from transports.web.outgoing.sections import split_sections

logger = logging.getLogger(__name__)

References = dict[str, Any]
"""Where links lead that are named: `[label]: address`."""

_LONGEST_MARKDOWN: Final = 30_000  # characters of a section; a longer one is shown as it is
_LONGEST_KEPT: Final = 4_000  # characters of a section that is kept ready
_SCHEMES: Final = ("http://", "https://", "mailto:", "tel:")
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,24}")
_OPENING: Final = re.compile(r"(?:`{3,}|~{3,})[ \t]*(?P<info>[^\n]*)\n?")
_CLOSING: Final = re.compile(r" {0,3}(?:`{3,}|~{3,})[ \t]*")


def render_markdown(text: str) -> list[str]:
    """Return a text as blocks of HTML, one for each of its sections."""
    sections, references = split_sections(text), References()
    for each in sections:
        if "]:" in each:
            _render(each, references)  # for the links that it names: what comes before it may lead there
    return [shown for each in sections if (shown := render_section(each, references))]


def render_section(section: str, references: References) -> str:
    """Return a section as HTML, and note where the links lead that it names."""
    if not references and "[" not in section and len(section) <= _LONGEST_KEPT:
        return _render_kept(section)
    return _render(section, references)


@lru_cache(maxsize=512)
def _render_kept(section: str) -> str:
    return _render(section, {})


def _render(section: str, references: References) -> str:
    if len(section) <= _LONGEST_MARKDOWN and not is_too_intricate(section):
        try:
            return str(_MARKDOWN.render(section, {"references": references}))
        except Exception:  # libraries read what anybody wrote: a chat can be opened whatever they make of it
            logger.exception("web.not_formatted")
            return _show_plain(section)
    if opening := _OPENING.match(section):
        code, _, last = section[opening.end() :].rpartition("\n")
        return _show_code(f"{code}\n" if _CLOSING.fullmatch(last) else f"{code}\n{last}", opening["info"])
    return _show_plain(section)


def _show_plain(section: str) -> str:
    return f'<p class="plain">{html.escape(section, quote=False)}</p>\n'


def _show_code(code: str, info: str) -> str:
    """Return a block of code in a frame, with its language above it."""
    found = _LANGUAGE.match(info.strip())
    language = found[0] if found else ""
    caption = f"<figcaption>{html.escape(language, quote=False)}</figcaption>"
    shown = highlight(code, language.lower())
    return f'<figure class="code">{caption}<pre tabindex="0" dir="ltr"><code>{shown}</code></pre></figure>\n'


class _Renderer(RendererHTML):
    """HTML in which links open elsewhere and pictures of other places are links: nothing is fetched unasked."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        return _show_code(tokens[idx].content, tokens[idx].info)

    code_block = fence

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        token.attrs = {"href": token.attrs["href"], "target": "_blank", "rel": "noopener noreferrer nofollow"}
        return self.renderToken(tokens, idx, options, env)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        alt = self.renderInlineAsText(tokens[idx].children, options, env)
        source = str(tokens[idx].attrs["src"])
        link = Token("link_open", "a", 1, attrs={"href": source})
        label = Token("text", "", 0, content=alt or source)
        close = Token("link_close", "a", -1)
        return str(self.renderInline([link, label, close], options, env))

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        style = str(tokens[idx].attrs.get("style", ""))  # which the pages' policy forbids
        tokens[idx].attrs = {"class": style.removeprefix("text-align:")} if style else {}
        return self.renderToken(tokens, idx, options, env)

    th_open = td_open

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<div class="table" tabindex="0">{self.renderToken(tokens, idx, options, env)}'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"{self.renderToken(tokens, idx, options, env)}</div>"


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    # how the library lets one set it
    parser.validateLink = lambda url: url.strip().lower().startswith(_SCHEMES)  # type: ignore[method-assign]
    take_cjk_emphasis(parser)
    take_formulas(parser)
    take_addresses(parser)
    return parser


_MARKDOWN: Final = _markdown()
