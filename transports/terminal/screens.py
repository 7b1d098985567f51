"""Showing a conversation as plain lines: in a pipe, and on a terminal without colours."""

import shutil
from typing import Final, Protocol, TextIO

from botservice.core.visible_text import PDI, begun_isolate

HELP: Final = "Type a message and press Enter. Ctrl+C stops an answer, Ctrl+D ends the chat."
_INDENT: Final = "    "
_REWRITE: Final = "\r\x1b[2K"  # to the beginning of the line, which is emptied


class Screen(Protocol):
    """Where a conversation is shown."""

    is_gone: bool

    def introduce(self, name: str) -> None:
        """Take note of the bot's name, which stands before its answers."""

    def prompt(self) -> None:
        """Ask for a line, where whatever reads lines does not do so itself."""

    def begin(self) -> None:
        """Take note that something was asked."""

    def show(self, piece: str) -> None:
        """Show the next piece of an answer."""

    def activity(self, text: str) -> None:
        """Show what is being done, such as the name of a tool."""

    def progress(self, text: str) -> None:
        """Show what a tool says of its work, in the place of what it said before."""

    def restart(self) -> None:
        """Show that the answer begins again."""

    def stopped(self) -> None:
        """Show that the answer was stopped."""

    def answer(self, text: str, *, is_plain: bool = False) -> None:
        """Show an answer, or the rest of one that was shown while it grew; is_plain: it is no Markdown, as below."""

    def end(self, text: str) -> None:
        """Take note that what was asked is over; text says more where there is no answer."""

    def earlier(self, text: str, *, is_plain: bool = False) -> None:
        """Show the answer to what was asked before."""

    def note(self, text: str, *, is_waiting: bool, is_plain: bool = False) -> None:
        """Show a message that answers no question, such as a reminder; is_waiting: whether a line is being typed."""


class PlainScreen:
    """Lines of text, and nothing that moves but what a tool says of its work."""

    def __init__(self, target: TextIO, *, is_interactive: bool) -> None:
        self.is_gone = False
        self._target = target
        self._is_interactive = is_interactive
        self._speaker = self._opening = ""
        self._shown = ""
        self._is_in_line = False  # in one that the next thing to be shown does not go on with

    def greet(self) -> None:
        """Write what can be typed, if a person watches."""
        if self._is_interactive:
            self._write(f"{HELP}\n")

    def introduce(self, name: str) -> None:
        """Take note of the bot's name, which stands before its answers if a person watches."""
        self._speaker = f"{visible(name)}> " if self._is_interactive else ""

    def prompt(self) -> None:
        """Ask for a line, if a person watches."""
        if self._is_interactive:
            self._write("\nyou> ")

    def begin(self) -> None:
        """Take note that something was asked."""
        self._shown, self._opening = "", self._speaker

    def show(self, piece: str) -> None:
        """Write the next piece of an answer."""
        text = visible(piece)
        self._shown += text
        self._write(self._named(text))

    def activity(self, text: str) -> None:
        """Write what is being done."""
        self._write(f"{self._break()}({visible(text)}…)\n")
        self._shown = ""

    def progress(self, text: str) -> None:
        """Write what a tool says of its work over what it said before."""
        from rich.cells import set_cell_size

        columns = shutil.get_terminal_size().columns
        line = set_cell_size(f"({visible(text)})", columns - 1).rstrip()
        self._write(f"{self._break()}{_REWRITE if self._is_in_line else ''}{line}", ends_line=False)
        self._shown, self._is_in_line = "", True

    def restart(self) -> None:
        """Write that the answer begins again."""
        self._write(f"{self._break()}(the model failed: once more)\n")
        self._shown = ""

    def stopped(self) -> None:
        """Write that the answer was stopped."""
        self._write(f"{self._break()}(stopped)\n")

    def answer(self, text: str, *, is_plain: bool = False) -> None:
        """Write an answer, or the rest of it."""
        text = visible(text)
        is_rest = bool(self._shown) and text.startswith(self._shown)
        rest = text.removeprefix(self._shown) if is_rest else self._named(text)
        self._write(f"{'' if is_rest else self._break()}{self._wrapped(rest) if is_plain else rest}\n")

    def end(self, text: str) -> None:
        """Write what is said in the place of an answer."""
        self._shown = ""
        self._write(text and f"{text}\n")

    def earlier(self, text: str, *, is_plain: bool = False) -> None:
        """Write the answer to what was asked before."""
        shown = self._wrapped(visible(text)) if is_plain else visible(text)
        self._write(f"(to what you asked before)\n{shown}\n")

    def note(self, text: str, *, is_waiting: bool, is_plain: bool = False) -> None:
        """Write a message that answers no question on lines of its own, and the prompt once more."""
        is_prompted = is_waiting and self._is_interactive
        self._write("\n" if is_prompted else self._break())
        self._write(f"{self._wrapped(visible(text)) if is_plain else visible(text)}\n")
        self._shown = ""
        if is_prompted:
            self.prompt()

    def _wrapped(self, text: str) -> str:
        return wrapped(text, shutil.get_terminal_size().columns) if self._is_interactive else text

    def _named(self, text: str) -> str:
        """Return text, with the bot's name before the first of an answer."""
        opening, self._opening = self._opening, ""
        return opening + text

    def _break(self) -> str:
        return "\n" if self._shown else ""

    def _write(self, text: str, *, ends_line: bool = True) -> None:
        if self._is_in_line and ends_line and text:
            self._is_in_line, text = False, f"\n{text}"
        try:
            self._target.write(text)
            self._target.flush()
        except (OSError, ValueError):  # the reader is gone, as in `botservice chat | head -1`
            self.is_gone = True


def wrapped(text: str, columns: int) -> str:
    """Return text whose lines fit a terminal; what goes on of one is indented, and cannot pass as another line.

    The lines of a text of the service itself are arguments of calls, names and notes, which others choose.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console, room = Console(width=columns), max(2, columns - len(_INDENT))
    lines = []
    for line in text.split("\n"):
        opening = ""
        for place, part in enumerate(Text(line).wrap(console, room) if cell_len(line) > columns else [Text(line)]):
            shown = opening + part.plain
            opening = begun_isolate(shown, len(shown))
            lines.append(f"{_INDENT if place else ''}{shown}{PDI if opening else ''}")
    return "\n".join(lines)


def visible(text: str) -> str:
    """Return text in which control characters, which could move the cursor or worse, are shown as they are called."""
    return "".join(
        char if char in "\n\t" or char.isprintable() or ord(char) > 0x9F else f"\\x{ord(char):02x}" for char in text
    )
