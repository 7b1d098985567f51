"""Showing a conversation on a terminal with colours: rendered Markdown, and what is being done."""

import asyncio
import contextlib
import shutil
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from transports.common.too_long_messages import is_too_intricate
from transports.markdown.reading import block_lines, read_markdown
from transports.markdown.sections import readable_so_far
from transports.terminal.markdown import draw
from transports.terminal.screens import HELP, visible, wrapped

_LONGEST_MARKDOWN: Final = 30_000  # characters; anything longer is shown as it is
_SHORT_BLOCK: Final = 1_000  # characters
_FRAME_SECONDS: Final = 0.08
_ROOM: Final = 4  # lines of a terminal that stay free while an answer grows
_THINKING: Final = "thinking"
_WRITING: Final = "writing"


class RenderedScreen:
    """Shows an answer block by block: a block that is complete stays, the last one is drawn again as it grows."""

    def __init__(self, console: Console) -> None:
        self.is_gone = False
        self._console = console
        self._live: Live | None = None
        self._drawing: asyncio.Task[None] | None = None
        self._spinner = Spinner("dots", style="cyan")
        self._speaker = self._opening = ""
        self._shown = ""  # of the answer, as it came
        self._open = ""  # of that, what may still become something else
        self._next_look = 0  # how long that has to be before it is looked at again for blocks that are complete

    def greet(self) -> None:
        """Say what there is to do."""
        self._print(Text(HELP, style="dim"))

    def introduce(self, name: str) -> None:
        """Take note of the bot's name, which stands above its answers."""
        self._speaker = visible(name)

    def prompt(self) -> None:
        """Do nothing: whatever reads lines asks for them."""

    def begin(self) -> None:
        """Begin to wait."""
        self._shown, self._open, self._next_look = "", "", 0
        self._opening = self._speaker
        self._label(_THINKING)
        if self._live is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._draw,
                transient=True,
                auto_refresh=False,  # its thread would write between what is worked out here and what is written
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
            self._drawing = asyncio.create_task(self._draw_again(self._live))

    def show(self, piece: str) -> None:
        """Take the next piece of an answer."""
        text = visible(piece)
        if not self._shown:
            self._label(_WRITING)
            self._name_speaker()
        self._shown += text
        self._open += text
        if "\n" in text and len(self._open) >= self._next_look:
            done, self._open = split_blocks(self._open)
            # A block that grows long is read a few times, and not once for each of its lines.
            self._next_look = 0 if done or len(self._open) < _SHORT_BLOCK else len(self._open) * 3 // 2
            if done:
                self._print(_markdown(done))
                if done.count("\n", len(done.rstrip())) > 1:
                    self._print(Text())

    def activity(self, text: str) -> None:
        """Say next to the spinner what is being done."""
        self._keep_open()
        self._label(visible(text))
        if self._live is not None:  # now: a quick tool is done before the next frame
            self._refresh(self._live)

    def progress(self, text: str) -> None:
        """Say next to the spinner what a tool says of its work."""
        self._label(visible(text))

    def restart(self) -> None:
        """Say that the answer begins again."""
        self._keep_open()
        self._print(Text("(the model failed: once more)", style="dim"))
        self._label(_THINKING)

    def stopped(self) -> None:
        """Say that the answer was stopped."""
        self._keep_open()
        self._halt()
        self._print(Text("(stopped)", style="yellow"))

    def answer(self, text: str, *, is_plain: bool = False) -> None:
        """Show an answer, or what is left of it."""
        text = visible(text)
        is_rest = bool(self._shown) and text.startswith(self._shown)
        rest = self._open + text.removeprefix(self._shown) if is_rest else text
        if not is_rest:
            self._keep_open()
            self._name_speaker()
        self._shown, self._open, self._next_look = "", "", 0
        self._halt()
        if rest.strip():
            self._print(self._plain(rest) if is_plain else _markdown(rest))

    def end(self, text: str) -> None:
        """Wait no more."""
        self._keep_open()
        self._halt()
        self._print(Text(f"{text}\n" if text else "", style="dim"))

    def earlier(self, text: str, *, is_plain: bool = False) -> None:
        """Show the answer to what was asked before."""
        shown = self._plain(visible(text)) if is_plain else _markdown(visible(text))
        self._print(Group(Text("(to what you asked before)", style="dim"), shown))

    def note(self, text: str, *, is_waiting: bool, is_plain: bool = False) -> None:  # noqa: ARG002 - the line that is typed is drawn again by itself
        """Show a message that answers no question, such as a reminder."""
        self._keep_open()
        self._print(self._plain(visible(text)) if is_plain else _markdown(visible(text)))

    def _plain(self, text: str) -> Text:
        return Text(wrapped(text, self._console.width))

    def _name_speaker(self) -> None:
        """Show the bot's name above the first of an answer."""
        opening, self._opening = self._opening, ""
        if opening:
            self._print(Text(opening, style="bold"))

    def _keep_open(self) -> None:
        """Let what was shown of an answer stay as it is."""
        rest, self._shown, self._open, self._next_look = self._open, "", "", 0
        if rest.strip():
            self._print(_markdown(rest))

    def _label(self, text: str) -> None:
        self._spinner.update(text=Text(" ".join(f"{text}…".split()), style="dim", no_wrap=True, overflow="ellipsis"))

    def _draw(self) -> RenderableType:
        """Render the growing block, as far as there is room, and the spinner."""
        size = shutil.get_terminal_size()
        lines = self._open.splitlines()
        tail = lines[-max(1, size.lines - _ROOM) :]
        is_whole = len(tail) == len(lines) and len(self._open) < size.columns * max(1, size.lines - _ROOM) // 2
        if not lines:
            return self._spinner
        shown = Text("\n".join(tail), no_wrap=True, overflow="ellipsis")
        return Group(_markdown(readable_so_far(self._open)) if is_whole else shown, self._spinner)

    def _halt(self) -> None:
        live, self._live = self._live, None
        if self._drawing is not None:
            self._drawing.cancel()
        if live is not None:
            with contextlib.suppress(OSError, ValueError):
                live.stop()

    async def _draw_again(self, live: Live) -> None:
        while self._refresh(live):  # noqa: ASYNC110 - frames come at their own pace, whatever happens
            await asyncio.sleep(_FRAME_SECONDS)

    def _refresh(self, live: Live) -> bool:
        """Draw again; return whether that can be seen, and the terminal was not closed."""
        try:
            live.refresh()
        except (OSError, ValueError):
            return False
        return True

    def _print(self, what: RenderableType) -> None:
        try:
            self._console.print(what)
        except (OSError, ValueError):  # the terminal was closed
            self.is_gone = True


def split_blocks(text: str) -> tuple[str, str]:
    """Return the blocks of Markdown that nothing can change any more, and the last one, which goes on."""
    if len(text) > _LONGEST_MARKDOWN or is_too_intricate(text):
        return text, ""
    starts = block_lines(text)
    if len(starts) < 2:
        return "", text
    lines = text.splitlines(keepends=True)
    return "".join(lines[: starts[-1]]), "".join(lines[starts[-1] :])


def _markdown(text: str) -> RenderableType:
    """Return text as it is meant; as it is where that would take too long."""
    return Text(text) if len(text) > _LONGEST_MARKDOWN else draw(read_markdown(text))
