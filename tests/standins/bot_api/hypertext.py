"""The parse mode HTML, as strict as the Bot API, with its words for what is wrong.

Source of the rules and the wording: core.telegram.org/bots/api#formatting-options, and what the server answers.
"""

import re

from standins.bot_api.markup import MarkupError, Opened, Reader


class Html(Reader):
    TAGS = {  # noqa: RUF012 - never changed
        "b": "bold",
        "strong": "bold",
        "i": "italic",
        "em": "italic",
        "s": "strikethrough",
        "strike": "strikethrough",
        "del": "strikethrough",
        "u": "underline",
        "ins": "underline",
        "tg-spoiler": "spoiler",
        "span": "spoiler",
        "tg-emoji": "custom_emoji",
        "tg-time": "date_time",
        "a": "text_link",
        "pre": "pre",
        "code": "code",
        "blockquote": "blockquote",
    }
    NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}  # noqa: RUF012 - never changed
    REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot)(?![a-zA-Z]));?")
    KEPT = {"a": "href", "code": "class", "span": "class", "tg-emoji": "emoji-id"}  # noqa: RUF012 - never changed

    def read(self) -> None:
        while self.i < len(self.source):
            if self.peek() == "<":
                if self.peek(1) == "/":
                    self._end_tag()
                else:
                    self._start_tag()
                continue
            found = self.REFERENCE.match(self.source, self.i) if self.peek() == "&" else None
            character = self._decoded(found) if found else ""
            self.put(character or self.peek())
            self.i = found.end() if found and character else self.i + 1
        if self.stack:
            raise MarkupError(f'Can\'t find end tag corresponding to start tag "{self.stack[-1].kind}"')
        for entity in self.entities:
            if entity["type"] == "code":
                entity.pop("language", None)

    def _decoded(self, found: re.Match[str]) -> str:
        if found[3]:
            return self.NAMED[found[3]]
        code = int(found[1], 16) if found[1] else int(found[2])
        if 0xD800 <= code <= 0xDFFF:
            raise MarkupError(
                "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched "
                "surrogate code units"
            )
        return chr(code) if 0 < code < 0x10FFFF else ""

    def _start_tag(self) -> None:
        begin = self.at_byte()
        found = re.compile(r"<([^\s>]*)").match(self.source, self.i)
        assert found is not None
        position = self.i
        self.i = found.end()
        if self.peek() == "":
            raise MarkupError(f"Unclosed start tag at byte offset {begin}")
        tag = found[1].lower()
        if tag not in self.TAGS:
            raise MarkupError(f'Unsupported start tag "{tag}" at byte offset {begin}')
        attributes = self._attributes(tag, begin)
        argument = attributes.get(self.KEPT.get(tag, ""), "")
        if tag == "span" and argument != "tg-spoiler":
            raise MarkupError(f'Tag "span" must have class "tg-spoiler" at byte offset {begin}')
        if tag == "blockquote" and "expandable" in attributes:
            argument = "expandable"
        self.push(tag, argument, position)

    def _attributes(self, tag: str, begin: int) -> dict[str, str]:
        given: dict[str, str] = {}
        while True:
            self._skip_space()
            if self.peek() == "":
                raise MarkupError(f"Unclosed start tag at byte offset {begin}")
            if self.peek() == ">":
                self.i += 1
                return given
            found = re.compile(r"[^\s=>]*").match(self.source, self.i)
            assert found is not None
            name = found[0]
            if not name:
                raise MarkupError(f'Empty attribute name in the tag "{tag}" at byte offset {begin}')
            self.i = found.end()
            self._skip_space()
            if self.peek() != "=":
                if tag == "blockquote" and name == "expandable":
                    given[name] = ""
                    continue
                raise MarkupError(
                    f'Expected equal sign in declaration of an attribute of the tag "{tag}" at byte offset {begin}'
                )
            self.i += 1
            self._skip_space()
            given[name] = self._value(tag, begin)

    def _value(self, tag: str, begin: int) -> str:
        quote = self.peek()
        if not quote:
            raise MarkupError(f'Unclosed start tag "{tag}" at byte offset {begin}')
        if quote not in "'\"":
            at, found = self.at_byte(), re.compile(r"[a-zA-Z0-9.\-]*").match(self.source, self.i)
            assert found is not None
            self.i = found.end()
            if self.peek() and not self.peek().isspace() and self.peek() != ">":
                raise MarkupError(f"Unexpected end of name token at byte offset {at}")
            return found[0].lower()
        end = self.source.find(quote, self.i + 1)
        if end < 0:
            raise MarkupError(f"Unclosed start tag at byte offset {begin}")
        value = self.source[self.i + 1 : end]
        self.i = end + 1
        return self.REFERENCE.sub(lambda found: self._decoded(found) or found[0], value)

    def _skip_space(self) -> None:
        while self.peek().isspace():
            self.i += 1

    def _end_tag(self) -> None:
        begin = self.at_byte()
        if not self.stack:
            raise MarkupError(f"Unexpected end tag at byte offset {begin}")
        found = re.compile(r"</([^\s>]*)\s*(>?)").match(self.source, self.i)
        assert found is not None
        if not found[2]:
            raise MarkupError(f"Unclosed end tag at byte offset {begin}")
        opened, tag = self.stack[-1], found[1].lower()
        if tag and tag != opened.kind:
            raise MarkupError(
                f'Unmatched end tag at byte offset {begin}, expected "</{opened.kind}>", found "</{tag}>"'
            )
        self.i = found.end()
        self._finish(self.stack.pop())

    def _finish(self, opened: Opened) -> None:
        kind = self.TAGS[opened.kind]
        if kind == "text_link":
            self.emit_link(opened, opened.argument)
        elif kind == "custom_emoji":
            if not re.fullmatch(r"[1-9]\d{0,18}", opened.argument):
                raise MarkupError("Invalid custom emoji identifier specified")
            self.emit(opened, kind, custom_emoji_id=opened.argument)
        elif kind == "blockquote" and opened.argument:
            self.emit(opened, "expandable_blockquote")
        elif kind == "pre":
            self._finish_pre(opened)
        elif kind == "code" and opened.argument.startswith("language-"):
            self.emit(opened, kind, language=opened.argument.removeprefix("language-"))
        else:
            self.emit(opened, kind)

    def _finish_pre(self, opened: Opened) -> None:
        inner = self.entities[-1] if self.entities else {}
        span = (opened.offset, self.units - opened.offset)
        if inner.get("language") and (inner["offset"], inner["length"]) == span:
            inner["type"] = "pre"
        else:
            self.emit(opened, "pre")
