"""An answer as it arrives: server-sent events in one pass over the bytes, or JSON in one piece."""

import asyncio
import codecs
import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from botservice.core.errors import LLMError
from botservice.llm.openai.errors import reported, unanswered

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

DONE: Final = "[DONE]"
"""The data of the event by which chat.completions ends."""

_DECODER: Final = json.JSONDecoder()
_SECONDS_AFTER_THE_END: Final = 1.0  # for the rest of a stream, so that its connection can be used again
_SECONDS_AFTER_THE_ANSWER: Final = 3.0  # for its figures, and for the end of the stream
# Comments are signs of life of a server at which a request waits: they stand in for so many times the usual patience.
_MOST_PATIENCE: Final = 5
_OF_EVENTS: Final = (b"data:", b"event:", b":", b"id:", b"retry:", b"error:")
_OF_ANSWERS: Final = frozenset({"choices", "usage", "type"})
_BEGUN_OBJECTS: Final = ("{", '{"')
_PAGE: Final = b"<"
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
            elif line.startswith(b"{"):  # of a proxy that fails between two events
                ended.append(line.decode())
            elif line.startswith(b"error:"):  # as llama.cpp says it
                ended.append(f'{{"error": {line[6:].strip().decode()}}}')
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


class AnswerReader(Protocol):
    """What reads the events of an answer."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come."""

    @property
    def is_complete(self) -> bool:
        """Whether all of the answer is there; figures, and the end of the stream, may still come."""

    def add(self, event: Any) -> None:
        """Take the next event."""

    def add_whole(self, completion: Any) -> None:
        """Take an answer that came in one piece."""

    def end(self) -> None:
        """Take note that the server says that this was all."""


class AnswerStream:
    """Reads an answer from the bytes of a response, by what they are and not by what the server calls them.

    Args:
        patience_seconds: How long the server may send nothing.
    """

    def __init__(self, answer: AnswerReader, patience_seconds: float) -> None:
        self._answer = answer
        self._patience_seconds = patience_seconds
        self._reader = EventReader()
        self._head: bytes | None = b""  # until it is clear what comes
        self._whole: list[bytes] = []
        self._unread: str | None = None

    async def read(self, response: "httpx2.Response", limit: asyncio.Timeout) -> None:
        """Read an answer to its end, and what comes after, so that its connection can be used again.

        Args:
            limit: The limit of the call; while the server sends something, it is put off.

        Raises:
            LLMError: there is none, but an error, a page, or nothing.
        """
        clock = asyncio.get_running_loop().time
        alive_until = clock() + self._patience_seconds * _MOST_PATIENCE
        async for piece in response.aiter_bytes():
            if self._answer.is_over:
                continue
            now = clock()
            if self._take(piece):
                alive_until = now + self._patience_seconds * _MOST_PATIENCE
            limit.reschedule(min(now + self._patience(), alive_until))
        self._finish()

    def failure(self, otherwise: LLMError) -> LLMError:
        """Return why there is no answer: what the server said in the place of an event, if it said something."""
        return otherwise if self._unread is None else _unreadable(self._unread)

    def _patience(self) -> float:
        if self._answer.is_over:
            return _SECONDS_AFTER_THE_END
        is_complete = self._answer.is_complete
        return min(_SECONDS_AFTER_THE_ANSWER, self._patience_seconds) if is_complete else self._patience_seconds

    def _take(self, piece: bytes) -> bool:
        """Take the next bytes, and return whether they brought something of the answer."""
        if self._head is not None:
            piece = self._head + piece
            begun = piece.removeprefix(codecs.BOM_UTF8).lstrip()
            if any(field.startswith(begun) for field in _OF_EVENTS):  # a part of the first field, or nothing yet
                self._head = piece
                return False
            self._head = None
            if not begun.startswith(_OF_EVENTS):
                self._whole.append(begun)
                return True
        if self._whole:
            self._whole.append(piece)
            return True
        events = self._reader.feed(piece)
        for data in events:
            self._add(data)
            if self._answer.is_over:
                break
        return bool(events)

    def _add(self, data: str) -> None:
        """Take an event; what is none is passed over, and remembered: there may be no answer because of it."""
        if data.startswith(DONE):
            self._answer.end()
            return
        event = _parse(data)
        if isinstance(event, dict):
            if event.get("error") or event.get("object") == "error":
                raise reported(event)
            if not _OF_ANSWERS.isdisjoint(event):
                self._answer.add(event)
                return
        elif isinstance(event, list) and any(isinstance(each, dict) and "error" in each for each in event):
            raise reported(event)
        logger.info("model.odd_event", extra={"characters": len(data)})
        if event is None and data[:2] in _BEGUN_OBJECTS and not self._answer.is_complete:
            raise LLMError("the model's answer has a piece that could not be read")  # the rest is not all that it said
        self._unread = data

    def _finish(self) -> None:
        """Take an answer that came in one piece."""
        if not self._whole or self._answer.is_over:
            return
        text = b"".join(self._whole)
        completion = _parse(text.decode(errors="replace"))
        if not isinstance(completion, dict):
            if text.startswith(_PAGE):
                where = "is the path of OPENAI_BASE_URL right? Most end in /v1"
                raise LLMError(f"the model's server answered with a web page: {where}", is_transient=False)
            raise _unreadable(completion or text.decode(errors="replace"))
        self._answer.add_whole(completion)


def _unreadable(body: object) -> LLMError:
    logger.warning("model.unreadable")
    return unanswered(body, "the model's answer could not be read")


def _parse(data: str) -> Any:
    """Return what JSON says; None for what is none."""
    # To look for blanks around an object takes as long as to read it, and there are hundreds in an answer.
    try:
        event, end = _DECODER.raw_decode(data) if data.startswith("{") else (None, 0)
        return event if end == len(data) else json.loads(data)
    except (ValueError, RecursionError):
        return None
