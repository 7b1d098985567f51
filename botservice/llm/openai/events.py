"""Server-sent events as they arrive: one pass over the bytes."""

import codecs
import re
from typing import Final

DONE: Final = "[DONE]"
"""The data of the event by which chat.completions ends."""

_LINE_END: Final = re.compile(rb"[\r\n]")


class EventReader:
    """Puts events together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # of a line that has not ended yet; joined once, however many pieces it has
        self._data: list[bytes] = []
        self._ended_by_return = False
        self._is_at_start = True

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of the events that end in the next piece; comments and other fields are passed over.

        Raises:
            UnicodeDecodeError: it is no UTF-8.
        """
        ended = []
        for line in self._lines(piece):
            if self._is_at_start:  # a byte order mark is no part of the first field
                line, self._is_at_start = line.removeprefix(codecs.BOM_UTF8), False  # noqa: PLW2901 - without it
            if line.startswith(b"data:"):
                self._data.append(line[5:].lstrip(b" "))
            elif not line:  # the end of an event; one without data is none
                data, self._data = b"\n".join(self._data), []
                if data:
                    ended.append(data.decode())
        return ended

    def _lines(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in a piece, by LF, CR or both."""
        if self._ended_by_return and piece.startswith(b"\n"):
            piece = piece[1:]
        self._ended_by_return = piece.endswith(b"\r")
        self._begun.append(piece)
        if not _LINE_END.search(piece):
            return []
        lines = b"".join(self._begun).splitlines()
        self._begun = [] if piece.endswith((b"\n", b"\r")) else [lines.pop()]
        return lines
