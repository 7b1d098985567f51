"""The parse modes MarkdownV2 and Markdown, as strict as the Bot API, with its words for what is wrong.

Source of the rules and the wording: core.telegram.org/bots/api#formatting-options, and what the server answers.
"""

import re

from standins.bot_api.markup import MarkupError, Opened, Reader


class MarkdownV2(Reader):
    RESERVED = frozenset("_*[]()~`>#+-=|{}.!\n")
    NAMES = {  # noqa: RUF012 - never changed
        "bold": "Bold",
        "italic": "Italic",
        "underline": "Underline",
        "strikethrough": "Strikethrough",
        "spoiler": "Spoiler",
        "code": "Code",
        "pre": "Pre",
        "pre_code": "PreCode",
        "text_link": "TextUrl",
        "custom_emoji": "CustomEmoji",
        "blockquote": "BlockQuote",
    }
    MARKS = {  # noqa: RUF012 - never changed
        "bold": "*",
        "code": "`",
        "pre": "```",
        "pre_code": "```",
        "text_link": "]",
        "custom_emoji": "]",
        "underline": "__",
        "strikethrough": "~",
        "spoiler": "||",
    }

    def read(self) -> None:
        while self.i < len(self.source):
            character, following = self.peek(), self.peek(1)
            if character == "\\" and following and 0 < ord(following) <= 126:
                self.put(following)
                self.i += 2
            elif character not in self._reserved():
                self.put(character)
                self.i += 1
            elif self.stack and self._ends():
                self._close()
            else:
                self._open()
        if self.stack and self.stack[-1].kind == "blockquote":
            self.emit(self.stack.pop(), "blockquote")
        if self.stack:
            raise self._unclosed()

    def _reserved(self) -> frozenset[str]:
        return frozenset("`") if self.stack and self.stack[-1].kind in {"code", "pre", "pre_code"} else self.RESERVED

    @property
    def _in_quote(self) -> bool:
        return any(opened.kind == "blockquote" for opened in self.stack)

    def _unclosed(self) -> MarkupError:
        opened = self.stack[-1]
        return MarkupError(f"Can't find end of {self.NAMES[opened.kind]} entity at byte offset {opened.at_byte}")

    def _refuse(self) -> MarkupError:
        return MarkupError(f"Character '{self.peek()}' is reserved and must be escaped with the preceding '\\'")

    def _at(self, mark: str) -> bool:
        return self.source.startswith(mark, self.i)

    def _ends(self) -> bool:
        if self._in_quote and self.peek() == "\n" and self.peek(1) != ">":
            return True
        kind = self.stack[-1].kind
        if kind == "italic":
            return self.peek() == "_" and self.peek(1) != "_"
        if kind == "blockquote":
            return self._at("||") and (self.peek(2) == "" or (self.peek(2) == "\n" and self.peek(3) != ">"))
        return self._at(self.MARKS[kind])

    def _open(self) -> None:
        begin = self.i
        if self._at("\n"):
            self.put("\n")
            self.i += 2 if self._in_quote and self.peek(1) == ">" else 1
            return
        if self._at("```"):
            self._open_pre()
            return
        for mark, kind in (
            ("__", "underline"),
            ("_", "italic"),
            ("*", "bold"),
            ("~", "strikethrough"),
            ("||", "spoiler"),
            ("![", "custom_emoji"),
            ("[", "text_link"),
            ("`", "code"),
        ):
            if self._at(mark):
                self.push(kind, position=begin)
                self.i += len(mark)
                return
        can_quote = not self._in_quote and (not self.out or self.out[-1] == "\n")
        if self.peek() != ">" or not can_quote:
            raise self._refuse()
        self.push("blockquote")
        self.i += 1

    def _open_pre(self) -> None:
        found = re.compile(r"```(?:([^\s`]+)(?=\s))?").match(self.source, self.i)
        assert found is not None
        language = found[1] or ""
        self.push("pre_code" if language else "pre", language)
        self.i = found.end()
        if self._at("\r\n") or self._at("\n\r"):
            self.i += 2
        elif self._at("\n") or self._at("\r"):
            self.i += 1

    def _close(self) -> None:
        opened = self.stack[-1]
        if opened.kind == "blockquote":
            self._close_quote()
            return
        if self.peek() == "\n":
            raise self._unclosed()
        self.i += 1 if opened.kind == "italic" else len(self.MARKS[opened.kind])
        if opened.kind == "text_link":
            self.emit_link(opened, self._address("a URL") if self.peek() == "(" else "")
        elif opened.kind == "custom_emoji":
            self._close_emoji(opened)
        elif opened.kind == "pre_code":
            self.emit(opened, "pre", language=opened.argument)
        else:
            self.emit(opened, opened.kind)
        self.stack.pop()

    def _close_quote(self) -> None:
        kind = "blockquote"
        if self._at("||"):
            kind = "expandable_blockquote"
            self.i += 2
        if self._at("\n"):
            self.put("\n")
            self.i += 1
        self.emit(self.stack.pop(), kind)

    def _close_emoji(self, opened: Opened) -> None:
        if self.peek() != "(":
            raise MarkupError("Custom emoji entity must contain a tg://emoji URL")
        found = re.fullmatch(r"tg://emoji\?id=(\d+)", self._address("a custom emoji URL"))
        if not found:
            raise MarkupError("Invalid custom emoji identifier specified")
        self.emit(opened, "custom_emoji", custom_emoji_id=found[1])

    def _address(self, what: str) -> str:
        self.i += 1
        begin = self.at_byte()
        found = re.compile(r"((?:\\[\x01-\x7e]|[^)])*)\)", re.DOTALL).match(self.source, self.i)
        if found is None:
            raise MarkupError(f"Can't find end of {what} at byte offset {begin}")
        self.i = found.end()
        return re.sub(r"(?s)\\([\x01-\x7e])", r"\1", found[1])


class Markdown(Reader):
    """The old mode: nothing nests, nothing closes twice."""

    def read(self) -> None:
        while self.i < len(self.source):
            character = self.peek()
            if character == "\\" and self.peek(1) in set("_*`["):
                self.put(self.peek(1))
                self.i += 2
            elif character in "_*`[":
                self._entity(character)
            else:
                self.put(character)
                self.i += 1

    def _entity(self, character: str) -> None:
        mark = "```" if self.source.startswith("```", self.i) else character
        self.push(mark)
        opened = self.stack.pop()
        self.i += len(mark)
        language = re.compile(r"([^\s`]+)(?=\s)").match(self.source, self.i) if mark == "```" else None
        if language:
            self.i = language.end()
        if mark == "```" and self.peek() == "\n":
            self.i += 1
        end = self.source.find("]" if mark == "[" else mark, self.i)
        if end < 0:
            raise MarkupError(f"Can't find end of the entity starting at byte offset {opened.at_byte}")
        for inner in self.source[self.i : end]:
            self.put(inner)
        self.i = end + len(mark)
        if mark == "[":
            address = re.compile(r"\(([^)]*)\)?").match(self.source, self.i)
            self.i = address.end() if address else self.i
            self.emit_link(opened, address[1] if address else "")
        elif mark == "```" and language:
            self.emit(opened, "pre", language=language[1])
        else:
            self.emit(opened, {"_": "italic", "*": "bold", "`": "code", "```": "pre"}[mark])
