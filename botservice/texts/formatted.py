"""The service's own texts with their formatting: only the templates have markup, values are plain words.

A template may have `code`, **bold words**, code blocks between lines of ```, and paragraphs separated by an empty line.
It is parsed before its values are filled in, so a value cannot add markup.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import lru_cache
from string import Formatter
from typing import Final, TypeAlias

from botservice.core.formatted_text import Block, CodeBlock, FormattedText, Inline, Item, List, Paragraph, Span
from botservice.core.quoting import is_link_like
from botservice.core.visible_text import visible
from botservice.texts import number_in_language, template_in_language, time_in_language

Value: TypeAlias = str | int | Span | FormattedText
"""The value of a placeholder: plain words, or words with their own formatting."""

_FENCE: Final = re.compile(r"\n*^```\n(.*?)\n```$\n*", re.MULTILINE | re.DOTALL)
_MARKED: Final = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")
# A command in a sentence, also one whose name is a placeholder.
_COMMAND: Final = re.compile(r"(?<![\w/}])/(?:[a-z_]{1,32}|\{[a-z_]+\})(?![\w/])")
_FIELDS: Final = Formatter()


def say(key: str, /, language: str | None, **values: Value) -> FormattedText:
    """Fill in a text in a language with its formatting; see `in_language`.

    Args:
        values: The values of its placeholders. Invisible characters of a value are written out.
    """
    blocks: list[Block] = []
    count = values.get("count")
    if isinstance(count, int):
        values["count"] = Span(number_in_language(count, language))
    for each in _read(template_in_language(key, language, count if isinstance(count, int) else 0)):
        if isinstance(each, CodeBlock):
            words = each.text.format(**{name: _lines(value) for name, value in values.items()})
            blocks.append(replace(each, text=words))
        else:
            blocks.append(replace(each, spans=tuple(_filled(each.spans, values))))
    return FormattedText(tuple(blocks))


def quoted(text: str | None, otherwise: str = "?") -> Span:
    """Quote text that a person chose freely, such as a name: as code if a platform could turn it into a link."""
    shown = visible(text or "")
    return Span(shown, code=is_link_like(shown)) if shown else Span(otherwise)


def code(text: str) -> Span:
    """Format an identifier, such as the name of a tool."""
    return Span(visible(text, is_code=True), code=True)


def command(text: str) -> Span:
    """Format a command that people can type."""
    return Span(visible(text), is_command=text.startswith("/"))


def words(text: str) -> Span:
    """Format the words of other people in one line, with every character visible."""
    return Span(visible(text, keeps_ends=True))


def time(
    at: datetime, language: str | None, *, now: datetime, zone: tzinfo | None = None, is_today: bool = False
) -> Span:
    """Write a time, which platforms can show by each reader's clock; see `time_in_language`."""
    return Span(time_in_language(at, language, now=now, zone=zone, is_today=is_today), at=at.isoformat())


def line(*parts: Value) -> FormattedText:
    """Join parts to one paragraph; a str is text of our own."""
    own = (Span(each) if isinstance(each, str) else each for each in parts)
    return FormattedText((Paragraph(tuple(span for each in own for span in _spans(each) if span != Span(""))),))


def below(*texts: FormattedText | None, is_close: bool = False) -> FormattedText:
    """Stack texts below each other.

    Args:
        is_close: Leave no empty line between them.
    """
    blocks: list[Block] = []
    for each in texts:
        first, *others = each.blocks if each is not None and each.blocks else (None,)
        if first is not None:
            blocks += [replace(first, is_close=True) if is_close and blocks else first, *others]
    return FormattedText(tuple(blocks))


def bulleted(entries: Iterable[FormattedText]) -> FormattedText:
    """Build a bulleted list."""
    return FormattedText((List(tuple(Item(each.blocks) for each in entries)),))


def with_commands(text: FormattedText, prefix: str) -> FormattedText:
    """Write the commands in a text as people type them on a platform."""
    return FormattedText(tuple(_with_commands(each, prefix) for each in text.blocks))


def _with_commands(block: Block, prefix: str) -> Block:
    match block:
        case Paragraph(spans):
            return replace(block, spans=tuple(_typed(each, prefix) for each in spans))
        case List(items):
            typed = (tuple(_with_commands(each, prefix) for each in item.blocks) for item in items)
            pairs = zip(items, typed, strict=True)
            return replace(block, items=tuple(replace(item, blocks=blocks) for item, blocks in pairs))
        case _:
            return block


def _typed(each: Inline, prefix: str) -> Inline:
    is_command = isinstance(each, Span) and each.is_command and each.text.startswith("/")
    return replace(each, text=prefix + each.text[1:]) if isinstance(each, Span) and is_command else each


@lru_cache(maxsize=1024)
def _read(template: str) -> tuple[Paragraph | CodeBlock, ...]:
    """Parse a template into blocks that still have placeholders."""
    blocks: list[Paragraph | CodeBlock] = []
    begin = 0
    for found in _FENCE.finditer(template):
        blocks += _paragraphs(template[begin : found.start()], is_close=bool(blocks))
        blocks.append(CodeBlock(found[1], is_close=bool(blocks)))
        begin = found.end()
    return (*blocks, *_paragraphs(template[begin:], is_close=bool(blocks)))


def _paragraphs(template: str, *, is_close: bool) -> Iterator[Paragraph]:
    for at, each in enumerate(template.split("\n\n")):
        if each:
            yield Paragraph(tuple(_marked(each)), is_close=is_close and not at)


def _marked(template: str) -> Iterator[Span]:
    begin = 0
    for found in _MARKED.finditer(template):
        yield from _commands(template[begin : found.start()], Span(""))
        yield from _commands(found[1] or found[2], Span("", bold=found[1] is None, code=found[1] is not None))
        begin = found.end()
    yield from _commands(template[begin:], Span(""))


def _commands(template: str, style: Span) -> Iterator[Span]:
    begin = 0
    for found in _COMMAND.finditer(template):
        yield replace(style, text=template[begin : found.start()])
        yield replace(style, text=found[0], is_command=True)
        begin = found.end()
    yield replace(style, text=template[begin:])


def _filled(spans: Sequence[Inline], values: "dict[str, Value]") -> Iterator[Inline]:
    for span in spans:
        if not isinstance(span, Span):
            continue
        if span.is_command:  # its name may be a placeholder
            yield replace(span, text=span.text.format(**{name: _as_words(value) for name, value in values.items()}))
            continue
        for own, name, _, _ in _FIELDS.parse(span.text):
            if own:
                yield replace(span, text=own)
            if name is not None:
                yield from (_styled(each, span) for each in _spans(values[name]))


def _styled(inner: Inline, outer: Span) -> Inline:
    if not isinstance(inner, Span):
        return inner
    return replace(inner, bold=inner.bold or outer.bold, code=inner.code or outer.code)


def _spans(value: Value) -> tuple[Inline, ...]:
    if isinstance(value, Span):
        return (value,)
    if isinstance(value, FormattedText):
        return tuple(each for block in value.blocks if isinstance(block, Paragraph) for each in block.spans)
    return (words(str(value)),) if str(value) else ()


def _as_words(value: Value) -> str:
    if isinstance(value, Span):
        return value.text
    return value.plain if isinstance(value, FormattedText) else words(str(value)).text


def _lines(value: Value) -> str:
    return visible(value, keeps_lines=True) if isinstance(value, str) else _as_words(value)
